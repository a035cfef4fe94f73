"""`BoxTree`: the overlaps of many boxes with many others, without comparing all of them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray
from badacost.detection import box_tree_kernels
from badacost.io.budget import Budget, BudgetError

Denominator = Literal["union", "min", "first"]
DENOMINATORS = {
    "union": box_tree_kernels.UNION,
    "min": box_tree_kernels.SMALLER,
    "first": box_tree_kernels.FIRST,
}
_BYTES_OF_PAIR = 40  # with those of sorting
_NONE = np.empty(0, np.int64)


class Pairs(NamedTuple):
    """Queries and boxes that overlap, sorted by both, and by how much."""

    queries: IndexArray
    boxes: IndexArray
    overlaps: FloatArray


class BoxTree:
    """Boxes, shape (n, 4), that others are compared with; `query` boxes are the first of a pair."""

    def __init__(self, boxes: FloatArray):
        boxes = np.ascontiguousarray(boxes, np.float64)
        self._tree = box_tree_kernels.filled_tree(boxes, sorted_coordinates(boxes))

    def largest(
        self, queries: FloatArray, denominator: Denominator = "union"
    ) -> tuple[FloatArray, IndexArray]:
        """Return the largest overlap of each query, and the last box that has it; -1 for none."""
        values, owners = box_tree_kernels.largest(
            np.ascontiguousarray(queries, np.float64), *self._tree, DENOMINATORS[denominator]
        )
        return values, owners

    def counts(
        self, queries: FloatArray, overlap: float, denominator: Denominator = "union"
    ) -> IndexArray:
        """Return how many boxes overlap each query by more than `overlap`."""
        return self._pairs(queries, overlap, denominator, _NONE, _NONE, np.empty(0))

    def pairs(
        self, queries: FloatArray, overlap: float, denominator: Denominator = "union"
    ) -> Pairs:
        """Return what overlaps by more than `overlap`.

        A `BudgetError` is raised where these are more than fit into memory.
        """
        counts = self.counts(queries, overlap, denominator)
        ends = np.cumsum(counts)
        n_pairs = int(ends[-1]) if len(ends) else 0
        check_pairs(n_pairs, f"{n_pairs} pairs of boxes that overlap")
        boxes, values = np.empty(n_pairs, np.int64), np.empty(n_pairs)
        if n_pairs:
            self._pairs(queries, overlap, denominator, ends - counts, boxes, values)
        numbers = np.repeat(np.arange(len(counts)), counts)
        order = np.lexsort((_compact(boxes), _compact(numbers)))
        return Pairs(numbers, boxes[order], values[order])

    def _pairs(
        self,
        queries: FloatArray,
        overlap: float,
        denominator: Denominator,
        starts: IndexArray,
        boxes: IndexArray,
        values: FloatArray,
    ) -> IndexArray:
        counts: IndexArray = box_tree_kernels.pairs(
            np.ascontiguousarray(queries, np.float64),
            *self._tree,
            float(overlap),
            DENOMINATORS[denominator],
            starts,
            boxes,
            values,
        )
        return counts


def _compact(numbers: IndexArray) -> NDArray[np.integer[Any]]:
    """Return small numbers in 16 bits, which numpy sorts several times as fast."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 2**16 else numbers


def check_pairs(n_pairs: int, what: str) -> None:
    """Refuse pairs of boxes that would take too much memory."""
    try:
        Budget.of(None).check(_BYTES_OF_PAIR * n_pairs, what)
    except BudgetError as error:
        raise BudgetError(f"{error}.") from None


def sorted_coordinates(boxes: FloatArray, groups: IndexArray | None = None) -> NDArray[np.int64]:
    """Return the boxes sorted by each coordinate, (4, n), those of a group staying together."""
    keys = () if groups is None else (groups,)
    return np.stack([np.lexsort((column, *keys)) for column in boxes.T]).astype(np.int64)
