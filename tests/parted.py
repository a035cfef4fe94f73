"""Training sets in several parts of this process."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from badacost.boosting.fit_part import FitPart, PartedRows
from badacost.parts import LocalParts
from badacost.tree.binning import BinnedData


def divided(cuts: list[int]) -> Any:
    """What takes the place of `PartedRows.local`: parts that end at these rows."""

    def in_parts(data: Any, y: Any, weight: Any, threads: Any, device: str = "cpu") -> PartedRows:
        ends = [0, *(min(cut, len(y)) for cut in cuts), len(y)]
        parts = []
        for a, b in pairwise(ends):
            rows = BinnedData(data.mapper, data.bins[:, a:b].copy())
            rows.__dict__["has_missing"] = data.mapper.has_missing
            parts.append(FitPart(rows, y[a:b], weight[a:b], a, threads))
        return PartedRows(LocalParts(parts), data.mapper, y, weight, ends)

    return in_parts
