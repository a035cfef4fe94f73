"""Clusters of processes on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster_of() -> Iterator[Callable[[int], Any]]:
    """Return a client of a cluster with so many workers, all of them there.

    It ends with the file, lest its threads run beside tests that fork or measure memory.
    """
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    for name in ("distributed.scheduler", "distributed.nanny", "distributed.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # workers are killed on purpose
    clients: dict[int, Any] = {}
    with ExitStack() as stack:
        settings = {
            # On a busy machine workers take a while to come back.
            "distributed.deploy.lost-worker-timeout": "10 m",
            # Copies of a process that has imported everything.
            "distributed.worker.multiprocessing-method": "forkserver",
        }
        stack.enter_context(dask.config.set(settings))
        get_mp_context().set_forkserver_preload(
            ["dask.dataframe", "distributed.nanny", "badacost.distributed.training_set"]
        )

        def client_of(n_workers: int) -> Any:
            if n_workers not in clients:
                cluster = LocalCluster(
                    n_workers=n_workers,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                    memory_limit=None,
                )
                stack.enter_context(cluster)
                clients[n_workers] = stack.enter_context(Client(cluster, set_as_default=False))
            clients[n_workers].wait_for_workers(n_workers, timeout=60)
            return clients[n_workers]

        yield client_of
