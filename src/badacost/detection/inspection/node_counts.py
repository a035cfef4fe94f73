"""`Efficiency`: how many trees and nodes a detector evaluates, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.parallel import Threads
from badacost.detection.channels import check_instance
from badacost.detection.detector import Detector
from badacost.detection.images import read_image
from badacost.tree.forest import Forest

if TYPE_CHECKING:
    from badacost.detection.detector import Source

_COLUMNS = {
    "n_cascades": "cascades",
    "n_trees": "trees",
    "depth": "levels",
    "n_nodes": "nodes, worst case",
    "trees_per_window": "trees per window",
    "nodes_per_window": "nodes per window",
    "windows_per_image": "windows per image",
    "ms_per_image": "ms per image",
}


@dataclass(frozen=True)
class Efficiency:
    """How much work a detector does.

    Attributes
    ----------
    n_cascades, n_trees : int
        Number of cascades, and of the trees of all of them.
    depth : int
        Maximum number of levels of tests of a tree.
    n_nodes : int
        Tests of a window that no tree rejects: the sum of the levels of all trees; a tree without
        any counts as one.
    n_images : int
        Number of images that the following were measured on; they are None without images.
    windows_per_image : float
        Windows that are looked at, on average; those of all cascades together.
    trees_per_window, nodes_per_window : float
        Trees and tests until a window is rejected, on average; those of all cascades together.
    ms_per_image : float
        Median time of `Detector.detect`, in milliseconds; reading the image is not counted.

    Examples
    --------
    >>> from badacost.detection.inspection import efficiency
    >>> from badacost.detection.models import synthetic_cars
    >>> work = efficiency(synthetic_cars())
    >>> work.n_cascades, work.n_trees, work.depth, work.n_nodes
    (1, 256, 5, 1280)
    >>> print(work.ms_per_image)  # no images, no time
    None
    """

    n_cascades: int
    n_trees: int
    depth: int
    n_nodes: int
    n_images: int = 0
    windows_per_image: float | None = None
    trees_per_window: float | None = None
    nodes_per_window: float | None = None
    ms_per_image: float | None = None


def efficiency(
    detector: Detector, images: Iterable[Source] | None = None, *, n_jobs: int | None = None
) -> Efficiency:
    """Return how much work a detector does in the worst case and, with images, really.

    Parameters
    ----------
    detector : Detector
        What to measure.
    images : iterable of images, optional
        What to measure it on, as `Detector.detect` takes them. Each one is searched twice.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    Efficiency
        Counts, and a time that depends on the machine.

    Raises
    ------
    ValueError
        Where `images` is empty.

    Examples
    --------
    Most windows are rejected by a few trees of many:

    >>> from badacost.detection.scenes import make_scenes
    >>> from badacost.detection.inspection import efficiency
    >>> from badacost.detection.models import synthetic_cars
    >>> (scene,) = make_scenes(1, size=(120, 160))
    >>> work = efficiency(synthetic_cars(), [scene.load()])
    >>> work.n_trees, work.trees_per_window < 20.0
    (256, True)
    >>> work.ms_per_image > 0.0
    True
    """
    check_instance("detector", detector, Detector)
    forests = [cascade.forest for cascade in detector.cascades]
    static = Efficiency(
        n_cascades=len(forests),
        n_trees=sum(forest.n_trees for forest in forests),
        depth=max(int(forest.depths.max()) for forest in forests),
        n_nodes=sum(int(_levels(forest).sum()) for forest in forests),
    )
    if images is None:
        return static
    counts = np.zeros((len(forests), 3), dtype=np.int64)  # windows, trees and nodes
    seconds: list[float] = []
    threads = Threads(n_jobs)
    for image in images:
        pixels = read_image(image)
        # This comes first, so that nothing has to be compiled any more when time is taken.
        for seen in detector.sightings(pixels, threads):
            windows = seen.windows
            counts[seen.cascade] += windows.n_scanned, windows.n_evaluated, windows.n_tests
        begin = time.perf_counter()
        detector.detect(pixels, n_jobs=n_jobs)
        seconds.append(time.perf_counter() - begin)
    if not seconds:
        raise ValueError("images are empty: give at least one image, or None.")
    n_windows = counts[:, 0]
    per_window = (counts[:, 1:] / np.maximum(n_windows, 1)[:, None]).sum(axis=0)
    return replace(
        static,
        n_images=len(seconds),
        windows_per_image=float(n_windows.sum() / len(seconds)),
        trees_per_window=float(per_window[0]),
        nodes_per_window=float(per_window[1]),
        ms_per_image=float(1000.0 * np.median(seconds)),
    )


class EfficiencyTable:
    """The work of several detectors, one beside the other, as in the paper's table.

    Parameters
    ----------
    rows : mapping of str to Efficiency
        What `efficiency` measured, by the names of the detectors.

    Examples
    --------
    >>> from badacost.detection.inspection import Efficiency, EfficiencyTable
    >>> table = EfficiencyTable({
    ...     "SubCat": Efficiency(5, 20480, 2, 40960), "BAdaCost": Efficiency(1, 1024, 6, 6144)
    ... })
    >>> print(table.to_markdown())
    | detector | cascades | trees | levels | nodes, worst case |
    |---|--:|--:|--:|--:|
    | SubCat | 5 | 20480 | 2 | 40960 |
    | BAdaCost | 1 | 1024 | 6 | 6144 |
    """

    def __init__(self, rows: Mapping[str, Efficiency]):
        if not rows:
            raise ValueError("rows must hold at least one Efficiency.")
        self.rows = dict(rows)

    @classmethod
    def from_detectors(
        cls,
        detectors: Mapping[str, Detector],
        images: Sequence[Source] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> EfficiencyTable:
        """Measure detectors on the same images; parameters are those of `efficiency`."""
        return cls(
            {
                name: efficiency(detector, images, n_jobs=n_jobs)
                for name, detector in detectors.items()
            }
        )

    @property
    def head(self) -> list[str]:
        """Names of the columns; those that no detector has a number in are left out."""
        return ["detector", *(_COLUMNS[name] for name in self._columns)]

    @property
    def cells(self) -> list[list[str]]:
        """A row for each detector: its name and its numbers as text."""
        return [
            [name, *(_number(getattr(row, column)) for column in self._columns)]
            for name, row in self.rows.items()
        ]

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        head, *rows = (
            f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
            for row in (self.head, *self.cells)
        )
        rule = "|---" + "|--:" * len(self._columns) + "|"
        return "\n".join([head, rule, *rows])

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the numbers by the names of the detectors, for JSON."""
        return {name: asdict(row) for name, row in self.rows.items()}

    @property
    def _columns(self) -> list[str]:
        return [
            column
            for column in _COLUMNS
            if any(getattr(row, column) is not None for row in self.rows.values())
        ]


def _levels(forest: Forest) -> NDArray[np.int64]:
    """Return the tests of a window in each tree; a leaf alone counts as one."""
    return np.maximum(forest.depths, 1)


def _number(value: float | None) -> str:
    """Return a number for a table: counts in full, means and times shortened."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"
