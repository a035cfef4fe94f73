"""Detections to and from the package supervision."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost.detection.boxes import Detections

if TYPE_CHECKING:
    import supervision


def to_supervision(detections: Detections) -> supervision.Detections:
    """Return the detections as those of the package supervision.

    Parameters
    ----------
    detections : Detections
        What was found in an image.

    Returns
    -------
    supervision.Detections
        With the index of the view as ``class_id`` and the score as ``confidence``. ``data`` has the
        name of the view as ``view``, and as ``class_name`` where supervision's annotators look for
        it, and the heading in degrees as ``heading`` if views have one.

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
    >>> boxes.data["view"].tolist(), boxes.data["heading"].tolist()
    (['left'], [180.0])
    """
    views = np.array(detections.views, dtype=np.str_)
    data: dict[str, Any] = {"class_name": views, "view": views.copy()}
    if detections.angles is not None:
        data["heading"] = np.array(detections.angles)[detections.labels]
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


def _import_supervision() -> Any:
    """Return the package supervision, or say how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="OpenCV")  # only needed to draw fast
            import supervision
    except ImportError as error:
        raise ImportError(
            'this format needs supervision: run pip install "badacost[supervision]".'
        ) from error
    return supervision
