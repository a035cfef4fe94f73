"""Changes are the same each time, fit every content, and reach what they say."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import badacost
from campaigns.mutations import ALL, BYTES, MODEL, TEXT, applied, drawn_edit, rewritten

CONTENTS = [b"", b"x", b"a,b\n1,2\n", b'{"a": [1, {"b": null}]}', b"\xff\xfe\x00"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m.badacost"
    badacost.SAMMEClassifier(n_estimators=1).fit([[1.0], [2.0]], [0, 1]).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", ALL)
def test_every_change_fits_every_content(name, model) -> None:
    rng = np.random.default_rng(0)
    for content in (*CONTENTS, model):
        for _ in range(5):
            edit = json.loads(json.dumps([name, 0, *ALL[name].draw(rng)]))
            changed = applied(content, edit)
            assert isinstance(changed, bytes)
            assert applied(content, edit) == changed


@pytest.mark.parametrize("mutations", [BYTES, TEXT], ids=["bytes", "text"])
def test_most_changes_change_something(mutations) -> None:
    rng = np.random.default_rng(0)
    content = b"name,number\none,1\ntwo,2\n"
    changed = [applied(content, drawn_edit(rng, mutations)) != content for _ in range(200)]
    assert np.mean(changed) > 0.8


def test_changed_model_files_have_right_checksums(model) -> None:
    rng = np.random.default_rng(0)
    documents = set()
    for _ in range(50):
        changed = applied(model, drawn_edit(rng, {"array": MODEL["array"]}))
        with zipfile.ZipFile(io.BytesIO(changed)) as archive:
            assert archive.testzip() is None
            documents.add(archive.read("model.json"))
    assert len(documents) > 5


def test_an_array_is_rewritten(model) -> None:
    changed = rewritten(model, "forest_threshold", 7.0)
    with zipfile.ZipFile(io.BytesIO(changed)) as archive:
        values = np.frombuffer(archive.read("arrays/forest_threshold.bin"), "<f8")
    assert (values == 7.0).all()
