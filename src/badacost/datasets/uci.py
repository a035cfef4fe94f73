"""The twelve UCI data sets of the paper's Table 1, as arrays that were checked.

A set is one file ``NAME.csv.gz``: a header, one row for each instance, ``class`` last, the original
tokens. A file may come from anywhere, so nothing in it is trusted: its header, shape, tokens, class
counts and a weighted sum of its column means must be those of the set that the paper used. The same
checks stand between OpenML and the cache; a copy that differs is refused, not loaded.

OpenML's numbers are those of its public documentation; its copies were not compared with UCI's
files beyond these checks, and may hold the rows in another order, so that folds differ.
"""

from __future__ import annotations

import gzip
import os
import reprlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch

from badacost.arrays import FloatArray
from badacost.atomic_file import replaced_file
from badacost.user_file import open_regular
from badacost.validation import check_choice, check_flag

_VARIABLE = "BADACOST_DATA"
_MAX_BYTES = 2**26  # the largest set, Isolet, takes 34 MiB


@dataclass(frozen=True)
class _Source:
    """What the paper and UCI say of one set; `page` and `openml` are the numbers it has there."""

    name: str
    title: str
    page: int
    openml: int | None
    features: tuple[str, ...]
    counts: Mapping[str, int]
    fingerprint: float  # sum of the column means, weighted 1, 2, ...
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""

    @property
    def size(self) -> str:
        """Variables, labels and instances, as in the paper's appendix."""
        return (
            f"{len(self.features)} variables, {len(self.counts)} labels and "
            f"{sum(self.counts.values())} instances"
        )


def _numbered(count: int) -> tuple[str, ...]:
    """Name variables that have no name."""
    return tuple(f"x{number}" for number in range(count))


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


def _counts(text: str) -> dict[str, int]:
    """Return counts by class from a text of classes and counts in turn."""
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


_PRICES = _words("low med high vhigh")
_FILES = _words("a b c d e f g h")
_IN_NUMBERS: tuple[str, ...] = ()  # a category whose levels are numbers in the file

