"""Checks of what users hand to estimators, with errors that say what would be accepted."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from badacost.categorical_columns import (
    CategoricalColumns,
    categorical_positions,
    check_categorical_features,
    count_categories,
)
from badacost.large_samples import (
    Batch,
    BatchSamples,
    BatchSource,
    Convert,
    MappedSamples,
    is_sparse,
)

Watch = Callable[[Any, Any], None]  # is told samples and their weights

SAMPLES: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
_NUMBERS = "biuf"  # kinds of arrays
_MAX_LABELS_NAMED = 5  # in errors
_MISSING = ("NAType", "NaTType")  # of pandas
_FEW = 1000  # values of samples that are checked without scikit-learn, which takes 0.1 ms


def check_number(
    name: str,
    value: Any,
    kind: type = Real,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    none: bool = False,
) -> None:
    """Raise unless `value` is a number of the kind between `low` and `high` (or None, if allowed).

    Parameters
    ----------
    name : str
        Parameter to name in the error.
    value : object
        What the user gave.
    kind : {Integral, Real}
        Kind of number.
    low, high : float
        Limits, both included unless `open_low`.
    open_low : bool
        Whether `low` itself is excluded.
    none : bool
        Whether None is accepted.
    """
    if none and value is None:
        return
    number = "an integer" if kind is Integral else "a number"
    above = f"greater than {low:g}" if open_low else f"at least {low:g}"
    wanted = number + (f" {above}" if np.isfinite(low) else "")
    wanted += f" and at most {high:g}" if np.isfinite(high) else ""
    wanted += " or None" if none else ""
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise TypeError(
            f"{name} must be {wanted}; got {value!r:.80} of type {type(value).__name__}."
        )
    number_given: Any = value
    if not (low < number_given if open_low else low <= number_given) or not number_given <= high:
        raise ValueError(f"{name} must be {wanted}; got {value!r:.80}.")
    if number_given in (np.inf, -np.inf):
        raise ValueError(f"{name} must be finite; got {value!r}.")


def check_choice(name: str, value: Any, choices: Collection[str]) -> None:
    """Raise unless `value` is one of the `choices`."""
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {wanted}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}.")


def number_of_features(max_features: Any, n_features: int) -> int | None:
    """Translate scikit-learn's `max_features` into a number; None means all features."""
    if max_features is None:
        return None
    if isinstance(max_features, str):
        check_choice("max_features", max_features, ("auto", "sqrt", "log2"))
        root = np.sqrt(n_features)
        number = {"auto": np.ceil(2.0 * root), "sqrt": root, "log2": np.log2(n_features)}[
            max_features
        ]
    elif isinstance(max_features, Integral):
        check_number("max_features", max_features, Integral, low=1)
        number = max_features
    else:
        check_number("max_features", max_features, low=0.0, high=1.0, open_low=True)
        number = max_features * n_features
    return max(1, int(number)) if number < n_features else None


def check_sample_weight(
    sample_weight: ArrayLike | None, n_samples: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Return weights as an array of shape (n_samples,); ones if there are none."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_samples)  # takes no memory
    if isinstance(sample_weight, Real):
        raise ValueError(f"{name} must have one weight for each sample; got {sample_weight!r}.")
    weight = check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name=name)
    if weight.shape != (n_samples,):
        raise ValueError(f"{name} must have shape ({n_samples},); got shape {weight.shape}.")
    negative = np.flatnonzero(weight < 0.0)
    if len(negative):
        raise ValueError(
            f"{name} must not be negative; sample {negative[0]} has {weight[negative[0]]:g}."
        )
    if not weight.any():
        raise ValueError(f"{name} is zero for every sample; give some of them a weight.")
    with np.errstate(over="ignore"):
        if np.isinf(weight.sum()):
            raise ValueError(f"the sum of {name} overflows; divide the weights by their largest.")
    return np.asarray(weight)


