"""Rounds of boosting: negatives pile up, starved ones are left out, the best one is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from badacost.detection import Cascade, Detector, TrainingConfig
from badacost.detection.training import rounds as module
from badacost.detection.training.checkpoint import Boosted, Boosting, Checkpoint
from badacost.detection.training.miner import Mined, Miner
from badacost.detection.training.rounds import CascadeRounds, Examples
from badacost.detection.training.samples import WindowFeatures, WindowList
from badacost.detection.training.store import WindowStore
from badacost.io.model_file import ModelFileError, read_model, write_model
from badacost.tree.forest import Forest
from campaigns.tiny_training import TINY
from tests.forests import assert_same_forest

PLAIN = replace(TINY, n_filters=0, trees=(2, 3, 4))
NOTHING = Mined(WindowList.of([]), np.empty(0), 6)


@pytest.fixture(scope="module")
def features() -> WindowFeatures:
    pyramid = PLAIN.pyramid((0.0, 0.0, 0.0))
    return WindowFeatures(PLAIN.shape, pyramid.channels, pyramid.smoothing, None)


@pytest.fixture(scope="module")
def examples(store, features) -> Examples:
    images = store.images[: store.n_pictures]
    windows = WindowList.of(
        [(k, features.shape.fitted(image.boxes)) for k, image in enumerate(images)]
    )
    classes = np.concatenate([image.labels for image in images]) + 1
    return Examples(windows, classes, store.features(windows, features, ""))


def bare_detector(cascade: Cascade) -> Detector:
    return Detector(
        pyramid=PLAIN.pyramid((0.0, 0.0, 0.0)),
        cascades=[cascade],
        names=[f"class {k}" for k in range(cascade.n_views)],
        stride=PLAIN.cell,
    )


@pytest.fixture
def make(store: WindowStore, features, examples) -> Callable[..., CascadeRounds]:
    def rounds(
        config: TrainingConfig = PLAIN, judge=None, view=None, checkpoint=None, title=""
    ) -> CascadeRounds:
        return CascadeRounds(
            store, config, features, examples, np.arange(store.n_pictures),
            checkpoint or Checkpoint(None, ""), n_classes=5, view=view, title=title, judge=judge,
            detector=bare_detector,
        )  # fmt: skip

    return rounds


@pytest.fixture
def log(caplog) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="badacost.detection.training")
    return caplog


class Judge:
    """Gives the rounds these precisions, and remembers their forests."""

    def __init__(self, *precisions: float):
        self.precisions = list(precisions)
        self.forests: list[Forest] = []

    def __call__(self, cascade: Cascade, unit: float) -> float:
        assert unit > 0.0
        assert (cascade.rejections == -np.inf).all()
        self.forests.append(cascade.forest)
        return self.precisions[len(self.forests) - 1]


def test_every_round_is_told(make, log) -> None:
    done = make(title="front: ").run()
    assert done.is_last
    assert (done.round, done.forest.n_trees) == (2, 4)
    for line in (
        "front: round 1: 2 trees, 11 objects, ",
        "front: round 1: 20 new negatives in 6 images (scores ",
        "front: round 2: 3 trees, 11 objects, 28 negatives; ",
        " % of moved objects are kept",
        "front: round 3: 4 trees",
    ):
        assert line in log.text
    assert "AP" not in log.text


class TestNegatives:
    def test_pile_up_to_the_limit(self, make, monkeypatch) -> None:
        sizes = []
        save = Checkpoint.save

        def remember(self: Checkpoint, progress: Boosting | Boosted) -> None:
            if isinstance(progress, Boosting) and progress.forest is None:
                sizes.append(len(progress.negatives))
            save(self, progress)

        monkeypatch.setattr(Checkpoint, "save", remember)
        done = make(replace(PLAIN, n_negatives=12, n_accumulated=30)).run()
        assert sizes[1:] == [sizes[0] + 12, 30]
        assert len(done.negatives) == 30
        assert len(done.first_negatives) == sizes[0] <= 12
        # Those of a round are its own; the earlier ones make room.
        done = make(replace(PLAIN, n_negatives=12, n_accumulated=1)).run()
        assert len(done.negatives) == 12

    def test_may_be_given(self, make) -> None:
        given = WindowList.of([(0, np.array([[0.0, 0.0, 24.0, 16.0], [50.0, 2.0, 74.0, 18.0]]))])
        done = make(replace(PLAIN, trees=(2,))).run(given)
        np.testing.assert_array_equal(done.negatives.boxes, given.boxes)

    def test_are_what_the_cascade_takes_for_objects(self, make, monkeypatch) -> None:
        seen: list[Detector] = []
        mine = Miner.false_alarms

        def remember(self: Miner, detector: Detector, title: str) -> Mined:
            seen.append(detector)
            return mine(self, detector, title)

        monkeypatch.setattr(Miner, "false_alarms", remember)
        rounds = make(replace(PLAIN, trees=(2, 2)))
        rounds.run()
        (detector,) = seen
        (cascade,) = detector.cascades
        unit = module.unit_of(rounds.cascade(cascade.forest).trace(rounds.examples.witnesses))
        np.testing.assert_allclose(cascade.rejections, -module.MINING_REJECTION * unit)
        assert cascade.min_score == pytest.approx(-module.MINING_FLOOR * unit)


class TestStarved:
    def test_rounds_are_left_out(self, make, monkeypatch, log) -> None:
        monkeypatch.setattr(Miner, "false_alarms", lambda *_: NOTHING)
        done = make(replace(PLAIN, trees=(2, 3, 3, 3, 5))).run()
        assert done.is_last
        assert (done.round, done.forest.n_trees) == (4, 5)
        assert "round 1: 0 new negatives in 6 images (none)" in log.text
        assert "no more false alarms: rounds 2 to 4 are left out" in log.text
        assert "round 3" not in log.text
        assert "round 5: 5 trees" in log.text

    def test_the_last_round_is_not(self, make, monkeypatch, log) -> None:
        monkeypatch.setattr(Miner, "false_alarms", lambda *_: NOTHING)
        assert make(replace(PLAIN, trees=(2, 5))).run().forest.n_trees == 5
        assert "left out" not in log.text

    def test_a_few_are_enough(self, make, monkeypatch, log) -> None:
        one = Mined(WindowList.of([(0, np.array([[50.0, 2.0, 74.0, 18.0]]))]), np.ones(1), 6)
        monkeypatch.setattr(Miner, "false_alarms", lambda *_: one)
        make(replace(PLAIN, n_negatives=100)).run()
        assert "left out" not in log.text
        log.clear()
        make(replace(PLAIN, n_negatives=101)).run()
        assert "rounds 2 to 2 are left out" in log.text


class TestBest:
    def test_an_earlier_round(self, make, log) -> None:
        judge = Judge(0.5, 0.9, 0.7)
        done = make(judge=judge).run()
        assert done.precisions == (0.5, 0.9, 0.7)
        assert done.forest.n_trees == 3
        assert_same_forest(done.forest, judge.forests[1])
        assert "; AP 90.0 on the images held out" in log.text
        assert "an earlier round was better: its 3 trees are kept" in log.text

    @pytest.mark.parametrize("precisions", [(0.5, 0.6, 0.7), (0.7, 0.5, 0.7)])
    def test_the_last_round(self, make, log, precisions) -> None:
        judge = Judge(*precisions)
        done = make(judge=judge).run()
        assert_same_forest(done.forest, judge.forests[2])
        assert "earlier" not in log.text

    def test_after_a_resumption(self, make, tmp_path, monkeypatch) -> None:
        checkpoint = Checkpoint(tmp_path / "cascade.checkpoint", "abc")
        expected = make(judge=Judge(0.5, 0.9, 0.7)).run()
        monkeypatch.setattr(CascadeRounds, "_mined", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(judge=Judge(0.5), checkpoint=checkpoint).run()
        monkeypatch.undo()
        got = make(judge=Judge(0.9, 0.7), checkpoint=checkpoint).run()
        assert got.precisions == expected.precisions
        assert_same_forest(got.forest, expected.forest)
        again = make(judge=Judge(), checkpoint=checkpoint).run()
        assert_same_forest(again.forest, expected.forest)


class TestCascade:
    @pytest.mark.parametrize(
        ("algorithm", "view", "n_columns"),
        [("costboost", None, 1), ("badacost", None, 4), ("samme", None, 4), ("subcat", 2, 1)],
    )
    def test_columns(self, make, algorithm, view, n_columns) -> None:
        rounds = make(replace(PLAIN, algorithm=algorithm, trees=(3,)), view=view)
        if view is not None:
            classes = np.ones_like(rounds.examples.classes)
            rounds.examples = replace(rounds.examples, classes=classes)
        cascade = rounds.cascade(rounds.run().forest, rejection=2.0, floor=1.0)
        assert cascade.forest.table.shape[1] == n_columns
        assert (cascade.rejections == -2.0).all()
        assert cascade.min_score == -1.0
        assert (cascade.window, cascade.padded_window) == (PLAIN.window, PLAIN.shape.padded_window)

    def test_the_unit_is_the_score_of_half_of_the_objects(self, make, examples) -> None:
        rounds = make(replace(PLAIN, trees=(3,)))
        forest = rounds.run().forest
        scores = forest.accumulate(examples.witnesses)[:, 0]
        traces = rounds.cascade(forest).trace(examples.witnesses)
        assert module.unit_of(traces) == pytest.approx(np.median(scores))
        assert module.unit_of(-np.abs(traces)) == 1e-6

    def test_objects_weigh_more_the_more_a_miss_costs(self, make, examples) -> None:
        scores = [
            make(replace(PLAIN, trees=(4,), alpha=1.0, beta=beta))
            .run().forest.accumulate(examples.witnesses).mean()
            for beta in (0.2, 20.0)
        ]  # fmt: skip
        assert scores[1] > scores[0] + 0.5


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Where a checkpoint is kept for all tests."""
    return tmp_path_factory.mktemp("rounds") / "cascade.checkpoint"


