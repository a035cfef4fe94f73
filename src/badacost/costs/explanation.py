"""The explanation of a cost matrix: plain sentences that say which decisions it leads to.

Everything follows from the rule of minimum expected cost, the argmin over j of
``sum_i P(i) C(i, j)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from numbers import Integral
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from badacost.arrays import FloatArray, Mask
from badacost.costs.matrix import (
    as_classes,
    as_cost_matrix,
    check_known,
    class_labels,
    costs_as_given,
    is_irreducible,
    named_classes,
    real_numbers,
    stationary_distribution,
)
from badacost.large_samples import is_sparse
from badacost.validation import check_number

_MAX_CLASSES_DRAWN = 10
_MAX_LISTED = 10
_MAX_COMPARED = 100  # classes: each pair is compared with all others
_MIN_ADVANTAGE = 1e-9  # in units of the largest difference of a row
_MIN_WIDTH = 40
_MAX_NAME_LENGTH = 30  # before rows whose columns are numbered


def explain_costs(
    costs: Any,
    *,
    classes: Iterable[Any] | None = None,
    priors: ArrayLike | Mapping[Any, float] | None = None,
    width: int = 80,
) -> str:
    """Say in plain sentences which decisions a cost matrix leads to.

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
        How frequent the classes are, as shares or counts, in the order of the classes or by
        label. By default all alike.
    width : int, default=80
        Maximum number of characters in a line, but for words that are longer; at least 40.

    Returns
    -------
    str
        Lines for a terminal: the table, the most expensive and the cheapest mistake, what kind of
        costs these are, above which probability a class is answered, classes that are never
        answered, the answer when nothing is known, and what the rules of `BAdaCostClassifier` make
        of it.

    Examples
    --------
    >>> print(explain_costs({"ham": {"spam": 5}, "spam": {"ham": 1}}, priors=[3, 1]))
    Costs of 2 classes, rows are the truth, columns the answer:
          ham  spam
    ham     0     5
    spam    1     0
    The most expensive mistake is to answer 'spam' where the truth is 'ham': 5.
    The cheapest mistake is to answer 'ham' where the truth is 'spam': 1; the most
        expensive costs 5 times as much.
    'ham' is answered if its probability exceeds 0.167, 'spam' if its probability
        exceeds 0.833.
    With these priors, and nothing else known, the cheapest answer is 'ham': 0.25 a
        decision.
    Two changes leave all this as it is: all costs times a positive number, and a
        number added to a whole row, diagonal included.
    Both rules of BAdaCost tend, with much data, to the minimum expected cost.
    """
    check_number("width", width, Integral, low=_MIN_WIDTH)
    labels = class_labels(_labels(costs, classes))
    given = costs_as_given(costs, labels)
    matrix = as_cost_matrix(costs, labels)
    shares = _shares(priors, labels)
    names = [repr(label) for label in labels]
    sentences = [
        *_right_answers(given),
        *_extremes(matrix, names),
        *_kind(matrix),
        *_contests(matrix, names),
        *_ignorance(given, shares, names, priors is not None),
        "Two changes leave all this as it is: all costs times a positive number, and a number "
        "added to a whole row, diagonal included.",
        *_rules_of_badacost(matrix, labels),
    ]
    lines = [_wrapped(sentence, width) for sentence in sentences]
    return "\n".join([*_table(given, labels, width), *lines])


def _wrapped(sentence: str, width: int) -> str:
    """Return a sentence in lines for a terminal."""
    return fill(
        sentence, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _labels(costs: Any, classes: Iterable[Any] | None) -> Iterable[Any]:
    """Return the classes that are given, or that the costs name, or numbers."""
    if classes is not None:
        return classes
    named = named_classes(costs)
    if named is None and (is_sparse(costs) or not np.ndim(costs)):
        raise TypeError(
            f"costs are of type {type(costs).__name__}: give a K x K array, a mapping "
            "{truth: {prediction: cost}} or a labelled data frame."
        )
    return range(len(costs)) if named is None else named


def _shares(priors: Any, labels: Sequence[Any]) -> FloatArray:
    """Return how frequent the classes are, as shares that sum to one."""
    if priors is None:
        return np.full(len(labels), 1.0 / len(labels))
    if isinstance(priors, Mapping):
        found = as_classes(priors, labels)
        check_known(found, labels, "priors")
        by_label = dict(zip(found, priors.values(), strict=True))
        priors = [by_label.get(label, 0.0) for label in labels]
    shares = real_numbers(priors, "priors", "give one share or count for each class")
    if shares.shape != (len(labels),):
        raise ValueError(
            f"priors have shape {shares.shape} for {len(labels)} classes: give one for each."
        )
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.any()):
        raise ValueError("priors are shares or counts: give finite numbers, none of them negative.")
    shares = shares / shares.max()
    return shares / shares.sum()


def _table(given: FloatArray, labels: Sequence[Any], width: int) -> list[str]:
    """Return the costs with their labels, if they fit on a screen; columns are perhaps numbered."""
    head = f"Costs of {len(labels)} classes, rows are the truth, columns the answer"
    if len(labels) > _MAX_CLASSES_DRAWN:
        return [_wrapped(f"{head}.", width)]
    names = [str(label) if str(label).isprintable() else repr(label) for label in labels]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    numbered = [f"{number} {_shortened(name)}" for number, name in zip(numbers, names, strict=True)]
    for rows, columns in ((names, names), (numbered, numbers)):
        lines = _aligned(given, rows, columns)
        if max(map(len, lines)) <= width:
            return [_wrapped(f"{head}:", width), *lines]
    return [_wrapped(f"{head}.", width)]


def _shortened(name: str) -> str:
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 3]}..."


def _aligned(given: FloatArray, names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return a matrix in lines, with names before its rows and above its columns."""
    rows = [["", *columns]]
    rows += [[name, *(f"{cost:g}" for cost in row)] for name, row in zip(names, given, strict=True)]
    margin, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"{name:{margin}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, widths, strict=True))
        for name, *row in rows
    ]


