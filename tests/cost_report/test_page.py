"""The page: whole, escaped, with a legend, without words that flatter."""

from __future__ import annotations

import html
import re
import string
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from badacost.cost_report import CostReport
from badacost.cost_report.money import Money, number
from badacost.cost_report.parts import AtFit, RivalAtFit
from badacost.costs import labelled_costs
from badacost.metrics import average_cost, cost_confusion_matrix
from tests.cost_report.samples import COSTS, booster, noisy
from tests.pages import HOSTILE, Page

TIMES = "\N{MULTIPLICATION SIGN}"
HEADINGS = [
    "In short", "What mistakes cost", "What was answered", "Where the money goes",
    "Other ways to decide", "If a person is asked", "Cost and number of trees",
    "If a price were different", "Can the probabilities be trusted?", "Features",
    "How this was measured",
]  # fmt: skip


def report_of(model: Any, X: Any, y: Any, **options: Any) -> CostReport:
    return CostReport.from_estimator(model, X, y, **options)


def text_of(page: Page) -> str:
    return " ".join(" ".join(page.texts).split())


@pytest.fixture(scope="module")
def report() -> CostReport:
    (X, y), (X_test, y_test) = noisy(seed=0), noisy(seed=1)
    return report_of(booster().fit(X, y), X_test, y_test, train=(X, y), abstain=2.0)


def test_figures_are_those_of_the_report(report) -> None:
    page = Page(report.to_html(title="Grades", currency="EUR"))
    assert page.headings == HEADINGS
    assert not page.pictures, "charts are drawn by the page"
    money = Money("EUR", report.constant.average_cost)
    text = text_of(page)
    assert text.index("Cheaper than the model: ") < text.index("In short")
    assert "The most expensive mistake is predicting “2” where “1” is true: 30 EUR." in text
    for way in report.ways:
        row = page.row(way.name)
        assert row[0] == money.rate(way.average_cost)
        assert row[2] == money.amount(way.average_cost * 240)
        assert row[3] == f"{way.error_rate:.1%}"
    head = ["price of asking", "asked", "average cost", "saved by asking"]
    first = page.rows.index(head) + 1
    for row, at in zip(page.rows[first : first + 5], report.asking.at_prices, strict=True):
        assert row == [
            money.amount(at.price), f"{at.share_asked:.1%}", money.rate(at.average_cost),
            money.rate(report.asking.never - at.average_cost),
        ]  # fmt: skip
    assert page.row("n_estimators") == ["8"]


def test_no_word_flatters(report) -> None:
    """Only what was trained without costs is called cost-blind, and only that is compared first."""
    for shown in (report, replace(report, ways=report.ways[:4])):
        page = Page(shown.to_html())
        rivals = [rival.name for rival in shown.rivals]
        for said in page.texts:
            if "cost-blind" in said:
                assert any(name in said for name in rivals)
        heads = re.findall("<dt>(.*?)</dt>", shown.to_html())
        assert len(heads) == 4 if rivals else 3
        assert not any("same model" in head or "most likely" in head for head in heads)
        assert "being cost-blind" not in text_of(page)
        assert "None of the" not in text_of(page)
    assert "trained without costs was compared under these costs" in text_of(page)


def test_figures_of_the_fit(report) -> None:
    rivals = (RivalAtFit("a rival", 1.0, False), RivalAtFit("another", 3.0, True))
    at_fit = AtFit("50 rows, held out", 1.5, rivals)
    page = Page(replace(report, ways=report.ways[:4], at_fit=at_fit).to_html())
    text = text_of(page)
    assert "more than a rival +50%" in text
    assert "measured when the model was fitted: 50 rows, held out; may be chance" in text
    assert page.row("a rival") == ["1.00", "-0.50", "may be chance"]
    assert page.row("another") == ["3.00", "1.50", ""]


def test_the_matrix_of_money_has_a_legend(report) -> None:
    page = Page(report.to_html(currency="EUR"))
    i, j = np.unravel_index(report.charged.argmax(), report.charged.shape)
    start = page.texts.index("What was answered", page.texts.index("In short") + 12)
    cells = page.texts[start:]
    told = cells.index(number(report.charged[i, j]))
    assert cells[told + 1] == f"{report.counts[i, j]} {TIMES} {number(COSTS[i, j])}"
    assert cells.index("sum") < cells.index(f"count {TIMES} price")
    text = text_of(page)
    assert "above: sum, what these answers cost in all, in EUR" in text
    assert f"Below: count, how often the answer was given, {TIMES} price" in text


