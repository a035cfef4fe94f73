"""Features of images on a GPU: what `channels`, `pyramid` and `decorrelation` do, to the last bit.

Kernels of ``gpu/detector.cu`` take tables of images or of levels, so that a dozen launches do for
all of them. They are laid out once, as a `Program`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.backends.device import Device
from badacost.detection.arrays import Planes
from badacost.detection.backend import Layout
from badacost.detection.channels import (
    BYTES_TO_XYZ,
    ChannelParameters,
    arc_cosine_table,
    cell_factors,
    full_turn,
    histogram_taps,
    lightness_table,
    resampling_factors,
    resampling_weights,
    whole_shrink,
)
from badacost.detection.decorrelation import half, halving_shares
from badacost.detection.images import Pixels
from badacost.detection.pyramid import channel_factors, halves_colours

SOURCE = "detection/detector"
THREADS = 128  # of a block
WALKERS = 32  # threads of a block that have much to do each: few, on many processors
_MAX_VALUES = 2**31  # of an array: places in it are 32 bit integers
_FILTERS_AT_ONCE = 4
_WINDOWS_AT_ONCE = 32


@dataclass
class Program:
    """Launches of kernels that are the same for each image, and the arrays that they work on."""

    device: Device
    n_bytes: int = 0
    _launches: list[tuple[tuple[Any, ...], int]] = field(default_factory=list)
    _places: dict[tuple[tuple[int, ...], int], tuple[int, Any]] = field(default_factory=dict)

    def empty(self, size: int, dtype: Any = np.float32) -> Any:
        """An array on the device, with any contents; it has at least one element."""
        if size >= _MAX_VALUES:
            raise ValueError(
                'the image is too large for device="cuda": reduce it, use fewer octaves up, or '
                'device="cpu".'
            )
        array = self.device.xp.empty(max(size, 1), dtype)
        self.n_bytes += array.nbytes
        return array

    def constant(self, values: Any, dtype: Any) -> Any:
        """An array on the device with these values."""
        array = np.ascontiguousarray(values, dtype).reshape(-1)
        self.n_bytes += array.nbytes
        return self.device.upload(array if array.size else np.zeros(1, dtype))

    def add(
        self,
        kernel: str,
        cells: Iterable[int],
        n_planes: int,
        *arguments: Any,
        threads: int = THREADS,
        shared: int = 0,
    ) -> None:
        """Launch a kernel on so many cells of each row of a table, and on planes."""
        numbers = tuple(cells)
        if (numbers, threads) not in self._places:
            n_blocks = np.array([-(-number // threads) for number in numbers], np.int64)
            rows = np.repeat(np.arange(len(numbers)), n_blocks)
            firsts = (np.arange(len(rows)) - (np.cumsum(n_blocks) - n_blocks)[rows]) * threads
            places = self.constant(np.stack([rows, firsts], axis=1), np.int32)
            self._places[numbers, threads] = len(rows), places
        n_all, places = self._places[numbers, threads]
        self.add_flat(kernel, (n_all, n_planes), places, *arguments, threads=threads, shared=shared)

    def add_flat(
        self,
        kernel: str,
        blocks: tuple[int, int],
        *arguments: Any,
        threads: int = THREADS,
        shared: int = 0,
    ) -> None:
        """Launch a kernel on blocks, whose threads share so many bytes."""
        self._launches.append(((kernel, blocks, threads, *arguments), shared))

    def run(self) -> None:
        """Do the work."""
        for launch, shared in self._launches:
            self.device.launch(SOURCE, *launch, shared=shared)


@dataclass(frozen=True)
class Colours:
    """Colours that channels are computed from: height and width, and their place in an array."""

    height: int
    width: int
    place: int


class ChannelMaps:
    """Channels of several images, one after the other in the array `values`; see `places`."""

    def __init__(
        self,
        program: Program,
        parameters: ChannelParameters,
        images: Sequence[Colours],
        colours: Any,
    ):
        shrink, measure = parameters.shrink, parameters.gradient
        self.sizes = [(image.height // shrink, image.width // shrink) for image in images]
        n_pixels = [image.height * image.width for image in images]
        n_cells = [rows * columns for rows, columns in self.sizes]
        pixels, n_all = places_of(n_pixels)
        self.places, size = places_of([parameters.n_channels * number for number in n_cells])
        self.values = program.empty(size)
        rows = zip(images, self.sizes, pixels, self.places, strict=True)
        table = program.constant(
            [
                (image.height, image.width, *cells, image.place, first, place)
                for image, cells, first, place in rows
            ],
            np.int32,
        )
        is_smooth = parameters.smoothing > 0
        if is_smooth:
            colours = _smoothed(program, table, images, colours, parameters.smoothing, 3)
        magnitude, orientation = program.empty(n_all), program.empty(n_all)
        angles = arc_cosine_table()
        program.add(
            "gradient", n_pixels, 1, table, is_smooth, colours,
            program.constant(angles, np.float32), len(angles) // 2, measure.full, magnitude,
            orientation,
        )  # fmt: skip
        if measure.norm_radius:
            smooth = _smoothed(program, table, images, magnitude, measure.norm_radius, 1)
            normalised = program.empty(n_all)
            program.add_flat(
                "normalise", (-(-n_all // THREADS), 1), n_all, magnitude, smooth,
                np.float32(measure.norm_constant), normalised,
            )  # fmt: skip
            magnitude = normalised
        program.add(
            "shrink_planes", n_cells, 4, table, is_smooth, shrink,
            cell_factors(shrink)[0] / np.float32(shrink**2), colours, magnitude, self.values,
        )  # fmt: skip
        n_bins = parameters.histogram.n_orientations
        taps, border = histogram_taps(shrink, parameters.histogram.soft)
        program.add(
            "histogram", n_cells, n_bins, table, shrink, program.constant(taps, np.float32),
            len(taps), np.float32(n_bins) / full_turn(measure.full), border, magnitude, orientation,
            self.values,
        )  # fmt: skip


def _smoothed(
    program: Program, table: Any, images: Sequence[Colours], source: Any, radius: int, n_planes: int
) -> Any:
    """Planes of images after a triangle filter."""
    n_pixels = [image.height * image.width for image in images]
    of_colours = n_planes == 3
    out = program.empty(n_planes * sum(n_pixels))
    if radius == 1:
        program.add("smooth", n_pixels, n_planes, table, of_colours, source, out)
        return out
    half = program.empty(n_planes * sum(n_pixels))
    program.add(
        "triangle_along_rows", [image.height for image in images], n_planes, table, of_colours,
        radius, float((radius + 1) ** 4), source, half, threads=WALKERS,
    )  # fmt: skip
    program.add(
        "triangle_along_columns", [image.width for image in images], n_planes, table, radius, half,
        out, threads=WALKERS,
    )  # fmt: skip
    return out


class Resamplings:
    """Tables for kernels that resample planes: jobs, and the weights they use."""

    def __init__(self) -> None:
        self.cells: list[int] = []
        self._jobs: list[tuple[int, ...]] = []
        self._starts: list[NDArray[Any]] = []
        self._weights: list[Planes] = []
        self._factors: list[Planes] = []

    def add(
        self,
        place: int,
        size: tuple[int, int],
        target: int,
        target_size: tuple[int, int],
        factors: Planes,
        *,
        by_squares: bool,
    ) -> None:
        """Resample planes of a size at a place to those at a target."""
        shrink = whole_shrink(size, target_size) if by_squares else 0
        if shrink:
            factors = factors / np.float32(shrink**2)
        axes: list[int] = []
        for n_source, n_target in zip(size, target_size, strict=True):
            start, weights = resampling_weights(n_source, n_target)
            axes += [_length(self._starts), _length(self._weights), len(weights)]
            self._starts.append(start)
            self._weights.append(weights)
        self._jobs.append(
            (place, *size, target, *target_size, shrink, *axes, _length(self._factors))
        )
        self._factors.append(factors)
        self.cells.append(target_size[0] * target_size[1])

    def launch(self, program: Program, n_planes: int, source: Any, target: Any) -> None:
        """Add the launch that does all of them, if there are any."""
        if self._jobs:
            program.add(
                "resample", self.cells, n_planes, program.constant(self._jobs, np.int32),
                program.constant(_joined(self._starts), np.int32),
                program.constant(_joined(self._weights), np.float32),
                program.constant(_joined(self._factors), np.float32), source, target,
            )  # fmt: skip


def _length(parts: Sequence[NDArray[Any]]) -> int:
    return sum(part.size for part in parts)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([part.reshape(-1) for part in parts])


def places_of(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where parts begin that lie one after the other, and the end of all."""
    ends = np.cumsum([0, *sizes]).tolist()
    return ends[:-1], ends[-1]


