"""Plain data and small models that cases start from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from numpy.typing import NDArray

import badacost

COSTS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [1.0, 4.0, 0.0]])
_SMALL: dict[str, Any] = {"n_estimators": 3, "max_depth": 2, "random_state": 0}
# What makes a fit of each class short.
ESTIMATORS: Mapping[str, dict[str, Any]] = {
    "AdaBoostM1Classifier": _SMALL,
    "AdaC2M1Classifier": _SMALL,
    "BAdaCostClassifier": _SMALL,
    "CSAdaBoostClassifier": _SMALL,
    "CostBoostClassifier": {**_SMALL, "n_folds": 2, "early_stopping": False},
    "CostGeneralizedAdaBoostClassifier": _SMALL,
    "CostSensitiveTreeClassifier": {"max_depth": 3, "random_state": 0},
    "ImportedForestClassifier": {},
    "LpCSBClassifier": _SMALL,
    "MinimumCostClassifier": {"cv": 2, "random_state": 0},
    "PIBoostClassifier": _SMALL,
    "SAMMEClassifier": _SMALL,
    "WangMultiBoostClassifier": {**_SMALL, "n_pool": 6},
}
_BINARY = ("CSAdaBoostClassifier", "CostGeneralizedAdaBoostClassifier")


def n_classes_of(name: str) -> int:
    """Return how many classes plain samples for a class have."""
    return 2 if name in _BINARY else 3


def new_estimator(name: str, **options: Any) -> Any:
    """Return an estimator that fits in milliseconds."""
    if name == "ImportedForestClassifier":
        inner = LGBMClassifier(
            n_estimators=2, max_depth=2, min_child_samples=1, n_jobs=1, verbose=-1, random_state=0
        )
        options = {"estimator": inner, **options}
    elif name == "MinimumCostClassifier":
        options = {"estimator": new_estimator("SAMMEClassifier"), **options}
    return getattr(badacost, name)(**{**ESTIMATORS[name], **options})


def takes_costs(name: str) -> bool:
    """Return whether a class has a cost matrix."""
    return "cost_matrix" in new_estimator(name).get_params()


def saved(model: Any) -> bytes:
    """Return the file of a fitted model."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "m.badacost")
        model.save(path)
        return path.read_bytes()


def samples(n_rows: int = 60, n_classes: int = 3) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return samples of four features, the third of them a category, and their classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 4)) + y[:, None]
    X[:, 2] = (y + rng.integers(2, size=n_rows)) % 4
    X[::7, 3] = np.nan
    return X, y


def frame() -> tuple[pd.DataFrame, pd.Series[str]]:
    """Return a table with a column of each type, and the classes of its rows."""
    X, y = samples()
    table = pd.DataFrame(
        {
            "size": X[:, 0],
            "count": X[:, 2].astype(int),
            "kind": np.array(["red", "green", "blue", "a, b"])[X[:, 2].astype(int)],
            "flag": X[:, 1] > 1,
            "day": pd.date_range("2024-01-01", periods=len(X)),
        }
    )
    return table, pd.Series(np.array(["low", "middle", "high"])[y], name="class")


def pixels(height: int = 40, width: int = 56) -> NDArray[np.uint8]:
    """Return a picture in colour."""
    rows, columns = np.mgrid[:height, :width]
    planes = [rows * 5, columns * 4, (rows - 20) ** 2 + (columns - 28) ** 2]
    return np.stack(planes, axis=2).astype(np.uint8)
