"""Pyramids against a pyramid made step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost._utils.parallel import Threads
from badacost.detection.channels import (
    ChannelParameters,
    channels_of,
    compute_channels,
    resample,
    rgb_to_luv,
    triangle_filter,
)
from badacost.detection.pyramid import PyramidParameters, pyramid_levels, pyramid_scales

CHANNELS = ChannelParameters(shrink=2)


def random_image(height: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("shrink", [2, 4])
@pytest.mark.parametrize("smoothing", [0, 1])
def test_levels_step_by_step(shrink, smoothing) -> None:
    channels = ChannelParameters(shrink=shrink)
    parameters = PyramidParameters(
        channels, 4, 1, 2, (0.1, 0.2, 0.3), (2 * shrink, shrink), (24, 28), smoothing
    )
    image = random_image(70, 91)
    luv = rgb_to_luv(image)
    levels = list(pyramid_levels(image, parameters))
    assert [level.is_real for level in levels] == [i % 3 == 0 for i in range(11)]
    nearest = [0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]
    exponents = np.array((0.1, 0.2, 0.3))[list(channels.kinds)]
    for level, real in zip(levels, nearest, strict=True):
        source = levels[real]
        size = [round(70 * source.scale_y), round(91 * source.scale_x)]
        expected = compute_channels(resample(luv, *size), channels)
        if level is not source:
            factor = (level.scale / source.scale) ** -exponents
            cells = round(70 * level.scale_y) // shrink, round(91 * level.scale_x) // shrink
            expected = resample(expected, *cells, factor=factor)
        expected = triangle_filter(expected, smoothing)
        inner = level.channels[:, 2:-2, 1:-1]
        np.testing.assert_allclose(inner, expected, atol=1e-5)
        colours = np.pad(inner[:3], ((0, 0), (2, 2), (1, 1)), mode="edge")
        np.testing.assert_array_equal(level.channels[:3], colours)
        others = np.pad(inner[3:], ((0, 0), (2, 2), (1, 1)))
        np.testing.assert_array_equal(level.channels[3:], others)


def test_levels_below_one_half_come_from_the_half_size_image() -> None:
    parameters = PyramidParameters(CHANNELS, 2, 0, 1, min_size=(16, 16))
    image = random_image(64, 96)
    luv = rgb_to_luv(image)
    levels = {level.scale: level for level in pyramid_levels(image, parameters)}
    half = resample(luv, 32, 48)
    quarter = compute_channels(resample(half, 16, 24), CHANNELS)
    np.testing.assert_array_equal(levels[0.25].channels, triangle_filter(quarter, 1))
    at_once = compute_channels(resample(luv, 16, 24), CHANNELS)
    assert not np.array_equal(quarter, at_once)


def test_luv_is_taken_as_it_is() -> None:
    image = random_image(40, 50)
    parameters = PyramidParameters(CHANNELS)
    pairs = zip(
        pyramid_levels(image, parameters),
        pyramid_levels(rgb_to_luv(image), parameters),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one.channels, other.channels)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_matter(n_jobs) -> None:
    image = random_image(75, 101)
    parameters = PyramidParameters(CHANNELS, 3, 1, 2, (0, 0.1, 0.1), (4, 6))
    threads = Threads(n_jobs)
    pairs = zip(
        pyramid_levels(image, parameters, threads),
        pyramid_levels(image, parameters),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one.channels, other.channels)


@settings(max_examples=60)
@given(
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.tuples(st.integers(4, 40), st.integers(4, 40)),
    st.integers(1, 9),
    st.integers(0, 2),
    st.integers(0, 9),
    st.sampled_from([1, 2, 3, 4]),
)
def test_any_image(size, min_size, n_per_octave, n_octaves_up, n_approximated, shrink) -> None:
    parameters = PyramidParameters(
        ChannelParameters(shrink=shrink),
        n_per_octave,
        n_octaves_up,
        n_approximated,
        min_size=min_size,
    )
    scales = pyramid_scales(size, parameters)
    ratio = min(size[0] / min_size[0], size[1] / min_size[1])
    assert bool(scales) == (2**n_octaves_up * ratio >= 1)
    nominal = [scale for scale, _, _ in scales]
    assert nominal == sorted(set(nominal), reverse=True)
    levels = list(pyramid_levels(random_image(*size), parameters))
    assert len(levels) == len(scales)
    for level in levels:
        rows, columns = level.channels.shape[1:]
        assert (rows, columns) >= (1, 1)
        assert level.scale_y == rows * shrink / size[0]
        assert level.scale_x == columns * shrink / size[1]
        # The shorter side differs by a quarter of a cell at most, the other by half of one.
        assert abs(level.scale - level.scale_y) * size[0] <= 0.501 * shrink
        assert abs(level.scale - level.scale_x) * size[1] <= 0.501 * shrink
        assert np.isfinite(level.channels).all()


def test_half_a_cell_is_rounded_up() -> None:
    parameters = PyramidParameters(CHANNELS, n_per_octave=1, min_size=(4, 4))
    ((scale, scale_y, scale_x),) = pyramid_scales((5, 5), parameters)
    assert scale == pytest.approx(1.2)
    assert scale_y == scale_x == 6 / 5


def test_only_one_level_is_kept(monkeypatch) -> None:
    """A level at a time is computed, when it is asked for."""
    computed = []

    def counted(*args):
        computed.append(args)
        return channels_of(*args)

    monkeypatch.setattr("badacost.detection.pyramid.channels_of", counted)
    parameters = PyramidParameters(CHANNELS, 4, 0, 3, min_size=(16, 16))
    levels = pyramid_levels(random_image(64, 64), parameters)
    assert not computed
    for n_computed in (1, 1, 1, 2, 2, 2, 2, 3):
        next(levels)
        assert len(computed) == n_computed


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"channels": None}, TypeError, "channels must be a ChannelParameters"),
        ({"n_per_octave": 0}, ValueError, "n_per_octave must be"),
        ({"n_per_octave": 65}, ValueError, "n_per_octave must be"),
        ({"n_octaves_up": 5}, ValueError, "n_octaves_up must be"),
        ({"n_octaves_up": True}, TypeError, "n_octaves_up must be"),
        ({"n_approximated": -1}, ValueError, "n_approximated must be"),
        ({"lambdas": (0.0, 0.0)}, ValueError, "lambdas must be 3 numbers"),
        ({"lambdas": (0.0, np.nan, 0.0)}, ValueError, "lambdas must be"),
        ({"lambdas": 1.0}, ValueError, "lambdas must be 3 numbers"),
        ({"pad": (3, 2)}, ValueError, "pad must be a multiple of shrink = 2"),
        ({"pad": (-2, 2)}, ValueError, "pad must be"),
        ({"pad": (2, 10**9)}, ValueError, "pad must be"),
        ({"min_size": (1, 16)}, ValueError, "min_size must be"),
        ({"min_size": (16, 16.0)}, TypeError, "min_size must be"),
        ({"smoothing": 2}, ValueError, "smoothing must be"),
    ],
)
def test_parameters_are_checked(changes, error, message) -> None:
    with pytest.raises(error, match=message):
        PyramidParameters(**{"channels": CHANNELS, **changes})


def test_lists_become_tuples() -> None:
    parameters = PyramidParameters(CHANNELS, lambdas=[0, 0.1, 0.2], pad=[2, 4], min_size=[20, 30])
    assert parameters.pad == (2, 4)
    assert hash(parameters) == hash(
        PyramidParameters(CHANNELS, lambdas=(0, 0.1, 0.2), pad=(2, 4), min_size=(20, 30))
    )


def test_images_are_checked() -> None:
    with pytest.raises(ValueError, match="use rgb_to_luv"):
        pyramid_levels(np.zeros((8, 8, 3), np.float32))
    with pytest.raises(ValueError, match="convert it to RGB"):
        pyramid_levels(np.zeros((8, 8), np.uint8))
    with pytest.raises(ValueError, match="height must be"):
        pyramid_scales((0, 5))
    huge = np.broadcast_to(np.zeros(3, np.uint8), (700, 800, 3))
    with pytest.raises(ValueError, match="reduce the image or n_octaves_up"):
        pyramid_levels(huge, PyramidParameters(CHANNELS, n_octaves_up=4))
