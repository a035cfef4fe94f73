"""``badacost``: the root of all commands."""

from __future__ import annotations

from typing import Annotated

import typer

from badacost import __version__
from badacost.cli import (
    costs,
    datasets,
    demo,
    detect,
    evaluate,
    explore,
    export,
    fit,
    predict,
    report,
    train_detector,
    warmup,
)
from badacost.cli.help_text import Group, show_flags

_TABLES = "Tables"
_DETECTION = "Detection"
_HOUSEKEEPING = "Housekeeping"


app = typer.Typer(
    cls=Group,
    help="Decisions whose mistakes have different prices.",
    epilog="Exit status: 0 success, 1 wrong data or files, 2 wrong usage, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=True,
)
app.command(rich_help_panel=_TABLES)(fit.fit)
app.command(rich_help_panel=_TABLES)(predict.predict)
app.command(rich_help_panel=_TABLES)(evaluate.evaluate)
app.command(rich_help_panel=_TABLES)(report.report)
app.command(rich_help_panel=_TABLES)(explore.explore)
app.command(rich_help_panel=_TABLES)(export.export)
app.add_typer(costs.app, name="costs", rich_help_panel=_TABLES)
app.add_typer(datasets.app, name="datasets", rich_help_panel=_TABLES)
app.command(rich_help_panel=_DETECTION)(detect.detect)
app.command(rich_help_panel=_DETECTION)(train_detector.train_detector)
app.add_typer(demo.app, name="demo", rich_help_panel=_DETECTION)
app.command(rich_help_panel=_HOUSEKEEPING)(warmup.warmup)
show_flags(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Decisions whose mistakes have different prices."""
