"""Detectors whose trees grow on a cluster: the same, to the last byte, as from this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from badacost.detection import train_detector
from badacost.detection.training import rounds
from badacost.detection.training.boosters import Booster
from badacost.distributed.shards import DaskShards
from campaigns.tiny_training import TINY, VIEWS, tiny_scenes
from tests.distributed.killing import kill_in, n_actors, wait_until

pytest.importorskip("dask")

SCENES = tiny_scenes()
SMALL = replace(TINY, validation=0.0, n_filters=0)
boosted = pytest.mark.parametrize("algorithm", ["badacost", "costboost"])


def trained(where: Path, algorithm: str, **given: Any) -> bytes:
    """The file of a detector."""
    config = replace(SMALL, algorithm=algorithm)
    train_detector(SCENES, VIEWS, config, **given).save(where / "detector")
    return (where / "detector").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Callable[[str], bytes]:
    """The file of a detector that this process trains alone."""
    return cache(partial(trained, tmp_path_factory.mktemp("alone")))


@boosted
def test_the_same_detector(cluster_of, tmp_path, expected, monkeypatch, algorithm) -> None:
    client = cluster_of(2)
    sizes = []
    close = DaskShards.close

    def closed(shards: DaskShards) -> None:
        sizes.append(len(shards))
        close(shards)

    monkeypatch.setattr(DaskShards, "close", closed)
    assert trained(tmp_path, algorithm, client=client) == expected(algorithm)
    assert sizes == [2, 2]  # one booster in each round
    wait_until(lambda: n_actors(client) == 0)


@boosted
def test_a_killed_worker(cluster_of, tmp_path, expected, monkeypatch, algorithm) -> None:
    """The windows of a shard that is lost are sent again."""
    client = cluster_of(2)
    killed = kill_in(monkeypatch, client, "level", 3, before=False)
    assert trained(tmp_path, algorithm, client=client) == expected(algorithm)
    assert killed
    wait_until(lambda: n_actors(client) == 0)


def test_killed_while_windows_are_sent(cluster_of, tmp_path, expected, monkeypatch) -> None:
    client = cluster_of(2)
    killed = kill_in(monkeypatch, client, "bin", 1, before=True)
    assert trained(tmp_path, "badacost", client=client) == expected("badacost")
    assert killed


@boosted
def test_resumed_without_a_cluster(cluster_of, tmp_path, expected, monkeypatch, algorithm) -> None:
    """An interrupted training leaves checkpoints, but no actors."""
    client = cluster_of(2)
    monkeypatch.setattr(rounds, "_TREES_BETWEEN_CHECKPOINTS", 1)
    grow = Booster.grow

    def interrupted(booster: Booster) -> bool:
        if booster.n_trees == 3:
            raise KeyboardInterrupt
        return grow(booster)

    monkeypatch.setattr(Booster, "grow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, algorithm, client=client, folder=tmp_path / "checkpoints")
    monkeypatch.setattr(Booster, "grow", grow)
    wait_until(lambda: n_actors(client) == 0)
    resumed = trained(tmp_path, algorithm, folder=tmp_path / "checkpoints")
    assert resumed == expected(algorithm)


def test_interrupted_while_windows_are_sent(cluster_of, monkeypatch) -> None:
    client = cluster_of(2)

    def fail(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(DaskShards, "call", fail)
    with pytest.raises(KeyboardInterrupt):
        train_detector(SCENES, VIEWS, SMALL, client=client)
    wait_until(lambda: n_actors(client) == 0)


def test_subcat_needs_no_workers(cluster_of, tmp_path, expected, monkeypatch) -> None:
    client = cluster_of(2)
    monkeypatch.setattr(DaskShards, "__init__", None)
    assert trained(tmp_path, "subcat", client=client) == expected("subcat")


def test_in_a_task(cluster_of, tmp_path, expected) -> None:
    """The only thread of a worker must not be waited for by itself."""

    def train(folder: Path) -> bytes:
        from distributed import get_client

        return trained(folder, "badacost", client=get_client())

    task = cluster_of(1).submit(train, tmp_path, pure=False)
    assert task.result(timeout=60) == expected("badacost")


def test_what_is_no_client() -> None:
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client; got str"):
        train_detector(SCENES, VIEWS, SMALL, client="tcp://127.0.0.1:8786")
