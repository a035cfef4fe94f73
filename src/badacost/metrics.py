"""What decisions cost: metrics and scorers for costs ``C[truth, prediction]``.

Costs are charged as the user gives them: if being right has a price, on the diagonal, it is paid
too. (Classifiers may ignore it, since it changes no decision.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_consistent_length, column_or_1d

from badacost.arrays import FloatArray
from badacost.costs import as_cost_matrix
from badacost.costs.matrix import as_classes, costs_as_given, listed, named_classes, plain
from badacost.validation import category_order, check_choice, check_sample_weight, distinct_classes

Normalization = Literal["all", "true", "pred"] | None
_SUMMED_AXIS = {"all": None, "true": 1, "pred": 0}


def average_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean cost of a decision.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True classes and decisions.
    cost_matrix : array-like of shape (K, K), mapping, data frame or None
        ``C[truth, prediction]``: rows are the truth; see `badacost.costs.as_cost_matrix`. Charged
        as given, diagonal included. None is a price of one for each mistake.
    labels : iterable of K labels, optional
        The classes, in the order of the rows of an array. By default those that a mapping or data
        frame names in its rows; for an array or None the labels of `y_true` and `y_pred`, sorted,
        or in the order of the categories of `y_true` if it is an ordered categorical; for an array
        they must be as many as it has rows.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.

    Returns
    -------
    float
        Mean of ``C[y_true, y_pred]``, in the unit of the costs.

    Examples
    --------
    >>> costs = {"ham": {"spam": 5}, "spam": {"ham": 1}}
    >>> average_cost(["ham", "ham", "spam", "spam"], ["ham", "spam", "spam", "ham"], costs)
    1.5
    """
    counts, costs = _counts_and_costs(y_true, y_pred, cost_matrix, labels, sample_weight)
    return float((counts / counts.sum() * costs).sum())


