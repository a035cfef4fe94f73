"""``badacost report``: models, pictures and annotations to a page, mistakes to one line."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from badacost import BAdaCostClassifier, load
from badacost.cli.app import app
from badacost.costs import labelled_costs
from badacost.detection import Cascade, Detector, PyramidParameters
from badacost.metrics import average_cost
from badacost.tabular import TableClassifier
from badacost.tree.forest import Forest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A working folder with a detector of dark left halves, and pictures."""
    monkeypatch.chdir(tmp_path)
    forest = Forest(
        feature=np.array([0, 0, 0], np.int32),
        threshold=np.array([0.1, np.nan, np.nan]),
        left=np.array([1, 1, 2], np.int32),
        missing_left=np.ones(3, bool),
        value=np.array([0, 0, 1], np.int32),
        gain=np.zeros(3, np.float32),
        count=np.zeros(3, np.int32),
        weight=np.zeros(3, np.float32),
        offsets=np.array([0, 3]),
        tree_weights=np.ones(1),
        table=np.array([[1.0], [-1.0]]),
        n_features=10 * 4 * 4,
    )
    cascade = Cascade(forest, (16, 16), (16, 16), cell=4, rejections=0.0)
    Detector(PyramidParameters(), [cascade], ["dark"]).save("dark.bada")
    Path("pictures/more").mkdir(parents=True)
    pixels = np.full((32, 48, 3), 255, np.uint8)
    pixels[8:24, 16:24] = 0
    for name in ("a.png", "more/b.png"):
        Image.fromarray(pixels).save(Path("pictures", name))
    Path("boxes.csv").write_text("image,x1,y1,x2,y2\na.png,16,8,32,24\n")
    return tmp_path


