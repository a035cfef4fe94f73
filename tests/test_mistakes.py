"""Mistakes that people make, and the one sentence that each of them is answered with.

Read the two tables as documentation: what was done, what was typed, and words of the answer, which
says what is wrong and what to do about it.
"""

from __future__ import annotations

import json
import pickle
import re
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier as Tree
from typer.testing import CliRunner

import badacost
from badacost import (
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostBoostClassifier,
    CSAdaBoostClassifier,
    ImportedForestClassifier,
    LpCSBClassifier,
    MinimumCostClassifier,
    costs,
    metrics,
)
from badacost.cli.app import app
from badacost.detection import ImageError, TrainingConfig, load_detector, train_detector
from badacost.detection.annotations import (
    AnnotatedImage,
    AnnotationError,
    Views,
    read_annotations,
)
from badacost.explain import explain_decision, explain_scores
from badacost.plotting import CostConfusionDisplay, CostCurveDisplay, DecisionRegionsDisplay
from badacost.tabular import TableClassifier, fit_and_try, read_table

matplotlib.use("Agg")

LONGEST = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
GRADES = np.array(["high", "low", "mid"])
Y = GRADES[np.arange(60) % 3]
COSTS = {"high": {"low": 9, "mid": 4}, "low": {"high": 1, "mid": 1}, "mid": {"high": 2, "low": 3}}
PRICES = [[0, 9, 4], [1, 0, 1], [2, 3, 0]]
TABLE = pd.DataFrame(
    {
        "patient": [f"P{number:03d}" for number in range(60)],
        "age": RNG.integers(20, 90, 60),
        "dose": X[:, 0].round(3),
        "ward": RNG.choice(["north", "south"], 60),
        "weight": 1.0,
        "grade": Y,
    }
)
CELLS = TABLE.to_csv(index=False)
FILES: dict[str, str | bytes] = {
    "patients.csv": CELLS,
    "new_patients.csv": TABLE.drop(columns="dose").to_csv(index=False),
    "ungraded.csv": TABLE.drop(columns="grade").to_csv(index=False),
    "other_grades.csv": CELLS.replace("mid", "medium"),
    "bars.csv": CELLS.replace(",", "|"),
    "excel.csv": b"PK\x03\x04\x14\x00\x06\x00\x08\x00" + bytes(200),
    "patients.xlsx": b"PK\x03\x04\x14\x00\x06\x00\x08\x00" + bytes(200),
    "latin1.csv": CELLS.replace("north", "münchen").encode("latin-1"),
    "empty.csv": "",
    "heading_only.csv": CELLS.partition("\n")[0] + "\n",
    "ragged.csv": CELLS + "P999,33,0.1,north,1.0,low,oops\n",
    "twice.csv": CELLS.replace("weight", "age", 1),
    "one_grade.csv": TABLE.assign(grade="low").to_csv(index=False),
    "negative_weight.csv": CELLS + "P999,33,0.1,north,-2,low\n",
    "costs.csv": "truth,high,low,mid\nhigh,0,9,4\nlow,1,0,1\nmid,2,3,0\n",
    "no_column.csv": "truth,high,low\nhigh,0,9\nlow,1,0\nmid,2,3\n",
    "two_grades.csv": "truth,high,low\nhigh,0,9\nlow,1,0\n",
    "typo.csv": "truth,high,low,mdi\nhigh,0,9,4\nlow,1,0,1\nmdi,2,3,0\n",
    "negative.csv": "truth,high,low,mid\nhigh,0,9,-4\nlow,1,0,1\nmid,2,3,0\n",
    "blank.csv": "truth,high,low,mid\nhigh,0,9,\nlow,1,0,1\nmid,2,3,0\n",
    "words.csv": "truth,high,low,mid\nhigh,0,nine,4\nlow,1,0,1\nmid,2,3,0\n",
    "free.csv": "truth,high,low,mid\nhigh,0,9,4\nlow,0,0,0\nmid,2,3,0\n",
    "fruits.csv": "truth,apple,pear\napple,0,2\npear,1,0\n",
    "no_labels.csv": "0,9,4\n1,0,1\n2,3,0\n",
    "notes.txt": "Nothing of use.\n",
    "boxes.csv": "image,x1,y1,x2,y2,category\na.png,10,10,40,40,Car\n",
    "no_boxes.csv": "image,x1,y1,x2,y2,category\n",
    "faces.csv": "image,x1,y1,x2,y2,angle,yaw_est\na.png,10,10,40,40,0.3,-30\n",
    "wrong_columns.csv": "file,left,top,right,bottom\na.png,10,10,40,40\n",
    "broken.toml": "window = [48, 84\n",
    "unknown.toml": "windw = [48, 84]\n",
    "pictures/a.png": b"",
    "pictures/notes.png": "Nothing of use.\n",
    "nothing/notes.txt": "Nothing of use.\n",
    "pickled.badacost": pickle.dumps([1, 2, 3]),
}


@cache
def fitted() -> BAdaCostClassifier:
    return BAdaCostClassifier(COSTS, n_estimators=3, max_depth=2).fit(X, Y)


