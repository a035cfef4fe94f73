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
_END_SECONDS = 10.0


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
    return found


def _members(session: int) -> list[int]:
    """Return processes of a session, as far as the system tells."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
