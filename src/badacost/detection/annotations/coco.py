"""Annotations of COCO: one JSON file for all pictures, also as labelling tools export it.

Boxes are x, y, width and height in continuous pixels from 0, as ours. Further entries of a record,
or of its ``attributes`` as CVAT writes them, are known: ``angle`` (heading in degrees), ``yaw`` (of
a face, in degrees, below 0 towards the right of the image; it goes before an angle), ``view``,
``ignore``, ``occluded``, ``truncated``, and ``rotation`` (of the box, clockwise in degrees: the box
around the turned one is read).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from badacost.detection.annotations.image import UNKNOWN_VIEW, AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import Pictures, Place, described, read_bytes
from badacost.detection.annotations.views import TOWARDS_VIEWER
from badacost.detection.annotations.voc import POSES
from badacost.io.budget import Budget, BudgetError
from badacost.io.json_document import JSONError, parse_json

_BYTES_OF_OBJECT, _BYTES_OF_IMAGE = 500, 2000
_MAX_SIDE = 10**6
_ENTRIES = ("angle", "yaw", "view", "ignore", "occluded", "truncated", "rotation")
_FLAGS = ((0, "0", "false"), (1, "1", "true"))


def read_coco(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    attributes: Mapping[str, str] | None = None,
    views: Sequence[str] | None = None,
    max_memory: int | str | None = None,
) -> list[AnnotatedImage]:
    """Read a COCO file of instances, as tools export it.

    Exports of CVAT ("COCO 1.0") and Label Studio ("COCO", "COCO with images") are read as they are
    unpacked. Of a ``file_name`` that is an address, or a path on the machine of the tool, the last
    part counts.

    Parameters
    ----------
    path : str or path-like
        The JSON file; or a folder with ``result.json`` or ``annotations/instances_*.json`` inside,
        which are all read.
    images : str or path-like, optional
        Folder that ``file_name`` starts from. By default ``images`` beside the file, or its own
        folder; for a file in a folder ``annotations``, also ``images`` beside that folder, and the
        folder of its subset. Pictures that are not there are left out of the annotations.
    attributes : mapping of str to str, optional
        What the file calls an entry of a record, where it is not ``angle``, ``yaw``, ``view``,
        ``ignore``, ``occluded``, ``truncated`` or ``rotation``: ``{"angle": "orientation"}``.
    views : sequence of str, optional
        Names of the views, in the order of their labels, to label objects by their entry ``view``.
        By default a view of right, front, left or rear tells the angle where there is none.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        In the order of the file, also those without objects. Crowds are ignored. Truncation and
        occlusion are 1 where they are marked.

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
    ...     "annotations": [
    ...         {
    ...             "image_id": 1,
    ...             "category_id": 3,
    ...             "bbox": [10, 20, 30, 15],
    ...             "attributes": {"occluded": True, "angle": "90"},
    ...         }
    ...     ],
    ... }
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "instances.json")
    ...     size = path.write_text(json.dumps(document))
    ...     (picture,) = read_coco(path)
    >>> picture.categories, picture.boxes, picture.size
    (('car',), array([[10., 20., 40., 35.]]), (60, 80))
    >>> picture.angles, picture.occlusion
    (array([90.]), array([1.]))
    """
    called = _checked_attributes(attributes)
    labels = None if views is None else {name: label for label, name in enumerate(views)}
    path = Path(path)
    files = coco_files(path) if path.is_dir() else [path]
    if not files:
        Place(path).refuse("expected result.json or annotations/instances_*.json in this folder")
    budget = Budget.of(max_memory)
    return [image for file in files for image in _read_file(file, images, called, labels, budget)]


def coco_files(folder: Path) -> list[Path]:
    """Return the files of instances in an export of Label Studio, or in one of CVAT."""
    result = folder / "result.json"
    return [result] if result.is_file() else sorted(folder.glob("annotations/instances_*.json"))


def _read_file(
    path: Path,
    images: str | os.PathLike[str] | None,
    called: Mapping[str, str],
    labels: Mapping[str, int] | None,
    budget: Budget,
) -> list[AnnotatedImage]:
    """Read the pictures of one file."""
    place = Place(path)
    document = _parsed(path, budget)
    pictures = Pictures.given_or_beside(images, _usual_folders(path))
    categories = {
        _id(record, "id", here): here.category(record.get("name"))
        for here, record in _records(document, "categories", place)
    }
    rows: dict[int | str, Rows] = {}
    heads: list[tuple[int | str, Path | None, str, tuple[int, int] | None]] = []
    shortened: set[str] = set()
    for here, record in _records(document, "images", place):
        image_id = _id(record, "id", here)
        if image_id in rows:
            here.refuse(f"the id {described(image_id)} is that of an earlier image")
        rows[image_id] = Rows()
        name = record.get("file_name")
        if not isinstance(name, str):
            here.refuse(f"file_name must be a string; got {described(name)}")
        local = _local_name(name)
        if local != name:
            if local in shortened:
                here.refuse(f"{local!r:.80} is the last part of two names: rename one picture")
            shortened.add(local)
        heads.append((image_id, pictures.find(local, here), local, _size(record, here)))
    for here, record in _records(document, "annotations", place):
        image_id, category_id = _id(record, "image_id", here), _id(record, "category_id", here)
        if image_id not in rows:
            here.refuse(f"image_id {described(image_id)} is not the id of an image")
        if category_id not in categories:
            here.refuse(f"category_id {described(category_id)} is not the id of a category")
        entries = _entries(record, called, here)
        _add_object(rows[image_id], record, entries, categories[category_id], labels, here)
    return [rows[image_id].annotated(image, name, size) for image_id, image, name, size in heads]


def _usual_folders(path: Path) -> list[Path]:
    """Return where tools keep the pictures of a file."""
    folder = path.parent
    usual = [folder / "images"]
    if folder.absolute().name == "annotations":
        root, subset = folder.absolute().parent, path.stem.removeprefix("instances_")
        usual += [root / "images" / subset, root / "images", root / subset]
    return [*usual, folder]


def _local_name(name: str) -> str:
    """Return a name without what leads out of a folder: only the last part of such a name."""
    path, _, query = name.replace("\\", "/").partition("?")
    if query.startswith("d="):  # local storage of Label Studio: /data/local-files/?d=drive/a.jpg
        path = unquote(query[2:])
    elif "://" in path:
        path = unquote(path)
    elif not (path[:1] == "/" or path[1:2] == ":" or ".." in path.split("/")):
        return name
    return path.rpartition("/")[2]


def _parsed(path: Path, budget: Budget) -> dict[str, Any]:
    """Return the object that a file holds."""
    place = Place(path)
    data = read_bytes(path, budget)
    try:
        document = parse_json(data, budget)
    except JSONError as error:
        place = place.at(f"line {error.line}") if error.line else place
        place.refuse(f"this is not JSON: {error}")
    except BudgetError as error:
        place.refuse(str(error))
    if not isinstance(document, dict):
        place.refuse("expected an object with images, annotations and categories")
    for key, size in (("images", _BYTES_OF_IMAGE), ("annotations", _BYTES_OF_OBJECT)):
        if isinstance(document.get(key), list):
            place.check(budget, size * len(document[key]))
    return document


def _records(
    document: dict[str, Any], key: str, place: Place
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the records of a list, and where they are."""
    records = document.get(key)
    if not isinstance(records, list):
        place.refuse(f"expected a list {key!r}; got {described(records)}")
    for number, record in enumerate(records):
        here = place.at(f"{key} {number}")
        if not isinstance(record, dict):
            here.refuse(f"expected an object; got {described(record)}")
        yield here, record


