"""Arrays in temporary files, which go when the arrays do."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mapped_array(
    shape: tuple[int, ...], dtype: Any, folder: str | os.PathLike[str] | None, remedy: str
) -> NDArray[Any]:
    """Return an array in a file in a folder; where there is no room, the error has the remedy.

    >>> mapped_array((2, 3), np.uint8, None, "set bins_folder to another folder").tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    place = tempfile.gettempdir() if folder is None else os.fspath(folder)
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            _reserve(file.fileno(), n_bytes)
            return np.asarray(np.memmap(file, dtype, "w+", shape=shape))
    except OSError as error:
        raise type(error)(
            f"cannot keep {n_bytes / 2**20:,.0f} MiB in the folder {place!r:.300} "
            f"({error.strerror}): {remedy}."
        ) from error


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Take the room of a file on its disk: a map of what is not there would end the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # this disk reserves nothing
            raise
