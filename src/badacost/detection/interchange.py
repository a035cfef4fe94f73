"""Detections to and from the formats of other tools: supervision, COCO, KITTI, CSV, JSON lines.

Each format has a writer ``to_...`` and a reader ``from_...``. Readers do not trust their input:
whatever is wrong with it is a ValueError that says in which line or record, and what is
expected there. A format that lists detections, not images, cannot say that nothing was found in an
image: COCO and CSV leave such images out; JSON lines do not.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost.detection.annotations.views import nearest_view
from badacost.detection.boxes import MAX_COORDINATE, Detections, check_name, check_same_views

if TYPE_CHECKING:
    import supervision

_CSV_HEADER = ["image", "x1", "y1", "x2", "y2", "score", "view", "angle", "category"]
_JSON_KEYS = ("image", "detections", "names", "angles", "category")
_KITTI_FIELDS = 16
_KITTI_ROUNDING = 1e-5
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass
class _Rows:
    """Detections of one image while its rows are read."""

    boxes: list[Sequence[float]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def add(self, box: Sequence[float], score: float, label: int) -> None:
        self.boxes.append(box)
        self.scores.append(score)
        self.labels.append(label)

    def detections(self, kind: Detections) -> Detections:
        """Return the rows as detections with the names, angles and category of `kind`."""
        return replace(
            kind,
            boxes=np.array(self.boxes, dtype=np.float64).reshape(-1, 4),
            scores=np.array(self.scores, dtype=np.float64),
            labels=np.array(self.labels, dtype=np.int64),
        )


def to_supervision(detections: Detections) -> supervision.Detections:
    """Return the detections as those of the package supervision.

    Parameters
    ----------
    detections : Detections
        What was found in an image.

    Returns
    -------
    supervision.Detections
        With the index of the view as ``class_id``, the score as ``confidence``, the name of the
        view under ``data["class_name"]`` where supervision's annotators look for it, and its angle
        under ``data["angle"]`` if views have one.

    Raises
    ------
    ImportError
        Where supervision is not installed.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.interchange import to_supervision
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [1], ["front", "left"], angles=[90.0, 180.0])
    >>> boxes = to_supervision(found)
    >>> boxes.xyxy, boxes.class_id
    (array([[1., 2., 4., 6.]]), array([1]))
    >>> boxes.data["class_name"].tolist(), boxes.data["angle"].tolist()
    (['left'], [180.0])
    """
    data: dict[str, Any] = {"class_name": np.array(detections.views, dtype=np.str_)}
    if detections.angles is not None:
        data["angle"] = np.array(detections.angles)[detections.labels]
    return _import_supervision().Detections(
        xyxy=detections.boxes.copy(),
        confidence=detections.scores.copy(),
        class_id=detections.labels.copy(),
        data=data,
    )


def from_supervision(
    found: supervision.Detections,
    names: Sequence[str],
    angles: Sequence[float] | None = None,
    category: str = "object",
) -> Detections:
    """Return detections of the package supervision as `Detections`.

    Parameters
    ----------
    found : supervision.Detections
        With ``confidence`` and ``class_id``.
    names : sequence of str
        Name of the view of each ``class_id``.
    angles : sequence of float, optional
        Heading of each view in degrees.
    category : str, default="object"
        What all the views are of.

    Returns
    -------
    Detections
        In the same order.

    Raises
    ------
    ImportError
        Where supervision is not installed.
    ValueError
        Where a ``class_id`` has no name, or scores, classes or boxes are not as expected.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.interchange import from_supervision, to_supervision
    >>> found = Detections([[1, 2, 4, 6], [8, 2, 12, 6]], [0.5, 0.9], [0, 0], names=["front"])
    >>> boxes = to_supervision(found)
    >>> from_supervision(boxes[boxes.confidence > 0.6], names=["front"], category="Face")
    Detections(1 box of 'Face' in 1 view, scores from 0.9 to 0.9)
    """
    if not isinstance(found, _import_supervision().Detections):
        raise TypeError(f"expected supervision.Detections; got {type(found).__name__}.")
    kind = Detections.empty(names, angles, category)
    if len(found) == 0:
        return kind
    if found.confidence is None or found.class_id is None:
        raise ValueError("the detections need a confidence and a class_id: set both of them.")
    return replace(kind, boxes=found.xyxy, scores=found.confidence, labels=found.class_id)


def to_coco(
    detections: Detections, image_id: int | str, category_ids: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """Return the detections of an image as records of a COCO results file.

    Parameters
    ----------
    detections : Detections
        What was found in the image.
    image_id : int or str
        The image.
    category_ids : sequence of int, optional
        ``category_id`` of each view; the same one for all if the ground truth does not know views.
        By default 1 for the first view, 2 for the second, and so on.

    Returns
    -------
    list of dict
        ``image_id``, ``category_id``, ``bbox`` (x, y, width, height), ``score``, and ``view``, the
        name of the view, which other readers of the format ignore.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.interchange import to_coco
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"])
    >>> to_coco(found, image_id=7)
    [{'image_id': 7, 'category_id': 1, 'bbox': [1.0, 2.0, 3.0, 4.0], 'score': 0.5, 'view': 'front'}]
    """
    image_id = _checked_image_id(image_id, "image_id")
    ids = _checked_category_ids(category_ids, len(detections.names))
    return [
        {
            "image_id": image_id,
            "category_id": ids[label],
            "bbox": [*box[:2], *size],
            "score": score,
            "view": detections.names[label],
        }
        for box, size, score, label in zip(
            detections.boxes.tolist(),
            detections.sizes.tolist(),
            detections.scores.tolist(),
            detections.labels.tolist(),
            strict=True,
        )
    ]


def from_coco(
    records: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    category_ids: Sequence[int] | None = None,
    angles: Sequence[float] | None = None,
    category: str = "object",
) -> dict[int | str, Detections]:
    """Return the detections in records of a COCO results file.

    Parameters
    ----------
    records : iterable of mappings
        As `to_coco` makes them, or another tool without ``view``.
    names : sequence of str
        Name of each view.
    category_ids : sequence of int, optional
        ``category_id`` of each view; 1, 2, ... by default.
    angles : sequence of float, optional
        Heading of each view in degrees.
    category : str, default="object"
        What all the views are of.

    Returns
    -------
    dict of int or str to Detections
        What was found in each image, in the order of the records.

    Raises
    ------
    ValueError
        Where a record is not as expected; the message has its number, counted from 0.

    Examples
    --------
    >>> from badacost.detection.interchange import from_coco
    >>> records = [{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5}]
    >>> found = from_coco(records, names=["front", "left"], category_ids=[2, 3])
    >>> found[7].boxes, found[7].views
    (array([[1., 2., 4., 6.]]), ['left'])
    """
    kind = Detections.empty(names, angles, category)
    ids = _checked_category_ids(category_ids, len(kind.names))
    if isinstance(records, str | Mapping) or not isinstance(records, Iterable):
        raise ValueError(f"records must be a list of records; got {type(records).__name__}.")
    images: dict[int | str, _Rows] = {}
    for number, record in enumerate(records):
        where = f"record {number}"
        if not isinstance(record, Mapping):
            raise ValueError(f"{where}: expected an object with a bbox; got {_shown(record)}.")
        missing = [key for key in ("image_id", "category_id", "bbox", "score") if key not in record]
        if missing:
            raise ValueError(f"{where}: {missing[0]} is missing; every record needs it.")
        image_id = _checked_image_id(record["image_id"], f"{where}: image_id")
        label = _coco_label(record, kind.names, ids, where)
        x, y, width, height = _checked_list(record["bbox"], 4, f"{where}: bbox")
        box = _checked_box([x, y, x + width, y + height], where)
        score = _checked_number(record["score"], f"{where}: score")
        images.setdefault(image_id, _Rows()).add(box, score, label)
    return {image_id: rows.detections(kind) for image_id, rows in images.items()}


def to_kitti(detections: Detections) -> str:
    """Return the detections of an image as a KITTI results file.

    KITTI counts pixels from 0 and names the last pixel of a box, not where it ends: 1 is taken from
    x2 and y2. Coordinates and angles have 6 decimals, scores all digits.

    Parameters
    ----------
    detections : Detections
        What was found in an image; its category must be one word.

    Returns
    -------
    str
        A line for each detection, without what is not known: truncation, occlusion, size, position
        and, for views without angles, alpha. The name of the view has no place in it.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.interchange import to_kitti
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], ["front"], angles=[90.0], category="Car")
    >>> print(to_kitti(found).replace(".000000", ""), end="")
    Car -1 -1 1.570796 1 2 3 5 -1 -1 -1 -1000 -1000 -1000 -10 0.5
    """
    category = detections.category
    if category.split() != [category]:
        raise ValueError(f"category must be one word in KITTI's format; got {category!r:.80}.")
    alphas = ["-10"] * len(detections.names)
    if detections.angles is not None:
        alphas = [f"{math.radians(math.remainder(a, 360.0)):.6f}" for a in detections.angles]
    return "".join(
        f"{category} -1 -1 {alphas[label]} {x1:.6f} {y1:.6f} {x2 - 1.0:.6f} {y2 - 1.0:.6f} "
        f"-1 -1 -1 -1000 -1000 -1000 -10 {score!r}\n"
        for (x1, y1, x2, y2), score, label in zip(
            detections.boxes.tolist(),
            detections.scores.tolist(),
            detections.labels.tolist(),
            strict=True,
        )
    )


def from_kitti(
    text: str,
    names: Sequence[str],
    angles: Sequence[float] | None = None,
    category: str = "Car",
) -> Detections:
    """Return the detections in a KITTI results file.

    Parameters
    ----------
    text : str
        Contents of the file: 16 fields in a line.
    names : sequence of str
        Name of each view. Every detection has the first one if it is the only one.
    angles : sequence of float, optional
        Heading of each view in degrees, needed if there are several: a detection has the view whose
        angle is nearest to its alpha.
    category : str, default="Car"
        Type of the lines to read; the others are checked and passed over.

    Returns
    -------
    Detections
        In the order of the lines, with 1 added to x2 and y2, as `to_kitti` takes it away.

    Raises
    ------
    ValueError
        Where a line is not as expected, or does not tell the view.

    Examples
    --------
    >>> from badacost.detection.interchange import from_kitti
    >>> text = "Car -1 -1 1.5 1 2 3 5 -1 -1 -1 -1000 -1000 -1000 -10 0.5"
    >>> found = from_kitti(text, names=["right", "front"], angles=[0.0, 90.0])
    >>> found.boxes, found.views
    (array([[1., 2., 4., 6.]]), ['front'])
    """
    kind = Detections.empty(names, angles, category)
    if len(kind.names) != 1 and not kind.angles:
        raise ValueError("angles must be given: KITTI's format has no other mark of a view.")
    rows = _Rows()
    for number, line in enumerate(_checked_text(text).split("\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        where = f"line {number}"
        if len(fields) != _KITTI_FIELDS:
            raise ValueError(f"{where}: expected {_KITTI_FIELDS} fields; got {len(fields)}.")
        values = [_parsed(item, f"{where}: field {i}") for i, item in enumerate(fields[1:], 2)]
        x1, y1, x2, y2 = values[3:7]
        x2, y2 = x2 + 1.0, y2 + 1.0
        # A box without width, rounded to decimals, may come back with one just below zero.
        x2 = x1 if x1 - _KITTI_ROUNDING < x2 < x1 else x2
        y2 = y1 if y1 - _KITTI_ROUNDING < y2 < y1 else y2
        box = _checked_box([x1, y1, x2, y2], where)
        if fields[0] == kind.category:
            rows.add(box, values[-1], _nearest_view(values[2], kind, where))
    return rows.detections(kind)


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
    writer.writerow(_CSV_HEADER)
    for image, detections in images.items():
        _checked_image(image, "image")
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
        Comma-separated text with the header ``image,x1,y1,x2,y2,score,view,angle,category``.
    names : sequence of str, optional
        Names of the views; by default those in the table, in the order of their first rows.
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
    images: dict[str, _Rows] = {}
    for where, row in _csv_rows(text):
        image, view = row["image"], row["view"]
        category = row["category"] if category is None else category
        if row["category"] != category:
            raise ValueError(f"{where}: category must be {category!r:.80}, as in the lines before.")
        if names is None:
            labels.setdefault(view, len(labels))
        label = _checked_label(view, labels, where)
        if row["angle"]:
            angle = _parsed(row["angle"], f"{where}: angle")
            if angle_of.setdefault(view, angle) != angle:
                raise ValueError(f"{where}: angle must be {angle_of[view]}, the one of its view.")
        *box, score = (
            _parsed(row[key], f"{where}: {key}") for key in ("x1", "y1", "x2", "y2", "score")
        )
        images.setdefault(image, _Rows()).add(_checked_box(box, where), score, label)
    every_angle = [angle_of[name] for name in labels] if set(labels) == set(angle_of) else None
    kind = Detections.empty(list(labels), every_angle, category or "object")
    return {image: rows.detections(kind) for image, rows in images.items()}


def to_json_line(image: str, detections: Detections, **extra: Any) -> str:
    """Return the detections of an image as one line of JSON, without the end of the line.

    Parameters
    ----------
    image : str
        The image.
    detections : Detections
        What was found in it, perhaps nothing.
    **extra : object
        Further entries of the line that JSON can hold, as the time it took.

    Returns
    -------
    str
        An object with the keys image, detections, names, angles, category, and the further ones.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.interchange import from_json_lines, to_json_line
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"], category="Face")
    >>> line = to_json_line("a.png", found, seconds=0.02)
    >>> from_json_lines(line)
    {'a.png': Detections(1 box of 'Face' in 1 view, scores from 0.5 to 0.5)}
    """
    _checked_image(image, "image")
    taken = [key for key in extra if key in (*_JSON_KEYS, "error")]
    if taken:
        raise ValueError(f"{taken[0]!r} is an entry of every line: use another name.")
    angles = detections.angles or [None] * len(detections.names)
    document = {
        "image": image,
        "detections": [
            {"box": box, "score": score, "view": detections.names[label], "angle": angles[label]}
            for box, score, label in zip(
                detections.boxes.tolist(),
                detections.scores.tolist(),
                detections.labels,
                strict=True,
            )
        ],
        "names": detections.names,
        "angles": detections.angles,
        "category": detections.category,
    }
    try:
        return json.dumps(document | extra, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the further entries cannot be written as JSON: {error}.") from error


def from_json_lines(lines: str | Iterable[str]) -> dict[str, Detections]:
    """Return the detections in lines of JSON, as `to_json_line` writes them.

    Parameters
    ----------
    lines : str or iterable of str
        The text, or its lines, as an open file gives them. Empty lines, and lines with an entry
        ``error``, of images that could not be read, are passed over.

    Returns
    -------
    dict of str to Detections
        What was found in each image, in the order of the lines.

    Raises
    ------
    ValueError
        Where a line is not as expected.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.interchange import from_json_lines, to_json_line
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"], category="Face")
    >>> nothing = Detections.empty(["front"], category="Face")
    >>> lines = [to_json_line("a.png", found), to_json_line("b.png", nothing)]
    >>> {image: len(boxes) for image, boxes in from_json_lines(lines).items()}
    {'a.png': 1, 'b.png': 0}
    """
    if isinstance(lines, str):
        lines = lines.split("\n")
    images: dict[str, Detections] = {}
    for number, line in enumerate(lines, start=1):
        where = f"line {number}"
        if not isinstance(line, str):
            raise ValueError(f"{where}: expected text; got {type(line).__name__}.")
        if not line.strip():
            continue
        document = _parsed_object(line, where)
        if "error" in document:
            continue
        image = _checked_image(document.get("image"), f"{where}: image")
        if image in images:
            raise ValueError(f"{where}: image {image!r:.80} is in an earlier line; join the two.")
        images[image] = _detections_of(document, where)
    return images


def _import_supervision() -> Any:
    """Return the package supervision, or say how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="OpenCV")  # only needed to draw fast
            import supervision
    except ImportError as error:
        raise ImportError(
            'this format needs supervision: type pip install "badacost[supervision]".'
        ) from error
    return supervision


