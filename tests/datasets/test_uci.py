"""Loading the UCI sets: damaged files, where they are looked for, and OpenML."""

from __future__ import annotations

import gzip
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
    """A folder with nothing in it, a toy set that `load_uci` knows, and no network."""

    def offline(**_: object) -> None:
        raise URLError("no network")

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("BADACOST_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setitem(uci.UCI_TABLES, "toy", uci.UciTable("Toys", 1, 7, 3, 2, 2))
    monkeypatch.setitem(uci._LEVELS, "toy", {1: "red green blue"})
    monkeypatch.setattr(uci, "fetch_openml", offline)
    return tmp_path


@pytest.mark.parametrize("name", ["toy", "TOY", "Toy"])
def test_names_in_any_case(world: Path, name: str) -> None:
    put(world)
    bunch = load_uci(name, folder=world)
    assert bunch.name == "toy"
    np.testing.assert_array_equal(bunch.data, DATA)
    assert bunch.target.tolist() == LABELS
    assert bunch.feature_names == ["size", "colour"]
    assert bunch.target_names.tolist() == ["Bad", "Good"]
    assert bunch.categorical.tolist() == [False, True]
    assert "archive.ics.uci.edu/dataset/1." in bunch.DESCR


@pytest.mark.parametrize("name", ["iris", "", "car.csv.gz", None, 3, ["car"]])
def test_unknown_name(name: Any) -> None:
    with pytest.raises(ValueError, match="name must be one of 'car', 'chess', 'isolet'"):
        load_uci(name)


@pytest.mark.parametrize("flag", ["download", "return_X_y"])
def test_flags_are_checked(flag: str) -> None:
    with pytest.raises(TypeError, match=f"{flag} must be True or False"):
        load_uci("car", **{flag: "yes"})


PACKED = gzip.compress(text_of(ROWS).encode())
DAMAGED = {
    "no gzip": (b"size,colour,class\n", "Not a gzipped file"),
    "truncated": (PACKED[:-9], "ended"),
    "bad checksum": (PACKED[:-8] + bytes(8), "CRC check failed"),
    "broken stream": (PACKED[:10] + b"\xff" * 40, "invalid"),
    "not utf-8": (gzip.compress(b"\xff\xfe"), "utf-8"),
    "bomb": (gzip.compress(bytes(5000)), "more than 4096 bytes"),
    "empty": ("", "header"),
    "no rows": (text_of([]), "columns"),
    "class not last": (text_of(ROWS, "class,size,colour"), "header .* 'colour', not 'class'"),
    "no header": (text_of(ROWS[1:], ROWS[0]), "'Good', not 'class'"),
    "short row": (text_of([ROWS[0], "2,Bad", ROWS[2]]), "3 columns"),
    "long row": (text_of([*ROWS[:2], "5,5,green,Good"]), "3 columns"),
    "blank row": (text_of([ROWS[0], "", ROWS[2]]), "3 columns"),
    "missing row": (text_of(ROWS[:2]), r"\(2, 2, 2\), and should be \(3, 2, 2\)"),
    "row too many": (text_of([*ROWS, ROWS[0]]), r"\(4, 2, 2\), and should be \(3, 2, 2\)"),
    "word": (text_of([ROWS[0], "two,blue,Bad", ROWS[2]]), "'two' to float64 at row 1, column 1"),
    "no number": (text_of([ROWS[0], ",blue,Bad", ROWS[2]]), "'' to float64 at row 1"),
    "comment": (text_of([ROWS[0], "2#,blue,Bad", ROWS[2]]), "'2#' to float64 at row 1"),
    "nan": (text_of([*ROWS[:2], "nan,green,Good"]), "not finite"),
    "overflow": (text_of(["1e999,red,Good", *ROWS[1:]]), "not finite"),
    "unknown level": (text_of([ROWS[0], "2,mauve,Bad", ROWS[2]]), "mauve"),
    "one class": (text_of([ROWS[0], "2,blue,Good", ROWS[2]]), r"\(3, 2, 1\), and should be"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files(world: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    content, message = DAMAGED[case]
    monkeypatch.setattr(uci, "_MAX_BYTES", 4096)
    path = put(world, content)
    with pytest.raises(ValueError, match=message) as raised:
        load_uci("toy", folder=world)
    assert str(path) in str(raised.value)
    assert "BADACOST_DATA" in str(raised.value)


def test_line_ends_of_windows(world: Path) -> None:
    put(world, text_of(ROWS).replace("\n", "\r\n"))
    X, y = load_uci("toy", folder=world, return_X_y=True)
    np.testing.assert_array_equal(X, DATA)
    assert y.tolist() == LABELS


hostile = st.lists(
    st.one_of(
        st.sampled_from(["size,car,class", *ROWS, "", ",", ",,", "nan,red,Good", "1e400,2,Good"]),
        st.text(alphabet=st.characters(codec="utf-8"), max_size=12),
        st.lists(
            st.text("0123456789.-+eEx_ \"'#\r\v\u2028", max_size=4), min_size=10, max_size=10
        ).map(",".join),
    ),
    max_size=5,
)


@given(lines=hostile)
@example(lines=["\r" + ",1" * 9, "2,2"])
@example(lines=["1_0" + ",1" * 9])
@example(lines=['"1"' + ",1" * 9])
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    header = ",".join([*"abcdefghi", "class"])
    try:
        _, X, y = uci._parsed(text_of(lines, header), "cmc")
    except ValueError:
        return
    assert X.shape == (len(y), 9)


@given(values=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=9, max_size=9), min_size=1))
def test_numbers_are_read_exactly(values: list[list[float]]) -> None:
    header = ",".join([*"abcdefghi", "class"])
    rows = [",".join([*map(repr, row), "1"]) for row in values]
    np.testing.assert_array_equal(uci._parsed(text_of(rows, header), "cmc")[1], values)


# Where files are looked for.


def marked(size: str) -> str:
    """A toy file that can be told from others by its first value."""
    return text_of([f"{size},red,Good", *ROWS[1:]])


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
    with pytest.raises(ValueError, match=r"\(2, 2, 2\)"):
        load_uci("toy")


# OpenML.


def sent(**changes: object) -> Bunch:
    """What `fetch_openml` returns for the toy set, in an order of levels of its own."""
    return Bunch(
        **{
            "data": np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 1.0]]),
            "target": np.array(["Good", "Bad", "Good"], dtype=object),
            "feature_names": ["Size", "Color"],
            "categories": {"Color": ["blue", "green", "red"], "Size": ["7", "1.5"]},
            **changes,
        }
    )


