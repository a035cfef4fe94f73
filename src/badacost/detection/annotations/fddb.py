"""Annotations of FDDB: faces as ellipses, all pictures in one list.

For each picture the list has its name without suffix, the number of its faces, and for each face a
line ``major_radius minor_radius angle centre_x centre_y 1``, the angle from the x axis to the major
axis in radians. The box of a face is the one around its ellipse, in coordinates as they stand.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import Pictures, Place, read_lines
from badacost.detection.boxes import MAX_COORDINATE
from badacost.io.budget import Budget

_FIELDS = "major_radius minor_radius angle centre_x centre_y 1"


def read_fddb(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    max_memory: int | str | None = None,
) -> list[AnnotatedImage]:
    r"""Read a list of FDDB ellipses.

    Parameters
    ----------
    path : str or path-like
        The list.
    images : str or path-like, optional
        Folder that names in the list start from. By default ``images`` or ``originalPics`` beside
        the list, or its own folder; pictures that are not there are left out of the annotations.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        With `ellipses`, and boxes around them; the category is "Face".

    Raises
    ------
    AnnotationError
        Where a line is not as expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_fddb
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "ellipses.txt")
    ...     size = path.write_text("2002/08/img_1\n1\n30 20 1.5708 50 60 1\n")
    ...     (picture,) = read_fddb(path)
    >>> picture, picture.boxes.round(2)
    (AnnotatedImage('2002/08/img_1', 1 object), array([[30., 30., 70., 90.]]))
    """
    path = Path(path)
    usual = [path.parent / "images", path.parent / "originalPics", path.parent]
    pictures = Pictures.given_or_beside(images, usual)
    lines = read_lines(path, Budget.of(max_memory))
    annotated = []
    for place, name in lines:
        picture = pictures.find(name, place)
        annotated.append(_faces(lines, place).annotated(picture, name))
    return annotated


def _faces(lines: Iterator[tuple[Place, str]], name_place: Place) -> Rows:
    """Return the faces that follow the name of a picture."""
    place, text = next(lines, (name_place, ""))
    count = place.integer(text, "the line after the name of a picture")
    rows = Rows()
    for number in range(count):
        place, line = next(lines, (place, ""))
        fields = line.split()
        if len(fields) not in (5, 6):
            place.refuse(f"expected face {number + 1} of {count} as {_FIELDS!r}; got {line!r:.80}")
        a, b, turn, x, y = (
            place.number(text, f"field {i}") for i, text in enumerate(fields[:5], start=1)
        )
        if not (0.0 < a <= MAX_COORDINATE and 0.0 < b <= MAX_COORDINATE):
            place.refuse("the radii of an ellipse must be greater than 0")
        half_width = math.hypot(a * math.cos(turn), b * math.sin(turn))
        half_height = math.hypot(a * math.sin(turn), b * math.cos(turn))
        box = place.box(x - half_width, y - half_height, x + half_width, y + half_height)
        rows.add(box, category="Face", ellipse=(a, b, turn, x, y))
    return rows