@cache
def fitted_to_table() -> TableClassifier:
    booster = BAdaCostClassifier(n_estimators=3, max_depth=2)
    return TableClassifier(booster, cost_matrix=COSTS, drop=["patient"]).fit(TABLE, "grade")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the tables speak of."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(folder / "pictures/a.png")
    trained = files("badacost.detection").joinpath("trained", "synthetic_cars.badacost")
    with as_file(trained) as path:
        shutil.copy(path, folder / "cars.badacost")
    fitted().save(folder / "array.badacost")
    fitted_to_table().save(folder / "grades.badacost")
    whole = (folder / "grades.badacost").read_bytes()
    (folder / "cut.badacost").write_bytes(whole[: len(whole) // 2])
    with (
        zipfile.ZipFile(folder / "grades.badacost") as today,
        zipfile.ZipFile(folder / "newer.badacost", "w") as newer,
    ):
        for name in today.namelist():
            data = today.read(name)
            if name.endswith(".json"):
                data = json.dumps(json.loads(data) | {"version": 99}).encode()
            newer.writestr(name, data)
    return folder


@pytest.fixture(autouse=True)
def folder(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where mistakes are made; none of them leaves a file behind."""
    monkeypatch.chdir(filled)
    before = _files()
    yield
    assert _files() == before


def _files() -> list[Path]:
    return sorted(path for path in Path().rglob("*") if path.is_file())


@dataclass(frozen=True)
class Command:
    """A line in a terminal: the exit status is 1 for data and files, 2 for what was typed."""

    mistake: str
    typed: str
    answer: tuple[str, ...]
    status: int = 1


@dataclass(frozen=True)
class Call:
    """A line of Python."""

    mistake: str
    typed: Callable[[], Any]
    error: type[Exception]
    answer: tuple[str, ...]


def command(mistake: str, typed: str, *answer: str, status: int = 1) -> Any:
    return pytest.param(Command(mistake, typed, answer, status), id=mistake)


def call(mistake: str, typed: Callable[[], Any], error: type[Exception], *answer: str) -> Any:
    return pytest.param(Call(mistake, typed, error, answer), id=mistake)


def without(module: str, do: Callable[[], Any]) -> Any:
    """Do something as if a package were not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module, None)
        return do()


FIT = "fit patients.csv --target grade --drop patient --trees 2 --jobs 1"
TRAIN = "train-detector --output d.badacost --small --window 20x20 --jobs 1 --quiet"

COMMANDS = [
    # The table and the column of the classes
    command(
        "no prices of mistakes",
        "fit patients.csv --target grade",
        "no prices yet",
        "`badacost costs patients.csv --target grade --output costs.csv`",
    ),
    command(
        "name of the target mistyped",
        "fit patients.csv --target grad --costs costs.csv",
        "no column 'grad'",
        "did you mean 'grade'?",
    ),
    command(
        "no such table",
        "fit patient.csv --target grade --costs costs.csv",
        "no file 'patient.csv'",
        "check its name",
    ),
    command(
        "a workbook as a table",
        "fit patients.xlsx --target grade --costs costs.csv",
        "Excel workbook",
        ".csv",
    ),
    command(
        "a workbook that is called csv",
        "fit excel.csv --target grade --costs costs.csv",
        "not a file of text",
        "save the table as CSV in UTF-8",
    ),
    command(
        "bars between the cells",
        "fit bars.csv --target grade --costs costs.csv",
        "no column 'grade'",
        "there are 'patient|age|dose",
    ),
    command(
        "letters in another encoding",
        "fit latin1.csv --target grade --costs costs.csv",
        "not text in UTF-8, in line",
        "save the table as CSV in UTF-8",
    ),
    command(
        "empty file",
        "fit empty.csv --target grade --costs costs.csv",
        "is empty",
        "begins with the names of its columns",
    ),
    command(
        "names of columns and no rows",
        "fit heading_only.csv --target grade --costs costs.csv",
        "no rows",
        "add some",
    ),
    command(
        "a line with a cell too many",
        "fit ragged.csv --target grade --costs costs.csv",
        "7 cells in line 62, where the header has 6",
        "put quotes around",
    ),
    command(
        "two columns of the same name",
        "fit twice.csv --target grade --costs costs.csv",
        "more than one column 'age'",
        "a name of its own",
    ),
    command(
        "all rows of the same class",
        "fit one_grade.csv --target grade --costs costs.csv",
        "one class only, 'low'",
        "name another column",
    ),
    command(
        "a quantity as target",
        "fit patients.csv --target dose --costs costs.csv",
        "numbers with fractions",
        "cut the quantity into grades",
    ),
    command(
        "an identifier as target",
        "fit patients.csv --target patient --costs costs.csv",
        "60 different values in 60 rows",
        "name another column as target",
    ),
    command(
        "an identifier among the columns",
        "fit patients.csv --target grade --costs costs.csv",
        "looks like an identifier",
        "--drop 'patient'",
    ),
    command(
        "the target left out",
        f"{FIT} --costs costs.csv --drop grade",
        "--target 'grade' cannot be left out",
        "name other columns",
    ),
    command(
        "column to leave out mistyped",
        f"{FIT} --costs costs.csv --drop wrad",
        "no column 'wrad'",
        "did you mean 'ward'?",
    ),
    command(
        "column of weights mistyped",
        f"{FIT} --costs costs.csv --weight wieght",
        "no column 'wieght'",
        "did you mean 'weight'?",
    ),
    command(
        "text as weights of rows",
        f"{FIT} --costs costs.csv --weight ward",
        "--weight 'ward' is of no use",
        "must have numbers; got 'north' in line 2",
    ),
    command(
        "a negative weight of a row",
        "fit negative_weight.csv --target grade --costs costs.csv --weight weight",
        "--weight 'weight' is of no use",
        "it is negative in line 62: write 0 or more",
    ),
    # The prices
    command(
        "no such file of prices",
        f"{FIT} --costs cost.csv",
        "no file of costs 'cost.csv'",
        "check its name",
    ),
    command(
        "prices without a column for a class",
        f"{FIT} --costs no_column.csv",
        "class 'mid' is missing from the first row",
        "add it",
    ),
    command(
        "prices without a class",
        f"{FIT} --costs two_grades.csv",
        "class 'mid' is missing from the first column",
        "add it",
    ),
    command(
        "name of a class mistyped in the prices",
        f"{FIT} --costs typo.csv",
        "labels ['mdi'] in the first column are not among the 3 classes ['high', 'low', 'mid']",
        "correct them",
    ),
    command(
        "prices of another task",
        f"{FIT} --costs fruits.csv",
        "labels ['apple', 'pear'] in the first column are not among the 3 classes",
        "correct them",
    ),
    command(
        "prices without names of classes",
        f"{FIT} --costs no_labels.csv",
        "labels ['9', '4'] in the first row are not among the 2 classes ['1', '2']",
        "correct them",
    ),
    command(
        "the table in the place of the prices",
        f"{FIT} --costs patients.csv",
        "in the first row are not among the",
        "correct them",
    ),
    command(
        "a negative price",
        f"{FIT} --costs negative.csv",
        "truth 'high' and prediction 'mid' is -4.0",
        "costs_from_pairs takes negative",
    ),
    command(
        "ordinal prices for grades without an order",
        "costs patients.csv --target grade --ordinal 5:1",
        "text without an order",
        "--order low,middle,high",
    ),
    command(
        "one ordinal price",
        "costs patients.csv --target grade --ordinal 5",
        "--ordinal must be two positive prices",
        "as 5:1",
    ),
    command(
        "an order that lacks a grade",
        "costs patients.csv --target grade --order low,high",
        "is missing from order",
        "('low', 'high')",
    ),
    command(
        "a price left blank",
        f"{FIT} --costs blank.csv",
        "the cost of truth 'high' and prediction 'mid' in line 2 is ''",
        "give every mistake a cost",
    ),
    command(
        "a price in words",
        f"{FIT} --costs words.csv",
        "prediction 'low' in line 2 is 'nine'",
        "write a number with a decimal point",
    ),
    command(
        "a class whose mistakes are all free",
        f"{FIT} --costs free.csv",
        "all mistakes on class 'low' are free",
        "raise a cost",
    ),
    command(
        "a table of prices that would be lost",
        "costs patients.csv --target grade --output costs.csv",
        "'costs.csv' exists",
        "add --force",
    ),
    command(
        "prices below a file",
        "costs patients.csv --target grade --output notes.txt/costs.csv",
        "'notes.txt' is a file",
        "name a folder",
    ),
    command(
        "no such prices to explain",
        "costs explain price.csv",
        "no file of costs 'price.csv'",
        "check its name",
    ),
    command(
        "shares of classes without the name of their column",
        "costs explain costs.csv --data patients.csv",
        "--data and --target belong together",
        "give both or neither",
    ),
    # How to fit
    command(
        "an algorithm for two classes on three",
        f"{FIT} --costs costs.csv --algorithm cs-adaboost",
        "takes 2 classes, y has 3",
        "use BAdaCostClassifier",
    ),
    command(
        "a decision by probabilities that there are not",
        f"{FIT} --costs costs.csv --algorithm lp-csb --decision bayes",
        "the decision bayes needs probabilities, which lp-csb does not have",
        "leave it out",
    ),
    command(
        "steps of length 0",
        f"{FIT} --costs costs.csv --learning-rate 0",
        "learning_rate must be a number greater than 0",
    ),
    command(
        "no threads",
        f"{FIT} --costs costs.csv --jobs 0",
        "--jobs must not be 0",
        "use -1 for one thread per core",
    ),
    command(
        "a folder as the file of the model",
        f"{FIT} --costs costs.csv --output pictures",
        "--output 'pictures' is a folder",
        "name a file",
    ),
    command(
        "trees of depth 0",
        f"{FIT} --costs costs.csv --depth 0",
        "'--depth'",
        "1",
        status=2,
    ),
    command(
        "all rows held out",
        f"{FIT} --costs costs.csv --holdout 1",
        "'--holdout'",
        "0.9",
        status=2,
    ),
    command(
        "no such algorithm",
        f"{FIT} --costs costs.csv --algorithm xgboost",
        "--algorithm must be one of 'costboost', 'badacost', 'samme'",
        "got 'xgboost'",
    ),
    command(
        "an option of one algorithm where several are compared",
        f"{FIT} --costs costs.csv --algorithm auto",
        "--trees is of no use here, since --algorithm auto compares algorithms as they are",
        "leave it out",
    ),
    command(
        "a rule that CostBoost does not have",
        f"{FIT} --costs costs.csv --decision margin",
        "costboost decides by minimum expected cost only",
        "leave out the decision",
    ),
    command("an option mistyped", "fit patients.csv --taget grade", "--target", status=2),
    command("no target", "fit patients.csv --costs costs.csv", "'--target'", status=2),
    command(
        "a command mistyped",
        "predcit grades.badacost patients.csv",
        "No such command 'predcit'",
        "'predict'",
        status=2,
    ),
    # Models, and the tables that they are tried on
    command(
        "model and table swapped",
        "predict patients.csv grades.badacost",
        "'patients.csv': it is damaged or no model file",
        "name one that badacost wrote",
    ),
    command(
        "no such model",
        "predict grade.badacost patients.csv",
        "no model 'grade.badacost'",
        "check its name",
    ),
    command(
        "a model cut short",
        "predict cut.badacost patients.csv",
        "'cut.badacost': it is damaged",
        "name one",
    ),
    command(
        "a model of a later version",
        "predict newer.badacost patients.csv",
        "its format version is",
        "upgrade badacost",
    ),
    command(
        "a model that was fitted to an array",
        "predict array.badacost patients.csv",
        "does not know the names of its columns",
        "fit it to a data frame",
    ),
    command(
        "a detector in the place of a classifier",
        "predict cars.badacost patients.csv",
        "holds a Detector, which is not for tables",
        "use badacost detect",
    ),
    command(
        "a column of the fit missing",
        "predict grades.badacost new_patients.csv",
        "no column 'dose'",
        "there are 'patient', 'age', 'ward'",
    ),
    command(
        "decisions as a workbook",
        "predict grades.badacost patients.csv --output decisions.xlsx",
        "'decisions.xlsx' does not say what to write",
        "end its name in .csv",
    ),
    command(
        "column to repeat mistyped",
        "predict grades.badacost patients.csv --keep patiant",
        "no column 'patiant'",
        "did you mean 'patient'?",
    ),
    command(
        "a trial on a table without classes",
        "evaluate grades.badacost ungraded.csv",
        "no column 'grade'",
        "there are 'patient', 'age'",
    ),
    command(
        "a trial on classes that the model does not know",
        "evaluate grades.badacost other_grades.csv",
        "the class 'medium' in line 4, which the model does not know",
        "there are 'high', 'low', 'mid'",
    ),
    command(
        "an option of detections for a table",
        "evaluate grades.badacost patients.csv --overlap 0.5",
        "--overlap is of no use here, since 'grades.badacost' is a model for tables",
        "leave it out",
    ),
    command(
        "a trial on two tables",
        "evaluate grades.badacost patients.csv ungraded.csv",
        "on one table",
        "name a single file",
    ),
    command(
        "a page about a classifier without data",
        "report grades.badacost",
        "is a classifier",
        "add --data",
    ),
    command(
        "a page about a detector with a table",
        "report cars.badacost --data patients.csv",
        "--data is of no use here",
        "leave it out",
    ),
    command(
        "a page about a table",
        "report patients.csv",
        "'patients.csv': it is damaged or no model file",
        "name one",
    ),
    command(
        "prices of rows without a column of the fit",
        "explore grades.badacost --data new_patients.csv",
        "no column 'dose'",
    ),
    command(
        "a column of classes that is not there",
        "explore grades.badacost --data ungraded.csv --target grade",
        "no column 'grade'",
    ),
    command(
        "rows of other classes to explore",
        "explore grades.badacost --data other_grades.csv",
        "has the class 'medium' in",
        "which the model does not know",
    ),
    command(
        "a detector to explore",
        "explore cars.badacost --data patients.csv",
        "which is not for tables",
        "name a model of badacost fit",
    ),
    command(
        "a page that would be lost",
        "explore grades.badacost --data patients.csv --output notes.txt",
        "'notes.txt' exists",
        "add --force",
    ),
    command(
        "a negative price of asking a person",
        "explore grades.badacost --data patients.csv --abstain -1",
        "abstain must be a number at least 0",
    ),
    command(
        "a sentence as the unit of prices",
        "explore grades.badacost --data patients.csv --currency 'euros and cents'",
        "too long",
        "give at most 12 letters",
    ),
    command(
        "a page without rows",
        "explore grades.badacost --data patients.csv --max-rows 0",
        "max_rows must be an integer at least 1 or None; got 0",
    ),
    command("explore without rows", "explore grades.badacost", "Missing option '--data'", status=2),
    command(
        "name of a data set mistyped",
        "datasets write diabetis --output patients2.csv",
        "no data set 'diabetis'",
        "did you mean 'diabetes'?",
    ),
    command("a data set to nowhere", "datasets write wine", "'--output'", status=2),
    command(
        "scenes as a table",
        "datasets write synthetic-scenes --output scenes.csv",
        "no table but pictures",
        "use badacost train-detector",
    ),
    # Detectors
    command(
        "a classifier in the place of a detector",
        "detect grades.badacost pictures/a.png",
        "holds a TableClassifier, not a detector",
        "badacost predict",
        status=2,
    ),
    command(
        "a pickle as a detector",
        "detect pickled.badacost pictures/a.png",
        "it is damaged or no model file",
        "name one",
        status=2,
    ),
    command("no such picture", "detect cars.badacost b.png", "'b.png': there is no such file"),
    command(
        "text as a picture",
        "detect cars.badacost pictures/notes.png",
        "'pictures/notes.png': it is not a picture of a known format",
    ),
    command(
        "a folder without pictures",
        "detect cars.badacost nothing",
        "the folder 'nothing' has no pictures",
    ),
    command(
        "no such format of results",
        "detect cars.badacost pictures --format xml",
        "'xml' is not one of 'jsonl', 'csv', 'kitti', 'coco'",
        status=2,
    ),
    command(
        "results in a file of an unknown suffix",
        "detect cars.badacost pictures --output found.xml",
        "cannot infer the format of 'found.xml'",
        "pass format (--format), one of jsonl, csv",
        status=2,
    ),
    command(
        "a threshold in words",
        "detect cars.badacost pictures --threshold high",
        "'--threshold'",
        "number",
        status=2,
    ),
    command(
        "a file for each picture on the terminal",
        "detect cars.badacost pictures --format kitti",
        "a file for each image",
        "name a folder as path (--output)",
        status=2,
    ),
    command(
        "pictures to learn from without annotations",
        f"{TRAIN} pictures",
        "no objects to learn",
        "name annotations with boxes",
    ),
    command(
        "annotations without objects",
        f"{TRAIN} no_boxes.csv",
        "no objects to learn",
        "name annotations with boxes",
    ),
    command(
        "category mistyped",
        f"{TRAIN} boxes.csv --images pictures --category car",
        "no objects to learn of the categories ['car']",
        "the annotations have ['Car']",
    ),
    command("no annotations there", f"{TRAIN} labels", "'labels': there is no such", "check its"),
    command(
        "a table of boxes with other columns",
        f"{TRAIN} wrong_columns.csv",
        "line 1: expected a header with image, x1, y1, x2, y2",
        "'image' is not there",
    ),
    command(
        "annotations of an unknown kind",
        f"{TRAIN} notes.txt",
        "cannot infer its format",
        "pass format (--format), one of coco, fddb",
    ),
    command(
        "no such format of annotations",
        f"{TRAIN} boxes.csv --format pascal",
        "format must be one of 'coco', 'fddb'",
        "'pascal'",
    ),
    command(
        "annotations whose pictures are elsewhere",
        f"{TRAIN} boxes.csv",
        "has annotations only",
        "--images",
    ),
    command(
        "eight views of objects without angles",
        f"{TRAIN} boxes.csv --images pictures --views 8",
        "no angles to divide them into views",
        "use a single view (--single-view)",
    ),
    command(
        "an angle in radians as the heading of faces",
        f"{TRAIN} faces.csv --images pictures --yaw-limits=-45,-15,15,45",
        "no object is seen as ",
        "check the angles of the annotations (objects by view: ",
    ),
    command(
        "a column of a table mistyped",
        f"{TRAIN} faces.csv --images pictures --columns heading=yaw_est",
        "columns has 'heading'",
        "known are image, x1",
    ),
    command(
        "columns of what is no table",
        f"{TRAIN} synthetic:2 --columns yaw=yaw_est",
        "--columns are for CSV tables and COCO files",
        "leave them out",
    ),
    command(
        "costs with a header",
        f"{TRAIN} boxes.csv --images pictures --costs patients.csv",
        "'patients.csv' must have rows of numbers",
        "without a header",
    ),
    command(
        "a window larger than the pictures",
        f"{TRAIN} boxes.csv --images pictures --window 100x100",
        "no background was found",
        "larger than the window",
    ),
    command(
        "a window of one side",
        f"{TRAIN} boxes.csv --window 48",
        "'48'",
        "a height and a width, as 48x84",
    ),
    command(
        "a broken configuration",
        "train-detector boxes.csv --output d.badacost --config broken.toml",
        "broken.toml is not a TOML file",
        "Unclosed array",
    ),
    command(
        "a parameter mistyped in a configuration",
        "train-detector boxes.csv --output d.badacost --config unknown.toml",
        "unknown parameter 'windw'",
        "there are window,",
    ),
    command(
        "scenes without their number",
        f"{TRAIN} synthetic:many",
        "'synthetic:many' must have a number of scenes",
        "as synthetic:200:7",
    ),
    command(
        "a table of patients as detections",
        "evaluate patients.csv boxes.csv --images pictures",
        "'patients.csv': line 1",
        "expected the header image,x1,y1,x2,y2",
    ),
    command(
        "detections that are not there",
        "evaluate found.jsonl boxes.csv --images pictures",
        "no 'found.jsonl'",
        "name results or a detector",
    ),
    command("no such demo", "demo dettect", "No such command 'dettect'", "'detect'", status=2),
    command(
        "a folder for the picture of the demo",
        "demo detect --output pictures",
        "--output 'pictures' is a folder",
        "name a file",
    ),
]

CALLS = [
    # Prices
    call(
        "a matrix for two of three classes",
        lambda: BAdaCostClassifier([[0, 9], [1, 0]]).fit(X, Y),
        ValueError,
        "costs have shape (2, 2) where the 3 classes ['high', 'low', 'mid'] need (3, 3)",
        "give a mapping",
    ),
    call(
        "one price for each class",
        lambda: BAdaCostClassifier([9, 1, 2]).fit(X, Y),
        ValueError,
        "costs have shape (3,)",
        "costs_from_class_weights",
    ),
    call(
        "one price for each class, by name",
        lambda: BAdaCostClassifier({"high": 9, "low": 1, "mid": 2}).fit(X, Y),
        TypeError,
        "the costs of truth 'high' are of type int",
        "costs_from_class_weights",
    ),
    call(
        "class weights as scikit-learn calls them",
        lambda: BAdaCostClassifier("balanced").fit(X, Y),
        TypeError,
        "costs are of type str",
        "costs_from_class_weights takes weights",
    ),
    call(
        "the name of a file as prices",
        lambda: BAdaCostClassifier("costs.csv").fit(X, Y),
        TypeError,
        "costs are of type str",
        "read_costs takes files",
    ),
    call(
        "a negative price",
        lambda: BAdaCostClassifier([[0, 9, -4], [1, 0, 1], [2, 3, 0]]).fit(X, Y),
        ValueError,
        "the entry for truth 'high' and prediction 'mid' is -4.0",
        "costs_from_pairs takes negative",
    ),
    call(
        "a price that is not known",
        lambda: BAdaCostClassifier([[0, 9, np.nan], [1, 0, 1], [2, 3, 0]]).fit(X, Y),
        ValueError,
        "the entry for truth 'high' and prediction 'mid' is nan",
        "replace it",
    ),
    call(
        "name of a class mistyped in the prices",
        lambda: BAdaCostClassifier(
            {"high": COSTS["high"], "low": COSTS["low"], "mdi": COSTS["mid"]}
        ).fit(X, Y),
        ValueError,
        "class 'mid' is missing from the truths of costs",
        "('high', 'low', 'mdi')",
    ),
    call(
        "prices in a data frame whose rows have no labels",
        lambda: BAdaCostClassifier(pl.DataFrame(PRICES)).fit(X, Y),
        TypeError,
        "costs are a data frame whose rows have no labels",
        "use labelled_costs",
    ),
    call(
        "new prices in a data frame whose rows have no labels",
        lambda: fitted().decide(X, pl.DataFrame(PRICES)),
        TypeError,
        "costs are a data frame whose rows have no labels",
        "use labelled_costs",
    ),
    call(
        "costs of more classes than a meta-estimator has seen",
        lambda: VotingClassifier([("one", BAdaCostClassifier(COSTS))]).fit(X[:40], Y[:40] == "low"),
        ValueError,
        "costs name the 3 classes ['high', 'low', 'mid'], but the classes are numbers from 0 to 1",
        "Name the classes in its data only",
    ),
    call(
        "one mistake forgotten",
        lambda: BAdaCostClassifier({**COSTS, "low": {"high": 1}}).fit(X, Y),
        ValueError,
        "class 'mid' is missing from the costs of truth 'low'",
        "add it",
    ),
    call(
        "a class whose mistakes are all free",
        lambda: BAdaCostClassifier([[0, 9, 4], [0, 0, 0], [2, 3, 0]]).fit(X, Y),
        ValueError,
        "all mistakes on class 'low' are free",
        "raise a cost",
    ),
    call(
        "gains in the place of prices",
        lambda: BAdaCostClassifier(np.diag([9, 1, 2])).fit(X, Y),
        ValueError,
        "for truth 'high' being right costs 9",
        "lower the diagonal entry, usually to 0",
    ),
    call(
        "a price list with prediction before truth",
        lambda: costs.costs_from_prices(
            [("high", "high", 5), ("high", "low", 1)], classes=["high", "low"], default=0
        ),
        ValueError,
        "being right costs 5",
        "check that truth comes before prediction",
    ),
    call(
        "a price list with gaps",
        lambda: costs.costs_from_prices({("high", "low"): 9}, classes=GRADES),
        ValueError,
        "lack the cost of truth 'high' and prediction 'mid'",
        "add it, or set default",
    ),
    call(
        "a ratio for a class that is not there",
        lambda: costs.costs_from_ratios({"hihg": 5}, classes=GRADES),
        ValueError,
        "labels ['hihg'] in ratios are not among the 3 classes ['high', 'low', 'mid']",
        "remove or correct them",
    ),
    call(
        "costs from a confusion in which a class is missing",
        lambda: costs.costs_from_confusion([[5, 1], [0, 0]]),
        ValueError,
        "class 1 has no samples in confusion",
        "leave it out",
    ),
    call(
        "balanced weights without labels",
        lambda: costs.costs_from_class_weights("balanced", classes=GRADES),
        ValueError,
        "class_weights is 'balanced'",
        "together with y",
    ),
    call(
        "no such file of prices",
        lambda: costs.read_costs("price.csv"),
        FileNotFoundError,
        "there is no file 'price.csv'",
        "check its name",
    ),
    # Samples
    call(
        "a label that is not known",
        lambda: BAdaCostClassifier().fit(X[:3], [0, 1, np.nan]),
        ValueError,
        "y contains NaN",
        "leave out samples without a class",
    ),
    call(
        "all samples of the same class",
        lambda: BAdaCostClassifier().fit(X, ["low"] * 60),
        ValueError,
        "y must have at least 2 classes; it has 1 class only: low",
    ),
    call(
        "text as a feature",
        lambda: BAdaCostClassifier().fit(TABLE[["age", "ward"]], Y),
        ValueError,
        "X contains text, such as 'north'",
        'make text categories, for example with astype("category")',
        "use badacost.tabular.TableClassifier",
    ),
    *(
        call(
            f"two columns of one name, {type(model).__name__}",
            lambda model=model: model.fit(TABLE[["age", "age"]], Y),
            ValueError,
            "X has several columns named 'age'",
            "rename",
        )
        for model in (BAdaCostClassifier(COSTS), MinimumCostClassifier(Tree(), COSTS))
    ),
    call(
        "a categorical column mistyped",
        lambda: BAdaCostClassifier(categorical_features=["wrad"]).fit(TABLE[["age", "ward"]], Y),
        ValueError,
        "X has no column 'wrad'",
        "there are 'age', 'ward'",
    ),
    call(
        "one categorical column and no list",
        lambda: BAdaCostClassifier(categorical_features="ward").fit(TABLE[["age", "ward"]], Y),
        TypeError,
        "a list of columns",
        "got 'ward'",
    ),
    call(
        "a mask of other columns",
        lambda: BAdaCostClassifier(categorical_features=[True]).fit(X, Y),
        ValueError,
        "does not fit the 2 columns of X",
        "give a flag for each column",
    ),
    call(
        "intervals as categories",
        lambda: BAdaCostClassifier().fit(pd.DataFrame({"age": pd.cut(TABLE["age"], 3)}), Y),
        TypeError,
        "must be text, numbers or booleans",
        "convert the column to text",
    ),
    call(
        "categories for another weak learner",
        lambda: BAdaCostClassifier(estimator=Tree(), categorical_features=[0]).fit(X, Y),
        ValueError,
        "categorical_features is for the built-in tree",
        "encode categories in a pipeline",
    ),
    call(
        "other categorical columns on a warm start",
        lambda: (
            BAdaCostClassifier(n_estimators=1, warm_start=True)
            .fit(X, Y)
            .set_params(categorical_features=[0])
            .fit(X, Y)
        ),
        ValueError,
        "With warm_start=True categorical_features must stay as it was",
    ),
    call(
        "a feature that is infinite",
        lambda: BAdaCostClassifier().fit(np.where(X > 1, np.inf, X), Y),
        ValueError,
        "X contains infinity",
        "replace such values",
    ),
    call(
        "negative weights",
        lambda: BAdaCostClassifier().fit(X, Y, sample_weight=-np.ones(60)),
        ValueError,
        "sample_weight must not be negative; sample 0 has -1",
    ),
    call(
        "weights of other samples",
        lambda: BAdaCostClassifier().fit(X, Y, sample_weight=np.ones(50)),
        ValueError,
        "sample_weight must have shape (60,); got shape (50,)",
    ),
    call(
        "weights that are all zero",
        lambda: BAdaCostClassifier().fit(X, Y, sample_weight=np.zeros(60)),
        ValueError,
        "sample_weight is zero for every sample",
        "give some of them a weight",
    ),
    call(
        "one number as weights",
        lambda: BAdaCostClassifier().fit(X, Y, sample_weight=2.0),
        ValueError,
        "sample_weight must have shape (60,); got shape ()",
    ),
    call(
        "prices of samples without one for each class",
        lambda: BAdaCostClassifier().fit(X, Y, sample_cost=np.ones((60, 2))),
        ValueError,
        "sample_cost has shape (60, 2)",
        "give a row of 3 costs for each of the 60 samples",
    ),
    call(
        "prices of samples by other names",
        lambda: BAdaCostClassifier().fit(X, Y, sample_cost=pd.DataFrame({"high": np.ones(60)})),
        ValueError,
        "class 'low' is missing from the columns of sample_cost",
        "add it",
    ),
    call(
        "samples to validate on without their labels",
        lambda: BAdaCostClassifier().fit(X, Y, X_val=X),
        ValueError,
        "X_val and y_val belong together",
        "give both of them or neither",
    ),
    call(
        "all samples to validate on",
        lambda: BAdaCostClassifier(early_stopping=True, validation_fraction=6).fit(X[:6], Y[:6]),
        ValueError,
        "validation_fraction=6 leaves no training samples",
        "choose a smaller one",
    ),
    # Parameters
    call(
        "steps of length 0",
        lambda: BAdaCostClassifier(learning_rate=0).fit(X, Y),
        ValueError,
        "learning_rate must be a number greater than 0; got 0",
    ),
    call(
        "trees of depth 0",
        lambda: BAdaCostClassifier(max_depth=0).fit(X, Y),
        ValueError,
        "max_depth must be an integer at least 1 or None; got 0",
    ),
    call(
        "a negative number of rounds",
        lambda: BAdaCostClassifier(n_estimators=-1).fit(X, Y),
        ValueError,
        "n_estimators must be an integer at least 1; got -1",
    ),
    call(
        "a number of rounds that is a float",
        lambda: BAdaCostClassifier(n_estimators=1e2).fit(X, Y),
        TypeError,
        "n_estimators must be an integer at least 1; got 100.0 of type float",
    ),
    call(
        "no such decision",
        lambda: BAdaCostClassifier(decision="argmax").fit(X, Y),
        ValueError,
        "decision must be one of 'margin', 'bayes'; got 'argmax'",
    ),
    call(
        "no such criterion",
        lambda: BAdaCostClassifier(criterion="log_loss").fit(X, Y),
        ValueError,
        "criterion must be one of 'gini', 'entropy'; got 'log_loss'",
    ),
    call(
        "an algorithm for two classes on three",
        lambda: CSAdaBoostClassifier(COSTS).fit(X, Y),
        ValueError,
        "CSAdaBoostClassifier takes 2 classes, y has 3",
        "use BAdaCostClassifier",
    ),
    call(
        "a clustering as weak learner",
        lambda: BAdaCostClassifier(estimator=KMeans()).fit(X, Y),
        TypeError,
        "estimator must be a classifier",
    ),
    call(
        "folds of groups without the groups",
        lambda: CostBoostClassifier(cv=GroupKFold(3)).fit(X, Y),
        ValueError,
        "The 'groups' parameter should not be None",
        "list(GroupKFold(5).split(X, y, groups))",
    ),
    call(
        "more folds than samples of a splitter",
        lambda: CostBoostClassifier(cv=KFold(100)).fit(X, Y),
        ValueError,
        "cv makes no folds of these samples",
        "give fewer folds",
    ),
    call(
        "a fold without samples",
        lambda: CostBoostClassifier(cv=[(range(60), [])]).fit(X, Y),
        ValueError,
        "without training or test samples",
        "give fewer folds",
    ),
    call(
        "other folds on a warm start",
        lambda: (
            CostBoostClassifier(n_estimators=1, n_folds=2, warm_start=True)
            .fit(X, Y)
            .set_params(n_folds=3, n_estimators=2)
            .fit(X, Y)
        ),
        ValueError,
        "With warm_start=True n_folds and cv must stay",
        "n_folds and cv must stay",
    ),
    call(
        "symmetric trees without a limit",
        lambda: CostBoostClassifier(max_depth=None).fit(X, Y),
        ValueError,
        "max_depth must be a number for symmetric trees",
        "at most 16",
    ),
    call(
        "no regularisation at all",
        lambda: CostBoostClassifier(l2=0, min_hessian=0).fit(X, Y),
        ValueError,
        "l2 and min_hessian must not both be zero",
    ),
    call(
        "nothing left to train on",
        lambda: CostBoostClassifier(n_folds=1, validation_fraction=60).fit(X, Y),
        ValueError,
        "validation_fraction=60 leaves no training samples",
        "choose a smaller one",
    ),
    call(
        "fewer rounds after a warm start",
        lambda: (
            BAdaCostClassifier(n_estimators=3, warm_start=True)
            .fit(X, Y)
            .set_params(n_estimators=2)
            .fit(X, Y)
        ),
        ValueError,
        "n_estimators must be at least 3",
        "at least 3",
    ),
    # Costs on top of other classifiers
    call(
        "minimum expected cost without probabilities",
        lambda: MinimumCostClassifier(LinearSVC(), COSTS).fit(X, Y),
        TypeError,
        "LinearSVC has no predict_proba",
        'set calibration="sigmoid"',
    ),
    call(
        "minimum expected cost of a clustering",
        lambda: MinimumCostClassifier(KMeans(), COSTS).fit(X, Y),
        TypeError,
        "KMeans has no predict_proba",
        "give a classifier that has it",
    ),
    call(
        "no such calibration",
        lambda: MinimumCostClassifier(Tree(), COSTS, calibration="platt").fit(X, Y),
        ValueError,
        "calibration must be one of 'none', 'sigmoid', 'isotonic'",
        "'platt'",
    ),
    call(
        "too few samples of a class to calibrate with",
        lambda: MinimumCostClassifier(Tree(), COSTS, calibration="sigmoid").fit(X[:7], Y[:7]),
        ValueError,
        "class 'low' has 2 samples for 5 folds",
        "set cv to a smaller number",
    ),
    # Prices that are known at prediction
    call(
        "costs of samples in the place of a matrix",
        lambda: fitted().decide(X, np.ones((len(X), 3))),
        ValueError,
        f"costs have shape ({len(X)}, 3)",
        "sample_cost=",
    ),
    call(
        "prices of other samples",
        lambda: fitted().decide(X, sample_cost=np.ones((5, 3))),
        ValueError,
        "sample_cost has shape (5, 3)",
        f"give a row of 3 costs for each of the {len(X)} samples",
    ),
    call(
        "a negative price of asking a person",
        lambda: fitted().decide(X, abstain=-1),
        ValueError,
        "abstain is -1",
        "0 or more",
    ),
    call(
        "asking a person without a price of it",
        lambda: metrics.average_cost(Y, ["ask a person"] * len(Y), COSTS),
        ValueError,
        f"y_pred has {len(Y)} abstentions without a cost",
        "pass abstain=",
    ),
    call(
        "a scorer that asks a person about decisions of any classifier",
        lambda: metrics.cost_scorer(COSTS, abstain=1)(Tree().fit(X, Y), X, Y),
        TypeError,
        "has no decide, for abstain",
        "use MinimumCostClassifier",
    ),
    # Metrics and pictures
    call(
        "a decision that has no price",
        lambda: metrics.average_cost(["low", "mid"], ["low", "medium"], COSTS),
        ValueError,
        "have classes ['medium'] that the costs lack",
        "add them",
    ),
    call(
        "a matrix of prices for labels that do not all occur",
        lambda: metrics.average_cost(["low"], ["low"], 1 - np.eye(3)),
        ValueError,
        "cost_matrix has 3 columns but y_true and y_pred 1 classes",
        "pass labels=",
    ),
    call(
        "a picture of a model that is not fitted",
        lambda: CostConfusionDisplay.from_estimator(BAdaCostClassifier(COSTS), X, Y),
        NotFittedError,
        "BAdaCostClassifier instance is not fitted yet",
        "Call 'fit'",
    ),
    call(
        "regions of a single feature",
        lambda: DecisionRegionsDisplay.from_estimator(fitted(), X, Y, features=[0]),
        ValueError,
        "features must be two different features not in fixed; got [0]",
    ),
    call(
        "a curve over rounds of a model that has none",
        lambda: CostCurveDisplay.from_estimator(Tree().fit(X, Y), X, Y, cost_matrix=COSTS),
        TypeError,
        "CostCurveDisplay needs an estimator with staged_predict",
        "those of badacost have it",
    ),
    # Explanations
    call(
        "an explanation of a model without trees",
        lambda: explain_scores(LinearSVC().fit(X, Y), X),
        TypeError,
        "a LinearSVC has no trees of badacost",
        "give a booster with its built-in tree",
    ),
    call(
        "an explanation of a model around another one",
        lambda: explain_decision(MinimumCostClassifier(Tree(), COSTS).fit(X, Y), X[0]),
        TypeError,
        "a MinimumCostClassifier has no trees of badacost",
        "its estimator_",
    ),
    call(
        "an explanation in money without probabilities",
        lambda: explain_decision(AdaC2M1Classifier(n_estimators=2).fit(X, Y), X[0]),
        TypeError,
        "a AdaC2M1Classifier has no predict_proba",
        "use explain_scores",
    ),
    call(
        "an explanation of several decisions at once",
        lambda: explain_decision(fitted(), X),
        ValueError,
        "x must be one sample; got shape (60,",
        "give one row, X[:1]",
    ),
    call(
        "an explanation of a decision that there is not",
        lambda: explain_decision(fitted(), X[0], "nothing"),
        ValueError,
        "'nothing' is not a class of the model",
        "take one of",
    ),
    call(
        "a decision compared with itself",
        lambda: explain_decision(fitted(), X[0], Y[0], Y[0]),
        ValueError,
        "decision and against are both",
        "give another one",
    ),
    # Tables
    call(
        "name of the target mistyped",
        lambda: TableClassifier().fit(TABLE, "grad"),
        ValueError,
        "the table has no column 'grad'",
        "did you mean 'grade'?",
    ),
    call(
        "a row without a class",
        lambda: TableClassifier().fit(TABLE.assign(grade=[None, *Y[1:]]), "grade"),
        ValueError,
        "column 'grade' has no class in 1 of 60 rows",
        "leave these rows out",
    ),
    call(
        "an array in the place of a table",
        lambda: TableClassifier().fit(X, Y),
        TypeError,
        "a table must be a data frame; got ndarray",
        "use pandas.DataFrame",
    ),
    call(
        "a column of the fit missing",
        lambda: fitted_to_table().predict(TABLE.drop(columns="dose")),
        ValueError,
        "the table has no column 'dose'",
        "there are 'patient', 'age', 'ward'",
    ),
    call(
        "minimum expected cost of a booster without probabilities",
        lambda: TableClassifier(
            LpCSBClassifier(n_estimators=2), cost_matrix=COSTS, decision="bayes", drop=["patient"]
        ).fit(TABLE, "grade"),
        ValueError,
        'decision="bayes" needs probabilities, and LpCSBClassifier has none',
        'use decision="own"',
    ),
    call(
        "trees of a library that is not known",
        lambda: ImportedForestClassifier(Tree()).fit(X, Y),
        TypeError,
        "the trees of a DecisionTreeClassifier cannot be imported",
        "give an LGBMClassifier or a CatBoostClassifier",
    ),
    call(
        "a file for a classifier of another library",
        lambda: (
            MinimumCostClassifier(LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1))
            .fit(X, Y)
            .save("model.badacost")
        ),
        TypeError,
        "a file of badacost cannot hold a LGBMClassifier",
        "put it into an ImportedForestClassifier",
    ),
    call(
        "a comparison of models that pay different prices",
        lambda: fit_and_try(
            {"one": fitted_to_table(), "other": TableClassifier(drop=["patient"])}, TABLE, "grade"
        ),
        ValueError,
        "models with different costs cannot be compared",
        "give all the same",
    ),
    call(
        "no such table",
        lambda: read_table("patient.csv"),
        FileNotFoundError,
        "no file 'patient.csv'",
        "check its name",
    ),
    # Packages that are not there
    call(
        "tables without pandas",
        lambda: without("pandas", lambda: read_table("patients.csv")),
        ImportError,
        "tables need pandas",
        'pip install "badacost[tables]"',
    ),
    call(
        "displays without matplotlib",
        lambda: without(
            "matplotlib.pyplot", lambda: CostConfusionDisplay.from_predictions(Y, Y, COSTS)
        ),
        ImportError,
        "displays need matplotlib",
        'pip install "badacost[plot]"',
    ),
    call(
        "pictures without pillow",
        lambda: without("PIL", lambda: load_detector("cars.badacost").detect("pictures/a.png")),
        ImportError,
        "pillow",
        'pip install "badacost[detection]"',
    ),
    # Files of models
    call(
        "a model saved before it is fitted",
        lambda: BAdaCostClassifier().save("m.badacost"),
        NotFittedError,
        "BAdaCostClassifier instance is not fitted yet",
        "Call 'fit'",
    ),
    call(
        "a model saved in a folder that is not there",
        lambda: fitted().save("models/m.badacost"),
        FileNotFoundError,
        "its folder does not exist",
        "create it first",
    ),
    call(
        "a model with trees of scikit-learn saved",
        lambda: BAdaCostClassifier(estimator=Tree(), n_estimators=2).fit(X, Y).save("m.badacost"),
        TypeError,
        "save needs the built-in tree",
        "use joblib.dump",
    ),
    call(
        "no such model",
        lambda: badacost.load("grade.badacost"),
        FileNotFoundError,
        "there is no file 'grade.badacost'",
        "check its name",
    ),
    call(
        "text as a model",
        lambda: badacost.load("notes.txt"),
        badacost.ModelFileError,
        "'notes.txt': it is damaged or no model file",
        "name one that badacost wrote",
    ),
    call(
        "a pickle as a model",
        lambda: badacost.load("pickled.badacost"),
        badacost.ModelFileError,
        "'pickled.badacost': it is damaged or no model file",
        "name one",
    ),
    call(
        "a model of a later version",
        lambda: badacost.load("newer.badacost"),
        badacost.ModelFileError,
        "its format version is",
        "upgrade badacost",
    ),
    # Detection
    call(
        "a classifier as a detector",
        lambda: load_detector("grades.badacost"),
        badacost.ModelFileError,
        "holds a TableClassifier, not a detector",
        "badacost.load",
    ),
    call(
        "text as a picture",
        lambda: load_detector("cars.badacost").detect("notes.txt"),
        ImageError,
        "'notes.txt': it is not a picture of a known format",
    ),
    call(
        "pixels of a type without a range",
        lambda: load_detector("cars.badacost").detect(np.zeros((64, 64, 3), np.int32)),
        ImageError,
        "an image of dtype int32 has no known range",
        "convert it to uint8",
    ),
    call(
        "channels before rows",
        lambda: load_detector("cars.badacost").detect(np.zeros((3, 64, 64), np.uint8)),
        ImageError,
        "got shape (3, 64, 64)",
        "move channels to the last axis",
    ),
    call(
        "boxes as x, y, width, height",
        lambda: AnnotatedImage("a.png", boxes=[[50, 50, 20, 20]]),
        ValueError,
        "boxes must be given as x1, y1, x2, y2",
        "x1 <= x2",
    ),
    call(
        "a window of one side",
        lambda: TrainingConfig(window=48),
        ValueError,
        "window must be a height and a width; got 48",
    ),
    call(
        "one number of trees for all rounds",
        lambda: TrainingConfig(trees=100),
        ValueError,
        "trees must be 1 to 32 numbers of trees; got 100",
    ),
    call(
        "no such configuration",
        lambda: TrainingConfig.from_toml("small.toml"),
        FileNotFoundError,
        "no file 'small.toml'",
        "check its name",
    ),
    call(
        "a training on nothing",
        lambda: train_detector([], Views.around(1), TrainingConfig.small()),
        ValueError,
        "no objects to learn",
        "give images whose objects have labels",
    ),
    call(
        "annotations of an unknown kind",
        lambda: read_annotations("notes.txt"),
        AnnotationError,
        "'notes.txt': cannot infer its format",
        "pass format (--format), one of coco, fddb",
    ),
]

OF_SCIKIT_LEARN = [  # which answers them in its own words, some of them in several lines
    call(
        "a quantity as target",
        lambda: BAdaCostClassifier().fit(X, X[:, 0]),
        ValueError,
        "Unknown label type: continuous",
        "classifier, which expects discrete classes",
    ),
    call(
        "a single feature as a vector",
        lambda: BAdaCostClassifier().fit(X[:, 0], Y),
        ValueError,
        "Expected 2D array, got 1D array",
        "array.reshape(-1, 1)",
    ),
    call(
        "a single sample as a vector",
        lambda: fitted().predict(X[0]),
        ValueError,
        "Expected 2D array, got 1D array",
        "array.reshape(1, -1)",
    ),
    call(
        "labels of other samples",
        lambda: BAdaCostClassifier().fit(X, Y[:50]),
        ValueError,
        "inconsistent numbers of samples: [60, 50]",
    ),
    call(
        "prediction before the fit",
        lambda: BAdaCostClassifier().predict(X),
        NotFittedError,
        "not fitted yet",
        "Call 'fit'",
    ),
    call(
        "a feature of the fit missing",
        lambda: fitted().predict(X[:, :1]),
        ValueError,
        "X has 1 features",
        "expecting 2 features",
    ),
    call(
        "a feature of another name",
        lambda: (
            BAdaCostClassifier(n_estimators=2)
            .fit(TABLE[["age", "dose"]], Y)
            .predict(TABLE[["age", "weight"]])
        ),
        ValueError,
        "unseen at fit time:\n- weight",
        "now missing:\n- dose",
    ),
    call(
        "probabilities in the place of decisions",
        lambda: metrics.average_cost(Y, fitted().predict_proba(X), COSTS),
        ValueError,
        "should be a 1d array, got an array of shape (60, 3)",
    ),
    call(
        "a class in the place of an object",
        lambda: MinimumCostClassifier(Tree, COSTS).fit(X, Y),
        TypeError,
        "provide an instance",
        "instead of a class",
    ),
]


@pytest.mark.parametrize("mistake", COMMANDS)
def test_command(mistake: Command) -> None:
    result = CliRunner().invoke(app, shlex.split(mistake.typed))
    assert result.exit_code == mistake.status, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    check_sentence(sentence_of(result.stderr), mistake.answer)


def sentence_of(stderr: str) -> str:
    """The one line that tells what is wrong, or what the box of a usage error says."""
    lines = [line for line in stderr.splitlines() if line.startswith(("Error: ", "Failed: "))]
    if lines:
        (line,) = lines
        return line.partition(": ")[2]
    assert re.search("Try '.* --help' for help", stderr)
    inside = re.findall("^│ (.*) │$", stderr, re.MULTILINE)
    text = " ".join(line.strip() for line in inside)
    return text if text.endswith((".", "?")) else f"{text}."


@pytest.mark.parametrize("mistake", CALLS)
def test_call(mistake: Call) -> None:
    with pytest.raises(mistake.error) as caught:
        mistake.typed()
    check_sentence(str(caught.value), mistake.answer)


def check_sentence(sentence: str, words: tuple[str, ...]) -> None:
    for part in words:
        assert part in sentence
    assert len(sentence) <= LONGEST
    assert "\n" not in sentence
    assert "Errno" not in sentence
    assert sentence.endswith((".", "?"))


@pytest.mark.parametrize("mistake", OF_SCIKIT_LEARN)
def test_call_that_scikit_learn_answers(mistake: Call) -> None:
    with pytest.raises(mistake.error) as caught:
        mistake.typed()
    for part in mistake.answer:
        assert part in str(caught.value)


@pytest.mark.parametrize("table", [COMMANDS, [*CALLS, *OF_SCIKIT_LEARN]])
def test_every_mistake_is_listed_once(table: list[Any]) -> None:
    names = [row.id for row in table]
    assert len(set(names)) == len(names) >= 60


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
@settings(max_examples=30)
def test_any_name_of_a_target_is_answered_in_a_sentence(name: str) -> None:
    assume(name not in TABLE)
    result = CliRunner().invoke(app, ["costs", "patients.csv", f"--target={name}"])
    assert result.exit_code == 1
    check_sentence(sentence_of(result.stderr), ("'patients.csv' has no column",))
