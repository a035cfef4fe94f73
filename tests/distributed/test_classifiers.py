"""Models from a cluster: the same, to the last byte, as from this process."""

from __future__ import annotations

import pickle
import re
import signal
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import badacost
from badacost import BAdaCostClassifier, CostBoostClassifier
from badacost.distributed import (
    DaskBAdaCostClassifier,
    DaskCostBoostClassifier,
    LostWorkersError,
)
from tests.distributed.killing import kill_in

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

COSTS = [[0, 1, 5], [2, 0, 1], [10, 3, 0]]
N = 420
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5)).astype(np.float32)
X[RNG.random(X.shape) < 0.05] = np.nan
X[:, 4] = RNG.integers(0, 4, N)
Y = np.digitize(np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2]) + (X[:, 4] == 2), [-0.6, 0.8])
WEIGHT = RNG.integers(0, 4, N) / 2.0  # a quarter of them zero
FRAME = pd.DataFrame(X, columns=list("abcde"))
Y_WITH_NA = pd.Series(Y, dtype="Int64").where(Y != 1)
FRAME["e"] = FRAME["e"].map({0: "n", 1: "s", 2: "w", 3: "o"}).astype("category")

BADACOST = {"n_estimators": 3, "max_depth": 3, "learning_rate": 0.5, "random_state": 3}
COSTBOOST = {"n_estimators": 3, "max_depth": 3, "n_folds": 2, "random_state": 3}
KINDS = {
    "BAdaCost": (DaskBAdaCostClassifier, BAdaCostClassifier, BADACOST),
    "CostBoost": (DaskCostBoostClassifier, CostBoostClassifier, COSTBOOST),
}
both = pytest.mark.parametrize("kind", KINDS)


def frame_of(*parts: Any, meta: Any = FRAME) -> Any:
    """A dask data frame whose partitions are not checked against its description."""
    made = [dask.delayed(lambda part=part: part)() for part in parts]
    return dd.from_delayed(made, meta=meta[:0], verify_meta=False)


def pair(kind: str, client: Any, **parameters: Any) -> tuple[Any, Any]:
    """The estimator on a cluster and the ordinary one."""
    on_cluster, local, defaults = KINDS[kind]
    parameters = {**defaults, **parameters}
    return on_cluster(COSTS, client=client, **parameters), local(COSTS, **parameters)


def array(values: Any, n_chunks: int) -> Any:
    """Cut into chunks of rows, and into chunks of columns as well."""
    sizes = np.diff(np.linspace(0, len(values), n_chunks + 1).astype(int))
    return da.from_array(values, chunks=(tuple(sizes), *values.shape[1:]))


def saved(model: Any, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def assert_same(model: Any, local: Any, folder: Path) -> None:
    """Equal files, and equal attributes that are no part of them."""
    assert saved(model.to_local(), folder) == saved(local, folder)
    assert saved(model, folder) == saved(local, folder)
    for name in ("train_score_", "validation_score_", "stop_reason_", "oof_cost_"):
        np.testing.assert_array_equal(getattr(model, name, None), getattr(local, name, None))


@both
@pytest.mark.parametrize(("n_workers", "n_chunks"), [(1, 3), (2, 1), (2, 7), (3, 3)])
def test_workers_and_chunks(cluster_of, tmp_path, kind, n_workers, n_chunks) -> None:
    model, local = pair(kind, cluster_of(n_workers))
    local.fit(X, Y)
    assert_same(model.fit(array(X, n_chunks), array(Y, n_chunks)), local, tmp_path)
    assert model.cluster_seconds_["n_calls"] > 10


@both
@pytest.mark.parametrize(
    "parameters",
    [
        {"subsample": 0.6, "max_features": 2},
        {"binning": "uniform", "max_bins": 16, "max_depth": None, "max_leaf_nodes": 6},
        {"min_samples_leaf": 20, "min_samples_split": 50, "early_stopping": True},
        {"early_stopping": True, "n_estimators": 6, "n_iter_no_change": 2},
    ],
)
def test_parameters(cluster_of, tmp_path, kind, parameters) -> None:
    if kind == "CostBoost" and "max_leaf_nodes" in parameters:
        parameters = {**parameters, "tree": "best", "n_directions": 1}
    model, local = pair(kind, cluster_of(2), **parameters)
    local.fit(X, Y, WEIGHT)
    model.fit(array(X, 3), array(Y, 4), array(WEIGHT, 5))
    assert_same(model, local, tmp_path)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_folds": 1, "early_stopping": True, "n_iter_no_change": 2, "n_estimators": 6},
        {"n_folds": 1, "early_stopping": False},
        {"cv": 3},
    ],
)
def test_folds(cluster_of, tmp_path, parameters) -> None:
    model, local = pair("CostBoost", cluster_of(2), **parameters)
    local.fit(X, Y, WEIGHT)
    model.fit(array(X, 3), array(Y, 3), array(WEIGHT, 3))
    assert_same(model, local, tmp_path)
    assert not hasattr(model, "oof_probabilities_")


