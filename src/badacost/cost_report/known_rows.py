"""Rows that a model knows from its training, on which its decisions look cheap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MANY = 0.1  # of the rows; a few may be twins of others


def count_known(
    features: Any, truth: NDArray[np.intp], training: Any, training_truth: NDArray[np.intp]
) -> int | None:
    """Count the rows that are among those of the training, with the same class.

    Parameters
    ----------
    features, training : array-like of shape (n_rows, n_features)
        Rows, and those of the training.
    truth, training_truth : ndarray of shape (n_rows,)
        Positions of their classes.

    Returns
    -------
    int or None
        How many; None where features are not numbers.

    Examples
    --------
    >>> import numpy as np
    >>> classes = np.array([0, 1])
    >>> count_known([[1.0, np.nan], [2.0, 3.0]], classes, [[1, np.nan], [2, 2]], classes)
    1
    """
    try:
        rows, known = (np.asarray(part, dtype=np.float64) for part in (features, training))
    except (TypeError, ValueError):
        return None

    def keys(values: Any, labels: NDArray[np.intp]) -> list[tuple[bytes, int]]:
        return [(row.tobytes(), int(k)) for row, k in zip(values, labels, strict=True)]

    seen = set(keys(known, training_truth))
    return sum(key in seen for key in keys(rows, truth))


def known_rows_remark(model: Any, n_rows: int, n_known: int | None = None) -> str | None:
    """Return a sentence for those who try a model on the rows of its training.

    Parameters
    ----------
    model : classifier
        The model; one that has ``n_rows_`` knows how many rows it was fitted to.
    n_rows : int
        Number of rows that it is tried on.
    n_known : int, optional
        How many of these are rows of the training, if somebody counted.

    Returns
    -------
    str or None
        The sentence; None where there is no reason for it.

    Examples
    --------
    >>> known_rows_remark(None, 100, 90)
    'the model was fitted to 90 of these 100 rows: on rows that it knows, decisions look cheap.'
    >>> known_rows_remark(None, 100, 2)
    """
    if n_known is not None:
        if n_known < _MANY * n_rows:
            return None
        fitted_to = f"{n_known:,} of these {n_rows:,} rows"
    elif n_rows == getattr(model, "n_rows_", None):
        fitted_to = "as many rows"
    else:
        return None
    return f"the model was fitted to {fitted_to}: on rows that it knows, decisions look cheap."
