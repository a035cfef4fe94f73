"""The paper's UCI sets are told from others by their class counts and values."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from badacost.datasets import UCI_NAMES
from badacost.datasets.uci import UCI_TABLES
from experiments.uci import PAPER_SETS, load_paper_set


def test_sizes_are_those_of_the_package() -> None:
    assert (*PAPER_SETS,) == UCI_NAMES
    for name, known in PAPER_SETS.items():
        table = UCI_TABLES[name]
        assert (sum(known.counts.values()), len(known.counts)) == (table.n_rows, table.n_classes)


def changed(folder: Path, change) -> Path:
    text = gzip.decompress((folder / "cmc.csv.gz").read_bytes()).decode()
    header, *rows = text.splitlines()
    rows = [change(row.split(",")) for row in rows]
    text = "\n".join([header, *(",".join(row) for row in rows)])
    (folder / "cmc.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: [row[1], row[0], *row[2:]], "column means, .* another order"),
        (lambda row: [str(float(row[0]) + 1), *row[1:]], "column means"),
        (lambda row: [*row[:-1], {"1": "2", "2": "1", "3": "3"}[row[-1]]], "classes have"),
    ],
    ids=["columns", "values", "classes"],
)
def test_other_data_are_refused(tmp_path: Path, uci_folder: Path, change, message) -> None:
    (tmp_path / "cmc.csv.gz").write_bytes((uci_folder / "cmc.csv.gz").read_bytes())
    assert load_paper_set("cmc", tmp_path)[0].shape == (1473, 9)
    with pytest.raises(ValueError, match=f"paper's ContraMethod: {message}"):
        load_paper_set("cmc", changed(tmp_path, change))
