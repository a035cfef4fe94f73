"""Compiled loops of boosting by reweighting: weights from logarithms, and factors of mistakes."""

from __future__ import annotations

import numpy as np

from badacost._utils.loop_kernels import loop_kernel
from badacost._utils.portable_kernels import portable_exp


@loop_kernel
def relative_weights(log_weights, largest, least, weights, part, first, last):
    """Set ``weights`` relative to the largest one, of logarithms that are not below ``least``."""
    for i in range(first, last):
        x = log_weights[i] - largest
        weights[i] = portable_exp(x if x > least else least)


@loop_kernel
def divide(weights, total, part, first, last):
    """Divide weights by their total."""
    for i in range(first, last):
        weights[i] /= total


@loop_kernel
def pairs(y, predicted, n_classes, cells, part, first, last):
    """Truth and prediction of samples as one number, ``y * n_classes + predicted``."""
    for i in range(first, last):
        cells[i] = np.int32(y[i]) * n_classes + np.int32(predicted[i])


@loop_kernel
def add_margins(log_weights, margins, y, predicted, part, first, last):
    """Add ``margins[truth, prediction]`` to the logarithms of weights."""
    for i in range(first, last):
        log_weights[i] += margins[np.uint64(y[i]), np.uint64(predicted[i])]
