"""Speed and memory of `BAdaCostClassifier` against peers that are measured in the same run.

Times of one thread are CPU times, the best of several runs that alternate between the contenders:
on a shared machine wall time mostly measures the neighbours. Everything that was measured goes to
a JSON file, with the target of each figure that has one.

    python benchmarks/classifier.py --only rounds predict
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from badacost import BAdaCostClassifier

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("BADACOST_SHARED", HERE.parents[1] / "shared"))
PACKAGES = ("numpy", "scikit-learn", "numba", "lightgbm", "badacost")
CHILD = multiprocessing.get_context("spawn")
FIRST_FIT = """
import numpy as np
from badacost import BAdaCostClassifier
rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 50)
BAdaCostClassifier().fit(rng.normal(size=(150, 4)) + y[:, None], y)
"""


@dataclass(frozen=True)
class Figure:
    """A measured number; with a target if one was set, which is a bound from below or above."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.at_least is not None:
            return bool(self.value >= self.at_least)
        return None if self.at_most is None else bool(self.value <= self.at_most)

    def __str__(self) -> str:
        line = f"  {self.name:<52} {self.value:>10.4g} {self.unit:<14}"
        if self.met is None:
            return line.rstrip()
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        return f"{line} {bound:<8} {'met' if self.met else 'MISSED'}"


Figures = Iterator[Figure]
Work = Callable[[], object]


def best_cpu_times(contenders: dict[str, Work], repeats: int = 3) -> dict[str, float]:
    """CPU seconds of each contender, the best of several runs in turn."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, work in contenders.items():
            start = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - start)
    return best


def round_times(
    fits: dict[str, tuple[Callable[[int], object], int, int]], repeats: int = 3
) -> dict[str, float]:
    """CPU seconds per round: fits of few and of more rounds differ by rounds only, not set-up."""
    work = {
        f"{name} {n}": functools.partial(fit, n)
        for name, (fit, few, more) in fits.items()
        for n in (few, more)
    }
    best = best_cpu_times(work, repeats)
    return {
        name: (best[f"{name} {more}"] - best[f"{name} {few}"]) / (more - few)
        for name, (_, few, more) in fits.items()
    }


def scaled(size: int, scale: float, least: int = 500) -> int:
    """Rows or columns of a smoke run."""
    return max(round(size * scale), min(size, least))


def gaussian_classes(
    n_rows: int, n_columns: int, n_classes: int, separation: float
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Classes of unit noise around normal means, as float32, without temporaries of their size."""
    rng = np.random.default_rng(0)
    means = separation * rng.standard_normal((n_classes, n_columns), dtype=np.float32)
    y = rng.integers(0, n_classes, n_rows)
    X = np.empty((n_rows, n_columns), np.float32)
    for start in range(0, n_rows, 64):
        block = slice(start, start + 64)
        rng.standard_normal(out=X[block], dtype=np.float32)
        X[block] += means[y[block]]
    return X, y


def fit_lightgbm(X: NDArray, y: NDArray, n_rounds: int, **parameters: object) -> lightgbm.Booster:
    """One-thread multi-class LightGBM with 255 bins, its default."""
    settings = {
        "objective": "multiclass",
        "num_class": int(y.max()) + 1,
        "num_threads": 1,
        "max_bin": 255,
        "verbosity": -1,
        **parameters,
    }
    return lightgbm.train(settings, lightgbm.Dataset(X, y), n_rounds)


