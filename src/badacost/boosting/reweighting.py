"""Boosting by reweighting, the way of AdaBoost: what a `Rule` leaves open, this module does.

A round fits a weak learner to the current sample weights, measures its mistakes, chooses a step,
and multiplies the weight of every sample by a factor that depends on truth and answer. A rule says
how mistakes are weighted; algorithms of this kind differ in nothing else.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if

from badacost.arrays import FloatArray, Labels, Samples
from badacost.boosting.fit_part import PartedRows
from badacost.boosting.learners import (
    CostedClassifier,
    Criterion,
    EstimatorLearner,
    SampleSet,
    SplitCosts,
    WeakLearner,
    draw_samples,
    growth_of,
    label_tree,
)
from badacost.boosting.reweighting_part import relative_weights
from badacost.boosting.rounds import Stage
from badacost.boosting.stagewise import StagewiseClassifier, Task
from badacost.costs import zero_one_costs
from badacost.exact_sums import exact_bincount, exact_sum, units_of
from badacost.loss import (
    add_margins,
    confusion_weights,
    is_perfect,
    optimal_step,
    step_loss,
    weak_learner_costs,
)
from badacost.parts import ByPart
from badacost.threads import Threads
from badacost.tree.grower import Growth
from badacost.tree.part import Answer, Question, add_answers
from badacost.tree.part_grower import PartGrower, Planned
from badacost.validation import check_samples

_SHORT_STEP = 0.1  # times the largest margin
_MIN_STEP = 1e-9  # times the largest margin: a learner that moves scores by less is useless
_MAX_ATTEMPTS = 5  # at a useful learner in one round, where learners are random


@dataclass(frozen=True, eq=False)
class Rule:
    """How mistakes are weighted. As it stands, the rule of BAdaCost for the margins it is given.

    Attributes
    ----------
    margins : ndarray of shape (K, K)
        ``D[truth, answer]``: answering g adds ``step * D[l, g]`` to the cost score of class l.
    """

    margins: FloatArray

    def learner_costs(self, step: float) -> FloatArray:
        """Costs ``[truth, answer]`` for the weak learner, if its step will be `step`."""
        return weak_learner_costs(self.margins, step)

    def step(self, weight_sums: FloatArray) -> float:
        """Step of a learner with these weights ``[truth, answer]``; <= 0 refuses it."""
        return optimal_step(weight_sums, self.margins)

    def log_factors(self, step: float) -> FloatArray:
        """What a step adds to the logarithm of sample weights, ``[truth, answer]``."""
        return step * self.margins


@dataclass(frozen=True, eq=False)
class CostBlindRule(Rule):
    """The same margins, but learners that minimise the weighted error."""

    def learner_costs(self, step: float) -> FloatArray:
        """0|1 costs."""
        return zero_one_costs(len(self.margins))


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A weak learner, its labels, their weights by truth and prediction, and the step for it."""

    model: Any
    predicted: Labels | None  # None where samples are elsewhere
    sums: FloatArray
    step: float
    margins: FloatArray

    @cached_property
    def perfect(self) -> bool:
        return is_perfect(self.sums, self.margins)

    @property
    def reach(self) -> float:
        """How far the step moves scores at most."""
        return self.step * float(np.abs(self.margins).max())

    @property
    def useful(self) -> bool:
        return self.reach > _MIN_STEP

    @property
    def loss(self) -> float:
        """The loss after the step relative to before; a step back is not taken."""
        return step_loss(self.sums, self.margins, max(self.step, 0.0))

    @property
    def reason(self) -> str | None:
        if not self.useful:
            return "useless"
        return "perfect" if self.perfect else None


