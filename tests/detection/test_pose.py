"""Boxes and views from windows: planted relations come back, costs are those of the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from badacost.detection import pose as module
from badacost.detection.pose import N_OFFSETS, PoseRegression, offsets_of

NO_VIEWS = np.zeros((0, 0))
COSTS = np.array([[0.0, 1.0, 4.0], [9.0, 0.0, 2.0], [3.0, 5.0, 0.0]])  # asymmetric


def planted(n: int, seed: int = 0, n_features: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Features, and offsets that are a linear function of them."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, n_features)).astype(np.float32) + 3.0
    weights = np.random.default_rng(99).normal(0.0, 0.05, (n_features, N_OFFSETS))
    return features, features @ weights + [0.1, -0.05, 0.2, 0.4]


def fitted(features, offsets, labels=None, groups=None, **options) -> PoseRegression:
    given_options = {"view_costs": NO_VIEWS, "circular": False} | options
    labels = np.zeros(len(features), np.int64) if labels is None else labels
    groups = np.arange(len(features)) if groups is None else groups
    return PoseRegression.fit(features, offsets, labels, groups, **given_options)


def of_shares(shares, costs) -> PoseRegression:
    """A regression whose shares are features, and the features to give it."""
    n_views = len(costs)
    weights = np.hstack([np.zeros((n_views, N_OFFSETS)), np.eye(n_views)]).astype(np.float32)
    return PoseRegression(weights, np.zeros(N_OFFSETS + n_views), np.asarray(costs, np.float64))


class TestFit:
    def test_recovers_a_planted_relation(self) -> None:
        pose = fitted(*planted(400))
        features, offsets = planted(100, seed=1)
        errors = pose.outputs(features) - offsets
        assert np.abs(errors).max() < 0.02 * offsets.std()
        assert pose.weights.dtype == np.float32
        assert pose.n_views == 0

    def test_does_not_learn_noise(self) -> None:
        rng = np.random.default_rng(0)
        features = rng.standard_normal((120, 60)).astype(np.float32)
        pose = fitted(features, rng.standard_normal((120, N_OFFSETS)))
        fresh = pose.outputs(rng.standard_normal((400, 60)).astype(np.float32))
        assert fresh.std(axis=0).mean() < 0.25  # 1 in what was learned from

    def test_penalties_are_chosen_for_what_was_left_out_as_a_whole(self) -> None:
        # Windows of a group are the same: left out alone, each would be known from its twins.
        rng = np.random.default_rng(0)
        features = rng.standard_normal((30, 60)).astype(np.float32).repeat(4, axis=0)
        offsets = rng.standard_normal((30, N_OFFSETS)).repeat(4, axis=0)
        by_group = fitted(features, offsets, groups=np.arange(30).repeat(4))
        alone = fitted(features, offsets)
        assert np.linalg.norm(by_group.weights) < 0.7 * np.linalg.norm(alone.weights)

    def test_a_single_group_gets_the_largest_penalty(self) -> None:
        features, offsets = planted(40)
        pose = fitted(features, offsets, groups=np.zeros(40, np.int64))
        centred = features - features.mean(axis=0)
        kernel = centred @ centred.T
        penalty = max(module._PENALTIES) * np.trace(kernel) / 40
        dual = np.linalg.solve(kernel + penalty * np.eye(40), offsets - offsets.mean(axis=0))
        np.testing.assert_allclose(pose.weights, centred.T @ dual, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(
            pose.outputs(features).mean(axis=0), offsets.mean(axis=0), atol=1e-6
        )

    def test_windows_that_are_all_the_same(self) -> None:
        _, offsets = planted(12)
        pose = fitted(np.ones((12, 5), np.float32), offsets)
        np.testing.assert_allclose(pose.outputs(np.ones((1, 5), np.float32))[0], offsets.mean(0))

    def test_views(self) -> None:
        labels = np.random.default_rng(0).integers(0, 4, 300)
        features = np.eye(4, dtype=np.float32)[labels] * 2.0
        offsets = np.zeros((300, N_OFFSETS))
        costs = 1.0 - np.eye(4)
        plain = fitted(features, offsets, labels, view_costs=costs)
        scores = plain.outputs(2.0 * np.eye(4, dtype=np.float32))[:, N_OFFSETS:]
        np.testing.assert_allclose(scores / max(module._SHARPNESS), np.eye(4), atol=0.05)
        circular = fitted(features, offsets, labels, view_costs=costs, circular=True)
        scores = circular.outputs(2.0 * np.eye(4, dtype=np.float32))[:, N_OFFSETS:]
        shares = scores[0] / max(module._SHARPNESS)
        np.testing.assert_allclose(shares, [0.5, 0.25, 0.0, 0.25], atol=0.05)
        for pose in (plain, circular):
            assert (pose.labels(pose.outputs(features)) == labels).all()

    @pytest.mark.parametrize("n_views", [1, 2])
    def test_two_views_have_no_circle(self, n_views) -> None:
        labels = np.arange(40) % n_views
        features = np.eye(2, dtype=np.float32)[labels]
        costs = 1.0 - np.eye(n_views) if n_views > 1 else NO_VIEWS
        pose = fitted(features, np.zeros((40, 4)), labels, view_costs=costs, circular=True)
        shares = pose.outputs(features)[:, N_OFFSETS:] / max(module._SHARPNESS)
        np.testing.assert_allclose(shares, np.eye(n_views)[labels][:, : len(costs)], atol=0.05)

    def test_views_that_features_do_not_tell_are_as_likely_as_they_are_frequent(self) -> None:
        rng = np.random.default_rng(3)
        labels = (rng.random(400) < 0.25).astype(np.int64)
        features = rng.standard_normal((400, 6)).astype(np.float32)
        pose = fitted(features, np.zeros((400, 4)), labels, view_costs=1.0 - np.eye(2))
        shares = softmax(pose.outputs(features)[:, N_OFFSETS:], axis=1)
        assert abs(shares[:, 1].mean() - 0.25) < 0.1

    def test_outputs_do_not_depend_on_other_windows(self) -> None:
        pose = fitted(*planted(50))
        features = planted(40, seed=2)[0]
        together = pose.outputs(features)
        alone = np.concatenate([pose.outputs(row[None]) for row in features])
        np.testing.assert_array_equal(together, alone)
        np.testing.assert_allclose(together, features @ pose.weights + pose.intercepts, rtol=1e-4)


class TestBoxes:
    @given(
        st.lists(st.tuples(*[st.floats(-0.2, 0.2)] * 2, *[st.floats(0.3, 3.0)] * 2), max_size=5),
        st.floats(8.0, 300.0),
    )
    def test_are_where_the_offsets_say(self, drawn, height) -> None:
        windows = np.array([[7.0, 5.0, 7.0 + 1.5 * height, 5.0 + height]] * len(drawn))
        windows = windows.reshape(-1, 4)
        moves, sizes = np.split(np.array(drawn).reshape(-1, 4) * height, 2, axis=1)
        centres = (windows[:, :2] + windows[:, 2:]) / 2.0 + moves
        objects = np.hstack([centres - sizes / 2.0, centres + sizes / 2.0])
        pose = fitted(*planted(20))
        got = pose.boxes(windows, offsets_of(windows, objects))
        np.testing.assert_allclose(got, objects, rtol=1e-9, atol=1e-9 * height)

    def test_do_not_run_away(self) -> None:
        pose = fitted(*planted(20))
        for sign in (1.0, -1.0):
            (box,) = pose.boxes(np.array([[0.0, 0.0, 20.0, 10.0]]), np.full((1, 4), sign * 50.0))
            centre = (box[:2] + box[2:]) / 2.0
            np.testing.assert_allclose(centre, [10.0 + sign * 2.5, 5.0 + sign * 2.5])
            np.testing.assert_allclose(box[2:] - box[:2], 10.0 * np.exp(sign * 1.5))


class TestLabels:
    def test_costs_are_those_of_truth_and_prediction(self) -> None:
        # View 1 is expensive to miss: it is chosen although view 0 is more likely.
        scores = np.log([[0.6, 0.4]])
        pose = of_shares(scores, [[0.0, 1.0], [10.0, 0.0]])
        outputs = pose.outputs(scores.astype(np.float32))
        assert pose.labels(outputs).tolist() == [1]
        turned = PoseRegression(pose.weights, pose.intercepts, pose.view_costs.T.copy())
        assert turned.labels(outputs).tolist() == [0]

    def test_against_a_double_loop(self) -> None:
        shares = np.random.default_rng(0).normal(0.3, 0.3, (200, 3))
        pose = of_shares(shares, COSTS)
        got = pose.labels(pose.outputs(shares.astype(np.float32)))
        for label, row in zip(got, shares.astype(np.float32), strict=True):
            expected = [
                sum(np.exp(row[truth]) * COSTS[truth, guess] for truth in range(3))
                for guess in range(3)
            ]
            assert expected[label] == pytest.approx(min(expected), abs=1e-6)
        assert len(set(got.tolist())) > 1


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"weights": np.zeros((5, 7))}, "float32 weights of 7 columns"),
            ({"weights": np.zeros((5, 4), np.float32)}, "float32 weights of 7 columns"),
            ({"weights": np.zeros(7, np.float32)}, "float32 weights of 7 columns"),
            ({"weights": np.full((5, 7), np.nan, np.float32)}, "must be finite"),
            ({"weights": np.full((5, 7), 1e30, np.float32)}, "at most 1e\\+06"),
            ({"intercepts": np.zeros(4)}, "7 intercepts"),
            ({"intercepts": np.full(7, np.inf)}, "must be finite"),
            ({"intercepts": np.full(7, 1e300)}, "at most 1e\\+06"),
            ({"view_costs": np.zeros((3, 2))}, "3 rows of as many numbers"),
            ({"view_costs": np.full((3, 3), np.nan)}, "."),
            ({"view_costs": -COSTS}, "."),
        ],
    )
    def test_arrays(self, changes, message) -> None:
        given_arrays = {
            "weights": np.zeros((5, 7), np.float32),
            "intercepts": np.zeros(7),
            "view_costs": COSTS,
        }
        PoseRegression(**given_arrays)
        with pytest.raises(ValueError, match=message):
            PoseRegression(**(given_arrays | changes))
