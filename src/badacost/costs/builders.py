"""Builders of cost matrices for common situations; rows are the truth, columns the prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import assert_all_finite

from badacost.arrays import FloatArray
from badacost.costs.matrix import (
    MAX_COST,
    check_entries,
    check_known,
    check_no_free_class,
    check_positive,
    class_labels,
    costs_as_given,
    listed,
    plain,
    real_numbers,
    square,
)
from badacost.validation import check_number, distinct_classes, remedies


def zero_one_costs(n_classes: int, *, labels: Iterable[Any] | None = None) -> Any:
    """Return 0|1 costs: every mistake costs one.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.
    labels : iterable of K labels, optional
        The classes in the order of the rows: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> zero_one_costs(2)
    array([[0., 1.],
           [1., 0.]])
    """
    check_number("n_classes", n_classes, Integral)
    if n_classes < 2:
        raise ValueError(f"n_classes is {n_classes}: costs need at least 2 classes.")
    return _with_labels(1.0 - np.eye(n_classes), labels)


def labelled_costs(cost_matrix: ArrayLike, classes: Iterable[Any]) -> dict[Any, dict[Any, float]]:
    """Return costs as a mapping that names truths and predictions.

    Estimators read an array in the order of their ``classes_``, which is sorted: "high" comes
    before "low". A mapping cannot be misread, and may have classes that the training data lack.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth, in the order of `classes`.
    classes : iterable of K labels
        The classes.

    Returns
    -------
    dict
        ``{truth: {prediction: cost}}``, diagonal included.

    Examples
    --------
    >>> labelled_costs([[0, 1], [5, 0]], ["low", "high"])
    {'low': {'low': 0.0, 'high': 1.0}, 'high': {'low': 5.0, 'high': 0.0}}
    """
    labels = class_labels(classes)
    matrix = costs_as_given(cost_matrix, labels)
    return {
        truth: dict(zip(labels, row, strict=True))
        for truth, row in zip(labels, matrix.tolist(), strict=True)
    }


def _with_labels(costs: FloatArray, labels: Iterable[Any] | None) -> Any:
    """Return costs as they are, or labelled."""
    return costs if labels is None else labelled_costs(costs, labels)


def _checked(costs: FloatArray, **parameters: float) -> FloatArray:
    """Refuse costs that these parameters make nearly infinite, or zero for a whole class."""
    if not (costs <= MAX_COST).all() or not costs.any(axis=1).all():
        given = ", ".join(f"{name}={value!r:.40}" for name, value in parameters.items())
        raise ValueError(
            f"{given} make costs that are zero or above {MAX_COST:g}: choose numbers nearer to 1."
        )
    return costs


def costs_from_confusion(
    confusion: ArrayLike,
    scale: float = 1.0,
    *,
    floor: float = 0.0,
    labels: Iterable[Any] | None = None,
) -> Any:
    """Return costs proportional to how often a first classifier made each mistake.

    This is the matrix the appendix of the BAdaCost paper proposes for imbalanced classes: classes
    that were badly recognised become expensive.

    Parameters
    ----------
    confusion : array-like of shape (K, K)
        Counts ``F[truth, prediction]``: rows are the truth, as in
        `sklearn.metrics.confusion_matrix`.
    scale : float, default=1.0
        Factor on all costs, the lambda of the paper.
    floor : float, default=0.0
        Lowest share of a class taken to be mistaken for another; positive values keep a price on
        mistakes that were never made.
    labels : iterable of K labels, optional
        The classes in the order of the rows: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> costs_from_confusion([[9, 1], [2, 2]])
    array([[0. , 0.1],
           [0.5, 0. ]])
    """
    counts = square(confusion, "confusion")
    numbers = range(len(counts))
    check_positive(scale=scale)
    if floor != 0:
        check_positive(floor=floor)
    if (counts < 0).any():
        i, j = np.argwhere(counts < 0)[0]
        raise ValueError(
            f"confusion has {counts[i, j]:g} for truth {i} and prediction {j}: give counts."
        )
    check_entries(counts, numbers)
    totals = counts.sum(axis=1, keepdims=True)
    if not totals.all():
        raise ValueError(
            f"class {np.flatnonzero(totals == 0)[0]} has no samples in confusion: "
            "leave that class out, or classify some samples of it."
        )
    shares: FloatArray = np.maximum(counts / totals, floor)
    np.fill_diagonal(shares, 0.0)
    check_no_free_class(shares, numbers, "set floor to a small positive share such as 0.01")
    with np.errstate(over="ignore"):
        costs = shares * float(scale)
    return _with_labels(_checked(costs, scale=scale, floor=floor), labels)


def costs_from_class_weights(
    class_weights: ArrayLike | Mapping[Any, float],
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    y: ArrayLike | None = None,
) -> FloatArray:
    """Return costs in which every mistake on a class costs the weight of that class.

    Parameters
    ----------
    class_weights : sequence of K floats, mapping or "balanced"
        Weights in class order, or by label, or ``n / (K * count)`` from the counts of `y`.
    classes : sequence of K labels, optional
        The class order. Needed with a mapping; with "balanced", by default the labels of `y`,
        sorted or in the order of its categories if it is an ordered categorical.
    y : array-like of n labels, optional
        Training labels, needed with "balanced".

    Returns
    -------
    ndarray of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> costs_from_class_weights([1, 4])
    array([[0., 1.],
           [4., 0.]])
    """
    if isinstance(class_weights, str):
        if class_weights != "balanced" or y is None:
            raise ValueError(
                f'class_weights is {class_weights!r}: give weights, or "balanced" together with y.'
            )
        found, counts = label_counts(y)
        class_weights = dict(zip(found, counts.sum() / (len(found) * counts), strict=True))
        classes = distinct_classes(found, y) if classes is None else classes
    if isinstance(class_weights, Mapping):
        class_weights = _weights_of_mapping(class_weights, classes)
    wanted = "give a positive number for each class"
    weights = real_numbers(class_weights, "class_weights", wanted)
    if weights.ndim != 1:
        raise ValueError(f"class_weights has shape {weights.shape}: {wanted}.")
    labels = class_labels(range(len(weights)) if classes is None else classes)
    if weights.shape != (len(labels),):
        raise ValueError(
            f"class_weights has shape {weights.shape} for the {listed(labels)}: give one each."
        )
    for label, weight in zip(labels, weights, strict=True):
        check_positive(**{f"the weight of class {label!r}": float(weight)})
    return zero_one_costs(len(weights)) * weights[:, np.newaxis]


def label_counts(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different labels of training data, none of them missing, and their numbers."""
    try:
        labels = np.asarray(y)
    except ValueError:
        raise ValueError(
            "y must have a label for each sample; got lists: make them text or numbers."
        ) from None
    with remedies(None, labels):
        assert_all_finite(labels, input_name="y")
        return np.unique(labels, return_counts=True)


