"""Displays of the curves of detectors, one beside the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_number
from badacost.detection.evaluation.curves import PrecisionRecallCurve, RocCurve
from badacost.plotting.base import DASHES, class_colors, figure_and_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Curve = TypeVar("Curve", PrecisionRecallCurve, RocCurve)


class _CurvesDisplay(ABC):
    """Lines on axes, with a legend."""

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        display
            The display itself.
        """
        self.figure_, self.ax_ = figure_and_axes(ax, 5.6, 4.4)
        self.lines_ = []
        for i, (label, (x, y)) in enumerate(self._lines().items()):
            (line,) = self.ax_.plot(
                x,
                y,
                label=label,
                color=class_colors(i + 1)[i],
                linestyle=DASHES[i % len(DASHES)],
            )
            self.lines_.append(line)
        self.ax_.set_ylim(0.0, 1.02)
        self.ax_.grid(color="0.9", linewidth=0.8)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self._set_axes()
        return self

    @abstractmethod
    def _lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return x and y coordinates by labels."""

    @abstractmethod
    def _set_axes(self) -> None:
        """Name the axes, set the range of x, and put the legend where curves rarely are."""


class PrecisionRecallDisplay(_CurvesDisplay):
    """Precision against recall, with the average precision in the legend.

    Parameters
    ----------
    curves : mapping of str to PrecisionRecallCurve
        Curves by the names of their detectors.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : list of matplotlib Line2D
        The curves.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.detection.evaluation import PrecisionRecallCurve, PrecisionRecallDisplay
    >>> curve = PrecisionRecallCurve([0.5, 0.5, 1.0], [1.0, 0.5, 0.6], [3.0, 2.0, 1.0])
    >>> display = PrecisionRecallDisplay({"mine": curve}).plot()
    >>> display.lines_[0].get_label()
    'mine, AP 0.800'
    >>> plt.close(display.figure_)
    """

    def __init__(self, curves: Mapping[str, PrecisionRecallCurve]):
        self.curves = _checked(curves, PrecisionRecallCurve)

    def _lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        return {
            f"{name}, AP {curve.average_precision():.3f}": (curve.recall, curve.precision)
            for name, curve in self.curves.items()
        }

    def _set_axes(self) -> None:
        self.ax_.set(xlabel="recall", ylabel="precision", xlim=(0.0, 1.02))
        self.ax_.legend(edgecolor="none", loc="lower left")


class RocDisplay(_CurvesDisplay):
    """True-positive rate against the number of false positives.

    Parameters
    ----------
    curves : mapping of str to RocCurve
        Curves by the names of their detectors.
    false_positives : float, default=1000
        The legend has the rate with fewer false positives than this.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : list of matplotlib Line2D
        The curves.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.detection.evaluation import RocCurve, RocDisplay
    >>> curve = RocCurve([0, 0, 7], [0.0, 0.5, 0.7], [float("inf"), 3.0, 2.0])
    >>> display = RocDisplay({"mine": curve}, false_positives=5).plot()
    >>> display.lines_[0].get_label()
    'mine, 0.500 below 5 false positives'
    >>> plt.close(display.figure_)
    """

    def __init__(self, curves: Mapping[str, RocCurve], *, false_positives: float = 1000.0):
        check_number("false_positives", false_positives, low=0.0)
        self.curves = _checked(curves, RocCurve)
        self.false_positives = false_positives

    def _lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        limit = self.false_positives
        return {
            f"{name}, {curve.rate_below(limit):.3f} below {limit:g} false positives": (
                curve.false_positives,
                curve.true_positive_rate,
            )
            for name, curve in self.curves.items()
        }

    def _set_axes(self) -> None:
        highest = max(np.max(curve.false_positives, initial=1.0) for curve in self.curves.values())
        self.ax_.set(xlabel="false positives", ylabel="true-positive rate", xlim=(0.0, highest))
        self.ax_.legend(edgecolor="none", loc="lower right")


def _checked(curves: Mapping[str, Curve], kind: type[Curve]) -> dict[str, Curve]:
    """Return curves of this kind as a dict."""
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError("curves must be a mapping from names to curves, at least one.")
    for name, curve in curves.items():
        if not isinstance(curve, kind):
            raise TypeError(f"curve {name!r:.80} must be a {kind.__name__}; got {type(curve)}.")
    return dict(curves)
