"""What belongs to others and lies outside the repository: only tests of this folder see it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, which all need what is outside."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.outside)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of models, results and images: a skip where it is absent, a failure in CI."""
    default = Path(__file__).resolve().parents[3] / "shared"
    folder = Path(os.environ.get("BADACOST_SHARED", default))
    if not (folder / "golden").is_dir():
        message = (
            "the authors' detectors, real images and UCI tables are not part of the repository: "
            "set BADACOST_SHARED to their folder"
        )
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return folder
