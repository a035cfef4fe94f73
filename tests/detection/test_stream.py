"""`Detector.predict`: every kind of source, in order and in constant memory, errors in place."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from badacost.detection import Detections, Detector, ImageError
from badacost.detection.detector import images_at_a_time
from badacost.detection.images import ImageSource
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes
from badacost.detection.score_curve import ScoreCurve
from badacost.detection.stream import (
    InputFiles,
    Unreadable,
    files_of,
    images_of,
    search,
)

SCENES = [
    scene.load()
    for scene in make_scenes(
        5, size=(96, 128), objects_per_image=1, object_height=(0.5, 0.6), random_state=3
    )
]
RED = np.full((20, 30, 3), (200, 10, 0), np.uint8)


@pytest.fixture(scope="module")
def detector() -> Detector:
    return synthetic_cars()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures a to c in folders, and a video of all scenes."""
    monkeypatch.chdir(tmp_path)
    Path("drive/night").mkdir(parents=True)
    names = ("drive/a.png", "drive/b.png", "drive/night/c.png")
    for name, pixels in zip(names, SCENES, strict=False):
        Image.fromarray(pixels).save(name)
    with av.open("clip.mp4", "w") as clip:
        stream = clip.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.bit_rate = 128, 96, 4_000_000
        for pixels in SCENES:
            clip.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        clip.mux(stream.encode())
    return tmp_path


def same(a: Detections, b: Detections) -> bool:
    return np.array_equal(a.boxes, b.boxes) and np.array_equal(a.scores, b.scores)


class Double:
    """Finds the mean colour of an image, fails on black ones, and reads up to `ahead` images."""

    def __init__(self, ahead: int = 2) -> None:
        self.ahead = ahead
        self.n_jobs: list[int | None] = []

    def detect(self, image: np.ndarray, *, n_jobs: int | None = None) -> Detections:
        self.n_jobs.append(n_jobs)
        if not image.any():
            raise ValueError("black")
        return Detections([[0, 0, 1, 1]], [float(image.mean())], [0], ["a"])

    def detect_many(self, images, *, n_jobs: int | None = None) -> Iterator[Detections]:
        self.n_jobs.append(n_jobs)
        waiting: list[np.ndarray] = []
        for image in images:
            waiting.append(image)
            if len(waiting) > self.ahead:
                yield self.detect(waiting.pop(0))
        for image in waiting:
            yield self.detect(image)


class TestSources:
    @pytest.mark.parametrize(
        ("source", "names"),
        [
            ("drive/a.png", ["drive/a.png"]),
            (Path("drive"), ["drive/a.png", "drive/b.png", "drive/night/c.png"]),
            ("drive/*.png", ["drive/a.png", "drive/b.png"]),
            ("**/[bc].png", ["drive/b.png", "drive/night/c.png"]),
            (["drive/b.png", Path("drive/a.png")], ["drive/b.png", "drive/a.png"]),
        ],
    )
    def test_files(self, folder, detector, source, names) -> None:
        results = detector.predict(source)
        assert [found.source.name for found in results] == names
        assert [found.source.path for found in results] == list(map(Path, names))
        for found, name in zip(results, names, strict=True):
            assert same(found, detector.detect(name))
            assert found.source.size == (96, 128)
            assert found.source.frame is None

    def test_what_is_in_memory(self, detector) -> None:
        expected = [detector.detect(pixels) for pixels in SCENES[:3]]
        sources = [
            SCENES[:3],
            np.stack(SCENES[:3]),
            (pixels for pixels in SCENES[:3]),
            [Image.fromarray(pixels) for pixels in SCENES[:3]],
        ]
        for source in sources:
            results = detector.predict(source)
            assert [found.source.name for found in results] == ["image 0", "image 1", "image 2"]
            assert all(map(same, results, expected))

    @pytest.mark.parametrize("make", [np.asarray, Image.fromarray])
    def test_a_single_image_is_a_list_of_one(self, detector, make) -> None:
        (found,) = detector.predict(make(SCENES[0]))
        assert same(found, detector.detect(SCENES[0]))
        assert np.array_equal(found.source.load(), SCENES[0])

    def test_a_mixture(self, folder, detector) -> None:
        names = [found.source.name for found in detector.predict(["drive/*.png", SCENES[0]])]
        assert names == ["drive/a.png", "drive/b.png", "image 1"]

    def test_video(self, folder, detector) -> None:
        results = detector.predict("clip.mp4")
        assert [found.source.frame for found in results] == [0, 1, 2, 3, 4]
        assert [found.source.time for found in results] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
        assert results[3].source.name == "clip.mp4#000003"
        assert results[3].source.pixels is None
        frame = results[3].source.load()
        assert np.abs(frame.astype(float) - SCENES[3]).mean() < 12
        assert same(results[3], detector.detect(frame))

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("absent.png", "there is no such file"),
            ("absent/*.png", "no file matches the pattern"),
            ("drive/night/empty", "has no pictures"),
            (np.zeros((2, 2), np.int64), "no known range"),
        ],
    )
    def test_refuses(self, folder, detector, source, message) -> None:
        Path("drive/night/empty").mkdir()
        with pytest.raises(ImageError, match=message):
            detector.predict(source)

    @pytest.mark.parametrize("source", [3, None, [3]])
    def test_refuses_what_shows_nothing(self, detector, source) -> None:
        with pytest.raises(TypeError, match="a path, a PIL image or an array"):
            detector.predict(source)

    def test_a_file_may_be_named_like_a_pattern(self, folder) -> None:
        Image.fromarray(RED).save("[ab].png")
        assert files_of("[ab].png") == [Path("[ab].png")]


