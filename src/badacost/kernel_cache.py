"""`njit`: numba's compiler, with a cache on disk that may be damaged, killed or unwritable.

Numba's own cache passes on what `pickle` says of a damaged file, refuses to import a function that
it finds no folder for, and looks at the file of a function only, not at those of the functions that
it calls. Here every compiled function is one file that begins with a digest of its contents and of
all kernels: whatever does not match is compiled again, and written again.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from badacost.atomic_file import replaced_file

try:
    from numba.core.caching import FunctionCache
    from numba.core.serialize import dumps
except ImportError:  # nothing of this is public
    FunctionCache, dumps = object, None

_DIGEST_BYTES = 32


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

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        path, key = self._place(sig, target_context.codegen())
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if digest != _digest(key, data):
            return None
        return self._impl.rebuild(target_context, pickle.loads(data))

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
