"""Quick rivals: what is asked here is how they are told of, not how good they are."""

from __future__ import annotations

import pytest

from badacost import CostBoostClassifier


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch) -> None:
    """Boosting without costs stops after a few rounds, and so does CostBoost."""
    monkeypatch.setattr("badacost.trials._MAX_ROUNDS", 5)
    monkeypatch.setitem(CostBoostClassifier.__init__.__kwdefaults__, "n_estimators", 10)
