"""Warnings that point to the line of the user, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the first line of the call stack that is not of this package."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name != _PACKAGE and not name.startswith(f"{_PACKAGE}."):
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
