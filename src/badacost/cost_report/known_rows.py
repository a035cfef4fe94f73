"""Rows that a model knows from its training, on which its decisions look cheap."""

from __future__ import annotations

from typing import Any

import numpy as np

from badacost._utils.arrays import Positions

_MANY = 0.1  # of the rows; a few may be duplicates


def count_known(
    features: Any, truth: Positions, training: Any, training_truth: Positions
) -> int | None:
    """Count the rows that are among those of the training, with the same class.

    Features have shape (n_rows, n_features); the result is None where they are not numbers.
    """
    try:
        rows, known = (np.asarray(part, dtype=np.float64) for part in (features, training))
    except (TypeError, ValueError):
        return None

    def keys(values: Any, labels: Positions) -> list[tuple[bytes, int]]:
        return [(row.tobytes(), int(k)) for row, k in zip(values, labels, strict=True)]

    seen = set(keys(known, training_truth))
    return sum(key in seen for key in keys(rows, truth))


def known_rows_remark(model: Any, n_rows: int, n_known: int | None = None) -> str | None:
    """Return a warning that a model is evaluated on rows of its training; None if it is not.

    `n_known` is how many of the rows are of the training, if they were counted; otherwise the
    ``n_rows_`` of the model, if it has that, is compared with `n_rows`.

    >>> known_rows_remark(None, 100, 90)
    'the model was fitted to 90 of these 100 rows: on rows that it knows, decisions look cheap.'
    >>> known_rows_remark(None, 100, 2)
    """
    if n_known is not None and n_known >= _MANY * n_rows:
        return (
            f"the model was fitted to {n_known:,} of these {n_rows:,} rows: on rows that it knows, "
            "decisions look cheap."
        )
    if n_known is None and n_rows == getattr(model, "n_rows_", None):
        return (
            f"the model was fitted to {n_rows:,} rows, too: if they are these, use others, since "
            "decisions on rows that it knows look cheap."
        )
    return None
