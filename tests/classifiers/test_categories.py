"""Categorical features of the classifiers, from data frames to model files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder

import badacost
from badacost import BAdaCostClassifier, CostSensitiveTreeClassifier, MinimumCostClassifier
from badacost.costs import zero_one_costs
from badacost.io.model_file import ModelFileError, read_model, write_model
from tests.forests import assert_same_forest

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 7, 0]])
TOWNS = ["Ayr", "Bath", "Cork", "Deal", "Ely", "Fife", "Goole"]


def make_frame(seed: int, n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Classes that depend on a set of towns, on a number and on a set of grades."""
    rng = np.random.default_rng(seed)
    town, grade = rng.choice(TOWNS, n), rng.integers(0, 9, n)
    frame = pd.DataFrame(
        {"town": pd.Categorical(town), "size": rng.normal(size=n), "grade": pd.Categorical(grade)}
    )
    y = np.isin(town, ["Bath", "Deal", "Goole"]) + (
        np.isin(grade, [1, 4, 7, 8]) & (frame["size"].to_numpy() > 0)
    )
    y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)
    frame.loc[rng.random(n) < 0.1, "town"] = None
    return frame, y


FRAME, Y = make_frame(0)
NEW, _ = make_frame(1)


def boost(costs: Any = COSTS, **parameters: Any) -> BAdaCostClassifier:
    defaults = {"n_estimators": 6, "max_depth": 3, "random_state": 0}
    return BAdaCostClassifier(costs, **defaults | parameters)


def as_numbers(frame: pd.DataFrame) -> np.ndarray:
    """The frame as a matrix, with fractions in the place of towns."""
    numbers = {town: 0.25 + 10.0 * number for number, town in enumerate(TOWNS)}
    return frame.assign(town=frame["town"].map(numbers)).astype(float).to_numpy()


@pytest.mark.parametrize("make", [boost, CostSensitiveTreeClassifier])
def test_the_way_that_categories_come_does_not_matter(make) -> None:
    model = make(COSTS).fit(FRAME, Y)
    assert {name: known.tolist() for name, known in model.categories_.items()} == {
        "town": TOWNS,
        "grade": list(range(9)),
    }
    expected = model.predict_proba(NEW)
    plain = NEW.astype({"town": object, "grade": float})
    for other in (plain, pl.from_pandas(NEW), pl.from_pandas(plain)):
        np.testing.assert_array_equal(model.predict_proba(other), expected)
    named = make(COSTS, categorical_features=["town", "grade"])
    masked = make(COSTS, categorical_features=np.array([True, False, True]))
    for other, data in (
        (
            clone(model),
            pl.from_pandas(FRAME.astype({"grade": str})).cast({"grade": pl.Categorical}),
        ),
        (named, FRAME.astype({"town": object, "grade": float})),
        (named, pl.from_pandas(FRAME)),
        (masked, FRAME),
        (masked, as_numbers(FRAME)),
        (make(COSTS, categorical_features=[0, 2]), as_numbers(FRAME)),
    ):
        assert_same_forest(other.fit(data, Y).forest_, model.forest_)
    np.testing.assert_array_equal(other.predict_proba(as_numbers(NEW)), expected)
    assert other.categories_.keys() == {0, 2}


@settings(max_examples=15)
@given(st.permutations(TOWNS), st.sets(st.sampled_from(TOWNS), min_size=1), st.integers(0, 99))
def test_orders_and_unseen_categories(order, seen, seed) -> None:
    """Neither the order of a dtype nor categories that are not used change a model."""
    frame, y = make_frame(seed, 60)
    known = frame.assign(town=frame["town"].where(frame["town"].isin(seen)))
    model = CostSensitiveTreeClassifier(max_depth=3).fit(known, y)
    permuted = frame.assign(town=frame["town"].cat.set_categories([*order, "Zeal"]))
    assert_same_forest(
        model.forest_,
        clone(model).fit(known.assign(town=known["town"].cat.set_categories(order)), y).forest_,
    )
    missing = frame.assign(town=frame["town"].where(frame["town"].isin(model.categories_["town"])))
    for other in (frame, permuted, frame.astype({"town": object})):
        np.testing.assert_array_equal(model.apply(other), model.apply(missing))


def test_one_set_is_worth_many_tests_of_one_category() -> None:
    """A stump splits towns as well as any number of tests of single towns can."""
    rng = np.random.default_rng(0)
    town = rng.choice(TOWNS, 400)
    y = np.isin(town, ["Ayr", "Cork", "Ely", "Goole"]).astype(int)
    frame = pd.DataFrame({"town": pd.Categorical(town)})
    assert CostSensitiveTreeClassifier(max_depth=1).fit(frame, y).score(frame, y) == 1.0
    encoded = OneHotEncoder(sparse_output=False).fit_transform(frame)
    one_hot = CostSensitiveTreeClassifier(max_depth=1).fit(encoded, y)
    assert one_hot.score(encoded, y) < 0.8


