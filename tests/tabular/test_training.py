"""Fitting models to tables: what is tried on which rows, what is chosen, and what is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from badacost import BAdaCostClassifier, CostBoostClassifier, SAMMEClassifier
from badacost._utils.validation import positions_in
from badacost.datasets import find_dataset
from badacost.tabular import CostSummary, TableClassifier, best_depth, fit_and_try, read_table
from badacost.tabular.trials import held_out_rows
from tests.tabular.patients import COSTS, patients, small_model

HGB = ["boosting without costs, most likely class", "boosting without costs, minimum expected cost"]
OWN = ["CostBoost, most likely class", "CostBoost, minimum expected cost"]


def test_cross_validation_of_a_small_table() -> None:
    said: list[str] = []
    model = fit_and_try(small_model(), patients(), "risk", announce=said.append)
    assert model.n_rows_ == model.held_out_.n_rows == 120
    assert list(model.held_out_.rivals) == HGB + OWN
    assert model.held_out_.how == "in 5-fold cross-validation"
    assert said == [
        "Measuring what decisions cost: 120 rows, in 5-fold cross-validation.",
        "Fitting to all 120 rows.",
    ]
    assert set(model.classes_) == set(COSTS)


def test_holding_out() -> None:
    model = fit_and_try(small_model(), patients(), "risk", holdout=0.2)
    assert model.n_rows_ == 120
    assert 20 <= model.held_out_.n_rows <= 28
    assert model.held_out_.how == "held out"
    first = fit_and_try(small_model(), patients(), "risk", holdout=0.2, refit=False)
    assert first.n_rows_ == 120 - first.held_out_.n_rows
    assert first.held_out_ == model.held_out_
    assert fit_and_try(small_model(), patients(), "risk", holdout=0.0).held_out_ is None
    with pytest.raises(ValueError, match="a share of the rows must be held out: give holdout"):
        fit_and_try(small_model(), patients(), "risk", refit=False)


def test_a_larger_table_has_rows_to_hold_out() -> None:
    model = fit_and_try(small_model(), patients(2100), "risk")
    assert model.held_out_.how == "held out"
    assert 410 <= model.held_out_.n_rows <= 430


def test_the_figures_are_those_of_decisions_by_other_fits() -> None:
    """The average cost by hand, from a model that is fitted to what was not held out."""
    frame = patients()
    first = fit_and_try(small_model(), frame, "risk", holdout=0.25, refit=False, random_state=3)
    kept = first.held_out_
    tried = held_out_rows(positions_in(first.classes_, frame["risk"]), 0.25, 3)
    answers = first.predict(frame[tried])
    paid = [
        COSTS[truth].get(answer, 0)
        for truth, answer in zip(frame["risk"][tried], answers, strict=True)
    ]
    assert kept.average_cost == pytest.approx(np.mean(paid))
    assert kept.n_rows == len(paid)


def test_a_class_of_one_row_stays_in_the_training() -> None:
    frame = patients()
    frame.loc[5, "risk"] = "odd"
    costs = {k: {**v, "odd": 1} for k, v in COSTS.items()} | {"odd": dict.fromkeys(COSTS, 1)}
    start = small_model().set_params(cost_matrix=costs)
    model = fit_and_try(start, frame, "risk")
    assert "odd" in model.classes_
    assert model.held_out_.absent == ["odd"]
    assert model.held_out_.rows == "119 rows, in 5-fold cross-validation, none of class 'odd'"


def test_what_a_column_holds_does_not_depend_on_the_rows_held_out() -> None:
    frame = patients()
    frame["age"] = frame["age"].astype(object)
    frame.loc[7, "age"] = "unknown"
    models = [
        fit_and_try(small_model(), frame, "risk", holdout=0.2, refit=False, random_state=seed)
        for seed in range(3)
    ]
    assert len({model.encoder_.columns_ for model in models}) == 1
    assert models[0].encoder_.columns_[0].missing == ("unknown",)
    frame.loc[50, "age"] = np.inf
    with pytest.raises(ValueError, match="got inf in row 51"):
        fit_and_try(small_model(), frame, "risk")


def test_lines_of_a_file_are_named_whatever_rows_are_left_out(tmp_path) -> None:
    frame = patients()
    frame.loc[50, "age"] = np.inf
    frame.to_csv(tmp_path / "t.csv", index=False)
    read = read_table(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"got '?inf'? in line 52"):
        small_model().fit(read[read["ward"] != "south"].iloc[5:], "risk")


def test_the_refit_has_the_rounds_of_early_stopping() -> None:
    booster = BAdaCostClassifier(
        n_estimators=60, max_depth=2, early_stopping=True, n_iter_no_change=2, random_state=0
    )
    start = TableClassifier(booster, cost_matrix=COSTS)
    first = fit_and_try(start, patients(), "risk", holdout=0.2, refit=False)
    last = fit_and_try(start, patients(), "risk", holdout=0.2)
    assert last.estimator_.n_estimators_ == first.estimator_.n_estimators_ < 60
    assert not last.estimator_.early_stopping


def test_too_few_rows() -> None:
    with pytest.raises(ValueError, match="too few to hold out"):
        fit_and_try(small_model(), patients(6), "risk", holdout=0.05)
    with pytest.raises(ValueError, match="no class has two rows"):
        fit_and_try(small_model(), patients().drop_duplicates("risk"), "risk")


def test_costs_of_model_and_estimator() -> None:
    """The estimator is trained under its own costs, decisions are charged at those of the model."""
    blind = {k: dict.fromkeys(v, 1) for k, v in COSTS.items()}
    booster = BAdaCostClassifier(blind, n_estimators=8, max_depth=2, random_state=0)
    both = fit_and_try(TableClassifier(booster, cost_matrix=COSTS), patients(), "risk", n_folds=2)
    alone = fit_and_try(TableClassifier(booster), patients(), "risk", n_folds=2)
    assert both.held_out_.error_rate == alone.held_out_.error_rate
    assert both.held_out_.average_cost > alone.held_out_.average_cost


class TestSeveral:
    def models(self, **others) -> dict[str, TableClassifier]:
        boosters = {
            "stump": BAdaCostClassifier(n_estimators=1, max_depth=1, random_state=0),
            "booster": BAdaCostClassifier(n_estimators=20, max_depth=2, decision="bayes"),
            **others,
        }
        return {
            name: TableClassifier(booster, cost_matrix=COSTS) for name, booster in boosters.items()
        }

    def test_the_cheapest_is_fitted_to_all_rows(self) -> None:
        said: list[str] = []
        model = fit_and_try(self.models(), patients(), "risk", n_folds=3, announce=said.append)
        assert said[1:] == ["booster is cheapest.", "Fitting to all 120 rows."]
        assert (model.estimator_.n_estimators, model.n_rows_) == (20, 120)
        assert model.held_out_.n_rows == 120
        assert list(model.held_out_.rivals) == ["stump", *HGB, *OWN]
        assert model.held_out_.rivals["stump"] > model.held_out_.average_cost

    def test_all_models_decide_on_the_same_parts(self) -> None:
        models = {"one": small_model(), "same": small_model()}
        model = fit_and_try(models, patients(), "risk", n_folds=2, random_state=4)
        assert model.held_out_.rivals["same"] == model.held_out_.average_cost
        assert model.held_out_.rival_errors["same"] == 0.0
        assert not model.held_out_.is_clear("same")
        weight = np.random.default_rng(0).integers(1, 4, 120)
        weighted = fit_and_try(models, patients(), "risk", n_folds=2, sample_weight=weight)
        assert weighted.held_out_.average_cost != model.held_out_.average_cost

    def test_costboost_is_no_rival_of_itself(self) -> None:
        models = self.models(CostBoost=CostBoostClassifier(n_estimators=5, random_state=0))
        del models["stump"]
        model = fit_and_try(models, patients(), "risk", depths=(1, 3), n_folds=2)
        assert len(model.held_out_.rivals) == 1 + len(HGB)

    def test_grades_are_charged_in_their_own_order(self) -> None:
        frame = patients()
        frame["risk"] = pd.Categorical(frame["risk"], ["low", "mid", "high"], ordered=True)
        model = fit_and_try(self.models(), frame, "risk", n_folds=2)
        assert model.classes_.tolist() == ["low", "mid", "high"]
        again = fit_and_try(self.models(), patients(), "risk", n_folds=2)
        assert model.held_out_.constant_cost == pytest.approx(again.held_out_.constant_cost)

    def test_rare_classes_are_decided(self) -> None:
        frame = patients()
        frame.loc[:1, "risk"] = "unclear"
        costs = {truth: prices | {"unclear": 2} for truth, prices in COSTS.items()}
        costs["unclear"] = {"low": 1, "mid": 1, "high": 1}
        models = {"one": TableClassifier(BAdaCostClassifier(n_estimators=2), cost_matrix=costs)}
        model = fit_and_try(models, frame, "risk", n_folds=3)
        assert (model.held_out_.n_rows, model.n_rows_) == (120, 120)
        assert not model.held_out_.absent

    @pytest.mark.parametrize(
        ("models", "message"),
        [
            ({}, "there are 0 models to compare: name 1 to 20"),
            (
                {"a": small_model(), "b": TableClassifier(SAMMEClassifier(n_estimators=2))},
                "different costs cannot be compared",
            ),
        ],
    )
    def test_refused(self, models, message) -> None:
        with pytest.raises(ValueError, match=message):
            fit_and_try(models, patients(), "risk", n_folds=2)
        with pytest.raises(ValueError, match="no model can be chosen"):
            fit_and_try(self.models(), patients(), "risk", holdout=0.0)


class TestBestDepth:
    def test_rare_classes_are_in_every_fit(self) -> None:
        table = pd.DataFrame({"a": np.arange(30.0), "target": ["x"] * 14 + ["y"] * 14 + ["z"] * 2})
        model = TableClassifier(BAdaCostClassifier(n_estimators=3))
        assert best_depth(model, table, "target", (2, 3)) == 2

    @pytest.mark.parametrize("seed", range(2))
    def test_rare_classes_are_in_the_sample_of_a_large_table(self, seed) -> None:
        n_rows = 25_000
        x = np.random.default_rng(0).normal(size=n_rows)
        table = pd.DataFrame({"x": x, "y": ["a"] * (n_rows - 2) + ["b"] * 2})
        costs = {"a": {"b": 1.0}, "b": {"a": 9.0}}
        model = TableClassifier(BAdaCostClassifier(costs, n_estimators=1))
        assert best_depth(model, table, "y", (1,), random_state=seed) == 1

    def test_is_used_for_the_fit(self) -> None:
        table = find_dataset("diabetes")
        said: list[str] = []
        booster = BAdaCostClassifier(table.example_costs(), n_estimators=10)
        model = fit_and_try(
            *(TableClassifier(booster), table.load(), table.target),
            n_folds=2, depths=(1, 8), announce=said.append,
        )  # fmt: skip
        assert model.estimator_.max_depth == 1
        assert "Trees of depth 1 are cheapest in cross-validation." in said

    def test_needs_trees(self) -> None:
        table = find_dataset("iris")
        model = TableClassifier(LogisticRegression())
        with pytest.raises(ValueError, match="has no max_depth"):
            best_depth(model, table.load(), table.target, (1,))


class TestSummary:
    def test_by_hand(self) -> None:
        costs = [[0, 1], [5, 0]]
        answers = {"always 1": [1, 1, 1, 1]}
        summary = CostSummary.of(
            [0, 0, 1, 1], [1, 0, 0, 1], costs, classes=[0, 1], rivals=answers, how="by hand"
        )
        paid, other = np.array([1.0, 0, 5, 0]), np.array([1.0, 1, 0, 0])
        assert summary == CostSummary(
            4, 1.5, 6.0, 0.5, "1", 0.5, -2.0,
            pytest.approx(paid.std() / 2), {"always 1": 0.5},
            {"always 1": pytest.approx((paid - other).std() / 2)}, "by hand",
        )  # fmt: skip
        weighted = CostSummary.of(
            [0, 0, 1, 1], [1, 0, 0, 1], costs, classes=[0, 1], sample_weight=[1, 1, 0, 2]
        )
        assert weighted.average_cost == 0.25

    def test_what_is_clear(self) -> None:
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 2, 400)
        noisy = np.where(rng.random(400) < 0.1, 1 - truth, truth)
        rivals = {"worse": 1 - truth, "like it": np.where(rng.random(400) < 0.1, 1 - truth, truth)}
        summary = CostSummary.of(truth, noisy, [[0, 1], [2, 0]], classes=[0, 1], rivals=rivals)
        assert summary.is_clear("worse")
        assert not summary.is_clear("like it")


def test_classes_keep_the_order_of_the_costs() -> None:
    costs = {name: COSTS[name] for name in ("mid", "low", "high")}
    frame = patients()
    model = small_model().set_params(cost_matrix=costs)
    for fitted in (model.fit(frame, "risk"), fit_and_try(model, frame, "risk", n_folds=2)):
        assert fitted.classes_.tolist() == ["mid", "low", "high"]
        np.testing.assert_array_equal(fitted.cost_matrix_[0], [0, 4, 1])
    frame["risk"] = pd.Categorical(frame["risk"], ["low", "mid", "high"], ordered=True)
    assert model.fit(frame, "risk").classes_.tolist() == ["low", "mid", "high"]
