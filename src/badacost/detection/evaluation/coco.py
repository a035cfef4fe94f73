"""Average precision and recall by the rules of COCO, for one category.

Detections choose, best first: each has the free object that it overlaps most, if that is enough.
What is ignored is a crowd: any number of detections that lie in it to that share do not count.
Precision is taken at 101 recalls, at ten overlaps from 0.5 to 0.95, for objects of all sizes and of
three ranges of sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask
from badacost._utils.validation import check_number
from badacost.detection.boxes import Detections, overlaps
from badacost.detection.evaluation.curves import PrecisionRecallCurve, number_or_none
from badacost.detection.evaluation.outcomes import FALSE, IGNORED, TRUE, Steps
from badacost.detection.evaluation.pairs import Pair, paired
from badacost.detection.evaluation.resampling import Resampled, draws, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from badacost.detection.evaluation.displays import PrecisionRecallDisplay

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALL_STEPS = np.linspace(0.0, 1.0, 101)
MAX_DETECTIONS = 100  # of an image
_SIZES = {  # areas in square pixels, limits included
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}
_ALL_OVERLAPS = slice(None)
_SUMMARY = {  # overlaps that precisions are the mean of, and sizes of objects
    "ap": (_ALL_OVERLAPS, "all"),
    "ap_50": (slice(0, 1), "all"),
    "ap_75": (slice(5, 6), "all"),
    "ap_small": (_ALL_OVERLAPS, "small"),
    "ap_medium": (_ALL_OVERLAPS, "medium"),
    "ap_large": (_ALL_OVERLAPS, "large"),
}
_RECALLS = {"ar_1": (1, "all"), "ar_10": (10, "all")} | {
    "ar_100" if size == "all" else f"ar_{size}": (MAX_DETECTIONS, size) for size in _SIZES
}


@dataclass(frozen=True, eq=False)
class CocoResult(Resampled):
    """What `evaluate_coco` found.

    Attributes
    ----------
    n_objects : int
        Objects to be found.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_coco
    >>> truth = AnnotatedImage(None, [[0, 0, 50, 50], [100, 0, 150, 50]])
    >>> found = Detections([[0, 0, 50, 50], [100, 0, 150, 33]], [2.0, 1.0], [0, 0], names=["car"])
    >>> result = evaluate_coco({"a.png": found}, {"a.png": truth})
    >>> round(result.ap, 3), result.summary["ap_50"], round(result.summary["ap_75"], 3)
    (0.703, 1.0, 0.505)
    """

    n_objects: int
    _steps: dict[str, list[Steps]]  # by size, one for each overlap
    _recalls: dict[str, float]

    @cached_property
    def summary(self) -> dict[str, float]:
        """The twelve figures of COCO; NaN where there are no objects of a size.

        ``ap``, ``ap_50``, ``ap_75``, ``ap_small``, ``ap_medium`` and ``ap_large``; the share of
        objects that at most 1, 10 and 100 detections of each image find, ``ar_1``, ``ar_10`` and
        ``ar_100``; ``ar_small``, ``ar_medium`` and ``ar_large``.
        """
        weights = np.ones((1, len(self.objects_per_image)), dtype=np.int64)
        return {key: float(v[0]) for key, v in self._resampled(weights).items()} | self._recalls

    @property
    def ap(self) -> float:
        """Mean of the average precision at overlaps of 0.5, 0.55, ..., 0.95."""
        return self.summary["ap"]

    @property
    def objects_per_image(self) -> IndexArray:
        """Objects to be found in each image, in the order of the annotations."""
        return self._steps["all"][0].n_objects

    def resampled_ap(self, weights: IndexArray) -> FloatArray:
        """Return `ap` for each row of weights of images, (n_resamples,)."""
        return self._resampled(weights)["ap"]

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Ranges of the precisions of `summary` in 500 draws of the images with replacement."""
        weights = draws(self.objects_per_image)
        return {key: interval(values) for key, values in self._resampled(weights).items()}

    def _resampled(self, weights: IndexArray) -> dict[str, FloatArray]:
        """Return the precisions for each row of weights of images."""
        at_overlaps = {
            size: np.array([_average_precision(steps, weights) for steps in parts])
            for size, parts in self._steps.items()
        }
        return {
            key: at_overlaps[size][chosen].mean(axis=0) for key, (chosen, size) in _SUMMARY.items()
        }

    @property
    def ap_range(self) -> tuple[float, float]:
        """The middle 95 % of `ap` in 500 draws of the images."""
        return self.ranges["ap"]

    def curve(self, overlap: float = 0.5) -> PrecisionRecallCurve:
        """Return precision against recall at one of the ten overlaps, for objects of all sizes.

        Parameters
        ----------
        overlap : float, default=0.5
            0.5, 0.55, ..., or 0.95.

        Returns
        -------
        PrecisionRecallCurve
            One point for each detection that counts.
        """
        check_number("overlap", overlap)
        near = np.flatnonzero(np.isclose(OVERLAPS, overlap))
        if not len(near):
            raise ValueError(f"overlap must be one of 0.5, 0.55, ..., 0.95; got {overlap!r}.")
        steps = self._steps["all"][near[0]]
        return PrecisionRecallCurve.from_outcomes(steps.gains[:, 0], steps.scores, self.n_objects)

    def plot(self, *, ax: Axes | None = None) -> PrecisionRecallDisplay:
        """Draw precision against recall at overlaps of 0.5 and 0.75.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        PrecisionRecallDisplay
            The display, drawn.
        """
        from badacost.detection.evaluation.displays import PrecisionRecallDisplay

        curves = {f"overlap {overlap:g}": self.curve(overlap) for overlap in (0.5, 0.75)}
        return PrecisionRecallDisplay(curves).plot(ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON; None where nothing is known."""
        figures = {key: number_or_none(value) for key, value in self.summary.items()}
        ranges = {
            f"{key}_range": [number_or_none(limit) for limit in limits]
            for key, limits in self.ranges.items()
        }
        return {"n_objects": self.n_objects} | figures | ranges


def evaluate_coco(
    detections: Mapping[str, Detections], annotations: Mapping[str, Any]
) -> CocoResult:
    """Return average precision and recall by the rules of COCO.

    The figures are those of pycocotools for boxes of one category, where the area of an object is
    that of its box (the files of COCO have that of its outline).

    Parameters
    ----------
    detections : mapping of str to Detections
        What was found in each image; the best 100 count. An annotated image without an entry is
        one in which nothing was found.
    annotations : mapping of str to annotated image
        What is there: ``boxes``, and ``ignore`` and ``categories`` if they have them. What is
        ignored, and areas of the category DontCare, are crowds. Objects of all categories are to
        be found: `align` keeps those that the detections are of.

    Returns
    -------
    CocoResult
        Twelve figures, and ranges of those of precision.

    Raises
    ------
    ValueError
        Where no annotated box is to be found, or images do not fit together.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_coco
    >>> truth = AnnotatedImage(None, [[0, 0, 50, 50], [100, 0, 400, 90]], ignore=[False, True])
    >>> boxes = [[0, 0, 50, 50], [100, 0, 150, 50], [200, 0, 250, 50]]
    >>> found = Detections(boxes, [1.0, 2.0, 3.0], [0, 0, 0], names=["car"])
    >>> evaluate_coco({"a.png": found}, {"a.png": truth}).ap  # the others are in a crowd
    1.0
    """
    images = [_Image.from_pair(pair) for pair in paired(detections, annotations)]
    n_objects = sum(int((~image.crowd).sum()) for image in images)
    if not n_objects:
        raise ValueError("annotations hold no box to be found: check their categories.")
    verdicts = [image.verdicts() for image in images]
    steps = {
        size: [
            _joined(images, size, [part[number, place] for part in verdicts])
            for place in range(len(OVERLAPS))
        ]
        for number, size in enumerate(_SIZES)
    }
    recalls = {}
    for key, (n_best, size) in _RECALLS.items():
        number, total = [*_SIZES].index(size), int(steps[size][0].n_objects.sum())
        n_found = sum(int((part[number, :, :n_best] == TRUE).sum()) for part in verdicts)
        recalls[key] = n_found / len(OVERLAPS) / total if total else float("nan")
    return CocoResult(n_objects=n_objects, _steps=steps, _recalls=recalls)


@dataclass(frozen=True, eq=False)
class _Image:
    """The best detections of an image, best first, and its annotated boxes."""

    place: int
    found: Detections
    truth: FloatArray
    crowd: Mask

    @classmethod
    def from_pair(cls, pair: Pair[Detections]) -> _Image:
        """Select what counts of an image."""
        found = Detections.empty(()) if pair.found is None else pair.found.best_first()
        crowd = pair.flags("ignore") | pair.is_area()
        return cls(pair.place, found[:MAX_DETECTIONS], pair.boxes, crowd)

    def optional(self, size: str) -> Mask:
        """Return which objects need not be found among those of a size."""
        return self.crowd | _is_outside(self.truth, size)

    def verdicts(self) -> NDArray[np.int8]:
        """Return what became of each detection, (n_sizes, n_overlaps, n_detections)."""
        optional = np.array([self.optional(size) for size in _SIZES])[:, np.newaxis, :]
        outside = np.array([_is_outside(self.found.boxes, size) for size in _SIZES])
        verdicts = np.where(outside, IGNORED, FALSE)[:, np.newaxis, :]
        verdicts = np.repeat(verdicts, len(OVERLAPS), axis=1).astype(np.int8)
        shared = overlaps(self.found.boxes, self.truth)
        inside = overlaps(self.found.boxes, self.truth[self.crowd], "first")
        shared[:, self.crowd] = inside
        free = np.ones((len(_SIZES), len(OVERLAPS), len(self.truth)), dtype=np.bool_)
        for row in np.flatnonzero((shared >= OVERLAPS[0]).any(axis=1)):
            able = free & (shared[row] >= OVERLAPS[:, np.newaxis])
            must = able & ~optional
            # What must be found goes before what need not, however much that overlaps.
            able = np.where(must.any(axis=-1, keepdims=True), must, able)
            overlap = np.where(able, shared[row], -1.0)
            best = overlap.shape[-1] - 1 - overlap[..., ::-1].argmax(axis=-1)  # later of equals
            sizes, places = np.nonzero(able.any(axis=-1))
            chosen = best[sizes, places]
            free[sizes, places, chosen] = self.crowd[chosen]
            is_optional = optional[sizes, 0, chosen]
            verdicts[sizes, places, row] = np.where(is_optional, IGNORED, TRUE)
        return verdicts


def _is_outside(boxes: FloatArray, size: str) -> Mask:
    """Return which boxes are smaller or larger than those of a size."""
    low, high = _SIZES[size]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return np.asarray((areas < low) | (areas > high))


def _joined(images: list[_Image], size: str, verdicts: list[NDArray[np.int8]]) -> Steps:
    """Join the images at one overlap: gains of true and of false positives."""
    counted = [part != IGNORED for part in verdicts]
    return Steps.joined(
        [image.place for image in images],
        [int((~image.optional(size)).sum()) for image in images],
        [image.found.scores[c] for image, c in zip(images, counted, strict=True)],
        [
            np.stack([part[c] == TRUE, part[c] == FALSE], axis=1).astype(np.float64)
            for part, c in zip(verdicts, counted, strict=True)
        ],
    )


def _average_precision(steps: Steps, weights: IndexArray) -> FloatArray:
    """Return the mean precision at 101 recalls for each row of weights; NaN without objects."""
    values: list[float] = []
    for n_objects, n_true, precision in steps.at_hits(weights):
        padded = np.pad(precision, ((0, 0), (0, 1)))  # recalls that are never reached
        for total, found, row in zip(n_objects, n_true, padded, strict=True):
            # As pycocotools: a recall must reach the step to the last bit.
            first = np.searchsorted(found / max(total, 1), RECALL_STEPS)
            values.append(float(row[first].mean()) if total else float("nan"))
    return np.array(values)
