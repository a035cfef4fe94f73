"""Errors of commands: one line and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer


@contextmanager
def plain_errors(stopped: str, status: int = 1) -> Iterator[None]:
    """Turn the mistakes of users into one line and an exit status.

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
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(status) from error


def refuse_options(options: dict[str, Any], reason: str) -> None:
    """Refuse options that were given, but are not for this case; None and False stand for none."""
    given = [name for name, value in options.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"{given[0]} is of no use here, since {reason}: leave it out.")
