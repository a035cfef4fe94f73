"""What a child is stopped for, and what is told from what."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from badacost import BAdaCostClassifier, load
from badacost.io.budget import as_bytes
from campaigns import child
from campaigns.child import Limits, run_in_children

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="not a Linux")


def outcomes(calls, folder: Path, seconds: float = 20.0, memory: int = 1_500_000_000):
    return list(run_in_children(calls, folder, Limits(seconds, memory)))


def test_a_child_that_dies_is_followed_by_another(tmp_path) -> None:
    calls = [
        lambda: "first",
        lambda: os.kill(os.getpid(), signal.SIGSEGV),
        lambda: os._exit(3),
        lambda: "last",
    ]
    found = outcomes(calls, tmp_path)
    assert [outcome.status for outcome in found] == ["value", "signal", "signal", "value"]
    assert [outcome.error for outcome in found] == ["", "SIGSEGV", "exit 3", ""]
    assert [outcome.is_finding for outcome in found] == [False, True, True, False]


def test_time_and_memory_are_limited(tmp_path) -> None:
    def allocate() -> None:
        taken = np.ones(2**26)
        time.sleep(60)
        del taken

    def compute() -> None:
        while True:
            pass

    found = outcomes([compute, lambda: time.sleep(60)], tmp_path, seconds=0.2)
    assert [outcome.status for outcome in found] == ["time", "time"]
    assert [outcome.message for outcome in found] == ["more than 0.2 s", "waits for more than 1 s"]
    assert found[0].seconds > 0.2 > found[1].seconds
    calls = [lambda: np.ones(2**34), allocate, lambda: "done"]
    (alone,) = outcomes([lambda: ""], tmp_path)  # a child has not all pages of its parent
    memory = int(alone.megabytes * 1e6) + 2**28
    found = outcomes(calls, tmp_path, seconds=30.0, memory=memory)
    assert [outcome.status for outcome in found] == ["memory", "memory", "value"]


def test_a_busy_machine_is_no_finding(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(child, "_PATIENCE", 1e9)
    (found,) = outcomes([lambda: time.sleep(0.5)], tmp_path, seconds=0.2)
    assert (found.status, found.seconds < 0.2) == ("value", True)


def test_memory_is_that_of_the_call(tmp_path) -> None:
    large, small = outcomes([lambda: np.ones(2**25).sum() and "", lambda: ""], tmp_path)
    assert large.megabytes > small.megabytes + 200


def test_refusals_are_raised_on_purpose(tmp_path) -> None:
    calls = [
        lambda: as_bytes("many"),
        lambda: load("no-such-file"),
        lambda: BAdaCostClassifier().fit([[1.0]], [0]),
        lambda: BAdaCostClassifier(n_jobs="x").fit([[1.0], [2.0]], [0, 1]),
        lambda: np.zeros(3).reshape(2),
        lambda: int("text"),
        lambda: {}["key"],
        lambda: np.log(np.zeros(1)),
    ]
    found = outcomes(calls, tmp_path)
    assert [outcome.status for outcome in found] == ["error"] * 4 + ["exception"] * 4
    assert found[1].error == "FileNotFoundError"
    assert found[-1].error == "RuntimeWarning"


def test_nothing_leaves_the_folder(tmp_path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    outside = tmp_path / "outside"
    calls = [
        lambda: (inside / "file").write_text("") or "",
        lambda: Path("relative").write_text("") or "",
        lambda: outside.write_text(""),
        lambda: Path("../inside2").mkdir(),
        lambda: os.system("true"),
        lambda: (inside / "file").rename(outside),
    ]
    found = outcomes(calls, inside)
    assert [outcome.status for outcome in found] == ["value"] * 2 + ["exception"] * 4
    assert {outcome.error for outcome in found[2:]} == {"Broken"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside"]
