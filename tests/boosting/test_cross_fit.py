"""Folds of CostBoost: which samples are left out, and what boosters on them know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, StratifiedKFold

from badacost._utils.parallel import Threads
from badacost.backends.shards import ShardedData
from badacost.boosting.cross_fit import CrossFit, CrossFitShard, FoldLoss
from badacost.boosting.folds import (
    Fold,
    given_folds,
    held_out_rows,
    mix_columns,
    random_folds,
)
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.grower import Growth


def samples(n: int, n_classes: int, seed: int = 0):
    rng = np.random.default_rng([seed, n, n_classes])
    X = rng.normal(size=(n, 3)).round(1)
    y = (X[:, 0] * 2 + rng.normal(size=n) > 0) + rng.integers(0, n_classes - 1, n)
    return X, y.astype(np.uint8), rng.uniform(0.5, 2.0, n)


# Folds at random


@given(st.integers(2, 80), st.integers(2, 6), st.integers(1, 12), st.integers(0, 2**31 - 1))
def test_random_folds(n, n_classes, n_folds, seed) -> None:
    """Every sample is left out once; parts and the classes in them are of equal size."""
    X, y, weight = samples(n, n_classes)
    folds = random_folds(mix_columns(X.T, len(y), seed), y, weight, n_folds)
    assert len(folds) == min(n, n_folds)
    np.testing.assert_array_equal(np.sort(np.concatenate([f.held_out for f in folds])), range(n))
    for fold in folds:
        np.testing.assert_array_equal(np.sort([*fold.train, *fold.held_out]), range(n))
    for members in (np.full(n, True), *(y == k for k in range(n_classes))):
        assert np.ptp([members[fold.held_out].sum() for fold in folds]) <= 1


def test_random_folds_follow_the_samples() -> None:
    X, y, weight = samples(60, 3)
    order = np.random.default_rng(0).permutation(60)
    known = random_folds(mix_columns(X.T, len(y), 5), y, weight, 4)
    moved = random_folds(mix_columns(X[order].T, len(y[order]), 5), y[order], weight[order], 4)
    for one, other in zip(known, moved, strict=True):
        assert set(one.held_out) == set(order[other.held_out])
    other = random_folds(mix_columns(X.T, len(y), 6), y, weight, 4)
    assert any(set(a.held_out) != set(b.held_out) for a, b in zip(known, other, strict=True))


@pytest.mark.parametrize("column", [0, 1, 2])
def test_random_folds_know_nothing_of_the_values(column) -> None:
    X, y, weight = samples(4000, 2)
    folds = random_folds(mix_columns(X.T, len(y), 0), y, weight, 4)
    means = [X[fold.held_out, column].mean() for fold in folds]
    np.testing.assert_allclose(means, X[:, column].mean(), atol=4.0 / np.sqrt(1000))


@given(st.integers(2, 60), st.data())
def test_held_out_rows(n, random) -> None:
    n_held_out = random.draw(st.integers(1, n - 1))
    X, y, weight = samples(n, 3)
    held = held_out_rows(mix_columns(X.T, len(y), 3), y, weight, n_held_out)
    assert held.sum() == n_held_out
    share = n_held_out / n
    for k in range(3):
        assert abs(held[y == k].sum() - share * (y == k).sum()) < 2
    order = np.random.default_rng(n).permutation(n)
    moved = held_out_rows(
        mix_columns(X[order].T, len(y[order]), 3), y[order], weight[order], n_held_out
    )
    chosen, others = (
        sorted(zip(map(tuple, part), labels, strict=True))
        for part, labels in ((X[held], y[held]), (X[order][moved], y[order][moved]))
    )
    assert chosen == others


# Folds that are given


ALL = np.full(30, True)


@pytest.mark.parametrize(
    "cv",
    [
        3,
        KFold(3),
        StratifiedKFold(3),
        list(GroupKFold(3).split(np.zeros(30), groups=np.arange(30) // 4)),
        GroupKFold(3).split(np.zeros(30), groups=np.arange(30) // 4),
        [(np.arange(30) % 3 != k, np.arange(30) % 3 == k) for k in range(3)],
    ],
    ids=["number", "KFold", "StratifiedKFold", "groups", "iterator", "masks"],
)
def test_given_folds(cv) -> None:
    folds = given_folds(cv, np.arange(30) % 2, ALL)
    assert len(folds) == 3
    for fold in folds:
        np.testing.assert_array_equal(np.sort([*fold.train, *fold.held_out]), range(30))


def test_given_folds_count_the_samples_of_the_user() -> None:
    kept = np.arange(30) % 5 > 0
    cv = [(np.arange(10, 30), np.arange(10)), (np.arange(15), np.arange(15, 30))]
    folds = given_folds(cv, np.arange(24) % 3, kept)
    users = np.flatnonzero(kept)
    for fold, (train, test) in zip(folds, cv, strict=True):
        np.testing.assert_array_equal(users[fold.train], [i for i in train if kept[i]])
        np.testing.assert_array_equal(users[fold.held_out], [i for i in test if kept[i]])


def test_given_folds_that_leave_out_what_they_train_on() -> None:
    every = np.arange(6)
    with pytest.raises(ValueError, match="training and test"):
        given_folds([(every, every[:2])], np.array([0, 1] * 3), np.ones(6, bool))


def test_fingerprints() -> None:
    X, y, _ = samples(40, 3)
    mapper = BinMapper.fit(X)
    data = BinnedData(mapper, mapper.transform(X))
    order = np.random.default_rng(0).permutation(40)

    def number(data, y) -> int:
        return ShardedData.local(data, y, np.ones(len(y)), Threads()).fingerprint()

    known = number(data, y)
    assert 0 < known < 2**63
    assert number(BinnedData(mapper, data.bins[:, order]), y[order]) == known
    assert number(BinnedData(mapper, data.bins[:, 1:]), y[1:]) != known
    assert number(data, np.roll(y, 1)) != known


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (GroupKFold(3), r"The 'groups' parameter should not be None\): give fewer folds, or the s"),
        (KFold(40), "Cannot have number of splits n_splits=40"),
        ("five", "Expected .?cv.? as an integer"),  # with quotes since scikit-learn 1.9
        ([([0, 1], [99])], "out of bounds"),
        ([0, 1, 2], "cv makes no folds of these samples"),
        ([], "training or test samples"),
        ([([0, 1], [])], "training or test samples"),
        (iter([]), "a list instead of an iterator that is exhausted"),
    ],
)
def test_folds_that_are_none(cv, message) -> None:
    with pytest.raises(ValueError, match=message):
        given_folds(cv, np.arange(30) % 2, ALL)


def test_a_fold_whose_samples_have_no_weight() -> None:
    with pytest.raises(ValueError, match="without training or test samples"):
        given_folds(KFold(3), np.arange(20) % 2, np.arange(30) >= 10)


# Boosters


def cross_fit(X, y, weight, folds, threads: Threads | None = None) -> CrossFit:
    threads = threads or Threads()
    mapper = BinMapper.fit(X, max_bins=32, sample_weight=weight, threads=threads)
    data = BinnedData(mapper, mapper.transform(X, threads))
    return CrossFit(
        ShardedData.local(data, y, weight, threads),
        Growth(max_depth=3, order="symmetric"),
        folds,
        n_classes=int(y.max()) + 1,
        l2=1.0,
        min_hessian=1e-3,
        learning_rate=0.3,
        n_directions=3,
        subsample=1.0,
        seed=0,
        threads=threads,
    )


def rows_of(fit: CrossFit) -> CrossFitShard:
    """The one shard."""
    return fit._boosters._shards.shards[0].booster


def test_what_is_left_out_does_not_matter() -> None:
    """Neither its classes nor its weights: trees and scores are those of the others."""
    X, y, weight = samples(200, 3)
    fold = Fold(np.arange(120), np.arange(120, 200))
    other = y.copy()
    other[120:] = (y[120:] + 1) % 3
    grown = []
    for labels in (y, other):
        fit = cross_fit(X, labels, weight, [fold])
        for number in range(4):
            fit.advance(fit.fit(number))
        grown.append(rows_of(fit))
    np.testing.assert_array_equal(grown[0].scores, grown[1].scores)
    assert (grown[0].losses[0, 120:] != grown[1].losses[0, 120:]).any()


def test_priors_and_losses() -> None:
    X, y, weight = samples(200, 3)
    weight *= 3.0
    folds = random_folds(mix_columns(X.T, len(y), 0), y, weight, 3)
    fit = cross_fit(X, y, weight, folds)
    for fold, log_prior, found in zip(folds, fit.log_priors, rows_of(fit).losses, strict=True):
        counts = np.bincount(y[fold.train], weight[fold.train]) + 1.0
        np.testing.assert_allclose(log_prior, np.log(counts / counts.sum()))
        np.testing.assert_allclose(found, -log_prior[y])
    stage = fit.fit(0)
    fit.advance(stage)
    train, held_out = FoldLoss(fit, held_out=False), FoldLoss(fit, held_out=True)
    train.record(stage)
    held_out.record(stage)
    parts = [(fold.train, fold.held_out) for fold in folds]
    for monitor, part in ((train, 0), (held_out, 1)):
        rows = [p[part] for p in parts]
        losses = [found[r] for found, r in zip(rows_of(fit).losses, rows, strict=True)]
        weights = np.concatenate([weight[r] for r in rows])
        mean = np.average(np.concatenate(losses), weights=weights)
        assert monitor.curve == [pytest.approx(mean, rel=1e-12)]
    costs = np.array([[0.0, 1, 5], [1, 0, 2], [10, 8, 0]])
    decisions = (fit.out_of_fold() @ costs).argmin(axis=1)
    paid, w = costs[y, decisions], weight / weight.sum()
    mean, error = fit.out_of_fold_cost(costs, costs)
    assert mean == pytest.approx(w @ paid, rel=1e-12)
    expected = np.sqrt((w**2 @ (paid - mean) ** 2) / (1.0 - w @ w))
    assert error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("factor", "expected"), [(1e-300, 1e-6), (0.1, 0.1), (1.0, 1.0), (7.0, 7.0), (1e300, 1e6)]
)
def test_a_weight_counts_as_so_many_samples(factor, expected) -> None:
    X, y, _ = samples(100, 3)
    fold = Fold(np.arange(100), np.arange(0))
    fit = cross_fit(X, y, np.full(100, factor), [fold])
    counts = expected * np.bincount(y) + 1.0
    np.testing.assert_allclose(fit.log_prior, np.log(counts / counts.sum()))
    np.testing.assert_allclose(fit.weights, 0.01)


def test_folds_may_overlap() -> None:
    X, y, weight = samples(60, 2)
    folds = given_folds(
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), y, np.full(60, True)
    )
    fit = cross_fit(X, y, weight, folds)
    probabilities, costs = fit.out_of_fold(), np.array([[0.0, 1], [5, 0]])
    cost = np.average(costs[y, (probabilities @ costs).argmin(axis=1)], weights=weight)
    assert fit.out_of_fold_cost(costs, costs)[0] == pytest.approx(cost, rel=1e-12)


def test_samples_that_are_never_left_out() -> None:
    X, y, weight = samples(60, 2)
    fit = cross_fit(X, y, weight, [Fold(np.arange(40), np.arange(40, 60))])
    shares = fit.out_of_fold()
    assert np.isnan(shares[:40]).all()
    np.testing.assert_allclose(shares[40:].sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("n_folds", [1, 5])
def test_threads_and_sizes(n_folds) -> None:
    """Threads share folds of small data and rows of large data; each way gives the same bits."""
    X, y, weight = samples(9000, 3)
    folds = random_folds(mix_columns(X.T, len(y), 0), y, weight, max(n_folds, 2))[:n_folds]
    scores = []
    for n_jobs in (1, 2, 3):
        threads = Threads(n_jobs)
        fit = cross_fit(X, y, weight, folds, threads)
        for number in range(3):
            fit.advance(fit.fit(number))
        scores.append(rows_of(fit).scores)
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
