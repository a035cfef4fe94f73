"""The explanation of a cost matrix: sentences about the decisions it leads to.

Everything follows from the rule of minimum expected cost, the argmin over j of
``sum_i P(i) C(i, j)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, compress
from numbers import Integral
from textwrap import TextWrapper
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from badacost._utils.arrays import FloatArray, Mask
from badacost._utils.categorical_columns import listed
from badacost._utils.validation import check_number
from badacost.costs.matrix import (
    as_classes,
    check_known,
    class_labels,
    given_costs,
    labels_of,
    real_numbers,
    regret,
    stationary_distribution,
)

_MAX_LISTED = 10  # classes in the table, pairs and mistakes in sentences
_MAX_COMPARED = 100  # classes: each pair is compared with all others
_MIN_ADVANTAGE = 1e-9  # in units of the largest difference of a row
_MIN_WIDTH = 40
_INFEASIBLE = 2  # status of a linear program without solution
_DIAGONAL = (
    "The diagonal is not zero: each of its entries is subtracted from its row, which changes no "
    "decision, and all that follows is about what mistakes cost on top."
)
_INVARIANCE = (
    "Two changes leave all this as it is: all costs times a positive number, and a number added "
    "to a whole row, diagonal included."
)


def explain_costs(
    costs: Any,
    *,
    classes: Iterable[Any] | None = None,
    priors: ArrayLike | Mapping[Any, float] | None = None,
    width: int = 80,
) -> str:
    """Explain in plain sentences which decisions a cost matrix leads to.

    Read it before training: a transposed matrix shows in the first sentences, since the most
    expensive mistake is not the one that was meant.

    Parameters
    ----------
    costs : array-like of shape (K, K), nested mapping or data frame
        ``C[truth, prediction]``: rows are the truth; see `as_cost_matrix`.
    classes : iterable of K labels, optional
        The classes, in the order of the rows of an array. By default those that a mapping or data
        frame names, and 0..K-1 for an array.
    priors : sequence of K numbers or mapping, optional
        Probabilities or counts of the classes, in the order of the classes or by label. By default
        all alike.
    width : int, default=80
        Maximum number of characters in a line, but for words that are longer; at least 40.

    Returns
    -------
    str
        Lines for a terminal: the table, the most expensive and the cheapest mistake, what kind of
        costs these are, above which probability a class is predicted, classes that are never
        predicted, the best prediction when nothing is known, and what the rules of
        `BAdaCostClassifier` make of it.

    Examples
    --------
    >>> print(explain_costs({"ham": {"spam": 5}, "spam": {"ham": 1}}, priors=[3, 1]))
    Costs of 2 classes, rows are the truth, columns the prediction:
          ham  spam
    ham     0     5
    spam    1     0
    The most expensive mistake is predicting 'spam' where the truth is 'ham': 5.
    The cheapest mistake is predicting 'ham' where the truth is 'spam': 1; the most
        expensive costs 5 times as much.
    'ham' is predicted if its probability exceeds 0.167, 'spam' if its probability
        exceeds 0.833.
    With these priors, and nothing else known, the cheapest prediction is 'ham':
        0.25 a decision.
    Two changes leave all this as it is: all costs times a positive number, and a
        number added to a whole row, diagonal included.
    Both rules of BAdaCost tend, with much data, to the minimum expected cost.
    """
    check_number("width", width, Integral, low=_MIN_WIDTH)
    labels = class_labels(labels_of(costs) if classes is None else classes)
    given = given_costs(costs, labels)
    matrix = regret(given, labels)
    names = [repr(label) for label in labels]
    sentences = [_DIAGONAL] if given.diagonal().any() else []
    sentences += _extremes(matrix, names)
    sentences += _contests(matrix, names)
    sentences += [_best_constant(given, priors, labels), _INVARIANCE]
    sentences += [_rules_of_badacost(matrix, labels)]
    lines = TextWrapper(
        width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    head = f"Costs of {len(labels)} classes, rows are the truth, columns the prediction:"
    table = _table(given, labels, width)
    return "\n".join([lines.fill(head), *table, *map(lines.fill, sentences)])


def _table(given: FloatArray, labels: Sequence[Any], width: int) -> list[str]:
    """Return the lines of the table, columns numbered where names are long; none if too wide."""
    if len(labels) > _MAX_LISTED:
        return []
    names = [str(label) if str(label).isprintable() else repr(label) for label in labels]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    numbered = [f"{number} {name:.30}" for number, name in zip(numbers, names, strict=True)]
    for margin, columns in ((names, names), (numbered, numbers)):
        rows = [["", *columns]]
        rows += [[name, *(f"{x:g}" for x in row)] for name, row in zip(margin, given, strict=True)]
        first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = ["  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]) for row in rows]
        if len(lines[0]) <= width:
            return lines
    return []


def _extremes(matrix: FloatArray, names: Sequence[str]) -> list[str]:
    """Name the most expensive and the cheapest mistake, and the free ones, or what all cost."""
    positive = matrix[matrix > 0]
    highest, lowest = float(positive.max()), float(positive.min())
    is_free = (matrix == 0) & ~np.eye(len(matrix), dtype=np.bool_)
    if np.isclose(lowest, highest, rtol=1e-12, atol=0.0) and not is_free.any():
        equal = f"Every mistake costs {highest:g}, as with 0|1 costs"
        return [f"{equal}: the cheapest prediction is the most probable class."]
    most, least = (_mistakes(matrix == cost, names, 1) for cost in (highest, lowest))
    sentences = [f"The most expensive mistake is {most}: {highest:g}."]
    if lowest < highest:
        which = "cheapest mistake that is not free" if is_free.any() else "cheapest mistake"
        ratio = f"the most expensive costs {highest / lowest:.4g} times as much"
        sentences.append(f"The {which} is {least}: {lowest:g}; {ratio}.")
    if is_free.any():
        sentences.append(f"Free mistakes: {_mistakes(is_free, names)}.")
    if _are_class_weights(matrix) and len(matrix) > 2:
        same = "Mistakes on a class cost the same whatever the prediction"
        sentences.append(f"{same}: these costs are class weights.")
    return sentences


def _mistakes(mask: Mask, names: Sequence[str], limit: int = _MAX_LISTED) -> str:
    """Return mistakes in words, at most so many of them."""
    mistakes = [
        f"predicting {names[j]} where the truth is {names[i]}" for i, j in np.argwhere(mask)
    ]
    return _enumerated(mistakes, limit)


def _enumerated(items: Sequence[str], limit: int = _MAX_LISTED) -> str:
    """Return the first items with commas, and how many there are more."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f", and {more} more" if more > 0 else "")


