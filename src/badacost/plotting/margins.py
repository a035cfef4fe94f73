"""Distributions of the margins by which samples are decided."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, column_or_1d

from badacost.arrays import FloatArray
from badacost.plotting.canvas import DASHES, ask, canvas, class_bar, colours_of
from badacost.validation import check_flag, check_number, distinct_classes, positions_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MarginDisplay:
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
        classes: Sequence[Any] | NDArray[Any] | None = None,
    ):
        self.margins = np.asarray(check_array(margins, dtype=np.float64, input_name="margins"))
        self.y = column_or_1d(y)
        self.classes = distinct_classes(self.y, y) if classes is None else np.asarray(classes)
        self._truth = positions_in(self.classes, self.y)
        self.rounds = None if rounds is None else [int(number) for number in rounds]
        if len(self.y) != self.margins.shape[1]:
            raise ValueError(
                f"y must have a class for each of the {self.margins.shape[1]} columns of margins; "
                f"got {len(self.y)}."
            )
        if len(self.margins) != (1 if self.rounds is None else len(set(self.rounds))):
            raise ValueError(
                f"rounds must number the {len(self.margins)} rows of margins; got {rounds}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        rounds: Sequence[int] | None = None,
        per_class: bool = False,
        colors: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> MarginDisplay:
        """Draw the margins of samples after some rounds.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``classes_`` and ``staged_cost_scores``.
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their classes.
        rounds : sequence of ints or None, default=None
            Numbers of the rounds, from 1. None is 1, 10, 100, ... and the last; with `per_class`
            it is the last only.
        per_class, colors, ax
            See `plot`.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        check_flag("per_class", per_class)
        staged_costs = ask(estimator, "staged_cost_scores", cls.__name__)(X)
        classes = ask(estimator, "classes_", cls.__name__)
        truth = positions_in(classes, y)
        wanted = None if rounds is None else _checked_rounds(rounds)
        margins: dict[int, FloatArray] = {}
        number = 0
        for number, costs in enumerate(staged_costs, start=1):
            if wanted is None and number > 1 and (per_class or not _is_power_of_ten(number - 1)):
                margins.pop(number - 1)  # which was the last so far, no more
            if wanted is None or number in wanted:
                margins[number] = _margins(costs, truth)
        missing = sorted(set(wanted or ()) - set(margins))
        if missing:
            raise ValueError(f"rounds {missing} are beyond the {number} rounds of the estimator.")
        display = cls([*margins.values()], y, rounds=[*margins], classes=classes)
        return display.plot(per_class=per_class, colors=colors, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        costs: ArrayLike,
        y: ArrayLike,
        *,
        classes: Sequence[Any] | NDArray[Any] | None = None,
        per_class: bool = False,
        colors: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> MarginDisplay:
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
        per_class, colors, ax
            See `plot`.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        scores = np.asarray(check_array(costs, dtype=np.float64, input_name="costs"))
        labels = distinct_classes(column_or_1d(y), y) if classes is None else np.asarray(classes)
        if scores.shape[1] != len(labels) or len(labels) < 2:
            raise ValueError(
                f"costs must have a column for each class; got {scores.shape[1]} columns and "
                f"{len(labels)} classes: give classes if some are missing from y."
            )
        margins = _margins(scores, positions_in(labels, y))
        display = cls(margins[np.newaxis], y, classes=labels)
        return display.plot(per_class=per_class, colors=colors, ax=ax)

    def plot(
        self,
        *,
        per_class: bool = False,
        colors: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> MarginDisplay:
        """Draw the cumulative distributions.

        Parameters
        ----------
        per_class : bool, default=False
            Whether to draw the samples of each class apart.
        colors : sequence of colours, default=None
            One for each class with `per_class`, otherwise one for each round.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        MarginDisplay
            The display itself.
        """
        check_flag("per_class", per_class)
        n_classes, n_rounds = len(self.classes), len(self.margins)
        self.figure_, self.ax_ = canvas(ax, 6.4, max(4.2, 0.2 * n_classes * per_class))
        self.lines_: list[Any] = []
        if per_class:
            colours = colours_of(n_classes, colors)
            self._draw_classes(colours)
        else:
            for margins, name, colour in zip(
                self.margins, self._round_names(), colours_of(n_rounds, colors), strict=True
            ):
                self._draw(margins, f"{name} ({_share_not_above_zero(margins)})", colour)
            self.ax_.legend(title="margins (share ≤ 0)", loc=self._free_corner(), frameon=False)
        self.ax_.axvline(0.0, color="gray", linewidth=1, zorder=0)
        self.ax_.set(
            xlabel="margin (lowest other cost score minus that of the truth)",
            ylabel="share of samples with at most this margin",
            ylim=(0.0, 1.02),
        )
        self.ax_.yaxis.set_major_formatter("{x:.0%}")
        self.ax_.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_classes(self, colours: list[Any]) -> None:
        """Draw a line for each class and round, with a bar of the classes beside them."""
        names = [str(label) for label in self.classes]
        dashes = dict(zip(self._round_names(), cycle(DASHES), strict=False))
        for k, colour in enumerate(colours):
            of_class = self.margins[:, self._truth == k]
            if not of_class.size:
                names[k] += " (no samples)"
                continue
            names[k] += f" ({_share_not_above_zero(of_class[-1])})"
            for margins, (name, dash) in zip(of_class, dashes.items(), strict=True):
                self._draw(margins, f"{self.classes[k]}, {name}", colour, linestyle=dash)
        if len(dashes) > 1:
            styles = [
                self.ax_.plot([], [], color="black", linestyle=dash, label=name)[0]
                for name, dash in dashes.items()
            ]
            self.ax_.legend(handles=styles, loc=self._free_corner(), frameon=False)
        class_bar(self.figure_, self.ax_, names, colours, "class (≤ 0)")

    def _draw(self, margins: FloatArray, label: str, colour: Any, **style: Any) -> None:
        """Draw one distribution."""
        self.lines_.append(self.ax_.ecdf(margins, label=label, color=colour, **style))

    def _free_corner(self) -> Literal["lower right", "upper left"]:
        """Return where a legend covers no curve; matplotlib's own search is slow on large data."""
        low, high = self.margins.min(), self.margins.max()
        rises_early = np.quantile(self.margins, 0.7, axis=1) < 0.6 * low + 0.4 * high
        return "lower right" if rises_early.any() else "upper left"

    def _round_names(self) -> list[str]:
        """Return what the legend calls the rows of margins."""
        return ["margins"] if self.rounds is None else [f"round {n}" for n in self.rounds]


def _margins(costs: ArrayLike, truth: NDArray[Any]) -> FloatArray:
    """Return the lowest score of another class minus that of the true one, of shape (n,)."""
    others = np.array(costs, dtype=np.float64)
    if len(others) != len(truth):
        raise ValueError(f"costs have {len(others)} rows where y has {len(truth)} labels.")
    rows = np.arange(len(truth))
    own = others[rows, truth]
    others[rows, truth] = np.inf
    return np.asarray(others.min(axis=1) - own)


def _checked_rounds(rounds: Sequence[int]) -> list[int]:
    """Return the numbers of rounds, sorted, without repetitions."""
    for number in rounds:
        check_number("every one of rounds", number, Integral, low=1)
    if not len(rounds):
        raise ValueError("rounds must hold at least one number of a round; got none.")
    return sorted({int(number) for number in rounds})


def _is_power_of_ten(number: int) -> bool:
    """Tell whether a positive integer is 1, 10, 100, ..."""
    return str(number).rstrip("0") == "1"


def _share_not_above_zero(margins: FloatArray) -> str:
    """Return the share of samples that the margin rule decides wrongly, or not at all."""
    return f"{np.mean(margins <= 0.0):.1%}"
