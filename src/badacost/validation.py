"""Checks of what users hand to estimators, with errors that say what would be accepted."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array


def check_number(
    name: str,
    value: Any,
    kind: type[Integral] | type[Real] = Real,
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
        raise TypeError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
    if not (low < value if open_low else low <= value) or not value <= high:
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")


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
        check_choice("max_features", max_features, ("sqrt", "log2"))
        number = np.sqrt(n_features) if max_features == "sqrt" else np.log2(n_features)
        return max(1, int(number))
    if isinstance(max_features, Integral):
        check_number("max_features", max_features, Integral, low=1)
        return min(int(max_features), n_features)
    check_number("max_features", max_features, low=0.0, high=1.0, open_low=True)
    return max(1, int(max_features * n_features))


def check_sample_weight(
    sample_weight: ArrayLike | None, n_samples: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Return weights as an array of shape (n_samples,); ones if there are none."""
    if sample_weight is None:
        return np.ones(n_samples)
    if np.ndim(sample_weight) == 0:
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
        raise ValueError(f"{name} is zero for every sample; at least two classes need weight.")
    return np.asarray(weight)
