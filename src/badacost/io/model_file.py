"""Model files: fitted models without pickle, in a zip archive of raw arrays and one JSON document.

A class registers itself with `saved_model`, gives its state in `_to_model_file` and takes it in
the class method `_from_model_file`. Parts that are models themselves are named in `_parts`, and
passed to `_from_model_file` as keywords.

`model.json` holds the kind of the model, a header and the type and shape of each array; the array
`name` is the member ``arrays/name.bin``, little-endian. A file from a user is untrusted: reading
ends in arrays and a header whose form was verified, or in `ModelFileError`; nothing in a file can
run code, write outside of memory, or take more memory than its budget. What a class takes from it
may still be anything of this form: it makes the same checks as for a new model.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BufferedReader
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from badacost import __version__
from badacost.costs.matrix import plain
from badacost.io.atomic_file import replaced_file
from badacost.io.budget import UNLIMITED, Budget, BudgetError
from badacost.io.json_document import parse_json, parsed_size
from badacost.io.user_file import open_regular

_FORMAT = "badacost"
_VERSION = 2  # 1 had fewer arrays
_DOCUMENT = "model.json"
_BYTES_OF_MEMBER = 14  # in memory, for a byte of the archive's directory
_BLOCK = 2**18  # that is unpacked at once
_DTYPES = ("|b1", "<i4", "<i8", "|u1", "<u2", "<u4", "<f4", "<f8")
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
_Class = TypeVar("_Class", bound=type)
_LABEL_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|U[1-9][0-9]{0,7}|object")
_SURROGATE = re.compile("[\ud800-\udfff]")
# What checks raise on contents that make no model, and what zipfile raises on damaged files.
REBUILDING_ERRORS = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
_ZIP_ERRORS = zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError
Finder = Callable[[str], object]  # imports the module of the class of this name, if there is one
_COPIES_OF_LABELS = 3  # of the array: itself, those that sort it
_classes: dict[str, Any] = {}


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
    budget : Budget
        What a model of these contents may take; no limit where they come from no file.
    """

    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    budget: Budget = field(default_factory=lambda: UNLIMITED)


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a model file; an existing one is replaced only once the new one is complete.

    Equal contents give equal bytes.

    Parameters
    ----------
    path : str or path-like
        Where to write; the folder must exist.
    kind : str
        Name of the class, one that is registered where the file is loaded.
    header : mapping of str to JSON values
        Strings, finite numbers, booleans, None, and lists and string-keyed dicts of these.
    arrays : mapping of str to ndarray
        Arrays of at most three dimensions, of booleans, 32- or 64-bit integers, 8- to 32-bit
        unsigned integers, or single or double precision.

    Raises
    ------
    FileNotFoundError
        Where the folder does not exist.
    TypeError
        Where the header or an array cannot be held by the format.
    """
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": kind,
        "library": __version__,
        "header": dict(header),
        "arrays": {name: _array_entry(name, array) for name, array in arrays.items()},
    }
    try:
        text = json.dumps(document, allow_nan=False, sort_keys=True).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the header cannot be saved as JSON: {error}.") from error
    with replaced_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        _write_member(archive, _DOCUMENT, text)
        for name in sorted(arrays):
            array = arrays[name]
            data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            _write_member(archive, _member(name), data)


def read_model(path: str | os.PathLike[str], *, max_memory: int | str | None = None) -> ModelFile:
    """Read and check a model file, without rebuilding the model.

    Parameters
    ----------
    path : str or path-like
        The model file.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

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
        return _contents(archive, _read_document(archive, budget), budget)


def saved_kind(path: str | os.PathLike[str]) -> str | None:
    """Return the name of the class of a saved model, without reading its arrays.

    Parameters
    ----------
    path : str or path-like
        A file of any kind.

    Returns
    -------
    str or None
        The name, such as "BAdaCostClassifier"; None if the file is no model, or is not there.

    Examples
    --------
    >>> print(saved_kind("no-such-file.badacost"))
    None
    """
    budget = Budget.of(None)
    try:
        with _archive(path, budget) as archive:
            return str(_read_document(archive, budget)["kind"])
    except (ModelFileError, OSError):
        return None


def open_model(path: str | os.PathLike[str]) -> BufferedReader:
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
    with _GuardedReader(open_model(path), budget) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except (*REBUILDING_ERRORS, *_ZIP_ERRORS) as error:
            reason = str(error).rstrip(".") or "it ends too early"
            if isinstance(error, KeyError):
                reason = f"it lacks {error}"
            if not isinstance(error, ModelFileError | BudgetError):
                reason = f"it is damaged or no model file ({reason}), name one that badacost wrote"
            raise ModelFileError(f"cannot read {describe(path)}: {reason}.") from error


