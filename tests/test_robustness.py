"""Hard inputs: each is a clear error or a sane model, and a sane model is silent."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
)
from badacost.costs import costs_from_class_weights, zero_one_costs
from badacost.metrics import average_cost

X, Y = load_iris(return_X_y=True)


def boost(costs=None, **parameters) -> BAdaCostClassifier:
    return BAdaCostClassifier(costs, **{"n_estimators": 5, "max_depth": 2, **parameters})


def cost_boost(costs=None, **parameters) -> CostBoostClassifier:
    settings = {"n_estimators": 20, "n_folds": 3, "max_depth": 2, "learning_rate": 0.8}
    settings |= {"random_state": 0, **parameters}
    settings.pop("criterion", None)
    settings["max_depth"] = settings["max_depth"] or 16
    return CostBoostClassifier(costs, **settings)


MAKERS = {
    "margin": boost,
    "bayes": lambda costs=None, **p: boost(costs, decision="bayes", **p),
    "tree": CostSensitiveTreeClassifier,
    "costboost": cost_boost,
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def assert_sane(model, data, y=None) -> None:
    """Labels are classes, probabilities are finite and sum to one, rules and methods agree."""
    predicted = model.predict(data)
    assert np.isin(predicted, model.classes_).all()
    probability = model.predict_proba(data)
    assert probability.shape == (len(predicted), len(model.classes_))
    assert np.isfinite(probability).all()
    assert (probability >= 0).all()
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    if isinstance(model, BAdaCostClassifier):
        assert np.isfinite(model.cost_scores(data)).all()
        assert np.isfinite(model.estimator_weights_).all()
        assert np.isfinite(model.train_score_).all()


def fitted(model, data, y, weight=None):
    """Fit, where a learner without use may say so, and nothing else may be said."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The first weak learner is no better", ConvergenceWarning)
        return model.fit(data, y, weight)


# Bad inputs: a clear error.


@pytest.mark.parametrize(
    ("data", "y", "error", "message"),
    [
        (X[:0], Y[:0], ValueError, "Found array with 0 sample"),
        (X[:, :0], Y, ValueError, "Found array with 0 feature"),
        (X[0], Y, ValueError, "Expected 2D array, got 1D array"),
        (X[None], Y, ValueError, "Found array with dim 3"),
        (X, Y[1:], ValueError, "inconsistent numbers of samples"),
        (X, None, ValueError, "requires y to be passed, but the target y is None"),
        (X, np.zeros(150), ValueError, "y must have at least 2 classes; it has 1 class only: 0"),
        (X, np.full(150, "a"), ValueError, "it has 1 class only: a"),
        (X, np.where(Y == 0, np.nan, Y), ValueError, "y contains NaN: leave out"),
        (X, Y + 0.5, ValueError, "Unknown label type: continuous"),
        (X, np.eye(3)[Y], ValueError, "y should be a 1d array"),
        (X, [None] * 150, ValueError, "y contains None: leave out"),
        (np.full((150, 2), "a"), Y, ValueError, "X contains text, such as 'a': make text"),
        (pd.DataFrame({"a": ["u", "v", "w"] * 50}), Y, ValueError, "X contains text, such as 'u'"),
        (np.where(X > 7, np.inf, X), Y, ValueError, "X contains infinity: replace"),
        (np.where(X > 7, np.inf, -np.inf), Y, ValueError, "X contains infinity"),
        (X + 1j, Y, ValueError, "Complex data not supported"),
        (scipy.sparse.csr_array(X * np.inf), Y, ValueError, "contains infinity"),
        (None, Y, ValueError, "Expected 2D array, got scalar array"),
    ],
    ids=[
        "no samples", "no features", "1d", "3d", "lengths", "no y", "one class", "one name",
        "NaN labels", "continuous", "indicator", "None labels", "strings", "frame of strings",
        "inf", "inf of both signs", "complex", "sparse", "None",
    ],
)  # fmt: skip
def test_bad_training_data(make, data, y, error, message) -> None:
    with pytest.raises(error, match=message):
        make().fit(data, y)


