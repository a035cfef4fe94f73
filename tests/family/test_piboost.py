"""PIBoost: its subsets and steps, its kinship with BAdaCost, and the loop around many models."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import check_estimator

import badacost
from badacost import BAdaCostClassifier, ModelFileError
from badacost.boosting.reweighting import TreeLearner
from badacost.boosting.stagewise import Round, Stage
from badacost.family.piboost import PIBoostClassifier, Separations, separation_rule
from badacost.io.model_file import read_model, write_model
from badacost.loss import class_codes, optimal_step, step_loss
from badacost.tree.forest import Tree
from tests.forests import assert_same_forest

IRIS = load_iris(return_X_y=True)
X, Y = make_classification(
    400, 6, n_informative=5, n_redundant=0, n_classes=5, flip_y=0.1, class_sep=0.8, random_state=0
)
X_TRAIN, X_VAL, Y_TRAIN, Y_VAL = train_test_split(X, Y, test_size=0.3, random_state=0)
SUBSETS = pytest.mark.parametrize("subsets", [1, 2])


def booster(**parameters) -> PIBoostClassifier:
    return PIBoostClassifier(**{"n_estimators": 8, "max_depth": 2, "random_state": 0, **parameters})


def letters(n_classes: int, n: int = 300):
    """Blobs of as many classes as asked for, which touch."""
    return make_blobs(n, 4, centers=n_classes, cluster_std=2.5, random_state=n_classes)


def assert_same_model(one: PIBoostClassifier, other: PIBoostClassifier, data=X) -> None:
    """Equal to the last bit."""
    for name in ("estimator_weights_", "train_score_", "validation_score_", "_stage_ends"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert_same_forest(one.forest_, other.forest_)
    np.testing.assert_array_equal(one.cost_scores(data), other.cost_scores(data))
    assert one.stop_reason_ == other.stop_reason_


def answers(model: PIBoostClassifier, data) -> list[dict[int, tuple[float, np.ndarray]]]:
    """By round and subset: the step of its tree, and where that answers "not in the subset"."""
    trees, leaves = model.forest_.trees(), model.apply(data)
    rounds = []
    for a, b in pairwise(model._stage_ends):
        found = {}
        for t in range(a, b):
            values = trees[t].value[leaves[:, t]]
            (i,) = set((trees[t].value // 2).tolist())  # a tree is about one subset
            found[i] = model.estimator_weights_[t], values % 2
        assert len(found) == b - a
        rounds.append(found)
    return rounds


# Subsets and scores.


@pytest.mark.parametrize(
    ("n_classes", "subsets", "expected"),
    [
        (2, 1, ["10"]),
        (2, 2, ["10"]),
        (3, 1, ["100", "010", "001"]),
        (3, 2, ["100", "010", "001"]),
        (4, 2, ["1000", "0100", "0010", "0001", "1100", "1010", "1001"]),
    ],
)
def test_subsets(n_classes, subsets, expected) -> None:
    model = booster(subsets=subsets, n_estimators=1).fit(*letters(n_classes, 60))
    assert ["".join(map(str, row.astype(int))) for row in model.subsets_] == expected


@pytest.mark.parametrize("n_classes", [5, 26])
def test_no_separation_is_boosted_twice(n_classes) -> None:
    model = booster(subsets=2, n_estimators=1).fit(*letters(n_classes))
    assert len(model.subsets_) == n_classes * (n_classes + 1) // 2
    both = np.concatenate([model.subsets_, ~model.subsets_])
    assert len(np.unique(both, axis=0)) == len(both)


@SUBSETS
def test_scores_are_sums_of_margin_vectors(subsets) -> None:
    model = booster(subsets=subsets).fit(X, Y)
    expected = np.zeros((len(X), 5))
    for stage in answers(model, X):
        for i, (step, outside) in stage.items():
            inside = model.subsets_[i]
            vector = np.where(inside, 1 / inside.sum(), -1 / (5 - inside.sum()))
            expected += step * np.where(outside[:, None], -vector, vector)
    np.testing.assert_allclose(model.cost_scores(X), -expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))
    np.testing.assert_allclose(model.forest_.table.sum(axis=1), 0, atol=1e-12)


# The step.


@pytest.mark.parametrize(("size", "n_classes"), [(1, 2), (1, 3), (2, 4), (2, 5), (3, 7), (2, 26)])
def test_margins_are_those_of_the_codes(size, n_classes) -> None:
    """The loss is exp(-y . f / K), with the codes of all K classes."""
    inside = np.arange(n_classes) < size
    vector = np.where(inside, 1 / size, -1 / (n_classes - size))
    exponents = -class_codes(n_classes) @ vector / n_classes
    margins = separation_rule(size, n_classes).margins
    for label in range(n_classes):
        group = 0 if inside[label] else 1
        np.testing.assert_allclose(margins[group], [exponents[label], -exponents[label]])


MASSES = st.floats(1e-300, 1) | st.sampled_from([0.0, 1e-30, 1e-9])


def published_step(sums: np.ndarray, size: int, n_classes: int) -> float:
    """The paper's s (K-s) (K-1) log R, with the root R of its polynomial found in logarithms."""
    ((right1, wrong1), (wrong2, right2)), rest = sums, n_classes - size
    rising, falling = (
        [(np.log(mass) + np.log(n), n) for mass, n in terms if mass > 0]
        for terms in (((wrong1, rest), (wrong2, size)), ((right1, rest), (right2, size)))
    )

    def excess(log_root: float) -> float:
        up, down = (
            logsumexp([log + sign * n * log_root for log, n in terms])
            for sign, terms in ((1, rising), (-1, falling))
        )
        return up - down

    start = excess(0.0)
    # The excess rises at twice the least exponent or faster; half of that leaves room for rounding.
    end = -start / min(n for _, n in rising + falling)
    root = brentq(excess, *sorted((0.0, end)), xtol=1e-300, rtol=1e-15) if start else 0.0
    return size * rest * (n_classes - 1) * root