class _GuardedReader(BufferedReader):
    """A file of which `zipfile` reads a directory only if its entries fit into the budget."""

    def __init__(self, file: BufferedReader, budget: Budget):
        super().__init__(file.detach())
        self._budget = budget

    def read(self, size: int | None = -1, /) -> bytes:
        """Return so many bytes; the directory is read at once, all else in small blocks."""
        if size is not None and size > _BLOCK:
            self._budget.check(_BYTES_OF_MEMBER * size)
        return super().read(size)


def refuse(reason: str) -> NoReturn:
    """Raise the error of a file that cannot be trusted."""
    raise ModelFileError(reason)


def describe(path: str | os.PathLike[str]) -> str:
    """Return a path for a message."""
    return f"the model file {os.fspath(path)!r}"


def _member(name: str) -> str:
    """Return the name in the archive of an array."""
    return f"arrays/{name}.bin"


def _array_entry(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Return the type and shape of an array as in the document; refuse what cannot be saved."""
    code = array.dtype.newbyteorder("<").str
    if not _ARRAY_NAME.fullmatch(name) or code not in _DTYPES or array.ndim > 3:
        raise TypeError(
            f"array {name!r} of dtype {array.dtype} and {array.ndim} dimensions cannot be saved."
        )
    return {"dtype": code, "shape": list(array.shape)}


def _write_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member that does not depend on the time or the machine."""
    info = zipfile.ZipInfo(name)  # of 1980
    info.create_system = 3
    info.external_attr = 0o644 << 16
    archive.writestr(info, data, zipfile.ZIP_DEFLATED)


def _read_document(archive: zipfile.ZipFile, budget: Budget) -> dict[str, Any]:
    """Return the document, after a check that it describes all other members of the archive."""
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    if len(sizes) < len(archive.infolist()):
        refuse("two members have the same name")
    if _DOCUMENT not in sizes:
        refuse(f"it has no {_DOCUMENT}")
    budget.check(2 * sizes.pop(_DOCUMENT), f"its {_DOCUMENT}")
    text = bytes(_unpack(archive, _DOCUMENT))
    budget.take(parsed_size(text, budget.max_memory))
    document: dict[str, Any] = parse_json(text, UNLIMITED, unique_keys=True)
    _check_document(document)
    wrong = sizes.keys() ^ {_member(name) for name in document["arrays"]}
    if wrong:
        refuse(f"members and arrays do not match at {min(wrong)[:80]!r}")
    return document


def _check_document(document: Any) -> None:
    """Check the frame of the document: version first, as a newer one may differ in the rest."""
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        refuse("it is not a model of badacost")
    version = document.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        refuse(f"its format version is {version!r:.80}: upgrade badacost if a newer one wrote it")
    types = {"kind": str, "library": str, "header": dict, "arrays": dict}
    for key, expected in types.items():
        if not isinstance(document.get(key), expected):
            refuse(f"{key!r} in {_DOCUMENT} is not of type {expected.__name__}")


def _contents(archive: zipfile.ZipFile, document: dict[str, Any], budget: Budget) -> ModelFile:
    """Return what the document and the arrays hold."""
    entries = document["arrays"].items()
    budget.take(sum(archive.getinfo(_member(name)).file_size for name, _ in entries))
    arrays = {name: _read_array(archive, name, entry) for name, entry in entries}
    return ModelFile(document["kind"], document["header"], arrays, budget)


def _unpack(archive: zipfile.ZipFile, name: str) -> bytearray:
    """Return the bytes of a member: no more than the archive's directory declares."""
    info, data = archive.getinfo(name), bytearray()
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse(f"{name[:80]!r} is compressed by an unknown method")
    with archive.open(info) as member:  # checks their sum after the last one
        while block := member.read(_BLOCK):
            data += block
    return data


def _read_array(archive: zipfile.ZipFile, name: str, entry: Any) -> NDArray[Any]:
    """Return an array of an allowed type and shape, writable and in native byte order."""
    match entry:
        # A bound on each side too: (2**62, 0) takes no bytes.
        case {"dtype": str(code), "shape": [*shape]} if (
            code in _DTYPES
            and len(shape) <= 3
            and all(type(side) is int and 0 <= side < 2**48 for side in shape)
        ):
            data, declared = _unpack(archive, _member(name)), math.prod(shape)
            if len(data) != declared * np.dtype(code).itemsize:
                refuse(f"the array {name[:80]!r} has {len(data)} bytes, not those of its shape")
            array = np.frombuffer(data, code).reshape(shape)
        case _:
            refuse(f"the array {name[:80]!r} does not have a dtype and a shape that are allowed")
    if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        refuse(f"the array {name[:80]!r} holds bytes that are not booleans")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def saved_model(cls: _Class) -> _Class:
    """Register a class whose models can be saved, under its name."""
    _classes[cls.__name__] = cls
    return cls


def model_to_file(model: Any) -> ModelFile:
    """Return what a file holds of a model, or raise TypeError where none can hold it."""
    kind = type(model).__name__
    if _classes.get(kind) is not type(model):
        raise TypeError(
            f"a file of badacost cannot hold a {kind}: use joblib.dump or, if it is of LightGBM or "
            "CatBoost, put it into an ImportedForestClassifier."
        )
    contents: ModelFile = model._to_model_file()
    return contents


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model of a registered class to a file."""
    contents = model_to_file(model)
    write_model(path, contents.kind, contents.header, contents.arrays)


def load_model(
    path: str | os.PathLike[str], find: Finder | None = None, *, max_memory: int | str | None = None
) -> Any:
    """Return the model in a file, of a class that is registered or that `find` imports."""
    budget = Budget.of(max_memory)
    with _archive(path, budget) as archive:
        document = _read_document(archive, budget)
        _class_of(document["kind"], find)  # before any array is unpacked
        return _rebuilt(_contents(archive, document, budget), find)


def _rebuilt(model: ModelFile, find: Finder | None) -> Any:
    """Return the model of these contents, built after its parts, which its class takes."""
    cls, parts = _class_of(model.kind, find), {}
    for name in getattr(cls, "_parts", ()):
        parts[name] = _rebuilt(_part(model, name), find)
    return cls._from_model_file(model, **parts)


def _class_of(kind: str, find: Finder | None) -> Any:
    """Return the registered class of this name."""
    if find is not None:
        find(kind)
    if kind not in _classes:
        refuse(
            f"it holds a model of the unknown kind {kind[:80]!r}: upgrade badacost if a newer one "
            "wrote it"
        )
    return _classes[kind]


def with_part(model: ModelFile, name: str, part: ModelFile) -> ModelFile:
    """Return contents to which those of a part have been added."""
    return replace(
        model,
        header=model.header | {name: {"kind": part.kind, "header": part.header}},
        arrays=model.arrays | {f"{name}_{key}": array for key, array in part.arrays.items()},
    )


def _part(model: ModelFile, name: str) -> ModelFile:
    """Return the contents of a part that `with_part` added."""
    part, prefix = model.header[name], f"{name}_"
    arrays = {
        key.removeprefix(prefix): array
        for key, array in model.arrays.items()
        if key.startswith(prefix)
    }
    return replace(model, kind=part["kind"], header={**part["header"]}, arrays=arrays)


def labels_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Return class labels or feature names in a form that JSON holds exactly.

    Parameters
    ----------
    classes : ndarray of shape (n_labels,)
        Booleans, integers, finite floats, strings, or Python objects of these types. Numpy scalars
        inside an object array become the Python objects equal to them.

    Returns
    -------
    dict
        For `labels_from_json`, which restores the values and, but for the byte order, the dtype.
    """
    dtype = classes.dtype
    name = f"U{dtype.itemsize // 4}" if dtype.kind == "U" else dtype.name
    obj = {"dtype": name, "values": [plain(value) for value in classes.tolist()]}
    try:
        labels_from_json(obj)
    except ModelFileError as error:
        raise TypeError(
            f"labels of dtype {dtype} cannot be saved, {error}: use booleans, integers, finite "
            "floats or strings of valid text."
        ) from error
    return obj


def labels_from_json(obj: Any, budget: Budget = UNLIMITED) -> NDArray[Any]:
    """Return the labels that `labels_to_json` took apart.

    Parameters
    ----------
    obj : object
        What the file holds; anything.
    budget : Budget
        What the labels may take, with all others of their file.

    Returns
    -------
    ndarray of shape (n_labels,)
        The labels.
    """
    match obj:
        case {"dtype": str(name), "values": [_, *_] as values, **others} if (
            _LABEL_DTYPE.fullmatch(name) and not others
        ):
            pass
        case _:
            refuse("the labels are not a dtype and values, or there are none")
    for value in values:
        if not _is_label(value):
            refuse(f"the labels have {value!r:.80}, which is not allowed")
    budget.take(_COPIES_OF_LABELS * np.dtype(name).itemsize * len(values), "the labels")
    with np.errstate(over="ignore"), suppress(OverflowError, ValueError):
        labels = np.array(values, dtype=name)
        again = labels.tolist()
        if again == values and [*map(type, again)] == [*map(type, values)]:
            return labels
    refuse(f"the labels do not fit {name}")


def _is_label(value: Any) -> bool:
    """Whether JSON holds a value exactly; it joins the halves of surrogate pairs in texts."""
    if isinstance(value, str):
        return not _SURROGATE.search(value)
    return type(value) in (bool, int) or (isinstance(value, float) and math.isfinite(value))
