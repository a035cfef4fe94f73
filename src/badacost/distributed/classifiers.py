"""BAdaCost and CostBoost on the workers of a Dask cluster, with the models of the ordinary ones."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from badacost._utils.validation import check_number
from badacost.classifiers.badacost import BAdaCostClassifier
from badacost.classifiers.base import Given, StagewiseClassifier
from badacost.classifiers.costboost import CostBoostClassifier
from badacost.distributed.cluster import current_client, outside_of_tasks
from badacost.distributed.collections import check_collections, is_collection, predict_lazily
from badacost.distributed.shards import HEARTBEAT_TIMEOUT, MAX_REBUILDS
from badacost.distributed.training_set import ClusterRows

if TYPE_CHECKING:
    _Classifier = StagewiseClassifier
else:  # its fields would override those of the classifiers
    _Classifier = object


_LAZY = ("predict", "predict_proba", "predict_costs", "cost_scores", "decision_function", "apply")
_STAGED = [f"staged_{name}" for name in _LAZY if name not in ("predict_costs", "apply")]


def _method(name: str) -> Any:
    """A method of the ordinary estimator, where that has it.

    Those that are `_LAZY` return a dask collection for a dask collection, which others refuse.
    """

    def method(self: Any, *given: Any, **named: Any) -> Any:
        check_is_fitted(self)
        local = self.to_local()
        if not any(map(is_collection, (*given, *named.values()))):
            return getattr(local, name)(*given, **named)
        if name not in _LAZY:
            raise TypeError(
                f"{name} takes rows that are in this process: give X.compute(), if it fits into "
                f"memory, or use what is lazy: {', '.join(_LAZY)}."
            )
        local.callbacks = None  # workers do not need them
        return predict_lazily(local, name, *given, **named)

    method.__name__ = name
    lazy = "; lazy as X is" * (name in _LAZY)
    method.__doc__ = f"Return `{name}` of the ordinary estimator{lazy}."
    return available_if(lambda model: hasattr(super(DaskTraining, model), name))(method)


@dataclass(eq=False, repr=False, kw_only=True)
class DaskTraining(_Classifier):
    """Base of the classifiers on a cluster: fits on dask collections, and lazy predictions."""

    client: Any = None
    max_rebuilds: int = MAX_REBUILDS
    heartbeat_timeout: float = HEARTBEAT_TIMEOUT

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
        return self._fit((X, y, sample_weight), (X_val, y_val, sample_weight_val))

    def _fit_in_place(self, training: Given, unseen: Given, sample_cost: Any = None) -> None:
        """Describe the rows on the workers, and fit."""
        client, started = current_client(self.client), time.perf_counter()
        names = "X y sample_weight X_val y_val sample_weight_val"
        check_collections(names, *training, *unseen)
        with outside_of_tasks(), ExitStack() as stack:
            rows: Any = self._fit_rows(partial(ClusterRows, self, stack, client), training, unseen)
        #: Seconds of the fit, of shards at work and of communication, and the number of calls.
        self.cluster_seconds_ = {
            "fit": time.perf_counter() - started,
            "work": rows.shards.worked,
            "communication": rows.shards.waited - rows.shards.worked,
            "n_calls": rows.shards.n_calls,
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("max_rebuilds", self.max_rebuilds, Integral, low=0)
        check_number("heartbeat_timeout", self.heartbeat_timeout, low=0.0, open_low=True)
        if self.binning == "exact":
            raise ValueError('binning="exact" is not for clusters: set "quantile" or "uniform".')
        for name, only in {"warm_start": False, "device": "cpu", "estimator": None}.items():
            if getattr(self, name, only) != only:
                raise ValueError(
                    f"{name} is not for clusters: leave it {only!r}, or train on one machine, with "
                    "the ordinary estimator or that of to_local()."
                )

    def to_local(self) -> Any:
        """Return the ordinary estimator: the same model, without the cluster.

        Returns
        -------
        BAdaCostClassifier or CostBoostClassifier
            The estimator, fitted if this one is.
        """
        local = self._local()
        own = ("client", "max_rebuilds", "heartbeat_timeout", "cluster_seconds_")
        local.__dict__.update({k: v for k, v in vars(self).items() if k not in own})
        return local

    def __sklearn_clone__(self) -> Any:
        given = self.get_params(deep=False)
        client = given.pop("client")  # there is one of it
        return type(self)(**{k: clone(v, safe=False) for k, v in given.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": None}


for _name in (*_LAZY, *_STAGED, "score", "decide", "save"):
    setattr(DaskTraining, _name, _method(_name))


@dataclass(eq=False, repr=False, kw_only=True)
class DaskBAdaCostClassifier(DaskTraining, BAdaCostClassifier):  # type: ignore[misc]
    """`BAdaCostClassifier` on the workers of a Dask cluster: the same model, to the last byte.

    Each worker holds the bins, classes and weights of its chunks of rows: a shard. Sums over all
    rows do not depend on the division into shards. If a worker is lost, its shard is rebuilt on
    another one from the dask collections. Needs ``pip install badacost[dask]``.

    Parameters and fitted attributes are those of `BAdaCostClassifier`, but `estimator`,
    `warm_start`, ``binning="exact"`` and `device` are not for clusters. Callbacks are called in
    this process, without the predictions of the learners. `n_jobs` is the number of threads of this
    process, which searches the splits; workers use the threads that they have.

    Attributes
    ----------
    client : dask.distributed.Client or None, default=None
        The cluster; None is the active client.
    max_rebuilds : int, default=10
        Maximum number of workers that may be lost before the fit ends with an error.
    heartbeat_timeout : float, default=60.0
        Seconds without a heartbeat after which a worker that the fit waits for is restarted and
        its shard rebuilt. Workers send heartbeats while they compute, however long that takes.

    Notes
    -----
    A fit sets ``cluster_seconds_``, a dictionary: seconds of the fit ("fit"), of the slowest shards
    at work ("work") and of the rest of the time spent waiting for them ("communication"), and the
    number of calls ("n_calls").

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
    dask.array<_predict_block, shape=(178,), dtype=int64, chunksize=(60,), chunktype=numpy.ndarray>
    >>> model.predict(X)[[0, 60, 177]].compute()
    array([0, 1, 2])
    >>> model.to_local()  # the ordinary estimator, to save or to explain
    BAdaCostClassifier(cost_matrix=[[0, 1, 5], [1, 0, 2], [10, 8, 0]],
                       n_estimators=20)
    """

    _local: ClassVar[type[StagewiseClassifier]] = BAdaCostClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class DaskCostBoostClassifier(DaskTraining, CostBoostClassifier):
    """`CostBoostClassifier` on the workers of a Dask cluster: the same model, to the last byte.

    Parameters and fitted attributes are those of `CostBoostClassifier`, without
    ``oof_probabilities_``; see `DaskBAdaCostClassifier` for those that are not for clusters, and
    for what happens there. Folds are those of the ordinary estimator, wherever their samples are.

    Attributes
    ----------
    client, max_rebuilds, heartbeat_timeout
        See `DaskBAdaCostClassifier`.

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

    _local: ClassVar[type[StagewiseClassifier]] = CostBoostClassifier
