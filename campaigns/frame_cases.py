"""Data frames with columns of any type and name, for what encodes and classifies tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from sklearn.linear_model import LogisticRegression

import badacost
from badacost.tabular import TableClassifier, TableEncoder
from campaigns.cases import Case, Kind
from campaigns.child import Broken
from campaigns.mutations import Edit
from campaigns.plain import ESTIMATORS, n_classes_of, new_estimator
from campaigns.table_cases import ARROW_COLUMNS, N_ROWS

_MAX_EDITS = 5
_NUMBER = np.arange(N_ROWS)
_COLUMNS: Mapping[str, Callable[[], Any]] = {
    "ordered": lambda: pd.Categorical(["b", "a", None] * (N_ROWS // 3), ["b", "a"], ordered=True),
    "numbers as categories": lambda: pd.Categorical(_NUMBER % 3),
    "no categories": lambda: pd.Categorical([None] * N_ROWS),
    "mixed": lambda: pd.Series([1, "a", None, 2.5, True, b"x"] * (N_ROWS // 6), dtype=object),
    "objects": lambda: pd.Series([object() for _ in _NUMBER]),
    "lists": lambda: pd.Series([[1], {}] * (N_ROWS // 2)),
    "big integers": lambda: pd.Series([10**400, -(10**30)] * (N_ROWS // 2), dtype=object),
    "complex": lambda: _NUMBER.astype(complex),
    "long double": lambda: _NUMBER.astype(np.longdouble),
    "period": lambda: pd.period_range("2024-01", periods=N_ROWS, freq="M"),
    "interval": lambda: pd.interval_range(0, N_ROWS),
    "zone": lambda: pd.date_range("2024", periods=N_ROWS, tz="Europe/Madrid"),
    "far dates": lambda: np.array(["0001-01-01", "9999-12-31"] * (N_ROWS // 2), "datetime64[s]"),
    "no date": lambda: pd.Series([pd.NaT] * N_ROWS),
    "difference": lambda: pd.to_timedelta(_NUMBER, unit="D"),
    "sparse": lambda: pd.arrays.SparseArray(_NUMBER % 2),
    "Int64": lambda: pd.array([1, None] * (N_ROWS // 2), dtype="Int64"),
    "boolean": lambda: pd.array([True, None] * (N_ROWS // 2), dtype="boolean"),
    "string": lambda: pd.array(["a", None, ""] * (N_ROWS // 3), dtype="string"),
    "surrogates": lambda: pd.Series(["\ud800", "\0"] * (N_ROWS // 2), dtype=object),
    "infinite": lambda: np.where(_NUMBER % 2, np.inf, -np.inf),
}
_NAMES: tuple[Any, ...] = ("a", "b", "number", "class", "", 0, 1.5, None, ("a", "b"), np.nan, True)
_LOW = {"low": {"high": 1.0}, "high": {"low": 5.0}}
_HALVES = ["low", "high"] * (N_ROWS // 2)
_OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "estimator": (
        *(new_estimator(name) for name in ESTIMATORS if n_classes_of(name) == 3),
        LogisticRegression(), LogisticRegression, "x", 3, TableClassifier(),
    ),
    "cost_matrix": (
        _LOW, {"low": {}}, {"x": {"y": 1.0}, "y": {"x": 1.0}}, [[0, 1], [5, 0]], pd.DataFrame(_LOW),
        [[0, np.nan], [1, 0]], "x", np.eye(2), np.zeros((3, 3)),
    ),
    "decision": ("bayes", "own", "x", None, 1),
    "drop": (
        ("a",), "number", ["unknown"], [0], None, ["a", "a"], ["number", "a", "b"], np.array(["a"]),
        [["a"]], 3, ["class"],
    ),
    "y": (
        "unknown", "number", "a", None, 3, _HALVES, _NUMBER, pd.Categorical(_HALVES), [], "",
    ),
    "weight": (np.ones(N_ROWS), np.zeros(N_ROWS), -np.ones(N_ROWS), "a", [1.0], _NUMBER % 2),
    "index": ([0] * N_ROWS, _NUMBER[::-1], [np.nan] * N_ROWS, [str(n) for n in _NUMBER]),
}  # fmt: skip


def _column(kind: str, seed: int) -> Any:
    if kind in _COLUMNS:
        return _COLUMNS[kind]()
    return ARROW_COLUMNS[kind](np.random.default_rng(seed)).to_pandas().to_numpy()


def _changed(case: Case) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table, and what else is given."""
    given: dict[str, Any] = {"estimator": new_estimator("BAdaCostClassifier")}
    columns: list[tuple[Any, Any]] = [("class", _HALVES), ("number", _NUMBER)]
    for name, which, seed in case.edits:
        if name in _OPTIONS:
            given[name] = _OPTIONS[name][which % len(_OPTIONS[name])]
        else:
            # What pandas says of the change itself.
            with warnings.catch_warnings(action="ignore"), suppress(Exception):
                columns.append((_NAMES[which % len(_NAMES)], pd.Series(_column(name, seed))))
    table = pd.concat([pd.Series(values) for _, values in columns], axis=1)
    table.columns = pd.Index([name for name, _ in columns], tupleize_cols=False)
    if "index" in given:
        table.index = pd.Index(given.pop("index"))
    return table, given


class Frames(Kind):
    """Encoders and classifiers of tables: a loaded model predicts as the one that was saved."""

    name = "frame"

    def build(self) -> Mapping[str, Any]:
        """Return the classes, whose kernels are loaded now."""
        found = {"TableClassifier": _classify, "TableEncoder": _encode}
        table, given = _changed(Case("", []))
        for run in found.values():
            run(table, dict(given), None)
        return found

    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw columns, parameters, labels and weights."""
        names = [*_COLUMNS, *ARROW_COLUMNS]
        chosen = [
            str(rng.choice(list(_OPTIONS) if rng.random() < 0.4 else names))
            for _ in range(rng.integers(1, _MAX_EDITS))
        ]
        return [[name, *map(int, rng.integers(2**31, size=2))] for name in chosen]

    def run(self, case: Case, folder: Path) -> None:
        """Fit, and check what comes of it."""
        self.bases[case.base](*_changed(case), folder)


def _encode(table: pd.DataFrame, given: dict[str, Any], folder: Path | None) -> None:
    encoder = TableEncoder(drop=given.get("drop", ()))
    features = encoder.fit_transform(table)
    if not np.array_equal(encoder.transform(table), features, equal_nan=True):
        raise Broken("the table that was fitted has other features afterwards")


def _classify(table: pd.DataFrame, given: dict[str, Any], folder: Path | None) -> None:
    y, weight = given.pop("y", "class"), given.pop("weight", None)
    model = TableClassifier(**given).fit(table, y, weight)
    predicted = model.predict(table)
    if not np.isin(predicted, model.classes_).all():
        raise Broken("a prediction is no class")
    if hasattr(model, "predict_proba") and not np.isfinite(model.predict_proba(table)).all():
        raise Broken("a probability is not finite")
    if folder is not None:
        model.save(folder / "m.badacost")
        if not np.array_equal(badacost.load(folder / "m.badacost").predict(table), predicted):
            raise Broken("the loaded model predicts something else")


FRAME_KINDS = (Frames(),)