def total_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the sum of the costs of all decisions.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight
        See `average_cost`.

    Returns
    -------
    float
        Sum of ``C[y_true, y_pred]``, each times its sample weight.

    Examples
    --------
    >>> total_cost([0, 0, 1, 1], [0, 1, 1, 0], [[0, 5], [1, 0]])
    6.0
    """
    counts, costs = _counts_and_costs(y_true, y_pred, cost_matrix, labels, sample_weight)
    return float((counts * costs).sum())


def savings(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the share of the cost of the best constant decision that is saved.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight
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
    counts, costs = _counts_and_costs(y_true, y_pred, cost_matrix, labels, sample_weight)
    paid = float((counts * costs).sum())
    base = float((counts.sum(axis=1) @ costs).min())
    if base == 0.0:
        return 0.0 if paid == 0.0 else -np.inf
    return 1.0 - paid / base


def cost_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    *,
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    normalize: Normalization = None,
) -> FloatArray:
    """Return what each pair of truth and prediction has cost: counts times costs.

    Parameters
    ----------
    y_true, y_pred, cost_matrix, labels, sample_weight
        See `average_cost`.
    normalize : {"all", "true", "pred"} or None, default=None
        None gives costs, which sum to `total_cost`. "all" gives shares of the total, "true" of
        what samples of each class have cost (rows sum to one), "pred" of what each answer has
        cost (columns sum to one). Where there was no cost, the shares are zero.

    Returns
    -------
    ndarray of shape (K, K)
        Costs or shares: rows are the truth, in the order of `labels`.

    Examples
    --------
    >>> cost_confusion_matrix([0, 0, 1, 1], [0, 1, 1, 0], [[0, 5], [1, 0]])
    array([[0., 5.],
           [1., 0.]])
    """
    if normalize is not None:
        check_choice("normalize", normalize, _SUMMED_AXIS)
    counts, costs = _counts_and_costs(y_true, y_pred, cost_matrix, labels, sample_weight)
    charged: FloatArray = counts * costs
    if normalize is None:
        return charged
    sums = charged.sum(axis=_SUMMED_AXIS[normalize], keepdims=True)
    return np.divide(charged, sums, out=np.zeros_like(charged), where=sums > 0.0)


def charged_costs(costs: Any, classes: Iterable[Any]) -> FloatArray:
    """Read costs as `badacost.costs.as_cost_matrix` does, but keep the price of being right.

    Parameters
    ----------
    costs : None, array-like of shape (K, K), nested mapping or data frame
        ``C[truth, prediction]``: rows are the truth.
    classes : iterable of K labels
        The classes, in the order of the result. A mapping or data frame may price others too.

    Returns
    -------
    ndarray of shape (K, K)
        Costs as given, diagonal included.

    Examples
    --------
    >>> charged_costs({"ham": {"spam": 5}, "spam": {"ham": 3, "spam": 1}}, ["ham", "spam"])
    array([[0., 5.],
           [3., 1.]])
    """
    labels = [plain(label) for label in classes]
    as_cost_matrix(costs, labels, allow_extra_labels=True)  # which has more to check
    return costs_as_given(costs, labels, allow_extra_labels=True)


def _counts_and_costs(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Any,
    labels: Iterable[Any] | None,
    sample_weight: ArrayLike | None,
) -> tuple[FloatArray, FloatArray]:
    """Return weighted counts and costs, both (K, K) with the truth in rows."""
    truth, prediction = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(truth, prediction)
    if not len(truth):
        raise ValueError("y_true and y_pred are empty: give at least one sample.")
    unique_labels(truth, prediction)  # refuses numbers beside strings, and values that are no class
    weight = check_sample_weight(sample_weight, len(truth))
    seen, codes = np.unique(np.concatenate([truth, prediction]), return_inverse=True)
    order = category_order(y_true)
    if labels is None and order is not None and np.shape(cost_matrix) == (len(order),) * 2:
        labels = named_classes(cost_matrix) or order
    known = _labels(cost_matrix, labels, [plain(label) for label in distinct_classes(seen, y_true)])
    position = {label: k for k, label in enumerate(known)}
    cells = np.array([position[plain(label)] for label in seen])[codes].reshape(2, -1)
    counts = np.zeros((len(known), len(known)))
    np.add.at(counts, (cells[0], cells[1]), weight)
    if cost_matrix is None and len(known) == 1:
        return counts, np.zeros((1, 1))
    return counts, charged_costs(cost_matrix, known)


def _labels(cost_matrix: Any, labels: Iterable[Any] | None, seen: list[Any]) -> list[Any]:
    """Return the classes in the order of the costs; they must include those seen."""
    if labels is None:
        named = named_classes(cost_matrix)
        known = None if named is None else as_classes(named, seen)
    else:
        known = [plain(label) for label in labels]
    if known is None:
        rows = np.asarray(cost_matrix, dtype=object)
        if rows.ndim and len(rows) != len(seen):
            raise ValueError(
                f"cost_matrix has {len(rows)} rows but y_true and y_pred have the "
                f"{listed(seen)}: pass labels= with the class of each row."
            )
        return seen
    unknown = [label for label in seen if label not in known]
    if unknown:
        place = "the rows of cost_matrix" if labels is None else "labels"
        raise ValueError(f"y_true or y_pred have classes {unknown} that {place} lack: add them.")
    return known


class CostScorer:
    """A scorer made by `cost_scorer`: called as ``scorer(estimator, X, y)``, greater is better.

    Parameters
    ----------
    cost_matrix, metric, labels
        See `cost_scorer`.

    Examples
    --------
    >>> CostScorer([[0, 5], [1, 0]], "savings")
    cost_scorer([[0, 5], [1, 0]], metric='savings')
    """

    def __init__(
        self,
        cost_matrix: Any,
        metric: Literal["average_cost", "savings"] = "average_cost",
        labels: Iterable[Any] | None = None,
    ):
        check_choice("metric", metric, ("average_cost", "savings"))
        self.cost_matrix = cost_matrix
        self.metric = metric
        self.labels = None if labels is None else [plain(label) for label in labels]
        self.set_score_request(sample_weight=None)

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return minus the average cost, or the savings, of the classifier's predictions."""
        labels = self.labels
        if labels is None and self.cost_matrix is not None:
            classes = getattr(estimator, "classes_", None)
            if classes is not None and category_order(y) is not None:
                classes = distinct_classes(classes, y)
            labels = named_classes(self.cost_matrix)
            if labels is None:
                labels = classes
            elif classes is not None:
                labels = as_classes(labels, [plain(label) for label in classes])
        score = savings if self.metric == "savings" else average_cost
        value = score(
            y, estimator.predict(X), self.cost_matrix, labels=labels, sample_weight=sample_weight
        )
        return value if self.metric == "savings" else -value

    def set_score_request(self, *, sample_weight: bool | str | None) -> CostScorer:
        """Say whether weights are wanted where metadata routing is enabled.

        Parameters
        ----------
        sample_weight : bool, str or None
            Yes, no, under this name; None is an error if there are weights.

        Returns
        -------
        self
            The scorer.
        """
        self._request = MetadataRequest(owner=type(self).__name__)
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata that the scorer wants, for scikit-learn."""
        return self._request

    def _accept_sample_weight(self) -> bool:
        """Tell scikit-learn, where routing is not enabled, that weights may be passed."""
        return True

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f", labels={self.labels!r}"
        return f"cost_scorer({self.cost_matrix!r}, metric={self.metric!r}{labels})"


def cost_scorer(
    cost_matrix: Any,
    *,
    metric: Literal["average_cost", "savings"] = "average_cost",
    labels: Iterable[Any] | None = None,
) -> CostScorer:
    """Return a scorer for `GridSearchCV`, `cross_val_score` and their like; greater is better.

    Without ``scoring=cost_scorer(costs)`` these compare accuracies, whatever mistakes cost, even
    for classifiers that know the costs.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None
        ``C[truth, prediction]``: rows are the truth; see `average_cost`.
    metric : {"average_cost", "savings"}, default="average_cost"
        Minus the average cost, or the savings.
    labels : iterable of K labels, optional
        The classes, in the order of the rows of an array; by default the estimator's
        ``classes_``, in the order of the categories of y if it is an ordered categorical. A
        mapping or data frame names its own.

    Returns
    -------
    CostScorer
        Callable ``scorer(estimator, X, y, sample_weight=None)``. Where metadata routing is
        enabled, weights are asked for by ``set_score_request(sample_weight=True)``.

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
    return CostScorer(cost_matrix, metric, labels)