def measure_rounds(scale: float) -> Figures:
    """CPU time of one boosting round on 50 000 x 50 samples of 5 classes, depth 6."""
    X, y = gaussian_classes(scaled(50_000, scale), 50, 5, 0.5)

    def badacost(n_rounds: int) -> object:
        return BAdaCostClassifier(n_estimators=n_rounds, max_depth=6, n_jobs=1).fit(X, y)

    def adaboost(n_rounds: int) -> object:
        tree = DecisionTreeClassifier(max_depth=6)
        return AdaBoostClassifier(tree, n_estimators=n_rounds, random_state=0).fit(X, y)

    def boosted(n_rounds: int) -> object:
        return fit_lightgbm(X, y, n_rounds, max_depth=6, num_leaves=63)

    badacost(1)  # compiles the kernels
    times = round_times(
        {"badacost": (badacost, 5, 25), "lightgbm": (boosted, 5, 25), "adaboost": (adaboost, 1, 3)}
    )
    yield Figure("badacost, round of 1 tree", 1e3 * times["badacost"], "CPU-ms")
    yield Figure("AdaBoostClassifier, round of 1 exact tree", 1e3 * times["adaboost"], "CPU-ms")
    yield Figure("LightGBM, round of 5 trees", 1e3 * times["lightgbm"], "CPU-ms")
    yield Figure("AdaBoost / badacost", times["adaboost"] / times["badacost"], "x", at_least=40)
    yield Figure("LightGBM / badacost", times["lightgbm"] / times["badacost"], "x", at_least=2)


def calibration() -> Figures:
    """Speed of the machine at the moment: memory bandwidth, and a sort that stays in the cache."""
    source, target = np.ones(2**25, np.float32), np.empty(2**25, np.float32)
    keys = np.random.default_rng(0).integers(0, 2**32, 2**16)
    best = best_cpu_times(
        {"copy": lambda: np.copyto(target, source), "sort": lambda: np.sort(keys, kind="stable")}, 7
    )
    yield Figure(
        "calibration: copy, read and written", 2 * source.nbytes / best["copy"] / 1e9, "GB/s"
    )
    yield Figure("calibration: stable sort of 65 536 integers", 1e3 * best["sort"], "CPU-ms")


def measure_wide(scale: float) -> Figures:
    """Seconds per tree on 20 000 x 5000 samples of 21 classes, depth 9, 1/16 of the features.

    The separation of the classes makes trees of 400 to 500 nodes, as in the authors' detectors.
    """
    yield from calibration()
    X, y = gaussian_classes(scaled(20_000, scale), scaled(5000, scale, 50), 21, 0.9)
    shape = {"max_depth": 9, "max_features": 1 / 16, "random_state": 0}
    for n_jobs in (1, 2):
        wall, cpu = [time.perf_counter()], [time.process_time()]

        def record(_: object, wall: list = wall, cpu: list = cpu) -> None:
            wall.append(time.perf_counter())
            cpu.append(time.process_time())

        model = BAdaCostClassifier(n_estimators=22, n_jobs=n_jobs, callbacks=[record], **shape)
        model.fit(X, y)
        threads = f"{n_jobs} thread{'s' * (n_jobs > 1)}"
        seconds = statistics.median(np.diff(wall)[2:])
        target = 0.15 if n_jobs == 2 else None
        yield Figure(f"badacost, {threads}: set-up and first tree", wall[1] - wall[0], "s")
        yield Figure(f"badacost, {threads}: median tree", seconds, "s", at_most=target)
        yield Figure(f"badacost, {threads}: quickest tree", min(np.diff(wall)[2:]), "s")
        yield Figure(
            f"badacost, {threads}: median tree", statistics.median(np.diff(cpu)[2:]), "CPU-s"
        )
    yield Figure("nodes per tree, median", statistics.median(np.diff(model.forest_.offsets)), "")
    yield Figure("authors' code on 2 threads (not of this run)", 1.16, "s")
    start = time.perf_counter()
    DecisionTreeClassifier(**shape).fit(X, y)
    peer = time.perf_counter() - start
    yield Figure("DecisionTreeClassifier, 1 exact tree", peer, "s")
    yield Figure("DecisionTreeClassifier / badacost, 2 threads", peer / seconds, "x")
    yield from calibration()


def letter_data(scale: float) -> tuple[str, NDArray, NDArray]:
    """UCI letter if it is at hand, else made-up data of its shape."""
    path = SHARED / "data/uci/letter.csv.gz"
    if not path.exists():
        return "made-up stand-in", *gaussian_classes(scaled(20_000, scale), 16, 26, 1.0)
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str)[: scaled(20_000, scale, 2000)]
    return "UCI letter", table[:, :-1].astype(np.float32), np.unique(table[:, -1], False, True)[1]


