"""The option ``--jobs`` of commands."""

from __future__ import annotations


def check_jobs(jobs: int) -> None:
    """Refuse zero threads."""
    if jobs == 0:
        raise ValueError("--jobs must not be 0: use -1 for one thread per core.")
