"""Learned filters against the neighbourhoods themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles, svd

from badacost.detection.decorrelation import as_filters, learn_filters


def random_windows(seed: int, *shape: int, steps: int = 3) -> np.ndarray:
    """Windows of smooth noise that differs between directions and channels."""
    windows = np.random.default_rng(seed).uniform(size=shape)
    for step in range(1, steps + 1):
        windows = windows + 0.8 / step * np.roll(windows, (step, 1), axis=(2, 3))
        windows[:, ::2] += 0.5 * np.roll(windows[:, ::2], 1, axis=3)
    return windows / windows.max(initial=1.0)


def neighbourhoods(windows: np.ndarray, channel: int, size: int) -> np.ndarray:
    """Every square of cells, the opposite border behind each border: shape (n, size ** 2)."""
    planes = windows[:, channel].astype(np.float64)
    kept = planes[[plane.mean() > 1 / 50 for plane in planes]] - planes.mean()
    wrapped = np.pad(kept, ((0, 0), (0, size - 1), (0, size - 1)), "wrap")
    squares = np.lib.stride_tricks.sliding_window_view(wrapped, (size, size), axis=(1, 2))
    return squares.reshape(-1, size**2)


def largest_angle(filters: np.ndarray, others: np.ndarray) -> float:
    """Largest angle in degrees between what two sets of filters of a channel span."""
    a, b = (part.reshape(len(part), -1).T.astype(np.float64) for part in (filters, others))
    return float(np.degrees(subspace_angles(a, b).max()))


@pytest.mark.parametrize("size", [3, 5])
def test_same_subspaces_as_the_singular_vectors_of_all_neighbourhoods(size) -> None:
    windows = random_windows(0, 12, 3, 14, 17).astype(np.float32)
    windows[:4, 1] *= 0.01  # empty ones
    filters = learn_filters(windows, n_filters=size**2 - 1, size=size)
    for channel in range(3):
        _, values, vectors = svd(neighbourhoods(windows, channel, size), full_matrices=False)
        gaps = values[:-1] / values[1:] > 1.02
        assert gaps[:4].sum() >= 3
        for n in np.flatnonzero(gaps[: len(filters)]) + 1:
            assert largest_angle(filters[:n, channel], vectors[:n]) < 0.02


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(5, 12), st.integers(5, 12)),
    st.sampled_from([1, 3, 5]),
    st.data(),
)
def test_orthonormal_and_no_others_have_more_variance(seed, shape, size, data) -> None:
    n_filters = data.draw(st.integers(1, size**2))
    windows = random_windows(seed, *shape, steps=seed % 3).astype(np.float32)
    filters = learn_filters(iter(windows), n_filters, size)
    assert filters.shape == (n_filters, shape[1], size, size)
    assert filters.dtype == np.float32
    as_filters(filters, shape[1])
    for channel in range(shape[1]):
        own = filters[:, channel].reshape(n_filters, -1).astype(np.float64)
        np.testing.assert_allclose(own @ own.T, np.eye(n_filters), atol=1e-5)
        squares = neighbourhoods(windows, channel, size)
        largest = svd(squares, compute_uv=False)[:n_filters] ** 2
        variance = ((squares @ own.T) ** 2).sum(axis=0)
        np.testing.assert_allclose(variance[: len(largest)], largest, rtol=1e-4, atol=1e-4)


def test_signs_follow_the_first_large_weight() -> None:
    windows = random_windows(3, 6, 2, 12, 12)
    filters = learn_filters(windows, n_filters=9)
    for own in filters.reshape(18, 25):
        assert own[np.abs(own) >= np.abs(own).max() / 2 - 1e-6][0] > 0
    assert (filters[0].sum(axis=(1, 2)) > 0).all()
    np.testing.assert_array_equal(filters, learn_filters(windows.astype(np.float32), 9))


def test_brightness_that_all_windows_share_has_no_part() -> None:
    windows = random_windows(4, 6, 1, 12, 12)
    found, brighter = learn_filters(windows), learn_filters(windows + 5.0)
    np.testing.assert_allclose(found, brighter, atol=1e-4)


def test_windows_count_where_all_are_empty() -> None:
    windows = random_windows(5, 6, 1, 12, 12)
    windows -= windows.mean(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(learn_filters(windows), learn_filters(windows + 1.0), atol=1e-4)


def test_a_channel_without_contents_gets_filters_too() -> None:
    filters = learn_filters(np.zeros((3, 2, 8, 8)))
    own = filters.transpose(1, 0, 2, 3).reshape(2, 4, 25)
    np.testing.assert_allclose(own @ own.transpose(0, 2, 1), np.tile(np.eye(4), (2, 1, 1)))


@pytest.mark.parametrize(
    ("windows", "error", "message"),
    [
        ([], ValueError, "at least one window"),
        (np.zeros((2, 8, 8)), ValueError, "shape"),
        (np.zeros((3, 2, 4, 8)), ValueError, "at least 5 x 5 cells"),
        ([np.zeros((2, 8, 8)), np.zeros((2, 8, 9))], ValueError, "one shape"),
        (np.full((3, 2, 8, 8), np.nan), ValueError, "finite"),
        (np.full((3, 2, 8, 8), "a"), TypeError, "numbers"),
    ],
)
def test_what_is_no_window_is_refused(windows, error, message) -> None:
    with pytest.raises(error, match=message):
        learn_filters(windows)


@pytest.mark.parametrize(
    ("n_filters", "size", "error"),
    [(0, 5, ValueError), (26, 5, ValueError), (4, 4, ValueError), (4, 7, ValueError),
     (2, 1, ValueError), (1.5, 5, TypeError), (4, True, TypeError)],
)  # fmt: skip
def test_sizes_that_cannot_be_applied_are_refused(n_filters, size, error) -> None:
    with pytest.raises(error, match=r"size|n_filters"):
        learn_filters(np.ones((1, 1, 9, 9)), n_filters, size)
