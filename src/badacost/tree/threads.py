"""Threads that share a loop over features or rows; the kernels inside release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import TypeVar

from joblib import effective_n_jobs

Result = TypeVar("Result")
_MOST_THREADS = 256  # n_jobs may come from a file, with the worst intentions


class Threads:
    """A pool that cuts a range into contiguous parts, one for each thread.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None is one thread, -1 is one for each core. At most 256.
    """

    def __init__(self, n_jobs: int | None = None):
        self.n_threads: int = min(effective_n_jobs(n_jobs), _MOST_THREADS)
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, work: Callable[[int, int], Result], length: int) -> list[Result]:
        """Call ``work(first, last)`` on parts of ``range(length)``; results are in their order."""
        n_parts = max(1, min(self.n_threads, length))
        limits = [length * part // n_parts for part in range(n_parts + 1)]
        if self._pool is None or n_parts == 1:
            return [work(limits[0], limits[-1])]
        futures = [self._pool.submit(work, *part) for part in pairwise(limits[1:])]
        return [work(limits[0], limits[1]), *(future.result() for future in futures)]
