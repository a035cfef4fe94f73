"""What is asked of a file from a user."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

NO_ROWS = "has no rows below the names of its columns: add some"
BYTES_OF_COLUMN = 8000
"""Memory of a column in a data frame, beside that of its cells."""


def refuse_file(path: Path, reason: str) -> NoReturn:
    """Raise an error that names the file."""
    raise ValueError(f"{str(path)!r} {reason}.")
