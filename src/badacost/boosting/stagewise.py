"""Rounds of boosting: the interface between algorithms and those who run them, and early stopping.

Classifiers and the boosters of detectors run rounds; algorithms are a `Descent`. A `ScoreMonitor`
has score and loss of samples after every round.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from badacost._utils.arrays import FloatArray, Labels, RowNumbers
from badacost._utils.parallel import exact_sum
from badacost.tree.binning import BinMapper
from badacost.tree.forest import Forest


@dataclass(frozen=True, eq=False)
class Stage:
    """Models that a round adds.

    Attributes
    ----------
    models : list of trees or estimators
        The weak learners of the round; most algorithms have one.
    steps : list of float
        Their weights, shrinkage included.
    rows : list of ndarray of shape (n_samples,)
        For each model, the row of the table that it gives to each training sample.
    table : ndarray of shape (n_rows, n_outputs)
        Cost scores that models refer to, for a step of one.
    reason : {"perfect", "useless"} or None
        Reason to stop: the learner makes no mistake, or it is no better than chance and is
        dropped.
    """

    models: list[Any]
    steps: list[float]
    rows: Sequence[RowNumbers]
    table: FloatArray
    reason: str | None = None

    def add_to(self, scores: FloatArray, chosen: RowNumbers | slice = slice(None)) -> None:
        """Add the scores of the stage to those of some samples."""
        for step, rows in zip(self.steps, self.rows, strict=True):
            scores += np.take(step * self.table, rows[chosen], axis=0)


class Descent(Protocol):
    """A boosting algorithm with its training samples."""

    @property
    def weights(self) -> FloatArray:
        """Weights of the samples in the next round, which sum to one."""

    def fit(self, n_done: int) -> Stage:
        """Fit the stage after `n_done` rounds; the state does not change."""

    def advance(self, stage: Stage) -> None:
        """Update the state by a stage, a new one or one of an earlier fit."""


class Rounds:
    """Stages of a descent, those of an earlier fit included."""

    def __init__(self, descent: Descent, earlier: list[Stage] | None = None):
        self.descent = descent
        self.stages = earlier or []

    def fit(self) -> Stage | None:
        """The next stage; None if it is useless, unless it is the first."""
        stage = self.descent.fit(len(self.stages))
        return None if stage.reason == "useless" and self.stages else stage

    def add(self, stage: Stage) -> None:
        """Add a stage; its rows on the training samples are not kept."""
        self.descent.advance(stage)
        self.stages.append(replace(stage, rows=[]))


def join_stages(stages: list[Stage], n_features: int, mapper: BinMapper | None = None) -> Forest:
    """Join the trees of all stages in a forest; equal tables of successive stages are one."""
    trees: list[Any] = []
    rows: list[FloatArray] = []
    first, table = 0, None
    for stage in stages:
        if stage.table is not table:
            table = stage.table
            first = len(rows) - len(table)
            if first < 0 or not np.array_equal(rows[first:], table):
                first = len(rows)
                rows += list(table)
        for tree in stage.models:
            trees.append(replace(tree, value=tree.value + np.int32(first)) if first else tree)
    steps = [step for stage in stages for step in stage.steps]
    return Forest.from_trees(trees, steps, np.array(rows), n_features, mapper)


@dataclass(frozen=True, eq=False)
class Round:
    """A finished round, for callbacks.

    Attributes
    ----------
    number : int
        Rounds so far, this one included.
    step : float
        Weight of the learner, shrinkage included; the largest where a round has several.
    train_score, validation_score : float
        Scores after the round, lower is better; the second is None without validation data.
    sample_weight : ndarray of shape (n_samples,)
        Weights of the training samples after the round, which sum to one.
    predicted : ndarray of shape (n_samples,) or None
        Classes (as positions in ``classes_``) that the learner of this round predicts for them;
        None if trees grow on a GPU or a cluster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> def watch(done):
    ...     print(f"round {done.number}: {done.train_score:.2f}, step {done.step:.2f}")
    ...     return done.train_score < 0.1  # True ends the training
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(max_depth=1, learning_rate=0.5, callbacks=[watch]).fit(X, y)
    round 1: 0.33, step 0.35
    round 2: 0.34, step 0.43
    round 3: 0.04, step 0.47
    """

    number: int
    step: float
    train_score: float
    validation_score: float | None
    sample_weight: FloatArray
    predicted: Labels | None


Callback = Callable[[Round], bool | None]


class ScoreMonitor(metaclass=ABCMeta):
    """Score and loss of samples after every round.

    Attributes
    ----------
    curve, losses : list of float
        Score and loss after each round, lower is better.
    """

    def __init__(self) -> None:
        self.curve: list[float] = []
        self.losses: list[float] = []

    @abstractmethod
    def record(self, stage: Stage) -> None:
        """Add a stage, and record score and loss."""

    def best_round(self, tol: float) -> int:
        """Index of the round with the lowest score; among equal scores, with the lowest loss."""
        curve = np.array(self.curve)
        return int(np.argmin(np.where(curve <= curve.min() + tol, self.losses, np.inf)))

    def no_progress(self, patience: int, tol: float) -> bool:
        """Whether neither score nor loss improved in the last `patience` rounds.

        Decisions, and their cost, may not change for many rounds although the fit improves: then
        the loss still decreases.
        """
        return not any(
            len(curve) <= patience or min(curve[-patience:]) < min(curve[:-patience]) - tol
            for curve in (self.curve, self.losses)
        )


def mean_and_error(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Weighted mean of values, which are not negative, and its standard error."""
    weight = weight / weight.max()  # neither huge nor tiny, so that products keep digits
    total = exact_sum(weight)
    mean, n_effective = exact_sum(values * weight) / total, total**2 / exact_sum(weight**2)
    squares = exact_sum((weight * (values - mean)) ** 2) / total**2
    error = np.sqrt(squares / (1.0 - 1.0 / n_effective)) if n_effective > 1.0 else np.nan
    return mean, float(error)


class ScoredSamples(ScoreMonitor):
    """A monitor that keeps the cost scores of its samples.

    `rows_of` returns the rows of the table of scores that the models of a stage give to the
    samples, `measure` the score and the loss of the samples. `costs` are those of each sample.
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

    def record(self, stage: Stage) -> None:
        """Add the scores of a stage."""
        replace(stage, rows=self._rows_of(stage)).add_to(self.scores)
        score, loss = self._measure(self)
        if score < min(self.curve, default=np.inf):
            self.best_scores = self.scores.copy()
        self.curve.append(score)
        self.losses.append(loss)
