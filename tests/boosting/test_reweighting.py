"""Rules, the weights that follow them, and the probabilities of losses exp(c)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from badacost._utils.parallel import Threads
from badacost.boosting.reweighting import CostBlindRule, Reweighting, Rule, TreeLearner
from badacost.boosting.stagewise import Stage
from badacost.classifiers.badacost import BAdaCostClassifier
from badacost.classifiers.posterior import PosteriorMixin
from badacost.classifiers.training_data import SampleSet
from badacost.costs import zero_one_costs
from badacost.loss import cost_margins, optimal_step, step_loss, weak_learner_costs
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.grower import Growth, TreeGrower

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
MARGINS = cost_margins(COSTS / 9)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = ((X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3) + RNG.integers(2, size=200)) % 3
WEIGHT = RNG.uniform(0.1, 3, size=200)


class Oracle:
    """A weak learner that answers as it is told, one script for each call, and takes notes."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls: list[tuple] = []

    def fit(self, weights, costs, rows, seed):
        self.calls.append((weights, costs, rows, seed))
        answer = self.answers[min(len(self.calls), len(self.answers)) - 1]
        return answer, answer


def reweighting(learner, rule=None, weight=WEIGHT, **parameters) -> Reweighting:
    defaults = {"learning_rate": 1.0, "subsample": 1.0, "seed": 0, "random": False}
    return Reweighting(learner, Y, weight, rule or Rule(MARGINS), **{**defaults, **parameters})


def tree_learner() -> TreeLearner:
    mapper = BinMapper.fit(X, method="exact")
    data = BinnedData(mapper, mapper.transform(X))
    return TreeLearner(TreeGrower(data, Growth(max_depth=2)), Y, 3, "gini")


def stage_of(labels, step: float) -> Stage:
    """A stage whose learner gives these labels."""
    return Stage([labels], [step], [labels], MARGINS.T)


def shifted(share: float, seed: int = 0) -> np.ndarray:
    """The truth, but for a share of the samples that get the next class."""
    return np.where(np.random.default_rng(seed).random(200) < share, (Y + 1) % 3, Y)


def sums_of(labels, weights=WEIGHT) -> np.ndarray:
    """Weights by truth and answer."""
    sums = np.zeros((3, 3))
    np.add.at(sums, (Y, labels), weights)
    return sums


# Rule.


def test_a_rule_is_that_of_badacost() -> None:
    rule = Rule(MARGINS)
    sums = np.random.default_rng(1).uniform(size=(3, 3)) + np.eye(3)
    np.testing.assert_array_equal(rule.learner_costs(0.7), weak_learner_costs(MARGINS, 0.7))
    assert rule.step(sums) == optimal_step(sums, MARGINS)
    np.testing.assert_array_equal(rule.log_factors(0.7), 0.7 * MARGINS)


def test_the_step_of_a_rule_is_the_best() -> None:
    rule = Rule(MARGINS)
    sums = np.random.default_rng(1).uniform(size=(3, 3)) + np.eye(3)
    best = step_loss(sums, MARGINS, rule.step(sums))
    for factor in (0.9, 0.999, 1.001, 1.1):
        assert step_loss(sums, MARGINS, factor * rule.step(sums)) > best


# Weights.


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_first_weights_are_shares_of_those_given(unit) -> None:
    weights = reweighting(Oracle(Y), weight=unit * WEIGHT).weights
    np.testing.assert_allclose(weights, WEIGHT / WEIGHT.sum(), rtol=1e-12)
    assert weights.sum() == pytest.approx(1, rel=1e-14)


def test_weights_after_every_round() -> None:
    descent = reweighting(tree_learner(), learning_rate=0.5)
    weights = WEIGHT / WEIGHT.sum()
    for n_done in range(5):
        stage = descent.fit(n_done)
        np.testing.assert_allclose(descent.weights, weights, rtol=1e-9)  # a fit moves nothing
        step = optimal_step(sums_of(stage.rows[0], weights), MARGINS)
        assert stage.steps == [pytest.approx(0.5 * step)]
        descent.advance(stage)
        weights = weights * np.exp(stage.steps[0] * MARGINS[Y, stage.rows[0]])
        weights /= weights.sum()
        np.testing.assert_allclose(descent.weights, weights, rtol=1e-9)


