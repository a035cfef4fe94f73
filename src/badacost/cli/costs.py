"""``badacost costs``: a table of prices to fill in, and what a table of prices means."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from badacost.cli.errors import plain_errors
from badacost.cli.json_output import note
from badacost.cli.table_inputs import (
    check_absent,
    check_output_file,
    check_place,
    costs_of_classes,
    table_with_target,
)


class _TemplateByDefault(TyperGroup):
    """Takes the name of a table in the place of a command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put the name of the command before that of a table."""
        if args and args[0] not in self.commands:
            args = ["template", *args]
        return super().resolve_command(ctx, args)


_MANY_CLASSES = 20
app = typer.Typer(cls=_TemplateByDefault, no_args_is_help=True)


@app.callback()
def _costs() -> None:
    """Make a table of the prices of mistakes, or explain one.

    `badacost costs DATA --target COLUMN` is short for `badacost costs template`.
    """


@app.command()
def template(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .tsv, either with .gz, .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the classes.")],
    output: Annotated[
        Path | None, typer.Option(help="CSV file to write; - or nothing is stdout.")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Start with prices that compensate for rare classes.")
    ] = False,
    many: Annotated[
        bool, typer.Option("--many", help=f"Allow more than {_MANY_CLASSES} classes.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace OUTPUT, with the prices in it, if it exists.")
    ] = False,
) -> None:
    """Write a table of costs for the classes of a column, to be filled in.

    A row for each truth, a column for each answer, and 1 for every mistake, until you write your
    prices into it. What is right costs 0.
    """
    with plain_errors("Stopped."):
        from badacost.costs import costs_from_class_weights, write_costs, zero_one_costs
        from badacost.tabular.target import target_labels

        to_file = output is not None and str(output) != "-"
        if output is not None and to_file:
            check_place(output)
            check_absent(output, force)
        labels = target_labels(table_with_target(data, target)[target], target)
        classes = sorted(set(labels.tolist()))
        if len(classes) > _MANY_CLASSES and not many:
            raise ValueError(
                f"--target {target!r:.80} has {len(classes)} classes, which makes "
                f"{len(classes) * (len(classes) - 1)} prices: name another column, or add --many "
                "if it is the right one."
            )
        costs = zero_one_costs(len(classes))
        if balanced:
            costs = costs_from_class_weights("balanced", y=labels, classes=classes).round(3)
        if output is not None and to_file:
            check_output_file(output)
            write_costs(costs, output, classes=classes)
            typer.echo(
                f"Costs of {len(classes)} classes are in {output}: write your prices into it. Each "
                "row is a truth, each column an answer.",
                err=True,
            )
            return
        with TemporaryDirectory() as folder:
            path = Path(folder, "costs.csv")
            write_costs(costs, path, classes=classes)
            sys.stdout.write(path.read_text(encoding="utf-8"))


@app.command()
def explain(
    costs: Annotated[Path, typer.Argument(help="CSV file of costs.")],
    data: Annotated[
        Path | None, typer.Option(help="Table whose class frequencies are the priors.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column of its classes.")] = None,
) -> None:
    """Say in plain sentences which decisions a table of costs leads to."""
    with plain_errors("Stopped."):
        from badacost.costs import explain_costs, read_costs

        if (data is None) != (target is None):
            raise ValueError("--data and --target belong together: give both or neither.")
        if data is None or target is None:
            if not costs.is_file():
                raise FileNotFoundError(f"there is no file {str(costs)!r}: check its name.")
            typer.echo(explain_costs(read_costs(costs), width=_width()))
            return
        from badacost.tabular.target import target_labels

        labels = target_labels(table_with_target(data, target)[target], target).tolist()
        classes = sorted(set(labels))
        prices = costs_of_classes(costs, classes)
        shares = [labels.count(label) / len(labels) for label in classes]
        note(f"shares of the classes are those of {len(labels)} rows.")
        typer.echo(explain_costs(prices, classes=classes, priors=shares, width=_width()))


def _width() -> int:
    """Columns of the terminal, 80 where there is none, and never too few for sentences."""
    return max(40, get_terminal_size().columns)
