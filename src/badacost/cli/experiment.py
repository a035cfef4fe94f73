"""``badacost experiment``: the paper's tables as programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.errors import plain_errors

if TYPE_CHECKING:
    from badacost.experiments.uci import Settings
    from badacost.experiments.uci_table import UCITable

app = typer.Typer(help="The paper's tables as programs.", no_args_is_help=True)


@app.callback()
def _experiments() -> None:
    """The paper's tables as programs."""


@app.command()
def uci(
    output: Annotated[
        Path, typer.Option(help="Folder for the results; a run that was stopped goes on there.")
    ] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two small data sets, short fits: under a minute.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets; see badacost.datasets.load_uci.")
    ] = None,
    sets: Annotated[
        str | None, typer.Option(help="Data sets, separated by commas; all twelve by default.")
    ] = None,
    reading: Annotated[
        str, typer.Option(help="Whose confusion makes the costs: full, tree or training.")
    ] = "full",
    depth: Annotated[int, typer.Option(min=1, help="Depth of the built-in tree.")] = 4,
    rate: Annotated[float, typer.Option(help="Learning rate of its boosters.")] = 0.1,
    folds: Annotated[int | None, typer.Option(min=2, max=10, help="Folds; 5.")] = None,
    pool: Annotated[
        int | None, typer.Option(min=3, help="Trees in the pool of Wang's MultiBoost; 6000.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one for each core.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything.")] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget the results of an earlier run in OUTPUT.")
    ] = False,
) -> None:
    """Table 1: average costs of boosting algorithms on twelve UCI data sets.

    Writes uci.md, uci.json, uci.csv and diagrams of the ranks to OUTPUT. Every finished fit is
    recorded at once: after an interruption, the same command goes on where it was. With another
    --reading, --depth or --rate, the paper's four algorithms are run and uci-VARIANT.json is
    written; the page of a later main run tells of it.
    """
    with plain_errors("Stopped. The same command goes on where it was."):
        from badacost.experiments.uci import header, run
        from badacost.experiments.uci_report import write_report

        settings = _settings(
            quick,
            sets,
            reading=reading,
            max_depth=depth,
            learning_rate=rate,
            n_folds=folds,
            n_pool=pool,
            seed=seed,
        )
        journal = output / f"{'-'.join(filter(None, ['uci', settings.variant]))}.jsonl"
        if output.exists() and not output.is_dir():
            raise NotADirectoryError(f"--output {output} is a file: name a folder.")
        if fresh:
            journal.unlink(missing_ok=True)
        records = run(settings, journal, data=data, n_jobs=jobs)
        table = write_report(header(settings), records, output)
        _show(table)
        typer.echo(f"The page and the numbers are in {output}.")


def _settings(quick: bool, sets: str | None, **options: Any) -> Settings:
    """Settings from the options; those that are None keep their default."""
    from badacost.experiments import uci as protocol
    from badacost.validation import check_choice, check_number

    check_choice("--reading", options["reading"], protocol.READINGS)
    check_number("--rate", options["learning_rate"], low=0.0, open_low=True)
    given = {name: value for name, value in options.items() if value is not None}
    if sets is not None:
        given["data_sets"] = tuple(name.strip() for name in sets.split(",") if name.strip())
        if not given["data_sets"]:
            raise ValueError("--sets names no data sets: separate their names by commas.")
    base = protocol.Settings.quick() if quick else protocol.Settings()
    return replace(base, contenders=(), **given).complete()


def _show(table: UCITable) -> None:
    """The table on the terminal: a line for each algorithm, best average rank first."""
    from rich.console import Console
    from rich.table import Table

    from badacost.experiments.uci_table import TITLES, cheapest, short

    means = table.means()
    best = cheapest(means, table.rows)
    comparison = table.comparison()
    ranks = comparison.average_ranks if comparison else dict.fromkeys(table.rows, float("nan"))
    shown = Table(title="Average cost, in 1e-4")
    shown.add_column("algorithm")
    for name in table.data_sets:
        shown.add_column(TITLES.get(name, name), justify="right")
    shown.add_column("rank", justify="right")
    for row in sorted(table.rows, key=lambda row: ranks[row]):
        cells = [
            f"[bold]{short(means[name][row])}[/bold]"
            if best[name] == row
            else short(means[name][row])
            for name in table.data_sets
        ]
        shown.add_row(row, *cells, f"{ranks[row]:.2f}")
    Console().print(shown)