def test_constant_features_do_not_change_what_is_held_out(cluster_of, tmp_path) -> None:
    """Each of two shards sees one value of the first column; the last is constant in both."""
    n = len(X)
    wider = np.column_stack([np.arange(n) >= n // 2, X, np.ones(n)]).astype(float)
    model, local = pair("CostBoost", cluster_of(2), n_folds=1, early_stopping=True)
    model.fit(array(wider, 2), array(Y, 2))
    assert_same(model, local.fit(wider, Y), tmp_path)


@both
def test_validation_data(cluster_of, tmp_path, kind) -> None:
    """All of them count, whichever worker they are on."""
    model, local = pair(
        kind, cluster_of(2), early_stopping=True, n_estimators=6, n_iter_no_change=2
    )
    train, unseen = slice(0, 300), slice(300, None)
    given = [(values[train], values[unseen]) for values in (X, Y, WEIGHT)]
    local.fit(*(part[0] for part in given), *(part[1] for part in given))
    model.fit(*(array(part[0], 3) for part in given), *(array(part[1], 4) for part in given))
    assert_same(model, local, tmp_path)
    assert len(model.validation_score_) == model.n_estimators_


@pytest.mark.parametrize(
    "columns", [["a", "b"], ["d", "c", "b", "a"], ["a", "b", "c", "f"], ["a", "b", "c", "d", "f"]]
)
def test_validation_data_with_other_columns(cluster_of, columns) -> None:
    """The error is that of the ordinary estimator."""
    model, local = pair("BAdaCost", cluster_of(1), early_stopping=True)
    seen, unseen = FRAME[["a", "b", "c", "d"]], FRAME.assign(f=0.0)[columns]
    with pytest.raises(ValueError, match="feature") as expected:
        local.fit(seen, Y, X_val=unseen, y_val=Y)
    frames, others = (dd.from_pandas(data, npartitions=2) for data in (seen, unseen))
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        model.fit(frames, array(Y, 2), X_val=others, y_val=array(Y, 2))


@pytest.mark.parametrize("n_columns", [4, 6])
def test_validation_data_with_fewer_or_more_columns(cluster_of, n_columns) -> None:
    model, _ = pair("BAdaCost", cluster_of(1), early_stopping=True)
    unseen = array(np.c_[X, X][:, :n_columns], 2)
    with pytest.raises(ValueError, match=f"X has {n_columns} features, but .* is expecting 5"):
        model.fit(array(X, 2), array(Y, 2), X_val=unseen, y_val=array(Y, 2))


@pytest.mark.parametrize("as_array", [False, True])
def test_classes_in_the_order_of_their_categories(cluster_of, tmp_path, as_array) -> None:
    """However the rows are divided."""
    model, local = pair("BAdaCost", cluster_of(2))
    order = ["low", "mid", "high"]
    labels = pd.Series(pd.Categorical(np.array(order)[Y], categories=order, ordered=True))
    frames = dd.from_pandas(FRAME, npartitions=2)
    model.fit(array(X, 3) if as_array else frames, dd.from_pandas(labels, npartitions=3))
    assert list(model.classes_) == order
    assert_same(model, local.fit(X if as_array else FRAME, labels), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part[[*"acbde"]], "'c' at position 1, where X has 'b'"),
        (lambda part: part.rename(columns={"d": "z"}), "'z' at position 3, where X has 'd'"),
        (lambda part: part.drop(columns="c"), "'d' at position 2, where X has 'c'"),
        (lambda part: part.drop(columns="e"), "'no column' at position 4, where X has 'e'"),
        (lambda part: part.assign(f=0.0), "'f' at position 5, where X has 'no column'"),
    ],
)
def test_partitions_with_other_columns(cluster_of, change, message) -> None:
    model, _ = pair("BAdaCost", cluster_of(1))
    labels = dd.from_pandas(pd.Series(Y), npartitions=2)
    frames = frame_of(FRAME[:210], change(FRAME[210:]))
    with pytest.raises(ValueError, match=message + ".* same columns, in the same order"):
        model.fit(frames, labels)
    good = dd.from_pandas(FRAME, npartitions=2)
    with pytest.raises(ValueError, match=message):
        model.fit(good, labels, X_val=frames, y_val=labels)


