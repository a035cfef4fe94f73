"""Loops over rows and features on several threads, with the same results for any number of them.

`Threads` divide a loop among threads; kernels release the GIL. Sums depend neither on the order of
their terms nor on the division into partial sums: a number is split in two, a multiple of a coarse
quantum and a multiple of a fine one, both powers of two, and within each of the two sums are exact
in double precision. `snapshot` copies an estimator, for use beside a fit in another thread.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from itertools import chain, pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar, cast

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from badacost._utils import loop_kernels as loops
from badacost._utils import sum_kernels as kernels
from badacost._utils.arrays import FloatArray, Labels

Result = TypeVar("Result")
T = TypeVar("T")
_MAX_THREADS = 256  # n_jobs may come from a file that is hostile


def number_of_threads(n_jobs: int | None) -> int:
    """Threads of a parameter `n_jobs`, at most 256.

    A number is that of scikit-learn: -1 is one thread for each core. None is one for each core too,
    but one in the workers of joblib; ``joblib.parallel_config`` and the environment variable
    OMP_NUM_THREADS set other numbers.
    """
    if n_jobs is not None:
        return 1 if n_jobs == 1 else min(effective_n_jobs(n_jobs), _MAX_THREADS)
    backend, configured = get_active_backend()
    n_threads = effective_n_jobs(configured)  # one where nothing is configured
    if configured is None:
        n_cores = 1 if backend.nesting_level else cpu_count()
        limit = os.environ.get("OMP_NUM_THREADS", "")
        n_threads = min(int(limit), cpu_count()) if limit.isdecimal() and int(limit) else n_cores
    return int(min(n_threads, _MAX_THREADS))


class _Loop:
    """Tasks of a loop: threads take the next one as they become free."""

    def __init__(self, work: Callable[..., Any], tasks: list[tuple[Any, ...]]):
        self.work, self.results = work, [None] * len(tasks)
        self.waiting, self.n_left = deque(enumerate(tasks)), len(tasks)
        self.error: BaseException | None = None
        self.lock, self.done = Lock(), Lock()
        self.done.acquire()  # until no task is left

    def take_tasks(self) -> None:
        """Work on tasks until none is waiting."""
        while True:
            try:
                number, task = self.waiting.popleft()
            except IndexError:
                return
            n_ended = 1
            try:
                self.results[number] = self.work(*task)
            except BaseException as error:
                self.error = self.error or error
                with suppress(IndexError):  # the others shall not begin further tasks
                    while True:
                        self.waiting.popleft()
                        n_ended += 1
            with self.lock:
                self.n_left -= n_ended
                if not self.n_left:
                    self.done.release()


def _taken_lock() -> int:
    """Address of a lock of Python, which is released by another thread."""
    lock = int(_new_lock())
    _acquire(lock, 1)
    return lock


_new_lock, _acquire = (
    ctypes.pythonapi.PyThread_allocate_lock,
    ctypes.pythonapi.PyThread_acquire_lock,
)
_new_lock.restype, _acquire.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]


class _Workers:
    """The threads of this process: they wait, without spinning, for loops to work on.

    Those of compiled loops are others than those that call Python functions.
    """

    def __init__(self) -> None:
        self.n_threads = 0
        self._loops: SimpleQueue[_Loop] = SimpleQueue()
        self._starting = Lock()
        self.state = np.zeros((loops.LAST + 1, loops.N_WORDS), np.int64)
        self.address = int(self.state.ctypes.data)
        for slot in range(loops.N_SLOTS):
            self.state[slot, loops.LOCK] = _taken_lock()

    def help(self, loop: _Loop, n_helpers: int) -> None:
        """Work on a loop with some threads, once they are free."""
        while self.n_threads < n_helpers:
            self.n_threads += 1
            Thread(target=self._run, name="badacost", daemon=True).start()
        for _ in range(n_helpers):
            self._loops.put(loop)

    def help_kernels(self, n_helpers: int) -> None:
        """See that so many threads wait for compiled loops."""
        row = self.state[loops.LAST]
        if row[loops.N_HELPERS] >= n_helpers:
            return
        with self._starting:
            row[loops.RUN] = loops.address_of_run()
            for number in range(int(row[loops.N_HELPERS]), min(n_helpers, loops.MAX_HELPERS)):
                self.state[loops.N_SLOTS + number, loops.LOCK] = _taken_lock()
                Thread(
                    target=self._wait_for_loops, args=(number,), name="badacost", daemon=True
                ).start()
                row[loops.N_HELPERS] = number + 1

    def _wait_for_loops(self, number: int) -> None:
        loops.wait_for_loops(self.address, number)  # and keep `state`, whose address this is

    def _run(self) -> None:
        while True:
            self._loops.get().take_tasks()


workers = _Workers()


def _forget_workers() -> None:
    global workers
    workers = _Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)  # threads do not survive a fork


class Threads:
    """A number of threads, this one included, among which loops are divided.

    All of them share the threads of the process. A loop never waits for a thread that is not
    running: the caller works on the tasks that no other thread has begun. Loops may be nested.
    """

    def __init__(self, n_jobs: int | None = 1, n_helpers: int | None = None):
        self._n_threads = None if n_jobs is None else number_of_threads(n_jobs)
        self._n_helpers = n_helpers  # threads that wait for compiled loops; all others by default

    def divided(self, n: int) -> Threads:
        """Threads of each of `n` loops that run at the same time and share helping threads."""
        n_helpers = max(0, self.n_threads - n)
        return Threads(1 + -(-n_helpers // n), n_helpers)

    @property
    def n_threads(self) -> int:
        """Number of threads; cores are counted when it is first needed, which takes 0.1 ms."""
        if self._n_threads is None:
            self._n_threads = number_of_threads(None)
        return self._n_threads

    @property
    def max_parts(self) -> int:
        """Most parts of a compiled loop: four for each thread, which may not be equally fast."""
        return 1 if self.n_threads == 1 else 4 * self.n_threads

    def grain(self, length: int, least: int) -> int:
        """Size of the parts of a range: one for each thread, but not less than `least`."""
        return least if length <= least else max(least, -(-length // self.n_threads))

    def parts(self, length: int, grain: int | None = None) -> list[tuple[int, int]]:
        """Cut ``range(length)`` into a part for each thread, or into parts of about `grain`."""
        if length < 2:
            return [(0, length)]
        n_parts = self.n_threads if grain is None else -(-length // grain)
        n_parts = max(1, min(n_parts, length))
        return list(pairwise(length * part // n_parts for part in range(n_parts + 1)))

    def loop(self, length: int, least: int, most: int | None = None) -> loops.Loop:
        """Divide ``range(length)`` for a kernel, into at most `most` parts of `least` or more."""
        if length <= least or self.n_threads == 1:
            return loops.Loop(workers.address, 1, length, 1)
        n_helpers = self.n_threads - 1 if self._n_helpers is None else self._n_helpers
        workers.help_kernels(n_helpers)
        n_parts = min(most or self.max_parts, -(-length // least))
        return loops.Loop(workers.address, self.n_threads, length, n_parts)

    def map(
        self, work: Callable[[int, int], Result], length: int, grain: int | None = None
    ) -> list[Result]:
        """Call ``work(first, last)`` on the parts of a range; results are in their order.

        With a `grain`, threads take parts as they become free: for work that is not spread evenly.
        """
        if grain is not None and length <= grain:
            return [work(0, length)]
        return self.run(work, self.parts(length, grain))

    def run(self, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> list[Result]:
        """Call ``work(*task)`` for each task; threads take the next one as they become free."""
        waiting = list(tasks)
        n_helpers = min(self.n_threads, len(waiting)) - 1 if len(waiting) > 1 else 0
        if n_helpers < 1:
            return [work(*task) for task in waiting]
        loop = _Loop(work, waiting)
        workers.help(loop, n_helpers)
        loop.take_tasks()
        loop.done.acquire()
        if loop.error is not None:
            raise loop.error
        return cast(list[Result], loop.results)


class _SingleBlasThread:
    """A context in which numpy multiplies matrices on one thread, so that bits do not vary."""

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._limits = _thread_pools().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limits.restore_original_limits()


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks through all libraries: 5 ms


single_blas_thread = _SingleBlasThread()


def snapshot(estimator: T) -> T:
    """A shallow copy of an estimator, which does not change if another thread fits it."""
    copied = object.__new__(type(estimator))
    copied.__dict__ = estimator.__dict__.copy()
    return copied


ROWS_AT_ONCE = 32_768  # of a loop over rows, so that temporary copies are small
MIN_ROWS = 131_072  # of a loop over rows that are worth a thread of their own: about 0.1 ms
PADDING = 16  # numbers after the sums of a part of a loop: threads must not share cache lines
_HUGE = 2.0**900  # larger numbers are scaled down, since a sum of quanta would overflow
_SCALE = 2.0**-100

Units = tuple[Any, Any]


def units_of(largest: Any, n_terms: int) -> Units:
    """Powers of two above the sum of all terms, and above the sum of their low halves."""
    n_bits = n_terms.bit_length()
    numbers: Any = np if isinstance(largest, np.ndarray) else math  # ten times as fast for one
    coarse = numbers.ldexp(1.0, numbers.frexp(largest)[1] + n_bits)
    return coarse, coarse * 2.0 ** (n_bits - 52)


def split_high_low(terms: FloatArray, units: Units | None = None) -> tuple[FloatArray, FloatArray]:
    """Split terms, none of them negative, into (high, low), two arrays whose sums are exact.

    Together they have about a hundred bits, counted from the sum of all terms. A block of a longer
    array needs the units of the whole.
    """
    coarse, fine = units or units_of(terms.max(initial=0.0), len(terms))
    high = (terms + coarse) - coarse
    low = ((terms - high) + fine) - fine
    return high, low


def largest_of(terms: FloatArray, threads: Threads | None = None) -> float:
    """The largest of some numbers; -inf if there are none."""
    if len(terms) <= ROWS_AT_ONCE:
        return float(terms.max(initial=-np.inf))
    return float(max(over_rows(lambda rows: terms[rows].max(), len(terms), threads)))


def exact_sum(terms: FloatArray, threads: Threads | None = None) -> float:
    """Return the sum of terms, none of them negative."""
    terms = _contiguous(terms)
    largest = max(0.0, largest_of(terms, threads))
    if largest > _HUGE:
        return exact_sum(terms * _SCALE, threads) / _SCALE
    high, low = split_sums(terms, units_of(largest, len(terms)), threads)
    return float(high + low)


def split_sums(terms: FloatArray, units: Units, threads: Threads | None = None) -> FloatArray:
    """Sums (2,) of the high and low halves of terms; partial sums can be added exactly."""
    loop = (threads or Threads()).loop(len(terms), MIN_ROWS)
    sums = np.empty((loop.n_parts, 2))
    kernels.split_sums(loop, _contiguous(terms), *map(float, units), sums)
    return combined(np.add, sums)


def exact_bincount(
    cells: Labels, terms: FloatArray, n_cells: int, threads: Threads | None = None
) -> FloatArray:
    """Return the sums of terms by cell, shape (n_cells,), like `numpy.bincount`.

    Small sums are as precise as large ones: each cell has units of its own.
    """
    largest = bin_maxima(cells, terms, n_cells, threads)
    huge = largest > _HUGE
    if huge.any():
        scale = np.where(huge, _SCALE, 1.0)
        return exact_bincount(cells, terms * scale[cells], n_cells, threads) / scale
    sums = bin_split_sums(cells, terms, units_of(largest, len(terms)), threads)
    return np.asarray(sums[0] + sums[1])


def bin_maxima(
    cells: Labels, terms: FloatArray, n_cells: int, threads: Threads | None = None
) -> FloatArray:
    """Largest terms by cell, none of them negative."""
    loop = (threads or Threads()).loop(len(terms), MIN_ROWS)
    largest = np.zeros((loop.n_parts, n_cells + PADDING))
    kernels.bin_maxima(loop, _cells(cells), _contiguous(terms), largest)
    return combined(np.maximum, largest[:, :n_cells])


def bin_split_sums(
    cells: Labels, terms: FloatArray, units: Units, threads: Threads | None = None
) -> FloatArray:
    """Sums by cell (2, n_cells) of the high and low halves of terms, with units for each cell."""
    loop = (threads or Threads()).loop(len(terms), MIN_ROWS)
    n_cells = len(units[0])
    sums = np.zeros((loop.n_parts, 2, n_cells + PADDING))
    kernels.bin_split_sums(loop, _cells(cells), _contiguous(terms), *units, sums)
    return combined(np.add, sums[:, :, :n_cells])


def combined(operation: np.ufunc, parts: FloatArray) -> FloatArray:
    """Results of the parts of a loop as one: numpy takes as long for one part as a kernel."""
    result: FloatArray = parts[0] if len(parts) == 1 else operation.reduce(parts)
    return result


def _cells(cells: Labels) -> Labels:
    """Numbers of cells of the type and layout that kernels take."""
    if cells.dtype == np.int32 and cells.flags.c_contiguous and cells.flags.writeable:
        return cells
    return np.array(cells, np.int32)


def _contiguous(terms: NDArray[Any]) -> FloatArray:
    """Terms of the type and layout that kernels take."""
    if terms.flags.c_contiguous and terms.flags.writeable and terms.dtype == np.float64:
        return terms
    return np.array(terms, np.float64)


def over_rows(
    work: Callable[[slice], Result], n_rows: int, threads: Threads | None = None
) -> list[Result]:
    """Call ``work(rows)`` for blocks of rows, at least once; results are in their order."""
    if n_rows <= ROWS_AT_ONCE:
        return [work(slice(0, n_rows))]

    def of_thread(first: int, last: int) -> list[Result]:
        starts = range(first, max(last, first + 1), ROWS_AT_ONCE)
        return [work(slice(start, min(start + ROWS_AT_ONCE, last))) for start in starts]

    threads = threads or Threads()
    results = threads.map(of_thread, n_rows, threads.grain(n_rows, MIN_ROWS))
    return list(chain.from_iterable(results))


def blocks(n_rows: int) -> list[slice]:
    """Blocks of rows, so that temporary arrays stay small."""
    return [slice(first, first + ROWS_AT_ONCE) for first in range(0, n_rows, ROWS_AT_ONCE)]
