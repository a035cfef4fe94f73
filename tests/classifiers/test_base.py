"""The loop around the rounds: stopping, resuming, subsampling, callbacks, progress."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier
from badacost.boosting.stagewise import Round
from badacost.loss import cmel
from tests.forests import assert_same_forest

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
X, Y = make_classification(
    500, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.6, random_state=0
)
X_TRAIN, X_VAL, Y_TRAIN, Y_VAL = train_test_split(X, Y, test_size=0.3, random_state=0)


def booster(**parameters) -> BAdaCostClassifier:
    defaults = {"n_estimators": 12, "max_depth": 3, "random_state": 0}
    return BAdaCostClassifier(COSTS, **{**defaults, **parameters})


def assert_same_model(one: BAdaCostClassifier, other: BAdaCostClassifier) -> None:
    """Equal to the last bit."""
    np.testing.assert_array_equal(one.estimator_weights_, other.estimator_weights_)
    np.testing.assert_array_equal(one.train_score_, other.train_score_)
    np.testing.assert_array_equal(one.validation_score_, other.validation_score_)
    np.testing.assert_array_equal(one.cost_scores(X), other.cost_scores(X))
    assert one.stop_reason_ == other.stop_reason_
    if one.estimator is None:
        assert_same_forest(one.forest_, other.forest_)


def best_round(model: BAdaCostClassifier) -> int:
    """Of the rounds of least cost on the validation data, that of least loss, counted from 1."""
    losses = [cmel(scores, Y_VAL) for scores in model.staged_cost_scores(X_VAL)]
    cheapest = model.validation_score_ <= model.validation_score_.min() + model.tol
    return int(np.argmin(np.where(cheapest, losses, np.inf))) + 1


# Scores of the rounds.


@pytest.mark.parametrize("decision", ["margin", "bayes"])
@pytest.mark.parametrize("scoring", ["cost", "loss"])
def test_scores_are_what_they_say(scoring, decision) -> None:
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X_TRAIN))
    weight_val = np.random.default_rng(1).uniform(0, 2, len(X_VAL))
    model = booster(scoring=scoring, decision=decision).fit(
        X_TRAIN, Y_TRAIN, weight, X_val=X_VAL, y_val=Y_VAL, sample_weight_val=weight_val
    )
    assert len(model.train_score_) == len(model.validation_score_) == model.n_estimators_ == 12
    parts = [
        (model.train_score_, X_TRAIN, Y_TRAIN, weight),
        (model.validation_score_, X_VAL, Y_VAL, weight_val),
    ]
    for curve, data, y, w in parts:
        if scoring == "loss":
            expected = [cmel(scores, y, w) for scores in model.staged_cost_scores(data)]
        else:
            expected = [
                np.average(COSTS[y, predicted], weights=w)
                for predicted in model.staged_predict(data)
            ]
        np.testing.assert_allclose(curve, expected, rtol=1e-12)


def test_training_loss_falls_every_round() -> None:
    model = booster(scoring="loss", n_estimators=40).fit(X, Y)
    assert (np.diff(model.train_score_) < 0).all()


def test_without_validation_data_there_are_no_validation_scores() -> None:
    assert booster().fit(X, Y).validation_score_.shape == (0,)


# Early stopping.


def test_given_validation_data_do_not_stop_unasked() -> None:
    plain = booster(n_estimators=30).fit(X_TRAIN, Y_TRAIN)
    followed = booster(n_estimators=30).fit(X_TRAIN, Y_TRAIN, X_val=X_VAL, y_val=Y_VAL)
    assert followed.n_estimators_ == 30
    assert followed.stop_reason_ is None
    np.testing.assert_array_equal(plain.cost_scores(X), followed.cost_scores(X))


@pytest.mark.parametrize("scoring", ["cost", "loss"])
@pytest.mark.parametrize("given", [True, False], ids=["given", "held out"])
def test_early_stopping_cuts_back_to_the_best_round(scoring, given) -> None:
    """The same rounds without stopping tell where the end has to be."""
    parameters = {"n_estimators": 80, "learning_rate": 1.0, "scoring": scoring, "max_depth": 5}
    validation = {"X_val": X_VAL, "y_val": Y_VAL} if given else {}
    stopped = booster(**parameters, early_stopping=True, n_iter_no_change=6).fit(
        X_TRAIN, Y_TRAIN, **validation
    )
    assert stopped.stop_reason_ == "early stopping"
    assert stopped.n_estimators_ == len(stopped.validation_score_) == len(stopped.train_score_)
    assert stopped.n_estimators_ == stopped.forest_.n_trees < 74
    assert stopped.validation_score_[-1] <= stopped.validation_score_.min() + stopped.tol
    if given:
        best = stopped.n_estimators_
        full = booster(**{**parameters, "n_estimators": best + 6})
        full.fit(X_TRAIN, Y_TRAIN, **validation)
        np.testing.assert_array_equal(full.validation_score_[:best], stopped.validation_score_)
        assert (full.validation_score_[best : best + 6] >= stopped.validation_score_[-1]).all()
        at_best = list(full.staged_cost_scores(X))[best - 1]
        np.testing.assert_array_equal(at_best, stopped.cost_scores(X))


@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
def test_the_best_round_is_kept_even_if_the_fit_was_not_stopped(learning_rate) -> None:
    parameters = {"n_estimators": 40, "learning_rate": learning_rate, "max_depth": 5}
    validation = {"X_val": X_VAL, "y_val": Y_VAL}
    full = booster(**parameters).fit(X_TRAIN, Y_TRAIN, **validation)
    best = best_round(full)
    assert best < 40
    cut = booster(**parameters, early_stopping=True, n_iter_no_change=100)
    cut.fit(X_TRAIN, Y_TRAIN, **validation)
    assert cut.stop_reason_ is None
    assert cut.n_estimators_ == cut.forest_.n_trees == len(cut.train_score_) == best
    at_best = list(full.staged_cost_scores(X))[best - 1]
    np.testing.assert_array_equal(cut.cost_scores(X), at_best)


def test_the_loss_decides_where_costs_stay_the_same() -> None:
    """Samples that every round gets right cost nothing from the start, but become surer."""
    stages = list(booster(n_estimators=30).fit(X_TRAIN, Y_TRAIN).staged_predict(X_VAL))
    sure = (np.array(stages) == Y_VAL).all(axis=0)
    model = booster(n_estimators=30, early_stopping=True, n_iter_no_change=4)
    model.fit(X_TRAIN, Y_TRAIN, X_val=X_VAL[sure], y_val=Y_VAL[sure])
    assert not model.validation_score_.any()
    losses = [cmel(scores, Y_VAL[sure]) for scores in model.staged_cost_scores(X_VAL[sure])]
    assert np.argmin(losses) == model.n_estimators_ - 1 > 10


@pytest.mark.parametrize("seed", [0, 1, 3, 5, 7])
def test_early_stopping_waits_for_decisions_to_change(seed) -> None:
    """With small steps and strongly different costs, the first rounds all decide alike."""
    data, y = make_classification(
        1000, 12, n_informative=5, n_classes=4, flip_y=0.2, class_sep=1.0, random_state=seed
    )
    costs = np.random.default_rng(seed).uniform(1, 20, (4, 4)) * (1 - np.eye(4))
    train, test, y_train, y_test = train_test_split(data, y, random_state=0)
    parameters = {"cost_matrix": costs, "decision": "bayes", "max_depth": 1, "random_state": 0}
    full = BAdaCostClassifier(**parameters).fit(train, y_train)
    stopped = BAdaCostClassifier(**parameters, early_stopping=True, validation_fraction=0.3)
    stopped.fit(train, y_train)
    assert len(np.unique(stopped.predict(test))) > 1
    paid, in_full = (costs[y_test, model.predict(test)].mean() for model in (stopped, full))
    assert paid < 1.05 * in_full


def test_a_model_of_one_answer_warns() -> None:
    costs = [[0, 1, 1], [1, 0, 1], [50, 60, 0]]
    model = BAdaCostClassifier(costs, decision="bayes", max_depth=1, n_estimators=3)
    expected = "predicts 2 .* n_estimators"
    with pytest.warns(ConvergenceWarning, match=expected) as seen:
        model.fit(X, Y)
    assert seen[0].filename == __file__
    assert (model.predict(X) == 2).all()


def test_tolerance_stops_earlier() -> None:
    validation = {"X_val": X_VAL, "y_val": Y_VAL}
    parameters = {"n_estimators": 60, "early_stopping": True, "scoring": "loss"}
    patient = booster(**parameters, tol=0.0, n_iter_no_change=3).fit(X_TRAIN, Y_TRAIN, **validation)
    hasty = booster(**parameters, tol=0.5, n_iter_no_change=3).fit(X_TRAIN, Y_TRAIN, **validation)
    assert hasty.n_estimators_ < patient.n_estimators_
    assert hasty.n_estimators_ <= 4


@pytest.mark.parametrize(("fraction", "n_held_out"), [(0.2, 100), (0.5, 250), (60, 60)])
def test_size_of_the_validation_part(fraction, n_held_out) -> None:
    rounds: list[Round] = []
    booster(early_stopping=True, validation_fraction=fraction, callbacks=[rounds.append]).fit(X, Y)
    assert len(rounds[0].sample_weight) == 500 - n_held_out


@pytest.mark.parametrize("fraction", [1.0, 1.5, 500])
def test_validation_part_that_leaves_nothing(fraction) -> None:
    model = BAdaCostClassifier(early_stopping=True, validation_fraction=fraction)
    with pytest.raises(ValueError, match="leaves no training samples: choose a smaller one"):
        model.fit(X, Y)


def test_validation_part_depends_on_the_samples_and_not_on_their_order() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    one = booster(early_stopping=True, random_state=3).fit(X, Y)
    other = booster(early_stopping=True, random_state=3).fit(X[order], Y[order])
    np.testing.assert_array_equal(one.validation_score_, other.validation_score_)
    np.testing.assert_array_equal(one.cost_scores(X), other.cost_scores(X))


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"X_val": X_VAL}, "X_val and y_val belong together"),
        ({"y_val": Y_VAL}, "X_val and y_val belong together"),
        ({"sample_weight_val": np.ones(3)}, "sample_weight_val belongs to X_val and y_val"),
        ({"X_val": X_VAL[:, :2], "y_val": Y_VAL}, "X has 2 features, but BAdaCostClassifier"),
        (
            {"X_val": X_VAL, "y_val": Y_VAL + 1},
            r"y_val has labels that are not .* classes \(3\)",
        ),
        ({"X_val": X_VAL, "y_val": Y_VAL[1:]}, "inconsistent numbers of samples"),
    ],
)
def test_wrong_validation_data(validation, message) -> None:
    with pytest.raises(ValueError, match=message):
        booster().fit(X, Y, **validation)


# Warm start.


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"subsample": 0.6, "max_features": 0.5},
        {"n_refinements": 2, "scoring": "loss"},
        {"estimator": DecisionTreeClassifier(max_depth=2, max_features=2)},
        {"estimator": GaussianNB(), "subsample": 0.5},
        {"early_stopping": True, "n_iter_no_change": 4, "learning_rate": 0.5},
        {"early_stopping": True, "subsample": 0.5, "n_iter_no_change": 40},
    ],
    ids=lambda parameters: "-".join(parameters) or "default",
)
def test_warm_start_equals_one_long_fit(parameters) -> None:
    weight = np.random.default_rng(0).uniform(0, 2, len(X)) if parameters else None
    whole = booster(n_estimators=14, **parameters).fit(X, Y, weight)
    parts = booster(n_estimators=3, warm_start=True, **parameters)
    for n_estimators in (3, 4, 9, 14, 14):
        parts.set_params(n_estimators=max(n_estimators, getattr(parts, "n_estimators_", 1)))
        parts.fit(X, Y, weight)
    assert_same_model(whole, parts)


def test_warm_start_with_given_validation_data() -> None:
    validation = {"X_val": X_VAL, "y_val": Y_VAL}
    whole = booster(n_estimators=20).fit(X_TRAIN, Y_TRAIN, **validation)
    parts = booster(n_estimators=7, warm_start=True).fit(X_TRAIN, Y_TRAIN, **validation)
    assert_same_model(whole, parts.set_params(n_estimators=20).fit(X_TRAIN, Y_TRAIN, **validation))


@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"callbacks": [lambda done: done.number == 4]}, "callback"),
        ({"early_stopping": True, "n_iter_no_change": 2, "learning_rate": 1.0}, "early stopping"),
        ({"n_estimators": 4}, None),
        ({"max_depth": None}, "perfect"),
    ],
)
def test_a_warm_start_that_adds_nothing_changes_nothing(parameters, reason, again) -> None:
    validation = {"X_val": X_VAL, "y_val": Y_VAL}
    model = booster(**{"n_estimators": 60, **parameters}).fit(X_TRAIN, Y_TRAIN, **validation)
    assert model.stop_reason_ == reason
    before = copy(model)
    model.set_params(warm_start=True, n_estimators=model.n_estimators_)
    for _ in range(again):
        model.fit(X_TRAIN, Y_TRAIN, **validation)
        assert_same_model(before, model)


def test_early_stopping_switched_on_by_a_warm_start() -> None:
    """Rounds fitted before are scored as well, so that curves and rounds keep step."""
    validation = {"X_val": X_VAL, "y_val": Y_VAL}
    model = booster(n_estimators=10, warm_start=True, learning_rate=0.05).fit(X_TRAIN, Y_TRAIN)
    model.set_params(n_estimators=40, early_stopping=True, n_iter_no_change=40)
    model.fit(X_TRAIN, Y_TRAIN, **validation)
    whole = booster(n_estimators=40, learning_rate=0.05).fit(X_TRAIN, Y_TRAIN, **validation)
    best = best_round(whole)
    assert len(model.validation_score_) == len(model.train_score_) == model.n_estimators_ == best
    np.testing.assert_array_equal(model.validation_score_, whole.validation_score_[:best])


def test_cold_start_forgets() -> None:
    model = booster(n_estimators=5).fit(X, Y)
    assert_same_model(model.set_params(n_estimators=8).fit(X, Y), booster(n_estimators=8).fit(X, Y))
    iris = load_iris(return_X_y=True)
    assert model.fit(*iris).n_features_in_ == 4


@pytest.mark.parametrize(
    ("change", "y", "message"),
    [
        ({"n_estimators": 4}, Y, "n_estimators must be at least 5"),
        ({}, np.where(Y == 2, 1, Y), r"classes must stay \[0 1 2\]; got \[0 1\]"),
        ({}, Y + 1, r"classes must stay \[0 1 2\]; got \[1 2 3\]"),
        ({"cost_matrix": COSTS.T}, Y, "costs and their scale must stay"),
        ({"cost_scale": 0.1}, Y, "costs and their scale must stay"),
        (
            {"estimator": GaussianNB()},
            Y,
            "weak learner must stay",
        ),
    ],
)
def test_what_a_warm_start_cannot_change(change, y, message) -> None:
    model = booster(n_estimators=5, warm_start=True).fit(X, Y)
    before = model.cost_scores(X)
    parameters = model.get_params()
    with pytest.raises(ValueError, match=message):
        model.set_params(**{"n_estimators": 10, **change}).fit(X, y)
    model.set_params(**parameters)
    np.testing.assert_array_equal(model.cost_scores(X), before)
    model.set_params(n_estimators=12).fit(X, Y)
    assert_same_model(model, booster().fit(X, Y))


def test_warm_start_after_a_fit_that_failed() -> None:
    model = booster(warm_start=True, early_stopping=True, validation_fraction=500)
    with pytest.raises(ValueError, match="leaves no training samples"):
        model.fit(X, Y)
    assert_same_model(model.set_params(early_stopping=False).fit(X, Y), booster().fit(X, Y))


def test_warm_start_after_a_callback_raised() -> None:
    def interrupt(done: Round) -> None:
        raise KeyboardInterrupt

    model = booster(warm_start=True, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert_same_model(model.set_params(callbacks=None).fit(X, Y), booster().fit(X, Y))


def test_warm_start_after_a_second_fit_that_failed() -> None:
    model = booster(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match="costs have shape"):
        model.fit(X, Y % 2)
    model.set_params(warm_start=True, n_estimators=12).fit(X, Y)
    assert_same_model(model, booster().fit(X, Y))


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_another_estimator_is_meant_for_the_next_fit(estimator) -> None:
    model = booster(estimator=estimator).fit(X, Y)
    before = model.cost_scores(X)
    stages = list(model.staged_cost_scores(X))
    model.set_params(estimator=GaussianNB() if estimator is None else None)
    np.testing.assert_array_equal(model.cost_scores(X), before)
    np.testing.assert_array_equal(list(model.staged_cost_scores(X)), stages)
    assert hasattr(model, "feature_importances_") == (estimator is None)
    assert hasattr(model.fit(X, Y), "forest_") == (estimator is not None)


# Subsampling.


def test_subsample_is_about_the_share_of_the_samples_of_a_tree() -> None:
    model = booster(subsample=0.3).fit(X, Y)
    n_drawn = model.forest_.count[model.forest_.offsets[:-1]]
    assert (np.abs(n_drawn - 150) < 4 * np.sqrt(500 * 0.3 * 0.7)).all()
    tiny = booster(subsample=1e-9, n_estimators=2)  # nothing is drawn: that would be no tree
    assert tiny.fit(X, Y).forest_.count[0] == 500


def test_every_round_draws_anew() -> None:
    model = booster(subsample=0.5, max_depth=1).fit(X, Y)
    assert len(np.unique(model.forest_.threshold[model.forest_.offsets[:-1]])) > 6


# Callbacks and progress.


def test_rounds_told_to_callbacks() -> None:
    rounds: list[Round] = []
    model = booster(callbacks=[rounds.append]).fit(X_TRAIN, Y_TRAIN, X_val=X_VAL, y_val=Y_VAL)
    assert [done.number for done in rounds] == list(range(1, 13))
    np.testing.assert_array_equal([done.step for done in rounds], model.estimator_weights_)
    np.testing.assert_array_equal([done.train_score for done in rounds], model.train_score_)
    validation = [done.validation_score for done in rounds]
    np.testing.assert_array_equal(validation, model.validation_score_)
    margins = model.forest_.table.T
    weight = np.full(len(X_TRAIN), 1 / len(X_TRAIN))
    leaves = model.apply(X_TRAIN)
    for i, done in enumerate(rounds):
        tree = model.forest_.trees()[i]
        np.testing.assert_array_equal(done.predicted, tree.value[leaves[:, i]])
        weight = weight * np.exp(done.step * margins[Y_TRAIN, done.predicted])
        weight /= weight.sum()
        np.testing.assert_allclose(done.sample_weight, weight, rtol=1e-9)


def test_no_validation_score_without_validation_data() -> None:
    rounds: list[Round] = []
    booster(callbacks=[rounds.append]).fit(X, Y)
    assert all(done.validation_score is None for done in rounds)


def test_a_callback_ends_the_fit() -> None:
    seen: list[int] = []
    callbacks = [lambda done: done.number == 4, lambda done: seen.append(done.number)]
    model = booster(callbacks=callbacks).fit(X, Y)
    assert model.n_estimators_ == 4
    assert model.stop_reason_ == "callback"
    assert seen == [1, 2, 3, 4]  # the others hear of the last round too
    plain = booster(n_estimators=4).fit(X, Y)
    np.testing.assert_array_equal(model.cost_scores(X), plain.cost_scores(X))
    model.set_params(warm_start=True, callbacks=None).fit(X, Y)
    assert_same_model(model, booster().fit(X, Y))


def test_callbacks_hear_of_a_perfect_round() -> None:
    rounds: list[Round] = []
    model = BAdaCostClassifier(callbacks=[rounds.append]).fit([[0], [0], [1], [1]], [0, 0, 1, 1])
    assert model.stop_reason_ == "perfect"
    assert len(rounds) == model.n_estimators_ == 1


@pytest.mark.parametrize("wrong", [["print"], [None], [print, 3], print])
def test_callbacks_that_are_none(wrong) -> None:
    with pytest.raises(TypeError, match="callbacks must be"):
        booster(callbacks=wrong).fit(X, Y)


def test_progress_bar(capsys) -> None:
    booster(n_estimators=20, verbose=1).fit(X_TRAIN, Y_TRAIN, X_val=X_VAL, y_val=Y_VAL)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 2
    assert "BAdaCostClassifier [##############################] 20/20  cost " in err
    assert "  validation cost " in err
    booster().fit(X, Y)
    assert capsys.readouterr() == ("", "")


# Reasons to stop.


def test_perfect_learner_ends_the_fit() -> None:
    data = np.repeat(np.arange(3.0), 5)[:, None]
    y = np.repeat(np.arange(3), 5)
    model = BAdaCostClassifier(COSTS, n_estimators=50, warm_start=True).fit(data, y)
    assert model.stop_reason_ == "perfect"
    assert model.n_estimators_ == 1
    assert model.score(data, y) == 1
    assert np.isfinite(model.estimator_weights_).all()
    assert model.predict_proba(data).max(axis=1).min() > 0.5
    before = model.cost_scores(data)
    np.testing.assert_array_equal(model.fit(data, y).cost_scores(data), before)


def test_a_first_learner_without_use_warns_and_decides_alone() -> None:
    data, y = np.zeros((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    model = BAdaCostClassifier()
    with pytest.warns(ConvergenceWarning, match="The first weak learner is no better than chance"):
        model.fit(data, y)
    assert model.stop_reason_ == "useless"
    assert model.n_estimators_ == 1
    np.testing.assert_allclose(model.predict_proba(data), 1 / 3, atol=1e-4)
    np.testing.assert_array_equal(model.feature_importances_, 0)


def test_a_constant_feature_leaves_the_cheapest_class() -> None:
    """No test is possible, but the costs still say which answer is best."""
    costs = np.array([[0.0, 1, 1], [1, 0, 1], [8, 8, 0]])
    model = BAdaCostClassifier(costs, n_estimators=20, random_state=0)
    model.fit(np.zeros((9, 1)), np.repeat([0, 1, 2], 3))
    np.testing.assert_array_equal(model.predict(np.zeros((2, 1))), 2)


def test_a_later_learner_without_use_is_left_out() -> None:
    """XOR of two bits with one flipped copy: stumps soon have nothing to gain."""
    data = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    y = np.array([0, 1, 1, 0, 0])
    model = BAdaCostClassifier(max_depth=1, n_estimators=500, learning_rate=1.0).fit(data, y)
    assert model.stop_reason_ == "useless"
    assert 1 <= model.n_estimators_ < 500
    assert (model.estimator_weights_ > 0).all()
    assert len(model.train_score_) == model.n_estimators_
