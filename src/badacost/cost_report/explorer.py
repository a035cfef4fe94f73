"""The cost explorer: a page on which costs can be moved, and what follows is seen at once."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray, Positions
from badacost._utils.validation import check_number, check_sample_weight, positions_in
from badacost.cost_report.evidence import costs_of, taken_apart, training_samples
from badacost.cost_report.known_rows import known_rows_remark
from badacost.cost_report.money import check_currency
from badacost.cost_report.parts import plain_values
from badacost.cost_report.words import sentence_case
from badacost.costs.decisions import DecisionCosts, check_no_class_abstains
from badacost.costs.matrix import as_classes, given_costs, named_classes, plain
from badacost.html_page import check_text, environment, framed, shorten, write_page
from badacost.tabular.trials import rival_probabilities, rows_of

_MAX_CLASSES = 50  # a matrix that people can edit
_MAX_FEATURES = 12
_MAX_CELL_LENGTH = 60
_SCRIPTS = ("explorer_engine.js", "explorer_text.js", "explorer_panels.js", "explorer.js")
_FRAME_HEIGHT = 860  # pixels, in notebooks


@dataclass(frozen=True, eq=False)
class CostExplorer:
    """Probabilities and costs of some rows, and a page of HTML to move the costs on.

    The page is one file that loads nothing from elsewhere. It has an editable matrix of costs
    with the confusion in money, the cost of asking a person, the average cost of the ways to
    decide, the rows whose decision changes, how far each cost can move before decisions change,
    and a curve of the average cost against any entry. "Save costs" writes the file that
    `badacost.costs.read_costs` and ``badacost fit --costs`` read.

    Parameters
    ----------
    labels : sequence of K str
        Names of the classes, in the order of rows and columns; at most 50.
    probabilities : array-like of shape (n_rows, K)
        Class probabilities of the model.
    costs : array-like of shape (K, K)
        Costs to begin with, ``C[truth, prediction]``: rows are the truth. As charged, with the
        cost of being right if there is one.
    answers : array-like of shape (n_rows,)
        Answers of the model as fitted: positions in `labels`.
    truth : array-like of shape (n_rows,), optional
        True classes, positions in `labels`. Without them, figures are costs that are expected
        under the probabilities, and the page says so.
    features : data frame or mapping of names to columns, optional
        What is shown of a row whose decision changes: the first 12 columns, as short texts.
    row_names : sequence of n_rows, optional
        How to call the rows; by default 1, 2, and so on.
    abstain : float, optional
        The cost of asking a person; None is never.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    rivals : mapping of str to array-like of shape (n_rows, K), optional
        Probabilities of models that were trained without costs. They need `truth`.
    currency : str, optional
        Unit of the costs, such as "€" or "EUR".
    title : str, default="Cost explorer"
        Title of the page.
    note : str, optional
        A sentence to show below the title, such as where the rows are from.

    Raises
    ------
    TypeError, ValueError
        Where the arguments do not fit together.

    Examples
    --------
    >>> from badacost.cost_report import CostExplorer
    >>> probabilities = [[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]]
    >>> explorer = CostExplorer(["ham", "spam"], probabilities, [[0, 5], [1, 0]], [0, 0, 1])
    >>> explorer.to_dict()["costs"]
    [[0.0, 5.0], [1.0, 0.0]]
    >>> explorer.to_html().startswith("<!DOCTYPE html>")
    True
    """

    labels: Sequence[str]
    probabilities: FloatArray
    costs: FloatArray
    answers: Positions
    truth: Positions | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    row_names: Sequence[str] | None = None
    abstain: float | None = None
    sample_weight: FloatArray | None = None
    rivals: Mapping[str, FloatArray] = field(default_factory=dict)
    currency: str | None = None
    title: str = "Cost explorer"
    note: str | None = None

    def __post_init__(self) -> None:
        labels = [str(label) for label in self.labels]
        if not 2 <= len(labels) <= _MAX_CLASSES:
            raise ValueError(
                f"there are {len(labels)} classes: the matrix of the explorer takes 2 to "
                f"{_MAX_CLASSES}; join classes, or use CostReport."
            )
        check_no_class_abstains(labels)
        probabilities = _shares("probabilities", self.probabilities, len(labels))
        n_rows = len(probabilities)
        if not n_rows:
            raise ValueError("there are no rows: give at least one.")
        if self.rivals and self.truth is None:
            raise ValueError(
                "rivals can be compared only where the truth is known: give it, or leave them out."
            )
        check_text("title", self.title)
        check_text("note", "" if self.note is None else self.note)
        check_currency(self.currency)
        check_number("abstain", self.abstain, low=0.0, none=True)
        weight, truth, names = self.sample_weight, self.truth, self.row_names
        if weight is not None:
            weight = check_sample_weight(weight, n_rows)
        shown = range(1, n_rows + 1) if names is None else names
        values = {
            "labels": labels,
            "probabilities": probabilities,
            "costs": given_costs(self.costs, labels),
            "answers": _positions("answers", self.answers, n_rows, len(labels)),
            "truth": None if truth is None else _positions("truth", truth, n_rows, len(labels)),
            "features": _texts(self.features, n_rows),
            "row_names": [shorten(str(name), _MAX_CELL_LENGTH) for name in shown],
            "sample_weight": weight,
            "rivals": {
                str(name): _shares(f"rival {name!r:.80}", rival, len(labels), n_rows)
                for name, rival in self.rivals.items()
            },
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if len(self.row_names or ()) != n_rows:
            raise ValueError(f"row_names must have a name for each of the {n_rows} rows.")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        costs: Any = None,
        abstain: float | None = None,
        sample_weight: ArrayLike | None = None,
        train: tuple[Any, ArrayLike] | None = None,
        rivals: Mapping[str, Any] | None = None,
        feature_names: Sequence[Any] | None = None,
        max_rows: int | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        currency: str | None = None,
        title: str | None = None,
    ) -> Self:
        """Make an explorer of the probabilities and predictions of a fitted classifier.

        Parameters
        ----------
        model : fitted classifier
            Any with `predict`, `predict_proba` and ``classes_``: those of this package, a
            `badacost.tabular.TableClassifier`, or a pipeline.
        X : array-like or data frame of n_samples rows
            Samples that the model was not trained on, as its `predict` takes them.
        y : array-like of shape (n_samples,), optional
            Their classes, if they are known.
        costs : array-like of shape (K, K), mapping or data frame, optional
            Costs to begin with, ``C[truth, prediction]``: rows are the truth. By default those of
            the model. Classes are shown in the order of a mapping or data frame, otherwise in
            that of ``classes_``.
        abstain : float, optional
            The cost of asking a person.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.
        train : tuple of X and y, optional
            What the model was trained on: adds boosting that is trained and tuned on it without
            any costs, as `badacost.cost_report.CostReport` does.
        rivals : mapping of str to fitted classifier or array-like of shape (n_samples, K), optional
            Models that were trained without costs, or their probabilities in the order of
            ``classes_`` of the model. They need `y`.
        feature_names : sequence of str, optional
            Names of the features, if `X` has none.
        max_rows : int, optional
            Take a random sample of so many rows where there are more.
        random_state : int, default=0
            Seed of the sample, and of what is trained.
        n_jobs : int, optional
            Threads for that; None is one, -1 is one for each core.
        currency : str, optional
            Unit of the costs.
        title : str, optional
            Title of the page.

        Returns
        -------
        CostExplorer
            The explorer.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import MinimumCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
        >>> model = MinimumCostClassifier(cost_matrix=costs).fit(X[::2], y[::2])
        >>> CostExplorer.from_estimator(model, X[1::2], y[1::2], abstain=0.5).labels
        ['0', '1', '2']
        """
        for name, remedy in (
            ("classes_", "give a fitted classifier"),
            ("predict_proba", 'put it into MinimumCostClassifier with calibration="sigmoid"'),
        ):
            if not hasattr(model, name):
                raise TypeError(f"model is a {type(model).__name__} without {name}: {remedy}.")
        check_number("max_rows", max_rows, Integral, low=1, none=True)
        classes = [plain(label) for label in model.classes_]
        inner, estimator, encode = taken_apart(model)
        costs = costs_of(inner) if costs is None else costs
        named = [k for k in as_classes(named_classes(costs) or [], classes) if k in classes]
        labels = named if len(named) == len(classes) else classes
        order = [classes.index(label) for label in labels]
        X = X if hasattr(X, "shape") else np.asarray(X)
        n_samples = X.shape[0]
        rows: Positions | slice = slice(None)
        known = known_rows_remark(model, n_samples)
        notes = [] if known is None else [sentence_case(known)]
        if max_rows is not None and n_samples > max_rows:
            drawn = np.random.default_rng(random_state).choice(n_samples, max_rows, replace=False)
            rows = np.sort(drawn)
            notes.append(f"A random sample of {max_rows:,} of {n_samples:,} rows.")
            X = rows_of(X, rows)
        if train is None and not rivals:
            notes += _measured_at_fit(inner)
        charged = given_costs(costs, labels)
        others = {
            name: _probabilities_of(name, rival, X, rows, classes, labels)
            for name, rival in (rivals or {}).items()
        }
        if train is not None:
            trained = rival_probabilities(
                estimator,
                training_samples(train, inner, encode),
                encode(X),
                DecisionCosts(charged),
                n_jobs=n_jobs,
                seed=random_state,
            )
            others |= {name: shares[:, order] for name, shares in trained.items()}
        truth = None if y is None else positions_in(labels, y)
        if truth is not None and len(truth) != n_samples:
            raise ValueError(
                f"X has {n_samples} rows and y has {len(truth)}: give one label for each row."
            )
        index: Any = getattr(X, "index", np.arange(1, n_samples + 1)[rows])
        return cls(
            [str(label) for label in labels],
            np.asarray(model.predict_proba(X))[:, order],
            charged,
            positions_in(labels, model.predict(X), "the model"),
            None if truth is None else truth[rows],
            features=_columns(X, feature_names, getattr(model, "feature_names_in_", ())),
            row_names=index.tolist(),
            abstain=abstain,
            sample_weight=None if sample_weight is None else rows_of(sample_weight, rows),
            rivals=others,
            currency=currency,
            title="Cost explorer" if title is None else title,
            note=" ".join(notes) or None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all that the page holds, as lists, numbers and texts.

        Returns
        -------
        dict
            The fields of the explorer by name; `json.dumps` takes it.
        """
        fields: dict[str, Any] = plain_values(vars(self))
        return fields

    def to_html(self) -> str:
        """Return the page: one document, in which scripts, styles and numbers are.

        A content policy lets a browser run the script of the page only, and load nothing.

        Returns
        -------
        str
            HTML.
        """
        template = environment("badacost.cost_report").get_template("explorer.html")
        folder = files("badacost.cost_report").joinpath("templates")
        style = folder.joinpath("explorer.css").read_text("utf-8")
        parts = (folder.joinpath(name).read_text("utf-8") for name in _SCRIPTS)
        script = f'"use strict";\n(() => {{\n{"".join(parts)}}})();\n'
        page: str = template.render(
            title=self.title,
            note=self.note,
            currency=self.currency,
            n_rows=len(self.probabilities),
            n_classes=len(self.labels),
            has_truth=self.truth is not None,
            style=style,
            script=script,
            style_hash=_digest(style),
            script_hash=_digest(script),
            data=self._packed(),
        )
        return page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced once the new one is complete.
        """
        write_page(path, self.to_html())

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, for notebooks."""
        may = "allow-scripts allow-downloads"
        return framed(self.to_html(), self.title, height=_FRAME_HEIGHT, may=may)

    def _packed(self) -> dict[str, Any]:
        """Return what the script of the page reads; long rows of numbers are base64."""
        truth, weight = self.truth, self.sample_weight
        return {
            "labels": self.labels,
            "n": len(self.probabilities),
            "costs": self.costs.ravel().tolist(),
            "ask": None if self.abstain is None else float(self.abstain),
            "probabilities": _base64(self.probabilities.T, "<f4"),
            "answers": _base64(self.answers, "u1"),
            "truth": None if truth is None else _base64(truth, "u1"),
            "weights": None if weight is None else _base64(weight, "<f8"),
            "rivals": [
                {"name": name, "probabilities": _base64(rival.T, "<f4")}
                for name, rival in self.rivals.items()
            ],
            "features": [{"name": name, "cells": cells} for name, cells in self.features.items()],
            "rows": self.row_names,
            "currency": self.currency or "",
            "unwritable": [
                name for name in self.labels if not name or name != name.encode(errors="replace")
                .decode().strip()
            ],
        }  # fmt: skip


