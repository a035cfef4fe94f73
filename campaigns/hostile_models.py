"""Model files that claim or unpack to far more than they hold, written to a path.

Each builder takes a size; the default is one at which reading without a limit takes gigabytes or a
minute. What is written is written in blocks, so that a builder takes little memory itself.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

from badacost import BAdaCostClassifier, MinimumCostClassifier
from badacost.io.model_file import ModelFile, with_part

BLOCK = 2**20
_INT8, _UINT8, _INT32, _UINT32, _DOUBLE, _MATRIX, _COMPRESSED = 1, 2, 5, 6, 9, 14, 15
_STRUCT_CLASS, _DOUBLE_CLASS = 2, 6


def small_model() -> ModelFile:
    """Return the contents of the file of a model of one tree, to be altered."""
    model = BAdaCostClassifier([[0, 1], [5, 0]], n_estimators=1, max_depth=1)
    return model.fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])._to_model_file()


def blocks(n_bytes: int, value: bytes = b"\0") -> Iterator[bytes]:
    """Yield this many bytes, all the same."""
    for start in range(0, n_bytes, BLOCK):
        yield value * min(BLOCK, n_bytes - start)


def write_archive(
    path: Path,
    model: ModelFile,
    large: Mapping[str, tuple[str, tuple[int, ...], Iterable[bytes]]] | None = None,
    header: Iterable[bytes] | None = None,
) -> None:
    """Write a model, with arrays in blocks by dtype and shape, and the header as text if given."""
    large = large or {}
    small = {name: array for name, array in model.arrays.items() if name not in large}
    entries = {name: {"dtype": a.dtype.str, "shape": list(a.shape)} for name, a in small.items()}
    entries |= {name: {"dtype": d, "shape": list(s)} for name, (d, s, _) in large.items()}
    document = json.dumps(
        {"format": "badacost", "version": 2, "library": "0", "kind": model.kind, "arrays": entries}
    ).encode()
    text = [json.dumps(model.header).encode()] if header is None else header
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        _add(archive, "model.json", _joined(document[:-1] + b', "header": ', text, b"}"))
        for name, array in small.items():
            _add(archive, f"arrays/{name}.bin", [array.tobytes()])
        for name, (_, _, data) in large.items():
            _add(archive, f"arrays/{name}.bin", data)


def _joined(first: bytes, middle: Iterable[bytes], last: bytes) -> Iterator[bytes]:
    """Yield all blocks in a row."""
    yield first
    yield from middle
    yield last


def _add(archive: zipfile.ZipFile, name: str, data: Iterable[bytes]) -> None:
    """Add a member that is given in blocks."""
    with archive.open(name, "w", force_zip64=True) as member:
        for block in data:
            member.write(block)


def array_bomb(path: Path, n_bytes: int = 2**31 - 2**21) -> None:
    """An array of zeros, some thousand times larger than its file."""
    zeros = ("<f8", (n_bytes // 8,), blocks(n_bytes // 8 * 8))
    write_archive(path, small_model(), {"forest_threshold": zeros})


def deep_json(path: Path, depth: int = 5_000_000) -> None:
    """A header of lists in lists."""
    nested = _joined(b'{"parameters": ', [*blocks(depth, b"["), *blocks(depth, b"]")], b"}")
    write_archive(path, small_model(), header=nested)


def many_keys(path: Path, n_keys: int = 1_200_000) -> None:
    """A header with many parameters that no model has."""
    keys = (f'"k{number:07d}":0,'.encode() for number in range(n_keys))
    write_archive(path, small_model(), header=_joined(b'{"parameters": {', keys, b'"k": 0}}'))


def many_members(path: Path, n_members: int = 1_000_000) -> None:
    """An archive whose directory lists many members, of which there is none."""
    write_archive(path, small_model())
    data = path.read_bytes()
    end = len(data) - 22
    start = struct.unpack_from("<I", data, end + 16)[0]
    entry = bytearray(46 + 7)
    struct.pack_into("<I", entry, 0, 0x02014B50)
    struct.pack_into("<H", entry, 28, 7)
    with path.open("wb") as file:
        file.write(data[:end])
        for number in range(n_members):
            entry[46:] = b"%07d" % number
            file.write(entry)
        tail = bytearray(data[end:])
        struct.pack_into("<HHI", tail, 8, 0xFFFE, 0xFFFE, end - start + n_members * len(entry))
        file.write(tail)


def many_classes(path: Path, n_classes: int = 8000) -> None:
    """A model of one tree with a cost for each pair of classes, all the same."""
    model = small_model()
    row = np.ones(n_classes)

    def costs() -> Iterator[bytes]:
        for number in range(n_classes):
            row[number] = 0.0
            yield row.tobytes()
            row[number] = 1.0

    n_rows = len(model.arrays["forest_table"])
    size = n_rows * n_classes * 8
    model.header["classes"] = {"dtype": "int64", "values": [*range(n_classes)]}
    large = {
        "cost_matrix": ("<f8", (n_classes, n_classes), costs()),
        "forest_table": ("<f8", (n_rows, n_classes), blocks(size)),
    }
    write_archive(path, model, large)


def many_features(path: Path, n_features: int = 2**31 - 1) -> None:
    """A model of one tree that expects samples of many features, and tests the first."""
    model = small_model()
    model.arrays["forest_n_features"] = np.array(n_features)
    write_archive(path, model)


def many_labels(path: Path, n_classes: int = 2000) -> None:
    """Short names of classes in an array whose items are the largest that numpy has names for."""
    model = small_model()
    names = [f"c{number}" for number in range(n_classes)]
    model.header["classes"] = {"dtype": "U999999", "values": names}
    write_archive(path, model)


def nested_models(path: Path, n_classes: int = 700, depth: int = 8) -> None:
    """Minimum-cost decisions about minimum-cost decisions, each with a cost for all pairs."""
    costs = np.ones((n_classes, n_classes))
    np.fill_diagonal(costs, 0.0)
    y = np.arange(n_classes)
    model = BAdaCostClassifier(costs, n_estimators=1, max_depth=1).fit(y[:, None], y)
    contents = model._to_model_file()
    decision = MinimumCostClassifier(FrozenEstimator(model), costs, calibration="none").fit(
        y[:, None], y
    )
    outer = decision._to_model_file()
    own = {**outer.header, "frozen": False}
    del own["estimator"]
    for _ in range(depth):
        contents = with_part(
            ModelFile(outer.kind, own, {"cost_matrix": costs}), "estimator", contents
        )
    write_archive(path, contents)


def matlab_many_fields(path: Path, n_fields: int = 10_000_000) -> None:
    """A struct with many fields, all empty."""
    names = (b"f%07d" % number for number in range(n_fields))
    empty = blocks(n_fields, struct.pack("<II", _MATRIX, 0))
    contents = _joined(_fields(n_fields), names, b"")
    _write_matlab(path, _STRUCT_CLASS, (1, 1), contents, 16 + 8 * n_fields, empty, 8 * n_fields)


def matlab_empty_struct(path: Path, n_fields: int = 10_000_000) -> None:
    """A struct without entries that has many fields."""
    names = (b"f%07d" % number for number in range(n_fields))
    contents = _joined(_fields(n_fields), names, b"")
    _write_matlab(path, _STRUCT_CLASS, (0, 0), contents, 16 + 8 * n_fields)


def matlab_long_names(path: Path, n_fields: int = 120, length: int = 2**20) -> None:
    """A struct whose fields have names that do not end, so that each goes on with the next."""
    head = struct.pack("<IIII", 4 << 16 | _INT32, length, _INT8, n_fields * length)
    names = ((b"f%d" % number).ljust(length, b"a") for number in range(n_fields))
    empty = blocks(n_fields, struct.pack("<II", _MATRIX, 0))
    size = 16 + n_fields * length
    contents = _joined(head, names, b"")
    _write_matlab(path, _STRUCT_CLASS, (1, 1), contents, size, empty, 8 * n_fields)


def matlab_bytes_as_doubles(path: Path, n_numbers: int = 250 * 2**20) -> None:
    """Numbers of double precision that are stored as bytes, all zero."""
    tag = struct.pack("<II", _UINT8, n_numbers)
    padded = n_numbers + -n_numbers % 8
    _write_matlab(
        path, _DOUBLE_CLASS, (1, n_numbers), _joined(tag, blocks(padded), b""), 8 + padded
    )


def matlab_many_variables(path: Path, n_variables: int = 3_000_000) -> None:
    """Many variables of one number each, none of which is a detector."""
    variable = _matrix_header(_DOUBLE_CLASS, (1, 1), b"x") + struct.pack("<IBxxx", 1 << 16 | 2, 1)
    element = struct.pack("<II", _MATRIX, len(variable)) + variable
    with path.open("wb") as file:
        file.write(_matlab_header())
        for start in range(0, n_variables, 4096):
            file.write(element * min(4096, n_variables - start))


def _matlab_header() -> bytes:
    """Return the first bytes of a MATLAB file."""
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"


def _matrix_header(class_: int, shape: tuple[int, int], name: bytes) -> bytes:
    """Return what stands before the contents of a matrix, without its tag."""
    return (
        struct.pack("<IIII", _UINT32, 8, class_, 0)
        + struct.pack("<IIii", _INT32, 8, *shape)
        + struct.pack("<II", _INT8, len(name))
        + name.ljust(-(-len(name) // 8) * 8, b"\0")
    )


def _fields(n_fields: int) -> bytes:
    """Return what stands before the names of fields of eight letters."""
    return struct.pack("<IIII", 4 << 16 | _INT32, 8, _INT8, 8 * n_fields)


def _write_matlab(
    path: Path,
    class_: int,
    shape: tuple[int, int],
    contents: Iterable[bytes],
    n_bytes: int,
    more: Iterable[bytes] = (),
    n_more: int = 0,
) -> None:
    """Write a file of one compressed variable, the detector, whose contents have known lengths."""
    header = _matrix_header(class_, shape, b"detector")
    tag = struct.pack("<II", _MATRIX, len(header) + n_bytes + n_more)
    packer = zlib.compressobj(1)
    with path.open("wb") as file:
        file.write(_matlab_header() + bytes(8))
        for part in (_joined(tag, [header], b""), contents, more):
            for block in part:
                file.write(packer.compress(block))
        file.write(packer.flush())
        length = file.tell() - 136
        file.seek(128)
        file.write(struct.pack("<II", _COMPRESSED, length))
