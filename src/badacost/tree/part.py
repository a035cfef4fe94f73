"""`TreePart`: some rows of a training set, on which trees grow that see the sums of all parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray, LeafNumbers, Mask, RowNumbers
from badacost.threads import Threads
from badacost.tree import part_kernels
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Tree
from badacost.tree.histogram_kernels import NODE, Summed
from badacost.tree.sums import Rows, WeightedLabels

_NO_NODES = np.empty(0, np.int64)
_NO_UNITS = np.empty(0)


class Splits(NamedTuple):
    """Nodes to divide: their tests, and the numbers of their left children."""

    nodes: IndexArray = _NO_NODES
    lefts: IndexArray = _NO_NODES
    features: IndexArray = _NO_NODES
    positions: IndexArray = _NO_NODES
    missing_left: Mask = np.empty(0, bool)
    sets: NDArray[np.uint32] | None = None  # categories that go right, if there are any


class Question(NamedTuple):
    """What is asked about a growing tree, once the splits are made."""

    splits: Splits = Splits()
    summed: IndexArray = _NO_NODES  # nodes whose histograms are asked for
    units: FloatArray = _NO_UNITS
    features: IndexArray | None = None  # of each of them, (n_summed, n_drawn); None is all
    counted: bool = False  # whether numbers of samples by bin are asked for
    weighed: IndexArray = _NO_NODES  # nodes whose samples and largest weights are asked for
    totalled: IndexArray = _NO_NODES  # nodes whose sums are asked for
    total_units: FloatArray = _NO_UNITS
    leaves: IndexArray = _NO_NODES  # whose sums are asked for in two folds
    leaf_units: tuple[FloatArray, FloatArray] = (_NO_UNITS, _NO_UNITS)


class Answer(NamedTuple):
    """Sums, numbers of samples and maxima over the samples of a part, or of all of them."""

    sizes: IndexArray  # (n_splits, 2), samples of both children
    missing: Mask  # (n_splits,), whether values are missing
    cells: FloatArray  # (n_summed, n_features, n_codes * C)
    counts: IndexArray | None  # (n_summed, n_features, n_codes)
    n_weighed: IndexArray
    largest: NDArray[np.float32]
    totals: FloatArray  # (n_totalled, C)
    leaf_totals: FloatArray  # (2, n_leaves, C)


def add_answers(answers: Sequence[Answer]) -> Answer:
    """What all parts together answer."""
    if len(answers) == 1:
        return answers[0]
    added = {
        name: sum((getattr(answer, name) for answer in answers[1:]), getattr(answers[0], name))
        for name in ("sizes", "cells", "n_weighed", "totals", "leaf_totals")
    }
    counted = [answer.counts for answer in answers if answer.counts is not None]
    counts = np.sum(counted, axis=0) if counted else None
    return Answer(
        missing=np.any([answer.missing for answer in answers], axis=0),
        largest=np.stack([answer.largest for answer in answers]).max(axis=0),
        counts=counts,
        **added,
    )


class _Growing:
    """A tree in progress: its samples, in the order of its nodes."""

    def __init__(self, sums: WeightedLabels | Rows, rows: RowNumbers | None):
        self.width, self.n_columns = sums.width, sums.n_columns
        self.used: Summed = sums.taken(rows)
        self.nodes = np.zeros(64, NODE)
        self.nodes[0]["end"] = len(self.used.order)

    def reserve(self, n_nodes: int) -> None:
        """Make room for nodes up to a number."""
        if n_nodes > len(self.nodes):
            larger = np.zeros(2 * n_nodes, NODE)
            larger[: len(self.nodes)] = self.nodes
            self.nodes = larger


class BinnedPart:
    """Bins of some rows."""

    def __init__(self, data: BinnedData):
        self.data = data

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.data.bins.shape[1]

    def bins_of(self, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
        """Bins of some rows, (n_features, n)."""
        return self.data.bins[:, rows]


class TreePart(BinnedPart):
    """Bins of some rows, and the trees that grow on them."""

    def __init__(self, data: BinnedData, threads: Threads | None = None):
        super().__init__(data)
        self.threads = threads or Threads()
        self._trees: dict[int, _Growing] = {}

    def begin(self, key: int, sums: WeightedLabels | Rows, rows: RowNumbers | None = None) -> None:
        """Begin a tree on some rows, all by default."""
        self._trees[key] = _Growing(sums, rows)

    def end(self) -> None:
        """Let go of all trees."""
        self._trees.clear()

    def ask(self, questions: dict[int, Question]) -> dict[int, Answer]:
        """Answer questions about growing trees."""
        return {key: self._answer(self._trees[key], asked) for key, asked in questions.items()}

    def _answer(self, tree: _Growing, question: Question) -> Answer:
        used, width = tree.used, tree.width
        sizes, missing = self._divide(tree, question.splits)
        cells, counts = self._sum(tree, question)
        n_weighed = np.zeros(len(question.weighed), np.int64)
        largest = np.zeros(len(question.weighed), np.float32)
        part_kernels.weigh(used, tree.nodes, question.weighed, n_weighed, largest)
        totals = np.zeros((len(question.totalled), tree.n_columns))
        part_kernels.total(used, width, tree.nodes, question.totalled, question.total_units, totals)
        leaf_totals = np.zeros((2, len(question.leaves), tree.n_columns))
        if width is None:
            part_kernels.total_finely(
                used, tree.nodes, question.leaves, *question.leaf_units, leaf_totals
            )
        return Answer(sizes, missing, cells, counts, n_weighed, largest, totals, leaf_totals)

    def _divide(self, tree: _Growing, splits: Splits) -> tuple[IndexArray, Mask]:
        sizes = np.zeros((len(splits.nodes), 2), np.int64)
        missing = np.zeros(len(splits.nodes), bool)
        if len(splits.nodes):
            tree.reserve(int(splits.lefts.max()) + 2)
            tree.nodes["feature"][splits.nodes] = splits.features
            tree.nodes["position"][splits.nodes] = splits.positions
            tree.nodes["missing_left"][splits.nodes] = splits.missing_left
            tree.nodes["unit"][splits.nodes] = 1.0
            part_kernels.divide(
                self.data.kernel_data, tree.used, tree.width, tree.n_columns, tree.nodes,
                splits.nodes, splits.lefts, splits.sets, sizes, missing,
            )  # fmt: skip
        return sizes, missing

    def _sum(self, tree: _Growing, question: Question) -> tuple[FloatArray, IndexArray | None]:
        n_features, n_codes = len(self.data.bins), int(self.data.n_codes.max())
        features = np.tile(np.arange(n_features), (len(question.summed), 1))
        if question.features is not None:  # a copy, as what comes from elsewhere may be read-only
            features = np.array(question.features, order="C")
        shape = (len(question.summed), features.shape[1])
        cells = np.zeros((*shape, n_codes * tree.n_columns))
        counts = np.zeros((*shape, n_codes), np.int64) if question.counted else None
        if len(question.summed):
            self.threads.map(
                lambda first, last: part_kernels.sum_nodes(
                    self.data.kernel_data, tree.used, tree.width, tree.nodes, question.summed,
                    question.units, features, first, last, cells,
                    part_kernels.NO_COUNTS if counts is None else counts,
                ),
                shape[1],
            )  # fmt: skip
        return cells, counts

    def leaves(self, tree: Tree) -> LeafNumbers:
        """Leaves of all rows in a finished tree."""
        found = np.empty(self.n_rows, np.min_scalar_type(len(tree.left) - 1))
        self.threads.map(
            lambda first, last: tree.descend(self.data, found, np.arange(first, last)), self.n_rows
        )
        return found
