"""Samples whose scores are looked at after every round: how good they are, and when to stop."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.boosting.rounds import Stage
from badacost.exact_sums import exact_sum


class Followed(metaclass=ABCMeta):
    """Samples that are looked at after every round.

    Attributes
    ----------
    curve, losses : list of float
        Score and loss after each round, lower is better.
    """

    def __init__(self) -> None:
        self.curve: list[float] = []
        self.losses: list[float] = []

    @abstractmethod
    def follow(self, stage: Stage) -> None:
        """Move on by a stage, and record score and loss."""

    def best_round(self, tol: float) -> int:
        """Position of the round of the lowest score; of equal ones, that of the lowest loss."""
        curve = np.array(self.curve)
        return int(np.argmin(np.where(curve <= curve.min() + tol, self.losses, np.inf)))

    def no_progress(self, patience: int, tol: float) -> bool:
        """Whether neither score nor loss improved in the last rounds.

        Decisions, and with them their cost, may stay the same for many rounds while the scores
        move towards better ones: the loss tells this from a fit that has come to its end.
        """
        return not any(
            len(curve) <= patience or min(curve[-patience:]) < min(curve[:-patience]) - tol
            for curve in (self.curve, self.losses)
        )


class ScoredSamples(Followed):
    """Samples whose scores are followed from round to round, and how good these are.

    `rows_of` tells the rows of the table of scores that the models of a stage give to the samples,
    `measure` the score and the loss of the samples. They may have `costs` of their own.
    """

    def __init__(
        self,
        y: Labels,
        weight: FloatArray,
        n_classes: int,
        rows_of: Callable[[Stage], list[RowNumbers]],
        measure: Callable[[ScoredSamples], tuple[float, float]],
        costs: FloatArray | None = None,
    ):
        super().__init__()
        self.y = y
        self.weight = weight / weight.max()  # neither huge nor tiny, so that products keep digits
        self.costs = costs
        self.scores = np.zeros((len(y), n_classes))
        self.best_scores = self.scores
        self._rows_of, self._measure = rows_of, measure
        self._total = exact_sum(self.weight)

    def mean(self, values: FloatArray) -> float:
        """Weighted mean, which does not depend on the order of the samples."""
        return exact_sum(values * self.weight) / self._total

    def follow(self, stage: Stage) -> None:
        """Add the scores of a stage."""
        replace(stage, rows=self._rows_of(stage)).add_to(self.scores)
        score, loss = self._measure(self)
        if score < min(self.curve, default=np.inf):
            self.best_scores = self.scores.copy()
        self.curve.append(score)
        self.losses.append(loss)
