"""What decisions cost: metrics and scorers for costs ``C[truth, prediction]``.

Costs count as the user gives them, diagonal included. (Classifiers may ignore the diagonal, which
changes no decision.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metadata_routing import UNCHANGED, MetadataRequest
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_consistent_length, column_or_1d

from badacost._utils.arrays import FloatArray, Mask, Positions
from badacost._utils.validation import (
    category_order,
    check_choice,
    check_sample_weight,
    distinct_classes,
    helpful_errors,
    positions_in,
)
from badacost.costs import ABSTAIN, labelled_costs
from badacost.costs.decisions import (
    DecisionCosts,
    abstention_costs,
    check_no_class_abstains,
    check_sample_cost,
    read_decision_costs,
)
from badacost.costs.matrix import as_classes, class_positions, given_costs, named_classes, plain

charged_costs = given_costs  # its former name
_SUMMED_AXIS = {"all": None, "true": 1, "pred": 0}


def average_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any = None,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: ArrayLike | None = None,
) -> float:
    """Return the mean cost of a decision.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    y_pred : array-like or masked array of shape (n_samples,)
        Decisions. Abstentions, whose cost is `abstain`, are masked, as `decide` returns them, or
        have the text `badacost.ABSTAIN`.
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth; see `badacost.costs.as_cost_matrix`. The
        diagonal counts. None is a cost of one for each mistake.
    labels : iterable of K labels, optional
        The classes, in the order of the rows of an array, or of the columns of `sample_cost`. By
        default those that a mapping or data frame names; for an array or None the labels of
        `y_true` and `y_pred`, sorted, or in the order of the categories of `y_true` if it is an
        ordered categorical; for an array they must be as many as it has rows.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), optional
        Costs of each sample, in the place of `cost_matrix`. A row holds what each decision costs
        for this sample if it is wrong; a right one is free. Or a whole matrix for each sample.
    abstain : float or array-like of shape (n_samples,), optional
        The cost of an abstention, or one for each sample.

    Returns
    -------
    float
        Mean of ``C[y_true, y_pred]``, in the unit of the costs.

    Examples
    --------
    >>> costs = {"ham": {"spam": 5}, "spam": {"ham": 1}}
    >>> average_cost(["ham", "ham", "spam", "spam"], ["ham", "spam", "spam", "ham"], costs)
    1.5

    The amount at stake differs from sample to sample, and an abstention costs 3:

    >>> amounts = [[5, 1], [20, 1], [5, 9], [1, 1]]  # of each decision, if it is wrong
    >>> decisions = np.ma.MaskedArray([0, 1, 0, 1], [False, False, False, True])
    >>> average_cost([0, 0, 1, 1], decisions, sample_cost=amounts, abstain=3)
    2.25
    """
    costs = cost_breakdown(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    return costs.average


def total_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any = None,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: ArrayLike | None = None,
) -> float:
    """Return the sum of the costs of all decisions.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain
        See `average_cost`.

    Returns
    -------
    float
        Sum of what `average_cost` is the mean of, each times its sample weight.

    Examples
    --------
    >>> total_cost([0, 0, 1, 1], [0, 1, 1, 0], [[0, 5], [1, 0]])
    6.0
    """
    costs = cost_breakdown(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    return float(costs.totals.sum())


def savings(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any = None,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: ArrayLike | None = None,
) -> float:
    """Return the proportion of the cost of the best constant decision that is saved.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain
        See `average_cost`.

    Returns
    -------
    float
        ``1 - cost / base``, where `base` is the cost of predicting one class, the cheapest, for
        every sample. 1: decisions cost nothing, as perfect ones do where the diagonal is zero. 0:
        they cost as much as that one class. Negative: more. If `base` is zero, there is
        nothing to save: 0 where `y_pred` costs nothing either, minus infinity otherwise.

    Examples
    --------
    >>> savings([0, 0, 1, 1], [0, 0, 1, 0], [[0, 5], [1, 0]])  # always 0 costs 2
    0.5
    """
    costs = cost_breakdown(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    return costs.savings


def cost_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any = None,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: ArrayLike | None = None,
    normalize: Literal["all", "true", "pred"] | None = None,
) -> FloatArray:
    """Return the total cost of each pair of truth and prediction: counts times costs.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain
        See `average_cost`.
    normalize : {"all", "true", "pred"} or None, default=None
        None gives costs, which sum to `total_cost`. "all" divides them by the total, "true" by the
        cost of the samples of each class (rows sum to one), "pred" by the cost of each prediction
        (columns sum to one). Where there was no cost, the quotients are zero.

    Returns
    -------
    ndarray of shape (K, K), or (K, K + 1) with abstentions
        Costs or quotients: rows are the truth, in the order of `labels`. If `y_pred` has
        abstentions, the last column holds their costs.

    Examples
    --------
    >>> cost_confusion_matrix([0, 0, 1, 1], [0, 1, 1, 0], [[0, 5], [1, 0]])
    array([[0., 5.],
           [1., 0.]])
    """
    costs = cost_breakdown(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    totals = costs.totals
    if normalize is None:
        return totals
    check_choice("normalize", normalize, _SUMMED_AXIS)
    sums = totals.sum(axis=_SUMMED_AXIS[normalize], keepdims=True)
    return np.divide(totals, sums, out=np.zeros_like(totals), where=sums > 0.0)


@dataclass(frozen=True, eq=False)
class CostBreakdown:
    """Costs of decisions by truth and prediction, with a last column for abstentions if any.

    `counts` and `averages`, (K, K or K + 1), are the sums of weights and the average costs;
    `truth`, (n,), are positions in `labels`.
    """

    labels: list[Any]
    counts: FloatArray
    averages: FloatArray
    costs: DecisionCosts
    truth: Positions
    weight: FloatArray

    @property
    def totals(self) -> FloatArray:
        """Total costs, of the shape of `counts`."""
        with np.errstate(over="ignore"):
            return _checked_sums(self.counts * self.averages)

    @property
    def average(self) -> float:
        """Mean cost of a decision."""
        return float((self.counts / self.counts.sum() * self.averages).sum())

    @property
    def savings(self) -> float:
        """Proportion of the cost of the best constant decision that is saved."""
        constants = _checked_sums(self.costs.of_constants(self.truth, self.weight))
        cost, base = float(self.totals.sum()), float(constants.min())
        if base == 0.0:
            return 0.0 if cost == 0.0 else -np.inf
        return 1.0 - cost / base


def _checked_sums(sums: FloatArray) -> FloatArray:
    """Refuse sums of costs that are not finite."""
    if not np.isfinite(sums).all():
        raise ValueError("sample_weight times the costs overflows: divide it by its mean.")
    return sums


def cost_breakdown(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    labels: Iterable[Any] | None,
    sample_weight: ArrayLike | None,
    sample_cost: Any,
    abstain: Any,
) -> CostBreakdown:
    """Check the arguments of the metrics, and sum up."""
    labels_true, (labels_pred, abstained) = column_or_1d(y_true), _split_abstentions(y_pred)
    check_consistent_length(labels_true, abstained)
    n_samples = len(labels_true)
    if not n_samples:
        raise ValueError("y_true and y_pred are empty: give at least one sample.")
    of_abstentions = abstention_costs(0.0 if abstain is None else abstain, n_samples)
    if abstain is None and abstained.any():
        raise ValueError(f"y_pred has {abstained.sum()} abstentions without a cost: pass abstain=.")
    weight = check_sample_weight(sample_weight, n_samples)
    parts = [part for part in (labels_true, labels_pred) if len(part)]
    with helpful_errors(None, labels_true, "y_true"), helpful_errors(None, labels_pred, "y_pred"):
        if len({part.dtype.kind in "mM" for part in parts}) > 1:
            raise TypeError("y_true and y_pred are dates and other labels: give labels of a type.")
        seen = unique_labels(*parts)  # refuses numbers beside strings, and values that are no class
    known = known_labels(cost_matrix, sample_cost, labels, seen, y_true)
    lacking = [label for label in map(plain, seen) if label not in known]
    if lacking:
        raise ValueError(f"y_true or y_pred have classes {lacking} that the costs lack: add them.")
    if abstain is not None:
        check_no_class_abstains(known)
    if cost_matrix is None and sample_cost is None and len(known) == 1:
        costs = DecisionCosts(np.zeros((1, 1)))
    else:
        costs = read_decision_costs(cost_matrix, sample_cost, known, n_samples)
    truth, decisions = positions_in(known, labels_true, "y_true"), np.full(n_samples, len(known))
    decisions[~abstained] = positions_in(known, labels_pred, "y_pred")
    counts, averages = np.zeros((2, len(known), len(known) + int(abstained.any())))
    np.add.at(counts, (truth, decisions), weight)
    incurred = costs.incurred(truth, np.where(abstained, 0, decisions))
    incurred = np.where(abstained, of_abstentions, incurred)
    fractions = weight / np.where(weight > 0, counts[truth, decisions], 1.0)
    np.add.at(averages, (truth, decisions), fractions * incurred)
    if not costs.per_sample:
        averages[:, : len(known)] = costs.values  # to the last bit
    return CostBreakdown(known, counts, averages, costs, truth, weight)


def _split_abstentions(y_pred: Any) -> tuple[NDArray[Any], Mask]:
    """Return the classes that are predicted, and a mask of the abstentions, (n,).

    Abstentions are masked, or have the text `ABSTAIN`; numbers beside it stay numbers.
    """
    if isinstance(y_pred, list | tuple):
        y_pred = np.array(y_pred, dtype=object)
    decisions = np.asarray(column_or_1d(y_pred))
    with helpful_errors(None, decisions, "y_pred"):
        abstained = np.asarray(decisions == ABSTAIN)
        if np.ma.isMaskedArray(y_pred):
            abstained |= np.ma.getmaskarray(y_pred).ravel()
        labels = decisions[~abstained]
        if labels.dtype.kind == "O" and not any(isinstance(label, str) for label in labels):
            labels = np.array(labels.tolist())
    return labels, abstained


def known_labels(
    cost_matrix: Any, sample_cost: Any, labels: Iterable[Any] | None, seen: NDArray[Any], y: Any
) -> list[Any]:
    """Return the classes in the order of the costs: as given, as costs name them, or as seen."""
    if labels is not None:
        return [plain(label) for label in labels]
    found = [plain(label) for label in distinct_classes(seen, y)]
    name, costs, named = "cost_matrix", cost_matrix, named_classes(cost_matrix)
    if sample_cost is not None:
        name, costs, named = "sample_cost", sample_cost, getattr(sample_cost, "columns", None)
    if named is not None:
        return as_classes(named, found)
    order = category_order(y) or found
    shape = costs.shape if hasattr(costs, "shape") else np.asarray(costs, dtype=object).shape
    if shape and shape[-1] == len(order):
        return order
    if shape and shape[-1] != len(found):
        problem = f"{name} has {shape[-1]} columns but y_true and y_pred {len(found)} classes"
        raise ValueError(f"{problem}: pass labels= with the class of each column.")
    return found


@dataclass(eq=False, repr=False)
class CostScorer:
    """A scorer made by `cost_scorer`: called as ``scorer(estimator, X, y)``, greater is better.

    Parameters
    ----------
    cost_matrix, metric, labels, abstain
        See `cost_scorer`.

    Examples
    --------
    >>> CostScorer([[0, 5], [1, 0]], "savings")
    cost_scorer([[0, 5], [1, 0]], metric='savings')
    """

    cost_matrix: Any = None
    metric: Literal["average_cost", "savings"] = "average_cost"
    labels: Iterable[Any] | None = None
    abstain: float | None = None

    def __post_init__(self) -> None:
        check_choice("metric", self.metric, ("average_cost", "savings"))
        if self.labels is not None:
            self.labels = [plain(label) for label in self.labels]
        self._request = MetadataRequest(owner=type(self).__name__)
        self.set_score_request(sample_weight=None, sample_cost=None)

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sample_cost: ArrayLike | None = None,
    ) -> float:
        """Return minus the average cost, or the savings, of the classifier's decisions."""
        labels, costs = self._order(estimator, y, sample_cost), self.cost_matrix
        if labels is not None and sample_cost is None:
            costs = labelled_costs(costs, labels)  # its error is about a class the estimator lacks
        decides, name = hasattr(estimator, "decide"), type(estimator).__name__
        if self.abstain is not None and not decides:
            raise TypeError(f"{name} has no decide, for abstain: use MinimumCostClassifier.")
        if decides and sample_cost is not None:
            values = check_sample_cost(sample_cost, labels, len(column_or_1d(y)))
            order = class_positions(labels, estimator.classes_.tolist(), "labels", True)
            values = values[:, order][..., order] if values.ndim == 3 else values[:, order]
            decisions = estimator.decide(X, sample_cost=values, abstain=self.abstain)
        elif self.abstain is not None:
            decisions = estimator.decide(X, costs, abstain=self.abstain)
        else:
            decisions = estimator.predict(X)
        sums = cost_breakdown(y, decisions, costs, labels, sample_weight, sample_cost, self.abstain)
        return sums.savings if self.metric == "savings" else -sums.average

    def _order(self, estimator: Any, y: ArrayLike, sample_cost: Any) -> Any:
        """Return the classes in the order of costs that do not name them, if there is one."""
        counts_mistakes = self.cost_matrix is None and sample_cost is None and self.abstain is None
        is_named = sample_cost is None and named_classes(self.cost_matrix) is not None
        classes = getattr(estimator, "classes_", None)
        if self.labels is not None or counts_mistakes or is_named or classes is None:
            return self.labels
        ordered = classes if category_order(y) is None else distinct_classes(classes, y)
        return [plain(label) for label in ordered]

    def set_score_request(
        self,
        *,
        sample_weight: bool | str | None = UNCHANGED,
        sample_cost: bool | str | None = UNCHANGED,
    ) -> CostScorer:
        """Request weights, and costs of samples, where metadata routing is enabled.

        Parameters
        ----------
        sample_weight, sample_cost : bool, str or None
            As in scikit-learn: True, False, an alias, or None for an error if they are given.

        Returns
        -------
        self
            The scorer.
        """
        for name, alias in (("sample_weight", sample_weight), ("sample_cost", sample_cost)):
            if alias is not UNCHANGED:
                self._request.score.add_request(param=name, alias=alias)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata that the scorer requests, for scikit-learn."""
        return self._request

    def _accept_sample_weight(self) -> bool:
        """Whether weights may be passed where metadata routing is not enabled."""
        return True

    def __repr__(self) -> str:
        options = {"metric": self.metric, "labels": self.labels, "abstain": self.abstain}
        given = [f", {name}={value!r}" for name, value in options.items() if value is not None]
        return f"cost_scorer({self.cost_matrix!r}{''.join(given)})"


def cost_scorer(
    cost_matrix: Any = None,
    *,
    metric: Literal["average_cost", "savings"] = "average_cost",
    labels: Iterable[Any] | None = None,
    abstain: float | None = None,
) -> CostScorer:
    """Return a scorer for `GridSearchCV`, `cross_val_score` and their like; greater is better.

    Without ``scoring=cost_scorer(costs)`` these compare accuracies, whatever mistakes cost, even
    for classifiers with costs.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth; see `average_cost`.
    metric : {"average_cost", "savings"}, default="average_cost"
        Minus the average cost, or the savings.
    labels : iterable of K labels, optional
        The classes, in the order of the rows of an array, or of the columns of `sample_cost`; by
        default the estimator's ``classes_``, in the order of the categories of y if it is an
        ordered categorical. A mapping or data frame names its own.
    abstain : float, optional
        The cost of an abstention. It needs classifiers that have `decide`.

    Returns
    -------
    CostScorer
        Callable ``scorer(estimator, X, y, sample_weight=None, sample_cost=None)``. Where metadata
        routing is enabled, weights and costs of samples are requested by
        ``set_score_request(sample_weight=True, sample_cost=True)``.

    Notes
    -----
    What is scored is ``estimator.predict(X)``. With `sample_cost` or `abstain` it is
    ``estimator.decide(X, ...)`` under the costs of the scorer, since they are known at prediction,
    too. With `sample_cost`, the predictions of an estimator without `decide` are scored; a
    pipeline is one of them unless it is put into `badacost.MinimumCostClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = cost_scorer([[0, 1, 1], [1, 0, 1], [1, 10, 0]])
    >>> model = DummyClassifier(strategy="constant", constant=1)
    >>> cross_val_score(model, X, y, scoring=scorer, cv=2)  # a third each costs 1, 0, 10
    array([-3.66666667, -3.66666667])
    """
    return CostScorer(cost_matrix, metric, labels, abstain)
