"""Samples, costs and models for the tests of reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from badacost import BAdaCostClassifier

COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 30.0], [7.0, 5.0, 0.0]])  # C[truth, prediction]
ONE_WAY = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [3.0, 5.0, 0.0]])  # gives no probabilities


def noisy(n: int = 240, n_classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of which the first feature tells the class, more or less."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += y
    return X, y


def booster(costs: Any = COSTS, **options: Any) -> BAdaCostClassifier:
    """A booster that is quickly fitted."""
    options = {"n_estimators": 8, "max_depth": 2, "random_state": 0, **options}
    return BAdaCostClassifier(costs, **options)
