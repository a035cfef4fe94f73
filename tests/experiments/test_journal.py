"""The results file survives being killed, and refuses to mix experiments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost import set_max_memory
from experiments.journal import Journal, JournalError, forget, read_records
from tests.file_size_limit import file_size_limit

HEADER = {"settings": {"seed": 0, "sets": ("a", "b")}, "versions": {"numpy": "2"}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "results.jsonl"


def filled(path: Path, n: int = 3) -> list[dict]:
    with Journal(path, HEADER) as journal:
        for i in range(n):
            journal.append({"fold": i, "cost": i / 3})
    return journal.records


def test_what_is_appended_comes_back(path: Path) -> None:
    records = filled(path)
    assert read_records(path, HEADER) == records
    assert len(path.read_text().splitlines()) == 4
    assert list(path.parent.iterdir()) == [path]
    forget(path)
    assert read_records(path, HEADER) == []
    assert not list(path.parent.iterdir())
    forget(path)


@given(st.integers(0, 400))
def test_a_file_cut_anywhere_loses_the_end_only(tmp_path_factory, length: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "results.jsonl"
    records = filled(path)
    content = path.read_bytes()[:length]
    path.write_bytes(content)
    with Journal(path, HEADER) as journal:
        assert journal.records == records[: max(content.count(b"\n") - 1, 0)]
        journal.append({"fold": 9})
    assert read_records(path, HEADER) == journal.records


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


def test_one_process_at_a_time(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        journal.append({"fold": 1})
        for other in (lambda: Journal(path, HEADER), lambda: forget(path)):
            with pytest.raises(BlockingIOError, match=r"another process is writing .*jsonl': wait"):
                other()
    with pytest.raises(JournalError), Journal(path, {}):
        pass
    assert read_records(path, HEADER) == [{"fold": 1}]  # a refused journal is not locked


def test_a_disk_that_is_full_for_a_while(path: Path) -> None:
    filled(path)
    message = r"cannot write .*: the file-size limit is reached"
    with Journal(path, HEADER) as journal:
        records = list(journal.records)
        limit = path.stat().st_size + 5
        with file_size_limit(limit), pytest.raises(OSError, match=message):
            journal.append({"fold": 8})
        journal.append({"fold": 9})
    assert read_records(path, HEADER) == [*records, {"fold": 9}]


def test_a_file_that_would_take_too_much(path: Path) -> None:
    filled(path)
    set_max_memory("100 B")
    try:
        with pytest.raises(JournalError, match=r"cannot read the results .* limit 100 bytes"):
            Journal(path, HEADER)
    finally:
        set_max_memory(None)


@pytest.mark.parametrize("line", ["not json", "[1, 2]", "3", "[" * 100_000, "\x00"])
def test_a_damaged_line_is_named(path: Path, line: str) -> None:
    filled(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    with pytest.raises(JournalError, match=r"line 3 of .*is not a result: remove the line"):
        Journal(path, HEADER)


def test_a_number_that_is_none_is_not_recorded(path: Path) -> None:
    filled(path)
    with (
        Journal(path, HEADER) as journal,
        pytest.raises(ValueError, match="not JSON compliant"),
    ):
        journal.append({"cost": float("nan")})
    assert [json.loads(line) for line in path.read_text().splitlines()[1:]] == journal.records
