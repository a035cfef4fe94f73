"""Exponents of the approximation where they are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.detection.channels import ChannelParameters, GradientParameters, rgb_to_luv
from badacost.detection.pyramid import PyramidParameters, estimate_lambdas, pyramid_levels

CARS = ChannelParameters(shrink=2)
NOT_NORMALISED = ChannelParameters(shrink=2, gradient=GradientParameters(norm_radius=0))
SLOPE = np.tile(np.linspace(0.2, 0.8, 160, dtype=np.float32), (3, 120, 1))


def noise(height: int, width: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_a_slope_is_steeper_in_a_smaller_image() -> None:
    assert estimate_lambdas([SLOPE], NOT_NORMALISED) == pytest.approx((0, 1, 1), abs=0.01)


def test_noise_averages_out() -> None:
    """The mean of n pixels deviates 1 / sqrt(n) as much; pixels that share others, a bit less."""
    planes = np.random.default_rng(0).normal(0.5, 0.05, (3, 256, 256)).astype(np.float32)
    found = estimate_lambdas([planes], NOT_NORMALISED)
    assert found == pytest.approx((0, -1, -1), abs=0.25)


def test_approximated_levels_have_the_means_of_computed_ones() -> None:
    def means(n_approximated: int, lambdas: tuple[float, float, float]) -> np.ndarray:
        parameters = PyramidParameters(
            NOT_NORMALISED, n_per_octave=4, n_approximated=n_approximated, lambdas=lambdas
        )
        return np.array([level.channels[3:].mean() for level in pyramid_levels(SLOPE, parameters)])

    def error(lambdas: tuple[float, float, float]) -> float:
        return float(np.abs(means(3, lambdas) / means(0, lambdas) - 1.0).max())

    assert error((0.0, 0.0, 0.0)) > 0.25
    assert error(estimate_lambdas([SLOPE], NOT_NORMALISED)) < 0.03


def test_images_of_many_sizes_count_as_far_as_the_smallest_reaches() -> None:
    large, small = noise(90, 70, 0), noise(41, 60, 1)
    both = estimate_lambdas(iter([large, small]), CARS)
    assert both == estimate_lambdas([small, rgb_to_luv(large)], CARS)
    low, high = sorted(estimate_lambdas([image], CARS)[1] for image in (large[:41, :60], small))
    assert low - 0.05 < both[1] < high + 0.05


def test_a_flat_image_has_no_part() -> None:
    image = noise(64, 64, 0)
    flat = np.full_like(image, 200)
    assert estimate_lambdas([flat, image], CARS) == estimate_lambdas([image], CARS)
    assert np.isfinite(estimate_lambdas([flat], CARS)).all()


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3, 4, 7]),
)
def test_any_size_is_measured_or_refused(sizes, shrink) -> None:
    images = [noise(*size, seed) for seed, size in enumerate(sizes)]
    parameters = ChannelParameters(shrink=shrink)
    if min(map(min, sizes)) < -(-max(16, 8 * shrink) // shrink) * shrink:
        with pytest.raises(ValueError, match="pixels a side"):
            estimate_lambdas(images, parameters)
    else:
        colour, *others = estimate_lambdas(images, parameters)
        assert colour == pytest.approx(0.0, abs=1e-4)
        assert np.isfinite(others).all()


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        ([], ValueError, "at least one image"),
        ([np.zeros((64, 64), np.uint8)], ValueError, "shape"),
        ([np.zeros((64, 64, 3), np.float32)], ValueError, "rgb_to_luv"),
        ([np.full((3, 64, 64), np.nan, np.float32)], ValueError, "rgb_to_luv"),
        ([np.full((3, 64, 64), -1.0, np.float32)], ValueError, "rgb_to_luv"),
        ([np.full((3, 64, 64), "a")], TypeError, "numbers"),
    ],
)
def test_what_is_no_image_is_refused(images, error, message) -> None:
    with pytest.raises(error, match=message):
        estimate_lambdas(images, CARS)


def test_parameters_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="ChannelParameters"):
        estimate_lambdas([noise(64, 64, 0)], PyramidParameters())