def test_chunks_with_fewer_columns(cluster_of) -> None:
    model, _ = pair("BAdaCost", cluster_of(1))
    samples = array(X, 2).map_blocks(lambda block: block[:, :3], chunks=array(X, 2).chunks)
    with pytest.raises(ValueError, match="at position 3, where X has 3: give all partitions"):
        model.fit(samples, array(Y, 2))


@both
def test_a_class_and_all_weighted_rows_missing_from_a_worker(cluster_of, tmp_path, kind) -> None:
    client = cluster_of(3)
    order = np.argsort(Y, kind="stable")
    sorted_X, sorted_Y = X[order], Y[order]
    model, local = pair(kind, client)
    assert_same(
        model.fit(array(sorted_X, 3), array(sorted_Y, 3)), local.fit(sorted_X, sorted_Y), tmp_path
    )
    weight = np.r_[np.zeros(140), np.ones(N - 140)]
    model.fit(array(X, 3), array(Y, 3), array(weight, 3))
    assert_same(model, local.fit(X, Y, weight), tmp_path)
    empty = da.concatenate([array(X[:0], 1), array(X, 1), array(X[:0], 1)])
    model.fit(empty, da.concatenate([array(Y[:0], 1), array(Y, 1), array(Y[:0], 1)]))
    assert_same(model, local.fit(X, Y), tmp_path)


@both
def test_data_frames_with_categories(cluster_of, tmp_path, kind) -> None:
    client = cluster_of(2)
    labels = pd.Series(np.array(["low", "mid", "high"])[Y], name="y")
    ordered = labels.astype(pd.CategoricalDtype(["low", "mid", "high"], ordered=True))
    model, local = pair(kind, client)
    local.fit(FRAME, ordered)
    frames = dd.from_pandas(FRAME, npartitions=3)
    model.fit(frames, dd.from_pandas(ordered, npartitions=3))
    assert_same(model, local, tmp_path)
    assert list(model.classes_) == ["low", "mid", "high"]
    assert list(model.categories_["e"]) == ["n", "o", "s", "w"]
    unknown = frames.assign(e=frames["e"].astype(str).astype("category"))  # categories not known
    weight = dd.from_pandas(pd.Series(WEIGHT), npartitions=3)
    local.fit(FRAME, ordered, WEIGHT)
    model.fit(unknown, dd.from_pandas(ordered, npartitions=3), weight)
    assert_same(model, local, tmp_path)
    predicted = model.predict(frames)
    assert isinstance(predicted, dd.Series)
    computed = client.compute(predicted).result()
    assert list(computed.index) == list(FRAME.index)
    np.testing.assert_array_equal(computed, local.predict(FRAME))
    costs = client.compute(model.predict_costs(frames)).result()
    assert list(costs.columns) == ["low", "mid", "high"]
    np.testing.assert_array_equal(costs, local.predict_costs(FRAME))


