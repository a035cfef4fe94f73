"""Training on a Dask cluster."""

from badacost.distributed.parts import LostWorkersError

__all__ = ["LostWorkersError"]