class Reweighting:
    """Training samples whose weights follow a rule: the `Descent` of algorithms like AdaBoost.

    `n_refinements` says how often a round may refit its learner to the step it led to, `random`
    whether learners are random, so that it pays to try again. The logarithms of the weights, up to
    a constant, are all that a fit needs to go on.

    With `own_margins` (n_samples, K) weights and steps follow these in the place of the rows of
    the rule. The learner is given the costs of the rule, and sample weights that make up for how
    expensive a sample is in comparison with them.
    """

    def __init__(
        self,
        learner: WeakLearner,
        y: Labels,
        weight: FloatArray,
        rule: Rule,
        *,
        learning_rate: float,
        subsample: float,
        n_refinements: int = 0,
        own_margins: FloatArray | None = None,
        seed: int,
        random: bool,
    ):
        self.rule = rule
        self.table = rule.margins.T.copy()
        self._learner, self._y, self._own = learner, y, own_margins
        self._expense: FloatArray | None = None
        if own_margins is not None:
            self._expense = own_margins[np.arange(len(y)), y] / np.diagonal(rule.margins)[y]
        self.log_weights = np.log(weight) - np.log(exact_sum(weight))  # shares may underflow
        # A number in single precision would round the steps.
        self._rate, self._subsample = float(learning_rate), subsample
        self._n_refinements, self._seed = n_refinements, seed
        self._n_attempts = _MAX_ATTEMPTS if random else 1
        first, steepest = rule.learner_costs(1.0), rule.learner_costs(0.0)
        self._costs_follow_step = not np.allclose(
            first / first.max(), steepest / steepest.max(), rtol=1e-12, atol=0.0
        )

    @property
    def weights(self) -> FloatArray:
        """Weights that sum to one, from logarithms that may be far outside the range of exp."""
        log_weights = self.log_weights  # of parts they are fetched
        weights = relative_weights(log_weights, log_weights.max())
        weights /= exact_sum(weights)
        return weights

    def fit(self, n_done: int) -> Stage:
        """Fit a learner and its step, alternately if asked to."""
        self._begin_round()
        for attempt in range(self._n_attempts):
            key, seed = None, 0
            if self._n_attempts > 1:
                key = self._seed, n_done, attempt
                seed = int(np.random.default_rng(key).integers(2**63))
            self._draw(key)
            best = self._best_candidate(seed)
            if best.useful:
                break
        steps, rows = [self._rate * best.step], [] if best.predicted is None else [best.predicted]
        return Stage([best.model], steps, rows, self.table, best.reason)

    def _begin_round(self) -> None:
        """Work out the weights of a round, and those that the learner sees."""
        self._now = self.weights
        self._seen = self._now if self._expense is None else self._now * self._expense

    def _draw(self, key: tuple[int, ...] | None) -> None:
        """Draw the samples that the learner sees; all of them without a key."""
        self._drawn = None if key is None else draw_samples(self._seen, self._subsample, key)

    def _candidate(self, costs: FloatArray, seed: int) -> _Candidate:
        """Fit a learner to costs."""
        model, predicted = self._learner.fit(self._seen, costs, self._drawn, seed)
        if self._own is not None:
            return self._own_candidate(model, predicted, self._now)
        sums = confusion_weights(self._y, predicted, self._now, len(self.rule.margins))
        return _Candidate(model, predicted, sums, self.rule.step(sums), self.rule.margins)

    def advance(self, stage: Stage) -> None:
        """Change the weights."""
        for step, labels in zip(stage.steps, stage.rows, strict=True):
            if self._own is not None:
                self.log_weights += step * self._own[np.arange(len(labels)), labels]
            else:
                add_margins(self.log_weights, self.rule.log_factors(step), self._y, labels)

    def _best_candidate(self, seed: int) -> _Candidate:
        """Fit for a step of one, then for the step that came out, while the loss falls."""

        def candidate(step: float) -> _Candidate:
            return self._candidate(self.rule.learner_costs(step), seed)

        best = candidate(1.0)
        if self._costs_follow_step and best.reach < _SHORT_STEP and not best.perfect:
            # Made for a step of one, the learner earned a short one: try steepest descent as well.
            best = min(best, candidate(0.0), key=lambda tried: tried.loss)
        for _ in range(self._n_refinements):
            if best.perfect or not best.useful:
                break
            other = candidate(best.step)
            if not other.loss < best.loss * (1.0 - 1e-12):
                break
            best = other
        return best

    def _own_candidate(self, model: Any, predicted: Labels, weights: FloatArray) -> _Candidate:
        """A learner and its step, where samples have margins of their own."""
        own: Any = self._own
        moves, cells = np.unique(own[np.arange(len(predicted)), predicted], return_inverse=True)
        sums = exact_bincount(cells, weights, len(moves))
        # Mistakes that are never made have a place too, see `optimal_step`.
        margins = np.concatenate([moves, self.rule.margins.ravel()])
        sums = np.concatenate([sums, np.zeros(self.rule.margins.size)])
        return _Candidate(model, predicted, sums, optimal_step(sums, margins), margins)


