"""CostBoost: its rounds against numpy, folds, prices, and data that are small or hard."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

import badacost
from badacost import CostBoostClassifier
from badacost.boosting.stagewise import Round
from badacost.costs import labelled_costs, zero_one_costs
from tests.forests import assert_same_forest

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])
X, Y = make_classification(
    500, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.6, random_state=0
)
NEW, Y_NEW = make_classification(
    300, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.6, random_state=1
)
FOLDS = list(KFold(3).split(X))
WEIGHT = np.random.default_rng(0).uniform(0.5, 3.0, len(X))


def boost(costs: Any = COSTS, **parameters: Any) -> CostBoostClassifier:
    """A quick instance; nothing is left to the defaults that may be tuned."""
    defaults = {"n_estimators": 8, "learning_rate": 0.3, "max_depth": 3, "max_bins": 32}
    defaults |= {"n_folds": 3, "early_stopping": False, "random_state": 0, "max_features": None}
    defaults |= {"members": "trees"}
    return CostBoostClassifier(costs, **{**defaults, **parameters})


def assert_same_fit(one, other) -> None:
    """Equal to the last bit, what was left out included."""
    assert_same_forest(one.forest_, other.forest_)
    learned = ("log_prior_", "train_score_", "validation_score_", "oof_cost_", "oof_probabilities_")
    for name in learned:
        mine, theirs = (getattr(model, name, None) for model in (one, other))
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    assert one.stop_reason_ == other.stop_reason_
    np.testing.assert_array_equal(one.predict_proba(NEW), other.predict_proba(NEW))


# Rounds


@pytest.mark.parametrize("tree", ["symmetric", "best"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rounds_against_numpy(tree, n_classes) -> None:
    """Priors, Newton steps of the leaves and probabilities of each fold, from its trees alone."""
    y, l2, rate = Y % n_classes, 0.7, 0.3
    model = boost(None, cv=FOLDS, tree=tree, l2=l2, learning_rate=rate).fit(X, y, WEIGHT)
    assert model.forest_.n_trees == 3 * model.n_estimators_ == 24
    np.testing.assert_allclose(model.estimator_weights_, rate / 3)
    trees, leaves = model.forest_.trees(), model.apply(X)
    held_out, priors, scores = np.empty((500, n_classes)), [], np.zeros((500, n_classes))
    for k, (train, test) in enumerate(FOLDS):
        counts = np.bincount(y[train], WEIGHT[train], n_classes) + 1.0
        priors.append(np.log(counts / counts.sum()))
        logits = np.tile(priors[-1], (500, 1))
        for number in range(k, 24, 3):
            p = softmax(logits, axis=1)
            gradient = WEIGHT[:, None] * (p - np.eye(n_classes)[y])
            hessian = WEIGHT[:, None] * p * (1.0 - p)
            mean = hessian[train].sum() / WEIGHT[train].sum()
            damping = l2 * np.sqrt(mean / (1.0 - 1.0 / n_classes))
            values = model.forest_.table[trees[number].value]
            for leaf in np.unique(leaves[train, number]):
                there = train[leaves[train, number] == leaf]
                step = gradient[there].sum(axis=0) / (hessian[there].sum(axis=0) + damping)
                expected = np.clip((1.0 - 1.0 / n_classes) * step, -4.0, 4.0)
                np.testing.assert_allclose(values[leaf], expected, atol=1e-5)
            logits -= rate * values[leaves[:, number]]
            scores += rate / 3 * values[leaves[:, number]]
        held_out[test] = softmax(logits, axis=1)[test]
    np.testing.assert_allclose(model.log_prior_, np.mean(priors, axis=0))
    np.testing.assert_allclose(model.cost_scores(X), scores, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), softmax(model.log_prior_ - scores, axis=1))
    np.testing.assert_allclose(model.oof_probabilities_, held_out, atol=1e-6)


def test_curves_are_log_losses() -> None:
    model = boost(n_folds=1).fit(X, Y, WEIGHT, X_val=NEW, y_val=Y_NEW)
    parts = [(model.train_score_, X, Y, WEIGHT), (model.validation_score_, NEW, Y_NEW, None)]
    for curve, samples, y, weight in parts:
        expected = [
            log_loss(y, p, sample_weight=weight) for p in model.staged_predict_proba(samples)
        ]
        np.testing.assert_allclose(curve, expected, rtol=1e-6)
    assert (np.diff(model.train_score_) < 0).all()


def test_the_curve_of_what_is_left_out() -> None:
    model = boost().fit(X, Y, WEIGHT)
    assert len(model.validation_score_) == model.n_estimators_
    losses = -np.log(model.oof_probabilities_[np.arange(500), Y])
    loss = np.average(losses, weights=WEIGHT)
    assert model.validation_score_[-1] == pytest.approx(loss, rel=1e-6)
    paid = COSTS[Y, (model.oof_probabilities_ @ COSTS).argmin(axis=1)]
    assert model.oof_cost_ == pytest.approx(np.average(paid, weights=WEIGHT))


@pytest.mark.parametrize("tree", ["symmetric", "best"])
def test_what_trees_may_be(tree) -> None:
    model = boost(tree=tree, max_depth=2, max_leaf_nodes=3).fit(X, Y)
    sizes = np.diff(model.forest_.offsets)
    assert set(sizes) <= ({3} if tree == "symmetric" else {1, 3, 5})
    assert set(np.diff(boost(tree=tree, max_depth=2).fit(X, Y).forest_.offsets)) <= {5, 7}


@pytest.mark.parametrize("tree", ["symmetric", "best"])
@pytest.mark.parametrize("limit", ["min_samples_leaf", "min_samples_split"])
def test_minimum_numbers_of_samples(tree, limit) -> None:
    """A test of a symmetric tree may leave a node whole, but not divide one of too few samples."""
    forest = boost(tree=tree, max_depth=4, n_folds=1, **{limit: 60}).fit(X, Y).forest_
    n_divided = 0
    for tree_ in forest.trees():
        inner = np.flatnonzero(~tree_.is_leaf)
        children = tree_.count[np.stack([tree_.left[inner], tree_.left[inner] + 1])]
        divided = children.min(axis=0) > 0
        n_divided += divided.sum()
        if limit == "min_samples_leaf":
            assert (children.min(axis=0)[divided] >= 60).all()
        else:
            assert (tree_.count[inner][divided] >= 60).all()
    assert n_divided > 20


def test_a_larger_l2_is_more_careful() -> None:
    sure, careful = (boost(l2=l2).fit(X, Y).predict_proba(NEW) for l2 in (0.1, 100.0))
    assert sure.max(axis=1).mean() > careful.max(axis=1).mean() + 0.1


@pytest.mark.parametrize("parameters", [{"subsample": 0.5}, {"max_features": 1}, {"cv": FOLDS}])
def test_chance_comes_from_the_seed(parameters) -> None:
    one, same, other = (boost(random_state=s, **parameters).fit(X, Y) for s in (0, 0, 1))
    assert_same_fit(one, same)
    assert (one.predict_proba(NEW) != other.predict_proba(NEW)).any()


def test_another_number_of_directions() -> None:
    one, three = (boost(None, n_directions=n, n_estimators=30).fit(X, Y) for n in (1, 3))
    assert min(one.score(X, Y), three.score(X, Y)) > 0.7
    assert (one.predict_proba(NEW) != three.predict_proba(NEW)).any()


# Folds, early stopping, warm start


def test_left_out_probabilities() -> None:
    model = boost().fit(X, Y)
    assert model.oof_probabilities_.shape == (500, 3)
    np.testing.assert_allclose(model.oof_probabilities_.sum(axis=1), 1.0, atol=1e-6)
    assert log_loss(Y, model.predict_proba(X)) < model.validation_score_[-1]  # those are honest


def test_rows_without_weight_are_not_left_out() -> None:
    weight = np.where(np.arange(500) % 4 == 0, 0.0, WEIGHT)
    for parameters in ({}, {"cv": FOLDS}, {"cv": KFold(4)}):
        model = boost(**parameters).fit(X, Y, weight)
        np.testing.assert_array_equal(np.isnan(model.oof_probabilities_).all(axis=1), weight == 0)
        np.testing.assert_array_equal(np.isnan(model.oof_probabilities_).any(axis=1), weight == 0)
    without = boost().fit(X[weight > 0], Y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(
        boost().fit(X, Y, weight).oof_probabilities_[weight > 0], without.oof_probabilities_
    )


def test_rows_that_no_fold_leaves_out() -> None:
    cv = ShuffleSplit(2, test_size=0.2, random_state=0)
    model = boost(cv=cv).fit(X, Y)
    held_out = np.unique(np.concatenate([test for _, test in cv.split(X)]))
    known = np.flatnonzero(~np.isnan(model.oof_probabilities_[:, 0]))
    np.testing.assert_array_equal(known, held_out)
    assert np.isfinite(model.oof_cost_)


def test_groups_stay_together() -> None:
    """Samples that come in copies: random folds know the copies, folds of groups do not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 5)
    data, y = rng.normal(size=(60, 3))[groups], rng.integers(2, size=60)[groups]
    parameters = {"n_estimators": 60, "max_depth": 4}
    told = boost(None, cv=list(GroupKFold(3).split(data, y, groups)), **parameters).fit(data, y)
    fooled = boost(None, **parameters).fit(data, y)
    assert fooled.oof_cost_ < 0.15
    assert told.oof_cost_ > 0.35  # there is nothing to learn


