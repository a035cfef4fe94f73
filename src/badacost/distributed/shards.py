"""Shards of a training set on the workers of a Dask cluster: one actor for each worker with data.

A shard is lost with its worker. It is then rebuilt on another worker: Dask computes its chunks
again, and the calls that changed it are replayed; the other shards wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from badacost.backends.shards import S, Shards, T, arguments_of
from badacost.distributed import cluster
from badacost.distributed.cluster import (
    POLL,
    LostWorkersError,
    check_workers,
    dask_distributed,
    is_closed,
    reached,
    wait_for_workers,
)

MAX_REBUILDS = 10
HEARTBEAT_TIMEOUT = 60.0
_CURRENT = threading.Lock()  # of the current client, which is also a global setting
_ACTOR_LOST = "Worker holding Actor was lost"  # the error of Dask

Columns = Sequence[Sequence[Any]]  # delayed chunks of samples, of classes, of weights
Call = tuple[Callable[..., Any], tuple[Any, ...]]  # function of a shard, and arguments
Factory = Callable[..., Any]


class ShardActor:
    """A shard on its worker; exceptions of its functions are returned to the caller."""

    def __init__(self, factory: Factory, columns: Columns):
        self._shard = factory(*columns)

    def call(self, calls: list[tuple[Any, ...]]) -> tuple[Any, Exception | None, float]:
        """Result of the last of some calls, the exception if there was one, and the seconds."""
        started, result, failure = time.perf_counter(), None, None
        try:
            for function, *arguments in calls:
                # What was sent is read-only; a worker in the client's process is sent no copies.
                result = function(self._shard, *deepcopy(arguments))
        except Exception as error:
            failure = error
        return result, failure, time.perf_counter() - started


@dataclass(eq=False)
class _ShardHandle:
    """What the client has of a shard: its chunks of each column, its worker and its actor."""

    number: int
    columns: Columns
    address: str = "unknown"
    future: Any = None
    actor: Any = None


class DaskShards(Shards[S]):
    """`Shards` on a Dask cluster.

    `factory` builds a shard on its worker, from a list of chunks of each column. The chunks of a
    column, delayed values, are divided among the workers in blocks of neighbours, so that rows keep
    their order; no shard is without chunks of the first column. Those that are `persisted` stay
    where they are, as far as possible. A worker that sends no heartbeat for `heartbeat_timeout`
    seconds while it is waited for is lost.
    """

    def __init__(
        self,
        client: Any,
        factory: Factory,
        columns: Columns,
        *,
        persisted: bool = False,
        max_rebuilds: int = MAX_REBUILDS,
        heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
    ):
        self._client, self._factory = client, factory
        self._max_rebuilds, self._heartbeat_timeout = max_rebuilds, heartbeat_timeout
        workers = wait_for_workers(client)
        n_shards = min(len(columns[0]), len(workers))
        divided = [blocks_of(column, n_shards) for column in columns]
        self._handles = [_ShardHandle(k, mine) for k, mine in enumerate(zip(*divided, strict=True))]
        # Calls to replay. A round adds some 500 bytes: its trees are those of the model.
        self._kept: list[Call] = []
        self._recent: list[Call] = []  # since the last of these
        self._lost: list[str] = []  # workers
        self._silent: dict[str, str] = {}  # workers without heartbeats: address, and the reason
        self.n_calls = 0
        self.waited = 0.0  # seconds, for results
        self.worked = 0.0  # seconds of the slowest shards: the rest is communication
        try:
            self._rebuild(self._build(self._handles, () if persisted else workers))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._handles)

    def call(
        self, function: Callable[..., T], arguments: tuple[Any, ...], *, is_update: bool
    ) -> list[T]:
        """Call a function of every shard."""
        started, call = time.perf_counter(), (function, arguments)
        waiting, calls = self._handles, [call]
        received: dict[int, Any] = {}  # result and seconds of each shard, in their order
        while waiting:
            sent = [(handle, self._send(handle, calls)) for handle in waiting]
            received |= {handle.number: self._receive(handle, future) for handle, future in sent}
            waiting = [handle for handle in waiting if received[handle.number] is None]
            self._rebuild(waiting)
            calls = [*self._kept, *self._recent, call]
        if is_update:
            self._kept.append(call)
            self._recent = []
        else:
            self._recent.append(call)
        results, seconds = zip(*received.values(), strict=True)
        self.n_calls += 1
        self.worked += max(seconds)
        self.waited += time.perf_counter() - started
        return [*results]

    def close(self) -> None:
        """End all actors."""
        self._release(self._handles)

    def _release(self, handles: Iterable[_ShardHandle]) -> None:
        """End actors, or their building."""
        for handle in handles:
            if handle.future is not None and not is_closed(self._client):
                with suppress(Exception):  # whatever has become of the connection
                    self._client.cancel([handle.future])
            handle.actor = handle.future = None

    def _send(self, handle: _ShardHandle, calls: Iterable[Call]) -> Any:
        """Future of calls to a shard; None if the scheduler has reported its worker as lost."""
        own = [(function, *arguments_of(given, handle.number)) for function, given in calls]
        try:
            return handle.actor.call(own)
        except RuntimeError:
            return None

    def _receive(self, handle: _ShardHandle, future: Any) -> tuple[Any, float] | None:
        """Result of a shard and its seconds, None if it is lost; raises the shard's exception."""
        while future is not None:
            try:
                result, failure, seconds = future.result(timeout=POLL)
            except TimeoutError:
                self._paused_workers(handle)
                if handle.future.status != "finished":
                    return None
            except Exception:  # whatever has become of the connection
                return None
            else:
                if failure is not None:
                    raise failure
                return result, seconds
        return None

    def _paused_workers(self, handle: _ShardHandle) -> list[str]:
        """Workers that a shard waits for, if Dask has paused all; silent ones are restarted."""
        wait_for_workers(self._client, self._lost_workers)
        paused, silent = check_workers(self._client, handle.future.key, self._heartbeat_timeout)
        reason = f"(no heartbeat for {self._heartbeat_timeout:g} seconds)"
        self._silent |= {address: f"{address} {reason}" for address in silent}
        return sorted(paused) if all(paused.values()) else []

    def _build(
        self, handles: list[_ShardHandle], workers: Sequence[str] = ()
    ) -> list[_ShardHandle]:
        """Build shards on some workers, or where Dask puts them; return those that are lost."""
        from dask import delayed

        for handle in handles:
            shard = delayed(ShardActor, pure=False)(self._factory, handle.columns)
            near = workers[handle.number : handle.number + 1] or None
            handle.future = self._client.compute(
                shard, actors=True, workers=near, allow_other_workers=near is not None
            )
        return [handle for handle in handles if not self._is_built(handle)]

    def _is_built(self, handle: _ShardHandle) -> bool:
        """Wait for the actor of a shard; False if it is lost already."""
        future, since = handle.future, time.monotonic()
        while future.status == "pending":
            with suppress(TimeoutError):
                future.exception(timeout=POLL)
                break
            if not (paused := self._paused_workers(handle)):
                since = time.monotonic()
            elif time.monotonic() - since > cluster.PATIENCE:
                raise MemoryError(
                    f"Dask has paused {', '.join(paused)} for {cluster.PATIENCE:g} seconds: memory "
                    "is nearly full. Give workers more memory, start more of them, free what they "
                    "hold (client.restart()), or give data in single precision."
                )
        if future.status == "finished":
            workers = reached(self._client, self._client.who_has, [future])[future.key]
            handle.address = next(iter(workers), "")
            with _CURRENT, self._client.as_current():  # an actor takes it for its own
                handle.actor = dask_distributed().Actor(ShardActor, handle.address, future.key)
            return bool(handle.address)
        wait_for_workers(self._client)  # an error if the client is closed
        if future.status != "error":
            raise LostWorkersError(
                f"Data were lost (workers lost: {self._lost_workers}) and cannot be computed "
                "again: they were scattered, or cancelled, for example by client.restart(). Give "
                "dask collections that are computed on the cluster, or scatter with broadcast=True."
            )
        failure = future.exception()
        if isinstance(failure, dask_distributed().KilledWorker) or _ACTOR_LOST in str(failure):
            return False
        raise failure

    def _rebuild(self, lost: list[_ShardHandle]) -> None:
        """Build shards again that were lost with their workers."""
        while lost:
            addresses = sorted({handle.address for handle in lost})
            self._lost += [self._silent.get(address, address) for address in addresses]
            self._release(lost)
            wait_for_workers(self._client, self._lost_workers)
            if len(self._lost) > self._max_rebuilds:
                raise LostWorkersError(
                    f"Shards were lost with workers {self._lost_workers}, more often than "
                    f"max_rebuilds={self._max_rebuilds}: see their logs. If memory ran out, "
                    "give more of it, more workers, or data in single precision."
                )
            lost = self._build(lost)

    @property
    def _lost_workers(self) -> str:
        """The workers that were lost, for errors."""
        return ", ".join(dict.fromkeys(self._lost)) or "none"


def blocks_of(rows: Any, n_shards: int) -> list[Any]:
    """Divide a sequence into blocks of neighbours, whose sizes differ by one at most."""
    ends = [len(rows) * shard // n_shards for shard in range(n_shards + 1)]
    return [rows[a:b] for a, b in pairwise(ends)]


def is_scattered(client: Any, *collections: Any) -> bool:
    """Whether some of the data were scattered, so that they are lost with their workers."""
    keys = {future.key for future in dask_distributed().futures_of(collections)}

    def scattered(dask_scheduler: Any = None) -> bool:
        tasks = dask_scheduler.tasks
        return any(key in tasks and tasks[key].run_spec is None for key in keys)

    return bool(keys) and bool(reached(client, client.run_on_scheduler, scattered))
