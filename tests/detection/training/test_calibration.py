"""Thresholds, floor and probabilities that images held out decide on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from badacost._utils.parallel import Threads
from badacost.detection import Detector, Suppression
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes
from badacost.detection.score_curve import ScoreCurve
from badacost.detection.training import calibration as module
from badacost.detection.training.calibration import Calibration, calibrated, evaluated, opened

UNITS = [4.0]


@pytest.fixture(scope="module")
def truth() -> list:
    return make_scenes(6, size=(120, 160), random_state=21)


@pytest.fixture(scope="module")
def pixels(truth) -> list[np.ndarray]:
    return [scene.load() for scene in truth]


@pytest.fixture(scope="module")
def cars() -> Detector:
    """The first trees of a detector, which make mistakes."""
    detector = synthetic_cars()
    (cascade,) = detector.cascades
    trees = cascade.forest.trees()[:8]
    forest = cascade.forest.from_trees(
        trees, cascade.forest.tree_weights[:8], cascade.forest.table, cascade.forest.n_features
    )
    few = replace(cascade, forest=forest, rejections=-math.inf, min_score=-math.inf)
    return replace(
        detector, cascades=[few], suppression=Suppression(overlap=0.3, vote=0.5)
    ).with_pyramid(n_per_octave=4, n_approximated=3, n_octaves_up=0)  # fmt: skip


@pytest.fixture(scope="module")
def unit(cars, pixels) -> float:
    """About the score of an object."""
    best = [cars.candidates(image).scores.max() for image in pixels]
    return float(np.median(best))


@pytest.fixture(scope="module")
def found(cars, unit, pixels, truth) -> Calibration:
    threads = Threads()
    return calibrated(cars, [unit], pixels, truth, false_alarms=2.0, threads=threads)


class TestCalibrated:
    def test_is_complete(self, found, unit) -> None:
        scales = [scale * each for scale in module._SCALES for each in module._REJECTIONS]
        assert found.rejection in scales
        assert -max(module._SCALES) / 3 <= found.min_score < 1.0
        assert found.curve.slope > 0.0
        assert 0.3 < found.precision <= 1.0

    @pytest.mark.parametrize("wanted", [0.5, 2.0])
    def test_the_floor_leaves_as_many_false_alarms(
        self, cars, unit, pixels, truth, threads, wanted
    ) -> None:
        got = calibrated(cars, [unit], pixels, truth, false_alarms=wanted, threads=threads)
        detector = got.applied(cars, [unit])
        outcomes = evaluated(detector, pixels, truth, threads).outcomes.values()
        n_wrong = sum(int((outcome.verdicts < 0).sum()) for outcome in outcomes)
        assert abs(n_wrong - wanted * len(truth)) <= 1 + 0.15 * wanted * len(truth)

    def test_more_false_alarms_lower_the_floor(self, cars, unit, pixels, truth, threads) -> None:
        floors = [
            calibrated(
                cars, [unit], pixels, truth, false_alarms=wanted, threads=threads
            ).min_score
            for wanted in (0.0, 1.0, 4.0, 1e4)
        ]  # fmt: skip
        assert (
            floors[0]
            > floors[1]
            > floors[2]
            >= floors[3]
            == pytest.approx(-max(module._SCALES) / 3)
        )

    def test_rejections_cost_no_average_precision(self, cars, unit, pixels, truth, threads) -> None:
        plain = replace(cars, suppression=Suppression(overlap=0.3))  # scores weigh votes
        got = calibrated(plain, [unit], pixels, truth, false_alarms=1e4, threads=threads)
        wide = evaluated(opened(plain, [unit]), pixels, truth, threads).ap
        saved = evaluated(got.applied(plain, [unit]), pixels, truth, threads).ap
        assert saved >= wide - 0.001
        assert saved == pytest.approx(got.precision)

    def test_probabilities_are_those_of_the_detections(
        self, cars, unit, pixels, truth, threads, found
    ) -> None:
        detector = found.applied(cars, [unit])
        outcomes = evaluated(detector, pixels, truth, threads).outcomes.values()
        scores = np.concatenate([outcome.detections.scores for outcome in outcomes])
        right = np.concatenate([outcome.verdicts for outcome in outcomes]) > 0
        assert ((scores >= 0.0) & (scores <= 1.0)).all()
        assert scores.mean() == pytest.approx(right.mean(), abs=0.15)
        assert scores[right].mean() > scores[~right].mean() + 0.2

    def test_the_curve_does_not_change_average_precision(
        self, cars, unit, pixels, truth, threads, found
    ) -> None:
        # Without votes, which scores weigh.
        plain = replace(cars, suppression=Suppression(overlap=0.3))
        detector = found.applied(plain, [unit])
        without = replace(detector, curve=None)
        results = [evaluated(each, pixels, truth, threads).ap for each in (detector, without)]
        assert results[0] == results[1]

    def test_the_number_of_threads_does_not_matter(self, cars, unit, pixels, truth, found) -> None:
        three = Threads(3)
        again = calibrated(cars, [unit], pixels, truth, false_alarms=2.0, threads=three)
        assert again == found

    def test_nothing_is_found(self, cars, unit, truth, threads) -> None:
        black = [np.zeros((40, 60, 3), np.uint8)] * len(truth)
        got = calibrated(cars, [1e3 * unit], black, truth, false_alarms=2.0, threads=threads)
        assert got.precision == 0.0
        assert got.rejection == max(module._SCALES) * min(module._REJECTIONS)
        hopeless = calibrated(cars, [1e-6], black, truth, false_alarms=2.0, threads=threads)
        assert hopeless.curve is None
        assert evaluated(hopeless.applied(cars, [1e-6]), black, truth, threads).ap == 0.0


class TestApplied:
    def test_each_cascade_has_its_unit(self, cars) -> None:
        (cascade,) = cars.cascades
        two = replace(
            cars, cascades=[cascade, cascade], names=[f"view {k}" for k in range(16)], angles=None,
            aspect_ratios=None,
        )  # fmt: skip
        curve = ScoreCurve(1.0, 0.0)
        got = Calibration(0.5, -1.5, curve).applied(two, [4.0, 2.0])
        assert [set(each.rejections.tolist()) for each in got.cascades] == [{-2.0}, {-1.0}]
        assert [each.min_score for each in got.cascades] == [-2.0, -1.0]
        assert got.curve == ScoreCurve(1.0 / 3.0, 0.0)
        higher = Calibration(0.5, 0.25, curve).applied(two, [4.0, 2.0])
        assert [each.min_score for each in higher.cascades] == [0.75, 0.75]

    def test_a_detector_of_twice_the_scale_finds_the_same(
        self, cars, unit, pixels, truth, threads, found
    ) -> None:
        (cascade,) = cars.cascades
        weights = 2.0 * cascade.forest.tree_weights
        doubled = replace(
            cars, cascades=[replace(cascade, forest=replace(cascade.forest, tree_weights=weights))]
        )
        one, two = found.applied(cars, [unit]), found.applied(doubled, [2.0 * unit])
        for image in pixels[:2]:
            got, expected = two.detect(image), one.detect(image)
            np.testing.assert_allclose(got.boxes, expected.boxes)
            np.testing.assert_allclose(got.scores, expected.scores)

    def test_without_a_floor_the_rejection_decides(self, cars) -> None:
        got = Calibration(0.5, -math.inf).applied(cars, UNITS)
        assert got.cascades[0].min_score == -2.0
        assert got.curve is None

    def test_opened(self, cars) -> None:
        wide = opened(cars, UNITS, rejection=0.75, floor=0.25)
        assert set(wide.cascades[0].rejections.tolist()) == {-3.0}
        assert wide.cascades[0].min_score == -1.0
        assert wide.curve.score(0.5) == 0.0
        assert opened(cars, [1e-6]).curve.slope > 1e6

    @pytest.mark.parametrize(
        ("values", "name"),
        [
            ({"rejection": "1"}, "rejection"),
            ({"rejection": -1.0}, "rejection"),
            ({"rejection": math.nan}, "rejection"),
            ({"min_score": None}, "min_score"),
            ({"min_score": math.nan}, "min_score"),
            ({"min_score": math.inf}, "min_score"),
            ({"precision": 2.0}, "precision"),
            ({"precision": "1"}, "precision"),
        ],
    )
    def test_refused(self, values, name) -> None:
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            Calibration(**({"rejection": 0.5, "min_score": 0.0} | values))
