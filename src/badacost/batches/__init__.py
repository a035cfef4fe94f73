"""Training sets that do not fit in memory: Parquet files, or batches that a function makes.

The ``fit`` of the classifiers takes them instead of X and y. It reads them twice, once more where
columns are categorical, twice more where samples are held out, and stores one byte for each value.
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

from badacost._utils.categorical_columns import listed
from badacost._utils.large_samples import Batch, BatchSource
from badacost._utils.validation import check_number
from badacost.io.budget import Budget
from badacost.io.parquet_rows import INDEX_LEVEL, ParquetRows, is_text

__all__ = ["Batches", "ParquetBatches"]


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
        Folder for a temporary file of the binned values, one byte for each, if they do not fit in
        memory either. The file is deleted after the fit.

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
                "Batches needs a function that returns batches, or a list of them, which are read "
                f"more than once; got {type(make).__name__}."
            )
        self.make, self.bins_folder = make, _checked_folder(bins_folder)

    def batches(self) -> Iterator[Batch]:
        """Read the batches."""
        made = self.make() if callable(self.make) else self.make
        if not isinstance(made, Iterable):
            raise TypeError(f"The function of Batches must yield batches; got {made!r:.80}.")
        for given in made:
            if not isinstance(given, tuple | list) or len(given) not in (2, 3):
                raise TypeError(
                    "A batch must be a tuple (X, y) or (X, y, sample_weight); got "
                    f"{type(given).__name__}."
                )
            X, *rest = given
            X = X if hasattr(X, "shape") else np.asarray(X)
            if len(X.shape) != 2 or X.shape[1] == 0:
                raise ValueError(
                    f"X of a batch must be a table of samples and features, such as X[:0] if it is "
                    f"empty; got shape {X.shape}."
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
        rows_at_once: int = 65_536,
        bins_folder: Any = None,
        max_memory: int | str | None = None,
    ):
        check_number("rows_at_once", rows_at_once, Integral, low=1)
        self.files = _files(paths)
        self.target, self.weight = target, weight
        self.rows_at_once = int(rows_at_once)
        self.bins_folder = _checked_folder(bins_folder)
        self._budget = Budget.of(max_memory)
        first = self.files[0]
        with ParquetRows(first, self._budget) as rows:
            schema = rows.schema
        if columns is None:
            others = [target, weight, *_index_columns(schema)]
            columns = [name for name in schema.names if name not in others]
        self.columns = _listed(columns, str, 'columns must be a list of names, as in ["age"]')
        if not self.columns:
            raise ValueError(f"{first} has no columns beside {target!r}, or columns names none.")
        self._wanted = [*self.columns, target, *([] if weight is None else [weight])]
        self._check_schema(first, schema)
        if len(set(self._wanted)) < len(self._wanted):
            raise ValueError(
                f"columns, target and weight must be different columns; got {listed(self._wanted)}."
            )

    def _check_schema(self, path: Path, schema: Any) -> None:
        """Raise unless a file has the columns, of types that can be features."""
        import pyarrow.types as types  # type: ignore[import-untyped]

        counts = Counter(schema.names)
        for name in self._wanted:
            if counts[name] != 1:
                number = f"{counts[name]} columns" if counts[name] else "no column"
                raise ValueError(f"{path} has {number} {name!r}: it has {listed(schema.names)}.")
            kind = schema.field(name).type
            is_label = is_text(kind) or types.is_dictionary(kind)
            is_number = types.is_primitive(kind) and not types.is_temporal(kind)
            is_number |= types.is_decimal(kind) or types.is_null(kind)
            if not is_number and (not is_label or name == self.weight):
                raise ValueError(
                    f"Column {name!r} of {path} is of type {kind!s:.80}, which is neither a "
                    "number nor a category: convert it, or leave it out of columns."
                )

    def batches(self) -> Iterator[Batch]:
        """Read the files."""
        import pandas as pd
        import pyarrow as pa

        for path in self.files:
            with ParquetRows(path, self._budget) as rows:
                self._check_schema(path, rows.schema)
                categories = rows.categories()
                for table in rows.batches(self.rows_at_once, self._wanted):
                    columns = {
                        name: _values(column, name in categories, name in rows.texts)
                        for name, column in zip(table.schema.names, table.columns, strict=True)
                    }
                    features: Any = {name: columns[name] for name in self.columns}
                    if all(column.dtype.kind in "biuf" for column in features.values()):
                        features = np.array([*features.values()]).T  # much faster if wide
                    frame = pd.DataFrame(features, columns=self.columns)
                    weight = None if self.weight is None else columns[self.weight]
                    yield Batch(frame, columns[self.target], weight)
        pa.default_memory_pool().release_unused()


def _index_columns(schema: Any) -> list[str]:
    """Return the columns that were the index of a data frame of pandas."""
    unnamed = [name for name in schema.names if name.startswith(INDEX_LEVEL)]
    try:
        found = schema.pandas_metadata["index_columns"]
        return [*unnamed, *found] if isinstance(found, list) else unnamed
    except (ValueError, TypeError, KeyError):  # damaged, or not written by pandas
        return unnamed


def _values(column: Any, category: bool, text: bool) -> Any:
    """Return a column of Arrow as a series: numbers, with NaN for null, categories or texts."""
    import pyarrow.types as types

    kind = column.type
    if text:
        column = column.cast("string")
    elif category and not types.is_dictionary(kind):
        return column.to_pandas(integer_object_nulls=True).astype("category")
    elif types.is_decimal(kind) or types.is_float16(kind) or types.is_null(kind):
        column = column.cast("float64")
    elif types.is_boolean(kind) and column.null_count:
        column = column.cast("uint8")
    return column.to_pandas()


def _listed(given: Any, kind: Any, message: str) -> list[Any]:
    """Return a collection of values of a type as a list."""
    is_listed = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    items = [*given] if is_listed else [None]
    if not all(isinstance(item, kind) for item in items):
        raise TypeError(f"{message}; got {given!r:.80}.")
    return items


def _files(paths: Any) -> list[Path]:
    """Return the files that paths, folders or patterns name."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    kinds = "paths must be a file, a folder, a pattern or a list of them"
    files: list[Path] = []
    for name in _listed(given, str | os.PathLike, kinds):
        path = Path(name)
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not path.exists():
            found = [Path(file) for file in sorted(glob.glob(os.fspath(path)))]
        if not found:
            raise FileNotFoundError(f"There are no Parquet files in {os.fspath(name)!r}.")
        files += found
    if not files:
        raise ValueError("paths names no file: give at least one.")
    return files


def _checked_folder(folder: Any) -> Path | None:
    """Return the folder for temporary files, if one is given."""
    if folder is not None and not Path(folder).is_dir():
        raise NotADirectoryError(f"bins_folder must be a folder that exists; got {folder!r:.200}.")
    return None if folder is None else Path(folder)