class PartedReweighting(Reweighting):
    """The same where the samples are in parts, and the learner is the built-in tree."""

    def __init__(
        self,
        samples: PartedRows,
        growth: Growth,
        criterion: Criterion,
        weight: FloatArray,
        rule: Rule,
        *,
        threads: Threads,
        **settings: Any,
    ):
        self._samples, self._parts, self._criterion = samples, samples.parts, criterion
        self._grower = PartGrower(samples.mapper, growth, threads)
        self._key: tuple[int, ...] | None = None
        learner: Any = None
        super().__init__(learner, samples.y, weight, rule, **settings)

    @property
    def log_weights(self) -> FloatArray:
        """Logarithms of the weights."""
        return np.concatenate(self._parts.ask("descent.state"))

    @log_weights.setter
    def log_weights(self, log_weights: FloatArray) -> None:
        handed_out = self._samples.handed_out(log_weights)
        self._parts.ask("start_reweighting", handed_out, keep=True)
        self._largest = float(log_weights.max())

    def _begin_round(self) -> None:
        units = units_of(1.0, len(self._y))
        sums = self._parts.ask("descent.weigh", self._largest, units)
        self._total = float(np.sum(sums, axis=0).sum())

    def _draw(self, key: tuple[int, ...] | None) -> None:
        self._key = key

    def _candidate(self, costs: FloatArray, seed: int) -> _Candidate:
        split, n_classes = SplitCosts.of(costs, self._criterion), len(costs)
        given = self._total, split, self._subsample
        if not sum(self._parts.ask("descent.begin", *given, self._key)):
            self._parts.ask("descent.begin", *given, None)
        plan = Planned(n_classes, False, split.gain, seed)
        tree, class_weights = split.restore(*self._grower.grow({0: plan}, self._ask)[0])
        tree = label_tree(tree, class_weights, costs)
        largest = np.max(self._parts.ask("descent.answer", tree, n_classes), axis=0)
        units = units_of(largest, len(self._y))
        sums = np.sum(self._parts.ask("descent.confusion", units), axis=0).sum(axis=0)
        sums = sums.reshape(n_classes, n_classes)
        return _Candidate(tree, None, sums, self.rule.step(sums), self.rule.margins)

    def _ask(self, questions: dict[int, Question]) -> dict[int, Answer]:
        answers = self._parts.ask("descent.ask", questions)
        return {key: add_answers([answer[key] for answer in answers]) for key in questions}

    def advance(self, stage: Stage) -> None:
        """Change the weights."""
        (tree,), (step,) = stage.models, stage.steps
        factors = self.rule.log_factors(step)
        if len(stage.rows):
            answers = ByPart([rows] for rows in self._samples.handed_out(stage.rows[0]))
            largest = self._parts.ask("descent.advance_by", answers, factors, keep=True)
        else:
            largest = self._parts.ask("descent.advance", tree, factors, keep=True)
        self._largest = max(largest)


@dataclass(eq=False, repr=False, kw_only=True)
class ReweightingClassifier(StagewiseClassifier):
    """Base of the classifiers that are a rule; any classifier may be the weak learner."""

    criterion: Criterion = "gini"
    estimator: Any = None

    _fits_on_gpu: ClassVar[bool] = True

    _unsaved: ClassVar[tuple[str, ...]] = ("estimator", "callbacks")

    @abstractmethod
    def _rule(self) -> Rule:
        """The rule, from `cost_matrix_` and the parameters."""

    def _initial_weights(self, y: Labels, weight: FloatArray) -> FloatArray:
        """Weights before the first round, from those of the user."""
        return weight

    def _own_margins(self, task: Task) -> FloatArray | None:
        """Margins (n_samples, K) of samples that have costs of their own."""
        return None

    def _derive(self) -> None:
        self._boosting_rule = self._rule()

    @property
    def _table(self) -> FloatArray:
        return self._boosting_rule.margins.T

    def _check_parameters(self) -> None:
        super()._check_parameters()
        weak = self.estimator
        if isinstance(weak, type):
            raise TypeError(
                f"estimator must be an object; got the class {weak.__name__}: call it, as in "
                f"estimator={weak.__name__}()."
            )
        if weak is not None and not (hasattr(weak, "__sklearn_tags__") and is_classifier(weak)):
            raise TypeError(f"estimator must be a classifier or None; got {weak!r}.")
        if weak is not None and self.device != "cpu":
            raise ValueError(
                f"estimator is fitted on the CPU: leave it out, for the built-in tree, or device="
                f"{self.device!r}."
            )
        if weak is not None and not isinstance(self.categorical_features, str | None):
            raise ValueError(
                "categorical_features needs the built-in tree: leave it out, or encode categories "
                "in the estimator, for example in a pipeline."
            )

    @property
    def _categorical_features(self) -> Any:
        return None if self.estimator is not None else self.categorical_features

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        super()._check_same_task(classes)
        if (self.estimator is None) != hasattr(self, "forest_"):
            raise ValueError(
                "With warm_start=True the built-in tree and an estimator cannot take turns."
            )

    def _start(self, task: Task) -> Reweighting:
        settings: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "subsample": self.subsample,
            "n_refinements": getattr(self, "n_refinements", 0),
            "own_margins": self._own_margins(task),
            "seed": self._seed,
            "random": self.subsample < 1.0 or self.estimator is not None,
        }
        weight = self._initial_weights(task.y, task.weight)
        learner: WeakLearner
        if self.estimator is not None:
            learner = EstimatorLearner(self.estimator, task.samples.X, task.y)
            return Reweighting(learner, task.y, weight, self._boosting_rule, **settings)
        samples = task.in_parts(self)
        growth = growth_of(self, len(samples.mapper.edges))
        settings["random"] |= growth.n_drawn is not None
        if samples.whole:
            learner = task.tree_learner(self, len(self.classes_))
            return Reweighting(learner, task.y, weight, self._boosting_rule, **settings)
        if settings["own_margins"] is not None:
            raise ValueError(
                "sample_cost needs all samples in this process: leave it out, or fit with "
                'device="cpu".'
            )
        return PartedReweighting(
            samples, growth, self.criterion, weight, self._boosting_rule, threads=task.threads,
            **settings,
        )  # fmt: skip

    def _models(self) -> tuple[list[Any], FloatArray]:
        if hasattr(self, "forest_"):
            return super()._models()
        return list(self._costed), self._table

    def _keep(self, stages: list[Stage], samples: SampleSet) -> None:
        if self.estimator is None:
            super()._keep(stages, samples)
            self.__dict__.pop("estimators_", None)
        else:
            self.__dict__.pop("forest_", None)
            self._costed: list[CostedClassifier] = [stage.models[0] for stage in stages]
            self.estimators_ = [model.estimator for model in self._costed]

    def _staged_scores(self, X: Samples) -> Iterator[FloatArray]:
        if hasattr(self, "forest_"):
            yield from super()._staged_scores(X)
            return
        scores = np.zeros((len(X), len(self.classes_)))
        for step, model in zip(self.estimator_weights_, self._costed, strict=True):
            scores += step * self._table[model.labels(X)]
            yield scores

    def _scores(self, X: Samples) -> FloatArray:
        if hasattr(self, "forest_"):
            return super()._scores(X)
        *_, scores = self._staged_scores(X)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.estimator is None
        return tags

    def _needs_trees(self, what: str) -> None:
        if not hasattr(self, "forest_"):
            weak = type(self.estimators_[0]).__name__
            raise AttributeError(
                f"{what} needs the built-in tree; this model boosts {weak}, see estimators_."
            )


