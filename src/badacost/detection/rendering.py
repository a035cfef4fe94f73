"""Convex solids with painted panels, and the camera and the layers that make pictures of them.

Panels turned away from the camera are left out; the others are painted in the order of a mesh,
which must be the order of depth, from the back to the front. Layers take 9 samples to a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray, IndexArray

Colours = NDArray[np.float32]

_SAMPLES = 3  # along each side of a pixel
_DISTANCE = 7.0  # of the viewer, in units of length: a weak perspective


@dataclass(frozen=True, eq=False)
class Mesh:
    """Flat convex panels in space, whose corners turn against the clock seen from outside.

    Attributes
    ----------
    corners : ndarray of shape (n_corners, 3)
        Forward, left, up, of all panels one after the other.
    starts : ndarray of shape (n_panels + 1,)
        Where the corners of each panel begin.
    paints : ndarray of shape (n_panels,)
        Row of a palette.
    """

    corners: FloatArray
    starts: IndexArray
    paints: IndexArray

    @classmethod
    def joined(cls, solids: Iterable[Solid]) -> Mesh:
        """Return all panels of solids, in the order they are painted."""
        panels = [panel for solid in solids for panel in solid.panels]
        return cls(
            np.concatenate([corners for corners, _ in panels]),
            np.cumsum([0, *(len(corners) for corners, _ in panels)], dtype=np.int64),
            np.array([paint for _, paint in panels], dtype=np.int64),
        )

    def scaled(self, factors: FloatArray) -> Mesh:
        """Return the mesh made longer, wider and higher."""
        return Mesh(self.corners * factors, self.starts, self.paints)

    def normals(self) -> FloatArray:
        """Return the unit vector that points outside for each panel, shape (n_panels, 3)."""
        a, b, c = (self.corners[self.starts[:-1] + i] for i in range(3))
        normals = np.cross(b - a, c - b)
        return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


@dataclass(eq=False)
class Solid:
    """Panels around a point inside; later ones are painted over earlier ones."""

    inside: ArrayLike
    panels: list[tuple[FloatArray, int]] = field(default_factory=list)

    def add(self, corners: ArrayLike, paint: int) -> None:
        """Add a panel, its corners in either order."""
        points = np.array(corners, dtype=np.float64)
        normal = np.cross(points[1] - points[0], points[2] - points[1])
        outwards = normal @ (points[0] - np.asarray(self.inside)) > 0.0
        self.panels.append((points if outwards else points[::-1], paint))


@dataclass(frozen=True)
class Camera:
    """Projects what stands on the ground, seen from above by a few degrees.

    Attributes
    ----------
    heading, elevation : float
        Where the object faces, as KITTI's alpha, and how far the camera looks down, in degrees.
    scale : float
        Pixels of a unit of length.
    shift : tuple of float
        x and y of the origin in pixels.
    """

    heading: float
    elevation: float
    scale: float = 1.0
    shift: tuple[float, float] = (0.0, 0.0)

    def moved(self, scale: float, shift: FloatArray) -> Camera:
        """Return the camera with another scale and origin."""
        return Camera(self.heading, self.elevation, scale, (float(shift[0]), float(shift[1])))

    def turned(self, vectors: FloatArray) -> FloatArray:
        """Return vectors as right, down and away of the camera."""
        turn, tilt = math.radians(self.heading), math.radians(self.elevation)
        forward, left, up = np.moveaxis(vectors, -1, 0)
        right = forward * math.cos(turn) + left * math.sin(turn)
        away = left * math.cos(turn) - forward * math.sin(turn)
        down = -up * math.cos(tilt) - away * math.sin(tilt)
        depth = away * math.cos(tilt) - up * math.sin(tilt)
        return np.stack([right, down, depth], axis=-1)

    def seen(self, points: FloatArray) -> FloatArray:
        """Return where points are in the picture, shape (n, 2)."""
        right, down, depth = self.turned(points).T
        zoom = self.scale * _DISTANCE / (_DISTANCE + depth)
        return np.stack([right * zoom, down * zoom], axis=1) + np.array(self.shift)

    def extent(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest coordinates of points in the picture."""
        seen = self.seen(points)
        return seen.min(axis=0), seen.max(axis=0)


