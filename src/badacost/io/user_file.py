"""Opening of regular files: others, such as pipes, are refused without waiting for them."""

from __future__ import annotations

import os
import stat
from io import BufferedReader

# A pipe without a writer must not be waited for.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file to read its bytes.

    Parameters
    ----------
    path : str or path-like
        The file; links are followed.

    Returns
    -------
    binary file
        To be closed by the caller.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, OSError
        Where there is no such file, with a message that is a sentence and names the remedy.

    Examples
    --------
    >>> open_regular("no-such-file.csv")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no file 'no-such-file.csv': check its name and folder.
    """
    name = f"{os.fspath(path)!r:.300}"
    if os.path.isdir(path):
        raise IsADirectoryError(f"{name} is a folder: name a file.")
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a name with a null character
        raise FileNotFoundError(f"there is no file {name}: check its name and folder.") from None
    except OSError as error:
        raise type(error)(f"{name} cannot be opened: {error.strerror}.") from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(f"{name} is not a regular file: copy its contents into one.")
