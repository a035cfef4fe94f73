"""What a report says in sentences: first of all whether anything is cheaper than the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from badacost.cost_report.comparison import LEVEL, WayCost
from badacost.cost_report.money import Money, check_currency
from badacost.cost_report.parts import RivalAtFit
from badacost.html_page import shorten

if TYPE_CHECKING:
    from badacost.cost_report.report import CostReport

NO_RIVALS = (
    "No model that was trained without costs was compared under these costs. Give the training "
    "rows to compare with some: --train on the command line, train= in Python."
)
_FEW_COSTLY = 10  # decisions that cost something; with fewer an interval says too little
_MAX_NAME_LENGTH = 72


def money_of(report: CostReport, currency: str | None) -> Money:
    """Return how amounts are written, in the precision that suits the best constant answer."""
    check_currency(currency)
    return Money(currency or None, report.constant.average_cost)


def headline(report: CostReport, money: Money) -> str:
    """Return the first sentence: what is cheaper than the model, or else the nearest rival."""
    own, at_fit = money.rate(report.average_cost), report.at_fit
    best = min(report.ways, key=lambda way: way.average_cost)
    if best.average_cost < report.average_cost:
        return _cheaper("the model", best, own, money)
    start = f"A decision of {report.model} costs {own}"
    if at_fit is not None:
        place, own_at_fit = f"when it was fitted ({at_fit.rows})", money.rate(at_fit.average_cost)
        nearest = at_fit.rivals[0]
        if nearest.average_cost < at_fit.average_cost:
            return _cheaper(f"the model {place}", nearest, own_at_fit, money)
    if report.rivals:
        rival = report.rivals[0]
        return (
            f"{start}; the cheapest rival that was trained without costs, {rival.name}, costs "
            f"{money.rate(rival.average_cost)}."
        )
    if at_fit is not None:
        return (
            f"{start}; {place} it cost {own_at_fit}, and the cheapest rival, {nearest.name}, "
            f"{money.rate(nearest.average_cost)}."
        )
    return f"{start}; it was not compared with a model that was trained without costs."


def findings(report: CostReport, money: Money) -> list[str]:
    """Return the sentences after the first one."""
    own = report.ways[0]
    sentences = [
        f"{report.n_samples:,} decision{'s' * (report.n_samples != 1)} of the model cost "
        f"{money.rate(own.average_cost)} each ({LEVEL} % interval {money.between(own.interval)}), "
        f"{money.amount(report.total_cost)} in all."
    ]
    if report.out_of_fold_cost is not None:
        cost = money.rate(report.out_of_fold_cost)
        sentences.append(f"Out of fold, the training expected {cost} for each.")
    for way in (report.constant, *report.rivals[:1]):
        cost = money.rate(way.average_cost)
        sentences.append(f"Compared with {way.name}, at {cost} each, {verdict(way, money)}.")
    if report.at_fit is not None:
        others = "; ".join(f"{r.name} {money.rate(r.average_cost)}" for r in report.at_fit.rivals)
        sentences.append(
            f"Measured when the model was fitted ({report.at_fit.rows}): the model "
            f"{money.rate(report.at_fit.average_cost)}; {others}."
        )
    elif not report.rivals:
        sentences.append(NO_RIVALS)
    if report.n_costly < _FEW_COSTLY:
        sentences.append(
            f"Decisions that cost anything: {report.n_costly}. That is too few for a reliable "
            "interval: evaluate the model on more samples."
        )
    return sentences


def verdict(way: WayCost, money: Money) -> str:
    """Return whether the model or another way costs less, and if that may be chance."""
    low, high = way.saved_interval
    if low == high == 0.0:
        return "the cost is the same"
    if low > 0:
        return f"the model saves {money.rate(way.saved)} a decision ({money.between((low, high))})"
    if high < 0:
        more = money.between((-high, -low))
        return f"the model costs {money.rate(-way.saved)} more a decision ({more})"
    between = money.between((low, high))
    return f"the difference may be chance (the model saves {between} a decision)"


def summary(report: CostReport, currency: str | None = None) -> str:
    """Return the headline, a line for each way to decide, and what was not compared."""
    money = money_of(report, currency)
    tables = {"Average cost of a decision": [(w.average_cost, w.name) for w in report.ways]}
    if report.at_fit is not None:
        tables[f"When the model was fitted ({report.at_fit.rows})"] = [
            (report.at_fit.average_cost, "the model"),
            *((rival.average_cost, rival.name) for rival in report.at_fit.rivals),
        ]
    lines = [headline(report, money)]
    for title, rows in tables.items():
        width = max(len(money.rate(cost)) for cost, _ in rows)
        lines.append(f"{title}:")
        lines += [f"  {money.rate(c):>{width}}  {shorten(n, _MAX_NAME_LENGTH)}" for c, n in rows]
    if report.at_fit is None and not report.rivals:
        lines.append(NO_RIVALS)
    if report.known_rows is not None:
        lines.append(sentence_case(report.known_rows))
    return "\n".join(lines)


def sentence_case(text: str) -> str:
    """Return text with a capital at its start."""
    return text[:1].upper() + text[1:]


def _cheaper(model: str, rival: WayCost | RivalAtFit, own: str, money: Money) -> str:
    """Return the sentence about a rival that costs less than the model."""
    chance = "" if rival.is_clear else "; the difference may be chance"
    cost = money.rate(rival.average_cost)
    return f"Cheaper than {model}: {rival.name}, at {cost} instead of {own} a decision{chance}."
