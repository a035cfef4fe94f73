"""Types of the arrays that functions take and return, named by what the numbers mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
Samples = NDArray[np.floating]  # (n_samples, n_features), NaN where a value is missing
Labels = NDArray[np.integer]  # positions of classes in ``classes_``
RowNumbers = NDArray[np.integer]  # positions of samples
Positions = NDArray[np.intp]  # of samples or of classes, as NumPy gives them
LeafNumbers = NDArray[np.integer]  # nodes of a tree in which samples end
