"""Detections to and from tables: comma-separated text, and data frames of pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost.detection.boxes import Detections, check_name, check_same_views
from badacost.detection.interchange.records import (
    Rows,
    checked_box,
    checked_image,
    checked_label,
    checked_text,
    parsed,
)

if TYPE_CHECKING:
    import pandas as pd

_HEADER = ["image", "x1", "y1", "x2", "y2", "score", "view", "angle", "category"]
_OPTIONAL = {"view": "object", "angle": "", "category": "object"}


def to_csv(images: Mapping[str, Detections]) -> str:
    """Return the detections of images as a table, a row for each.

    Parameters
    ----------
    images : mapping of str to Detections
        What was found in each image, all of the same views.

    Returns
    -------
    str
        Comma-separated text with a header, and numbers with all their digits. The angle is empty
        where views have none.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.interchange import to_csv
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"], category="Face")
    >>> print(to_csv({"a.png": found}), end="")
    image,x1,y1,x2,y2,score,view,angle,category
    a.png,1.0,2.0,4.0,6.0,0.5,front,,Face
    """
    check_same_views(images.values())
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_HEADER)
    for image, detections in images.items():
        checked_image(image, "image")
        angles = detections.angles or [""] * len(detections.names)
        for box, score, label in zip(
            detections.boxes.tolist(), detections.scores.tolist(), detections.labels, strict=True
        ):
            view = [detections.names[label], angles[label], detections.category]
            writer.writerow([image, *box, score, *view])
    return file.getvalue()


def from_csv(
    text: str, names: Sequence[str] | None = None, angles: Sequence[float] | None = None
) -> dict[str, Detections]:
    r"""Return the detections in a table, as `to_csv` writes it.

    Parameters
    ----------
    text : str
        Comma-separated text with a header: ``image``, ``x1``, ``y1``, ``x2``, ``y2`` and ``score``,
        and perhaps ``view``, ``angle`` and ``category``, in any order.
    names : sequence of str, optional
        Names of the views; by default those in the table, in the order of their first rows, or
        "object" where it has no views.
    angles : sequence of float, optional
        Heading of each of the `names` in degrees, which the table must agree with. By default the
        angles of the table, or none if a view has no row with an angle. An empty field agrees.

    Returns
    -------
    dict of str to Detections
        What was found in each image, in the order of the table.

    Raises
    ------
    ValueError
        Where a line is not as expected.

    Examples
    --------
    >>> from badacost.detection.interchange import from_csv
    >>> rows = ["image,x1,y1,x2,y2,score,view,angle,category", "a.png,1,2,4,6,0.5,front,90,Face"]
    >>> from_csv("\n".join(rows))
    {'a.png': Detections(1 box of 'Face' in 1 view, scores from 0.5 to 0.5)}
    """
    if names is None and angles is not None:
        raise ValueError("names must be given where angles are.")
    known = Detections.empty(() if names is None else names, angles)
    labels = {name: label for label, name in enumerate(known.names)}
    angle_of = dict(zip(known.names, known.angles, strict=True)) if known.angles else {}
    category = None
    images: dict[str, Rows] = {}
    for where, row in _csv_rows(text):
        image, view = row["image"], row["view"]
        category = row["category"] if category is None else category
        if row["category"] != category:
            raise ValueError(f"{where}: category must be {category!r:.80}, as in the lines before.")
        if names is None:
            labels.setdefault(view, len(labels))
        label = checked_label(view, labels, where)
        if row["angle"]:
            angle = parsed(row["angle"], f"{where}: angle")
            if angle_of.setdefault(view, angle) != angle:
                raise ValueError(f"{where}: angle must be {angle_of[view]}, the one of its view.")
        *box, score = (
            parsed(row[key], f"{where}: {key}") for key in ("x1", "y1", "x2", "y2", "score")
        )
        images.setdefault(image, Rows()).add(checked_box(box, where), score, label)
    every_angle = [angle_of[name] for name in labels] if set(labels) == set(angle_of) else None
    kind = Detections.empty(list(labels), every_angle, category or "object")
    return {image: rows.detections(kind) for image, rows in images.items()}


def to_frame(detections: Detections) -> pd.DataFrame:
    """Return the detections as a data frame of pandas, a row for each.

    Parameters
    ----------
    detections : Detections
        What was found in an image.

    Returns
    -------
    pandas.DataFrame
        The columns of `to_csv`: ``image`` is the name of the source, "" where it is not known, and
        ``angle`` is NaN where views have none. Frames of videos have ``frame`` and ``time``, too.

    Raises
    ------
    ImportError
        Where pandas is not installed.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.interchange import to_frame
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"], category="Face")
    >>> to_frame(found)[["x1", "y1", "x2", "y2", "score", "view", "category"]]
        x1   y1   x2   y2  score   view category
    0  1.0  2.0  4.0  6.0    0.5  front     Face
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError('data frames need pandas: run pip install "badacost[tables]".') from error
    source = detections.source
    angles = np.full(len(detections.names), np.nan) if not detections.angles else detections.angles
    columns: dict[str, Any] = {"image": "" if source is None else source.name}
    columns |= dict(zip(("x1", "y1", "x2", "y2"), detections.boxes.T, strict=True))
    columns |= {
        "score": detections.scores,
        "view": detections.views,
        "angle": np.asarray(angles)[detections.labels],
        "category": detections.category,
    }
    if source is not None and source.frame is not None:
        columns |= {"frame": source.frame, "time": source.time}
    return pd.DataFrame(columns, index=range(len(detections)))


def _csv_rows(text: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row of a table of detections is, and its fields, the names checked."""
    reader = csv.reader(io.StringIO(checked_text(text), newline=""), strict=True)
    try:
        header = next(reader, [])
        missing = [key for key in _HEADER if key not in header and key not in _OPTIONAL]
        if missing or len(set(header)) < len(header):
            wrong = f"{missing[0]!r} is not there" if missing else "a name is there twice"
            raise ValueError(f"line 1: expected the header {','.join(_HEADER)}; {wrong}.")
        for fields in filter(None, reader):
            where = f"line {reader.line_num}"
            if len(fields) != len(header):
                raise ValueError(f"{where}: expected {len(header)} fields; got {len(fields)}.")
            row = _OPTIONAL | dict(zip(header, fields, strict=True))
            checked_image(row["image"], f"{where}: image")
            check_name(f"{where}: view", row["view"])
            check_name(f"{where}: category", row["category"])
            yield where, row
    except csv.Error as error:
        raise ValueError(
            f"line {reader.line_num}: this is not comma-separated: {error}."
        ) from error
