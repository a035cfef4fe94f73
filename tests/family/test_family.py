"""What every boosting classifier has to do, whatever its algorithm."""

from __future__ import annotations

import io
import pickle
import warnings
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import badacost
from badacost import ModelFileError
from badacost.boosting.stagewise import Round
from badacost.classifiers import BAdaCostClassifier, CostBoostClassifier
from badacost.costs import labelled_costs, zero_one_costs
from badacost.family import (
    AdaBoostM1Classifier,
    AdaC2M1Classifier,
    CostGeneralizedAdaBoostClassifier,
    CSAdaBoostClassifier,
    LpCSBClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
)
from badacost.io.model_file import read_model, write_model
from tests.forests import assert_same_forest

# The classes, each with parameters under which it is quick, and works as the others do.
FAMILY: dict[Any, dict[str, Any]] = {
    AdaBoostM1Classifier: {},
    SAMMEClassifier: {},
    CSAdaBoostClassifier: {},
    CostGeneralizedAdaBoostClassifier: {},
    AdaC2M1Classifier: {},
    BAdaCostClassifier: {},
    PIBoostClassifier: {},
    LpCSBClassifier: {},
    WangMultiBoostClassifier: {"n_pool": 12, "sample_shares": (1.0,)},
    CostBoostClassifier: {"n_folds": 1, "early_stopping": False, "learning_rate": 0.5},
}


def has(cls, name: str) -> bool:
    """Whether the class has a parameter."""
    return name in cls().get_params()


def is_binary(cls) -> bool:
    return not cls().__sklearn_tags__().classifier_tags.multi_class


def members(condition=lambda cls: True):
    """Parametrise a test over the classes that fulfil a condition."""
    chosen = [cls for cls in FAMILY if condition(cls)]
    return pytest.mark.parametrize("cls", chosen, ids=lambda cls: cls.__name__)


def takes_costs(cls) -> bool:
    return has(cls, "cost_matrix")


def takes_estimator(cls) -> bool:
    return has(cls, "estimator")


def reweights(cls) -> bool:
    """Whether rounds change weights of samples, and are scored by cost; else it is log-loss."""
    return cls is not CostBoostClassifier


def costs_for(n_classes: int):
    """Different costs of all mistakes, none of them symmetric."""
    costs = np.random.default_rng(n_classes).uniform(1, 3, (n_classes, n_classes))
    return costs * zero_one_costs(n_classes)


@cache
def data(n_classes: int, seed: int = 0):
    """Classes that overlap a little."""
    return make_classification(
        300, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, class_sep=1.2, random_state=seed
    )


def data_for(cls, seed: int = 0):
    return data(2 if is_binary(cls) else 3, seed)


def names_of(cls):
    """Names of the classes of `data_for`, and costs by these where the class takes any."""
    names = np.array(["ant", "beetle", "cricket"][: 2 if is_binary(cls) else 3])
    costs = labelled_costs(costs_for(len(names)), names)
    return names, {"cost_matrix": costs} if takes_costs(cls) else {}


def make(cls, n_classes: int | None = None, **parameters):
    """A quick instance, with asymmetric costs where it takes any."""
    if takes_costs(cls) and "cost_matrix" not in parameters:
        parameters["cost_matrix"] = costs_for(n_classes or (2 if is_binary(cls) else 3))
    defaults = {"n_estimators": 8, "max_depth": 4, "random_state": 0}
    return cls(**{**defaults, **FAMILY[cls], **parameters})


@cache
def fitted(cls):
    """A model of `data_for` that no test changes."""
    return make(cls).fit(*data_for(cls))