@settings(max_examples=150)
@given(st.integers(2, 60), st.data(), st.tuples(MASSES, MASSES, MASSES, MASSES))
def test_step_is_the_published_one(n_classes, data, masses) -> None:
    size = data.draw(st.integers(1, n_classes - 1))
    sums = np.array(masses).reshape(2, 2)
    sums /= sums.sum() or 1.0
    step = separation_rule(size, n_classes).step(sums)
    wrong = sums[[0, 1], [1, 0]]
    if not np.diag(sums).any():
        assert step <= 0
        return
    if not wrong.any():  # the least of errors stands in for none
        sums *= 1 - 1e-10
        sums[[0, 1], [1, 0]] = 0.5e-10
    # Where rights and wrongs balance, the step is a difference of nearly equal numbers.
    unit = size * (n_classes - size) * (n_classes - 1)
    expected = published_step(sums, size, n_classes)
    assert step == pytest.approx(expected, rel=1e-9, abs=1e-13 * unit)


@pytest.mark.parametrize(("size", "n_classes"), [(1, 2), (1, 3), (2, 5), (3, 7), (1, 26), (2, 26)])
def test_step_minimises_the_loss_and_is_the_root_of_the_polynomial(size, n_classes) -> None:
    rule, k, s = separation_rule(size, n_classes), n_classes, size
    unit = s * (k - s) * (k - 1)
    rng = np.random.default_rng(n_classes)
    for _ in range(20):
        (right1, e1), (e2, right2) = sums = rng.dirichlet([3, 1, 1, 3]).reshape(2, 2)
        step = rule.step(sums)
        a1, a2, x = right1 + e1, right2 + e2, np.exp(step / unit)
        terms = [
            e1 * (k - s) * x ** (2 * (k - s)), e2 * s * x**k, -s * (a2 - e2) * x ** (k - 2 * s),
            -(k - s) * (a1 - e1),
        ]  # fmt: skip
        assert abs(sum(terms)) < 1e-11 * max(map(abs, terms))
        bounds = (step - 0.1 * unit, step + 0.1 * unit)
        found = minimize_scalar(
            lambda b, sums=sums: step_loss(sums, rule.margins, b),
            bounds=bounds, method="bounded", options={"xatol": 1e-10 * unit},
        )  # fmt: skip
        assert step == pytest.approx(found.x, abs=1e-6 * unit)
        assert step_loss(sums, rule.margins, step) <= found.fun * (1 + 1e-12)


