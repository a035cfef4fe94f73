"""``badacost predict``: decisions in every form, and tables that do not fit the model."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import badacost
from badacost import AdaC2M1Classifier, BAdaCostClassifier
from badacost.cli.app import app
from badacost.tabular import TableClassifier, read_table

COSTS = {"no": {"yes": 1, "may": 2}, "yes": {"no": 8, "may": 3}, "may": {"no": 2, "yes": 1}}


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch) -> TableClassifier:
    """A working folder with a table and a model of it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"name": [f"n{k}" for k in range(90)], "x": rng.normal(size=90)})
    frame["kind"] = rng.choice(["a", "b"], 90)
    frame["answer"] = np.array(["no", "may", "yes"])[np.digitize(frame["x"], [-0.5, 0.5])]
    frame.to_csv("data.csv", index=False)
    booster = BAdaCostClassifier(n_estimators=4, max_depth=2)
    fitted = TableClassifier(booster, cost_matrix=COSTS, drop=["name"]).fit(frame, "answer")
    fitted.save("m.badacost")
    return fitted


def predict(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["predict", *arguments])
    assert result.exit_code == status, result.output
    if status == 1:
        assert result.stderr.startswith("Error: ")
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""
    return result


def test_to_stdout(model) -> None:
    result = predict("m.badacost", "data.csv")
    got = pd.read_csv(io.StringIO(result.stdout))
    assert got.columns.tolist() == ["prediction"]
    assert got["prediction"].tolist() == model.predict(read_table("data.csv")).tolist()
    assert predict("m.badacost", "data.csv", "--output", "-").stdout == result.stdout


@pytest.mark.parametrize("name", ["new/out.csv", "out.parquet", "out.tsv.gz"])
def test_to_a_file(model, name) -> None:
    options = ["--probabilities", "--expected-costs", "--keep", "name", "--keep", "x"]
    result = predict("m.badacost", "data.csv", "--output", name, *options)
    assert result.stdout == ""
    assert "90 decisions" in result.stderr
    got = read_table(name)
    labels = ["no", "yes", "may"]  # in the order of the costs
    named = [f"{what}({label})" for what in ("P", "cost") for label in labels]
    assert got.columns.tolist() == ["name", "x", "prediction", *named]
    shares = got[named[:3]].to_numpy(float)
    np.testing.assert_allclose(shares, model.predict_proba(read_table("data.csv")))
    matrix = [[COSTS[i].get(j, 0) for j in labels] for i in labels]
    np.testing.assert_allclose(got[named[3:]].to_numpy(float), shares @ np.array(matrix))


def test_json() -> None:
    rows = json.loads(predict("m.badacost", "data.csv", "--json", "--keep", "name").stdout)
    assert len(rows) == 90
    assert set(rows[0]) == {"name", "prediction"}
    summary = json.loads(predict("m.badacost", "data.csv", "--json", "--output", "o.csv").stdout)
    assert summary["n_rows"] == sum(summary["counts"].values()) == 90


def test_columns_that_are_missing_extra_or_in_another_order() -> None:
    frame = pd.read_csv("data.csv")
    frame[["kind", "x"]].assign(extra=1).to_csv("other.csv", index=False)
    result = predict("m.badacost", "other.csv")
    assert result.stdout == predict("m.badacost", "data.csv").stdout
    frame.rename(columns={"kind": "Kind"}).to_csv("other.csv", index=False)
    result = predict("m.badacost", "other.csv", status=1)
    assert "'other.csv' has no column 'kind': did you mean 'Kind'?" in result.stderr


def test_categories_that_are_new_are_missing_values() -> None:
    pd.DataFrame({"x": [0.0, 0.0], "kind": ["z", None]}).to_csv("other.csv", index=False)
    result = predict("m.badacost", "other.csv")
    lines = result.stdout.splitlines()
    assert lines[1] == lines[2]
    assert result.stderr == (
        "Note: column 'kind': 1 of 1 values are unknown to the model, and missing values to it.\n"
    )


