"""Saved estimators: what `save` writes, what `load` gives back, and edited files it refuses."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import badacost
from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    ModelFileError,
)
from badacost.costs import labelled_costs, scale_costs
from badacost.io.model_file import ModelFile, read_model, write_model
from badacost.loss import cost_margins
from tests.forests import assert_same_forest

X, Y = load_iris(return_X_y=True)
COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
REDUCIBLE = np.array([[0.0, 2, 1], [0, 0, 1], [0, 3, 0]])

boost = partial(BAdaCostClassifier, n_estimators=6, max_depth=2, random_state=0)
costboost = partial(CostBoostClassifier, n_estimators=3, max_depth=2, n_folds=2, random_state=0)
tree = partial(CostSensitiveTreeClassifier, max_depth=3, random_state=0)


def round_trip(model, folder):
    model.save(folder / "model.bin")
    return badacost.load(folder / "model.bin")


def assert_same_fit(one, other, data=X) -> None:
    """All that a fit leaves is equal to the last bit, and so are the predictions."""
    assert type(one) is type(other)
    learned = {name for name in vars(one) if name.endswith("_") and name != "forest_"}
    assert learned == {name for name in vars(other) if name.endswith("_") and name != "forest_"}
    for name in learned:
        mine, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        assert type(mine) is type(theirs)
    assert_same_forest(one.forest_, other.forest_)
    for method in ("predict", "predict_proba", "cost_scores", "decision_function", "apply"):
        if hasattr(one, method):
            np.testing.assert_array_equal(getattr(one, method)(data), getattr(other, method)(data))
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)


# What comes back.


@pytest.mark.parametrize(
    "model",
    [
        boost(),
        boost(COSTS),
        boost(COSTS, decision="bayes"),
        boost(COSTS, cost_scale=None, learning_rate=1.0),
        boost(COSTS, subsample=0.5, max_features="sqrt", max_leaf_nodes=4, criterion="entropy"),
        boost(COSTS, early_stopping=True, scoring="loss", validation_fraction=30),
        boost(COSTS, callbacks=[lambda done: done.number == 3]),
        boost(REDUCIBLE, cost_scale="reference"),
        tree(),
        tree(COSTS),
        tree(COSTS * 1e40, max_features=0.5, binning="exact", min_samples_leaf=3),
    ],
    ids=[
        "boost", "costs", "bayes", "unscaled", "random", "early stopping", "callback", "reducible",
        "tree", "tree with costs", "tree with huge costs",
    ],
)  # fmt: skip
def test_a_loaded_model_is_the_same(model, tmp_path) -> None:
    model.fit(X, Y)
    loaded = round_trip(model, tmp_path)
    if model.cost_matrix is REDUCIBLE:
        np.testing.assert_array_equal(model.cost_scores(X), loaded.cost_scores(X))
    else:
        assert_same_fit(model, loaded)
    given, found = model.get_params(), loaded.get_params()
    costs, costs_found = given.pop("cost_matrix"), found.pop("cost_matrix")
    assert costs_found == (None if costs is None else labelled_costs(costs, model.classes_))
    assert given.pop("callbacks", None) is None or found["callbacks"] is None
    found.pop("callbacks", None)
    assert given == found


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("make", [boost, tree])
def test_missing_and_validation_data(make, missing, tmp_path) -> None:
    data = np.where(np.random.default_rng(0).random(X.shape) < 0.2 * missing, np.nan, X)
    model = make(COSTS)
    validation = {"X_val": data[::3], "y_val": Y[::3]} if make is boost else {}
    loaded = round_trip(model.fit(data, Y, np.linspace(1, 2, 150), **validation), tmp_path)
    assert_same_fit(model, loaded, data)
    if make is boost:
        assert len(loaded.validation_score_) == 6


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([-7, 3, 200], dtype=np.int16),
        np.array([2**40, 2**50, 2**63 - 1]),
        np.array(["a", "long name", "ü"]),
        np.array(["a", "long name", "ü"], dtype=object),
        np.array([-1.0, 0.0, 2.0]),
        np.array([False, True]),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
@pytest.mark.parametrize("make", [boost, tree])
def test_classes_of_any_type(make, labels, tmp_path) -> None:
    y = labels[Y % len(labels)]
    model = make(1.0 - np.eye(len(labels))).fit(X, y)
    loaded = round_trip(model, tmp_path)
    assert_same_fit(model, loaded)
    assert loaded.predict(X).dtype == model.predict(X).dtype
    assert [type(label) for label in loaded.classes_] == [type(label) for label in model.classes_]


@pytest.mark.parametrize("make", [boost, tree])
def test_names_of_the_features(make, tmp_path) -> None:
    frame = pd.DataFrame(X, columns=["a", "ü", "", "a b"])
    loaded = round_trip(make().fit(frame, Y), tmp_path)
    assert loaded.feature_names_in_.tolist() == ["a", "ü", "", "a b"]
    assert loaded.feature_names_in_.dtype == object
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["ü", "a", "", "a b"]])
    assert not hasattr(round_trip(make().fit(X, Y), tmp_path), "feature_names_in_")


@pytest.mark.parametrize("make", [boost, tree])
def test_saving_again_gives_the_same_bytes(make, tmp_path) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    make(COSTS).fit(X, Y).save(one)
    make(COSTS).fit(X, Y).save(two)
    badacost.load(one).save(three)
    assert one.read_bytes() == two.read_bytes() == three.read_bytes()


@pytest.mark.parametrize("make", [boost, tree])
def test_costs_come_back_as_a_mapping(make, tmp_path) -> None:
    names = np.array(["c", "a", "b"])
    costs = {
        names[i]: {names[j]: COSTS[i, j] for j in (2, 0, 1) if i != j} for i in range(3)
    } | {"unseen": {}}  # fmt: skip
    model = make(costs).fit(X, names[Y])
    loaded = round_trip(model, tmp_path)
    assert_same_fit(model, loaded)
    assert loaded.cost_matrix == labelled_costs(COSTS, names)
    assert_same_fit(model, loaded.fit(X, names[Y]))


def test_numpy_parameters_become_numbers(tmp_path) -> None:
    model = BAdaCostClassifier(
        n_estimators=np.int64(4),
        learning_rate=np.float32(0.5),
        decision=np.str_("bayes"),
        max_features=np.float64(0.5),
        cost_scale=np.float64(0.3),
        early_stopping=np.bool_(False),
        random_state=np.int32(3),
    ).fit(X, Y)
    loaded = round_trip(model, tmp_path)
    assert_same_fit(model, loaded)
    assert {type(value) for value in loaded.get_params().values()} <= {
        int, float, str, bool, type(None),
    }  # fmt: skip
    assert loaded.get_params() == model.get_params()


@pytest.mark.parametrize("make", [boost, tree])
def test_random_state_that_is_no_number(make, tmp_path) -> None:
    state = np.random.RandomState(5)
    model = make(random_state=state, max_features=1).fit(X, Y)
    loaded = round_trip(model, tmp_path)
    assert_same_fit(model, loaded)
    assert loaded.random_state is None
    assert model.random_state is state


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"subsample": 0.5, "max_features": 2, "n_refinements": 1},
        {"early_stopping": True, "n_iter_no_change": 20},
        {"random_state": None, "subsample": 0.5},
        {"random_state": np.random.RandomState(3), "subsample": 0.5},
    ],
    ids=["plain", "random", "early stopping", "no seed", "RandomState"],
)
def test_warm_start_goes_on_from_a_file(parameters, tmp_path) -> None:
    model = boost(COSTS, warm_start=True, **parameters).fit(X, Y)
    loaded = round_trip(model, tmp_path)
    n_estimators = model.n_estimators_ + 5
    for one in (model, loaded):
        one.set_params(n_estimators=n_estimators).fit(X, Y)
    assert_same_fit(model, loaded)
    assert model.n_estimators_ > 1


@pytest.mark.parametrize(
    ("data", "y", "reason"),
    [(np.repeat(np.arange(3.0), 5)[:, None], np.repeat([0, 1, 2], 5), "perfect"), (X, Y, None)],
)
def test_reason_to_stop(data, y, reason, tmp_path) -> None:
    model = boost(COSTS, warm_start=True).fit(data, y)
    loaded = round_trip(model, tmp_path)
    assert loaded.stop_reason_ == model.stop_reason_ == reason
    assert_same_fit(model, loaded.fit(data, y), data)


GOLDEN = Path(__file__).parents[1] / "golden" / "models"


@pytest.mark.parametrize("name", ["costboost", "badacost", "tree", "minimum_cost"])
def test_files_of_earlier_versions_are_read(name, tmp_path) -> None:
    """They are also written again, with equal contents."""
    path, expected = GOLDEN / f"{name}.badacost", np.load(GOLDEN / "expected.npz")
    model = badacost.load(path)
    np.testing.assert_array_equal(model.predict(expected["X"]), expected[f"{name}_predict"])
    probabilities = model.predict_proba(expected["X"])
    np.testing.assert_allclose(probabilities, expected[f"{name}_predict_proba"], rtol=1e-12)
    model.save(tmp_path / "again")
    mine, theirs = (read_model(file) for file in (tmp_path / "again", path))
    new = {"oof_cost_std_error"}  # these parameters had no effect with symmetric trees and folds
    parameters = theirs.header["parameters"] | {"max_leaf_nodes": None}
    if name == "costboost":
        parameters |= {"validation_fraction": None, "members": "trees"}
        assert mine.header["parameters"] == parameters
    skipped = new | ({"parameters"} if name == "costboost" else set())
    assert {k: v for k, v in mine.header.items() if k not in skipped} == {
        k: v for k, v in theirs.header.items() if k not in skipped
    }
    assert mine.arrays.keys() - {"member_weights"} == theirs.arrays.keys()
    for key, array in theirs.arrays.items():
        np.testing.assert_array_equal(mine.arrays[key], array, strict=True)


@pytest.mark.parametrize("name", ["samme", "adac2m1", "piboost", "lp_csb", "wang"])
def test_earlier_files_of_relatives_are_read(name) -> None:
    model, expected = badacost.load(GOLDEN / f"{name}.badacost"), np.load(GOLDEN / "expected.npz")
    np.testing.assert_array_equal(model.predict(expected["X"]), expected[f"{name}_predict"])
    scores = model.cost_scores(expected["X"])
    np.testing.assert_array_equal(scores, expected[f"{name}_cost_scores"])


# What cannot be saved.


@pytest.mark.parametrize("model", [boost(), tree()])
def test_an_unfitted_model_is_not_saved(model, tmp_path) -> None:
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.bin")
    assert list(tmp_path.iterdir()) == []


def test_other_learners_are_for_joblib(tmp_path) -> None:
    model = boost(estimator=GaussianNB()).fit(X, Y)
    with pytest.raises(TypeError, match=r"use joblib\.dump"):
        model.save(tmp_path / "model.bin")
    assert list(tmp_path.iterdir()) == []
    grown = boost().fit(X, Y).set_params(estimator=GaussianNB())  # meant for the next fit
    assert round_trip(grown, tmp_path).estimator is None


class Heir(BAdaCostClassifier):
    """Not a class that `load` knows."""


def test_subclasses_are_for_joblib(tmp_path) -> None:
    with pytest.raises(TypeError, match=r"cannot hold a Heir: use joblib\.dump"):
        Heir(n_estimators=2).fit(X, Y).save(tmp_path / "model.bin")


@pytest.mark.parametrize(
    "change",
    [
        {"cost_scale": 0.01},
        {"learning_rate": -1.0},
        {"n_estimators": [3]},
        {"max_depth": "deep"},
        {"decision": "bayes"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_no_file_is_written_that_would_be_refused(change, tmp_path) -> None:
    """Parameters that were changed after the fit; an older file stays."""
    model = boost(REDUCIBLE).fit(X, Y)
    model.save(tmp_path / "model.bin")
    before = (tmp_path / "model.bin").read_bytes()
    with pytest.raises(ValueError, match="this model could not be loaded again"):
        model.set_params(**change).save(tmp_path / "model.bin")
    assert (tmp_path / "model.bin").read_bytes() == before


# Edited files.


@dataclass
class Edit:
    """A change of the header (in place) or the arrays of a model file."""

    name: str
    header: Any = None
    arrays: Any = None


def assert_refused(source, target, edit: Edit) -> None:
    contents: ModelFile = read_model(source)
    if edit.header:
        edit.header(contents.header)
    if edit.arrays:
        edit.arrays(contents.arrays)
    write_model(target, contents.kind, contents.header, contents.arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(target)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each kind; the features have names."""
    folder = tmp_path_factory.mktemp("models")
    frame = pd.DataFrame(X, columns=list("abcd"))
    for kind, make in (("boost", boost), ("costboost", costboost), ("tree", tree)):
        make(COSTS).fit(frame, Y).save(folder / kind)
    return folder