def _weights_of_mapping(
    class_weights: Mapping[Any, float], classes: Iterable[Any] | None
) -> list[float]:
    """Return the weights of a mapping ``{label: weight}`` in class order."""
    if classes is None:
        raise ValueError("class_weights is a mapping: give classes too, they set the order.")
    labels = class_labels(classes)
    weights = {plain(label): weight for label, weight in class_weights.items()}
    check_known(weights, labels, "class_weights")
    for label in labels:
        if label not in weights:
            raise ValueError(f"class {label!r} has no weight: add one to class_weights or y.")
    return [weights[label] for label in labels]


def ordinal_costs(
    n_classes: int,
    *,
    under: float = 1.0,
    over: float = 1.0,
    power: float = 1.0,
    labels: Iterable[Any] | None = None,
) -> Any:
    """Return costs that grow with the distance between ordered classes.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.
    under, over : float, default=1.0
        Price of an answer one class below the truth (too low: left of the diagonal) and of one a
        class above it (too high: right of it).
    power : float, default=1.0
        Exponent of the distance; 2 punishes far misses harder.
    labels : iterable of K labels, optional
        The classes in the order of the rows, from the lowest to the highest: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth, from the lowest class to the highest.
        Give `labels` where these do not sort in this order.

    Examples
    --------
    >>> ordinal_costs(3, under=10)
    array([[ 0.,  1.,  2.],
           [10.,  0.,  1.],
           [20., 10.,  0.]])
    >>> ordinal_costs(2, under=10, labels=["low", "high"])["high"]
    {'low': 10.0, 'high': 0.0}
    """
    check_positive(under=under, over=over, power=power)
    classes = np.arange(len(zero_one_costs(n_classes)))
    excess = classes[np.newaxis, :] - classes[:, np.newaxis]
    with np.errstate(over="ignore"):
        far = np.abs(excess) ** float(power)
        costs: FloatArray = far * np.where(excess > 0, float(over), float(under))
    return _with_labels(_checked(costs, under=under, over=over, power=power), labels)


def background_costs(
    n_views: int,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    labels: Iterable[Any] | None = None,
) -> Any:
    """Return the costs of a detector whose class 0 is the background: the paper's for faces.

    Parameters
    ----------
    n_views : int
        Number of object classes; with the background K = n_views + 1.
    alpha : float, default=1.0
        Price of a false positive: row 0.
    beta : float, default=1.0
        Price of a false negative: column 0.
    labels : iterable of K labels, optional
        The classes in the order of the rows, the background first: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth. Taking one view for another costs 1.

    Examples
    --------
    >>> background_costs(2, beta=1.5)
    array([[0. , 1. , 1. ],
           [1.5, 0. , 1. ],
           [1.5, 1. , 0. ]])
    """
    check_number("n_views", n_views, Integral, low=1)
    check_positive(alpha=alpha, beta=beta)
    costs = zero_one_costs(n_views + 1)
    costs[0, 1:] = alpha
    costs[1:, 0] = beta
    return _with_labels(costs, labels)


def circular_view_costs(
    n_views: int,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 1.0,
    labels: Iterable[Any] | None = None,
) -> Any:
    """Return `background_costs` with views arranged in a circle: the paper's for cars.

    Parameters
    ----------
    n_views : int
        Number of views; with the background, class 0, K = n_views + 1.
    alpha, beta : float, default=1.0
        Price of a false positive (row 0) and of a false negative (column 0).
    gamma : float, default=1.0
        Price of taking a view for the opposite one. Costs between views i and j are
        ``gamma * (1 - abs(2 * abs(i - j) - n_views) / n_views)``: linear in the angle.
    labels : iterable of K labels, optional
        The classes in the order of the rows, the background first: the result names them.

    Returns
    -------
    ndarray of shape (K, K), or dict with `labels`
        Costs ``C[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> circular_view_costs(4, beta=3)
    array([[0. , 1. , 1. , 1. , 1. ],
           [3. , 0. , 0.5, 1. , 0.5],
           [3. , 0.5, 0. , 0.5, 1. ],
           [3. , 1. , 0.5, 0. , 0.5],
           [3. , 0.5, 1. , 0.5, 0. ]])
    """
    costs = background_costs(n_views, alpha=alpha, beta=beta)
    check_positive(gamma=gamma)
    views = np.arange(n_views)
    apart = np.abs(views[:, np.newaxis] - views)
    costs[1:, 1:] = float(gamma) * 2 * np.minimum(apart, n_views - apart) / n_views
    return _with_labels(costs, labels)
