"""OpenCV's names, on a detector of this package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from badacost.detection import CascadeClassifier, Detector
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes
from badacost.io.model_file import ModelFileError

SCENES = make_scenes(4, objects_per_image=2, random_state=7)
FRAMES = [np.ascontiguousarray(scene.load()[:, :, ::-1]) for scene in SCENES]


@pytest.fixture(scope="module")
def detector() -> Detector:
    return synthetic_cars()


@pytest.fixture(scope="module")
def cars(detector: Detector) -> CascadeClassifier:
    return CascadeClassifier(detector)


class TestBoxes:
    @pytest.mark.parametrize("number", range(len(FRAMES)))
    def test_those_of_the_detector(self, detector, cars, number) -> None:
        found = detector.detect(SCENES[number].load())
        objects, levels, weights = cars.detectMultiScale3(FRAMES[number], outputRejectLevels=True)
        assert objects.dtype == np.int32
        assert weights == pytest.approx(found.scores)
        assert levels.tolist() == [256] * len(found)
        inside = np.clip(found.boxes, 0, [320, 240, 320, 240])
        assert objects[:, :2] == pytest.approx(inside[:, :2], abs=0.51)
        assert objects[:, :2] + objects[:, 2:] == pytest.approx(inside[:, 2:], abs=0.51)
        assert np.array_equal(cars.detectMultiScale(FRAMES[number]), objects)

    def test_boxes_can_be_cut_out(self, cars) -> None:
        """No box begins outside, where an index would count from the other side."""
        frame = FRAMES[0][60:, 40:]
        for x, y, width, height in cars.detectMultiScale(frame, minNeighbors=0):
            assert frame[y : y + height, x : x + width].shape[:2] == (height, width)

    def test_grey(self, cars) -> None:
        grey = FRAMES[0].mean(axis=2).astype(np.uint8)
        same = cars.detectMultiScale(np.dstack([grey] * 3))
        assert np.array_equal(cars.detectMultiScale(grey), same)

    def test_nothing(self, cars) -> None:
        objects, counts = cars.detectMultiScale2(np.zeros((120, 120, 3), np.uint8))
        assert objects.shape == (0, 4)
        assert counts.shape == (0,)
        assert cars.detectMultiScale(np.zeros((3, 3), np.uint8)).shape == (0, 4)


class TestArguments:
    def test_neighbours(self, detector, cars) -> None:
        objects, counts = cars.detectMultiScale2(FRAMES[1])
        assert (counts >= 1).all()
        assert counts.max() > 3
        for number in (1, int(counts.min()), int(counts.max())):
            kept, still = cars.detectMultiScale2(FRAMES[1], minNeighbors=number)
            assert np.array_equal(kept, objects[counts > number])
            assert np.array_equal(still, counts[counts > number])
        windows = cars.detectMultiScale(FRAMES[1], minNeighbors=0)
        assert len(windows) == len(detector.candidates(SCENES[1].load()))

    def test_sizes(self, cars) -> None:
        objects = np.concatenate([cars.detectMultiScale(frame) for frame in FRAMES])
        width, height = np.median(objects[:, 2:], axis=0).astype(int).tolist()
        large, small = (
            np.concatenate([cars.detectMultiScale(frame, **limit) for frame in FRAMES])
            for limit in ({"minSize": (width, height)}, {"maxSize": (width, height)})
        )
        assert np.array_equal(large, objects[(objects[:, 2:] >= (width, height)).all(axis=1)])
        assert np.array_equal(small, objects[(objects[:, 2:] <= (width, height)).all(axis=1)])
        assert 0 < len(large) < len(objects)
        for none in ((), (0, 0), None):
            assert len(cars.detectMultiScale(FRAMES[0], minSize=none, maxSize=none)) == 2

    @pytest.mark.parametrize(("factor", "steps"), [(1.1, 7), (1.0905, 8), (1.2, 4), (2.0, 1)])
    def test_scale_factor(self, detector, cars, factor, steps) -> None:
        other = detector.with_pyramid(n_per_octave=steps, n_approximated=steps - 1)
        expected = other.detect(SCENES[0].load())
        _, _, weights = cars.detectMultiScale3(FRAMES[0], factor)
        assert weights == pytest.approx(expected.scores)

    def test_order_of_opencv(self, cars) -> None:
        """scaleFactor, minNeighbors, flags, minSize, maxSize."""
        by_place = cars.detectMultiScale(FRAMES[0], 1.2, 2, 2, (30, 30), (200, 200))
        by_name = cars.detectMultiScale(
            FRAMES[0], scaleFactor=1.2, minNeighbors=2, flags=0, minSize=(30, 30),
            maxSize=(200, 200),
        )  # fmt: skip
        assert np.array_equal(by_place, by_name)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"scaleFactor": 1.0}, "scaleFactor must be"),
            ({"scaleFactor": 3.0}, "scaleFactor must be"),
            ({"minNeighbors": -1}, "minNeighbors must be"),
            ({"minSize": (1, 2, 3)}, "minSize must be a width and a height"),
            ({"maxSize": (-1, 2)}, "maxSize must be"),
            ({"minSize": 3}, "minSize must be a width and a height; got 3"),
            ({"maxSize": {30, 40}}, "maxSize must be a width and a height"),
            ({"maxSize": np.array(3)}, "maxSize must be a width and a height"),
        ],
    )
    def test_refuses(self, cars, arguments, message) -> None:
        with pytest.raises(ValueError, match=message):
            cars.detectMultiScale(FRAMES[0], **arguments)

    @pytest.mark.parametrize("size", ["ab", np.ones((2, 2)), [[1, 2], [3, 4]]])
    def test_sides_are_numbers(self, cars, size) -> None:
        with pytest.raises(TypeError, match="minSize must be a number"):
            cars.detectMultiScale(FRAMES[0], minSize=size)

    def test_refuses_what_is_no_array(self, cars) -> None:
        with pytest.raises(TypeError, match="an array of OpenCV; got str"):
            cars.detectMultiScale("a.png")


class TestLoading:
    def test_empty_until_loaded(self, tmp_path: Path, detector) -> None:
        classifier = CascadeClassifier()
        assert classifier.empty()
        with pytest.raises(ValueError, match="load a detector first"):
            classifier.detectMultiScale(FRAMES[0])
        detector.save(tmp_path / "cars.badacost")
        assert classifier.load(tmp_path / "cars.badacost")
        assert not classifier.empty()
        assert len(classifier.detectMultiScale(FRAMES[0])) == 2

    def test_another_detector_forgets_the_first(self, detector) -> None:
        classifier = CascadeClassifier(detector)
        before = classifier.detectMultiScale(FRAMES[0], 1.2)
        classifier.load(detector.with_rejections(1e9))
        assert len(before) > len(classifier.detectMultiScale(FRAMES[0], 1.2))

    def test_files_that_are_none(self, tmp_path: Path) -> None:
        xml = tmp_path / "haarcascade_frontalface_default.xml"
        xml.write_text("<opencv_storage/>")
        with pytest.raises(ValueError, match="a cascade of OpenCV, which is not read: train"):
            CascadeClassifier(xml)
        other = tmp_path / "cars.badacost"
        other.write_text("text")
        with pytest.raises(ModelFileError):
            CascadeClassifier(other)