def measure_letter(scale: float) -> Figures:
    """Whole fits on UCI letter (20 000 x 16, 26 classes), and what the models are worth."""
    source, X, y = letter_data(scale)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    costs = np.random.default_rng(0).integers(1, 11, (26, 26)) * (1.0 - np.eye(26))
    models = {
        "badacost, depth 6": BAdaCostClassifier(max_depth=6, n_jobs=1),
        "badacost, depth 3 (default)": BAdaCostClassifier(n_jobs=1),
        "badacost, depth 6, costs": BAdaCostClassifier(costs, max_depth=6, n_jobs=1),
    }
    boosters: list[lightgbm.Booster] = []
    peer = "LightGBM, 100 x 26 trees"
    fits: dict[str, Work] = {
        name: functools.partial(model.fit, X, y) for name, model in models.items()
    }
    fits[peer] = lambda: boosters.append(fit_lightgbm(X, y, 100))
    for model in models.values():
        model.fit(X[:500], np.arange(500) % 26)  # compiles the kernels
    times = best_cpu_times(fits, 2)
    shares = np.asarray(boosters[-1].predict(X_test))
    labels = {name: (model.predict(X_test),) * 2 for name, model in models.items()}
    labels[peer] = shares.argmax(axis=1), (shares @ costs).argmin(axis=1)
    for name, seconds in times.items():
        guess, cheap = labels[name]
        yield Figure(f"{source}: {name}, fit", seconds, "CPU-s")
        yield Figure(f"{source}: {name}, test accuracy", np.mean(guess == y_test), "")
        yield Figure(f"{source}: {name}, test cost", costs[y_test, cheap].mean(), "of 1 to 10")
    for name in models:
        yield Figure(f"{name} / LightGBM, fit", times[name] / times[peer], "x", at_most=0.25)


