"""Cost matrices: reading and checking them, and what follows from their entries.

A cost matrix holds in ``C[truth, prediction]`` the price of answering `prediction` when the class
is `truth`: rows are the truth, columns the prediction. The diagonal, the price of being right, is
zero once a matrix has passed through `as_cost_matrix`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost.arrays import FloatArray, Mask, Positions
from badacost.csv_dialect import as_number
from badacost.validation import category_order, check_number

_MAX_CLASSES_LISTED = 10
MAX_COST = 1e300  # sums of costs must not overflow
_MISSING = ("NAType", "NaTType")  # of pandas
_NO_NUMBERS = "cmM"  # kinds of arrays that become floats with a warning, or without sense


def as_cost_matrix(
    costs: Any, classes: Iterable[Any], *, allow_extra_labels: bool = False
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
        meta-estimators such as `sklearn.ensemble.VotingClassifier` encode them; a warning tells
        which number is taken for which label.
    classes : iterable of K labels
        The classes, in the order of the rows and columns of the result.
    allow_extra_labels : bool, default=False
        Whether a mapping or data frame may price labels that are not in `classes`; these are
        dropped. Meant for training sets, such as cross-validation folds, that lack a class.

    Returns
    -------
    ndarray of shape (K, K), float64
        A new matrix, ``C[truth, prediction]``, with a zero diagonal. A price for being right is
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
    labels = class_labels(classes)
    matrix = costs_as_given(costs, labels, allow_extra_labels=allow_extra_labels)
    return _without_price_of_being_right(matrix, labels)


def costs_as_given(
    costs: Any, labels: Sequence[Any], *, allow_extra_labels: bool = False
) -> FloatArray:
    """Read costs as `as_cost_matrix` does, but keep the diagonal."""
    if costs is None:
        return 1.0 - np.eye(len(labels))
    costs = _encoded(costs, labels)
    if isinstance(costs, Mapping):
        cells = _cells_of_mapping(costs, labels, allow_extra_labels)
    elif is_frame(costs):
        cells = _cells_of_frame(costs, labels, allow_extra_labels)
    else:
        cells = _cells_of_array(costs, labels)
    matrix = _as_floats(cells, labels)
    check_entries(matrix, labels)
    return matrix


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


def _encoded(costs: Any, labels: Sequence[Any]) -> Any:
    """Costs labelled by numbers, if the classes are what an encoder made of the labels of costs."""
    named = named_classes(costs)
    if named is None or not all(type(label) is int and label >= 0 for label in labels):
        return costs
    if max(labels) >= len(named) or not set(labels).isdisjoint(as_classes(named, labels)):
        return costs
    if max(labels) + 1 < len(named):
        raise ValueError(
            f"costs name the {listed(named)}, but the classes are numbers from 0 to {max(labels)}: "
            "a meta-estimator that encodes classes has seen fewer of them. Give costs for the "
            "classes in its data only, or with these numbers as labels."
        )
    try:
        code = {label: number for number, label in enumerate(sorted(named))}
    except TypeError:  # an encoder would have refused them too
        return costs
    pairs = [f"{number} = {label!r:.80}" for label, number in code.items()]
    warnings.warn(
        f"The classes are numbers, but the costs have names. They are read as "
        f"{_shortened(pairs)}: the sorted order, as meta-estimators encode classes. If that is "
        "not what the numbers stand for, label the costs by the numbers.",
        UserWarning,
        stacklevel=4,
    )
    if is_frame(costs):
        return costs.rename(index=code, columns=code)

    def renamed(row: Mapping[Any, Any]) -> dict[Any, Any]:
        return {code.get(plain(label), label): value for label, value in row.items()}

    rows = {
        truth: renamed(row) if isinstance(row, Mapping) else row for truth, row in costs.items()
    }
    return renamed(rows)


def warn_of_alphabet(costs: Any, classes: Iterable[Any], y: Any, *, stacklevel: int = 3) -> None:
    """Warn where different prices in an array follow the alphabet, since `y` sets no order."""
    labels = [plain(label) for label in classes]
    if costs is None or named_classes(costs) is not None or category_order(y) is not None:
        return
    matrix = costs_as_given(costs, labels)
    mistakes = matrix[~np.eye(len(labels), dtype=np.bool_)]
    if all(isinstance(label, str) for label in labels) and (mistakes != mistakes[0]).any():
        warnings.warn(
            f"The costs are an array without labels, read in alphabetical order of the classes: "
            f"{_shortened([repr(label) for label in labels])}. Name truths and predictions, for "
            "example by badacost.costs.labelled_costs(costs, classes), or make y an ordered "
            "categorical.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _shortened(texts: Sequence[str]) -> str:
    """Return the first of some texts, with commas."""
    more = [] if len(texts) <= _MAX_CLASSES_LISTED else ["..."]
    return ", ".join([*texts[:_MAX_CLASSES_LISTED], *more])


def named_classes(costs: Any) -> list[Any] | None:
    """Return the labels of the rows of a mapping or data frame; None if costs name none."""
    if isinstance(costs, Mapping):
        return [plain(label) for label in costs]
    return [plain(label) for label in costs.index] if is_frame(costs) else None


def is_frame(costs: Any) -> bool:
    """Tell whether costs are a data frame with labels; one whose rows have none is refused."""
    if not all(hasattr(costs, name) for name in ("to_numpy", "columns")):
        return False
    if not hasattr(costs, "index"):
        raise TypeError(
            f"costs are a data frame of {type(costs).__module__.partition('.')[0]}, whose rows "
            "have no labels: give a mapping {truth: {prediction: cost}}, for example "
            "badacost.costs.labelled_costs(costs.to_numpy(), classes), or a data frame of pandas "
            "with the truths in its index."
        )
    return True


def plain(label: Any) -> Any:
    """Return a label as a Python object, so that ``np.int64(3)`` and 3 are the same key."""
    return label.item() if isinstance(label, np.generic) else label


def class_labels(classes: Iterable[Any]) -> list[Any]:
    """Return the classes as Python objects, at least two and all different."""
    labels = [plain(label) for label in classes]
    if len(labels) < 2:
        raise ValueError(f"costs need at least 2 classes, got {labels}: add the missing classes.")
    for label in labels:
        if not isinstance(label, Hashable) or type(label).__name__ in _MISSING or label != label:
            raise TypeError(f"{label!r:.40} cannot name a class: give text or numbers.")
    check_unique(labels, "classes")
    return labels


def as_classes(found: Iterable[Any], labels: Sequence[Any]) -> list[Any]:
    """Return labels as Python objects, those that are the text of a number as the class it names.

    A file knows text only: its "0" stands for the class 0 unless there is a class "0" too.
    """
    found, known = [plain(label) for label in found], set(labels)
    if known.issuperset(found):
        return found
    numbers: dict[Any, Any] = {label: label for label in labels if isinstance(label, Real)}
    written = {str(label): label for label in numbers}

    def named(label: Any) -> Any:
        if label in known or not isinstance(label, str):
            return label
        text = label.strip()
        number = as_number(text)
        return written.get(text, label if number is None else numbers.get(number, label))

    return [named(label) for label in found]


def check_unique(labels: Sequence[Any], place: str) -> None:
    """Refuse labels that occur more than once."""
    if len(set(labels)) < len(labels):
        repeated = next(label for label, count in Counter(labels).items() if count > 1)
        raise ValueError(f"label {repeated!r} is repeated in {place}: keep one of them.")


def check_known(found: Iterable[Any], labels: Sequence[Any], place: str) -> None:
    """Refuse labels that are not classes."""
    known = set(labels)
    unknown = [label for label in found if label not in known]
    if unknown:
        raise ValueError(
            f"labels {unknown} in {place} are not among the {listed(labels)}: remove them, or "
            "write labels with the values and types of the classes."
        )


def listed(labels: Sequence[Any]) -> str:
    """Return the number of classes, with their labels when these are few."""
    count = f"{len(labels)} classes"
    return count if len(labels) > _MAX_CLASSES_LISTED else f"{count} {list(labels)}"


def _cells_of_mapping(
    costs: Mapping[Any, Any], labels: Sequence[Any], allow_extra: bool
) -> NDArray[Any]:
    """Return the cells of a mapping ``{truth: {prediction: cost}}`` in the order of `labels`."""
    rows: dict[Any, dict[Any, Any]] = {}
    for truth, row in costs.items():
        if not isinstance(row, Mapping):
            raise TypeError(
                f"the costs of truth {plain(truth)!r} are of type {type(row).__name__}: "
                "give a mapping from prediction to cost, or use costs_from_class_weights."
            )
        names = as_classes(row, labels)
        check_unique(names, f"the costs of truth {plain(truth)!r}")
        rows[truth] = dict(zip(names, row.values(), strict=True))
    names = as_classes(rows, labels)
    check_unique(names, "the truths of costs")
    rows = dict(zip(names, rows.values(), strict=True))
    if not allow_extra:
        known = set(labels)
        for keys in (rows, *rows.values()):
            if not known.issuperset(keys):
                check_known(keys, labels, "the mapping of costs")
    cells = np.zeros((len(labels), len(labels)), dtype=object)
    for i, truth in enumerate(labels):
        if truth not in rows:
            raise ValueError(
                f"costs have no row for class {truth!r}: add its costs as a truth, or correct a "
                f"label of the {listed([*rows])} that have a row."
            )
        row = {truth: 0.0} | rows[truth]
        try:
            cells[i] = np.fromiter((row[prediction] for prediction in labels), object, len(labels))
        except KeyError:
            absent = next(prediction for prediction in labels if prediction not in row)
            raise ValueError(
                f"costs have no cell for {_cell(truth, absent)}: "
                "give every mistake a price; only the diagonal may be left out."
            ) from None
    return cells


def _cells_of_frame(frame: Any, labels: Sequence[Any], allow_extra: bool) -> NDArray[Any]:
    """Return the cells of a labelled data frame in the order of `labels`."""
    positions = []
    for axis, name in ((frame.index, "row"), (frame.columns, "column")):
        found = as_classes(axis, labels)
        check_unique(found, f"the {name}s of costs")
        if not allow_extra:
            check_known(found, labels, f"the {name}s of costs")
        place_of = {label: position for position, label in enumerate(found)}
        for label in labels:
            if label not in place_of:
                raise ValueError(f"costs have no {name} for class {label!r}: add that {name}.")
        positions.append([place_of[label] for label in labels])
    cells: NDArray[Any] = np.asarray(frame.to_numpy())[np.ix_(*positions)]
    return cells


def _cells_of_array(costs: Any, labels: Sequence[Any]) -> NDArray[Any]:
    """Return the cells of a square array-like, in its own order."""
    # Objects keep a string or a None as it is, to be named later with its cell.
    cells = costs if isinstance(costs, np.ndarray) else np.asarray(costs, dtype=object)
    if isinstance(costs, str) or cells.ndim == 0:
        raise TypeError(
            f"costs are of type {type(costs).__name__}: give None, a K x K array, "
            "a mapping {truth: {prediction: cost}} or a labelled data frame; read_costs takes "
            "files, costs_from_class_weights takes weights."
        )
    if cells.ndim == 1:
        raise ValueError(
            f"costs have shape {cells.shape}: give a row of {len(labels)} prices for each truth; "
            "costs_from_class_weights makes them of a weight for each class."
        )
    if cells.shape != (len(labels), len(labels)):
        raise ValueError(
            f"costs have shape {cells.shape} where the {listed(labels)} need "
            f"({len(labels)}, {len(labels)}): if some class may be missing from the training "
            "data, give a labelled mapping or DataFrame instead of an array."
        )
    return cells


def _as_floats(cells: NDArray[Any], labels: Sequence[Any]) -> FloatArray:
    """Return a float64 copy of the cells, all of which must be real numbers."""
    is_certain = cells.dtype.kind in "biuf" or {*map(type, cells.ravel())} <= {float, int}
    if not is_certain:
        for (i, j), value in np.ndenumerate(cells):
            if not isinstance(value, Real):
                raise TypeError(
                    f"the entry for {_cell(labels[i], labels[j])} is {value!r}: "
                    "replace it by a number."
                )
    return np.array(cells, dtype=np.float64, order="C")


def _cell(truth: Any, prediction: Any) -> str:
    """Return how messages name a cell."""
    return f"truth {truth!r} and prediction {prediction!r}"


def check_entries(matrix: FloatArray, labels: Sequence[Any]) -> None:
    """Refuse entries that are negative, NaN, infinite or nearly so, naming the first one."""
    wrong = np.argwhere(~((matrix >= 0) & (matrix <= MAX_COST)))
    if wrong.size:
        i, j = wrong[0]
        raise ValueError(
            f"the entry for {_cell(labels[i], labels[j])} is {matrix[i, j]}: "
            f"{remedy_for(matrix[i, j])}."
        )


def remedy_for(entry: float) -> str:
    """Return what to do about a cost that is negative, not finite or too large."""
    if entry < 0:
        return "costs are 0 or more; costs_from_prices takes negative prices, which are gains"
    return f"replace it by a number from 0 to {MAX_COST:g}"


def _without_price_of_being_right(matrix: FloatArray, labels: Sequence[Any]) -> FloatArray:
    """Subtract each diagonal entry from its row; mistakes must not turn into gains."""
    reduced = matrix - np.diagonal(matrix)[:, np.newaxis]
    if (reduced < 0).any():
        i, j = np.argwhere(reduced < 0)[0]
        raise ValueError(
            f"diagonal not smaller than the rest of its row: for truth {labels[i]!r} being right "
            f"costs {matrix[i, i]} and prediction {labels[j]!r} costs {matrix[i, j]}; "
            "lower the diagonal entry, usually to 0."
        )
    check_no_free_class(reduced, labels, "raise at least one cost off the diagonal of its row")
    return reduced


def check_no_free_class(matrix: FloatArray, labels: Sequence[Any], remedy: str) -> None:
    """Refuse a matrix with zero diagonal in which some row has no positive entry."""
    free = np.flatnonzero(~matrix.any(axis=1))
    if free.size:
        raise ValueError(f"all mistakes on class {labels[free[0]]!r} are free: {remedy}.")


def real_numbers(values: Any, name: str, remedy: str) -> FloatArray:
    """Return an array-like as a float64 array, perhaps a view; refuse what has other values."""
    try:
        cells = np.asarray(values)
        if cells.dtype.kind not in _NO_NUMBERS:
            return np.asarray(cells, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(
        f"{name} must be a dense array of real numbers; got {type(values).__name__}: {remedy}."
    )


def square(matrix: ArrayLike, name: str = "cost_matrix") -> FloatArray:
    """Return a float64 copy of a square matrix of finite numbers with at least two rows."""
    wanted = "give K x K entries, K at least 2"
    copy = real_numbers(matrix, name, wanted).copy()
    if copy.ndim != 2 or copy.shape[0] != copy.shape[1] or len(copy) < 2:
        raise ValueError(f"{name} has shape {copy.shape}: {wanted}.")
    if not np.isfinite(copy).all():
        check_entries(copy, range(len(copy)))
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
    """Tell whether positive costs lead, in one or more steps, from every class to every other.

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
    """Return a set of classes, as a mask (K,), that no positive cost leaves."""
    priced = matrix > 0
    from_first = _reached_from_first(priced)
    if not from_first.all():
        return from_first
    to_first = _reached_from_first(priced.T)
    return to_first if to_first.all() else ~to_first


