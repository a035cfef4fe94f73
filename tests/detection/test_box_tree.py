"""Trees of boxes: against the overlaps of all pairs, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import badacost
from badacost.detection.box_tree import BoxTree
from badacost.detection.boxes import overlaps
from badacost.io.budget import BudgetError
from campaigns.hostile_images import BOX_LAYOUTS, many_boxes

DENOMINATORS = ("union", "min", "first")


@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize("layout", BOX_LAYOUTS)
@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (1, 1), (9, 8), (150, 333)])
def test_all_answers_are_those_of_all_pairs(layout, denominator, n, m):
    queries, boxes = many_boxes(layout, max(n, 1), 1)[:n], many_boxes(layout, max(m, 1), 2)[:m]
    shared = overlaps(queries, boxes, denominator)
    tree = BoxTree(boxes)
    values, owners = tree.largest(queries, denominator)
    assert np.array_equal(values, shared.max(axis=1, initial=0.0))
    last = m - 1 - shared[:, ::-1].argmax(axis=1) if m else np.full(n, -1)
    assert np.array_equal(owners, np.where(values > 0.0, last, -1))
    for overlap in (0.0, 0.25, 0.5, 0.9):
        near = shared > overlap
        assert np.array_equal(tree.counts(queries, overlap, denominator), near.sum(axis=1))
        pairs = tree.pairs(queries, overlap, denominator)
        assert np.array_equal(np.stack(pairs[:2]), np.stack(np.nonzero(near)))
        assert np.array_equal(pairs.overlaps, shared[near])


def test_pairs_are_within_the_budget():
    boxes = many_boxes("same", 400)
    badacost.set_max_memory("1 MB")
    try:
        with pytest.raises(
            BudgetError, match=r"160000 pairs of boxes .* would need 6\.4 MB, .*, or raise it"
        ):
            BoxTree(boxes).pairs(boxes, 0.5)
        assert BoxTree(boxes).counts(boxes, 0.5).tolist() == [400] * 400
    finally:
        badacost.set_max_memory(None)


def test_trees_do_not_change_their_boxes():
    boxes = many_boxes("one crowd", 100)
    before = boxes.copy()
    BoxTree(boxes).largest(boxes)
    assert np.array_equal(boxes, before)
