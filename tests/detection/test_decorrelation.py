"""Filtering and halving against a convolution by scipy and a matrix of areas."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import convolve2d

from badacost._utils.parallel import Threads
from badacost.detection.decorrelation import as_filters, decorrelate, half


def halving_matrix(length: int) -> np.ndarray:
    """Share of each cell in each cell of the half: the length that both cover."""
    n_out = -(-length // 2)
    limits = np.arange(n_out + 1) * length / n_out
    cells = np.arange(length)
    covered = np.minimum(cells + 1, limits[1:, None]) - np.maximum(cells, limits[:-1, None])
    return np.maximum(covered, 0.0) * n_out / length


def slow_decorrelation(channels: np.ndarray, filters: np.ndarray) -> np.ndarray:
    rows, columns = (halving_matrix(length) for length in channels.shape[1:])
    return np.stack(
        [
            rows
            @ convolve2d(plane.astype(np.float64), kernel, mode="same")
            @ columns.T
            / (1 + 1e-6)
            for filter_ in filters
            for plane, kernel in zip(channels, filter_, strict=True)
        ]
    )


def random_planes(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.tuples(st.integers(1, 3), st.integers(1, 13), st.integers(1, 40)),
    st.integers(1, 6),
    st.sampled_from([1, 3, 5]),
)
def test_against_scipy(seed, shape, n_filters, size) -> None:
    channels = random_planes(seed, *shape)
    filters = random_planes(seed + 1, n_filters, shape[0], size, size)
    found = decorrelate(channels, as_filters(filters, shape[0]))
    assert found.dtype == np.float32
    assert found.shape == (n_filters * shape[0], half(shape[1]), half(shape[2]))
    np.testing.assert_allclose(found, slow_decorrelation(channels, filters), rtol=0, atol=2e-5)


def test_bits_are_those_of_every_processor() -> None:
    # drawn as whole numbers of sixteenths; the digest was computed on x86-64
    rng, digest = np.random.default_rng(0), hashlib.sha256()
    for height, width in ((24, 30), (25, 31), (9, 30), (24, 7)):
        channels = rng.integers(-64, 64, (2, height, width)).astype(np.float32) / 16
        filters = rng.integers(-64, 64, (5, 2, 5, 5)) / 16.0
        digest.update(decorrelate(channels, as_filters(filters, 2)).tobytes())
    assert digest.hexdigest()[:16] == "b34e5bb180f029bd"


@pytest.mark.parametrize("shape", [(2, 24, 31), (2, 25, 32)])
def test_threads_and_larger_buffers_do_not_change_a_bit(shape) -> None:
    channels, filters = random_planes(0, *shape), as_filters(random_planes(1, 4, 2, 5, 5), 2)
    expected = decorrelate(channels, filters)
    for n_jobs in (1, 2, 3):
        out = np.full((9, 15, 20), np.nan, np.float32)
        threads = Threads(n_jobs)
        found = decorrelate(channels, filters, out=out, threads=threads)
        np.testing.assert_array_equal(found, expected)
        assert np.shares_memory(found, out)
        assert np.isnan(out).sum() == out.size - found.size


def test_channels_of_the_first_filter_come_first() -> None:
    centre = np.zeros((2, 3, 1, 1))
    centre[:, :, 0, 0] = [[1, 2, 3], [4, 5, 6]]
    found = decorrelate(np.ones((3, 2, 2), np.float32), as_filters(centre, 3))
    np.testing.assert_allclose(found[:, 0, 0], [1, 2, 3, 4, 5, 6], rtol=2e-6)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (np.zeros((4, 3, 5, 5)), r"\(n_filters, 2, size, size\)"),
        (np.zeros((4, 2, 5)), r"\(n_filters, 2, size, size\)"),
        (np.zeros((0, 2, 5, 5)), "1 to 64 filters"),
        (np.zeros((65, 2, 1, 1)), "1 to 64 filters"),
        (np.zeros((1, 2, 4, 4)), "odd size"),
        (np.zeros((1, 2, 7, 7)), "odd size of at most 5"),
        (np.zeros((1, 2, 3, 5)), "squares"),
        (np.zeros((1, 2, 0, 0)), "odd size"),
        (np.full((1, 2, 1, 1), np.nan), "floats of at most"),
        (np.full((1, 2, 1, 1), -1e30), "floats of at most"),
        (np.full((1, 2, 1, 1), "1"), "floats of at most"),
    ],
)
def test_filters_that_are_refused(filters, message) -> None:
    with pytest.raises(ValueError, match=message):
        as_filters(filters, 2)


def test_arrays_that_a_kernel_would_leave() -> None:
    filters = as_filters(np.zeros((2, 3, 5, 5)), 3)
    with pytest.raises(ValueError, match="do not fit"):
        decorrelate(np.zeros((4, 8, 8), np.float32), filters)
    with pytest.raises(ValueError, match="do not fit"):
        decorrelate(np.zeros((3, 0, 8), np.float32), filters)
    with pytest.raises(ValueError, match="do not fit"):
        decorrelate(np.zeros((3, 8, 8), np.float32), np.zeros((2, 3, 3, 3), np.float32))
    for shape in ((5, 4, 4), (6, 3, 4), (6, 4, 3), (6, 16)):
        with pytest.raises(ValueError, match="at least"):
            decorrelate(np.zeros((3, 8, 8), np.float32), filters, out=np.zeros(shape, np.float32))