def test_left_out_cost_is_what_decisions_will_cost() -> None:
    """On average over training sets; the mean of the folds is a little better than each of them."""
    found, paid = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        data = rng.normal(size=(4000, 4))
        logits = np.column_stack([data[:, 0], data[:, 1] * data[:, 2], data[:, 3]]) * 2.0
        y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        model = boost(n_estimators=60, early_stopping=True).fit(data[:400], y[:400])
        found.append(model.oof_cost_)
        paid.append(COSTS[y[400:], model.predict(data[400:])].mean())
    assert np.mean(found) == pytest.approx(np.mean(paid), rel=0.15)
    assert np.mean(found) > 0.95 * np.mean(paid)  # no promise that cannot be kept


def test_the_choice_of_the_round_does_not_flatter() -> None:
    """On noise: below the true cost by no more than that of the best constant decision is.

    That one is below it since it is chosen by the class frequencies it is measured on, which are
    those of stratified folds, too.
    """
    true_costs = COSTS.mean(axis=0)  # of decisions, for classes of equal probability
    differences = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        data, y, new = (
            rng.normal(size=(150, 5)),
            rng.integers(3, size=150),
            rng.normal(size=(2000, 5)),
        )
        model = CostBoostClassifier(COSTS, random_state=seed).fit(data, y)
        true_cost = true_costs[model.predict(new)].mean()
        constant = COSTS[y].mean(axis=0)
        of_constant = constant.min() / true_costs[constant.argmin()]
        differences.append(model.oof_cost_ / true_cost - of_constant)
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert np.mean(differences) > -2.0 * error
    assert error < 0.03


