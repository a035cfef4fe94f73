"""Average precision by the rules of PASCAL VOC, and as the face experiments of the paper used them.

A detection belongs to the annotated box it overlaps most, if the overlap (intersection over union)
is great enough. The best-scoring one of a box is a true positive and the others are false ones,
as are those that belong to no box; those that belong to an ignored box, or lie in an area of the
category DontCare, do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask
from badacost._utils.validation import check_flag, check_number
from badacost.detection.box_tree import BoxTree
from badacost.detection.boxes import Detections
from badacost.detection.evaluation.curves import PrecisionRecallCurve, number_or_none
from badacost.detection.evaluation.outcomes import FALSE, IGNORED, TRUE, Outcome, Steps
from badacost.detection.evaluation.pairs import Pair, paired
from badacost.detection.evaluation.resampling import Resampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from badacost.detection.evaluation.displays import PrecisionRecallDisplay


_FALSE_ALARMS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # an image, of the table of thresholds


@dataclass(frozen=True)
class OperatingPoint:
    """What a threshold of the score brings.

    Attributes
    ----------
    threshold : float
        Detections with at least this score count.
    precision, recall : float
        Share of them that is right, and share of the objects that they find.
    false_alarms : float
        Mean number of wrong ones in an image.

    Examples
    --------
    >>> from badacost.detection.evaluation import OperatingPoint
    >>> OperatingPoint(threshold=2.5, precision=0.9, recall=0.6, false_alarms=0.1).recall
    0.6
    """

    threshold: float
    precision: float
    recall: float
    false_alarms: float


@dataclass(frozen=True, eq=False)
class VocResult(Resampled):
    """What `evaluate_voc` found.

    Attributes
    ----------
    curve : PrecisionRecallCurve
        One point for each detection that counts, best first.
    outcomes : dict of str to Outcome
        What became of the detections and objects of each image, in the order of the annotations.
    n_objects : int
        Annotated boxes that are to be found.
    n_true, n_false : int
        Detections that are right, and wrong.
    view_confusion : ndarray of shape (n_views, n_views)
        Numbers of true positives by annotated (rows) and found (columns) view, where the former is
        known.
    objects_per_view : ndarray of shape (n_views,)
        Numbers of annotated boxes that are to be found by view, where it is known.
    shift, scale : tuple of float
        Mean offset from true positives to their annotated boxes, in widths and heights of the
        former, and mean ratio of widths and heights; summed and multiplied over all rounds.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_voc
    >>> truth = AnnotatedImage(None, [[0, 0, 10, 10], [20, 0, 30, 10]], labels=[0, 1])
    >>> boxes = [[1, 0, 11, 10], [50, 0, 60, 10], [20, 0, 30, 9]]
    >>> found = Detections(boxes, [3.0, 2.0, 1.0], [0, 0, 0], names=["front", "back"])
    >>> result = evaluate_voc({"a.png": found}, {"a.png": truth})
    >>> result.n_true, result.n_false, round(result.ap, 3)
    (2, 1, 0.833)
    >>> result.view_confusion, result.view_accuracy, result.view_recall
    (array([[1, 0],
           [1, 0]]), 0.5, array([1., 1.]))
    >>> result.operating_points()[0]
    OperatingPoint(threshold=3.0, precision=1.0, recall=0.5, false_alarms=0.0)
    """

    curve: PrecisionRecallCurve
    outcomes: dict[str, Outcome]
    n_objects: int
    n_true: int
    n_false: int
    view_confusion: NDArray[np.int64]
    objects_per_view: NDArray[np.int64]
    shift: tuple[float, float]
    scale: tuple[float, float]
    _steps: Steps

    @property
    def ap(self) -> float:
        """Average precision: the area under the interpolated curve, from 0 to 1."""
        return self.curve.average_precision()

    @property
    def ap_11(self) -> float:
        """Average precision as the mean at the recalls 0, 0.1, ..., 1."""
        return self.curve.average_precision(points=11)

    @property
    def view_accuracy(self) -> float:
        """Share of the true positives whose view is right; NaN if there are none to tell apart."""
        total = self.view_confusion.sum() if len(self.view_confusion) > 1 else 0
        return float(np.trace(self.view_confusion) / total) if total else float("nan")

    @property
    def view_recall(self) -> FloatArray:
        """Share of the objects of each view that are found; NaN for a view without objects."""
        n_objects = self.objects_per_view.astype(np.float64)
        found = self.view_confusion.sum(axis=1)
        return np.divide(found, n_objects, out=np.full(len(found), np.nan), where=n_objects > 0.0)

    @property
    def objects_per_image(self) -> IndexArray:
        """Objects to be found in each image, in the order of the annotations."""
        return self._steps.n_objects

    def resampled_ap(self, weights: IndexArray) -> FloatArray:
        """Return the average precision for each row of weights of images, (n_resamples,)."""
        areas = [
            (np.diff(n_true, axis=1, prepend=0) * precision).sum(axis=1) / n_objects
            for n_objects, n_true, precision in self._steps.at_hits(weights)
        ]
        return np.concatenate(areas)

    def operating_points(self) -> list[OperatingPoint]:
        """Return thresholds with few and with many false alarms.

        Returns
        -------
        list of OperatingPoint
            The lowest scores with at most 0.01, 0.03, 0.1, ... 10 false alarms an image, as far as
            the detections go, and the lowest score of all; falling.
        """
        last = self._steps.last_of_score
        n_true, n_false = self._steps.totals()[last].T
        alarms = n_false / len(self.objects_per_image)
        chosen = {int(np.flatnonzero(alarms <= most)[-1]) for most in _FALSE_ALARMS
                  if (alarms <= most).any()}  # fmt: skip
        if len(last):
            chosen.add(len(last) - 1)
        return [
            OperatingPoint(
                threshold=float(self._steps.scores[last[i]]),
                precision=float(n_true[i] / (n_true[i] + n_false[i])),
                recall=float(n_true[i] / self.n_objects),
                false_alarms=float(alarms[i]),
            )
            for i in sorted(chosen)
        ]

    def plot(self, *, name: str = "detector", ax: Axes | None = None) -> PrecisionRecallDisplay:
        """Draw precision against recall.

        Parameters
        ----------
        name : str, default="detector"
            What to call the curve.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        PrecisionRecallDisplay
            The display, drawn.
        """
        from badacost.detection.evaluation.displays import PrecisionRecallDisplay

        return PrecisionRecallDisplay({name: self.curve}).plot(ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON."""
        return {
            "ap": self.ap,
            "ap_range": list(self.ap_range),
            "ap_11": self.ap_11,
            "n_objects": self.n_objects,
            "n_true": self.n_true,
            "n_false": self.n_false,
            "view_accuracy": number_or_none(self.view_accuracy),
            "view_confusion": self.view_confusion.tolist(),
            "view_recall": [number_or_none(recall) for recall in self.view_recall],
            "objects_per_view": self.objects_per_view.tolist(),
            "operating_points": [asdict(point) for point in self.operating_points()],
            "shift": list(self.shift),
            "scale": list(self.scale),
            "curve": self.curve.to_dict(),
        }


