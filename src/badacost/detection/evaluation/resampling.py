"""How far average precision depends on which images were tested: a bootstrap over images.

Images are drawn with replacement, and average precision is taken anew from their outcomes, without
matching again. Objects of an image stay together, since they are rarely independent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.validation import check_number

N_RESAMPLES = 500
_INTERVAL = (2.5, 97.5)


class Resampled(ABC):
    """A result whose average precision can be taken anew for other weights of its images."""

    @property
    @abstractmethod
    def objects_per_image(self) -> IndexArray:
        """Objects to be found in each image, in the order of the annotations."""

    @abstractmethod
    def resampled_ap(self, weights: IndexArray) -> FloatArray:
        """Return the average precision for each row of weights of images, (n_resamples,)."""

    @cached_property
    def ap_range(self) -> tuple[float, float]:
        """The middle 95 % of the average precision in 500 draws of the images."""
        return interval(self.resampled_ap(draws(self.objects_per_image)))


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
    >>> from badacost.detection.evaluation import ResampledPrecision
    >>> resampled = ResampledPrecision(
    ...     {"old": np.array([0.5, 0.6, 0.7]), "new": np.array([0.6, 0.8, 0.7])}
    ... )
    >>> round(resampled.share_above("new", "old"), 3)
    0.833
    """

    values: dict[str, FloatArray]

    def interval(self, name: str) -> tuple[float, float]:
        """Return the middle 95 % of the values of a detector."""
        return interval(self.values[name])

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


def resample(
    results: Mapping[str, Resampled], *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> ResampledPrecision:
    """Take the average precision of detectors anew, on the same draws of images.

    Parameters
    ----------
    results : mapping of str to result
        Results of one protocol by detector: of the same images, in the same order.
    n_resamples : int, default=500
        Number of draws.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    ResampledPrecision
        The average precision of each detector in each draw.

    Raises
    ------
    ValueError
        Where the results are not of the same objects.

    Examples
    --------
    One detector finds the car in two of three images, the other in all of them:

    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_voc, resample
    >>> car, nothing = Detections([[0, 0, 20, 10]], [1.0], [0], ["car"]), Detections.empty(["car"])
    >>> truth = {name: AnnotatedImage(None, [[0, 0, 20, 10]]) for name in "abc"}
    >>> old = evaluate_voc({"a": car, "b": car, "c": nothing}, truth)
    >>> new = evaluate_voc({"a": car, "b": car, "c": car}, truth)
    >>> resampled = resample({"old": old, "new": new})
    >>> resampled.interval("old"), resampled.interval("new")
    ((0.0, 1.0), (1.0, 1.0))
    >>> resampled.share_above("new", "old")
    0.836
    """
    if not isinstance(results, Mapping) or not results:
        raise ValueError("results must be a mapping from names to results, at least one.")
    check_number("n_resamples", n_resamples, Integral, low=1)
    check_number("seed", seed, Integral, low=0)
    n_objects = [result.objects_per_image for result in results.values()]
    if any(not np.array_equal(n_objects[0], other) for other in n_objects[1:]):
        raise ValueError("results differ in their images: evaluate all by the same annotations.")
    weights = draws(n_objects[0], n_resamples, seed)
    return ResampledPrecision({name: r.resampled_ap(weights) for name, r in results.items()})


def draws(n_objects: IndexArray, n_resamples: int = N_RESAMPLES, seed: int = 0) -> IndexArray:
    """Return how often each image is drawn, (n_resamples, n_images), with an object in each draw.

    Where there is no object at all, draws are as they come.
    """
    rng = np.random.default_rng(seed)
    n_images = len(n_objects)
    chances = np.full(n_images, 1.0 / n_images)
    weights = rng.multinomial(n_images, chances, size=n_resamples)
    while n_objects.any() and len(empty := np.flatnonzero(weights @ n_objects == 0)):
        weights[empty] = rng.multinomial(n_images, chances, size=len(empty))
    return weights


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the middle 95 % of values; NaN where there are none, and those that are NaN left out.

    >>> interval([0.5, float("nan")])
    (0.5, 0.5)
    """
    known = np.asarray(values)[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, _INTERVAL)
    return float(low), float(high)
