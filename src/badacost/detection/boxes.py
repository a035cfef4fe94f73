"""Boxes with a score and a view: `Detections`, and their overlaps.

Coordinates are continuous and begin at 0: pixel i covers the interval from i to i + 1, so that a
box of x1 = 2 and x2 = 5 covers the pixels 2, 3 and 4, and is 3 wide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.validation import check_choice, check_number
from badacost.detection.box_tree import check_pairs

if TYPE_CHECKING:
    import pandas as pd
    import supervision
    from PIL.Image import Image

    from badacost.detection.images import ImageSource

UNNAMED = "object"  # the category of what does not name one
MAX_COORDINATE = 1e9  # areas of larger boxes would lose their digits, and no image is larger


@dataclass(frozen=True, eq=False)
class Detections:
    """Objects found in one image; arrays are checked and copied.

    Parameters
    ----------
    boxes : array-like of shape (n, 4)
        x1, y1, x2, y2 of each box in continuous pixels, ``x1 <= x2`` and ``y1 <= y2``.
    scores : array-like of shape (n,)
        Higher is more certain.
    labels : array-like of shape (n,)
        View of each box, as an index into `names`.
    names : sequence of str
        Name of each view.
    angles : sequence of float, optional
        Heading of each view in degrees, as KITTI's alpha: 0 faces the right of the image, 90 the
        viewer, -90 away from the viewer.
    category : str, default="object"
        What all the views are of, as "Car" or "Face".
    source : ImageSource, optional
        The image; `Detector.predict` tells it.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> found = Detections(
    ...     boxes=[[10, 10, 30, 20], [50, 10, 90, 30]],
    ...     scores=[1.5, 4.0],
    ...     labels=[0, 1],
    ...     names=["left", "right"],
    ...     category="Car",
    ... )
    >>> found
    Detections(2 boxes of 'Car' in 2 views, scores from 1.5 to 4)
    >>> found.best_first().views
    ['right', 'left']
    >>> found[found.areas > 300].boxes
    array([[50., 10., 90., 30.]])
    """

    boxes: FloatArray
    scores: FloatArray
    labels: IndexArray
    names: tuple[str, ...]
    angles: tuple[float, ...] | None = None
    category: str = UNNAMED
    source: ImageSource | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "boxes": _checked_boxes("boxes", self.boxes),
            "names": _checked_names(self.names),
        }
        n, n_views = len(checked["boxes"]), len(checked["names"])
        checked["scores"] = _checked_numbers("scores", self.scores, (n,))
        checked["labels"] = _checked_labels(self.labels, n, n_views)
        if self.angles is not None:
            angles = _checked_numbers("angles", self.angles, (n_views,))
            checked["angles"] = tuple(angles.tolist())
        check_name("category", self.category)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def empty(
        cls,
        names: Sequence[str],
        angles: Sequence[float] | None = None,
        category: str = UNNAMED,
    ) -> Detections:
        """Return no detections of these views."""
        return cls(
            boxes=np.empty((0, 4)),
            scores=np.empty(0),
            labels=np.empty(0, dtype=np.int64),
            names=_checked_names(names),
            angles=None if angles is None else tuple(angles),
            category=category,
        )

    @classmethod
    def concatenate(cls, parts: Iterable[Detections]) -> Detections:
        """Return the detections of all `parts`, which must be of the same views, in their order.

        Their source is kept if it is the same for all.
        """
        parts = list(parts)
        if not parts:
            raise ValueError("parts must hold at least one Detections: Detections.empty makes one.")
        check_same_views(parts)
        source = parts[0].source
        return replace(
            parts[0],
            source=source if all(part.source is source for part in parts) else None,
            boxes=np.concatenate([part.boxes for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: Any) -> Detections:
        chosen = np.atleast_1d(np.arange(len(self))[index])
        if chosen.ndim > 1:
            raise IndexError("detections have one axis: index them by a number, slice or 1-D mask.")
        return replace(
            self,
            boxes=self.boxes[chosen],
            scores=self.scores[chosen],
            labels=self.labels[chosen],
        )

    def __repr__(self) -> str:
        boxes = "1 box" if len(self) == 1 else f"{len(self)} boxes"
        views = "1 view" if len(self.names) == 1 else f"{len(self.names)} views"
        text = f"{boxes} of {self.category!r} in {views}"
        if len(self):
            text += f", scores from {self.scores.min():.4g} to {self.scores.max():.4g}"
        return f"Detections({text})"

    @property
    def views(self) -> list[str]:
        """Name of the view of each box."""
        return [self.names[label] for label in self.labels]

    @property
    def sizes(self) -> FloatArray:
        """Width and height of each box, shape (n, 2)."""
        return self.boxes[:, 2:] - self.boxes[:, :2]

    @property
    def areas(self) -> FloatArray:
        """Area of each box, shape (n,)."""
        return self.sizes.prod(axis=1)

    def best_first(self) -> Detections:
        """Return the detections sorted by falling score; equal scores keep their order."""
        return self[np.argsort(-self.scores, kind="stable")]

    def above(self, score: float) -> Detections:
        """Return the detections whose score is greater than `score`."""
        return self[self.scores > score]

    def clipped(self, width: float, height: float) -> Detections:
        """Return the parts of the boxes inside an image, without boxes that lie outside.

        Parameters
        ----------
        width, height : float
            Size of the image in pixels.

        Returns
        -------
        Detections
            The boxes with an area inside the image, in their order.

        Examples
        --------
        >>> from badacost.detection import Detections
        >>> boxes = [[-5, 10, 20, 30], [90, 10, 140, 30], [120, 10, 140, 30]]
        >>> found = Detections(boxes, [3.0, 2.0, 1.0], [0, 0, 0], names=["car"])
        >>> found.clipped(width=100, height=50).boxes
        array([[  0.,  10.,  20.,  30.],
               [ 90.,  10., 100.,  30.]])
        """
        check_number("width", width, low=0.0)
        check_number("height", height, low=0.0)
        inside = replace(self, boxes=np.clip(self.boxes, 0.0, [width, height, width, height]))
        return inside[(inside.sizes > 0.0).all(axis=1)]

    def plot(
        self,
        image: str | os.PathLike[str] | Image | NDArray[Any] | None = None,
        *,
        width: int | None = None,
        labels: bool = True,
        arrows: bool = True,
    ) -> Image:
        """Draw the detections on their image; `badacost.detection.drawing.draw` says how.

        Parameters
        ----------
        image : str, path-like, PIL image or ndarray of RGB, optional
            The picture; by default that of the `source`, which is read again where its pixels are
            not in memory.
        width : int, optional
            Width of the result in pixels; that of the image by default.
        labels : bool, default=True
            Whether to write view and score at each box.
        arrows : bool, default=True
            Whether to draw headings, if the views have angles.

        Returns
        -------
        PIL.Image.Image
            A new RGB image.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> (scene,) = make_scenes(1, random_state=7)
        >>> (found,) = synthetic_cars().predict(scene.load())
        >>> found.plot().size
        (320, 240)
        """
        from badacost.detection.drawing import draw

        if image is None:
            if self.source is None:
                raise ValueError("the source of the detections is not known: give the image.")
            image = self.source.load()
        return draw(image, self, width=width, labels=labels, arrows=arrows)

    def to_supervision(self) -> supervision.Detections:
        """Return the detections as those of the package supervision, for its annotators.

        The score is the ``confidence``; ``data`` has ``view``, ``class_name`` and ``heading``, as
        `badacost.detection.interchange.to_supervision` tells.
        """
        from badacost.detection.interchange import to_supervision

        return to_supervision(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the detections as a data frame of pandas, a row for each.

        `badacost.detection.interchange.to_frame` tells its columns.
        """
        from badacost.detection.interchange import to_frame

        return to_frame(self)

    def to_coco(
        self, image_id: int | str | None = None, category_ids: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """Return the detections as records of a COCO results file.

        `badacost.detection.interchange.to_coco` tells their entries;
        `badacost.detection.interchange.coco_document` makes a file of them.

        Parameters
        ----------
        image_id : int or str, optional
            The image; by default the name of the `source`.
        category_ids : sequence of int, optional
            ``category_id`` of each view; 1 for all of them by default.
        """
        from badacost.detection.interchange import to_coco

        return to_coco(self, image_id, category_ids)


def check_name(what: str, text: Any) -> None:
    """Raise unless `text` can stand in every format that detections are written to."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string; got {type(text).__name__}.")
    if not text or not text.isprintable():
        raise ValueError(f"{what} must be non-empty printable text; got {text!r:.80}.")


def check_same_views(parts: Iterable[Detections]) -> None:
    """Raise unless all are detections of the same names, angles and category."""
    kinds = {(part.names, part.angles, part.category) for part in parts}
    if len(kinds) > 1:
        raise ValueError("detections differ in names, angles or category: keep them apart.")


def overlaps(
    a: Detections | ArrayLike,
    b: Detections | ArrayLike,
    denominator: Literal["union", "min", "first"] = "union",
) -> FloatArray:
    """Return how much of each pair of boxes is shared.

    Parameters
    ----------
    a, b : Detections or array-like of shape (n, 4) and (m, 4)
        Boxes, as x1, y1, x2, y2.
    denominator : {"union", "min", "first"}, default="union"
        What the shared area is divided by: the area of the union, of the smaller box, or of the
        box of `a`.

    Returns
    -------
    ndarray of shape (n, m)
        Numbers from 0 to 1; a box without an area overlaps nothing.

    Raises
    ------
    ValueError
        Where they would take more memory than `badacost.set_max_memory` allows.

    Examples
    --------
    >>> from badacost.detection.boxes import overlaps
    >>> overlaps([[0, 0, 10, 10]], [[5, 0, 15, 10], [0, 0, 10, 5]], denominator="min")
    array([[0.5, 1. ]])
    """
    check_choice("denominator", denominator, ("union", "min", "first"))
    first, second = (
        boxes.boxes if isinstance(boxes, Detections) else _checked_boxes(name, boxes)
        for name, boxes in (("a", a), ("b", b))
    )
    check_pairs(len(first) * len(second), f"the overlaps of {len(first)} x {len(second)} boxes")
    return _overlap_matrix(first.T, second.T, denominator)


def with_aspect_ratios(detections: Detections, ratios: ArrayLike) -> Detections:
    """Return the detections with boxes as wide as their view says; height and centre stay.

    Parameters
    ----------
    detections : Detections
        Boxes of a fixed shape, as a sliding window gives them.
    ratios : array-like of shape (n_views,)
        Width divided by height of an object in each view.

    Returns
    -------
    Detections
        In the same order.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections, with_aspect_ratios
    >>> window = Detections([[0, 0, 20, 10]], [1.0], [1], names=["front", "side"])
    >>> with_aspect_ratios(window, [1.0, 3.0]).boxes
    array([[-5.,  0., 25., 10.]])
    """
    ratio = _checked_numbers("ratios", ratios, (len(detections.names),))
    if (ratio <= 0.0).any():
        raise ValueError("ratios must be greater than 0: give width divided by height.")
    x1, y1, x2, y2 = detections.boxes.T
    half_width = (y2 - y1) * ratio[detections.labels] / 2.0
    centre = (x1 + x2) / 2.0
    boxes = np.stack([centre - half_width, y1, centre + half_width, y2], axis=1)
    return replace(detections, boxes=boxes)


def _overlap_matrix(first: FloatArray, second: FloatArray, denominator: str) -> FloatArray:
    """Return overlaps of boxes given as columns, shapes (4, n) and (4, m)."""
    x1, y1, x2, y2 = first[:, :, np.newaxis]
    u1, v1, u2, v2 = second[:, np.newaxis, :]
    shared = np.maximum(np.minimum(x2, u2) - np.maximum(x1, u1), 0.0)
    shared *= np.maximum(np.minimum(y2, v2) - np.maximum(y1, v1), 0.0)
    area, other_area = (x2 - x1) * (y2 - y1), (u2 - u1) * (v2 - v1)
    if denominator == "union":
        whole = area + other_area - shared
    elif denominator == "min":
        whole = np.minimum(area, other_area)
    else:
        whole = np.broadcast_to(area, shared.shape)
    # Where nothing is shared, zeros are there already; this also skips boxes without an area.
    return np.divide(shared, whole, out=shared, where=shared > 0.0)


def _checked_numbers(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return finite numbers of this shape as an array of their own."""
    array = _numeric(name, values, "iuf")
    if array.size == 0 and 0 in shape:
        return np.zeros(shape)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}.")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite: drop what is NaN or infinite.")
    return numbers


