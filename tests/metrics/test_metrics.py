"""Metrics take C[truth, prediction] as given; scorers hand them to scikit-learn."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.inspection import permutation_importance
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from badacost import ABSTAIN, MinimumCostClassifier
from badacost.costs import zero_one_costs
from badacost.metrics import (
    average_cost,
    charged_costs,
    cost_confusion_matrix,
    cost_scorer,
    given_costs,
    savings,
    total_cost,
)

ASYMMETRIC = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])
NAMES = ["ape", "bat", "cat"]
NESTED = {
    truth: {other: ASYMMETRIC[i, j] for j, other in enumerate(NAMES)}
    for i, truth in enumerate(NAMES)
}
FRAME = pd.DataFrame(ASYMMETRIC, index=NAMES, columns=NAMES)
TRUTH = np.array(NAMES)[[0, 0, 1, 1, 2, 2, 2]]
GUESS = np.array(NAMES)[[0, 1, 1, 0, 2, 1, 0]]  # costs 0 1 0 3 0 9 1
METRICS = [average_cost, total_cost, savings, cost_confusion_matrix]
X, Y = load_iris(return_X_y=True)


@st.composite
def decisions(draw):
    """Costs with a price for being right, truths, decisions and weights."""
    n_classes = draw(st.integers(2, 5))
    n = draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.uniform(0.1, 10, (n_classes, n_classes)).round(2)
    np.fill_diagonal(costs, 0.0)
    costs += draw(st.sampled_from([0.0, 1.0])) * rng.uniform(0, 3, (n_classes, 1))
    truth, guess = rng.integers(0, n_classes, (2, n))
    return costs, truth, guess, rng.uniform(0.1, 2, n)


@given(decisions())
def test_costs_are_charged_as_given(case) -> None:
    costs, truth, guess, weight = case
    labels = range(len(costs))
    charged = costs[truth, guess]
    assert average_cost(truth, guess, costs, labels=labels) == pytest.approx(charged.mean())
    assert total_cost(truth, guess, costs, labels=labels) == pytest.approx(charged.sum())
    weights = {"labels": labels, "sample_weight": weight}
    assert average_cost(truth, guess, costs, **weights) == pytest.approx(
        np.average(charged, weights=weight)
    )
    assert total_cost(truth, guess, costs, **weights) == pytest.approx(charged @ weight)
    counts = confusion_matrix(truth, guess, labels=labels, sample_weight=weight)
    np.testing.assert_allclose(
        cost_confusion_matrix(truth, guess, costs, **weights), counts * costs, atol=1e-12
    )


@given(decisions())
def test_savings(case) -> None:
    costs, truth, guess, weight = case
    labels = range(len(costs))
    constants = [np.full_like(truth, answer) for answer in labels]
    for weights in (None, weight):
        keywords = {"labels": labels, "sample_weight": weights}
        base = min(total_cost(truth, constant, costs, **keywords) for constant in constants)
        saved = savings(truth, guess, costs, **keywords)
        paid = total_cost(truth, guess, costs, **keywords)
        if base > 0:
            assert saved == pytest.approx(1 - paid / base)
            best = max(savings(truth, constant, costs, **keywords) for constant in constants)
            assert best == pytest.approx(0)
            assert savings(truth, truth, costs, **keywords) >= saved - 1e-12
        else:
            assert saved == (0 if paid == 0 else -np.inf)
        assert saved <= 1
        if not np.diag(costs).any() and len(set(truth)) > 1:
            assert savings(truth, truth, costs, **keywords) == 1


@given(decisions(), st.floats(1e-6, 1e6))
def test_scale_of_costs(case, scale) -> None:
    costs, truth, guess, weight = case
    keywords = {"labels": range(len(costs)), "sample_weight": weight}
    assert average_cost(truth, guess, costs * scale, **keywords) == pytest.approx(
        scale * average_cost(truth, guess, costs, **keywords)
    )
    assert savings(truth, guess, costs * scale, **keywords) == pytest.approx(
        savings(truth, guess, costs, **keywords), abs=1e-9
    )


@given(decisions(), st.randoms())
def test_order_of_classes(case, random) -> None:
    costs, truth, guess, weight = case
    order = list(range(len(costs)))
    random.shuffle(order)
    shuffled = costs[np.ix_(order, order)]
    for metric in METRICS:
        one = metric(truth, guess, costs, labels=sorted(order), sample_weight=weight)
        other = metric(truth, guess, shuffled, labels=order, sample_weight=weight)
        if metric is cost_confusion_matrix:
            one = one[np.ix_(order, order)]
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_rows_are_the_truth() -> None:
    assert average_cost(TRUTH, GUESS, ASYMMETRIC) == pytest.approx(14 / 7)
    assert average_cost(GUESS, TRUTH, ASYMMETRIC.T) == pytest.approx(14 / 7)
    assert average_cost(TRUTH, GUESS, ASYMMETRIC.T) == pytest.approx(7 / 7)
    assert savings(TRUTH, GUESS, ASYMMETRIC) == pytest.approx(1 - 14 / 6)  # always "cat": 2 2 1 1


@pytest.mark.parametrize(
    "costs",
    [
        ASYMMETRIC.tolist(),
        NESTED,
        FRAME,
        FRAME.loc[["cat", "ape", "bat"], ["bat", "cat", "ape"]],
        {t: {p: c for p, c in row.items() if p != t} for t, row in NESTED.items()},
    ],
    ids=["list", "mapping", "frame", "shuffled frame", "mapping without diagonal"],
)
def test_forms_of_costs(costs) -> None:
    for metric in (average_cost, total_cost, savings):
        assert metric(TRUTH, GUESS, costs) == pytest.approx(metric(TRUTH, GUESS, ASYMMETRIC))
    np.testing.assert_array_equal(
        cost_confusion_matrix(TRUTH, GUESS, costs, labels=NAMES),
        cost_confusion_matrix(TRUTH, GUESS, ASYMMETRIC),
    )


def test_a_frame_without_labels_of_rows_is_refused() -> None:
    for metric in (average_cost, total_cost, savings, cost_confusion_matrix):
        with pytest.raises(TypeError, match="data frame whose rows have no labels"):
            metric(TRUTH, GUESS, pl.DataFrame(ASYMMETRIC, schema=NAMES))


def test_no_costs_count_mistakes() -> None:
    assert total_cost(TRUTH, GUESS, None) == 4
    assert average_cost(TRUTH, GUESS, None) == average_cost(TRUTH, GUESS, zero_one_costs(3))
    assert average_cost([7, 7], [7, 7], None) == 0


@pytest.mark.parametrize("form", [np.asarray, pd.Series, list, lambda y: pd.Categorical(y)])
def test_labels_of_any_container(form) -> None:
    assert total_cost(form(TRUTH), form(GUESS), NESTED) == 14
    assert total_cost(form(TRUTH), GUESS.astype(object), FRAME) == 14


@pytest.mark.parametrize("form", ["array", "mapping", "frame"])
def test_price_of_being_right(form) -> None:
    costs = ASYMMETRIC + np.array([[0.5], [0.25], [1.0]])
    labelled = pd.DataFrame(costs, NAMES, NAMES).loc[["bat", "ape", "cat"]]
    costs_given = {"array": costs, "frame": labelled, "mapping": labelled.T.to_dict()}[form]
    np.testing.assert_array_equal(given_costs(costs_given, NAMES), costs)
    assert charged_costs is given_costs
    assert total_cost(TRUTH, GUESS, costs_given) == 14 + 2 * 0.5 + 2 * 0.25 + 3 * 1.0
    assert total_cost(TRUTH, TRUTH, costs_given) == 2 * 0.5 + 2 * 0.25 + 3 * 1.0
    assert 0 < savings(TRUTH, TRUTH, costs_given) < 1


def test_weights_times_costs_beyond_the_range() -> None:
    with pytest.raises(ValueError, match="sample_weight times the costs overflows: divide"):
        cost_confusion_matrix([0, 1], [1, 0], [[0, 1e200], [1, 0]], sample_weight=[1e200, 1e-200])
    with pytest.raises(ValueError, match="sample_weight times the costs overflows: divide"):
        savings([0, 1], [0, 1], [[0, 1e200], [1, 0]], sample_weight=[1e200, 1e-200])


def test_dates_are_not_compared_with_other_labels() -> None:
    dates = np.array(["2024-05-31", "2024-06-01"], "M8[D]")
    assert average_cost(dates, dates[::-1]) == 1.0
    asked = np.array([dates[0], ABSTAIN], dtype=object)
    assert average_cost(dates, asked, abstain=3) == 1.5
    for y_true, y_pred in ((dates, [0, 1]), (["a", "b"], dates)):
        with pytest.raises(TypeError, match="y_true and y_pred are dates and other labels: give"):
            average_cost(y_true, y_pred)


def test_weights_are_repetitions() -> None:
    repeat = [1, 0, 2, 3, 1, 2, 0]
    for metric in METRICS:
        np.testing.assert_allclose(
            metric(TRUTH, GUESS, NESTED, sample_weight=repeat),
            metric(TRUTH.repeat(repeat), GUESS.repeat(repeat), NESTED),
        )


def test_shares_of_the_costs() -> None:
    charged = cost_confusion_matrix(TRUTH, GUESS, ASYMMETRIC)
    np.testing.assert_array_equal(charged, [[0, 1, 0], [3, 0, 0], [1, 9, 0]])
    shares = {
        kind: cost_confusion_matrix(TRUTH, GUESS, ASYMMETRIC, normalize=kind)
        for kind in ("all", "true", "pred")
    }
    np.testing.assert_allclose(shares["all"], charged / 14)
    np.testing.assert_allclose(shares["true"], [[0, 1, 0], [1, 0, 0], [0.1, 0.9, 0]])
    np.testing.assert_allclose(shares["pred"], [[0, 0.1, 0], [0.75, 0, 0], [0.25, 0.9, 0]])


def test_order_of_the_confusion_matrix() -> None:
    charged = cost_confusion_matrix(TRUTH, GUESS, FRAME)
    turned = [2, 0, 1]
    frame = FRAME.iloc[turned]
    np.testing.assert_array_equal(
        cost_confusion_matrix(TRUTH, GUESS, frame), charged[np.ix_(turned, turned)]
    )
    assert cost_confusion_matrix(TRUTH[:2], GUESS[:2], FRAME).shape == (3, 3)
    assert cost_confusion_matrix(TRUTH[:2], GUESS[:2], FRAME, labels=NAMES[:2]).shape == (2, 2)


def test_nothing_to_save() -> None:
    costs = [[0, 2], [1, 0]]
    assert savings([0, 0], [0, 0], costs, labels=[0, 1]) == 0
    assert savings([0, 0], [0, 1], costs) == -np.inf


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (TRUTH[:4], GUESS[:4], ASYMMETRIC),
            ValueError,
            r"3 columns .* 2 classes: pass labels=",
        ),
        ((TRUTH, GUESS, [[0, 1], [2, 0]]), ValueError, r"2 columns .* 3 classes: pass labels="),
        (
            (["dog"], ["ape"], NESTED),
            ValueError,
            r"\['dog'\] that the costs lack: add them",
        ),
        ((TRUTH, GUESS, "costs"), TypeError, "costs are of type str: give None, a K x K array"),
        ((TRUTH, GUESS, -ASYMMETRIC), ValueError, "costs_from_pairs takes negative"),
        ((TRUTH, GUESS[:3], NESTED), ValueError, "inconsistent numbers of samples"),
        (([], [], ASYMMETRIC), ValueError, "are empty: give at least one sample"),
        (([0, 1], ["0", "1"], None), ValueError, "Mix of label input types"),
        (([0.5, 1], [0, 1], None), ValueError, "Unknown label type|Mix type of y"),
        ((np.eye(3), np.eye(3), None), ValueError, "should be a 1d array"),
    ],
)
def test_refused_arguments(metric, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        metric(*arguments)


def test_refused_options() -> None:
    with pytest.raises(ValueError, match=r"\['cat'\] that the costs lack: add them"):
        average_cost(TRUTH, GUESS, NESTED, labels=NAMES[:2])
    with pytest.raises(ValueError, match="label 'ape' is repeated"):
        average_cost(TRUTH, GUESS, None, labels=[*NAMES, "ape"])
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        average_cost(TRUTH, GUESS, NESTED, sample_weight=[-1] * 7)
    with pytest.raises(ValueError, match="normalize must be one of 'all', 'true', 'pred'"):
        cost_confusion_matrix(TRUTH, GUESS, NESTED, normalize="rows")
    with pytest.raises(ValueError, match="metric must be one of 'average_cost', 'savings'"):
        cost_scorer(NESTED, metric="accuracy")


# Costs of samples, and abstentions.

AMOUNTS = np.random.default_rng(3).integers(1, 20, (7, 3)).astype(float)


@given(decisions(), st.booleans())
def test_prices_of_samples_are_charged(case, whole) -> None:
    costs, truth, guess, weight = case
    n, labels = len(truth), range(len(costs))
    rng = np.random.default_rng(n)
    shape = (n, len(costs), len(costs)) if whole else (n, len(costs))
    prices = rng.uniform(0, 10, shape)
    rows = np.arange(n)
    charged = prices[rows, truth, guess] if whole else prices[rows, guess] * (truth != guess)
    keywords = {"labels": labels, "sample_weight": weight}
    options = {"sample_cost": prices, **keywords}
    total = total_cost(truth, guess, **options)
    assert total == pytest.approx(charged @ weight)
    average = average_cost(truth, guess, **options)
    assert average == pytest.approx(np.average(charged, weights=weight))
    assert cost_confusion_matrix(truth, guess, **options).sum() == pytest.approx(total)
    constants = [total_cost(truth, np.full(n, k), **options) for k in labels]
    if min(constants) > 0:
        assert savings(truth, guess, **options) == pytest.approx(1 - total / min(constants))


@given(decisions(), st.floats(0, 10), st.integers(0, 2**20 - 1))
def test_abstentions_have_their_cost(case, price, which) -> None:
    costs, truth, guess, weight = case
    asked = (which >> np.arange(len(truth)) & 1).astype(bool)
    as_text = np.where(asked, ABSTAIN, guess.astype(object))
    decided = np.ma.MaskedArray(guess, asked)
    prices = np.linspace(price, price + 1, len(truth))
    keywords = {"labels": range(len(costs)), "sample_weight": weight}
    for abstain in (price, prices):
        charged = np.where(asked, abstain, costs[truth, guess])
        options = {**keywords, "abstain": abstain}
        assert average_cost(truth, decided, costs, **options) == pytest.approx(
            np.average(charged, weights=weight)
        )
        matrix = cost_confusion_matrix(truth, decided, costs, **options)
        from_text = cost_confusion_matrix(truth, as_text, costs, **options)
        np.testing.assert_array_equal(from_text, matrix)
        assert matrix.shape == (len(costs), len(costs) + asked.any())
        assert matrix.sum() == pytest.approx(charged @ weight)
        if asked.any():
            assert matrix[:, -1].sum() == pytest.approx((charged * weight)[asked].sum())


def test_as_many_samples_as_classes() -> None:
    """A square array is a cost matrix; costs of samples are given by name."""
    truth, guess, costs = NAMES, ["bat", "cat", "ape"], AMOUNTS[:3]
    assert total_cost(truth, guess, ASYMMETRIC) == 1 + 1 + 1
    expected = costs[0, 1] + costs[1, 2] + costs[2, 0]
    assert total_cost(truth, guess, sample_cost=costs) == expected
    assert total_cost([0, 1], [1, 0], [[0, 9], [1, 0]]) == 9 + 1
    assert total_cost([0, 1], [1, 0], sample_cost=[[0, 9], [2, 0]]) == 9 + 2


@pytest.mark.parametrize("dtype", [int, float, object, "U1"])
def test_masked_decisions(dtype) -> None:
    decisions = np.ma.MaskedArray(np.array([0, 1, 1, 1]).astype(dtype), [0, 1, 0, 0])
    truth = np.array([0, 0, 1, 0]).astype(int if dtype is object else dtype)
    assert total_cost(truth, decisions, [[0, 5], [1, 0]], abstain=2) == 7
    with pytest.raises(ValueError, match=r"y_pred has 1 abstentions.*abstain="):
        total_cost(truth, decisions, [[0, 5], [1, 0]])
    unmasked = np.ma.MaskedArray(decisions.data)
    assert total_cost(truth, unmasked, [[0, 5], [1, 0]]) == 10


@pytest.mark.parametrize("form", [np.array, list, tuple, pd.Series])
def test_forms_of_decisions_with_asking(form) -> None:
    numbers = form([0, "ask a person", 1, 1])
    if form is np.array:
        numbers = np.array([0, ABSTAIN, 1, 1], dtype=object)
    assert total_cost([0, 0, 1, 0], numbers, [[0, 5], [1, 0]], abstain=2) == 7
    texts = form(["ape", ABSTAIN, "bat", "ape", "cat", ABSTAIN, "ape"])
    assert total_cost(TRUTH, texts, NESTED, abstain=2) == 0 + 2 + 0 + 3 + 0 + 2 + 1
    assert average_cost(TRUTH, [ABSTAIN] * 7, NESTED, abstain=2) == 2


def test_frame_of_prices_names_its_classes() -> None:
    frame = pd.DataFrame(AMOUNTS, columns=NAMES)[["cat", "ape", "bat"]]
    expected = total_cost(TRUTH, GUESS, sample_cost=AMOUNTS)
    assert total_cost(TRUTH, GUESS, sample_cost=frame) == expected
    assert total_cost(TRUTH, GUESS, sample_cost=frame, labels=NAMES) == expected
    assert total_cost(TRUTH[:3], GUESS[:3], sample_cost=frame[:3]) < expected


@pytest.mark.parametrize("metric", METRICS)
def test_refused_prices_of_samples(metric) -> None:
    for costs in (AMOUNTS, np.ones((7, 3, 3))):
        with pytest.raises(ValueError, match="sample_cost="):
            metric(TRUTH, GUESS, costs)
    with pytest.raises(ValueError, match=r"3 columns but .* 2 classes: pass labels="):
        metric(TRUTH[:4], GUESS[:4], sample_cost=AMOUNTS[:4])
    with pytest.raises(ValueError, match="label 'ape' is repeated"):
        metric(TRUTH, GUESS, sample_cost=AMOUNTS[:, [0, 0, 1, 2]], labels=["ape", *NAMES])
    with pytest.raises(ValueError, match="leave one of them out"):
        metric(TRUTH, GUESS, NESTED, sample_cost=AMOUNTS)
    with pytest.raises(ValueError, match=r"y_pred has 2 abstentions.* pass abstain="):
        metric(TRUTH, ["ape", ABSTAIN, "bat", "ape", "cat", ABSTAIN, "ape"], NESTED)
    with pytest.raises(ValueError, match="a class is called 'ask a person'"):
        metric([ABSTAIN, "ape"], ["ape", "ape"], None, abstain=1)


# Scorers.

IRIS = np.array(NAMES)[Y]


def test_scorer_is_the_metric() -> None:
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X[:, :2], IRIS)
    guess = model.predict(X[:, :2])
    weight = np.random.default_rng(0).uniform(size=len(Y))
    cost = average_cost(IRIS, guess, NESTED)
    assert cost != average_cost(IRIS, guess, ASYMMETRIC.T)
    for costs in (NESTED, FRAME, ASYMMETRIC):
        scorer = cost_scorer(costs)
        assert scorer(model, X[:, :2], IRIS) == -cost
        assert scorer(model, X[:, :2], IRIS, sample_weight=weight) == -average_cost(
            IRIS, guess, costs, sample_weight=weight
        )
        assert cost_scorer(costs, metric="savings")(model, X[:, :2], IRIS) == savings(
            IRIS, guess, costs
        )
    turned = cost_scorer(ASYMMETRIC[::-1, ::-1], labels=NAMES[::-1])
    assert turned(model, X[:, :2], IRIS) == pytest.approx(-cost)
    accuracy = model.score(X[:, :2], IRIS)
    assert cost_scorer(None)(model, X[:, :2], IRIS) == pytest.approx(accuracy - 1)


@pytest.mark.parametrize("costs", [ASYMMETRIC, NESTED, FRAME, None])
def test_test_part_without_a_class(costs) -> None:
    folds = [(np.arange(150), np.arange(100))]
    scores = cross_val_score(
        GaussianNB(), X, IRIS, scoring=cost_scorer(costs), cv=folds, error_score="raise"
    )
    assert -1 < scores[0] < 0


@pytest.mark.parametrize("costs", [NESTED, FRAME, None])
def test_training_part_without_a_class(costs) -> None:
    folds = [(np.arange(100), np.arange(100, 150))]
    keywords = {"cv": folds, "error_score": "raise"}
    expected = average_cost(IRIS[100:], GaussianNB().fit(X[:100], IRIS[:100]).predict(X[100:]),
                            costs)  # fmt: skip
    scores = cross_val_score(GaussianNB(), X, IRIS, scoring=cost_scorer(costs), **keywords)
    assert scores == [-expected]
    with pytest.raises(ValueError, match="some class may be missing, give a mapping"):
        cross_val_score(GaussianNB(), X, IRIS, scoring=cost_scorer(ASYMMETRIC), **keywords)


def test_scorer_in_searches_and_inspection() -> None:
    scorer = cost_scorer(FRAME)
    grid = {"var_smoothing": [1e-9, 1e3]}
    search = GridSearchCV(GaussianNB(), grid, scoring=scorer, cv=3).fit(X, IRIS)
    assert search.best_params_ == {"var_smoothing": 1e-9}
    assert search.score(X, IRIS) == scorer(search, X, IRIS)
    both = {"cost": scorer, "savings": cost_scorer(FRAME, metric="savings"), "acc": "accuracy"}
    results = cross_validate(GaussianNB(), X, IRIS, scoring=both, cv=3)
    assert (results["test_cost"] < 0).all()
    assert (results["test_savings"] > 0.5).all()
    weight = np.random.default_rng(0).uniform(size=len(Y))
    plain, weighted = (
        GridSearchCV(GaussianNB(), grid, scoring=both, refit="cost", cv=3).fit(X, IRIS, **weights)
        for weights in ({}, {"sample_weight": weight})
    )
    assert not np.array_equal(
        plain.cv_results_["mean_test_cost"], weighted.cv_results_["mean_test_cost"]
    )
    importance = permutation_importance(
        search, X, IRIS, scoring=scorer, n_repeats=2, random_state=0
    )
    assert importance.importances_mean.max() > 0.1


def test_scorer_with_routed_weights() -> None:
    weight = np.random.default_rng(0).uniform(size=len(Y))
    folds = [(np.arange(0, 150, 2), np.arange(1, 150, 2))]
    with sklearn.config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=True)
        scored = [
            cross_val_score(
                model,
                X,
                IRIS,
                scoring=cost_scorer(NESTED).set_score_request(sample_weight=wanted),
                params={"sample_weight": weight},
                cv=folds,
            )[0]
            for wanted in (True, False)
        ]
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(
                model, X, IRIS, scoring=cost_scorer(NESTED), params={"sample_weight": weight}
            )
    train, test = folds[0]
    guess = GaussianNB().fit(X[train], IRIS[train], weight[train]).predict(X[test])
    assert scored == [
        -average_cost(IRIS[test], guess, NESTED, sample_weight=weight[test]),
        -average_cost(IRIS[test], guess, NESTED),
    ]


def test_scorer_lets_classifiers_decide_by_prices_of_samples() -> None:
    amounts = np.random.default_rng(0).uniform(0, 10, (len(Y), 3))
    data = X[:, :2]
    folds = [(np.arange(0, 150, 2), np.arange(1, 150, 2))]
    train, test = folds[0]
    model = MinimumCostClassifier(GaussianNB(), NESTED)
    fitted = clone(model).fit(data[train], IRIS[train])
    prices = {"sample_cost": amounts[test]}
    with sklearn.config_context(enable_metadata_routing=True):
        for abstain in (None, 1.5):
            scorer = cost_scorer(abstain=abstain).set_score_request(sample_cost=True)
            scores = cross_validate(
                model, data, IRIS, scoring=scorer, cv=folds, params={"sample_cost": amounts}
            )["test_score"]
            decided = fitted.decide(data[test], abstain=abstain, **prices)
            assert np.ma.is_masked(decided) == (abstain is not None)
            cost = average_cost(IRIS[test], decided, labels=NAMES, abstain=abstain, **prices)
            assert scores == [-cost]
        wants_prices = cost_scorer().set_score_request(sample_cost=True)
        search = GridSearchCV(
            GaussianNB(), {"var_smoothing": [1e-9, 1e3]}, scoring=wants_prices, cv=folds
        )
        search.fit(data, IRIS, sample_cost=amounts)
        with pytest.raises(UnsetMetadataPassedError, match="sample_cost"):
            cross_validate(
                model, data, IRIS, scoring=cost_scorer(), params={"sample_cost": amounts}
            )
    predicted = search.best_estimator_.predict(data)  # which has no decide
    assert cost_scorer()(search, data, IRIS, sample_cost=amounts) == -average_cost(
        IRIS, predicted, sample_cost=amounts
    )
    turned = [2, 0, 1]
    other = cost_scorer(labels=np.array(NAMES)[turned], abstain=1.5)
    score = other(fitted, data[test], IRIS[test], sample_cost=amounts[test][:, turned])
    assert score == pytest.approx(scores[0])


def test_scorer_takes_named_costs_or_those_of_samples() -> None:
    model = MinimumCostClassifier(GaussianNB()).fit(X, IRIS)
    with pytest.raises(ValueError, match="leave one of them out"):
        cost_scorer(NESTED)(model, X, IRIS, sample_cost=np.ones((len(Y), 3)))


@pytest.mark.parametrize(
    ("prices", "error", "message"),
    [
        (3.0, ValueError, r"shape \(\): give a row of 3 costs for each of the 150 samples"),
        (
            np.ones((5, 3)),
            ValueError,
            r"shape \(5, 3\): give a row of 3 costs for each of the 150",
        ),
        (csr_array(np.ones((150, 3))), TypeError, "got csr_array: give a row of 3 costs"),
    ],
)
def test_prices_of_samples_that_no_scorer_takes(prices, error, message) -> None:
    model = MinimumCostClassifier(GaussianNB()).fit(X, IRIS)
    with pytest.raises(error, match=message):
        cost_scorer(ASYMMETRIC)(model, X, IRIS, sample_cost=prices)


def test_scorer_with_a_price_of_asking() -> None:
    data = X[:, :2]
    model = MinimumCostClassifier(GaussianNB()).fit(data, IRIS)
    for costs in (NESTED, FRAME, ASYMMETRIC, ASYMMETRIC + 1):
        decided = model.decide(data, costs, abstain=0.5)
        expected = -average_cost(IRIS, decided, costs, abstain=0.5)
        assert cost_scorer(costs, abstain=0.5)(model, data, IRIS) == pytest.approx(expected)
        three = [0, 60, 120]  # as many as classes
        assert cost_scorer(costs, abstain=9)(model, data[three], IRIS[three]) <= 0
    assert cost_scorer(abstain=0.1)(model, data, IRIS) > cost_scorer()(model, data, IRIS)
    with pytest.raises(TypeError, match=r"GaussianNB has no decide.*MinimumCostClassifier"):
        cost_scorer(NESTED, abstain=1)(GaussianNB().fit(data, IRIS), data, IRIS)
    assert repr(cost_scorer(abstain=2)) == "cost_scorer(None, metric='average_cost', abstain=2)"


def test_copies_of_a_scorer() -> None:
    scorer = cost_scorer(NESTED, metric="savings", labels=np.array(NAMES))
    model = GaussianNB().fit(X, IRIS)
    copies = [
        pickle.loads(pickle.dumps(scorer)),
        copy.deepcopy(scorer),
        clone(GridSearchCV(model, {}, scoring=scorer)).scoring,
    ]
    for other in copies:
        assert other(model, X, IRIS) == scorer(model, X, IRIS)
        assert repr(other) == repr(scorer)
    assert (
        repr(cost_scorer([[0, 5], [1, 0]]))
        == "cost_scorer([[0, 5], [1, 0]], metric='average_cost')"
    )
    assert repr(scorer).endswith("metric='savings', labels=['ape', 'bat', 'cat'])")


def test_labels_of_costs_may_be_the_text_of_numbers() -> None:
    """As a file of costs has them."""
    costs = {"1": {"2": 5.0}, "2": {"1": 3.0, "2": 1.0}}
    y_true, y_pred = [1, 1, 2, 2], [1, 2, 1, 2]
    assert average_cost(y_true, y_pred, costs) == (5 + 3 + 1) / 4
    np.testing.assert_array_equal(given_costs(costs, [1, 2]), [[0, 5], [3, 1]])
    model = DummyClassifier(strategy="constant", constant=2).fit(np.zeros((4, 1)), y_true)
    assert cost_scorer(costs)(model, np.zeros((4, 1)), y_true) == -(5 + 5 + 1 + 1) / 4


def test_huge_labels_are_refused_without_a_warning() -> None:
    """scikit-learn casts labels to see whether they are whole, of which numpy would warn."""
    labels = np.array([0.0, 1e300, 0.0])
    with pytest.raises(ValueError, match="Unknown label type"):
        average_cost(labels, labels, [[0, 2], [3, 0]])