def outputs(model, X) -> dict[str, Any]:
    """Answers of every method that the model has."""
    methods = ("predict", "cost_scores", "decision_function", "predict_proba")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def assert_same_answers(one, other, X) -> None:
    """Equal to the last bit."""
    mine, theirs = outputs(one, X), outputs(other, X)
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def assert_same_model(one, other, X) -> None:
    """All that a fit leaves is equal to the last bit."""
    assert_same_answers(one, other, X)
    for name in ("estimator_weights_", "train_score_", "validation_score_", "classes_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.stop_reason_ == other.stop_reason_
    assert one.n_estimators_ == other.n_estimators_
    assert_same_forest(one.forest_, other.forest_)


@pytest.mark.filterwarnings("ignore:The first weak learner is no better than chance")
@members()
def test_estimator_checks(cls) -> None:
    check_estimator(cls(**{"n_estimators": 4, **FAMILY[cls]}))


# Data.


@pytest.mark.parametrize(
    ("cls", "n_classes"),
    [(cls, k) for cls in FAMILY for k in (2, 4, 26) if k == 2 or not is_binary(cls)],
)
def test_numbers_of_classes(cls, n_classes) -> None:
    X, y = make_blobs(20 * n_classes, 4, centers=n_classes, random_state=0)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.05, 0, y)
    model = make(cls, n_classes, max_depth=8, n_estimators=4).fit(X, y)
    assert model.cost_scores(X).shape == (len(X), n_classes)
    assert model.cost_matrix_.shape == (n_classes, n_classes)
    assert model.score(X, y) > 0.7
    for name, values in outputs(model, X).items():
        assert np.isfinite(values).all(), name


@members(is_binary)
def test_too_many_classes(cls) -> None:
    message = f"Only binary classification is supported.*{cls.__name__} takes 2.*BAdaCostClassifier"
    for costs in (None, costs_for(2), costs_for(3)):
        with pytest.raises(ValueError, match=message):
            make(cls, cost_matrix=costs).fit(*data(3))


@members()
def test_string_labels(cls) -> None:
    X, y = data_for(cls)
    names, costs = names_of(cls)
    model, plain = make(cls, **costs).fit(X, names[y]), fitted(cls)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(model.cost_scores(X), plain.cost_scores(X))


@members(takes_costs)
def test_costs_by_label(cls) -> None:
    X, y = data_for(cls)
    k = len(np.unique(y))
    names = np.array(["c", "a", "b"][:k])
    costs = costs_for(k)
    nested = {names[i]: {names[j]: costs[i, j] for j in range(k)} for i in range(k)}
    order = np.argsort(names)
    by_name = make(cls, cost_matrix=nested).fit(X, names[y])
    with pytest.warns(UserWarning, match="in alphabetical order of the classes: 'a', "):
        by_place = make(cls, cost_matrix=costs[np.ix_(order, order)]).fit(X, names[y])
    assert_same_model(by_name, by_place, X)


@members()
def test_weights_stand_for_copies(cls) -> None:
    X, y = data_for(cls)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = make(cls, binning="exact").fit(X, y, weight)
    copied = make(cls, binning="exact").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.n_estimators_ == copied.n_estimators_
    np.testing.assert_allclose(weighted.cost_scores(X), copied.cost_scores(X), rtol=1e-5)
    ignored = make(cls, binning="exact").fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    assert_same_model(weighted, ignored, X)


@members()
def test_weights_matter(cls) -> None:
    X, y = data_for(cls)
    heavy = make(cls).fit(X, y, np.where(y == 1, 30.0, 1.0))
    assert (heavy.predict(X) == 1).sum() > (fitted(cls).predict(X) == 1).sum()


EXTREME = {
    "one huge": np.where(np.arange(300) == 7, 1e308, 1.0),
    "huge": np.full(300, 5e305),
    "tiny": np.full(300, 5e-324),
    "half tiny": np.where(np.arange(300) < 150, 1e-320, 1.0),
    "all sizes": 10.0 ** np.linspace(-300, 300, 300),
}


@pytest.mark.filterwarnings("ignore:sample_weight has a mean")
@members()
def test_weights_at_the_ends_of_the_range(cls) -> None:
    X, y = data_for(cls)
    for kind, weight in EXTREME.items():
        validation = {"X_val": X, "y_val": y, "sample_weight_val": weight}
        model = make(cls, n_estimators=3).fit(X, y, weight, **validation)
        for name, values in outputs(model, X).items():
            assert np.isfinite(values).all(), (kind, name)
        scores = model.train_score_, model.validation_score_
        assert np.isfinite(scores).all(), kind
        np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-12, err_msg=kind)


@members()
def test_missing_values(cls) -> None:
    X, y = data_for(cls)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = make(cls).fit(holes, y)
    assert model.score(holes, y) > 0.6
    for name, values in outputs(model, np.full((1, 6), np.nan)).items():
        assert np.isfinite(values).all(), name


# Costs.


