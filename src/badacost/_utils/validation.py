"""Checks of parameters, labels, weights and samples to predict, with errors that name a remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
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
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from badacost._utils.arrays import FloatArray
from badacost._utils.categorical_columns import (
    check_categorical_features,
    check_column_names,
    is_missing,
    listed,
)
from badacost._utils.large_samples import BatchSource

SAMPLES: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
NUMERIC = "biuf"  # kinds of arrays
_NOT_A_NUMBER = re.compile(r"could not convert string to float: (?:np\.\w+\()?(.*?)\)?", re.DOTALL)
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
    wanted = "an integer" if kind is Integral else "a number"
    if np.isfinite(low):
        wanted += f" greater than {low:g}" if open_low else f" at least {low:g}"
    wanted += f" and at most {high:g}" if np.isfinite(high) else ""
    mistake = f"{name} must be {wanted}{' or None' if none else ''}; got {value!r:.80}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise TypeError(f"{mistake} of type {type(value).__name__}.")
    number: Any = value
    if not low <= number <= high or (open_low and number == low):
        raise ValueError(f"{mistake}.")
    if number in (np.inf, -np.inf):
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
        numbers = {"auto": np.ceil(2.0 * root), "sqrt": root, "log2": np.log2(n_features)}
        number = numbers[max_features]
    elif isinstance(max_features, Integral):
        check_number("max_features", max_features, Integral, low=1)
        number = max_features
    else:
        check_number("max_features", max_features, low=0.0, high=1.0, open_low=True)
        number = max_features * n_features
    return max(1, int(number)) if number < n_features else None


def check_sample_weight(
    sample_weight: ArrayLike | None, n_samples: int, name: str = "sample_weight"
) -> FloatArray:
    """Return weights as an array of shape (n_samples,); ones if there are none."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_samples)  # takes no memory
    weight = numeric_weight(sample_weight, n_samples, name)
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
    return weight


def numeric_weight(sample_weight: Any, n_samples: int, name: str = "sample_weight") -> FloatArray:
    """Return weights as finite numbers, of shape (n_samples,)."""
    options: Any = {"dtype": np.float64, "ensure_2d": False, "ensure_min_samples": 0}
    try:
        weight = np.asarray(check_array(sample_weight, **options, input_name=name))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have a finite number for each sample ({error}).") from error
    if weight.shape != (n_samples,):
        raise ValueError(f"{name} must have shape ({n_samples},); got shape {weight.shape}.")
    return weight


@contextmanager
def helpful_errors(X: Any, y: Any = None, name: str = "y") -> Iterator[None]:
    """Replace errors of numpy and scikit-learn by errors that name a remedy.

    Other errors are raised as they are. Warnings of numpy are off: checks add and cast numbers.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (TypeError, ValueError, ArithmeticError) as error:
        mistake = _mistake_in_labels(y, name)
        if mistake is None and X is not None:
            mistake = _mistake_in_samples(str(error))
        if mistake is None:
            raise
        raise ValueError(mistake) from error


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise where there are fewer classes than two."""
    if len(classes) < 2:
        only = ", ".join(map(str, classes)) or "none"
        raise ValueError(
            f"y must have at least 2 classes; it has {len(classes)} class only: {only}."
        )


def check_has_weight(classes: NDArray[Any], weighted: NDArray[Any]) -> None:
    """Raise where a class is not among the labels of the samples that have a weight."""
    weightless = np.setdiff1d(classes, weighted).tolist()
    if weightless:
        raise ValueError(f"class {weightless[0]!r} has no sample of positive weight: leave it out.")


def _mistake_in_labels(y: Any, name: str) -> str | None:
    """Describe what is wrong with labels, if some are missing or cannot be sorted."""
    try:
        labels = np.ravel(() if y is None else y)
    except ValueError:  # they make no array
        return None
    examples: dict[Any, Any] = {}
    for label in labels if labels.dtype.kind in "fO" else ():
        if is_missing(label):
            shown = "NaN" if isinstance(label, float | np.floating) else repr(label)
            return f"{name} contains {shown}: leave out samples without a class."
        kind = str if isinstance(label, str) else type(label)
        examples.setdefault(Real if isinstance(label, Real | np.bool_) else kind, label)
    if len(examples) < 2 and examples.keys() <= {Real, str}:
        return None
    shown = ", ".join(f"{label!r:.40}" for label in examples.values())
    return f"{name} has labels such as {shown}: make all of them text, or all of them numbers."


