"""Confusion matrix weighted by cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from badacost._utils.arrays import FloatArray
from badacost._utils.numbers import short_number
from badacost.costs import ABSTAIN
from badacost.metrics import cost_breakdown
from badacost.plotting.base import Axes, Display, check_length

_MIN_FONT_SIZE = 5.0  # points; smaller numbers are left out
_MAX_FONT_SIZE = 10.0
_CHARACTER = 0.62  # width of a character for a font of size one


class CostConfusionDisplay(Display):
    """Confusion matrix weighted by cost: what each kind of mistake cost in all.

    The color of a cell is its fraction of the total cost. The number in it is its cost, and the
    smaller one below how many samples are in it; cells without samples are left blank.

    Parameters
    ----------
    costs : array-like of shape (K, K) or (K, K + 1)
        Total costs by truth (rows) and prediction (columns). An additional last column is the cost
        of abstaining.
    counts : array-like of the same shape
        Numbers, or weights, of samples by truth and prediction.
    display_labels : sequence of K labels, default=None
        Names of the classes; 0 to K - 1 by default.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    im_ : matplotlib AxesImage
        Fractions of the total cost.
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
        options: Any = {"dtype": np.float64, "ensure_non_negative": True}
        self.costs = check_array(costs, input_name="costs", **options)
        self.counts = check_array(counts, input_name="counts", **options)
        n_classes, n_columns = shape = self.costs.shape
        if n_columns not in (n_classes, n_classes + 1) or self.counts.shape != shape:
            got = f"{shape} and {self.counts.shape}"
            raise ValueError(f"costs and counts must have shape (K, K) or (K, K + 1); got {got}.")
        names = range(n_classes) if display_labels is None else display_labels
        self.display_labels = check_length("display_labels", names, n_classes)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, cost_matrix: Any = None, **options: Any
    ) -> Self:
        """Draw what the decisions of a fitted classifier cost.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator with ``predict`` and ``classes_``.
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        cost_matrix : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]``: rows are the truth, in the order of ``classes_``. Those
            of the estimator by default.
        **options
            `sample_weight` and `display_labels`, see `from_predictions`, and those of `plot`.

        Returns
        -------
        CostConfusionDisplay
            The display, drawn.
        """
        predictions = cls._get(estimator, "predict")(X)
        costs = cls._get_costs(estimator, cost_matrix)
        return cls.from_predictions(y, predictions, costs, labels=estimator.classes_, **options)

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
        **options: Any,
    ) -> Self:
        """Draw what decisions cost.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes of the samples.
        y_pred : array-like of shape (n_samples,)
            Predicted classes; abstentions are masked, or have the text `badacost.ABSTAIN`.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
            ``C[truth, prediction]``: rows are the truth. Counted as given, diagonal included, as
            in `badacost.metrics.cost_confusion_matrix`. None is a cost of one for each mistake.
        labels : sequence of K labels, default=None
            The classes, in the order of an array of costs. By default those that a mapping or
            data frame of costs names, or else those that occur, sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), default=None
            Costs of each sample, in the place of `cost_matrix`.
        abstain : float or array-like of shape (n_samples,), default=None
            Cost of abstaining, one or one for each sample.
        display_labels : sequence of K labels, default=None
            Names of the classes; `labels` by default.
        **options
            See `plot`.

        Returns
        -------
        CostConfusionDisplay
            The display, drawn.
        """
        costs = cost_breakdown(
            y_true, y_pred, cost_matrix, labels, sample_weight, sample_cost, abstain
        )
        names = costs.labels if display_labels is None else display_labels
        return cls(costs.totals, costs.counts, display_labels=names).plot(**options)

    def plot(
        self,
        *,
        include_values: bool | None = None,
        cmap: Any = "Oranges",
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        include_values : bool or None, default=None
            Whether to write costs and counts into the cells; None is if they can be read there.
        cmap : str or matplotlib Colormap, default="Oranges"
            Colors of the fractions of the total cost.
        colorbar : bool, default=True
            Whether to add a color bar.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        CostConfusionDisplay
            The display itself.
        """
        n_classes, total = len(self.costs), self.costs.sum()
        side = min(max(4.0, 0.62 * n_classes + 1.2), 10.0)
        self._open(ax, side + 1.6, side)
        fractions = self.costs / (total or 1.0)
        self.im_ = self.ax_.imshow(fractions, cmap=cmap, vmin=0.0, vmax=fractions.max() or 1.0)
        average = short_number(total / (self.counts.sum() or 1.0))
        title = f"Average cost per decision: {average}"
        self.ax_.set(xlabel="predicted class", ylabel="true class", title=title)
        if colorbar:
            self.figure_.colorbar(self.im_, format="{x:.0%}", label="fraction of the total cost")
        self._name_classes()
        self.text_ = self.count_text_ = None
        cell = self._cell()
        longest = max(len(short_number(value)) for value in (*self.costs.flat, *self.counts.flat))
        size = min(_MAX_FONT_SIZE, 0.4 * cell, 0.9 * cell / (_CHARACTER * longest))
        if include_values or (include_values is None and size >= _MIN_FONT_SIZE):
            self.text_ = self._write(self.costs, 0.45 * size, size)
            self.count_text_ = self._write(self.counts, -0.75 * size, 0.75 * size)
        return self

    def _cell(self) -> float:
        """Return the side of a cell in points, as the figure is now laid out."""
        self.figure_.figure.draw_without_rendering()
        box = self.ax_.get_window_extent()
        return float(min(box.width, box.height) * 72 / self.figure_.dpi / max(self.costs.shape))

    def _name_classes(self) -> None:
        """Name the classes along both axes, upright below where they would touch each other."""
        names = [str(label) for label in self.display_labels]
        predictions = [*names, ABSTAIN][: self.costs.shape[1]]
        self.ax_.set_xticks(range(len(predictions)), predictions)
        self.ax_.set_yticks(range(len(names)), names)
        cell = self._cell()
        size = min(_MAX_FONT_SIZE, 0.8 * cell)
        is_narrow = max(map(len, predictions)) * _CHARACTER * size > 0.9 * cell
        self.ax_.tick_params(labelsize=size)
        self.ax_.tick_params("x", labelrotation=90 if is_narrow else 0)

    def _write(self, values: FloatArray, rise: float, size: float) -> NDArray[Any]:
        """Write values into the cells, some points above their centres, in black or white."""
        texts = np.empty(values.shape, dtype=object)
        style: Any = {"textcoords": "offset points", "ha": "center", "va": "center"}
        luminance = self.im_.to_rgba(self.im_.get_array())[..., :3] @ [0.299, 0.587, 0.114]
        for (i, j), value in np.ndenumerate(values):
            text = short_number(value) if self.counts[i, j] else ""
            color = "black" if luminance[i, j] > 0.5 else "white"
            texts[i, j] = self.ax_.annotate(
                text, (j, i), (0.0, rise), fontsize=size, color=color, **style
            )
        return texts
