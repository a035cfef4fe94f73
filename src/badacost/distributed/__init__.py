"""Training on the workers of a Dask cluster; needs ``pip install badacost[dask]``."""

from badacost.distributed.classifiers import DaskBAdaCostClassifier, DaskCostBoostClassifier
from badacost.distributed.cluster import LostWorkersError

__all__ = ["DaskBAdaCostClassifier", "DaskCostBoostClassifier", "LostWorkersError"]