@pytest.mark.parametrize("parameters", [{}, {"cv": FOLDS}, {"n_folds": 1}])
@pytest.mark.parametrize("given", [False, True], ids=["left out", "given"])
def test_early_stopping_goes_back_to_the_best_round(parameters, given) -> None:
    validation = {"X_val": NEW[:200], "y_val": Y_NEW[:200]} if given else {}
    common = {"n_estimators": 80, "learning_rate": 0.8, "max_depth": 5, **parameters}
    model = boost(early_stopping=True, n_iter_no_change=5, **common).fit(X, Y, **validation)
    best = model.n_estimators_
    assert model.stop_reason_ == "early stopping"
    assert best < 75
    assert np.argmin(model.validation_score_) == best - 1
    if given or "n_folds" not in parameters:
        full = boost(**{**common, "n_estimators": best + 5}).fit(X, Y, **validation)
        at_best = boost(**{**common, "n_estimators": best}).fit(X, Y, **validation)
        assert np.argmin(full.validation_score_) == best - 1
        if given:
            assert model.oof_cost_ == at_best.oof_cost_
        np.testing.assert_array_equal(model.cost_scores(NEW), at_best.cost_scores(NEW))


def test_validation_data_tell_the_cost() -> None:
    for n_folds in (1, 3):
        model = boost(n_folds=n_folds).fit(X, Y, X_val=NEW, y_val=Y_NEW)
        assert model.oof_cost_ == pytest.approx(COSTS[Y_NEW, model.predict(NEW)].mean())
        assert not hasattr(model, "oof_probabilities_")


def test_nothing_is_left_out_unless_asked() -> None:
    model = boost(n_folds=1).fit(X, Y)
    assert np.isnan(model.oof_cost_)
    assert len(model.validation_score_) == 0
    assert not hasattr(model, "oof_probabilities_")


@pytest.mark.parametrize(("fraction", "n_held_out"), [(0.1, 50), (7, 7), (1e-6, 1), (0.998, 499)])
def test_held_out_part(fraction, n_held_out) -> None:
    rounds: list[Round] = []
    parameters = {"n_folds": 1, "early_stopping": True, "callbacks": [rounds.append]}
    model = boost(validation_fraction=fraction, **parameters).fit(X, Y)
    assert len(rounds[0].sample_weight) == 500 - n_held_out
    assert np.isfinite(model.oof_cost_)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"cv": FOLDS},
        {"n_folds": 1},
        {"n_folds": 1, "early_stopping": True},
        {"early_stopping": True, "n_iter_no_change": 12, "subsample": 0.7},
        {"tree": "best", "max_features": 2},
    ],
    ids=["folds", "cv", "one", "held out", "early stopping", "best"],
)
def test_a_warm_start_in_steps_is_one_fit(parameters, tmp_path) -> None:
    whole = boost(n_estimators=12, **parameters).fit(X, Y, WEIGHT)
    begun = boost(n_estimators=5, warm_start=True, **parameters).fit(X, Y, WEIGHT)
    begun.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    assert not hasattr(loaded, "oof_probabilities_")
    for steps in (begun, loaded.set_params(cv=parameters.get("cv"))):
        steps.set_params(n_estimators=9).fit(X, Y, WEIGHT)
        assert_same_fit(steps.set_params(n_estimators=12).fit(X, Y, WEIGHT), whole)


