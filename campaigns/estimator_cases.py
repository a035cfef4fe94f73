"""Every estimator on odd data: what is fitted keeps its promises, what is refused is told why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.random import Generator

import badacost
from badacost.explain import explain_decision, explain_scores
from badacost.export import to_onnx
from campaigns.cases import Case, Kind
from campaigns.child import Broken
from campaigns.mutations import Edit
from campaigns.plain import ESTIMATORS, n_classes_of, new_estimator, samples, takes_costs

_VALUES = (0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 5e-324, 2.0**53, 3e38)
_MAX_EDITS = 5


@dataclass
class Samples:
    """What is handed to `fit` and to `predict`; changes are made to it."""

    X: Any
    y: Any
    weight: Any = None
    costs: Any = None
    sample_costs: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """How many labels there are, two at least."""
        return max(len(set(map(repr, np.asarray(self.y, dtype=object).ravel()))), 2)


def _column(data: Samples, place: int, which: int) -> None:
    """Make a column constant, or nearly so."""
    n_rows, n_columns = data.X.shape
    number = np.arange(n_rows)
    value = _VALUES[which % len(_VALUES)]
    forms = (
        np.full(n_rows, value),
        np.where(number % 2, value, 1.0),
        np.where(number == 0, value, number),
        np.where(number % 3, value, np.nan),
        1.0 + number * 2.0**-52,
        np.logspace(-300, 300, n_rows),
    )
    data.X[:, place % n_columns] = forms[which // len(_VALUES) % len(forms)]


def _cells(data: Samples, seed: int, which: int) -> None:
    """Set some cells to an extreme number."""
    rng = np.random.default_rng(seed)
    data.X[rng.random(data.X.shape) < 0.05] = _VALUES[which % len(_VALUES)]


def _rows(data: Samples, place: int, which: int) -> None:
    """Keep few rows."""
    n_rows = (1, 2, 3, 4, 5, 10, 0, 200)[which % 8]
    data.X, data.y = np.resize(data.X, (n_rows, data.X.shape[1])), np.resize(data.y, n_rows)


def _columns(data: Samples, place: int, which: int) -> None:
    """Have few columns or many."""
    n_columns = (1, 2, 0, 300, 5)[which % 5]
    data.X = np.resize(data.X, (len(data.X), n_columns))


def _classes(data: Samples, place: int, which: int) -> None:
    """Have another number of classes, the last ones perhaps with one sample each."""
    n_classes = 1 + which % 20
    number = np.arange(len(data.y))
    data.y = number % n_classes if place % 2 else np.maximum(number - len(data.y) + n_classes, 0)


_LABELS: tuple[Callable[[Any], Any], ...] = (
    lambda y: [f"class {label}" for label in y],
    lambda y: np.array([f"é{label}\n" for label in y], dtype=object),
    lambda y: [label % 2 == 0 for label in y],
    lambda y: np.asarray(y, dtype=float) * 1e300,
    lambda y: np.asarray(y, dtype=float) + 0.5,
    lambda y: [-label * 2**61 for label in y],
    lambda y: [label + 2**64 for label in y],
    lambda y: [(label, "a", None)[label % 3] for label in y],
    lambda y: [label if label % 2 else str(label) for label in y],
    lambda y: [None if label == 1 else label for label in y],
    lambda y: [np.nan if label == 1 else float(label) for label in y],
    lambda y: [np.nan if label == 1 else str(label) for label in y],
    lambda y: [(label, 1) for label in y],
    lambda y: [{"a": label} for label in y],
    lambda y: [date(2024, 1, 1 + label % 28) for label in y],
    lambda y: np.array(y, "datetime64[D]"),
    lambda y: [Decimal(int(label)) for label in y],
    lambda y: [Fraction(int(label), 3) for label in y],
    lambda y: [b"%d" % label for label in y],
    lambda y: [complex(label) for label in y],
    lambda y: np.eye(3)[np.asarray(y) % 3],
    lambda y: np.asarray(y)[:, None],
    lambda y: pd.Series(y, dtype="category"),
    lambda y: pd.Series([f"c{label}" for label in y], dtype="string"),
    lambda y: pd.Series(y, dtype="Int64").mask(pd.Series(y) == 1),
    lambda y: np.asarray(y)[:-1],
    lambda y: "text",
    lambda y: None,
    lambda y: [object() for _ in y],
    lambda y: [[label] * (label % 3) for label in y],
)


def _labels(data: Samples, place: int, which: int) -> None:
    """Give the classes other names."""
    data.y = _LABELS[which % len(_LABELS)]([int(label) for label in data.y])


def _weights(data: Samples, place: int, which: int) -> None:
    """Give odd weights."""
    n_rows = len(data.X)
    number = np.arange(n_rows)
    forms: tuple[Any, ...] = (
        np.zeros(n_rows),
        np.where(number % 3 == 0, 0.0, 1.0),  # a class without weight
        np.where(number == 0, 1.0, 0.0),
        np.full(n_rows, 1e-320),
        np.full(n_rows, 1e305),
        np.full(n_rows, 1e308),
        np.logspace(-300, 300, n_rows),
        np.where(number == 0, -1.0, 1.0),
        np.where(number == 0, np.nan, 1.0),
        np.where(number == 0, np.inf, 1.0),
        np.ones(n_rows + 1),
        np.ones((n_rows, 1)),
        number % 2 == 0,
        ["1"] * n_rows,
        [None] * n_rows,
        3.0,
        np.ones(n_rows, complex),
        number.astype(object),
    )
    data.weight = forms[which % len(forms)]


def _costs(data: Samples, place: int, which: int) -> None:
    """Give odd costs."""
    n_classes = data.n_classes
    plain = 1.0 - np.eye(n_classes)
    odd = np.random.default_rng(place).uniform(0.5, 2.0, plain.shape) * plain
    free = plain.copy()
    free[0] = 0.0
    forms: tuple[Any, ...] = (
        odd,
        odd * 1e299,
        odd * 1e-300,
        odd * 1e-320,
        odd ** np.random.default_rng(place).integers(-300, 300, plain.shape),
        np.logspace(-290, 290, plain.size).reshape(plain.shape) * plain,
        plain * 0,
        free,
        -plain,
        np.where(plain > 0, np.nan, 0),
        np.where(plain > 0, np.inf, 0),
        odd + 10 * np.eye(n_classes),
        odd + 0.1 * np.eye(n_classes),
        np.ones((n_classes, n_classes + 1)),
        np.ones(n_classes),
        odd.astype(object),
        np.full(plain.shape, "1"),
        plain.astype(bool),
        plain.astype(np.float16) * 60000,
        [[Decimal(1)] * n_classes] * n_classes,
        {0: {1: 1.0}, 1: {0: 2.0}},
        {"a": 1},
        [[None] * n_classes] * n_classes,
        scipy.sparse.csr_array(plain),
        np.triu(plain),
        3.0,
        "text",
        pd.DataFrame(odd),
        {None: {}},
    )
    data.costs = forms[which % len(forms)]


def _sample_costs(data: Samples, place: int, which: int) -> None:
    """Give each sample odd prices of its own."""
    n_rows, n_classes = len(data.X), data.n_classes
    plain = np.random.default_rng(place).uniform(0.5, 2.0, (n_rows, n_classes))
    plain[np.arange(n_rows), np.asarray(data.y, dtype=int) % n_classes] = 0.0
    first = np.arange(n_rows)[:, None] == 0
    forms: tuple[Any, ...] = (
        plain,
        np.stack([plain] * n_classes, axis=1),
        plain * 1e299,
        plain * 1e-320,
        plain * np.logspace(-290, 290, n_rows)[:, None],
        plain * 0,
        plain * ~first,
        plain + 1.0,
        np.where(first, np.nan, plain),
        np.where(first, np.inf, plain),
        -plain,
        plain[:-1],
        plain[:, :-1],
        plain[:, 0],
        plain.astype(object),
        plain.astype(str),
        pd.DataFrame(plain),
        pd.DataFrame(plain)[list(range(n_classes))[::-1]],
        pd.DataFrame(plain).add_prefix("c"),
        scipy.sparse.csr_array(plain),
        plain.tolist(),
        3.0,
        "text",
    )
    data.sample_costs = forms[which % len(forms)]


def _form(data: Samples, place: int, which: int) -> None:
    """Hand over the samples in another form."""
    X = data.X
    forms: tuple[Callable[[], Any], ...] = (
        lambda: scipy.sparse.csr_array(X),
        lambda: scipy.sparse.csc_matrix(X),
        lambda: scipy.sparse.coo_array(X),
        lambda: X.tolist(),
        lambda: pd.DataFrame(X),
        lambda: pd.DataFrame(X).add_prefix("f"),
        lambda: pd.DataFrame(X).astype("Float64"),
        lambda: pd.DataFrame(X, columns=["a"] * X.shape[1]),
        lambda: pd.DataFrame(X).astype("category"),
        lambda: pd.DataFrame(X).astype(str).astype("category"),
        lambda: X.astype(np.float32),
        lambda: X.astype(np.float16),
        lambda: np.nan_to_num(X, posinf=9.0, neginf=-9.0).clip(-9, 9).astype(np.int8),
        lambda: X.astype(object),
        lambda: X.astype(str),
        lambda: X > 0,
        lambda: np.asfortranarray(X),
        lambda: X[::-1, ::-1],
        lambda: np.ma.masked_invalid(X),
        lambda: X.astype(complex),
        lambda: X[None],
        lambda: X[0],
        lambda: X.astype(">f8"),
        lambda: X.astype(np.longdouble),
        lambda: np.full(X.shape, None),
        lambda: [[{}] * X.shape[1]] * len(X),
    )
    # What numpy and pandas say of the change itself.
    with warnings.catch_warnings(action="ignore"), suppress(Exception):
        data.X = forms[which % len(forms)]()


_OPTIONS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("n_estimators", (1, 20, 0, -1, 1.5, "a", None, True)),
    ("learning_rate", (1e-300, 1.0, 0.0, -1.0, np.nan, np.inf, 1e300, "a")),
    ("max_depth", (None, 1, 30, 0, -1, 2.5, 2**40)),
    ("max_leaf_nodes", (None, 2, 3, 1, 0, -5, 2**40)),
    ("min_samples_split", (2, 1000, 1, 0, 0.5)),
    ("min_samples_leaf", (1, 20, 1000, 0, -1)),
    ("max_features", (0.01, "sqrt", "log2", 1, 0, 2.0, "x", None, np.nan)),
    ("max_bins", (2, 3, 256, 1, 257, 2.0)),
    ("binning", ("exact", "uniform", "quantile", "x", None)),
    ("categorical_features", ([2], [0, 1, 2, 3], [True, False, True, False], [-1], ["f0"], [9],
                              "from_dtype", None, "x", [0, 0], [0.5])),
    ("subsample", (0.5, 0.01, 1e-300, 0.0, 2.0, np.nan)),
    ("early_stopping", (True, False, 1, "x")),
    ("validation_fraction", (0.5, 0.999, 1e-9, 5, 0, 1.0, 10**9)),
    ("n_iter_no_change", (1, 0, 10**9)),
    ("tol", (0.0, 1e300, -1.0, np.nan)),
    ("warm_start", (True, "x")),
    ("criterion", ("entropy", "x")),
    ("decision", ("bayes", "x")),
    ("cost_scale", (None, "reference", 1e-300, 1e300, 0.0, "x")),
    ("n_refinements", (2, -1)),
    ("scoring", ("loss", "x")),
    ("n_jobs", (None, 2, 0, -1, 10**9, "x")),
    ("random_state", (1, None, -1, "x", 2**32)),
    ("device", ("cpu", "x")),
    ("verbose", (0, -1, "x")),
    ("tree", ("symmetric", "best_first", "x")),
    ("n_folds", ("auto", 2, 5, 1, 0, 1000)),
    ("min_hessian", (0.0, 1e300, -1.0)),
    ("l2", (0.0, 1e-300, 1e300, -1.0, np.nan)),
    ("n_directions", (1, 2, 50, 0)),
    ("p", ("auto", 1.0, 2.0, 1e300, 0.5, np.nan)),
    ("step", ("line_search", "x")),
    ("n_pool", (1, 0, 3)),
    ("sample_shares", ((0.5,), (), (2.0,), (1e-9, 1.0), "x")),
    ("subsets", (1, 2, 3, 0, 100)),
    ("estimator", ("x", 3)),
    ("calibration", ("temperature", "sigmoid", "isotonic", "x", None)),
    ("cv", (None, 2, 50, 1, 0, "x", [], [([0, 1], [2])])),
)  # fmt: skip


def _option(data: Samples, place: int, which: int) -> None:
    """Set a parameter; one that a class does not have is left out."""
    name, values = _OPTIONS[place % len(_OPTIONS)]
    data.options[name] = values[which % len(values)]


_CHANGES: Mapping[str, Callable[[Samples, int, int], None]] = {
    "rows": _rows,
    "columns": _columns,
    "classes": _classes,
    "column": _column,
    "cells": _cells,
    "sample costs": _sample_costs,
    "labels": _labels,
    "weights": _weights,
    "costs": _costs,
    "option": _option,
    "form": _form,
}
_ORDER = list(_CHANGES)  # forms come last: what is changed before is an array


def changed(data: Samples, case: Case) -> Samples:
    """Make the changes of a case; those that others before leave no place for are left out."""
    unfit = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
    with np.errstate(all="ignore"):
        for name, place, which in case.edits:
            with suppress(*unfit):
                _CHANGES[name](data, place, which)
    return data


class Estimators(Kind):
    """Fits of every estimator: valid labels, probabilities that sum to one, the same when saved."""

    name = "estimator"

    def build(self) -> Mapping[str, Any]:
        """Return the names of the classes, whose kernels are loaded now."""
        for name in ESTIMATORS:
            X, y = samples(n_classes=n_classes_of(name))
            _check(new_estimator(name).fit(X, y), X, None)
        return dict.fromkeys(ESTIMATORS)

    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw some changes of the data and of parameters."""
        names = rng.choice(_ORDER, size=int(rng.integers(1, _MAX_EDITS)))
        return sorted(
            ([str(name), *map(int, rng.integers(2**31, size=2))] for name in names),
            key=lambda edit: _ORDER.index(edit[0]),
        )

    def run(self, case: Case, folder: Path) -> None:
        """Fit, and check what comes of it."""
        data = changed(Samples(*samples(n_classes=n_classes_of(case.base))), case)
        model = new_estimator(case.base)
        known = model.get_params()
        options = {name: value for name, value in data.options.items() if name in known}
        if data.costs is not None and takes_costs(case.base):
            options["cost_matrix"] = data.costs
        model.set_params(**options)
        if data.sample_costs is not None and case.base == "BAdaCostClassifier":
            model.fit(data.X, data.y, data.weight, sample_cost=data.sample_costs)
        else:
            model.fit(data.X, data.y, data.weight)
        _check(model, data.X, folder)
        _check_explained(model, data.X)