MIXED = [
    ([1, "a", None], "contains None: leave out"),
    ([1, "a", 2.5], "has labels such as 1, 'a': make all of them text"),
    (["a", b"a", "b"], "has labels such as 'a', b'a'"),
    ([True, "a", "b"], "has labels such as True, 'a'"),
    (["a", np.nan, "b"], "contains NaN: leave out"),
    (["a", pd.NA, "b"], "contains <NA>: leave out"),
    ([{}, {1: 2}, {}], "has labels such as {}: make all of them text, or all of them numbers"),
    (
        [(1, 2), (3,), (4,)],
        r"has labels such as \(1, 2\): make all of them text",
    ),
]


@pytest.mark.parametrize(("labels", "message"), MIXED)
def test_labels_that_cannot_be_sorted(labels, message) -> None:
    y = np.empty(150, dtype=object)
    y[:] = labels * 50
    kinds = [*map(MAKERS.get, MAKERS), MinimumCostClassifier, PIBoostClassifier]
    for model in (make() for make in kinds):
        with pytest.raises(ValueError, match=f"^y {message}"):
            model.fit(X, y)
    model = boost().fit(X, Y)
    for call in (model.score, MinimumCostClassifier(model).fit):
        with pytest.raises(ValueError, match=f"^y {message}"):
            call(X, y)
    for name, pair in (("y_true", (y, Y)), ("y_pred", (Y, y))):
        with pytest.raises(ValueError, match=f"^{name} {message}"):
            average_cost(*pair)
    if "(1" not in message:  # which can be sorted, and name classes of costs
        with pytest.raises(ValueError, match=f"^y {message}"):
            costs_from_class_weights("balanced", y=y)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (X[:0], ValueError, "Found array with 0 sample"),
        (X[0], ValueError, "Expected 2D array, got 1D array"),
        (X[:, :3], ValueError, "X has 3 features, but .* is expecting 4"),
        (np.where(X > 7, np.inf, X), ValueError, "X contains infinity: replace"),
        (scipy.sparse.csr_array(X[:, :3]), ValueError, "X has 3 features"),
        (np.full((2, 4), "a"), ValueError, "X contains text, such as 'a': make text"),
    ],
)
def test_bad_data_to_predict(make, data, error, message) -> None:
    model = make().fit(X, Y)
    for method in ("predict", "predict_proba", "apply"):
        with pytest.raises(error, match=message):
            getattr(model, method)(data)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.where(Y == 0, -1.0, 1), "sample_weight must not be negative; sample 0 has -1"),
        (np.where(Y == 0, np.nan, 1), "Input sample_weight contains NaN"),
        (np.where(Y == 0, np.inf, 1), "Input sample_weight contains infinity"),
        (np.zeros(150), "sample_weight is zero for every sample"),
        (np.ones(149), r"sample_weight must have shape \(150,\); got shape \(149,\)"),
        (np.ones((150, 1)), r"sample_weight must have shape \(150,\); got shape \(150, 1\)"),
        (1.0, r"sample_weight must have shape \(150,\); got shape \(\)"),
        (["a"] * 150, "could not convert string to float"),
        (np.full(150, 1e308), "the sum of sample_weight overflows"),
    ],
)
def test_bad_weights(make, weight, message) -> None:
    with pytest.raises(ValueError, match=message):
        make().fit(X, Y, weight)


