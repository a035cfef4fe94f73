"""BAdaCostClassifier: what each parameter does, and what the methods promise of each other."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import badacost
from badacost import BAdaCostClassifier
from badacost.costs import minimum_cost_decision, stationary_distribution, zero_one_costs
from badacost.loss import confusion_weights, cost_margins, sample_margins, step_loss

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
REDUCIBLE = np.array([[0.0, 2, 1], [0, 0, 1], [0, 3, 0]])  # answering 0 is free
X, Y = make_classification(
    500, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.6, random_state=0
)
BINARY = make_classification(400, 5, flip_y=0.2, class_sep=0.6, random_state=1)


def booster(costs=COSTS, **parameters) -> BAdaCostClassifier:
    return BAdaCostClassifier(costs, **{"n_estimators": 10, "max_depth": 3, **parameters})


# Methods.


@pytest.mark.parametrize("decision", ["margin", "bayes"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_function_agrees_with_predict(decision, n_classes) -> None:
    data, y = BINARY if n_classes == 2 else (X, Y)
    costs = np.array([[0.0, 1], [4, 0]]) if n_classes == 2 else COSTS
    model = booster(costs, decision=decision).fit(data, y)
    values = model.decision_function(data)
    if n_classes == 2:
        assert values.shape == (len(data),)
        np.testing.assert_array_equal(model.predict(data), (values > 0).astype(int))
    else:
        assert values.shape == (len(data), 3)
        np.testing.assert_array_equal(model.predict(data), values.argmax(axis=1))
    scores, probability = model.cost_scores(data), model.predict_proba(data)
    expected = -scores if decision == "margin" else -probability @ costs
    if n_classes == 2:
        expected = expected[:, 1] - expected[:, 0]
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_margin_and_bayes_are_the_rules_they_name() -> None:
    model = booster().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.cost_scores(X).argmin(axis=1))
    probability = model.predict_proba(X)
    model.set_params(decision="bayes")  # a rule of prediction: no new fit is needed
    np.testing.assert_array_equal(model.predict_proba(X), probability)
    np.testing.assert_array_equal(model.predict(X), minimum_cost_decision(probability, COSTS))


def test_probabilities_in_closed_form() -> None:
    model = booster().fit(X, Y)
    odds = stationary_distribution(COSTS) * np.exp(-model.cost_scores(X))
    np.testing.assert_allclose(model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("decision", ["margin", "bayes"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_last_stage_is_the_model(decision, n_classes) -> None:
    data, y = BINARY if n_classes == 2 else (X, Y)
    model = booster(zero_one_costs(n_classes), decision=decision).fit(data, y)
    for method in ("predict", "cost_scores", "decision_function"):
        stages = list(getattr(model, f"staged_{method}")(data))
        assert len(stages) == model.n_estimators_
        np.testing.assert_array_equal(stages[-1], getattr(model, method)(data))
        for i in (1, 4):  # a stage is the model of so many rounds
            short = booster(zero_one_costs(n_classes), decision=decision, n_estimators=i)
            expected = getattr(short.fit(data, y), method)(data)
            np.testing.assert_array_equal(stages[i - 1], expected)


def test_apply_and_forest() -> None:
    model = booster().fit(X, Y)
    leaves = model.apply(X)
    assert leaves.shape == (500, 10)
    scores = np.zeros((500, 3))
    for i, tree in enumerate(model.forest_.trees()):
        assert np.isnan(tree.threshold[leaves[:, i]]).all()
        scores += model.estimator_weights_[i] * model.forest_.table[tree.value[leaves[:, i]]]
    np.testing.assert_allclose(scores, model.cost_scores(X), rtol=1e-12)


def test_informative_feature_is_the_most_important() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 5))
    y = (data[:, 3] > 0).astype(int) + (data[:, 3] > 1)
    y = np.where(rng.random(400) < 0.1, rng.integers(3, size=400), y)
    importances = booster().fit(data, y).feature_importances_
    assert importances.shape == (5,)
    assert importances.sum() == pytest.approx(1)
    assert (importances >= 0).all()
    assert importances.argmax() == 3
    assert importances[3] > 0.6


# Costs that are free in part.


def test_reducible_costs_have_a_margin_rule_only() -> None:
    model = booster(REDUCIBLE).fit(X, Y)
    assert set(model.predict(X)) <= {0, 1, 2}
    assert REDUCIBLE[Y, model.predict(X)].mean() < 0.5
    message = (
        r"these costs give no probabilities: for the truths \[1, 2\] every prediction in \[0\]"
    )
    for method in ("predict_proba", "staged_predict_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=f"no attribute '{method}'") as error:
            getattr(model, method)(X)
        remedy = error.value.__cause__
        assert "give every mistake a positive cost, or calibrate" in str(remedy)
        assert re.match(message, str(remedy.__cause__))
    with pytest.raises(ValueError, match=message):
        booster(REDUCIBLE, decision="bayes").fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.set_params(decision="bayes").predict(X)


def test_probabilities_come_and_go_with_the_costs(tmp_path) -> None:
    model = booster(REDUCIBLE)
    assert hasattr(model, "predict_proba")  # before a fit, costs may still be given by label
    assert not hasattr(model.fit(X, Y), "predict_proba")
    model.save(tmp_path / "model")
    assert not hasattr(badacost.load(tmp_path / "model"), "predict_proba")
    assert hasattr(model.set_params(cost_matrix=COSTS).fit(X, Y), "predict_proba")
    model.set_params(cost_matrix=REDUCIBLE)  # meant for the next fit
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    calibrated = CalibratedClassifierCV(booster(REDUCIBLE), cv=2).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


# Parameters.


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("n_estimators", 0),
        ("n_estimators", 2.5),
        ("learning_rate", 0),
        ("learning_rate", -1.0),
        ("learning_rate", np.inf),
        ("learning_rate", np.nan),
        ("learning_rate", "0.1"),
        ("decision", "argmin"),
        ("decision", None),
        ("subsample", 0.0),
        ("subsample", 1.1),
        ("n_refinements", -1),
        ("n_refinements", 1.0),
        ("early_stopping", "auto"),
        ("early_stopping", 1),
        ("scoring", "accuracy"),
        ("validation_fraction", 0),
        ("n_iter_no_change", 0),
        ("tol", -1e-3),
        ("warm_start", 1),
        ("verbose", -1),
        ("verbose", "yes"),
        ("max_depth", 0),
        ("max_bins", 1000),
    ],
)
def test_wrong_parameters(name, wrong) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        booster(**{name: wrong}).fit(X, Y)


@pytest.mark.parametrize("wrong", ["large", 0.0, -1, np.inf, np.nan, True, [1]])
def test_wrong_cost_scale(wrong) -> None:
    with pytest.raises((TypeError, ValueError), match=r"scale (must be |is .*: give )"):
        booster(cost_scale=wrong).fit(X, Y)


def test_numbers_in_single_precision_do_not_round_the_steps() -> None:
    one, other = booster(learning_rate=0.5), booster(learning_rate=np.float32(0.5))
    np.testing.assert_array_equal(one.fit(X, Y).cost_scores(X), other.fit(X, Y).cost_scores(X))
    assert other.estimator_weights_.dtype == np.float64


def test_learning_rate_scales_the_first_step() -> None:
    full = booster(learning_rate=1.0).fit(X, Y)
    tenth = booster(learning_rate=0.1).fit(X, Y)
    assert tenth.estimator_weights_[0] == pytest.approx(0.1 * full.estimator_weights_[0])
    assert full.estimator_weights_[1] != pytest.approx(10 * tenth.estimator_weights_[1])
    full.set_params(scoring="loss").fit(X, Y)
    tenth.set_params(scoring="loss").fit(X, Y)
    assert full.train_score_[0] < tenth.train_score_[0]


def test_limits_of_the_trees() -> None:
    for depth in (1, 2, 4):
        assert booster(max_depth=depth).fit(X, Y).forest_.depths.max() == depth
    assert booster(max_depth=None).fit(X, Y).forest_.depths.max() > 4
    few = booster(max_depth=None, max_leaf_nodes=5).fit(X, Y).forest_
    assert (np.add.reduceat(few.is_leaf, few.offsets[:-1]) <= 5).all()
    large = booster(max_depth=None, min_samples_leaf=40).fit(X, Y).forest_
    assert large.count[large.is_leaf].min() >= 40
    split = booster(max_depth=None, min_samples_split=90).fit(X, Y).forest_
    assert split.count[~split.is_leaf].min() >= 90


def test_max_features_draws_at_each_node() -> None:
    noise = np.random.default_rng(0).normal(size=(500, 30))
    data = np.column_stack([X, noise])
    every = booster(max_depth=1).fit(data, Y).forest_
    one = booster(max_depth=1, max_features=1, random_state=0).fit(data, Y).forest_
    roots = one.feature[one.offsets[:-1]]
    assert len(np.unique(roots)) > len(np.unique(every.feature[every.offsets[:-1]]))


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("binning", ["quantile", "uniform", "exact"])
def test_criteria_and_bins_learn(criterion, binning) -> None:
    model = booster(criterion=criterion, binning=binning, n_estimators=40).fit(X, Y)
    assert COSTS[Y, model.predict(X)].mean() < 0.8  # 1.0 is the best without looking at X


def test_max_bins_bounds_the_thresholds() -> None:
    forest = booster(max_bins=3, n_estimators=30).fit(X, Y).forest_
    for feature in range(6):
        chosen = ~forest.is_leaf & (forest.feature == feature)
        assert len(np.unique(forest.threshold[chosen])) <= 2


def test_few_values_need_no_more_bins() -> None:
    data = np.round(X)
    models = [
        booster(binning=binning).fit(data, Y).cost_scores(data) for binning in ("quantile", "exact")
    ]
    np.testing.assert_array_equal(*models)


@pytest.mark.parametrize("seed", range(4))
def test_refinements_do_not_raise_the_loss_of_a_round(seed) -> None:
    """From the same weights the refined learner and its full step leave less loss, or as much."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.1, 5, (3, 3)) * zero_one_costs(3)
    weight = rng.uniform(0.1, 1, 500)
    losses = []
    for n_refinements in (0, 1, 5):
        rounds = []
        model = booster(
            costs,
            n_estimators=1,
            learning_rate=1.0,
            max_depth=2,
            n_refinements=n_refinements,
            cost_scale="reference",
            scoring="loss",
            callbacks=[rounds.append],
        ).fit(X, Y, weight)
        margins = cost_margins(costs / max(costs.max(), 1))
        sums = confusion_weights(Y, rounds[0].predicted, weight / weight.sum(), 3)
        loss = step_loss(sums, margins, rounds[0].step)
        assert model.train_score_[0] == pytest.approx(loss)
        losses.append(loss)
    assert losses[0] >= losses[1] >= losses[2]


