"""The confusion matrix in money."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from badacost.arrays import FloatArray
from badacost.costs import ABSTAIN
from badacost.costs.decisions import Prices
from badacost.metrics import bill_of
from badacost.plotting.canvas import ask, canvas, costs_for, short_number
from badacost.validation import check_flag

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIN_FONT_SIZE = 5.0  # points; smaller numbers are left out
_MAX_FONT_SIZE = 10.0
_CHARACTER = 0.62  # width of a character for a font of size one
_LUMINANCE = np.array([0.299, 0.587, 0.114])  # of red, green and blue


class CostConfusionDisplay:
    """Confusion matrix weighted by cost: what each kind of mistake cost in all.

    The colour of a cell is its share of the total cost. The number in it is its cost, and the
    smaller one below how many samples are in it; cells without samples are left blank.

    Parameters
    ----------
    costs : array-like of shape (K, K) or (K, K + 1)
        Total costs by truth (rows) and prediction (columns). A column more is what it cost to ask
        a person.
    counts : array-like of the same shape
        Numbers, or weights, of samples by truth and prediction.
    display_labels : sequence of K labels, default=None
        How to call the classes; 0 to K - 1 by default.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    im_ : matplotlib AxesImage
        Shares of the total cost.
    text_, count_text_ : ndarray of matplotlib Text, of the shape of `costs`, or None
        The costs and counts in the cells; None where they are left out.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.plotting import CostConfusionDisplay
    >>> costs = [[0, 1], [5, 0]]  # C[truth, prediction]
    >>> display = CostConfusionDisplay.from_predictions([0, 0, 1, 1], [0, 1, 0, 1], costs)
    >>> display.costs
    array([[0., 1.],
           [5., 0.]])
    >>> display.ax_.get_title()
    'Average cost per decision: 1.5'
    >>> plt.close(display.figure_)
    """

    def __init__(
        self, costs: ArrayLike, counts: ArrayLike, *, display_labels: Sequence[Any] | None = None
    ):
        self.costs, self.counts = (
            np.asarray(
                check_array(values, dtype=np.float64, ensure_non_negative=True, input_name=name)
            )
            for name, values in (("costs", costs), ("counts", counts))
        )
        n_classes = len(self.costs)
        is_wide = self.costs.shape[1] in (n_classes, n_classes + 1)
        if not is_wide or self.counts.shape != self.costs.shape:
            raise ValueError(
                "costs and counts must both have shape (K, K) or (K, K + 1); "
                f"got {self.costs.shape} and {self.counts.shape}."
            )
        self.display_labels = [*(range(n_classes) if display_labels is None else display_labels)]
        if len(self.display_labels) != n_classes:
            raise ValueError(
                f"display_labels must name {n_classes} classes; got {len(self.display_labels)}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost_matrix: Any = None,
        sample_weight: ArrayLike | None = None,
        display_labels: Sequence[Any] | None = None,
        include_values: bool | None = None,
        cmap: Any = "Oranges",
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> CostConfusionDisplay:
        """Draw what the decisions of a fitted classifier cost.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``predict`` and ``classes_``.
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their classes.
        cost_matrix : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]``: rows are the truth, in the order of ``classes_``. Those
            of the estimator by default.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        display_labels : sequence of K labels, default=None
            How to call the classes; ``classes_`` by default.
        include_values, cmap, colorbar, ax
            See `plot`.

        Returns
        -------
        CostConfusionDisplay
            The display, drawn.
        """
        predictions = ask(estimator, "predict", cls.__name__)(X)
        return cls.from_predictions(
            y,
            predictions,
            Prices(costs_for(estimator, cost_matrix, cls.__name__)),
            labels=estimator.classes_,
            sample_weight=sample_weight,
            display_labels=display_labels,
            include_values=include_values,
            cmap=cmap,
            colorbar=colorbar,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        cost_matrix: Any = None,
        *,
        labels: Sequence[Any] | NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        sample_cost: ArrayLike | None = None,
        abstain: ArrayLike | None = None,
        display_labels: Sequence[Any] | None = None,
        include_values: bool | None = None,
        cmap: Any = "Oranges",
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> CostConfusionDisplay:
        """Draw what decisions cost.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes of the samples.
        y_pred : array-like of shape (n_samples,)
            Predicted classes, and `badacost.ABSTAIN` where a person is asked.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
            ``C[truth, prediction]``: rows are the truth. Charged as given, diagonal included, as
            in `badacost.metrics.cost_confusion_matrix`. None is a price of one for each mistake.
        labels : sequence of K labels, default=None
            The classes, in the order of an array of costs. By default those that a mapping or
            data frame of costs names, or else those that occur, sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), default=None
            Prices of each sample, in the place of `cost_matrix`.
        abstain : float or array-like of shape (n_samples,), default=None
            The price of asking a person, or one for each sample.
        display_labels : sequence of K labels, default=None
            How to call the classes; `labels` by default.
        include_values, cmap, colorbar, ax
            See `plot`.

        Returns
        -------
        CostConfusionDisplay
            The display, drawn.
        """
        bill = bill_of(y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain)
        names = bill.labels if display_labels is None else display_labels
        display = cls(bill.charged, bill.counts, display_labels=names)
        return display.plot(include_values=include_values, cmap=cmap, colorbar=colorbar, ax=ax)

    def plot(
        self,
        *,
        include_values: bool | None = None,
        cmap: Any = "Oranges",
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> CostConfusionDisplay:
        """Draw the matrix.

        Parameters
        ----------
        include_values : bool or None, default=None
            Whether to write costs and counts into the cells; None is if they can be read there.
        cmap : str or matplotlib Colormap, default="Oranges"
            Colours of the shares.
        colorbar : bool, default=True
            Whether to add a bar of the shares.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        CostConfusionDisplay
            The display itself.
        """
        if include_values is not None:
            check_flag("include_values", include_values)
        check_flag("colorbar", colorbar)
        n_classes, total = len(self.costs), self.costs.sum()
        side = min(max(4.0, 0.62 * n_classes + 1.2), 10.0)
        self.figure_, self.ax_ = canvas(ax, side + 1.6, side)
        shares = self.costs / (total or 1.0)
        self.im_ = self.ax_.imshow(shares, cmap=cmap, vmin=0.0, vmax=shares.max() or 1.0)
        average = total / (self.counts.sum() or 1.0)
        self.ax_.set(
            xlabel="predicted class",
            ylabel="true class",
            title=f"Average cost per decision: {short_number(average)}",
        )
        if colorbar:
            self.figure_.colorbar(
                self.im_, ax=self.ax_, format="{x:.0%}", label="share of the total cost"
            )
        self._name_classes()
        self._write_values(include_values)
        return self

    def _cell(self) -> float:
        """Return the side of a cell in points, as the figure is now laid out."""
        self.figure_.figure.draw_without_rendering()
        box = self.ax_.get_window_extent()
        return float(min(box.width, box.height) * 72 / self.figure_.dpi / max(self.costs.shape))

    def _name_classes(self) -> None:
        """Name the classes along both axes, upright below where they would touch each other."""
        names = [str(label) for label in self.display_labels]
        answers = [*names, ABSTAIN][: self.costs.shape[1]]
        for axis, shown in ((self.ax_.xaxis, answers), (self.ax_.yaxis, names)):
            axis.set_ticks(range(len(shown)), shown)
        cell = self._cell()
        size = min(_MAX_FONT_SIZE, 0.8 * cell)
        self.ax_.tick_params(labelsize=size)
        if max(map(len, answers)) * _CHARACTER * size > 0.9 * cell:
            self.ax_.tick_params(axis="x", labelrotation=90)

    def _write_values(self, include: bool | None) -> None:
        """Write the cost of each cell and, smaller, the count below it."""
        self.text_ = self.count_text_ = None
        cell = self._cell()
        longest = max(len(short_number(value)) for value in (*self.costs.flat, *self.counts.flat))
        size = min(_MAX_FONT_SIZE, 0.4 * cell, 0.9 * cell / (_CHARACTER * longest))
        if include or (include is None and size >= _MIN_FONT_SIZE):
            self.text_ = self._write(self.costs, 0.45 * size, size)
            self.count_text_ = self._write(self.counts, -0.75 * size, 0.75 * size)

    def _write(self, values: FloatArray, rise: float, size: float) -> NDArray[Any]:
        """Write values into the cells, some points above their centres, in black or white."""
        texts = np.empty(values.shape, dtype=object)
        light = self.im_.to_rgba(np.asarray(self.im_.get_array()))[..., :3] @ _LUMINANCE > 0.5
        for (i, j), value in np.ndenumerate(values):
            texts[i, j] = self.ax_.annotate(
                short_number(value) if self.counts[i, j] else "",
                (j, i),
                (0.0, rise),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=size,
                color="black" if light[i, j] else "white",
            )
        return texts
