"""Solids, cameras and layers: areas that are known, panels that are seen, where points fall."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.rendering import Camera, Layer, Mesh, Solid, fill, signed_area

TRIANGLE = np.array([[5.0, 5.0], [45.0, 10.0], [20.0, 44.0]])
SQUARE = np.array([[2.4, 3.0], [6.4, 3.0], [6.4, 5.0], [2.4, 5.0]])
LIGHT = np.array([0.0, 0.0, -1.0])


def cube() -> Mesh:
    solid = Solid([0.0, 0.0, 0.0])
    for axis in range(3):
        for side in (-1.0, 1.0):
            corners = np.insert([[-1, -1], [1, -1], [1, 1], [-1, 1]], axis, side, axis=1)
            solid.add(corners, 2 * axis + (side > 0))
    return Mesh.joined([solid])


def test_fill_covers_the_area_of_a_polygon():
    samples = np.zeros((50, 60), dtype=np.uint8)
    fill(samples, TRIANGLE, 7)
    assert signed_area(TRIANGLE) > 0.0
    assert (samples == 7).sum() == pytest.approx(signed_area(TRIANGLE), rel=0.05)


@pytest.mark.parametrize("outside", [(100, 0), (-100, 0), (0, 100), (0, -100)])
def test_fill_leaves_out_what_is_outside(outside):
    samples = np.zeros((50, 60), dtype=np.uint8)
    fill(samples, TRIANGLE + np.array(outside), 9)
    assert not samples.any()


def test_pixels_are_covered_in_part():
    pixels = np.full((8, 10, 3), 100.0, dtype=np.float32)
    layer = Layer()
    layer.add(SQUARE[::-1], (190.0, 100.0, 10.0))
    layer.paint_over(pixels)
    assert np.allclose(pixels[4, 4], [190.0, 100.0, 10.0])
    # Two of the three columns of samples.
    assert pixels[3, 2, 0] == pytest.approx(160.0)
    assert (pixels[[2, 5]] == 100.0).all()
    # Nothing of the area is lost.
    assert (pixels[:, :, 0] - 100.0).sum() == pytest.approx(8.0 * 90.0, rel=1e-5)


def test_opacity_lets_the_background_through():
    pixels = np.full((8, 10, 3), 100.0, dtype=np.float32)
    layer = Layer()
    layer.add(SQUARE, (0.0, 0.0, 0.0), 0.25)
    layer.paint_over(pixels)
    assert np.allclose(pixels[4, 4], 75.0)


def test_layers_outside_of_the_picture_change_nothing():
    pixels = np.zeros((8, 10, 3), dtype=np.float32)
    layer = Layer()
    layer.add(SQUARE + 100.0, (9.0, 9.0, 9.0))
    layer.paint_over(pixels)
    assert not pixels.any()


def test_directions():
    # Forward, left and up of what faces the viewer: at the viewer, right, up in the picture.
    directions = Camera(90.0, 0.0).turned(np.eye(3))
    assert np.allclose(directions, [[0, 0, -1], [1, 0, 0], [0, -1, 0]])
    # And of what faces the right of the picture.
    directions = Camera(0.0, 0.0).turned(np.eye(3))
    assert np.allclose(directions, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


@given(st.floats(-180.0, 180.0), st.floats(0.0, 60.0))
def test_turning_keeps_lengths_and_sides(heading, elevation):
    turned = Camera(heading, elevation).turned(np.eye(3))
    assert np.allclose(turned @ turned.T, np.eye(3))
    assert np.linalg.det(turned) == pytest.approx(1.0)


@pytest.mark.parametrize(("heading", "seen"), [(90.0, {1, 5}), (-90.0, {0, 5}), (45.0, {1, 2, 5})])
def test_only_panels_turned_to_the_camera_are_painted(heading, seen):
    # Faces of the cube: 0 back, 1 front, 2 right, 3 left, 4 bottom, 5 top.
    palette = np.array([[number, 0.0, 0.0, 1.0] for number in range(6)])
    layer = Layer()
    layer.add_mesh(cube(), palette, Camera(heading, 20.0), LIGHT)
    assert {paint[0] for paint in layer.paints} == seen


def test_normals_point_outside():
    mesh = cube()
    centres = np.add.reduceat(mesh.corners, mesh.starts[:-1], axis=0) / 4.0
    assert np.allclose(mesh.normals(), centres)
