"""Boosting by reweighting, as in AdaBoost.

A round fits a weak learner to the current sample weights, sums the weights of its mistakes, chooses
a step, and multiplies the weight of every sample by a factor that depends on truth and prediction.
Algorithms of this kind differ in the `Rule` that weights the mistakes.

A weak learner belongs to one training set. It fits a model, a tree or any classifier, to sample
weights and costs, and returns it with the labels that the model predicts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from badacost._utils.arrays import FloatArray, Labels, LeafNumbers, RowNumbers, Samples
from badacost._utils.parallel import (
    MIN_ROWS,
    Threads,
    Units,
    exact_bincount,
    exact_sum,
    largest_of,
    units_of,
)
from badacost.backends.shards import Boosters, Shard, ShardedData
from badacost.boosting.stagewise import Stage
from badacost.costs import zero_one_costs
from badacost.loss import (
    is_perfect,
    optimal_step,
    pair_sums,
    step_loss,
    weak_learner_costs,
)
from badacost.loss import weight_kernels as kernels
from badacost.tree.binning import draw_rows
from badacost.tree.forest import Tree
from badacost.tree.grower import Gain, GrownTree, Growth, Summands, TreeGrower
from badacost.tree.shards import (
    LevelRequest,
    LevelResult,
    PlannedTree,
    Root,
    ShardedGrower,
    add_results,
    add_roots,
)

Criterion = Literal["gini", "entropy"]
_MIN_FACTOR = 1e-4  # of a class in the splits, so that classes of low cost are separated too


def draw_samples(weights: FloatArray, fraction: float, key: tuple[int, ...]) -> RowNumbers | None:
    """Draw about a fraction of the samples to fit a learner to; None means all samples."""
    if fraction == 1.0:
        return None
    drawn = draw_rows(np.arange(len(weights)), fraction, key, 0)
    return drawn if weights[drawn].any() else None


def cheapest_labels(probabilities: FloatArray, costs: FloatArray) -> NDArray[np.int32]:
    """Labels (n,) of minimum expected cost, from class probabilities (n, K).

    Costs are compared in single precision, lowest label first, as in the reference: with equal
    weights many classes have equal costs, and rounding errors must not choose among them.
    """
    # A power of two keeps all digits within the range of single precision.
    within_range = np.ldexp(costs, -np.frexp(costs.max())[1])
    with np.errstate(over="ignore"):  # of probabilities in an altered file
        expected = (probabilities @ within_range).astype(np.float32)
    return np.argmin(expected, axis=1).astype(np.int32)


def label_tree(tree: Tree, class_weights: FloatArray, costs: FloatArray) -> Tree:
    """The tree with the label of minimum expected cost in each leaf."""
    probabilities = class_weights / class_weights.sum(axis=1, keepdims=True)
    return replace(tree, value=cheapest_labels(probabilities, costs))


@dataclass(frozen=True, eq=False)
class SplitCosts:
    """Factors (K,) by which costs ``C[truth, prediction]`` weight the classes in splits."""

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
        """Gain of splits."""
        if self.criterion == "gini":
            return Gain.gini(self.factors**2)
        return Gain.of_entropy(len(self.factors))

    @property
    def bound(self) -> float:
        """Upper bound of the sum of the summands, if weights sum to one."""
        return 1.0 if self.criterion == "gini" else float(self.factors.max())

    def summands(
        self, labels: Labels, weights: FloatArray, threads: Threads | None = None
    ) -> Summands:
        """Summands of a tree, from weights (n,) that sum to one."""
        if self.criterion == "entropy":
            weights = weights * self.factors[labels]
        return Summands.of_labels(labels, weights, len(self.factors), self.bound, threads)

    def without_factors(self, tree: Tree, sums: FloatArray) -> tuple[Tree, FloatArray]:
        """Divide the factors out: the tree, and the class weights of its nodes (n_nodes, K)."""
        if self.criterion == "gini":
            return tree, sums
        sums = sums / self.factors
        return replace(tree, weight=sums.sum(axis=1).astype(np.float32)), sums


class WeakLearner(Protocol):
    """Fits the models of a training set: trees or estimators."""

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
        tree, class_weights, grown = self._grow(weights, costs, rows, seed)
        return tree, class_weights, grown.leaves

    def _grow(
        self, weights: FloatArray, costs: FloatArray, rows: RowNumbers | None, seed: int
    ) -> tuple[Tree, FloatArray, GrownTree]:
        split = SplitCosts.of(costs, self._criterion)
        sums = split.summands(self.y, weights, self.grower.threads)
        if rows is not None and not sums.values[rows].any():
            rows = None  # all weights that were drawn are zero
        grown = self.grower.grow(sums, split.gain, rows=rows, seed=seed)
        return *split.without_factors(grown.tree, grown.sums), grown

    def fit(
        self, weights: FloatArray, costs: FloatArray, rows: RowNumbers | None, seed: int
    ) -> tuple[Tree, Labels]:
        """Grow a tree whose leaves have the label of minimum expected cost."""
        tree, class_weights, grown = self._grow(weights, costs, rows, seed)
        tree = label_tree(tree, class_weights, costs)
        return tree, grown.look_up(tree.value)


@dataclass(frozen=True, eq=False)
class CostedClassifier:
    """A fitted classifier, and the costs for decisions from its probabilities."""

    estimator: Any
    costs: FloatArray

    def labels(self, X: Samples | None) -> Labels:
        """Labels of minimum expected cost, or the estimator's own without probabilities."""
        if not hasattr(self.estimator, "predict_proba"):
            labels = np.asarray(self.estimator.predict(X)).astype(np.int32)
            if labels.ndim != 1 or not np.isin(labels, np.arange(len(self.costs))).all():
                raise ValueError(
                    f"{type(self.estimator).__name__} predicts labels that it was not fitted to: "
                    "give another estimator."
                )
            return labels
        given = np.asarray(self.estimator.predict_proba(X))
        probabilities = np.zeros((len(given), len(self.costs)))
        probabilities[:, np.asarray(self.estimator.classes_, np.int64)] = given
        return cheapest_labels(probabilities, self.costs)


