"""Backends: what computes the features of images and sends windows through trees.

A `Layout` says what is to be done with images of one size, and a backend does it, level by level:
its buffers are laid out once and used again for each image. Arrays that it returns are the
caller's own: they do not change when it goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.parallel import Threads
from badacost.detection.arrays import Planes
from badacost.detection.cascade import Cascade, Scanner, Windows
from badacost.detection.channels import rgb_to_luv
from badacost.detection.decorrelation import decorrelate, half
from badacost.detection.images import ImageError, Pixels
from badacost.detection.pyramid import (
    LevelLayout,
    Pyramid,
    PyramidParameters,
    check_memory,
    level_layouts,
    pyramid_bytes,
)

_MAX_VALUES = 2**29  # of the features of a level, which kernels can count


@dataclass(frozen=True, eq=False)
class Layout:
    """What a detector does with images of one size: levels, maps of features, grids of windows."""

    size: tuple[int, int]
    pyramid: PyramidParameters
    filters: Planes | None
    cascades: tuple[Cascade, ...]
    stride: int

    def __post_init__(self) -> None:
        n_values = math.prod(self.buffer_shape)
        planes = pyramid_bytes(self.size, self.levels, self.pyramid)
        check_memory(self.size, self.pyramid, planes + 4 * n_values)
        if n_values > _MAX_VALUES:
            raise ImageError("the image is too large: reduce it, or use fewer octaves up.")

    @cached_property
    def levels(self) -> tuple[LevelLayout, ...]:
        """The levels of the pyramid, largest first."""
        return level_layouts(self.size, self.pyramid)

    def level_size(self, level: int) -> tuple[int, int]:
        """Rows and columns of the channels of a level, with their padding."""
        pad_y, pad_x = (n // self.pyramid.channels.shrink for n in self.pyramid.pad)
        return self.levels[level].n_rows + 2 * pad_y, self.levels[level].n_columns + 2 * pad_x

    def map_size(self, level: int) -> tuple[int, int]:
        """Rows and columns of the features of a level."""
        height, width = self.level_size(level)
        return (height, width) if self.filters is None else (half(height), half(width))

    @property
    def buffer_shape(self) -> tuple[int, int, int]:
        """Planes, rows and columns that hold the features of any level."""
        sizes = [self.map_size(level) for level in range(len(self.levels))]
        height, width = np.max([(0, 0), *sizes], axis=0).tolist()
        return self.cascades[0].n_planes, height, width

    def grid(self, level: int, cascade: int) -> tuple[int, int]:
        """Rows and columns of the windows of a cascade on a level."""
        return self.cascades[cascade].grid(*self.map_size(level), self.stride)

    def boxes(self, level: int, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Boxes x1, y1, x2, y2 in the image of windows of a cascade on a level."""
        place, looking = self.levels[level], self.cascades[cascade]
        (height, width), (padded_height, padded_width) = looking.window, looking.padded_window
        pad_y, pad_x = self.pyramid.pad
        y = (rows * self.stride + (padded_height - height) / 2 - pad_y) / place.scale_y
        x = (columns * self.stride + (padded_width - width) / 2 - pad_x) / place.scale_x
        boxes = np.empty((len(rows), 4))
        boxes[:, 0], boxes[:, 1] = x, y
        boxes[:, 2], boxes[:, 3] = x + width / place.scale, y + height / place.scale
        return boxes


class Backend(Protocol):
    """What a plan needs; rows and columns of windows are those of `Layout.grid`.

    A backend may do the work of all levels when an image comes, and hand it out level by level.
    """

    max_idle_bytes: int  # that plans may keep while no image is looked at

    def __init__(self, layout: Layout) -> None:
        """Lay out buffers for images of one size."""

    @property
    def n_bytes(self) -> int:
        """Size of all buffers."""

    def begin(self, pixels: Pixels, threads: Threads) -> None:
        """Take an image, and the threads that work on it until the next."""

    def compute_channels(self, level: int) -> None:
        """Compute channels that a level follows from; levels come in their order."""

    def compute_features(self, level: int) -> None:
        """Compute the features of a level, which the following calls are about."""

    def scan(self, cascade: int) -> Windows:
        """Find the windows that a cascade keeps."""

    def trace(self, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Scores of windows after each tree of a cascade, (n_windows, n_trees)."""

    def leaves(self, cascade: int, rows: IndexArray, columns: IndexArray) -> NDArray[np.int32]:
        """Leaves that windows reach in each tree, as nodes of the forest, (n_windows, n_trees)."""

    def poses(self, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """What the pose of a cascade says of windows, (n_windows, n_outputs)."""


class CPUBackend:
    """Compiled loops, which threads share."""

    max_idle_bytes = 2**28

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._pyramid = Pyramid(layout.levels, layout.pyramid)
        self._buffer = np.empty(layout.buffer_shape, np.float32)
        self._scanners = [Scanner(cascade, self._buffer) for cascade in layout.cascades]

    @property
    def n_bytes(self) -> int:
        """Size of all buffers."""
        return self._buffer.nbytes + self._pyramid.workspace.n_bytes

    def begin(self, pixels: Pixels, threads: Threads) -> None:
        """Convert the image to LUV."""
        self._threads = threads
        self._pyramid.begin(rgb_to_luv(pixels, threads), threads)

    def compute_channels(self, level: int) -> None:
        """Compute the channels of a level that is not approximated."""
        self._pyramid.compute(level)

    def compute_features(self, level: int) -> None:
        """Fill the buffer with the features of a level."""
        height, width = self._map_size = self._layout.map_size(level)
        channels, filters = self._pyramid.channels(level), self._layout.filters
        if filters is None:
            self._buffer[:, :height, :width] = channels
        else:
            decorrelate(channels, filters, out=self._buffer, threads=self._threads)

    def scan(self, cascade: int) -> Windows:
        """Send all windows of the level through the trees."""
        return self._scanners[cascade].scan(*self._map_size, self._layout.stride, self._threads)

    def trace(self, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Follow windows of the level through all trees."""
        return self._scanners[cascade].trace(rows, columns, self._layout.stride)

    def leaves(self, cascade: int, rows: IndexArray, columns: IndexArray) -> NDArray[np.int32]:
        """Find the leaves of windows of the level."""
        return self._scanners[cascade].leaves(rows, columns, self._layout.stride)

    def poses(self, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Work out the poses of windows of the level."""
        return self._scanners[cascade].poses(rows, columns, self._layout.stride)
