"""Compiled functions on disk: found again, and compiled again where something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import pytest
from numba.core import caching, serialize

from badacost._utils import kernel_cache
from badacost.io.file_lock import FileLock, lock_of

SOURCE = """
from badacost._utils.kernel_cache import njit

@njit(cache=True, nogil=True)
def twice(x):
    return 2 * x

@njit(cache=True, nogil=True)
def thrice(x):
    return 3 * x
"""


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty folder for compiled functions."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    (tmp_path / "functions.py").write_text(SOURCE)
    kernel_cache._warn.cache_clear()  # there is one warning in a process
    return folder


def loaded(cache: Path) -> Any:
    """The module, as in a new process."""
    return imported(cache.parent / "functions.py")


def imported(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def n_found(cache: Path, name: str = "twice") -> int:
    """Call a function, and return how many of its compiled forms were on disk."""
    function = getattr(loaded(cache), name)
    assert function(21) == {"twice": 42, "thrice": 63}[name]
    return sum(function.stats.cache_hits.values())


def files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def test_what_is_compiled_is_found_again(cache) -> None:
    assert n_found(cache) == 0
    assert [path.suffix for path in files(cache)] == [".nbc"]
    assert n_found(cache) == 1


def test_each_type_has_a_file(cache) -> None:
    function = loaded(cache).twice
    assert (function(21), function(0.5)) == (42, 1.0)
    assert len(files(cache)) == 2


def flipped(content: bytes) -> bytes:
    changed = bytearray(content)
    changed[len(changed) // 2] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:20], lambda content: content[:-1],
     lambda content: b"garbage" * 99, flipped],
    ids=["empty", "no digest", "cut", "garbage", "one bit"],
)  # fmt: skip
def test_a_damaged_file_is_written_again(cache, damage) -> None:
    n_found(cache)
    (path,) = files(cache)
    path.write_bytes(damage(path.read_bytes()))
    assert n_found(cache) == 0
    assert n_found(cache) == 1
    assert files(cache) == [path]


def test_a_process_that_was_killed_before_it_released_its_lock(cache) -> None:
    n_found(cache)
    (path,) = files(cache)
    lock_of(path).touch()
    assert n_found(cache) == 1
    assert files(cache) == [path]


def test_the_file_of_another_function(cache) -> None:
    n_found(cache, "twice")
    n_found(cache, "thrice")
    thrice, twice = files(cache)
    twice.write_bytes(thrice.read_bytes())
    assert n_found(cache, "twice") == 0


def test_a_change_of_any_kernel(cache, monkeypatch) -> None:
    """Functions call those of other files, which numba's own cache does not look at."""
    n_found(cache)
    monkeypatch.setattr(kernel_cache, "_sources", lambda: b"others")
    assert n_found(cache) == 0
    assert len(files(cache)) == 1


def test_no_folder_can_be_written(cache, monkeypatch) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR to a folder that can be written"):
        assert n_found(cache) == 0


def test_a_folder_that_cannot_be_written_any_more(cache, tmp_path) -> None:
    function = loaded(cache).twice
    cache.rename(tmp_path / "away")
    cache.write_text("a file in its place")
    with pytest.warns(RuntimeWarning, match="every process will compile them again"):
        assert function(21) == 42


class Renamed(caching.FunctionCache):
    """That of a numba in which a part has another name."""

    @property
    def _index_key(self):
        raise AttributeError("_index_key")


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (caching, "FunctionCache", None),
        (serialize, "dumps", None),
        (caching, "FunctionCache", Renamed),
    ],
)
def test_a_numba_of_other_parts(cache, monkeypatch, owner, name, value) -> None:
    """Its own cache is used, which has an index."""
    if value is None:
        monkeypatch.delattr(owner, name)
    else:
        monkeypatch.setattr(owner, name, value)
    again = imported(Path(kernel_cache.__file__))
    monkeypatch.setitem(sys.modules, "badacost._utils.kernel_cache", again)
    assert n_found(cache) == 0
    assert {path.suffix for path in files(cache)} == {".nbc", ".nbi"}
    assert n_found(cache) == 1


def test_numba_may_be_switched_off(cache, monkeypatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    twice = loaded(cache).twice
    assert (type(twice), twice(21)) == (FunctionType, 42)


def test_all_kernels_are_kept_here() -> None:
    package = Path(kernel_cache.__file__).parents[1]
    for path in package.rglob("*_kernels.py"):
        assert "from numba import njit" not in path.read_text(), path


class TestOtherProcesses:
    """A lock that this test holds stands for another process that compiles."""

    @pytest.fixture
    def place(self, cache) -> Path:
        """Where the compiled function was."""
        n_found(cache)
        (path,) = files(cache)
        path.rename(cache.parent / "compiled")
        return path

    def test_what_they_compile_is_waited_for(self, cache, place) -> None:
        function = loaded(cache).twice
        with ThreadPoolExecutor(1) as pool:
            with FileLock(place):
                result = pool.submit(function, 21)
                time.sleep(0.3)
                assert not result.done()
                (cache.parent / "compiled").rename(place)
            assert result.result() == 42
        assert sum(function.stats.cache_hits.values()) == 1

    def test_they_may_have_been_stopped(self, cache, place, monkeypatch) -> None:
        monkeypatch.setattr(kernel_cache, "_MAX_WAIT", 0.0)
        with FileLock(place):
            assert n_found(cache) == 0
        assert files(cache) == [place]

    def test_they_do_not_wait_for_what_cannot_be_compiled(self, cache) -> None:
        function = loaded(cache).twice
        with pytest.raises(numba.TypingError):
            function(None)
        assert files(cache) == []
        assert function(21) == 42


# What is printed


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("terminal", [True, False])
def test_compilation_is_announced_on_a_terminal_once(cache, terminal) -> None:
    """Not where the output goes to a file, nor when all kernels are on disk."""
    code = (
        "import numpy as np\n"
        "from badacost._utils.portable_kernels import exp_of, log_of\n"
        "x = np.ones(3); exp_of(x, x); log_of(x, x)"
    )
    for expected in (terminal, False):
        reader, writer = os.openpty() if terminal else os.pipe()
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
            stderr=writer,
            check=True,
        )
        os.write(writer, b".")
        said = os.read(reader, 4096)
        os.close(reader)
        os.close(writer)
        assert said.count(b"badacost warmup") == expected
