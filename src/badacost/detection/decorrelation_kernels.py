"""Compiled loop that filters channels and halves the result in one pass.

Both steps are linear, and channels are halved first: a filter of five rows and columns sees 25
cells around each cell of the result, and each of these is a weighted sum of neighbours. Products
are added with a single rounding, in a written order, so that results are the same on every
processor and on a GPU. Rows are taken apart into even and odd columns, so that every loop runs over
neighbours in memory: ``even[i]`` and ``odd[i]`` are the columns 2i - 4 and 2i - 3.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from badacost._utils.kernel_cache import njit

SIZE = 5  # rows and columns of a filter
AT_ONCE = 4  # filters that are applied to a row while it is in registers
_ROWS = SIZE + 2  # that a row of the result is made from
_RING = 8  # rows that are kept, as the next row of the result needs most of them again


@intrinsic
def _fma(context, a, b, c):
    """``a * b + c``, rounded once."""
    single = types.float32
    return single(single, single, single), lambda _, builder, __, values: builder.fma(*values)


@njit(cache=True, nogil=True)
def _weighted(a, first, b, second, c, third, d, fourth, e, fifth):
    """Sum of five products."""
    total = _fma(a, first, b * second)
    return _fma(e, fifth, _fma(d, fourth, _fma(c, third, total)))


@njit(cache=True, nogil=True)
def _take_apart(plane, y, even, odd):
    """Put the columns of row y behind a border of four; a row outside of the plane is zero."""
    height, width = plane.shape
    if 0 <= y < height:
        row = plane[y]
        for i in range(width // 2):
            even[i + 2] = row[2 * i]
            odd[i + 2] = row[2 * i + 1]
        if width % 2:
            even[width // 2 + 2] = row[width - 1]
    else:
        for i in range(len(even)):
            even[i] = 0.0
            odd[i] = 0.0


@njit(cache=True, nogil=True)
def _blend(above, row, below, shares, out):
    """Weighted sum of three rows."""
    first, second, third = shares[0], shares[1], shares[2]
    if first == 0.0:
        for i in range(len(out)):
            out[i] = _fma(second, row[i], third * below[i])
    else:
        for i in range(len(out)):
            out[i] = _fma(third, below[i], _fma(first, above[i], second * row[i]))


@njit(cache=True, nogil=True)
def _add_pairs(even, odd, filters, j, sums0, sums1, sums2, sums3):
    """Add row j of four filters where each column of the result is the sum of two columns."""
    a0, a1, a2, a3, a4 = filters[0, j]
    b0, b1, b2, b3, b4 = filters[1, j]
    c0, c1, c2, c3, c4 = filters[2, j]
    d0, d1, d2, d3, d4 = filters[3, j]
    for i in range(len(sums0)):
        u, v, w = even[i + 1], odd[i + 1], even[i + 2]
        x, y, z = odd[i + 2], even[i + 3], odd[i + 3]
        first, second, third, fourth, fifth = u + v, v + w, w + x, x + y, y + z
        sums0[i] += _weighted(a0, first, a1, second, a2, third, a3, fourth, a4, fifth)
        sums1[i] += _weighted(b0, first, b1, second, b2, third, b3, fourth, b4, fifth)
        sums2[i] += _weighted(c0, first, c1, second, c2, third, c3, fourth, c4, fifth)
        sums3[i] += _weighted(d0, first, d1, second, d2, third, d3, fourth, d4, fifth)


@njit(cache=True, nogil=True)
def _add_shares(even, odd, shares, filters, j, sums0, sums1, sums2, sums3):
    """Add row j of four filters where columns of the result have shares in three columns."""
    a0, a1, a2, a3, a4 = filters[0, j]
    b0, b1, b2, b3, b4 = filters[1, j]
    c0, c1, c2, c3, c4 = filters[2, j]
    d0, d1, d2, d3, d4 = filters[3, j]
    before, at, after = shares[0], shares[1], shares[2]
    for i in range(len(sums0)):
        t, u, v, w = odd[i], even[i + 1], odd[i + 1], even[i + 2]
        x, y, z = odd[i + 2], even[i + 3], odd[i + 3]
        p, q, r = before[i], at[i], after[i]
        first = _fma(r, v, _fma(p, t, q * u))
        second = _fma(r, w, _fma(p, u, q * v))
        third = _fma(r, x, _fma(p, v, q * w))
        fourth = _fma(r, y, _fma(p, w, q * x))
        fifth = _fma(r, z, _fma(p, x, q * y))
        sums0[i] += _weighted(a0, first, a1, second, a2, third, a3, fourth, a4, fifth)
        sums1[i] += _weighted(b0, first, b1, second, b2, third, b3, fourth, b4, fifth)
        sums2[i] += _weighted(c0, first, c1, second, c2, third, c3, fourth, c4, fifth)
        sums3[i] += _weighted(d0, first, d1, second, d2, third, d3, fourth, d4, fifth)


@njit(cache=True, nogil=True)
def filter_and_halve(channels, filters, y_shares, x_shares, begin, end, out):
    """Fill the rows ``begin .. end`` of all filtered channels.

    Parameters
    ----------
    channels : float32 ndarray of shape (n_channels, height, width)
        Planes to filter; beyond their border there are zeros.
    filters : float32 ndarray of shape (n_filters, n_channels, SIZE, SIZE)
        Kernels of a correlation.
    y_shares, x_shares : float32 ndarray of shape (n, 3) and (3, n)
        Shares that the rows (columns) 2i - 1, 2i and 2i + 1 have in row (column) i of the result.
    begin, end : int
        Rows of the result.
    out : float32 ndarray of shape (n_filters * n_channels, ...)
        Result, all channels of the first filter first.
    """
    n_channels, _, width = channels.shape
    n_out = x_shares.shape[1]
    even = np.zeros((_RING, n_out + 4), np.float32)
    odd = np.zeros((_RING, n_out + 4), np.float32)
    row_even, row_odd = np.empty(n_out + 4, np.float32), np.empty(n_out + 4, np.float32)
    chosen = np.zeros((AT_ONCE, SIZE, SIZE), np.float32)
    sums = np.empty((AT_ONCE, n_out), np.float32)
    # Where columns are summed in pairs, their share is the same for all of them.
    shares = y_shares if width % 2 else y_shares * x_shares[1, 0]
    for first in range(0, filters.shape[0], AT_ONCE):
        n_filters = min(AT_ONCE, filters.shape[0] - first)
        for channel in range(n_channels):
            chosen[:n_filters] = filters[first : first + n_filters, channel]
            ready = 2 * begin - 1 - SIZE // 2
            for y in range(begin, end):
                top = 2 * y - 1 - SIZE // 2
                while ready < top + _ROWS:
                    _take_apart(channels[channel], ready, even[ready % _RING], odd[ready % _RING])
                    ready += 1
                sums[:] = 0.0
                for j in range(top, top + SIZE):
                    above, row, below = j % _RING, (j + 1) % _RING, (j + 2) % _RING
                    _blend(even[above], even[row], even[below], shares[y], row_even)
                    _blend(odd[above], odd[row], odd[below], shares[y], row_odd)
                    if width % 2:
                        _add_shares(
                            row_even, row_odd, x_shares, chosen, j - top, sums[0], sums[1],
                            sums[2], sums[3],
                        )  # fmt: skip
                    else:
                        _add_pairs(
                            row_even, row_odd, chosen, j - top, sums[0], sums[1], sums[2], sums[3]
                        )
                for index in range(n_filters):
                    line = out[(first + index) * n_channels + channel, y]
                    for i in range(n_out):
                        line[i] = sums[index, i]
