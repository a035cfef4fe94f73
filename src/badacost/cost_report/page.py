"""The page of a report: its numbers, and how they are written, in a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost.cost_report.comparison import LEVEL, N_RESAMPLES
from badacost.cost_report.money import Money, number
from badacost.cost_report.words import findings, headline, money_of, sentence_case
from badacost.html_page import check_text, environment, framed
from badacost.html_page.charts import LineChart, line_chart
from badacost.plotting.base import COST_UNIT

if TYPE_CHECKING:
    from badacost.cost_report.report import CostReport

_TITLE = "What the decisions cost"
_FRAME_HEIGHT = 720  # pixels
_MAX_MISTAKES = 15
_MAX_PRICES_LISTED = 10


def report_page(
    report: CostReport, title: str | None = None, currency: str | None = None, *, links: bool = True
) -> str:
    """Return the page of a report, with links to its sections or without."""
    check_text("title", "" if title is None else title)
    money = money_of(report, currency)
    costly = _descending(report.charged)
    facts, doubtful = _key_figures(report, money)
    template = environment("badacost.cost_report").get_template("report.html")
    return template.render(
        title=title or _TITLE,
        lead=headline(report, money),
        links=links,
        report=report,
        money=money,
        number=number,
        sentence_case=sentence_case,
        facts=facts,
        doubtful=doubtful,
        findings=findings(report, money),
        level=LEVEL,
        n_resamples=N_RESAMPLES,
        most_expensive=_descending(np.where(np.eye(len(report.labels)), 0.0, report.costs))[:1],
        mistakes=costly[:_MAX_MISTAKES],
        other_mistakes=costly[_MAX_MISTAKES:],
        curve=_curve(report, money),
        sensitive=_sensitive(report),
        reliability=_reliability(report),
    )


def framed_page(report: CostReport) -> str:
    """Return the page in a frame of another one, in which it runs nothing and opens nothing."""
    page = report_page(report, links=False)  # a frame would open them in the place of the page
    return framed(page, _TITLE, height=_FRAME_HEIGHT)


def _key_figures(report: CostReport, money: Money) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the figures to be seen first, and the names of those that may be chance."""
    own, doubtful = report.ways[0], []
    facts = [
        (
            "average cost of a decision",
            money.rate(own.average_cost),
            f"{LEVEL} % interval {money.between(own.interval)}",
        ),
        ("in all", money.amount(report.total_cost), f"for {report.n_samples:,} decisions"),
    ]
    compared = {"the best constant": report.constant} | {w.name: w for w in report.rivals[:1]}
    for name, way in compared.items():
        fact, share = _saving(name, way.average_cost, own.average_cost, money)
        remark = f"that costs {money.rate(way.average_cost)} each"
        if not way.is_clear:
            doubtful.append(fact)
            bounds = money.between(way.saved_interval)
            remark += f"; may be chance: the model saves {bounds} each"
        facts.append((fact, share, remark))
    if report.at_fit is not None and not report.rivals:
        rival, own_cost = report.at_fit.rivals[0], report.at_fit.average_cost
        fact, share = _saving(rival.name, rival.average_cost, own_cost, money)
        remark = (
            f"{money.rate(own_cost)} instead of {money.rate(rival.average_cost)} each, measured "
            f"when the model was fitted: {report.at_fit.rows}"
        )
        if not rival.is_clear:
            doubtful.append(fact)
            remark += "; may be chance"
        facts.append((fact, share, remark))
    return facts, doubtful


def _saving(name: str, other: float, own: float, money: Money) -> tuple[str, str]:
    """Return what is saved against another way, or what is paid more, and how much that is."""
    amount = f"{abs(other - own) / other:.0%}" if other > 0 else money.rate(abs(other - own))
    return (
        (f"saved against {name}", amount) if own <= other else (f"more than {name}", f"+{amount}")
    )


def _curve(report: CostReport, money: Money) -> LineChart | None:
    """Lay out the costs after each round, with a circle at the lowest on these samples."""
    if not report.curves:
        return None
    lines = {name: list(enumerate(costs, start=1)) for name, costs in report.curves.items()}
    best = min(lines["these samples"], key=lambda point: point[1])
    return line_chart(lines, "number of trees", money.unit(COST_UNIT), dots=[best])


def _reliability(report: CostReport) -> LineChart | None:
    """Lay out the share that is right against the probability."""
    if report.reliability is None or not report.reliability.groups:
        return None
    points = [(group.probability, group.share_right) for group in report.reliability.groups]
    low = min(min(point) for point in points)
    return line_chart(
        {"the model": points, "as it should be": [(low, low), (1.0, 1.0)]},
        "probability of the most likely class",
        "share that is right",
        dots=points,
        is_share=True,
    )


def _sensitive(report: CostReport) -> list[tuple[int, int]]:
    """Return the costs that matter most for the decisions."""
    if report.sensitivity is None:
        return []
    changed = np.maximum(report.sensitivity.doubled.changed, report.sensitivity.halved.changed)
    return _descending(changed)[:_MAX_PRICES_LISTED]


def _descending(matrix: FloatArray) -> list[tuple[int, int]]:
    """Return the cells of a matrix that are not zero, those of the largest values first."""
    order: Any = np.argsort(-matrix.ravel(), kind="stable")
    return [divmod(cell, len(matrix)) for cell in order.tolist() if matrix.flat[cell] > 0]