@members(takes_costs)
def test_rows_of_costs_are_the_truth(cls) -> None:
    """An expensive row makes its class frequent, a column need not: transposing matters."""
    X, y = data_for(cls)
    costs = zero_one_costs(len(np.unique(y)))
    costs[1] *= 2.5
    rows, columns = (make(cls, cost_matrix=c, n_estimators=20).fit(X, y) for c in (costs, costs.T))
    assert (rows.predict(X) == 1).sum() > (columns.predict(X) == 1).sum() + 5
    assert (rows.decision_function(X) != columns.decision_function(X)).any()


@members(lambda cls: not takes_costs(cls))
def test_without_costs_every_mistake_costs_one(cls) -> None:
    X, y = data_for(cls)
    model = fitted(cls)
    np.testing.assert_array_equal(model.cost_matrix_, zero_one_costs(3))
    errors = [(predicted != y).mean() for predicted in model.staged_predict(X)]
    np.testing.assert_allclose(model.train_score_, errors)


@members(reweights)
def test_scores_of_the_rounds_are_average_costs(cls) -> None:
    X, y = data_for(cls)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    X_val, y_val = data_for(cls, seed=1)
    model = make(cls).fit(X, y, weight, X_val=X_val, y_val=y_val)
    parts = [
        (model.train_score_, X, y, weight),
        (model.validation_score_, X_val, y_val, None),
    ]
    for curve, samples, truth, weights in parts:
        expected = [
            np.average(model.cost_matrix_[truth, predicted], weights=weights)
            for predicted in model.staged_predict(samples)
        ]
        np.testing.assert_allclose(curve, expected, rtol=1e-12)


WRONG_COSTS: list[tuple[Any, str]] = [
    (-np.ones((2, 2)), "costs_from_pairs takes negative"),
    ([[0, np.nan], [1, 0]], "replace it by a number from 0"),
    (np.ones((3, 2)), "costs have shape"),
    ([[0, 0], [1, 0]], "class"),
    ("high", "costs are of type str"),
]


@members(takes_costs)
def test_wrong_costs(cls) -> None:
    for costs, message in WRONG_COSTS:
        with pytest.raises((TypeError, ValueError), match=message):
            make(cls, cost_matrix=costs).fit(*data(2))


# Rounds.


@members()
def test_last_stage_is_the_model(cls) -> None:
    X, y = data_for(cls)
    model = fitted(cls)
    short = make(cls, n_estimators=3).fit(X, y)
    for name, values in outputs(model, X).items():
        stages = list(getattr(model, f"staged_{name}")(X))
        assert len(stages) == model.n_estimators_
        np.testing.assert_array_equal(stages[-1], values, err_msg=name)
        np.testing.assert_array_equal(stages[2], getattr(short, name)(X), err_msg=name)


@members()
def test_methods_agree(cls) -> None:
    X, _ = data_for(cls)
    model = fitted(cls)
    predicted = model.predict(X)
    charges = model.cost_scores(X) if reweights(cls) else model.predict_costs(X)
    np.testing.assert_array_equal(predicted, charges.argmin(axis=1))
    values = model.decision_function(X)
    decided = (values > 0).astype(int) if is_binary(cls) else values.argmax(axis=1)
    np.testing.assert_array_equal(predicted, decided)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.apply(X).shape == (len(X), model.forest_.n_trees)
    assert model.feature_importances_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"subsample": 0.6, "max_features": 0.5}, {"early_stopping": True, "n_iter_no_change": 8}],
    ids=["default", "random", "early stopping"],
)
@members()
def test_warm_start_equals_one_long_fit(cls, parameters) -> None:
    X, y = data_for(cls)
    weight = np.random.default_rng(0).uniform(0, 2, len(X))
    whole = make(cls, n_estimators=6, **parameters).fit(X, y, weight)
    parts = make(cls, n_estimators=3, warm_start=True, **parameters).fit(X, y, weight)
    parts.set_params(n_estimators=6).fit(X, y, weight)
    assert_same_model(whole, parts, X)


