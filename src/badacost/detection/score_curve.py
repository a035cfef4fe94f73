"""`ScoreCurve`: how likely a detection with some score is an object."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from badacost._utils.arrays import FloatArray, Mask
from badacost._utils.validation import check_number

_MAX = 1e9
_MIN_SLOPE = 1e-3  # by standard deviation of the scores
_REGULARISATION = 100.0


@dataclass(frozen=True)
class ScoreCurve:
    """A logistic curve: the probability rises with the score, so that the order of boxes stays.

    Parameters
    ----------
    slope, intercept : float
        The log-odds of a score are ``slope * score + intercept``; the slope is positive.

    Examples
    --------
    >>> from badacost.detection.score_curve import ScoreCurve
    >>> curve = ScoreCurve(slope=0.5, intercept=-1.0)
    >>> curve.probabilities([2.0, 4.0]).round(2)
    array([0.5 , 0.73])
    >>> curve.score(0.5)
    2.0
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        check_number("slope", self.slope, low=0.0, high=_MAX, open_low=True)
        check_number("intercept", self.intercept, low=-_MAX, high=_MAX)

    @classmethod
    def fit(cls, scores: FloatArray, right: Mask) -> ScoreCurve:
        """Fit the curve to detections of which some are right.

        Parameters
        ----------
        scores, right : ndarray of shape (n,)
            Their scores, and which of them are objects; both kinds must be there.

        Examples
        --------
        >>> import numpy as np
        >>> from badacost.detection.score_curve import ScoreCurve
        >>> scores = np.linspace(-2, 2, 101)
        >>> curve = ScoreCurve.fit(scores, scores > 0.5)
        >>> 0.4 < curve.score(0.5) < 0.6
        True
        """
        from sklearn.linear_model import LogisticRegression

        if not (right.any() and (~right).any()):
            raise ValueError("a curve needs right and wrong detections.")
        centre, width = float(scores.mean()), max(float(scores.std()), 1e-9)
        model = LogisticRegression(C=_REGULARISATION)
        model.fit(((scores - centre) / width)[:, None], right)
        slope = max(float(model.coef_[0, 0]), _MIN_SLOPE) / width
        slope = min(slope, _MAX / (2.0 * max(1.0, abs(centre))))  # where scores hardly differ
        return cls(slope, float(model.intercept_[0]) - slope * centre)

    def probabilities(self, scores: ArrayLike) -> FloatArray:
        """Return the probabilities of scores."""
        with np.errstate(over="ignore"):  # infinite odds are a probability of 0 or 1
            return np.asarray(expit(self.slope * np.asarray(scores, np.float64) + self.intercept))

    def score(self, probability: float) -> float:
        """Return the score of a probability between 0 and 1."""
        if not 0.0 < probability < 1.0:
            raise ValueError(
                f"a probability must be greater than 0 and less than 1; got {probability!r:.80}."
            )
        log_odds = math.log(probability) - math.log1p(-probability)
        return (log_odds - self.intercept) / self.slope