def _has_posterior(model: Any) -> bool:
    """Whether the costs, once they are known, give probabilities; an error where they do not."""
    if model.__sklearn_is_fitted__():
        try:
            model._log_prior()
        except ValueError as error:
            raise AttributeError(
                "predict_proba needs costs that link all classes: give every mistake a positive "
                "price, or calibrate decision_function, for example with "
                "sklearn.calibration.CalibratedClassifierCV."
            ) from error
    return True


class PosteriorMixin(metaclass=ABCMeta):
    """Class probabilities in closed form, for losses of the form exp(c_l(x)).

    At the minimum of the expected loss ``P(l | x)`` is proportional to ``pi_l exp(-c_l(x))``.
    """

    @abstractmethod
    def _log_prior(self) -> FloatArray:
        """Logarithm of pi, shape (K,); a ValueError where there is none."""

    def _posterior(self, scores: FloatArray) -> FloatArray:
        """P(l | x) from the cost scores."""
        logits = self._log_prior() - scores
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    @available_if(_has_posterior)
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, in closed form from the minimiser of the loss.

        At the minimum of the expected loss ``P(l | x)`` is proportional to ``pi_l exp(-c_l(x))``.
        For BAdaCost pi is the stationary distribution of C*, which depends on the costs only,
        without costs it is uniform, and for CostBoost it is the frequencies of the classes. Boosted
        scores are over-confident when many rounds fit noise: stop early, or calibrate
        (``sklearn.calibration``) if probabilities matter.

        A fitted model has no such method if so many mistakes are free that costs do not link all
        classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> costs = [[0, 1, 1], [1, 0, 1], [1, 9, 0]]
        >>> model = BAdaCostClassifier(costs, n_estimators=50, learning_rate=0.5).fit(X, y)
        >>> probabilities = model.predict_proba(X[[0, 70]])
        >>> probabilities.round(1)
        array([[0.9, 0.1, 0. ],
               [0. , 1. , 0. ]])
        >>> model.predict_costs(X[[0, 70]]).round(1)  # what each answer would cost on average
        array([[0.1, 1. , 1. ],
               [1. , 0. , 1. ]])
        """
        model: Any = self
        return self._posterior(model._scores(check_samples(self, X)))

    @available_if(_has_posterior)
    def staged_predict_proba(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `predict_proba` after every round."""
        model: Any = self
        for scores in model._staged_scores(check_samples(self, X)):
            yield self._posterior(scores)
