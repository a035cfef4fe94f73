"""`train_detector`: it learns, does not depend on threads or kills, and says what is wrong."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from badacost._utils.parallel import Threads
from badacost.detection import Detections, Detector, TrainingConfig, train_detector
from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.boxes import overlaps
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.scenes import make_scenes
from badacost.detection.training import identity as identity_module
from badacost.detection.training import rounds as rounds_module
from badacost.detection.training import store as store_module
from badacost.detection.training import trainer as module
from badacost.detection.training.checkpoint import Checkpoint
from badacost.detection.training.config import ALGORITHMS
from badacost.detection.training.rounds import CascadeRounds
from badacost.detection.training.subject import Task
from badacost.io.file_lock import FileLock
from badacost.io.model_file import ModelFileError, read_model, write_model
from campaigns.tiny_training import TINY, VIEWS, tiny_scenes
from tests.backends.fake_cuda import pretend_cuda
from tests.backends.on_cpu import needs_compiler

ROOT = Path(__file__).resolve().parents[3]
ONE_ROUND = replace(TINY, trees=(2,), validation=0.0, n_filters=0)
NO_REFIT = replace(TINY, refit=False)
WORLD = {"n_views": 4, "size": (120, 160), "object_height": (0.3, 0.5)}


@pytest.fixture(scope="module")
def fresh() -> dict[str, AnnotatedImage]:
    """Scenes that no detector has learned."""
    return {scene.name: scene for scene in make_scenes(12, random_state=9, **WORLD)}


@pytest.fixture(scope="module")
def detector() -> Detector:
    config = TrainingConfig(
        window=(16, 24), trees=(16, 48), max_depth=3, n_negatives=100, n_per_image=15,
        n_jittered=1, n_per_octave=5, n_filters=0, learning_rate=0.2, max_features=0.25,
    )  # fmt: skip
    return train_detector(make_scenes(16, **WORLD), VIEWS, config, category="Car")


@pytest.fixture(scope="module")
def found(detector, fresh) -> dict[str, Detections]:
    return {name: detector.detect(scene.load()) for name, scene in fresh.items()}


@pytest.fixture(scope="module")
def expected(scenes, tmp_path_factory) -> dict[str, bytes]:
    """Files of the tiny detectors, which nothing disturbed."""
    place = tmp_path_factory.mktemp("undisturbed")
    return {
        algorithm: trained(scenes, place, replace(TINY, algorithm=algorithm))
        for algorithm in ALGORITHMS
    }


@pytest.fixture(scope="module")
def plain(scenes, tmp_path_factory) -> bytes:
    """File of the detector of one round."""
    return trained(scenes, tmp_path_factory.mktemp("plain"), ONE_ROUND)


@pytest.fixture(scope="module")
def unrefitted(scenes, tmp_path_factory) -> Path:
    """Folder with the file of a detector without a last training, and its checkpoints."""
    place = tmp_path_factory.mktemp("unrefitted")
    trained(scenes, place, NO_REFIT, folder=place / "checkpoints")
    return place


@pytest.fixture(scope="module")
def finished(scenes, expected, tmp_path_factory) -> Path:
    """Checkpoints of a training to its end."""
    place = tmp_path_factory.mktemp("finished")
    assert trained(scenes, place, folder=place / "checkpoints") == expected["costboost"]
    return place / "checkpoints"


@pytest.fixture
def log(caplog) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="badacost.detection.training")
    return caplog


def trained(
    scenes: Sequence[AnnotatedImage], place: Path, config: TrainingConfig = TINY, **options
) -> bytes:
    """Bytes of the file of a detector."""
    train_detector(scenes, VIEWS, config, **options).save(place / "detector")
    return (place / "detector").read_bytes()


def divided(images, config=TINY, groups=None, folder=None) -> module._Training:
    """A training that knows what is held out, and has decoded and learned nothing."""
    return module._Training(images, VIEWS, config, None, groups, folder, Threads(), False)


def prepared(images, config=TINY, folder=None, begins=False) -> module._Training:
    training = divided(images, config, folder=folder)
    with ExitStack() as stack:
        training.prepare(stack)
        if begins:
            (folder / "cascade.checkpoint").touch()
    return training


def learned_pictures(training: module._Training) -> set[int]:
    """Pictures that objects are learned from, also by poses and units, while some are held out."""
    subject = training._subject(None)
    task = Task(subject, ~training.held_out)
    origins = training.store.origins
    examples = task.rounds(Checkpoint(None, "")).examples.windows
    witnesses, places = subject.witnesses
    assert len(task.witnesses) == task.is_known[places].sum() < len(witnesses)
    return set(origins[examples.images].tolist())


class TestDetector:
    def test_finds_objects_and_their_views(self, fresh, found) -> None:
        result = evaluate_voc(found, fresh)
        assert result.ap > 0.75  # 0.97 when this was written
        assert result.view_accuracy > 0.6  # 0.81
        assert evaluate_voc(found, fresh, overlap=0.7).ap > 0.5  # 0.74

    def test_is_complete(self, detector) -> None:
        assert repr(detector) == "Detector('Car' in 4 views, 1 cascade of 48 trees)"
        assert detector.names == VIEWS.names
        assert detector.angles == VIEWS.angles
        assert detector.pyramid.lambdas[0] == pytest.approx(0.0, abs=0.1)
        assert 0.05 < detector.pyramid.lambdas[1] < 0.5
        assert detector.aspect_ratios is None  # the pose knows
        assert detector.suppression.vote == 0.5
        (cascade,) = detector.cascades
        assert (cascade.rejections == cascade.rejections[0]).all()
        assert cascade.rejections[0] < 0.0
        assert cascade.min_score >= cascade.rejections[0]
        assert cascade.pose.n_views == 4
        np.testing.assert_array_equal(cascade.pose.view_costs, TINY.costs(4)[1:, 1:])

    def test_the_pose_fits_boxes_to_objects(self, detector, fresh, found) -> None:
        (cascade,) = detector.cascades
        bare = replace(
            detector, cascades=[replace(cascade, pose=None)], names=["object"], angles=None
        )
        shares = [
            np.mean(
                [
                    overlaps(scene.boxes, boxes[name]).max(axis=1).mean()
                    for name, scene in fresh.items()
                ]
            )
            for boxes in (
                found,
                {name: bare.detect(scene.load()) for name, scene in fresh.items()},
            )
        ]
        assert shares[0] > shares[1] + 0.02

    def test_scores_are_probabilities(self, fresh, found) -> None:
        outcomes = evaluate_voc(found, fresh).outcomes.values()
        scores = np.concatenate([outcome.detections.scores for outcome in outcomes])
        right = np.concatenate([outcome.verdicts for outcome in outcomes]) > 0
        assert ((scores >= 0.0) & (scores <= 1.0)).all()
        assert right[scores > 0.5].mean() > 0.5
        assert right[scores < 0.1].mean() < 0.25

    def test_a_lower_threshold_finds_more(self, detector, fresh) -> None:
        lower = detector.with_threshold(detector.cascades[0].min_score - 1.0)
        n_more = 0
        for scene in list(fresh.values())[:3]:
            before, after = detector.candidates(scene.load()), lower.candidates(scene.load())
            n_more += len(after) - len(before)
            assert (overlaps(before, after).max(axis=1) > 0.999).all()
        assert n_more > 0

    def test_the_floor_is_open(self, detector, fresh, found) -> None:
        """Nothing is lost that is rather no object, as long as there are few false alarms."""
        assert detector.cascades[0].min_score < 0.0
        at_zero = detector.with_threshold(0.0)
        closed = {name: at_zero.detect(scene.load()) for name, scene in fresh.items()}
        n_boxes = [sum(map(len, boxes.values())) for boxes in (found, closed)]
        assert n_boxes[0] > n_boxes[1]
        results = [evaluate_voc(boxes, fresh) for boxes in (found, closed)]
        assert results[0].ap >= results[1].ap
        n_wrong = sum(int((outcome.verdicts < 0).sum()) for outcome in results[0].outcomes.values())
        assert n_wrong < 2 * TINY.false_alarms * len(fresh)

    def test_a_saved_detector_finds_the_same(self, detector, fresh, tmp_path) -> None:
        detector.save(tmp_path / "cars")
        loaded = Detector.load(tmp_path / "cars")
        assert loaded.curve == detector.curve
        for scene in list(fresh.values())[:3]:
            one, other = detector.detect(scene.load()), loaded.detect(scene.load())
            for name in ("boxes", "scores", "labels"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
class TestAlgorithms:
    def test_threads_do_not_matter(self, scenes, tmp_path, expected, algorithm) -> None:
        config = replace(TINY, algorithm=algorithm)
        assert trained(scenes, tmp_path, config, n_jobs=2) == expected[algorithm]

    def test_resume_after_every_checkpoint(
        self, scenes, tmp_path, expected, monkeypatch, algorithm
    ) -> None:
        monkeypatch.setattr(rounds_module, "_TREES_BETWEEN_CHECKPOINTS", 2)
        save, n_saved = Checkpoint.save, 0
        # The first three die at each checkpoint together; SubCat has eleven for each cascade.
        step, first = {"costboost": (2, 1), "badacost": (4, 2), "samme": (4, 0), "subcat": (9, 0)}[
            algorithm
        ]

        def save_and_die(self: Checkpoint, progress) -> None:
            nonlocal n_saved
            save(self, progress)
            n_saved += 1
            if n_saved % step == first:
                raise _KilledError

        monkeypatch.setattr(Checkpoint, "save", save_and_die)
        config = replace(TINY, algorithm=algorithm)
        n_killed = 0
        while True:
            try:
                got = trained(scenes, tmp_path, config, folder=tmp_path / "checkpoints")
            except _KilledError:
                n_killed += 1
                assert n_killed < 60
            else:
                break
        # Negatives, inside of and after each round, mined negatives, and the last training.
        assert n_saved >= (36 if algorithm == "subcat" else 9)
        assert n_killed >= n_saved // step
        assert got == expected[algorithm]

    def test_the_detector_looks_as_it_should(self, tmp_path, expected, algorithm) -> None:
        (tmp_path / "detector").write_bytes(expected[algorithm])
        found = Detector.load(tmp_path / "detector")
        assert found.names == VIEWS.names
        assert found.category == "Car"
        assert len(found.cascades) == (4 if algorithm == "subcat" else 1)
        n_columns = {"costboost": 1, "subcat": 1}.get(algorithm, 4)
        for cascade in found.cascades:
            assert cascade.forest.table.shape[1] == n_columns
            assert cascade.forest.n_trees in TINY.trees
            assert cascade.pose.n_views == (4 if algorithm == "costboost" else 0)
        assert set(found.detect(tiny_scenes()[0].load()).labels.tolist()) <= set(range(4))


class _KilledError(Exception):
    pass


class TestSameDetector:
    def test_with_pictures_and_windows_in_files(
        self, scenes, tmp_path, expected, monkeypatch
    ) -> None:
        images = []
        for scene in scenes:
            Image.fromarray(scene.load()).save(tmp_path / f"{scene.name}.png")
            images.append(replace(scene, image=tmp_path / f"{scene.name}.png", size=None))
        loaded: list[str] = []
        load = AnnotatedImage.load

        def counted(self: AnnotatedImage) -> np.ndarray:
            loaded.append(self.name)
            return load(self)

        monkeypatch.setattr(AnnotatedImage, "load", counted)
        monkeypatch.setattr(store_module, "_MAX_MEMORY", 0)
        folder = tmp_path / "checkpoints"
        got = trained(images, tmp_path, folder=folder, verbose=True)
        assert got == expected["costboost"]
        assert sorted(loaded) == sorted(scene.name for scene in scenes)  # once each
        assert sorted(path.name for path in folder.iterdir()) == [
            "calibration.checkpoint", "cascade.checkpoint", "final.checkpoint",
            "training.checkpoint",
        ]  # fmt: skip

    def test_seed_matters(self, scenes, tmp_path, plain) -> None:
        assert trained(scenes, tmp_path, replace(ONE_ROUND, seed=1)) != plain

    def test_samme_has_costs_of_zero_and_one(self, scenes, tmp_path, expected) -> None:
        plain = replace(
            TINY, algorithm="badacost", alpha=1.0, beta=1.0, gamma=1.0, views_in_circle=False
        )
        # Apart from poses, which know whether views lie in a circle.
        (tmp_path / "samme").write_bytes(expected["samme"])
        forests = [
            each.cascades[0].forest
            for each in (Detector.load(tmp_path / "samme"), train_detector(scenes, VIEWS, plain))
        ]
        np.testing.assert_array_equal(forests[0].feature, forests[1].feature)
        np.testing.assert_array_equal(forests[0].table, forests[1].table)
        assert expected["samme"] != expected["badacost"]


class TestHeldOut:
    def test_groups_are_never_in_both_parts(self, scenes) -> None:
        empty = replace(scenes[0][:0], name="empty")
        images = [*scenes, *scenes, empty, empty]
        groups = [0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0, 3, "negatives"]
        seen = set()
        for seed in range(8):
            training = divided(images, replace(TINY, seed=seed), groups)
            held_out = {groups[k] for k in np.flatnonzero(training.held_out)}
            others = {groups[k] for k in np.flatnonzero(~training.held_out)}
            assert held_out
            assert not held_out & others
            assert "negatives" in others
            seen |= held_out
        assert len(seen) > 2

    def test_about_the_wanted_share(self, scenes) -> None:
        images = scenes * 5
        n_objects = sum(map(len, images))
        for share in (0.1, 0.3, 0.5):
            training = divided(images, replace(TINY, validation=share))
            held_out = [images[k] for k in np.flatnonzero(training.held_out)]
            assert sum(map(len, held_out)) / n_objects == pytest.approx(share, abs=0.05)

    def test_pictures_of_few_groups_are_held_out_one_by_one(self, scenes, log) -> None:
        training = divided(scenes, groups=[0, 0, 0, 1, 1, 2])
        assert training.held_out.sum() == 1
        assert "fewer than 4 groups have objects: pictures are held out one by one" in log.text
        log.clear()
        divided(scenes, ONE_ROUND, groups=[0] * 6)
        assert "one by one" not in log.text  # nothing is

    def test_few_pictures_are_not_divided(self, scenes, log) -> None:
        assert not divided(scenes, ONE_ROUND).held_out.any()
        few = [scenes[index] for index in (0, 2, 3)]
        found = train_detector(few, VIEWS, replace(TINY, trees=(2,)))
        assert found.curve is None
        assert found.suppression.vote is None
        assert "thresholds are a guess and scores are not probabilities" in log.text
        (cascade,) = found.cascades
        assert cascade.min_score == cascade.rejections[0] < 0.0

    def test_what_is_held_out_is_not_learned(self, scenes, finished) -> None:
        training = prepared(scenes)
        (held_out,) = np.flatnonzero(training.held_out)
        first = read_model(finished / "cascade.checkpoint").arrays
        assert len(first["images"])
        assert held_out not in first["images"]
        assert held_out not in first["first_images"]
        assert held_out not in learned_pictures(training)
        last = read_model(finished / "final.checkpoint").arrays  # where it serves as well
        assert held_out in last["images"]

    def test_mirror_images_are_held_out_with_their_pictures(self, scenes) -> None:
        training = prepared(scenes, replace(TINY, mirror=True))
        assert len(training.objects) == 22
        assert learned_pictures(training) == set(np.flatnonzero(~training.held_out).tolist())
        assert len(training._validation()[0]) == training.held_out.sum()

    def test_views_of_subcat_are_calibrated_together(self, scenes, log) -> None:
        """A rare view may not be among what is held out: no round of it is judged alone."""
        config = replace(TINY, algorithm="subcat", trees=(1, 2), n_filters=0, refit=False)
        train_detector(scenes, VIEWS, config)
        rounds = [line for line in log.messages if ": round 2: " in line]
        assert len(rounds) == 4
        assert not any("held out" in line for line in rounds)
        assert any(line.startswith("calibration: AP ") for line in log.messages)

    def test_without_a_last_training(self, expected, unrefitted) -> None:
        assert (unrefitted / "detector").read_bytes() != expected["costboost"]
        names = {path.name for path in (unrefitted / "checkpoints").iterdir()}
        assert names == {"cascade.checkpoint", "calibration.checkpoint", "training.checkpoint"}
        model = read_model(unrefitted / "checkpoints/cascade.checkpoint")
        (cascade,) = Detector.load(unrefitted / "detector").cascades
        np.testing.assert_array_equal(cascade.forest.threshold, model.arrays["forest_threshold"])

    @pytest.mark.parametrize("groups", [[1, 2], [0] * 7])
    def test_a_group_for_each_picture(self, scenes, groups) -> None:
        with pytest.raises(ValueError, match="groups must have one entry for each of 6 images"):
            train_detector(scenes, VIEWS, TINY, groups=groups)

    def test_a_group_for_each_folder(self, scenes) -> None:
        files = [AnnotatedImage(Path(name)) for name in ("a/1.png", "b/1.png", "a/2.png")]
        groups = module._checked_groups("folder", [scenes[0], *files, scenes[1]])
        assert groups.tolist() == [0, 1, 2, 1, 3]  # scenes have no folder
        with pytest.raises(ValueError, match="groups must be one of 'folder'"):
            train_detector(scenes, VIEWS, TINY, groups="day")


class TestNames:
    def test_views_without_headings(self, scenes) -> None:
        found = train_detector(scenes, Views(tuple("abcd")), replace(ONE_ROUND, mirror=True))
        assert found.angles is None
        assert found.names == tuple("abcd")

    def test_the_category_is_that_of_the_objects(self, scenes) -> None:
        assert divided(scenes).category == "Car"
        first = replace(scenes[0], categories=["Bus"] * len(scenes[0]))
        assert divided([first, *scenes[1:]]).category == "object"


class TestNegatives:
    def test_hardly_overlap_objects_or_ignored_regions(self, scenes, tmp_path) -> None:
        region = [0.0, 0.0, 30.0, 64.0]
        images = [
            AnnotatedImage(
                scene.image,
                [*scene.boxes.tolist(), region],
                labels=[*scene.labels, -1],
                ignore=[False] * len(scene) + [True],
                name=scene.name,
            )
            for scene in scenes
        ]
        unknown = replace(images[5], labels=np.full(len(images[5]), -1))
        config = replace(TINY, n_negatives=200, n_accumulated=400, n_per_image=40, validation=0.0)
        train_detector([*images[:5], unknown], VIEWS, config, folder=tmp_path)
        found = read_model(tmp_path / "cascade.checkpoint").arrays
        assert len(found["boxes"]) > 20
        assert 5 in found["images"]
        for index, scene in enumerate(scenes):
            boxes = found["boxes"][found["images"] == index]
            assert (overlaps(boxes, scene.boxes) < 0.1).all()
            assert (overlaps(boxes, [region], "first") < 0.1).all()

    def test_pictures_smaller_than_the_window_do_no_harm(self, scenes) -> None:
        small = AnnotatedImage(np.zeros((10, 10, 3), np.uint8), name="small")
        assert train_detector([small, *scenes], VIEWS, ONE_ROUND).cascades[0].forest.n_trees == 2


class TestResuming:
    def test_a_finished_training_gives_the_same_at_once(
        self, scenes, tmp_path, expected, finished, monkeypatch
    ) -> None:
        for name in ("_boosted", "_mined"):
            monkeypatch.setattr(CascadeRounds, name, None)
        monkeypatch.setattr(module, "calibrated", None)
        assert trained(scenes, tmp_path, folder=finished) == expected["costboost"]

    def test_other_trainings_are_refused(self, scenes, finished) -> None:
        other_pixels = scenes[0].load()
        other_pixels[0, 0] ^= 1
        moved = scenes[0].boxes + 0.5
        for images, config, options, message in (
            (scenes, replace(TINY, seed=1), {}, r"with another setting seed \(0, now 1\);"),
            (scenes, TINY, {"category": "Bus"}, r'setting category \("Car", now "Bus"\);'),
            (scenes, TINY, {"groups": [0, 1, 2, 3, 4, 4]}, "with another setting groups;"),
            (scenes[:-1], TINY, {}, "from other images, from other annotations, with"),
            ([replace(scenes[0], image=other_pixels), *scenes[1:]], TINY, {}, "other images;"),
            ([replace(scenes[0], boxes=moved), *scenes[1:]], TINY, {}, "from other annotations;"),
            ([replace(scenes[0], name="other"), *scenes[1:]], TINY, {}, "from other images;"),
        ):
            with pytest.raises(
                ModelFileError, match=f"cannot resume from .*it was made .*{message}"
            ):
                train_detector(images, VIEWS, config, folder=finished, **options)

    def test_files_with_other_pixels_are_refused(self, scenes, tmp_path) -> None:
        """Size and time of a file do not count, its contents do."""
        path, checkpoints = tmp_path / "a.png", tmp_path / "checkpoints"
        pixels = scenes[0].load()
        images = [replace(scenes[0], image=path, name="a"), *scenes[1:]]
        Image.fromarray(pixels).save(path, compress_level=0)
        before = path.stat()
        prepared(images, folder=checkpoints, begins=True)
        pixels[3, 5] ^= 1
        Image.fromarray(pixels).save(path, compress_level=0)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        with pytest.raises(ModelFileError, match="it was made from other images;"):
            prepared(images, folder=checkpoints)

    def test_a_training_without_progress_ties_the_folder_to_nothing(self, scenes, tmp_path) -> None:
        prepared(scenes, folder=tmp_path)
        config = replace(TINY, seed=1)
        prepared(scenes, config, folder=tmp_path, begins=True)
        prepared(scenes, config, folder=tmp_path)
        with pytest.raises(ModelFileError, match=r"setting seed \(1, now 0\)"):
            prepared(scenes, folder=tmp_path)

    def test_all_but_pixels_is_checked_before_pictures_are_read(
        self, scenes, finished, monkeypatch
    ) -> None:
        monkeypatch.setattr(AnnotatedImage, "load", None)
        with pytest.raises(ModelFileError, match="setting max_depth"):
            train_detector(scenes, VIEWS, replace(TINY, max_depth=3), folder=finished)

    def test_other_versions_are_refused(self, scenes, finished, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(identity_module, "ALGORITHM_VERSION", 999)
        with pytest.raises(ModelFileError, match="made by version 1 of the training, this is"):
            train_detector(scenes, VIEWS, TINY, folder=finished)
        monkeypatch.undo()
        (tmp_path / "cascade.checkpoint").write_bytes(
            (finished / "cascade.checkpoint").read_bytes()
        )
        with pytest.raises(ModelFileError, match="made by an older version of badacost; choose"):
            train_detector(scenes, VIEWS, TINY, folder=tmp_path)

    def test_a_second_training_in_the_folder_says_so(self, scenes, tmp_path) -> None:
        with (
            FileLock(tmp_path),
            pytest.raises(BlockingIOError, match=r"another process is writing the fold.*: wait"),
        ):
            train_detector(scenes, VIEWS, TINY, folder=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_a_checkpoint_that_cannot_be_written_ends_the_training(
        self, scenes, tmp_path, expected, monkeypatch
    ) -> None:
        """The one before is intact: when there is room, the training resumes."""
        save, folder = Checkpoint.save, tmp_path / "checkpoints"
        n_saved = 0

        def fail(self, progress) -> None:
            nonlocal n_saved
            n_saved += 1
            with monkeypatch.context() as patch:
                if n_saved == 3:
                    patch.setattr(os, "fsync", full_disk)
                save(self, progress)

        def full_disk(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "save", fail)
            with pytest.raises(
                OSError, match=r"cannot write .*cascade\.checkpoint': the disk is f"
            ):
                train_detector(scenes, VIEWS, TINY, folder=folder)
        assert n_saved == 3
        assert sorted(os.listdir(folder)) == ["cascade.checkpoint", "training.checkpoint"]
        assert trained(scenes, tmp_path, folder=folder) == expected["costboost"]

    @pytest.mark.parametrize("name", ["cascade", "final", "calibration", "training"])
    def test_damaged_checkpoints_are_refused(self, scenes, tmp_path, finished, name) -> None:
        for path in finished.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        path = tmp_path / f"{name}.checkpoint"
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(ModelFileError, match="remove this one to start again"):
            train_detector(scenes, VIEWS, TINY, folder=tmp_path)

    @pytest.mark.parametrize(
        "change",
        [
            {"digest": "other"},
            {"digest": None},
            {"rejection": "0.5"},
            {"rejection": None},
            {"min_score": []},
            {"precision": "good"},
            {"curve": {"slope": -1.0, "intercept": 0.0}},
            {"curve": {"slope": 1.0}},
            {"curve": [1.0, 2.0]},
            {"curve": 3},
            {"extra": 1},
        ],
        ids=str,
    )
    def test_a_changed_calibration_is_refused(self, finished, tmp_path, change) -> None:
        source = finished / "calibration.checkpoint"
        model = read_model(source)
        digest = model.header["digest"]
        assert module._read_calibration(source, digest).rejection == model.header["rejection"]
        path = tmp_path / "calibration.checkpoint"
        assert module._read_calibration(path, digest) is None
        write_model(path, model.kind, model.header | change, {})
        with pytest.raises(ModelFileError, match=r"cannot resume from .* to start again\.$"):
            module._read_calibration(path, digest)
        write_model(path, "Detector", model.header, {})
        with pytest.raises(ModelFileError, match="belongs to another training"):
            module._read_calibration(path, digest)


# Of the tiny detectors: a hash of their trees and rejections, that kernels of BLAS did not change
# (OPENBLAS_CORETYPE), and the sum of the weights of poses, of which they change the last digits.
SIGNATURES = {
    "costboost": ("01574b974f14d3f1", 10.04617),
    "badacost": ("3513d0304bb1a8f3", 5.833904),
    "samme": ("5eacf741207e36d9", 5.833904),
    "subcat": ("7f12bfa9abb3f688", 15.33977),
}
SIGNED_VERSION = 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_other_results_need_another_version(expected, tmp_path, algorithm) -> None:
    """If this fails since results changed: raise ALGORITHM_VERSION, then write what was found."""
    (tmp_path / "detector").write_bytes(expected[algorithm])
    digest, poses = hashlib.sha256(), 0.0
    for cascade in Detector.load(tmp_path / "detector").cascades:
        forest = cascade.forest
        for part in (forest.feature, forest.left, forest.value, forest.offsets):
            digest.update(part.astype("<i8").tobytes())
        for part in (forest.threshold, forest.table, forest.tree_weights, cascade.rejections):
            digest.update(part.astype("<f8").tobytes())
        poses += np.abs(cascade.pose.weights).sum(dtype=np.float64)
    trees, weights = SIGNATURES[algorithm]
    assert digest.hexdigest()[:16] == trees
    assert poses == pytest.approx(weights, rel=1e-5)
    assert identity_module.ALGORITHM_VERSION == SIGNED_VERSION


@needs_compiler
def test_the_device_does_not_matter(scenes, tmp_path, unrefitted, monkeypatch) -> None:
    """Trees of other boosters are those of the classifiers, see ``test_cuda_part``."""
    pretend_cuda(monkeypatch)
    got = trained(scenes, tmp_path, NO_REFIT, device="cuda")
    assert got == (unrefitted / "detector").read_bytes()


class TestLog:
    def test_it_tells_of_every_step(self, scenes, log, capsys) -> None:
        train_detector(scenes, VIEWS, replace(TINY, mirror=True))
        assert capsys.readouterr().err == ""
        for line in (
            "CostBoost for 'Car' in 4 views: 6 pictures, 11 objects, windows of 16 x 24 pixels",
            "objects by view, mirror images included: 0° ",
            "round 1: 2 trees, ",
            "new negatives in 5 images (scores ",
            "round 2: 4 trees, ",
            " on the images held out",
            "calibration: AP ",
            " % of the objects, moved a little, are kept by the detector",
        ):
            assert line in log.text

    def test_a_detector_that_loses_objects_says_so(self, scenes, log, monkeypatch) -> None:
        kept = Task.kept
        monkeypatch.setattr(
            Task, "kept", lambda self, cascade: kept(self, cascade) & (np.arange(11) > 1)
        )
        train_detector(scenes, VIEWS, ONE_ROUND)
        assert "the detector loses 18 % of the objects it was trained on: use more" in log.text
        monkeypatch.setattr(Task, "kept", lambda *_: np.ones(11, bool))
        log.clear()
        train_detector(scenes, VIEWS, ONE_ROUND)
        assert "100.0 % of the objects" in log.text
        assert "the detector loses" not in log.text

    def test_bars_are_shown_when_wanted(self, scenes, capsys) -> None:
        train_detector(scenes, VIEWS, ONE_ROUND, verbose=True)
        shown = capsys.readouterr().err
        assert "filters [" in shown
        assert "poses [" in shown
        assert "round 1, trees [" in shown


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

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_empty_views(self, scenes, tmp_path, monkeypatch, algorithm) -> None:
        seen = [replace(scene, labels=np.where(scene.labels == 3, 1, scene.labels))
                for scene in scenes]  # fmt: skip
        monkeypatch.setattr(AnnotatedImage, "load", None)  # nothing is decoded in vain
        config = replace(TINY, algorithm=algorithm)
        with pytest.raises(
            ValueError,
            match=r"no object is seen as '90°': use fewer views, or check the angles of the "
            r"annotations \(objects by view: 0° 3, -90° 5, -180° 3, 90° 0\)",
        ):
            train_detector(seen, VIEWS, config, folder=tmp_path / "checkpoints")
        assert not (tmp_path / "checkpoints").exists()

    def test_mirror_images_may_fill_views(self, scenes) -> None:
        seen = [scene[scene.labels != 2] for scene in scenes]
        found = train_detector(seen, VIEWS, replace(ONE_ROUND, mirror=True))
        assert found.names == VIEWS.names

    def test_a_view_is_never_held_out_as_a_whole(self, scenes) -> None:
        # View 3 is in a single picture, which some seed would hold out.
        seen = [
            scene if index == 0 else scene[scene.labels != 3] for index, scene in enumerate(scenes)
        ]
        config = replace(TINY, algorithm="subcat")
        held_out = [divided(seen, replace(config, seed=seed)).held_out for seed in range(8)]
        assert not any(part[0] for part in held_out)
        assert any(part.any() for part in held_out)
        free = [divided(scenes, replace(config, seed=seed)).held_out[0] for seed in range(30)]
        assert any(free)

    def test_labels_beyond_the_views(self, scenes) -> None:
        with pytest.raises(ValueError, match="labels beyond the 2 views: use label_views"):
            train_detector(scenes, Views.around(2), TINY)

    def test_no_background(self, scenes) -> None:
        pixels = scenes[0].load()[:24, :36]
        full = AnnotatedImage(pixels, [[0, 0, 36, 24]], labels=[0], angles=[0.0], name="full")
        with pytest.raises(ValueError, match="no background was found in the images"):
            train_detector([full], Views.around(1), TINY)

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
                train_detector([absurd], Views.around(1), TINY)

    def test_boxes_without_area_are_not_learned(self, scenes, tmp_path, plain) -> None:
        flat = replace(
            scenes[0][[*range(len(scenes[0])), 0]],
            boxes=np.concatenate([scenes[0].boxes, [[5.0, 5.0, 5.0, 20.0]]]),
        )
        assert trained([flat, *scenes[1:]], tmp_path, ONE_ROUND) == plain

    def test_missing_picture(self, scenes, tmp_path) -> None:
        gone = AnnotatedImage(tmp_path / "gone.png", [[0, 0, 30, 20]], labels=[0], angles=[0.0])
        with pytest.raises((OSError, ValueError), match=r"gone\.png"):
            train_detector([*scenes, gone], VIEWS, TINY)

    @pytest.mark.parametrize("algorithm", ["badacost", "samme"])
    def test_more_views_than_a_cascade_holds(self, scenes, algorithm) -> None:
        with pytest.raises(ValueError, match="at most 255 views; got 300: use fewer, or"):
            train_detector(scenes, Views.around(300), replace(TINY, algorithm=algorithm))

    def test_costs_of_other_views(self, scenes) -> None:
        config = replace(TINY, cost_matrix=[[0, 1], [1, 0]])
        with pytest.raises(ValueError, match="cost_matrix must have 5 rows"):
            train_detector(scenes, VIEWS, config)

    def test_folder_that_is_a_file(self, scenes, tmp_path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError, match="File exists: name a file in another folder"):
            train_detector(scenes, VIEWS, TINY, folder=tmp_path / "file")

    def test_no_threads(self, scenes) -> None:
        with pytest.raises(ValueError, match="n_jobs"):
            train_detector(scenes, VIEWS, TINY, n_jobs=0)


def test_costs_between_views_decide_on_the_view(scenes) -> None:
    """A matrix that makes one view cheap to take for any other."""
    costs = np.ones((5, 5)) - np.eye(5)
    costs[1:, 3] *= 1e-3
    found = train_detector(
        scenes, VIEWS, replace(ONE_ROUND, cost_matrix=tuple(map(tuple, costs.tolist())))
    )
    labels = np.concatenate([found.candidates(scene.load()).labels for scene in scenes])
    assert len(labels) > 10
    assert (labels == 2).all()


@pytest.mark.parametrize("algorithm", ["costboost", "badacost"])
def test_prices_of_the_background_matter(scenes, algorithm) -> None:
    """A matrix whose false alarms, or whose misses, cost more makes another forest."""
    costs = np.array(replace(ONE_ROUND, algorithm=algorithm).costs(len(VIEWS)))
    cheap, expensive = costs.copy(), costs.copy()
    expensive[0, 1:] *= 50.0
    forests = []
    for matrix in (cheap, expensive):
        rows = tuple(map(tuple, matrix.tolist()))
        config = replace(ONE_ROUND, algorithm=algorithm, cost_matrix=rows)
        (cascade,) = train_detector(scenes, VIEWS, config).cascades
        forests.append(cascade.forest)
    scores = [float((forest.table * forest.tree_weights[0]).max()) for forest in forests]
    assert scores[0] != scores[1]
    if algorithm == "costboost":
        assert scores[0] > scores[1]


def test_free_confusions_of_one_view_are_refused(scenes) -> None:
    costs = np.array(ONE_ROUND.costs(len(VIEWS)))
    costs[2, 1:] = 0.0
    config = replace(ONE_ROUND, cost_matrix=tuple(map(tuple, costs.tolist())))
    with pytest.raises(ValueError, match=f"take view {VIEWS.names[1]!r} for any other is free"):
        train_detector(scenes, VIEWS, config)
    costs[1:, 1:] = 0.0  # all of them: the most likely view is told
    config = replace(ONE_ROUND, cost_matrix=tuple(map(tuple, costs.tolist())))
    assert len(train_detector(scenes, VIEWS, config).names) == len(VIEWS)
