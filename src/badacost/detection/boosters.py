"""Boosters of detection forests: binned windows in, trees out, one at a time.

`CostBooster` grows the label trees of BAdaCost (and of SAMME, with 0|1 costs) for the background
and all views together; `RealBooster` the real-valued trees of AdaBoost for one view against the
background. Forest and weights of the windows are all that a booster needs to go on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from badacost.boosting.learners import TreeLearner
from badacost.boosting.reweighting import Reweighting, Rule
from badacost.costs import scale_costs
from badacost.loss import cost_margins
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Forest, Tree
from badacost.tree.grower import GrownTree, TreeGrower, TreeShape
from badacost.tree.threads import Threads

FloatArray = NDArray[np.float64]
Labels = NDArray[np.integer]
BACKGROUND = 0
_MOST_LOG_ODDS = 4.0
_LEAST_LOG_LOSS = float(np.log(1e-40))


class Booster(Protocol):
    """Grows a forest tree by tree."""

    @property
    def log_weights(self) -> FloatArray:
        """Logarithms of the weights of the windows, up to a constant."""

    @property
    def n_trees(self) -> int:
        """Number of trees so far."""

    def grow(self) -> bool:
        """Add a tree; False if no further one is worth adding."""

    def forest(self) -> Forest:
        """The trees so far; their table has a column for each view."""


class CostBooster:
    """BAdaCost: label trees for the background, class 0, and the views.

    Parameters
    ----------
    data : BinnedData
        Windows in bins.
    y : ndarray of shape (n_windows,)
        Classes.
    costs : ndarray of shape (K, K)
        ``C[truth, prediction]``, scaled as the authors do.
    shape : TreeShape
        Limits of the trees.
    learning_rate : float
        Factor of every step.
    seed : int
        Seed of the features drawn at each node.
    threads : Threads
        Threads to share the work among.
    resumed : tuple of Forest and ndarray, optional
        Forest and logarithms of the weights of an earlier booster, to go on with.
    """

    def __init__(
        self,
        data: BinnedData,
        y: Labels,
        costs: FloatArray,
        *,
        shape: TreeShape,
        learning_rate: float,
        seed: int,
        threads: Threads,
        resumed: tuple[Forest, FloatArray] | None = None,
    ):
        self._margins = cost_margins(scale_costs(costs, "reference"))
        self._n_features = len(data.bins)
        learner = _BinnedTreeLearner(data, y, len(costs), shape, threads)
        self._descent = Reweighting(
            learner,
            y,
            np.ones(len(y)),
            Rule(self._margins),
            learning_rate=learning_rate,
            subsample=1.0,
            seed=seed,
            random=shape.n_drawn is not None,
        )
        self._trees: list[Tree] = []
        self._steps: list[float] = []
        if resumed is not None:
            forest, log_weights = resumed
            self._descent.log_weights = log_weights.copy()
            self._trees, self._steps = forest.trees(), forest.tree_weights.tolist()

    @property
    def log_weights(self) -> FloatArray:
        """Logarithms of the weights of the windows."""
        return self._descent.log_weights

    @property
    def n_trees(self) -> int:
        """Number of trees so far."""
        return len(self._trees)

    def grow(self) -> bool:
        """Add a tree; False if no further one is worth adding."""
        stage = self._descent.fit(self.n_trees)
        if stage.reason == "useless" and self._trees:
            return False
        self._descent.add(stage)
        self._trees += stage.models
        self._steps += stage.steps
        return stage.reason is None

    def forest(self) -> Forest:
        """The trees so far: a vote for a label adds ``c_background - c_view`` to each view."""
        table = self._margins[BACKGROUND][:, None] - self._margins[BACKGROUND + 1 :].T
        return Forest.from_trees(self._trees, np.array(self._steps), table, self._n_features)


class RealBooster:
    """Real AdaBoost: leaves hold half the log-odds of the object against the background.

    Parameters
    ----------
    data : BinnedData
        Windows in bins.
    y : ndarray of shape (n_windows,)
        0 for background, 1 for the object.
    shape : TreeShape
        Limits of the trees.
    seed : int
        Seed of the features drawn at each node.
    threads : Threads
        Threads to share the work among.
    resumed : tuple of Forest and ndarray, optional
        Forest and logarithms of the weights of an earlier booster, to go on with.
    """

    def __init__(
        self,
        data: BinnedData,
        y: Labels,
        *,
        shape: TreeShape,
        seed: int,
        threads: Threads,
        resumed: tuple[Forest, FloatArray] | None = None,
    ):
        self._grower = TreeGrower(data, y, 2, shape, threads)
        self._n_features = len(data.bins)
        self._signs = np.where(y == BACKGROUND, -1.0, 1.0)
        self._seed = seed
        self._trees: list[Tree] = []
        self._leaf_values: list[FloatArray] = []
        # Both classes weigh the same in the beginning.
        self.log_weights = -np.log(2.0 * np.bincount(y, minlength=2)[y])
        if resumed is not None:
            forest, self.log_weights = resumed
            self._trees = forest.trees()
            self._leaf_values = np.split(forest.table[:, 0], forest.offsets[1:-1])

    @property
    def n_trees(self) -> int:
        """Number of trees so far."""
        return len(self._trees)

    def grow(self) -> bool:
        """Add a tree; False once the windows are separated."""
        largest = float(self.log_weights.max())
        weights = np.exp(self.log_weights - largest)
        if largest + np.log(weights.sum()) < _LEAST_LOG_LOSS:
            return False
        rng = np.random.default_rng([self._seed, self.n_trees])
        grown = self._grower.grow(
            weights / weights.sum(), 1.0 - np.eye(2), seed=int(rng.integers(2**63))
        )
        with np.errstate(divide="ignore"):
            odds = 0.5 * np.diff(np.log(grown.class_weights), axis=1)[:, 0]
        values = np.clip(odds, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)
        n_before = sum(map(len, self._leaf_values))
        rows = np.arange(n_before, n_before + len(values), dtype=np.int32)
        self._trees.append(replace(grown.tree, value=rows))
        self._leaf_values.append(values)
        answers = values[_leaves(grown, self._grower.data)]
        self.log_weights = self.log_weights - self._signs * answers
        return True

    def forest(self) -> Forest:
        """The trees so far, with a table of one column."""
        table = np.concatenate(self._leaf_values)[:, None]
        return Forest.from_trees(self._trees, np.ones(self.n_trees), table, self._n_features)


class _BinnedTreeLearner(TreeLearner):
    """The built-in tree for samples that are kept in bins only."""

    def __init__(
        self, data: BinnedData, y: Labels, n_classes: int, shape: TreeShape, threads: Threads
    ):
        no_samples = np.empty((0, len(data.bins)), np.float32)
        super().__init__(no_samples, data, y, n_classes, shape, threads)

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: Labels | None, seed: int
    ) -> tuple[Tree, Labels]:
        """Grow a tree; return it and its labels on all samples."""
        grown = self._grower.grow(weights, costs, rows=rows, seed=seed)
        labels = grown.tree.value.astype(self._grower.y.dtype)
        return grown.tree, labels[_leaves(grown, self._grower.data)]


def _leaves(grown: GrownTree, data: BinnedData) -> NDArray[np.intp]:
    """Leaf of each sample; those whose weight vanished, which the tree did not see, go by bins."""
    leaves = np.full(data.bins.shape[1], -1, np.intp)
    leaves[grown.samples] = grown.leaves
    unseen = np.flatnonzero(leaves < 0)
    if not len(unseen):
        return leaves
    tree, node_of = grown.tree, np.zeros(len(unseen), np.intp)
    for node in np.flatnonzero(~np.isnan(tree.threshold)):  # children have higher numbers
        here = np.flatnonzero(node_of == node)
        feature = tree.feature[node]
        position = np.searchsorted(data.mapper.edges[feature], tree.threshold[node])
        goes_right = data.bins[feature, unseen[here]] > position
        node_of[here] = tree.left[node] + goes_right
    leaves[unseen] = node_of
    return leaves