def evaluate_voc(
    detections: Mapping[str, Detections],
    annotations: Mapping[str, Any],
    *,
    overlap: float = 0.5,
    min_size: float = 0.0,
    min_detection_size: float = 0.0,
    rounds: int = 1,
    from_last_pixel: bool = False,
) -> VocResult:
    """Return the average precision of detections by the rules of PASCAL VOC.

    Parameters
    ----------
    detections : mapping of str to Detections
        What was found in each image. An annotated image without an entry is one in which nothing
        was found.
    annotations : mapping of str to annotated image
        What is there: ``boxes``, and ``ignore``, ``labels`` and ``categories`` if they have them.
        Labels are indices into the names of the detections. Objects of all categories are to be
        found: `align` keeps those that the detections are of, and labels them.
    overlap : float, default=0.5
        A detection must overlap its annotated box by more than this.
    min_size : float, default=0
        Annotated boxes whose width or height is less are ignored.
    min_detection_size : float, default=0
        Only detections with a width or height above this count; 0 lets all of them count.
    rounds : int, default=1
        Rounds of matching. After each but the last, all detections are moved and scaled by the mean
        difference between true positives and their annotated boxes. More than one tells how good
        boxes would be if annotators and detector agreed on what a box is; but it fits the
        detections to the very annotations they are judged by.
    from_last_pixel : bool, default=False
        Measure sizes and centres from the first to the last pixel of a box, as programs do whose
        files name the last pixel: 1 less than from edge to edge. Overlaps do not change.

    Returns
    -------
    VocResult
        The curve, its average precision, counts.

    Raises
    ------
    ValueError
        Where no annotated box is to be found, or images do not fit together.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.evaluation import evaluate_voc
    >>> truth = SimpleNamespace(boxes=[[0, 0, 10, 10], [20, 0, 30, 10]])
    >>> boxes = [[1, 0, 11, 10], [50, 0, 60, 10], [20, 0, 30, 9]]
    >>> found = Detections(boxes, [3.0, 2.0, 1.0], [0, 0, 0], names=["front"])
    >>> evaluate_voc({"a.png": found}, {"a.png": truth}).ap
    0.8333333333333333
    """
    check_number("overlap", overlap, low=0.0, high=1.0)
    check_number("min_size", min_size, low=0.0)
    check_number("min_detection_size", min_detection_size, low=0.0)
    check_number("rounds", rounds, Integral, low=1)
    check_flag("from_last_pixel", from_last_pixel)
    edge = float(from_last_pixel)
    images = [
        _Image.from_pair(pair, min_size, min_detection_size, edge)
        for pair in paired(detections, annotations)
    ]
    if not any(image.to_find.any() for image in images):
        raise ValueError("annotations hold no box to be found: check category and min_size.")

    shift, scale = np.zeros(2), np.ones(2)
    for number in range(rounds):
        outcomes = [image.matched(overlap) for image in images]
        step, ratio = _mean_difference(images, outcomes, edge)
        shift, scale = shift + step, scale * ratio
        if number < rounds - 1:
            images = [image.moved(step, ratio, edge) for image in images]
    return _result(images, outcomes, shift, scale)


