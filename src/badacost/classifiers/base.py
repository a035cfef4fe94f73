"""The stage-wise classifier that the boosting algorithms share.

An algorithm defines what a round does to its training samples (a `Descent`). Common to all
are parameters, early stopping, warm start, callbacks, progress, decisions, and predictions after
every round.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray, Labels, Mask, RowNumbers, Samples
from badacost._utils.categorical_columns import CategoricalColumns
from badacost._utils.large_samples import BatchSource
from badacost._utils.parallel import Threads, snapshot
from badacost._utils.progress import ProgressBar
from badacost._utils.user_warnings import warn_user
from badacost._utils.validation import (
    check_choice,
    check_flag,
    check_number,
    check_samples,
    check_tree_parameters,
)
from badacost.backends.cuda_forest import accumulate
from badacost.backends.device import cuda_device
from badacost.boosting.folds import held_out_rows
from badacost.boosting.stagewise import (
    Callback,
    Descent,
    Round,
    Rounds,
    ScoredSamples,
    ScoreMonitor,
    Stage,
    join_stages,
)
from badacost.classifiers.saving import (
    SavedClassifier,
    columns_from_json,
    forest_from_arrays,
    forest_to_arrays,
    saved_floats,
)
from badacost.classifiers.training_data import LocalRows, SampleSet, Task, TrainingRows
from badacost.costs.matrix import plain, set_costs, warn_if_label_order_is_implicit
from badacost.io.model_file import (
    REBUILDING_ERRORS,
    ModelFile,
    labels_from_json,
    labels_to_json,
    refuse,
)
from badacost.loss import cmel, mean_costs
from badacost.tree.binning import BinningMethod
from badacost.tree.forest import Forest

STOP_REASONS = ("perfect", "useless", "early stopping", "callback")
MAX_SCORED = 5_000  # training samples on which the score of every round is measured
_VALIDATION_FRACTION = 0.1
_MIN_GPU_SIZE = 1_000_000  # samples times features, below which any CPU is faster
_CHANCE_STEP = 1e-6  # tiny nonzero weight of a first learner that is no better than chance
Given = tuple[Any, Any, Any]  # samples, classes and weights as the user gives them


class ForestClassifier(SavedClassifier, metaclass=ABCMeta):
    """Base of the classifiers that consist of a forest, classes and costs."""

    _takes_blocks: ClassVar[bool] = True  # sparse matrices, batches and memory maps
    _chooses_bins: ClassVar[bool] = False  # whether max_bins may be "auto"
    n_jobs: int | None
    categorical_features: Any
    forest_: Forest
    _columns: CategoricalColumns
    _mean_costs: FloatArray | None = None  # (K, K), where samples have costs of their own
    _fit_in_place: Callable[..., None]  # with parameters that are checked

    @property
    def _categorical_features(self) -> Any:
        """The parameter `categorical_features`, where it has a meaning."""
        return self.categorical_features

    @property
    def categories_(self) -> dict[Any, NDArray[Any]]:
        """Known categories of each categorical feature, by its name or position."""
        names = getattr(self, "feature_names_in_", None)
        known = self._columns.categories
        return {j if names is None else names[j]: values for j, values in known.items()}

    @property
    def feature_importances_(self) -> FloatArray:
        """Fraction of each feature in the weighted gains of all splits, (n_features,)."""
        check_is_fitted(self)
        self._needs_trees("feature_importances_")
        return self.forest_.feature_importances()

    def _needs_trees(self, what: str) -> None:
        """Raise where there are no trees for `what`."""
        if not hasattr(self, "forest_"):
            raise AttributeError(
                f"{what} needs the built-in tree: leave `estimator` None, or see estimators_."
            )

    def _fit(self, *data: Any) -> Self:
        """Fit a copy, and publish what was fitted all at once: a fit that fails changes nothing."""
        fitted = snapshot(self)
        fitted._check_parameters()
        fitted._fit_in_place(*data)
        self.__dict__ = fitted.__dict__
        return self

    def _check_parameters(self) -> None:
        check_tree_parameters(self)

    def _scores(self, X: Samples, scores: FloatArray | None = None, **trees: int) -> FloatArray:
        """Sums of the scores of all trees, (n_samples, K), or `scores` with those of some added."""
        return self.forest_.accumulate(X, scores, threads=Threads(self.n_jobs), **trees)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = self._takes_blocks
        return tags

    def _to_model_file(self) -> ModelFile:
        """Return what a file holds of the model, once it was seen to come back from it."""
        header = self._header()
        if not hasattr(self, "forest_"):
            raise TypeError("save needs the built-in tree: use joblib.dump for other estimators.")
        if hasattr(self, "feature_names_in_"):
            header["feature_names"] = labels_to_json(self.feature_names_in_)
        if self._columns.categories:
            header["categories"] = [
                [position, labels_to_json(known) if len(known) else None]
                for position, known in self._columns.categories.items()
            ]
        arrays = {"cost_matrix": self.cost_matrix_, **forest_to_arrays(self.forest_)}
        self._store(header, arrays)
        contents = ModelFile(type(self).__name__, header, arrays)
        try:  # parameters may have changed since the fit
            self._from_model_file(contents)
        except REBUILDING_ERRORS as error:
            raise ValueError(f"this model could not be loaded again: {error}") from error
        return contents

    @classmethod
    def _from_model_file(cls, model: ModelFile) -> Any:
        """Rebuild a model from the checked contents of a file."""
        header, rebuilt = model.header, cls._of_header(model)
        rebuilt.forest_ = forest_from_arrays(model.arrays, budget=model.budget)
        rebuilt.n_features_in_ = rebuilt.forest_.n_features
        if rebuilt.forest_.table.shape[1] != len(rebuilt.classes_):
            refuse("its trees do not have a score for each class")
        if "feature_names" in header:
            names = labels_from_json(header["feature_names"], model.budget)
            is_text = names.dtype == object and all(isinstance(name, str) for name in names)
            if not is_text or not len(set(names)) == len(names) == rebuilt.n_features_in_:
                refuse("it does not have a text of its own as the name of each feature")
            rebuilt.feature_names_in_ = names
        rebuilt._columns = columns_from_json(header.get("categories", []), rebuilt.forest_, model)
        rebuilt._check_parameters()
        rebuilt._restore(model)
        return rebuilt

    def _store(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add what a file holds besides parameters, classes, costs and trees."""

    def _restore(self, model: ModelFile) -> None:
        """Check and set what `_store` added, and what is derived from the parameters."""


