"""The column that a classifier is to predict: labels out of the cells of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.validation import category_order
from badacost.costs.matrix import plain
from badacost.tabular.columns import distinct_texts, kind_of, positions_of
from badacost.tabular.frames import import_pandas, place_of, suggestion

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = r"[+-]?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?"
_TRUTHS = {"true": True, "false": False}
_FEW_CLASSES = 20  # so many are never too many


def target_labels(values: pd.Series, name: str, order: Sequence[Any] | None = None) -> Any:
    """Return the labels of training data: booleans, integers or, as objects, texts.

    If they have an order, they are an ordered categorical: that of `order`, classes as text or as
    they are, or else that of the column. Classes that `order` does not name come last.

    A ValueError is raised where a label is missing, or the column is no class: it has fractions, or
    nearly as many different values as rows.

    >>> import pandas as pd
    >>> target_labels(pd.Series([2.0, 1.0, 2.0]), "grade")
    array([2, 1, 2])
    >>> target_labels(pd.Series(["high", "low"]), "grade", ["low", "high"]).categories.tolist()
    ['low', 'high']
    """
    pd = import_pandas()
    kind = kind_of(values)
    is_text = kind in ("string", "categorical", "mixed-integer", "mixed")
    cells = distinct_texts(values) if is_text else None
    n_missing = int(values.isna().sum() if cells is None else (cells.codes < 0).sum())
    if n_missing:
        raise ValueError(
            f"column {name!r:.80} has no class in {n_missing} of {len(values)} rows: fill them in, "
            "or leave these rows out."
        )
    labels: NDArray[Any]
    if cells is not None:
        labels = cells.texts.to_numpy(object)[cells.codes]
    elif kind == "boolean":
        labels = values.to_numpy(np.bool_)
    elif kind in ("integer", "floating", "mixed-integer-float"):
        try:
            numbers = values.to_numpy(np.float64)
        except OverflowError:  # of integers that Python keeps
            numbers = np.full(len(values), np.inf)
        labels = numbers.astype(np.int64) if (abs(numbers) < 2**53).all() else numbers
        if (labels != numbers).any() or labels.dtype == np.float64:
            raise ValueError(
                f"column {name!r:.80} has numbers with fractions, or too large for classes: cut "
                "the quantity into grades first."
            )
    else:
        raise ValueError(
            f"column {name!r:.80} holds values of kind {kind}, which are no classes: name another "
            "column as target."
        )
    n_classes = len(set(labels.tolist()))
    if n_classes < 2:
        raise ValueError(
            f"column {name!r:.80} has one class only, {plain(labels[0])!r:.80}: name another "
            "column as target, or add rows of other classes."
        )
    if n_classes > max(_FEW_CLASSES, len(labels) / 2):
        raise ValueError(
            f"column {name!r:.80} has {n_classes} different values in {len(labels)} rows, too many "
            "for classes: name another column as target, or cut a quantity into grades."
        )
    order = category_order(values) if order is None else order
    if order is None:
        return labels
    place = {str(plain(label)): position for position, label in enumerate(order)}
    classes = sorted(np.unique(labels).tolist(), key=lambda c: place.get(str(c), len(place)))
    return pd.Categorical(labels, categories=classes, ordered=True)


def known_labels(values: pd.Series, classes: Sequence[Any] | NDArray[Any], name: str) -> Any:
    """Return the labels of a column as the classes of a model, whatever their type in the table.

    A ValueError is raised where a label is missing or not known.

    >>> import pandas as pd
    >>> known_labels(pd.Series(["2", "1"]), [1, 2], "grade")
    array([2, 1])
    """
    known = [str(plain(label)) for label in classes]
    cells = distinct_texts(values)
    positions = np.append(positions_of(cells.texts, known), -1)[cells.codes]
    wrong = np.flatnonzero(positions < 0)
    if len(wrong):
        first = int(wrong[0])
        place = place_of(values, first)
        if cells.codes[first] < 0:
            raise ValueError(f"column {name!r:.80} has no class in {place}: fill it in.")
        text = cells.texts[cells.codes[first]]
        raise ValueError(
            f"column {name!r:.80} has the class {text!r:.80} in {place}, which the model "
            f"does not know: {suggestion(text, known)}"
        )
    return np.asarray(classes)[positions]


def classes_in_text(values: pd.Series) -> pd.Series:
    """Return the classes that texts of a file stand for: whole numbers, booleans, or the texts.

    They are numbers or booleans only if all texts are such: 01 is a name, no number.

    >>> import pandas as pd
    >>> classes_in_text(pd.Series(["1", "3"])).tolist(), classes_in_text(pd.Series(["01"])).tolist()
    ([1, 3], ['01'])
    """
    pd = import_pandas()
    if kind_of(values) != "string":
        return values
    texts = distinct_texts(values).texts
    if set(texts.str.lower()) <= _TRUTHS.keys():
        return values.str.strip().str.lower().map(_TRUTHS)
    return pd.to_numeric(values) if texts.str.fullmatch(_NUMBER).all() else values
