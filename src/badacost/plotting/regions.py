"""Decision regions of two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from badacost._utils.arrays import FloatArray
from badacost._utils.numbers import short_number
from badacost._utils.validation import check_number, distinct_classes, positions_in
from badacost.metrics import average_cost
from badacost.plotting.base import MARKERS, Axes, Display, check_length, class_colors, import_pyplot

_MARGIN = 0.05  # of the range of a feature, on either side


class DecisionRegionsDisplay(Display):
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
        shapes = (len(self.grid_y), len(self.grid_x)), (len(self.y), 2)
        given = self.regions.shape, self.samples.shape
        if given != shapes:
            raise ValueError(f"regions and samples must have shapes {shapes}; got {given}.")

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
        **options: Any,
    ) -> Self:
        """Draw the regions of a fitted classifier.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator with ``predict``.
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        features : pair of ints or names, default=(0, 1)
            The two features of the plane: their positions, or their names in a data frame.
        fixed : mapping from feature to value, default=None
            Values of the other features in the plane; the median of `X` by default.
        cost_matrix : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]``: rows are the truth. The title is the average cost of the
            decisions on `X`, with all its features, under these costs. Those of
            the estimator by default; no title if it has none.
        grid_resolution : int, default=200
            Points of the grid along each axis.
        **options
            See `plot`.

        Returns
        -------
        DecisionRegionsDisplay
            The display, drawn.
        """
        check_number("grid_resolution", grid_resolution, Integral, low=2)
        X = X if hasattr(X, "columns") else check_array(X, ensure_all_finite="allow-nan")
        points, plane = _plane(X, features, fixed or {}, grid_resolution)
        predict = cls._get(estimator, "predict")
        check_consistent_length(X, y)
        regions, labels = np.asarray(predict(points)), column_or_1d(y)
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            classes = distinct_classes(np.concatenate([labels, regions]), y)
        if cost_matrix is None:
            cost_matrix = getattr(estimator, "cost_matrix_", None)
        title = ""
        if cost_matrix is not None:
            average = average_cost(labels, predict(X), cost_matrix, labels=classes)
            title = f"Average cost per decision: {short_number(average)}"
        regions = regions.reshape(grid_resolution, grid_resolution)
        display = cls(**plane, regions=regions, y=labels, classes=classes, title=title)
        return display.plot(**options)

    @classmethod
    def compare(
        cls,
        estimators: Mapping[str, Any],
        X: ArrayLike,
        y: ArrayLike,
        cost_matrix: Any,
        *,
        axes: Sequence[Axes] | None = None,
        **options: Any,
    ) -> list[Self]:
        """Draw the regions of several fitted classifiers side by side.

        Parameters
        ----------
        estimators : mapping from name to fitted estimator
            Classifiers for the same classes.
        X, y
            See `from_estimator`.
        cost_matrix : array-like of shape (K, K), mapping, data frame or None
            ``C[truth, prediction]``: rows are the truth. The titles have the average cost of the
            decisions of each classifier on `X`, with all its features. None leaves it out.
        axes : sequence of matplotlib Axes, default=None
            Where to draw, one for each classifier; new axes in a row by default.
        **options
            `features`, `fixed` and `grid_resolution`, see `from_estimator`, `max_samples` and
            `colors`, see `plot`.

        Returns
        -------
        list of DecisionRegionsDisplay
            A display for each classifier, drawn; the last one holds the common legend.
        """
        if not isinstance(estimators, Mapping) or not estimators:
            raise TypeError("estimators must be a mapping from name to fitted estimator.")
        known: list[Any] = [getattr(model, "classes_", None) for model in estimators.values()]
        if any(not np.array_equal(classes, known[0]) for classes in known):
            raise ValueError("estimators must have been fitted to the same classes.")
        n = len(estimators)
        if axes is None:
            _, axes = import_pyplot().subplots(
                1, n, figsize=(4.2 * n + 1.4, 4.2), layout="constrained", sharex=True, sharey=True
            )
        places = check_length("axes", np.ravel(np.asarray(axes, dtype=object)), n)
        options |= {"cost_matrix": cost_matrix, "legend": False}
        displays = []
        for (name, estimator), ax in zip(estimators.items(), places, strict=True):
            display = cls.from_estimator(estimator, X, y, ax=ax, **options)
            display.title = f"{name}\n{display.title}" if cost_matrix is not None else name
            ax.set_title(display.title)
            ax.label_outer()
            displays.append(display)
        displays[-1]._add_legend(places)
        return displays

    def plot(
        self,
        *,
        max_samples: int | None = 1000,
        colors: Sequence[Any] | None = None,
        legend: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the regions and the samples.

        Parameters
        ----------
        max_samples : int or None, default=1000
            Maximum number of samples to draw, a random choice that is always the same. None is all,
            0 none.
        colors : sequence of K colors, default=None
            Colors of the classes; a fixed palette by default.
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
        n_classes = len(self.classes)
        self._colors = class_colors(n_classes, colors)
        truth = positions_in(self.classes, self.y)
        regions = positions_in(self.classes, self.regions.ravel(), "regions")
        self._open(ax, 6.0, max(4.6, 0.2 * n_classes))
        from matplotlib.colors import ListedColormap

        cmap = ListedColormap(_light(self._colors))
        style: Any = {"vmin": -0.5, "vmax": n_classes - 0.5, "cmap": cmap, "rasterized": True}
        grid = self.grid_x, self.grid_y, regions.reshape(self.regions.shape)
        self.surface_ = self.ax_.pcolormesh(*grid, shading="nearest", **style)
        shown = np.sort(np.random.default_rng(0).permutation(len(truth))[:max_samples])
        by_class = [shown[truth[shown] == k] for k in range(n_classes)]
        self.points_ = [self._mark(self.ax_, self.samples[i], k) for k, i in enumerate(by_class)]
        x, y = map(str, self.feature_names)
        limits = {"xlim": self.grid_x[[0, -1]], "ylim": self.grid_y[[0, -1]]}
        self.ax_.set(xlabel=x, ylabel=y, title=self.title, **limits)
        self.legend_: Any = None
        if legend:
            self._add_legend(self.ax_)
        return self

    def _add_legend(self, axes: Any) -> None:
        """Add the bar of classes, light like the regions, with the markers of the samples on it."""
        names = [str(label) for label in self.classes]
        self.legend_ = self._add_class_bar(axes, names, _light(self._colors), "class")
        within = self.legend_.ax.get_yaxis_transform()
        for k in range(len(names)):
            self._mark(self.legend_.ax, np.array([[0.5, k]]), k, transform=within)

    def _mark(self, ax: Axes, points: FloatArray, k: int, **style: Any) -> Any:
        """Draw points, of shape (n, 2), as samples of class number k."""
        style |= {"color": self._colors[k], "marker": MARKERS[k % len(MARKERS)]}
        x, y = points.T
        return ax.scatter(x, y, s=16, edgecolor="black", linewidth=0.4, **style)


def _light(colors: Sequence[Any]) -> list[Any]:
    """Return colors mixed with white."""
    from matplotlib.colors import to_rgba_array

    return list(0.6 + 0.4 * to_rgba_array(colors)[:, :3])


def _plane(X: Any, features: Any, fixed: Any, n_points: int) -> tuple[Any, dict[str, Any]]:
    """Return the points of a plane as samples, and the arguments of the display that describe it.

    Two features vary, the others are constant.
    """
    named = hasattr(X, "columns")
    columns = {c: np.asarray(X[c]) for c in X.columns} if named else dict(enumerate(X.T))
    names = list(columns)
    plane = [_name_of(feature, names) for feature in features]
    values = {_name_of(feature, names): value for feature, value in fixed.items()}
    if len(plane) != 2 or len({*plane, *values}) != 2 + len(values):
        raise ValueError(f"features must be two different features not in fixed; got {features!r}.")
    for name in [name for name in names if name not in values]:
        try:
            columns[name] = column = np.asarray(columns[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            wanted = "choose others and give it in fixed"
            raise ValueError(f"feature {name!r} is not numeric: {wanted}.") from error
        values[name] = np.nan if np.isnan(column).all() else np.nanmedian(column)
    samples = np.column_stack([columns[name] for name in plane])
    grid = [_range(column, n_points) for column in samples.T]
    values |= dict(zip(plane, np.meshgrid(*grid), strict=True))
    points = {name: np.broadcast_to(values[name], (n_points, n_points)).ravel() for name in names}
    titles = [name if named else f"feature {name}" for name in plane]
    shown = {"grid_x": grid[0], "grid_y": grid[1], "samples": samples, "feature_names": titles}
    return type(X)(points) if named else np.column_stack([*points.values()]), shown


def _name_of(feature: Any, names: list[Any]) -> Any:
    """Return the name of a feature given by name or position."""
    if feature in names:
        return feature
    if isinstance(feature, Integral) and -len(names) <= int(feature) < len(names):
        return names[int(feature)]
    raise ValueError(f"feature {feature!r} is not among the {len(names)} features of X.")


def _range(column: FloatArray, n_points: int) -> FloatArray:
    """Return values from below the smallest to above the largest of a feature."""
    known = column[np.isfinite(column)]
    if not len(known):
        raise ValueError("features must have finite values in X.")
    spread = max(np.ptp(known), 1e-6 * np.abs(known).max()) or 1.0  # if all values are equal
    return np.linspace(known.min() - _MARGIN * spread, known.max() + _MARGIN * spread, n_points)