def _check(model: Any, X: Any, folder: Path | None) -> None:
    """Raise where a fitted model does not keep what is promised."""
    predicted = model.predict(X)
    if not np.isin(predicted, model.classes_).all():
        raise Broken("a prediction is no class")
    if hasattr(model, "predict_proba"):
        probability = model.predict_proba(X)
        if not (np.isfinite(probability).all() and (probability >= 0).all()):
            raise Broken("a probability is no number from 0 to 1")
        if not np.allclose(probability.sum(axis=1), 1.0):
            raise Broken("probabilities do not sum to 1")
        expected = model.predict_costs(X)
        chosen = np.searchsorted(model.classes_, model.decide(X)) if _sorted(model) else None
        if (
            chosen is not None
            and not (
                np.take_along_axis(expected, chosen[:, None], 1)[:, 0] == expected.min(axis=1)
            ).all()
        ):
            raise Broken("a decision is not of minimum expected cost")
    if hasattr(model, "staged_predict"):
        *_, last = model.staged_predict(X)
        if not np.array_equal(last, predicted):
            raise Broken("the last stage does not predict as the model")
    if not np.isfinite(getattr(model, "feature_importances_", 0.0)).all():
        raise Broken("an importance is not finite")
    if folder is not None:
        _check_saved(model, X, predicted, folder / "m.badacost")


