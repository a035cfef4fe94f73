"""Model files of classifiers that consist of a forest, classes and costs."""

from __future__ import annotations

import os
from collections.abc import Collection
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from badacost.categorical_columns import CategoricalColumns
from badacost.costs import labelled_costs
from badacost.costs.matrix import plain
from badacost.model_file import ModelFile, refuse
from badacost.persistence import (
    REBUILDING_ERRORS,
    check_memory_of_costs,
    labels_from_json,
    labels_to_json,
    save_model,
)
from badacost.tree.forest import Forest
from badacost.tree.forest_arrays import forest_from_arrays, forest_to_arrays


class SavedForest:
    """Saving for classifiers that consist of a forest, classes and costs.

    A class names the parameters that no file can hold in `_unsaved`. What it saves besides comes
    from `_extra_header` and `_extra_arrays`, and is read in `_restore`.
    """

    _unsaved: ClassVar[tuple[str, ...]] = ()
    _columns: CategoricalColumns

    @property
    def _categorical_features(self) -> Any:
        """The parameter `categorical_features`, where it has a meaning."""
        model: Any = self
        return model.categorical_features

    @property
    def categories_(self) -> dict[Any, NDArray[Any]]:
        """Known categories of each categorical feature, by its name or position."""
        names = getattr(self, "feature_names_in_", None)
        known = self._columns.categories
        return {j if names is None else names[j]: values for j, values in known.items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `badacost.load` reads.

        The file holds arrays and JSON, no pickle. Costs come back as a mapping by class;
        callbacks, and a random state that is not a number, are left out. A booster of other
        weak learners than the built-in tree has no such file; `joblib.dump` takes it.

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

    def _to_model_file(self) -> ModelFile:
        """Return what a file holds of the model, once it was seen to come back from it."""
        check_is_fitted(self)
        model: Any = self
        if not hasattr(model, "forest_"):
            raise TypeError("save needs the built-in tree: use joblib.dump for other estimators.")
        parameters = {name: _for_json(getattr(model, name)) for name in self._saved_parameters()}
        if not isinstance(parameters.get("random_state", 0), int):
            parameters["random_state"] = None
        header = {
            "parameters": parameters,
            "classes": labels_to_json(model.classes_),
            "costs_given": getattr(model, "cost_matrix", None) is not None,
            **self._extra_header(),
        }
        if hasattr(model, "feature_names_in_"):
            header["feature_names"] = labels_to_json(model.feature_names_in_)
        if self._columns.categories:
            header["categories"] = [
                [position, labels_to_json(known) if len(known) else None]
                for position, known in self._columns.categories.items()
            ]
        arrays = {
            "cost_matrix": model.charged_costs_,
            **forest_to_arrays(model.forest_),
            **self._extra_arrays(),
        }
        contents = ModelFile(type(self).__name__, header, arrays)
        try:  # parameters may have changed since the fit
            self._from_model_file(contents)
        except REBUILDING_ERRORS as error:
            raise ValueError(f"this model could not be loaded again: {error}") from error
        return contents

    @classmethod
    def _saved_parameters(cls) -> list[str]:
        """Names of the parameters that a file holds as JSON."""
        unsaved = ("cost_matrix", "device", *cls._unsaved)  # a model is the same on any device
        return [name for name in signature(cls).parameters if name not in unsaved]

    @classmethod
    def _from_model_file(cls, model: ModelFile) -> Self:
        """Rebuild a model from the checked contents of a file."""
        header, arrays = model.header, model.arrays
        if not isinstance(header["parameters"], dict):
            refuse("its parameters have no names")
        unknown = sorted(set(header["parameters"]) - set(cls._saved_parameters()))
        if unknown:
            refuse(f"it has the unknown parameter {unknown[0][:80]!r}")
        classes = labels_from_json(header["classes"], model.budget)
        check_memory_of_costs(model, len(classes))
        if len(np.unique(classes)) < len(classes):
            refuse("its classes are not distinct")
        rebuilt: Any = cls(**header["parameters"])
        check_random_state(getattr(rebuilt, "random_state", None))
        rebuilt.classes_ = classes
        rebuilt._set_costs(arrays["cost_matrix"])
        if header["costs_given"]:
            rebuilt.cost_matrix = labelled_costs(rebuilt.charged_costs_, classes)
        rebuilt.forest_ = forest_from_arrays(arrays, budget=model.budget)
        rebuilt.n_features_in_ = rebuilt.forest_.n_features
        if rebuilt.forest_.table.shape[1] != len(classes):
            refuse("its trees do not have a score for each class")
        if "feature_names" in header:
            names = rebuilt.feature_names_in_ = labels_from_json(
                header["feature_names"], model.budget
            )
            if len(names) != rebuilt.n_features_in_:
                refuse("it does not have a name for each feature")
            if names.dtype != object or not all(isinstance(name, str) for name in names):
                refuse("the names of its features are not strings")
        rebuilt._columns = _columns_from_json(header.get("categories", []), rebuilt.forest_, model)
        rebuilt._restore(model)
        return rebuilt

    def _extra_header(self) -> dict[str, Any]:
        return {}

    def _extra_arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, model: ModelFile) -> None:
        """Check the parameters and rebuild what is derived from them."""


def _for_json(value: Any) -> Any:
    """A parameter as Python objects, lists of columns included."""
    if isinstance(value, Collection) and not isinstance(value, str):
        return [plain(item) for item in value]
    return plain(value)


def _columns_from_json(obj: Any, forest: Forest, model: ModelFile) -> CategoricalColumns:
    """Return the categorical columns of a file, whose codes must be those of its trees."""
    categories = {
        position: np.empty(0, object) if labels is None else labels_from_json(labels, model.budget)
        for position, labels in obj
    }
    columns = CategoricalColumns(categories)
    wanted, limits = forest.categories, forest.category_offsets
    if wanted is None or limits is None:  # they come together
        if categories:
            refuse("its trees do not test the categories that it has")
        return columns
    if not all(type(column) is int and 0 <= column < forest.n_features for column in categories):
        refuse("it has categories of features that it does not have")
    if any(len(set(known.tolist())) < len(known) for known in categories.values()):
        refuse("the categories of a feature are not distinct")
    codes = columns.codes()
    sizes = np.zeros(forest.n_features, np.int64)
    sizes[[*codes]] = [len(known) for known in codes.values()]
    known = np.concatenate([np.empty(0), *(codes[column] for column in sorted(codes))])
    if not (np.array_equal(sizes, np.diff(limits)) and np.array_equal(known, wanted)):
        refuse("its trees do not test the categories that it has")
    return columns


def saved_log_prior(model: ModelFile, n_classes: int) -> NDArray[np.float64]:
    """Read the logarithms of the class probabilities before the first tree."""
    log_prior = model.arrays["log_prior"]
    if log_prior.dtype != np.float64 or log_prior.shape != (n_classes,):
        refuse("it does not have a prior probability for each class")
    if not np.isfinite(log_prior).all():
        refuse("its prior probabilities are not finite")
    return log_prior