def test_useless_and_perfect_steps() -> None:
    rule = separation_rule(1, 26)
    assert rule.step(np.array([[0.25, 0.25], [0.25, 0.25]])) == 0
    assert rule.step(np.array([[0.1, 0.3], [0.3, 0.3]])) < 0
    assert rule.step(np.array([[0.0, 0.5], [0.5, 0.0]])) < 0
    perfect = rule.step(np.diag([0.1, 0.9]))
    assert perfect == pytest.approx(optimal_step(np.diag([0.1, 0.9]), rule.margins))
    assert perfect > rule.step(np.array([[0.1, 1e-9], [1e-9, 0.9]]))


def test_two_classes_are_adaboost() -> None:
    data, y = letters(2)
    rounds: list[Round] = []
    booster(learning_rate=1.0, callbacks=[rounds.append]).fit(data, y)
    weight = np.full(len(y), 1 / len(y))
    for done in rounds:
        error = weight[done.predicted != y].sum()
        assert done.step == pytest.approx(np.log((1 - error) / error) / 2, rel=1e-9)
        weight *= np.exp(np.where(done.predicted == y, -done.step, done.step))
        weight /= weight.sum()
        np.testing.assert_allclose(done.sample_weight, weight, rtol=1e-9)


# The paper's corollary 3: each subset is a BAdaCost.


@pytest.mark.parametrize(
    ("n_classes", "subsets", "learning_rate"),
    [(2, 1, 1.0), (3, 1, 0.1), (4, 2, 0.1), (5, 2, 1.0), (10, 1, 1.0)],
)
def test_every_subset_is_badacost_round_by_round(n_classes, subsets, learning_rate) -> None:
    data, y = letters(n_classes, 250)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    seen: list[Round] = []
    parameters = {"n_estimators": 6, "max_depth": 2, "learning_rate": learning_rate}
    model = PIBoostClassifier(subsets=subsets, callbacks=[seen.append], **parameters)
    found = answers(model.fit(data, y, weight), data)
    mean_weight = np.zeros((len(found), len(y)))
    for i, inside in enumerate(model.subsets_):
        s, k = int(inside.sum()), n_classes
        # The paper's costs. It multiplies them by K/(K-1) of all classes to get margins, where a
        # model of two classes multiplies by 2.
        costs = np.array([[0, 1 / (s * k)], [1 / ((k - s) * k), 0]]) * k / (k - 1) / 2
        rounds: list[Round] = []
        BAdaCostClassifier(costs, cost_scale=None, callbacks=[rounds.append], **parameters).fit(
            data, ~inside[y], weight
        )
        assert [i in stage for stage in found] == [r < len(rounds) for r in range(len(found))]
        for r, done in enumerate(rounds):
            step, outside = found[r][i]
            assert step == pytest.approx(done.step, rel=1e-9)
            np.testing.assert_array_equal(outside, done.predicted)
        last = [rounds[min(r, len(rounds) - 1)].sample_weight for r in range(len(found))]
        mean_weight += np.array(last) / len(model.subsets_)
    for done, expected in zip(seen, mean_weight, strict=True):
        np.testing.assert_allclose(done.sample_weight, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("n_classes", "subsets", "learning_rate"),
    [(2, 1, 0.1), (3, 1, 1.0), (10, 2, 1.0), (26, 1, 0.1)],
)
def test_the_loss_of_every_subset_falls_in_every_round(n_classes, subsets, learning_rate) -> None:
    data, y = letters(n_classes)
    model = booster(learning_rate=learning_rate, subsets=subsets).fit(data, y)
    codes = class_codes(n_classes)[y]
    losses = {i: [1.0] for i in range(len(model.subsets_))}
    exponents = np.zeros((len(model.subsets_), len(y)))
    for stage in answers(model, data):
        for i, (step, outside) in stage.items():
            inside = model.subsets_[i]
            vector = np.where(inside, 1 / inside.sum(), -1 / (n_classes - inside.sum()))
            exponents[i] -= step * np.where(outside, -1, 1) * (codes @ vector) / n_classes
            losses[i].append(np.exp(exponents[i]).mean())
    for curve in losses.values():
        assert len(curve) > 1
        assert (np.diff(curve) < 0).all()
    assert model.score(data, y) > 1.5 / n_classes
    assert (model.predict(data) != y).mean() == pytest.approx(model.train_score_[-1])


# Subsets that are finished.


