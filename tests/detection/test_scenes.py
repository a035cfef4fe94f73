"""The synthetic world: exact boxes and angles, the same for the same seed, the same in a mirror."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.detection import scenes
from badacost.detection.annotations import Views
from badacost.detection.boxes import overlaps
from badacost.detection.rendering import Camera, Layer
from badacost.detection.scenes import make_drive, make_scenes


@pytest.fixture(scope="module")
def world():
    return make_scenes(40, random_state=1)


def painted(heading: float, light=(0.0, -0.8, -0.6)) -> tuple[np.ndarray, Camera]:
    """A car on black, without its shadow, and the camera that saw it."""
    camera = Camera(heading, 12.0, 60.0, (120.0, 100.0))
    palette = scenes._PALETTE + np.array([20.0, 20.0, 20.0, 0.0])
    pixels = np.zeros((200, 240, 3), dtype=np.float32)
    layer = Layer()
    layer.add_mesh(scenes._car_mesh(), palette, camera, np.array(light))
    layer.paint_over(pixels)
    return pixels, camera


def share(pixels: np.ndarray, red: bool) -> float:
    """Share of the car that is as red as a tail lamp, or as pale as a head lamp."""
    r, g, b = np.moveaxis(pixels, -1, 0)
    chosen = (r > 150.0) & (g < 80.0) if red else (r > 200.0) & (b > 150.0) & (b < r - 30.0)
    return float(chosen.sum() / (pixels.sum(axis=2) > 0.0).sum())


class TestScenes:
    def test_annotations(self, world):
        views = Views.around(8)
        for scene in world:
            assert scene.size == scene.load().shape[:2] == (240, 320)
            assert 1 <= len(scene) <= 3
            assert scene.boxes.min() >= 0.0
            assert (scene.boxes[:, 2:] <= [320.0, 240.0]).all()
            heights = scene.sizes[:, 1]
            assert ((heights > 0.2 * 240 - 1e-6) & (heights < 0.45 * 240 + 1e-6)).all()
            ratios = scene.sizes[:, 0] / heights
            assert ((ratios > 0.8) & (ratios < 2.1)).all()
            assert np.array_equal(views.label_of(scene.angles), scene.labels)
            shared_area = overlaps(scene.boxes, scene.boxes)
            assert (shared_area - np.diag(np.diag(shared_area)) <= 0.02).all()
            assert set(scene.categories) == {"Car"}

    def test_all_views_are_there(self, world):
        labels = np.concatenate([scene.labels for scene in world])
        assert (np.bincount(labels, minlength=8) > 0).all()

    def test_seeded(self, world):
        again = make_scenes(3, random_state=1)
        for old, new in zip(world, again, strict=False):
            assert np.array_equal(old.load(), new.load())
            assert np.array_equal(old.boxes, new.boxes)
        assert not np.array_equal(make_scenes(1, random_state=2)[0].load(), world[0].load())
        assert not np.array_equal(world[0].load(), world[1].load())

    def test_negatives(self):
        for scene in make_scenes(3, objects_per_image=0, size=(64, 48)):
            assert len(scene) == 0
            assert scene.load().shape == (64, 48, 3)
            assert scene.load().std() > 2.0

    @settings(max_examples=20)
    @given(
        st.integers(1, 40),
        st.tuples(st.integers(32, 200), st.integers(32, 200)),
        st.integers(0, 9),
        st.integers(0, 2**40),
    )
    def test_any_size_and_number(self, n_views, size, n_objects, random_state):
        (scene,) = make_scenes(
            1,
            n_views=n_views,
            size=size,
            objects_per_image=(0, n_objects),
            random_state=random_state,
        )
        assert len(scene) <= n_objects
        assert scene.size == size
        assert ((scene.boxes[:, 2:] <= size[::-1]) & (scene.boxes[:, :2] >= 0.0)).all()
        assert ((scene.labels >= 0) & (scene.labels < n_views)).all()

    @pytest.mark.parametrize(
        "wrong",
        [
            {"n_images": -1},
            {"n_views": 0},
            {"size": (240,)},
            {"size": (10, 320)},
            {"objects_per_image": (3, 1)},
            {"objects_per_image": -1},
            {"object_height": (0.2, 0.9)},
            {"random_state": -1},
        ],
    )
    def test_refuses(self, wrong):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            make_scenes(**({"n_images": 1} | wrong))


class TestRendering:
    @pytest.mark.parametrize("heading", range(-180, 180, 30))
    def test_box_is_exactly_around_the_car(self, heading):
        pixels, camera = painted(heading)
        low, high = camera.extent(scenes._car_mesh().corners)
        covered = pixels.sum(axis=2) > 0.0
        rows, columns = np.flatnonzero(covered.any(axis=1)), np.flatnonzero(covered.any(axis=0))
        # A corner may fall between two samples of the outermost pixels.
        assert np.abs([columns[0], rows[0]] - np.floor(low)).max() <= 1.0
        assert np.abs([columns[-1] + 1, rows[-1] + 1] - np.ceil(high)).max() <= 1.0

    def test_front_and_back(self):
        # A heading of 90 faces the viewer: head lamps; -90 shows the tail lamps.
        for heading, red in ((90.0, False), (-90.0, True)):
            pixels, _ = painted(heading)
            assert share(pixels, red) > 0.02
            assert share(pixels, not red) < 0.002

    def test_lamps_are_at_the_side_that_it_faces(self):
        for heading, faces_right in ((45.0, True), (135.0, False)):
            pixels, _ = painted(heading)
            r, _, b = np.moveaxis(pixels, -1, 0)
            columns = np.nonzero((r > 200.0) & (b > 150.0) & (b < r - 30.0))[1]
            assert (columns.mean() > 120.0) == faces_right

    @pytest.mark.parametrize("heading", [-160.0, -70.0, 0.0, 35.0, 90.0])
    def test_mirror_image_is_the_car_of_the_mirrored_heading(self, heading):
        one, _ = painted(heading)
        other, _ = painted(180.0 - heading)
        different = np.abs(one[:, ::-1] - other).max(axis=2) > 60.0
        assert different.sum() < 0.01 * (one.sum(axis=2) > 0.0).sum()

    def test_light_comes_from_its_side(self):
        lit, _ = painted(0.0, (0.0, 0.0, -1.0))
        dark, _ = painted(0.0, (0.0, 0.0, 1.0))
        assert lit.sum() > 1.3 * dark.sum()


class TestDrive:
    def test_frames(self):
        """Cars keep their order, move by a little, and stay in the picture."""
        frames = list(make_drive(12, n_objects=3, size=(120, 200), random_state=2))
        assert [frame.name for frame in frames] == [f"frame {k}" for k in range(12)]
        assert {frame.load().shape for frame in frames} == {(120, 200, 3)}
        boxes = np.stack([frame.boxes for frame in frames])
        assert (np.abs(np.diff(boxes, axis=0)) < 12).all()
        assert boxes.min() >= 0
        assert (boxes.max(axis=(0, 1)) <= [200, 120, 200, 120]).all()

    def test_cars_drive_where_they_face(self):
        """Right by the cosine of the heading, towards the viewer, which is down, by the sine."""
        frames = list(make_drive(24, n_objects=4, size=(120, 160), random_state=5))
        centres = np.stack([frame.boxes.reshape(-1, 2, 2).mean(axis=1) for frame in frames])
        headings = np.radians(np.stack([frame.angles for frame in frames]))[1:-1]
        moves = (centres[2:] - centres[:-2]) / 2
        right, down = np.cos(headings), np.sin(headings)
        assert (moves[..., 0] * right)[np.abs(right) > 0.2].min() > 0
        assert (moves[..., 1] * down)[np.abs(down) > 0.2].min() > 0

    def test_a_way_is_closed(self):
        turns = np.diff([frame.angles[0] for frame in make_drive(3, random_state=1)])
        assert turns[0] == pytest.approx(turns[1])
        assert 1.5 <= abs(turns[0]) <= 3.0

    def test_seeded(self):
        first, second = list(make_drive(2, random_state=3)), list(make_drive(3, random_state=3))
        assert all(np.array_equal(a.load(), b.load()) for a, b in zip(first, second, strict=False))
        (other,) = make_drive(1, random_state=4)
        assert not np.array_equal(first[0].load(), other.load())

    def test_only_cars_move(self):
        first, last = (frame.load() for frame in list(make_drive(2, n_objects=0)))
        assert np.array_equal(first, last)

    @pytest.mark.parametrize(
        "wrong",
        [{"n_frames": -1}, {"n_objects": -1}, {"n_objects": (1, 2)}, {"size": 3},
         {"object_height": (0.4, 0.2)}, {"random_state": -1}],
    )  # fmt: skip
    def test_refuses(self, wrong):
        """At once, not when the first frame is asked for."""
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            make_drive(**({"n_frames": 2} | wrong))