def _checked_text(text: Any) -> str:
    """Return `text` if it is text."""
    if not isinstance(text, str):
        raise TypeError(
            f"text must be a string, the contents of a file; got {type(text).__name__}."
        )
    return text


def _checked_number(value: Any, what: str) -> float:
    """Return a finite number as float."""
    number = math.nan
    if not isinstance(value, bool | np.bool_) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number; got {_shown(value)}.")
    return number


def _parsed(text: str, what: str) -> float:
    """Return the finite number that text stands for."""
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number; got {text!r:.80}.")
    return number


def _shown(value: Any) -> str:
    """Return a value for a message; only the type of one that may be too large or deep to print."""
    if isinstance(value, str | float | bool | None):
        return f"{value!r:.80}"
    if isinstance(value, int) and abs(value) < 2**64:
        return repr(value)
    return f"a value of type {type(value).__name__}"


def _checked_list(values: Any, length: int, what: str) -> list[float]:
    """Return a list of finite numbers."""
    if not isinstance(values, list | tuple) or len(values) != length:
        raise ValueError(f"{what} must be a list of {length} numbers.")
    return [_checked_number(value, what) for value in values]


def _checked_box(box: list[float], where: str) -> list[float]:
    """Return x1, y1, x2, y2 if they are a box."""
    x1, y1, x2, y2 = box
    if not (x1 <= x2 and y1 <= y2):
        raise ValueError(f"{where}: the box ends before it begins; expected x1 <= x2, y1 <= y2.")
    if max(map(abs, box)) > MAX_COORDINATE:
        raise ValueError(f"{where}: the box must lie within {MAX_COORDINATE:g} pixels of 0.")
    return box


