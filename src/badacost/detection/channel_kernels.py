"""Compiled loops over the rows of planar images: colour, gradient, histograms, resampling.

Each kernel fills the rows (one: the columns) ``first .. last`` of its output, and every value comes
from the same operations in the same order wherever these are cut. Loops run along a row and touch
few arrays, so that the compiler can check at run time that these do not overlap, and vectorise.
Constants are in single precision, or sums would be in double.
"""

from __future__ import annotations

import numpy as np

from badacost._utils.kernel_cache import njit

_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_TWO = np.float32(2.0)
_SIXTEENTH = np.float32(1 / 16)
_ZERO = np.float32(0.0)

# White point, range and denominator of CIE LUV.
_U_WHITE, _V_WHITE = np.float32(13 * 0.197833), np.float32(13 * 0.468331)
_U_OFFSET, _V_OFFSET = np.float32(88 / 270), np.float32(134 / 270)
_U_FACTOR, _V_FACTOR = np.float32(13 * 4), np.float32(13 * 9)
_Y_SHARE, _Z_SHARE = np.float32(15.0), np.float32(3.0)
_TINY = np.float32(1e-35)
_LIGHTNESS_STEPS = np.float32(1024.0)

_MAX_INVERSE = np.float32(1e10)  # of a magnitude: where there is no gradient it is 1e-10
_COSINE_STEPS = np.float32(10000.0)
_PI = np.float32(np.pi)


@njit(cache=True, nogil=True, error_model="numpy")
def luv_rows(image, matrix, lightness, first, last, out):
    """Convert rows of RGB pixels by their matrix to XYZ; lightness by table look-up."""
    (xr, xg, xb), (yr, yg, yb), (zr, zg, zb) = matrix
    width = image.shape[1]
    top = lightness.shape[0] - 1
    for y in range(first, last):
        pixels = image[y]
        row_l, row_u, row_v = out[0, y], out[1, y], out[2, y]
        for x in range(width):
            row_l[x] = pixels[x, 0]
            row_u[x] = pixels[x, 1]
            row_v[x] = pixels[x, 2]
        for x in range(width):
            r, g, b = row_l[x], row_u[x], row_v[x]
            cx = xr * r + xg * g + xb * b
            cy = yr * r + yg * g + yb * b
            cz = zr * r + zg * g + zb * b
            inverse = _ONE / (cx + (_TINY + (_Y_SHARE * cy + _Z_SHARE * cz)))
            row_l[x] = cy
            row_u[x] = _U_FACTOR * cx * inverse - _U_WHITE
            row_v[x] = _V_FACTOR * cy * inverse - _V_WHITE
        for x in range(width):
            step = np.int32(row_l[x] * _LIGHTNESS_STEPS)
            row_l[x] = lightness[np.uint32(max(0, min(step, top)))]
        for x in range(width):
            row_u[x] = row_l[x] * row_u[x] + _U_OFFSET
        for x in range(width):
            row_v[x] = row_l[x] * row_v[x] + _V_OFFSET


@njit(cache=True, nogil=True, error_model="numpy")
def _differences(row, above, below, vertical, dx, dy):
    """Half the step between both neighbours; at the border, the step from the pixel to one."""
    last = row.shape[0] - 1
    for x in range(1, last):
        dx[x] = (row[x + 1] - row[x - 1]) * _HALF
    dx[0] = row[min(1, last)] - row[0]
    dx[last] = row[last] - row[max(0, last - 1)]
    for x in range(row.shape[0]):
        dy[x] = (below[x] - above[x]) * vertical


@njit(cache=True, nogil=True, error_model="numpy")
def _keep_stronger(dx, dy, best_dx, best_dy):
    for x in range(dx.shape[0]):
        strength = dx[x] * dx[x] + dy[x] * dy[x]
        best = best_dx[x] * best_dx[x] + best_dy[x] * best_dy[x]
        stronger = strength > best
        best_dx[x] = dx[x] if stronger else best_dx[x]
        best_dy[x] = dy[x] if stronger else best_dy[x]


