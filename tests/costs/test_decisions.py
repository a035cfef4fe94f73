"""Decisions under new prices, under prices of each sample, and those that are left to a person."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import badacost
from badacost import (
    ABSTAIN,
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    CSAdaBoostClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
)
from badacost.costs.decisions import CostDecisionMixin, Prices
from badacost.tabular import TableClassifier

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])
NAMES = np.array(["ape", "bat", "cat"])
FRAME = pd.DataFrame(COSTS, NAMES, NAMES)
BELIEFS = np.random.default_rng(0).dirichlet([1, 1, 1], 40)
ROWS = np.random.default_rng(1).uniform(0, 10, (40, 3))


class Believer(CostDecisionMixin):
    """Its samples are the probabilities that it predicts."""

    def __init__(self, costs=COSTS, classes=NAMES):
        self.cost_matrix_, self.classes_ = np.asarray(costs), np.asarray(classes)

    def predict_proba(self, X):
        return X


@st.composite
def problems(draw):
    """Probabilities of more samples than classes, and costs with a zero diagonal."""
    n_classes = draw(st.integers(2, 5))
    n = draw(st.integers(n_classes + 1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = rng.uniform(0.1, 10, (n_classes, n_classes))
    np.fill_diagonal(costs, 0.0)
    return rng.dirichlet(np.ones(n_classes), n), costs, rng


def believer(costs) -> Believer:
    return Believer(costs, np.arange(len(costs)))


# Properties of the rule.


@given(problems())
def test_equal_costs_give_the_most_probable_class(case) -> None:
    beliefs, costs, _ = case
    equal = 7.0 * (1 - np.eye(len(costs)))
    for prices in ({"costs": equal}, {"sample_cost": np.full_like(beliefs, 7.0)}):
        assert_array_equal(believer(costs).decide(beliefs, **prices), beliefs.argmax(axis=1))


@given(problems(), st.integers(-20, 20))
def test_a_factor_or_a_constant_for_a_truth_changes_no_decision(case, exponent) -> None:
    beliefs, costs, rng = case
    model = believer(costs)
    decisions = model.decide(beliefs)
    assert_array_equal(model.decide(beliefs, costs * 2.0**exponent), decisions)
    paid_anyway = rng.integers(1, 5, (len(costs), 1))
    ranked = np.sort(model.predict_costs(beliefs), axis=1)
    clear = ranked[:, 1] - ranked[:, 0] > 1e-9
    shifted = model.decide(beliefs, costs + paid_anyway)
    assert_array_equal(shifted[clear], decisions[clear])


@given(problems())
def test_permuted_classes_permute_the_answer(case) -> None:
    beliefs, costs, rng = case
    order = rng.permutation(len(costs))
    rows = rng.uniform(0.1, 10, beliefs.shape)
    model = believer(costs)
    turned = Believer(costs[np.ix_(order, order)], order)
    assert_array_equal(turned.decide(beliefs[:, order]), model.decide(beliefs))
    assert_array_equal(
        turned.decide(beliefs[:, order], sample_cost=rows[:, order]),
        model.decide(beliefs, sample_cost=rows),
    )
    prices = Prices(costs)
    for given_prices in (
        prices,
        Prices(rows, True),
        Prices(rng.random((*rows.shape, len(costs))), True),
    ):
        assert_allclose(
            given_prices.of_classes(order).expected(beliefs[:, order]),
            given_prices.expected(beliefs)[:, order],
        )


@given(problems())
def test_prices_of_samples_are_matrices_of_samples(case) -> None:
    beliefs, costs, rng = case
    n, n_classes = beliefs.shape
    model = believer(costs)
    same = np.broadcast_to(costs, (n, n_classes, n_classes))
    for prices in ({"costs": same}, {"sample_cost": same}):
        assert_array_equal(model.decide(beliefs, **prices), model.decide(beliefs))
    rows = rng.uniform(0, 10, (n, n_classes))
    whole = np.where(np.eye(n_classes, dtype=bool), 0.0, rows[:, np.newaxis])
    one, other = Prices(rows, True), Prices(whole, True)
    assert_allclose(one.expected(beliefs), other.expected(beliefs), atol=1e-12)
    by_hand = [row_beliefs @ matrix for row_beliefs, matrix in zip(beliefs, whole, strict=True)]
    assert_allclose(one.expected(beliefs), by_hand, atol=1e-12)
    for prices in ({"costs": rows}, {"sample_cost": rows}, {"sample_cost": whole}):
        assert_array_equal(model.decide(beliefs, **prices), one.expected(beliefs).argmin(axis=1))
    truth, answers = rng.integers(n_classes, size=(2, n))
    assert_array_equal(one.paid(truth, answers), other.paid(truth, answers))
    assert_array_equal(one.paid(truth, truth), np.zeros(n))
    assert_allclose(one.average(), other.average())


@given(problems(), st.lists(st.floats(0, 20), min_size=2, max_size=5))
def test_a_person_is_asked_less_the_more_it_costs(case, prices) -> None:
    beliefs, costs, _ = case
    model = believer(costs)
    assert (model.decide(beliefs, abstain=0) == ABSTAIN).all()
    never = model.decide(beliefs, abstain=np.inf)
    assert never.dtype == object
    assert_array_equal(never.astype(int), model.decide(beliefs))
    asked = [model.decide(beliefs, abstain=price) == ABSTAIN for price in sorted(prices)]
    for cheaper, costlier in pairwise(asked):
        assert (cheaper | ~costlier).all()
    some = model.decide(beliefs, abstain=prices[0])
    kept = some != ABSTAIN
    assert_array_equal(some[kept].astype(int), model.decide(beliefs)[kept])
    assert_array_equal(kept, model.predict_costs(beliefs).min(axis=1) < prices[0])


def test_a_price_of_asking_for_each_sample() -> None:
    model = Believer()
    prices = np.where(np.arange(40) % 2, 0.0, np.inf)
    assert_array_equal(model.decide(BELIEFS, abstain=prices) == ABSTAIN, prices == 0)
    expected = Prices(ROWS, True).expected(BELIEFS).min(axis=1)
    asked = model.decide(BELIEFS, sample_cost=ROWS, abstain=expected) == ABSTAIN
    assert asked.all()  # a tie
    assert not (model.decide(BELIEFS, sample_cost=ROWS, abstain=expected + 1e-9) == ABSTAIN).any()


# Forms of prices.


@pytest.mark.parametrize(
    "costs",
    [
        COSTS,
        COSTS.tolist(),
        FRAME,
        FRAME.loc[["cat", "ape", "bat"], ["bat", "cat", "ape"]],
        FRAME.T.to_dict(),
    ],
    ids=["array", "list", "frame", "shuffled frame", "mapping"],
)
def test_forms_of_a_matrix(costs) -> None:
    model = Believer(COSTS.T)
    expected = NAMES[(BELIEFS @ COSTS).argmin(axis=1)]
    assert_array_equal(model.decide(BELIEFS, costs), expected)
    assert (model.decide(BELIEFS) != expected).any()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_name_the_classes(frame) -> None:
    order = [2, 0, 1]
    table = frame(dict(zip(NAMES[order], ROWS[:, order].T, strict=True)))
    model = Believer()
    assert_array_equal(
        model.decide(BELIEFS, sample_cost=table), model.decide(BELIEFS, sample_cost=ROWS)
    )
    renamed = frame(dict(zip(["ape", "bat", "dog"], ROWS.T, strict=True)))
    with pytest.raises(ValueError, match="sample_cost has no column for class"):
        model.decide(BELIEFS, sample_cost=renamed)


def test_the_price_of_being_right_counts() -> None:
    assert_allclose(Believer(COSTS + 2).predict_costs(BELIEFS), BELIEFS @ COSTS + 2)
    model = Believer()
    price = (BELIEFS @ COSTS).min(axis=1).max() + 1
    assert (model.decide(BELIEFS, abstain=price) != ABSTAIN).all()
    assert (model.decide(BELIEFS, COSTS + 10, abstain=price) == ABSTAIN).all()


def test_as_many_samples_as_classes() -> None:
    model = Believer()
    expected = NAMES[(BELIEFS[:3] @ COSTS).argmin(axis=1)]
    assert_array_equal(model.decide(BELIEFS[:3], COSTS), expected)
    for ambiguous in (COSTS + 1, ROWS[:3]):
        with pytest.raises(ValueError, match="give prices of samples as sample_cost=, or a matrix"):
            model.decide(BELIEFS[:3], ambiguous)
    assert_array_equal(
        model.decide(BELIEFS[:3], sample_cost=ROWS[:3]), model.decide(BELIEFS, ROWS)[:3]
    )
    assert_array_equal(model.decide(BELIEFS[:3], FRAME + 1), expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"costs": COSTS, "sample_cost": ROWS}, ValueError, "leave one of them out"),
        ({"sample_cost": ROWS[:-1]}, ValueError, r"shape \(39, 3\): give a row of 3 prices .* 40"),
        ({"sample_cost": COSTS}, ValueError, r"or a matrix for each, shape \(40, 3, 3\)"),
        ({"costs": ROWS[:-1]}, ValueError, r"costs have shape \(39, 3\)"),
        ({"sample_cost": -ROWS}, ValueError, "sample 0 and prediction 'ape' .* from 0 to 1e"),
        ({"sample_cost": ROWS * np.nan}, ValueError, "is nan: replace it by a number"),
        (
            {"sample_cost": [["x"] * 3] * 40},
            TypeError,
            "must be a dense array of real numbers; got list: give",
        ),
        ({"abstain": -1}, ValueError, "abstain has the price -1: give 0 or more"),
        ({"abstain": np.nan}, ValueError, "abstain has the price nan"),
        ({"abstain": "much"}, TypeError, "abstain is 'much': give the price of asking"),
        ({"abstain": True}, TypeError, "give the price of asking a person"),
        ({"abstain": [1, 2]}, ValueError, r"abstain has shape \(2,\): .* 40 samples"),
    ],
)
def test_refused_prices(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        Believer().decide(BELIEFS, **arguments)


def test_a_class_that_is_called_so() -> None:
    model = Believer(classes=["ape", ABSTAIN, "cat"])
    assert ABSTAIN in model.decide(BELIEFS)
    with pytest.raises(ValueError, match="rename the class"):
        model.decide(BELIEFS, abstain=1)


# Classifiers.

X, Y = load_iris(return_X_y=True)
X = X[:, :2]


@pytest.mark.parametrize(
    "model",
    [
        MinimumCostClassifier(cost_matrix=COSTS),
        BAdaCostClassifier(COSTS, n_estimators=5, decision="bayes"),
        CostSensitiveTreeClassifier(COSTS, max_depth=3),
        PIBoostClassifier(n_estimators=3),
        TableClassifier(BAdaCostClassifier(n_estimators=3), cost_matrix=COSTS, decision="bayes"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_with_probabilities(model) -> None:
    data = pd.DataFrame(X, columns=["length", "width"])
    with pytest.raises(NotFittedError):
        model.decide(data)
    model.fit(data, Y)
    expected = model.predict_proba(data) @ model.cost_matrix_
    assert_allclose(model.predict_costs(data), expected)
    decisions = model.decide(data)
    assert_array_equal(decisions, model.classes_[expected.argmin(axis=1)])
    if not isinstance(model, PIBoostClassifier):  # whose rule is another one
        assert_array_equal(decisions, model.predict(data))
    assert (model.decide(data, COSTS.T) != decisions).any()
    least = expected.min(axis=1)
    asked = model.decide(data, abstain=(least.min() + least.max()) / 2) == ABSTAIN
    assert 0 < asked.sum() < len(asked)


CHARGED = np.array([[10.0, 12], [50, 11]])  # being right has a price, too


@pytest.mark.parametrize(
    "model",
    [
        BAdaCostClassifier(CHARGED, n_estimators=5, decision="bayes"),
        CostBoostClassifier(CHARGED, n_estimators=5, random_state=0),
        CSAdaBoostClassifier(CHARGED, n_estimators=5),
        CostSensitiveTreeClassifier(CHARGED, max_depth=2),
        MinimumCostClassifier(BAdaCostClassifier(n_estimators=3), CHARGED),
        TableClassifier(CostBoostClassifier(CHARGED, n_estimators=3, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_price_of_being_right_counts_after_fit_and_load(model, tmp_path) -> None:
    data = pd.DataFrame(X, columns=["length", "width"])
    fitted = model.fit(data, Y == 1)
    fitted.save(tmp_path / "model.badacost")
    for again in (fitted, badacost.load(tmp_path / "model.badacost")):
        expected = again.predict_proba(data) @ CHARGED
        assert_array_equal(again.predict_costs(data), expected)
        assert (again.decide(data, abstain=8) == ABSTAIN).all()
        least = expected.min(axis=1)
        price = (least.min() + least.max()) / 2
        decisions = again.decide(data, CHARGED, abstain=price)
        assert_array_equal(again.decide(data, abstain=price), decisions)
        assert 0 < (decisions == ABSTAIN).sum() < len(decisions)
        assert_array_equal(again.predict(data), again.decide(data, CHARGED))


def test_classifiers_without_probabilities() -> None:
    for model in (
        AdaC2M1Classifier(COSTS, n_estimators=2).fit(X, Y),
        BAdaCostClassifier([[0, 1, 1], [0, 0, 1], [0, 1, 0]], n_estimators=2).fit(X, Y),
    ):
        for name in ("decide", "predict_costs"):
            assert not hasattr(model, name)
    with pytest.raises(AttributeError) as caught:
        AdaC2M1Classifier().decide(X)
    assert "put it into MinimumCostClassifier" in str(caught.value.__cause__)


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_costs_given_later_equal_those_of_the_fit(seed) -> None:
    costs = np.random.default_rng(seed).uniform(1, 9, (3, 3)) * (1 - np.eye(3))
    later, at_once = (MinimumCostClassifier(cost_matrix=c).fit(X, Y) for c in (COSTS, costs))
    assert_array_equal(later.decide(X, costs), at_once.predict(X))
    assert badacost.ABSTAIN == "ask a person"