def _right_answers(given: FloatArray) -> list[str]:
    """Say what happens to prices of being right."""
    if not np.diagonal(given).any():
        return []
    return [
        "Being right has a price, on the diagonal: it is subtracted from its row, which changes no "
        "decision, and all that follows is about what mistakes cost on top."
    ]


def _extremes(matrix: FloatArray, names: Sequence[str]) -> list[str]:
    """Name the most expensive and the cheapest mistake, and the free ones."""
    mistakes = ~np.eye(len(matrix), dtype=np.bool_)
    costs = np.where(mistakes, matrix, -np.inf)
    priced = np.where(mistakes & (matrix > 0), matrix, np.inf)
    highest, lowest = float(costs.max()), float(priced.min())
    free = np.argwhere(mistakes & (matrix == 0))
    if highest == lowest and not len(free):
        return []
    sentences = [f"The most expensive mistake is {_first(costs == highest, names)}: {highest:g}."]
    if lowest < highest:
        sentences.append(
            f"The cheapest mistake {'with a price ' if len(free) else ''}is "
            f"{_first(priced == lowest, names)}: {lowest:g}; the most expensive costs "
            f"{highest / lowest:.4g} times as much."
        )
    if len(free):
        shown = [_mistake(i, j, names) for i, j in free[:_MAX_LISTED]]
        sentences.append(f"Free mistakes: {_enumerated(shown, len(free))}.")
    return sentences


def _first(mask: Mask, names: Sequence[str]) -> str:
    """Return the first mistake of a mask in words, and how many others there are."""
    found = np.argwhere(mask)
    others = f" (and {len(found) - 1} like it)" if len(found) > 1 else ""
    truth, answer = found[0]
    return _mistake(truth, answer, names) + others


def _mistake(truth: Any, answer: Any, names: Sequence[str]) -> str:
    """Return a mistake in words."""
    return f"to answer {names[answer]} where the truth is {names[truth]}"


