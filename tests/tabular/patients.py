"""A table with a column of each kind, and a quick model for it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from badacost import BAdaCostClassifier
from badacost.tabular import TableClassifier

COSTS = {"low": {"mid": 1, "high": 2}, "mid": {"low": 4, "high": 1}, "high": {"low": 9, "mid": 3}}


def patients(n_rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """A table with a column of each kind; risk grows with age and in the north."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, n_rows).astype(float)
    ward = rng.choice(["north", "south", "west"], n_rows)
    smokes = rng.random(n_rows) < 0.4
    risk = age / 30 + (ward == "north") + smokes + rng.normal(0, 0.4, n_rows)
    age[::11] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "ward": ward,
            "smokes": smokes,
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n_rows), "D"),
            "street": rng.choice([f"street {k}" for k in range(15)], n_rows),
            "site": "Rome",
            "risk": np.array(["low", "mid", "high"])[np.digitize(risk, [2.0, 3.2])],
        }
    )


def small_model(**options) -> TableClassifier:
    booster = BAdaCostClassifier(n_estimators=8, max_depth=2, random_state=0)
    return TableClassifier(booster, **{"cost_matrix": COSTS} | options)
