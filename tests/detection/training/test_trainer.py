"""`train_detector`: it learns, does not depend on threads or kills, and says what is wrong."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from badacost.datasets.scenes import make_scenes
from badacost.detection import Detector, TrainingConfig, train_detector, training
from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.boxes import overlaps
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.training.checkpoint import Checkpoint
from badacost.model_file import ModelFileError, read_model
from badacost.threads import Threads

VIEWS = Views.around(4)
WORLD = {"n_views": 4, "size": (120, 160), "object_height": (0.3, 0.5)}
SMALL = TrainingConfig(
    window=(24, 36), trees=(16, 64), max_depth=4, n_negatives=300, n_per_image=15, n_jittered=1
)
TINY = TrainingConfig(
    window=(16, 24), trees=(3, 4, 10), max_depth=2, n_negatives=20, n_accumulated=30,
    n_per_image=8, max_features=0.2,
)  # fmt: skip


@pytest.fixture(scope="module")
def scenes() -> list[AnnotatedImage]:
    """Few and small, for what does not depend on how well is learned."""
    return make_scenes(4, n_views=4, size=(64, 80), object_height=(0.3, 0.5), random_state=2)


@pytest.fixture(scope="module")
def detector() -> Detector:
    return train_detector(make_scenes(24, **WORLD), VIEWS, SMALL, category="Car", n_jobs=2)


@pytest.fixture(scope="module")
def expected(scenes, tmp_path_factory) -> bytes:
    """The file of the tiny detector."""
    return trained(scenes, tmp_path_factory.mktemp("undisturbed"))


def trained(
    scenes: Sequence[AnnotatedImage],
    place: Path,
    config: TrainingConfig = TINY,
    views: Views = VIEWS,
    **options,
) -> bytes:
    """Bytes of the file of a detector."""
    train_detector(scenes, views, config, **options).save(place / "detector")
    return (place / "detector").read_bytes()


class TestDetector:
    def test_finds_objects_and_their_views(self, detector) -> None:
        fresh = {scene.name: scene for scene in make_scenes(20, random_state=9, **WORLD)}
        found = {name: detector.detect(scene.load()) for name, scene in fresh.items()}
        result = evaluate_voc(found, fresh)
        assert result.ap > 0.8  # 0.93 when this was written
        assert result.view_accuracy > 0.75  # 0.90

    def test_is_complete(self, detector) -> None:
        assert repr(detector) == "Detector('Car' in 4 views, 1 cascade of 64 trees)"
        assert detector.names == VIEWS.names
        assert detector.angles == VIEWS.angles
        assert detector.filters.shape == (4, 10, 5, 5)
        assert detector.pyramid.lambdas[0] == pytest.approx(0.0, abs=0.1)
        assert 0.05 < detector.pyramid.lambdas[1] < 0.5
        rejections = detector.cascades[0].rejections
        assert (rejections == rejections[0]).all()
        assert rejections[0] < 0.0
        front, side = detector.aspect_ratios[1], detector.aspect_ratios[0]
        assert side > 1.3 * front  # cars are longer than wide

    def test_aspect_ratios_are_means(self, scenes) -> None:
        config = replace(TINY, trees=(2,), mirror=False)
        ratios = train_detector(scenes, VIEWS, config).aspect_ratios
        boxes, labels = (
            np.concatenate([getattr(scene, name) for scene in scenes])
            for name in ("boxes", "labels")
        )
        for view in range(4):
            sizes = (boxes[:, 2:] - boxes[:, :2])[labels == view]
            mean = (sizes[:, 0] / sizes[:, 1]).mean() if len(sizes) else 1.5
            assert ratios[view] == pytest.approx(mean)


class TestSameDetector:
    @pytest.mark.parametrize("options", [{"n_jobs": 2}, {"verbose": True}], ids=str)
    def test_whatever_the_threads(self, scenes, tmp_path, expected, options) -> None:
        assert trained(scenes, tmp_path, **options) == expected

    def test_with_windows_in_a_file(self, scenes, tmp_path, expected, monkeypatch) -> None:
        monkeypatch.setattr(training, "_MAX_MEMORY", 0)
        assert trained(scenes, tmp_path, folder=tmp_path / "checkpoints") == expected
        assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [
            "cascade.checkpoint"
        ]

    def test_from_files(self, scenes, tmp_path, expected) -> None:
        images = []
        for scene in scenes:
            Image.fromarray(scene.load()).save(tmp_path / f"{scene.name}.png")
            images.append(replace(scene, image=tmp_path / f"{scene.name}.png", size=None))
        assert trained(images, tmp_path) == expected

    def test_seed_and_costs_matter(self, scenes, tmp_path, expected) -> None:
        assert trained(scenes, tmp_path, replace(TINY, seed=1)) != expected
        assert trained(scenes, tmp_path, replace(TINY, alpha=3.0)) != expected

    def test_samme_has_costs_of_zero_and_one(self, scenes, tmp_path, expected) -> None:
        samme = trained(scenes, tmp_path, replace(TINY, algorithm="samme", alpha=7.0))
        plain = replace(TINY, alpha=1.0, beta=1.0, gamma=1.0, views_in_circle=False)
        assert samme == trained(scenes, tmp_path, plain)
        assert samme != expected


class TestSubCat:
    def test_has_a_cascade_for_each_view(self, scenes) -> None:
        config = replace(TINY, algorithm="subcat", trees=(3, 5))
        found = train_detector(scenes, VIEWS, config)
        present = sorted({int(label) for scene in scenes for label in scene.labels} | {0, 2})
        assert len(present) >= 3
        assert found.names == tuple(VIEWS.names[view] for view in present)
        assert found.angles == tuple(VIEWS.angles[view] for view in present)
        assert len(found.cascades) == len(present)
        for cascade, ratio in zip(found.cascades, found.aspect_ratios, strict=True):
            assert cascade.n_views == 1
            assert len(np.unique(cascade.forest.table)) > 2
            assert (cascade.rejections == -1.0).all()
            height, width = cascade.window
            assert height == 16
            assert abs(width / height - ratio) <= 0.5 * config.cell / height + 1e-9

    def test_views_without_objects_are_left_out(self, scenes) -> None:
        config = replace(TINY, algorithm="subcat", trees=(2,), mirror=False)
        seen = [replace(scene, labels=np.full(len(scene), 2)) for scene in scenes]
        found = train_detector(seen, VIEWS, config)
        assert found.names == (VIEWS.names[2],)

    def test_all_views_share_a_cascade_otherwise(self, scenes) -> None:
        seen = [replace(scene, labels=np.full(len(scene), 2)) for scene in scenes]
        found = train_detector(seen, VIEWS, replace(TINY, trees=(2,), mirror=False))
        assert found.names == VIEWS.names
        assert found.cascades[0].n_views == 4


class TestCascades:
    def test_none(self, scenes) -> None:
        found = train_detector(scenes, VIEWS, replace(TINY, trees=(3,), cascade="none"))
        assert (found.cascades[0].rejections == -np.inf).all()

    def test_none_of_subcat_keeps_what_is_rather_an_object(self, scenes) -> None:
        config = replace(TINY, trees=(3,), cascade="none", algorithm="subcat")
        found = train_detector(scenes, VIEWS, config)
        assert {cascade.min_score for cascade in found.cascades} == {0.0}
        assert (found.candidates(scenes[0].load()).scores >= 0.0).all()

    @pytest.mark.parametrize("algorithm", ["badacost", "subcat"])
    def test_one_for_each_tree(self, scenes, algorithm) -> None:
        config = replace(TINY, trees=(6,), cascade="trees", algorithm=algorithm)
        found = train_detector(scenes, VIEWS, config)
        rejections = found.cascades[0].rejections
        assert np.isfinite(rejections).all()
        assert len(np.unique(rejections)) > 2


class TestNegatives:
    def negatives(self, images: Sequence[AnnotatedImage], folder: Path, config=TINY) -> dict:
        """Negative examples of the last round, by picture."""
        train_detector(images, VIEWS, config, folder=folder)
        arrays = read_model(folder / "cascade.checkpoint").arrays
        assert 0 < len(arrays["boxes"]) <= max(config.n_negatives, config.n_accumulated)
        return {
            index: arrays["boxes"][arrays["images"] == index] for index in range(len(images))
        } | {"n": len(arrays["boxes"])}

    def test_hardly_overlap_objects(self, scenes, tmp_path) -> None:
        config = replace(TINY, n_negatives=200, n_accumulated=400, n_per_image=40)
        found = self.negatives(scenes, tmp_path, config)
        assert sum(len(found[index]) for index in range(len(scenes))) == found["n"] > 40
        for index, scene in enumerate(scenes):
            assert (overlaps(found[index], scene.boxes) < 0.1).all()

    def test_objects_of_unknown_view_are_neither(self, scenes, tmp_path) -> None:
        unknown = [replace(scenes[0], labels=np.full(len(scenes[0]), -1)), *scenes[1:]]
        config = replace(TINY, n_negatives=200, n_accumulated=400, n_per_image=40)
        found = self.negatives(unknown, tmp_path, config)
        assert (overlaps(found[0], scenes[0].boxes) < 0.1).all()

    def test_never_lie_in_ignored_regions(self, scenes, tmp_path) -> None:
        region = [[0.0, 0.0, 40.0, 64.0]]
        half = [
            AnnotatedImage(
                scene.image,
                np.concatenate([scene.boxes, region]),
                labels=np.append(scene.labels, -1),
                ignore=np.append(np.zeros(len(scene), bool), True),
                name=scene.name,
            )
            for scene in scenes
        ]
        config = replace(TINY, n_negatives=200, n_accumulated=400, n_per_image=60)
        found = self.negatives(half, tmp_path, config)
        boxes = np.concatenate([found[index] for index in range(len(half))])
        inside = overlaps(boxes, region, "first")
        assert (inside < 0.1).all()
        assert (boxes[:, 0] < 40.0).any()  # a little is allowed

    def test_come_from_pictures_without_objects_too(self, scenes, tmp_path) -> None:
        empty = make_scenes(2, n_views=4, size=(64, 80), objects_per_image=0, random_state=5)
        found = self.negatives([*scenes, *empty], tmp_path, replace(TINY, n_negatives=60))
        assert len(found[len(scenes)]) > 0

    def test_only_whole_windows_are_random(self, scenes) -> None:
        small = [AnnotatedImage(np.zeros((10, 10, 3), np.uint8), name="small")]
        config = replace(TINY, trees=(2,))
        assert train_detector([*small, *scenes], VIEWS, config).cascades[0].forest.n_trees == 2


class _KilledError(Exception):
    pass


class TestResuming:
    @pytest.mark.parametrize("algorithm", ["badacost", "subcat"])
    def test_after_every_checkpoint(self, scenes, tmp_path, monkeypatch, algorithm) -> None:
        config = replace(TINY, algorithm=algorithm, trees=(2, 4))
        views = Views.around(2) if algorithm == "subcat" else VIEWS
        seen = [scene.with_views(views) for scene in scenes]
        whole = trained(seen, tmp_path, config, views)
        monkeypatch.setattr(training, "_TREES_BETWEEN_CHECKPOINTS", 2)
        save = Checkpoint.save

        def save_and_die(self: Checkpoint, progress) -> None:
            save(self, progress)
            raise _KilledError

        monkeypatch.setattr(Checkpoint, "save", save_and_die)
        n_killed = 0
        while True:
            try:
                result = trained(seen, tmp_path, config, views, folder=tmp_path / "checkpoints")
            except _KilledError:
                n_killed += 1
                assert n_killed < 50
            else:
                break
        # Negatives, a checkpoint inside of and one after each round, mined negatives.
        assert n_killed >= (6 if algorithm == "badacost" else 12)
        assert result == whole

    def test_a_finished_training_gives_the_same_at_once(
        self, scenes, tmp_path, expected, monkeypatch
    ) -> None:
        folder = tmp_path / "checkpoints"
        assert trained(scenes, tmp_path, folder=folder) == expected
        monkeypatch.setattr(training._CascadeTraining, "_boosted", None)
        monkeypatch.setattr(training._CascadeTraining, "_mined", None)
        assert trained(scenes, tmp_path, folder=folder) == expected

    def test_other_trainings_are_refused(self, scenes, tmp_path) -> None:
        config = replace(TINY, trees=(2,))
        train_detector(scenes, VIEWS, config, folder=tmp_path)
        other_pixels = scenes[0].load()
        other_pixels[0, 0] ^= 1
        moved = scenes[0].boxes + 0.5
        for images, settings, category in (
            (scenes, replace(config, seed=1), "object"),
            (scenes, config, "Car"),
            (scenes[:-1], config, "object"),
            ([replace(scenes[0], image=other_pixels), *scenes[1:]], config, "object"),
            ([replace(scenes[0], boxes=moved), *scenes[1:]], config, "object"),
            ([replace(scenes[0], name="other"), *scenes[1:]], config, "object"),
        ):
            with pytest.raises(ModelFileError, match="other images or another configuration"):
                train_detector(images, VIEWS, settings, category=category, folder=tmp_path)

    def test_damaged_checkpoints_are_refused(self, scenes, tmp_path) -> None:
        config = replace(TINY, trees=(2,))
        train_detector(scenes, VIEWS, config, folder=tmp_path)
        path = tmp_path / "cascade.checkpoint"
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(ModelFileError, match="remove this one to start again"):
            train_detector(scenes, VIEWS, config, folder=tmp_path)


_PROGRAM = """
import sys
from badacost.datasets.scenes import make_scenes
from badacost.detection import TrainingConfig, train_detector, training
from badacost.detection.annotations import Views

