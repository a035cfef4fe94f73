"""A progress bar on one line of the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, TextIO, TypeVar

Item = TypeVar("Item")
_WIDTH = 30


class ProgressBar:
    """Shows how far a loop of `total` steps is, a few figures and the time left.

    On a terminal the line is redrawn; elsewhere, as in a log file, a line is written half-way and
    at the end.
    """

    def __init__(self, total: int, title: str, stream: TextIO | None = None):
        self.total = total
        self.title = title
        self.stream = stream or sys.stderr
        self._redraws = self.stream.isatty()
        self._begin = time.monotonic()
        self._drawn: Any = 0

    def update(self, done: int, *, fraction: float | None = None, **figures: float | None) -> None:
        """Show that `done` steps are finished, a `fraction` of the work if steps are not alike."""
        now = time.monotonic() - self._begin
        drawn = (int(10 * now), done >= self.total) if self._redraws else 2 * done // self.total
        if drawn == self._drawn:
            return
        self._drawn = drawn
        known = {name: value for name, value in figures.items() if value is not None}
        shown = "  ".join(f"{name} {value:.4g}" for name, value in known.items())
        fraction = done / self.total if fraction is None else fraction
        left = now / fraction * max(1.0 - fraction, 0.0) if fraction else 0.0
        bar = f"{'#' * (_WIDTH * done // self.total):-<{_WIDTH}}"
        line = f"{self.title} [{bar}] {done}/{self.total}  {shown}  {duration(left)} left"
        self.stream.write(f"\r\033[K{line}" if self._redraws else f"{line}\n")
        self.stream.flush()

    def show(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps are finished, where their number is known late."""
        self.total = total
        self.update(done)

    def close(self) -> None:
        """Leave the line."""
        if self._redraws:
            self.stream.write("\n")
            self.stream.flush()


def tracked(items: Iterable[Item], total: int, title: str, *, shown: bool = True) -> Iterator[Item]:
    """Yield items, and show with a bar how many of them are done."""
    if not shown or not total:
        yield from items
        return
    with closing(ProgressBar(total, title)) as bar:
        for done, item in enumerate(items, start=1):
            yield item
            bar.update(done)


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
