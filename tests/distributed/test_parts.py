"""Parts on a cluster: the same answers, whatever happens to the workers."""

from __future__ import annotations

import logging
import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badacost.distributed import LostWorkersError
from badacost.distributed import parts as module
from badacost.distributed.parts import DaskParts, cannot_be_computed_again, place_chunks
from badacost.parts import ByPart
from tests.distributed.killing import n_actors, wait_until
from tests.distributed.toy import SlowToBuild, Toy

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

VALUES = np.arange(28.0)


def chunks_of(array: Any, *more: Any) -> list[tuple[Any, ...]]:
    return [(block, *more) for block in array.to_delayed().ravel()]


def toy_parts(client: Any, n_chunks: int = 7, kind: Any = Toy, **options: Any) -> DaskParts:
    array = da.from_array(VALUES, chunks=len(VALUES) // n_chunks)
    return DaskParts(client, kind, *place_chunks(client, chunks_of(array), False), **options)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_answers_come_in_the_order_of_the_parts(cluster_of) -> None:
    client = cluster_of(2)
    with toy_parts(client) as parts:
        assert len(parts) == 2
        sums = [VALUES[:12].sum(), VALUES[12:].sum()]
        assert parts.ask("total") == sums
        assert parts.ask("tell", ByPart([1.0, 2.0]), keep=True) == [[1.0], [2.0]]
        assert parts.ask("tell", 3.0) == [[1.0, 3.0], [2.0, 3.0]]
        assert parts.n_asked == 3
        assert parts.waited >= parts.worked > 0.0
    wait_until(lambda: n_actors(client) == 0)


def test_fewer_chunks_than_workers(cluster_of) -> None:
    with toy_parts(cluster_of(3), 1) as parts:
        assert parts.ask("total") == [VALUES.sum()]


def test_persisted_blocks_go_where_most_of_their_chunks_are(cluster_of) -> None:
    client = cluster_of(2)
    one, other = sorted(client.nthreads())
    array = da.from_array(VALUES, chunks=4)
    first = client.persist(array[:12], workers=[other])
    array = da.concatenate([first, client.persist(array[12:], workers=[one])])
    chunks, workers = place_chunks(client, chunks_of(array), True)
    assert workers == [other, one]
    assert [len(part) for part in chunks] == [3, 4]
    assert place_chunks(client, chunks_of(array), False)[1] == [one, other]


def test_errors_of_a_part_are_those_of_the_caller(cluster_of) -> None:
    client = cluster_of(2)
    with toy_parts(client) as parts:
        for error in (OSError("no disk"), TimeoutError("no time"), ValueError("no value")):
            with pytest.raises(type(error), match=str(error)):
                parts.ask("fail", error)
        assert parts.ask("total")[0] == VALUES[:12].sum()


def test_errors_of_the_data_are_those_of_the_caller(cluster_of) -> None:
    def broken(block: Any) -> Any:
        raise FileNotFoundError("no such file")

    client = cluster_of(2)
    chunks = [(dask.delayed(broken)(0),), (dask.delayed(np.ones)(3),)]
    with pytest.raises(FileNotFoundError, match="no such file"):
        DaskParts(client, Toy, *place_chunks(client, chunks, False))
    wait_until(lambda: n_actors(client) == 0)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_killed_in_the_middle_of_a_call(cluster_of, tmp_path, n_workers) -> None:
    """With one worker, another one has to start first."""
    client = cluster_of(n_workers)
    begun = tmp_path / "begun"
    with toy_parts(client) as parts:
        before = parts.ask("total")
        parts.ask("tell", 1.0, keep=True)
        parts.ask("tell", 2.0)
        victim = parts.ask("pid")[-1]

        def kill_it() -> None:
            wait_until(Path(f"{begun}-{victim}").exists)
            kill(victim)

        killer = threading.Thread(target=kill_it)
        killer.start()
        assert parts.ask("slow", 0.5, str(begun)) == before
        killer.join()
        assert parts.ask("look") == [[1.0, 2.0]] * n_workers
        assert parts.ask("pid")[-1] != victim


def test_killed_between_calls(cluster_of) -> None:
    client = cluster_of(3)
    with toy_parts(client) as parts:
        before = parts.ask("total")
        parts.ask("tell", ByPart([1.0, 2.0, 3.0]), keep=True)
        for pid in parts.ask("pid")[:2]:
            kill(pid)
        parts.ask("tell", 4.0, keep=True)
        assert parts.ask("look") == [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0]]
        assert parts.ask("total") == before
    wait_until(lambda: n_actors(client) == 0)


