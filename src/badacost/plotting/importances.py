"""Bars of feature importances."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from badacost.plotting.canvas import PALETTE, ask, canvas, short_number
from badacost.validation import check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FeatureImportancesDisplay:
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
        self.importances = check_array(
            importances, dtype=np.float64, ensure_2d=False, input_name="importances"
        )
        if self.importances.ndim != 1:
            raise ValueError(
                "importances must have one number for each feature; "
                f"got shape {self.importances.shape}."
            )
        n_features = len(self.importances)
        if feature_names is None:
            feature_names = [f"feature {i}" for i in range(n_features)]
        if len(feature_names) != n_features:
            raise ValueError(
                f"feature_names must hold {n_features} names; got {len(feature_names)}."
            )
        self.feature_names = [str(name) for name in feature_names]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[Any] | None = None,
        max_features: int | None = 20,
        ax: Axes | None = None,
    ) -> FeatureImportancesDisplay:
        """Draw the ``feature_importances_`` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``feature_importances_``.
        feature_names : sequence of n_features names, default=None
            Names; ``feature_names_in_`` by default, where the estimator has it.
        max_features, ax
            See `plot`.

        Returns
        -------
        FeatureImportancesDisplay
            The display, drawn.
        """
        importances = ask(estimator, "feature_importances_", cls.__name__)
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        display = cls(importances, feature_names=feature_names)
        return display.plot(max_features=max_features, ax=ax)

    def plot(
        self, *, max_features: int | None = 20, ax: Axes | None = None
    ) -> FeatureImportancesDisplay:
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
        values, places = self.importances[shown], np.arange(len(shown))
        self.figure_, self.ax_ = canvas(ax, 6.4, 1.2 + 0.27 * max(len(shown), 3))
        self.bars_ = self.ax_.barh(places, values, color=PALETTE[0])
        self.ax_.bar_label(self.bars_, [short_number(value) for value in values], padding=3)
        self.ax_.set_yticks(places, [self.feature_names[i] for i in shown])
        self.ax_.set(xlabel="feature importance", ylim=(len(shown) - 0.4, -0.6))
        self.ax_.margins(x=0.12)  # for the numbers
        self.ax_.spines[["top", "right"]].set_visible(False)
        if len(shown) < len(self.importances):
            self.ax_.set_title(f"The {len(shown)} largest of {len(self.importances)} importances")
        return self
