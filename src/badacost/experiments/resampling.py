"""How far average precision depends on which images were tested: a bootstrap over images.

Images are drawn with replacement, the same ones for all detectors, and average precision is taken
anew. Objects of an image stay together, since they are rarely independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from badacost.arrays import FloatArray, Mask
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import MAX_COORDINATE, Detections
from badacost.detection.evaluation import PrecisionRecallCurve, evaluate_voc

_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, eq=False)
class ResampledPrecision:
    """Average precision of detectors on resampled images.

    Attributes
    ----------
    values : dict of str to ndarray of shape (n_resamples,)
        By detector; position i is the same draw of images for all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.experiments.resampling import ResampledPrecision
    >>> resampled = ResampledPrecision(
    ...     {"old": np.array([0.5, 0.6, 0.7]), "new": np.array([0.6, 0.8, 0.7])}
    ... )
    >>> round(resampled.share_above("new", "old"), 3)
    0.833
    """

    values: dict[str, FloatArray]

    def interval(self, name: str) -> tuple[float, float]:
        """Return the middle 95 % of the values of a detector."""
        low, high = np.percentile(self.values[name], _INTERVAL)
        return float(low), float(high)

    def share_above(self, first: str, second: str) -> float:
        """Return in which share of the draws one detector is better; equal ones count half."""
        gap = self.values[first] - self.values[second]
        return float(np.mean((gap > 0.0) + 0.5 * (gap == 0.0)))

    def to_dict(self, reference: str) -> dict[str, dict[str, Any]]:
        """Return intervals, and how often the reference is better, for JSON."""
        return {
            name: {
                "interval": list(self.interval(name)),
                "reference_above": (
                    self.share_above(reference, name)
                    if reference in self.values and name != reference
                    else None
                ),
            }
            for name in self.values
        }


def resampled_precision(
    detections: Mapping[str, Mapping[str, Detections]],
    annotations: Mapping[str, AnnotatedImage],
    *,
    overlap: float,
    n_resamples: int,
    seed: int,
) -> ResampledPrecision:
    """Resample images and evaluate all detectors on each draw.

    Parameters
    ----------
    detections : mapping of str to mapping of str to Detections
        By detector and image.
    annotations : mapping of str to AnnotatedImage
        What is in the images; one of them at least has an object to be found.
    overlap : float
        See `evaluate_voc`.
    n_resamples : int
        Number of draws.
    seed : int
        Seed of the draws.

    Returns
    -------
    ResampledPrecision
        The average precision of each detector in each draw: the area under the whole curve.

    Examples
    --------
    One detector finds the car in two of three images, the other in all of them:

    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.experiments.resampling import resampled_precision
    >>> car, nothing = Detections([[0, 0, 20, 10]], [1.0], [0], ["car"]), Detections.empty(["car"])
    >>> truth = {name: AnnotatedImage(None, [[0, 0, 20, 10]]) for name in "abc"}
    >>> found = {"old": {"a": car, "b": car, "c": nothing}, "new": {"a": car, "b": car, "c": car}}
    >>> resampled = resampled_precision(found, truth, overlap=0.5, n_resamples=200, seed=0)
    >>> resampled.interval("old"), resampled.interval("new")
    ((0.0, 1.0), (1.0, 1.0))
    >>> resampled.share_above("new", "old")
    0.8825
    """
    rng = np.random.default_rng(seed)
    n_objects = np.array([int((~image.ignore).sum()) for image in annotations.values()])
    outcomes = {
        detector: [_outcomes(found[name], image, overlap) for name, image in annotations.items()]
        for detector, found in detections.items()
    }
    values = {detector: np.empty(n_resamples) for detector in detections}
    for place in range(n_resamples):
        drawn = rng.integers(len(n_objects), size=len(n_objects))
        while not n_objects[drawn].any():
            drawn = rng.integers(len(n_objects), size=len(n_objects))
        for detector, images in outcomes.items():
            hits = np.concatenate([images[i][0] for i in drawn])
            scores = np.concatenate([images[i][1] for i in drawn])
            order = np.argsort(-scores, kind="stable")
            curve = PrecisionRecallCurve.from_outcomes(
                hits[order], scores[order], int(n_objects[drawn].sum())
            )
            values[detector][place] = curve.average_precision()
    return ResampledPrecision(values)


def _outcomes(found: Detections, image: AnnotatedImage, overlap: float) -> tuple[Mask, FloatArray]:
    """Return which detections of an image are right, and their scores, best first."""
    # The evaluator wants an object in each image: this one is out of reach.
    boxes = np.concatenate([image.boxes, np.full((1, 4), -MAX_COORDINATE)])
    truth = SimpleNamespace(boxes=boxes, ignore=np.append(image.ignore, False))
    curve = evaluate_voc({"": found}, {"": truth}, overlap=overlap).curve
    return np.diff(curve.recall, prepend=0.0) > 0.0, curve.scores
