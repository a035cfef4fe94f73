"""UCI data sets as arrays, from a file on this machine or from OpenML."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_choice, check_flag
from badacost.io.user_file import open_regular

_VARIABLE = "BADACOST_DATA"
_MAX_BYTES = 2**26  # the largest set, Isolet, takes 34 MiB


class UciTable(NamedTuple):
    """Title and size of a set, its page at UCI, and its number at OpenML."""

    title: str
    page: int
    openml: int | None
    n_rows: int
    n_columns: int
    n_classes: int


UCI_TABLES = {
    "car": UciTable("Car evaluation", 19, 40975, 1728, 6, 4),
    "chess": UciTable("Chess, king and rook against king", 23, 184, 28056, 6, 18),
    "isolet": UciTable("Spoken letters", 54, 300, 7797, 617, 26),
    # OpenML's 182, satimage, lacks five rows and has other values.
    "satimage": UciTable("Land seen from a satellite", 146, 294, 6435, 36, 6),
    "letter": UciTable("Printed letters", 59, 6, 20000, 16, 26),
    "shuttle": UciTable("States of a space shuttle", 148, 40685, 58000, 9, 7),
    "cmc": UciTable("Choice of contraceptives", 30, 23, 1473, 9, 3),
    "cnae9": UciTable("Descriptions of companies in words", 233, 1468, 1080, 856, 9),
    "optdigits": UciTable("Written digits, scanned", 80, 28, 5620, 64, 10),
    "pendigits": UciTable("Written digits, by the pen", 81, 32, 10992, 16, 10),
    "segmentation": UciTable("Patches of outdoor images", 50, 36, 2310, 19, 7),
    # OpenML's waveform-5000 is version 2, with 40 variables and another sample.
    "waveform": UciTable("Waves with noise", 107, None, 5000, 21, 3),
}
UCI_NAMES: tuple[str, ...] = tuple(UCI_TABLES)
"""Names that `load_uci` takes, in the order of the paper's Table 1."""

_LEVELS = {  # of categories that are words, by set and column, in their natural order
    "car": {
        0: "low med high vhigh", 1: "low med high vhigh", 2: "2 3 4 5more", 3: "2 4 more",
        4: "small med big", 5: "low med high",
    },
    "chess": dict.fromkeys((0, 2, 4), "a b c d e f g h"),
}  # fmt: skip
_NUMBERED = {"cmc": (1, 2, 4, 5, 6, 7, 8)}  # categories that are numbers


def load_uci(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[FloatArray, NDArray[np.str_]]:
    """Load one of the twelve UCI data sets of the paper's Table 1.

    The file ``NAME.csv.gz``, with a header and the class in its last column, is looked for in
    `folder`, and nowhere else, if that is given. Otherwise it is looked for in the folder that the
    environment variable ``BADACOST_DATA`` names and its subfolder ``uci``, and in the folder
    ``badacost/uci`` of scikit-learn's `get_data_home`. A set found in none of them is fetched from
    OpenML, and kept in the cache of scikit-learn.

    Parameters
    ----------
    name : str
        One of `UCI_NAMES`, in any case.
    folder : str or path-like, optional
        Where the file is.
    download : bool, default=True
        Whether to fetch a set that is not on this machine.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        With ``data``, an ndarray of shape (n_samples, n_features) of floats; ``target``, an
        ndarray of shape (n_samples,) of strings; ``feature_names``; ``target_names``, the sorted
        classes; ``categorical``, an ndarray of shape (n_features,) that marks categories; ``name``;
        and ``DESCR``.

    Raises
    ------
    FileNotFoundError
        Where the set is in none of the places, and is not fetched, or cannot be.
    ValueError
        Where a file is damaged, or has not the size of the set.

    Notes
    -----
    Categories become the numbers 0, 1, ... in a natural order, on which trees can split: prices
    and safety from low to (very) high, doors and persons from 2 upwards, luggage boots from small
    to big, files of the chess board from a to h. Those of cmc are numbers in the original and stay
    as they are. OpenML has no copy of waveform; its copies of the other sets may have other rows
    or another order of them. For the paper's tables, use files made from UCI's.

    Examples
    --------
    >>> from badacost.datasets import UCI_NAMES, load_uci
    >>> UCI_NAMES[:4]
    ('car', 'chess', 'isolet', 'satimage')
    >>> load_uci("iris")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: name must be one of 'car', 'chess', ..., 'waveform'; got 'iris'.
    >>> load_uci("car").data.shape  # doctest: +SKIP
    (1728, 6)
    """
    check_flag("download", download)
    check_flag("return_X_y", return_X_y)
    key = name.casefold() if isinstance(name, str) else name
    check_choice("name", key, UCI_TABLES)
    table = UCI_TABLES[key]
    path = _find(key, folder)
    source = f"OpenML's data set {table.openml}" if path is None else str(path)
    try:
        names, data, target = _fetched(key, download) if path is None else _parsed(_text(path), key)
        _check_size(data, target, table)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{source} is damaged or not the data set {key!r}: {error}. Put UCI's data as "
            f"{key}.csv.gz into a folder, and name it as folder or in {_VARIABLE}."
        ) from error
    if return_X_y:
        return data, target
    coded = [*_LEVELS.get(key, {}), *_NUMBERED.get(key, ())]
    return Bunch(
        data=data,
        target=target,
        feature_names=names,
        target_names=np.unique(target),
        categorical=np.isin(np.arange(len(names)), coded),
        name=key,
        DESCR=f"{table.title}. Source: UCI Machine Learning Repository, University of California, "
        f"Irvine, https://archive.ics.uci.edu/dataset/{table.page}. Licence: CC BY 4.0.",
    )


