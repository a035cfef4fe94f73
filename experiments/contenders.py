"""Classifiers with default parameters, by name: those of the contest with the rivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from badacost._utils.arrays import FloatArray, Positions
from badacost.classifiers.minimum_cost import MinimumCostClassifier

N_FOLDS = 5  # of calibrations
N_CROSS_FITS = 8  # as many as CostBoost has for so few samples
PATIENCE = 30
MAX_ROUNDS = 1000


class Calibrated:
    """A classifier with a temperature, fitted to parts that it was not trained on.

    Folds are as many as the rarest class has samples, at most 5, and none where that is one;
    `n_parts` is the maximum number of them that are left out in turn.
    """

    def __init__(self, estimator: Any, seed: int, n_parts: int):
        self.estimator, self.seed, self.n_parts = estimator, seed, n_parts

    def fit(self, X: FloatArray, y: Positions) -> None:
        """Fit the temperature, then the classifier."""
        self.n_folds = min(N_FOLDS, int(np.bincount(y).min()))
        calibrates = self.n_folds > 1
        self.model = MinimumCostClassifier(
            self.estimator,
            calibration="temperature" if calibrates else "none",
            cv=_folds(self.n_folds, X, y, self.seed)[: self.n_parts] if calibrates else None,
        ).fit(X, y)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        return self.model.predict_proba(X)


class CrossFitted:
    """A booster fitted without each of the folds, where it stops early; the mean of raw scores.

    `fit_one` fits it to a training part, with a part to stop by, and returns its raw scores.
    """

    def __init__(self, fit_one: FitOne, seed: int, n_threads: int, n_rounds: int = MAX_ROUNDS):
        self.fit_one, self.seed = fit_one, seed
        self.n_threads, self.n_rounds = n_threads, n_rounds

    def fit(self, X: FloatArray, y: Positions) -> None:
        """Fit a booster without each fold."""
        self.boosters = [
            self.fit_one((X[train], y[train]), (X[test], y[test]), int(y.max()) + 1, self)
            for train, test in _folds(N_CROSS_FITS, X, y, self.seed)
        ]

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probabilities of the mean scores."""
        return np.asarray(softmax(np.mean([scores(X) for scores in self.boosters], axis=0), axis=1))


Part = tuple[FloatArray, Positions]
FitOne = Callable[[Part, Part, int, CrossFitted], Callable[[FloatArray], FloatArray]]


def _fit_lightgbm(train: Part, test: Part, n_classes: int, of: CrossFitted) -> Any:
    import lightgbm

    parameters = {
        "objective": "multiclass", "num_class": n_classes, "seed": of.seed,
        "num_threads": of.n_threads, "verbosity": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(*train)
    stops = lightgbm.early_stopping(PATIENCE, verbose=False)
    unseen = [data.create_valid(*test)]
    booster = lightgbm.train(parameters, data, of.n_rounds, valid_sets=unseen, callbacks=[stops])
    return partial(booster.predict, raw_score=True)


def _fit_xgboost(train: Part, test: Part, n_classes: int, of: CrossFitted) -> Any:
    import xgboost

    parameters = {
        "objective": "multi:softprob", "num_class": n_classes, "seed": of.seed,
        "nthread": of.n_threads,
    }  # fmt: skip
    unseen = xgboost.DMatrix(*test)
    booster = xgboost.train(
        parameters, xgboost.DMatrix(*train), of.n_rounds, evals=[(unseen, "unseen")],
        early_stopping_rounds=PATIENCE, verbose_eval=False,
    )  # fmt: skip
    rounds = (0, booster.best_iteration + 1)
    return lambda X: booster.predict(xgboost.DMatrix(X), output_margin=True, iteration_range=rounds)


def _fit_catboost(train: Part, test: Part, n_classes: int, of: CrossFitted) -> Any:
    import catboost

    booster = catboost.CatBoostClassifier(
        iterations=of.n_rounds, loss_function="MultiClass", classes_count=n_classes,
        random_seed=of.seed, thread_count=of.n_threads, verbose=False, allow_writing_files=False,
        early_stopping_rounds=PATIENCE,
    )  # fmt: skip
    booster.fit(*train, eval_set=test)
    return partial(booster.predict, prediction_type="RawFormulaVal")


def _folds(n_folds: int, X: FloatArray, y: Positions, seed: int) -> list[tuple[Any, Any]]:
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))