C3 = zero_one_costs(3)


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        (zero_one_costs(2), ValueError, r"costs have shape \(2, 2\) where the 3 classes"),
        (zero_one_costs(4), ValueError, r"costs have shape \(4, 4\) where the 3 classes"),
        (np.ones(3), ValueError, r"costs have shape \(3,\)"),
        (np.ones((3, 2)), ValueError, r"costs have shape \(3, 2\)"),
        ([[0, 1, 1], [1, 0], [1, 1, 0]], ValueError, r"costs have shape \(3,\)"),
        (3.0, TypeError, "costs are of type float"),
        ("balanced", TypeError, "costs are of type str"),
        (C3 - 2 * C3, ValueError, "truth 0 and prediction 1 is -1.0"),
        (np.where(C3 > 0, np.nan, 0), ValueError, "truth 0 and prediction 1 is nan"),
        (np.where(C3 > 0, np.inf, 0), ValueError, "truth 0 and prediction 1 is inf"),
        (C3 * 1e308, ValueError, r"is 1e\+308: replace it by a number from 0 to 1e\+300"),
        (np.zeros((3, 3)), ValueError, "all mistakes on class 0 are free"),
        (C3 * [[1], [0], [1]], ValueError, "all mistakes on class 1 are free"),
        (C3 + 2 * np.eye(3), ValueError, "being right costs"),
        ([["0", "1", "1"]] * 3, TypeError, "replace it by a number"),
        (C3 * 1j, TypeError, "replace it by a number"),
        (
            {0: {1: 1, 2: 1}, 1: {0: 1, 2: 1}},
            ValueError,
            "class 2 is missing from the truths of costs",
        ),
        (
            {0: {1: 1}, 1: {0: 1, 2: 1}, 2: {0: 1, 1: 1}},
            ValueError,
            "is missing from the costs of truth",
        ),
        ({0: [0, 1, 1], 1: [1, 0, 1], 2: [1, 1, 0]}, TypeError, "give a mapping from prediction"),
        (
            zero_one_costs(4, labels="abcd"),
            ValueError,
            r"classes are numbers from 0 to 2: .* fewer",
        ),
        ({"a": {"b": 1}, "b": {"a": 1}}, ValueError, "class 0 is missing from the truths of costs"),
        (pd.DataFrame(C3, [0, 1, 2], [0, 1, 1]), ValueError, "label 1 is repeated"),
    ],
)
def test_bad_costs(make, costs, error, message) -> None:
    with pytest.raises(error, match=message):
        make(costs).fit(X, Y)


# Hard inputs: a sane model.


@pytest.mark.parametrize("binning", ["quantile", "uniform", "exact"])
def test_huge_and_tiny_values(make, binning) -> None:
    for scale in (1e300, 1e-300, 1e-320, -1e300):
        data = X * (scale / X.max())
        model = fitted(make(binning=binning), data, Y)  # equal steps are too wide for tiny values
        assert_sane(model, data)
        assert_sane(model, X)
        if abs(scale) > 1 or binning != "uniform":
            assert model.score(data, Y) > 0.9


@pytest.mark.parametrize("binning", ["quantile", "uniform", "exact"])
def test_one_outlier(make, binning) -> None:
    data = X.copy()
    data[0, 0], data[1, 1] = 1e300, -1e300
    assert_sane(make(binning=binning).fit(data, Y), data)


def test_values_that_differ_in_the_last_bit_only(make) -> None:
    data = np.where(Y == 0, 1.0, np.nextafter(1.0, 2.0))[:, None]
    y = (Y > 0).astype(int)
    model = make().fit(data, y)
    assert model.score(data, y) == 1


def test_constant_features(make) -> None:
    data = np.column_stack([np.ones(150), X, np.full(150, np.nan), np.zeros(150)])
    model = make().fit(data, Y)
    np.testing.assert_array_equal(model.predict(data), make().fit(X, Y).predict(X))
    np.testing.assert_array_equal(model.feature_importances_[[0, 5, 6]], 0)


def test_nothing_but_constant_features(make) -> None:
    for value in (0.0, np.nan):
        data = np.full((150, 2), value)
        model = fitted(make(), data, Y)
        assert_sane(model, data)
        np.testing.assert_allclose(model.predict_proba(data), 1 / 3, atol=1e-4)
        assert len(np.unique(model.predict(data))) == 1


