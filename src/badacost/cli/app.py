"""``badacost``: the root of all commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from badacost.cli import demo, detect, evaluate, experiment, report, train_detector

app = typer.Typer(
    help="Decisions whose mistakes have different prices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(detect.detect)
app.command()(evaluate.evaluate)
app.command()(report.report)
app.command()(train_detector.train_detector)
app.add_typer(demo.app, name="demo")
app.add_typer(experiment.app, name="experiment")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("badacost"))
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Decisions whose mistakes have different prices."""
