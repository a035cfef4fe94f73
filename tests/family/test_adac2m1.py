"""AdaC2.M1: the published weights and votes, replayed in the plainest way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from badacost.boosting.stagewise import Round
from badacost.costs import zero_one_costs
from badacost.family import AdaBoostM1Classifier, AdaC2M1Classifier

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
X, Y = make_classification(
    500, 6, n_informative=4, n_classes=3, flip_y=0.1, class_sep=1.5, random_state=0
)


def history(model, X=X, y=Y, weight=None) -> list[Round]:
    """Fit, and return what callbacks are told."""
    rounds: list[Round] = []
    model.set_params(callbacks=[rounds.append]).fit(X, y, weight)
    return rounds


def costs_for(n_classes: int) -> np.ndarray:
    """Different costs of all mistakes, none of them symmetric."""
    return np.random.default_rng(0).uniform(1, 3, (n_classes, n_classes)) * zero_one_costs(
        n_classes
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize(
    ("data", "depth"),
    [
        (load_breast_cancer(return_X_y=True), 1),
        (load_iris(return_X_y=True), 1),
        ((X, Y), 3),
        (load_digits(return_X_y=True), 5),
    ],
    ids=["cancer", "iris", "made up", "digits"],
)
def test_published_algorithm(data, depth, rate, weighted) -> None:
    """Sun et al., from the labels of the trees alone; a rate below one shrinks costs as well."""
    X, y = data
    k = len(np.unique(y))
    costs = costs_for(k)
    given = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = AdaC2M1Classifier(costs, n_estimators=8, learning_rate=rate, max_depth=depth)
    rounds = history(model, X, y, given if weighted else None)
    assert len(rounds) > 1
    price = costs.sum(axis=1)[y]
    weights = given / given.sum()
    votes = np.zeros((len(y), k))
    leaves, stages = model.apply(X), list(model.staged_predict(X))
    for i, tree in enumerate(model.forest_.trees()):
        labels = tree.value[leaves[:, i]]
        right = labels == y
        alpha = 0.5 * np.log((price * weights)[right].sum() / (price * weights)[~right].sum())
        assert alpha > 0
        weights = weights * price**rate * np.exp(rate * np.where(right, -alpha, alpha))
        weights /= weights.sum()
        votes[np.arange(len(y)), labels] += rate * alpha
        np.testing.assert_array_equal(rounds[i].predicted, labels)
        assert rounds[i].step == pytest.approx(2 * rate * alpha, rel=1e-9)
        np.testing.assert_allclose(rounds[i].sample_weight, weights, rtol=1e-9)
        np.testing.assert_array_equal(stages[i], votes.argmax(axis=1))


def test_equal_costs_are_adaboost_m1() -> None:
    model = AdaC2M1Classifier(7 * zero_one_costs(3), n_estimators=8).fit(X, Y)
    plain = AdaBoostM1Classifier(n_estimators=8).fit(X, Y)
    np.testing.assert_array_equal(model.cost_scores(X), plain.cost_scores(X))
    np.testing.assert_array_equal(model.apply(X), plain.apply(X))


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_scale_of_costs_has_no_effect(rate) -> None:
    parameters = {"n_estimators": 8, "learning_rate": rate}
    plain = AdaC2M1Classifier(COSTS, **parameters).fit(X, Y)
    for factor in (2.0**-40, 1024.0, 1e-200, 1e-3, 1000.0, 1e200):
        scaled = AdaC2M1Classifier(factor * COSTS, **parameters).fit(X, Y)
        np.testing.assert_array_equal(scaled.apply(X), plain.apply(X))
        np.testing.assert_allclose(scaled.estimator_weights_, plain.estimator_weights_, rtol=1e-9)
        np.testing.assert_allclose(scaled.train_score_, factor * plain.train_score_)


def test_only_the_sums_of_rows_count() -> None:
    other = np.array([[0.0, 2.5, 0.5], [0, 0, 4], [5, 0, 0]])
    assert (other.sum(axis=1) == COSTS.sum(axis=1)).all()
    one, two = (AdaC2M1Classifier(c, n_estimators=10).fit(X, Y) for c in (COSTS, other))
    np.testing.assert_array_equal(one.cost_scores(X), two.cost_scores(X))
    assert (one.train_score_ != two.train_score_).any()  # though what it costs differs
    turned = AdaC2M1Classifier(COSTS.T, n_estimators=10).fit(X, Y)
    assert (one.cost_scores(X) != turned.cost_scores(X)).any()


def test_the_first_learner_is_blind_to_costs() -> None:
    """Costs enter with the first vote, not before."""
    costly, plain = (
        history(AdaC2M1Classifier(c, n_estimators=2, learning_rate=1.0)) for c in (COSTS, None)
    )
    np.testing.assert_array_equal(costly[0].predicted, plain[0].predicted)
    assert (costly[1].predicted != plain[1].predicted).any()


def test_a_expensive_class_is_missed_less() -> None:
    costs = zero_one_costs(3)
    missed = []
    for expensive in (None, 0, 1, 2):
        priced = costs.copy()
        if expensive is not None:
            priced[expensive] *= 4
        predicted = AdaC2M1Classifier(priced, n_estimators=20, max_depth=5).fit(X, Y).predict(X)
        missed.append([(predicted[label == Y] != label).mean() for label in range(3)])
    for expensive in range(3):
        assert missed[expensive + 1][expensive] < missed[0][expensive]


# Right on more than half, weighted by cost.


def test_a_first_learner_wrong_on_more_than_half_decides_alone() -> None:
    """It is right on 7 of 10 samples: enough if the others cost 3 x 2, not if they cost 3 x 2.5."""
    data, y = np.zeros((10, 1)), np.repeat([0, 1], [7, 3])
    assert AdaC2M1Classifier([[0, 1], [2, 0]], n_estimators=1).fit(data, y).stop_reason_ is None
    model = AdaC2M1Classifier([[0, 1], [2.5, 0]])
    with pytest.warns(ConvergenceWarning, match="The first weak learner"):
        model.fit(data, y)
    assert model.stop_reason_ == "useless"
    np.testing.assert_array_equal(model.predict(data), 0)


def test_a_later_learner_wrong_on_more_than_half_ends_the_fit() -> None:
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)
    parameters = {"n_estimators": 50, "learning_rate": 1.0, "max_depth": 2, "binning": "exact"}
    model = AdaC2M1Classifier(COSTS, **parameters)
    rounds = history(model, X, y)
    assert model.stop_reason_ == "useless"
    assert 1 < len(rounds) == model.n_estimators_ < 50
    weights = rounds[-1].sample_weight
    wrong = DecisionTreeClassifier(max_depth=2).fit(X, y, weights).predict(X) != y
    priced = weights * COSTS.sum(axis=1)[y]
    assert priced[wrong].sum() >= priced[~wrong].sum()


# Edges.


def test_votes_are_no_probabilities() -> None:
    model = AdaC2M1Classifier(COSTS, n_estimators=3).fit(X, Y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "staged_predict_proba")


@pytest.mark.parametrize("change", [0.5, 2.0])
def test_a_warm_start_keeps_the_learning_rate(change) -> None:
    """Weights of earlier rounds are rebuilt with the power of the costs that they had."""
    model = AdaC2M1Classifier(COSTS, n_estimators=3, learning_rate=1.0, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=4, learning_rate=change)
    with pytest.raises(ValueError, match="learning_rate must stay 1: the costs in the weights"):
        model.fit(X, Y)
    model.set_params(learning_rate=np.float32(1)).fit(X, Y)
    whole = AdaC2M1Classifier(COSTS, n_estimators=4, learning_rate=1.0).fit(X, Y)
    np.testing.assert_array_equal(model.cost_scores(X), whole.cost_scores(X))


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e5])
@pytest.mark.parametrize("small", [1e-320, 1e-300, 1e-10])
def test_costs_at_the_ends_of_the_range(small, unit) -> None:
    costs = np.array([[0, 1e300, 1], [small, 0, small], [1e300, 0, 0]])
    model = AdaC2M1Classifier(costs, n_estimators=6, max_depth=5)
    rounds = history(model, weight=np.full(len(Y), unit))
    assert all(np.isfinite(done.sample_weight).all() for done in rounds)
    assert np.isfinite(model.cost_scores(X)).all()
