"""Inputs of an exported model: one matrix of numbers, or a column for each feature.

Categories that are numbers stay in the matrix. As soon as one is a text, every feature has an input
of its own, since a matrix of ONNX has one type.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from badacost.classifiers.base import ForestClassifier
from badacost.classifiers.minimum_cost import MinimumCostClassifier
from badacost.costs.matrix import plain
from badacost.export.graph import ML_DOMAIN, Graph, Tensor, Value
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
    numbered = [f"x{position}" for position in range(model.n_features_in_)]
    names = [str(name) for name in getattr(model, "feature_names_in_", numbered)]
    # No name is in ONNX an optional input that is missing.
    return [name or unused_name(x, names) for name, x in zip(names, numbered, strict=True)]


def add_inputs(graph: Graph, model: Any) -> tuple[list[Value], Tensor]:
    """Add what makes a matrix of the inputs; return these and the matrix, with codes."""
    names, parts = column_names(model), parts_of(model)
    tables = [part for part in parts if isinstance(part, TableClassifier)]
    numbers, texts = categories_of(parts[-1])
    if tables:
        texts = {j: c.levels for j, c in enumerate(tables[0].encoder_.columns_) if c.levels}
    elif not texts:
        whole = Value(_MATRIX, graph.dtype, [None, len(names)])
        return [whole], add_codes(numbers, Tensor(graph, _MATRIX), len(names))
    inputs, columns = [], []
    for position, name in enumerate(names):
        column, dtype = Tensor(graph, name), graph.dtype
        if position in texts:
            column, dtype = _codes_of_texts(column, texts[position]), np.object_
        inputs.append(Value(name, dtype, [None, 1]))
        columns.append(column)
    return inputs, add_codes(numbers, graph.add("Concat", *columns, axis=1), len(names))


def categories_of(model: Any) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the known categories of features, by position: of numbers, and with texts."""
    known = model._columns.categories if isinstance(model, ForestClassifier) else {}
    texts = {j: found for j, found in known.items() if any(isinstance(x, str) for x in found)}
    return {j: found for j, found in known.items() if j not in texts}, texts


def add_codes(numbers: dict[int, Any], values: Tensor, n_features: int) -> Tensor:
    """Add the codes of categories that are numbers, by the position of their feature."""
    if not numbers:
        return values
    add, positions, columns = values.graph.add, [*numbers], np.arange(n_features)
    codes = _codes_of_numbers(add("Gather", values, positions, axis=1), [*numbers.values()])
    columns[positions] = n_features + np.arange(len(positions))
    return add("Gather", add("Concat", values, codes, axis=1), columns, axis=1)


def _codes_of_numbers(values: Tensor, known: list[Collection[Any]]) -> Tensor:
    """Codes of columns of numbers, (n, n_columns); NaN where a number is not known.

    Numbers are compared in the precision of the inputs, to which those of the training are rounded.
    """
    add, dtype = values.graph.add, values.graph.dtype
    precision = "double" if dtype == np.float64 else "single"
    levels = np.full((len(known), max(1, *map(len, known))), np.nan, dtype)  # NaN equals nothing
    for line, numbers in zip(levels, known, strict=True):
        with np.errstate(over="ignore"):
            line[: len(numbers)] = [*numbers]
        _check_distinct(numbers, line[: len(numbers)].tolist(), f"in {precision} precision")
    equal = (add("Unsqueeze", values, [2]) == levels).cast(np.int32)
    place = add("ArgMax", equal, axis=2, keepdims=0)
    return add("Where", equal.sum(axis=2).cast(np.bool_), place.cast(dtype), dtype(np.nan))


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
