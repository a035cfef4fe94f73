"""Hashes are read again for files that changed, and only for these."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from experiments import file_digests as module
from experiments.file_digests import FileDigests

TEXT = b"some pixels"
DIGEST = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    path.write_bytes(TEXT)
    return path


def digest(file: Path) -> str:
    with FileDigests(file.with_name("kept.json")) as digests:
        return digests.of(file)


def test_files_are_read_once(file, monkeypatch) -> None:
    assert digest(file) == DIGEST
    with monkeypatch.context() as patch:
        patch.setattr(module.hashlib, "sha256", None)
        assert digest(file) == DIGEST
    file.write_bytes(TEXT + b"!")  # another size
    assert digest(file) != DIGEST
    file.write_bytes(TEXT[::-1] + b"!")
    os.utime(file, ns=(5, 5))  # another time
    assert digest(file) == hashlib.sha256(TEXT[::-1] + b"!").hexdigest()


def damage(kept: object, file: Path) -> bytes:
    status = file.stat()
    facts = [status.st_size, status.st_mtime_ns]
    entry = [*facts, kept] if isinstance(kept, str) and len(kept) == 64 else kept
    return json.dumps({str(file): entry}).encode()


@pytest.mark.parametrize("kept", [None, 3, [], "x" * 64, [1, 2, "f" * 64], [[], {}, 3]])
def test_what_is_kept_is_checked(file, kept) -> None:
    file.with_name("kept.json").write_bytes(damage(kept, file))
    assert digest(file) == DIGEST
    assert digest(file) == DIGEST


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_made_again(file, text) -> None:
    path = file.with_name("kept.json")
    path.write_bytes(text)
    assert digest(file) == DIGEST
    assert json.loads(path.read_bytes())[str(file)][2] == DIGEST
