"""Channels against slow code in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils.parallel import Threads
from badacost.detection import channels
from badacost.detection.channels import (
    ChannelParameters,
    GradientParameters,
    HistogramParameters,
    Workspace,
    channels_of,
    compute_channels,
    gradient,
    orientation_histograms,
    resample,
    resampling_weights,
    rgb_to_luv,
    triangle_filter,
)

SIZES = st.tuples(st.integers(1, 24), st.integers(1, 24))


def noise(height: int, width: int, n_planes: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n_planes, height, width)).astype(np.float32)


def slow_triangle(plane: np.ndarray, radius: int) -> np.ndarray:
    weights = (radius + 1.0 - np.abs(np.arange(-radius, radius + 1))) / (radius + 1) ** 2
    padded = np.pad(plane.astype(np.float64), radius, mode="symmetric")
    for axis in (0, 1):
        padded = np.apply_along_axis(np.convolve, axis, padded, weights, "valid")
    return padded


def slow_axis(n_source: int, n_target: int) -> np.ndarray:
    """Matrix that resamples an axis."""
    matrix = np.zeros((n_target, n_source))
    for i in range(n_target):
        if n_target > n_source:
            position = np.clip((i + 0.5) * n_source / n_target - 0.5, 0, n_source - 1)
            low = int(position)
            matrix[i, low] += 1 - (position - low)
            matrix[i, min(low + 1, n_source - 1)] += position - low
        else:
            ratio = n_source / n_target
            for j in range(n_source):
                matrix[i, j] = max(0.0, min(j + 1, (i + 1) * ratio) - max(j, i * ratio)) / ratio
    return matrix


def slow_gradient(planes: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray]:
    planes = planes.astype(np.float64)
    dy = np.stack([np.gradient(plane, axis=0) for plane in planes])
    dx = np.stack([np.gradient(plane, axis=1) for plane in planes])
    best = (dx**2 + dy**2).argmax(axis=0)[None]
    dx, dy = np.take_along_axis(dx, best, 0)[0], np.take_along_axis(dy, best, 0)[0]
    return np.hypot(dx, dy), np.arctan2(dy, dx) % (2 * np.pi if full else np.pi)


def slow_histograms(magnitude, orientation, cell, parameters, full) -> np.ndarray:
    """Each pixel is given out to orientations, rows and columns in turn."""
    n, n_rows, n_columns = parameters.n_orientations, *(side // cell for side in magnitude.shape)
    out = np.zeros((n, n_rows + 2, n_columns + 2))
    for y in range(n_rows * cell):
        for x in range(n_columns * cell):
            bins = orientation[y, x] * n / (2 * np.pi if full else np.pi)
            spots = [(y // cell, x // cell, 1.0)]
            if parameters.soft:
                py, px = (y + 0.5) / cell - 0.5, (x + 0.5) / cell - 0.5
                fy, fx = int(np.floor(py)), int(np.floor(px))
                spots = [
                    (i, j, (1 - abs(py - i)) * (1 - abs(px - j)))
                    for i in (fy, fy + 1)
                    for j in (fx, fx + 1)
                ]
            low = int(np.floor(bins))
            for k, part in ((low % n, low + 1 - bins), ((low + 1) % n, bins - low)):
                for i, j, weight in spots:
                    out[k, i + 1, j + 1] += part * weight * magnitude[y, x] / cell**2
    out = out[:, 1:-1, 1:-1]
    if parameters.soft:
        for border in (out[:, 0], out[:, -1], out[:, :, 0], out[:, :, -1]):
            border *= 8 / 7
    return out


@pytest.mark.parametrize(("shrink", "soft", "full"), [(1, 0, 1), (2, 1, 1), (3, 1, 0), (4, 1, 0)])
def test_channels_against_slow_code(shrink, soft, full) -> None:
    parameters = ChannelParameters(
        shrink=shrink,
        smoothing=2,
        gradient=GradientParameters(norm_radius=3, norm_constant=0.01, full=bool(full)),
        histogram=HistogramParameters(n_orientations=5, soft=bool(soft)),
    )
    luv = noise(23, 30)
    height, width = 23 // shrink * shrink, 30 // shrink * shrink
    colours = np.stack([slow_triangle(plane[:height, :width], 2) for plane in luv])
    magnitude, orientation = slow_gradient(colours, bool(full))
    magnitude = magnitude / (slow_triangle(magnitude, 3) + 0.01)
    expected = np.concatenate([colours, magnitude[None]])
    expected = expected.reshape(4, height // shrink, shrink, width // shrink, shrink)
    expected = expected.mean(axis=(2, 4)) / (1 + 1e-6 * (shrink > 1))
    histograms = slow_histograms(
        magnitude, orientation, shrink, parameters.histogram, parameters.gradient.full
    )
    got = compute_channels(luv, parameters)
    assert got.dtype == np.float32
    assert len(got) == parameters.n_channels == len(parameters.kinds) == 9
    np.testing.assert_allclose(got[:4], expected, atol=2e-5)
    # A step of the table of angles is worth up to a hundredth where the gradient is along x.
    np.testing.assert_allclose(got[4:], histograms, atol=0.02)
    np.testing.assert_allclose(got[4:].mean(), histograms.mean(), rtol=1e-4)


@settings(max_examples=40)
@given(SIZES, SIZES, st.integers(0, 99))
def test_resampling_against_matrices(source, target, seed) -> None:
    planes = noise(*source, n_planes=2, seed=seed)
    expected = slow_axis(source[0], target[0]) @ planes.astype(np.float64)
    expected = expected @ slow_axis(source[1], target[1]).T
    got = resample(planes, *target, factor=(1.0, -3.0))
    np.testing.assert_allclose(got[0], expected[0], atol=3e-6)
    np.testing.assert_allclose(got[1], -3.0 * expected[1], atol=9e-6)


@settings(max_examples=60)
@given(st.integers(1, 3000), st.integers(1, 3000))
def test_resampling_weights_are_means_inside_of_the_source(n_source, n_target) -> None:
    start, weights = resampling_weights(n_source, n_target)
    assert weights.dtype == np.float32
    assert weights.shape[1] == len(start) == n_target
    assert (weights >= 0).all()
    total = weights.sum(axis=0)
    assert total.max() < 1 + 1e-6
    # In a long axis, up to a thousandth may be left out on either side.
    assert total.min() > 1 - (1e-4 if n_source < 900 else 2.2e-3)
    assert int(start.max()) + len(weights) <= n_source


def test_same_size_is_not_divided_without_a_factor() -> None:
    planes = noise(5, 7)
    np.testing.assert_array_equal(resample(planes, 5, 7), planes)
    constant = resample(np.ones((1, 40, 50)), 13, 77)
    np.testing.assert_allclose(constant, 1 / (1 + 1e-6), rtol=5e-6)
    assert (resample(planes, 5, 7, factor=2.0) < 2 * planes).any()


@settings(max_examples=40)
@given(SIZES, st.integers(0, 9), st.integers(0, 99))
def test_triangle_filter_against_convolution(size, radius, seed) -> None:
    planes = noise(*size, n_planes=2, seed=seed)
    got = triangle_filter(planes, radius)
    for plane, smooth in zip(planes, got, strict=True):
        np.testing.assert_allclose(smooth, slow_triangle(plane, radius), atol=1e-5)
    np.testing.assert_allclose(triangle_filter(np.ones((1, *size)), radius), 1.0, atol=1e-5)


@settings(max_examples=30)
@given(SIZES.filter(lambda size: min(size) > 1), st.booleans(), st.integers(0, 99))
def test_gradient_against_angles(size, full, seed) -> None:
    planes = noise(*size, seed=seed)
    magnitude, orientation = gradient(planes, full)
    expected, angle = slow_gradient(planes, full)
    np.testing.assert_allclose(magnitude, expected, atol=1e-6)
    turn = 2 * np.pi if full else np.pi
    assert (orientation >= 0).all()
    assert (orientation < turn).all()
    difference = np.abs(orientation - angle)
    assert np.minimum(difference, turn - difference).max() < 0.015


def test_the_first_of_equally_strong_planes_has_the_orientation() -> None:
    ramp = np.tile(np.arange(4.0), (4, 1))
    for planes, angle in (((ramp, ramp.T), 0.0), ((ramp.T, ramp), np.pi / 2)):
        magnitude, orientation = gradient(np.stack(planes))
        np.testing.assert_allclose(magnitude, 1.0)
        np.testing.assert_allclose(orientation, angle, atol=1e-6)


@settings(max_examples=40)
@given(SIZES, st.integers(1, 5), st.booleans(), st.integers(1, 3))
def test_any_size_has_channels_or_says_why(size, shrink, soft, n_orientations) -> None:
    parameters = ChannelParameters(
        shrink=shrink, histogram=HistogramParameters(n_orientations=n_orientations, soft=soft)
    )
    luv = rgb_to_luv(np.full((*size, 3), 77, np.uint8))
    if min(size) < shrink:
        with pytest.raises(ValueError, match=r"smaller than a cell .* reduce shrink"):
            compute_channels(luv, parameters)
        return
    got = compute_channels(luv, parameters)
    assert got.shape == (4 + n_orientations, size[0] // shrink, size[1] // shrink)
    np.testing.assert_allclose(got[:3], luv[:, :1, :1] * np.ones_like(got[:3]), 3e-6)
    assert np.abs(got[3:]).max() < 1e-7


@given(st.integers(0, 255))
def test_grey_has_the_chromaticity_of_white(level) -> None:
    lightness, u, v = rgb_to_luv(np.full((1, 2, 3), level, np.uint8))[:, 0, 0]
    assert 0.0 <= lightness < 0.371
    np.testing.assert_allclose([u, v], [88 / 270, 134 / 270], atol=2e-4)


def test_floats_and_bytes_are_the_same_image() -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    luv = rgb_to_luv(image)
    assert luv.flags.c_contiguous
    for other in (image / 255, image.astype(np.float32) / np.float32(255)):
        got = rgb_to_luv(other)
        assert np.quantile(np.abs(got - luv), 0.95) < 1e-6
        assert np.abs(got - luv).max() < 0.01  # one step of the table of lightness
    np.testing.assert_array_equal(rgb_to_luv(image[::-1, ::-1]), luv[:, ::-1, ::-1])


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_matter(n_jobs) -> None:
    image = np.random.default_rng(1).integers(0, 256, (41, 53, 3), dtype=np.uint8)
    luv = rgb_to_luv(image)
    parameters = ChannelParameters(shrink=2, smoothing=1)
    threads = Threads(n_jobs)
    np.testing.assert_array_equal(rgb_to_luv(image, threads), luv)
    np.testing.assert_array_equal(
        compute_channels(luv, parameters, threads), compute_channels(luv, parameters)
    )
    for size in ((80, 30), (20, 90)):
        np.testing.assert_array_equal(resample(luv, *size, threads=threads), resample(luv, *size))
    one_row = luv[:, :1]
    np.testing.assert_array_equal(triangle_filter(one_row, 4, threads), triangle_filter(one_row, 4))


def test_values_that_are_not_numbers_stay_inside_of_tables() -> None:
    planes = noise(12, 12)
    planes[0, 3, 3], planes[1, 6, 6], planes[2, 9, 9] = np.nan, np.inf, -3e38
    magnitude, orientation = gradient(planes)
    assert (orientation >= 0).all()
    assert (orientation < np.pi).all()
    assert compute_channels(planes, ChannelParameters(shrink=2)).shape == (10, 6, 6)
    histograms = orientation_histograms(np.ones((4, 4)), np.full((4, 4), 1e30), 2)
    assert histograms.shape == (6, 2, 2)
    assert magnitude.shape == (12, 12)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ChannelParameters(shrink=0), ValueError, "shrink must be an integer"),
        (lambda: ChannelParameters(shrink=33), ValueError, "shrink must be an integer"),
        (lambda: ChannelParameters(shrink=2.0), TypeError, "shrink must be an integer"),
        (lambda: ChannelParameters(smoothing=-1), ValueError, "smoothing must be"),
        (lambda: ChannelParameters(gradient=None), TypeError, "gradient must be a Gradient"),
        (lambda: ChannelParameters(histogram=6), TypeError, "histogram must be a Histogram"),
        (lambda: GradientParameters(norm_radius=65), ValueError, "norm_radius must be"),
        (lambda: GradientParameters(norm_constant=0.0), ValueError, "norm_constant must be"),
        (lambda: GradientParameters(norm_constant=np.nan), ValueError, "norm_constant must be"),
        (lambda: GradientParameters(full=1), TypeError, "full must be True or False"),
        (lambda: HistogramParameters(n_orientations=37), ValueError, "n_orientations must be"),
        (lambda: HistogramParameters(soft="yes"), TypeError, "soft must be True or False"),
        (lambda: rgb_to_luv(np.zeros((4, 4), np.uint8)), ValueError, "convert it to RGB"),
        (lambda: rgb_to_luv(np.zeros((0, 4, 3), np.uint8)), ValueError, "convert it to RGB"),
        (lambda: rgb_to_luv(np.full((4, 4, 3), 255.0)), ValueError, "divide it by 255"),
        (lambda: rgb_to_luv(np.full((4, 4, 3), np.nan)), ValueError, "divide it by 255"),
        (lambda: rgb_to_luv(np.zeros((4, 4, 3), int)), TypeError, "image.astype"),
        (lambda: triangle_filter(np.zeros((4, 4)), 1), ValueError, "planes must have a shape"),
        (lambda: triangle_filter([[["a"]]], 1), TypeError, "planes must hold numbers"),
        (lambda: triangle_filter(noise(4, 4), 65), ValueError, "radius must be"),
        (lambda: resample(noise(4, 4), 0, 4), ValueError, "height must be"),
        (lambda: resample(noise(4, 4), 4, 4.5), TypeError, "width must be"),
        (lambda: resample(noise(4, 4), 2, 2, (1.0, 2.0)), ValueError, "one for each of 3"),
        (lambda: resample(noise(4, 4), 2, 2, np.inf), ValueError, "factor must be a finite"),
        (lambda: resampling_weights(0, 4), ValueError, "n_source must be"),
        (lambda: resampling_weights(4, 2**25), ValueError, "n_target must be"),
        (lambda: compute_channels(noise(4, 4, 2)), ValueError, "use rgb_to_luv"),
        (lambda: compute_channels(noise(4, 4), {}), TypeError, "must be a ChannelParameters"),
        (
            lambda: orientation_histograms(np.ones((4, 4)), np.ones((4, 5)), 2),
            ValueError,
            "must have one shape",
        ),
    ],
)  # fmt: skip
def test_errors(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make()


def test_kinds() -> None:
    parameters = ChannelParameters()
    assert parameters.kinds == (channels.COLOUR,) * 3 + (channels.MAGNITUDE,) + (2,) * 6
    assert parameters == ChannelParameters(4, 0, GradientParameters(), HistogramParameters())
    assert channels.HISTOGRAM == 2


def test_workspaces_use_their_arrays_again() -> None:
    workspace = Workspace()
    first = workspace.take("a", 2, 3, 4)
    assert (first.shape, first.dtype, workspace.n_bytes) == ((2, 3, 4), np.float32, 96)
    assert first.flags.c_contiguous
    smaller = workspace.take("a", 1, 5)
    assert smaller.shape == (1, 5)
    assert np.shares_memory(first, smaller)
    assert not np.shares_memory(workspace.take("b", 2), first)
    assert workspace.take("a", 5, 5).shape == (5, 5)
    assert workspace.n_bytes == 4 * (25 + 2)


def test_channels_in_a_used_workspace_are_the_same() -> None:
    workspace, parameters = Workspace(), ChannelParameters(shrink=2, smoothing=2)
    rng = np.random.default_rng(0)
    for size in ((12, 20), (30, 26), (8, 8)):
        luv = rng.random((3, *size), dtype=np.float32)
        found = channels_of(luv, parameters, workspace, Threads())
        np.testing.assert_array_equal(found, compute_channels(luv, parameters))