def _enumerated(items: Sequence[str], n_items: int) -> str:
    """Return some items with commas, of which there may be more."""
    shown = items[:_MAX_LISTED]
    more = [f"and {n_items - len(shown)} more"] if n_items > len(shown) else []
    return ", ".join([*shown, *more])


def _kind(matrix: FloatArray) -> list[str]:
    """Say whether costs are simpler than they look."""
    if not _are_class_weights(matrix):
        return []
    prices, price = matrix.max(axis=1), float(matrix.max())
    if np.allclose(prices, price, rtol=1e-12, atol=0.0):
        times = "" if price == 1 else f" times {price:g}"
        return [
            f"Every mistake costs {price:g}: these are 0|1 costs{times}, and the cheapest answer "
            "is the most probable class."
        ]
    if len(matrix) == 2:
        return []
    return ["Mistakes on a class cost the same whatever the answer: these costs are class weights."]


def _are_class_weights(matrix: FloatArray) -> bool:
    """Tell whether mistakes on a class cost the same whatever the answer."""
    prices = matrix.max(axis=1, keepdims=True)
    expected = prices * (1.0 - np.eye(len(matrix)))
    return bool(np.allclose(matrix, expected, rtol=1e-12, atol=0.0))


def _threshold(matrix: FloatArray, first: int, second: int) -> float:
    """Return the P(first) above which it is answered if only `first` and `second` are possible.

    The answer k ties with `first` where P times ``C(first, k)`` is 1 - P times
    ``C(second, first) - C(second, k)``.
    """
    gains = np.maximum(matrix[second, first] - matrix[second], 0.0)
    losses = matrix[first]
    ties = np.divide(gains, gains + losses, out=np.zeros_like(gains), where=gains > 0)
    return float(ties.max())


def _contests(matrix: FloatArray, names: Sequence[str]) -> list[str]:
    """Where classes are answered in the place of others, unless there are too many of them."""
    if len(names) > _MAX_COMPARED:
        return [f"Thresholds between classes are not listed for more than {_MAX_COMPARED} classes."]
    return [*_thresholds(matrix, names), *_never_answered(matrix, names)]


def _thresholds(matrix: FloatArray, names: Sequence[str]) -> list[str]:
    """Say above which probability classes are answered, where two are possible."""
    pairs = [
        (i, j, _threshold(matrix, i, j), _threshold(matrix, j, i))
        for i, j in combinations(range(len(names)), 2)
    ]
    if len(names) == 2:
        [(_, _, first, second)] = pairs
        return [
            f"{names[0]} is answered if its probability exceeds {_rounded(first)}, "
            f"{names[1]} if its probability exceeds {_rounded(second)}."
        ]
    if all(first == second == 0.5 for *_, first, second in pairs):
        return []
    pairs.sort(key=lambda pair: -max(abs(pair[2] - 0.5), abs(pair[3] - 0.5)))
    lines = [_contest(matrix, pair, names) for pair in pairs[:_MAX_LISTED]]
    if len(pairs) > _MAX_LISTED:
        lines.append(f"  and {len(pairs) - _MAX_LISTED} pairs nearer to one half.")
    return ["Where only two classes are possible, these are answered:", *lines]


def _contest(matrix: FloatArray, pair: tuple[int, int, float, float], names: Sequence[str]) -> str:
    """Say how two classes share the probabilities between them."""
    i, j, above, rest = pair
    first = f"{names[i]} if P({names[i]}) exceeds {_rounded(above)}"
    second = f"{names[j]} if it is below {_rounded(1 - rest)}"
    line = (
        f"  {first if above < 1 else f'never {names[i]}'}, "
        f"{second if rest < 1 else f'never {names[j]}'}"
    )
    if above + rest <= 1.0 + _MIN_ADVANTAGE:
        return f"{line}."
    middle = (above + 1.0 - rest) / 2
    between = int((middle * matrix[i] + (1 - middle) * matrix[j]).argmin())
    return f"{line}, and between them others, such as {names[between]}."


