"""Horizontal bars: feature importances, and contributions of features to a decision."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from badacost._utils.numbers import short_number, signed_numbers
from badacost._utils.validation import check_number
from badacost.plotting.base import PALETTE, Axes, Display, check_column, check_length

_GREY, _DARK = "#999999", "#444444"


class _BarsDisplay(Display):
    """Base of displays with one bar for each feature, the first on top."""

    def _draw_bars(
        self, ax: Axes | None, names: Any, values: Any, colors: Any, places: Any, **texts: Any
    ) -> None:
        """Draw bars, and their values as texts, which are arguments of ``bar_label``."""
        self._open(ax, 6.8, 1.5 + 0.3 * max(len(names), 3))
        self.bars_ = self.ax_.barh(places, values, color=colors)
        self.ax_.bar_label(self.bars_, padding=3, **texts)
        self.ax_.set_yticks(places, names)
        self.ax_.set_ylim(places[-1] + 0.6, -0.6)
        self.ax_.margins(x=0.2)  # for the texts
        self.ax_.spines[["top", "right"]].set_visible(False)


class FeatureImportancesDisplay(_BarsDisplay):
    """Horizontal bars of feature importances, the largest on top.

    Parameters
    ----------
    importances : array-like of shape (n_features,)
        Importances, such as ``feature_importances_`` or those of
        `sklearn.inspection.permutation_importance`.
    feature_names : sequence of n_features names, default=None
        Names; "feature 0", "feature 1", ... by default.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    bars_ : matplotlib BarContainer
        The bars, from top to bottom.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.plotting import FeatureImportancesDisplay
    >>> display = FeatureImportancesDisplay([0.2, 0.7, 0.1], feature_names=["age", "dose", "sex"])
    >>> [label.get_text() for label in display.plot(max_features=2).ax_.get_yticklabels()]
    ['dose', 'age']
    >>> plt.close(display.figure_)
    """

    def __init__(self, importances: ArrayLike, *, feature_names: Sequence[Any] | None = None):
        self.importances = check_column("importances", importances)
        numbered = [f"feature {i}" for i in range(len(self.importances))]
        names = numbered if feature_names is None else feature_names
        self.feature_names = [*map(str, check_length("feature_names", names, len(numbered)))]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Sequence[Any] | None = None, **options: Any
    ) -> Self:
        """Draw the ``feature_importances_`` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``feature_importances_``.
        feature_names : sequence of n_features names, default=None
            Names; ``feature_names_in_`` by default, where the estimator has it.
        **options
            See `plot`.

        Returns
        -------
        FeatureImportancesDisplay
            The display, drawn.
        """
        importances = cls._get(estimator, "feature_importances_")
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        return cls(importances, feature_names=feature_names).plot(**options)

    def plot(self, *, max_features: int | None = 20, ax: Axes | None = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        max_features : int or None, default=20
            Maximum number of bars, for the features of largest importance. None is all.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        FeatureImportancesDisplay
            The display itself.
        """
        check_number("max_features", max_features, Integral, low=1, none=True)
        shown = np.argsort(-self.importances, kind="stable")[:max_features]
        names = [self.feature_names[i] for i in shown]
        values, places = self.importances[shown], np.arange(len(shown))
        self._draw_bars(ax, names, values, PALETTE[0], places, fmt=short_number)
        self.ax_.set_xlabel("feature importance")
        if len(shown) < len(self.importances):
            self.ax_.set_title(f"The {len(shown)} largest of {len(self.importances)} importances")
        return self


class DecisionExplanationDisplay(_BarsDisplay):
    """Horizontal bars of contributions to a decision, the largest on top, and their sum below.

    Parameters
    ----------
    explanation : badacost.explain.DecisionExplanation
        What to draw.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    bars_ : matplotlib BarContainer
        The bars, from top to bottom: features, the baseline without any of them, the difference.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.explain import explain_decision
    >>> from badacost.plotting import DecisionExplanationDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = BAdaCostClassifier(costs, n_estimators=20, max_depth=2).fit(X, y)
    >>> display = DecisionExplanationDisplay(explain_decision(model, X[70], against=1)).plot()
    >>> display.ax_.get_title()
    'Why 2 is cheaper than 1 here'
    >>> plt.close(display.figure_)
    """

    def __init__(self, explanation: Any):
        self.explanation = explanation

    def plot(self, *, max_features: int | None = 10, ax: Axes | None = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        max_features : int or None, default=10
            Maximum number of features, those of largest contribution; the others have one bar
            together. None is all.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        DecisionExplanationDisplay
            The display itself.
        """
        explanation = self.explanation
        labels, amounts = zip(*explanation._table(max_features), strict=True)
        names = [f"{name[:37]}..." if len(name) > 40 else name for name in labels]
        places = np.arange(len(names)) + np.repeat([0.0, 0.5], [len(names) - 2, 2])
        colors = [PALETTE[0] if amount >= 0.0 else PALETTE[3] for amount in amounts[:-2]]
        texts = signed_numbers(amounts)
        self._draw_bars(ax, names, amounts, [*colors, _GREY, _DARK], places, labels=texts)
        self.ax_.axvline(0.0, color=_DARK, linewidth=0.8)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.spines["left"].set_visible(False)
        xlabel = f"expected cost of {explanation.against!r} minus that of {explanation.decision!r}"
        self.ax_.set(xlabel=xlabel, title=f"Why {explanation.headline}")
        return self
