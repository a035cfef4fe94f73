"""Exponential and logarithm with equal bits on every processor, and on a GPU.

Mathematical libraries differ in the last bits. These functions consist of additions,
multiplications, divisions, comparisons and bit operations in double precision, in a fixed order:
IEEE 754 determines their results. ``backends/portable.cuh`` has the same operations.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit

# The logarithm of two in two parts; a whole number up to 2**11 times the first one is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
_WHOLE = 1.5 * 2.0**52  # adding it rounds to a whole number, found in the last bits of the sum
_WHOLE_BITS = 0x4338000000000000
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of the square root of one half, rounded up
_BIAS = 1023
# Coefficients, the one of the highest power first, of (exp(r) - 1 - r) / r**2 in r, and of
# (log((1 + s) / (1 - s)) / s - 2) / s**2 in s**2.
_EXP_HIGHEST, _EXP_OTHERS = 1.0 / factorial(13), tuple(1.0 / factorial(k) for k in range(12, 1, -1))
_LOG_HIGHEST, _LOG_OTHERS = 2.0 / 23.0, tuple(2.0 / k for k in range(21, 2, -2))


@inner()
def _power_of_two(k):
    """``2.0**k`` for the exponents of normal numbers."""
    return np.int64((k + _BIAS) << 52).view(np.float64)


@inner()
def portable_exp(x):
    """The exponential, to one unit in the last place."""
    x = -746.0 if x < -746.0 else x
    x = 710.0 if x > 710.0 else x
    shifted = x * _PER_LN2 + _WHOLE
    k = np.float64(shifted).view(np.int64) - _WHOLE_BITS
    whole = shifted - _WHOLE
    high = x - whole * _LN2_HIGH
    low = whole * _LN2_LOW
    r = high - low
    q = _EXP_HIGHEST
    for coefficient in _EXP_OTHERS:
        q = q * r + coefficient
    y = 1.0 + (high + (r * r * q - low))
    half = k >> 1  # in two steps: the result may be smaller than any normal number
    return y * _power_of_two(half) * _power_of_two(k - half)


@inner()
def portable_log(x):
    """The natural logarithm, to one unit in the last place."""
    tiny = x < 2.0**-1022
    bits = np.float64(x * 2.0**54 if tiny else x).view(np.int64)
    k = (bits - _ROOT_HALF_BITS) >> 52
    f = np.int64(bits - (k << 52)).view(np.float64) - 1.0
    k = k - 54 if tiny else k
    whole = np.int64(k + _WHOLE_BITS).view(np.float64) - _WHOLE
    s = f / (f + 2.0)
    z = s * s
    q = _LOG_HIGHEST
    for coefficient in _LOG_OTHERS:
        q = q * z + coefficient
    r = q * z
    half_square = 0.5 * f * f
    y = whole * _LN2_HIGH - ((half_square - (s * (half_square + r) + whole * _LN2_LOW)) - f)
    y = y if x < np.inf else x
    y = y if x > 0.0 else np.nan
    return -np.inf if x == 0.0 else y


@njit(**KERNEL)
def exp_of(values, out):
    """Fill ``out`` with the exponentials of an array (n,), which may be the same one."""
    for i in range(len(values)):
        out[i] = portable_exp(values[i])


@njit(**KERNEL)
def log_of(values, out):
    """Fill ``out`` with the natural logarithms of an array (n,), which may be the same one."""
    for i in range(len(values)):
        out[i] = portable_log(values[i])
