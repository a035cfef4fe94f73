"""Pixels of ellipses and boxes, as the FDDB program paints them with OpenCV, and their overlaps.

A region is a span of pixels in each of its rows. An ellipse is painted as a polygon with a corner
every few degrees: every pixel that a side passes through, and all between them. Corners lie on a
grid of 1/65536 of a pixel, since which pixels are hit depends on such small numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost.detection.box_tree import BoxTree, Pairs
from badacost.detection.evaluation import fddb_kernels

Coordinates = NDArray[np.int64]
MAX_RADIUS = 1e5  # pixels; larger regions are mistakes, and would take all memory
_MAX_CENTRE = 1e7
_ONE = 1 << 16  # a pixel, on the grid of the corners
_HALF = _ONE >> 1
_NO_SPANS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Region:
    """Pixels from `left` to `right`, both included, in `n_rows` rows from `top` on.

    There is a span for each row, or one for all rows, so that a box takes little memory. It has no
    pixel if `left` is greater than `right`.
    """

    top: int
    n_rows: int
    left: Coordinates
    right: Coordinates

    @classmethod
    def from_pixels(cls, x: Coordinates, y: Coordinates) -> Region:
        """Return the region between the outermost of these pixels in each row."""
        top = int(y.min())
        n_rows = int(y.max()) - top + 1
        left, right = np.full(n_rows, x.max() + 1), np.full(n_rows, x.min() - 1)
        np.minimum.at(left, y - top, x)
        np.maximum.at(right, y - top, x)
        return cls(top, n_rows, left, right)

    @property
    def area(self) -> int:
        """Number of pixels."""
        widths = np.maximum(self.right - self.left + 1, 0)
        return int(widths.sum()) * (self.n_rows if len(widths) == 1 else 1)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """A box, x1, y1, x2, y2 from edge to edge, that has all pixels."""
        if not len(self.left):
            return 0.0, 0.0, 0.0, 0.0
        x1, x2 = float(self.left.min()), float(self.right.max()) + 1.0
        return x1, float(self.top), max(x1, x2), float(self.top + self.n_rows)

    def clipped(self, size: tuple[int, int] | None) -> Region:
        """Return the part inside an image of this height and width; all of it if None."""
        if size is None:
            return self
        height, width = size
        first, last = max(-self.top, 0), max(min(height - self.top, self.n_rows), 0)
        rows = slice(first, last) if len(self.left) > 1 else slice(None)
        return Region(
            self.top + first,
            max(last - first, 0),
            np.maximum(self.left[rows], 0),
            np.minimum(self.right[rows], width - 1),
        )


def box_region(box: FloatArray, size: tuple[int, int] | None = None) -> Region:
    """Return the pixels of a box x1, y1, x2, y2: its rounded corners belong to it.

    There are no pixels outside an image of this size, height and width.

    >>> box_region([0.0, 0.0, 2.0, 3.0]).area
    12
    """
    corners = np.rint(np.asarray(box, dtype=np.float64)).astype(np.int64)
    if size is None and corners[3] - corners[1] > 2 * MAX_RADIUS:
        raise ValueError(
            f"boxes of more than {2 * MAX_RADIUS:g} pixels need the size of their image."
        )
    x1, y1, x2, y2 = corners.tolist()
    if size is not None:
        y1, y2 = max(y1, 0), min(y2, size[0] - 1)
    n_rows = max(y2 - y1 + 1, 0)
    return Region(y1, n_rows, np.array([x1]), np.array([x2])).clipped(size)


def ellipse_region(ellipse: FloatArray, size: tuple[int, int] | None = None) -> Region:
    """Return the pixels of an ellipse, nearly, in an image of this size, height and width.

    An ellipse has half axes, the angle of the first one to the x axis in radians, and the centre x,
    y, all as in the files of FDDB. The centre is rounded to a pixel, the angle to a degree, and
    half axes are cut to whole pixels.

    >>> ellipse_region([20.0, 10.0, 0.0, 50.0, 50.0]).area  # 20 * 10 * pi = 628
    675
    """
    first, second, angle, x, y = (float(value) for value in ellipse)
    if max(abs(first), abs(second)) > MAX_RADIUS or max(abs(x), abs(y)) > _MAX_CENTRE:
        raise ValueError(
            f"ellipses must have half axes of at most {MAX_RADIUS:g} pixels, and centres within "
            f"{_MAX_CENTRE:g} pixels of the origin."
        )
    corners = _corners(int(abs(first)), int(abs(second)), round(np.degrees(angle)))
    corners += np.rint([x, y]).astype(np.int64) * _ONE
    sides = corners, np.roll(corners, -1, axis=0)
    outline = _outline(*(sides if size is None else _cut(*sides, size)))
    pixels = np.concatenate([outline, _flanks(corners)])
    return Region.from_pixels(pixels[:, 0], pixels[:, 1]).clipped(size)


def region_overlaps(first: Sequence[Region], second: Sequence[Region]) -> Pairs:
    """Return the pairs of n and m regions that share pixels, with their intersection over union.

    A `BudgetError` is raised where pairs that might are more than fit into memory.
    """
    bounds = [np.array([r.bounds for r in part]).reshape(-1, 4) for part in (first, second)]
    queries, boxes, _ = BoxTree(bounds[1]).pairs(bounds[0], 0.0)
    regions = [*first, *second]
    shared = fddb_kernels.shared_pixels(
        queries,
        boxes + len(first),
        np.array([region.top for region in regions], dtype=np.int64),
        np.array([region.n_rows for region in regions], dtype=np.int64),
        np.cumsum([0, *(len(region.left) for region in regions)]),
        np.concatenate([_NO_SPANS, *(region.left for region in regions)]),
        np.concatenate([_NO_SPANS, *(region.right for region in regions)]),
    )
    areas = [np.array([r.area for r in part], dtype=np.int64) for part in (first, second)]
    chosen = shared > 0
    queries, boxes, shared = queries[chosen], boxes[chosen], shared[chosen]
    return Pairs(queries, boxes, shared / (areas[0][queries] + areas[1][boxes] - shared))


def _corners(first: int, second: int, degrees: int) -> Coordinates:
    """Return the corners of an ellipse around the origin, on their grid, shape (n, 2)."""
    radius = max(first, second)
    step = 90 if radius < 3 else 30 if radius < 10 else 18 if radius < 15 else 5
    turn = np.arange(0, 360, step)
    along, across = first * _sine(turn + 90), second * _sine(turn)
    cosine, sine = _sine(degrees + 90), _sine(degrees)
    corners = np.stack([along * cosine - across * sine, along * sine + across * cosine], axis=1)
    return np.rint(corners * _ONE).astype(np.int64)


def _sine(degrees: int | NDArray[np.int64]) -> FloatArray:
    """Return sines of whole degrees as OpenCV's table has them: single precision, 7 decimals."""
    table = np.sin(np.radians(np.mod(degrees, 360))).round(7)
    return np.asarray(table, dtype=np.float32).astype(np.float64)


