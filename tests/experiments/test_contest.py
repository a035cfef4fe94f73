"""A contest resumes where it was stopped, and never mixes results."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from badacost.detection.annotations import Views
from badacost.detection.scenes import make_scenes
from badacost.detection.training.config import TrainingConfig
from experiments import contest as module
from experiments.contest import (
    ContestSettings,
    Entry,
    Images,
    data_folder,
    described,
    forget,
    run,
)
from experiments.journal import JournalError

VIEWS = Views.around(2)
SCENES = make_scenes(7, n_views=2, size=(96, 128), random_state=4)
IMAGES = Images(SCENES[:4], SCENES[4:])
DARKER = replace(SCENES[6], image=SCENES[6].load() // 2)


@dataclass(frozen=True)
class SmallSettings(ContestSettings):
    """Two views and few trees, of all contenders or of some."""

    category = "Car"
    name = "small"
    views = VIEWS
    trees: tuple[int, ...] = (2, 4)
    max_depth: int = 3
    n_negatives: int = 30
    subcat_trees: tuple[int, ...] = (2, 8)
    n_subcat_negatives: int = 20
    n_octaves_up: int = 0
    n_timed: int = 1
    n_contenders: int = 4

    def configs(self) -> dict[str, TrainingConfig]:
        found = self._contenders({"n_filters": 0}, window=(24, 32), n_filters=0)
        return dict(list(found.items())[: self.n_contenders])


SMALL = SmallSettings()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Entry]]:
    folder = tmp_path_factory.mktemp("contest")
    return folder, run(SMALL, IMAGES, folder, n_jobs=1)


def lines_of(folder: Path) -> list[str]:
    return (folder / "journal.jsonl").read_text().splitlines()


def assert_same(first: dict[str, Entry], second: dict[str, Entry]) -> None:
    assert list(first) == list(second)
    for name, entry in first.items():
        other = second[name]
        assert list(entry.detections) == list(other.detections)
        for image, found in entry.detections.items():
            np.testing.assert_array_equal(found.boxes, other.detections[image].boxes)
            np.testing.assert_array_equal(found.scores, other.detections[image].scores)


def test_everything_is_recorded(finished: tuple[Path, dict[str, Entry]]) -> None:
    folder, entries = finished
    assert list(entries) == ["CostBoost", "BAdaCost", "SAMME", "SubCat"]
    records = [json.loads(line) for line in lines_of(folder)[1:]]
    parts = ["start", "training", *["image"] * 3, "work"]
    assert [(r["detector"], r["part"]) for r in records] == [
        (name, part) for name in entries for part in parts
    ]
    for name, entry in entries.items():
        assert not entry.numbers["is_published"]
        assert entry.numbers["training"]["n_starts"] == 1
        assert entry.numbers["work"]["n_cascades"] == (2 if name == "SubCat" else 1)
        assert list(entry.detections) == [image.name for image in SCENES[4:]]
    assert sum(map(len, entries["SubCat"].detections.values())) > 0


def test_a_second_run_does_nothing(finished, monkeypatch) -> None:
    folder, entries = finished
    before = lines_of(folder)
    monkeypatch.setattr(module, "train_detector", None)
    assert_same(entries, run(SMALL, IMAGES, folder, n_jobs=1))
    assert lines_of(folder) == before


@pytest.mark.parametrize(("kept", "n_contenders"), [(1, 1), (2, 1), (10, 3)])
def test_a_stopped_run_goes_on(
    finished, tmp_path: Path, monkeypatch, kept: int, n_contenders: int
) -> None:
    """Up to the first contender that had not begun, or to the end of the first."""
    folder, entries = finished
    first = list(entries)[:n_contenders]
    configs = {name: SMALL.configs()[name] for name in first}
    monkeypatch.setattr(SmallSettings, "configs", lambda self: configs)
    lines = lines_of(folder)
    (tmp_path / "journal.jsonl").write_text("\n".join(lines[:kept]) + "\n" + lines[kept][:20])
    for model in folder.glob("*.detector"):
        (tmp_path / model.name).write_bytes(model.read_bytes())
    again = run(SMALL, IMAGES, tmp_path, n_jobs=1)
    assert_same({name: entries[name] for name in first}, again)
    starts = 2 if kept == 2 else 1  # the first training had begun, no more
    assert again["CostBoost"].numbers["training"]["n_starts"] == starts


def test_published_detectors_compete_as_they_are(finished, tmp_path: Path) -> None:
    folder, entries = finished
    published = tmp_path / "rival.detector"
    published.write_bytes((folder / "SAMME.detector").read_bytes())
    only = SmallSettings(n_contenders=0)
    found = run(only, IMAGES, tmp_path / "work", published=[published], n_jobs=1)
    rival = found["published rival"]
    assert rival.numbers["is_published"]
    assert rival.numbers["training"] is None
    assert_same({"x": entries["SAMME"]}, {"x": rival})
    published.write_bytes((folder / "SubCat.detector").read_bytes())
    with pytest.raises(JournalError, match="results of another rival"):
        run(only, IMAGES, tmp_path / "work", published=[published], n_jobs=1)


@pytest.mark.parametrize(
    ("settings", "images", "what"),
    [
        (replace(SMALL, seed=1), IMAGES, "settings"),
        (SMALL, replace(IMAGES, test=SCENES[5:]), "annotations"),
        (SMALL, replace(IMAGES, test=[*SCENES[4:6], DARKER]), "images"),
    ],
)
def test_other_settings_and_images_are_refused(finished, settings, images, what) -> None:
    with pytest.raises(JournalError, match=f"other {what}"):
        run(settings, images, finished[0], n_jobs=1)


@pytest.mark.parametrize(
    "change",
    [
        {"angles": SCENES[6].angles + 1.0},
        {"categories": ["Bus"] * len(SCENES[6])},
        {"flipped": True},
    ],
)
def test_all_of_the_annotations_count(tmp_path: Path, change) -> None:
    changed = replace(IMAGES, test=[*SCENES[4:6], replace(SCENES[6], **change)])
    before, after = (module.header(SMALL, images, tmp_path) for images in (IMAGES, changed))
    assert {key for key in before if before[key] != after[key]} == {"annotations"}


def test_forget_removes_its_own_files_only(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "SAMME").mkdir(parents=True)
    for name in (
        "journal.jsonl",
        "SAMME.detector",
        "checkpoints/SAMME/cascade",
        "images.json",
        "mine.txt",
    ):
        (tmp_path / name).write_text("x")
    forget(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    forget(tmp_path / "nowhere")


def test_contenders_differ_in_costs_and_trees() -> None:
    configs = SMALL.configs()
    assert list(configs) == ["CostBoost", "BAdaCost", "SAMME", "SubCat"]
    config = configs["BAdaCost"]
    assert (config.trees, config.n_negatives, config.algorithm) == ((2, 4), 30, "badacost")
    assert configs["SAMME"] == replace(config, algorithm="samme")
    assert configs["SubCat"] == replace(
        config, algorithm="subcat", trees=(2, 8), max_depth=2, n_negatives=20, n_accumulated=3000
    )


def test_what_images_hold() -> None:
    labels = np.concatenate([image.labels for image in SCENES])
    unlabelled = replace(SCENES[0], labels=np.full(len(SCENES[0]), -1))
    told = described([*SCENES, unlabelled], 2)
    assert told["n_images"] == 8
    assert told["n_objects"] == len(labels) + len(SCENES[0])
    assert told["per_view"] == [int((labels == 0).sum()), int((labels == 1).sum())]


def test_data_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("BADACOST_DATA", raising=False)
    assert data_folder(tmp_path, "cars") == tmp_path
    with pytest.raises(FileNotFoundError, match="--data"):
        data_folder(None, "cars")
    monkeypatch.setenv("BADACOST_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        data_folder(None, "cars")
    (tmp_path / "detection" / "cars").mkdir(parents=True)
    assert data_folder(None, "cars") == tmp_path / "detection" / "cars"
