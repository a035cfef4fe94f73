"""Average precision and orientation similarity by the rules of the KITTI object benchmark.

Precision is taken at 41 recalls, 0, 1/40, ..., 1, and made monotone. What need not be found depends
on the level (easy, moderate, hard): objects that are too small, hidden or cut off, and those of a
neighbouring category, may be found or not. So may anything in an area called DontCare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from badacost._utils.arrays import FloatArray, IndexArray, Mask, Positions
from badacost._utils.validation import check_choice, check_number
from badacost.detection.box_tree import BoxTree
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import kitti_kernels
from badacost.detection.evaluation.curves import (
    PrecisionRecallCurve,
    number_or_none,
    running_maximum,
)
from badacost.detection.evaluation.outcomes import Steps
from badacost.detection.evaluation.pairs import NEIGHBOURS, Pair, paired
from badacost.detection.evaluation.resampling import Resampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from badacost.detection.evaluation.displays import PrecisionRecallDisplay

RECALL_STEPS = np.linspace(0.0, 1.0, 41)
_NOTHING = SimpleNamespace(boxes=[], categories=[])


@dataclass(frozen=True)
class KittiLevel:
    """What must be found at a level of difficulty.

    Parameters
    ----------
    name : str
        Name of the level.
    min_height : float
        Minimum height of an object in pixels.
    max_occlusion : float
        Greatest degree of occlusion, from 0 (none) to 2 (largely).
    max_truncation : float
        Greatest share of an object that lies outside the image.

    Examples
    --------
    >>> from badacost.detection.evaluation import KITTI_LEVELS
    >>> KITTI_LEVELS[0]
    KittiLevel(name='easy', min_height=40.0, max_occlusion=0, max_truncation=0.15)
    """

    name: str
    min_height: float
    max_occlusion: float
    max_truncation: float


KITTI_LEVELS = (
    KittiLevel("easy", 40.0, 0, 0.15),
    KittiLevel("moderate", 25.0, 1, 0.30),
    KittiLevel("hard", 25.0, 2, 0.50),
)


@dataclass(frozen=True, eq=False)
class KittiCurve(Resampled):
    """Precision and orientation similarity at one level.

    Attributes
    ----------
    level : KittiLevel
        The level.
    n_objects : int
        Objects to be found.
    thresholds : ndarray of shape (n_points,)
        Scores of the points that are reached, at most 41. Each needs a true positive of its own, so
        that the curve of few objects ends early and is 0 from there on.
    precision : ndarray of shape (41,)
        Precision at `RECALL_STEPS` or beyond.
    similarity : ndarray of shape (41,) or None
        The same with each true positive counted as (1 + cos(error of its angle)) / 2; None where
        detections or objects have no angle.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_kitti
    >>> boxes = [[60 * i, 0, 60 * i + 50, 50] for i in range(80)]
    >>> truth = AnnotatedImage(None, boxes, categories=["Car"] * 80, angles=[90.0] * 80)
    >>> found = Detections(boxes[:60], range(60), [0] * 60, ["left"], [180.0], category="Car")
    >>> curve = evaluate_kitti({"000001": found}, {"000001": truth}).moderate
    >>> curve.level.name, curve.n_objects, len(curve.thresholds)
    ('moderate', 80, 31)
    >>> curve.ap_40, curve.aos_40
    (0.75, 0.375)
    """

    level: KittiLevel
    n_objects: int
    thresholds: FloatArray
    precision: FloatArray
    similarity: FloatArray | None
    _outcomes: _LevelOutcomes

    @property
    def curve(self) -> PrecisionRecallCurve:
        """The points that are reached; the area under them is `ap_40`."""
        n = len(self.thresholds)
        return PrecisionRecallCurve(RECALL_STEPS[:n], self.precision[:n], self.thresholds)

    @property
    def ap_11(self) -> float:
        """Mean precision at recalls 0, 0.1, ..., 1, as until 2019; NaN if there are no objects."""
        return self._mean(self.precision, 11)

    @property
    def ap_40(self) -> float:
        """Mean precision at recalls 1/40, 2/40, ..., 1; NaN if there are no objects."""
        return self._mean(self.precision, 40)

    @property
    def aos_11(self) -> float:
        """Mean orientation similarity at recalls 0, 0.1, ..., 1; NaN if it is not known."""
        return self._mean(self.similarity, 11)

    @property
    def aos_40(self) -> float:
        """Mean orientation similarity at recalls 1/40, ..., 1; NaN if it is not known."""
        return self._mean(self.similarity, 40)

    @property
    def objects_per_image(self) -> IndexArray:
        """Objects to be found in each image, in the order of the annotations."""
        return self._outcomes.steps.n_objects

    def resampled_ap(self, weights: IndexArray) -> FloatArray:
        """Return `ap_40` for each row of weights of images, (n_resamples,)."""
        n_objects = weights @ self.objects_per_image
        values = [self._outcomes.curves(row)[1][1:].mean() for row in weights]
        return np.where(n_objects > 0, values, np.nan)

    def _mean(self, values: FloatArray | None, points: int) -> float:
        if values is None or not self.n_objects:
            return float("nan")
        return float((values[::4] if points == 11 else values[1:]).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain numbers and lists, for JSON; None where nothing is known."""
        return {
            "n_objects": self.n_objects,
            "ap": number_or_none(self.ap_40),
            "ap_range": [number_or_none(limit) for limit in self.ap_range],
            "ap_11": number_or_none(self.ap_11),
            "ap_40": number_or_none(self.ap_40),
            "aos_11": number_or_none(self.aos_11),
            "aos_40": number_or_none(self.aos_40),
            "recall": RECALL_STEPS.tolist(),
            "precision": self.precision.tolist(),
            "similarity": None if self.similarity is None else self.similarity.tolist(),
            "thresholds": self.thresholds.tolist(),
        }


