"""Non-maximum suppression: of boxes that overlap too much, the best ones stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Literal

import numpy as np

from badacost._utils.arrays import FloatArray, IndexArray, Mask, Positions
from badacost._utils.validation import check_choice, check_flag, check_number
from badacost.detection import box_tree_kernels
from badacost.detection.box_tree import DENOMINATORS, BoxTree, sorted_coordinates
from badacost.detection.boxes import MAX_COORDINATE, Detections

_MIN_DOUBT = 1e-12  # of a probability
_PAIRS_AT_ONCE = 2**20  # of boxes that stay and those that vote for them


@dataclass(frozen=True)
class Suppression:
    """Non-maximum suppression: of boxes that overlap too much, the best ones stay.

    Parameters
    ----------
    kind : {"greedy", "all", "none"}, default="greedy"
        Which boxes suppress the worse ones they overlap: those that stay, all of them (also those
        that do not stay themselves), or none.
    overlap : float, default=0.5
        A box is suppressed by a better one if their overlap is greater than this.
    denominator : {"union", "min"}, default="union"
        What the shared area is divided by: the area of the union, or of the smaller box.
    per_class : bool, default=False
        Whether a box is suppressed by boxes of its own view only.
    max_boxes : int, optional
        Keep at most this many boxes, the best ones.
    vote : float, optional
        A box that stays becomes the mean of all boxes that overlap it by more than this
        (intersection by union), weighted by their odds: scores must be probabilities.

    Examples
    --------
    >>> from badacost.detection import Detections, Suppression
    >>> boxes = [[0, 0, 10, 10], [4, 0, 14, 10], [8, 0, 18, 10]]
    >>> found = Detections(boxes, [3.0, 2.0, 1.0], [0, 0, 0], names=["front"])
    >>> Suppression(overlap=0.3).apply(found).scores
    array([3., 1.])
    >>> Suppression("all", overlap=0.3).apply(found).scores
    array([3.])
    """

    kind: Literal["greedy", "all", "none"] = "greedy"
    overlap: float = 0.5
    denominator: Literal["union", "min"] = "union"
    per_class: bool = False
    max_boxes: int | None = None
    vote: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("greedy", "all", "none"))
        check_number("overlap", self.overlap, low=0.0, high=1.0)
        check_choice("denominator", self.denominator, ("union", "min"))
        check_flag("per_class", self.per_class)
        check_number("max_boxes", self.max_boxes, Integral, low=1, none=True)
        check_number("vote", self.vote, low=0.0, high=1.0, none=True)

    def apply(self, detections: Detections) -> Detections:
        """Return the detections that stay, best first.

        Parameters
        ----------
        detections : Detections
            In any order; of two with the same score, the earlier one counts as better.

        Returns
        -------
        Detections
            Those that no better one suppresses.
        """
        kept = detections[self.survivors(detections)]
        if self.vote is None or not len(kept):
            return kept
        if detections.scores.min() < 0.0 or detections.scores.max() > 1.0:
            raise ValueError("scores must be probabilities to vote by: set vote to None.")
        return replace(kept, boxes=_voted(kept.boxes, detections, self.vote))

    def survivors(self, detections: Detections) -> Positions:
        """Return the indices of the detections that stay, best first."""
        order = np.argsort(-detections.scores, kind="stable")
        if self.kind == "none" or self.overlap >= 1.0 or not len(order):  # no overlap exceeds 1
            return order[: self.max_boxes]
        groups = np.zeros(len(order), np.int64)
        if self.per_class:
            groups = detections.labels[order]
        by_group = np.argsort(groups, kind="stable")
        stays = np.empty(len(order), np.bool_)
        stays[by_group] = self._stay(detections.boxes[order[by_group]], groups[by_group])
        return order[stays][: self.max_boxes]

    def _stay(self, boxes: FloatArray, groups: IndexArray) -> Mask:
        """Return which boxes stay, given by group and best first in each."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        sizes = np.diff(starts, append=len(groups))
        stays: Mask = box_tree_kernels.survivors(
            boxes,
            sorted_coordinates(boxes, groups) - np.repeat(starts, sizes),
            np.append(starts, len(groups)),
            float(self.overlap),
            DENOMINATORS[self.denominator],
            self.kind == "greedy",
        )
        return stays


def _voted(boxes: FloatArray, voters: Detections, min_overlap: float) -> FloatArray:
    """Return the mean of the voters that overlap each box, weighted by their odds."""
    odds = voters.scores / np.maximum(1.0 - voters.scores, _MIN_DOUBT)
    # Equal boxes have the same voters: in a heap of them, all pairs are those of one.
    queries, place = np.unique(boxes, axis=0, return_inverse=True)
    tree, means = BoxTree(voters.boxes), queries.copy()
    # Some boxes at a time, so that pairs take little memory.
    totals = np.cumsum(tree.counts(queries, min_overlap)) // _PAIRS_AT_ONCE
    for block in np.split(np.arange(len(queries)), np.flatnonzero(np.diff(totals)) + 1):
        pairs = tree.pairs(queries[block], min_overlap)
        ends = np.searchsorted(pairs.queries, np.arange(len(block)), side="right")
        for index, near in zip(block, np.split(pairs.boxes, ends[:-1]), strict=True):
            total = odds[near].sum()
            if total > 0.0:
                means[index] = odds[near] @ voters.boxes[near] / total
    voted = means[place.reshape(-1)]  # its shape depends on the version of numpy
    # Rounding may lead past the limits of coordinates, or exchange edges that nearly meet.
    voted = np.clip(voted, -MAX_COORDINATE, MAX_COORDINATE)
    voted[:, 2:] = np.maximum(voted[:, 2:], voted[:, :2])
    return voted
