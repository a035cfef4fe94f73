"""Parts of a training set on the workers of a Dask cluster: one actor for each worker with data.

A worker that is lost takes its part with it. The part is built again, on another worker, from its
chunks, which Dask computes again, and hears again what changed it; the others wait.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

from joblib import parallel_config

from badacost.distributed.requirement import dask_distributed
from badacost.parts import arguments_of
from badacost.threads import Threads

_POLL = 1.0  # seconds between looks at whether a worker is still there
_WAIT = 60.0  # seconds for a worker to join a cluster without any, or to have memory again
MAX_REBUILDS = 10
_CURRENT = threading.Lock()  # of the current client, which is also a global setting

Chunk = tuple[Any, ...]  # of delayed values: samples, classes, weights
Factory = Callable[[list[Chunk]], Any]


class LostWorkersError(RuntimeError):
    """Workers were lost, and what they held cannot be built again.

    Examples
    --------
    >>> from badacost.distributed import LostWorkersError
    >>> issubclass(LostWorkersError, RuntimeError)
    True
    """


class _Host:
    """An actor: a part on its worker; what its methods raise is an answer as well."""

    def __init__(self, factory: Factory, chunks: list[Chunk]):
        # Workers in the process of the client are not sent copies.
        self._shares = dask_distributed().get_worker().address.startswith("inproc")
        self._failure: Exception | None = None
        try:
            self._part = factory(chunks)
        except Exception as error:
            self._failure = error

    def call(self, calls: list[tuple[str, list[Any]]]) -> tuple[Any, Exception | None, float]:
        """Answer to the last of some calls, what went wrong if it did, and the seconds it took."""
        started, answer, failure = time.perf_counter(), None, self._failure
        try:
            for method, arguments in calls if failure is None else ():
                arguments = deepcopy(arguments) if self._shares else arguments
                answer = attrgetter(method)(self._part)(*arguments)
        except Exception as error:
            failure = error
        return answer, failure, time.perf_counter() - started


class _Lost(Exception):
    """The worker of a part is gone."""


class _Place:
    """A part: its chunks, and where it is at present."""

    def __init__(self, number: int, chunks: Sequence[Chunk], address: str):
        self.number, self.chunks, self.address = number, chunks, address
        self.inputs: list[Any] = []
        self.future: Any = None
        self.actor: Any = None

    def submit(self, client: Any, factory: Factory) -> None:
        """Begin to build it."""
        flat = [value for chunk in self.chunks for value in chunk]
        computed = client.compute(flat, workers=[self.address], allow_other_workers=True)
        self.inputs = [value for value in computed if value is not None]
        rest = iter(computed)
        chunks = [tuple(next(rest) for _ in chunk) for chunk in self.chunks]
        self.future = client.submit(
            _Host, factory, chunks, actor=True, workers=[self.address], pure=False
        )

    def bind(self, client: Any) -> None:
        """Take hold of the actor, which is built, and let go of the chunks."""
        with _CURRENT, client.as_current():  # an actor takes the current client for its own
            self.actor = dask_distributed().Actor(_Host, self.address, self.future.key)
        self.inputs = []

    def release(self, client: Any) -> None:
        """End the actor, or its building."""
        self.inputs, self.actor = [], None
        if self.future is not None:
            with suppress(Exception):  # a client that is closed has let go of it
                client.cancel([self.future])
        self.future = None


class DaskParts:
    """`Parts` on a Dask cluster.

    `factory` builds a part from the list of its chunks, on the worker; `chunks` has for each worker
    with data (their addresses are `workers`) a list of tuples of delayed values.
    """

    def __init__(
        self,
        client: Any,
        factory: Factory,
        chunks: Sequence[Sequence[Chunk]],
        workers: Sequence[str],
        *,
        max_rebuilds: int = MAX_REBUILDS,
    ):
        self._client, self._factory, self._max_rebuilds = client, factory, max_rebuilds
        self._places = [
            _Place(number, part, address)
            for number, (part, address) in enumerate(zip(chunks, workers, strict=True))
        ]
        self._kept: list[tuple[str, tuple[Any, ...]]] = []
        self._recent: list[tuple[str, tuple[Any, ...]]] = []
        self._lost: list[str] = []  # addresses of workers
        self.n_asked = 0
        self.waited = 0.0  # seconds, for answers
        self.worked = 0.0  # seconds that the slowest parts took for them: the rest is communication
        try:
            for place in self._places:
                place.submit(client, factory)
            self._rebuild([place for place in self._places if not self._is_built(place)])
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> DaskParts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, method: str, *arguments: Any, keep: bool = False) -> list[Any]:
        """Call a method of every part; see `badacost.parts.Parts`."""
        started = time.perf_counter()
        answers = self._answers((method, arguments))
        if keep:
            self._kept.append((method, arguments))
            self._recent = []
        else:
            self._recent.append((method, arguments))
        self.n_asked += 1
        self.waited += time.perf_counter() - started
        return answers

    def _answers(self, call: tuple[str, tuple[Any, ...]]) -> list[Any]:
        """What the parts say, those included that have to be built again."""
        pending = {place.number: self._send(place, [call]) for place in self._places}
        answers: dict[int, Any] = {}
        slowest = 0.0
        while pending:
            lost = []
            for number, future in pending.items():
                try:
                    answers[number], seconds = self._receive(self._places[number], future)
                    slowest = max(slowest, seconds)
                except _Lost:
                    lost.append(self._places[number])
            self._rebuild(lost)
            again = [*self._kept, *self._recent, call]
            pending = {place.number: self._send(place, again) for place in lost}
        self.worked += slowest
        return [answers[place.number] for place in self._places]

    def close(self) -> None:
        """End all actors."""
        for place in self._places:
            place.release(self._client)

    def _send(self, place: _Place, calls: Iterable[tuple[str, tuple[Any, ...]]]) -> Any:
        """Ask a part; None if its worker is known to be gone."""
        spread = [(method, arguments_of(given, place.number)) for method, given in calls]
        try:
            return place.actor.call(spread)
        except RuntimeError:  # the scheduler has told so
            return None

    def _receive(self, place: _Place, future: Any) -> tuple[Any, float]:
        """Answer of a part and the seconds it took, or what it raised; `_Lost` if it is gone."""
        while future is not None:
            try:
                answer, failure, seconds = future.result(timeout=_POLL)
            except TimeoutError:
                if place.address in self._live() and place.future.status == "finished":
                    continue
                break
            except Exception:  # whatever has become of the connection
                break
            if failure is not None:
                raise failure
            return answer, seconds
        raise _Lost

    def _is_built(self, place: _Place) -> bool:
        """Wait for the actor of a part; False if its worker is gone."""
        patience = _Patience(self._client)
        while True:
            with suppress(TimeoutError):
                place.future.exception(timeout=_POLL)
            status = place.future.status
            if status == "finished":
                place.bind(self._client)
                return True
            self._check_inputs(place)
            if status != "pending" or place.address not in self._live():
                return False
            patience.wait_for({place.address})

    def _check_inputs(self, place: _Place) -> None:
        """Raise what the computation of the chunks raised, or that they cannot be computed."""
        for value in place.inputs:
            if value.status == "error":
                failure = value.exception()
                if not isinstance(failure, dask_distributed().KilledWorker):
                    raise failure
            elif value.status == "cancelled":
                raise LostWorkersError(
                    f"Data were lost{self._with_workers()} and cannot be computed again, since "
                    "they were scattered: give dask collections that are read from files or "
                    "otherwise computed on the cluster, or scatter with broadcast=True."
                )

    def _rebuild(self, places: list[_Place]) -> None:
        """Build parts again, on workers that are there."""
        while places:
            self._lost += sorted({place.address for place in places})
            for place in places:
                place.release(self._client)
            if len(self._lost) > self._max_rebuilds:
                raise LostWorkersError(
                    f"Parts of the training data were lost{self._with_workers()}, more often than "
                    f"max_rebuilds={self._max_rebuilds}. If workers ran out of memory, which their "
                    "logs tell, give more of it or more workers, or data in single precision; "
                    "else see why they end."
                )
            live = wait_for_workers(self._client)
            # The scheduler may not know yet what a failed call has told us.
            live = [address for address in live if address not in self._lost] or live
            kept = [place for place in self._places if place not in places]
            load = Counter(place.address for place in kept)
            for place in places:
                place.address = min(live, key=lambda address: load[address])
                load[place.address] += 1
                place.submit(self._client, self._factory)
            places = [place for place in places if not self._is_built(place)]

    def _with_workers(self) -> str:
        """The workers that were lost, for errors."""
        return f" with workers {', '.join(dict.fromkeys(self._lost))}" if self._lost else ""

    def _live(self) -> list[str]:
        return live_workers(self._client)


def worker_threads() -> Threads:
    """As many threads as the worker that this code runs on has."""
    with parallel_config("threading"):  # others would not be allowed in the process of a worker
        return Threads(dask_distributed().get_worker().state.nthreads)


def live_workers(client: Any) -> list[str]:
    """Addresses of the workers of a cluster."""
    try:
        return sorted(client.nthreads())
    except Exception as error:  # of a client that is closed meanwhile it may be any
        why = "the client is closed" if client.status in ("closing", "closed") else error
        raise LostWorkersError(
            f"The scheduler of the cluster cannot be reached ({why}): see that it runs, make a "
            "new client, and fit again."
        ) from error


def wait_for_workers(client: Any) -> list[str]:
    """Addresses of the workers that are there; some time is given to those that start."""
    deadline = time.monotonic() + _WAIT
    while not (live := live_workers(client)):
        if time.monotonic() > deadline:
            raise LostWorkersError(
                f"The cluster has had no workers for {_WAIT:g} seconds: start some, and fit again."
            )
        time.sleep(_POLL / 5)
    return live


class _Patience:
    """Waits for workers that Dask has paused, which begin nothing while their memory is full."""

    def __init__(self, client: Any):
        self._client, self._since = client, time.monotonic()

    def wait_for(self, workers: set[str]) -> None:
        """Raise if all of these workers have been paused for long."""

        def paused(dask_scheduler: Any = None) -> bool:
            states = dask_scheduler.workers
            return all(a in states and states[a].status.name == "paused" for a in workers)

        if not self._client.run_on_scheduler(paused):
            self._since = time.monotonic()
        elif time.monotonic() - self._since > _WAIT:
            raise MemoryError(
                f"Dask has paused {', '.join(sorted(workers))} for {_WAIT:g} seconds, since the "
                "memory is nearly full: the training data cannot be built there. Give workers "
                "more memory, start more of them, let go of what they hold (client.restart()), "
                "or give data in single precision."
            )


def place_chunks(
    client: Any, chunks: Sequence[Chunk], persisted: bool
) -> tuple[list[list[Chunk]], list[str]]:
    """Share chunks among workers, in blocks of neighbours, so that rows keep their order.

    A block of chunks that are `persisted` goes where most of them are. Returns the chunks of each
    worker that has any, and its address.
    """
    live = wait_for_workers(client)
    n_parts = min(len(chunks), len(live))
    ends = [len(chunks) * part // n_parts for part in range(n_parts + 1)]
    parts = [list(chunks[a:b]) for a, b in pairwise(ends)]
    if not persisted:
        return parts, live[:n_parts]
    holders = _holders(client, [chunk[0] for chunk in chunks])
    held = [Counter(chain.from_iterable(holders[a:b])) for a, b in pairwise(ends)]
    workers = [""] * n_parts
    for part in sorted(range(n_parts), key=lambda part: -max(held[part].values(), default=0)):
        workers[part] = max(live, key=lambda address: held[part][address])
        live.remove(workers[part])
    return parts, workers


def _holders(client: Any, values: Sequence[Any]) -> list[Sequence[str]]:
    """The workers that hold values, once these are computed."""
    futures, patience = client.compute(list(values)), _Patience(client)
    for future in futures:
        while future.status == "pending":  # errors are told when parts are built
            with suppress(TimeoutError):
                future.exception(timeout=_POLL)
            patience.wait_for(set(wait_for_workers(client)))
    held = client.who_has(futures)
    return [held.get(future.key, ()) for future in futures]


def cannot_be_computed_again(client: Any, collections: Iterable[Any]) -> bool:
    """Whether some of the data were scattered, so that they are gone with their workers."""
    keys = {
        future.key
        for collection in collections
        for future in dask_distributed().futures_of(collection)
    }

    def scattered(dask_scheduler: Any = None) -> bool:
        tasks = dask_scheduler.tasks
        return any(key in tasks and tasks[key].run_spec is None for key in keys)

    return bool(keys) and bool(client.run_on_scheduler(scattered))
