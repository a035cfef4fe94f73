"""The table and the page: every number comes from the records, and losses are told."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from badacost.experiments import paper
from badacost.experiments.uci import Settings, header
from badacost.experiments.uci_report import write_report
from badacost.experiments.uci_table import UCITable, short

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


@pytest.fixture
def table() -> UCITable:
    return UCITable(json.loads(json.dumps(header(settings()))), records())


def test_means_and_deviations(table: UCITable) -> None:
    assert table.rows == ROWS
    means, deviations = table.means(), table.deviations()
    for name in SETS:
        for row, cost in zip(ROWS, COSTS[name], strict=True):
            assert means[name][row] == pytest.approx(1e4 * (cost + 0.001))
            assert deviations[name][row] == pytest.approx(1e4 * 0.002 / np.sqrt(2))
    assert table.means(largest_is_one=True)["car"]["BAdaCost"] == pytest.approx(2 * 40)


def test_ranks(table: UCITable) -> None:
    four = table.comparison(paper.ALGORITHMS)
    assert four is not None
    assert four.average_ranks == pytest.approx(
        {"AdaC2.M1": 3.0, "MultiBoost": 10 / 3, "Lp-CSB": 7 / 3, "BAdaCost": 4 / 3}
    )
    assert table.comparison(["BAdaCost", "LightGBM"]) is None


def test_distance_to_the_paper(table: UCITable) -> None:
    ours = [40, 910, 76]
    factors = [max(o / p, p / o) for o, p in zip(ours, [24, 928, 66], strict=True)]
    distance = table.distance_to_paper(largest_is_one=False)
    assert distance["BAdaCost"] == pytest.approx(np.median(factors))
    assert list(distance) == list(paper.ALGORITHMS)


def test_csv_and_json_have_the_numbers(table: UCITable) -> None:
    lines = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(lines) == 3 * 7 * 2
    cost = {(x["data_set"], x["algorithm"], x["fold"]): float(x["cost"]) for x in lines}
    assert cost["cmc", "LightGBM + minimum cost", "1"] == pytest.approx(0.072)
    plain = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert plain["mean"]["cmc"]["Lp-CSB"] == pytest.approx(810)
    assert plain["paper"]["cmc"]["Lp-CSB"] == 938
    assert plain["settings"]["seed"] == 0
    assert plain["ranks"]["paper"]["reference"] == "BAdaCost"


def test_the_page_says_where_badacost_loses(tmp_path: Path, table: UCITable) -> None:
    write_report(table.header, table.records, tmp_path)
    page = (tmp_path / "uci.md").read_text()
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
    assert json.loads((tmp_path / "uci.json").read_text())["mean"]["car"]["BAdaCost"] == 40


def test_variants_are_told_on_the_page(tmp_path: Path, table: UCITable) -> None:
    variant = settings(reading="tree", max_depth=8, contenders=CONTENDERS[:4])
    four = [r for r in table.records if r["contender"] in ("", *CONTENDERS[:4])]
    write_report(json.loads(json.dumps(header(variant))), four, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["uci-tree-depth-8-rate-0.1.json"]
    write_report(table.header, table.records, tmp_path)
    page = (tmp_path / "uci.md").read_text()
    assert page.count("| a single tree, inner cross-validation | 8, 0.1, 6000 |") == 2
    assert "Closest to the paper, by the mean of the four factors: " in page


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1234, "0.123"), (5.678, "5.68"), (99.4, "99.4"), (99.6, "100"), (1234.5, "1234")],
)
def test_three_digits(value: float, shown: str) -> None:
    assert short(value) == shown