def test_a_warm_start_that_adds_nothing_changes_nothing() -> None:
    model = boost(warm_start=True).fit(X, Y)
    before = copy(model)
    assert_same_fit(model.fit(X, Y), before)


@pytest.mark.parametrize("change", [{"n_folds": 2}, {"n_folds": 4}, {"cv": FOLDS[:2]}])
def test_folds_must_stay_on_a_warm_start(change) -> None:
    model = boost(warm_start=True).fit(X, Y)
    before = model.predict_proba(NEW)
    with pytest.raises(ValueError, match="n_folds and cv must stay"):
        model.set_params(n_estimators=10, **change).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(NEW), before)
    assert not any(name.startswith("_left") for name in vars(model))


def test_an_interrupted_fit_leaves_nothing_behind() -> None:
    def interrupt(done: Round) -> None:
        raise KeyboardInterrupt

    model = boost(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not any(name.startswith("_left") for name in vars(model))
    assert not hasattr(model, "log_prior_")
    model = boost(warm_start=True, early_stopping=False, n_estimators=3).fit(X, Y)
    expected = model.predict_proba(X)
    model.set_params(n_estimators=6, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_a_warm_start_needs_the_same_samples() -> None:
    model = boost(warm_start=True, n_estimators=3).fit(X, Y)
    model.set_params(n_estimators=6)
    with pytest.raises(ValueError, match="the samples must stay as they were"):
        model.fit(X[1:], Y[1:])
    order = np.random.default_rng(0).permutation(len(Y))
    model.fit(X[order], Y[order])  # in any order


def test_the_cost_of_noise_is_that_of_guessing() -> None:
    """Equal rows in different folds must not give each other away."""
    rng = np.random.default_rng(0)
    costs = []
    for seed in range(12):
        data, y = rng.integers(0, 4, (400, 3)).astype(float), rng.integers(0, 2, 400)
        model = boost(None, n_estimators=30, n_folds=5, early_stopping=False, random_state=seed)
        costs.append(model.fit(data, y).oof_cost_)
    assert np.mean(costs) == pytest.approx(0.5, abs=0.03)


def test_rounds_told_to_callbacks() -> None:
    rounds: list[Round] = []
    model = boost(callbacks=[rounds.append]).fit(X, Y, WEIGHT)
    np.testing.assert_array_equal([d.train_score for d in rounds], model.train_score_)
    np.testing.assert_array_equal([d.validation_score for d in rounds], model.validation_score_)
    for done in rounds:
        np.testing.assert_allclose(done.sample_weight, WEIGHT / WEIGHT.sum())
        assert done.step == model.estimator_weights_[0]


def test_progress_bar(capsys) -> None:
    boost(verbose=1).fit(X, Y)
    shown = capsys.readouterr().err
    assert "CostBoostClassifier [" in shown
    assert "  log-loss " in shown
    assert "  validation log-loss " in shown


# Weights


@pytest.mark.parametrize("tree", ["symmetric", "best"])
def test_weights_stand_for_copies(tree) -> None:
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    fold = np.arange(len(X)) % 3
    copied = np.repeat(np.arange(len(X)), weight)

    def split(rows):
        return [
            (np.flatnonzero(fold[rows] != k), np.flatnonzero(fold[rows] == k)) for k in range(3)
        ]

    common = {"tree": tree, "binning": "quantile"}
    weighted = boost(cv=split(np.arange(len(X))), **common).fit(X, Y, weight)
    repeated = boost(cv=split(copied), **common).fit(X[copied], Y[copied])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5)
    np.testing.assert_allclose(weighted.train_score_, repeated.train_score_, rtol=1e-5)
    np.testing.assert_allclose(weighted.validation_score_, repeated.validation_score_, rtol=1e-5)
    assert weighted.oof_cost_ == pytest.approx(repeated.oof_cost_, rel=1e-5)
    np.testing.assert_allclose(
        weighted.oof_probabilities_[copied], repeated.oof_probabilities_, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("factor", [1e-300, 1e-9, 0.001])
def test_small_weights_warn(factor) -> None:
    """Weights that sum to one let the regularisation prevail."""
    with pytest.warns(UserWarning, match=r"sample_weight .* mean of one"):
        model = boost().fit(X, Y, WEIGHT / WEIGHT.mean() * factor)
    assert np.isfinite(model.predict_proba(NEW)).all()


def test_a_weight_of_two_is_a_sample_twice() -> None:
    """Without folds to the last bits; with folds the two may be in two of them."""
    twice = np.arange(len(X)) % 3 == 0
    X2, y2 = np.concatenate([X, X[twice]]), np.concatenate([Y, Y[twice]])
    one = boost(n_folds=1).fit(X, Y, 1.0 + twice).predict_proba(NEW)
    other = boost(n_folds=1).fit(X2, y2).predict_proba(NEW)
    np.testing.assert_allclose(one, other, rtol=1e-5)
    one, other = boost().fit(X, Y, 1.0 + twice), boost().fit(X2, y2)
    difference = np.abs(one.predict_proba(NEW) - other.predict_proba(NEW)).mean()
    seeds = [boost(random_state=seed).fit(X2, y2).predict_proba(NEW) for seed in (1, 2)]
    assert difference < 2.0 * np.abs(seeds[0] - seeds[1]).mean()


@pytest.mark.parametrize("binning", ["quantile", "uniform"])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"max_features": "auto"}, {"cv": FOLDS}, {"n_folds": 1, "early_stopping": True}],
)
def test_constant_features_change_nothing(parameters, binning) -> None:
    """They take part neither in folds or held-out parts nor in draws."""
    parameters = {"binning": binning, **parameters}

    def wider(part):
        ones = np.ones(len(part))
        return np.column_stack([ones, part, 7.0 * ones, np.nan * ones])

    one = boost(**parameters).fit(X, Y).predict_proba(NEW)
    other = boost(**parameters).fit(wider(X), Y).predict_proba(wider(NEW))
    np.testing.assert_array_equal(one, other)


