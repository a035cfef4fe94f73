"""Costs of decisions as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from badacost.cli.printing import text_table

if TYPE_CHECKING:
    from badacost.tabular import CostSummary

_ANY_WIDTH = 10_000
_MAX_NAME_LENGTH = 30  # before rows whose columns are numbered


def money(value: float) -> str:
    """Return a cost as text: four digits, more for large sums.

    >>> money(0.123456), money(1234567.0), money(5.0)
    ('0.1235', '1,234,567', '5')
    """
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def show_contest(summary: CostSummary, name: str, title: str) -> None:
    """Print the average costs of a model and of its rivals, the cheapest marked."""
    from rich.console import Console

    constant = f"always {summary.constant_answer!r:.40}, the best constant answer"
    costs = {name: summary.average_cost, **summary.rivals, constant: summary.constant_cost}
    rows = []
    for way, cost in costs.items():
        saved = f"{1.0 - cost / summary.constant_cost:.0%}" if summary.constant_cost else "-"
        difference = ""
        if way in summary.rivals:
            error = summary.rival_errors[way]
            difference = f"{cost - summary.average_cost:+.2g} ± {error:.1g}"
        rows.append([way, money(cost), difference, saved])
    table = text_table(["decided by", "cost", "difference", "saved"], rows, title=title)
    cheapest = min(costs.values())
    for row, cost in zip(table.rows, costs.values(), strict=True):
        row.style = "bold" if cost == cheapest else None
    Console().print(table)


def show_matrix(rows: Any, names: Sequence[str], title: str) -> bool:
    """Print a matrix of truths (rows) and answers, and return whether it fits on the terminal."""
    from rich.console import Console

    console = Console()
    cells = [[money(float(cell)) for cell in (*row, sum(row))] for row in rows]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    numbered = [
        f"{number} {name:.{_MAX_NAME_LENGTH}}" for number, name in zip(numbers, names, strict=True)
    ]
    # Where the names of the answers do not fit, their numbers do.
    for truths, answers in ((names, names), (numbered, numbers)):
        lines = [[name, *row] for name, row in zip(truths, cells, strict=True)]
        table = text_table(["truth \\ answer", *answers, "sum"], lines, title=title)
        for column in table.columns:
            column.no_wrap = True
        width = console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum
        if width <= console.width:
            console.print(table)
            return True
    return False