def _sorted(model: Any) -> bool:
    """Return whether places of labels can be searched."""
    return bool((np.sort(model.classes_) == model.classes_).all())


def _check_saved(model: Any, X: Any, predicted: Any, path: Path) -> None:
    """Raise where a model that can be saved is another one when it is loaded."""
    model.save(path)
    again = badacost.load(path)
    if not np.array_equal(again.predict(X), predicted):
        raise Broken("the loaded model predicts something else")
    if hasattr(model, "predict_proba") and not np.array_equal(
        again.predict_proba(X), model.predict_proba(X)
    ):
        raise Broken("the loaded model has other probabilities")
    to_onnx(model)


def _check_explained(model: Any, X: Any) -> None:
    """Raise where the contributions of features are not those to the scores of a model."""
    if not (hasattr(model, "forest_") and hasattr(model, "cost_scores")):
        return
    rows = (X.tocsr() if hasattr(X, "tocsr") else X)[:2]
    explanation = explain_scores(model, rows)
    total = explanation.base_values + explanation.values.sum(axis=1)
    size = np.abs(explanation.values).sum(axis=1) + np.abs(explanation.base_values)
    if (np.abs(total - model.cost_scores(rows)) > 1e-9 * size).any():
        raise Broken("contributions do not sum to the scores")
    if hasattr(model, "predict_proba"):
        str(explain_decision(model, rows[:1]).to_text())


ESTIMATOR_KINDS = (Estimators(),)