def test_killed_while_it_is_built(cluster_of, tmp_path) -> None:
    client = cluster_of(2)
    array = da.from_array(VALUES, chunks=4)
    chunks = chunks_of(array, dask.delayed(str(tmp_path)))
    placed = place_chunks(client, chunks, False)

    def kill_one() -> None:
        wait_until(lambda: len([*tmp_path.iterdir()]) == 2)
        victim = min(int(path.name) for path in tmp_path.iterdir())
        kill(victim)
        (tmp_path / "killed").touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    with DaskParts(client, SlowToBuild, *placed) as parts:
        killer.join()
        assert parts.ask("total") == [VALUES[:12].sum(), VALUES[12:].sum()]


def test_rebuilds_are_bounded(cluster_of) -> None:
    client = cluster_of(2)
    with toy_parts(client, max_rebuilds=1) as parts:
        kill(parts.ask("pid")[0])
        parts.ask("total")
        kill(parts.ask("pid")[1])
        with pytest.raises(LostWorkersError, match=r"lost with workers tcp.*=1.*memory"):
            parts.ask("total")
    wait_until(lambda: n_actors(client) == 0)


def test_scattered_data(cluster_of) -> None:
    client = cluster_of(2)
    one, other = sorted(client.nthreads())
    value = client.scatter(VALUES, workers=[one])
    array = da.from_delayed(dask.delayed(value), VALUES.shape, float)
    assert cannot_be_computed_again(client, [array])
    kept = client.persist(da.from_array(VALUES, chunks=4))
    assert not cannot_be_computed_again(client, [kept, da.ones(3)])
    with DaskParts(client, Toy, *place_chunks(client, chunks_of(array), True)) as parts:
        kill(parts.ask("pid")[0])
        with pytest.raises(LostWorkersError, match="scattered: give dask collections"):
            parts.ask("total")
    assert other in client.nthreads()


@pytest.mark.parametrize("persisted", [False, True])
def test_paused_workers_are_not_waited_for_without_end(cluster_of, monkeypatch, persisted) -> None:
    """Dask pauses workers whose memory is nearly full."""
    from distributed import Status

    def become(name: str) -> None:
        client.run(lambda dask_worker: setattr(dask_worker, "status", Status[name]))

    client = cluster_of(1)
    monkeypatch.setattr(module, "_WAIT", 0.5)
    chunks = chunks_of(da.from_array(VALUES, chunks=4))
    become("paused")
    try:
        with pytest.raises(MemoryError, match=r"paused tcp\S+ for 0.5 seconds.*Give workers more"):
            DaskParts(client, Toy, *place_chunks(client, chunks, persisted))
    finally:
        become("running")
    with toy_parts(client) as parts:
        assert parts.ask("total") == [VALUES.sum()]


def test_no_workers_left(cluster_of, monkeypatch) -> None:
    """Nobody starts the killed workers again."""
    from distributed import Client, LocalCluster

    cluster_of(1)  # which sets how workers are started
    monkeypatch.setattr(module, "_WAIT", 1.0)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        for nanny in cluster.workers.values():
            nanny.close_gracefully()
        with toy_parts(client) as parts:
            kill(parts.ask("pid")[0])
            assert sum(parts.ask("total")) == VALUES.sum()
            kill(parts.ask("pid")[0])
            with pytest.raises(LostWorkersError, match="no workers for 1 seconds: start some"):
                parts.ask("total")
        with pytest.raises(LostWorkersError, match="no workers for 1 seconds: start some"):
            toy_parts(client)


def test_two_fits_at_once(cluster_of) -> None:
    client = cluster_of(2)
    told: dict[int, Any] = {}

    def run(number: int) -> None:
        with toy_parts(client, 1 + 6 * number) as parts:
            for k in range(20):
                parts.ask("tell", float(k * number), keep=True)
            told[number] = parts.ask("look")[0]

    threads = [threading.Thread(target=partial(run, number)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {0: [0.0] * 20, 1: [float(k) for k in range(20)]}


def test_actors_end_with_an_interrupt(cluster_of, monkeypatch) -> None:
    client = cluster_of(2)
    monkeypatch.setattr(DaskParts, "_is_built", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        toy_parts(client)
    wait_until(lambda: n_actors(client) == 0)
