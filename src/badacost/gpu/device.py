"""A CUDA device: arrays on it, and the kernels of this folder, compiled when first used.

What runs on a device takes one of these as an argument. Its kernels are written in the part of
CUDA that a C++ compiler understands with a few definitions: in the tests another `Device` runs the
same sources on the CPU.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SOURCES = Path(__file__).parent
# Multiplications and additions are rounded one by one, as on the CPU.
OPTIONS = ("-std=c++17", "--fmad=false")
_LARGE = 2**20  # bytes
_DEFAULT_SHARED = 48 * 1024  # bytes for a block that need not be asked for


class Device(Protocol):
    """Where arrays are and kernels run."""

    xp: Any  # numpy, or what stands for it there
    max_shared: int  # bytes that the threads of a block can share
    n_processors: int  # that work at the same time

    def upload(self, array: NDArray[Any]) -> Any:
        """Copy a contiguous array to the device."""

    def download(self, array: Any) -> NDArray[Any]:
        """Copy an array from the device."""

    def launch(
        self, source: str, kernel: str, blocks: Any, threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Run a kernel of a source file, such as ``"trees"``, on a grid of blocks.

        `blocks` is a number or a tuple of up to three, `shared` the bytes that the threads of a
        block share. Arguments are arrays, integers (``long long``), floats (``double``) and
        booleans (``bool``).
        """


class CudaDevice:
    """The `Device` of CuPy's current CUDA device."""

    def __init__(self, cupy: Any):
        self.xp = cupy
        attributes = cupy.cuda.Device().attributes
        self.max_shared = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self.n_processors = int(attributes["MultiProcessorCount"])
        self._modules: dict[str, Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}

    def upload(self, array: NDArray[Any]) -> Any:
        """Copy a contiguous array to the device."""
        return self.xp.asarray(np.ascontiguousarray(array))

    def download(self, array: Any) -> NDArray[Any]:
        """Copy an array from the device, by way of memory that it reads fast where it is large."""
        if array.nbytes < _LARGE:
            return np.asarray(self.xp.asnumpy(array))
        from cupyx import empty_pinned

        return np.asarray(array.get(out=empty_pinned(array.shape, array.dtype)))

    def launch(
        self, source: str, kernel: str, blocks: Any, threads: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Run a kernel of a source file on a grid of blocks."""
        grid = (blocks,) if isinstance(blocks, int) else tuple(blocks)
        if 0 in grid:
            return
        function = self._function(source, kernel)
        if shared > max(function.max_dynamic_shared_size_bytes, _DEFAULT_SHARED):
            function.max_dynamic_shared_size_bytes = shared
        typed = tuple(typed_argument(argument) for argument in arguments)
        function(grid, (threads,), typed, shared_mem=shared)

    def _function(self, source: str, kernel: str) -> Any:
        """A compiled kernel; CuPy keeps the binaries on disk."""
        if (source, kernel) not in self._functions:
            if source not in self._modules:
                self._modules[source] = self.xp.RawModule(code=_code(source), options=OPTIONS)
            self._functions[source, kernel] = self._modules[source].get_function(kernel)
        return self._functions[source, kernel]


def _code(source: str) -> str:
    """A source with what it includes: CuPy knows by the text whether it was compiled before."""
    text = (SOURCES / f"{source}.cu").read_text()
    return re.sub(r'#include "(.+)"', lambda found: (SOURCES / found[1]).read_text(), text)


def typed_argument(argument: Any) -> Any:
    """Numbers in the types that kernels have for them."""
    if isinstance(argument, bool | np.bool_):
        return np.bool_(argument)
    if isinstance(argument, int | np.integer):
        return np.int64(argument)
    if isinstance(argument, float | np.floating):
        return np.float64(argument)
    return argument


def cuda_device() -> CudaDevice:
    """The current CUDA device; an error that says what is missing where there is none."""
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
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        raise _no_device(str(error)) from error
    if n_devices == 0:
        raise _no_device("none was found")
    return _device(cupy.cuda.runtime.getDevice())


def _no_device(reason: str) -> RuntimeError:
    return RuntimeError(
        f'device="cuda" needs a CUDA device and its driver ({reason}): use device="cpu", which '
        "gives the same results, or a machine with an NVIDIA GPU."
    )


@cache
def _device(number: int) -> CudaDevice:
    """One object for each device, so that kernels are compiled once."""
    import cupy

    return CudaDevice(cupy)
