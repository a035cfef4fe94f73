"""Channels: planes of numbers, computed from a colour image, in which detectors find objects.

An image becomes LUV; gradients of it are normalised by the gradients around, and cells of a few
pixels a side hold the mean colour, the mean magnitude and a histogram of orientations. All images
are planar: float32 arrays of shape (n_planes, height, width).

References
----------
.. [1] P. Dollár, R. Appel, S. Belongie, P. Perona, "Fast Feature Pyramids for Object Detection",
   IEEE Transactions on Pattern Analysis and Machine Intelligence 36 (8), 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import IndexArray
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_flag, check_number
from badacost.detection import channel_kernels
from badacost.detection.arrays import Planes

COLOUR, MAGNITUDE, HISTOGRAM = range(3)
_MAX_RADIUS = 64
_MAX_LENGTH = 2**24  # of a side; all up to here are exact in single precision
_MAX_CACHED_LENGTH = 2**14
_COSINE_STEPS = 10_000
_LIGHTNESS_STEPS = 1024
_RGB_TO_XYZ = np.array(
    [
        [0.430574, 0.341550, 0.178325],
        [0.222015, 0.706655, 0.071330],
        [0.020183, 0.129553, 0.939180],
    ],
    dtype=np.float32,
)
BYTES_TO_XYZ = _RGB_TO_XYZ * np.float32(1.0 / 255.0)
_RESAMPLING_DIVISOR = np.float32(1.0 + 1e-6)  # of the published detectors, whose trees expect it


@dataclass(frozen=True)
class GradientParameters:
    """How gradients are measured.

    Parameters
    ----------
    norm_radius : int, default=5
        Radius of the triangle filter whose result a magnitude is divided by; 0 for no division.
    norm_constant : float, default=0.005
        Added to the divisor.
    full : bool, default=False
        Whether opposite directions are two orientations (modulo 2 pi) or one (modulo pi).

    Examples
    --------
    Opposite directions apart, in twice as many bins:

    >>> from badacost.detection import ChannelParameters, GradientParameters, HistogramParameters
    >>> parameters = ChannelParameters(
    ...     gradient=GradientParameters(full=True), histogram=HistogramParameters(n_orientations=12)
    ... )
    >>> parameters.gradient
    GradientParameters(norm_radius=5, norm_constant=0.005, full=True)
    >>> parameters.n_channels
    16
    """

    norm_radius: int = 5
    norm_constant: float = 0.005
    full: bool = False

    def __post_init__(self) -> None:
        check_number("norm_radius", self.norm_radius, Integral, low=0, high=_MAX_RADIUS)
        check_number("norm_constant", self.norm_constant, low=1e-10, high=1e10)
        check_flag("full", self.full)


@dataclass(frozen=True)
class HistogramParameters:
    """How orientations are counted.

    Parameters
    ----------
    n_orientations : int, default=6
        Number of bins; a pixel is shared by the two whose centres are nearest.
    soft : bool, default=True
        Whether a pixel is also shared by the cells around it.

    Examples
    --------
    >>> from badacost.detection import ChannelParameters, HistogramParameters
    >>> ChannelParameters(histogram=HistogramParameters(n_orientations=9)).n_channels
    13
    """

    n_orientations: int = 6
    soft: bool = True

    def __post_init__(self) -> None:
        check_number("n_orientations", self.n_orientations, Integral, low=1, high=36)
        check_flag("soft", self.soft)


@dataclass(frozen=True)
class ChannelParameters:
    """What is computed from an image.

    Parameters
    ----------
    shrink : int, default=4
        Side of a cell in pixels.
    smoothing : int, default=0
        Radius of a triangle filter that the colours go through first; 0 for none.
    gradient : GradientParameters
        How gradients are measured.
    histogram : HistogramParameters
        How orientations are counted.

    Examples
    --------
    >>> from badacost.detection.channels import ChannelParameters
    >>> ChannelParameters(shrink=2).n_channels
    10
    """

    shrink: int = 4
    smoothing: int = 0
    gradient: GradientParameters = field(default_factory=GradientParameters)
    histogram: HistogramParameters = field(default_factory=HistogramParameters)

    def __post_init__(self) -> None:
        check_number("shrink", self.shrink, Integral, low=1, high=32)
        check_number("smoothing", self.smoothing, Integral, low=0, high=_MAX_RADIUS)
        check_instance("gradient", self.gradient, GradientParameters)
        check_instance("histogram", self.histogram, HistogramParameters)

    @property
    def n_channels(self) -> int:
        """Number of channels: three colours, the magnitude and the orientations."""
        return len(self.kinds)

    @property
    def kinds(self) -> tuple[int, ...]:
        """Kind of each channel: `COLOUR`, `MAGNITUDE` or `HISTOGRAM`."""
        return (COLOUR,) * 3 + (MAGNITUDE,) + (HISTOGRAM,) * self.histogram.n_orientations


class Workspace:
    """Named arrays that are used again: taking one ends what it was taken for before."""

    def __init__(self) -> None:
        self._rooms: dict[str, Planes] = {}

    @property
    def n_bytes(self) -> int:
        """Size of all of them."""
        return sum(room.nbytes for room in self._rooms.values())

    def take(self, name: str, *shape: int) -> Planes:
        """Return the array of this name in this shape, with any contents."""
        size = math.prod(shape)
        if name not in self._rooms or self._rooms[name].size < size:
            self._rooms[name] = np.empty(size, np.float32)
        return self._rooms[name][:size].reshape(shape)


def rgb_to_luv(image: ArrayLike, threads: Threads | None = None) -> Planes:
    """Convert a colour image to CIE LUV, shifted and scaled to about 0 .. 1.

    Parameters
    ----------
    image : array-like of shape (height, width, 3)
        Red, green and blue: integers 0 .. 255 of type uint8, or floats 0 .. 1.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    ndarray of shape (3, height, width)
        Planes L, U and V.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.channels import rgb_to_luv
    >>> rgb_to_luv(np.full((1, 1, 3), 255, np.uint8)).ravel().round(3)
    array([0.37 , 0.326, 0.496], dtype=float32)
    """
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.size == 0:
        raise ValueError(
            f"An image must have the shape (height, width, 3); got {pixels.shape}: convert it to "
            "RGB."
        )
    matrix = _RGB_TO_XYZ
    if pixels.dtype == np.uint8:
        matrix = BYTES_TO_XYZ
    elif pixels.dtype.kind == "f":
        if not (pixels.min() >= 0.0 and pixels.max() <= 1.0):
            raise ValueError("An image of floats must have values from 0 to 1: divide it by 255.")
        pixels = pixels.astype(np.float32, copy=False)
    else:
        raise TypeError(
            f"An image must hold uint8 or floats; got {pixels.dtype}: convert it with "
            "image.astype(np.uint8)."
        )
    pixels = np.ascontiguousarray(pixels)
    weights = tuple(tuple(row) for row in matrix)
    out = np.empty((3, *pixels.shape[:2]), np.float32)

    def fill(first: int, last: int) -> None:
        channel_kernels.luv_rows(pixels, weights, lightness_table(), first, last, out)

    (threads or Threads()).map(fill, len(pixels))
    return out


def triangle_filter(planes: ArrayLike, radius: int, threads: Threads | None = None) -> Planes:
    """Smooth planes by a triangle in both directions; the border is a mirror.

    Parameters
    ----------
    planes : array-like of shape (n_planes, height, width)
        Planes.
    radius : int
        The weights are ``1 .. radius + 1 .. 1``, divided by their sum.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    ndarray of shape (n_planes, height, width)
        Smooth planes.

    Examples
    --------
    >>> from badacost.detection.channels import triangle_filter
    >>> triangle_filter([[[0, 0, 4, 0, 0]]], 1)
    array([[[0., 1., 2., 1., 0.]]], dtype=float32)
    """
    check_number("radius", radius, Integral, low=0, high=_MAX_RADIUS)
    source = check_planes("planes", planes)
    return _triangle(source, radius, "smooth", Workspace(), threads or Threads())


def resampling_weights(n_source: int, n_target: int) -> tuple[NDArray[np.uint64], Planes]:
    """Weights that resample an axis: linear if it grows, the mean of what is covered if not.

    Returns the first position of the source that each position of the target takes from,
    (n_target,), and the weights of that position and of those after it, (n_taps, n_target), which
    sum to about one. Both arrays are read-only.

    >>> start, weights = resampling_weights(2, 4)
    >>> weights.T.tolist()
    [[1.0, 0.0], [0.75, 0.25], [0.25, 0.75], [0.0, 1.0]]
    """
    check_number("n_source", n_source, Integral, low=1, high=_MAX_LENGTH)
    check_number("n_target", n_target, Integral, low=1, high=_MAX_LENGTH)
    compute = _recent_weights if n_source + n_target <= _MAX_CACHED_LENGTH else _weights
    return compute(n_source, n_target)


def _weights(n_source: int, n_target: int) -> tuple[NDArray[np.uint64], Planes]:
    scale = np.float32(n_target) / np.float32(n_source)
    target, step = np.arange(n_target, dtype=np.float32), np.float32(1.0) / scale
    if n_source == 1:
        start, weights = np.zeros(n_target, np.int64), np.ones((1, n_target), np.float32)
    elif n_target > n_source:
        position = (target + np.float32(0.5)) * step - np.float32(0.5)
        start = np.clip(np.floor(position).astype(np.int64), 0, n_source - 2)
        share = np.clip(position - start.astype(np.float32), np.float32(0.0), np.float32(1.0))
        weights = np.stack([np.float32(1.0) - share, share])
    else:
        start, weights = _covered(target * step, step, scale, n_source)
    first = start.astype(np.uint64)
    first.flags.writeable = weights.flags.writeable = False
    return first, weights


_recent_weights = lru_cache(maxsize=128)(_weights)  # the frames of a video have one size


def _covered(
    low: Planes, step: np.float32, scale: np.float32, n_source: int
) -> tuple[IndexArray, Planes]:
    """Shares of the source pixels in intervals of length `step` that begin at `low`.

    In single precision, without shares of up to a thousandth, and with a correction only of sums
    above one: the published detectors do so, and a rounding error can change an orientation.
    """
    high = low + step
    first, last = np.ceil(low), np.trunc(high)
    pixel = first - 1 + np.arange(int(np.ceil(step)) + 2, dtype=np.float32)[:, None]
    ends = np.where(pixel == last, high - last, first - low) * scale
    weights = np.where((pixel == last) | (pixel < first), ends * (ends > 1e-3), scale)
    weights[(pixel > last) | (pixel < 0) | (pixel >= n_source)] = 0.0
    weights /= np.maximum(weights.sum(axis=0), np.float32(1.0))
    skipped = (weights > 0).argmax(axis=0)
    n_taps = int((weights > 0).sum(axis=0).max())
    start = np.minimum(pixel[0].astype(np.int64) + skipped, n_source - n_taps)
    tap = start + np.arange(n_taps)[:, None] - pixel[0].astype(np.int64)
    return start, np.where(tap < 0, 0, np.take_along_axis(weights, np.maximum(tap, 0), axis=0))


def resample(
    planes: ArrayLike,
    height: int,
    width: int,
    factor: float | Sequence[float] = 1.0,
    threads: Threads | None = None,
) -> Planes:
    """Bring planes to another size: linearly where they grow, by the mean area where they shrink.

    As in the published detectors, the result is divided by 1.000001, unless the size is the same
    and there is no factor.

    Parameters
    ----------
    planes : array-like of shape (n_planes, rows, columns)
        Planes.
    height, width : int
        New size; one may grow and the other shrink.
    factor : float or sequence of n_planes floats, default=1.0
        What to multiply the result by, or each plane of it.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    ndarray of shape (n_planes, height, width)
        Resampled planes.

    Examples
    --------
    >>> from badacost.detection.channels import resample
    >>> resample([[[1, 2, 3, 4]]], 1, 2).round(3)
    array([[[1.5, 3.5]]], dtype=float32)
    """
    check_number("height", height, Integral, low=1, high=_MAX_LENGTH)
    check_number("width", width, Integral, low=1, high=_MAX_LENGTH)
    source = check_planes("planes", planes)
    n_planes, *size = source.shape
    factors = np.asarray(factor, dtype=np.float64)
    threads = threads or Threads()
    if factors.shape not in ((), (n_planes,)) or not np.isfinite(factors).all():
        raise ValueError(f"factor must be a finite number, or one for each of {n_planes} planes.")
    if size == [height, width] and (factors == 1.0).all():
        return source.copy()
    out = np.empty((n_planes, height, width), np.float32)
    fill_resampled(source, resampling_factors(np.broadcast_to(factors, n_planes)), out, threads)
    return out


def fill_resampled(source: Planes, factors: Planes, out: Planes, threads: Threads) -> None:
    """Resample planes to the size of `out`, times a factor for each plane."""
    (height, width), size = out.shape[1:], source.shape[1:]
    if shrink := whole_shrink(size, (height, width)):
        _fill_shrunk(source, shrink, factors, out, threads)
        return
    rows, columns = resampling_weights(size[0], height), resampling_weights(size[1], width)

    def fill(first: int, last: int) -> None:
        channel_kernels.resampled_rows(source, *rows, *columns, factors, first, last, out)

    threads.map(fill, height)


def whole_shrink(size: tuple[int, ...], target: tuple[int, int]) -> int:
    """Side of the squares of pixels that become one pixel each; 0 where there are none."""
    shrink = size[0] // target[0]
    return shrink if shrink > 1 and size == (target[0] * shrink, target[1] * shrink) else 0


def resampling_factors(factors: ArrayLike) -> Planes:
    """Return the factors that resampling applies where `factors` are asked for."""
    return np.asarray(factors, dtype=np.float32) / _RESAMPLING_DIVISOR


def gradient(
    planes: ArrayLike, full: bool = False, threads: Threads | None = None
) -> tuple[Planes, Planes]:
    """Measure the gradient of the plane in which it is strongest at each pixel.

    Parameters
    ----------
    planes : array-like of shape (n_planes, height, width)
        Planes.
    full : bool, default=False
        Whether orientations are modulo 2 pi, instead of pi.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    magnitude, orientation : ndarray of shape (height, width)
        Length (at least 1e-10) and angle of the gradient.

    Examples
    --------
    >>> from badacost.detection.channels import gradient
    >>> magnitude, orientation = gradient([[[0, 3, 6], [4, 7, 10]]])
    >>> magnitude[0]
    array([5., 5., 5.], dtype=float32)
    >>> orientation[0].round(3)
    array([0.927, 0.927, 0.927], dtype=float32)
    """
    check_flag("full", full)
    return _gradient(check_planes("planes", planes), full, Workspace(), threads or Threads())


def normalise_magnitude(
    magnitude: ArrayLike,
    radius: int = 5,
    constant: float = 0.005,
    threads: Threads | None = None,
) -> Planes:
    """Divide magnitudes by those around them.

    Parameters
    ----------
    magnitude : array-like of shape (height, width)
        Magnitudes.
    radius, constant : int, float
        The divisor is what a triangle filter of this radius returns, plus the constant.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    ndarray of shape (height, width)
        Normalised magnitudes.

    Examples
    --------
    >>> from badacost.detection.channels import normalise_magnitude
    >>> normalise_magnitude([[1.0, 1.0, 1.0]], radius=1, constant=1.0)
    array([[0.5, 0.5, 0.5]], dtype=float32)
    """
    check_number("radius", radius, Integral, low=0, high=_MAX_RADIUS)
    check_number("constant", constant, low=1e-10, high=1e10)
    source = check_planes("magnitude", magnitude, n_dimensions=2)
    return _normalised(source, radius, constant, Workspace(), threads or Threads())


def orientation_histograms(
    magnitude: ArrayLike,
    orientation: ArrayLike,
    cell: int,
    parameters: HistogramParameters | None = None,
    full: bool = False,
    threads: Threads | None = None,
) -> Planes:
    """Count orientations, weighted by magnitudes, in square cells.

    Parameters
    ----------
    magnitude, orientation : array-like of shape (height, width)
        As `gradient` returns them; rows and columns beyond a whole number of cells are left out.
    cell : int
        Side of a cell in pixels.
    parameters : HistogramParameters, optional
        How orientations are counted.
    full : bool, default=False
        Whether orientations are modulo 2 pi, instead of pi.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    ndarray of shape (n_orientations, height // cell, width // cell)
        Histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.channels import HistogramParameters, orientation_histograms
    >>> upward = np.full((2, 2), np.pi / 2)
    >>> four = HistogramParameters(n_orientations=4, soft=False)
    >>> orientation_histograms(np.ones((2, 2)), upward, 2, four).ravel()
    array([0., 0., 1., 0.], dtype=float32)
    """
    check_number("cell", cell, Integral, low=1, high=32)
    check_flag("full", full)
    parameters = HistogramParameters() if parameters is None else parameters
    check_instance("parameters", parameters, HistogramParameters)
    strength = check_planes("magnitude", magnitude, n_dimensions=2)
    angle = check_planes("orientation", orientation, n_dimensions=2)
    if strength.shape != angle.shape:
        raise ValueError(
            f"magnitude and orientation must have one shape; got {strength.shape} and "
            f"{angle.shape}."
        )
    out = np.empty((parameters.n_orientations, *_cells(strength.shape, cell)), np.float32)
    _fill_histograms(strength, angle, cell, parameters, full, out, threads or Threads())
    return out


def compute_channels(
    luv: ArrayLike, parameters: ChannelParameters | None = None, threads: Threads | None = None
) -> Planes:
    """Compute the channels of an image.

    Parameters
    ----------
    luv : array-like of shape (3, height, width)
        Colours as `rgb_to_luv` returns them; rows and columns beyond a whole number of cells are
        left out.
    parameters : ChannelParameters, optional
        What to compute.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    ndarray of shape (n_channels, height // shrink, width // shrink)
        L, U, V, magnitude, orientations.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.channels import ChannelParameters, compute_channels, rgb_to_luv
    >>> luv = rgb_to_luv(np.full((9, 13, 3), 128, np.uint8))
    >>> compute_channels(luv, ChannelParameters(shrink=2)).shape
    (10, 4, 6)
    """
    parameters = ChannelParameters() if parameters is None else parameters
    check_instance("parameters", parameters, ChannelParameters)
    colours = check_planes("luv", luv)
    if len(colours) != 3:
        raise ValueError(f"luv must have three planes; got {len(colours)}: use rgb_to_luv.")
    return channels_of(colours, parameters, Workspace(), threads or Threads())


def channels_of(
    colours: Planes, parameters: ChannelParameters, workspace: Workspace, threads: Threads
) -> Planes:
    """Compute channels in arrays of a workspace, of which the result is one."""
    shrink, measure = parameters.shrink, parameters.gradient
    n_rows, n_columns = _cells(colours.shape[1:], shrink)
    colours = np.ascontiguousarray(colours[:, : n_rows * shrink, : n_columns * shrink])
    if parameters.smoothing:
        colours = _triangle(colours, parameters.smoothing, "smooth colours", workspace, threads)
    magnitude, orientation = _gradient(colours, measure.full, workspace, threads)
    if measure.norm_radius:
        magnitude = _normalised(
            magnitude, measure.norm_radius, measure.norm_constant, workspace, threads
        )
    out = workspace.take("channels", parameters.n_channels, n_rows, n_columns)
    factors = cell_factors(shrink)
    _fill_shrunk(colours, shrink, factors, out[:3], threads)
    _fill_shrunk(magnitude[None], shrink, factors, out[3:4], threads)
    _fill_histograms(
        magnitude, orientation, shrink, parameters.histogram, measure.full, out[4:], threads
    )
    return out


def cell_factors(shrink: int) -> Planes:
    """Factors of the mean colours of cells, and of their mean magnitude."""
    return np.ones(3, np.float32) if shrink == 1 else resampling_factors([1.0] * 3)


def check_planes(name: str, planes: ArrayLike, n_dimensions: int = 3) -> Planes:
    """Return `planes` as a contiguous float32 array, or raise unless they are numbers."""
    array = np.asarray(planes)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers; got {array.dtype}: convert to float32.")
    if array.ndim != n_dimensions or array.size == 0:
        axes = "(n_planes, height, width)" if n_dimensions == 3 else "(height, width)"
        raise ValueError(f"{name} must have a shape {axes} without zeros; got {array.shape}.")
    return np.ascontiguousarray(array, dtype=np.float32)


def check_instance(name: str, value: Any, kind: type) -> None:
    """Raise TypeError unless the parameter `name` has a value of the given class."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}; got a {type(value).__name__}.")


def _cells(size: tuple[int, ...], shrink: int) -> tuple[int, int]:
    """Numbers of whole cells in both directions."""
    height, width = size
    if min(height, width) < shrink:
        raise ValueError(
            f"An image of {height} x {width} pixels is smaller than a cell of {shrink}: enlarge "
            "it or reduce shrink."
        )
    return height // shrink, width // shrink


def _gradient(
    planes: Planes, full: bool, workspace: Workspace, threads: Threads
) -> tuple[Planes, Planes]:
    magnitude = workspace.take("magnitude", *planes.shape[1:])
    orientation = workspace.take("orientation", *planes.shape[1:])

    def fill(first: int, last: int) -> None:
        channel_kernels.gradient_rows(
            planes, full, arc_cosine_table(), first, last, magnitude, orientation
        )

    threads.map(fill, len(magnitude))
    return magnitude, orientation


def _normalised(
    magnitude: Planes, radius: int, constant: float, workspace: Workspace, threads: Threads
) -> Planes:
    (smooth,) = _triangle(magnitude[None], radius, "smooth magnitude", workspace, threads)
    out = workspace.take("normalised", *magnitude.shape)

    def fill(first: int, last: int) -> None:
        channel_kernels.normalised_rows(magnitude, smooth, np.float32(constant), first, last, out)

    threads.map(fill, len(magnitude))
    return out


def _triangle(
    planes: Planes, radius: int, name: str, workspace: Workspace, threads: Threads
) -> Planes:
    if radius == 0:
        return planes.copy()
    out, half = workspace.take(name, *planes.shape), workspace.take("half smooth", *planes.shape)

    def both_ways(first: int, last: int) -> None:
        channel_kernels.smooth_rows(planes, first, last, out)

    def along_rows(first: int, last: int) -> None:
        channel_kernels.triangle_along_rows(planes, radius, first, last, half)

    def along_columns(first: int, last: int) -> None:
        channel_kernels.triangle_along_columns(half, radius, first, last, out)

    if radius == 1:
        threads.map(both_ways, planes.shape[1])
        return out
    threads.map(along_rows, planes.shape[1])
    threads.map(along_columns, planes.shape[2])
    return out


def _fill_shrunk(
    planes: Planes, shrink: int, factors: Planes, out: Planes, threads: Threads
) -> None:
    """Means of squares of `shrink` pixels a side, times a factor for each plane."""
    scaled = factors / np.float32(shrink**2)

    def fill(first: int, last: int) -> None:
        channel_kernels.shrunk_rows(planes, shrink, scaled, first, last, out)

    threads.map(fill, out.shape[1])


def _fill_histograms(
    magnitude: Planes,
    orientation: Planes,
    cell: int,
    parameters: HistogramParameters,
    full: bool,
    out: Planes,
    threads: Threads,
) -> None:
    taps, border = histogram_taps(cell, parameters.soft)
    turn = full_turn(full)

    def fill(first: int, last: int) -> None:
        channel_kernels.histogram_rows(
            magnitude, orientation, turn, cell, taps, border, first, last, out
        )

    threads.map(fill, out.shape[1])


def histogram_taps(cell: int, soft: bool) -> tuple[Planes, np.float32]:
    """Weights of pixels in a row of a cell and around it, and the factor of cells at the border."""
    taps, border = np.ones(cell), np.float32(1.0)
    if soft:
        offset = np.arange(-(cell // 2), cell + cell // 2)
        taps = 1.0 - np.abs((offset + 0.5) / cell - 0.5)
        border = np.float32(8.0 / 7.0)  # these cells get 7/8 of what others get
    return (taps / cell).astype(np.float32), border


def full_turn(full: bool) -> np.float32:
    """Circle of orientations."""
    return np.float32(2.0 * np.pi if full else np.pi)


@cache
def lightness_table() -> Planes:
    """L of 0, 1/1024 .. 1 (value of Y), divided by 270, with rounding after each operation."""
    y = np.arange(_LIGHTNESS_STEPS + 1) / np.float32(_LIGHTNESS_STEPS)
    root = (y.astype(np.float64) ** (1 / 3)).astype(np.float32)
    bright = np.float32(116) * root - np.float32(16)
    dark = y * np.float32((29 / 3) ** 3)
    return np.where(y > (6 / 29) ** 3, bright, dark) * np.float32(1 / 270)


@cache
def arc_cosine_table() -> Planes:
    """Angles of the cosines -1, -0.9999 .. 1, all below pi."""
    steps = np.arange(-_COSINE_STEPS, _COSINE_STEPS + 1, dtype=np.float32)
    angle = np.arccos((steps / np.float32(_COSINE_STEPS)).astype(np.float64)).astype(np.float32)
    return np.minimum(angle, np.float32(np.pi) - np.float32(1e-6))
