"""Pyramid: the channels of an image at many sizes, a few computed and the others approximated.

Channels at a scale near a computed one follow from it by resampling and a power of the ratio of
the scales, with an exponent for each kind of channel [1]_. Scales are chosen so that both sides
are close to whole cells.

References
----------
.. [1] P. Dollár, R. Appel, S. Belongie, P. Perona, "Fast Feature Pyramids for Object Detection",
   IEEE Transactions on Pattern Analysis and Machine Intelligence 36 (8), 2014.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_number
from badacost.detection import channel_kernels
from badacost.detection.arrays import Planes
from badacost.detection.channels import (
    COLOUR,
    MAGNITUDE,
    ChannelParameters,
    Workspace,
    channels_of,
    check_instance,
    check_planes,
    compute_channels,
    fill_resampled,
    resample,
    resampling_factors,
    resampling_weights,
    rgb_to_luv,
)
from badacost.detection.images import ImageError
from badacost.io.budget import Budget, shown

_N_TRIALS = 100
_FEATURES_PER_FILE = 2.5  # what the features of an image may take, beside a file
_MEASURED_PER_OCTAVE = 8
_FLAT = 1 / 50


@dataclass(frozen=True)
class PyramidParameters:
    """Which levels a pyramid has, and how they are computed.

    Parameters
    ----------
    channels : ChannelParameters
        Channels of a level.
    n_per_octave : int, default=8
        Levels from one size to half of it.
    n_octaves_up : int, default=0
        Doublings of the image for the first level.
    n_approximated : int, default=7
        Levels between two that are computed from resampled colours.
    lambdas : tuple of three floats, default=(0, 0, 0)
        Exponents of colour, magnitude and histogram: an approximated channel is multiplied by
        ``ratio ** -lambda``.
    pad : tuple of two ints, default=(0, 0)
        Rows and columns of pixels to add on each side, multiples of ``channels.shrink``.
    min_size : tuple of two ints, default=(16, 16)
        Height and width that the smallest level keeps: those of an object.
    smoothing : {0, 1}, default=1
        Radius of the triangle filter that channels go through; 0 for none.

    Examples
    --------
    >>> from badacost.detection.channels import ChannelParameters
    >>> from badacost.detection.pyramid import PyramidParameters
    >>> PyramidParameters(ChannelParameters(shrink=2), n_per_octave=10, n_approximated=9).pad
    (0, 0)
    """

    channels: ChannelParameters = field(default_factory=ChannelParameters)
    n_per_octave: int = 8
    n_octaves_up: int = 0
    n_approximated: int = 7
    lambdas: tuple[float, float, float] = (0.0, 0.0, 0.0)
    pad: tuple[int, int] = (0, 0)
    min_size: tuple[int, int] = (16, 16)
    smoothing: int = 1

    def __post_init__(self) -> None:
        check_instance("channels", self.channels, ChannelParameters)
        check_number("n_per_octave", self.n_per_octave, Integral, low=1, high=64)
        check_number("n_octaves_up", self.n_octaves_up, Integral, low=0, high=4)
        check_number("n_approximated", self.n_approximated, Integral, low=0, high=256)
        check_number("smoothing", self.smoothing, Integral, low=0, high=1)
        shrink = self.channels.shrink
        for name, length in (("lambdas", 3), ("pad", 2), ("min_size", 2)):
            object.__setattr__(self, name, _checked_tuple(name, getattr(self, name), length))
        for value in self.lambdas:
            check_number("lambdas", value, low=-8.0, high=8.0)
        for value in self.pad:
            check_number("pad", value, Integral, low=0, high=4096)
        if any(value % shrink for value in self.pad):
            raise ValueError(f"pad must be a multiple of shrink = {shrink}; got {self.pad}.")
        for value in self.min_size:
            check_number("min_size", value, Integral, low=shrink, high=2**16)


@dataclass(frozen=True, eq=False)
class Level:
    """The channels of an image at one scale.

    Attributes
    ----------
    scale : float
        Nominal scale: sizes in the level are divided by it.
    scale_y, scale_x : float
        Exact ratios of the sizes of level and image: positions are divided by them.
    is_real : bool
        Whether the channels were computed, not approximated.
    channels : ndarray of shape (n_channels, n_rows, n_columns)
        Channels of all cells, and of the padding.
    """

    scale: float
    scale_y: float
    scale_x: float
    is_real: bool
    channels: Planes


def pyramid_scales(
    size: tuple[int, int], parameters: PyramidParameters | None = None
) -> list[tuple[float, float, float]]:
    """Return the scales of the levels, largest first.

    Parameters
    ----------
    size : tuple of two ints
        Height and width of the image.
    parameters : PyramidParameters, optional
        Which levels there are.

    Returns
    -------
    list of (scale, scale_y, scale_x)
        Nominal scale and exact ratios; none if the first level is below the smallest size.

    Examples
    --------
    >>> from badacost.detection.pyramid import PyramidParameters, pyramid_scales
    >>> pyramid_scales((32, 64), PyramidParameters(n_per_octave=1))
    [(1.0, 1.0, 1.0), (0.5, 0.5, 0.5)]
    """
    parameters = PyramidParameters() if parameters is None else parameters
    check_instance("parameters", parameters, PyramidParameters)
    for name, value in zip(("height", "width"), size, strict=True):
        check_number(name, value, Integral, low=1, high=2**24)
    sides, shrink = np.array(size, dtype=np.float64), parameters.channels.shrink
    octaves = parameters.n_octaves_up + np.log2((sides / parameters.min_size).min())
    n_scales = max(0, int(np.floor(parameters.n_per_octave * octaves + 1)))
    if n_scales == 0:
        return []
    scales = 2.0 ** (-np.arange(n_scales) / parameters.n_per_octave + parameters.n_octaves_up)
    scales = _nudged(scales, sides, shrink)
    scales = scales[np.append(scales[:-1] != scales[1:], True)]
    exact = _cell_counts(sides, scales, shrink) * shrink / sides
    return [(float(s), float(y), float(x)) for s, (y, x) in zip(scales, exact, strict=True)]


@dataclass(frozen=True)
class LevelLayout:
    """Size of a level of the pyramid of images of one size.

    Attributes
    ----------
    scale, scale_y, scale_x : float
        See `Level`.
    n_rows, n_columns : int
        Cells, without the padding.
    real : int
        Number of the level whose channels are computed and resampled to these: its own, if it is
        computed itself.
    """

    scale: float
    scale_y: float
    scale_x: float
    n_rows: int
    n_columns: int
    real: int


def level_layouts(size: tuple[int, int], parameters: PyramidParameters) -> tuple[LevelLayout, ...]:
    """Return the levels of the pyramid of images of one size, largest first."""
    scales = pyramid_scales(size, parameters)
    step, nominal = parameters.n_approximated + 1, np.array([scale for scale, _, _ in scales])
    cells = _cell_counts(np.array(size, dtype=np.float64), nominal, parameters.channels.shrink)
    layouts = []
    for number, (ratios, (n_rows, n_columns)) in enumerate(
        zip(scales, cells.tolist(), strict=True)
    ):
        real = _nearest_real(number, step, len(scales))
        layouts.append(LevelLayout(*ratios, n_rows=n_rows, n_columns=n_columns, real=real))
    check_memory(size, parameters, pyramid_bytes(size, layouts, parameters))
    return tuple(layouts)


def check_memory(size: tuple[int, int], parameters: PyramidParameters, n_bytes: int) -> None:
    """Refuse images of a size whose features would take more memory than is allowed."""
    max_memory = int(_FEATURES_PER_FILE * Budget.of(None).max_memory)
    if n_bytes > max_memory:
        octaves = f", doubled {parameters.n_octaves_up} times," if parameters.n_octaves_up else ""
        raise ImageError(
            f"the features of an image of {size[1]} x {size[0]} pixels{octaves} would need "
            f"{shown(n_bytes)}, limit {shown(max_memory)} ({_FEATURES_PER_FILE} times that of a "
            "file): reduce the image or n_octaves_up, or raise the limit with "
            "badacost.set_max_memory (--max-memory)."
        )


def pyramid_bytes(
    size: tuple[int, int], levels: Sequence[LevelLayout], parameters: PyramidParameters
) -> int:
    """Return what the planes of a pyramid take at most at a time: those of its first level."""
    if not levels:
        return 0
    first, channels = levels[0], parameters.channels
    n_cells, n_pixels = first.n_rows * first.n_columns, size[0] * size[1]
    n_resampled = n_cells * channels.shrink**2
    radius = channels.gradient.norm_radius
    n_planes = 2 + 3 * (channels.smoothing > 0) + 2 * (radius > 0)  # magnitude and orientation: 2
    n_planes += 3 if channels.smoothing > 1 else radius > 1  # between rows and columns
    n_planes += 3 * ((first.n_rows * channels.shrink, first.n_columns * channels.shrink) != size)
    pad_y, pad_x = parameters.pad
    n_padded = (
        (first.n_rows * channels.shrink + 2 * pad_y)
        * (first.n_columns * channels.shrink + 2 * pad_x)
        // channels.shrink**2
    )
    n_values = 3 * n_pixels + n_planes * n_resampled + channels.n_channels * (n_cells + n_padded)
    return np.dtype(np.float32).itemsize * n_values


def halves_colours(level: LevelLayout, parameters: PyramidParameters) -> bool:
    """Whether the levels after a computed one are resampled from its colours."""
    return level.scale == 0.5 and (parameters.n_approximated > 0 or parameters.n_per_octave == 1)


def channel_factors(
    levels: tuple[LevelLayout, ...], number: int, parameters: PyramidParameters
) -> Planes:
    """What the channels of a level are multiplied by when they are resampled."""
    level, real = levels[number], levels[levels[number].real]
    kinds = np.array(parameters.channels.kinds)
    ratio = level.scale / real.scale
    factors = ratio ** -np.asarray(parameters.lambdas, dtype=np.float64)[kinds]
    same_size = (real.n_rows, real.n_columns) == (level.n_rows, level.n_columns)
    if level.real == number or (same_size and (factors == 1.0).all()):
        return np.ones(len(kinds), np.float32)
    return resampling_factors(factors)


class Pyramid:
    """Channels of the levels of images of one size, computed one after the other."""

    def __init__(self, levels: tuple[LevelLayout, ...], parameters: PyramidParameters):
        self.levels, self.parameters, self.workspace = levels, parameters, Workspace()

    def begin(self, luv: Planes, threads: Threads) -> None:
        """Take the colours of the next image."""
        self._luv, self._threads, self._real = luv, threads, -1

    def compute(self, number: int) -> None:
        """Compute the channels that a level is resampled from, unless those of the last are."""
        real = self.levels[number].real
        if real == self._real:
            return
        self._real, level, parameters = real, self.levels[real], self.parameters
        is_half = halves_colours(level, parameters)
        colours, shrink = self._luv, parameters.channels.shrink
        size = (level.n_rows * shrink, level.n_columns * shrink)
        if size != self._luv.shape[1:]:
            colours = self.workspace.take("half colours" if is_half else "colours", 3, *size)
            fill_resampled(self._luv, resampling_factors([1.0] * 3), colours, self._threads)
        self._channels = channels_of(colours, parameters.channels, self.workspace, self._threads)
        if is_half:
            self._luv = colours

    def channels(self, number: int) -> Planes:
        """Return the channels of a level, resampled, smoothed and padded, until the next level."""
        parameters, level = self.parameters, self.levels[number]
        kinds = np.array(parameters.channels.kinds)
        pad_y, pad_x = (n // parameters.channels.shrink for n in parameters.pad)
        scaled = channel_factors(self.levels, number, parameters)
        rows = resampling_weights(self._channels.shape[1], level.n_rows)
        columns = resampling_weights(self._channels.shape[2], level.n_columns)
        out = self.workspace.take(
            "level", len(kinds), level.n_rows + 2 * pad_y, level.n_columns + 2 * pad_x
        )

        def fill(first: int, last: int) -> None:
            channel_kernels.level_rows(
                self._channels, *rows, *columns, scaled, parameters.smoothing == 1,
                kinds == COLOUR, pad_y, pad_x, first, last, out,
            )  # fmt: skip

        self._threads.map(fill, level.n_rows)
        return out


def pyramid_levels(
    image: ArrayLike, parameters: PyramidParameters | None = None, threads: Threads | None = None
) -> Iterator[Level]:
    """Compute the levels one by one, largest first.

    Parameters
    ----------
    image : array-like of shape (3, height, width) or (height, width, 3)
        LUV planes (floats, as `rgb_to_luv` returns them), or an RGB image of type uint8.
    parameters : PyramidParameters, optional
        Which levels there are.
    threads : Threads, optional
        Threads to share the rows among.

    Yields
    ------
    Level
        The next level.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.pyramid import PyramidParameters, pyramid_levels
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    >>> parameters = PyramidParameters(n_per_octave=2, n_approximated=1, min_size=(32, 32))
    >>> [(level.scale, level.channels.shape) for level in pyramid_levels(image, parameters)]
    [(1.0, (10, 16, 24)), (0.675, (10, 11, 16)), (0.5, (10, 8, 12))]
    """
    parameters = PyramidParameters() if parameters is None else parameters
    luv = _as_luv(image, threads)
    pyramid = Pyramid(level_layouts((luv.shape[1], luv.shape[2]), parameters), parameters)
    pyramid.begin(luv, threads or Threads())
    return _levels(pyramid)


def estimate_lambdas(
    images: Iterable[ArrayLike],
    parameters: ChannelParameters | None = None,
    threads: Threads | None = None,
) -> tuple[float, float, float]:
    """Measure the exponents that the approximation of channels needs.

    Channels are computed at scales an eighth of an octave apart, down to a shorter side of four
    cells (at least eight pixels), as far as all images reach. At each scale, the mean of each kind
    of channel is divided by that at the first scale, and the ratios are averaged over the images.
    The exponent is the slope of a straight line through their logarithms. Images with less than
    1/50 of the largest mean magnitude are left out.

    The exponents of published detectors come from windows around objects, about twice as large
    as the objects in their model; whole images give other exponents. A few hundred suffice.

    Parameters
    ----------
    images : iterable of array-likes
        Each as `pyramid_levels` takes it, with a shorter side of at least eight cells (and 16
        pixels).
    parameters : ChannelParameters, optional
        What to compute.
    threads : Threads, optional
        Threads to share the images among.

    Returns
    -------
    tuple of three floats
        Exponents of colour, magnitude and histogram for `PyramidParameters`, rounded to five
        decimals. That of colour is about zero, as reducing an image keeps its mean.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.channels import ChannelParameters, GradientParameters
    >>> from badacost.detection.pyramid import estimate_lambdas
    >>> slope = np.tile(np.linspace(0.0, 1.0, 64, dtype=np.float32), (3, 64, 1))
    >>> not_normalised = ChannelParameters(gradient=GradientParameters(norm_radius=0))
    >>> [round(value, 2) for value in estimate_lambdas([slope], not_normalised)]
    [0.0, 1.0, 1.0]
    """
    parameters = ChannelParameters() if parameters is None else parameters
    check_instance("parameters", parameters, ChannelParameters)

    def measure(image: Any) -> tuple[FloatArray, FloatArray]:
        return _means_of_kinds(_as_luv(image, None), parameters)

    measured = (threads or Threads()).run(measure, ((image,) for image in images))
    if not measured:
        raise ValueError("there must be at least one image.")
    n_scales = min(len(octaves) for octaves, _ in measured)
    octaves = np.mean([octaves[:n_scales] for octaves, _ in measured], axis=0)
    means = np.stack([means[:n_scales] for _, means in measured])
    strength = means[:, 0, MAGNITUDE]
    means = means[strength >= strength.max() * _FLAT]
    ratios = (means[:, 1:] / means[:, :1]).mean(axis=0)
    slopes, _ = np.polyfit(octaves[1:], np.log2(ratios), deg=1)
    colour, magnitude, histogram = (round(slope, 5) + 0.0 for slope in slopes.tolist())
    return colour, magnitude, histogram


def _means_of_kinds(luv: Planes, parameters: ChannelParameters) -> tuple[FloatArray, FloatArray]:
    """Octaves below the first scale, and the mean of each kind of channel at each scale."""
    shrink, kinds = parameters.shrink, np.array(parameters.kinds)
    smallest = max(8, 4 * shrink)
    height, width = (length // shrink * shrink for length in luv.shape[1:])
    if min(height, width) < 2 * smallest:
        raise ValueError(
            f"An image of {luv.shape[1]} x {luv.shape[2]} pixels is too small to measure exponents "
            f"on: use images of at least {-(-2 * smallest // shrink) * shrink} pixels a side."
        )
    whole = np.ascontiguousarray(luv[:, :height, :width])
    sides = np.array([height, width], dtype=np.float64)
    n_scales = int(_MEASURED_PER_OCTAVE * np.log2(sides.min() / smallest)) + 1
    cells = _cell_counts(sides, 2.0 ** (-np.arange(n_scales) / _MEASURED_PER_OCTAVE), shrink)
    means = np.empty((n_scales, 3))
    for i, (n_rows, n_columns) in enumerate(cells.tolist()):
        colours = resample(whole, n_rows * shrink, n_columns * shrink)
        channels = compute_channels(colours, parameters)
        sums = channels.mean(axis=(1, 2), dtype=np.float64)
        means[i] = np.bincount(kinds, sums) / np.bincount(kinds)
    if not (np.isfinite(means) & (means > 0.0)).all():
        raise ValueError(
            "An image has channels whose mean is not a positive number: use LUV planes as "
            "rgb_to_luv returns them."
        )
    return -np.log2(cells * shrink / sides).mean(axis=1), means


def _levels(pyramid: Pyramid) -> Iterator[Level]:
    for number, level in enumerate(pyramid.levels):
        pyramid.compute(number)
        yield Level(
            scale=level.scale,
            scale_y=level.scale_y,
            scale_x=level.scale_x,
            is_real=level.real == number,
            channels=pyramid.channels(number).copy(),
        )


def _nearest_real(level: int, step: int, n_levels: int) -> int:
    """Return the computed level that a level is approximated from, itself if it is computed."""
    below = level // step * step
    above = below + step
    # Halfway is rounded down in numbers that count from one.
    return above if above < n_levels and level + 1 > (below + above + 2) // 2 else below


def _as_luv(image: ArrayLike, threads: Threads | None) -> Planes:
    array = np.asarray(image)
    if array.dtype == np.uint8:
        return rgb_to_luv(array, threads)
    luv = check_planes("image", array)
    if len(luv) != 3:
        raise ValueError(
            f"An image of floats must be LUV planes of shape (3, height, width); got {luv.shape}: "
            "use rgb_to_luv."
        )
    return luv


def _nudged(scales: FloatArray, sides: FloatArray, shrink: int) -> FloatArray:
    """Change each scale by less than a cell so that both sides are close to whole cells."""
    shorter = sides.min()
    middle = _rounded(shorter * scales / shrink) * shrink
    low, high = (middle - 0.25 * shrink) / shorter, (middle + 0.25 * shrink) / shorter
    trials = low[:, None] + (high - low)[:, None] * (np.arange(_N_TRIALS) / _N_TRIALS)
    lengths = trials[:, :, None] * sides
    errors = np.abs(lengths - _rounded(lengths / shrink) * shrink).max(axis=2)
    return trials[np.arange(len(scales)), errors.argmin(axis=1)]


def _cell_counts(sides: FloatArray, scales: FloatArray, shrink: int) -> NDArray[np.int64]:
    """Rows and columns of cells at each scale, shape (n_scales, 2)."""
    return _rounded(sides * scales[:, None] / shrink).astype(np.int64)


def _rounded(values: FloatArray) -> FloatArray:
    """Round halves up: positive numbers as the published detectors do."""
    floor = np.floor(values)
    return floor + (values - floor >= 0.5)


def _checked_tuple(name: str, values: Any, length: int) -> tuple[Any, ...]:
    if not isinstance(values, tuple | list) or len(values) != length:
        raise ValueError(f"{name} must be {length} numbers; got {values!r}.")
    return tuple(values)