@dataclass(frozen=True, eq=False)
class KittiResult:
    """What `evaluate_kitti` found.

    Attributes
    ----------
    easy, moderate, hard : KittiCurve
        The curves of the three levels.
    category : str
        What was to be found.
    overlap : float
        How much boxes had to overlap.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_kitti
    >>> boxes = [[60 * i, 0, 60 * i + 50, 30 + 20 * (i % 2)] for i in range(80)]
    >>> truth = AnnotatedImage(None, boxes, categories=["Car"] * 80)
    >>> found = Detections(boxes[::2], range(40), [0] * 40, names=["car"], category="Car")
    >>> result = evaluate_kitti({"000001": found}, {"000001": truth})
    >>> {name: (curve.n_objects, round(curve.ap_40, 2)) for name, curve in result.curves.items()}
    {'easy': (40, 0.0), 'moderate': (80, 0.5), 'hard': (80, 0.5)}
    """

    easy: KittiCurve
    moderate: KittiCurve
    hard: KittiCurve
    category: str
    overlap: float

    @property
    def curves(self) -> dict[str, KittiCurve]:
        """The curves by the names of their levels."""
        return {"easy": self.easy, "moderate": self.moderate, "hard": self.hard}

    def plot(self, *, ax: Axes | None = None) -> PrecisionRecallDisplay:
        """Draw precision against recall at the three levels.

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

        curves = {name: curve.curve for name, curve in self.curves.items()}
        return PrecisionRecallDisplay(curves).plot(ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers and lists, for JSON; `ap` is the moderate `ap_40`."""
        levels = {name: curve.to_dict() for name, curve in self.curves.items()}
        moderate = {key: levels["moderate"][key] for key in ("ap", "ap_range")}
        return {"category": self.category, "overlap": self.overlap, **moderate, **levels}