def update(**items):
    return lambda mapping: mapping.update(items)


def remove(name):
    return lambda mapping: mapping.pop(name)


def parameter(name, value):
    return Edit(f"{name}={value!r}"[:40], lambda header: header["parameters"].update({name: value}))


def labels(dtype, *values):
    return update(classes={"dtype": dtype, "values": list(values)})


def scaled(name, factor):
    return lambda arrays: arrays.update({name: arrays[name] * factor})


EDITS = [
    Edit("two classes", labels("int64", 0, 1)),
    Edit("four classes", labels("int64", 0, 1, 2, 3)),
    Edit("one class", labels("int64", 0)),
    Edit("no classes", labels("int64")),
    Edit("repeated classes", labels("int64", 0, 1, 1)),
    Edit("equal objects", labels("object", 0, 1, True)),
    Edit("classes without order", labels("object", 0, "a", 2)),
    Edit("classes of another type", labels("int64", 0, 1, "2")),
    Edit("classes are a list", update(classes=[0, 1, 2])),
    Edit("classes are null", update(classes=None)),
    Edit("parameters are a list", update(parameters=[["max_depth", 3]])),
    Edit("parameters are null", update(parameters=None)),
    Edit("header among the arrays", remove("costs_given"), update(costs_given=np.ones(1))),
    *(
        Edit(f"no {name}", remove(name))
        for name in ("parameters", "classes", "costs_given")
    ),
    Edit("empty header", lambda header: header.clear()),
    Edit("no arrays", arrays=lambda arrays: arrays.clear()),
    Edit("no costs", arrays=remove("cost_matrix")),
    Edit("no table", arrays=remove("forest_table")),
    Edit("costs of NaN", arrays=update(cost_matrix=np.where(COSTS == 4, np.nan, COSTS))),
    Edit("infinite costs", arrays=update(cost_matrix=np.where(COSTS == 4, np.inf, COSTS))),
    Edit("huge costs", arrays=update(cost_matrix=COSTS * 4e307)),
    Edit("negative costs", arrays=update(cost_matrix=-COSTS)),
    Edit("free class", arrays=update(cost_matrix=COSTS * [[1], [0], [1]])),
    Edit("costs of two classes", arrays=update(cost_matrix=COSTS[:2, :2])),
    Edit("costs that are not square", arrays=update(cost_matrix=COSTS[:2])),
    Edit("costs of three dimensions", arrays=update(cost_matrix=COSTS[None])),
    Edit("costs in a row", arrays=update(cost_matrix=COSTS.ravel())),
    Edit("one cost", arrays=update(cost_matrix=np.array(3.0))),
    Edit("no cost", arrays=update(cost_matrix=np.empty((0, 0)))),
    Edit("wider table", arrays=update(forest_table=np.ones((40, 4)) / 4)),
    Edit("empty table", arrays=update(forest_table=np.empty((0, 3)))),
    Edit("table of NaN", arrays=scaled("forest_table", np.nan)),
    Edit("infinite tree weights", arrays=scaled("forest_tree_weights", np.inf)),
    Edit("singles", arrays=lambda a: a.update(forest_table=a["forest_table"].astype("f4"))),
    Edit("fewer features", arrays=update(forest_n_features=np.array(3))),
    Edit("more features", arrays=update(forest_n_features=np.array(10**6))),
    Edit("too many features", arrays=update(forest_n_features=np.array(2**40))),
    Edit("feature names missing", update(feature_names={"dtype": "object", "values": ["a"]})),
    Edit("numbers for names", update(feature_names={"dtype": "int64", "values": [1, 2, 3, 4]})),
    Edit("a number for a name", update(feature_names={"dtype": "object", "values": [1, *"bcd"]})),
    Edit("names as numpy text", update(feature_names={"dtype": "U1", "values": list("abcd")})),
    Edit("names are null", update(feature_names=None)),
    Edit("a name twice", update(feature_names={"dtype": "object", "values": list("abca")})),
    parameter("__class__", "x"),
    parameter("__init__", "x"),
    parameter("_scaled_margins", 1),
    parameter("classes_", [1, 2]),
    parameter("self", 1),
    parameter("estimator__alpha", 1),
    parameter("cost_matrix", "x"),
    parameter("cost_matrix", None),
    parameter("n_jobs", 0),
    parameter("n_jobs", "rm"),
    parameter("n_jobs", 1.5),
    parameter("n_jobs", [1]),
    parameter("max_depth", "x"),
    parameter("max_depth", -1),
    parameter("max_depth", {"a": 1}),
    parameter("max_features", "all"),
    parameter("max_features", [1]),
    parameter("max_features", {}),
    parameter("max_bins", 257),
    parameter("criterion", "__import__"),
    parameter("criterion", ["gini"]),
    parameter("binning", None),
    parameter("min_samples_leaf", True),
    parameter("random_state", "x"),
    parameter("random_state", -1),
    parameter("random_state", 2**40),
    parameter("random_state", 0.5),
    parameter("random_state", [1, "x"]),
]  # fmt: skip


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_edits_of_any_model_are_refused(files, tmp_path, edit) -> None:
    for kind in ("boost", "costboost", "tree"):
        assert_refused(files / kind, tmp_path / kind, edit)


