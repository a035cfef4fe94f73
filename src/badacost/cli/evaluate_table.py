"""``badacost evaluate`` for tables: what decisions cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from badacost.cli.cost_tables import money, show_contest, show_matrix
from badacost.cli.printing import note, text_table, warnings_as_notes, write_json
from badacost.cli.table_inputs import (
    costs_of_classes,
    table_model,
    table_with_target,
    target_of,
    weights_of,
)

if TYPE_CHECKING:
    from badacost.tabular import TableClassifier, TableEvaluation

_MAX_CLASSES_SHOWN = 12


def evaluate_table(
    model: Path,
    data: Path,
    target: str | None,
    costs: Path | None,
    weight: str | None,
    as_json: bool,
) -> None:
    """Show what decisions cost; `badacost.cli.evaluate` documents the options."""
    from badacost.cost_report.known_rows import known_rows_remark
    from badacost.tabular import evaluate_table as evaluate

    fitted = table_model(model)
    target = target_of(fitted, target)
    frame = table_with_target(data, target, fitted)
    weights = weights_of(frame, weight)
    prices = None if costs is None else costs_of_classes(costs, fitted.classes_.tolist())
    with warnings_as_notes():
        found = evaluate(fitted, frame, target, costs=prices, sample_weight=weights)
    note(known_rows_remark(fitted, found.summary.n_rows))
    if not as_json:
        _show(fitted, found)
        return
    write_json(
        found.to_dict()
        | {
            "target": fitted.target_name_,
            "n_training_rows": fitted.n_rows_,
            "held_out": None if fitted.held_out_ is None else fitted.held_out_.to_dict(),
        }
    )


def _show(model: TableClassifier, found: TableEvaluation) -> None:
    """The figures as tables; only the costliest mistakes if there are many classes."""
    from badacost.cost_report.naming import model_name

    summary, names = found.summary, found.names
    show_contest(
        summary, model_name(model), f"Average cost of a decision, on {summary.n_rows} rows"
    )
    saved = "" if summary.savings is None else f"; savings {summary.savings:.1%}"
    typer.echo(
        f"Total cost {money(summary.total_cost)}; error rate {summary.error_rate:.1%}{saved}."
    )
    if model.held_out_ is not None:
        typer.echo(
            f"At the fit the average cost was {money(model.held_out_.average_cost)} "
            f"({model.held_out_.n_rows} rows, {model.held_out_.how})."
        )
    if len(names) > _MAX_CLASSES_SHOWN or not (
        show_matrix(found.counts, names, "Number of decisions")
        and show_matrix(found.costs, names, "Total cost")
    ):
        _show_costliest(found)


def _show_costliest(found: TableEvaluation) -> None:
    """The costliest kinds of mistakes."""
    from rich.console import Console

    order = np.argsort(-found.costs, axis=None, kind="stable")[:_MAX_CLASSES_SHOWN]
    rows = [
        [found.names[i], found.names[j], *map(money, (found.counts[i, j], found.costs[i, j]))]
        for i, j in zip(*np.unravel_index(order, found.costs.shape), strict=True)
        if found.costs[i, j] > 0.0
    ]
    head = ["truth", "answer", "count", "cost"]
    Console().print(text_table(head, rows, n_text=2, title="Costliest mistakes"))
