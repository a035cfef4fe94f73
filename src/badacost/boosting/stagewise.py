"""The stage-wise loop that the boosting algorithms share.

A round fits a weak learner to the current sample weights, measures its mistakes, chooses a step,
and multiplies the weight of every sample by the exponential of the step times a margin. Around
this, the same for all algorithms: shrinkage, subsampling, early stopping, warm start, callbacks,
progress, and predictions after every round.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from badacost.boosting.learners import CostedClassifier, EstimatorLearner, TreeLearner, WeakLearner
from badacost.loss import add_margins, cmel, confusion_weights, is_perfect, step_loss
from badacost.progress import ProgressBar
from badacost.tree.forest import Forest
from badacost.tree.grower import TreeShape
from badacost.tree.threads import Threads
from badacost.validation import (
    check_choice,
    check_flag,
    check_number,
    check_training_data,
    check_tree_parameters,
    check_validation_data,
)

FloatArray = NDArray[np.float64]
Labels = NDArray[np.integer]

STOP_REASONS = ("perfect", "useless", "early stopping", "callback")
_MOST_SCORED = 5_000  # training samples on which the score of every round is measured
_SHORT_STEP = 0.1  # times the largest margin
_LEAST_STEP = 1e-9  # times the largest margin: a learner that moves scores by less is useless
_MOST_ATTEMPTS = 5  # at a useful learner in one round, where learners are random
_LEAST_LOG_WEIGHT = -700.0  # below the largest: a weight of zero would be a sample without a voice
_FAINT_STEP = 1e-6  # of a first learner that is no better than chance: it decides, barely


@dataclass(frozen=True, eq=False)
class Round:
    """What a callback learns about a finished round.

    Attributes
    ----------
    number : int
        Rounds so far, this one included.
    step : float
        Weight of the learner, shrinkage included.
    train_score, validation_score : float
        Scores after the round, lower is better; the second is None without validation data.
    sample_weight : ndarray of shape (n_samples,)
        Weights of the training samples after the round, summing to one.
    predicted : ndarray of shape (n_samples,)
        Classes (as positions in ``classes_``) that the learner of this round gives to them.
    """

    number: int
    step: float
    train_score: float
    validation_score: float | None
    sample_weight: FloatArray
    predicted: Labels


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A weak learner, its labels, their weights by truth and prediction, and the step for it."""

    model: Any
    predicted: Labels
    sums: FloatArray
    step: float
    margins: FloatArray

    @property
    def perfect(self) -> bool:
        return is_perfect(self.sums, self.margins)

    @property
    def reach(self) -> float:
        """How far the step moves scores at most."""
        return self.step * float(np.abs(self.margins).max())

    @property
    def useful(self) -> bool:
        return self.perfect or self.reach > _LEAST_STEP

    @property
    def loss(self) -> float:
        """The loss after the step relative to before; a step back is not taken."""
        return step_loss(self.sums, self.margins, max(self.step, 0.0))


Callback = Callable[[Round], bool | None]


class _Followed:
    """Samples whose cost scores are followed from round to round, and the score of each round."""

    def __init__(self, y: Labels, weight: FloatArray, margins: FloatArray):
        self.y = y
        self.weight = weight
        self.scores = np.zeros((len(y), len(margins)))
        self.curve: list[float] = []
        self._columns = margins.T.copy()
        self._added = np.empty_like(self.scores)

    def add(self, step: float, labels: Labels) -> None:
        """Add what a learner with these labels contributes."""
        # Unless it may clip, take copies to a buffer of its own first.
        self.scores += np.take(step * self._columns, labels, axis=0, out=self._added, mode="clip")


class StagewiseClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the boosting classifiers; `BAdaCostClassifier` documents the parameters.

    A subclass says, from the cost matrix alone: which margins a label earns (`_margins`), which
    costs the weak learner sees (`_learner_costs`), and how long the step is (`_step`).
    """

    @abstractmethod
    def _prepare(self) -> None:
        """Set `cost_matrix_` and whatever else depends on the classes only."""

    @property
    @abstractmethod
    def _margins(self) -> FloatArray:
        """Matrix D: answering g adds ``step * D[l, g]`` to the cost score of every class l."""

    @abstractmethod
    def _learner_costs(self, step: float) -> FloatArray:
        """Costs for the weak learner, if its step will be `step`."""

    @abstractmethod
    def _step(self, weight_sums: FloatArray) -> float:
        """Step for a learner with the given weights by truth and prediction; <= 0 refuses it."""

    @abstractmethod
    def _decide(self, scores: FloatArray) -> Labels:
        """Positions of the predicted classes, from the cost scores c(x)."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Any:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples. NaN is a missing value (with the built-in tree).
        y : array-like of shape (n_samples,)
            Classes, of any type that scikit-learn accepts.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; samples of weight zero are ignored.
        X_val, y_val, sample_weight_val : array-like, optional
            Validation data: scored after each round, and used for early stopping in the place of
            a part of the training data.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        resumed = self.warm_start and hasattr(self, "n_estimators_")
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both of them or neither.")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val belongs to X_val and y_val, which are missing.")
        if not resumed:
            # Should the fit fail, the model is not fitted, rather than a mixture of two.
            self.__dict__.pop("n_estimators_", None)
        samples, labels, weight, classes = check_training_data(
            self, X, y, sample_weight, not resumed
        )
        if not resumed:
            self.classes_ = classes
            self._prepare()
        else:
            self._check_same_task(classes)
        validation: Any = None
        if X_val is not None and y_val is not None:
            validation = check_validation_data(self, X_val, y_val, sample_weight_val)
        if not resumed:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self.estimator_weights_ = np.empty(0)
            self.train_score_ = np.empty(0)
            self.validation_score_ = np.empty(0)
            self.stop_reason_: str | None = None
        elif self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {self.n_estimators_} rounds "
                "already fitted; with warm_start=True it can only grow."
            )
        if self.early_stopping and validation is None:
            samples, labels, weight, *validation = self._hold_out(samples, labels, weight)
        if self.stop_reason_ not in ("perfect", "useless"):
            with Threads(self.n_jobs) as threads:
                self._boost(samples, labels, weight, validation, threads)
        return self

    def _check_parameters(self) -> None:
        check_tree_parameters(self)
        check_number("n_estimators", self.n_estimators, Integral, low=1)
        check_number("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_number("subsample", self.subsample, low=0.0, high=1.0, open_low=True)
        check_number("n_refinements", self.n_refinements, Integral, low=0)
        check_flag("early_stopping", self.early_stopping)
        check_choice("scoring", self.scoring, ("cost", "loss"))
        check_number("validation_fraction", self.validation_fraction, low=0.0, open_low=True)
        check_number("n_iter_no_change", self.n_iter_no_change, Integral, low=1)
        check_number("tol", self.tol, low=0.0)
        check_flag("warm_start", self.warm_start)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, Integral, low=0)
        if callable(self.callbacks):
            raise TypeError(f"callbacks must be a sequence of functions; got {self.callbacks!r}.")
        for callback in self.callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be functions of a Round; got {callback!r}.")
        weak = self.estimator
        if weak is not None and not (hasattr(weak, "__sklearn_tags__") and is_classifier(weak)):
            raise TypeError(f"estimator must be a classifier or None; got {weak!r}.")

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        """Refuse to add rounds for other classes or costs, or of another kind of weak learner."""
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"With warm_start=True the classes must stay {self.classes_}; got {classes}."
            )
        now = copy(self)
        now._prepare()
        same = np.array_equal(now.cost_matrix_, self.cost_matrix_)
        if not same or not np.array_equal(now._margins, self._margins):
            raise ValueError(
                "With warm_start=True cost_matrix and cost_scale must stay as they were."
            )
        if (self.estimator is None) != hasattr(self, "forest_"):
            raise ValueError(
                "With warm_start=True the built-in tree and an estimator cannot take turns."
            )

    def _hold_out(self, X: NDArray[np.floating], y: Labels, weight: FloatArray) -> list[Any]:
        """Training and validation parts, stratified; the same ones on a warm start."""
        from sklearn.model_selection import train_test_split  # slow to import, rarely needed

        try:
            split = train_test_split(
                X, y, weight,
                test_size=self.validation_fraction, stratify=y, random_state=self._seed,
            )  # fmt: skip
        except ValueError as error:
            raise ValueError(
                f"No stratified validation part could be held out of {len(y)} samples: {error} "
                "Change validation_fraction, or give X_val and y_val."
            ) from error
        return [*split[::2], *split[1::2]]

    def _make_learner(
        self, X: NDArray[np.floating], y: Labels, weight: FloatArray, threads: Threads
    ) -> WeakLearner:
        if self.estimator is not None:
            return EstimatorLearner(self.estimator, X, y)
        shape = TreeShape.of(self, X.shape[1])
        return TreeLearner(
            X,
            y,
            len(self.classes_),
            shape,
            binning=self.binning,
            max_bins=self.max_bins,
            sample_weight=weight,
            seed=self._seed,
            threads=threads,
        )

    def _boost(
        self,
        X: NDArray[np.floating],
        y: Labels,
        weight: FloatArray,
        validation: Any,
        threads: Threads,
    ) -> None:
        """Run rounds until there are `n_estimators` learners or a reason to stop."""
        learner = self._make_learner(X, y, weight, threads)
        margins = self._margins
        log_weights = np.log(weight) - np.log(weight.sum())  # shares may underflow
        n_scored = min(len(X), _MOST_SCORED)
        rows = np.random.default_rng(self._seed).choice(len(X), n_scored, replace=False)
        train = _Followed(y[rows], weight[rows], margins)
        held_out = None
        if validation is not None:
            X_val, y_val, weight_val = validation
            held_out = _Followed(y_val, weight_val, margins)

        def add(model: Any, step: float, labels: Labels) -> None:
            add_margins(log_weights, step * margins, y, labels)
            train.add(step, labels[rows])
            if held_out is not None:
                held_out.add(step, learner.predict(model, X_val))
            for part in filter(None, (train, held_out)):
                part.curve.append(self._score_of(part))

        models, steps = self._models(), self.estimator_weights_.tolist()
        for model, earlier_step in zip(models, steps, strict=True):
            add(model, earlier_step, learner.predict(model, X))
        bar = ProgressBar(self.n_estimators, type(self).__name__) if self.verbose else None
        reason = None
        while len(steps) < self.n_estimators and reason is None:
            model, predicted, step, reason = self._fit_round(
                learner, y, _normalised(log_weights), len(steps)
            )
            if step is None:
                break
            models.append(model)
            steps.append(step)
            add(model, step, predicted)
            asked = self._callbacks_ask_to_stop(train, held_out, step, predicted, log_weights)
            if reason is None and asked:
                reason = "callback"
            if reason is None and self.early_stopping and held_out is not None:
                reason = "early stopping" if self._no_progress(held_out.curve) else None
            if bar is not None:
                bar.update(
                    len(steps),
                    train=train.curve[-1],
                    validation=held_out.curve[-1] if held_out else None,
                )
        if bar is not None:
            bar.close()
        self.train_score_ = np.array(train.curve)
        self.validation_score_ = np.array(held_out.curve if held_out else [])
        self.stop_reason_ = reason
        self._publish(models, np.array(steps))

    def _fit_round(
        self, learner: WeakLearner, y: Labels, weights: FloatArray, n_done: int
    ) -> tuple[Any, Labels, float | None, str | None]:
        """Fit a learner and its step, alternately if asked to.

        Returns the model, its labels, the step (None if the model is refused), and a reason to
        stop after it, if there is one.
        """
        random = self.subsample < 1.0 or self.max_features is not None or self.estimator is not None
        for attempt in range(_MOST_ATTEMPTS if random else 1):
            rng = np.random.default_rng([self._seed, n_done, attempt])
            best = self._best_candidate(learner, y, weights, rng)
            if best.useful:
                break
        rate = float(self.learning_rate)  # a number in single precision would round the step
        if best.useful:
            return best.model, best.predicted, rate * best.step, "perfect" if best.perfect else None
        if n_done:
            return best.model, best.predicted, None, "useless"
        warnings.warn(
            "The first weak learner is no better than chance under these costs, so the model is "
            "this learner alone. Look for informative features, or allow a stronger learner, for "
            "example by a larger max_depth.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return best.model, best.predicted, rate * _FAINT_STEP, "useless"

    def _best_candidate(
        self, learner: WeakLearner, y: Labels, weights: FloatArray, rng: np.random.Generator
    ) -> _Candidate:
        """Fit for a step of one, then for the step that came out, while the loss falls."""
        rows = None
        if self.subsample < 1.0:
            # Trees see weights in single precision: draw from those that do not vanish in it.
            alive = np.flatnonzero(weights.astype(np.float32))
            size = min(max(1, round(self.subsample * len(y))), len(alive))
            rows = np.sort(rng.choice(alive, size, replace=False))
        seed = int(rng.integers(2**63))
        margins = self._margins

        def candidate(step: float) -> _Candidate:
            model, predicted = learner.fit(weights, self._learner_costs(step), rows, seed)
            sums = confusion_weights(y, predicted, weights, len(margins))
            return _Candidate(model, predicted, sums, self._step(sums), margins)

        best = candidate(1.0)
        if best.reach < _SHORT_STEP and not best.perfect:
            # Made for a step of one, the learner earned a short one: try steepest descent as well.
            best = min(best, candidate(0.0), key=lambda tried: tried.loss)
        for _ in range(self.n_refinements):
            if best.perfect or not best.useful:
                break
            other = candidate(best.step)
            if not other.loss < best.loss * (1.0 - 1e-12):
                break
            best = other
        return best

    def _score_of(self, part: _Followed) -> float:
        """Average cost of the decisions, or the loss, whichever `scoring` asks for."""
        if self.scoring == "loss":
            return cmel(part.scores, part.y, part.weight)
        costs = self.cost_matrix_[part.y, self._decide(part.scores)]
        return float(np.average(costs, weights=part.weight))

    def _callbacks_ask_to_stop(
        self,
        train: _Followed,
        held_out: _Followed | None,
        step: float,
        predicted: Labels,
        log_weights: FloatArray,
    ) -> bool:
        """Tell every callback about the round; any of them may ask to stop by returning True."""
        if not self.callbacks:
            return False
        news = Round(
            number=len(train.curve),
            step=step,
            train_score=train.curve[-1],
            validation_score=held_out.curve[-1] if held_out else None,
            sample_weight=_normalised(log_weights),
            predicted=predicted,
        )
        return any([callback(news) for callback in self.callbacks])

    def _no_progress(self, curve: list[float]) -> bool:
        """Whether the best score is older than `n_iter_no_change` rounds."""
        if len(curve) <= self.n_iter_no_change:
            return False
        recent, before = curve[-self.n_iter_no_change :], curve[: -self.n_iter_no_change]
        return min(recent) >= min(before) - self.tol

    def _models(self) -> list[Any]:
        """The weak learners fitted so far."""
        if not len(self.estimator_weights_):
            return []
        return self.forest_.trees() if hasattr(self, "forest_") else list(self._costed)

    def _publish(self, models: list[Any], steps: FloatArray) -> None:
        """Set the fitted attributes; early stopping goes back to the best round."""
        if self.early_stopping:
            best = int(np.argmin(self.validation_score_)) + 1
            models, steps = models[:best], steps[:best]
            self.train_score_ = self.train_score_[:best]
            self.validation_score_ = self.validation_score_[:best]
        self.estimator_weights_ = steps
        self.n_estimators_ = len(steps)
        if self.estimator is None:
            self.forest_ = Forest.from_trees(models, steps, self._margins.T, self.n_features_in_)
            self.__dict__.pop("estimators_", None)
        else:
            self.__dict__.pop("forest_", None)
            self._costed: list[CostedClassifier] = models
            self.estimators_ = [model.estimator for model in models]

    def _staged_scores(self, X: NDArray[np.floating]) -> Iterator[FloatArray]:
        """Cost scores after every round; one array, filled further each time."""
        scores = np.zeros((len(X), len(self.classes_)))
        with Threads(self.n_jobs) as threads:
            for i, step in enumerate(self.estimator_weights_):
                if hasattr(self, "forest_"):
                    self.forest_.accumulate(
                        X, scores, first_tree=i, last_tree=i + 1, threads=threads
                    )
                else:
                    scores += step * self._margins.T[self._costed[i].labels(X)]
                yield scores

    def _scores(self, X: NDArray[np.floating]) -> FloatArray:
        """Cost scores c(x) of all rounds together."""
        if hasattr(self, "forest_"):
            with Threads(self.n_jobs) as threads:
                return self.forest_.accumulate(X, threads=threads)
        *_, scores = self._staged_scores(X)
        return scores

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _normalised(log_weights: FloatArray) -> FloatArray:
    """Weights that sum to one, from logarithms that may be far outside the range of exp."""
    weights = log_weights - log_weights.max()
    np.maximum(weights, _LEAST_LOG_WEIGHT, out=weights)
    np.exp(weights, out=weights)
    weights /= weights.sum()
    return weights