@members()
def test_categories(cls, tmp_path) -> None:
    """Rounded values as categories: on a warm start, with validation data, and from a file."""
    X, y = data_for(cls)
    X = np.where(np.arange(6) < 3, X.round(), X)
    parameters = {"categorical_features": [0, 2], "max_depth": 2}
    known, unseen = (X[:200], y[:200]), {"X_val": X[200:], "y_val": y[200:]}
    whole = make(cls, n_estimators=6, **parameters).fit(*known, **unseen)
    parts = make(cls, n_estimators=3, warm_start=True, **parameters).fit(*known, **unseen)
    parts.save(tmp_path / "model.bin")
    for model in (parts, badacost.load(tmp_path / "model.bin")):
        model.set_params(n_estimators=6).fit(*known, **unseen)
        assert_same_model(whole, model, X)
    assert whole.categories_[0].tolist() == np.unique(X[:200, 0]).tolist()
    assert (whole.forest_.category_set >= 0).any()


@members()
def test_what_a_warm_start_cannot_change(cls) -> None:
    X, y = data_for(cls)
    model = make(cls, n_estimators=4, warm_start=True).fit(X, y)
    answers = outputs(model, X)
    with pytest.raises(ValueError, match="n_estimators must be at least 4"):
        model.set_params(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="the classes must stay"):
        model.set_params(n_estimators=6).fit(X, y + 1)
    if takes_costs(cls):
        costs = model.cost_matrix
        with pytest.raises(ValueError, match="must stay as they were"):
            model.set_params(cost_matrix=costs.T).fit(X, y)
        model.set_params(cost_matrix=costs)
    for name, values in outputs(model, X).items():
        np.testing.assert_array_equal(values, answers[name])
    assert_same_model(model.fit(X, y), make(cls, n_estimators=6).fit(X, y), X)


@pytest.mark.parametrize(
    "parameters", [{}, {"subsample": 0.6, "max_features": 2}], ids=["default", "random"]
)
@members()
def test_same_bits_for_any_number_of_threads(cls, parameters) -> None:
    X, y = data_for(cls)
    one, two = (make(cls, n_jobs=n, **parameters).fit(X, y) for n in (1, 2))
    assert_same_model(one, two, X)


@members(reweights)
def test_seed_matters_only_where_there_is_chance(cls) -> None:
    X, y = data_for(cls)
    assert_same_answers(fitted(cls), make(cls, random_state=1).fit(X, y), X)
    one, two = (make(cls, random_state=seed, subsample=0.5).fit(X, y) for seed in (0, 1))
    assert (one.cost_scores(X) != two.cost_scores(X)).any()


@members()
def test_early_stopping_goes_back_to_the_best_round(cls) -> None:
    (X, y), (X_val, y_val) = ([part[i::2] for part in data_for(cls)] for i in (0, 1))
    parameters = {"n_estimators": 25, "learning_rate": 0.5}
    full = make(cls, **parameters).fit(X, y, X_val=X_val, y_val=y_val)
    model = make(cls, early_stopping=True, n_iter_no_change=5, **parameters)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    best = model.n_estimators_
    assert best <= full.n_estimators_
    assert len(model.train_score_) == len(model.validation_score_) == best
    np.testing.assert_array_equal(model.validation_score_, full.validation_score_[:best])
    assert model.validation_score_[-1] <= full.validation_score_[: best + 5].min() + model.tol
    np.testing.assert_array_equal(model.cost_scores(X), list(full.staged_cost_scores(X))[best - 1])


@members()
def test_early_stopping_holds_out_a_part(cls) -> None:
    X, y = data_for(cls)
    rounds: list[Round] = []
    model = make(cls, early_stopping=True, validation_fraction=50, callbacks=[rounds.append])
    model.fit(X, y)
    assert len(rounds[0].sample_weight) == len(X) - 50
    assert len(model.validation_score_) == model.n_estimators_
    assert model.validation_score_[-1] <= model.validation_score_.min() + model.tol


# Callbacks and progress.


@members()
def test_rounds_told_to_callbacks(cls) -> None:
    X, y = data_for(cls)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    rounds: list[Round] = []
    model = make(cls, callbacks=[rounds.append]).fit(X, y, weight)
    assert [done.number for done in rounds] == list(range(1, model.n_estimators_ + 1))
    np.testing.assert_array_equal([done.train_score for done in rounds], model.train_score_)
    for done in rounds:
        assert done.sample_weight.shape == done.predicted.shape == (len(X),)
        assert done.sample_weight.sum() == pytest.approx(1)
        assert (done.sample_weight >= 0).all()
        assert done.step > 0
        assert set(done.predicted) <= set(range(len(model.classes_)))
    changes = np.ptp([done.sample_weight for done in rounds], axis=0) > 0
    assert changes.any() == reweights(cls)
    assert_same_model(model, make(cls).fit(X, y, weight), X)


