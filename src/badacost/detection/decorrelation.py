"""Locally decorrelated channel features (LDCF): applying their filters.

Each channel is convolved with a few small filters, leading eigenvectors of the covariance of its
neighbourhoods, and the results are reduced to half their size. Both steps are linear, so that one
pass with combined kernels does them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from badacost.detection import decorrelation_kernels
from badacost.tree.threads import Threads

Planes = NDArray[np.float32]
_RESAMPLING_NORM = 1.0 + 1e-6
_MOST_FILTERS = 64
_LARGEST_WEIGHT = 1e6


def as_filters(filters: NDArray[np.floating], n_channels: int) -> Planes:
    """Return filters of convolutions, checked and padded with zeros to the size of the kernel.

    Parameters
    ----------
    filters : ndarray of shape (n_filters, n_channels, size, size)
        An odd size of at most 5.
    n_channels : int
        Number of channels that they are for.
    """
    size = decorrelation_kernels.SIZE
    given = np.asarray(filters)
    if given.ndim != 4 or given.shape[1] != n_channels:
        raise ValueError(
            f"filters must have the shape (n_filters, {n_channels}, size, size); got {given.shape}."
        )
    if not 1 <= len(given) <= _MOST_FILTERS:
        raise ValueError(f"there must be 1 to {_MOST_FILTERS} filters; got {len(given)}.")
    height, width = given.shape[2:]
    if height != width or height % 2 == 0 or height > size:
        raise ValueError(
            f"filters must be squares of an odd size of at most {size}; got {height} x {width}."
        )
    if given.dtype.kind != "f" or not (np.abs(given) <= _LARGEST_WEIGHT).all():
        raise ValueError(f"filters must be floats of at most {_LARGEST_WEIGHT:g}.")
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
    y_shares = _halving(height) / np.float32(_RESAMPLING_NORM)
    x_shares = np.ascontiguousarray(_halving(width).T)
    flipped = np.ascontiguousarray(filters[:, :, ::-1, ::-1])

    def fill(begin: int, end: int) -> None:
        decorrelation_kernels.filter_and_halve(
            channels, flipped, y_shares, x_shares, begin, end, out
        )

    (threads or Threads()).map(fill, shape[1])
    return out[tuple(slice(length) for length in shape)]


def _halving(length: int) -> Planes:
    """Shares that the cells 2i - 1, 2i and 2i + 1 have in cell i of the half: areas covered.

    An odd length is cut into parts of a little less than two cells.
    """
    n_out = half(length)
    cut = np.arange(n_out + 1) / n_out * (length % 2)  # how far the cuts lie before even cells
    shares = np.stack([cut[:-1], np.ones(n_out), 1.0 - cut[1:]], axis=1)
    return (shares / (length / n_out)).astype(np.float32)
