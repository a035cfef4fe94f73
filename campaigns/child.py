"""Calls in a child process, with limits of memory and time, and what became of each of them.

The child is a fork of this process, so that modules are imported and kernels are loaded already: no
other thread may run here. It reports before and after each call; where it dies between, that call
is what killed it, and another child goes on with the next one. While it runs, it may write to one
folder only, start no program and open no connection.
"""

from __future__ import annotations

import dis
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

_POLL_SECONDS = 0.02
_PATIENCE = 5.0  # times the limit of processor time, for a call that waits
_MAX_MESSAGE = 2000
_FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork",
              "socket.connect", "socket.bind", "pickle.find_class")  # fmt: skip
_CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink",
            "os.truncate", "os.chmod", "shutil.rmtree")  # fmt: skip
_ALLOWED = (ValueError, TypeError, FileNotFoundError, IsADirectoryError, PermissionError, OSError)
_CACHES = ("__pycache__", "numba")  # of compiled code
_SPEAKING = ("sklearn", "joblib", "lightgbm")
_OWN = ("badacost", "experiments")
_RAISES = ("RAISE_VARARGS", "RERAISE")


class Broken(Exception):
    """A promise of the library that did not hold."""


@dataclass(frozen=True)
class Limits:
    """What one call may take: seconds of processors, and bytes of the whole process.

    One that waits is stopped after five times these seconds of the clock: a machine that is busy
    with other things makes a call slower, and not a finding.
    """

    seconds: float
    memory: int


@dataclass(frozen=True)
class Outcome:
    """What became of a call.

    Attributes
    ----------
    status : {"value", "error", "exception", "signal", "time", "memory"}
        Whether it returned, refused its input as it should, raised something else, or was stopped.
    error : str
        Name of the class of what was raised, or of the signal.
    message : str
        What it said.
    where : str
        File and line that raised it, of the innermost frame in Python.
    seconds, megabytes : float
        Time of processors that it took, and peak memory of the process; where memory was refused
        to it, what the process could have had.
    """

    status: str
    error: str = ""
    message: str = ""
    where: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def is_finding(self) -> bool:
        """Whether this must not happen."""
        return self.status not in ("value", "error")


def run_in_children(
    calls: Sequence[Callable[[], Any]], folder: Path, limits: Limits
) -> Iterator[Outcome]:
    """Make calls one after the other in a child, and yield what became of each.

    Parameters
    ----------
    calls : sequence of functions without parameters
        What to call; a text that is returned becomes the message.
    folder : Path
        Folder that they may write to, and that they are called in.
    limits : Limits
        What each may take.

    Yields
    ------
    Outcome
        One for each call, in their order.
    """
    n_done = 0
    while n_done < len(calls):
        for outcome in _one_child(calls[n_done:], folder, limits):
            n_done += 1
            yield outcome


def _one_child(
    calls: Sequence[Callable[[], Any]], folder: Path, limits: Limits
) -> Iterator[Outcome]:
    """Fork, and yield outcomes until all calls are made or one of them ended the child."""
    # Those of the library wait, and a forked process starts its own.
    if any(thread.name != "badacost" for thread in threading.enumerate()[1:]):
        raise RuntimeError(f"children are forks: no other thread may run, {threading.enumerate()}.")
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS are harmless
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_the_child(calls, folder, limits, writing)
    os.close(writing)
    try:
        yield from _watched(pid, reading, len(calls), limits)
    finally:
        os.close(reading)


def _watched(pid: int, reading: int, n_calls: int, limits: Limits) -> Iterator[Outcome]:
    """Yield what a child reports; stop it where it takes too much, or when nobody listens."""
    buffer, n_seen, peak, stopped = b"", 0, 0.0, ""
    begin, used_before, used = time.monotonic(), _processor_seconds(pid), 0.0
    try:
        while n_seen < n_calls:
            if select.select([reading], [], [], _POLL_SECONDS)[0]:
                data = os.read(reading, 2**16)
                if not data:
                    break
                buffer += data
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    n_seen += 1
                    yield Outcome(**json.loads(line))
                    begin, used_before, peak = time.monotonic(), _processor_seconds(pid), 0.0
                continue
            peak = max(peak, _resident(pid))
            used = _processor_seconds(pid) - used_before
            if used > limits.seconds:
                stopped, message = "time", f"more than {limits.seconds:g} s"
            elif time.monotonic() - begin > _PATIENCE * limits.seconds:
                stopped, message = "time", f"waits for more than {_PATIENCE * limits.seconds:g} s"
            elif peak * 1e6 > limits.memory:
                stopped, message = "memory", f"more than {limits.memory / 1e6:.0f} MB"
            if stopped:
                break
    finally:
        if n_seen < n_calls:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if n_seen == n_calls:
        return
    if stopped:
        yield Outcome(stopped, "", message, "", used, peak)
    else:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        name = signal.Signals(number).name if number else f"exit {os.WEXITSTATUS(status)}"
        yield Outcome("signal", name, "the interpreter died", "", used, peak)