class TestDamagedCheckpoints:
    """What the file may hold is any state; one that this training was never in is refused."""

    @pytest.fixture
    def damaged(self, make, saved, tmp_path, monkeypatch):
        """Resume from the middle of a round, after a change of what the file holds."""
        if not saved.exists():
            kept = []
            monkeypatch.setattr(module, "_TREES_BETWEEN_CHECKPOINTS", 1)
            monkeypatch.setattr(Checkpoint, "save", lambda _, progress: kept.append(progress))
            make().run()
            monkeypatch.undo()
            state = next(p for p in kept if isinstance(p, Boosting) and p.round and p.forest)
            Checkpoint(saved, "").save(state)
        model = read_model(saved)

        def resume(header=None, **arrays):
            path = tmp_path / "cascade.checkpoint"
            write_model(path, model.kind, model.header | (header or {}), model.arrays | arrays)
            return make(checkpoint=Checkpoint(path, "")).run()

        return model.arrays, resume

    def test_the_whole_file_is_resumed(self, damaged, make) -> None:
        assert_same_forest(damaged[1]().forest, make().run().forest)

    @pytest.mark.parametrize(
        "header", [{"round": 3}, {"round": 10**9}, {"round": 2, "phase": "mining"}]
    )
    def test_rounds_that_there_are_not(self, damaged, header) -> None:
        with pytest.raises(ModelFileError, match=r"cannot resume from .* a round that .* start ag"):
            damaged[1](header)

    @pytest.mark.parametrize(
        ("name", "place", "value", "message"),
        [
            ("images", 0, 12, "in no image"),
            ("images", 0, -1, "in no image"),
            ("first_images", 0, 10**9, "in no image"),
            ("boxes", (0, 3), -5.0, "in no image"),
            ("boxes", (0, 0), 1e300, "in no image"),
            ("forest_n_features", (), 10**9, "features"),
            ("forest_n_features", (), 700, "features|not of the training"),
            ("forest_tree_weights", 0, 1e308, "might not be finite"),
            ("state", 0, np.nan, "weights"),
        ],
    )
    def test_entries(self, damaged, name, place, value, message) -> None:
        arrays, resume = damaged
        changed = arrays[name].copy()
        changed[place] = value
        with pytest.raises(ModelFileError, match=f"cannot resume from .*({message}).* start again"):
            resume(**{name: changed})

    @pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: np.tile(a, 2)])
    def test_lengths(self, damaged, change) -> None:
        arrays, resume = damaged
        with pytest.raises(ModelFileError, match="weights are not those of its windows"):
            resume(state=change(arrays["state"]))
        with pytest.raises(ModelFileError, match="are not of the training"):
            resume(forest_table=np.hstack([arrays["forest_table"]] * 2))
