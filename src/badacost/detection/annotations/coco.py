"""Annotations of COCO: one JSON file for all pictures.

Boxes are x, y, width and height in continuous pixels from 0, as ours. A record may have further
entries of its own: ``angle``, the heading in degrees, and ``ignore``.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import Pictures, Place, described, read_text

_MAX_BYTES = 2**30  # the instances of COCO's training set take 448 MB
_MAX_SIDE = 10**6


def read_coco(
    path: str | os.PathLike[str], *, images: str | os.PathLike[str] | None = None
) -> list[AnnotatedImage]:
    """Read a COCO file of instances.

    Parameters
    ----------
    path : str or path-like
        The JSON file.
    images : str or path-like, optional
        Folder that ``file_name`` starts from. By default ``images`` beside the file, or its own
        folder; pictures that are not there are left out of the annotations.

    Returns
    -------
    list of AnnotatedImage
        In the order of the file, also those without objects. Crowds are ignored.

    Raises
    ------
    AnnotationError
        Where a record is not as expected; records are counted from 0.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_coco
    >>> document = {
    ...     "categories": [{"id": 3, "name": "car"}],
    ...     "images": [{"id": 1, "file_name": "a.jpg", "height": 60, "width": 80}],
    ...     "annotations": [{"image_id": 1, "category_id": 3, "bbox": [10, 20, 30, 15]}],
    ... }
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "instances.json")
    ...     size = path.write_text(json.dumps(document))
    ...     (picture,) = read_coco(path)
    >>> picture.categories, picture.boxes, picture.size
    (('car',), array([[10., 20., 40., 35.]]), (60, 80))
    """
    path = Path(path)
    place = Place(path)
    document = _parsed(path)
    pictures = Pictures.given_or_beside(images, [path.parent / "images", path.parent])
    categories = {
        _id(record, "id", here): here.category(record.get("name"))
        for here, record in _records(document, "categories", place)
    }
    rows: dict[int | str, Rows] = {}
    heads: list[tuple[int | str, Path | None, str, tuple[int, int] | None]] = []
    for here, record in _records(document, "images", place):
        image_id = _id(record, "id", here)
        if image_id in rows:
            here.refuse(f"the id {described(image_id)} is that of an earlier image")
        rows[image_id] = Rows()
        name = record.get("file_name")
        if not isinstance(name, str):
            here.refuse(f"file_name must be a string; got {described(name)}")
        heads.append((image_id, pictures.find(name, here), name, _size(record, here)))
    for here, record in _records(document, "annotations", place):
        image_id, category_id = _id(record, "image_id", here), _id(record, "category_id", here)
        if image_id not in rows:
            here.refuse(f"image_id {described(image_id)} is not the id of an image")
        if category_id not in categories:
            here.refuse(f"category_id {described(category_id)} is not the id of a category")
        _add_object(rows[image_id], record, categories[category_id], here)
    return [rows[image_id].annotated(image, name, size) for image_id, image, name, size in heads]


def _parsed(path: Path) -> dict[str, Any]:
    """Return the object that a file holds."""
    place = Place(path)
    text = read_text(path, _MAX_BYTES)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        place.at(f"line {error.lineno}").refuse(f"this is not JSON: {error.msg}")
    except RecursionError:
        place.refuse("lists are nested too deep for an annotation of COCO")
    except ValueError:
        place.refuse("an integer has too many digits")
    if not isinstance(document, dict):
        place.refuse("expected an object with images, annotations and categories")
    return document


def _records(
    document: dict[str, Any], key: str, place: Place
) -> list[tuple[Place, dict[str, Any]]]:
    """Return the records of a list, and where they are."""
    records = document.get(key)
    if not isinstance(records, list):
        place.refuse(f"expected a list {key!r}; got {described(records)}")
    found = []
    for number, record in enumerate(records):
        here = place.at(f"{key} {number}")
        if not isinstance(record, dict):
            here.refuse(f"expected an object; got {described(record)}")
        found.append((here, record))
    return found


def _id(record: dict[str, Any], key: str, place: Place) -> int | str:
    """Return an identifier."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str):
        place.refuse(f"{key} must be an integer or a string; got {described(value)}")
    return value


def _size(record: dict[str, Any], place: Place) -> tuple[int, int] | None:
    """Return height and width, where they are given."""
    if "height" not in record and "width" not in record:
        return None
    sides = []
    for key in ("height", "width"):
        side = place.checked_number(record.get(key), key, 1, _MAX_SIDE)
        if side != int(side):
            place.refuse(f"{key} must be an integer; got {side!r}")
        sides.append(int(side))
    return sides[0], sides[1]


def _add_object(rows: Rows, record: dict[str, Any], category: str, place: Place) -> None:
    """Add the object that a record describes."""
    bounds = record.get("bbox")
    if not isinstance(bounds, list) or len(bounds) != 4:
        place.refuse(f"bbox must be a list of x, y, width, height; got {described(bounds)}")
    x, y, width, height = (place.checked_number(value, "bbox") for value in bounds)
    angle = record.get("angle")
    ignored = False
    for key in ("iscrowd", "ignore"):
        flag = record.get(key, 0)
        if not isinstance(flag, int) or flag not in (0, 1):
            place.refuse(f"{key} must be 0 or 1; got {described(flag)}")
        ignored = ignored or bool(flag)
    rows.add(
        place.box(x, y, x + width, y + height),
        category=category,
        angle=math.nan if angle is None else place.checked_number(angle, "angle", -1e6, 1e6),
        ignore=ignored,
    )
