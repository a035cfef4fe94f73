"""Saving and loading fitted models, without pickle.

A class registers itself with `saved_model`, gives its state in `_to_model_file` and takes it in
the class method `_from_model_file`; `badacost.model_file` is the file it goes into. What a class
takes may come from anyone: it makes the same checks as for a new model. Parts that are models
themselves are named in `_parts`, and handed to `_from_model_file` as keywords.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from badacost.budget import UNLIMITED, Budget, BudgetError
from badacost.costs.matrix import plain
from badacost.model_file import (
    ModelFile,
    ModelFileError,
    describe,
    read_kind,
    read_model,
    refuse,
    write_model,
)

_Class = TypeVar("_Class", bound=type)
_LABEL_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_LABEL_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|U[1-9][0-9]{0,7}|object")
# What checks raise on contents that make no model.
REBUILDING_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
Finder = Callable[[str], object]  # imports the module of the class of a name, if it knows one
# What a pair of classes takes in all matrices at once, and in a mapping besides.
_BYTES_OF_COST, _BYTES_OF_NAMED_COST = 64, 200
_COPIES_OF_LABELS = 3  # of the array: itself, those that sort it
_classes: dict[str, Any] = {}


def saved_model(cls: _Class) -> _Class:
    """Register a class whose models can be saved, under its name."""
    _classes[cls.__name__] = cls
    return cls


def model_to_file(model: Any) -> ModelFile:
    """Return what a file holds of a model, or raise TypeError where none can hold it."""
    kind = type(model).__name__
    if _classes.get(kind) is not type(model):
        remedy = (
            "put it into an ImportedForestClassifier"
            if kind in ("LGBMClassifier", "CatBoostClassifier")
            else "use joblib.dump"
        )
        raise TypeError(f"a file of badacost cannot hold a {kind}: {remedy}.")
    contents: ModelFile = model._to_model_file()
    return contents


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model of a registered class to a file."""
    contents = model_to_file(model)
    write_model(path, contents.kind, contents.header, contents.arrays)


def load_model(
    path: str | os.PathLike[str],
    find: Finder | None = None,
    *,
    max_memory: int | str | None = None,
) -> Any:
    """Return the model in a file, of a class that is registered or that `find` imports."""

    def check_kind(kind: str) -> None:
        if _class_of(kind, find) is None:
            refuse(f"it holds {_unknown(kind)}")

    model = read_model(path, max_memory=max_memory, check_kind=check_kind)
    try:
        return _rebuilt(model, find)
    except BudgetError as error:
        raise ModelFileError(f"cannot read {describe(path)}: {error}.") from error
    except REBUILDING_ERRORS as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise ModelFileError(f"{describe(path)} is damaged or was altered: {reason}") from error


def _rebuilt(model: ModelFile, find: Finder | None) -> Any:
    """Return the model of these contents, built after its parts, which its class takes."""
    cls = _class_of(model.kind, find)
    if cls is None:
        refuse(f"it holds {_unknown(model.kind)}")
    parts = {}
    for name in getattr(cls, "_parts", ()):
        model, part = _without_part(model, name)
        parts[name] = _rebuilt(part, find)
    return cls._from_model_file(model, **parts)


def _class_of(kind: str, find: Finder | None) -> Any:
    """Return the registered class of this name, if there is one."""
    if find is not None:
        find(kind)
    return _classes.get(kind)


def with_part(model: ModelFile, name: str, part: ModelFile) -> ModelFile:
    """Return contents to which those of a part have been added."""
    return replace(
        model,
        header=model.header | {name: {"kind": part.kind, "header": part.header}},
        arrays=model.arrays | {f"{name}_{key}": array for key, array in part.arrays.items()},
    )


def _without_part(model: ModelFile, name: str) -> tuple[ModelFile, ModelFile]:
    """Return the contents that `with_part` joined."""
    header, prefix = dict(model.header), f"{name}_"
    part = header.pop(name)
    if (
        not isinstance(part, dict)
        or not isinstance(part.get("kind"), str)
        or not isinstance(part.get("header"), dict)
    ):
        refuse(f"its {name} is not a kind and a header")
    arrays, own = dict(model.arrays), {}
    for key in [key for key in arrays if key.startswith(prefix)]:
        own[key.removeprefix(prefix)] = arrays.pop(key)
    rest = replace(model, header=header, arrays=arrays)
    return rest, replace(model, kind=part["kind"], header=part["header"], arrays=own)


