"""The same bits whatever happens around a fit: threads, processes, a damaged cache, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from badacost._utils import parallel
from badacost._utils.validation import check_choice
from campaigns.bits_models import MODELS, digests
from campaigns.processes import Child

Digests = dict[str, str]
_PATIENCE = 1800.0
_END_SECONDS = 10.0
_AT_ONCE = 16
_INTERRUPTIONS = 3  # of each fit
_CHILD = """
import json, sys
from campaigns.bits_models import digests
print(json.dumps(digests(tuple(sys.argv[1:]), 2)))
"""
_READ_ONLY = """
from numba.core import caching
def refuse(locator):
    raise PermissionError("read-only")
caching._CacheLocator.ensure_cache_path = refuse
"""


def threads(n_jobs: int, names: tuple[str, ...], folder: Path) -> Digests:
    """Fit in this process."""
    return digests(names, n_jobs)


def forked(names: tuple[str, ...], folder: Path) -> Digests:
    """Fit in a fork of this process, which has used threads."""
    return _in_child(lambda: digests(names, 2), names, folder)


def _in_child(work: Callable[[], Digests], names: tuple[str, ...], folder: Path) -> Digests:
    """Return what is found in a fork of this process."""
    path, log = folder / "found.json", folder / "child.log"

    def write() -> int:
        path.write_text(json.dumps(work()))
        return 0

    child = Child(write, log)
    status = child.wait(_PATIENCE)
    if status is None:
        child.kill()
    if status != 0:
        return dict.fromkeys(names, "it did not end" if status is None else f"failed: see {log}")
    return json.loads(path.read_text())


def spawned(
    names: tuple[str, ...], folder: Path, program: str = _CHILD, **variables: str
) -> Digests:
    """Fit in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", program, *names],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
        env={**os.environ, **variables},
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return dict.fromkeys(names, f"exit status {done.returncode}: {last}")
    return json.loads(done.stdout.splitlines()[-1])


def at_once(n_jobs: int, names: tuple[str, ...], folder: Path) -> Digests:
    """Fit each model in 16 threads at the same time."""
    found = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for name in names:
            futures = [pool.submit(MODELS[name], n_jobs) for _ in range(_AT_ONCE)]
            try:
                several = {future.result(_PATIENCE) for future in futures}
            except Exception as error:
                several = {f"{type(error).__name__}: {error}"}
            found[name] = several.pop() if len(several) == 1 else f"{len(several)} models"
    return found


def damaged_cache(damage: str, names: tuple[str, ...], folder: Path) -> Digests:
    """Fit in a new process that finds a cache of which each file is damaged."""
    cache = folder / "damaged"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(os.environ["NUMBA_CACHE_DIR"], cache)
    random = Random(damage)
    for path in sorted(cache.rglob("*.nb[ic]")):
        content = bytearray(path.read_bytes())
        if damage == "cut":
            content = content[: random.randrange(len(content))]
        elif damage == "empty":
            content = bytearray()
        else:
            for _ in range(1 + len(content) // 1000):
                content[random.randrange(len(content))] = random.randrange(256)
        path.write_bytes(content)
    return spawned(names, folder, NUMBA_CACHE_DIR=str(cache))


def unwritable_cache(names: tuple[str, ...], folder: Path) -> Digests:
    """Fit in a new process that can write no cache."""
    return spawned(names, folder, program=_READ_ONLY + _CHILD)


def interrupted(names: tuple[str, ...], folder: Path) -> Digests:
    """Fit again after Ctrl-C at random moments of the same fit, in one process."""
    return _in_child(lambda: _interrupt_fits(names), names, folder)


def _interrupt_fits(names: tuple[str, ...]) -> Digests:
    found, random = {}, Random(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in names:
        begin = time.monotonic()
        digests((name,), 2)
        seconds = time.monotonic() - begin
        for _ in range(_INTERRUPTIONS):
            arguments = (os.getpid(), signal.SIGINT)
            timer = threading.Timer(random.uniform(0.0, seconds), os.kill, arguments)
            try:
                timer.start()
                digests((name,), 2)
                timer.join()
            except KeyboardInterrupt:
                pass
            timer.cancel()
            timer.join()
        n_threads = _threads_left()
        found[name] = f"{n_threads} threads are left" if n_threads else digests((name,), 2)[name]
    return found


def _threads_left() -> int:
    """Return how many threads are alive besides the workers of the process."""
    deadline = time.monotonic() + _END_SECONDS
    while n_threads := threading.active_count() - 1 - parallel.workers.n_threads:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return n_threads


# One of each family of kernels, for cases that compile everything anew.
_FEW = ("BAdaCostClassifier", "CostBoostClassifier", "PIBoostClassifier", "detector, costboost")
_COMPILING = "cache: "
CASES: dict[str, Callable[[tuple[str, ...], Path], Digests]] = {
    **{f"{n} threads": partial(threads, n) for n in (2, 3, 4)},
    "forked": forked,
    "spawned": spawned,
    **{f"{_AT_ONCE} at once x {n}": partial(at_once, n) for n in (1, 2)},
    **{
        f"{_COMPILING}{damage}": partial(damaged_cache, damage)
        for damage in ("bytes", "cut", "empty")
    },
    f"{_COMPILING}unwritable": unwritable_cache,
    "after Ctrl-C": interrupted,
}


def run(folder: Path, cases: tuple[str, ...] | None, models: tuple[str, ...] | None) -> int:
    """Print for each case which models differ from those of one thread; 1 if any does.

    Cases that compile everything take a few models, unless some are named.
    """
    for case in cases or ():
        check_choice("cases", case, CASES)
    for beginning in models or ():
        if not any(name.startswith(beginning) for name in MODELS):
            check_choice("models", beginning, MODELS)
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = tuple(name for name in MODELS if models is None or name.startswith(models))
    expected = digests(chosen, 1)
    failed = [f"{name}: {text}" for name, text in expected.items() if len(text) != 64]
    print(f"{len(chosen)} models on one thread: {'; '.join(failed) or 'fitted'}", flush=True)
    n_different = len(failed)
    for case, fit in CASES.items():
        if cases is not None and case not in cases:
            continue
        begin = time.monotonic()
        names = chosen
        if models is None and case.startswith(_COMPILING):
            names = _FEW
        found = fit(names, folder)
        different = [name for name in names if found.get(name) != expected[name]]
        n_different += len(different)
        seconds = time.monotonic() - begin
        print(f"{case:24}{len(names) - len(different):4} same{len(different):4} different"
              f"{seconds:8.0f} s", flush=True)  # fmt: skip
        for name in different:
            print(f"    {name}: {found.get(name)}")
    return int(n_different > 0)
