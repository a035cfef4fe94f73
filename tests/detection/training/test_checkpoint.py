"""Checkpoints: what is written comes back, and what is damaged is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from badacost.detection.training.checkpoint import Checkpoint, Progress
from badacost.detection.training.samples import WindowList
from badacost.model_file import ModelFileError, read_model, write_model
from badacost.tree.forest import Forest

FIRST = WindowList(np.array([3, 1]), np.arange(8.0).reshape(2, 4))
NOW = WindowList(np.array([5]), np.full((1, 4), 2.5))
FOREST = Forest(
    feature=np.array([0, 0, 0], np.int32),
    threshold=np.array([0.1, np.nan, np.nan]),
    left=np.array([1, 1, 2], np.int32),
    missing_left=np.ones(3, bool),
    value=np.array([0, 0, 1], np.int32),
    gain=np.zeros(3, np.float32),
    count=np.zeros(3, np.int32),
    weight=np.zeros(3, np.float32),
    offsets=np.array([0, 3]),
    tree_weights=np.ones(1),
    table=np.array([[1.0], [-1.0]]),
    n_features=4,
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "cascade.checkpoint", "abc")


@pytest.mark.parametrize(
    "progress",
    [
        Progress(0, "boosting", FIRST, FIRST),
        Progress(2, "boosting", FIRST, NOW, FOREST, np.array([-1.5, -800.0])),
        Progress(1, "mining", FIRST, NOW, FOREST, np.array([-1.5])),
        Progress(3, "done", FIRST, NOW, FOREST, np.array([-np.inf])),
    ],
)
def test_what_is_saved_comes_back(checkpoint, progress) -> None:
    checkpoint.save(Progress(0, "boosting", NOW, NOW))
    checkpoint.save(progress)
    loaded = checkpoint.load()
    assert (loaded.round, loaded.phase) == (progress.round, progress.phase)
    for name in ("first_negatives", "negatives"):
        np.testing.assert_array_equal(getattr(loaded, name).images, getattr(progress, name).images)
        np.testing.assert_array_equal(getattr(loaded, name).boxes, getattr(progress, name).boxes)
    assert (loaded.forest is None) == (progress.forest is None)
    if progress.forest is not None:
        np.testing.assert_array_equal(loaded.weights, progress.weights)
        np.testing.assert_array_equal(loaded.forest.threshold, FOREST.threshold)
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["cascade.checkpoint"]


def test_nothing_to_keep() -> None:
    nowhere = Checkpoint(None, "abc")
    nowhere.save(Progress(0, "boosting", FIRST, FIRST))
    assert nowhere.load() is None


def test_nothing_yet(checkpoint) -> None:
    assert checkpoint.load() is None


def test_another_training_is_refused(checkpoint) -> None:
    checkpoint.save(Progress(0, "boosting", FIRST, FIRST))
    with pytest.raises(ModelFileError, match="other images or another configuration; choose"):
        Checkpoint(checkpoint.path, "abd").load()


def test_another_model_is_refused(checkpoint) -> None:
    write_model(checkpoint.path, "Detector", {}, {})
    with pytest.raises(ModelFileError, match="no checkpoint of a training; choose"):
        checkpoint.load()


@pytest.mark.parametrize("contents", [b"", b"PK", b"nonsense" * 100])
def test_what_is_no_archive_is_refused(checkpoint, contents) -> None:
    checkpoint.path.write_bytes(contents)
    with pytest.raises(ModelFileError, match=r"(?s)cannot go on from .* to start again\.$"):
        checkpoint.load()


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"round": -1}, {}),
        ({"round": True}, {}),
        ({"round": "1"}, {}),
        ({"phase": "sleeping"}, {}),
        ({"phase": ["done"]}, {}),
        ({}, {"boxes": None}),
        ({}, {"images": None}),
        ({}, {"first_boxes": np.zeros((3, 4))}),
        ({}, {"boxes": np.full((1, 4), np.nan)}),
        ({}, {"boxes": np.zeros((1, 4), np.float32)}),
        ({}, {"images": np.zeros(1, np.int32)}),
        ({}, {"images": np.array(1)}),
        ({}, {"weights": None}),
        ({}, {"weights": np.zeros((2, 2))}),
        ({}, {"weights": np.zeros(2, np.int64)}),
        ({}, {"forest_left": None}),
        ({}, {"forest_left": np.array([9, 1, 2], np.int32)}),
    ],
)
def test_contents_are_checked(checkpoint, header, arrays) -> None:
    checkpoint.save(Progress(1, "mining", FIRST, NOW, FOREST, np.array([-1.5])))
    model = read_model(checkpoint.path)
    changed = {name: value for name, value in (model.arrays | arrays).items() if value is not None}
    write_model(checkpoint.path, model.kind, model.header | header, changed)
    with pytest.raises(ModelFileError, match="to start again"):
        checkpoint.load()


def test_a_finished_cascade_needs_its_trees(checkpoint) -> None:
    checkpoint.save(Progress(1, "done", FIRST, NOW))
    with pytest.raises(ModelFileError, match="weights are missing"):
        checkpoint.load()


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_never_passes_unnoticed(checkpoint, data) -> None:
    checkpoint.save(Progress(1, "mining", FIRST, NOW, FOREST, np.array([-1.5])))
    whole = checkpoint.path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    if data.draw(st.booleans()):
        del damaged[place:]
    else:
        damaged[place] ^= data.draw(st.integers(1, 255))
    checkpoint.path.write_bytes(bytes(damaged))
    try:
        loaded = checkpoint.load()
    except ModelFileError:
        return
    # A bit that says nothing of the contents, as a date.
    assert (loaded.round, loaded.phase) == (1, "mining")
    np.testing.assert_array_equal(loaded.negatives.boxes, NOW.boxes)
    np.testing.assert_array_equal(loaded.forest.threshold, FOREST.threshold)