def reducible(arrays) -> None:
    """Costs and a table that belong together, but give no probabilities."""
    table = cost_margins(scale_costs(REDUCIBLE, "auto")).T
    arrays.update(cost_matrix=REDUCIBLE, forest_table=table.copy())


BOOST_EDITS = [
    parameter("n_estimators", "x"),
    parameter("n_estimators", 0),
    parameter("n_estimators", None),
    parameter("learning_rate", 0),
    parameter("learning_rate", "0.1"),
    parameter("decision", "vote"),
    parameter("decision", 1),
    parameter("estimator", "GaussianNB"),
    parameter("estimator", None),
    parameter("callbacks", ["print"]),
    parameter("callbacks", None),
    parameter("cost_scale", "large"),
    parameter("cost_scale", 0.123),
    parameter("cost_scale", -1),
    parameter("cost_scale", 1.7e308),
    parameter("cost_scale", []),
    parameter("cost_scale", True),
    parameter("early_stopping", "yes"),
    parameter("warm_start", 1),
    parameter("scoring", "f1"),
    parameter("tol", None),
    parameter("subsample", 1.5),
    parameter("verbose", "x"),
    parameter("verbose", [1]),
    Edit(
        "reducible costs",
        lambda header: header["parameters"].update(decision="bayes"),
        reducible,
    ),
    Edit("scaled table", arrays=scaled("forest_table", 1.001)),
    Edit("negative tree weights", arrays=scaled("forest_tree_weights", -1.0)),
    Edit("other costs", arrays=update(cost_matrix=COSTS.T.copy())),
    Edit("transposed table", arrays=lambda a: a.update(forest_table=a["forest_table"].T.copy())),
    Edit("long table", arrays=lambda a: a.update(forest_table=np.vstack([a["forest_table"]] * 2))),
    Edit("no seed", remove("seed")),
    Edit("negative seed", update(seed=-1)),
    Edit("huge seed", update(seed=2**64)),
    Edit("seed of 1.5", update(seed=1.5)),
    Edit("seed is true", update(seed=True)),
    Edit("seed is null", update(seed=None)),
    Edit("seed is text", update(seed="1")),
    Edit("no stop_reason", remove("stop_reason")),
    Edit("unknown stop_reason", update(stop_reason="tired")),
    Edit("stop_reason is a list", update(stop_reason=["perfect"])),
    Edit("stop_reason is a number", update(stop_reason=0)),
    Edit("no train_score", arrays=remove("train_score")),
    Edit("no validation_score", arrays=remove("validation_score")),
    Edit("empty train_score", arrays=update(train_score=np.empty(0))),
    Edit("long train_score", arrays=update(train_score=np.ones(7))),
    Edit("short train_score", arrays=update(train_score=np.ones(5))),
    Edit("train_score of two dimensions", arrays=update(train_score=np.ones((6, 1)))),
    Edit("train_score of integers", arrays=update(train_score=np.ones(6, np.int64))),
    Edit("train_score of booleans", arrays=update(train_score=np.ones(6, bool))),
    Edit("train_score of singles", arrays=update(train_score=np.ones(6, np.float32))),
    Edit("scalar train_score", arrays=update(train_score=np.array(1.0))),
    Edit("long validation_score", arrays=update(validation_score=np.ones(7))),
    Edit("validation_score of integers", arrays=update(validation_score=np.ones(6, np.int32))),
    Edit("no trees", arrays=lambda a: a.update(
        {name: a[name][:0] for name in a if name.startswith("forest_") and a[name].ndim == 1}
        | {"forest_offsets": np.zeros(1, np.int64), "train_score": np.empty(0)}
    )),
]  # fmt: skip