def evaluate_kitti(
    detections: Mapping[str, Detections],
    annotations: Mapping[str, Any],
    *,
    category: str = "Car",
    overlap: float = 0.7,
    rule: Literal["official", "reference"] = "official",
) -> KittiResult:
    """Return average precision and orientation similarity by the rules of the KITTI benchmark.

    Files of KITTI name the last pixel of a box, and its program measures from the first pixel to
    the last, so that sizes here are 1 less than from edge to edge, and overlaps follow.

    Parameters
    ----------
    detections : mapping of str to Detections
        What was found in each image; their category must be the one evaluated.
    annotations : mapping of str to annotated image
        What is there: ``boxes`` and ``categories``, and ``angles`` in degrees, ``truncation`` and
        ``occlusion`` if they have them; what is not known passes every level. Give them as they
        were read, with all categories: ``ignore`` is not looked at, since the levels decide.
    category : str, default="Car"
        What is to be found, in upper or lower case; Van beside Car, and Person_sitting beside
        Pedestrian, may be found but need not.
    overlap : float, default=0.7
        A detection must overlap its annotated box by more than this; 0.7 for cars and 0.5 for
        others in the benchmark.
    rule : {"official", "reference"}, default="official"
        "official" is the program of the benchmark since 2017: detections lower than the objects of
        a level are neither right nor wrong. "reference" is the older one that the paper was made
        with: they may be right or wrong; images without an entry in `detections` are left out, not
        taken for images in which nothing was found; and an object just as high as the minimum
        must be found.

    Returns
    -------
    KittiResult
        Curves for easy, moderate and hard.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.evaluation import evaluate_kitti
    >>> boxes = [[60 * i, 0, 60 * i + 50, 50] for i in range(50)]
    >>> truth = SimpleNamespace(boxes=boxes, categories=["Car"] * 50, angles=[90.0] * 50)
    >>> found = Detections(boxes, range(50), [0] * 50, ["front"], angles=[90.0], category="Car")
    >>> result = evaluate_kitti({"000001": found}, {"000001": truth})
    >>> result.easy.ap_40, result.easy.aos_40
    (1.0, 1.0)
    """
    check_number("overlap", overlap, low=0.0, high=1.0)
    check_choice("rule", rule, ("official", "reference"))
    if not isinstance(category, str):
        raise TypeError(f"category must be a string; got {type(category).__name__}.")
    official = rule == "official"
    pairs = paired(detections, annotations)
    if not official:
        pairs = [replace(p, truth=_NOTHING) if p.found is None else p for p in pairs]
    images = [_Image.from_pair(pair, category, overlap) for pair in pairs]
    has_angles = all(image.has_angles for image in images)
    curves = {
        level.name: _curve([image.at_level(level, official) for image in images], level, has_angles)
        for level in KITTI_LEVELS
    }
    return KittiResult(**curves, category=category, overlap=overlap)


class _Near(NamedTuple):
    """Pairs of a detection and an object that overlap enough, sorted by both.

    Those of detection i begin at ``starts[i]``. `similarities` are those of angles, from 0 to 1.
    """

    starts: IndexArray
    detections: IndexArray
    objects: IndexArray
    overlaps: FloatArray
    similarities: FloatArray


