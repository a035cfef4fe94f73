"""Inputs of an exported model: one matrix of numbers, or a column for each feature.

Categories that are numbers stay in the matrix. As soon as one is a text, every feature has an input
of its own, since a matrix of ONNX has one type.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from badacost.classifiers.base import ForestClassifier
from badacost.classifiers.minimum_cost import MinimumCostClassifier
from badacost.costs.matrix import plain
from badacost.export.graph import ML_DOMAIN, Graph, Tensor
from badacost.tabular import TableClassifier
from badacost.tabular.columns import text_of

_MATRIX = "X"


def parts_of(model: Any) -> list[Any]:
    """Return a fitted classifier, the one that it consists of, and so on to the innermost one."""
    if isinstance(model, FrozenEstimator):
        return [model, *parts_of(model.estimator)]
    if isinstance(model, MinimumCostClassifier | TableClassifier):
        return [model, *parts_of(model.estimator_)]
    return [model]


def unused_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with as many underscores after it as make it different from all taken ones."""
    while name in taken:
        name += "_"
    return name


def column_names(model: Any) -> list[str]:
    """Return the names of the columns, in their order; numbered where they have none."""
    if not hasattr(model, "n_features_in_"):
        raise TypeError(
            "the number of features is not known: use skl2onnx.to_onnx, which takes their types."
        )
    numbered = [f"x{position}" for position in range(model.n_features_in_)]
    names = [str(name) for name in getattr(model, "feature_names_in_", numbered)]
    # No name is in ONNX an optional input that is missing.
    return [name or unused_name(x, names) for name, x in zip(names, numbered, strict=True)]


def add_inputs(graph: Graph, model: Any) -> tuple[dict[str, NDArray[Any]], Tensor]:
    """Return inputs, as arrays without rows by their names, and the matrix that they make.

    It has the codes of texts, and numbers as they are given.
    """
    names, texts = column_names(model), text_categories(model)
    if not texts and not any(isinstance(part, TableClassifier) for part in parts_of(model)):
        return {_MATRIX: np.empty((0, len(names)), graph.dtype)}, Tensor(graph, _MATRIX)
    inputs, columns = {}, []
    for position, name in enumerate(names):
        column, dtype = Tensor(graph, name), graph.dtype
        if position in texts:
            column, dtype = _codes_of_texts(column, texts[position]), np.object_
        inputs[name] = np.empty((0, 1), dtype)
        columns.append(column)
    return inputs, graph.add("Concat", *columns, axis=1)


def text_categories(model: Any) -> dict[int, Collection[Any]]:
    """Return the known categories of features that have texts among them, by position."""
    for part in parts_of(model):
        if isinstance(part, TableClassifier):
            return {j: c.levels for j, c in enumerate(part.encoder_.columns_) if c.levels}
        if isinstance(part, ForestClassifier):
            known = part._columns.categories
            return {j: levels for j, levels in known.items() if _has_texts(levels)}
    return {}


def _has_texts(levels: Collection[Any]) -> bool:
    return any(isinstance(level, str) for level in levels)


def add_codes(model: ForestClassifier, values: Tensor) -> Tensor:
    """Add the codes of categories that are numbers, in the place of these; NaN if not known.

    Numbers are compared in the precision of the inputs, to which those of the training are rounded.
    """
    known = {j: found for j, found in model._columns.categories.items() if not _has_texts(found)}
    if not known:
        return values
    add, dtype, positions = values.graph.add, values.graph.dtype, [*known]
    precision = "double" if dtype == np.float64 else "single"
    levels = np.full((len(known), max(1, *map(len, known.values()))), np.nan, dtype)
    for line, numbers in zip(levels, known.values(), strict=True):  # NaN equals nothing
        with np.errstate(over="ignore"):
            line[: len(numbers)] = [*numbers]
        _check_distinct(numbers, line[: len(numbers)].tolist(), f"in {precision} precision")
    columns = add("Unsqueeze", add("Gather", values, positions, axis=1), [2])
    equal = (columns == levels).cast(np.int32)
    code = add("ArgMax", equal, axis=2, keepdims=0).cast(dtype)
    codes = add("Where", equal.sum(axis=2).cast(np.bool_), code, dtype(np.nan))
    order = np.arange(model.n_features_in_)
    order[positions] = len(order) + np.arange(len(positions))
    return add("Gather", add("Concat", values, codes, axis=1), order, axis=1)


def _codes_of_texts(values: Tensor, levels: Collection[Any]) -> Tensor:
    """Codes of a column of texts, (n, 1); NaN where a text is not known."""
    texts = [text_of(level) for level in levels]
    _check_distinct(levels, texts, f"as texts of {values.name!r}")
    codes = values.graph.add(
        "LabelEncoder",
        values,
        domain=ML_DOMAIN,
        keys_strings=texts,
        values_floats=np.arange(float(len(texts))).tolist(),
        default_float=np.nan,
    )
    return codes.cast(values.graph.dtype)


def _check_distinct(known: Collection[Any], written: Collection[Any], how: str) -> None:
    """Refuse categories that an exported model could not distinguish."""
    first: dict[Any, Any] = {}
    for value, key in zip(known, written, strict=True):
        if key in first:
            raise ValueError(
                f"the categories {plain(first[key])!r} and {plain(value)!r} are equal {how}: fit "
                'with different texts as categories, or export with input_type="double".'
            )
        first[key] = value
