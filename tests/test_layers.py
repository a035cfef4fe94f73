"""Imports go one way, and the map in CONTRIBUTING.md names every package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/badacost"
# Bottom up: a module imports modules of its own layer, without cycles, and of the layers below.
LAYERS = [
    ("_utils", "costs", "io"),
    ("tree",),
    ("boosting", "backends", "loss", "batches"),
    ("classifiers", "family", "distributed"),
    (
        "cli",
        "cost_report",
        "datasets",
        "detection",
        "explain",
        "export",
        "html_page",
        "metrics",
        "plotting",
        "tabular",
    ),
]
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}
MODULES = {
    ".".join(("badacost", *path.relative_to(PACKAGE).with_suffix("").parts)): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imported(path: Path, *, anywhere: bool) -> set[str]:
    """Modules of the package that a module imports: anywhere in it, or when it is imported."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    lazy = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not anywhere and id(node) in lazy:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in inner}
    return {name for name in found if name.startswith("badacost.")}


def test_nothing_but_packages_at_the_top() -> None:
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(LAYER)


@pytest.mark.parametrize("package", LAYER)
def test_no_import_goes_up(package) -> None:
    for name, path in MODULES.items():
        if name.split(".")[1] == package:
            others = {other.split(".")[1] for other in imported(path, anywhere=True)}
            wrong = {other for other in others if LAYER[other] > LAYER[package]}
            assert not wrong, name


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: imported(path, anywhere=False) for name, path in MODULES.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for other in graph.get(name, ()):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_the_tree_engine_needs_neither_files_nor_scikit_learn() -> None:
    for path in (PACKAGE / "tree").glob("*.py"):
        found = re.search(r"^\s*(from|import) (sklearn|badacost\.io)\b", path.read_text(), re.M)
        assert not found, path


def test_the_package_does_not_know_experiments_and_campaigns() -> None:
    """They are programs of the repository, which nobody installs."""
    for path in PACKAGE.rglob("*.py"):
        found = re.search(r"^\s*(import|from) (experiments|campaigns)\b", path.read_text(), re.M)
        assert not found, path


def test_the_map_names_every_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert not {package for package in LAYER if f"`{package}/`" not in text}