def evaluate_faces(
    detections: Mapping[str, Detections], annotations: Mapping[str, Any], *, rounds: int = 5
) -> VocResult:
    """Return the average precision by the protocol of the paper for AFW and PASCAL faces.

    That is `evaluate_voc` with the sizes of the HeadHunter toolbox (Mathias et al., ECCV 2014):
    annotated faces with a side below 30 pixels are ignored, and detections count with a side above
    21, both measured from the first to the last pixel.

    Parameters
    ----------
    detections : mapping of str to Detections
        What was found in each image.
    annotations : mapping of str to annotated image
        What is there.
    rounds : int, default=5
        Rounds of matching, with a refinement of all boxes between them. The published figures have
        5; say so beside them, or give those of 1, since boxes are fitted to the test annotations.

    Returns
    -------
    VocResult
        The curve, its average precision, counts.

    Examples
    --------
    Boxes that are all 10 % too wide are good enough at once; a face of 20 pixels need not be found:

    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_faces
    >>> truth = AnnotatedImage(None, [[0, 0, 40, 40], [100, 0, 160, 60], [200, 0, 220, 20]])
    >>> found = Detections([[-2, 0, 42, 40], [97, 0, 163, 60]], [2.0, 1.0], [0, 0], names=["front"])
    >>> result = evaluate_faces({"a.png": found}, {"a.png": truth})
    >>> result.n_objects, result.ap
    (2, 1.0)
    >>> [round(ratio, 2) for ratio in result.scale]  # what refinement made of widths and heights
    [0.91, 1.0]
    """
    return evaluate_voc(
        detections,
        annotations,
        min_size=30.0,
        min_detection_size=21.0,
        rounds=rounds,
        from_last_pixel=True,
    )


@dataclass(frozen=True, eq=False)
class _Image:
    """Detections of an image, best first, and its annotated boxes.

    Boxes of detections may be refined, and lie outside of what `Detections` allow.
    """

    name: str
    place: int
    found: Detections
    boxes: FloatArray
    truth: FloatArray
    to_find: Mask
    is_area: Mask
    true_views: IndexArray

    @classmethod
    def from_pair(
        cls, pair: Pair[Detections], min_size: float, min_found: float, edge: float
    ) -> _Image:
        """Select what counts of an image."""
        truth, true_views = pair.boxes, pair.labels()
        is_small = np.any(_sizes(truth, edge) < min_size, axis=1)
        is_area = pair.is_area()
        to_find = ~(pair.flags("ignore") | is_area | is_small)
        found = Detections.empty(()) if pair.found is None else pair.found.best_first()
        if min_found > 0.0:
            found = found[np.any(_sizes(found.boxes, edge) > min_found, axis=1)]
        n_views, known = len(found.names), true_views[to_find]
        if n_views and (known >= n_views).any():
            raise ValueError(
                f"image {pair.name!r:.80} is annotated with view {known.max()}, but its "
                f"detections have {n_views} views: label both by the same views, as align does."
            )
        return cls(
            pair.name, pair.place, found, found.boxes, truth, to_find, is_area, true_views
        )  # fmt: skip

    def matched(self, overlap: float) -> Outcome:
        """Find out to which annotated box each detection belongs, and which are right."""
        n = len(self.boxes)
        owners, verdicts = np.full(n, -1), np.full(n, FALSE, dtype=np.int8)
        if n and len(self.truth):
            shared, best = BoxTree(self.truth).largest(self.boxes)
            belongs = np.flatnonzero(shared > overlap)
            owners[belongs] = best[belongs]
            _, first = np.unique(best[belongs], return_index=True)
            verdicts[belongs[first]] = TRUE
            verdicts[belongs[~self.to_find[best[belongs]]]] = IGNORED
            inside, _ = BoxTree(self.truth[self.is_area]).largest(self.boxes, "first")
            verdicts[(verdicts == FALSE) & (inside > overlap)] = IGNORED
        return Outcome(self.found, verdicts, owners, self.to_find)

    def moved(self, shift: FloatArray, scale: FloatArray, edge: float) -> _Image:
        """Return the image with its detections moved by a share of their sizes, and scaled."""
        sizes = _sizes(self.boxes, edge)
        centres, half = _centres(self.boxes) + shift * sizes, (scale * sizes + edge) / 2.0
        return replace(self, boxes=np.concatenate([centres - half, centres + half], axis=1))


