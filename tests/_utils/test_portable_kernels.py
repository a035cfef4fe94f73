"""Exponential and logarithm made of operations whose results IEEE 754 fixes."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from badacost._utils.portable_kernels import exp_of, log_of

EXPONENTS = np.r_[
    np.random.default_rng(0).uniform(-745.0, 709.7, 4000),
    np.random.default_rng(1).uniform(-1.0, 1.0, 2000),
    np.random.default_rng(2).normal(size=500) * 1e-9,
    np.arange(-745.0, 710.0),
    np.log(2.0) * np.arange(-1074, 1024),
]
POSITIVE = np.r_[
    np.random.default_rng(3).uniform(0.5, 2.0, 3000),
    np.exp2(np.random.default_rng(4).uniform(-1074.0, 1024.0, 3000)),
    1.0 + np.random.default_rng(5).normal(size=500) * 1e-12,
    np.ldexp(1.0, np.arange(-1074, 1024)),
    np.nextafter([1.0, 1.0, 0.5**0.5, 0.5**0.5, np.inf], [0.0, 2.0, 0.0, 1.0, 0.0]),
]


def portable(function, values):
    out = np.empty(len(values))
    function(np.asarray(values, np.float64), out)
    return out


def units_off(found, values, exact) -> float:
    """Largest distance from the true result, in units of its last place."""
    with localcontext() as context:
        context.prec = 40
        return max(
            float(abs(Decimal(float(y)) - exact(Decimal(float(x)))) / Decimal(math.ulp(y)))
            for x, y in zip(values, found, strict=True)
        )


def test_exponentials_are_accurate() -> None:
    found = portable(exp_of, EXPONENTS)
    assert units_off(found, EXPONENTS, Decimal.exp) < 0.9
    np.testing.assert_allclose(found, np.exp(EXPONENTS), rtol=4e-16, atol=5e-324)


def test_logarithms_are_accurate() -> None:
    found = portable(log_of, POSITIVE)
    assert units_off(found, POSITIVE, Decimal.ln) < 0.9
    np.testing.assert_allclose(found, np.log(POSITIVE), rtol=4e-16)


@pytest.mark.parametrize(("function", "values"), [(exp_of, EXPONENTS), (log_of, POSITIVE)])
def test_results_rise_with_their_arguments(function, values) -> None:
    found = portable(function, np.sort(np.r_[values, np.nextafter(values, 1.0)]))
    assert np.all(np.diff(found) >= -np.spacing(np.abs(found[1:])))


def test_ends_of_the_range() -> None:
    given = [0.0, -0.0, -np.inf, np.inf, -1e300, 1e300, -745.2, 709.8]
    expected = [1.0, 1.0, 0.0, np.inf, 0.0, np.inf, 0.0, np.inf]
    np.testing.assert_array_equal(portable(exp_of, given), expected)
    assert np.isnan(portable(exp_of, [np.nan])[0])
    np.testing.assert_array_equal(portable(log_of, [1.0, 0.0, np.inf]), [0.0, -np.inf, np.inf])
    assert np.isnan(portable(log_of, [np.nan, -1.0, -np.inf])).all()


def test_bits_are_those_of_every_processor() -> None:
    # exactly representable arguments; the digest was computed on x86-64
    exponents = np.arange(-5950.0, 5680.0) / 8.0
    positive = np.ldexp(np.arange(1.0, 4097.0), np.arange(4096) % 2000 - 1074)
    digest = hashlib.sha256()
    digest.update(portable(exp_of, exponents).tobytes())
    digest.update(portable(log_of, positive).tobytes())
    assert digest.hexdigest()[:16] == "d95389e02bb4097c"