def _are_class_weights(matrix: FloatArray) -> bool:
    """Whether mistakes on a class cost the same whatever the prediction."""
    expected = matrix.max(axis=1, keepdims=True) * (1.0 - np.eye(len(matrix)))
    return np.allclose(matrix, expected, rtol=1e-12, atol=0.0)


def _thresholds(matrix: FloatArray) -> FloatArray:
    """Return the P(i) above which i is predicted if only i and j are possible, (K, K).

    The prediction k ties with i where P times ``C(i, k)`` is 1 - P times ``C(j, i) - C(j, k)``.
    """
    gains = np.maximum(matrix.T[:, :, np.newaxis] - matrix, 0.0)
    losses = matrix[:, np.newaxis]
    ties = np.divide(gains, gains + losses, out=np.zeros_like(gains), where=gains > 0)
    return np.asarray(ties.max(axis=2))


def _contests(matrix: FloatArray, names: Sequence[str]) -> list[str]:
    """Name the probabilities above which classes are predicted, and classes that never are."""
    n_classes = len(names)
    if n_classes > _MAX_COMPARED:
        return [f"Thresholds between classes are not listed for more than {_MAX_COMPARED} classes."]
    above = _thresholds(matrix)
    if n_classes == 2:
        return [
            f"{names[0]} is predicted if its probability exceeds {_rounded(above[0, 1])}, "
            f"{names[1]} if its probability exceeds {_rounded(above[1, 0])}."
        ]
    never = [k for k in range(n_classes) if not _can_be_cheapest(matrix, k)]
    lines = [_never_predicted(matrix, k, names) for k in never]
    distance = np.maximum(np.abs(above - 0.5), np.abs(above.T - 0.5))
    pairs = sorted(combinations(range(n_classes), 2), key=lambda pair: -distance[pair])
    if distance[pairs[0]] == 0.0:
        return lines
    contests = [_contest(matrix, i, j, above, names) for i, j in pairs[:_MAX_LISTED]]
    if len(pairs) > _MAX_LISTED:
        contests.append(f"  and {len(pairs) - _MAX_LISTED} pairs nearer to one half.")
    return ["Where only two classes are possible, these are predicted:", *contests, *lines]


