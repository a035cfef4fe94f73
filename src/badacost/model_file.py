"""The container of a saved model: a zip archive of raw arrays and one JSON document.

A file from a user is untrusted. Reading ends in arrays and a header whose form was
verified, or in `ModelFileError`; nothing in a file can run code, write outside of memory, or take
more memory than its budget. `model.json` holds the kind of the model, a header and the type
and shape of each array; the array `name` is the member ``arrays/name.bin``, little-endian.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from badacost import __version__
from badacost.atomic_file import replaced_file
from badacost.budget import UNLIMITED, Budget, BudgetError
from badacost.json_document import JSONError, parse_json, parsed_size
from badacost.user_file import open_regular

_FORMAT = "badacost"
_VERSION = 2  # 1 had fewer arrays
_DOCUMENT = "model.json"
_BYTES_OF_MEMBER = 14  # in memory, for a byte of the archive's directory
_BLOCK = 2**18  # that is unpacked at once
_DTYPES = ("|b1", "<i4", "<i8", "|u1", "<u2", "<u4", "<f4", "<f8")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
_ENCRYPTED = 0x41


class ModelFileError(ValueError):
    """A file that is damaged, was altered, or is not a model file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import badacost
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "mail.badacost")
    ...     size = path.write_text("not a model")
    ...     try:
    ...         badacost.load(path)
    ...     except badacost.ModelFileError:
    ...         print("this is no model of badacost")
    this is no model of badacost
    """


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The checked contents of a model file.

    Attributes
    ----------
    kind : str
        Name of the class of the model.
    header : dict
        What the class keeps apart from arrays, as JSON has it.
    arrays : dict of str to ndarray
        Arrays in native byte order, writable.
    library : str
        Version of badacost that wrote the file.
    budget : Budget
        What a model of these contents may take; no limit where they come from no file.
    """

    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    library: str = ""
    budget: Budget = field(default_factory=lambda: UNLIMITED)


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a model file; an existing one is replaced only once the new one is complete.

    The same contents give the same bytes.

    Parameters
    ----------
    path : str or path-like
        Where to write; the folder must exist.
    kind : str
        Name of the class, a key that `load` knows.
    header : mapping of str to JSON values
        Strings, finite numbers, booleans, None, and lists and string-keyed dicts of these.
    arrays : mapping of str to ndarray
        Arrays of at most three dimensions, of booleans, 32- or 64-bit integers, 8- to 32-bit
        unsigned integers, or single or double precision.

    Raises
    ------
    FileNotFoundError
        Where the folder does not exist.
    TypeError, ValueError
        Where the header or an array cannot be held by the format.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it first.")
    for key, value in header.items():
        _check_json(key, value)
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": kind,
        "library": __version__,
        "header": dict(header),
        "arrays": {name: _array_entry(name, array) for name, array in arrays.items()},
    }
    text = json.dumps(document, allow_nan=False, sort_keys=True).encode("ascii")
    with replaced_file(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        _write_member(archive, _DOCUMENT, text)
        for name in sorted(arrays):
            array = arrays[name]
            data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            _write_member(archive, _member(name), data)


def read_model(
    path: str | os.PathLike[str],
    *,
    max_memory: int | str | None = None,
    check_kind: Callable[[str], None] | None = None,
) -> ModelFile:
    """Read and check a model file, without rebuilding the model.

    Parameters
    ----------
    path : str or path-like
        The model file.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.
    check_kind : callable, optional
        Is called with the kind before arrays are unpacked, to raise ModelFileError.

    Returns
    -------
    ModelFile
        Its contents.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        Where the file is not a complete, unaltered archive of the expected layout, or too large.
    """
    budget = Budget.of(max_memory)
    with _archive(path, budget) as archive:
        document, members = _read_document(archive, budget)
        if check_kind is not None:
            check_kind(document["kind"])
        shapes = {
            name: _checked_entry(members[_member(name)], entry)
            for name, entry in document["arrays"].items()
        }
        budget.take(sum(info.file_size for info in members.values()))
        arrays = {
            name: _read_array(archive, members[_member(name)], *shape)
            for name, shape in shapes.items()
        }
    return ModelFile(document["kind"], document["header"], arrays, document["library"], budget)


def read_kind(path: str | os.PathLike[str]) -> str:
    """Return the name of the class of the model in a file, without reading its arrays."""
    budget = Budget.default()
    with _archive(path, budget) as archive:
        document, _ = _read_document(archive, budget)
    return str(document["kind"])


def open_model(path: str | os.PathLike[str]) -> BinaryIO:
    """Open the file of a model; what is no regular file becomes a ModelFileError."""
    try:
        return open_regular(path)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise ModelFileError(f"cannot read the model file: {error}") from None


@contextmanager
def _archive(path: str | os.PathLike[str], budget: Budget) -> Iterator[zipfile.ZipFile]:
    """Open a model file; whatever is wrong with its contents becomes a ModelFileError."""
    with open_model(path) as file:
        try:
            with zipfile.ZipFile(_Guarded(file, budget)) as archive:
                yield archive
        # What zipfile raises on damaged input; ModelFileError and BudgetError are ValueErrors.
        except (
            zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError,
            RuntimeError, ValueError,
        ) as error:  # fmt: skip
            reason = str(error).rstrip(".") or "it ends too early"
            if not isinstance(error, ModelFileError | BudgetError):
                reason = f"it is damaged or no model file ({reason}), name one that badacost wrote"
            raise ModelFileError(f"cannot read {describe(path)}: {reason}.") from error


class _Guarded:
    """A file of which `zipfile` reads a directory only if its entries fit into the budget."""

    def __init__(self, file: BinaryIO, budget: Budget):
        self._file, self._budget = file, budget
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes; the directory is read at once, all else in small blocks."""
        if size > _BLOCK:
            self._budget.check(_BYTES_OF_MEMBER * size)
        return self._file.read(size)

    def seekable(self) -> bool:
        """Return whether positions can be chosen."""
        return True


def refuse(reason: str) -> NoReturn:
    """Raise the error of a file that cannot be trusted."""
    raise ModelFileError(reason)


def describe(path: str | os.PathLike[str]) -> str:
    """Return a path for a message."""
    return f"the model file {os.fspath(path)!r}"


def _member(name: str) -> str:
    """Return where the archive keeps an array."""
    return f"arrays/{name}.bin"


def _has_text_keys(value: Any) -> bool:
    """Return whether all keys are strings; `json` would turn others into strings silently."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _has_text_keys(value[key]) for key in value)
    if isinstance(value, list | tuple):
        return all(_has_text_keys(item) for item in value)
    return True


def _check_json(key: Any, value: Any) -> None:
    """Refuse an entry of a header that would not come back from a file."""
    try:
        if not _has_text_keys({key: value}):
            raise TypeError("a key is not a string")
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"header[{key!r}] cannot be saved as JSON: {error}.") from error


