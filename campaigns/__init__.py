"""Attacks on the library, as programs: ``python -m campaigns --help``."""

TOO_SHORT = 3  # exit status of a campaign that had no time to find anything
