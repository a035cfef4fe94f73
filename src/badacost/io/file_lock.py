"""`FileLock`: one process at a time writes a file or folder."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

import filelock

from badacost.io.atomic_file import write_error

_NAME = ".lock"  # in a folder; the lock of a file is beside it and has the name of the file as well
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of some file systems


def lock_of(path: str | os.PathLike[str]) -> Path:
    """Where the lock of a file or folder is; killed processes leave it, which locks nothing."""
    target = Path(os.path.realpath(path))
    return target / _NAME if target.is_dir() else target.with_name(f".{target.name}{_NAME}")


class FileLock:
    """A lock that is held until `release`, the end of a ``with`` statement, or of the process.

    A forked process does not hold it. On a file system without locks nothing is locked.

    Parameters
    ----------
    path : str or path-like
        The file that is going to be written, in a folder that exists, or a folder.
    timeout : float, default=0.0
        Seconds to wait for another process, or another thread of this one, that writes there.

    Raises
    ------
    BlockingIOError
        Where that one has not ended.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, FileLock(Path(folder, "found.csv")):
    ...     [path.name for path in Path(folder).iterdir()]
    ['.found.csv.lock']
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 0.0):
        is_folder, place = os.path.isdir(path), lock_of(path)
        self._lock = filelock.FileLock(place, timeout, thread_local=False, fallback_to_soft=False)
        if not place.parent.is_dir():  # it would be made
            raise write_error(path, FileNotFoundError(errno.ENOENT, ""))
        try:
            self._lock.acquire()
        except filelock.Timeout:
            what = "folder" if is_folder else "file"
            raise BlockingIOError(
                f"another process is writing the {what} {os.fspath(path)!r:.300}: wait until it "
                f"has ended, or name another {what}."
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise write_error(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others write; a second time nothing happens."""
        if self._lock.is_locked:
            with suppress(PermissionError):  # of Windows, which removes no open file
                Path(self._lock.lock_file).unlink(missing_ok=True)  # while no other can hold it
            self._lock.release()
