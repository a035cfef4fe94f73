"""Speed and memory of the classifiers against peers that are measured in the same run.

Times of one thread are CPU times, the best of several runs that alternate between the contenders:
on a shared machine wall time mostly measures the neighbours. Everything that was measured goes to
results/classifier.json, with the target of each figure that has one.

    python benchmarks/classifier.py --only rounds predict
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import xgboost
from harness import (
    Figure,
    Figures,
    best_times,
    calibration,
    memory_status,
    process_times,
    run,
    scaled,
    waited_seconds,
)
from numpy.typing import NDArray
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from badacost import BAdaCostClassifier, CostBoostClassifier

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("BADACOST_SHARED", HERE.parents[1] / "shared"))
FIRST_FIT = """
import numpy as np
from badacost import BAdaCostClassifier
rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 50)
BAdaCostClassifier().fit(rng.normal(size=(150, 4)) + y[:, None], y)
"""


def round_times(
    fits: dict[str, tuple[Callable[[int], object], int, int]],
    repeats: int = 5,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """CPU seconds per round: fits of few and of more rounds differ by rounds only, not set-up."""
    work = {
        f"{name} {n}": functools.partial(fit, n)
        for name, (fit, few, more) in fits.items()
        for n in (few, more)
    }
    best = best_times(work, repeats, clock)
    return {
        name: (best[f"{name} {more}"] - best[f"{name} {few}"]) / (more - few)
        for name, (_, few, more) in fits.items()
    }


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
    """CPU time of one boosting round on 50 000 x 50 samples of 5, 26 and 100 classes, depth 6."""
    for n_classes in (5, 26, 100):
        X, y = gaussian_classes(scaled(50_000, scale), 50, n_classes, 0.5)

        def badacost(n_rounds: int, X: NDArray = X, y: NDArray = y) -> object:
            return BAdaCostClassifier(n_estimators=n_rounds, max_depth=6, n_jobs=1).fit(X, y)

        def adaboost(n_rounds: int, X: NDArray = X, y: NDArray = y) -> object:
            tree = DecisionTreeClassifier(max_depth=6)
            return AdaBoostClassifier(tree, n_estimators=n_rounds, random_state=0).fit(X, y)

        def boosted(n_rounds: int, X: NDArray = X, y: NDArray = y) -> object:
            return fit_lightgbm(X, y, n_rounds, max_depth=6, num_leaves=63)

        badacost(1)  # compiles the kernels
        few, more = (5, 25) if n_classes == 5 else (1, 5)
        fits = {"badacost": (badacost, 5, 25), "lightgbm": (boosted, few, more)}
        if n_classes == 5:
            fits["adaboost"] = (adaboost, 1, 3)
        times = round_times(fits, 5 if n_classes == 5 else 3)
        ours, peer, name = times["badacost"], times["lightgbm"], f"K = {n_classes}"
        yield Figure(f"{name}: badacost, round of 1 tree", 1e3 * ours, "CPU-ms")
        yield Figure(f"{name}: LightGBM, round of {n_classes} trees", 1e3 * peer, "CPU-ms")
        yield Figure(f"{name}: LightGBM / badacost", peer / ours, "x", at_least=2)
        if n_classes == 5:
            exact = times["adaboost"]
            yield Figure(f"{name}: AdaBoost, round of 1 exact tree", 1e3 * exact, "CPU-ms")
            yield Figure(f"{name}: AdaBoost / badacost", exact / ours, "x", at_least=40)


LIKE_PEERS: dict[str, object] = {"max_depth": 6, "max_bins": 256, "max_features": None}


def fit_costboost(
    X: NDArray, y: NDArray, n_threads: int, n_rounds: int, **parameters: object
) -> object:
    """CostBoost of one fold, whose round is one tree fitted to all samples."""
    return CostBoostClassifier(
        n_estimators=n_rounds, n_folds=1, early_stopping=False, n_jobs=n_threads, **parameters
    ).fit(X, y)


def costboost_and_peers(
    X: NDArray, y: NDArray, n_threads: int
) -> dict[str, Callable[[int], object]]:
    """Fits of a number of rounds by name: trees of depth 6 and 64 leaves, or as the name says."""

    def ours(n_rounds: int, **parameters: object) -> object:
        return fit_costboost(X, y, n_threads, n_rounds, **parameters)

    def lgb(n_rounds: int, **parameters: object) -> object:
        return fit_lightgbm(X, y, n_rounds, num_threads=n_threads, **parameters)

    def xgb(n_rounds: int, strategy: str) -> object:
        settings = {
            "objective": "multi:softprob",
            "num_class": int(y.max()) + 1,
            "multi_strategy": strategy,
            "tree_method": "hist",
            "nthread": n_threads,
        }
        return xgboost.train(settings, xgboost.QuantileDMatrix(X, y, nthread=n_threads), n_rounds)

    def cat(n_rounds: int) -> object:
        return catboost.CatBoostClassifier(
            iterations=n_rounds, thread_count=n_threads, verbose=False, allow_writing_files=False
        ).fit(X, y)

    return {
        "CostBoost": functools.partial(ours, **LIKE_PEERS),
        "CostBoost, best first, 31 leaves": functools.partial(
            ours, tree="best", **LIKE_PEERS | {"max_depth": None}
        ),
        "CostBoost, its defaults": ours,
        "LightGBM": functools.partial(lgb, num_leaves=64),
        "LightGBM, 63 bins": functools.partial(lgb, num_leaves=64, max_bin=63),
        "LightGBM, 31 leaves": functools.partial(lgb, num_leaves=31),
        "XGBoost": functools.partial(xgb, strategy="one_output_per_tree"),
        "XGBoost, vector leaves": functools.partial(xgb, strategy="multi_output_tree"),
        "CatBoost": cat,
    }


def costboost_rounds(scale: float, n_threads: int) -> Figures:
    """Time of a round on 50 000 x 50 samples: of the CPU on one thread, of the wall on more."""
    clock, unit = (time.process_time, "CPU-ms") if n_threads == 1 else (time.perf_counter, "ms")
    targets = {10: 3.0, 100: 15.0} if n_threads == 1 else {}
    for n_classes in (5, 10, 26, 100):
        X, y = gaussian_classes(scaled(50_000, scale, 2000), 50, n_classes, 0.5)
        few, more = (2, 12) if n_classes <= 10 else (1, 4)
        fits = {
            name: (fit, *((2, 22) if name.startswith("CostBoost") else (few, more)))
            for name, fit in costboost_and_peers(X, y, n_threads).items()
        }
        for name, (fit, _, _) in fits.items():
            if name.startswith("CostBoost"):
                fit(1)  # compiles the kernels
        with threadpool_limits(n_threads):
            times = round_times(fits, 3 if n_classes <= 10 else 2, clock)
        for name, seconds in times.items():
            yield Figure(f"K = {n_classes}: {name}, round", 1e3 * seconds, unit)
        for name in list(fits)[1:]:
            ratio = times[name] / times["CostBoost"]
            target = targets.get(n_classes) if name == "LightGBM" else None
            yield Figure(f"K = {n_classes}: {name} / CostBoost", ratio, "x", at_least=target)


def measure_costboost(scale: float) -> Figures:
    """CPU time of a round of CostBoost on 50 000 x 50 samples of 5 to 100 classes, and its peers'.

    All have 64 leaves, all features and about 256 bins, unless the name says so. The defaults of
    CostBoost are 32 leaves, 32 bins and 15 of the 50 features at each level.
    """
    return costboost_rounds(scale, n_threads=1)


def measure_costboost_threads(scale: float) -> Figures:
    """The same on two threads: wall time, which wants a machine without other work."""
    return costboost_rounds(scale, n_threads=2)


def measure_costboost_rows(scale: float) -> Figures:
    """CPU time of a round of CostBoost per sample, for 10 000 to 1 000 000 x 20 of 5 classes."""
    per_row = []
    for n_rows in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        X, y = gaussian_classes(scaled(n_rows, scale, 2000), 20, 5, 0.5)
        fit = functools.partial(fit_costboost, X, y, 1, **LIKE_PEERS)
        fit(1)  # compiles the kernels
        seconds = round_times({"ours": (fit, 2, 12)}, 3)["ours"]
        per_row.append(1e9 * seconds / len(X))
        yield Figure(f"{n_rows} rows: round", 1e3 * seconds, "CPU-ms")
        yield Figure(f"{n_rows} rows: round, per row", per_row[-1], "CPU-ns")
    yield Figure("1 000 000 rows / 10 000 rows, time per row", per_row[-1] / per_row[0], "x")


def measure_wide(scale: float) -> Figures:
    """Seconds per tree on 20 000 x 5000 samples of 21 classes, depth 9, 1/16 of the features.

    The separation of the classes makes trees of 400 to 500 nodes, as in the authors' detectors.
    """
    yield from calibration()
    X, y = gaussian_classes(scaled(20_000, scale), scaled(5000, scale, 50), 21, 0.85)
    shape = {"max_depth": 9, "max_features": 1 / 16, "random_state": 0}
    for n_jobs in (1, 2):
        marks = [(time.perf_counter(), time.process_time(), waited_seconds())]

        def mark(_: object, marks: list = marks) -> None:
            marks.append((time.perf_counter(), time.process_time(), waited_seconds()))

        model = BAdaCostClassifier(n_estimators=22, n_jobs=n_jobs, callbacks=[mark], **shape)
        model.fit(X, y)
        ours = f"badacost, {n_jobs} thread{'s' * (n_jobs > 1)}"
        wall, cpu, waited = np.diff(marks, axis=0).T
        seconds = np.median(wall[2:])
        yield Figure(f"{ours}: set-up and first tree", wall[0], "s")
        yield Figure(f"{ours}: tree", seconds, "s", at_most=0.15 if n_jobs == 2 else None)
        yield Figure(f"{ours}: quickest tree", wall[2:].min(), "s")
        yield Figure(f"{ours}: tree", np.median(cpu[2:]), "CPU-s")
        yield Figure(f"{ours}: tree, threads without a core", np.median(waited[2:]), "s")
    yield Figure("nodes per tree", np.median(np.diff(model.forest_.offsets)), "")
    yield Figure("authors' code on 2 threads (not of this run)", 1.16, "s")
    start = time.perf_counter()
    DecisionTreeClassifier(**shape).fit(X, y)
    peer = time.perf_counter() - start
    yield Figure("DecisionTreeClassifier, 1 exact tree", peer, "s")
    yield Figure("DecisionTreeClassifier / badacost, 2 threads", peer / seconds, "x")
    yield from calibration()


def letter_data(scale: float) -> tuple[str, NDArray, NDArray]:
    """UCI letter if it is at hand, else synthetic data of its shape."""
    path = SHARED / "data/uci/letter.csv.gz"
    if not path.exists():
        return "synthetic stand-in", *gaussian_classes(scaled(20_000, scale), 16, 26, 1.0)
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str)[: scaled(20_000, scale, 2000)]
    return "UCI letter", table[:, :-1].astype(np.float32), np.unique(table[:, -1], False, True)[1]


def measure_letter(scale: float) -> Figures:
    """Whole fits on UCI letter (20 000 x 16, 26 classes), and what the models are worth."""
    source, X, y = letter_data(scale)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    costs = np.random.default_rng(0).integers(1, 11, (26, 26)) * (1.0 - np.eye(26))
    models = {
        "badacost, depth 6": BAdaCostClassifier(max_depth=6, n_jobs=1),
        "badacost, depth 3": BAdaCostClassifier(max_depth=3, n_jobs=1),
        "badacost, depth 6, costs": BAdaCostClassifier(costs, max_depth=6, n_jobs=1),
    }
    boosters: list[lightgbm.Booster] = []
    peer = "LightGBM, 100 x 26 trees"
    fits = {name: functools.partial(model.fit, X, y) for name, model in models.items()}
    fits[peer] = lambda: boosters.append(fit_lightgbm(X, y, 100))
    for model in models.values():
        model.fit(X[:500], np.arange(500) % 26)  # compiles the kernels
    times = best_times(fits, 4)
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
    """Rows x trees per CPU second on 50 000 x 50 samples of 5 and 26 classes, depth 6."""
    for n_classes, n_trees in ((5, 50), (26, 52)):
        X, y = gaussian_classes(scaled(50_000, scale), 50, n_classes, 0.5)
        X64, n_rounds = X.astype(np.float64), n_trees // n_classes
        ours = BAdaCostClassifier(n_estimators=n_trees, max_depth=6, n_jobs=1).fit(X, y)
        lgb = fit_lightgbm(X, y, n_rounds, max_depth=6, num_leaves=63)
        hist = HistGradientBoostingClassifier(
            max_iter=n_rounds, max_depth=6, max_leaf_nodes=63, early_stopping=False
        ).fit(X, y)
        xgb = xgboost.train(
            {"objective": "multi:softprob", "num_class": n_classes, "max_depth": 6, "nthread": 1},
            xgboost.DMatrix(X, y),
            n_rounds,
        )
        cat = catboost.CatBoostClassifier(
            iterations=n_trees, depth=6, thread_count=1, verbose=False, allow_writing_files=False
        ).fit(X, y)
        # One vector-leaf tree a round, as ours: rows x trees counts the same thing.
        work = {
            "badacost, float32": lambda: ours.predict(X),  # noqa: B023
            "badacost, float64": lambda: ours.predict(X64),  # noqa: B023
            "LightGBM": lambda: lgb.predict(X, num_threads=1),  # noqa: B023
            "XGBoost": lambda: xgb.inplace_predict(X),  # noqa: B023
            "CatBoost": lambda: cat.predict(X, thread_count=1),  # noqa: B023
            "HistGradientBoosting": lambda: hist.predict(X64),  # noqa: B023
        }
        for predict in work.values():
            predict()  # compiles the kernels
        times = best_times(work, 5)
        n_visits = len(X) * n_trees / 1e6
        for name, seconds in times.items():
            speed = n_visits / seconds
            yield Figure(f"K = {n_classes}: {name}, rows x trees", speed, "M/CPU-s")
        for peer in ("LightGBM", "XGBoost", "CatBoost"):
            ratio = times[peer] / times["badacost, float32"]
            yield Figure(f"K = {n_classes}: badacost / {peer}", ratio, "x", at_least=1)


def measure_small(_: float) -> Figures:
    """Fits of 100 rounds on 150 x 4 samples of 3 classes, and predictions of one row."""
    X, y = gaussian_classes(150, 4, 3, 1.0)
    work: dict[str, Callable[[], object]] = {}
    for depth in (1, 6):
        ours = BAdaCostClassifier(max_depth=depth, learning_rate=0.01)
        work[f"badacost, depth {depth}"] = functools.partial(ours.fit, X, y)
        peer = functools.partial(
            fit_lightgbm, X, y, 100, max_depth=depth, num_leaves=2**depth, min_data_in_leaf=1
        )
        work[f"LightGBM, depth {depth}"] = peer
    for fit in work.values():
        fit()
    for name, seconds in best_times(work, 7).items():
        yield Figure(f"{name}: 100 rounds", 1e3 * seconds, "CPU-ms")
    model, booster = BAdaCostClassifier().fit(X, y), fit_lightgbm(X, y, 34)
    row = X[:1].copy()
    rows = {
        "badacost": lambda: [model.predict(row) for _ in range(200)],
        "LightGBM": lambda: [booster.predict(row, num_threads=1) for _ in range(200)],
    }
    for predict in rows.values():
        predict()
    times = best_times(rows, 7)
    for name, seconds in times.items():
        yield Figure(f"{name}: one row, about 100 trees", 1e6 * seconds / 200, "CPU-us")
    yield Figure("LightGBM / badacost, one row", times["LightGBM"] / times["badacost"], "x")


def measure_binning(scale: float) -> Figures:
    """Set-up of a fit on 20 000 x 5000 samples: choosing bins and putting values into them."""
    X, y = gaussian_classes(scaled(20_000, scale), scaled(5000, scale, 50), 21, 0.85)
    for method, target in (("uniform", 1.4), ("quantile", None)):
        model = BAdaCostClassifier(
            n_estimators=1, max_depth=1, max_features=1, binning=method, random_state=0
        )
        model.fit(X[:500], y[:500])
        best = best_times({"fit": functools.partial(model.fit, X, y)}, 2)
        yield Figure(f"{method} bins, and one stump", best["fit"], "CPU-s", at_most=target)


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

    fit(slice(3000))  # so many that all kernels are compiled
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
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as child:
                extra = child.submit(extra_memory, learner, n_rows, n_columns).result()
            name = f"{learner}, {n_rows} x {n_columns}"
            yield Figure(f"{name}: peak extra", extra / 2**20, "MiB")
            ratio = extra / (n_rows * n_columns)
            yield Figure(f"{name}: relative to uint8 data", ratio, "x", at_most=target)


def measure_start(_: float) -> Figures:
    """Seconds from the start of a process to the end of a first fit of 150 x 4 samples."""
    codes = {
        "first fit, empty cache of numba": (FIRST_FIT, 8.0),
        "first fit, warm cache": (FIRST_FIT, 2.0),
        "import badacost": ("from badacost import BAdaCostClassifier", None),
        "import sklearn.ensemble": ("import sklearn.ensemble", None),
        "import numba": ("import numba", None),
    }
    runs: dict[str, list] = {name: [] for name in codes}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            for name, (code, _) in codes.items():
                runs[name].append(process_times(code, cache))
    for name, (_, target) in codes.items():
        wall, cpu = np.min(runs[name], axis=0)
        yield Figure(name, wall, "s", at_most=target)
        yield Figure(name, cpu, "CPU-s")
    ours, peers = (
        np.min(runs[f"import {name}"], axis=0)[1] for name in ("badacost", "sklearn.ensemble")
    )
    yield Figure("import badacost / import sklearn.ensemble", ours / peers, "x", at_most=1.5)


MEASUREMENTS = {
    "rounds": measure_rounds,
    "costboost": measure_costboost,
    "costboost_threads": measure_costboost_threads,
    "costboost_rows": measure_costboost_rows,
    "wide": measure_wide,
    "letter": measure_letter,
    "predict": measure_predict,
    "small": measure_small,
    "binning": measure_binning,
    "memory": measure_memory,
    "start": measure_start,
}


if __name__ == "__main__":
    run(__doc__.splitlines()[0], MEASUREMENTS, HERE / "results/classifier.json")
