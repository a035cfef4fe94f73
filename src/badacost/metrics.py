"""What decisions cost: metrics and scorers for costs ``C[truth, prediction]``.

Costs are charged as the user gives them: if being right has a price, on the diagonal, it is paid
too. (Classifiers may ignore it, since it changes no decision.)
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

from badacost.arrays import FloatArray, Mask, Positions
from badacost.costs import ABSTAIN, labelled_costs
from badacost.costs.decisions import (
    Prices,
    asking_prices,
    check_no_class_abstains,
    read_prices,
)
from badacost.costs.matrix import as_classes, check_known, listed, named_classes, plain
from badacost.costs.matrix import charged_costs as charged_costs
from badacost.costs.sample_costs import check_sample_cost
from badacost.validation import (
    category_order,
    check_choice,
    check_sample_weight,
    distinct_classes,
    remedies,
)

Normalization = Literal["all", "true", "pred"] | None
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
    y_true, y_pred : array-like of shape (n_samples,)
        True classes and decisions.
        A decision may be `badacost.ABSTAIN`, "ask a person", which `abstain` gives a price.
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth; see `badacost.costs.as_cost_matrix`. Charged
        as given, diagonal included. None is a price of one for each mistake. An array for each
        sample, see `sample_cost`, will do as well, unless there are K samples.
    labels : iterable of K labels, optional
        The classes, in the order of the rows of an array, or of the columns of `sample_cost`. By
        default those that a mapping or data frame names; for an array or None the labels of
        `y_true` and `y_pred`, sorted, or in the order of the categories of `y_true` if it is an
        ordered categorical; for an array they must be as many as it has rows.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), optional
        Prices of each sample, in the place of `cost_matrix`. A row holds what each decision costs
        for this sample if it is wrong; being right is free. Or a whole matrix for each sample.
    abstain : float or array-like of shape (n_samples,), optional
        The price of asking a person, or one for each sample.

    Returns
    -------
    float
        Mean of ``C[y_true, y_pred]``, in the unit of the costs.

    Examples
    --------
    >>> costs = {"ham": {"spam": 5}, "spam": {"ham": 1}}
    >>> average_cost(["ham", "ham", "spam", "spam"], ["ham", "spam", "spam", "ham"], costs)
    1.5

    The amount at stake differs from sample to sample, and asking a person costs 3:

    >>> amounts = [[5, 1], [20, 1], [5, 9], [1, 1]]  # of each decision, if it is wrong
    >>> average_cost([0, 0, 1, 1], [0, 1, 0, "ask a person"], sample_cost=amounts, abstain=3)
    2.25
    """
    bill = bill_of(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    return float((bill.counts / bill.counts.sum() * bill.costs).sum())


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
    bill = bill_of(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    return float(bill.charged.sum())


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
    """Return the share of the cost of the best constant decision that is saved.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain
        See `average_cost`.

    Returns
    -------
    float
        ``1 - cost / base``, where `base` is what the cheapest of the K answers costs if it is
        given to every sample. 1: decisions cost nothing, as perfect ones do if being right is
        free. 0: they cost as much as that one answer. Negative: more. If `base` is zero, there is
        nothing to save: 0 where `y_pred` costs nothing either, minus infinity otherwise.

    Examples
    --------
    >>> savings([0, 0, 1, 1], [0, 0, 1, 0], [[0, 5], [1, 0]])  # always 0 costs 2
    0.5
    """
    bill = bill_of(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    paid, base = float(bill.charged.sum()), float(bill.constants.min())
    if base == 0.0:
        return 0.0 if paid == 0.0 else -np.inf
    return 1.0 - paid / base


def cost_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any = None,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: ArrayLike | None = None,
    normalize: Normalization = None,
) -> FloatArray:
    """Return what each pair of truth and prediction has cost: counts times costs.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain
        See `average_cost`.
    normalize : {"all", "true", "pred"} or None, default=None
        None gives costs, which sum to `total_cost`. "all" gives shares of the total, "true" of
        what samples of each class have cost (rows sum to one), "pred" of what each answer has
        cost (columns sum to one). Where there was no cost, the shares are zero.

    Returns
    -------
    ndarray of shape (K, K), or (K, K + 1) where a person is asked
        Costs or shares: rows are the truth, in the order of `labels`. If `y_pred` has
        `badacost.ABSTAIN`, a last column holds what asking a person has cost.

    Examples
    --------
    >>> cost_confusion_matrix([0, 0, 1, 1], [0, 1, 1, 0], [[0, 5], [1, 0]])
    array([[0., 5.],
           [1., 0.]])
    """
    if normalize is not None:
        check_choice("normalize", normalize, _SUMMED_AXIS)
    bill = bill_of(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
    charged = bill.charged
    if normalize is None:
        return charged
    sums = charged.sum(axis=_SUMMED_AXIS[normalize], keepdims=True)
    return np.divide(charged, sums, out=np.zeros_like(charged), where=sums > 0.0)


@dataclass(frozen=True, eq=False)
class Bill:
    """What decisions cost, by truth and decision: of the K classes, and to ask a person if any is.

    `counts`, (K, K or K + 1), are sums of weights; `costs`, of the same shape, is what such a
    decision costs on average; `truth`, (n,), are positions in `labels`, (K,).
    """

    labels: list[Any]
    counts: FloatArray
    costs: FloatArray
    truth: Positions
    weight: FloatArray
    prices: Prices

    @property
    def charged(self) -> FloatArray:
        """Costs of all such decisions together, of the shape of `counts`."""
        with np.errstate(over="ignore"):
            return _checked_sums(self.counts * self.costs)

    @property
    def constants(self) -> FloatArray:
        """What each class costs in all if it is the answer for every sample, (K,)."""
        return _checked_sums(self.prices.of_constants(self.truth, self.weight))


def _checked_sums(sums: FloatArray) -> FloatArray:
    """Refuse sums of money that are beyond all numbers."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "sample_weight times the costs overflows: divide sample_weight by its mean."
        )
    return sums


def bill_of(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    labels: Iterable[Any] | None,
    sample_weight: ArrayLike | None,
    sample_cost: Any,
    abstain: Any,
) -> Bill:
    """Check the arguments of the metrics, and sum up."""
    labels_true, decided = column_or_1d(y_true), _decisions(y_pred)
    check_consistent_length(labels_true, decided)
    n_samples = len(labels_true)
    if not n_samples:
        raise ValueError("y_true and y_pred are empty: give at least one sample.")
    with remedies(None, decided, "y_pred"):
        asked = _asked(decided)
    asking = asking_prices(0.0 if abstain is None else abstain, n_samples)
    if abstain is None and asked.any():
        raise ValueError(
            f"{asked.sum()} samples of y_pred are {ABSTAIN!r}, which has no price: pass abstain=."
        )
    weight = check_sample_weight(sample_weight, n_samples)
    answered = decided[~asked]
    with remedies(None, labels_true, "y_true"), remedies(None, answered, "y_pred"):
        labels_pred = _of_one_type(answered)
        _check_dates(labels_true, labels_pred)
        # Refuses numbers beside strings, and values that are no class.
        unique_labels(*(part for part in (labels_true, labels_pred) if len(part)))
        seen, codes = np.unique(np.concatenate([labels_true, labels_pred]), return_inverse=True)
    order = category_order(y_true)
    if labels is None and order is not None and np.shape(cost_matrix) == (len(order),) * 2:
        labels = named_classes(cost_matrix) or order
    found = [plain(label) for label in distinct_classes(seen, y_true)]
    known = _labels(cost_matrix, sample_cost, labels, found)
    if abstain is not None:
        check_no_class_abstains(known)
    if cost_matrix is None and sample_cost is None and len(known) == 1:
        prices = Prices(np.zeros((1, 1)))
    else:
        prices = read_prices(cost_matrix, sample_cost, known, n_samples)
    position = {label: k for k, label in enumerate(known)}
    positions = np.array([position[plain(label)] for label in seen])[codes]
    truth, answers = positions[:n_samples], np.full(n_samples, len(known))
    answers[~asked] = positions[n_samples:]
    counts, costs = np.zeros((2, len(known), len(known) + int(asked.any())))
    np.add.at(counts, (truth, answers), weight)
    paid = np.where(asked, asking, prices.paid(truth, np.where(asked, 0, answers)))
    shares = weight / np.where(weight > 0, counts[truth, answers], 1.0)
    np.add.at(costs, (truth, answers), shares * paid)
    if not prices.of_samples:
        costs[:, : len(known)] = prices.values  # to the last bit
    return Bill(known, counts, costs, truth, weight, prices)


def _asked(decisions: NDArray[Any]) -> Mask:
    """Return which decisions, (n,), are to ask a person."""
    if decisions.dtype.kind not in "OUT":
        return np.zeros(len(decisions), dtype=np.bool_)
    return np.asarray(decisions == ABSTAIN, dtype=np.bool_)


def _decisions(y_pred: Any) -> NDArray[Any]:
    """Return decisions as an array; in a list, numbers beside `ABSTAIN` stay numbers."""
    if isinstance(y_pred, list | tuple) and any(isinstance(label, str) for label in y_pred):
        y_pred = np.array(y_pred, dtype=object)
    return np.asarray(column_or_1d(y_pred))


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels that are objects as an array of numbers, if no text is among them."""
    if labels.dtype.kind != "O" or any(isinstance(label, str) for label in labels):
        return labels
    return np.array(labels.tolist())


def _check_dates(y_true: NDArray[Any], y_pred: NDArray[Any]) -> None:
    """Refuse dates beside labels that they cannot be compared with."""
    kinds = {y.dtype.kind for y in (y_true, y_pred) if len(y)}
    if kinds & {*"mM"} and kinds & {*"biufUT"}:
        raise TypeError(
            f"y_true has labels of type {y_true.dtype}, y_pred of type {y_pred.dtype}: give both "
            "the type of the classes."
        )


def _labels(
    cost_matrix: Any, sample_cost: Any, labels: Iterable[Any] | None, seen: list[Any]
) -> list[Any]:
    """Return the classes in the order of the costs; they must include those seen."""
    name, given = (
        ("cost_matrix", cost_matrix) if sample_cost is None else ("sample_cost", sample_cost)
    )
    if labels is not None:
        known = [plain(label) for label in labels]
    else:
        named = named_classes(given) if sample_cost is None else getattr(given, "columns", None)
        if named is None:
            _check_number_of_classes(name, given, seen)
            return seen
        known = as_classes(named, seen)
    unknown = [label for label in seen if label not in known]
    if unknown:
        place = f"the rows of {name}" if sample_cost is None else f"the columns of {name}"
        place = place if labels is None else "labels"
        raise ValueError(f"y_true or y_pred have classes {unknown} that {place} lack: add them.")
    return known


def _check_number_of_classes(name: str, costs: Any, seen: list[Any]) -> None:
    """Refuse costs of more or fewer classes than occur, whose order is not known."""
    shape = costs.shape if hasattr(costs, "shape") else np.asarray(costs, dtype=object).shape
    if shape and shape[-1] != len(seen):
        side = "row" if name == "cost_matrix" and shape[0] == shape[-1] else "column"
        raise ValueError(
            f"{name} has {shape[-1]} {side}s but y_true and y_pred have the {listed(seen)}: pass "
            f"labels= with the class of each {side}."
        )


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

    def __init__(
        self,
        cost_matrix: Any = None,
        metric: Literal["average_cost", "savings"] = "average_cost",
        labels: Iterable[Any] | None = None,
        abstain: float | None = None,
    ):
        check_choice("metric", metric, ("average_cost", "savings"))
        self.cost_matrix = cost_matrix
        self.metric = metric
        self.labels = None if labels is None else [plain(label) for label in labels]
        self.abstain = abstain
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
        labels = self._labels(estimator, y, sample_cost)
        costs: Any = self.cost_matrix
        if labels is not None and sample_cost is None:
            costs = Prices(charged_costs(costs, labels))
        score = savings if self.metric == "savings" else average_cost
        value = score(
            y,
            self._decisions(estimator, X, labels, sample_cost, len(column_or_1d(y))),
            costs,
            labels=labels,
            sample_weight=sample_weight,
            sample_cost=sample_cost,
            abstain=self.abstain,
        )
        return value if self.metric == "savings" else -value

    def _labels(self, estimator: Any, y: ArrayLike, sample_cost: Any) -> list[Any] | None:
        """Return the classes in the order of the costs; None if they are those that occur."""
        if self.labels is not None:
            return self.labels
        named, classes = named_classes(self.cost_matrix), getattr(estimator, "classes_", None)
        if classes is None:
            return named
        if category_order(y) is not None:
            classes = distinct_classes(classes, y)
        classes = [plain(label) for label in classes]
        if named is not None:
            return as_classes(named, classes)
        counts_mistakes = self.cost_matrix is None and sample_cost is None and self.abstain is None
        return None if counts_mistakes else classes

    def _decisions(
        self, estimator: Any, X: Any, labels: list[Any] | None, sample_cost: Any, n_samples: int
    ) -> NDArray[Any]:
        """Return the decisions of a classifier, at the prices of the scorer if it has `decide`."""
        if sample_cost is None and self.abstain is None:
            return np.asarray(estimator.predict(X))
        if labels is None or not hasattr(estimator, "decide"):
            if self.abstain is None:
                return np.asarray(estimator.predict(X))
            raise TypeError(
                f"a {type(estimator).__name__} has no decide, and so it cannot ask a person: put "
                "it into MinimumCostClassifier, or leave out abstain."
            )
        prices: dict[str, Any]
        if sample_cost is None:
            prices = {"costs": labelled_costs(charged_costs(self.cost_matrix, labels), labels)}
        else:
            values = check_sample_cost(sample_cost, labels, n_samples)
            classes = [plain(label) for label in estimator.classes_]
            check_known(classes, labels, "the classes of the estimator")
            order = [labels.index(label) for label in classes]
            prices = {"sample_cost": Prices(values, True).of_classes(order).values}
        return np.asarray(estimator.decide(X, **prices, abstain=self.abstain))

    def set_score_request(
        self,
        *,
        sample_weight: bool | str | None = UNCHANGED,
        sample_cost: bool | str | None = UNCHANGED,
    ) -> CostScorer:
        """Say whether weights, and prices of samples, are wanted where metadata are routed.

        Parameters
        ----------
        sample_weight, sample_cost : bool, str or None
            Yes, no, under this name; None is an error if there are any. By default as before.

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
        """Return the metadata that the scorer wants, for scikit-learn."""
        return self._request

    def _accept_sample_weight(self) -> bool:
        """Tell scikit-learn, where routing is not enabled, that weights may be passed."""
        return True

    def __repr__(self) -> str:
        options = {"labels": self.labels, "abstain": self.abstain}
        given = "".join(
            f", {name}={value!r}" for name, value in options.items() if value is not None
        )
        return f"cost_scorer({self.cost_matrix!r}, metric={self.metric!r}{given})"


def cost_scorer(
    cost_matrix: Any = None,
    *,
    metric: Literal["average_cost", "savings"] = "average_cost",
    labels: Iterable[Any] | None = None,
    abstain: float | None = None,
) -> CostScorer:
    """Return a scorer for `GridSearchCV`, `cross_val_score` and their like; greater is better.

    Without ``scoring=cost_scorer(costs)`` these compare accuracies, whatever mistakes cost, even
    for classifiers that know the costs.

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
        The price of asking a person. It needs classifiers that have `decide`.

    Returns
    -------
    CostScorer
        Callable ``scorer(estimator, X, y, sample_weight=None, sample_cost=None)``. Where metadata
        routing is enabled, weights and prices of samples are asked for by
        ``set_score_request(sample_weight=True, sample_cost=True)``.

    Notes
    -----
    What is scored is ``estimator.predict(X)``. With `sample_cost` or `abstain` it is
    ``estimator.decide(X, ...)`` at the prices of the scorer, since who knows amounts and the price
    of asking at prediction decides by them. Under `sample_cost` an estimator without `decide` is
    charged for what it predicts; a pipeline is one of them unless it is put into
    `badacost.MinimumCostClassifier`.

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