def test_refinements_change_something() -> None:
    plain, refined = (
        booster(scoring="loss", cost_scale="reference", n_refinements=n, n_estimators=1).fit(X, Y)
        for n in (0, 5)
    )
    assert refined.train_score_[0] < plain.train_score_[0]


# Scale of the costs.


@pytest.mark.parametrize(
    ("scale", "factors"),
    [("auto", [2.0**-40, 1024.0, 1e-200, 1e-3, 1000.0, 1e200]), ("reference", [1024.0, 1000.0])],
)
def test_unit_of_the_costs_does_not_matter(scale, factors) -> None:
    """Pounds or pence, or, to "reference", any unit in which the largest cost is above one."""
    plain = booster(cost_scale=scale).fit(X, Y)
    for factor in factors:
        scaled = booster(factor * COSTS, cost_scale=scale).fit(X, Y)
        np.testing.assert_array_equal(scaled.apply(X), plain.apply(X))
        np.testing.assert_allclose(scaled.cost_scores(X), plain.cost_scores(X), rtol=1e-9)
        np.testing.assert_allclose(scaled.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
        np.testing.assert_array_equal(scaled.cost_matrix_, factor * COSTS)
        np.testing.assert_allclose(scaled.train_score_, factor * plain.train_score_)


def test_auto_scale_bounds_the_margins() -> None:
    """Largest row sum 2 (1 - 1/K)^2, hence a largest entry of D on the diagonal of 2 (K - 1)/K."""
    for costs, (data, y) in ((COSTS, (X, Y)), (np.array([[0.0, 1], [4, 0]]), BINARY)):
        k = len(costs)
        table = booster(costs).fit(data, y).forest_.table
        assert np.abs(table).max() == pytest.approx(2 * (k - 1) / k)


def test_reference_scale_leaves_small_costs() -> None:
    small = COSTS / 8
    one, other = (booster(small, cost_scale=scale).fit(X, Y) for scale in ("reference", None))
    np.testing.assert_array_equal(one.cost_scores(X), other.cost_scores(X))


def test_a_number_becomes_the_largest_cost() -> None:
    for scale in (0.25, 1, 2.0):
        one = booster(cost_scale=scale).fit(X, Y)
        other = booster(COSTS / 4 * scale, cost_scale=None).fit(X, Y)
        np.testing.assert_array_equal(one.cost_scores(X), other.cost_scores(X))
        np.testing.assert_array_equal(one.cost_matrix_, COSTS)
        np.testing.assert_allclose(one.forest_.table, cost_margins(COSTS / 4 * scale).T)


def test_scale_matters_to_the_trees() -> None:
    small, large = (booster(cost_scale=scale).fit(X, Y) for scale in (0.01, 3.0))
    assert (small.predict(X) != large.predict(X)).any()


# Data.


def test_single_and_double_precision() -> None:
    data = X.astype(np.float32)
    single, double = booster().fit(data, Y), booster().fit(data.astype(np.float64), Y)
    np.testing.assert_array_equal(single.cost_scores(data), double.cost_scores(data))
    crossed = single.cost_scores(data.astype(np.float64))
    np.testing.assert_array_equal(crossed, single.cost_scores(data))
    assert single.predict_proba(data).dtype == np.float64


def test_missing_values_carry_information() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 3))
    y = rng.integers(3, size=300)
    data[y == 1, 1] = np.nan
    model = booster(n_estimators=20).fit(data, y)
    predicted = model.predict(data)
    assert (predicted[y == 1] == 1).all()
    assert (predicted[y != 1] != 1).all()


