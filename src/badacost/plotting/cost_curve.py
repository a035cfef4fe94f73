"""Curves of the average cost against the number of rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from badacost.arrays import FloatArray
from badacost.metrics import charged_costs
from badacost.plotting.canvas import (
    COST_UNIT,
    DASHES,
    ask,
    canvas,
    colours_of,
    costs_for,
    labels_of,
    short_number,
)
from badacost.validation import check_choice, check_sample_weight, positions_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW_ROUNDS = 30  # with a dot for each


class CostCurveDisplay:
    """Average cost of decisions against the number of trees.

    Parameters
    ----------
    curves : mapping from name to array-like of shape (n_rounds,)
        Average costs after each round, of one or more sets of samples.
    best_of : str or None, default=None
        Name of the curve whose lowest value is marked; the last one by default.
    stopped : str or None, default=None
        Why training ended after the last of these rounds, if there was a reason: it is marked.
    ylabel : str, default="average cost per decision"
        What the curves are, with unit.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : list of matplotlib Line2D
        The curves.
    best_ : matplotlib Line2D
        The dot at the lowest value.
    stop_ : matplotlib Line2D or None
        The line where training stopped.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.plotting import CostCurveDisplay
    >>> curves = {"train": [1.0, 0.5, 0.25], "validation": [1.1, 0.8, 0.9]}
    >>> display = CostCurveDisplay(curves).plot()
    >>> display.best_.get_label()
    'validation, minimum: 0.8 at round 2'
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        curves: Mapping[str, ArrayLike],
        *,
        best_of: str | None = None,
        stopped: str | None = None,
        ylabel: str = COST_UNIT,
    ):
        if not curves:
            raise ValueError("curves must hold at least one curve; got none.")
        self.curves = {name: _as_curve(name, values) for name, values in curves.items()}
        if best_of is not None:
            check_choice("best_of", best_of, self.curves)
        self.best_of = next(reversed(self.curves)) if best_of is None else best_of
        self.stopped = stopped
        self.ylabel = ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        sets: Mapping[str, Sequence[Any]] | None = None,
        cost_matrix: Any = None,
        best_of: str | None = None,
        ax: Axes | None = None,
    ) -> CostCurveDisplay:
        """Draw the scores of training, or the average costs on samples.

        Parameters
        ----------
        estimator : fitted estimator
            Without samples, one with ``train_score_``, such as `badacost.BAdaCostClassifier`, and
            the scores of training and validation are drawn. With samples, any with ``classes_``
            and ``staged_predict``.
        X : array-like of shape (n_samples, n_features), default=None
            Samples.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        sets : mapping from name to (X, y) or (X, y, sample_weight), default=None
            Several sets of samples, in the place of `X` and `y`.
        cost_matrix : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]`` for the decisions on samples: rows are the truth. Those
            of the estimator by default.
        best_of : str or None, default=None
            Name of the curve whose lowest value is marked; the last one by default.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        CostCurveDisplay
            The display, drawn.
        """
        if (X is None) != (y is None) or (X is not None and sets is not None):
            raise ValueError("give X and y together, or sets, or neither.")
        ylabel = COST_UNIT
        if X is None and sets is None:
            curves, ylabel = _training_curves(estimator, cls.__name__)
        else:
            sets = {"given samples": (X, y)} if sets is None else sets
            curves = _curves_of_sets(estimator, sets, cost_matrix, cls.__name__)
        display = cls(curves, best_of=best_of, stopped=_stop_reason(estimator), ylabel=ylabel)
        return display.plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        staged_predictions: Iterable[ArrayLike],
        cost_matrix: Any,
        *,
        labels: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        name: str = "given samples",
        ax: Axes | None = None,
    ) -> CostCurveDisplay:
        """Draw the average costs of predictions after each round.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes of the samples.
        staged_predictions : iterable of array-likes of shape (n_samples,)
            Predicted classes, one array for each round.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None
            ``C[truth, prediction]``: rows are the truth. None is a price of one for each mistake.
        labels : sequence of K labels, default=None
            The classes, in the order of an array of costs. By default those that a mapping or
            data frame of costs names, or else those that occur, sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        name : str, default="given samples"
            Name of the curve.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        CostCurveDisplay
            The display, drawn.
        """
        staged = [np.asarray(predictions) for predictions in staged_predictions]
        classes = labels_of(cost_matrix, y_true, *staged) if labels is None else list(labels)
        costs = charged_costs(cost_matrix, classes)
        curve = _average_costs(y_true, staged, classes, costs, sample_weight)
        return cls({name: curve}).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> CostCurveDisplay:
        """Draw the curves, the best round, and where training stopped.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        CostCurveDisplay
            The display itself.
        """
        self.figure_, self.ax_ = canvas(ax, 6.4, 4.2)
        from matplotlib.ticker import MaxNLocator

        self.lines_ = []
        for i, (name, values) in enumerate(self.curves.items()):
            (line,) = self.ax_.plot(
                np.arange(1, len(values) + 1),
                values,
                label=name,
                color=colours_of(i + 1)[i],
                linestyle=DASHES[i % len(DASHES)],
                marker="." if len(values) < _FEW_ROUNDS else "",
            )
            self.lines_.append(line)
        self._mark_best()
        self._mark_stop()
        self.ax_.set(xlabel="number of trees", ylabel=self.ylabel)
        self.ax_.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(edgecolor="none")
        return self

    def _mark_best(self) -> None:
        """Put a dot at the lowest value of the curve that decides."""
        curve = self.curves[self.best_of]
        best = int(np.argmin(curve))
        (self.best_,) = self.ax_.plot(
            [best + 1],
            [curve[best]],
            linestyle="",
            marker="o",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor="black",
            label=f"{self.best_of}, minimum: {short_number(curve[best])} at round {best + 1}",
        )

    def _mark_stop(self) -> None:
        """Put a line at the last round, if training had a reason to end there."""
        self.stop_ = None
        if self.stopped is not None:
            last = max(map(len, self.curves.values()))
            self.stop_ = self.ax_.axvline(
                last,
                color="gray",
                linestyle="dashed",
                linewidth=1,
                label=f"last round kept: {self.stopped}",
            )


