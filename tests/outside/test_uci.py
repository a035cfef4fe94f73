"""The UCI sets of the paper, and the numbers that it prints about them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from badacost.datasets import UCI_NAMES, load_uci
from experiments import paper
from experiments.uci import PAPER_SETS, load_paper_set

FIRST = {
    "car": ([3, 3, 0, 0, 0, 0], "unacc"),
    "chess": ([0, 1, 1, 3, 2, 2], "draw"),
    "cmc": ([24, 2, 3, 3, 1, 1, 2, 3, 0], "1"),
    "cnae9": ([0] * 333 + [1], "1"),
    "isolet": ([-0.4394, -0.0930, 0.1718, 0.4620], "1"),
    "letter": ([2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8], "T"),
    "optdigits": ([0, 1, 6, 15, 12, 1, 0, 0, 0, 7, 16], "0"),
    "pendigits": ([47, 100, 27, 81, 57, 37, 26, 0, 0, 23, 56, 53, 100, 90, 40, 98], "8"),
    "satimage": ([92, 115, 120, 94, 84, 102, 106, 79], "3"),
    "segmentation": ([140.0, 125.0, 9, 0.0, 0.0, 0.2777779, 0.06296301], "BRICKFACE"),
    "shuttle": ([50, 21, 77, 0, 28, 0, 27, 48, 22], "2"),
    "waveform": ([-1.23, -1.56, -1.75, -0.28, 0.60], "2"),
}


CATEGORICAL = {"car": 6, "chess": 3, "cmc": 7}
LEVELS = {  # of columns, in their natural order
    "car": {
        0: "low med high vhigh",
        1: "low med high vhigh",
        2: "2 3 4 5more",
        3: "2 4 more",
        4: "small med big",
        5: "low med high",
    },
    "chess": {0: "a b c d e f g h", 4: "a b c d e f g h"},
}


@pytest.mark.parametrize("name", UCI_NAMES)
def test_real_set(shared: Path, name: str) -> None:
    folder = shared / "data" / "uci"
    bunch = load_uci(name, folder=folder)
    X, y = load_paper_set(name, folder)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    paper = (shared / "spec" / "paper.tex").read_text()
    row = re.search(rf"^{PAPER_SETS[name].name} +& (\d+) +& (\d+) +& (\d+) ", paper, re.MULTILINE)
    assert row is not None
    variables, labels, instances = map(int, row.groups())
    if name == "satimage":
        labels -= 1  # the paper counts the label without instances
    assert bunch.data.shape == (instances, variables) == (*bunch.target.shape, variables)
    assert bunch.data.dtype == np.float64
    assert bunch.data.flags.c_contiguous
    assert np.isfinite(bunch.data).all()
    assert bunch.target.dtype.kind == "U"
    assert bunch.target_names.tolist() == sorted(set(bunch.target.tolist()))
    assert len(bunch.target_names) == labels
    assert len(bunch.feature_names) == len(bunch.categorical) == variables
    assert bunch.categorical.dtype == bool
    assert bunch.categorical.sum() == CATEGORICAL.get(name, 0)
    assert "CC BY 4.0" in bunch.DESCR
    values, label = FIRST[name]
    np.testing.assert_array_equal(bunch.data[0, : len(values)], values)
    assert bunch.target[0] == label
    for column, levels in LEVELS.get(name, {}).items():
        tokens = np.loadtxt(
            folder / f"{name}.csv.gz", str, delimiter=",", skiprows=1, usecols=column
        )
        codes = [levels.split().index(token) for token in tokens]
        np.testing.assert_array_equal(codes, bunch.data[:, column])


def test_names_are_in_the_order_of_table_1(shared: Path) -> None:
    paper = (shared / "spec" / "paper.tex").read_text()
    table = paper[: paper.index(r"\label{Table:result_UCI}")]
    printed = re.findall(r"^   ([A-Z][\w.]+) +&  \$", table, re.MULTILINE)[-12:]
    short = {"CarEval": "car", "Cont.Meth.": "cmc", "Segmenta.": "segmentation"}
    assert tuple(short.get(name, name.casefold()) for name in printed) == UCI_NAMES


def test_table_is_the_one_printed_in_the_paper(shared):
    text = (shared / "spec" / "paper.tex").read_text().split("{Table:result_UCI}")[1]
    cell = re.compile(r"([\d.]+)\}?\\: \(\\pm ([\d.]+)\)")
    rows = [cell.findall(line) for line in text.split("begin{tabular}")[-1].splitlines()]
    printed = np.array([row for row in rows if len(row) == 4], dtype=float)
    np.testing.assert_array_equal(paper.MEANS, printed[..., 0])