def _measured_at_fit(model: Any) -> list[str]:
    """Return what the fit measured of models that were trained without costs, if it did."""
    summary = getattr(model, "held_out_", None)
    if summary is None or not summary.rivals:
        return ["No model that was trained without costs is compared here."]
    costs = {"the model": summary.average_cost, **summary.rivals}
    figures = "; ".join(f"{name} {cost:.4g}" for name, cost in costs.items())
    return [f"Measured at the fit ({summary.rows}), under its costs: {figures}."]


def _shares(name: str, values: Any, n_classes: int, n_rows: int | None = None) -> FloatArray:
    """Check probabilities."""
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim != 2 or shares.shape[1] != n_classes or n_rows not in (None, len(shares)):
        wanted = "n_rows" if n_rows is None else n_rows
        raise ValueError(
            f"{name} must have shape ({wanted}, {n_classes}), a column for each class; got "
            f"{shares.shape}."
        )
    if not ((shares >= 0.0) & (shares <= 1.0 + 1e-6)).all():
        raise ValueError(f"{name} must be from 0 to 1: give what predict_proba returns.")
    return shares


def _positions(name: str, values: Any, n_rows: int, n_classes: int) -> Positions:
    """Check positions of classes."""
    found = np.asarray(values)
    are_whole = found.shape == (n_rows,) and found.dtype.kind in "iu"
    if not are_whole or ((found < 0) | (found >= n_classes)).any():
        raise ValueError(
            f"{name} must be {n_rows} whole numbers from 0 to {n_classes - 1}, positions in labels;"
            f" got {found.dtype} of shape {found.shape}."
        )
    return found.astype(np.intp)