def _rounded(probability: float) -> str:
    """Return a probability with three digits, or more if it would become one."""
    text = f"{probability:.3g}"
    return f"1 - {1 - probability:.1g}" if text == "1" and probability < 1 else text


def _never_answered(matrix: FloatArray, names: Sequence[str]) -> list[str]:
    """Name the classes that are the only cheapest answer for no probabilities at all."""
    mistakes = ~np.eye(len(matrix), dtype=np.bool_)
    sentences = []
    for k in np.flatnonzero((mistakes & (matrix == 0)).any(axis=1)).tolist():
        if _can_be_cheapest(matrix, k):
            continue
        rivals = [j for j in range(len(matrix)) if j != k and (matrix[:, j] <= matrix[:, k]).all()]
        reason = f": {names[rivals[0]]} never costs more" if rivals else ""
        sentences.append(f"{names[k]} is never the only cheapest answer{reason}.")
    return sentences


def _can_be_cheapest(matrix: FloatArray, answer: int) -> bool:
    """Tell whether an answer is cheaper than all others for some probabilities.

    Only those count that are free where `answer` is right: next to certainty the others cost
    more. A linear program finds weights of the other truths with the largest advantage over all of
    them; rows are scaled to one, which these weights make up for.
    """
    tied = matrix[answer] == 0
    tied[answer] = False
    excess = np.delete(matrix[:, tied] - matrix[:, [answer]], answer, axis=0)
    excess = excess[excess.any(axis=1)]
    if not len(excess):
        return False
    excess /= np.abs(excess).max(axis=1, keepdims=True)
    n_truths, n_tied = excess.shape
    found = linprog(
        np.append(np.zeros(n_truths), -1.0),
        A_ub=np.column_stack([-excess.T, np.ones(n_tied)]),
        b_ub=np.zeros(n_tied),
        A_eq=np.append(np.ones(n_truths), 0.0)[np.newaxis],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * n_truths + [(-1.0, 1.0)],
    )
    return found.x is None or bool(found.x[-1] > _MIN_ADVANTAGE)


def _ignorance(
    given: FloatArray, shares: FloatArray, names: Sequence[str], are_given: bool
) -> list[str]:
    """Name the answer that is cheapest when only the frequencies of the classes are known."""
    constant = shares @ given
    known = "With these priors" if are_given else "With all classes equally probable"
    cheapest = np.isclose(constant, constant.min(), rtol=1e-12, atol=0.0)
    best = [name for name, is_best in zip(names, cheapest, strict=True) if is_best]
    answer = (
        f"the cheapest answer is {best[0]}"
        if len(best) == 1
        else f"the cheapest answers are {_enumerated(best, len(best))}"
    )
    return [f"{known}, and nothing else known, {answer}: {constant.min():.4g} a decision."]


def _rules_of_badacost(matrix: FloatArray, labels: Sequence[Any]) -> list[str]:
    """Say what the two decision rules of BAdaCost make of the costs."""
    if not is_irreducible(matrix):
        try:
            stationary_distribution(matrix, labels)
        except ValueError as error:
            reason = str(error)
        return [f"For BAdaCost {reason}"]
    if _are_class_weights(matrix):
        return ["Both rules of BAdaCost tend, with much data, to the minimum expected cost."]
    pi = stationary_distribution(matrix)
    if not np.allclose(pi, 1.0 / len(pi), rtol=1e-6):
        shares = [f"{label!r} {share:.3g}" for label, share in zip(labels, pi, strict=True)]
        return [
            'BAdaCost with decision="margin" tends, with much data, to the class of the largest '
            f"probability divided by these numbers: {_enumerated(shares, len(shares))}; "
            'decision="bayes" tends to the minimum expected cost.'
        ]
    return [
        'BAdaCost with decision="margin" tends, with much data, to the most probable class, '
        'whatever these costs: use decision="bayes".'
    ]
