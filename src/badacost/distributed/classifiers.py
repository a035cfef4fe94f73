"""BAdaCost and CostBoost on the workers of a Dask cluster, with the models of the ordinary ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from badacost.arrays import FloatArray
from badacost.boosting.badacost import BAdaCostClassifier
from badacost.boosting.costboost import CostBoostClassifier
from badacost.boosting.stagewise import MAX_SCORED, StagewiseClassifier, Task
from badacost.categorical_columns import CategoricalColumns, categorical_positions
from badacost.costs.matrix import warn_of_alphabet
from badacost.distributed.collections import (
    check_collections,
    current_client,
    is_collection,
    meta_of,
    outside_of_tasks,
)
from badacost.distributed.lazy import predict_lazily
from badacost.distributed.parts import MAX_REBUILDS
from badacost.distributed.requirement import dask_distributed
from badacost.distributed.training_set import BinnedSamples, ClusterRows
from badacost.threads import Threads
from badacost.tree.binning import BinnedData
from badacost.tree.sampling import RowSketch
from badacost.validation import check_number

if TYPE_CHECKING:
    _Classifier = StagewiseClassifier
else:  # its fields would take the place of those of the classifiers
    _Classifier = object


class DaskTraining(_Classifier):
    """What the classifiers on a cluster share: fits on dask collections, and lazy predictions."""

    client: Any
    max_rebuilds: int
    _local: ClassVar[type[StagewiseClassifier]]

    def fit(  # type: ignore[override]  # no batches, no costs of samples
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Fit the classifier on the workers of a cluster.

        Parameters
        ----------
        X : dask array or data frame of shape (n_samples, n_features)
            Training samples. NaN is a missing value. Columns of the dtype category are categories.
        y : dask array or series of shape (n_samples,)
            Classes.
        sample_weight : dask array or series of shape (n_samples,), optional
            Non-negative weights; samples of weight zero are ignored.
        X_val, y_val, sample_weight_val : dask collections, optional
            Validation data, which are scored as a whole after each round. Their bins, a byte for
            each value, come to this process.

        Returns
        -------
        self
            The fitted estimator.
        """
        dask_distributed()
        self._check_parameters()
        names = "X y sample_weight X_val y_val sample_weight_val"
        check_collections(names, X, y, sample_weight, X_val, y_val, sample_weight_val)
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both of them or neither.")
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val belongs to X_val and y_val, which are missing.")
        self.__dict__.pop("n_estimators_", None)
        validate_data(self, meta_of(X), reset=True, skip_check_array=True)
        if X_val is not None:
            validate_data(self, meta_of(X_val), reset=False, skip_check_array=True)
        client, started = current_client(self.client), time.perf_counter()
        with outside_of_tasks():
            rows = self._rows(client, X, y, sample_weight)
            with rows.parts:
                unseen = None
                try:
                    if X_val is not None:
                        unseen = self._rows(client, X_val, y_val, sample_weight_val)
                    self._fit_rows(rows, unseen)
                finally:
                    if unseen is not None:
                        unseen.parts.close()
        asked = rows.parts
        #: Seconds of the fit, of parts at work and of communication, and the number of calls.
        self.cluster_seconds_ = {
            "fit": time.perf_counter() - started,
            "work": asked.worked,
            "communication": asked.waited - asked.worked,
            "n_calls": asked.n_asked,
        }
        return self

    def _rows(self, client: Any, X: Any, y: Any, weight: Any) -> ClusterRows:
        positions = categorical_positions(meta_of(X), self._categorical_features)
        return ClusterRows(client, X, y, weight, positions, self.max_rebuilds)

    def _fit_rows(self, rows: ClusterRows, unseen: ClusterRows | None) -> None:
        """Fit, once rows are on the workers."""
        self._columns = CategoricalColumns.of_counts(rows.categories)
        rows.check(self._columns)
        self.classes_ = rows.classes
        self._mean_costs = None
        self._prepare()
        warn_of_alphabet(self.cost_matrix, rows.classes, rows.like, stacklevel=4)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._forget_rounds()
        if unseen is not None:
            self._check_unseen(unseen)
        held = None
        if unseen is None and self._holds_out:
            mask = self._held_out(rows.mixed(self._seed), rows.y, rows.weight)
            held = rows.hold_out(mask)
        n = len(rows.y)
        some = rows.some(np.arange(0, n, n // MAX_SCORED + 1))
        with Threads(self.n_jobs) as threads:
            empty = RowSketch(self._seed, self.binning, self._columns.codes())
            parted = rows.bin(empty, self.max_bins, threads)
            validation: Any = None
            if unseen is not None:
                samples = unseen.unseen(parted.mapper, held_out=False)
                validation = samples, unseen.y, unseen.weight
            elif held is not None:
                validation = rows.unseen(parted.mapper, held_out=True), *held
            nothing = np.empty((len(parted.mapper.edges), 0), np.uint8)
            kept = rows.kept if getattr(self, "cv", None) is not None else np.empty(0, bool)
            task = Task(
                BinnedSamples(BinnedData(parted.mapper, nothing)),
                parted.y,
                parted.weight,
                validation,
                threads,
                kept,
                parted=parted,
            )
            self._boost(task)
        self.__dict__.pop("oof_probabilities_", None)
        self._warn_if_constant(some)

    def _check_unseen(self, unseen: ClusterRows) -> None:
        """Check validation data, and number their classes as those of the training data."""
        unknown = np.setdiff1d(unseen.classes, self.classes_)
        if len(unknown):
            raise ValueError(f"y_val has classes that y does not have: {unknown.tolist()}.")
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        numbers = np.array([place[label] for label in unseen.classes.tolist()])
        unseen.y = numbers[unseen.y]
        unseen.check(self._columns, "sample_weight_val")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("max_rebuilds", self.max_rebuilds, Integral, low=0)
        if self.warm_start:
            raise ValueError(
                "warm_start needs all samples in this process: fit anew with more rounds, or go on "
                "with to_local() on a machine that holds the samples."
            )
        if self.binning == "exact":
            raise ValueError(
                'binning="exact" needs all values in this process: choose "quantile" or "uniform".'
            )
        if self.device != "cpu":
            raise ValueError('workers of a cluster train on their CPUs: leave device="cpu".')
        if getattr(self, "estimator", None) is not None:
            raise ValueError("estimator is not for clusters: leave it out, for the built-in tree.")

    def to_local(self) -> Any:
        """Return the ordinary estimator: the same model, without the cluster.

        Returns
        -------
        BAdaCostClassifier or CostBoostClassifier
            The estimator, fitted if this one is.
        """
        names = signature(self._local).parameters
        local = self._local(**{name: getattr(self, name) for name in names})
        own = set(self.get_params(deep=False))
        for name, value in self.__dict__.items():
            if name not in own and name != "cluster_seconds_":
                setattr(local, name, value)
        return local

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ordinary estimator to a file that `badacost.load` reads."""
        self.to_local().save(path)

    def _answer(self, method: str, X: Any, columns: list[Any] | None, dtype: Any) -> Any:
        """What the ordinary estimator says, lazily if X is a dask collection."""
        check_is_fitted(self)
        local = self.to_local()
        if not is_collection(X):
            return getattr(local, method)(X)
        check_collections("X", X)
        local.callbacks = None  # they need not be known to workers
        return predict_lazily(local, method, X, columns, dtype)

    @property
    def _labels(self) -> list[Any]:
        return self.classes_.tolist()

    def predict(self, X: Any) -> Any:
        """Return the classes that the decision rule chooses.

        Parameters
        ----------
        X : dask array or data frame, or what the ordinary estimator takes
            Samples.

        Returns
        -------
        dask array or series, or ndarray, of shape (n_samples,)
            Classes; for dask collections they are computed when they are asked for, and a series
            has the index of X.
        """
        check_is_fitted(self)
        return self._answer("predict", X, None, self.classes_.dtype)

    @available_if(lambda model: super().predict_proba)
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities, as `predict` does with classes; columns are classes."""
        check_is_fitted(self)
        return self._answer("predict_proba", X, self._labels, np.float64)

    @available_if(lambda model: super().predict_costs)
    def predict_costs(self, X: Any) -> Any:
        """Return the expected cost of each decision, as `predict` does with classes."""
        check_is_fitted(self)
        return self._answer("predict_costs", X, self._labels, np.float64)

    def cost_scores(self, X: Any) -> Any:
        """Return the cost scores, as `predict` does with classes; columns are classes."""
        check_is_fitted(self)
        return self._answer("cost_scores", X, self._labels, np.float64)

    def decision_function(self, X: Any) -> Any:
        """Return what the decision rule compares, as `predict` does with classes."""
        check_is_fitted(self)
        columns = None if len(self.classes_) == 2 else self._labels
        return self._answer("decision_function", X, columns, np.float64)

    def apply(self, X: Any) -> Any:
        """Return leaves, as `predict` does with classes; columns are trees."""
        check_is_fitted(self)
        return self._answer("apply", X, [*range(self.forest_.n_trees)], np.int32)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of rows that are in this process."""
        _check_computed("score", X, y, sample_weight)
        return super().score(X, y, sample_weight)

    @available_if(lambda model: super().decide)
    def decide(self, X: Any, costs: Any = None, **prices: Any) -> NDArray[Any]:
        """Return decisions about rows that are in this process, under any prices."""
        _check_computed("decide", X)
        return super().decide(X, costs, **prices)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Return the `predict` of every round, for rows that are in this process."""
        _check_computed("staged_predict", X)
        return super().staged_predict(X)

    @available_if(lambda model: super().staged_predict_proba)
    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Return the `predict_proba` of every round, for rows that are in this process."""
        _check_computed("staged_predict_proba", X)
        return super().staged_predict_proba(X)

    def staged_cost_scores(self, X: Any) -> Iterator[FloatArray]:
        """Return the `cost_scores` of every round, for rows that are in this process."""
        _check_computed("staged_cost_scores", X)
        return super().staged_cost_scores(X)

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Return the `decision_function` of every round, for rows that are in this process."""
        _check_computed("staged_decision_function", X)
        return super().staged_decision_function(X)

    def __sklearn_clone__(self) -> Any:
        given = self.get_params(deep=False)
        client = given.pop("client")  # there is one of it
        return type(self)(**{k: clone(v, safe=False) for k, v in given.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": None}


def _check_computed(method: str, *given: Any) -> None:
    """Raise where data are dask collections, which would be loaded into this process."""
    if any(map(is_collection, given)):
        raise TypeError(
            f"{method} takes rows that are in this process, not dask collections: compute what "
            "fits into memory, with X.compute(), or use what is lazy: predict, predict_proba, "
            "predict_costs, cost_scores, decision_function and apply."
        )


@dataclass(eq=False, repr=False, kw_only=True)
class DaskBAdaCostClassifier(DaskTraining, BAdaCostClassifier):  # type: ignore[misc]
    """`BAdaCostClassifier` on the workers of a Dask cluster: the same model, to the last byte.

    Each worker holds the bins, classes and weights of its chunks of rows; sums over all rows do not
    depend on how these are divided. A worker that is lost is replaced by another, which builds its
    part again from the dask collections and goes on. Needs ``pip install badacost[dask]``.

    Parameters
    ----------
    cost_matrix, n_estimators, learning_rate, max_depth, max_leaf_nodes, min_samples_split,
    min_samples_leaf, max_features, criterion, binning, max_bins, categorical_features, subsample,
    early_stopping, validation_fraction, n_iter_no_change, tol, callbacks, random_state, verbose,
    decision, scoring, cost_scale, n_refinements
        See `BAdaCostClassifier`. Binning "exact" is not for clusters. Callbacks are called in this
        process, without the answers of the learners.
    estimator, warm_start, device
        Not for clusters: leave them as they are.
    n_jobs : int or None, default=None
        Threads of this process, which searches the splits. Workers use the threads that they have.
    client : dask.distributed.Client or None, default=None
        The cluster; None is the active client.
    max_rebuilds : int, default=10
        Maximum number of workers that may be lost before the fit ends with an error.

    Attributes
    ----------
    cluster_seconds_ : dict
        Seconds of the fit ("fit"), of the slowest parts at work ("work"), of the rest of the time
        that was spent waiting for them ("communication"), and the number of questions ("n_calls").
    classes_, cost_matrix_, charged_costs_, forest_, estimator_weights_, n_estimators_,
    train_score_, validation_score_, stop_reason_, categories_, n_features_in_, feature_names_in_
        See `BAdaCostClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from badacost.distributed import DaskBAdaCostClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(60, -1)), da.from_array(y, chunks=60)
    >>> costs = [[0, 1, 5], [1, 0, 2], [10, 8, 0]]  # C[truth, prediction]
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = DaskBAdaCostClassifier(costs, n_estimators=20, client=client).fit(X, y)
    >>> model.predict(X)
    dask.array<_of_block, shape=(178,), dtype=int64, chunksize=(60,), chunktype=numpy.ndarray>
    >>> model.predict(X)[[0, 60, 177]].compute()
    array([0, 1, 2])
    >>> model.to_local()  # the ordinary estimator, to save or to explain
    BAdaCostClassifier(cost_matrix=[[0, 1, 5], [1, 0, 2], [10, 8, 0]],
                       n_estimators=20)
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    client: Any = None
    max_rebuilds: int = MAX_REBUILDS

    _local: ClassVar[type[StagewiseClassifier]] = BAdaCostClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class DaskCostBoostClassifier(DaskTraining, CostBoostClassifier):
    """`CostBoostClassifier` on the workers of a Dask cluster: the same model, to the last byte.

    See `DaskBAdaCostClassifier` for what happens on the cluster. The folds are those of the
    ordinary estimator, so that samples left out tell when to stop, wherever they are.

    Parameters
    ----------
    cost_matrix, n_estimators, learning_rate, n_folds, cv, tree, max_depth, max_leaf_nodes,
    min_samples_split, min_samples_leaf, min_hessian, l2, n_directions, max_features, binning,
    max_bins, categorical_features, subsample, early_stopping, validation_fraction,
    n_iter_no_change, tol, callbacks, random_state, verbose
        See `CostBoostClassifier`. Binning "exact" is not for clusters. Callbacks are called in this
        process, without the answers of the learners.
    warm_start, device
        Not for clusters: leave them as they are.
    n_jobs, client, max_rebuilds
        See `DaskBAdaCostClassifier`.

    Attributes
    ----------
    cluster_seconds_
        See `DaskBAdaCostClassifier`.
    classes_, cost_matrix_, charged_costs_, oof_cost_, log_prior_, forest_, estimator_weights_,
    n_estimators_, train_score_, validation_score_, stop_reason_, categories_, n_features_in_,
    feature_names_in_
        See `CostBoostClassifier`. There are no ``oof_probabilities_``.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from badacost.distributed import DaskCostBoostClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(60, -1)), da.from_array(y, chunks=60)
    >>> costs = [[0, 1, 5], [1, 0, 2], [10, 8, 0]]  # C[truth, prediction]
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = DaskCostBoostClassifier(costs, n_estimators=20, client=client).fit(X, y)
    >>> model.predict_proba(X)[[0, 177]].compute().argmax(axis=1)
    array([0, 2])
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    client: Any = None
    max_rebuilds: int = MAX_REBUILDS

    _local: ClassVar[type[StagewiseClassifier]] = CostBoostClassifier
