"""Imports go one way, and the map in CONTRIBUTING.md shows them as they are."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/badacost"
# From the ground up: a room may import rooms of the floors below its own.
FLOORS = [
    (
        "arrays",
        "atomic_file",
        "budget",
        "csv_dialect",
        "parts",
        "progress",
        "scratch_file",
        "threads",
        "user_file",
    ),
    ("file_lock",),
    ("kernel_cache",),
    (
        "categorical_columns",
        "json_document",
        "large_samples",
        "parquet_rows",
        "portable_kernels",
    ),
    ("validation",),
    ("accuracy", "batches", "costs", "exact_sums", "model_file"),
    ("loss", "metrics", "calibration", "persistence", "tree"),
    ("gpu",),
    ("boosting", "plotting", "decision"),
    ("distributed", "html_page"),
    ("detection",),
    ("trials",),
    ("tabular",),
    ("datasets", "explain", "export"),
    ("cost_report",),
    ("cli",),
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# Used nearly everywhere: the picture leaves them out.
GROUND = {*chain.from_iterable(FLOORS[:5]), "accuracy", "exact_sums", "model_file", "persistence"}


def imported_rooms(path: Path) -> set[str]:
    """First names below badacost that a module imports, wherever in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "badacost":
            names += [f"badacost.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "badacost" and len(part) > 1}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """Which room imports which."""
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).with_suffix("").parts[0]
        found[room] |= imported_rooms(path) - {room}
    return found


def test_every_room_has_a_floor(graph) -> None:
    assert set(graph) - {"__init__"} == set(FLOOR)


@pytest.mark.parametrize("room", FLOOR)
def test_no_import_goes_up(graph, room) -> None:
    # Public names of the top level: the version, and `load` for the command line.
    allowed = {"__version__", "load"} if room == "cli" else {"__version__"}
    wrong = [
        other for other in graph[room] - allowed if FLOOR.get(other, len(FLOORS)) >= FLOOR[room]
    ]
    assert not wrong


def test_the_package_does_not_know_experiments_and_campaigns() -> None:
    """They are programs of the repository, which nobody installs."""
    for path in PACKAGE.rglob("*.py"):
        found = re.search(r"^\s*(import|from) (experiments|campaigns)\b", path.read_text(), re.M)
        assert not found, path


def test_the_picture_is_true(graph) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = defaultdict(set)
    for room, others in re.findall(r"^ +(\w+) --> ([\w &]+)$", text, re.MULTILINE):
        drawn[room] |= set(others.split(" & "))
    rooms = set(FLOOR) - GROUND
    assert drawn == {room: graph[room] & rooms for room in rooms if graph[room] & rooms}