def _id(record: dict[str, Any], key: str, place: Place) -> int | str:
    """Return an identifier."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str):
        place.refuse(f"{key} must be an integer or a string; got {described(value)}")
    return value


def _size(record: dict[str, Any], place: Place) -> tuple[int, int] | None:
    """Return height and width, where they are given."""
    if record.get("height") is None and record.get("width") is None:
        return None
    sides = []
    for key in ("height", "width"):
        side = place.checked_number(record.get(key), key, 1, _MAX_SIDE)
        if side != int(side):
            place.refuse(f"{key} must be an integer; got {side!r}")
        sides.append(int(side))
    return sides[0], sides[1]


def _checked_attributes(attributes: Mapping[str, str] | None) -> dict[str, str]:
    """Return what a file calls each of our entries."""
    unknown = [key for key in attributes or {} if key not in _ENTRIES]
    if unknown:
        raise ValueError(f"attributes has {unknown[0]!r:.80}; known are {', '.join(_ENTRIES)}.")
    return {key: key for key in _ENTRIES} | dict(attributes or {})


def _entries(record: dict[str, Any], called: Mapping[str, str], place: Place) -> dict[str, Any]:
    """Return what a record says beside its box, by our names; None or "" says nothing."""
    attributes = record.get("attributes")
    if not isinstance(attributes, dict | None):
        place.refuse(f"attributes must be an object; got {described(attributes)}")
    given = record | (attributes or {})
    return {
        key: given[name] for key, name in called.items() if given.get(name) not in (None, "", [])
    }


def _add_object(
    rows: Rows,
    record: dict[str, Any],
    entries: dict[str, Any],
    category: str,
    labels: Mapping[str, int] | None,
    place: Place,
) -> None:
    """Add the object that a record describes."""
    bounds = record.get("bbox")
    if not isinstance(bounds, list) or len(bounds) != 4:
        place.refuse(
            f"bbox must be a list of x, y, width, height; got {described(bounds)}: export boxes"
        )
    x, y, width, height = (place.checked_number(value, "bbox") for value in bounds)
    box = place.box(x, y, x + width, y + height)
    rotation = _number(entries, "rotation", place, -1e6, 1e6) if "rotation" in entries else 0.0
    if rotation:
        box = place.box(*_around(box, rotation))
    angle = math.nan
    if "yaw" in entries:
        angle = _number(entries, "yaw", place, -180.0, 180.0) + TOWARDS_VIEWER
    elif "angle" in entries:
        angle = _number(entries, "angle", place, -1e6, 1e6)
    elif labels is None and isinstance(entries.get("view"), str):
        angle = POSES.get(entries["view"].lower(), math.nan)
    rows.add(
        box,
        category=category,
        label=UNKNOWN_VIEW if labels is None else _label(entries, labels, place),
        angle=angle,
        truncation=_flag(entries, "truncated", place),
        occlusion=_flag(entries, "occluded", place),
        ignore=1.0 in (_flag(record, "iscrowd", place), _flag(entries, "ignore", place)),
    )


def _label(entries: Mapping[str, Any], labels: Mapping[str, int], place: Place) -> int:
    """Return the index of the view that an object names, -1 where it names none."""
    view = entries.get("view")
    if view is None:
        return UNKNOWN_VIEW
    if not isinstance(view, str) or view not in labels:
        place.refuse(f"view must be one of {', '.join(labels):.300}; got {described(view)}")
    return labels[view]


def _number(entries: Mapping[str, Any], key: str, place: Place, low: float, high: float) -> float:
    """Return a number, also one that a tool writes as text."""
    value = entries[key]
    if isinstance(value, str):
        return place.number(value.strip(), key, low, high)
    return place.checked_number(value, key, low, high)


def _flag(entries: Mapping[str, Any], key: str, place: Place) -> float:
    """Return 0 or 1, NaN where the flag is not given."""
    value = entries.get(key)
    if value is None:
        return math.nan
    flag = value.lower() if isinstance(value, str) else value
    for number, spellings in enumerate(_FLAGS):
        if flag in spellings:
            return float(number)
    place.refuse(f"{key} must be 0 or 1; got {described(value)}")


def _around(
    box: tuple[float, float, float, float], degrees: float
) -> tuple[float, float, float, float]:
    """Return the box around one that is turned about its centre."""
    x1, y1, x2, y2 = box
    cos, sin = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
    half_width = ((x2 - x1) * cos + (y2 - y1) * sin) / 2.0
    half_height = ((x2 - x1) * sin + (y2 - y1) * cos) / 2.0
    x, y = (x1 + x2) / 2.0, (y1 + y2) / 2.0
    return x - half_width, y - half_height, x + half_width, y + half_height