def _reached_from_first(links: Mask) -> Mask:
    """Return which nodes can be reached from node 0, as a mask (K,)."""
    reached = np.zeros(len(links), dtype=np.bool_)
    reached[0] = True
    while True:
        grown = reached | links[reached].any(axis=0)
        if np.array_equal(grown, reached):
            return reached
        reached = grown


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
        If the costs are reducible: no such distribution gives every class a positive share.

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
        labels = np.array([*(range(n_classes) if classes is None else classes)], dtype=object)
        kept, lost = ([plain(label) for label in labels[mask]] for mask in (absorbing, ~absorbing))
        raise ValueError(
            f"these costs give no probabilities: for the truths {kept} every prediction in {lost} "
            "is free; give every mistake a positive price, or use "
            'decision="margin" of BAdaCostClassifier.'
        )
    rates /= rates.max()
    with np.errstate(all="ignore"):
        for k in range(n_classes - 1, 0, -1):
            rates[:k, k] /= rates[k, :k].sum()
            rates[:k, :k] += np.outer(rates[:k, k], rates[k, :k])
        shares = np.ones(n_classes)
        for k in range(1, n_classes):
            shares[k] = shares[:k] @ rates[:k, k]
        pi: FloatArray = shares / shares.sum()
    if not np.isfinite(pi).all():
        raise ValueError(
            "the costs span too many orders of magnitude to compute probabilities: reduce their "
            'range, or use decision="margin" of BAdaCostClassifier.'
        )
    return pi


