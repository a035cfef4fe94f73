"""What became of each detection: the outcomes of matching that every figure is taken from.

An `Outcome` tells for one image which detections are right, wrong or do not count. `Steps` are the
outcomes of all images in the order of their scores, as gains: sums of gains down to a score are
counts of true and false positives, and sums with other weights of images are those of a resample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask, Positions
from badacost.detection.boxes import Detections
from badacost.detection.evaluation.curves import running_maximum

TRUE, IGNORED, FALSE = 1, 0, -1
_MAX_AT_ONCE = 2**21  # numbers of resamples that are in memory at a time


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of the detections and the objects of one image.

    Attributes
    ----------
    detections : Detections
        Those that take part, best first.
    verdicts : ndarray of int8 of shape (n,)
        1 for a true positive, -1 for a false one, 0 for what does not count.
    owners : ndarray of int of shape (n,)
        The annotated box that each detection belongs to, -1 for none.
    to_find : ndarray of bool of shape (m,)
        Which annotated boxes are to be found.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_voc
    >>> truth = AnnotatedImage(None, [[0, 0, 10, 10], [20, 0, 30, 10]])
    >>> found = Detections([[1, 0, 11, 10], [50, 0, 60, 10]], [2.0, 3.0], [0, 0], names=["car"])
    >>> outcome = evaluate_voc({"a.png": found}, {"a.png": truth}).outcomes["a.png"]
    >>> outcome.verdicts, outcome.owners, outcome.missed
    (array([-1,  1], dtype=int8), array([-1,  0]), array([1]))
    """

    detections: Detections
    verdicts: NDArray[np.int8]
    owners: Positions
    to_find: Mask

    @property
    def missed(self) -> Positions:
        """The annotated boxes that are to be found and were not."""
        missed = self.to_find.copy()
        missed[self.owners[self.verdicts == TRUE]] = False
        return np.flatnonzero(missed)


@dataclass(frozen=True, eq=False)
class Steps:
    """Gains in the order of falling scores, the image of each, and the objects of each image."""

    images: Positions
    scores: FloatArray
    gains: FloatArray  # (n_steps, n_totals)
    n_objects: IndexArray  # (n_images,)

    @classmethod
    def joined(
        cls,
        places: Sequence[int],
        n_objects: Sequence[int],
        scores: Sequence[FloatArray],
        gains: Sequence[FloatArray],
    ) -> Steps:
        """Join images, given their places among all; of equal scores the earlier image is first."""
        numbers = np.asarray(places, dtype=np.intp)
        images = np.repeat(numbers, [len(part) for part in scores])
        joined = np.concatenate(scores)
        order = np.argsort(-joined, kind="stable")
        counts = np.zeros(len(places), dtype=np.int64)
        counts[numbers] = n_objects
        return cls(images[order], joined[order], np.concatenate(gains)[order], counts)

    @property
    def last_of_score(self) -> Positions:
        """Positions of the last step of each distinct score."""
        return np.flatnonzero(np.diff(self.scores, append=-np.inf))

    def totals(self, weights: IndexArray | None = None) -> FloatArray:
        """Return the sums of gains down to each step, (n_steps, n_totals), for weights of images.

        For several rows of weights, (n_resamples, n_images), the result has one axis more, in
        front.
        """
        if weights is None:
            return np.cumsum(self.gains, axis=0)
        weighted = weights[..., self.images][..., np.newaxis] * self.gains
        return np.asarray(np.cumsum(weighted, axis=-2))

    def at_hits(self, weights: IndexArray) -> Iterator[tuple[IndexArray, IndexArray, FloatArray]]:
        """Give objects of rows of weights, and count and precision down to each true positive.

        Gains must be those of true and of false positives, one detection a step. Precision is
        interpolated: it only falls between true positives, so that no other point matters.
        """
        hits = np.flatnonzero(self.gains[:, 0])
        for block in self.blocks(weights):
            drawn = block[:, self.images]
            n_true = np.cumsum(drawn[:, hits], axis=1)
            n_found = np.cumsum(drawn, axis=1)[:, hits]
            precision = running_maximum(n_true / np.maximum(n_found, 1))
            yield block @ self.n_objects, n_true, precision

    def blocks(self, weights: IndexArray) -> list[IndexArray]:
        """Divide rows of weights so that the totals of each part fit into memory."""
        n_at_once = max(1, _MAX_AT_ONCE // max(1, self.gains.size))
        return [weights[start : start + n_at_once] for start in range(0, len(weights), n_at_once)]