def _be_the_child(
    calls: Sequence[Callable[[], Any]], folder: Path, limits: Limits, writing: int
) -> None:
    """Make the calls, report each on the pipe, and never return."""
    try:
        os.chdir(folder)
        # Address space is no memory: only what could be written to is limited, generously.
        most = 2 * limits.memory + _bytes_of_data()
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        tempfile.tempdir = str(folder)
        faulthandler.disable()  # the parent tells of signals
        _guard(folder.resolve())
        for call in calls:
            report = json.dumps(asdict(_outcome(call, limits))) + "\n"
            os.write(writing, report.encode("ascii"))
        os._exit(0)
    except BaseException:
        os._exit(99)


def _outcome(call: Callable[[], Any], limits: Limits) -> Outcome:
    """Make one call; warnings of numpy and of the interpreter are errors."""
    _forget_peak()
    begin = time.process_time()
    status, name, message, where = "value", "", "", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # those of the library and scikit-learn
            warnings.filterwarnings("ignore", module="lightgbm")  # it has single precision only
            result = call()
        message = result if isinstance(result, str) else ""
    except BaseException as error:
        name, message = type(error).__name__, str(error)
        where = _place(error.__traceback__)
        status = "error" if is_refusal(error) else "exception"
        if isinstance(error, MemoryError):
            status, name = "memory", "MemoryError"  # numpy has one of its own
    peak = _peak() if status != "memory" else max(_peak(), limits.memory / 1e6)
    if status in ("value", "error") and peak * 1e6 > limits.memory:
        status, message = "memory", f"{peak:.0f} MB; {message}"
    seconds = time.process_time() - begin
    return Outcome(status, name, message[:_MAX_MESSAGE], where, seconds, peak)


def is_refusal(error: BaseException) -> bool:
    """Return whether an exception is a sentence for users, and not what happened to come.

    It is one of the library's classes or of those that users expect, and was raised on purpose: by
    a ``raise`` statement of the library, or within one that checks parameters of users for it. What
    numpy says of its own arrays is no such sentence.
    """
    kind = type(error)
    if kind not in _ALLOWED and not kind.__module__.startswith((*_OWN, "sklearn")):
        return False
    if not str(error).strip():
        return False
    modules = [
        str(frame.f_globals.get("__name__", "")).partition(".")[0]
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    if modules[-1] in _OWN:
        return _is_raise(error.__traceback__)
    own = [place for place, module in enumerate(modules) if module == "badacost"]
    return bool(own) and modules[own[-1] + 1] in _SPEAKING


def _is_raise(trace: TracebackType | None) -> bool:
    """Return whether the innermost frame of a traceback stands at a ``raise`` statement."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] in _RAISES


def _place(trace: TracebackType | None) -> str:
    """Return file and line of the innermost frame, by the name of the module."""
    frames = traceback.extract_tb(trace)
    if not frames:
        return ""
    path = Path(frames[-1].filename)
    return f"{'/'.join(path.parts[-2:])}:{frames[-1].lineno}"


def _guard(folder: Path) -> None:
    """Refuse, from now on, to write elsewhere, to start programs and to open connections."""
    kernels = os.path.realpath(os.environ.get("NUMBA_CACHE_DIR", folder))
    allowed = tuple(f"{place}{os.sep}" for place in (folder, kernels, os.devnull))
    allowed += (f"/proc/{os.getpid()}/",)

    def check_path(path: Any, event: str) -> None:
        if isinstance(path, bytes | str | os.PathLike):
            name = f"{os.path.realpath(os.fsdecode(path))}{os.sep}"
            if not name.startswith(allowed) and not any(word in name for word in _CACHES):
                raise Broken(f"{event} outside of the folder: {name}")

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = given
            changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            written = any(letter in mode for letter in "wax+") if mode else flags & changes
            if written:
                check_path(path, "writing")
        elif event in _CHANGES:
            for path in given[:2]:  # of those that have two, both
                check_path(path, event)
        elif event in _FORBIDDEN and not _is_numba(sys._getframe(1)):
            raise Broken(f"{event}{given!r:.200}")

    sys.addaudithook(hook)


def _is_numba(frame: FrameType | None) -> bool:
    """Return whether numba called, which keeps compiled kernels as pickles."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("numba."):
            return True
        frame = frame.f_back
    return False


def _processor_seconds(pid: int) -> float:
    """Return the time of processors that a process took, or a clock where the system is silent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    """Return megabytes of memory of a process, 0 where the system does not say."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0.0
    return int(pages) * resource.getpagesize() / 1e6


def _forget_peak() -> None:
    """Begin to measure the peak of this process anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> float:
    """Return the peak of this process in megabytes, since it was forgotten."""
    try:
        return _status_entry("VmHWM") * 1024 / 1e6
    except OSError:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / 1e6 if sys.platform == "darwin" else used * 1024 / 1e6


def _bytes_of_data() -> int:
    try:
        return _status_entry("VmData") * 1024
    except OSError:
        return 0


def _status_entry(name: str) -> int:
    """Return a size in kB that /proc says of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise OSError(f"/proc/self/status has no {name}")
