"""Small changes of files: of bytes, text, JSON and model files, each a name and a few numbers.

Places are large numbers that are taken modulo what there is, so that every change can be made to
every content, also where others were made before. One that does not fit leaves the content as it
is.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

Edit = list[Any]
_PLACES = 2**31
_TOKEN = re.compile(rb"[-+.\w]+")
_INTEGERS = (0, 1, -1, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1)
_FRAGMENTS = (
    b"\0", b"\n", b"\r", b"\r\n", b'"', b"'", b",", b";", b"\t", b" ", b"\xff\xfe", b"\xef\xbb\xbf",
    b"{", b"}", b"[", b"]", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"=", b"#", b"../../../x",
    b"*a", b"&a ", b"\x1a", b"\xc3", "é".encode(), "\U0001f697".encode(), b"%s%n", b"$(x)",
)  # fmt: skip
_TOKENS = (
    b"", b"0", b"-0", b"-1", b"1e308", b"-1e308", b"1e-320", b"1e999", b"nan", b"inf", b"-inf",
    b"NULL", b"NA", b"true", b"2147483648", b"99999999999999999999999", b"0x10", b"1_000", b"1,5",
    b"9" * 400, b"x" * 5000, b"\xf0\x9f\x9a\x97", b"\xff", b"../../etc/passwd", b"/dev/zero",
    b"1970-01-01", b"=1+1", b"__class__",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 255, 256, 2**31 - 1, 2**31, 2**53, 2**63, -(2**63) - 1, 10**400,
    0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), "", "0", "a", "x" * 2000, "\ud800", "\0",
    [], [0], [[]], {}, {"": None}, [None] * 50, list(range(300)), {"dtype": "<f8", "shape": [1]},
    "<i8", "<f8", "object", "<U99999999", "float64", "../x", [1, "a", None], [2**31, 2**31],
)  # fmt: skip
_NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 1e308, -1e308, 1e-320, np.nan, np.inf, -np.inf, 127, 128,
            255, -128, 2.0**31 - 1, -(2.0**31), 2.0**53, 2.0**63)  # fmt: skip
_DTYPES = ("|b1", "<i4", "<i8", "|u1", "<u2", "<u4", "<f4", "<f8")
_MAX_DEPTH = 2000
_MAX_BYTES = 2**20  # of a file that changes make larger


class Mutation(NamedTuple):
    """How the numbers of a change are drawn, and how it is made."""

    draw: Callable[[Generator], list[Any]]
    apply: Callable[..., bytes]


def drawn_edit(rng: Generator, mutations: Mapping[str, Mutation], n_files: int = 1) -> Edit:
    """Draw a change: its name, the file it is made to, and its numbers."""
    name = str(rng.choice(list(mutations)))
    return [name, int(rng.integers(n_files)), *mutations[name].draw(rng)]


def applied(content: bytes, edit: Edit) -> bytes:
    """Return the content with a change, or as it was where the change does not fit."""
    name, _, *numbers = edit
    try:
        changed = ALL[name].apply(content, *numbers)
        return changed if len(changed) <= max(_MAX_BYTES, len(content)) else content
    # What readers raise on content that an earlier change has damaged.
    except (ValueError, LookupError, TypeError, ArithmeticError, OSError, EOFError, RuntimeError,
            zipfile.BadZipFile, zlib.error):  # fmt: skip
        return content


def _places(*highs: int) -> Callable[[Generator], list[Any]]:
    """Return what draws a place for each number, below it."""
    return lambda rng: [int(rng.integers(high)) for high in highs]


# Bytes.


def _flip(content: bytes, place: int, bit: int) -> bytes:
    at = place % len(content)
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def _set(content: bytes, place: int, value: int) -> bytes:
    at = place % len(content)
    return content[:at] + bytes([value]) + content[at + 1 :]


def _cut(content: bytes, place: int, length: int) -> bytes:
    at = place % len(content)
    return content[:at] + content[at + length :]


def _truncate(content: bytes, place: int) -> bytes:
    return content[: place % len(content)]


def _zeros(content: bytes, place: int, length: int) -> bytes:
    at = place % len(content)
    return content[:at] + bytes(min(length, len(content) - at)) + content[at + length :]


def _insert(content: bytes, place: int, which: int) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + _FRAGMENTS[which] + content[at:]


def _splice(content: bytes, source: int, length: int, place: int) -> bytes:
    begin, at = source % len(content), place % len(content)
    return content[:at] + content[begin : begin + length] + content[at:]


def _integer(content: bytes, place: int, width: int, which: int, big: int) -> bytes:
    """Write a hostile whole number of 1, 2, 4 or 8 bytes, as binary formats have them."""
    n_bytes, at = 1 << width, place % len(content)
    number = _INTEGERS[which] % (1 << 8 * n_bytes)
    data = number.to_bytes(n_bytes, "big" if big else "little")
    return content[:at] + data + content[at + n_bytes :]


BYTES = {
    "flip": Mutation(_places(_PLACES, 8), _flip),
    "set": Mutation(_places(_PLACES, 256), _set),
    "cut": Mutation(_places(_PLACES, 64), _cut),
    "truncate": Mutation(_places(_PLACES), _truncate),
    "zeros": Mutation(_places(_PLACES, 64), _zeros),
    "insert": Mutation(_places(_PLACES, len(_FRAGMENTS)), _insert),
    "splice": Mutation(_places(_PLACES, 200, _PLACES), _splice),
    "integer": Mutation(_places(_PLACES, 4, len(_INTEGERS), 2), _integer),
}


# Text.


def _token(content: bytes, place: int, which: int) -> bytes:
    """Replace a word or a number."""
    found = list(_TOKEN.finditer(content))
    match = found[place % len(found)]
    return content[: match.start()] + _TOKENS[which] + content[match.end() :]


def _line(content: bytes, place: int, times: int) -> bytes:
    """Leave out a line, or repeat it."""
    lines = content.splitlines(keepends=True)
    at = place % len(lines)
    lines[at] *= min((0, 2, 3, 1000)[times], _MAX_BYTES // len(lines[at]))
    return b"".join(lines)


def _swap(content: bytes, one: int, two: int) -> bytes:
    """Exchange two lines."""
    lines = content.splitlines(keepends=True)
    one, two = one % len(lines), two % len(lines)
    lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


def _encode(content: bytes, which: int) -> bytes:
    """Write the text in another encoding."""
    return content.decode().encode(("utf-16", "utf-32", "utf-8-sig", "cp1252", "utf-7")[which])


def _line_ends(content: bytes, which: int) -> bytes:
    return content.replace(b"\n", (b"\r\n", b"\r", b"\n\n", b"\x0b", b"\xe2\x80\xa8")[which])


def _separator(content: bytes, which: int) -> bytes:
    return content.replace(b",", (b";", b"\t", b"|", b" ", b",,", b"\0")[which])


TEXT = {
    "token": Mutation(_places(_PLACES, len(_TOKENS)), _token),
    "line": Mutation(_places(_PLACES, 4), _line),
    "swap": Mutation(_places(_PLACES, _PLACES), _swap),
    "encode": Mutation(_places(5), _encode),
    "line ends": Mutation(_places(5), _line_ends),
    "separator": Mutation(_places(6), _separator),
}


# JSON: nodes are numbered as they are come upon.


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Return a container and a key for each node below a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict | list):
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            found += [(node, key) for key in keys]
            waiting += [node[key] for key in keys]
    return found


def _edited(value: Any, change: str, place: int, which: int) -> None:
    """Change a node below a value."""
    nodes = _nodes(value)
    node, key = nodes[place % len(nodes)]
    if change == "value":
        node[key] = _VALUES[which % len(_VALUES)]
    elif change == "remove":
        del node[key]
    elif change == "copy":  # what stands elsewhere in the document
        other, name = nodes[which % len(nodes)]
        node[key] = json.loads(json.dumps(other[name]))
    elif change == "key" and isinstance(node, dict):
        node[("", "x", "__proto__", "shape", "\0")[which % 5]] = node.pop(key)
    elif change == "number" and isinstance(node[key], int | float):
        node[key] = type(node[key])(node[key] * (0, -1, 2, 1000)[which % 4] + which % 3)


_CHANGES = ("value", "remove", "copy", "key", "number")


def _json(content: bytes, change: int, place: int, which: int) -> bytes:
    value = json.loads(content)
    _edited(value, _CHANGES[change], place, which)
    return json.dumps(value).encode()


def _json_lines(content: bytes, line: int, change: int, place: int, which: int) -> bytes:
    lines = content.splitlines(keepends=True)
    at = line % len(lines)
    lines[at] = _json(lines[at], change, place, which) + b"\n"
    return b"".join(lines)


def _deep(content: bytes, place: int, which: int) -> bytes:
    """Nest a value deeper than any reader descends."""
    found = list(_TOKEN.finditer(content))
    match = found[place % len(found)]
    opening, closing = ((b"[", b"]"), (b'{"a":', b"}"))[which]
    nested = opening * _MAX_DEPTH + b"1" + closing * _MAX_DEPTH
    return content[: match.start()] + nested + content[match.end() :]


JSON = {
    "json": Mutation(_places(len(_CHANGES), _PLACES, _PLACES), _json),
    "deep": Mutation(_places(_PLACES, 2), _deep),
}
JSON_LINES = {
    "json lines": Mutation(_places(_PLACES, len(_CHANGES), _PLACES, _PLACES), _json_lines)
}


# Compressed text: the change is made inside.


def _in_gzip(content: bytes, edit: Edit) -> bytes:
    return gzip.compress(applied(gzip.decompress(content), edit), compresslevel=1, mtime=0)


IN_GZIP = {"in gzip": Mutation(lambda rng: [drawn_edit(rng, BYTES | TEXT)], _in_gzip)}


# Model files: archives whose checksums are right again after the change.


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)  # without the time, so that a case can be repeated
            info.compress_type = method
            archive.writestr(info, data)
    return file.getvalue()


def _document(content: bytes, change: int, place: int, which: int, part: int) -> bytes:
    """Change the JSON document of a model file, mostly its header."""
    members = _members(content)
    document = json.loads(members["model.json"])
    _edited(document["header"] if part else document, _CHANGES[change], place, which)
    return _zipped(members | {"model.json": json.dumps(document).encode()})


def _member(content: bytes, change: int, place: int, other: int) -> bytes:
    """Exchange, leave out, rename or add a member."""
    members = _members(content)
    names = list(members)
    one, two = names[place % len(names)], names[other % len(names)]
    if change == 0:
        members[one], members[two] = members[two], members[one]
    elif change == 1:
        del members[one]
    elif change == 2:
        members[f"../{one}"] = members.pop(one)
    elif change == 3:
        members["arrays/x.bin"] = members[one]
    method = zipfile.ZIP_STORED if change == 4 else zipfile.ZIP_DEFLATED
    return _zipped(members, zipfile.ZIP_BZIP2 if change == 5 else method)


def _array(content: bytes, change: int, place: int, at: int, which: int) -> bytes:
    """Change values, shape or type of an array."""
    members = _members(content)
    document = json.loads(members["model.json"])
    names = sorted(document["arrays"])
    name = names[place % len(names)]
    entry, member = document["arrays"][name], f"arrays/{names[place % len(names)]}.bin"
    array = np.frombuffer(members[member], entry["dtype"]).reshape(entry["shape"]).copy()
    with np.errstate(all="ignore"):
        if change == 0:
            array.flat[at % array.size] = np.array(_NUMBERS[which]).astype(array.dtype)
        elif change == 1:
            array[...] = np.array(_NUMBERS[which]).astype(array.dtype)
        elif change == 2:
            array = array.astype(_DTYPES[which % len(_DTYPES)])
        elif change == 3:  # fewer rows
            array = array[: at % (len(array) + 1)]
        elif change == 4:  # more rows
            array = np.concatenate([array, array[: 1 + at % len(array)]])
        elif change == 5:
            array = array[None] if which % 2 else array.reshape(-1)
        elif change == 6:
            array = array[::-1]
        elif change == 7:  # neighbours, as indices that are off by one
            array.flat[at % array.size] += np.array(1 if which % 2 else -1).astype(array.dtype)
        elif change == 8:
            array = np.random.default_rng([at, which]).permutation(array.reshape(-1))
            array = array.reshape(entry["shape"])
    document["arrays"][name] = {"dtype": array.dtype.newbyteorder("<").str,
                                "shape": list(array.shape)}  # fmt: skip
    members |= {"model.json": json.dumps(document).encode(), member: array.tobytes()}
    return _zipped(members)


def rewritten(content: bytes, name: str, value: float) -> bytes:
    """Return a model file whose array of this name has the same value everywhere."""
    members = _members(content)
    entry = json.loads(members["model.json"])["arrays"][name]
    array = np.full(entry["shape"], value, entry["dtype"])
    return _zipped(members | {f"arrays/{name}.bin": array.tobytes()})


MODEL = {
    "document": Mutation(_places(len(_CHANGES), _PLACES, _PLACES, 2), _document),
    "member": Mutation(_places(6, _PLACES, _PLACES), _member),
    "array": Mutation(_places(9, _PLACES, _PLACES, len(_NUMBERS)), _array),
}
ALL: dict[str, Mutation] = {**BYTES, **TEXT, **JSON, **JSON_LINES, **IN_GZIP, **MODEL}