def test_a_perfect_subset_takes_no_more_part() -> None:
    """A stump tells the first iris from the others."""
    data, y = IRIS
    whole = booster(max_depth=1, n_estimators=9).fit(data, y)
    np.testing.assert_array_equal(np.diff(whole._stage_ends), [3] + [2] * 8)
    assert [sorted(stage) for stage in answers(whole, data)] == [[0, 1, 2]] + [[1, 2]] * 8
    parts = booster(max_depth=1, n_estimators=2, warm_start=True).fit(data, y)
    assert_same_model(whole, parts.set_params(n_estimators=9).fit(data, y), data)


def test_all_subsets_perfect() -> None:
    data, y = np.repeat(np.arange(4.0), 5)[:, None], np.repeat(list("abcd"), 5)
    model = PIBoostClassifier(subsets=2, n_estimators=50, warm_start=True).fit(data, y)
    assert (model.stop_reason_, model.n_estimators_) == ("perfect", 1)
    assert model.score(data, y) == 1
    assert np.isfinite(model.estimator_weights_).all()
    before = model.cost_scores(data)
    np.testing.assert_array_equal(model.fit(data, y).cost_scores(data), before)


def test_constant_features_leave_the_shares_of_the_classes() -> None:
    """A share of 1/K is the balance of a subset: nothing to gain. Others reach theirs at once."""
    data, y = np.zeros((6, 1)), np.array([0, 0, 1, 1, 1, 2])
    model = PIBoostClassifier(learning_rate=1.0, n_estimators=50).fit(data, y)
    assert (model.stop_reason_, model.n_estimators_) == ("useless", 1)
    assert sorted(answers(model, data)[0]) == [1, 2]
    np.testing.assert_allclose(model.predict_proba(data[:1]), [[1 / 3, 1 / 2, 1 / 6]], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(data[:1]), 1)


@SUBSETS
def test_nothing_to_learn_at_all(subsets) -> None:
    data, y = np.zeros((12, 2)), np.tile([0, 1, 2, 3], 3)
    model = PIBoostClassifier(subsets=subsets)
    with pytest.warns(ConvergenceWarning, match="The first weak learner is no better than chance"):
        model.fit(data, y)
    assert (model.stop_reason_, model.n_estimators_) == ("useless", 1)
    assert len(model.estimator_weights_) == len(model.subsets_)
    assert np.abs(model.cost_scores(data)).max() < 1e-4


class Scripted:
    """A subset whose rounds end as they are told: None, "perfect" or "useless"."""

    weights = np.full(2, 0.5)

    def __init__(self, *reasons: str | None):
        self._reasons = list(reasons)

    def fit(self, n_done: int) -> Stage:
        reason = self._reasons.pop(0)
        value = np.zeros(1, np.int32)
        tree = Tree(*[value] * 8)
        labels = np.array([0, 1] if reason == "perfect" else [1, 1])
        return Stage([tree], [1.0], [labels], np.zeros((2, 2)), reason)

    def advance(self, stage: Stage) -> None:
        pass


@pytest.mark.parametrize(
    ("scripts", "n_trees", "reasons"),
    [
        ([("perfect",), (None, "perfect")], [2, 1], [None, "perfect"]),
        ([("useless",), ("useless",)], [2], ["useless"]),
        ([("useless",), (None, "useless")], [1, 1], [None, "useless"]),
        ([("perfect",), ("useless",)], [1, 0], [None, "useless"]),
        ([("useless",), (None, "perfect")], [1, 1, 0], [None, None, "useless"]),
        ([("perfect",), (None, "useless")], [2, 1], [None, "useless"]),
    ],
    ids=lambda value: str(value) if isinstance(value[0], tuple) else "",
)
def test_how_a_fit_of_several_subsets_ends(scripts, n_trees, reasons) -> None:
    targets = [np.array([0, 1])] * 2
    descent = Separations([Scripted(*script) for script in scripts], targets, np.zeros((4, 3)))
    for number, (n, reason) in enumerate(zip(n_trees, reasons, strict=True)):
        stage = descent.fit(number)
        assert stage.reason == reason
        assert len(stage.models) == len(stage.steps) == len(stage.rows) == n
        if reason != "useless":
            descent.advance(stage)


