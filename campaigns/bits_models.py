"""Small models of every estimator and detector, as digests of their files and of their answers."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB

import badacost
from badacost.detection import train_detector
from badacost.detection.training.config import ALGORITHMS
from badacost.tabular import TableClassifier
from campaigns.plain import n_classes_of, saved
from campaigns.tiny_training import TINY, VIEWS, tiny_scenes

_BOOSTERS = {
    "AdaBoostM1Classifier": {},
    "SAMMEClassifier": {},
    "CSAdaBoostClassifier": {},
    "CostGeneralizedAdaBoostClassifier": {},
    "AdaC2M1Classifier": {},
    "BAdaCostClassifier": {},
    "PIBoostClassifier": {},
    "LpCSBClassifier": {},
    "WangMultiBoostClassifier": {"n_pool": 24},
    "CostBoostClassifier": {"n_folds": 3},
}
_ROWS, _FEATURES = 2500, 100  # so many that threads share the search for a split


@cache
def _samples(n_classes: int) -> tuple[Any, Any, Any]:
    """Return samples with missing values and categories, classes, and weights, some of them 0."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(_ROWS, _FEATURES))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.6, 0.8][: n_classes - 1])
    X[:, 3] = rng.integers(0, 6, _ROWS) + y
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, y, rng.integers(0, 4, _ROWS) / 2.0


def _costs(n_classes: int) -> Any:
    costs = np.random.default_rng(0).uniform(1.0, 3.0, (n_classes, n_classes))
    return costs * (1.0 - np.eye(n_classes))


def _booster(name: str, n_jobs: int, *, is_random: bool) -> str:
    kind, n_classes = getattr(badacost, name), n_classes_of(name)
    X, y, weight = _samples(n_classes)
    known = kind().get_params()
    given: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "n_jobs": n_jobs, **_BOOSTERS[name]}
    if "cost_matrix" in known:
        given["cost_matrix"] = _costs(n_classes)
    given["random_state"] = 0
    if is_random:
        wanted = {
            "categorical_features": [3],
            "subsample": 0.7,
            "max_features": 0.5,
            "early_stopping": True,
        }
        given |= {key: value for key, value in wanted.items() if key in known}
    model = kind(**given)
    model.fit(X, y, weight if is_random else None)
    return digest(model, X[:700])


def _tree(n_jobs: int) -> str:
    X, y, weight = _samples(3)
    model = badacost.CostSensitiveTreeClassifier(_costs(3), max_depth=5, n_jobs=n_jobs)
    return digest(model.fit(X, y, weight), X[:700])


def _minimum_cost(inner: Any, n_jobs: int) -> str:
    X, y, _ = _samples(3)
    X = np.nan_to_num(X[:600])
    estimator = inner(n_jobs) if inner is not None else GaussianNB()
    model = badacost.MinimumCostClassifier(
        estimator, _costs(3), calibration="temperature", cv=3, random_state=0
    ).fit(X, y[:600])
    if inner is None:  # scikit-learn's is not saved
        return hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest()
    return digest(model, X)


def _small_booster(n_jobs: int) -> Any:
    return badacost.BAdaCostClassifier(n_estimators=3, max_depth=2, n_jobs=n_jobs)


def _table(n_jobs: int) -> str:
    import pandas as pd

    X, y, weight = _samples(3)
    frame = pd.DataFrame(X[:, :6], columns=list("abcdef"))
    frame["d"] = frame["d"].map(lambda code: f"kind {code:.0f}", na_action="ignore")
    inner = badacost.CostBoostClassifier(n_estimators=3, n_folds=3, n_jobs=n_jobs, random_state=0)
    model = TableClassifier(inner, cost_matrix=_costs(3)).fit(frame, y, weight)
    return digest(model, frame[:700])


def _imported(n_jobs: int) -> str:
    from lightgbm import LGBMClassifier

    X, y, _ = _samples(3)
    booster = LGBMClassifier(n_estimators=3, n_jobs=1, deterministic=True, verbose=-1)
    model = badacost.ImportedForestClassifier(booster, _costs(3), n_jobs=n_jobs)
    return digest(model.fit(X[:, :5], y), X[:700, :5])


def _detector(algorithm: Any, n_jobs: int) -> str:
    scenes, config = tiny_scenes(), replace(TINY, algorithm=algorithm)
    detector = train_detector(scenes, VIEWS, config, n_jobs=n_jobs)
    digest = hashlib.sha256(saved(detector))
    for scene in scenes[:2]:
        found = detector.detect(scene.load(), n_jobs=n_jobs)
        for array in (found.boxes, found.scores, found.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def digest(model: Any, X: Any) -> str:
    """Return a digest of the file of a fitted model, but for its n_jobs, and of its answers."""
    found = hashlib.sha256()
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            found.update(np.ascontiguousarray(getattr(model, method)(X)).astype(str).tobytes())
    for name in ("", "estimator", "estimator_"):
        part: Any = getattr(model, name) if hasattr(model, name) else model
        if hasattr(part, "n_jobs"):
            part.n_jobs = None
    found.update(saved(model))
    return found.hexdigest()


MODELS: dict[str, Callable[[int], str]] = {
    **{name: partial(_booster, name, is_random=False) for name in _BOOSTERS},
    **{f"{name}, random": partial(_booster, name, is_random=True) for name in _BOOSTERS},
    "CostSensitiveTreeClassifier": _tree,
    "MinimumCostClassifier": partial(_minimum_cost, None),
    "MinimumCostClassifier, BAdaCost": partial(_minimum_cost, _small_booster),
    "TableClassifier": _table,
    "ImportedForestClassifier": _imported,
    **{f"detector, {name}": partial(_detector, name) for name in ALGORITHMS},
}


def digests(names: tuple[str, ...], n_jobs: int) -> dict[str, str]:
    """Fit models, and return their digests; what went wrong is in the place of a digest."""
    logging.getLogger("badacost").setLevel(logging.ERROR)  # so few windows make poor detectors
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # these are only a few rounds
        for name in names:
            try:
                found[name] = MODELS[name](n_jobs)
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found
