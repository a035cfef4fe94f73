"""Exponential and logarithm whose bits are the same on every processor, and on a GPU.

Libraries of mathematics round in ways of their own. These functions are made of additions,
multiplications, divisions, comparisons and bit operations in double precision, in a fixed order:
IEEE 754 leaves no choice about their results. ``gpu/portable.cuh`` has the same operations.
"""

from __future__ import annotations

import numpy as np

from badacost.kernel_cache import njit

_INNER = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# The logarithm of two in two parts; a whole number up to 2**11 times the first one is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
_WHOLE = 1.5 * 2.0**52  # adding it rounds to a whole number, found in the last bits of the sum
_WHOLE_BITS = 0x4338000000000000
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # of the square root of one half, rounded up
_BIAS = 1023


@njit(**_INNER)
def _power_of_two(k):
    """``2.0**k`` for the exponents of normal numbers."""
    return np.int64((k + _BIAS) << 52).view(np.float64)


@njit(**_INNER)
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
    # The series of exp(r) - 1 - r, divided by r**2.
    q = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0
    q = q * r + 1.0 / 39916800.0
    q = q * r + 1.0 / 3628800.0
    q = q * r + 1.0 / 362880.0
    q = q * r + 1.0 / 40320.0
    q = q * r + 1.0 / 5040.0
    q = q * r + 1.0 / 720.0
    q = q * r + 1.0 / 120.0
    q = q * r + 1.0 / 24.0
    q = q * r + 1.0 / 6.0
    q = q * r + 0.5
    y = 1.0 + (high + (r * r * q - low))
    half = k >> 1  # in two steps: the result may be smaller than any normal number
    return y * _power_of_two(half) * _power_of_two(k - half)


@njit(**_INNER, error_model="numpy")
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
    # The series of log((1 + s) / (1 - s)) / s - 2.
    r = z * (2.0 / 23.0) + 2.0 / 21.0
    r = r * z + 2.0 / 19.0
    r = r * z + 2.0 / 17.0
    r = r * z + 2.0 / 15.0
    r = r * z + 2.0 / 13.0
    r = r * z + 2.0 / 11.0
    r = r * z + 2.0 / 9.0
    r = r * z + 2.0 / 7.0
    r = r * z + 2.0 / 5.0
    r = r * z + 2.0 / 3.0
    r = r * z
    half_square = 0.5 * f * f
    y = whole * _LN2_HIGH - ((half_square - (s * (half_square + r) + whole * _LN2_LOW)) - f)
    y = y if x < np.inf else x
    y = y if x > 0.0 else np.nan
    return -np.inf if x == 0.0 else y


@njit(cache=True, nogil=True)
def exp_of(values, out):
    """Fill ``out`` with the exponentials of an array (n,), which may be the same one."""
    for i in range(values.shape[0]):
        out[i] = portable_exp(values[i])


@njit(cache=True, nogil=True)
def log_of(values, out):
    """Fill ``out`` with the natural logarithms of an array (n,), which may be the same one."""
    for i in range(values.shape[0]):
        out[i] = portable_log(values[i])
