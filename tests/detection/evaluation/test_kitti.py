"""KITTI's precision and orientation similarity: published values, and a plain loop."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import KITTI_LEVELS, evaluate_kitti, kitti_kernels

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
KINDS = ["Car", "Car", "Car", "Van", "Pedestrian", "DontCare"]


def found(boxes, scores, angles=None, category="Car"):
    """Detections, each with a view of its own, so that it can have any angle."""
    n = len(scores)
    names = [f"{i}" for i in range(n)]
    return Detections(np.reshape(boxes, (n, 4)), scores, np.arange(n), names, angles, category)


def truth(boxes, categories=None, **more):
    categories = ["Car"] * len(boxes) if categories is None else categories
    return SimpleNamespace(boxes=boxes, categories=categories, **more)


def read_set(sets, name):
    """Detections and annotations by image, of a set whose results were published."""
    objects, kinds, image = (sets[f"{name}_objects{part}"] for part in ("", "_kind", "_image"))
    rows, image_of_row = sets[f"{name}_detections"], sets[f"{name}_detections_image"]
    detections, annotations = {}, {}
    for i in range(int(sets[f"{name}_n_images"])):
        there, here = objects[image == i], rows[image_of_row == i]
        annotations[i] = truth(
            there[:, 3:7] + [0, 0, 1, 1],
            list(kinds[image == i]),
            truncation=there[:, 0],
            occlusion=there[:, 1],
            angles=np.degrees(there[:, 2]),
        )
        detections[i] = found(here[:, 1:5] + [0, 0, 1, 1], here[:, 5], np.degrees(here[:, 0]))
    return detections, annotations


@pytest.mark.parametrize("name", ["setA", "setB"])
def test_published_sets(name):
    sets = np.load(GOLDEN / "kitti.npz")
    result = evaluate_kitti(*read_set(sets, name), rule="reference")
    assert list(result.curves) == ["easy", "moderate", "hard"]
    for level, curve in enumerate(result.curves.values()):
        expected = {key: sets[f"{name}_{key}"][level] for key in ("precision", "similarity")}
        np.testing.assert_allclose(curve.precision, expected["precision"], rtol=0, atol=1e-6)
        np.testing.assert_allclose(curve.similarity, expected["similarity"], rtol=0, atol=1e-6)
        means = [100 * curve.ap_11, 100 * curve.aos_11]
        np.testing.assert_allclose(means, sets[f"{name}_percent"][level], rtol=0, atol=1e-4)


def slow_overlap(a, b, over_first=False):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    first, second = ((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return width * height / (first if over_first else first + second - width * height)


def slow_image(here, there, level, official, overlap, threshold):
    """What one image adds at a threshold; without one, the scores of the true positives."""
    boxes, objects = here.boxes - [0, 0, 1, 1], np.array(there.boxes) - [0, 0, 1, 1]
    small = [official and int(b[3] - b[1]) < level.min_height for b in boxes]
    free = [threshold is None or score >= threshold for score in here.scores]
    scores, similarity, n_objects = [], 0.0, 0
    for i, kind in enumerate(there.categories):
        if kind not in ("Car", "Van"):
            continue
        height = objects[i][3] - objects[i][1]
        must = (
            kind == "Car"
            and there.occlusion[i] <= level.max_occlusion
            and there.truncation[i] <= level.max_truncation
            and (height > level.min_height or (not official and height == level.min_height))
        )
        n_objects += must
        shared = [slow_overlap(objects[i], box) for box in boxes]
        able = [j for j in range(len(boxes)) if free[j] and shared[j] > overlap]
        if not able:
            continue
        if threshold is None:
            best = max(able, key=lambda j: here.scores[j])
        else:
            best = max((j for j in able if not small[j]), key=shared.__getitem__, default=able[0])
        free[best] = False
        if must and not small[best]:
            scores.append(here.scores[best])
            error = np.radians(there.angles[i] - here.angles[best])
            similarity += (1 + np.cos(error)) / 2
    n_false = 0
    for j, box in enumerate(boxes):
        areas = [o for o, k in zip(objects, there.categories, strict=True) if k == "DontCare"]
        cared = any(slow_overlap(box, area, over_first=True) > overlap for area in areas)
        n_false += free[j] and not small[j] and not cared
    return n_objects, scores, n_false, similarity


def slow_curve(detections, annotations, level, official, overlap):
    pairs = [(detections[name], annotations[name]) for name in detections]
    first = [slow_image(*pair, level, official, overlap, None) for pair in pairs]
    n_objects = sum(row[0] for row in first)
    scores = sorted((score for row in first for score in row[1]), reverse=True)
    thresholds = []
    for i, score in enumerate(scores):
        step = len(thresholds) / 40
        behind, ahead = step - (i + 1) / n_objects, (i + 2) / n_objects - step
        if i + 1 == len(scores) or ahead >= behind - 1e-12:
            thresholds.append(score)
    precision, similarity = np.zeros(41), np.zeros(41)
    for k, threshold in enumerate(thresholds):
        rows = [slow_image(*pair, level, official, overlap, threshold) for pair in pairs]
        n_true, n_false = sum(len(row[1]) for row in rows), sum(row[2] for row in rows)
        if n_true + n_false:
            precision[k] = n_true / (n_true + n_false)
            similarity[k] = sum(row[3] for row in rows) / (n_true + n_false)
    best = [max(precision[k:]) for k in range(41)], [max(similarity[k:]) for k in range(41)]
    return n_objects, *best


def street(seed, n_images=4):
    rng = np.random.default_rng(seed)
    detections, annotations = {}, {}
    for i in range(n_images):
        m, n = rng.integers(1, 7), rng.integers(0, 9)
        corner = rng.uniform(0, 60, (m, 2))
        boxes = np.hstack([corner, corner + rng.choice([24.0, 26, 30, 41, 42, 60], (m, 2))])
        annotations[f"{i}"] = truth(
            boxes,
            rng.choice(KINDS, m).tolist(),
            truncation=rng.choice([0.0, 0.2, 0.4, 0.6], m),
            occlusion=rng.choice([0.0, 1.0, 2.0, 3.0], m),
            angles=rng.uniform(-180, 180, m),
        )
        near = boxes[rng.integers(0, m, n)] + rng.uniform(-4, 4, (n, 4))
        detections[f"{i}"] = found(near, rng.permutation(n) / 4, rng.uniform(-180, 180, n))
    return detections, annotations


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.3, 0.5, 0.7]),
    st.sampled_from(["official", "reference"]),
)
def test_a_plain_loop_agrees(seed, overlap, rule):
    detections, annotations = street(seed)
    result = evaluate_kitti(detections, annotations, overlap=overlap, rule=rule)
    for level in KITTI_LEVELS:
        curve = result.curves[level.name]
        n_objects, precision, similarity = slow_curve(
            detections, annotations, level, rule == "official", overlap
        )
        assert curve.n_objects == n_objects
        np.testing.assert_allclose(curve.precision, precision, atol=1e-12)
        np.testing.assert_allclose(curve.similarity, similarity, atol=1e-12)


@given(st.integers(0, 10**6))
def test_detections_one_by_one_and_all_at_once(seed):
    """Objects choose in their order, whatever they had before; overlaps are often equal."""
    rng = np.random.default_rng(seed)
    shared = rng.integers(0, 4, (rng.integers(1, 9), rng.integers(1, 9))) / 4.0
    detections, objects = np.nonzero(shared)
    pairs = detections, objects, shared[detections, objects]
    starts = np.searchsorted(detections, np.arange(len(shared) + 1))
    held = np.full(shared.shape[1], -1)
    left_over, order = set(), rng.permutation(len(shared))
    for k, detection in enumerate(order, start=1):
        left_over |= {*kitti_kernels.add(np.array([detection]), starts, *pairs, held).tolist()}
        free, owned = {*order[:k].tolist()}, []
        for row in shared.T:
            best = max((i for i in sorted(free) if row[i]), key=row.__getitem__, default=-1)
            owned.append(best)
            free -= {best}
        assert np.where(held < 0, -1, np.append(detections, -1)[held]).tolist() == owned
        assert left_over == free


def test_many_cars_are_found_in_time():
    boxes = cars(3000)  # minutes, were all objects asked again for each score
    result = evaluate_kitti({"a": found(boxes, np.arange(3000))}, {"a": truth(boxes)})
    assert result.easy.ap_40 == 1.0


@given(st.integers(0, 10**6), st.sampled_from(["official", "reference"]))
def test_curves_fall_and_similarity_is_at_most_precision(seed, rule):
    result = evaluate_kitti(*street(seed), rule=rule, overlap=0.5)
    for curve in result.curves.values():
        assert (np.diff(curve.precision) <= 0.0).all()
        assert (curve.similarity <= curve.precision + 1e-12).all()
        assert (curve.precision <= 1.0).all()
        if curve.n_objects:
            assert curve.curve.average_precision() == pytest.approx(curve.ap_40)


@given(st.integers(0, 10**6))
def test_order_of_detections_does_not_matter(seed):
    detections, annotations = street(seed)
    rng = np.random.default_rng(seed)
    shuffled = {
        name: detections[name][rng.permutation(len(detections[name]))]
        for name in rng.permutation([*detections])
    }
    first = evaluate_kitti(detections, annotations, rule="reference").curves
    second = evaluate_kitti(shuffled, annotations, rule="reference").curves
    for level in ("easy", "moderate", "hard"):
        np.testing.assert_allclose(first[level].precision, second[level].precision)


def cars(n, height=50):
    return np.array([[60.0 * i, 0.0, 60.0 * i + 50.0, height] for i in range(n)])


@pytest.mark.parametrize("rule", ["official", "reference"])
def test_perfect_detections(rule):
    here = found(cars(60), np.arange(60), angles=np.linspace(-180, 180, 60))
    there = truth(cars(60), angles=np.linspace(-180, 180, 60))
    result = evaluate_kitti({"a": here}, {"a": there}, rule=rule)
    for curve in result.curves.values():
        assert curve.ap_11 == curve.ap_40 == 1.0
        assert curve.aos_11 == curve.aos_40 == pytest.approx(1.0)


def test_opposite_angles_have_no_similarity():
    here, there = found(cars(60), np.arange(60), [90.0] * 60), truth(cars(60), angles=[-90.0] * 60)
    easy = evaluate_kitti({"a": here}, {"a": there}).easy
    assert easy.ap_40 == 1.0
    assert easy.aos_40 == pytest.approx(0.0, abs=1e-12)


def test_curve_of_few_objects_ends_early():
    here = found(cars(8), np.arange(8))
    easy = evaluate_kitti({"a": here}, {"a": truth(cars(8))}).easy
    assert len(easy.thresholds) == 8
    np.testing.assert_array_equal(easy.precision, [1.0] * 8 + [0.0] * 33)
    assert easy.similarity is None
    assert np.isnan(easy.aos_40)


def test_thresholds_are_spread_over_the_recalls():
    easy = evaluate_kitti({"a": found(cars(120), np.arange(120))}, {"a": truth(cars(120))}).easy
    assert len(easy.thresholds) == 41
    recalls = (120 - easy.thresholds) / 120
    np.testing.assert_allclose(recalls[1:], np.arange(1, 41) / 40, atol=0.5 / 120 + 1e-9)


def test_small_detection_with_the_best_score_leaves_an_object_unfound():
    low = cars(50, height=41) + np.array([0.0, 2.0, 0.0, 0.0])  # 38 from first to last pixel
    boxes, scores = np.vstack([cars(50, 43), low]), np.append(np.arange(50), np.arange(50) + 0.5)
    there = {"a": truth(cars(50, height=43))}
    assert len(evaluate_kitti({"a": found(boxes, scores)}, there).easy.thresholds) == 0
    assert evaluate_kitti({"a": found(boxes[:50], scores[:50])}, there).easy.ap_40 == 1.0


def test_small_detections():
    boxes, low = cars(50), [[10_000.0, 0.0, 10_050.0, 30.0]]
    here = found(np.vstack([boxes, low]), np.append(np.arange(50), 100.0))
    there = truth(boxes)
    assert evaluate_kitti({"a": here}, {"a": there}).easy.ap_40 == 1.0
    assert evaluate_kitti({"a": here}, {"a": there}, rule="reference").easy.ap_40 < 1.0
    assert evaluate_kitti({"a": here}, {"a": there}).hard.ap_40 < 1.0


def test_height_of_the_least_object():
    there = truth(cars(50, height=41))  # 40 from the first to the last pixel
    assert evaluate_kitti({"a": found([], [])}, {"a": there}).easy.n_objects == 0
    reference = evaluate_kitti({"a": found([], [])}, {"a": there}, rule="reference")
    assert reference.easy.n_objects == 50


def test_image_that_nobody_looked_at():
    annotations = {"a": truth(cars(50)), "b": truth(cars(50))}
    detections = {"a": found(cars(50), np.arange(50))}
    assert evaluate_kitti(detections, annotations).easy.n_objects == 100
    reference = evaluate_kitti(detections, annotations, rule="reference").easy
    assert reference.n_objects == 50
    assert reference.ap_40 == 1.0


@pytest.mark.parametrize(("category", "other"), [("Car", "Van"), ("Pedestrian", "person_SITTING")])
def test_neighbours_may_be_found(category, other):
    kinds = [category] * 45 + [other, "DontCare", "Tram"]
    there, here = truth(cars(48), kinds), found(cars(48), np.arange(48), category=category)
    easy = evaluate_kitti({"a": here}, {"a": there}, category=category.lower()).easy
    assert easy.n_objects == 45
    assert easy.precision[0] == pytest.approx(45 / 46)  # the tram is wrong


def test_no_objects():
    result = evaluate_kitti({"a": found(cars(1), [1.0])}, {"a": truth([], [])})
    assert result.easy.n_objects == 0
    assert np.isnan(result.easy.ap_40)
    assert result.to_dict()["easy"]["ap_40"] is None
    json.dumps(result.to_dict(), allow_nan=False)
    json.dumps(evaluate_kitti(*street(3)).to_dict(), allow_nan=False)


def test_annotated_images():
    there = AnnotatedImage(
        None,
        cars(45),
        categories=["Car"] * 45,
        angles=[0.0] * 45,
        truncation=[0.0] * 44 + [0.2],
        occlusion=[0.0] * 45,
    )
    result = evaluate_kitti({"a": found(cars(45), np.arange(45), [0.0] * 45)}, {"a": there})
    assert (result.easy.n_objects, result.hard.n_objects) == (44, 45)
    assert result.easy.aos_40 == pytest.approx(1.0)


def test_plot():
    display = evaluate_kitti({"a": found(cars(45), np.arange(45))}, {"a": truth(cars(45))}).plot()
    labels = [line.get_label() for line in display.lines_]
    assert labels == ["easy, AP 1.000", "moderate, AP 1.000", "hard, AP 1.000"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"overlap": -1}, ValueError, "overlap"),
        ({"rule": "modern"}, ValueError, "rule"),
        ({"category": None}, TypeError, "category"),
        ({"category": "Cyclist"}, ValueError, "pass the category of the detections"),
    ],
)
def test_parameters_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        evaluate_kitti({"a": found(cars(1), [1.0])}, {"a": truth(cars(1))}, **arguments)