def _outline(start: Coordinates, end: Coordinates) -> Coordinates:
    """Return the pixels of lines: the ends, and the nearest ones at whole steps along each line."""
    pixels = [(start + _HALF) >> 16, (end + _HALF) >> 16]
    is_flat = np.abs(end[:, 0] - start[:, 0]) > np.abs(end[:, 1] - start[:, 1])
    for along, chosen in ((0, is_flat), (1, ~is_flat)):
        across = 1 - along
        a, b = _ordered(start[chosen], end[chosen], along)
        length = b[:, along] - a[:, along]
        slope = _quotient((b[:, across] - a[:, across]) * _ONE, length | 1)
        line, step = _steps(length >> 16)
        pixel = np.empty((len(line), 2), dtype=np.int64)
        pixel[:, along] = ((a[line, along] + _HALF) >> 16) + step
        pixel[:, across] = (a[line, across] + _HALF + step * slope[line]) >> 16
        pixels.append(pixel)
    return np.concatenate(pixels)


def _cut(
    start: Coordinates, end: Coordinates, size: tuple[int, int]
) -> tuple[Coordinates, Coordinates]:
    """Return the parts of lines inside an image, whose steps start again at its edge."""
    for along, length in ((1, size[0]), (0, size[1])):
        limit = length * _ONE - 1
        low, high = np.minimum(start, end)[:, along], np.maximum(start, end)[:, along]
        inside = (high >= 0) & (low <= limit)
        start, end = start[inside].copy(), end[inside].copy()
        for moved, other in ((start, end), (end, start)):
            edge = np.clip(moved[:, along], 0, limit)
            run = np.where(edge == moved[:, along], 1, other[:, along] - moved[:, along])
            rise = (edge - moved[:, along]) * (other[:, 1 - along] - moved[:, 1 - along])
            moved[:, 1 - along] += np.sign(run) * _quotient(rise, np.abs(run))
            moved[:, along] = edge
    return start, end


def _flanks(corners: Coordinates) -> Coordinates:
    """Return where the sides of a polygon pass each row, corners being moved to whole rows."""
    start, end = _ordered(corners, np.roll(corners, -1, axis=0), 1)
    first, last = (start[:, 1] + _HALF) >> 16, (end[:, 1] + _HALF) >> 16
    n_rows = last - first
    slope = _quotient(2 * (end[:, 0] - start[:, 0]) + n_rows, np.maximum(2 * n_rows, 1))
    # The row of the last corner is the first one of the next side, except at the bottom.
    side, step = _steps(np.where(last == last.max(), n_rows, n_rows - 1))
    x = (start[side, 0] + step * slope[side] + _HALF) >> 16
    return np.stack([x, first[side] + step], axis=1)


def _ordered(start: Coordinates, end: Coordinates, axis: int) -> tuple[Coordinates, Coordinates]:
    """Exchange ends so that coordinates rise along an axis."""
    falls = (start[:, axis] > end[:, axis])[:, np.newaxis]
    return np.where(falls, end, start), np.where(falls, start, end)


def _steps(last: Coordinates) -> tuple[Coordinates, Coordinates]:
    """Return sides and steps: (0, 0), ..., (0, last[0]), (1, 0), ..., (1, last[1]), and so on."""
    counts = np.maximum(last + 1, 0)
    side = np.repeat(np.arange(len(last)), counts)
    return side, np.arange(len(side)) - np.repeat(np.cumsum(counts) - counts, counts)


def _quotient(numerator: Coordinates, denominator: Coordinates) -> Coordinates:
    """Divide whole numbers, rounding towards zero."""
    return np.sign(numerator) * (np.abs(numerator) // denominator)
