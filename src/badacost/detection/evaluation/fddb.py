"""Discrete and continuous ROC curves by the rules of the FDDB face benchmark.

For each score that occurs, the detections down to it are assigned one-to-one to the annotated
faces so that the sum of overlaps, in pixels, is greatest. The discrete curve counts pairs with an
overlap above one half, and the continuous one adds up all overlaps. False positives are, for both,
the detections less the pairs of the discrete curve.

V. Jain, E. Learned-Miller, FDDB: a benchmark for face detection in unconstrained settings, 2010.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost._utils.arrays import FloatArray, IndexArray, Positions
from badacost._utils.validation import check_number
from badacost.detection.box_tree import Pairs
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import fddb_kernels
from badacost.detection.evaluation.curves import RocCurve, running_maximum
from badacost.detection.evaluation.outcomes import Steps
from badacost.detection.evaluation.pairs import Pair, paired
from badacost.detection.evaluation.regions import (
    Region,
    box_region,
    ellipse_region,
    region_overlaps,
)
from badacost.detection.evaluation.resampling import Resampled, draws, interval
from badacost.io.budget import Budget, BudgetError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from badacost.detection.evaluation.displays import RocDisplay

_BYTES_OF_SPAN = 32  # of pixels in a row, which are kept twice


@dataclass(frozen=True, eq=False)
class EllipseDetections:
    """Faces found in one image, as ellipses; arrays are checked and copied.

    Parameters
    ----------
    ellipses : array-like of shape (n, 5)
        Half axes, the angle of the first one to the x axis in radians, and the centre x, y.
    scores : array-like of shape (n,)
        Higher is more certain.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.evaluation import EllipseDetections
    >>> found = Detections([[10, 10, 50, 70]], [1.5], [0], names=["front"], category="Face")
    >>> EllipseDetections.from_detections(found).ellipses.round(4)
    array([[30.    , 20.    ,  1.5708, 30.    , 40.    ]])
    """

    ellipses: FloatArray
    scores: FloatArray

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        ellipses = np.array(self.ellipses, dtype=np.float64)
        if ellipses.size == 0:
            ellipses = np.zeros((0, 5))
        if scores.ndim != 1 or ellipses.shape != (len(scores), 5):
            raise ValueError("ellipses and scores must have shapes (n, 5) and (n,).")
        if not np.isfinite(ellipses).all() or not np.isfinite(scores).all():
            raise ValueError("ellipses and scores must be finite: drop what is NaN or infinite.")
        object.__setattr__(self, "ellipses", ellipses)
        object.__setattr__(self, "scores", scores)

    @classmethod
    def from_detections(cls, detections: Detections) -> EllipseDetections:
        """Return the upright ellipses that touch the sides of boxes.

        Parameters
        ----------
        detections : Detections
            What was found in an image.

        Returns
        -------
        EllipseDetections
            In the same order.
        """
        x1, y1, x2, y2 = detections.boxes.T
        upright = np.full(len(detections), np.pi / 2.0)
        half_height, half_width = (y2 - y1) / 2.0, (x2 - x1) / 2.0
        columns = [half_height, half_width, upright, (x1 + x2) / 2.0, (y1 + y2) / 2.0]
        return cls(np.stack(columns, axis=1), detections.scores)

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class FddbResult(Resampled):
    """What `evaluate_fddb` found.

    Attributes
    ----------
    discrete : RocCurve
        Each face counts as found or not.
    continuous : RocCurve
        Each face counts by how well it is found.
    n_faces : int
        Annotated faces.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_fddb
    >>> truth = AnnotatedImage(None, [[0, 0, 40, 60], [100, 0, 140, 60]], size=(100, 200))
    >>> found = Detections([[0, 0, 40, 50], [60, 0, 90, 40]], [2.0, 1.0], [0, 0], names=["front"])
    >>> result = evaluate_fddb({"a.jpg": found}, {"a.jpg": truth})
    >>> result.n_faces
    2
    >>> result.discrete.rate_below(10), round(result.continuous.rate_below(10), 2)
    (0.5, 0.42)
    >>> result.ap, result.rate_ranges(10)["discrete"]
    (0.5, (0.5, 0.5))
    """

    discrete: RocCurve
    continuous: RocCurve
    n_faces: int
    _steps: Steps

    @property
    def ap(self) -> float:
        """Average precision of the discrete outcomes: the area under precision against recall."""
        return float(self.resampled_ap(np.ones((1, len(self.objects_per_image)), np.int64))[0])

    @property
    def objects_per_image(self) -> IndexArray:
        """Faces of each image, in the order of the annotations."""
        return self._steps.n_objects

    def resampled_ap(self, weights: IndexArray) -> FloatArray:
        """Return the average precision for each row of weights of images, (n_resamples,)."""
        values = [np.empty(0)]
        for block in self._steps.blocks(weights):
            n_found, n_pairs, _ = np.moveaxis(self._totals(block), -1, 0)
            reached = np.maximum.accumulate(n_pairs, axis=1)
            precision = running_maximum(n_pairs / np.maximum(n_found, 1.0))
            values.append((np.diff(reached, axis=1, prepend=0.0) * precision).sum(axis=1))
        return np.asarray(np.concatenate(values) / (weights @ self.objects_per_image))

    def rate_ranges(self, false_positives: float) -> dict[str, tuple[float, float]]:
        """Return ranges of the rates with fewer than so many false positives.

        Parameters
        ----------
        false_positives : float
            Number that must not be reached in as many images as there are.

        Returns
        -------
        dict of str to tuple of float
            For ``discrete`` and ``continuous``, the middle 95 % in 500 draws of the images with
            replacement.
        """
        check_number("false_positives", false_positives)
        weights = draws(self.objects_per_image)
        best = [np.empty((0, 2))]
        for block in self._steps.blocks(weights):
            totals = self._totals(block)
            fits = totals[..., :1] - totals[..., 1:2] < false_positives
            best.append(np.where(fits, totals[..., 1:], 0.0).max(axis=1, initial=0.0))
        rates = np.concatenate(best) / (weights @ self.objects_per_image)[:, np.newaxis]
        return {"discrete": interval(rates[:, 0]), "continuous": interval(rates[:, 1])}

    def _totals(self, weights: IndexArray) -> FloatArray:
        """Return detections, pairs and overlap down to each distinct score, (..., n, 3)."""
        return self._steps.totals(weights)[..., self._steps.last_of_score, :]

    def plot(self, *, ax: Axes | None = None) -> RocDisplay:
        """Draw both curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        RocDisplay
            The display, drawn.
        """
        from badacost.detection.evaluation.displays import RocDisplay

        return RocDisplay({"discrete": self.discrete, "continuous": self.continuous}).plot(ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON."""
        return {
            "n_faces": self.n_faces,
            "ap": self.ap,
            "ap_range": list(self.ap_range),
            "discrete": self.discrete.to_dict(),
            "continuous": self.continuous.to_dict(),
        }


