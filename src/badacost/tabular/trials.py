"""Models tried on rows that they were not fitted to: folds, depths of trees, and rivals.

Everything that compares models or chooses their settings comes here: fitting a table, the report
and the explorer. Classes are positions, and costs are in their order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from badacost._utils.arrays import FloatArray, IndexArray, Mask, Positions
from badacost._utils.progress import tracked
from badacost._utils.validation import check_number, check_sample_weight
from badacost.classifiers import CostBoostClassifier
from badacost.costs.decisions import DecisionCosts

_CATEGORICAL = "categorical_features"
Rule = Literal["own", "bayes", "most_probable"]
DEPTHS = (1, 2, 4, 6, 8)
"""Depths of trees to choose from."""
_MAX_ROWS_TO_CHOOSE = 20_000
_MIN_OF_CLASS = 30  # of these rows, or all that there are
_N_FOLDS_TO_TUNE = 3
_MIN_LIKELIHOOD = 1e-15
_FEW_ROWS = 5_000
_MAX_ROUNDS = 100  # of rivals


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows to fit to or to decide on.

    Attributes
    ----------
    features : array-like or data frame of n rows
        What estimators take.
    truth : ndarray of shape (n,)
        Positions of the classes; each of them occurs.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    categorical : ndarray of shape (n_features,) or None
        Which features are codes of categories; None leaves it to the estimators.
    """

    features: Any
    truth: Positions
    weight: FloatArray | None = None
    categorical: Mask | None = None

    def __len__(self) -> int:
        return len(self.truth)

    def only(self, rows: Mask | IndexArray) -> Samples:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        features = rows_of(self.features, rows)
        return replace(self, features=features, truth=self.truth[rows], weight=weight)

    def sample(self, rng: np.random.Generator) -> Samples:
        """About 20 000 of the rows if there are more, weighted to stand for all of them.

        Of each class all rows are drawn, or at least 30.
        """
        if len(self) <= _MAX_ROWS_TO_CHOOSE:
            return self
        fraction = _MAX_ROWS_TO_CHOOSE / len(self)
        rows, factors = [], []
        for position in np.unique(self.truth):
            of_class = np.flatnonzero(self.truth == position)
            n_drawn = min(len(of_class), max(round(fraction * len(of_class)), _MIN_OF_CLASS))
            rows.append(rng.choice(of_class, n_drawn, replace=False))
            factors.append(np.full(n_drawn, len(of_class) / n_drawn))
        drawn = np.concatenate(rows)
        order = drawn.argsort()
        weight = check_sample_weight(self.weight, len(self))[drawn] * np.concatenate(factors)
        return replace(self.only(drawn[order]), weight=weight[order])

    def average_cost(self, decisions: Positions, costs: DecisionCosts) -> float:
        """Return the weighted mean cost of decisions, (n,)."""
        return float(np.average(costs.incurred(self.truth, decisions), weights=self.weight))

    def in_folds(self, n_folds: int, seed: int) -> tuple[Samples, IndexArray]:
        """Return a `sample` of the rows, and their folds as `run` takes them."""
        rng = np.random.default_rng(seed)
        samples = self.sample(rng)
        return samples, deal_folds(samples.truth, n_folds, rng)


def rows_of(features: Any, rows: Mask | IndexArray | slice) -> Any:
    """Return some rows of an array or data frame."""
    if hasattr(features, "iloc"):
        return features.iloc[rows]
    return features[rows] if hasattr(features, "shape") else np.asarray(features)[rows]


Tuner = Callable[[Any, Samples, DecisionCosts, int], Any]


@dataclass(frozen=True, eq=False)
class Contender:
    """An estimator, and the ways in which it decides.

    Attributes
    ----------
    name : str
        How it is called.
    estimator : classifier
        Cloned for every fit.
    rules : tuple of {"own", "bayes", "most_probable"}
        Its own rule, minimum expected cost, most likely class; of several, each is a way with a
        name of its own.
    tune : callable, optional
        Called with estimator, samples, costs and a seed: returns the estimator with the settings
        that suit these samples best.
    sets_costs : bool
        Whether the costs become its ``cost_matrix``, if it has that parameter.
    """

    name: str
    estimator: Any
    rules: tuple[Rule, ...] = ("own",)
    tune: Tuner | None = None
    sets_costs: bool = True

    @property
    def ways(self) -> dict[str, Rule]:
        """Rules by the names of the ways."""
        if len(self.rules) == 1:
            return {self.name: self.rules[0]}
        return {way_name(self.name, rule): rule for rule in self.rules}

    def prepared(self, samples: Samples, costs: DecisionCosts, seed: int = 0) -> Any:
        """Return the estimator with costs, categories and the settings that suit the samples."""
        estimator = clone(self.estimator)
        parameters = estimator.get_params(deep=False)
        if "cost_matrix" in parameters and self.sets_costs:
            estimator.set_params(cost_matrix=costs.average())
        if samples.categorical is not None:
            set_categories(estimator, samples.categorical)
        return estimator if self.tune is None else self.tune(estimator, samples, costs, seed)

    def fit(self, samples: Samples, costs: DecisionCosts, seed: int) -> Any:
        """Return the estimator, prepared and fitted."""
        return _fitted(self.prepared(samples, costs, seed), samples)

    def decide(self, fitted: Any, features: Any, costs: DecisionCosts) -> dict[str, Positions]:
        """Return the decisions of each way, (n,)."""
        return {way: _decided(fitted, rule, features, costs) for way, rule in self.ways.items()}


