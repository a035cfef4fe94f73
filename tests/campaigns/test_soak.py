"""Kills are noticed, and so are their consequences."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from badacost.io.atomic_file import replaced_file
from campaigns import soak
from campaigns.processes import Child, orphans
from campaigns.soak import Killed
from campaigns.soak_tasks import DETECTIONS, KilledRun, Task, snapshot
from experiments.journal import Journal

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="not a Linux")


def prepare(folder: Path) -> None:
    (folder / "result").write_text("old")


def steps(folder: Path, n_steps: int = 20) -> int:
    """Count in a file, and give the result when that is done."""
    counted = folder / "counted"
    done = len(counted.read_text()) if counted.exists() else 0
    for _ in range(done, n_steps):
        time.sleep(0.01)
        with counted.open("a") as file:
            file.write(".")
    counted.unlink()
    with replaced_file(folder / "result") as temporary:
        temporary.write_text("new")
    return 0


def careless(folder: Path) -> int:
    (folder / "result").write_text("")
    (folder / f"temporary-{os.getpid()}").touch()
    status = steps(folder)
    (folder / f"temporary-{os.getpid()}").unlink()
    return status


def forgetful(folder: Path) -> int:
    """Take the file of a run before it for the result."""
    with_trace = (folder / "counted").exists()
    status = steps(folder)
    if with_trace:
        (folder / "result").write_text("other")
    return status


def killed(run, folder: Path):
    task = Killed(Task("toy", prepare, run, ("result",)), folder)
    cases = [task.case(Random(seed)) for seed in range(4)]
    return [case for case in cases if case.kills]


def test_nothing_is_found_where_all_is_well(tmp_path) -> None:
    cases = killed(steps, tmp_path)
    assert cases
    assert all(case.resumes == case.kills == len(case.moments) for case in cases)
    assert not any(case.mismatches or case.leftovers for case in cases)


def test_half_a_result_and_what_is_left_over(tmp_path) -> None:
    cases = killed(careless, tmp_path)
    assert any("result after the kill" in case.mismatches for case in cases)
    assert any(name.startswith("temporary-") for case in cases for name in case.leftovers)


def test_another_result_after_a_kill(tmp_path) -> None:
    assert any("result" in case.mismatches for case in killed(forgetful, tmp_path))


def test_all_processes_of_a_session_are_killed(tmp_path) -> None:
    def work() -> int:
        return subprocess.call([sys.executable, "-c", "import time; time.sleep(60)"])

    child = Child(work, tmp_path / "log")
    assert child.wait(0.3) is None
    child.kill()
    assert orphans(child.pid) == []


def test_an_orphan_is_found(tmp_path, monkeypatch) -> None:
    def work() -> int:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (tmp_path / "pid").write_text(str(process.pid))
        return 0

    monkeypatch.setattr("campaigns.processes._END_SECONDS", 0.2)
    child = Child(work, tmp_path / "log")
    assert child.wait(30) == 0
    pid = int((tmp_path / "pid").read_text())
    try:
        assert orphans(child.pid) == [pid]
    finally:
        os.kill(pid, signal.SIGKILL)


def test_slow_is_not_hanging(tmp_path) -> None:
    def work() -> int:
        end = time.process_time() + 0.7
        while time.process_time() < end:
            pass
        return 0

    assert Child(work, tmp_path / "log").finish(0.6) == 0
    child = Child(lambda: time.sleep(60) or 0, tmp_path / "log")
    assert child.finish(0.6) is None
    child.kill()


def test_an_error_of_the_child_is_told(tmp_path) -> None:
    def work() -> int:
        raise ArithmeticError("no luck")

    assert Child(work, tmp_path / "log").wait(30) == 1
    assert "no luck" in (tmp_path / "log").read_text()


def test_no_kill_is_no_success(tmp_path, monkeypatch, capsys) -> None:
    runs = iter([KilledRun("toy", late=1), KilledRun("toy", kills=1, resumes=1)])
    monkeypatch.setattr(soak, "_cases", lambda *arguments: (run for run in runs))
    assert soak.run(tmp_path, 0, 0, None) == 3
    assert "Nothing was killed" in capsys.readouterr().out
    assert soak.run(tmp_path, 0, 1, None) == 0  # the journal was closed
    Journal(tmp_path / "soak.jsonl", {"campaign": "soak", "seed": 0}).close()


def test_times_do_not_count(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text('{"cost": 1, "seconds": 3}\n')
    before = snapshot(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"cost": 1, "seconds": 4}\n')
    assert snapshot(tmp_path) == before
    (tmp_path / "a.jsonl").write_text('{"cost": 2, "seconds": 3}\n')
    assert snapshot(tmp_path) != before


def test_all_other_bytes_count(tmp_path) -> None:
    for name, text in (("a.json", '{"cost":  1}\n'), ("b.jsonl", '{"cost": 1}\n{"co')):
        (tmp_path / name).write_text(text)
    found = snapshot(tmp_path)
    assert found == {"a.json": b'{"cost":  1}\n', "b.jsonl": b'{"cost": 1}\n{"co'}


def test_formats_of_detections_take_turns() -> None:
    turns = [task for task in soak._ORDER if task in DETECTIONS]
    assert turns == list(DETECTIONS)
    assert [task.whole for task in turns] == [("found.jsonl",), ("found.csv",), ("found.json",), ()]
