"""The pool of CostBoost: the linear member, its trees, and the weights of members."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import badacost
from badacost import CostBoostClassifier
from badacost._utils.parallel import Threads
from badacost.backends.shards import ShardedData
from badacost.boosting import pool
from badacost.boosting.folds import Fold, random_folds
from badacost.boosting.pool import PoolRows, fit_linear, logarithms, pool_weights, pooled
from badacost.export import to_onnx
from badacost.io.model_file import ModelFileError, read_model, write_model
from badacost.metrics import average_cost
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Forest

COSTS = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [10.0, 3.0, 0.0]])  # C[truth, prediction]


def linear_task(n: int, seed: int = 0, n_features: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Classes that depend linearly on normal values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    scores = X @ np.random.default_rng(7).normal(size=(n_features, 3))
    return X, (scores + rng.gumbel(size=(n, 3))).argmax(axis=1)


def sharded(X, y, weight=None, categories=None, max_bins=32) -> ShardedData:
    mapper = BinMapper.fit(X, max_bins=max_bins, categories=categories)
    data = BinnedData(mapper, mapper.transform(X))
    weight = np.ones(len(y)) if weight is None else weight
    return ShardedData.local(data, y, weight, Threads())


def pool_rows(data: ShardedData, n_folds: int = 4) -> PoolRows:
    folds = random_folds(data.mixed(0), data.y, data.weight, n_folds)
    return PoolRows.of(data, folds, 0, len(data.y))


def test_the_linear_member_is_a_logistic_regression() -> None:
    X, y = linear_task(1500)
    data = sharded(X, y)
    rows = pool_rows(data)
    member = fit_linear(rows, 3)
    values = np.column_stack(
        [column.values[rows.data.bins[column.feature], 0] for column in member.columns]
    )
    losses = {}
    for strength in (100.0, 10.0, 1.0, 0.1):
        found = np.empty((len(rows.y), 3))
        for k, weight in enumerate(rows.train):
            used, held = weight > 0.0, rows.owner == k
            model = LogisticRegression(C=1.0 / strength, tol=1e-8).fit(values[used], rows.y[used])
            found[held] = model.predict_log_proba(values[held])
        losses[strength] = found
    best = min(losses.values(), key=lambda found: -found[np.arange(len(y)), rows.y].mean())
    found = np.exp(member.log_odds(rows.data, rows.owner))
    np.testing.assert_allclose(found, np.exp(best), atol=0.005)


def test_trees_add_what_bins_add() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 4, (300, 2))]).astype(float)
    X[rng.random(300) < 0.2, 1] = np.nan
    X[rng.random(300) < 0.2, 3] = np.nan
    y = rng.integers(0, 3, 300)
    known = {2: np.arange(4.0), 3: np.arange(4.0)}
    data = sharded(X, y, categories=known)
    member = fit_linear(pool_rows(data), 3)
    trees, table = member.trees(data.mapper)
    forest = Forest.from_trees(trees, np.ones(len(trees)), table, 4, data.mapper)
    bins = data.mapper.transform(X)
    expected = np.zeros((300, 3))
    for column, own in zip(member.columns, member.tables, strict=True):
        expected -= own[bins[column.feature]]
    found = forest.accumulate(X, np.zeros((300, 3)))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(expected).max() > 0.01
    # Missing values where none were, and unknown categories, get the score of a usual bin.
    usual = np.argmax(member.columns[2].counts)
    odd = np.array([[np.nan, 0.0, 9.0, 1.0]])
    tame = np.array([[np.median(X[:, 0]), 0.0, float(usual), 1.0]])
    unusual, ordinary = (forest.accumulate(row, np.zeros((1, 3))) for row in (odd, tame))
    np.testing.assert_allclose(unusual, ordinary, atol=0.1)


def test_weights_minimise_the_loss_of_other_folds() -> None:
    rng = np.random.default_rng(0)
    X, y = linear_task(400)
    rows = pool_rows(sharded(X, y, rng.uniform(0.5, 2.0, 400)))
    members = [log_softmax(rng.normal(size=(400, 3)) + 2.0 * np.eye(3)[rows.y], 1) for _ in "ab"]
    best, by_fold = pool_weights(members, rows)

    def loss(w: np.ndarray, used: np.ndarray) -> float:
        log_p = log_softmax(w[0] * members[0] + w[1] * members[1], axis=1)
        total = rows.weight[used].sum()
        own = -(rows.weight * log_p[np.arange(400), rows.y])[used].sum() / total
        return float(own + 0.5 / total * ((w - [1.0, 0.0]) ** 2).sum())

    for found, used in [(best, rows.owner >= 0), (by_fold[1], rows.owner != 1)]:
        expected = minimize(loss, [0.5, 0.5], args=(used,), tol=1e-10).x
        np.testing.assert_allclose(found, expected, atol=2e-3)
    assert (best != by_fold[1]).any()
    np.testing.assert_allclose(pooled(members, np.ones((400, 2))).sum(axis=1), 1.0)


def test_a_member_of_noise_gets_no_weight() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 2))
    rows = pool_rows(sharded(X, y))
    good = log_softmax(rng.normal(size=(len(rows.y), 3)) + 2.0 * np.eye(3)[rows.y], axis=1)
    noise = log_softmax(rng.normal(size=(len(rows.y), 3)), axis=1)
    (first, second), _ = pool_weights([good, noise], rows)
    assert second == 0.0
    assert first > 0.5
    (first, second), _ = pool_weights([noise, good], rows)  # the first one is always kept
    assert first > 0.0
    assert second > 0.5


def test_probabilities_of_the_model_are_those_of_its_members() -> None:
    X, y = linear_task(500)
    common = {"random_state": 0, "n_estimators": 30, "early_stopping": False}
    model = CostBoostClassifier(COSTS, **common).fit(X, y)
    trees = CostBoostClassifier(COSTS, members="trees", **common).fit(X, y)
    first, second = model.member_weights_
    assert second > 0.2
    n_linear = model.forest_.n_trees - trees.forest_.n_trees
    assert n_linear == 6
    linear = -model.forest_.accumulate(X, np.zeros((500, 3)), last_tree=n_linear)
    rest = logarithms(model.predict_proba(X)) - linear - first * logarithms(trees.predict_proba(X))
    rest -= rest.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(rest, np.broadcast_to(rest[0], rest.shape), atol=1e-9)
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_array_equal(last, model.predict_proba(X))
    assert len(list(model.staged_predict(X))) == 30


def test_linear_effects_cost_less() -> None:
    X, y = linear_task(800)
    X_test, y_test = linear_task(4000, seed=1)
    costs, losses = {}, {}
    for members in ("trees", "pool"):
        model = CostBoostClassifier(COSTS, members=members, random_state=0).fit(X, y)
        costs[members] = average_cost(y_test, model.predict(X_test), COSTS)
        losses[members] = log_loss(y_test, model.predict_proba(X_test))
    assert costs["pool"] < costs["trees"]
    assert losses["pool"] < 0.95 * losses["trees"]
    assert abs(model.oof_cost_ - costs["pool"]) < 3.0 * model.oof_cost_std_error_
    decisions = np.argmin(model.oof_probabilities_ @ COSTS, axis=1)
    assert model.oof_cost_ == pytest.approx(COSTS[y, decisions].mean())


def test_the_estimate_is_not_optimistic_on_noise() -> None:
    gaps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(150, 8)), rng.integers(0, 3, 150)
        model = CostBoostClassifier(COSTS, random_state=seed, n_estimators=40).fit(X, y)
        X_test, y_test = rng.normal(size=(3000, 8)), rng.integers(0, 3, 3000)
        gaps.append(model.oof_cost_ - average_cost(y_test, model.predict(X_test), COSTS))
    assert np.mean(gaps) > -2.5 * np.std(gaps) / np.sqrt(len(gaps))


def test_weights_and_copies_and_order() -> None:
    X, y = linear_task(200)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(200), weight))
    fold = np.arange(200) % 3

    def folds(number: np.ndarray) -> list[Fold]:
        return [Fold(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(3)]

    mapper = BinMapper.fit(X, max_bins=16)
    data = BinnedData(mapper, mapper.transform(X))
    once = ShardedData.local(data, y, weight.astype(float), Threads())
    copied = BinnedData(mapper, data.bins[:, copies])
    more = ShardedData.local(copied, y[copies], np.ones(len(copies)), Threads())
    one = PoolRows.of(once, folds(fold), 0, 200)
    other = PoolRows.of(more, folds(fold[copies]), 0, len(copies))
    scale = other.weight.sum() / one.weight.sum()
    np.testing.assert_allclose(other.weight, scale * one.weight)
    np.testing.assert_array_equal(one.data.bins, other.data.bins)
    np.testing.assert_array_equal(one.owner, other.owner)
    np.testing.assert_array_equal(one.y, other.y)


def test_rows_that_are_drawn(monkeypatch) -> None:
    """Large data: the linear member learns from some of them, all have probabilities."""
    X, y = linear_task(600)
    X_test, y_test = linear_task(3000, seed=1)
    monkeypatch.setattr(pool, "MAX_ROWS", 300)
    model = CostBoostClassifier(COSTS, random_state=0, n_estimators=30).fit(X, y)
    assert np.isfinite(model.oof_probabilities_).all()
    assert model.member_weights_[1] > 0.1
    cost = average_cost(y_test, model.predict(X_test), COSTS)
    assert abs(model.oof_cost_ - cost) < 4.0 * model.oof_cost_std_error_


def test_files_explanations_and_onnx(tmp_path) -> None:
    X, y = linear_task(300)
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["g"] = pd.Categorical(np.array(["x", "y", "z"])[y])
    table.loc[::7, ["a", "g"]] = None
    model = CostBoostClassifier(COSTS, random_state=0, n_estimators=10).fit(table, y)
    assert model.member_weights_[1] > 0.0
    model.save(tmp_path / "model")
    again = badacost.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    np.testing.assert_array_equal(again.member_weights_, model.member_weights_)
    numeric = CostBoostClassifier(COSTS, random_state=0, n_estimators=10).fit(X, y)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(numeric).SerializeToString())
    (labels,) = session.run(["label"], {session.get_inputs()[0].name: X})
    np.testing.assert_array_equal(np.ravel(labels), numeric.predict(X))


def test_warm_start_goes_on_with_the_trees(tmp_path) -> None:
    X, y = linear_task(300)
    common = {"random_state": 0, "early_stopping": False}
    whole = CostBoostClassifier(COSTS, n_estimators=12, **common).fit(X, y)
    CostBoostClassifier(COSTS, n_estimators=5, warm_start=True, **common).fit(X, y).save(
        tmp_path / "begun"
    )
    model = badacost.load(tmp_path / "begun").set_params(n_estimators=12).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    np.testing.assert_array_equal(model.oof_probabilities_, whole.oof_probabilities_)
    np.testing.assert_array_equal(model.estimator_weights_, whole.estimator_weights_)


def test_threads_of_blas_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 60))
    y = (X[:, :9].reshape(800, 3, 3).sum(axis=2) + rng.gumbel(size=(800, 3))).argmax(axis=1)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            model = CostBoostClassifier(COSTS, n_estimators=3, random_state=0).fit(X, y)
        found.append(model.predict_proba(X))
    assert model.member_weights_[1] > 0.0
    np.testing.assert_array_equal(*found)


def test_a_model_that_is_constant_without_its_linear_member() -> None:
    """No warning that it is constant, and its features are important."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = (X.sum(axis=1) + X[:, 0] + rng.normal(size=600) > 2.6).astype(int)
    settings = {"n_estimators": 2, "min_hessian": 1e6, "random_state": 0}
    model = CostBoostClassifier(**settings).fit(X, y)
    assert len(np.unique(model.predict(X))) == 2
    assert np.argmax(model.feature_importances_) == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("weight", "settings"),
    [(np.r_[1.0, np.full(199, 1e-320)], {}), (np.ones(200), {"learning_rate": 1e308})],
    ids=["tiny weights", "huge scores"],
)
def test_weights_that_cannot_be_found(weight, settings) -> None:
    X, y = linear_task(200)
    model = CostBoostClassifier(COSTS, n_estimators=2, random_state=0, **settings)
    model.fit(X, y, weight)
    assert np.isfinite(model.member_weights_).all()


