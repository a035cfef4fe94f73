"""Selection: what is learned, ignored and dropped."""

from __future__ import annotations

import re

import numpy as np
import pytest

from badacost.detection.annotations import KITTI_CARS, AnnotatedImage, Selection

STREET = AnnotatedImage(
    None,
    [[0, 0, 50, 30]] * 5 + [[0, 0, 50, 24], [0, 0, 0, 30], [0, 0, 50, 25]],
    ignore=[False, False, False, False, True, False, False, False],
    categories=["Car", "Van", "Cyclist", "Car", "Cyclist", "Car", "Car", "Car"],
    truncation=[0.3, 0, 0, 0.31, 0, 0, 0, np.nan],
    occlusion=[1, 0, 0, 0, 0, 0, 0, np.nan],
)


def test_cars_of_the_paper():
    chosen = KITTI_CARS.apply(STREET)
    assert chosen.categories == ("Car", "Van", "Car", "Cyclist", "Car", "Car", "Car")
    assert chosen.ignore.tolist() == [False, True, True, True, True, True, False]


def test_all_by_default():
    chosen = Selection().apply(STREET)
    assert len(chosen) == len(STREET)
    # Only the box without an area is new.
    assert np.flatnonzero(chosen.ignore).tolist() == [4, 6]


def test_each_limit():
    for limit, ignored in (
        ({"min_width": 51}, 8),
        ({"max_occlusion": 0.0}, 3),
        ({"max_truncation": 0.2}, 4),
    ):
        assert Selection(**limit).apply(STREET).ignore.sum() == ignored


def test_no_objects():
    assert len(KITTI_CARS.apply(AnnotatedImage(None))) == 0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"categories": "Car"}, TypeError),
        ({"ignored": None}, TypeError),
        ({"categories": ["Car", ""]}, ValueError),
        ({"min_height": -1.0}, ValueError),
        ({"max_occlusion": "1"}, TypeError),
    ],
)
def test_refuses(wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        Selection(**wrong)


def test_all_images():
    empty = AnnotatedImage(None, [])
    chosen = KITTI_CARS.apply_all(iter([STREET, empty]))
    assert [len(image) for image in chosen] == [7, 0]


@pytest.mark.parametrize(
    ("selection", "images", "message"),
    [
        (
            Selection(["Bus"]),
            [STREET],
            "of the categories ['Bus']: the annotations have ['Car', 'C",
        ),
        (Selection(min_width=99), [STREET], "name annotations with boxes that are not ignored"),
        (Selection(["Bus"]), [AnnotatedImage(None, [])], "there are no objects to learn: name"),
    ],
)
def test_nothing_to_learn(selection, images, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        selection.apply_all(images)
