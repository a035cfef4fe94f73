"""Only regular files are opened, and nothing is waited for."""

from __future__ import annotations

import os

import pytest

from badacost.io.user_file import open_regular


def test_a_file_and_a_link_to_it(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"12")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"12"


def test_what_is_no_file(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    for name, kind, text in [
        ("missing", FileNotFoundError, "there is no file .*missing': check its name and folder"),
        ("file/inside", FileNotFoundError, "there is no file"),
        ("nul\0l", FileNotFoundError, "there is no file"),
        (".", IsADirectoryError, "is a folder: name a file"),
        ("pipe", OSError, "is not a regular file: copy its contents into one"),
        ("loop", OSError, "cannot be opened: Too many levels of symbolic links"),
    ]:
        with pytest.raises(kind, match=text):
            open_regular(f"{tmp_path}/{name}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_file_of_others(tmp_path) -> None:
    (tmp_path / "secret").touch(mode=0)
    with pytest.raises(PermissionError, match="cannot be opened: Permission denied"):
        open_regular(tmp_path / "secret")