_SOURCES: dict[str, _Source] = {
    "car": _Source(
        name="CarEvaluation",
        title="Car Evaluation",
        page=19,
        openml=40975,
        features=_words("buying maint doors persons lug_boot safety"),
        categories={
            "buying": _PRICES,
            "maint": _PRICES,
            "doors": _words("2 3 4 5more"),
            "persons": _words("2 4 more"),
            "lug_boot": _words("small med big"),
            "safety": _words("low med high"),
        },
        counts=_counts("acc 384 good 69 unacc 1210 vgood 65"),
        fingerprint=24.0,
    ),
    "chess": _Source(
        name="Chess",
        title="Chess (King-Rook vs. King)",
        page=23,
        openml=184,
        features=_words(
            "white_king_file white_king_rank white_rook_file white_rook_rank "
            "black_king_file black_king_rank"
        ),
        categories=dict.fromkeys(_words("white_king_file white_rook_file black_king_file"), _FILES),
        counts=_counts(
            "draw 2796 zero 27 one 78 two 246 three 81 four 198 five 471 six 592 seven 683 "
            "eight 1433 nine 1712 ten 1985 eleven 2854 twelve 3597 thirteen 4194 fourteen 4553 "
            "fifteen 2166 sixteen 390"
        ),
        fingerprint=81.346877673,
    ),
    "isolet": _Source(
        name="Isolet",
        title="ISOLET",
        page=54,
        openml=300,
        features=_numbered(617),
        counts={str(letter): 300 for letter in range(1, 27)} | {"6": 298, "13": 299},
        fingerprint=6958.0625458,
    ),
    "satimage": _Source(
        name="SatImage",
        title="Statlog (Landsat Satellite)",
        page=146,
        openml=294,  # not 182, satimage, which lacks five rows and has other values
        features=_numbered(36),
        counts=_counts("1 1533 2 703 3 1358 4 626 5 707 7 1508"),
        fingerprint=55818.703963,
        note="The paper prints 7 labels; label 6, a mixture, has no instance.",
    ),
    "letter": _Source(
        name="Letter",
        title="Letter Recognition",
        page=59,
        openml=6,
        features=_words(
            "x_box y_box width high onpix x_bar y_bar x2bar y2bar xybar x2ybr xy2br x_ege xegvy "
            "y_ege yegvx"
        ),
        counts=_counts(
            "A 789 B 766 C 736 D 805 E 768 F 775 G 773 H 734 I 755 J 747 K 739 L 761 M 792 "
            "N 783 O 753 P 803 Q 783 R 758 S 748 T 796 U 813 V 764 W 752 X 787 Y 786 Z 734"
        ),
        fingerprint=835.5057,
    ),
    "shuttle": _Source(
        name="Shuttle",
        title="Statlog (Shuttle)",
        page=148,
        openml=40685,
        features=_numbered(9),
        counts=_counts("1 45586 2 50 3 171 4 8903 5 3267 6 10 7 13"),
        fingerprint=1279.7982069,
    ),
    "cmc": _Source(
        name="ContraMethod",
        title="Contraceptive Method Choice",
        page=30,
        openml=23,
        features=_words(
            "wife_age wife_education husband_education n_children wife_religion wife_working "
            "husband_occupation living_standard media_exposure"
        ),
        categories=dict.fromkeys(
            _words(
                "wife_education husband_education wife_religion wife_working husband_occupation "
                "living_standard media_exposure"
            ),
            _IN_NUMBERS,
        ),
        counts=_counts("1 629 2 333 3 511"),
        fingerprint=111.24100475,
    ),
    "cnae9": _Source(
        name="CNAE9",
        title="CNAE-9",
        page=233,
        openml=1468,
        features=_numbered(856),
        counts=dict.fromkeys("123456789", 120),
        fingerprint=3137.0083333,
    ),
    "optdigits": _Source(
        name="OptDigits",
        title="Optical Recognition of Handwritten Digits",
        page=80,
        openml=28,
        features=_numbered(64),
        counts=_counts("0 554 1 571 2 557 3 572 4 568 5 558 6 558 7 566 8 554 9 562"),
        fingerprint=10213.102135,
    ),
    "pendigits": _Source(
        name="PenDigits",
        title="Pen-Based Recognition of Handwritten Digits",
        page=81,
        openml=32,
        features=_numbered(16),
        counts=_counts("0 1143 1 1143 2 1144 3 1055 4 1144 5 1055 6 1056 7 1142 8 1055 9 1055"),
        fingerprint=6330.4138464,
    ),
    "segmentation": _Source(
        name="Segmentation",
        title="Image Segmentation",
        page=50,
        openml=36,
        features=_words(
            "region_centroid_col region_centroid_row region_pixel_count short_line_density_5 "
            "short_line_density_2 vedge_mean vedge_sd hedge_mean hedge_sd intensity_mean "
            "rawred_mean rawblue_mean rawgreen_mean exred_mean exblue_mean exgreen_mean "
            "value_mean saturation_mean hue_mean"
        ),
        counts=dict.fromkeys(_words("BRICKFACE CEMENT FOLIAGE GRASS PATH SKY WINDOW"), 330),
        fingerprint=3002.5458665,
    ),
    "waveform": _Source(
        name="Waveform",
        title="Waveform Database Generator (Version 1)",
        page=107,
        openml=None,
        features=_numbered(21),
        counts=_counts("0 1657 1 1647 2 1696"),
        fingerprint=395.514272,
        note="OpenML's waveform-5000 is version 2, with 40 variables, and another sample.",
    ),
}

UCI_NAMES: tuple[str, ...] = tuple(_SOURCES)
"""Names that `load_uci` takes, in the order of the paper's Table 1."""


