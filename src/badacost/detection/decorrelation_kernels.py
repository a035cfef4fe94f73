"""Compiled loop that filters channels and halves the result in one pass.

Rows are taken apart into even and odd columns, so that every loop runs over neighbours in memory.
With ``even[i]`` and ``odd[i]`` the columns 2i - 2 and 2i - 1, a filter of five columns at column
2i sees ``even[i], odd[i], even[i + 1], odd[i + 1], even[i + 2]``, and at column 2i + 1 the same
without the first and with ``odd[i + 2]``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SIZE = 5  # rows and columns of a filter
AT_ONCE = 4  # filters that are applied to a row while it is in registers
_ROWS = SIZE + 2  # that three neighbouring rows of the result are made from


@njit(cache=True, nogil=True)
def _take_apart(plane, y, even, odd):
    """Put the columns of row y behind a border of two; a row outside of the plane is zero."""
    height, width = plane.shape
    if 0 <= y < height:
        row = plane[y]
        for i in range(width // 2):
            even[i + 1] = row[2 * i]
            odd[i + 1] = row[2 * i + 1]
        if width % 2:
            even[width // 2 + 1] = row[width - 1]
    else:
        for i in range(len(even)):
            even[i] = 0.0
            odd[i] = 0.0


@njit(cache=True, nogil=True)
def _combine(filters, first, channel, shares, kernels):
    """Kernels of the weighted sum of three neighbouring rows of the filtered channel."""
    for index in range(AT_ONCE):
        for j in range(_ROWS):
            for i in range(SIZE):
                kernels[index, j, i] = 0.0
    for index in range(min(AT_ONCE, filters.shape[0] - first)):
        for shift in range(3):
            for j in range(SIZE):
                for i in range(SIZE):
                    weight = filters[first + index, channel, j, i]
                    kernels[index, j + shift, i] += shares[shift] * weight


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_pairs(even, odd, kernels, j, n_out, sums0, sums1, sums2, sums3):
    """Add row j of four filters at column 2i and at column 2i + 1 to the sum of i."""
    a0, a1, a2, a3, a4 = kernels[0, j]
    b0, b1, b2, b3, b4 = kernels[1, j]
    c0, c1, c2, c3, c4 = kernels[2, j]
    d0, d1, d2, d3, d4 = kernels[3, j]
    a01, a12, a23, a34 = a0 + a1, a1 + a2, a2 + a3, a3 + a4
    b01, b12, b23, b34 = b0 + b1, b1 + b2, b2 + b3, b3 + b4
    c01, c12, c23, c34 = c0 + c1, c1 + c2, c2 + c3, c3 + c4
    d01, d12, d23, d34 = d0 + d1, d1 + d2, d2 + d3, d3 + d4
    for i in range(n_out):
        u, v, w, x, y, z = even[i], odd[i], even[i + 1], odd[i + 1], even[i + 2], odd[i + 2]
        sums0[i] += a0 * u + a01 * v + a12 * w + a23 * x + a34 * y + a4 * z
        sums1[i] += b0 * u + b01 * v + b12 * w + b23 * x + b34 * y + b4 * z
        sums2[i] += c0 * u + c01 * v + c12 * w + c23 * x + c34 * y + c4 * z
        sums3[i] += d0 * u + d01 * v + d12 * w + d23 * x + d34 * y + d4 * z


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_singles(first, second, kernels, j, n_out, sums0, sums1, sums2, sums3):
    """Add row j of four filters at every other column: that of the middle of `first`."""
    a0, a1, a2, a3, a4 = kernels[0, j]
    b0, b1, b2, b3, b4 = kernels[1, j]
    c0, c1, c2, c3, c4 = kernels[2, j]
    d0, d1, d2, d3, d4 = kernels[3, j]
    for i in range(n_out):
        u, v, w, x, y = first[i], second[i], first[i + 1], second[i + 1], first[i + 2]
        sums0[i] += a0 * u + a1 * v + a2 * w + a3 * x + a4 * y
        sums1[i] += b0 * u + b1 * v + b2 * w + b3 * x + b4 * y
        sums2[i] += c0 * u + c1 * v + c2 * w + c3 * x + c4 * y
        sums3[i] += d0 * u + d1 * v + d2 * w + d3 * x + d4 * y


@njit(cache=True, nogil=True)
def _put_together(sums, at_odd, shares, line):
    """Row of the result from sums at even and at odd columns, which begin one before the first."""
    for i in range(len(line)):
        line[i] = shares[0, i] * at_odd[i] + shares[1, i] * sums[i] + shares[2, i] * at_odd[i + 1]


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
    even = np.zeros((_ROWS, n_out + 3), np.float32)
    odd = np.zeros((_ROWS, n_out + 3), np.float32)
    kernels = np.empty((AT_ONCE, _ROWS, SIZE), np.float32)
    sums = np.zeros((AT_ONCE, n_out), np.float32)
    at_odd = np.zeros((AT_ONCE, n_out + 1), np.float32)
    for channel in range(n_channels):
        for y in range(begin, end):
            top = 2 * y - 1 - SIZE // 2
            for j in range(_ROWS):
                _take_apart(channels[channel], top + j, even[j], odd[j])
            first_row = 1 if y_shares[y, 0] == 0.0 else 0
            for first in range(0, filters.shape[0], AT_ONCE):
                _combine(filters, first, channel, y_shares[y], kernels)
                for index in range(AT_ONCE):
                    for i in range(n_out):
                        sums[index, i] = 0.0
                        at_odd[index, i + 1] = 0.0
                for j in range(first_row, _ROWS):
                    if width % 2:
                        _add_singles(
                            even[j], odd[j], kernels, j, n_out, sums[0], sums[1], sums[2], sums[3]
                        )
                        _add_singles(
                            odd[j], even[j][1:], kernels, j, n_out, at_odd[0][1:], at_odd[1][1:],
                            at_odd[2][1:], at_odd[3][1:],
                        )  # fmt: skip
                    else:
                        _add_pairs(
                            even[j], odd[j], kernels, j, n_out, sums[0], sums[1], sums[2], sums[3]
                        )
                for index in range(min(AT_ONCE, filters.shape[0] - first)):
                    line = out[(first + index) * n_channels + channel, y]
                    if width % 2:
                        _put_together(sums[index], at_odd[index], x_shares, line[:n_out])
                    else:
                        for i in range(n_out):
                            line[i] = x_shares[1, i] * sums[index, i]
