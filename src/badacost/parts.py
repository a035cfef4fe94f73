"""Parts of a training set: rows in one place, which answer questions about all of them.

Whoever trains a model adds up the answers and never sees the rows: they may be in this process, on
a GPU, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Protocol


class ByPart(list[Any]):
    """An argument with one item for each part."""


class Parts(Protocol):
    """All parts of a training set, in the order of their rows."""

    def ask(self, method: str, *arguments: Any, keep: bool = False) -> list[Any]:
        """Call a method of every part, and return the answers in their order.

        Parameters
        ----------
        method : str
            Its name, or the name of an attribute, a dot and its name.
        *arguments
            The same for all parts, except a `ByPart`, of which each gets its item.
        keep : bool, default=False
            Whether the call changes what parts hold for good. A part that is lost and built again
            hears all such calls again, and those since the last of them.
        """

    def close(self) -> None:
        """Let go of the parts."""


class LocalParts:
    """Parts in this process.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.parts import ByPart, LocalParts
    >>> parts = LocalParts([np.arange(3), np.arange(4)])
    >>> [int(total) for total in parts.ask("sum")]
    [3, 6]
    >>> parts.ask("item", ByPart([2, 3]))
    [2, 3]
    """

    def __init__(self, parts: Sequence[Any]):
        self.parts = list(parts)

    def ask(self, method: str, *arguments: Any, keep: bool = False) -> list[Any]:
        """Call a method of every part."""
        return [
            attrgetter(method)(part)(*arguments_of(arguments, number))
            for number, part in enumerate(self.parts)
        ]

    def close(self) -> None:
        """Let go of the parts."""
        self.parts.clear()


def arguments_of(arguments: tuple[Any, ...], number: int) -> list[Any]:
    """The arguments that one of the parts gets."""
    return [given[number] if isinstance(given, ByPart) else given for given in arguments]
