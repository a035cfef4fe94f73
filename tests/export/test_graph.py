"""Arithmetic on tensors, against numpy on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from badacost.export.graph import Graph, Tensor
from tests.export.sessions import run

X = np.random.default_rng(0).normal(size=(5, 4)).round(1)
WEIGHTS = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize("ml_opset", [3, 5])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: 1.0 - x * 3.0 / (2.0 + np.exp(-x)),
        lambda x: np.log(np.maximum(x, 0.5)) + np.minimum(2.0, x),
        lambda x: x @ WEIGHTS,
        lambda x: np.sort(x, axis=1),
        lambda x: x[:, 1:] - x[:, :1],
        lambda x: x / x.sum(axis=1, keepdims=True),
        lambda x: x - x.max(axis=1, keepdims=True),
        lambda x: np.sum(x, axis=1),
    ],
)
def test_operators_and_numpy(compute, ml_opset) -> None:
    graph = Graph("", ml_opset)
    result = compute(Tensor(graph, "X")).name
    expected = compute(X)
    model = graph.to_model("g", {"X": X[:0]}, {result: expected[:0]})
    np.testing.assert_allclose(run(model, X)[result], expected, rtol=1e-14, strict=True)


def test_other_functions_are_refused() -> None:
    tensor: Any = Tensor(Graph("", 5), "X")
    for function in (np.sin, np.median):
        with pytest.raises((KeyError, AttributeError)):
            function(tensor)
