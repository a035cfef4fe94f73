"""Options that were given are told from those that were not, also if their value is the default."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from badacost.cli import options

app = typer.Typer()


@app.command()
def command(
    context: typer.Context,
    file: str,
    jobs: options.Jobs = -1,
    target: options.KnownTarget = None,
    share: Annotated[float, options.of_tables(help="A share.")] = 0.0,
    clip: Annotated[bool, options.of_detection("--clip", help="Clip.")] = False,
) -> None:
    panels = (None, options.TABLES, options.DETECTION)
    typer.echo(repr([options.given(context, panel) for panel in panels]))


@pytest.mark.parametrize(
    ("arguments", "everything", "of_tables", "of_detection"),
    [
        ("f", ["file"], [], []),
        ("f --jobs -1", ["file", "--jobs"], [], []),
        ("f --share 0 --target y", ["file", "--target", "--share"], ["--target", "--share"], []),
        ("f --clip", ["file", "--clip"], [], ["--clip"]),
    ],
)
def test_given(arguments, everything, of_tables, of_detection) -> None:
    result = CliRunner().invoke(app, arguments.split())
    assert result.stdout.strip() == repr([everything, of_tables, of_detection])


def test_the_first_option_is_refused() -> None:
    options.refuse([], "nothing was given")
    with pytest.raises(ValueError, match=r"^--a is of no use here, since it rains: leave"):
        options.refuse(["--a", "--b"], "it rains")


def test_jobs() -> None:
    for jobs in (None, -1, 3):
        options.check_jobs(jobs)
    with pytest.raises(ValueError, match="--jobs must not be 0: use -1"):
        options.check_jobs(0)
