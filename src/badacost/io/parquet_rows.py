"""Batches of rows of Parquet files, within a budget.

A file of a kilobyte can hold a text once and refer to it a million times. Texts therefore stay in
dictionaries until it is known how much memory they take.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from badacost.io.budget import Budget, BudgetError
from badacost.io.user_file import open_regular

INDEX_LEVEL = "__index_level_"
"""How pandas names the column of an index without a name."""
# What pyarrow raises on damaged files.
_ERRORS = (OSError, LookupError, TypeError, NotImplementedError, RuntimeError, ValueError)
_BUFFER = 2**16  # bytes of a column chunk that are read at a time, else it is the whole chunk
_TAIL = 8  # bytes after the footer: its length, and a mark
_OF_FOOTER = 100  # memory for a byte of the footer, where columns have almost no description
_COPIES = 2  # of rows: those of Arrow, and those of pandas
_OF_TEXTS = 5  # memory for a byte of pages: the page, its texts, and what finds them


class ParquetRows:
    """A file of Parquet, checked before it is unpacked; to be used in a ``with`` statement.

    Whatever is wrong with the contents is a ValueError that names the file.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.
    texts : list of str
        Columns of texts, which are not those of categories.
    """

    def __init__(self, path: Path, budget: Budget):
        try:
            import pandas  # noqa: F401
            import pyarrow.parquet as pq  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError(
                "Parquet files need pyarrow and pandas: pip install badacost[tables]."
            ) from error
        self._path, self._budget = path, budget
        opened = open_regular(path)
        with ExitStack() as stack, self._errors():
            stack.enter_context(opened)
            _check_footer(opened, budget)
            self.metadata = pq.read_metadata(opened)
            self.schema = self.metadata.schema.to_arrow_schema()
            if not self.schema.names:
                raise ValueError("it has no columns")
            self.texts = [field.name for field in self.schema if is_text(field.type)]
            self._file = pq.ParquetFile(
                opened,
                metadata=self.metadata,
                read_dictionary=self.texts,
                pre_buffer=False,
                buffer_size=_BUFFER,
            )
            self._opened = stack.pop_all()

    def __enter__(self) -> ParquetRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def categories(self) -> set[str]:
        """Return the columns that were dictionaries of Arrow: Parquet restores those of text."""
        import pyarrow as pa

        stored = (self.metadata.metadata or {}).get(b"ARROW:schema")
        if stored is None:
            return set()
        with self._errors():
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
            return {field.name for field in schema if pa.types.is_dictionary(field.type)}

    def batches(
        self, n_rows: int, columns: Sequence[str] | None = None, *, together: bool = False
    ) -> Iterator[Any]:
        """Yield batches of at most so many rows, texts in dictionaries.

        The budget is that of a batch, or that of all of them together.
        """
        spend = self._budget.take if together else self._budget.check
        with self._errors():
            self._check(n_rows, columns, together)
            # One group at a time: the reader keeps the dictionaries of all that it is given.
            for group in range(self.metadata.num_row_groups):
                for batch in self._file.iter_batches(n_rows, [group], columns=columns):
                    spend(_COPIES * self._size_of(batch))
                    batch.validate(full=True)  # texts that are no UTF-8 among others
                    yield batch

    def _check(self, n_rows: int, columns: Sequence[str] | None, together: bool) -> None:
        """Refuse what unpacks to too much: pages, and so many rows or all of them."""
        import pyarrow.types as types  # type: ignore[import-untyped]

        wanted = set(self.schema.names if columns is None else columns)
        kinds = [field.type for field in self.schema if field.name in wanted]
        has_texts = any(is_text(kind) or types.is_dictionary(kind) for kind in kinds)
        # Not the sizes of single columns: on some damaged files pyarrow ends the process.
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        sizes = [group.total_byte_size for group in groups]
        pages = sum(sizes) if together else max(sizes, default=0)
        n_bytes = (_OF_TEXTS if has_texts else 1) * pages
        rows = self.metadata.num_rows if together else min(n_rows, self.metadata.num_rows)
        self._budget.check(max(n_bytes, rows * sum(map(_width, kinds))))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of pyarrow into a ValueError that names the file."""
        try:
            yield
        except _ERRORS as error:
            reason = str(error)
            if not isinstance(error, BudgetError):
                reason = f"it is damaged, or not of Parquet ({reason:.300}): write it again"
            raise ValueError(f"cannot read the table {str(self._path)!r}: {reason}.") from error

    def _size_of(self, batch: Any) -> int:
        """Return what a batch takes, with its texts out of their dictionaries."""
        import pyarrow.compute as compute  # type: ignore[import-untyped]

        size = batch.nbytes
        for name in {*self.texts} & {*batch.schema.names}:
            column = batch.column(name)
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            size += (compute.sum(lengths).as_py() or 0) + 8 * len(column)
        return int(size)


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is that of texts."""
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_footer(file: BinaryIO, budget: Budget) -> None:
    """Refuse a file whose footer, with the columns and groups of rows, takes too much memory."""
    size = os.fstat(file.fileno()).st_size
    file.seek(-min(_TAIL, size), os.SEEK_END)
    length = int.from_bytes(file.read(_TAIL)[:4], "little")
    budget.check(_OF_FOOTER * min(length, size))


def _width(kind: Any) -> int:
    """Bytes of a cell, those of a text without its characters."""
    import pyarrow.types as types

    is_number = types.is_primitive(kind) or types.is_decimal(kind)
    return max(kind.bit_width // 8, 1) if is_number else 8
