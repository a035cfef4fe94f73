"""Cost matrices: reading and checking them, and what follows from their entries.

A cost matrix holds in ``C[truth, prediction]`` the cost of predicting `prediction` when the class
is `truth`: rows are the truth, columns the prediction. `as_cost_matrix` makes its diagonal, the
cost of right predictions, zero; `given_costs` keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import compress
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from badacost._utils.arrays import FloatArray, Mask
from badacost._utils.categorical_columns import is_missing
from badacost._utils.categorical_columns import listed as shown
from badacost._utils.user_warnings import warn_user
from badacost._utils.validation import NUMERIC, category_order, check_number
from badacost.io.csv_dialect import as_number

_MAX_CLASSES_LISTED = 10
MAX_COST = 1e300  # sums of costs must not overflow
_NO_NUMBERS = "cmM"  # kinds of arrays that become floats with a warning, or without sense


def as_cost_matrix(
    costs: Any,
    classes: Iterable[Any],
    *,
    allow_extra_labels: bool = False,
    keep_diagonal: bool = False,
) -> FloatArray:
    """Read costs in any accepted form into a checked matrix in the order of `classes`.

    Whatever its form, `costs` is read as ``C[truth, prediction]``: rows are the truth.

    Parameters
    ----------
    costs : None, array-like of shape (K, K), nested mapping or data frame
        None stands for 0|1 costs. An array follows the order of `classes`. A mapping
        ``{truth: {prediction: cost}}`` may leave out the diagonal. A data frame is labelled by
        truth in its index and by prediction in its columns, both in any order. Where classes are
        numbers, labels of a mapping or data frame may be their text, as a file has it: "0" for 0.
        Where classes are 0..K-1 and costs name K other labels, these are taken in sorted order, as
        meta-estimators such as `sklearn.ensemble.VotingClassifier` encode them; a warning shows
        which number is taken for which label.
    classes : iterable of K labels
        The classes, in the order of the rows and columns of the result.
    allow_extra_labels : bool, default=False
        Whether a mapping or data frame may have labels that are not in `classes`; these are
        dropped. Meant for training sets, such as cross-validation folds, that lack a class.
    keep_diagonal : bool, default=False
        Whether the costs of right predictions, on the diagonal, stay as they are.

    Returns
    -------
    ndarray of shape (K, K), float64
        A new matrix, ``C[truth, prediction]``. Unless `keep_diagonal`, each diagonal entry is
        subtracted from its row, which changes no decision.

    Raises
    ------
    TypeError, ValueError
        Where costs cannot be read, or an entry is negative, NaN or above 1e300, or being right
        costs more than a mistake, or all mistakes on a class are free.

    Examples
    --------
    >>> as_cost_matrix({"ham": {"spam": 5}, "spam": {"ham": 1}}, ["ham", "spam"])
    array([[0., 5.],
           [1., 0.]])
    """
    labels, named = class_labels(classes), named_classes(costs)
    if costs is None:
        cells = 1.0 - np.eye(len(labels))
    elif named is None:
        cells = _cells_of_array(costs)
    else:
        labels = _names_of_codes(named, labels)
        cells = _cells_of_mapping(costs, labels, allow_extra_labels)
    shape = len(labels), len(labels)
    if cells.shape != shape:
        raise ValueError(
            f"costs have shape {cells.shape} where the {listed(labels)} need {shape}: if some "
            "class may be missing, give a mapping; see costs_from_class_weights and sample_cost=."
        )

    def name(i: int, j: int) -> str:
        return f"the entry for truth {labels[i]!r} and prediction {labels[j]!r}"

    if cells.dtype.kind not in NUMERIC:
        for i, j in np.ndindex(shape):
            if not isinstance(cells[i, j], Real):
                raise TypeError(f"{name(i, j)} is {cells[i, j]!r}: replace it by a number.")
    matrix = np.array(cells, dtype=np.float64, order="C")
    check_entries(matrix, name)
    without_diagonal = regret(matrix, labels)
    return matrix if keep_diagonal else without_diagonal


def given_costs(costs: Any, classes: Iterable[Any]) -> FloatArray:
    """Read costs as `badacost.costs.as_cost_matrix` does, but keep the diagonal.

    Parameters
    ----------
    costs : None, array-like of shape (K, K), nested mapping or data frame
        ``C[truth, prediction]``: rows are the truth.
    classes : iterable of K labels
        The classes, in the order of the result. A mapping or data frame may name others too.

    Returns
    -------
    ndarray of shape (K, K)
        Costs as given, diagonal included.

    Examples
    --------
    >>> given_costs({"ham": {"spam": 5}, "spam": {"ham": 3, "spam": 1}}, ["ham", "spam"])
    array([[0., 5.],
           [3., 1.]])
    """
    return as_cost_matrix(costs, classes, allow_extra_labels=True, keep_diagonal=True)


def set_costs(model: Any, costs: Any) -> None:
    """Set `cost_matrix_` of a classifier, as given, and `regret_matrix_`, with a zero diagonal."""
    model.cost_matrix_ = given_costs(costs, model.classes_)
    model.regret_matrix_ = regret(model.cost_matrix_, model.classes_)


def _names_of_codes(named: list[Any], labels: list[Any]) -> list[Any]:
    """Return the labels of costs that an encoder has replaced by numbers, or else `labels`."""
    are_codes = all(type(label) is int and 0 <= label < len(named) for label in labels)
    if not are_codes or not set(labels).isdisjoint(as_classes(named, labels)):
        return labels
    if max(labels) + 1 < len(named):
        raise ValueError(
            f"costs name the {listed(named)}, but the classes are numbers from 0 to {max(labels)}: "
            "a meta-estimator has encoded fewer of them. Name the classes in its data only."
        )
    try:
        names = sorted(named)
    except TypeError:  # an encoder would have refused them too
        return labels
    warn_user(
        "The classes are numbers, but the costs have names: "
        f"{shown(names, _MAX_CLASSES_LISTED)} are read as 0, 1, ..., the sorted order, as "
        "meta-estimators encode classes. Otherwise label the costs by the numbers."
    )
    return [names[label] for label in labels]


def warn_if_label_order_is_implicit(costs: Any, classes: Iterable[Any], y: Any) -> None:
    """Warn where unequal costs in an array follow the alphabet, since `y` sets no order."""
    labels = [plain(label) for label in classes]
    has_order = category_order(y) is not None or not all(isinstance(k, str) for k in labels)
    if costs is None or has_order or named_classes(costs) is not None:
        return
    mistakes = given_costs(costs, labels)[~np.eye(len(labels), dtype=np.bool_)]
    if (mistakes != mistakes[0]).any():
        warn_user(
            "The costs are an array without labels, read in alphabetical order of the classes: "
            f"{shown(labels, _MAX_CLASSES_LISTED)}. Name them by badacost.costs.labelled_costs("
            "costs, classes), or make y an ordered categorical."
        )


def named_classes(costs: Any) -> list[Any] | None:
    """Return the labels of the rows of a mapping or data frame; None if costs name none."""
    if isinstance(costs, Mapping):
        return [plain(label) for label in costs]
    if not hasattr(costs, "columns"):
        return None
    if not hasattr(costs, "index"):
        raise TypeError("costs are a data frame whose rows have no labels: use labelled_costs.")
    return [plain(label) for label in costs.index]


def labels_of(costs: Any) -> list[Any]:
    """Return the labels of the rows of costs, which are 0..K-1 for an array."""
    named = named_classes(costs)
    return [*range(len(_cells_of_array(costs)))] if named is None else named


def plain(label: Any) -> Any:
    """Return a label as a Python object, so that ``np.int64(3)`` and 3 are the same key."""
    return label.item() if isinstance(label, np.generic) else label


def class_labels(classes: Iterable[Any], place: str = "classes") -> list[Any]:
    """Return the classes as Python objects, at least two and all different."""
    labels = [plain(label) for label in classes]
    if len(labels) < 2:
        raise ValueError(f"costs need at least 2 classes, got {labels}: add the missing classes.")
    for label in labels:
        if not isinstance(label, Hashable) or is_missing(label):
            raise TypeError(f"{label!r:.40} cannot name a class: give text or numbers.")
    check_unique(labels, place)
    return labels


def as_classes(found: Iterable[Any], labels: Sequence[Any]) -> list[Any]:
    """Return labels as Python objects, those that are the text of a number as the class it names.

    A file knows text only: its "0" stands for the class 0 unless there is a class "0" too.
    """
    known = set(labels)
    numbers: dict[Any, Any] = {label: label for label in labels if isinstance(label, Real)}
    written = {str(label): label for label in numbers}

    def named(label: Any) -> Any:
        if label in known or not isinstance(label, str):
            return label
        text = label.strip()
        return written.get(text, numbers.get(as_number(text), label))

    return [named(plain(label)) for label in found]


def check_unique(labels: Sequence[Any], place: str) -> None:
    """Refuse labels that occur more than once."""
    if len(set(labels)) < len(labels):
        repeated = next(label for label, count in Counter(labels).items() if count > 1)
        raise ValueError(f"label {repeated!r:.80} is repeated in {place}: keep one of them.")


def check_known(found: Iterable[Any], labels: Sequence[Any], place: str) -> None:
    """Refuse labels that are not classes."""
    known = set(labels)
    unknown = shown((label for label in found if label not in known), _MAX_CLASSES_LISTED)
    if unknown:
        problem = f"labels [{unknown}] in {place} are not among the {listed(labels)}"
        raise ValueError(f"{problem}: remove or correct them; their type counts, too.")


def class_positions(
    found: Iterable[Any], labels: Sequence[Any], place: str, allow_extra: bool = False
) -> list[int]:
    """Return where each class is among the labels found, which must name each of them once."""
    named = as_classes(found, labels)
    check_unique(named, place)
    if not allow_extra:
        check_known(named, labels, place)
    position = {label: number for number, label in enumerate(named)}
    for label in labels:
        if label not in position:
            wanted = f"add it, or correct one of those there ({shown(named, _MAX_CLASSES_LISTED)})"
            raise ValueError(f"class {label!r:.80} is missing from {place}: {wanted}.")
    return [position[label] for label in labels]


def in_order(
    given: Mapping[Any, Any], labels: Sequence[Any], place: str, allow_extra: bool = False
) -> list[Any]:
    """Return the values of a mapping from class to value in the order of `labels`."""
    values = [*given.values()]
    return [values[k] for k in class_positions(given, labels, place, allow_extra)]


def listed(labels: Sequence[Any]) -> str:
    """Return the number of classes and the first labels."""
    return f"{len(labels)} classes [{shown(labels, _MAX_CLASSES_LISTED)}]"


def _cells_of_mapping(costs: Any, labels: Sequence[Any], allow_extra: bool) -> NDArray[Any]:
    """Return the cells of a mapping or data frame in the order of `labels`."""
    truths = "the truths of costs"
    if not isinstance(costs, Mapping):
        rows = class_positions(costs.index, labels, truths, allow_extra)
        columns = class_positions(costs.columns, labels, "the columns of costs", allow_extra)
        return np.asarray(costs, dtype=object)[np.ix_(rows, columns)]
    cells = []
    for truth, row in zip(labels, in_order(costs, labels, truths, allow_extra), strict=True):
        place = f"the costs of truth {truth!r}"
        if not isinstance(row, Mapping):
            wanted = "give a mapping from prediction to cost, or use costs_from_class_weights"
            raise TypeError(f"{place} are of type {type(row).__name__}: {wanted}.")
        if truth not in as_classes(row, labels):
            row = {**row, truth: 0.0}
        cells.append(in_order(row, labels, place, allow_extra))
    return np.array(cells, dtype=object)


def _cells_of_array(costs: Any) -> NDArray[Any]:
    """Return the cells of an array-like; strings and None stay as they are."""
    cells = costs if isinstance(costs, np.ndarray) else np.asarray(costs, dtype=object)
    if cells.ndim == 0:
        wanted = "give None, a K x K array, a mapping {truth: {prediction: cost}} or a data frame"
        others = "read_costs takes files, costs_from_class_weights takes weights"
        raise TypeError(f"costs are of type {type(costs).__name__}: {wanted}; {others}.")
    return cells


def check_entries(values: FloatArray, name: Callable[..., str]) -> None:
    """Refuse entries that are negative, NaN or too large; `name` makes a name of an index."""
    wrong = np.argwhere(~((values >= 0) & (values <= MAX_COST)))
    if len(wrong):
        cell = tuple(wrong[0].tolist())
        wanted = f"replace it by a number from 0 to {MAX_COST:g}"
        if values[cell] < 0:
            wanted += " (of costs, costs_from_pairs takes negative ones, which are gains)"
        raise ValueError(f"{name(*cell)} is {values[cell]}: {wanted}.")


def regret(matrix: FloatArray, labels: Any) -> FloatArray:
    """Subtract each diagonal entry from its row; mistakes must not turn into gains."""
    difference = matrix - np.diagonal(matrix)[:, np.newaxis]
    gains = np.argwhere(difference < 0)
    if len(gains):
        i, j = gains[0]
        right, wrong = f"being right costs {matrix[i, i]:g}", f"costs {matrix[i, j]:g}"
        wanted = "lower the diagonal entry, usually to 0; check that truth comes before prediction"
        raise ValueError(
            f"for truth {labels[i]!r} {right} and prediction {labels[j]!r} {wrong}: {wanted}."
        )
    has_cost = difference.any(axis=1)
    if not has_cost.all():
        label = labels[has_cost.argmin()]
        raise ValueError(f"all mistakes on class {label!r} are free: raise a cost in its row.")
    return difference


def real_numbers(values: Any, name: str, remedy: str, *shapes: tuple[int, ...]) -> FloatArray:
    """Return an array-like as a float64 array, perhaps a view; refuse what has other values.

    Where shapes are given it must have one of them.
    """
    try:
        cells = np.asarray(values)
        if cells.dtype.kind in _NO_NUMBERS:
            raise TypeError
        numbers = np.asarray(cells, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        wanted = f"must be a dense array of real numbers; got {type(values).__name__}"
        raise TypeError(f"{name} {wanted}: {remedy}.") from None
    if shapes and numbers.shape not in shapes:
        raise ValueError(f"{name} has shape {numbers.shape}: {remedy}.")
    return numbers


def square(matrix: ArrayLike, name: str = "cost_matrix") -> FloatArray:
    """Return a float64 copy of a square matrix of finite numbers with at least two rows."""
    wanted = "give K x K entries, K at least 2"
    copy = real_numbers(matrix, name, wanted).copy()
    if copy.ndim != 2 or copy.shape[0] != copy.shape[1] or len(copy) < 2:
        raise ValueError(f"{name} has shape {copy.shape}: {wanted}.")
    if not np.isfinite(copy).all():
        check_entries(copy, lambda i, j: f"{name} for truth {i} and prediction {j}")
    return copy


def cost_star(cost_matrix: ArrayLike) -> FloatArray:
    """Return C*: the costs with every diagonal entry replaced by minus the rest of its row.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Returns
    -------
    ndarray of shape (K, K)
        C*, whose rows sum to zero.

    Examples
    --------
    >>> cost_star([[0, 2, 1], [3, 0, 1], [1, 1, 0]])
    array([[-3.,  2.,  1.],
           [ 3., -4.,  1.],
           [ 1.,  1., -2.]])
    """
    star = square(cost_matrix)
    np.fill_diagonal(star, 0.0)
    np.fill_diagonal(star, -star.sum(axis=1))
    return star


def is_irreducible(cost_matrix: ArrayLike) -> bool:
    """Whether positive costs lead, in one or more steps, from every class to every other.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Returns
    -------
    bool
        True where `stationary_distribution` exists and is unique.

    Examples
    --------
    >>> is_irreducible([[0, 2, 0], [0, 0, 1], [3, 0, 0]])
    True
    >>> is_irreducible([[0, 2, 1], [0, 0, 1], [0, 3, 0]])
    False
    """
    return bool(_absorbing_classes(square(cost_matrix)).all())


def _absorbing_classes(matrix: FloatArray) -> Mask:
    """Return a smallest set of classes, as a mask (K,), that no positive cost leaves."""
    leads = matrix > 0
    if np.count_nonzero(leads) == len(leads) * (len(leads) - 1):  # every mistake costs something
        return np.ones(len(leads), np.bool_)
    n_sets, member = connected_components(leads, connection="strong")
    sets = (member == number for number in range(n_sets))
    return next(mask for mask in sets if not leads[np.ix_(mask, ~mask)].any())


def stationary_distribution(
    cost_matrix: ArrayLike, classes: Iterable[Any] | None = None
) -> FloatArray:
    """Return the distribution pi with ``pi @ C* = 0``, which turns scores into probabilities.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.
    classes : iterable of K labels, optional
        How to call the classes in an error message; 0..K-1 by default.

    Returns
    -------
    ndarray of shape (K,)
        pi: positive entries that sum to one.

    Raises
    ------
    ValueError
        If the costs are reducible: no such distribution gives every class a positive probability.

    Notes
    -----
    Off its diagonal C* holds the rates of a Markov chain that moves from truth to prediction.
    Grassmann-Taksar-Heyman elimination removes its classes one by one without a subtraction, so
    every entry keeps its relative accuracy when costs span many orders of magnitude.

    Examples
    --------
    >>> stationary_distribution([[0, 3], [1, 0]])
    array([0.25, 0.75])
    """
    rates = square(cost_matrix)
    np.fill_diagonal(rates, 0.0)
    n_classes = len(rates)
    absorbing = _absorbing_classes(rates)
    if not absorbing.all():
        labels = [plain(label) for label in (range(n_classes) if classes is None else classes)]
        kept, lost = ([*compress(labels, mask)] for mask in (absorbing, ~absorbing))
        free = f"for the truths {kept} every prediction in {lost} is free"
        wanted = 'give every mistake a positive cost, or use decision="margin"'
        raise ValueError(f"these costs give no probabilities: {free}; {wanted}.")
    rates /= rates.max()
    with np.errstate(all="ignore"):
        for k in range(n_classes - 1, 0, -1):
            rates[:k, k] /= rates[k, :k].sum()
            rates[:k, :k] += np.outer(rates[:k, k], rates[k, :k])
        pi: FloatArray = np.ones(n_classes)
        for k in range(1, n_classes):
            pi[k] = pi[:k] @ rates[:k, k]
        pi /= pi.sum()
    if not np.isfinite(pi).all():
        wanted = 'reduce their range, or use decision="margin"'
        raise ValueError(f"the costs span too many orders of magnitude: {wanted}.")
    return pi


def expected_costs(probabilities: NDArray[np.floating], costs: FloatArray) -> FloatArray:
    """Expected costs of decisions, (n, K), under a matrix (K, K), or one for each sample (n, K, K).

    Those of a sample do not depend on the other samples.
    """
    expected = np.zeros((len(probabilities), costs.shape[-1]))
    for k in range(costs.shape[-2]):
        expected += probabilities[:, k, None].astype(np.float64) * costs[..., k, :]
    return expected


def scale_costs(
    cost_matrix: ArrayLike, scale: Literal["auto", "reference"] | float | None
) -> FloatArray:
    """Return the costs times a positive factor, which sets how strongly trees react to them.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.
    scale : "auto", "reference", float or None
        "auto" makes the largest sum of a row ``2 (1 - 1/K)**2``. The weak learner is fitted for a
        step of one, and on that scale steps come out near one whatever the number of classes.
        "reference" divides by the largest entry if that exceeds 1, as the authors' published
        program does. A positive number becomes the largest entry. None changes nothing.

    Returns
    -------
    ndarray of shape (K, K)
        A new matrix.

    Notes
    -----
    The decision of minimum expected cost does not depend on the scale: all expected costs change by
    the same factor. The training of BAdaCost does, since a round fits its tree to the exponential
    of the costs: on a small scale the trees minimise the costs themselves, on a large one the most
    expensive mistakes outweigh all others. `BAdaCostClassifier` therefore sets the scale itself,
    and with "auto" or a number its training sees ratios of costs only; with "reference" this holds
    for costs whose largest entry is at least 1, with None not at all.

    Examples
    --------
    >>> scale_costs([[0, 4], [1, 0]], "reference")
    array([[0.  , 1.  ],
           [0.25, 0.  ]])
    """
    costs = square(cost_matrix)
    if scale is None:
        return costs
    if isinstance(scale, str) and scale not in ("auto", "reference"):
        raise ValueError(f'scale is {scale!r}: give "auto", "reference", a number or None.')
    largest = float(costs.max())
    if scale == "reference":
        return costs / max(largest, 1.0)
    if not largest > 0:
        raise ValueError("cost_matrix has no positive entry to scale: give mistakes a cost.")
    costs = costs / largest
    if scale == "auto":
        return costs * (2.0 * (1.0 - 1.0 / len(costs)) ** 2 / costs.sum(axis=1).max())
    check_number("scale", plain(scale), low=0.0, high=np.finfo(np.float64).max, open_low=True)
    return costs * float(scale)


def check_positive(**values: Any) -> None:
    """Refuse parameters, given by name, that are not positive numbers, or nearly infinite."""
    for name, value in values.items():
        # A float32 cannot be compared with 1e300.
        check_number(name, plain(value), low=0.0, high=MAX_COST, open_low=True)
