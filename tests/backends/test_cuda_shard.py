"""Classifiers fitted on a device are the same files as on the CPU, and predict the same.

Where there is no GPU, the kernels run on the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

from badacost import (
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    load,
)
from badacost._utils.parallel import exact_bincount, exact_sum, split_high_low, units_of
from badacost.backends import device as gpu_device
from badacost.backends.cuda_shard import CudaShard
from badacost.backends.shards import ShardedData
from badacost.classifiers import base as stagewise
from badacost.tree.binning import BinMapper, BinnedData
from tests.backends.on_cpu import OnCpu, any_device, needs_compiler

pytestmark = needs_compiler
COSTS = np.array([[0.0, 1.0, 4.0], [3.0, 0.0, 1.0], [9.0, 2.0, 0.0]])


@pytest.fixture(autouse=True)
def some_device(monkeypatch) -> None:
    device = any_device()
    for module in (gpu_device, stagewise):
        monkeypatch.setattr(module, "cuda_device", lambda: device)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 7))
    X[rng.random(900) < 0.15, 1] = np.nan
    X[:, 2] = rng.integers(9, size=900)
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 2] % 2 == 0) * (X[:, 3] > 0.0)
    return X, np.where(rng.random(900) < 0.2, rng.integers(3, size=900), y), rng.random(900) + 0.1


def fitted_alike(model, samples, tmp_path, **fit):
    """Fit on both devices and compare files and predictions; return the fitted ones."""
    X, y, weight = samples
    files, models = [], []
    for device in ("cpu", "cuda"):
        model.set_params(device=device)
        models.append(type(model)(**model.get_params()).fit(X, y, weight, **fit))
        models[-1].save(tmp_path / device)
        files.append((tmp_path / device).read_bytes())
    assert files[0] == files[1]
    here, there = models
    np.testing.assert_array_equal(here.cost_scores(X), there.cost_scores(X))
    np.testing.assert_array_equal(here.train_score_, there.train_score_)
    for one, other in zip(here.staged_predict(X[:50]), there.staged_predict(X[:50]), strict=True):
        np.testing.assert_array_equal(one, other)
    return models


@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 4, "categorical_features": [2]},
        {"subsample": 0.7, "max_features": 0.5, "max_leaf_nodes": 6, "max_depth": None},
        {"criterion": "entropy", "min_samples_leaf": 5, "n_refinements": 1},
    ],
    ids=["categories", "draws", "entropy"],
)
def test_badacost(settings, samples, tmp_path) -> None:
    fitted_alike(
        BAdaCostClassifier(COSTS, n_estimators=5, random_state=3, **settings), samples, tmp_path
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"n_folds": 3, "categorical_features": [2]},
        {"n_folds": 2, "subsample": 0.6, "max_features": 4},
        {"n_folds": 1, "early_stopping": True},
    ],
    ids=["categories", "draws", "one_fold"],
)
def test_costboost(settings, samples, tmp_path) -> None:
    model = CostBoostClassifier(COSTS, n_estimators=6, random_state=3, **settings)
    here, there = fitted_alike(model, samples, tmp_path)
    assert getattr(here, "oof_cost_", None) == getattr(there, "oof_cost_", None)


@pytest.mark.parametrize("kind", [SAMMEClassifier, AdaC2M1Classifier])
def test_other_rules(kind, samples, tmp_path) -> None:
    fitted_alike(kind(n_estimators=4, max_depth=2, random_state=0), samples, tmp_path)


@pytest.mark.parametrize("kind", [BAdaCostClassifier, CostBoostClassifier])
def test_rounds_are_added_on_the_other_device(kind, samples) -> None:
    X, y, _ = samples
    whole = kind(COSTS, n_estimators=5, random_state=1).fit(X, y)
    model = kind(COSTS, n_estimators=3, random_state=1, warm_start=True).fit(X, y)
    model.set_params(n_estimators=5, device="cuda").fit(X, y)
    np.testing.assert_array_equal(model.cost_scores(X), whole.cost_scores(X))


@pytest.mark.parametrize("kind", [BAdaCostClassifier, CostBoostClassifier])
def test_callbacks(kind, samples) -> None:
    X, y, _ = samples
    seen: dict[str, list] = {"cpu": [], "cuda": []}
    for device, rounds in seen.items():
        kind(COSTS, n_estimators=2, random_state=1, device=device, callbacks=[rounds.append]).fit(
            X, y
        )
    for one, other in zip(*seen.values(), strict=True):
        np.testing.assert_array_equal(one.sample_weight, other.sample_weight)


def test_a_file_predicts_on_the_cpu(samples, tmp_path) -> None:
    X, y, _ = samples
    model = BAdaCostClassifier(COSTS, n_estimators=2, device="cuda")
    with pytest.warns(UserWarning, match=r"device=\"cpu\""):  # faster for few samples
        model.fit(X, y)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").device == "cpu"


def test_samples_that_the_device_cannot_hold(samples, monkeypatch) -> None:
    X, y, _ = samples

    def full(*_: object, **__: object) -> None:
        raise MemoryError("Out of memory allocating 8 bytes")

    monkeypatch.setattr(ShardedData, "local", full)
    with pytest.raises(MemoryError, match=r"allocating 8 bytes.*device=\"cpu\""):
        BAdaCostClassifier(device="cuda").fit(X, y)


def test_what_a_device_cannot_do(samples) -> None:
    X, y, _ = samples
    with pytest.raises(ValueError, match="PIBoostClassifier is fitted on the CPU"):
        PIBoostClassifier(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match=r"binning=.exact. .*: choose"):
        BAdaCostClassifier(device="cuda", binning="exact").fit(X, y)
    with pytest.raises(ValueError, match="device"):
        BAdaCostClassifier(device="gpu").fit(X, y)
    prices = np.ones((len(y), 3)) - np.eye(3)[y]
    with pytest.raises(ValueError, match='sample_cost is for device="cpu"'):
        BAdaCostClassifier(device="cuda").fit(X, y, sample_cost=prices)


def empty_shard() -> CudaShard:
    data = BinnedData(BinMapper.fit(np.zeros((1, 1))), np.zeros((1, 0), np.uint8))
    return CudaShard(data, np.zeros(0, int), np.ones(0), OnCpu())


@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_sums_high_and_low(spread) -> None:
    terms = np.exp(spread * np.random.default_rng(0).normal(size=5000))
    units = units_of(terms.max(), len(terms))
    found = empty_shard().split_sums(terms, units)
    np.testing.assert_array_equal(found, [half.sum() for half in split_high_low(terms, units)])
    assert found.sum() == exact_sum(terms)


@pytest.mark.parametrize("n_cells", [9, 5000], ids=["shared", "global"])
def test_sums_by_cell(n_cells) -> None:
    rng = np.random.default_rng(1)
    terms = np.exp(20.0 * rng.normal(size=6000))
    cells = rng.integers(n_cells, size=6000).astype(np.int32)
    shard = empty_shard()
    largest = shard.bin_maxima(cells, terms, n_cells)
    expected = np.zeros(n_cells)
    np.maximum.at(expected, cells, terms)
    np.testing.assert_array_equal(largest, expected)
    found = shard.bin_split_sums(cells, terms, units_of(largest, len(terms)))
    np.testing.assert_array_equal(found.sum(axis=0), exact_bincount(cells, terms, n_cells))
