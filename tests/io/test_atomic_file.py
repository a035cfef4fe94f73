"""Files that are written as a whole."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from fnmatch import fnmatch

import numpy as np
import pytest

from badacost.io import atomic_file
from badacost.io.atomic_file import TEMPORARY_NAMES, replaced_file
from badacost.io.model_file import write_model
from tests.file_size_limit import file_size_limit


@pytest.fixture(params=["unnamed", "named"], autouse=True)
def _kind(request, monkeypatch) -> None:
    """Systems with and without files that have no name."""
    if request.param == "named":
        monkeypatch.setattr(atomic_file, "_unnamed_file", lambda folder: None)


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path) -> None:
    path = tmp_path / "file"
    for text in ("old", "new"):
        with replaced_file(str(path)) as temporary:
            temporary.write_text(text)
            named = [found.name for found in tmp_path.iterdir() if found != path]
            assert all(fnmatch(name, TEMPORARY_NAMES) for name in named)
            assert not path.exists() or path.read_text() == "old"
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("begun", [True, False])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error, begun) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(type(error)), replaced_file(path) as temporary:  # noqa: PT012
        if begun:
            temporary.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_replaced(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with (
        pytest.raises(IsADirectoryError, match="name a file"),
        replaced_file(tmp_path / "folder") as temporary,
    ):
        temporary.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(OSError, match="File name too long: name a file"), replaced_file("9" * 400):
        pass


def test_modes_are_those_of_other_files(tmp_path) -> None:
    (tmp_path / "usual").touch()
    with replaced_file(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


_KILLED = """
import os, signal, sys
from badacost.io.atomic_file import replaced_file
with replaced_file(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files of this system have names")
def test_a_killed_process_leaves_nothing(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk is full: make room there, or name a file on another disk."),
        (errno.EFBIG, r"the file-size limit is reached: raise it \(ulimit -f\)."),
        (errno.EROFS, "Read-only file system: name a file in another folder."),
        (errno.EACCES, "Permission denied: name a file in another folder."),
        (errno.EIO, "Input/output error: name a file in another folder."),
    ],
)
def test_why_a_file_cannot_be_written(tmp_path, number, message) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    cause = OSError(number, os.strerror(number))
    with (
        pytest.raises(type(cause), match=f"^cannot write '{path}': {message}"),
        replaced_file(path),
    ):
        raise cause
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_sentences_are_not_changed(tmp_path) -> None:
    with pytest.raises(OSError, match=r"^enough$"), replaced_file(tmp_path / "file"):
        raise OSError("enough")


def test_a_limit_of_the_size_of_files(tmp_path) -> None:
    path = tmp_path / "model.badacost"
    write_model(path, "Kind", {}, {"a": np.zeros(3)})
    old = path.read_bytes()
    noise = np.random.default_rng(0).random(4096)
    message = r"cannot write .*model\.badacost': the file-size limit is reached"
    with file_size_limit(4096), pytest.raises(OSError, match=message):
        write_model(path, "Kind", {}, {"a": noise})
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system has no /proc")
def test_streams_are_written_through(tmp_path) -> None:
    """As /dev/stdout, a link to what a process has open, which may be a file."""
    with open(tmp_path / "redirected", "w+") as file:
        stdout = tmp_path / "stdout"
        stdout.symlink_to(f"/proc/self/fd/{file.fileno()}")
        (tmp_path / "link").symlink_to("stdout")
        for path in (tmp_path / "link", os.devnull):
            with replaced_file(path) as temporary:
                assert str(temporary) == str(path)
                temporary.write_text("new")
        assert stdout.is_symlink()
        assert file.read() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "redirected", "stdout"]


def test_links_and_permissions_stay(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "file", tmp_path / "link"
    path.touch(0o600)
    link.symlink_to(path)
    with replaced_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_systems_that_do_not_name_files_later(tmp_path, monkeypatch) -> None:
    def refused(*arguments, **options) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with replaced_file(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
