"""Trees from sums over shards are those of `TreeGrower`: nodes, sums and leaves, bit by bit."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from badacost._utils.parallel import Threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Tree
from badacost.tree.grower import Gain, Growth, Summands, TreeGrower
from badacost.tree.shards import (
    LevelRequest,
    LevelResult,
    LocalTreeShard,
    PlannedTree,
    ShardedGrower,
    add_results,
    add_roots,
)

N = 3000
GROWTHS = [
    Growth(max_depth=4),
    Growth(max_depth=8, min_samples_leaf=7, min_samples_split=40),
    Growth(max_leaf_nodes=15, order="best"),
    Growth(max_leaf_nodes=9, max_depth=3, order="best", n_drawn=4, min_samples_leaf=3),
    Growth(max_depth=5, n_drawn=3),
    Growth(max_depth=5, order="symmetric"),
    Growth(max_depth=4, order="symmetric", n_drawn=2),
]


def problem() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 7))
    X[:, 6] = rng.integers(0, 12, N)
    y = (X[:, 1] > 0).astype(np.uint8) + (X[:, 6] % 3 == 1) + (X[:, 2] > 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, np.exp(6.0 * rng.normal(size=N))  # many nodes are light for their unit


X, Y, WEIGHT = problem()
SUMS = {
    "gini": (Summands.of_labels(Y, WEIGHT / WEIGHT.sum(), 4), Gain.gini(np.array([1.0, 2, 3, 4]))),
    "entropy": (Summands.of_labels(Y, WEIGHT / WEIGHT.sum(), 4), Gain.of_entropy(4)),
    "rows": (
        Summands.of_rows(np.column_stack([(Y - 1.0) * WEIGHT**0.1, WEIGHT**0.1])),
        Gain.of_gradients(2, 1.0, 1e-3),
    ),
}


def binned(categorical: bool, max_bins: int = 64) -> BinnedData:
    categories = {6: np.arange(11.0)} if categorical else None
    mapper = BinMapper.fit(X, max_bins=max_bins, categories=categories)
    return BinnedData(mapper, mapper.transform(X))


class Shards:
    """Shards of the samples, their roots, and the number of requests."""

    def __init__(self, data: BinnedData, sums: Any, rows: Any, ends: list[int]):
        self.shards, self.roots, self.n_requests = [], [], 0
        for a, b in pairwise(ends):
            here = BinnedData(data.mapper, data.bins[:, a:b].copy())
            here.__dict__["has_missing"] = data.mapper.has_missing
            mine = replace(sums, labels=sums.labels[a:b], values=sums.values[a:b])
            self.shards.append(LocalTreeShard(here))
            here_rows = None if rows is None else rows[(rows >= a) & (rows < b)] - a
            self.roots.append(self.shards[-1].begin(0, mine, here_rows))

    def level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        self.n_requests += 1
        results = [shard.level(requests) for shard in self.shards]
        return {key: add_results([result[key] for result in results]) for key in requests}


def assert_same_tree(one: Tree, other: Tree) -> None:
    for item in fields(Tree):
        a, b = getattr(one, item.name), getattr(other, item.name)
        assert (a is None) == (b is None), item.name
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=item.name)


@pytest.mark.parametrize(
    ("growth", "kind"),
    [(g, kind) for g in GROWTHS for kind in SUMS if g.order != "symmetric" or kind == "rows"],
    ids=lambda value: value if isinstance(value, str) else f"{value.order}-{value.n_drawn}",
)
@pytest.mark.parametrize("categorical", [False, True])
def test_the_same_trees(growth, kind, categorical) -> None:
    sums, gain = SUMS[kind]
    data = binned(categorical)
    drawn = np.sort(np.random.default_rng(1).choice(N, 2000, replace=False))
    for rows in (None, drawn):
        known = TreeGrower(data, growth).grow(sums, gain, rows=rows, seed=5)
        for ends in ([0, N], [0, 1100, N], [0, 0, 50, N]):
            shards = Shards(data, sums, rows, ends)
            plan = {0: PlannedTree(add_roots(shards.roots), gain, 5)}
            threads = Threads(2)
            grown = ShardedGrower(data.mapper, growth, threads).grow(plan, shards.level)
            tree, totals = grown[0]
            assert_same_tree(tree, known.tree)
            np.testing.assert_array_equal(totals, known.sums)
            leaves = np.concatenate([part.leaves(tree) for part in shards.shards])
            np.testing.assert_array_equal(leaves, known.leaves)


def test_a_level_takes_one_request() -> None:
    """After the first for the root; a last one tells how many samples the leaves have."""
    sums, gain = SUMS["rows"]
    data = binned(False)
    for depth in (1, 3, 5):
        shards = Shards(data, sums, None, [0, 1500, N])
        growth = Growth(max_depth=depth, order="symmetric")
        plan = {0: PlannedTree(add_roots(shards.roots), gain)}
        ShardedGrower(data.mapper, growth).grow(plan, shards.level)
        assert shards.n_requests == depth + 1


def test_many_bins() -> None:
    mapper = BinMapper.fit(X, method="exact")
    with pytest.raises(ValueError, match="choose at most 256 bins"):
        ShardedGrower(mapper, Growth())
