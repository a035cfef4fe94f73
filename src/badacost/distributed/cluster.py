"""The Dask cluster: its client, its workers, and whether they are alive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

from joblib import parallel_config

from badacost._utils.parallel import Threads

T = TypeVar("T")

POLL = 1.0  # seconds between checks of a worker that is waited for
PATIENCE = 60.0  # seconds for a worker to join a cluster without any, or to be resumed by Dask


class LostWorkersError(RuntimeError):
    """Workers were lost, and the rows that they held cannot be rebuilt.

    Examples
    --------
    >>> from badacost.distributed import LostWorkersError
    >>> issubclass(LostWorkersError, RuntimeError)
    True
    """


def dask_distributed() -> Any:
    """The module `distributed`, or an error that names the extra of the package."""
    try:
        import dask.array
        import dask.dataframe  # noqa: F401
        import distributed
    except ImportError as error:
        raise ImportError(
            f'Training on a cluster needs Dask ({error}): pip install "badacost[dask]"'
        ) from error
    return distributed


def current_client(client: Any) -> Any:
    """The client given, or the one of this process or task."""
    library = dask_distributed()
    if client is None:
        try:
            client = library.get_client()
        except ValueError as error:
            raise ValueError(
                "No Dask client is active: give client=dask.distributed.Client(), for example."
            ) from error
    if not isinstance(client, library.Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client is asynchronous: use one that was made without asynchronous=True.")
    return client


@contextmanager
def outside_of_tasks() -> Iterator[None]:
    """Give the thread of a task back while it waits for shards, which may need it."""
    library = dask_distributed()
    with ExitStack() as stack:
        with suppress(ValueError):  # of no task
            library.secede()
            stack.callback(library.rejoin)
        yield


def worker_threads() -> Threads:
    """As many threads as the worker that runs this code has."""
    with parallel_config("threading"):  # others would not be allowed in the process of a worker
        return Threads(dask_distributed().get_worker().state.nthreads)


def is_closed(client: Any) -> bool:
    """Whether a client is closed, or about to be."""
    return client.status in ("closing", "closed")


def reached(client: Any, function: Callable[..., T], *arguments: Any) -> T:
    """Result of a function that needs the scheduler, or an error if this cannot be reached."""
    failure = None
    if not is_closed(client):  # it might wait without end
        try:
            return function(*arguments)
        except Exception as error:  # of a client that is closed meanwhile it may be any
            failure = error
    why = "the client is closed" if is_closed(client) else str(failure)
    raise LostWorkersError(
        f"The scheduler of the cluster cannot be reached ({why}): see that it runs, make a new "
        "client, and fit again."
    ) from failure


def wait_for_workers(client: Any, lost: str = "none") -> list[str]:
    """Addresses of all workers; if there are none, some may join within `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not (workers := reached(client, client.nthreads)):
        if time.monotonic() > deadline:
            raise LostWorkersError(
                f"No workers for {PATIENCE:g} seconds: start some, and fit again (lost: {lost})."
            )
        time.sleep(POLL / 5)
    return sorted(workers)


def check_workers(
    client: Any, key: Any, heartbeat_timeout: float
) -> tuple[dict[str, bool], list[str]]:
    """Restart the workers without heartbeats that compute or hold a task or its inputs.

    Dask does so after `distributed.scheduler.worker-ttl`, five minutes by default. Returns whether
    these workers (all, if there are none) are paused, by address, and which were restarted.
    """

    async def check(dask_scheduler: Any = None) -> tuple[dict[str, bool], list[str]]:
        from distributed.metrics import time

        task, workers = dask_scheduler.tasks.get(key), set(dask_scheduler.workers.values())
        tasks = [] if task is None else [task, *task.dependencies]
        used = {worker for task in tasks for worker in (task.processing_on, *(task.who_has or ()))}
        awaited = (used & workers) or workers
        oldest = time() - heartbeat_timeout
        silent = [worker.address for worker in used & workers if worker.last_seen < oldest]
        if silent:  # those without a nanny are removed
            await dask_scheduler.restart_workers(
                silent, wait_for_workers=False, on_error="return", stimulus_id="badacost-heartbeat"
            )
        return {worker.address: worker.status.name == "paused" for worker in awaited}, silent

    return reached(client, client.run_on_scheduler, check)
