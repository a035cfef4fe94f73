"""What a tree sums over the samples of a node: weights by label, or rows of numbers.

Both keep every sum exact, see `badacost.tree.histogram_kernels`: weights are rounded node by node,
rows once, to multiples of 2**-24 times the largest entry of their column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.tree.histogram_kernels import Summed

_ROW_BITS = 24  # of single precision; with up to 2**29 rows, sums fit the 53 bits of a double


@dataclass(frozen=True, eq=False)
class WeightedLabels:
    """A label and a weight for each sample: a sum for each label."""

    labels: Labels
    weights: NDArray[np.float32]
    n_columns: int

    @classmethod
    def of(cls, labels: Labels, weights: FloatArray, n_columns: int) -> WeightedLabels:
        """Weights in single precision; labels in the smallest type."""
        small = labels.astype(np.min_scalar_type(max(n_columns - 1, 0)), copy=False)
        return cls(small, weights.astype(np.float32), n_columns)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> None:
        """See `badacost.tree.gain_kernels`."""

    def taken(self, rows: RowNumbers | None, consume: bool = False) -> Summed:
        """Copies for the kernels of the rows, without those whose weight vanishes.

        With `consume` the weights of all rows are taken as they are; kernels change their order.
        """
        alive = (self.weights if rows is None else self.weights[rows]) > 0.0
        used: Any = slice(None)
        if rows is not None or not alive.all():
            used = np.flatnonzero(alive) if rows is None else rows[alive]
        return Summed(
            order=np.arange(len(self), dtype=np.uint32)[used],
            labels=_copied(self.labels, used),
            weights=self.weights[used] if consume else _copied(self.weights, used),
            rows=np.empty((0, 1), np.float32),
        )


def quanta_of(largest: FloatArray) -> FloatArray:
    """What the entries of a column are multiples of, if none of them is larger."""
    return np.ldexp(1.0, np.frexp(largest)[1] - _ROW_BITS)


@dataclass(frozen=True, eq=False)
class Rows:
    """A row of C numbers for each sample, such as gradients and, last, a hessian."""

    values: NDArray[np.float32]

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> Rows:
        """Round a matrix (n_samples, C) to numbers whose sums are exact."""
        quanta = quanta_of(np.abs(values).max(axis=0, initial=0.0))
        return cls((np.rint(values / quanta) * quanta).astype(np.float32))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_columns(self) -> int:
        """Number of sums C."""
        return self.values.shape[1]

    @property
    def width(self) -> tuple[float, ...]:
        """See `badacost.tree.gain_kernels`."""
        return (0.0,) * self.n_columns

    def taken(self, rows: RowNumbers | None, consume: bool = False) -> Summed:
        """Copies for the kernels of the rows; with `consume` those of all rows are no copies."""
        used: Any = slice(None) if rows is None else rows
        return Summed(
            order=np.arange(len(self), dtype=np.uint32)[used],
            labels=np.empty(0, np.uint8),
            weights=np.empty(0, np.float32),
            rows=self.values[used] if consume else _copied(self.values, used),
        )


def _copied(array: NDArray[Any], used: Any) -> NDArray[Any]:
    """A copy of some rows, or of all."""
    return array.copy() if isinstance(used, slice) else array[used]
