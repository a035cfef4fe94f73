"""Threads that share a loop over features or rows; the kernels inside release the GIL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar, cast

from joblib import effective_n_jobs

Result = TypeVar("Result")
_MAX_THREADS = 256  # n_jobs may come from a file, with the worst intentions


class Threads:
    """A pool that cuts a range into contiguous parts; `n_jobs` as in scikit-learn, at most 256."""

    def __init__(self, n_jobs: int | None = None):
        n_threads = 1 if n_jobs in (None, 1) else effective_n_jobs(n_jobs)
        self.n_threads: int = min(n_threads, _MAX_THREADS)
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

    def parts(self, length: int, grain: int | None = None) -> list[tuple[int, int]]:
        """Cut ``range(length)`` into a part for each thread, or into parts of about `grain`."""
        n_parts = self.n_threads if grain is None else -(-length // grain)
        n_parts = max(1, min(n_parts, length))
        return list(pairwise(length * part // n_parts for part in range(n_parts + 1)))

    def map(
        self, work: Callable[[int, int], Result], length: int, grain: int | None = None
    ) -> list[Result]:
        """Call ``work(first, last)`` on the parts of a range; results are in their order.

        With a `grain`, threads take parts as they become free: for work that is not spread evenly.
        """
        return self.run(work, self.parts(length, grain))

    def run(self, work: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]) -> list[Result]:
        """Call ``work(*task)`` for each task; threads take the next one as they become free."""
        waiting = list(tasks)
        if self._pool is None or len(waiting) == 1:
            return [work(*task) for task in waiting]
        results: list[Result | None] = [None] * len(waiting)
        numbers, lock = iter(range(len(waiting))), Lock()

        def next_number() -> int | None:
            with lock:
                return next(numbers, None)

        def take_tasks() -> None:
            try:
                while (number := next_number()) is not None:
                    results[number] = work(*waiting[number])
            except BaseException:
                while next_number() is not None:  # the others shall not begin further tasks
                    pass
                raise

        n_helpers = min(self.n_threads, len(waiting)) - 1
        futures = [self._pool.submit(take_tasks) for _ in range(n_helpers)]
        try:
            take_tasks()
        finally:
            wait(futures)
        for future in futures:
            future.result()
        return cast(list[Result], results)
