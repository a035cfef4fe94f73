"""COCO's figures: against pycocotools on random sets, and by hand."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import evaluate_coco

KEYS = ["ap", "ap_50", "ap_75", "ap_small", "ap_medium", "ap_large"]
KEYS += ["ar_1", "ar_10", "ar_100", "ar_small", "ar_medium", "ar_large"]


def found(boxes, scores) -> Detections:
    return Detections(np.reshape(boxes, (-1, 4)), scores, [0] * len(scores), ["any"])


def of_pycocotools(detections, annotations) -> list[float]:
    """The twelve figures of the original."""
    truth = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "any"}]}
    results = []
    for number, (name, image) in enumerate(annotations.items(), start=1):
        truth["images"].append({"id": number})
        for (x1, y1, x2, y2), crowd in zip(image.boxes.tolist(), image.ignore, strict=True):
            box = [x1, y1, x2 - x1, y2 - y1]
            truth["annotations"].append({
                "id": len(truth["annotations"]) + 1, "image_id": number, "category_id": 1,
                "bbox": box, "area": box[2] * box[3], "iscrowd": int(crowd),
            })  # fmt: skip
        here = detections[name]
        for (x1, y1, x2, y2), score in zip(here.boxes.tolist(), here.scores.tolist(), strict=True):
            box = [x1, y1, x2 - x1, y2 - y1]
            results.append({"image_id": number, "category_id": 1, "bbox": box, "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats.tolist()


def scene(seed: int, whole: bool, n_images: int = 5):
    """Objects of all sizes, some of them crowds, and detections near them and elsewhere."""
    rng = np.random.default_rng(seed)
    annotations, detections = {}, {}
    for i in range(n_images):
        m, n = rng.integers(1, 8), rng.integers(2, 30)
        corner = rng.uniform(0, 60, (m, 2))
        sizes = np.exp(rng.uniform(np.log(8), np.log(200), (m, 2)))
        boxes = np.hstack([corner, corner + sizes])
        near = boxes[rng.integers(0, m, n)]
        spread = rng.choice([0.02, 0.1, 0.5], (n, 1)) * np.tile(near[:, 2:] - near[:, :2], 2)
        near = near + spread * rng.uniform(-1, 1, (n, 4))
        near = np.hstack([near[:, :2], np.maximum(near[:, 2:], near[:, :2] + 1)])
        if whole:  # overlaps that are exactly a limit, and recalls that are exactly a step
            boxes, near = np.rint(boxes), np.rint(near)
        crowd = rng.random(m) < 0.2
        crowd[0] &= i > 0
        annotations[f"{i}"] = AnnotatedImage(None, boxes, ignore=crowd)
        detections[f"{i}"] = found(near, rng.random(n))
    return detections, annotations


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_pycocotools_agrees(seed, whole) -> None:
    detections, annotations = scene(seed, whole)
    ours = evaluate_coco(detections, annotations).summary
    assert list(ours) == KEYS
    theirs = of_pycocotools(detections, annotations)
    expected = [np.nan if value == -1 else value for value in theirs]
    np.testing.assert_allclose([*ours.values()], expected, rtol=0, atol=1e-12)


def test_many_detections() -> None:
    boxes = np.array([[60.0 * i, 0, 60 * i + 50, 50] for i in range(120)])
    annotations = {"0": AnnotatedImage(None, boxes)}
    detections = {"0": found(boxes, np.random.default_rng(0).random(120))}
    ours = evaluate_coco(detections, annotations).summary
    np.testing.assert_allclose([*ours.values()][6:9], [1 / 120, 10 / 120, 100 / 120])
    theirs = of_pycocotools(detections, annotations)
    np.testing.assert_allclose([*ours.values()][:3], theirs[:3], atol=1e-12)


def test_images_without_detections_and_areas() -> None:
    box = [[0.0, 0, 50, 50]]
    annotations = {
        "a": AnnotatedImage(None, [[0, 0, 400, 400]], categories=["DontCare"]),
        "b": AnnotatedImage(None, box),
        "c": AnnotatedImage(None, box),
    }
    result = evaluate_coco({"a": found(box * 2, [3.0, 2]), "b": found(box, [1.0])}, annotations)
    assert result.n_objects == 2
    assert result.ap == pytest.approx(51 / 101)
    np.testing.assert_array_equal(result.objects_per_image, [0, 1, 1])


def test_json_curves_and_plot() -> None:
    result = evaluate_coco(*scene(3, False))
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["ap"] == result.ap
    assert record["ap_range"][0] <= record["ap"] <= record["ap_range"][1]
    assert result.curve(0.75).average_precision() == pytest.approx(
        result.summary["ap_75"], abs=0.03
    )
    assert len(result.plot().lines_) == 2
    with pytest.raises(ValueError, match=r"one of 0\.5"):
        result.curve(0.52)


def test_ranges_are_of_the_same_figures() -> None:
    detections, annotations = scene(5, False, n_images=1)
    result = evaluate_coco(detections, annotations)
    for key, limits in result.ranges.items():  # one image has a single draw
        np.testing.assert_allclose(limits, [result.summary[key]] * 2)


def test_no_objects() -> None:
    with pytest.raises(ValueError, match="no box to be found"):
        evaluate_coco({}, {"a": AnnotatedImage(None, [[0, 0, 1, 1]], ignore=[True])})
