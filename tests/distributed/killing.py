"""Ends of workers, and what is left of them."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from badacost.distributed.parts import DaskParts


def n_actors(client: Any) -> int:
    """Actors on all workers."""
    return sum(client.run(lambda dask_worker: len(dask_worker.state.actors)).values())


def wait_until(condition: Any, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_in(monkeypatch: Any, client: Any, method: str, number: int, *, before: bool) -> list[str]:
    """Kill the first worker at a call of a method, before it is sent or once it is."""
    killed: list[str] = []
    calls = []
    answers, receive = DaskParts._answers, DaskParts._receive

    def kill(parts: DaskParts) -> None:
        address = parts._places[0].address
        pid = client.run(os.getpid, workers=[address])[address]
        os.kill(pid, signal.SIGKILL)
        killed.append(address)

    def asked(parts: DaskParts, call: Any) -> Any:
        calls.append(call[0])
        if before and not killed and calls.count(method) == number and call[0] == method:
            kill(parts)
        return answers(parts, call)

    def received(parts: DaskParts, place: Any, future: Any) -> Any:
        if not before and not killed and calls.count(method) == number and calls[-1] == method:
            kill(parts)
        return receive(parts, place, future)

    monkeypatch.setattr(DaskParts, "_answers", asked)
    monkeypatch.setattr(DaskParts, "_receive", received)
    return killed
