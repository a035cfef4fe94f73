"""Plain examples pass, cases are always the same, and what is found is kept and made small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import badacost
from badacost import tabular
from badacost.costs import read_costs
from campaigns import fuzz
from campaigns.__main__ import main
from campaigns.cases import Case, FileKind
from campaigns.mutations import BYTES, applied
from campaigns.plain import ESTIMATORS
from campaigns.table_cases import CostFiles

QUICK = (
    "table", "parquet", "costs", "config", "rows", "journal", "frame", "image", "annotations",
    "results", "partial", "cascade", "matlab",
)  # fmt: skip


class Fragile(FileKind):
    """A file whose first byte must not change."""

    name = "fragile"
    mutations = BYTES

    def build(self) -> Mapping[str, Any]:
        return {"plain": {"f.txt": b"0123456789"}}

    def use(self, path: Path, base: str) -> None:
        if path.read_bytes()[:1] != b"0":
            raise KeyError("the first byte")


@pytest.fixture
def fragile(monkeypatch) -> Fragile:
    kind = Fragile()
    monkeypatch.setattr(fuzz, "KINDS", {"fragile": kind})
    return kind


@pytest.mark.parametrize("name", QUICK)
def test_plain_examples_are_read(name, tmp_path) -> None:
    kind = fuzz.KINDS[name]
    for number, base in enumerate(kind.bases):
        (tmp_path / str(number)).mkdir()
        kind.run(Case(base, []), tmp_path / str(number))


@pytest.mark.parametrize("name", ["table", "costs", "annotations"])
def test_a_case_is_always_the_same(name) -> None:
    kind = fuzz.KINDS[name]
    cases = [kind.case(3, number) for number in range(20)]
    assert cases == [kind.case(3, number) for number in range(20)]
    assert cases != [kind.case(4, number) for number in range(20)]
    for case in cases:
        assert json.loads(json.dumps(case.edits)) == case.edits


def test_findings_are_kept_and_made_small(fragile, tmp_path, capsys) -> None:
    assert main(["fuzz", "--minutes", "0.005", "--folder", str(tmp_path)]) == 1
    report = capsys.readouterr().out
    assert "KeyError: 'the first byte'" in report
    kept = sorted((tmp_path / "findings").iterdir())
    for folder in kept:
        again, line, base, edits, _ = (folder / "finding.txt").read_text().split("\n")
        assert again.startswith("python -m campaigns fuzz --case fragile:0:")
        assert "KeyError" in line
        assert base == "plain"
        needed = json.loads(edits)
        assert needed
        for place in range(len(needed)):  # without any of them, nothing happens
            rest = needed[:place] + needed[place + 1 :]
            assert reduce(applied, rest, b"0123456789")[:1] == b"0"
        assert (folder / "f.txt").read_bytes()[:1] != b"0"
    case = again.split()[-1]
    assert main(["fuzz", "--case", case]) == 1
    assert "KeyError" in capsys.readouterr().out


def test_mended_findings_do_not_count(fragile, tmp_path, monkeypatch, capsys) -> None:
    def fail(path: Path, base: str) -> None:
        raise KeyError

    monkeypatch.setattr(fuzz, "_MAX_BATCH", 1)
    monkeypatch.setattr(fragile, "use", fail)
    arguments = ["fuzz", "--minutes", "1e-5", "--folder", str(tmp_path)]
    assert main(arguments) == 1
    again = capsys.readouterr().out.split()[-1]
    monkeypatch.setattr(fragile, "use", lambda path, base: None)
    for _ in range(2):
        assert main(arguments) == 0
        report = capsys.readouterr().out
        assert f"mended: python -m campaigns fuzz --case {again}\n" in report
        assert " 0 findings, " in report
    monkeypatch.setattr(fragile, "use", fail)
    assert main(arguments) == 1


def test_what_a_busy_machine_does_is_tried_again_alone(fragile, tmp_path, monkeypatch) -> None:
    def fail(path: Path, base: str) -> None:
        raise MemoryError

    def fail_among_others(path: Path, base: str) -> None:
        if path.parent.name.isdigit():
            raise MemoryError

    monkeypatch.setattr(fuzz, "_MAX_BATCH", 1)
    for use, status in ((fail, 1), (fail_among_others, 0)):
        monkeypatch.setattr(fragile, "use", use)
        folder = str(tmp_path / use.__name__)
        assert main(["fuzz", "--minutes", "1e-5", "--folder", folder]) == status


def test_kinds_without_a_case_are_told(fragile, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(fragile, "use", lambda path, base: None)
    monkeypatch.setattr(fuzz, "KINDS", {"fragile": fragile, "other": fragile})
    arguments = ["fuzz", "--minutes", "0.001", "--folder", str(tmp_path)]
    assert main(arguments) == 3
    assert "too short for other" in capsys.readouterr().out
    assert main([*arguments, "--kinds", "fragile"]) == 0


def test_a_campaign_is_continued(fragile, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(fuzz, "_MAX_BATCH", 3)
    for _ in range(2):
        main(["fuzz", "--minutes", "1e-6", "--folder", str(tmp_path)])
    header, *records = map(json.loads, (tmp_path / "fuzz.jsonl").read_text().splitlines())
    assert header["seed"] == 0
    tried = [record for record in records if "first" in record]
    assert [record["first"] for record in tried] == [0, tried[0]["n"]]
    assert main(["fuzz", "--seed", "1", "--folder", str(tmp_path)]) == 2
    assert "was made with other seed" in capsys.readouterr().err


@pytest.mark.parametrize("case", ["fragile", "other:0:1", "fragile:0:x", "fragile:0:1:2"])
def test_cases_that_are_none(fragile, case, capsys) -> None:
    assert main(["fuzz", "--case", case]) == 2
    assert "a case is KIND:SEED:NUMBER" in capsys.readouterr().err


def test_the_smallest_case() -> None:
    edits = [[name, 0] for name in "abcdefgh"]

    def needs_two(case: Case) -> bool:
        return {"c", "f"} <= {edit[0] for edit in case.edits}

    assert fuzz.smaller(Case("base", edits), needs_two).edits == [["c", 0], ["f", 0]]


def test_every_estimator_is_there() -> None:
    tried = {*ESTIMATORS, *fuzz.KINDS["frame"].bases}
    public = [*badacost.__all__, *badacost.family.__all__, *tabular.__all__]
    assert {name for name in public if name.endswith(("Classifier", "Encoder"))} == tried


def test_costs_come_back(tmp_path) -> None:
    for number, files in enumerate(CostFiles().bases.values()):
        for name, content in files.items():
            path = tmp_path / f"{number}-{name}"
            path.write_bytes(content)
            assert read_costs(path)["low"] == {"low": 0.0, "middle": 1.0, "high": 2.0}


@pytest.mark.parametrize("case", ["parquet:0:2823"])
def test_earlier_findings_are_mended(case) -> None:
    """Metadata of a column on which pyarrow ended the process."""
    assert fuzz.run_case(case) == 0
