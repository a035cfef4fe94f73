"""Training sets in several shards of this process."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from badacost.backends.shards import LocalShards, Shard, ShardedData
from badacost.classifiers.training_data import Task
from badacost.tree.binning import BinnedData


def divided(cuts: list[int]) -> Any:
    """A substitute for `ShardedData.local`: shards that end at these rows."""

    def in_shards(data: Any, y: Any, weight: Any, threads: Any, device: str = "cpu") -> ShardedData:
        ends = [0, *(min(cut, len(y)) for cut in cuts), len(y)]
        shards = []
        for a, b in pairwise(ends):
            rows = BinnedData(data.mapper, data.bins[:, a:b].copy())
            rows.__dict__["has_missing"] = data.mapper.has_missing
            shards.append(Shard(rows, y[a:b], weight[a:b], a, threads))
        return ShardedData(LocalShards(shards), data.mapper, y, weight, ends)

    return in_shards


def use_shards(monkeypatch: Any, cuts: list[int]) -> None:
    """Let all classifiers train on shards that end at these rows."""
    monkeypatch.setattr(ShardedData, "local", divided(cuts))
    monkeypatch.setattr(Task, "is_local", lambda task, estimator: False)
