"""Parts of a range, whatever the number of threads."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import pytest
from joblib import effective_n_jobs

from badacost._utils import parallel
from badacost._utils.parallel import Threads, number_of_threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, 7, -1])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 10, 101])
def test_parts_cover_the_range_in_order(length, n_jobs) -> None:
    threads = Threads(n_jobs)
    parts = threads.map(lambda first, last: list(range(first, last)), length)
    assert [i for part in parts for i in part] == list(range(length))
    assert len(parts) == max(1, min(threads.n_threads, length))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 7, 100])
def test_parts_of_a_given_grain(length, n_jobs) -> None:
    threads = Threads(n_jobs)
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

    threads = Threads(2)
    threads.map(work, 10, grain=1)


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(None, 1), (1, 1), (2, 2), (5, 5), (-1, effective_n_jobs(-1))]
)
def test_number_of_threads(n_jobs, expected) -> None:
    threads = Threads(n_jobs)
    assert threads.n_threads == expected


def test_parts_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=30)
    threads = Threads(3)
    assert len(threads.map(lambda first, last: meeting.wait(), 3)) == 3


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("bad", [0, 4, 8])
def test_exceptions_propagate(bad, n_jobs) -> None:
    def work(first: int, last: int) -> int:
        if first <= bad < last:
            raise ArithmeticError(f"part of {bad}")
        return last

    threads = Threads(n_jobs)
    with pytest.raises(ArithmeticError, match=f"part of {bad}"):
        threads.map(work, 9)
    assert threads.map(lambda first, last: last, 9)[-1] == 9  # still usable


@pytest.mark.parametrize("n_jobs", [1, 2, 8, 64])
def test_every_task_is_done_once(n_jobs) -> None:
    """Results are in the order of the tasks, whichever thread took them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = Threads(n_jobs)
        for n_tasks in (0, 1, 2, 63, 5000):
            done: list[int] = []

            def work(number: int, name: str, done=done) -> str:
                done.append(number)
                return name * 2

            tasks = ((number, str(number)) for number in range(n_tasks))
            results = threads.run(work, tasks)
            assert sorted(done) == list(range(n_tasks))
            assert results == [str(number) * 2 for number in range(n_tasks)]
    finally:
        sys.setswitchinterval(before)


def test_threads_may_be_asked_from_many_threads() -> None:
    """As where trees that share a pool of threads are grown side by side."""
    with ThreadPoolExecutor(6) as callers:
        futures = [
            callers.submit(Threads(3).run, lambda i, k=k: i * k, ((i,) for i in range(200)))
            for k in range(30)
        ]
        for k, future in enumerate(futures):
            assert future.result(timeout=60) == [i * k for i in range(200)]


def test_no_further_task_is_begun_after_an_error() -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ArithmeticError("the first")
        time.sleep(0.001)

    threads = Threads(2)
    with pytest.raises(ArithmeticError, match="the first"):
        threads.run(work, ((number,) for number in range(1000)))
    n_begun = len(begun)
    assert threads.run(lambda number: number, [(1,), (2,)]) == [1, 2]
    assert n_begun < 1000
    assert len(begun) == n_begun


def test_threads_are_used_again() -> None:
    Threads(4).map(lambda first, last: None, 100)
    before = threading.active_count()
    for _ in range(500):
        Threads(4).map(lambda first, last: None, 100)
    assert threading.active_count() == before


def test_loops_may_be_nested() -> None:
    threads = Threads(3)
    tasks = [(2,), (3,)]
    found = threads.run(lambda i: threads.run(lambda j: i * j, ((j,) for j in range(9))), tasks)
    assert found == [[i * j for j in range(9)] for i in (2, 3)]


def test_a_loop_does_not_wait_for_threads_that_do_other_work() -> None:
    release, threads = threading.Event(), Threads(2)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(threads.run, lambda _: release.wait(60), [(0,), (1,)])
        assert threads.run(lambda i: i, [(1,), (2,)]) == [1, 2]
        release.set()
        assert other.result(timeout=60) == [True, True]


@pytest.mark.parametrize(
    ("limits", "nested", "expected"),
    [
        ({}, False, 8),
        ({"OMP_NUM_THREADS": "3"}, False, 3),
        ({}, True, 1),
        ({"OMP_NUM_THREADS": "2"}, True, 2),
    ],
)
def test_all_cores_unless_limited(limits, nested, expected, monkeypatch) -> None:
    monkeypatch.setattr(parallel, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in limits.items():
        monkeypatch.setenv(name, value)
    if not nested:
        assert number_of_threads(None) == expected
        with joblib.parallel_config(n_jobs=1):
            assert number_of_threads(None) == 1
    else:
        call = joblib.delayed(number_of_threads)
        assert joblib.Parallel(2, backend="threading")([call(None)] * 2) == [expected] * 2


def test_no_threads_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="n_jobs"):
        Threads(0)
