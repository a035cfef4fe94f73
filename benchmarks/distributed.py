"""A cluster of processes on this machine: weak scaling, the share of communication, and rivals.

The same number of rows for each worker, which has one thread: with two workers the work is twice as
much, and would take the same time if nothing were lost, and if cores were free: client and
scheduler need some as well. CPU seconds tell more on a busy machine. Beside badacost the Dask
modules of LightGBM and XGBoost on the same cluster and the same persisted arrays, with as many
rounds, leaves and bins; they grow a tree for each class in a round, badacost one for all of them.
Results go to results/distributed.json.

    python benchmarks/distributed.py
"""

# ruff: noqa: E402
from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if path != str(HERE)] + [str(HERE)]  # not our name, Dask's

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from harness import Figure, Figures, run, scaled

from badacost.distributed import DaskBAdaCostClassifier, DaskCostBoostClassifier

N_ROWS = 200_000  # for each worker
N_FEATURES, N_CLASSES, N_CHUNKS = 50, 3, 4
N_ROUNDS, DEPTH, N_BINS = 20, 5, 64
COSTS = [[0, 1, 5], [2, 0, 1], [10, 3, 0]]
N_WORKERS = (1, 2)


def block(number: int, n_rows: int) -> np.ndarray:
    """Rows of a chunk: features, and the class in the last column."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_rows, N_FEATURES + 1)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * np.sin(3.0 * X[:, 3])
    X[:, -1] = np.digitize(score + 0.3 * X[:, -1], [-0.7, 0.7])
    return X


def table(n_rows: int, n_workers: int) -> tuple[Any, Any]:
    """Persisted samples and classes, `N_CHUNKS` chunks for each worker."""
    n_chunks = N_CHUNKS * n_workers
    size = n_rows // N_CHUNKS
    rows = da.map_blocks(
        lambda block_info: block(block_info[None]["chunk-location"][0], size),
        chunks=((size,) * n_chunks, (N_FEATURES + 1,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )
    X, y = rows[:, :-1].persist(), rows[:, -1].astype(np.int8).persist()
    wait([X, y])
    return X, y


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    """Workers with one thread each."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=None,
            silence_logs=logging.ERROR,
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def rivals(client: Client) -> dict[str, Callable[[], Any]]:
    """The Dask estimators of others, and ours, with the same limits."""
    from lightgbm import DaskLGBMClassifier
    from xgboost.dask import DaskXGBClassifier

    common = {"n_estimators": N_ROUNDS, "max_depth": DEPTH, "learning_rate": 0.2}
    return {
        "BAdaCost": lambda: DaskBAdaCostClassifier(
            COSTS, **common, max_bins=N_BINS, random_state=0, client=client
        ),
        "CostBoost, one model": lambda: DaskCostBoostClassifier(
            COSTS, **common, n_folds=1, early_stopping=False, max_features=None, max_bins=N_BINS,
            random_state=0, client=client,
        ),
        "CostBoost, five folds": lambda: DaskCostBoostClassifier(
            COSTS, **common, early_stopping=False, max_bins=N_BINS, random_state=0, client=client
        ),
        "LightGBM": lambda: DaskLGBMClassifier(
            **common, num_leaves=2**DEPTH, max_bin=N_BINS, verbose=-1
        ),
        "XGBoost": lambda: DaskXGBClassifier(
            **common, max_bin=N_BINS, tree_method="hist"
        ),
    }  # fmt: skip


def weak_scaling(scale: float) -> Figures:
    """Seconds of a fit on one worker, and on two with twice as many rows."""
    seconds: dict[tuple[str, int], float] = {}
    work: dict[tuple[str, int], float] = {}  # of the busiest worker
    n_rows = scaled(N_ROWS, scale, 4000)
    yield Figure("rows for each worker", n_rows, "")
    for n_workers in N_WORKERS:
        with cluster(n_workers) as client, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, y = table(n_rows, n_workers)
            small = X.blocks[: len(N_WORKERS)], y.blocks[: len(N_WORKERS)]
            for name, make in rivals(client).items():
                make().fit(*small)  # compile, load
                model, before = make(), client.run(time.process_time)
                start, own = time.perf_counter(), time.process_time()
                model.fit(X, y)
                seconds[name, n_workers] = time.perf_counter() - start
                own = time.process_time() - own
                after = client.run(time.process_time)
                work[name, n_workers] = max(after[worker] - before[worker] for worker in after)
                workers = f"{n_workers} worker{'s' * (n_workers > 1)}"
                yield Figure(f"{name}, {workers}", seconds[name, n_workers], "s")
                yield Figure(f"{name}, {workers}: worker", work[name, n_workers], "CPU-s")
                yield Figure(f"{name}, {workers}: client, scheduler", own, "CPU-s")
                if hasattr(model, "cluster_seconds_"):
                    spent = model.cluster_seconds_
                    share = 100.0 * spent["communication"] / spent["fit"]
                    yield Figure(f"{name}, {workers}: communication", share, "% of the fit")
                    per_call = 1e3 * spent["communication"] / spent["n_calls"]
                    yield Figure(f"{name}, {workers}: communication", per_call, "ms a call")
                    yield Figure(f"{name}, {workers}: calls", spent["n_calls"], "")
    for name in dict.fromkeys(name for name, _ in seconds):
        for unit, spent in (("s", seconds), ("CPU-s of a worker", work)):
            efficiency = spent[name, 1] / spent[name, 2]
            yield Figure(f"{name}: weak scaling, 1 is ideal", efficiency, f"ratio of {unit}")


if __name__ == "__main__":
    run(
        "Training on a Dask cluster of processes.",
        {"weak_scaling": weak_scaling},
        HERE / "results" / "distributed.json",
    )
