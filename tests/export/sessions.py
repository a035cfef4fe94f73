"""Exported models in onnxruntime, and rows that are hard for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime

from badacost.tree.forest import Forest

N_ROWS = 4_000


def run(exported: Any, inputs: Any, n_threads: int = 1) -> dict[str, np.ndarray]:
    """Check an exported model, and return its outputs for a matrix or for columns."""
    onnx.checker.check_model(exported, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    given = inputs if isinstance(inputs, dict) else {"X": inputs}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True))


def hard_rows(forest: Forest, X: np.ndarray, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Rows of X with values on the thresholds, next to them on both sides, and missing ones."""
    rng = np.random.default_rng(seed)
    rows = X[rng.integers(len(X), size=N_ROWS)].astype(dtype)
    inner = np.flatnonzero(~forest.is_leaf & (abs(forest.threshold) < 1e30))
    for _ in range(3):  # cells of each row
        node = rng.choice(inner, N_ROWS)
        threshold = forest.threshold[node].astype(dtype)
        below, above = (np.nextafter(threshold, dtype(end)) for end in (-np.inf, np.inf))
        cells = np.stack([threshold, below, above, np.full_like(threshold, np.nan)])
        rows[np.arange(N_ROWS), forest.feature[node]] = cells[
            rng.integers(len(cells), size=N_ROWS), np.arange(N_ROWS)
        ]
    return rows


def assert_same_results(model: Any, got: dict[str, np.ndarray], X: Any) -> None:
    """Decisions and scores equal to the last bit, probabilities nearly."""
    expected = model.predict(X)
    np.testing.assert_array_equal(got["label"], expected)
    has_probabilities = hasattr(model, "predict_proba")
    assert ("probabilities" in got) == has_probabilities
    if hasattr(model, "cost_scores"):
        np.testing.assert_array_equal(got["scores"], model.cost_scores(X), strict=True)
    if has_probabilities:
        shares = model.predict_proba(X)
        np.testing.assert_allclose(got["probabilities"], shares, rtol=0, atol=1e-12, strict=True)
        costs = model.predict_costs(X)
        np.testing.assert_allclose(got["expected_costs"], costs, rtol=1e-12, atol=1e-12)
