"""Dask, which is an extra of the package: imported when it is needed, or an error that names it."""

from __future__ import annotations

from typing import Any


def dask_distributed() -> Any:
    """The module `distributed`."""
    try:
        import dask.array
        import dask.dataframe  # noqa: F401
        import distributed
    except ImportError as error:
        raise ImportError(
            f'Training on a cluster needs Dask ({error}): pip install "badacost[dask]"'
        ) from error
    return distributed
