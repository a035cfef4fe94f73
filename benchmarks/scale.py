"""Rows against seconds: a whole fit in one thread, in several, on a cluster of processes, on a GPU.

CostBoost with one model (``n_folds=1``), 20 rounds, 50 columns in single precision, 3 classes, from
arrays in memory to the fitted model, bins included; the best of two fits once compiled. Each way is
measured on the machine that has it, and added to results/scale.json; ``draw`` makes the picture
of the guide.

    python benchmarks/scale.py threads 1
    python benchmarks/scale.py threads 2
    python benchmarks/scale.py processes 2
    python benchmarks/scale.py cuda
    python benchmarks/scale.py draw
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path = [path for path in sys.path if path != str(HERE)]  # a script here is called distributed

import numpy as np

from badacost import CostBoostClassifier

RESULTS = HERE / "results/scale.json"
PICTURE = HERE.parent / "docs/images/scale.png"
N_FEATURES, N_ROUNDS = 50, 20
COSTS = [[0, 1, 5], [2, 0, 1], [10, 3, 0]]
SIZES = (10_000, 100_000, 1_000_000, 4_000_000)
N_CHUNKS = 8
SETTINGS: dict[str, Any] = {
    "n_folds": 1, "n_estimators": N_ROUNDS, "early_stopping": False, "random_state": 0,
}  # fmt: skip


def samples(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy classes of normal values."""
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * np.sin(3.0 * X[:, 3])
    return X, np.digitize(score + 0.3 * rng.standard_normal(n_rows), [-0.7, 0.7])


def best_of_two(fit: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        fit()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def local(n_rows: int, **settings: Any) -> float:
    """Seconds of a fit in this process, or on the GPU."""
    X, y = samples(n_rows)
    model = CostBoostClassifier(COSTS, **SETTINGS, **settings)
    model.fit(X[:5000], y[:5000])  # compiles
    return best_of_two(lambda: model.fit(X, y))


def processes(n_rows: int, n_workers: int) -> float:
    """Seconds of a fit on workers of one thread, whose memory the samples are in."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from badacost.distributed import DaskCostBoostClassifier

    X, y = samples(n_rows)
    rows = n_rows // N_CHUNKS
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        given = client.persist(
            [da.from_array(part, chunks=(rows, -1)[: part.ndim]) for part in (X, y)]
        )
        wait(given)
        few = [da.from_array(part[:5000], chunks=(2500, -1)[: part.ndim]) for part in (X, y)]
        model = DaskCostBoostClassifier(COSTS, client=client, **SETTINGS)
        model.fit(*few)  # compiles
        return best_of_two(lambda: model.fit(*given))


def measure(way: str, number: int, sizes: list[int]) -> tuple[str, dict[str, float]]:
    """Name of a way to fit, and its seconds by number of rows."""
    if way == "cuda":
        from badacost.backends.device import cuda_device

        properties = cuda_device().xp.cuda.runtime.getDeviceProperties(0)
        name = f"GPU ({properties['name'].decode()}, {os.cpu_count()} threads of its host)"
        fit = lambda n: local(n, device="cuda", n_jobs=-1)  # noqa: E731
    elif way == "threads":
        name = "1 thread" if number == 1 else f"{number} threads"
        fit = lambda n: local(n, n_jobs=number)  # noqa: E731
    else:
        name = f"{number} processes of a cluster"
        fit = lambda n: processes(n, number)  # noqa: E731
    seconds = {}
    for n_rows in sizes:
        seconds[str(n_rows)] = fit(n_rows)
        print(f"{name}: {n_rows:,} rows, {seconds[str(n_rows)]:.3f} s", flush=True)
    return name, seconds


def draw(measured: dict[str, dict[str, float]]) -> None:
    """Write the picture of the guide."""
    from badacost.plotting.base import DASHES, MARKERS, PALETTE, figure_and_axes

    figure, axes = figure_and_axes(None, 7.2, 4.2)
    for k, (name, seconds) in enumerate(measured.items()):
        rows = [int(n) for n in seconds]
        style = {"color": PALETTE[k], "marker": MARKERS[k], "linestyle": DASHES[k % len(DASHES)]}
        axes.plot(rows, list(seconds.values()), label=name, **style)
    axes.set(
        xscale="log", yscale="log", xlabel=f"rows of {N_FEATURES} columns",
        ylabel=f"seconds of a fit, {N_ROUNDS} rounds",
    )  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE, dpi=150)
    print(f"wrote {PICTURE}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["threads", "processes", "cuda", "draw"])
    parser.add_argument("number", type=int, nargs="?", default=1)
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    measured = json.loads(given.output.read_text()) if given.output.exists() else {}
    if given.way == "draw":
        draw(measured)
        return
    name, seconds = measure(given.way, given.number, given.rows)
    measured[name] = seconds
    given.output.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