def serve(monkeypatch: pytest.MonkeyPatch, answer: Bunch | Exception) -> list[dict[str, Any]]:
    """Put a server in place of OpenML; return the list that its calls go to."""
    calls: list[dict[str, Any]] = []

    def fetch(**options: Any) -> Bunch:
        calls.append(options)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(uci, "fetch_openml", fetch)
    return calls


def test_levels_of_openml_are_put_into_order(world: Path, monkeypatch) -> None:
    calls = serve(monkeypatch, sent())
    bunch = load_uci("toy")
    np.testing.assert_array_equal(bunch.data, [[1.5, 0.0], [7.0, 2.0], [1.5, 1.0]])
    assert bunch.target.tolist() == LABELS
    assert bunch.feature_names == ["Size", "Color"]
    assert calls[0]["data_id"] == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": np.zeros((2, 2)), "target": np.array(["a", "b"])}, r"\(2, 2, 2\)"),
        ({"target": np.array(["a"] * 3)}, r"\(3, 2, 1\)"),
        ({"data": np.array([[np.nan, 0.0]] * 3), "categories": {}}, "not finite"),
        ({"categories": {"Color": ["blue", "green", "mauve"]}}, "mauve"),
    ],
)
def test_another_set_is_refused(world: Path, monkeypatch, changes, message) -> None:
    serve(monkeypatch, sent(**changes))
    with pytest.raises(ValueError, match=message) as raised:
        load_uci("toy")
    assert "OpenML's data set 7" in str(raised.value)


@pytest.mark.parametrize("error", [URLError("down"), ValueError("bad"), EOFError("cut")])
def test_failed_download_names_the_remedy(world: Path, monkeypatch, error: Exception) -> None:
    monkeypatch.setenv("BADACOST_DATA", str(world / "data"))
    serve(monkeypatch, error)
    with pytest.raises(FileNotFoundError, match="go online, or put") as raised:
        load_uci("toy")
    for place in PLACES:
        assert str(world / place) in str(raised.value)
    assert raised.value.__cause__ is error


def test_download_can_be_forbidden(world: Path, monkeypatch) -> None:
    calls = serve(monkeypatch, sent())
    with pytest.raises(FileNotFoundError, match="download is False: set it to True, or put"):
        load_uci("toy", download=False)
    assert calls == []


@pytest.mark.parametrize("download", [True, False])
def test_waveform_is_not_on_openml(world: Path, monkeypatch, download: bool) -> None:
    calls = serve(monkeypatch, sent())
    with pytest.raises(FileNotFoundError, match="OpenML has no copy"):
        load_uci("waveform", download=download)
    assert calls == []


def test_car_from_openml_is_car_from_a_file(world: Path, monkeypatch) -> None:
    first = load_uci("car", folder=write_tables(world))
    levels = {f"x{k}": text.split() for k, text in uci._LEVELS["car"].items()}
    turned = [first.data[:, k] for k in range(6)]
    turned[0] = 3 - turned[0]
    categories = levels | {"x0": levels["x0"][::-1]}
    serve(
        monkeypatch,
        Bunch(
            data=np.column_stack(turned),
            target=first.target.astype(object),
            feature_names=first.feature_names,
            categories=categories,
        ),
    )
    fetched = load_uci("car")
    np.testing.assert_array_equal(fetched.data, first.data)
    np.testing.assert_array_equal(fetched.target, first.target)
