"""`FeatureMap`: which cells of the window the trees of a detector test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_choice, check_flag
from badacost.detection.cascade import Cascade
from badacost.detection.channels import ChannelParameters, check_instance
from badacost.detection.detector import Detector
from badacost.plotting.base import import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 5  # of maps of channels, as in the paper
_MAX_CELLS = 2**24  # of all planes; published windows have some ten thousand


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """How often the trees of a detector test each cell of the window.

    Attributes
    ----------
    uses : ndarray of shape (n_filters, n_channels, n_rows, n_columns)
        Number of tests, or sum of the weights of their trees, by filter, channel and cell.
    channel_names : tuple of str
        Names of the channels, see `channel_names`.
    cell : int
        Pixels of a side of a cell.
    windows : tuple of (float, float, float, float)
        x1, y1, x2, y2 of the objects that cascades look for, in pixels of the map.

    Examples
    --------
    >>> from badacost.detection.inspection import feature_map
    >>> from badacost.detection.models import synthetic_cars
    >>> uses = feature_map(synthetic_cars())
    >>> uses.overall.shape, uses.cell
    ((12, 18), 4)
    >>> shares = uses.by_channel.sum(axis=(1, 2)) / uses.uses.sum()
    >>> shares.shape, len(uses.channel_names)
    ((10,), 10)
    """

    uses: FloatArray
    channel_names: tuple[str, ...]
    cell: int
    windows: tuple[tuple[float, float, float, float], ...]

    @property
    def overall(self) -> FloatArray:
        """Uses of each cell, shape (n_rows, n_columns)."""
        return self.uses.sum(axis=(0, 1))

    @property
    def by_channel(self) -> FloatArray:
        """Uses of each cell in each channel, shape (n_channels, n_rows, n_columns)."""
        return self.uses.sum(axis=0)

    @property
    def by_filter(self) -> FloatArray:
        """Uses of each cell with each filter, shape (n_filters, n_rows, n_columns)."""
        return self.uses.sum(axis=1)


def channel_names(parameters: ChannelParameters) -> tuple[str, ...]:
    """Return what to call the channels of an image.

    Parameters
    ----------
    parameters : ChannelParameters
        What is computed.

    Returns
    -------
    tuple of str
        The colours L, U and V, the magnitude of the gradient, and the directions of edges in
        degrees, as in the paper: 0 is horizontal, positive angles rise to the right.

    Examples
    --------
    >>> from badacost.detection import ChannelParameters
    >>> from badacost.detection.inspection import channel_names
    >>> channel_names(ChannelParameters())[3:]
    ('magnitude', '90°', '60°', '30°', '0°', '-30°', '-60°')
    """
    n_orientations = parameters.histogram.n_orientations
    circle = 360.0 if parameters.gradient.full else 180.0
    # Edges are at a right angle to gradients, whose angles grow clockwise, as rows go down.
    angles = (90.0 - circle * k / n_orientations for k in range(n_orientations))
    return ("L", "U", "V", "magnitude", *(f"{round(angle, 1):g}°" for angle in angles))


def feature_map(detector: Detector, *, weighted: bool = True) -> FeatureMap:
    """Return how often the trees of a detector test each cell of the window.

    Parameters
    ----------
    detector : Detector
        What to look into.
    weighted : bool, default=True
        Whether a test counts as much as the weight of its tree, as in the paper, instead of one.

    Returns
    -------
    FeatureMap
        Of all cascades together; windows of different sizes are centred, to within half a cell.

    Examples
    --------
    >>> from badacost.detection.inspection import feature_map
    >>> from badacost.detection.models import synthetic_cars
    >>> synthetic_cars().cascades[0].cells
    (12, 18)
    >>> uses = feature_map(synthetic_cars())
    >>> uses.overall.shape, uses.by_channel.shape
    ((12, 18), (10, 12, 18))
    """
    check_instance("detector", detector, Detector)
    check_flag("weighted", weighted)
    n_rows, n_columns = np.max([cascade.cells for cascade in detector.cascades], axis=0).tolist()
    if detector.n_planes * n_rows * n_columns > _MAX_CELLS:
        raise ValueError(f"windows of more than {_MAX_CELLS} features are too large for a map.")
    uses = np.zeros((detector.n_planes, n_rows, n_columns))
    windows = []
    for cascade in detector.cascades:
        own = _uses(cascade, weighted)
        _, height, width = own.shape
        top, left = (n_rows - height) // 2, (n_columns - width) // 2
        uses[:, top : top + height, left : left + width] += own
        y, x = (
            first * cascade.cell + (padded - length) / 2
            for first, padded, length in zip(
                (top, left), cascade.padded_window, cascade.window, strict=True
            )
        )
        windows.append((x, y, x + cascade.window[1], y + cascade.window[0]))
    channels = detector.pyramid.channels
    return FeatureMap(
        uses.reshape(-1, channels.n_channels, n_rows, n_columns),
        channel_names(channels),
        detector.cell,
        tuple(dict.fromkeys(windows)),
    )


class FeatureMapDisplay:
    """Maps of the cells that a detector tests, overall and by channel or filter.

    Each map has a scale of its own, from no test to the most tests of a cell; the number beside its
    name is its share of all tests. Frames mark the object inside the window.

    Parameters
    ----------
    maps : FeatureMap
        What to show.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes or None
        Axes of the overall map, if it is there.
    part_axes_ : list of matplotlib Axes
        Axes of the channels or filters.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.detection.inspection import FeatureMapDisplay
    >>> from badacost.detection.models import synthetic_cars
    >>> display = FeatureMapDisplay.from_detector(synthetic_cars())
    >>> len(display.part_axes_), display.ax_.get_title()
    (10, 'all features')
    >>> plt.close(display.figure_)
    """

    def __init__(self, maps: FeatureMap):
        check_instance("maps", maps, FeatureMap)
        self.maps = maps

    @classmethod
    def from_detector(
        cls, detector: Detector, *, weighted: bool = True, by: str = "channel"
    ) -> FeatureMapDisplay:
        """Draw the cells that a detector tests.

        Parameters
        ----------
        detector : Detector
            What to look into.
        weighted : bool, default=True
            Whether a test counts as much as the weight of its tree.
        by : {"channel", "filter"}, default="channel"
            See `plot`.

        Returns
        -------
        FeatureMapDisplay
            The display, drawn.
        """
        return cls(feature_map(detector, weighted=weighted)).plot(by=by)

    def plot(
        self, *, by: str = "channel", overall: bool = True, cmap: Any = "magma"
    ) -> FeatureMapDisplay:
        """Draw the maps on a new figure.

        Parameters
        ----------
        by : {"channel", "filter"}, default="channel"
            What the small maps are of.
        overall : bool, default=True
            Whether the map of all features is above them.
        cmap : str or matplotlib Colormap, default="magma"
            Colours of the number of tests.

        Returns
        -------
        FeatureMapDisplay
            The display itself.
        """
        check_choice("by", by, ("channel", "filter"))
        check_flag("overall", overall)
        maps = self.maps
        names: Sequence[str] = maps.channel_names
        parts = maps.by_channel
        if by == "filter":
            parts = maps.by_filter
            names = [f"filter {number + 1}" for number in range(len(parts))]
        n_rows = -(-len(parts) // _COLUMNS)
        aspect = min(max(0.1, parts.shape[1] / parts.shape[2]), 4.0)
        large = (4.0 * min(aspect, 1.0) + 0.5) if overall else 0.0
        small = n_rows * (1.75 * aspect + 0.3)
        self.figure_ = import_pyplot().figure(figsize=(9.0, large + small), layout="constrained")
        below = self.figure_
        self.ax_ = None
        if overall:
            above, below = self.figure_.subfigures(2, 1, height_ratios=[large, small])
            self.ax_ = above.subplots()
            self._show(self.ax_, maps.overall, "all features", cmap)
            for x1, y1, x2, y2 in maps.windows:
                frame = np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2], [x1, y1]])
                self.ax_.plot(*frame.T, color="white", linewidth=1.0, alpha=0.8)
        grid = below.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
        self.part_axes_ = list(grid[: len(parts)])
        total = maps.uses.sum() or 1.0
        for ax, part, name in zip(self.part_axes_, parts, names, strict=True):
            self._show(ax, part, f"{name}, {part.sum() / total:.0%}", cmap)
        for ax in grid[len(parts) :]:
            ax.set_axis_off()
        return self

    def _show(self, ax: Axes, values: FloatArray, title: str, cmap: Any) -> None:
        """Draw one map, in pixels of the window."""
        height, width = (length * self.maps.cell for length in values.shape)
        ax.set_title(title, fontsize=10)
        ax.set(xticks=[], yticks=[])
        ax.imshow(
            values, cmap=cmap, vmin=0.0, vmax=values.max() or 1.0, extent=(0, width, height, 0)
        )


def _uses(cascade: Cascade, weighted: bool) -> FloatArray:
    """Return the tests of a cascade by plane, row and column."""
    forest = cascade.forest
    inner = ~forest.is_leaf
    weights = None
    if weighted:
        weights = np.repeat(np.abs(forest.tree_weights), np.diff(forest.offsets))[inner]
    totals = np.bincount(forest.feature[inner], weights, forest.n_features)
    return totals.astype(np.float64).reshape(-1, *cascade.cells)
