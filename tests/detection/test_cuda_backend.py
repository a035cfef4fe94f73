"""The backend for CUDA, run on the CPU and on a GPU: the same windows, to the last bit."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from badacost.detection import Detector
from badacost.detection.backend import CPUBackend
from badacost.detection.channels import ChannelParameters
from badacost.detection.cuda_backend import CudaBackend
from badacost.detection.models import synthetic_cars
from badacost.detection.plan import Plan
from badacost.detection.scenes import make_scenes
from tests.backends.fake_cuda import pretend_cuda, real_device
from tests.backends.on_cpu import OnCpu, needs_compiler
from tests.detection.test_detector import (
    KINDS,
    N_FEATURES,
    PYRAMID,
    random_cascade,
    random_detector,
    random_image,
    random_pose,
)

PYRAMIDS = {
    "as usual": PYRAMID,
    "one octave up": replace(PYRAMID, n_octaves_up=1),
    "all computed": replace(PYRAMID, n_approximated=0),
    "halves": replace(PYRAMID, n_per_octave=1, n_approximated=0),
    "halves, approximated": replace(PYRAMID, n_per_octave=2, n_approximated=1),
    "no padding": replace(PYRAMID, pad=(0, 0)),
    "not smooth": replace(PYRAMID, smoothing=0),
}
DETECTORS = {
    **{kind: random_detector(**given) for kind, given in KINDS.items()},
    **{kind: random_detector(pyramid=pyramid) for kind, pyramid in PYRAMIDS.items()},
    "many views": random_detector(n_views=40),
    "large steps": random_detector(stride=8),
    "large cells": random_detector(
        pyramid=replace(PYRAMID, channels=ChannelParameters(shrink=4), pad=(4, 4)),
        filters=None,
        cascades=[random_cascade(7, 3, 160, padded_window=(16, 16))],
    ),
    "two shapes": random_detector(
        cascades=[
            random_cascade(1, 2, N_FEATURES, rejections=-np.inf, min_score=-np.inf),
            random_cascade(2, 1, N_FEATURES, padded_window=(8, 10), pose=random_pose()),
        ],
        names=[f"view {k}" for k in range(5)],
    ),
}


def assert_same_sightings(detector: Detector, pixels: np.ndarray, device) -> int:
    """Compare all that two backends say of an image; return how many windows they kept."""
    size = (pixels.shape[0], pixels.shape[1])
    plan, other = Plan(detector, size), Plan(detector, size, partial(CudaBackend, device=device))
    n_windows = 0
    for expected, found in zip(plan.sightings(pixels), other.sightings(pixels), strict=True):
        for name in ("rows", "columns", "scores", "labels"):
            one, two = getattr(expected.windows, name), getattr(found.windows, name)
            np.testing.assert_array_equal(one, two, strict=True)
        for name in ("n_scanned", "n_evaluated", "n_tests"):
            assert getattr(expected.windows, name) == getattr(found.windows, name)
        assert (expected.poses is None) == (found.poses is None)
        if expected.poses is not None:
            np.testing.assert_array_equal(expected.poses, found.poses, strict=True)
        np.testing.assert_array_equal(expected.trace(), found.trace(), strict=True)
        np.testing.assert_array_equal(expected.leaves(), found.leaves(), strict=True)
        n_windows += len(found.windows.rows)
    return n_windows


@needs_compiler
@pytest.mark.parametrize("kind", DETECTORS)
@pytest.mark.parametrize("size", [(30, 41), (32, 64)])
def test_the_same_windows(kind, size) -> None:
    assert assert_same_sightings(DETECTORS[kind], random_image(3, *size), OnCpu()) > 10


@needs_compiler
def test_the_same_cars() -> None:
    (scene,) = make_scenes(1, size=(121, 160), random_state=7)
    assert assert_same_sightings(synthetic_cars(), scene.load(), OnCpu()) > 0


@pytest.mark.parametrize("kind", DETECTORS)
def test_the_same_windows_on_a_gpu(kind) -> None:
    assert assert_same_sightings(DETECTORS[kind], random_image(3, 61, 90), real_device()) > 10


def test_the_same_cars_on_a_gpu() -> None:
    device = real_device()
    for scene in make_scenes(3, size=(375, 1242), random_state=3):
        assert assert_same_sightings(synthetic_cars(), scene.load(), device) > 0


@needs_compiler
@pytest.mark.parametrize(
    "changes",
    [
        {"_FETCHED": 4, "_BLOCKS": 4},  # windows are fetched apart and scanned in turns
        {"_TESTS_AT_ONCE": 1, "_TILE": (2, 32)},  # a tile looks at one tree at a time
        {"_FIRST_STAGE": 2, "_STAGES": ((32, 4), (64, 9), (32, None))},
    ],
)
@pytest.mark.parametrize("max_shared", [OnCpu.max_shared, 4096])  # the latter too small for tiles
def test_ways_to_scan(changes, max_shared, monkeypatch) -> None:
    for name, value in changes.items():
        monkeypatch.setattr(f"badacost.detection.cuda_backend.{name}", value)
    monkeypatch.setattr(OnCpu, "max_shared", max_shared)
    for kind in ("views", "one view"):
        assert assert_same_sightings(DETECTORS[kind], random_image(), OnCpu()) > 20


@needs_compiler
def test_a_plan_is_used_again_and_again() -> None:
    plan = Plan(DETECTORS["pose"], (30, 41), partial(CudaBackend, device=OnCpu()))
    for seed in (0, 1, 0):
        found = plan.detections(plan.sightings(random_image(seed)))
        expected = replace(DETECTORS["pose"], curve=None).candidates(random_image(seed))
        np.testing.assert_array_equal(found.boxes, expected.boxes)


@needs_compiler
def test_poses_of_other_windows_than_those_found() -> None:
    detector, pixels = DETECTORS["pose"], random_image()
    plan, other = (
        Plan(detector, (30, 41), backend)
        for backend in (CPUBackend, partial(CudaBackend, device=OnCpu()))
    )
    next(plan.sightings(pixels))
    next(other.sightings(pixels))
    rows, columns = np.array([0, 2, 1]), np.array([3, 0, 1])
    expected = plan.backend.poses(0, rows, columns)
    np.testing.assert_array_equal(other.backend.poses(0, rows, columns), expected)
    with pytest.raises(ValueError, match="outside of the level"):
        other.backend.poses(0, rows + 1000, columns)


@needs_compiler
def test_images_smaller_than_the_window() -> None:
    plan = Plan(DETECTORS["views"], (4, 40), partial(CudaBackend, device=OnCpu()))
    assert not list(plan.sightings(random_image(0, 4, 40)))


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_device_of_a_detector(kind, monkeypatch, tmp_path) -> None:
    pretend_cuda(monkeypatch)
    detector, pixels = DETECTORS[kind], random_image()
    on_cuda = detector.with_device("cuda")
    for found, expected in zip(
        on_cuda.detect_many([pixels, pixels[::-1]]),
        detector.detect_many([pixels, pixels[::-1]]),
        strict=True,
    ):
        assert len(found) > 0
        for name in ("boxes", "scores", "labels"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert on_cuda.with_threshold(0.5).device == "cuda"
    on_cuda.save(tmp_path / "cuda.badacost")
    detector.save(tmp_path / "cpu.badacost")
    assert (tmp_path / "cuda.badacost").read_bytes() == (tmp_path / "cpu.badacost").read_bytes()


def test_without_cupy(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"pip install \"badacost\[gpu\]\""):
        DETECTORS["views"].with_device("cuda")
    with pytest.raises(ValueError, match="device must be"):
        DETECTORS["views"].with_device("gpu")
