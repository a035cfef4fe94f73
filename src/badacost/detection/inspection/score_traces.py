"""Scores of windows after each tree of a cascade: those that become boxes, and rejected ones."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_number
from badacost.detection.boxes import Detections
from badacost.detection.channels import check_instance
from badacost.detection.detector import Detector
from badacost.detection.plan import Sighting
from badacost.plotting.base import PALETTE, figure_and_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from badacost.detection.detector import Source


class ScoreTracesDisplay:
    """Scores of windows after each tree of a cascade, and the thresholds that reject them.

    The gap between the lowest score of a box and the threshold is what a calibration on these
    images could gain, see `Detector.calibrated`.

    Parameters
    ----------
    boxes : array-like of shape (n_boxes, n_trees)
        Scores of windows that become boxes.
    rejected : array-like of shape (n_rejected, n_trees)
        Scores of windows that are rejected, up to the tree that does it; NaN after it.
    thresholds : array-like of shape (n_trees,)
        Windows leave when their score is not above this.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.detection.inspection import ScoreTracesDisplay
    >>> nan = float("nan")
    >>> display = ScoreTracesDisplay([[1, 2, 4]], [[-1, nan, nan], [1, -2, nan]], [-0.5] * 3)
    >>> display.n_trees_of_rejected
    array([1, 2])
    >>> display.plot().ax_.get_xlabel()
    'trees'
    >>> plt.close(display.figure_)
    """

    def __init__(self, boxes: ArrayLike, rejected: ArrayLike, thresholds: ArrayLike):
        self.thresholds = np.array(thresholds, dtype=np.float64)
        n_trees = self.thresholds.size
        if self.thresholds.shape != (n_trees,) or n_trees == 0:
            raise ValueError("thresholds must be one number for each tree, at least one.")
        self.boxes, self.rejected = (
            np.array(traces, dtype=np.float64).reshape(-1 if np.size(traces) else 0, n_trees)
            for traces in (boxes, rejected)
        )

    @classmethod
    def from_detector(
        cls,
        detector: Detector,
        images: Iterable[Source],
        *,
        cascade: int = 0,
        n_rejected: int = 100,
        random_state: int = 0,
        n_jobs: int | None = None,
        ax: Axes | None = None,
    ) -> ScoreTracesDisplay:
        """Draw the scores of windows of images.

        Parameters
        ----------
        detector : Detector
            What to look into.
        images : iterable of images
            As `Detector.detect` takes them.
        cascade : int, default=0
            Whose scores to show, if the detector has several cascades.
        n_rejected : int, default=100
            Rejected windows to show, drawn at random from those of all images.
        random_state : int, default=0
            The same number draws the same windows.
        n_jobs : int, optional
            Number of threads.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        ScoreTracesDisplay
            The display, drawn.
        """
        check_instance("detector", detector, Detector)
        check_number("cascade", cascade, Integral, low=0, high=len(detector.cascades) - 1)
        check_number("n_rejected", n_rejected, Integral, low=0)
        check_number("random_state", random_state, Integral, low=0)
        thresholds = detector.cascades[cascade].rejections
        rejected = _Rejected(thresholds, n_rejected, np.random.default_rng(random_state))
        boxes = [np.empty((0, len(thresholds)))]
        threads = Threads(n_jobs)
        for image in images:
            boxes.append(_box_traces(detector, image, cascade, rejected, threads))
        return cls(np.concatenate(boxes), rejected.traces, thresholds).plot(ax=ax)

    @property
    def n_trees_of_rejected(self) -> NDArray[np.int64]:
        """Trees that are evaluated on each rejected window."""
        return np.isfinite(self.rejected).sum(axis=1)

    def plot(self, *, ax: Axes | None = None) -> ScoreTracesDisplay:
        """Draw the scores; the axis of trees is logarithmic, as most windows leave early.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        ScoreTracesDisplay
            The display itself.
        """
        self.figure_, self.ax_ = figure_and_axes(ax, 7.2, 4.4)
        tree = np.arange(1, len(self.thresholds) + 1)
        box_colour, threshold_colour = PALETTE[0], PALETTE[3]
        if len(self.rejected):
            last = self.n_trees_of_rejected
            self.ax_.plot(tree, self.rejected.T, color="0.6", linewidth=0.6)
            self.ax_.plot(
                last, self.rejected[np.arange(len(last)), last - 1], linestyle="none", marker="o",
                markersize=3.0, color="0.5", label=f"{len(last)} of the rejected windows",
            )  # fmt: skip
        if len(self.boxes):
            self.ax_.plot(tree, self.boxes.T, color=box_colour, linewidth=0.8, alpha=0.5)
            label = f"lowest of the {len(self.boxes)} windows that become boxes"
            self.ax_.plot(
                tree, self.boxes.min(axis=0), color=box_colour, linewidth=2.0, label=label
            )
        shown = np.where(np.isfinite(self.thresholds), self.thresholds, np.nan)
        self.ax_.plot(
            tree, shown, color=threshold_colour, linewidth=1.6, label="threshold of rejection"
        )
        self.ax_.set(xlabel="trees", ylabel="score", xscale="log", xlim=(1, max(2, tree[-1])))
        # Rejected windows stay close to zero, where the final scores of boxes would hide them.
        linear = np.nanmax(np.abs(shown)) if np.isfinite(shown).any() else 0.0
        self.ax_.set_yscale("symlog", linthresh=float(linear) or 1.0, linscale=1.5)
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.set_major_formatter("{x:g}")
        self.ax_.grid(color="0.9", linewidth=0.8)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(edgecolor="none", loc="upper left")
        return self


class _Rejected:
    """Traces of windows drawn at random from all that are rejected, level after level.

    Each window has a random key, and those with the lowest keys stay: any set of windows of the
    images is as likely as any other, however many levels there are.
    """

    def __init__(self, thresholds: FloatArray, size: int, rng: np.random.Generator):
        self.traces = np.empty((0, len(thresholds)))
        self._keys = np.empty(0)
        self._thresholds, self._size, self._rng = thresholds, size, rng

    def add(self, seen: Sighting) -> None:
        """Draw from the windows of a level."""
        n_rows, n_columns = seen.grid
        keys = self._rng.random(n_rows * n_columns)
        places = np.argsort(keys)[: self._size]
        if len(self._keys) == self._size:
            places = places[keys[places] < self._keys.max(initial=0.0)]
        rows, columns = np.divmod(places, max(1, n_columns))
        traces = seen.trace(rows, columns)
        leaves = traces <= self._thresholds
        gone = leaves.any(axis=1)
        after = np.arange(traces.shape[1]) > leaves.argmax(axis=1)[:, None]
        traces = np.where(after, np.nan, traces)
        self._keys = np.concatenate([self._keys, keys[places][gone]])
        self.traces = np.concatenate([self.traces, traces[gone]])
        lowest = np.argsort(self._keys)[: self._size]
        self._keys, self.traces = self._keys[lowest], self.traces[lowest]


def _box_traces(
    detector: Detector, image: Source, cascade: int, rejected: _Rejected, threads: Threads
) -> FloatArray:
    """Return the traces of the boxes that a cascade finds in an image; draw rejected windows."""
    parts: list[tuple[int, Detections]] = []
    traces = [rejected.traces[:0]]
    for seen in detector.sightings(image, threads):
        parts.append((seen.cascade, seen.detections))
        if seen.cascade == cascade:
            traces.append(seen.trace())
            rejected.add(seen)
    if not parts:
        return traces[0]
    parts.sort(key=lambda part: part[0])
    candidates = Detections.concatenate([boxes for _, boxes in parts])
    owner = np.repeat([index for index, _ in parts], [len(boxes) for _, boxes in parts])
    survivors = detector.survivors(candidates)
    own = survivors[owner[survivors] == cascade] - np.searchsorted(owner, cascade)
    return np.concatenate(traces)[own]
