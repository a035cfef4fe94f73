"""Tables: reading and encoding against pandas.read_csv, and the memory of a large file of Parquet.

Times are those of one process on the same file, the best of several runs in turn; the peak of
memory is that of a new process that reads and encodes 5 million rows. Results go to
results/tables.json.

    python benchmarks/tables.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from harness import Figure, Figures, best_times, run, scaled

from badacost.tabular import TableEncoder, read_table

HERE = Path(__file__).resolve().parent
N_ROWS_CSV = 168_000  # 15 MB
N_ROWS_PARQUET = 5_000_000
N_ROWS_AT_A_TIME = 500_000
_MEMORY = "16 GB"
ENCODE = """
import resource, sys
from badacost.tabular import TableEncoder, read_table
features = TableEncoder().fit_transform(read_table(sys.argv[1], max_memory='16 GB'))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, *features.shape)
"""


def mixed_table(n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Numbers, truths, dates and categories, some of them missing."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 1000, n_rows), "D")
    frame = pd.DataFrame(
        {
            "score": rng.normal(size=n_rows).round(5),
            "age": rng.integers(18, 99, n_rows),
            "region": rng.choice(["north", "south", "west", "east"], n_rows),
            "dose": rng.normal(50.0, 10.0, n_rows).round(2),
            "income": rng.integers(0, 10**6, n_rows),
            "seen": (pd.Timestamp("2020-01-01") + days).strftime("%Y-%m-%d"),
            "smokes": rng.random(n_rows) < 0.3,
            "street": rng.choice([f"street {number}" for number in range(200)], n_rows),
            "rate": rng.normal(size=n_rows).round(4),
            "exact": rng.normal(size=n_rows),
            "code": rng.choice(["01", "02", "XX"], n_rows),
            "grade": rng.choice(["low", "mid", "high"], n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "score"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "street"] = None
    return frame


def text(scale: float) -> Figures:
    """CSV with numbers, truths, dates and categories, read and encoded."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "mixed.csv")
        mixed_table(scaled(N_ROWS_CSV, scale)).to_csv(path, index=False)
        yield Figure("CSV of mixed types", path.stat().st_size / 1e6, "MB")
        encoder = TableEncoder().fit(read_table(path, max_memory=_MEMORY))
        ways = {
            "pandas.read_csv": lambda: pd.read_csv(path),
            "read_table and fit_transform": lambda: TableEncoder().fit_transform(
                read_table(path, max_memory=_MEMORY)
            ),
            "read_table(like=...) and transform": lambda: encoder.transform(
                read_table(path, like=encoder.columns_, max_memory=_MEMORY)
            ),
        }
        for unit, clock in (("CPU-s", time.process_time), ("s", time.perf_counter)):
            best = best_times(ways, 9, clock)
            for way, seconds in best.items():
                yield Figure(way, seconds, unit)
            pandas = best.pop("pandas.read_csv")
            for way, seconds in best.items():
                yield Figure(f"{way}, times pandas", seconds / pandas, f"{unit} ratio", at_most=3.0)


def parquet(scale: float) -> Figures:
    """Parquet of 20 columns, read and encoded in a new process."""
    n_rows = scaled(N_ROWS_PARQUET, scale)
    with TemporaryDirectory() as folder:
        path = Path(folder, "large.parquet")
        with pq.ParquetWriter(path, large_part(0, 1).schema) as writer:
            for start in range(0, n_rows, N_ROWS_AT_A_TIME):
                writer.write_table(large_part(start, min(N_ROWS_AT_A_TIME, n_rows - start)))
        yield Figure("Parquet of 20 columns", path.stat().st_size / 1e6, "MB")
        start = time.perf_counter()
        command = [sys.executable, "-c", ENCODE, str(path)]
        process = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        peak, rows, columns = map(int, process.stdout.split())
        yield Figure("rows", rows, "")
        yield Figure("columns", columns, "")
        yield Figure("peak memory, read and encoded", peak / 1e9, "GB", at_most=3.0)
        yield Figure("read and encoded, with imports", seconds, "s")


def large_part(seed: int, n_rows: int) -> pa.Table:
    """Rows of 12 columns of numbers with gaps, 3 of integers, a truth, a day and 3 of text."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    for number in range(12):
        values = rng.normal(size=n_rows)
        columns[f"x{number}"] = pa.array(values, mask=rng.random(n_rows) < 0.05)
    for number in range(3):
        columns[f"n{number}"] = pa.array(rng.integers(0, 1000, n_rows))
    columns["truth"] = pa.array(rng.random(n_rows) < 0.5)
    columns["day"] = pa.array(rng.integers(15_000, 19_000, n_rows).astype(np.int32)).cast("date32")
    for number, n_texts in enumerate((4, 50, 250)):
        texts = pa.array([f"category {text}" for text in range(n_texts)])
        columns[f"text{number}"] = texts.take(pa.array(rng.integers(0, n_texts, n_rows)))
    return pa.table(columns)


if __name__ == "__main__":
    run(
        "Speed and memory of badacost.tabular.",
        {"text": text, "parquet": parquet},
        HERE / "results" / "tables.json",
    )