def _texts(features: Any, n_rows: int) -> dict[str, list[str]]:
    """Return the first columns of a frame as short texts, by their shortened names."""
    names = list(getattr(features, "columns", features))[:_MAX_FEATURES]
    texts = {}
    for number, name in enumerate(names, start=1):
        cells = [_cell(value) for value in np.asarray(features[name], dtype=object)]
        if len(cells) != n_rows:
            raise ValueError(
                f"the column {name!r:.80} of features has {len(cells)} cells where there are "
                f"{n_rows} rows: give one for each."
            )
        short = shorten(str(name), _MAX_CELL_LENGTH)
        texts[short if short not in texts else f"{short} ({number})"] = cells
    return texts


def _cell(value: Any) -> str:
    """Return a value as a short text, nothing where it is missing."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    text = str(value)
    missing = not isinstance(value, str) and text in ("None", "NaT", "<NA>")
    return "" if missing else shorten(text, _MAX_CELL_LENGTH)


def _columns(X: Any, names: Sequence[Any] | None, used: Sequence[Any] | NDArray[Any]) -> Any:
    """Return the columns to show, by name: those that the model uses, if it knows them."""
    if hasattr(X, "columns"):
        known = set(X.columns)
        return X[[name for name in used if name in known] or list(X.columns)]
    values = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    n_features = values.shape[1] if values.ndim == 2 else 0
    found = [f"feature {k}" for k in range(n_features)] if names is None else list(names)
    if len(found) != n_features:
        raise ValueError(f"feature_names has {len(found)} names for {n_features} features.")
    return {str(name): values[:, k] for k, name in enumerate(found[:_MAX_FEATURES])}


def _probabilities_of(
    name: str,
    rival: Any,
    X: Any,
    rows: Positions | slice,
    classes: Sequence[Any],
    labels: Sequence[Any],
) -> FloatArray:
    """Return the probabilities of a rival, with columns in the order of the labels."""
    found = classes
    if hasattr(rival, "predict_proba"):
        found, values = [plain(label) for label in rival.classes_], rival.predict_proba(X)
        if set(found) != set(classes):
            raise ValueError(
                f"the rival {name!r:.80} has other classes than the model: fit it to the same rows."
            )
    else:
        values = rows_of(rival, rows)
    shares = _shares(f"rival {name!r:.80}", values, len(classes))
    return shares[:, [found.index(label) for label in labels]]


def _digest(text: str) -> str:
    """Return a hash as a content policy has it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _base64(values: ArrayLike, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()
