"""Saving and loading fitted models, without pickle.

What a model consists of is taken apart into JSON and plain arrays here; `badacost.model_file` is
the file they go into. A rebuilt model has passed the same checks as a new one: parameters, costs,
and every index of its trees.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from badacost.costs.matrix import as_cost_matrix, plain
from badacost.model_file import (
    MAX_BYTES,
    ModelFile,
    ModelFileError,
    describe,
    read_model,
    refuse,
    write_model,
)
from badacost.tree.forest import Forest

_MAX_LABEL_BYTES = 2**27
_LABEL_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_LABEL_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|U[1-9][0-9]{0,7}|object")
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
}
_MODULES = {
    "AdaBoostM1Classifier": "badacost.boosting.adaboost_m1",
    "AdaC2M1Classifier": "badacost.boosting.adac2m1",
    "BAdaCostClassifier": "badacost.boosting.badacost",
    "CSAdaBoostClassifier": "badacost.boosting.cs_adaboost",
    "CostGeneralizedAdaBoostClassifier": "badacost.boosting.cost_generalized",
    "CostSensitiveTreeClassifier": "badacost.tree.classifier",
    "Detector": "badacost.detection.detector",
    "LpCSBClassifier": "badacost.boosting.lp_csb",
    "PIBoostClassifier": "badacost.boosting.piboost",
    "SAMMEClassifier": "badacost.boosting.samme",
    "TableClassifier": "badacost.tabular.classifier",
    "WangMultiBoostClassifier": "badacost.boosting.wang_multiboost",
}
# What checks raise on contents that make no model.
_REBUILDING_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model that was saved by `badacost`.

    Parameters
    ----------
    path : str or path-like
        The model file. It may come from anyone: nothing in it is executed.
    max_bytes : int, default=2**31
        Refuse a file whose contents are larger than this.

    Returns
    -------
    estimator
        The fitted model, of the class that was saved.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        Where the file is not a model of this library, or not one that it wrote.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import badacost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["ham", "ham", "spam", "spam"]
    >>> model = badacost.BAdaCostClassifier({"ham": {"spam": 5}, "spam": {"ham": 1}}).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "mail.badacost"))
    ...     again = badacost.load(Path(folder, "mail.badacost"))
    >>> again.predict([[0.0], [5.0]])
    array(['ham', 'spam'], dtype='<U4')
    """
    model = read_model(path, max_bytes=max_bytes)
    if model.kind not in _MODULES:
        raise ModelFileError(
            f"{describe(path)} holds a model of the unknown kind {model.kind[:80]!r}: "
            f"this badacost loads {', '.join(_MODULES)}."
        )
    try:
        return _class_of(model.kind)._from_model_file(model)
    except _REBUILDING_ERRORS as error:
        raise ModelFileError(f"{describe(path)} is damaged or was altered: {error}") from error


