"""What the documentation promises: code that runs, commands that exist, all public names."""

from __future__ import annotations

import importlib
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
_MADE = ("_build", "gallery", "generated", "results")
PAGES = [CONTRIBUTING] + [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not set(path.relative_to(DOCS).parts) & set(_MADE)
]
PUBLIC = [
    "badacost",
    "badacost.family",
    "badacost.cost_report",
    "badacost.costs",
    "badacost.datasets",
    "badacost.detection",
    "badacost.detection.annotations",
    "badacost.detection.evaluation",
    "badacost.detection.inspection",
    "badacost.detection.interchange",
    "badacost.distributed",
    "badacost.explain",
    "badacost.export",
    "badacost.plotting",
    "badacost.tabular",
]


def blocks(path: Path, language: str) -> list[str]:
    """Return the code blocks of a page, each after as many empty lines as precede it there."""
    text = path.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return ["\n" * text[: match.start(1)].count("\n") + match[1] for match in found]


def outputs(path: Path) -> dict[str, str]:
    """Return what Python blocks print, by the block, where a page shows it right below."""
    text = path.read_text(encoding="utf-8")
    pairs = re.finditer(
        r"^```python\n((?:(?!^```).)*?)^```\n+```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    return {"\n" * text[: pair.start(1)].count("\n") + pair[1]: pair[2] for pair in pairs}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def commands() -> list[Any]:
    """Return a case for each call of ``badacost`` in the pages."""
    cases = []
    for path in PAGES:
        for block in blocks(path, "console"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["badacost"]:
                    cases.append(pytest.param(words[1:], id=f"{name_of(path)}: {line.strip()}"))
    return cases


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python")], ids=name_of)
def test_code(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The Python blocks of a page run, and print what the page shows below them, if it does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "page"}
    shown = outputs(path)
    try:
        for block in blocks(path, "python"):
            capsys.readouterr()
            exec(compile(block, str(path), "exec", dont_inherit=True), names)
            if block in shown:
                assert capsys.readouterr().out == shown[block]
    finally:
        pyplot = importlib.import_module("matplotlib.pyplot")
        pyplot.close("all")


def test_the_walk_of_a_fit_names_what_there_is() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.*?) \|", text, re.MULTILINE)
    assert len(rows) > 15
    for file, names in rows:
        source = (ROOT / "src/badacost" / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b(def|class) {name}\b", source), f"{name} in {file}"
    for file in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        assert any((folder / file).is_file() for folder in (ROOT, ROOT / "src/badacost")), file


@cache
def program() -> Any:
    """Return the command ``badacost``."""
    typer = pytest.importorskip("typer")
    return typer.main.get_command(importlib.import_module("badacost.cli.app").app)


@pytest.mark.parametrize("words", commands())
def test_command(words: list[str]) -> None:
    """The commands and options in console blocks are there."""
    command = program()
    rest = list(words)
    while getattr(command, "commands", None) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        assert name in command.commands, f"no command {name!r}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    known |= {option for parameter in command.params for option in parameter.secondary_opts}
    used = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    assert used <= known | {"--help"}


@pytest.mark.parametrize("module", PUBLIC)
def test_reference_names_everything(module: str) -> None:
    """Every public name has a line in the reference."""
    lines = {
        line.strip().rpartition(".")[2]
        for page in (DOCS / "api").glob("*.rst")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("   ")
    }
    public = importlib.import_module(module)
    modules = {name for name in public.__all__ if type(getattr(public, name)) is type(re)}
    assert set(public.__all__) - modules <= lines


def test_pages_are_found() -> None:
    """The tests above are about something."""
    assert len(PAGES) > 15
    assert len(commands()) > 10
