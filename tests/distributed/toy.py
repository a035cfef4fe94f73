"""A shard for tests: sums of blocks, and a state that depends on what it was told."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.distributed.killing import wait_until


class Toy:
    def __init__(self, blocks: list[Any]):
        self.values = np.concatenate(blocks)
        self.told: list[float] = []

    def pid(self) -> int:
        return os.getpid()

    def total(self) -> float:
        return float(self.values.sum())

    def tell(self, number: float) -> list[float]:
        self.told.append(number)
        return self.told

    def look(self) -> list[float]:
        return self.told

    def slow(self, seconds: float, signal: str) -> float:
        """Say that it has begun (once each), and take a while."""
        Path(f"{signal}-{os.getpid()}").touch()
        time.sleep(seconds)
        return self.total()

    def fail(self, error: Exception) -> None:
        raise error


class SlowToBuild(Toy):
    """The same, with the number of its process in a file until another one is killed."""

    def __init__(self, blocks: list[Any], folders: list[str]):
        super().__init__(blocks)
        folder = Path(folders[0])
        (folder / str(os.getpid())).touch()
        wait_until((folder / "killed").exists)
