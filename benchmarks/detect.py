"""Speed and memory of detection: per frame, per stage, per window, and beside OpenCV.

The frames, settings and detectors are those that the authors' code was timed with on the same kind
of machine; its times are beside ours, and only a ratio within this run is a comparison on equal
terms. OpenCV does some of the same steps (colour, reduction, filters) and is measured in turn with
ours. Results go to results/detect.json.

    pip install --group bench
    python benchmarks/detect.py --only frames
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from harness import Figure, Figures, best_times, calibration, run
from numpy.typing import NDArray

from badacost._utils.parallel import Threads
from badacost.detection import Detections, Detector, load_detector
from badacost.detection.backend import CPUBackend, Layout
from badacost.detection.boxes import overlaps
from badacost.detection.cascade import Windows
from badacost.detection.channels import resample, rgb_to_luv
from badacost.detection.decorrelation import decorrelate
from badacost.detection.images import read_image
from badacost.detection.plan import Plan
from badacost.detection.pyramid import pyramid_levels

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("BADACOST_SHARED", HERE.parents[1] / "shared"))
FRAMES = SHARED / "golden" / "detection" / "frames"
CAR_FRAME, FACE_FRAME = FRAMES / "kitti_0036_0000000095.jpg", FRAMES / "face_oxford_00090.png"
STAGES = ("colour", "channels", "features", "trees", "boxes", "suppression")
PEAK = """
import sys
from harness import memory_status
from badacost.detection import load_detector
load_detector(sys.argv[1]).detect(sys.argv[2], n_jobs=2)
print(memory_status("VmHWM"))
"""


def published(name: str) -> Detector:
    return load_detector(SHARED / "data" / "models" / f"{name}.mat")


def settings() -> dict[str, tuple[Detector, Path, float, float, float]]:
    """Detector, frame, seconds of the authors' code on two threads, and CPU seconds of one thread.

    These are those of the code before plans, measured in turn with the code of 16 November 2026 on
    one machine, and the target.
    """
    cars, faces = published("kitti_badacost"), published("faces_badacost")
    return {
        "cars, fast": (cars.fast(), CAR_FRAME, 0.57, 0.085, 0.06),
        "cars, one octave up": (cars, CAR_FRAME, 8.5, 0.740, 0.5),
        "faces, not enlarged": (faces, FACE_FRAME, 2.2, 0.414, 0.3),
        "SubCat cars": (published("kitti_subcat"), CAR_FRAME, 2.5, 0.804, 0.6),
    }


class TimedBackend(CPUBackend):
    """Notes the CPU time of each stage and counts the work."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.stages: Counter[str] = Counter()

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.stages[stage] += time.process_time() - start

    def begin(self, pixels: NDArray[np.uint8], threads: Threads) -> None:
        with self._timed("colour"):
            super().begin(pixels, threads)

    def compute_channels(self, level: int) -> None:
        with self._timed("channels"):
            super().compute_channels(level)

    def compute_features(self, level: int) -> None:
        with self._timed("features"):
            super().compute_features(level)

    def scan(self, cascade: int) -> Windows:
        with self._timed("trees"):
            windows = super().scan(cascade)
        self.stages["windows"] += windows.n_scanned
        self.stages["evaluated"] += windows.n_evaluated
        return windows


def staged(detector: Detector, pixels: NDArray[np.uint8], repeats: int = 1) -> Counter[str]:
    """The shortest CPU time of each stage of `Detector.detect` on one thread, and its work."""
    plan = Plan(detector, pixels.shape[:2], TimedBackend)
    runs = []
    for _ in range(repeats):
        stages = plan.backend.stages = Counter()
        start = time.process_time()
        candidates = plan.detections(plan.sightings(pixels))
        stages["boxes"] = time.process_time() - start - sum(stages[name] for name in STAGES[:-2])
        start = time.process_time()
        detector.suppressed(candidates)
        stages["suppression"] = time.process_time() - start
        runs.append(stages)
    return Counter({name: min(run[name] for run in runs) for name in runs[0]})


def frames(scale: float) -> Figures:
    """Seconds a frame, and where the time of one thread goes."""
    repeats = max(2, round(15 * scale))
    for name, (detector, path, published_seconds, before, target) in settings().items():
        pixels = read_image(path)
        detector.detect(pixels)
        wall = best_times(
            {"two": lambda d=detector, p=pixels: d.detect(p, n_jobs=2)}, repeats, time.perf_counter
        )["two"]
        cpu = best_times({"one": lambda d=detector, p=pixels: d.detect(p)}, repeats)["one"]
        yield Figure(f"{name}: two threads", wall, "s")
        yield Figure(f"{name}: times faster than the authors", published_seconds / wall, "x")
        yield Figure(f"{name}: one thread", cpu, "CPU-s", at_most=target)
        yield Figure(f"{name}: before plans", before, "CPU-s")
        best = staged(detector, pixels, repeats)
        for stage in STAGES:
            yield Figure(f"{name}: {stage}", 1e3 * best[stage], "CPU-ms")
        trees, windows, evaluated = (best[key] for key in ("trees", "windows", "evaluated"))
        yield Figure(f"{name}: windows", windows, "")
        yield Figure(f"{name}: trees a window", evaluated / windows, "")
        yield Figure(f"{name}: windows a second", 1e-6 * windows / trees, "M/CPU-s")
        yield Figure(f"{name}: a tree on a window", 1e9 * trees / evaluated, "CPU-ns")


