"""Average precision by the rules of PASCAL VOC, and as the face experiments of the paper used them.

A detection belongs to the annotated box it overlaps most, if the overlap (intersection over union)
is great enough. The best-scoring one of a box is a true positive and the others are false ones,
as are those that belong to no box; those that belong to an ignored box do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray, Mask, Positions
from badacost.detection.boxes import Detections, overlaps
from badacost.detection.evaluation.curves import PrecisionRecallCurve, number_or_none
from badacost.detection.evaluation.pairs import Pair, paired
from badacost.validation import check_flag, check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from badacost.detection.evaluation.displays import PrecisionRecallDisplay


@dataclass(frozen=True, eq=False)
class VocResult:
    """What `evaluate_voc` found.

    Attributes
    ----------
    curve : PrecisionRecallCurve
        One point for each detection that counts, best first.
    n_objects : int
        Annotated boxes that are to be found.
    n_true, n_false : int
        Detections that are right, and wrong.
    view_confusion : ndarray of shape (n_views, n_views)
        Numbers of true positives by annotated (rows) and found (columns) view, where the former is
        known.
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
    >>> result.view_confusion, result.view_accuracy
    (array([[1, 0],
           [1, 0]]), 0.5)
    """

    curve: PrecisionRecallCurve
    n_objects: int
    n_true: int
    n_false: int
    view_confusion: NDArray[np.int64]
    shift: tuple[float, float]
    scale: tuple[float, float]

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
        """Share of the true positives whose view is right; NaN if no view is annotated."""
        total = self.view_confusion.sum()
        return float(np.trace(self.view_confusion) / total) if total else float("nan")

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
            "ap_11": self.ap_11,
            "n_objects": self.n_objects,
            "n_true": self.n_true,
            "n_false": self.n_false,
            "view_accuracy": number_or_none(self.view_accuracy),
            "view_confusion": self.view_confusion.tolist(),
            "shift": list(self.shift),
            "scale": list(self.scale),
            "curve": self.curve.to_dict(),
        }


def evaluate_voc(
    detections: Mapping[str, Detections],
    annotations: Mapping[str, Any],
    *,
    overlap: float = 0.5,
    category: str | None = None,
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
    overlap : float, default=0.5
        A detection must overlap its annotated box by more than this.
    category : str, optional
        Take only annotated boxes of this category, and ignored ones of any; all of them by default.
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
        _Image.from_pair(pair, category, min_size, min_detection_size, edge)
        for pair in paired(detections, annotations)
    ]
    n_objects = sum(int((~image.ignore).sum()) for image in images)
    if not n_objects:
        raise ValueError("annotations hold no box to be found: check category and min_size.")

    shift, scale = np.zeros(2), np.ones(2)
    for number in range(rounds):
        for image in images:
            image.match(overlap)
        step, ratio = _mean_difference(images, edge)
        shift, scale = shift + step, scale * ratio
        if number < rounds - 1:
            for image in images:
                image.boxes = _moved(image.boxes, step, ratio, edge)
    return _result(images, n_objects, shift, scale)


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


@dataclass(eq=False)
class _Image:
    """Detections of an image, best first, their annotated boxes, and which belongs to which.

    `owner` is the annotated box of each detection or -1; `counts` tells which detections are not
    ignored, `hit` which of them are true positives.
    """

    boxes: FloatArray
    scores: FloatArray
    views: IndexArray
    n_views: int
    truth: FloatArray
    ignore: Mask
    true_views: IndexArray
    owner: Positions
    counts: Mask
    hit: Mask

    @classmethod
    def from_pair(
        cls,
        pair: Pair[Detections],
        category: str | None,
        min_size: float,
        min_found: float,
        edge: float,
    ) -> _Image:
        """Select what counts of an image."""
        truth, ignore, true_views = pair.boxes, pair.flags("ignore"), pair.labels()
        if category is not None:
            # What is ignored is so whatever it may be, as regions of KITTI's DontCare.
            chosen = (pair.categories() == category) | ignore
            truth, ignore, true_views = truth[chosen], ignore[chosen], true_views[chosen]
        ignore = ignore | np.any(_sizes(truth, edge) < min_size, axis=1)
        found = pair.found
        if found is None:
            found = Detections.empty(())
        elif min_found > 0.0:
            found = found[np.any(_sizes(found.boxes, edge) > min_found, axis=1)]
        found = found.best_first()
        n_views = len(found.names)
        known = true_views[~ignore]
        if n_views and (known >= n_views).any():
            raise ValueError(
                f"image {pair.name!r:.80} is annotated with view {known.max()}, but its "
                f"detections have {n_views} views: label both by the same views."
            )
        nothing = np.zeros(0, dtype=np.bool_)
        return cls(
            boxes=found.boxes, scores=found.scores, views=found.labels, n_views=n_views,
            truth=truth, ignore=ignore, true_views=true_views,
            owner=nothing.astype(np.intp), counts=nothing, hit=nothing,
        )  # fmt: skip

    def match(self, overlap: float) -> None:
        """Find out to which annotated box each detection belongs, and which are right."""
        n, m = len(self.boxes), len(self.truth)
        self.owner = np.full(n, -1)
        self.counts, self.hit = np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        if not n or not m:
            return
        shared = overlaps(self.boxes, self.truth)
        best = m - 1 - shared[:, ::-1].argmax(axis=1)  # the later one of equals
        belongs = np.flatnonzero(shared[np.arange(n), best] > overlap)
        self.owner[belongs] = best[belongs]
        self.counts[belongs] = ~self.ignore[best[belongs]]
        _, first = np.unique(best[belongs], return_index=True)
        self.hit[belongs[first]] = True
        self.hit &= self.counts


def _mean_difference(images: list[_Image], edge: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean shift, in sizes of detections, and ratio of sizes of the true positives."""
    found = np.concatenate([image.boxes[image.hit] for image in images])
    truth = np.concatenate([image.truth[image.owner[image.hit]] for image in images])
    sizes = _sizes(found, edge)
    usable = (sizes > 0.0).all(axis=1)
    if not usable.any():
        return np.zeros(2), np.ones(2)
    found, truth, sizes = found[usable], truth[usable], sizes[usable]
    shift = (_centres(truth) - _centres(found)) / sizes
    return shift.mean(axis=0), (_sizes(truth, edge) / sizes).mean(axis=0)


