"""Fitting a model to a table, and measuring what its decisions cost on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from badacost._utils.arrays import IndexArray, Mask
from badacost._utils.validation import (
    check_number,
    check_sample_weight,
    distinct_classes,
    positions_in,
)
from badacost.classifiers import CostBoostClassifier
from badacost.costs.decisions import DecisionCosts
from badacost.costs.matrix import given_costs
from badacost.tabular.classifier import TableClassifier
from badacost.tabular.encoder import TableEncoder
from badacost.tabular.frames import as_frame, check_columns
from badacost.tabular.summary import CostSummary
from badacost.tabular.trials import (
    DEPTHS,
    Contender,
    DepthTuner,
    Run,
    Samples,
    held_out_rows,
    run,
    without_costs,
)

MAX_MODELS = 20
"""Number of models that can be compared."""
_MAX_HELD_OUT = 0.9
_HELD_OUT = 0.2
_MODEL = "the model"
_MAX_ROWS_FOR_FOLDS = 2_000  # a larger table has enough rows to hold some of them out


@dataclass(frozen=True, eq=False)
class _Table:
    """A table that is encoded once, and its classes."""

    encoder: TableEncoder
    samples: Samples
    labels: Any
    classes: NDArray[Any]
    target: str

    @classmethod
    def of(
        cls, model: TableClassifier, table: Any, target: str, sample_weight: ArrayLike | None
    ) -> Self:
        """Encode a table as a model would.

        What a column holds is decided by all rows, so that it is the same in every fit. Estimators
        find the categories they know in the rows they are fitted to: to them, others are unseen.
        """
        frame = as_frame(table)
        check_columns(frame, [target])
        labels = model._labels(frame[target], target)
        classes = distinct_classes(np.asarray(labels), labels)
        truth = positions_in(classes, np.asarray(labels))
        weight = None if sample_weight is None else check_sample_weight(sample_weight, len(frame))
        encoder = TableEncoder(drop=model.drop)
        features = encoder.fit_transform(frame.drop(columns=target))
        samples = Samples(features, truth, weight, encoder.categorical_)
        return cls(encoder, samples, labels, classes, target)

    def costs(self, models: Iterable[TableClassifier]) -> DecisionCosts:
        """Costs of decisions in the order of the classes, which are equal for all models."""
        given = [given_costs(model._given_costs(), self.classes) for model in models]
        if not all(np.array_equal(matrix, given[0]) for matrix in given):
            raise ValueError("models with different costs cannot be compared: give all the same.")
        return DecisionCosts(given[0])

    def divide(
        self, holdout: float | None, n_folds: int, seed: int
    ) -> tuple[Samples, IndexArray, str]:
        """Return rows, their folds as `trials.run` takes them, and what this is called."""
        if holdout is not None:
            held_out = held_out_rows(self.samples.truth, holdout, seed)
            return self.samples, np.where(held_out, 0, -1), "held out"
        samples, folds = self.samples.in_folds(n_folds, seed)
        if not (folds >= 0).any():
            raise ValueError(
                "no class has two rows, so nothing can be tried: add rows, or try nothing with "
                "holdout=0 (--holdout 0)."
            )
        return samples, folds, f"in {n_folds}-fold cross-validation"

    def contender(
        self, name: str, model: TableClassifier, depths: Sequence[int] | None
    ) -> Contender:
        """A model as trials take it."""
        estimator = model._new_estimator()
        parameters = estimator.get_params(deep=False)
        if "verbose" in parameters:
            estimator.set_params(verbose=0)
        own = getattr(estimator, "cost_matrix", None)
        has_both = own is not None and model.cost_matrix is not None
        if has_both:
            estimator.set_params(cost_matrix=given_costs(own, self.classes))
        tune = None
        if depths is not None and "max_depth" in parameters:
            tune = DepthTuner(model.decision, tuple(depths))
        return Contender(name, estimator, (model.decision,), tune, sets_costs=not has_both)

    def fit(
        self,
        model: TableClassifier,
        depths: Sequence[int] | None,
        seed: int,
        say: Callable[[str], None],
        rows: Mask | slice = slice(None),
    ) -> TableClassifier:
        """Return the model with the depth that suits, fitted to all rows or to some."""
        samples = self.samples if isinstance(rows, slice) else self.samples.only(rows)
        unfitted: TableClassifier = clone(model)
        entry = self.contender("", model, depths)
        chosen = entry.prepared(samples, self.costs([model]), seed).get_params(deep=False)
        if entry.tune is not None and not isinstance(entry.estimator, CostBoostClassifier):
            say(f"Trees of depth {chosen.get('max_depth')} are cheapest in cross-validation.")
            unfitted.estimator.set_params(max_depth=chosen["max_depth"])
        n_all = len(self.samples)
        say(f"Fitting to {'all ' * (len(samples) == n_all)}{len(samples)} rows.")
        return unfitted._fit_features(
            self.encoder, samples.features, self.labels[rows], samples.weight, self.target
        )


def fit_and_try(
    models: TableClassifier | Mapping[str, TableClassifier],
    table: Any,
    target: str,
    *,
    sample_weight: ArrayLike | None = None,
    holdout: float | None = None,
    n_folds: int = 5,
    refit: bool = True,
    depths: Sequence[int] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    announce: Callable[[str], None] | None = None,
    verbose: bool = False,
) -> TableClassifier:
    """Try models on rows that they were not fitted to, and fit the cheapest one to all rows.

    Beside the models, boosting that was trained and tuned without any costs decides on the same
    rows, by most likely class and by minimum expected cost: what costs in the training are worth
    is the difference to these.

    Parameters
    ----------
    models : TableClassifier or mapping of str to TableClassifier
        What to fit, or up to 20 models of which the cheapest is fitted; they are not changed. Of
        those that cost the same, the first is taken.
    table : DataFrame
        Training data.
    target : str
        The column of the classes.
    sample_weight : array-like of shape (n_rows,), optional
        Non-negative weights.
    holdout : float, optional
        Fraction of the rows of each class to hold out, at most 0.9; with 0 nothing is tried. By
        default a fifth of a table of more than 2000 rows is held out, and smaller tables are
        cross-validated. Several models are always cross-validated, on about 20 000 rows.
    n_folds : int, default=5
        Parts of the rows in cross-validation, each of which is decided by a model that was fitted
        to the others. The only row of a class is never decided.
    refit : bool, default=True
        Whether to fit to all rows at the end. With False, the model is that of the rows that were
        not held out, and `holdout` must be greater than 0.
    depths : sequence of int, optional
        Depths of trees to choose from by `best_depth`, in every fit anew; the estimator's own
        depth by default. `CostBoostClassifier`, which stops by itself where trees fit noise,
        always keeps its own.
    random_state : int, default=0
        Which rows are in which part.
    n_jobs : int, optional
        Threads of the rivals; None is one, -1 is one for each core.
    announce : callable, optional
        Called with a sentence before each step.
    verbose : bool, default=False
        Whether to show a progress bar for each model.

    Returns
    -------
    TableClassifier
        The fitted model. Its ``held_out_`` has what its decisions cost, and what those of the other
        models and of boosting without costs did; None if nothing was tried.

    Examples
    --------
    >>> from badacost import BAdaCostClassifier, SAMMEClassifier
    >>> from badacost.datasets import find_dataset
    >>> from badacost.tabular import TableClassifier, fit_and_try
    >>> wine = find_dataset("wine")
    >>> models = {
    ...     name: TableClassifier(estimator, cost_matrix=wine.example_costs())
    ...     for name, estimator in {
    ...         "with costs": BAdaCostClassifier(n_estimators=20),
    ...         "without": SAMMEClassifier(n_estimators=1, max_depth=1),
    ...     }.items()
    ... }
    >>> model = fit_and_try(models, wine.load(), wine.target, n_folds=2)
    >>> type(model.estimator_).__name__, model.n_rows_, model.held_out_.n_rows
    ('BAdaCostClassifier', 178, 178)
    >>> model.held_out_.average_cost < model.held_out_.rivals["without"]
    True
    >>> [*model.held_out_.rivals][1:3]
    ['boosting without costs, most likely class', 'boosting without costs, minimum expected cost']
    """
    named = dict(models) if isinstance(models, Mapping) else {_MODEL: models}
    if not 1 <= len(named) <= MAX_MODELS:
        raise ValueError(f"there are {len(named)} models to compare: name 1 to {MAX_MODELS}.")
    check_number("holdout", holdout, low=0.0, high=_MAX_HELD_OUT, none=True)
    check_number("n_folds", n_folds, Integral, low=2)
    say = announce or (lambda sentence: None)
    data = _Table.of(next(iter(named.values())), table, target, sample_weight)
    costs = data.costs(named.values())
    if holdout is None and len(named) == 1 and len(data.samples) > _MAX_ROWS_FOR_FOLDS:
        holdout = _HELD_OUT
    if not holdout and not refit:
        raise ValueError("without refit a share of the rows must be held out: give holdout.")
    if holdout == 0.0:
        if len(named) > 1:
            raise ValueError("holdout=0 tries nothing, so no model can be chosen: name one.")
        return data.fit(next(iter(named.values())), depths, random_state, say)
    samples, folds, how = data.divide(holdout, n_folds, random_state)
    decided = samples.only(folds >= 0)
    if len(named) > 1:
        how += f", the cheapest of {len(named)} models"
    if sample_weight is not None:
        how += ", weighted"
    entries = [data.contender(name, model, depths) for name, model in named.items()]
    entries += _rivals(entries, n_jobs, random_state)
    say(f"Measuring what decisions cost: {len(decided)} rows, {how}.")
    runs = _run_all(entries, samples, folds, costs, random_state, verbose)
    best = min(named, key=lambda name: decided.average_cost(runs[name].decisions[name], costs))
    if len(named) > 1:
        say(f"{best} is cheapest.")
    model = named[best]
    if refit:
        model = data.fit(_with_rounds(model, runs[best].fitted), depths, random_state, say)
    else:
        model = data.fit(model, depths, random_state, say, folds < 0)
    model.held_out_ = CostSummary.of(
        data.classes[decided.truth],
        data.classes[runs[best].decisions[best]],
        costs.values,
        classes=data.classes,
        sample_weight=decided.weight,
        rivals={way: data.classes[run.decisions[way]] for way, run in runs.items() if way != best},
        how=how,
    )
    return model


def _rivals(models: Collection[Contender], n_jobs: int | None, seed: int) -> list[Contender]:
    """Boosting without costs, but for what is among the models already."""
    has_costboost = [m for m in models if isinstance(m.estimator, CostBoostClassifier)]
    return without_costs([*has_costboost, *models][0].estimator, n_jobs=n_jobs, seed=seed)


def _run_all(
    entries: Collection[Contender],
    samples: Samples,
    folds: IndexArray,
    costs: DecisionCosts,
    seed: int,
    verbose: bool,
) -> dict[str, Run]:
    """Try each, with a progress bar; return the run of each way to decide."""
    runs: dict[str, Run] = {}
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        title = f"{entry.name:<{width}}" if verbose else None
        result = run(entry, samples, folds, costs, seed=seed, title=title)
        runs |= dict.fromkeys(entry.ways, result)
    return runs


def _with_rounds(model: TableClassifier, fits: Sequence[Any]) -> TableClassifier:
    """Return the model to refit: with the rounds that early stopping found in the trials.

    CostBoost loses no rows to early stopping, and finds its rounds again.
    """
    again: TableClassifier = clone(model)
    estimator = again.estimator
    if not isinstance(estimator, CostBoostClassifier) and getattr(
        estimator, "early_stopping", False
    ):
        rounds = int(np.median([fit.n_estimators_ for fit in fits]))
        estimator.set_params(n_estimators=rounds, early_stopping=False)
    return again


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

    Depth matters more than any other parameter of algorithms other than CostBoost: stumps suit
    small, noisy tables, deep trees large, clean ones.

    Parameters
    ----------
    model : TableClassifier
        What to fit; it is not changed. Its estimator has a parameter `max_depth`.
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
        Parts of the rows, each of which is decided by a model that was fitted to the others. The
        only row of a class is never decided.
    random_state : int, default=0
        Which rows are in which part.

    Returns
    -------
    int
        One of `depths`.

    Examples
    --------
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.datasets import find_dataset
    >>> from badacost.tabular import TableClassifier, best_depth
    >>> grades = find_dataset("diabetes")
    >>> booster = BAdaCostClassifier(grades.example_costs(), n_estimators=20)
    >>> best_depth(TableClassifier(booster), grades.load(), grades.target, depths=(1, 8))
    1
    """
    tuner = DepthTuner(model.decision, tuple(depths), n_folds)
    data = _Table.of(model, table, target, sample_weight)
    entry, costs = data.contender("", model, None), data.costs([model])
    if "max_depth" not in entry.estimator.get_params(deep=False):
        raise ValueError(
            f"{type(entry.estimator).__name__} has no max_depth to choose: leave depths out."
        )
    return tuner.cheapest(entry.prepared(data.samples, costs), data.samples, costs, random_state)
