"""The table of hostile files, with small ones."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from campaigns import hostile_images, hostile_models, hostile_tables, limits
from campaigns.__main__ import main


@pytest.fixture
def small(monkeypatch):
    """Small cases: one that is refused, some that are read, two that fail."""
    load = limits.CASES["deep"].call
    cases = {
        "deep": limits.HostileCase("deep", partial(hostile_models.deep_json, depth=5000), load),
        "costs": limits.HostileCase(
            "costs",
            partial(hostile_tables.many_classes_costs, n_classes=3),
            limits.CASES["costs"].call,
            ".csv",
        ),
        "wide row": limits.HostileCase(
            "wide row",
            partial(hostile_tables.stored_table_of_many_columns, n_columns=8),
            limits.CASES["wide row"].call,
        ),
        "results": limits.HostileCase(
            "results",
            partial(hostile_images.many_results, n=3),
            limits.CASES["results"].call,
            ".jsonl",
        ),
        "memory": limits.HostileCase("memory", None, lambda path: np.empty(2**50)),
        "failing": limits.HostileCase("a | b", None, lambda path: {}["key"]),
    }
    monkeypatch.setattr(limits, "CASES", cases)


def test_the_table(small, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", float("inf"))  # compiling, and what tests keep here
    monkeypatch.setattr(limits, "MAX_MEGABYTES", float("inf"))
    assert main(["limits", "--cases", "deep,costs", "--output", str(tmp_path / "t.json")]) == 0
    deep, costs = json.loads((tmp_path / "t.json").read_text())
    assert (deep["status"], deep["error"]) == ("error", "ModelFileError")
    assert (costs["status"], costs["message"]) == ("value", "read")
    assert main(["limits", "--output", str(tmp_path / "t.md")]) == 1
    lines = (tmp_path / "t.md").read_text().splitlines()
    assert len(lines) == 2 + len(limits.CASES)
    assert lines[4].endswith("| predicts 1 |")
    assert lines[5].endswith("| read |")
    assert "| > 5000 | MemoryError: Unable to allocate" in lines[6]
    assert lines[-1].endswith("| KeyError: 'key' |")
    assert "> 5000 MB  MemoryError" in capsys.readouterr().out


def test_one_fit_may_take_longer() -> None:
    row = {"status": "error", "seconds": 20.0, "megabytes": 300.0}
    assert [limits.is_over(row | {"case": name}) for name in ("deep", "fit columns")] == [
        True,
        False,
    ]
    assert limits.is_over(row | {"case": "fit columns", "megabytes": 1300.0})
    assert set(limits.LONGER) <= set(limits.CASES)


def test_what_cannot_be_measured(small, tmp_path, capsys) -> None:
    assert main(["limits", "--cases", "deep,x"]) == 2
    assert "there is no case 'x': choose among deep, costs" in capsys.readouterr().err
    assert main(["limits", "--source", str(tmp_path)]) == 2
    assert "holds no badacost: name the folder src" in capsys.readouterr().err
