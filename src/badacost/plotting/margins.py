"""Distributions of the margins by which samples are decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import distinct_classes, positions_in
from badacost.plotting.base import DASHES, Axes, Display, check_length, class_colors


class MarginDisplay(Display):
    """Cumulative distributions of margins, after some rounds, of all samples or of each class.

    The margin of a sample of class l with cost scores c is the lowest ``c_k`` of the other classes
    minus ``c_l``. It is positive where the class of lowest score is the right one.

    Parameters
    ----------
    margins : array-like of shape (n_rounds, n_samples)
        Margins of the samples after each of some rounds.
    y : array-like of shape (n_samples,)
        Classes of the samples.
    rounds : sequence of n_rounds ints or None, default=None
        Numbers of the rounds, for the legend.
    classes : sequence of labels, default=None
        The classes; those of `y`, sorted, by default.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : list of matplotlib Line2D
        One for each round or, class by class, for each class and round.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.plotting import MarginDisplay
    >>> costs = [[0.0, 2.0, 1.0], [3.0, 1.0, 0.5], [1.0, 0.0, 2.0]]
    >>> display = MarginDisplay.from_predictions(costs, ["a", "b", "c"])
    >>> display.margins
    array([[ 1. , -0.5, -2. ]])
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        margins: ArrayLike,
        y: ArrayLike,
        *,
        rounds: Sequence[int] | None = None,
        classes: ArrayLike | None = None,
    ):
        self.margins = check_array(margins, dtype=np.float64, input_name="margins")
        self.y = column_or_1d(y)
        check_length("y", self.y, self.margins.shape[1])
        self.classes = distinct_classes(self.y, y) if classes is None else np.asarray(classes)
        self._truth = positions_in(self.classes, self.y)
        self.rounds = None if rounds is None else [int(number) for number in rounds]
        if len(self.margins) != len({*(self.rounds or [0])}):
            raise ValueError(f"rounds must number the rows of margins; got {rounds}.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        rounds: Sequence[int] | None = None,
        per_class: bool = False,
        **options: Any,
    ) -> Self:
        """Draw the margins of samples after some rounds.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator with ``classes_`` and ``staged_cost_scores``.
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        rounds : sequence of ints or None, default=None
            Numbers of the rounds, from 1. None is 1, 10, 100, ... and the last; with `per_class`
            it is the last only.
        per_class, **options
            See `plot`.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        staged_scores = cls._get(estimator, "staged_cost_scores")(X)
        classes = cls._get(estimator, "classes_")
        truth = positions_in(classes, y)
        powers = [] if per_class else [10**k for k in range(9)]
        wanted = set(powers if rounds is None else rounds)
        margins: dict[int, FloatArray] = {}
        for last, scores in enumerate(staged_scores, start=1):
            if last in wanted:
                margins[last] = _margins(scores, truth)
        if rounds is None:
            margins[last] = _margins(scores, truth)
        elif not wanted or wanted - margins.keys():
            raise ValueError(f"rounds must be numbers from 1 to {last}; got {[*rounds]}.")
        display = cls([*margins.values()], y, rounds=[*margins], classes=classes)
        return display.plot(per_class=per_class, **options)

    @classmethod
    def from_predictions(
        cls, costs: ArrayLike, y: ArrayLike, *, classes: ArrayLike | None = None, **options: Any
    ) -> Self:
        """Draw the margins that follow from cost scores.

        Parameters
        ----------
        costs : array-like of shape (n_samples, K)
            Cost scores, the lowest of a row for the class to choose: those of ``cost_scores``,
            or expected costs, or the negative of any scores of which the largest wins.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        classes : sequence of K labels, default=None
            The classes, in the order of the columns; those of `y`, sorted, by default.
        **options
            See `plot`.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        scores = check_array(costs, dtype=np.float64, input_name="costs")
        labels = distinct_classes(column_or_1d(y), y) if classes is None else np.asarray(classes)
        if scores.shape[1] != len(labels) or len(labels) < 2:
            got = f"{scores.shape[1]} columns and {len(labels)} classes"
            wanted = "give classes if some are missing from y"
            raise ValueError(f"costs must have a column for each class; got {got}: {wanted}.")
        margins = _margins(scores, positions_in(labels, y))
        return cls([margins], y, classes=labels).plot(**options)

    def plot(
        self,
        *,
        per_class: bool = False,
        colors: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the cumulative distributions.

        Parameters
        ----------
        per_class : bool, default=False
            Whether to draw one line for the samples of each class.
        colors : sequence of colors, default=None
            One for each class with `per_class`, otherwise one for each round.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        MarginDisplay
            The display itself.
        """
        rounds = ["margins"] if self.rounds is None else [f"round {n}" for n in self.rounds]
        dashes = [DASHES[i % len(DASHES)] for i in range(len(rounds))]
        groups = [str(label) for label in self.classes] if per_class else rounds.copy()
        group_colors = class_colors(len(groups), colors)
        self._open(ax, 6.4, max(4.2, 0.2 * len(groups) * per_class))
        self.lines_: list[Any] = []
        for k, color in enumerate(group_colors):
            group = self.margins[:, self._truth == k] if per_class else self.margins[[k]]
            if not group.size:
                groups[k] += " (no samples)"
                continue
            groups[k] += f" ({np.mean(group[-1] <= 0.0):.1%})"
            for margins, name, dash in zip(group, rounds, dashes, strict=False):
                label = f"{self.classes[k]}, {name}" if per_class else groups[k]
                self.lines_.append(self.ax_.ecdf(margins, label=label, color=color, linestyle=dash))
        style = {"loc": self._free_corner(), "frameon": False}
        if not per_class:
            self.ax_.legend(title="margins (fraction ≤ 0)", **style)
        else:
            if len(rounds) > 1:
                handles = [self.ax_.plot([], [], color="k", ls=dash)[0] for dash in dashes]
                self.ax_.legend(handles, rounds, **style)
            self._add_class_bar(self.ax_, groups, group_colors, "class (≤ 0)")
        self.ax_.axvline(0.0, color="gray", linewidth=1, zorder=0)
        self.ax_.set_xlabel("margin (lowest other cost score minus that of the truth)")
        self.ax_.set_ylabel("fraction of samples with at most this margin")
        self.ax_.set_ylim(0.0, 1.02)
        self.ax_.yaxis.set_major_formatter("{x:.0%}")
        self.ax_.spines[["top", "right"]].set_visible(False)
        return self

    def _free_corner(self) -> str:
        """Return where a legend covers no curve; matplotlib's own search is slow on large data."""
        low, high = self.margins.min(), self.margins.max()
        rises_early = np.quantile(self.margins, 0.7, axis=1) < 0.6 * low + 0.4 * high
        return "lower right" if rises_early.any() else "upper left"


def _margins(costs: ArrayLike, truth: NDArray[Any]) -> FloatArray:
    """Return the lowest score of another class minus that of the true one, of shape (n,)."""
    scores = np.asarray(costs, dtype=np.float64)
    check_length("costs", scores, len(truth))
    is_own = np.eye(scores.shape[1], dtype=bool)[truth]
    return np.asarray(np.where(is_own, np.inf, scores).min(axis=1) - scores[is_own])
