"""Curves that an evaluation ends in: precision against recall, and true against false positives."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_number


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall of all detections down to each score.

    Parameters
    ----------
    recall, precision : array-like of shape (n,)
        Shares of the objects that are found, which never decrease, and of the detections that are
        right, both from 0 to 1.
    scores : array-like of shape (n,)
        Score down to which detections count, highest first.

    Examples
    --------
    >>> from badacost.detection.evaluation import PrecisionRecallCurve
    >>> curve = PrecisionRecallCurve([0.5, 0.5, 1.0], [1.0, 0.5, 0.6], [3.0, 2.0, 1.0])
    >>> curve.interpolated
    array([1. , 0.6, 0.6])
    >>> curve.average_precision()
    0.8
    """

    recall: FloatArray
    precision: FloatArray
    scores: FloatArray

    def __post_init__(self) -> None:
        _store_columns(self, ("recall", "precision", "scores"))
        for name in ("recall", "precision"):
            values = getattr(self, name)
            if not ((values >= 0.0) & (values <= 1.0)).all():
                raise ValueError(f"{name} must lie between 0 and 1: divide counts by totals.")
        if (np.diff(self.recall) < 0.0).any():
            raise ValueError("recall must not decrease: sort by decreasing score.")

    @classmethod
    def from_outcomes(
        cls, hits: ArrayLike, scores: ArrayLike, n_objects: int
    ) -> PrecisionRecallCurve:
        """Return the curve of detections that are right or wrong.

        Parameters
        ----------
        hits : array-like of shape (n,), of bool
            Whether each detection is a true positive, best first.
        scores : array-like of shape (n,)
            Their scores, highest first.
        n_objects : int
            Objects to be found.

        Returns
        -------
        PrecisionRecallCurve
            With one point for each detection.
        """
        check_number("n_objects", n_objects, Integral, low=1)
        n_true = np.cumsum(np.asarray(hits, dtype=np.bool_))
        return cls(n_true / n_objects, n_true / np.arange(1, len(n_true) + 1), np.asarray(scores))

    @property
    def interpolated(self) -> FloatArray:
        """The highest precision at this recall or a greater one, shape (n,)."""
        return running_maximum(self.precision)

    def average_precision(self, points: int | None = None) -> float:
        """Return the mean of the interpolated precision over recall.

        Parameters
        ----------
        points : int, optional
            Mean over so many recalls, equally spaced from 0 to 1, as 11 in the VOC challenges
            before 2010, or 101 for COCO; by default the area under the whole curve.

        Returns
        -------
        float
            From 0 to 1; recalls that are never reached have a precision of 0.
        """
        check_number("points", points, Integral, low=2, none=True)
        if points is None:
            return float(np.sum(np.diff(self.recall, prepend=0.0) * self.interpolated))
        # A recall of k / n must reach the step k / n, whichever way the two were rounded.
        steps = np.linspace(0.0, 1.0, points) - 1e-12
        first = np.searchsorted(self.recall, steps)
        return float(np.append(self.interpolated, 0.0)[first].mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the points as lists, for JSON."""
        return {
            "recall": self.recall.tolist(),
            "precision": self.precision.tolist(),
            "scores": self.scores.tolist(),
        }


@dataclass(frozen=True, eq=False)
class RocCurve:
    """True positives against false positives, all detections down to each score counted.

    Parameters
    ----------
    false_positives : array-like of shape (n,)
        Numbers of detections that are wrong.
    true_positive_rate : array-like of shape (n,)
        Shares of the objects that are found.
    thresholds : array-like of shape (n,)
        Score down to which detections count, falling; infinite for the first point if it is the
        one where nothing counts.

    Examples
    --------
    >>> from badacost.detection.evaluation import RocCurve
    >>> curve = RocCurve([0, 0, 7, 20], [0.0, 0.5, 0.7, 0.8], [float("inf"), 3.0, 2.0, 1.0])
    >>> curve.rate_below(20)
    0.7
    """

    false_positives: FloatArray
    true_positive_rate: FloatArray
    thresholds: FloatArray

    def __post_init__(self) -> None:
        _store_columns(self, ("false_positives", "true_positive_rate", "thresholds"))

    def rate_below(self, false_positives: float) -> float:
        """Return the highest true-positive rate with fewer than so many false positives.

        Parameters
        ----------
        false_positives : float
            Number that must not be reached.

        Returns
        -------
        float
            0 if no point of the curve has fewer.
        """
        check_number("false_positives", false_positives)
        rates = self.true_positive_rate[self.false_positives < false_positives]
        return float(rates.max(initial=0.0))

    def to_dict(self) -> dict[str, Any]:
        """Return the points as lists, for JSON; an infinite threshold is None."""
        return {
            "false_positives": self.false_positives.tolist(),
            "true_positive_rate": self.true_positive_rate.tolist(),
            "thresholds": [number_or_none(value) for value in self.thresholds],
        }


def running_maximum(values: FloatArray) -> FloatArray:
    """Return the greatest of each value and all that come after it, along the last axis."""
    return np.asarray(np.maximum.accumulate(values[..., ::-1], axis=-1)[..., ::-1])


def number_or_none(value: float) -> float | None:
    """Return a number as JSON knows it: None in the place of NaN and infinities."""
    return float(value) if np.isfinite(value) else None


def _store_columns(curve: Any, names: tuple[str, ...]) -> None:
    """Replace the fields of a curve by arrays of the same length and without NaN."""
    columns = {name: np.array(getattr(curve, name), dtype=np.float64) for name in names}
    length = len(columns[names[0]]) if columns[names[0]].ndim else -1
    for name, column in columns.items():
        if column.shape != (length,) or np.isnan(column).any():
            raise ValueError(f"{', '.join(names)} must be lists of the same length without NaN.")
        object.__setattr__(curve, name, column)
