"""Costs of detectors: the background, class 0, and views of an object."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from badacost._utils.validation import check_number
from badacost.costs.builders import with_labels, zero_one_costs
from badacost.costs.matrix import check_positive


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
        Cost of a false positive: row 0.
    beta : float, default=1.0
        Cost of a false negative: column 0.
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
    return with_labels(costs, labels)


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
        Cost of a false positive (row 0) and of a false negative (column 0).
    gamma : float, default=1.0
        Cost of taking a view for the opposite one. Costs between views i and j are
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
    return with_labels(costs, labels)
