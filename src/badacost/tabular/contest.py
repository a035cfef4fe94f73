"""Several models in cross-validation on one table: what the decisions of each cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost.arrays import FloatArray
from badacost.boosting import (
    BAdaCostClassifier,
    CostBoostClassifier,
    ImportedForestClassifier,
    SAMMEClassifier,
)
from badacost.costs import as_cost_matrix, is_irreducible
from badacost.costs.decisions import Prices
from badacost.progress import ProgressBar
from badacost.tabular.classifier import TableClassifier
from badacost.tabular.summary import MAX_RIVALS, CostSummary
from badacost.tabular.training import EncodedTable, deal_folds, with_best_depth
from badacost.validation import check_number, check_sample_weight, positions_in


@dataclass(frozen=True)
class Trial:
    """What the decisions of a model cost in cross-validation.

    Attributes
    ----------
    name : str
        How the model is called.
    average_cost, standard_error : float
        Cost of a decision on rows that were left out, and how far chance may carry it.
    seconds : float
        Time of all its fits and decisions.

    Examples
    --------
    >>> Trial("CostBoost", average_cost=0.5, standard_error=0.1, seconds=2.0).average_cost
    0.5
    """

    name: str
    average_cost: float
    standard_error: float
    seconds: float


def contenders(
    costs: Mapping[Any, Mapping[Any, float]],
    *,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> tuple[dict[str, TableClassifier], list[str]]:
    """Return models that are worth a comparison on any table.

    CostBoost, BAdaCost, SAMME and, where they are installed, LightGBM and CatBoost; all of them
    decide by minimum expected cost (BAdaCost by its margin rule where so many mistakes are free
    that it has no probabilities).

    Parameters
    ----------
    costs : mapping
        ``{truth: {prediction: cost}}``.
    n_jobs : int or None, default=None
        Threads. None is one, -1 is one for each core.
    random_state : int or None, default=None
        Seed.

    Returns
    -------
    models : dict of str to TableClassifier
        The models by name, for `fit_cheapest`.
    not_installed : list of str
        Libraries that would add another one.

    Examples
    --------
    >>> models, not_installed = contenders({"ham": {"spam": 5}, "spam": {"ham": 1}})
    >>> [*models][:3]
    ['CostBoost', 'BAdaCost', 'SAMME']
    """
    common: dict[str, Any] = {"n_jobs": n_jobs, "random_state": random_state}
    has_posterior = is_irreducible(as_cost_matrix(costs, costs))
    booster = BAdaCostClassifier(decision="bayes" if has_posterior else "margin", **common)
    models = {
        "CostBoost": TableClassifier(CostBoostClassifier(**common), cost_matrix=costs),
        "BAdaCost": TableClassifier(booster, cost_matrix=costs),
        "SAMME": TableClassifier(SAMMEClassifier(**common), cost_matrix=costs, decision="bayes"),
    }
    not_installed = []
    for name, make in (("LightGBM", _lightgbm), ("CatBoost", _catboost)):
        try:
            other = make(n_jobs or 1, random_state)
        except ImportError:
            not_installed.append(name.lower())
        else:
            imported = ImportedForestClassifier(other, n_jobs=n_jobs)
            models[name] = TableClassifier(imported, cost_matrix=costs)
    return models, not_installed


def _lightgbm(n_jobs: int, seed: int | None) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_jobs=n_jobs, random_state=seed, verbose=-1, deterministic=True, force_col_wise=True
    )


def _catboost(n_jobs: int, seed: int | None) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=n_jobs, random_seed=seed, verbose=False, allow_writing_files=False
    )


def fit_cheapest(
    models: Mapping[str, TableClassifier],
    table: Any,
    target: str,
    *,
    sample_weight: ArrayLike | None = None,
    n_folds: int = 5,
    depths: Sequence[int] | None = None,
    random_state: int = 0,
    announce: Callable[[str], None] | None = None,
    verbose: bool = False,
) -> tuple[TableClassifier, list[Trial]]:
    """Compare models in cross-validation, and fit the cheapest one to all rows.

    Parameters
    ----------
    models : mapping of str to TableClassifier
        What to compare, at most 20 models; they are not changed. Of those that cost the same, the
        first is taken.
    table : DataFrame
        Training data. Of more than 20 000 rows about as many are used for the comparison, but all
        or at least 30 of each class.
    target : str
        The column of the classes.
    sample_weight : array-like of shape (n_rows,), optional
        Non-negative weights.
    n_folds : int, default=5
        Parts of the rows, the same for all models, each of which is decided by a model that was
        fitted to the others. Rows of a class that has fewer of them are never decided.
    depths : sequence of int, optional
        Depths of trees to choose from, in every fit anew, as in `fit_and_try`; for models without
        a `max_depth`, and for CostBoost, there is nothing to choose.
    random_state : int, default=0
        Which rows are in which part.
    announce : callable, optional
        Called with a sentence before the last fit.
    verbose : bool, default=False
        Whether to show a progress bar for each model.

    Returns
    -------
    model : TableClassifier
        The cheapest model, fitted to all rows. Its ``held_out_`` has the figures of the
        cross-validation.
    trials : list of Trial
        What each model cost, in the order of `models`.

    Examples
    --------
    >>> from badacost import BAdaCostClassifier, SAMMEClassifier
    >>> from badacost.datasets import find_dataset
    >>> from badacost.tabular import TableClassifier, fit_cheapest
    >>> wine = find_dataset("wine")
    >>> models = {
    ...     name: TableClassifier(classifier, cost_matrix=wine.example_costs())
    ...     for name, classifier in {
    ...         "with costs": BAdaCostClassifier(n_estimators=20),
    ...         "without": SAMMEClassifier(n_estimators=1, max_depth=1),
    ...     }.items()
    ... }
    >>> model, trials = fit_cheapest(models, wine.load(), wine.target)
    >>> [trial.average_cost < 0.3 for trial in trials]
    [True, False]
    >>> type(model.estimator_).__name__, model.n_rows_
    ('BAdaCostClassifier', 178)
    """
    if not 1 <= len(models) <= MAX_RIVALS:
        raise ValueError(f"there are {len(models)} models to compare: name 1 to {MAX_RIVALS}.")
    check_number("n_folds", n_folds, Integral, low=2)
    width = max(map(len, models))
    tried = {}
    for name, model in models.items():
        bar = ProgressBar(n_folds, f"{name:<{width}}") if verbose else None
        data = EncodedTable.of(model, table, target, sample_weight)
        tried[name] = _cross_validated(model, data, n_folds, depths, random_state, bar)
    runs = list(tried.values())
    if not all(np.array_equal(run.charged, runs[0].charged) for run in runs):
        raise ValueError("models with different costs cannot be compared: give all the same.")
    best = min(tried, key=lambda name: tried[name].average_cost)
    if announce is not None:
        announce(f"{best} is cheapest; fitting it to all {len(data.labels)} rows.")
    data = EncodedTable.of(models[best], table, target, sample_weight)
    fitted = data.fit(_tuned(models[best], data, depths, random_state))
    fitted.held_out_ = CostSummary.of(
        runs[0].truth,
        tried[best].answers,
        fitted.charged_costs_,
        classes=fitted.classes_,
        sample_weight=runs[0].weight,
        rivals={name: run.answers for name, run in tried.items() if name != best},
    )
    trials = [
        Trial(name, run.average_cost, run.standard_error, run.seconds)
        for name, run in tried.items()
    ]
    return fitted, trials


@dataclass(frozen=True, eq=False)
class _Run:
    """Decisions of a model on rows that it was not fitted to, and what they cost."""

    truth: NDArray[Any]
    answers: NDArray[Any]
    weight: FloatArray
    paid: FloatArray
    charged: FloatArray
    seconds: float

    @property
    def average_cost(self) -> float:
        return float(np.average(self.paid, weights=self.weight))

    @property
    def standard_error(self) -> float:
        spread = self.weight * (self.paid - self.average_cost)
        return float(np.sqrt((spread**2).sum()) / self.weight.sum())


def _cross_validated(
    model: TableClassifier,
    data: EncodedTable,
    n_folds: int,
    depths: Sequence[int] | None,
    seed: int,
    bar: ProgressBar | None,
) -> _Run:
    """Decide each part of the rows by a model that was fitted to the others."""
    begin = time.perf_counter()
    rng = np.random.default_rng(seed)
    data = data.sample(rng)
    folds = deal_folds(data.labels, n_folds, rng)
    if not (folds >= 0).any():
        raise ValueError(
            f"no class has {n_folds} rows, one for each part of a comparison: add rows, or compare "
            "with fewer parts."
        )
    answers = np.empty_like(data.labels)
    for fold in range(n_folds):
        kept, tried = data.only(folds != fold), data.only(folds == fold)
        fitted = kept.fit(_tuned(model, kept, depths, seed))
        answers[folds == fold] = fitted._decide(tried.features)
        if bar is not None:
            bar.update(fold + 1)
    if bar is not None:
        bar.close()
    decided = data.only(folds >= 0)
    answers = answers[folds >= 0]
    truth, chosen = (positions_in(fitted.classes_, part) for part in (decided.labels, answers))
    return _Run(
        decided.labels,
        answers,
        check_sample_weight(decided.weight, len(answers)),
        Prices(fitted.charged_costs_).paid(truth, chosen),
        fitted.charged_costs_,
        time.perf_counter() - begin,
    )


def _tuned(
    model: TableClassifier, data: EncodedTable, depths: Sequence[int] | None, seed: int
) -> TableClassifier:
    """The model with the cheapest depth of trees, where there is one to choose."""
    return with_best_depth(
        model, data, depths if hasattr(model.estimator, "max_depth") else None, seed
    )
