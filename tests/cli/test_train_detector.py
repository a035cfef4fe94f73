"""``badacost train-detector``: annotations of all kinds to a detector, and mistakes to one line."""

from __future__ import annotations

import logging
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from badacost.cli.app import app
from badacost.detection import Detector, TrainingConfig, training
from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.scenes import make_scenes
from badacost.detection.training.rounds import CascadeRounds
from badacost.io.file_lock import FileLock
from tests.file_size_limit import file_size_limit

CONFIG = """
window = [16, 24]
trees = [2, 4]
max_depth = 2
n_negatives = 20
n_per_image = 8
n_jittered = 0
n_per_octave = 4
n_filters = 0
"""


@pytest.fixture(scope="module")
def scenes() -> list[AnnotatedImage]:
    return make_scenes(4, size=(64, 96), object_height=(0.4, 0.5))


@pytest.fixture(scope="module")
def pictures(scenes, tmp_path_factory) -> Path:
    """A folder with pictures of two categories in a table."""
    place = tmp_path_factory.mktemp("scenes")
    rows = ["image,x1,y1,x2,y2,category"]
    Path(place, "pictures").mkdir()
    for number, scene in enumerate(scenes):
        Image.fromarray(scene.load()).save(place / f"pictures/{number}.png")
        rows += [
            f"{number}.png,{','.join(map(str, box))},{'Car' if number else 'Van'}"
            for box in scene.boxes.tolist()
        ]
    Path(place, "boxes.csv").write_text("\n".join(rows) + "\n")
    return place


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, pictures: Path, monkeypatch) -> Path:
    """A working folder with those pictures, and a small configuration."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(CONFIG)
    shutil.copytree(pictures, tmp_path, dirs_exist_ok=True)
    return tmp_path


def train(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(
        app, ["train-detector", "--config", "small.toml", "--jobs", "1", *arguments]
    )
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    if status == 1:
        assert result.stderr.count("Error: ") == 1
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert not Path("d").exists()
    return result


@pytest.fixture
def seen(monkeypatch) -> dict:
    """What a training is called with, in the place of the training."""
    calls: dict = {}

    def remember(images, views, config, **options) -> Detector:
        calls.update(images=images, views=views, config=config, **options)
        raise ValueError("seen.")

    monkeypatch.setattr(training, "train_detector", remember)
    return calls


@pytest.fixture
def small_scenes(monkeypatch) -> None:
    """Synthetic scenes of an eighth of the pixels."""
    small = partial(make_scenes, size=(84, 112))
    monkeypatch.setattr("badacost.detection.scenes.make_scenes", small)


@pytest.mark.usefixtures("small_scenes")
class TestTraining:
    def test_synthetic_scenes(self) -> None:
        result = train("synthetic:6", "--output", "out/d", "--views", "4")
        assert repr(Detector.load("out/d")).startswith("Detector('Car' in 4 views, 1 cascade of ")
        assert "CostBoost for 'Car' in 4 views: 6 pictures, " in result.stderr
        assert "windows of 16 x 24 pixels" in result.stderr
        for line in (
            "objects by view, mirror images included: ",
            "round 1: 2 trees, ",
            "new negatives",
            "round 2: 4 trees, ",
            "on the images held out",
            "calibration: AP ",
            "are kept by the detector",
        ):
            assert line in result.stderr
        assert "filters [" in result.stderr
        assert "is in out/d, after " in result.stdout
        assert [path.name for path in Path("out").iterdir()] == ["d"]

    def test_quiet(self) -> None:
        result = train("synthetic:2", "--output", "d", "--views", "2", "--quiet")
        assert result.output == ""
        assert Path("d").exists()

    def test_the_log_is_left_as_it_was(self) -> None:
        log = logging.getLogger("badacost.detection.training")
        before = log.level, list(log.handlers)
        train("synthetic:2", "--output", "d", "--views", "2")
        assert (log.level, log.handlers) == before

    def test_files(self) -> None:
        train("boxes.csv", "--images", "pictures", "--output", "d", "--negatives", "pictures")
        detector = Detector.load("d")
        assert detector.category == "object"
        assert detector.angles is None
        assert detector.names == ("object",)


@pytest.mark.usefixtures("small_scenes")
class TestCheckpoints:
    def test_are_kept_if_asked(self) -> None:
        arguments = ("synthetic:5", "--output", "d", "--views", "2", "--keep")
        train(*arguments)
        first = Path("d").read_bytes()
        assert sorted(path.name for path in Path("d.training").iterdir()) == [
            "calibration.checkpoint",
            "cascade.checkpoint",
            "final.checkpoint",
            "training.checkpoint",
        ]
        Path("d").unlink()
        result = train(*arguments)
        assert "resuming from the checkpoints in d.training" in result.stderr
        assert "trees [" not in result.stderr
        assert "round 1: " not in result.stderr
        assert Path("d").read_bytes() == first

    def test_nothing_else_is_removed(self) -> None:
        Path("mine").mkdir()
        leftover = f".{'0a' * 16}.tmp"
        for name in ("notes.txt", ".other.tmp", ".lock", leftover):
            Path("mine", name).touch()
        train("synthetic:5", "--output", "d", "--views", "2", "--folder", "mine")
        assert sorted(path.name for path in Path("mine").iterdir()) == [".other.tmp", "notes.txt"]

    def test_interrupted(self, monkeypatch) -> None:
        mined = CascadeRounds._mined

        def interrupt(self, progress):
            raise KeyboardInterrupt

        arguments = ("synthetic:2", "--output", "d", "--views", "2")
        monkeypatch.setattr(CascadeRounds, "_mined", interrupt)
        result = train(*arguments, status=130)
        assert result.stderr.endswith("Stopped. The same command resumes where it stopped.\n")
        assert not Path("d").exists()
        monkeypatch.setattr(CascadeRounds, "_mined", mined)
        assert "round 1, trees" not in train(*arguments).stderr
        resumed = Path("d").read_bytes()
        train(*arguments)
        assert Path("d").read_bytes() == resumed

    def test_of_another_training(self) -> None:
        train("synthetic:2", "--output", "d", "--views", "2", "--keep")
        Path("d").unlink()
        result = train("synthetic:2", "--output", "d", "--views", "4", status=1)
        assert "from other annotations, with another setting views (" in result.stderr
        assert "choose another folder, or remove this one to start again." in result.stderr

    def test_another_process(self) -> None:
        Path("d.training").mkdir()
        with FileLock("d.training"):
            result = train("synthetic:2", "--output", "d", "--views", "2", status=1)
        assert "another process is writing the folder 'd.training': wait until" in result.stderr

    @pytest.mark.filterwarnings("ignore::badacost._utils.kernel_cache.KernelCacheWarning")
    @pytest.mark.parametrize("limit", [100, 3000])
    def test_files_that_may_not_grow(self, limit) -> None:
        """The first checkpoint, or a later one, is too large: what is there is of use."""
        arguments = ("synthetic:2", "--output", "d", "--views", "2", "--quiet")
        with file_size_limit(limit):
            result = train(*arguments, status=1)
        assert re.fullmatch(
            r"Error: cannot write 'd\.training/(training|cascade)\.checkpoint': the "
            r"file-size limit is reached: raise it \(ulimit -f\)\.\n",
            result.stderr,
        )
        assert not list(Path("d.training").glob(".*"))
        train(*arguments)
        resumed = Path("d").read_bytes()
        train(*arguments)
        assert Path("d").read_bytes() == resumed


class TestOptions:
    def test_views(self, seen) -> None:
        train("synthetic:2", "--output", "d", status=1)
        assert seen["views"] == Views.around(8)
        train("synthetic:2", "--output", "d", "--views", "6", status=1)
        assert seen["views"] == Views.around(6)
        assert seen["config"].views_in_circle
        train("synthetic:2", "--output", "d", "--yaw-limits=-50,50", status=1)
        assert seen["views"] == Views.of_yaw((-50.0, 50.0))
        assert not seen["config"].views_in_circle
        train("synthetic:2", "--output", "d", "--single-view", status=1)
        assert len(seen["views"]) == 1
        assert {int(label) for image in seen["images"] for label in image.labels} == {0}

    def test_labels_are_kept(self, seen) -> None:
        header, *rows = Path("boxes.csv").read_text().splitlines()
        labels = [number % 3 for number in range(len(rows))]
        lines = [f"{row},{label}" for row, label in zip(rows, labels, strict=True)]
        Path("labels.csv").write_text("\n".join([f"{header},label", *lines]) + "\n")
        call = ("labels.csv", "--images", "pictures", "--output", "d")
        train(*call, status=1)
        assert [int(label) for image in seen["images"] for label in image.labels] == labels
        assert seen["views"] == Views(("view 1", "view 2", "view 3"))
        train(*call, "--views", "4", status=1)
        assert seen["views"] == Views.around(4)
        assert [int(label) for image in seen["images"] for label in image.labels] == labels
        assert "labels up to 2" in train(*call, "--views", "2", status=1).stderr

    def test_categories_as_views(self) -> None:
        call = ("boxes.csv", "--images", "pictures", "--output", "d")
        train(*call, "--category-views", "Van, Car")
        detector = Detector.load("d")
        assert detector.names == ("Van", "Car")
        assert detector.angles is None

    def test_synthetic_scenes_have_a_seed(self, seen) -> None:
        train("synthetic:2:7", "--output", "d", status=1)
        expected = make_scenes(2, random_state=7)
        for image, scene in zip(seen["images"], expected, strict=True):
            np.testing.assert_array_equal(image.load(), scene.load())

    def test_sources_are_joined(self, seen) -> None:
        train(
            "synthetic:2", "synthetic:1:3", "boxes.csv", "--images", "pictures",
            "--negatives", "pictures", "--output", "d", status=1,
        )  # fmt: skip
        assert len(seen["images"]) == 2 + 1 + 4 + 4
        assert [len(image) for image in seen["images"][-4:]] == [0] * 4

    def test_category(self, seen) -> None:
        train("boxes.csv", "--images", "pictures", "--output", "d", "--category", "Van", status=1)
        assert seen["category"] == "Van"
        assert [len(image) > 0 for image in seen["images"]] == [True, False, False, False]

    def test_kitti_cars(self, seen) -> None:
        line = "{} 0.00 {} 0.0 10 10 60 {} 1 1 1 1 1 1 0\n"
        Path("label_2").mkdir()
        Path("label_2/0.txt").write_text(
            line.format("Car", 0, 40)
            + line.format("Car", 2, 40)
            + line.format("Van", 0, 40)
            + line.format("Pedestrian", 0, 40)
        )
        train("label_2", "--images", "pictures", "--output", "d", "--kitti-cars", status=1)
        (image,) = seen["images"]
        assert image.categories == ("Car", "Car", "Van")
        assert image.ignore.tolist() == [False, True, True]
        assert seen["views"] == Views.around(8)

    def test_algorithm_and_configuration(self, seen) -> None:
        train("synthetic:2", "--output", "d", "--algorithm", "subcat", status=1)
        assert seen["config"].algorithm == "subcat"
        assert seen["config"].trees == (2, 4)
        assert seen["folder"] == Path("d.training")
        assert seen["n_jobs"] == 1
        assert seen["device"] == "cpu"

    def test_device(self, seen) -> None:
        train("synthetic:2", "--output", "d", "--device", "cuda", status=1)
        assert seen["device"] == "cuda"

    def test_window(self, seen) -> None:
        train("synthetic:2", "--output", "d", "--window", "32x40", status=1)
        assert seen["config"].window == (32, 40)
        assert seen["config"].trees == (2, 4)

    def test_small(self, seen) -> None:
        command = ["train-detector", "synthetic:2", "--output", "d", "--small", "--window", "40x64"]
        assert CliRunner().invoke(app, command).exit_code == 1
        assert seen["config"] == TrainingConfig.small(window=(40, 64))

    def test_small_is_a_base(self, seen) -> None:
        Path("small.toml").write_text("n_negatives = 77\nbeta = 9.0\n")
        train("synthetic:2", "--output", "d", "--small", "--beta", "5", status=1)
        assert seen["config"] == TrainingConfig.small(n_negatives=77, beta=5.0)

    def test_options_refine_the_configuration(self, seen) -> None:
        train(
            "synthetic:2", "--output", "d", "--depth", "3", "--trees", "5, 6,7", "--beta", "2.5",
            "--validation", "0.4", status=1,
        )  # fmt: skip
        config = seen["config"]
        assert (config.max_depth, config.trees, config.beta) == (3, (5, 6, 7), 2.5)
        assert config.validation == 0.4
        assert config.window == (16, 24)

    def test_costs(self, seen) -> None:
        Path("costs.csv").write_text("0, 1, 2\n3, 0, 4\n\n5, 6, 0\n")
        train("synthetic:2", "--output", "d", "--costs", "costs.csv", "--views", "2", status=1)
        assert seen["config"].cost_matrix == ((0, 1, 2), (3, 0, 4), (5, 6, 0))
        np.testing.assert_array_equal(seen["config"].costs(2)[1], [3, 0, 4])  # of the truth

    def test_groups(self, seen) -> None:
        call = ("boxes.csv", "--images", "pictures", "--output", "d")
        train(*call, status=1)
        assert seen["groups"] is None
        train(*call, "--group-by", "folder", status=1)
        assert seen["groups"] == "folder"

    def test_format(self, seen) -> None:
        Path("boxes.csv").rename("boxes.data")
        train("boxes.data", "--format", "table", "--images", "pictures", "--output", "d", status=1)
        assert all(isinstance(image, AnnotatedImage) for image in seen["images"])
        assert len(seen["images"]) == 4


class TestAngles:
    """FDDB's table has the angle of an ellipse in radians, and a yaw in a column of its own."""

    @pytest.fixture
    def faces(self, scenes) -> None:
        rows = ["image,x1,y1,x2,y2,angle,yaw_est"]
        angles = np.random.default_rng(0).uniform(-1.5, 1.5, 20)
        yaws = iter([-40.0, 0.0, 40.0] * 7)
        for number, scene in enumerate(scenes):
            rows += [
                f"{number}.png,{','.join(map(str, box))},{angles[len(rows)]},{next(yaws)}"
                for box in scene.boxes.tolist()
            ]
        Path("faces.csv").write_text("\n".join(rows) + "\n")

    def test_are_not_taken_for_headings(self, faces) -> None:
        call = ("faces.csv", "--images", "pictures", "--output", "d", "--yaw-limits=-20,20")
        result = train(*call, status=1)
        assert "no object is seen as " in result.stderr
        assert "check the angles of the annotations (objects by view: " in result.stderr
        assert not Path("d.training").exists()

    def test_columns_may_be_named(self, faces) -> None:
        call = ("faces.csv", "--images", "pictures", "--output", "d", "--yaw-limits=-20,20")
        train(*call, "--columns", "yaw = yaw_est")
        assert len(Detector.load("d").names) == 3


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["synthetic:"], "as synthetic:200:7"),
            (["synthetic:x"], "as synthetic:200:7"),
            (["synthetic:-3"], "as synthetic:200:7"),
            (["synthetic:1:2:3"], "as synthetic:200:7"),
            (["synthetic:0"], "1 to 100000 scenes"),
            (["synthetic:999999"], "1 to 100000 scenes"),
            (["nothing.csv"], "no such file or folder"),
            (["boxes.csv", "--format", "jpeg"], "format must be one of"),
            (["boxes.csv", "--images", "nowhere"], "nowhere"),
            (["boxes.csv", "--images", "pictures", "--views", "8"], "(--single-view)"),
            (["synthetic:2", "--views", "4", "--single-view"], "exclude each other"),
            (["synthetic:2", "--views", "4", "--category-views", "Car"], "exclude each other"),
            (["synthetic:2", "--category-views", "Car,"], "must be non-empty printable text"),
            (["synthetic:2", "--category-views", "Cow"], "the categories are ['Car']"),
            (
                ["synthetic:2", "--category-views", "Car", "--category", "Car"],
                "leave out --category",
            ),
            (["pictures", "--images", "pictures"], "pictures without annotations"),
            (["synthetic:2", "--yaw-limits", "20,a"], "--yaw-limits must be numbers"),
            (["synthetic:2", "--yaw-limits", "20,10"], "limits must increase"),
            (["synthetic:2", "--category", "Cow"], "no objects to learn"),
            (["synthetic:2", "--category", "Car", "--kitti-cars"], "leave out --category"),
            (["synthetic:2", "--trees", "64;128"], "--trees must be numbers separated by commas"),
            (["synthetic:2", "--trees", "99999999"], "--trees must be numbers separated by commas"),
            (["synthetic:2", "--trees", "0"], "trees must be an integer at least 1"),
            (["synthetic:2", "--beta", "0"], "beta must be a number greater than 0"),
            (["synthetic:2", "--costs", "nothing.csv"], "there is no file 'nothing.csv'"),
            (
                ["synthetic:2", "--costs", "boxes.csv"],
                "must have rows of numbers separated by commas",
            ),
            (["synthetic:2", "--costs", "pictures/0.png"], "must have rows of numbers"),
            (["synthetic:2", "--columns", "yaw=a"], "--columns are for CSV tables and COCO files"),
            (["boxes.csv", "--columns", "yaw"], "--columns must be pairs separated by commas"),
            (["boxes.csv", "--columns", "yaw=a=b"], "--columns must be pairs separated by commas"),
            (["boxes.csv", "--columns", "yaw="], "--columns must be pairs separated by commas"),
            (["boxes.csv", "--columns", "jaw=a"], "columns has 'jaw'; known are image"),
            (["boxes.csv", "--columns", "x1=left"], "'left' is not there"),
            (
                ["pictures", "--columns", "x1=left"],
                "columns are for CSV tables and COCO files, and",
            ),
            (["synthetic:2", "--window", "48"], "--window must be a height and a width"),
            (["synthetic:2", "--window", "4x4"], "window must be an integer at least 8"),
            (["synthetic:2", "--jobs", "0"], "--jobs must not be 0"),
            (["synthetic:2", "--config", "boxes.csv"], "is not a TOML file"),
            (["synthetic:2", "--negatives", "nowhere"], "nowhere"),
        ],
    )
    def test_one_line(self, arguments, message) -> None:
        result = train(*arguments, "--output", "d", status=1)
        assert message in result.stderr
        assert not Path("d.training").exists()

    def test_output_is_a_folder(self) -> None:
        result = train("synthetic:2", "--output", "pictures", status=1)
        assert "'pictures' is a folder: name a file." in result.stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["--views", "0"],
            ["--algorithm", "forest"],
            ["--depth", "0"],
            ["--depth", "13"],
            ["--validation", "1"],
            ["--group-by", "day"],
        ],
    )
    def test_usage(self, arguments) -> None:
        train("synthetic:2", *arguments, *(["--output", "d"] if arguments else []), status=2)
