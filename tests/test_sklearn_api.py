"""The promises of a scikit-learn classifier, and those of a classifier with costs."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import badacost
from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    MinimumCostClassifier,
    SAMMEClassifier,
)
from badacost.costs import labelled_costs, ordinal_costs, zero_one_costs
from badacost.metrics import average_cost, cost_scorer
from badacost.tabular import TableClassifier
from badacost.tree import binning_kernels, forest_kernels, growth_kernels, split_kernels
from tests.forests import assert_same_forest

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["ape", "bat", "cat"])[Y]
ASYMMETRIC = np.array([[0.0, 1, 2], [3, 0, 1], [1, 9, 0]])


def small(costs=None, **parameters) -> BAdaCostClassifier:
    return BAdaCostClassifier(costs, **{"n_estimators": 8, "max_depth": 2, **parameters})


def costboost(costs=None, **parameters) -> CostBoostClassifier:
    defaults = {"n_estimators": 20, "max_depth": 2, "learning_rate": 0.5, "n_folds": 3}
    return CostBoostClassifier(costs, **{**defaults, "random_state": 0, **parameters})


def noisy(n: int = 600, n_classes: int = 3, seed: int = 0):
    """Classes that overlap, so that costs matter everywhere."""
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, class_sep=0.6, random_state=seed
    )


BOTH = pytest.mark.parametrize(
    "model",
    [small(), small(decision="bayes"), costboost(), CostSensitiveTreeClassifier(max_depth=3)],
    ids=["margin", "bayes", "costboost", "tree"],
)


@pytest.mark.parametrize(
    "estimator",
    [
        BAdaCostClassifier(decision="bayes", criterion="entropy", max_leaf_nodes=8, n_estimators=4),
        CostBoostClassifier(tree="best", n_folds=2, n_estimators=3, learning_rate=0.5),
        CostSensitiveTreeClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimator_checks(estimator) -> None:
    """Settings other than those of test_family.py."""
    check_estimator(estimator)


@BOTH
def test_classifier_basics(model) -> None:
    model = clone(model).fit(X, NAMES)
    assert is_classifier(model)
    np.testing.assert_array_equal(model.classes_, ["ape", "bat", "cat"])
    probability = model.predict_proba(X)
    assert probability.shape == (150, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert model.score(X, NAMES) > 0.9
    assert type(model).__name__ in model._repr_html_()


@BOTH
def test_unfitted(model) -> None:
    for method in ("predict", "predict_proba", "apply"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(clone(model), method)(X)
    assert not hasattr(clone(model), "feature_importances_")


@pytest.mark.parametrize(
    "cls", [BAdaCostClassifier, CostBoostClassifier, CostSensitiveTreeClassifier]
)
def test_parameters_survive_clone_and_set_params(cls) -> None:
    values = {
        "cost_matrix": ASYMMETRIC,
        "n_estimators": 7,
        "learning_rate": 0.7,
        "decision": "bayes",
        "estimator": CostSensitiveTreeClassifier(max_depth=1),
        "n_folds": 3,
        "cv": [([0], [1])],
        "members": "trees",
        "tree": "best",
        "max_depth": 3,
        "max_leaf_nodes": 9,
        "min_hessian": 0.1,
        "l2": 0.5,
        "n_directions": 2,
        "min_samples_split": 4,
        "min_samples_leaf": 3,
        "max_features": "sqrt",
        "criterion": "entropy",
        "binning": "exact",
        "max_bins": 17,
        "categorical_features": [1],
        "subsample": 0.6,
        "n_refinements": 2,
        "cost_scale": 0.3,
        "early_stopping": True,
        "scoring": "loss",
        "validation_fraction": 0.3,
        "n_iter_no_change": 4,
        "tol": 0.1,
        "warm_start": True,
        "callbacks": [print],
        "n_jobs": 2,
        "device": "cuda",
        "random_state": 5,
        "verbose": 1,
    }
    own = cls().get_params(deep=False)
    values = {name: value for name, value in values.items() if name in own}
    assert set(values) == set(own)  # a new parameter has to be added here
    for model in (cls(**values), cls().set_params(**values)):
        for name, value in model.get_params(deep=False).items():
            assert value is values[name]
        for name, value in clone(model).get_params(deep=False).items():
            assert repr(value) == repr(values[name])
        assert "learning_rate=0.7" in repr(model) or cls is CostSensitiveTreeClassifier


def test_fit_leaves_parameters_and_data_alone() -> None:
    costs, data, labels = ASYMMETRIC + np.eye(3), X.copy(), Y.copy()
    given = costs.copy()
    weight = np.ones(150)
    model = small(costs).fit(data, labels, weight)
    assert model.cost_matrix is costs
    np.testing.assert_array_equal(costs, given)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weight, 1)
    np.testing.assert_array_equal(model.cost_matrix_, costs)
    assert model.cost_matrix_ is not costs


# Composition.


@BOTH
def test_pipeline_and_cross_validation(model) -> None:
    pipeline = make_pipeline(StandardScaler(), clone(model))
    assert cross_val_score(pipeline, X, NAMES, cv=3).mean() > 0.9
    predicted = cross_val_predict(pipeline, X, NAMES, cv=3)
    assert (predicted == NAMES).mean() > 0.9
    probability = cross_val_predict(pipeline, X, NAMES, cv=3, method="predict_proba")
    np.testing.assert_allclose(probability.sum(axis=1), 1)


def test_standardising_changes_no_prediction() -> None:
    data, y = noisy()
    plain = small(ASYMMETRIC).fit(data, y)
    scaled = make_pipeline(StandardScaler(), small(ASYMMETRIC)).fit(data, y)
    np.testing.assert_array_equal(plain.predict(data), scaled.predict(data))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_over_costs(n_jobs) -> None:
    """Costs are ordinary parameters: arrays, mappings, data frames and None side by side."""
    data, y = noisy(300)
    frame = pd.DataFrame(ASYMMETRIC, index=[0, 1, 2], columns=[0, 1, 2])
    nested = {i: {j: ASYMMETRIC[i, j] for j in range(3)} for i in range(3)}
    forms = [ASYMMETRIC, frame, nested, ASYMMETRIC.tolist(), None]
    search = GridSearchCV(
        small(n_estimators=4),
        {"cost_matrix": forms, "decision": ["margin", "bayes"]},
        scoring=make_scorer(lambda t, p: -ASYMMETRIC[t, p].mean()),
        cv=StratifiedKFold(3),
        n_jobs=n_jobs,
    ).fit(data, y)
    scores = search.cv_results_["mean_test_score"].reshape(5, 2)
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
    np.testing.assert_array_equal(scores[0], scores[3])
    assert scores[0].max() > scores[4].max()  # knowing the costs pays
    np.testing.assert_array_equal(search.best_estimator_.cost_matrix_, ASYMMETRIC)
    assert set(search.predict(data)) <= {0, 1, 2}


def test_nested_parameters_in_grid_search() -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("boost", small())])
    search = GridSearchCV(pipeline, {"boost__max_depth": [1, 2]}, cv=2).fit(X, NAMES)
    assert search.best_params_["boost__max_depth"] in (1, 2)


@BOTH
def test_calibration(model) -> None:
    data, y = noisy()
    for method in ("sigmoid", "isotonic"):
        calibrated = CalibratedClassifierCV(clone(model), method=method, cv=3).fit(data, y)
        np.testing.assert_allclose(calibrated.predict_proba(data).sum(axis=1), 1)
        assert calibrated.score(data, y) > 0.5


def test_calibration_improves_the_log_loss_of_an_overfitted_model() -> None:
    data, y = noisy()
    scorer, parameters = "neg_log_loss", {"n_estimators": 30, "max_depth": 6, "learning_rate": 1.0}
    plain = cross_val_score(small(**parameters), data, y, scoring=scorer, cv=3).mean()
    calibrated = CalibratedClassifierCV(small(**parameters), cv=3)
    assert cross_val_score(calibrated, data, y, scoring=scorer, cv=3).mean() > plain


@BOTH
def test_one_versus_rest(model) -> None:
    wrapped = OneVsRestClassifier(clone(model)).fit(X, NAMES)
    assert wrapped.score(X, NAMES) > 0.9


def test_inspection_and_selection() -> None:
    data, y = noisy()
    model = small().fit(data, y)
    assert permutation_importance(model, data, y, n_repeats=2).importances.shape == (6, 2)
    selected = SelectFromModel(small(), max_features=2, threshold=-np.inf).fit(data, y)
    assert selected.transform(data).shape == (600, 2)


@pytest.mark.parametrize("decision", ["margin", "bayes"])
def test_binary_scores_rank_the_second_class(decision) -> None:
    data, y = noisy(n_classes=2)
    names = np.array(["no", "yes"])[y]
    model = small({"no": {"yes": 1}, "yes": {"no": 5}}, decision=decision).fit(data, names)
    by_decision = roc_auc_score(names, model.decision_function(data))
    by_probability = roc_auc_score(names, model.predict_proba(data)[:, 1])
    assert by_decision == pytest.approx(by_probability)
    assert by_decision > 0.65


def test_missing_class_in_a_fold() -> None:
    """A fold without a class: labelled costs still fit, an array is refused by a clear error."""
    order = np.argsort(Y, kind="stable")
    folds = [(order[:100], order[100:])]  # the training part has two classes
    nested = {i: {j: ASYMMETRIC[i, j] for j in range(3)} for i in range(3)}
    results = cross_validate(
        small(nested), X, Y, cv=folds, error_score="raise", return_estimator=True
    )
    np.testing.assert_array_equal(results["estimator"][0].cost_matrix_, ASYMMETRIC[:2, :2])
    for model in (small(ASYMMETRIC), CostSensitiveTreeClassifier(ASYMMETRIC)):
        with pytest.raises(ValueError, match=r"costs have shape \(3, 3\) where the 2 classes"):
            cross_validate(model, X, Y, cv=folds, error_score="raise")


# Metadata routing.


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("model", [small(), costboost(), CostSensitiveTreeClassifier(max_depth=2)])
def test_weights_are_routed(model) -> None:
    weight = np.random.default_rng(0).uniform(0.1, 1, 150)
    requested = (
        clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    )
    search = GridSearchCV(requested, {"max_depth": [1, 2]}, cv=2)
    search.fit(X, NAMES, sample_weight=weight)
    best = clone(model).set_params(**search.best_params_).fit(X, NAMES, weight)
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))

    pipeline = make_pipeline(MinMaxScaler(), clone(requested))
    pipeline.fit(X, NAMES, sample_weight=weight)
    with pytest.raises(ValueError, match=r"sample_weight.* are passed but are not explicitly set"):
        make_pipeline(MinMaxScaler(), clone(model)).fit(X, NAMES, sample_weight=weight)


@pytest.mark.usefixtures("routing")
def test_validation_data_are_routed_and_transformed() -> None:
    data, y = noisy()
    X_train, y_train, X_val, y_val = data[:400], y[:400], data[400:], y[400:]
    booster = small(n_estimators=30, early_stopping=True, n_iter_no_change=3)
    scaler = StandardScaler().fit(X_train)
    alone = clone(booster).fit(
        scaler.transform(X_train), y_train, X_val=scaler.transform(X_val), y_val=y_val
    )
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            ("boost", clone(booster).set_fit_request(X_val=True, y_val=True)),
        ],
        transform_input=["X_val"],
    ).fit(X_train, y_train, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(pipeline["boost"].validation_score_, alone.validation_score_)
    np.testing.assert_array_equal(pipeline.predict(X_val), alone.predict(scaler.transform(X_val)))


# Data frames.


@BOTH
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_feature_names(model, frame) -> None:
    columns = ["a", "b", "c", "d"]
    data = frame(dict(zip(columns, X.T, strict=True)))
    model = clone(model).fit(data, NAMES)
    np.testing.assert_array_equal(model.feature_names_in_, columns)
    np.testing.assert_array_equal(model.predict(data), clone(model).fit(X, NAMES).predict(X))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict(data[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- e"):
        model.predict(data.rename({"d": "e"}) if frame is pl.DataFrame else data.set_axis(
            ["a", "b", "c", "e"], axis=1
        ))  # fmt: skip
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


@BOTH
def test_number_of_features(model) -> None:
    model = clone(model).fit(X, NAMES)
    for method in ("predict", "predict_proba", "apply"):
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
            getattr(model, method)(X[:, :3])


@pytest.mark.parametrize(
    "labels",
    [
        Y.tolist(),
        NAMES.astype(object),
        Y.astype(np.int8),
        Y * 1000 - 5,
        Y.astype(float),
        Y > 0,
        pd.Series(NAMES),
        pd.Series(NAMES).astype("category"),
        pd.Series(Y, index=np.arange(150)[::-1]),
        pl.Series(NAMES),
    ],
    ids=lambda labels: (
        f"{type(labels).__module__.split('.')[0]}-{getattr(labels, 'dtype', 'list')}"
    ),
)
def test_labels_of_any_type(labels) -> None:
    model = small().fit(X, labels)
    assert (model.predict(X) == np.asarray(labels)).mean() > 0.9
    assert model.predict(X).dtype == model.classes_.dtype


@BOTH
def test_types_of_samples(model) -> None:
    for dtype in (np.float32, np.float64, np.float16, np.int32, bool, object):
        data = (X.mean(axis=0) < X) if dtype is bool else X.astype(dtype)
        model = clone(model).set_params(max_depth=3).fit(data, NAMES)
        assert model.score(data, NAMES) > 0.7, dtype
        expected = model.predict(data)
        np.testing.assert_array_equal(model.predict(np.asfortranarray(data)), expected)
        np.testing.assert_array_equal(model.predict(data[::2]), expected[::2])


# Copies.


@pytest.mark.parametrize(
    "make", [small, lambda c: small(c, estimator=CostSensitiveTreeClassifier(max_depth=2)),
             costboost, CostSensitiveTreeClassifier],
    ids=["booster", "estimator", "costboost", "tree"],
)  # fmt: skip
def test_copies_predict_the_same_bits(make, tmp_path) -> None:
    model = make(labelled_costs(ASYMMETRIC, np.unique(NAMES))).fit(X, NAMES)
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
    ]
    for other in copies:
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert other.get_params().keys() == model.get_params().keys()


# Costs.


@pytest.mark.parametrize(
    "make",
    [
        small,
        lambda costs: small(costs, decision="bayes"),
        costboost,
        lambda costs: CostSensitiveTreeClassifier(costs, max_depth=3),
    ],
    ids=["margin", "bayes", "costboost", "tree"],
)
class TestCosts:
    def test_costly_misses_of_a_class_raise_its_recall(self, make) -> None:
        data, y = noisy()
        plain = make(zero_one_costs(3)).fit(data, y).predict(data)
        for costly in range(3):
            costs = zero_one_costs(3)
            costs[costly] *= 10
            predicted = make(costs).fit(data, y).predict(data)
            assert (predicted == costly).sum() > (plain == costly).sum() + 30
            assert (predicted[y == costly] == costly).mean() > 0.9

    def test_costly_predictions_of_a_class_become_rare(self, make) -> None:
        data, y = noisy()
        plain = make(zero_one_costs(3)).fit(data, y).predict(data)
        for costly in range(3):
            costs = zero_one_costs(3)
            costs[:, costly] *= 10
            predicted = make(costs).fit(data, y).predict(data)
            assert (predicted == costly).sum() < (plain == costly).sum() - 30

    def test_transposed_costs_pull_the_other_way(self, make) -> None:
        """Rows are the truth: a costly row makes its class frequent, a costly column rare."""
        data, y = noisy()
        costs = zero_one_costs(3)
        costs[1] *= 10
        rows, columns = (make(c).fit(data, y).predict(data) for c in (costs, costs.T.copy()))
        assert (rows == 1).sum() > 3 * (columns == 1).sum()

    def test_one_costly_mistake_is_avoided(self, make) -> None:
        data, y = noisy()
        costs = zero_one_costs(3)
        costs[2, 0] = 15
        plain, careful = (make(c).fit(data, y).predict(data) for c in (zero_one_costs(3), costs))
        assert ((y == 2) & (careful == 0)).sum() < 0.5 * ((y == 2) & (plain == 0)).sum()

    def test_order_of_labels(self, make) -> None:
        """An array follows classes_; a labelled form follows its labels, whatever their order."""
        data, y = noisy()
        names = np.array(["c", "a", "b"])[y]  # classes_ is a, b, c: positions 1, 2, 0 of ours
        order = [1, 2, 0]
        frame = pd.DataFrame(ASYMMETRIC, index=list("cab"), columns=list("cab"))
        shuffled = frame.loc[["b", "c", "a"], ["a", "c", "b"]]
        with pytest.warns(UserWarning, match="in alphabetical order of .* 'a', 'b', 'c'") as seen:
            by_array = make(ASYMMETRIC[np.ix_(order, order)]).fit(data, names)
        assert [warning.filename for warning in seen] == [__file__]
        for labelled in (frame, shuffled, frame.T.to_dict()):
            other = make(labelled).fit(data, names)
            np.testing.assert_array_equal(other.cost_matrix_, by_array.cost_matrix_)
            np.testing.assert_array_equal(other.predict(data), by_array.predict(data))

    def test_price_of_being_right_changes_no_decision(self, make) -> None:
        data, y = noisy()
        shifted = ASYMMETRIC + np.array([[4.0], [0], [2]])
        one, other = (make(c).fit(data, y) for c in (ASYMMETRIC, shifted))
        np.testing.assert_array_equal(other.cost_matrix_, shifted)
        np.testing.assert_array_equal(other.regret_matrix_, one.cost_matrix_)
        np.testing.assert_array_equal(one.predict(data), other.predict(data))


# The same answer always.


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_features": 0.5},
        {"subsample": 0.5},
        {"max_features": "sqrt", "subsample": 0.7, "criterion": "entropy"},
        {"binning": "exact", "max_leaf_nodes": 7},
        {"binning": "uniform", "n_refinements": 2},
        {"early_stopping": True, "n_iter_no_change": 3},
    ],
    ids=lambda parameters: "-".join(parameters) or "default",
)
def test_same_bits_for_any_number_of_threads(parameters) -> None:
    data, y = noisy()
    if parameters:
        data = np.where(np.random.default_rng(1).random(data.shape) < 0.2, np.nan, data)
    models = [
        small(ASYMMETRIC, random_state=3, n_jobs=n_jobs, **{"max_depth": 5, **parameters}).fit(
            data, y
        )
        for n_jobs in (1, 2, 3, None)
    ]
    first = models[0]
    for other in models[1:]:
        assert_same_forest(first.forest_, other.forest_)
        np.testing.assert_array_equal(other.estimator_weights_, first.estimator_weights_)
        np.testing.assert_array_equal(other.train_score_, first.train_score_)
        np.testing.assert_array_equal(other.cost_scores(data), first.cost_scores(data))
        np.testing.assert_array_equal(other.predict_proba(data), first.predict_proba(data))


def test_tree_has_the_same_bits_for_any_number_of_threads() -> None:
    data, y = noisy()
    one, two = (
        CostSensitiveTreeClassifier(ASYMMETRIC, max_features=2, random_state=0, n_jobs=n).fit(
            data, y
        )
        for n in (1, 2)
    )
    assert_same_forest(one.forest_, two.forest_)
    np.testing.assert_array_equal(one.predict_proba(data), two.predict_proba(data))


def layouts(X: np.ndarray, folder) -> dict[str, np.ndarray]:
    """The same samples in memory of all kinds."""
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    np.save(folder / "X.npy", X)
    return {
        "C": X,
        "Fortran": np.asfortranarray(X),
        "read-only": frozen,
        "read-only Fortran": np.asfortranarray(frozen),
        "strided": wide[::2, ::3],
        "backwards": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "memory map": np.load(folder / "X.npy", mmap_mode="r"),
    }


KERNELS = [
    binning_kernels.search_bins, binning_kernels.count_steps, growth_kernels.grow,
    growth_kernels.descend, split_kernels.search,
    forest_kernels.accumulate, forest_kernels.leaves,
]  # fmt: skip


@pytest.mark.parametrize("binning", ["quantile", "uniform"])
def test_memory_layout_and_type_do_not_matter(binning, tmp_path) -> None:
    """Nor do they need a further compilation of any kernel, which would take seconds."""
    data, y = noisy()
    data = data.astype(np.float32)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    parameters = {"binning": binning, "subsample": 0.8, "n_jobs": 2}

    def train(X, w=weight):
        return small(ASYMMETRIC, random_state=0, **parameters).fit(X, y, w, X_val=X, y_val=y)

    def answers(model, X):
        methods = ("predict", "cost_scores", "predict_proba", "decision_function", "apply")
        return [getattr(model, method)(X) for method in methods]

    first = train(data)
    expected = answers(first, data)
    known = [len(kernel.signatures) for kernel in KERNELS]
    frozen = weight.copy()
    frozen.flags.writeable = False
    for dtype in (np.float32, np.float64):
        for name, X in layouts(data.astype(dtype), tmp_path).items():
            for mine, theirs in zip(answers(first, X), expected, strict=True):
                np.testing.assert_array_equal(mine, theirs, err_msg=name)
            if binning == "quantile" or dtype == np.float32:  # the type of equal steps is X's
                model = train(X, frozen if "read-only" in name else weight)
                assert_same_forest(model.forest_, first.forest_)
                np.testing.assert_array_equal(model.validation_score_, first.validation_score_)
    assert [len(kernel.signatures) for kernel in KERNELS] == known


def test_seed_matters_only_where_there_is_chance() -> None:
    data, y = noisy()
    plain = [small(random_state=seed).fit(data, y).cost_scores(data) for seed in (0, 1)]
    np.testing.assert_array_equal(*plain)
    drawn = [
        small(random_state=seed, subsample=0.5).fit(data, y).cost_scores(data) for seed in (0, 1)
    ]
    assert (drawn[0] != drawn[1]).any()
    generator = np.random.RandomState(0)
    model = small(random_state=generator, subsample=0.5)
    assert (model.fit(data, y).cost_scores(data) != model.fit(data, y).cost_scores(data)).any()


def test_classes_by_any_name_give_the_same_model() -> None:
    data, y = noisy()
    one = small(ASYMMETRIC).fit(data, y)
    other = small(labelled_costs(ASYMMETRIC, "abc")).fit(data, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(one.cost_scores(data), other.cost_scores(data))


# Classes with an order, and labelled costs in the hands of scikit-learn.

GRADES = np.array(["fair", "good", "very good", "premium", "ideal"])
BY_GRADE = ordinal_costs(5, under=6)  # follows the grades, not the alphabet


def graded(seed: int = 0):
    X, y = make_classification(
        600, 6, n_informative=5, n_redundant=0, n_classes=5, n_clusters_per_class=1, flip_y=0.1,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    return X, y


def pandas_grades(y):
    return pd.Series(pd.Categorical(GRADES[y], [*GRADES, "none"], ordered=True))


def polars_grades(y):
    return pl.Series(GRADES[y], dtype=pl.Enum([*GRADES, "none"]))


@pytest.mark.parametrize(
    ("make", "ordered"),
    [
        (small, pandas_grades),
        (small, polars_grades),
        (CostSensitiveTreeClassifier, polars_grades),
        (partial(MinimumCostClassifier, LogisticRegression()), pandas_grades),
        (
            partial(MinimumCostClassifier, GaussianNB(), calibration="temperature", cv=3),
            polars_grades,
        ),
        (partial(MinimumCostClassifier, GaussianNB(), calibration="sigmoid", cv=3), pandas_grades),
    ],
)
def test_an_ordered_categorical_sets_the_order_of_classes(make, ordered) -> None:
    data, y = graded()
    by_number = make(BY_GRADE).fit(data, y)
    model = make(BY_GRADE).fit(data, ordered(y))
    np.testing.assert_array_equal(model.classes_, GRADES)
    np.testing.assert_array_equal(model.cost_matrix_, BY_GRADE)
    assert (model.predict(data) == GRADES[by_number.predict(data)]).mean() > 0.99
    np.testing.assert_allclose(
        model.predict_proba(data), by_number.predict_proba(data), rtol=1e-4, atol=1e-4
    )
    paid = average_cost(y, by_number.predict(data), BY_GRADE)
    assert average_cost(ordered(y), model.predict(data), BY_GRADE) == pytest.approx(paid, rel=0.02)
    scorer = cost_scorer(BY_GRADE)
    assert scorer(model, data, ordered(y)) == pytest.approx(-paid, rel=0.02)
    some = y != 2
    few = make(ordinal_costs(4, under=6)).fit(data[some], ordered(y[some]))
    np.testing.assert_array_equal(few.classes_, GRADES[[0, 1, 3, 4]])
    first = y == 0
    answers = model.predict(data[first])
    paid = average_cost(GRADES[y[first]], answers, BY_GRADE, labels=GRADES)
    assert average_cost(ordered(y[first]), answers, ordinal_costs(6, under=6)) == paid


def test_ordered_classes_in_validation_files_tables_and_scikit_learn(tmp_path) -> None:
    data, y = graded()
    grades = pandas_grades(y)
    model = small(BY_GRADE, n_estimators=5)
    model.fit(data, grades, X_val=data, y_val=grades)
    np.testing.assert_allclose(model.validation_score_, model.train_score_)
    model.save(tmp_path / "model")
    loaded = badacost.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.classes_, GRADES)
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    by_number = small(BY_GRADE, n_estimators=5).fit(data, y)
    frozen, expected = (
        MinimumCostClassifier(FrozenEstimator(trained), BY_GRADE, calibration="isotonic")
        for trained in (model, by_number)
    )
    np.testing.assert_array_equal(
        frozen.fit(data, grades).predict(data), GRADES[expected.fit(data, y).predict(data)]
    )
    around = MinimumCostClassifier(SAMMEClassifier(n_estimators=5), BY_GRADE).fit(data, grades)
    around.save(tmp_path / "around")
    loaded = badacost.load(tmp_path / "around")
    np.testing.assert_array_equal(loaded.classes_, GRADES)
    np.testing.assert_array_equal(loaded.predict(data), around.predict(data))
    frame = pd.DataFrame(data, columns=list("abcdef")).assign(grade=grades)
    for target in ("grade", grades):
        table = TableClassifier(clone(model), cost_matrix=BY_GRADE)
        table.fit(frame, target)
        np.testing.assert_array_equal(table.classes_, GRADES)
    blind = LogisticRegression().fit(data, grades)
    paid = average_cost(y, LogisticRegression().fit(data, y).predict(data), BY_GRADE)
    assert cost_scorer(BY_GRADE)(blind, data, grades) == pytest.approx(-paid, rel=0.02)
    search = GridSearchCV(model, {"max_depth": [1, 2]}, scoring=cost_scorer(BY_GRADE), cv=2)
    np.testing.assert_array_equal(search.fit(data, grades).classes_, GRADES)


def test_an_array_of_equal_prices_needs_no_order() -> None:
    small(2 * zero_one_costs(3)).fit(X, NAMES)
    with pytest.warns(UserWarning, match="without labels"):
        MinimumCostClassifier(cost_matrix=ASYMMETRIC).fit(X, NAMES)


@pytest.mark.parametrize(
    "around",
    [
        lambda model: CalibratedClassifierCV(model, method="temperature", cv=2),
        lambda model: StackingClassifier([("boost", model)], cv=2),
        lambda model: VotingClassifier([("boost", model)], voting="soft"),
        lambda model: BaggingClassifier(model, 3, random_state=0),
    ],
    ids=["calibrated", "stacking", "voting", "bagging"],
)
@pytest.mark.filterwarnings("ignore:The classes are numbers, but the costs have names")
def test_labelled_costs_in_meta_estimators_that_encode_classes(around) -> None:
    data, y = noisy()
    names = np.array(["mid", "low", "top"])  # sorted: low, mid, top
    code = np.argsort(np.argsort(names))[y]
    codes = [1, 0, 2]
    expected = around(small(labelled_costs(ASYMMETRIC, codes))).fit(data, code)
    model = around(small(labelled_costs(ASYMMETRIC, names))).fit(data, names[y])
    np.testing.assert_array_equal(model.classes_, np.sort(names))
    np.testing.assert_allclose(model.predict_proba(data), expected.predict_proba(data))
    np.testing.assert_array_equal(model.predict(data), np.sort(names)[expected.predict(data)])
