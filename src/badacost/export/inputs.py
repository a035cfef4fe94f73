"""What enters an exported model: one matrix of numbers, or a column for each feature.

Categories that are numbers stay in the matrix. As soon as one is a text, every feature has an input
of its own, since a matrix of ONNX has one type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from badacost.costs.matrix import plain
from badacost.decision import MinimumCostClassifier
from badacost.export.graph import Graph, Value
from badacost.export.trees import Features
from badacost.tabular import TableClassifier

_MATRIX = "X"


@dataclass(frozen=True)
class Matrix:
    """A matrix of samples, (n, n_features), in single or double precision.

    `coded` says that categories in it are codes already.
    """

    name: str
    dtype: Any
    coded: bool = False


def parts_of(model: Any) -> Iterator[Any]:
    """Yield a fitted classifier, the one that it consists of, and so on to the innermost one."""
    yield model
    if isinstance(model, FrozenEstimator):
        yield from parts_of(model.estimator)
    elif isinstance(model, MinimumCostClassifier | TableClassifier):
        yield from parts_of(model.estimator_)


def column_names(model: Any) -> list[str]:
    """Return the names of the columns, in their order; numbered where they have none."""
    given = getattr(model, "feature_names_in_", None)
    names = [""] * model.n_features_in_ if given is None else [str(name) for name in given]
    taken = set(names)
    for position, name in enumerate(names):
        if not name:  # which ONNX takes for an input that is left out
            name = f"x{position}"
            while name in taken:
                name += "_"
            taken.add(name)
            names[position] = name
    return names


def categories_of(model: Any) -> dict[int, NDArray[Any]]:
    """Return the known categories of the features of a classifier, by position."""
    known = getattr(model, "categories_", {})
    names = getattr(model, "feature_names_in_", None)
    place = {} if names is None else {name: position for position, name in enumerate(names)}
    return {place.get(key, key): values for key, values in known.items()}


def has_texts(model: Any) -> bool:
    """Tell whether a category of a classifier is a text."""
    *_, inner = parts_of(model)
    known = categories_of(inner).values()
    return any(isinstance(value, str) for values in known for value in values)


def add_inputs(graph: Graph, model: Any, dtype: Any) -> tuple[list[Value], Matrix]:
    """Add what makes a matrix of the inputs; return these and the matrix."""
    names = column_names(model)
    *_, inner = parts = [*parts_of(model)]
    table = next((part for part in parts if isinstance(part, TableClassifier)), None)
    if table is not None:
        texts = {j: c.levels for j, c in enumerate(table.encoder_.columns_) if c.levels}
        return _of_columns(graph, names, texts, {}, dtype, coded=False)
    if not has_texts(model):
        return [Value(_MATRIX, dtype, [None, len(names)])], Matrix(_MATRIX, dtype)
    texts, numbers = {}, {}
    for position, values in categories_of(inner).items():
        if any(isinstance(value, str) for value in values):
            texts[position] = tuple(_text(value) for value in values)
            _check_distinct(values, texts[position], f"written alike in {names[position]!r}", "")
        else:
            numbers[position] = values
    return _of_columns(graph, names, texts, numbers, dtype, coded=True)


def _of_columns(
    graph: Graph,
    names: list[str],
    texts: dict[int, tuple[str, ...]],
    numbers: dict[int, NDArray[Any]],
    dtype: Any,
    coded: bool,
) -> tuple[list[Value], Matrix]:
    """Join columns to a matrix, with codes in the place of texts and of numbers that are known."""
    inputs, columns = [], []
    for position, name in enumerate(names):
        is_text = position in texts
        inputs.append(Value(name, np.object_ if is_text else dtype, [None, 1]))
        if is_text:
            columns.append(_codes_of_texts(graph, name, texts[position], dtype))
        elif position in numbers:
            columns.append(_codes_of_numbers(graph, name, [numbers[position]], dtype))
        else:
            columns.append(name)
    return inputs, Matrix(graph.add("Concat", *columns, axis=1), dtype, coded)


def add_codes(graph: Graph, model: Any, matrix: Matrix) -> Features:
    """Add the codes of the categories of a classifier to the matrix, where it has any."""
    known = categories_of(model)
    columns = np.arange(model.n_features_in_)
    if matrix.coded or not known:
        return Features(matrix.name, matrix.dtype, columns)
    if has_texts(model):
        raise TypeError(
            "a pipeline with text categories cannot be exported: use badacost.export.to_onnx on "
            "the classifier itself, or encode texts as numbers before it."
        )
    positions = sorted(known)
    tested = graph.add("Gather", matrix.name, graph.constant(positions), axis=1)
    codes = _codes_of_numbers(graph, tested, [known[j] for j in positions], matrix.dtype)
    columns[positions] = len(columns) + np.arange(len(positions))
    joined = graph.add("Concat", matrix.name, codes, axis=1)
    return Features(joined, matrix.dtype, columns)


def _codes_of_numbers(graph: Graph, values: str, known: list[NDArray[Any]], dtype: Any) -> str:
    """Codes of columns of numbers, (n, n_columns); NaN where a number is not known.

    Numbers are compared in the precision of the inputs, to which those of the training are rounded.
    """
    levels = np.full((len(known), max(1, *map(len, known))), np.nan, dtype)  # NaN equals nothing
    is_double = dtype == np.float64
    for line, numbers in zip(levels, known, strict=True):
        with np.errstate(over="ignore"):
            line[: len(numbers)] = numbers
        _check_distinct(
            numbers,
            line[: len(numbers)].tolist(),
            f"the same number in {'double' if is_double else 'single'} precision",
            "" if is_double else ", or export it with inputs in double precision",
        )
    wide = graph.add("Unsqueeze", values, graph.constant([2]))
    equal = graph.cast(graph.add("Equal", wide, graph.constant(levels)), np.int32)
    place = graph.add("ArgMax", equal, axis=2, keepdims=1)
    found = graph.add("GatherElements", equal, place, axis=2)
    return _known_codes(
        graph,
        graph.add("Squeeze", place, graph.constant([2])),
        graph.cast(graph.add("Squeeze", found, graph.constant([2])), np.bool_),
        dtype,
    )


def _codes_of_texts(graph: Graph, values: str, levels: tuple[str, ...], dtype: Any) -> str:
    """Codes of a column of texts, (n, 1); NaN where a text is not known."""
    place = graph.add(
        "LabelEncoder",
        values,
        keys_strings=list(levels),
        values_int64s=list(range(len(levels))),
        default_int64=-1,
    )
    found = graph.add("GreaterOrEqual", place, graph.constant(0, np.int64))
    return _known_codes(graph, place, found, dtype)


def _check_distinct(known: Iterable[Any], written: Iterable[Any], same: str, instead: str) -> None:
    """Refuse categories that an exported model could not tell apart."""
    first: dict[Any, Any] = {}
    for value, key in zip(known, written, strict=True):
        if key in first:
            raise ValueError(
                f"the categories {plain(first[key])!r} and {plain(value)!r} are {same}, so that an "
                "exported model could not tell them apart: fit the model with categories that are "
                f"different texts{instead}."
            )
        first[key] = value


def _known_codes(graph: Graph, place: str, found: str, dtype: Any) -> str:
    return graph.add("Where", found, graph.cast(place, dtype), graph.constant(np.nan, dtype))


def _text(value: Any) -> str:
    """How a category is written that stands among texts."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)
