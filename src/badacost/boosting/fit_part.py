"""Training sets in parts: what a part holds of its rows, and what whoever trains on them knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.boosting.cross_fit_part import CrossFitPart, CrossFitPlan
from badacost.boosting.folds import Fold, fingerprint, mix_columns
from badacost.boosting.learners import SampleSet
from badacost.boosting.reweighting_part import ReweightingPart
from badacost.exact_sums import blocks
from badacost.parts import ByPart, LocalParts, Parts
from badacost.threads import Threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.part import TreePart


class FitPart:
    """Rows of a training set in one place: bins, classes and weights, and how far boosting is.

    `first_row` is the number of its first row in the whole set.
    """

    def __init__(
        self,
        data: BinnedData,
        y: Labels,
        weight: FloatArray,
        first_row: int = 0,
        threads: Threads | None = None,
    ):
        self.trees = TreePart(data, threads)
        self.y, self.weight, self.first_row = y, weight, first_row
        self.descent: Any = None

    def mixed(self, seed: int) -> NDArray[np.uint64]:
        """Numbers that depend on the bins of the rows, see `mix_columns`."""
        bins = self.trees.data.bins
        return np.concatenate(
            [mix_columns(bins[:, block], len(self.y[block]), seed) for block in blocks(len(self.y))]
            or [np.empty(0, np.uint64)]
        )

    def fingerprint(self, n_samples: int) -> np.uint64:
        """See `badacost.boosting.folds.fingerprint`."""
        return fingerprint(self.trees.data.bins, self.y, n_samples)

    def start_cross_fit(self, plan: CrossFitPlan, folds: list[Fold]) -> None:
        """Begin with CostBoost."""
        self.descent = CrossFitPart(self.trees, self.y, self.weight, self.first_row, plan, folds)

    def start_reweighting(self, log_weights: FloatArray) -> None:
        """Begin with BAdaCost, or another algorithm that is a rule."""
        self.descent = ReweightingPart(self.trees, self.y, self.first_row, log_weights)


@dataclass(frozen=True, eq=False)
class PartedRows:
    """A training set in parts: their bins, and classes and weights of all rows.

    Attributes
    ----------
    parts : Parts
        What holds the rows: each of them a `FitPart`, or like one.
    mapper : BinMapper
        Their bins.
    y, weight : ndarray of shape (n_samples,)
        Classes and weights of all rows, one part after the other.
    ends : list of int
        Where the rows of each part begin, and where those of the last one end.
    whole : bool
        Whether there is one part, which grows trees by itself.
    """

    parts: Parts
    mapper: BinMapper
    y: Labels
    weight: FloatArray
    ends: Sequence[int]
    whole: bool = False

    @classmethod
    def local(
        cls,
        data: BinnedData,
        y: Labels,
        weight: FloatArray,
        threads: Threads,
        device: str = "cpu",
    ) -> PartedRows:
        """One part in this process, on a device; that on the CPU grows trees by itself."""
        part: Any
        if device == "cuda":
            from badacost.boosting.cuda_part import CudaFitPart
            from badacost.gpu.device import cuda_device

            part = CudaFitPart(data, y, weight, cuda_device())
        else:
            part = FitPart(data, y, weight, threads=threads)
        ends = [0, len(y)]
        return cls(LocalParts([part]), data.mapper, y, weight, ends, whole=device == "cpu")

    def some(self, rows: RowNumbers) -> SampleSet:
        """Some rows, in increasing order, as samples of this process."""
        bins = self.parts.ask("trees.bins_of", self.rows_by_part(rows))
        samples = SampleSet(None)
        samples.mapper = self.mapper
        samples.data = BinnedData(self.mapper, np.concatenate(bins, axis=1))
        return samples

    def fingerprint(self) -> int:
        """A number that tells training sets apart, whatever the order of their samples."""
        parts = np.array(self.parts.ask("fingerprint", len(self.y)), np.uint64)
        return int(parts.sum(dtype=np.uint64) >> np.uint64(1))

    def handed_out(self, rows: NDArray[Any]) -> ByPart:
        """An array with one item for each row, cut into those of the parts."""
        return ByPart([rows[a:b] for a, b in pairwise(self.ends)])

    def rows_by_part(self, rows: RowNumbers) -> ByPart:
        """Row numbers, in increasing order, as numbers within their parts."""
        cuts = np.searchsorted(rows, self.ends)
        return ByPart(
            [
                rows[a:b] - first if first else rows[a:b]
                for (a, b), first in zip(pairwise(cuts), self.ends, strict=False)
            ]
        )
