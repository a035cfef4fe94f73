"""Small files of tables and costs that take much memory or time to read, of any size."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

_BLOCK = 2**20


def gzip_of_lines(path: Path, n_bytes: int = 200 * 2**20) -> Path:
    """Write many short rows of two columns, compressed to a thousandth."""
    return _repeated(path, b"a,b\n", b"1,2\n", n_bytes)


def gzip_of_blanks(path: Path, n_bytes: int = 1023 * 2**20) -> Path:
    """Write a line that does not end, compressed to a thousandth."""
    return _repeated(path, b"a,b\n1,", b" ", n_bytes)


def _repeated(path: Path, head: bytes, part: bytes, n_bytes: int) -> Path:
    block = gzip.compress(part * (min(n_bytes, _BLOCK) // len(part)), mtime=0)
    with path.open("wb") as file:
        file.write(gzip.compress(head, mtime=0))
        for _ in range(max(n_bytes // _BLOCK, 1)):
            file.write(block)
    return path


def parquet_dictionary(
    path: Path, n_rows: int = 100_000, length: int = 20_000, n_groups: int = 1, kind: str = "text"
) -> Path:
    """Write a long text that many cells share: the file has it once for each group of rows.

    `kind` is "text", "category" or, for a text of its own that is not used, "unused".
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    texts = ["x" * length, "b"] if kind != "unused" else ["a", "b", "x" * length]
    indices = np.arange(n_rows, dtype=np.int32) // (n_rows // 2 + 1) % 2
    column = pa.DictionaryArray.from_arrays(indices, texts)
    pq.write_table(
        pa.table({"a": column, "b": indices}),
        path,
        compression="zstd",
        row_group_size=-(-n_rows // n_groups),
        store_schema=kind != "text",
    )
    return path


def many_digits(path: Path, n_digits: int = 50_000) -> Path:
    """Write a cell that is a number but for its last letter."""
    path.write_text(f"a;b\n{'1' * n_digits}x;1\nz;2\n")
    return path


def many_lines(path: Path, n_lines: int = 12_000_000) -> Path:
    """Write short lines, none of which has a cell of costs."""
    path.write_bytes(b"a\n" * n_lines)
    return path


def many_columns(path: Path, n_columns: int = 300_000, n_rows: int = 2) -> Path:
    """Write a table of numbers that is wider than long, with classes in the column y."""
    numbers = np.random.default_rng(0).integers(0, 100, (n_rows, n_columns)).astype(str)
    lines = [",".join([*(f"c{n}" for n in range(n_columns)), "y"])]
    lines += [",".join([*row, "ab"[number % 2]]) for number, row in enumerate(numbers.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return path


def many_classes_costs(path: Path, n_classes: int = 1200) -> Path:
    """Write the costs of many classes."""
    names = [f"class {n}" for n in range(n_classes)]
    lines = [",".join(["truth", *names])]
    for number, name in enumerate(names):
        prices = ["3"] * n_classes
        prices[number] = ""
        lines.append(",".join([name, *prices]))
    path.write_text("\n".join(lines) + "\n")
    return path


def stored_table_of_many_columns(path: Path, n_columns: int = 60_000) -> Path:
    """Write the model of a table that has many columns, every second of them categories."""
    from badacost import SAMMEClassifier
    from badacost.tabular.classifier import TableClassifier
    from badacost.tabular.columns import Column
    from badacost.tabular.encoder import TableEncoder

    samples = np.zeros((4, n_columns))
    samples[2:] = 1.0
    categories = np.arange(n_columns) % 2 == 1
    estimator = SAMMEClassifier(n_estimators=1, categorical_features=categories)
    estimator.fit(samples, [0, 0, 1, 1])
    columns = [
        Column(f"c{n}", "category", ("a", "b")) if is_category else Column(f"c{n}", "number")
        for n, is_category in enumerate(categories)
    ]
    model = TableClassifier(estimator)
    model._assemble(TableEncoder.of_columns(columns), estimator, None, "y", 4)
    model.save(path)
    return path