def test_classes_keep_their_order_and_mistakes_are_ranked(report) -> None:
    page = Page(report.to_html())
    head = ["truth", "samples", "right", "cost each", "cost in all", "share", ""]
    first = page.rows.index(head) + 1
    assert [row[0] for row in page.rows[first : first + 3]] == ["0", "1", "2"]
    head = ["truth", "answer", "count", "price", "cost in all", "share", ""]
    row = page.rows[page.rows.index(head) + 1]
    i, j = np.unravel_index(report.charged.argmax(), report.charged.shape)
    share = report.charged[i, j] / report.charged.sum()
    assert row[:2] == [str(i), str(j)]
    assert row[3:6] == [number(COSTS[i, j]), number(report.charged[i, j]), f"{share:.1%}"]


def test_being_right_can_have_a_price() -> None:
    X, y = noisy()
    model = booster().fit(X, y)
    charged = report_of(model, X, y, costs=COSTS + 100.0)
    cost = 100.0 + average_cost(y, model.predict(X), COSTS)
    page = Page(charged.to_html())
    assert f"240 decisions of the model cost {cost:,.0f} each" in text_of(page)
    assert any(row[1:2] == ["1 (right)"] for row in page.rows)
    other = "These are not the costs that the model was fitted under."
    assert other not in text_of(page)
    assert other in text_of(Page(report_of(model, X, y, costs=COSTS.T).to_html()))


def test_savings_that_may_be_chance_are_grey() -> None:
    X, y = noisy(seed=1)
    equal = 1.0 - np.eye(3)
    report = report_of(booster(equal, decision="bayes").fit(*noisy()), X, y, train=noisy())
    text = report.to_html()
    assert '<div class="doubtful"><dt>' in text
    assert "<div><dt>saved against the best constant</dt>" in text, "that is clear"
    assert "may be chance: the model saves" in text


@pytest.mark.parametrize("n_classes", [3, 26, 30])
def test_many_classes_with_long_names(n_classes) -> None:
    X, y = noisy(20 * n_classes, n_classes)
    letters = (string.ascii_uppercase + string.ascii_lowercase)[:n_classes]
    names = np.array([f"{letter} is the name of {'a' * 60} {letter}" for letter in letters])
    costs = np.random.default_rng(0).integers(1, 9, (n_classes, n_classes)) * (
        1.0 - np.eye(n_classes)
    )
    model = booster(labelled_costs(costs, names), n_estimators=2).fit(X, names[y])
    report = report_of(model, X, names[y])
    text = report.to_html()
    page = Page(text)
    assert f'title="{names[0]}"' in text
    assert max(len(cell) for row in page.rows for cell in row) <= 60
    is_dense = n_classes > 12
    assert any(row[0].endswith("other kinds") for row in page.rows) == is_dense
    assert ("Point at a cell for its count and price." in text_of(page)) == is_dense
    paid = cost_confusion_matrix(names[y], model.predict(X), costs, labels=model.classes_)
    np.testing.assert_allclose(report.charged, paid)


def test_hostile_names() -> None:
    X, y = noisy()
    names = np.array([HOSTILE, "$x^$", "</style><b>\x00"])
    model = booster(labelled_costs(COSTS, names)).fit(X, names[y])
    report = report_of(
        model, X, names[y], train=(X, names[y]), feature_names=[HOSTILE, "{{ 7 * 7 }}", "", "b"]
    )
    page = Page(report.to_html(title=HOSTILE, currency="<$i$>"))
    assert "script" not in page.tags
    assert page.tags.count("b") == len(report.ways), "those of intervals"
    assert HOSTILE in page.texts
    assert "{{ 7 * 7 }}" in page.texts


def test_notebooks_show_the_page_in_a_frame(report) -> None:
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert shown.count("<") == 2
    inside = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="" .*', shown)[1])
    page = Page(inside)
    assert page.headings == HEADINGS
    assert "a" not in page.tags, "links lead out of a frame"