def _contest(matrix: FloatArray, i: int, j: int, above: FloatArray, names: Sequence[str]) -> str:
    """Return the thresholds of two classes in words."""
    upper, lower = above[i, j], 1.0 - above[j, i]  # between them both cost more than others
    line = (
        f"  {names[i]} if P({names[i]}) exceeds {_rounded(upper)}, "
        f"{names[j]} if it is below {_rounded(lower)}"
    )
    if upper - lower <= _MIN_ADVANTAGE:
        return f"{line}."
    middle = (upper + lower) / 2
    between = int((middle * matrix[i] + (1 - middle) * matrix[j]).argmin())
    return f"{line}, and between them others, such as {names[between]}."


def _rounded(probability: float) -> str:
    """Return a probability with three digits, or more if it would become one."""
    text = f"{probability:.3g}"
    return f"1 - {1 - probability:.1g}" if text == "1" and probability < 1 else text


def _never_predicted(matrix: FloatArray, k: int, names: Sequence[str]) -> str:
    """Return in words that class `k` is never cheaper than all others."""
    rivals = [j for j in range(len(matrix)) if j != k and (matrix[:, j] <= matrix[:, k]).all()]
    reason = f": {names[rivals[0]]} never costs more" if rivals else ""
    return f"{names[k]} is never the only cheapest prediction{reason}."


def _can_be_cheapest(matrix: FloatArray, prediction: int) -> bool:
    """Whether a prediction is cheaper than all others for some probabilities.

    Only those count that are free where `prediction` is right: next to certainty the others cost
    more. A linear program looks for weights of the other truths with an advantage over all of
    them; rows are scaled to one, which these weights make up for.
    """
    tied = matrix[prediction] == 0
    tied[prediction] = False
    excess = matrix[:, tied] - matrix[:, [prediction]]
    excess /= np.abs(excess).max(axis=1, keepdims=True, initial=np.finfo(np.float64).tiny)
    limits = 0.0, 1.0 / _MIN_ADVANTAGE
    wanted = np.ones(tied.sum())
    found = linprog(np.zeros(len(matrix)), A_ub=-excess.T, b_ub=-wanted, bounds=limits)
    return bool(found.status != _INFEASIBLE)


def _best_constant(given: FloatArray, priors: Any, labels: Sequence[Any]) -> str:
    """Name the best prediction where only the probabilities of the classes are known."""
    known = "With all classes equally probable" if priors is None else "With these priors"
    if isinstance(priors, Mapping):
        found = as_classes(priors, labels)
        check_known(found, labels, "priors")
        by_label = dict(zip(found, priors.values(), strict=True))
        priors = [by_label.get(label, 0.0) for label in labels]
    wanted = "give a probability or count of each class, finite and none of them negative"
    shape = (len(labels),)
    counts = real_numbers(np.ones(shape) if priors is None else priors, "priors", wanted, shape)
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.any()):
        raise ValueError(f"priors are {priors!r:.80}: {wanted}.")
    counts = counts / counts.max()
    constant = counts / counts.sum() @ given
    is_best = np.isclose(constant, constant.min(), rtol=1e-12, atol=0.0)
    verb = "predictions are" if is_best.sum() > 1 else "prediction is"
    best = f"{listed(compress(labels, is_best))}: {constant.min():.4g} a decision."
    return f"{known}, and nothing else known, the cheapest {verb} {best}"


def _rules_of_badacost(matrix: FloatArray, labels: Sequence[Any]) -> str:
    """Name what the two decision rules of BAdaCost make of the costs."""
    if _are_class_weights(matrix):
        return "Both rules of BAdaCost tend, with much data, to the minimum expected cost."
    try:
        pi = stationary_distribution(matrix, labels)
    except ValueError as error:
        return f"For BAdaCost {error}"
    margin = 'BAdaCost with decision="margin" tends, with much data, to'
    if np.allclose(pi, 1.0 / len(pi), rtol=1e-6):
        return f'{margin} the most probable class, whatever these costs: use decision="bayes".'
    numbers = [f"{label!r} {number:.3g}" for label, number in zip(labels, pi, strict=True)]
    return (
        f"{margin} the class of the largest probability divided by these numbers: "
        f'{_enumerated(numbers)}; decision="bayes" tends to the minimum expected cost.'
    )
