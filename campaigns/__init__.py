"""Attacks on the library, as programs: ``python -m campaigns --help``."""