@dataclass(eq=False)
class _Image:
    """An image before a level is chosen: its detections, and objects of the category or neighbour.

    `place` is its position among the annotations.
    `candidates` are, of each object that overlaps any detection enough, these detections; `near`
    are the same pairs.
    """

    place: int
    scores: FloatArray
    heights: FloatArray
    in_ignored_area: Mask
    is_neighbour: Mask
    object_heights: FloatArray
    occlusion: FloatArray
    truncation: FloatArray
    has_angles: bool
    candidates: dict[int, IndexArray]
    near: _Near

    @classmethod
    def from_pair(cls, pair: Pair[Detections], category: str, overlap: float) -> _Image:
        """Measure the overlaps of an image."""
        wanted = category.lower()
        found = Detections.empty((), (), category) if pair.found is None else pair.found
        if len(found) and found.category.lower() != wanted:
            raise ValueError(
                f"image {pair.name!r:.80} has detections of {found.category!r:.80}, but "
                f"{category!r:.80} is evaluated: pass the category of the detections."
            )
        kinds = np.array([kind.lower() for kind in pair.categories().tolist()], dtype=np.str_)
        boxes, found_boxes = _to_last_pixel(pair.boxes), _to_last_pixel(found.boxes)
        chosen = (kinds == wanted) | (kinds == NEIGHBOURS.get(wanted))
        is_neighbour = kinds[chosen] != wanted
        angles = pair.numbers("angles")[chosen]
        angle_of_view = np.array(found.angles or [np.nan] * len(found.names), dtype=np.float64)
        found_angles = angle_of_view[found.labels]
        near = BoxTree(found_boxes).pairs(boxes[chosen], overlap)
        in_area, _ = BoxTree(boxes[pair.is_area()]).largest(found_boxes, "first")
        objects, first = np.unique(near.queries, return_index=True)
        # The parts of nothing are one empty part.
        candidates = zip(objects.tolist(), np.split(near.boxes, first[1:]), strict=False)
        errors = np.radians(angles[near.queries] - found_angles[near.boxes])
        order = np.argsort(near.boxes, kind="stable")
        return cls(
            place=pair.place,
            scores=found.scores,
            heights=found_boxes[:, 3] - found_boxes[:, 1],
            in_ignored_area=in_area > overlap,
            is_neighbour=is_neighbour,
            object_heights=(boxes[:, 3] - boxes[:, 1])[chosen],
            occlusion=pair.numbers("occlusion")[chosen],
            truncation=pair.numbers("truncation")[chosen],
            has_angles=not (np.isnan(angles[~is_neighbour]).any() or np.isnan(found_angles).any()),
            candidates=dict(candidates),
            near=_Near(
                np.searchsorted(near.boxes[order], np.arange(len(found) + 1)),
                near.boxes[order],
                near.queries[order],
                near.overlaps[order],
                ((1.0 + np.cos(errors)) / 2.0)[order],
            ),
        )

    def at_level(self, level: KittiLevel, official: bool) -> _Task:
        """Decide what must be found, and what counts, at a level."""
        if official:
            too_low = self.object_heights <= level.min_height
            small = self.heights < level.min_height
        else:
            too_low = self.object_heights < level.min_height
            small = np.zeros(len(self.heights), dtype=np.bool_)
        hidden = self.occlusion > level.max_occlusion
        cut_off = self.truncation > level.max_truncation
        return _Task(self, self.is_neighbour | too_low | hidden | cut_off, small)


@dataclass(eq=False)
class _Task:
    """An image at a level: which objects are optional, and which detections are too small."""

    image: _Image
    optional: Mask
    small: Mask

    def hit_scores(self) -> list[float]:
        """Return the scores of true positives if each object has the best-scoring detection."""
        scores = self.image.scores
        free = np.ones(len(scores), dtype=np.bool_)
        hits = []
        for row, candidates in self.image.candidates.items():
            choice = candidates[free[candidates]]
            if len(choice):
                best = choice[scores[choice].argmax()]
                free[best] = False
                if not (self.optional[row] or self.small[best]):
                    hits.append(float(scores[best]))
        return hits

    def steps(self) -> FloatArray:
        """Return each distinct score, and what it adds to the counts, (n, 4), best first.

        Only detections that overlap an object enough can change which object has which.
        """
        image = self.image
        able = (np.diff(image.near.starts) > 0) & ~self.small
        is_false = ~(able | self.small | image.in_ignored_area)
        scores, place = np.unique(-image.scores, return_inverse=True)
        rows = np.zeros((len(scores), 4))
        rows[:, 0] = -scores
        rows[:, 2] = np.bincount(place[is_false], minlength=len(scores))
        new = np.flatnonzero(able)
        new = new[np.argsort(place[new], kind="stable")]
        steps, first = np.unique(place[new], return_index=True)
        held = np.full(len(self.optional), -1, dtype=np.int64)  # the pair of each object
        n_false, matched = 0, (0, 0, 0.0)
        for k, detections in zip(steps, np.split(new, first[1:]), strict=False):
            left_over = kitti_kernels.add(detections, *image.near[:4], held)
            n_false += int((~image.in_ignored_area[left_over]).sum())
            hits = image.near.similarities[held[(held >= 0) & ~self.optional]]
            before, matched = matched, (len(hits), n_false, float(hits.sum()))
            rows[k, 1:] += np.subtract(matched, before)
        return rows


