"""`Plan`: a detector laid out for images of one size on one backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.parallel import Threads
from badacost.detection.backend import Backend, CPUBackend, Layout
from badacost.detection.boxes import Detections
from badacost.detection.cascade import Windows
from badacost.detection.images import Pixels

if TYPE_CHECKING:
    from badacost.detection.detector import Detector

_MAX_IDLE = 4


@dataclass(frozen=True, eq=False)
class Sighting:
    """What a cascade found on a level of the pyramid.

    `trace` and `leaves` need the features of the level: they answer until the plan goes on to the
    next level, or to another image.

    Attributes
    ----------
    level, cascade : int
        Their numbers.
    windows : Windows
        Those that were kept.
    poses : ndarray of shape (n_windows, n_outputs) or None
        What the pose of the cascade says of them, if it has one.

    Examples
    --------
    >>> from badacost.detection.scenes import make_scenes
    >>> from badacost.detection.models import synthetic_cars
    >>> (scene,) = make_scenes(1, size=(120, 160), random_state=7)
    >>> seen = next(synthetic_cars().sightings(scene.load()))
    >>> seen.windows.n_scanned, len(seen.detections)
    (525, 6)
    >>> seen.leaves().shape  # of each window in each tree
    (6, 256)
    """

    level: int
    cascade: int
    windows: Windows
    poses: FloatArray | None
    _plan: Plan
    _turn: int

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the windows that were looked at."""
        return self._plan.layout.grid(self.level, self.cascade)

    @cached_property
    def detections(self) -> Detections:
        """The windows that were kept, as boxes in the image."""
        return self._plan.detections([self])

    def trace(
        self, rows: IndexArray | None = None, columns: IndexArray | None = None
    ) -> FloatArray:
        """Return the scores after each tree, (n_windows, n_trees), of the windows that were kept.

        Parameters
        ----------
        rows, columns : ndarray of shape (n_windows,), optional
            Other windows of the grid.
        """
        return self._plan.backend.trace(self.cascade, *self._places(rows, columns))

    def leaves(
        self, rows: IndexArray | None = None, columns: IndexArray | None = None
    ) -> NDArray[np.int32]:
        """Return the leaf of each tree, (n_windows, n_trees), that the kept windows reach.

        Leaves are nodes of the forest: indices of ``forest.value``.

        Parameters
        ----------
        rows, columns : ndarray of shape (n_windows,), optional
            Other windows of the grid.
        """
        return self._plan.backend.leaves(self.cascade, *self._places(rows, columns))

    def _places(
        self, rows: IndexArray | None, columns: IndexArray | None
    ) -> tuple[IndexArray, IndexArray]:
        if self._plan.turn != self._turn:
            raise RuntimeError(
                "the features of this level are gone: ask a sighting before you take the next."
            )
        if rows is None or columns is None:
            return self.windows.rows, self.windows.columns
        n_rows, n_columns = self.grid
        if ((rows < 0) | (rows >= n_rows) | (columns < 0) | (columns >= n_columns)).any():
            raise ValueError(f"a window lies outside of the grid of {n_rows} x {n_columns}.")
        return rows, columns


