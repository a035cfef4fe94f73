"""``badacost costs``: tables of prices to fill in, and their explanation."""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from badacost.cli.help_text import Group
from badacost.cli.options import MaxMemory, Table, Target
from badacost.cli.printing import note, plain_errors
from badacost.cli.table_inputs import (
    check_output,
    costs_of_classes,
    make_folder,
    table_with_target,
)


class _TemplateByDefault(Group):
    """A group that takes the name of a table for that of its first command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Insert the name of the command before that of a table."""
        if args and args[0] not in self.commands:
            args = ["template", *args]
        return super().resolve_command(ctx, args)


_MANY_CLASSES = 20
app = typer.Typer(cls=_TemplateByDefault, no_args_is_help=True)


@app.callback()
def _costs() -> None:
    """Write a table of the costs of mistakes to fill in, or explain one.

    `badacost costs DATA --target COLUMN` is short for `badacost costs template DATA --target
    COLUMN`.
    """


@app.command()
@plain_errors("Stopped.")
def template(
    data: Table,
    target: Target,
    output: Annotated[
        Path | None, typer.Option(help="CSV file to write; standard output by default.")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Start with prices that compensate for rare classes.")
    ] = False,
    ordinal: Annotated[
        str | None,
        typer.Option(
            metavar="UNDER:OVER",
            help="Start with prices that grow with the distance between ordered classes: UNDER for "
            "each class that an answer is too low, OVER for each that it is too high, as 5:1.",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="CLASSES",
            help="Order of the classes, from the lowest to the highest, as low,middle,high. By "
            "default that of an ordered column, or sorted.",
        ),
    ] = None,
    many: Annotated[
        bool, typer.Option("--many", help=f"Allow more than {_MANY_CLASSES} classes.")
    ] = False,
    max_memory: MaxMemory = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace OUTPUT, with the prices in it, if it exists.")
    ] = False,
) -> None:
    """Write a table of costs for the classes of a column, to be filled in.

    It has a row for each truth, a column for each answer, and 1 for every mistake until you write
    your prices into it. A right answer costs 0.
    """
    from badacost.costs import template_costs, write_costs
    from badacost.tabular.target import target_labels

    path = None if output is None or str(output) == "-" else output
    if path is not None:
        check_output(path, force)
    prices = None if ordinal is None else _under_and_over(ordinal)
    labels = target_labels(table_with_target(data, target)[target], target)
    n_classes = len(set(labels))
    if n_classes > _MANY_CLASSES and not many:
        raise ValueError(
            f"--target {target!r:.80} has {n_classes} classes, which makes "
            f"{n_classes * (n_classes - 1)} prices: name another column, or add --many if it "
            "is the right one."
        )
    costs = template_costs(
        labels,
        balanced=balanced,
        ordinal=prices,
        order=None if order is None else [name.strip() for name in order.split(",")],
    )
    if path is None:
        write_costs(costs, sys.stdout)
        return
    write_costs(costs, make_folder(path))
    typer.echo(
        f"Costs of {n_classes} classes are in {path}: write your prices into it. Each row is "
        "a truth, each column an answer.",
        err=True,
    )


def _under_and_over(text: str) -> tuple[float, float]:
    """Parse the two prices of ordinal costs."""
    from badacost.io.csv_dialect import as_number

    prices = [as_number(part.strip()) for part in text.split(":")]
    match prices:
        case [float(under), float(over)] if 0 < under < math.inf and 0 < over < math.inf:
            return under, over
    raise ValueError(
        f"--ordinal must be two positive prices, of an answer that is too low and of one that is "
        f"too high, as 5:1; got {text!r:.80}."
    )


@app.command()
@plain_errors("Stopped.")
def explain(
    costs: Annotated[Path, typer.Argument(help="CSV file of costs.")],
    data: Annotated[
        Path | None, typer.Option(help="Table whose class frequencies are the priors.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column of its classes.")] = None,
    max_memory: MaxMemory = None,
) -> None:
    """Explain in plain sentences which decisions a table of costs leads to."""
    from badacost.costs import explain_costs, is_template
    from badacost.tabular.target import target_labels

    if (data is None) != (target is None):
        raise ValueError("--data and --target belong together: give both or neither.")
    counts = None
    if data is not None and target is not None:
        counts = Counter(target_labels(table_with_target(data, target)[target], target))
        note(f"class frequencies are those of {counts.total()} rows.")
    prices = costs_of_classes(costs, counts)
    if is_template(prices):
        note(f"every mistake costs 1, as in a new template: write your prices into {costs}.")
    width = max(40, get_terminal_size().columns)
    typer.echo(explain_costs(prices, priors=counts, width=width))
