"""Synthetic tables with the columns, class counts and column means of two UCI sets."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path

import numpy as np

from badacost.datasets.uci import _LEVELS
from experiments.uci import PAPER_SETS


def write_tables(folder: Path) -> Path:
    """Write ``car.csv.gz`` and ``cmc.csv.gz``, which `load_paper_set` takes for the real ones."""
    rng = np.random.default_rng(0)
    names = [text.split() for text in _LEVELS["car"].values()]
    levels = np.array(list(product(*map(range, map(len, names)))))
    words = list(product(*names))
    _write(folder, "car", words, levels @ [-1, -1, 0, 2, 1, 2] + rng.normal(size=len(words)))
    cmc = PAPER_SETS["cmc"]
    n_samples = sum(cmc.counts.values())
    values = rng.integers([0, 1, 1, 0, 0, 0, 1, 1, 0], [1, 5, 5, 9, 2, 2, 5, 5, 2], (n_samples, 9))
    others = values.mean(axis=0) @ np.arange(1, 10)
    ages = rng.normal(scale=8.0, size=n_samples)
    ages += cmc.fingerprint - others - ages.mean()
    rows = [[f"{age:.6f}", *map(str, row[1:])] for age, row in zip(ages, values, strict=True)]
    wish = ages / 8.0 - values[:, 3] / 2 + values[:, 1]
    _write(folder, "cmc", rows, wish + rng.normal(scale=1.5, size=n_samples))
    return folder


def _write(folder: Path, name: str, rows: list, utility: np.ndarray) -> None:
    """Write rows whose labels follow a utility, in the numbers that the set has of each."""
    counts = PAPER_SETS[name].counts
    labels = np.empty(len(rows), dtype=object)
    labels[np.argsort(utility)] = np.repeat(list(counts), list(counts.values()))
    lines = [",".join([*(f"x{i}" for i in range(len(rows[0]))), "class"])]
    lines += [",".join([*row, label]) for row, label in zip(rows, labels, strict=True)]
    data = ("\n".join(lines) + "\n").encode()
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(data, mtime=0))
