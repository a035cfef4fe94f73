"""Plans: laid out once, used again, one for each thread, whatever does the work."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from badacost.detection import Detections, Detector, Suppression
from badacost.detection.backend import CPUBackend
from badacost.detection.models import synthetic_cars
from badacost.detection.plan import IdlePlans, Plan
from badacost.detection.scenes import make_scenes

SIZE = (96, 128)


@cache
def cars() -> Detector:
    """A detector that keeps some windows of any image."""
    detector = synthetic_cars()
    (cascade,) = detector.cascades
    return replace(detector, cascades=[replace(cascade, rejections=-50.0, min_score=-np.inf)])


@cache
def image(seed: int = 0, size: tuple[int, int] = SIZE) -> np.ndarray:
    (scene,) = make_scenes(1, size=size, objects_per_image=2, random_state=seed)
    return scene.load()


def found_by(plan: Plan, pixels: np.ndarray) -> Detections:
    return Detections.concatenate([seen.detections for seen in plan.sightings(pixels)])


def assert_same(one: Detections, other: Detections) -> None:
    for name in ("boxes", "scores", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.names, one.angles, one.category) == (other.names, other.angles, other.category)


def test_a_plan_is_used_again_and_again() -> None:
    plan = Plan(cars(), SIZE)
    for seed in (0, 1, 0):
        found = found_by(plan, image(seed))
        assert len(found)
        assert_same(found, found_by(Plan(cars(), SIZE), image(seed)))
        assert_same(found, cars().candidates(image(seed)))


def test_results_do_not_change_when_the_plan_goes_on() -> None:
    plan = Plan(cars(), SIZE)
    kept = []
    for seen in plan.sightings(image(0)):
        arrays = seen.trace(), seen.leaves(), seen.windows.rows, seen.windows.scores
        kept.append((arrays, copy.deepcopy(arrays)))
    list(plan.sightings(image(1)))
    assert sum(len(arrays[0]) for arrays, _ in kept)
    for arrays, before in kept:
        for one, other in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(one, other)


def test_leaves_are_nodes_whose_rows_make_the_scores() -> None:
    (cascade,) = cars().cascades
    forest = cascade.forest
    n_windows = 0
    for seen in cars().sightings(image()):
        leaves = seen.leaves()
        assert leaves.dtype == np.int32
        assert leaves.shape == (len(seen.detections), forest.n_trees)
        assert forest.is_leaf[leaves].all()
        assert ((leaves >= forest.offsets[:-1]) & (leaves < forest.offsets[1:])).all()
        margins = np.cumsum(
            forest.tree_weights[:, None] * forest.table[forest.value[leaves]], axis=1
        )
        np.testing.assert_allclose(margins.max(axis=2), seen.trace(), rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            margins[:, -1].max(axis=1), seen.windows.scores, rtol=0, atol=1e-9
        )
        n_windows += len(leaves)
    assert n_windows


def test_a_sighting_answers_for_other_windows_of_its_grid() -> None:
    seen = next(iter(cars().sightings(image())))
    n_rows, n_columns = seen.grid
    assert seen.windows.n_scanned == n_rows * n_columns
    corner = np.array([n_rows - 1]), np.array([n_columns - 1])
    assert seen.trace(*corner).shape == seen.leaves(*corner).shape == (1, 256)
    for rows, columns in (((n_rows,), (0,)), ((0,), (n_columns,)), ((-1,), (0,))):
        with pytest.raises(ValueError, match="outside of the grid"):
            seen.leaves(np.array(rows), np.array(columns))


def test_a_sighting_of_a_level_that_is_gone_says_so() -> None:
    plan = Plan(cars(), SIZE)
    first, *_ = plan.sightings(image())
    with pytest.raises(RuntimeError, match="before you take the next"):
        first.trace()
    last = list(plan.sightings(image()))[-1]
    last.leaves()
    next(plan.sightings(image()))
    with pytest.raises(RuntimeError, match="before you take the next"):
        last.leaves()


def test_images_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="one for each size"):
        next(Plan(cars(), SIZE).sightings(image(0, (96, 130))))


def test_boxes_of_windows() -> None:
    """Box and scale of a window that lies in the middle of a padded window of pixels."""
    layout = Plan(cars(), SIZE).layout
    (cascade,) = cars().cascades
    for number, level in enumerate(layout.levels):
        (box,) = layout.boxes(number, 0, np.array([2]), np.array([3]))
        x1, y1 = box[:2] * [level.scale_x, level.scale_y]
        height, width = cascade.window
        pad_y, pad_x = cars().pyramid.pad
        assert x1 + pad_x == pytest.approx(3 * cars().stride + (72 - 64) / 2)
        assert y1 + pad_y == pytest.approx(2 * cars().stride + (48 - 40) / 2)
        assert (box[2] - box[0]) * level.scale == pytest.approx(width)
        assert (box[3] - box[1]) * level.scale == pytest.approx(height)


# Several sizes, several threads


class TestIdlePlans:
    def plan(self, idle: IdlePlans, size: tuple[int, int]) -> Plan:
        with idle.lent(size, lambda: Plan(cars(), size)) as plan:
            return plan

    def test_the_plan_of_a_size_comes_back(self) -> None:
        idle = IdlePlans()
        first = self.plan(idle, SIZE)
        assert self.plan(idle, (100, 128)) is not first
        assert self.plan(idle, SIZE) is first

    def test_two_at_a_time_are_two(self) -> None:
        idle, make = IdlePlans(), lambda: Plan(cars(), SIZE)
        with idle.lent(SIZE, make) as one, idle.lent(SIZE, make) as other:
            assert one is not other
        assert self.plan(idle, SIZE) in (one, other)

    def test_the_oldest_sizes_are_forgotten(self) -> None:
        idle, sizes = IdlePlans(), [(90 + i, 120) for i in range(5)]
        plans = [self.plan(idle, size) for size in sizes]
        assert self.plan(idle, sizes[1]) is plans[1]
        assert self.plan(idle, sizes[0]) is not plans[0]

    def test_large_plans_are_not_kept(self, monkeypatch) -> None:
        monkeypatch.setattr(CPUBackend, "max_idle_bytes", 1000)
        idle = IdlePlans()
        assert self.plan(idle, SIZE) is not self.plan(idle, SIZE)

    def test_a_plan_whose_user_failed_comes_back(self) -> None:
        idle, used = IdlePlans(), []

        def fail() -> None:
            with idle.lent(SIZE, lambda: Plan(cars(), SIZE)) as plan:
                used.append(plan)
                next(plan.sightings(image(1)))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert self.plan(idle, SIZE) is used[0]
        assert_same(found_by(used[0], image()), cars().candidates(image()))


def test_threads_that_detect_at_the_same_time() -> None:
    detector = replace(cars())
    expected = [cars().candidates(image(seed)) for seed in range(3)]
    barrier, found = threading.Barrier(3), [None] * 3

    def look(seed: int) -> None:
        parts = []
        for seen in detector.sightings(image(seed)):
            parts.append(seen.detections)
            barrier.wait(30)  # all are at the same level
        found[seed] = Detections.concatenate(parts)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(expected, found, strict=True):
        assert_same(one, other)


def test_copies_of_a_detector_have_their_own_plans() -> None:
    detector = synthetic_cars()
    expected = detector.detect(image())
    other = copy.deepcopy(detector)
    assert other._plans is not detector._plans
    assert_same(other.detect(image()), expected)


def test_plans_end_with_their_detector() -> None:
    """Without waiting for the search for cycles: buffers are large."""
    detector = replace(cars())
    detector.detect(image())
    with detector._plans.lent(SIZE, list) as plan:
        kept = weakref.ref(plan)
    del plan
    gc.disable()
    try:
        assert isinstance(kept(), Plan)
        del detector
        assert kept() is None
    finally:
        gc.enable()


# Backends


class Recording(CPUBackend):
    """Writes down what it is asked for."""

    def __init__(self, layout) -> None:
        super().__init__(layout)
        self.calls: list[tuple[str, int]] = []

    def compute_channels(self, level: int) -> None:
        self.calls.append(("channels", level))
        super().compute_channels(level)

    def compute_features(self, level: int) -> None:
        self.calls.append(("features", level))
        super().compute_features(level)

    def scan(self, cascade: int):
        self.calls.append(("scan", cascade))
        return super().scan(cascade)


def test_another_backend() -> None:
    detector = Detector(
        cars().pyramid, [*cars().cascades] * 2, [f"view {i}" for i in range(16)],
        suppression=Suppression("none"), filters=cars().filters,
    )  # fmt: skip
    plan = Plan(detector, SIZE, Recording)
    found = found_by(plan, image())
    for number in range(len(plan.layout.levels)):
        calls = plan.backend.calls[4 * number : 4 * number + 4]
        assert calls == [("channels", number), ("features", number), ("scan", 0), ("scan", 1)]
    first = found[found.labels < 8]
    np.testing.assert_array_equal(first.boxes, cars().candidates(image()).boxes)
    second = found[found.labels >= 8]
    np.testing.assert_array_equal(second.boxes, first.boxes)
    np.testing.assert_array_equal(second.labels, first.labels + 8)