def test_a_rule_may_multiply_weights_by_more_than_its_margins() -> None:
    class Doubling(Rule):
        def log_factors(self, step):
            return super().log_factors(step) + np.log([[2.0], [1], [1]])

    labels = shifted(0.3)
    descent = reweighting(Oracle(labels), Doubling(MARGINS))
    descent.advance(stage_of(labels, 0.3))
    expected = WEIGHT * np.exp(0.3 * MARGINS[Y, labels]) * np.where(Y == 0, 2, 1)
    np.testing.assert_allclose(descent.weights, expected / expected.sum(), rtol=1e-9)


def test_weights_far_outside_the_range_of_floats() -> None:
    """None vanishes, and those that come back are as they were."""
    labels = shifted(0.3)
    descent = reweighting(Oracle(labels))
    before = descent.weights
    descent.advance(stage_of(labels, 1e5))
    assert descent.weights.min() > 0
    assert descent.weights.sum() == pytest.approx(1)
    descent.advance(stage_of(labels, -1e5))
    np.testing.assert_allclose(descent.weights, before, rtol=1e-9)


# Scores.


def test_scores_of_a_stage() -> None:
    """Those of the training samples are those of its tree on the same samples."""
    stage = reweighting(tree_learner()).fit(0)
    scores = np.zeros((200, 3))
    stage.add_to(scores)
    expected = stage.steps[0] * MARGINS[:, stage.rows[0]].T
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    asked = replace(stage, rows=[SampleSet(X).rows(stage.models[0], Threads())])
    for chosen in (slice(None), np.array([5, 3, 150])):
        for known in (stage, asked):
            part = np.ones((len(X[chosen]), 3))
            known.add_to(part, chosen)
            np.testing.assert_array_equal(part, 1 + scores[chosen])


def test_replayed_stages_lead_to_the_same_weights() -> None:
    first = reweighting(tree_learner(), learning_rate=0.3)
    stages = []
    for n_done in range(4):
        stages.append(first.fit(n_done))
        first.advance(stages[-1])
    second = reweighting(tree_learner(), learning_rate=0.3)
    for stage in stages:
        rows = [SampleSet(X).rows(model, Threads()) for model in stage.models]
        np.testing.assert_array_equal(rows, stage.rows)
        second.advance(replace(stage, rows=rows))
    np.testing.assert_array_equal(second.weights, first.weights)
    one, other = first.fit(4), second.fit(4)
    assert one.steps == other.steps
    np.testing.assert_array_equal(one.rows, other.rows)


# What the learner is asked for.


def test_costs_and_weights_for_the_learner() -> None:
    oracle = Oracle(shifted(0.2))
    descent = reweighting(oracle)
    descent.fit(0)
    weights, costs, rows, _ = oracle.calls[0]
    np.testing.assert_array_equal(weights, descent.weights)
    np.testing.assert_array_equal(costs, weak_learner_costs(MARGINS, 1.0))
    assert rows is None
    assert len(oracle.calls) == 1


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_subsample(share) -> None:
    """Each sample is drawn by itself, in a way that depends on round and number of the sample."""
    oracle = Oracle(shifted(0.2))
    descent = reweighting(oracle, subsample=share, random=True)
    for n_done in (0, 1, 0):
        descent.fit(n_done)
    drawn = [rows for _, _, rows, _ in oracle.calls]
    for rows in drawn:
        assert len(rows) == pytest.approx(200 * share, abs=4 * np.sqrt(200 * share * (1 - share)))
        assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(drawn[0], drawn[2])  # by the number of the round
    assert not np.array_equal(drawn[0], drawn[1])
    assert oracle.calls[0][3] == oracle.calls[2][3] != oracle.calls[1][3]


def test_a_subsample_without_samples_is_all_of_them() -> None:
    oracle = Oracle(shifted(0.2))
    reweighting(oracle, subsample=1e-9, random=True).fit(0)
    assert oracle.calls[0][2] is None


