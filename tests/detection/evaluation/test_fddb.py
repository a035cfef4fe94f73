"""FDDB's curves: against every assignment tried."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import badacost
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.box_tree import Pairs
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import EllipseDetections, evaluate_fddb
from badacost.detection.evaluation.fddb import _Assignment
from badacost.io.budget import BudgetError


def found(boxes, scores):
    return Detections(np.reshape(boxes, (-1, 4)), scores, [0] * len(scores), ["face"])


def slow_curves(detections, annotations):
    """Masks of all boxes, and every one-to-one assignment at every threshold."""
    thresholds = sorted({s for here in detections.values() for s in here.scores}, reverse=True)
    n_faces = sum(len(there.boxes) for there in annotations.values())

    def mask(box):
        x1, y1, x2, y2 = np.rint(box).astype(int)
        rows, columns = np.mgrid[:40, :40]
        return (rows >= y1) & (rows <= y2) & (columns >= x1) & (columns <= x2)

    points = [(0, 0.0, 0.0)]
    for threshold in thresholds:
        n_false, n_true, shared = 0, 0, 0.0
        for image, here in detections.items():
            masks = [mask(box) for box in here.boxes[here.scores >= threshold]]
            faces = [mask(box) for box in annotations[image].boxes]
            overlap = [[(m & f).sum() / max((m | f).sum(), 1) for f in faces] for m in masks]
            slots = [*range(len(faces)), *[None] * len(masks)]
            best = max(
                (
                    [overlap[i][j] for i, j in enumerate(order) if j is not None]
                    for order in itertools.permutations(slots, len(masks))
                ),
                key=sum,
            )
            hits = sum(value > 0.5 for value in best)
            n_true, shared, n_false = n_true + hits, shared + sum(best), n_false + len(masks) - hits
        points.append((n_false, n_true / n_faces, shared / n_faces))
    return np.array(points).T


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_every_assignment_tried(seed):
    rng = np.random.default_rng(seed)
    detections, annotations = {}, {}
    for image in "ab":
        corner = rng.uniform(-3, 25, (rng.integers(1, 4), 2))
        faces = np.hstack([corner, corner + rng.uniform(5, 25, corner.shape)])
        near = faces[rng.integers(0, len(faces), rng.integers(0, 4))]
        near = near + rng.uniform(-4, 4, near.shape)
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2])
        annotations[image] = SimpleNamespace(boxes=faces, size=(40, 40))
        detections[image] = found(near, rng.integers(0, 3, len(near)))
    result = evaluate_fddb(detections, annotations)
    n_false, discrete, continuous = slow_curves(detections, annotations)
    np.testing.assert_allclose(result.continuous.true_positive_rate, continuous, atol=1e-12)
    np.testing.assert_array_equal(result.discrete.false_positives, n_false)
    np.testing.assert_allclose(result.discrete.true_positive_rate, discrete, atol=1e-12)


@given(st.integers(0, 10**6))
def test_assignments_against_those_of_scipy(seed):
    """Anew for each detection, with overlaps that are equal or nearly so."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 12, 2)
    shared = rng.integers(1, 9, shape) / 9.0 + rng.choice([0.0, 1e-3]) * rng.random(shape)
    shared[rng.random(shape) < rng.random()] = 0.0
    rows, columns = np.nonzero(shared)
    assignment = _Assignment(Pairs(rows, columns, shared[rows, columns]), *shape)
    order = rng.permutation(len(shared))
    for k, row in enumerate(order, start=1):
        assert assignment.add(np.array([row])) == shared[row].any()
        best = linear_sum_assignment(shared[order[:k]], maximize=True)
        total = assignment.totals(0.5)[1]
        assert total == pytest.approx(shared[order[:k]][best].sum(), abs=1e-12)


def test_many_boxes_in_time_and_memory():
    n = 2000  # an assignment for each score would take a minute, and the rows of boxes gigabytes
    corners = np.stack([12.0 * np.arange(n), np.zeros(n)], axis=1)
    boxes = np.hstack([corners, corners + np.array([10.0, 199_000.0])])
    result = evaluate_fddb({"a": found(boxes, np.arange(n))}, {"a": SimpleNamespace(boxes=boxes)})
    assert result.ap == result.continuous.true_positive_rate[-1] == 1.0


