"""Trees as operators, against `Forest` on random trees with every kind of test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from badacost.export.graph import Graph, Tensor
from badacost.export.trees import _rounded_up, add_scores
from badacost.tree.forest import Forest
from tests.export.sessions import run

N_CODES = (40, 3, 255)  # categories of the last three features
N_FEATURES = 6


def random_forest(seed: int, n_trees: int = 12, n_outputs: int = 3) -> Forest:
    """Random trees, one of them a leaf; the last features are categories."""
    rng = np.random.default_rng(seed)
    parts: dict[str, list[Any]] = {"feature": [], "threshold": [], "left": [], "set": []}
    sizes, sets = [], []
    for tree in range(n_trees):
        n_inner = 0 if tree == 3 else int(rng.integers(1, 30))
        left = np.arange(2 * n_inner + 1)
        leaves = [0]
        for number in range(n_inner):  # a leaf is split in two, any of them
            node = leaves.pop(int(rng.integers(len(leaves))))
            left[node] = 2 * number + 1
            leaves += [2 * number + 1, 2 * number + 2]
        inner = left != np.arange(len(left))
        feature = np.where(inner, rng.integers(N_FEATURES, size=len(left)), 0)
        threshold = np.where(inner, rng.choice([-1.0, 0.1, 1 / 3, np.inf], len(left)), np.nan)
        tested = inner & (feature >= 3)
        threshold[tested] = 0.0
        numbers = np.full(len(left), -1)
        numbers[tested] = len(sets) + np.arange(tested.sum())
        for node in np.flatnonzero(tested):
            n_known = N_CODES[feature[node] - 3]
            share = rng.choice([0.0, 0.05, 0.5, 0.95, 1.0])
            bits = np.zeros(256, np.uint8)
            bits[:n_known] = rng.random(n_known) < share
            sets.append(np.packbits(bits, bitorder="little").view("<u4"))
        for name, values in zip(parts, (feature, threshold, left, numbers), strict=True):
            parts[name].append(values)
        sizes.append(len(left))
    joined = {name: np.concatenate(values) for name, values in parts.items()}
    leaf = np.isnan(joined["threshold"])
    n_nodes = len(leaf)
    return Forest(
        feature=joined["feature"].astype(np.int32),
        threshold=joined["threshold"],
        left=joined["left"].astype(np.int32),
        missing_left=leaf | (rng.random(n_nodes) < 0.5),
        value=rng.integers(9, size=n_nodes).astype(np.int32),
        gain=np.ones(n_nodes, np.float32),
        count=np.ones(n_nodes, np.int32),
        weight=np.ones(n_nodes, np.float32),
        offsets=np.cumsum([0, *sizes]),
        tree_weights=rng.random(n_trees),
        table=rng.normal(size=(9, n_outputs)),
        n_features=N_FEATURES,
        category_set=joined["set"].astype(np.int32),
        sets=np.array(sets, np.uint32),
        categories=np.concatenate([np.arange(float(n)) for n in N_CODES]),
        category_offsets=np.cumsum([0, 0, 0, 0, *N_CODES]),
    )


def samples(seed: int, dtype: Any, n: int = 3000) -> np.ndarray:
    """Values on thresholds and beside them, all codes, and missing ones."""
    rng = np.random.default_rng(seed)
    known = np.array([-1.0, 0.1, 1 / 3, 5.0], dtype)
    known = np.concatenate([np.nextafter(known, dtype(e)) for e in (-np.inf, np.inf)] + [known])
    X = rng.choice(known, (n, N_FEATURES))
    for column, n_known in zip((3, 4, 5), N_CODES, strict=True):
        X[:, column] = rng.integers(n_known, size=n)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ml_opset", [5, 3])
@pytest.mark.parametrize("seed", range(5))
def test_random_trees(seed, ml_opset, dtype) -> None:
    forest, X = random_forest(seed), samples(seed, dtype)
    graph = Graph("", ml_opset, dtype)
    scores = add_scores(forest, Tensor(graph, "X")).name
    expected = forest.accumulate(X)
    model = graph.to_model("trees", {"X": X[:0]}, {scores: expected[:0]})
    np.testing.assert_array_equal(run(model, X)[scores], expected, strict=True)


def test_thresholds_in_single_precision_divide_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    near = rng.normal(size=1000).astype(np.float32)
    thresholds = np.concatenate(
        [
            near.astype(float),
            np.nextafter(near.astype(float), np.inf),
            np.nextafter(near.astype(float), -np.inf),
            [0.1, 1e-60, -1e-60, 0.0, 1e300, -1e300, np.inf, 3.4028235677973366e38],
        ]
    )
    largest = np.finfo(np.float32).max
    extremes = np.array([0.0, 1e-45, -1e-45, largest, -largest], np.float32)
    beside = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]
    values = np.concatenate([near, *beside, extremes])
    rounded = _rounded_up(thresholds, np.float32)
    assert rounded.dtype == np.float32
    expected = values[:, np.newaxis].astype(float) >= thresholds
    np.testing.assert_array_equal(values[:, np.newaxis] >= rounded, expected)
