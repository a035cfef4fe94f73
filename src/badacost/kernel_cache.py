"""`njit`: numba's compiler, with a cache on disk that may be damaged, killed or unwritable.

Numba's own cache passes on what `pickle` says of a damaged file, refuses to import a function that
it finds no folder for, and looks at the file of a function only, not at those of the functions that
it calls. Here every compiled function is one file that begins with a digest of its contents and of
all kernels: whatever does not match is compiled again, and written again. Of several processes that
need the same function one compiles it, and the others wait for its file.
"""

from __future__ import annotations

import gc
import hashlib
import pickle
import time
import warnings
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba

from badacost.atomic_file import replaced_file
from badacost.file_lock import FileLock

try:
    from numba.core.caching import FunctionCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.serialize import dumps
except ImportError:  # nothing of this is public
    FunctionCache, dumps = object, None

_DIGEST_BYTES = 32
_MAX_WAIT = 60.0  # seconds for another process, which may have been stopped


class KernelCacheWarning(RuntimeWarning):
    """Compiled functions cannot be kept."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile as `numba.njit` does, and keep the result on disk if `cache` is true.

    Where nothing can be written there is a warning, and each process compiles for itself. With a
    numba that has other inner parts than this module knows, its own cache is used.

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
            try:
                _ = kernel._cache
                kernel._cache = _KernelCache(function)
                kernel.compile = _alone(kernel.compile, kernel._cache)
            except (AttributeError, TypeError):  # a numba of other parts
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
        _ = (impl.locator.ensure_cache_path, self.cache_path, self._index_key)
        _ = (super()._load_overload, super()._save_overload)
        self._lock: FileLock | None = None

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is on disk, or None, with a lock, for a function that is to be compiled."""
        path, key = self._place(sig, target_context.codegen())
        end = time.monotonic() + _MAX_WAIT
        while (data := self._read(path, key)) is None and self._lock is None:
            try:
                self._impl.locator.ensure_cache_path()
                self._lock = FileLock(path)  # then look again: another may just have been done
            except BlockingIOError:
                if time.monotonic() > end:
                    return None
                time.sleep(0.02)
            except OSError:  # nothing can be written there
                return None
        return None if data is None else self._impl.rebuild(target_context, pickle.loads(data))

    def _read(self, path: Path, key: bytes) -> bytes | None:
        """Return the contents of a file that is what it should be."""
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return data if digest == _digest(key, data) else None

    def release(self) -> None:
        """Let other processes go on, which look for the file then."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Write the file as a whole; its digest tells if it is lost with the power."""
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

    def _place(self, sig: Any, codegen: Any) -> tuple[Path, bytes]:
        """Return the file of a signature on this kind of processor, and what must be the same."""
        *types_and_processor, code = self._index_key(sig, codegen)
        digest = hashlib.sha256(repr(types_and_processor).encode())
        name = f"{self._impl.filename_base}.{digest.hexdigest()[:16]}.nbc"
        return Path(self.cache_path, name), repr((name, types_and_processor, code)).encode()


def _alone(compile: Callable[[Any], Any], cache: _KernelCache) -> Callable[[Any], Any]:
    """Compile as `compile` does, and release the lock of the cache however that ends.

    Garbage waits: looking for it among the many objects of a compiler takes an eighth of the time.
    """

    @wraps(compile)
    def compiled(sig: Any) -> Any:
        with global_compiler_lock:
            collects = gc.isenabled()
            gc.disable()
            try:
                return compile(sig)
            finally:
                cache.release()
                if collects:
                    gc.enable()

    return compiled


def _digest(key: bytes, data: bytes) -> bytes:
    """Return what a file begins with."""
    return hashlib.sha256(b"".join([_sources(), hashlib.sha256(key).digest(), data])).digest()


@cache
def _sources() -> bytes:
    """Return a digest of all kernels, which call each other, and of what compiles them."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.rglob("*_kernels.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


@cache
def _warn() -> None:
    """Warn, once in a process."""
    warnings.warn(
        "compiled functions cannot be cached on disk; every process will compile them again: set "
        "NUMBA_CACHE_DIR to a folder that can be written.",
        KernelCacheWarning,
        stacklevel=2,
    )
