"""Synthetic tables with the columns, class counts and column means of two UCI sets."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path

import numpy as np

from badacost.datasets import uci


def write_tables(folder: Path) -> Path:
    """Write ``car.csv.gz`` and ``cmc.csv.gz``, which `load_uci` takes for the real ones."""
    rng = np.random.default_rng(0)
    car = uci._SOURCES["car"]
    levels = np.array(list(product(*map(range, map(len, car.categories.values())))))
    words = list(product(*car.categories.values()))
    _write(folder, "car", words, levels @ [-1, -1, 0, 2, 1, 2] + rng.normal(size=len(words)))
    cmc = uci._SOURCES["cmc"]
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
    source = uci._SOURCES[name]
    labels = np.empty(len(rows), dtype=object)
    labels[np.argsort(utility)] = np.repeat(list(source.counts), list(source.counts.values()))
    lines = [",".join([*source.features, "class"])]
    lines += [",".join([*row, label]) for row, label in zip(rows, labels, strict=True)]
    data = ("\n".join(lines) + "\n").encode()
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(data, mtime=0))
