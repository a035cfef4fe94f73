"""Files that are written as a whole: a reader sees the old file or the new one, never a part.

An error of the system, such as a full disk, becomes a sentence with the remedy.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

TEMPORARY_NAMES = f".{'[0-9a-f]' * 32}.tmp"  # pattern of what a killed process can leave behind
_DESCRIPTORS = "/proc/self/fd"
_OPEN_FILES = ("/proc/", "/dev/fd/")  # whose entries are what processes have open
NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", -1), errno.EFBIG)
_REASONS = dict.fromkeys(
    NO_ROOM, "the disk is full: make room there, or name a file on another disk"
) | {
    errno.EFBIG: "the file-size limit is reached: raise it (ulimit -f)",
    errno.ENOENT: "its folder does not exist: create it first",
}


@contextmanager
def replaced_file(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` unless there is an error.

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
    temporary = target.with_name(f".{uuid4().hex}.tmp")
    with plain_write_errors(path), ExitStack() as stack:
        stack.callback(temporary.unlink, missing_ok=True)
        written, unnamed = temporary, _unnamed_file(target.parent)
        if unnamed is not None:
            stack.callback(os.close, unnamed)
            written = Path(f"{_DESCRIPTORS}/{unnamed}")
        yield written
        if target.exists():
            shutil.copymode(target, written)
        _flush(written, durable)  # which takes time, before the file has a name
        if unnamed is not None:
            try:
                os.link(written, temporary, src_dir_fd=unnamed)  # any, so that links are followed
            except OSError:  # of confined processes, and of some disks in a network
                shutil.copy(written, temporary)
                _flush(temporary, durable)
        os.replace(temporary, target)
        with suppress(OSError):  # of systems on which a folder cannot be opened
            _flush(target.parent, durable, os.O_RDONLY)


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
    """Return whether a path is a device, a pipe or a file descriptor, which cannot be replaced.

    >>> is_stream(os.devnull), is_stream("found.csv")
    (True, False)
    """
    folder = os.path.realpath(os.path.dirname(path))
    if not os.path.exists(path) or f"{folder}/".startswith(_OPEN_FILES):
        return os.path.exists(path)
    if os.path.islink(path):
        return is_stream(os.path.join(folder, os.readlink(path)))
    return not os.path.isfile(path) and not os.path.isdir(path)


def _unnamed_file(folder: Path) -> int | None:
    """Open a file without a name, which a killed process does not leave; None if impossible."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:  # of this kind of disk, or as the folder is missing, which the writer will find
        return None


@contextmanager
def plain_write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system into sentences with the remedy; others are not changed.

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
    """Return an error of the same type, whose message is a sentence with the remedy."""
    reason = _REASONS.get(error.errno or 0, f"{error.strerror}: name a file in another folder")
    return type(error)(f"cannot write {os.fspath(path)!r:.300}: {reason}.")
