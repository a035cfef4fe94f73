"""The option ``--jobs`` of commands."""

from __future__ import annotations


def check_jobs(jobs: int) -> None:
    """Refuse zero threads."""
    if jobs == 0:
        raise ValueError("--jobs must not be 0: -1 is one for each core.")
