"""What all displays share: matplotlib on demand, axes, colors, and attributes of estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost.costs.matrix import given_costs

if TYPE_CHECKING:
    import matplotlib.axes

Axes: TypeAlias = "matplotlib.axes.Axes"
COST_UNIT = "average cost per decision"
# Six colors of Okabe and Ito's, then, one after the other, the one farthest from those before it
# (OKLab) in the eye that sees it nearest: a normal one, or one blind to red, to green or to blue.
PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#5a0f00", "#000096",
    "#00f0a5", "#6900ff", "#a50f5a", "#8778ff", "#1e5a00", "#4b005a", "#c3e100", "#5a3ca5",
    "#96b487", "#b4d2ff", "#e11ed2", "#2d0fd2", "#875a87", "#965a3c", "#ff4b5a", "#2d2d3c",
    "#ff78d2", "#0f3c78",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # as many as have no common factor with the colors
DASHES = ("solid", "dashed", "dotted", "dashdot", (0, (1, 1)))


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``; an ImportError names the way to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('displays need matplotlib: run pip install "badacost[plot]".') from error
    return plt


def figure_and_axes(ax: Axes | None, width: float, height: float) -> tuple[Any, Axes]:
    """Return the axes and their figure, a new one of this size in inches where `ax` is None."""
    plt = import_pyplot()
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")
    if not isinstance(ax, plt.Axes):
        raise TypeError(f"ax must be matplotlib axes or None; got {type(ax).__name__}.")
    return ax.figure, ax


def class_colors(n_classes: int, colors: Sequence[Any] | None = None) -> list[Any]:
    """Return one color for each class: those given, or those of the palette, from its start."""
    if colors is None:
        return [PALETTE[i % len(PALETTE)] for i in range(n_classes)]
    return check_length("colors", colors, n_classes)


def check_length(name: str, values: Any, n_values: int) -> list[Any]:
    """Return a sequence, which must have a certain length, as a list."""
    if isinstance(values, str) or len(values) != n_values:
        raise ValueError(f"{name} must have {n_values} entries; got {len(values)}.")
    return list(values)


def check_column(name: str, values: ArrayLike) -> FloatArray:
    """Return finite numbers as an array, which must have one axis."""
    column = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    if column.ndim != 1:
        raise ValueError(f"{name} must be a sequence of numbers; got shape {column.shape}.")
    return np.asarray(column)


class Display:
    """Base of the displays."""

    figure_: Any
    ax_: Any

    def _open(self, ax: Axes | None, width: float, height: float) -> None:
        """Set the axes to draw on, new ones of this size in inches where `ax` is None."""
        self.figure_, self.ax_ = figure_and_axes(ax, width, height)

    @classmethod
    def _get(cls, estimator: Any, name: str, condition: str = "") -> Any:
        """Return an attribute or method of a fitted estimator; a TypeError where it has none."""
        if hasattr(estimator, "__sklearn_tags__"):
            check_is_fitted(estimator)
        try:
            return getattr(estimator, name)
        except AttributeError as error:
            reason = str(error).rstrip(".")
            wanted = f"{cls.__name__}{condition} needs an estimator with {name}: {reason}"
            raise TypeError(f"{wanted}; those of badacost have it.") from error

    @classmethod
    def _get_costs(cls, estimator: Any, cost_matrix: Any) -> FloatArray:
        """Return the costs given, or else those of the estimator, in the order of ``classes_``."""
        classes = cls._get(estimator, "classes_")
        if cost_matrix is None:
            cost_matrix = cls._get(estimator, "cost_matrix_", " without cost_matrix")
        return given_costs(cost_matrix, classes)

    def _add_class_bar(self, axes: Any, names: list[str], colors: list[Any], title: str) -> Any:
        """Return a legend of the classes, the first on top, in a bar that takes space of `axes`.

        A bar, unlike a legend, never covers the data or a neighbour, in any layout of the figure.
        """
        from matplotlib import cm
        from matplotlib.colors import ListedColormap, Normalize

        n = len(names)
        mappable = cm.ScalarMappable(Normalize(-0.5, n - 0.5), ListedColormap(colors))
        shape = {"aspect": min(20.0, 1.5 * n), "shrink": min(1.0, 0.08 * n), "anchor": (0.0, 1.0)}
        bar = self.figure_.colorbar(mappable, ax=axes, ticks=range(n), **shape)
        bar.ax.invert_yaxis()
        bar.ax.tick_params(length=0)
        row = bar.ax.get_window_extent().height / self.figure_.dpi * 72 / n
        bar.set_ticklabels(names, fontsize=min(10.0, 0.85 * row))
        bar.ax.set_title(title, fontsize=10, loc="left")
        return bar