def test_a_useless_learner_is_tried_again_if_chance_plays() -> None:
    useless, useful = (Y + 1) % 3, shifted(0.2)
    oracle = Oracle(useless, useless, useful)
    stage = reweighting(oracle, CostBlindRule(0.5 - np.eye(3)), random=True).fit(0)
    assert len(oracle.calls) == 3
    assert len({seed for *_, seed in oracle.calls}) == 3
    np.testing.assert_array_equal(stage.rows, [useful])
    assert stage.reason is None


@pytest.mark.parametrize(("random", "n_attempts"), [(False, 1), (True, 5)])
def test_attempts_are_limited(random, n_attempts) -> None:
    oracle = Oracle((Y + 1) % 3)
    stage = reweighting(oracle, CostBlindRule(0.5 - np.eye(3)), random=random).fit(0)
    assert len(oracle.calls) == n_attempts
    assert stage.reason == "useless"
    assert stage.steps[0] < 0


def test_a_perfect_learner() -> None:
    stage = reweighting(Oracle(Y)).fit(0)
    assert stage.reason == "perfect"
    assert np.isfinite(stage.steps).all()


def test_a_short_step_asks_for_steepest_descent_as_well() -> None:
    """The better of the two learners is taken."""
    poor, good = shifted(0.83), shifted(0.2)
    reach = optimal_step(sums_of(poor), MARGINS) * np.abs(MARGINS).max()
    assert 0 < reach < 0.1
    for answers, taken in (((poor, good), good), ((poor, (Y + 1) % 3), poor)):
        oracle = Oracle(*answers)
        stage = reweighting(oracle).fit(0)
        assert len(oracle.calls) == 2
        np.testing.assert_array_equal(oracle.calls[1][1], weak_learner_costs(MARGINS, 0.0))
        np.testing.assert_array_equal(stage.rows, [taken])


def test_costs_that_do_not_follow_the_step_are_not_asked_for_twice() -> None:
    oracle = Oracle(shifted(0.65))
    equal = Rule(cost_margins(zero_one_costs(3) / 6))
    assert reweighting(oracle, equal).fit(0).reason is None
    assert len(oracle.calls) == 1


def test_refinements_end_when_the_loss_does() -> None:
    first, better, worse = shifted(0.4), shifted(0.2), shifted(0.3)
    oracle = Oracle(first, better, worse, first)
    stage = reweighting(oracle, n_refinements=9).fit(0)
    assert len(oracle.calls) == 3
    np.testing.assert_array_equal(stage.rows, [better])
    assert len({seed for *_, seed in oracle.calls}) == 1
    costs = weak_learner_costs(MARGINS, optimal_step(sums_of(first), MARGINS))
    np.testing.assert_allclose(oracle.calls[1][1], costs, rtol=1e-9)


# Probabilities.


class Believer(PosteriorMixin):
    def __init__(self, prior):
        self.prior = np.asarray(prior, dtype=np.float64)

    def _log_prior(self):
        return np.log(self.prior)


def test_posterior_from_scores() -> None:
    prior, scores = [0.2, 0.3, 0.5], np.random.default_rng(0).normal(size=(10, 3))
    odds = prior * np.exp(-scores)
    posterior = Believer(prior)._posterior(scores)
    np.testing.assert_allclose(posterior, odds / odds.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(Believer(np.multiply(prior, 7))._posterior(scores), posterior)
    np.testing.assert_allclose(Believer(prior)._posterior(scores + 1e3), posterior, rtol=1e-9)


def test_posterior_of_huge_scores() -> None:
    scores = np.array([[1e5, 0.0], [-1e300, 1e300], [0, 0]])
    expected = [[0, 1], [1, 0], [0.25, 0.75]]
    np.testing.assert_allclose(Believer([1, 3])._posterior(scores), expected)


def test_the_prior_is_uniform_by_default() -> None:
    uniform, scores = PosteriorMixin(), np.random.default_rng(0).normal(size=(10, 3))
    uniform.classes_ = np.arange(3)
    expected = Believer([1, 1, 1])._posterior(scores)
    np.testing.assert_array_equal(uniform._posterior(scores), expected)


def test_an_estimator_is_fitted_on_the_cpu() -> None:
    model = BAdaCostClassifier(estimator=DecisionTreeClassifier(), device="cuda")
    with pytest.raises(ValueError, match="estimator is fitted on the CPU: leave it out"):
        model.fit([[0.0], [1.0]], [0, 1])
