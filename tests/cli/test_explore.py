"""``badacost explore``: a model and a table to a page, mistakes to one line."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from badacost import BAdaCostClassifier, load
from badacost.cli.app import app
from badacost.tabular import TableClassifier

COSTS = {"a": {"b": 1, "c": 4}, "b": {"a": 2, "c": 9}, "c": {"a": 7, "b": 5}}


@pytest.fixture(autouse=True)
def rows(tmp_path: Path, monkeypatch) -> pd.DataFrame:
    """A fitted classifier of tables, rows that it does not know, and costs, in a new folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    frame = pd.DataFrame({"size": y + rng.normal(size=90), "grade": np.array(list("abc"))[y]})
    booster = BAdaCostClassifier(n_estimators=3, max_depth=1, decision="bayes")
    TableClassifier(booster, cost_matrix=COSTS).fit(frame[:50], "grade").save("grades.bada")
    test = frame[50:].reset_index(drop=True)
    test.to_csv("test.csv", index=False)
    Path("costs.csv").write_text("truth,c,b,a\na,40,10,\nb,90,,20\nc,,50,70\n")
    return test


def explore(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["explore", "grades.bada", *arguments])
    assert result.exit_code == status, result.output
    if status:
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert not list(Path().rglob("*.tmp"))
    return result


def held(name: str = "explorer.html") -> dict[str, Any]:
    """What the page holds."""
    text = Path(name).read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found[1])


def numbers(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def test_rows_with_classes(rows) -> None:
    result = explore("--data", "test.csv", "--currency", "EUR", "--title", "Grades & more")
    assert result.stdout == "The page is in explorer.html.\n"
    assert "<h1>Grades &amp; more</h1>" in Path("explorer.html").read_text(encoding="utf-8")
    model, page = load("grades.bada"), held()
    assert page["labels"] == list("abc")
    assert page["currency"] == "EUR"
    assert page["ask"] is None
    assert page["costs"] == [0, 1, 4, 2, 0, 9, 7, 5, 0]
    shares = numbers(page["probabilities"], "<f4").reshape(3, 40).T
    assert shares == pytest.approx(model.predict_proba(rows), abs=1e-6)
    truth, answers = (numbers(page[name], "u1") for name in ("truth", "answers"))
    assert np.array(list("abc"))[truth].tolist() == rows["grade"].tolist()
    assert np.array(list("abc"))[answers].tolist() == model.predict(rows).tolist()
    assert [feature["name"] for feature in page["features"]] == ["size"]
    assert page["rows"] == [str(k) for k in range(2, 42)], "lines of the file"


def test_other_costs_and_a_price_of_asking() -> None:
    explore(
        "--data", "test.csv", "--costs", "costs.csv", "--abstain", "3.5", "--output", "x/y.html"
    )
    page = held("x/y.html")
    assert page["costs"] == [0, 10, 40, 20, 0, 90, 70, 50, 0]
    assert page["ask"] == 3.5


def test_rows_without_classes(rows) -> None:
    rows.drop(columns="grade").to_csv("new.csv", index=False)
    rows.assign(grade=None).to_csv("blank.csv", index=False)
    for name in ("new.csv", "blank.csv"):
        result = explore("--data", name, "--force")
        assert "Note: the classes of the rows are not known" in result.stderr
        assert held()["truth"] is None
    text = Path("explorer.html").read_text(encoding="utf-8")
    assert "The truth of these rows is not known." in text
    some = rows.assign(grade=rows["grade"].where(np.arange(40) % 4 > 0))
    some.to_csv("some.csv", index=False)
    assert "Note: 10 of 40 rows have no 'grade'" in explore("--data", "some.csv", "--force").stderr
    assert held()["rows"][:4] == ["3", "4", "5", "7"]


def test_a_sample_of_many_rows() -> None:
    result = explore("--data", "test.csv", "--max-rows", "15")
    assert "Note: A random sample of 15 of 40 rows." in result.stderr
    first = held()
    assert first["n"] == 15
    explore("--data", "test.csv", "--max-rows", "15", "--force")
    assert held() == first


def test_rows_of_the_fit(rows) -> None:
    pd.concat([rows, rows[:10]]).to_csv("fifty.csv", index=False)
    assert "rows, too: if they are these" in explore("--data", "fifty.csv").stderr
    assert "rows, too: if they are these" in Path("explorer.html").read_text(encoding="utf-8")


def test_a_page_that_exists_is_kept() -> None:
    Path("explorer.html").write_text("mine")
    assert "'explorer.html' exists: add --force" in explore("--data", "test.csv", status=1).stderr
    assert Path("explorer.html").read_text() == "mine"
    explore("--data", "test.csv", "--force")
    assert held()["n"] == 40


def test_rivals_from_the_training_rows(rows) -> None:
    rows.to_csv("train.csv", index=False)
    explore("--data", "test.csv", "--train", "train.csv")
    names = [rival["name"] for rival in held()["rivals"]]
    assert names == ["boosting without costs", "CostBoost"]
    rows.drop(columns="grade").to_csv("unknown.csv", index=False)
    given = ["--data", "unknown.csv", "--train", "train.csv", "--force"]
    assert "give tables with the classes" in explore(*given, status=1).stderr
