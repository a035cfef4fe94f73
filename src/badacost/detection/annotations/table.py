"""Annotations as a table: comma-separated text with a header, a row for each object.

Columns ``image``, ``x1``, ``y1``, ``x2``, ``y2`` are needed, in continuous pixels from 0; a row
whose box is empty stands for a picture without objects. Known beside them are ``category``,
``label`` (index of the view), ``angle`` (heading in degrees), ``yaw`` (of a face, in degrees, below
0 towards the right of the image; it goes before an angle), ``ignore`` (0 or 1), ``truncation`` and
``occlusion``. A field may be empty where it is not known. Further columns are passed over.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from badacost.detection.annotations.image import UNKNOWN_VIEW, AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import Pictures, Place, read_text
from badacost.detection.annotations.views import TOWARDS_VIEWER
from badacost.io.budget import Budget

_BOX = ("x1", "y1", "x2", "y2")
_NEEDED = ("image", *_BOX)
_OPTIONAL = ("category", "label", "angle", "yaw", "ignore", "truncation", "occlusion")
_MAX_LABEL = 10**6


def read_table(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    category: str = "object",
    max_memory: int | str | None = None,
) -> list[AnnotatedImage]:
    r"""Read a table of objects.

    Parameters
    ----------
    path : str or path-like
        The CSV file.
    images : str or path-like, optional
        Folder that names of pictures start from. By default ``images`` beside the table, or its own
        folder; pictures that are not there are left out of the annotations.
    columns : mapping of str to str, optional
        What the header calls a column, where it is not as above: ``{"yaw": "yaw_est"}``.
    category : str, default="object"
        Category of objects, where the table has none.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        In the order of the first row of each.

    Raises
    ------
    AnnotationError
        Where a line is not as expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "faces.csv")
    ...     size = path.write_text(
    ...         "image,x1,y1,x2,y2,yaw_est\na.jpg,10,10,30,40,-45\na.jpg,50,10,70,40,\nb.jpg,,,,,\n"
    ...     )
    ...     images = read_table(path, columns={"yaw": "yaw_est"}, category="Face")
    >>> images
    [AnnotatedImage('a.jpg', 2 objects), AnnotatedImage('b.jpg', 0 objects)]
    >>> images[0].angles
    array([45., nan])
    """
    path = Path(path)
    pictures = Pictures.given_or_beside(images, [path.parent / "images", path.parent])
    found: dict[str, tuple[Path | None, Rows]] = {}
    for place, row in _rows(path, _checked_columns(columns), Budget.of(max_memory)):
        name = row["image"]
        if name not in found:
            found[name] = pictures.find(name, place), Rows()
        if any(row[key] for key in _BOX):
            _add_object(found[name][1], row, category, place)
    return [rows.annotated(image, name) for name, (image, rows) in found.items()]


def _checked_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return what the header calls each of our columns."""
    named = {key: key for key in (*_NEEDED, *_OPTIONAL)}
    unknown = [key for key in columns or {} if key not in named]
    if unknown:
        raise ValueError(f"columns has {unknown[0]!r:.80}; known are {', '.join(named)}.")
    return named | dict(columns or {})


def _rows(
    path: Path, columns: Mapping[str, str], budget: Budget
) -> Iterator[tuple[Place, dict[str, str]]]:
    """Yield where each row is, and its fields by our names, "" for those that are not there."""
    place = Place(path)
    reader = csv.reader(io.StringIO(read_text(path, budget), newline=""), strict=True)
    try:
        header = [field.strip() for field in next(reader, [])]
        missing = [columns[key] for key in _NEEDED if columns[key] not in header]
        if missing:
            place.at("line 1").refuse(
                f"expected a header with {', '.join(columns[key] for key in _NEEDED)}; "
                f"{missing[0]!r:.80} is not there"
            )
        index = {key: header.index(name) for key, name in columns.items() if name in header}
        for fields in filter(None, reader):
            here = place.at(f"line {reader.line_num}")
            if len(fields) != len(header):
                here.refuse(f"expected {len(header)} fields, as in the header; got {len(fields)}")
            row = dict.fromkeys(columns, "")
            yield here, row | {key: fields[i].strip() for key, i in index.items()}
    except csv.Error as error:
        place.at(f"line {reader.line_num}").refuse(f"this is not comma-separated: {error}")


def _add_object(rows: Rows, row: dict[str, str], category: str, place: Place) -> None:
    """Add the object that a row describes."""
    x1, y1, x2, y2 = (place.number(row[key], key) for key in _BOX)
    angle = math.nan
    if row["yaw"]:
        angle = place.number(row["yaw"], "yaw", -180.0, 180.0) + TOWARDS_VIEWER
    elif row["angle"]:
        angle = place.number(row["angle"], "angle", -1e6, 1e6)
    label = UNKNOWN_VIEW
    if row["label"] not in ("", "-1"):
        label = place.integer(row["label"], "label")
        if label > _MAX_LABEL:
            place.refuse(f"label must be the index of a view; got {label}")
    if row["ignore"] not in ("", "0", "1"):
        place.refuse(f"ignore must be 0 or 1; got {row['ignore']!r:.80}")
    truncation, occlusion = (
        place.number(row[key], key, 0.0, 1e6) if row[key] else math.nan
        for key in ("truncation", "occlusion")
    )
    rows.add(
        place.box(x1, y1, x2, y2),
        category=place.category(row["category"] or category),
        label=label,
        angle=angle,
        truncation=truncation,
        occlusion=occlusion,
        ignore=row["ignore"] == "1",
    )
