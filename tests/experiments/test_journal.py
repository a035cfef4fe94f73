"""The results file survives being killed, and refuses to mix experiments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.journal import Journal, JournalError

HEADER = {"settings": {"seed": 0, "sets": ("a", "b")}, "versions": {"numpy": "2"}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "results.jsonl"


def filled(path: Path, n: int = 3) -> Journal:
    journal = Journal(path, HEADER)
    for i in range(n):
        journal.append({"fold": i, "cost": i / 3})
    return journal


def test_what_is_appended_comes_back(path: Path) -> None:
    journal = filled(path)
    assert Journal(path, HEADER).records == journal.records
    assert len(path.read_text().splitlines()) == 4


@given(st.integers(0, 400))
def test_a_file_cut_anywhere_loses_the_end_only(tmp_path_factory, length: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "results.jsonl"
    records = filled(path).records
    content = path.read_bytes()[:length]
    path.write_bytes(content)
    journal = Journal(path, HEADER)
    assert journal.records == records[: max(content.count(b"\n") - 1, 0)]
    journal.append({"fold": 9})
    assert Journal(path, HEADER).records == journal.records


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"seed": 1, "sets": ("a", "b")}}, "other settings"),
        ({"versions": {"numpy": "3"}}, "other versions"),
    ],
)
def test_other_settings_are_refused(path: Path, change: dict, message: str) -> None:
    filled(path)
    with pytest.raises(JournalError, match=message):
        Journal(path, HEADER | change)


@pytest.mark.parametrize("line", ["not json", "[1, 2]", "3", "[" * 100_000, "\x00"])
def test_a_damaged_line_is_named(path: Path, line: str) -> None:
    filled(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    with pytest.raises(JournalError, match=r"line 3 of .*is not a result: remove the line"):
        Journal(path, HEADER)


def test_a_number_that_is_none_is_not_recorded(path: Path) -> None:
    journal = filled(path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        journal.append({"cost": float("nan")})
    assert [json.loads(line) for line in path.read_text().splitlines()[1:]] == journal.records