@contextmanager
def remedies(X: Any, y: Any = None, name: str = "y") -> Iterator[None]:
    """Say what to do about what numpy and scikit-learn refuse, where it is a common mistake.

    Their checks add numbers and cast labels: what numpy would warn of there is told by the error.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (TypeError, ValueError, ArithmeticError) as error:
        mistake = _mistake_in_labels(y, name) or _mistake_in_samples(X)
        if mistake is None:
            raise
        raise ValueError(mistake) from error


def _mistake_in_labels(y: Any, name: str) -> str | None:
    """Return what is wrong with labels and its remedy: some are missing, or cannot be sorted."""
    cells = np.empty(0) if y is None else _cells(y)
    examples: dict[str, Any] = {}
    for label in cells if cells.dtype.kind in "fO" else ():
        if label is None or type(label).__name__ in _MISSING or _is_nan(label):
            shown = "NaN" if _is_nan(label) else repr(label)
            return f"{name} contains {shown}: leave out samples without a class."
        kind = "text" if isinstance(label, str) else type(label).__name__
        examples.setdefault("number" if isinstance(label, Real | np.bool_) else kind, label)
    if len(examples) > 1:
        first, second = [*examples.values()][:2]
        return (
            f"{name} has labels of different types, such as {first!r:.40} and {second!r:.40}: make "
            "all of them text, or all of them numbers."
        )
    other = examples.keys() - {"text", "number"}
    return f"{name} has labels of type {min(other)}: make them text or numbers." if other else None


def _is_nan(label: Any) -> bool:
    return isinstance(label, float | np.floating) and bool(np.isnan(label))


def _mistake_in_samples(X: Any) -> str | None:
    """Return what is wrong with samples and its remedy, if it is one of the common mistakes."""
    columns = Counter(getattr(X, "columns", ())).most_common(1)
    if columns and columns[0][1] > 1:
        return f"X has {columns[0][1]} columns named {columns[0][0]!r:.80}: rename them."
    cells = _cells(X)
    text = _first_text(cells) if cells.dtype.kind in "OSU" else None
    if text is not None:
        return (
            f"X contains text, such as {text!r:.80}: make text categories, for example with "
            'astype("category"), name its columns in categorical_features, or use '
            "badacost.tabular.TableClassifier."
        )
    if cells.dtype.kind == "f" and np.isinf(cells).any():
        return "X contains infinity: replace such values, by NaN if they are not known."
    return None


def _first_text(cells: NDArray[Any]) -> str | None:
    """Return the first cell that is text and no number."""
    for cell in cells:
        if isinstance(cell, str | bytes):
            try:
                float(cell)
            except ValueError:
                return str(cell)
    return None


def _cells(data: Any) -> NDArray[Any]:
    """Return the values of data in a row; none where the data make no array."""
    if is_sparse(data):
        return np.asarray(data.tocsr().data)
    try:
        return np.asarray(data).ravel()
    except ValueError:
        return np.empty(0)


def category_order(y: Any) -> list[Any] | None:
    """Categories of an ordered categorical of pandas or an Enum of polars; None for other data."""
    dtype = getattr(y, "dtype", None)
    ordered = getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum"
    return [*dtype.categories] if ordered and dtype is not None else None


def distinct_classes(labels: NDArray[Any], y: Any) -> NDArray[Any]:
    """Distinct labels, in the order of the categories of `y` if these are ordered, else sorted."""
    classes = np.unique(labels)
    order = category_order(y)
    if order is None:
        return classes
    place = {category: number for number, category in enumerate(order)}
    ranks = [place.get(label, len(order)) for label in classes.tolist()]
    return classes[np.argsort(ranks, kind="stable")]


def positions_in(classes: ArrayLike, labels: ArrayLike, name: str = "y") -> NDArray[np.intp]:
    """Where labels are among the classes, which may be in any order; errors call them `name`."""
    known, values = (
        given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
        for given in (classes, labels)
    )
    if values.ndim != 1:
        raise ValueError(f"{name} must be a column of labels; got shape {values.shape}.")
    if known.dtype.kind in _NUMBERS and values.dtype.kind in _NUMBERS:
        order = np.argsort(known)
        near = order[np.searchsorted(known, values, sorter=order).clip(max=len(known) - 1)]
        found = np.where(known[near] == values, near, -1)
    else:
        index = {label: k for k, label in enumerate(known.tolist())}
        places = (index.get(label, -1) for label in values.tolist())
        with remedies(None, values, name):  # labels that cannot be looked up
            found = np.fromiter(places, np.intp, len(values))
    if (found < 0).any():
        unknown = dict.fromkeys(f"{label!r:.40}" for label in values[found < 0].tolist())
        named = ", ".join([*unknown][:_MAX_LABELS_NAMED])
        more = ", ..." * (len(unknown) > _MAX_LABELS_NAMED)
        raise ValueError(
            f"{name} has labels that are not among the classes ({named}{more}): leave out those "
            "rows, or take the column that the model was fitted to."
        )
    return found


def check_training_data(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    reset: bool = True,
    watch: Watch | None = None,
) -> tuple[Any, NDArray[np.integer], NDArray[np.float64], NDArray[Any], NDArray[np.bool_]]:
    """Return samples, classes as numbers, weights, the classes, and which samples have a weight.

    The others are dropped. What comes in batches, or is mapped from a file, stays there, and so do
    zeros of a sparse matrix. If batches need no encoding, `watch` is called with their samples and
    weights; the samples are then marked as `watched`.
    """
    samples: Any
    _check_is_table(X)
    if isinstance(X, BatchSource):
        _check_source(estimator, y=y, sample_weight=sample_weight)
        samples, found, given = _read_batches(estimator, X, reset, watch)
        classes = _at_least_two(found.classes())
        samples.y_like = found.like
        weight = check_sample_weight(given, samples.shape[0])
        return _with_weight(samples, found.positions_in(classes), weight, classes)
    _find_categories(estimator, X, sample_weight, reset)
    if _is_mapped(estimator, X):
        samples, labels = _check_mapped(estimator, X, y, reset)
    else:
        X = estimator._columns.encode(X)
        with remedies(X, y):
            samples, labels = validate_data(
                estimator, X, y, reset=reset, **_accepted(estimator), **SAMPLES
            )
    with remedies(None, y):
        check_classification_targets(labels)
        classes = distinct_classes(labels, y)
    classes = _at_least_two(classes)
    encoded = positions_in(classes, labels).astype(np.min_scalar_type(len(classes)))
    weight = check_sample_weight(sample_weight, len(encoded))
    return _with_weight(samples, encoded, weight, classes)


def _check_is_table(X: Any) -> None:
    """Raise where training samples are a file's name, or come one after another."""
    if isinstance(X, str | bytes | os.PathLike):
        raise TypeError(
            f"X must be a table of samples; got {X!r:.80}. If this is a Parquet file, give "
            "badacost.batches.ParquetBatches(path, target)."
        )
    if isinstance(X, Iterator):
        raise TypeError(
            f"X must be a table of samples; got {type(X).__name__}, which can be read once only. "
            "Give badacost.batches.Batches(make), with a function that returns the batches."
        )


