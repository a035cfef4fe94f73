"""Loops that threads share without the GIL: every part once, from any number of callers."""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

from badacost._utils import parallel
from badacost._utils.loop_kernels import OPEN, USERS, Loop, loop_kernel
from badacost._utils.parallel import Threads


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


@loop_kernel
def fill(pair, counts, ranges, part, first, last):
    ranges[part, 0], ranges[part, 1] = first, last
    for i in range(first, last):
        counts[i] += 1.0 + pair.factor * pair.values[i]


@loop_kernel
def wait(arrived, n, part, first, last):
    arrived[part] = 1
    n_arrived = np.int64(0)
    for _ in range(2**40):
        n_arrived = arrived.sum()
        if n_arrived >= n:
            return


def filled(n_threads: int, length: int, least: int) -> tuple[np.ndarray, Loop]:
    loop = Threads(n_threads).loop(length, least)
    counts, ranges = np.zeros(length), np.full((loop.n_parts, 2), -1)
    fill(loop, Pair(np.arange(length, dtype=float), 2.0), counts, ranges)
    np.testing.assert_array_equal(counts, 1.0 + 2.0 * np.arange(length))
    return ranges, loop


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
@pytest.mark.parametrize("length", [0, 1, 2, 5, 1000])
def test_parts_cover_the_range_in_order(n_threads, length) -> None:
    ranges, loop = filled(n_threads, length, 3)
    assert ranges[0, 0] == 0
    assert ranges[-1, 1] == length
    np.testing.assert_array_equal(ranges[1:, 0], ranges[:-1, 1])
    assert loop.n_parts <= max(1, 4 * n_threads)
    assert loop.n_parts == 1 or length > 3


def test_many_loops_of_several_threads() -> None:
    """More callers than slots may be free at times, and loops so short that helpers come late."""
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(filled, 2 + k % 7, 20 + k % 50, 1) for k in range(4000)]:
            future.result()
    assert not parallel.workers.state[:, USERS][: parallel.loops.N_SLOTS].any()


def test_all_threads_take_part() -> None:
    """Each part waits for all others, hence they run at the same time."""
    for n_threads in (2, 4):
        loop = Loop(Threads(n_threads).loop(2, 1).state, n_threads, n_threads, n_threads)
        parallel.workers.help_kernels(n_threads - 1)
        arrived = np.zeros(n_threads, np.int64)
        wait(loop, arrived, n_threads)
        assert arrived.all()


def test_no_more_threads_than_asked_for() -> None:
    parallel.workers.help_kernels(7)
    loop = Threads(2).loop(100, 1)
    assert (loop.n_threads, loop.n_parts) == (2, 8)


def test_a_full_table_of_loops() -> None:
    """The caller works alone."""
    workers = parallel._Workers()
    workers.help_kernels(1)
    workers.state[: parallel.loops.N_SLOTS, USERS] = OPEN
    counts, ranges = np.zeros(10), np.zeros((5, 2), np.int64)
    fill(Loop(workers.address, 3, 10, 5), Pair(np.zeros(10), 1.0), counts, ranges)
    np.testing.assert_array_equal(ranges[:, 0], range(0, 10, 2))
    np.testing.assert_array_equal(counts, 1.0)


def test_threads_that_wait_cost_nothing() -> None:
    filled(4, 1000, 1)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    filled(3, 100, 1)
    process = multiprocessing.get_context("fork").Process(target=filled, args=(3, 100, 1))
    process.start()
    process.join(60)
    assert process.exitcode == 0