@dataclass(eq=False, repr=False, kw_only=True)
class TreeClassifier(ForestClassifier):
    """Base of the classifiers that grow trees, with the parameters of these."""

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    max_features: int | float | str | None = None
    binning: BinningMethod = "quantile"
    max_bins: int = 256
    categorical_features: Any = "from_dtype"
    n_jobs: int | None = None
    random_state: Any = None

    def _draw_seed(self) -> None:
        """Set the seed of everything that is random in a fit."""
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))


@dataclass(eq=False, repr=False, kw_only=True)
class StagewiseClassifier(TreeClassifier):
    """Base of the boosting classifiers; `BAdaCostClassifier` documents the parameters.

    A subclass gives a meaning to the leaves of its trees (`_table`), defines what a round does
    (`_start`), and may decide otherwise than by the smallest cost score (`_decision_costs`).
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    max_depth: int | None = 4
    subsample: float = 1.0
    early_stopping: bool = False
    validation_fraction: float | None = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-7
    warm_start: bool = False
    callbacks: Sequence[Callback] | None = None
    device: Literal["cpu", "cuda"] = "cpu"
    verbose: int = 0

    _fits_on_gpu: ClassVar[bool] = False
    _unsaved: ClassVar[tuple[str, ...]] = ("callbacks",)

    def _prepare(self) -> None:
        """Set the costs and what depends on the classes only."""
        given = getattr(self, "cost_matrix", None)
        set_costs(self, self._mean_costs if given is None else given)
        self._derive()

    def _derive(self) -> None:
        """Set what follows from `regret_matrix_` and the parameters."""

    @property
    def _table(self) -> FloatArray:
        """Cost scores (n_rows, K) that the leaves of trees refer to, for a step of one.

        Where classes and parameters do not determine them, leaves have values of their own.
        """
        return self.forest_.table

    @abstractmethod
    def _start(self, task: Task) -> Descent:
        """Begin to boost."""

    def _decision_costs(self, scores: FloatArray) -> FloatArray:
        """Values (n, K) of which the decision rule takes the smallest: costs, or cost scores."""
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
        return self._fit((X, y, sample_weight), (X_val, y_val, sample_weight_val))

    def _fit_in_place(self, training: Given, unseen: Given, sample_cost: Any = None) -> None:
        """Fit on rows that this process reads."""
        self._check_device()
        try:
            self._fit_rows(partial(LocalRows, self), (*training, sample_cost), unseen)
        except MemoryError as error:
            if self.device == "cpu":
                raise
            raise MemoryError(
                f'The GPU cannot hold these samples ({error}): use device="cpu", or fewer folds.'
            ) from error

    def _fit_rows(
        self, read: Callable[..., TrainingRows], training: tuple[Any, ...], unseen: Given
    ) -> TrainingRows:
        """Read the rows of training and of validation, and fit; return those of training."""
        X_val, y_val, sample_weight_val = unseen
        if (X_val is None) != (y_val is None) and not isinstance(X_val, BatchSource):
            raise ValueError("X_val and y_val belong together: give both of them or neither.")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val belongs to X_val and y_val, which are missing.")
        resumed = self.warm_start and hasattr(self, "n_estimators_")
        if not resumed:
            self._draw_seed()
        holds_out = self._holds_out and X_val is None
        rows = read(*training, reset=not resumed, holds_out=holds_out)
        costs = rows.costs
        self._mean_costs = None if costs is None else mean_costs(costs, rows.y, rows.weight)
        if resumed:
            self._check_same_task(rows.classes)
        else:
            self.classes_ = rows.classes
            self._prepare()
            given = getattr(self, "cost_matrix", None)
            warn_if_label_order_is_implicit(given, rows.classes, rows.label_template)
            self._stage_ends = np.zeros(1, np.int64)
            self.estimator_weights_ = self.train_score_ = self.validation_score_ = np.empty(0)
            self.stop_reason_: str | None = None
        validation = None if X_val is None else read(*unseen, is_validation=True)
        if holds_out:
            rows.hold_out(self._held_out(rows.mixed(), rows.y, rows.weight))
        n, n_features = len(rows.y), self.n_features_in_
        if self.device == "cuda" and n * n_features < _MIN_GPU_SIZE:
            warn_user(
                f"The GPU takes longer than the CPU to fit {n} samples with {n_features} features: "
                'set device="cpu". It is faster from about ten million values on.'
            )
        if self.stop_reason_ not in ("perfect", "useless"):
            self._boost(rows.task(self, Threads(self.n_jobs), validation))
        return rows

    def _check_device(self) -> None:
        """Raise before any work is done if the device cannot fit this model."""
        if self.device == "cpu":
            return
        if not self._fits_on_gpu:
            raise ValueError(
                f'{type(self).__name__} is fitted on the CPU: set device="cuda" after the fit, to '
                "predict on a GPU."
            )
        if self.binning == "exact":
            raise ValueError('binning="exact" is for the CPU: choose "quantile" or "uniform".')
        cuda_device()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_estimators", self.n_estimators, Integral, low=1)
        check_number("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_number("subsample", self.subsample, low=0.0, high=1.0, open_low=True)
        check_flag("early_stopping", self.early_stopping)
        check_number(
            "validation_fraction", self.validation_fraction, low=0.0, open_low=True, none=True
        )
        check_number("n_iter_no_change", self.n_iter_no_change, Integral, low=1)
        check_number("tol", self.tol, low=0.0)
        check_flag("warm_start", self.warm_start)
        check_choice("device", self.device, ("cpu", "cuda"))
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, Integral, low=0)
        callbacks = self.callbacks or ()
        if callable(callbacks) or not all(map(callable, callbacks)):
            raise TypeError(f"callbacks must be a list of functions of a Round; got {callbacks!r}.")

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        """Refuse to add rounds for other classes or costs, or to remove some."""
        if self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"With warm_start=True n_estimators must be at least {self.n_estimators_}, the "
                f"rounds already fitted; got {self.n_estimators}."
            )
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"With warm_start=True the classes must stay {self.classes_}; got {classes}."
            )
        now = snapshot(self)
        now._prepare()
        same = np.array_equal(now.cost_matrix_, self.cost_matrix_)
        if not same or not np.array_equal(now._table, self._table):
            raise ValueError("With warm_start=True costs and their scale must stay as they were.")

    @property
    def _holds_out(self) -> bool:
        """Whether a part of the training samples shall serve as validation samples."""
        return self.early_stopping

    def _held_out(self, mixed: NDArray[np.uint64], y: Labels, weight: FloatArray) -> Mask:
        """Which samples are held out; a class with a single sample is in one of the parts."""
        given: Any = self.validation_fraction or _VALIDATION_FRACTION
        n_held_out = int(given) if isinstance(given, Integral) else max(1, round(given * len(y)))
        if not n_held_out < len(y):
            raise ValueError(
                f"validation_fraction={given!r} leaves no training samples: choose a smaller one."
            )
        return held_out_rows(mixed, y, weight, n_held_out)

    def _boost(self, task: Task) -> None:
        """Run rounds until there are `n_estimators` stages or a reason to stop."""
        earlier = list(self._stages())
        rounds = Rounds(self._start(task))
        train, held_out = self._monitors(task, rounds.descent)

        def add(stage: Stage) -> None:
            rounds.add(stage)
            train.record(stage)
            if held_out is not None:
                held_out.record(stage)

        models = [model for stage in earlier for model in stage.models]
        task.samples.preload(models)
        if task.validation is not None:
            task.validation[0].preload(models)
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
        with nullcontext() if bar is None else closing(bar):
            while len(rounds.stages) < self.n_estimators and reason is None:
                new = rounds.fit()
                if new is None:
                    reason = "useless"
                    break
                reason = new.reason
                if reason == "useless":
                    new = self._chance_stage(new)
                add(new)
                stops = self._run_callbacks(train, held_out, new, rounds.descent)
                if reason is None and stops:
                    reason = "callback"
                if reason is None and self.early_stopping and held_out is not None:
                    tol = self._tolerance(held_out.curve)
                    stuck = held_out.no_progress(self.n_iter_no_change, tol)
                    reason = "early stopping" if stuck else None
                if bar is not None:
                    unseen = held_out.curve[-1] if held_out else None
                    figures = {what: train.curve[-1], f"validation {what}": unseen}
                    bar.update(len(rounds.stages), **figures)
        n_kept = len(rounds.stages)
        if self.early_stopping and held_out is not None:
            n_kept = held_out.best_round(self._tolerance(held_out.curve)) + 1
        self.train_score_ = np.array(train.curve[:n_kept])
        self.validation_score_ = np.array(held_out.curve[:n_kept] if held_out else [])
        self.stop_reason_ = reason
        self._publish(rounds.stages[:n_kept], task.samples)
        self._finish(task, held_out)
        if reason in (None, "early stopping"):
            self._warn_if_constant(held_out or train)

    def _finish(self, task: Task, held_out: ScoreMonitor | None) -> None:
        """Set what is known of the held-out samples after the last round."""

    def _monitors(self, task: Task, descent: Descent) -> tuple[ScoreMonitor, ScoreMonitor | None]:
        """Training and validation samples that are scored after every round."""
        n_scored = min(len(task.y), MAX_SCORED)
        drawn = np.random.default_rng(self._seed).choice(len(task.y), n_scored, replace=False)
        chosen = np.sort(drawn)
        some = None if task.shards is None else task.shards.select(chosen)

        def rows_of(stage: Stage) -> list[RowNumbers]:
            if len(stage.rows) or some is None:
                return [rows[chosen] for rows in stage.rows]
            return [model.value[model.descend(some)] for model in stage.models]

        costs = None if task.costs is None else task.costs[chosen]
        y, weight = task.y[chosen], task.weight[chosen]
        train = ScoredSamples(y, weight, len(self.classes_), rows_of, self._measure, costs)
        return train, self._validation_monitor(task)

    def _validation_monitor(self, task: Task) -> ScoredSamples | None:
        if task.validation is None:
            return None
        unseen, y, weight = task.validation
        unseen.mapper = task.samples.mapper

        def rows_of(stage: Stage) -> list[RowNumbers]:
            return [unseen.rows(model, task.threads) for model in stage.models]

        return ScoredSamples(
            y, weight, len(self.classes_), rows_of, self._measure, task.validation_costs
        )

    @property
    def _score_name(self) -> str:
        """What the score of a round is called on the progress bar."""
        zero_one = 1.0 - np.eye(len(self.classes_))
        return "error" if np.array_equal(self.regret_matrix_, zero_one) else "cost"

    def _chance_stage(self, stage: Stage) -> Stage:
        """A first stage that is no better than chance, to be the whole model."""
        warn_user(
            "The first weak learner is no better than chance under these costs, so the model is "
            "this learner alone. Look for informative features, or raise max_depth.",
            ConvergenceWarning,
        )
        return replace(stage, steps=[float(self.learning_rate) * _CHANCE_STEP] * len(stage.steps))

    def _decided(self, samples: Any) -> Labels:
        """Positions of the classes that the model decides for samples that were monitored."""
        scores = samples.best_scores if self.early_stopping else samples.scores
        return np.unique(self._decide(scores))

    def _warn_if_constant(self, samples: ScoreMonitor) -> None:
        """Warn if the model predicts one class for all samples."""
        decided = self._decided(samples)
        if len(decided) == 1:
            warn_user(
                f"The model predicts {plain(self.classes_[decided[0]])!r} for every sample. Unless "
                "these costs make it the cheapest decision, raise n_estimators, learning_rate or "
                "max_depth.",
                ConvergenceWarning,
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
        return part.mean(self.regret_matrix_[part.y, decisions])

    def _loss_of(self, part: ScoredSamples) -> float:
        """The loss that boosting minimises, which may decrease while decisions do not change."""
        return cmel(part.scores, part.y, part.weight)

    def _run_callbacks(
        self, train: ScoreMonitor, held_out: ScoreMonitor | None, stage: Stage, descent: Descent
    ) -> bool:
        """Call all callbacks with the round; return whether any of them returned True, to stop."""
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
        for a, b in pairwise(self._stage_ends):
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

    def _scores(self, X: Samples, scores: FloatArray | None = None, **trees: int) -> FloatArray:
        if self.device == "cuda":
            return accumulate(cuda_device(), self.forest_, X, scores, **trees)
        return super()._scores(X, scores, **trees)

    def _scored(self, X: Any) -> tuple[Self, FloatArray]:
        """A copy that no fit in another thread changes, and its cost scores of samples."""
        model = snapshot(self)
        return model, model._scores(check_samples(model, X))

    def _staged(self, X: Any) -> Iterator[tuple[Self, FloatArray]]:
        """A copy, and its cost scores after every round: one array, filled further each time."""
        model = snapshot(self)
        samples = check_samples(model, X)
        scores = np.zeros((samples.shape[0], len(model.classes_)))
        for a, b in pairwise(model._stage_ends.tolist()):
            yield model, model._scores(samples, scores, first_tree=a, last_tree=b)

    def _decide(self, scores: FloatArray) -> Labels:
        """Positions of the predicted classes."""
        return np.argmin(self._decision_costs(scores), axis=1)

    def _decision_values(self, scores: FloatArray) -> FloatArray:
        costs = self._decision_costs(scores)
        return costs[:, 0] - costs[:, 1] if len(self.classes_) == 2 else -costs

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
        model, scores = self._scored(X)
        return np.asarray(model.classes_[model._decide(scores)])

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
        return self._scored(X)[1]

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
        model, scores = self._scored(X)
        return model._decision_values(scores)

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
        for model, scores in self._staged(X):
            yield model.classes_[model._decide(scores)]

    def staged_cost_scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `cost_scores` after every round."""
        for _, scores in self._staged(X):
            yield scores.copy()

    def staged_decision_function(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `decision_function` after every round."""
        for model, scores in self._staged(X):
            yield model._decision_values(scores.copy())

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
        threads = Threads(self.n_jobs)
        return self.forest_.apply(checked, threads)

    def _store(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        header |= {"seed": self._seed, "stop_reason": self.stop_reason_}
        arrays["stage_ends"] = self._stage_ends
        arrays["train_score"] = self.train_score_
        arrays["validation_score"] = self.validation_score_

    def _restore(self, model: ModelFile) -> None:
        self._derive()
        if self.forest_.table.shape != self._table.shape or not np.allclose(
            self.forest_.table, self._table, rtol=1e-9, atol=0.0
        ):
            raise ValueError("its trees were not grown for its costs and parameters")
        self.estimator_weights_ = self.forest_.tree_weights
        if (self.estimator_weights_ < 0.0).any():
            raise ValueError("it has trees of negative weight")
        ends, n_trees = model.arrays["stage_ends"], self.forest_.n_trees
        in_order = ends.dtype == np.int64 and ends.ndim == 1 and (ends[:-1] < ends[1:]).all()
        if not n_trees or not in_order or [*ends[[0, -1]]] != [0, n_trees]:
            raise ValueError("its rounds do not have the trees that it has")
        self._stage_ends, self.n_estimators_ = ends, len(ends) - 1
        each_round = (self.n_estimators_,)
        self.train_score_ = saved_floats(model, "train_score", each_round)
        self.validation_score_ = saved_floats(model, "validation_score", each_round, (0,))
        self._seed, self.stop_reason_ = model.header["seed"], model.header["stop_reason"]
        check_number("the seed", self._seed, Integral, low=0, high=2**31 - 1)
        if self.stop_reason_ is not None:
            check_choice("the reason to stop", self.stop_reason_, STOP_REASONS)
