"""Attacks on the library, as programs: ``python -m campaigns --help``."""

import os
from pathlib import Path

# Compiled once for all campaigns; numba looks at it when it is imported.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path("build/numba").absolute()))
