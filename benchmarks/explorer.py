"""The cost explorer in Chromium: milliseconds from a typed price to the figures, and to all panels.

Times are those that the page measures itself, from the event to the end of its work: the figures
(averages, matrix, ways to decide) at once, then all (curve, changed rows and ranges too), which
waits for the next frame in between. Results go to results/explorer.json.

    python benchmarks/explorer.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from harness import Figure, Figures, run, scaled

from badacost.cost_report import CostExplorer

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.browser import browser  # noqa: E402

N_EDITS = 20
EDIT = """(async () => {{
  const input = document.getElementById("price-{i}-{j}");
  input.value = "{price}";
  performance.clearMeasures();
  input.dispatchEvent(new Event("input", {{ bubbles: true }}));
  input.dispatchEvent(new Event("change", {{ bubbles: true }}));
  const last = name => performance.getEntriesByName(name)[0];
  while (!last("explorer:all")) await new Promise(done => setTimeout(done, 5));
  return ["explorer:figures", "explorer:all"].map(name => last(name).duration);
}})()"""


def explorer(n_rows: int, n_classes: int, n_rivals: int) -> CostExplorer:
    """Synthetic rows with noisy probabilities."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=n_rows)

    def shares() -> np.ndarray:
        scores = rng.normal(size=(n_rows, n_classes)) + 2.5 * np.eye(n_classes)[truth]
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    costs = rng.uniform(1.0, 20.0, (n_classes, n_classes)).round(1) * (1.0 - np.eye(n_classes))
    probabilities = shares()
    return CostExplorer(
        [f"class {k}" for k in range(n_classes)],
        probabilities,
        costs,
        (probabilities @ costs).argmin(axis=1),
        truth,
        features={f"x{k}": rng.normal(size=n_rows) for k in range(12)},
        abstain=3.0,
        rivals={f"rival {k}": shares() for k in range(n_rivals)},
    )


def reaction(n_rows: int, n_classes: int, n_rivals: int, limit: float | None) -> Figures:
    """Type prices into a page, one after the other."""
    name = f"{n_rows} x {n_classes}, {n_rivals} rivals"
    rng = np.random.default_rng(1)
    with TemporaryDirectory() as folder, browser(Path(folder, "profile")) as tab:
        path, start = Path(folder, "page.html"), time.process_time()
        explorer(n_rows, n_classes, n_rivals).save(path)
        yield Figure(f"{name}: page written", time.process_time() - start, "CPU-s")
        yield Figure(f"{name}: size", path.stat().st_size / 2**20, "MiB")
        tab.look(1200)
        tab.open(path)
        times = []
        for _ in range(N_EDITS):
            i, j = rng.choice(n_classes, 2, replace=False)
            script = EDIT.format(i=i, j=j, price=round(rng.uniform(1.0, 40.0), 2))
            times.append(tab.evaluate(script))
    figures, all_panels = np.array(times).T
    yield Figure(f"{name}: figures, median", float(np.median(figures)), "ms", at_most=limit)
    yield Figure(f"{name}: figures, slowest", float(figures.max()), "ms", at_most=limit)
    yield Figure(f"{name}: all panels, median", float(np.median(all_panels)), "ms", at_most=limit)
    yield Figure(f"{name}: all panels, slowest", float(all_panels.max()), "ms")


def react(scale: float) -> Figures:
    """Reaction to a price: 10 000 rows x 10 classes within 100 ms; larger pages without target."""
    yield from reaction(scaled(10_000, scale), 10, 0, 100.0)
    yield from reaction(scaled(10_000, scale), 10, 2, 100.0)
    yield from reaction(scaled(20_000, scale), 20, 2, None)


if __name__ == "__main__":
    run(__doc__ or "", {"react": react}, HERE / "results" / "explorer.json")
