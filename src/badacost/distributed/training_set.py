"""A training set on a cluster: rows on the workers, classes and weights of all rows here."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from badacost.arrays import FloatArray, Labels, Mask, RowNumbers, Samples
from badacost.boosting.fit_part import PartedRows
from badacost.boosting.learners import SampleSet
from badacost.categorical_columns import CategoricalColumns
from badacost.distributed.collections import chunks_of
from badacost.distributed.parts import DaskParts, cannot_be_computed_again, place_chunks
from badacost.distributed.requirement import dask_distributed
from badacost.distributed.rows import Description, RowsPart, several_types
from badacost.parts import ByPart
from badacost.threads import Threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.sampling import RowSketch
from badacost.validation import check_sample_weight, distinct_classes, positions_in


class ClusterRows:
    """Samples on the workers of a cluster, with their classes and weights in this process.

    Attributes
    ----------
    parts : DaskParts
        What holds the samples.
    classes : ndarray
        Distinct classes, in their order.
    like : object
        Something whose type tells the order of the classes, if there is one.
    y, weight : ndarray of shape (n_samples,)
        Classes, as positions among these, and weights; of samples that have a weight, once they
        are checked.
    kept : ndarray of bool
        Which of the samples have a weight.
    """

    def __init__(
        self, client: Any, X: Any, y: Any, weight: Any, positions: list[int], max_rebuilds: int
    ):
        given = [data for data in (X, y, weight) if data is not None]
        if cannot_be_computed_again(client, given):
            warnings.warn(
                "Some of the data were scattered, so that they cannot be rebuilt if a worker is "
                "lost: the fit would end with an error. Data that are read or computed on the "
                "cluster can be, also if they are persisted.",
                UserWarning,
                stacklevel=5,
            )
        persisted = bool(dask_distributed().futures_of(X))
        chunks, workers = place_chunks(client, chunks_of(client, X, y, weight), persisted)
        self.parts = DaskParts(client, RowsPart, chunks, workers, max_rebuilds=max_rebuilds)
        try:
            self._describe(self.parts.ask("describe", positions), weight is not None)
        except BaseException:
            self.parts.close()
            raise

    def _describe(self, described: list[list[Description]], weighted: bool) -> None:
        """Put together what the chunks have."""
        chunks = [chunk for part in described for chunk in part]
        lengths = [sum(len(chunk.codes) for chunk in part) for part in described]
        self.ends = np.cumsum([0, *lengths]).tolist()
        if not self.ends[-1]:
            raise ValueError("X has no rows: at least 2 samples of different classes are needed.")
        known = _distinct([chunk.labels for chunk in chunks if len(chunk.labels)])
        order = next((chunk.order for chunk in chunks if chunk.order is not None), None)
        self.like: Any = known[:0]
        if order is not None:
            import pandas as pd

            self.like = pd.Series(pd.Categorical([], categories=order, ordered=True))
        self.classes = distinct_classes(known, self.like)
        self.y: Labels = np.concatenate([self._positions(chunk) for chunk in chunks])
        given = [chunk.weight for chunk in chunks if chunk.weight is not None]
        self.weight: Any = np.concatenate(given) if weighted else None
        self.kept: Mask = np.ones(len(self.y), bool)
        self.categories: dict[int, Counter[Any]] = {}
        for chunk in chunks:
            for position, counts in chunk.categories.items():
                self.categories.setdefault(position, Counter()).update(counts)

    def _positions(self, chunk: Description) -> Labels:
        places = positions_in(self.classes, chunk.labels)
        return places.astype(np.min_scalar_type(len(self.classes)))[chunk.codes]

    def check(self, columns: CategoricalColumns, name: str = "sample_weight") -> None:
        """Make numbers of the samples, and drop those without weight."""
        self.weight = check_sample_weight(self.weight, len(self.y), name)
        self.kept = self.weight > 0.0
        all_kept = bool(self.kept.all())
        kept = ByPart([None] * (len(self.ends) - 1)) if all_kept else self._handed_out(self.kept)
        self.parts.ask("check", columns, kept, keep=True)
        if not all_kept:
            self._choose(self.kept)

    def _handed_out(self, rows: NDArray[Any]) -> ByPart:
        """An array with one item for each row, cut into those of the parts."""
        return ByPart(rows[a:b] for a, b in pairwise(self.ends))

    def _choose(self, chosen: Mask) -> None:
        """Go on with some rows, which is what the parts have."""
        self.ends = np.r_[0, np.cumsum(chosen)][self.ends].tolist()
        self.y, self.weight = self.y[chosen], self.weight[chosen]

    def mixed(self, seed: int) -> NDArray[np.uint64]:
        """Numbers that depend on the values of the rows."""
        return np.concatenate(self.parts.ask("mixed_values", seed))

    def hold_out(self, held: Mask) -> tuple[Labels, FloatArray]:
        """Lay some rows aside; return their classes and weights."""
        self.parts.ask("hold_out", self._handed_out(held), keep=True)
        laid_aside = self.y[held], self.weight[held]
        self._choose(~held)
        return laid_aside

    def some(self, rows: RowNumbers) -> Samples:
        """Values of some rows, in increasing order, as long as they are no bins."""
        cuts = np.searchsorted(rows, self.ends)
        starts = zip(pairwise(cuts), self.ends, strict=False)
        by_part = ByPart(rows[a:b] - first for (a, b), first in starts)
        return np.concatenate(self.parts.ask("some_rows", by_part))

    def bin(self, empty: RowSketch, max_bins: int, threads: Threads) -> PartedRows:
        """Choose bins, and put the samples into them."""
        weight, first_rows = self._handed_out(self.weight), ByPart(self.ends[:-1])
        merged, *others = self.parts.ask("sketch", empty, weight, first_rows)
        for other in others:
            merged.merge(other)
        mapper = BinMapper.from_sketch(merged, max_bins=max_bins, threads=threads)
        given = self._handed_out(self.y), weight, first_rows
        self.parts.ask("bin", mapper, *given, keep=True)
        return PartedRows(self.parts, mapper, self.y, self.weight, self.ends)

    def unseen(self, mapper: BinMapper, *, held_out: bool) -> SampleSet:
        """Rows that were held out, or all, in bins: they come to this process."""
        bins = self.parts.ask("unseen_bins", mapper, held_out)
        return BinnedSamples(BinnedData(mapper, np.concatenate(bins, axis=1)))


class BinnedSamples(SampleSet):
    """Samples that are bins from the beginning."""

    def __init__(self, data: BinnedData):
        super().__init__(None)
        self.data, self.mapper = data, data.mapper

    def bin_like(self, other: SampleSet, threads: Threads) -> None:
        """They have the bins already."""


def _distinct(labels: list[NDArray[Any]]) -> NDArray[Any]:
    """Distinct labels of all chunks, checked."""
    try:
        known = np.unique(np.concatenate(labels))
    except TypeError as error:
        raise several_types() from error
    if known.dtype.kind == "f" and np.isnan(known).any():
        raise ValueError("y contains NaN: leave out samples without a class.")
    check_classification_targets(np.tile(known, 3))  # it would warn of labels that occur once
    if len(known) < 2:
        raise ValueError(f"y must have at least 2 classes; it has 1 class only: {known[0]}.")
    return known
