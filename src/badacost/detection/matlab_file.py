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
import time
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from badacost.io.budget import DEFAULT_MEMORY, Budget, BudgetError
from badacost.io.model_file import ModelFileError, describe, open_model, refuse

_MAGIC = b"MATLAB 5.0 MAT-file"
_HEADER_BYTES = 128
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_NUMBERS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)
_TEXTS = (1, 2, 3, 4, 16, 17, 18)
_CELL_CLASS, _STRUCT_CLASS, _CHAR_CLASS = 1, 2, 4
_NUMBER_CLASSES = range(6, 16)
_FUNCTION_CLASS = 16
_NO_CLASS = -1  # of a matrix of which nothing is said
_COMPLEX_FLAG = 0x800
_MAX_NAME = 64  # letters of a field, with the zero after them
_MAX_FIELDS = 256  # the reader takes the square of their number; published detectors have 30
_MAX_DIMENSIONS = 8
_MAX_DEPTH = 16
# What the reader takes for a matrix, an entry of a struct, a text, and what these consist of.
_BYTES_OF_PART, _BYTES_OF_STRUCT, _BYTES_OF_TEXT = 250, 400, 300
_BYTES_OF_NUMBER, _BYTES_OF_LETTER = 8, 8
_PEEK = 1024  # bytes in which the header of a variable is found, packed or not
_BLOCK = 2**20  # that is unpacked at once
_VARIABLES_PER_CHECK = 4096
_SECONDS_PER_BYTE = 60 / DEFAULT_MEMORY


class Clock:
    """Seconds of this thread that parsing may still take: a minute for each gigabyte of a budget.

    Entries of these files can refer to each other, so that a small file can take long.
    """

    def __init__(self, budget: Budget):
        self._seconds = max(budget.max_memory * _SECONDS_PER_BYTE, 1.0)
        self._end = time.thread_time() + self._seconds

    def check(self) -> None:
        """Raise when the time is over."""
        if time.thread_time() > self._end:
            raise BudgetError(
                f"reading takes more than {self._seconds:.0f} s: split the file, or raise "
                "max_memory= (--max-memory), which also raises the time limit"
            )


def is_matlab(path: str | os.PathLike[str]) -> bool:
    """Return whether a file says that it is a MATLAB file of version 5 to 7."""
    with open_model(path) as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_variable(path: str | os.PathLike[str], name: str, budget: Budget) -> NDArray[Any]:
    """Read a variable that consists of numbers, text, cells and structs.

    It is returned as by `scipy.io.loadmat`, structs as objects with attributes. A `ModelFileError`
    is raised where the file is damaged, would take more than the budget, or does not have the
    variable.
    """
    with open_model(path) as file:
        try:
            stream: Any = _only(file, name.encode("ascii"), budget)
            contents = loadmat(stream, struct_as_record=False, mat_dtype=True)
            return np.asarray(contents[name])
        # The reader may raise anything on damaged files.
        except Exception as error:
            reason = str(error) or type(error).__name__
            if not isinstance(error, ModelFileError | BudgetError):
                reason = f"it is damaged ({reason})"
            raise ModelFileError(f"cannot read {describe(path)}: {reason}.") from error


def _only(file: BinaryIO, name: bytes, budget: Budget) -> io.BytesIO:
    """Return the file with nothing but one variable, expanded and walked through."""
    header = file.read(_HEADER_BYTES)
    if header[: len(_MAGIC)] != _MAGIC or len(header) < _HEADER_BYTES:
        refuse("it is not a MATLAB file of version 5 to 7")
    order = "<" if header[126:128] == b"IM" else ">"
    found = _find(file, name, order, budget)
    budget.check(2 * found.n_bytes)
    stream = io.BytesIO()
    stream.write(header)
    for block in _blocks(file, found):
        stream.write(block)
        if stream.tell() > _HEADER_BYTES + found.n_bytes:
            refuse(f"something follows the variable {name.decode()!r}")
    with stream.getbuffer() as data:
        walk = _Walk(data[_HEADER_BYTES:], order, budget)
        if walk.matrix(0) != len(data) - _HEADER_BYTES:
            refuse(f"something follows the variable {name.decode()!r}")
    stream.seek(0)
    return stream


class _Place(NamedTuple):
    """Where a variable is in a file, whether it is compressed, and its bytes once it is not."""

    begin: int
    length: int
    is_packed: bool
    n_bytes: int


def _find(file: BinaryIO, name: bytes, order: str, budget: Budget) -> _Place:
    """Return where a variable is; all others are passed over by their lengths."""
    size, position = os.fstat(file.fileno()).st_size, _HEADER_BYTES
    clock, number = Clock(budget), 0
    while position < size:
        if number % _VARIABLES_PER_CHECK == 0:
            clock.check()
        number += 1
        file.seek(position)
        head = file.read(_PEEK)
        kind, length = _tag(head, 0, order)
        place = _Place(position, 8 + length, False, 8 + length)
        if position + 8 + length > size:
            refuse("it ends too early")
        if kind == _COMPRESSED:
            head = zlib.decompressobj().decompress(head[8 : 8 + length], _PEEK)
            kind, n_bytes = _tag(head, 0, order)
            place = _Place(position + 8, length, True, 8 + n_bytes)
        if kind != _MATRIX:
            refuse("a variable is not one")
        if _name(head, order) == name:
            return place
        position += 8 + length
    refuse(f"it has no variable {name.decode()!r}")


