"""The table and the page: every number comes from the records, and losses are told."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import paper
from experiments.pages import short
from experiments.table1 import Settings, header
from experiments.table1_report import compare, numbers, write_numbers, write_page

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"

CONTENDERS = ("AdaC2.M1", "MultiBoost", "Lp-CSB", "BAdaCost", "LightGBM")
ROWS = ["AdaC2.M1", "MultiBoost", "Lp-CSB", "BAdaCost", "BAdaCost, bayes"]
ROWS += ["LightGBM", "LightGBM + minimum cost"]
SETS = ("car", "cmc", "letter")
# Costs of fold 0 by data set, in the order of the rows; fold 1 costs 0.002 more.
COSTS = {
    "car": [0.004, 0.005, 0.006, 0.003, 0.0035, 0.001, 0.002],
    "cmc": [0.10, 0.11, 0.08, 0.09, 0.085, 0.12, 0.07],
    "letter": [0.05, 0.03, 0.02, 0.0066, 0.006, 0.004, 0.0],
}


def records() -> list[dict]:
    found = []
    for name in SETS:
        for fold in (0, 1):
            key = {"data_set": name, "fold": fold, "seconds": 2.0}
            costs = [[0.0, 0.25], [0.5, 0.0]]
            found.append({**key, "contender": "", "costs": costs})
            by_row = {
                row: {"cost": cost + 0.002 * fold, "error": 0.5}
                for row, cost in zip(ROWS, COSTS[name], strict=True)
            }
            for contender in CONTENDERS:
                rows = {row: by_row[row] for row in ROWS if row.startswith(contender)}
                found.append({**key, "contender": contender, "rows": rows})
    return found[::-1]  # they come in any order


def settings(**changes) -> Settings:
    return Settings(**{"data_sets": SETS, "contenders": CONTENDERS, "n_folds": 2, **changes})


HEADER = json.loads(json.dumps(header(settings())))


@pytest.fixture
def found() -> dict[str, Any]:
    return numbers(HEADER, records())


def test_means_and_deviations(found) -> None:
    assert list(found["mean"]) == list(SETS)
    for name in SETS:
        assert list(found["mean"][name]) == ROWS
        for row, cost in zip(ROWS, COSTS[name], strict=True):
            assert found["mean"][name][row] == pytest.approx(1e4 * (cost + 0.001))
            deviation = found["standard_deviation"][name][row]
            assert deviation == pytest.approx(1e4 * 0.002 / np.sqrt(2))
            assert found["folds"][name][row] == pytest.approx([1e4 * cost, 1e4 * (cost + 0.002)])
            assert found["error"][name][row] == 0.5
    assert found["seconds"]["cost matrices"] == 12.0
    assert found["paper"]["cmc"]["Lp-CSB"] == 938
    assert found["settings"]["seed"] == 0
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_ranks(found) -> None:
    four = found["ranks"]["paper"]
    assert four["reference"] == "BAdaCost"
    assert four["average_ranks"] == pytest.approx(
        {"AdaC2.M1": 3.0, "MultiBoost": 10 / 3, "Lp-CSB": 7 / 3, "BAdaCost": 4 / 3}
    )
    means = pd.DataFrame.from_dict(found["mean"], orient="index")
    assert compare(means, ["BAdaCost", "LightGBM"]) is None
    assert compare(means.drop(columns=["BAdaCost", "BAdaCost, bayes"])) is None
    assert compare(means[:1]) is None
    assert compare(means.drop(columns="BAdaCost")).reference == "BAdaCost, bayes"


@pytest.mark.parametrize(("scale", "factor"), [("lambda 1", 1), ("largest cost 1", 2)])
def test_distance_to_the_paper(found, scale, factor) -> None:
    """The largest entry of the cost matrices is a half."""
    pairs = zip([40, 910, 76], [24, 928, 66], strict=True)
    factors = [max(factor * ours / told, told / ours / factor) for ours, told in pairs]
    distance = found["distance_to_paper"][scale]
    assert distance["BAdaCost"] == pytest.approx(np.median(factors))
    assert list(distance) == list(paper.ALGORITHMS)


def test_files_have_the_numbers(found, tmp_path: Path) -> None:
    assert write_numbers(HEADER, records(), tmp_path) == found
    assert json.loads((tmp_path / "uci.json").read_text()) == found
    with (tmp_path / "uci.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3 * 7 * 2
    cost = {(x["data_set"], x["algorithm"], x["fold"]): float(x["cost"]) for x in lines}
    assert cost["cmc", "LightGBM + minimum cost", "1"] == pytest.approx(0.072)


def test_the_page_says_where_badacost_loses(tmp_path: Path) -> None:
    write_numbers(HEADER, records(), tmp_path)
    page = write_page(tmp_path).read_text()
    four, everybody = page.split("Among the paper's four, BAdaCost does not win on:")[1].split(
        "Among all rows, BAdaCost with the paper's rule does not win on:"
    )
    assert "* Cont.Meth.: Lp-CSB (810, BAdaCost 910: 12 % more)" in four
    assert "CarEval" not in four
    assert "* CarEval: LightGBM (20, BAdaCost 40: 100 % more)" in everybody
    assert "* Letter: LightGBM + minimum cost (10, BAdaCost 76: 660 % more)" in everybody
    assert "| CarEval | 50 (26) | 60 (232) | 70 (38) | **40 (24)** |" in page
    for picture in ("uci-ranks.png", "uci-ranks-bayes.png", "uci-ranks-all.png"):
        assert f"]({picture})" in page
        assert (tmp_path / picture).stat().st_size > 5000


def test_variants_are_told_on_the_page(tmp_path: Path) -> None:
    variant = settings(reading="tree", max_depth=8, contenders=CONTENDERS[:4])
    four = [r for r in records() if r["contender"] in ("", *CONTENDERS[:4])]
    write_numbers(json.loads(json.dumps(header(variant))), four, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["uci-tree-depth-8-rate-0.1.json"]
    write_numbers(HEADER, records(), tmp_path)
    page = write_page(tmp_path).read_text()
    assert page.count("| a single tree, inner cross-validation | 8, 0.1, 6000 |") == 2
    assert "Closest to the paper, by the mean of the four factors: " in page


def test_a_page_needs_numbers(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no uci.json: run the program without --page"):
        write_page(tmp_path)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1234, "0.123"), (5.678, "5.68"), (99.4, "99.4"), (99.6, "100"), (1234.5, "1234")],
)
def test_three_digits(value: float, shown: str) -> None:
    assert short(value) == shown


def test_the_committed_page_is_that_of_the_committed_numbers(tmp_path: Path) -> None:
    for path in RESULTS.glob("uci*.json"):
        shutil.copy(path, tmp_path)
    assert write_page(tmp_path).read_text() == (RESULTS / "uci.md").read_text()