def test_contradictory_copies(make) -> None:
    """The same sample with each label: probabilities are the shares, whatever the costs."""
    data = np.repeat([[0.0], [1.0]], 400, axis=0)
    y = np.repeat([0, 1, 0, 1], [300, 100, 100, 300])
    model = fitted(make(n_estimators=100) if make is not MAKERS["tree"] else make(), data, y)
    assert_sane(model, data)
    np.testing.assert_allclose(model.predict_proba([[0], [1]])[:, 0], [0.75, 0.25], atol=0.02)
    np.testing.assert_array_equal(model.predict([[0], [1]]), [0, 1])


@pytest.mark.parametrize("n_classes", [2, 3, 26, 100])
def test_one_sample_of_each_class(make, n_classes) -> None:
    data, y = np.arange(n_classes)[:, None], np.arange(n_classes)
    with warnings.catch_warnings():  # scikit-learn wonders whether this is a regression
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        model = make(max_depth=None).fit(data, y)
    assert_sane(model, data)
    if not isinstance(model, CostBoostClassifier):  # a fold that holds a class out is at a loss
        np.testing.assert_array_equal(model.predict(data), y)


def test_a_hundred_classes(make) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 100
    data = rng.normal(size=(1000, 3)) * 0.3 + np.column_stack([y % 5, y // 5 % 5, y // 25])
    costs = rng.uniform(1, 10, (100, 100)) * zero_one_costs(100)
    model = make(costs, max_depth=8).fit(data, y)
    assert_sane(model, data)
    baseline = costs[y].mean(axis=0).min()  # the best constant answer
    assert costs[y, model.predict(data)].mean() < 0.7 * baseline


def test_two_classes_in_all_forms_of_costs(make) -> None:
    y = np.array(["no", "yes"])[(Y > 0).astype(int)]
    frame = pd.DataFrame([[0, 5], [1, 0]], index=["yes", "no"], columns=["yes", "no"])
    for costs in (None, {"yes": {"no": 5}, "no": {"yes": 1}}, frame):
        model = make(costs).fit(X, y)
        assert_sane(model, X)
        if costs is not None:
            np.testing.assert_array_equal(model.cost_matrix_, [[0, 1], [5, 0]])
        assert model.score(X, y) >= (0.98 if isinstance(model, CostBoostClassifier) else 1)


def test_classes_missing_from_labelled_costs_training(make) -> None:
    nested = {i: {j: 1 + abs(i - j) for j in range(5) if i != j} for i in range(5)}
    model = make(nested).fit(X, Y * 2)  # classes 0, 2, 4 of the five that have a price
    np.testing.assert_array_equal(model.cost_matrix_, [[0, 3, 5], [3, 0, 3], [5, 3, 0]])
    assert_sane(model, X)


def test_zero_weights_are_left_out(make) -> None:
    kept = np.arange(150) % 3 > 0
    data = X.copy()
    data[~kept] = 1e6  # would move bins and trees if it counted
    weighted = make().fit(data, Y, kept.astype(float))
    alone = make().fit(X[kept], Y[kept])
    np.testing.assert_allclose(weighted.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("unweighted", [[0], [0, 1]])
def test_a_class_without_weight_is_never_predicted(make, unweighted) -> None:
    weight = np.where(np.isin(Y, unweighted), 0.0, 1.0)
    model = fitted(make(), X, Y, weight)
    assert_sane(model, X)
    assert len(model.classes_) == 3
    assert not np.isin(model.predict(X), unweighted).any()


@pytest.mark.parametrize("name", ["margin", "bayes", "tree"])
def test_only_ratios_of_weights_matter(name) -> None:
    """Not so for CostBoost, whose regularisation counts samples."""
    make = MAKERS[name]
    weight = np.where(Y == 1, 4.0, 1.0)
    one = make().fit(X, Y, weight)
    for factor in (1e-320, 1e-300, 1e-9, 3.0, 1e9, 1e300):
        other = make().fit(X, Y, weight * factor)
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_weights_of_all_magnitudes(make) -> None:
    weight = np.logspace(-300, 300, 150)
    model = fitted(make(), X, Y, weight)
    assert_sane(model, X)
    assert model.predict(X)[-1] == Y[-1]


@pytest.mark.parametrize("subsample", [0.01, 0.1, 0.5])
def test_subsamples_are_drawn_where_there_is_weight(subsample) -> None:
    """Almost all weight on few samples, as after many rounds on clean data."""
    weight = np.full(150, 1e-100)
    weight[::15] = 1.0
    model = fitted(boost(subsample=subsample, n_estimators=20, random_state=0), X, Y, weight)
    assert_sane(model, X)
    assert (model.forest_.weight[model.forest_.offsets[:-1]] > 0).all()


@pytest.mark.parametrize(("subsample", "least"), [(0.2, 0.95), (0.5, 1.0), (1.0, 1.0)])
def test_many_rounds_on_clean_data(subsample, least) -> None:
    """All weight gathers on few samples; small draws of these teach less and less."""
    for seed in range(2):
        model = boost(n_estimators=200, learning_rate=1.0, subsample=subsample, random_state=seed)
        model.fit(X, Y)
        assert_sane(model, X)
        assert model.score(X, Y) >= least
        assert model.n_estimators_ == 200 or subsample == 0.2


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e6, 1e12])
def test_unit_of_the_costs(make, factor) -> None:
    """Thousands or millionths: the model stays sane, and large units change nothing at all."""
    costs = factor * np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
    model = make(costs).fit(X, Y)
    assert_sane(model, X)
    assert model.score(X, Y) > 0.9


@pytest.mark.parametrize(
    ("ratio", "criterion"), [(1e2, "entropy"), (1e4, "gini"), (1e6, "entropy"), (1e6, "gini")]
)
@pytest.mark.parametrize("costly", [0, 1, 2])
def test_strongly_different_costs(make, ratio, costly, criterion) -> None:
    costs = zero_one_costs(3)
    costs[costly] *= ratio
    rates = [{}] if make is MAKERS["tree"] else [{"learning_rate": rate} for rate in (0.1, 1.0)]
    for rate in rates:
        model = make(costs, max_depth=3, criterion=criterion, **rate).fit(X, Y)
        assert_sane(model, X)
        if make is not cost_boost:  # few rounds give no probability below 1e-4
            assert costs[Y, model.predict(X)].mean() < 0.4  # always predicting `costly` costs 0.67


@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
@pytest.mark.parametrize("ratio", [1e4, 1e6])
@pytest.mark.parametrize("costly", [0, 1, 2])
def test_loss_falls_under_strongly_different_costs(ratio, costly, learning_rate) -> None:
    """Weights of cheap samples that underflow would let their loss rise unseen, up to inf."""
    costs = zero_one_costs(3)
    costs[costly] *= ratio
    model = boost(costs, n_estimators=40, learning_rate=learning_rate, scoring="loss").fit(X, Y)
    assert_sane(model, X)
    assert model.n_estimators_ == 40
    assert model.train_score_[0] < 1
    assert (np.diff(model.train_score_) <= 1e-12).all()


@pytest.mark.parametrize("n_refinements", [0, 1, 3])
@pytest.mark.parametrize("cost_scale", ["auto", "reference", None])
def test_prices_from_a_thousandth_to_a_thousand(n_refinements, cost_scale) -> None:
    """The costs of the trees, exp(D), go beyond what single precision holds."""
    for seed in range(4):
        costs = 10 ** np.random.default_rng(seed).uniform(-3, 3, (3, 3)) * zero_one_costs(3)
        parameters = {"n_refinements": n_refinements, "cost_scale": cost_scale}
        model = boost(costs, decision="bayes", max_depth=4, **parameters).fit(X, Y)
        assert_sane(model, X)
        constant = costs[Y].mean(axis=0).min()
        if cost_scale is not None or n_refinements:  # else trees fear one mistake only
            assert len(np.unique(model.forest_.value)) > 1
            assert costs[Y, model.predict(X)].mean() <= constant * (1 + 1e-12)


@pytest.mark.parametrize("factor", [100.0, 1e3, 1e40, 1e299])
def test_large_costs_without_scaling(factor) -> None:
    costs = factor * np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
    model = boost(costs, cost_scale=None, max_depth=3).fit(X, Y)
    assert_sane(model, X)
    assert len(np.unique(model.predict(X))) == 3
    assert model.score(X, Y) > 0.9


@pytest.mark.parametrize("factor", [1e-40, 1e40, 1e299])
def test_tree_does_not_know_the_unit_of_the_costs(factor) -> None:
    costs = np.array([[0.0, 1, 2], [3, 0, 1], [1, 4, 0]])
    one = CostSensitiveTreeClassifier(costs, max_depth=2).fit(X, Y)
    other = CostSensitiveTreeClassifier(factor * costs, max_depth=2).fit(X, Y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("scale", [1e308, 1.7e308])
def test_scale_beyond_floats(scale) -> None:
    with pytest.raises(ValueError, match="is too large for these costs"):
        boost(cost_scale=scale).fit(X, Y)


def test_a_failed_fit_changes_nothing(make) -> None:
    """A first one leaves no model, a second one the earlier model."""
    model = make(zero_one_costs(4))
    with pytest.raises(ValueError, match="costs have shape"):
        model.fit(X, Y)
    for method in ("predict", "predict_proba", "apply"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    expected = model.set_params(cost_matrix=None).fit(X, Y).predict(X)
    with pytest.raises(ValueError, match="costs have shape"):
        model.set_params(cost_matrix=zero_one_costs(4)).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("learning_rate", [1e-300, 1e-6, 1.0, 3.0, 100.0])
def test_any_learning_rate_is_sane(learning_rate) -> None:
    model = boost(learning_rate=learning_rate, n_estimators=30).fit(X, Y)
    assert_sane(model, X)


def test_more_features_than_samples(make) -> None:
    data = np.random.default_rng(0).normal(size=(12, 300))
    y = np.arange(12) % 3
    model = make(max_depth=None).fit(data, y)
    assert_sane(model, data)
    assert model.score(data, y) == 1


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda a: a[::-1][::-1], lambda a: np.repeat(a, 2, 1)[:, ::2]]
)
def test_memory_layouts(make, layout) -> None:
    model = make().fit(layout(X), Y)
    np.testing.assert_array_equal(model.predict_proba(layout(X)), make().fit(X, Y).predict_proba(X))


def test_read_only_data(make) -> None:
    data, y, weight = X.copy(), Y.copy(), np.ones(150)
    for array in (data, y, weight):
        array.flags.writeable = False
    assert_sane(make().fit(data, y, weight), data)


def test_order_of_the_samples_does_not_matter(make) -> None:
    order = np.random.default_rng(0).permutation(150)
    one, other = make().fit(X, Y), make().fit(X[order], Y[order])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


# Properties.

VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, np.nan, 1e300, -1e300, 1e-300, 5e-324]),
    st.floats(-10, 10, width=16),
)


