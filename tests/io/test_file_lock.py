"""Locks: one process at a time, and none that is dead."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from badacost.io.file_lock import FileLock

HOLD = "import sys; from badacost.io.file_lock import FileLock; lock = FileLock(sys.argv[1])\n"
WAIT = HOLD + "print('held', flush=True); sys.stdin.read()"


@pytest.fixture(params=["file", "folder"])
def path(request, tmp_path: Path) -> Path:
    place = tmp_path / request.param
    if request.param == "folder":
        place.mkdir()
    return place


def files(folder: Path) -> list[str]:
    return [found.name for found in folder.rglob("*") if found.is_file()]


def test_the_second_is_refused(path: Path, tmp_path: Path) -> None:
    with FileLock(path) as lock:
        with pytest.raises(BlockingIOError, match=rf"another process .*{path.name}': .* name anot"):
            FileLock(path)
        lock.release()
        FileLock(path).release()
        lock.release()
    assert files(tmp_path) == []


def test_a_link_is_what_it_leads_to(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    with FileLock(path), pytest.raises(BlockingIOError, match=r"'.*link': wait until it has"):
        FileLock(link)


def test_threads_are_told_apart(path: Path) -> None:
    refused = []

    def other() -> None:
        try:
            FileLock(path).release()
        except BlockingIOError as error:
            refused.append(error)

    with FileLock(path):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_a_killed_process_holds_nothing(path: Path) -> None:
    command = [sys.executable, "-c", WAIT, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError, match="another process is writing"):
            FileLock(path)
        process.kill()
    assert files(path.parent)  # which the dead one left
    FileLock(path).release()
    assert not files(path.parent)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_no_part_in_it(path: Path) -> None:
    """A child that outlives its parent must not hold the lock, nor release that of its parent."""
    lock = FileLock(path)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        lock.release()
        os.read(read, 1)  # until the parent has looked
        os._exit(0)
    try:
        with pytest.raises(BlockingIOError, match="another process is writing"):
            FileLock(path)
        lock.release()
        FileLock(path).release()  # although the child lives
    finally:
        os.close(write)
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks(path: Path, monkeypatch, number) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*arguments) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with FileLock(path), FileLock(path):
        pass


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="its folder does not exist: create it first"):
        FileLock(tmp_path / "no" / "file")
