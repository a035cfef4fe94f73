"""Decision regions of two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from badacost.arrays import FloatArray
from badacost.costs.decisions import own_costs
from badacost.metrics import charged_costs
from badacost.plotting.canvas import (
    MARKERS,
    ask,
    canvas,
    class_bar,
    colours_of,
    import_pyplot,
    lighter,
    short_number,
)
from badacost.validation import check_flag, check_number, distinct_classes, positions_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Columns = dict[Any, NDArray[Any]]
_MARGIN = 0.05  # of the range of a feature, on either side


class DecisionRegionsDisplay:
    """The class that is predicted at every point of a plane of two features, with samples on top.

    Parameters
    ----------
    grid_x : array-like of shape (n_columns,)
        Values of the first feature.
    grid_y : array-like of shape (n_rows,)
        Values of the second feature.
    regions : array-like of shape (n_rows, n_columns)
        Predicted classes.
    samples : array-like of shape (n_samples, 2)
        Values of the two features of samples.
    y : array-like of shape (n_samples,)
        Their classes.
    classes : sequence of K labels
        The classes.
    feature_names : pair of names, default=("feature 0", "feature 1")
        Names of the two features.
    title : str, default=""
        Title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.
    surface_ : matplotlib QuadMesh
        The regions, by position in `classes`.
    points_ : list of K matplotlib PathCollections
        The samples of each class.
    legend_ : matplotlib Colorbar or None
        The bar of classes.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.plotting import DecisionRegionsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> models = {
    ...     "cost-blind": BAdaCostClassifier(n_estimators=5).fit(X, y),
    ...     "under costs": BAdaCostClassifier(costs, n_estimators=5).fit(X, y),
    ... }
    >>> displays = DecisionRegionsDisplay.compare(models, X, y, costs, features=(2, 3))
    >>> displays[0].ax_.get_xlim() == displays[1].ax_.get_xlim()
    True
    >>> plt.close(displays[0].figure_)
    """

    def __init__(
        self,
        grid_x: ArrayLike,
        grid_y: ArrayLike,
        regions: ArrayLike,
        *,
        samples: ArrayLike,
        y: ArrayLike,
        classes: Sequence[Any] | NDArray[Any],
        feature_names: Sequence[Any] = ("feature 0", "feature 1"),
        title: str = "",
    ):
        self.grid_x = np.asarray(grid_x, dtype=np.float64)
        self.grid_y = np.asarray(grid_y, dtype=np.float64)
        self.regions = np.asarray(regions)
        self.samples = np.asarray(samples, dtype=np.float64)
        self.y = column_or_1d(y)
        self.classes = np.asarray(classes)
        self.feature_names = feature_names
        self.title = title
        shape = (len(self.grid_y), len(self.grid_x))
        if self.regions.shape != shape:
            raise ValueError(f"regions must have shape {shape}; got {self.regions.shape}.")
        if self.samples.shape != (len(self.y), 2):
            raise ValueError(
                f"samples must have shape ({len(self.y)}, 2); got {self.samples.shape}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        features: Sequence[Any] = (0, 1),
        fixed: Mapping[Any, Any] | None = None,
        cost_matrix: Any = None,
        grid_resolution: int = 200,
        max_samples: int | None = 1000,
        colors: Sequence[Any] | None = None,
        legend: bool = True,
        ax: Axes | None = None,
    ) -> DecisionRegionsDisplay:
        """Draw the regions of a fitted classifier.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``predict``.
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their classes.
        features : pair of ints or names, default=(0, 1)
            The two features of the plane: their positions, or their names in a data frame.
        fixed : mapping from feature to value, default=None
            Values of the other features in the plane. Those left out have the median of `X`.
        cost_matrix : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]``: rows are the truth. The title is the average cost of the
            decisions on `X`, with all its features, under these costs. Those of
            the estimator by default; no title if it has none.
        grid_resolution : int, default=200
            Points of the grid along each axis.
        max_samples, colors, legend, ax
            See `plot`.

        Returns
        -------
        DecisionRegionsDisplay
            The display, drawn.
        """
        plane = _Plane(X, features, fixed, grid_resolution)
        if cost_matrix is None:
            cost_matrix = own_costs(estimator)
        display = cls._of(estimator, plane, y, cost_matrix)
        return display.plot(max_samples=max_samples, colors=colors, legend=legend, ax=ax)

    @classmethod
    def compare(
        cls,
        estimators: Mapping[str, Any],
        X: ArrayLike,
        y: ArrayLike,
        cost_matrix: Any,
        *,
        features: Sequence[Any] = (0, 1),
        fixed: Mapping[Any, Any] | None = None,
        grid_resolution: int = 200,
        max_samples: int | None = 1000,
        colors: Sequence[Any] | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> list[DecisionRegionsDisplay]:
        """Draw the regions of several fitted classifiers side by side.

        Parameters
        ----------
        estimators : mapping from name to fitted estimator
            Classifiers for the same classes.
        X, y, features, fixed, grid_resolution, max_samples, colors
            See `from_estimator`.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None
            ``C[truth, prediction]``: rows are the truth. The titles tell what the decisions of
            each classifier on `X`, with all its features, cost on average. None leaves it out.
        axes : sequence of matplotlib Axes, default=None
            Where to draw, one for each classifier; new axes in a row by default.

        Returns
        -------
        list of DecisionRegionsDisplay
            A display for each classifier, drawn; the last one holds the common legend.
        """
        if not isinstance(estimators, Mapping) or not estimators:
            raise TypeError("estimators must be a mapping from name to fitted estimator.")
        plane = _Plane(X, features, fixed, grid_resolution)
        displays = [
            cls._of(estimator, plane, y, cost_matrix, f"{name}\n")
            for name, estimator in estimators.items()
        ]
        if any(not np.array_equal(d.classes, displays[0].classes) for d in displays):
            raise ValueError("estimators must have been fitted to the same classes.")
        if axes is None:
            size = (4.2 * len(displays) + 1.4, 4.2)
            _, axes = import_pyplot().subplots(
                1, len(displays), figsize=size, layout="constrained", sharex=True, sharey=True
            )
        places = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(places) != len(displays):
            raise ValueError(f"axes must hold {len(displays)} axes; got {len(places)}.")
        for display, ax in zip(displays, places, strict=True):
            display.plot(max_samples=max_samples, colors=colors, legend=False, ax=ax)
            ax.label_outer()
        displays[-1]._add_legend(list(places), colors)
        return displays

    @classmethod
    def _of(
        cls, estimator: Any, plane: _Plane, y: ArrayLike, cost_matrix: Any, prefix: str = ""
    ) -> DecisionRegionsDisplay:
        """Return the display of an estimator, not drawn."""
        predict = ask(estimator, "predict", cls.__name__)
        check_consistent_length(plane.X, y)
        regions = np.asarray(predict(plane.points()))
        labels = column_or_1d(y)
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            classes = distinct_classes(np.concatenate([labels, regions]), y)
        title = prefix
        if cost_matrix is not None:
            costs = charged_costs(cost_matrix, classes)
            predicted = positions_in(classes, predict(plane.X), "predictions")
            average = costs[positions_in(classes, labels), predicted].mean()
            title += f"Average cost per decision: {short_number(average)}"
        return cls(
            plane.grid_x,
            plane.grid_y,
            regions.reshape(len(plane.grid_y), len(plane.grid_x)),
            samples=plane.samples,
            y=labels,
            classes=classes,
            feature_names=plane.feature_names,
            title=title.strip(),
        )

    def plot(
        self,
        *,
        max_samples: int | None = 1000,
        colors: Sequence[Any] | None = None,
        legend: bool = True,
        ax: Axes | None = None,
    ) -> DecisionRegionsDisplay:
        """Draw the regions and the samples.

        Parameters
        ----------
        max_samples : int or None, default=1000
            Maximum number of samples to draw, chosen at random, always the same ones. None is all,
            0 none.
        colors : sequence of K colours, default=None
            Colours of the classes; a fixed palette by default.
        legend : bool, default=True
            Whether to add a bar of the classes.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        DecisionRegionsDisplay
            The display itself.
        """
        check_number("max_samples", max_samples, Integral, low=0, none=True)
        check_flag("legend", legend)
        n_classes = len(self.classes)
        colours = colours_of(n_classes, colors)
        truth = positions_in(self.classes, self.y)
        self.figure_, self.ax_ = canvas(ax, 6.0, max(4.6, 0.2 * n_classes))
        from matplotlib.colors import ListedColormap

        self.surface_ = self.ax_.pcolormesh(
            self.grid_x,
            self.grid_y,
            positions_in(self.classes, self.regions.ravel(), "regions").reshape(self.regions.shape),
            cmap=ListedColormap([lighter(colour) for colour in colours]),
            vmin=-0.5,
            vmax=n_classes - 0.5,
            shading="nearest",
            rasterized=True,
        )
        shown = np.random.default_rng(0).permutation(len(truth))[:max_samples]
        self.points_ = [
            _mark(self.ax_, self.samples[np.sort(shown[truth[shown] == k])], k, colour)
            for k, colour in enumerate(colours)
        ]
        x, y = self.feature_names
        self.ax_.set(
            xlabel=str(x),
            ylabel=str(y),
            title=self.title,
            xlim=self.grid_x[[0, -1]],
            ylim=self.grid_y[[0, -1]],
        )
        self.legend_: Any = None
        if legend:
            self._add_legend(self.ax_, colors)
        return self

    def _add_legend(self, axes: Any, colors: Sequence[Any] | None) -> None:
        """Add the bar of classes, light like the regions, with the sign of the samples on it."""
        colours = colours_of(len(self.classes), colors)
        names = [str(label) for label in self.classes]
        light = [lighter(colour) for colour in colours]
        self.legend_ = class_bar(self.figure_, axes, names, light, "class")
        for k, colour in enumerate(colours):
            within = self.legend_.ax.get_yaxis_transform()
            _mark(self.legend_.ax, np.array([[0.5, k]]), k, colour, transform=within)


def _mark(ax: Axes, points: FloatArray, k: int, colour: Any, **style: Any) -> Any:
    """Draw points, of shape (n, 2), as samples of class number k."""
    return ax.scatter(
        points[:, 0],
        points[:, 1],
        s=16,
        color=colour,
        marker=MARKERS[k % len(MARKERS)],
        edgecolor="black",
        linewidth=0.4,
        **style,
    )


class _Plane:
    """A plane through the space of features: two of them vary, the others stand still."""

    def __init__(
        self,
        X: Any,
        features: Sequence[Any],
        fixed: Mapping[Any, Any] | None,
        grid_resolution: int,
    ):
        check_number("grid_resolution", grid_resolution, Integral, low=2)
        self.X = X if hasattr(X, "columns") else check_array(X, ensure_all_finite="allow-nan")
        self._columns = _columns(self.X)
        names = list(self._columns)
        if isinstance(features, str) or len(features) != 2:
            raise ValueError(f"features must be a pair of features; got {features!r}.")
        self._pair = [_name_of(feature, names) for feature in features]
        if self._pair[0] == self._pair[1]:
            raise ValueError(f"features must be two different ones; got {features!r}.")
        self._fixed = {_name_of(name, names): value for name, value in (fixed or {}).items()}
        if set(self._pair) & set(self._fixed):
            raise ValueError("fixed must hold none of the two features of the plane.")
        self.feature_names = [
            name if hasattr(X, "columns") else f"feature {name}" for name in self._pair
        ]
        self.samples = np.column_stack([_numbers(self._columns[name], name) for name in self._pair])
        self.grid_x, self.grid_y = (_range(column, grid_resolution) for column in self.samples.T)

    def points(self) -> Any:
        """Return the points of the grid, row by row, in the form of `X`."""
        pair = dict(zip(self._pair, np.meshgrid(self.grid_x, self.grid_y), strict=True))
        n_points = len(self.grid_x) * len(self.grid_y)
        columns = {
            name: pair[name].ravel() if name in pair else np.full(n_points, self._still(name))
            for name in self._columns
        }
        if hasattr(self.X, "columns"):
            return type(self.X)(columns)
        return np.column_stack(list(columns.values()))

    def _still(self, name: Any) -> Any:
        """Return the value at which a feature stands still: as given, or the median."""
        if name in self._fixed:
            return self._fixed[name]
        numbers = _numbers(self._columns[name], name)
        known = numbers[~np.isnan(numbers)]
        return np.median(known) if len(known) else np.nan


def _columns(X: Any) -> Columns:
    """Return the features by name, or by position where they have none."""
    if hasattr(X, "columns"):
        return {name: np.asarray(X[name]) for name in X.columns}
    return dict(enumerate(X.T))


def _name_of(feature: Any, names: list[Any]) -> Any:
    """Return the name of a feature given by name or position."""
    if feature in names:
        return feature
    if isinstance(feature, Integral) and -len(names) <= int(feature) < len(names):
        return names[int(feature)]
    raise ValueError(f"feature {feature!r} is not among the {len(names)} features of X.")


def _numbers(column: NDArray[Any], name: Any) -> FloatArray:
    """Return a feature as numbers, or say that it has none."""
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"feature {name!r} is not numeric: choose other features, and give its value in fixed."
        ) from error


def _range(column: FloatArray, n_points: int) -> FloatArray:
    """Return values from below the smallest to above the largest of a feature."""
    known = column[np.isfinite(column)]
    if not len(known):
        raise ValueError("features must have finite values in X.")
    low, high = known.min(), known.max()
    spread = max(high - low, 1e-6 * max(abs(low), abs(high))) or 1.0  # if all values are the same
    margin = _MARGIN * spread
    return np.linspace(low - margin, high + margin, n_points)