def _checked_label(view: Any, views: Mapping[str, int], where: str) -> int:
    """Return the index of a view."""
    label = views.get(view) if isinstance(view, str) else None
    if label is None:
        raise ValueError(f"{where}: view {_shown(view)} is not one of the {len(views)} names.")
    return label


def _checked_image(image: Any, what: str) -> str:
    """Return the name of an image if it fits into a line."""
    if not isinstance(image, str) or not image or any(mark in image for mark in "\r\n\0"):
        raise ValueError(f"{what} must be a name of one line; got {_shown(image)}.")
    return image


def _checked_image_id(image_id: Any, what: str) -> int | str:
    """Return an integer of Python or a string."""
    if isinstance(image_id, str):
        return image_id
    if isinstance(image_id, bool | np.bool_) or not isinstance(image_id, Integral):
        raise ValueError(f"{what} must be an integer or a string; got {_shown(image_id)}.")
    return int(image_id)


def _checked_category_ids(category_ids: Any, n_views: int) -> list[int]:
    """Return the COCO category of each view."""
    if category_ids is None:
        return list(range(1, n_views + 1))
    ids = list(category_ids)
    if len(ids) != n_views or not all(isinstance(i, Integral) for i in ids):
        raise ValueError(f"category_ids must be an integer for each of the {n_views} names.")
    return [int(i) for i in ids]


