"""Minimum-cost decisions: the rule itself, its calibrations, and its manners as an estimator."""

from __future__ import annotations

import pickle
from functools import partial

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import badacost
from badacost import BAdaCostClassifier, ModelFileError
from badacost.classifiers.calibration import TemperatureScaling
from badacost.classifiers.minimum_cost import MinimumCostClassifier
from badacost.costs import labelled_costs, zero_one_costs
from badacost.io.model_file import read_model, write_model
from badacost.metrics import average_cost, cost_scorer, savings
from badacost.tabular import TableClassifier

ASYMMETRIC = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])
NAMES = np.array(["ape", "bat", "cat"])
FRAME = pd.DataFrame(ASYMMETRIC, index=NAMES, columns=NAMES)
NESTED = {truth: dict(row) for truth, row in FRAME.iterrows()}
CALIBRATIONS = ["none", "sigmoid", "isotonic", "temperature"]
few = settings(max_examples=30)  # each with 30 samples
each_calibration = pytest.mark.parametrize("calibration", CALIBRATIONS)


def noisy(n: int = 400, n_classes: int = 3, seed: int = 0):
    """Classes that overlap, so that costs matter everywhere."""
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, class_sep=0.6, random_state=seed
    )
    return X, NAMES[y]


X, Y = noisy()


class Prophet(ClassifierMixin, BaseEstimator):
    """Its samples are the probabilities that it predicts."""

    def __init__(self, classes=(0, 1, 2)):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        return X


def deciding(costs, classes=None, **parameters) -> MinimumCostClassifier:
    """A classifier whose samples are probabilities."""
    classes = np.arange(len(costs)) if classes is None else np.asarray(classes)
    prophet = FrozenEstimator(Prophet(classes).fit(None, None))
    model = MinimumCostClassifier(prophet, costs, **parameters)
    return model.fit(np.full((1, len(classes)), 1 / len(classes)), classes[:1])


@st.composite
def beliefs_and_costs(draw):
    n_classes = draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.uniform(0.1, 10, (n_classes, n_classes))
    np.fill_diagonal(costs, 0.0)
    return rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.2, 1.0]))), 30), costs


@pytest.mark.parametrize(
    "estimator",
    [
        MinimumCostClassifier(),
        # One check has a class of 3 samples, fewer than the folds by default.
        MinimumCostClassifier(GaussianNB(), calibration="sigmoid", cv=2),
        MinimumCostClassifier(GaussianNB(), calibration="temperature", cv=2),
    ],
    ids=["default", "sigmoid", "temperature"],
)
def test_estimator_checks(estimator) -> None:
    check_estimator(estimator)


# The rule.


@few
@given(beliefs_and_costs())
def test_no_other_decision_is_cheaper(case) -> None:
    beliefs, costs = case
    model = deciding(costs)
    decisions, expected = model.predict(beliefs), model.predict_costs(beliefs)
    for belief, decision, row in zip(beliefs, decisions, expected, strict=True):
        by_hand = [
            sum(belief[truth] * costs[truth, answer] for truth in range(len(costs)))
            for answer in range(len(costs))
        ]
        assert row == pytest.approx(by_hand)
        assert row[decision] == row.min()


@few
@given(beliefs_and_costs())
def test_equal_costs_choose_the_most_probable(case) -> None:
    beliefs, costs = case
    for same in (None, zero_one_costs(len(costs)) * 3):
        model = deciding(zero_one_costs(len(costs))).set_params(cost_matrix=same)
        model.fit(beliefs[:1], [0])
        np.testing.assert_array_equal(model.predict(beliefs), beliefs.argmax(axis=1))


@few
@given(beliefs_and_costs(), st.integers(-30, 30))
def test_scale_of_costs_changes_no_decision(case, exponent) -> None:
    beliefs, costs = case
    one, other = deciding(costs), deciding(costs * 2.0**exponent)
    np.testing.assert_array_equal(one.predict(beliefs), other.predict(beliefs))
    np.testing.assert_array_equal(
        one.predict_costs(beliefs) * 2.0**exponent, other.predict_costs(beliefs)
    )


