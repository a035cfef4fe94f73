"""Subjects and tasks: windows are computed once, and only what is known is learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from badacost.detection.training.checkpoint import Checkpoint
from badacost.detection.training.samples import WindowList
from badacost.detection.training.store import WindowStore
from badacost.detection.training.subject import Subject, Task
from campaigns.tiny_training import TINY

PLAIN = replace(TINY, n_filters=0, n_jittered=2)


@pytest.fixture
def subject(store) -> Subject:
    images = store.images[: store.n_pictures]
    return Subject(
        store=store,
        config=PLAIN,
        pyramid=PLAIN.pyramid((0.0, 0.0, 0.0)),
        filters=None,
        objects=WindowList.of([(k, image.boxes) for k, image in enumerate(images)]),
        labels=np.concatenate([image.labels for image in images]),
        groups=np.arange(store.n_pictures),
        view=None,
        n_views=4,
        view_costs=PLAIN.costs(4)[1:, 1:],
        window=PLAIN.window,
        title="",
    )


def all_but(store: WindowStore, *pictures: int) -> np.ndarray:
    return ~np.isin(np.arange(store.n_pictures), pictures)


class TestSubject:
    def test_objects_are_followed_by_their_copies(self, subject) -> None:
        windows, places = subject.copies
        n_objects = len(subject.objects)
        assert places.tolist() == [*range(n_objects)] * 3
        assert (windows.seeds[:n_objects] == 0).all()
        assert (windows.seeds[n_objects:] > 0).all()
        fitted = subject.features.shape.fitted(subject.objects.boxes)
        np.testing.assert_array_equal(windows.boxes[:n_objects], fitted)
        np.testing.assert_array_equal(windows.images, subject.objects.images[places])
        moved = np.abs(windows.boxes - fitted[places]).max(axis=1)
        assert (moved[n_objects:] > 0.0).all()
        assert moved.max() < 4.0

    def test_a_view_has_a_window_of_its_own(self, subject) -> None:
        wide = replace(subject, window=(16, 32))
        assert wide.features.shape.window == (16, 32)
        assert wide.features.n_features > subject.features.n_features

    def test_both_trainings_share_features(self, subject, store, monkeypatch) -> None:
        computed: list[str] = []
        features = WindowStore.features

        def counted(self: WindowStore, windows, of, title):
            computed.append(title)
            return features(self, windows, of, title)

        monkeypatch.setattr(WindowStore, "features", counted)
        for task in (Task(subject, all_but(store, 0)), Task(subject, all_but(store))):
            assert len(task.witnesses)
            assert task.pose.n_views == 4
        assert sorted(computed) == ["poses", "witnesses"]


class TestTask:
    def test_what_lies_in_other_pictures_is_not_learned(self, subject, store) -> None:
        task = Task(subject, all_but(store, 0, 3))
        rounds = task.rounds(Checkpoint(None, ""))
        n_known = sum(len(store.images[k]) for k in (1, 2, 4, 5))
        assert len(rounds.examples.windows) == 3 * n_known
        assert not np.isin(rounds.examples.windows.images, (0, 3)).any()
        known = np.concatenate([store.images[k].labels for k in (1, 2, 4, 5)])
        np.testing.assert_array_equal(rounds.examples.classes, np.tile(known + 1, 3))
        assert len(task.witnesses) == n_known
        assert rounds.miner.pictures.tolist() == [1, 2, 4, 5]

    def test_poses_are_learned_from_known_objects(self, subject, store) -> None:
        part = Task(subject, all_but(store, 0)).pose
        assert not np.array_equal(part.weights, Task(subject, all_but(store)).pose.weights)
        moved = replace(subject.objects, boxes=subject.objects.boxes.copy())
        moved.boxes[subject.objects.images == 0] += [0.0, 0.0, 5.0, 0.0]
        again = Task(replace(subject, objects=moved), all_but(store, 0)).pose
        np.testing.assert_allclose(part.weights, again.weights, atol=1e-6)

    def test_one_view_is_one_class(self, subject, store) -> None:
        own = np.flatnonzero(subject.labels == 1)
        one = replace(
            subject,
            objects=subject.objects.chosen(own),
            labels=subject.labels[own],
            view=1,
            view_costs=np.zeros((0, 0)),
        )
        task = Task(one, all_but(store))
        assert set(task.rounds(Checkpoint(None, "")).examples.classes.tolist()) == {1}
        assert task.pose.n_views == 0

    def test_nothing_is_left(self, subject, store) -> None:
        with pytest.raises(ValueError, match=r"too few objects are left .* set validation to 0"):
            Task(subject, np.zeros(store.n_pictures, bool))

    def test_kept(self, subject, store) -> None:
        task = Task(subject, all_but(store))
        forest = task.rounds(Checkpoint(None, ""), trees=(3,)).run().forest
        cascade = task.cascade(forest)
        assert task.kept(cascade).all()
        scores = cascade.trace(task.witnesses)[:, -1]
        unit = task.unit(forest)
        assert unit == pytest.approx(np.median(scores))
        np.testing.assert_array_equal(task.kept(replace(cascade, min_score=unit)), scores >= unit)
        hopeless = replace(cascade, rejections=np.full(3, 1e9))
        assert not task.kept(hopeless).any()
