"""``badacost detect``: every kind of input, sound or broken, to every format and exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from badacost import detection
from badacost.cli.app import app
from badacost.detection.annotations import read_coco
from badacost.detection.boxes import Detections
from badacost.detection.channels import ChannelParameters
from badacost.detection.detector import images_at_a_time
from badacost.detection.interchange import from_coco, from_csv, from_json_lines, from_kitti
from badacost.detection.models import synthetic_cars
from badacost.detection.pyramid import PyramidParameters
from badacost.io.file_lock import FileLock
from tests.file_size_limit import file_size_limit

RUNNER = CliRunner()
STOP = 14.0  # brightness of a picture at which somebody presses Ctrl-C
NAMES, ANGLES = ("right", "front"), (0.0, 90.0)


PYRAMID = PyramidParameters(ChannelParameters(shrink=2), min_size=(16, 16))


@dataclass(frozen=True)
class BrightnessDetector:
    """Finds the picture itself, with its brightness as score, and a corner of score 5."""

    pyramid: PyramidParameters = PYRAMID
    shift: float = 0.0
    threshold: float = 0.0

    def detect(self, image: np.ndarray, *, n_jobs: int | None = None) -> Detections:
        height, width = image.shape[:2]
        if height < 16 or width < 16:
            return Detections.empty(NAMES, ANGLES, "Car")
        brightness = float(image.mean())
        if brightness == 13.0:
            raise MemoryError
        if brightness == STOP:
            raise KeyboardInterrupt
        boxes = [[0, 0, width, height], [1, 2, 10, 12]]
        scores = [brightness + self.shift, 5.0]
        found = Detections(boxes, scores, [1, 0], NAMES, ANGLES, "Car")
        return found[found.scores >= self.threshold]

    def detect_many(self, images, *, n_jobs: int | None = None) -> Iterator[Detections]:
        for image in images:
            yield self.detect(image)

    def with_threshold(self, score: float) -> BrightnessDetector:
        return replace(self, threshold=score)

    def with_confidence(self, conf: float) -> BrightnessDetector:
        if conf == 0.9:
            raise ValueError("this detector has no probabilities: train it again.")
        return replace(self, threshold=200.0 * conf)

    def fast(self) -> BrightnessDetector:
        return replace(self, shift=1000.0)

    def with_pyramid(self, n_octaves_up: int) -> BrightnessDetector:
        return replace(self, shift=self.shift + 10000.0 * n_octaves_up)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A working folder with pictures, and a detector to load as model.bada."""

    def load_detector(path: Path) -> BrightnessDetector:
        if not path.exists():
            raise FileNotFoundError(f"there is no model {path}.")
        return BrightnessDetector()

    monkeypatch.setattr(detection, "load_detector", load_detector)
    monkeypatch.chdir(tmp_path)
    Path("model.bada").touch()
    picture("a.png", 100)
    picture("b.jpg", 200)
    return tmp_path


def picture(name: str, value: int, size: tuple[int, int] = (40, 30)) -> None:
    Path(name).parent.mkdir(exist_ok=True, parents=True)
    Image.new("RGB", size, (value, value, value)).save(name)


