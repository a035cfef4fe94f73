"""Kill -9 at random moments: what is resumed ends in the same bytes, with nothing left over."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from random import Random

from badacost._utils.progress import ProgressBar
from campaigns import TOO_SHORT, cluster
from campaigns.processes import Child, orphans
from campaigns.soak_tasks import COMPILE, DETECTIONS, TASKS, KilledRun, Task, snapshot
from experiments.journal import Journal

_PATIENCE = 120.0  # seconds for what takes a few
_AGAIN = 0.4  # share of the resumed runs that are killed, too
_ORDER = tuple(  # None for the cluster
    task
    for detection, last in zip(DETECTIONS, (None, COMPILE, None, None), strict=True)
    for task in (detection, *TASKS, last)
)
_COLUMNS = ("cases", "kills", "late", "resumes", "mismatches", "leftovers")


class Killed:
    """A task in a folder, what it leaves if nobody kills it, and how long that takes."""

    def __init__(self, task: Task, folder: Path):
        self.task, self.folder = task, folder / task.name.replace(" ", "-")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.start, self.now = self.folder / "start", self.folder / "now"
        self.temporary = self.folder / "tmp"
        self.start.mkdir(parents=True)
        with (self.folder / "log").open("w") as log, redirect_stdout(log), redirect_stderr(log):
            task.prepare(self.start)
            self._begin()
            status = task.run(self.now)  # here, so that all children have loaded what they need
        self.before, self.expected = snapshot(self.start), snapshot(self.now)
        if status:
            raise RuntimeError(f"{task.name} failed: see {self.folder / 'log'}.")
        self._begin()
        begin = time.monotonic()
        case = KilledRun(task.name)
        self._finish(case, self._child())
        self.seconds = time.monotonic() - begin
        self._compare(case)
        if case.mismatches or case.leftovers:
            raise RuntimeError(f"{task.name}: two runs differ: {case.mismatches + case.leftovers}")

    def case(self, random: Random) -> KilledRun:
        """Kill a run, and perhaps the one after it, and compare what the last one leaves."""
        case = KilledRun(self.task.name)
        self._begin()
        while True:
            child, begin = self._child(), time.monotonic()
            moment = random.uniform(0.0, self.seconds)
            if child.wait(moment) is not None:
                case.late += 1
                if not case.resumes:  # the machine is less busy than it was
                    self.seconds = time.monotonic() - begin
                break
            child.kill()
            case.kills += 1
            case.moments.append(round(moment, 4))
            case.leftovers += [f"process {pid}" for pid in orphans(child.pid)]
            self._check_whole(case)
            case.resumes += 1
            if random.random() >= _AGAIN:
                self._finish(case, self._child())
                break
        self._compare(case)
        return case

    def _begin(self) -> None:
        for folder in (self.now, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.start, self.now)
        self.temporary.mkdir()

    def _child(self) -> Child:
        def work() -> int:
            tempfile.tempdir = os.environ["TMPDIR"] = str(self.temporary)
            return self.task.run(self.now)

        return Child(work, self.folder / "log")

    def _finish(self, case: KilledRun, child: Child) -> None:
        """Wait for the end of a run that nobody kills."""
        status = child.finish(_PATIENCE)
        if status is None:
            child.kill()
            case.mismatches.append("did not end")
        elif status:
            case.mismatches.append(f"exit status {status}")
        case.leftovers += [f"process {pid}" for pid in orphans(child.pid)]

    def _check_whole(self, case: KilledRun) -> None:
        """A result is the old or the new one, whenever it is looked at."""
        found = snapshot(self.now)
        for name in self.task.whole:
            allowed = (self.before.get(name), self.expected.get(name))
            if found.get(name) not in allowed:
                case.mismatches.append(f"{name} after the kill")

    def _compare(self, case: KilledRun) -> None:
        found = snapshot(self.now)
        for name, content in self.expected.items():
            if found.get(name) != content:
                case.mismatches.append(name if name in found else f"{name} is missing")
        case.leftovers += sorted({*found} - {*self.expected})
        case.leftovers += [f"temporary {name}" for name in snapshot(self.temporary)]


def run(folder: Path, seed: int, kills: int, minutes: float | None) -> int:
    """Kill so often, or for so long, and return 1 if anything was not as it should be.

    If all was, but the time was too short for a kill, this returns 3. Finished cases are in a
    journal: the same command resumes.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60.0 * minutes
    folder = folder.absolute()
    header = {"campaign": "soak", "seed": seed}
    with (
        Journal(folder / "soak.jsonl", header) as journal,
        closing(ProgressBar(kills, "Kills")) as bar,
        closing(_cases(folder, seed, len(journal.records))) as cases,
    ):
        n_done = sum(record["kills"] for record in journal.records)
        while n_done < kills and time.monotonic() < deadline:
            case = next(cases)
            journal.append(asdict(case))
            n_done += case.kills
            bar.update(min(n_done, kills))
            for text in (*case.mismatches, *case.leftovers):
                print(f"{case.task}, killed after {case.moments} s: {text}")
    return _summary([KilledRun(**record) for record in journal.records])


def _cases(folder: Path, seed: int, number: int) -> Generator[KilledRun]:
    """Yield cases from a number on; tasks take turns."""
    prepared: dict[str, Killed] = {}
    workers: cluster.Cluster | None = None
    try:
        while True:
            task, random = _ORDER[number % len(_ORDER)], Random(f"{seed} {number}")
            if task is None:
                workers = workers or cluster.Cluster()
                yield workers.case(random)
            else:
                if task.name not in prepared:
                    prepared[task.name] = Killed(task, folder)
                yield prepared[task.name].case(random)
            number += 1
    finally:
        if workers is not None and (left := workers.close()):
            print(f"{cluster.NAME}: left processes {left}")


def _summary(cases: list[KilledRun]) -> int:
    """Print a table, and return the exit status."""
    rows: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COLUMNS, 0))
    for case in cases:
        for row in (rows[case.task], rows["all"]):
            row["cases"] += 1
            for name in ("kills", "late", "resumes"):
                row[name] += getattr(case, name)
            row["mismatches"] += len(case.mismatches)
            row["leftovers"] += len(case.leftovers)
    rows["all"] = rows.pop("all", dict.fromkeys(_COLUMNS, 0))
    print(f"{'task':26}" + "".join(f"{name:>12}" for name in _COLUMNS))
    for task, row in rows.items():
        print(f"{task:26}" + "".join(f"{row[name]:12}" for name in _COLUMNS))
    if any(rows["all"][name] for name in ("mismatches", "leftovers")):
        return 1
    if not rows["all"]["kills"]:
        print("Nothing was killed, which says nothing: give it more --minutes.")
        return TOO_SHORT
    return 0
