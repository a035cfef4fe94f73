"""Options that were given are told from those that were not, also if their value is the default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from badacost.cli import app as whole
from badacost.cli import options
from badacost.io.budget import Budget, set_max_memory

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


limited = typer.Typer()


@limited.command()
def read(max_memory: options.MaxMemory = None) -> None:
    """Read nothing."""


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


@pytest.fixture
def usual_limit() -> Iterator[None]:
    yield
    set_max_memory(None)


@pytest.mark.parametrize(
    ("arguments", "variable", "limit"),
    [("--max-memory 4GB", "", 4 * 10**9), ("", "64 MiB", 2**26), ("", "", 10**9)],
)
def test_the_limit_is_that_of_the_command_then_of_the_environment_then_the_usual_one(
    arguments, variable, limit, usual_limit, monkeypatch
) -> None:
    monkeypatch.setenv("BADACOST_MAX_MEMORY", variable)
    set_max_memory(5)
    told = CliRunner().invoke(limited, arguments.split())
    assert told.exit_code == 0, told.output
    assert Budget.of(None).max_memory == limit


def test_a_size_that_is_none_is_wrong_usage(usual_limit) -> None:
    told = CliRunner().invoke(limited, ["--max-memory", "much"])
    assert told.exit_code == 2
    assert "must be a number of bytes or a string such as '4 GB'" in " ".join(told.stderr.split())


def test_every_command_that_reads_files_takes_a_limit() -> None:
    root = typer.main.get_command(whole.app)
    commands = {name: command for name, command in root.commands.items() if name != "warmup"}
    for group in ("costs", "datasets"):
        commands |= commands.pop(group).commands
    without = [
        name
        for name, command in commands.items()
        if not any(option.name == "max_memory" for option in command.params)
    ]
    assert without == ["demo"]