@pytest.mark.parametrize("seed", range(5))
def test_a_stump_gains_no_less_than_one_of_single_categories(seed) -> None:
    frame, y = make_frame(seed)
    towns, binary = frame[["town"]].dropna(), (y > 0)[frame["town"].notna()]
    encoded = OneHotEncoder(sparse_output=False).fit_transform(towns)
    gains = [
        CostSensitiveTreeClassifier(max_depth=1).fit(data, binary).forest_.gain[0]
        for data in (towns, encoded)
    ]
    assert gains[0] >= gains[1]


def test_hundreds_of_categories() -> None:
    """The most frequent ones have a bin of their own; the rest is missing to the trees."""
    rng = np.random.default_rng(0)
    numbers = np.concatenate([np.repeat(np.arange(255), 4), np.arange(255, 600)])
    rng.shuffle(numbers)
    y = numbers % 2
    frame = pd.DataFrame({"town": pd.Categorical([f"town {number:03d}" for number in numbers])})
    model = boost(zero_one_costs(2), n_estimators=3).fit(frame, y)
    assert model.categories_["town"].tolist() == [f"town {number:03d}" for number in range(255)]
    assert (model.predict(frame) == y)[numbers < 255].all()
    rare = pd.DataFrame({"town": ["town 300", "town 301", None]})
    assert len(np.unique(model.apply(rare), axis=0)) == 1
    few = boost(zero_one_costs(2), n_estimators=3, max_bins=5).fit(frame, y)
    assert_same_forest(few.forest_, model.forest_)  # max_bins is for numbers


def test_samples_of_no_weight_bring_no_categories() -> None:
    weight = (FRAME["town"] != "Ely").to_numpy().astype(float)
    model = boost().fit(FRAME, Y, sample_weight=weight)
    assert "Ely" not in model.categories_["town"]
    used = weight > 0
    assert_same_forest(boost().fit(FRAME[used], Y[used]).forest_, model.forest_)


def test_categories_may_be_numbers_to_the_trees() -> None:
    """Without categorical features, grades are ordered, and towns are text."""
    model = boost(categorical_features=None).fit(FRAME[["size", "grade"]], Y)
    assert model.categories_ == {}
    assert model.forest_.categories is None
    with pytest.raises(ValueError, match="X contains text, such as 'Fife'"):
        boost(categorical_features=None).fit(FRAME[["town"]].dropna(), Y[FRAME["town"].notna()])


def test_other_weak_learners_see_numbers() -> None:
    model = boost(estimator=GaussianNB(), n_estimators=2).fit(FRAME[["size", "grade"]], Y)
    assert model.categories_ == {}


def test_a_column_without_any_category(tmp_path) -> None:
    frame = FRAME.assign(town=pd.Categorical([None] * len(FRAME), categories=TOWNS))
    model = boost().fit(frame, Y)
    assert len(model.categories_["town"]) == 0
    model.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    for data in (frame, FRAME):
        np.testing.assert_array_equal(loaded.predict_costs(data), model.predict_costs(data))


def test_the_decisions_of_a_wrapped_model() -> None:
    wrapped = MinimumCostClassifier(boost(None), cost_matrix=COSTS).fit(FRAME, Y)
    assert wrapped.predict(NEW).shape == (len(NEW),)


# Warm start, validation data, early stopping