class EstimatorLearner:
    """Fits clones of any scikit-learn classifier; labels minimise expected costs.

    Without `predict_proba`, labels are those of the classifier. One that takes no sample weights is
    fitted to samples that are drawn in proportion to them.
    """

    def __init__(self, estimator: Any, X: Samples, y: Labels):
        self._estimator = estimator
        # Not in a byte, in which RidgeClassifier of scikit-learn 1.8 takes -1 for 255.
        self._X, self._y = X, y.astype(np.int64)
        # Nested estimators, such as the steps of a pipeline, may be random too.
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
            # With a mean of one, absolute limits of the estimator keep their meaning.
            scaled = weights[chosen] * (len(chosen) / weights[chosen].sum())
            model.fit(self._X[chosen], self._y[chosen], sample_weight=scaled)
        else:
            p = weights[chosen] / weights[chosen].sum()
            drawn = np.random.default_rng(seed).choice(chosen, len(chosen), p=p)
            model.fit(self._X[drawn], self._y[drawn])
        costed = CostedClassifier(model, costs)
        labels = costed.labels(self._X)
        if labels.shape != self._y.shape:
            problem = f"predicts {len(labels)} labels for {len(self._y)} samples"
            raise ValueError(f"{type(model).__name__} {problem}: give another estimator.")
        return costed, labels


MIN_LOG_WEIGHT = -700.0  # relative to the largest: a weight of zero would drop the sample for good


def relative_weights(log_weights: FloatArray, threads: Threads | None = None) -> FloatArray:
    """Weights relative to the largest, from logarithms that may be far outside the range of exp."""
    loop = (threads or Threads()).loop(len(log_weights), MIN_ROWS)
    weights = np.empty_like(log_weights)
    largest = largest_of(log_weights, threads)
    kernels.relative_weights(loop, log_weights, largest, MIN_LOG_WEIGHT, weights)
    return weights


