"""Views: the angles of each, the limits between them, and their mirror images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.annotations import Views, heading_of_yaw
from badacost.detection.annotations.views import nearest_view, turn_between

finite = st.floats(-1e4, 1e4)


class TestAround:
    @given(st.integers(1, 60), finite)
    def test_follows_the_definition(self, n_views, angle):
        width = 360.0 / n_views
        position = ((-angle) % 360.0 + width / 2.0) / width
        label = int(Views.around(n_views).label_of(angle))
        if abs(position - round(position)) > 1e-6:
            assert label == math.floor(position) % n_views
        else:
            assert label in {(round(position) - 1) % n_views, round(position) % n_views}

    def test_views_of_the_paper(self):
        views = Views.around(20)
        # View 1 side, 6 rear, 11 other side, 16 front, counted from 1.
        assert views.label_of([0.0, -90.0, 180.0, -180.0, 90.0]).tolist() == [0, 5, 10, 10, 15]
        assert views.label_of([9.0, 9.1, -8.9, -9.0]).tolist() == [0, 19, 0, 1]
        assert views.names[:2] == ("0°", "-18°")
        assert views.angles[15] == 90.0

    @given(st.integers(1, 360))
    def test_angles_lie_in_their_views(self, n_views):
        views = Views.around(n_views)
        assert views.label_of(views.angles).tolist() == list(range(n_views))
        assert len(set(views.names)) == n_views

    @given(st.integers(1, 100).map(lambda n: 2 * n))
    def test_mirror(self, n_views):
        views = Views.around(n_views)
        mirror = np.array(views.mirror)
        assert np.array_equal(mirror[mirror], np.arange(n_views))
        assert np.array_equal(views.label_of(180.0 - np.array(views.angles)), mirror)

    def test_shape_and_unknown_angles(self):
        labels = Views.around(4).label_of([[0.0, math.nan], [math.inf, 90.0]])
        assert labels.tolist() == [[0, -1], [-1, 3]]
        assert labels.dtype == np.int64


class TestNearest:
    @given(finite, st.lists(finite, min_size=1, max_size=8))
    def test_no_other_view_is_nearer(self, heading, angles):
        away = [math.acos(math.cos(math.radians(angle - heading))) for angle in angles]
        assert away[nearest_view(heading, angles)] == pytest.approx(min(away), abs=1e-6)

    @given(st.integers(2, 36), finite)
    def test_agrees_with_the_ranges_of_views(self, n_views, heading):
        views = Views.around(n_views)
        position = (heading - views.starts[0]) * n_views / 360.0
        if abs(position - round(position)) > 1e-6:
            assert nearest_view(heading, views.angles) == views.label_of(heading)

    def test_shape_and_ties(self):
        labels = nearest_view([[-170.0, 60.0], [45.0, 400.0]], [0.0, 90.0, 180.0])
        assert labels.tolist() == [[2, 1], [0, 0]]
        assert labels.dtype == np.int64

    @given(finite, finite)
    def test_turns_lead_from_the_first_to_the_second(self, first, second):
        turn = float(turn_between(first, second))
        assert -180.0 <= turn <= 180.0
        assert math.remainder(first + turn - second, 360.0) == pytest.approx(0.0, abs=1e-6)


class TestYaw:
    def test_limits_belong_to_the_view_above(self):
        views = Views.of_yaw()
        yaw = [-180.0, -90.0, -60.001, -60.0, -20.0, 0.0, 19.999, 20.0, 60.0, 90.0, 179.0]
        assert views.label_of(heading_of_yaw(yaw)).tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 4]

    def test_headings(self):
        # A negative yaw looks to the right of the image, which is a heading below 90.
        assert Views.of_yaw((-30.0, 30.0)).angles == (30.0, 90.0, 150.0)
        assert Views.of_yaw().mirror == (4, 3, 2, 1, 0)
        assert Views.of_yaw(()).mirror == (0,)

    @given(st.lists(st.floats(1.0, 89.0), min_size=1, max_size=4, unique=True), st.floats(-89, 89))
    def test_mirror(self, limits, yaw):
        limits = sorted(limits)
        views = Views.of_yaw([-limit for limit in reversed(limits)] + limits)
        heading = heading_of_yaw(yaw)
        if min(abs(abs(yaw) - limit) for limit in limits) > 1e-6:
            label = int(views.label_of(heading))
            assert views.mirror[label] == views.label_of(180.0 - heading)

    @pytest.mark.parametrize("limits", [(20, -20), (0, 0), (-90, 0), (0, 90)])
    def test_refuses(self, limits):
        with pytest.raises(ValueError, match="limits must increase"):
            Views.of_yaw(limits)


class TestChecks:
    def test_not_symmetric(self):
        for views in (Views.around(3), Views.of_yaw((-20, 30))):
            with pytest.raises(ValueError, match="not symmetric"):
                _ = views.mirror

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((("a",), (0.0, 1.0), (0.0,), 1), "angles must be 1"),
            ((("a",), (0.0,), ()), "starts must be 1"),
            ((("a",), (), (0.0,)), "angles must be 1"),
            ((("a", "b"), (0.0, 1.0), (0.0, -1.0), 1), "follow one another"),
            ((("a", "b"), (0.0, 1.0), (0.0, 360.0), 1), "within one full turn"),
            ((("a", "a"), (0.0, 1.0), (0.0, 1.0), 1), "distinct"),
            (((), (), (), 1), "at least one"),
            ((("a",), (0.0,), (0.0,), 2), "turn must be"),
            ((("a",), (math.nan,), (0.0,), 1), "angles must be"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            Views(*arguments)

    def test_names_only(self):
        views = Views(("front", "rear"))
        assert (views.angles, views.starts) == ((), ())
        assert views.label_of([[0.0, 90.0]]).tolist() == [[-1, -1]]
        with pytest.raises(ValueError, match="do not mirror"):
            _ = views.mirror
        assert Views(("object",)).mirror == (0,)

    def test_names(self):
        assert Views.around(2, ["right", "left"]).names == ("right", "left")
        with pytest.raises(ValueError, match="names must be 3"):
            Views.around(3, ["right", "left"])
        with pytest.raises(TypeError, match="sequence of strings"):
            Views.around(3, "abc")