@pytest.mark.parametrize(
    "parameters",
    [{}, {"early_stopping": True, "n_iter_no_change": 50}, {"subsample": 0.7, "max_leaf_nodes": 5}],
    ids=["plain", "early stopping", "subsample"],
)
@pytest.mark.parametrize("saved", [False, True])
def test_a_warm_start_in_steps_is_one_fit(parameters, saved, tmp_path) -> None:
    validation = {} if "early_stopping" in parameters else {"X_val": NEW, "y_val": Y}
    whole = boost(n_estimators=9, **parameters).fit(FRAME, Y, **validation)
    steps = boost(n_estimators=4, warm_start=True, **parameters).fit(FRAME, Y, **validation)
    if saved:
        steps.save(tmp_path / "model")
        steps = badacost.load(tmp_path / "model")
    steps.set_params(n_estimators=9).fit(FRAME, Y, **validation)
    assert_same_forest(steps.forest_, whole.forest_)
    np.testing.assert_array_equal(steps.validation_score_, whole.validation_score_)
    staged = [steps.staged_cost_scores(NEW), whole.staged_cost_scores(NEW)]
    for one, other in zip(*staged, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_warm_start_keeps_the_known_categories() -> None:
    """Other data: their new categories are missing values, and the old trees stay right."""
    model = boost(warm_start=True).fit(FRAME, Y)
    before = model.cost_scores(NEW)
    moved = FRAME.assign(town=FRAME["town"].cat.rename_categories({"Ayr": "Zeal"}))
    moved = moved.sample(frac=0.5, random_state=0)
    model.set_params(n_estimators=10).fit(moved, Y[moved.index])
    assert model.categories_["town"].tolist() == TOWNS
    np.testing.assert_array_equal(list(model.staged_cost_scores(NEW))[5], before)


def test_scores_of_validation_data_are_those_of_the_model() -> None:
    model = boost().fit(FRAME, Y, X_val=NEW, y_val=Y)
    staged = [COSTS[Y, labels].mean() for labels in model.staged_predict(NEW)]
    np.testing.assert_allclose(model.validation_score_, staged)


def test_one_row_of_an_array() -> None:
    X = as_numbers(FRAME)
    model = boost(categorical_features=[0, 2]).fit(X, Y)
    expected = model.predict_costs(X)
    for row in range(40):
        np.testing.assert_array_equal(model.predict_costs(X[[row]])[0], expected[row])


def test_importances_and_tags() -> None:
    model = boost().fit(FRAME, Y)
    assert model.feature_importances_[0] > 0.3
    assert model.__sklearn_tags__().input_tags.categorical


# Model files


@pytest.mark.parametrize(
    "chosen",
    ["from_dtype", ["town", "grade"], np.array([True, False, True]), (0, np.int64(2)), {0, 2}],
    ids=["dtype", "names", "mask", "positions", "set"],
)
@pytest.mark.parametrize("make", [boost, CostSensitiveTreeClassifier])
def test_a_loaded_model_knows_its_categories(make, chosen, tmp_path) -> None:
    model = make(COSTS, categorical_features=chosen).fit(FRAME, Y)
    model.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    assert loaded.categories_.keys() == model.categories_.keys()
    for name, known in model.categories_.items():
        assert loaded.categories_[name].tolist() == known.tolist()
    refitted = clone(loaded).fit(FRAME, Y)
    assert_same_forest(refitted.forest_, model.forest_)
    assert_same_forest(loaded.forest_, model.forest_)


GRADES = {"dtype": "object", "values": list(range(9))}
NAMES = {"dtype": "object", "values": TOWNS}


@pytest.mark.parametrize(
    "categories",
    [
        None,
        5,
        [],
        {},
        "ab",
        [[0, NAMES]],
        [[0, NAMES], [2, None]],
        [[0, NAMES], [1, GRADES]],
        [[0, NAMES], [3, GRADES]],
        [[0, NAMES], [-1, GRADES]],
        [[0, NAMES], [2.0, GRADES]],
        [[False, NAMES], [2, GRADES]],
        [["0", NAMES], [2, GRADES]],
        [[[0], NAMES], [2, GRADES]],
        [[0, NAMES, 1], [2, GRADES]],
        [[0, TOWNS], [2, GRADES]],
        [[0, {"dtype": "object", "values": TOWNS[:-1]}], [2, GRADES]],
        [[0, {"dtype": "object", "values": [*TOWNS, "Hull"]}], [2, GRADES]],
        [[0, {"dtype": "object", "values": [*TOWNS[:-1], "Ayr"]}], [2, GRADES]],
        [[0, {"dtype": "object", "values": [*TOWNS[:-1], None]}], [2, GRADES]],
    ],
)
def test_edited_categories_are_refused(categories, tmp_path) -> None:
    boost().fit(FRAME, Y).save(tmp_path / "model")
    contents = read_model(tmp_path / "model")
    contents.header["categories"] = categories
    write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(tmp_path / "edited")


@pytest.mark.parametrize("chosen", ["town", 3, [1.5], {"a": 1}, [[0]], [None]])
def test_edited_parameters_are_refused(chosen, tmp_path) -> None:
    boost().fit(FRAME, Y).save(tmp_path / "model")
    contents = read_model(tmp_path / "model")
    contents.header["parameters"]["categorical_features"] = chosen
    write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(tmp_path / "edited")


def test_a_file_whose_trees_know_other_categories(tmp_path) -> None:
    boost().fit(FRAME, Y).save(tmp_path / "model")
    contents = read_model(tmp_path / "model")
    contents.arrays["forest_categories"] = contents.arrays["forest_categories"] * 2.0
    write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
    with pytest.raises(ModelFileError, match="do not test the categories that it has"):
        badacost.load(tmp_path / "edited")
    del contents.header["categories"]
    write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
    with pytest.raises(ModelFileError, match="do not test the categories that it has"):
        badacost.load(tmp_path / "edited")