@njit(cache=True, nogil=True, error_model="numpy")
def gradient_rows(planes, full, arc_cosine, first, last, magnitude, orientation):
    """Gradient of the plane where it is strongest; ``arc_cosine`` has its zero in the middle."""
    n_planes, height, width = planes.shape
    dx, dy = np.empty(width, np.float32), np.empty(width, np.float32)
    best_dx, best_dy = np.empty(width, np.float32), np.empty(width, np.float32)
    step = np.empty(width, np.int32)
    middle = np.int32(arc_cosine.shape[0] // 2)
    for y in range(first, last):
        above, below = max(0, y - 1), min(height - 1, y + 1)
        vertical = _HALF if below - above == 2 else _ONE
        _differences(planes[0, y], planes[0, above], planes[0, below], vertical, best_dx, best_dy)
        for plane in range(1, n_planes):
            _differences(
                planes[plane, y], planes[plane, above], planes[plane, below], vertical, dx, dy
            )
            _keep_stronger(dx, dy, best_dx, best_dy)
        row_magnitude, row_orientation = magnitude[y], orientation[y]
        for x in range(width):
            square = best_dx[x] * best_dx[x] + best_dy[x] * best_dy[x]
            inverse = min(_ONE / np.sqrt(square), _MAX_INVERSE)
            row_magnitude[x] = _ONE / inverse
            upward = -best_dx[x] if best_dy[x] < _ZERO else best_dx[x]
            step[x] = np.int32(upward * inverse * _COSINE_STEPS)
        for x in range(width):  # what is not a number becomes an integer: it is kept in the table
            entry = max(-middle, min(step[x], middle)) + middle
            row_orientation[x] = arc_cosine[np.uint32(entry)]
        if full:
            for x in range(width):
                row_orientation[x] += _PI if best_dy[x] < _ZERO else _ZERO


@njit(cache=True, nogil=True)
def _reflected(position, length):
    """Where a position outside of ``0 .. length`` lies in the mirror image beyond the border."""
    position %= 2 * length
    return min(position, 2 * length - 1 - position)


@njit(cache=True, nogil=True)
def _smooth_columns(row, out):
    """Weights 1, 2, 1 along a row; the border counts twice."""
    last = row.shape[0] - 1
    for x in range(1, last):
        out[x] = (row[x - 1] + _TWO * row[x]) + row[x + 1]
    out[0] = (row[0] + _TWO * row[0]) + row[min(1, last)]
    out[last] = (row[max(0, last - 1)] + _TWO * row[last]) + row[last]


@njit(cache=True, nogil=True)
def _smooth_row(above, row, below, out):
    """Weights 1, 2, 1 from row to row, divided for both directions."""
    for x in range(out.shape[0]):
        out[x] = ((above[x] + _TWO * row[x]) + below[x]) * _SIXTEENTH


@njit(cache=True, nogil=True)
def smooth_rows(planes, first, last, out):
    """Smooth by a triangle of radius 1: few enough terms to be added up again for each pixel."""
    n_planes, height, width = planes.shape
    ring = np.empty((3, width), np.float32)
    for plane in range(n_planes):
        done = max(0, first - 1)
        for y in range(first, last):
            while done < min(height, y + 2):
                _smooth_columns(planes[plane, done], ring[done % 3])
                done += 1
            above, below = max(0, y - 1), min(height - 1, y + 1)
            _smooth_row(ring[above % 3], ring[y % 3], ring[below % 3], out[plane, y])


@njit(cache=True, nogil=True)
def triangle_along_rows(planes, radius, first, last, out):
    """Smooth rows by a triangle, with a mirror at the border; divided for both directions.

    The slope of the result changes by a second difference from pixel to pixel, and two running
    sums follow it. Their rounding errors grow along the row: they are part of the features that
    published trees were trained with.
    """
    n_planes, _, width = planes.shape
    side = radius + 1
    unit = _ONE / np.float32(side**4)
    wide = np.empty(width + 2 * side, np.float32)
    change = np.empty(width, np.float32)
    for plane in range(n_planes):
        for y in range(first, last):
            row, row_out = planes[plane, y], out[plane, y]
            wide[side : side + width] = row
            for k in range(side):
                wide[side - 1 - k] = row[_reflected(-1 - k, width)]
                wide[side + width + k] = row[_reflected(width + k, width)]
            right = wide[2 * side :]
            for x in range(width):
                change[x] = (wide[x] + right[x]) - _TWO * row[x]
            slope = value = _ZERO
            for k in range(side):
                slope += wide[side + k]
                value += slope
            value = (_TWO * value - slope) * unit
            slope = _ZERO
            for x in range(width):
                row_out[x] = value
                slope += change[x]
                value += unit * slope


@njit(cache=True, nogil=True)
def triangle_along_columns(planes, radius, first, last, out):
    """Smooth the columns ``first .. last`` likewise, without a division."""
    n_planes, height, _ = planes.shape
    side = radius + 1
    slope = np.empty(last - first, np.float32)
    value = np.empty(last - first, np.float32)
    for plane in range(n_planes):
        slope[:] = _ZERO
        value[:] = _ZERO
        for k in range(side):
            row = planes[plane, _reflected(k, height), first:last]
            for x in range(row.shape[0]):
                slope[x] += row[x]
                value[x] += slope[x]
        for x in range(value.shape[0]):
            value[x] = _TWO * value[x] - slope[x]
        slope[:] = _ZERO
        for y in range(height):
            out[plane, y, first:last] = value
            row = planes[plane, y, first:last]
            above = planes[plane, _reflected(y - side, height), first:last]
            below = planes[plane, _reflected(y + side, height), first:last]
            for x in range(row.shape[0]):
                slope[x] += (above[x] + below[x]) - _TWO * row[x]
                value[x] += slope[x]


@njit(cache=True, nogil=True, error_model="numpy")
def normalised_rows(magnitude, smooth, constant, first, last, out):
    """Divide by the smoothed magnitude plus a constant."""
    for y in range(first, last):
        row, row_smooth, row_out = magnitude[y], smooth[y], out[y]
        for x in range(row.shape[0]):
            row_out[x] = row[x] * (_ONE / (row_smooth[x] + constant))


@njit(cache=True, nogil=True)
def _take_apart(row, parts):
    """Deal out the values of a row: the first pixels of all cells, the second pixels and so on."""
    size, n_cells = parts.shape
    if size == 2:  # vectorised, as the stride is known and all values are used
        left, right = parts[0], parts[1]
        for x in range(n_cells):
            left[x] = row[2 * x]
            right[x] = row[2 * x + 1]
    else:
        for k in range(size):
            for x in range(n_cells):
                parts[k, x] = row[size * x + k]


@njit(cache=True, nogil=True)
def _add_row(weight, row, out):
    for x in range(out.shape[0]):
        out[x] += weight * row[x]


@njit(cache=True, nogil=True)
def shrunk_rows(planes, shrink, factors, first, last, out):
    """Sum squares of ``shrink`` pixels a side, times a factor for each plane."""
    n_planes, _, n_cells = out.shape
    parts = np.empty((shrink, n_cells), np.float32)
    for plane in range(n_planes):
        for y in range(first, last):
            cells = out[plane, y]
            cells[:] = _ZERO
            for row in range(y * shrink, (y + 1) * shrink):
                _take_apart(planes[plane, row], parts)
                for k in range(1, shrink):
                    _add_row(_ONE, parts[k], parts[0])
                _add_row(_ONE, parts[0], cells)
            cells *= factors[plane]


@njit(cache=True, nogil=True)
def _bin_shares(magnitude, position, centre, n_bins, out):
    """What each pixel gives to the orientation bin ``centre``: bins form a circle."""
    if n_bins == 1:
        out[:] = magnitude
        return
    circle = np.float32(n_bins)
    for x in range(out.shape[0]):
        distance = abs(position[x] - centre)
        share = _ONE - min(distance, circle - distance)
        out[x] = magnitude[x] * max(share, _ZERO)


@njit(cache=True, nogil=True)
def histogram_rows(magnitude, orientation, turn, size, taps, border, first, last, out):
    """Add up magnitudes by orientation in cells of ``size`` pixels a side.

    ``turn`` is a full circle of orientations. ``taps`` are the weights, in a row and in a column,
    of the pixels of a cell and of as many pixels before it as after it.
    """
    n_bins, n_rows, n_cells = out.shape
    reach = (taps.shape[0] - size) // 2
    strength = np.empty((size, n_cells), np.float32)
    position = np.empty((size, n_cells), np.float32)
    shares = np.zeros((size, n_cells + 2), np.float32)  # with an empty cell on each side
    cells = np.empty(n_cells, np.float32)
    scale = np.float32(n_bins) / turn
    out[:, first:last] = _ZERO
    for y in range(max(0, first * size - reach), min(n_rows * size, last * size + reach)):
        _take_apart(magnitude[y], strength)
        _take_apart(orientation[y], position)
        position *= scale
        for i in range(n_bins):
            for k in range(size):
                inner = shares[k, 1 : 1 + n_cells]
                _bin_shares(strength[k], position[k], np.float32(i), n_bins, inner)
            cells[:] = _ZERO
            for t in range(taps.shape[0]):
                pixel = t - reach + size
                _add_row(taps[t], shares[pixel % size, pixel // size :], cells)
            own = y // size
            for cell in range(max(first, own - 1), min(last, own + 2)):
                t = y - cell * size + reach
                if 0 <= t < taps.shape[0]:
                    _add_row(taps[t], cells, out[i, cell])
    out[:, first:last, 0] *= border
    out[:, first:last, n_cells - 1] *= border
    if first == 0:
        out[:, 0] *= border
    if last == n_rows:
        out[:, n_rows - 1] *= border


@njit(cache=True, nogil=True)
def _resampled_columns(row, start, weights, out):
    """Weighted sums of neighbouring values of a row."""
    n_taps = weights.shape[0]
    if row.shape[0] == out.shape[0]:
        out[:] = row
    elif n_taps == 2:
        for x in range(out.shape[0]):
            i = start[x]
            out[x] = weights[0, x] * row[i] + weights[1, x] * row[i + np.uint64(1)]
    elif n_taps == 3:
        for x in range(out.shape[0]):
            i = start[x]
            out[x] = (
                weights[0, x] * row[i]
                + weights[1, x] * row[i + np.uint64(1)]
                + weights[2, x] * row[i + np.uint64(2)]
            )
    else:
        for x in range(out.shape[0]):
            total = _ZERO
            for k in range(n_taps):
                total += weights[k, x] * row[start[x] + np.uint64(k)]
            out[x] = total


@njit(cache=True, nogil=True)
def _resampled_row(plane, start_y, weights_y, start_x, weights_x, factor, y, ready, ring, out):
    """Row y of a resampled plane, and the first row of the plane that it did not need.

    Rows of the plane before ``ready`` are in the ring with their columns already resampled.
    """
    n_taps = weights_y.shape[0]
    start = np.int64(start_y[y])
    for row in range(max(ready, start), start + n_taps):
        _resampled_columns(plane[row], start_x, weights_x, ring[row % n_taps])
    row, weight = ring[start % n_taps], weights_y[0, y] * factor
    for x in range(out.shape[0]):
        out[x] = weight * row[x]
    for k in range(1, n_taps):
        _add_row(weights_y[k, y] * factor, ring[(start + k) % n_taps], out)
    return start + n_taps


@njit(cache=True, nogil=True)
def resampled_rows(planes, start_y, weights_y, start_x, weights_x, factors, first, last, out):
    """Resample planes by tables of weights, one for each axis, times a factor for each plane."""
    ring = np.empty((weights_y.shape[0], out.shape[2]), np.float32)
    for plane in range(planes.shape[0]):
        ready = 0
        for y in range(first, last):
            ready = _resampled_row(
                planes[plane], start_y, weights_y, start_x, weights_x, factors[plane], y, ready,
                ring, out[plane, y],
            )  # fmt: skip


@njit(cache=True, nogil=True)
def _pad_row(border, replicate, out):
    for x in range(out.shape[0]):
        out[x] = border[x] if replicate else _ZERO


@njit(cache=True, nogil=True)
def level_rows(
    planes, start_y, weights_y, start_x, weights_x, factors, smooth, replicate, pad_y, pad_x,
    first, last, out,
):  # fmt: skip
    """Resample, smooth and pad; rows are counted without the padding.

    Planes marked in ``replicate`` go on beyond the border as they are there, others with zeros.
    """
    height, width = weights_y.shape[1], weights_x.shape[1]
    sources = np.empty((weights_y.shape[0], width), np.float32)
    resampled = np.empty(width, np.float32)
    ring = np.empty((3, width), np.float32)
    for plane in range(planes.shape[0]):
        ready, done = 0, max(0, first - 1)
        for y in range(first, last):
            while done < min(height, y + 2):
                ready = _resampled_row(
                    planes[plane], start_y, weights_y, start_x, weights_x, factors[plane], done,
                    ready, sources, resampled,
                )  # fmt: skip
                if smooth:
                    _smooth_columns(resampled, ring[done % 3])
                else:
                    ring[done % 3] = resampled
                done += 1
            row = out[plane, y + pad_y]
            inner = row[pad_x : pad_x + width]
            if smooth:
                above, below = max(0, y - 1), min(height - 1, y + 1)
                _smooth_row(ring[above % 3], ring[y % 3], ring[below % 3], inner)
            else:
                inner[:] = ring[y % 3]
            row[:pad_x] = inner[0] if replicate[plane] else _ZERO
            row[pad_x + width :] = inner[width - 1] if replicate[plane] else _ZERO
        if first == 0:
            for y in range(pad_y):
                _pad_row(out[plane, pad_y], replicate[plane], out[plane, y])
        if last == height:
            for y in range(pad_y + height, out.shape[1]):
                _pad_row(out[plane, pad_y + height - 1], replicate[plane], out[plane, y])
