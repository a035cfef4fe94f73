"""Classifiers that consist of a forest, classes and costs, and their model files.

Arrays and headers come from files of users: all of them are checked here before a kernel uses them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost._utils.categorical_columns import CategoricalColumns
from badacost.costs import labelled_costs
from badacost.costs.decisions import CostDecisionMixin
from badacost.costs.matrix import plain, set_costs
from badacost.io.budget import UNLIMITED, Budget
from badacost.io.model_file import (
    ModelFile,
    ModelFileError,
    labels_from_json,
    labels_to_json,
    refuse,
    save_model,
)
from badacost.tree.forest import Forest

# Type and number of dimensions of the fields of Forest in a file.
_FOREST_ARRAYS: dict[str, tuple[DTypeLike, int]] = {
    **dict.fromkeys(["feature", "left", "value", "count", "category_set"], (np.int32, 1)),
    **dict.fromkeys(["threshold", "tree_weights", "categories"], (np.float64, 1)),
    **dict.fromkeys(["gain", "weight"], (np.float32, 1)),
    **dict.fromkeys(["offsets", "category_offsets"], (np.int64, 1)),
    "missing_left": (np.bool_, 1),
    "table": (np.float64, 2),
    "sets": (np.uint32, 2),
    "n_features": (np.int64, 0),
}
# Files of version 1, and forests without categories, lack these.
_OPTIONAL_ARRAYS = {"category_set", "sets", "categories", "category_offsets"}
# Peaks of memory, arrays included: checks of a node, checks of a score, importance of a feature.
_BYTES_OF_NODE, _BYTES_OF_SCORE, _BYTES_OF_FEATURE = 120, 10, 24
# What a pair of classes takes in all cost matrices at once, and in a mapping besides.
_BYTES_OF_COST, _BYTES_OF_NAMED_COST = 64, 200


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
        if array is None and name not in _OPTIONAL_ARRAYS:
            refuse(f"the array {prefix + name} is missing")
        if array is not None and (array.dtype != dtype or array.ndim != ndim):
            refuse(f"the array {prefix + name} is not of {ndim} dimensions of {np.dtype(dtype)}")
        parts[name] = array
    # Columns are numbered in 32 bits.
    n_features = int(parts.pop("n_features"))
    if not 0 <= n_features < 2**31:
        refuse(f"the forest cannot have {n_features} features")
    n_bytes = _BYTES_OF_NODE * len(parts["feature"]) + _BYTES_OF_SCORE * parts["table"].size
    budget.take(n_bytes + _BYTES_OF_FEATURE * n_features, f"a forest of {n_features} features")
    try:
        return Forest(**parts, n_features=n_features)
    except (ValueError, IndexError) as error:
        raise ModelFileError(str(error)) from error


class SavedClassifier(CostDecisionMixin, BaseEstimator):
    """Base of the classifiers with costs that go into a file.

    A class names the parameters that no file can hold in `_unsaved`.
    """

    _unsaved: ClassVar[tuple[str, ...]] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `badacost.load` reads.

        The file holds arrays and JSON, no pickle. Costs come back as a mapping by class;
        callbacks, splitters, and a random state that is not a number, are not saved. Boosters of
        other weak learners than the built-in tree, and minimum-cost decisions on classifiers of
        other libraries or with calibration by "sigmoid" or "isotonic", are for `joblib.dump`.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced once the new one is complete.

        Raises
        ------
        NotFittedError
            Where the model is not fitted.
        TypeError, ValueError
            Where a file could not hold the model, or would be refused by `badacost.load`.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> import badacost
        >>> X, y = load_iris(return_X_y=True)
        >>> model = badacost.SAMMEClassifier(n_estimators=5).fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(Path(folder, "iris.badacost"))
        ...     again = badacost.load(Path(folder, "iris.badacost"))
        >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        save_model(self, path)

    @classmethod
    def _saved_parameters(cls) -> list[str]:
        """Names of the parameters that a file holds as JSON."""
        unsaved = ("cost_matrix", "device", *cls._unsaved)  # a model is the same on any device
        return [name for name in signature(cls).parameters if name not in unsaved]

    def _header(self) -> dict[str, Any]:
        """Return parameters, classes, and whether costs were given."""
        check_is_fitted(self)
        model: Any = self
        parameters = {name: _for_json(getattr(model, name)) for name in self._saved_parameters()}
        if not isinstance(parameters.get("random_state", 0), int):
            parameters["random_state"] = None
        return {
            "parameters": parameters,
            "classes": labels_to_json(model.classes_),
            "costs_given": getattr(model, "cost_matrix", None) is not None,
        }

    @classmethod
    def _of_header(cls, model: ModelFile, **unsaved: Any) -> Any:
        """Return a classifier with the parameters, classes and costs of a file."""
        header = model.header
        unknown = sorted(set(header["parameters"]) - set(cls._saved_parameters()))
        if unknown:
            refuse(f"it has the unknown parameter {unknown[0][:80]!r}")
        classes = labels_from_json(header["classes"], model.budget)
        bytes_of_pair = _BYTES_OF_NAMED_COST if header["costs_given"] else _BYTES_OF_COST
        model.budget.take(bytes_of_pair * len(classes) ** 2, f"a model of {len(classes)} classes")
        if len(np.unique(classes)) < len(classes):
            refuse("its classes are not distinct")
        rebuilt: Any = cls(**unsaved, **header["parameters"])
        check_random_state(getattr(rebuilt, "random_state", None))
        rebuilt.classes_ = classes
        set_costs(rebuilt, model.arrays["cost_matrix"])
        if header["costs_given"]:
            rebuilt.cost_matrix = labelled_costs(rebuilt.cost_matrix_, classes)
        return rebuilt


def _for_json(value: Any) -> Any:
    """A parameter as Python objects, lists of columns included."""
    if isinstance(value, Collection) and not isinstance(value, str):
        return [plain(item) for item in value]
    return plain(value)


def columns_from_json(obj: Any, forest: Forest, model: ModelFile) -> CategoricalColumns:
    """Return the categorical columns of a file, whose codes must be those of its trees."""
    categories = {
        position: np.empty(0, object) if labels is None else labels_from_json(labels, model.budget)
        for position, labels in obj
    }
    are_columns = all(type(j) is int and 0 <= j < forest.n_features for j in categories)
    are_distinct = all(len(set(known.tolist())) == len(known) for known in categories.values())
    found = {j: len(known) for j, known in categories.items() if len(known)}
    limits, codes = forest.category_offsets, forest.categories
    sizes = np.diff(np.zeros(1, np.int64) if limits is None else limits)
    tested = {j: sizes[j] for j in np.flatnonzero(sizes)}
    expected = np.concatenate([np.empty(0), *map(np.arange, tested.values())])
    same_codes = np.array_equal(expected, [] if codes is None else codes)
    if not (are_columns and are_distinct and found == tested and same_codes):
        refuse("its trees do not test the categories that it has")
    return CategoricalColumns(categories)


def saved_floats(model: ModelFile, name: str, *shapes: tuple[int, ...]) -> FloatArray:
    """Return an array of floats that has one of the shapes."""
    array = model.arrays[name]
    if array.dtype != np.float64 or array.shape not in shapes:
        refuse(f"the array {name} does not hold floats of shape {shapes[0]}")
    return array


def saved_log_prior(model: ModelFile, n_classes: int) -> FloatArray:
    """Return the logarithms of the class probabilities before the first tree."""
    log_prior = saved_floats(model, "log_prior", (n_classes,))
    if not np.isfinite(log_prior).all():
        refuse("its prior probabilities are not finite")
    return log_prior
