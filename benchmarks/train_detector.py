"""Speed and memory of training a detector: boosting, windows, mining and a whole training.

Results go to results/train_detector.json.

    python benchmarks/train_detector.py --only boosting
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from harness import Figure, Figures, calibration, memory_status, run, scaled
from numpy.typing import NDArray

from badacost._utils.parallel import Threads
from badacost.costs import circular_view_costs
from badacost.detection import TrainingConfig, train_detector
from badacost.detection.annotations import Views
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.scenes import make_scenes
from badacost.detection.training.boosters import cost_booster
from badacost.detection.training.samples import WindowFeatures, random_boxes
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.grower import DrawPer, Growth

HERE = Path(__file__).resolve().parent
N_VIEWS = 20


def binned_windows(n_windows: int, n_features: int) -> tuple[BinnedData, NDArray[np.uint8]]:
    """Background and 20 views in bins: noise around a mean for each class and feature."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_VIEWS + 1, n_windows).astype(np.uint8)
    y[rng.random(n_windows) < 0.5] = 0
    bins = np.empty((n_features, n_windows), np.uint8)
    for row in bins:
        means = rng.normal(128.0, 8.0, N_VIEWS + 1)
        row[:] = np.clip(means[y] + rng.normal(0.0, 40.0, n_windows), 0, 255)
    edges = [np.arange(0.5, 255.0)] * n_features
    return BinnedData(BinMapper(edges, np.zeros(n_features, np.bool_)), bins), y


def boosted(
    n_windows: int, n_features: int, n_trees: int, draw_per: DrawPer = "node"
) -> dict[str, float]:
    """Boost in this process; what it took."""
    bare = memory_status("VmRSS")
    data, y = binned_windows(n_windows, n_features)
    growth = Growth(
        max_depth=9,
        min_samples_split=11,
        n_drawn=max(1, n_features // 32),
        draw_per=draw_per,
    )
    costs = circular_view_costs(N_VIEWS, beta=3.0, gamma=3.0)
    threads = Threads(2)
    booster = cost_booster(
        data, y, costs, growth=growth, learning_rate=0.05, seed=0, threads=threads
    )
    wall, cpu = time.perf_counter(), time.process_time()
    while booster.n_trees < n_trees and booster.grow():
        pass
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    forest = booster.forest()
    return {
        "seconds": wall,
        "cpu": cpu,
        "trees": forest.n_trees,
        "nodes": float(np.diff(forest.offsets).mean()),
        "memory": (memory_status("VmHWM") - bare) / data.bins.nbytes,
    }


def boosting(scale: float) -> Figures:
    """1024 trees of 9 levels on 20 000 windows of 12 480 features, 21 classes, two threads.

    Each node has features of its own, 1/32 of all, as in the paper.
    """
    yield from _boosting(scale, "node")


def boosting_by_level(scale: float) -> Figures:
    """The same with features that all nodes of a level share."""
    yield from _boosting(scale, "level")


def _boosting(scale: float, draw_per: DrawPer) -> Figures:
    sizes = scaled(20_000, scale), scaled(12_480, scale), max(16, round(1024 * scale))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:  # a process without other arrays
        pool.submit(boosted, 500, 64, 2).result()  # compiles, which takes memory of its own
        found = pool.submit(boosted, *sizes, draw_per).result()
    whole = scale == 1.0
    yield Figure("trees", found["trees"], "")
    yield Figure("nodes a tree", found["nodes"], "")
    yield Figure("all trees", found["seconds"], "s", at_most=240.0 if whole else None)
    yield Figure("a tree", found["seconds"] / found["trees"], "s")
    yield Figure("a tree, both threads together", found["cpu"] / found["trees"], "CPU-s")
    limit = 1.5 if whole else None
    yield Figure("memory, in copies of the matrix of bytes", found["memory"], "x", at_most=limit)


def windows(scale: float) -> Figures:
    """Windows cut out of images a second, and their features."""
    (scene,) = make_scenes(1, size=(480, 640), random_state=0)
    config = TrainingConfig(window=(48, 84))
    pyramid = config.pyramid((0.0, 0.0, 0.0))
    rng = np.random.default_rng(0)
    filters = rng.normal(size=(4, 10, 5, 5)).astype(np.float32)
    features = WindowFeatures(config.shape, pyramid.channels, pyramid.smoothing, filters)
    boxes = random_boxes((480, 640), config.shape, scaled(1000, scale, 100), rng)
    pixels = scene.load()
    features.of(config.shape.cut(pixels, boxes[:2]))
    start = time.process_time()
    crops = config.shape.cut(pixels, boxes)
    middle = time.process_time()
    features.of(crops)
    end = time.process_time()
    yield Figure("windows cut out", len(boxes) / (middle - start), "1/CPU-s")
    yield Figure("their features", len(boxes) / (end - middle), "1/CPU-s")


class _Mined(logging.Handler):
    """Adds up what the rounds of false alarms found, and how long they took."""

    n_negatives = 0
    n_images = 0
    seconds = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if "new negatives" in record.msg:
            _, _, n_negatives, n_images, _, seconds = record.args
            self.n_negatives += n_negatives
            self.n_images += n_images
            self.seconds += seconds


def synthetic(scale: float) -> Figures:
    """A detector of 8 views from 200 synthetic images, tried on 100 fresh ones, two threads."""
    n_images = scaled(200, scale, 20)
    scenes = make_scenes(n_images, n_views=8, random_state=1)
    fresh = make_scenes(n_images // 2, n_views=8, random_state=2)
    config = TrainingConfig.small(window=(40, 64))
    mined = _Mined()
    log = logging.getLogger("badacost.detection.training")
    log.setLevel(logging.INFO)
    log.addHandler(mined)
    start = time.perf_counter()
    detector = train_detector(scenes, Views.around(8), config, category="Car", n_jobs=2)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    found = list(detector.detect_many((image.load() for image in fresh), n_jobs=2))
    each = (time.perf_counter() - start) / len(fresh)
    names = [image.name for image in fresh]
    result = evaluate_voc(
        dict(zip(names, found, strict=True)), dict(zip(names, fresh, strict=True))
    )
    whole = scale == 1.0
    yield Figure("training", seconds, "s", at_most=300.0 if whole else None)
    yield Figure("negatives mined", mined.n_negatives / mined.seconds, "1/s")
    yield Figure("images searched for them", mined.n_images / mined.seconds, "1/s")
    yield Figure("AP at an overlap of 0.5", result.ap, "", at_least=0.95 if whole else None)
    yield Figure("views right", result.view_accuracy, "", at_least=0.85 if whole else None)
    yield Figure("detection, 320 x 240", 1e3 * each, "ms")


if __name__ == "__main__":
    run(
        __doc__.splitlines()[0],
        {
            "calibration": lambda scale: calibration(),
            "boosting": boosting,
            "boosting-by-level": boosting_by_level,
            "windows": windows,
            "synthetic": synthetic,
        },
        HERE / "results" / "train_detector.json",
    )
