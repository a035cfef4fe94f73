"""Corrections of the probabilities of a classifier, fitted to out-of-fold predictions.

"sigmoid" and "isotonic" are scikit-learn's. Its "temperature" has no remedy for probabilities of
zero, which forests have, and would scale the decision values of a booster, its costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from badacost._utils.arrays import FloatArray, Labels
from badacost._utils.validation import check_number, check_sample_weight

Calibration = Literal["none", "sigmoid", "isotonic", "temperature"]
CALIBRATIONS = get_args(Calibration)
_SMOOTHINGS = (1e-12, 1e-6, 1e-4, 1e-2, 1e-1)


@dataclass
class TemperatureScaling:
    """Probabilities raised to the power 1/T, where T minimises the log-loss.

    Before that, a fraction of equal probabilities is mixed in, chosen by the same criterion:
    otherwise the zeros of forests, which no power corrects, would determine T.

    Attributes
    ----------
    temperature_ : float
        T, from 0.007 to 148; above one it makes predictions less confident.
    smoothing_ : float
        Fraction of equal probabilities, at most 0.1.

    Examples
    --------
    >>> scaling = TemperatureScaling.fit([[0.99, 0.01]] * 4, [0, 0, 0, 1])
    >>> scaling.predict_proba([[0.99, 0.01]]).round(3)
    array([[0.75, 0.25]])
    """

    temperature_: float
    smoothing_: float

    def __post_init__(self) -> None:
        check_number("temperature_", self.temperature_, low=0.0, open_low=True)
        check_number("smoothing_", self.smoothing_, low=0.0, high=1.0, open_low=True)
        # Not integers, which an altered file may have: ONNX does not mix them with other numbers.
        self.temperature_, self.smoothing_ = float(self.temperature_), float(self.smoothing_)

    @classmethod
    def fit(
        cls, probabilities: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> TemperatureScaling:
        """Find the temperature.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, K)
            Predictions for samples that the classifier has not seen.
        y : array-like of shape (n_samples,)
            Classes 0..K-1.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        TemperatureScaling
            The fitted scaling.
        """
        truth = np.asarray(y)
        weight = check_sample_weight(sample_weight, len(truth))

        def log_loss(log_temperature: float, logs: FloatArray) -> float:
            scaled = log_softmax(logs * np.exp(-log_temperature), axis=1)
            return -float(scaled[np.arange(len(truth)), truth] @ weight / weight.sum())

        found = []
        for smoothing in _SMOOTHINGS:
            logs = _smoothed_logs(probabilities, smoothing)
            # Convex in 1/T, hence a single minimum in log T.
            best = minimize_scalar(log_loss, args=(logs,), bounds=(-5.0, 5.0), method="bounded")
            found.append((best.fun, cls(np.exp(best.x), smoothing)))
        return min(found, key=itemgetter(0))[1]

    def predict_proba(self, probabilities: ArrayLike) -> FloatArray:
        """Return the scaled probabilities.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, K)
            Probabilities.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities.
        """
        logs = _smoothed_logs(probabilities, self.smoothing_)
        return np.asarray(softmax(logs / self.temperature_, axis=1))


def _smoothed_logs(probabilities: ArrayLike, smoothing: float) -> FloatArray:
    """Return the logarithms of probabilities (n, K) mixed with a fraction of equal ones."""
    given = np.asarray(probabilities, dtype=np.float64)
    return np.log((1.0 - smoothing) * given + smoothing / given.shape[1])


class _Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose samples are scores already: what scikit-learn's calibrators correct."""

    __metadata_request__fit: ClassVar = {"sample_weight": False}

    def fit(self, X: FloatArray, y: NDArray[Any], sample_weight: Any = None) -> _Scores:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: FloatArray) -> NDArray[np.intp]:
        return X.argmax(axis=1)

    def decision_function(self, X: FloatArray) -> FloatArray:
        return X[:, -1] if len(self.classes_) == 2 else X


def fit_calibrator(
    kind: Calibration, classes: NDArray[Any], scores: FloatArray, y: Labels, weight: FloatArray
) -> Any:
    """Return what turns scores into probabilities, fitted to scores of unseen samples.

    Parameters
    ----------
    kind : {"sigmoid", "isotonic", "temperature"}
        The kind of calibration.
    classes : ndarray of shape (K,)
        The classes, in the order of the columns of the scores.
    scores : ndarray of shape (n_samples, K) or (n_samples, 1)
        Probabilities, or decision values.
    y : ndarray of shape (n_samples,)
        Positions of the true classes in `classes`.
    weight : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    object
        Its `predict_proba` takes scores and returns probabilities (n_samples, K).
    """
    if kind == "temperature":
        return TemperatureScaling.fit(scores, y, weight)
    missing = classes[np.bincount(y, minlength=len(classes)) == 0].tolist()
    if missing:
        raise ValueError(
            f"there is no sample of class {missing[0]!r} to calibrate with: give some, "
            'or set calibration to "temperature" or "none".'
        )
    from sklearn.calibration import CalibratedClassifierCV

    everything = [(np.arange(len(y)), np.arange(len(y)))]  # the scores are out of fold already
    calibrated = CalibratedClassifierCV(_Scores(), method=kind, cv=everything, ensemble=False)
    return calibrated.fit(scores, y, sample_weight=weight)
