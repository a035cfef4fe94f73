"""Training and prediction on a GPU: the same models as on the CPU, and how fast.

    python benchmarks/gpu.py check
    python benchmarks/gpu.py train --rows 10000000
    python benchmarks/gpu.py predict
    python benchmarks/gpu.py check-detector --models FOLDER
    python benchmarks/gpu.py detect --models FOLDER
    python benchmarks/gpu.py train-detector --cars FOLDER

Times are wall times; the CPU uses all cores, and fewer rows where the table says so. What was
measured is added to results/gpu.json, or to the file that ``--output`` names. Folders are those of
the published detectors (``kitti_*.mat``) and of images of KITTI; without them, detectors and images
are those of the package.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import gpu_detector
import numpy as np
from numpy.typing import NDArray

from badacost import AdaC2M1Classifier, BAdaCostClassifier, CostBoostClassifier
from badacost._utils.parallel import Threads
from badacost.backends.device import cuda_device
from badacost.backends.shards import ShardedData
from badacost.boosting.cross_fit import CrossFit
from badacost.boosting.folds import Fold
from badacost.boosting.reweighting import Reweighting, Rule, ShardedReweighting, TreeLearner
from badacost.costs import zero_one_costs
from badacost.loss import cost_margins
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.grower import Growth, TreeGrower

N_CLASSES, N_FEATURES = 10, 100
RESULTS = Path(__file__).resolve().parent / "results/gpu.json"
SAME = ("same file", "same scores", "equal")
PUBLISHED = 9e9  # row-features a second of XGBoost on smaller cards
Row = dict[str, Any]


def asymmetric_costs(n_classes: int) -> NDArray[np.float64]:
    costs = 1.0 + np.add.outer(np.arange(n_classes) * 0.3, np.arange(n_classes) * 0.1)
    np.fill_diagonal(costs, 0.0)
    return costs


def table(n_rows: int, n_features: int, n_classes: int) -> tuple[Any, Any, Any]:
    """Samples with missing values and a column of categories, noisy classes, and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    X[rng.random(n_rows) < 0.1, 1] = np.nan
    X[:, 2] = rng.integers(12, size=n_rows)
    score = X[:, 0] + 0.5 * (X[:, 2] % 3) + rng.normal(size=n_rows)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y, rng.random(n_rows) + 0.1


def check() -> Iterator[Row]:
    """Models of several settings, fitted on both devices: files and scores byte by byte."""
    X, y, weight = table(20_000, 12, 4)
    costs = asymmetric_costs(4)
    models = {
        "BAdaCost, categories": BAdaCostClassifier(costs, categorical_features=[2]),
        "BAdaCost, draws, best first": BAdaCostClassifier(
            costs, subsample=0.7, max_features=0.5, max_leaf_nodes=12, max_depth=None
        ),
        "BAdaCost, entropy, large leaves": BAdaCostClassifier(
            costs, criterion="entropy", min_samples_leaf=20
        ),
        "AdaC2.M1": AdaC2M1Classifier(costs),
        "CostBoost, 3 folds, categories": CostBoostClassifier(
            costs, n_folds=3, categorical_features=[2]
        ),
        "CostBoost, draws": CostBoostClassifier(costs, n_folds=2, subsample=0.6, max_features=5),
    }
    for name, model in models.items():
        model.set_params(n_estimators=8, random_state=3, n_jobs=-1)
        files, scores, seconds = [], [], []
        for device in ("cpu", "cuda"):
            start = time.perf_counter()
            model.set_params(device=device).fit(X, y, weight)
            seconds.append(time.perf_counter() - start)
            with tempfile.TemporaryDirectory() as folder:
                model.save(Path(folder, "model"))
                files.append(Path(folder, "model").read_bytes())
            scores.append(model.cost_scores(X).tobytes())
        yield {
            "model": name,
            "same file": files[0] == files[1],
            "same scores": scores[0] == scores[1],
            "CPU s": seconds[0],
            "GPU s": seconds[1],
        }


def random_bins(n_rows: int) -> tuple[BinnedData, NDArray[np.uint8]]:
    """Bins of normal values at quantiles, and classes that depend on some of them."""
    bins = np.empty((N_FEATURES, n_rows), np.uint8)

    def fill(feature: int) -> None:
        bins[feature] = np.frombuffer(np.random.default_rng(feature).bytes(n_rows), np.uint8)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(N_FEATURES)))
    score = bins[0].astype(np.float32) + bins[7] + 0.5 * bins[30]
    score += np.random.default_rng(N_FEATURES).normal(scale=60.0, size=n_rows).astype(np.float32)
    y = np.clip(score * (N_CLASSES / 640.0), 0, N_CLASSES - 1).astype(np.uint8)
    edges = [np.arange(0.5, 255.0)] * N_FEATURES
    return BinnedData(BinMapper(edges, np.zeros(N_FEATURES, bool)), bins), y


