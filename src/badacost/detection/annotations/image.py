"""`AnnotatedImage`: a picture and what is known of the objects in it.

Boxes are those of `badacost.detection.boxes`: continuous pixels from 0, pixel i covers i to i + 1.
Angles are headings in degrees, as KITTI's alpha: 0 faces the right of the image, 90 the viewer,
180 the left, -90 away from the viewer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask
from badacost._utils.validation import check_flag, check_number
from badacost.detection.boxes import MAX_COORDINATE, check_name
from badacost.detection.images import ImageError, Pixels, read_image, size_of_file

if TYPE_CHECKING:
    from badacost.detection.annotations.views import Views

UNKNOWN_VIEW = -1
_PER_OBJECT = ("boxes", "labels", "angles", "ignore", "truncation", "occlusion", "ellipses")
_UNKNOWN: Any = None


@dataclass(frozen=True, eq=False)
class AnnotatedImage:
    """A picture and the objects in it; what is given is checked and copied.

    Parameters
    ----------
    image : path-like, ndarray of uint8 of shape (height, width, 3), or None
        The file or its pixels; None where there are annotations only.
    boxes : array-like of shape (n, 4)
        x1, y1, x2, y2 of each object in continuous pixels. They may reach beyond the picture.
    labels : array-like of shape (n,), optional
        View of each object as an index, -1 where it is not known.
    angles : array-like of shape (n,), optional
        Heading of each object in degrees, NaN where it is not known.
    ignore : array-like of bool of shape (n,), optional
        Objects that are neither to be found nor to be taken for background.
    categories : sequence of str, optional
        What each object is, as "Car"; "object" by default.
    truncation : array-like of shape (n,), optional
        How much of each object lies outside the picture, from 0 to 1, NaN where it is not known.
    occlusion : array-like of shape (n,), optional
        How much of each object is hidden: KITTI's levels 0 to 3, NaN where it is not known.
    size : (int, int), optional
        Height and width of the picture; taken from an array.
    ellipses : array-like of shape (n, 5), optional
        Half axes (the longer one first), the angle of the first one to the x axis in radians, and
        the centre x, y of each object, as FDDB has them.
    name : str, optional
        What to call the picture in results; by default the name of its file.
    flipped : bool, default=False
        Whether the pixels of the file are to be mirrored when they are loaded.

    Examples
    --------
    >>> from badacost.detection.annotations import AnnotatedImage, Views
    >>> seen = AnnotatedImage(
    ...     None, [[10, 10, 60, 40], [70, 5, 90, 25]], angles=[0, 90], size=(100, 200)
    ... )
    >>> seen
    AnnotatedImage('', 2 objects)
    >>> seen.with_views(Views.around(4)).labels
    array([0, 3])
    >>> seen.mirrored().boxes[0], seen.mirrored().angles
    (array([140.,  10., 190.,  40.]), array([-180.,   90.]))
    """

    image: Path | Pixels | None
    boxes: FloatArray = _UNKNOWN
    labels: IndexArray = _UNKNOWN
    angles: FloatArray = _UNKNOWN
    ignore: Mask = _UNKNOWN
    categories: tuple[str, ...] = _UNKNOWN
    truncation: FloatArray = _UNKNOWN
    occlusion: FloatArray = _UNKNOWN
    size: tuple[int, int] | None = None
    ellipses: FloatArray | None = None
    name: str = ""
    flipped: bool = False

    def __post_init__(self) -> None:
        boxes = _checked_boxes(self.boxes)
        n = len(boxes)
        image = _checked_image(self.image)
        checked: dict[str, Any] = {
            "image": image,
            "boxes": boxes,
            "labels": _checked_labels(self.labels, n),
            "angles": _checked_numbers("angles", self.angles, n),
            "ignore": _checked_flags(self.ignore, n),
            "categories": _checked_categories(self.categories, n),
            "truncation": _checked_numbers("truncation", self.truncation, n),
            "occlusion": _checked_numbers("occlusion", self.occlusion, n),
            "size": _checked_size(self.size, image),
            "ellipses": None if self.ellipses is None else _checked_ellipses(self.ellipses, n),
        }
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string; got {type(self.name).__name__}.")
        if not self.name and isinstance(image, Path):
            checked["name"] = image.name
        check_flag("flipped", self.flipped)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: Any) -> AnnotatedImage:
        chosen = np.atleast_1d(np.arange(len(self))[index])
        if chosen.ndim > 1:
            raise IndexError("objects have one axis: index them by a number, slice or 1-D mask.")
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[chosen]
            for name in _PER_OBJECT
        }
        parts["categories"] = tuple(self.categories[i] for i in chosen)
        return replace(self, **parts)

    def __repr__(self) -> str:
        objects = "1 object" if len(self) == 1 else f"{len(self)} objects"
        ignored = f", {self.ignore.sum()} ignored" if self.ignore.any() else ""
        return f"AnnotatedImage({self.name!r}, {objects}{ignored})"

    @property
    def sizes(self) -> FloatArray:
        """Width and height of each box, shape (n, 2)."""
        return self.boxes[:, 2:] - self.boxes[:, :2]

    @property
    def positives(self) -> AnnotatedImage:
        """The picture with the objects that are not ignored."""
        return self[~self.ignore]

    def load(self) -> Pixels:
        """Read the pixels.

        Returns
        -------
        ndarray of uint8 of shape (height, width, 3)
            RGB bytes, mirrored if the image is `flipped`.

        Raises
        ------
        ImageError
            Where the file cannot be read or there is none.
        """
        if self.image is None:
            raise ImageError(
                f"{self.name!r:.200} has annotations only: give the folder of its picture to the "
                "reader as images, to a command as --images."
            )
        if isinstance(self.image, np.ndarray):
            return self.image.copy()
        pixels = read_image(self.image)
        if self.size is not None and pixels.shape[:2] != self.size:
            raise ImageError(
                f"the image {str(self.image)!r:.200} has {pixels.shape[1]} x {pixels.shape[0]} "
                f"pixels, its annotations are for {self.size[1]} x {self.size[0]}: give the "
                f"original picture."
            )
        return np.ascontiguousarray(pixels[:, ::-1]) if self.flipped else pixels

    def measured(self) -> AnnotatedImage:
        """Return the image with its `size`, read from the head of the file if it is not known."""
        if self.size is not None or not isinstance(self.image, Path):
            return self
        return replace(self, size=size_of_file(self.image))

    def mirrored(self, views: Views | None = None) -> AnnotatedImage:
        """Return the mirror image: left and right exchanged.

        A file stays as it is and is mirrored by `load`. The name stays too.

        Parameters
        ----------
        views : Views, optional
            What labels stand for. Labels of objects with an angle follow the mirrored angle, others
            the mirrored view. By default labels must all be unknown.

        Returns
        -------
        AnnotatedImage
            With mirrored boxes, angles (180 degrees less the angle), ellipses and views.

        Raises
        ------
        ValueError
            Where the width is not known, or labels cannot be mirrored.
        """
        sized = self.measured()
        if sized.size is None:
            raise ValueError(
                f"the size of {self.name!r:.200} is not known: give it, or the picture, to mirror "
                f"the boxes."
            )
        width = sized.size[1]
        angles = wrapped(180.0 - self.angles)
        changes: dict[str, Any] = {
            "boxes": np.stack(
                [width - self.boxes[:, 2], self.boxes[:, 1], width - self.boxes[:, 0],
                 self.boxes[:, 3]], axis=1,
            ),
            "angles": angles,
            "labels": self._mirrored_labels(angles, views),
        }  # fmt: skip
        if self.ellipses is not None:
            a, b, turn, x, y = self.ellipses.T
            changes["ellipses"] = np.stack([a, b, -turn, width - x, y], axis=1)
        if isinstance(self.image, np.ndarray):
            changes["image"] = self.image[:, ::-1]
        else:
            changes["flipped"] = not self.flipped
        return replace(sized, **changes)

    def _mirrored_labels(self, angles: FloatArray, views: Views | None) -> IndexArray:
        """Return the views in the mirror, where angles are these."""
        known = self.labels != UNKNOWN_VIEW
        if views is None:
            if known.any():
                raise ValueError("views must be given to mirror labels: name what they stand for.")
            return self.labels
        by_angle = known & ~np.isnan(angles)
        by_view = known & np.isnan(angles)
        labels = self.labels.copy()
        labels[by_angle] = views.label_of(angles[by_angle])
        if by_view.any():
            mirror = np.array(views.mirror)
            if labels[by_view].max() >= len(mirror):
                raise ValueError(f"labels must be indices into the {len(mirror)} views.")
            labels[by_view] = mirror[labels[by_view]]
        return labels

    def with_views(self, views: Views) -> AnnotatedImage:
        """Return the image with the views that angles belong to; -1 where there is no angle."""
        return replace(self, labels=views.label_of(self.angles))

    def with_category_views(self, names: Sequence[str]) -> AnnotatedImage:
        """Return the image with views given by categories, for data whose classes are the views.

        Parameters
        ----------
        names : sequence of str
            Category of each view, in the order of the labels; others are labelled -1.

        Returns
        -------
        AnnotatedImage
            With other labels.

        Examples
        --------
        >>> from badacost.detection.annotations import AnnotatedImage
        >>> boxes = [[0, 0, 9, 9], [20, 0, 29, 9], [40, 0, 49, 9]]
        >>> street = AnnotatedImage(None, boxes, categories=["car rear", "sign", "car front"])
        >>> street.with_category_views(["car front", "car rear"]).labels
        array([ 1, -1,  0])
        """
        index = {name: label for label, name in enumerate(names)}
        labels = [index.get(category, UNKNOWN_VIEW) for category in self.categories]
        return replace(self, labels=np.array(labels, dtype=np.int64))

    def with_aspect_ratio(self, ratio: float) -> AnnotatedImage:
        """Return the image with boxes of a detection window; height and centre stay.

        Parameters
        ----------
        ratio : float
            Width divided by height of the window.

        Returns
        -------
        AnnotatedImage
            With other boxes; those that are ignored stay as they are, as they mark a region.
        """
        check_number("ratio", ratio, low=0.0, open_low=True)
        x1, y1, x2, y2 = self.boxes.T
        half_width = np.where(self.ignore, x2 - x1, (y2 - y1) * ratio) / 2.0
        centre = (x1 + x2) / 2.0
        boxes = np.stack([centre - half_width, y1, centre + half_width, y2], axis=1)
        return replace(self, boxes=np.where(self.ignore[:, np.newaxis], self.boxes, boxes))


def wrapped(degrees: FloatArray) -> FloatArray:
    """Return angles brought into -180 (included) to 180 (excluded)."""
    turned = (degrees + 180.0) % 360.0 - 180.0
    # The remainder of a tiny negative number is rounded to 360 itself.
    return np.where(turned >= 180.0, -180.0, turned)


def _numeric(name: str, values: Any, kinds: str) -> NDArray[Any]:
    """Return an array of a dtype of these kinds; an empty list has the first one."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as an array: {error}") from error
    if array.size == 0:
        return array.astype(f"{kinds[0]}{1 if kinds[0] == 'b' else 8}")
    if array.dtype.kind not in kinds:
        wanted = {"b": "True or False", "i": "integers", "f": "numbers"}[kinds[0]]
        raise ValueError(f"{name} must be {wanted}; got an array of dtype {array.dtype}.")
    return array


