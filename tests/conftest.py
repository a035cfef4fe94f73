"""What holds for all tests: where compiled code is kept, and no figure left behind."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Numba does not notice changes in what a compiled function calls in another file.
_SOURCES = sorted((Path(__file__).resolve().parents[1] / "src").rglob("*_kernels.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:12]
_CACHE = Path(__file__).resolve().parents[1] / ".pytest_cache" / "numba" / _DIGEST
os.environ.setdefault("NUMBA_CACHE_DIR", str(_CACHE))
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn skips one of its checks

settings.register_profile("badacost", deadline=None, derandomize=True)
settings.load_profile("badacost")


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """Leave no figure of a test to the next one, which may count them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