@st.composite
def problems(draw):
    n_classes = draw(st.integers(2, 5))
    n = draw(st.integers(n_classes, 25))
    data = draw(arrays.arrays(np.float64, (n, draw(st.integers(1, 3))), elements=VALUES))
    y = np.array([*range(n_classes), *draw(
        st.lists(st.integers(0, n_classes - 1), min_size=n - n_classes, max_size=n - n_classes)
    )])  # fmt: skip
    prices = st.floats(0.1, 10)
    costs = draw(arrays.arrays(np.float64, (n_classes, n_classes), elements=prices))
    np.fill_diagonal(costs, 0.0)
    sizes = st.sampled_from([0.0, 1e-300, 1e-30, 0.5, 1.0, 3.0])
    weight = draw(arrays.arrays(np.float64, n, elements=sizes))
    weight[draw(st.integers(0, n - 1))] = 1.0
    return data, y, costs, weight


@settings(max_examples=40)
@given(
    problem=problems(),
    parameters=st.fixed_dictionaries(
        {
            "decision": st.sampled_from(["margin", "bayes"]),
            "max_depth": st.sampled_from([1, 3, None]),
            "learning_rate": st.sampled_from([0.1, 1.0]),
            "criterion": st.sampled_from(["gini", "entropy"]),
            "binning": st.sampled_from(["quantile", "uniform", "exact"]),
            "max_bins": st.sampled_from([2, 4, 256]),
            "subsample": st.sampled_from([0.5, 1.0]),
            "max_features": st.sampled_from([None, 1, "sqrt"]),
            "cost_scale": st.sampled_from(["reference", None, 0.1]),
        }
    ),
)
def test_any_small_problem(problem, parameters) -> None:
    data, y, costs, weight = problem
    model = BAdaCostClassifier(costs, n_estimators=4, random_state=0, **parameters)
    fitted(model, data, y, weight)
    assert_sane(model, data)
    assert (model.estimator_weights_ > 0).all()
    assert 1 <= model.n_estimators_ <= 4
    stages = list(model.staged_predict(data))
    np.testing.assert_array_equal(stages[-1], model.predict(data))


