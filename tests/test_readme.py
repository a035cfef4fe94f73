"""What the README promises to newcomers: its code, its commands and its figures."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from badacost.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 150
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len([link for link in links if link.endswith(".png")]) == 3
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_code(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "average price" in capsys.readouterr().out


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the README shows of the demo is what it prints."""
    path = ROOT / "examples" / "0010_mistakes_with_prices.py"
    story = path.read_text(encoding="utf-8")
    for rival, size in (("HistGradientBoosting", "max_iter"), ("RandomForest", "n_estimators")):
        usual = f"{rival}Classifier(random_state=0"
        assert usual in story
        story = story.replace(usual, f"{usual}, {size}=2")  # its lines are not compared
    exec(compile(story, str(path), "exec"), {"__name__": "story"})
    assert list(tmp_path.glob("*.png"))
    printed = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    ours = [line for line in shown.splitlines() if line.startswith(("BAdaCost", "CostBoost"))]
    assert len(ours) == 2
    assert set(ours) <= set(printed)


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a table to pages, and the demo of detection, as the README types them."""
    monkeypatch.setattr("badacost.tabular.trials._MAX_ROUNDS", 5)  # of rivals without costs
    ours = [words[1:] for words in COMMANDS if words[0] == "badacost"]
    assert [words[0] for words in ours] == [
        "datasets", "costs", "fit", "predict", "report", "explore", "export", "demo",
    ]  # fmt: skip
    for arguments in ours:
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == 0, found.output
    assert (tmp_path / "report.html").stat().st_size > 20_000
    assert (tmp_path / "explorer.html").stat().st_size > 20_000
    assert (tmp_path / "cars.png").stat().st_size > 20_000
    n_new = len((tmp_path / "new.csv").read_text().splitlines())
    assert len((tmp_path / "decisions.csv").read_text().splitlines()) == n_new


def test_commands_that_set_things_up() -> None:
    """The targets of make and the extras of pip are there; CI runs them."""
    others = [words for words in COMMANDS if words[0] != "badacost"]
    assert [words[0] for words in others] == ["pip", "make", "make", "make"]
    makefile = (ROOT / "Makefile").read_text()
    for _, target in (words for words in others if words[0] == "make"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "all" in extras["optional-dependencies"]
    assert {target for target in re.findall(r"`make (\w+)`", README)} <= {
        target
        for targets in re.findall(r"^([\w ]+):", makefile, re.MULTILINE)
        for target in targets.split()
    }