@dataclass(eq=False)
class Layer:
    """Convex polygons of one colour each, painted over one another."""

    polygons: list[FloatArray] = field(default_factory=list)
    paints: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, polygon: FloatArray, colour: Sequence[float], opacity: float = 1.0) -> None:
        """Add a polygon in pixels, in either order of its corners."""
        if signed_area(polygon) < 0.0:
            polygon = polygon[::-1]
        self.polygons.append(polygon)
        self.paints.append((*(opacity * value for value in colour), opacity))

    def add_mesh(self, mesh: Mesh, palette: FloatArray, camera: Camera, light: FloatArray) -> None:
        """Add the panels of a mesh that are turned to the camera.

        Parameters
        ----------
        mesh : Mesh
            Panels in the order they are painted.
        palette : ndarray of shape (n_paints, 4)
            Red, green, blue, and the part of the colour that does not depend on the light.
        camera : Camera
            What sees it.
        light : ndarray of shape (3,)
            Unit vector to the light: right, down and away of the camera.
        """
        shine = 0.45 + 0.65 * np.maximum(camera.turned(mesh.normals()) @ light, 0.0)
        colours, glow = palette[mesh.paints, :3], palette[mesh.paints, 3]
        brightness = glow + (1.0 - glow) * shine
        shaded = np.minimum(colours * brightness[:, np.newaxis], 255.0).tolist()
        seen = camera.seen(mesh.corners)
        for (start, stop), colour in zip(pairwise(mesh.starts.tolist()), shaded, strict=True):
            # From outside, corners turn against the clock; y points down.
            if signed_area(seen[start:stop]) < 0.0:
                self.add(seen[start:stop], colour)

    def paint_over(self, pixels: Colours) -> None:
        """Paint the polygons over a picture."""
        corners = np.concatenate(self.polygons)
        height, width = pixels.shape[:2]
        x0, y0 = (max(0, int(edge)) for edge in np.floor(corners.min(axis=0)))
        x1, y1 = np.minimum(np.ceil(corners.max(axis=0)).astype(np.int64), [width, height])
        if x0 >= x1 or y0 >= y1:
            return
        # Samples hold the number of the polygon that they lie in; colours come last.
        samples = np.zeros(((y1 - y0) * _SAMPLES, (x1 - x0) * _SAMPLES), dtype=np.uint8)
        for number, polygon in enumerate(self.polygons, start=1):
            fill(samples, (polygon - [x0, y0]) * _SAMPLES - 0.5, number)
        palette = np.array([(0.0,) * 4, *self.paints], dtype=np.float32) / _SAMPLES**2
        paint = np.zeros((y1 - y0, x1 - x0, 4), dtype=np.float32)
        for i in range(_SAMPLES):
            for j in range(_SAMPLES):
                paint += palette.take(samples[i::_SAMPLES, j::_SAMPLES], axis=0, mode="clip")
        patch = pixels[y0:y1, x0:x1]
        patch *= 1.0 - paint[:, :, 3:]
        patch += paint[:, :, :3]


def signed_area(polygon: FloatArray) -> float:
    """Return the area, positive where corners turn with the clock in a picture."""
    x, y = polygon.T.tolist()
    return sum(x[i - 1] * y[i] - y[i - 1] * x[i] for i in range(len(x))) / 2.0


def fill(samples: NDArray[np.uint8], polygon: FloatArray, number: int) -> None:
    """Write a number to the samples inside a convex polygon with corners in order of the clock."""
    height, width = samples.shape
    top = max(0, math.ceil(polygon[:, 1].min()))
    bottom = max(top, min(height, math.floor(polygon[:, 1].max()) + 1))
    rows = np.arange(top, bottom, dtype=np.float64)
    left, right = np.zeros(len(rows)), np.full(len(rows), width - 1.0)
    corners = polygon.tolist()
    for (x, y), (u, v) in pairwise([*corners, corners[0]]):
        if v == y:
            continue
        crossing = x + (rows - y) * ((u - x) / (v - y))
        if v < y:
            np.maximum(left, crossing, out=left)
        else:
            np.minimum(right, crossing, out=right)
    first = max(0, math.ceil(polygon[:, 0].min()))
    last = max(first, min(width, math.floor(polygon[:, 0].max()) + 1))
    # Small integers compare several times faster than floats.
    columns = np.arange(first, last, dtype=np.int16)
    begin = np.ceil(np.minimum(left, width)).astype(np.int16)[:, np.newaxis]
    end = np.floor(np.maximum(right, -1.0)).astype(np.int16)[:, np.newaxis]
    inside = (columns >= begin) & (columns <= end)
    np.copyto(samples[top:bottom, first:last], np.uint8(number), where=inside)
