"""Files that are written as a whole: a reader sees the old file or the new one, never a part.

What keeps a file from being written, such as a full disk, is told in one sentence with the remedy.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

TEMPORARY_NAMES = f".{'[0-9a-f]' * 32}.tmp"  # pattern of what a killed process can leave behind
_DESCRIPTORS = "/proc/self/fd"
_OPEN_FILES = ("/proc/", "/dev/fd/")  # whose entries are what processes have open
_MAX_LINKS = 40
_NO_ROOM = "make room there, or name a file on another disk"
_NO_RIGHT = "change its permissions, or name a file in another folder"
NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", -1), errno.EFBIG)
_REASONS = {
    errno.ENOSPC: f"the disk is full: {_NO_ROOM}",
    getattr(errno, "EDQUOT", -1): f"the disk quota is exceeded: {_NO_ROOM}",
    errno.EFBIG: "the file-size limit is reached: raise it (ulimit -f)",
    errno.EROFS: "the disk is read-only: name a file on another disk",
    errno.EACCES: f"its folder is not writable: {_NO_RIGHT}",
    errno.EPERM: f"its folder is not writable: {_NO_RIGHT}",
    errno.ENOENT: "its folder does not exist: create it first",
    errno.EEXIST: "a file is in the place of a folder: choose another path",
    errno.ENOTDIR: "a file is in the place of a folder: choose another path",
    errno.EISDIR: "it is a folder: name a file",
    errno.ENAMETOOLONG: "its name is too long: shorten it",
}


@contextmanager
def replaced_file(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary path to write to, which takes the place of `path` unless there is an error.

    Parameters
    ----------
    path : str or path-like
        The file to write; its folder must exist. Links are followed, and the permissions of a file
        that is there are kept.
    durable : bool, default=True
        Whether to wait until the new file is on the disk, so that a power cut leaves one of the
        two.

    Yields
    ------
    Path
        A path to write to: a file without a name where the system has such, so that nothing is
        left over if the process is killed, or else one in the same folder that is not there yet;
        `path` itself where it is a stream (`is_stream`).

    Raises
    ------
    OSError
        Where the file cannot be written, in a sentence; what was there before is as it was.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replaced_file(Path(folder, "numbers.txt")) as temporary:
    ...         size = temporary.write_text("1 2 3")
    ...     [path.name for path in Path(folder).iterdir()]
    ['numbers.txt']
    """
    if is_stream(path):
        with plain_write_errors(path):
            yield Path(path)
        return
    target = Path(os.path.realpath(path))
    with plain_write_errors(path):  # the name may be too long to look at
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
    temporary = target.with_name(f".{uuid4().hex}.tmp")
    with plain_write_errors(path):
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        unnamed = _unnamed_file(target.parent)
        try:
            if unnamed is None:
                yield temporary
                _flush(temporary, durable)
            else:
                yield (place := Path(f"{_DESCRIPTORS}/{unnamed}"))
                _flush(place, durable)
                if mode is not None:
                    os.fchmod(unnamed, mode)
                try:
                    os.link(place, temporary, src_dir_fd=unnamed)  # any, so that links are followed
                except OSError:  # of confined processes, and of some disks in a network
                    with open(unnamed, "rb", closefd=False) as file, open(temporary, "xb") as copy:
                        file.seek(0)
                        shutil.copyfileobj(file, copy)
                    _flush(temporary, durable)
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
            with suppress(OSError):  # of systems on which a folder is no file
                _flush(target.parent, durable, os.O_RDONLY)
        finally:
            if unnamed is not None:
                os.close(unnamed)
            temporary.unlink(missing_ok=True)


def _flush(path: Path, durable: bool, flags: int = os.O_RDWR) -> None:
    """Wait until a file, or the names in a folder, are on the disk, if that is wanted."""
    if not durable:
        return
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe or what a process has open: it cannot be replaced.

    >>> is_stream(os.devnull), is_stream("found.csv")
    (True, False)
    """
    place = os.fspath(path)
    for _ in range(_MAX_LINKS):
        folder = os.path.realpath(os.path.dirname(place))
        if f"{folder}/".startswith(_OPEN_FILES):
            return True
        if not os.path.islink(place):
            break
        place = os.path.join(folder, os.readlink(place))
    return os.path.exists(place) and not os.path.isfile(place) and not os.path.isdir(place)


def _unnamed_file(folder: Path) -> int | None:
    """Open a file without a name, which goes if this process is killed; None if there are none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:  # of this kind of disk; whoever writes to a folder that is missing is told
        return None


@contextmanager
def plain_write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in a sentence why a file or folder cannot be written; other errors are not changed.

    >>> with plain_write_errors("found.csv"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    OSError: cannot write 'found.csv': the disk is full: make room there, or name a file on \
another disk.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it is a sentence already
            raise
        raise write_error(path, error) from error


def write_error(path: str | os.PathLike[str], error: OSError) -> OSError:
    """Return the error of a system as one that says in a sentence what to do."""
    reason = _REASONS.get(error.errno or 0, f"{error.strerror}: name a file in another folder")
    return type(error)(f"cannot write {os.fspath(path)!r:.300}: {reason}.")
