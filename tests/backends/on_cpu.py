"""A `Device` that runs the CUDA sources of badacost on the CPU, compiled by g++."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badacost.backends.device import HEADERS, PACKAGE, Device, cuda_device, typed_argument

_HEADER = Path(__file__).with_name("cuda_on_cpu.h")
# Kernels are not to be taken for functions of the C library that have the same name, and jumps
# between stacks not for damage, as they are where g++ checks them unasked (Ubuntu).
_OPTIONS = [
    "-Wl,-Bsymbolic-functions",
    "-U_FORTIFY_SOURCE",
    "-std=c++17",
    "-O2",
    "-ffp-contract=off",
    "-fwrapv",
    "-shared",
    "-fPIC",
    "-w",
]
_MACRO = re.compile(r"^#define(?:.*\\\n)*.*", re.MULTILINE)
# Kernels are written out, or made by a macro whose name ends in _KERNEL.
_KERNEL = re.compile(
    r"(?:__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?|^\w+_KERNEL\()(\w+)\s*[(,]",
    re.MULTILINE,
)


class OnCpu:
    """Arrays of numpy, and kernels compiled by g++ that run block after block."""

    xp: Any = np
    max_shared = 227 * 1024
    n_processors = 2

    def upload(self, array):
        return np.array(array, order="C")

    def download(self, array):
        return np.array(array)

    def launch(self, source, kernel, blocks, threads, *arguments, shared=0) -> None:
        grid = (blocks,) if isinstance(blocks, int) else tuple(blocks)
        assert 0 < threads <= 1024, "more threads than a block can have"
        assert 0 <= shared <= self.max_shared, "more shared memory than a block can have"
        assert max(grid[1:], default=0) < 65536, "more blocks than a grid can have"
        if 0 in grid:
            return
        kept = [_slot(typed_argument(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * len(kept))(*(slot.ctypes.data for slot in kept))
        launch = getattr(library(source), f"launch_{kernel}")
        wrong = launch(
            (ctypes.c_uint * 3)(*grid, *(1,) * (3 - len(grid))),
            ctypes.c_uint(threads),
            ctypes.c_size_t(shared),
            pointers,
            ctypes.c_size_t(len(kept)),
        )
        assert not wrong, f"{kernel} does not take {len(kept)} arguments"


def any_device() -> Device:
    """The CUDA device where there is one, else its stand-in on the CPU."""
    try:
        return cuda_device()
    except (ImportError, RuntimeError):
        return OnCpu()


def _slot(argument):
    """An array that holds a number, or the address of an array."""
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous, "kernels take contiguous arrays"
        return np.array([argument.ctypes.data], np.uintp)
    return np.array([argument])


@cache
def library(source: str) -> ctypes.CDLL:
    """A source file, compiled for the CPU; kept for later runs while sources stay the same."""
    text = f'#include "{_HEADER}"\n' + (PACKAGE / f"{source}.cu").read_text()
    for name in _KERNEL.findall(_MACRO.sub("", text)):
        text += (
            f'\nextern "C" int launch_{name}(const unsigned *grid, unsigned n, size_t shared,'
            f" void **arguments, size_t n_arguments) {{"
            f" return on_cpu::launch({name}, grid, n, shared, arguments, n_arguments); }}\n"
        )
    digest = hashlib.sha256((text + str(_OPTIONS)).encode())
    for path in sorted([_HEADER, *HEADERS.glob("*.cuh")]):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / "badacost_cuda_on_cpu"
    folder.mkdir(exist_ok=True)
    built = folder / f"{Path(source).name}-{digest.hexdigest()[:16]}.so"
    if not built.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            code, new = Path(scratch) / "source.cpp", Path(scratch) / "library.so"
            code.write_text(text)
            subprocess.run(
                ["g++", *_OPTIONS, f"-I{HEADERS}", str(code), "-o", str(new)], check=True
            )
            new.replace(built)
    return ctypes.CDLL(str(built))


needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="g++ is missing, which compiles CUDA sources for the CPU"
)