@few
@given(beliefs_and_costs(), st.randoms())
def test_order_of_classes_changes_no_decision(case, random) -> None:
    beliefs, costs = case
    order = list(range(len(costs)))
    random.shuffle(order)
    one, other = deciding(costs), deciding(costs[np.ix_(order, order)])
    np.testing.assert_array_equal(
        one.predict(beliefs), np.array(order)[other.predict(beliefs[:, order])]
    )


@few
@given(beliefs_and_costs(), st.lists(st.floats(0, 100), min_size=5, max_size=5))
def test_price_of_being_right_is_expected_but_decides_nothing(case, prices) -> None:
    beliefs, costs = case
    price = np.array(prices[: len(costs)])
    one, other = deciding(costs), deciding(costs + price[:, np.newaxis])
    expected = one.predict_costs(beliefs) + (beliefs @ price)[:, np.newaxis]
    np.testing.assert_allclose(other.predict_costs(beliefs), expected)
    np.testing.assert_allclose(other.cost_matrix_, costs + price[:, np.newaxis])
    ranked = np.sort(one.predict_costs(beliefs), axis=1)
    clear = ranked[:, 1] - ranked[:, 0] > 1e-9
    np.testing.assert_array_equal(one.predict(beliefs)[clear], other.predict(beliefs)[clear])


@few
@given(beliefs_and_costs())
def test_decision_function(case) -> None:
    beliefs, costs = case
    model = deciding(costs)
    values, expected = model.decision_function(beliefs), model.predict_costs(beliefs)
    if len(costs) == 2:
        np.testing.assert_array_equal(values, expected[:, 0] - expected[:, 1])
        np.testing.assert_array_equal(values > 0, model.predict(beliefs) == 1)
    else:
        np.testing.assert_array_equal(values, -expected)


def test_costs_change_predictions() -> None:
    by_costs = {
        name: MinimumCostClassifier(cost_matrix=labelled_costs(costs, NAMES)).fit(X, Y).predict(X)
        for name, costs in {
            "none": None,
            "given": ASYMMETRIC,
            "transposed": ASYMMETRIC.T,
            "costly bat": [[0, 1, 1], [20, 0, 20], [1, 1, 0]],
            "costly answer bat": [[0, 20, 1], [1, 0, 1], [1, 20, 0]],
        }.items()
    }
    assert (by_costs["given"] != by_costs["none"]).mean() > 0.1
    assert (by_costs["given"] != by_costs["transposed"]).mean() > 0.1
    bats = {name: (predicted == "bat").mean() for name, predicted in by_costs.items()}
    assert bats["costly answer bat"] + 0.1 < bats["none"] < bats["costly bat"] - 0.3


@pytest.mark.parametrize("costs", [FRAME, FRAME.iloc[::-1, [1, 2, 0]], NESTED], ids=str)
def test_forms_of_costs(costs) -> None:
    model = MinimumCostClassifier(GaussianNB(), costs).fit(X, Y)
    np.testing.assert_array_equal(model.cost_matrix_, ASYMMETRIC)
    np.testing.assert_array_equal(model.classes_, NAMES)
    assert set(model.predict(X)) <= set(NAMES)


def test_labelled_costs_may_price_absent_classes() -> None:
    known = Y != "bat"
    model = MinimumCostClassifier(GaussianNB(), NESTED).fit(X[known], Y[known])
    np.testing.assert_array_equal(model.cost_matrix_, [[0, 2], [1, 0]])
    with pytest.raises(ValueError, match=r"costs have shape \(3, 3\) where the 2 classes"):
        MinimumCostClassifier(GaussianNB(), ASYMMETRIC).fit(X[known], Y[known])


