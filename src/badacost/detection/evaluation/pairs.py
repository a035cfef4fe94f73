"""What was found in each image beside what is there: the input of every evaluation.

Annotations are anything with the attributes of an annotated image: ``boxes`` of shape (n, 4) as
x1, y1, x2, y2 in continuous pixels, and, where a protocol asks for them, ``ignore``, ``labels``,
``categories``, ``angles``, ``truncation``, ``occlusion``, ``ellipses`` and ``size``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask
from badacost.detection.boxes import MAX_COORDINATE, Detections

Found = TypeVar("Found")
# What KITTI calls areas in which nothing counts, and what may be found in the place of what.
IGNORED_AREA = "dontcare"
NEIGHBOURS = {"car": "van", "pedestrian": "person_sitting"}


@dataclass(frozen=True, eq=False)
class Pair(Generic[Found]):
    """One image: its name, what was found in it (None if not searched), and its annotations.

    `place` is its position among the annotations.
    """

    name: str
    place: int
    found: Found | None
    truth: Any

    @cached_property
    def boxes(self) -> FloatArray:
        """The annotated boxes, shape (n, 4)."""
        array = self._array("boxes", "iuf")
        if array.size == 0:
            return np.zeros((0, 4))
        boxes = array.astype(np.float64)
        if boxes.ndim != 2 or boxes.shape[1] != 4 or not np.isfinite(boxes).all():
            raise ValueError(f"{self._place('boxes')} must be finite numbers of shape (n, 4).")
        if (np.abs(boxes) > MAX_COORDINATE).any() or (boxes[:, 2:] < boxes[:, :2]).any():
            raise ValueError(
                f"{self._place('boxes')} must be x1, y1, x2, y2 with x1 <= x2 and y1 <= y2, "
                f"within {MAX_COORDINATE:g} pixels of the origin."
            )
        return boxes

    def ellipses(self) -> FloatArray | None:
        """Return the annotated ellipses, shape (n, 5), or None where there are boxes only."""
        if getattr(self.truth, "ellipses", None) is None:
            return None
        ellipses = self._array("ellipses", "iuf").astype(np.float64)
        if ellipses.size == 0:
            return np.zeros((0, 5))
        if ellipses.ndim != 2 or ellipses.shape[1] != 5 or not np.isfinite(ellipses).all():
            raise ValueError(f"{self._place('ellipses')} must be finite numbers of shape (n, 5).")
        return ellipses

    def flags(self, name: str) -> Mask:
        """Return True or False for each box; False where the annotations do not say."""
        if getattr(self.truth, name, None) is None:
            return np.zeros(len(self.boxes), dtype=np.bool_)
        return self._one_per_box(name, "biu").astype(np.bool_)

    def numbers(self, name: str) -> FloatArray:
        """Return a number for each box; NaN where the annotations do not say."""
        if getattr(self.truth, name, None) is None:
            return np.full(len(self.boxes), np.nan)
        return self._one_per_box(name, "iuf").astype(np.float64)

    def labels(self) -> IndexArray:
        """Return the view of each box; -1 where the annotations do not say."""
        if getattr(self.truth, "labels", None) is None:
            return np.full(len(self.boxes), -1, dtype=np.int64)
        return self._one_per_box("labels", "iu").astype(np.int64)

    def categories(self) -> NDArray[np.str_]:
        """Return the category of each box."""
        if getattr(self.truth, "categories", None) is None:
            raise ValueError(f"{self._place('categories')} are missing: the protocol needs them.")
        return self._one_per_box("categories", "U")

    def is_area(self) -> Mask:
        """Return which boxes are areas in which nothing counts; none without categories."""
        if getattr(self.truth, "categories", None) is None:
            return np.zeros(len(self.boxes), dtype=np.bool_)
        kinds = (kind.casefold() for kind in self.categories().tolist())
        return np.array([kind == IGNORED_AREA for kind in kinds], dtype=np.bool_)

    def size(self) -> tuple[int, int] | None:
        """Return height and width of the image, or None where the annotations do not say."""
        size = getattr(self.truth, "size", None)
        if size is None:
            return None
        numbers = np.asarray(size)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iu" or (numbers < 1).any():
            raise ValueError(f"{self._place('size')} must be height and width in pixels.")
        return int(numbers[0]), int(numbers[1])

    def _place(self, name: str) -> str:
        return f"{name} of the annotations of image {self.name!r:.80}"

    def _array(self, name: str, kinds: str) -> NDArray[Any]:
        """Return an attribute of the annotations as an array; an empty one is of any kind."""
        try:
            array = np.asarray(getattr(self.truth, name))
        except AttributeError:
            raise TypeError(
                f"annotations of image {self.name!r:.80} have no {name}: give an AnnotatedImage."
            ) from None
        except ValueError as error:
            raise ValueError(f"{self._place(name)} cannot be read as an array: {error}") from error
        if array.size and array.dtype.kind not in kinds:
            wanted = "strings" if kinds == "U" else "numbers"
            raise ValueError(f"{self._place(name)} must be {wanted}; got dtype {array.dtype}.")
        return array

    def _one_per_box(self, name: str, kinds: str) -> NDArray[Any]:
        array, n = self._array(name, kinds), len(self.boxes)
        if array.shape != (n,):
            raise ValueError(f"{self._place(name)} must have shape ({n},), one for each box.")
        return array


def paired(
    detections: Mapping[str, Found],
    annotations: Mapping[str, Any],
    kinds: type | tuple[type, ...] = Detections,
) -> list[Pair[Found]]:
    """Return each annotated image with what was found in it, an instance of `kinds`.

    Images are in the order of the detections, which decides between equal scores; then come those
    that are missing there, with None. A ValueError is raised where there are no annotations, or
    detections in an image that has none.
    """
    for what, mapping in (("detections", detections), ("annotations", annotations)):
        if not isinstance(mapping, Mapping):
            raise TypeError(
                f"{what} must be a mapping from names of images; got {type(mapping).__name__}."
            )
    if not annotations:
        raise ValueError("annotations are empty: give those of at least one image.")
    for name, found in detections.items():
        if not isinstance(found, kinds):
            raise TypeError(
                f"detections of image {name!r:.80} must be Detections; got {type(found).__name__}."
            )
        if name not in annotations:
            raise ValueError(
                f"image {name!r:.80} has detections but no annotations: drop the detections, or "
                "add annotations without boxes if nothing is there."
            )
    names = [*detections, *(name for name in annotations if name not in detections)]
    places = {name: place for place, name in enumerate(annotations)}
    return [Pair(name, places[name], detections.get(name), annotations[name]) for name in names]
