"""Tables: text, compressed text and Parquet; files of costs; configurations; journals."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from numpy.random import Generator

from badacost.batches import ParquetBatches
from badacost.cli.train_detector import _cost_rows
from badacost.costs import explain_costs, read_costs, write_costs
from badacost.detection import TrainingConfig
from badacost.tabular import TableClassifier, read_table
from campaigns.cases import Case, FileKind, Kind
from campaigns.child import Broken
from campaigns.mutations import BYTES, IN_GZIP, JSON_LINES, TEXT, Edit, Mutation, applied
from campaigns.plain import COSTS, frame, new_estimator
from experiments.journal import Journal

N_ROWS = 12
_TEXT = {**BYTES, **TEXT}
_JOURNAL = {**_TEXT, **JSON_LINES}


def _table_text(separator: str) -> bytes:
    table, classes = frame()
    text: str = table.assign(**{"class": classes}).to_csv(sep=separator, index=False)
    return text.encode()


class Tables(FileKind):
    """Tables of text: read, as they are and as a model expects them, and predicted."""

    name = "table"

    def build(self) -> Mapping[str, Any]:
        """Return a table with each separator, and a compressed one."""
        self.model = TableClassifier(new_estimator("BAdaCostClassifier")).fit(*frame())
        return {
            "comma": {"t.csv": _table_text(",")},
            "semicolon": {"t.txt": _table_text(";").replace(b".", b",")},
            "tab": {"t.tsv": _table_text("\t")},
            "gzip": {"t.csv.gz": gzip.compress(_table_text(","), mtime=0)},
        }

    def mutations_of(self, base: str) -> Mapping[str, Mutation]:
        """Return changes of text, or of what is inside a compressed file."""
        return {**BYTES, **IN_GZIP} if base == "gzip" else _TEXT

    def use(self, path: Path, base: str) -> None:
        """Read the table; one that a model takes is predicted, any is fitted to."""
        table = read_table(path)
        if "class" in table.columns and len(table) <= 1000:
            TableClassifier(new_estimator("BAdaCostClassifier")).fit(table, "class")
        self.model.predict(read_table(path, like=self.model))


ARROW_COLUMNS: Mapping[str, Callable[[Generator], Any]] = {
    "int8": lambda rng: pa.array(rng.integers(-128, 128, N_ROWS), pa.int8()),
    "uint64": lambda rng: pa.array(rng.integers(0, 2**64, N_ROWS, np.uint64), pa.uint64()),
    "half": lambda rng: pa.array(rng.normal(size=N_ROWS).astype(np.float16)),
    "odd numbers": lambda rng: pa.array(
        rng.choice([np.nan, np.inf, -np.inf, 1e308, 1e-320, -0.0], N_ROWS)
    ),
    "nulls": lambda rng: pa.nulls(N_ROWS),
    "some nulls": lambda rng: pa.array([None, 1.5] * (N_ROWS // 2)),
    "decimal": lambda rng: pa.array([str(n) for n in range(N_ROWS)]).cast(pa.decimal128(38, 3)),
    "text": lambda rng: pa.array([chr(int(n)) for n in rng.integers(0, 0xD800, N_ROWS)]),
    "large text": lambda rng: pa.array(["x" * int(n) for n in range(N_ROWS)], pa.large_string()),
    "bytes": lambda rng: pa.array([rng.bytes(3) for _ in range(N_ROWS)], pa.binary()),
    "dictionary": lambda rng: pa.array(["a", "b", None] * (N_ROWS // 3)).dictionary_encode(),
    "numbers as dictionary": lambda rng: pa.array(
        rng.choice([1.5, np.nan, np.inf], N_ROWS)
    ).dictionary_encode(),
    "date": lambda rng: pa.array(rng.integers(-(2**31), 2**31, N_ROWS), pa.int32()).cast(
        pa.date32()
    ),
    "time": lambda rng: pa.array(rng.integers(-(2**62), 2**62, N_ROWS), pa.timestamp("ns", "UTC")),
    "seconds": lambda rng: pa.array(rng.integers(-(2**40), 2**40, N_ROWS), pa.timestamp("s")),
    "duration": lambda rng: pa.array(rng.integers(0, 2**40, N_ROWS), pa.duration("us")),
    "list": lambda rng: pa.array([[1], [], None, [2, 3]] * (N_ROWS // 4)),
    "struct": lambda rng: pa.array([{"a": 1}] * N_ROWS),
    "map": lambda rng: pa.array([[("a", 1)]] * N_ROWS, pa.map_(pa.string(), pa.int64())),
    "booleans": lambda rng: pa.array([True, False, None] * (N_ROWS // 3)),
    "constant": lambda rng: pa.array([0] * N_ROWS),
}
_NAMES = ("a", "b", "", "class", "a b", "é", "x" * 300, "__index_level_0__", "size", "\n")


class ParquetTables(Kind):
    """Parquet files with columns of any type; some of them damaged."""

    name = "parquet"

    def build(self) -> Mapping[str, Any]:
        """Return where damage is done: nowhere, or in the bytes of the file."""
        return {"whole": False, "damaged": True}

    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw some columns and their names, and changes of bytes."""
        columns: list[Edit] = [
            [
                str(rng.choice(list(ARROW_COLUMNS))),
                str(rng.choice(_NAMES)),
                int(rng.integers(2**31)),
            ]
            for _ in range(rng.integers(1, 6))
        ]
        if base == "damaged":
            names = list(BYTES)
            for _ in range(rng.integers(1, 4)):
                name = str(rng.choice(names))
                columns.append([name, 0, *BYTES[name].draw(rng)])
        return columns

    def run(self, case: Case, folder: Path) -> None:
        """Write the file, read it as a table, and fit to it as a table and batch by batch."""
        columns = {
            "class": pa.array(["low", "high"] * (N_ROWS // 2)),
            "number": pa.array(range(N_ROWS)),
        }
        damage = [edit for edit in case.edits if edit[0] in BYTES]
        for kind, name, seed in (edit for edit in case.edits if edit[0] not in BYTES):
            columns[name] = ARROW_COLUMNS[kind](np.random.default_rng(seed))
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file)
        content = file.getvalue()
        for edit in damage:
            content = applied(content, edit)
        path = folder / "t.parquet"
        path.write_bytes(content)
        errors = []
        for use in (_fit_to_table, _fit_to_batches):
            try:
                use(path)
            except ValueError as error:  # the other one is tried all the same
                errors.append(error)
        if errors:
            raise errors[0]


def _fit_to_table(path: Path) -> None:
    table = read_table(path)
    TableClassifier(new_estimator("BAdaCostClassifier")).fit(table, "class").predict(table)


def _fit_to_batches(path: Path) -> None:
    new_estimator("BAdaCostClassifier").fit(ParquetBatches(path, "class", rows_at_once=5))


class CostFiles(FileKind):
    """Files of costs: read, explained and written again."""

    name = "costs"
    mutations = _TEXT

    def build(self) -> Mapping[str, Any]:
        """Return files of numbers with points and with commas."""
        text = b"truth,low,middle,high\n" + b"".join(
            b"%s,%s\n" % (name, b",".join(b"%.1f" % cost for cost in row))
            for name, row in zip((b"low", b"middle", b"high"), COSTS, strict=True)
        )
        comma = text.replace(b",", b";").replace(b".", b",")
        return {
            "comma": {"c.csv": text},
            "semicolon": {"c.csv": comma},
            "tab": {"c.tsv": text.replace(b",", b"\t")},
            "utf-16": {"c.csv": text.decode().encode("utf-16")},
        }

    def use(self, path: Path, base: str) -> None:
        """Read the costs, tell what they mean, and write what was read."""
        costs = read_costs(path)
        again = path.with_name("again.csv")
        write_costs(costs, again)
        if read_costs(again) != costs:
            raise Broken("costs that were written are not those that were read")
        str(explain_costs(costs))


class Configurations(FileKind):
    """Files that configure a training."""

    name = "config"
    mutations = _TEXT

    def build(self) -> Mapping[str, Any]:
        """Return all settings as they are by default, and a file with costs."""
        costs = b"cost_matrix = [[0, 1, 2], [3, 0, 1], [1, 4, 0]]\nwindow = [24, 24]\n"
        return {
            "all": {"c.toml": TrainingConfig().to_toml().encode()},
            "costs": {"c.toml": costs},
        }

    def use(self, path: Path, base: str) -> None:
        """Read the settings and ask for what follows from them."""
        config = TrainingConfig.from_toml(path)
        _ = config.shape, config.to_toml(), config.costs(2)


class CostRows(FileKind):
    """Rows of numbers that `badacost train-detector --costs` reads."""

    name = "rows"
    mutations = _TEXT

    def build(self) -> Mapping[str, Any]:
        """Return the costs of a background and two views."""
        return {"rows": {"c.csv": b"0,1,2\n3,0,1\n1.5,4,0\n"}}

    def use(self, path: Path, base: str) -> None:
        """Read the costs, and configure a training with them."""
        _ = TrainingConfig(cost_matrix=_cost_rows(path)).costs(2)


class Journals(FileKind):
    """Results of an experiment: what is read is continued, and read again."""

    name = "journal"
    mutations = _JOURNAL

    def build(self) -> Mapping[str, Any]:
        """Return a journal, one that was killed in a line, and an empty file."""
        lines = [{"seed": 0, "version": "1"}, {"fold": 1, "cost": 0.5}, {"fold": 2, "cost": None}]
        whole = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return {
            "whole": {"j.jsonl": whole},
            "half": {"j.jsonl": whole[:-9]},
            "empty": {"j.jsonl": b""},
        }

    def use(self, path: Path, base: str) -> None:
        """Go on with the journal."""
        header = {"seed": 0, "version": "1"}
        with Journal(path, header) as journal:
            journal.append({"fold": 3})
            records = journal.records
        with Journal(path, header) as journal:
            if json.dumps(journal.records) != json.dumps(records):
                raise Broken("a journal that was continued has other records")


TABLE_KINDS = (
    Tables(),
    ParquetTables(),
    CostFiles(),
    Configurations(),
    CostRows(),
    Journals(),
)
