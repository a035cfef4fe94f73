"""Costs of decisions as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    from rich.table import Table

    constant = f"always {summary.constant_answer!r:.40}, the best constant answer"
    costs = {name: summary.average_cost, **summary.rivals, constant: summary.constant_cost}
    table = Table(title=title)
    table.add_column("decided by")
    for column in ("cost", "difference", "saved"):
        table.add_column(column, justify="right")
    cheapest = min(costs.values())
    for way, cost in costs.items():
        saved = f"{1.0 - cost / summary.constant_cost:.0%}" if summary.constant_cost else "-"
        difference = ""
        if way in summary.rivals:
            error = summary.rival_errors[way]
            difference = f"{cost - summary.average_cost:+.2g} ± {error:.1g}"
        style = "bold" if cost == cheapest else None
        table.add_row(_plain(way), money(cost), difference, saved, style=style)
    Console().print(table)


def show_matrix(rows: Any, names: Sequence[str], title: str, sums: bool = True) -> bool:
    """Print a matrix of truths (rows) and answers, and return whether it fits on the terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    cells = [[money(float(cell)) for cell in (*row, *([sum(row)] * sums))] for row in rows]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    numbered = [
        f"{number} {name:.{_MAX_NAME_LENGTH}}" for number, name in zip(numbers, names, strict=True)
    ]
    # Where the names of the answers do not fit, their numbers do.
    for truths, answers in ((names, names), (numbered, numbers)):
        table = Table(title=title)
        table.add_column("truth \\ answer", no_wrap=True)
        for name in (*answers, *(["sum"] * sums)):
            table.add_column(_plain(name), justify="right", no_wrap=True)
        for name, row in zip(truths, cells, strict=True):
            table.add_row(_plain(name), *row)
        if console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum <= (
            console.width
        ):
            console.print(table)
            return True
    return False


def _plain(text: str) -> Any:
    """Text of users, in which brackets are no markup."""
    from rich.text import Text

    return Text(text if len(text) <= 60 else f"{text[:57]}...")