def video(name: str, n_frames: int) -> None:
    with av.open(name, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for number in range(n_frames):
            pixels = np.full((32, 48, 3), 20 * number + 50, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def contents(place: str) -> dict[str, bytes]:
    """The files at a place."""
    files = [Path(place), *Path(place).rglob("*")]
    return {str(path): path.read_bytes() for path in files if path.is_file()}


@contextmanager
def undisturbed() -> Iterator[None]:
    """Nobody presses Ctrl-C at the picture for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.cli.test_detect.STOP", -1.0)
        yield


def detect(*arguments: str, status: int = 0) -> Result:
    result = RUNNER.invoke(app, ["detect", "model.bada", *arguments])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


class TestFormats:
    def test_json_lines_on_stdout(self) -> None:
        result = detect("a.png", "b.jpg")
        found = from_json_lines(result.stdout)
        assert list(found) == ["a.png", "b.jpg"]
        assert found["a.png"].boxes.tolist() == [[0, 0, 40, 30], [1, 2, 10, 12]]
        assert found["b.jpg"].scores.tolist() == [200, 5]
        assert found["b.jpg"].views == ["front", "right"]
        assert "2 pictures, 4 detections, 0 failures." in result.stderr
        assert "pictures per second" in result.stderr

    def test_quiet(self) -> None:
        assert detect("a.png", "--quiet").stderr == ""

    @pytest.mark.parametrize("options", [["--output", "out/r.csv"], ["--format", "csv"]])
    def test_csv(self, options) -> None:
        result = detect("a.png", "b.jpg", *options)
        text = Path("out/r.csv").read_text() if "--output" in options else result.stdout
        found = from_csv(text)
        assert list(found) == ["a.png", "b.jpg"]
        assert found["a.png"].scores.tolist() == [100, 5]
        assert found["a.png"].category == "Car"

    def test_csv_of_nothing_has_a_header(self) -> None:
        picture("small.png", 9, (5, 5))
        assert from_csv(detect("small.png", "--format", "csv").stdout) == {}

    @pytest.mark.parametrize(
        "options",
        [["--output", "r.json"], ["--format", "coco"], ["--format", "coco", "--output", "-"]],
    )
    def test_coco(self, options) -> None:
        picture("small.png", 9, (5, 5))
        result = detect("a.png", "small.png", "b.jpg", *options)
        text = Path("r.json").read_text() if "r.json" in options else result.stdout
        document = json.loads(text)
        heads = [tuple(head.values()) for head in document["images"]]
        assert heads == [(1, "a.png", 30, 40), (2, "small.png", 5, 5), (3, "b.jpg", 30, 40)]
        assert [record["id"] for record in document["annotations"]] == [1, 2, 3, 4]
        found = from_coco(document)
        assert {name: boxes.scores.tolist() for name, boxes in found.items()} == {
            "a.png": [100, 5],
            "small.png": [],
            "b.jpg": [200, 5],
        }
        assert found["b.jpg"].names == NAMES
        assert found["b.jpg"].angles == ANGLES
        assert found["b.jpg"].category == "Car"

    def test_coco_of_nothing(self) -> None:
        document = json.loads(detect("absent.png", "--format", "coco", status=1).stdout)
        assert document == {"annotations": [], "images": [], "categories": []}

    def test_coco_is_read_as_annotations(self, tmp_path: Path) -> None:
        picture("deep/c.png", 150)
        picture("deep/in/d.png", 160)
        video("deep/clip.mp4", 2)
        detect(str(tmp_path / "deep"), "deep/clip.mp4", "--output", "out/r.json")
        document = json.loads(Path("out/r.json").read_text())
        names = [head["file_name"] for head in document["images"]]
        assert names == ["c.png", "in/d.png", "clip.mp4#000000", "clip.mp4#000001"]
        first, second, *_ = read_coco(Path("out/r.json"))
        assert first.categories == ("Car", "Car")
        assert first.angles.tolist() == [90, 0]
        assert second.boxes.tolist() == [[0, 0, 40, 30], [1, 2, 10, 12]]

    def test_coco_is_evaluated(self) -> None:
        detect("a.png", "b.jpg", "--threshold", "50", "--output", "r.json")
        Path("truth.csv").write_text(
            "image,x1,y1,x2,y2,category,angle\na.png,0,0,40,30,Car,90\nb.jpg,0,0,40,30,Car,90\n"
        )
        result = RUNNER.invoke(app, ["evaluate", "r.json", "truth.csv", "--json"])
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["ap"] == 1.0

    def test_dash_is_stdout(self) -> None:
        assert detect("a.png", "--output", "-").stdout == detect("a.png").stdout
        assert not Path("-").exists()

    def test_kitti(self) -> None:
        picture("deep/a.png", 150)
        picture("deep/in/c.png", 160)
        detect("a.png", "deep", "b.jpg", "--output", "labels")
        files = sorted(str(path) for path in Path("labels").rglob("*") if path.is_file())
        assert files == ["labels/a-2.txt", "labels/a.txt", "labels/b.txt", "labels/in/c.txt"]
        for name, score in (("a", 100), ("a-2", 150), ("b", 200), ("in/c", 160)):
            found = from_kitti(Path(f"labels/{name}.txt").read_text(), NAMES, ANGLES)
            assert found.scores.tolist() == [score, 5]
            assert found.views == ["front", "right"]

    def test_suffix_and_format_may_differ(self) -> None:
        detect("a.png", "--output", "r.txt", "--format", "jsonl")
        assert list(from_json_lines(Path("r.txt").read_text())) == ["a.png"]

    def test_results_come_one_by_one(self, monkeypatch) -> None:
        seen = []
        detect_one = BrightnessDetector.detect

        def watched(self, image, *, n_jobs=None):
            seen.append(len(Path("r.jsonl.partial").read_text().splitlines()))
            return detect_one(self, image)

        monkeypatch.setattr(BrightnessDetector, "detect", watched)
        detect("a.png", "b.jpg", "--output", "r.jsonl")
        assert seen == [1, 2]  # what they are made from comes first


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "scores"),
        [
            (["--threshold", "6"], [100]),
            (["--threshold", "-16"], [100, 5]),
            (["--conf", "0.4"], [100]),
            (["--conf", "0.7"], []),
        ],
    )
    def test_the_detector_knows_what_to_keep(self, options, scores) -> None:
        found = from_json_lines(detect("a.png", *options).stdout)
        assert found["a.png"].scores.tolist() == scores

    @pytest.mark.parametrize(
        ("options", "score"),
        [(["--fast"], 1100), (["--octaves-up", "2"], 20100), (["--fast", "--octaves-up=0"], 1100)],
    )
    def test_pyramid(self, options, score) -> None:
        assert from_json_lines(detect("a.png", *options).stdout)["a.png"].scores[0] == score

    def test_jobs(self, monkeypatch) -> None:
        given = []

        def one(self, image, *, n_jobs=None):
            given.append(("one", n_jobs))
            return Detections.empty(NAMES)

        def many(self, images, *, n_jobs=None):
            given.append(("many", n_jobs))
            return map(self.detect, images)

        monkeypatch.setattr(BrightnessDetector, "detect", one)
        detect("a.png", "--jobs", "3")
        detect("a.png")
        assert given == [("one", 3), ("one", images_at_a_time(None))]
        monkeypatch.setattr(BrightnessDetector, "detect_many", many)
        detect("a.png", "b.jpg", "--jobs", "3")
        assert given[2] == ("many", 3)


class TestDrawing:
    def test_a_file_for_each(self) -> None:
        picture("deep/a.png", 150)
        video("clip.mp4", 2)
        detect("a.png", "deep", "clip.mp4", "--draw", "drawn")
        names = ["a-2.jpg", "a.jpg", "clip-000000.jpg", "clip-000001.jpg"]
        assert sorted(os.listdir("drawn")) == names
        with Image.open("drawn/a.jpg") as drawn:
            assert drawn.size == (40, 30)
            assert np.ptp(np.asarray(drawn)) > 50

    def test_sheet(self, monkeypatch) -> None:
        monkeypatch.setattr("badacost.cli.detect._MAX_ON_SHEET", 1)
        result = detect("a.png", "b.jpg", "--sheet", "out/sheet.png")
        assert "the sheet has the first 1 of 2 pictures" in result.stderr
        with Image.open("out/sheet.png") as sheet:
            assert sheet.width == 1800

    def test_what_cannot_be_drawn_is_still_found(self, monkeypatch) -> None:
        def broken(*arguments, **options):
            raise OSError("no space")

        monkeypatch.setattr("badacost.detection.drawing.draw", broken)
        result = detect("a.png", "--draw", "drawn", status=1)
        assert len(from_json_lines(result.stdout)["a.png"]) == 2
        assert "Failed: cannot draw 'a': no space." in result.stderr


class TestVideos:
    @pytest.mark.parametrize("every", [1, 3])
    def test_frames_have_names(self, every) -> None:
        video("clip.mp4", 7)
        found = from_json_lines(detect("clip.mp4", "a.png", "--every", str(every)).stdout)
        names = [f"clip.mp4#{number:06d}" for number in range(0, 7, every)]
        assert list(found) == [*names, "a.png"]
        for number, name in zip(range(0, 7, every), names, strict=True):
            assert abs(found[name].scores[0] - (20 * number + 50)) < 6

    def test_broken_video(self) -> None:
        Path("clip.mp4").write_bytes(b"no video" * 50)
        result = detect("clip.mp4", "a.png", status=1)
        assert list(from_json_lines(result.stdout)) == ["a.png"]
        assert "Failed: cannot read the video 'clip.mp4'" in result.stderr


class TestBrokenInputs:
    def make(self, name: str) -> None:
        if name == "empty.png":
            Path(name).touch()
        elif name == "text.png":
            Path(name).write_text("hello")
        elif name == "truncated.jpg":
            noise = np.random.default_rng(0).integers(0, 256, (50, 50, 3), dtype=np.uint8)
            Image.fromarray(noise).save(name)
            Path(name).write_bytes(Path(name).read_bytes()[:2000])
        elif name == "bomb.png":
            Image.new("1", (15_000, 15_000)).save(name)
        elif name == "nothing":
            Path(name).mkdir()
        elif name == "heavy.png":
            picture(name, 13)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("absent.png", "cannot read the image 'absent.png': there is no such file."),
            ("empty.png", "cannot read the image 'empty.png': it is empty."),
            (
                "text.png",
                "cannot read the image 'text.png': it is not a picture of a known format.",
            ),
            ("truncated.jpg", "truncated"),
            ("bomb.png", "set PIL.Image.MAX_IMAGE_PIXELS"),
            ("nothing", "the folder 'nothing' has no pictures."),
            ("heavy.png", "there is not enough memory for 'heavy.png'."),
        ],
    )
    def test_the_rest_goes_on(self, name, reason) -> None:
        self.make(name)
        result = detect("a.png", name, "b.jpg", status=1)
        assert list(from_json_lines(result.stdout)) == ["a.png", "b.jpg"]
        failed = json.loads(result.stdout.splitlines()[1])
        assert failed["image"] == name
        assert reason in failed["error"]
        told = [line for line in result.stderr.splitlines() if line.startswith("Failed: ")]
        assert told == [f"Failed: {failed['error']}"]
        assert "2 pictures, 4 detections, 1 failure." in result.stderr

    @pytest.mark.parametrize("size", [(1, 1), (15, 400)])
    def test_small_pictures_are_noted(self, size) -> None:
        picture("small.png", 90, size)
        result = detect("small.png")
        assert len(from_json_lines(result.stdout)["small.png"]) == 0
        assert f"Note: 'small.png' of {size[0]} x {size[1]} pixels is too small" in result.stderr
        assert detect("small.png", "--quiet").stderr == ""

    def test_quiet_tells_failures(self) -> None:
        result = detect("absent.png", "--quiet", status=1)
        assert len(result.stderr.splitlines()) == 1

    @pytest.mark.parametrize("format", ["csv", "coco"])
    def test_other_formats_leave_failures_out(self, format) -> None:
        result = detect("absent.png", "a.png", "--format", format, status=1)
        assert "absent" not in result.stdout
        assert "a.png" in result.stdout

    def test_names_of_several_lines(self) -> None:
        picture("line\nend.png", 100)
        result = detect("line\nend.png", "a.png", status=1)
        assert list(from_json_lines(result.stdout)) == ["a.png"]

    def test_same_input_twice(self) -> None:
        assert len(detect("a.png", ".", "a.png").stdout.splitlines()) == 2


class TestInterruption:
    @pytest.mark.parametrize("format", ["jsonl", "csv", "coco", "kitti"])
    @pytest.mark.parametrize(
        "inputs", [["gone.png", "a.png", "stop.png", "b.jpg"], ["clip.mp4", "stop.png"]]
    )
    def test_the_same_command_goes_on(self, format, inputs) -> None:
        video("clip.mp4", 2)
        picture("deep/a.png", 150)
        picture("stop.png", 14)
        files = ["deep", *inputs]
        options = ["--format", format, "--output", "r", "--draw", "drawn"]
        status = int("gone.png" in inputs)
        detect("b.jpg", "--format", format, "--output", "r")
        earlier = contents("r")
        result = detect(*files, *options, "--sheet", "sheet.png", status=130)
        assert "Stopped: results so far are in r" in result.stderr
        assert ".partial; the same command with --resume goes on." in result.stderr
        assert Path("sheet.png").exists()
        assert earlier.items() <= contents("r").items()
        with undisturbed():
            result = detect(*files, *options, "--resume", status=status)
            failed = ", 1 of them failed" * status
            assert f"Note: 3 pictures were done before{failed}." in result.stderr
            resumed, drawn = contents("r"), contents("drawn")
            result = detect(*files, *options, "--resume", status=status)
            assert "Note: nothing to resume: all pict" in result.stderr
        assert contents("r") == resumed
        assert contents("drawn") == drawn
        assert not list(Path.cwd().glob("*.partial"))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (["--conf", "0.4"], "with another --conf; remove this file to start again."),
            (["--fast"], "with another --fast;"),
            (["--every", "2"], "with another --every;"),
            (["more.png"], "with another set of inputs;"),
        ],
    )
    def test_other_options_are_refused(self, change, message) -> None:
        picture("stop.png", 14)
        picture("more.png", 12)
        detect("a.png", "stop.png", "--output", "r.csv", status=130)
        result = detect("a.png", "stop.png", "--output", "r.csv", status=2)
        assert "Error: 'r.csv.partial' has results of an interrupted run: pass" in result.stderr
        result = detect("a.png", "stop.png", *change, "--output", "r.csv", "--resume", status=2)
        assert message in result.stderr

    def test_other_files_are_refused(self) -> None:
        picture("stop.png", 14)
        call = ("a.png", "stop.png", "--output", "r.csv")
        detect(*call, status=130)
        picture("a.png", 101)
        result = detect(*call, "--resume", status=2)
        assert "with another set of inputs;" in result.stderr
        picture("a.png", 100)
        Path("model.bada").write_text("other")
        assert "with another model;" in detect(*call, "--resume", status=2).stderr

    def test_pixels_that_change_without_a_trace_are_refused(self) -> None:
        picture("still.bmp", 100)
        picture("stop.png", 14)
        call = ("still.bmp", "stop.png", "--output", "r.csv")
        detect(*call, status=130)
        before, path = os.stat("still.bmp"), Path("still.bmp")
        path.write_bytes(path.read_bytes()[:-1] + b"\x17")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert "with another set of inputs;" in detect(*call, "--resume", status=2).stderr

    def test_other_names_of_the_same_files_are_refused(self) -> None:
        """Results have the names that were given."""
        picture("stop.png", 14)
        detect("a.png", "stop.png", "--output", "r.csv", status=130)
        call = (str(Path("a.png").absolute()), "stop.png", "--output", "r.csv", "--resume")
        assert "with another set of inputs;" in detect(*call, status=2).stderr

    def test_two_at_a_time(self) -> None:
        with FileLock("r.csv"):
            result = detect("a.png", "--output", "r.csv", status=2)
        assert result.stderr == (
            "Error: another process is writing the file 'r.csv': wait until it has ended, or name "
            "another file.\n"
        )

    @pytest.mark.filterwarnings("ignore::badacost._utils.kernel_cache.KernelCacheWarning")
    @pytest.mark.parametrize("limit", [100, 1200])
    def test_files_that_may_not_grow(self, limit) -> None:
        """The first line, or a later one, is one too many."""
        Path("r.csv").write_text("earlier")
        files = [f"{number}.png" for number in range(9)]
        for name in files:
            picture(name, 50)
        with file_size_limit(limit):
            result = detect(*files, "--output", "r.csv", status=1 if limit > 100 else 2)
        message = "Error: cannot write 'r.csv.partial': the file-size limit is reached: raise"
        assert message in result.stderr
        resume = "Results so far are in r.csv.partial; the same command with --resume goes on."
        assert (resume in result.stderr) == (limit > 100)
        assert Path("r.csv").read_text() == "earlier"
        assert Path("r.csv.partial").exists() == (limit > 100)
        detect(*files, "--output", "r.csv", "--resume")
        assert list(from_csv(Path("r.csv").read_text())) == files

    def test_coco_on_stdout_is_a_document(self) -> None:
        picture("stop.png", 14)
        result = detect("a.png", "stop.png", "--format", "coco", status=130)
        assert list(from_coco(json.loads(result.stdout))) == ["a.png"]


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["a.png", "--format", "kitti"], "a file for each image: name a folder"),
            (["a.png", "--format", "kitti", "--output", "b.jpg"], "name a folder"),
            (["a.png", "--output", "r.xml"], "pass format (--format)"),
            (["a.png", "--output", ".", "--format", "csv"], "is a folder"),
            (["a.png", "--sheet", "sheet.txt"], "must have the suffix of a picture"),
            (["a.png", "--draw", "b.jpg"], "is a file: name a folder"),
            (["a.png", "--jobs", "0"], "--jobs must not be 0"),
            (["a.png", "--resume"], "only results in a file can be resumed"),
            (["a.png", "--resume", "--sheet", "s.png"], "leave out --sheet or --resume"),
            (["a.png", "--threshold", "nan"], "--threshold must be a number"),
            (["a.png", "--threshold", "1", "--conf", "0.5"], "leave one out"),
            (["a.png", "--conf", "0.9"], "has no probabilities"),
        ],
    )
    def test_one_line_and_status_2(self, arguments, message) -> None:
        result = detect(*arguments, status=2)
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_without_cupy(self, monkeypatch) -> None:
        monkeypatch.setattr(detection, "load_detector", lambda path: synthetic_cars())
        monkeypatch.setitem(sys.modules, "cupy", None)
        result = detect("a.png", "--device", "cuda", status=2)
        assert 'pip install "badacost[gpu]"' in result.stderr

    @pytest.mark.parametrize(
        "arguments", [[], ["a.png", "--every", "0"], ["a.png", "--format", "xml"]]
    )
    def test_usage(self, arguments) -> None:
        assert detect(*arguments, status=2).stdout == ""

    def test_no_model(self) -> None:
        result = RUNNER.invoke(app, ["detect", "absent.bada", "a.png", "--output", "r.csv"])
        assert result.exit_code == 2
        assert result.stderr == "Error: there is no model absent.bada.\n"
        assert not Path("r.csv").exists()

    def test_missing_package(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "PIL", None)
        assert 'pip install "badacost[detection]"' in detect("a.png", status=2).stderr
