"""Models by name, and those that are worth a comparison."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import badacost
from badacost.cli import fit as command
from badacost.tabular import ALGORITHMS, TableClassifier, contenders, new_model
from tests.tabular.patients import COSTS, patients

FREE = {"low": {"mid": 0, "high": 2}, "mid": {"low": 0, "high": 1}, "high": {"low": 0, "mid": 1}}


def test_names() -> None:
    assert list(ALGORITHMS) == list(command.ALGORITHMS)
    for name, cls in ALGORITHMS.items():
        assert type(new_model(name, COSTS).estimator) is getattr(badacost, cls)
    with pytest.raises(ValueError, match="algorithm must be one of"):
        new_model("catboost", COSTS)


@pytest.mark.parametrize(
    ("name", "asked", "decision", "own"),
    [
        ("costboost", None, "own", None),
        ("badacost", None, "own", "bayes"),
        ("badacost", "margin", "own", "margin"),
        ("samme", None, "bayes", None),
        ("samme", "margin", "own", None),
        ("lp-csb", None, "own", None),
    ],
)
def test_decisions(name, asked, decision, own) -> None:
    model = new_model(name, COSTS, decision=asked, n_estimators=3)
    assert model.decision == decision
    assert model.estimator.n_estimators == 3
    assert own is None or model.estimator.decision == own


def test_decisions_that_cannot_be() -> None:
    assert new_model("badacost", FREE).estimator.decision == "margin"
    with pytest.raises(ValueError, match="minimum expected cost only"):
        new_model("costboost", COSTS, decision="margin")
    with pytest.raises(ValueError, match="needs probabilities"):
        new_model("lp-csb", COSTS, decision="bayes")


def test_contenders(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    models, not_installed = contenders(COSTS, n_jobs=1, random_state=0)
    assert list(models) == ["CostBoost", "BAdaCost", "SAMME", "LightGBM"]
    assert not_installed == ["catboost"]
    assert models["BAdaCost"].estimator.decision == "bayes"
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    models, not_installed = contenders(FREE)
    assert not_installed == ["lightgbm", "catboost"]
    assert models["BAdaCost"].estimator.decision == "margin"


@pytest.mark.parametrize("name", ["CostBoost", "BAdaCost", "SAMME", "LightGBM", "CatBoost"])
def test_a_file_holds_every_contender(name, tmp_path) -> None:
    if name == "CatBoost":
        pytest.importorskip("catboost")
    model = contenders(COSTS, n_jobs=1, random_state=0)[0][name]
    if name == "CatBoost":
        model.estimator.estimator.set_params(iterations=20)
    model.fit(patients(), "risk").save(tmp_path / "m.badacost")
    again, later = badacost.load(tmp_path / "m.badacost"), patients(60, seed=1)
    np.testing.assert_array_equal(again.predict(later), model.predict(later))
    np.testing.assert_array_equal(again.predict_proba(later), model.predict_proba(later))
    cheapest = (model.predict_proba(later) @ model.cost_matrix_).argmin(axis=1)
    np.testing.assert_array_equal(again.predict(later), model.classes_[cheapest])
    assert set(again.predict(later)) <= set(COSTS)


def test_a_file_holds_a_minimum_cost_classifier(tmp_path) -> None:
    booster = badacost.SAMMEClassifier(n_estimators=5, random_state=0)
    model = TableClassifier(badacost.MinimumCostClassifier(booster), cost_matrix=COSTS)
    model.fit(patients(), "risk").save(tmp_path / "m.badacost")
    again = badacost.load(tmp_path / "m.badacost")
    np.testing.assert_array_equal(again.predict(patients()), model.predict(patients()))
