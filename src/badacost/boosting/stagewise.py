"""The stage-wise classifier that the boosting algorithms share.

An algorithm says what a round does to its training samples (a `Descent`); around this, the same
for all: parameters, early stopping, warm start, callbacks, progress, decisions, and predictions
after every round.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from badacost.accuracy import AccuracyMixin
from badacost.arrays import FloatArray, Labels, Mask, RowNumbers, Samples
from badacost.boosting.fit_part import PartedRows
from badacost.boosting.folds import held_out_rows, mix_samples
from badacost.boosting.followed import Followed, ScoredSamples
from badacost.boosting.learners import SampleSet, TreeLearner, growth_of
from badacost.boosting.rounds import Descent, Rounds, Stage, join_stages
from badacost.boosting.saving import SavedForest
from badacost.costs.decisions import CostDecisionMixin
from badacost.costs.matrix import plain, warn_of_alphabet
from badacost.costs.sample_costs import check_sample_cost, mistake_costs
from badacost.gpu.device import cuda_device
from badacost.gpu.forest import accumulate
from badacost.large_samples import BatchSource, LargeSamples
from badacost.loss import cmel, mean_costs
from badacost.model_file import ModelFile
from badacost.progress import ProgressBar
from badacost.threads import Threads
from badacost.tree.grower import TreeGrower
from badacost.tree.sampling import BinningMethod, RowSketch
from badacost.validation import (
    check_choice,
    check_flag,
    check_number,
    check_samples,
    check_training_data,
    check_tree_parameters,
    check_validation_data,
)

STOP_REASONS = ("perfect", "useless", "early stopping", "callback")
MAX_SCORED = 5_000  # training samples on which the score of every round is measured
_CHANCE_STEP = 1e-6  # of a first learner that is no better than chance: it decides, barely


@dataclass(frozen=True, eq=False)
class Round:
    """What a callback learns about a finished round.

    Attributes
    ----------
    number : int
        Rounds so far, this one included.
    step : float
        Weight of the learner, shrinkage included; the largest where a round has several.
    train_score, validation_score : float
        Scores after the round, lower is better; the second is None without validation data.
    sample_weight : ndarray of shape (n_samples,)
        Weights of the training samples after the round, summing to one.
    predicted : ndarray of shape (n_samples,) or None
        Classes (as positions in ``classes_``) that the learner of this round gives to them; None
        where trees grow on a GPU or a cluster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> def watch(done):
    ...     print(f"round {done.number}: {done.train_score:.2f}, step {done.step:.2f}")
    ...     return done.train_score < 0.1  # True ends the training
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(max_depth=1, learning_rate=0.5, callbacks=[watch]).fit(X, y)
    round 1: 0.33, step 0.35
    round 2: 0.34, step 0.43
    round 3: 0.04, step 0.47
    """

    number: int
    step: float
    train_score: float
    validation_score: float | None
    sample_weight: FloatArray
    predicted: Labels | None


Callback = Callable[[Round], bool | None]


@dataclass(eq=False)
class Task:
    """What a fit works on: training samples, their classes and weights, validation, threads."""

    samples: SampleSet
    y: Labels  # positions in classes_
    weight: FloatArray
    validation: tuple[SampleSet, Labels, FloatArray] | None
    threads: Threads
    kept: Mask  # which samples of the user are among them: those with a weight
    costs: FloatArray | None = None  # (n, K), of samples that have prices of their own
    validation_costs: FloatArray | None = None
    parted: PartedRows | None = None  # the samples, where they are elsewhere

    def in_parts(self, estimator: Any) -> PartedRows:
        """The samples in bins, as an estimator is set, in parts: one, unless they came in more."""
        if self.parted is None:
            data = self.samples.bin(estimator, self.weight, self.threads)
            given = data, self.y, self.weight, self.threads
            self.parted = PartedRows.local(*given, estimator.device)
        return self.parted

    def tree_learner(self, estimator: Any, n_classes: int) -> TreeLearner:
        """Bin the samples and grow trees for their classes, as an estimator is set."""
        data: Any = self.samples.data
        if data is None:
            data = self.samples.bin(estimator, self.weight, self.threads)
        grower = TreeGrower(data, growth_of(estimator, len(data.bins)), self.threads)
        return TreeLearner(grower, self.y, n_classes, estimator.criterion)


@dataclass(eq=False, repr=False, kw_only=True)
class StagewiseClassifier(
    CostDecisionMixin, SavedForest, AccuracyMixin, BaseEstimator, metaclass=ABCMeta
):
    """Base of the boosting classifiers; `BAdaCostClassifier` documents the parameters.

    A subclass gives a meaning to the leaves of its trees (`_table`), says what a round does
    (`_start`), and may decide otherwise than by the smallest cost score (`_charges`).
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    max_depth: int | None = 4
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    max_features: int | float | str | None = None
    binning: BinningMethod = "quantile"
    max_bins: int = 256
    categorical_features: Any = "from_dtype"
    subsample: float = 1.0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-7
    warm_start: bool = False
    callbacks: Sequence[Callback] | None = None
    n_jobs: int | None = None
    device: Literal["cpu", "cuda"] = "cpu"
    random_state: Any = None
    verbose: int = 0

    @abstractmethod
    def _prepare(self) -> None:
        """Set the costs and whatever else depends on the classes only."""

    @property
    @abstractmethod
    def _table(self) -> FloatArray:
        """Cost scores (n_rows, K) that the leaves of trees refer to, for a step of one."""

    @abstractmethod
    def _start(self, task: Task) -> Descent:
        """Begin to boost."""

    def _charges(self, scores: FloatArray) -> FloatArray:
        """What the decision rule compares, (n, K): the smallest charge wins."""
        return scores

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Any:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or batches of shape (n_samples, n_features)
            Training samples. NaN is a missing value (with the built-in tree). Batches
            (`badacost.batches`) come with classes and weights, and are read when they are needed,
            as is a memory-mapped array.
        y : array-like of shape (n_samples,)
            Classes, of any type that scikit-learn accepts; not for batches, which have them.
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
        return self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)

    def _fit(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        X_val: Any,
        y_val: ArrayLike | None,
        sample_weight_val: ArrayLike | None,
        sample_cost: Any = None,
    ) -> Any:
        self._check_parameters()
        self._check_device(sample_cost)
        resumed = self.warm_start and hasattr(self, "n_estimators_")
        if (X_val is None) != (y_val is None) and not isinstance(X_val, BatchSource):
            raise ValueError("X_val and y_val belong together: give both of them or neither.")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val belongs to X_val and y_val, which are missing.")
        if not resumed:
            # Should the fit fail, the model is not fitted, rather than a mixture of two.
            self.__dict__.pop("n_estimators_", None)
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sketch = RowSketch(self._seed, self.binning)
        holds_out = X_val is None and self._holds_out
        mixed: Any = []

        def mix(X: Samples, weight: FloatArray | None) -> None:
            mixed.append(mix_samples(X, self._seed))

        checked, labels, weight, classes, kept = check_training_data(
            self, X, y, sample_weight, not resumed, mix if holds_out else sketch.add
        )
        large = isinstance(checked, LargeSamples)
        watched = large and checked.watched
        costs = validation_costs = None
        self._mean_costs: FloatArray | None = None
        if sample_cost is not None:
            known = [plain(label) for label in classes]
            costs = check_sample_cost(sample_cost, known, len(kept))
            costs = mistake_costs(costs, labels, kept)
            self._mean_costs = mean_costs(costs, labels, weight)
        if not resumed:
            self.classes_ = classes
            self._prepare()
            like = checked.y_like if large and y is None else y
            warn_of_alphabet(getattr(self, "cost_matrix", None), classes, like, stacklevel=4)
        else:
            self._check_same_task(classes)
        validation: Any = None
        if X_val is not None:
            validation = check_validation_data(self, X_val, y_val, sample_weight_val)
        del X, X_val  # bins take their place
        if not resumed:
            self._forget_rounds()
        elif self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {self.n_estimators_} rounds "
                "already fitted; with warm_start=True it can only grow."
            )
        if holds_out:
            mixed = np.concatenate(mixed) if watched else mix_samples(checked, self._seed)
            if costs is None:
                parts = self._hold_out(checked, labels, weight, mixed=mixed)
                checked, labels, weight, *validation = parts
            else:
                parts = self._hold_out(checked, labels, weight, costs, mixed=mixed)
                checked, labels, weight, costs, *validation, validation_costs = parts
        if self.stop_reason_ not in ("perfect", "useless"):
            if validation is not None:
                validation = (SampleSet(validation[0]), *validation[1:])
            some = checked if large else checked[:: checked.shape[0] // MAX_SCORED + 1].copy()
            with Threads(self.n_jobs) as threads:
                samples = SampleSet(checked, sketch if watched and not holds_out else None)
                task = Task(
                    samples, labels, weight, validation, threads, kept, costs,
                    validation_costs,
                )  # fmt: skip
                del checked, validation, samples, sketch
                try:
                    self._boost(task)
                except MemoryError as error:
                    if self.device == "cpu":
                        raise
                    raise MemoryError(
                        f'The GPU cannot hold these samples ({error}): fit with device="cpu", with '
                        "fewer folds or features, or on a cluster."
                    ) from error
            self._warn_if_constant(some.glimpse if large else some)
        return self

    def _forget_rounds(self) -> None:
        """Begin without those of an earlier fit."""
        self.estimator_weights_ = np.empty(0)
        self._stage_ends = np.zeros(1, np.int64)
        self.train_score_ = np.empty(0)
        self.validation_score_ = np.empty(0)
        self.stop_reason_: str | None = None

    def _check_device(self, sample_cost: Any = None) -> None:
        """Raise before any work is done if the device cannot fit this model."""
        if self.device == "cpu":
            return
        name = type(self).__name__
        if not self._fits_on_gpu:
            raise ValueError(
                f'{name} is fitted on the CPU: leave device="cpu", and set_params(device="cuda") '
                "to predict on a GPU; or choose BAdaCostClassifier or CostBoostClassifier."
            )
        if self.binning == "exact":
            raise ValueError(
                f'device={self.device!r} needs bins of one byte: choose binning="quantile" or '
                '"uniform".'
            )
        if sample_cost is not None:
            raise ValueError('sample_cost is for device="cpu": leave one of them out.')
        cuda_device()

    def _check_parameters(self) -> None:
        check_tree_parameters(self)
        check_number("n_estimators", self.n_estimators, Integral, low=1)
        check_number("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_number("subsample", self.subsample, low=0.0, high=1.0, open_low=True)
        check_flag("early_stopping", self.early_stopping)
        check_number("validation_fraction", self.validation_fraction, low=0.0, open_low=True)
        check_number("n_iter_no_change", self.n_iter_no_change, Integral, low=1)
        check_number("tol", self.tol, low=0.0)
        check_flag("warm_start", self.warm_start)
        check_choice("device", self.device, ("cpu", "cuda"))
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, Integral, low=0)
        if callable(self.callbacks):
            raise TypeError(f"callbacks must be a sequence of functions; got {self.callbacks!r}.")
        for callback in self.callbacks or ():
            if not callable(callback):
                raise TypeError(f"callbacks must be functions of a Round; got {callback!r}.")

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        """Refuse to add rounds for other classes or costs."""
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"With warm_start=True the classes must stay {self.classes_}; got {classes}."
            )
        now = copy(self)
        now._prepare()
        same = np.array_equal(now.charged_costs_, self.charged_costs_)
        if not same or not np.array_equal(now._table, self._table):
            raise ValueError(
                "With warm_start=True the costs and their scale must stay as they were."
            )

    @property
    def _holds_out(self) -> bool:
        """Whether a part of the training samples shall serve as validation samples."""
        return self.early_stopping

    def _hold_out(self, X: Any, y: Labels, *more: FloatArray, mixed: Any) -> list[Any]:
        """Training and validation parts, alike for all classes; the same ones on a warm start."""
        held = self._held_out(mixed, y, more[0])
        return [part[rows] for rows in (~held, held) for part in (X, y, *more)]

    def _held_out(self, mixed: NDArray[np.uint64], y: Labels, weight: FloatArray) -> Mask:
        """Which samples are held out; a class with a single sample is in one of the parts."""
        given: Any = self.validation_fraction
        n_held_out = int(given) if isinstance(given, Integral) else max(1, round(given * len(y)))
        if not n_held_out < len(y):
            raise ValueError(
                f"validation_fraction={given!r} leaves no samples for training: choose a smaller "
                "one, or give X_val and y_val."
            )
        return held_out_rows(mixed, y, weight, n_held_out)

    def _boost(self, task: Task) -> None:
        """Run rounds until there are `n_estimators` stages or a reason to stop."""
        earlier = list(self._stages())
        rounds = Rounds(self._start(task))
        train, held_out = self._followed(task, rounds.descent)

        def add(stage: Stage) -> None:
            rounds.add(stage)
            train.follow(stage)
            if held_out is not None:
                held_out.follow(stage)

        models = [model for stage in earlier for model in stage.models]
        task.samples.expect(models)
        if task.validation is not None:
            task.validation[0].expect(models)
        for stage in earlier:
            rows = [task.samples.rows(model, task.threads) for model in stage.models]
            add(replace(stage, rows=rows))
        if task.samples.mapper is not None:
            task.samples.X = None
            if task.validation is not None:
                task.validation[0].bin_like(task.samples, task.threads)
        reason = self.stop_reason_ if len(rounds.stages) >= self.n_estimators else None
        bar = ProgressBar(self.n_estimators, type(self).__name__) if self.verbose else None
        what = self._score_name
        try:
            while len(rounds.stages) < self.n_estimators and reason is None:
                new = rounds.fit()
                if new is None:
                    reason = "useless"
                    break
                reason = new.reason
                if reason == "useless":
                    new = self._chance_stage(new)
                add(new)
                asked = self._callbacks_ask_to_stop(train, held_out, new, rounds.descent)
                if reason is None and asked:
                    reason = "callback"
                if reason is None and self.early_stopping and held_out is not None:
                    tol = self._tolerance(held_out.curve)
                    stuck = held_out.no_progress(self.n_iter_no_change, tol)
                    reason = "early stopping" if stuck else None
                if bar is not None:
                    figures = {what: train.curve[-1]}
                    if held_out is not None:
                        figures[f"validation {what}"] = held_out.curve[-1]
                    bar.update(len(rounds.stages), **figures)
        finally:
            if bar is not None:
                bar.close()
        n_kept = len(rounds.stages)
        if self.early_stopping and held_out is not None:
            n_kept = held_out.best_round(self._tolerance(held_out.curve)) + 1
        self.train_score_ = np.array(train.curve[:n_kept])
        self.validation_score_ = np.array(held_out.curve[:n_kept] if held_out else [])
        self.stop_reason_ = reason
        self._publish(rounds.stages[:n_kept], task.samples)

    def _followed(self, task: Task, descent: Descent) -> tuple[Followed, Followed | None]:
        """Training and validation samples that are scored after every round."""
        n_scored = min(len(task.y), MAX_SCORED)
        chosen = np.random.default_rng(self._seed).choice(len(task.y), n_scored, replace=False)
        some = None if task.parted is None else task.parted.some(np.sort(chosen))

        def answers(stage: Stage) -> list[RowNumbers]:
            if len(stage.rows) or some is None:
                return [rows[chosen] for rows in stage.rows]
            return [some.rows(model, task.threads)[place] for model in stage.models]

        place = np.argsort(np.argsort(chosen))
        train = ScoredSamples(
            task.y[chosen],
            task.weight[chosen],
            len(self.classes_),
            answers,
            self._measure,
            None if task.costs is None else task.costs[chosen],
        )
        return train, self._followed_validation(task)

    def _followed_validation(self, task: Task) -> ScoredSamples | None:
        if task.validation is None:
            return None
        unseen, y, weight = task.validation
        unseen.mapper = task.samples.mapper
        return ScoredSamples(
            y,
            weight,
            len(self.classes_),
            lambda stage: [unseen.rows(model, task.threads) for model in stage.models],
            self._measure,
            task.validation_costs,
        )

    @property
    def _score_name(self) -> str:
        """What the score of a round is called on the progress bar."""
        zero_one = 1.0 - np.eye(len(self.classes_))
        return "error" if np.array_equal(self.cost_matrix_, zero_one) else "cost"

    def _chance_stage(self, stage: Stage) -> Stage:
        """A first stage that is no better than chance, to be the whole model."""
        warnings.warn(
            "The first weak learner is no better than chance under these costs, so the model is "
            "this learner alone. Look for informative features, or allow a stronger learner, for "
            "example by a larger max_depth.",
            ConvergenceWarning,
            stacklevel=5,
        )
        return replace(stage, steps=[float(self.learning_rate) * _CHANCE_STEP] * len(stage.steps))

    def _warn_if_constant(self, X: Samples) -> None:
        """Say so if the model gives one answer to all samples."""
        answers = self.classes_[self._decide(self._scores(X))]
        if self.stop_reason_ in (None, "early stopping") and (answers == answers[0]).all():
            warnings.warn(
                f"The model answers {plain(answers[0])!r} whatever the sample. Unless these costs "
                "make it the cheapest answer to all of them, allow more rounds by a larger "
                "n_estimators, larger steps by learning_rate, or a stronger learner, for example "
                "by a larger max_depth.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _measure(self, part: ScoredSamples) -> tuple[float, float]:
        """Score and loss of samples after a round."""
        return self._score_of(part), self._loss_of(part)

    def _tolerance(self, curve: list[float]) -> float:
        """How much lower a score must be to count as an improvement."""
        return float(self.tol)

    def _score_of(self, part: ScoredSamples) -> float:
        """Average cost of the decisions: lower is better."""
        decisions = self._decide(part.scores)
        if part.costs is not None:
            return part.mean(part.costs[np.arange(len(decisions)), decisions])
        return part.mean(self.cost_matrix_[part.y, decisions])

    def _loss_of(self, part: ScoredSamples) -> float:
        """The loss that boosting lowers, which moves on while decisions stay the same."""
        return cmel(part.scores, part.y, part.weight)

    def _callbacks_ask_to_stop(
        self, train: Followed, held_out: Followed | None, stage: Stage, descent: Descent
    ) -> bool:
        """Tell every callback about the round; any of them may ask to stop by returning True."""
        if not self.callbacks:
            return False
        predicted = None
        if len(stage.rows):
            scores = np.zeros((len(stage.rows[0]), len(self.classes_)))
            stage.add_to(scores)
            predicted = scores.argmin(axis=1)
        done = Round(
            number=len(train.curve),
            step=max(stage.steps),
            train_score=train.curve[-1],
            validation_score=held_out.curve[-1] if held_out else None,
            sample_weight=descent.weights,
            predicted=predicted,
        )
        return any([callback(done) for callback in self.callbacks])

    def _stages(self) -> Iterator[Stage]:
        """The stages fitted so far."""
        models, table = self._models() if len(self.estimator_weights_) else ([], np.empty(0))
        steps = self.estimator_weights_.tolist()
        for a, b in zip(self._stage_ends[:-1], self._stage_ends[1:], strict=True):
            yield Stage(models[a:b], steps[a:b], [], table)

    def _models(self) -> tuple[list[Any], FloatArray]:
        """The weak learners fitted so far, and the table that they refer to."""
        return self.forest_.trees(), self.forest_.table

    def _publish(self, stages: list[Stage], samples: SampleSet) -> None:
        """Set the fitted attributes."""
        self.estimator_weights_ = np.array([step for stage in stages for step in stage.steps])
        self._stage_ends = np.cumsum([0, *(len(stage.steps) for stage in stages)])
        self.n_estimators_ = len(stages)
        self._keep(stages, samples)

    def _keep(self, stages: list[Stage], samples: SampleSet) -> None:
        """Store the weak learners."""
        self.forest_ = join_stages(stages, self.n_features_in_, samples.mapper)

    def _staged_scores(self, X: Samples) -> Iterator[FloatArray]:
        """Cost scores after every round; one array, filled further each time."""
        scores = np.zeros((X.shape[0], len(self.classes_)))
        with Threads(self.n_jobs) as threads:
            for a, b in zip(self._stage_ends[:-1], self._stage_ends[1:], strict=True):
                self._accumulate(X, threads, scores, first_tree=a, last_tree=b)
                yield scores

    def _scores(self, X: Samples) -> FloatArray:
        """Cost scores c(x) of all rounds together."""
        with Threads(self.n_jobs) as threads:
            return self._accumulate(X, threads)

    def _accumulate(
        self, X: Samples, threads: Threads, scores: FloatArray | None = None, **trees: int
    ) -> FloatArray:
        """Add the scores of trees, on the device of the model."""
        if self.device == "cuda":
            return accumulate(cuda_device(), self.forest_, X, scores, **trees)
        return self.forest_.accumulate(X, scores, threads=threads, **trees)

    def _decide(self, scores: FloatArray) -> Labels:
        """Positions of the predicted classes."""
        return np.argmin(self._charges(scores), axis=1)

    def _decision_values(self, scores: FloatArray) -> FloatArray:
        charges = self._charges(scores)
        return charges[:, 0] - charges[:, 1] if len(self.classes_) == 2 else -charges

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the classes that the decision rule chooses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        scores = self._scores(check_samples(self, X))
        return np.asarray(self.classes_[self._decide(scores)])

    def cost_scores(self, X: ArrayLike) -> FloatArray:
        """Return the cost scores c(x), the sums over the learners; the class of the smallest wins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Scores, in the order of ``classes_``. They have no unit: `predict_costs` has that of
            the cost matrix, where there are probabilities.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> model = BAdaCostClassifier([[0, 1, 5], [1, 0, 2], [10, 8, 0]]).fit(X, y)
        >>> model.cost_scores(X[[0, 177]]).argmin(axis=1), model.predict(X[[0, 177]])
        (array([0, 2]), array([0, 2]))
        >>> model.predict_costs(X[:1]).argmin(axis=1)
        array([0])
        """
        return self._scores(check_samples(self, X))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return what the decision rule compares, with the sign turned so that the largest wins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K), or (n_samples,) for two classes
            Minus the score (or expected cost, where the rule compares these) of each class; for
            two classes, that of the second minus that of the first.
        """
        return self._decision_values(self._scores(check_samples(self, X)))

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yield `predict` after every round.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import SAMMEClassifier
        >>> from badacost.metrics import average_cost
        >>> X, y = load_iris(return_X_y=True)
        >>> costs = [[0, 1, 1], [1, 0, 1], [1, 5, 0]]  # C[truth, prediction]
        >>> model = SAMMEClassifier(n_estimators=4, max_depth=1, learning_rate=0.5).fit(X, y)
        >>> [round(average_cost(y, labels, costs), 2) for labels in model.staged_predict(X)]
        [1.67, 0.34, 0.15, 0.18]
        """
        for scores in self._staged_scores(check_samples(self, X)):
            yield self.classes_[self._decide(scores)]

    def staged_cost_scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `cost_scores` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield scores.copy()

    def staged_decision_function(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `decision_function` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield self._decision_values(scores.copy())

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the leaf that each sample reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            Leaves.
        """
        checked = check_samples(self, X)
        self._needs_trees("apply")
        with Threads(self.n_jobs) as threads:
            return self.forest_.apply(checked, threads)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gains of all splits, weighted by step and node."""
        check_is_fitted(self)
        self._needs_trees("feature_importances_")
        return self.forest_.feature_importances()

    def _needs_trees(self, what: str) -> None:
        """Raise where there are no trees to answer `what`."""

    _fits_on_gpu: ClassVar[bool] = False
    _unsaved: ClassVar[tuple[str, ...]] = ("callbacks",)

    def _extra_header(self) -> dict[str, Any]:
        return {"seed": self._seed, "stop_reason": self.stop_reason_}

    def _extra_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "stage_ends": self._stage_ends,
            "train_score": self.train_score_,
            "validation_score": self.validation_score_,
        }

    def _restore(self, model: ModelFile) -> None:
        self._check_parameters()
        self._derive()
        if self.forest_.table.shape != self._table.shape or not np.allclose(
            self.forest_.table, self._table, rtol=1e-9, atol=0.0
        ):
            raise ValueError("its trees were not grown for its costs and parameters")
        self.estimator_weights_ = self.forest_.tree_weights
        self._stage_ends = model.arrays["stage_ends"]
        self.n_estimators_ = len(self._stage_ends) - 1
        if self._stage_ends.dtype != np.int64 or self._stage_ends.ndim != 1:
            raise ValueError("it does not say which trees make a round")
        in_order = (self._stage_ends[:-1] < self._stage_ends[1:]).all()
        n_trees = self.forest_.n_trees
        if not n_trees or not in_order or [*self._stage_ends[[0, -1]]] != [0, n_trees]:
            raise ValueError("its rounds do not have the trees that it has")
        if (self.estimator_weights_ < 0.0).any():
            raise ValueError("it has trees of negative weight")
        self.train_score_ = model.arrays["train_score"]
        self.validation_score_ = model.arrays["validation_score"]
        shapes = {(self.n_estimators_,)}
        for name, curve in (("train", self.train_score_), ("validation", self.validation_score_)):
            if curve.dtype != np.float64 or curve.shape not in shapes:
                raise ValueError(f"it does not have a {name} score for each round")
            shapes.add((0,))  # there may be no validation
        self._seed, self.stop_reason_ = model.header["seed"], model.header["stop_reason"]
        check_number("the seed", self._seed, Integral, low=0, high=2**31 - 1)
        if self.stop_reason_ is not None:
            check_choice("the reason to stop", self.stop_reason_, STOP_REASONS)

    def _derive(self) -> None:
        """Set what follows from `cost_matrix_` and the parameters."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags
