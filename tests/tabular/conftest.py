"""Quick rivals: what is asked here is which ones there are, not how good they are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch) -> None:
    """Boosting without costs stops after a few rounds."""
    monkeypatch.setattr("badacost.trials._MAX_ROUNDS", 5)
