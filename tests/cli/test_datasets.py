"""``badacost datasets``: the list, and sets as tables that can be fitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from badacost.cli.app import app
from badacost.costs import read_costs
from badacost.datasets import DATASETS, find_dataset
from badacost.tabular import read_table


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

    monkeypatch.setattr("badacost.datasets.catalogue.load_uci", refused)
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
    options = ["--trees", "2", "--depth", "1", "--jobs", "1", "--holdout", "0.3", "--json"]
    assert json.loads(run(*words, *options).stdout)["held_out"]["n_rows"] > 30


def test_without_costs_the_next_step_is_to_make_some() -> None:
    result = run("datasets", "write", "iris", "--output", "new/iris.parquet")
    assert "Next: badacost costs new/iris.parquet --target species" in result.stdout
    assert len(read_table("new/iris.parquet")) == 150


def test_files_are_not_overwritten() -> None:
    for option in ("--output", "--test", "--costs"):
        Path("mine.csv").write_text("mine")
        files = {"--output": "t.csv", "--test": "u.csv", "--costs": "c.csv", option: "mine.csv"}
        words = [word for pair in files.items() for word in pair]
        result = run("datasets", "write", "iris", *words, status=1)
        assert "'mine.csv' exists: add --force to replace it" in result.stderr
        assert Path("mine.csv").read_text() == "mine"
        assert not Path("t.csv").exists()
        run("datasets", "write", "iris", *words, "--force")
        assert Path("mine.csv").read_text() != "mine"
        for name in ("t.csv", "u.csv", "c.csv"):
            Path(name).unlink(missing_ok=True)


def test_a_quarter_of_each_class_is_held_out() -> None:
    given = ["datasets", "write", "wine", "--output", "a.csv", "--test", "b.csv"]
    assert "others in b.csv" in run(*given).stdout
    train, test, whole = read_table("a.csv"), read_table("b.csv"), find_dataset("wine").load()
    rows = [tuple(row) for frame in (train, test) for row in frame.to_numpy()]
    assert len(set(rows)) == len(rows) == len(whole)
    for name, count in whole["cultivar"].value_counts().items():
        assert (test["cultivar"] == name).sum() == round(count / 4)
    before = Path("b.csv").read_text()
    run(*given, "--force")
    assert Path("b.csv").read_text() == before
    run(*given, "--force", "--seed", "1")
    assert Path("b.csv").read_text() != before


def test_a_newcomer_can_try_the_model_on_rows_it_has_not_seen() -> None:
    files = ["--output", "a.csv", "--test", "b.csv", "--costs", "c.csv"]
    lines = run("datasets", "write", "iris", *files).stdout.splitlines()
    (fit,) = (line.removeprefix("Next: badacost ") for line in lines if line.startswith("Next"))
    (evaluate,) = (line.removeprefix("Then: badacost ") for line in lines if "evaluate" in line)
    run(*fit.split(), "--trees", "2", "--depth", "1", "--holdout", "0", "--quiet")
    shown = run(*evaluate.split())
    assert "on 36 rows" in shown.stdout
    assert shown.stderr == ""


def test_the_list_has_80_columns(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("datasets").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < len(DATASETS) + 14


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
        (["synthetic scenes", "--output", "t.csv"], "train-detector"),
        (["iris", "--output", "t.xlsx"], "does not say what to write"),
        (["iris", "--output", "."], "is a folder"),
        (["iris", "--output", "t.csv", "--test", "t.csv"], "name the same file"),
        (["iris", "--output", "t.csv", "--test", "new/t.xlsx"], "does not say what to write"),
    ],
)
def test_mistakes(arguments, message) -> None:
    result = run("datasets", "write", *arguments, status=1)
    assert message in result.stderr
    assert result.stdout == ""
    assert not list(Path().iterdir())


def test_a_set_that_cannot_be_fetched(monkeypatch) -> None:
    def absent(name):
        raise FileNotFoundError(f"{name} is nowhere: put it there.")

    monkeypatch.setattr("badacost.datasets.catalogue.load_uci", absent)
    result = run("datasets", "write", "letter", "--output", "t.csv", status=1)
    assert result.stderr == "Error: letter is nowhere: put it there.\n"
    assert not Path("t.csv").exists()
