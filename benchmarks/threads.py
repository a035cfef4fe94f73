"""Rounds and whole fits by the number of threads, beside LightGBM and XGBoost in the same run.

A row is the wall time of a round, the difference between fits of 12 and of 2 rounds, and of the fit
of 2 rounds, bins and checks included; the best of two (of one on a single thread), on normal values
in single precision.
CostBoost has the size of its peers, 64 leaves, all features and 256 bins, or its defaults. With
``--before`` another checkout is measured in turn, each row in a process of its own. Rows are added
to results/threads.json.

    python benchmarks/threads.py --threads 1 4 8 16
    python benchmarks/threads.py --rows 100000 --before ../base
    python benchmarks/threads.py --small

The last one prints milliseconds of whole fits of small data, the best of five, with 16 threads on
whatever cores there are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results/threads.json"
N_FEATURES, N_CLASSES = 50, 5
FEW, MANY = 2, 12
LIKE_PEERS: dict[str, Any] = {"max_depth": 6, "max_features": None, "max_bins": 256}
Fit = Callable[[int], object]


def fits(name: str, X: np.ndarray, y: np.ndarray, n_threads: int) -> Fit:
    """A function that fits a number of rounds."""
    costs = np.random.default_rng(1).uniform(1, 9, (N_CLASSES, N_CLASSES))
    np.fill_diagonal(costs, 0.0)  # C[truth, prediction]
    if name == "LightGBM, 63 leaves":
        import lightgbm

        settings = {"objective": "multiclass", "num_class": N_CLASSES, "num_leaves": 63,
                    "max_bin": 255, "num_threads": n_threads, "verbose": -1}  # fmt: skip
        return lambda n: lightgbm.train(settings, lightgbm.Dataset(X, y), n)
    if name == "XGBoost, depth 6":
        import xgboost

        settings = {"objective": "multi:softprob", "num_class": N_CLASSES, "max_depth": 6,
                    "tree_method": "hist", "max_bin": 256, "nthread": n_threads}  # fmt: skip
        bins = {"nthread": n_threads, "max_bin": 256}
        return lambda n: xgboost.train(settings, xgboost.QuantileDMatrix(X, y, **bins), n)
    from badacost import BAdaCostClassifier, CostBoostClassifier

    common: dict[str, Any] = {"n_jobs": n_threads, "random_state": 0}
    if name == "BAdaCost, depth 6":
        common["max_depth"] = 6
        return lambda n: BAdaCostClassifier(costs, n_estimators=n, **common).fit(X, y)
    common |= {"early_stopping": False} | OURS[name]
    return lambda n: CostBoostClassifier(costs, n_estimators=n, **common).fit(X, y)


OURS: dict[str, dict[str, Any]] = {
    "CostBoost, 1 fold": {"n_folds": 1, **LIKE_PEERS},
    "CostBoost, 5 folds": {"n_folds": 5, **LIKE_PEERS},
    "CostBoost, defaults": {},
    "BAdaCost, depth 6": {},
}
PEERS = ("LightGBM, 63 leaves", "XGBoost, depth 6")


def samples(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    scores = 0.3 * X @ rng.normal(size=(N_FEATURES, N_CLASSES))
    return X, (scores + rng.gumbel(size=(n_rows, N_CLASSES))).argmax(axis=1)


def measure(name: str, n_rows: int, n_threads: int) -> dict[str, float]:
    """Milliseconds of a round, and seconds of a fit of few rounds, in this process."""
    warnings.simplefilter("ignore")  # of few rounds
    X, y = samples(n_rows)
    fits(name, X[:40_000], y[:40_000], n_threads)(FEW)  # compiles
    fit, best = fits(name, X, y, n_threads), {FEW: np.inf, MANY: np.inf}
    for _ in range(2 if n_threads > 1 else 1):
        for n in best:
            start = time.perf_counter()
            fit(n)
            best[n] = min(best[n], time.perf_counter() - start)
    return {"round_ms": 1e3 * (best[MANY] - best[FEW]) / (MANY - FEW), "fit_s": best[FEW]}


def small() -> None:
    """Print times of fits of 60 rounds on 20 features and 3 classes."""
    from badacost import BAdaCostClassifier, CostBoostClassifier

    warnings.simplefilter("ignore")  # of few rounds
    rng, costs = np.random.default_rng(0), [[0, 1, 5], [2, 0, 1], [10, 3, 0]]
    kinds = {"CostBoost": (CostBoostClassifier, {"early_stopping": False}),
             "BAdaCost": (BAdaCostClassifier, {})}  # fmt: skip
    for n_rows in (500, 2000, 10_000, 50_000):
        X = rng.normal(size=(n_rows, 20))
        score = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n_rows)
        y = np.digitize(score, [-0.5, 0.5])
        for name, (kind, settings) in kinds.items():
            best = dict.fromkeys((1, 2, 16), np.inf)
            for _ in range(5):
                for n_threads in best:
                    common = {"n_estimators": 60, "n_jobs": n_threads, "random_state": 0}
                    start = time.perf_counter()
                    kind(costs, **common, **settings).fit(X, y)
                    best[n_threads] = min(best[n_threads], time.perf_counter() - start)
            print(
                n_rows, name, {n: round(1e3 * seconds) for n, seconds in best.items()}, flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=[*OURS, *PEERS], default=[*OURS, *PEERS])
    parser.add_argument("--before", type=Path, help="another checkout, measured in turn")
    parser.add_argument("--small", action="store_true", help="whole fits of small data")
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.small:
        small()
        return
    if given.here:
        print(json.dumps(measure(given.here[0], given.rows, int(given.here[1]))))
        return
    checkouts = {"after": HERE.parent}
    if given.before is not None:
        checkouts = {"before": given.before.resolve()} | checkouts
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in given.only:
        for n_threads in given.threads:
            for label, checkout in checkouts.items():
                if name in PEERS and label == "before":
                    continue
                found = [os.environ.get("PYTHONPATH", "")]
                path = os.pathsep.join([str(checkout / "src"), *filter(None, found)])
                output = subprocess.run(
                    [sys.executable, __file__, "--rows", str(given.rows), "--here", name,
                     str(n_threads)],
                    env=os.environ | {"PYTHONPATH": path}, check=True, stdout=subprocess.PIPE,
                    text=True,
                ).stdout  # fmt: skip
                row = json.loads(output.splitlines()[-1])
                row = {"sources": label, "name": name, "rows": given.rows, "threads": n_threads} | {
                    key: round(value, 3) for key, value in row.items()
                }
                print(row, flush=True)
                known.append(row | {"cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")})
                RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
