"""Names for the arrays of detection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Planes = NDArray[np.float32]  # channels of an image, (n_planes, height, width)
