"""Decisions under other costs, under costs of each sample, and abstentions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
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
from badacost.costs.decisions import (
    CostDecisionMixin,
    DecisionCosts,
    check_sample_cost,
    mistake_costs,
)
from badacost.tabular import TableClassifier

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])
NAMES = np.array(["ape", "bat", "cat"])
FRAME = pd.DataFrame(COSTS, NAMES, NAMES)
BELIEFS = np.random.default_rng(0).dirichlet([1, 1, 1], 40)
ROWS = np.random.default_rng(1).uniform(0, 10, (40, 3))


class Believer(CostDecisionMixin):
    """Its samples are the probabilities that it predicts."""

    def __init__(self, costs=COSTS, classes=NAMES):
        self.cost_matrix_, self.classes_ = np.asarray(costs, float), np.asarray(classes)

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
    for given_costs in (
        DecisionCosts(costs),
        DecisionCosts(rows, True),
        DecisionCosts(rng.random((*rows.shape, len(costs))), True),
    ):
        values = given_costs.values[..., order]
        if not given_costs.per_sample or values.ndim == 3:
            values = values[..., order, :]
        permuted = DecisionCosts(values, given_costs.per_sample)
        expected = given_costs.expected(beliefs)[:, order]
        assert_allclose(permuted.expected(beliefs[:, order]), expected)


@given(problems())
def test_prices_of_samples_are_matrices_of_samples(case) -> None:
    beliefs, costs, rng = case
    n, n_classes = beliefs.shape
    model = believer(costs)
    same = np.broadcast_to(costs, (n, n_classes, n_classes))
    assert_array_equal(model.decide(beliefs, sample_cost=same), model.decide(beliefs))
    rows = rng.uniform(0, 10, (n, n_classes))
    whole = np.where(np.eye(n_classes, dtype=bool), 0.0, rows[:, np.newaxis])
    one, other = DecisionCosts(rows, True), DecisionCosts(whole, True)
    assert_allclose(one.expected(beliefs), other.expected(beliefs), atol=1e-12)
    by_hand = [row_beliefs @ matrix for row_beliefs, matrix in zip(beliefs, whole, strict=True)]
    assert_allclose(one.expected(beliefs), by_hand, atol=1e-12)
    for costs in (rows, whole):
        decisions = model.decide(beliefs, sample_cost=costs)
        assert_array_equal(decisions, one.expected(beliefs).argmin(axis=1))
    truth, answers = rng.integers(n_classes, size=(2, n))
    assert_array_equal(one.incurred(truth, answers), other.incurred(truth, answers))
    assert_array_equal(one.incurred(truth, truth), np.zeros(n))
    assert_allclose(one.average(), other.average())


@given(problems(), st.lists(st.floats(0, 20), min_size=2, max_size=5))
def test_abstentions_are_fewer_the_more_they_cost(case, abstention_costs) -> None:
    beliefs, costs, _ = case
    model = believer(costs)
    assert model.decide(beliefs, abstain=0).mask.all()
    never = model.decide(beliefs, abstain=np.inf)
    assert not never.mask.any()
    assert_array_equal(never, model.decide(beliefs))
    asked = [model.decide(beliefs, abstain=cost).mask for cost in sorted(abstention_costs)]
    for cheaper, costlier in pairwise(asked):
        assert (cheaper | ~costlier).all()
    some = model.decide(beliefs, abstain=abstention_costs[0])
    assert_array_equal(some.data, model.decide(beliefs))
    assert_array_equal(some.mask, model.predict_costs(beliefs).min(axis=1) >= abstention_costs[0])


@pytest.mark.parametrize("classes", [[3, 4, 7], [0.5, 1.5, 2.5], NAMES, NAMES.astype(object)])
def test_abstentions_are_masked_classes(classes) -> None:
    """Of the type of the classes; reports put a text in their place."""
    model = Believer(classes=classes)
    decisions = model.decide(BELIEFS, abstain=0.5)
    assert decisions.dtype == np.asarray(classes).dtype
    assert decisions.mask.shape == (40,)
    assert 0 < decisions.mask.sum() < 40
    texts = decisions.astype(object).filled(ABSTAIN)
    assert_array_equal(texts == ABSTAIN, decisions.mask)
    assert set(texts) <= {*classes, ABSTAIN}


def test_a_cost_of_abstention_for_each_sample() -> None:
    model = Believer()
    costs = np.where(np.arange(40) % 2, 0.0, np.inf)
    assert_array_equal(model.decide(BELIEFS, abstain=costs).mask, costs == 0)
    expected = DecisionCosts(ROWS, True).expected(BELIEFS).min(axis=1)
    assert model.decide(BELIEFS, sample_cost=ROWS, abstain=expected).mask.all()  # a tie
    assert not model.decide(BELIEFS, sample_cost=ROWS, abstain=expected + 1e-9).mask.any()


# Forms of costs.


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
    with pytest.raises(ValueError, match="class 'cat' is missing from the columns of sample_cost"):
        model.decide(BELIEFS, sample_cost=renamed)


def test_the_diagonal_counts() -> None:
    assert_allclose(Believer(COSTS + 2).predict_costs(BELIEFS), BELIEFS @ COSTS + 2)
    model = Believer()
    cost = (BELIEFS @ COSTS).min(axis=1).max() + 1
    assert not model.decide(BELIEFS, abstain=cost).mask.any()
    assert model.decide(BELIEFS, COSTS + 10, abstain=cost).mask.all()


@pytest.mark.parametrize("n_samples", [2, 3, 4, 40])
def test_costs_are_a_matrix_whatever_the_number_of_samples(n_samples) -> None:
    model, beliefs = Believer(), BELIEFS[:n_samples]
    for costs in (COSTS, COSTS + 1, COSTS.tolist(), FRAME):
        expected = NAMES[(beliefs @ COSTS).argmin(axis=1)]
        assert_array_equal(model.decide(beliefs, costs), expected)
    decisions = model.decide(beliefs, sample_cost=ROWS[:n_samples])
    assert_array_equal(decisions, model.decide(BELIEFS, sample_cost=ROWS)[:n_samples])
    for costs in (ROWS[:n_samples], np.ones((n_samples, 3, 3)), ROWS[:n_samples].tolist()):
        if np.shape(costs) != (3, 3):
            with pytest.raises(ValueError, match=r"costs have shape .* sample_cost="):
                model.decide(beliefs, costs)
    two, beliefs = Believer([[0, 1], [1, 0]], ["ape", "bat"]), np.array([[0.5, 0.5], [0.1, 0.9]])
    costs = [[0, 9], [1, 0]]
    assert_array_equal(two.decide(beliefs, costs), ["ape", "ape"])
    decisions = two.decide(beliefs, sample_cost=costs)
    assert_array_equal(decisions, ["ape", "bat"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"costs": COSTS, "sample_cost": ROWS}, ValueError, "leave one of them out"),
        ({"sample_cost": ROWS[:-1]}, ValueError, r"shape \(39, 3\): give a row of 3 costs .* 40"),
        ({"sample_cost": COSTS}, ValueError, r"shape \(3, 3\): give a row of 3 costs .* 40"),
        ({"costs": ROWS[:-1]}, ValueError, r"costs have shape \(39, 3\).* sample_cost="),
        ({"costs": ROWS[0]}, ValueError, r"costs have shape \(3,\)"),
        ({"costs": "much"}, TypeError, "costs are of type str"),
        (
            {"sample_cost": -ROWS},
            ValueError,
            "sample 0 and prediction 'ape' .* replace it by a number from 0",
        ),
        ({"sample_cost": ROWS * np.nan}, ValueError, "is nan: replace it by a number"),
        (
            {"sample_cost": [["x"] * 3] * 40},
            TypeError,
            "must be a dense array of real numbers; got list: give",
        ),
        ({"abstain": -1}, ValueError, "abstain .*-1: give the cost of an abstention"),
        ({"abstain": np.nan}, ValueError, "abstain .*nan: give"),
        ({"abstain": "much"}, TypeError, "abstain is 'much': give the cost"),
        ({"abstain": True}, TypeError, "abstain .* give the cost"),
        ({"abstain": [1, 2]}, ValueError, r"abstain is .* 40 samples"),
    ],
)
def test_refused_costs(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        Believer().decide(BELIEFS, **arguments)


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
    if hasattr(model, "regret_matrix_"):
        assert_array_equal(model.regret_matrix_, model.cost_matrix_)
    decisions = model.decide(data)
    assert_array_equal(decisions, model.classes_[expected.argmin(axis=1)])
    if not isinstance(model, PIBoostClassifier):  # whose rule is another one
        assert_array_equal(decisions, model.predict(data))
    assert (model.decide(data, COSTS.T) != decisions).any()
    least = expected.min(axis=1)
    asked = model.decide(data, abstain=(least.min() + least.max()) / 2).mask
    assert 0 < asked.sum() < len(asked)


WITH_DIAGONAL = np.array([[10.0, 12], [50, 11]])


@pytest.mark.parametrize(
    "model",
    [
        BAdaCostClassifier(WITH_DIAGONAL, n_estimators=5, decision="bayes"),
        CostBoostClassifier(WITH_DIAGONAL, n_estimators=5, random_state=0),
        CSAdaBoostClassifier(WITH_DIAGONAL, n_estimators=5),
        CostSensitiveTreeClassifier(WITH_DIAGONAL, max_depth=2),
        MinimumCostClassifier(BAdaCostClassifier(n_estimators=3), WITH_DIAGONAL),
        TableClassifier(CostBoostClassifier(WITH_DIAGONAL, n_estimators=3, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_diagonal_counts_after_fit_and_load(model, tmp_path) -> None:
    data = pd.DataFrame(X, columns=["length", "width"])
    fitted = model.fit(data, Y == 1)
    fitted.save(tmp_path / "model.badacost")
    for again in (fitted, badacost.load(tmp_path / "model.badacost")):
        assert_array_equal(again.cost_matrix_, WITH_DIAGONAL)
        if not isinstance(again, MinimumCostClassifier):
            assert_array_equal(again.regret_matrix_, [[0, 2], [39, 0]])
        expected = again.predict_proba(data) @ WITH_DIAGONAL
        assert_allclose(again.predict_costs(data), expected, rtol=1e-14)
        assert again.decide(data, abstain=8).mask.all()
        least = expected.min(axis=1)
        cost = (least.min() + least.max()) / 2
        decisions = again.decide(data, WITH_DIAGONAL, abstain=cost)
        assert_array_equal(again.decide(data, abstain=cost).filled(), decisions.filled())
        assert 0 < decisions.mask.sum() < len(decisions)
        assert_array_equal(again.predict(data), again.decide(data, WITH_DIAGONAL))


def test_the_former_name_of_the_costs() -> None:
    model = CostSensitiveTreeClassifier(WITH_DIAGONAL, max_depth=1).fit(X, Y == 1)
    with pytest.warns(FutureWarning, match="cost_matrix_"):
        assert_array_equal(model.charged_costs_, WITH_DIAGONAL)


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


# Costs of samples: reading them, and the rows that training needs.

AMOUNTS = np.array([[0.0, 5, 1], [2, 0, 3]])
LEVELS = ["low", "mid", "top"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_of_costs_of_samples(frame) -> None:
    columns = {"top": AMOUNTS[:, 2], "mid": AMOUNTS[:, 1], "low": AMOUNTS[:, 0], "more": [1, 1]}
    np.testing.assert_array_equal(check_sample_cost(frame(columns), LEVELS, 2), AMOUNTS)
    with pytest.raises(ValueError, match="class 'best' is missing from the columns of sample_cost"):
        check_sample_cost(frame(columns), ["low", "best"], 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (AMOUNTS[:1], r"shape \(1, 3\): give a row of 3 costs for each of the 2 samples"),
        (AMOUNTS[:, :2], r"shape \(2, 2\)"),
        (AMOUNTS[0], r"shape \(3,\)"),
        (3.0, r"shape \(\)"),
        ([], r"shape \(0,\)"),
        (np.zeros((2, 3, 2)), r"shape \(2, 3, 2\)"),
        (AMOUNTS - 1, "sample 0 and prediction 'low' is -1.0: replace it by a number from 0"),
        ([[0, 1, 2], [0, np.nan, 2]], "sample 1 and prediction 'mid' is nan"),
        (AMOUNTS * 1e301, "from 0 to 1e\\+300"),
    ],
)
def test_refused_costs_of_samples(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_sample_cost(given, LEVELS, 2)


@pytest.mark.parametrize(
    "given",
    ["text", {"a": 1}, csr_array(AMOUNTS), AMOUNTS + 0j, [[1, [2]], [1, 2]], [["a"] * 3] * 2],
)
def test_what_is_no_array_of_numbers(given) -> None:
    kind = type(given).__name__
    with pytest.raises(TypeError, match=f"dense array of real numbers; got {kind}: give a row"):
        check_sample_cost(given, LEVELS, 2)


EVERY = np.ones(4, dtype=bool)
amounts = arrays(np.float64, (4, 3), elements=st.floats(0, 1e6))


@given(amounts, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_being_right_is_free(rows, y) -> None:
    """Whatever stands in its place; a matrix for each sample gives the same costs."""
    rows_before = rows.copy()
    found = mistake_costs(rows, np.array(y), EVERY)
    np.testing.assert_array_equal(rows, rows_before)
    assert not found[np.arange(4), y].any()
    wrong = np.arange(3) != np.array(y)[:, np.newaxis]
    np.testing.assert_array_equal(found[wrong], rows[wrong])
    matrices = np.where(np.eye(3, dtype=bool), 0.0, rows[:, np.newaxis, :])
    np.testing.assert_array_equal(mistake_costs(matrices, np.array(y), EVERY), found)
    np.testing.assert_allclose(mistake_costs(matrices + 1, np.array(y), EVERY), found, atol=1e-9)


def test_being_right_must_not_cost_more_than_a_mistake() -> None:
    matrices = np.array([[[0.0, 1], [1, 0]], [[0, 1], [1, 2]]])
    with pytest.raises(ValueError, match="costs more than a mistake for sample 1: lower"):
        mistake_costs(matrices, np.array([1, 1]), np.array([True, True]))


def test_samples_are_numbered_as_given() -> None:
    """Also where some have no weight, and so no part in the fit."""
    matrices = np.array([[[0.0, 1], [1, 0]], [[0, 1], [1, 2]]])[[0, 0, 0, 1]]
    kept = np.array([False, True, False, True])
    with pytest.raises(ValueError, match="for sample 3: lower"):
        mistake_costs(matrices, np.array([1, 1]), kept)
    with pytest.raises(ValueError, match="for sample 3: lower"):
        BAdaCostClassifier().fit(
            np.eye(4), [0, 1, 0, 1], sample_weight=[0, 1, 1, 1], sample_cost=matrices
        )
