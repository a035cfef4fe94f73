"""`CudaBackend`: what `CPUBackend` does, on a GPU and with the same results to the last bit.

All levels are computed and scanned as soon as an image comes. It is sent as bytes, and the windows
that were kept come back in one piece; they are then handed out level by level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.parallel import Threads
from badacost.backends.device import Device, cuda_device
from badacost.detection.backend import Layout
from badacost.detection.cascade import Cascade, Windows
from badacost.detection.cuda_features import (
    SOURCE,
    THREADS,
    WALKERS,
    FeatureMaps,
    Program,
    places_of,
)
from badacost.detection.images import Pixels

_TILE = (8, 32)  # rows and columns of windows that a block looks at; columns as in detector.cu
_FIRST_STAGE = 16  # trees, after those that cannot reject a window, that tiles go through
_TESTS_AT_ONCE = 2**10  # of some trees, in shared memory
# Then each window has a block: how many threads, and the number of trees they go up to.
_STAGES = ((32, 128), (256, None))
_BLOCKS = 128  # for each processor that are launched then
_FOUND = np.dtype([("window", np.uint32), ("label", np.uint32), ("score", np.float64)])
_WORDS = _FOUND.itemsize // 8
_FETCHED = 2048  # windows that come with the counts; if there are more, they are fetched apart


class CudaScanner:
    """Sends the windows of all levels through the trees of one cascade.

    `numbers` has the first number of the windows of each level, and the end of all.
    """

    def __init__(
        self, program: Program, layout: Layout, number: int, maps: FeatureMaps, first: int
    ):
        self.cascade, self._device, self._maps = layout.cascades[number], program.device, maps
        self.step = layout.stride // self.cascade.cell
        grids = [layout.grid(level, number) for level in range(len(layout.levels))]
        places, self.n_windows = places_of(rows * columns for rows, columns in grids)
        self.numbers = first + np.array([*places, self.n_windows])
        self.sizes = grids
        table = [
            (place, rows, max(1, columns), origin)
            for place, (rows, columns), origin in zip(places, grids, maps.origins, strict=True)
        ]
        self.grids = program.constant(table, np.int32)
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
    def n_stages(self) -> int:
        """Maximum number of launches that windows go through."""
        return 1 + len(_STAGES)

    def stops(self) -> list[int]:
        """Trees after which a tile compacts its windows.

        One is where windows begin to leave. Tests of the trees between stops fit into shared
        memory. There are none where windows never leave, or where memory is too small for a tile.
        """
        n_trees, n_safe = self.cascade.forest.n_trees, self.cascade.n_safe
        if n_safe == n_trees or self.tile_bytes > self._device.max_shared:
            return []
        n_tests = (1 << self.cascade.complete_trees.depth) - 1
        stops, room = [], self.tests_at_once
        for tree, number in enumerate(n_tests[: n_safe + _FIRST_STAGE].tolist()):
            if number > room or tree == n_safe + 1:
                stops.append(tree)
                room = self.tests_at_once
            room -= number
        return [*stops, min(n_safe + _FIRST_STAGE, n_trees)]

    @property
    def tests_at_once(self) -> int:
        """Number of tests that a tile has room for."""
        return max(_TESTS_AT_ONCE, (1 << int(self.cascade.complete_trees.depth.max())) - 1)

    @property
    def tile_bytes(self) -> int:
        """Shared memory of a tile: sums, largest margins, margins and places of windows; tests."""
        return math.prod(_TILE) * (8 * (2 + self.n_votes) + 4) + 8 * self.tests_at_once

    def add(self, program: Program, room: Room, n_alive: Any, n_seen: Any) -> None:
        """Add the launches that find the windows which no tree rejects."""
        n_levels, n_trees = len(self.sizes), self.cascade.forest.n_trees
        (height, width), n_threads, stops = _TILE, math.prod(_TILE), self.stops()
        if stops:
            n_tiles = [-(-rows // height) * -(-columns // width) for rows, columns in self.sizes]
            program.add(
                "scan_tiles", [n_threads * number for number in n_tiles], 1, self._maps.values,
                self.grids, self._maps.pitch, self.step, *self.trees, self.rejections,
                program.constant(stops, np.int32), len(stops), self.tests_at_once, self.n_tests,
                n_seen, room.alive[0], n_alive[:1], threads=n_threads, shared=self.tile_bytes,
            )  # fmt: skip
        n_blocks = max(1, min(self.n_windows, _BLOCKS * program.device.n_processors))
        for stage, (n_threads, last) in enumerate(_STAGES):
            end = n_trees if last is None else min(n_trees, last)
            program.add_flat(
                "scan_trees", (n_blocks, 1), self._maps.values, self.grids, n_levels,
                self.n_windows, self._maps.pitch, self.step, *self.trees, self.rejections, end,
                stage == 0 and not stops, end == n_trees, self.cascade.min_score,
                int(self.numbers[0]), self.n_tests, n_seen, room.alive[stage % 2],
                n_alive[stage : stage + 1], room.alive[1 - stage % 2],
                n_alive[stage + 1 : stage + 2], room.found, room.n_found, threads=n_threads,
                shared=8 * max(1, self.n_votes) + 12 * n_threads + n_threads // 8,
            )  # fmt: skip
            if end == n_trees:
                break

    def windows(self, found: NDArray[Any], n_seen: NDArray[Any]) -> list[Windows]:
        """What was found on each level, given all windows of the cascade in their order."""
        ends = np.searchsorted(found["window"], self.numbers)
        own, level = found[ends[0] : ends[-1]], np.repeat(np.arange(len(self.sizes)), np.diff(ends))
        places = own["window"] - self.numbers[level]
        rows, columns = np.divmod(places, np.array([width for _, width in self.sizes])[level])
        scores, labels = own["score"].copy(), own["label"].astype(np.int64)
        parts = [slice(*pair) for pair in pairwise((ends - ends[0]).tolist())]
        sizes = np.diff(self.numbers).tolist()
        return [
            Windows(rows[part], columns[part], scores[part], labels[part], size, *seen)
            for part, size, seen in zip(parts, sizes, n_seen.tolist(), strict=True)
        ]

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

    def _ask(self, kernel: str, bases: NDArray[np.uint32], n_planes: int, *arguments: Any) -> None:
        blocks = (-(-len(bases) // WALKERS), n_planes)
        self._device.launch(
            SOURCE, kernel, blocks, WALKERS, self._maps.values, self._device.upload(bases),
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
        self.alive = [program.empty(most, np.int32) for _ in range(2)]
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

    max_idle_bytes = 2**33

    def __init__(self, layout: Layout, device: Device | None = None) -> None:
        self._device = cuda_device() if device is None else device
        self._program = program = Program(self._device)
        self._n_levels = n_levels = len(layout.levels)
        if n_levels == 0:  # no image will come
            return
        self._maps = FeatureMaps(program, layout)
        self._scanners: list[CudaScanner] = []
        n_windows = 0
        for number in range(len(layout.cascades)):
            scanner = CudaScanner(program, layout, number, self._maps, n_windows)
            self._scanners.append(scanner)
            n_windows += scanner.n_windows
        # One count of all windows found; of those alive after each stage; of trees and tests.
        n_stages = [scanner.n_stages for scanner in self._scanners]
        stages, first_seen = places_of([1, *n_stages])
        n_counts = first_seen + 2 * n_levels * len(self._scanners)
        self._room = room = Room(program, self._scanners, n_counts)
        program.add_flat("clear", (-(-n_counts // THREADS), 1), room.counts, n_counts)
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
