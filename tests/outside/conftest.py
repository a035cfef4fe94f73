"""What belongs to others and lies outside the repository: only tests of this folder see it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("BADACOST_SHARED", HERE.parents[3] / "shared"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE.parent in item.path.parents:
            item.add_marker(pytest.mark.outside)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip the tests of this folder where they lack their data, all in this one line; CI fails."""
    if not (FOLDER / "golden").is_dir():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "the authors' detectors, real images and UCI tables are not part of the repository: "
            "set BADACOST_SHARED to their folder"
        )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the authors' models, their results, real images and tables."""
    return FOLDER
