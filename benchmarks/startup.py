"""Cold starts: seconds of imports, first fits and first predictions, and how much is compiled.

Each repetition starts three processes, one after the other, with a cache folder of their own: one
that finds it empty and compiles, the same again that finds everything compiled, and one with an
empty folder that only loads a model from a file and predicts. ``--before`` measures another
checkout in turn with this one; the repetitions are then written to results/startup.json, and the
table of their medians to results/startup.md, which docs/results/startup.md includes.

    python benchmarks/startup.py
    python benchmarks/startup.py --before ../base --repetitions 5
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS, TABLE = HERE / "results/startup.json", HERE / "results/startup.md"
COSTS = [[0, 1, 5], [2, 0, 1], [10, 3, 0]]
N_ROWS, N_ROUNDS = 600, 5
Seconds = dict[str, dict[str, float]]
STEPS = {
    "sklearn": "import what estimators need of scikit-learn",
    "import": "import badacost, after that",
    "CostBoost": "first CostBoost fit",
    "predict": "predict after it",
    "BAdaCost": "BAdaCost fit after these",
    "category": "CostBoost fit with a column of categories after these",
    "best": 'CostBoost fit with tree="best" after these',
    "load": "badacost.load and predict in a process of its own",
}
PASSES = {"cold": "nothing compiled", "warm": "all compiled"}


class Clock:
    """CPU and wall seconds of steps of this process, and the number of functions they compile."""

    def __init__(self) -> None:
        self.steps: Seconds = {}
        self.count: Callable[[], int] = lambda: 0

    def measure(self, step: str, work: Callable[[], Any]) -> Any:
        before, cpu, wall = self.count(), time.process_time(), time.perf_counter()
        result = work()
        self.steps[step] = {
            "CPU": time.process_time() - cpu,
            "wall": time.perf_counter() - wall,
            "compiled": self.count() - before,
        }
        return result


def import_sklearn() -> None:
    import sklearn.base
    import sklearn.utils.metaestimators
    import sklearn.utils.multiclass
    import sklearn.utils.validation  # noqa: F401


def import_badacost() -> None:
    import badacost

    _ = badacost.CostBoostClassifier, badacost.BAdaCostClassifier  # which are imported when used


def start(model_file: str, *, fits: bool) -> Seconds:
    """Measure the steps in this process."""
    clock = Clock()
    clock.measure("sklearn", import_sklearn)
    clock.measure("import", import_badacost)
    import numpy as np
    from numba.core import event

    recorder = event.RecordingListener()
    event.register("numba:compile", recorder)
    clock.count = lambda: sum(happened.is_start for _, happened in recorder.buffer)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N_ROWS), [-0.5, 0.5])
    warnings.simplefilter("ignore")  # of few rounds
    import badacost

    if not fits:
        clock.measure("load", lambda: badacost.load(model_file).predict(X))
        return clock.steps
    settings: dict[str, Any] = {"n_estimators": N_ROUNDS, "random_state": 0}
    costboost, badacost_ = badacost.CostBoostClassifier, badacost.BAdaCostClassifier
    model = clock.measure("CostBoost", lambda: costboost(COSTS, **settings).fit(X, y))
    clock.measure("predict", lambda: model.predict(X))
    clock.measure("BAdaCost", lambda: badacost_(COSTS, **settings).fit(X, y))
    X[:, 5] = rng.integers(5, size=N_ROWS)
    categorical = costboost(COSTS, categorical_features=[5], **settings)
    clock.measure("category", lambda: categorical.fit(X, y))
    clock.measure("best", lambda: costboost(COSTS, tree="best", **settings).fit(X, y))
    model.save(model_file)
    return clock.steps


def repetition(checkout: Path) -> dict[str, Seconds]:
    """Measure the three processes of a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        model_file = str(Path(folder, "model.badacost"))

        def process(cache: str, task: str) -> Seconds:
            environment = {
                **os.environ,
                "PYTHONPATH": str(checkout / "src"),
                "NUMBA_CACHE_DIR": str(Path(folder, cache)),
            }
            command = [sys.executable, __file__, "--task", task, "--model", model_file]
            output = subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout
            steps: Seconds = json.loads(output.splitlines()[-1])
            return steps

        cold, warm = process("fits", "fit"), process("fits", "fit")
        loads = [process(cache, "load")["load"] for cache in ("load", "load")]
    return {"cold": {**cold, "load": loads[0]}, "warm": {**warm, "load": loads[1]}}


def medians(repetitions: list[dict[str, Seconds]]) -> dict[str, Seconds]:
    return {
        which: {
            step: {
                unit: median(run[which][step][unit] for run in repetitions)
                for unit in repetitions[0][which][step]
            }
            for step in STEPS
        }
        for which in PASSES
    }


def table(measured: dict[str, dict[str, Seconds]]) -> str:
    """A table in Markdown: CPU seconds, wall seconds in brackets, and numbers of functions."""

    def cell(seconds: dict[str, float]) -> str:
        return f"{seconds['CPU']:.2f} ({seconds['wall']:.2f})"

    lines = []
    for which, title in PASSES.items():
        functions = [f"functions compiled, {name}" for name in measured] if which == "cold" else []
        header = [f"{title}: CPU seconds (wall)", *measured, *functions]
        lines += [" | ".join(header), " | ".join(["---", *["---:"] * (len(header) - 1)])]
        for step, name in STEPS.items():
            found = [given[which][step] for given in measured.values()]
            counts = [f"{one['compiled']:.0f}" for one in found] if functions else []
            lines.append(" | ".join([name, *map(cell, found), *counts]))
        lines.append("")
    return "\n".join(f"| {line} |" if line else "" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout, measured in turn")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--task", choices=["fit", "load"], help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task is not None:
        print(json.dumps(start(given.model, fits=given.task == "fit")))
        return
    from harness import circumstances  # imports badacost

    checkouts = {"after": HERE.parent}
    if given.before is not None:
        checkouts = {"before": given.before.resolve(), **checkouts}
    known = circumstances(1.0, ("scipy", "llvmlite"))
    runs: dict[str, list[dict[str, Seconds]]] = {name: [] for name in checkouts}
    for number in range(given.repetitions):
        for name, checkout in checkouts.items():
            runs[name].append(repetition(checkout))
            first = runs[name][-1]["cold"]["CostBoost"]
            print(f"{number + 1} {name}: first fit {first['CPU']:.1f} CPU seconds", flush=True)
    measured = {name: medians(found) for name, found in runs.items()}
    text = (
        f"Medians of {given.repetitions}, {known['date']}, {known['cores']} cores of "
        f"{known['cpu']}, load {known['load_before']:.1f} at the start; Python {known['python']}, "
        f"numba {known['numba']}.\n\n{table(measured)}"
    )
    print(text)
    if given.before is not None:
        result = {**known, "medians": measured, "runs": runs}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
        TABLE.write_text(text)


if __name__ == "__main__":
    main()
