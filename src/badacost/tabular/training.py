"""Fitting a model to a table, with a part held out to tell what its decisions cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from badacost.boosting import SAMMEClassifier
from badacost.tabular.classifier import TableClassifier
from badacost.tabular.frames import as_frame, check_columns
from badacost.tabular.summary import CostSummary
from badacost.tabular.target import target_labels
from badacost.validation import check_number, check_sample_weight

COST_BLIND = "cost-blind boosting (SAMME)"
"""Name of the rival that counts mistakes."""
COST_IN_DECISION = "the same, then least expected cost"
"""Name of the rival that counts mistakes in training, and knows costs when it decides."""
_MOST_HELD_OUT = 0.9


def fit_and_try(
    model: TableClassifier,
    table: Any,
    target: str,
    *,
    sample_weight: ArrayLike | None = None,
    holdout: float = 0.2,
    refit: bool = True,
    compare: bool = False,
    random_state: int = 0,
    announce: Callable[[str], None] | None = None,
) -> TableClassifier:
    """Fit a model to a part of a table, try it on the rest, and fit it to all rows.

    Parameters
    ----------
    model : TableClassifier
        What to fit; it is not changed.
    table : DataFrame
        Training data.
    target : str
        The column of the classes.
    sample_weight : array-like of shape (n_rows,), optional
        Non-negative weights.
    holdout : float, default=0.2
        Share of the rows of each class to hold out, at most 0.9. With 0 nothing is tried out. A
        class of very few rows may be in the training part only.
    refit : bool, default=True
        Whether to fit a model to all rows at the end, with as many rounds as the first one had
        after early stopping. The figures in ``held_out_`` are those of the first model.
    compare : bool, default=False
        Whether to try boosting that does not know the costs, too: `SAMMEClassifier` with the
        parameters of the model, once with its own rule and once with that of least expected cost.
    random_state : int, default=0
        Which rows are held out.
    announce : callable, optional
        Called with a sentence before each fit.

    Returns
    -------
    TableClassifier
        The fitted model, with ``held_out_`` set unless nothing was held out.

    Examples
    --------
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.tabular import TableClassifier, find_dataset, fit_and_try
    >>> wine = find_dataset("wine")
    >>> booster = BAdaCostClassifier(wine.example_costs(), n_estimators=20, max_depth=2)
    >>> model = fit_and_try(TableClassifier(booster), wine.load(), wine.target)
    >>> model.n_rows_, model.held_out_.n_rows
    (178, 36)
    >>> model.held_out_.average_cost < model.held_out_.constant_cost
    True
    """
    check_number("holdout", holdout, low=0.0, high=_MOST_HELD_OUT)
    say = announce or (lambda sentence: None)
    frame = as_frame(table)
    check_columns(frame, [target])
    labels = target_labels(frame[target], target)
    weight = None if sample_weight is None else check_sample_weight(sample_weight, len(frame))

    def fitted(start: TableClassifier, rows: NDArray[np.bool_]) -> TableClassifier:
        part = None if weight is None else weight[rows]
        return clone(start).fit(frame[rows], target, sample_weight=part)

    every_row = np.ones(len(frame), np.bool_)
    if holdout == 0.0:
        say(f"Fitting to all {len(frame)} rows.")
        return fitted(model, every_row)
    tried = _held_out_rows(labels, holdout, random_state)
    say(f"Fitting to {(~tried).sum()} rows; {tried.sum()} are held out.")
    first = fitted(model, ~tried)
    rivals: dict[str, NDArray[Any]] = {}
    if compare:
        say("For comparison: boosting that does not know the costs.")
        blind = fitted(_cost_blind(model, first), ~tried)
        rivals[COST_BLIND] = blind.predict(frame[tried])
        rivals[COST_IN_DECISION] = blind.set_params(decision="bayes").predict(frame[tried])
    summary = CostSummary.of(
        labels[tried],
        first.predict(frame[tried]),
        first.charged_costs_,
        classes=first.classes_,
        sample_weight=None if weight is None else weight[tried],
        rivals=rivals,
    )
    last = first
    if refit:
        say(f"Fitting to all {len(frame)} rows.")
        last = fitted(_without_early_stopping(model, first), every_row)
    last.held_out_ = summary
    return last


def _held_out_rows(labels: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Mark a share of the rows of each class, never all of them."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(labels), np.bool_)
    _, codes = np.unique(labels, return_inverse=True)
    for code in range(codes.max() + 1):
        rows = rng.permutation(np.flatnonzero(codes == code))
        chosen[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    if not chosen.any():
        raise ValueError(
            f"{len(labels)} rows are too few to hold out {share:.0%} of each class: hold out none, "
            "or more of them."
        )
    return chosen


def _cost_blind(model: TableClassifier, first: TableClassifier) -> TableClassifier:
    """Return the rival of a model: the same but for the costs in training."""
    samme = SAMMEClassifier()
    parameters = {
        name: value
        for name, value in first.classifier_.get_params(deep=False).items()
        if name in samme.get_params(deep=False)
    }
    return TableClassifier(
        samme.set_params(**parameters),
        cost_matrix=first.charged_costs_,
        drop=model.drop,
        max_one_hot=model.max_one_hot,
    )


def _without_early_stopping(model: TableClassifier, first: TableClassifier) -> TableClassifier:
    """Return the model to refit: with the rounds that the first fit found best."""
    again: TableClassifier = clone(model)
    if getattr(again.classifier, "early_stopping", False):
        again.classifier.set_params(
            n_estimators=first.classifier_.n_estimators_, early_stopping=False
        )
    return again
