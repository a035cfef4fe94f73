"""The results file of an experiment: one JSON object a line, appended as soon as it is known.

A killed run leaves at most half a line at the end, which the next run removes; everything before it
counts. The first line says which experiment it is, so that results of different settings or
versions never mix.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_MAX_BYTES = 2**28


class JournalError(ValueError):
    """A results file that is damaged, or that belongs to another experiment."""


class Journal:
    """Finished results on disk; opening it again reads them back.

    Parameters
    ----------
    path : path-like
        The file; it is made where there is none.
    header : dict
        Settings and versions. A file that begins with others is refused.

    Attributes
    ----------
    records : list of dict
        Everything recorded so far, without the header.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.jsonl"
    >>> Journal(path, {"seed": 0}).append({"fold": 1, "cost": 0.5})
    >>> Journal(path, {"seed": 0}).records
    [{'fold': 1, 'cost': 0.5}]
    """

    def __init__(self, path: str | os.PathLike[str], header: dict[str, Any]):
        self.path = Path(path)
        self.records: list[dict[str, Any]] = []
        lines = self._complete_lines()
        if not lines:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write(header)
            return
        found, *self.records = (self._parsed(i, line) for i, line in enumerate(lines, start=1))
        self._check_header(found, json.loads(json.dumps(header)))

    def append(self, record: dict[str, Any]) -> None:
        """Record a result; it is on disk when this returns."""
        self._write(record)
        self.records.append(record)

    def _complete_lines(self) -> list[str]:
        """The lines of the file; half a line at its end is cut off."""
        if not self.path.exists():
            return []
        if self.path.stat().st_size > _MAX_BYTES:
            raise JournalError(f"{self.path} is larger than any results file: remove it.")
        content = self.path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if len(complete) < len(content):
            with self.path.open("r+b") as file:
                file.truncate(len(complete))
        return complete.decode("utf-8", errors="replace").splitlines()

    def _parsed(self, number: int, line: str) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise JournalError(
                f"line {number} of {self.path} is not a result: remove the line, or the file to "
                "start again."
            )
        return record

    def _check_header(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        for key in sorted({*found, *wanted}):
            if found.get(key) != wanted.get(key):
                raise JournalError(
                    f"{self.path} was made with other {key} ({found.get(key)} instead of "
                    f"{wanted.get(key)}): choose another output folder, or remove the file to "
                    "start again."
                )

    def _write(self, record: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