def refuse_batches(X: Any, remedy: str) -> None:
    """Raise where samples come in batches, which only the fit of some classifiers takes."""
    if isinstance(X, BatchSource):
        raise TypeError(f"Batches are for the fit of classifiers that grow trees: {remedy}.")


def _at_least_two(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes, unless there are too few."""
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes; it has 1 class only: {classes[0]}.")
    return classes


def _with_weight(samples: Any, encoded: Any, weight: Any, classes: Any) -> Any:
    """Return what is left without samples of weight zero, the classes, and which samples it is."""
    kept = weight > 0.0
    if kept.all():
        kept = np.broadcast_to(True, len(kept))  # takes no memory
    else:
        samples, encoded, weight = samples[kept], encoded[kept], weight[kept]
    return samples, encoded, weight, classes, kept


def _accepted(estimator: Any) -> dict[str, Any]:
    """Which sparse matrices scikit-learn shall accept."""
    return {"accept_sparse": "csr"} if _reads_blocks(estimator) else {}


def _reads_blocks(estimator: Any) -> bool:
    """Whether samples may be something else than an array: those that become bins may."""
    return bool(get_tags(estimator).input_tags.sparse)


def _block_reader(estimator: Any) -> Convert:
    """A function that checks blocks of samples, and makes numbers of them."""
    columns = estimator._columns

    def read(X: Any) -> Any:
        X = columns.encode(X.toarray() if is_sparse(X) else X)
        with remedies(X):
            return validate_data(estimator, X, reset=False, **SAMPLES)

    return read


def _is_mapped(estimator: Any, X: Any) -> bool:
    """Whether X is an array in a file that need not be in memory as a whole."""
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.size and X.dtype.kind in _NUMBERS
    return bool(mapped) and _reads_blocks(estimator) and estimator.binning != "exact"


def _check_mapped(estimator: Any, X: Any, y: Any, reset: bool) -> tuple[MappedSamples, Any]:
    """Return a memory-mapped array as samples, and labels."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y, the classes of the samples.")
    labels = check_labels(y)
    check_consistent_length(X, labels)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return MappedSamples(X, _block_reader(estimator)), labels


def check_labels(y: Any) -> NDArray[Any]:
    """Return labels of classes as an array, none of them missing."""
    with remedies(None, y):
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        if len(labels):
            check_classification_targets(labels)
    return labels


