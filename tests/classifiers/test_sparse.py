"""Sparse matrices give the model of the dense ones, to the last byte."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    LpCSBClassifier,
)
from badacost.explain import explain_decision, explain_scores
from badacost.tree import binning
from badacost.tree.binning import BinMapper

COSTS = [[0, 1, 5], [2, 0, 1], [10, 4, 0]]
VALUES = [0.0, -0.0, 1.5, -2.0, np.nan]
MODELS = {
    "badacost": BAdaCostClassifier(COSTS, n_estimators=3, random_state=1),
    "uniform": BAdaCostClassifier(COSTS, n_estimators=3, binning="uniform", random_state=1),
    "exact": BAdaCostClassifier(COSTS, n_estimators=3, binning="exact", random_state=1),
    "stopping": BAdaCostClassifier(COSTS, n_estimators=3, early_stopping=True, random_state=1),
    "costboost": CostBoostClassifier(COSTS, n_estimators=3, random_state=1),
    "one fold": CostBoostClassifier(COSTS, n_estimators=3, n_folds=1, random_state=1),
    "lp": LpCSBClassifier(COSTS, n_estimators=2, random_state=1),
    "tree": CostSensitiveTreeClassifier(COSTS, max_depth=3, random_state=1),
}


def data(n: int = 300, dtype=np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Mostly zeros; some values are missing, one column is empty."""
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(n, 12)) < 0.2, rng.normal(size=(n, 12)), 0.0).astype(dtype)
    y = (X[:, 0] + X[:, 1] > 0.1).astype(int) + (X[:, 2] > 0)
    X[::50, 3] = np.nan
    X[:, 4] = 0.0
    return X, y


def saved(model, tmp_path) -> bytes:
    model.save(tmp_path / "model")
    return (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_every_classifier(name, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(binning, "MAX_ROWS", 120)
    model = MODELS[name]
    for dtype, kinds, weighted in (
        (np.float32, [sparse.csr_array], False),
        (np.float64, [sparse.csc_matrix, sparse.coo_array], True),
    ):
        X, y = data(dtype=dtype)
        weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
        rows = weight if weighted else None
        expected = saved(model.fit(X, y, rows), tmp_path)
        labels, leaves = model.predict(X), model.apply(X)
        for kind in kinds:
            assert saved(model.fit(kind(X), y, rows), tmp_path) == expected
        np.testing.assert_array_equal(model.predict(sparse.csr_matrix(X)), labels)
        np.testing.assert_array_equal(model.apply(sparse.csc_array(X)), leaves)


def test_everything_that_predicts() -> None:
    X, y = data()
    S = sparse.csr_array(X)
    for n_jobs in (1, 2):
        model = BAdaCostClassifier(COSTS, n_estimators=3, n_jobs=n_jobs).fit(S, y)
        for name in ("predict_proba", "cost_scores", "decision_function", "predict_costs"):
            np.testing.assert_array_equal(getattr(model, name)(S), getattr(model, name)(X))
        staged = zip(model.staged_predict(S), model.staged_predict(X), strict=True)
        assert all((one == other).all() for one, other in staged)


def test_explanations() -> None:
    X, y = data()
    S = sparse.csr_array(X)
    model = CostBoostClassifier(COSTS, n_estimators=3, random_state=1).fit(S, y)
    np.testing.assert_array_equal(
        explain_scores(model, S[:5]).values, explain_scores(model, X[:5]).values
    )
    assert explain_decision(model, S[:1]).to_text() == explain_decision(model, X[:1]).to_text()


def test_validation_and_warm_start(tmp_path) -> None:
    X, y = data()
    S = sparse.csr_array(X)
    model = BAdaCostClassifier(COSTS, n_estimators=4, random_state=1)
    expected = saved(model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:]), tmp_path)
    model.fit(S[:200], y[:200], X_val=S[200:], y_val=y[200:])
    assert saved(model, tmp_path) == expected
    whole = saved(model.fit(X, y), tmp_path)
    model.set_params(n_estimators=2, warm_start=True)
    del model.n_estimators_
    model.fit(S, y).set_params(n_estimators=4).fit(S, y)
    assert saved(model.set_params(warm_start=False), tmp_path) == whole


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from(VALUES)),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["quantile", "uniform", "exact"]),
)
def test_bins_with_entries_of_any_kind(entries, method) -> None:
    """Explicit zeros, entries that occur twice, and columns without any."""
    rows, columns, values = zip(*entries, strict=True)
    S = sparse.coo_array((values, (rows, columns)), shape=(10, 4)).tocsr()
    X = S.toarray()
    dense, found = (BinMapper.fit(x, method=method, max_bins=4) for x in (X, S))
    np.testing.assert_array_equal(found.has_missing, dense.has_missing)
    for mine, theirs in zip(found.edges, dense.edges, strict=True):
        assert mine.tobytes() == theirs.tobytes()
    np.testing.assert_array_equal(found.transform(S), dense.transform(X))


def test_values_missing_after_training_only() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    mapper = BinMapper.fit(X)
    X[7, 1] = np.nan
    bins = mapper.transform(sparse.csr_array(X))
    assert bins.dtype == np.uint16
    np.testing.assert_array_equal(bins, mapper.transform(X))


def test_wide_matrices_are_not_made_dense() -> None:
    """As an array, the samples would take 20 MB; their bins take 5."""
    n, width = 2_000, 2_500
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    columns = np.concatenate([y, rng.integers(2, width, n)])
    entries = (np.ones(2 * n, np.float32), (np.tile(np.arange(n), 2), columns))
    S = sparse.coo_array(entries, shape=(n, width)).tocsr()
    BinMapper.fit(S[:, :4]).transform(S[:, :4])  # compiled code takes memory, too
    tracemalloc.start()
    bins = BinMapper.fit(S).transform(S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert bins[:2].tolist() == [(y == 0).tolist(), y.tolist()]
    assert peak < 10e6


def test_mistakes_with_sparse_matrices() -> None:
    X, y = data()
    S = sparse.csr_array(X)
    with pytest.raises(ValueError, match=r"categorical_features .* sparse matrix"):
        BAdaCostClassifier(categorical_features=[0]).fit(S, y)
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        BAdaCostClassifier(estimator=CostSensitiveTreeClassifier()).fit(S, y)


def test_infinity_has_a_remedy() -> None:
    X, y = data()
    X[3, 2] = np.inf
    message = "X contains infinity: replace such values, by NaN"
    with pytest.raises(ValueError, match=message):
        BAdaCostClassifier(COSTS, n_estimators=1).fit(sparse.csr_array(X), y)
    model = BAdaCostClassifier(COSTS, n_estimators=1).fit(sparse.csr_array(np.nan_to_num(X)), y)
    with pytest.raises(ValueError, match=message):
        model.predict(sparse.coo_array(X))


@pytest.mark.parametrize("name", ["stopping", "one fold"])
def test_the_sign_of_zero_does_not_choose_samples(name) -> None:
    X, y = data()
    model = MODELS[name]
    signed = np.where(X == 0.0, -0.0, X)
    expected = model.fit(sparse.csr_array(X), y).forest_.threshold.tobytes()
    assert model.fit(signed, y).forest_.threshold.tobytes() == expected
