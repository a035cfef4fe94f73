"""Exact sums on a device: those of `badacost.exact_sums`, bit by bit, in whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from badacost.arrays import FloatArray
from badacost.exact_sums import Units
from badacost.gpu.device import Device

THREADS = 256
_BLOCKS_PER_PROCESSOR = 16
_QUANTUM = 2.0**-53  # times a unit
_MAX_SHARED = 32 * 1024  # bytes: several blocks fit a processor


def n_blocks(device: Device, n: int) -> int:
    """Blocks for loops over n samples that step over each other."""
    return min(-(-n // THREADS), device.n_processors * _BLOCKS_PER_PROCESSOR)


def folded_sums(device: Device, terms: Any, units: Units) -> FloatArray:
    """Sums (2,) of what `badacost.exact_sums.folds` cuts terms into."""
    cells = device.xp.zeros(len(terms), np.int32)
    one_cell = tuple(np.array([unit], np.float64) for unit in units)
    return bin_folded_sums(device, cells, terms, one_cell)[:, 0]  # type: ignore[arg-type]


def bin_maxima(device: Device, cells: Any, terms: Any, n_cells: int) -> FloatArray:
    """Largest terms by cell (int32), none of them negative."""
    n, shared = len(terms), 8 * n_cells
    found = device.xp.zeros(n_cells, np.uint64)
    fits = shared <= _MAX_SHARED
    device.launch(
        "boosting", "cell_sizes", n_blocks(device, n), THREADS, cells, terms, n, n_cells, fits,
        found, shared=shared if fits else 0,
    )  # fmt: skip
    return device.download(found).view(np.float64)


def bin_folded_sums(device: Device, cells: Any, terms: Any, units: Units) -> FloatArray:
    """Sums by cell (2, n_cells) of what `folds` cuts terms into, with units for each cell."""
    n, n_cells = len(terms), len(units[0])
    sums = device.xp.zeros((2, n_cells), np.int64)
    fits = 16 * n_cells <= _MAX_SHARED
    device.launch(
        "boosting", "cell_sums", n_blocks(device, n), THREADS, cells, terms, n, n_cells,
        device.upload(units[0]), device.upload(units[1]), fits, sums,
        shared=16 * n_cells if fits else 0,
    )  # fmt: skip
    return device.download(sums) * _QUANTUM * np.stack(units)


def exp(device: Device, values: Any) -> Any:
    """Exponentials, the same bits as `badacost.portable_kernels.exp_of`, in place."""
    n = len(values)
    device.launch("elementwise", "exp_of", -(-n // THREADS), THREADS, values, values, n)
    return values