def _check_length(name: str, array: NDArray[Any], n: int) -> None:
    """Raise unless there is one value for each box."""
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), as boxes has; got shape {array.shape}.")


def _checked_boxes(values: Any) -> FloatArray:
    """Return boxes as an array of their own, of shape (n, 4)."""
    boxes = _numeric("boxes", [] if values is None else values, "fiu").astype(np.float64)
    if boxes.size == 0:
        return np.zeros((0, 4))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes must have shape (n, 4); got shape {boxes.shape}.")
    if not (np.abs(boxes) <= MAX_COORDINATE).all():
        raise ValueError(f"boxes must lie within {MAX_COORDINATE:g} pixels of the origin.")
    if (boxes[:, 2:] < boxes[:, :2]).any():
        raise ValueError("boxes must be given as x1, y1, x2, y2 with x1 <= x2 and y1 <= y2.")
    return boxes


def _checked_labels(values: Any, n: int) -> IndexArray:
    """Return indices of views, -1 for unknown ones."""
    if values is None:
        return np.full(n, UNKNOWN_VIEW, dtype=np.int64)
    labels = _numeric("labels", values, "iu").astype(np.int64)
    _check_length("labels", labels, n)
    if (labels < UNKNOWN_VIEW).any():
        raise ValueError(f"labels must be at least -1, which means unknown; got {labels.min()}.")
    return labels


