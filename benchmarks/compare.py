"""Speed of this checkout beside another one: fits and predictions that users wait for.

Each repetition measures all rows in a new process for each checkout, the two in turn; a row is the
smallest CPU time of one thread over all repetitions. Results go to results/compare.json, and the
table to results/compare.md, which docs/results/startup.md includes.

    python benchmarks/compare.py --before ../base --repetitions 5
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from classifier import LIKE_PEERS, fit_costboost, gaussian_classes, round_times
from harness import best_times, circumstances
from threadpoolctl import threadpool_limits

from badacost import BAdaCostClassifier, CostBoostClassifier

HERE = Path(__file__).resolve().parent
RESULTS, TABLE = HERE / "results/compare.json", HERE / "results/compare.md"
Row = tuple[str, float]  # name, CPU milliseconds


def rounds() -> Iterator[Row]:
    """A round on 50 000 x 50 samples."""
    for n_classes in (5, 26, 100):
        X, y = gaussian_classes(50_000, 50, n_classes, 0.5)

        def badacost(n: int, X: Any = X, y: Any = y, **settings: Any) -> object:
            return BAdaCostClassifier(n_estimators=n, max_depth=6, **settings).fit(X, y)

        costboost = partial(fit_costboost, X, y, 1)
        fits: dict[str, tuple[Callable[[int], object], int, int]] = {
            "BAdaCost, depth 6": (badacost, 2, 12),
            "CostBoost, defaults": (costboost, 2, 12),
            "CostBoost, depth 6, 256 bins": (partial(costboost, **LIKE_PEERS), 2, 12),
        }
        if n_classes == 5:
            best = LIKE_PEERS | {"tree": "best", "max_depth": None}
            fits["CostBoost, best leaf first"] = partial(costboost, **best), 2, 12
            some = {"subsample": 0.5, "min_samples_leaf": 20}
            fits["BAdaCost, half of the samples"] = partial(badacost, **some), 2, 12
        for fit, few, _ in fits.values():
            fit(few)  # compiles the kernels
        for name, seconds in round_times(fits, 3).items():
            yield f"round of {name}, K = {n_classes}", 1e3 * seconds


def whole_fits() -> Iterator[Row]:
    """Whole fits, of small and of wide data."""
    small = gaussian_classes(150, 4, 3, 1.0)
    medium = gaussian_classes(2000, 20, 4, 0.5)
    wide = gaussian_classes(5000, 2000, 21, 0.85)
    stump = {"n_estimators": 1, "max_depth": 1, "max_features": 1, "random_state": 0}
    work = {
        "BAdaCost, 150 x 4, 100 stumps": partial(
            BAdaCostClassifier(max_depth=1, learning_rate=0.01).fit, *small
        ),
        "BAdaCost, 150 x 4, 100 trees of depth 6": partial(
            BAdaCostClassifier(max_depth=6, learning_rate=0.01).fit, *small
        ),
        "CostBoost, 150 x 4, defaults": partial(CostBoostClassifier(random_state=0).fit, *small),
        "CostBoost, 2000 x 20, defaults": partial(CostBoostClassifier(random_state=0).fit, *medium),
        "equal bins and a stump, 5000 x 2000": partial(
            BAdaCostClassifier(binning="uniform", **stump).fit, *wide
        ),
        "quantile bins and a stump, 5000 x 2000": partial(BAdaCostClassifier(**stump).fit, *wide),
        "BAdaCost, 5000 x 2000, 5 trees of depth 9": partial(
            BAdaCostClassifier(
                n_estimators=5, max_depth=9, max_features=1 / 16, random_state=0
            ).fit,
            *wide,
        ),
    }
    yield from ((name, 1e3 * seconds) for name, seconds in best_times(work, 4).items())


def predictions() -> Iterator[Row]:
    """Predictions of models of 50 trees of depth 6."""
    for n_classes in (5, 26):
        X, y = gaussian_classes(50_000, 50, n_classes, 0.5)
        model = BAdaCostClassifier(n_estimators=50, max_depth=6).fit(X, y)
        row = X[:1].copy()
        work = {
            f"predict 50 000 rows, K = {n_classes}": partial(model.predict, X),
            f"predict one row 500 times, K = {n_classes}": lambda: [
                model.predict(row)  # noqa: B023
                for _ in range(500)
            ],
        }
        yield from ((name, 1e3 * seconds) for name, seconds in best_times(work, 5).items())


def measure(checkout: Path) -> dict[str, float]:
    """Rows of a checkout, measured in a new process."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(checkout / "src"), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }
    output = subprocess.run(
        [sys.executable, __file__, "--here"],
        env=environment, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout, measured in turn")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        with threadpool_limits(1):
            rows = dict(row for part in (rounds, whole_fits, predictions) for row in part())
        print(json.dumps(rows))
        return
    if given.before is None:
        parser.error("give --before, the checkout to compare with")
    checkouts = {"before": given.before.resolve(), "after": HERE.parent}
    known = circumstances(1.0, ("scipy", "llvmlite"))
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for number in range(given.repetitions):
        for name, checkout in checkouts.items():
            runs[name].append(measure(checkout))
        print(f"repetition {number + 1} of {given.repetitions}", flush=True)
    best = {name: {row: min(run[row] for run in found) for row in found[0]}
            for name, found in runs.items()}  # fmt: skip
    lines = ["| CPU milliseconds | before | after | ratio |", "| --- | ---: | ---: | ---: |"]
    for row, before in best["before"].items():
        after = best["after"][row]
        lines.append(f"| {row} | {before:.4g} | {after:.4g} | {after / before:.2f} |")
    text = (
        f"Smallest of {given.repetitions} repetitions, {known['date']}, {known['cores']} cores of "
        f"{known['cpu']}, load {known['load_before']:.1f} at the start; Python {known['python']}, "
        f"numba {known['numba']}.\n\n" + "\n".join(lines) + "\n"
    )
    print(text)
    RESULTS.write_text(json.dumps({**known, "best": best, "runs": runs}, indent=1) + "\n")
    TABLE.write_text(text)


if __name__ == "__main__":
    main()
