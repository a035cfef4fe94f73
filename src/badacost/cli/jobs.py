"""The option ``--jobs`` of commands."""

from __future__ import annotations


def check_jobs(jobs: int) -> None:
    """Refuse work by nobody.

    Parameters
    ----------
    jobs : int
        What the option says.
    """
    if jobs == 0:
        raise ValueError("--jobs must not be 0: -1 is one for each core.")