@members()
def test_a_callback_ends_the_fit(cls) -> None:
    X, y = data_for(cls)
    model = make(cls, callbacks=[lambda done: done.number == 3]).fit(X, y)
    assert model.n_estimators_ == 3
    assert model.stop_reason_ == "callback"
    assert_same_answers(model, make(cls, n_estimators=3).fit(X, y), X)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@members()
def test_progress_bar_leaves_its_line(cls, monkeypatch) -> None:
    def interrupt(done: Round) -> None:
        if done.number == 2:
            raise KeyboardInterrupt

    X, y = data_for(cls)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    make(cls, verbose=1).fit(X, y)
    shown = terminal.getvalue()
    assert cls.__name__ in shown
    n_bars = 1 + ("Pool of trees" in shown)
    assert shown.count("\n") == n_bars
    assert shown.endswith("\n")
    with pytest.raises(KeyboardInterrupt):
        make(cls, verbose=1, callbacks=[interrupt]).fit(X, y)
    more = terminal.getvalue().removeprefix(shown)
    assert cls.__name__ in more
    assert more.count("\n") == n_bars
    assert more.endswith("\n")


# Other weak learners.


OTHERS = [LogisticRegression(), KNeighborsClassifier(5), RidgeClassifier()]


@pytest.mark.parametrize(
    ("cls", "estimator"),
    [
        (cls, estimator)
        for cls, other in zip(filter(takes_estimator, FAMILY), cycle(OTHERS), strict=False)
        for estimator in (DecisionTreeClassifier(max_depth=3, max_features=3), other)
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_another_estimator(cls, estimator, tmp_path) -> None:
    X, y = data_for(cls)
    model = make(cls, estimator=estimator, n_estimators=4, learning_rate=0.5).fit(X, y)
    assert {type(learner) for learner in model.estimators_} == {type(estimator)}
    assert len(model.estimators_) == len(model.estimator_weights_) == model.n_estimators_
    assert model.score(X, y) > 0.6
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    assert_same_answers(pickle.loads(pickle.dumps(model)), model, X)
    parts = make(cls, estimator=estimator, n_estimators=2, learning_rate=0.5, warm_start=True)
    assert_same_answers(parts.fit(X, y).set_params(n_estimators=4).fit(X, y), model, X)
    with pytest.raises(AttributeError, match="apply needs the built-in tree"):
        model.apply(X)
    with pytest.raises(TypeError, match="save needs the built-in tree"):
        model.save(tmp_path / "model.bin")


@members(takes_estimator)
def test_estimators_that_are_none(cls) -> None:
    for wrong in ("tree", StandardScaler(), DecisionTreeRegressor(), object()):
        with pytest.raises(TypeError, match="estimator must be a classifier"):
            make(cls, estimator=wrong).fit(*data_for(cls))


@members(takes_estimator)
def test_tree_and_estimator_cannot_take_turns(cls) -> None:
    model = make(cls, n_estimators=2, warm_start=True).fit(*data_for(cls))
    with pytest.raises(ValueError, match="weak learner must stay"):
        model.set_params(n_estimators=4, estimator=GaussianNB()).fit(*data_for(cls))


# Files.


@pytest.mark.parametrize("names", [False, True], ids=["numbers", "names"])
@members()
def test_a_loaded_model_is_the_same(cls, names, tmp_path) -> None:
    X, y = data_for(cls)
    labels, costs = names_of(cls)
    parameters = {"subsample": 0.8, **(costs if names else {})}
    y = labels[y] if names else y
    model = make(cls, **parameters).fit(X, y)
    model.save(tmp_path / "model.bin")
    loaded = badacost.load(tmp_path / "model.bin")
    assert type(loaded) is cls
    assert_same_model(loaded, model, X)
    np.testing.assert_array_equal(loaded.cost_matrix_, model.cost_matrix_)
    kept, found = model.get_params(), loaded.get_params()
    if takes_costs(cls):
        by_label = labelled_costs(kept.pop("cost_matrix"), model.classes_)
        assert found.pop("cost_matrix") == by_label
    assert kept == found
    loaded.set_params(warm_start=True, n_estimators=12).fit(X, y)
    assert_same_model(loaded, make(cls, **parameters, n_estimators=12).fit(X, y), X)


@members()
def test_damaged_files_are_refused(cls, tmp_path) -> None:
    """A byte without meaning may change; then the model is the same."""
    path = tmp_path / "model.bin"
    X, _ = data_for(cls)
    model = fitted(cls)
    model.save(path)
    whole = path.read_bytes()
    refused = 0
    for position in np.linspace(0, len(whole) - 1, 20).astype(int):
        path.write_bytes(whole[:position])
        with pytest.raises(ModelFileError):
            badacost.load(path)
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        path.write_bytes(flipped)
        try:
            assert_same_model(badacost.load(path), model, X)
        except ModelFileError:
            refused += 1
    assert refused > 10


ALTERATIONS: list[tuple[str, Any, str]] = [
    ("forest_table", lambda table: table[:, :1], "do not have a score for each class"),
    ("forest_tree_weights", lambda steps: -steps, "trees of negative weight"),
    ("stage_ends", lambda ends: ends[:-1], "rounds do not have the trees"),
    ("train_score", lambda curve: curve[:-1], "train_score"),
    ("parameters", lambda p: {**p, "learning_rate": -1}, "learning_rate must be"),
    ("parameters", lambda p: {**p, "colour": 1}, "unknown parameter 'colour'"),
    ("stop_reason", lambda reason: "whim", "reason to stop must be one of"),
    ("cost_matrix", lambda costs: -costs, "costs_from_pairs takes negative"),
]


@members()
def test_altered_files_are_refused(cls, tmp_path) -> None:
    path = tmp_path / "model.bin"
    fitted(cls).save(path)
    model = read_model(path)
    for name, edit, message in ALTERATIONS:
        header, arrays = dict(model.header), dict(model.arrays)
        part: Any = header if name in header else arrays
        part[name] = edit(part[name])
        write_model(path, model.kind, header, arrays)
        with pytest.raises(ModelFileError, match=message):
            badacost.load(path)


# Parameters.

CHANGED = {
    "n_estimators": 7, "learning_rate": 0.7, "max_depth": 3, "max_leaf_nodes": 9,
    "min_samples_split": 4, "min_samples_leaf": 3, "max_features": "sqrt", "criterion": "entropy",
    "binning": "exact", "max_bins": 17, "categorical_features": [1], "subsample": 0.6,
    "early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 4, "tol": 0.1,
    "warm_start": True, "callbacks": [print], "n_jobs": 2, "random_state": 5, "verbose": 1,
}  # fmt: skip


@members()
def test_parameters_survive_clone_and_set_params(cls) -> None:
    own = cls().get_params(deep=False)
    changed = {name: value for name, value in CHANGED.items() if name in own}
    assert set(CHANGED) - set(changed) == (set() if reweights(cls) else {"criterion"})
    for model in (cls(**changed), cls().set_params(**changed)):
        parameters, copied = model.get_params(deep=False), clone(model).get_params(deep=False)
        for name, value in changed.items():
            assert parameters[name] is value
            assert repr(copied[name]) == repr(value)
        assert repr(model).startswith(f"{cls.__name__}(")
        assert "learning_rate=0.7" in repr(model)
    assert repr(cls()) == f"{cls.__name__}()"
    defaults = BAdaCostClassifier().get_params()
    different = {name for name in changed if own[name] != defaults[name]}
    if reweights(cls):
        assert different == ({"learning_rate"} if cls is PIBoostClassifier else set())
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        cls().set_params(colour=1)


@members(takes_costs)
def test_costs_come_first(cls) -> None:
    costs = costs_for(2)
    assert cls(costs).cost_matrix is costs
    with pytest.raises(TypeError, match="positional"):
        cls(costs, 100)


@members()
def test_copies_predict_the_same_bits(cls) -> None:
    X, y = data_for(cls)
    model = fitted(cls)
    assert_same_model(pickle.loads(pickle.dumps(model)), model, X)
    assert_same_model(clone(model).fit(X, y), model, X)
    assert_same_model(model, make(cls).fit(X.astype(object), y), X)
    assert is_classifier(model)
    assert cls.__name__ in model._repr_html_()


@members()
def test_unfitted(cls, tmp_path) -> None:
    model = make(cls)
    X, y = data_for(cls)
    for method in ("predict", "cost_scores", "decision_function", "apply"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        model.save(tmp_path / "model.bin")
    expected = model.fit(X, y).predict(X)
    with pytest.raises(ValueError, match="1 class only"):
        model.fit(X, np.zeros(len(X)))
    np.testing.assert_array_equal(model.predict(X), expected)  # that of the earlier fit


WRONG: list[tuple[str, Any]] = [
    ("n_estimators", 0), ("n_estimators", 2.5), ("learning_rate", 0), ("learning_rate", np.inf),
    ("learning_rate", "0.1"), ("subsample", 0.0), ("subsample", 1.1), ("early_stopping", 1),
    ("validation_fraction", 0), ("n_iter_no_change", 0), ("tol", -1e-3), ("warm_start", 1),
    ("verbose", -1), ("callbacks", print), ("callbacks", ["print"]), ("max_depth", 0),
    ("max_leaf_nodes", 1), ("min_samples_split", 1), ("min_samples_leaf", 0),
    ("max_features", 0), ("max_features", "half"), ("criterion", "error"), ("binning", "none"),
    ("max_bins", 1000), ("categorical_features", "first"), ("n_jobs", "all"),
]  # fmt: skip


@members()
def test_wrong_parameters(cls) -> None:
    """The same sentence from every class."""
    X, y = data_for(cls)
    for name, wrong in WRONG:
        if not has(cls, name):
            continue
        sentences = set()
        for model in (make(cls, **{name: wrong}), BAdaCostClassifier(**{name: wrong})):
            with pytest.raises((TypeError, ValueError), match=f"^{name} must be") as caught:
                model.fit(X, y)
            sentences.add(f"{caught.type.__name__}: {caught.value}")
        assert len(sentences) == 1


@members()
def test_wrong_validation_data(cls) -> None:
    X, y = data(2)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"X_val": X}, "X_val and y_val belong together"),
        ({"sample_weight_val": np.ones(3)}, "sample_weight_val belongs to X_val and y_val"),
        ({"X_val": X[:, :2], "y_val": y}, "X has 2 features"),
        ({"X_val": X, "y_val": y + 7}, "y_val has labels that are not among the classes"),
    ]
    for validation, message in wrong:
        with pytest.raises(ValueError, match=message):
            make(cls).fit(*data_for(cls), **validation)


