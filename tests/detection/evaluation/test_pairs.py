"""What is refused before an evaluation begins."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.boxes import Detections
from badacost.detection.evaluation import evaluate_fddb, evaluate_kitti, evaluate_voc
from badacost.detection.evaluation.pairs import paired

FOUND = Detections([[0, 0, 10, 10]], [1.0], [0], ["front"], category="Car")
BOX = [[0, 0, 10, 10]]


@pytest.mark.parametrize(
    ("detections", "annotations", "error", "message"),
    [
        ([FOUND], {"a": None}, TypeError, "detections must be a mapping"),
        ({}, [1], TypeError, "annotations must be a mapping"),
        ({}, {}, ValueError, "at least one image"),
        ({"a": BOX}, {"a": None}, TypeError, "must be Detections; got list"),
        ({"b": FOUND}, {"a": None}, ValueError, "'b' has detections but no annotations"),
    ],
)
def test_mappings(detections, annotations, error, message):
    with pytest.raises(error, match=message):
        paired(detections, annotations)


def test_detections_come_first():
    pairs = paired({"b": FOUND, "a": FOUND}, dict.fromkeys("cab", SimpleNamespace(boxes=BOX)))
    assert [pair.name for pair in pairs] == ["b", "a", "c"]
    assert pairs[2].found is None


@pytest.mark.parametrize(
    ("truth", "error", "message"),
    [
        (SimpleNamespace(), TypeError, "have no boxes: give an AnnotatedImage"),
        (SimpleNamespace(boxes=[[0, 0, 1]]), ValueError, r"shape \(n, 4\)"),
        (SimpleNamespace(boxes=[[0, 0, 1, np.nan]]), ValueError, "finite"),
        (SimpleNamespace(boxes=[[5, 0, 1, 1]]), ValueError, "x1 <= x2"),
        (SimpleNamespace(boxes=[[0, 0, 1e12, 1]]), ValueError, "of the origin"),
        (SimpleNamespace(boxes="box"), ValueError, "must be numbers"),
        (SimpleNamespace(boxes=[[0], [0, 1]]), ValueError, "cannot be read as an array"),
        (SimpleNamespace(boxes=BOX, ignore=[True, False]), ValueError, "one for each box"),
        (SimpleNamespace(boxes=BOX, ignore=["no"]), ValueError, "must be numbers"),
        (SimpleNamespace(boxes=BOX, labels=[0.5]), ValueError, "must be numbers"),
    ],
)
def test_annotations(truth, error, message):
    with pytest.raises(error, match=message):
        evaluate_voc({"a": FOUND}, {"a": truth})


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (SimpleNamespace(boxes=BOX), "categories .* are missing"),
        (SimpleNamespace(boxes=BOX, categories=[3]), "must be strings"),
        (SimpleNamespace(boxes=BOX, categories=["Car"], angles=["x"]), "must be numbers"),
    ],
)
def test_annotations_for_kitti(truth, message):
    with pytest.raises(ValueError, match=message):
        evaluate_kitti({"a": FOUND}, {"a": truth})


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (SimpleNamespace(ellipses=[[1, 2, 3, 4]]), r"shape \(n, 5\)"),
        (SimpleNamespace(ellipses=[[1, 2, 3, 4, np.inf]]), "finite"),
        (SimpleNamespace(ellipses=[[1, 2, 3, 4, 5]], size=(0, 5)), "height and width"),
        (SimpleNamespace(ellipses=[[1, 2, 3, 4, 5]], size=7), "height and width"),
    ],
)
def test_annotations_for_fddb(truth, message):
    with pytest.raises(ValueError, match=message):
        evaluate_fddb({"a": FOUND}, {"a": truth})


anything = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.floats(),
    st.lists(st.floats(-1e12, 1e12) | st.integers() | st.text(max_size=2), max_size=5),
    st.lists(st.lists(st.floats(-1e10, 1e10), min_size=4, max_size=5), max_size=3),
)


@given(st.fixed_dictionaries({"boxes": anything}, optional=dict.fromkeys(
    ["ignore", "labels", "categories", "angles", "truncation", "occlusion", "ellipses", "size"],
    anything,
)))  # fmt: skip
def test_nothing_but_plain_errors(attributes):
    for evaluate in (evaluate_voc, evaluate_kitti, evaluate_fddb):
        try:
            evaluate({"a": FOUND}, {"a": SimpleNamespace(**attributes)})
        except (TypeError, ValueError) as error:
            assert str(error)  # noqa: PT017
