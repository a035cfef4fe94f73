"""Training sets that do not fit in memory: Parquet files, or batches that a function makes.

They take the place of X and y in the ``fit`` of the classifiers. A fit reads them twice, once more
where columns are categorical, twice more where samples are held out. It keeps a byte a value.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from badacost.budget import Budget
from badacost.large_samples import Batch, BatchSource
from badacost.parquet_rows import INDEX_LEVEL, ParquetRows, is_text
from badacost.validation import check_number

__all__ = ["Batches", "ParquetBatches"]

_ROWS_AT_ONCE = 65_536


class Batches(BatchSource):
    """A training set in batches, made by a function that is called for every pass.

    Parameters
    ----------
    make : callable or sequence
        Called without arguments, returns an iterable of batches; or a list of batches. A batch is a
        tuple ``(X, y)`` or ``(X, y, sample_weight)``: an array, data frame or sparse matrix of
        some rows, their classes, and their weights. Batches must be the same, in the same order,
        each time; some of them may be empty, or lack a class.
    bins_folder : path-like, optional
        Where the binned values are kept, one byte for each value in a temporary file, if they do
        not fit in memory either. The file is gone after the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.batches import Batches
    >>> def read_days():
    ...     for day in range(7):  # such as a file or a query for each day
    ...         rng = np.random.default_rng(day)
    ...         X = rng.normal(size=(100, 3))
    ...         yield X, (X[:, 0] > 0).astype(int)
    >>> model = BAdaCostClassifier([[0, 1], [5, 0]], n_estimators=5).fit(Batches(read_days))
    >>> model.predict([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    array([0, 1])
    """

    def __init__(
        self, make: Callable[[], Iterable[Any]] | Sequence[Any], *, bins_folder: Any = None
    ):
        if not callable(make) and not isinstance(make, list | tuple):
            raise TypeError(
                "Batches needs a function that returns batches, or a list of them; got "
                f"{type(make).__name__}, which may be exhausted after one pass."
            )
        self.make, self.bins_folder = make, _checked_folder(bins_folder)

    def batches(self) -> Iterator[Batch]:
        """Read the batches."""
        made = self.make() if callable(self.make) else self.make
        if not isinstance(made, Iterable):
            raise TypeError(
                f"The function of Batches returned {type(made).__name__}: it must yield batches, "
                "or return a list of them."
            )
        for given in made:
            if not isinstance(given, tuple | list) or len(given) not in (2, 3):
                count = f" of {len(given)}" if isinstance(given, tuple | list) else ""
                raise TypeError(
                    "A batch must be a tuple (X, y) or (X, y, sample_weight); got "
                    f"{type(given).__name__}{count}."
                )
            X, *rest = given
            X = X if hasattr(X, "shape") else np.asarray(X)
            if len(X.shape) != 2:
                raise ValueError(
                    f"X of a batch must be a table of samples and features; got shape {X.shape}."
                )
            if X.shape[1] == 0:
                raise ValueError(
                    f"X of a batch has no features (its shape is {X.shape}): give an empty batch "
                    "the columns of the others too, such as X[:0], or leave it out."
                )
            yield Batch(X, *rest)


class ParquetBatches(BatchSource):
    """A training set in Parquet files, read some rows at a time; needs ``badacost[tables]``.

    Parameters
    ----------
    paths : path-like or sequence of path-like
        A file, a folder of files ending in ``.parquet``, a pattern such as ``"2026/*.parquet"``,
        or a list of those. Files are read in the order of their names, those of a list in its
        order; all have the same columns.
    target : str
        Column with the classes.
    weight : str, optional
        Column with weights of the rows.
    columns : sequence of str, optional
        Columns with the features; by default all others, in the order of the first file.
    rows_at_once : int, default=65536
        Maximum number of rows of a batch.
    bins_folder : path-like, optional
        See `Batches`.
    max_memory : int, str or None, default=None
        Maximum memory that reading a batch may take: bytes, or a string such as "4 GB". None is the
        limit of `badacost.set_max_memory`.

    Notes
    -----
    Columns have numbers or booleans, where null is a missing value, or categories (dictionaries of
    Arrow, such as a data frame's column of a category dtype leaves behind; of numbers as well,
    where the file keeps the schema of Arrow, as those of pandas and pyarrow do). Text columns, and
    others, are categories if `categorical_features` of the classifier names them. The index of a
    data frame of pandas is no feature, unless `columns` names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.batches import ParquetBatches
    >>> frame = load_iris(as_frame=True).frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame[::2].to_parquet(Path(folder) / "1.parquet")
    ...     frame[1::2].to_parquet(Path(folder) / "2.parquet")
    ...     flowers = ParquetBatches(folder, "target")
    ...     model = BAdaCostClassifier(n_estimators=5).fit(flowers)
    >>> model.feature_names_in_[0], model.predict(frame[:1].drop(columns="target"))
    ('sepal length (cm)', array([0]))
    """

    def __init__(
        self,
        paths: Any,
        target: str,
        *,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        rows_at_once: int = _ROWS_AT_ONCE,
        bins_folder: Any = None,
        max_memory: int | str | None = None,
    ):
        check_number("rows_at_once", rows_at_once, Integral, low=1)
        chosen = None if columns is None else _checked_columns(columns)
        self.files = _files(paths)
        self.target, self.weight = target, weight
        self.rows_at_once = int(rows_at_once)
        self.bins_folder = _checked_folder(bins_folder)
        self._budget = Budget.of(max_memory)
        with self._open(self.files[0]) as rows:
            schema = rows.schema
        left_out = {target, weight, *_index_columns(schema)}
        others = [
            name
            for name in schema.names
            if name not in left_out and not name.startswith(INDEX_LEVEL)
        ]
        self.columns = others if chosen is None else chosen
        if not self.columns:
            raise ValueError(
                f"{self.files[0]} has no columns beside {target!r}: features are missing."
            )
        if (doubled := _doubled(schema.names)) is not None:
            raise ValueError(f"{self.files[0]} has several columns {doubled!r}: rename them.")
        if target in self.columns or (weight is not None and weight in (*self.columns, target)):
            raise ValueError("target, weight and columns must be different columns.")
        self._check_schema(self.files[0], schema)

    def _open(self, path: Path) -> ParquetRows:
        """Open a Parquet file."""
        try:
            import pandas  # noqa: F401
            import pyarrow  # type: ignore[import-untyped]  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "ParquetBatches needs pyarrow and pandas: pip install badacost[tables]."
            ) from error
        return ParquetRows(path, self._budget)

    def _check_schema(self, path: Path, schema: Any) -> None:
        """Raise unless a file has the columns, of types that can be features."""
        import pyarrow.types as types  # type: ignore[import-untyped]

        wanted = [*self.columns, self.target, *([] if self.weight is None else [self.weight])]
        kinds = dict(zip(schema.names, schema.types, strict=True))
        for name in wanted:
            if name not in kinds:
                listed = ", ".join(map(repr, [*kinds][:20]))
                raise ValueError(f"{path} has no column {name!r}: there are {listed}.")
        for name in wanted:
            kind = kinds[name]
            labels = is_text(kind) or types.is_dictionary(kind)
            number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
            number |= types.is_decimal(kind) or types.is_null(kind)
            if not (number or (labels and name != self.weight)):
                raise ValueError(
                    f"Column {name!r} of {path} is of type {kind!s:.80}, which is neither a "
                    "number nor a category: convert it, or leave it out of columns."
                )

    def batches(self) -> Iterator[Batch]:
        """Read the files."""
        import pandas as pd
        import pyarrow as pa

        wanted = [*self.columns, self.target, *([] if self.weight is None else [self.weight])]
        for path in self.files:
            with self._open(path) as rows:
                self._check_schema(path, rows.schema)
                categories, texts = rows.categories(), set(rows.texts)
                for table in rows.batches(self.rows_at_once, wanted):
                    parts = dict(zip(table.schema.names, table.columns, strict=True))
                    for name in texts & parts.keys():
                        parts[name] = parts[name].cast("string")
                    values = {
                        name: _values(parts[name], name in categories) for name in self.columns
                    }
                    if all(column.dtype.kind in "biuf" for column in values.values()):
                        frame = pd.DataFrame(_matrix(list(values.values())), columns=self.columns)
                    else:
                        frame = pd.DataFrame(values, columns=self.columns)
                    weight = None if self.weight is None else _values(parts[self.weight])
                    yield Batch(frame, _values(parts[self.target]), weight)
        pa.default_memory_pool().release_unused()


def _index_columns(schema: Any) -> list[str]:
    """Columns that were the index of a data frame of pandas."""
    try:
        told = schema.pandas_metadata
    except ValueError:  # damaged: there is nothing to know
        told = None
    names = told.get("index_columns") if isinstance(told, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _values(column: Any, category: bool = False) -> Any:
    """A column of Arrow: numbers as an array, with NaN for null, others as a series."""
    import pandas as pd
    import pyarrow.types as types

    kind = column.type
    if category and types.is_floating(kind):
        return pd.Series(pd.Categorical(column.to_numpy(zero_copy_only=False)))
    if category and (types.is_integer(kind) or types.is_boolean(kind)):
        column = column.dictionary_encode()
        kind = column.type
    if types.is_decimal(kind) or types.is_float16(kind) or types.is_null(kind):
        column = column.cast("float64")
    elif types.is_boolean(kind) and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False), bool)
    elif types.is_boolean(kind):
        column = column.cast("uint8")
    elif types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind):
        return column.to_pandas()
    return column.to_numpy(zero_copy_only=False)


def _matrix(columns: list[Any]) -> Any:
    """Columns of numbers as one matrix, in single precision if that holds them."""
    kind = np.result_type(*(column.dtype for column in columns))
    matrix = np.empty((len(columns), len(columns[0])), kind if kind == np.float32 else np.float64)
    for row, column in zip(matrix, columns, strict=True):
        row[:] = column
    return matrix.T


def _doubled(names: Sequence[str]) -> str | None:
    """A name that occurs more than once, if there is one."""
    return min((name for name, count in Counter(names).items() if count > 1), default=None)


def _checked_columns(columns: Any) -> list[str]:
    """The names of the features."""
    listed = isinstance(columns, Iterable) and not isinstance(columns, str | bytes)
    names: list[Any] = [*columns] if listed else [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f'columns must be a list of names, as in ["age"]; got {columns!r:.80}.')
    if (doubled := _doubled(names)) is not None:
        raise ValueError(f"columns names {doubled!r} more than once: name a column once.")
    if not names:
        raise ValueError("columns names no features: name some, or leave it out to take all.")
    return names


def _files(paths: Any) -> list[Path]:
    """The files that paths, folders or patterns name."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytes):
        raise TypeError(
            f"paths must be a file, a folder, a pattern or a list of them; got {paths!r:.80}."
        )
    files: list[Path] = []
    for given in paths:
        if not isinstance(given, str | os.PathLike):
            raise TypeError(f"paths must have names of files or folders; got {given!r:.80}.")
        path = Path(given)
        if path.is_dir():
            found = sorted(path.glob("*.parquet"))
        elif path.exists() or not glob.has_magic(os.fspath(given)):
            found = [path]
        else:
            found = [Path(name) for name in sorted(glob.glob(os.fspath(given)))]
        if not found:
            raise FileNotFoundError(f"There are no Parquet files in {os.fspath(given)!r}.")
        files += found
    if not files:
        raise ValueError("paths names no file: give at least one.")
    return files


def _checked_folder(folder: Any) -> Path | None:
    """A folder for temporary files."""
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise NotADirectoryError(f"bins_folder must be a folder that exists; got {folder!r:.200}.")
    return Path(folder)
