"""Rounds of boosting: an algorithm fits stages, and moves on by them.

This is all that classifiers and the boosters of detectors share with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from badacost.arrays import FloatArray, RowNumbers
from badacost.tree.binning import BinMapper
from badacost.tree.forest import Forest


@dataclass(frozen=True, eq=False)
class Stage:
    """What a round adds to the model.

    Attributes
    ----------
    models : list of trees or estimators
        The weak learners of the round; most algorithms have one.
    steps : list of float
        Their weights, shrinkage included.
    rows : list of ndarray of shape (n_samples,)
        For each of them, the row of the table that it gives to each training sample.
    table : ndarray of shape (n_rows, n_outputs)
        Scores of the answers, for a step of one.
    reason : {"perfect", "useless"} or None
        Why no round can follow; the learners of a "useless" stage are not worth keeping.
    """

    models: list[Any]
    steps: list[float]
    rows: Sequence[RowNumbers]
    table: FloatArray
    reason: str | None = None

    def add_to(self, scores: FloatArray, chosen: RowNumbers | slice = slice(None)) -> None:
        """Add the scores of the answers to those of some samples."""
        for step, rows in zip(self.steps, self.rows, strict=True):
            scores += np.take(step * self.table, rows[chosen], axis=0)


class Descent(Protocol):
    """A boosting algorithm at work on its training samples."""

    @property
    def weights(self) -> FloatArray:
        """Weights of the samples in the round to come, summing to one."""

    def fit(self, n_done: int) -> Stage:
        """Fit the stage that follows `n_done` rounds, without moving on."""

    def advance(self, stage: Stage) -> None:
        """Move on by a stage, a new one or one of an earlier fit."""


class Rounds:
    """The stages of a descent so far, those of an earlier fit included."""

    def __init__(self, descent: Descent, earlier: list[Stage] | None = None):
        self.descent = descent
        self.stages = earlier or []

    def fit(self) -> Stage | None:
        """The next stage; None if it is useless, unless it is the first."""
        stage = self.descent.fit(len(self.stages))
        return None if stage.reason == "useless" and self.stages else stage

    def add(self, stage: Stage) -> None:
        """Move on; what a stage says on the training samples is not kept."""
        self.descent.advance(stage)
        self.stages.append(replace(stage, rows=[]))


def join_stages(stages: list[Stage], n_features: int, mapper: BinMapper | None = None) -> Forest:
    """One forest of the trees of all stages; a table that repeats the last rows is left out."""
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