@pytest.mark.parametrize(
    ("parameters", "n_attempts"),
    [
        ({}, 1),
        ({"max_features": 1.0}, 1),
        ({"max_features": 7}, 1),
        ({"subsample": 1.0}, 1),
        ({"max_features": 0.5}, 5),
        ({"subsample": 0.5}, 5),
    ],
)
@pytest.mark.filterwarnings("ignore:The first weak learner")
def test_only_where_chance_plays_a_useless_learner_is_tried_again(
    parameters, n_attempts, monkeypatch
) -> None:
    seeds = []

    def count(learner, weights, costs, rows, seed, fit=TreeLearner.fit):
        seeds.append(seed)
        return fit(learner, weights, costs, rows, seed)

    monkeypatch.setattr(TreeLearner, "fit", count)
    data, y = np.zeros((120, 7)), np.tile([0, 1, 2], 40)
    weight = np.where(np.arange(120) < 3, 1.0, 1e-30)  # what a tree sees is drawn from these
    booster(**parameters).fit(data, y, weight)
    # A short step asks for a second learner, of steepest descent.
    assert len(seeds) == 3 * n_attempts * 2
    assert len(set(seeds)) == (1 if n_attempts == 1 else 3 * n_attempts)


# Probabilities.

CELLS = np.column_stack([np.arange(30) % 6, np.arange(30) // 6]).astype(float)


@pytest.mark.parametrize(
    ("n_classes", "learning_rate", "n_rounds"),
    [(2, 1.0, 20), (3, 0.3, 60), (4, 1.0, 20), (8, 1.0, 20)],
)
def test_posterior_of_a_population(n_classes, learning_rate, n_rounds) -> None:
    """Weights P(y|x) in the place of samples leave no noise: the formula is the limit."""
    truth = np.random.default_rng(0).dirichlet(np.full(n_classes, 2.0), size=30)
    data, y = np.repeat(CELLS, n_classes, axis=0), np.tile(np.arange(n_classes), 30)
    model = booster(n_estimators=n_rounds, max_depth=10, learning_rate=learning_rate)
    model.fit(data, y, truth.ravel())
    found = model.predict_proba(CELLS)
    assert np.abs(found - truth).mean() < 0.01
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(CELLS))
    # The softmax of the scores is another answer, and wrong for more than two classes.
    odds = np.exp(-model.cost_scores(CELLS))
    softmax = odds / odds.sum(axis=1, keepdims=True)
    assert (np.abs(softmax - truth).mean() < 0.01) == (n_classes == 2)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0, 1e3, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3, 26])