def test_validation_fraction_is_for_a_single_model() -> None:
    with pytest.raises(ValueError, match=r"validation_fraction=0.2 .* n_folds=1"):
        boost(validation_fraction=0.2).fit(X, Y)


def test_the_cost_of_noise_is_not_flattered() -> None:
    """Labels that are independent of the features: the round must not be chosen by luck.

    Classes are equally frequent, so that each mistake has a probability of 2/3.
    """
    costs, errors = [], []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        data, y = rng.normal(size=(150, 5)), rng.permutation(np.arange(150) % 3)
        model = boost(None, early_stopping=True, n_estimators=40).fit(data, y)
        costs.append(model.oof_cost_)
        errors.append(model.oof_cost_std_error_)
    assert abs(np.mean(costs) - 2 / 3) < 2.0 * np.mean(errors) / np.sqrt(len(costs))
    assert np.std(costs) == pytest.approx(np.mean(errors), rel=0.4)


@pytest.mark.parametrize(
    "weight",
    [np.where(np.arange(500) == 7, 1e307, 1.0), np.full(500, 1e305), np.logspace(-300, 300, 500)],
    ids=["one huge", "huge", "all sizes"],
)
def test_huge_weights(weight) -> None:
    for parameters in ({}, {"early_stopping": True}, {"tree": "best"}):
        model = boost(COSTS * 1e3, **parameters).fit(X, Y, weight)
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.train_score_).all()
        assert np.isfinite(model.validation_score_).all()
        assert np.isfinite(model.oof_cost_)
    if np.ptp(weight) > 0.0:
        assert model.predict(X)[weight.argmax()] == Y[weight.argmax()]


# Prices


@cache
def fitted() -> CostBoostClassifier:
    return boost(n_estimators=20).fit(X, Y)


def test_equal_costs_choose_the_most_likely_class() -> None:
    model = boost(None).fit(X, Y)
    most_likely = model.predict_proba(NEW).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(NEW), most_likely)
    np.testing.assert_array_equal(model.decide(NEW, 7.0 * zero_one_costs(3)), most_likely)


def test_costs_take_no_part_in_the_training() -> None:
    other = boost(COSTS.T).fit(X, Y)
    np.testing.assert_array_equal(
        other.predict_proba(NEW), boost(COSTS).fit(X, Y).predict_proba(NEW)
    )
    np.testing.assert_array_equal(other.decide(NEW, COSTS), boost(COSTS).fit(X, Y).predict(NEW))
    assert (other.predict(NEW) != other.decide(NEW, COSTS)).any()


PRICES = st.lists(st.floats(0.1, 10.0), min_size=9, max_size=9).map(
    lambda values: np.reshape(values, (3, 3)) * zero_one_costs(3)
)


