"""The container of a model: what goes in comes out, whatever else is in a file is refused."""

from __future__ import annotations

import json
import os
import pickle
import struct
import tempfile
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator

from badacost import (
    BAdaCostClassifier,
    MinimumCostClassifier,
    load,
)
from badacost.io import model_file
from badacost.io.model_file import ModelFileError, read_model, write_model
from campaigns import hostile_models

KIND = "BAdaCostClassifier"


def same_array(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def write_zip(path, members, method=zipfile.ZIP_DEFLATED):
    """An archive of any members, given as pairs so that names can repeat."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)


def document(**changes):
    base = {
        "format": "badacost", "version": 2, "kind": KIND, "library": "0", "header": {},
        "arrays": {"a": {"dtype": "<f8", "shape": [2]}},
    }  # fmt: skip
    return json.dumps({**base, **changes}).encode()


def hostile(path, text=None, data=b"\0" * 16, extra=()):
    text = document() if text is None else text
    write_zip(path, [("model.json", text), ("arrays/a.bin", data), *extra])
    return path


def refused(path, match, **options):
    """The error names the file, says what is wrong, and is the only one."""
    with pytest.raises(ModelFileError, match=match) as caught:
        read_model(path, **options)
    assert str(path) in str(caught.value)


# Round trips

ARRAYS = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9_]{1,12}", fullmatch=True),
    hnp.arrays(
        st.sampled_from(["?", "i4", "i8", "u1", "u2", "u4", "f4", "f8", ">f8", ">i4"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    max_size=4,
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(header=st.dictionaries(st.text(), JSON, max_size=3), arrays=ARRAYS)
def test_round_trip(header, arrays):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        write_model(path, KIND, header, arrays)
        model = read_model(path)
    assert (model.kind, model.header) == (KIND, header)
    assert model.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        native = array.astype(array.dtype.newbyteorder("="))
        assert same_array(model.arrays[name], native)
        assert model.arrays[name].flags.writeable
        assert model.arrays[name].flags.c_contiguous


# Writing


def test_folder_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_model(tmp_path / "no" / "model", KIND, {}, {})


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.arange(3), "ndarray"),
        (np.int64(3), "int64"),
        (float("nan"), "not JSON compliant"),
        ({"deep": [1, {(2,): "two"}]}, "keys must be"),
        (object(), "object"),
        (b"bytes", "bytes"),
    ],
)
def test_header_that_json_cannot_hold(tmp_path, value, match):
    with pytest.raises(TypeError, match=rf"the header cannot be saved as JSON: .*{match}"):
        write_model(tmp_path / "model", KIND, {"fine": 1, "costs": value}, {})
    assert not list(tmp_path.iterdir())


def test_header_nested_in_itself(tmp_path):
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="header cannot be saved"):
        write_model(tmp_path / "model", KIND, {"loop": loop}, {})


@pytest.mark.parametrize(
    ("name", "array", "error"),
    [
        ("a", np.array([None]), TypeError),
        ("a", np.zeros(2, np.float16), TypeError),
        ("a", np.zeros(2, "c16"), TypeError),
        ("a", np.array(["text"]), TypeError),
        ("a", np.zeros(2, "i4,f8"), TypeError),
        ("a", np.zeros((1, 1, 1, 1)), TypeError),
        ("../a", np.zeros(2), TypeError),
        ("", np.zeros(2), TypeError),
    ],
)
def test_arrays_that_cannot_be_saved(tmp_path, name, array, error):
    with pytest.raises(error, match=r"^array '.*' of dtype .* cannot be saved"):
        write_model(tmp_path / "model", KIND, {}, {name: array})
    assert not list(tmp_path.iterdir())


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_model(path, KIND, {}, {"a": np.arange(3.0)})
    before = path.read_bytes()

    def full(*args):
        raise OSError("disk full")

    monkeypatch.setattr(model_file, "_write_member", full)
    with pytest.raises(OSError, match="disk full"):
        write_model(path, KIND, {}, {"a": np.arange(4.0)})
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == before


# Hostile files


def test_missing_file(tmp_path):
    for function in (read_model, load):
        with pytest.raises(FileNotFoundError):
            function(tmp_path / "none")


@pytest.mark.parametrize(
    "data", [b"", b"PK\x05\x06", b"hello\n" * 100, pickle.dumps({"a": 1}), b"\0" * 1000]
)
def test_not_an_archive(tmp_path, data):
    path = tmp_path / "model"
    path.write_bytes(data)
    refused(path, "not a zip file")


def test_folder(tmp_path):
    refused(tmp_path, "is a folder: name a file")


def test_what_is_no_regular_file(tmp_path):
    """A pipe is not waited for, and links that lead nowhere are named."""
    (pipe, loop) = paths = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in paths:
        refused(path, r"cannot read the model file: .* (is not a regular|cannot be opened)")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"", "damaged or no model file"),
        (b"\xff\xfe{}", "damaged or no model file"),
        (b"{", "damaged or no model file"),
        (b'{"format": "badacost", "format": "other"}', "a key is repeated"),
        (b'{"version": NaN}', "nan is not a finite|NaN is not a finite"),
        (b'{"version": 1e999}', "1e999 is not a finite"),
        (b'{"version": -Infinity}', "Infinity is not a finite"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "damaged or no model file"),
        (b"[" * 100_000 + b"]" * 100_000, "damaged or no model file"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "damaged or no model file"),
        (b"[]", "not a model of badacost"),
        (b"{}", "not a model of badacost"),
        (document(format="other"), "not a model of badacost"),
        (document(version=3, arrays=None), "version is 3: upgrade badacost if a newer one"),
        (document(version=True), "version"),
        (document(version="1"), "version"),
        (document(version=0), "version"),
        (document(kind=3), "'kind'"),
        (document(library=None), "'library'"),
        (document(header=[]), "'header'"),
        (document(arrays=[]), "'arrays'"),
        (document(arrays={}), "do not match at 'arrays/a.bin'"),
        (document(arrays={"../a": {"dtype": "<f8", "shape": [2]}}), "do not match at"),
        (
            document(arrays={key: {"dtype": "<f8", "shape": [2]} for key in "ab"}),
            "do not match at 'arrays/b.bin'",
        ),
        (document(arrays={"a": None}), "dtype and a shape"),
        (document(arrays={"a": {"dtype": "<f8"}}), "dtype and a shape"),
    ],
)
def test_hostile_document(tmp_path, text, match):
    refused(hostile(tmp_path / "model", text), match)


@pytest.mark.parametrize(
    ("dtype", "shape", "data", "match"),
    [
        ("|O", [2], b"\0" * 16, "dtype"),
        ("|O", [1], pickle.dumps(print), "dtype"),
        (">f8", [2], b"\0" * 16, "dtype"),
        ("<f2", [8], b"\0" * 16, "dtype"),
        ("float64", [2], b"\0" * 16, "dtype"),
        ("<i4,<i4", [2], b"\0" * 16, "dtype"),
        (["<f8"], [2], b"\0" * 16, "dtype"),
        (None, [2], b"\0" * 16, "dtype"),
        ("<f8", [-2], b"\0" * 16, "shape"),
        ("<f8", [-1, -2], b"\0" * 16, "shape"),
        ("<f8", [2.0], b"\0" * 16, "shape"),
        ("<u1", [True], b"\0", "dtype"),
        ("|u1", [True], b"\0", "shape"),
        ("<f8", 2, b"\0" * 16, "shape"),
        ("<f8", "2", b"\0" * 16, "shape"),
        ("<f8", [2, 1, 1, 1], b"\0" * 16, "shape"),
        ("<f8", [2**62, 0], b"", "shape"),
        ("<f8", [2**61], b"", "shape"),
        ("<f8", [2**40], b"\0" * 16, "bytes, not those of its shape"),
        ("<f8", [2**30, 2**30, 2**30], b"", "bytes, not those of its shape"),
        ("<f8", [3], b"\0" * 16, "bytes, not those of its shape"),
        ("<f8", [1], b"\0" * 16, "bytes, not those of its shape"),
        ("<f4", [2], b"\0" * 16, "bytes, not those of its shape"),
        ("<f8", [2], b"\0" * 12, "bytes, not those of its shape"),
        ("|b1", [2], b"\1\2", "not booleans"),
    ],
)
def test_hostile_array(tmp_path, dtype, shape, data, match):
    text = document(arrays={"a": {"dtype": dtype, "shape": shape}})
    refused(hostile(tmp_path / "model", text, data), match)


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "arrays/../a.bin", "arrays/b.bin"])
def test_unexpected_member(tmp_path, name):
    refused(hostile(tmp_path / "model", extra=[(name, b"data")]), "do not match at")


@pytest.mark.parametrize("name", ["model.json", "arrays/a.bin"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_member(tmp_path, name):
    refused(hostile(tmp_path / "model", extra=[(name, b"{}")]), "same name")


def test_missing_document(tmp_path):
    write_zip(tmp_path / "model", [("arrays/a.bin", b"\0" * 16)])
    refused(tmp_path / "model", r"no model\.json")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_exotic_compression(tmp_path, method):
    write_zip(tmp_path / "model", [("model.json", document())], method)
    refused(tmp_path / "model", "unknown method")


def patch_headers(path, name, local, central, form, value):
    """Overwrite a field of a member in its local header and in the directory."""
    data = bytearray(path.read_bytes())
    for mark, offset, name_at in ((b"PK\x03\x04", local, 30), (b"PK\x01\x02", central, 46)):
        at = data.index(mark)
        while data[at + name_at : at + name_at + len(name)] != name:
            at = data.index(mark, at + 1)
        struct.pack_into(form, data, at + offset, value)
    path.write_bytes(data)


def test_encrypted_member(tmp_path):
    path = hostile(tmp_path / "model")
    patch_headers(path, b"arrays/a.bin", 6, 8, "<H", 1)
    refused(path, "encrypted")


def peak_of(action):
    """Bytes that an action takes at most."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_zip_bomb_is_refused_before_it_is_read(tmp_path, monkeypatch):
    text = document(arrays={"a": {"dtype": "|u1", "shape": [2**24]}})
    path = hostile(tmp_path / "model", text, b"\0" * 2**24)
    assert path.stat().st_size < 2**15
    assert read_model(path, max_memory="20 MB").arrays["a"].size == 2**24
    monkeypatch.setattr(model_file, "_read_array", None)
    refused(path, r"it would need 16.79 MB, limit 1 MB: pass max_memory=", max_memory="1 MB")
    patch_headers(path, b"arrays/a.bin", 22, 24, "<I", 2**32 - 2)
    refused(path, r"it would need 4\.3 GB, limit 1 GB")


def test_an_array_is_unpacked_into_its_place(tmp_path):
    """There is never more than one copy of it."""
    text = document(arrays={"a": {"dtype": "<f8", "shape": [2**21]}})
    path = hostile(tmp_path / "model", text, np.arange(2.0**21).tobytes())
    assert peak_of(lambda: read_model(path)) < 2**24 + 2**22
    assert_array_equal(read_model(path).arrays["a"], np.arange(2.0**21))


@pytest.mark.parametrize(
    ("build", "size", "limit", "match"),
    [
        (hostile_models.array_bomb, 2**26, "10 MB", "it would need 67.15 MB, limit 10 MB: pass"),
        (hostile_models.deep_json, 10**6, "10 MB", "it would need .* limit 10 MB"),
        (hostile_models.deep_json, 2 * 10**5, "1 GB", "nested too deep"),
        (hostile_models.many_keys, 10**4, "1 MB", "it would need .* limit 1 MB"),
        (hostile_models.many_members, 40_000, "10 MB", "it would need 29.7 MB, limit 10 MB"),
        (hostile_models.many_classes, 500, "20 MB", "a model of 500 classes would need 52"),
        (hostile_models.many_features, 2**31 - 1, "1 GB", "2147483647 features would need 51.5"),
        (hostile_models.many_labels, 300, "1 GB", "the labels would need 3.61 GB, limit 1 GB"),
    ],
    ids=["array", "deep", "deeper", "keys", "members", "classes", "features", "labels"],
)
def test_files_that_claim_too_much(tmp_path, build, size, limit, match):
    """They are refused before their claims take memory."""
    path = tmp_path / "model"
    build(path, size)

    def fail():
        with pytest.raises(ModelFileError, match=match) as caught:
            load(path, max_memory=limit)
        assert f"cannot read the model file {str(path)!r}" in str(caught.value)

    assert peak_of(fail) < 2**23


def test_nested_models_are_counted_together(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 100
    model = BAdaCostClassifier(1 - np.eye(100), n_estimators=1).fit(X, y)
    for _ in range(4):
        model = MinimumCostClassifier(FrozenEstimator(model), 1 - np.eye(100)).fit(X, y)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model", max_memory="12 MB").classes_.size == 100
    with pytest.raises(ModelFileError, match=r"a model of 100 classes would need .* limit 4 MB"):
        load(tmp_path / "model", max_memory="4 MB")


def test_text_and_arrays_are_counted_together(tmp_path):
    header = {"names": ["a"] * 50_000}  # more than half of the limit, and so are the arrays
    write_model(tmp_path / "model", "Unknown", header, {"a": np.zeros(800_000)})
    assert read_model(tmp_path / "model", max_memory="14 MB").arrays["a"].size == 800_000
    with pytest.raises(ModelFileError, match=r"it would need .* limit 10 MB"):
        read_model(tmp_path / "model", max_memory="10 MB")
    write_model(tmp_path / "text", "Unknown", header, {})
    write_model(tmp_path / "arrays", "Unknown", {}, {"a": np.zeros(800_000)})
    for name in ("text", "arrays"):
        read_model(tmp_path / name, max_memory="10 MB")


def test_labels_of_all_columns_are_counted_together(tmp_path):
    model = hostile_models.small_model()
    labels = {"dtype": "U100000", "values": ["a", "b"]}
    model.header["categories"] = [[column, labels] for column in range(60)]
    write_model(tmp_path / "model", model.kind, model.header, model.arrays)
    with pytest.raises(ModelFileError, match=r"the labels would need .* limit 30 MB"):
        load(tmp_path / "model", max_memory="30 MB")


def test_the_kind_is_checked_before_arrays_are_unpacked(tmp_path, monkeypatch):
    write_model(tmp_path / "model", "Unknown", {}, {"a": np.zeros(3)})
    monkeypatch.setattr(model_file, "_read_array", None)
    with pytest.raises(ModelFileError, match="holds a model of the unknown kind 'Unknown'"):
        load(tmp_path / "model")


@pytest.mark.parametrize("declared", [0, 8, 24, 2**20])
def test_directory_that_lies_about_the_size(tmp_path, declared):
    text = document(arrays={"a": {"dtype": "|u1", "shape": [declared]}})
    path = hostile(tmp_path / "model", text, np.arange(16, dtype=np.uint8).tobytes())
    patch_headers(path, b"arrays/a.bin", 22, 24, "<I", declared)
    refused(path, "CRC|bytes, not those")


def test_lying_directory_yields_no_more_than_it_declares(tmp_path):
    bomb = b"\0" * 2**24
    text = document(arrays={"a": {"dtype": "|u1", "shape": [8]}})
    path = hostile(tmp_path / "model", text, bomb)
    patch_headers(path, b"arrays/a.bin", 22, 24, "<I", 8)
    patch_headers(path, b"arrays/a.bin", 14, 16, "<I", zlib.crc32(bomb[:8]))
    assert_array_equal(read_model(path).arrays["a"], np.zeros(8, np.uint8))
