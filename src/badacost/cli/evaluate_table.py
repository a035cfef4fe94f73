"""What the decisions of a classifier cost on the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from badacost.cli.cost_tables import money, show_contest, show_matrix
from badacost.cli.json_output import note, warnings_as_notes, write_json
from badacost.cli.table_inputs import (
    costs_of_classes,
    table_model,
    table_with_target,
    weights_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular import CostSummary, TableClassifier

_MAX_CLASSES_SHOWN = 12
_BLIND = "the most probable class of the same model"


def evaluate_table(
    model: Path,
    data: Path,
    *,
    target: str | None,
    costs: Path | None,
    weight: str | None,
    as_json: bool,
) -> None:
    """Tell what decisions cost; `badacost.cli.evaluate` documents the options."""
    from badacost.cost_report.known_rows import known_rows_remark
    from badacost.costs import labelled_costs
    from badacost.metrics import cost_confusion_matrix
    from badacost.tabular import CostSummary
    from badacost.tabular.target import known_labels

    fitted = table_model(model)
    target = target or fitted.target_name_
    if target is None:
        raise ValueError("the model does not know the column of the classes: add --target.")
    frame = table_with_target(data, target)
    weights = weights_of(frame, weight)
    truth = known_labels(frame[target], fitted.classes_, target)
    prices: Any = labelled_costs(fitted.charged_costs_, fitted.classes_)
    if costs is not None:
        prices = costs_of_classes(costs, fitted.classes_.tolist())
    with warnings_as_notes():
        answers = fitted.predict(frame)
        rivals = _most_probable(fitted, frame)
    options: dict[str, Any] = {"sample_weight": weights}
    summary = CostSummary.of(
        truth,
        answers,
        prices,
        classes=fitted.classes_,
        rivals=rivals,
        **options,
    )
    paid = cost_confusion_matrix(truth, answers, prices, labels=fitted.classes_, **options)
    remark = known_rows_remark(fitted, summary.n_rows)
    if remark is not None:
        note(remark)
    counts = _counts(truth, answers, fitted.classes_, weights)
    if as_json:
        write_json(_figures(fitted, summary, counts, paid))
    else:
        _show(fitted, summary, counts, paid)


def _most_probable(model: TableClassifier, frame: pd.DataFrame) -> dict[str, Any]:
    """What the model would answer if mistakes had no prices, where it can tell."""
    if not hasattr(model, "predict_proba"):
        return {}
    try:
        probabilities = model.predict_proba(frame)
    except ValueError:  # costs that do not link all classes
        return {}
    return {_BLIND: model.classes_[probabilities.argmax(axis=1)]}


def _counts(truth: Any, answers: Any, classes: Any, weights: Any) -> Any:
    """Counts, or sums of weights, of truths and answers."""
    from sklearn.metrics import confusion_matrix

    return confusion_matrix(truth, answers, labels=classes, sample_weight=weights)


def _figures(model: TableClassifier, summary: CostSummary, counts: Any, paid: Any) -> Any:
    names = [str(name) for name in model.classes_]
    return summary.to_dict() | {
        "classes": names,
        "cost_of_class": dict(zip(names, paid.sum(axis=1).tolist(), strict=True)),
        "counts": counts,
        "costs": paid,
        "target": model.target_name_,
        "n_training_rows": model.n_rows_,
        "held_out": None if model.held_out_ is None else model.held_out_.to_dict(),
    }


def _show(model: TableClassifier, summary: CostSummary, counts: Any, paid: Any) -> None:
    """The figures as tables; only the most expensive classes if there are many."""
    from badacost.cost_report.naming import model_name

    names = [str(name) for name in model.classes_]
    title = f"What a decision costs, on {summary.n_rows} rows"
    show_contest(summary, model_name(model), title)
    saved = "" if summary.savings is None else f" {summary.savings:.1%} of the best constant's"
    typer.echo(
        f"In all {money(summary.total_cost)}; {summary.error_rate:.1%} of the answers are wrong"
        f"{f';{saved} cost is saved' if saved else ''}."
    )
    if model.held_out_ is not None:
        typer.echo(
            f"At the fit ({model.held_out_.n_rows} rows, {model.held_out_.how}) a decision cost "
            f"{money(model.held_out_.average_cost)}."
        )
    if len(names) > _MAX_CLASSES_SHOWN or not (
        show_matrix(counts, names, "How often") and show_matrix(paid, names, "What it has cost")
    ):
        _show_dearest(names, counts, paid)


def _show_dearest(names: list[str], counts: Any, paid: Any) -> None:
    """The most expensive kinds of mistakes."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"The {_MAX_CLASSES_SHOWN} costliest kinds of mistakes")
    for column in ("truth", "answer"):
        table.add_column(column)
    for column in ("how often", "cost"):
        table.add_column(column, justify="right")
    order = np.argsort(-paid, axis=None, kind="stable")[:_MAX_CLASSES_SHOWN]
    for i, j in zip(*np.unravel_index(order, paid.shape), strict=True):
        if paid[i, j] > 0.0:
            cells = (money(float(counts[i, j])), money(float(paid[i, j])))
            table.add_row(Text(names[i][:60]), Text(names[j][:60]), *cells)
    Console().print(table)