def load_uci(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[FloatArray, NDArray[np.str_]]:
    """Load one of the twelve UCI data sets of the paper's Table 1.

    The file ``NAME.csv.gz`` is looked for in `folder`, and nowhere else, if that is given.
    Otherwise it is looked for in the folder that the environment variable ``BADACOST_DATA`` names
    and its subfolder ``uci``, and in the cache, ``badacost/uci`` in scikit-learn's
    `get_data_home`. A set found in none of them is fetched from OpenML and written to the cache.

    Parameters
    ----------
    name : str
        One of `UCI_NAMES`, or the paper's name such as "CarEvaluation", in any case.
    folder : str or path-like, optional
        Where the file is.
    download : bool, default=True
        Whether OpenML may be asked.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        With ``data``, an ndarray of shape (n_samples, n_features) of floats; ``target``, an
        ndarray of shape (n_samples,) of strings; ``feature_names``; ``target_names``, the sorted
        classes; ``categorical``, an ndarray of shape (n_features,) that marks categories; ``name``,
        the paper's name; and ``DESCR``.

    Raises
    ------
    FileNotFoundError
        Where the set is in none of the places, and OpenML was not asked, failed, or lacks it.
    ValueError
        Where a file is damaged, or is not the set that the paper used.

    Notes
    -----
    Categories become the numbers 0, 1, ... in a natural order, on which trees can split: prices
    and safety from low to (very) high, doors and persons from 2 upwards, luggage boots from small
    to big, files of the chess board from a to h. Those of ContraMethod are numbers in the original
    and stay as they are.

    SatImage has 6 classes although the paper prints 7: UCI has no instance of label 6.

    OpenML has no copy of Waveform. Its copies of the other sets are accepted only if they agree
    with UCI in the number of instances of each class and, closely, in the column means. Which of
    them do has not been tried, and their rows may be in another order: for the paper's tables, use
    files made from UCI's.

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
    key = _key(name)
    source = _SOURCES[key]
    path = _find(key, folder)
    if path is not None:
        data, target = _parse(_read(path), source, str(path))
    else:
        data, target = _download(key, source, download)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(source.features),
        target_names=np.unique(target),
        categorical=np.isin(source.features, list(source.categories)),
        name=source.name,
        DESCR=_description(source),
    )


def _key(name: Any) -> str:
    """Return the short name of a set; the paper's name is accepted too."""
    keys = {
        alias.casefold(): key for key, source in _SOURCES.items() for alias in (key, source.name)
    }
    key = keys.get(str(name).casefold(), name)
    check_choice("name", key, _SOURCES)
    return str(key)


def _description(source: _Source) -> str:
    """Return the text that goes with a set."""
    return (
        f"{source.name}: {source.title}, with {source.size}. {source.note}\n\n"
        "Source: UCI Machine Learning Repository, "
        f"https://archive.ics.uci.edu/dataset/{source.page}\n"
        "Licence: CC BY 4.0\n"
        "Cite: D. Dua and C. Graff, UCI Machine Learning Repository, University of California, "
        "Irvine, https://archive.ics.uci.edu, and the donors that the page above names."
    )


def _folders() -> Iterator[Path]:
    """Yield the folders to look in, best first, the cache last."""
    if named := os.environ.get(_VARIABLE):
        yield Path(named).expanduser()
        yield Path(named).expanduser() / "uci"
    yield Path(get_data_home(), "badacost", "uci")


def _find(key: str, folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the first file there is; None if there is none."""
    file = _file(key)
    if folder is None:
        return next((where / file for where in _folders() if (where / file).is_file()), None)
    path = Path(folder).expanduser() / file
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}: put {file} there, or leave out folder (a command: --data) "
            "to look elsewhere."
        )
    return path


def _file(key: str) -> str:
    """Return the name of the file of a set."""
    return f"{key}.csv.gz"


def _read(path: Path) -> str:
    """Return the text of a compressed file, which may be damaged or malicious."""
    try:
        with open_regular(path) as packed, gzip.open(packed) as file:
            data = file.read(_MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path} is not a complete gzip file ({error}): delete it and fetch it again."
        ) from error
    if len(data) > _MAX_BYTES:
        raise ValueError(
            f"{path} unpacks to more than {_MAX_BYTES} bytes: it is not a data set of Table 1."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 ({error}).") from error


def _write(path: Path, text: str) -> None:
    """Write a compressed file; the name appears only once the file is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as temporary:
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))


