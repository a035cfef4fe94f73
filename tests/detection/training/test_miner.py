"""The miner: random windows and false alarms, never on objects, the best of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from badacost._utils.parallel import Threads
from badacost.detection import Detections
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import overlaps
from badacost.detection.scenes import make_scenes
from badacost.detection.training.miner import Miner, away_from, describe_scores
from badacost.detection.training.samples import Variation, random_boxes
from badacost.detection.training.store import WindowStore
from campaigns.tiny_training import TINY

MANY = replace(TINY, n_negatives=1000, n_per_image=40)
SHAPE = TINY.shape
REGION = [0.0, 0.0, 40.0, 64.0]


def miner(store, config=MANY, pictures=None) -> Miner:
    chosen = np.arange(store.n_pictures) if pictures is None else np.array(pictures)
    return Miner(store, config, config.shape, chosen)


def store_of(images, threads: Threads | None = None, verbose: bool = False) -> WindowStore:
    store = WindowStore(images, None, Variation(0.0, 0.0, 0.0), threads or Threads(), None, verbose)
    store.decode()
    return store


def restless(n_windows: int = 300):
    """A stub of a detector: windows at random places, whose scores are about zero."""

    def candidates(pixels: np.ndarray) -> Detections:
        rng = np.random.default_rng(int(pixels[:4, :4].sum()))
        boxes = random_boxes(pixels.shape[:2], TINY.shape, n_windows, rng)
        scores = rng.standard_normal(len(boxes))
        return Detections(boxes, scores, np.zeros(len(boxes), np.int64), ["object"])

    return SimpleNamespace(candidates=candidates)


class TestAtRandom:
    def test_hardly_overlap_objects(self, store) -> None:
        found = miner(store).at_random(np.random.default_rng(0))
        assert len(found) > 15
        assert (found.seeds == 0).all()
        for index, places in found.by_image():
            assert index < store.n_pictures
            assert 0 < len(places) <= 40
            assert (overlaps(found.boxes[places], store.images[index].boxes) < 0.1).all()

    def test_with_more_overlap_there_are_more(self, store) -> None:
        found = [
            miner(store, replace(MANY, negative_overlap=overlap)).at_random(
                np.random.default_rng(0)
            )
            for overlap in (0.1, 0.4)
        ]
        assert len(found[1]) > len(found[0])
        worst = max(
            overlaps(found[1].boxes[places], store.images[index].boxes).max()
            for index, places in found[1].by_image()
        )
        assert 0.1 < worst < 0.4

    def test_no_more_than_wanted(self, store) -> None:
        few = miner(store, replace(MANY, n_negatives=7)).at_random(np.random.default_rng(0))
        assert len(few) == 7

    def test_only_in_the_pictures_of_the_miner(self, store) -> None:
        found = miner(store, pictures=[1, 4]).at_random(np.random.default_rng(0))
        assert set(found.images.tolist()) == {1, 4}

    def test_pictures_without_objects_serve(self, scenes) -> None:
        empty = make_scenes(2, size=(64, 80), objects_per_image=0, random_state=5)
        found = miner(store_of([*scenes, *empty])).at_random(np.random.default_rng(0))
        assert [int((found.images == index).sum()) for index in (6, 7)] == [40, 40]

    def test_are_as_small_as_the_pyramid_shows_them(self, store) -> None:
        config = replace(MANY, n_octaves_up=1)
        found = miner(store, config).at_random(np.random.default_rng(0))
        heights = found.boxes[:, 3] - found.boxes[:, 1]
        assert heights.min() >= 8.0 - 1e-9
        assert (heights < 12.0).any()

    def test_of_small_pictures_there_are_none(self, scenes) -> None:
        small = AnnotatedImage(np.zeros((10, 10, 3), np.uint8), name="small")
        found = miner(store_of([small, *scenes])).at_random(np.random.default_rng(0))
        assert 0 not in found.images
        with pytest.raises(ValueError, match="no background was found in the images: add"):
            miner(store_of([small])).at_random(np.random.default_rng(0))

    def test_pictures_full_of_objects(self, scenes) -> None:
        full = AnnotatedImage(scenes[0].image[:24, :36], [[0, 0, 36, 24]], labels=[0], name="full")
        with pytest.raises(ValueError, match="no background was found"):
            miner(store_of([full])).at_random(np.random.default_rng(0))


class TestFalseAlarms:
    def test_the_best_are_taken_whatever_their_sign(self, store) -> None:
        config = replace(MANY, n_negatives=20)
        everything = miner(store).false_alarms(restless(), "")
        best = miner(store, config).false_alarms(restless(), "")
        assert len(best.windows) == len(best.scores) == 20
        assert sorted(best.scores) == sorted(np.sort(everything.scores)[-20:])
        assert (everything.scores < 0.0).any()
        assert best.n_pictures == store.n_pictures

    def test_scores_are_those_of_the_windows(self, store) -> None:
        mined = miner(store).false_alarms(restless(), "")
        assert len(mined.windows) > 30
        for index, places in mined.windows.by_image():
            seen = restless().candidates(store.pixels(index))
            for place in places:
                (match,) = np.flatnonzero((seen.boxes == mined.windows.boxes[place]).all(axis=1))
                assert seen.scores[match] == mined.scores[place]

    def test_are_no_objects_and_not_too_many_of_a_picture(self, store) -> None:
        mined = miner(store, replace(MANY, n_per_image=5)).false_alarms(restless(), "")
        for index, places in mined.windows.by_image():
            assert 0 < len(places) <= 5
            boxes = mined.windows.boxes[places]
            assert (overlaps(boxes, store.images[index].boxes) < 0.1).all()
            assert (np.triu(overlaps(boxes, boxes), 1) <= 0.5).all()

    def test_nothing_is_found(self, store) -> None:
        mined = miner(store).false_alarms(restless(0), "")
        assert len(mined.windows) == len(mined.scores) == 0

    def test_the_number_of_threads_does_not_matter(self, scenes, store) -> None:
        expected = miner(store).false_alarms(restless(), "")
        three = Threads(3)
        got = miner(store_of(scenes, three)).false_alarms(restless(), "")
        np.testing.assert_array_equal(got.windows.boxes, expected.windows.boxes)
        np.testing.assert_array_equal(got.windows.images, expected.windows.images)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_mistakes_name_the_image(self, scenes, n_jobs) -> None:
        def refuse(pixels: np.ndarray) -> Detections:
            if np.array_equal(pixels, scenes[2].image):
                raise ValueError("the image is too large.")
            return restless().candidates(pixels)

        threads = Threads(n_jobs)
        store = store_of(scenes, threads)
        with pytest.raises(ValueError, match=f"^'{scenes[2].name}': the image is too large"):
            miner(store).false_alarms(SimpleNamespace(candidates=refuse), "")

    def test_bars(self, scenes, capsys) -> None:
        miner(store_of(scenes, verbose=True)).false_alarms(restless(), "round 1, false alarms")
        assert "round 1, false alarms [" in capsys.readouterr().err


class TestAwayFrom:
    def test_ignored_regions_count_by_the_area_of_the_window(self, scenes) -> None:
        image = AnnotatedImage(scenes[0].image, [REGION], labels=[-1], ignore=[True])
        boxes = np.array(
            [[0.0, 0, 24, 16], [30.0, 0, 54, 16], [38.0, 0, 62, 16], [50.0, 0, 74, 16]]
        )
        assert away_from(image, boxes, SHAPE, 0.9).tolist() == [2, 3]  # 2 of 24 columns are allowed

    def test_objects_of_unknown_view_are_no_background(self, scenes) -> None:
        image = AnnotatedImage(scenes[0].image, [[0, 0, 24, 16]], labels=[-1])
        boxes = np.array([[2.0, 0, 26, 16], [23.0, 0, 47, 16]])
        assert away_from(image, boxes, SHAPE, 0.1).tolist() == [1]

    def test_the_window_of_an_object_of_another_shape_is_no_background(self, scenes) -> None:
        image = AnnotatedImage(scenes[0].image, [[20, 0, 26, 24]], labels=[0])
        window = SHAPE.fitted(image.boxes)
        boxes = np.concatenate([window, window + np.array([[30.0, 0.0, 30.0, 0.0]])])
        assert overlaps(boxes[:1], image.boxes) < 0.2  # a narrow object
        assert away_from(image, boxes, SHAPE, 0.2).tolist() == [1]


def test_how_hard_negatives_are_is_said() -> None:
    assert describe_scores(np.empty(0)) == "none"
    text = describe_scores(np.arange(11.0))
    assert text == "scores 5.00 in the middle, 9.00 for the hardest tenth"