def way_name(name: str, rule: Rule) -> str:
    """Return how decisions of a contender by a rule are called.

    >>> way_name("CostBoost", "bayes")
    'CostBoost, minimum expected cost'
    """
    words = {"own": "own rule", "bayes": "minimum expected cost"}
    return f"{name}, {words.get(rule, 'most likely class')}"


def set_categories(estimator: Any, is_category: Mask) -> None:
    """Set the features that are codes of categories in an estimator, or in the one inside it."""
    mask = is_category.tolist() if is_category.any() else None
    takers = [name for name in estimator.get_params() if name.split("__")[-1] == _CATEGORICAL]
    estimator.set_params(**dict.fromkeys(takers, mask))


def _fitted(estimator: Any, samples: Samples) -> Any:
    options = {} if samples.weight is None else {"sample_weight": samples.weight}
    with _enough_threads(len(samples)):
        return estimator.fit(samples.features, samples.truth, **options)


def _enough_threads(n_rows: int) -> Any:
    """On few rows, threads of OpenMP wait for each other longer than they work: take one."""
    return threadpool_limits(1 if n_rows < _FEW_ROWS else None, user_api="openmp")


def _decided(fitted: Any, rule: Rule, features: Any, costs: DecisionCosts) -> Positions:
    if rule == "own":
        return np.asarray(fitted.predict(features), np.intp)
    found = probabilities(fitted, features, costs.values.shape[-1])
    expected = -found if rule == "most_probable" else costs.expected(found)
    return np.asarray(expected.argmin(axis=1))


def probabilities(fitted: Any, features: Any, n_classes: int) -> FloatArray:
    """Return probabilities of all classes, (n, n_classes): 0 for those without training rows."""
    with _enough_threads(len(features)):
        found = np.asarray(fitted.predict_proba(features), np.float64)
    if found.shape[1] == n_classes:
        return found
    widened = np.zeros((len(found), n_classes))
    widened[:, np.asarray(fitted.classes_, np.intp)] = found
    return widened


@dataclass(frozen=True, eq=False)
class Run:
    """Decisions of the ways of a contender, on all rows with a fold, and the fits behind them."""

    decisions: dict[str, Positions]
    fitted: list[Any]


def run(
    contender: Contender,
    samples: Samples,
    folds: IndexArray,
    costs: DecisionCosts,
    *,
    seed: int = 0,
    title: str | None = None,
) -> Run:
    """Decide the rows of each fold by a fit to all others; rows of fold -1 are never decided.

    A hold-out is one fold, 0, and -1 for the rows to fit to. With a `title` there is a progress
    bar.
    """
    decisions = {way: np.full(len(samples), -1, np.intp) for way in contender.ways}
    fits = []
    numbers = np.unique(folds[folds >= 0])
    for fold in tracked(numbers, len(numbers), title or "", shown=title is not None):
        tried = folds == fold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last fit will say it
            fitted = contender.fit(samples.only(~tried), costs, seed)
        decided = contender.decide(fitted, rows_of(samples.features, tried), costs)
        for way, chosen in decided.items():
            decisions[way][tried] = chosen
        fits.append(fitted)
    return Run({way: chosen[folds >= 0] for way, chosen in decisions.items()}, fits)