def _array_entry(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Return what the document says about an array that can be saved."""
    if not _ARRAY_NAME.fullmatch(name):
        raise ValueError(f"array name {name!r} is not made of at most 100 letters, digits and _.")
    code = array.dtype.newbyteorder("<").str
    if code not in _DTYPES:
        raise TypeError(f"array {name} of dtype {array.dtype} cannot be saved: convert it first.")
    if array.ndim > 3:
        raise ValueError(f"array {name} has {array.ndim} dimensions: at most 3 can be saved.")
    return {"dtype": code, "shape": list(array.shape)}


def _write_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member that does not depend on the time or the machine."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def _read_document(
    archive: zipfile.ZipFile, budget: Budget
) -> tuple[dict[str, Any], dict[str, zipfile.ZipInfo]]:
    """Check an open archive from the outside in; return its document and its other members."""
    members = {info.filename: info for info in archive.infolist()}
    if len(members) < len(archive.infolist()):
        refuse("two members have the same name")
    if _DOCUMENT not in members:
        refuse(f"it has no {_DOCUMENT}")
    info = members.pop(_DOCUMENT)
    budget.check(2 * info.file_size, f"its {_DOCUMENT}")
    document: dict[str, Any] = _parse(_read_text(archive, info), budget)
    _check_document(document)
    entries = document["arrays"]
    if not all(_ARRAY_NAME.fullmatch(name) for name in entries):
        refuse("an array has a name that is not made of letters, digits and _")
    wrong = set(members) ^ {_member(name) for name in entries}
    if wrong:
        refuse(f"members and arrays do not match at {min(wrong)[:80]!r}")
    return document, members


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the bytes of a member in blocks, never more than the directory declares."""
    name = info.filename[:80]
    if info.flag_bits & _ENCRYPTED:
        refuse(f"the member {name!r} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse(f"the member {name!r} is compressed by the unknown method {info.compress_type}")
    n_bytes = 0
    with archive.open(info) as member:
        # The last block, which is empty, makes zipfile verify the checksum.
        while block := member.read(_BLOCK):
            n_bytes += len(block)
            if n_bytes <= info.file_size:
                yield block
    if n_bytes != info.file_size:
        refuse(f"the member {name!r} has {n_bytes} bytes, not {info.file_size}")


def _read_text(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member."""
    return b"".join(_unpacked(archive, info))


def _parse(text: bytes, budget: Budget) -> Any:
    """Parse JSON as the standard has it: no repeated keys, no NaN, no infinity."""
    budget.take(parsed_size(text, budget.max_memory))
    try:
        return parse_json(text, UNLIMITED)
    except JSONError as error:
        raise ModelFileError(f"{_DOCUMENT} is not valid JSON: {error}") from error


def _check_document(document: Any) -> None:
    """Check the frame of the document: version first, as a newer one may differ in the rest."""
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        refuse("it is not a model of badacost")
    version = document.get("version")
    if type(version) is not int or version < 1:
        refuse("its format version is not a positive number")
    if version > _VERSION:
        refuse(f"it has format version {version}, made by a newer badacost: upgrade badacost")
    types = {"kind": str, "library": str, "header": dict, "arrays": dict}
    if set(document) != {"format", "version", *types}:
        refuse(f"{_DOCUMENT} does not have the expected keys")
    for key, expected in types.items():
        if not isinstance(document[key], expected):
            refuse(f"{key!r} in {_DOCUMENT} is not of type {expected.__name__}")


def _checked_entry(info: zipfile.ZipInfo, entry: Any) -> tuple[np.dtype[Any], list[int]]:
    """Return type and shape of the array of a member, which has as many bytes as these need."""
    name = info.filename
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape"}:
        refuse(f"{name} is not described by a dtype and a shape")
    code, shape = entry["dtype"], entry["shape"]
    if code not in _DTYPES:
        refuse(f"{name} has the dtype {str(code)[:80]!r}, which is not allowed")
    # A bound on each side too: (2**62, 0) takes no bytes.
    if (
        not isinstance(shape, list)
        or len(shape) > 3
        or not all(type(side) is int and 0 <= side < 2**48 for side in shape)
    ):
        refuse(f"{name} has a shape that is not a list of at most 3 sizes")
    dtype = np.dtype(code)
    declared = math.prod(shape) * dtype.itemsize
    if declared != info.file_size:
        refuse(f"{name} has {info.file_size} bytes where its shape needs {declared}")
    return dtype, shape


def _read_array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, dtype: np.dtype[Any], shape: list[int]
) -> NDArray[Any]:
    """Return the array of a member, writable and in native byte order."""
    array = np.empty(shape, dtype)
    stored, position = array.reshape(-1).view(np.uint8), 0
    for block in _unpacked(archive, info):
        stored[position : position + len(block)] = np.frombuffer(block, np.uint8)
        position += len(block)
    if dtype == np.bool_ and stored.max(initial=0) > 1:
        refuse(f"{info.filename} holds bytes that are not booleans")
    return array.astype(dtype.newbyteorder("="), copy=False)