def report(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    if status:
        assert result.stderr.count("Error: ") == 1
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert not list(Path().rglob("*.html"))
        assert not list(Path().rglob("*.tmp"))
    return result


def test_detector_alone() -> None:
    assert report("dark.bada").stdout == "The page is in report.html.\n"
    text = Path("report.html").read_text(encoding="utf-8")
    assert "<h1>Detector of object</h1>" in text
    assert text.count("<img") == 1


def test_pictures_and_folders_of_them() -> None:
    result = report(
        "dark.bada", "--images", "pictures", "--images", "pictures/a.png", "--title", "Dark & new",
        "--output", "out/page.html",
    )  # fmt: skip
    assert "Looking at 2 pictures." in result.stderr
    text = Path("out/page.html").read_text(encoding="utf-8")
    assert "<h1>Dark &amp; new</h1>" in text
    assert "means over 2 images" in text


@pytest.mark.parametrize(("name", "format"), [("boxes.csv", []), ("b", ["--format", "table"])])
def test_annotations(name, format) -> None:
    Path("boxes.csv").rename(name)
    report("dark.bada", "--annotations", name, "--images", "pictures", *format)
    assert "On 1 annotated image," in Path("report.html").read_text(encoding="utf-8")


@pytest.fixture
def grades() -> pd.DataFrame:
    """A fitted classifier of tables, its data, and costs, in the working folder."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    frame = pd.DataFrame({"size": y + rng.normal(size=90), "grade": np.array(list("abc"))[y]})
    frame[:60].to_csv("train.csv", index=False)
    frame[60:].to_csv("test.csv", index=False)
    costs = {"a": {"b": 1, "c": 4}, "b": {"a": 2, "c": 9}, "c": {"a": 7, "b": 5}}
    booster = BAdaCostClassifier(n_estimators=3, max_depth=1)
    TableClassifier(booster, cost_matrix=costs).fit(frame[:60], "grade").save("grades.bada")
    Path("costs.csv").write_text("truth,c,b,a\na,40,10,\nb,90,,20\nc,,50,70\n")
    return frame


def test_classifier(grades) -> None:
    result = report(
        "grades.bada", "--data", "test.csv", "--title", "Grades <3", "--currency", "EUR"
    )
    assert result.stdout.endswith("\nThe page is in report.html.\n")
    assert "Report [" in result.stderr, "progress"
    text = Path("report.html").read_text(encoding="utf-8")
    assert "<h1>Grades &lt;3</h1>" in text
    assert f'<p class="lead">{escape(result.stdout.splitlines()[0])}</p>' in text
    assert "30 decisions of the model cost" in text
    model, test = load("grades.bada"), grades[60:]
    cost = average_cost(test["grade"], model.predict(test), model.cost_matrix_, labels=list("abc"))
    assert f"<dd>{cost:.2f} EUR" in text


def test_classifier_with_training_data_and_other_costs(grades) -> None:
    report("grades.bada", "--data", "test.csv", "--train", "train.csv", "--costs", "costs.csv")
    text = Path("report.html").read_text(encoding="utf-8")
    assert "boosting without costs, minimum expected cost" in text
    assert "knows, decisions look cheap" not in text
    assert "if they are these, use others" not in text
    assert "predicting “c” where “b” is true: 90." in text


def test_figures_as_json(grades) -> None:
    result = report("grades.bada", "--data", "test.csv", "--costs", "costs.csv", "--json")
    figures = json.loads(result.stdout)
    model, test = load("grades.bada"), grades[60:]
    costs = [[0, 10, 40], [20, 0, 90], [70, 50, 0]]
    cost = average_cost(test["grade"], model.predict(test), costs, labels=list("abc"))
    assert figures["average_cost"] == pytest.approx(cost)
    assert figures["labels"] == list("abc")
    assert figures["costs"] == costs
    assert Path("report.html").exists()


@pytest.mark.parametrize("options", [[], ["--train", "train.csv"]])
def test_rows_of_the_fit(grades, options) -> None:
    result = report("grades.bada", "--data", "train.csv", *options)
    assert "Note: the model was fitted to " in result.stderr
    assert "look cheap" in Path("report.html").read_text(encoding="utf-8")


def test_warnings_are_notes(grades) -> None:
    wards = grades.assign(ward=np.where(np.arange(len(grades)) % 2, "north", "south"))
    booster = BAdaCostClassifier(n_estimators=1, max_depth=1)
    TableClassifier(booster).fit(wards[:60], "grade").save("wards.bada")
    wards[60:].assign(ward="east").to_csv("east.csv", index=False)
    stderr = report("wards.bada", "--data", "east.csv").stderr
    assert stderr.count("Note: ") == 1
    assert "'ward'" in stderr


def test_classifier_that_was_fitted_to_a_frame(grades) -> None:
    costs = labelled_costs([[0, 1, 4], [2, 0, 9], [7, 5, 0]], sorted({*grades["grade"]}))
    model = BAdaCostClassifier(costs, n_estimators=2)
    model.fit(grades[["size"]], grades["grade"]).save("frame.bada")
    stderr = report("frame.bada", "--data", "test.csv", status=1).stderr
    assert "add --target" in stderr
    report("frame.bada", "--data", "test.csv", "--target", "grade")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grades.bada"], "is a classifier: add --data"),
        (["grades.bada", "--data", "nothing.csv"], "nothing.csv"),
        (["grades.bada", "--data", "test.csv", "--images", "pictures"], "--images is of no use"),
        (["grades.bada", "--data", "test.csv", "--format", "voc"], "--format is of no use"),
        (["grades.bada", "--data", "test.csv", "--target", "grad"], "grade"),
        (["grades.bada", "--data", "test.csv", "--costs", "nothing.csv"], "nothing.csv"),
        (["grades.bada", "--data", "test.csv", "--train", "boxes.csv"], "grade"),
        (["grades.bada", "--data", "others.csv"], "'d'"),
        (["grades.bada", "--data", "test.csv", "--currency", "a" * 20], "too long"),
        (["grades.bada", "--data", "test.csv", "--output", "pictures"], "is a folder"),
        (["dark.bada", "--data", "test.csv"], "--data is of no use here"),
        (["dark.bada", "--costs", "costs.csv"], "--costs is of no use here"),
        (["dark.bada", "--json"], "--json is of no use here"),
    ],
)
def test_mistakes_with_classifiers(grades, arguments, message) -> None:
    grades.assign(grade="d").to_csv("others.csv", index=False)
    assert message in report(*arguments, status=1).stderr.splitlines()[-1]


def test_detectors_have_progress() -> None:
    lines = report("dark.bada", "--images", "pictures").stderr.splitlines()
    shown = [line for line in lines if line.startswith("Report [")]
    assert "9/9" in shown[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.bada"], "there is no model 'nothing.bada': check its name and folder."),
        (["nothing.bada", "--data", "boxes.csv"], "there is no model 'nothing.bada'"),
        (["boxes.csv"], "boxes.csv"),
        (["dark.bada", "--jobs", "0"], "--jobs must not be 0"),
        (["dark.bada", "--output", "pictures"], "is a folder: name a file"),
        (["dark.bada", "--images", "empty"], "has no pictures"),
        (["dark.bada", "--images", "boxes.csv"], "boxes.csv"),
        (["dark.bada", "--images", "nothing.png"], "nothing.png"),
        (["dark.bada", "--format", "coco"], "--format is about annotations: add --annotations"),
        (["dark.bada", "--kitti-cars"], "--kitti-cars is about annotations: add --annotations"),
        (["dark.bada", "--clip"], "--clip is about annotations: add --annotations"),
        (["dark.bada", "--annotations", "pictures"], "pictures without annotations"),
        (["dark.bada", "--annotations", "nothing.csv"], "nothing.csv"),
        (["dark.bada", "--annotations", "boxes.csv", "--format", "exotic"], "'coco'"),
        (
            ["dark.bada", "--annotations", "boxes.csv", "--images", "a", "--images", "b"],
            "must be one folder",
        ),
        (["dark.bada", "--annotations", "boxes.csv", "--images", "empty"], "a.png"),
    ],
)
def test_mistakes(arguments, message) -> None:
    Path("empty").mkdir()
    stderr = report(*arguments, status=1).stderr
    assert message in stderr.splitlines()[-1]