def _mistake_in_samples(error: str) -> str | None:
    """Add a remedy to an error of scikit-learn, if it is of one of the common mistakes."""
    text = _NOT_A_NUMBER.fullmatch(error)
    if text:
        return (
            f"X contains text, such as {text[1]:.80}: make text categories, for example with "
            'astype("category"), name its columns in categorical_features, or use '
            "badacost.tabular.TableClassifier."
        )
    if "contains infinity" in error:
        return "X contains infinity: replace such values, by NaN if they are not known."
    return None


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
    known = classes if isinstance(classes, np.ndarray) else np.asarray(classes, dtype=object)
    values = labels if isinstance(labels, np.ndarray) else np.asarray(labels, dtype=object)
    if values.ndim != 1:
        raise ValueError(f"{name} must be a column of labels; got shape {values.shape}.")
    if known.dtype.kind in NUMERIC and values.dtype.kind in NUMERIC:
        order = np.argsort(known)
        near = order[np.searchsorted(known, values, sorter=order).clip(max=len(known) - 1)]
        found = np.where(known[near] == values, near, -1)
    else:
        index = {label: k for k, label in enumerate(known.tolist())}
        places = (index.get(label, -1) for label in values.tolist())
        with helpful_errors(None, values, name):  # labels that cannot be looked up
            found = np.fromiter(places, np.intp, len(values))
    if (found < 0).any():
        unknown = listed({repr(label): label for label in values[found < 0].tolist()}.values(), 5)
        raise ValueError(
            f"{name} has labels that are not among the classes ({unknown}): leave out those rows, "
            "or take the column that the model was fitted to."
        )
    return found


def refuse_batches(X: Any, remedy: str) -> None:
    """Raise where samples come in batches, which only the fit of some classifiers takes."""
    if isinstance(X, BatchSource):
        raise TypeError(f"Batches are for the fit of classifiers that grow trees: {remedy}.")


def check_labels(y: Any, owner: str, name: str = "y") -> NDArray[Any]:
    """Return the labels that `owner` needs as an array, none of them missing, all of one type."""
    if y is None:
        raise ValueError(f"{owner} requires {name} to be passed, but the target {name} is None.")
    with helpful_errors(None, y, name):
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name=name)
        if len(labels):
            check_classification_targets(labels)
    return labels


def check_samples(estimator: Any, X: ArrayLike) -> NDArray[np.floating]:
    """Return samples to predict, after checking them against those of the training."""
    checked: NDArray[np.floating]
    if (  # no conversion is needed
        type(X) is np.ndarray
        and X.ndim == 2
        and 0 < X.size <= _FEW
        and X.dtype in (np.float64, np.float32)
        and estimator.__sklearn_is_fitted__()
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        and not np.isinf(X).any()
    ):
        checked = estimator._columns.encode(X)
        return checked
    check_is_fitted(estimator)
    refuse_batches(X, "to predict, give arrays, data frames or sparse matrices, one at a time")
    checked = check_rows(estimator, X)
    return checked


def check_rows(estimator: Any, X: Any, reset: bool = False) -> Any:
    """Return samples, checked, with codes instead of categories."""
    accepted = {"accept_sparse": "csr"} if accepts_blocks(estimator) else {}
    check_column_names(X)
    X = estimator._columns.encode(X)
    with helpful_errors(X):
        return validate_data(estimator, X, reset=reset, **accepted, **SAMPLES)


def accepts_blocks(estimator: Any) -> bool:
    """Whether samples may be batches, memory maps or sparse: those that are binned may."""
    return bool(get_tags(estimator).input_tags.sparse)


def check_tree_parameters(estimator: Any) -> None:
    """Check the parameters that a tree and a booster of trees have in common."""
    check_number("max_depth", estimator.max_depth, Integral, low=1, none=True)
    check_number("max_leaf_nodes", estimator.max_leaf_nodes, Integral, low=2, none=True)
    check_number("min_samples_split", estimator.min_samples_split, Integral, low=2)
    check_number("min_samples_leaf", estimator.min_samples_leaf, Integral, low=1)
    if hasattr(estimator, "criterion"):
        check_choice("criterion", estimator.criterion, ("gini", "entropy"))
    check_choice("binning", estimator.binning, ("quantile", "uniform", "exact"))
    if not (getattr(estimator, "_chooses_bins", False) and estimator.max_bins == "auto"):
        check_number("max_bins", estimator.max_bins, Integral, low=2, high=256)
    number_of_features(estimator.max_features, 1)
    check_categorical_features(estimator.categorical_features)
    check_n_jobs(estimator.n_jobs)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless this is a number of threads."""
    check_number("n_jobs", n_jobs, Integral, none=True)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give a positive number, -1 for all cores, or None.")