def _places() -> Iterator[Path]:
    """Yield the folders where files are looked for."""
    if named := os.environ.get(_VARIABLE):
        yield Path(named).expanduser()
        yield Path(named).expanduser() / "uci"
    yield Path(get_data_home(), "badacost", "uci")


def _find(key: str, folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the first file there is; None if there is none."""
    places = _places() if folder is None else [Path(folder).expanduser()]
    paths = [place / f"{key}.csv.gz" for place in places]
    found = next((path for path in paths if path.is_file()), None)
    if found is None and folder is not None:
        raise FileNotFoundError(
            f"there is no file {paths[0]}: put {key}.csv.gz there, or leave out folder "
            "(a command: --data) to look elsewhere."
        )
    return found


def _text(path: Path) -> str:
    """Return the text of a compressed file, which may be damaged or malicious."""
    with open_regular(path) as packed, gzip.open(packed) as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it unpacks to more than {_MAX_BYTES} bytes")
    return data.decode()


def _parsed(text: str, key: str) -> tuple[list[str], FloatArray, NDArray[np.str_]]:
    """Return names of features, samples and labels from the text of a file."""
    header, *lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    *names, last = header.split(",")
    if last != "class" or len(names) != UCI_TABLES[key].n_columns:
        raise ValueError(f"its header has {len(names)} features, then {last[:40]!r}, not 'class'")
    if not lines or any(line.count(",") != len(names) for line in lines):
        raise ValueError(f"it has no rows, or a row that has not {len(names) + 1} columns")
    columns = _LEVELS.get(key, {})
    data = np.loadtxt(
        lines,
        delimiter=",",
        comments=None,
        usecols=range(len(names)),
        converters={column: levels.split().index for column, levels in columns.items()},
        ndmin=2,
    )
    return names, data, np.array([line.rpartition(",")[2] for line in lines])


def _fetched(key: str, download: bool) -> tuple[list[str], FloatArray, NDArray[np.str_]]:
    """Return names of features, samples and labels from OpenML or scikit-learn's cache."""
    number = UCI_TABLES[key].openml
    missing = f"there is no {key}.csv.gz in any of {', '.join(map(str, _places()))}, and"
    remedy = f"put it into a folder and set {_VARIABLE} to that folder"
    if number is None:
        raise FileNotFoundError(f"{missing} OpenML has no copy: {remedy}.")
    if not download:
        raise FileNotFoundError(f"{missing} download is False: set it to True, or {remedy}.")
    try:
        fetched = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except (OSError, ValueError, EOFError, HTTPException) as error:
        raise FileNotFoundError(
            f"{missing} OpenML's data set {number} could not be fetched "
            f"({type(error).__name__}: {error}): go online, or {remedy}."
        ) from error
    data = np.array(fetched.data, dtype=np.float64)
    for column, name in enumerate(fetched.feature_names):
        if tokens := fetched.categories.get(name):
            levels = _LEVELS.get(key, {}).get(column)
            code: Any = levels.split().index if levels else float
            data[:, column] = np.array([*map(code, tokens)])[data[:, column].astype(int)]
    return list(fetched.feature_names), data, np.asarray(fetched.target).astype(str)


def _check_size(data: FloatArray, target: NDArray[np.str_], table: UciTable) -> None:
    """Raise unless a set has its numbers of rows, columns and classes, and finite values."""
    found, expected = (*data.shape, len(np.unique(target))), table[3:]
    if found != expected:
        raise ValueError(f"rows, columns and classes are {found}, and should be {expected}")
    if not np.isfinite(data).all():
        raise ValueError("it has values that are not finite numbers")