def test_probabilities_of_any_scores(n_classes, scale) -> None:
    model = booster(n_estimators=1).fit(*letters(n_classes))
    scores = scale * np.random.default_rng(0).normal(size=(500, n_classes))
    found = model._posterior(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(
        np.take_along_axis(found, scores.argmin(axis=1)[:, None], 1)[:, 0], found.max(axis=1)
    )
    if scale <= 50:  # the log-odds differ as the scores do
        rest = np.array([np.delete(found, k, axis=1).sum(axis=1) for k in range(n_classes)]).T
        log_odds = np.log(found) - np.log(rest)
        factor = 2 if n_classes == 2 else 1 / (n_classes - 1)
        expected = factor * (scores[:, :1] - scores)
        np.testing.assert_allclose(log_odds - log_odds[:, :1], expected, rtol=1e-9, atol=1e-9)


def test_pairs_have_no_probabilities_but_can_be_calibrated() -> None:
    model = booster(subsets=2)
    assert not hasattr(model, "predict_proba")
    model.fit(X, Y)
    assert not hasattr(model, "staged_predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as error:
        model.predict_proba(X)
    assert "predict_proba needs subsets=1: calibrate" in str(error.value.__cause__)
    model.set_params(subsets=1)  # meant for the next fit
    assert not hasattr(model, "predict_proba")
    calibrated = CalibratedClassifierCV(booster(subsets=2, n_estimators=3), cv=2).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


# Parameters and data.


@pytest.mark.parametrize("wrong", [0, 3, 1.0, True, "all", None, [[0, 1]]])
def test_wrong_subsets(wrong) -> None:
    with pytest.raises((TypeError, ValueError), match="subsets must be an integer at least 1 and"):
        booster(subsets=wrong).fit(X, Y)


def test_pairs_change_the_model() -> None:
    one, two = booster().fit(X, Y), booster(subsets=2).fit(X, Y)
    assert (one.forest_.n_trees, two.forest_.n_trees) == (40, 120)
    assert (one.predict(X) != two.predict(X)).any()
    assert two.train_score_[-1] < one.train_score_[0]


def test_weights_stand_for_copies() -> None:
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = booster(binning="exact", subsets=2).fit(X, Y, weight)
    copied = booster(binning="exact", subsets=2)
    copied.fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(weighted.cost_scores(X), copied.cost_scores(X), rtol=1e-5)


def test_a_class_without_weight() -> None:
    model = booster().fit(X, Y, (Y != 3).astype(float))
    assert len(model.classes_) == 5
    assert 3 not in model.predict(X)


def test_names_of_classes_are_names_only() -> None:
    names = np.array(["e", "a", "d", "b", "c"])
    plain, named = booster(subsets=2).fit(X, Y), booster(subsets=2).fit(X, names[Y])
    agree = named.predict(X) == names[plain.predict(X)]
    assert agree.mean() > 0.98  # but for ties, in another order of the classes
    np.testing.assert_allclose(
        named.decision_function(X)[:, np.argsort(np.argsort(names))], plain.decision_function(X)
    )


def test_missing_values_and_a_single_feature() -> None:
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    assert booster(n_estimators=20).fit(holes, Y).score(holes, Y) > 0.5
    assert booster(n_estimators=20).fit(X[:, :1], Y).score(X[:, :1], Y) > 0.25


def test_subsamples_and_features_are_drawn_for_each_subset() -> None:
    model = booster(subsample=0.5, max_depth=1, n_estimators=2, binning="exact").fit(X, Y)
    roots = model.forest_.offsets[:-1]
    n_drawn = model.forest_.count[roots]
    assert (np.abs(n_drawn - 200) < 4 * np.sqrt(400 * 0.5 * 0.5)).all()
    assert len(np.unique(n_drawn)) > 1
    drawn = booster(max_features=1, max_depth=1, n_estimators=2, subsets=2).fit(X, Y).forest_
    assert len(np.unique(drawn.feature[drawn.offsets[:-1]][:15])) > 3


# The loop.


@pytest.mark.parametrize(
    "parameters",
    [{}, {"subsets": 2, "subsample": 0.6, "max_features": 0.5}, {"early_stopping": True}],
    ids=["plain", "random", "early stopping"],
)
def test_five_and_five_rounds_are_ten(parameters) -> None:
    whole = booster(n_estimators=10, **parameters).fit(X, Y)
    parts = booster(n_estimators=5, warm_start=True, **parameters).fit(X, Y)
    assert_same_model(whole, parts.set_params(n_estimators=10).fit(X, Y))


def test_a_warm_start_keeps_the_subsets() -> None:
    model = booster(n_estimators=2, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="With warm_start=True subsets must stay as it was"):
        model.set_params(n_estimators=4, subsets=2).fit(X, Y)
    with pytest.raises(ValueError, match="classes must stay"):
        model.set_params(subsets=1).fit(X, Y % 2)
    assert_same_model(model.fit(X, Y), booster(n_estimators=4).fit(X, Y))


@SUBSETS
def test_the_number_of_threads_does_not_matter(subsets) -> None:
    one, two = (
        booster(subsets=subsets, max_features=0.5, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2)
    )
    assert_same_model(one, two)


def test_early_stopping_goes_back_to_the_best_round() -> None:
    parameters = {"n_estimators": 60, "learning_rate": 1.0, "max_depth": 4}
    validation = {"X_val": X_VAL, "y_val": Y_VAL}
    stopped = booster(**parameters, early_stopping=True, n_iter_no_change=5)
    stopped.fit(X_TRAIN, Y_TRAIN, **validation)
    assert stopped.stop_reason_ == "early stopping"
    best = stopped.n_estimators_
    assert best == len(stopped._stage_ends) - 1 < 55
    full = booster(**{**parameters, "n_estimators": best + 5})
    full.fit(X_TRAIN, Y_TRAIN, **validation)
    stages = list(full.staged_predict(X_VAL))
    np.testing.assert_allclose(full.validation_score_, [np.mean(p != Y_VAL) for p in stages])
    np.testing.assert_array_equal(full.validation_score_[:best], stopped.validation_score_)
    assert (full.validation_score_[best : best + 5] >= stopped.validation_score_[-1]).all()
    np.testing.assert_array_equal(stopped.predict(X_VAL), stages[best - 1])


@SUBSETS
def test_last_stage_is_the_model(subsets) -> None:
    model = booster(subsets=subsets).fit(X, Y)
    methods = ["predict", "cost_scores", "decision_function"]
    for method in methods + ["predict_proba"] * (subsets == 1):
        stages = list(getattr(model, f"staged_{method}")(X))
        assert len(stages) == model.n_estimators_ == 8
        np.testing.assert_array_equal(stages[-1], getattr(model, method)(X))
        short = booster(subsets=subsets, n_estimators=3).fit(X, Y)
        np.testing.assert_array_equal(stages[2], getattr(short, method)(X))


def test_callbacks() -> None:
    rounds: list[Round] = []
    model = booster(callbacks=[rounds.append, lambda done: done.number == 4]).fit(X, Y)
    assert (model.stop_reason_, model.n_estimators_, len(rounds)) == ("callback", 4, 4)
    before = np.zeros((len(X), 5))
    for done, scores, stage in zip(
        rounds, model.staged_cost_scores(X), answers(model, X), strict=True
    ):
        assert done.sample_weight.sum() == pytest.approx(1)
        assert (done.sample_weight > 0).all()
        assert done.step == max(step for step, _ in stage.values())
        clear = np.diff(np.sort(scores - before, axis=1)[:, :2])[:, 0] > 1e-9
        np.testing.assert_array_equal(done.predicted[clear], (scores - before).argmin(1)[clear])
        before = scores


def test_progress_bar(capsys) -> None:
    booster(verbose=1).fit(X, Y)
    assert (
        "PIBoostClassifier [##############################] 8/8  error " in capsys.readouterr()[1]
    )


# Files.


@SUBSETS
def test_a_loaded_model_is_the_same(subsets, tmp_path) -> None:
    model = booster(subsets=subsets, n_estimators=4).fit(X, np.array(list("abcde"))[Y])
    model.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    assert type(loaded) is PIBoostClassifier
    assert loaded.get_params() == model.get_params()
    assert_same_model(model, loaded)
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    np.testing.assert_array_equal(model.subsets_, loaded.subsets_)
    assert hasattr(loaded, "predict_proba") == (subsets == 1)
    names = np.array(list("abcde"))[Y]
    loaded.set_params(warm_start=True, n_estimators=8).fit(X, names)
    assert_same_model(loaded, booster(subsets=subsets).fit(X, names))


def set_subsets(header, arrays) -> None:
    header["parameters"]["subsets"] = 2


def set_table(header, arrays) -> None:
    arrays["forest_table"] = -arrays["forest_table"]


def set_value(header, arrays) -> None:
    arrays["forest_value"][0] = 10


def set_stages(header, arrays) -> None:
    arrays["stage_ends"][1] = arrays["stage_ends"][2]


@pytest.mark.parametrize("change", [set_subsets, set_table, set_value, set_stages])
def test_altered_files_are_refused(change, tmp_path) -> None:
    path = tmp_path / "model"
    booster(n_estimators=3).fit(X, Y).save(path)
    model = read_model(path)
    header = dict(model.header)
    arrays = {name: array.copy() for name, array in model.arrays.items()}
    change(header, arrays)
    write_model(path, model.kind, header, arrays)
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        badacost.load(path)


# Anything.


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 30),
    n_classes=st.integers(2, 7),
    parameters=st.fixed_dictionaries(
        {
            "subsets": st.sampled_from([1, 2]),
            "learning_rate": st.sampled_from([1e-6, 0.1, 1.0, 3.0]),
            "max_depth": st.sampled_from([1, 3, None]),
            "subsample": st.sampled_from([0.3, 1.0]),
            "criterion": st.sampled_from(["gini", "entropy"]),
        }
    ),
)
@pytest.mark.filterwarnings("ignore:The first weak learner")
def test_any_data(seed, n, n_classes, parameters) -> None:
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(n_classes, size=n - 2)])
    data = np.round(rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-3, 4), 2)
    data[rng.random(data.shape) < 0.1] = np.nan
    weight = 10.0 ** rng.uniform(-6, 6, n)
    model = booster(n_estimators=4, **parameters).fit(data, y, weight)
    assert np.isin(model.predict(data), y).all()
    assert np.isfinite(model.cost_scores(data)).all()
    assert (model.estimator_weights_ > 0).all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(data).sum(axis=1), 1)


def test_estimator_checks_of_pairs() -> None:
    check_estimator(PIBoostClassifier(n_estimators=4, subsets=2))
