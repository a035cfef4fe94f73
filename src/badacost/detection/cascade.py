"""Sliding-window evaluation of a forest, and the thresholds that reject windows early.

The table of a detection forest has one column for each view: how much a leaf speaks for the view
and against the background. Column sums over the trees are the margins of the views, and the score
of a window is the largest of them. For a label tree of BAdaCost, the entry of label l and view k is
the difference of the costs ``c_background - c_k`` that a vote for l makes, so that the score is
``c_background - min c_view``, as in the paper; a real-valued binary tree has one column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_number
from badacost.detection import cascade_kernels
from badacost.detection.pose import PoseRegression
from badacost.tree.forest import Forest

_MAX_SIDE = 4096
_MAX_LABELS = 4096
_MAX_LEVELS = 12
MAX_NODES = 2**24
_WINDOWS_AT_ONCE = 4096
_ROUNDING = 1e-12  # of numbers that are the same but for their last digits


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of a feature map that a cascade kept; arrays have the shape (n_windows,).

    Rows and columns are counted in steps of the window, row by row. A score is the largest margin,
    a label the view that has it. `n_scanned` windows were looked at; on all of them together,
    `n_evaluated` trees were evaluated, which have `n_tests` levels (a tree without any counts as
    one).
    """

    rows: IndexArray
    columns: IndexArray
    scores: FloatArray
    labels: IndexArray
    n_scanned: int
    n_evaluated: int
    n_tests: int


