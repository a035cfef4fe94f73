"""WangMultiBoostClassifier: its mathematics against direct sums, and what the pool promises."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

import badacost
from badacost._utils.categorical_columns import CategoricalColumns
from badacost._utils.parallel import Threads
from badacost.boosting.reweighting import TreeLearner
from badacost.boosting.stagewise import Round
from badacost.classifiers.training_data import SampleSet, Task
from badacost.costs import zero_one_costs
from badacost.family.wang_multiboost import (
    PoolDescent,
    WangMultiBoostClassifier,
    pool_step,
)
from badacost.io.model_file import read_model, write_model
from badacost.loss import class_codes
from tests.forests import assert_same_forest

COSTS = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
X, Y = make_classification(
    400, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.6, random_state=0
)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(Y))


def booster(costs=COSTS, **parameters) -> WangMultiBoostClassifier:
    defaults = {"n_pool": 30, "n_estimators": 10, "max_depth": 4, "random_state": 0}
    return WangMultiBoostClassifier(costs, **{**defaults, **parameters})


def assert_same_model(one, other) -> None:
    """Equal to the last bit."""
    for name in ("estimator_weights_", "train_score_", "validation_score_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert_same_forest(one.forest_, other.forest_)
    np.testing.assert_array_equal(one.cost_scores(X), other.cost_scores(X))
    assert one.stop_reason_ == other.stop_reason_


def test_estimator_checks_where_rows_are_drawn() -> None:
    model = WangMultiBoostClassifier(n_pool=9, n_estimators=4)
    for estimator, check in estimator_checks_generator(model):
        # Rows are drawn whatever their weight: one of weight two is drawn or left out as a whole.
        if "sample_weight_equivalence" not in str(check):
            check(estimator)


# The loss and its steps, by direct computation.


def charges(scores, y, costs, weight=None):
    """The loss of each sample and answer, from cost scores: C(y, k) exp(f_k), f = -scores."""
    weight = np.ones(len(y)) if weight is None else weight
    return weight[:, np.newaxis] * costs[y] * np.exp(-scores)


def random_task(n_classes: int, seed: int = 0, n: int = 80, n_members: int = 15):
    """Classes, weights, costs of which some are zero, and answers of a synthetic pool."""
    rng = np.random.default_rng([n_classes, seed])
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n))
    costs = rng.exponential(size=(n_classes, n_classes)) * (rng.random((n_classes,) * 2) < 0.9)
    np.fill_diagonal(costs, 0.0)
    costs[np.arange(n_classes), (np.arange(n_classes) + 1) % n_classes] += 0.5
    answers = rng.integers(n_classes, size=(len(y), n_members))
    right = rng.random(answers.shape) < rng.uniform(0.2, 0.7, n_members)
    answers = np.where(right, y[:, np.newaxis], answers)
    return y, rng.uniform(0.1, 3, len(y)), costs, answers


def descent(y, weight, costs, answers, n_jobs=1, learning_rate=1.0) -> PoolDescent:
    """A descent whose models are the numbers of the members."""
    labels = answers.astype(np.min_scalar_type(len(costs) - 1))
    task = Task(SampleSet(answers), y, weight, None, Threads(n_jobs), weight > 0.0)
    return PoolDescent(list(range(answers.shape[1])), labels, task, costs, learning_rate)


def start(model: WangMultiBoostClassifier, weight=WEIGHT) -> PoolDescent:
    """Grow the pool of a model."""
    model._columns = CategoricalColumns()
    threads = Threads()
    return model._start(Task(SampleSet(X), Y, weight, None, threads, weight > 0.0))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 26, 300])
def test_rounds_against_direct_sums(n_classes, learning_rate, n_jobs) -> None:
    y, weight, costs, answers = random_task(n_classes)
    algorithm = descent(y, weight, costs, answers, n_jobs, learning_rate)
    codes, scores = class_codes(n_classes), np.zeros((len(y), n_classes))
    for number in range(40 if n_classes < 100 else 4):
        charge = charges(scores, y, costs, weight)
        answered = np.take_along_axis(charge, answers, axis=1).sum(axis=0)
        np.testing.assert_allclose(algorithm.cost_fractions, answered / charge.sum(), rtol=1e-10)
        np.testing.assert_allclose(
            algorithm.weights, charge.sum(axis=1) / charge.sum(), rtol=1e-10, atol=1e-300
        )
        stage = algorithm.fit(number)
        slopes = np.take_along_axis(charge @ codes, answers, axis=1).sum(axis=0)
        assert stage.models == [np.argmin(slopes)]  # no direction is steeper
        if stage.reason == "useless":
            assert slopes.min() > -1e-8 * charge.sum()
            break
        direction = codes[answers[:, stage.models[0]]]

        def slope(step, scores=scores, direction=direction):
            return (direction * charges(scores - step * direction, y, costs, weight)).sum()

        best = brentq(slope, 0, 20, xtol=1e-14, rtol=1e-14)
        np.testing.assert_allclose(stage.steps[0], learning_rate * best, rtol=1e-9, atol=1e-11)
        added = np.zeros((len(y), n_classes))
        stage.add_to(added)
        np.testing.assert_array_equal(added, -stage.steps[0] * direction)
        scores = scores + added
        assert charges(scores, y, costs, weight).sum() < charge.sum()
        algorithm.advance(stage)
    assert number >= 3


@given(
    share=st.floats(1e-300, 0.999),
    n_classes=st.integers(2, 300),
)
def test_step_in_closed_form(share, n_classes) -> None:
    step = pool_step(share, n_classes)
    if share >= 1 / n_classes:
        assert step == 0
        return
    slope = np.log(share) + step  # of the two terms, in logarithms
    assert slope == pytest.approx(
        np.log1p(-share) - np.log(n_classes - 1) - step / (n_classes - 1), rel=1e-9, abs=1e-9
    )


def test_step_of_extreme_shares() -> None:
    assert pool_step(0.0, 3) == pool_step(1e-10, 3) == pytest.approx(2 / 3 * np.log(0.5e10))
    assert pool_step(1.0, 3) == pool_step(1.0 + 1e-12, 3) == pool_step(1 / 3, 3) == 0.0


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_minimiser_is_the_rule_of_minimum_cost(n_classes) -> None:
    """Where every answer is in the pool, f goes to a constant minus the log of expected costs."""
    rng = np.random.default_rng(n_classes)
    y, weight = np.arange(n_classes), rng.dirichlet(np.ones(n_classes))
    costs = rng.uniform(0.5, 4, (n_classes, n_classes)) * zero_one_costs(n_classes)
    algorithm = descent(y, weight, costs, np.tile(y, (n_classes, 1)), learning_rate=0.5)
    scores = np.zeros((n_classes, n_classes))
    for number in range(2000):
        stage = algorithm.fit(number)
        if stage.reason is not None:
            break
        algorithm.advance(stage)
        stage.add_to(scores)
    log_costs = np.log(weight @ costs)
    np.testing.assert_allclose(scores[0], log_costs - log_costs.mean(), atol=1e-5)
    assert scores[0].argmin() == (weight @ costs).argmin()


def test_two_classes_are_adaboost_from_weights_times_costs() -> None:
    y, weight, costs, answers = random_task(2, n=200)
    algorithm = descent(y, weight, costs, answers)
    weights, wrong = weight * costs[y, 1 - y], answers != y[:, np.newaxis]
    for number in range(20):
        weights /= weights.sum()
        np.testing.assert_allclose(algorithm.weights, weights, rtol=1e-9)
        errors = weights @ wrong
        stage = algorithm.fit(number)
        step = 0.5 * np.log((1 - errors.min()) / errors.min())
        assert stage.models == [errors.argmin()]
        if stage.reason == "useless":
            break
        assert stage.steps[0] == pytest.approx(step, rel=1e-8)
        weights *= np.exp(step * np.where(wrong[:, errors.argmin()], 1, -1))
        algorithm.advance(stage)
    assert number > 3


@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 26])
def test_loss_falls_in_every_round(n_classes, learning_rate) -> None:
    data, y = make_blobs(30 * n_classes, 4, centers=n_classes, random_state=0, cluster_std=2.0)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.1, 0, y)
    costs = np.random.default_rng(1).uniform(1, 3, (n_classes,) * 2) * zero_one_costs(n_classes)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    model = booster(costs, n_estimators=30, learning_rate=learning_rate, max_depth=6)
    model.fit(data, y, weight)
    stages = model.staged_cost_scores(data)
    losses = [charges(scores, y, costs, weight).sum() for scores in stages]
    assert len(losses) > 3
    assert losses[0] < (weight * costs[y].sum(axis=1)).sum()
    assert (np.diff(losses) < 0).all()
    np.testing.assert_allclose(model.cost_scores(data).sum(axis=1), 0, atol=1e-9)
    constant = np.average(costs[y], axis=0, weights=weight).min()
    assert np.average(costs[y, model.predict(data)], weights=weight) < 0.7 * constant


def test_steps_of_a_fit_against_direct_computation() -> None:
    """From the trees alone: the steps, and the weights that callbacks get."""
    rounds: list[Round] = []
    model = booster(learning_rate=0.7, callbacks=[rounds.append]).fit(X, Y, WEIGHT)
    scores = np.zeros((len(Y), 3))
    for done, step, after in zip(
        rounds, model.estimator_weights_, model.staged_cost_scores(X), strict=True
    ):
        charge = charges(scores, Y, COSTS, WEIGHT)
        share = charge[np.arange(len(Y)), done.predicted].sum() / charge.sum()
        assert step == pytest.approx(0.7 * 2 / 3 * np.log((1 - share) / (2 * share)), rel=1e-9)
        scores = after
        expected = charges(scores, Y, COSTS, WEIGHT).sum(axis=1)
        np.testing.assert_allclose(done.sample_weight, expected / expected.sum(), rtol=1e-9)
        assert done.sample_weight.sum() == pytest.approx(1)
        assert done.step == step


# The pool.


def test_members_are_grown_on_the_shares_in_turn() -> None:
    pools = []
    for parameters in ({}, {"subsample": 0.5}, {"sample_shares": [0.001, 1.0]}):
        model = booster(n_pool=8, **parameters)
        model.classes_, model._seed = np.arange(3), 5
        model._prepare()
        weight = np.where(np.arange(400) % 2, 1.0, 1e-60)  # half of them vanish
        pools.append(start(model, weight))
    sizes = [[tree.count[0] for tree in pool.trees] for pool in pools]
    assert sizes[0] == [120, 180, 200, 120, 180, 200, 120, 180]
    assert sizes[1] == [60, 90, 120, 60, 90, 120, 60, 90]
    assert sizes[2] == [1, 200] * 4
    for pool in pools:
        assert pool.labels.shape == (400, 8)
        assert pool.labels.dtype == np.uint8
    assert len(np.unique(pools[0].labels, axis=1).T) > 5


def test_labels_are_those_of_the_trees() -> None:
    model = booster(n_pool=37).fit(X, Y)  # more than are grown at once
    pool = start(model)
    asked = [SampleSet(X).rows(tree, Threads()) for tree in pool.trees]
    np.testing.assert_array_equal(np.column_stack(asked), pool.labels)


def test_a_member_may_be_chosen_again() -> None:
    forest = booster(n_pool=3, n_estimators=12).fit(X, Y).forest_
    assert forest.n_trees == 12
    assert 1 < len({tree.threshold.tobytes() for tree in forest.trees()}) <= 3


def test_a_larger_pool_begins_with_the_smaller_and_descends_deeper() -> None:
    """The loss after the best of more members is lower, or as low."""
    shares = []
    for n_pool in (1, 5, 20, 80):
        shares.append(start(booster(n_pool=n_pool).fit(X, Y)).cost_fractions)
    for few, many in pairwise(shares):
        np.testing.assert_array_equal(few, many[: len(few)])
    assert shares[-1].min() < shares[0].min()


def test_an_exhausted_pool_ends_the_fit() -> None:
    model = booster(n_pool=2, n_estimators=50, learning_rate=1.0).fit(X, Y)
    assert model.stop_reason_ == "useless"
    assert 1 <= model.n_estimators_ < 50
    noise = np.random.default_rng(0).normal(size=(300, 1))
    with pytest.warns(ConvergenceWarning, match="no better than chance"):
        model = booster(None, n_pool=1, max_depth=1).fit(np.round(noise / 9), np.arange(300) % 3)
    assert model.n_estimators_ == 1
    assert np.isfinite(model.cost_scores(noise)).all()


def test_a_perfect_member_ends_the_fit() -> None:
    data, y = make_blobs(200, 2, centers=4, cluster_std=0.01, random_state=0)
    model = booster(None).fit(data, y)
    assert model.stop_reason_ == "perfect"
    assert model.n_estimators_ == 1
    assert model.score(data, y) == 1


@pytest.mark.parametrize("faint", [1e-6, 1e-12, 1e-20])
def test_a_member_with_the_faintest_mistakes_is_not_perfect(faint) -> None:
    y, answers = np.tile([0, 1], 50), np.tile([0, 1], 50)[:, np.newaxis].copy()
    weight = np.ones(100)
    answers[:3, 0], weight[:3] = 1 - y[:3], faint
    algorithm = descent(y, weight, zero_one_costs(2), answers)
    np.testing.assert_allclose(algorithm.cost_fractions, 3 * faint / weight.sum(), rtol=1e-5)
    stage = algorithm.fit(0)
    assert stage.reason is None
    assert stage.steps[0] == pytest.approx(0.5 * np.log(97 / (3 * faint)), rel=1e-5)
    assert descent(y, weight, zero_one_costs(2), y[:, np.newaxis]).fit(0).reason == "perfect"


# Costs and weights.


def test_costs_change_decisions() -> None:
    """Rows are the truth: the costs of the fit are those that come out low."""
    all_costs = (COSTS, COSTS.T, zero_one_costs(3))
    answers = [booster(costs, n_estimators=30).fit(X, Y).predict(X) for costs in all_costs]
    paid = np.array([[costs[Y, predicted].mean() for predicted in answers] for costs in all_costs])
    assert (answers[0] != answers[1]).any()
    assert (paid[0, 0] < 0.95 * paid[0, 1:]).all()
    assert (paid[1, 1] < 0.95 * paid[1, [0, 2]]).all()


@pytest.mark.parametrize("factor", [2.0**-40, 1024.0, 1e-200, 1e200])
def test_unit_of_the_costs_does_not_matter(factor) -> None:
    plain, scaled = booster().fit(X, Y, WEIGHT), booster(factor * COSTS).fit(X, Y, WEIGHT)
    np.testing.assert_array_equal(scaled.apply(X), plain.apply(X))
    np.testing.assert_allclose(scaled.cost_scores(X), plain.cost_scores(X), rtol=1e-9)


def test_costs_and_weights_of_any_size() -> None:
    costs = [[0, 1e-200, 1], [1e100, 0, 1], [1, 1, 0]]
    for weight in (None, 10.0 ** np.linspace(-300, 200, len(Y)), np.full(len(Y), 1e-320)):
        for learning_rate in (1e-6, 1.0, 5.0):
            model = booster(costs, learning_rate=learning_rate).fit(X, Y, weight)
            assert np.isfinite(model.cost_scores(X)).all()
            assert np.isfinite(model.train_score_).all()


def test_weights_stand_for_copies_where_no_rows_are_drawn() -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    parameters = {"binning": "exact", "sample_shares": (1.0,), "max_features": 2}
    weighted = booster(**parameters).fit(X, Y, weight)
    copied = booster(**parameters).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(weighted.cost_scores(X), copied.cost_scores(X), rtol=1e-5)
    assert len({tree.threshold.tobytes() for tree in weighted.forest_.trees()}) > 1


def test_heavy_samples_count() -> None:
    heavy = booster().fit(X, Y, np.where(Y == 1, 30.0, 1.0))
    assert (heavy.predict(X) == 1).sum() > (booster().fit(X, Y).predict(X) == 1).sum()


def test_string_labels() -> None:
    names = np.array(["ant", "bee", "cow"])
    nested = {names[i]: {names[j]: COSTS[i, j] for j in (2, 0, 1) if j != i} for i in (1, 2, 0)}
    named, plain = booster(nested).fit(X, names[Y]), booster().fit(X, Y)
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    assert_same_model(named, plain)


# Around the rounds, with a pool that is drawn.


@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
def test_warm_start_equals_one_long_fit(learning_rate) -> None:
    whole = booster(learning_rate=learning_rate).fit(X, Y, WEIGHT)
    parts = booster(learning_rate=learning_rate, n_estimators=5, warm_start=True).fit(X, Y, WEIGHT)
    assert parts.n_estimators_ == 5
    parts.set_params(n_estimators=10).fit(X, Y, WEIGHT)
    assert_same_model(whole, parts)


def test_warm_start_on_other_samples() -> None:
    model = booster(n_estimators=5, warm_start=True).fit(X[::2], Y[::2])
    trees = model.forest_.trees()
    model.set_params(n_estimators=9).fit(X[1::2], Y[1::2])
    for old, new in zip(trees, model.forest_.trees(), strict=False):
        np.testing.assert_array_equal(old.threshold, new.threshold)
    losses = [charges(scores, Y[1::2], COSTS).sum() for scores in model.staged_cost_scores(X[1::2])]
    assert (np.diff(losses[4:]) < 0).all()


@pytest.mark.parametrize("parameters", [{}, {"max_features": 2, "subsample": 0.6, "n_pool": 50}])
def test_same_bits_for_any_number_of_threads(parameters) -> None:
    one, *others = (booster(n_jobs=n, **parameters).fit(X, Y, WEIGHT) for n in (1, 2, 3))
    for other in others:
        assert_same_model(one, other)


def test_early_stopping_goes_back_to_the_best_round() -> None:
    (data, y), (X_val, y_val) = ((X[i::2], Y[i::2]) for i in (0, 1))
    full = booster(n_estimators=200).fit(data, y, X_val=X_val, y_val=y_val)
    model = booster(n_estimators=200, early_stopping=True, n_iter_no_change=5)
    model.fit(data, y, X_val=X_val, y_val=y_val)
    best = model.n_estimators_
    assert 1 < best < full.n_estimators_
    assert model.stop_reason_ == "early stopping"
    np.testing.assert_array_equal(model.validation_score_, full.validation_score_[:best])
    assert model.validation_score_[-1] <= full.validation_score_[: best + 5].min() + model.tol
    held_out = booster(early_stopping=True).fit(X, Y)
    assert held_out.validation_score_[-1] <= held_out.validation_score_.min() + held_out.tol


def test_saved_models(tmp_path) -> None:
    path = tmp_path / "model.bin"
    model = booster(sample_shares=[0.2, np.float64(0.7)]).fit(X, Y, WEIGHT)
    model.save(path)
    loaded = badacost.load(path)
    assert type(loaded) is WangMultiBoostClassifier
    assert_same_model(loaded, model)
    assert loaded.sample_shares == (0.2, 0.7)
    assert loaded.n_pool == 30
    longer = booster(sample_shares=(0.2, 0.7), n_estimators=12).fit(X, Y, WEIGHT)
    loaded.set_params(warm_start=True, n_estimators=12).fit(X, Y, WEIGHT)
    assert_same_model(loaded, longer)


def test_damaged_and_altered_files_are_refused(tmp_path) -> None:
    path = tmp_path / "model.bin"
    booster().fit(X, Y).save(path)
    whole, model = path.read_bytes(), read_model(path)
    for damaged in (whole[:-1], whole[: len(whole) // 2], b""):
        path.write_bytes(damaged)
        with pytest.raises(badacost.ModelFileError):
            badacost.load(path)
    for name, wrong in (("n_pool", 0), ("sample_shares", [2.0]), ("sample_shares", "half")):
        parameters = {**model.header["parameters"], name: wrong}
        write_model(path, model.kind, {**model.header, "parameters": parameters}, model.arrays)
        with pytest.raises(badacost.ModelFileError, match=f"{name} must be"):
            badacost.load(path)


def test_progress_of_the_pool(capsys) -> None:
    booster(n_pool=160, n_estimators=10, max_depth=1, verbose=1).fit(X, Y)
    shown = capsys.readouterr().err.splitlines()
    assert [line.split(" [")[0] for line in shown] == (
        ["Pool of trees"] * 2 + ["WangMultiBoostClassifier"] * 2
    )
    assert "160/160" in shown[1]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_bar_has_a_line_of_the_terminal(monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    booster(verbose=1).fit(X, Y)
    assert "Pool of trees" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 2

    def interrupt(*arguments) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TreeLearner, "fit", interrupt)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with pytest.raises(KeyboardInterrupt):
        booster(verbose=1).fit(X, Y)
    assert terminal.getvalue() == "\n"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("n_pool", 0),
        ("n_pool", 2.5),
        ("n_pool", None),
        ("sample_shares", ()),
        ("sample_shares", 0.3),
        ("sample_shares", "0.3"),
        ("sample_shares", None),
        ("sample_shares", (0.3, 0.0)),
        ("sample_shares", (1.1,)),
        ("sample_shares", ("a",)),
        ("sample_shares", (np.nan,)),
        ("learning_rate", 0),
    ],
)
def test_wrong_parameters(name, wrong) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        booster(**{name: wrong}).fit(X, Y)


def test_no_probabilities() -> None:
    assert not hasattr(booster().fit(X, Y), "predict_proba")


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**16),
    n_classes=st.integers(2, 6),
    n_samples=st.integers(6, 40),
    n_values=st.integers(1, 5),
    learning_rate=st.sampled_from([1e-3, 0.1, 1.0, 3.0]),
    shares=st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=3),
    n_pool=st.integers(1, 7),
)
@pytest.mark.filterwarnings("ignore:The first weak learner:sklearn.exceptions.ConvergenceWarning")
def test_any_small_data(
    seed, n_classes, n_samples, n_values, learning_rate, shares, n_pool
) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(n_values, size=(n_samples, 2)).astype(float)
    data[rng.random(data.shape) < 0.1] = np.nan
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_samples - n_classes))
    costs = rng.exponential(size=(n_classes, n_classes)) * zero_one_costs(n_classes)
    weight = rng.exponential(size=n_samples) ** 3
    model = booster(
        costs, learning_rate=learning_rate, sample_shares=shares, n_pool=n_pool, n_estimators=5
    ).fit(data, y, weight)
    scores = model.cost_scores(data)
    assert np.isfinite(scores).all()
    assert (model.estimator_weights_ > 0).all()
    assert set(model.predict(data)) <= set(range(n_classes))
    again = booster(
        costs, learning_rate=learning_rate, sample_shares=shares, n_pool=n_pool, n_estimators=5
    ).fit(data, y, weight)
    np.testing.assert_array_equal(again.cost_scores(data), scores)


def test_iris() -> None:
    data, y = load_iris(return_X_y=True)
    assert booster(None, n_estimators=30).fit(data[::2], y[::2]).score(data[1::2], y[1::2]) > 0.9