class Plan:
    """A detector laid out for images of one size on one backend.

    Geometry, buffers and trees at their places in them are worked out once. A plan looks at one
    image at a time: threads that work on different images need a plan each, which
    `Detector.detect` sees to.

    Parameters
    ----------
    detector : Detector
        What looks at the images.
    size : tuple of two ints
        Height and width of the images.
    backend : callable, default=CPUBackend
        Makes what does the work, see `badacost.detection.backend.Backend`.

    Examples
    --------
    >>> from badacost.detection.scenes import make_scenes
    >>> from badacost.detection.models import synthetic_cars
    >>> from badacost.detection.plan import Plan
    >>> plan = Plan(synthetic_cars(), (120, 160))
    >>> for scene in make_scenes(2, size=(120, 160), random_state=7):
    ...     print([len(seen.detections) for seen in plan.sightings(scene.load())][:3])
    [6, 7, 8]
    [7, 6, 2]
    """

    def __init__(
        self,
        detector: Detector,
        size: tuple[int, int],
        backend: Callable[[Layout], Backend] = CPUBackend,
    ):
        # Not the detector itself, which keeps plans: a cycle would keep their buffers.
        self.layout = Layout(
            size, detector.pyramid, detector.filters, tuple(detector.cascades), detector.stride
        )
        self.backend: Backend = backend(self.layout)
        self.turn = 0
        n_views = [cascade.n_views for cascade in detector.cascades]
        self._first_labels = np.cumsum([0, *n_views[:-1]]).tolist()
        self._nothing = Detections.empty(detector.names, detector.angles, detector.category)

    def sightings(self, pixels: Pixels, threads: Threads | None = None) -> Iterator[Sighting]:
        """Look at an image level by level; each cascade reports once for each of them.

        Parameters
        ----------
        pixels : ndarray of uint8 of shape (height, width, 3)
            The image, of the size of the plan.
        threads : Threads, optional
            Threads to share the work among; they do not change the result.

        Yields
        ------
        Sighting
            What a cascade found on a level.
        """
        if pixels.shape[:2] != self.layout.size:
            raise ValueError(
                f"the plan is for images of {self.layout.size}, not of {pixels.shape[:2]}: make "
                "one for each size."
            )
        if not self.layout.levels:
            return
        self.turn += 1
        self.backend.begin(pixels, threads or Threads())
        for level in range(len(self.layout.levels)):
            self.turn += 1
            self.backend.compute_channels(level)
            self.backend.compute_features(level)
            for cascade in range(len(self.layout.cascades)):
                windows = self.backend.scan(cascade)
                poses = None
                if self.layout.cascades[cascade].pose is not None:
                    poses = self.backend.poses(cascade, windows.rows, windows.columns)
                yield Sighting(level, cascade, windows, poses, self, self.turn)

    def detections(self, sightings: Iterable[Sighting]) -> Detections:
        """Return the windows of sightings as boxes in the image, those of the first cascade first.

        Parameters
        ----------
        sightings : iterable of Sighting
            What the plan saw, on any levels.
        """
        found = [seen for seen in sightings if len(seen.windows.rows)]
        found.sort(key=lambda seen: seen.cascade)
        if not found:
            return self._nothing
        boxes, labels = zip(*map(self._boxes_and_labels, found), strict=True)
        return replace(
            self._nothing,
            boxes=np.concatenate(boxes),
            scores=np.concatenate([seen.windows.scores for seen in found]),
            labels=np.concatenate(labels),
        )

    def _boxes_and_labels(self, seen: Sighting) -> tuple[FloatArray, IndexArray]:
        """Boxes and views of the windows of a sighting, as the pose of the cascade tells them."""
        windows = seen.windows
        boxes = self.layout.boxes(seen.level, seen.cascade, windows.rows, windows.columns)
        labels, pose = windows.labels, self.layout.cascades[seen.cascade].pose
        if pose is not None and seen.poses is not None:
            boxes = pose.boxes(boxes, seen.poses)
            labels = pose.labels(seen.poses) if pose.n_views else labels
        return boxes, labels + self._first_labels[seen.cascade]


class IdlePlans:
    """Plans of the last few sizes that no thread is using."""

    def __init__(self) -> None:
        self._plans: list[Plan] = []
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[IdlePlans], tuple[()]]:
        return IdlePlans, ()  # copies and pickles of a detector begin without plans

    @contextmanager
    def lent(self, size: tuple[int, int], make: Callable[[], Plan]) -> Iterator[Plan]:
        """Lend a plan for images of this size, a new one if there is none."""
        with self._lock:
            fitting = [plan for plan in self._plans if plan.layout.size == size]
            if fitting:
                self._plans.remove(fitting[-1])
        plan = fitting[-1] if fitting else make()
        try:
            yield plan
        finally:
            with self._lock:
                self._plans.append(plan)
                while self._n_bytes > plan.backend.max_idle_bytes or len(self._plans) > _MAX_IDLE:
                    self._plans.pop(0)

    @property
    def _n_bytes(self) -> int:
        return sum(plan.backend.n_bytes for plan in self._plans)
