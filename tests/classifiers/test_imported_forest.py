"""Trees of LightGBM and CatBoost: the same probabilities, costs, files, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import badacost
from badacost import ImportedForestClassifier, MinimumCostClassifier, ModelFileError
from badacost.classifiers.foreign_trees import _least_above
from badacost.explain import explain_decision, explain_scores
from badacost.io.model_file import read_model, write_model

lightgbm = pytest.importorskip("lightgbm")
X, Y = load_iris(return_X_y=True)
COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])
# scikit-learn's checks of its own estimators look at others, too.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")


def light(**options: Any) -> Any:
    given = {"n_estimators": 10, "num_leaves": 8, "min_child_samples": 5, "verbose": -1}
    return lightgbm.LGBMClassifier(**given | {"n_jobs": 1, "random_state": 0} | options)


def cat(**options: Any) -> Any:
    catboost = pytest.importorskip("catboost")
    given = {"iterations": 10, "depth": 3, "verbose": 0, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**given | {"thread_count": 1, "random_seed": 0} | options)


def with_gaps(values: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(values.shape) < share, np.nan, values)


def near_thresholds(model: ImportedForestClassifier, samples: np.ndarray) -> np.ndarray:
    """Samples moved onto thresholds of the trees, and next to them."""
    rng, forest, moved = np.random.default_rng(0), model.forest_, samples.copy()
    for node in np.flatnonzero(~forest.is_leaf & np.isfinite(forest.threshold))[:300]:
        threshold, row = forest.threshold[node], rng.integers(len(moved))
        beside = rng.choice([-np.inf, threshold, np.inf])
        moved[row, forest.feature[node]] = np.nextafter(threshold, beside)
    return moved


SETTINGS = {
    "LightGBM": lambda: light(),
    "LightGBM, zeros for missing values": lambda: light(use_missing=False),
    "LightGBM, dart": lambda: light(boosting_type="dart", class_weight="balanced"),
    "LightGBM, stumps": lambda: light(num_leaves=2),
    "CatBoost": lambda: cat(),
    "CatBoost, missing values are large": lambda: cat(nan_mode="Max"),
    "CatBoost, weights": lambda: cat(auto_class_weights="Balanced", depth=1),
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("load", "share"),
    [
        (load_iris, 0.0),
        (load_wine, 0.2),
        (load_breast_cancer, 0.0),
        (load_breast_cancer, 0.2),
        (load_digits, 0.2),
    ],
)
def test_probabilities_are_those_of_the_library(setting, load, share) -> None:
    samples, y = load(return_X_y=True)
    samples, y = with_gaps(samples, share)[::2], y[::2]
    estimator = SETTINGS[setting]().fit(samples, y)
    model = ImportedForestClassifier.of_fitted(estimator)
    rng = np.random.default_rng(1)
    other = with_gaps(samples, 0.3, 1) * rng.choice([-1.0, 0.0, 1.0, 1.1], samples.shape)
    for tried in (samples, other, near_thresholds(model, other)):
        np.testing.assert_allclose(
            model.predict_proba(tried), estimator.predict_proba(tried), rtol=0, atol=1e-9
        )


@settings(max_examples=200)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-2, 2))
def test_borders_in_single_precision(border, steps) -> None:
    """What is at or above the threshold, and nothing else, is rounded to above the border."""
    threshold = x = _least_above(border)
    for _ in range(abs(steps)):
        x = float(np.nextafter(x, np.copysign(np.inf, steps)))
    with np.errstate(over="ignore"):
        if np.isfinite(np.float32(x)):
            assert (x >= threshold) == (np.float32(x) > np.float32(border))


@pytest.mark.parametrize("make", [light, cat])
class TestClassifier:
    def test_costs_and_labels(self, make) -> None:
        names = np.array(["cat", "ant", "bee"], dtype=object)
        costs = {names[i]: {names[j]: COSTS[i, j] for j in range(3) if i != j} for i in range(3)}
        samples = X + np.random.default_rng(0).normal(0, 0.5, X.shape)
        model = ImportedForestClassifier(make(), costs).fit(samples, names[Y])
        assert model.classes_.tolist() == ["ant", "bee", "cat"]
        order = [1, 2, 0]
        np.testing.assert_array_equal(model.cost_matrix_, COSTS[np.ix_(order, order)])
        expected = model.predict_proba(samples) @ model.cost_matrix_
        np.testing.assert_array_equal(
            model.predict(samples), model.classes_[expected.argmin(axis=1)]
        )
        blind = ImportedForestClassifier(make()).fit(samples, names[Y])
        assert (blind.predict(samples) != model.predict(samples)).any()
        np.testing.assert_array_equal(blind.predict_proba(samples), model.predict_proba(samples))

    def test_the_price_of_being_right(self, make, tmp_path) -> None:
        charged = COSTS + np.array([[10.0], [11], [12]])
        model = ImportedForestClassifier(make(), charged).fit(X, Y)
        model.save(tmp_path / "model")
        for again in (model, badacost.load(tmp_path / "model")):
            expected = again.predict_proba(X) @ charged
            np.testing.assert_allclose(again.predict_costs(X), expected, rtol=1e-14)
            assert again.decide(X, abstain=10).mask.all()

    def test_weights(self, make) -> None:
        weight = np.arange(150) % 4.0
        model = ImportedForestClassifier(make()).fit(X, Y, weight)
        kept = weight > 0.0
        alone = make().fit(X[kept], Y[kept], sample_weight=weight[kept])
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-9)
        with pytest.raises(ValueError, match="class 1 has no sample of positive weight"):
            model.fit(X, Y, weight * (Y != 1))

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_files(self, make, n_classes, tmp_path) -> None:
        frame = pd.DataFrame(with_gaps(X, 0.1), columns=list("abcd"))
        kept = n_classes > Y
        model = ImportedForestClassifier(make(), COSTS[:n_classes, :n_classes])
        model.fit(frame[kept], Y[kept]).save(tmp_path / "one")
        again = badacost.load(tmp_path / "one")
        again.save(tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
        assert again.source_ == model.source_ in ("LightGBM", "CatBoost")
        assert again.feature_names_in_.tolist() == list("abcd")
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        with pytest.raises(ValueError, match="give an LGBMClassifier or a CatBoostClassifier"):
            again.fit(frame, Y)

    def test_files_that_were_altered(self, make, tmp_path) -> None:
        ImportedForestClassifier(make()).fit(X, Y).save(tmp_path / "model")
        for change in ({"log_prior": np.zeros(2)}, {"log_prior": np.array([0, 0, np.nan])}):
            contents = read_model(tmp_path / "model")
            arrays = contents.arrays | change
            write_model(tmp_path / "edited", contents.kind, contents.header, arrays)
            with pytest.raises(ModelFileError, match="prior"):
                badacost.load(tmp_path / "edited")
        header = contents.header | {"source": "magic"}
        write_model(tmp_path / "edited", contents.kind, header, contents.arrays)
        with pytest.raises(ModelFileError, match="its source must be one of"):
            badacost.load(tmp_path / "edited")

    def test_inside_a_minimum_cost_classifier(self, make, tmp_path) -> None:
        model = MinimumCostClassifier(
            ImportedForestClassifier(make()), COSTS, calibration="temperature", cv=3
        ).fit(X, Y)
        model.save(tmp_path / "model")
        again = badacost.load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))

    def test_importances_and_explanations(self, make) -> None:
        model = ImportedForestClassifier(make(), COSTS).fit(X, Y)
        assert model.feature_importances_.sum() == pytest.approx(1.0)
        assert model.feature_importances_[2:].sum() > 0.7
        explained = explain_decision(model, X[70])
        expected = model.predict_costs(X[70:71])[0]
        np.testing.assert_allclose(explained.expected_costs, expected)
        assert explained.base + explained.contributions.sum() == pytest.approx(explained.total)

    def test_clones_and_fits_that_fail(self, make) -> None:
        model = clone(ImportedForestClassifier(make(), COSTS)).fit(X, Y)
        before = model.predict_proba(X)
        with pytest.raises(ValueError, match="1 class only"):
            model.fit(X, np.zeros(150))
        np.testing.assert_array_equal(model.predict_proba(X), before)
        with pytest.raises(NotFittedError):
            ImportedForestClassifier.of_fitted(make())


@parametrize_with_checks(
    [ImportedForestClassifier(light(min_child_samples=1))],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "LightGBM counts samples, not weights"
    },
)
def test_estimator_checks(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("make", [light, cat])
def test_names_of_features_come_along(make) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    unnamed = ImportedForestClassifier.of_fitted(make().fit(X, Y))
    assert not hasattr(unnamed, "feature_names_in_")
    model = ImportedForestClassifier.of_fitted(make().fit(frame, Y))
    assert model.feature_names_in_.tolist() == list("abcd")
    model.predict(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("bacd")])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (lambda: light(objective="multiclassova"), "the objective 'multiclassova', which cannot"),
        (lambda: light(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5), "are averaged"),
        (lambda: light(linear_tree=True), "linear models in its leaves"),
        (lambda: light(zero_as_missing=True), "zeros that stand for missing values"),
        (lambda: cat(loss_function="MultiClassOneVsAll"), "the loss 'MultiClassOneVsAll'"),
        (lambda: cat(grow_policy="Depthwise"), "trees that are not symmetric"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_trees_that_are_not_understood(estimator, message) -> None:
    with pytest.raises(ValueError, match=message):
        ImportedForestClassifier(estimator()).fit(X, Y)


@pytest.mark.parametrize("make", [light, cat])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_categories_are_expanded_and_joined_again(make, share, tmp_path) -> None:
    rng = np.random.default_rng(0)
    towns = np.array([f"town {k:02}" for k in range(40)], dtype=object)
    codes = rng.integers(0, 40, 600)
    values = with_gaps(rng.normal(size=600), share)
    y = (codes * 7 % 3) * (rng.random(600) < 0.9)  # no order of the codes tells the class
    frame = pd.DataFrame({"x": values, "town": towns[codes], "z": rng.random(600) < 0.5})
    frame.loc[rng.random(600) < share, "town"] = None
    frame["town"] = frame["town"].astype("category")
    model = ImportedForestClassifier(make(), COSTS).fit(frame, y)
    assert (model.forest_.n_features, model.n_features_in_) == (3, 3)
    assert model.categories_["town"].tolist() == towns.tolist()
    assert model.feature_importances_.argmax() == 1
    marks = np.where(
        frame["town"].isna().to_numpy()[:, np.newaxis], np.nan, codes[:, None] == np.arange(40)
    )
    expanded = np.column_stack([frame["x"], marks, frame["z"]]).astype(float)
    other = make().fit(expanded, y)
    np.testing.assert_allclose(
        model.predict_proba(frame), other.predict_proba(expanded), atol=1e-12
    )
    later = pd.DataFrame({"x": [0.5, 0.5], "town": [None, "elsewhere"], "z": [True, True]})
    unknown = np.full((2, 42), np.nan)
    unknown[:, [0, 41]] = 0.5, 1.0
    np.testing.assert_allclose(model.predict_proba(later), other.predict_proba(unknown), atol=1e-12)
    model.save(tmp_path / "model")
    again = badacost.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    explained = explain_scores(model, frame)
    scores = explained.base_values + explained.values.sum(axis=1)
    np.testing.assert_allclose(
        scores, model.forest_.accumulate(model._columns.encode(frame).to_numpy(float))
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_categories_of_others() -> None:
    few = light(min_data_per_group=1, cat_smooth=1).fit(X.round(), Y, categorical_feature=[2])
    with pytest.raises(ValueError, match="tests of categories, which cannot be imported"):
        ImportedForestClassifier.of_fitted(few)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=Y.astype(str))
    with pytest.raises(ValueError, match="categorical features, which cannot be imported"):
        ImportedForestClassifier.of_fitted(cat(cat_features=["e"]).fit(frame, Y))


def test_threads_may_be_a_number_of_numpy() -> None:
    model = ImportedForestClassifier(light(), n_jobs=np.int64(2)).fit(X, Y)
    assert model.predict_proba(X).shape == (len(X), 3)


def test_arrays_of_costs_follow_the_alphabet_with_a_warning() -> None:
    names, costs = np.array(["mid", "low", "top"])[Y], [[0, 1, 5], [1, 0, 2], [10, 8, 0]]
    with pytest.warns(UserWarning, match="alphabetical order of the classes: 'low', 'mid', 'top'"):
        ImportedForestClassifier(light(), costs).fit(X, names)
    booster = light().fit(X, names)
    with pytest.warns(UserWarning, match="alphabetical order of the classes: 'low', 'mid', 'top'"):
        ImportedForestClassifier.of_fitted(booster, costs)
    grades = pd.Series(pd.Categorical(names, ["low", "mid", "top"], ordered=True))
    ImportedForestClassifier(light(), costs).fit(X, grades)


def test_other_classifiers() -> None:
    with pytest.raises(TypeError, match="the trees of a LogisticRegression cannot be imported"):
        ImportedForestClassifier(LogisticRegression()).fit(X, Y)
    with pytest.raises(TypeError, match="give an LGBMClassifier or a CatBoostClassifier"):
        ImportedForestClassifier.of_fitted(LogisticRegression(max_iter=1000).fit(X, Y))
    with pytest.raises(ValueError, match="estimator is None: give"):
        ImportedForestClassifier().fit(X, Y)


def test_files_of_the_other_libraries_name_the_remedy(tmp_path) -> None:
    model = MinimumCostClassifier(light(), COSTS).fit(X, Y)
    with pytest.raises(TypeError, match=r"put it into an ImportedForestClassifier"):
        model.save(tmp_path / "model")