def test_edges_from_a_sample(cluster_of, tmp_path) -> None:
    """Of more than 200 000 rows some are drawn, by their numbers in the whole."""
    rng = np.random.default_rng(1)
    many = rng.normal(size=(210_000, 2)).astype(np.float32)
    y = (many[:, 0] + rng.normal(size=len(many)) > 1.0).astype(np.int8)
    weight = rng.integers(0, 3, len(many)) / 2.0  # a third of them zero
    given = {"n_estimators": 2, "max_depth": 3, "random_state": 5}
    model = DaskBAdaCostClassifier([[0, 1], [3, 0]], client=cluster_of(2), **given)
    local = BAdaCostClassifier([[0, 1], [3, 0]], **given)
    assert_same(model.fit(array(many, 5), array(y, 5)), local.fit(many, y), tmp_path)
    model.fit(array(many, 3), array(y, 3), array(weight, 3))
    assert_same(model, local.fit(many, y, weight), tmp_path)


@both
def test_rows_that_are_persisted(cluster_of, tmp_path, kind) -> None:
    client = cluster_of(3)
    model, local = pair(kind, client)
    samples, labels = client.persist([array(X, 7), array(Y, 7)])
    assert_same(model.fit(samples, labels), local.fit(X, Y), tmp_path)


@both
def test_workers_in_this_process(tmp_path, kind) -> None:
    """They share memory with it, and must not change what they are given."""
    from distributed import Client

    with Client(
        processes=False, n_workers=2, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        model, local = pair(kind, client, subsample=0.8)
        model.fit(array(X, 3), array(Y, 3), array(WEIGHT, 3))
        assert_same(model, local.fit(X, Y, WEIGHT), tmp_path)
        weight = np.r_[np.zeros(N // 2), np.ones(N - N // 2)]  # one of them has no rows
        model.fit(array(X, 2), array(Y, 2), array(weight, 2))
        assert_same(model, local.fit(X, Y, weight), tmp_path)


METHODS = ["predict", "predict_proba", "predict_costs", "cost_scores", "decision_function"]


@both
def test_predictions_are_lazy(cluster_of, kind) -> None:
    """And need no cluster."""
    model, local = pair(kind, cluster_of(1))
    model.fit(array(X, 2), array(Y, 2))
    local.fit(X, Y)
    samples = da.concatenate([da.from_array(X, chunks=(100, 2)), da.from_array(X[:0])])
    for name in METHODS:
        lazy = getattr(model, name)(samples)
        assert isinstance(lazy, da.Array)
        expected = getattr(local, name)(X)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)
        np.testing.assert_array_equal(getattr(model, name)(X), expected)
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    np.testing.assert_array_equal(again.predict(X), local.predict(X))


@both
def test_leaves_are_lazy(cluster_of, kind) -> None:
    model, local = pair(kind, cluster_of(1))
    model.fit(array(X, 2), array(Y, 2))
    leaves, expected = model.apply(array(X, 3)), local.fit(X, Y).apply(X)
    assert (leaves.shape, leaves.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(leaves.compute(scheduler="synchronous"), expected)


@both
def test_methods_that_would_load_all_rows(cluster_of, kind) -> None:
    model, local = pair(kind, cluster_of(1))
    samples, labels = array(X, 2), array(Y, 2)
    model.fit(samples, labels)
    local.fit(X, Y)
    for given in ((samples, labels), (X, labels)):
        with pytest.raises(TypeError, match=r"score takes rows that are in this process.*predict"):
            model.score(*given)
    assert model.score(X, Y, WEIGHT) == local.score(X, Y, WEIGHT)
    with pytest.raises(TypeError, match="decide takes rows that are in this process"):
        model.decide(samples, abstain=0.5)
    np.testing.assert_array_equal(model.decide(X, abstain=0.5), local.decide(X, abstain=0.5))
    for name in METHODS:
        staged = f"staged_{name}"
        if not hasattr(local, staged):
            continue
        with pytest.raises(TypeError, match=f"{staged} takes rows that are in this process"):
            getattr(model, staged)(samples)
        np.testing.assert_array_equal([*getattr(model, staged)(X)], [*getattr(local, staged)(X)])


def test_methods_that_need_probabilities(cluster_of) -> None:
    """They are missing, as those of the ordinary estimator, where costs do not link classes."""
    costs = [[0, 1, 0], [2, 0, 0], [1, 3, 0]]
    model = DaskBAdaCostClassifier(costs, client=cluster_of(1), **BADACOST)
    names = ["predict_proba", "predict_costs", "decide", "staged_predict_proba"]
    assert all(hasattr(model, name) for name in names)
    model.fit(array(X, 2), array(Y, 2))
    assert not any(hasattr(model, name) for name in names)


def test_sparse_rows_to_predict(cluster_of) -> None:
    model, local = pair("BAdaCost", cluster_of(1))
    numbers = np.nan_to_num(X)
    model.fit(array(numbers, 2), array(Y, 2))
    lazy = model.predict(array(numbers, 3).map_blocks(csr_array))
    expected = local.fit(numbers, Y).predict(numbers)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)


def test_two_classes(cluster_of, tmp_path) -> None:
    client = cluster_of(2)
    model = DaskCostBoostClassifier([[0, 1], [7, 0]], client=client, **COSTBOOST)
    local = CostBoostClassifier([[0, 1], [7, 0]], **COSTBOOST).fit(X, Y > 1)
    assert_same(model.fit(array(X, 3), array(Y > 1, 3)), local, tmp_path)
    values = model.decision_function(array(X, 3)).compute(scheduler="synchronous")
    np.testing.assert_array_equal(values, local.decision_function(X))


@pytest.mark.parametrize(
    ("kind", "method", "number", "before"),
    [
        ("BAdaCost", "describe", 1, False),  # as soon as the rows are there
        ("BAdaCost", "sketch", 1, False),  # while bins are chosen
        ("BAdaCost", "bin", 1, False),
        ("BAdaCost", "level", 5, False),  # in the middle of a level
        ("CostBoost", "level", 5, False),
        ("CostBoost", "level", 2, True),  # between levels
        ("BAdaCost", "advance", 2, False),  # between rounds
        ("BAdaCost", "advance", 2, True),
        ("CostBoost", "advance", 2, True),
    ],
)
def test_a_killed_worker(cluster_of, tmp_path, monkeypatch, kind, method, number, before) -> None:
    client = cluster_of(2)
    model, local = pair(kind, client, subsample=0.8)
    killed = kill_in(monkeypatch, client, method, number, before=before)
    model.fit(array(X, 5), array(Y, 5), array(WEIGHT, 5))
    assert killed
    assert_same(model, local.fit(X, Y, WEIGHT), tmp_path)


@pytest.mark.parametrize("max_rebuilds", [10, 0])
def test_a_frozen_worker(cluster_of, tmp_path, monkeypatch, max_rebuilds) -> None:
    """It has no heartbeat: its shard is rebuilt, or the fit ends with an error."""
    client = cluster_of(2)
    model, local = pair("CostBoost", client)
    model.set_params(heartbeat_timeout=2.0, max_rebuilds=max_rebuilds)
    killed = kill_in(monkeypatch, client, "level", 3, before=True, how=signal.SIGSTOP)
    if not max_rebuilds:
        with pytest.raises(LostWorkersError, match=r"no heartbeat.*max_rebuilds=0"):
            model.fit(array(X, 5), array(Y, 5))
    else:
        model.fit(array(X, 5), array(Y, 5))
        assert_same(model, local.fit(X, Y), tmp_path)
    assert killed


def test_a_client_that_is_closed(cluster_of) -> None:
    from distributed import Client

    client = Client(cluster_of(1).scheduler.address, set_as_default=False)
    client.close()
    model, _ = pair("BAdaCost", client)
    with pytest.raises(LostWorkersError, match=r"\(the client is closed\).*make a new client"):
        model.fit(array(X, 2), array(Y, 2))


def test_a_closed_client_of_persisted_data(cluster_of) -> None:
    from distributed import Client

    client = Client(cluster_of(1).scheduler.address, set_as_default=False)
    samples, labels = client.persist([array(X, 2), array(Y, 2)])
    client.close()
    model, _ = pair("BAdaCost", client)
    with pytest.raises(LostWorkersError, match="client is closed"):
        model.fit(samples, labels)


def test_a_client_that_is_closed_during_the_fit(cluster_of) -> None:
    from distributed import Client

    client = Client(cluster_of(1).scheduler.address, set_as_default=False)
    model, _ = pair("BAdaCost", client, callbacks=[lambda _: client.close()])
    with pytest.raises(LostWorkersError, match="client is closed"):
        model.fit(array(X, 2), array(Y, 2))


def test_a_cluster_that_is_closed() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        model, _ = pair("BAdaCost", client, callbacks=[lambda _: cluster.close()])
        with pytest.raises(LostWorkersError, match="make a new client, and fit again"):
            model.fit(array(X, 2), array(Y, 2))


def test_killed_too_often(cluster_of, monkeypatch) -> None:
    client = cluster_of(2)
    model, _ = pair("BAdaCost", client, max_depth=2)
    model.set_params(max_rebuilds=0)
    kill_in(monkeypatch, client, "level", 3, before=True)
    with pytest.raises(LostWorkersError, match=r"more often than max_rebuilds=0"):
        model.fit(array(X, 5), array(Y, 5))
    assert not hasattr(model, "n_estimators_")


def test_scattered_data(cluster_of, monkeypatch) -> None:
    client = cluster_of(1)  # the only one that has them
    values = client.scatter([X[:200], X[200:]])
    samples = da.concatenate(
        [
            da.from_delayed(dask.delayed(value), (n, 5), np.float32)
            for value, n in zip(values, (200, N - 200), strict=True)
        ]
    )
    model, _ = pair("BAdaCost", client)
    with pytest.warns(UserWarning, match="cannot be rebuilt if a worker is lost"):
        model.fit(samples, array(Y, 2))
    kill_in(monkeypatch, client, "level", 3, before=True)
    with (
        pytest.warns(UserWarning, match="cannot be rebuilt if a worker is lost"),
        pytest.raises(LostWorkersError, match=r"scattered.*Give dask collections"),
    ):
        model.fit(samples, array(Y, 2))


def test_two_fits_at_once(cluster_of, tmp_path) -> None:
    client = cluster_of(2)
    pairs = [pair(kind, client) for kind in KINDS]
    failures = []

    def fit(model: Any) -> None:
        try:
            model.fit(array(X, 3), array(Y, 3))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=fit, args=(model,)) for model, _ in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for model, local in pairs:
        assert_same(model, local.fit(X, Y), tmp_path)


def test_a_fit_in_a_task(cluster_of, tmp_path) -> None:
    """The only thread of a worker must not be waited for by itself."""

    def fit() -> Any:
        return DaskBAdaCostClassifier(COSTS, **BADACOST).fit(array(X, 2), array(Y, 2)).to_local()

    local = BAdaCostClassifier(COSTS, **BADACOST).fit(X, Y)
    assert saved(cluster_of(1).submit(fit, pure=False).result(timeout=60), tmp_path) == saved(
        local, tmp_path
    )


@both
def test_defaults_are_those_of_the_ordinary_estimator(kind) -> None:
    on_cluster, local, _ = KINDS[kind]
    defaults = {item.name: item.default for item in fields(on_cluster)}
    expected = {item.name: item.default for item in fields(local)}
    assert {**expected, "client": None, "max_rebuilds": 10, "heartbeat_timeout": 60.0} == defaults


@both
def test_clones_share_the_client(cluster_of, kind) -> None:
    model, _ = pair(kind, cluster_of(1), max_bins=17)
    again = clone(model)
    assert again.client is model.client
    assert again.get_params() == model.get_params()
    assert again.cost_matrix is not model.cost_matrix


@both
def test_files_are_those_of_the_ordinary_estimator(cluster_of, tmp_path, kind) -> None:
    model, local = pair(kind, cluster_of(1))
    model.fit(array(X, 1), array(Y, 1)).save(tmp_path / "model")
    assert type(badacost.load(tmp_path / "model")) is type(local)


MISTAKES = [
    ({}, (X, array(Y, 1)), TypeError, "X must be a dask array"),
    ({}, (array(X, 2), array(Y[:9], 1)), ValueError, "X has 420 rows, but y has 9 classes"),
    (
        {"warm_start": True},
        (array(X, 1), array(Y, 1)),
        ValueError,
        "warm_start is not for clusters.*False.*to_local",
    ),
    ({"binning": "exact"}, (array(X, 1), array(Y, 1)), ValueError, '"quantile" or "uniform"'),
    (
        {"device": "cuda"},
        (array(X, 1), array(Y, 1)),
        ValueError,
        "device is not for clusters: leave it 'cpu'",
    ),
    ({"max_rebuilds": -1}, (array(X, 1), array(Y, 1)), ValueError, "max_rebuilds must be"),
    ({"heartbeat_timeout": 0}, (array(X, 1), array(Y, 1)), ValueError, "heartbeat_timeout must be"),
    ({}, (array(X, 2), array(np.zeros(N), 2)), ValueError, "at least 2 classes"),
    ({}, (array(X, 2), array(np.full(N, np.nan), 2)), ValueError, "y contains NaN"),
    ({}, (array(X, 2), array(RNG.normal(size=N), 2)), ValueError, "Unknown label type"),
    (
        {},
        (array(np.full_like(X, np.inf), 2), array(Y, 2)),
        ValueError,
        "X contains infinity: replace",
    ),
    ({}, (array(X, 2), array(Y, 2), array(-WEIGHT, 2)), ValueError, "sample_weight must not be"),
    ({}, (array(X, 2), array(Y, 2), array(0 * WEIGHT, 2)), ValueError, "zero for every sample"),
    ({}, (array(X, 2), array(Y, 2), None, array(X, 2)), ValueError, "X_val and y_val belong"),
    (
        {},
        (array(X, 2), array(Y % 2, 2), None, array(X, 2), array(Y, 2)),
        ValueError,
        r"y_val has labels that are not among the classes \(2\)",
    ),
    ({}, (array(X[:0], 1), array(Y[:0], 1)), ValueError, "X has no rows"),
    ({}, (array(X, 2), array(np.r_[[None], Y[1:]], 2)), ValueError, "y contains None"),
    (
        {},
        (array(X, 2), array(np.r_[["a"], Y[1:].astype(object)], 2)),
        ValueError,
        "has labels such as",
    ),
    (
        {},
        (dd.from_pandas(FRAME, npartitions=2), dd.from_pandas(Y_WITH_NA, npartitions=2)),
        ValueError,
        "y contains .*: leave out",
    ),
    (
        {},
        (array(X, 2), array(Y, 2), array(np.array(["heavy"] * N), 2)),
        ValueError,
        "sample_weight must have a finite number",
    ),
    (
        {},
        (array(np.nan_to_num(X), 2).map_blocks(csr_array), array(Y, 2)),
        TypeError,
        "Sparse data was passed for X, but dense data is required.*toarray",
    ),
]


@pytest.mark.parametrize(("parameters", "data", "error", "message"), MISTAKES)
def test_mistakes(cluster_of, parameters, data, error, message) -> None:
    client = cluster_of(1)
    model = DaskBAdaCostClassifier(client=client, **{**BADACOST, **parameters})
    with pytest.raises(error, match=message):
        model.fit(*data)
