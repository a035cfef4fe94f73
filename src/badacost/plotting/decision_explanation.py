"""Bars of what each feature contributes to the difference in money between two decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from badacost.plotting.canvas import PALETTE, canvas, signed_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY, _DARK = "#999999", "#444444"
_MAX_NAME_LENGTH = 40


class DecisionExplanationDisplay:
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
        The bars, from top to bottom: features, what is known without any of them, the difference.

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

    def plot(
        self, *, max_features: int | None = 10, ax: Axes | None = None
    ) -> DecisionExplanationDisplay:
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
        told = self.explanation
        features = told.rows(max_features)
        rows = [*features, ("nothing known yet", told.base), ("difference", told.total)]
        amounts = [amount for _, amount in rows]
        colours = [PALETTE[0] if amount >= 0.0 else PALETTE[3] for _, amount in features]
        places = np.arange(len(rows)) + 0.5 * (np.arange(len(rows)) >= len(features))
        self.figure_, self.ax_ = canvas(ax, 7.2, 1.7 + 0.3 * len(rows))
        self.bars_ = self.ax_.barh(places, amounts, color=[*colours, _GREY, _DARK])
        self.ax_.bar_label(self.bars_, signed_numbers(amounts), padding=3)
        self.ax_.axvline(0.0, color=_DARK, linewidth=0.8)
        self.ax_.set_yticks(places, [_shortened(name) for name, _ in rows])
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set(
            xlabel=f"expected cost of {told.against!r} less that of {told.decision!r}",
            ylim=(places[-1] + 0.6, -0.6),
            title=f"Why {told.headline}",
        )
        self.ax_.margins(x=0.2)  # for the numbers
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        return self


def _shortened(name: str) -> str:
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 3]}..."
