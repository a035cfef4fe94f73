"""One cost-sensitive tree from binned data, sample weights and costs.

The grower looks for the best split of a batch of nodes, splits those worth it, and goes on with
their children: a whole level at a time, or, when the number of leaves is limited, the most
profitable node first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost.tree import kernels
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree
from badacost.tree.threads import Threads
from badacost.validation import number_of_features

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
Criterion = Literal["gini", "entropy"]
DrawPer = Literal["node", "level"]

_CRITERIA = {"gini": kernels.GINI, "entropy": kernels.ENTROPY}
_LEAST_GAIN = 1e-10  # relative to the weight of the node, as in the reference
_LEAST_FACTOR = 1e-4  # of a class in the splits: cheap classes must still be told apart
_MOST_DRAWN_CELLS = 4_000_000
_BINCOUNT_ROWS = 65_536
_PARTS_PER_THREAD = 4
_LEAST_GRAIN = 16


@dataclass(frozen=True)
class TreeShape:
    """Limits of the growth; None means no limit.

    `n_drawn` features are drawn at each node, or at each level for all its nodes: on wide data
    the nodes of a level then share what they read from memory.
    """

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    n_drawn: int | None = None
    draw_per: DrawPer = "node"
    criterion: Criterion = "gini"

    @classmethod
    def of(cls, estimator: Any, n_features: int) -> TreeShape:
        """Read the limits off the parameters of an estimator."""
        return cls(
            max_depth=estimator.max_depth,
            max_leaf_nodes=estimator.max_leaf_nodes,
            min_samples_split=estimator.min_samples_split,
            min_samples_leaf=estimator.min_samples_leaf,
            n_drawn=number_of_features(estimator.max_features, n_features),
            criterion=estimator.criterion,
        )


class _Splits(NamedTuple):
    """The best split of every node of a batch; a gain of zero or less means that there is none.

    Kernels put the score of the split in the place of the gain.
    """

    gain: FloatArray
    feature: IndexArray
    position: IndexArray
    missing_left: NDArray[np.bool_]

    def of(self, chosen: NDArray[np.bool_] | slice) -> _Splits:
        columns: list[Any] = [column[chosen] for column in self]
        return _Splits(*columns)


class _Nodes:
    """The nodes of a growing tree as columns, numbered in the order of their making."""

    def __init__(self, n_classes: int):
        self.n = 0
        self._columns = {
            "start": np.zeros(64, np.int64),
            "end": np.zeros(64, np.int64),
            "depth": np.zeros(64, np.int64),
            "totals": np.zeros((64, n_classes)),
            "left": np.zeros(64, np.int64),
            "feature": np.zeros(64, np.int64),
            "position": np.zeros(64, np.int64),
            "missing_left": np.ones(64, bool),
            "gain": np.zeros(64),
        }

    def __getattr__(self, name: str) -> Any:
        return self._columns[name][: self.n]

    def add(
        self, start: IndexArray, end: IndexArray, depth: IndexArray, totals: FloatArray
    ) -> IndexArray:
        """Append leaves and return their numbers."""
        numbers = np.arange(self.n, self.n + len(start))
        self.n += len(start)
        if self.n > len(self._columns["start"]):
            self._columns = {
                name: np.resize(column, (2 * self.n, *column.shape[1:]))
                for name, column in self._columns.items()
            }
        columns = self._columns
        columns["start"][numbers] = start
        columns["end"][numbers] = end
        columns["depth"][numbers] = depth
        columns["totals"][numbers] = totals
        columns["left"][numbers] = numbers
        columns["feature"][numbers] = 0
        columns["missing_left"][numbers] = True
        columns["gain"][numbers] = 0.0
        return numbers


class GrownTree(NamedTuple):
    """A tree, the class weights of its nodes (n_nodes, K), the samples used, and their leaves."""

    tree: Tree
    class_weights: FloatArray
    samples: NDArray[np.uint32]
    leaves: NDArray[np.unsignedinteger]


class TreeGrower:
    """Grows trees on one training set.

    Parameters
    ----------
    data : BinnedData
        The binned samples.
    y : ndarray of shape (n_samples,)
        Classes 0..K-1.
    n_classes : int
        Number of classes K.
    shape : TreeShape
        Limits of the growth.
    threads : Threads, optional
        Threads to share the features among; the result does not depend on their number.
    """

    def __init__(
        self,
        data: BinnedData,
        y: NDArray[np.integer],
        n_classes: int,
        shape: TreeShape,
        threads: Threads | None = None,
    ):
        self.data = data
        self.y = y.astype(np.min_scalar_type(n_classes), copy=False)
        self.n_classes = n_classes
        self.shape = shape
        self.threads = threads or Threads()
        self._n_bins = data.mapper.n_bins
        self._large_from = np.inf
        if data.bins.dtype == np.uint8:
            # Below this the scan of all cells of a histogram costs more than sorting the samples.
            n_codes = int(np.max(self._n_bins + data.mapper.has_missing))
            self._large_from = max(256.0, n_codes * (1.0 + n_classes / 8.0))

    def grow(
        self,
        weights: FloatArray,
        costs: FloatArray,
        *,
        rows: NDArray[np.integer] | None = None,
        seed: int = 0,
    ) -> GrownTree:
        """Grow a tree.

        Parameters
        ----------
        weights : ndarray of shape (n_samples,)
            Sample weights; samples whose weight is zero in single precision are left out.
        costs : ndarray of shape (K, K)
            ``C[truth, prediction]``: rows steer the splits, the full matrix the labels of leaves.
        rows : ndarray, optional
            Samples to use; all by default.
        seed : int
            Seed of the drawing of features.
        """
        weights32 = weights.astype(np.float32)
        # A copy of the rows, even if they have the type: splits permute it.
        samples = np.arange(len(weights), dtype=np.uint32) if rows is None else rows
        samples = samples.astype(np.uint32, copy=rows is not None)
        alive = (weights32 if rows is None else weights32[samples]) > 0.0
        self._order = samples if alive.all() else samples[alive]
        self._y = self.y[self._order]
        row_sums = costs.sum(axis=1)
        factors = np.maximum(self.n_classes * row_sums / row_sums.sum(), _LEAST_FACTOR)
        in_order = rows is None and len(self._order) == len(weights32)
        self._w = weights32 if in_order else weights32[self._order]
        if self.shape.criterion == "gini":
            self._factors, self._priors = factors**2, np.ones(self.n_classes)
        else:
            # Altered priors: the factors go into the weights, so that shares stay shares.
            self._factors, self._priors = np.ones(self.n_classes), factors
            self._w *= factors.astype(np.float32)[self._y]
        self._seed = np.uint64(seed)
        nodes = _Nodes(self.n_classes)
        totals = np.zeros((1, self.n_classes))
        for part in range(0, len(self._order), _BINCOUNT_ROWS):  # it copies its arguments
            end = part + _BINCOUNT_ROWS
            totals += np.bincount(self._y[part:end], self._w[part:end], self.n_classes)
        zero = np.zeros(1, np.int64)
        root = nodes.add(zero, zero + len(self._order), zero, totals)
        if self.shape.max_leaf_nodes is None:
            self._grow_by_level(nodes, root)
        else:
            self._grow_best_first(nodes, root, self.shape.max_leaf_nodes)
        grown = self._finish(nodes, costs)
        del self._order, self._y, self._w  # as large as the data of a narrow training set
        return grown

    def _grow_by_level(self, nodes: _Nodes, batch: IndexArray) -> None:
        while len(batch := self._splittable(nodes, batch)):
            splits = self._find(nodes, batch)
            good = splits.gain > _LEAST_GAIN
            batch = self._split(nodes, batch[good], splits.of(good))

    def _grow_best_first(self, nodes: _Nodes, batch: IndexArray, max_leaf_nodes: int) -> None:
        waiting: list[tuple[float, int, _Splits]] = []
        n_leaves = 1
        while n_leaves < max_leaf_nodes:
            batch = self._splittable(nodes, batch)
            splits = self._find(nodes, batch)
            weight = nodes.totals[batch].sum(axis=1)
            for i in np.flatnonzero(splits.gain > _LEAST_GAIN):
                entry = (-splits.gain[i] * weight[i], int(batch[i]), splits.of(slice(i, i + 1)))
                heapq.heappush(waiting, entry)
            if not waiting:
                return
            _, node, split = heapq.heappop(waiting)
            batch = self._split(nodes, np.array([node]), split)
            n_leaves += 1

    def _splittable(self, nodes: _Nodes, batch: IndexArray) -> IndexArray:
        """Those nodes of the batch that the limits allow to split."""
        size = nodes.end[batch] - nodes.start[batch]
        allowed = size >= max(self.shape.min_samples_split, 2 * self.shape.min_samples_leaf)
        allowed &= np.count_nonzero(nodes.totals[batch], axis=1) > 1
        if self.shape.max_depth is not None:
            allowed &= nodes.depth[batch] < self.shape.max_depth
        return batch[allowed]

    def _find(self, nodes: _Nodes, batch: IndexArray) -> _Splits:
        """Best splits of a batch, some hundred nodes at a time to bound the table of draws."""
        step = max(64, _MOST_DRAWN_CELLS // len(self.data.bins))
        parts = [
            self._find_part(nodes, batch[i : i + step]) for i in range(0, max(len(batch), 1), step)
        ]
        return _Splits(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _find_part(self, nodes: _Nodes, batch: IndexArray) -> _Splits:
        found = _Splits(
            np.full(len(batch), -np.inf),
            np.zeros(len(batch), np.int64),
            np.zeros(len(batch), np.int64),
            np.zeros(len(batch), bool),
        )
        large = nodes.end[batch] - nodes.start[batch] >= self._large_from
        for chosen, kernel in (
            (large, kernels.split_large_nodes),
            (~large, kernels.split_small_nodes),
        ):
            if chosen.any():
                best = self._search(kernel, nodes, batch[chosen])
                for column, values in zip(found, best, strict=True):
                    column[chosen] = values
        totals = nodes.totals[batch]
        weight = totals.sum(axis=1)
        return found._replace(gain=(found.gain - self._score(totals, weight)) / weight)

    def _search(self, kernel: Any, nodes: _Nodes, batch: IndexArray) -> _Splits:
        """Best splits of nodes by one kernel, the features shared among the threads."""
        n_features, n_nodes = len(self.data.bins), len(batch)
        if self.shape.n_drawn is None or self.shape.n_drawn >= n_features:
            drawn = np.ones((n_features, n_nodes), bool)
        else:
            drawn = np.zeros((n_features, n_nodes), bool)
            draws = batch if self.shape.draw_per == "node" else nodes.depth[batch]
            kernels.draw_features(self._seed, draws, self.shape.n_drawn, drawn)
        start, end, totals = nodes.start[batch], nodes.end[batch], nodes.totals[batch]
        criterion = _CRITERIA[self.shape.criterion]

        def search(first: int, last: int) -> _Splits:
            part = _Splits(
                np.empty(n_nodes),
                np.zeros(n_nodes, np.int64),
                np.zeros(n_nodes, np.int64),
                np.zeros(n_nodes, bool),
            )
            kernel(
                self.data.bins, self._n_bins, self.data.mapper.has_missing, self._order, self._y,
                self._w, start, end, totals, self._factors, drawn, criterion,
                self.shape.min_samples_leaf, first, last, *part,
            )  # fmt: skip
            return part

        # More parts than threads: drawn features are not spread evenly, nor are cores alike.
        grain = -(-n_features // (_PARTS_PER_THREAD * self.threads.n_threads))
        grain = n_features if self.threads.n_threads == 1 else max(grain, _LEAST_GRAIN)
        best, *others = self.threads.map(search, n_features, grain)
        for other in others:
            better = other.gain > best.gain
            for column, candidate in zip(best, other, strict=True):
                column[better] = candidate[better]
        return best

    def _score(self, totals: FloatArray, weight: FloatArray) -> FloatArray:
        """Score of unsplit nodes, on the scale of the kernels."""
        if self.shape.criterion == "gini":
            return np.asarray((self._factors * totals**2).sum(axis=1) / weight)
        logs = np.log(np.where(totals > 0.0, totals, 1.0))
        return np.asarray((totals * logs).sum(axis=1) - weight * np.log(weight))

    def _split(self, nodes: _Nodes, batch: IndexArray, splits: _Splits) -> IndexArray:
        """Split every node of the batch; return the numbers of the children."""
        start, end = nodes.start[batch], nodes.end[batch]
        middle = np.empty(len(batch), np.int64)
        totals = np.empty((2 * len(batch), self.n_classes))
        any_missing = np.empty(len(batch), bool)
        kernels.partition(
            self.data.bins, self._n_bins, self._order, self._y, self._w, start, end,
            splits.feature, splits.position, splits.missing_left, middle, totals, any_missing,
        )  # fmt: skip
        # Values missing at prediction only go the way of the larger child.
        larger_left = middle - start >= end - middle
        missing_left = np.where(any_missing, splits.missing_left, larger_left)
        children = nodes.add(
            np.column_stack([start, middle]).ravel(),
            np.column_stack([middle, end]).ravel(),
            np.repeat(nodes.depth[batch] + 1, 2),
            totals,
        )
        nodes.left[batch] = children[::2]
        nodes.feature[batch] = splits.feature
        nodes.position[batch] = splits.position
        nodes.missing_left[batch] = missing_left
        nodes.gain[batch] = splits.gain
        return children

    def _finish(self, nodes: _Nodes, costs: FloatArray) -> GrownTree:
        leaf = nodes.left == np.arange(nodes.n)
        class_weights = nodes.totals / self._priors
        weight = class_weights.sum(axis=1)
        labels = cheapest_labels(class_weights / weight[:, None], costs)
        mapper = self.data.mapper
        threshold = np.full(nodes.n, np.nan)
        for node in np.flatnonzero(~leaf):
            threshold[node] = mapper.threshold(nodes.feature[node], nodes.position[node])
        tree = Tree(
            feature=nodes.feature.astype(np.int32),
            threshold=threshold,
            left=nodes.left.astype(np.int32),
            missing_left=nodes.missing_left.copy(),
            value=labels,
            gain=nodes.gain.astype(np.float32),
            count=(nodes.end - nodes.start).astype(np.int32),
            weight=weight.astype(np.float32),
        )
        leaves = np.flatnonzero(leaf)
        leaves = leaves[np.argsort(nodes.start[leaves])]
        numbers = leaves.astype(np.min_scalar_type(nodes.n))
        reached = np.repeat(numbers, nodes.end[leaves] - nodes.start[leaves])
        return GrownTree(tree, class_weights, self._order, reached)


def cheapest_labels(shares: FloatArray, costs: FloatArray) -> NDArray[np.int32]:
    """Label of least expected cost for each row of class shares.

    Compared in single precision, lowest label first, as the reference does: with equal weights
    many classes cost the same, and rounding in the last bits must not choose among them.
    """
    # A power of two keeps the digits, and what single precision can hold.
    within_range = np.ldexp(costs, -np.frexp(costs.max())[1])
    return np.argmin((shares @ within_range).astype(np.float32), axis=1).astype(np.int32)
