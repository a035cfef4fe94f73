"""Probabilities of scores: they rise, come back, and are those of the objects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from badacost.detection.score_curve import ScoreCurve

CURVES = st.builds(ScoreCurve, st.floats(1e-3, 1e3), st.floats(-100.0, 100.0))


class TestCurve:
    @given(CURVES, st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
    def test_the_order_of_scores_stays(self, curve, scores) -> None:
        probabilities = curve.probabilities(np.sort(scores))
        assert (np.diff(probabilities) >= 0.0).all()
        assert (probabilities >= 0.0).all()
        assert (probabilities <= 1.0).all()

    @given(CURVES, st.floats(1e-6, 1.0 - 1e-6))
    def test_the_score_of_a_probability(self, curve, probability) -> None:
        assert curve.probabilities(curve.score(probability)) == pytest.approx(probability, rel=1e-6)

    def test_known_values(self) -> None:
        curve = ScoreCurve(slope=2.0, intercept=-1.0)
        np.testing.assert_allclose(curve.probabilities([0.5, 1.5]), [0.5, expit(2.0)])
        assert curve.score(0.5) == 0.5

    @pytest.mark.parametrize("probability", [0.0, 1.0, -0.5, 2.0, math.nan])
    def test_what_is_no_probability(self, probability) -> None:
        with pytest.raises(ValueError, match="greater than 0 and less than 1"):
            ScoreCurve(1.0, 0.0).score(probability)

    @pytest.mark.parametrize(
        ("slope", "intercept", "error"),
        [
            (0.0, 0.0, ValueError),
            (-1.0, 0.0, ValueError),
            (math.inf, 0.0, ValueError),
            (math.nan, 0.0, ValueError),
            (1.0, math.nan, ValueError),
            (1.0, 1e300, ValueError),
            ("1", 0.0, TypeError),
            (True, 0.0, TypeError),
        ],
    )
    def test_what_is_no_curve(self, slope, intercept, error) -> None:
        with pytest.raises(error, match=r"slope must|intercept must"):
            ScoreCurve(slope, intercept)


class TestFit:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
    def test_recovers_a_planted_curve(self, scale) -> None:
        rng = np.random.default_rng(0)
        scores = rng.uniform(-3.0, 5.0, 5000)
        right = rng.uniform(size=5000) < expit(1.5 * scores - 1.0)
        curve = ScoreCurve.fit(scores * scale, right)
        expected = expit(1.5 * np.linspace(-3.0, 5.0, 9) - 1.0)
        got = curve.probabilities(scale * np.linspace(-3.0, 5.0, 9))
        np.testing.assert_allclose(got, expected, atol=0.05)

    def test_never_falls(self) -> None:
        scores = np.linspace(0.0, 1.0, 50)
        assert ScoreCurve.fit(scores, scores < 0.5).slope > 0.0

    @pytest.mark.parametrize("centre", [0.0, 5.0, -1e9])
    @pytest.mark.parametrize("width", [0.0, 1e-15, 1e-9, 1e-6])
    def test_scores_that_hardly_differ(self, centre, width) -> None:
        scores = centre + width * np.arange(6)
        curve = ScoreCurve.fit(scores, np.arange(6) > 2)
        assert np.isfinite(curve.probabilities(scores)).all()

    @pytest.mark.parametrize("right", [True, False])
    def test_both_kinds_are_needed(self, right) -> None:
        with pytest.raises(ValueError, match="needs right and wrong detections"):
            ScoreCurve.fit(np.arange(5.0), np.full(5, right))
