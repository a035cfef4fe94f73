"""Parts of a range, whatever the number of threads."""

from __future__ import annotations

import threading

import pytest
from joblib import effective_n_jobs

from badacost.threads import Threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, 7, -1])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 10, 101])
def test_parts_cover_the_range_in_order(length, n_jobs) -> None:
    with Threads(n_jobs) as threads:
        parts = threads.map(lambda first, last: list(range(first, last)), length)
    assert [i for part in parts for i in part] == list(range(length))
    assert len(parts) == max(1, min(threads.n_threads, length))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 7, 100])
def test_parts_of_a_given_grain(length, n_jobs) -> None:
    with Threads(n_jobs) as threads:
        parts = threads.map(lambda first, last: list(range(first, last)), length, grain=7)
    assert [i for part in parts for i in part] == list(range(length))
    assert max(map(len, parts)) <= 7


def test_a_slow_part_does_not_hold_up_the_others() -> None:
    others = threading.Semaphore(0)

    def work(first: int, last: int) -> None:
        if first == 0:
            for _ in range(9):
                assert others.acquire(timeout=30)
        else:
            others.release()

    with Threads(2) as threads:
        threads.map(work, 10, grain=1)


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(None, 1), (1, 1), (2, 2), (5, 5), (-1, effective_n_jobs(-1))]
)
def test_number_of_threads(n_jobs, expected) -> None:
    with Threads(n_jobs) as threads:
        assert threads.n_threads == expected


def test_parts_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=30)
    with Threads(3) as threads:
        assert len(threads.map(lambda first, last: meeting.wait(), 3)) == 3


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("bad", [0, 4, 8])
def test_exceptions_propagate(bad, n_jobs) -> None:
    def work(first: int, last: int) -> int:
        if first <= bad < last:
            raise ArithmeticError(f"part of {bad}")
        return last

    with Threads(n_jobs) as threads:
        with pytest.raises(ArithmeticError, match=f"part of {bad}"):
            threads.map(work, 9)
        assert threads.map(lambda first, last: last, 9)[-1] == 9  # still usable


def test_no_thread_outlives_the_block() -> None:
    before = threading.active_count()
    with Threads(4) as threads:
        threads.map(lambda first, last: None, 100)
    assert threading.active_count() == before


def test_no_threads_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="n_jobs"):
        Threads(0)