class TestBgr:
    @pytest.mark.parametrize("alpha", [False, True])
    def test_arrays_only(self, tmp_path, alpha) -> None:
        Image.fromarray(RED).save(tmp_path / "red.png")
        array = np.dstack([RED, np.full(RED.shape[:2], 255, np.uint8)]) if alpha else RED
        bgr = array[:, :, [2, 1, 0, 3][: array.shape[2]]]
        images = list(images_of([bgr, tmp_path / "red.png", Image.fromarray(RED)], bgr=True))
        assert all(np.array_equal(image.load(), RED) for image in images)

    def test_grey_stays_grey(self) -> None:
        (image,) = images_of(RED[:, :, 0], bgr=True)
        assert np.array_equal(image.load()[:, :, 0], RED[:, :, 0])

    def test_same_boxes_as_rgb(self, detector) -> None:
        (right,) = detector.predict(SCENES[0])
        (turned,) = detector.predict(SCENES[0][:, :, ::-1], bgr=True)
        assert same(right, turned)
        (wrong,) = detector.predict(SCENES[0][:, :, ::-1])
        assert not same(right, wrong)


class TestStream:
    def test_same_as_the_list(self, folder, detector) -> None:
        listed = detector.predict("clip.mp4")
        for n_jobs in (1, 2, None):
            streamed = list(detector.predict("clip.mp4", stream=True, n_jobs=n_jobs))
            assert all(map(same, listed, streamed))
            assert len(streamed) == len(listed)

    def test_pixels_are_at_hand(self, folder, detector) -> None:
        for found in detector.predict("drive/*.png", stream=True):
            assert found.source.pixels is not None
            assert found.plot(width=64).size == (64, 48)

    def test_images_are_read_as_they_are_needed_and_let_go(self) -> None:
        alive: list[Callable[[], np.ndarray | None]] = []

        def camera() -> Iterator[np.ndarray]:
            for number in range(60):
                pixels = np.full((20, 20, 3), number + 1, np.uint8)
                alive.append(weakref.ref(pixels))
                yield pixels

        gc.freeze()  # collections look at what is made from here on
        most = 0
        for number, (_, found) in enumerate(search(Double(), images_of(camera()), n_jobs=2)):
            assert found.scores[0] == number + 1
            gc.collect()
            assert len(alive) <= number + 5
            most = max(most, sum(pixels() is not None for pixels in alive))
        gc.unfreeze()
        assert number == 59
        assert most <= 6

    def test_a_stream_may_be_left(self, detector) -> None:
        endless = (SCENES[0] for _ in iter(int, 1))
        results = detector.predict(endless, stream=True, n_jobs=2)
        assert len(next(results)) == len(next(results))
        results.close()

    def test_results_before_an_error_are_given(self, folder, detector) -> None:
        Path("drive/b.png").write_text("no picture")
        results = detector.predict("drive", stream=True, n_jobs=2)
        assert next(results).source.name == "drive/a.png"
        with pytest.raises(ImageError, match=r"drive/b\.png"):
            next(results)

    def test_an_error_of_an_iterator_is_its_own(self) -> None:
        def camera() -> Iterator[np.ndarray]:
            yield from SCENES[:3]
            raise ValueError("the cable")

        results = search(Double(), images_of(camera()), n_jobs=2)
        assert [next(results)[1].source.name for _ in range(3)] == ["image 0", "image 1", "image 2"]
        with pytest.raises(ValueError, match="the cable"):
            next(results)

    def test_nothing(self, detector) -> None:
        assert detector.predict([]) == []
        assert list(detector.predict(iter([]), stream=True)) == []


class TestJobs:
    def test_one_image_has_all_threads(self) -> None:
        double = Double()
        list(search(double, images_of(RED), n_jobs=3))
        assert double.n_jobs == [3]

    def test_several_share_them(self) -> None:
        double = Double()
        list(search(double, images_of([RED, RED]), n_jobs=3))
        assert double.n_jobs[0] == 3
        assert set(double.n_jobs[1:]) == {None}

    def test_by_default_one_on_each_core_but_few(self, monkeypatch) -> None:
        for cores, at_a_time in ((1, 1), (2, 2), (64, 4)):
            monkeypatch.setattr("badacost._utils.parallel.cpu_count", lambda n=cores: n)
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
            assert images_at_a_time(None) == at_a_time
            assert images_at_a_time(3) == 3

    def test_refuses_none_at_all(self, detector) -> None:
        with pytest.raises(ValueError, match="n_jobs"):
            detector.predict(RED, n_jobs=0)


