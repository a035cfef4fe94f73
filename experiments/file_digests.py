"""Hashes of files, kept by path, size and time, so that a resumed run need not read all of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Self

import numpy as np

from badacost.io.atomic_file import replaced_file
from badacost.io.budget import Budget
from badacost.io.json_document import parse_json
from badacost.io.user_file import open_regular

_DIGEST = re.compile("[0-9a-f]{64}")


class FileDigests:
    """The hashes in a file, which is written again at the end of a ``with`` statement.

    A hash that is kept counts only for a file of the same path, size and time; a damaged file of
    hashes is made again.
    """

    def __init__(self, path: Path):
        self._path = path
        self._kept: dict[str, Any] = {}
        self._known: dict[str, list[Any]] = {}
        if path.exists():
            with open_regular(path) as file:
                try:
                    found = parse_json(file.read(), Budget.of(None))
                except ValueError:
                    found = None
            self._kept = found if isinstance(found, dict) else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._known != self._kept:
            with replaced_file(self._path) as temporary:
                temporary.write_text(json.dumps(self._known))

    def of(self, file: Path) -> str:
        """Return the hash of a file."""
        status = os.stat(file)
        facts, name = [status.st_size, status.st_mtime_ns], os.path.abspath(file)
        kept = self._kept.get(name)
        if (
            not isinstance(kept, list)
            or len(kept) != 3
            or kept[:2] != facts
            or not isinstance(kept[2], str)
            or not _DIGEST.fullmatch(kept[2])
        ):
            with open_regular(file) as opened:
                kept = [*facts, hashlib.file_digest(opened, "sha256").hexdigest()]
        self._known[name] = kept
        return str(kept[2])


def digest_of(pixels: Any) -> str:
    """Return the hash of an array."""
    return hashlib.sha256(np.ascontiguousarray(pixels).tobytes()).hexdigest()