def _parse(text: str, source: _Source, where: str) -> tuple[FloatArray, NDArray[np.str_]]:
    """Return the samples and labels of a file, after checking that they are the paper's."""
    header, _, body = text.replace("\r\n", "\n").removesuffix("\n").partition("\n")
    _check_header(header, source, where)
    instances = body.count("\n") + 1 if body else 0
    if instances != sum(source.counts.values()):  # before lines take memory
        _refuse(f"found {instances} instances", source, where)
    lines, labels = [], []
    for number, line in enumerate(body.split("\n"), start=2):
        features, _, label = line.rpartition(",")
        if line.count(",") != len(source.features):
            raise ValueError(
                f"{where}, line {number}: found {line.count(',') + 1} columns instead of "
                f"{len(source.features) + 1}."
            )
        lines.append(features)
        labels.append(label)
    data = _numbers(_encoded(lines, source, where), source, where)
    _check_contents(data, labels, source, where)
    return data, np.array(labels)


def _check_header(header: str, source: _Source, where: str) -> None:
    """Raise unless the header has the names of the variables, and `class` last."""
    expected = (*source.features, "class")
    if header.count(",") + 1 != len(expected):
        raise ValueError(
            f"{where}: the header has {header.count(',') + 1} columns instead of {len(expected)}, "
            f"{expected[0]} to {expected[-2]} and class."
        )
    for column, (found, name) in enumerate(zip(header.split(","), expected, strict=True), start=1):
        if found != name:
            raise ValueError(
                f"{where}: column {column} of the header is {reprlib.repr(found)} instead of "
                f"{name!r}."
            )


def _encoded(lines: list[str], source: _Source, where: str) -> list[str]:
    """Return lines with the levels of categories replaced by their numbers."""
    codes = {
        column: {level: str(code) for code, level in enumerate(levels)}
        for column, name in enumerate(source.features)
        if (levels := source.categories.get(name))
    }
    if not codes:
        return lines
    encoded = []
    for number, line in enumerate(lines, start=2):
        tokens = line.split(",")
        for column, code in codes.items():
            if tokens[column] not in code:
                raise ValueError(
                    f"{where}, line {number}, column {source.features[column]}: "
                    f"{reprlib.repr(tokens[column])} is not one of the levels {', '.join(code)}."
                )
            tokens[column] = code[tokens[column]]
        encoded.append(",".join(tokens))
    return encoded


def _numbers(lines: list[str], source: _Source, where: str) -> FloatArray:
    """Return the numbers that the lines hold, all of them finite."""
    try:
        data = np.loadtxt(lines, delimiter=",", comments=None, ndmin=2)
    except ValueError:
        row = next(row for row, line in enumerate(lines) if not _is_numeric(line))
        tokens = lines[row].split(",")
        column = next(column for column, token in enumerate(tokens) if not _is_numeric(token))
    else:
        if np.isfinite(data).all():
            return data
        row, column = np.argwhere(~np.isfinite(data))[0]
    raise ValueError(
        f"{where}, line {row + 2}, column {source.features[column]}: "
        f"{reprlib.repr(lines[row].split(',')[column])} is not a finite number."
    )


def _is_numeric(tokens: str) -> bool:
    """Say whether `numpy.loadtxt` can read one or more tokens; a first one makes it no blank."""
    try:
        np.loadtxt([f"0,{tokens}"], delimiter=",", comments=None)
    except ValueError:
        return False
    return True


