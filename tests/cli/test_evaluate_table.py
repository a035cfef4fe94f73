"""``badacost evaluate`` for classifiers: costs by hand, other costs, and the wrong options."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from badacost import AdaC2M1Classifier, BAdaCostClassifier
from badacost.cli.app import app
from badacost.costs import write_costs
from badacost.tabular import CostSummary, TableClassifier

COSTS = {0: {1: 1, 2: 2}, 1: {0: 7, 2: 3}, 2: {0: 4, 1: 5}}


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch) -> TableClassifier:
    """A working folder with a table, costs and a model."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=120), "w": rng.integers(0, 3, 120)})
    frame["grade"] = np.digitize(frame["x"] + rng.normal(0, 0.5, 120), [-0.5, 0.5])
    frame.to_csv("data.csv", index=False)
    write_costs(COSTS, "costs.csv")
    booster = BAdaCostClassifier(n_estimators=4, max_depth=2)
    start = TableClassifier(booster, cost_matrix=COSTS, drop=["w"])
    fitted = start.fit(frame, "grade")
    fitted.held_out_ = CostSummary.of(
        frame["grade"], fitted.predict(frame), COSTS, classes=fitted.classes_, how="by hand"
    )
    fitted.save("m.badacost")
    return fitted


def evaluate(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    assert result.exit_code == status, result.output
    if status == 1:
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert result.stdout == ""
    return result


def figures(*arguments: str) -> dict:
    return json.loads(evaluate(*arguments, "--json").stdout)


def by_hand(model, weight=None, costs=COSTS) -> float:
    frame = pd.read_csv("data.csv")
    paid = [
        costs[truth].get(answer, 0)
        for truth, answer in zip(frame["grade"], model.predict(frame), strict=True)
    ]
    return float(np.average(paid, weights=weight))


def test_costs_by_hand(model) -> None:
    got = figures("m.badacost", "data.csv")
    assert got["average_cost"] == pytest.approx(by_hand(model))
    assert got["total_cost"] == pytest.approx(120 * by_hand(model))
    counts, costs = np.array(got["counts"]), np.array(got["costs"])
    matrix = np.array([[COSTS[i].get(j, 0) for j in range(3)] for i in range(3)])
    np.testing.assert_allclose(costs, counts * matrix)
    assert counts.sum() == got["n_rows"] == 120
    assert got["error_rate"] == pytest.approx(1 - np.trace(counts) / 120)
    constants = (counts.sum(axis=1) @ matrix) / 120
    assert got["constant_cost"] == pytest.approx(constants.min())
    assert got["constant_answer"] == str(constants.argmin())
    assert got["savings"] == pytest.approx(1 - by_hand(model) / constants.min())
    assert sum(got["cost_of_class"].values()) == pytest.approx(got["total_cost"])
    assert got["held_out"]["n_rows"] == model.held_out_.n_rows


def test_as_tables(model) -> None:
    shown = evaluate("m.badacost", "data.csv").stdout
    for text in ("cost", "Number of decisions", "Total cost", "by hand"):
        assert text in shown


def test_other_costs_and_weights(model) -> None:
    other = {
        truth: {answer: 10 * cost for answer, cost in row.items()} for truth, row in COSTS.items()
    }
    other[1][0] = 0.5
    write_costs(other, "other.csv")
    got = figures("m.badacost", "data.csv", "--costs", "other.csv")
    assert got["average_cost"] == pytest.approx(by_hand(model, costs=other))
    got = figures("m.badacost", "data.csv", "--weight", "w")
    assert got["average_cost"] == pytest.approx(by_hand(model, pd.read_csv("data.csv")["w"]))


def test_weights_that_are_a_feature_too() -> None:
    frame = pd.read_csv("data.csv")
    TableClassifier(BAdaCostClassifier(n_estimators=2)).fit(frame, "grade").save("w.badacost")
    assert figures("w.badacost", "data.csv", "--weight", "w")["n_rows"] == 120


def test_categories_that_are_unknown_are_noted() -> None:
    frame = pd.read_csv("data.csv").assign(zone=["a", "b", "c"] * 40)
    TableClassifier(BAdaCostClassifier(n_estimators=2)).fit(frame, "grade").save("z.badacost")
    frame.assign(zone="north").to_csv("data.csv", index=False)
    said = evaluate("z.badacost", "data.csv").stderr
    assert said.count("column 'zone': 120 of 120 values are unknown to the model") == 1


@pytest.mark.parametrize("length", [5, 25, 60])
def test_long_names_fit_on_a_terminal(model, monkeypatch, length) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"{letter}{'x' * length}" for letter in "abcd"]
    frame = pd.DataFrame({"x": np.arange(80.0) % 9, "y": names * 20})
    frame.to_csv("long.csv", index=False)
    TableClassifier(BAdaCostClassifier(n_estimators=2)).fit(frame, "y").save("l.badacost")
    shown = evaluate("l.badacost", "long.csv").stdout
    tables = shown.partition("Number of decisions")[2].splitlines()
    assert max(map(len, tables)) <= 80
    assert "…" not in shown.partition("Number of decisions")[2]
    assert any(line.split()[-5:-1] == list("1234") for line in tables) == (length > 5)


