"""Who takes part in the contest with the rivals: classifiers with default parameters, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from badacost.arrays import FloatArray, Positions
from badacost.boosting.badacost import BAdaCostClassifier
from badacost.decision import MinimumCostClassifier

N_FOLDS = 5  # of calibrations
N_CROSS_FITS = 8  # as many as CostBoost has for so few samples
PATIENCE = 30
MAX_ROUNDS = 1000


class Calibrated:
    """A classifier with a temperature, fitted to parts that it was not trained on.

    Folds are as many as the rarest class has samples, at most 5, and none where that is one;
    `n_parts` is the maximum number of them that are left out in turn.
    """

    def __init__(self, estimator: Any, seed: int, n_parts: int = N_FOLDS):
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
        """Calibrated probabilities."""
        return self.model.predict_proba(X)


class _CrossFitted:
    """LightGBM fitted without each of the folds, where it stops early; the mean of raw scores."""

    def __init__(self, seed: int, n_threads: int, n_rounds: int):
        self.parameters = {
            "objective": "multiclass",
            "num_threads": n_threads,
            "seed": seed,
            "verbosity": -1,
        }
        self.seed, self.n_rounds = seed, n_rounds

    def fit(self, X: FloatArray, y: Positions) -> None:
        import lightgbm

        parameters = {**self.parameters, "num_class": int(y.max()) + 1}
        self.boosters = []
        for train, test in _folds(N_CROSS_FITS, X, y, self.seed):
            data = lightgbm.Dataset(X[train], y[train])
            booster = lightgbm.train(
                parameters,
                data,
                self.n_rounds,
                valid_sets=[data.create_valid(X[test], y[test])],
                callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
            )
            self.boosters.append(booster)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        scores = [booster.predict(X, raw_score=True) for booster in self.boosters]
        return np.asarray(softmax(np.mean(scores, axis=0), axis=1))


def _folds(n_folds: int, X: FloatArray, y: Positions, seed: int) -> list[tuple[Any, Any]]:
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))


def _costboost(seed: int, n_threads: int, **more: Any) -> Any:
    from badacost.boosting.costboost import CostBoostClassifier

    return CostBoostClassifier(random_state=seed, n_jobs=n_threads, **more)


def _badacost(seed: int, n_threads: int, **more: Any) -> Any:
    return BAdaCostClassifier(random_state=seed, n_jobs=n_threads, **more)


def _catboost(seed: int, n_threads: int, **more: Any) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        random_state=seed,
        thread_count=n_threads,
        verbose=False,
        allow_writing_files=False,
        **more,
    )


def _lightgbm(seed: int, n_threads: int, **more: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=n_threads, verbose=-1, **more)


def _xgboost(seed: int, n_threads: int, **more: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=n_threads, **more)


def _hist_gradient_boosting(seed: int, n_threads: int, **more: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed, **more)


def _random_forest(seed: int, n_threads: int, **more: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed, n_jobs=n_threads, **more)


def _extra_trees(seed: int, n_threads: int, **more: Any) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(random_state=seed, n_jobs=n_threads, **more)


def _logistic_regression(seed: int, n_threads: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))


def _calibrated_catboost(seed: int, n_threads: int, **more: Any) -> Any:
    return Calibrated(_catboost(seed, n_threads, **more), seed, n_parts=1)


def _calibrated_lightgbm(seed: int, n_threads: int, **more: Any) -> Any:
    return Calibrated(_lightgbm(seed, n_threads, **more), seed)


def _cross_fitted_lightgbm(seed: int, n_threads: int, n_rounds: int = MAX_ROUNDS) -> Any:
    return _CrossFitted(seed, n_threads, n_rounds)


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


CONTENDERS: dict[str, Contender] = {
    "CostBoost": Contender(_costboost, "badacost", weight=2.0, timed=True),
    "CostBoost 1 fold": Contender(
        lambda *given, **more: _costboost(*given, n_folds=1, **more),
        "badacost",
        timed=True,
    ),
    "BAdaCost": Contender(_badacost, "badacost", takes_costs=True, own_rule=True),
    "BAdaCost bayes": Contender(_badacost, "badacost", takes_costs=True),
    "CatBoost": Contender(_catboost, "catboost", "iterations", weight=20.0, timed=True),
    "CatBoost calibrated": Contender(_calibrated_catboost, "catboost", "iterations", weight=40.0),
    "LightGBM": Contender(_lightgbm, "lightgbm", timed=True),
    "LightGBM calibrated": Contender(_calibrated_lightgbm, "lightgbm", weight=6.0),
    "LightGBM cross-fitted": Contender(_cross_fitted_lightgbm, "lightgbm", "n_rounds", weight=9.0),
    "XGBoost": Contender(_xgboost, "xgboost", timed=True),
    "HistGradientBoosting": Contender(_hist_gradient_boosting, "sklearn", "max_iter", timed=True),
    "Random forest": Contender(_random_forest, "sklearn", weight=0.5, timed=True),
    "Extra trees": Contender(_extra_trees, "sklearn", weight=0.5),
    "Logistic regression": Contender(_logistic_regression, "sklearn", rounds=None, weight=0.5),
}
CONTROL = "CostBoost"
