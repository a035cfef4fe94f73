"""Files of cost matrices: what is written is read, and hostile files get one sentence."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from badacost import BAdaCostClassifier
from badacost.costs import as_cost_matrix, labelled_costs, read_costs, write_costs
from badacost.metrics import average_cost
from campaigns.hostile_tables import many_classes_costs

CLASSES = ["cat", "dog", "fox"]
COSTS = np.array([[0.0, 1.0, 7.0], [2.0, 0.0, 3.0], [0.5, 4e-7, 0.0]])
PLAIN = "truth,cat,dog,fox\ncat,0,1,7\ndog,2,0,3\nfox,.5,4e-7,0\n"


@pytest.fixture
def file(tmp_path):
    """Return a function that writes text or bytes to a file and returns its path."""

    def write(content):
        path = tmp_path / "costs.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";").replace(".5", "0,5"),
        PLAIN.replace(",", "\t").replace(".5", ",5"),
        PLAIN.replace(",", ";").replace("truth", "truth, prediction"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace("\n", "\n\n,,,\n"),
        PLAIN.replace("\n", ",,\n"),
        PLAIN.replace(",", " , "),
        PLAIN.replace("truth", '"C[truth, prediction]; in €"'),
        PLAIN.replace("truth", ""),
        PLAIN.replace("cat", '"cat"').replace(",1,", ',"1",'),
        "\n\n" + PLAIN,
        "\ufeff" + PLAIN,
        PLAIN.encode("utf-16"),
        "x,fox,cat,dog\ndog,3,2,\ncat,7,,1\nfox,,.5,4e-7",
    ],
    ids=repr,
)
def test_accepted_files(file, content):
    costs = read_costs(file(content))
    assert_array_equal(as_cost_matrix(costs, CLASSES), COSTS)
    assert set(read_costs(file(content), classes=CLASSES)) == set(CLASSES)


def test_price_of_being_right_is_kept(file):
    costs = read_costs(file("x,a,b\na,1,3\nb,9,2\n"))
    assert costs == {"a": {"a": 1, "b": 3}, "b": {"a": 9, "b": 2}}


@pytest.mark.parametrize("classes", [[0, 1], np.array([1, 0]), [0.0, 1.0], ["0", "1"]], ids=repr)
def test_labels_are_those_of_the_classes(file, classes):
    path = file("x,1,0\n0,3,\n1,,5\n")
    costs = read_costs(path, classes=classes)
    labels = np.array(classes).tolist()
    assert [float(label) for label in costs] == [0, 1]  # the order of the rows
    assert [type(label) for label in costs] == [type(label) for label in labels]
    assert costs[labels[0]][labels[1]] == (3 if float(labels[0]) == 0 else 5)
    assert_array_equal(as_cost_matrix(read_costs(path), labels), as_cost_matrix(costs, labels))


def test_estimators_take_the_text_of_integer_classes(file):
    X, y = [[0], [0], [0], [1]], np.array([0, 0, 1, 1])
    path = file("truth,0,1\n0,,1\n1,50,\n")
    model = BAdaCostClassifier(read_costs(path), n_estimators=2, max_depth=1).fit(X, y)
    assert_array_equal(model.cost_matrix_, [[0, 1], [50, 0]])
    assert average_cost(y, model.predict(X), read_costs(path, classes=[0, 1])) == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file has 0 rows with text"),
        ("x,a,b\na,,1\n", "the file has 2 rows"),
        (
            "x,a,b\na,,\nb,1,\n",
            "cost of truth 'a' and prediction 'b' in line 2 is '': give every mistake a cost",
        ),
        (
            "x,a,b\na,,one\nb,1,\n",
            "cost of truth 'a' and prediction 'b' in line 2 is 'one': give every mistake a cost",
        ),
        ("x,a,b\na,,nan\nb,1,\n", "in line 2 is 'nan': give every mistake a cost"),
        ("x,a,b\na,,1_000\nb,1,\n", "is '1_000': give every mistake a cost, and write a number"),
        (
            "x;a;b\na;;1,000.5\nb;1;\n",
            "is '1,000.5': give every mistake a cost, and write a number with",
        ),
        ("x;a;b\na;;1,5\nb;2.5;\n", "is '1,5': give every mistake a cost, and write a number with"),
        (
            'x,a,b\na,,"1,000"\nb,1,\n',
            "is '1,000': give every mistake a cost, and write a number with",
        ),
        (
            "x,a,b\na,,1\n\nb,-1,\n",
            "truth 'b' and prediction 'a' is -1.0: replace it by a number from 0",
        ),
        ("x,a,b\na,,1e999\nb,1,\n", "is inf: replace it by a number from 0 to 1e+300"),
        ("x,a,b\na,,1\na,1,\n", "label 'a' is repeated in the first column: keep"),
        ("x,a,a\na,,1\nb,1,\n", "label 'a' is repeated in the first row: keep"),
        (
            "x,a,b\na,,1\nc,1,\n",
            "labels ['b'] in the first row are not among the 2 classes ['a', 'c']",
        ),
        ("x,a,b\na,,1\nb,1,\nc,1,1\n", "class 'c' is missing from the first row: add it"),
        ("x,a,b\na,,1\n,1,\n", "a truth or prediction has no name: give"),
        ("x,,b\na,,1\nb,1,\n", "a truth or prediction has no name: give"),
        ("x,a,b\na,0\nb,1,\n", "line 2 has 2 cells where the first row has 3"),
        ("x,a,b\na,0,1,5\nb,1,0\n", "line 2 has 4 cells where the first row has 3"),
        ("x a b\na 0 1\nb 1 0\n", "class 'a 0 1' is missing from the first row"),
        ('x,a,b\na,0,"1\nb,1,0\n', "is not CSV (unexpected end of data): check its quotes"),
        (f"x,a,b\na,0,{'1' * 200_000}\nb,1,0\n", "line 2 is not CSV (field larger"),
        (b"x,a,\xe9\na,0,1\n\xe9,1,0\n", "not text in UTF-8: save it as CSV UTF-8"),
        (b"\xff\xfex", "not text in UTF-8"),
        ("x,a,b\na,0,0\nb,1,0\n", "all mistakes on class 'a' are free"),
        ("x,a,b\na,3,1\nb,1,0\n", "for truth 'a' being right costs 3"),
        (f"x,a,b\na,0,{'z' * 90}\nb,1,0\n", f"is '{'z' * 39}: give"),
        (f"x,a,b\na,0,{'1' * 100_000}x\nb,1,0\n", f"is '{'1' * 39}: give"),
    ],
)
def test_hostile_files(file, content, message):
    path = file(content)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_costs(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["cat", "dog"], "labels ['fox'] in the first column are not among the 2 classes"),
        ([*CLASSES, "owl"], "class 'owl' is missing from the first column: add it"),
        ([0, 1, 2], "labels ['cat', 'dog', 'fox'] in the first column are not among"),
    ],
)
def test_files_of_other_classes(file, classes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_costs(file(PLAIN), classes=classes)


def test_two_names_of_one_class(file):
    with pytest.raises(ValueError, match="label 1 is repeated in the first column"):
        read_costs(file("x,1,1.0\n1,,2\n1.0,3,\n"), classes=[1, 2])


def test_large_and_missing_files(tmp_path):
    path = many_classes_costs(tmp_path / "costs.csv", 30)
    assert len(read_costs(path, max_memory="1 MB")) == 30
    for limit, needed in (
        ("100 kB", "218.32 kB"),
        ("10 kB", "18.37 kB"),
    ):  # its cells, its characters
        with pytest.raises(ValueError, match=rf"costs.csv: it would need {needed}"):
            read_costs(path, max_memory=limit)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_costs(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_costs(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(alphabet='ab01,;\t"\n\r.-', max_size=60))
def test_any_file_is_read_or_refused_in_one_line(file, content):
    path = file(content)
    message = ""
    try:
        costs = read_costs(path)
        as_cost_matrix(costs, list(costs))
    except ValueError as error:
        message = str(error)
    assert "\n" not in message


labels = st.lists(
    st.text(min_size=1, max_size=8).filter(lambda text: text == text.strip()),
    min_size=2,
    max_size=4,
    unique=True,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labels, st.data())
def test_what_is_written_is_read(tmp_path, labels, data):
    numbers = st.lists(st.floats(1e-300, 1e300), min_size=len(labels), max_size=len(labels))
    matrix = np.array([data.draw(numbers) for _ in labels])
    np.fill_diagonal(matrix, 0.0)
    path = tmp_path / "costs.csv"
    write_costs(matrix, path, classes=labels)
    assert read_costs(path) == labelled_costs(matrix, labels)
    assert list(read_costs(path)) == labels


@pytest.mark.parametrize(
    "costs",
    [labelled_costs(COSTS, CLASSES), pd.DataFrame(COSTS, index=CLASSES, columns=CLASSES)],
    ids=["mapping", "frame"],
)
def test_labels_of_costs_are_written(tmp_path, costs):
    write_costs(costs, tmp_path / "costs.csv")
    assert read_costs(str(tmp_path / "costs.csv")) == labelled_costs(COSTS, CLASSES)


def test_diagonal_is_written(tmp_path):
    write_costs([[1, 3], [9, 2]], tmp_path / "costs.csv", classes=[0, 1])
    assert (tmp_path / "costs.csv").read_text() == "truth \\ prediction,0,1\n0,1,3\n1,9,2\n"


@pytest.mark.parametrize(
    ("costs", "classes", "message"),
    [
        (COSTS, None, "costs do not name their classes: give classes"),
        (None, None, "costs do not name their classes"),
        (COSTS[:2, :2], [" a", "b"], "label ' a' cannot be kept in a CSV file"),
        (COSTS[:2, :2], ["", "b"], "label '' cannot be kept"),
        (COSTS[:2, :2], ["\ud800", "b"], "cannot be kept"),
        (COSTS[:2, :2], [1, "1"], "label '1' is repeated"),
        (-COSTS, CLASSES, "is -1.0: replace it by a number from 0"),
    ],
)
def test_what_cannot_be_written(tmp_path, costs, classes, message):
    with pytest.raises(ValueError, match=message):
        write_costs(costs, tmp_path / "costs.csv", classes=classes)
    assert not (tmp_path / "costs.csv").exists()


def test_labels_are_no_formulae(tmp_path) -> None:
    costs = {"=cmd|calc": {"@b": 1, "-1": 2}, "@b": {"=cmd|calc": 3, "-1": 1},
             "-1": {"=cmd|calc": 5, "@b": 1}}  # fmt: skip
    write_costs(costs, tmp_path / "costs.csv")
    text = (tmp_path / "costs.csv").read_text()
    assert "'=cmd|calc" in text
    assert ",=" not in text
    assert "\n=" not in text
    again = read_costs(tmp_path / "costs.csv")
    assert list(again) == list(costs)
    assert again["@b"]["=cmd|calc"] == 3
    assert read_costs(tmp_path / "costs.csv", classes=["-1", "=cmd|calc", "@b"]) == again


@pytest.mark.parametrize(
    "labels",
    [
        ["=1+1", "'=1+1", "''=1+1", "1+1"],
        ["'", "''", "'tis", "''tis"],
        ["-3", "'-3", "+3", "'+3", "-x", "'-x"],
        ["@", "'@", "''@"],
    ],
    ids=str,
)
def test_formulae_and_apostrophes_do_not_collide(tmp_path, labels) -> None:
    """Each text is written in a way of its own, and is read as it was."""
    costs = labelled_costs(np.arange(1.0, len(labels) ** 2 + 1).reshape(len(labels), -1)
                           * (1 - np.eye(len(labels))), labels)  # fmt: skip
    write_costs(costs, tmp_path / "costs.csv")
    assert read_costs(tmp_path / "costs.csv") == costs
    cells = (tmp_path / "costs.csv").read_text().splitlines()[0].split(",")[1:]
    assert not any(cell.startswith(("=", "@", "+x", "-x")) for cell in cells)
