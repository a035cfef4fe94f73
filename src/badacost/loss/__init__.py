"""The cost-sensitive multi-class exponential loss (CMEL) and the step size that minimises it.

With costs ``C[truth, prediction]`` (rows are the truth) and K classes, everything is written with
the margins ``D = K/(K-1) C*``: adding a learner that predicts class g with step b multiplies the
loss of a sample of class l by ``exp(b D[l, g])``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import MIN_ROWS, Threads, exact_bincount, exact_sum
from badacost.costs import cost_star
from badacost.loss import weight_kernels as kernels

_LARGEST_EXPONENT = 700.0  # exp(709.8) is the largest float64
_SMALLEST_EXPONENT = 1e-8  # below, differences of exponentials lose half of their digits
_TRACE_OF_MASS = 1e-10  # fraction of the weight for mistakes that a learner never makes
_MAX_ITERATIONS = 200


def class_codes(n_classes: int) -> FloatArray:
    """Return the vectors that encode the classes: 1 for the class, -1/(K-1) for all others.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.

    Returns
    -------
    ndarray of shape (K, K)
        Row k is the code of class k. Rows sum to zero.

    Examples
    --------
    >>> class_codes(3)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    codes = np.full((n_classes, n_classes), -1.0 / (n_classes - 1))
    np.fill_diagonal(codes, 1.0)
    return codes


def cost_margins(cost_matrix: ArrayLike) -> FloatArray:
    """Return D = K/(K-1) C*, the products of the rows of C* with the codes of the classes.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Returns
    -------
    ndarray of shape (K, K)
        ``D[truth, prediction]``: negative on the diagonal, rows sum to zero.

    Examples
    --------
    >>> cost_margins([[0, 3], [1, 0]])
    array([[-6.,  6.],
           [ 2., -2.]])
    """
    star = cost_star(cost_matrix)
    return len(star) / (len(star) - 1) * star


