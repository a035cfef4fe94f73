"""Costs of decisions as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from badacost.tabular import CostSummary


def money(value: float) -> str:
    """Return a cost for people: four digits, more for large sums.

    Parameters
    ----------
    value : float
        A cost.

    Examples
    --------
    >>> money(0.123456), money(1234567.0), money(5.0)
    ('0.1235', '1,234,567', '5')
    """
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def show_contest(summary: CostSummary, name: str, title: str) -> None:
    """Print the average costs of a model and of its rivals, the cheapest marked.

    Parameters
    ----------
    summary : CostSummary
        What decisions have cost.
    name : str
        How to call the model.
    title : str
        Title of the table.
    """
    from rich.console import Console
    from rich.table import Table

    costs = {
        name: summary.average_cost,
        **summary.rivals,
        f"always {summary.constant_answer!r:.40}, the best constant answer": summary.constant_cost,
    }
    table = Table(title=title)
    table.add_column("decided by")
    table.add_column("average cost", justify="right")
    table.add_column("saved", justify="right")
    cheapest = min(costs.values())
    for way, cost in costs.items():
        saved = f"{1.0 - cost / summary.constant_cost:.0%}" if summary.constant_cost else "-"
        table.add_row(_plain(way), money(cost), saved, style="bold" if cost == cheapest else None)
    Console().print(table)


def show_matrix(rows: Any, names: Sequence[str], title: str, sums: bool = True) -> None:
    """Print a matrix of truths and answers.

    Parameters
    ----------
    rows : array of shape (K, K)
        Counts or costs: rows are the truth.
    names : sequence of K str
        The classes.
    title : str
        Title of the table.
    sums : bool, default=True
        Whether to add the sum of each row.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    table.add_column("truth \\ answer")
    for name in (*names, *(["sum"] * sums)):
        table.add_column(_plain(name), justify="right")
    for name, row in zip(names, rows, strict=True):
        cells = [*row, *([sum(row)] * sums)]
        table.add_row(_plain(name), *(money(float(cell)) for cell in cells))
    Console().print(table)


def _plain(text: str) -> Any:
    """Text of users, in which brackets are no markup."""
    from rich.text import Text

    return Text(text if len(text) <= 60 else f"{text[:57]}...")