def descent(kind: str, rows: ShardedData, data: BinnedData, depth: int, threads: Threads) -> Any:
    """Boosting at its start."""
    growth = Growth(max_depth=depth)
    n = len(rows.y)
    if kind == "CostBoost":
        return CrossFit(
            rows,
            growth,
            [Fold(np.arange(n), np.arange(0))],
            n_classes=N_CLASSES,
            l2=1.0,
            min_hessian=0.1,
            learning_rate=0.1,
            n_directions=1,
            subsample=1.0,
            seed=0,
            threads=threads,
        )
    rule = Rule(cost_margins(asymmetric_costs(N_CLASSES)))
    settings: dict[str, Any] = {
        "learning_rate": 0.1,
        "subsample": 1.0,
        "seed": 0,
        "random": False,
    }
    if rows.is_local:
        learner = TreeLearner(TreeGrower(data, growth, threads), rows.y, N_CLASSES, "gini")
        return Reweighting(learner, rows.y, rows.weight, rule, **settings)
    return ShardedReweighting(rows, growth, "gini", rows.weight, rule, threads=threads, **settings)


def count_trees(boosting: Any) -> Callable[[], int]:
    """A counter of the trees that are grown; BAdaCost may try two in a round, and keeps one."""
    name = "fit" if isinstance(boosting, CrossFit) else "_candidate"
    grow, n_grown = getattr(boosting, name), 0

    def counted(*given: Any) -> Any:
        nonlocal n_grown
        n_grown += 1
        return grow(*given)

    setattr(boosting, name, counted)
    return lambda: n_grown


def train(sizes: dict[str, int], n_rounds: int, depth: int) -> Iterator[Row]:
    """Rounds of boosting from bins in memory; the first round, which compiles, is not counted."""
    for device, n in sizes.items():
        data, y = random_bins(n)
        weight = np.ones(n)
        threads = Threads(-1)
        for kind in ("CostBoost", "BAdaCost"):
            start = time.perf_counter()
            rows = ShardedData.local(data, y, weight, threads, device)
            boosting = descent(kind, rows, data, depth, threads)
            n_trees = count_trees(boosting)
            boosting.advance(boosting.fit(0))
            begun, before = time.perf_counter(), n_trees()
            for number in range(1, n_rounds + 1):
                boosting.advance(boosting.fit(number))
            seconds = (time.perf_counter() - begun) / n_rounds
            trees_a_round = (n_trees() - before) / n_rounds
            rate = n * N_FEATURES * trees_a_round / seconds
            yield {
                "model": kind,
                "device": device,
                "rows": n,
                "first s": begun - start,
                "s a round": seconds,
                "trees a round": trees_a_round,
                "row-features/s": rate,
                "against published": rate / PUBLISHED,
            }
            rows.shards.close()
            del boosting, rows
        del data, y


def predict(sizes: dict[str, int], n_trees: int) -> Iterator[Row]:
    """Scores of a forest of trees of depth 6, from samples in the memory of the host."""
    n_rows, n_compared = max(sizes.values()), min(sizes.values())
    rng = np.random.default_rng(0)
    means = 0.1 * rng.standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    y = rng.integers(N_CLASSES, size=n_rows)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    X += means[y]
    model = BAdaCostClassifier(
        zero_one_costs(N_CLASSES), n_estimators=n_trees, max_depth=6, random_state=0, n_jobs=-1
    )
    model.fit(X[:50_000], y[:50_000])
    expected = model.cost_scores(X[:n_compared]).tobytes()
    for device, n in sizes.items():
        model.set_params(device=device)
        found = model.cost_scores(X[:n_compared]).tobytes()  # compiles
        start = time.perf_counter()
        model.cost_scores(X[:n])
        seconds = time.perf_counter() - start
        yield {
            "device": device,
            "rows": n,
            "trees": model.forest_.n_trees,
            "s": seconds,
            "rows/s": n / seconds,
            "same scores": found == expected,
        }


def shown(rows: list[Row]) -> str:
    """Rows as a table."""
    texts = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in rows
    ]
    lines = [list(rows[0]), *texts]
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
        for line in lines
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = ("check", "train", "predict", "check-detector", "detect", "train-detector")
    parser.add_argument("command", choices=commands)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cpu-rows", type=int, default=1_000_000)
    parser.add_argument("--devices", nargs="+", choices=["cuda", "cpu"], default=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--cars", type=Path)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    properties = cuda_device().xp.cuda.runtime.getDeviceProperties(0)
    machine = f"{properties['name'].decode()}, {os.cpu_count()} cores, {platform.python_version()}"
    print(machine, flush=True)
    sizes = {name: given.rows if name == "cuda" else given.cpu_rows for name in given.devices}
    measured = {
        "check": check,
        "train": lambda: train(sizes, given.rounds, given.depth),
        "predict": lambda: predict(sizes, given.trees),
        "check-detector": lambda: gpu_detector.check(given.models),
        "detect": lambda: gpu_detector.detect(given.models, given.frames),
        "train-detector": lambda: chain.from_iterable(
            gpu_detector.train(device, given.cars) for device in given.devices
        ),
    }[given.command]()
    rows: list[Row] = []
    for row in measured:
        print(row, flush=True)
        rows.append(row)
        known = json.loads(given.output.read_text()) if given.output.exists() else {}
        known[given.command] = {"machine": machine, "measured": rows}
        given.output.write_text(json.dumps(known, indent=1) + "\n")  # should time run out
    print(shown(rows))
    return int(any(row.get(name) is False for row in rows for name in SAME))


if __name__ == "__main__":
    sys.exit(main())
