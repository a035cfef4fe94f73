"""``badacost experiment``: the quick run as a user would start it, and mistakes in the options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from badacost.cli.app import app

RUNNER = CliRunner()


def test_quick_run(shared: Path, tmp_path: Path) -> None:
    command = ["experiment", "uci", "--quick", "--output", str(tmp_path)]
    command += ["--data", str(shared / "data" / "uci"), "--jobs", "1"]
    result = RUNNER.invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "BAdaCost, bayes" in result.output
    assert "12 algorithms on 2 data sets" in (tmp_path / "uci.md").read_text()
    found = json.loads((tmp_path / "uci.json").read_text())
    assert set(found["mean"]) == {"car", "cmc"}
    assert all(0 < cost < 5000 for rows in found["mean"].values() for cost in rows.values())
    for rival in ("LightGBM", "Random forest", "HistGradientBoosting"):
        assert found["mean"]["cmc"][f"{rival} + minimum cost"] < found["mean"]["cmc"][rival]
    before = (tmp_path / "uci.jsonl").read_bytes()
    assert RUNNER.invoke(app, command).exit_code == 0  # all results are there already
    assert (tmp_path / "uci.jsonl").read_bytes() == before
    other = RUNNER.invoke(app, [*command, "--seed", "1"])
    assert other.exit_code == 1
    assert "was made with other settings" in other.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sets", "nowhere"], "nowhere"),
        (["--sets", ","], "no data sets"),
        (["--jobs", "0"], "--jobs must not be 0"),
        (["--rate", "0"], "--rate must be a number greater than 0"),
        (["--reading", "guess"], "--reading must be one of 'full', 'tree', 'training'"),
        (["--data", "/nonexistent"], "car.csv.gz"),
        (["--output", "FILE"], "FILE"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch, options, message) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("not a folder")
    result = RUNNER.invoke(app, ["experiment", "uci", "--quick", *options])
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


def test_version_and_help() -> None:
    assert RUNNER.invoke(app, ["--version"]).output.strip().startswith("0.")
    assert "--quick" in RUNNER.invoke(app, ["experiment", "uci", "--help"]).output


@pytest.mark.parametrize("command", ["cars", "faces"])
def test_help_names_the_option_for_data(command) -> None:
    output = RUNNER.invoke(app, ["experiment", command, "--help"]).output
    assert "--data" in output
    assert "BADACOST_DATA" not in output