@settings(max_examples=25)
@given(problem=problems(), criterion=st.sampled_from(["gini", "entropy"]))
def test_any_small_problem_for_a_tree(problem, criterion) -> None:
    data, y, costs, weight = problem
    model = CostSensitiveTreeClassifier(costs, criterion=criterion).fit(data, y, weight)
    assert_sane(model, data)
    charges = model.predict_proba(data) @ costs
    predicted = charges[np.arange(len(y)), model.predict(data)]
    np.testing.assert_allclose(predicted, charges.min(axis=1))


@settings(max_examples=25)
@given(problem=problems())
def test_boosting_never_raises_the_training_loss(problem) -> None:
    data, y, costs, weight = problem
    model = BAdaCostClassifier(
        costs, n_estimators=8, learning_rate=1.0, max_depth=2, scoring="loss"
    )
    fitted(model, data, y, weight)
    if model.stop_reason_ == "useless" and model.n_estimators_ == 1:
        return  # the faint step of a learner that decides alone is not one of descent
    assert model.train_score_[0] <= 1
    assert (np.diff(model.train_score_) <= 1e-12).all()


@settings(max_examples=25)
@given(problem=problems(), exponent=st.integers(-3, 3))
def test_monotone_changes_of_features_change_nothing(problem, exponent) -> None:
    """Trees see ranks only, as long as every distinct value has a bin of its own."""
    data, y, costs, weight = problem
    data = np.clip(np.nan_to_num(data, nan=0.0), -10, 10)
    data = np.round(data, 2)
    shifted = data * 2.0**exponent
    one = fitted(boost(costs, binning="exact"), data, y, weight)
    other = fitted(boost(costs, binning="exact"), shifted, y, weight)
    np.testing.assert_array_equal(one.cost_scores(data), other.cost_scores(shifted))


# Threads

OTHER = np.roll(Y, 50)


@pytest.mark.parametrize("method", ["predict_proba", "predict_costs", "predict", "decide"])
def test_predictions_during_a_refit_are_of_one_model(make, method) -> None:
    """Either the earlier model or the new one, never trees of one with the prior of the other."""
    costs = np.array([[0.0, 1, 5], [2, 0, 1], [9, 4, 0]])
    models = [make(costs).fit(X, Y), make(costs.T.copy()).fit(X, OTHER)]
    expected = [getattr(model, method)(X) for model in models]
    model, done, wrong = make(costs).fit(X, Y), threading.Event(), []

    def predict() -> None:
        while not done.is_set():
            found = getattr(model, method)(X)
            if not any(np.array_equal(found, known) for known in expected):
                wrong.append(found)

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(predict)
        for _ in range(6):
            model.set_params(cost_matrix=costs.T.copy()).fit(X, OTHER)
            model.set_params(cost_matrix=costs).fit(X, Y)
        done.set()
        watching.result()
    assert not wrong