def test_knowing_the_costs_pays() -> None:
    data, y = noisy(1500)
    costs = pd.DataFrame([[0, 1, 1], [1, 0, 1], [20, 20, 0]], NAMES, NAMES)
    train, test = slice(700), slice(700, None)
    inner = LogisticRegression()
    blind = inner.fit(data[train], y[train]).predict(data[test])
    model = MinimumCostClassifier(inner, costs).fit(data[train], y[train])
    paid = average_cost(y[test], model.predict(data[test]), costs)
    assert paid < 0.5 * average_cost(y[test], blind, costs)
    assert model.predict_costs(data[test]).min(axis=1).mean() == pytest.approx(paid, rel=0.15)


# Calibration.


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_calibration_as_scikit_learn(method, n_classes) -> None:
    data, y = noisy(n_classes=n_classes)
    weight = np.random.default_rng(0).uniform(0.2, 2, len(y))
    ours = MinimumCostClassifier(GaussianNB(), calibration=method, cv=4)
    theirs = CalibratedClassifierCV(GaussianNB(), method=method, cv=4, ensemble=False)
    np.testing.assert_allclose(
        ours.fit(data, y, sample_weight=weight).predict_proba(data),
        theirs.fit(data, y, sample_weight=weight).predict_proba(data),
    )


@pytest.mark.parametrize("calibration", CALIBRATIONS[1:])
def test_calibration_helps_an_overconfident_forest(calibration) -> None:
    data, y = noisy(1200)
    train, test = slice(600), slice(600, None)
    forest = RandomForestClassifier(10, random_state=0)
    plain = MinimumCostClassifier(forest, NESTED).fit(data[train], y[train])
    model = clone(plain).set_params(calibration=calibration).fit(data[train], y[train])
    before, after = (log_loss(y[test], m.predict_proba(data[test])) for m in (plain, model))
    assert after < before - 0.2
    paid = [average_cost(y[test], m.predict(data[test]), ASYMMETRIC) for m in (plain, model)]
    assert paid[1] < paid[0]
    if calibration == "temperature":
        assert model.temperature_ > 1
        most = plain.predict_proba(data[test]).argmax(axis=1)
        scaled = model.predict_proba(data[test])
        np.testing.assert_allclose(scaled.max(axis=1), scaled[np.arange(len(most)), most])


def test_one_model_predicts_and_folds_only_calibrate() -> None:
    model = MinimumCostClassifier(GaussianNB(), calibration="temperature").fit(X, Y)
    alone = GaussianNB().fit(X, Y)
    np.testing.assert_array_equal(model.estimator_.theta_, alone.theta_)
    unseen = cross_val_predict(alone, X, Y, cv=StratifiedKFold(5), method="predict_proba")
    codes = np.searchsorted(NAMES, Y)
    order = np.concatenate([test for _, test in StratifiedKFold(5).split(X, Y)])
    expected = TemperatureScaling.fit(unseen[order], codes[order]).temperature_
    assert model.temperature_ == pytest.approx(expected)


@each_calibration
@pytest.mark.parametrize(
    "inner",
    [
        BAdaCostClassifier(NESTED, n_estimators=20, max_depth=2),
        LogisticRegression(class_weight={"ape": 1, "bat": 2, "cat": 3}),
        make_pipeline(StandardScaler(), GaussianNB()),
    ],
    ids=["booster", "class weights", "pipeline"],
)
def test_estimators_see_their_own_labels(inner, calibration) -> None:
    """Parameters of the inner classifier that name classes stay valid in every fold."""
    model = MinimumCostClassifier(inner, FRAME, calibration=calibration, cv=3).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert savings(Y, model.predict(X), FRAME) > 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_values_can_be_calibrated(n_classes) -> None:
    data, y = noisy(n_classes=n_classes)
    model = MinimumCostClassifier(Perceptron(), calibration="sigmoid", cv=3).fit(data, y)
    np.testing.assert_allclose(model.predict_proba(data).sum(axis=1), 1)
    theirs = CalibratedClassifierCV(Perceptron(), cv=3, ensemble=False).fit(data, y)
    np.testing.assert_allclose(model.predict_proba(data), theirs.predict_proba(data))