def test_values_missing_at_prediction_only() -> None:
    model = booster().fit(X, Y)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    probability = model.predict_proba(holes)
    assert np.isfinite(probability).all()
    assert COSTS[Y, model.predict(holes)].mean() < COSTS[Y, np.roll(Y, 7)].mean()
    nothing = np.full((1, 6), np.nan)
    assert model.predict(nothing)[0] in (0, 1, 2)


def test_weights_stand_for_copies() -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = booster(binning="exact").fit(X, Y, weight)
    copied = booster(binning="exact").fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(weighted.cost_scores(X), copied.cost_scores(X), rtol=1e-5)


def test_more_rounds_than_needed_on_clean_data() -> None:
    data, y = load_iris(return_X_y=True)
    for decision in ("margin", "bayes"):
        model = booster(n_estimators=150, learning_rate=1.0, decision=decision).fit(data, y)
        assert model.score(data, y) == 1
        assert np.isfinite(model.predict_proba(data)).all()


# Prices for each sample.


def with_amounts(seed: int = 0):
    """Two classes; what a missed one costs depends on a feature."""
    data, y = make_classification(
        2000, 8, n_informative=4, flip_y=0.1, class_sep=0.7, weights=[0.8], random_state=seed
    )
    amount = np.exp(2 + data[:, 0] + 0.8 * np.random.default_rng(seed).normal(size=len(y)))
    return data, y, np.column_stack([amount, np.full(len(y), 5.0)])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"decision": "bayes", "max_depth": 2, "cost_scale": None},
        {"subsample": 0.5, "n_refinements": 2},
        {"early_stopping": True, "n_estimators": 30},
        {"estimator": DecisionTreeClassifier(max_depth=2)},
    ],
    ids=str,
)
def test_equal_prices_of_samples_are_a_cost_matrix(parameters) -> None:
    weight = np.random.default_rng(0).uniform(0, 2, len(Y)).round(1)  # some are zero
    by_matrix = booster(random_state=0, **parameters).fit(X, Y, weight)
    each = np.broadcast_to(COSTS + 0.5, (len(Y), 3, 3))
    for rows in (COSTS[Y] + 9 * np.eye(3)[Y], each):
        model = booster(None, random_state=0, **parameters).fit(X, Y, weight, sample_cost=rows)
        np.testing.assert_allclose(model.cost_matrix_, COSTS)
        np.testing.assert_array_equal(model.predict(X), by_matrix.predict(X))
        np.testing.assert_allclose(model.predict_costs(X), by_matrix.predict_costs(X), atol=1e-10)
        np.testing.assert_allclose(model.train_score_, by_matrix.train_score_)
        np.testing.assert_allclose(model.validation_score_, by_matrix.validation_score_)