def _as_curve(name: str, values: ArrayLike) -> FloatArray:
    """Return the values of a curve as an array of shape (n_rounds,)."""
    curve = check_array(values, dtype=np.float64, ensure_2d=False, input_name=f"curve {name!r}")
    if curve.ndim != 1:
        raise ValueError(
            f"curve {name!r} must have one value for each round; got shape {curve.shape}."
        )
    return np.asarray(curve)


def _training_curves(estimator: Any, display: str) -> tuple[dict[str, Any], str]:
    """Return the scores of training by name, and what they are."""
    ask(estimator, "cost_matrix_", f"{display} without X and y")  # the scores of others may rise
    curves = {"train": ask(estimator, "train_score_", f"{display} without X and y")}
    validation = getattr(estimator, "validation_score_", ())
    if len(validation):
        curves["validation"] = validation
    return curves, "loss" if getattr(estimator, "scoring", "cost") == "loss" else COST_UNIT


def _stop_reason(estimator: Any) -> str | None:
    """Return why the estimator has no more rounds, None if nothing ended its training early."""
    reason: str | None = getattr(estimator, "stop_reason_", None)
    if reason is None and getattr(estimator, "early_stopping", None) is True:
        kept, asked = (getattr(estimator, name, 0) for name in ("n_estimators_", "n_estimators"))
        return "early stopping" if kept < asked else None  # it went back to its best round
    return reason


def _curves_of_sets(
    estimator: Any, sets: Mapping[str, Sequence[Any]], cost_matrix: Any, display: str
) -> dict[str, Any]:
    """Return average costs after each round by name of the set."""
    staged_predict = ask(estimator, "staged_predict", display)
    classes = ask(estimator, "classes_", display)
    costs = costs_for(estimator, cost_matrix, display)
    curves = {}
    for name, samples in sets.items():
        if not 2 <= len(samples) <= 3:
            raise ValueError(f"set {name!r} must be (X, y) or (X, y, sample_weight).")
        X, y, *weight = samples
        curves[name] = _average_costs(y, staged_predict(X), classes, costs, *weight)
    return curves


def _average_costs(
    y: ArrayLike,
    staged_predictions: Iterable[ArrayLike],
    classes: Sequence[Any] | NDArray[Any],
    costs: FloatArray,
    sample_weight: ArrayLike | None = None,
) -> list[float]:
    """Return the average cost of each array of predictions."""
    truth = positions_in(classes, y)
    weight = check_sample_weight(sample_weight, len(truth))
    prices = costs[truth]
    rows = np.arange(len(truth))
    curve = []
    for predictions in staged_predictions:
        predicted = positions_in(classes, predictions, "predictions")
        if len(predicted) != len(truth):
            raise ValueError(f"{len(predicted)} predictions for {len(truth)} samples.")
        curve.append(float(np.average(prices[rows, predicted], weights=weight)))
    return curve