@pytest.mark.parametrize("edit", BOOST_EDITS, ids=lambda edit: edit.name)
def test_edits_of_a_booster_are_refused(files, tmp_path, edit) -> None:
    assert_refused(files / "boost", tmp_path / "edited", edit)


TREE_EDITS = [
    parameter("n_estimators", 3),
    parameter("decision", "margin"),
    Edit("tree weight of 2", arrays=scaled("forest_tree_weights", 2.0)),
    Edit("huge tree weight", arrays=scaled("forest_tree_weights", 1e308)),
    Edit("huge probabilities", arrays=scaled("forest_table", 1e308)),
    Edit("negative probabilities", arrays=scaled("forest_table", -1.0)),
    Edit("halved probabilities", arrays=scaled("forest_table", 0.5)),
    Edit("no trees", arrays=lambda a: a.update(
        {name: a[name][:0] for name in a if name.startswith("forest_") and a[name].ndim == 1}
        | {"forest_offsets": np.zeros(1, np.int64)}
    )),
]  # fmt: skip


@pytest.mark.parametrize("edit", TREE_EDITS, ids=lambda edit: edit.name)
def test_edits_of_a_tree_are_refused(files, tmp_path, edit) -> None:
    assert_refused(files / "tree", tmp_path / "edited", edit)


