"""Weak learners: what a boosting round fits, as rows of a table of scores on samples.

A learner is bound to one training set. It fits a model, a tree or any classifier, to sample weights
and costs, and tells the labels that the model gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from badacost.arrays import FloatArray, Labels, LeafNumbers, RowNumbers, Samples
from badacost.large_samples import LargeSamples, blocks_of, is_sparse
from badacost.threads import Threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Forest, Tree
from badacost.tree.gain_kernels import Entropy, Gini
from badacost.tree.grower import Gain, Growth, TreeGrower
from badacost.tree.sampling import RowSketch, draw_rows
from badacost.tree.sums import WeightedLabels
from badacost.validation import number_of_features

Criterion = Literal["gini", "entropy"]
_MAX_LEAVES = 2**28  # of samples in trees of an earlier fit, found in one pass over the samples
_MIN_FACTOR = 1e-4  # of a class in the splits: cheap classes must still be told apart


def growth_of(estimator: Any, n_features: int) -> Growth:
    """Read the limits of trees off the parameters of an estimator."""
    return Growth(
        max_depth=estimator.max_depth,
        max_leaf_nodes=estimator.max_leaf_nodes,
        min_samples_split=estimator.min_samples_split,
        min_samples_leaf=estimator.min_samples_leaf,
        n_drawn=number_of_features(estimator.max_features, n_features),
        order="level" if estimator.max_leaf_nodes is None else "best",
    )


def draw_samples(weights: FloatArray, share: float, key: tuple[int, ...]) -> RowNumbers | None:
    """Draw about a share of the samples to grow a tree on; None is all of them."""
    if share == 1.0:
        return None
    # Trees see weights in single precision: those that vanish in it are not drawn.
    drawn = draw_rows(np.flatnonzero(weights.astype(np.float32)), share, key, 0)
    return drawn if len(drawn) else None


def cheapest_labels(shares: FloatArray, costs: FloatArray) -> NDArray[np.int32]:
    """Label of minimum expected cost for each row of class shares.

    Compared in single precision, lowest label first, as the reference does: with equal weights
    many classes cost the same, and rounding in the last bits must not choose among them.
    """
    # A power of two keeps the digits, and what single precision can hold.
    within_range = np.ldexp(costs, -np.frexp(costs.max())[1])
    with np.errstate(over="ignore"):  # shares of an altered file
        expected = (shares @ within_range).astype(np.float32)
    return np.argmin(expected, axis=1).astype(np.int32)


def label_tree(tree: Tree, class_weights: FloatArray, costs: FloatArray) -> Tree:
    """The tree with the label of minimum expected cost in each leaf."""
    shares = class_weights / class_weights.sum(axis=1, keepdims=True)
    return replace(tree, value=cheapest_labels(shares, costs))


@dataclass(frozen=True, eq=False)
class SplitCosts:
    """How costs ``C[truth, prediction]`` steer the splits of a tree: by a factor for each class."""

    factors: FloatArray
    criterion: Criterion

    @classmethod
    def of(cls, costs: FloatArray, criterion: Criterion) -> SplitCosts:
        """Factors in proportion to the rows of the costs."""
        row_sums = costs.sum(axis=1)
        factors = np.maximum(len(costs) * row_sums / row_sums.sum(), _MIN_FACTOR)
        return cls(factors, criterion)

    @property
    def gain(self) -> Gain:
        """What a split gains."""
        return Gini(self.factors**2) if self.criterion == "gini" else Entropy()

    def alter(self, sums: WeightedLabels) -> WeightedLabels:
        """For the entropy, factors go into the weights, so that shares stay shares."""
        if self.criterion == "gini":
            return sums
        factors = self.factors.astype(np.float32)
        return replace(sums, weights=sums.weights * factors[sums.labels])

    def restore(self, tree: Tree, sums: FloatArray) -> tuple[Tree, FloatArray]:
        """The tree and the class weights of its nodes, without the factors in the weights."""
        if self.criterion == "gini":
            return tree, sums
        sums = sums / self.factors
        return replace(tree, weight=sums.sum(axis=1).astype(np.float32)), sums


class SampleSet:
    """Samples that models are asked about: as bins once there are any, else as they came.

    Trees of an earlier fit, whose bins are not known, need a `mapper` with the same categories. A
    `sketch` of the samples spares a look at them.
    """

    def __init__(self, X: Any, sketch: RowSketch | None = None):
        self.X: Any = X
        self._sketch = sketch
        self.mapper: BinMapper | None = None
        self.data: BinnedData | None = None
        self._expected: list[Tree] = []
        self._leaves: dict[Tree, LeafNumbers] = {}

    def expect(self, models: list[Any]) -> None:
        """Be told of models of an earlier fit, in the order in which `rows` will have them.

        Samples that are not in memory are then read once for many trees.
        """
        if isinstance(self.X, LargeSamples):
            self._expected = models

    def bin(self, estimator: Any, weight: FloatArray | None, threads: Threads) -> BinnedData:
        """Choose bins as the parameters of an estimator say; `weight` steers them."""
        data = self.data = BinnedData.of(
            self.X,
            method=estimator.binning,
            max_bins=estimator.max_bins,
            categories=estimator._columns.codes(),
            sample_weight=weight,
            seed=estimator._seed,
            threads=threads,
            sketch=self._sketch,
        )
        self.mapper, self._sketch = data.mapper, None
        return data

    def bin_like(self, other: SampleSet, threads: Threads) -> None:
        """Put the samples into the bins of others, if these have any, and let go of X."""
        if other.mapper is not None:
            self.data = BinnedData(other.mapper, other.mapper.transform(self.X, threads))
            self.X = None

    def rows(self, model: Any, threads: Threads) -> RowNumbers:
        """Rows of the table of scores that a model gives to the samples."""
        if isinstance(model, CostedClassifier):
            return model.labels(self.X)
        leaves: LeafNumbers
        if model.position is not None and self.data is not None:
            leaves = np.empty(self.data.bins.shape[1], np.min_scalar_type(len(model.left)))
            model.descend(self.data, leaves)
        else:  # of an earlier fit
            if model not in self._leaves:
                self._find_leaves(model, threads)
            leaves = self._leaves.pop(model)
        return model.value[leaves]

    def _find_leaves(self, tree: Tree, threads: Threads) -> None:
        """Find the leaves of a tree of an earlier fit, and of those that are expected after it."""
        n_rows, n_features = self.X.shape
        n_trees = max(1, _MAX_LEAVES // n_rows)
        trees, self._expected = self._expected[:n_trees] or [tree], self._expected[n_trees:]
        table = np.zeros((max(int(tree.value.max()) for tree in trees) + 1, 1))
        ones = np.ones(len(trees))
        forest = Forest.from_trees(trees, ones, table, n_features, self.mapper)
        n_nodes = max(len(tree.left) for tree in trees)
        found = np.empty((len(trees), n_rows), np.min_scalar_type(n_nodes))
        first = 0
        for block in [self.X] if is_sparse(self.X) else blocks_of(self.X):
            last = first + block.shape[0]
            found[:, first:last] = forest.apply(block, threads).T
            first = last
        self._leaves = dict(zip(trees, found, strict=True))


class WeakLearner(Protocol):
    """What a round fits; models are trees or estimators."""

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: RowNumbers | None, seed: int
    ) -> tuple[Any, Labels]:
        """Fit a model on the rows; return it and its labels on all training samples."""


class TreeLearner:
    """The built-in cost-sensitive tree for classes y of 0..K-1."""

    def __init__(self, grower: TreeGrower, y: Labels, n_classes: int, criterion: Criterion):
        self.grower, self.y, self.n_classes = grower, y, n_classes
        self._criterion = criterion

    def grow(
        self, weights: FloatArray, costs: FloatArray, rows: RowNumbers | None, seed: int
    ) -> tuple[Tree, FloatArray, LeafNumbers]:
        """Grow a tree; return it, the class weights of its nodes, and the leaves of all samples.

        The rows of the costs ``C[truth, prediction]`` steer the splits.
        """
        split = SplitCosts.of(costs, self._criterion)
        sums = split.alter(WeightedLabels.of(self.y, weights, self.n_classes))
        grown = self.grower.grow(sums, split.gain, rows=rows, seed=seed)
        return *split.restore(grown.tree, grown.sums), grown.leaves

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: RowNumbers | None, seed: int
    ) -> tuple[Tree, Labels]:
        """Grow a tree whose leaves have the label of minimum expected cost."""
        tree, class_weights, leaves = self.grow(weights, costs, rows, seed)
        tree = label_tree(tree, class_weights, costs)
        return tree, tree.value.astype(self.y.dtype)[leaves]


@dataclass(frozen=True, eq=False)
class CostedClassifier:
    """A fitted classifier together with the costs that turn its probabilities into labels."""

    estimator: Any
    costs: FloatArray

    def labels(self, X: Samples | None) -> Labels:
        """Labels of minimum expected cost, or the estimator's own without probabilities."""
        if not hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict(X)).astype(np.int32)
        answers = np.asarray(self.estimator.predict_proba(X))
        shares = np.zeros((len(answers), len(self.costs)))
        shares[:, np.asarray(self.estimator.classes_, np.int64)] = answers
        return cheapest_labels(shares, self.costs)