@given(
    st.lists(st.sampled_from(["found", "unreadable", "failed"]), max_size=12),
    st.integers(0, 4),
)
@settings(max_examples=200)
def test_outcomes_are_in_order(outcomes: list[str], ahead: int) -> None:
    """Whatever fails, every image is reported once, in its place, and the others are found."""
    images: list[ImageSource | Unreadable] = []
    for number, outcome in enumerate(outcomes):
        if outcome == "unreadable":
            images.append(Unreadable(str(number), ImageError("damaged")))
        else:
            value = 0 if outcome == "failed" else number + 1
            pixels = np.full((2, 2, 3), value, np.uint8)
            images.append(ImageSource(str(number), (2, 2), pixels=pixels))
    results = list(search(Double(ahead), images, n_jobs=1))
    assert [image for image, _ in results] == images
    for number, ((image, found), outcome) in enumerate(zip(results, outcomes, strict=True)):
        if outcome == "found":
            assert isinstance(found, Detections)
            assert found.source is image
            assert found.scores.tolist() == [number + 1]
        else:
            assert str(found) == {"unreadable": "damaged", "failed": "black"}[outcome]


class TestConfidence:
    def test_scores_are_at_least_that(self, detector) -> None:
        curve = ScoreCurve(slope=0.1, intercept=-3.0)
        sure = replace(detector, curve=curve)
        every = np.concatenate([found.scores for found in sure.predict(SCENES, conf=0.01)])
        assert len(every) >= 5
        for conf in (float(np.sort(every)[1:3].mean()), 0.99):
            results = sure.predict(SCENES, conf=conf)
            kept = np.concatenate([found.scores for found in results])
            assert sorted(kept) == pytest.approx(sorted(every[every >= conf]))

    @pytest.mark.parametrize("stream", [False, True])
    def test_refuses_at_once(self, detector, stream) -> None:
        with pytest.raises(ValueError, match="not probabilities: use a threshold"):
            detector.predict(RED, conf=0.5, stream=stream)


class TestPlot:
    def test_image_or_source(self, detector) -> None:
        (found,) = detector.predict(SCENES[0])
        assert found.plot() == found.plot(SCENES[0])
        assert found.plot(labels=False) != found.plot()
        bare = detector.detect(SCENES[0])
        assert bare.plot(SCENES[0]) == found.plot()
        with pytest.raises(ValueError, match="give the image"):
            bare.plot()

    def test_a_file_is_read_again(self, folder, detector) -> None:
        (found,) = detector.predict("drive/a.png")
        assert found.source.pixels is None
        assert found.plot() == found.plot(SCENES[0])
        Path("drive/a.png").unlink()
        with pytest.raises(ImageError, match="no such file"):
            found.plot()

    def test_pixels_that_are_gone(self) -> None:
        with pytest.raises(ImageError, match="are not kept"):
            ImageSource("image 0", (2, 2)).load()

    def test_a_video_that_became_shorter(self, folder) -> None:
        source = ImageSource("clip.mp4#000009", (96, 128), Path("clip.mp4"), frame=9)
        with pytest.raises(ImageError, match="has no frame 9"):
            source.load()


def test_the_source_survives_what_is_done_to_detections(detector) -> None:
    (found,), (other,) = detector.predict(SCENES[0]), detector.predict(SCENES[1])
    assert found[:1].best_first().above(-99.0).source is found.source
    assert Detections.concatenate([found, found[:0]]).source is found.source
    assert Detections.concatenate([found, other]).source is None


class TestInputFiles:
    def test_each_file_once(self, folder: Path) -> None:
        inputs = [Path("drive"), Path("drive/a.png"), Path("clip.mp4"), Path("absent.png")]
        files = InputFiles(inputs)
        images = list(files.images(every=2))
        names = [image.name for image in images]
        drive = ["drive/a.png", "drive/b.png", "drive/night/c.png"]
        frames = [f"clip.mp4#{frame:06d}" for frame in (0, 2, 4)]
        assert names == [*drive, *frames, "absent.png"]
        assert isinstance(images[-1], Unreadable)
        assert files.n_images(every=2) == len(images)
        assert files.folder == folder
        assert InputFiles(inputs[:2]).folder == folder / "drive"

    def test_names_of_what_is_made_from_them(self, folder: Path) -> None:
        Path("other").mkdir()
        Image.fromarray(RED).save("other/A.png")
        files = InputFiles([Path("drive"), Path("other/A.png"), Path("clip.mp4")])
        stems = [files.stems.of(image) for image in files.images(every=4)]
        assert stems == ["a", "b", "night/c", "A-2", "clip-000000", "clip-000004"]

    def test_folders_without_pictures_come_in_turn(self, folder: Path) -> None:
        Path("empty").mkdir()
        first, second = InputFiles([Path("empty"), Path("drive/a.png")]).images()
        assert isinstance(first, Unreadable)
        assert "has no pictures" in str(first.error)
        assert second.name == "drive/a.png"
