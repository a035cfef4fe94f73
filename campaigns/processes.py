"""Children that can be killed with all that they started, and whether anything outlives them."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

_POLL_SECONDS = 0.001
_END_SECONDS = 60.0
_MAX_WAITS = 10
_MIN_SHARE = 0.01  # of a processor, for what is slow and does not hang


class Child:
    """A fork of this process, in a session of its own; what it prints goes to a file.

    Modules are imported and kernels are loaded already, so that it is at work at once. No other
    thread of Python may run here.
    """

    def __init__(self, work: Callable[[], int], log: Path):
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS are harmless
            self.pid = os.fork()
        if self.pid == 0:
            _be_child(work, log)

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or None if it still runs after so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= deadline:
                return None
            time.sleep(_POLL_SECONDS)

    def finish(self, seconds: float) -> int | None:
        """Return the exit status, or None if it hangs: it does nothing for so many seconds.

        A busy machine only makes it slower; one that computes for ten times as long hangs, too.
        """
        used = 0.0
        for _ in range(_MAX_WAITS):
            status = self.wait(seconds)
            before, used = used, sum(_members(self.pid).values())
            if status is not None or used - before < _MIN_SHARE * seconds:
                break
        return status

    def kill(self) -> None:
        """End it at once, with all processes of its session."""
        kill_session(self.pid)
        os.waitpid(self.pid, 0)


def _be_child(work: Callable[[], int], log: Path) -> None:
    """Work, and end without a return to what the parent was doing."""
    status = 1
    try:
        os.setsid()
        sys.stdout = sys.stderr = log.open("a", buffering=1)
        for number in (1, 2):  # of its own children, too
            os.dup2(sys.stdout.fileno(), number)
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def kill_session(leader: int) -> None:
    """Send SIGKILL to the process group of a session, or to its leader alone before it has one."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(leader, signal.SIGKILL)


def orphans(leader: int) -> list[int]:
    """Return processes of a session whose leader has ended, after some time to end themselves."""
    deadline = time.monotonic() + _END_SECONDS
    while (found := _members(leader)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(found)


def _members(session: int) -> dict[int, float]:
    """Return processes of a session and the seconds of processors that each took."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            ticks = sum(map(int, fields[11:15]))  # also those of children that have ended
            found[int(path.parent.name)] = ticks / os.sysconf("SC_CLK_TCK")
    return found
