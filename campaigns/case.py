"""What became of one case of the kills."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Case:
    """What became of one case: a run that was killed, and resumed until it was finished.

    Attributes
    ----------
    kills : int
        Kills while it worked.
    late : int
        Moments at which it had ended already.
    resumes : int
        Runs after a kill.
    mismatches : list of str
        What was not as it should be: files, exit states, processes that hang.
    leftovers : list of str
        Files and processes that nobody needs.
    """

    task: str
    kills: int = 0
    late: int = 0
    resumes: int = 0
    moments: list[float] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
