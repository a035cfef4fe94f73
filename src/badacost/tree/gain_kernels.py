"""What a split gains, as small compiled functions of sums.

The score of a node is ``node_score(purity, mass)`` of two sums over its C sums x_c; a split gains
what the scores of its children have over that of the node. A split is first judged by fast sums
(`advance`) whose last digits depend on the path taken and on the processor; if it may be the best,
by `split_score`, which is a function of the exact sums alone.

Here and in the other kernels of trees, ``width`` is None where labels with weights are summed; for
rows of numbers it is a tuple of length C, which the compiler then knows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from badacost.kernel_cache import njit

_SLACK = 1e-9  # fast sums are better than this, relative to mass and score
# Of functions that only kernels call: wrappers for Python would take a fifth of the compilation.
INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
NEGLIGIBLE = 1e-14  # a child with less than this share of the mass cannot bring a gain that counts


class Gini(NamedTuple):
    """Sums of weighted squares over the mass: ``factors`` of shape (C,)."""

    factors: NDArray[np.float64]


class Entropy(NamedTuple):
    """Minus the mass times the entropy of the shares."""

    unused: float = 0.0


class SquaredGradients(NamedTuple):
    """Squares of all sums but the last, over the last one, which is a sum of hessians."""

    l2: float
    min_hessian: float


def purity_term(gain, c, n_columns, x):
    """Contribution of one sum to the purity of a node."""


def purity_rise(gain, c, x, change):
    """What the purity rises by when a sum x grows by a change."""


def mass_term(gain, c, n_columns, x):
    """Contribution of one sum to the mass of a node."""


def node_score(gain, purity, mass):
    """Score of a node."""


def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
    """Whether a split scores above a bound; False for children without mass."""


def _score_shift(gain, mass):
    """What to add to scores before they are rounded: the size of the terms they are made of."""


def _is(gain, kind):
    return getattr(gain, "instance_class", None) is kind


@overload(purity_term)
def _purity_of(gain, c, n_columns, x):
    if _is(gain, Gini):
        return lambda gain, c, n_columns, x: gain.factors[c] * x * x
    if _is(gain, Entropy):
        return lambda gain, c, n_columns, x: x * np.log(x) if x > 0.0 else 0.0
    return lambda gain, c, n_columns, x: x * x if c < n_columns - 1 else 0.0


@overload(purity_rise)
def _rise_of(gain, c, x, change):
    if _is(gain, Gini):
        return lambda gain, c, x, change: gain.factors[c] * (change * (2.0 * x + change))
    return lambda gain, c, x, change: (
        purity_term(gain, c, c + 2, x + change) - purity_term(gain, c, c + 2, x)
    )


@overload(mass_term)
def _mass_of(gain, c, n_columns, x):
    if _is(gain, SquaredGradients):
        return lambda gain, c, n_columns, x: x if c == n_columns - 1 else 0.0
    return lambda gain, c, n_columns, x: x


@overload(node_score)
def _single_of(gain, purity, mass):
    if _is(gain, Gini):
        return lambda gain, purity, mass: purity / mass if mass > 0.0 else 0.0
    if _is(gain, Entropy):
        return lambda gain, purity, mass: purity - mass * np.log(mass) if mass > 0.0 else 0.0
    return lambda gain, purity, mass: purity / (mass + gain.l2) if mass > 0.0 else 0.0


@overload(beats)
def _beats_of(gain, purity_left, mass_left, purity_right, mass_right, bound):
    if _is(gain, Gini):

        def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
            numerator = purity_left * mass_right + purity_right * mass_left
            return numerator > bound * (mass_left * mass_right)
    elif _is(gain, Entropy):

        def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
            left = purity_left - mass_left * np.log(mass_left)
            return left + purity_right - mass_right * np.log(mass_right) > bound
    else:

        def beats(gain, purity_left, mass_left, purity_right, mass_right, bound):
            if min(mass_left, mass_right) < gain.min_hessian:
                return False
            left, right = mass_left + gain.l2, mass_right + gain.l2
            return purity_left * right + purity_right * left > bound * (left * right)

    return beats


@overload(_score_shift)
def _shift_of(gain, mass):
    if _is(gain, Entropy):
        return lambda gain, mass: 8.0 * mass
    return lambda gain, mass: 0.0


@njit(**INNER)
def count_columns(width, totals):
    """Number of sums C."""
    if width is None:
        return totals.shape[totals.ndim - 1]
    return len(width)


@njit(**INNER)
def rounded(weight, unit):
    """A weight as a multiple of the quantum that belongs to a unit."""
    return (np.float64(weight) + unit) - unit


@njit(**INNER)
def purity_and_mass(gain, width, sums):
    """Purity and mass of a node, from its exact sums: in one order on every machine."""
    n_columns = count_columns(width, sums)
    purity = 0.0
    mass = 0.0
    for c in range(n_columns):
        purity += purity_term(gain, c, n_columns, sums[c])
        mass += mass_term(gain, c, n_columns, sums[c])
    return purity, mass


@njit(**INNER, error_model="numpy")
def split_score(gain, width, left, totals):
    """Score of a split as a function of the exact sums of its left side; -inf if it is useless.

    Rounded to 41 bits, so that splits of equal worth compare as equal.
    """
    n_columns = count_columns(width, totals)
    purity_left = 0.0
    purity_right = 0.0
    mass_left = 0.0
    mass_right = 0.0
    for c in range(n_columns):
        right = totals[c] - left[c]
        purity_left += purity_term(gain, c, n_columns, left[c])
        purity_right += purity_term(gain, c, n_columns, right)
        mass_left += mass_term(gain, c, n_columns, left[c])
        mass_right += mass_term(gain, c, n_columns, right)
    mass = mass_left + mass_right
    if min(mass_left, mass_right) <= NEGLIGIBLE * mass:
        return -np.inf
    if not beats(gain, purity_left, mass_left, purity_right, mass_right, -np.inf):
        return -np.inf
    shift = _score_shift(gain, mass)
    score = (
        node_score(gain, purity_left, mass_left)
        + node_score(gain, purity_right, mass_right)
        + shift
    )
    shifted = 4097.0 * score
    return shifted - (shifted - score) - shift


@njit(
    nogil=True,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    error_model="numpy",
    fastmath={"reassoc", "nsz"},
)
def advance(gain, width, left, cells, first, totals, mass, bound):
    """Add the sums of a bin to those of the left side; tell whether the split may beat a bound."""
    n_columns = count_columns(width, totals)
    purity_left = 0.0
    purity_right = 0.0
    mass_left = 0.0
    for c in range(n_columns):
        x = left[c] + cells[first + np.uint64(c)]
        left[c] = x
        mass_left += mass_term(gain, c, n_columns, x)
        purity_left += purity_term(gain, c, n_columns, x)
        purity_right += purity_term(gain, c, n_columns, totals[c] - x)
    return beats(gain, purity_left, mass_left, purity_right, mass - mass_left, bound)


@njit(**INNER)
def score_to_beat(score, mass):
    """What the fast score of a split has to exceed, if its exact score shall exceed another."""
    return score - _SLACK * (abs(score) + mass) if score > -np.inf else score
