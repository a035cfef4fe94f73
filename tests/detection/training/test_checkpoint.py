"""Checkpoints: what is written comes back, and what is damaged is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from badacost.detection.training.checkpoint import (
    BestRound,
    Boosted,
    Boosting,
    Checkpoint,
    remove_checkpoints,
)
from badacost.detection.training.samples import WindowList
from badacost.io.file_lock import FileLock
from badacost.io.model_file import ModelFileError, read_model, write_model
from badacost.tree.forest import Forest
from tests.forests import assert_same_forest

FIRST = WindowList.of([(3, np.arange(4.0)[None]), (1, np.arange(4.0, 8.0)[None])])
NOW = WindowList.of([(5, np.full((1, 4), 2.5))])
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
BEST_FOREST = replace(FOREST, threshold=np.array([0.7, np.nan, np.nan]))
BEST = BestRound(BEST_FOREST, FIRST)
BEGUN = Boosting(0, FIRST, FIRST, (), None)
HALF_WAY = Boosting(2, FIRST, NOW, (0.25, 0.5), BEST, FOREST, np.array([-1.5, -800.0]))
MINING = Boosted(1, FIRST, NOW, (0.25,), BestRound(FOREST, NOW), FOREST, False)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "cascade.checkpoint", "abc")


@pytest.mark.parametrize(
    "progress",
    [
        BEGUN,
        HALF_WAY,
        replace(HALF_WAY, state=np.array([-np.inf])),
        Boosting(1, FIRST, NOW, (), None, FOREST, np.zeros(3)),
        MINING,
        Boosted(3, FIRST, NOW, (0.5, 0.75), BEST, BEST_FOREST, True),
        Boosted(0, FIRST, WindowList.of([]), (), None, FOREST, True),
    ],
)
def test_what_is_saved_comes_back(checkpoint, progress) -> None:
    checkpoint.save(HALF_WAY)
    checkpoint.save(progress)
    loaded = checkpoint.load()
    assert type(loaded) is type(progress)
    assert (loaded.round, loaded.precisions) == (progress.round, progress.precisions)
    for name in ("first_negatives", "negatives"):
        for part in ("images", "boxes", "seeds"):
            got, expected = (getattr(getattr(each, name), part) for each in (loaded, progress))
            np.testing.assert_array_equal(got, expected)
    assert (loaded.forest is None) == (progress.forest is None)
    if progress.forest is not None:
        assert_same_forest(loaded.forest, progress.forest)
    assert (loaded.best is None) == (progress.best is None)
    if progress.best is not None:
        assert_same_forest(loaded.best.forest, progress.best.forest)
        np.testing.assert_array_equal(loaded.best.negatives.boxes, progress.best.negatives.boxes)
    if isinstance(progress, Boosted):
        assert loaded.is_last == progress.is_last
    elif progress.state is not None:
        np.testing.assert_array_equal(loaded.state, progress.state)
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["cascade.checkpoint"]


def test_nothing_to_keep() -> None:
    nowhere = Checkpoint(None, "abc")
    nowhere.save(BEGUN)
    assert nowhere.load() is None


def test_nothing_yet(checkpoint) -> None:
    assert checkpoint.load() is None


def test_checkpoints_in_use_are_not_removed(checkpoint) -> None:
    folder = checkpoint.path.parent / "folder"
    remove_checkpoints(folder)  # nothing is there
    folder.mkdir()
    Checkpoint(folder / "cascade.checkpoint", "abc").save(BEGUN)
    with FileLock(folder):
        for _ in range(2):
            with pytest.raises(BlockingIOError, match="another process is writing the folder"):
                remove_checkpoints(folder)
        assert (folder / "cascade.checkpoint").exists()
    (folder / ".lock").touch()  # a killed process leaves it
    remove_checkpoints(folder)
    assert not folder.exists()


@pytest.mark.parametrize("progress", [HALF_WAY, replace(HALF_WAY, best=None), MINING])
def test_forests_are_within_the_limit(checkpoint, progress) -> None:
    huge = replace(FOREST, n_features=2**30)
    best = None if progress.best is None else BestRound(huge, FIRST)
    checkpoint.save(replace(progress, best=best, forest=FOREST if best else huge))
    with pytest.raises(ModelFileError, match=r"a forest of 1073741824 features would need"):
        checkpoint.load()


def test_another_training_is_refused(checkpoint) -> None:
    checkpoint.save(BEGUN)
    with pytest.raises(ModelFileError, match="it belongs to another training; choose"):
        Checkpoint(checkpoint.path, "abd").load()


def test_another_model_is_refused(checkpoint) -> None:
    write_model(checkpoint.path, "Detector", {}, {})
    with pytest.raises(ModelFileError, match="not a checkpoint of a training; choose"):
        checkpoint.load()


@pytest.mark.parametrize("contents", [b"", b"PK", b"nonsense" * 100])
def test_what_is_no_archive_is_refused(checkpoint, contents) -> None:
    checkpoint.path.write_bytes(contents)
    with pytest.raises(ModelFileError, match=r"(?s)cannot resume from .* to start again\.$"):
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
        ({"precisions": None}, {}),
        ({"precisions": [1]}, {}),
        ({"precisions": ["0.5"]}, {}),
        ({"extra": 1}, {}),
        ({}, {"forest_left": None}),
        ({}, {"forest_left": np.array([9, 1, 2], np.int32)}),
        ({}, {"best_left": None}),
        ({}, {"best_left": np.array([9, 1, 2], np.int32)}),
        ({"phase": "boosting"}, {}),
        ({"phase": "boosting"}, {"state": np.zeros((2, 2))}),
        ({"phase": "boosting"}, {"state": np.zeros(2, np.int64)}),
        ({"phase": "boosting"}, {"state": np.array([0.0, np.inf])}),
    ],
)
def test_contents_are_checked(checkpoint, header, arrays) -> None:
    checkpoint.save(MINING)
    model = read_model(checkpoint.path)
    changed = {name: value for name, value in (model.arrays | arrays).items() if value is not None}
    write_model(checkpoint.path, model.kind, model.header | header, changed)
    with pytest.raises(ModelFileError, match="to start again"):
        checkpoint.load()


def test_a_finished_cascade_needs_its_trees(checkpoint) -> None:
    checkpoint.save(BEGUN)
    model = read_model(checkpoint.path)
    write_model(checkpoint.path, model.kind, model.header | {"phase": "done"}, model.arrays)
    with pytest.raises(ModelFileError, match="to start again"):
        checkpoint.load()


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_never_passes_unnoticed(checkpoint, data) -> None:
    checkpoint.save(MINING)
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
    assert isinstance(loaded, Boosted)
    assert (loaded.round, loaded.is_last, loaded.precisions) == (1, False, (0.25,))
    np.testing.assert_array_equal(loaded.negatives.boxes, NOW.boxes)
    np.testing.assert_array_equal(loaded.forest.threshold, FOREST.threshold)
