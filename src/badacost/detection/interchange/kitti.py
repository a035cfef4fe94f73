"""Detections to and from results of KITTI, a text file for each image."""

from __future__ import annotations

import math
from collections.abc import Sequence

from badacost.detection.annotations.views import nearest_view
from badacost.detection.boxes import Detections
from badacost.detection.interchange.records import Rows, checked_box, checked_text, parsed

_N_FIELDS = 16
_ROUNDING = 1e-5


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
    rows = Rows()
    for number, line in enumerate(checked_text(text).split("\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        where = f"line {number}"
        if len(fields) != _N_FIELDS:
            raise ValueError(f"{where}: expected {_N_FIELDS} fields; got {len(fields)}.")
        values = [parsed(item, f"{where}: field {i}") for i, item in enumerate(fields[1:], 2)]
        x1, y1, x2, y2 = values[3:7]
        x2, y2 = x2 + 1.0, y2 + 1.0
        # A box without width, rounded to decimals, may come back with one just below zero.
        x2 = x1 if x1 - _ROUNDING < x2 < x1 else x2
        y2 = y1 if y1 - _ROUNDING < y2 < y1 else y2
        box = checked_box([x1, y1, x2, y2], where)
        if fields[0] == kind.category:
            rows.add(box, values[-1], _nearest_view(values[2], kind, where))
    return rows.detections(kind)


def _nearest_view(alpha: float, kind: Detections, where: str) -> int:
    """Return the view whose angle is nearest to KITTI's alpha."""
    if len(kind.names) == 1:
        return 0
    # Files round pi to 3.15 at most.
    if not abs(alpha) <= 3.15:
        raise ValueError(
            f"{where}: alpha must be from -pi to pi to determine the view; got {alpha:g}."
        )
    assert kind.angles is not None
    return int(nearest_view(math.degrees(alpha), kind.angles))
