"""The canvas of the displays: matplotlib on demand, axes, the palette, and what goes on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from badacost.arrays import FloatArray
from badacost.costs.decisions import own_costs
from badacost.costs.matrix import as_classes, named_classes
from badacost.metrics import charged_costs
from badacost.validation import distinct_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COST_UNIT = "average cost per decision"
# Six colours of Okabe and Ito's, then, one after the other, the one farthest from those before it
# (OKLab) in the eye that sees it nearest: a normal one, or one blind to red, to green or to blue.
PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#5a0f00", "#000096",
    "#00f0a5", "#6900ff", "#a50f5a", "#8778ff", "#1e5a00", "#4b005a", "#c3e100", "#5a3ca5",
    "#96b487", "#b4d2ff", "#e11ed2", "#2d0fd2", "#875a87", "#965a3c", "#ff4b5a", "#2d2d3c",
    "#ff78d2", "#0f3c78",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # as many as share no factor with the colours
DASHES = ("solid", "dashed", "dotted", "dashdot", (0, (1, 1)))


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('displays need matplotlib: run pip install "badacost[plot]".') from error
    return plt


def canvas(ax: Axes | None, width: float, height: float) -> tuple[Figure | Any, Axes]:
    """Return the axes and their figure, a new one of this size in inches where `ax` is None."""
    plt = import_pyplot()
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")
    if not isinstance(ax, plt.Axes):
        raise TypeError(f"ax must be matplotlib axes or None; got {type(ax).__name__}.")
    return ax.figure, ax


def colours_of(n_classes: int, colors: Sequence[Any] | None = None) -> list[Any]:
    """Return one colour for each class: those given, or those of the palette, from its start."""
    if colors is None:
        return [PALETTE[i % len(PALETTE)] for i in range(n_classes)]
    if isinstance(colors, str) or len(colors) != n_classes:
        raise ValueError(f"colors must hold one colour for each of the {n_classes} classes.")
    return list(colors)


def class_bar(
    figure: Any,
    axes: Any,
    names: Sequence[str],
    colours: Sequence[Any],
    title: str,
) -> Any:
    """Return a legend of the classes, the first on top, in a bar that takes its place from `axes`.

    A bar, unlike a legend, never covers the data or a neighbour, whatever the layout of the figure.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    n_classes = len(names)
    bar = figure.colorbar(
        ScalarMappable(Normalize(-0.5, n_classes - 0.5), ListedColormap(list(colours))),
        ax=axes,
        ticks=range(n_classes),
        aspect=min(20.0, 1.5 * n_classes),
        shrink=min(1.0, 0.08 * n_classes),
        anchor=(0.0, 1.0),
    )
    bar.ax.invert_yaxis()
    bar.ax.tick_params(length=0)
    row = bar.ax.get_window_extent().height / figure.dpi * 72 / n_classes
    bar.set_ticklabels(names, fontsize=min(10.0, 0.85 * row))
    bar.ax.set_title(title, fontsize=10, loc="left")
    return bar


def lighter(colour: Any) -> Any:
    """Return a colour mixed with white."""
    from matplotlib.colors import to_rgb

    return tuple(1.0 - 0.4 * (1.0 - np.array(to_rgb(colour))))


def ask(estimator: Any, name: str, display: str) -> Any:
    """Return an attribute or method of a fitted estimator, or say which display needs it."""
    if hasattr(estimator, "__sklearn_tags__"):
        check_is_fitted(estimator)
    try:
        return getattr(estimator, name)
    except AttributeError as error:
        reason = str(error).rstrip(".")
        raise TypeError(
            f"{display} needs an estimator with {name}: {reason}; those of badacost have it."
        ) from error


def costs_for(estimator: Any, cost_matrix: Any, display: str) -> FloatArray:
    """Return the costs given, or else those of the estimator, in the order of ``classes_``."""
    classes = ask(estimator, "classes_", display)
    if cost_matrix is None:
        ask(estimator, "cost_matrix_", f"{display} without cost_matrix")
        cost_matrix = own_costs(estimator)
    return charged_costs(cost_matrix, classes)


def labels_of(cost_matrix: Any, *labels: ArrayLike) -> list[Any]:
    """Return the classes of the rows of costs: those they name, or else all that occur.

    If the first labels are an ordered categorical, the latter follow the order of its categories.
    """
    seen = distinct_classes(unique_labels(*labels), labels[0]).tolist()
    named = named_classes(cost_matrix)
    return seen if named is None else as_classes(named, seen)


def short_number(value: float) -> str:
    """Return a number in about five characters."""
    rounded = float(f"{value:.3g}")
    if 1e4 <= abs(rounded) < 1e15:
        thousands = int(np.log10(abs(rounded)) // 3)
        return f"{rounded / 1000**thousands:.3g}{' kMGT'[thousands]}"
    return f"{value:.4g}" if 1e3 <= abs(rounded) < 1e4 else f"{value:.3g}"


def signed_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers with signs and equally many decimals: four digits of the largest of them."""
    largest = max(abs(value) for value in values)
    decimals = max(0, 3 - int(np.floor(np.log10(largest)))) if largest > 0.0 else 0
    return [f"{value:+z,.{decimals}f}" for value in values]