@dataclass(frozen=True, eq=False)
class Cascade:
    """A forest that looks at windows, with a rejection threshold after each tree.

    Attributes
    ----------
    forest : Forest
        Its table has a column for each view. Feature ``(plane * rows + row) * columns + column``
        is a cell of the window.
    window, padded_window : tuple of int
        Height and width of the object, and of what the forest sees, in pixels.
    cell : int
        Pixels of a side of a cell.
    rejections : ndarray of shape (n_trees,)
        A window leaves when its score after the tree is not above this; one number serves for all.
    min_score : float
        Windows that end below are not kept.
    pose : PoseRegression, optional
        Tells the boxes of the objects in the windows that are kept, and their views if it has some:
        then the table has one column, and the forest tells objects from background only.

    Examples
    --------
    >>> from badacost.detection.models import synthetic_cars
    >>> (cascade,) = synthetic_cars().cascades
    >>> cascade.window, cascade.padded_window, cascade.cell
    ((40, 64), (48, 72), 4)
    >>> cascade.n_views, cascade.forest.n_trees
    (8, 256)
    >>> cascade.with_rejections(-1.0).rejections[:3]
    array([-1., -1., -1.])
    """

    forest: Forest
    window: tuple[int, int]
    padded_window: tuple[int, int]
    cell: int
    rejections: FloatArray
    min_score: float = 0.0
    pose: PoseRegression | None = None

    def __post_init__(self) -> None:
        for name in ("window", "padded_window"):
            lengths = getattr(self, name)
            if not isinstance(lengths, tuple) or len(lengths) != 2:
                raise ValueError(f"{name} must be a tuple of two lengths; got {lengths!r}.")
            for length in lengths:
                check_number(name, length, Integral, low=1, high=_MAX_SIDE)
        check_number("cell", self.cell, Integral, low=1, high=min(self.padded_window))
        if any(a > b for a, b in zip(self.window, self.padded_window, strict=True)):
            raise ValueError(
                f"the padded window {self.padded_window} must hold the window {self.window}."
            )
        n_trees, (n_rows, n_columns) = self.forest.n_trees, self.cells
        if n_trees == 0 or self.n_views == 0:
            raise ValueError("a cascade needs at least one tree and one view.")
        if self.forest.n_features == 0 or self.forest.n_features % (n_rows * n_columns):
            raise ValueError(
                f"a window of {n_rows} x {n_columns} cells cannot have {self.forest.n_features} "
                "features."
            )
        rejections = np.array(self.rejections, dtype=np.float64)
        if rejections.ndim == 0:
            rejections = np.full(n_trees, rejections)
        if rejections.shape != (n_trees,) or np.isnan(rejections).any():
            raise ValueError(f"a cascade of {n_trees} trees needs one threshold for each of them.")
        object.__setattr__(self, "rejections", rejections)
        min_score: Any = self.min_score
        if not isinstance(min_score, Real) or math.isnan(min_score):
            raise ValueError("the minimum score of a cascade must be a number.")
        object.__setattr__(self, "min_score", float(min_score))
        largest = (
            float(np.abs(part).max()) for part in (self.forest.tree_weights, self.forest.table)
        )
        if not n_trees * math.prod(largest) < math.inf:
            raise ValueError("the scores of a cascade might not be finite: reduce its weights.")
        if self.pose is not None and (
            len(self.pose.weights) != self.forest.n_features
            or (self.pose.n_views and self.forest.table.shape[1] != 1)
        ):
            raise ValueError(
                "the pose of a cascade does not fit the features or views of its trees."
            )
        if self.forest.table.shape[1] > 1 and len(self.forest.table) > _MAX_LABELS:
            raise ValueError("trees for several views must be trees of labels.")
        # Trees are made complete, which takes a power of two of their depth.
        if self.forest.depths.max() > _MAX_LEVELS:
            raise ValueError(f"the trees of a cascade have at most {_MAX_LEVELS} levels of tests.")
        if self.n_complete_nodes > MAX_NODES:
            raise ValueError(f"the trees of a cascade have at most {MAX_NODES} nodes in all.")

    @property
    def n_views(self) -> int:
        """Number of views."""
        told = 0 if self.pose is None else self.pose.n_views
        return told or self.forest.table.shape[1]

    @property
    def n_complete_nodes(self) -> int:
        """Number of leaves of the trees when they are complete."""
        return int((1 << self.forest.depths).sum())

    @property
    def cells(self) -> tuple[int, int]:
        """Rows and columns of cells of a window."""
        return self.padded_window[0] // self.cell, self.padded_window[1] // self.cell

    @property
    def n_planes(self) -> int:
        """Number of planes of the feature maps."""
        return self.forest.n_features // (self.cells[0] * self.cells[1])

    def grid(self, height: int, width: int, stride: int) -> tuple[int, int]:
        """Rows and columns of windows in a map of so many cells; the stride is in pixels."""
        if stride < 1 or stride % self.cell:
            raise ValueError(f"the stride must be a multiple of {self.cell} pixels.")
        n_rows, n_columns = (
            max(0, (length * self.cell - window) // stride + 1)
            for length, window in zip((height, width), self.padded_window, strict=True)
        )
        return n_rows, n_columns

    def with_rejections(self, rejections: FloatArray | float) -> Cascade:
        """Return the cascade with other thresholds: one for each tree, or the same for all."""
        return replace(self, rejections=np.asarray(rejections, dtype=np.float64))

    def calibrated(self, traces: FloatArray, slack: float = 1e-9) -> Cascade:
        """Return the cascade with the highest thresholds that keep all the given windows.

        Direct backward pruning: after each tree, what is below the lowest score that any window
        which is to be kept has there cannot be one of them.

        Parameters
        ----------
        traces : ndarray of shape (n_windows, n_trees)
            Scores of the windows to keep after each tree, from `Scanner.trace`.
        slack : float
            How far below the lowest score a threshold lies.
        """
        if len(traces) == 0:
            raise ValueError("no windows to calibrate with: give images with objects in them.")
        return self.with_rejections(traces.min(axis=0) - slack)

    def trace(self, features: NDArray[np.float32]) -> FloatArray:
        """Return the scores of windows after each tree, shape (n_windows, n_trees).

        Parameters
        ----------
        features : float32 ndarray of shape (n_windows, n_features)
            Features of the windows.

        Examples
        --------
        >>> import numpy as np
        >>> from badacost.detection.models import synthetic_cars
        >>> (cascade,) = synthetic_cars().cascades
        >>> black = np.zeros((1, cascade.forest.n_features), np.float32)
        >>> cascade.trace(black).shape
        (1, 256)
        >>> bool((cascade.trace(black) > cascade.rejections).all())  # such a window is rejected
        False
        """
        if features.dtype != np.float32 or features.shape[1:] != (self.forest.n_features,):
            raise ValueError(f"features must be float32 of {self.forest.n_features} columns.")
        if features.size >= 2**32:
            raise ValueError("too many windows at once: trace them in parts.")
        traces = np.empty((len(features), self.forest.n_trees))
        cascade_kernels.trace(
            np.ascontiguousarray(features).reshape(-1),
            np.arange(len(features), dtype=np.uint32) * np.uint32(self.forest.n_features),
            self.complete_trees.at(np.arange(self.forest.n_features, dtype=np.uint32)),
            self.leaves,
            traces,
        )
        return traces

    @cached_property
    def complete_trees(self) -> CompleteTrees:
        """The trees in the form that windows are sent through."""
        return CompleteTrees.of(self.forest)

    @cached_property
    def leaves(self) -> tuple[NDArray[Any], ...]:
        """What the leaves of the complete trees do: see `cascade_kernels.scan`."""
        trees, table = self.complete_trees, self.forest.table
        is_common = np.ptp(table, axis=1) <= _ROUNDING * np.abs(table).max()
        common = np.where(is_common, table.max(axis=1), 0.0)
        if table.shape[1] > 1:
            rows = trees.value.astype(np.uint16)
            return np.empty(0), rows, common, is_common, table
        numbers = np.repeat(trees.weight, 1 << trees.depth) * table[trees.value, 0]
        return numbers, np.empty(0, np.uint16), common, is_common, np.empty((0, 0))

    @cached_property
    def n_safe(self) -> int:
        """Number of trees, the first ones, after which no window can be rejected."""
        trees = self.complete_trees
        weights = np.repeat(trees.weight, 1 << trees.depth)
        ends = (self.forest.table.min(axis=1), self.forest.table.max(axis=1))
        lowest = np.minimum(*(weights * end[trees.value] for end in ends))
        lowest = np.minimum.reduceat(lowest, trees.first_leaf.astype(np.int64))
        scores = np.cumsum(lowest - _ROUNDING * np.abs(lowest))
        return int((scores > self.rejections).cumprod().sum())


@dataclass(frozen=True, eq=False)
class CompleteTrees:
    """Trees with all nodes down to their depth: node k has the children 2k + 1 and 2k + 2.

    Attributes
    ----------
    feature, threshold : ndarray of shape (n_inner_nodes,)
        Tests; features with ``x >= threshold`` go right.
    leaf, value : ndarray of shape (n_leaves,)
        Numbers of the leaves among the nodes of the forest, and their rows of the table.
    first_node, first_leaf, depth, weight : ndarray of shape (n_trees,)
        Where each tree begins among the inner nodes and among the leaves, levels, factor.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    leaf: NDArray[np.int32]
    value: NDArray[np.int32]
    first_node: NDArray[np.uint32]
    first_leaf: NDArray[np.uint32]
    depth: NDArray[np.int64]
    weight: FloatArray

    def at(self, offsets: NDArray[np.uint32]) -> tuple[NDArray[Any], ...]:
        """The trees for windows whose features lie at these offsets: see `cascade_kernels.scan`."""
        tests = np.empty(len(self.feature), [("offset", np.uint32), ("threshold", np.float32)])
        tests["offset"], tests["threshold"] = offsets[self.feature], self.threshold
        return tests, self.first_node, self.first_leaf, self.depth, self.weight

    @classmethod
    def of(cls, forest: Forest) -> CompleteTrees:
        """Fill up the trees of a forest: below a leaf there are copies of it."""
        n_leaves = 1 << forest.depths
        first_leaf = np.cumsum(n_leaves) - n_leaves
        first_node = first_leaf - np.arange(forest.n_trees)
        feature = np.zeros((n_leaves - 1).sum(), np.int32)
        threshold = np.full(len(feature), np.nan, np.float32)
        leaf = np.zeros(n_leaves.sum(), np.int32)
        is_leaf, thresholds = forest.is_leaf, _rounded_up(forest.threshold)
        for depth in np.unique(forest.depths):
            trees = np.flatnonzero(forest.depths == depth)
            roots = forest.offsets[trees, None]
            nodes = roots
            for level in range(depth):
                place = first_node[trees, None] + (1 << level) - 1 + np.arange(1 << level)
                feature[place] = forest.feature[nodes]
                threshold[place] = thresholds[nodes]
                left = roots + forest.left[nodes]  # a leaf is its own left child
                right = np.where(is_leaf[nodes], left, left + 1)
                nodes = np.stack([left, right], axis=2).reshape(len(trees), -1)
            leaf[first_leaf[trees, None] + np.arange(1 << depth)] = nodes
        return cls(
            feature,
            threshold,
            leaf,
            forest.value[leaf],
            first_node.astype(np.uint32),
            first_leaf.astype(np.uint32),
            forest.depths,
            forest.tree_weights,
        )


class Scanner:
    """Runs a cascade on a buffer that holds one feature map after the other.

    The buffer, float32, has the shape (n_planes, rows, columns); a feature map is put into its
    first rows and columns.
    """

    def __init__(self, cascade: Cascade, buffer: NDArray[np.float32]):
        if buffer.ndim != 3 or len(buffer) != cascade.n_planes:
            raise ValueError(f"the buffer must have {cascade.n_planes} planes of features.")
        if buffer.dtype != np.float32 or not buffer.flags.c_contiguous:
            raise ValueError("the buffer must be contiguous and of single precision.")
        if buffer.size >= 2**32:
            raise ValueError("the image is too large: reduce it, or use fewer octaves up.")
        self.cascade = cascade
        self.buffer = buffer
        n_rows, n_columns = cascade.cells
        _, height, width = buffer.shape
        plane = np.arange(cascade.n_planes, dtype=np.uint32)[:, None, None] * np.uint32(
            height * width
        )
        row = np.arange(n_rows, dtype=np.uint32)[:, None] * np.uint32(width)
        self._offsets = (plane + row + np.arange(n_columns, dtype=np.uint32)).reshape(-1)
        self._trees = cascade.complete_trees.at(self._offsets)

    def grid(self, height: int, width: int, stride: int) -> tuple[int, int]:
        """Number of rows and columns of windows in a map of so many cells."""
        if height > self.buffer.shape[1] or width > self.buffer.shape[2]:
            raise ValueError(f"a map of {height} x {width} cells is larger than the buffer.")
        return self.cascade.grid(height, width, stride)

    def scan(self, height: int, width: int, stride: int, threads: Threads | None = None) -> Windows:
        """Scan every window of the map in the buffer, which has `height` rows and `width` columns.

        The stride is in pixels, a multiple of the cell. Threads share the rows of windows; they do
        not change the result.
        """
        cascade = self.cascade
        n_rows, n_columns = self.grid(height, width, stride)
        if n_rows * n_columns == 0:
            nowhere = np.empty(0, np.int64)
            return Windows(nowhere, nowhere, np.empty(0), nowhere, 0, 0, 0)

        pitch, step = self.buffer.shape[2], stride // cascade.cell

        def look(first: int, last: int) -> Windows:
            bases, scores, labels, n_evaluated, n_tests = cascade_kernels.scan(
                self.buffer.reshape(-1), pitch, step, first, last, n_columns, self._trees,
                cascade.leaves, cascade.rejections, cascade.n_safe,
            )  # fmt: skip
            kept = np.flatnonzero(scores >= cascade.min_score)
            kept = kept[np.argsort(bases[kept])]
            rows, columns = np.divmod(bases[kept].astype(np.int64) // step, pitch)
            n_scanned = (last - first) * n_columns
            return Windows(
                rows, columns, scores[kept], labels[kept], n_scanned, n_evaluated, n_tests
            )

        grain = max(1, _WINDOWS_AT_ONCE // n_columns) if threads and threads.n_threads > 1 else None
        parts = (threads or Threads()).map(look, n_rows, grain)
        if len(parts) == 1:
            return parts[0]
        return Windows(
            rows=np.concatenate([part.rows for part in parts]),
            columns=np.concatenate([part.columns for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
            n_scanned=sum(part.n_scanned for part in parts),
            n_evaluated=sum(part.n_evaluated for part in parts),
            n_tests=sum(part.n_tests for part in parts),
        )

    def trace(self, rows: IndexArray, columns: IndexArray, stride: int) -> FloatArray:
        """Return the scores of windows after each tree, shape (n_windows, n_trees)."""
        bases = self._checked_bases(rows, columns, stride)
        traces = np.empty((len(bases), self.cascade.forest.n_trees))
        cascade_kernels.trace(
            self.buffer.reshape(-1), bases, self._trees, self.cascade.leaves, traces
        )
        return traces

    def leaves(self, rows: IndexArray, columns: IndexArray, stride: int) -> NDArray[np.int32]:
        """Return the leaf that each tree sends windows to, shape (n_windows, n_trees).

        Leaves are numbers of nodes: indices of `Forest.value` and of the other arrays of nodes.
        """
        bases = self._checked_bases(rows, columns, stride)
        leaves = np.empty((len(bases), self.cascade.forest.n_trees), np.int32)
        cascade_kernels.reach(
            self.buffer.reshape(-1), bases, self._trees, self.cascade.complete_trees.leaf, leaves
        )
        return leaves

    def poses(self, rows: IndexArray, columns: IndexArray, stride: int) -> FloatArray:
        """Return what the pose of the cascade says of windows, shape (n_windows, n_outputs)."""
        pose = self.cascade.pose
        if pose is None:
            raise ValueError("the cascade has no pose.")
        bases = self._checked_bases(rows, columns, stride)
        return pose.of_map(self.buffer.reshape(-1), bases, self._offsets)

    def _checked_bases(
        self, rows: IndexArray, columns: IndexArray, stride: int
    ) -> NDArray[np.uint32]:
        """Where windows begin in the buffer, if they lie in it."""
        n_rows, n_columns = self.grid(self.buffer.shape[1], self.buffer.shape[2], stride)
        if ((rows < 0) | (rows >= n_rows) | (columns < 0) | (columns >= n_columns)).any():
            raise ValueError("a window lies outside of the buffer.")
        return self._bases(rows, columns, stride)

    def _bases(self, rows: IndexArray, columns: IndexArray, stride: int) -> NDArray[np.uint32]:
        """Where windows begin in the buffer."""
        step = stride // self.cascade.cell
        return ((rows * self.buffer.shape[2] + columns) * step).astype(np.uint32)


def _rounded_up(thresholds: FloatArray) -> NDArray[np.float32]:
    """Thresholds in single precision that separate single precision values in the same way."""
    with np.errstate(over="ignore"):  # infinity is above all other values, as the threshold is
        rounded = thresholds.astype(np.float32)
        too_low = rounded < thresholds
        rounded[too_low] = np.nextafter(rounded[too_low], np.float32(np.inf))
    return rounded
