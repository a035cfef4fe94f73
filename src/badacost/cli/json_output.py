"""The option ``--json`` of commands: standard output is JSON, all else goes to standard error."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import typer


def write_json(value: Any) -> None:
    """Write a value to standard output, in one line; arrays and numbers of NumPy must be finite."""
    typer.echo(json.dumps(value, allow_nan=False, default=_plain))


def note(text: str) -> None:
    """Print a note on standard error."""
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


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)
