"""The published training runs, with what their steps and labels imply."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Run:
    """One run of the authors' classifier: data, costs, and every round's step and labels (1..K)."""

    X: np.ndarray
    y: np.ndarray
    costs: np.ndarray
    beta: np.ndarray
    weak_pred: np.ndarray
    strong_pred: np.ndarray
    last_weights: np.ndarray

    @property
    def margins(self) -> np.ndarray:
        """Margin vectors after each round: the codes of the labels so far, times their steps."""
        n_classes = len(self.costs)
        codes = np.where(np.eye(n_classes, dtype=bool), 1.0, -1.0 / (n_classes - 1))
        return np.cumsum(self.beta[:, None, None] * codes[self.weak_pred - 1], axis=0)

    @property
    def scores(self) -> np.ndarray:
        """Costs of each class after each round, (rounds, samples, classes)."""
        costs = self.costs / max(1.0, self.costs.max())
        return self.margins @ (costs - np.diag(costs.sum(axis=1))).T

    @property
    def weights(self) -> np.ndarray:
        """Weights of the samples after each round, by the paper's formula."""
        own = np.exp(self.scores[:, np.arange(len(self.y)), self.y - 1])
        return own / own.sum(axis=1, keepdims=True)


def read_run(path: Path, name: str) -> Run:
    """Read the run `name` of the file of a data set."""
    with np.load(path) as stored:
        number = stored["runs"].tolist().index(name)
        arrays = {
            key: stored[key][number] for key in ("beta", "weak_pred", "strong_pred", "last_weights")
        }
        costs = stored[name.split("_")[0].replace("cost", "costs_")]
        return Run(stored["X"], stored["y"], costs, **arrays)
