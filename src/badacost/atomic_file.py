"""Files that are written as a whole: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

TEMPORARY_NAMES = f".{'[0-9a-f]' * 32}.tmp"  # pattern of what a killed process can leave behind


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to, which takes the place of `path` unless there is an error.

    Parameters
    ----------
    path : str or path-like
        The file to write; its folder must exist.

    Yields
    ------
    Path
        A path in the same folder, where there is no file yet.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replaced_file(Path(folder, "numbers.txt")) as temporary:
    ...         size = temporary.write_text("1 2 3")
    ...     [path.name for path in Path(folder).iterdir()]
    ['numbers.txt']
    """
    target = Path(path)
    temporary = target.with_name(f".{uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
