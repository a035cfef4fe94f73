"""`Device`: arrays on a GPU, and kernels, which are compiled when first used.

Kernels are written in the part of CUDA that a C++ compiler can compile with a few definitions: in
the tests another `Device` runs the same sources on the CPU.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKAGE = Path(__file__).parents[1]
HEADERS = Path(__file__).parent
# Multiplications and additions are rounded one by one, as on the CPU.
OPTIONS = ("-std=c++17", "--fmad=false")
_LARGE = 2**20  # bytes
_DEFAULT_SHARED = 48 * 1024  # bytes of a block that need no request


class Device:
    """CuPy's current CUDA device: a place for arrays and kernels.

    Attributes
    ----------
    xp : module
        CuPy; numpy on the CPU.
    max_shared : int
        Maximum bytes of shared memory of a block.
    n_processors : int
        Number of multiprocessors.
    """

    def __init__(self, cupy: Any):
        self.xp = cupy
        attributes = cupy.cuda.Device().attributes
        self.max_shared = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self.n_processors = int(attributes["MultiProcessorCount"])
        self._module = cache(lambda source: cupy.RawModule(code=_code(source), options=OPTIONS))
        self._kernel = cache(lambda source, kernel: self._module(source).get_function(kernel))

    def upload(self, array: NDArray[Any]) -> Any:
        """Copy a contiguous array to the device."""
        return self.xp.asarray(np.ascontiguousarray(array))

    def download(self, array: Any) -> NDArray[Any]:
        """Copy an array from the device, a large one through pinned memory, which is faster."""
        if array.nbytes < _LARGE:
            return np.asarray(self.xp.asnumpy(array))
        from cupyx import empty_pinned

        return np.asarray(array.get(out=empty_pinned(array.shape, array.dtype)))

    def launch(
        self, source: str, kernel: str, blocks: Any, threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Run a kernel of a source file, such as ``"backends/trees"``, on a grid of blocks.

        `blocks` is a number or a tuple of up to three, `shared` the bytes of shared memory of a
        block. Arguments are arrays, integers (``long long``), floats (``double``) and
        booleans (``bool``). CuPy keeps compiled kernels on disk.
        """
        grid = (blocks,) if isinstance(blocks, int) else tuple(blocks)
        if 0 in grid:
            return
        function = self._kernel(source, kernel)
        if shared > max(function.max_dynamic_shared_size_bytes, _DEFAULT_SHARED):
            function.max_dynamic_shared_size_bytes = shared
        function(grid, (threads,), tuple(map(typed_argument, arguments)), shared_mem=shared)


def _code(source: str) -> str:
    """A source with its includes: CuPy caches binaries by the text."""
    text = (PACKAGE / f"{source}.cu").read_text()
    return re.sub(r'#include "(.+)"', lambda found: (HEADERS / found[1]).read_text(), text)


def typed_argument(argument: Any) -> Any:
    """Convert a number to the type of kernel arguments."""
    if not np.isscalar(argument):
        return argument
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    return kinds[np.asarray(argument).dtype.kind](argument)


def cuda_device() -> Device:
    """The current CUDA device.

    Raises ImportError without CuPy, and RuntimeError without a device.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of CuPy about its own installation
            import cupy
    except ImportError as error:
        raise ImportError(
            'device="cuda" needs CuPy, which is missing or broken: pip install "badacost[gpu]" '
            f"({error})."
        ) from error
    try:
        n_devices, reason = cupy.cuda.runtime.getDeviceCount(), "none was found"
    except RuntimeError as error:
        n_devices, reason = 0, str(error)
    if n_devices == 0:
        raise RuntimeError(
            f'device="cuda" needs a CUDA device and its driver ({reason}): use device="cpu", which '
            "gives the same results, or a machine with an NVIDIA GPU."
        )
    return _device(cupy.cuda.runtime.getDevice(), cupy)


@cache
def _device(number: int, cupy: Any) -> Device:
    """One object for each device, so that kernels are compiled once."""
    return Device(cupy)
