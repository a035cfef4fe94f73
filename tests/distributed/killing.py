"""Ends of workers, and what is left of them."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from badacost.backends.shards import Shard
from badacost.distributed.shards import DaskShards


def n_actors(client: Any) -> int:
    """Actors on all workers."""
    return sum(client.run(lambda dask_worker: len(dask_worker.state.actors)).values())


def wait_until(condition: Any, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_in(
    monkeypatch: Any,
    client: Any,
    method: str,
    number: int,
    *,
    before: bool,
    how: signal.Signals = signal.SIGKILL,
) -> list[str]:
    """Kill the first worker at a call of a method, before it is sent or once it is."""
    killed: list[str] = []
    calls = []
    call, receive = DaskShards.call, DaskShards._receive

    def kill(shards: DaskShards) -> None:
        address = shards._handles[0].address
        pid = client.run(os.getpid, workers=[address])[address]
        os.kill(pid, how)
        killed.append(address)

    def called(shards: DaskShards, function: Any, arguments: Any, *, is_update: bool) -> Any:
        name = (arguments[0] if function is Shard.boost else function).__name__
        calls.append(name)
        if before and not killed and calls.count(method) == number and name == method:
            kill(shards)
        return call(shards, function, arguments, is_update=is_update)

    def received(shards: DaskShards, handle: Any, future: Any) -> Any:
        if not before and not killed and calls.count(method) == number and calls[-1] == method:
            kill(shards)
        return receive(shards, handle, future)

    monkeypatch.setattr(DaskShards, "call", called)
    monkeypatch.setattr(DaskShards, "_receive", received)
    return killed