def clear(costs) -> np.ndarray:
    """Samples whose cheapest decision is cheaper than the next by more than rounding."""
    first, second = np.sort(fitted().predict_proba(NEW) @ costs, axis=1)[:, :2].T
    return second - first > 1e-9


@given(PRICES, st.floats(1e-3, 1e3), st.lists(st.floats(0, 10), min_size=3, max_size=3))
def test_units_and_prices_of_a_row_change_nothing(costs, factor, shift) -> None:
    """What every decision on a truth costs in any case is no reason to decide otherwise."""
    expected, sure = fitted().decide(NEW, costs), clear(costs)
    np.testing.assert_array_equal(expected, (fitted().predict_proba(NEW) @ costs).argmin(axis=1))
    for other in (costs * factor, costs + np.array(shift)[:, None]):
        np.testing.assert_array_equal(fitted().decide(NEW, other)[sure], expected[sure])


@given(PRICES, st.permutations(range(3)))
def test_permuted_prices_permute_the_decisions(costs, order) -> None:
    """One class may take the price of another: decisions follow the names, not the places."""
    named = {i: {j: costs[i, j] for j in order} for i in order}
    np.testing.assert_array_equal(fitted().decide(NEW, named), fitted().decide(NEW, costs))
    renamed = copy(fitted())
    renamed.classes_ = np.array(list("abc"))
    by_name = {"abc"[i]: {"abc"[j]: costs[i, j] for j in order} for i in order}
    np.testing.assert_array_equal(
        renamed.decide(NEW, by_name), np.array(list("abc"))[fitted().decide(NEW, costs)]
    )


def test_names_of_two_classes_may_be_exchanged() -> None:
    """Exactly, with the same folds: the two gradients are opposite, whatever the projections."""
    y = (Y > 0).astype(int)
    one = boost([[0, 1], [4, 0]], cv=FOLDS).fit(X, y)
    other = boost([[0, 4], [1, 0]], cv=FOLDS).fit(X, 1 - y)
    np.testing.assert_array_equal(one.predict_proba(NEW), other.predict_proba(NEW)[:, ::-1])
    np.testing.assert_array_equal(one.predict(NEW), 1 - other.predict(NEW))
    assert one.oof_cost_ == other.oof_cost_


def test_names_of_classes_that_keep_their_order_change_nothing() -> None:
    names = np.array(["ant", "bee", "cow"])
    other = boost(labelled_costs(COSTS, names)).fit(X, names[Y])
    np.testing.assert_array_equal(other.predict_proba(NEW), boost().fit(X, Y).predict_proba(NEW))


def test_names_in_another_order_change_the_projections_only() -> None:
    """Projections are drawn class by class, so that another order is another draw."""
    common = {"n_estimators": 60, "early_stopping": True}
    order = np.array([2, 0, 1])
    one = boost(**common).fit(X, Y)
    other = boost(COSTS[np.ix_(np.argsort(order), np.argsort(order))], **common).fit(X, order[Y])
    drawn = boost(random_state=1, **common).fit(X, Y)
    moved = np.abs(other.predict_proba(NEW)[:, order] - one.predict_proba(NEW)).mean()
    chance = np.abs(drawn.predict_proba(NEW) - one.predict_proba(NEW)).mean()
    assert moved < 2.0 * chance
    assert other.oof_cost_ == pytest.approx(one.oof_cost_, rel=0.1)


def test_asking_a_person() -> None:
    always = fitted().decide(NEW, abstain=0.0)
    assert always.mask.all()
    never = fitted().decide(NEW, abstain=np.inf)
    np.testing.assert_array_equal(never.astype(int), fitted().predict(NEW))
    price = float(np.median(fitted().predict_costs(NEW).min(axis=1)))
    some = fitted().decide(NEW, abstain=price)
    asked = fitted().predict_costs(NEW).min(axis=1) >= price
    np.testing.assert_array_equal(some.mask, asked)
    assert 0 < asked.sum() < len(NEW)


# Hard data


@pytest.mark.parametrize("tree", ["symmetric", "best"])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_many_rounds_on_clean_data(tree, l2) -> None:
    """Probabilities reach one in single precision, and derivatives zero."""
    y = np.repeat([0, 1, 2], 30)
    parameters = {"n_estimators": 300, "learning_rate": 1.0, "tree": tree, "l2": l2}
    model = boost(**parameters).fit(y[:, None] + 0.0, y)
    assert model.score(y[:, None], y) == 1.0
    assert np.isfinite(model.predict_proba(y[:, None])).all()
    assert np.isfinite(model.train_score_).all()
    assert model.oof_cost_ == 0.0


