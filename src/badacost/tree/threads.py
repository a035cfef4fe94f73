"""Threads that share a loop over features or rows; the kernels inside release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from types import TracebackType
from typing import TypeVar, cast

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

    def map(
        self, work: Callable[[int, int], Result], length: int, grain: int | None = None
    ) -> list[Result]:
        """Call ``work(first, last)`` on parts of ``range(length)``; results are in their order.

        Parameters
        ----------
        work : callable
            What to do with a part.
        length : int
            End of the range.
        grain : int, optional
            Make parts of this length, which threads take as they become free, for work that is not
            spread evenly. By default each thread has one part.
        """
        n_parts = self.n_threads if grain is None else -(-length // grain)
        n_parts = max(1, min(n_parts, length))
        limits = [length * part // n_parts for part in range(n_parts + 1)]
        results: list[Result | None] = [None] * n_parts
        waiting = iter(enumerate(pairwise(limits)))

        def take_parts() -> None:
            for part, (first, last) in waiting:  # the interpreter hands out each part once
                results[part] = work(first, last)

        n_helpers = min(self.n_threads, n_parts) - 1
        futures = [self._pool.submit(take_parts) for _ in range(n_helpers)] if self._pool else []
        try:
            take_parts()
        except BaseException:
            for _ in waiting:  # the others shall not begin further parts
                pass
            raise
        finally:
            wait(futures)
        for future in futures:
            future.result()
        return cast(list[Result], results)