@pytest.mark.parametrize(
    "cv",
    [
        3,
        None,
        KFold(3, shuffle=True, random_state=0),
        ShuffleSplit(4, test_size=0.3, random_state=0),
        [(np.arange(200), np.arange(200, 400))],
    ],
    ids=["int", "None", "KFold", "ShuffleSplit", "list"],
)
@pytest.mark.parametrize("calibration", CALIBRATIONS[1:])
def test_kinds_of_folds(cv, calibration) -> None:
    model = MinimumCostClassifier(GaussianNB(), calibration=calibration, cv=cv).fit(X, Y)
    assert model.score(X, Y) > 0.5


# Frozen estimators.


@each_calibration
def test_frozen_estimator(calibration) -> None:
    trained = RandomForestClassifier(5, random_state=0).fit(X[:200], Y[:200])
    before = trained.predict_proba(X)
    model = MinimumCostClassifier(FrozenEstimator(trained), NESTED, calibration=calibration)
    model.fit(X[200:], Y[200:], sample_weight=np.ones(200))
    assert model.estimator_.estimator is trained
    np.testing.assert_array_equal(trained.predict_proba(X), before)
    assert np.array_equal(model.predict_proba(X), before) == (calibration == "none")
    assert hasattr(model, "temperature_") == (calibration == "temperature")
    if calibration == "temperature":
        codes = np.searchsorted(NAMES, Y[200:])
        expected = TemperatureScaling.fit(before[200:], codes).temperature_
        assert model.temperature_ == pytest.approx(expected)


def test_frozen_estimator_and_other_classes() -> None:
    trained = FrozenEstimator(GaussianNB().fit(X, Y))
    two = Y != "bat"
    for calibration in ("none", "temperature"):
        model = MinimumCostClassifier(trained, NESTED, calibration=calibration)
        np.testing.assert_array_equal(model.fit(X[two], Y[two]).classes_, NAMES)
    with pytest.raises(ValueError, match=r"no sample of class 'bat' to calibrate with: give some"):
        model.set_params(calibration="sigmoid").fit(X[two], Y[two])
    with pytest.raises(ValueError, match=r"classes \('dog'\): leave out those rows"):
        model.fit(X[:2], ["ape", "dog"])
    with pytest.raises(NotFittedError):
        MinimumCostClassifier(FrozenEstimator(GaussianNB())).fit(X, Y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", CALIBRATIONS[1:])
def test_frozen_estimator_with_classes_that_are_not_sorted(calibration, n_classes) -> None:
    data, y = noisy(n_classes=n_classes)
    labels = pd.Categorical(y, np.unique(y)[::-1], ordered=True)
    probabilities = []
    for target in (y, labels):
        trained = BAdaCostClassifier(n_estimators=4, max_depth=2).fit(data, target)
        model = MinimumCostClassifier(FrozenEstimator(trained), calibration=calibration)
        probabilities.append(model.fit(data, target).predict_proba(data))
    np.testing.assert_array_equal(model.classes_, np.unique(y)[::-1])
    np.testing.assert_allclose(probabilities[1][:, ::-1], probabilities[0], rtol=1e-4)


# Errors.


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"calibration": "platt"}, ValueError, "calibration must be one of 'none', 'sigmoid'"),
        ({"calibration": "sigmoid", "cv": 1}, ValueError, "cv must be an integer at least 2"),
        ({"estimator": Perceptron()}, TypeError, 'Perceptron has no .* set calibration="sigmoid"'),
        ({"estimator": Ridge()}, TypeError, "Ridge has no predict_proba: give a classifier that"),
        (
            {"calibration": "temperature", "estimator": Perceptron()},
            TypeError,
            'set calibration="sigmoid"',
        ),
        ({"cost_matrix": [[0, 1], [2, 0]]}, ValueError, r"costs have shape \(2, 2\) where the 3"),
        (
            {"calibration": "isotonic", "cv": 200},
            ValueError,
            r"class '(ape|bat|cat)' has \d+ samples for 200 folds: set cv to a smaller number, "
            'or calibration to "none"',
        ),
        (
            {"calibration": "isotonic", "cv": [(np.flatnonzero(Y != "bat"), np.arange(400))]},
            ValueError,
            "a fold of cv trains without class 'bat'",
        ),
    ],
)
def test_refused_parameters(parameters, error, message) -> None:
    with pytest.raises(error, match=message):
        MinimumCostClassifier(**parameters).fit(X, Y)