def _check_contents(data: FloatArray, labels: list[str], source: _Source, where: str) -> None:
    """Raise unless the class counts and the column means are those of the set."""
    found = Counter(labels)
    for label in sorted(found.keys() | source.counts.keys()):
        expected = source.counts.get(label, 0)
        if found[label] != expected:
            _refuse(
                f"found {len(found)} labels, with {found[label]} instances of "
                f"{reprlib.repr(label)} instead of {expected}",
                source,
                where,
            )
    with np.errstate(over="ignore", invalid="ignore"):  # untrusted values may be huge
        fingerprint = data.mean(axis=0) @ np.arange(1, data.shape[1] + 1)
    if not np.isclose(fingerprint, source.fingerprint, rtol=1e-6, atol=0.0):
        _refuse(
            f"the sizes agree, but the column means, weighted 1, 2, ..., add to {fingerprint:.9g} "
            f"instead of {source.fingerprint:.9g} (other values, or columns in another order)",
            source,
            where,
        )


def _refuse(found: str, source: _Source, where: str) -> NoReturn:
    """Raise for contents that are not those of the paper."""
    raise ValueError(
        f"{where} is not the paper's {source.name}: {found}; the paper has {source.size}."
        f" {source.note}".rstrip()
    )


def _download(key: str, source: _Source, allowed: bool) -> tuple[FloatArray, NDArray[np.str_]]:
    """Fetch a set from OpenML, check it, and keep it in the cache."""
    *others, cache = _folders()
    remedy = f"put {_file(key)} into a folder and set {_VARIABLE} to that folder"
    missing = (
        f"{source.name}: there is no {_file(key)} in any of "
        f"{', '.join(str(folder) for folder in (*others, cache))}, and "
    )
    if source.openml is None:
        raise FileNotFoundError(f"{missing}OpenML has no copy: {remedy}. {source.note}")
    if not allowed:
        raise FileNotFoundError(f"{missing}download is False: set it to True, or {remedy}.")
    try:
        fetched = fetch_openml(
            data_id=source.openml, as_frame=False, parser="liac-arff", cache=False
        )
    except (OSError, ValueError, EOFError, HTTPException) as error:
        raise FileNotFoundError(
            f"{missing}OpenML's data set {source.openml} could not be fetched "
            f"({type(error).__name__}: {error}): go online, or {remedy}."
        ) from error
    where = f"OpenML's data set {source.openml}"
    try:
        text = _as_text(fetched, source, where)
        data, target = _parse(text, source, where)
    except ValueError as error:
        raise ValueError(f"{error} Instead, {remedy}.") from error
    _write(cache / _file(key), text)
    return data, target


def _as_text(fetched: Bunch, source: _Source, where: str) -> str:
    """Return what OpenML sent in the format of the files, with the names that UCI uses."""
    if fetched.target is None or np.ndim(fetched.target) != 1:
        raise ValueError(f"{where} has no single class column.")
    if fetched.data.shape[1] != len(source.features):
        _refuse(f"found {fetched.data.shape[1]} variables", source, where)
    columns = [
        _tokens(column, fetched.categories.get(name))
        for name, column in zip(fetched.feature_names, fetched.data.T, strict=True)
    ]
    spelling = {label.casefold(): label for label in source.counts}
    labels = [spelling.get(token.casefold(), token) for token in _tokens(fetched.target, None)]
    rows = zip(*columns, labels, strict=True)
    return "\n".join(map(",".join, [(*source.features, "class"), *rows])) + "\n"


def _tokens(column: NDArray[Any], levels: Sequence[str] | None) -> list[str]:
    """Return a column as tokens: levels by number, numbers at full precision, or strings."""
    if levels:
        return [levels[int(code)] for code in column]
    if column.dtype.kind == "f":
        return [repr(number).removesuffix(".0") for number in column.tolist()]
    return [str(value) for value in column]