def _name(head: bytes, order: str) -> bytes:
    """Return the name in the first bytes of a variable; none where it has no proper header."""
    if len(head) < 32:
        return b""
    at = 32 + -(-_tag(head, 24, order)[1] // 8) * 8  # after the flags and the shape
    if at + 8 > len(head):
        return b""
    kind, length = _tag(head, at, order)
    if kind >> 16:  # a name of at most four letters
        return head[at + 4 : at + 4 + (kind >> 16)]
    return head[at + 8 : at + 8 + length]


def _blocks(file: BinaryIO, place: _Place) -> Iterator[bytes]:
    """Yield the bytes of a variable, unpacked."""
    file.seek(place.begin)
    unpacker, length = zlib.decompressobj(), place.length
    while length and (data := file.read(min(length, _BLOCK))):
        length -= len(data)
        while place.is_packed and (block := unpacker.decompress(data, _BLOCK)):
            yield block
            data = unpacker.unconsumed_tail
        if not place.is_packed:
            yield data


def _tag(data: bytes | memoryview, position: int, order: str) -> tuple[int, int]:
    """Return the two words that an element begins with."""
    if position + 8 > len(data):
        refuse("it ends too early")
    first, second = struct.unpack_from(f"{order}II", data, position)
    return int(first), int(second)


class _Header(NamedTuple):
    """What stands before the contents of a matrix, and where they begin and end."""

    class_: int
    n_entries: int
    begin: int
    end: int


class _Walk:
    """A walk through the elements of a variable, which ends where something is not as it must be.

    All methods take the position of an element.
    """

    def __init__(self, data: memoryview, order: str, budget: Budget):
        self._data = data
        self._order = order
        self._budget, self._clock = budget, Clock(budget)
        self._memory = len(data)

    def take(self, n_bytes: int) -> None:
        """Count memory that the reader will take, unless it is too much, or takes too long."""
        self._memory += n_bytes
        self._budget.check(self._memory)
        self._clock.check()

    def element(self, position: int, kinds: tuple[int, ...]) -> tuple[memoryview, int]:
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
            return _Header(_NO_CLASS, 0, end, end)
        flags, position = self.element(position + 8, (_UINT32,))
        sides, position = self.element(position, (_INT32,))
        _, position = self.element(position, (_INT8,))  # the name
        n_dimensions = len(sides) // 4
        if len(flags) != 8 or len(sides) % 4 or not 2 <= n_dimensions <= _MAX_DIMENSIONS:
            refuse("a matrix has no proper class or shape")
        shape = struct.unpack(f"{self._order}{n_dimensions}i", sides)
        if min(shape) < 0:
            refuse("a matrix has a negative size")
        word = struct.unpack(f"{self._order}II", flags)[0]
        if word & _COMPLEX_FLAG:
            refuse("it holds complex numbers")
        return _Header(word & 0xFF, math.prod(shape), position, end)

    def matrix(self, position: int, depth: int = 0) -> int:
        """Return where a matrix ends, after a walk through all that is in it."""
        header = self.header(position)
        if depth > _MAX_DEPTH:
            refuse(f"its parts are nested more than {_MAX_DEPTH} deep")
        position, n_entries = header.begin, header.n_entries
        n_children = 0
        if header.class_ == _NO_CLASS:
            pass
        elif header.class_ == _CELL_CLASS:
            n_children = n_entries
        elif header.class_ == _STRUCT_CLASS:
            n_fields, position = self.fields(position)
            n_children = n_entries * n_fields
            self.take(_BYTES_OF_STRUCT * n_entries)
        elif header.class_ == _FUNCTION_CLASS:  # read, and not used: nothing runs it
            n_children = 1
        elif header.class_ == _CHAR_CLASS or header.class_ in _NUMBER_CLASSES:
            if n_entries > header.end - position:
                refuse("a matrix has more entries than bytes")
            if header.class_ == _CHAR_CLASS:
                stored, position = self.element(position, _TEXTS)
                self.take(_BYTES_OF_TEXT + _BYTES_OF_LETTER * n_entries + len(stored))
            else:
                stored, position = self.element(position, _NUMBERS)
                self.take(_BYTES_OF_NUMBER * n_entries + len(stored))
        else:
            refuse("it holds something else than numbers, text, cells and structs")
        if 8 * n_children > header.end - position:
            refuse("a matrix has more parts than bytes")
        self.take(_BYTES_OF_PART * n_children)
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
        n_fields = len(names) // longest
        if n_fields > _MAX_FIELDS:
            refuse(f"a struct has {n_fields} fields, more than {_MAX_FIELDS}")
        # The reader looks for the zero after a name, however far away it is.
        if longest > _MAX_NAME or any(names[longest - 1 :: longest]):
            refuse("the fields of a struct have no proper names")
        return n_fields, position