def _mean_difference(
    images: list[_Image], outcomes: list[Outcome], edge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the mean shift, in sizes of detections, and ratio of sizes of the true positives."""
    hits = [outcome.verdicts == TRUE for outcome in outcomes]
    found = np.concatenate([image.boxes[hit] for image, hit in zip(images, hits, strict=True)])
    truth = np.concatenate(
        [
            image.truth[outcome.owners[hit]]
            for image, outcome, hit in zip(images, outcomes, hits, strict=True)
        ]
    )
    sizes = _sizes(found, edge)
    usable = (sizes > 0.0).all(axis=1)
    if not usable.any():
        return np.zeros(2), np.ones(2)
    found, truth, sizes = found[usable], truth[usable], sizes[usable]
    shift = (_centres(truth) - _centres(found)) / sizes
    return shift.mean(axis=0), (_sizes(truth, edge) / sizes).mean(axis=0)


def _sizes(boxes: FloatArray, edge: float) -> FloatArray:
    return np.maximum(boxes[:, 2:] - boxes[:, :2] - edge, 0.0)


def _centres(boxes: FloatArray) -> FloatArray:
    return (boxes[:, 2:] + boxes[:, :2]) / 2.0


def _result(
    images: list[_Image], outcomes: list[Outcome], shift: FloatArray, scale: FloatArray
) -> VocResult:
    """Join the images."""
    counted = [outcome.verdicts != IGNORED for outcome in outcomes]
    hits = [o.verdicts[c] == TRUE for o, c in zip(outcomes, counted, strict=True)]
    steps = Steps.joined(
        [image.place for image in images],
        [int(image.to_find.sum()) for image in images],
        [o.detections.scores[c] for o, c in zip(outcomes, counted, strict=True)],
        [np.stack([hit, ~hit], axis=1).astype(np.float64) for hit in hits],
    )
    n_objects = int(steps.n_objects.sum())
    n_views = max(len(image.found.names) for image in images)
    confusion = np.zeros((n_views, n_views), dtype=np.int64)
    per_view = np.zeros(n_views, dtype=np.int64)
    for image, outcome in zip(images, outcomes, strict=True):
        hit = outcome.verdicts == TRUE
        true_views = image.true_views[outcome.owners[hit]]
        known = true_views >= 0
        np.add.at(confusion, (true_views[known], image.found.labels[hit][known]), 1)
        views = image.true_views[image.to_find]
        np.add.at(per_view, views[(views >= 0) & (views < n_views)], 1)
    n_true, n_false = (int(total) for total in steps.gains.sum(axis=0))
    in_order = sorted(zip(images, outcomes, strict=True), key=lambda pair: pair[0].place)
    return VocResult(
        curve=PrecisionRecallCurve.from_outcomes(steps.gains[:, 0], steps.scores, n_objects),
        outcomes={image.name: outcome for image, outcome in in_order},
        n_objects=n_objects,
        n_true=n_true,
        n_false=n_false,
        view_confusion=confusion,
        objects_per_view=per_view,
        shift=(float(shift[0]), float(shift[1])),
        scale=(float(scale[0]), float(scale[1])),
        _steps=steps,
    )