training._TREES_BETWEEN_CHECKPOINTS = 5
scenes = make_scenes(4, n_views=4, size=(64, 80), object_height=(0.3, 0.5), random_state=2)
config = TrainingConfig.from_toml(sys.argv[1])
train_detector(scenes, Views.around(4), config, folder=sys.argv[2]).save(sys.argv[3])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill")
def test_kill_at_any_point(scenes, tmp_path, expected) -> None:
    (tmp_path / "config.toml").write_text(TINY.to_toml())
    checkpoint, output = tmp_path / "checkpoints/cascade.checkpoint", tmp_path / "killed"
    command = [
        sys.executable, "-c", _PROGRAM, str(tmp_path / "config.toml"), str(checkpoint.parent),
        str(output),
    ]  # fmt: skip
    draw = random.Random(0)

    def version() -> int | None:
        return os.stat(checkpoint).st_mtime_ns if checkpoint.exists() else None

    versions = set()
    for _ in range(3):
        before = version()
        process = subprocess.Popen(command)
        while version() == before and process.poll() is None:
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.05))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        versions.add(version())
    assert len(versions) > 1
    subprocess.run(command, check=True, timeout=120)
    assert output.read_bytes() == expected


class TestMistakes:
    def test_no_objects(self, scenes) -> None:
        for images in ([], [scene[:0] for scene in scenes]):
            with pytest.raises(ValueError, match="no objects to learn"):
                train_detector(images, VIEWS, TINY)

    def test_no_labels(self, scenes) -> None:
        unknown = [replace(scene, labels=np.full(len(scene), -1)) for scene in scenes]
        with pytest.raises(ValueError, match="no objects to learn"):
            train_detector(unknown, VIEWS, TINY)

    def test_all_ignored(self, scenes) -> None:
        ignored = [replace(scene, ignore=np.ones(len(scene), bool)) for scene in scenes]
        with pytest.raises(ValueError, match="no objects to learn"):
            train_detector(ignored, VIEWS, TINY)

    def test_labels_beyond_the_views(self, scenes) -> None:
        with pytest.raises(ValueError, match="labels beyond the 2 views: use AnnotatedImage"):
            train_detector(scenes, Views.around(2), replace(TINY, mirror=False))

    def test_no_background(self) -> None:
        pixels = make_scenes(1, size=(64, 80))[0].load()
        full = AnnotatedImage(pixels, [[0, 0, 80, 64]], labels=[0], angles=[0.0], name="full")
        with pytest.raises(ValueError, match="no background was found in the images"):
            train_detector([full], VIEWS, TINY)

    def test_no_pixels(self, scenes) -> None:
        bare = AnnotatedImage(None, [[0, 0, 30, 20]], labels=[0], size=(64, 80), name="bare")
        with pytest.raises(ValueError, match="'bare' has annotations only"):
            train_detector([*scenes, bare], VIEWS, TINY)

    def test_what_is_no_image(self, scenes) -> None:
        with pytest.raises(TypeError, match="images must be AnnotatedImage; got ndarray"):
            train_detector([scenes[0].load()], VIEWS, TINY)

    @pytest.mark.parametrize(
        ("category", "kind"), [("", ValueError), ("a\nb", ValueError), (1, TypeError)]
    )
    def test_category(self, scenes, category, kind) -> None:
        with pytest.raises(kind, match="category must be"):
            train_detector(scenes, VIEWS, TINY, category=category)

    def test_absurd_boxes(self, scenes) -> None:
        for box, message in (
            ([0, 0, 1000, 10], "100 times as wide as high: correct their boxes"),
            ([0, 0, 3e6, 2e6], "^'odd': .*correct its box"),
        ):
            absurd = AnnotatedImage(scenes[0].image, [box], labels=[0], angles=[0.0], name="odd")
            with pytest.raises(ValueError, match=message):
                train_detector([absurd], VIEWS, TINY)

    def test_boxes_without_area_are_not_learned(self, scenes, tmp_path, expected) -> None:
        flat = replace(
            scenes[0][[*range(len(scenes[0])), 0]],
            boxes=np.concatenate([scenes[0].boxes, [[5.0, 5.0, 5.0, 20.0]]]),
        )
        assert trained([flat, *scenes[1:]], tmp_path) == expected

    def test_missing_picture(self, scenes, tmp_path) -> None:
        gone = AnnotatedImage(tmp_path / "gone.png", [[0, 0, 30, 20]], labels=[0], angles=[0.0])
        with pytest.raises((OSError, ValueError), match=r"gone\.png"):
            train_detector([*scenes, gone], VIEWS, TINY)

    def test_mistakes_while_mining_name_the_image(self, scenes, monkeypatch) -> None:
        detect = Detector.detect

        def refuse(self: Detector, image, **options):
            if np.array_equal(image, scenes[2].load()):
                raise ValueError("the image is too large.")
            return detect(self, image, **options)

        monkeypatch.setattr(Detector, "detect", refuse)
        for n_jobs in (1, 2):
            with pytest.raises(ValueError, match=f"^'{scenes[2].name}': the image is too large"):
                train_detector(scenes, VIEWS, replace(TINY, n_negatives=500), n_jobs=n_jobs)

    def test_more_views_than_a_cascade_holds(self, scenes) -> None:
        with pytest.raises(ValueError, match="at most 255 views; got 300: use fewer, or"):
            train_detector(scenes, Views.around(300), TINY)

    def test_costs_of_other_views(self, scenes) -> None:
        config = replace(TINY, cost_matrix=[[0, 1], [1, 0]])
        with pytest.raises(ValueError, match="cost_matrix must have 5 rows"):
            train_detector(scenes, VIEWS, config)

    def test_folder_that_is_a_file(self, scenes, tmp_path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError):
            train_detector(scenes, VIEWS, TINY, folder=tmp_path / "file")

    def test_no_threads(self, scenes) -> None:
        with pytest.raises(ValueError, match="n_jobs"):
            train_detector(scenes, VIEWS, TINY, n_jobs=0)