def test_cells_of_a_category_that_look_like_numbers(model) -> None:
    rng = np.random.default_rng(0)
    codes = rng.choice(["01", "02", "03", "XX"], 120)
    labels = np.where(codes == "02", "yes", "no")
    train = pd.DataFrame({"code": codes, "day": "2024-01-0" + pd.Series(codes).str[-1]})
    train["answer"] = labels
    costs = {"no": {"yes": 1}, "yes": {"no": 3}}
    train.to_csv("train.csv", index=False)
    start = TableClassifier(BAdaCostClassifier(n_estimators=3, max_depth=2), cost_matrix=costs)
    start.fit(read_table("train.csv"), "answer").save("codes.badacost")
    train[train["code"] != "XX"].to_csv("later.csv", index=False)
    got = predict("codes.badacost", "later.csv", "--keep", "answer")
    assert got.stderr == ""
    answers = pd.read_csv(io.StringIO(got.stdout))
    assert (answers["prediction"] == answers["answer"]).all()


def test_all_columns_are_kept_as_they_stand() -> None:
    Path("other.csv").write_text("x,kind,code\n0.50,a,01\n-1,b,02\n")
    lines = predict("m.badacost", "other.csv", "--keep-all").stdout.splitlines()
    assert lines[0] == "x,kind,code,prediction"
    assert lines[1].startswith("0.50,a,01,")
    predict("m.badacost", "other.csv", "--keep-all", "--keep", "x", "--output", "o.parquet")
    assert read_table("o.parquet").columns.tolist() == ["x", "kind", "code", "prediction"]


def test_decimal_commas_are_kept_as_they_stand() -> None:
    Path("other.csv").write_text("x;kind;note\n0,50;a;=A1\n-1;b;+2\n")
    lines = predict("m.badacost", "other.csv", "--keep-all").stdout.splitlines()
    assert lines[1].startswith('"0,50",a,\'=A1,')
    assert lines[2].startswith("-1,b,+2,")


def test_no_folder_is_made_before_there_is_something_to_write() -> None:
    predict("m.badacost", "no.csv", "--output", "new/o.csv", status=1)
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.badacost", "data.csv"], "there is no model 'no.badacost'"),
        (["data.csv", "data.csv"], "no model file"),
        (["m.badacost", "no.csv"], "there is no file 'no.csv'"),
        (["m.badacost", "data.csv", "--keep", "nmae"], "did you mean 'name'"),
        (["m.badacost", "data.csv", "--output", "out.xlsx"], "does not say what to write"),
        (["m.badacost", "data.csv", "--output", "."], "is a folder"),
    ],
)
def test_mistakes(arguments, message) -> None:
    assert message in predict(*arguments, status=1).stderr


def test_a_column_named_like_a_result() -> None:
    pd.read_csv("data.csv").assign(prediction=1).to_csv("data.csv", index=False)
    result = predict("m.badacost", "data.csv", "--keep", "prediction", status=1)
    assert "name of a column of results" in result.stderr


def test_models_of_other_kinds() -> None:
    from badacost.detection.models import synthetic_cars

    synthetic_cars().save("d.badacost")
    assert "holds a Detector" in predict("d.badacost", "data.csv", status=1).stderr
    frame = pd.read_csv("data.csv")
    nameless = BAdaCostClassifier(n_estimators=1).fit(frame[["x"]].to_numpy(), frame["answer"])
    nameless.save("n.badacost")
    assert "names of its columns" in predict("n.badacost", "data.csv", status=1).stderr
    AdaC2M1Classifier(n_estimators=2).fit(frame[["x"]], frame["answer"]).save("a.badacost")
    result = predict("a.badacost", "data.csv", "--probabilities", status=1)
    assert "has no probabilities" in result.stderr
    named = badacost.load("a.badacost").predict(frame[["x"]])
    got = pd.read_csv(io.StringIO(predict("a.badacost", "data.csv").stdout))
    assert got["prediction"].tolist() == named.tolist()
