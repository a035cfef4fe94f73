"""Loading the UCI sets: damaged files, where they are looked for, and OpenML."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.utils import Bunch

from badacost.datasets import load_uci, uci
from tests.uci_tables import write_tables

TOY = uci._Source(
    name="ToySet",
    title="Toys",
    page=1,
    openml=7,
    features=("size", "colour"),
    categories={"colour": ("red", "green", "blue")},
    counts={"Bad": 1, "Good": 2},
    fingerprint=5.0,
    note="Made up.",
)
HEADER = "size,colour,class"
ROWS = ["1.5,red,Good", "2,blue,Bad", "5.5,green,Good"]
DATA = [[1.5, 0.0], [2.0, 2.0], [5.5, 1.0]]
LABELS = ["Good", "Bad", "Good"]


def text_of(rows: list[str], header: str = HEADER) -> str:
    return "\n".join([header, *rows]) + "\n"


def put(folder: Path, content: str | bytes = text_of(ROWS), name: str = "toy") -> Path:
    """Write the file of a set; text is compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(content.encode()) if isinstance(content, str) else content)
    return path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing in it but the toy set's description, and no network."""

    def offline(**_: object) -> None:
        raise URLError("no network")

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("BADACOST_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setitem(uci._SOURCES, "toy", TOY)
    monkeypatch.setattr(uci, "fetch_openml", offline)
    return tmp_path


# Names and flags.


@pytest.mark.parametrize("name", ["toy", "ToySet", "TOYSET", "Toy"])
def test_names_in_any_case(world: Path, name: str) -> None:
    put(world)
    bunch = load_uci(name, folder=world)
    assert bunch.name == "ToySet"
    np.testing.assert_array_equal(bunch.data, DATA)
    assert bunch.target.tolist() == LABELS
    assert bunch.feature_names == ["size", "colour"]
    assert bunch.target_names.tolist() == ["Bad", "Good"]
    assert bunch.categorical.tolist() == [False, True]
    assert bunch.DESCR.startswith("ToySet: Toys, with 2 variables, 2 labels and 3 instances.")


@pytest.mark.parametrize("name", ["iris", "", "car.csv.gz", None, 3, ["car"]])
def test_unknown_name(name: Any) -> None:
    with pytest.raises(ValueError, match="name must be one of 'car', 'chess', 'isolet'"):
        load_uci(name)


@pytest.mark.parametrize("flag", ["download", "return_X_y"])
def test_flags_are_checked(flag: str) -> None:
    with pytest.raises(TypeError, match=f"{flag} must be True or False"):
        load_uci("car", **{flag: "yes"})


# Damaged and hostile files.

DAMAGED = {
    "no gzip": (b"size,colour,class\n", "is not a complete gzip file .Not a gzipped file"),
    "truncated": (gzip.compress(text_of(ROWS).encode())[:-9], "is not a complete gzip file"),
    "bad checksum": (
        gzip.compress(text_of(ROWS).encode())[:-8] + bytes(8),
        "is not a complete gzip file .CRC check failed",
    ),
    "broken stream": (
        gzip.compress(text_of(ROWS).encode())[:10] + b"\xff" * 40,
        "is not a complete gzip file",
    ),
    "not utf-8": (gzip.compress(b"\xff\xfe"), "is not text in UTF-8"),
    "bomb": (gzip.compress(bytes(5000)), "unpacks to more than 4096 bytes"),
    "empty": ("", "the header has 1 columns instead of 3, size to colour and class"),
    "no rows": (text_of([]), "found 0 instances; the paper has 2 variables, 2 labels and 3 "),
    "wrong header": (
        text_of(ROWS, "size,color,class"),
        "column 2 of the header is 'color' instead of 'colour'",
    ),
    "class not last": (
        text_of(ROWS, "class,size,colour"),
        "column 1 of the header is 'class' instead of 'size'",
    ),
    "no header": (text_of(ROWS[1:], ROWS[0]), "column 1 of the header is '1.5' instead of 'size'"),
    "short row": (
        text_of([ROWS[0], "2,Bad", ROWS[2]]),
        "line 3: found 2 columns instead of 3",
    ),
    "long row": (text_of([*ROWS[:2], "5,5,green,Good"]), "line 4: found 4 columns instead of 3"),
    "blank row": (text_of([ROWS[0], "", ROWS[2]]), "line 3: found 1 columns instead of 3"),
    "missing row": (text_of(ROWS[:2]), "found 2 instances; the paper has 2 variables, 2 labels"),
    "row too many": (text_of([*ROWS, ROWS[0]]), "found 4 instances"),
    "word": (
        text_of([ROWS[0], "two,blue,Bad", ROWS[2]]),
        "line 3, column size: 'two' is not a finite number",
    ),
    "no number": (
        text_of([ROWS[0], ",blue,Bad", ROWS[2]]),
        "line 3, column size: '' is not a finite number",
    ),
    "comment": (
        text_of([ROWS[0], "2#,blue,Bad", ROWS[2]]),
        "line 3, column size: '2#' is not a finite number",
    ),
    "nan": (
        text_of([*ROWS[:2], "nan,green,Good"]),
        "line 4, column size: 'nan' is not a finite number",
    ),
    "overflow": (
        text_of(["1e999,red,Good", *ROWS[1:]]),
        "line 2, column size: '1e999' is not a finite number",
    ),
    "unknown level": (
        text_of([ROWS[0], "2,mauve,Bad", ROWS[2]]),
        "line 3, column colour: 'mauve' is not one of the levels red, green, blue",
    ),
    "level in another case": (
        text_of(["1.5,Red,Good", *ROWS[1:]]),
        "line 2, column colour: 'Red' is not one of the levels",
    ),
    "wrong counts": (
        text_of([ROWS[0], "2,blue,Good", ROWS[2]]),
        "is not the paper's ToySet: found 1 labels, with 0 instances of 'Bad' instead of 1; "
        "the paper has 2 variables, 2 labels and 3 instances. Made up.",
    ),
    "unknown class": (
        text_of([ROWS[0], "2,blue,Awful", ROWS[2]]),
        "found 2 labels, with 1 instances of 'Awful' instead of 0",
    ),
    "other values": (
        text_of(["1.6,red,Good", *ROWS[1:]]),
        r"column means, weighted 1, 2, ..., add to 5\.0333\d* instead of 5 ",
    ),
    "huge values": (
        text_of(["1e308,red,Good", "1e308,blue,Bad", "1e308,green,Good"]),
        "add to inf instead of 5 ",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files(world: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    content, message = DAMAGED[case]
    monkeypatch.setattr(uci, "_MAX_BYTES", 4096)
    path = put(world, content)
    with pytest.raises(ValueError, match=message) as raised:
        load_uci("toy", folder=world)
    assert str(path) in str(raised.value)


def test_swapped_columns_are_refused(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replace(TOY, categories={}, fingerprint=5.0)
    monkeypatch.setitem(uci._SOURCES, "toy", plain)
    right, swapped = (
        ["1.5,0,Good", "2,2,Bad", "5.5,1,Good"],
        ["0,1.5,Good", "2,2,Bad", "1,5.5,Good"],
    )
    put(world, text_of(right))
    np.testing.assert_array_equal(load_uci("toy", folder=world).data, DATA)
    put(world, text_of(swapped))
    with pytest.raises(ValueError, match="columns in another order"):
        load_uci("toy", folder=world)


def test_nothing_is_a_comment() -> None:
    plain = replace(TOY, categories={})
    with pytest.raises(ValueError, match="line 3, column colour: '2#9' is not a finite number"):
        uci._parse(text_of(["1.5,0,Good", "2,2#9,Bad", "5.5,1,Good"]), plain, "a file")


def test_line_ends_of_windows(world: Path) -> None:
    put(world, text_of(ROWS).replace("\n", "\r\n"))
    X, y = load_uci("toy", folder=world, return_X_y=True)
    np.testing.assert_array_equal(X, DATA)
    assert y.tolist() == LABELS


hostile = st.lists(
    st.one_of(
        st.sampled_from([HEADER, *ROWS, "", ",", ",,", "nan,red,Good", "1e400,red,Good"]),
        st.text(alphabet=st.characters(codec="utf-8"), max_size=12),
        st.lists(
            st.text("0123456789.-+eEx_ \"'#\r\v\u2028", max_size=4), min_size=3, max_size=3
        ).map(",".join),
    ),
    max_size=5,
)


@given(lines=hostile)
@example(lines=["\r,red,Good", "2,blue,Bad", "3,red,Good"])
@example(lines=["1_0,red,Good", "2,blue,Bad", "3,red,Good"])
@example(lines=['"1",red,Good', "2,blue,Bad", "3,red,Good"])
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    message, X, y = "", np.empty(0), np.empty(0)
    try:
        X, y = uci._parse(text_of(lines), TOY, "a file")
    except ValueError as error:
        message = str(error)
    if message:
        assert message.startswith("a file")
    else:
        assert X.shape == (3, 2)
        assert sorted(y) == ["Bad", "Good", "Good"]


@given(
    sizes=st.lists(st.floats(0, 1e6), min_size=3, max_size=3),
    colours=st.lists(st.sampled_from(["red", "green", "blue"]), min_size=3, max_size=3),
)
def test_numbers_are_read_exactly(sizes: list[float], colours: list[str]) -> None:
    codes = [("red", "green", "blue").index(colour) for colour in colours]
    source = replace(TOY, fingerprint=float(np.mean(sizes)) + 2 * float(np.mean(codes)))
    rows = [",".join(row) for row in zip(map(repr, sizes), colours, LABELS, strict=True)]
    X, y = uci._parse(text_of(rows), source, "a file")
    np.testing.assert_array_equal(X, np.column_stack([sizes, codes]))
    assert y.tolist() == LABELS


# Where files are looked for.


def marked(size: str) -> str:
    """A toy file that can be told from others by its first value, the checks still passing."""
    return text_of([f"{size},red,Good", *ROWS[1:]]).replace("5.5", str(7 - float(size)))


PLACES = ["data", "data/uci", "home/badacost/uci"]


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_search_order(world: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    monkeypatch.setenv("BADACOST_DATA", str(world / "data"))
    for number in range(place, len(PLACES)):  # in this place and in all later ones
        put(world / PLACES[number], marked(f"{number + 1}"))
    assert load_uci("toy").data[0, 0] == place + 1


def test_variable_that_is_empty_or_unset_is_passed_over(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world / "here", marked("1"))  # Path("") would be this folder
    put(world / "home/badacost/uci", marked("2"))
    assert load_uci("toy").data[0, 0] == 2
    monkeypatch.setenv("BADACOST_DATA", "")
    assert load_uci("toy").data[0, 0] == 2


def test_home_folder_is_expanded(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(world))
    monkeypatch.setenv("USERPROFILE", str(world))
    put(world / "mine")
    assert load_uci("toy", folder="~/mine").target.tolist() == LABELS
    monkeypatch.setenv("BADACOST_DATA", "~/mine")
    assert load_uci("toy").target.tolist() == LABELS


def test_folder_is_the_only_place(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADACOST_DATA", str(world))
    put(world)
    with pytest.raises(FileNotFoundError, match="leave out folder") as raised:
        load_uci("toy", folder=world / "none")
    assert str(world / "none" / "toy.csv.gz") in str(raised.value)


def test_folder_with_the_name_of_the_file_is_not_the_file(world: Path) -> None:
    (world / "toy.csv.gz").mkdir()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_uci("toy", folder=world)


def test_damaged_file_is_an_error_and_not_passed_over(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BADACOST_DATA", str(world))
    put(world, text_of(ROWS[:2]))
    put(world / "home/badacost/uci")
    with pytest.raises(ValueError, match="found 2 instances"):
        load_uci("toy")


# OpenML.


def sent(**changes: object) -> Bunch:
    """What `fetch_openml` returns for the toy set, in spellings of its own."""
    return Bunch(
        **{
            "data": np.array([[1.5, 2.0], [2.0, 0.0], [5.5, 1.0]]),
            "target": np.array(["good", "BAD", "good"], dtype=object),
            "feature_names": ["Size", "Color"],
            "categories": {"Color": ["blue", "green", "red"]},
            **changes,
        }
    )


@pytest.fixture
def openml(world: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Put a server in place of OpenML; return the list that its calls go to."""

    def serve(answer: Bunch | BaseException) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def fetch(**options: Any) -> Bunch:
            calls.append(options)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(uci, "fetch_openml", fetch)
        return calls

    return serve


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_download_is_kept_in_the_cache(world: Path, openml: Any) -> None:
    calls = openml(sent())
    first = load_uci("toy")
    np.testing.assert_array_equal(first.data, DATA)
    assert first.target.tolist() == LABELS
    assert calls == [{"data_id": 7, "as_frame": False, "parser": "liac-arff", "cache": False}]
    assert left_in(world / "home") == ["toy.csv.gz"]
    cached = world / "home" / "badacost" / "uci" / "toy.csv.gz"
    assert gzip.decompress(cached.read_bytes()).decode() == text_of(ROWS)

    again = load_uci("toy", download=False)
    assert len(calls) == 1
    np.testing.assert_array_equal(again.data, first.data)
    np.testing.assert_array_equal(again.target, first.target)


def test_labels_that_openml_has_as_numbers(world: Path, openml: Any, monkeypatch: Any) -> None:
    numbered = replace(TOY, counts={"1": 2, "7": 1})
    monkeypatch.setitem(uci._SOURCES, "toy", numbered)
    openml(sent(target=np.array([1.0, 7.0, 1.0])))
    assert load_uci("toy").target.tolist() == ["1", "7", "1"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": np.ones((3, 3)), "feature_names": ["a", "b", "c"]},
            "OpenML's data set 7 is not the paper's ToySet: found 3 variables; the paper has 2 ",
        ),
        ({"target": None}, "OpenML's data set 7 has no single class column"),
        ({"target": np.ones((3, 2))}, "has no single class column"),
        ({"target": np.array(["good"] * 3, dtype=object)}, "found 1 labels, with 0 instances"),
        ({"data": np.array([[-1.0, 2.0], [2.0, 0.0], [5.5, 1.0]])}, "(?s)column means.*instead of"),
        ({"data": np.array([[np.nan, 2.0], [2.0, 0.0], [5.5, 1.0]])}, "line 2, column size: 'nan'"),
        ({"categories": {}}, "column colour: '2' is not one of the levels"),
        (
            {"data": np.ones((2, 2)), "target": np.array(["good"] * 2, dtype=object)},
            "found 2 instances",
        ),
    ],
)
def test_another_set_is_refused_and_not_kept(
    world: Path, openml: Any, changes: dict[str, Any], message: str
) -> None:
    openml(sent(**changes))
    with pytest.raises(ValueError, match=message) as raised:
        load_uci("toy")
    assert "put toy.csv.gz into a folder and set BADACOST_DATA" in str(raised.value)
    assert left_in(world) == []


@pytest.mark.parametrize(
    "error",
    [
        URLError("unreachable"),
        TimeoutError("slow"),
        ValueError("Dataset with data_id 7 not found."),
        EOFError("cut"),
    ],
)
def test_failed_download_says_where_it_looked(
    world: Path, openml: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setenv("BADACOST_DATA", str(world / "data"))
    openml(error)
    with pytest.raises(FileNotFoundError, match=r"go online, or put toy\.csv\.gz") as raised:
        load_uci("toy")
    for place in PLACES:
        assert place in str(raised.value).replace(os.sep, "/")
    assert str(error) in str(raised.value)
    assert raised.value.__cause__ is error
    assert left_in(world) == []


def test_interrupted_write_leaves_no_file(
    world: Path, openml: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    openml(sent())
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_uci("toy")
    assert left_in(world) == []


def test_download_can_be_forbidden(world: Path, openml: Any) -> None:
    calls = openml(sent())
    with pytest.raises(FileNotFoundError, match="download is False: set it to True, or put"):
        load_uci("toy", download=False)
    assert calls == []


@pytest.mark.parametrize("download", [True, False])
def test_waveform_is_not_on_openml(world: Path, openml: Any, download: bool) -> None:
    calls = openml(sent())
    with pytest.raises(FileNotFoundError, match=r"OpenML has no copy: .* 40 variables"):
        load_uci("waveform", download=download)
    assert calls == []


def test_set_with_categories_survives_the_way_through_openml(world: Path, openml: Any) -> None:
    folder = write_tables(world)
    first = load_uci("car", folder=folder)
    levels = uci._SOURCES["car"].categories
    openml(
        Bunch(
            data=first.data,
            target=first.target.astype(object),
            feature_names=first.feature_names,
            categories={name: list(level) for name, level in levels.items()},
        )
    )
    fetched = load_uci("CarEvaluation")
    np.testing.assert_array_equal(fetched.data, first.data)
    np.testing.assert_array_equal(fetched.target, first.target)
    original = gzip.decompress((folder / "car.csv.gz").read_bytes())
    cached = world / "home" / "badacost" / "uci" / "car.csv.gz"
    assert gzip.decompress(cached.read_bytes()) == original
