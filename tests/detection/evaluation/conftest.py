"""What the tests of evaluation share: a backend without windows, and no figure left open."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _no_open_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
