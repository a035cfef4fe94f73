"""Regions of pixels: against masks, and against the ellipse that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.evaluation.regions import (
    Region,
    box_region,
    ellipse_region,
    region_overlaps,
)

rows, columns = np.mgrid[-60:160, -60:160]
ellipses = st.tuples(
    st.floats(1, 50), st.floats(1, 50), st.floats(-7, 7), st.floats(0, 100), st.floats(0, 100)
)
sizes = st.tuples(st.integers(1, 150), st.integers(1, 150))


def mask_of(region: Region) -> np.ndarray:
    mask = np.zeros(rows.shape, dtype=bool)
    spans = (np.broadcast_to(part, region.n_rows) for part in (region.left, region.right))
    for row, (left, right) in enumerate(zip(*spans, strict=True), region.top):
        mask[row + 60, left + 60 : max(right, left - 1) + 61] = True
    return mask


def inside(ellipse, grow):
    """Pixels whose centre is in the ellipse with half axes that are so much longer."""
    a, b, turn = int(ellipse[0]), int(ellipse[1]), np.radians(round(np.degrees(ellipse[2])))
    x, y = columns - round(ellipse[3]), rows - round(ellipse[4])
    along, across = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    return (along / (a + grow)) ** 2 + (across / (b + grow)) ** 2 <= 1


@given(ellipses)
def test_ellipse_is_near_the_true_one(ellipse):
    mask = mask_of(ellipse_region(ellipse))
    assert not (mask & ~inside(ellipse, 1.5)).any()
    small = max(ellipse[:2]) < 16  # drawn with few corners
    if not small and min(ellipse[:2]) > 3:
        assert mask[inside(ellipse, -1.5)].all()


@given(ellipses, sizes)
def test_clipping_changes_pixels_near_the_edge_only(ellipse, size):
    whole, clipped = mask_of(ellipse_region(ellipse)), mask_of(ellipse_region(ellipse, size))
    in_image = (rows >= 0) & (columns >= 0) & (rows < size[0]) & (columns < size[1])
    assert not clipped[~in_image].any()
    # Sides that cross the edge are stepped along anew from there: a pixel here and there differs.
    assert ((whole & in_image) ^ clipped).sum() <= 16


@given(st.lists(st.floats(-50, 150), min_size=4, max_size=4), sizes, st.booleans())
def test_box(numbers, size, clip):
    box = np.array(numbers)
    box[2:] = np.maximum(box[:2], box[2:])
    x1, y1, x2, y2 = np.rint(box)
    expected = (columns >= x1) & (columns <= x2) & (rows >= y1) & (rows <= y2)
    if clip:
        expected &= (rows >= 0) & (columns >= 0) & (rows < size[0]) & (columns < size[1])
    region = box_region(box, size if clip else None)
    np.testing.assert_array_equal(mask_of(region), expected)
    assert region.area == expected.sum()


shapes = st.lists(
    st.one_of(
        ellipses,
        st.tuples(*[st.floats(-50, 100)] * 4).map(lambda box: (*sorted(box[:2]), *sorted(box[2:]))),
    ),
    max_size=4,
)


def painted(shape, size):
    if len(shape) == 5:
        return ellipse_region(shape, size)
    x1, x2, y1, y2 = shape
    return box_region(np.array([x1, y1, x2, y2]), size)


@given(shapes, shapes, st.one_of(sizes, st.none()))
def test_overlaps_are_those_of_masks(first, second, size):
    ours = [[painted(shape, size) for shape in group] for group in (first, second)]
    masks = [[mask_of(region) for region in group] for group in ours]
    expected = [[(a & b).sum() / max((a | b).sum(), 1) for b in masks[1]] for a in masks[0]]
    expected = np.reshape(expected, (len(first), len(second)))
    queries, boxes, values = region_overlaps(*ours)
    assert [*zip(queries, boxes, strict=True)] == [*zip(*np.nonzero(expected), strict=True)]
    np.testing.assert_array_equal(values, expected[expected > 0.0])


@pytest.mark.parametrize("ellipse", [[0, 0, 0, 5, 5], [0.9, 0.9, 1.0, 5.2, 4.9]])
def test_smallest_ellipse_is_a_pixel(ellipse):
    assert ellipse_region(ellipse).area == 1


def test_what_is_too_large():
    with pytest.raises(ValueError, match="half axes"):
        ellipse_region([1e6, 1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="centres"):
        ellipse_region([1.0, 1.0, 0.0, 1e9, 0.0])
    with pytest.raises(ValueError, match="size of their image"):
        box_region([0.0, 0.0, 1.0, 1e9])
    assert box_region([-1e9, -1e9, 1e9, 1e9], (10, 20)).area == 200
    assert ellipse_region([9e4, 9e4, 0.3, 9e6, 9e6], (10, 20)).area == 0