def sample_margins(costs: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return the rows of D for samples with their own costs.

    Parameters
    ----------
    costs : array-like of shape (n, K)
        Cost of each decision for each sample; the cost of its class is ignored.
    y : array-like of shape (n,)
        True classes, 0..K-1.

    Returns
    -------
    ndarray of shape (n, K)
        Rows that sum to zero, with a negative entry for the class.

    Examples
    --------
    >>> sample_margins([[0, 3], [9, 0], [1, 0]], [0, 1, 1])
    array([[ -6.,   6.],
           [ 18., -18.],
           [  2.,  -2.]])
    """
    margins = np.array(costs, dtype=np.float64)
    own = np.arange(len(margins)), np.asarray(y)
    margins[own] = 0.0
    margins[own] = -margins.sum(axis=1)
    margins *= margins.shape[1] / (margins.shape[1] - 1)
    return margins


def mean_costs(costs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike) -> FloatArray:
    """Return the weighted mean of the costs of the samples of each class.

    Parameters
    ----------
    costs : array-like of shape (n, K)
        Cost of each decision for each sample.
    y : array-like of shape (n,)
        True classes, 0..K-1.
    sample_weight : array-like of shape (n,)
        Positive weights.

    Returns
    -------
    ndarray of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth; zeros for classes without samples.

    Examples
    --------
    >>> mean_costs([[0, 3], [9, 0], [1, 0]], [0, 1, 1], [1, 3, 1])
    array([[0., 3.],
           [7., 0.]])
    """
    rows, truth, weight = np.asarray(costs, np.float64), np.asarray(y), np.asarray(sample_weight)
    means = np.zeros((rows.shape[1], rows.shape[1]))
    for k in np.unique(truth):
        own, weights = rows[truth == k], weight[truth == k]
        smallest = own.min(axis=0)  # so that the mean of equal rows is that row, to the last bit
        above = [exact_sum(weights * column) for column in (own - smallest).T]
        means[k] = smallest + np.array(above) / exact_sum(weights)
    return means


def cmel(costs: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the weighted mean of the loss exp(C*(y, -) . f(x)).

    Parameters
    ----------
    costs : array-like of shape (n, K)
        ``c(x) = C* f(x)`` of every sample, with C from ``C[truth, prediction]``: rows of C, hence
        columns of `costs`, are the truth.
    y : array-like of shape (n,)
        True classes, 0..K-1.
    sample_weight : array-like of shape (n,), optional
        Weights that are not negative and not all zero; equal by default.

    Returns
    -------
    float
        The loss; inf only where it exceeds the range of a float.

    Examples
    --------
    >>> cmel([[0.0, -1.0], [2.0, 0.0]], [0, 1])
    1.0
    """
    scores = np.asarray(costs, dtype=np.float64)
    own = scores[np.arange(len(scores)), np.asarray(y)]
    weights = np.ones_like(own) if sample_weight is None else np.asarray(sample_weight, np.float64)
    counted = weights > 0
    if not counted.any():
        raise ValueError("sample_weight has no positive entry: give some sample a weight.")
    own, weights = own[counted], weights[counted]
    top = own.max()
    mean = exact_sum(np.exp(own - top) * weights) / exact_sum(weights)
    with np.errstate(over="ignore"):
        return float(np.exp(top + np.log(mean)))


def weak_learner_costs(margins: ArrayLike, step: float = 1.0) -> FloatArray:
    """Return the costs a weak learner has to minimise: exp(step D), less its diagonal by rows.

    Parameters
    ----------
    margins : array-like of shape (K, K)
        ``D[truth, prediction]`` of `cost_margins`: rows are the truth.
    step : float, default=1.0
        The step at which the loss is expanded. At zero the costs are the slopes ``D`` less the
        diagonal, the limit of the costs divided by a vanishing step: steepest descent.

    Returns
    -------
    ndarray of shape (K, K)
        Costs, rows are the truth, not negative and with a zero diagonal. Where exp would overflow
        all entries have a common positive factor, which keeps them finite and no decision changes.

    Examples
    --------
    >>> weak_learner_costs([[-6, 6], [2, -2]]).round(2)
    array([[  0.  , 403.43],
           [  7.25,   0.  ]])
    """
    slopes = np.asarray(margins, dtype=np.float64)
    exponents = step * slopes
    if np.abs(exponents).max() < _SMALLEST_EXPONENT:
        return slopes - np.diagonal(slopes)[:, np.newaxis]
    largest = exponents.max()
    if largest > _LARGEST_EXPONENT:
        exponents -= largest
    factors = np.exp(exponents)
    costs: FloatArray = factors - np.diagonal(factors)[:, np.newaxis]
    return costs


def confusion_weights(
    y: ArrayLike,
    predicted: ArrayLike,
    weights: ArrayLike,
    n_classes: int,
) -> FloatArray:
    """Return the weight of the samples of every class by prediction.

    Parameters
    ----------
    y, predicted : array-like of shape (n,)
        True and predicted classes, 0..K-1.
    weights : array-like of shape (n,)
        Sample weights.
    n_classes : int
        Number of classes K.

    Returns
    -------
    ndarray of shape (K, K)
        ``M[truth, prediction]``: rows are the truth.

    Examples
    --------
    >>> confusion_weights([0, 0, 1], [0, 1, 1], [0.5, 0.2, 0.3], 2)
    array([[0.5, 0.2],
           [0. , 0.3]])
    """
    truth, label, weight = np.asarray(y), np.asarray(predicted), np.asarray(weights, np.float64)
    if not (truth.ndim == 1 and truth.shape == label.shape == weight.shape):
        shapes = f"{truth.shape}, {label.shape} and {weight.shape}"
        raise ValueError(f"y, predicted and weights have shapes {shapes}: give one per sample.")
    if not {truth.dtype.kind, label.dtype.kind} <= {"b", "i", "u"}:
        raise TypeError("y and predicted must be whole numbers: give positions of classes.")
    for given in (truth, label):
        if given.min(initial=0) < 0 or given.max(initial=0) >= n_classes:
            raise ValueError(f"y and predicted must be from 0 to {n_classes - 1}.")
    return pair_sums(truth, label, weight, n_classes, Threads())


def pair_sums(
    y: NDArray[np.integer],
    predicted: NDArray[np.integer],
    weights: FloatArray,
    n_classes: int,
    threads: Threads,
) -> FloatArray:
    """Return `confusion_weights` of arrays that were checked: kernels read and write unchecked."""
    cells = np.empty(len(y), np.int32)
    kernels.pairs(threads.loop(len(y), MIN_ROWS), y, predicted, n_classes, cells)
    sums = exact_bincount(cells, weights, n_classes**2, threads)
    return sums.reshape(n_classes, n_classes)


def add_margins(
    log_weights: FloatArray,
    margins: FloatArray,
    y: NDArray[np.integer],
    predicted: NDArray[np.integer],
) -> None:
    """Add ``margins[truth, prediction]`` to the logarithms of the sample weights, in place.

    Parameters
    ----------
    log_weights : ndarray of shape (n,)
        Logarithms of the weights.
    margins : ndarray of shape (K, K)
        Step times ``D[truth, prediction]``: rows are the truth.
    y, predicted : ndarray of shape (n,)
        True and predicted classes, 0..K-1.

    Examples
    --------
    >>> log_weights = np.zeros(2)
    >>> margins = np.array([[-6.0, 6.0], [2.0, -2.0]])
    >>> add_margins(log_weights, margins, np.array([0, 1]), np.array([0, 0]))
    >>> log_weights
    array([-6.,  2.])
    """
    log_weights += margins[y, predicted]


def is_perfect(weight_sums: ArrayLike, margins: ArrayLike) -> bool:
    """Return whether a learner makes no mistake that has a cost, so that its step is unbounded.

    Parameters
    ----------
    weight_sums : array-like of shape (K, K)
        ``M[truth, prediction]`` of `confusion_weights`: rows are the truth.
    margins : array-like of shape (K, K)
        ``D[truth, prediction]`` of `cost_margins`: rows are the truth.

    Returns
    -------
    bool
        True if some weight lies where D < 0 and none where D > 0.

    Examples
    --------
    >>> is_perfect([[0.5, 0], [0, 0.5]], [[-6, 6], [2, -2]])
    True
    """
    mass = _relative_mass(weight_sums)
    slopes = np.asarray(margins, dtype=np.float64)
    return bool(mass[slopes < 0].any() and not mass[slopes > 0].any())


def optimal_step(weight_sums: ArrayLike, margins: ArrayLike) -> float:
    """Return the step b that minimises phi(b) = sum of M exp(b D), a convex function.

    Parameters
    ----------
    weight_sums : array-like of shape (K, K)
        ``M[truth, prediction]`` of `confusion_weights`, not negative: rows are the truth.
    margins : array-like of shape (K, K)
        ``D[truth, prediction]`` of `cost_margins`: rows are the truth.

    Returns
    -------
    float
        The minimiser. It is zero or negative for a learner no better than chance under these costs.
        It is finite even where phi has no minimum: for a learner that is always right (see
        `is_perfect`) or always wrong, 1e-10 of the weight is distributed evenly over the cells in
        which D has the missing sign.

    Notes
    -----
    phi'(b) = 0 is solved as ``log(sum of M D exp(b D) over D > 0)`` equal to
    ``log(sum of M |D| exp(b D) over D < 0)``. The difference of the two sides rises with a slope
    between known bounds, so it has one root, in a known bracket, and nothing overflows.

    Examples
    --------
    >>> round(optimal_step([[0.4, 0.1], [0.1, 0.4]], [[-2, 2], [2, -2]]), 6)
    0.346574
    """
    mass = _relative_mass(weight_sums)
    slopes = np.asarray(margins, dtype=np.float64)
    rising, falling = slopes > 0, slopes < 0
    if not mass[rising | falling].any():
        return 0.0
    for cells in (rising, falling):
        if not mass[cells].any():
            if not cells.any():
                raise ValueError("margins have one sign only: use those of cost_margins.")
            total = mass.sum()
            mass *= 1.0 - _TRACE_OF_MASS
            mass[cells] = _TRACE_OF_MASS * total / np.count_nonzero(cells)
        cells &= mass > 0
    # With the unit taken from the margins, the search does not depend on their scale.
    unit = np.frexp(np.abs(slopes[rising | falling]).max())[1]
    up_slopes, down_slopes = np.ldexp(slopes[rising], -unit), np.ldexp(-slopes[falling], -unit)
    if not (up_slopes.all() and down_slopes.all()):
        raise ValueError("the costs span too many orders of magnitude: reduce their range.")
    step = _balancing_step(mass[rising], up_slopes, mass[falling], down_slopes)
    with np.errstate(over="ignore"):
        step = float(np.ldexp(step, -unit))
    if math.isinf(step):
        raise ValueError("the costs are too small for a step: multiply them by a large number.")
    return step


def step_loss(weight_sums: ArrayLike, margins: ArrayLike, step: float) -> float:
    """Return phi(step) = sum of M exp(step D), the loss after a step relative to before.

    Parameters
    ----------
    weight_sums : array-like of shape (K, K)
        ``M[truth, prediction]`` of `confusion_weights`: rows are the truth.
    margins : array-like of shape (K, K)
        ``D[truth, prediction]`` of `cost_margins`: rows are the truth.
    step : float
        The step.

    Returns
    -------
    float
        The loss, inf if it is outside the range of floats.

    Examples
    --------
    >>> round(step_loss([[0.4, 0.1], [0.1, 0.4]], [[-2, 2], [2, -2]], 0.346574), 6)
    0.8
    """
    with np.errstate(over="ignore"):
        terms = np.exp(step * np.asarray(margins, dtype=np.float64))
        mass = np.asarray(weight_sums, dtype=np.float64)
        return float(np.sum(mass[mass > 0] * terms[mass > 0]))


def _relative_mass(weight_sums: ArrayLike) -> FloatArray:
    """Return the weights divided by a power of two, with the largest about one."""
    mass = np.array(weight_sums, dtype=np.float64)
    return np.ldexp(mass, -np.frexp(mass.max())[1])  # a power of two keeps all digits


def _balancing_step(
    up_mass: FloatArray, up_slopes: FloatArray, down_mass: FloatArray, down_slopes: FloatArray
) -> float:
    """Return b where sum(up_mass up_slopes e^(b up_slopes)) meets the sum of the falling terms.

    All arguments are positive vectors. Newton's method, kept inside a bracket; a bisection step is
    taken whenever Newton's fails to halve the move before it.
    """
    rise, fall = up_mass @ up_slopes, down_mass @ down_slopes
    if math.isclose(rise, fall, rel_tol=1e-12) and (
        _exact_product(up_mass, up_slopes) == _exact_product(down_mass, down_slopes)
    ):
        return 0.0
    up_logs = np.log(up_mass) + np.log(up_slopes)
    down_logs = np.log(down_mass) + np.log(down_slopes)

    def log_imbalance(step: float) -> tuple[float, float]:
        """Return the log of rising over falling terms of phi' at a step, and its derivative."""
        up, up_rate = _log_sum(up_logs + step * up_slopes, up_slopes)
        down, down_rate = _log_sum(down_logs - step * down_slopes, down_slopes)
        return up - down, up_rate + down_rate

    excess, _ = log_imbalance(0.0)
    steepest = float(up_slopes.max() + down_slopes.max())
    flattest = float(up_slopes.min() + down_slopes.min())
    low, high = sorted((-excess / steepest, -excess / flattest))
    step, move = low, high - low
    for _ in range(_MAX_ITERATIONS):
        excess, slope = log_imbalance(step)
        if excess > 0:
            high = step
        else:
            low = step
        newton = step - excess / slope
        halves = abs(newton - step) <= abs(move) / 2
        target = newton if halves and low <= newton <= high else (low + high) / 2
        step, move = target, target - step
        if abs(move) <= 2 * np.finfo(np.float64).eps * abs(step):
            break
    if abs(step) < 1.0:  # logarithms near each other lose digits that a short step needs
        exact_step = np.longdouble(step)
        rising = up_mass * up_slopes * np.exp(exact_step * up_slopes)
        falling = down_mass * down_slopes * np.exp(-exact_step * down_slopes)
        slope = (rising * up_slopes).sum() + (falling * down_slopes).sum()
        step = float(exact_step - (rising.sum() - falling.sum()) / slope)
    return step


def _exact_product(mass: FloatArray, slopes: FloatArray) -> Fraction:
    """Return the scalar product without rounding."""
    pairs = zip(mass.tolist(), slopes.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def _log_sum(exponents: FloatArray, slopes: FloatArray) -> tuple[float, float]:
    """Return log(sum(exp(exponents))) and the mean of `slopes` under the terms of that sum."""
    top = exponents.max()
    terms = np.exp(exponents - top)
    total = terms.sum()
    return float(top + np.log(total)), float(terms @ slopes / total)