def _check_source(estimator: Any, **given_twice: Any) -> None:
    """Raise where batches are of no use, or something is given that they have."""
    for name, given in given_twice.items():
        if given is not None:
            raise ValueError(f"{name} comes with the batches: leave it out, or give arrays.")
    if not _reads_blocks(estimator):
        raise TypeError(
            f"{type(estimator).__name__} needs all samples at once, unless it grows trees of its "
            "own: give arrays, or leave out estimator."
        )
    if estimator.binning == "exact":
        raise ValueError(
            'binning="exact" needs all values in memory: choose "quantile" or "uniform", or give '
            "arrays."
        )


class _Labels:
    """Classes of batches, as numbers in the order in which they were first seen."""

    def __init__(self) -> None:
        self._code_of: dict[Any, int] = {}
        self._codes: list[NDArray[np.unsignedinteger]] = []
        self._known: NDArray[Any] = np.empty(0)
        self.like: Any = None  # no labels of the first batch: they may have ordered categories

    def add(self, batch: Batch) -> None:
        """Add the labels of a batch."""
        if batch.y is None:
            raise ValueError("A batch has no classes (y is None): give one for each sample.")
        labels = check_labels(batch.y)
        if len(labels) != batch.n_rows:
            raise ValueError(
                f"A batch has {batch.n_rows} samples, but {len(labels)} labels: give one for each."
            )
        if not len(labels):
            return
        if self.like is None:
            self.like, self._known = batch.y[:0], labels[:0]
        elif (labels.dtype.kind in _NUMBERS) != (self._known.dtype.kind in _NUMBERS):
            raise ValueError(
                f"Classes are numbers in some batches and text in others, such as {labels[0]!r:.40}"
                ": make them alike."
            )
        with remedies(None, labels):
            here, places = np.unique(labels, return_inverse=True)
        self._known = np.unique(np.concatenate([self._known, here]))
        codes = [self._code_of.setdefault(label, len(self._code_of)) for label in here.tolist()]
        self._codes.append(np.array(codes, np.min_scalar_type(max(codes)))[places])

    def classes(self) -> NDArray[Any]:
        """Distinct labels, in their order."""
        if self.like is None:
            raise ValueError(
                "The batches have no samples: the list of batches, or what its function returns, "
                "is empty, or all of them are. Give at least one row."
            )
        return distinct_classes(self._known, self.like)

    def positions_in(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Labels as positions among the classes, in the smallest type."""
        seen = np.array(list(self._code_of), dtype=self._known.dtype)
        places = positions_in(classes, seen).astype(np.min_scalar_type(len(classes)))
        return places[np.concatenate(self._codes)]


def _read_batches(
    estimator: Any, source: BatchSource, reset: bool, watch: Watch | None = None
) -> tuple[BatchSamples, _Labels, Any]:
    """Look at all batches: return samples, labels, and weights if there are any."""
    labels = _Labels()
    weights: list[Any] = []
    marks: list[tuple[int, ...]] = []
    counts: dict[int, Counter[Any]] = {}
    for batch in source.batches():
        X = batch.X.toarray() if is_sparse(batch.X) else batch.X
        positions = categorical_positions(X, estimator._categorical_features)
        if not marks:
            counts = {position: Counter() for position in positions}
            watch = None if positions else watch
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            if not reset:
                _check_same_categories(estimator, positions)
        elif positions != [*counts]:
            raise ValueError(
                f"Batch {len(marks) + 1} has other categorical columns than those before: give "
                "columns the same types in all batches."
            )
        weights.append(_check_batch_weight(batch))
        labels.add(batch)
        marks.append(batch.mark)
        chosen = slice(None) if weights[-1] is None else weights[-1] > 0.0
        for position, counted in count_categories(X, positions, chosen).items():
            counts[position] += counted
        if watch is not None and batch.n_rows:
            with remedies(X):
                samples = validate_data(estimator, X, reset=False, **SAMPLES)
            watch(samples[chosen], None if weights[-1] is None else weights[-1][chosen])
    if reset:
        estimator._columns = CategoricalColumns.of_counts(counts)
    labels.classes()  # an error where there are none
    given = [weight is not None for weight in weights]
    if any(given) and not all(given):
        raise ValueError("Some batches have weights and others have none: give all of them some.")
    read = _block_reader(estimator)
    samples = BatchSamples(source, marks, estimator.n_features_in_, read)
    samples.watched = watch is not None
    return samples, labels, np.concatenate(weights) if all(given) else None


def _check_batch_weight(batch: Batch) -> NDArray[np.float64] | None:
    """Return the weights of a batch, one for each sample."""
    if batch.weight is None:
        return None
    weight = check_array(
        batch.weight,
        dtype=np.float64,
        ensure_2d=False,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if weight.shape != (batch.n_rows,):
        raise ValueError(
            f"A batch has {batch.n_rows} samples, but weights of shape {weight.shape}: give one "
            "for each sample."
        )
    return np.asarray(weight)


def _find_categories(estimator: Any, X: Any, sample_weight: ArrayLike | None, reset: bool) -> None:
    """Set the categorical columns of an estimator, or see that they are still the same."""
    chosen = estimator._categorical_features
    if is_sparse(X) and not isinstance(chosen, str | None) and len(chosen):
        raise ValueError(
            "A sparse matrix has no categorical columns: leave out categorical_features, or give "
            "an array or a data frame."
        )
    positions = categorical_positions(X, chosen)
    if reset:
        rows: Any = slice(None)
        if positions and sample_weight is not None:
            rows = check_sample_weight(sample_weight, len(X)) > 0.0
        estimator._columns = CategoricalColumns.fit(X, positions, rows)
    else:
        _check_same_categories(estimator, positions)


def _check_same_categories(estimator: Any, positions: list[int]) -> None:
    """Raise where a warm start has other categorical columns than the first fit."""
    chosen = estimator._categorical_features
    if not isinstance(chosen, str) and positions != sorted(estimator._columns.categories):
        raise ValueError("With warm_start=True categorical_features must stay as it was.")


def check_samples(estimator: Any, X: ArrayLike) -> NDArray[np.floating]:
    """Return samples to predict, after checking them against those of the training."""
    if type(X) is np.ndarray and X.size <= _FEW and _fits(estimator, X):
        encoded: NDArray[np.floating] = estimator._columns.encode(X)
        return encoded
    check_is_fitted(estimator)
    refuse_batches(X, "to predict, give arrays, data frames or sparse matrices, one at a time")
    X = estimator._columns.encode(X)
    with remedies(X):
        checked: NDArray[np.floating] = validate_data(
            estimator, X, reset=False, **_accepted(estimator), **SAMPLES
        )
    return checked


def _fits(estimator: Any, X: NDArray[Any]) -> bool:
    """Tell whether nothing is to be said about samples, or converted."""
    return (
        X.ndim == 2
        and len(X) > 0
        and X.dtype in (np.float64, np.float32)
        and estimator.__sklearn_is_fitted__()
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        and not np.isinf(X).any()
    )


def check_validation_data(
    estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None
) -> tuple[Any, NDArray[np.integer], NDArray[np.float64]]:
    """Return validation samples, classes as numbers in ``classes_``, and weights."""
    if isinstance(X, BatchSource):
        _check_source(estimator, y_val=y, sample_weight_val=sample_weight)
        samples, found, sample_weight = _read_batches(estimator, X, False)
        _check_known(estimator, found.classes())
        labels = found.positions_in(estimator.classes_)
    else:
        X = estimator._columns.encode(X)
        with remedies(X, y):
            samples, given = validate_data(
                estimator, X, y, reset=False, **_accepted(estimator), **SAMPLES
            )
        _check_known(estimator, given)
        labels = positions_in(estimator.classes_, given)
    return samples, labels, check_sample_weight(sample_weight, len(labels), "sample_weight_val")


def _check_known(estimator: Any, labels: NDArray[Any]) -> None:
    """Raise where validation samples have classes that training samples do not have."""
    unknown = np.setdiff1d(labels, estimator.classes_)
    if len(unknown):
        raise ValueError(f"y_val has classes that y does not have: {unknown.tolist()}.")


def check_tree_parameters(estimator: Any) -> None:
    """Check the parameters that a tree and a booster of trees have in common."""
    check_number("max_depth", estimator.max_depth, Integral, low=1, none=True)
    check_number("max_leaf_nodes", estimator.max_leaf_nodes, Integral, low=2, none=True)
    check_number("min_samples_split", estimator.min_samples_split, Integral, low=2)
    check_number("min_samples_leaf", estimator.min_samples_leaf, Integral, low=1)
    if hasattr(estimator, "criterion"):
        check_choice("criterion", estimator.criterion, ("gini", "entropy"))
    check_choice("binning", estimator.binning, ("quantile", "uniform", "exact"))
    check_number("max_bins", estimator.max_bins, Integral, low=2, high=256)
    number_of_features(estimator.max_features, 1)
    check_categorical_features(estimator.categorical_features)
    check_number("n_jobs", estimator.n_jobs, Integral, none=True)
