"""Detection on a GPU: the same windows and boxes as on the CPU, and how fast; see gpu.py.

Frames are synthetic scenes of 1242 x 375 pixels. With a folder of the published detectors of cars
(``kitti_*.mat``), these are tried as well.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.backends.device import Device, cuda_device
from badacost.detection import (
    Cascade,
    ChannelParameters,
    Detector,
    PyramidParameters,
    TrainingConfig,
    load_detector,
    train_detector,
)
from badacost.detection.annotations import Views
from badacost.detection.cuda_backend import CudaBackend
from badacost.detection.decorrelation import as_filters, decorrelate
from badacost.detection.detector import DeviceName
from badacost.detection.models import synthetic_cars
from badacost.detection.plan import Plan
from badacost.detection.pose import N_OFFSETS, PoseRegression
from badacost.detection.pyramid import pyramid_levels
from badacost.detection.scenes import make_scenes
from badacost.tree.forest import Forest, Tree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.cars import CarSettings

Row = dict[str, Any]
SIZE = (375, 1242)
SIZES = (SIZE, (240, 321), (97, 130))
STAGES = {
    "colour": ("luv", "clear"),
    "channels": (
        "gradient", "smooth", "triangle_along_rows", "triangle_along_columns", "normalise",
        "shrink_planes", "histogram",
    ),
    "pyramid": ("resample", "finish"),
    "decorrelation": ("decorrelate",),
    "cascade": ("scan_tiles", "scan_trees"),
    "poses": ("poses",),
}  # fmt: skip


def frames(n_frames: int, size: tuple[int, int] = SIZE) -> list[NDArray[np.uint8]]:
    """Synthetic scenes."""
    return [scene.load() for scene in make_scenes(n_frames, size=size, random_state=5)]


def random_detector(
    seed: int, *, n_views: int, n_filters: int = 0, with_pose: bool = False, **pyramid: Any
) -> Detector:
    """Trees of three levels that compare features with values near their medians."""
    rng = np.random.default_rng(seed)
    parameters = PyramidParameters(
        ChannelParameters(shrink=2), n_per_octave=6, n_approximated=5, pad=(8, 4),
        min_size=(32, 48), lambdas=(0.0, 0.11, 0.13), **pyramid,
    )  # fmt: skip
    features = next(pyramid_levels(frames(1, (120, 160))[0], parameters)).channels
    filters = None
    if n_filters:
        filters = as_filters(rng.normal(size=(n_filters, 10, 5, 5)), 10)
        features = decorrelate(features, filters)
    cell = 4 if n_filters else 2
    n_cells = (32 // cell) * (48 // cell)
    n_features, n_trees = len(features) * n_cells, 64
    middle, spread = np.median(features, axis=(1, 2)), features.std(axis=(1, 2))
    inner = np.arange(15) < 7
    trees = []
    for _ in range(n_trees):
        feature = rng.integers(0, n_features, 15)
        near = middle[feature // n_cells] + rng.normal(0.0, 0.3, 15) * spread[feature // n_cells]
        trees.append(
            Tree(
                feature=np.where(inner, feature, 0).astype(np.int32),
                threshold=np.where(inner, near, np.nan),
                left=np.where(inner, 2 * np.arange(15) + 1, np.arange(15)).astype(np.int32),
                missing_left=np.ones(15, bool),
                value=rng.integers(0, n_views + 4, 15).astype(np.int32),
                gain=np.zeros(15, np.float32),
                count=np.zeros(15, np.int32),
                weight=np.zeros(15, np.float32),
            )
        )
    table = rng.normal(size=(n_views + 4, n_views)) - 0.05
    table[:2] = -0.4  # votes for the background say the same of all views
    pose = None
    if with_pose:
        weights = rng.normal(0.0, 0.02, (n_features, N_OFFSETS)).astype(np.float32)
        pose = PoseRegression(weights, np.zeros(N_OFFSETS), np.zeros((0, 0)))
    forest = Forest.from_trees(trees, rng.uniform(0.1, 1.0, n_trees), table, n_features)
    cascade = Cascade(forest, (32, 48), (32, 48), cell, rejections=-6.0, min_score=-1.0, pose=pose)
    names = [f"view {view}" for view in range(n_views)]
    return Detector(parameters, [cascade], names, filters=filters, stride=4)


def detectors(models: Path | None) -> dict[str, Detector]:
    """What is tried: the detector that comes with the package, random and published ones."""
    cars = synthetic_cars()
    found = {
        "synthetic cars": cars,
        "synthetic cars, one octave up": cars.with_pyramid(n_octaves_up=1),
        "synthetic cars, few rejected": cars.with_threshold(-2.0),
    }
    for path in sorted(models.glob("kitti_*.mat")) if models is not None else []:
        found[path.stem] = load_detector(path)
        found[f"{path.stem}, fast"] = found[path.stem].fast()
    return found


def random_detectors() -> dict[str, Detector]:
    """Detectors that keep windows anywhere."""
    return {
        "random, 4 filters, 3 views": random_detector(0, n_views=3, n_filters=4),
        "random, 5 filters, pose": random_detector(1, n_views=1, n_filters=5, with_pose=True),
        "random, no filters": random_detector(2, n_views=5, smoothing=0),
        "random, one octave up": random_detector(9, n_views=2, n_filters=2, n_octaves_up=1),
    }


def check(models: Path | None) -> Iterator[Row]:
    """Compare what CPU and GPU say of images: windows, traces, boxes."""
    for name, detector in {**random_detectors(), **detectors(models)}.items():
        for size in SIZES:
            (pixels,) = frames(1, size)
            n_windows, equal = compared(detector, pixels)
            on_gpu, on_cpu = detector.with_device("cuda").detect(pixels), detector.detect(pixels)
            equal &= all(
                getattr(on_gpu, part).tobytes() == getattr(on_cpu, part).tobytes()
                for part in ("boxes", "scores", "labels")
            )
            yield {
                "detector": name,
                "size": f"{size[1]} x {size[0]}",
                "windows": n_windows,
                "boxes": len(on_gpu),
                "equal": equal,
            }


def compared(detector: Detector, pixels: NDArray[np.uint8]) -> tuple[int, bool]:
    """How many windows are kept, and whether both backends say the same of all of them."""
    size = (pixels.shape[0], pixels.shape[1])
    plans = Plan(detector, size), Plan(detector, size, CudaBackend)
    n_windows, equal = 0, True
    for one, other in zip(*(plan.sightings(pixels) for plan in plans), strict=True):
        few = slice(200)  # traces of all would take long
        places = one.windows.rows[few], one.windows.columns[few]
        n_windows += len(one.windows.rows)
        for name in ("rows", "columns", "scores", "labels"):
            equal &= getattr(one.windows, name).tobytes() == getattr(other.windows, name).tobytes()
        for name in ("n_scanned", "n_evaluated", "n_tests"):
            equal &= getattr(one.windows, name) == getattr(other.windows, name)
        if one.poses is not None and other.poses is not None:
            equal &= one.poses.tobytes() == other.poses.tobytes()
        equal &= one.trace(*places).tobytes() == other.trace(*places).tobytes()
        equal &= one.leaves(*places).tobytes() == other.leaves(*places).tobytes()
    return n_windows, equal


class TimedDevice(Device):
    """Measures the time of kernels by events of CUDA."""

    def __init__(self) -> None:
        super().__init__(cuda_device().xp)
        self._events: list[tuple[str, Any, Any]] = []

    def launch(self, source: str, kernel: str, *arguments: Any, shared: int = 0) -> None:
        """Run a kernel between two events."""
        begin, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        begin.record()
        super().launch(source, kernel, *arguments, shared=shared)
        end.record()
        self._events.append((kernel, begin, end))

    def milliseconds(self) -> Counter[str]:
        """Time of each kernel since the last call."""
        self.xp.cuda.Device().synchronize()
        times: Counter[str] = Counter()
        for kernel, begin, end in self._events:
            times[kernel] += self.xp.cuda.get_elapsed_time(begin, end)
        self._events.clear()
        return times


def detect(models: Path | None, n_frames: int) -> Iterator[Row]:
    """Frames a second from host memory to boxes, and milliseconds of a frame by stage."""
    images = frames(8)
    for name, detector in detectors(models).items():
        on_gpu = detector.with_device("cuda")
        row: Row = {"detector": name}
        for n_jobs in (1, 2):
            search = partial(on_gpu.detect_many, n_jobs=n_jobs)
            row[f"frames/s, {n_jobs} at a time"] = frames_a_second(search, images, n_frames)
        search = partial(detector.detect_many, n_jobs=-1)
        row["frames/s, CPU"] = frames_a_second(search, images, len(images))
        yield row | stages(on_gpu, images)


def frames_a_second(
    search: Callable[[Iterator[NDArray[np.uint8]]], Iterator[Any]],
    images: list[NDArray[np.uint8]],
    n_frames: int,
) -> float:
    """Rate of a search, after one through all images."""
    for _ in search(iter(images)):
        pass
    start = time.perf_counter()
    for _ in search(images[k % len(images)] for k in range(n_frames)):
        pass
    return n_frames / (time.perf_counter() - start)


def stages(detector: Detector, images: list[NDArray[np.uint8]]) -> Row:
    """Milliseconds that kernels take of a frame, by stage, and what the steps around them take."""
    device = TimedDevice()
    plan = Plan(detector, SIZE, partial(CudaBackend, device=device))
    for pixels in images[:2]:
        list(plan.sightings(pixels))
    device.milliseconds()
    for pixels in images:
        list(plan.sightings(pixels))
    times = device.milliseconds()
    row: Row = {"kernels ms": sum(times.values()) / len(images)}
    for stage, kernels in STAGES.items():
        row[f"{stage} ms"] = sum(times[kernel] for kernel in kernels) / len(images)
    plan = Plan(detector, SIZE, CudaBackend)
    seconds: Counter[str] = Counter()
    clock = time.perf_counter
    for repeat in range(3):
        for pixels in images:
            start = clock()
            sightings = list(plan.sightings(pixels))
            middle = clock()
            candidates = plan.detections(sightings)
            late = clock()
            detector.suppressed(candidates)
            if repeat:
                seconds["windows, wall ms"] += middle - start
                seconds["boxes, wall ms"] += late - middle
                seconds["suppression, wall ms"] += clock() - late
    row |= {step: 1e3 * value / (2 * len(images)) for step, value in seconds.items()}
    return row | {"device MB": plan.backend.n_bytes / 2**20}


def train(device: DeviceName, cars: Path | None) -> Iterator[Row]:
    """Seconds of a whole training with CostBoost, and what tells its result.

    Of cars in the images of a folder laid out as that of KITTI, with the settings of ``make cars``;
    else of synthetic cars.
    """
    tiny = TrainingConfig(
        window=(32, 48), trees=(4, 8), max_depth=3, n_negatives=50, algorithm="costboost"
    )
    train_detector(make_scenes(10, n_views=4), Views.around(4), tiny, device=device)  # compiles
    log = logging.getLogger("badacost.detection.training")
    log.setLevel(logging.INFO)
    log.handlers = [logging.StreamHandler(sys.stdout)]
    images: Any = make_scenes(200, n_views=8, random_state=1)
    config, groups = replace(TrainingConfig.small(window=(40, 64)), algorithm="costboost"), None
    if cars is not None:
        settings = CarSettings()
        found = settings.read(cars, None)
        images, groups = found.training, found.groups
        config = settings.configs()["CostBoost"]
    start = time.perf_counter()
    detector = train_detector(
        images,
        Views.around(8),
        config,
        category="Car",
        groups=groups,
        device=device,
        n_jobs=-1,
    )
    seconds = time.perf_counter() - start
    with TemporaryDirectory() as folder:
        detector.save(Path(folder, "cars"))
        digest = hashlib.sha256(Path(folder, "cars").read_bytes()).hexdigest()
    yield {"images": len(images), "device": device, "s": seconds, "detector": digest[:16]}
