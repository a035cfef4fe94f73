"""The container of a published detector: a variable of a MATLAB file of version 5 to 7.

A file from a user is untrusted, and the reader of scipy trusts it: it expands what is
compressed, allocates what a header declares, and descends as deep as elements are nested. The
variable is therefore walked through first, in the order of that reader and within limits.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from badacost.model_file import ModelFileError, describe, refuse

MAX_BYTES = 2**28
_MAGIC = b"MATLAB 5.0 MAT-file"
_HEADER_BYTES = 128
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_NUMBERS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)
_TEXTS = (1, 2, 3, 4, 16, 17, 18)
_CELL_CLASS, _STRUCT_CLASS, _CHAR_CLASS = 1, 2, 4
_NUMBER_CLASSES = range(6, 16)
_FUNCTION_CLASS = 16
_COMPLEX_FLAG = 0x800
_MAX_PARTS = 2**17
_MAX_DIMENSIONS = 8
_MAX_DEPTH = 16


def is_matlab(path: str | os.PathLike[str]) -> bool:
    """Return whether a file says that it is a MATLAB file of version 5 to 7."""
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_variable(
    path: str | os.PathLike[str], name: str, *, max_bytes: int = MAX_BYTES
) -> NDArray[Any]:
    """Read a variable that consists of numbers, text, cells and structs.

    It is returned as by `scipy.io.loadmat`, structs as objects with attributes. A `ModelFileError`
    is raised where the file is damaged, has contents of more than `max_bytes`, or does not have the
    variable.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise ModelFileError(f"cannot read {describe(path)}: it is not a regular file.")
    with open(path, "rb") as file:
        data = file.read(max_bytes + 1)
    try:
        stream: Any = io.BytesIO(_only(data, name.encode("ascii"), max_bytes))
        contents = loadmat(stream, struct_as_record=False, mat_dtype=True)
        return np.asarray(contents[name])
    # The reader may raise anything on damaged files.
    except Exception as error:
        reason = str(error) or type(error).__name__
        if not isinstance(error, ModelFileError):
            reason = f"it is damaged ({reason})"
        raise ModelFileError(f"cannot read {describe(path)}: {reason}.") from error


def _only(data: bytes, name: bytes, max_bytes: int) -> bytes:
    """Return the file with nothing but one variable, expanded and walked through."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEADER_BYTES:
        refuse("it is not a MATLAB file of version 5 to 7")
    if len(data) > max_bytes:
        refuse(f"it has more than {max_bytes} bytes")
    order = "<" if data[126:128] == b"IM" else ">"
    room, position = max_bytes, _HEADER_BYTES
    while position < len(data):
        kind, length = _tag(data, position, order)
        element = data[position : position + 8 + length]
        if len(element) < 8 + length:
            refuse("it ends too early")
        position += len(element)
        if kind == _COMPRESSED:
            element = zlib.decompressobj().decompress(element[8:], room + 1)
        room -= len(element)
        if room < 0:
            refuse(f"it expands to more than {max_bytes} bytes")
        if _Walk(element, order).header(0).name == name:
            if _Walk(element, order).matrix(0) != len(element):
                refuse(f"something follows the variable {name.decode()!r}")
            return data[:_HEADER_BYTES] + element
    refuse(f"it has no variable {name.decode()!r}")


def _tag(data: bytes, position: int, order: str) -> tuple[int, int]:
    """Return the two words that an element begins with."""
    if position + 8 > len(data):
        refuse("it ends too early")
    first, second = struct.unpack_from(f"{order}II", data, position)
    return int(first), int(second)


class _Header(NamedTuple):
    """What stands before the contents of a matrix, and where they begin and end."""

    class_: int
    n_entries: int
    name: bytes
    begin: int
    end: int


class _Walk:
    """A walk through the elements of a variable, which ends where something is not as it must be.

    All methods take the position of an element.
    """

    def __init__(self, data: bytes, order: str):
        self._data = data
        self._order = order
        self._n_parts = 0

    def element(self, position: int, kinds: tuple[int, ...]) -> tuple[bytes, int]:
        """Return the contents of an element of numbers or text, and the position after it."""
        kind, length = _tag(self._data, position, self._order)
        begin = position + 8
        if kind >> 16:  # contents of at most four bytes stand in the second word
            kind, length, begin = kind & 0xFFFF, kind >> 16, position + 4
            if length > 4:
                refuse("an element does not have the length that it says")
        after = begin + length + -(begin + length - position) % 8
        if kind not in kinds or after > len(self._data):
            refuse("an element is not of the type or length that it must have")
        return self._data[begin : begin + length], after

    def header(self, position: int) -> _Header:
        """Return the header of a matrix."""
        kind, length = _tag(self._data, position, self._order)
        end = position + 8 + length
        if kind != _MATRIX or end > len(self._data):
            refuse("a matrix is not one, or ends too early")
        if length == 0:  # a short form of a matrix without entries
            return _Header(_NUMBER_CLASSES[0], 0, b"", end, end)
        flags, position = self.element(position + 8, (_UINT32,))
        sides, position = self.element(position, (_INT32,))
        name, position = self.element(position, (_INT8,))
        n_dimensions = len(sides) // 4
        if len(flags) != 8 or len(sides) % 4 or not 2 <= n_dimensions <= _MAX_DIMENSIONS:
            refuse("a matrix has no proper class or shape")
        shape = struct.unpack(f"{self._order}{n_dimensions}i", sides)
        if min(shape) < 0:
            refuse("a matrix has a negative size")
        word = struct.unpack(f"{self._order}II", flags)[0]
        if word & _COMPLEX_FLAG:
            refuse("it holds complex numbers")
        return _Header(word & 0xFF, math.prod(shape), name, position, end)

    def matrix(self, position: int, depth: int = 0) -> int:
        """Return where a matrix ends, after a walk through all that is in it."""
        header = self.header(position)
        if depth > _MAX_DEPTH:
            refuse(f"its parts are nested more than {_MAX_DEPTH} deep")
        position, n_entries = header.begin, header.n_entries
        n_children = 0
        if position == header.end and n_entries == 0:
            pass
        elif header.class_ == _CELL_CLASS:
            n_children = n_entries
        elif header.class_ == _STRUCT_CLASS:
            n_fields, position = self.fields(position)
            n_children = n_entries * n_fields
        elif header.class_ == _FUNCTION_CLASS:  # read, and not used: nothing runs it
            n_children = 1
        elif header.class_ == _CHAR_CLASS or header.class_ in _NUMBER_CLASSES:
            if n_entries > header.end - position:
                refuse("a matrix has more entries than bytes")
            kinds = _TEXTS if header.class_ == _CHAR_CLASS else _NUMBERS
            _, position = self.element(position, kinds)
            n_entries = 0  # which take no memory beyond their bytes
        else:
            refuse("it holds something else than numbers, text, cells and structs")
        self._n_parts += 1 + n_entries
        if self._n_parts + n_children > _MAX_PARTS:
            refuse(f"it has more than {_MAX_PARTS} parts")
        for _ in range(n_children):
            position = self.matrix(position, depth + 1)
        if position != header.end:
            refuse("a matrix does not have the length that it says")
        return position

    def fields(self, position: int) -> tuple[int, int]:
        """Return the number of fields of a struct, and the position after their names."""
        length, position = self.element(position, (_INT32,))
        names, position = self.element(position, (_INT8,))
        longest = struct.unpack(f"{self._order}i", length)[0]
        if longest < 1 or len(names) % longest:
            refuse("the fields of a struct have no proper names")
        return len(names) // longest, position
