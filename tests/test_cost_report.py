"""Pages about what decisions cost: right figures, whole pages, whatever the model and the names."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from badacost import (
    ABSTAIN,
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    html_page,
)
from badacost.cost_report import write_cost_report
from badacost.cost_report.comparison import N_RESAMPLES, Way, compare, forest, samme
from badacost.cost_report.evidence import Evidence, gather, out_of_fold_cost, positions
from badacost.cost_report.known_rows import count_known
from badacost.cost_report.money import Money, number
from badacost.cost_report.naming import model_name
from badacost.cost_report.sensitivity import shift
from badacost.costs import labelled_costs, minimum_cost_decision
from badacost.costs.decisions import Prices
from badacost.metrics import average_cost, cost_confusion_matrix
from badacost.tabular import TableClassifier
from badacost.tabular.training import COST_BLIND
from tests.detection.test_report import HOSTILE, Page

matplotlib.use("Agg")

COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 30.0], [7.0, 5.0, 0.0]])  # C[truth, prediction]
ALL_HEADINGS = [
    "In short", "What mistakes cost", "What was answered", "Where the money goes",
    "Other ways to decide", "Cost and number of trees", "If a price were different",
    "Can the probabilities be trusted?", "Features", "How this was measured",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _small_figures(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(html_page, "_DPI", 30)
    yield
    plt.close("all")


def noisy(n: int = 240, n_classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += y
    return X, y


def booster(costs: Any = COSTS, **options: Any) -> BAdaCostClassifier:
    options = {"n_estimators": 8, "max_depth": 2, "random_state": 0, **options}
    return BAdaCostClassifier(costs, **options)


def written(tmp_path: Path, model: Any, X: Any, y: Any, **options: Any) -> Page:
    path = tmp_path / "page.html"
    open_before = plt.get_fignums()
    write_cost_report(model, path, X, y, **options)
    assert plt.get_fignums() == open_before, "figures are closed"
    assert list(tmp_path.iterdir()) == [path]
    return Page(path.read_text(encoding="utf-8"))


def text_of(page: Page) -> str:
    return " ".join(page.texts)


def test_figures_are_those_of_the_metrics(tmp_path) -> None:
    (X, y), (X_test, y_test) = noisy(seed=0), noisy(seed=1)
    model = booster().fit(X, y)
    steps: list[tuple[int, int]] = []
    page = written(
        tmp_path, model, X_test, y_test, train=(X, y), currency="EUR", title="Grades",
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert steps == [(done, len(steps)) for done in range(1, len(steps) + 1)]
    assert page.headings == ALL_HEADINGS
    assert len(page.pictures) == 5
    assert not {"predicted", "prediction"} & {*text_of(page).split()}, "truth and answer"
    answers = model.predict(X_test)
    cost = average_cost(y_test, answers, COSTS)
    constant = min(average_cost(y_test, np.full_like(y_test, k), COSTS) for k in range(3))
    blind = average_cost(y_test, model.predict_proba(X_test).argmax(axis=1), COSTS)
    money = Money("EUR", constant)
    text = text_of(page)
    assert f"240 decisions of the model cost {money.rate(cost)} each" in text
    assert f"The cheapest constant answer would have cost {money.rate(constant)} each" in text
    assert f"finds most probable would have cost {money.rate(blind)} each" in text
    name = "the model (BAdaCost, margin rule)"
    assert f"What 240 decisions of {name} cost" in text
    assert page.row(name)[0] == money.rate(cost)
    assert page.row(name)[2] == money.amount(cost * 240)
    assert page.row(name)[3] == f"{(answers != y_test).mean():.1%}"
    least = minimum_cost_decision(model.predict_proba(X_test), COSTS)
    least_cost = average_cost(y_test, least, COSTS)
    assert page.row("minimum expected cost by its probabilities")[0] == money.rate(least_cost)
    assert len(page.row(COST_BLIND)) == len(page.row("SAMME, then minimum expected cost")) == 6
    assert len(page.row("random forest, minimum expected cost")) == 6
    assert "The most expensive mistake is to answer “2” where “1” is true: 30 EUR." in text


def test_asking_a_person(tmp_path) -> None:
    (X, y), (X_test, y_test) = noisy(seed=0), noisy(seed=1)
    model = booster().fit(X, y)
    page = written(tmp_path, model, X_test, y_test, abstain=2.0, currency="EUR")
    assert page.headings == [*ALL_HEADINGS[:5], "If a person is asked", *ALL_HEADINGS[5:]]
    head = ["price of asking", "asked", "average cost", "saved by asking"]
    first = page.rows.index(head) + 1
    constant = min(average_cost(y_test, np.full_like(y_test, k), COSTS) for k in range(3))
    money = Money("EUR", constant)
    never = average_cost(y_test, model.decide(X_test), COSTS)
    for row, price in zip(page.rows[first : first + 5], (0.5, 1.0, 2.0, 4.0, 8.0), strict=True):
        decided = model.decide(X_test, abstain=price)
        cost = average_cost(y_test, decided, COSTS, abstain=price)
        share = (decided == ABSTAIN).mean()
        assert row == [
            money.amount(price), f"{share:.1%}", money.rate(cost), money.rate(never - cost)
        ]  # fmt: skip
    votes = AdaC2M1Classifier(COSTS, n_estimators=3).fit(X, y)
    text = text_of(written(tmp_path, votes, X_test, y_test, abstain=2.0))
    assert "it cannot tell when to ask a person" in text
    with pytest.raises(ValueError, match="abstain must be a number at least 0 or None; got -1"):
        gather(model, X, y, abstain=-1)


def test_prices_of_samples(tmp_path) -> None:
    (X, y), (X_test, y_test) = noisy(seed=0), noisy(seed=1)
    amounts = np.random.default_rng(0).uniform(1, 50, (len(y_test), 3))
    model = booster().fit(X, y)
    options: dict[str, Any] = {"sample_cost": amounts, "train": (X, y)}
    page = written(tmp_path, model, X_test, y_test, abstain=5, **options)
    text = text_of(page)
    cost = average_cost(y_test, model.decide(X_test, sample_cost=amounts), sample_cost=amounts)
    constant = min(average_cost(y_test, np.full(240, k), sample_cost=amounts) for k in range(3))
    assert f"240 decisions of the model cost {Money(None, constant).rate(cost)} each" in text
    assert "Prices differ from sample to sample" in text
    assert "Cost and number of trees" not in page.headings
    rival = RandomForestClassifier(200, random_state=0).fit(X, y)
    decided = Prices(amounts, True).expected(rival.predict_proba(X_test)).argmin(axis=1)
    forest_cost = average_cost(y_test, decided, sample_cost=amounts)
    row = page.row("random forest, minimum expected cost")
    assert row[0] == Money(None, constant).rate(forest_cost)
    with pytest.raises(ValueError, match="leave one of them out"):
        gather(model, X_test, y_test, COSTS, sample_cost=amounts)


def test_most_expensive_mistakes_come_first(tmp_path) -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    page = written(tmp_path, model, X, y)
    paid = cost_confusion_matrix(y, model.predict(X), COSTS)
    head = ["truth", "answer", "count", "price", "cost in all", "share", ""]
    first = page.rows[page.rows.index(head) + 1]
    i, j = np.unravel_index(paid.argmax(), paid.shape)
    assert first[:2] == [str(i), str(j)]
    assert first[3:6] == [
        number(COSTS[i, j]), number(paid[i, j]), f"{paid[i, j] / paid.sum():.1%}",
    ]  # fmt: skip
    by_class = page.rows[page.rows.index(["truth", "samples", "right", "cost each", "cost in all",
                                          "share", ""]) + 1]  # fmt: skip
    assert by_class[0] == str(paid.sum(axis=1).argmax())


def test_price_of_being_right_is_charged(tmp_path) -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    page = written(tmp_path, model, X, y, costs=COSTS + 100.0)
    cost = 100.0 + average_cost(y, model.predict(X), COSTS)
    assert f"decisions of the model cost {cost:,.0f} each" in text_of(page)
    assert any(row[1:2] == ["1 (right)"] for row in page.rows)
    assert "not the costs that the model was made for" not in text_of(page)
    assert "not the costs that the model was made for" in text_of(
        written(tmp_path, model, X, y, costs=COSTS.T)
    )


def evidence_of(truth: np.ndarray, answers: np.ndarray) -> Evidence:
    return Evidence(None, None, truth, answers, Prices(COSTS), None, None, None)


def test_intervals_are_those_of_drawing_samples_again() -> None:
    rng = np.random.default_rng(5)
    truth, model, other = rng.integers(3, size=(3, 150))
    evidence = evidence_of(truth, model)
    ways = [Way("the model", model, "model"), Way("other", other)]
    compared = compare(evidence, ways, 0)
    assert compared.resampled.shape == (N_RESAMPLES, 2)
    paid = np.stack([COSTS[truth, model], COSTS[truth, other]], axis=1)
    np.testing.assert_allclose(compared.averages, paid.mean(axis=0))
    drawn = paid[rng.integers(150, size=(4000, 150))].mean(axis=1)
    spread = drawn.std(axis=0)
    expected = np.percentile(drawn, [2.5, 97.5], axis=0).T
    assert (np.abs(compared.intervals - expected) < 0.25 * spread[:, None]).all()
    saved = np.percentile(drawn[:, 1] - drawn[:, 0], [2.5, 97.5])
    np.testing.assert_allclose(compared.saved_intervals[1], saved, atol=0.35 * spread.max())
    again = compare(evidence, ways, 0).resampled
    np.testing.assert_array_equal(again, compared.resampled)
    assert (compare(evidence, ways, 1).resampled != again).any()


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_sensitivity_is_that_of_deciding_anew(factor) -> None:
    rng = np.random.default_rng(1)
    beliefs = rng.dirichlet(np.ones(3), size=400)
    truth = rng.integers(3, size=400)
    shifted = shift(beliefs, COSTS, truth, factor)
    before = minimum_cost_decision(beliefs, COSTS)
    for i, j in np.ndindex(3, 3):
        costs = COSTS.copy()
        costs[i, j] *= factor
        after = minimum_cost_decision(beliefs, costs)
        assert shifted.changed[i, j] == (after != before).mean()
        assert shifted.mistakes[i, j] == ((after == j) & (truth == i)).sum()
    assert (shifted.changed > 0).sum() == 6, "the diagonal is zero"


ONE_WAY = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [3.0, 5.0, 0.0]])  # gives no probabilities
CURVE, TRUST = "Cost and number of trees", "Can the probabilities be trusted?"
MODELS = {
    "no costs of its own": (GaussianNB(), COSTS, {CURVE, "Features"}),
    "minimum cost": (
        MinimumCostClassifier(RandomForestClassifier(10, random_state=0), COSTS), None, {CURVE},
    ),
    "tree": (CostSensitiveTreeClassifier(COSTS, max_depth=2), None, {CURVE}),
    "cost-blind": (PIBoostClassifier(n_estimators=3), COSTS, set()),
    "no probabilities": (AdaC2M1Classifier(COSTS, n_estimators=3), COSTS, {TRUST}),
    "one-way costs": (booster(ONE_WAY), None, {TRUST}),
    "pipeline": (make_pipeline(StandardScaler(), booster()), None, set()),
    "other weak learners": (booster(estimator=GaussianNB()), None, {"Features"}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_any_classifier(tmp_path, name) -> None:
    model, costs, missing = MODELS[name]
    model = clone(model).fit(*noisy())
    X, y = noisy(seed=2)
    page = written(tmp_path, model, X, y, costs=costs)
    assert set(ALL_HEADINGS) - set(page.headings) == missing
    prices = ONE_WAY if name == "one-way costs" else COSTS
    cost = average_cost(y, model.predict(X), prices)
    row = page.row(model_name(model[-1] if name == "pipeline" else model))
    assert float(row[0]) == pytest.approx(cost, abs=0.006)


@pytest.mark.parametrize("decision", ["own", "bayes"])
def test_tables(tmp_path, decision) -> None:
    X, y = noisy()
    names = np.array(["mild", "medium", "severe"])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        ward=np.where(X[:, 0] > 1, "north", "south"), grade=names[y]
    )
    costs = {"mild": {"medium": 1, "severe": 4}, "medium": {"mild": 2, "severe": 30},
             "severe": {"mild": 7, "medium": 5}}  # fmt: skip
    model = TableClassifier(booster(None), cost_matrix=costs, decision=decision)
    model.fit(frame, "grade")
    train = (frame, frame["grade"]) if decision == "bayes" else None
    page = written(tmp_path, model, frame, frame["grade"], train=train)
    assert page.headings == ALL_HEADINGS
    answers = model.predict(frame)
    rule = "bayes" if decision == "bayes" else "margin"
    assert float(page.row(f"the model (BAdaCost, {rule} rule)")[0]) == pytest.approx(
        average_cost(frame["grade"], answers, costs), rel=0.01
    )
    assert any(row[0] == COST_BLIND for row in page.rows) == (decision == "bayes")
    assert page.row("decision") == [repr(decision)]


def test_training_without_a_class() -> None:
    X, y = noisy()
    some = y < 2
    evidence = gather(booster().fit(X, y), X, y, train=(X[some], y[some]))
    assert all({*way.answers} <= {0, 1} for way in samme(evidence, 0, None))
    answers = forest(evidence, 0, None).answers
    assert {*answers} <= {0, 1}
    rival = MinimumCostClassifier(RandomForestClassifier(200, random_state=0), COSTS[:2, :2])
    np.testing.assert_array_equal(answers, rival.fit(X[some], y[some]).predict(X))


def test_many_classes_with_long_names(tmp_path) -> None:
    X, y = noisy(260, 26)
    names = np.array(
        [f"{letter} is the name of {'a' * 60} {letter}" for letter in string.ascii_uppercase]
    )
    costs = np.random.default_rng(0).integers(1, 9, (26, 26)) * (1.0 - np.eye(26))
    model = booster(labelled_costs(costs, names), n_estimators=2).fit(X, names[y])
    page = written(tmp_path, model, X, names[y])
    assert page.headings == ALL_HEADINGS
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'title="{names[0]}"' in text
    assert max(len(cell) for row in page.rows for cell in row) <= 60
    assert any(row[0].endswith("other kinds") for row in page.rows)


def test_hostile_names(tmp_path) -> None:
    X, y = noisy()
    names = np.array([HOSTILE, "$x^$", "</style><b>\x00"])
    model = booster(labelled_costs(COSTS, names)).fit(X, names[y])
    page = written(
        tmp_path, model, X, names[y], title=HOSTILE, currency="<$i$>",
        feature_names=[HOSTILE, "$\\frac$", "", "b"],
    )  # fmt: skip
    assert not {"script", "b"} & {*page.tags}, "they are text"
    assert HOSTILE in page.texts


def test_perfect_decisions(tmp_path) -> None:
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, y]
    page = written(tmp_path, booster().fit(X, y), X, y)
    text = text_of(page)
    assert "No decision cost anything." in text
    assert "Decisions that cost anything: 0. That is too few" in text


def test_what_is_cheaper_is_said(tmp_path) -> None:
    X, y = noisy(600)
    wrong = booster(COSTS.T).fit(X, y)
    page = written(tmp_path, wrong, X, y, costs=COSTS)
    text = text_of(page)
    assert "The cheapest of the 4 ways is minimum expected cost by its probabilities, at" in text
    assert " more a decision (" in text


def test_the_next_way_is_named_if_the_model_is_cheapest(tmp_path) -> None:
    X, y = noisy(600)
    X[:, 0] += y
    model = booster(n_estimators=40, decision="bayes").fit(X, y)
    page = written(tmp_path, model, X, y)
    assert (
        "None of the 2 other ways is cheaper; the next is the most probable class of the same "
        "model, at " in text_of(page)
    )
    assert not any(row[0].startswith("least expected") for row in page.rows), "that is the model"


def test_savings_that_may_be_chance_are_grey(tmp_path) -> None:
    X, y = noisy(seed=1)
    equal = 1.0 - np.eye(3)
    model = booster(equal, decision="bayes").fit(*noisy())
    written(tmp_path, model, X, y)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<div class="doubtful"><dt>saved against being cost-blind</dt>' in text
    assert "<div><dt>saved against the best constant</dt>" in text, "that is clear"
    assert "the saving may be chance: 0.000 to 0.000 each" in text


def remark_of(page: Page) -> list[str]:
    return [text for text in page.texts if "decisions look cheap" in text]


def test_rows_of_the_training_are_noticed(tmp_path) -> None:
    (X, y), other = noisy(), noisy(seed=1)
    model = booster().fit(X, y)
    notes: list[str] = []
    page = written(tmp_path, model, X, y, train=(X, y), note=notes.append)
    assert notes == ["the model was fitted to 240 of these 240 rows: on rows that it knows, "
                     "decisions look cheap."]  # fmt: skip
    assert remark_of(page) == [f"T{notes[0][1:]}"]
    assert not remark_of(written(tmp_path, model, *other, train=(X, y), note=notes.append))
    assert len(notes) == 1
    table = pd.DataFrame(X, columns=list("abcd"))
    fitted = TableClassifier(booster()).fit(table, y)
    assert "fitted to as many rows" in remark_of(written(tmp_path, fitted, table, y))[0]
    assert not remark_of(written(tmp_path, fitted, table[1:], y[1:]))


@given(st.integers(0, 20), st.integers(0, 3))
def test_known_rows_are_counted(n_known, n_changed) -> None:
    X, y = noisy(40)
    X[3, 1] = np.nan
    rows, classes = X[:n_known].copy(), y[:n_known].copy()
    classes[:n_changed] = (classes[:n_changed] + 1) % 3
    assert count_known(rows, classes, X, y) == max(n_known - n_changed, 0)


def test_known_rows_of_text_are_not_counted() -> None:
    classes = np.array([0])
    assert count_known([["a"]], classes, [["a"]], classes) is None


def test_rival_has_a_depth_of_its_own() -> None:
    X, y = noisy()
    evidence = gather(booster(max_depth=7).fit(X, y), *noisy(seed=1), train=(X, y))
    blind, sighted = samme(evidence, 0, None)
    assert "trees of depth 1: of 1, 2, 4, 7 the cheapest in 3-fold" in blind.remark
    rival = SAMMEClassifier(n_estimators=8, max_depth=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(blind.answers, rival.predict(evidence.features))
    least = minimum_cost_decision(rival.predict_proba(evidence.features), COSTS)
    np.testing.assert_array_equal(sighted.answers, least)
    unlimited = gather(booster(max_depth=None, max_leaf_nodes=4).fit(X, y), X, y, train=(X, y))
    assert "of 1, 2, 4, any the" in samme(unlimited, 0, None)[0].remark
    other = gather(booster(estimator=GaussianNB()).fit(X, y), X, y, train=(X, y))
    assert samme(other, 0, None)[0].remark == "SAMME has the settings of the model."
    few = gather(booster(max_depth=3).fit(X, y), X, y, train=(X[:4], np.array([0, 1, 1, 1])))
    assert "depth 3" in samme(few, 0, None)[0].remark


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (BAdaCostClassifier(), "BAdaCost, margin rule"),
        (TableClassifier(BAdaCostClassifier(decision="bayes")), "BAdaCost, bayes rule"),
        (TableClassifier(SAMMEClassifier()), "SAMME"),
        (MinimumCostClassifier(GaussianNB(), COSTS), "GaussianNB, bayes rule"),
        (TableClassifier(MinimumCostClassifier(SAMMEClassifier())), "SAMME, bayes rule"),
        (TableClassifier(CostBoostClassifier()), "CostBoost"),
    ],
)
def test_names_of_models(model, name) -> None:
    assert model_name(model) == f"the model ({name})"


def test_costboost_out_of_fold(tmp_path) -> None:
    X, y = noisy()
    model = CostBoostClassifier(COSTS, n_estimators=5, random_state=0).fit(X, y)
    page = text_of(written(tmp_path, model, X, y))
    said = "Out of fold, the training expected "
    assert f"{said}{model.oof_cost_:.2f}" in page
    assert said not in text_of(written(tmp_path, model, X, y, costs=2 * np.asarray(COSTS)))
    assert out_of_fold_cost(model, model.cost_matrix_) == model.oof_cost_
    assert out_of_fold_cost(booster().fit(X, y), model.cost_matrix_) is None
    charged = np.asarray(COSTS) + 2.0  # being right costs 2, and so does every mistake besides
    costlier = CostBoostClassifier(charged, n_estimators=5, random_state=0).fit(X, y)
    assert costlier.oof_cost_ == pytest.approx(model.oof_cost_ + 2)
    assert out_of_fold_cost(costlier, charged) == costlier.oof_cost_
    assert out_of_fold_cost(costlier, costlier.cost_matrix_) is None
    rival = samme(gather(model, X, y, train=(X, y)), 0, None)[0]
    assert rival.remark.startswith("SAMME has default settings, but trees of depth")


def test_same_page_again(tmp_path) -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    pages = []
    for _ in range(2):
        written(tmp_path, model, X, y, random_state=3)
        pages.append((tmp_path / "page.html").read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "model"}, TypeError, "give a fitted classifier"),
        ({"model": BAdaCostClassifier()}, TypeError, "without classes_"),
        ({"model": GaussianNB().fit(*noisy())}, ValueError, "has no costs of its own"),
        ({"X": np.empty((0, 4)), "y": []}, ValueError, "at least one row"),
        ({"y": [0, 1]}, ValueError, "X has 240 rows and y has 2"),
        ({"y": ["a"] * 240}, ValueError, r"y has classes that the model does not know \('a'\)"),
        ({"y": [None, *"abcdefg"] * 30}, ValueError, "does not know"),
        ({"y": np.zeros((240, 2))}, ValueError, "column of labels"),
        ({"costs": [[0, 1], [1, 0]]}, ValueError, "shape"),
        ({"train": noisy()[0]}, ValueError, "tuple of X and y"),
        ({"train": (noisy()[0], ["a"] * 240)}, ValueError, "y of train has classes"),
        ({"title": 3}, TypeError, "title must be a str"),
        ({"currency": "a" * 13}, ValueError, "at most 12 letters"),
    ],
)
def test_mistakes_leave_the_old_page(tmp_path, changes, error, message) -> None:
    X, y = noisy()
    arguments = {"model": booster().fit(X, y), "X": X, "y": y, **changes}
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(error, match=message) as raised:
        write_cost_report(path=path, **arguments)
    assert "\n" not in str(raised.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_gathered_classes_are_positions() -> None:
    X, y = noisy()
    names = np.array(["z", "b", "k"])
    evidence = gather(booster(None).fit(X, names[y]), X, names[y])
    assert evidence.labels == ["b", "k", "z"]
    np.testing.assert_array_equal(evidence.truth, np.array([2, 0, 1])[y])
    assert positions([1.0, 2], [1, 2], "y").tolist() == [0, 1]


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.sampled_from([None, "€", "EUR"]))
def test_any_amount(value, typical, currency) -> None:
    money = Money(currency, typical)
    for text in (money.amount(value), money.rate(value), money.between([value, value])):
        assert len(text) < 80
        assert not text.startswith("--")


@given(st.text(), st.integers(4, 30))
def test_shortened(text, max_length) -> None:
    short = html_page.shorten(text, max_length)
    assert len(short) <= max_length
    assert "\n" not in short
    if len(text) <= max_length and text == " ".join(text.split()):
        assert short == text


@settings(max_examples=50)
@given(st.lists(st.text(), min_size=1, max_size=4), st.floats())
def test_any_text_in_tables(labels, value) -> None:
    n = len(labels)
    shades, texts = [[value] * n] * n, [labels] * n
    section = html_page.heat_table(shades, texts, labels, remarks=texts)
    section += html_page.table(texts, labels, max_length=5, shares=[value] * n)
    section += html_page.key_figures([(label, label, label) for label in labels])
    whole = html_page.page("title", "lead", {"section": section})
    page = Page(whole.encode("utf-8", errors="replace").decode("utf-8"))
    assert page.tags.count("tr") == 2 + n + 1 + n
    assert set(page.tags) <= {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "p", "nav", "a", "main",
        "section", "h2", "div", "table", "thead", "tbody", "tr", "th", "td", "footer", "dl", "dt",
        "dd", "small", "i",
    }  # fmt: skip
