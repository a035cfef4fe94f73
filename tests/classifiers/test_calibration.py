"""Temperature scaling; sigmoid and isotonic calibration are tested with MinimumCostClassifier."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.classifiers.calibration import TemperatureScaling


@settings(max_examples=30)
@given(st.integers(2, 5), st.floats(0.1, 5), st.integers(0, 2**32 - 1))
def test_temperature_minimises_the_log_loss(n_classes, sharpness, seed) -> None:
    rng = np.random.default_rng(seed)
    beliefs = rng.dirichlet(np.ones(n_classes), 30)
    y = (beliefs**sharpness).cumsum(axis=1)
    y = (rng.uniform(size=(30, 1)) * y[:, -1:] > y).sum(axis=1)
    weight = rng.uniform(0.1, 1, 30)
    scaling = TemperatureScaling.fit(beliefs, y, weight)

    def loss(temperature, smoothing=scaling.smoothing_):
        scaled = TemperatureScaling(temperature, smoothing).predict_proba(beliefs)
        np.testing.assert_allclose(scaled.sum(axis=1), 1)
        return -np.log(scaled[np.arange(30), y]) @ weight / weight.sum()

    for factor in (0.5, 0.9, 1.1, 2.0):
        other = np.clip(scaling.temperature_ * factor, np.exp(-5), np.exp(5))
        assert loss(scaling.temperature_) <= loss(other) + 1e-7
    assert loss(scaling.temperature_) <= loss(1.0, 1e-12) + 1e-7


def test_temperature_survives_certainty() -> None:
    certain = np.eye(2)[[0] * 10]
    scaling = TemperatureScaling.fit(certain, [0] * 8 + [1] * 2)
    np.testing.assert_allclose(scaling.predict_proba(certain[:1]), [[0.8, 0.2]], atol=1e-4)
    assert np.isfinite(TemperatureScaling.fit(certain, [0] * 10).temperature_)


def test_known_numbers_are_floats() -> None:
    """An altered file may have integers, of any size."""
    scaling = TemperatureScaling(temperature_=2**70, smoothing_=1)
    assert (type(scaling.temperature_), type(scaling.smoothing_)) == (float, float)
    with pytest.raises(OverflowError):
        TemperatureScaling(temperature_=10**400, smoothing_=0.5)
