"""Help of all commands: flags have no type, and every option says what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from badacost.cli.app import app


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands, and the words that call them."""
    yield path, command
    for name, other in getattr(command, "commands", {}).items():
        yield from commands(other, (*path, name))


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_flags_have_no_type(path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown = CliRunner().invoke(app, [*path, "--help"]).output
    assert "--help" in shown
    assert "<bool>" not in shown
    assert "BOOLEAN" not in shown


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_is_explained(path) -> None:
    for option in COMMANDS[path].params:
        assert option.help, option.name
        assert option.help.endswith("."), option.help


def test_options_keep_their_type() -> None:
    shown = CliRunner().invoke(app, ["demo", "detect", "--help"]).output
    assert "--output" in shown
    assert "<path>" in shown or "PATH" in shown