def _checked_numbers(name: str, values: Any, n: int) -> FloatArray:
    """Return numbers, NaN for unknown ones."""
    if values is None:
        return np.full(n, np.nan)
    numbers = _numeric(name, values, "fiu").astype(np.float64)
    _check_length(name, numbers, n)
    if np.isinf(numbers).any():
        raise ValueError(f"{name} must be finite, or NaN where they are not known.")
    return numbers


def _checked_flags(values: Any, n: int) -> Mask:
    """Return flags, False by default."""
    if values is None:
        return np.zeros(n, dtype=np.bool_)
    flags = _numeric("ignore", values, "b").astype(np.bool_)
    _check_length("ignore", flags, n)
    return flags


def _checked_categories(values: Any, n: int) -> tuple[str, ...]:
    """Return the category of each object."""
    if values is None:
        return ("object",) * n
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(
            f"categories must be a sequence of strings, one for each box; got "
            f"{type(values).__name__}."
        )
    categories = tuple(values)
    if len(categories) != n:
        raise ValueError(f"categories must be one for each of {n} boxes; got {len(categories)}.")
    for category in set(categories):
        check_name("a category", category)
    return categories


def _checked_ellipses(values: Any, n: int) -> FloatArray:
    """Return ellipses as an array of their own, of shape (n, 5)."""
    ellipses = _numeric("ellipses", values, "fiu").astype(np.float64)
    if n == 0 and ellipses.size == 0:
        return np.zeros((0, 5))
    if ellipses.shape != (n, 5):
        raise ValueError(f"ellipses must have shape ({n}, 5); got shape {ellipses.shape}.")
    if not np.isfinite(ellipses).all() or (ellipses[:, :2] < 0.0).any():
        raise ValueError("ellipses must be finite, with half axes of at least 0.")
    return ellipses


