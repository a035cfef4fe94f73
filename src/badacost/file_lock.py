"""`FileLock`: one process at a time writes a file or folder.

The system holds the lock for the process and releases it when that ends, however it ends: what a
killed process leaves behind is an unlocked file, which the next one takes over.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

from badacost.atomic_file import plain_write_errors

LOCK_NAME = ".lock"  # in a folder; that of a file stands beside it and has its name as well
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_held: set[int] = set()

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError from error
            raise
else:
    import fcntl

    def _try(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """A lock that is held until `release`, or the end of a ``with`` statement.

    A fork has no part in it: locks belong to the process that took them. On a file system without
    locks nothing is locked.

    Parameters
    ----------
    path : str or path-like
        The file that is going to be written, in a folder that exists, or a folder.

    Raises
    ------
    BlockingIOError
        Where another process, or another part of this one, writes there.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, FileLock(Path(folder, "found.csv")):
    ...     [path.name for path in Path(folder).iterdir()]
    ['.found.csv.lock']
    """

    def __init__(self, path: str | os.PathLike[str]):
        target = Path(os.path.realpath(path))
        is_folder = target.is_dir()
        name = LOCK_NAME if is_folder else f".{target.name}{LOCK_NAME}"
        self._place = target / name if is_folder else target.with_name(name)
        self._owner = os.getpid()
        try:
            with plain_write_errors(path):
                self._descriptor = _locked(self._place)
        except BlockingIOError:
            what = "folder" if is_folder else "file"
            raise BlockingIOError(
                f"another process is writing the {what} {os.fspath(path)!r:.300}: wait until it "
                f"has ended, or name another {what}."
            ) from None
        _held.add(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others write; a second time nothing happens."""
        if self._descriptor not in _held or os.getpid() != self._owner:
            return
        if sys.platform != "win32":  # while nobody else can hold it
            self._place.unlink(missing_ok=True)
        _held.discard(self._descriptor)
        os.close(self._descriptor)
        if sys.platform == "win32":  # where open files cannot be removed
            with suppress(OSError):
                self._place.unlink(missing_ok=True)
        self._descriptor = -1


def _locked(place: Path) -> int:
    """Return the descriptor of a locked file, which is still the one at its place."""
    while True:
        descriptor = os.open(place, _FLAGS, 0o666)
        try:
            try:
                _try(descriptor)
            except BlockingIOError:
                raise
            except OSError:  # no locks on this file system
                return descriptor
            with suppress(FileNotFoundError):  # removed by the one who held it before
                if os.path.samestat(os.fstat(descriptor), os.stat(place)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _forget() -> None:
    """Close what a fork got from its parent, which keeps its locks until it ends."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
