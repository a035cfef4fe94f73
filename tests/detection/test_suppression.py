"""Suppression: against all pairs, bit by bit, and its laws."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.boxes import Detections, overlaps
from badacost.detection.suppression import Suppression
from campaigns.hostile_images import BOX_LAYOUTS, many_boxes
from tests.detection.test_boxes import NAMES, crowd, detections, same

rules = st.builds(
    Suppression,
    kind=st.sampled_from(["greedy", "all"]),
    overlap=st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]),
    denominator=st.sampled_from(["union", "min"]),
    per_class=st.booleans(),
)


def brute_force(found: Detections, rule: Suppression) -> Detections:
    """Return what stays by the overlaps of all pairs."""
    ordered = found.best_first()
    too_near = overlaps(ordered, ordered, rule.denominator) > rule.overlap
    if rule.per_class:
        too_near &= ordered.labels[:, None] == ordered.labels
    stays = np.ones(len(ordered), dtype=bool)
    for i in range(len(ordered)):
        if stays[i] or rule.kind == "all":
            stays[i + 1 :] &= ~too_near[i, i + 1 :]
    kept = ordered[stays]
    if rule.vote is None or not len(kept):
        return kept
    odds = found.scores / np.maximum(1.0 - found.scores, 1e-12)
    for i, row in enumerate(overlaps(kept, found) > rule.vote):
        if odds[row].sum() > 0.0:
            mean = odds[row] @ found.boxes[row] / odds[row].sum()
            kept.boxes[i] = np.clip(mean, -1e9, 1e9)
    return kept


class TestSuppression:
    @given(detections(), rules)
    def test_against_all_pairs(self, found, rule):
        assert same(rule.apply(found), brute_force(found, rule))

    @given(detections(), rules)
    def test_laws(self, found, rule):
        kept = rule.apply(found)
        assert (np.diff(kept.scores) <= 0.0).all()
        assert same(rule.apply(kept), kept)
        greedy = replace(rule, kind="greedy").apply(found)
        assert {*map(tuple, kept.boxes)} <= {*map(tuple, greedy.boxes)}

    @pytest.mark.parametrize("layout", BOX_LAYOUTS)
    def test_many_boxes_against_all_pairs(self, layout):
        rng = np.random.default_rng(3)
        for n in (9, 100):
            boxes, scores = many_boxes(layout, n), rng.integers(0, 2 * n, n) / (2.0 * n)
            found = Detections(boxes, scores, rng.integers(0, 3, n), NAMES)
            for kind, overlap, denominator, per_class in itertools.product(
                ("greedy", "all"), (0.0, 1e-7, 0.3, 0.95), ("union", "min"), (False, True)
            ):
                rule = Suppression(kind, overlap, denominator, per_class, vote=0.4)
                assert same(rule.apply(found), brute_force(found, rule)), rule

    @pytest.mark.parametrize("layout", BOX_LAYOUTS)
    @pytest.mark.parametrize("denominator", ["union", "min"])
    def test_many_boxes_are_not_compared_one_by_one(self, layout, denominator):
        n = 2_000  # all pairs at once would take tens of megabytes
        boxes = many_boxes(layout, n)
        found = Detections(boxes, np.arange(n) / n, np.zeros(n, int), ["car"])
        tracemalloc.start()
        kept = Suppression(denominator=denominator, vote=0.5).apply(found)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 1 <= len(kept) <= n
        assert peak < 1000 * n

    @given(detections(distinct=True), rules, st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, found, rule, random):
        order = list(range(len(found)))
        random.shuffle(order)
        assert same(rule.apply(found[order]), rule.apply(found))

    def test_none_only_sorts(self):
        found = crowd(4, 50)
        assert same(Suppression("none").apply(found), found.best_first())

    def test_limit(self):
        found = crowd(5, 50)
        everything = Suppression(overlap=0.2).apply(found)
        assert len(everything) > 3
        assert same(Suppression(overlap=0.2, max_boxes=3).apply(found), everything[:3])

    def test_of_equal_scores_the_first_stays(self):
        found = Detections([[0, 0, 10, 10], [1, 0, 11, 10]], [1, 1], [0, 1], ["a", "b"])
        assert Suppression().apply(found).views == ["a"]
        assert Suppression().apply(found[::-1]).views == ["b"]

    def test_overlap_equal_to_the_threshold_stays(self):
        found = Detections([[0, 0, 2, 1], [1, 0, 3, 1]], [2, 1], [0, 0], ["a"])
        assert len(Suppression(overlap=0.5, denominator="min").apply(found)) == 2
        assert len(Suppression(overlap=0.49, denominator="min").apply(found)) == 1

    def test_a_vote_moves_boxes_to_the_weighted_mean(self):
        found = Detections(
            [[0, 0, 10, 10], [2, 0, 12, 10], [6, 0, 16, 10], [40, 0, 50, 10]],
            [0.8, 0.4, 0.7, 0.9], [1, 0, 0, 2], NAMES,
        )  # fmt: skip
        kept = Suppression(overlap=0.2, vote=0.5).apply(found)
        assert kept.scores.tolist() == [0.9, 0.8]
        assert kept.labels.tolist() == [2, 1]
        odds = 0.4 / 0.6  # the third overlaps by a quarter only
        share = odds / (0.8 / 0.2 + odds)
        expected = [[40, 0, 50, 10], [2 * share, 0, 10 + 2 * share, 10]]
        np.testing.assert_allclose(kept.boxes, expected)

    @pytest.mark.parametrize("kind", ["greedy", "none"])
    def test_equal_boxes_have_equal_votes(self, kind):
        rng = np.random.default_rng(0)
        boxes = rng.integers(0, 3, (60, 1)) + np.array([[0.0, 0.0, 10.0, 10.0]])
        labels = np.arange(60)
        found = Detections(boxes, rng.random(60), labels, [f"{k}" for k in labels])
        rule = Suppression(kind, per_class=True, vote=0.5)
        assert same(rule.apply(found), brute_force(found, replace(rule, kind="greedy")))

    def test_many_equal_boxes_that_stay(self):
        n = 20_000  # all pairs would take a minute
        found = Detections(np.tile([[0, 0, 9, 9]], (n, 1)), np.arange(n) / n, [0] * n, ["car"])
        kept = Suppression("none", vote=0.5).apply(found)
        np.testing.assert_allclose(kept.boxes, np.tile([[0.0, 0.0, 9.0, 9.0]], (n, 1)))

    @pytest.mark.parametrize("scores", [[0.1, -5.0], [1.5, 0.5]])
    def test_only_probabilities_vote(self, scores):
        found = Detections([[0, 0, 10, 10], [1, 0, 11, 10]], scores, [0, 0], ["a"])
        with pytest.raises(ValueError, match="probabilities"):
            Suppression(vote=0.5).apply(found)

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"kind": "soft"}, ValueError),
            ({"overlap": 1.5}, ValueError),
            ({"overlap": "0.5"}, TypeError),
            ({"denominator": "first"}, ValueError),
            ({"per_class": 1}, TypeError),
            ({"max_boxes": 0}, ValueError),
            ({"max_boxes": 2.5}, TypeError),
            ({"vote": -0.1}, ValueError),
            ({"vote": "0.5"}, TypeError),
        ],
    )
    def test_refuses(self, changed, error):
        with pytest.raises(error, match=next(iter(changed))):
            Suppression(**changed)