def test_binned_windows_survive_any_number_of_others(scenes) -> None:
    with Threads() as threads:
        shared = training._Training(scenes, VIEWS, TINY, "object", None, threads, False)
        task = training._CascadeTraining(shared, None)
        windows = task.positives
        matrix = training._Matrix(task, windows)
        whole = matrix.data(windows).bins.copy()
        for chosen in ([4, 2, 0], [0, 2, 4, 1], [*range(len(windows))], [1, 3]):
            bins = matrix.data(windows.chosen(np.array(chosen))).bins
            assert np.array_equal(bins, whole[:, chosen])


def test_a_log_tells_of_every_round(scenes, caplog) -> None:
    with caplog.at_level(logging.INFO, logger="badacost.detection.training"):
        train_detector(scenes, VIEWS, replace(TINY, trees=(2, 3)))
    text = caplog.text
    assert "round 1: 2 trees from" in text
    assert "new negatives" in text
    assert "round 2: 3 trees from" in text
    assert "calibration: " in text


def test_bars_are_shown_when_wanted(scenes, capsys) -> None:
    train_detector(scenes, VIEWS, replace(TINY, trees=(10,)), verbose=True)
    shown = capsys.readouterr().err
    assert "filters [" in shown
    assert "round 1, trees [" in shown
    train_detector(scenes, VIEWS, replace(TINY, trees=(10,)))
    assert capsys.readouterr().err == ""
