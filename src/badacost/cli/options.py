"""Options that several commands share, and which of them were given."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from badacost.io.budget import set_max_memory

TABLES = "Options for tables"
DETECTION = "Options for detection"
of_tables: Any = partial(typer.Option, rich_help_panel=TABLES)
of_detection: Any = partial(typer.Option, rich_help_panel=DETECTION)


def _limit_memory(size: str | None) -> str | None:
    """Set the limit of this command, or that of the start again."""
    try:
        set_max_memory(size)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return size


AsJson = Annotated[bool, typer.Option("--json", help="Write the results as JSON.")]
Device = Annotated[
    Literal["cpu", "cuda"],
    typer.Option(help="Where to compute: cuda for a GPU, with the same results."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Number of threads; -1 for one per core.")]
KnownTarget = Annotated[
    str | None, of_tables(help="Column of the classes; by default that of the fit.")
]
MaxMemory = Annotated[  # what a command is given: the limit is set by then
    str | None,
    typer.Option(
        metavar="SIZE",
        envvar="BADACOST_MAX_MEMORY",
        callback=_limit_memory,
        help="Memory that reading a file may take, such as 4GB; 1 GB by default.",
    ),
]
Model = Annotated[Path, typer.Argument(help="A model of `badacost fit`.")]
OtherCosts = Annotated[
    Path | None, of_tables(help="CSV file of other costs than those of the fit.")
]
Page = Annotated[Path, typer.Option(help="The HTML file to write.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors and notes only.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")]
Table = Annotated[
    Path, typer.Argument(help="Table: .csv or .tsv, also with .gz added, or .parquet.")
]
Target = Annotated[str, typer.Option(help="Column of the classes.")]
Title = Annotated[str | None, typer.Option(help="Title of the page.")]


def check_jobs(jobs: int | None) -> None:
    """Refuse zero threads."""
    if jobs == 0:
        raise ValueError("--jobs must not be 0: use -1 for one thread per core.")


def given(context: typer.Context, panel: str | None = None) -> list[str]:
    """Return what is on the command line, or only the options of a panel of the help."""
    return [
        option.opts[0]
        for option in context.command.params
        if context.get_parameter_source(str(option.name)).name != "DEFAULT"  # type: ignore[union-attr]
        and panel in (None, getattr(option, "rich_help_panel", None))
    ]


def refuse(given: Iterable[str], reason: str) -> None:
    """Refuse options that are not for this case."""
    for name in given:
        raise ValueError(f"{name} is of no use here, since {reason}: leave it out.")
