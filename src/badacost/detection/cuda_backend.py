"""`CudaBackend`: what `CPUBackend` does, on a GPU and with the same results to the last bit.

All levels are computed and scanned as soon as an image comes: kernels of ``gpu/detector.cu`` take
tables of levels, so that some twenty launches do for an image. It is sent as bytes, and the windows
that were kept come back in one piece; they are then handed out level by level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray, Planes
from badacost.detection.backend import Layout
from badacost.detection.cascade import Cascade, Windows
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
from badacost.detection.decorrelation import halving_shares
from badacost.detection.images import Pixels
from badacost.detection.pyramid import channel_factors, halves_colours
from badacost.gpu.device import Device, cuda_device
from badacost.threads import Threads

_SOURCE = "detector"
_THREADS = 128  # of a block
_WALKERS = 32  # threads of a block that walk along a row or column each: few, on many processors
_MAX_SCANNERS = 2**17  # threads that look at windows, each with room for its margins
_COUNTERS = 4  # blocks that add up what was evaluated on a level
_FIRST_STAGE = 16  # trees, after those that cannot reject a window
_GROWTH = 4  # of the number of trees from stage to stage
_MAX_VALUES = 2**31  # of an array: places in it are 32 bit integers
_AT_ONCE = 4  # filters that a thread applies
_FOUND = np.dtype([("window", np.uint32), ("label", np.uint32), ("score", np.float64)])
_WORDS = _FOUND.itemsize // 8
_FETCHED = 2048  # windows that come with the counts; if there are more, they are fetched apart


@dataclass
class Program:
    """Launches of kernels that are the same for each image, and the arrays that they work on."""

    device: Device
    n_bytes: int = 0
    _launches: list[tuple[Any, ...]] = field(default_factory=list)
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
        threads: int = _THREADS,
    ) -> None:
        """Launch a kernel on so many cells of each row of a table, and on planes."""
        numbers = tuple(cells)
        if (numbers, threads) not in self._places:
            places = [
                (row, first)
                for row, number in enumerate(numbers)
                for first in range(0, number, threads)
            ]
            self._places[numbers, threads] = len(places), self.constant(places, np.int32)
        n_blocks, places_on_device = self._places[numbers, threads]
        self.add_flat(kernel, (n_blocks, n_planes), places_on_device, *arguments, threads=threads)

    def add_flat(
        self, kernel: str, blocks: tuple[int, int], *arguments: Any, threads: int = _THREADS
    ) -> None:
        """Launch a kernel on blocks."""
        self._launches.append((kernel, blocks, threads, *arguments))

    def run(self) -> None:
        """Do the work."""
        for launch in self._launches:
            self.device.launch(_SOURCE, *launch)


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
        pixels, n_all = _places(n_pixels)
        self.places, size = _places([parameters.n_channels * number for number in n_cells])
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
                "normalise", (-(-n_all // _THREADS), 1), n_all, magnitude, smooth,
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
        radius, float((radius + 1) ** 4), source, half, threads=_WALKERS,
    )  # fmt: skip
    program.add(
        "triangle_along_columns", [image.width for image in images], n_planes, table, radius, half,
        out, threads=_WALKERS,
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


def _places(sizes: Iterable[int]) -> tuple[list[int], int]:
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

    def fill(self, pixels: Pixels, n_images: int, out: Any) -> None:
        """Convert images to the beginning of an array."""
        blocks = (-(-self._n_pixels // _THREADS), n_images)
        self._device.launch(
            _SOURCE, "luv", blocks, _THREADS, self._device.upload(pixels), self._matrix,
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
        places, size = _places(n_channels * rows * columns for rows, columns in inner)
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
        self._luv.fill(pixels, 1, self._pixels)

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
            targets, size = _places(n_channels * number for number in n_cells)
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
        "decorrelate", [((height + 1) // 2) * ((width + 1) // 2) for _, (height, width), _ in maps],
        n_channels * -(-n_filters // _AT_ONCE), program.constant(table, np.int32),
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


class CudaScanner:
    """Sends the windows of all levels through the trees of one cascade.

    `numbers` has the first number of the windows of each level, and the end of all.
    """

    def __init__(self, program: Program, layout: Layout, number: int, maps: FeatureMaps, first: int):
        self.cascade, self._device, self._maps = layout.cascades[number], program.device, maps
        self.step = layout.stride // self.cascade.cell
        grids = [layout.grid(level, number) for level in range(len(layout.levels))]
        places, self.n_windows = _places(rows * columns for rows, columns in grids)
        self.numbers = first + np.array([*places, self.n_windows])
        self.sizes = grids
        table = zip(places, [max(1, columns) for _, columns in grids], maps.origins, strict=True)
        self.grids = program.constant(list(table), np.int32)
        self.offsets = self._offsets()
        self.trees = _trees_on(program, self.cascade, self.offsets)
        depths = np.maximum(self.cascade.complete_trees.depth, 1)
        self.n_tests = program.constant(np.cumsum([0, *depths]), np.int32)
        self.rejections = program.constant(self.cascade.rejections, np.float64)

    @property
    def n_votes(self) -> int:
        """Number of views that leaves vote for."""
        return self.cascade.leaves[4].shape[1]

    @property
    def ends(self) -> list[int]:
        """Number of trees after each stage."""
        n_trees = self.cascade.forest.n_trees
        ends = [min(self.cascade.n_safe + _FIRST_STAGE, n_trees)]
        while ends[-1] < n_trees:
            ends.append(min(_GROWTH * ends[-1], n_trees))
        return ends

    def add(self, program: Program, room: Room, n_alive: Any, n_seen: Any) -> None:
        """Add the launches that find the windows which no tree rejects."""
        n_levels = len(self.sizes)
        n_threads = min(-(-max(self.n_windows, 1) // _THREADS) * _THREADS, room.n_threads)
        ends = self.ends
        for stage, end in enumerate(ends):
            program.add_flat(
                "scan", (n_threads // _THREADS, 1), self._maps.values, self.grids, n_levels, self.n_windows,
                self._maps.pitch, self.step, *self.trees, self.rejections, end, stage == 0,
                stage + 1 == len(ends), self.cascade.min_score, int(self.numbers[0]), room.margins,
                n_threads, room.alive[stage % 2], n_alive[stage : stage + 1],
                room.alive[1 - stage % 2], n_alive[stage + 1 : stage + 2], room.n_run, room.found,
                room.n_found,
            )  # fmt: skip
        program.add_flat(
            "count_trees", (_COUNTERS, n_levels), self.grids, n_levels,
            self.n_windows, room.n_run, self.n_tests, n_seen,
        )  # fmt: skip

    def windows(self, found: NDArray[Any], n_seen: NDArray[Any]) -> list[Windows]:
        """What was found on each level, given all windows of the cascade in their order."""
        ends = np.searchsorted(found["window"], self.numbers)
        levels = []
        for level, (_, n_columns) in enumerate(self.sizes):
            own = found[ends[level] : ends[level + 1]]
            places = own["window"].astype(np.int64) - self.numbers[level]
            rows, columns = np.divmod(places, max(n_columns, 1))
            n_scanned = int(self.numbers[level + 1] - self.numbers[level])
            n_evaluated, n_tests = n_seen[level].tolist()
            levels.append(
                Windows(
                    rows, columns, own["score"].copy(), own["label"].astype(np.int64), n_scanned,
                    n_evaluated, n_tests,
                )  # fmt: skip
            )
        return levels

    def bases(self, level: int, rows: IndexArray, columns: IndexArray) -> NDArray[np.uint32]:
        """Where windows of a level begin among the features."""
        n_rows, n_columns = self.sizes[level]
        if ((rows < 0) | (rows >= n_rows) | (columns < 0) | (columns >= n_columns)).any():
            raise ValueError("a window lies outside of the level.")
        places = (rows * self._maps.pitch + columns) * self.step
        return (self._maps.origins[level] + places).astype(np.uint32)

    def trace(self, bases: NDArray[np.uint32]) -> FloatArray:
        """Scores after each tree of windows that begin at these places."""
        n_windows, n_trees = len(bases), self.cascade.forest.n_trees
        margins = self._device.xp.empty(max(1, n_windows * self.n_votes), np.float64)
        found = self._device.xp.empty(n_windows * n_trees, np.float64)
        self._ask("trace", bases, 1, *self.trees, n_trees, margins, found)
        return self._device.download(found).reshape(n_windows, n_trees)

    def leaves(self, bases: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Leaves that such windows reach."""
        n_windows, n_trees = len(bases), self.cascade.forest.n_trees
        numbers = self._device.upload(self.cascade.complete_trees.leaf)
        found = self._device.xp.empty(n_windows * n_trees, np.int32)
        self._ask("reach", bases, n_trees, *self.trees, n_trees, numbers, found)
        return self._device.download(found).reshape(n_windows, n_trees)

    def poses(self, bases: NDArray[np.uint32]) -> FloatArray:
        """What the pose of the cascade says of such windows."""
        pose = self.cascade.pose
        if pose is None:
            raise ValueError("the cascade has no pose.")
        n_outputs = len(pose.intercepts)
        given = [self._device.upload(part) for part in (self.offsets, pose.weights)]
        found = self._device.xp.empty(len(bases) * n_outputs, np.float64)
        self._ask(
            "poses", bases, n_outputs, given[0], len(self.offsets), given[1],
            self._device.upload(pose.intercepts), n_outputs, found,
        )  # fmt: skip
        return self._device.download(found).reshape(len(bases), n_outputs)

    def _ask(
        self, kernel: str, bases: NDArray[np.uint32], n_planes: int, *arguments: Any
    ) -> None:
        blocks = (-(-len(bases) // _WALKERS), n_planes)
        self._device.launch(
            _SOURCE, kernel, blocks, _WALKERS, self._maps.values, self._device.upload(bases),
            len(bases), *arguments,
        )  # fmt: skip

    def _offsets(self) -> NDArray[np.uint32]:
        """Where the features of a window lie from its beginning on."""
        rows, columns = self.cascade.cells
        plane = np.arange(self.cascade.n_planes, dtype=np.int64)[:, None, None] * self._maps.stride
        row = np.arange(rows)[:, None] * self._maps.pitch
        return (plane + row + np.arange(columns)).reshape(-1).astype(np.uint32)


def _trees_on(program: Program, cascade: Cascade, offsets: NDArray[np.uint32]) -> tuple[Any, ...]:
    """The arguments of kernels that stand for trees."""
    tests, *nodes = cascade.complete_trees.at(offsets)
    types = (np.uint32, np.uint32, np.int32, np.float64)
    leaf_types = (np.float64, np.uint16, np.float64, np.uint8, np.float64)
    return (
        program.constant(tests.view(np.uint64), np.uint64),
        *(program.constant(part, kind) for part, kind in zip(nodes, types, strict=True)),
        *(
            program.constant(part, kind)
            for part, kind in zip(cascade.leaves, leaf_types, strict=True)
        ),
        cascade.leaves[4].shape[1],
    )


class Room:
    """Arrays that cascades use one after the other, and what all of them found."""

    def __init__(self, program: Program, scanners: Sequence[CudaScanner], n_counts: int):
        most = max(scanner.n_windows for scanner in scanners)
        self.n_threads = min(-(-max(most, 1) // _THREADS) * _THREADS, _MAX_SCANNERS)
        n_votes = max(scanner.n_votes for scanner in scanners)
        self.margins = program.empty(self.n_threads * n_votes, np.float64)
        self.alive = [program.empty(most, np.int32) for _ in range(2)]
        self.n_run = program.empty(most, np.int32)
        self.n_counts, n_found = n_counts, sum(scanner.n_windows for scanner in scanners)
        self._results = program.empty(n_counts + _WORDS * (n_found + 1), np.uint64)
        self.counts, self.found = self._results[:n_counts], self._results[n_counts:]
        self.n_found = self.counts[:1]

    def fetch(self, device: Device) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Counts, and the windows that were found, in their order."""
        fetched = device.download(self._results[: self.n_counts + _WORDS * _FETCHED])
        counts, found = fetched[: self.n_counts], fetched[self.n_counts :]
        size = _WORDS * int(counts[0])
        if size > len(found):
            found = device.download(self.found[:size])
        windows = found[:size].view(_FOUND)
        return counts, windows[np.argsort(windows["window"])]


class CudaBackend:
    """Kernels on a GPU, which do all levels at once; see `badacost.detection.backend.Backend`."""

    def __init__(self, layout: Layout, device: Device | None = None) -> None:
        self._device = cuda_device() if device is None else device
        self._program = program = Program(self._device)
        self._n_levels = n_levels = len(layout.levels)
        self._maps = FeatureMaps(program, layout)
        self._scanners: list[CudaScanner] = []
        n_windows = 0
        for number in range(len(layout.cascades)):
            scanner = CudaScanner(program, layout, number, self._maps, n_windows)
            self._scanners.append(scanner)
            n_windows += scanner.n_windows
        # One count of all windows found; of those alive after each stage; of trees and tests.
        n_stages = [len(scanner.ends) + 1 for scanner in self._scanners]
        stages, first_seen = _places([1, *n_stages])
        n_counts = first_seen + 2 * n_levels * len(self._scanners)
        self._room = room = Room(program, self._scanners, n_counts)
        program.add_flat("clear", (-(-n_counts // _THREADS), 1), room.counts, n_counts)
        self._seen = slice(first_seen, n_counts)
        for number, scanner in enumerate(self._scanners):
            n_alive, n_seen = stages[number + 1], first_seen + 2 * n_levels * number
            scanner.add(program, room, room.counts[n_alive:], room.counts[n_seen:])

    @property
    def n_bytes(self) -> int:
        """Size of all arrays on the device."""
        return self._program.n_bytes

    def begin(self, pixels: Pixels, threads: Threads) -> None:
        """Do everything with an image."""
        self._maps.begin(np.ascontiguousarray(pixels))
        self._program.run()
        counts, found = self._room.fetch(self._device)
        n_seen = counts[self._seen].reshape(len(self._scanners), self._n_levels, 2)
        self._windows = [
            scanner.windows(found, n_seen[number]) for number, scanner in enumerate(self._scanners)
        ]
        self._poses = [
            None if scanner.cascade.pose is None else self._poses_of(scanner, windows)
            for scanner, windows in zip(self._scanners, self._windows, strict=True)
        ]

    def _poses_of(self, scanner: CudaScanner, windows: Sequence[Windows]) -> list[FloatArray]:
        """Poses of the windows found on each level, worked out together."""
        bases = [
            scanner.bases(level, each.rows, each.columns) for level, each in enumerate(windows)
        ]
        outputs = scanner.poses(np.concatenate(bases))
        return np.split(outputs, np.cumsum([len(part) for part in bases])[:-1])

    def compute_channels(self, level: int) -> None:
        """Nothing is left to do."""

    def compute_features(self, level: int) -> None:
        """Go on to the next level."""
        self._level = level

    def scan(self, cascade: int) -> Windows:
        """Return what was found on the level."""
        return self._windows[cascade][self._level]

    def trace(self, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Follow windows of the level through all trees."""
        scanner = self._scanners[cascade]
        return scanner.trace(scanner.bases(self._level, rows, columns))

    def leaves(self, cascade: int, rows: IndexArray, columns: IndexArray) -> NDArray[np.int32]:
        """Find the leaves of windows of the level."""
        scanner = self._scanners[cascade]
        return scanner.leaves(scanner.bases(self._level, rows, columns))

    def poses(self, cascade: int, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Return the poses of windows of the level: known already for those that were found."""
        known = self._poses[cascade]
        if known is not None and rows is self._windows[cascade][self._level].rows:
            return known[self._level]
        scanner = self._scanners[cascade]
        return scanner.poses(scanner.bases(self._level, rows, columns))
