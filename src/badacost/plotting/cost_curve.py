"""Curves of the average cost against the number of rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import unique_labels

from badacost._utils.arrays import FloatArray
from badacost._utils.numbers import short_number
from badacost._utils.validation import check_sample_weight, positions_in
from badacost.costs.matrix import given_costs
from badacost.metrics import known_labels
from badacost.plotting.base import (
    COST_UNIT,
    DASHES,
    PALETTE,
    Axes,
    Display,
    check_column,
    check_length,
)

_FEW_ROUNDS = 30  # with a dot for each


class CostCurveDisplay(Display):
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
        self.curves = {k: check_column(f"curve {k!r}", values) for k, values in curves.items()}
        if not curves:
            raise ValueError("curves must hold at least one curve; got none.")
        self.best_of = [*curves][-1] if best_of is None else best_of
        if self.best_of not in curves:
            raise ValueError(f"best_of must be one of {[*curves]}; got {best_of!r}.")
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
    ) -> Self:
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
        if X is not None:
            sets = {"given samples": (X, y)}
        ylabel = COST_UNIT
        if sets is None:
            # The scores of an estimator without costs may be accuracies.
            cls._get(estimator, "cost_matrix_", " without X and y")
            curves = {"train": cls._get(estimator, "train_score_", " without X and y")}
            if len(getattr(estimator, "validation_score_", ())):
                curves["validation"] = estimator.validation_score_
            ylabel = "loss" if getattr(estimator, "scoring", "cost") == "loss" else COST_UNIT
        else:
            staged_predict = cls._get(estimator, "staged_predict")
            costs = cls._get_costs(estimator, cost_matrix)
            curves = {}
            for name, samples in sets.items():
                if not 2 <= len(samples) <= 3:
                    raise ValueError(f"set {name!r} must be (X, y) or (X, y, sample_weight).")
                staged = staged_predict(samples[0])
                curves[name] = _average_costs(staged, estimator.classes_, costs, *samples[1:])
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
    ) -> Self:
        """Draw the average costs of predictions after each round.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Classes of the samples.
        staged_predictions : iterable of array-likes of shape (n_samples,)
            Predicted classes, one array for each round.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None
            ``C[truth, prediction]``: rows are the truth. None is a cost of one for each mistake.
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
        seen = unique_labels(y_true, *staged)
        classes = known_labels(cost_matrix, None, labels, seen, y_true)
        costs = given_costs(cost_matrix, classes)
        curve = _average_costs(staged, classes, costs, y_true, sample_weight)
        return cls({name: curve}).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
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
        self._open(ax, 6.4, 4.2)
        self.lines_ = []
        for number, (name, values) in enumerate(self.curves.items()):
            style = {"color": PALETTE[number % len(PALETTE)], "ls": DASHES[number % len(DASHES)]}
            marker = "." if len(values) < _FEW_ROUNDS else ""
            rounds = np.arange(1, len(values) + 1)
            self.lines_ += self.ax_.plot(rounds, values, label=name, marker=marker, **style)
        curve = self.curves[self.best_of]
        best = int(np.argmin(curve))
        label = f"{self.best_of}, minimum: {short_number(curve[best])} at round {best + 1}"
        (self.best_,) = self.ax_.plot(
            [best + 1], [curve[best]], "ko", markersize=8, fillstyle="none", label=label
        )
        self.stop_ = None
        if self.stopped is not None:
            last, label = max(map(len, self.curves.values())), f"last round kept: {self.stopped}"
            self.stop_ = self.ax_.axvline(last, color="gray", ls="dashed", lw=1, label=label)
        self.ax_.set(xlabel="number of trees", ylabel=self.ylabel)
        self.ax_.locator_params("x", integer=True, steps=[1, 2, 5, 10])
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(edgecolor="none")
        return self


def _stop_reason(estimator: Any) -> str | None:
    """Return why the estimator has no more rounds, None if nothing ended its training early."""
    reason: str | None = getattr(estimator, "stop_reason_", None)
    kept, limit = (getattr(estimator, name, 0) for name in ("n_estimators_", "n_estimators"))
    if reason is None and getattr(estimator, "early_stopping", None) is True and kept < limit:
        return "early stopping"  # the model went back to its best round
    return reason


def _average_costs(
    staged: Iterable[ArrayLike], classes: Any, costs: FloatArray, y: Any, sample_weight: Any = None
) -> list[float]:
    """Return the average cost of the predictions of each round."""
    truth = positions_in(classes, y)
    weight = check_sample_weight(sample_weight, len(truth))
    curve = []
    for predictions in staged:
        predicted = positions_in(classes, predictions, "predictions")
        check_length("predictions", predicted, len(truth))
        curve.append(float(np.average(costs[truth, predicted], weights=weight)))
    return curve