def minimum_cost_decision(probabilities: ArrayLike, cost_matrix: ArrayLike) -> Positions:
    """Return the prediction with the lowest expected cost for every sample.

    Parameters
    ----------
    probabilities : array-like of shape (n, K)
        Class probabilities of n samples.
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Returns
    -------
    ndarray of shape (n,)
        Class indices: the argmin over j of ``sum_i P[n, i] C[i, j]``, the lowest j on ties.

    Examples
    --------
    >>> minimum_cost_decision([[0.7, 0.3], [0.9, 0.1]], [[0, 1], [5, 0]])
    array([1, 0])
    """
    costs = square(cost_matrix)
    beliefs = real_numbers(probabilities, "probabilities", "give a row of numbers for each sample")
    if beliefs.ndim != 2 or beliefs.shape[1] != len(costs):
        raise ValueError(
            f"probabilities have shape {beliefs.shape}: give one row per sample and one column "
            f"for each of the {len(costs)} classes of cost_matrix."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        expected = beliefs @ costs
    wrong = np.flatnonzero(~np.isfinite(expected).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"the expected costs of sample {wrong[0]} are not finite: give probabilities from 0 to "
            f"1, and costs from 0 to {MAX_COST:g}."
        )
    decisions: Positions = expected.argmin(axis=1)
    return decisions


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
        return costs / largest if largest > 1 else costs
    if not largest > 0:
        raise ValueError("cost_matrix has no positive entry to scale: give mistakes a price.")
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


def check_price(**values: Any) -> None:
    """Refuse prices, given by name, that are no numbers, or infinite or nearly so."""
    for name, value in values.items():
        check_number(name, plain(value), low=-MAX_COST, high=MAX_COST)