def measure_predict(scale: float) -> Figures:
    """Rows x trees per CPU second on 50 000 x 50 samples of 5 classes, depth 6."""
    X, y = gaussian_classes(scaled(50_000, scale), 50, 5, 0.5)
    X64 = X.astype(np.float64)
    n_trees = 50
    ours = BAdaCostClassifier(n_estimators=n_trees, max_depth=6, n_jobs=1).fit(X, y)
    booster = fit_lightgbm(X, y, n_trees // 5, max_depth=6, num_leaves=63)
    hist = HistGradientBoostingClassifier(
        max_iter=n_trees // 5, max_depth=6, max_leaf_nodes=63, early_stopping=False
    ).fit(X, y)
    ours.predict(X[:9])  # compiles the kernels
    ours.predict(X64[:9])
    times = best_cpu_times(
        {
            "badacost, float32": lambda: ours.predict(X),
            "badacost, float64": lambda: ours.predict(X64),
            "LightGBM, float32": lambda: booster.predict(X, num_threads=1),
            "LightGBM, float64": lambda: booster.predict(X64, num_threads=1),
            "HistGradientBoosting, float64": lambda: hist.predict(X64),
        },
        5,
    )
    work = len(X) * n_trees / 1e6
    for name, seconds in times.items():
        target = 30 if name.startswith("badacost") else None
        yield Figure(f"{name}, M rows x trees / CPU-s", work / seconds, "M/s", at_least=target)
    for kind in ("float32", "float64"):
        ratio = times[f"LightGBM, {kind}"] / times[f"badacost, {kind}"]
        yield Figure(f"badacost / LightGBM, {kind}", ratio, "x")


def memory_status(field: str) -> int:
    """Bytes of a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def extra_memory(learner: str, n_rows: int, n_columns: int) -> int:
    """Peak memory of a fit of three rounds on top of the data; to be called in a new process.

    Not by ru_maxrss: that is a high-water mark of the process, which a child takes over from its
    parent and nothing resets. VmHWM can be set back to the present size by writing 5 to clear_refs.
    What earlier temporaries left with the allocator would hide a part of the peak, so the data are
    made in small blocks, and the fit that compiles the kernels is small.
    """
    X, y = gaussian_classes(n_rows, n_columns, 5, 0.5)

    def fit(rows: slice) -> object:
        if learner == "LightGBM":
            return fit_lightgbm(X[rows], y[rows], 3)
        return BAdaCostClassifier(n_estimators=3, max_depth=6, n_jobs=1).fit(X[rows], y[rows])

    fit(slice(300))
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_status("VmRSS")
    model = fit(slice(None))  # bound to a name, since a model takes memory as well
    peak = memory_status("VmHWM")
    del model
    return peak - before


def measure_memory(scale: float) -> Figures:
    """Peak extra memory of a fit, relative to a copy of the data at one byte a value."""
    if not Path("/proc/self/clear_refs").exists():
        print("  skipped: needs the /proc of Linux")
        return
    for rows, columns in ((20_000, 5000), (200_000, 100)):
        n_rows, n_columns = scaled(rows, scale), scaled(columns, scale, 50)
        for learner, target in (("badacost", 1.25), ("LightGBM", None)):
            with ProcessPoolExecutor(1, mp_context=CHILD) as child:
                extra = child.submit(extra_memory, learner, n_rows, n_columns).result()
            name = f"{learner}, {n_rows} x {n_columns}"
            yield Figure(f"{name}: peak extra", extra / 2**20, "MiB")
            ratio = extra / (n_rows * n_columns)
            yield Figure(f"{name}: relative to uint8 data", ratio, "x", at_most=target)


def process_times(code: str, cache: str, repeats: int = 1) -> tuple[float, float]:
    """Best wall and CPU seconds of a new interpreter that runs some code."""
    runs = []
    for _ in range(repeats):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs.append((wall, cpu))
    walls, cpus = zip(*runs, strict=True)
    return min(walls), min(cpus)


def measure_start(_: float) -> Figures:
    """From the start of a process to the end of a first small fit, with and without compiling."""
    cold = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(process_times(FIRST_FIT, cache))
            warm = process_times(FIRST_FIT, cache, 3) if len(cold) == 3 else None
    walls, cpus = zip(*cold, strict=True)
    yield Figure("first fit, empty cache of numba", min(walls), "s", at_most=8)
    yield Figure("first fit, empty cache of numba", min(cpus), "CPU-s")
    yield Figure("first fit, warm cache", warm[0], "s", at_most=2)
    yield Figure("first fit, warm cache", warm[1], "CPU-s")
    for code in ("import sklearn.ensemble", "import numba", "import lightgbm"):
        wall, cpu = process_times(code, "", 3)
        yield Figure(code, wall, "s")
        yield Figure(code, cpu, "CPU-s")
    yield Figure("first fit, warm / import sklearn.ensemble", warm[0] / wall, "x")


MEASUREMENTS = {
    "rounds": measure_rounds,
    "wide": measure_wide,
    "letter": measure_letter,
    "predict": measure_predict,
    "memory": measure_memory,
    "start": measure_start,
}


def circumstances(scale: float) -> dict[str, object]:
    """When, where and with what a measurement was made."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), cpu)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "scale": scale,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--scale", type=float, default=1.0, help="shrink the data, for a smoke run")
    parser.add_argument("--output", type=Path, help="default: results/classifier.json, if unscaled")
    options = parser.parse_args()
    output = options.output
    if output is None and options.scale == 1.0:
        output = HERE / "results/classifier.json"
    for name in options.only:
        measure = MEASUREMENTS[name]
        result = {**circumstances(options.scale), "figures": []}
        print(f"{name}: {measure.__doc__.splitlines()[0]}", flush=True)
        with threadpool_limits(1):  # OpenMP and BLAS; the threads of badacost are its own
            for figure in measure(options.scale):
                print(figure, flush=True)
                result["figures"].append({**asdict(figure), "met": figure.met})
        if output is not None:  # measurements that were not repeated stay as they are
            results = json.loads(output.read_text()) if output.exists() else {}
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps({**results, name: result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