def saved_kind(path: str | os.PathLike[str]) -> str | None:
    """Return the name of the class of a saved model, without rebuilding the model.

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
        return read_model(path).kind
    except (ModelFileError, OSError):
        return None


def forest_model_from_file(model: ModelFile) -> Any:
    """Rebuild a classifier of trees that is a part of another model.

    Parameters
    ----------
    model : ModelFile
        What `SavedForest` saved.

    Returns
    -------
    classifier
        The fitted classifier.

    Raises
    ------
    ModelFileError
        Where the kind is none of such a classifier.
    """
    cls = _class_of(model.kind) if model.kind in _MODULES else None
    if not (isinstance(cls, type) and issubclass(cls, SavedForest)):
        refuse(f"its classifier is of the kind {model.kind[:80]!r}")
    return cls._from_model_file(model)


def _class_of(kind: str) -> Any:
    """Return the class of a known kind of model."""
    return getattr(import_module(_MODULES[kind]), kind)


class SavedForest:
    """Saving for classifiers that consist of a forest, classes and costs.

    A class names the parameters that no file can hold in `_unsaved`. What it saves besides comes
    from `_extra_header` and `_extra_arrays`, under `_extra_names`, and is read in `_restore`.
    """

    _unsaved: ClassVar[tuple[str, ...]] = ()
    _extra_names: ClassVar[tuple[str, ...]] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `badacost.load` reads.

        The file holds arrays and JSON, no pickle. Costs are saved in the order of ``classes_``;
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
        model = self._to_model_file()
        write_model(path, model.kind, model.header, model.arrays)

    def _to_model_file(self) -> ModelFile:
        """Return what a file holds of the model, once it was seen to come back from it."""
        check_is_fitted(self)
        model: Any = self
        kind = type(self).__name__
        if kind not in _MODULES or _class_of(kind) is not type(self):
            raise TypeError(f"{kind} is not a class that badacost.load knows: use joblib.dump.")
        if not hasattr(model, "forest_"):
            raise TypeError("save needs the built-in tree: use joblib.dump for other estimators.")
        header = {
            "parameters": _parameters_to_json(model, self._saved_parameters()),
            "classes": labels_to_json(model.classes_),
            "costs_given": getattr(model, "cost_matrix", None) is not None,
            **self._extra_header(),
        }
        if hasattr(model, "feature_names_in_"):
            header["feature_names"] = labels_to_json(model.feature_names_in_)
        arrays = {
            "cost_matrix": model.cost_matrix_,
            **forest_to_arrays(model.forest_),
            **self._extra_arrays(),
        }
        contents = ModelFile(kind, header, arrays, "")
        try:  # parameters may have changed since the fit
            self._from_model_file(contents)
        except _REBUILDING_ERRORS as error:
            raise ValueError(f"this model could not be loaded again: {error}") from error
        return contents

    @classmethod
    def _saved_parameters(cls) -> list[str]:
        """Names of the parameters that a file holds as JSON."""
        named: Any = cls
        return [
            name for name in named._get_param_names() if name not in ("cost_matrix", *cls._unsaved)
        ]

    @classmethod
    def _from_model_file(cls, model: ModelFile) -> Self:
        """Rebuild a model from the checked contents of a file."""
        header, arrays = model.header, model.arrays
        cls._check_names(model)
        classes = labels_from_json(header["classes"])
        if not np.array_equal(np.unique(classes), classes):
            refuse("its classes are not distinct and sorted")
        costs = as_cost_matrix(arrays["cost_matrix"], classes)
        rebuilt: Any = cls(**header["parameters"])
        check_random_state(rebuilt.random_state)
        if header["costs_given"]:
            rebuilt.cost_matrix = costs.copy()
        rebuilt.classes_, rebuilt.cost_matrix_ = classes, costs
        rebuilt.forest_ = forest_from_arrays(arrays)
        rebuilt.n_features_in_ = rebuilt.forest_.n_features
        if rebuilt.forest_.table.shape[1] != len(classes):
            refuse("its trees do not have a score for each class")
        if "feature_names" in header:
            names = rebuilt.feature_names_in_ = labels_from_json(header["feature_names"])
            if len(names) != rebuilt.n_features_in_:
                refuse("it does not have a name for each feature")
            if names.dtype != object or not all(isinstance(name, str) for name in names):
                refuse("the names of its features are not strings")
        rebuilt._restore(model)
        return rebuilt

    @classmethod
    def _check_names(cls, model: ModelFile) -> None:
        """Refuse contents that are missing or that no model of the class has."""
        needed = {"parameters", "classes", "costs_given", "cost_matrix", *cls._extra_names}
        needed |= {f"forest_{name}" for name in _FOREST_ARRAYS}
        found = {*model.header, *model.arrays}
        wrong = sorted((found - {"feature_names"}) ^ needed)
        if wrong:
            refuse(f"it lacks or should not have {wrong[0][:80]!r}")
        if type(model.header["costs_given"]) is not bool:
            refuse("it does not say whether costs were given")
        named: Any = cls
        if model.header["costs_given"] and "cost_matrix" not in named._get_param_names():
            refuse("it has costs, which a model of its kind does not take")
        parameters = model.header["parameters"]
        if not isinstance(parameters, dict):
            refuse("its parameters have no names")
        unknown = sorted(set(parameters) - set(cls._saved_parameters()))
        if unknown:
            refuse(f"it has the unknown parameter {unknown[0][:80]!r}")

    def _extra_header(self) -> dict[str, Any]:
        return {}

    def _extra_arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, model: ModelFile) -> None:
        """Check the parameters and rebuild what is derived from them."""


def _parameters_to_json(estimator: Any, names: list[str]) -> dict[str, Any]:
    """Return parameters of the constructor, numpy numbers as Python ones."""
    parameters = {name: plain(getattr(estimator, name)) for name in names}
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    return parameters


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


def labels_from_json(obj: Any) -> NDArray[Any]:
    """Return the labels that `labels_to_json` took apart.

    Parameters
    ----------
    obj : object
        What the file holds; anything.

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
    labels = np.empty(len(values), dtype=name)
    try:
        with np.errstate(over="ignore"):
            labels[:] = values
    except OverflowError as error:
        raise ModelFileError(f"the labels do not fit {name}") from error
    if labels.tolist() != values:
        refuse(f"the labels do not fit {name}")
    return labels


def forest_to_arrays(forest: Forest, prefix: str = "forest_") -> dict[str, NDArray[Any]]:
    """Return the arrays of a forest under their names in a model file."""
    return {
        prefix + name: np.asarray(getattr(forest, name), dtype=dtype)
        for name, (dtype, _) in _FOREST_ARRAYS.items()
    }


def forest_from_arrays(arrays: Mapping[str, NDArray[Any]], prefix: str = "forest_") -> Forest:
    """Rebuild a forest, every index of which is checked, from the arrays of a model file."""
    parts: dict[str, Any] = {}
    for name, (dtype, ndim) in _FOREST_ARRAYS.items():
        array = arrays.get(prefix + name)
        if array is None:
            refuse(f"the array {prefix + name} is missing")
        if array.dtype != dtype or array.ndim != ndim:
            refuse(f"the array {prefix + name} is not of {ndim} dimensions of {np.dtype(dtype)}")
        parts[name] = array
    # Columns are numbered in 32 bits.
    n_features = int(parts.pop("n_features"))
    if not 0 <= n_features < 2**31:
        refuse(f"the forest cannot have {n_features} features")
    try:
        return Forest(**parts, n_features=n_features)
    except (ValueError, IndexError) as error:
        raise ModelFileError(str(error)) from error


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
    if kind != "O" and np.dtype(name).itemsize * len(values) > _MAX_LABEL_BYTES:
        return f"{len(values)} labels of type {name} take more than {_MAX_LABEL_BYTES} bytes"
    return None