@pytest.mark.filterwarnings("ignore:The model predicts")
@pytest.mark.parametrize(("n_folds", "early_stopping"), [(5, False), (5, True), (1, True)], ids=str)
@pytest.mark.parametrize(
    "counts", [(40, 40, 1), (40, 2, 3), (1, 1, 1), (1, 1), (2, 1), (60, 1), (1,) * 12]
)
def test_small_classes(counts, n_folds, early_stopping) -> None:
    """Fewer samples of a class than folds, down to one of each class."""
    n, k = sum(counts), len(counts)
    y = np.repeat(np.arange(k), counts)
    data = np.random.default_rng(n).normal(size=(n, 2)) + y[:, None]
    costs = (1.0 + np.arange(k * k).reshape(k, k)) * zero_one_costs(k)
    model = boost(costs, n_folds=n_folds, early_stopping=early_stopping).fit(data, y)
    assert len(model.classes_) == k
    np.testing.assert_allclose(model.predict_proba(data).sum(axis=1), 1.0)
    assert np.isfinite(model.oof_cost_)
    if n_folds > 1:
        np.testing.assert_allclose(model.oof_probabilities_.sum(axis=1), 1.0, atol=1e-6)
        assert model.forest_.n_trees == model.n_estimators_ * min(5, n)


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_nothing_to_learn(value) -> None:
    """Features that are constant or missing: the model is the frequencies of the classes."""
    y = np.repeat([0, 1, 2], [50, 30, 20])
    data = np.full((100, 2), value)
    model = boost(None).fit(data, y)
    assert model.stop_reason_ == "useless"
    assert model.n_estimators_ == 1
    np.testing.assert_allclose(model.predict_proba(data), [[0.5, 0.3, 0.2]] * 100, atol=0.02)
    assert model.oof_cost_ == pytest.approx(0.5)


def test_features_that_say_nothing_change_nothing() -> None:
    data = np.column_stack([np.ones(500), X, np.full(500, np.nan)])
    model = boost(cv=FOLDS).fit(data, Y)
    known = boost(cv=FOLDS).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(data), known.predict_proba(X))
    np.testing.assert_array_equal(model.feature_importances_[[0, -1]], 0.0)