def _checked_boxes(name: str, values: Any) -> FloatArray:
    """Return boxes as an array of their own, of shape (n, 4)."""
    array = _numeric(name, values, "iuf")
    if array.size and (array.ndim != 2 or array.shape[1] != 4):
        raise ValueError(f"{name} must have shape (n, 4); got shape {array.shape}.")
    boxes = _checked_numbers(name, array, (len(array) if array.size else 0, 4))
    if (np.abs(boxes) > MAX_COORDINATE).any():
        raise ValueError(f"{name} must lie within {MAX_COORDINATE:g} pixels of the origin.")
    if (boxes[:, 2:] < boxes[:, :2]).any():
        raise ValueError(f"{name} must be given as x1, y1, x2, y2 with x1 <= x2 and y1 <= y2.")
    return boxes


def _checked_labels(values: Any, n: int, n_views: int) -> IndexArray:
    """Return indices of views as an array of their own."""
    array = _numeric("labels", values, "iuf" if np.size(values) == 0 else "iu")
    if array.size == 0 and n == 0:
        return np.zeros(0, dtype=np.int64)
    if array.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), as boxes has; got shape {array.shape}.")
    wrong = array[(array < 0) | (array >= n_views)]
    if len(wrong):
        raise ValueError(f"labels must be indices into the {n_views} names; got {wrong[0]}.")
    return array.astype(np.int64)


def _numeric(name: str, values: Any, kinds: str) -> NDArray[Any]:
    """Return an array of a dtype of these kinds."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as an array: {error}") from error
    if array.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "integers"
        raise ValueError(f"{name} must be {wanted}; got an array of dtype {array.dtype}.")
    return array


def _checked_names(names: Any) -> tuple[str, ...]:
    """Return the names of the views as a tuple."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a sequence of strings; got {type(names).__name__}.")
    checked = tuple(names)
    for name in checked:
        check_name("a name", name)
    if len(set(checked)) < len(checked):
        raise ValueError("names must be distinct: two views have the same name.")
    return checked
