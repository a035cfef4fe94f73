"""What is missing is named; functions of single numbers have the bits of the CPU."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from badacost._utils import portable_kernels
from badacost.backends.device import cuda_device, typed_argument
from tests.backends.on_cpu import OnCpu, needs_compiler


def test_without_cupy(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"pip install \"badacost\[gpu\]\""):
        cuda_device()


@pytest.mark.filterwarnings("ignore")
def test_without_a_device(monkeypatch) -> None:
    cupy = pytest.importorskip("cupy")
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 0)
    with pytest.raises(RuntimeError, match=r'needs a CUDA device.*use device="cpu"'):
        cuda_device()


def test_numbers_have_the_types_of_kernels() -> None:
    kinds = [type(typed_argument(number)) for number in (3, np.uint8(3), 0.5, np.float32(1), True)]
    assert kinds == [np.int64, np.int64, np.float64, np.float64, np.bool_]


@needs_compiler
@pytest.mark.parametrize("name", ["exp_of", "log_of"])
def test_functions_of_numbers(name) -> None:
    rng = np.random.default_rng(0)
    values = np.r_[rng.uniform(-750.0, 715.0, 3000), rng.normal(size=500) * 1e-9, np.inf, -np.inf]
    if name == "log_of":
        values = np.r_[np.abs(values), np.exp2(rng.uniform(-1074.0, 1024.0, 3000)), 0.0]
    expected, found = np.empty(len(values)), np.empty(len(values))
    getattr(portable_kernels, name)(values, expected)
    OnCpu().launch(
        "backends/elementwise", name, -(-len(values) // 256), 256, values, found, len(values)
    )
    assert found.tobytes() == expected.tobytes()