def _moved(boxes: FloatArray, shift: FloatArray, scale: FloatArray, edge: float) -> FloatArray:
    """Return boxes with their centres moved by a share of their sizes, and scaled."""
    sizes = _sizes(boxes, edge)
    centres, half = _centres(boxes) + shift * sizes, (scale * sizes + edge) / 2.0
    return np.concatenate([centres - half, centres + half], axis=1)


def _sizes(boxes: FloatArray, edge: float) -> FloatArray:
    return np.maximum(boxes[:, 2:] - boxes[:, :2] - edge, 0.0)


def _centres(boxes: FloatArray) -> FloatArray:
    return (boxes[:, 2:] + boxes[:, :2]) / 2.0


def _result(
    images: list[_Image], n_objects: int, shift: FloatArray, scale: FloatArray
) -> VocResult:
    """Join the images."""
    counts = np.concatenate([image.counts for image in images])
    scores = np.concatenate([image.scores for image in images])[counts]
    hits = np.concatenate([image.hit for image in images])[counts]
    order = np.argsort(-scores, kind="stable")
    curve = PrecisionRecallCurve.from_outcomes(hits[order], scores[order], n_objects)
    n_views = max(image.n_views for image in images)
    confusion = np.zeros((n_views, n_views), dtype=np.int64)
    for image in images:
        true_views = image.true_views[image.owner[image.hit]]
        known = true_views >= 0
        np.add.at(confusion, (true_views[known], image.views[image.hit][known]), 1)
    return VocResult(
        curve=curve,
        n_objects=n_objects,
        n_true=int(hits.sum()),
        n_false=int((~hits).sum()),
        view_confusion=confusion,
        shift=(float(shift[0]), float(shift[1])),
        scale=(float(scale[0]), float(scale[1])),
    )
