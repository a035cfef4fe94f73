"""What reading a file may take: memory and time, with one limit that users can raise.

A file of some kilobytes can unpack to gigabytes or take minutes to parse. Whoever reads one has a
`Budget` and asks it before memory is taken: bytes once unpacked, entries (which take memory as
well) and, in formats whose entries can share what they hold (MATLAB), seconds of parsing, all of
them set by `max_memory`. All else is parsed in a time that is linear in the size of the file. The
reader turns the `BudgetError` into the error of its kind of file.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field

DEFAULT_MEMORY = 10**9
_SECONDS_PER_BYTE = 60 / DEFAULT_MEMORY
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*([kKMGT]?i?)B?")
_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_default = DEFAULT_MEMORY
_RAISE_DEFAULT = "raise it with badacost.set_max_memory (--max-memory)"


class BudgetError(ValueError):
    """More memory or time than reading a file may take; the message names the remedy."""


@dataclass
class Budget:
    """Limits of reading one file.

    Parameters
    ----------
    max_memory : int
        Bytes that the contents may take once they are unpacked.
    taken : int, default=0
        Bytes that parts of the contents have taken.
    remedy : str
        What the error tells to do.

    Examples
    --------
    >>> budget = Budget.of("2 GB")
    >>> budget.check(3_900_000_000)
    Traceback (most recent call last):
        ...
    badacost.budget.BudgetError: it would need 3.9 GB, limit 2 GB: pass max_memory= (--max-memory)
    """

    max_memory: int
    taken: int = 0
    remedy: str = field(default="pass max_memory= (--max-memory)", compare=False)

    @classmethod
    def of(cls, max_memory: int | str | None) -> Budget:
        """Return the budget of an option of users; None is that of `set_max_memory`."""
        if max_memory is None:
            return cls(_default, remedy=f"pass max_memory=, or {_RAISE_DEFAULT}")
        return cls(as_bytes(max_memory))

    @classmethod
    def default(cls) -> Budget:
        """Return the budget of `set_max_memory`, where users cannot pass another one."""
        return cls(_default, remedy=_RAISE_DEFAULT)

    def check(self, n_bytes: int, what: str = "it", *, at_least: bool = False) -> None:
        """Refuse contents of more bytes than there may be, or of which only so many are known."""
        if n_bytes > self.max_memory:
            need = f"more than {shown(self.max_memory)}" if at_least else shown(n_bytes)
            raise BudgetError(
                f"{what} would need {need}, limit {shown(self.max_memory)}: {self.remedy}"
            )

    def take(self, n_bytes: int, what: str = "it") -> None:
        """Refuse a part that is too large together with those before it."""
        self.check(self.taken + n_bytes, what)
        self.taken += n_bytes

    def clock(self) -> Clock:
        """Begin to count the seconds of parsing: a minute for each gigabyte of the limit."""
        return Clock(max(self.max_memory * _SECONDS_PER_BYTE, 1.0))


UNLIMITED = Budget(sys.maxsize)
"""For what this process has made itself; shared, as what is taken of it does not matter."""


class Clock:
    """Seconds of this thread that reading may still take."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Refuse to go on when time is over."""
        if time.thread_time() > self._end:
            raise BudgetError(
                f"reading takes more than {self._seconds:.0f} s: split the file, or raise "
                "max_memory= (--max-memory), which also raises the time limit"
            )


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
    if isinstance(size, str):
        found = _SIZE.fullmatch(size.strip())
        unit = (_UNITS | _BINARY).get(found[2]) if found else None
        if found and unit and 1 <= float(found[1]) * unit < 2**63:
            return int(float(found[1]) * unit)
    elif type(size) is int and 1 <= size < 2**63:
        return size
    raise ValueError(
        f"max_memory must be a number of bytes or a string such as '4 GB'; got {size!r:.80}."
    )


def shown(n_bytes: int) -> str:
    """Return a number of bytes for people, rounded up so that it is not below a limit it exceeds.

    >>> shown(3_900_000_001), shown(10**9), shown(1500)
    ('3.91 GB', '1 GB', '1.5 kB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    units = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    unit = next((unit for unit, size in units.items() if 100 * n_bytes <= 99_999 * size), "TB")
    whole, hundredths = divmod(-(-100 * n_bytes // units[unit]), 100)
    return f"{whole}.{hundredths:02d}".rstrip("0").rstrip(".") + f" {unit}"
