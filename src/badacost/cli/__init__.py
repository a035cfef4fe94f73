"""The command line: it parses, calls the library and shows what comes back."""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``badacost``."""
    try:
        import rich  # noqa: F401  (typer looks for it late, in the middle of a sentence)

        from badacost.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit('The command line needs two more packages: pip install "badacost[cli]"')
    app()
