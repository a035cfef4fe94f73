"""One call for all benchmarks: the same figures as those of their functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from badacost.detection import Detections
from badacost.detection.annotations import KITTI_CARS, AnnotatedImage, Views
from badacost.detection.evaluation import (
    PROTOCOLS,
    evaluate_coco,
    evaluate_detections,
    evaluate_faces,
    evaluate_fddb,
    evaluate_kitti,
    evaluate_voc,
    images_by_name,
)

BOXES = np.array([[0.0, 0.0, 90.0, 40.0], [100.0, 0.0, 190.0, 60.0], [200.0, 0.0, 300.0, 80.0]])
TRUTH = AnnotatedImage(
    None,
    BOXES,
    categories=["Car", "Car", "Pedestrian"],
    angles=[90.0, 0.0, 0.0],
    ellipses=[[45.0, 30.0, 0.0, 45.0, 20.0], [45.0, 30.0, 0.0, 145.0, 30.0], [50] * 5],
    occlusion=[0.0, 3.0, 0.0],
    size=(100, 400),
    name="a.png",
)
FOUND = {
    "drive/a.png": Detections(BOXES[:2], [2.0, 1.0], [0, 1], ["front", "right"], [90, 0], "Car")
}
FUNCTIONS = {
    "voc": evaluate_voc,
    "faces": evaluate_faces,
    "kitti": lambda *aligned: evaluate_kitti(*aligned, category="Car"),
    "fddb": evaluate_fddb,
    "coco": evaluate_coco,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_figures_of_each_protocol(protocol) -> None:
    got = evaluate_detections(FOUND, [TRUTH], protocol)
    assert got.views == ["front", "right"]
    assert list(got.alignment.annotations) == ["a.png"]
    n_objects = 3 if protocol in ("faces", "fddb") else 2
    assert len(got.alignment.annotations["a.png"]) == n_objects
    expected = FUNCTIONS[protocol](*got.alignment).to_dict()
    assert got.to_dict() == {"protocol": protocol, "views": ["front", "right"]} | expected


def test_options_reach_the_protocol() -> None:
    moved = {"a.png": Detections([[0, 0, 90, 60]], [1.0], [0], ["front"], category="Car")}
    assert evaluate_detections(moved, [TRUTH], overlap=0.6).result.n_true == 1
    assert evaluate_detections(moved, [TRUTH], overlap=0.9).result.n_true == 0
    with pytest.raises(TypeError, match="overlap"):
        evaluate_detections(moved, [TRUTH], "faces", overlap=0.9)


def test_what_is_to_be_found() -> None:
    assert evaluate_detections(FOUND, [TRUTH], selection=KITTI_CARS).result.n_objects == 1
    with pytest.warns(UserWarning, match="the detections are of Car"):
        assert evaluate_detections(FOUND, [TRUTH], category="Pedestrian").result.n_true == 0
    yaws = Views.of_yaw((0.0,))
    assert evaluate_detections(FOUND, [TRUTH], views=yaws).views == list(yaws.names)


def test_annotations_of_kitti_are_told() -> None:
    street = AnnotatedImage(
        None, BOXES[[0, 2]], categories=["Car", "DontCare"], size=(100, 400), name="a.png"
    )
    for protocol in ("voc", "coco"):
        with pytest.warns(UserWarning, match="small and hidden objects are to be found"):
            evaluate_detections(FOUND, [street], protocol)
    evaluate_detections(FOUND, [street], selection=KITTI_CARS)
    evaluate_detections(FOUND, [street], "kitti")


@pytest.mark.parametrize(
    ("protocol", "options", "message"),
    [
        ("yolo", {}, "protocol must be one of"),
        ("faces", {"category": "Car"}, "found by faces: leave out category"),
        ("fddb", {"selection": KITTI_CARS}, "found by fddb: leave out category"),
    ],
)
def test_what_does_not_fit(protocol, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate_detections(FOUND, [TRUTH], protocol, **options)


def test_kitti_needs_a_category() -> None:
    found = {"a.png": Detections(BOXES[:1], [1.0], [0], ["front"], category="Bus")}
    with (
        pytest.warns(UserWarning, match="all objects are to be found"),
        pytest.raises(ValueError, match=r"give category \(--category\)"),
    ):
        evaluate_detections(found, [TRUTH], "kitti")


def test_images_by_name(tmp_path: Path) -> None:
    path = tmp_path / "b.png"
    Image.new("RGB", (30, 20)).save(path)
    named = images_by_name(iter([TRUTH, AnnotatedImage(path)]))
    assert list(named) == ["a.png", str(path)]
    assert named[str(path)].size == (20, 30)
    with pytest.raises(ValueError, match=r"'a\.png' is annotated twice"):
        images_by_name([TRUTH, TRUTH])
    with pytest.raises(ValueError, match="no annotated pictures"):
        images_by_name([])
