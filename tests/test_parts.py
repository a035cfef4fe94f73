"""Parts of a training set that are asked together."""

from __future__ import annotations

import numpy as np

from badacost.parts import ByPart, LocalParts


class Part:
    def __init__(self, rows) -> None:
        self.rows = np.array(rows)

    def add(self, number: int, all_parts: str) -> str:
        self.rows += number
        return f"{all_parts} {self.rows.tolist()}"


def test_local_parts() -> None:
    parts = LocalParts([Part([1, 2]), Part([3])])
    assert parts.ask("add", ByPart([10, 20]), "rows", keep=True) == ["rows [11, 12]", "rows [23]"]
    assert [int(total) for total in parts.ask("rows.sum")] == [23, 23]
    parts.close()
    assert parts.ask("add") == []
