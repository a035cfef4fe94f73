"""Trained trees as flat arrays, for prediction, files and explanations.

A sample goes to the right child of a node if ``x >= threshold`` or, where categories are tested, if
x is in the set of the node; for missing and unknown values the side is learned. The right child
is stored after the left one. A leaf is its own left child, with a threshold of NaN. Each leaf
refers to a row of a table of score vectors, and a tree has a weight: "add weight times this row to
the scores of the sample" is the one operation for every kind of tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask, RowNumbers, Samples
from badacost._utils.parallel import MIN_ROWS, Threads
from badacost._utils.validation import check_choice
from badacost.tree import forest_kernels, shapley_kernels
from badacost.tree.binning import BinMapper, BinnedData, is_sparse, places_of
from badacost.tree.growth_kernels import N_WORDS, descend

IntArray = NDArray[np.int32]
_NODE_ARRAYS = (
    "feature", "threshold", "left", "missing_left", "value", "gain", "count", "weight",
)  # fmt: skip
_ROWS_AT_ONCE = 1024  # rows that are converted for the kernels together
_MIN_THREADED = 256  # rows for each thread in predictions
_MIN_EXPLAINED = 32  # rows for each thread in explanations
_MAX_DEPTH_EXPLAINED = 512  # memory and time grow with its square


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of trees, see `Tree`."""

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    missing_left: Mask
    value: IntArray
    gain: NDArray[np.float32]
    count: IntArray
    weight: NDArray[np.float32]
    category_set: IntArray | None = None
    sets: NDArray[np.uint32] | None = None

    @property
    def is_leaf(self) -> Mask:
        """Which nodes are leaves, shape (n_nodes,)."""
        return np.isnan(self.threshold)


@dataclass(frozen=True, eq=False)
class Tree(Nodes):
    """The nodes of one tree; children are numbered from the root, which is node 0.

    Attributes
    ----------
    feature, threshold, left, missing_left : ndarray of shape (n_nodes,)
        The test of each node, and its left child (itself for a leaf).
    value : ndarray of shape (n_nodes,)
        Row of the table of scores.
    gain, count, weight : ndarray of shape (n_nodes,)
        Gain of the split per unit of weight, number of training samples, their total weight.
    category_set : ndarray of shape (n_nodes,) or None
        Row of `sets` where categories are tested, else -1; None if none are.
    sets : ndarray of shape (n_sets, 8) or None
        Bits of the categories that go right.
    position : ndarray of shape (n_nodes,) or None
        Last bin that goes left, in the bins that the tree was grown on; not kept in a forest.

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

    position: IntArray | None = None

    @classmethod
    def from_nodes(
        cls, nodes: NDArray[Any], sets: NDArray[np.uint32] | None, mapper: BinMapper
    ) -> Tree:
        """Make a tree of a grower's nodes; values are the numbers of the nodes."""
        numbers = np.arange(len(nodes), dtype=np.int32)
        inner = nodes["left"] != numbers
        feature, position = nodes["feature"].copy(), nodes["position"].copy()
        threshold = np.full(len(nodes), np.nan)
        threshold[inner] = mapper.thresholds(feature[inner], position[inner])
        category_set = None
        if sets is not None:
            tested = inner & mapper.categorical[feature]
            category_set = _numbered(tested)
            threshold[tested], position[tested], sets = 0.0, 0, sets[tested]
        return cls(
            feature=feature,
            threshold=threshold,
            left=nodes["left"].copy(),
            missing_left=nodes["missing_left"].copy(),
            value=numbers,
            gain=nodes["gain"].astype(np.float32),
            count=(nodes["end"] - nodes["start"]).astype(np.int32),
            weight=nodes["mass"].astype(np.float32),
            category_set=category_set,
            sets=sets,
            position=position,
        )

    def descend(
        self,
        data: BinnedData,
        rows: RowNumbers | None = None,
        table: IntArray | None = None,
        found: IntArray | None = None,
        threads: Threads | None = None,
    ) -> IntArray:
        """Write the leaves of rows of binned data, all by default, into `found` (n,).

        With a `table` (n_nodes,) its entries for these leaves are written.
        """
        if self.position is None:
            raise ValueError("This tree has no positions of bins: use Forest.apply on values.")
        n_rows = data.bins.shape[1]
        rows = np.arange(n_rows) if rows is None else rows
        table = np.arange(len(self.left), dtype=np.int32) if table is None else table
        found = np.zeros(n_rows, np.int32) if found is None else found
        category_set, sets = known_sets(self)
        descend(
            (threads or Threads()).loop(len(rows), MIN_ROWS), data.bins, data.mapper.n_bins, rows,
            self.feature, self.position, self.left, self.missing_left, category_set, sets, table,
            found,
        )  # fmt: skip
        return found