def test_ellipses_are_within_the_budget():
    there = SimpleNamespace(ellipses=[[5e3, 20.0, 1.5, 0.0, 0.0]] * 5, size=None)
    assert evaluate_fddb({}, {"a": there}).n_faces == 5
    badacost.set_max_memory("1 MB")
    try:
        with pytest.raises(BudgetError, match=r"ellipses would need more than 1 MB, .*\.$"):
            evaluate_fddb({}, {"a": there})
    finally:
        badacost.set_max_memory(None)


def faces(n):
    return [[30.0, 20.0, 1.2, 60.0 + 80.0 * i, 60.0] for i in range(n)]


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4, unique=True))
def test_perfect_detections(scores):
    there = SimpleNamespace(ellipses=faces(4), size=(120, 400))
    result = evaluate_fddb({"a": EllipseDetections(faces(4), scores)}, {"a": there})
    np.testing.assert_array_equal(result.discrete.true_positive_rate, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(result.continuous.true_positive_rate, [0, 0.25, 0.5, 0.75, 1])
    assert not result.discrete.false_positives.any()


def test_ellipses_of_boxes():
    boxes = found([[10, 20, 50, 80]], [1.5])
    round_ones = EllipseDetections.from_detections(boxes)
    there = SimpleNamespace(ellipses=[[30.0, 20.0, np.pi / 2, 30.0, 50.0]], size=(100, 100))
    annotations = {"a": there}
    assert evaluate_fddb({"a": round_ones}, annotations).continuous.rate_below(1) == 1.0
    assert 0.7 < evaluate_fddb({"a": boxes}, annotations).continuous.rate_below(1) < 0.85


def test_annotated_images():
    boxes = np.tile([[0.0, 0.0, 10.0, 10.0]], (2, 1))
    there = AnnotatedImage(None, boxes, ellipses=faces(2), size=(120, 400))
    result = evaluate_fddb({"a": EllipseDetections(faces(2), [1.0, 2.0])}, {"a": there})
    assert result.n_faces == 2
    assert result.discrete.rate_below(1) == 1.0


def test_image_without_detections():
    annotations = {name: SimpleNamespace(ellipses=faces(2), size=None) for name in "ab"}
    result = evaluate_fddb({"a": EllipseDetections(faces(2), [1.0, 1.0])}, annotations)
    np.testing.assert_array_equal(result.discrete.true_positive_rate, [0.0, 0.5])
    nothing = evaluate_fddb({}, annotations)
    np.testing.assert_array_equal(nothing.discrete.true_positive_rate, [0.0])


def test_json_and_plot():
    there = SimpleNamespace(ellipses=faces(2), size=None)
    result = evaluate_fddb({"a": EllipseDetections(faces(2), [1.0, 2.0])}, {"a": there})
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["n_faces"] == 2
    labels = [line.get_label() for line in result.plot().lines_]
    assert labels[0] == "discrete, 1.000 below 1000 false positives"


@pytest.mark.parametrize(
    ("ellipses", "scores", "message"),
    [
        ([[1, 2, 3, 4]], [1.0], "shapes"),
        ([[1, 2, 3, 4, 5]], [1.0, 2.0], "shapes"),
        ([[1, 2, 3, 4, np.nan]], [1.0], "finite"),
        ([[1, 2, 3, 4, 5]], [np.inf], "finite"),
    ],
)
def test_ellipses_are_checked(ellipses, scores, message):
    with pytest.raises(ValueError, match=message):
        EllipseDetections(ellipses, scores)


def test_no_faces():
    with pytest.raises(ValueError, match="no face"):
        evaluate_fddb({}, {"a": SimpleNamespace(ellipses=[], size=None)})
    with pytest.raises(ValueError, match="overlap"):
        evaluate_fddb({}, {"a": SimpleNamespace(ellipses=faces(1))}, overlap=2)
