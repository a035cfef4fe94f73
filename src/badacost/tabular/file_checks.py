"""What is asked of a file from a user before it is unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

NO_ROWS = "has no rows below the names of its columns: add some"


def refuse_file(path: Path, reason: str) -> NoReturn:
    """Raise an error that names the file."""
    raise ValueError(f"{str(path)!r} {reason}.")


def check_size(path: Path, size: int, max_bytes: int) -> None:
    """Refuse a file whose table would take too many bytes in memory."""
    if size > max_bytes:
        refuse_file(
            path,
            f"would take {size} bytes or more in memory, and {max_bytes} are allowed: divide it, "
            "or raise max_bytes of read_table",
        )