class EstimatorLearner:
    """Any scikit-learn classifier; probabilities, where it has them, become labels by cost.

    It is cloned for each round. A classifier that takes no sample weights is fitted to samples
    drawn in proportion to them.
    """

    def __init__(self, estimator: Any, X: Samples, y: Labels):
        self._estimator = estimator
        # Not in a byte, in which RidgeClassifier of scikit-learn 1.8 takes -1 for 255.
        self._X, self._y = X, y.astype(np.int64)
        # Parts of it, such as the steps of a pipeline, may be random too.
        self._seeds = [
            name for name in estimator.get_params() if name.split("__")[-1] == "random_state"
        ]
        self._takes_weights = has_fit_parameter(estimator, "sample_weight")

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: RowNumbers | None, seed: int
    ) -> tuple[CostedClassifier, Labels]:
        """Fit a clone of the estimator."""
        model = clone(self._estimator)
        model.set_params(**dict.fromkeys(self._seeds, seed % 2**31))
        chosen = np.arange(len(weights)) if rows is None else rows
        if self._takes_weights:
            # Means of one, so that absolute limits of the estimator keep their meaning.
            scaled = weights[chosen] * (len(chosen) / weights[chosen].sum())
            model.fit(self._X[chosen], self._y[chosen], sample_weight=scaled)
        else:
            shares = weights[chosen] / weights[chosen].sum()
            drawn = np.random.default_rng(seed).choice(chosen, len(chosen), p=shares)
            model.fit(self._X[drawn], self._y[drawn])
        costed = CostedClassifier(model, costs)
        return costed, costed.labels(self._X)
