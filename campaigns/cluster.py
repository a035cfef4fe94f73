"""A fit on a Dask cluster whose workers are killed at random moments: the model is the same."""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import tempfile
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import numpy as np

from campaigns.processes import kill_session, orphans
from campaigns.soak_tasks import KilledRun

NAME = "Dask, a worker killed"
_PATIENCE = 600.0  # seconds for what takes a few: the machine may be busy
_COSTS = [[0, 1, 5], [2, 0, 1], [10, 3, 0]]


class Cluster:
    """A process with a cluster, which fits again and again."""

    def __init__(self) -> None:
        self._pipe, end = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_serve, args=(end,))
        self._process.start()
        self.expected, _ = self._ask(None, 0)
        begin = time.monotonic()
        found, _ = self._ask(None, 0)
        self.seconds = time.monotonic() - begin
        if found != self.expected:
            raise RuntimeError(f"{NAME}: two runs differ.")

    def case(self, random: Random) -> KilledRun:
        """Kill a worker during a fit, which goes on with what is left."""
        case = KilledRun(NAME)
        moment = random.uniform(0.0, self.seconds)
        found, is_killed = self._ask(moment, random.randrange(2))
        case.kills, case.late, case.resumes = int(is_killed), int(not is_killed), int(is_killed)
        case.moments.append(round(moment, 4))
        if found != self.expected:
            case.mismatches.append(str(found))
        return case

    def close(self) -> list[int]:
        """End the cluster, and return processes that it leaves."""
        self._pipe.send(None)
        self._process.join(_PATIENCE)
        if self._process.exitcode is None:
            kill_session(int(self._process.pid or 0))
        return orphans(int(self._process.pid or 0))

    def _ask(self, moment: float | None, worker: int) -> tuple[str, bool]:
        self._pipe.send((moment, worker))
        if not self._pipe.poll(_PATIENCE):
            return f"no answer in {_PATIENCE:.0f} s", True
        return self._pipe.recv()


def _serve(pipe: Any) -> None:
    """Answer with the digest of the model, and whether a worker was killed while it was fitted."""
    os.setsid()
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 m"}),
        suppress(EOFError),  # the campaign was stopped
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            memory_limit=None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        while (question := pipe.recv()) is not None:
            client.wait_for_workers(2)
            pipe.send(_fit(client, *question))


def _fit(client: Any, moment: float | None, worker: int) -> tuple[str, bool]:
    import dask.array as da

    from badacost.distributed import DaskBAdaCostClassifier

    pids = sorted(client.run(os.getpid).values())
    killed: list[int] = []

    def kill() -> None:
        os.kill(pids[worker], signal.SIGKILL)
        killed.append(worker)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.6, 0.8])
    model = DaskBAdaCostClassifier(
        _COSTS, client=client, n_estimators=8, max_depth=3, subsample=0.8, random_state=3
    )
    timer = None if moment is None else Timer(moment, kill)
    try:
        if timer is not None:
            timer.start()
        model.fit(da.from_array(X, chunks=(120, 5)), da.from_array(y, chunks=120))
    except Exception as error:
        return f"{type(error).__name__}: {error}", bool(killed)
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()
    is_killed = bool(killed)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        return hashlib.sha256(Path(folder, "model").read_bytes()).hexdigest(), is_killed
