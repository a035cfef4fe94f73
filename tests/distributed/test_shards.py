"""Shards on a cluster: the same results, whatever happens to the workers."""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badacost.backends.shards import per_shard
from badacost.distributed import LostWorkersError
from badacost.distributed import cluster as module
from badacost.distributed.shards import DaskShards, is_scattered
from tests.distributed.killing import n_actors, wait_until
from tests.distributed.toy import SlowToBuild, Toy

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

VALUES = np.arange(28.0)


def chunks_of(array: Any, *more: Any) -> list[list[Any]]:
    blocks = array.to_delayed().ravel().tolist()
    return [blocks, *([value] * len(blocks) for value in more)]


def toy_shards(client: Any, n_chunks: int = 7, kind: Any = Toy, **options: Any) -> Any:
    array = da.from_array(VALUES, chunks=len(VALUES) // n_chunks)
    return closing(DaskShards(client, kind, chunks_of(array), **options))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_results_come_in_the_order_of_the_shards(cluster_of) -> None:
    client = cluster_of(2)
    with toy_shards(client) as shards:
        assert len(shards) == 2
        sums = [VALUES[:12].sum(), VALUES[12:].sum()]
        assert shards.map(Toy.total) == sums
        assert shards.update(Toy.tell, per_shard([1.0, 2.0])) == [[1.0], [2.0]]
        assert shards.map(Toy.tell, 3.0) == [[1.0, 3.0], [2.0, 3.0]]
        assert shards.n_calls == 3
        assert shards.waited >= shards.worked > 0.0
    wait_until(lambda: n_actors(client) == 0)


def test_fewer_chunks_than_workers(cluster_of) -> None:
    with toy_shards(cluster_of(3), 1) as shards:
        assert shards.map(Toy.total) == [VALUES.sum()]


def test_persisted_blocks_go_where_most_of_their_chunks_are(cluster_of) -> None:
    client = cluster_of(2)
    one, other = sorted(client.nthreads())
    array = da.from_array(VALUES, chunks=4)
    first = client.persist(array[:12], workers=[other])
    array = da.concatenate([first, client.persist(array[12:], workers=[one])])
    processes = client.run(os.getpid)
    with closing(DaskShards(client, Toy, chunks_of(array), persisted=True)) as shards:
        assert shards.map(Toy.total) == [VALUES[:12].sum(), VALUES[12:].sum()]
        assert shards.map(Toy.pid) == [processes[other], processes[one]]


def test_errors_of_a_shard_are_those_of_the_caller(cluster_of) -> None:
    client = cluster_of(2)
    with toy_shards(client) as shards:
        for error in (OSError("no disk"), TimeoutError("no time"), ValueError("no value")):
            with pytest.raises(type(error), match=str(error)):
                shards.map(Toy.fail, error)
        assert shards.map(Toy.total)[0] == VALUES[:12].sum()


def test_errors_of_the_data_are_those_of_the_caller(cluster_of) -> None:
    def broken(block: Any) -> Any:
        raise FileNotFoundError("no such file")

    client = cluster_of(2)
    chunks = [[dask.delayed(broken)(0), dask.delayed(np.ones)(3)]]
    with pytest.raises(FileNotFoundError, match="no such file"):
        DaskShards(client, Toy, chunks)
    wait_until(lambda: n_actors(client) == 0)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_killed_in_the_middle_of_a_call(cluster_of, tmp_path, n_workers) -> None:
    """With one worker, another one has to start first."""
    client = cluster_of(n_workers)
    begun = tmp_path / "begun"
    with toy_shards(client) as shards:
        before = shards.map(Toy.total)
        shards.update(Toy.tell, 1.0)
        shards.map(Toy.tell, 2.0)
        victim = shards.map(Toy.pid)[-1]

        def kill_it() -> None:
            wait_until(Path(f"{begun}-{victim}").exists)
            kill(victim)

        killer = threading.Thread(target=kill_it)
        killer.start()
        assert shards.map(Toy.slow, 0.5, str(begun)) == before
        killer.join()
        assert shards.map(Toy.look) == [[1.0, 2.0]] * n_workers
        assert shards.map(Toy.pid)[-1] != victim


def test_a_frozen_worker_is_restarted(cluster_of) -> None:
    """The scheduler still lists it, but it sends no heartbeats."""
    client = cluster_of(2)
    with toy_shards(client, heartbeat_timeout=2.0) as shards:
        before = shards.map(Toy.total)
        shards.update(Toy.tell, 1.0)
        frozen, other = shards.map(Toy.pid)
        os.kill(frozen, signal.SIGSTOP)
        assert shards.map(Toy.total) == before
        assert shards.map(Toy.look) == [[1.0]] * 2
        assert shards.map(Toy.pid)[1] == other
    wait_until(lambda: frozen not in client.run(os.getpid).values())


def test_frozen_too_often(cluster_of) -> None:
    client = cluster_of(2)
    with toy_shards(client, heartbeat_timeout=2.0, max_rebuilds=0) as shards:
        os.kill(shards.map(Toy.pid)[0], signal.SIGSTOP)
        with pytest.raises(LostWorkersError, match=r"tcp\S+ \(no heartbeat.*max_rebuilds"):
            shards.map(Toy.total)


def test_a_long_computation_is_waited_for(cluster_of, tmp_path) -> None:
    """Heartbeats go on."""
    with toy_shards(cluster_of(2), heartbeat_timeout=1.5, max_rebuilds=0) as shards:
        assert shards.map(Toy.slow, 4.0, str(tmp_path / "begun")) == shards.map(Toy.total)


def test_a_client_that_is_closed_while_shards_are_built(cluster_of, tmp_path) -> None:
    from distributed import Client

    client = Client(cluster_of(1).scheduler.address, set_as_default=False)
    chunks = chunks_of(da.from_array(VALUES, chunks=4), dask.delayed(str(tmp_path)))

    def close() -> None:
        wait_until(lambda: [*tmp_path.iterdir()])
        client.close()
        (tmp_path / "killed").touch()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(LostWorkersError, match="client is closed"):
        DaskShards(client, SlowToBuild, chunks)
    closer.join()


def test_a_client_that_is_closed_while_it_waits(cluster_of, tmp_path) -> None:
    from distributed import Client

    client = Client(cluster_of(2).scheduler.address, set_as_default=False)

    def close() -> None:
        wait_until(lambda: [*tmp_path.iterdir()])
        client.close()

    closer = threading.Thread(target=close)
    with toy_shards(client) as shards:
        closer.start()
        with pytest.raises(LostWorkersError, match="client is closed"):
            shards.map(Toy.slow, 2.0, str(tmp_path / "begun"))
    closer.join()


def test_killed_between_calls(cluster_of) -> None:
    client = cluster_of(3)
    with toy_shards(client) as shards:
        before = shards.map(Toy.total)
        shards.update(Toy.tell, per_shard([1.0, 2.0, 3.0]))
        for pid in shards.map(Toy.pid)[:2]:
            kill(pid)
        shards.update(Toy.tell, 4.0)
        assert shards.map(Toy.look) == [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0]]
        assert shards.map(Toy.total) == before
    wait_until(lambda: n_actors(client) == 0)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_lost_while_it_is_built(cluster_of, tmp_path, how) -> None:
    client = cluster_of(2)
    array = da.from_array(VALUES, chunks=4)
    chunks = chunks_of(array, dask.delayed(str(tmp_path)))

    def lose_one() -> None:
        wait_until(lambda: len([*tmp_path.iterdir()]) == 2)
        os.kill(min(int(path.name) for path in tmp_path.iterdir()), how)
        (tmp_path / "killed").touch()

    loser = threading.Thread(target=lose_one)
    loser.start()
    with closing(DaskShards(client, SlowToBuild, chunks, heartbeat_timeout=2.0)) as shards:
        loser.join()
        assert shards.map(Toy.total) == [VALUES[:12].sum(), VALUES[12:].sum()]


