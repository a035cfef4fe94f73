"""What commands print."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pytest
import typer
from rich.console import Console

from badacost.cli.printing import note, plain_errors, text_table, warnings_as_notes, write_json


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ValueError("wrong: do it right."), 3, "Error: wrong: do it right.\n"),
        (FileNotFoundError("no file"), 3, "Error: no file\n"),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
    ],
)
def test_errors_are_one_line(error, status, said, capsys) -> None:
    @plain_errors("Stopped.", status=3)
    def command() -> None:
        raise error

    for _ in range(2):
        with pytest.raises(typer.Exit) as stop:
            command()
        assert stop.value.exit_code == status
        assert capsys.readouterr().err == said


def test_mistakes_of_ours_are_not_hidden() -> None:
    with pytest.raises(TypeError), plain_errors("Stopped."):
        raise TypeError("a bug")


def test_notes(capsys) -> None:
    note(None)
    with warnings_as_notes():
        for text in ("few rows", "rare class", "few rows"):
            warnings.warn(text, stacklevel=1)
    shown = capsys.readouterr()
    assert shown.err == "Note: few rows\nNote: rare class\n"
    assert shown.out == ""


def test_json_of_numpy(capsys) -> None:
    write_json({"a": np.arange(2), "b": np.float64(0.5), "c": np.bool_(True), "d": complex(1)})
    assert json.loads(capsys.readouterr().out) == {"a": [0, 1], "b": 0.5, "c": True, "d": "(1+0j)"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"a": float("nan")})


def test_cells_are_plain_text() -> None:
    console = Console(width=200, file=io.StringIO())
    console.print(text_table(["[b]name", "n"], [["[red]a", "1"], ["x" * 61, "22"]], title="T"))
    shown = console.file.getvalue()
    assert "[b]name" in shown
    assert "[red]a" in shown
    assert f" {'x' * 57}... " in shown
    assert "    1 \n" in shown  # numbers to the right
