"""What the tests of the displays share: a backend without windows, and no figure left open."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import make_classification

from badacost import BAdaCostClassifier
from badacost.costs import labelled_costs

matplotlib.use("Agg")

COSTS = np.array([[0.0, 1.0, 7.0], [2.0, 0.0, 3.0], [11.0, 5.0, 0.0]])  # C[truth, prediction]
CLASSES = np.array(["ant", "bee", "cat"])


@pytest.fixture(autouse=True)
def _no_open_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def samples() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        200, 5, n_informative=3, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=0
    )
    return X, CLASSES[y]


@pytest.fixture(scope="session")
def costs() -> np.ndarray:
    return COSTS.copy()


@pytest.fixture(scope="session")
def model(samples, costs) -> BAdaCostClassifier:
    X, y = samples
    return BAdaCostClassifier(labelled_costs(costs, CLASSES), n_estimators=12, max_depth=2).fit(
        X[:120], y[:120], X_val=X[120:], y_val=y[120:]
    )