def evaluate_fddb(
    detections: Mapping[str, Detections | EllipseDetections],
    annotations: Mapping[str, Any],
    *,
    overlap: float = 0.5,
) -> FddbResult:
    """Return the ROC curves of the FDDB benchmark.

    Coordinates enter as they stand in the files of FDDB, and regions are painted as its program
    paints them: see `badacost.detection.evaluation.regions`.

    Parameters
    ----------
    detections : mapping of str to Detections or EllipseDetections
        What was found in each image. An annotated image without an entry is one in which nothing
        was found.
    annotations : mapping of str to annotated image
        What is there: ``ellipses`` of shape (n, 5), or ``boxes`` if these are None, and the
        ``size`` of the image, outside which no pixel counts; None if that is not known. All of
        them are to be found: ``ignore`` is not looked at, since FDDB ignores nothing.
    overlap : float, default=0.5
        Overlap above which a pair counts in the discrete curve.

    Returns
    -------
    FddbResult
        Two curves, which begin where nothing is found.

    Raises
    ------
    ValueError
        Where there is no face to be found, or images do not fit together.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from badacost.detection.evaluation import EllipseDetections, evaluate_fddb
    >>> faces = [[30, 20, 1.5, 50, 50], [30, 20, 1.5, 150, 50]]
    >>> truth = SimpleNamespace(ellipses=faces, boxes=[], size=(100, 200))
    >>> found = EllipseDetections([[30, 20, 1.5, 52, 50], [30, 20, 1.5, 130, 50]], [2.0, 1.0])
    >>> result = evaluate_fddb({"a.jpg": found}, {"a.jpg": truth})
    >>> result.discrete.false_positives, result.discrete.true_positive_rate
    (array([0., 0., 1.]), array([0. , 0.5, 0.5]))
    >>> result.continuous.true_positive_rate.round(3)
    array([0.   , 0.442, 0.568])
    """
    check_number("overlap", overlap, low=0.0, high=1.0)
    pairs = paired(detections, annotations, (Detections, EllipseDetections))
    faces = [_annotated(pair) for pair in pairs]
    n_faces = sum(map(len, faces))
    if not n_faces:
        raise ValueError("annotations hold no face: give at least one.")
    rows = [_rows(pair, there, overlap) for pair, there in zip(pairs, faces, strict=True)]
    steps = Steps.joined(
        [pair.place for pair in pairs],
        [len(there) for there in faces],
        [part[:, 0] for part in rows],
        [part[:, 1:] for part in rows],
    )
    last = steps.last_of_score
    n_found, n_pairs, shared = steps.totals()[last].T
    false_positives = np.append(0.0, n_found - n_pairs)
    thresholds = np.append(np.inf, steps.scores[last])
    discrete, continuous = (np.append(0.0, total) / n_faces for total in (n_pairs, shared))
    return FddbResult(
        discrete=RocCurve(false_positives, discrete, thresholds),
        continuous=RocCurve(false_positives, continuous, thresholds),
        n_faces=n_faces,
        _steps=steps,
    )


