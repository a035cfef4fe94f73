"""Detections to and from lines of JSON, an image in each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from badacost.detection.annotations.source import described
from badacost.detection.boxes import Detections
from badacost.detection.interchange.records import (
    Rows,
    checked_box,
    checked_image,
    checked_label,
    checked_list,
    checked_number,
)
from badacost.io.budget import Budget, BudgetError
from badacost.io.json_document import JSONError, parse_json

_KEYS = ("image", "detections", "names", "angles", "category")


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
    checked_image(image, "image")
    taken = [key for key in extra if key in (*_KEYS, "error")]
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


def from_json_lines(
    lines: str | Iterable[str], *, max_memory: int | str | None = None
) -> dict[str, Detections]:
    """Return the detections in lines of JSON, as `to_json_line` writes them.

    Parameters
    ----------
    lines : str or iterable of str
        The text, or its lines, as an open file gives them. Empty lines, and lines with an entry
        ``error``, of images that could not be read, are passed over.
    max_memory : int, str or None, default=None
        Maximum memory that reading a line may take: bytes, or a string such as "4 GB". None is the
        limit of `badacost.set_max_memory`.

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
    budget = Budget.of(max_memory)
    for number, line in enumerate(lines, start=1):
        where = f"line {number}"
        if not isinstance(line, str):
            raise ValueError(f"{where}: expected text; got {type(line).__name__}.")
        if not line.strip():
            continue
        document = _parsed_object(line, where, budget)
        if "error" in document:
            continue
        image = checked_image(document.get("image"), f"{where}: image")
        if image in images:
            raise ValueError(f"{where}: image {image!r:.80} is in an earlier line; join the two.")
        images[image] = _detections_of(document, where)
    return images


def _parsed_object(line: str, where: str, budget: Budget) -> dict[str, Any]:
    """Return the object that a line of JSON holds."""
    try:
        document = parse_json(line.encode("utf-8", "surrogatepass"), budget)
    except JSONError as error:
        raise ValueError(f"{where}: expected an object of JSON; {error}.") from error
    except BudgetError as error:
        raise ValueError(f"{where}: {error}.") from error
    if not isinstance(document, dict):
        raise ValueError(f"{where}: expected an object of JSON; got {described(document)}.")
    return document


def _detections_of(document: dict[str, Any], where: str) -> Detections:
    """Return the detections in a parsed line."""
    names, angles, found = (document.get(key) for key in ("names", "angles", "detections"))
    if not isinstance(names, list) or not isinstance(found, list):
        raise ValueError(f"{where}: names and detections must be lists.")
    if angles is not None:
        angles = checked_list(angles, len(names), f"{where}: angles")
    try:
        kind = Detections.empty(names, angles, document.get("category", "object"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error
    views = {name: label for label, name in enumerate(kind.names)}
    rows = Rows()
    for number, item in enumerate(found):
        here = f"{where}: detection {number}"
        if not isinstance(item, dict):
            raise ValueError(f"{here}: expected an object with box, score and view.")
        label = checked_label(item.get("view"), views, here)
        expected = None if kind.angles is None else kind.angles[label]
        if item.get("angle", expected) != expected:
            raise ValueError(f"{here}: angle must be {expected}, the one of its view.")
        box = checked_box(checked_list(item.get("box"), 4, f"{here}: box"), here)
        rows.add(box, checked_number(item.get("score"), f"{here}: score"), label)
    return rows.detections(kind)
