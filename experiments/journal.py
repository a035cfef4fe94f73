"""The results file of an experiment: one JSON object a line, appended as soon as it is known.

A killed run leaves at most half a line at the end, which the next run removes; everything before it
counts. The first line says which experiment it is, so that results of different settings or
versions never mix. One process at a time has the file.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from badacost.io.atomic_file import plain_write_errors
from badacost.io.budget import Budget, BudgetError
from badacost.io.file_lock import FileLock

_BYTES_OF_JSON = 8  # in memory, for a byte of the text


class JournalError(ValueError):
    """A results file that is damaged, or that belongs to another experiment."""


class Journal:
    """Finished results on disk; opening it again reads them back, once this one is closed.

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
    >>> with Journal(path, {"seed": 0}) as journal:
    ...     journal.append({"fold": 1, "cost": 0.5})
    >>> with Journal(path, {"seed": 0}) as journal:
    ...     journal.records
    [{'fold': 1, 'cost': 0.5}]
    """

    def __init__(self, path: str | os.PathLike[str], header: dict[str, Any]):
        self.path = Path(path)
        self.records: list[dict[str, Any]] = []
        with plain_write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.path)
        try:
            self._read(header)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes have the file."""
        self._lock.release()

    def append(self, record: dict[str, Any]) -> None:
        """Record a result; it is on disk when this returns."""
        self._write(record)
        self.records.append(record)

    def _read(self, header: dict[str, Any]) -> None:
        """Read what is there, or begin."""
        lines = self._complete_lines()
        if not lines:
            self._write(header)
            return
        found, *self.records = (self._parsed(i, line) for i, line in enumerate(lines, start=1))
        self._check_header(found, json.loads(json.dumps(header)))

    def _complete_lines(self) -> list[str]:
        """The lines of the file; half a line at its end is cut off."""
        if not self.path.exists():
            return []
        try:
            Budget.of(None).check(_BYTES_OF_JSON * self.path.stat().st_size)
        except BudgetError as error:
            raise JournalError(f"cannot read the results {str(self.path)!r}: {error}.") from error
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
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        with plain_write_errors(self.path):
            end = self.path.stat().st_size if self.path.exists() else 0
            try:
                with self.path.open("ab") as file:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):  # half a line would spoil the next one
                    os.truncate(self.path, end)
                raise


def read_records(path: Path, header: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a journal, none where there is no file."""
    if not path.exists():
        return []
    with Journal(path, header) as journal:
        return journal.records


def forget(path: Path) -> None:
    """Remove a journal that no other process has."""
    if path.exists():
        with FileLock(path):
            path.unlink()
