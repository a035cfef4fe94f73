"""The same model from the same samples: in any order, and with any number of threads.

Sums are exact, so that no bit depends on how the samples are arranged or divided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from badacost._utils.parallel import Threads
from badacost.boosting import cross_fit
from badacost.classifiers import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
)
from badacost.classifiers.training_data import SampleSet, Task
from badacost.family import (
    AdaBoostM1Classifier,
    AdaC2M1Classifier,
    CostGeneralizedAdaBoostClassifier,
    CSAdaBoostClassifier,
    LpCSBClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
)
from badacost.family.wang_multiboost import PoolDescent
from badacost.tree import grower, threaded_growth
from tests.forests import assert_same_forest

CASES: list[tuple[Any, dict[str, Any]]] = [
    (AdaBoostM1Classifier, {}),
    (SAMMEClassifier, {}),
    (CSAdaBoostClassifier, {}),
    (CostGeneralizedAdaBoostClassifier, {}),
    (AdaC2M1Classifier, {}),
    (BAdaCostClassifier, {}),
    (BAdaCostClassifier, {"decision": "bayes", "scoring": "loss", "n_refinements": 2}),
    (BAdaCostClassifier, {"criterion": "entropy", "max_leaf_nodes": 9, "max_depth": None}),
    (BAdaCostClassifier, {"binning": "uniform", "min_samples_leaf": 5}),
    (BAdaCostClassifier, {"binning": "exact", "max_depth": 9}),
    (PIBoostClassifier, {}),
    (PIBoostClassifier, {"subsets": 2, "criterion": "entropy"}),
    (LpCSBClassifier, {}),
    (LpCSBClassifier, {"step": "line_search", "p": 2.0, "learning_rate": 1.0}),
    (CostBoostClassifier, {"early_stopping": False}),
    (CostBoostClassifier, {"early_stopping": False, "tree": "best", "n_folds": 2}),
    (CostBoostClassifier, {"early_stopping": False, "n_folds": 1, "binning": "uniform"}),
    (CostSensitiveTreeClassifier, {}),
    (CostSensitiveTreeClassifier, {"criterion": "entropy", "max_leaf_nodes": 20}),
]
EVERY = pytest.mark.parametrize(
    ("cls", "parameters"), CASES, ids=[f"{cls.__name__}-{'-'.join(p)}" for cls, p in CASES]
)
FITTED = ("estimator_weights_", "train_score_", "validation_score_", "classes_", "cost_matrix_")


def is_binary(cls) -> bool:
    return not cls().__sklearn_tags__().classifier_tags.multi_class


def samples(n: int, n_classes: int, seed: int = 0):
    """Noisy classes; values that repeat and values that are missing; weights of all sizes."""
    rng = np.random.default_rng([seed, n_classes])
    X = rng.normal(size=(n, 9))
    y = (X[:, :n_classes] + 0.7 * rng.normal(size=(n, n_classes))).argmax(axis=1)
    X[:, 4:] = np.round(X[:, 4:], 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, np.exp(rng.normal(0.0, 2.0, n))


def make(cls, n_classes: int, **parameters):
    """An instance without chance, with asymmetric costs where it takes any."""
    known = cls().get_params()
    costs = np.random.default_rng(n_classes).uniform(1, 4, (n_classes, n_classes))
    settings = {"max_depth": 5, "random_state": 0}
    if "cost_matrix" in known:
        settings["cost_matrix"] = costs * (1 - np.eye(n_classes))
    if "n_estimators" in known:
        settings["n_estimators"] = 6
    return cls(**{**settings, **parameters})


def fit(model, data, validation=None):
    """Fit, with validation data where the model takes any."""
    given = {}
    if validation is not None and hasattr(model, "n_estimators"):
        given = dict(zip(("X_val", "y_val", "sample_weight_val"), validation, strict=True))
    return model.fit(*data, **given)


def assert_same_model(one, other) -> None:
    """Equal to the last bit."""
    assert_same_forest(one.forest_, other.forest_)
    for name in FITTED:
        if hasattr(one, name):
            mine, theirs = getattr(one, name), getattr(other, name)
            np.testing.assert_array_equal(mine, theirs, strict=True, err_msg=name)
    assert getattr(one, "stop_reason_", None) == getattr(other, "stop_reason_", None)


@EVERY
def test_order_of_the_samples(cls, parameters) -> None:
    n, n_classes = 1500, 2 if is_binary(cls) else 4
    data, validation = samples(n, n_classes), samples(300, n_classes, seed=1)
    first = fit(make(cls, n_classes, **parameters), data, validation)
    assert getattr(first, "n_estimators_", 6) == 6
    rng = np.random.default_rng(2)
    for _ in range(2):
        order, order_val = rng.permutation(n), rng.permutation(300)
        other = fit(
            make(cls, n_classes, **parameters),
            [part[order] for part in data],
            [part[order_val] for part in validation],
        )
        assert_same_model(first, other)
    np.testing.assert_array_equal(first.predict(data[0][order]), first.predict(data[0])[order])


@pytest.mark.parametrize("random", [False, True], ids=["all", "drawn"])
@EVERY
def test_number_of_threads(cls, parameters, random, monkeypatch) -> None:
    """With enough features for the threads to share a search, and few rows worth sharing it."""
    monkeypatch.setattr(grower, "THREADS_FROM", 5_000)
    monkeypatch.setattr(threaded_growth, "_GRAIN", 2_500)
    monkeypatch.setattr(threaded_growth, "_MIN_BLOCK", 50)
    monkeypatch.setattr(cross_fit, "_MIN_ROWS", 100)
    n_classes = 2 if is_binary(cls) else 4
    (X, y, weight), validation = samples(600, n_classes), samples(300, n_classes, seed=1)
    X, X_val = (np.tile(part, 7) + np.arange(63) % 5 * 1e-3 for part in (X, validation[0]))
    drawn = {"max_features": 0.5, "subsample": 0.7} if random else {}
    if not hasattr(cls(), "subsample"):
        drawn.pop("subsample", None)
    first, *others = (
        fit(
            make(cls, n_classes, n_jobs=n_jobs, **{**parameters, **drawn}),
            (X, y, weight),
            (X_val, *validation[1:]),
        )
        for n_jobs in (1, 2, 3)
    )
    for other in others:
        assert_same_model(first, other)
        np.testing.assert_array_equal(other.predict(X), first.predict(X))


def test_number_of_threads_of_a_pool() -> None:
    X, y, weight = samples(1500, 4)
    first, *others = (
        make(WangMultiBoostClassifier, 4, n_pool=20, n_jobs=n_jobs).fit(X, y, weight)
        for n_jobs in (1, 2, 3)
    )
    for other in others:
        assert_same_model(first, other)


@pytest.mark.parametrize("n_classes", [2, 4, 300])
def test_order_of_the_samples_of_a_pool(n_classes) -> None:
    """Members are grown on rows drawn by their numbers; what follows is free of any order."""
    rng = np.random.default_rng(n_classes)
    n, n_members = 1000, 40
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    answers = rng.integers(n_classes, size=(n, n_members))
    answers = np.where(rng.random((n, n_members)) < 0.4, y[:, np.newaxis], answers)
    labels = answers.astype(np.min_scalar_type(n_classes - 1))
    weight = np.exp(rng.normal(0.0, 2.0, n))
    costs = rng.uniform(1, 4, (n_classes, n_classes)) * (1 - np.eye(n_classes))

    def descend(order, n_jobs: int) -> list[Any]:
        """Fractions of costs, choices and steps of some rounds."""
        threads = Threads(n_jobs)
        samples = SampleSet(answers[order])
        task = Task(samples, y[order], weight[order], None, threads, weight > 0.0)
        descent = PoolDescent(list(range(n_members)), labels[order], task, costs, 0.7)
        history = [descent.cost_fractions.tobytes()]
        for number in range(8):
            stage = descent.fit(number)
            descent.advance(stage)
            history += [descent.cost_fractions.tobytes(), stage.models, stage.steps]
        return history

    first = descend(np.arange(n), 1)
    for n_jobs in (1, 2, 3):
        assert descend(rng.permutation(n), n_jobs) == first