# Anything goes.


@st.composite
def problems(draw, most_classes: int):
    """Small data with ties, missing values, equal samples of different classes and odd weights."""
    k = draw(st.integers(2, most_classes))
    n = draw(st.integers(k, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-3, 4, (n, draw(st.integers(1, 3)))) * draw(st.sampled_from([1e-3, 1.0, 1e30]))
    X[rng.random(X.shape) < draw(st.sampled_from([0, 0.2]))] = np.nan
    y = rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    weight = draw(st.sampled_from([None, 10.0 ** rng.uniform(-8, 8, n)]))
    costs = 10.0 ** rng.uniform(-2, 2, (k, k)) * draw(st.sampled_from([1e-3, 1.0, 1e3]))
    parameters = {
        "learning_rate": draw(st.sampled_from([0.1, 1.0])),
        "max_depth": draw(st.sampled_from([1, 3])),
        "subsample": draw(st.sampled_from([0.5, 1.0])),
        "criterion": draw(st.sampled_from(["gini", "entropy"])),
    }
    return X, y, weight, costs * zero_one_costs(k), parameters


@pytest.mark.filterwarnings("ignore:sample_weight has a mean")
@members()
@given(random=st.data())
@settings(max_examples=15)
def test_any_small_problem(cls, random) -> None:
    X, y, weight, costs, parameters = random.draw(problems(2 if is_binary(cls) else 5))
    if takes_costs(cls):
        parameters["cost_matrix"] = costs
    parameters = {name: value for name, value in parameters.items() if has(cls, name)}
    model = make(cls, **{"n_estimators": 5, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, weight)
    unseen = np.random.default_rng(0).normal(scale=10, size=(20, X.shape[1]))
    for samples in (X, unseen):
        assert set(model.predict(samples)) <= set(y)
        for name, values in outputs(model, samples).items():
            assert np.isfinite(values).all(), name
    assert 1 <= model.n_estimators_ <= 5
    assert (model.estimator_weights_ > 0).all()
    assert np.isfinite(model.train_score_).all()