def _coco_label(
    record: Mapping[str, Any], names: tuple[str, ...], ids: list[int], where: str
) -> int:
    """Return the view of a record: the one it names, or the only one of its category."""
    category_id = record["category_id"]
    if isinstance(category_id, bool | np.bool_) or not isinstance(category_id, Integral):
        raise ValueError(f"{where}: category_id must be an integer; got {_shown(category_id)}.")
    candidates = [label for label, known in enumerate(ids) if known == category_id]
    if not candidates:
        raise ValueError(f"{where}: category_id {_shown(category_id)} is not that of a view.")
    if "view" in record:
        candidates = [label for label in candidates if names[label] == record["view"]]
    if len(candidates) != 1:
        raise ValueError(f"{where}: view must be one of the names of its category_id.")
    return candidates[0]


def _nearest_view(alpha: float, kind: Detections, where: str) -> int:
    """Return the view whose angle is nearest to KITTI's alpha."""
    if len(kind.names) == 1:
        return 0
    # Files round pi to 3.15 at most.
    if not abs(alpha) <= 3.15:
        raise ValueError(f"{where}: alpha must be from -pi to pi to tell the view; got {alpha:g}.")
    assert kind.angles is not None
    return int(nearest_view(math.degrees(alpha), kind.angles))


def _csv_rows(text: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row of a table of detections is, and its fields, the names checked."""
    reader = csv.reader(io.StringIO(_checked_text(text), newline=""), strict=True)
    try:
        if next(reader, None) != _CSV_HEADER:
            raise ValueError(f"line 1: expected the header {','.join(_CSV_HEADER)}.")
        for fields in filter(None, reader):
            where = f"line {reader.line_num}"
            if len(fields) != len(_CSV_HEADER):
                raise ValueError(f"{where}: expected {len(_CSV_HEADER)} fields; got {len(fields)}.")
            row = dict(zip(_CSV_HEADER, fields, strict=True))
            _checked_image(row["image"], f"{where}: image")
            check_name(f"{where}: view", row["view"])
            check_name(f"{where}: category", row["category"])
            yield where, row
    except csv.Error as error:
        raise ValueError(
            f"line {reader.line_num}: this is not comma-separated: {error}."
        ) from error


def _parsed_object(line: str, where: str) -> dict[str, Any]:
    """Return the object that a line of JSON holds."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: expected an object of JSON; {error}.") from error
    if not isinstance(document, dict):
        raise ValueError(f"{where}: expected an object of JSON; got {_shown(document)}.")
    return document


def _detections_of(document: dict[str, Any], where: str) -> Detections:
    """Return the detections in a parsed line."""
    names, angles, found = (document.get(key) for key in ("names", "angles", "detections"))
    if not isinstance(names, list) or not isinstance(found, list):
        raise ValueError(f"{where}: names and detections must be lists.")
    if angles is not None:
        angles = _checked_list(angles, len(names), f"{where}: angles")
    try:
        kind = Detections.empty(names, angles, document.get("category", "object"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error
    views = {name: label for label, name in enumerate(kind.names)}
    rows = _Rows()
    for number, item in enumerate(found):
        here = f"{where}: detection {number}"
        if not isinstance(item, dict):
            raise ValueError(f"{here}: expected an object with box, score and view.")
        label = _checked_label(item.get("view"), views, here)
        expected = None if kind.angles is None else kind.angles[label]
        if item.get("angle", expected) != expected:
            raise ValueError(f"{here}: angle must be {expected}, the one of its view.")
        box = _checked_box(_checked_list(item.get("box"), 4, f"{here}: box"), here)
        rows.add(box, _checked_number(item.get("score"), f"{here}: score"), label)
    return rows.detections(kind)
