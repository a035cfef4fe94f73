"""Exported models in onnxruntime against this library: decisions for rows, in one thread each.

CPU seconds, the best of several runs in turn, for whole batches and for single rows. The decisions
of both are compared in the same run. Results go to results/export.json.

    python benchmarks/export.py
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from harness import Figure, Figures, best_times, run, scaled

from badacost import BAdaCostClassifier, CostBoostClassifier
from badacost.export import to_onnx

HERE = Path(__file__).resolve().parent
N_COLUMNS, N_CLASSES = 50, 5
N_SINGLE = 200  # rows that are decided one by one


def samples(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, and a twentieth of the values missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n_rows)
    centres = np.random.default_rng(1).normal(size=(N_CLASSES, N_COLUMNS))
    X = rng.normal(size=(n_rows, N_COLUMNS)) + 0.5 * centres[y]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def session_of(exported: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def compare(name: str, model: Any, scale: float) -> Figures:
    """Decisions of a fitted model and of its exported twins."""
    X, _ = samples(scaled(100_000, scale), seed=2)
    start = time.process_time()
    exported = {"TreeEnsemble": to_onnx(model), "TreeEnsembleRegressor": to_onnx(model, ml_opset=3)}
    yield Figure(f"{name}: trees", float(model.forest_.n_trees), "")
    yield Figure(f"{name}: two exports", time.process_time() - start, "CPU-s")
    size = exported["TreeEnsemble"].ByteSize() / 2**20
    yield Figure(f"{name}: size", size, "MiB")
    sessions = {kind: session_of(made) for kind, made in exported.items()}
    for kind, session in sessions.items():
        (labels,) = session.run(["label"], {"X": X})
        different = float((labels != model.predict(X)).sum())
        yield Figure(f"{name}: other decisions, {kind}", different, "rows", at_most=0.0)
    for what, rows, repeats in (("batch", [X], 5), ("row by row", [*X[:N_SINGLE, None]], 5)):
        contenders: dict[str, Any] = {
            "badacost": lambda rows=rows: [model.predict(part) for part in rows],
        }
        for kind, session in sessions.items():
            contenders[kind] = lambda rows=rows, session=session: [
                session.run(["label"], {"X": part}) for part in rows
            ]
        n_rows = sum(map(len, rows))
        best = best_times(contenders, repeats)
        for kind, seconds in best.items():
            yield Figure(f"{name}: {what}, {kind}", 1e6 * seconds / n_rows, "CPU-us/row")
        ratio = best["TreeEnsemble"] / best["badacost"]
        yield Figure(f"{name}: {what}, TreeEnsemble / badacost", ratio, "")


def predict(scale: float) -> Figures:
    """Decisions: 100 000 rows x 50 columns, 5 classes, in one batch, and row by row."""
    X, y = samples(scaled(20_000, scale))
    rng = np.random.default_rng(3)
    costs = rng.integers(1, 10, (N_CLASSES, N_CLASSES)) * (1.0 - np.eye(N_CLASSES))
    booster = BAdaCostClassifier(costs, n_estimators=100, max_depth=6)
    yield from compare("BAdaCost, 100 rounds", booster.fit(X, y), scale)
    booster = CostBoostClassifier(costs, n_estimators=100, early_stopping=False, random_state=0)
    yield from compare("CostBoost, 100 rounds", booster.fit(X, y), scale)


if __name__ == "__main__":
    run(
        __doc__ or "",
        {"predict": predict},
        HERE / "results" / "export.json",
        ("onnx", "onnxruntime"),
    )
