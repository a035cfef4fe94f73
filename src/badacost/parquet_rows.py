"""Rows of Parquet files of users, some at a time and within a budget.

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

from badacost.budget import Budget, BudgetError
from badacost.user_file import open_regular

INDEX_LEVEL = "__index_level_"
"""How pandas names the column of an index without a name."""
# What pyarrow raises on damaged files.
_ERRORS = (OSError, LookupError, TypeError, NotImplementedError, RuntimeError, ValueError)
_BUFFER = 2**16  # bytes of a column chunk that are read at a time, else it is the whole chunk
_TAIL = 8  # bytes after the footer: its length, and a mark
_OF_FOOTER = 100  # memory for a byte of the footer, of columns that say almost nothing
_COPIES = 2  # of rows: those of Arrow, and those of pandas
_OF_TEXTS = 5  # memory for a byte of pages: the page, its texts, and what finds them
_PAGES_AT_ONCE = 2**24


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
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        self._path, self._budget = path, budget
        opened = open_regular(path)
        with ExitStack() as stack, self._errors():
            stack.enter_context(opened)
            _check_footer(opened, budget)
            file = pq.ParquetFile(opened)
            self.schema, self.metadata = file.schema_arrow, file.metadata
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
        """Return the columns that were dictionaries of Arrow: Parquet gives back those of text."""
        import pyarrow as pa

        stored = (self.metadata.metadata or {}).get(b"ARROW:schema")
        if stored is None:
            return set()
        with self._errors():
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
            return {field.name for field in schema if _is_dictionary(field.type)}

    def batches(
        self, n_rows: int, columns: Sequence[str] | None = None, *, together: bool = False
    ) -> Iterator[Any]:
        """Yield batches of at most so many rows, texts in dictionaries.

        The budget is that of a batch, or that of all of them together.
        """
        size = 0
        with self._errors():
            chunks = list(self._chunks(n_rows))
            self._check(chunks, n_rows, columns, together)
        for groups in chunks:
            tables = self._file.iter_batches(n_rows, [*groups], columns=columns)
            while True:
                with self._errors():
                    batch = next(tables, None)
                    if batch is None:
                        break
                    size = (size if together else 0) + self._size_of(batch)
                    self._budget.check(_COPIES * size)
                    batch.validate(full=True)  # texts that are no UTF-8 among others
                yield batch

    def _chunks(self, n_rows: int) -> Iterator[range]:
        """Divide the groups of rows: the reader keeps the dictionaries of all that it is given."""
        first = rows = pages = 0
        for number in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(number)
            rows, pages = rows + group.num_rows, pages + group.total_byte_size
            if number > first and (rows > n_rows or pages > _PAGES_AT_ONCE):
                yield range(first, number)
                first, rows, pages = number, group.num_rows, group.total_byte_size
        yield range(first, self.metadata.num_row_groups)

    def _check(
        self, chunks: Sequence[range], n_rows: int, columns: Sequence[str] | None, together: bool
    ) -> None:
        """Refuse what unpacks to too much: pages, and so many rows or all of them."""
        wanted = set(self.schema.names if columns is None else columns)
        kinds = [field.type for field in self.schema if field.name in wanted]
        copies = _OF_TEXTS if any(is_text(kind) or _is_dictionary(kind) for kind in kinds) else 1
        # Those of single columns are not asked for: on some damaged files pyarrow ends the process.
        sizes = [self.metadata.row_group(n).total_byte_size for n in range(chunks[-1].stop)]
        pages = [copies * sum(sizes[groups.start : groups.stop]) for groups in chunks]
        total = self.metadata.num_rows
        width = max(sum(map(_width, kinds)), 1)
        rows = (total if together else min(n_rows, total)) * width
        self._budget.check(max(sum(pages) if together else max(pages), rows))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say which file is too large or damaged, whatever pyarrow says of it."""
        try:
            yield
        except BudgetError as error:
            raise ValueError(f"cannot read the table {str(self._path)!r}: {error}.") from None
        except _ERRORS as error:
            raise ValueError(
                f"{str(self._path)!r} is damaged, or not of Parquet ({error!s:.300}): write it "
                "again."
            ) from error

    def _size_of(self, batch: Any) -> int:
        """Return what a batch takes, with its texts out of their dictionaries."""
        import pyarrow.compute as compute  # type: ignore[import-untyped]

        size, texts = 0, set(self.texts)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            size += column.nbytes
            if name in texts and _is_dictionary(column.type):
                lengths = compute.binary_length(column.dictionary)
                characters = compute.sum(lengths.take(column.indices)).as_py() or 0
                size += characters + 8 * len(column)
        return size


def is_text(kind: Any) -> bool:
    """Tell whether a type of Arrow is that of texts."""
    import pyarrow.types as types  # type: ignore[import-untyped]

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_footer(file: BinaryIO, budget: Budget) -> None:
    """Refuse a file whose footer, with the columns and groups of rows, takes too much memory."""
    size = os.fstat(file.fileno()).st_size
    file.seek(-min(_TAIL, size), os.SEEK_END)
    length = int.from_bytes(file.read(_TAIL)[:4], "little")
    budget.check(_OF_FOOTER * min(length, size))


def _is_dictionary(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_dictionary(kind))


def _width(kind: Any) -> int:
    """Bytes of a cell, those of a text without its characters."""
    import pyarrow.types as types

    if types.is_primitive(kind) or types.is_decimal(kind):
        return max(kind.bit_width // 8, 1)
    return 8 if is_text(kind) else 4