class ReweightingShard:
    """Logarithms of the weights of some rows, and the tree that grows on them."""

    def __init__(self, shard: Shard, log_weights: FloatArray):
        self._shard, self._y = shard, shard.put(shard.y)
        self.log_weights = shard.put(log_weights)
        self._weights, self._total = self.log_weights, 1.0  # until a round begins
        self._cells: Any = None  # truth and label of each row

    def state(self) -> FloatArray:
        """Logarithms of the weights, the whole state of the fit."""
        log_weights: FloatArray = self._shard.get(self.log_weights)
        return log_weights

    def weigh(self, largest: float, units: Units) -> FloatArray:
        """Set the weights of a round relative to the largest; return their sum (high, low)."""
        exponents = self._shard.xp.maximum(self.log_weights - largest, MIN_LOG_WEIGHT)
        self._weights, self._total = self._shard.exp(exponents), 1.0
        return self._shard.split_sums(self._weights, units)

    def begin(
        self, total: float, split: SplitCosts, fraction: float, key: tuple[int, ...] | None
    ) -> Root:
        """Begin a tree on rows that are drawn, with weights divided by their total."""
        if total != self._total:
            self._weights /= total
            self._total = total
        rows: RowNumbers | None = None
        if key is not None and fraction < 1.0:
            xp = self._shard.xp
            rows = draw_rows(xp.arange(len(self._y)), fraction, key, self._shard.first_row, xp)
        self._shard.trees.end()
        return self._shard.trees.begin(0, self._summands(split), rows)

    def _summands(self, split: SplitCosts) -> Any:
        return split.summands(self._y, self._weights, self._shard.threads)

    def level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        """Take the tree that grows one level further."""
        return self._shard.trees.level(requests)

    def evaluate(self, tree: Tree, n_classes: int) -> FloatArray:
        """Find the labels of a tree; return the largest weight by truth and label (K * K,)."""
        self._shard.trees.end()
        self._cells = self._cells_of(self._labels_of(tree), n_classes)
        return self._shard.bin_maxima(self._cells, self._weights, n_classes**2)

    def confusion(self, units: Units) -> FloatArray:
        """Sums of weights by truth and label (2, K * K), high and low."""
        return self._shard.bin_split_sums(self._cells, self._weights, units)

    def advance(self, log_factors: FloatArray, tree: Tree, labels: Labels | None = None) -> float:
        """Add ``log_factors[truth, label]`` to the logarithms; return the largest.

        Labels that are known, such as those of a tree of an earlier fit, are given in `labels`.
        """
        labels = self._labels_of(tree) if labels is None else self._shard.put(labels)
        factors = self._shard.put(log_factors.ravel())
        for rows in self._shard.blocks(len(labels)):
            self.log_weights[rows] += factors[self._cells_of(labels, len(log_factors), rows)]
        return float(self.log_weights.max()) if len(labels) else -np.inf

    def _labels_of(self, tree: Tree) -> Any:
        return self._shard.put(tree.value)[self._shard.trees.leaves(tree)]

    def _cells_of(self, labels: Any, n_classes: int, rows: slice = slice(None)) -> Any:
        """Truth and label of rows as one number (int32)."""
        return self._y[rows].astype(np.int32) * np.int32(n_classes) + labels[rows].astype(np.int32)


_SHORT_STEP = 0.1  # times the largest margin
_MIN_STEP = 1e-9  # times the largest margin: a learner with a smaller step is useless
_MAX_ATTEMPTS = 5  # to find a useful learner in one round, if learners are random


@dataclass(frozen=True, eq=False)
class Rule:
    """Weights of mistakes. This class is the rule of BAdaCost for given margins.

    Attributes
    ----------
    margins : ndarray of shape (K, K)
        ``D[truth, prediction]``: predicting g adds ``step * D[l, g]`` to the cost score of class l.
    """

    margins: FloatArray

    def learner_costs(self, step: float) -> FloatArray:
        """Costs ``[truth, prediction]`` that a weak learner with this step has to minimise."""
        return weak_learner_costs(self.margins, step)

    def step(self, weight_sums: FloatArray) -> float:
        """Step of a learner from its weights ``[truth, prediction]``; <= 0 if it is useless."""
        return optimal_step(weight_sums, self.margins)

    def log_factors(self, step: float) -> FloatArray:
        """Terms ``[truth, prediction]`` that a step adds to the logarithms of sample weights."""
        return step * self.margins


