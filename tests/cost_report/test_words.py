"""The first sentence does not flatter: whatever is cheaper than the model is named there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from badacost import CostBoostClassifier
from badacost.cost_report import CostReport
from badacost.cost_report.comparison import WayCost
from badacost.cost_report.parts import AtFit, RivalAtFit
from badacost.cost_report.words import NO_RIVALS, findings, headline, money_of, verdict
from tests.cost_report.samples import COSTS, booster, noisy


@cache
def plain_report() -> CostReport:
    X, y = noisy()
    report = CostReport.from_estimator(booster(decision="bayes").fit(X, y), X, y)
    assert all(report.average_cost <= way.average_cost for way in report.ways)
    return report


def way(cost: float, saved_interval: tuple[float, float], name: str = "a rival") -> WayCost:
    saved = cost - plain_report().average_cost
    kind = "trained without costs"
    return WayCost(name, kind, cost, (0.9 * cost, 1.1 * cost), 0.5, saved, saved_interval)


def with_rivals(*rivals: WayCost) -> CostReport:
    return replace(plain_report(), ways=(*plain_report().ways, *rivals))


def first(report: CostReport) -> str:
    return headline(report, money_of(report, "EUR"))


@pytest.mark.parametrize("is_clear", [True, False])
def test_a_cheaper_rival_is_named_first(is_clear) -> None:
    own = plain_report().average_cost
    report = with_rivals(
        way(own + 1, (0.5, 1.5), "other"), way(own / 2, (-9.0, -0.1 if is_clear else 0.1))
    )
    said = first(report)
    money = money_of(report, "EUR")
    assert said.startswith(
        f"Cheaper than the model: a rival, at {money.rate(own / 2)} instead of {money.rate(own)} "
        "a decision"
    )
    assert ("the difference may be chance" in said) is not is_clear
    assert str(report).splitlines()[0] == headline(report, money_of(report, None))


def test_a_rival_that_was_cheaper_at_the_fit_is_named_first() -> None:
    own = plain_report().average_cost
    rivals = (RivalAtFit("cheap", own, False), RivalAtFit("expensive", 3 * own, True))
    at_fit = AtFit("50 rows", 2 * own, rivals)
    said = first(replace(with_rivals(way(own + 1, (0.5, 1.5))), at_fit=at_fit))
    assert said.startswith("Cheaper than the model when it was fitted (50 rows): cheap, at ")
    assert said.endswith("a decision; the difference may be chance.")


def test_the_nearest_rival_is_named_if_none_is_cheaper() -> None:
    own = plain_report().average_cost
    report = with_rivals(way(own + 2, (0.1, 3), "far"), way(own + 1, (-0.1, 2), "near"))
    assert "the cheapest rival that was trained without costs, near, costs" in first(report)
    said = " ".join(findings(report, money_of(report, None)))
    assert "Compared with near, at" in said
    assert NO_RIVALS not in said
    rivals = (RivalAtFit("near", own, False), RivalAtFit("far", 3 * own, True))
    at_fit = replace(plain_report(), at_fit=AtFit("50 rows", own, rivals))
    assert "and the cheapest rival, near," in first(at_fit)
    said = " ".join(findings(at_fit, money_of(at_fit, None)))
    assert "Measured when the model was fitted (50 rows): the model" in said
    lines = str(at_fit).splitlines()
    after = lines[lines.index("When the model was fitted (50 rows):") + 1 :]
    assert [line.split()[-1] for line in after] == ["model", "near", "far"]


def test_what_was_not_compared_is_said_with_its_remedy() -> None:
    report = plain_report()
    assert first(report).endswith("not compared with a model that was trained without costs.")
    assert NO_RIVALS in findings(report, money_of(report, None))
    assert "--train" in str(report)


def test_findings() -> None:
    X, y = noisy()
    model = CostBoostClassifier(COSTS, n_estimators=5, random_state=0).fit(X, y)
    report = CostReport.from_estimator(model, X, y)
    said = findings(report, money_of(report, None))
    assert said[0].startswith(f"240 decisions of the model cost {report.average_cost:.2f} each")
    assert said[1] == f"Out of fold, the training expected {model.oof_cost_:.2f} for each."
    assert not any("too few" in sentence for sentence in said)
    few = findings(replace(report, n_costly=3), money_of(report, None))
    assert few[-1].startswith("Decisions that cost anything: 3. That is too few")
    known = replace(report, known_rows="the model was fitted to as many rows.")
    assert known.summary().splitlines()[-1] == "The model was fitted to as many rows."


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.5, 1.5), "the model saves 1.00 EUR a decision (0.50 to 1.50 EUR)"),
        ((-0.5, 1.5), "may be chance (the model saves -0.50 to 1.50 EUR a decision)"),
        ((0.0, 0.0), "the cost is the same"),
        ((-1.5, -0.5), "the model costs 1.00 EUR more a decision (0.50 to 1.50 EUR)"),
    ],
)
def test_verdicts(interval, said) -> None:
    report = plain_report()
    rival = replace(way(0.0, interval), saved=sum(interval) / 2)
    assert verdict(rival, money_of(report, "EUR")).endswith(said)
