"""Results in files: what `badacost detect` writes, and other programs in the same formats."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from badacost.detection.boxes import UNNAMED, Detections
from badacost.detection.interchange.coco import from_coco
from badacost.detection.interchange.json_lines import from_json_lines
from badacost.detection.interchange.kitti import from_kitti
from badacost.detection.interchange.result_writers import RESULT_SUFFIXES
from badacost.detection.interchange.table import from_csv
from badacost.io.budget import Budget, BudgetError
from badacost.io.json_document import JSONError, parse_json
from badacost.io.user_file import open_regular

# Bytes of the text, once as bytes and twice as text, and of a line, an image of its own.
_BYTES_OF_TEXT, _BYTES_OF_LINE, _BYTES_OF_FIELDS = 4, 800, 25
_MAX_VIEWS = 360
_KITTI_ALPHA = 3  # place of the heading in a line of KITTI


def read_results(
    path: str | os.PathLike[str],
    category: str | None = None,
    *,
    max_memory: int | str | None = None,
) -> dict[str, Detections]:
    """Read the detections of a file or folder.

    Parameters
    ----------
    path : str or path-like
        A file of JSON lines (.jsonl or .ndjson), a table (.csv) whose columns view, angle and
        category may be missing, records or a document of COCO (.json), or a folder of KITTI with a
        .txt file for each image.
    category : str, optional
        Which type of objects to read from a folder of KITTI that has several, and the category of
        records of COCO, which do not name it.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    dict of str to Detections
        What was found in each image. Each heading that occurs in a folder of KITTI is a view.

    Raises
    ------
    ValueError
        Where a file is not as expected; the message has the line or the record.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.interchange import read_results
    >>> with TemporaryDirectory() as folder:
    ...     size = Path(folder, "000001.txt").write_text(
    ...         "Car -1 -1 1.57 1 2 30 50 -1 -1 -1 -1000 -1000 -1000 -10 0.5"
    ...     )
    ...     read_results(folder)
    {'000001.txt': Detections(1 box of 'Car' in 1 view, scores from 0.5 to 0.5)}
    """
    path, budget = Path(path), Budget.of(max_memory)
    if path.is_dir():
        return _kitti_results(path, category, budget)
    suffix = path.suffix.lower()
    if suffix not in RESULT_SUFFIXES:
        raise ValueError(
            f"cannot infer the format of {str(path)!r}: its name must end in one of "
            f"{', '.join(RESULT_SUFFIXES)}."
        )
    try:
        data = _contents(path, budget)
        if suffix == ".json":
            found = from_coco(_parsed(data, budget), category=category)
            return {str(name): detections for name, detections in found.items()}
        text = _text(data, budget)
        return (
            from_csv(text)
            if suffix == ".csv"
            else from_json_lines(text, max_memory=budget.max_memory)
        )
    except BudgetError as error:
        raise ValueError(f"cannot read the results {str(path)!r}: {error}.") from error
    except ValueError as error:
        raise ValueError(f"{str(path)!r}: {error}") from error


def _contents(path: Path, budget: Budget) -> bytes:
    """Return the bytes of a regular file."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        budget.check(_BYTES_OF_TEXT * size)
        return file.read(size)


def _text(data: bytes, budget: Budget) -> str:
    """Return the contents of a file of text, whose lines may be images."""
    longest = max(map(len, data.splitlines()), default=0)
    n_bytes = _BYTES_OF_TEXT * len(data) + _BYTES_OF_LINE * data.count(b"\n")
    budget.check(n_bytes + _BYTES_OF_FIELDS * longest)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("this is not a file of text: name results.") from error


def _parsed(data: bytes, budget: Budget) -> Any:
    """Return what a file of JSON holds."""
    try:
        return parse_json(data, budget)
    except JSONError as error:
        raise ValueError(f"the results are not JSON: {error}.") from error


def _kitti_results(folder: Path, category: str | None, budget: Budget) -> dict[str, Detections]:
    """Return results of KITTI."""
    texts = {}
    for path in sorted(folder.rglob("*.txt")):
        data = _contents(path, budget)
        try:
            texts[str(path.relative_to(folder))] = _text(data, budget)
        except ValueError as error:
            raise ValueError(f"{str(path)!r}: {error}") from error
    if not texts:
        raise ValueError(f"the folder {str(folder)!r} has no .txt files of results: name another.")
    category = _kitti_type(texts, category)
    headings = _headings(texts, category)
    views = [f"{heading:g}°" for heading in headings] if headings else [category]
    found = {}
    for name, text in texts.items():
        try:
            found[name] = from_kitti(text, views, headings or None, category)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found


def _kitti_type(texts: Mapping[str, str], category: str | None) -> str:
    """Return the type of results to read: the only one, or the category as the files spell it."""
    types = sorted(
        {line.split()[0] for text in texts.values() for line in text.splitlines() if line.strip()}
    )
    if category is not None:
        wanted = [name for name in types if name.casefold() == category.casefold()]
        if types and not wanted:
            warnings.warn(
                f"no detection is of {category!r:.80}; they are of {', '.join(types):.200}.",
                stacklevel=4,
            )
    else:
        wanted = types
    if len(wanted) > 1 and len({name.casefold() for name in wanted}) == 1:
        raise ValueError(f"the type of the results is spelled {', '.join(wanted)}: choose one.")
    if len(wanted) > 1:
        raise ValueError(
            f"the results are of {', '.join(wanted):.200}: give category (--category)."
        )
    return wanted[0] if wanted else category or UNNAMED


def _headings(texts: Mapping[str, str], category: str) -> list[float]:
    """Return distinct headings in degrees, whole ones if they are many; none if one is unknown."""
    headings = set()
    for text in texts.values():
        for line in text.splitlines():
            fields = line.split()
            if not fields or fields[0] != category:
                continue
            try:
                alpha = float(fields[_KITTI_ALPHA])
            except (IndexError, ValueError):
                continue  # the reader will tell what is wrong with the line, if anything
            if not abs(alpha) <= math.pi + 0.01:
                return []
            headings.add(round(math.degrees(alpha), 3))
    return sorted(headings if len(headings) <= _MAX_VIEWS else {float(round(h)) for h in headings})
