"""`Calibration`: rejection thresholds, floor and probabilities from images that were held out.

Scores of cascades have different scales. The unit of a cascade is the score that half of its
training objects reach; thresholds are measured in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_number
from badacost.detection.annotations.image import UNKNOWN_VIEW, AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.detector import Detector
from badacost.detection.evaluation import VocResult, evaluate_voc
from badacost.detection.images import Pixels
from badacost.detection.score_curve import ScoreCurve

# Units below zero: where windows are rejected, and the lowest floor of scores. Images held out are
# easier than those to come: no rejection lies above the floor.
_REJECTIONS = (0.4, 0.5, 0.75)
_FLOOR = 1 / 3
_SCALES = (1.0, 2.0, 3.0)  # of both, until there are as many false alarms as wanted
_MAX_LOSS = 0.001  # of the average precision, for the sake of speed
_MAX_WINDOWS = 1000  # of an image
_OVERLAP = 0.5
_MARGIN = 1e-6  # units, above the score of a box that is not to be kept
_PROVISIONAL = ScoreCurve(12.0, 0.0)  # as long as none is fitted


@dataclass(frozen=True)
class Calibration:
    """How a detector is to be run.

    Attributes
    ----------
    rejection : float
        A window leaves when it falls so many units below zero.
    min_score : float
        Windows that end below are not kept, in units; minus infinity if the rejection decides.
    curve : ScoreCurve or None
        Probabilities of scores in units; None if nothing is known of them.
    precision : float or None
        Average precision on the images held out, whatever the floor.
    """

    rejection: float
    min_score: float
    curve: ScoreCurve | None = None
    precision: float | None = None

    def __post_init__(self) -> None:
        check_number("rejection", self.rejection, low=0.0, high=1e3)
        if self.min_score != -math.inf:
            check_number("min_score", self.min_score)
        check_number("precision", self.precision, low=0.0, high=1.0, none=True)

    def applied(self, detector: Detector, units: Sequence[float]) -> Detector:
        """Return the detector with these thresholds, given the unit of each cascade."""
        mean = float(np.mean(units))
        cascades = [
            replace(
                cascade,
                rejections=np.full(cascade.forest.n_trees, -self.rejection * unit),
                min_score=max(self.min_score * mean, -self.rejection * unit),
            )
            for cascade, unit in zip(detector.cascades, units, strict=True)
        ]
        suppression, curve = detector.suppression, self.curve
        if curve is None:  # boxes vote by their probabilities
            suppression = replace(suppression, vote=None)
        else:
            curve = replace(curve, slope=curve.slope / mean)
        return replace(detector, cascades=cascades, curve=curve, suppression=suppression)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Windows of an image, and how many units each fell below zero on its way."""

    windows: Detections
    depths: FloatArray


def opened(
    detector: Detector,
    units: Sequence[float],
    rejection: float = max(_REJECTIONS),
    floor: float = _FLOOR,
) -> Detector:
    """Return the detector that rejects only what is hopeless, in units below zero."""
    return Calibration(rejection, -floor, _PROVISIONAL).applied(detector, units)


def evaluated(
    detector: Detector,
    pixels: Sequence[Pixels],
    truth: Sequence[AnnotatedImage],
    threads: Threads,
) -> VocResult:
    """What a detector finds in images, whatever the views."""
    found = threads.run(detector.detect, [(image,) for image in pixels])
    return _judged(found, truth)


def calibrated(
    detector: Detector,
    units: Sequence[float],
    pixels: Sequence[Pixels],
    truth: Sequence[AnnotatedImage],
    *,
    false_alarms: float,
    threads: Threads,
) -> Calibration:
    """Choose thresholds by what a detector finds in images that it was not trained on.

    The highest rejection threshold that costs no average precision, the floor that leaves
    `false_alarms` in an image on average, and the curve of probabilities of what is left.
    """
    n_allowed = round(false_alarms * len(truth))
    for scale in _SCALES:
        wide = opened(detector, units, scale * max(_REJECTIONS), scale * _FLOOR)
        arguments = (replace(wide, curve=None), tuple(units))
        seen = threads.run(_followed, [(*arguments, image) for image in pixels])
        results = {
            scale * rejection: _kept(detector, seen, truth, scale * rejection)
            for rejection in _REJECTIONS
        }
        best = max(each.ap for each in results.values())
        chosen = next(key for key, each in results.items() if each.ap >= best - _MAX_LOSS)
        outcomes = results[chosen].outcomes.values()
        probabilities = np.concatenate([each.detections.scores for each in outcomes])
        verdicts = np.concatenate([each.verdicts for each in outcomes])
        wrong = np.sort(probabilities[verdicts < 0])[::-1]
        floor = -scale * _FLOOR
        if n_allowed <= len(wrong):
            break
    if n_allowed < len(wrong):
        last = float(np.clip(wrong[n_allowed], 1e-12, 1.0 - 1e-12))
        floor = _PROVISIONAL.score(last) + _MARGIN
    counted = (verdicts != 0) & (probabilities > 0.0) & (probabilities < 1.0)
    right = verdicts[counted] > 0
    curve = None
    if right.any() and not right.all():
        log_odds = np.log(probabilities[counted]) - np.log1p(-probabilities[counted])
        curve = ScoreCurve.fit((log_odds - _PROVISIONAL.intercept) / _PROVISIONAL.slope, right)
    return Calibration(chosen, floor, curve, results[chosen].ap)


def _kept(
    detector: Detector, seen: Sequence[_Seen], truth: Sequence[AnnotatedImage], rejection: float
) -> VocResult:
    """What is found if windows leave so many units below zero."""
    found = []
    for each in seen:
        kept = each.windows[each.depths < rejection]
        scored = replace(kept, scores=_PROVISIONAL.probabilities(kept.scores))
        found.append(detector.suppressed(scored))
    return _judged(found, truth)


def _followed(detector: Detector, units: tuple[float, ...], pixels: Pixels) -> _Seen:
    """The best windows of an image, with scores in units, and how deep they fell."""
    parts, depths = [], []
    for sighting in detector.sightings(pixels):
        if len(sighting.detections):
            parts.append(sighting.detections)
            depths.append(-sighting.trace().min(axis=1) / units[sighting.cascade])
    nothing = Detections.empty(detector.names, detector.angles, detector.category)
    windows = Detections.concatenate([nothing, *parts])
    best = np.argsort(-windows.scores, kind="stable")[:_MAX_WINDOWS]
    scored = replace(windows, scores=windows.scores / float(np.mean(units)))[best]
    return _Seen(scored, np.concatenate([np.empty(0), *depths])[best])


def _judged(found: Sequence[Detections], truth: Sequence[AnnotatedImage]) -> VocResult:
    """Compare what was found with what is there, as objects of a single view."""
    names = [str(number) for number in range(len(truth))]
    boxes = {
        name: replace(each, labels=np.zeros(len(each), np.int64), names=("object",), angles=None)
        for name, each in zip(names, found, strict=True)
    }
    objects = {
        name: replace(image, labels=np.full(len(image), UNKNOWN_VIEW))
        for name, image in zip(names, truth, strict=True)
    }
    return evaluate_voc(boxes, objects, overlap=_OVERLAP)
