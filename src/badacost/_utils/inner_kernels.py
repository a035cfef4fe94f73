"""`inner`: compiled functions that only kernels call.

Numba optimises every function that it compiles, and loads its machine code, even if the function is
only called by other compiled functions, which link and optimise it again. Both steps are skipped
for inner functions, or the second one alone with `optimized`: this halves the compilation of nested
kernels. The steps are private to numba. Where a version lacks one of them, inner functions are
compiled in full.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

import numba

# Kernels allocate no arrays: without reference counts they are faster.
OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "no_rewrites": True,  # of array expressions, which kernels do not have
    "_nrt": False,
}
# What is compiled in this thread: "inner", "optimized" or, if nothing is, "".
_compiles: ContextVar[str] = ContextVar("compiles", default="")


def inner(*, optimized: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as `numba.njit` does, for calls from other compiled functions only."""

    def compiled(function: Callable[..., Any]) -> Any:
        # Wrappers for Python take a fifth of the compilation.
        wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        kernel = numba.njit(**(OPTIONS | wrappers | options))(function)
        if kernel is not function:  # numba may be switched off
            kernel.compile = _marked(kernel.compile, "optimized" if optimized else "inner")
        return kernel

    return compiled


def _marked(compile: Callable[[Any], Any], kind: str) -> Callable[[Any], Any]:
    @wraps(compile)
    def compile_inner(signature: Any) -> Any:
        token = _compiles.set(kind)
        try:
            return compile(signature)
        finally:
            _compiles.reset(token)

    return compile_inner


def _unless(kinds: tuple[str, ...], step: Callable[..., None]) -> Callable[..., None]:
    @wraps(step)
    def run(*arguments: Any) -> None:
        if _compiles.get() not in kinds:
            step(*arguments)

    return run


def _patch_numba() -> None:
    """Skip steps of numba while an inner function is compiled."""
    from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen

    load, finish_globals = (
        CPUCodeLibrary._finalize_final_module,
        CPUCodeLibrary._finalize_dynamic_globals,
    )
    optimize, set_env = CPUCodeLibrary._optimize_final_module, JITCPUCodegen.set_env

    @wraps(load)
    def finalize(library: Any) -> None:
        if _compiles.get():
            finish_globals(library)
            library._finalized = True
        else:
            load(library)

    CPUCodeLibrary._finalize_final_module = finalize
    CPUCodeLibrary._optimize_final_module = _unless(("inner",), optimize)
    JITCPUCodegen.set_env = _unless(("inner", "optimized"), set_env)  # the kernel sets its own


with suppress(ImportError, AttributeError):
    _patch_numba()
