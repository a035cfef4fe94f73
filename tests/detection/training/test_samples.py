"""Training windows: where they lie, and that they have the features that a scan sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.decorrelation import as_filters, decorrelate
from badacost.detection.pyramid import pyramid_levels
from badacost.detection.scenes import make_scenes
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.samples import (
    Variation,
    WindowFeatures,
    WindowList,
    WindowShape,
    random_boxes,
)
from tests.backends.fake_cuda import pretend_cuda
from tests.backends.on_cpu import needs_compiler

CONFIGS = {
    "filters": TrainingConfig(window=(24, 36)),
    "channels": TrainingConfig(window=(24, 36), n_filters=0),
    "small cells": TrainingConfig(window=(24, 36), shrink=1),
    "large cells": TrainingConfig(window=(32, 32), shrink=4),
}
SHAPE = WindowShape((24, 36), (28, 44), 4)
LENGTHS = st.floats(8.0, 200.0)
BOXES = st.lists(
    st.tuples(st.floats(-100.0, 400.0), st.floats(-100.0, 400.0), LENGTHS, LENGTHS), max_size=8
).map(lambda rows: np.array([[x, y, x + w, y + h] for x, y, w, h in rows]).reshape(-1, 4))
SEEDS = st.integers(0, 2**32).map(np.random.default_rng)


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return make_scenes(1, random_state=3)[0].load()


def features_of(config: TrainingConfig) -> WindowFeatures:
    pyramid = config.pyramid((0.0, 0.0, 0.0))
    filters = None
    if config.n_filters:
        n_channels = pyramid.channels.n_channels
        drawn = np.random.default_rng(0).standard_normal((config.n_filters, n_channels, 5, 5))
        filters = as_filters(drawn, n_channels)
    return WindowFeatures(config.shape, pyramid.channels, pyramid.smoothing, filters)


def window_boxes(config: TrainingConfig, corners: list[tuple[int, int]]) -> np.ndarray:
    """Boxes of the size of the window whose padded windows begin at these rows and columns."""
    (height, width), (tall, wide) = config.window, config.shape.padded_window
    tops, lefts = np.array(corners).T + np.array([[tall - height], [wide - width]]) / 2
    return np.stack([lefts, tops, lefts + width, tops + height], axis=1)


class TestFeatures:
    @pytest.mark.parametrize("name", CONFIGS)
    def test_equal_those_of_the_pyramid_at_scale_one(self, name, pixels) -> None:
        config = CONFIGS[name]
        features = features_of(config)
        shape, pyramid = config.shape, config.pyramid((0.0, 0.0, 0.0))
        first = next(iter(pyramid_levels(pixels, pyramid)))
        assert first.scale == first.scale_y == first.scale_x == 1.0
        maps = first.channels
        if features.filters is not None:
            maps = decorrelate(maps, features.filters)
        # Cells of the scan begin where its padding does.
        cells = [(12, 10), (13, 20), (20, 11)]
        corners = [
            tuple(cell * shape.cell - pad for cell, pad in zip(pair, pyramid.pad, strict=True))
            for pair in cells
        ]
        rows, columns = shape.cells
        expected = [maps[:, y : y + rows, x : x + columns].ravel() for y, x in cells]
        got = features.of(shape.cut(pixels, window_boxes(config, corners)))
        assert got.dtype == np.float32
        assert got.shape == (3, features.n_features)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        assert np.std(got, axis=0).max() > 0.01

    @pytest.mark.parametrize("name", CONFIGS)
    def test_do_not_depend_on_the_windows_beside(self, name, pixels) -> None:
        config = CONFIGS[name]
        features = features_of(config)
        boxes = random_boxes(pixels.shape[:2], config.shape, 40, np.random.default_rng(1))
        crops = config.shape.cut(pixels, boxes)
        together = features.of(crops)
        alone = np.concatenate([features.of(crop[None]) for crop in crops])
        np.testing.assert_array_equal(together, alone)

    @needs_compiler
    @pytest.mark.parametrize("name", CONFIGS)
    def test_do_not_depend_on_the_device(self, name, pixels, monkeypatch) -> None:
        pretend_cuda(monkeypatch)
        config = CONFIGS[name]
        boxes = random_boxes(pixels.shape[:2], config.shape, 5, np.random.default_rng(1))
        crops = config.shape.cut(pixels, boxes)
        features = features_of(config)
        on_cuda = replace(features, device="cuda")
        assert on_cuda.of(crops).tobytes() == features.of(crops).tobytes()
        assert on_cuda.of(crops[:0]).shape == (0, features.n_features)

    def test_unfiltered_windows_are_those_of_the_features(self, pixels) -> None:
        config = CONFIGS["channels"]
        features = features_of(config)
        boxes = random_boxes(pixels.shape[:2], config.shape, 35, np.random.default_rng(1))
        crops = config.shape.cut(pixels, boxes)
        windows = features.windows(crops)
        assert windows.shape == (35, 10, *config.shape.cells)
        np.testing.assert_array_equal(windows.reshape(35, -1), features.of(crops))


class TestCut:
    def test_whole_pixels_are_not_touched(self, pixels) -> None:
        crop = SHAPE.cut(pixels, np.array([[100.0, 80.0, 136.0, 104.0]]))[0]
        top, left = 80 - 2 - SHAPE.border, 100 - 4 - SHAPE.border
        height, width = SHAPE.crop
        np.testing.assert_array_equal(crop, pixels[top : top + height, left : left + width])

    def test_the_border_is_continued(self) -> None:
        pixels = np.zeros((24, 36, 3), np.uint8)
        pixels[:, :18], pixels[:, 18:] = 50, 200
        crop = SHAPE.cut(pixels, np.array([[0.0, 0.0, 36.0, 24.0]]))[0]
        left = SHAPE.border + 4
        assert (crop[:, : left + 18] == 50).all()
        assert (crop[:, left + 18 :] == 200).all()

    def test_larger_objects_are_reduced(self, pixels) -> None:
        grey = np.full_like(pixels, 90)
        grey[60:108, 100:172] = 180
        crop = SHAPE.cut(grey, np.array([[100.0, 60.0, 172.0, 108.0]]))[0]
        top, left = SHAPE.border + 2, SHAPE.border + 4
        assert (crop[top + 2 : top + 22, left + 2 : left + 34] == 180).all()
        assert (crop[: top - 2] == 90).all()
        assert (crop[:, : left - 2] == 90).all()

    @pytest.mark.parametrize("height", [0.0, 481.0, 1e9])
    def test_absurd_objects_are_refused(self, pixels, height) -> None:
        with pytest.raises(ValueError, match="correct its box"):
            SHAPE.cut(pixels, np.array([[0.0, 0.0, 36.0, height]]))

    @given(BOXES)
    def test_any_box_gives_a_crop(self, boxes) -> None:
        pixels = np.zeros((240, 300, 3), np.uint8)
        assert SHAPE.cut(pixels, SHAPE.fitted(boxes)).shape == (len(boxes), *SHAPE.crop, 3)


class TestVariation:
    BOX = np.array([[100.0, 80.0, 136.0, 104.0]])

    def varied(self, pixels, seed: int, **changes) -> np.ndarray:
        """The inner part of a cut-out, in wide integers."""
        variation = Variation(**({"rotation": 0.0, "contrast": 0.0, "noise": 0.0} | changes))
        (crop,) = SHAPE.cut(pixels, self.BOX, np.array([seed]), variation)
        return crop.astype(np.int64)

    def test_nothing_changes_without_a_seed(self, pixels) -> None:
        (plain,) = SHAPE.cut(pixels, self.BOX)
        wild = {"rotation": 10.0, "contrast": 0.9, "noise": 60.0}
        np.testing.assert_array_equal(self.varied(pixels, 0, **wild), plain)
        np.testing.assert_array_equal(self.varied(pixels, 5), plain)

    def test_the_same_seed_gives_the_same(self, pixels) -> None:
        wild = {"rotation": 5.0, "contrast": 0.2, "noise": 5.0}
        first, again, other = (self.varied(pixels, seed, **wild) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).mean() > 0.5

    def test_contrast_is_linear(self, pixels) -> None:
        before = self.varied(pixels, 0)
        for seed in range(1, 9):
            after = self.varied(pixels, seed, contrast=0.15)
            inside = (after > 0) & (after < 255)
            gain, shift = np.polyfit(before[inside], after[inside], 1)
            assert 0.85 - 0.01 <= gain <= 1.15 + 0.01
            fit = gain * before[inside] + shift
            assert np.abs(after[inside] - fit).max() < 1.0
            assert 0.84 < after.mean() / before.mean() < 1.16

    def test_noise_has_the_wanted_spread(self, pixels) -> None:
        grey = np.full_like(pixels, 120)
        spreads = [(self.varied(grey, seed, noise=6.0) - 120).std() for seed in range(1, 13)]
        assert max(spreads) < 6.5
        assert max(spreads) > 3.0

    def test_rotation_keeps_the_centre_and_brings_in_no_black(self, pixels) -> None:
        marked = np.full_like(pixels, 200)
        marked[90:94, 116:120] = 20  # at the centre of the box
        for seed in range(1, 9):
            after = self.varied(marked, seed, rotation=10.0)
            rows, columns = np.nonzero(after[:, :, 0] < 80)
            centre = np.array(SHAPE.crop) / 2 - 0.5
            np.testing.assert_allclose([rows.mean(), columns.mean()], centre, atol=1.0)
            assert (after[[0, 0, -1, -1], [0, -1, 0, -1]] > 150).all()
        turned = [self.varied(pixels, seed, rotation=10.0) for seed in range(1, 5)]
        assert all((crop != self.varied(pixels, 0)).mean() > 0.3 for crop in turned)


class TestShape:
    @pytest.mark.parametrize("cell", [1, 2, 3, 4, 8, 16])
    def test_sizes_are_whole_cells(self, cell) -> None:
        shape = WindowShape((40, 50), (45, 59), cell)
        assert shape.cells == (45 // cell, 59 // cell)
        assert shape.border % cell == 0
        assert shape.border >= 16
        for length, padded in zip(shape.crop, (45, 59), strict=True):
            assert length % cell == 0
            assert 0 <= length - padded - 2 * shape.border < cell

    @given(BOXES)
    def test_fitted(self, boxes) -> None:
        fitted = SHAPE.fitted(boxes)
        np.testing.assert_array_equal(fitted[:, [1, 3]], boxes[:, [1, 3]])
        np.testing.assert_allclose(fitted[:, 0] + fitted[:, 2], boxes[:, 0] + boxes[:, 2])
        sizes = fitted[:, 2:] - fitted[:, :2]
        np.testing.assert_allclose(sizes[:, 0], 1.5 * sizes[:, 1])

    @given(BOXES, st.integers(1, 16), SEEDS)
    def test_jittered(self, boxes, octave, rng) -> None:
        boxes = SHAPE.fitted(boxes)
        moved = SHAPE.jittered(boxes, octave, rng)
        scale = (boxes[:, 3] - boxes[:, 1])[:, None] / 24
        centres = (moved[:, :2] + moved[:, 2:] - boxes[:, :2] - boxes[:, 2:]) / 2
        assert (np.abs(centres) <= 2.0 * scale + 1e-9).all()
        ratios = (moved[:, 2:] - moved[:, :2]) / (boxes[:, 2:] - boxes[:, :2])
        assert (np.abs(np.log2(ratios)) <= 0.5 / octave + 1e-9).all()
        np.testing.assert_allclose(ratios[:, 0], ratios[:, 1])

    def test_jitter_grows_with_the_amount(self) -> None:
        boxes = np.tile([[10.0, 10.0, 46.0, 34.0]], (500, 1))
        spreads = [
            (SHAPE.jittered(boxes, 8, np.random.default_rng(0), amount) - boxes).std()
            for amount in (0.0, 1.0, 2.0)
        ]
        assert spreads[0] == 0.0
        assert spreads[2] == pytest.approx(2.0 * spreads[1], rel=0.01)

    @given(st.integers(1, 600), st.integers(1, 600), st.integers(0, 50), SEEDS)
    def test_random_boxes(self, height, width, n_boxes, rng) -> None:
        boxes = random_boxes((height, width), SHAPE, n_boxes, rng)
        assert len(boxes) == (n_boxes if height >= 24 and width >= 36 else 0)
        assert (boxes >= 0.0).all()
        assert (boxes[:, 2:] <= np.array([width, height]) + 1e-9).all()
        sizes = boxes[:, 2:] - boxes[:, :2]
        assert (sizes[:, 1] >= 24.0 - 1e-9).all()
        np.testing.assert_allclose(sizes[:, 0], 1.5 * sizes[:, 1])

    def test_random_boxes_have_all_sizes(self) -> None:
        boxes = random_boxes((240, 360), SHAPE, 2000, np.random.default_rng(0))
        scales = (boxes[:, 3] - boxes[:, 1]) / 24
        shares = np.histogram(np.log(scales) / np.log(10), 4, (0.0, 1.0))[0] / 2000
        assert np.abs(shares - 0.25).max() < 0.05


class TestWindowList:
    def test_lists(self) -> None:
        boxes = np.arange(20.0).reshape(5, 4)
        windows = WindowList.of([(7, boxes[:2]), (3, boxes[2:2]), (1, boxes[2:])])
        assert windows.seeds.tolist() == [0] * 5
        assert windows.images.tolist() == [7, 7, 1, 1, 1]
        np.testing.assert_array_equal(windows.boxes, boxes)
        grouped = [(image, places.tolist()) for image, places in windows.by_image()]
        assert grouped == [(1, [2, 3, 4]), (7, [0, 1])]
        both = windows.chosen(slice(1)).followed_by(windows.chosen(np.array([4, 0])))
        assert both.images.tolist() == [7, 1, 7]
        np.testing.assert_array_equal(both.boxes, boxes[[0, 4, 0]])
        seeded = WindowList(windows.images, boxes, np.arange(5))
        both = seeded.chosen(slice(1, 3)).followed_by(seeded.chosen(np.array([4])))
        assert both.seeds.tolist() == [1, 2, 4]

    def test_nothing(self) -> None:
        nothing = WindowList.of([])
        assert len(nothing) == 0
        assert nothing.by_image() == []
        assert nothing.boxes.shape == (0, 4)