def _logistic_regression(seed: int, n_threads: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))


@dataclass(frozen=True)
class Contender:
    """An algorithm: how it is made from a seed and a number of threads, and what it is.

    `package` is the module whose version counts, `rounds` the name of the parameter that limits
    boosting rounds, `weight` the rough time of a fit relative to LightGBM's. With `takes_costs` it
    is fitted for each kind of costs; with `own_rule` its decisions are its own, else they follow
    from its probabilities. Those with `timed` are tried on several threads.
    """

    make: Callable[..., Any]
    package: str
    rounds: str | None = "n_estimators"
    weight: float = 1.0
    takes_costs: bool = False
    own_rule: bool = False
    timed: bool = False


def _of(
    path: str,
    *,
    threads: str | None = "n_jobs",
    fixed: Mapping[str, Any] = MappingProxyType({}),
    n_parts: int = 0,
    **about: Any,
) -> Contender:
    """Return the contender of a class; with `n_parts` it is calibrated."""

    def make(seed: int, n_threads: int, **more: Any) -> Any:
        given = {} if threads is None else {threads: n_threads}
        model = resolve_name(path)(random_state=seed, **given, **fixed, **more)
        return Calibrated(model, seed, n_parts) if n_parts else model

    return Contender(make, path.partition(".")[0].partition(":")[0], **about)


def _cross_fitted(fit_one: FitOne, package: str, weight: float) -> Contender:
    return Contender(partial(CrossFitted, fit_one), package, "n_rounds", weight=weight)


def _chimeraboost(fixed: Mapping[str, Any] = MappingProxyType({}), *, weight: float) -> Contender:
    path = "chimeraboost:ChimeraBoostClassifier"
    return _of(path, threads="thread_count", fixed=fixed, weight=weight)


_lightgbm = partial(_of, "lightgbm:LGBMClassifier", fixed={"verbose": -1})
_catboost = partial(
    _of,
    "catboost:CatBoostClassifier",
    threads="thread_count",
    rounds="iterations",
    fixed={"verbose": False, "allow_writing_files": False},
)
CONTENDERS: dict[str, Contender] = {
    "CostBoost": _of("badacost:CostBoostClassifier", weight=2.0, timed=True),
    "CostBoost 1 fold": _of("badacost:CostBoostClassifier", fixed={"n_folds": 1}, timed=True),
    "BAdaCost": _of("badacost:BAdaCostClassifier", takes_costs=True, own_rule=True),
    "BAdaCost bayes": _of("badacost:BAdaCostClassifier", takes_costs=True),
    "CatBoost": _catboost(weight=20.0, timed=True),
    "CatBoost calibrated": _catboost(n_parts=1, weight=40.0),
    "LightGBM": _lightgbm(timed=True),
    "LightGBM calibrated": _lightgbm(n_parts=N_FOLDS, weight=6.0),
    "CatBoost cross-fitted": _cross_fitted(_fit_catboost, "catboost", weight=80.0),
    "LightGBM cross-fitted": _cross_fitted(_fit_lightgbm, "lightgbm", weight=9.0),
    "XGBoost cross-fitted": _cross_fitted(_fit_xgboost, "xgboost", weight=9.0),
    "ChimeraBoost": _chimeraboost(weight=5.0),
    "ChimeraBoost quality 5": _chimeraboost({"quality": 5}, weight=40.0),
    "EBM": _of(
        "interpret.glassbox:ExplainableBoostingClassifier", rounds="max_rounds", weight=40.0
    ),
    "XGBoost": _of("xgboost:XGBClassifier", timed=True),
    "HistGradientBoosting": _of(
        "sklearn.ensemble:HistGradientBoostingClassifier",
        threads=None,
        rounds="max_iter",
        timed=True,
    ),
    "Random forest": _of("sklearn.ensemble:RandomForestClassifier", weight=0.5, timed=True),
    "Extra trees": _of("sklearn.ensemble:ExtraTreesClassifier", weight=0.5),
    "Logistic regression": Contender(_logistic_regression, "sklearn", rounds=None, weight=0.5),
}
CONTROL = "CostBoost"
