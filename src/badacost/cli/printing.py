"""What commands print: errors, notes, JSON and tables."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from badacost.io.atomic_file import NO_ROOM, write_error

if TYPE_CHECKING:
    from rich.table import Table

_MAX_CELL_LENGTH = 60


@contextmanager
def plain_errors(stopped: str, status: int = 1) -> Iterator[None]:
    """Turn the mistakes of users into one line and an exit status; also a decorator of commands.

    An interruption by the user prints `stopped`; the exit status is 130 then.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(stopped, err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # as of `| head`
        raise
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            error = write_error(error.filename or "standard output", error)
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(status) from error


def note(text: str | None) -> None:
    """Print a note on standard error, if there is one."""
    if text is not None:
        typer.echo(f"Note: {text}", err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each warning of the library once, in a line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                note(text)


def write_json(value: Any) -> None:
    """Write a value to standard output, in one line; arrays and numbers of NumPy must be finite."""
    typer.echo(json.dumps(value, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def text_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], n_text: int = 1, **options: Any
) -> Table:
    """Make a table of plain text, in which brackets are no markup; all but `n_text` are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", **options)
    for number, column in enumerate(head):
        justify: Any = "left" if number < n_text else "right"
        table.add_column(Text(column), justify=justify)
    for row in rows:
        table.add_row(*(Text(_short(cell)) for cell in row))
    return table


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CELL_LENGTH else f"{text[: _MAX_CELL_LENGTH - 3]}..."
