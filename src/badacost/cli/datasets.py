"""``badacost datasets``: something to fit, as a table with costs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from badacost.cli.options import Force, MaxMemory, Seed
from badacost.cli.printing import plain_errors, text_table, write_json
from badacost.cli.table_inputs import check_output, costs_command, make_folder

app = typer.Typer()
_SCENES = "synthetic scenes"
_TEST_SHARE = 0.25
_FIELDS = (
    "name", "n_rows", "n_columns", "n_classes", "target", "source", "about", "needs_download",
)  # fmt: skip


@app.callback(invoke_without_command=True)
@plain_errors("Stopped.")
def _datasets(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Write the list as JSON.")] = False,
) -> None:
    """List data sets to try things out with, or write one as a table.

    Nothing is fetched from a server unless a set is written that needs it.
    """
    if context.invoked_subcommand is not None:
        return
    from badacost.datasets import DATASETS

    if as_json:
        write_json([{name: getattr(dataset, name) for name in _FIELDS} for dataset in DATASETS])
    else:
        _show()


@app.command()
@plain_errors("Stopped.")
def write(
    name: Annotated[str, typer.Argument(help="One of the names that `badacost datasets` lists.")],
    output: Annotated[Path, typer.Option(help="File for the table: .csv, .csv.gz, .parquet.")],
    costs: Annotated[
        Path | None, typer.Option(help="CSV file for example costs with invented prices.")
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="File for a random quarter of each class, left out of OUTPUT."),
    ] = None,
    seed: Seed = 0,
    max_memory: MaxMemory = None,
    force: Force = False,
) -> None:
    """Write a data set as a table, with its classes in the last column.

    The sets of UCI are looked for in the folder that the variable BADACOST_DATA names and in the
    cache of scikit-learn, then fetched from OpenML.
    """
    from badacost.costs import write_costs
    from badacost.datasets import find_dataset
    from badacost.tabular import write_table
    from badacost.tabular.files import check_table_name
    from badacost.tabular.trials import held_out_rows

    if name.casefold().replace("-", " ") == _SCENES:
        raise ValueError(f"{_SCENES} are no table but pictures: use badacost train-detector.")
    dataset = find_dataset(name)
    files = [path for path in (output, test, costs) if path is not None]
    if len({path.resolve() for path in files}) < len(files):
        raise ValueError("--output, --test and --costs name the same file: name several.")
    for path in files:
        check_output(path, force)
    for path in filter(None, (output, test)):
        check_table_name(path)
    frame = dataset.load()
    for path in files:
        make_folder(path)
    if test is not None:
        held_out = held_out_rows(frame[dataset.target].to_numpy(), _TEST_SHARE, seed)
        write_table(frame[held_out], test)
        frame = frame[~held_out]
    write_table(frame, output)
    if costs is not None:
        write_costs(dataset.example_costs(), costs)
    others = "" if test is None else f", {held_out.sum()} others in {test}"
    typer.echo(f"{len(frame)} rows are in {output}{others}. {dataset.about}")
    if costs is None:
        typer.echo(f"Next: {costs_command(output, dataset.target)}")
        return
    words = ["badacost", "fit", str(output), "--target", dataset.target, "--costs", str(costs)]
    typer.echo(f"Next: {shlex.join(words)}")
    if test is not None:
        words = ["badacost", "evaluate", "model.badacost", str(test)]
        typer.echo(f"Then: {shlex.join(words)}")


def _show() -> None:
    """The list as a table."""
    from rich.console import Console

    from badacost.datasets import DATASETS

    rows = []
    for dataset in DATASETS:
        sizes = (dataset.n_rows, dataset.n_columns, dataset.n_classes)
        name, about = f"{dataset.name}{' *' * dataset.needs_download}", dataset.about.split(".")[0]
        rows.append([name, *map(str, sizes), about])
    rows.append([_SCENES, "any", "", "", "Pictures of cars"])
    head = ["name", "rows", "columns", "classes", "about"]
    table = text_table(head, rows)
    Console().print(table)
    typer.echo("* of UCI; fetched from OpenML when it is written, unless it is on this machine.")
    typer.echo(f"{_SCENES} are for detectors: badacost train-detector synthetic:200")
    typer.echo("As a table: badacost datasets write wine --output wine.csv --costs costs.csv")
