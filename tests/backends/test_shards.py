"""Calls of methods of all shards."""

from __future__ import annotations

from typing import Any

from badacost.backends.shards import LocalShards, Shards, per_shard


class Inner:
    def __init__(self, number: int):
        self.number = number

    def plus(self, other: int) -> int:
        return self.number + other


class Outer:
    def __init__(self, number: int):
        self.inner = Inner(number)

    def times(self, other: int) -> int:
        return self.inner.number * other


def test_results_are_in_the_order_of_the_shards() -> None:
    shards: Shards[Any] = LocalShards([Outer(3), Outer(5)])
    inner: Shards[Inner] = shards.at("inner")
    assert shards.map(Outer.times, 10) == [30, 50]
    assert inner.map(Inner.plus, 1) == [4, 6]
    assert inner.update(Inner.plus, per_shard([10, 20])) == [13, 25]
    shards.close()
    assert shards.map(Outer.times, 10) == []