@dataclass(frozen=True, eq=False)
class _LevelOutcomes:
    """Outcomes of all images at a level.

    `steps` have gains of true positives, false positives and similarity; `hits` are the scores of
    true positives that thresholds are taken from, best first, and `hit_images` their images.
    """

    steps: Steps
    hits: FloatArray
    hit_images: Positions

    def curves(self, weights: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return thresholds, precision and similarity for weights of images."""
        n_objects = int(weights @ self.steps.n_objects)
        hits = np.repeat(self.hits, weights[self.hit_images])
        thresholds = hits[_positions(len(hits), n_objects)]
        totals = np.zeros((len(RECALL_STEPS), 3))
        last = np.searchsorted(-self.steps.scores, -thresholds, side="right") - 1
        totals[: len(thresholds)] = self.steps.totals(weights)[last]
        n_true, n_false, similarity = totals.T
        n_found = np.maximum(n_true + n_false, 1.0)
        return (
            thresholds,
            running_maximum(n_true / n_found),
            running_maximum(similarity / n_found),
        )


def _curve(tasks: list[_Task], level: KittiLevel, has_angles: bool) -> KittiCurve:
    """Join the images of a level."""
    places = [task.image.place for task in tasks]
    n_objects = [int((~task.optional).sum()) for task in tasks]
    rows = [task.steps() for task in tasks]
    hits = [np.array(task.hit_scores()) for task in tasks]
    order = np.argsort(-np.concatenate(hits), kind="stable")
    outcomes = _LevelOutcomes(
        Steps.joined(places, n_objects, [part[:, 0] for part in rows], [p[:, 1:] for p in rows]),
        np.concatenate(hits)[order],
        np.repeat(places, [len(part) for part in hits])[order],
    )
    thresholds, precision, similarity = outcomes.curves(np.ones(len(tasks), dtype=np.int64))
    return KittiCurve(
        level=level,
        n_objects=sum(n_objects),
        thresholds=thresholds,
        precision=precision,
        similarity=similarity if has_angles else None,
        _outcomes=outcomes,
    )


def _positions(n_hits: int, n_objects: int) -> Positions:
    """Return which true positives, best first, have recalls that come nearest to the steps.

    The step grows with each one that is taken, by 1/40, so that it may lag behind the recall.
    """
    numbers = np.arange(1, n_hits + 1)
    recall, next_recall = numbers / max(n_objects, 1), (numbers + 1) / max(n_objects, 1)
    positions: list[int] = []
    position, step = 0, 0.0
    while position < n_hits:
        near = next_recall[position:] - step >= step - recall[position:]
        near[-1] = True
        position += int(near.argmax())
        positions.append(position)
        position += 1
        step += 1.0 / (len(RECALL_STEPS) - 1.0)
    return np.array(positions, dtype=np.intp)


def _to_last_pixel(boxes: FloatArray) -> FloatArray:
    """Return boxes from their first to their last pixel, as KITTI's files have them."""
    return np.concatenate([boxes[:, :2], np.maximum(boxes[:, 2:] - 1.0, boxes[:, :2])], axis=1)
