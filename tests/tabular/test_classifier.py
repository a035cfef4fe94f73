"""Classifiers that take tables, and their files."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score

import badacost
from badacost import BAdaCostClassifier, ModelFileError, SAMMEClassifier
from badacost.io.model_file import read_model, saved_kind, write_model
from badacost.tabular import (
    CostSummary,
    TableClassifier,
    TableEncoder,
    read_table,
    write_table,
)
from tests.tabular.patients import COSTS, patients, small_model


class TestClassifier:
    def test_it_learns_under_the_costs(self) -> None:
        train, test = patients(400), patients(200, seed=1)
        model = small_model().fit(train, "risk")
        blind = TableClassifier(SAMMEClassifier(n_estimators=8, max_depth=2)).fit(train, "risk")
        costs = [
            badacost.metrics.average_cost(test["risk"], one.predict(test), COSTS)
            for one in (model, blind)
        ]
        assert costs[0] < costs[1]
        classes = ["low", "mid", "high"]  # in the order of the costs
        assert model.classes_.tolist() == classes
        expected = [[COSTS[i].get(j, 0) for j in classes] for i in classes]
        np.testing.assert_array_equal(model.cost_matrix_, expected)
        np.testing.assert_array_equal(model.estimator_.cost_matrix_, expected)

    def test_minimum_expected_cost_over_a_cost_blind_booster(self) -> None:
        booster = SAMMEClassifier(n_estimators=8, max_depth=2)
        model = TableClassifier(booster, cost_matrix=COSTS, decision="bayes")
        model.fit(patients(), "risk")
        cheapest = model.classes_[model.predict_costs(patients()).argmin(axis=1)]
        assert (model.predict(patients()) == cheapest).all()
        assert (model.predict(patients()) != model.estimator_.predict(
            model.encoder_.transform(patients()))).any()  # fmt: skip
        *_, last = model.staged_predict(patients())
        assert (last == cheapest).all()

    def test_the_price_of_being_right_is_kept_for_the_bill(self) -> None:
        costs = {truth: {**row, truth: 0.5} for truth, row in COSTS.items()}
        model = TableClassifier(BAdaCostClassifier(n_estimators=2), cost_matrix=costs)
        model.fit(patients(), "risk")
        assert (np.diag(model.cost_matrix_) == 0.5).all()
        assert (np.diag(model.regret_matrix_) == 0.0).all()

    def test_importances_are_of_columns(self) -> None:
        model = small_model().fit(patients(), "risk")
        assert model.feature_importances_.shape == model.feature_names_in_.shape
        assert model.feature_importances_.sum() == pytest.approx(1.0)

    def test_probabilities_where_there_are_some(self) -> None:
        model = small_model().fit(patients(), "risk")
        np.testing.assert_allclose(model.predict_proba(patients()).sum(axis=1), 1.0)
        assert model.predict_costs(patients()).shape == (120, 3)
        without = TableClassifier(badacost.AdaC2M1Classifier(n_estimators=2))
        assert not hasattr(without.fit(patients(), "risk"), "predict_proba")
        with pytest.raises(ValueError, match="needs probabilities"):
            without.set_params(decision="bayes").fit(patients(), "risk")

    def test_predictions_do_not_depend_on_other_rows_of_a_file(self, tmp_path) -> None:
        frame = patients().assign(code=lambda rows: np.resize(["01", "1e2", "X1"], len(rows)))
        write_table(frame, tmp_path / "all.csv")
        model = small_model().fit(read_table(tmp_path / "all.csv"), "risk")
        model.save(tmp_path / "m.badacost")
        model = badacost.load(tmp_path / "m.badacost")
        whole = model.predict_proba(read_table(tmp_path / "all.csv", like=model))
        for rows in ([4], [0, 3, 6], [1, 7, 10]):
            write_table(frame.iloc[rows], tmp_path / "some.csv")
            some = read_table(tmp_path / "some.csv", like=model)
            np.testing.assert_array_equal(model.predict_proba(some), whole[rows])

    def test_categories_that_only_other_rows_have_are_missing_values(self) -> None:
        """Encoded once, a table can be divided: a booster knows the categories of its own rows."""
        rng = np.random.default_rng(0)
        wards = rng.choice(["a", "b", "c", "d"], 400, p=[0.4, 0.3, 0.2, 0.1])
        frame = pd.DataFrame({"x": rng.normal(size=400), "ward": wards})
        y = (frame["x"] > 0) ^ (wards == "b")
        encoder = TableEncoder()
        features, train = encoder.fit_transform(frame), wards != "d"
        model = small_model(cost_matrix=None)._fit_features(
            encoder, features[train], y[train].to_numpy(), None, None
        )
        assert model.estimator_.categories_[1].tolist() == [0.0, 1.0, 2.0]
        missing = features.copy()
        missing[~train, 1] = np.nan
        answers = [model.estimator_.predict_proba(rows) for rows in (features, missing)]
        np.testing.assert_array_equal(*answers)

    @pytest.mark.parametrize(
        "estimator",
        [
            badacost.MinimumCostClassifier(SAMMEClassifier(n_estimators=5)),
            HistGradientBoostingClassifier(max_iter=5),
            CalibratedClassifierCV(SAMMEClassifier(n_estimators=5), cv=2),
        ],
    )
    def test_categories_are_handed_on(self, estimator) -> None:
        model = TableClassifier(estimator).fit(patients(), "risk")
        params = model.estimator_.get_params()
        masks = [params[name] for name in params if name.endswith("categorical_features")]
        assert masks == [[False, True, False, False, True]]
        assert model.predict(patients(10)).shape == (10,)
        again = clone(model).fit(patients()[["age", "seen", "risk"]], "risk")
        assert again.predict(patients(10)).shape == (10,)

    def test_scikit_learn_can_use_it(self) -> None:
        frame = patients()
        scores = cross_val_score(small_model(), frame.drop(columns="risk"), frame["risk"], cv=3)
        assert scores.mean() > 0.4
        assert clone(small_model(drop=["age"])).drop == ["age"]

    def test_of_a_fitted_classifier(self) -> None:
        frame = patients()[["age", "smokes"]].astype(float)
        booster = BAdaCostClassifier(COSTS, n_estimators=3).fit(frame, patients()["risk"])
        model = TableClassifier.of_fitted(booster)
        assert (model.predict(frame) == booster.predict(frame)).all()
        assert TableClassifier.of_fitted(model) is model
        assert booster.feature_names_in_.tolist() == ["age", "smokes"]
        nameless = SAMMEClassifier(n_estimators=1).fit(frame.to_numpy(), patients()["risk"])
        with pytest.raises(ValueError, match="does not know the names"):
            TableClassifier.of_fitted(nameless)

    def test_arrays_of_costs_follow_the_alphabet_with_a_warning(self) -> None:
        frame, costs = patients(), [[0, 9, 3], [2, 0, 1], [1, 4, 0]]  # of high, low, mid
        for booster in (SAMMEClassifier(n_estimators=2), BAdaCostClassifier(n_estimators=2)):
            model = TableClassifier(booster, cost_matrix=costs, decision="bayes")
            with pytest.warns(UserWarning, match="alphabetical order of the classes") as caught:
                model.fit(frame, "risk")
            assert len(caught) == 1
        frame["risk"] = pd.Categorical(frame["risk"], ["high", "low", "mid"], ordered=True)
        model.fit(frame, "risk")


class TestSavedModels:
    @pytest.fixture
    def model(self) -> TableClassifier:
        model = small_model().fit(patients(), "risk")
        truth = patients()["risk"]
        model.held_out_ = CostSummary.of(
            truth, model.predict(patients()), COSTS, classes=model.classes_,
            rivals={"perfect": truth}, how="by hand",
        )  # fmt: skip
        return model

    def test_round_trip(self, tmp_path, model) -> None:
        model.save(tmp_path / "m.badacost")
        again = badacost.load(tmp_path / "m.badacost")
        assert saved_kind(tmp_path / "m.badacost") == "TableClassifier"
        for method in ("predict", "predict_proba", "predict_costs", "decide"):
            new = patients(50, seed=3)
            np.testing.assert_array_equal(getattr(model, method)(new), getattr(again, method)(new))
        assert (again.target_name_, again.n_rows_) == ("risk", 120)
        assert again.held_out_ == model.held_out_
        assert again.encoder_.columns_ == model.encoder_.columns_
        np.testing.assert_array_equal(again.cost_matrix_, model.cost_matrix_)
        again.save(tmp_path / "again.badacost")
        one, two = ((tmp_path / name).read_bytes() for name in ("m.badacost", "again.badacost"))
        assert one == two

    def test_texts_that_stand_for_no_value_are_saved(self, tmp_path) -> None:
        frame = patients()
        frame["age"] = frame["age"].astype(object)
        frame.loc[7, "age"] = "unknown"
        small_model().fit(frame, "risk").save(tmp_path / "m.badacost")
        again = badacost.load(tmp_path / "m.badacost")
        assert again.predict(frame).shape == (120,)
        assert again.encoder_.columns_[0].missing == ("unknown",)

    def test_loading_needs_no_pandas(self, tmp_path, model, monkeypatch) -> None:
        model.save(tmp_path / "m.badacost")
        monkeypatch.setitem(sys.modules, "pandas", None)
        again = badacost.load(tmp_path / "m.badacost")
        with pytest.raises(ImportError, match=r"badacost\[tables\]"):
            again.predict(None)

    def test_a_classifier_of_others_is_not_saved(self, tmp_path) -> None:
        from sklearn.naive_bayes import GaussianNB

        frame = patients().fillna({"age": 50})[["age", "risk"]]
        model = TableClassifier(GaussianNB()).fit(frame, "risk")
        with pytest.raises(TypeError, match="cannot hold a GaussianNB"):
            model.save(tmp_path / "m.badacost")

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("columns",), []),
            (("columns",), {"age": 1}),
            (("columns", 0, "kind"), "eval"),
            (("columns", 0, "kind"), ["number"]),
            (("columns", 0, "name"), 3),
            (("columns", 0, "name"), "ward"),
            (("columns", 0, "levels"), ["a"]),
            (("columns", 1, "levels"), []),
            (("columns", 1, "levels"), [f"{k}" for k in range(256)]),
            (("columns", 1, "levels"), ["a", "a", "b"]),
            (("columns", 1, "levels"), "abc"),
            (("columns", 0, "missing"), "x"),
            (("columns", 0, "missing"), [1]),
            (("target",), 5),
            (("n_rows",), -1),
            (("n_rows",), "many"),
            (("decision",), "margin"),
            (("held_out",), {}),
            (("held_out", "average_cost"), "0"),
            (("held_out", "average_cost"), -1.0),
            (("held_out", "savings"), 2.0),
            (("held_out", "n_rows"), 0),
            (("held_out", "rivals"), {"a": None}),
            (("held_out", "rival_errors"), {"a": 1.0}),
            (("held_out", "standard_error"), -1.0),
            (("held_out", "how"), 5),
            (("held_out", "constant_answer"), None),
            (("estimator",), None),
            (("estimator", "kind"), "Detector"),
            (("estimator", "kind"), "TableClassifier"),
            (("estimator", "kind"), "os.system"),
            (("estimator", "kind"), {}),
            (("estimator", "header"), []),
            (("estimator", "header", "classes"), None),
        ],
    )
    def test_edited_headers_are_refused(self, tmp_path, model, path, value) -> None:
        model.save(tmp_path / "m.badacost")
        contents = read_model(tmp_path / "m.badacost")
        part = contents.header
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        write_model(tmp_path / "m.badacost", contents.kind, contents.header, contents.arrays)
        with pytest.raises(ModelFileError, match="cannot read the model file"):
            badacost.load(tmp_path / "m.badacost")

    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("charged_costs", None),
            ("charged_costs", np.ones((3, 3), np.int32)),
            ("charged_costs", np.ones((2, 2))),
            ("charged_costs", np.array([[0.0, 1, 1], [1, 0, np.nan], [1, 1, 0]])),
            ("estimator_forest_feature", None),
        ],
    )
    def test_edited_arrays_are_refused(self, tmp_path, model, name, array) -> None:
        model.save(tmp_path / "m.badacost")
        contents = read_model(tmp_path / "m.badacost")
        contents.arrays[name] = array
        kept = {key: value for key, value in contents.arrays.items() if value is not None}
        write_model(tmp_path / "m.badacost", contents.kind, contents.header, kept)
        with pytest.raises(ModelFileError, match="cannot read the model file"):
            badacost.load(tmp_path / "m.badacost")
