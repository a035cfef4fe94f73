"""Rows of detections while they are read, and the checks that all readers share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from badacost.detection.annotations.source import described
from badacost.detection.boxes import MAX_COORDINATE, Detections
from badacost.io.csv_dialect import as_number


@dataclass
class Rows:
    """Detections of one image while its rows are read."""

    boxes: list[Sequence[float]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def add(self, box: Sequence[float], score: float, label: int) -> None:
        """Add a detection that was checked."""
        self.boxes.append(box)
        self.scores.append(score)
        self.labels.append(label)

    def detections(self, kind: Detections) -> Detections:
        """Return the rows as detections with the names, angles and category of `kind`."""
        # Rows are checked where they are added. What is of `kind` is not checked again for each
        # image: there may be as many views as images.
        found = copy(kind)
        arrays = {
            "boxes": np.array(self.boxes, dtype=np.float64).reshape(-1, 4),
            "scores": np.array(self.scores, dtype=np.float64),
            "labels": np.array(self.labels, dtype=np.int64),
        }
        for name, array in arrays.items():
            object.__setattr__(found, name, array)
        return found


def checked_text(text: Any) -> str:
    """Return `text` if it is text."""
    if not isinstance(text, str):
        raise TypeError(
            f"text must be a string, the contents of a file; got {type(text).__name__}."
        )
    return text


def checked_number(value: Any, what: str) -> float:
    """Return a finite number as float."""
    number = math.nan
    if not isinstance(value, bool | np.bool_) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number; got {described(value)}.")
    return number


def parsed(text: str, what: str) -> float:
    """Return the finite number that text stands for."""
    number = as_number(text)
    if number is None or not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number; got {text!r:.80}.")
    return number


def checked_list(values: Any, length: int, what: str) -> list[float]:
    """Return a list of finite numbers."""
    if not isinstance(values, list | tuple) or len(values) != length:
        raise ValueError(f"{what} must be a list of {length} numbers.")
    return [checked_number(value, what) for value in values]


def checked_box(box: list[float], where: str) -> list[float]:
    """Return x1, y1, x2, y2 if they are a box."""
    x1, y1, x2, y2 = box
    if not (x1 <= x2 and y1 <= y2):
        raise ValueError(f"{where}: the box ends before it begins; expected x1 <= x2, y1 <= y2.")
    if max(map(abs, box)) > MAX_COORDINATE:
        raise ValueError(f"{where}: the box must lie within {MAX_COORDINATE:g} pixels of 0.")
    return box


def checked_label(view: Any, views: Mapping[str, int], where: str) -> int:
    """Return the index of a view."""
    label = views.get(view) if isinstance(view, str) else None
    if label is None:
        raise ValueError(f"{where}: view {described(view)} is not one of the {len(views)} names.")
    return label


def checked_image(image: Any, what: str) -> str:
    """Return the name of an image if it fits into a line."""
    if not isinstance(image, str) or not image or any(mark in image for mark in "\r\n\0"):
        raise ValueError(f"{what} must be a name of one line; got {described(image)}.")
    return image
