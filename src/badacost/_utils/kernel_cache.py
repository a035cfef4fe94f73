"""`njit`: numba's compiler, with a cache on disk that tolerates corrupt files and killed processes.

Numba's own cache raises errors of `pickle` for a corrupt file, fails to import a function if no
folder can be written, and ignores changes in the functions that a function calls. Here every
compiled function is one file that begins with a digest of its contents and of all kernels: whatever
does not match is compiled and written again. If several processes need the same function, one
compiles it, and the others wait for its file.
"""

from __future__ import annotations

import gc
import hashlib
import pickle
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba

from badacost._utils.inner_kernels import OPTIONS
from badacost.io.atomic_file import replaced_file
from badacost.io.file_lock import FileLock, lock_of

try:
    from numba.core.caching import FunctionCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.serialize import dumps
except ImportError:  # nothing of this is public
    FunctionCache, dumps = object, None

_DIGEST_BYTES = 32
_MAX_WAIT = 60.0  # seconds for another process, which may have been stopped

KERNEL = {"cache": True, "no_cfunc_wrapper": True} | OPTIONS  # no callers in C
"""Options of kernels that Python calls."""


class KernelCacheWarning(RuntimeWarning):
    """Compiled functions cannot be cached."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as `numba.njit` does, and cache the result on disk if `cache` is true.

    If no folder can be written there is a warning, and each process compiles for itself. If a
    version of numba lacks the private names that this module uses, its own cache is used.

    Examples
    --------
    >>> @njit(nogil=True)
    ... def twice(x):
    ...     return 2 * x
    >>> twice(21)
    42
    """

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if not cache or kernel is function:  # it is the same where numba is switched off
            return kernel
        try:
            _ = kernel._cache
            kernel._cache = _KernelCache(function)
            kernel.compile = _with_lock_released(kernel.compile, kernel._cache)
        except (AttributeError, TypeError):  # a private name of numba is missing
            return numba.njit(cache=True, **options)(function)
        except (RuntimeError, OSError):  # of numba, where no folder can be written
            _warn()
        return kernel

    return compiled


class _KernelCache(FunctionCache):
    """One file for each function and types of its arguments."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        impl = self._impl  # an AttributeError now, rather than in the first call
        _ = (impl.rebuild, impl.reduce, impl.check_cachable, impl.filename_base)
        _ = (impl.locator.ensure_cache_path, self.cache_path, self._py_func, super()._index_key)
        _ = (super()._load_overload, super()._save_overload)
        self.locks = ExitStack()  # of functions that are being compiled

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function on disk; or None, with a lock, if it has to be compiled."""
        path, key = self._place(sig, target_context.codegen())
        data = _read(path, key)
        if data is not None:
            with suppress(OSError):
                lock_of(path).unlink()  # of a process that was killed once the file was there
        else:
            # An OSError: the other process takes too long, or nothing can be written there.
            with suppress(OSError):
                self._impl.locator.ensure_cache_path()
                self.locks.enter_context(FileLock(path, timeout=_MAX_WAIT))
            data = _read(path, key)  # which another process may have written meanwhile
        if data is not None:
            return self._impl.rebuild(target_context, pickle.loads(data))
        announce()
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Write the file as a whole; after a loss of power its digest may not match."""
        if not self._impl.check_cachable(data):
            return
        path, key = self._place(sig, data.codegen)
        content = dumps(self._impl.reduce(data))
        try:
            self._impl.locator.ensure_cache_path()
            with replaced_file(path, durable=False) as temporary:
                temporary.write_bytes(_digest(key, content) + content)
        except OSError:
            _warn()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Key of a signature. Kernels in a closure count as all kernels do, see `_sources`."""
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        return sig, codegen.magic_tuple(), code

    def _place(self, sig: Any, codegen: Any) -> tuple[Path, bytes]:
        """Return the file of a signature on this kind of processor, and the key of its contents."""
        *types_and_processor, code = self._index_key(sig, codegen)
        digest = hashlib.sha256(repr(types_and_processor).encode())
        name = f"{self._impl.filename_base}.{digest.hexdigest()[:16]}.nbc"
        return Path(self.cache_path, name), repr((name, types_and_processor, code)).encode()


def _with_lock_released(compile: Callable[[Any], Any], cache: _KernelCache) -> Callable[[Any], Any]:
    """Wrap `compile`: release the lock of the cache in the end, even after an error.

    The garbage collector is off meanwhile: it takes an eighth of the time of a compilation.
    """

    @wraps(compile)
    def compiled(sig: Any) -> Any:
        with global_compiler_lock, cache.locks:  # then other processes read the file
            collects = gc.isenabled()
            gc.disable()
            try:
                return compile(sig)
            finally:
                if collects:
                    gc.enable()

    return compiled


def _read(path: Path, key: bytes) -> bytes | None:
    """Return the contents of a file with the right digest."""
    with suppress(OSError):
        content = path.read_bytes()
        data = content[_DIGEST_BYTES:]
        if content[:_DIGEST_BYTES] == _digest(key, data):
            return data
    return None


def _digest(key: bytes, data: bytes) -> bytes:
    """Return the digest that a file begins with."""
    return hashlib.sha256(b"".join([_sources(), hashlib.sha256(key).digest(), data])).digest()


@cache
def _sources() -> bytes:
    """Return a digest of all kernels, which call each other, and of the version of numba."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*_kernels.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


@cache
def announce() -> None:
    """Print a line on a terminal, once in a process, since compilation takes seconds."""
    if sys.stderr.isatty():
        print(
            "badacost: compiling kernels, once for this machine, which takes some 10 seconds "
            "(`badacost warmup` does it ahead of time)",
            file=sys.stderr,
        )


@cache
def _warn() -> None:
    """Warn, once in a process."""
    warnings.warn(
        "compiled functions cannot be cached on disk, and every process will compile them again: "
        "set NUMBA_CACHE_DIR to a folder that can be written.",
        KernelCacheWarning,
        stacklevel=2,
    )