def average_and_error(costs: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """Return the weighted mean of costs, and its standard error.

    >>> average_and_error(np.array([0.0, 1.0, 5.0, 2.0]), None)
    (2.0, 0.9354143466934853)
    """
    weight = check_sample_weight(weight, len(costs))
    average = float(np.average(costs, weights=weight))
    return average, float(np.sqrt(((weight * (costs - average)) ** 2).sum()) / weight.sum())


def deal_folds(truth: Positions, n_folds: int, rng: np.random.Generator) -> IndexArray:
    """Deal the rows of each class to the folds; -1 for the only row of a class."""
    folds = np.full(len(truth), -1)
    for position in np.unique(truth):
        rows = rng.permutation(np.flatnonzero(truth == position))
        if len(rows) > 1:
            folds[rows] = rng.permutation(n_folds)[np.arange(len(rows)) % n_folds]
    return folds


def held_out_rows(labels: NDArray[Any], fraction: float, seed: int) -> Mask:
    """Mark a fraction of the rows of each class, never all of them, (n_rows,).

    A ValueError is raised where no class has enough rows.

    >>> held_out_rows(np.array(["a", "b", "a", "b", "b", "b"]), 0.5, seed=0).sum()
    np.int64(3)
    """
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        chosen[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    if not chosen.any():
        raise ValueError(
            f"{len(labels)} rows are too few to hold out {fraction:.0%} of each class: hold out "
            "more of them, or use cross-validation."
        )
    return chosen


@dataclass(frozen=True)
class DepthTuner:
    """Chooses the depth of trees with which decisions are cheapest in cross-validation.

    Of depths that cost the same, the first is taken. CostBoost, which stops by itself where trees
    fit noise, stays as it is.
    """

    rule: Rule
    depths: tuple[int, ...] = DEPTHS
    n_folds: int = _N_FOLDS_TO_TUNE

    def __post_init__(self) -> None:
        if not self.depths:
            raise ValueError("depths are empty: name at least one.")
        for depth in self.depths:
            check_number("depths", depth, Integral, low=1)
        check_number("n_folds", self.n_folds, Integral, low=2)

    def __call__(self, estimator: Any, samples: Samples, costs: DecisionCosts, seed: int) -> Any:
        """Return the estimator with the cheapest depth."""
        if isinstance(estimator, CostBoostClassifier):
            return estimator
        return estimator.set_params(max_depth=self.cheapest(estimator, samples, costs, seed))

    def cheapest(self, estimator: Any, samples: Samples, costs: DecisionCosts, seed: int) -> int:
        """Return the cheapest depth."""
        samples, folds = samples.in_folds(self.n_folds, seed)
        decided = samples.only(folds >= 0)
        if not len(decided):
            return self.depths[0]

        def cost(depth: int) -> float:
            candidate = clone(estimator).set_params(max_depth=depth)
            tried = run(Contender("", candidate, (self.rule,)), samples, folds, costs, seed=seed)
            return decided.average_cost(tried.decisions[""], costs)

        return int(min(self.depths, key=cost))


def _with_best_rounds(estimator: Any, samples: Samples, costs: DecisionCosts, seed: int) -> Any:
    """Choose the number of rounds of a HistGradientBoosting by its loss on other folds."""
    samples, folds = samples.in_folds(_N_FOLDS_TO_TUNE, seed)
    if not (folds >= 0).any():
        return estimator
    losses = np.zeros(estimator.max_iter)
    for fold in range(_N_FOLDS_TO_TUNE):
        kept, tried = samples.only(folds != fold), samples.only(folds == fold)
        weight = check_sample_weight(tried.weight, len(tried))
        fitted = _fitted(clone(estimator), kept)
        columns = np.searchsorted(fitted.classes_, tried.truth)
        with _enough_threads(len(tried)):
            for stage, found in enumerate(fitted.staged_predict_proba(tried.features)):
                likelihood = np.maximum(found[np.arange(len(tried)), columns], _MIN_LIKELIHOOD)
                losses[stage] -= weight @ np.log(likelihood)
    return estimator.set_params(max_iter=int(losses.argmin()) + 1)


def without_costs(estimator: Any, *, n_jobs: int | None, seed: int) -> list[Contender]:
    """Return rivals of a model: boosting that is trained and tuned without any costs.

    Each decides in two ways, by most likely class and by minimum expected cost. They are the
    gradient boosting of scikit-learn, `HistGradientBoostingClassifier`, its number of rounds chosen
    by cross-validation, and, unless it is the model, `CostBoostClassifier`, which tunes itself.

    >>> rivals = without_costs(CostBoostClassifier(), n_jobs=1, seed=0)
    >>> [way for rival in rivals for way in rival.ways]
    ['boosting without costs, most likely class', 'boosting without costs, minimum expected cost']
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    gradient = HistGradientBoostingClassifier(
        max_iter=_MAX_ROUNDS, early_stopping=False, random_state=seed
    )
    rules: tuple[Rule, ...] = ("most_probable", "bayes")
    rivals = [Contender("boosting without costs", gradient, rules, _with_best_rounds)]
    if not isinstance(estimator, CostBoostClassifier):
        own = CostBoostClassifier(random_state=seed, n_jobs=n_jobs)
        rivals.append(Contender("CostBoost", own, rules, sets_costs=False))
    return rivals


def rival_probabilities(
    estimator: Any,
    train: Samples,
    features: Any,
    costs: DecisionCosts,
    *,
    n_jobs: int | None = None,
    seed: int = 0,
) -> dict[str, FloatArray]:
    """Fit the rivals of a model to its training samples, and predict others.

    Returns the probabilities of each rival by its name, (n, K); `costs` are used for their
    number of classes only.
    """
    n_classes = costs.values.shape[-1]
    return {
        rival.name: probabilities(rival.fit(train, costs, seed), features, n_classes)
        for rival in without_costs(estimator, n_jobs=n_jobs, seed=seed)
    }
