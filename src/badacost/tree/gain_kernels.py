"""Gain of splits, as compiled functions of the sums of a node.

A node has C sums x_c. Its mass is ``sum(masses * x)``, its purity ``sum(squares * x**2)`` and its
score ``purity / (mass + l2)``; a split gains the scores of its children minus that of the node.
For class weights this is the Gini index, for gradients (the last sum is one of hessians) the drop
of a second-order loss. With ``entropy`` the score is minus the mass times the entropy.

Splits are first compared by fast sums (`may_beat`), whose last digits depend on the processor; if
they may be the best, by `split_score`, which is the same on every machine.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.inner_kernels import inner

_SLACK = 1e-9  # upper bound of the error of fast sums, relative to mass and score
NEGLIGIBLE = 1e-14  # smaller fractions of the mass of a node are no children


@inner()
def _purity(gain, c, x):
    """Term of a sum in the purity of a node; with entropy, in that of the score."""
    if gain.entropy:
        return x * np.log(x) if x > 0.0 else 0.0
    return gain.squares[c] * x * x


@inner()
def node_score(gain, sums):
    """Score and mass of a node, summed in the same order on every machine."""
    purity = 0.0
    mass = 0.0
    for c in range(len(sums)):
        mass += gain.masses[c] * sums[c]
        purity += _purity(gain, c, sums[c])
    if not mass > 0.0:
        return 0.0, mass
    if gain.entropy:
        return purity - mass * np.log(mass), mass
    return purity / (mass + gain.l2), mass


@inner()
def split_score(gain, left, totals):
    """Sum of the scores of both children, from the sums of the left one; -inf if not allowed.

    The sum is rounded to 41 bits, so that equally good splits compare as equal.
    """
    purity_left = 0.0
    purity_right = 0.0
    mass_left = 0.0
    mass_right = 0.0
    first = 0
    if len(totals) == 2 and not gain.entropy:  # one gradient and a hessian: a loop takes longer
        x, x1 = left[0], left[1]
        y, y1 = totals[0] - x, totals[1] - x1
        mass_left = gain.masses[0] * x + gain.masses[1] * x1
        mass_right = gain.masses[0] * y + gain.masses[1] * y1
        purity_left = gain.squares[0] * x * x + gain.squares[1] * x1 * x1
        purity_right = gain.squares[0] * y * y + gain.squares[1] * y1 * y1
        first = 2
    for c in range(first, len(totals)):
        x = left[c]
        y = totals[c] - x
        mass_left += gain.masses[c] * x
        mass_right += gain.masses[c] * y
        purity_left += _purity(gain, c, x)
        purity_right += _purity(gain, c, y)
    mass = mass_left + mass_right
    smaller = mass_left if mass_left < mass_right else mass_right
    if smaller <= NEGLIGIBLE * mass or smaller < gain.min_mass:
        return -np.inf
    shift = 0.0
    if gain.entropy:
        shift = 8.0 * mass  # of the order of the terms of the score
        score = purity_left - mass_left * np.log(mass_left)
        score += purity_right - mass_right * np.log(mass_right) + shift
    else:
        score = purity_left / (mass_left + gain.l2) + purity_right / (mass_right + gain.l2)
    shifted = 4097.0 * score
    return shifted - (shifted - score) - shift


@inner(fastmath={"reassoc", "nsz"})
def may_beat(gain, left, cells, first, totals, mass, bound):
    """Add a bin to the sums of the left child; return whether the split may exceed a bound.

    The sums of the bin begin at ``cells[first]``.
    """
    purity_left = 0.0
    purity_right = 0.0
    mass_left = 0.0
    if gain.entropy:
        for c in range(len(totals)):
            x = left[c] + cells[first + np.uint64(c)]
            y = totals[c] - x
            left[c] = x
            mass_left += x
            purity_left += x * np.log(x) if x > 0.0 else 0.0
            purity_right += y * np.log(y) if y > 0.0 else 0.0
        mass_right = mass - mass_left
        score = purity_left - mass_left * np.log(mass_left)
        return score + purity_right - mass_right * np.log(mass_right) > bound
    for c in range(len(totals)):
        x = left[c] + cells[first + np.uint64(c)]
        y = totals[c] - x
        left[c] = x
        mass_left += gain.masses[c] * x
        purity_left += gain.squares[c] * (x * x)
        purity_right += gain.squares[c] * (y * y)
    mass_right = mass - mass_left
    if mass_left < gain.min_mass or mass_right < gain.min_mass:
        return False
    a = mass_left + gain.l2
    b = mass_right + gain.l2
    return purity_left * b + purity_right * a > bound * (a * b)


@inner()
def bound_of(score, mass):
    """Lower bound of the fast scores of splits whose exact score exceeds `score`."""
    return score - _SLACK * (abs(score) + mass) if score > -np.inf else score