class Luv:
    """Planes L, U and V of images of one size, from their bytes."""

    def __init__(self, program: Program, size: tuple[int, int]):
        self._device, self._n_pixels = program.device, size[0] * size[1]
        self._matrix = program.constant(BYTES_TO_XYZ, np.float32)
        self._lightness = program.constant(lightness_table(), np.float32)
        self._top = len(lightness_table()) - 1

    def fill(self, images: Pixels, out: Any) -> None:
        """Convert images, shape (n_images, height, width, 3), to the beginning of an array."""
        blocks = (-(-self._n_pixels // THREADS), len(images))
        self._device.launch(
            SOURCE, "luv", blocks, THREADS, self._device.upload(images), self._matrix,
            self._lightness, self._top, self._n_pixels, out,
        )  # fmt: skip


class FeatureMaps:
    """Features of all levels side by side in one plane for each feature of a cell.

    A window has the same offsets to its features on any level.
    """

    def __init__(self, program: Program, layout: Layout):
        self._layout, parameters = layout, layout.pyramid
        self.origins, height, self.pitch = _packed(
            [layout.map_size(level) for level in range(len(layout.levels))]
        )
        self.stride = height * self.pitch
        n_planes = layout.cascades[0].n_planes
        self.values = program.empty(n_planes * self.stride)
        self._luv = Luv(program, layout.size)
        reals = sorted({level.real for level in layout.levels})
        images = self._colours(program, reals)
        maps = ChannelMaps(program, parameters.channels, images, self._pixels)
        n_channels = parameters.channels.n_channels
        inner = [(level.n_rows, level.n_columns) for level in layout.levels]
        places, size = places_of(n_channels * rows * columns for rows, columns in inner)
        resampled = program.empty(size)
        jobs = Resamplings()
        for number, level in enumerate(layout.levels):
            real = reals.index(level.real)
            jobs.add(
                maps.places[real], maps.sizes[real], places[number], inner[number],
                channel_factors(layout.levels, number, parameters), by_squares=False,
            )  # fmt: skip
        jobs.launch(program, n_channels, maps.values, resampled)
        self._finish(program, places, inner, resampled)

    def begin(self, pixels: Pixels) -> None:
        """Take the next image."""
        self._luv.fill(pixels[None], self._pixels)

    def _colours(self, program: Program, reals: Sequence[int]) -> list[Colours]:
        """Resample colours to the levels that are computed; some from half of them."""
        layout, parameters = self._layout, self._layout.pyramid
        shrink, factors = parameters.channels.shrink, resampling_factors([1.0] * 3)
        levels = [layout.levels[real] for real in reals]
        source = Colours(*layout.size, 0)
        place = 3 * source.height * source.width
        first, second = jobs = Resamplings(), Resamplings()
        images = []
        for level in levels:
            size = (level.n_rows * shrink, level.n_columns * shrink)
            image = source
            if size != (source.height, source.width):
                image = Colours(*size, place)
                place += 3 * size[0] * size[1]
                of_image = second if source.place else first
                of_image.add(
                    source.place, (source.height, source.width), image.place, size, factors,
                    by_squares=True,
                )  # fmt: skip
            images.append(image)
            if halves_colours(level, parameters):
                source = image
        self._pixels = program.empty(place)
        for each in jobs:
            each.launch(program, 3, self._pixels, self._pixels)
        return images

    def _finish(
        self,
        program: Program,
        places: Sequence[int],
        inner: Sequence[tuple[int, int]],
        resampled: Any,
    ) -> None:
        """Smooth, pad and decorrelate."""
        layout, parameters = self._layout, self._layout.pyramid
        n_channels, numbers = parameters.channels.n_channels, range(len(layout.levels))
        pad_y, pad_x = (n // parameters.channels.shrink for n in parameters.pad)
        sizes = [layout.level_size(level) for level in numbers]
        n_cells = [height * width for height, width in sizes]
        finished, targets = self.values, self.origins
        pitches, strides = [self.pitch] * len(sizes), [self.stride] * len(sizes)
        if layout.filters is not None:
            targets, size = places_of(n_channels * number for number in n_cells)
            finished = program.empty(size)
            pitches, strides = [width for _, width in sizes], n_cells
        rows = zip(places, inner, targets, pitches, strides, strict=True)
        table = [(place, *size, target, *steps) for place, size, target, *steps in rows]
        program.add(
            "finish", n_cells, n_channels, program.constant(table, np.int32),
            parameters.smoothing == 1, pad_y, pad_x, resampled, finished,
        )  # fmt: skip
        if layout.filters is not None:
            decorrelations = zip(targets, sizes, self.origins, strict=True)
            add_decorrelation(
                program, layout.filters, list(decorrelations), finished, self.values, self.pitch,
                self.stride,
            )  # fmt: skip


def add_decorrelation(
    program: Program,
    filters: Planes,
    maps: Sequence[tuple[int, tuple[int, int], int]],
    source: Any,
    target: Any,
    pitch: int,
    stride: int,
) -> None:
    """Filter channels and halve them: each of `maps` has a place, a size and a target."""
    n_filters, n_channels = filters.shape[:2]
    parts: list[Planes] = []
    table = []
    for place, (height, width), origin in maps:
        y_shares, x_shares = halving_shares(height, width)
        if width % 2 == 0:  # columns are summed in pairs, and their share is that of all
            y_shares = y_shares * x_shares[1, 0]
        table.append((place, height, width, origin, _length(parts), _length([*parts, y_shares])))
        parts += [y_shares, x_shares]
    program.add(
        "decorrelate", [half(height) * half(width) for _, (height, width), _ in maps],
        n_channels * -(-n_filters // _FILTERS_AT_ONCE), program.constant(table, np.int32),
        program.constant(_joined(parts), np.float32),
        program.constant(filters[:, :, ::-1, ::-1], np.float32), n_filters, n_channels, pitch,
        stride, source, target,
    )  # fmt: skip


def _packed(sizes: Sequence[tuple[int, int]]) -> tuple[list[int], int, int]:
    """Places of maps, largest first, side by side on shelves; rows and columns of all shelves."""
    pitch = max((width for _, width in sizes), default=0)
    origins, top, bottom, left = [], 0, 0, 0
    for height, width in sizes:
        if left + width > pitch:
            top, left = bottom, 0
        origins.append(top * pitch + left)
        bottom, left = max(bottom, top + height), left + width
    return origins, bottom, pitch


class WindowMaps:
    """Feature maps of cut-outs of one size, which threads may ask for at the same time."""

    def __init__(
        self,
        device: Device,
        size: tuple[int, int],
        parameters: ChannelParameters,
        is_smooth: bool,
        filters: Planes | None,
    ):
        self._program, self._lock = Program(device), Lock()
        program, n_channels = self._program, parameters.n_channels
        self._luv = Luv(program, size)
        n_values = 3 * size[0] * size[1]
        images = [Colours(*size, place * n_values) for place in range(_WINDOWS_AT_ONCE)]
        self._colours = program.empty(n_values * len(images))
        maps = ChannelMaps(program, parameters, images, self._colours)
        height, width = maps.sizes[0]
        table = [(place, height, width, place, width, height * width) for place in maps.places]
        self._values = program.empty(len(images) * n_channels * height * width)
        program.add(
            "finish", [height * width] * len(images), n_channels, program.constant(table, np.int32),
            is_smooth, 0, 0, maps.values, self._values,
        )  # fmt: skip
        self._shape: tuple[int, ...] = (len(images), n_channels, height, width)
        if filters is not None:
            finished = self._values
            shape = (len(filters) * n_channels, half(height), half(width))
            self._shape = (len(images), *shape)
            targets, n_all = places_of([math.prod(shape)] * len(images))
            self._values = program.empty(n_all)
            jobs = [
                (place, (height, width), to) for place, to in zip(maps.places, targets, strict=True)
            ]
            add_decorrelation(
                program, filters, jobs, finished, self._values, shape[2], shape[1] * shape[2]
            )

    def fill(self, crops: Pixels, rows: slice, columns: slice, out: Planes) -> None:
        """Fill rows of an array, (n_crops, n_features), with the features of a part of cut-outs."""
        device = self._program.device
        for first in range(0, len(crops), _WINDOWS_AT_ONCE):
            given = crops[first : first + _WINDOWS_AT_ONCE]
            with self._lock:
                self._luv.fill(given, self._colours)
                self._program.run()
                maps = self._values.reshape(self._shape)[: len(given), :, rows, columns]
                features = device.download(maps.reshape(len(given), -1))
            out[first : first + len(given)] = features
