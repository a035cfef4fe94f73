"""Rivals that are quick: for tests of which ones there are and how they are told of."""

from __future__ import annotations

import pytest

from badacost import CostBoostClassifier


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch) -> None:
    """Boosting without costs stops after a few rounds, and so does CostBoost."""
    monkeypatch.setattr("badacost.tabular.trials._MAX_ROUNDS", 5)
    monkeypatch.setitem(CostBoostClassifier.__init__.__kwdefaults__, "n_estimators", 10)
