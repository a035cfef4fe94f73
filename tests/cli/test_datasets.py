"""``badacost datasets``: the list, and sets as tables that can be fitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from badacost.cli.app import app
from badacost.costs import read_costs
from badacost.tabular import DATASETS, read_table


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == status, result.output
    return result


def test_the_list_needs_no_network(monkeypatch) -> None:
    def refused(*_, **__):
        raise AssertionError("somebody asked for the network")

    monkeypatch.setattr("badacost.tabular.catalogue.load_uci", refused)
    shown = run("datasets").stdout
    for dataset in DATASETS:
        assert dataset.name in shown
    listed = json.loads(run("datasets", "--json").stdout)
    assert [entry["name"] for entry in listed] == [dataset.name for dataset in DATASETS]
    assert listed[0]["n_rows"] == 150


@pytest.mark.parametrize("name", ["wine", "breast_cancer", "diabetes"])
def test_what_is_written_can_be_fitted(name) -> None:
    result = run("datasets", "write", name, "--output", "t.csv", "--costs", "c.csv")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("Next: "))
    words = line.removeprefix("Next: badacost ").split()
    options = ["--trees", "2", "--depth", "1", "--jobs", "1", "--json"]
    assert json.loads(run(*words, *options).stdout)["held_out"]["n_rows"] > 30


def test_without_costs_the_next_step_is_to_make_some() -> None:
    result = run("datasets", "write", "iris", "--output", "new/iris.parquet")
    assert "Next: badacost costs new/iris.parquet --target species" in result.stdout
    assert len(read_table("new/iris.parquet")) == 150


def test_costs_are_rows_of_truth() -> None:
    run("datasets", "write", "breast-cancer", "--output", "t.csv", "--costs", "c.csv")
    assert read_costs("c.csv") == {
        "benign": {"benign": 0, "malignant": 1},
        "malignant": {"benign": 20, "malignant": 0},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whine", "--output", "t.csv"], "did you mean 'wine'"),
        (["made-up scenes", "--output", "t.csv"], "train-detector"),
        (["iris", "--output", "t.xlsx"], "does not say what to write"),
        (["iris", "--output", "."], "is a folder"),
    ],
)
def test_mistakes(arguments, message) -> None:
    result = run("datasets", "write", *arguments, status=1)
    assert message in result.stderr
    assert result.stdout == ""


def test_a_set_that_cannot_be_fetched(monkeypatch) -> None:
    def absent(name):
        raise FileNotFoundError(f"{name} is nowhere: put it there.")

    monkeypatch.setattr("badacost.tabular.catalogue.load_uci", absent)
    result = run("datasets", "write", "letter", "--output", "t.csv", status=1)
    assert result.stderr == "Error: letter is nowhere: put it there.\n"
    assert not Path("t.csv").exists()
