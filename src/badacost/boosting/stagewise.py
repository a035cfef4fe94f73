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
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from badacost.boosting.learners import CostedClassifier, EstimatorLearner, TreeLearner, WeakLearner
from badacost.loss import cmel, confusion_weights, is_perfect, step_loss
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
_MOST_SCORED = 10_000  # training samples on which the score of every round is measured
_LEAST_STEP = 1e-9  # times the largest margin: a learner that moves scores by less is useless
_FAINT_STEP = 1e-6  # of a first learner that is no better than chance: it decides, barely


@dataclass(frozen=True)
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


Callback = Callable[[Round], bool | None]


class _Followed:
    """Samples whose cost scores are followed from round to round, and the score of each round."""

    def __init__(self, y: Labels, weight: FloatArray, margins: FloatArray, curve: FloatArray):
        self.y = y
        self.weight = weight
        self.scores = np.zeros((len(y), len(margins)))
        self.curve = list(curve)
        self._columns = margins.T.copy()

    def add(self, step: float, labels: Labels) -> None:
        """Add what a learner with these labels contributes."""
        self.scores += step * self._columns[labels]


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
        resumed = self.warm_start and hasattr(self, "estimator_weights_")
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both of them or neither.")
        samples, labels, weight, classes = check_training_data(
            self, X, y, sample_weight, not resumed
        )
        if not resumed:
            self.classes_ = classes
            self._prepare()
        elif not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"With warm_start=True the classes must stay {self.classes_}; got {classes}."
            )
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
        for callback in self.callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be functions of a Round; got {callback!r}.")

    def _hold_out(self, X: NDArray[np.floating], y: Labels, weight: FloatArray) -> list[Any]:
        """Training and validation parts, stratified; the same ones on a warm start."""
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
        equal = bool((weight == weight[0]).all())
        return TreeLearner(
            X,
            y,
            len(self.classes_),
            shape,
            binning=self.binning,
            max_bins=self.max_bins,
            sample_weight=None if equal else weight,
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
        log_weights = np.log(weight / weight.sum())
        rows = np.random.default_rng(self._seed).permutation(len(X))[:_MOST_SCORED]
        train = _Followed(y[rows], weight[rows], margins, self.train_score_)
        held_out = None
        if validation is not None:
            X_val, y_val, weight_val = validation
            held_out = _Followed(y_val, weight_val, margins, self.validation_score_)

        def add(model: Any, step: float, labels: Labels) -> None:
            log_weights[:] += step * margins[y, labels]
            train.add(step, labels[rows])
            if held_out is not None:
                held_out.add(step, learner.predict(model, X_val))

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
            for part in filter(None, (train, held_out)):
                part.curve.append(self._score_of(part))
            if reason is None and self._callbacks_ask_to_stop(
                train, held_out, step, predicted, log_weights
            ):
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
        rng = np.random.default_rng([self._seed, n_done])
        rows = None
        if self.subsample < 1.0:
            size = max(1, round(self.subsample * len(y)))
            rows = np.sort(rng.choice(len(y), size, replace=False))
        seed = int(rng.integers(2**63))
        margins = self._margins
        model, predicted = learner.fit(weights, self._learner_costs(1.0), rows, seed)
        sums = confusion_weights(y, predicted, weights, len(margins))
        step = self._step(sums)
        for _ in range(self.n_refinements):
            if step <= 0.0 or is_perfect(sums, margins):
                break
            other, others = learner.fit(weights, self._learner_costs(step), rows, seed)
            other_sums = confusion_weights(y, others, weights, len(margins))
            other_step = self._step(other_sums)
            loss = step_loss(sums, margins, step)
            if not step_loss(other_sums, margins, other_step) < loss * (1.0 - 1e-12):
                break
            model, predicted, sums, step = other, others, other_sums, other_step
        if is_perfect(sums, margins):
            return model, predicted, self.learning_rate * step, "perfect"
        if step * np.abs(margins).max() > _LEAST_STEP:
            return model, predicted, self.learning_rate * step, None
        if n_done:
            return model, predicted, None, "useless"
        warnings.warn(
            "The first weak learner is no better than chance under these costs, so the model is "
            "this learner alone. Look for informative features, or allow a stronger learner, for "
            "example by a larger max_depth.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return model, predicted, self.learning_rate * _FAINT_STEP, "useless"

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
        return min(recent) > min(before) - self.tol

    def _models(self) -> list[Any]:
        """The weak learners fitted so far."""
        if not len(self.estimator_weights_):
            return []
        return self.forest_.trees() if self.estimator is None else list(self._costed)

    def _publish(self, models: list[Any], steps: FloatArray) -> None:
        """Set the fitted attributes, cut back to the best round if stopped early."""
        if self.stop_reason_ == "early stopping":
            best = int(np.argmin(self.validation_score_)) + 1
            models, steps = models[:best], steps[:best]
            self.train_score_ = self.train_score_[:best]
            self.validation_score_ = self.validation_score_[:best]
        self.estimator_weights_ = steps
        self.n_estimators_ = len(steps)
        if self.estimator is None:
            self.forest_ = Forest.from_trees(models, steps, self._margins.T, self.n_features_in_)
        else:
            self._costed: list[CostedClassifier] = models
            self.estimators_ = [model.estimator for model in models]

    def _staged_scores(self, X: NDArray[np.floating]) -> Iterator[FloatArray]:
        """Cost scores after every round; one array, filled further each time."""
        scores = np.zeros((len(X), len(self.classes_)))
        with Threads(self.n_jobs) as threads:
            for i, step in enumerate(self.estimator_weights_):
                if self.estimator is None:
                    self.forest_.accumulate(
                        X, scores, first_tree=i, last_tree=i + 1, threads=threads
                    )
                else:
                    scores += step * self._margins.T[self._costed[i].labels(X)]
                yield scores

    def _scores(self, X: NDArray[np.floating]) -> FloatArray:
        """Cost scores c(x) of all rounds together."""
        if self.estimator is None:
            with Threads(self.n_jobs) as threads:
                return self.forest_.accumulate(X, threads=threads)
        *_, scores = self._staged_scores(X)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _normalised(log_weights: FloatArray) -> FloatArray:
    """Weights that sum to one, from logarithms that may be far outside the range of exp."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())