def test_missing_values_are_routed() -> None:
    """A value that is missing may say the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    data = rng.normal(size=(400, 2))
    data[y == 1, 0] = np.nan
    model = boost(None, n_estimators=20).fit(data, y)
    assert model.score(data, y) == 1.0
    assert model.oof_cost_ == 0.0
    assert np.isfinite(model.predict_proba([[np.nan, np.nan], [0.0, np.nan]])).all()


def test_categories(tmp_path) -> None:
    rng = np.random.default_rng(0)
    towns = np.array(["Ayr", "Bath", "Cork", "Deal", "Ely"])

    def frame(n):
        town = rng.choice(towns, n)
        data = pd.DataFrame({"town": pd.Categorical(town), "size": rng.normal(size=n)})
        return data, np.isin(town, ["Bath", "Ely"]).astype(int) + (data["size"].to_numpy() > 0)

    (data, y), (new, y_new) = frame(400), frame(100)
    model = boost(n_estimators=30).fit(data, y)
    assert model.score(new, y_new) > 0.95
    assert model.categories_["town"].tolist() == towns.tolist()
    expected = model.predict_proba(new)
    model.save(tmp_path / "model")
    for other in (model, badacost.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict_proba(new.astype({"town": str})), expected)
        with pytest.warns(UserWarning, match="No category in column 'town'"):
            unseen = other.predict_proba(new.assign(town="Fife"))
        np.testing.assert_array_equal(unseen, other.predict_proba(new.assign(town=None)))


@st.composite
def problems(draw):
    """Small data with ties, missing values, rare classes and odd weights."""
    k = draw(st.integers(2, 5))
    n = draw(st.integers(k, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    data = rng.integers(-3, 4, (n, draw(st.integers(1, 3)))).astype(float)
    data[rng.random(data.shape) < draw(st.sampled_from([0, 0.2]))] = np.nan
    y = rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    weight = draw(
        st.sampled_from([None, 10.0 ** rng.uniform(-8, 8, n), rng.integers(0, 3, n) + 0.0])
    )
    if weight is not None and np.count_nonzero(weight) < 2:
        weight = None  # nothing could be left out, see below
    costs = 10.0 ** rng.uniform(-2, 2, (k, k)) * zero_one_costs(k)
    parameters = {
        "learning_rate": draw(st.sampled_from([0.1, 1.0])),
        "tree": draw(st.sampled_from(["symmetric", "best"])),
        "n_folds": draw(st.sampled_from([1, 2, 7])),
        "early_stopping": draw(st.booleans()),
        "l2": draw(st.sampled_from([0.0, 1.0])),
        "subsample": draw(st.sampled_from([0.5, 1.0])),
        "binning": draw(st.sampled_from(["quantile", "uniform", "exact"])),
    }
    return data, y, weight, costs, parameters


@pytest.mark.filterwarnings("ignore:The model predicts")
@settings(max_examples=60)
@given(problem=problems())
@pytest.mark.filterwarnings("ignore:sample_weight has a mean")
def test_any_small_problem(problem) -> None:
    data, y, weight, costs, parameters = problem
    model = boost(costs, n_estimators=5, max_depth=2, **parameters).fit(data, y, weight)
    for samples in (data, np.random.default_rng(0).normal(scale=9, size=(20, data.shape[1]))):
        probabilities = model.predict_proba(samples)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        decided = (probabilities @ model.cost_matrix_).argmin(axis=1)
        np.testing.assert_array_equal(model.predict(samples), decided)
    assert np.isfinite(model.train_score_).all()
    if parameters["n_folds"] > 1:
        known = np.full(len(y), True) if weight is None else weight > 0
        held_out = model.oof_probabilities_
        np.testing.assert_allclose(held_out[known].sum(axis=1), 1.0, atol=1e-6)
        assert np.isnan(held_out[~known]).all()
        assert 0.0 <= model.oof_cost_ <= costs.max()


# Parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_folds": 0}, "n_folds must be an integer at least 1"),
        ({"n_folds": 2.5}, "n_folds must be an integer"),
        ({"tree": "oblique"}, "tree must be one of 'symmetric', 'best'"),
        ({"max_depth": None}, "max_depth must be a number for symmetric trees"),
        ({"max_depth": 17}, "max_depth of symmetric trees must be an integer at least 1 and at m"),
        ({"l2": -1.0}, "l2 must be a number at least 0"),
        ({"min_hessian": -1.0}, "min_hessian must be a number at least 0"),
        ({"l2": 0, "min_hessian": 0}, "l2 and min_hessian must not both be zero"),
        ({"n_directions": 0}, "n_directions must be an integer at least 1 and at most 64"),
        ({"cv": GroupKFold(3)}, r"give fewer folds, or the splits, .* list\(GroupKFold"),
        (
            {"n_folds": 1, "early_stopping": True, "validation_fraction": 1.0},
            "validation_fraction=1.0 leaves no training samples: choose a smaller one",
        ),
        (
            {"n_folds": 1, "early_stopping": True, "validation_fraction": 500},
            "validation_fraction=500 leaves no training samples",
        ),
    ],
)
def test_wrong_parameters(parameters, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        boost(**parameters).fit(X, Y)


def test_deep_trees_grow_best_leaf_first() -> None:
    model = boost(tree="best", max_depth=None, max_leaf_nodes=None, n_folds=1, l2=1e-3)
    assert model.set_params(n_estimators=40).fit(X, Y).score(X, Y) > 0.99


def test_a_loaded_model_decides_the_same(tmp_path) -> None:
    for number, model in enumerate([boost(), boost(n_folds=1), boost(cv=FOLDS, tree="best")]):
        model.fit(X, Y).save(tmp_path / str(number))
        loaded = badacost.load(tmp_path / str(number))
        np.testing.assert_array_equal(loaded.oof_cost_, model.oof_cost_)
        np.testing.assert_array_equal(loaded.decide(NEW, COSTS.T), model.decide(NEW, COSTS.T))
        assert loaded.cv is None


def test_a_single_sample_of_positive_weight() -> None:
    data, y, weight = [[2.0], [1.0]], [0, 1], [0.0, 1.0]
    with pytest.raises(ValueError, match="one sample of positive weight"):
        boost(None, n_folds=2).fit(data, y, weight)
    model = boost(None, n_folds=1, early_stopping=False).fit(data, y, weight)
    assert model.predict([[1.0]]) == [1]


@pytest.mark.parametrize("n_rows", [3850, 4000])
def test_folds_that_repeat_rows(n_rows) -> None:
    """As bootstrap samples do; held-out rows are not trained on, whatever the numbers are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    train, held_out = rng.integers(0, 1000, n_rows), np.arange(3800, 4000)
    costs = [[0, 1], [5, 0]]
    repeated = CostBoostClassifier(costs, n_estimators=4, cv=[(train, held_out)], random_state=0)
    repeated.fit(X, y)
    others = y.copy()
    others[1000:3800] = 1 - others[1000:3800]  # rows in neither part
    again = clone(repeated).fit(X, others)
    np.testing.assert_array_equal(again.train_score_, repeated.train_score_)
    np.testing.assert_array_equal(again.predict_proba(X), repeated.predict_proba(X))
