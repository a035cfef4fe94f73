"""A device for ``device="cuda"`` in tests: the GPU if there is one, or the sources on the CPU."""

from __future__ import annotations

import pytest

from badacost.backends.device import cuda_device
from tests.backends.on_cpu import OnCpu

_USERS = (
    "badacost.detection.cuda_backend",
    "badacost.detection.detector",
    "badacost.detection.training.samples",
    "badacost.backends.device",
)


def real_device():
    """The GPU; the test is skipped where there is none."""
    try:
        return cuda_device()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no GPU: {error}")


def pretend_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``device="cuda"`` of detectors run on the CPU."""
    for name in _USERS:
        monkeypatch.setattr(f"{name}.cuda_device", OnCpu)