def test_a_perfect_learner_under_prices_of_samples() -> None:
    data, y = load_iris(return_X_y=True)
    by_matrix, by_rows = (
        booster(costs, max_depth=None).fit(data, y, **rows)
        for costs, rows in ((COSTS, {}), (None, {"sample_cost": COSTS[y]}))
    )
    assert by_matrix.stop_reason_ == by_rows.stop_reason_ == "perfect"
    np.testing.assert_allclose(by_rows.predict_costs(data), by_matrix.predict_costs(data))


def test_steps_minimise_the_loss_of_the_samples() -> None:
    """Once a full step is taken, the slope of the loss along the learner is zero."""
    rows = np.random.default_rng(0).uniform(0, 9, (len(Y), 3))
    margins = sample_margins(rows, Y)
    slopes = []

    def watch(done) -> None:
        moves = margins[np.arange(len(Y)), done.predicted]
        slopes.append(done.sample_weight @ moves / np.abs(moves).max())

    booster(None, learning_rate=1.0, callbacks=[watch]).fit(X, Y, sample_cost=rows)
    assert len(slopes) == 10
    np.testing.assert_allclose(slopes, 0, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_amounts_in_the_training_save_money(seed) -> None:
    data, y, rows = with_amounts(seed)
    train, test = slice(1300), slice(1300, None)
    model = BAdaCostClassifier().fit(data[train], y[train], sample_cost=rows[train])
    by_means = BAdaCostClassifier(model.cost_matrix_).fit(data[train], y[train])
    bills = []
    for each in (model, by_means):
        answers = each.predict(data[test])
        paid = rows[test][np.arange(len(answers)), answers]
        bills.append(paid[answers != y[test]].sum())
    assert bills[0] < bills[1]
    scale = BAdaCostClassifier().fit(data[train], y[train], sample_cost=1024 * rows[train])
    np.testing.assert_array_equal(scale.predict(data), model.predict(data))


def test_order_of_samples_with_prices_changes_nothing() -> None:
    data, y, rows = with_amounts()
    shuffled = np.random.default_rng(0).permutation(len(y))
    one = booster(None).fit(data, y, sample_cost=rows)
    other = booster(None).fit(data[shuffled], y[shuffled], sample_cost=rows[shuffled])
    np.testing.assert_array_equal(one.predict_costs(data), other.predict_costs(data))


def test_warm_start_and_own_costs_with_prices_of_samples() -> None:
    data, y, rows = with_amounts()
    whole = booster(None, n_estimators=8).fit(data, y, sample_cost=rows)
    model = booster(None, n_estimators=3, warm_start=True).fit(data, y, sample_cost=rows)
    model.set_params(n_estimators=8).fit(data, y, sample_cost=rows)
    np.testing.assert_array_equal(model.predict_costs(data), whole.predict_costs(data))
    with pytest.raises(ValueError, match="must stay as they were"):
        model.set_params(n_estimators=9).fit(data, y)
    costs = [[0, 5], [30, 0]]
    model = booster(costs).fit(data, y, sample_cost=rows)
    np.testing.assert_array_equal(model.cost_matrix_, costs)
    assert (model.predict_costs(data) != booster(costs).fit(data, y).predict_costs(data)).any()


def test_prices_of_samples_are_routed() -> None:
    data, y, rows = with_amounts()
    with sklearn.config_context(enable_metadata_routing=True):
        model = booster(None).set_fit_request(sample_cost=True)
        search = GridSearchCV(model, {"max_depth": [1, 2]}, cv=2)
        search.fit(data, y, sample_cost=rows)
    expected = booster(None, **search.best_params_).fit(data, y, sample_cost=rows)
    np.testing.assert_array_equal(search.predict(data), expected.predict(data))


def test_prices_of_samples_that_are_refused() -> None:
    data, y, rows = with_amounts()
    with pytest.raises(ValueError, match="give a row of 2 costs for each of the 2000 samples"):
        booster(None).fit(data, y, sample_cost=rows[:-1])
    with pytest.raises(ValueError, match="all mistakes on class 1 are free"):
        booster(None).fit(data, y, sample_cost=np.where(y[:, np.newaxis] == 1, 0.0, rows))


def test_prices_of_samples_may_be_tiny() -> None:
    rows = np.random.default_rng(0).integers(1, 9, (len(Y), 3))
    one, tiny = (booster(None).fit(X, Y, sample_cost=rows * unit) for unit in (1.0, 2.0**-1040))
    np.testing.assert_array_equal(one.predict(X), tiny.predict(X))
    np.testing.assert_allclose(one.estimator_weights_, tiny.estimator_weights_, rtol=1e-6)


@pytest.mark.parametrize(("costs", "range_"), [(None, 290), (None, 140), (COSTS * 1e200, 0)])
def test_prices_of_samples_that_are_too_far_apart(costs, range_) -> None:
    rows = (COSTS[Y] + 1) * np.logspace(-range_, range_, len(Y))[:, np.newaxis]
    with pytest.raises(ValueError, match=r"sample_cost .*: raise the lowest"):
        booster(costs).fit(X, Y, sample_cost=rows)


def test_prices_of_samples_on_a_scale_that_is_too_large() -> None:
    rows = np.where(np.arange(len(Y)) > 0, 1.0, 1e100)[:, np.newaxis] * (COSTS[Y] + 1)
    with pytest.raises(ValueError, match=r"cost_scale=1e\+300 is too large"):
        booster(COSTS, cost_scale=1e300).fit(X, Y, sample_cost=rows)
