"""What a report is about: checked, encoded once, asked once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from badacost import (
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    MinimumCostClassifier,
)
from badacost.cost_report import CostReport
from badacost.cost_report.evidence import gather, out_of_fold_cost
from badacost.costs import labelled_costs
from badacost.metrics import cost_confusion_matrix
from badacost.tabular import TableClassifier
from badacost.tabular.encoder import TableEncoder
from tests.cost_report.samples import COSTS, ONE_WAY, booster, noisy


def wards() -> pd.DataFrame:
    X, y = noisy()
    return pd.DataFrame(X, columns=list("abcd")).assign(
        ward=np.where(X[:, 0] > 1, "north", "south"), grade=np.array(["mild", "bad", "worst"])[y]
    )


def test_classes_are_positions_in_the_order_of_the_model() -> None:
    X, y = noisy()
    names = np.array(["z", "b", "k"])
    evidence = gather(booster(None).fit(X, names[y]), X, names[y])
    assert evidence.labels == ("b", "k", "z")
    np.testing.assert_array_equal(evidence.truth, np.array([2, 0, 1])[y])


def test_charged_is_what_the_metrics_charge() -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    costs = COSTS + np.array([[1.0], [2.0], [3.0]])  # being right has a price
    evidence = gather(model, X, y, costs=costs)
    charged = evidence.confusion(evidence.answers, evidence.incurred)
    expected = cost_confusion_matrix(y, model.predict(X), costs)
    np.testing.assert_allclose(charged, expected, rtol=1e-12)


@pytest.mark.parametrize("decision", ["own", "bayes"])
def test_a_table_is_encoded_once(monkeypatch, decision) -> None:
    frame = wards()
    costs = labelled_costs(COSTS, ["bad", "mild", "worst"])
    model = TableClassifier(booster(None), cost_matrix=costs, decision=decision)
    model.fit(frame, "grade")
    expected = model.predict(frame), model.predict_proba(frame), [*model.staged_predict(frame)]
    encoded = []
    transform = TableEncoder.transform

    def counted(self, X):
        encoded.append(len(X))
        return transform(self, X)

    monkeypatch.setattr(TableEncoder, "transform", counted)
    train = (frame[:200], frame["grade"][:200])
    evidence = gather(model, frame, frame["grade"], train=train)
    answers, probabilities, staged = expected
    np.testing.assert_array_equal(model.classes_[evidence.answers], answers)
    np.testing.assert_array_equal(evidence.probabilities, probabilities)
    for found, wanted in zip(evidence.staged_answers(evidence.features), staged, strict=True):
        np.testing.assert_array_equal(model.classes_[found], wanted)
    CostReport.from_estimator(model, frame, frame["grade"], train=train)
    assert encoded == [240, 200] * 2, "once for each report"


def test_the_last_step_of_a_pipeline_is_asked() -> None:
    X, y = noisy()
    model = make_pipeline(StandardScaler(), booster()).fit(X, y)
    evidence = gather(model, X, y)
    assert evidence.model is evidence.estimator is model[-1]
    np.testing.assert_array_equal(evidence.answers, model.predict(X))
    assert [*evidence.feature_names] == ["x0", "x1", "x2", "x3"]


def test_sparse_samples() -> None:
    X, y = noisy()
    model = LinearSVC(random_state=0).fit(csr_array(X), y)
    evidence = gather(model, csr_array(X), y, costs=COSTS)
    assert evidence.probabilities is None
    np.testing.assert_array_equal(evidence.answers, model.predict(X))


def test_models_without_probabilities_or_rounds() -> None:
    X, y = noisy()
    assert gather(booster(ONE_WAY).fit(X, y), X, y).probabilities is None
    forest = MinimumCostClassifier(RandomForestClassifier(5, random_state=0), COSTS).fit(X, y)
    assert gather(forest, X, y).staged_answers(X) is None


def test_prices_of_samples_decide() -> None:
    X, y = noisy()
    amounts = np.random.default_rng(0).uniform(1, 50, (len(y), 3))
    model = booster().fit(X, y)
    evidence = gather(model, X, y, sample_cost=amounts)
    np.testing.assert_array_equal(evidence.answers, model.decide(X, sample_cost=amounts))
    with pytest.raises(ValueError, match="leave one of them out"):
        gather(model, X, y, costs=COSTS, sample_cost=amounts)


def test_out_of_fold_cost_under_the_same_costs_only() -> None:
    X, y = noisy()
    model = CostBoostClassifier(COSTS, n_estimators=5, random_state=0).fit(X, y)
    assert out_of_fold_cost(model, model.cost_matrix_) == model.oof_cost_
    assert out_of_fold_cost(model, 2 * model.cost_matrix_) is None
    assert out_of_fold_cost(booster().fit(X, y), model.cost_matrix_) is None
    charged = COSTS + 2.0  # being right costs 2, and so does every mistake besides
    costlier = CostBoostClassifier(charged, n_estimators=5, random_state=0).fit(X, y)
    assert costlier.oof_cost_ == pytest.approx(model.oof_cost_ + 2)
    assert out_of_fold_cost(costlier, charged) == costlier.oof_cost_
    assert out_of_fold_cost(costlier, costlier.regret_matrix_) is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "model"}, TypeError, "give a fitted classifier"),
        ({"model": BAdaCostClassifier()}, TypeError, "without classes_"),
        ({"model": GaussianNB().fit(*noisy())}, ValueError, "has no costs of its own"),
        ({"X": np.empty((0, 4)), "y": []}, ValueError, "at least one row"),
        ({"y": [0, 1]}, ValueError, "X has 240 rows and y has 2"),
        ({"y": ["a"] * 240}, ValueError, r"y has labels that are not among the classes \('a'\)"),
        ({"y": np.zeros((240, 2))}, ValueError, "column of labels"),
        ({"costs": [[0, 1], [1, 0]]}, ValueError, "shape"),
        ({"train": noisy()[0]}, ValueError, "tuple of X and y"),
        ({"train": (noisy()[0], ["a"] * 240)}, ValueError, "y of train has labels"),
        ({"abstain": -1}, ValueError, "abstain must be a number at least 0 or None; got -1"),
        ({"feature_names": ["a"]}, ValueError, "feature_names holds 1 names: give 4"),
    ],
)
def test_mistakes(changes, error, message) -> None:
    X, y = noisy()
    arguments = {"model": booster().fit(X, y), "X": X, "y": y, **changes}
    with pytest.raises(error, match=message) as raised:
        CostReport.from_estimator(**arguments)
    assert "\n" not in str(raised.value)


def test_asking_needs_probabilities() -> None:
    X, y = noisy()
    model = AdaC2M1Classifier(COSTS, n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="which this AdaC2M1Classifier does not have"):
        CostReport.from_estimator(model, X, y, abstain=2.0)
