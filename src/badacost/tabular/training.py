"""Fitting a model to a table, with a part held out to tell what its decisions cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from badacost.arrays import FloatArray, IndexArray, Mask
from badacost.boosting import CostBoostClassifier, SAMMEClassifier
from badacost.costs import labelled_costs
from badacost.costs.decisions import Prices
from badacost.metrics import total_cost
from badacost.progress import ProgressBar
from badacost.tabular.classifier import TableClassifier
from badacost.tabular.encoder import TableEncoder
from badacost.tabular.frames import as_frame, check_columns
from badacost.tabular.summary import CostSummary
from badacost.tabular.target import target_labels
from badacost.validation import check_number, check_sample_weight

COST_BLIND = "cost-blind boosting (SAMME)"
"""Name of the rival that knows no costs."""
COST_IN_DECISION = "SAMME, then minimum expected cost"
"""Name of the rival that knows no costs in training, but uses them when it decides."""
DEPTHS = (1, 2, 4, 6, 8)
"""Depths of trees to choose from."""
_MAX_HELD_OUT = 0.9
_MAX_ROWS_TO_CHOOSE = 20_000
_MIN_OF_CLASS = 30  # of these rows, or all that there are
_MAX_CLASSES_LISTED = 5


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """What several fits share: a table as features, its classes, and weights if there are any.

    The encoder has seen all rows: what a column holds does not depend on those of a fit.
    """

    encoder: TableEncoder
    features: FloatArray
    labels: NDArray[Any]
    weight: FloatArray | None
    target: str

    @classmethod
    def of(
        cls, model: TableClassifier, table: Any, target: str, sample_weight: ArrayLike | None
    ) -> Self:
        """Encode a table as a model would."""
        frame = as_frame(table)
        check_columns(frame, [target])
        labels = target_labels(frame[target], target)
        weight = None if sample_weight is None else check_sample_weight(sample_weight, len(frame))
        encoder = model._new_encoder()
        return cls(
            encoder, encoder.fit_transform(frame.drop(columns=target)), labels, weight, target
        )

    def only(self, rows: Mask | IndexArray) -> EncodedTable:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, features=self.features[rows], labels=self.labels[rows], weight=weight)

    def sample(self, rng: np.random.Generator) -> EncodedTable:
        """About 20 000 of the rows if there are more, weighted to stand for all of them."""
        if len(self.labels) <= _MAX_ROWS_TO_CHOOSE:
            return self
        rows, factors = _sample(self.labels, _MAX_ROWS_TO_CHOOSE / len(self.labels), rng)
        weight = check_sample_weight(self.weight, len(self.labels))[rows] * factors
        return replace(self.only(rows), weight=weight)

    def fit(self, model: TableClassifier) -> TableClassifier:
        """Return the model, fitted to all rows."""
        unfitted: TableClassifier = clone(model)
        return unfitted._fit_features(
            self.encoder, self.features, self.labels, self.weight, self.target
        )


def fit_and_try(
    model: TableClassifier,
    table: Any,
    target: str,
    *,
    sample_weight: ArrayLike | None = None,
    holdout: float = 0.2,
    refit: bool = True,
    compare: bool = False,
    depths: Sequence[int] | None = None,
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
        parameters of the model (its defaults beside `CostBoostClassifier`), once with its own rule
        and once with that of minimum expected cost.
    depths : sequence of int, optional
        Depths of trees to choose from by `best_depth` on the rows that are not held out, for the
        rival as well; the classifier's own depth by default. `CostBoostClassifier`, which stops by
        itself where trees fit noise, always keeps its own.
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
    check_number("holdout", holdout, low=0.0, high=_MAX_HELD_OUT)
    say = announce or (lambda sentence: None)
    data = EncodedTable.of(model, table, target, sample_weight)
    n_rows = len(data.labels)
    if holdout == 0.0:
        model = with_best_depth(model, data, depths, random_state, say)
        say(f"Fitting to all {n_rows} rows.")
        return data.fit(model)
    held_out = held_out_rows(data.labels, holdout, random_state)
    _tell_of_absent(data.labels, held_out, say)
    kept, tried = data.only(~held_out), data.only(held_out)
    model = with_best_depth(model, kept, depths, random_state, say)
    say(f"Fitting to {len(kept.labels)} rows; {len(tried.labels)} are held out.")
    first = kept.fit(model)
    rivals: dict[str, NDArray[Any]] = {}
    if compare:
        say("For comparison: boosting that does not know the costs.")
        rival = with_best_depth(_cost_blind(model, first), kept, depths, random_state, say)
        blind = kept.fit(rival)
        by_expected_cost = blind._decide(tried.features)
        rivals[COST_BLIND] = blind.set_params(decision="own")._decide(tried.features)
        rivals[COST_IN_DECISION] = by_expected_cost
    summary = CostSummary.of(
        tried.labels,
        first._decide(tried.features),
        first.charged_costs_,
        classes=first.classes_,
        sample_weight=tried.weight,
        rivals=rivals,
    )
    last = first
    if refit:
        say(f"Fitting to all {n_rows} rows.")
        last = data.fit(_without_early_stopping(model, first))
    last.held_out_ = summary
    return last


def _tell_of_absent(labels: NDArray[Any], tried: Mask, say: Callable[[str], None]) -> None:
    """Name the classes that the figures will say nothing about."""
    absent = sorted(set(labels.tolist()) - set(labels[tried].tolist()))
    if absent:
        shown = ", ".join(f"{label!r:.40}" for label in absent[:_MAX_CLASSES_LISTED])
        more = len(absent) - _MAX_CLASSES_LISTED
        say(
            f"No row of {shown}{f' and {more} more' if more > 0 else ''} was held out: the figures "
            f"say nothing about {'it' if len(absent) == 1 else 'them'}."
        )


def best_depth(
    model: TableClassifier,
    table: Any,
    target: str,
    depths: Sequence[int] = DEPTHS,
    *,
    sample_weight: ArrayLike | None = None,
    n_folds: int = 3,
    random_state: int = 0,
) -> int:
    """Return the depth of trees with which decisions are cheapest in cross-validation.

    Depth matters more than any other parameter: stumps suit small, noisy tables, deep trees large,
    clean ones.

    Parameters
    ----------
    model : TableClassifier
        What to fit; it is not changed. Its classifier has a parameter `max_depth`.
    table : DataFrame
        Training data. Of more than 20 000 rows about as many are used, but all or at least 30 of
        each class.
    target : str
        The column of the classes.
    depths : sequence of int, default=(1, 2, 4, 6, 8)
        Depths to try. Of those that cost the same, the first is taken.
    sample_weight : array-like of shape (n_rows,), optional
        Non-negative weights.
    n_folds : int, default=3
        Parts of the rows, each of which is decided by a model that was fitted to the others. Rows
        of a class that has fewer of them are never decided.
    random_state : int, default=0
        Which rows are in which part.

    Returns
    -------
    int
        One of `depths`.

    Examples
    --------
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.tabular import TableClassifier, best_depth, find_dataset
    >>> grades = find_dataset("diabetes")
    >>> booster = BAdaCostClassifier(grades.example_costs(), n_estimators=20)
    >>> best_depth(TableClassifier(booster), grades.load(), grades.target, depths=(1, 8))
    1
    """
    data = EncodedTable.of(model, table, target, sample_weight)
    return _cheapest_depth(model, data, depths, n_folds=n_folds, random_state=random_state)


def with_best_depth(
    model: TableClassifier,
    data: EncodedTable,
    depths: Sequence[int] | None,
    random_state: int,
    say: Callable[[str], None] = lambda sentence: None,
) -> TableClassifier:
    """Return a model with the cheapest of some depths; CostBoost has a depth that suits."""
    if depths is None or isinstance(model.estimator, CostBoostClassifier | None):
        return model
    chosen = _cheapest_depth(model, data, depths, random_state=random_state)
    say(f"Trees of depth {chosen} are cheapest in cross-validation.")
    return _with_depth(model, chosen)


def _cheapest_depth(
    model: TableClassifier,
    data: EncodedTable,
    depths: Sequence[int],
    *,
    n_folds: int = 3,
    random_state: int = 0,
) -> int:
    """`best_depth` for a table that is encoded already."""
    if not depths:
        raise ValueError("depths are empty: name at least one.")
    for depth in depths:
        check_number("depths", depth, Integral, low=1)
    check_number("n_folds", n_folds, Integral, low=2)
    rng = np.random.default_rng(random_state)
    data = data.sample(rng)
    folds = deal_folds(data.labels, n_folds, rng)
    start = _with_depth(model, depths[0])
    verbose = bool(getattr(start.estimator, "verbose", False))
    bar = ProgressBar(len(depths) * n_folds, "Choosing the depth") if verbose else None
    paid = np.zeros(len(depths))
    for number, depth in enumerate(depths):
        candidate = _with_depth(start, depth)
        if verbose:
            candidate.estimator.set_params(verbose=0)
        for fold in range(n_folds):
            tried = folds == fold
            if tried.any():
                fitted, left_out = data.only(~tried).fit(candidate), data.only(tried)
                paid[number] += total_cost(
                    left_out.labels,
                    fitted._decide(left_out.features),
                    Prices(fitted.charged_costs_),
                    labels=fitted.classes_,
                    sample_weight=left_out.weight,
                )
            if bar is not None:
                bar.update(number * n_folds + fold + 1)
    if bar is not None:
        bar.close()
    return int(depths[int(paid.argmin())])


def _sample(
    labels: NDArray[Any], share: float, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Draw a share of the rows of each class, more of rare ones, with weights that make up for it.

    Returns their positions, and the number of rows that each of them stands for.
    """
    rows, factors = [], []
    for label in np.unique(labels):
        all_of_class = np.flatnonzero(labels == label)
        n_drawn = min(len(all_of_class), max(round(share * len(all_of_class)), _MIN_OF_CLASS))
        rows.append(rng.choice(all_of_class, n_drawn, replace=False))
        factors.append(np.full(n_drawn, len(all_of_class) / n_drawn))
    drawn = np.concatenate(rows)
    order = drawn.argsort()
    return drawn[order], np.concatenate(factors)[order]


