"""VOC's average precision: against a plain loop."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import evaluate_voc


def found(boxes, scores, labels=None, names=("front", "side")):
    labels = [0] * len(boxes) if labels is None else labels
    return Detections(np.reshape(boxes, (-1, 4)), scores, labels, names)


def truth(boxes, ignore=None, **more):
    return SimpleNamespace(boxes=boxes, ignore=ignore, **more)


def slow_overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(areas) - width * height)


def slow_average_precision(detections, annotations, overlap):
    """One detection after the other, best first; then the best precision beyond each recall."""
    rows = [
        (score, image, box)
        for image, here in detections.items()
        for score, box in zip(here.scores, here.boxes, strict=True)
    ]
    taken, hits, misses, points = set(), 0, 0, []
    n_objects = sum(not flag for there in annotations.values() for flag in there.ignore)
    for _, image, box in sorted(rows, key=lambda row: -row[0]):
        there = annotations[image]
        shared = [slow_overlap(box, other) for other in there.boxes]
        best = max(range(len(shared)), key=lambda i: (shared[i], i), default=None)
        if best is None or shared[best] <= overlap:
            misses += 1
        elif there.ignore[best]:
            continue
        elif (image, best) in taken:
            misses += 1
        else:
            taken.add((image, best))
            hits += 1
        points.append((hits / n_objects, hits / (hits + misses)))
    recalls = sorted({recall for recall, _ in points} | {0.0})
    area = 0.0
    for before, recall in itertools.pairwise(recalls):
        area += (recall - before) * max(p for r, p in points if r >= recall)
    return area


def scene(seed, n_images=3):
    """Annotated boxes, and detections near them and elsewhere, all of distinct scores."""
    rng = np.random.default_rng(seed)
    detections, annotations = {}, {}
    for i in range(n_images):
        n, m = rng.integers(0, 9), rng.integers(1, 5)
        corner = rng.integers(0, 40, (m, 2))
        boxes = np.hstack([corner, corner + rng.integers(8, 30, (m, 2))]).astype(float)
        near = boxes[rng.integers(0, m, n)] + rng.integers(-5, 6, (n, 4))
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        ignore = rng.random(m) < 0.2
        ignore[0] &= i > 0
        annotations[f"{i}"] = truth(boxes, ignore, labels=rng.integers(-1, 2, m))
        detections[f"{i}"] = found(near, rng.permutation(n) + rng.random(n), rng.integers(0, 2, n))
    return detections, annotations


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.5, 0.75]))
def test_a_plain_loop_agrees(seed, overlap):
    detections, annotations = scene(seed)
    result = evaluate_voc(detections, annotations, overlap=overlap)
    expected = slow_average_precision(detections, annotations, overlap)
    assert result.ap == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_order_does_not_matter(seed, rounds):
    detections, annotations = scene(seed)
    rng = np.random.default_rng(seed)
    names = rng.permutation([*detections])
    shuffled = {name: detections[name][rng.permutation(len(detections[name]))] for name in names}
    first = evaluate_voc(detections, annotations, rounds=rounds)
    second = evaluate_voc(shuffled, annotations, rounds=rounds)
    assert first.ap == pytest.approx(second.ap, abs=1e-12)
    np.testing.assert_array_equal(first.view_confusion, second.view_confusion)


@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 3))
def test_perfect_detections(seed, from_last_pixel, rounds):
    rng = np.random.default_rng(seed)
    grid = np.arange(12.0)[:, np.newaxis] * [50, 0, 50, 0]
    boxes = grid + np.hstack([np.zeros((12, 2)), rng.uniform(5, 45, (12, 2))])
    here, there = found(boxes, rng.random(12)), truth(boxes)
    result = evaluate_voc({"a": here}, {"a": there}, rounds=rounds, from_last_pixel=from_last_pixel)
    assert result.ap == result.ap_11 == 1.0
    assert result.shift == pytest.approx((0.0, 0.0), abs=1e-12)
    assert result.scale == pytest.approx((1.0, 1.0))


def test_refinement_repairs_boxes_that_are_all_wrong_alike():
    boxes = np.array([[i * 100.0, 0.0, i * 100.0 + 40.0, 60.0] for i in range(10)])
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2.0 + [4.0, -3.0]
    half = np.array([[26.0, 39.0]]) / 2.0 * 1.2
    wrong = found(np.hstack([centres - half, centres + half]), np.arange(10))
    result = evaluate_voc({"a": wrong}, {"a": truth(boxes)}, overlap=0.4, rounds=2)
    assert result.ap == 1.0
    assert result.scale == pytest.approx((40 / (26 * 1.2), 60 / (39 * 1.2)))
    assert result.shift == pytest.approx((-4 / (26 * 1.2), 3 / (39 * 1.2)))


def test_second_detection_is_wrong_and_ignored_ones_do_not_count():
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10]]
    here = found([boxes[0], boxes[0], boxes[1], boxes[1]], [4.0, 3.0, 2.0, 1.0])
    result = evaluate_voc({"a": here}, {"a": truth(boxes, [False, True])})
    assert (result.n_objects, result.n_true, result.n_false) == (1, 1, 1)


@pytest.mark.parametrize(("ignore", "n_true"), [([True, False], 1), ([False, True], 0)])
def test_later_box_wins_among_equals(ignore, n_true):
    here, there = found([[0, 0, 10, 10]], [1.0]), truth([[0, 0, 10, 10]] * 2, ignore)
    assert evaluate_voc({"a": here}, {"a": there}).n_true == n_true


def test_ignored_boxes_do_not_steer_the_refinement():
    here = found([[0, 0, 10, 10], [20, 0, 30, 10]], [2.0, 1.0])
    there = truth([[0, 0, 10, 10], [22, 0, 32, 10]], [False, True])
    assert evaluate_voc({"a": here}, {"a": there}).shift == (0.0, 0.0)


def test_overlap_must_be_exceeded():
    here = found([[0, 0, 10, 5]], [1.0])
    there = truth([[0, 0, 10, 10]])
    assert evaluate_voc({"a": here}, {"a": there}, overlap=0.5).ap == 0.0
    assert evaluate_voc({"a": here}, {"a": there}, overlap=0.499).ap == 1.0


@pytest.mark.parametrize(("from_last_pixel", "n_objects"), [(False, 2), (True, 1)])
def test_sizes_of_annotated_boxes(from_last_pixel, n_objects):
    there = truth([[0, 0, 31, 31], [40, 0, 70, 50], [80, 0, 109, 50]])
    result = evaluate_voc({}, {"a": there}, min_size=30, from_last_pixel=from_last_pixel)
    assert result.n_objects == n_objects


@pytest.mark.parametrize(("from_last_pixel", "n_false"), [(False, 2), (True, 1)])
def test_sizes_of_detections(from_last_pixel, n_false):
    here = found([[0, 0, 22, 5], [0, 0, 5, 23], [0, 0, 21, 21]], [3, 2, 1])
    result = evaluate_voc(
        {"a": here},
        {"a": truth([[100, 100, 150, 150]])},
        min_detection_size=21,
        from_last_pixel=from_last_pixel,
    )
    assert result.n_false == n_false


def test_areas_of_kitti():
    """Any number of detections in an area do not count, but an object in it may be found."""
    there = truth(
        [[0, 0, 10, 10], [0, 0, 100, 100]], [False, False], categories=("Car", "DontCare"),
        labels=[0, 7],
    )  # fmt: skip
    boxes = [[0, 0, 10, 10], [1, 0, 10, 10], [50, 50, 60, 60], [95, 95, 105, 105]]
    result = evaluate_voc({"a": found(boxes, [4.0, 3.0, 2.0, 1.0])}, {"a": there})
    np.testing.assert_array_equal(result.outcomes["a"].verdicts, [1, 0, 0, -1])
    np.testing.assert_array_equal(result.outcomes["a"].owners, [0, 0, -1, -1])
    assert (result.n_objects, result.n_true, result.n_false) == (1, 1, 1)


def test_outcomes_are_in_the_order_of_the_annotations():
    box = [[0, 0, 10, 10]]
    result = evaluate_voc({"b": found(box, [1.0])}, dict.fromkeys("abc", truth(box)))
    assert [*result.outcomes] == ["a", "b", "c"]
    assert [len(outcome.missed) for outcome in result.outcomes.values()] == [1, 0, 1]
    np.testing.assert_array_equal(result.objects_per_image, [1, 1, 1])


def test_operating_points():
    boxes = [[20.0 * i, 0, 20 * i + 10, 10] for i in range(8)]
    here = {"a": found(boxes, [9, 8, 7, 7, 6, 5, 4, 3]), "b": found([], [])}
    there = {"a": truth([*boxes[:2], boxes[3], boxes[6], [900, 0, 910, 10]]), "b": truth([])}
    points = evaluate_voc(here, there).operating_points()
    assert [point.threshold for point in points] == [8.0, 6.0, 3.0]  # 0, 1 and 2 an image
    assert [point.false_alarms for point in points] == [0.0, 1.0, 2.0]
    assert [point.precision for point in points] == [1.0, 0.6, 0.5]
    assert [point.recall for point in points] == [0.4, 0.6, 0.8]
    assert evaluate_voc({}, there).operating_points() == []


def test_views():
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10], [60, 0, 70, 10]]
    here = found(boxes, [4, 3, 2, 1], labels=[0, 1, 1, 0])
    there = truth(boxes, labels=[0, 1, 0, -1])
    result = evaluate_voc({"a": here}, {"a": there})
    np.testing.assert_array_equal(result.view_confusion, [[1, 1], [0, 1]])
    assert result.view_accuracy == pytest.approx(2 / 3)
    np.testing.assert_array_equal(result.objects_per_view, [2, 1])
    half = evaluate_voc({"a": here[1:]}, {"a": there})
    np.testing.assert_array_equal(half.view_recall, [0.5, 1.0])
    assert np.isnan(evaluate_voc({"a": here}, {"a": truth(boxes)}).view_accuracy)
    with pytest.raises(ValueError, match="annotated with view 2, but its detections have 2 views"):
        evaluate_voc({"a": here}, {"a": truth(boxes, labels=[0, 1, 2, 0])})


def test_annotated_images():
    there = AnnotatedImage(None, [[0, 0, 10, 10], [20, 0, 30, 10]], ignore=[False, True])
    assert evaluate_voc({"a": found([[0, 0, 10, 10]], [1.0])}, {"a": there}).ap == 1.0


def test_json():
    detections, annotations = scene(0)
    record = json.loads(json.dumps(evaluate_voc(detections, annotations).to_dict()))
    assert record["ap"] == evaluate_voc(detections, annotations).ap
    json.dumps(evaluate_voc({}, {"a": truth([[0, 0, 1, 1]])}).to_dict(), allow_nan=False)


def test_plot():
    display = evaluate_voc(*scene(1)).plot(name="mine")
    assert display.lines_[0].get_label().startswith("mine, AP 0.")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"overlap": 1.5}, ValueError, "overlap"),
        ({"rounds": 0}, ValueError, "rounds"),
        ({"min_size": -1}, ValueError, "min_size"),
        ({"min_detection_size": "a"}, TypeError, "min_detection_size"),
        ({"from_last_pixel": 1}, TypeError, "from_last_pixel"),
    ],
)
def test_parameters_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        evaluate_voc({}, {"a": truth([[0, 0, 1, 1]])}, **arguments)


@given(
    st.integers(0, 10**6),
    st.floats(0, 1),
    st.floats(0, 50),
    st.floats(0, 50),
    st.integers(1, 4),
    st.booleans(),
)
def test_average_precision_is_a_share(seed, overlap, min_size, min_found, rounds, last):
    detections, annotations = scene(seed)
    annotations["big"] = truth([[0, 0, 500, 500]], [False])
    result = evaluate_voc(
        detections,
        annotations,
        overlap=overlap,
        min_size=min_size,
        min_detection_size=min_found,
        rounds=rounds,
        from_last_pixel=last,
    )
    assert 0.0 <= result.ap <= 1.0
    assert 0.0 <= result.ap_11 <= 1.0
    assert result.n_true <= result.n_objects
