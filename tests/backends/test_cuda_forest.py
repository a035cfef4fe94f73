"""Scores of a forest on a device have the bytes of those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from badacost import BAdaCostClassifier
from badacost.backends import cuda_forest as gpu_forest
from badacost.backends.cuda_forest import accumulate
from tests.backends.on_cpu import OnCpu, needs_compiler

pytestmark = needs_compiler
COSTS = np.array([[0.0, 1.0, 4.0], [3.0, 0.0, 1.0], [9.0, 2.0, 0.0]])


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6))
    X[rng.random(700) < 0.2, 1] = np.nan
    X[:, 2] = rng.integers(12, size=700) * 3.0
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 2] % 2 == 0) * (X[:, 3] > 0.0)
    return X, np.where(rng.random(700) < 0.2, rng.integers(3, size=700), y)


@pytest.fixture(scope="module", params=[None, [2]], ids=["values", "categories"])
def forest(samples, request):
    model = BAdaCostClassifier(
        COSTS, n_estimators=11, max_depth=4, categorical_features=request.param
    )
    return model.fit(*samples).forest_


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_scores(forest, samples, kind, monkeypatch) -> None:
    monkeypatch.setattr(gpu_forest, "_BLOCK_BYTES", 12_000)
    X = samples[0].astype(kind)
    X[::9, 2] = 100.0  # an unknown category
    device = OnCpu()
    assert accumulate(device, forest, X).tobytes() == forest.accumulate(X).tobytes()
    start = np.random.default_rng(1).normal(size=(len(X), 3))
    expected = forest.accumulate(X, start.copy(), first_tree=2, last_tree=7)
    found = accumulate(device, forest, X, start, first_tree=2, last_tree=7)
    assert found.tobytes() == expected.tobytes()


def test_more_scores_than_shared_memory_holds(forest, samples) -> None:
    device = OnCpu()
    device.max_shared = 2 * 8 * 128 * 2  # two of three columns
    expected = forest.accumulate(samples[0])
    assert accumulate(device, forest, samples[0]).tobytes() == expected.tobytes()


def test_values_at_thresholds(forest) -> None:
    thresholds = forest.threshold[~forest.is_leaf]
    X = np.zeros((3 * len(thresholds), forest.n_features))
    beside = np.concatenate([thresholds, np.nextafter(thresholds, [[-np.inf], [np.inf]]).ravel()])
    X[:] = beside[:, None]
    expected = forest.accumulate(X)
    assert accumulate(OnCpu(), forest, X).tobytes() == expected.tobytes()


def test_arguments_are_checked(forest, samples) -> None:
    device = OnCpu()
    with pytest.raises(ValueError, match="must have 6 columns"):
        accumulate(device, forest, samples[0][:, :3])
    with pytest.raises(ValueError, match="not among 11 trees"):
        accumulate(device, forest, samples[0], last_tree=12)
    assert accumulate(device, forest, samples[0][:0]).shape == (0, 3)