def test_a_single_split_has_no_pool() -> None:
    X, y = linear_task(300)
    split = [(np.arange(200), np.arange(200, 300))]
    model = CostBoostClassifier(COSTS, n_estimators=3, cv=split, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.member_weights_, [1.0, 0.0])


def test_rows_that_are_held_out_several_times_count_so() -> None:
    X, y = linear_task(100)
    tests = [np.arange(100), np.arange(20), np.arange(20, 40)]
    folds = [(np.setdiff1d(np.arange(100), rows[:50]), rows[:50]) for rows in tests]
    model = CostBoostClassifier(COSTS, n_estimators=5, cv=folds, random_state=0).fit(X, y)
    held = np.concatenate([test for _, test in folds])
    decided = np.argmin(model.oof_probabilities_[held] @ COSTS, axis=1)
    assert model.oof_cost_ == pytest.approx(COSTS[y[held], decided].mean())


@pytest.mark.parametrize("name", ["member_weights", "boosted_steps"])
def test_files_whose_members_do_not_fit(name, tmp_path) -> None:
    X, y = linear_task(300)
    CostBoostClassifier(COSTS, random_state=0, n_estimators=3).fit(X, y).save(tmp_path / "model")
    model = read_model(tmp_path / "model")
    arrays = dict(model.arrays)
    for damaged in (-arrays[name], 2.0 * arrays[name], arrays[name][:-1], arrays[name] * np.nan):
        write_model(tmp_path / "bad", model.kind, model.header, arrays | {name: damaged})
        with pytest.raises(ModelFileError):
            badacost.load(tmp_path / "bad")


def test_members_of_other_names() -> None:
    X, y = linear_task(60)
    with pytest.raises(ValueError, match="members"):
        CostBoostClassifier(COSTS, members="all").fit(X, y)


@pytest.mark.parametrize("settings", [{"n_folds": 1}, {"binning": "exact", "tree": "best"}])
def test_no_linear_member(settings) -> None:
    X, y = linear_task(400)
    model = CostBoostClassifier(COSTS, random_state=0, n_estimators=5, **settings).fit(X, y)
    np.testing.assert_array_equal(model.member_weights_, [1.0, 0.0])