def known_sets(trees: Nodes) -> tuple[IntArray, NDArray[np.uint32]]:
    """`category_set` and `sets` as kernels take them."""
    category_set, sets = trees.category_set, trees.sets
    if category_set is None:
        category_set = np.full(len(trees.left), -1, np.int32)
    if sets is None or not len(sets):
        sets = np.zeros((1, N_WORDS), np.uint32)
    return category_set, sets


def _numbered(tested: Mask) -> IntArray:
    """Numbers of the nodes that test categories, in their order; -1 for others."""
    return np.where(tested, np.cumsum(tested) - 1, -1).astype(np.int32)


class KernelForest(NamedTuple):
    """The arrays of a `Forest` as kernels take them."""

    nodes: NDArray[Any]  # of forest_kernels.NODE
    missing_left: Mask
    category_set: IntArray
    sets: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    depths: NDArray[np.int64]
    symmetric: Mask  # (n_trees,), trees with one test for each level
    value: IntArray
    tree_weights: FloatArray
    table: FloatArray
    categorical: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Forest(Nodes):
    """Several trees in one set of arrays; children are numbered from the root of their tree.

    Attributes
    ----------
    feature, threshold, left, missing_left, value, gain, count, weight : ndarray of shape (n_nodes,)
        See `Tree`.
    offsets : ndarray of shape (n_trees + 1,)
        First node of each tree, and the number of all nodes.
    tree_weights : ndarray of shape (n_trees,)
        Factor of each tree.
    table : ndarray of shape (n_rows, n_outputs)
        Score vectors that leaves refer to.
    n_features : int
        Number of columns expected.
    category_set, sets : ndarray or None
        See `Tree`; None if no feature is categorical.
    categories, category_offsets : ndarray or None
        Known values of the categorical features, sorted, one feature after the other, and the
        index of the first value of each feature, shape (n_features + 1,).

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
    >>> forest.accumulate(X).argmin(axis=1)  # the label of the smallest cost score
    array([0, 0, 1, 1])
    """

    offsets: NDArray[np.int64]
    tree_weights: FloatArray
    table: FloatArray
    n_features: int
    categories: FloatArray | None = None
    category_offsets: NDArray[np.int64] | None = None
    depths: NDArray[np.int64] = field(init=False)

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}  # nothing derived

    def __post_init__(self) -> None:
        self._check()
        self._check_categories()
        object.__setattr__(self, "depths", self._checked_depths())

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[Tree],
        tree_weights: Any,
        table: FloatArray,
        n_features: int,
        mapper: BinMapper | None = None,
    ) -> Forest:
        """Join trees with a common table; the categories are those of the mapper."""
        sizes = [len(tree.feature) for tree in trees]
        arrays = {name: np.concatenate([getattr(t, name) for t in trees]) for name in _NODE_ARRAYS}
        if mapper is not None and mapper.categories:
            given = [known_sets(tree) for tree in trees]
            known = [mapper.categories.get(feature, np.empty(0)) for feature in range(n_features)]
            arrays |= {
                "category_set": _numbered(np.concatenate([numbers for numbers, _ in given]) >= 0),
                "sets": np.concatenate([own[numbers[numbers >= 0]] for numbers, own in given]),
                "categories": np.concatenate(known),
                "category_offsets": np.cumsum([0, *map(len, known)], dtype=np.int64),
            }
        elif any(tree.category_set is not None for tree in trees):
            raise ValueError("Trees that test categories need the bins they were grown on.")
        return cls(
            **arrays,
            offsets=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            tree_weights=np.array(tree_weights, dtype=np.float64),
            table=np.ascontiguousarray(table, dtype=np.float64),
            n_features=n_features,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_weights)

    def trees(self) -> list[Tree]:
        """The trees, one by one."""
        return [
            Tree(**{name: getattr(self, name)[a:b] for name in _NODE_ARRAYS}, **self._sets_of(a, b))
            for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]

    def _sets_of(self, first: int, last: int) -> dict[str, Any]:
        """Sets of categories of the nodes of one tree, numbered from zero."""
        if self.category_set is None or self.sets is None:
            return {}
        numbers = self.category_set[first:last]
        tested = numbers >= 0
        return {"category_set": _numbered(tested), "sets": self.sets[numbers[tested]]}

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
            **{name: getattr(self, name)[:end] for name in _NODE_ARRAYS},
            category_set=None if self.category_set is None else self.category_set[:end],
            offsets=self.offsets[: n_trees + 1],
            tree_weights=self.tree_weights[:n_trees],
        )

    def accumulate(
        self,
        X: Samples,
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
            Scores to add to, in place; zeros by default.
        first_tree, last_tree : int
            Range of trees; all of them by default.
        threads : Threads, optional
            Threads that divide the rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BAdaCostClassifier(n_estimators=5, max_depth=1).fit(X, y)
        >>> scores = model.forest_.accumulate(X, last_tree=3)
        >>> scores = model.forest_.accumulate(X, scores, first_tree=3)
        >>> bool((scores == model.cost_scores(X)).all())
        True
        """
        last = self.n_trees if last_tree is None else last_tree
        scores = self.checked_scores(X, scores, first_tree, last)

        def add(rows: slice, samples: FloatArray) -> None:
            buffers = forest_kernels.block_buffers()
            forest_kernels.accumulate(
                samples, self.kernel_forest, first_tree, last, scores[rows], buffers
            )

        self._over_rows(add, X, threads)
        return scores

    def checked_scores(
        self, X: Samples, scores: FloatArray | None, first_tree: int, last_tree: int
    ) -> FloatArray:
        """Check the arguments of `accumulate`; return the scores to add to."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} columns; got shape {X.shape}.")
        shape = (X.shape[0], self.table.shape[1])
        if not 0 <= first_tree <= last_tree <= self.n_trees:
            raise ValueError(
                f"Trees {first_tree} to {last_tree} are not among {self.n_trees} trees."
            )
        if scores is not None and scores.shape != shape:
            raise ValueError(f"scores must have shape {shape}.")
        return np.zeros(shape) if scores is None else scores

    def apply(self, X: Samples, threads: Threads | None = None) -> IntArray:
        """Return the leaf of each sample in each tree, shape (n_samples, n_trees)."""
        out = np.empty((X.shape[0], self.n_trees), dtype=np.int32)

        def fill(rows: slice, samples: FloatArray) -> None:
            buffers = forest_kernels.block_buffers()
            forest_kernels.leaves(samples, self.kernel_forest, out[rows], buffers)

        self._over_rows(fill, X, threads)
        return out

    def feature_importances(self, kind: Literal["gain", "count"] = "gain") -> FloatArray:
        """Fraction of the weighted gains of all splits, or of their number, for each feature."""
        check_choice("kind", kind, ("gain", "count"))
        if kind == "count":
            totals = np.bincount(self.feature[~self.is_leaf], minlength=self.n_features) + 0.0
        else:
            sizes = np.diff(self.offsets)
            gains = self.gain.astype(np.float64) * self.weight * np.repeat(self.tree_weights, sizes)
            totals = np.bincount(self.feature, gains, self.n_features).astype(np.float64)
        return totals / (totals.sum() or 1.0)

    def contributions(self, X: Samples, threads: Threads | None = None) -> FloatArray:
        """Return the Shapley value of each feature for each score.

        A feature that is not known is averaged out along the trees, by the numbers of training
        samples in the nodes. With `expected_scores` the values of a sample sum to its scores, up to
        rounding.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Samples.
        threads : Threads, optional
            Threads that divide the rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_outputs)
            Contributions.

        Raises
        ------
        ValueError
            Where a tree is deeper than 512.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = BAdaCostClassifier(n_estimators=5, max_depth=2).fit(X, y).forest_
        >>> scores = forest.expected_scores + forest.contributions(X).sum(axis=1)
        >>> bool(np.allclose(scores, forest.accumulate(X)))
        True
        """
        depth = int(self.depths.max(initial=0))
        if depth > _MAX_DEPTH_EXPLAINED:
            raise ValueError(
                f"a tree of depth {depth} is too deep to be explained: fit trees with a max_depth "
                f"of at most {_MAX_DEPTH_EXPLAINED}."
            )
        out = np.empty((X.shape[0], self.n_features, self.table.shape[1]))
        # Polynomials of a degree below the number of features on a path are integrated exactly.
        n_times = (min(depth, self.n_features) + 1) // 2
        nodes, masses = np.polynomial.legendre.leggauss(max(1, n_times))
        times, masses = (nodes + 1.0) / 2.0, masses / 2.0

        def fill(rows: slice, samples: FloatArray) -> None:
            shapley_kernels.contributions(
                samples, self.kernel_forest, self._fractions, depth, times, masses, out[rows]
            )

        self._over_rows(fill, X, threads, _MIN_EXPLAINED)
        return out

    @property
    def expected_scores(self) -> FloatArray:
        """Scores of a sample without known features, shape (n_outputs,)."""
        return shapley_kernels.expectation(self.kernel_forest, self._fractions)

    @cached_property
    def _fractions(self) -> FloatArray:
        """Fraction of the training samples of its parent in each node, shape (n_nodes,)."""
        _, left = self._inner_nodes()
        counts = self.count.astype(np.float64)
        total = counts[left] + counts[left + 1]
        fractions = np.ones(len(counts))
        for child in (left, left + 1):
            halves = np.full(len(child), 0.5)  # of nodes without samples
            fractions[child] = np.divide(counts[child], total, out=halves, where=total > 0.0)
        return fractions

    def _inner_nodes(self) -> tuple[IndexArray, IndexArray]:
        """Nodes with a test, and their left children; both are numbered from the first tree."""
        inner = np.flatnonzero(~self.is_leaf)
        root = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return inner, root[inner] + self.left[inner]

    def _over_rows(
        self, work: Any, X: Samples, threads: Threads | None, min_threaded: int = _MIN_THREADED
    ) -> None:
        """Call `work` on blocks of rows, in the layout and type that kernels are compiled for."""
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} columns; got shape {X.shape}.")

        def convert(first: int, last: int) -> None:
            for start in range(first, last, _ROWS_AT_ONCE):
                rows = slice(start, min(start + _ROWS_AT_ONCE, last))
                given: Any = X[rows]
                samples = given.toarray() if is_sparse(given) else given
                if self.categories is not None:
                    samples = self._with_codes(samples)
                work(rows, np.require(samples, np.float64, ["C", "W", "E"]))

        n_rows = X.shape[0]
        if threads is None or n_rows < 2 * min_threaded:
            convert(0, n_rows)
        else:
            threads.map(convert, n_rows, threads.grain(n_rows, min_threaded))

    def _with_codes(self, samples: Samples) -> FloatArray:
        """Samples with the indices of categories among the known ones, and NaN for unknown ones."""
        coded, limits = samples.astype(np.float64), np.asarray(self.category_offsets)
        for feature in np.flatnonzero(np.diff(limits)):
            known = np.asarray(self.categories)[limits[feature] : limits[feature + 1]]
            places = places_of(known, coded[:, feature])
            coded[:, feature] = np.where(places < len(known), places, np.nan)
        return coded

    @cached_property
    def kernel_forest(self) -> KernelForest:
        """The arrays as kernels take them."""
        nodes = np.empty(len(self.feature), forest_kernels.NODE)
        nodes["threshold"], nodes["feature"] = self.threshold, self.feature
        nodes["left"] = self.left
        category_set, sets = known_sets(self)
        symmetric = self._symmetric(category_set)
        given: tuple[Any, ...] = (
            nodes, self.missing_left, category_set, sets, self.offsets, self.depths, symmetric,
            self.value, self.tree_weights, self.table,
        )  # fmt: skip
        # Copies where they are read-only: for arrays of a memory map, kernels are compiled anew.
        arrays = [np.require(array, requirements="W") for array in given]
        return KernelForest._make([*arrays, self.category_set is not None])

    def _symmetric(self, category_set: IntArray) -> Mask:
        """Which trees test one value in all nodes of a level, shape (n_trees,)."""
        symmetric = np.diff(self.offsets) == 2 ** (self.depths + 1) - 1  # if complete
        for depth in np.unique(self.depths[symmetric]).tolist():
            trees = np.flatnonzero(symmetric & (self.depths == depth))
            widths = 2 ** np.arange(depth)  # of the levels; their first nodes are widths - 1
            nodes = np.arange(2**depth - 1)
            here = self.offsets[trees, None] + nodes
            first = self.offsets[trees, None] + np.repeat(widths - 1, widths)
            equal = (self.left[here] == 2 * nodes + 1) & (category_set[here] < 0)
            equal &= self.feature[here] == self.feature[first]
            equal &= self.threshold[here] == self.threshold[first]
            symmetric[trees] = equal.all(axis=1)
        return symmetric

    def _check(self) -> None:
        """Raise ValueError if an index is outside of its array, as in a corrupt or hostile file."""
        n_nodes = len(self.feature)
        lengths = {len(getattr(self, name)) for name in _NODE_ARRAYS}
        if lengths != {n_nodes} or len(self.offsets) != self.n_trees + 1:
            raise ValueError("The arrays of the forest do not have the same length.")
        # Compared, not subtracted: differences of hostile offsets can overflow to valid sizes.
        ordered = (self.offsets[:-1] < self.offsets[1:]).all()
        if self.offsets[0] != 0 or self.offsets[-1] != n_nodes or not ordered:
            raise ValueError("The trees of the forest do not cover its nodes.")
        if self.feature.min(initial=0) < 0 or self.feature.max(initial=-1) >= self.n_features:
            raise ValueError(f"A node tests a feature outside of 0..{self.n_features - 1}.")
        if self.value.min(initial=0) < 0 or self.value.max(initial=-1) >= len(self.table):
            raise ValueError(f"A leaf refers to a row outside of 0..{len(self.table) - 1}.")
        for name in ("table", "tree_weights", "gain", "weight"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"Values of {name} in the forest are not finite.")
        sizes, leaf = np.diff(self.offsets), self.is_leaf
        number = np.arange(n_nodes) - np.repeat(self.offsets[:-1], sizes)
        if (self.left[leaf] != number[leaf]).any() or not self.missing_left[leaf].all():
            raise ValueError("A leaf of the forest is not its own left child.")
        left, last = self.left[~leaf], np.repeat(sizes, sizes)[~leaf] - 1
        if ((left <= number[~leaf]) | (left >= last)).any():
            raise ValueError("A node of the forest has a child before it or outside of its tree.")

    def _check_categories(self) -> None:
        """Raise ValueError if categories, or their sets, are not as kernels expect them."""
        category_set, sets, known, limits = given = (
            self.category_set, self.sets, self.categories, self.category_offsets,
        )  # fmt: skip
        if all(array is None for array in given):
            return
        if category_set is None or sets is None or known is None or limits is None:
            raise ValueError("The forest lacks one of the arrays that describe categories.")
        if len(category_set) != len(self.feature) or sets.shape[1:] != (N_WORDS,):
            raise ValueError(
                f"category_set must have a number per node, sets must have {N_WORDS} words."
            )
        if category_set.min(initial=-1) < -1 or category_set.max(initial=-1) >= len(sets):
            raise ValueError("A node refers to a set of categories that is not there.")
        if len(limits) != self.n_features + 1 or limits[0] != 0 or limits[-1] != len(known):
            raise ValueError("The categories of the forest do not cover its features.")
        sizes = np.diff(limits)
        if (limits[:-1] > limits[1:]).any() or sizes.max(initial=0) > 32 * N_WORDS:
            raise ValueError("A feature of the forest has too many categories.")
        feature = np.repeat(np.arange(self.n_features), sizes)
        rising = (known[1:] > known[:-1]) | (feature[1:] != feature[:-1])
        if not (np.isfinite(known).all() and rising.all()):
            raise ValueError("The categories of a feature are not increasing.")
        if ((category_set >= 0) != (~self.is_leaf & (sizes[self.feature] > 0))).any():
            raise ValueError("A node does not test what its feature has.")

    def _checked_depths(self) -> NDArray[np.int64]:
        """Levels of tests of each tree, in O(n_nodes log depth) whatever their shape."""
        inner, child = self._inner_nodes()
        n_nodes = len(self.left)
        n_parents = np.bincount(np.concatenate([child, child + 1]), minlength=n_nodes)
        n_parents[self.offsets[:-1]] += 1
        if (n_parents != 1).any():
            raise ValueError("A node of the forest does not have exactly one parent.")
        ancestor = np.arange(n_nodes)
        ancestor[child] = ancestor[child + 1] = inner
        levels = (ancestor != np.arange(n_nodes)).astype(np.int64)  # from node to ancestor
        while levels[ancestor].any():
            levels += levels[ancestor]
            ancestor = ancestor[ancestor]
        return np.maximum.reduceat(levels, self.offsets[:-1])
