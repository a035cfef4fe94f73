"""Locally decorrelated channel features (LDCF): learning and applying their filters.

Each channel is convolved with a few small filters, leading eigenvectors of the covariance of its
neighbourhoods, and the results are reduced to half their size. Both steps are linear, so that one
pass with combined kernels does them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_number
from badacost.detection import decorrelation_kernels
from badacost.detection.arrays import Planes
from badacost.detection.channels import check_planes

_RESAMPLING_NORM = 1.0 + 1e-6
_MAX_FILTERS = 64
_MAX_WEIGHT = 1e6
_EMPTY_MEAN = 1 / 50


def learn_filters(channels: Iterable[ArrayLike], n_filters: int = 4, size: int = 5) -> Planes:
    """Learn filters for each channel: leading eigenvectors of the covariance of neighbourhoods.

    The covariance of two cells is taken to depend on nothing but the step between them [1]_, so
    that the autocorrelation of the windows holds all covariances in a square of cells. As for the
    published detectors, the mean over all windows is subtracted first, windows with a mean of at
    most 1/50 in a channel have no part in its autocorrelation (unless all are such), and a window
    goes on at its opposite border.

    Parameters
    ----------
    channels : iterable of array-likes of shape (n_channels, height, width)
        Windows around objects, of one size and at least `size` cells a side. They should be like
        the levels of a pyramid (smoothed, if those are), and contain both an object and its mirror
        image if a detector is to treat them alike.
    n_filters : int, default=4
        Filters per channel, at most ``size ** 2``.
    size : {1, 3, 5}, default=5
        Side of a filter.

    Returns
    -------
    float32 ndarray of shape (n_filters, n_channels, size, size)
        Filters for `as_filters`: of length one, orthogonal within a channel, largest eigenvalue
        first. The first weight (row by row) that has at least half of the largest magnitude is
        positive. A channel that is the same everywhere gets any such filters.

    References
    ----------
    .. [1] W. Nam, P. Dollár, J. H. Han, "Local Decorrelation for Improved Pedestrian Detection",
       Advances in Neural Information Processing Systems 27, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.decorrelation import learn_filters
    >>> windows = [np.full((1, 9, 9), brightness) for brightness in (0.1, 0.2, 0.6)]
    >>> learn_filters(windows, n_filters=1, size=3).round(3)
    array([[[[0.333, 0.333, 0.333],
             [0.333, 0.333, 0.333],
             [0.333, 0.333, 0.333]]]], dtype=float32)
    """
    check_number("size", size, Integral, low=1, high=decorrelation_kernels.SIZE)
    if size % 2 == 0:
        raise ValueError(f"size must be odd; got {size}.")
    check_number("n_filters", n_filters, Integral, low=1, high=size**2)
    autocorrelation = _autocorrelation(_checked_windows(channels, size))
    n_channels, height, width = autocorrelation.shape
    y, x = np.divmod(np.arange(size**2), size)
    covariance = autocorrelation[:, (y[:, np.newaxis] - y) % height, (x[:, np.newaxis] - x) % width]
    _, vectors = np.linalg.eigh((covariance + covariance.transpose(0, 2, 1)) / 2)
    # Eigenvectors are even or odd: to turn them for a convolution is to change signs.
    leading = vectors[:, :, ::-1].transpose(2, 0, 1)[:n_filters]
    magnitude = np.abs(leading)
    decisive = (magnitude >= magnitude.max(axis=2, keepdims=True) / 2).argmax(axis=2)
    signs = np.sign(np.take_along_axis(leading, decisive[:, :, np.newaxis], axis=2))
    filters = (leading * signs).reshape(n_filters, n_channels, size, size)
    return np.ascontiguousarray(filters, dtype=np.float32)


def _checked_windows(channels: Iterable[ArrayLike], size: int) -> Iterator[FloatArray]:
    """Yield windows of one shape; at least one."""
    shape = None
    for window in channels:
        planes = check_planes("a window of channels", window)
        shape = shape or planes.shape
        if min(shape[1:]) < size:
            raise ValueError(
                f"windows must have at least {size} x {size} cells; got {shape[1]} x {shape[2]}: "
                "enlarge them or reduce size."
            )
        if planes.shape != shape:
            raise ValueError(f"windows must have one shape; got {shape} and {planes.shape}.")
        if not np.isfinite(planes).all():
            raise ValueError("windows must be finite: leave out those with NaN or infinity.")
        yield planes.astype(np.float64)
    if shape is None:
        raise ValueError("there must be at least one window of channels.")


def _autocorrelation(windows: Iterator[FloatArray]) -> FloatArray:
    """Sum of the periodic autocorrelations of windows, shape (n_channels, height, width).

    Its transform is the sum of power spectra, in which a constant has a part at frequency zero
    only: means are subtracted there, after all windows were seen once.
    """
    first = next(windows)
    n_channels, height, width = first.shape
    powers = np.zeros((2, n_channels, height, width // 2 + 1))  # of empty windows, of the others
    means: list[FloatArray] = []
    for window in chain([first], windows):
        means.append(window.mean(axis=(1, 2)))
        is_full = (means[-1] > _EMPTY_MEAN).astype(np.intp)
        powers[is_full, np.arange(n_channels)] += np.abs(np.fft.rfft2(window)) ** 2
    counted = np.stack(means) > _EMPTY_MEAN
    has_full = counted.any(axis=0)
    power = powers[has_full.astype(np.intp), np.arange(n_channels)]
    deviations = (np.stack(means) - np.mean(means, axis=0)) * (counted | ~has_full)
    power[:, 0, 0] = ((height * width * deviations) ** 2).sum(axis=0)
    return np.fft.irfft2(power, s=(height, width))


def as_filters(filters: NDArray[np.floating], n_channels: int) -> Planes:
    """Return filters of convolutions, checked and padded with zeros to the size of the kernel.

    They have the shape (n_filters, n_channels, size, size), with an odd size of at most 5.
    """
    size = decorrelation_kernels.SIZE
    given = np.asarray(filters)
    if given.ndim != 4 or given.shape[1] != n_channels:
        raise ValueError(
            f"filters must have the shape (n_filters, {n_channels}, size, size); got {given.shape}."
        )
    if not 1 <= len(given) <= _MAX_FILTERS:
        raise ValueError(f"there must be 1 to {_MAX_FILTERS} filters; got {len(given)}.")
    height, width = given.shape[2:]
    if height != width or height % 2 == 0 or height > size:
        raise ValueError(
            f"filters must be squares of an odd size of at most {size}; got {height} x {width}."
        )
    if given.dtype.kind != "f" or not (np.abs(given) <= _MAX_WEIGHT).all():
        raise ValueError(f"filters must be floats of at most {_MAX_WEIGHT:g}.")
    border = (size - height) // 2
    pad = ((0, 0), (0, 0), (border, border), (border, border))
    return np.ascontiguousarray(np.pad(given, pad), dtype=np.float32)


def half(length: int) -> int:
    """Length of a side after it was halved; halves are rounded up."""
    return (length + 1) // 2


def decorrelate(
    channels: Planes,
    filters: Planes,
    *,
    out: Planes | None = None,
    threads: Threads | None = None,
) -> Planes:
    """Convolve each channel with its filters and reduce the results to half their size.

    Parameters
    ----------
    channels : float32 ndarray of shape (n_channels, height, width)
        Planes; beyond their border there are zeros.
    filters : float32 ndarray of shape (n_filters, n_channels, 5, 5)
        Filters from `as_filters`.
    out : float32 ndarray, optional
        Where to put the result: at least as large in each dimension.
    threads : Threads, optional
        Threads to share the rows among.

    Returns
    -------
    float32 ndarray of shape (n_filters * n_channels, half(height), half(width))
        All channels of the first filter, then of the second, and so on; a part of `out` if given.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.decorrelation import as_filters, decorrelate
    >>> centre = np.zeros((1, 1, 3, 3))
    >>> centre[0, 0, 1, 1] = 1.0
    >>> plane = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    >>> decorrelate(plane, as_filters(centre, 1)).round(3)
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]], dtype=float32)
    """
    n_channels, height, width = channels.shape
    shape = (len(filters) * n_channels, half(height), half(width))
    size = decorrelation_kernels.SIZE
    if min(channels.shape) < 1 or filters.shape[1:] != (n_channels, size, size):
        raise ValueError(
            f"channels of shape {channels.shape} do not fit filters of shape {filters.shape}."
        )
    if out is None:
        out = np.empty(shape, np.float32)
    elif out.ndim != 3 or any(a < b for a, b in zip(out.shape, shape, strict=True)):
        raise ValueError(f"out must have a shape of at least {shape}; got {out.shape}.")
    y_shares, x_shares = halving_shares(height, width)
    flipped = np.ascontiguousarray(filters[:, :, ::-1, ::-1])

    def fill(begin: int, end: int) -> None:
        decorrelation_kernels.filter_and_halve(
            channels, flipped, y_shares, x_shares, begin, end, out
        )

    (threads or Threads()).map(fill, shape[1])
    return out[tuple(slice(length) for length in shape)]


def halving_shares(height: int, width: int) -> tuple[Planes, Planes]:
    """Shares of rows, (n, 3), and of columns, (3, n), that `filter_and_halve` takes."""
    y_shares = _halving(height) / np.float32(_RESAMPLING_NORM)
    return y_shares, np.ascontiguousarray(_halving(width).T)


def _halving(length: int) -> Planes:
    """Shares that the cells 2i - 1, 2i and 2i + 1 have in cell i of the half: areas covered.

    An odd length is cut into parts of a little less than two cells.
    """
    n_out = half(length)
    cut = np.arange(n_out + 1) / n_out * (length % 2)  # how far the cuts lie before even cells
    shares = np.stack([cut[:-1], np.ones(n_out), 1.0 - cut[1:]], axis=1)
    return (shares / (length / n_out)).astype(np.float32)