def test_refused_data() -> None:
    model = MinimumCostClassifier(GaussianNB())
    with pytest.raises(ValueError, match="it has 1 class only"):
        model.fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="class 'cat' has no sample of positive weight"):
        model.fit(X, Y, sample_weight=Y != "cat")
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        model.fit(X, Y, sample_weight=-np.ones(len(Y)))
    with pytest.raises(TypeError, match="KNeighborsClassifier takes no sample_weight"):
        MinimumCostClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        model.predict_costs(X)


def test_failed_fit_leaves_the_model_alone() -> None:
    model = MinimumCostClassifier(GaussianNB(), NESTED).fit(X, Y)
    before = model.predict_costs(X)
    with pytest.raises(ValueError, match="all mistakes on class 'ape' are free"):
        model.set_params(cost_matrix=[[0, 0, 0], [1, 0, 1], [1, 1, 0]]).fit(X, Y)
    np.testing.assert_array_equal(model.predict_costs(X), before)


# Weights and other metadata.


@each_calibration
def test_weights_are_repetitions(calibration) -> None:
    repeat = np.random.default_rng(0).integers(0, 4, 200)
    rows = np.arange(400).repeat(np.concatenate([repeat, np.ones(200, int)]))
    weight = np.concatenate([repeat, np.ones(200)])
    halves = [(np.flatnonzero(r < 200), np.flatnonzero(r >= 200)) for r in (np.arange(400), rows)]
    weighted, repeated = (
        MinimumCostClassifier(GaussianNB(), NESTED, calibration=calibration, cv=[h, h[::-1]])
        for h in halves
    )
    weighted.fit(X, Y, sample_weight=weight)
    repeated.fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        weighted.predict_costs(X), repeated.predict_costs(X), rtol=1e-3, atol=1e-3
    )
    assert (
        np.abs(weighted.predict_costs(X) - clone(weighted).fit(X, Y).predict_costs(X)).max() > 0.1
    )


