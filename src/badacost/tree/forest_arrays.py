"""A forest as the arrays of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from badacost.budget import UNLIMITED, Budget
from badacost.model_file import ModelFileError, refuse
from badacost.tree.forest import Forest

# Name of the field of Forest: type and number of dimensions in a file.
_FOREST_ARRAYS: dict[str, tuple[DTypeLike, int]] = {
    "feature": (np.int32, 1),
    "threshold": (np.float64, 1),
    "left": (np.int32, 1),
    "missing_left": (np.bool_, 1),
    "value": (np.int32, 1),
    "gain": (np.float32, 1),
    "count": (np.int32, 1),
    "weight": (np.float32, 1),
    "offsets": (np.int64, 1),
    "tree_weights": (np.float64, 1),
    "table": (np.float64, 2),
    "n_features": (np.int64, 0),
    "category_set": (np.int32, 1),
    "sets": (np.uint32, 2),
    "categories": (np.float64, 1),
    "category_offsets": (np.int64, 1),
}
# Files of version 1, and forests without categories, lack these.
_OPTIONAL_ARRAYS = {"category_set", "sets", "categories", "category_offsets"}
# Peaks of memory, arrays included: checks of a node, checks of a score, importance of a feature.
_BYTES_OF_NODE, _BYTES_OF_SCORE, _BYTES_OF_FEATURE = 120, 10, 24


def forest_to_arrays(forest: Forest, prefix: str = "forest_") -> dict[str, NDArray[Any]]:
    """Return the arrays of a forest under their names in a model file."""
    return {
        prefix + name: np.asarray(getattr(forest, name), dtype=dtype)
        for name, (dtype, _) in _FOREST_ARRAYS.items()
        if getattr(forest, name) is not None
    }


def forest_from_arrays(
    arrays: Mapping[str, NDArray[Any]], prefix: str = "forest_", budget: Budget = UNLIMITED
) -> Forest:
    """Rebuild a forest, every index of which is checked, from the arrays of a model file."""
    parts: dict[str, Any] = {}
    for name, (dtype, ndim) in _FOREST_ARRAYS.items():
        array = arrays.get(prefix + name)
        if array is None:
            if name in _OPTIONAL_ARRAYS:
                continue
            refuse(f"the array {prefix + name} is missing")
        if array.dtype != dtype or array.ndim != ndim:
            refuse(f"the array {prefix + name} is not of {ndim} dimensions of {np.dtype(dtype)}")
        parts[name] = array
    # Columns are numbered in 32 bits.
    n_features = int(parts.pop("n_features"))
    if not 0 <= n_features < 2**31:
        refuse(f"the forest cannot have {n_features} features")
    budget.take(_BYTES_OF_FEATURE * n_features, f"a forest of {n_features} features")
    budget.take(
        _BYTES_OF_NODE * len(parts["feature"]) + _BYTES_OF_SCORE * parts["table"].size, "its forest"
    )
    try:
        return Forest(**parts, n_features=n_features)
    except (ValueError, IndexError) as error:
        raise ModelFileError(str(error)) from error