def test_another_name_of_the_target(model) -> None:
    pd.read_csv("data.csv").rename(columns={"grade": "truth"}).to_csv("data.csv", index=False)
    assert "no column 'grade'" in evaluate("m.badacost", "data.csv", status=1).stderr
    assert figures("m.badacost", "data.csv", "--target", "truth")["n_rows"] == 120


def test_costs_that_give_no_probabilities(model) -> None:
    free = {0: {1: 0, 2: 9}, 1: {0: 0, 2: 2}, 2: {0: 0, 1: 1}}
    start = TableClassifier(BAdaCostClassifier(n_estimators=2), cost_matrix=free)
    start.fit(pd.read_csv("data.csv"), "grade").save("f.badacost")
    assert figures("f.badacost", "data.csv")["rivals"] == {}


def test_many_classes(model) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=300), "y": rng.choice(list("abcdefghijklmnop"), 300)}
    )
    frame.to_csv("letters.csv", index=False)
    TableClassifier(BAdaCostClassifier(n_estimators=2)).fit(frame, "y").save("l.badacost")
    assert "Costliest mistakes" in evaluate("l.badacost", "letters.csv").stdout


def test_text_of_users_is_no_markup(model) -> None:
    frame = pd.DataFrame({"x": np.arange(40.0) % 7, "y": ["[red]a", "[/b]"] * 20})
    frame.to_csv("odd.csv", index=False)
    TableClassifier(BAdaCostClassifier(n_estimators=2)).fit(frame, "y").save("o.badacost")
    shown = evaluate("o.badacost", "odd.csv").stdout
    assert "[red]a" in shown
    assert "[/b]" in shown


def test_a_classifier_that_knows_no_target(model) -> None:
    frame = pd.read_csv("data.csv")
    AdaC2M1Classifier(COSTS, n_estimators=2).fit(frame[["x"]], frame["grade"]).save("a.badacost")
    assert "add --target" in evaluate("a.badacost", "data.csv", status=1).stderr
    got = figures("a.badacost", "data.csv", "--target", "grade")
    assert got["rivals"] == {}
    assert got["n_rows"] == 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.badacost", "no.csv"], "there is no file"),
        (["m.badacost", "data.csv", "data.csv"], "one table"),
        (["m.badacost", "data.csv", "--protocol", "voc"], "--protocol is of no use here"),
        (["m.badacost", "data.csv", "--plot", "p.png"], "--plot is of no use here"),
        (["no.badacost", "data.csv", "--target", "y"], "--target is of no use here"),
        (["data.csv", "data.csv", "--costs", "costs.csv"], "--costs is of no use here"),
        (["m.badacost", "data.csv", "--costs", "no.csv"], "no file of costs"),
    ],
)
def test_mistakes(arguments, message) -> None:
    assert message in evaluate(*arguments, status=1).stderr


def test_classes_that_are_not_known(model) -> None:
    frame = pd.read_csv("data.csv")
    frame.loc[3, "grade"] = 5
    frame.to_csv("data.csv", index=False)
    assert "the class '5' in line 5" in evaluate("m.badacost", "data.csv", status=1).stderr
    frame.loc[3, "grade"] = None
    frame.to_csv("data.csv", index=False)
    result = evaluate("m.badacost", "data.csv", "--json")
    assert "1 of 120 rows have no 'grade'" in result.stderr
    assert json.loads(result.stdout)["n_rows"] == 119
