"""The compiled loops of CostBoost against the same in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from badacost._utils.parallel import Threads
from badacost.boosting import costboost_kernels as kernels
from badacost.tree.grower import quanta_of

BIG = 1.5 * 2.0**10  # rounds terms to multiples of 2**-42
EMPTY = np.empty((0, 1), np.float32)


def advance(scores, step, table, rows, y, probabilities, losses) -> None:
    loop = Threads(2).loop(len(scores), 20)
    buffers = np.empty((loop.n_parts, kernels.BLOCK * (scores.shape[1] + 1)))
    kernels.advance(loop, scores, step, table, rows, y, probabilities, losses, buffers)


def sketch(probabilities, y, weight, directions, quanta, rounded) -> np.ndarray:
    loop = Threads(2).loop(len(y), 20)
    largest = np.zeros((loop.n_parts, directions.shape[1] + 1))
    kernels.sketch(loop, probabilities, y, weight, directions, quanta, rounded, largest)
    return largest.max(axis=0)


def leaf_sums(probabilities, y, weight, used, leaves, n_leaves) -> np.ndarray:
    loop = Threads(2).loop(len(used), 20)
    sums = np.zeros((loop.n_parts, n_leaves, 2, probabilities.shape[1]))
    kernels.leaf_sums(loop, probabilities, y, weight, used, leaves, BIG, sums)
    return sums.sum(axis=0)


def problem(n: int = 50, n_classes: int = 4, seed: int = 0):
    rng = np.random.default_rng([seed, n, n_classes])
    scores = rng.normal(scale=3.0, size=(n, n_classes))
    shares = softmax(-scores, axis=1).astype(np.float32)
    y = rng.integers(n_classes, size=n).astype(np.uint8)
    return scores, shares, y, rng.uniform(0.1, 5.0, n), rng


def gradients(shares, y, weight):
    """First and second derivatives of the weighted log-loss in minus the cost scores."""
    p = shares.astype(float)
    return (p - np.eye(p.shape[1])[y]) * weight[:, None], p * (1.0 - p) * weight[:, None]


@pytest.mark.parametrize("n_classes", [2, 3, 30])
def test_advance(n_classes) -> None:
    scores, _, y, _, rng = problem(n_classes=n_classes)
    table = rng.normal(size=(7, n_classes))
    rows = rng.integers(7, size=50).astype(np.int32)
    expected = scores + 0.3 * table[rows]
    shares, losses = np.full(scores.shape, np.nan, np.float32), np.full(50, np.nan)
    advance(scores, 0.3, table, rows, y, shares, losses)
    np.testing.assert_allclose(scores, expected, rtol=1e-14)
    np.testing.assert_allclose(shares, softmax(-expected, axis=1), atol=1e-7)
    log_loss = expected[np.arange(50), y] + logsumexp(-expected, axis=1)
    np.testing.assert_allclose(losses, log_loss, rtol=1e-12, atol=1e-14)


def test_an_empty_table_only_sets_probabilities() -> None:
    scores, expected, y, _, _ = problem()
    before, shares, losses = scores.copy(), np.empty_like(expected), np.empty(50)
    rows, table = np.zeros(50, np.int32), np.empty((0, 4))
    advance(scores, 0.0, table, rows, y, shares, losses)
    np.testing.assert_array_equal(scores, before)
    np.testing.assert_allclose(shares, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e300])
def test_scores_of_any_size(size) -> None:
    scores = size * np.array([[0.0, 1.0, -1.0], [1.0, 1.0, 1.0]])
    shares, losses = np.empty((2, 3), np.float32), np.empty(2)
    rows, y = np.zeros(2, np.int32), np.array([1, 2], np.uint8)
    advance(scores, 1.0, np.empty((0, 3)), rows, y, shares, losses)
    np.testing.assert_allclose(shares, [[0, 0, 1], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)
    np.testing.assert_allclose(losses, [2 * size, np.log(3)])


@pytest.mark.parametrize("n_classes", [2, 5])
def test_sketch(n_classes) -> None:
    _, shares, y, weight, rng = problem(n_classes=n_classes)
    directions = rng.normal(size=(n_classes, 3))
    gradient, hessian = gradients(shares, y, weight)
    expected = np.column_stack([gradient @ directions, hessian.sum(axis=1)])
    sizes = sketch(shares, y, weight, directions, np.empty(4), EMPTY)
    np.testing.assert_allclose(sizes, np.abs(expected).max(axis=0), rtol=1e-12)
    quanta = quanta_of(sizes)
    out = np.full((50, 4), np.nan, np.float32)
    sketch(shares, y, weight, directions, quanta, out)
    assert (np.abs(out - expected) <= 0.51 * quanta).all()
    np.testing.assert_array_equal(out / quanta, np.rint(out / quanta))


def test_gradients_are_those_of_the_log_loss() -> None:
    """By differences: the sketch goes downhill in the scores that the tables add to."""
    scores, _, y, weight, _ = problem(n=1)
    directions = np.eye(4)[:, :3]
    shares, losses = np.empty((1, 4), np.float32), np.empty(1)
    out = np.empty((1, 4), np.float32)

    def loss_at(moved) -> float:
        rows, table = np.zeros(1, np.int32), np.empty((0, 4))
        advance(moved, 0.0, table, rows, y, shares, losses)
        return float(weight[0] * losses[0])

    loss_at(scores.copy())
    sketch(shares, y, weight, directions, np.full(4, 1e-9), out)
    for k in range(3):
        step = 1e-5 * np.eye(4)[[k]]
        slope = (loss_at(scores + step) - loss_at(scores - step)) / 2e-5
        assert slope == pytest.approx(-out[0, k], abs=1e-6)


def test_leaf_sums() -> None:
    _, shares, y, weight, rng = problem()
    used = rng.permutation(50)[:40]
    leaves = rng.integers(6, size=50).astype(np.int32)
    sums = leaf_sums(shares, y, weight, used, leaves, 6)
    gradient, hessian = gradients(shares, y, weight)
    expected = np.zeros_like(sums)
    np.add.at(expected, leaves[used], np.stack([gradient, hessian], axis=1)[used])
    np.testing.assert_allclose(sums, expected, atol=1e-10)


def test_leaf_sums_have_no_order() -> None:
    _, shares, y, weight, rng = problem(n=200)
    leaves = rng.integers(3, size=200).astype(np.int32)
    first = None
    for _ in range(5):
        sums = leaf_sums(shares, y, weight, rng.permutation(200), leaves, 3)
        first = sums if first is None else first
        np.testing.assert_array_equal(sums, first)
