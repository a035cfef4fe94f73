"""Calls of functions of all shards, and of their boosters."""

from __future__ import annotations

from typing import Any, ClassVar

from badacost.backends.shards import Boosters, LocalShards, Shard, Shards, per_shard


class Booster:
    def __init__(self, shard: Any, number: int):
        self.number = number

    def plus(self, other: int) -> int:
        return self.number + other


class BoosterOnGpu(Booster):
    def plus(self, other: int) -> int:
        return self.number + 1000 + other


class ShardOnGpu(Shard):
    variants: ClassVar = {Booster: BoosterOnGpu}


def shard(kind: type[Shard], first_row: int) -> Shard:
    nothing: Any = None
    return kind(nothing, nothing, nothing, first_row)


def first_row(shard: Shard, factor: int) -> int:
    return shard.first_row * factor


def test_results_are_in_the_order_of_the_shards() -> None:
    shards: Shards[Shard] = LocalShards([shard(Shard, 3), shard(Shard, 5)])
    assert shards.map(first_row, 10) == [30, 50]
    assert shards.map(first_row, per_shard([1, 2])) == [3, 10]
    shards.close()
    assert shards.map(first_row, 10) == []


def test_boosters_are_those_of_the_place_of_a_shard() -> None:
    shards = LocalShards([shard(Shard, 0), shard(ShardOnGpu, 0)])
    boosters = Boosters(shards, Booster, per_shard([3, 5]))
    assert boosters.map(Booster.plus, 1) == [4, 1006]
    assert boosters.update(Booster.plus, per_shard([10, 20])) == [13, 1025]
