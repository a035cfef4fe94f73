"""Trained trees as flat arrays: everything that predicts, saves or explains works on these.

A sample goes to the right child of a node if ``x >= threshold``, or if x is missing and missing
values go right; the right child stands next to the left one. A leaf is its own left child, with a
threshold of NaN. Each leaf points to a row of a table of score vectors, and a tree has a weight:
"add weight times this row to the scores of the sample" is the one operation for every kind of tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from badacost.tree import forest_kernels
from badacost.tree.threads import Threads

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of one tree; children are numbered from the root, which is node 0.

    Attributes
    ----------
    feature, threshold, left, missing_left : ndarray of shape (n_nodes,)
        The test of each node, and its left child (itself for a leaf).
    value : ndarray of shape (n_nodes,)
        Row of the table of scores.
    gain, count, weight : ndarray of shape (n_nodes,)
        What the split gained per unit of weight, training samples, their total weight.

    Examples
    --------
    >>> from badacost import BAdaCostClassifier
    >>> model = BAdaCostClassifier(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> tree = model.forest_.trees()[0]
    >>> tree.threshold  # leaves have none
    array([2.5, nan, nan])
    >>> tree.left.tolist(), tree.count.tolist()
    ([1, 1, 2], [4, 2, 2])
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    missing_left: NDArray[np.bool_]
    value: IntArray
    gain: NDArray[np.float32]
    count: IntArray
    weight: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Forest(Tree):
    """Trees one after the other; the arrays of `Tree`, with children counted from each root.

    Attributes
    ----------
    offsets : ndarray of shape (n_trees + 1,)
        Where the nodes of each tree begin.
    tree_weights : ndarray of shape (n_trees,)
        Factor of each tree.
    table : ndarray of shape (n_rows, n_outputs)
        Score vectors that leaves refer to.
    n_features : int
        Number of columns expected.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost import BAdaCostClassifier
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> forest = BAdaCostClassifier([[0, 1], [5, 0]]).fit(X, [0, 0, 1, 1]).forest_
    >>> forest.n_trees, forest.is_leaf
    (1, array([False,  True,  True]))
    >>> forest.apply(X).ravel().tolist()  # leaves
    [1, 1, 2, 2]
    >>> forest.accumulate(X).argmin(axis=1)  # the label of the least cost score
    array([0, 0, 1, 1])
    """

    offsets: NDArray[np.int64]
    tree_weights: FloatArray
    table: FloatArray
    n_features: int
    depths: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depths", self._checked_depths())

    @classmethod
    def from_trees(
        cls, trees: Sequence[Tree], tree_weights: FloatArray, table: FloatArray, n_features: int
    ) -> Forest:
        """Join trees that share one table."""
        sizes = [len(tree.feature) for tree in trees]
        nodes = {
            item.name: np.concatenate([getattr(tree, item.name) for tree in trees])
            for item in fields(Tree)
        }
        return cls(
            **nodes,
            offsets=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            tree_weights=np.asarray(tree_weights, dtype=np.float64),
            table=np.ascontiguousarray(table, dtype=np.float64),
            n_features=n_features,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_weights)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves, shape (n_nodes,)."""
        return np.isnan(self.threshold)

    def trees(self) -> list[Tree]:
        """The trees, one by one."""
        return [
            Tree(**{item.name: getattr(self, item.name)[a:b] for item in fields(Tree)})
            for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]

    def first(self, n_trees: int) -> Forest:
        """The forest of the first `n_trees` trees.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BAdaCostClassifier(n_estimators=5, max_depth=1).fit(X, y)
        >>> model.forest_.first(2).n_trees
        2
        """
        end = self.offsets[n_trees]
        return replace(
            self,
            **{item.name: getattr(self, item.name)[:end] for item in fields(Tree)},
            offsets=self.offsets[: n_trees + 1],
            tree_weights=self.tree_weights[:n_trees],
        )

    def accumulate(
        self,
        X: NDArray[np.floating],
        scores: FloatArray | None = None,
        *,
        first_tree: int = 0,
        last_tree: int | None = None,
        threads: Threads | None = None,
    ) -> FloatArray:
        """Add the scores of the trees ``first_tree .. last_tree`` to `scores` and return it.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Samples.
        scores : ndarray of shape (n_samples, n_outputs), optional
            Where to add; zeros if not given.
        first_tree, last_tree : int
            Range of trees; all of them by default.
        threads : Threads, optional
            Threads to share the rows among.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BAdaCostClassifier(n_estimators=5, max_depth=1).fit(X, y)
        >>> scores = model.forest_.accumulate(X, last_tree=3)
        >>> scores = model.forest_.accumulate(X, scores, first_tree=3)
        >>> bool((scores == model.predict_costs(X)).all())
        True
        """
        if scores is None:
            scores = np.zeros((len(X), self.table.shape[1]))
        last = self.n_trees if last_tree is None else last_tree

        def add(row0: int, row1: int) -> None:
            forest_kernels.accumulate(
                X, self.feature, self.threshold, self.left, self.missing_left, self.value,
                self.offsets, self.depths, self.tree_weights, self.table, first_tree, last, row0,
                row1, scores,
            )  # fmt: skip

        (threads or Threads()).map(add, len(X))
        return scores

    def apply(self, X: NDArray[np.floating], threads: Threads | None = None) -> IntArray:
        """Return the leaf of each sample in each tree, shape (n_samples, n_trees)."""
        out = np.empty((len(X), self.n_trees), dtype=np.int32)

        def fill(row0: int, row1: int) -> None:
            forest_kernels.leaves(
                X, self.feature, self.threshold, self.left, self.missing_left, self.offsets,
                self.depths, row0, row1, out,
            )  # fmt: skip

        (threads or Threads()).map(fill, len(X))
        return out

    def feature_importances(self) -> FloatArray:
        """Share of each feature in the weighted gains of all splits, summing to one."""
        sizes = np.diff(self.offsets)
        gains = self.gain.astype(np.float64) * self.weight * np.repeat(self.tree_weights, sizes)
        totals = np.bincount(self.feature, gains, self.n_features).astype(np.float64)
        return totals / (totals.sum() or 1.0)

    def _checked_depths(self) -> NDArray[np.int64]:
        """Levels of tests of each tree.

        Raises ValueError if an index would lead a kernel outside of its array, so that a forest
        from a damaged or hostile file is never walked.
        """
        n_nodes, n_trees = len(self.feature), len(self.tree_weights)
        lengths = {len(getattr(self, item.name)) for item in fields(Tree)}
        if lengths != {n_nodes} or len(self.offsets) != n_trees + 1:
            raise ValueError("The arrays of the forest do not have the same length.")
        # Compared, not subtracted: differences of hostile offsets can overflow to valid sizes.
        ordered = (self.offsets[:-1] < self.offsets[1:]).all()
        if self.offsets[0] != 0 or self.offsets[-1] != n_nodes or not ordered:
            raise ValueError("The trees of the forest do not cover its nodes.")
        sizes = np.diff(self.offsets)
        if n_nodes and (self.feature.min() < 0 or self.feature.max() >= self.n_features):
            raise ValueError(f"A node tests a feature outside of 0..{self.n_features - 1}.")
        if n_nodes and (self.value.min() < 0 or self.value.max() >= len(self.table)):
            raise ValueError(f"A leaf refers to a row outside of 0..{len(self.table) - 1}.")
        if not (np.isfinite(self.table).all() and np.isfinite(self.tree_weights).all()):
            raise ValueError("The forest has weights or scores that are not finite.")
        if not (np.isfinite(self.gain).all() and np.isfinite(self.weight).all()):
            raise ValueError("The forest has gains or node weights that are not finite.")
        number = np.arange(n_nodes) - np.repeat(self.offsets[:-1], sizes)
        leaf = self.is_leaf
        if (self.left[leaf] != number[leaf]).any() or not self.missing_left[leaf].all():
            raise ValueError("A leaf of the forest is not its own left child.")
        if (self.left[~leaf] <= number[~leaf]).any() or (
            self.left[~leaf] >= np.repeat(sizes, sizes)[~leaf] - 1
        ).any():
            raise ValueError("A node of the forest has a child before it or outside of its tree.")
        return _depths(self.left, leaf, self.offsets)


def _depths(
    left: IntArray, leaf: NDArray[np.bool_], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the levels of tests of each tree, in O(n_nodes log depth) whatever their shape.

    Raises ValueError unless each node but the roots has exactly one parent.
    """
    inner = np.flatnonzero(~leaf)
    child = np.repeat(offsets[:-1], np.diff(offsets))[inner] + left[inner]
    n_parents = np.bincount(np.concatenate([child, child + 1]), minlength=len(left))
    n_parents[offsets[:-1]] += 1
    if (n_parents != 1).any():
        raise ValueError("A node of the forest does not have exactly one parent.")
    ancestor = np.arange(len(left))
    ancestor[child] = ancestor[child + 1] = inner
    levels = (ancestor != np.arange(len(left))).astype(np.int64)  # from each node to its ancestor
    while levels[ancestor].any():
        levels += levels[ancestor]
        ancestor = ancestor[ancestor]
    return np.maximum.reduceat(levels, offsets[:-1])
