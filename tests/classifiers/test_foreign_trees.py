"""One-hot encoded categories, and their trees as trees of categories."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.classifiers.foreign_trees import OneHotColumns
from badacost.tree.forest import Forest, Tree


def stump(feature: int, threshold: float, missing_left: bool) -> Forest:
    """One test; the leaves have the scores 0 and 1."""
    tree = Tree(
        feature=np.array([feature, 0, 0], np.int32),
        threshold=np.array([threshold, np.nan, np.nan]),
        left=np.array([1, 1, 2], np.int32),
        missing_left=np.array([missing_left, True, True]),
        value=np.array([0, 0, 1], np.int32),
        gain=np.ones(3, np.float32),
        count=np.full(3, 2, np.int32),
        weight=np.ones(3, np.float32),
    )
    return Forest.from_trees([tree], [1.0], np.array([[0.0], [1.0]]), 3 + 255)


@pytest.mark.parametrize("missing_left", [False, True])
@pytest.mark.parametrize("threshold", [-0.5, 0.0, 1e-35, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("feature", [0, 1, 32, 33, 255, 256, 257])
def test_decoded_trees_have_the_scores_of_encoded_ones(feature, threshold, missing_left) -> None:
    """Columns are a number, 255 categories, a column without any, and two numbers."""
    one_hot = OneHotColumns(5, {1: np.arange(255.0), 2: np.empty(0)})
    samples = np.full((257, 5), np.nan)
    samples[:255, 1] = np.arange(255)
    samples[:255, [0, 3, 4]] = np.random.default_rng(0).normal(size=(255, 3))
    samples[256, 1] = 7.0
    encoded = one_hot.encode(samples)
    assert encoded.shape == (257, 258)
    forest = stump(feature, threshold, missing_left)
    decoded = one_hot.decode(forest)
    assert decoded.n_features == 5
    np.testing.assert_array_equal(decoded.accumulate(samples), forest.accumulate(encoded))


def test_without_categories_nothing_is_copied() -> None:
    one_hot = OneHotColumns(258, {})
    samples, forest = np.ones((2, 258)), stump(0, 0.5, True)
    assert one_hot.encode(samples) is samples
    assert one_hot.decode(forest) is forest