def _checked_image(image: Any) -> Path | Pixels | None:
    """Return a path or the pixels."""
    if image is None:
        return None
    if isinstance(image, str | os.PathLike):
        return Path(image)
    if not isinstance(image, np.ndarray):
        raise TypeError(f"image must be a path, an array or None; got {type(image).__name__}.")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            f"image must be RGB bytes of shape (height, width, 3); got {image.dtype} of shape "
            f"{image.shape}: badacost.detection.images.read_image converts it."
        )
    # Read-only pixels are shared by all that is derived from an image.
    pixels = image.copy() if image.flags.writeable else np.ascontiguousarray(image)
    pixels.setflags(write=False)
    return pixels


def _checked_size(size: Any, image: Path | Pixels | None) -> tuple[int, int] | None:
    """Return height and width, of the pixels if there are any."""
    if isinstance(image, np.ndarray):
        size = image.shape[:2] if size is None else size
        if tuple(size) != image.shape[:2]:
            raise ValueError(f"size must be {image.shape[:2]}, that of the pixels; got {size!r}.")
    if size is None:
        return None
    if not isinstance(size, Sequence) or len(size) != 2:
        raise ValueError(f"size must be a pair, height and width; got {size!r:.80}.")
    for what, pixels in zip(("height", "width"), size, strict=True):
        check_number(f"the {what} in size", pixels, Integral, low=1, high=MAX_COORDINATE)
    return int(size[0]), int(size[1])
