"""Lp-CSB: the algorithm on explicit pairs of samples and labels, its objective, its promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits, load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import badacost
from badacost import ModelFileError
from badacost.boosting.stagewise import Round
from badacost.costs import zero_one_costs
from badacost.family.lp_csb import LpCSBClassifier, best_mixing_weight
from badacost.io.model_file import read_model, write_model
from tests.forests import assert_same_forest

ASYMMETRIC = np.array([[0.0, 1, 2], [3, 0, 1], [1, 5, 0]])
BOTH = pytest.mark.parametrize("step", ["average", "line_search"])


def noisy(n: int = 300, n_classes: int = 3, seed: int = 0):
    """Classes that overlap, so that costs matter everywhere."""
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, class_sep=0.8, random_state=seed
    )


X, Y = noisy()
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(Y))


def quick(costs=ASYMMETRIC, **parameters) -> LpCSBClassifier:
    return LpCSBClassifier(costs, **{"n_estimators": 8, "random_state": 0, **parameters})


def objective(shares, y, costs, p, weight=None) -> float:
    """The p-norm cost, mean over the samples of sum_k h(k|x)^p C(y, k)."""
    return float(np.average((shares**p * costs[y]).sum(axis=1), weights=weight))


def hypotheses(model, samples):
    """The shares h(.|x) of each round, from the differences of staged scores."""
    scores = [np.zeros((len(samples), len(model.classes_))), *model.staged_cost_scores(samples)]
    steps = model.estimator_weights_
    return [(a - b) / s for a, b, s in zip(scores[:-1], scores[1:], steps, strict=True)]


def mixtures(model, samples):
    """H after each round; an average has the even start as one more hypothesis."""
    start = 1.0 if model.step == "average" else 0.0
    mass = start + np.cumsum(model.estimator_weights_)
    scores = model.staged_cost_scores(samples)
    return [(start / len(model.classes_) - c) / m for c, m in zip(scores, mass, strict=True)]


def test_estimator_checks_of_the_line_search() -> None:
    check_estimator(LpCSBClassifier(n_estimators=4, step="line_search", p=2, learning_rate=1.0))


# The algorithm.


def relation_by_pairs(leaves, y, shares, weight, costs, p):
    """h of a leaf from a list of all pairs (sample, label) with their weights and answers."""
    n_classes = len(costs)
    votes: dict[tuple[int, int], list[float]] = {}
    for n in range(len(y)):
        pairs = [
            0.5 * weight[n] * shares[n, k] ** (p - 1) * costs[y[n], k] for k in range(n_classes)
        ]
        pairs[y[n]] = sum(pairs)
        for k in range(n_classes):
            vote = votes.setdefault((leaves[n], k), [0.0, 0.0])
            vote[int(k == y[n])] += pairs[k]
    related = np.array(
        [
            [votes[leaf, k][1] > votes[leaf, k][0] * (1 + 1e-9) for k in range(n_classes)]
            for leaf in leaves
        ]
    )
    size = related.sum(axis=1, keepdims=True)
    return np.where(size > 0, related / np.maximum(size, 1), 1 / n_classes), votes


@pytest.mark.parametrize("p", [1, 1.5, 2, 8])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_average_is_the_algorithm_on_pairs(p, rate) -> None:
    rounds: list[Round] = []
    model = quick(p=p, learning_rate=rate, n_estimators=5, callbacks=[rounds.append])
    model.fit(X, Y, WEIGHT)
    np.testing.assert_array_equal(model.estimator_weights_, rate)
    leaves = model.apply(X)
    shares, total = np.full((len(Y), 3), 1 / 3), 1.0
    for t, h in enumerate(hypotheses(model, X)):
        expected, _ = relation_by_pairs(leaves[:, t], Y, shares, WEIGHT, ASYMMETRIC, p)
        np.testing.assert_allclose(h, expected, atol=1e-9)
        np.testing.assert_array_equal(rounds[t].predicted, expected.argmax(axis=1))
        total += rate
        shares = shares + rate / total * (expected - shares)
        np.testing.assert_allclose(mixtures(model, X)[t], shares, atol=1e-9)
        right = (WEIGHT[:, None] * shares ** (p - 1) * ASYMMETRIC[Y]).sum(axis=1)
        np.testing.assert_allclose(rounds[t].sample_weight, right / right.sum(), rtol=1e-9)


@pytest.mark.parametrize("p", [1.5, 2, 4])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_line_search_is_the_algorithm_on_pairs(p, rate) -> None:
    model = quick(p=p, learning_rate=rate, n_estimators=20, step="line_search", max_depth=2)
    model.fit(X, Y, WEIGHT)
    leaves, steps = model.apply(X), model.estimator_weights_
    shares = np.full((len(Y), 3), 1 / 3)
    n_cheapest = 0
    for t, h in enumerate(hypotheses(model, X)):
        related, votes = relation_by_pairs(leaves[:, t], Y, shares, WEIGHT, ASYMMETRIC, p)
        wrong = np.array([[votes[leaf, k][0] for k in range(3)] for leaf in leaves[:, t]])
        if not np.allclose(h, related, atol=1e-9):  # which does not lower the cost
            assert share_by_scipy(shares, related, Y, p) < 1e-6
            np.testing.assert_allclose(h, np.eye(3)[wrong.argmin(axis=1)], atol=1e-9)
            n_cheapest += 1
        share = rate * share_by_scipy(shares, h, Y, p) if t else 1.0
        assert steps[t] / steps[: t + 1].sum() == pytest.approx(share, abs=1e-6)
        shares = mixtures(model, X)[t]
    assert rate < 1 or n_cheapest


def share_by_scipy(before, proposed, y, p) -> float:
    return minimize_scalar(
        lambda a: objective((1 - a) * before + a * proposed, y, ASYMMETRIC, p, WEIGHT),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-10},
    ).x


@pytest.mark.parametrize(
    ("n_classes", "rate", "p"),
    [
        (2, 0.1, 1.2),
        (2, 1.0, 8.0),
        (3, 1.0, 1.2),
        (3, 0.1, 2.0),
        (10, 0.1, 8.0),
        (10, 1.0, 2.0),
        (26, 0.1, 1.2),
        (26, 1.0, 8.0),
    ],
)
def test_line_search_lowers_the_cost_in_every_round(n_classes, rate, p) -> None:
    samples, y = make_blobs(300, 4, centers=n_classes, random_state=0, cluster_std=3)
    costs = np.random.default_rng(0).uniform(1, 5, (n_classes, n_classes))
    costs *= zero_one_costs(n_classes)
    model = quick(costs, step="line_search", p=p, learning_rate=rate, max_depth=2, n_estimators=15)
    model.fit(samples, y)
    curve = [objective(shares, y, costs, p) for shares in mixtures(model, samples)]
    assert len(curve) > 3
    assert (np.diff(curve) < 0).all()


@st.composite
def proposals(draw):
    """Two stochastic hypotheses and prices, some of them zero."""
    n, k = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    before, proposed = (rng.dirichlet(np.full(k, a), n) for a in (1.0, 0.3))
    proposed[rng.random(n) < 0.5] = np.eye(k)[rng.integers(k)]
    prices = rng.uniform(0, 3, (n, k)) * (rng.random((n, k)) < 0.8)
    return before, proposed, prices, draw(st.sampled_from([1.0, 1.3, 2.0, 5.0, 300.0]))


@given(proposals())
def test_best_mixing_weight_is_the_minimiser(problem) -> None:
    before, proposed, prices, p = problem
    assume(prices.any())
    scale = max(before.max(), proposed.max())

    def cost(a: float) -> float:
        return float((prices * (((1 - a) * before + a * proposed) / scale) ** p).sum())

    share = best_mixing_weight(*problem)
    assert 0 <= share <= 1
    assert all(cost(share) <= cost(a) + 1e-9 * cost(0) for a in np.linspace(0, 1, 101))
    if p == 2:  # in closed form
        change = proposed - before
        curvature = (prices * change**2).sum()
        vertex = -(prices * before * change).sum() / curvature if curvature else 0.0
        assert share == pytest.approx(np.clip(vertex, 0, 1), abs=1e-9)


def test_best_mixing_weight_of_hypotheses_without_a_price() -> None:
    assert best_mixing_weight([[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]], 2) == 0


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_minimiser_of_the_expected_cost(p) -> None:
    """Shares go to R^(-1/(p-1)), where R are the expected costs of the decisions."""
    probability = np.array([0.5, 0.3, 0.2])
    risk = probability @ ASYMMETRIC
    model = quick(p=p, step="line_search", learning_rate=1.0, n_estimators=400)
    model.fit(np.zeros((3, 1)), np.arange(3), probability)
    expected = risk ** (-1 / (p - 1))
    shares = mixtures(model, np.zeros((1, 1)))[-1][0]
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.01)
    assert model.predict([[0.0]]) == risk.argmin()


def test_weights_of_the_first_power_do_not_change() -> None:
    """With p=1 every round is the first: one tree of minimum cost."""
    rounds: list[Round] = []
    model = quick(p=1, callbacks=[rounds.append]).fit(X, Y)
    for done in rounds:
        np.testing.assert_allclose(done.sample_weight, rounds[0].sample_weight, rtol=1e-12)
    assert (model.apply(X) == model.apply(X)[:, :1]).all()
    searched = quick(p=1, step="line_search", learning_rate=1.0).fit(X, Y)
    assert searched.stop_reason_ == "useless"
    assert (searched.apply(X) == model.apply(X)[:, :1]).all()
    for leaf in np.unique(model.apply(X)[:, 0]):
        inside = model.apply(X)[:, 0] == leaf
        assert (searched.predict(X[inside]) == ASYMMETRIC[Y[inside]].sum(axis=0).argmin()).all()
    drawn = quick(p=1, subsample=0.5).fit(X, Y)
    assert (drawn.apply(X) != drawn.apply(X)[:, :1]).any()


@BOTH
def test_order_of_the_labels_does_not_matter(step) -> None:
    """Labels are no numbers: a tree tests all of them at once."""
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:500], y[:500]
    costs = np.random.default_rng(0).uniform(1, 3, (10, 10)) * zero_one_costs(10)
    order = np.random.default_rng(1).permutation(10)
    place = np.argsort(order)
    one = quick(costs, step=step).fit(digits, y)
    other = quick(costs[np.ix_(order, order)], step=step).fit(digits, place[y])
    np.testing.assert_allclose(
        other.cost_scores(digits), one.cost_scores(digits)[:, order], rtol=1e-7
    )


# Costs.


@BOTH
def test_rows_of_costs_are_the_truth(step) -> None:
    costs = zero_one_costs(3)
    costs[1] *= 8
    counts = [(quick(c, step=step).fit(X, Y).predict(X) == 1).sum() for c in (costs, costs.T)]
    plain = (quick(None, step=step).fit(X, Y).predict(X) == 1).sum()
    assert counts[0] > plain + 20 > counts[1] + 40


@BOTH
def test_unit_of_costs_does_not_matter(step) -> None:
    one = quick(step=step).fit(X, Y)
    for unit in (2.0**-60, 2.0**60):
        other = quick(ASYMMETRIC * unit, step=step).fit(X, Y, np.full(len(Y), unit))
        np.testing.assert_array_equal(one.cost_scores(X), other.cost_scores(X))


@BOTH
@pytest.mark.parametrize("p", [1.0, 2, 1e4])
def test_free_mistakes_and_high_powers(step, p) -> None:
    costs = [[0, 0, 1], [3, 0, 0], [1e-3, 1e3, 0]]
    model = quick(costs, step=step, p=p, learning_rate=1.0).fit(X, Y, WEIGHT * 1e-20)
    assert np.isfinite(model.cost_scores(X)).all()
    assert (model.estimator_weights_ > 0).all()


# What all boosting classifiers promise.


@BOTH
@pytest.mark.parametrize("n_classes", [2, 3, 10, 26])
def test_numbers_of_classes(step, n_classes) -> None:
    samples, y = make_blobs(20 * n_classes, 4, centers=n_classes, random_state=0)
    names = np.array([f"class {k:02}" for k in range(n_classes)])
    model = quick(None, step=step, max_depth=8, learning_rate=1.0).fit(samples, names[y])
    np.testing.assert_array_equal(model.classes_, names)
    assert model.score(samples, names[y]) > 0.9
    assert model.cost_scores(samples).shape == (len(y), n_classes)
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert not hasattr(model, "predict_proba")
    np.testing.assert_allclose(sum(hypotheses(model, samples)).sum(axis=1), model.n_estimators_)


@BOTH
def test_weights_stand_for_copies(step) -> None:
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = quick(step=step, binning="exact").fit(X, Y, counts)
    copied = quick(step=step, binning="exact").fit(
        np.repeat(X, counts, axis=0), np.repeat(Y, counts)
    )
    np.testing.assert_allclose(weighted.cost_scores(X), copied.cost_scores(X), rtol=1e-6)


@BOTH
@pytest.mark.parametrize("random", [{}, {"subsample": 0.6, "max_features": 0.5}])
def test_warm_start_and_threads_give_the_same_bits(step, random) -> None:
    whole = quick(n_estimators=10, step=step, **random).fit(X, Y, WEIGHT)
    parts = quick(n_estimators=5, step=step, warm_start=True, **random).fit(X, Y, WEIGHT)
    parts.set_params(n_estimators=10).fit(X, Y, WEIGHT)
    threads = quick(n_estimators=10, step=step, n_jobs=2, **random).fit(X, Y, WEIGHT)
    for other in (parts, threads):
        np.testing.assert_array_equal(other.cost_scores(X), whole.cost_scores(X))
        np.testing.assert_array_equal(other.train_score_, whole.train_score_)
        assert_same_forest(whole.forest_, other.forest_)


def test_warm_start_keeps_p() -> None:
    model = quick(p=3, n_estimators=4, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"With warm_start=True p must stay 3; got 2\."):
        model.set_params(n_estimators=6, p=2).fit(X, Y)
    with pytest.raises(ValueError, match="must stay as they were"):
        model.set_params(p=3, cost_matrix=ASYMMETRIC.T).fit(X, Y)


@BOTH
def test_early_stopping_goes_back_to_the_best_round(step) -> None:
    parameters = {"step": step, "n_estimators": 80, "learning_rate": 0.5}
    X_val, y_val = noisy(seed=1)
    model = quick(early_stopping=True, n_iter_no_change=4, **parameters)
    model.fit(X, Y, X_val=X_val, y_val=y_val)
    best = model.n_estimators_
    full = quick(**{**parameters, "n_estimators": best + 4}).fit(X, Y, X_val=X_val, y_val=y_val)
    assert best < full.n_estimators_
    assert model.stop_reason_ == "early stopping"
    assert model.validation_score_[-1] <= model.validation_score_.min() + model.tol
    np.testing.assert_array_equal(model.validation_score_, full.validation_score_[:best])
    np.testing.assert_array_equal(model.cost_scores(X), list(full.staged_cost_scores(X))[best - 1])


@BOTH
def test_callbacks(step) -> None:
    rounds: list[Round] = []

    def stop(done: Round) -> bool:
        rounds.append(done)
        return done.number == 3

    model = quick(step=step, callbacks=[stop]).fit(X, Y, WEIGHT)
    assert (model.n_estimators_, model.stop_reason_) == (3, "callback")
    for done, score in zip(rounds, model.train_score_, strict=True):
        assert done.train_score == score
        assert done.sample_weight.sum() == pytest.approx(1)
        assert (done.sample_weight >= 0).all()


@BOTH
def test_perfect(step) -> None:
    iris, y = load_iris(return_X_y=True)
    model = quick(step=step, max_depth=None).fit(iris, y)
    assert (model.n_estimators_, model.stop_reason_) == (1, "perfect")
    assert model.score(iris, y) == 1


@BOTH
def test_useless(step) -> None:
    """Equal samples of two classes with the same weight tell nothing."""
    with pytest.warns(ConvergenceWarning, match="no better than chance"):
        model = quick(None, step=step).fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert (model.n_estimators_, model.stop_reason_) == (1, "useless")
    assert model.predict([[0.0]]) == 0


def test_random_trees_are_tried_again(monkeypatch) -> None:
    """A draw may be useless; another one may be not."""
    model = quick(step="line_search", p=2, learning_rate=1.0, subsample=0.3, n_estimators=40)
    patient = model.set_params(max_depth=2).fit(X, Y).n_estimators_
    monkeypatch.setattr("badacost.family.lp_csb._MAX_ATTEMPTS", 1)
    assert model.fit(X, Y).n_estimators_ < patient


# Choice of p.


def test_automatic_p_is_the_best_on_validation_data() -> None:
    X_val, y_val = noisy(seed=1)
    validation = {"X_val": X_val, "y_val": y_val}
    model = quick(p="auto").fit(X, Y, WEIGHT, **validation)
    trials = {p: quick(p=p).fit(X, Y, WEIGHT, **validation) for p in (2, 4, 8, 16)}
    best = min(trials, key=lambda p: trials[p].validation_score_[-1])
    assert model.p_ == best
    assert model.p == "auto"
    np.testing.assert_array_equal(model.cost_scores(X), trials[best].cost_scores(X))


def test_automatic_p_holds_out_a_part_and_refits_on_everything() -> None:
    rounds: list[Round] = []
    model = quick(p="auto", validation_fraction=100, callbacks=[rounds.append]).fit(X, Y)
    assert {len(done.sample_weight) for done in rounds} == {len(X)}
    assert len(rounds) == 8
    assert not len(model.validation_score_)
    np.testing.assert_array_equal(model.cost_scores(X), quick(p=model.p_).fit(X, Y).cost_scores(X))
    with pytest.raises(ValueError, match="leaves no training samples"):
        quick(None, p="auto", validation_fraction=3).fit(np.arange(3.0)[:, None], [0, 1, 2])


def test_automatic_p_is_kept_by_a_warm_start_and_a_file(tmp_path) -> None:
    model = quick(p="auto", n_estimators=4, warm_start=True, early_stopping=True).fit(X, Y)
    chosen = model.p_
    model.save(tmp_path / "model.bin")
    loaded = badacost.load(tmp_path / "model.bin")
    assert (loaded.p, loaded.p_) == ("auto", chosen)
    for resumed in (model, loaded):
        assert resumed.set_params(n_estimators=8).fit(X, Y).p_ == chosen
    np.testing.assert_array_equal(model.cost_scores(X), loaded.cost_scores(X))


# Files.


@BOTH
def test_saved_model_predicts_the_same_bits(step, tmp_path) -> None:
    model = quick(step=step, p=np.float32(2.5), n_estimators=5, warm_start=True).fit(X, Y)
    model.save(tmp_path / "model.bin")
    loaded = badacost.load(tmp_path / "model.bin")
    assert isinstance(loaded, LpCSBClassifier)
    assert (loaded.step, loaded.p, loaded.p_) == (step, 2.5, 2.5)
    np.testing.assert_array_equal(loaded.cost_scores(X), model.cost_scores(X))
    for resumed in (model, loaded):
        resumed.set_params(n_estimators=8).fit(X, Y)
    np.testing.assert_array_equal(loaded.cost_scores(X), model.cost_scores(X))


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("forest_table", lambda table: table[:, :2], "score for each class"),
        ("forest_value", lambda value: value + 1000, "A leaf refers to a row outside"),
        ("cost_matrix", lambda costs: -costs, "costs_from_pairs takes negative"),
        ("p", lambda p: 0.5, "the fitted p must be a number at least 1"),
        ("p", lambda p: "auto", "the fitted p must be a number"),
    ],
)
def test_damaged_file_is_refused(name, edit, message, tmp_path) -> None:
    path = tmp_path / "model.bin"
    quick().fit(X, Y).save(path)
    model = read_model(path)
    header, arrays = dict(model.header), dict(model.arrays)
    part = header if name in header else arrays
    part[name] = edit(part[name])
    write_model(path, model.kind, header, arrays)
    with pytest.raises(ModelFileError, match=message):
        badacost.load(path)


# Parameters.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p": 0.5}, "p must be a number at least 1"),
        ({"p": np.nan}, "p must be a number at least 1"),
        ({"p": np.inf}, "p must be finite"),
        ({"p": None}, "p must be a number at least 1"),
        ({"p": "best"}, "p must be one of 'auto'"),
        ({"step": "newton"}, "step must be one of 'average', 'line_search'"),
    ],
)
def test_wrong_parameters(parameters, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        quick(**parameters).fit(X, Y)


@st.composite
def problems(draw):
    """Small data with ties, missing values, equal samples of different classes and odd weights."""
    k = draw(st.integers(2, 5))
    n = draw(st.integers(k, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    samples = rng.integers(-3, 4, (n, draw(st.integers(1, 3)))) * 1.0
    samples[rng.random(samples.shape) < draw(st.sampled_from([0, 0.2]))] = np.nan
    y = rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    weight = draw(st.sampled_from([None, 10.0 ** rng.uniform(-8, 8, n)]))
    costs = 10.0 ** rng.uniform(-3, 3, (k, k)) * zero_one_costs(k)
    parameters = {
        "p": draw(st.sampled_from([1, 1.1, 2, 8, 100])),
        "step": draw(st.sampled_from(["average", "line_search"])),
        "learning_rate": draw(st.sampled_from([0.1, 1.0, 1e6])),
        "max_depth": draw(st.sampled_from([1, 3])),
        "subsample": draw(st.sampled_from([0.5, 1.0])),
    }
    return samples, y, weight, costs, parameters


@given(problems())
@settings(max_examples=40)
def test_any_small_problem(problem) -> None:
    samples, y, weight, costs, parameters = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = quick(costs, n_estimators=30, **parameters).fit(samples, y, weight)
    unseen = np.random.default_rng(0).normal(scale=10, size=(20, samples.shape[1]))
    for part in (samples, unseen):
        assert set(model.predict(part)) <= set(y)
        assert np.isfinite(model.cost_scores(part)).all()
    assert (model.estimator_weights_ > 0).all()
    assert np.isfinite(model.train_score_).all()
