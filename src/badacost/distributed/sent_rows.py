"""Rows that this process holds in bins, sent to the workers of a cluster to grow trees there."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels
from badacost.boosting.fit_part import FitPart, PartedRows
from badacost.distributed.parts import Chunk, DaskParts, wait_for_workers, worker_threads
from badacost.parts import ByPart
from badacost.threads import Threads
from badacost.tree.binning import BinMapper, BinnedData


class SentPart(FitPart):
    """Rows that come in bins, by a call: a part that is built again hears it again."""

    def __init__(self, chunks: list[Chunk]):
        """There is nothing to build it from."""

    def hold(
        self,
        mapper: BinMapper,
        bins: NDArray[np.unsignedinteger],
        y: Labels,
        weight: FloatArray,
        first_row: int,
    ) -> None:
        """Take the rows."""
        data = BinnedData(mapper, np.require(bins, requirements=["C", "W"]))
        super().__init__(data, y, weight, first_row, worker_threads())


def scatter_rows(
    data: BinnedData, y: Labels, weight: FloatArray, threads: Threads, *, client: Any
) -> PartedRows:
    """A block of the rows for each worker; `threads` are those of this process, which sends them.

    Like `PartedRows.local`, but the parts have to be closed. A block that is lost with its worker
    is sent again, to another one.
    """
    workers = wait_for_workers(client)[: len(y)]
    n_parts = len(workers)
    ends = [len(y) * part // n_parts for part in range(n_parts + 1)]
    parts = DaskParts(client, SentPart, [[]] * n_parts, workers)
    rows = PartedRows(parts, data.mapper, y, weight, ends)
    try:
        bins = ByPart(data.bins[:, a:b] for a, b in pairwise(ends))
        given = rows.handed_out(y), rows.handed_out(weight), ByPart(ends[:-1])
        parts.ask("hold", data.mapper, bins, *given, keep=True)
    except BaseException:
        parts.close()
        raise
    return rows