@dataclass(frozen=True, eq=False)
class CostBlindRule(Rule):
    """A rule whose weak learners minimise the weighted error instead of costs."""

    def learner_costs(self, step: float) -> FloatArray:
        """0|1 costs."""
        return zero_one_costs(len(self.margins))


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A weak learner, its labels, their weights by truth and prediction, and the step for it."""

    model: Any
    predicted: Labels | None  # None if the samples are in shards
    sums: FloatArray
    step: float
    margins: FloatArray

    @cached_property
    def perfect(self) -> bool:
        return is_perfect(self.sums, self.margins)

    @property
    def reach(self) -> float:
        """Largest change of a score by the step."""
        return self.step * float(np.abs(self.margins).max())

    @property
    def useful(self) -> bool:
        return self.reach > _MIN_STEP

    @property
    def loss(self) -> float:
        """Loss after the step relative to the loss before; a negative step is not made."""
        return step_loss(self.sums, self.margins, max(self.step, 0.0))

    @property
    def reason(self) -> str | None:
        if not self.useful:
            return "useless"
        return "perfect" if self.perfect else None


class Reweighting:
    """The `Descent` of algorithms like AdaBoost, on samples in this process.

    `n_refinements` is the maximum number of times that a round refits its learner to the step that
    was found. If learners are `random`, another one may be tried. The state of a fit is
    `log_weights`, the logarithms of the weights up to a constant.

    With `own_margins` (n_samples, K) weights and steps depend on these instead of the margins of
    the rule. The learner minimises the costs of the rule, with sample weights times the relative
    costs of the samples.
    """

    def __init__(
        self,
        learner: WeakLearner,
        y: Labels,
        weight: FloatArray,
        rule: Rule,
        *,
        learning_rate: float,
        subsample: float,
        n_refinements: int = 0,
        own_margins: FloatArray | None = None,
        seed: int,
        random: bool,
        threads: Threads | None = None,
    ):
        self.rule, self._threads = rule, threads or Threads()
        self.table = rule.margins.T.copy()
        self._learner, self._y, self._own = learner, y, own_margins
        self._relative_costs: FloatArray | None = None
        if own_margins is not None:
            self._relative_costs = own_margins[np.arange(len(y)), y] / np.diagonal(rule.margins)[y]
        self.log_weights = np.log(weight) - np.log(exact_sum(weight))  # quotients may underflow
        # A learning rate in single precision would round the steps.
        self._rate, self._subsample = float(learning_rate), subsample
        self._n_refinements, self._seed = n_refinements, seed
        self._n_attempts = _MAX_ATTEMPTS if random else 1
        first, steepest = rule.learner_costs(1.0), rule.learner_costs(0.0)
        self._costs_follow_step = not np.allclose(
            first / first.max(), steepest / steepest.max(), rtol=1e-12, atol=0.0
        )

    @property
    def weights(self) -> FloatArray:
        """Weights that sum to one, from logarithms that may be far outside the range of exp."""
        weights = relative_weights(self.log_weights, self._threads)
        total = exact_sum(weights, self._threads)
        kernels.divide(self._threads.loop(len(weights), MIN_ROWS), weights, total)
        return weights

    def fit(self, n_done: int) -> Stage:
        """Fit a learner and its step, several times if it is refined or useless."""
        for attempt in range(self._n_attempts):
            key, seed = None, 0
            if self._n_attempts > 1:
                key = self._seed, n_done, attempt
                seed = int(np.random.default_rng(key).integers(2**63))
            self._begin(key)
            best = self._best_candidate(seed)
            if best.useful:
                break
        steps, rows = [self._rate * best.step], [] if best.predicted is None else [best.predicted]
        return Stage([best.model], steps, rows, self.table, best.reason)

    def _begin(self, key: tuple[int, ...] | None) -> None:
        """Set the weights of a round, and those of the learner; draw samples with a key."""
        self._now = self._seen = self.weights
        if self._relative_costs is not None:
            self._seen = self._now * self._relative_costs
            self._seen /= exact_sum(self._seen)
        self._drawn = None if key is None else draw_samples(self._seen, self._subsample, key)

    def _candidate(self, costs: FloatArray, seed: int) -> _Candidate:
        """Fit a learner to costs."""
        model, predicted = self._learner.fit(self._seen, costs, self._drawn, seed)
        if self._own is not None:
            return self._own_candidate(model, predicted, self._now)
        n_classes = len(self.rule.margins)
        sums = pair_sums(self._y, predicted, self._now, n_classes, self._threads)
        return _Candidate(model, predicted, sums, self.rule.step(sums), self.rule.margins)

    def advance(self, stage: Stage) -> None:
        """Multiply the weights by the factors of a stage."""
        for step, labels in zip(stage.steps, stage.rows, strict=True):
            if self._own is not None:
                self.log_weights += step * self._own[np.arange(len(labels)), labels]
            else:
                factors = self.rule.log_factors(step)
                loop = self._threads.loop(len(labels), MIN_ROWS)
                kernels.add_margins(loop, self.log_weights, factors, self._y, labels)

    def _best_candidate(self, seed: int) -> _Candidate:
        """Fit for a step of one, then for the step that was found, while the loss decreases."""

        def candidate(step: float) -> _Candidate:
            return self._candidate(self.rule.learner_costs(step), seed)

        best = candidate(1.0)
        if self._costs_follow_step and best.reach < _SHORT_STEP and not best.perfect:
            # The learner minimises costs for a step of one: try those of steepest descent as well.
            best = min(best, candidate(0.0), key=lambda tried: tried.loss)
        for _ in range(self._n_refinements):
            if best.perfect or not best.useful:
                break
            other = candidate(best.step)
            if not other.loss < best.loss * (1.0 - 1e-12):
                break
            best = other
        return best

    def _own_candidate(self, model: Any, predicted: Labels, weights: FloatArray) -> _Candidate:
        """A learner and its step, if each sample has its own margins."""
        own: Any = self._own
        moves, cells = np.unique(own[np.arange(len(predicted)), predicted], return_inverse=True)
        sums = exact_bincount(cells, weights, len(moves))
        # Mistakes that are never made have cells too, see `optimal_step`.
        margins = np.concatenate([moves, self.rule.margins.ravel()])
        sums = np.concatenate([sums, np.zeros(self.rule.margins.size)])
        return _Candidate(model, predicted, sums, optimal_step(sums, margins), margins)


class ShardedReweighting(Reweighting):
    """Reweighting of samples in shards, with the built-in tree as learner."""

    def __init__(
        self,
        data: ShardedData,
        growth: Growth,
        criterion: Criterion,
        weight: FloatArray,
        rule: Rule,
        *,
        threads: Threads,
        **settings: Any,
    ):
        self._data, self._criterion = data, criterion
        self._grower = ShardedGrower(data.mapper, growth, threads)
        learner: Any = None
        super().__init__(learner, data.y, weight, rule, threads=threads, **settings)

    @property
    def log_weights(self) -> FloatArray:
        """Logarithms of the weights."""
        return np.concatenate(self._boosters.map(ReweightingShard.state))

    @log_weights.setter
    def log_weights(self, log_weights: FloatArray) -> None:
        own = self._data.split(log_weights)
        self._boosters = Boosters(self._data.shards, ReweightingShard, own)
        self._largest = float(log_weights.max())

    def _begin(self, key: tuple[int, ...] | None) -> None:
        units = units_of(1.0, len(self._y))
        sums = self._boosters.map(ReweightingShard.weigh, self._largest, units)
        self._total = float(np.sum(sums, axis=0).sum())
        self._key = key

    def _candidate(self, costs: FloatArray, seed: int) -> _Candidate:
        split, n_classes = SplitCosts.of(costs, self._criterion), len(costs)
        for key in (self._key, None):  # all samples, if none is drawn
            given = self._total, split, self._subsample, key
            root = add_roots(self._boosters.map(ReweightingShard.begin, *given))
            if root.n_samples:
                break
        grown = self._grower.grow({0: PlannedTree(root, split.gain, seed)}, self._level)
        tree, class_weights = split.without_factors(*grown[0])
        tree = label_tree(tree, class_weights, costs)
        largest = np.max(self._boosters.map(ReweightingShard.evaluate, tree, n_classes), axis=0)
        units = units_of(largest, len(self._y))
        halves = np.sum(self._boosters.map(ReweightingShard.confusion, units), axis=0)
        sums = halves.sum(axis=0).reshape(n_classes, n_classes)
        return _Candidate(tree, None, sums, self.rule.step(sums), self.rule.margins)

    def _level(self, requests: dict[int, LevelRequest]) -> dict[int, LevelResult]:
        results = self._boosters.map(ReweightingShard.level, requests)
        return {key: add_results([result[key] for result in results]) for key in requests}

    def advance(self, stage: Stage) -> None:
        """Multiply the weights by the factors of a stage."""
        (tree,), (step,) = stage.models, stage.steps
        labels = self._data.split(stage.rows[0]) if len(stage.rows) else None
        factors = self.rule.log_factors(step)
        self._largest = max(self._boosters.update(ReweightingShard.advance, factors, tree, labels))
