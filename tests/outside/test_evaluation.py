"""The evaluation programs that the authors used, on published detections and annotations."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from badacost.detection.boxes import Detections
from badacost.detection.evaluation import (
    EllipseDetections,
    RocCurve,
    evaluate_faces,
    evaluate_fddb,
)

FILES = [
    "afw_badacost",
    "afw_subcat",
    "afw_headhunter",
    "pascal_badacost_b1.5_d6_t1024",
    "pascal_badacost_b2.5_d6_t1024",
    "pascal_badacost_b2.5_d6_t1500",
    "pascal_samme_d6_t1024",
    "pascal_subcat_d2_t4096",
]
SIZE = (450, 450)  # of all images, as far as the program was told


def found(boxes, scores):
    return Detections(np.reshape(boxes, (-1, 4)), scores, [0] * len(scores), ["face"])


@pytest.fixture(scope="module")
def face_annotations(shared):
    annotations = {}
    for name in ("afw", "pascal"):
        boxes, ignore = {}, {}
        path = shared / f"golden/evaluation/faces/{name}_annotations.csv"
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                boxes.setdefault(row["image"], [])
                ignore.setdefault(row["image"], [])
                if row["x1"]:
                    corners = [float(row[key]) for key in ("x1", "y1", "x2", "y2")]
                    boxes[row["image"]].append(corners[:2] + [value + 1 for value in corners[2:]])
                    ignore[row["image"]].append(row["ignore"] == "1")
        annotations[name] = {
            image: SimpleNamespace(boxes=boxes[image], ignore=ignore[image]) for image in boxes
        }
    return annotations


def face_detections(path):
    rows = {}
    for line in path.read_text().splitlines():
        image, *numbers = line.split()
        rows.setdefault(image, []).append([float(number) for number in numbers])
    detections = {}
    for image, values in rows.items():
        scores, *corners = np.array(values).T
        detections[image] = found(np.stack(corners, axis=1) + np.array([0, 0, 1, 1]), scores)
    return detections


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize("name", FILES)
def test_published_faces(shared, face_annotations, name, rounds):
    folder = shared / "golden/evaluation/faces"
    expected = json.loads((folder / "expected.json").read_text())[name][f"iterations_{rounds}"]
    detections = face_detections(folder / f"detections/{name}.txt")
    result = evaluate_faces(detections, face_annotations[name.split("_")[0]], rounds=rounds)
    assert 100 * result.ap == pytest.approx(expected["AP_percent"], abs=1e-9)
    assert 100 * result.ap_11 == pytest.approx(expected["AP11_percent"], abs=1e-9)
    assert result.n_objects == expected["n_ground_truth"]
    assert (result.n_true, result.n_false) == (
        expected["true_positives"],
        expected["false_positives"],
    )
    np.testing.assert_allclose(
        [*result.shift, *result.scale], expected["accumulated_transform_tx_ty_sx_sy"], atol=1e-9
    )


def read_blocks(path):
    """Rows of numbers by image: a name, a count, so many rows."""
    lines = iter(path.read_text().splitlines())
    return {
        name: np.array([next(lines).split() for _ in range(int(next(lines)))], dtype=float)
        for name in lines
    }


def read_detections(path, kind):
    detections = {}
    for image, rows in read_blocks(path).items():
        if not len(rows):
            continue
        if kind == "ellipse":
            detections[image] = EllipseDetections(rows[:, :5], rows[:, 5])
        else:
            corners = np.hstack([rows[:, :2], rows[:, :2] + rows[:, 2:4]])
            detections[image] = found(corners, rows[:, 4])
    return detections


@pytest.mark.parametrize("kind", ["ellipse", "rect"])
def test_published_program(shared, kind):
    folder = shared / "golden/evaluation/fddb/synthetic"
    annotations = {
        image: SimpleNamespace(ellipses=rows[:, :5], size=SIZE)
        for image, rows in read_blocks(folder / "annotations.txt").items()
    }
    detections = read_detections(folder / f"detections_{kind}.txt", kind)
    result = evaluate_fddb(detections, annotations)
    for name, curve in (("Disc", result.discrete), ("Cont", result.continuous)):
        text = (folder / f"expected_{kind}_{name}ROC.txt").read_text()
        expected = [line.split()[:2] for line in text.splitlines()]
        points = zip(curve.true_positive_rate[::-1], curve.false_positives[::-1], strict=True)
        assert [[f"{rate:g}", f"{n:g}"] for rate, n in points] == expected
    thresholds = np.loadtxt(folder / f"expected_{kind}_DiscROC.txt")[::-1, 2]
    assert result.discrete.thresholds[0] == np.inf
    np.testing.assert_allclose(result.discrete.thresholds[1:], thresholds[1:], rtol=1e-5)


@pytest.mark.parametrize("detector", ["BAdaCost", "SAMME", "SubCat"])
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_rates_of_the_published_curves(shared, detector, kind):
    folder = shared / "golden/evaluation/fddb"
    expected = json.loads((folder / "expected.json").read_text())[detector]
    points = np.loadtxt(folder / f"{detector.lower()}_{kind}_roc.txt")
    curve = RocCurve(points[:, 1], points[:, 0], np.zeros(len(points)))
    for limit in (100, 500, 1000, 2000):
        rate = expected[f"{kind}_tpr_below_{limit}_fp"]
        assert curve.rate_below(limit) == pytest.approx(rate, abs=1e-6)
    assert curve.rate_below(1e9) == pytest.approx(expected[f"{kind}_max_tpr"], abs=1e-6)