class Recorder(GaussianNB):
    """Remembers, for the whole class, what each fit was given."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, tag=None, rows=None):
        Recorder.seen.append((len(y), sample_weight, tag, rows))
        return super().fit(X, y, sample_weight)


def test_fit_parameters_follow_the_folds() -> None:
    Recorder.seen.clear()
    weight = np.linspace(1, 2, 400)
    model = MinimumCostClassifier(Recorder(), calibration="temperature", cv=2)
    model.fit(X, Y, sample_weight=weight, tag="zebra", rows=np.arange(400))
    sizes = [n for n, *_ in Recorder.seen]
    assert sorted(sizes) == [200, 200, 400]
    for n, given_weight, tag, rows in Recorder.seen:
        assert tag == "zebra"
        assert len(rows) == n
        np.testing.assert_array_equal(given_weight, weight[rows])


@pytest.mark.parametrize("calibration", ["none", "sigmoid", "temperature"])
def test_routed_metadata(calibration) -> None:
    weight = np.random.default_rng(0).uniform(0.1, 2, 400)
    groups = np.arange(400) % 5
    plain = MinimumCostClassifier(GaussianNB(), NESTED, calibration=calibration)
    by_hand = clone(plain).set_params(
        cv=[*GroupKFold(5).split(X, Y, groups)]
    ).fit(X, Y, sample_weight=weight)  # fmt: skip
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        routed = clone(plain).set_params(estimator=inner, cv=GroupKFold(5))
        routed.fit(X, Y, sample_weight=weight, groups=groups)
        np.testing.assert_allclose(routed.predict_costs(X), by_hand.predict_costs(X))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            clone(plain).fit(X, Y, sample_weight=weight)
        default = MinimumCostClassifier(calibration=calibration).fit(X, Y, sample_weight=weight)
        requested = clone(routed).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, requested)
        pipeline.fit(X, Y, sample_weight=weight, groups=groups)
        inside = clone(plain).set_params(estimator=make_pipeline(scaler, inner), cv=GroupKFold(5))
        inside.fit(X, Y, sample_weight=weight, groups=groups)
    np.testing.assert_allclose(pipeline.predict_proba(X), routed.predict_proba(X), rtol=1e-3)
    np.testing.assert_allclose(inside.predict_proba(X), routed.predict_proba(X), rtol=1e-3)
    unrouted = MinimumCostClassifier(calibration=calibration).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(default.predict_proba(X), unrouted.predict_proba(X))


# As an estimator.


def test_grid_search_over_calibration_and_inner_parameters() -> None:
    search = GridSearchCV(
        make_pipeline(
            StandardScaler(), MinimumCostClassifier(DecisionTreeClassifier(random_state=0), NESTED)
        ),
        {
            "minimumcostclassifier__calibration": ["none", "temperature"],
            "minimumcostclassifier__estimator__max_depth": [3, None],
        },
        scoring=cost_scorer(NESTED),
        cv=3,
        error_score="raise",
    ).fit(X, Y)
    scores = search.cv_results_["mean_test_score"].reshape(2, 2)
    assert (scores < 0).all()
    assert scores[1, 1] > scores[0, 1]  # a full tree is certain of everything
    assert search.best_score_ == scores.max()
    assert search.score(X, Y) == -average_cost(Y, search.predict(X), NESTED)


@each_calibration
def test_copies_predict_the_same_bits(calibration) -> None:
    model = MinimumCostClassifier(GaussianNB(), FRAME, calibration=calibration).fit(X, Y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_costs(X), model.predict_costs(X))
    again = clone(model)
    assert again.get_params().keys() == model.get_params().keys()
    assert not hasattr(again, "estimator_")
    np.testing.assert_array_equal(again.fit(X, Y).predict_costs(X), model.predict_costs(X))


@each_calibration
def test_data_frames(calibration) -> None:
    data = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(400)[::-1])
    labels = pd.Series(Y, index=data.index)
    model = MinimumCostClassifier(GaussianNB(), FRAME, calibration=calibration).fit(data, labels)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcdef"))
    assert model.n_features_in_ == 6
    plain = clone(model).fit(X, Y)
    np.testing.assert_array_equal(model.predict(data), plain.predict(X))
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict(data.rename(columns={"a": "z"}))
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("calibration", ["none", "temperature"])
def test_missing_values_as_the_estimator_likes(calibration) -> None:
    holes = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = MinimumCostClassifier(tree, calibration=calibration)
    assert get_tags(model).input_tags.allow_nan
    assert model.fit(holes, Y).score(holes, Y) > 0.4
    assert not get_tags(MinimumCostClassifier(GaussianNB())).input_tags.allow_nan
    with pytest.raises(ValueError, match="NaN"):
        MinimumCostClassifier(GaussianNB(), calibration=calibration).fit(holes, Y)


def test_precomputed_kernels_are_split_on_both_sides() -> None:
    near = KNeighborsClassifier(9, metric="precomputed")
    distance = np.linalg.norm(X[:, np.newaxis] - X, axis=2)
    model = MinimumCostClassifier(near, NESTED, calibration="temperature").fit(distance, Y)
    other = MinimumCostClassifier(
        KNeighborsClassifier(9), NESTED, calibration="temperature"
    ).fit(X, Y)  # fmt: skip
    assert model.temperature_ == pytest.approx(other.temperature_)


def test_random_state() -> None:
    forest = RandomForestClassifier(3)
    model = MinimumCostClassifier(forest, NESTED, calibration="temperature", cv=3, random_state=7)
    first, second = (clone(model).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_costs(X), second.predict_costs(X))
    assert first.temperature_ == second.temperature_
    assert forest.random_state is None
    own = model.set_params(estimator__random_state=3).fit(X, Y)
    assert own.estimator_.random_state == 3
    bayes = MinimumCostClassifier(GaussianNB(), calibration="temperature", cv=3)
    temperatures = {
        seed: bayes.set_params(random_state=seed).fit(X, Y).temperature_ for seed in (None, 0, 1)
    }
    assert len(set(temperatures.values())) == 3  # seeds shuffle the folds


def test_folds_in_parallel() -> None:
    model = MinimumCostClassifier(GaussianNB(), NESTED, calibration="isotonic")
    serial = clone(model).fit(X, Y).predict_costs(X)
    with joblib.parallel_config(backend="threading"):
        parallel = clone(model).set_params(n_jobs=2).fit(X, Y).predict_costs(X)
    np.testing.assert_array_equal(serial, parallel)


@pytest.mark.parametrize(
    "convert",
    [
        lambda data: data.tolist(),
        scipy.sparse.csr_array,
        scipy.sparse.coo_matrix,
        lambda data: pl.DataFrame(data, schema=[*"abcdef"]),
    ],
    ids=["list", "csr", "coo", "polars"],
)
def test_kinds_of_data(convert) -> None:
    model = MinimumCostClassifier(LogisticRegression(), NESTED, calibration="temperature", cv=3)
    expected = clone(model).fit(X, Y)
    given = convert(X)
    np.testing.assert_allclose(model.fit(given, Y).predict_costs(given), expected.predict_costs(X))


# Files.

booster = partial(BAdaCostClassifier, NESTED, n_estimators=4, max_depth=2, random_state=0)


@pytest.mark.parametrize("calibration", ["none", "temperature"])
@pytest.mark.parametrize("costs", [None, NESTED, FRAME + 0.5])
def test_a_loaded_model_is_the_same(calibration, costs, tmp_path) -> None:
    data = pd.DataFrame(X, columns=list("abcdef"))
    model = MinimumCostClassifier(
        booster(), costs, calibration=calibration, cv=np.int64(3), n_jobs=1, random_state=7
    ).fit(data, Y)
    model.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    assert type(loaded) is MinimumCostClassifier
    np.testing.assert_array_equal(loaded.predict_costs(data), model.predict_costs(data))
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    np.testing.assert_array_equal(loaded.cost_matrix_, model.cost_matrix_)
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    assert (loaded.calibrator_ is None) == (calibration == "none")
    assert (loaded.cost_matrix is None) == (costs is None)
    for name in ("calibration", "cv", "n_jobs", "random_state"):
        assert loaded.get_params()[name] == model.get_params()[name]
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    refitted = loaded.fit(data, Y).predict_costs(data)
    np.testing.assert_array_equal(refitted, model.predict_costs(data))
    table = TableClassifier.of_fitted(model)  # as the command line uses it
    np.testing.assert_array_equal(table.predict(data), model.predict(data))


def test_frozen_and_nested_models_are_saved(tmp_path) -> None:
    data = pd.DataFrame(X, columns=list("abcdef"))
    trained = booster().fit(data, Y)
    frozen = MinimumCostClassifier(FrozenEstimator(trained), NESTED, cv=KFold(2)).fit(data, Y)
    twice = MinimumCostClassifier(FrozenEstimator(frozen), NESTED).fit(data, Y)
    for model in (frozen, twice, MinimumCostClassifier(TableClassifier(booster())).fit(data, Y)):
        model.save(tmp_path / "model")
        loaded = badacost.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
        assert type(loaded.estimator_) is type(model.estimator_)
        assert type(loaded.estimator) is type(model.estimator)
    table = TableClassifier(MinimumCostClassifier(booster(), NESTED)).fit(data, Y)
    table.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(data), table.predict(data))
    table = TableClassifier.of_fitted(twice)
    np.testing.assert_array_equal(table.predict(data), twice.predict(data))
    inside_out = MinimumCostClassifier(TableClassifier(booster())).fit(data, Y)
    with pytest.raises(TypeError, match="put the other one into it"):
        TableClassifier.of_fitted(inside_out)


def test_what_no_file_holds(tmp_path) -> None:
    with pytest.raises(NotFittedError):
        MinimumCostClassifier(booster()).save(tmp_path / "model")
    with pytest.raises(TypeError, match=r"cannot hold a GaussianNB: use joblib\.dump"):
        MinimumCostClassifier(GaussianNB()).fit(X, Y).save(tmp_path / "model")
    for calibration in ("sigmoid", "isotonic"):
        model = MinimumCostClassifier(booster(), calibration=calibration).fit(X, Y)
        with pytest.raises(TypeError, match=r"calibration other than .*: use joblib\.dump"):
            model.save(tmp_path / "model")
    model = MinimumCostClassifier(booster()).fit(X, Y).set_params(n_jobs="all")
    with pytest.raises(TypeError, match="n_jobs must be"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def calibrated_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "calibrated"
    MinimumCostClassifier(booster(), calibration="temperature").fit(X, Y).save(path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": {"temperature_": 0.0, "smoothing_": 0.1}},
        {"temperature": {"temperature_": 1.0, "smoothing_": 0}},
        {"temperature": {"temperature_": 1.0}},
        {"temperature": 1.0},
        {"parameters": None},
        {"parameters": {"estimator": "GaussianNB"}},
        {"parameters": {"calibration": "magic"}},
        {"parameters": {"cv": [[1, 2]]}},
        {"parameters": {"random_state": -1}},
        {"estimator": None},
        {"estimator": {"kind": "Detector", "header": {}}},
    ],
    ids=str,
)
def test_altered_files_are_refused(change, calibrated_file, tmp_path) -> None:
    path = tmp_path / "model"
    contents = read_model(calibrated_file)
    write_model(path, contents.kind, contents.header | change, contents.arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(path)
    arrays = {**contents.arrays, "cost_matrix": -ASYMMETRIC}
    write_model(path, contents.kind, contents.header, arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(path)


def test_costs_of_nested_models_are_not_copied(tmp_path) -> None:
    inner = MinimumCostClassifier(booster(), NESTED, calibration="none")
    MinimumCostClassifier(inner, calibration="none").fit(X, Y).save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    assert loaded.estimator is not loaded.estimator_
    assert not hasattr(loaded.estimator, "classes_")
    assert loaded.estimator.cost_matrix is loaded.estimator_.cost_matrix
    assert loaded.estimator.estimator is loaded.estimator_.estimator


class Unnamed(LogisticRegression):
    """A classifier that does not tell its classes."""

    def fit(self, X, y):
        super().fit(X, y)
        self.known_ = self.__dict__.pop("classes_")
        return self

    def predict_proba(self, X):
        self.classes_ = self.known_
        try:
            return super().predict_proba(X)
        finally:
            del self.classes_


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_classifiers_that_do_not_tell_their_classes(calibration) -> None:
    """Columns are in sorted order, as scikit-learn has them."""
    X, y = noisy(n_classes=3)
    codes = np.unique(y, return_inverse=True)[1]
    labels = pd.Categorical.from_codes(codes, ["m", "z", "a"], ordered=True)
    model = MinimumCostClassifier(Unnamed(), calibration=calibration).fit(X, labels)
    expected = MinimumCostClassifier(LogisticRegression(), calibration=calibration).fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