def test_rebuilds_are_bounded(cluster_of) -> None:
    client = cluster_of(2)
    with toy_shards(client, max_rebuilds=1) as shards:
        kill(shards.map(Toy.pid)[0])
        shards.map(Toy.total)
        kill(shards.map(Toy.pid)[1])
        with pytest.raises(LostWorkersError, match=r"lost with workers tcp.*=1.*memory"):
            shards.map(Toy.total)
    wait_until(lambda: n_actors(client) == 0)


def test_scattered_data(cluster_of) -> None:
    client = cluster_of(2)
    one, other = sorted(client.nthreads())
    value = client.scatter(VALUES, workers=[one])
    array = da.from_delayed(dask.delayed(value), VALUES.shape, float)
    assert is_scattered(client, array)
    kept = client.persist(da.from_array(VALUES, chunks=4))
    assert not is_scattered(client, kept, da.ones(3), None)
    with closing(DaskShards(client, Toy, chunks_of(array), persisted=True)) as shards:
        kill(shards.map(Toy.pid)[0])
        with pytest.raises(LostWorkersError, match=r"scattered.*Give dask collections"):
            shards.map(Toy.total)
    assert other in client.nthreads()


@pytest.mark.parametrize("persisted", [False, True])
def test_paused_workers_are_not_waited_for_without_end(cluster_of, monkeypatch, persisted) -> None:
    """Dask pauses workers whose memory is nearly full."""
    from distributed import Status

    def become(name: str) -> None:
        client.run(lambda dask_worker: setattr(dask_worker, "status", Status[name]))

    client = cluster_of(1)
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    chunks = chunks_of(da.from_array(VALUES, chunks=4))
    become("paused")
    try:
        with pytest.raises(MemoryError, match=r"paused tcp\S+ for 0.5 seconds.*Give workers more"):
            DaskShards(client, Toy, chunks, persisted=persisted)
    finally:
        become("running")
    with toy_shards(client) as shards:
        assert shards.map(Toy.total) == [VALUES.sum()]


def test_no_workers_left(cluster_of, monkeypatch) -> None:
    """Nobody starts the killed workers again."""
    from distributed import Client, LocalCluster

    cluster_of(1)  # which sets how workers are started
    monkeypatch.setattr(module, "PATIENCE", 1.0)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        for nanny in cluster.workers.values():
            nanny.close_gracefully()
        with toy_shards(client) as shards:
            kill(shards.map(Toy.pid)[0])
            assert sum(shards.map(Toy.total)) == VALUES.sum()
            kill(shards.map(Toy.pid)[0])
            with pytest.raises(LostWorkersError, match="No workers for 1 seconds: start some"):
                shards.map(Toy.total)
        with pytest.raises(LostWorkersError, match="No workers for 1 seconds: start some"):
            toy_shards(client)


def test_two_fits_at_once(cluster_of) -> None:
    client = cluster_of(2)
    told: dict[int, Any] = {}

    def run(number: int) -> None:
        with toy_shards(client, 1 + 6 * number) as shards:
            for k in range(20):
                shards.update(Toy.tell, float(k * number))
            told[number] = shards.map(Toy.look)[0]

    threads = [threading.Thread(target=partial(run, number)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {0: [0.0] * 20, 1: [float(k) for k in range(20)]}


def test_actors_end_with_an_interrupt(cluster_of, monkeypatch) -> None:
    client = cluster_of(2)
    monkeypatch.setattr(
        DaskShards, "_is_built", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        toy_shards(client)
    wait_until(lambda: n_actors(client) == 0)