def _annotated(pair: Pair[Detections | EllipseDetections]) -> FloatArray:
    """Return the faces of an image: ellipses (n, 5), or boxes (n, 4)."""
    ellipses = pair.ellipses()
    return pair.boxes if ellipses is None else ellipses


def _found(pair: Pair[Detections | EllipseDetections]) -> FloatArray:
    """Return what was found in an image: ellipses (n, 5), or boxes (n, 4)."""
    if pair.found is None:
        return np.zeros((0, 4))
    return pair.found.boxes if isinstance(pair.found, Detections) else pair.found.ellipses


def _painted(shapes: Iterable[FloatArray], size: tuple[int, int] | None) -> list[Region]:
    """Return the regions of boxes and ellipses, or refuse what takes too much memory."""
    regions, n_spans = [], 0
    for shape in shapes:
        regions.append((box_region if len(shape) == 4 else ellipse_region)(shape, size))
        n_spans += len(regions[-1].left)
        try:
            Budget.of(None).check(_BYTES_OF_SPAN * n_spans, "the ellipses", at_least=True)
        except BudgetError as error:
            raise BudgetError(f"{error}.") from None
    return regions


def _rows(
    pair: Pair[Detections | EllipseDetections], faces: FloatArray, overlap: float
) -> FloatArray:
    """Return each distinct score with what it adds: detections, discrete pairs, overlap of pairs.

    Detections that overlap nothing leave the assignment as it is.
    """
    regions = _painted([*faces, *_found(pair)], pair.size())
    if pair.found is None or not len(pair.found):
        return np.zeros((0, 4))
    there, found = regions[: len(faces)], regions[len(faces) :]
    assignment = _Assignment(region_overlaps(found, there), len(found), len(there))
    scores = pair.found.scores
    order = np.argsort(-scores, kind="stable")
    rows = []
    totals = (0, 0.0)
    for new in np.split(order, np.flatnonzero(np.diff(scores[order])) + 1):
        before = totals
        if assignment.add(new):
            totals = assignment.totals(overlap)
        rows.append((scores[new[0]], len(new), totals[0] - before[0], totals[1] - before[1]))
    return np.array(rows, dtype=np.float64)


class _Assignment:
    """Detections and faces, one to one, with the greatest sum of overlaps.

    Detections are added one after another, and only those connected to a new one change.
    """

    def __init__(self, near: Pairs, n_found: int, n_faces: int):
        self._starts = np.searchsorted(near.queries, np.arange(n_found + 1))
        self._near = near
        self._overlaps = np.append(near.overlaps, 0.0)  # the last one is that of no pair
        self._added: list[int] = []
        self._pairs = np.full(n_found, -1, dtype=np.int64)
        self._state = (
            np.full(n_faces, -1, dtype=np.int64),
            np.zeros(n_found),
            np.zeros(n_faces),
            *fddb_kernels.empty_work(n_faces),
        )

    def add(self, new: Positions) -> bool:
        """Add detections, and return whether any of them overlaps a face."""
        able = new[self._starts[new] < self._starts[new + 1]]
        fddb_kernels.assign(able, self._starts, *self._near, self._pairs, *self._state)
        self._added += able.tolist()
        return len(able) > 0

    def totals(self, overlap: float) -> tuple[int, float]:
        """Return how many pairs overlap by more than `overlap`, and the sum of overlaps."""
        values = self._overlaps[self._pairs[self._added]]
        return int((values > overlap).sum()), float(values.sum())