def _unknown(kind: str) -> str:
    """Say that no class has a name."""
    return f"a model of the unknown kind {kind[:80]!r}: upgrade badacost if a newer one wrote it"


def saved_kind(path: str | os.PathLike[str]) -> str | None:
    """Return the name of the class of a saved model, without reading its arrays.

    Parameters
    ----------
    path : str or path-like
        A file of any kind.

    Returns
    -------
    str or None
        The name, such as "BAdaCostClassifier"; None if the file is no model, or is not there.

    Examples
    --------
    >>> print(saved_kind("no-such-file.badacost"))
    None
    """
    try:
        return read_kind(path)
    except (ModelFileError, OSError):
        return None


def labels_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Return class labels or feature names in a form that JSON holds exactly.

    Parameters
    ----------
    classes : ndarray of shape (n_labels,)
        Booleans, integers, finite floats, strings, or Python objects of these types. Numpy scalars
        inside an object array become the Python objects equal to them.

    Returns
    -------
    dict
        For `labels_from_json`, which restores the values and, but for the byte order, the dtype.
    """
    dtype = classes.dtype
    name = f"U{dtype.itemsize // 4}" if dtype.kind == "U" else dtype.name
    if not _LABEL_DTYPE.fullmatch(name):
        raise TypeError(
            f"labels of dtype {dtype} cannot be saved: use booleans, integers, floats or strings."
        )
    if classes.ndim != 1:
        raise TypeError(f"labels of shape {classes.shape} cannot be saved: give one dimension.")
    values = classes.tolist()
    if dtype.kind == "O":
        values = [plain(value) for value in values]
    reason = _label_fault(values, name)
    if reason:
        raise TypeError(f"labels cannot be saved: {reason}.")
    return {"dtype": name, "values": values}


def labels_from_json(obj: Any, budget: Budget = UNLIMITED) -> NDArray[Any]:
    """Return the labels that `labels_to_json` took apart.

    Parameters
    ----------
    obj : object
        What the file holds; anything.
    budget : Budget
        What the labels may take, with all others of their file.

    Returns
    -------
    ndarray of shape (n_labels,)
        The labels.
    """
    if not isinstance(obj, dict) or set(obj) != {"dtype", "values"}:
        refuse("the labels are not a dtype and values")
    name, values = obj["dtype"], obj["values"]
    if not isinstance(name, str) or not _LABEL_DTYPE.fullmatch(name):
        refuse(f"the labels are of the unknown type {str(name)[:80]!r}")
    if not isinstance(values, list):
        refuse("the values of the labels are not a list")
    reason = _label_fault(values, name)
    if reason:
        refuse(f"the labels are not valid, {reason}")
    budget.take(_COPIES_OF_LABELS * np.dtype(name).itemsize * len(values), "the labels")
    labels = np.empty(len(values), dtype=name)
    try:
        with np.errstate(over="ignore"):
            labels[:] = values
    except OverflowError as error:
        raise ModelFileError(f"the labels do not fit {name}") from error
    if labels.tolist() != values:
        refuse(f"the labels do not fit {name}")
    return labels


def check_memory_of_costs(model: ModelFile, n_classes: int) -> None:
    """Refuse a model whose matrices of costs would take more than its file may."""
    bytes_of_pair = _BYTES_OF_NAMED_COST if model.header["costs_given"] else _BYTES_OF_COST
    model.budget.take(bytes_of_pair * n_classes**2, f"a model of {n_classes} classes")


def _label_fault(values: list[Any], name: str) -> str | None:
    """Return what is wrong with the values of labels of a type, if anything."""
    if not values:
        return "there are none"
    kind = "O" if name == "object" else np.dtype(name).kind
    allowed = (bool, int, float, str) if kind == "O" else (_LABEL_TYPES[kind],)
    for value in values:
        if type(value) not in allowed:
            return f"a label of type {type(value).__name__} stands among labels of type {name}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{value} is not a finite number"
        # JSON joins halves of a surrogate pair, so that such a text would not come back.
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            return f"{value[:80]!r} is not valid text"
    return None
