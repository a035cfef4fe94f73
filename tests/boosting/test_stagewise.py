"""Stages, the rounds they come from, and the one forest that they make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from badacost.boosting.stagewise import Rounds, Stage, join_stages
from badacost.tree.forest import Tree
from tests.forests import assert_same_forest

A, B, C = (np.arange(6.0).reshape(3, 2) * factor + 1 for factor in (1, 2, 3))


def stage(table: np.ndarray, *values: int, reason: str | None = None) -> Stage:
    """A stage of trees of one leaf, which has a row of the table."""
    trees = [
        Tree(
            feature=np.zeros(1, np.int32),
            threshold=np.full(1, np.nan),
            left=np.zeros(1, np.int32),
            missing_left=np.ones(1, bool),
            value=np.array([value], np.int32),
            gain=np.zeros(1, np.float32),
            count=np.ones(1, np.int32),
            weight=np.ones(1, np.float32),
        )
        for value in values
    ]
    steps = [0.5 + i for i in range(len(values))]
    return Stage(trees, steps, [np.array([v, 0]) for v in values], table, reason)


def scores_of(stages: list[Stage]) -> np.ndarray:
    """What all leaves add to the scores of a sample."""
    return sum(
        step * part.table[tree.value[0]]
        for part in stages
        for tree, step in zip(part.models, part.steps, strict=True)
    )


class Counting:
    """A descent that hands out stages, and takes notes."""

    weights = np.full(2, 0.5)

    def __init__(self, *stages: Stage):
        self.stages, self.advanced = stages, []

    def fit(self, n_done: int) -> Stage:
        return self.stages[n_done]

    def advance(self, stage: Stage) -> None:
        self.advanced.append(stage)


@pytest.mark.parametrize(
    ("stages", "n_rows"),
    [
        ([stage(A, 2)], 3),
        ([stage(A, 2), stage(A, 0, 1)], 3),
        ([stage(A, 2), stage(A.copy(), 0)], 3),
        ([stage(A, 2), stage(B, 1, 2)], 6),
        ([stage(A, 2), stage(B, 1), stage(A, 0)], 9),
        ([stage(A, 2), stage(A[1:].copy(), 1)], 3),
        ([stage(A[1:].copy(), 1), stage(A, 2)], 5),
        ([stage(A, 2), stage(B, 0), stage(np.concatenate([A, B]), 5)], 6),
    ],
)
def test_tables_follow_each_other_and_are_not_repeated(stages, n_rows) -> None:
    forest = join_stages(stages, n_features=1)
    assert len(forest.table) == n_rows
    assert forest.n_trees == sum(len(part.models) for part in stages)
    np.testing.assert_allclose(forest.accumulate(np.zeros((1, 1)))[0], scores_of(stages))


def test_a_forest_is_the_same_whenever_it_was_joined() -> None:
    """The stages of an earlier fit come back with the table of all of them."""
    stages = [stage(table, i % 2) for i, table in enumerate([A, A, B, C, C, A, A[1:], B, B])]
    whole = join_stages(stages, 1)
    for n_before in range(1, len(stages)):
        first = join_stages(stages[:n_before], 1)
        earlier = [
            Stage([tree], [step], [], first.table)
            for tree, step in zip(first.trees(), first.tree_weights, strict=True)
        ]
        assert_same_forest(join_stages(earlier + stages[n_before:], 1), whole)


def test_rounds_keep_no_rows() -> None:
    """Which would be as many numbers as there are samples, for every round."""
    descent = Counting(stage(A, 0), stage(A, 1))
    rounds = Rounds(descent)
    for n_done in range(2):
        new = rounds.fit()
        assert new is descent.stages[n_done]
        rounds.add(new)
        assert descent.advanced[-1] is new
    assert [part.rows for part in rounds.stages] == [[], []]
    assert [part.models for part in rounds.stages] == [part.models for part in descent.stages]


def test_a_useless_stage_is_only_kept_as_the_first() -> None:
    useless = stage(A, 0, reason="useless")
    assert Rounds(Counting(useless)).fit() is useless
    assert Rounds(Counting(stage(A, 0), useless), [stage(A, 0)]).fit() is None
    perfect = replace(useless, reason="perfect")
    assert Rounds(Counting(stage(A, 0), perfect), [stage(A, 0)]).fit() is perfect


def test_scores_of_some_samples() -> None:
    scores = np.ones((2, 2))
    part = stage(A, 2, 1)
    part.add_to(scores)
    np.testing.assert_allclose(scores, 1 + 0.5 * A[[2, 0]] + 1.5 * A[[1, 0]])
    one = np.ones((1, 2))
    part.add_to(one, np.array([1]))
    np.testing.assert_array_equal(one, scores[1:])