def opencv(scale: float) -> Figures:
    """CPU time of single steps against OpenCV on one thread, in the same run."""
    import cv2  # of the group `bench`; nothing else needs it

    cv2.setNumThreads(1)
    pixels = read_image(CAR_FRAME)
    luv = rgb_to_luv(pixels)
    interleaved = np.ascontiguousarray(luv.transpose(1, 2, 0))
    floats = pixels.astype(np.float32) / np.float32(255)
    detector = published("kitti_badacost")
    level = next(pyramid_levels(luv, detector.pyramid.__class__(
        channels=detector.pyramid.channels, pad=detector.pyramid.pad,
        min_size=detector.pyramid.min_size,
    )))  # fmt: skip
    filters = detector.filters
    height, width = (length // 2 for length in pixels.shape[:2])
    buffer = decorrelate(level.channels, filters)

    def filtered() -> None:
        for index in range(len(filters)):
            for channel, plane in enumerate(level.channels):
                kernel = np.ascontiguousarray(filters[index, channel, ::-1, ::-1])
                full = cv2.filter2D(plane, -1, kernel, borderType=cv2.BORDER_CONSTANT)
                cv2.resize(full, buffer.shape[:0:-1], interpolation=cv2.INTER_AREA)

    best = best_times(
        {
            "colour": lambda: rgb_to_luv(pixels),
            "colour cv": lambda: cv2.cvtColor(floats, cv2.COLOR_RGB2LUV),
            "reduction": lambda: resample(luv, height, width),
            "reduction cv": lambda: cv2.resize(
                interleaved, (width, height), interpolation=cv2.INTER_AREA
            ),
            "filters": lambda: decorrelate(level.channels, filters, out=buffer),
            "filters cv": filtered,
        },
        max(3, round(9 * scale)),
    )
    for step, what in (
        ("colour", "RGB to LUV"),
        ("reduction", "reduction of LUV to half"),
        ("filters", "40 filters, halved"),
    ):
        yield Figure(f"{what}: ours", 1e3 * best[step], "CPU-ms")
        yield Figure(f"{what}: OpenCV / ours", best[f"{step} cv"] / best[step], "x")


def found_again(before: Detections, after: Detections) -> int:
    """Number of boxes that have a counterpart of the same view."""
    same_view = before.labels[:, None] == after.labels
    return int(((overlaps(before.boxes, after.boxes) > 0.99) & same_view).any(axis=1).sum())


def cascade(scale: float) -> Figures:
    """Thresholds for each tree, calibrated on some frames and tried on the others."""
    for name, pattern in (("kitti_badacost", "kitti_*"), ("faces_badacost", "face_*")):
        detector = published(name)
        paths = sorted(FRAMES.glob(pattern))
        pictures = [read_image(path) for path in paths]
        halves = [
            ("the same frames", pictures, pictures),
            ("others", pictures[::2], pictures[1::2]),
        ]
        for keep in ("windows", "boxes"):
            for part, chosen, tried in halves:
                tuned = detector.calibrated(chosen, keep=keep, n_jobs=2)
                before = [detector.detect(picture, n_jobs=2) for picture in tried]
                after = [tuned.detect(picture, n_jobs=2) for picture in tried]
                title = f"{name}, {keep} kept, {part}"
                yield Figure(f"{title}: boxes before", sum(map(len, before)), "")
                yield Figure(f"{title}: boxes after", sum(map(len, after)), "")
                found = sum(map(found_again, before, after))
                yield Figure(f"{title}: found again", found, "")
                old, new = ([staged(d, picture) for picture in tried] for d in (detector, tuned))
                for key, unit in (("evaluated", "x fewer trees"), ("trees", "x faster")):
                    ratio = sum(r[key] for r in old) / sum(r[key] for r in new)
                    yield Figure(f"{title}: cascade", ratio, unit)


def memory(scale: float) -> Figures:
    """Peak memory of a new process that detects cars in a frame, one octave up."""
    model = str(SHARED / "data" / "models" / "kitti_badacost.mat")
    process = subprocess.run(
        [sys.executable, "-c", PEAK, model, str(CAR_FRAME)], check=True, capture_output=True,
        text=True, cwd=HERE,
    )  # fmt: skip
    yield Figure("1242 x 375: peak memory", int(process.stdout) / 2**20, "MB", at_most=600)


if __name__ == "__main__":
    run(
        __doc__.splitlines()[0],
        {
            "calibration": lambda scale: calibration(),
            "frames": frames,
            "opencv": opencv,
            "cascade": cascade,
            "memory": memory,
        },
        HERE / "results" / "detect.json",
    )
