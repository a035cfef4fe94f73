"""``badacost``: the root of all commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from badacost import __version__
from badacost.cli import (
    costs,
    datasets,
    demo,
    detect,
    evaluate,
    experiment,
    explore,
    fit,
    predict,
    report,
    train_detector,
    warmup,
)

_TABLES = "Tables"
_DETECTION = "Detection"
_RESEARCH = "Research"
_HOUSEKEEPING = "Housekeeping"


class _Panels(TyperGroup):
    """Shows panels of commands in the order of their use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, panel by panel."""
        panels = (_TABLES, _DETECTION, _RESEARCH, _HOUSEKEEPING)
        return sorted(
            super().list_commands(ctx),
            key=lambda name: panels.index(self.commands[name].rich_help_panel),  # type: ignore[attr-defined]
        )


app = typer.Typer(
    cls=_Panels,
    help="Decisions whose mistakes have different prices.",
    epilog="Exit status: 0 fine, 1 something is wrong with data or files, 2 wrong usage, "
    "130 interrupted.",
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
app.add_typer(costs.app, name="costs", rich_help_panel=_TABLES)
app.add_typer(datasets.app, name="datasets", rich_help_panel=_TABLES)
app.command(rich_help_panel=_DETECTION)(detect.detect)
app.command(rich_help_panel=_DETECTION)(train_detector.train_detector)
app.add_typer(demo.app, name="demo", rich_help_panel=_DETECTION)
app.add_typer(experiment.app, name="experiment", rich_help_panel=_RESEARCH)
app.command(rich_help_panel=_HOUSEKEEPING)(warmup.warmup)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Decisions whose mistakes have different prices."""