def deal_folds(labels: NDArray[Any], n_folds: int, rng: np.random.Generator) -> IndexArray:
    """Deal the rows of each class to the folds; -1 for classes with too few of them."""
    folds = np.full(len(labels), -1)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        if len(rows) >= n_folds:
            folds[rows] = np.arange(len(rows)) % n_folds
    return folds


def _with_depth(model: TableClassifier, depth: int) -> TableClassifier:
    """Return the model with trees of another depth."""
    changed: TableClassifier = clone(model)
    if changed.estimator is None:
        changed.estimator = CostBoostClassifier()
    if "max_depth" not in changed.estimator.get_params(deep=False):
        raise ValueError(
            f"{type(changed.estimator).__name__} has no max_depth to choose: leave depths out."
        )
    changed.estimator.set_params(max_depth=depth)
    return changed


def held_out_rows(labels: NDArray[Any], share: float, seed: int) -> Mask:
    """Mark a share of the rows of each class, never all of them, (n_rows,).

    A ValueError is raised where no class has enough rows.

    >>> held_out_rows(np.array(["a", "b", "a", "b", "b", "b"]), 0.5, seed=0).sum()
    np.int64(3)
    """
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
    """Return the rival of a model: the same but for the costs in training.

    The settings of CostBoost, another kind of boosting, are not for it.
    """
    samme = SAMMEClassifier()
    shared = samme.get_params(deep=False).keys()
    if isinstance(first.estimator_, CostBoostClassifier):
        shared = shared & {"n_jobs", "random_state", "verbose"}
    own = first.estimator_.get_params(deep=False)
    parameters = {name: own[name] for name in own if name in shared}
    return TableClassifier(
        samme.set_params(**parameters),
        cost_matrix=labelled_costs(first.charged_costs_, first.classes_),
        decision="bayes",
        drop=model.drop,
    )


def _without_early_stopping(model: TableClassifier, first: TableClassifier) -> TableClassifier:
    """Return the model to refit: with the rounds that the first fit found best.

    CostBoost loses no rows to early stopping, and finds its rounds again.
    """
    again: TableClassifier = clone(model)
    if getattr(again.estimator, "early_stopping", False) and not isinstance(
        again.estimator, CostBoostClassifier
    ):
        again.estimator.set_params(
            n_estimators=first.estimator_.n_estimators_, early_stopping=False
        )
    return again
