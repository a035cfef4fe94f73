"""Limits of memory for reading a file, set by one number, `max_memory`.

A file of some kilobytes can unpack to gigabytes. A reader checks its `Budget` before it allocates
memory: for unpacked bytes, and for entries. The reader turns a `BudgetError` into the error of its
format. Files are parsed in a time that is linear in their size, but for those of MATLAB, whose
reader has a limit of time besides.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

DEFAULT_MEMORY = 10**9
_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]*)?)\s*(?:([kMGT])(I?))?B?", re.IGNORECASE)
_default = DEFAULT_MEMORY
REMEDY = "pass max_memory=, or raise it with badacost.set_max_memory (--max-memory)"


class BudgetError(ValueError):
    """Reading a file would take too much memory or time; the message names the remedy."""


@dataclass
class Budget:
    """Limits of reading one file.

    Parameters
    ----------
    max_memory : int
        Bytes that the contents may take once they are unpacked.
    taken : int, default=0
        Bytes that parts of the contents have taken.

    Examples
    --------
    >>> budget = Budget.of("2 GB")
    >>> budget.check(3_900_000_000)
    Traceback (most recent call last):
        ...
    badacost.io.budget.BudgetError: it would need 3.9 GB, limit 2 GB: pass max_memory=...
    """

    max_memory: int
    taken: int = 0

    @classmethod
    def of(cls, max_memory: int | str | None) -> Budget:
        """Return the budget of an option of users; None is that of `set_max_memory`."""
        return cls(_default if max_memory is None else as_bytes(max_memory))

    def check(self, n_bytes: int, what: str = "it", *, at_least: bool = False) -> None:
        """Refuse more bytes than the limit; with `at_least` the number is a lower bound."""
        if n_bytes > self.max_memory:
            need = f"more than {shown(self.max_memory)}" if at_least else shown(n_bytes)
            raise BudgetError(f"{what} would need {need}, limit {shown(self.max_memory)}: {REMEDY}")

    def take(self, n_bytes: int, what: str = "it") -> None:
        """Refuse a part that is too large together with those before it."""
        self.check(self.taken + n_bytes, what)
        self.taken += n_bytes


UNLIMITED = Budget(sys.maxsize)
"""The budget for data of this process itself; its `taken` has no effect."""


def set_max_memory(max_memory: int | str | None) -> None:
    """Set how much memory the contents of a file may take, wherever `max_memory` is not given.

    Parameters
    ----------
    max_memory : int, str or None
        Bytes, or a string such as "4 GB" or "512 MiB"; None for the initial limit, 1 GB. The
        limit holds for each file, in all threads of this process.

    Examples
    --------
    >>> import badacost
    >>> badacost.set_max_memory("4 GB")
    >>> badacost.set_max_memory(None)
    """
    global _default
    _default = DEFAULT_MEMORY if max_memory is None else as_bytes(max_memory)


def as_bytes(size: int | str) -> int:
    """Return a number of bytes that is given as such, or as a string such as "4 GB".

    >>> as_bytes("1.5 GB"), as_bytes("64MiB"), as_bytes(2**20)
    (1500000000, 67108864, 1048576)
    """
    n_bytes: Any = size
    if isinstance(size, str) and (found := _SIZE.fullmatch(size.strip())):
        number, prefix, is_binary = found.groups()
        power = "-KMGT".index((prefix or "-").upper())
        n_bytes = int(float(number) * (1024 if is_binary else 1000) ** power)
    if type(n_bytes) is not int or not 1 <= n_bytes < 2**63:
        raise ValueError(
            f"max_memory must be a number of bytes or a string such as '4 GB'; got {size!r:.80}."
        )
    return n_bytes


def shown(n_bytes: int) -> str:
    """Return a number of bytes for people, rounded up so that it is not below a limit it exceeds.

    >>> shown(3_900_000_001), shown(10**9), shown(1500)
    ('3.91 GB', '1 GB', '1.5 kB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if n_bytes >= size:
            hundredths = -(-100 * n_bytes // size)
            return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{n_bytes} bytes"
