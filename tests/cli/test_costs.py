"""``badacost costs``: templates of prices, their order, and explanations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from badacost.cli.app import app
from badacost.costs import ordinal_costs, read_costs, write_costs

COSTS = {
    "bad": {"fair": 4, "good": 9},
    "fair": {"bad": 1, "good": 2},
    "good": {"bad": 2, "fair": 1},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    """A working folder with a table of loans and costs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    loans = pd.DataFrame({"income": rng.normal(50, 15, 150).round(1)})
    loans["loan"] = np.array(["bad", "fair", "good"])[np.digitize(loans["income"], [45, 70])]
    loans["step"] = np.digitize(loans["income"], [30, 45, 60])
    loans.to_csv("loans.csv", index=False)
    grades = pd.CategoricalDtype(["good", "fair", "bad"], ordered=True)
    loans.assign(loan=loans["loan"].astype(grades)).to_parquet("ordered.parquet")
    write_costs(COSTS, "costs.csv")


def run(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == status, result.output
    if status == 1:
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert result.stdout == ""
    return result


def test_a_table_to_fill_in() -> None:
    run("costs", "loans.csv", "--target", "loan", "--output", "new.csv")
    costs = read_costs("new.csv")
    assert costs["bad"] == {"bad": 0, "fair": 1, "good": 1}
    printed = run("costs", "template", "loans.csv", "--target", "loan").stdout
    assert printed == Path("new.csv").read_text()


def test_prices_are_not_overwritten() -> None:
    before = Path("costs.csv").read_text()
    given = ["costs", "loans.csv", "--target", "loan", "--output", "costs.csv"]
    assert "add --force" in run(*given, status=1).stderr
    assert Path("costs.csv").read_text() == before
    run(*given, "--force", "--balanced")
    costs = read_costs("costs.csv")
    counts = pd.read_csv("loans.csv")["loan"].value_counts()
    rarest, commonest = counts.index[-1], counts.index[0]
    assert max(costs[rarest].values()) > max(costs[commonest].values())


def test_explanation() -> None:
    told = run("costs", "explain", "costs.csv").stdout
    assert "most expensive mistake is predicting 'good' where the truth is 'bad': 9" in told
    with_data = run("costs", "explain", "costs.csv", "--data", "loans.csv", "--target", "loan")
    assert "150 rows" in with_data.stderr
    assert "belong together" in run(
        "costs", "explain", "costs.csv", "--target", "loan", status=1
    ).stderr  # fmt: skip
    assert "no file of costs 'no.csv'" in run("costs", "explain", "no.csv", status=1).stderr


def test_a_target_of_many_classes() -> None:
    loans = pd.read_csv("loans.csv").assign(age=np.arange(150) % 30)
    loans.to_csv("loans.csv", index=False)
    given = ["costs", "loans.csv", "--target", "age"]
    message = run(*given, status=1).stderr
    assert "--target 'age' has 30 classes, which makes 870 prices" in message
    assert len(run(*given, "--many").stdout.splitlines()) == 31


@pytest.mark.parametrize("width", [60, 100])
def test_explanation_has_the_width_of_the_terminal(monkeypatch, width) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    longest = max(map(len, run("costs", "explain", "costs.csv").stdout.splitlines()))
    assert width - 20 < longest <= width


def test_a_column_that_is_not_there() -> None:
    assert "did you mean 'loan'" in run("costs", "loans.csv", "--target", "Loan", status=1).stderr


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (["loans.csv", "--target", "step"], ["0", "1", "2", "3"]),
        (["ordered.parquet", "--target", "loan"], ["good", "fair", "bad"]),
        (
            ["loans.csv", "--target", "loan", "--order", "bad, good,fair"],
            ["bad", "good", "fair"],
        ),
    ],
)
def test_ordinal_prices_follow_the_order(given, labels) -> None:
    run("costs", *given, "--ordinal", "5:0.5", "--output", "new.csv")
    costs = read_costs("new.csv")
    assert list(costs) == labels
    assert costs == ordinal_costs(len(labels), under=5, over=0.5, labels=labels)


def test_rows_have_the_order_of_the_column_or_the_one_asked_for() -> None:
    run("costs", "ordered.parquet", "--target", "loan", "--output", "new.csv")
    assert list(read_costs("new.csv")) == ["good", "fair", "bad"]
    printed = run("costs", "loans.csv", "--target", "loan", "--order", "fair,bad,good").stdout
    assert printed.splitlines()[0].endswith("fair,bad,good")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ordinal", "5:1"], "text without an order: give order"),
        (["--ordinal", "5"], "--ordinal must be two positive prices"),
        (["--ordinal", "5:0"], "as 5:1; got '5:0'"),
        (["--ordinal", "5:1:1"], "as 5:1; got '5:1:1'"),
        (["--ordinal", "5:1e999"], "--ordinal must be two positive prices"),
        (["--ordinal", "5:1", "--order", "bad,good"], "is missing from order"),
        (["--order", "bad,bad,good"], "label 'bad' is repeated in order"),
        (["--ordinal", "5:1", "--order", "bad,fair,good", "--balanced"], "choose one of them"),
    ],
)
def test_prices_without_an_order(options, message) -> None:
    assert message in run("costs", "loans.csv", "--target", "loan", *options, status=1).stderr


def test_explanation_has_the_order_of_the_file() -> None:
    write_costs(COSTS, "costs.csv", classes=["good", "bad", "fair"])
    for data in ([], ["--data", "loans.csv", "--target", "loan"]):
        shown = run("costs", "explain", "costs.csv", *data).stdout.splitlines()
        assert shown[1].split() == ["good", "bad", "fair"]


def test_a_template_that_was_not_filled_in() -> None:
    run("costs", "loans.csv", "--target", "loan", "--output", "new.csv")
    hint = "every mistake costs 1, as in a new template"
    assert hint in run("costs", "explain", "new.csv").stderr
    assert hint not in run("costs", "explain", "costs.csv").stderr