COSTBOOST_EDITS = [
    parameter("n_folds", 0),
    parameter("tree", "oblique"),
    parameter("l2", -1.0),
    parameter("min_hessian", "small"),
    parameter("n_directions", 0),
    parameter("cv", 5),
    Edit("no oof_cost", remove("oof_cost")),
    Edit("negative oof_cost", update(oof_cost=-1.0)),
    Edit("oof_cost is text", update(oof_cost="1")),
    Edit("no log_prior", arrays=remove("log_prior")),
    Edit("short log_prior", arrays=update(log_prior=np.zeros(2))),
    Edit("log_prior of singles", arrays=update(log_prior=np.zeros(3, np.float32))),
    Edit("infinite log_prior", arrays=update(log_prior=np.array([0.0, 0.0, -np.inf]))),
    Edit("stage_ends that fall", arrays=update(stage_ends=np.array([0, 4, 2, 6]))),
]


@pytest.mark.parametrize("edit", COSTBOOST_EDITS, ids=lambda edit: edit.name)
def test_edits_of_costboost_are_refused(files, tmp_path, edit) -> None:
    assert_refused(files / "costboost", tmp_path / "edited", edit)


@pytest.mark.parametrize(("kind", "other"), [("boost", "tree"), ("tree", "costboost")])
def test_a_file_under_the_name_of_another_class(files, tmp_path, kind, other) -> None:
    contents = read_model(files / kind)
    other_kind = read_model(files / other).kind
    write_model(tmp_path / "edited", other_kind, contents.header, contents.arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(tmp_path / "edited")


def test_parameters_that_a_file_lacks_have_their_defaults(files, tmp_path) -> None:
    """An older file, from before a parameter was there."""
    contents = read_model(files / "boost")
    del contents.header["parameters"]["tol"]
    write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
    assert badacost.load(tmp_path / "edited").tol == BAdaCostClassifier().tol


def test_a_greedy_number_of_threads_does_no_harm(files, tmp_path) -> None:
    contents = read_model(files / "boost")
    contents.header["parameters"]["n_jobs"] = 10**9
    write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = badacost.load(files / "boost").cost_scores(frame)
    np.testing.assert_array_equal(badacost.load(tmp_path / "edited").cost_scores(frame), expected)


@pytest.mark.parametrize("kind", ["boost", "costboost", "tree"])
def test_flipped_bytes(files, tmp_path, kind) -> None:
    """An error of one kind, or, where a byte carries no meaning, the same model."""
    original = (files / kind).read_bytes()
    whole = badacost.load(files / kind)
    frame = pd.DataFrame(X, columns=list("abcd"))
    chance = random.Random(kind)
    refused = 0
    for _ in range(80):
        damaged = bytearray(original)
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            damaged[chance.randrange(len(damaged))] ^= chance.choice([1, 128, 255])
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            loaded = badacost.load(tmp_path / "damaged")
        except ModelFileError:
            refused += 1
        else:
            assert_same_fit(whole, loaded, frame)
    assert refused > 40


@pytest.mark.parametrize("kind", ["boost", "costboost", "tree"])
def test_random_edits_of_numbers(files, tmp_path, kind) -> None:
    """Whatever an array holds, a model that is loaded also predicts."""
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for _ in range(50):
        contents = read_model(files / kind)
        name = chance.choice(sorted(contents.arrays))
        raw = contents.arrays[name].reshape(-1).view(np.uint8)
        if contents.arrays[name].dtype == bool:
            raw[chance.integers(len(raw))] ^= 1
        elif len(raw):
            raw[chance.integers(len(raw))] ^= 1 << chance.integers(8)
        write_model(tmp_path / "edited", contents.kind, contents.header, contents.arrays)
        try:
            loaded = badacost.load(tmp_path / "edited")
        except ModelFileError:
            continue
        assert loaded.predict(frame).shape == (150,)
        assert loaded.apply(frame).min() >= 0
