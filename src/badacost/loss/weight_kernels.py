"""Compiled loops of boosting by reweighting: weights from logarithms, and factors of mistakes."""

from __future__ import annotations

import numpy as np

from badacost._utils.inner_kernels import inner
from badacost._utils.kernel_cache import KERNEL, njit
from badacost._utils.loop_kernels import parallel_for
from badacost._utils.portable_kernels import portable_exp


@inner()
def _relative_weights(log_weights, largest, least, weights, part, first, last):
    for i in range(first, last):
        x = log_weights[i] - largest
        weights[i] = portable_exp(x if x > least else least)


@njit(**KERNEL)
def relative_weights(loop, log_weights, largest, least, weights):
    """Set ``weights`` relative to the largest one, of logarithms that are not below ``least``."""
    parallel_for(loop, _relative_weights, (log_weights, largest, least, weights))


@inner()
def _divide(weights, total, part, first, last):
    for i in range(first, last):
        weights[i] /= total


@njit(**KERNEL)
def divide(loop, weights, total):
    """Divide weights by their total."""
    parallel_for(loop, _divide, (weights, total))


@inner()
def _pairs(y, predicted, n_classes, cells, part, first, last):
    for i in range(first, last):
        cells[i] = np.int32(y[i]) * n_classes + np.int32(predicted[i])


@njit(**KERNEL)
def pairs(loop, y, predicted, n_classes, cells):
    """Truth and prediction of samples as one number, ``y * n_classes + predicted``."""
    parallel_for(loop, _pairs, (y, predicted, n_classes, cells))


@inner()
def _add_margins(log_weights, margins, y, predicted, part, first, last):
    for i in range(first, last):
        log_weights[i] += margins[np.uint64(y[i]), np.uint64(predicted[i])]


@njit(**KERNEL)
def add_margins(loop, log_weights, margins, y, predicted):
    """Add ``margins[truth, prediction]`` to the logarithms of weights."""
    parallel_for(loop, _add_margins, (log_weights, margins, y, predicted))
