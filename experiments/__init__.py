"""The paper's tables and our contests, as programs: ``python -m experiments --help``."""
