"""What holds for all tests: where compiled code is kept, and no figure left behind."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

_CACHE = Path(__file__).resolve().parents[1] / ".pytest_cache" / "numba"
os.environ.setdefault("NUMBA_CACHE_DIR", str(_CACHE))
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn skips one of its checks
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of others; several processes share the cores

# HYPOTHESIS_PROFILE=thorough tries more examples, as CI does.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("thorough", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

gc.disable()  # until all tests are found
with suppress(ImportError):  # without a command line, other tests run
    from typer import testing

    testing._get_command = cache(testing._get_command)  # takes longer than most commands


def pytest_collection_finish() -> None:
    """Look for garbage now and then; not `gc.freeze`, which hides objects from Hypothesis."""
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """Leave no figure of a test to the next one, which may count them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
