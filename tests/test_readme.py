"""What the README and the examples promise to newcomers."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from badacost.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_code_in_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "average price" in capsys.readouterr().out


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the README shows of the demo is what it prints."""
    runpy.run_path(str(ROOT / "examples" / "0010_mistakes_with_prices.py"))
    assert list(tmp_path.glob("*.png"))
    printed = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    ours = [line for line in shown.splitlines() if line.startswith(("BAdaCost", "CostBoost"))]
    assert len(ours) == 2
    assert set(ours) <= set(printed)


def test_commands_for_tables(tmp_path: Path) -> None:
    """From a table to a page, as the README types it."""
    (section,) = re.findall(r"without Python\n\n```console\n(.*?)```", README, re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in section.splitlines()]
    assert [command for _, command, *_ in lines] == [
        "datasets",
        "costs",
        "fit",
        "predict",
        "report",
    ]
    for _, *arguments in lines:
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == 0, found.output
    assert (tmp_path / "report.html").stat().st_size > 50_000
    n_new = len((tmp_path / "new.csv").read_text().splitlines())
    assert len((tmp_path / "decisions.csv").read_text().splitlines()) == n_new
