"""Results and annotations made comparable: the same names, categories, views and ignored objects.

Whoever evaluates results of any source by any protocol aligns them here first.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from badacost._utils.arrays import FloatArray, IndexArray
from badacost.detection.annotations.image import UNKNOWN_VIEW, AnnotatedImage
from badacost.detection.annotations.selection import Selection
from badacost.detection.annotations.views import Views, nearest_view
from badacost.detection.boxes import UNNAMED, Detections
from badacost.detection.evaluation.pairs import IGNORED_AREA, NEIGHBOURS
from badacost.detection.images import is_image

_LABEL_SUFFIXES = (".txt", ".xml")
_HEADING = re.compile(r"(-?[0-9]{1,3}(?:\.[0-9]{1,3})?)°")


class Alignment(NamedTuple):
    """Detections and annotations that fit together, by the names of annotated images.

    Parameters
    ----------
    detections : dict of str to Detections
        What was found.
    annotations : dict of str to AnnotatedImage
        What is there.

    Examples
    --------
    Every protocol takes the two:

    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import align, evaluate_voc
    >>> truth = AnnotatedImage(None, [[0, 0, 90, 40]])
    >>> found = Detections([[0, 0, 90, 40]], [1.0], [0], names=["car"])
    >>> evaluate_voc(*align({"drive/a.png": found}, {"a.png": truth})).ap
    1.0
    """

    detections: dict[str, Detections]
    annotations: dict[str, AnnotatedImage]


def align(
    detections: Mapping[str, Detections],
    annotations: Mapping[str, AnnotatedImage],
    *,
    category: str | None = None,
    selection: Selection | None = None,
    views: Views | None = None,
    clip: bool = False,
) -> Alignment:
    """Make results and annotations comparable.

    *Names.* As much of the path as both sides have must agree, without the suffix of a picture or
    of its labels. Detections in images without annotations are left out, with a warning.

    *Categories.* What is to be found has the category of the detections, in upper or lower case;
    or, if no object has, a category that is the name of one of their views; or else any. What
    KITTI calls its neighbour (a van beside cars, a sitting person beside pedestrians) and areas of
    DontCare are ignored, as is what the annotations ignore. Other objects are dropped: to find
    them is wrong.

    *Views.* An object with a heading has the view of the detections whose heading is nearest; one
    without has the view it is labelled with, or the one that its category names. Views that are
    named by headings, as "45°", have these.

    Parameters
    ----------
    detections : mapping of str to Detections
        What was found, by image.
    annotations : mapping of str to AnnotatedImage
        What is there, by image, with all its categories.
    category : str, optional
        What is to be found, where it is not what the detections are of.
    selection : Selection, optional
        Which objects are to be found, ignored and dropped, where it is not as above; as
        `KITTI_CARS`.
    views : Views, optional
        Compare these views: detections and objects have those that their headings belong to, or
        that their views are named after. By default those of the detections.
    clip : bool, default=False
        Whether to cut detections at the borders of their images, where the annotations of KITTI
        end. Images must have a `size`.

    Returns
    -------
    Alignment
        Detections, in their order, and annotations, in theirs. Labels of objects are indices into
        the names of the detections, -1 where views cannot be compared.

    Raises
    ------
    ValueError
        Where a name matches several images or none at all, or a size is missing.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import align, evaluate_voc
    >>> boxes = [[0, 0, 90, 40], [100, 0, 190, 50], [200, 0, 300, 80]]
    >>> street = AnnotatedImage(
    ...     None, boxes, categories=["car", "Van", "Tram"], angles=[80.0, 0.0, 0.0], size=(90, 400)
    ... )
    >>> found = Detections(boxes[:2], [1.0, 2.0], [1, 0], ["right", "front"], [0.0, 90.0], "Car")
    >>> detections, annotations = align({"drive/000001.png": found}, {"000001": street})
    >>> annotations["000001"].categories, annotations["000001"].ignore
    (('car', 'Van'), array([False,  True]))
    >>> result = evaluate_voc(detections, annotations)
    >>> result.ap, result.view_accuracy
    (1.0, 1.0)
    """
    for name, image in annotations.items():
        if not isinstance(image, AnnotatedImage):
            raise TypeError(
                f"annotations of image {name!r:.80} must be an AnnotatedImage; got "
                f"{type(image).__name__}."
            )
    if category is not None and selection is not None:
        raise ValueError("selection has categories of its own: leave out category.")
    found = _named(detections, annotations)
    if clip:
        found = {name: _clipped(boxes, annotations[name]) for name, boxes in found.items()}
    found, truth = _in_same_views(found, annotations, views)
    if selection is not None:
        return Alignment(found, {name: selection.apply(image) for name, image in truth.items()})
    return _of_same_category(found, truth, category)


def _named(
    detections: Mapping[str, Detections], annotations: Mapping[str, AnnotatedImage]
) -> dict[str, Detections]:
    """Return detections under the names of annotated images, which they need not give in full."""
    tails = _Tails()
    paths: dict[str, set[tuple[str, ...]]] = {}
    for name, image in annotations.items():
        file = [str(image.image)] if isinstance(image.image, PurePath) else []
        paths[name] = {_parts(known) for known in {name, image.name, *file}}
        for path in paths[name]:
            tails.add(path, name)
    found: dict[str, Detections] = {}
    n_unknown = n_doubtful = 0
    for given, boxes in detections.items():
        parts = _parts(given)
        best = [given] if given in annotations else tails.owners(parts)
        if not best:
            n_unknown += 1
            continue
        if len(best) > 1 or best[0] in found:
            raise ValueError(
                f"the name {given!r:.200} matches several pictures: detect with longer paths."
            )
        found[best[0]] = boxes
        if given not in annotations:
            others = [other for other in paths[best[0]] if other[-1] == parts[-1]]
            n_doubtful += all(_are_apart(parts, other) for other in others)
    if n_doubtful:
        warnings.warn(
            f"{n_doubtful} pictures have the same name as annotated ones, in other folders: check "
            "that results and annotations belong together.",
            stacklevel=3,
        )
    if n_unknown and not found:
        raise ValueError("no picture of the detections is annotated: compare their names.")
    if n_unknown:
        warnings.warn(f"{n_unknown} pictures without annotations are left out.", stacklevel=3)
    return found


class _Tails:
    """Which images have paths that end alike: a tree of the parts of paths, from the last one on.

    An end that several images have keeps two of them.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[int, str], int] = {}
        self._owners: list[list[str]] = [[]]

    def add(self, path: Sequence[str], owner: str) -> None:
        """Add a path of an image."""
        node = 0
        for part in reversed(path):
            node = self._next.setdefault((node, part), len(self._owners))
            if node == len(self._owners):
                self._owners.append([])
            if len(self._owners[node]) < 2 and owner not in self._owners[node]:
                self._owners[node].append(owner)

    def owners(self, path: Sequence[str]) -> list[str]:
        """Return images that have the longest end of a path that any has, at most two of them."""
        node = 0
        for part in reversed(path):
            if (node, part) not in self._next:
                break
            node = self._next[node, part]
        return self._owners[node]


def _parts(name: str) -> tuple[str, ...]:
    """Return a path without the suffix of a picture or its labels, part by part."""
    path = PurePath(name)
    if is_image(path) or path.suffix.lower() in _LABEL_SUFFIXES:
        path = path.with_suffix("")
    return path.parts or (name,)


def _common_tail(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many parts at the end are the same."""
    length = 0
    for a, b in zip(reversed(first), reversed(second), strict=False):
        if a != b:
            break
        length += 1
    return length


def _are_apart(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two relative paths end alike, but begin in different folders."""
    length = _common_tail(first, second)
    relative = not (PurePath(*first).is_absolute() or PurePath(*second).is_absolute())
    return relative and length < min(len(first), len(second))


def _clipped(found: Detections, image: AnnotatedImage) -> Detections:
    """Return the parts of boxes inside an image."""
    size = image.measured().size
    if size is None:
        raise ValueError(
            f"the size of {image.name!r:.200} is not known: give it, or the picture, to cut boxes "
            "at its borders."
        )
    return found.clipped(size[1], size[0])


def _in_same_views(
    found: dict[str, Detections], truth: Mapping[str, AnnotatedImage], views: Views | None
) -> Alignment:
    """Return detections and objects labelled by the same views."""
    kinds = {(boxes.names, boxes.angles) for boxes in found.values()}
    names, angles = kinds.pop() if len(kinds) == 1 else ((), None)
    angles = angles or _named_headings(names)
    if views is not None:
        places = _places(names, angles, views)
        names, angles = (views.names, views.angles) if places is not None else ((), None)
        if places is not None:
            found = {
                name: replace(
                    boxes, labels=places[boxes.labels], names=views.names, angles=views.angles
                )
                for name, boxes in found.items()
            }
    labels = {name: _labels(image, names, angles, views) for name, image in truth.items()}
    highest = max((int(part.max(initial=-1)) for part in labels.values()), default=-1)
    if highest >= len(names) > 0:
        warnings.warn(
            f"objects are labelled up to view {highest}, and detections have {len(names)} views: "
            "views are not compared.",
            stacklevel=3,
        )
    if highest >= len(names):
        labels = {name: np.full_like(part, UNKNOWN_VIEW) for name, part in labels.items()}
    return Alignment(
        found, {name: replace(image, labels=labels[name]) for name, image in truth.items()}
    )


def _named_headings(names: Sequence[str]) -> tuple[float, ...] | None:
    """Return the headings that views are named by, if all are."""
    matches = [_HEADING.fullmatch(name) for name in names]
    return tuple(float(match[1]) for match in matches if match) if all(matches) else None


def _places(
    names: Sequence[str], angles: Sequence[float] | None, views: Views
) -> IndexArray | None:
    """Return the one of `views` that each view of detections belongs to; None if nothing tells."""
    if angles and views.angles:
        return views.label_of(angles)
    if names and set(names) <= set(views.names):
        return np.array([views.names.index(name) for name in names], dtype=np.int64)
    return None


def _labels(
    image: AnnotatedImage,
    names: Sequence[str],
    angles: Sequence[float] | None,
    views: Views | None,
) -> IndexArray:
    """Return the view of each object: by its heading, its label, or its category."""
    if len(names) == 1:
        return np.zeros(len(image), dtype=np.int64)
    labels = np.full(len(image), UNKNOWN_VIEW, dtype=np.int64)
    if angles:
        known = np.isfinite(image.angles)
        headings: FloatArray = image.angles[known]
        labels[known] = (
            nearest_view(headings, angles) if views is None else views.label_of(headings)
        )
    labels = np.where(labels == UNKNOWN_VIEW, image.labels, labels)
    by_name = {name.casefold(): label for label, name in enumerate(names)}
    named = [by_name.get(kind.casefold(), UNKNOWN_VIEW) for kind in image.categories]
    return np.where(labels == UNKNOWN_VIEW, np.array(named, dtype=np.int64), labels)


def _of_same_category(
    found: dict[str, Detections], truth: dict[str, AnnotatedImage], category: str | None
) -> Alignment:
    """Return the objects that are to be found or ignored, and detections of their category."""
    annotated = {name.casefold(): name for image in truth.values() for name in image.categories}
    kinds = sorted({boxes.category for boxes in found.values()} - {UNNAMED})
    wanted = category
    if category is None:
        wanted = next((kind for kind in kinds if kind.casefold() in annotated), None)
    elif kinds and category.casefold() not in map(str.casefold, kinds):
        warnings.warn(
            f"the detections are of {', '.join(kinds):.200}, not of {category!r:.80}.", stacklevel=3
        )
    if wanted is not None:
        wanted = annotated.get(wanted.casefold(), wanted)
        own = {wanted.casefold()}
    else:
        views = {name.casefold() for boxes in found.values() for name in boxes.names}
        own = (views & set(annotated)) or (set(annotated) - {IGNORED_AREA})
        if kinds and own and not own & (views | {UNNAMED}):
            warnings.warn(
                f"no annotated object is of {', '.join(kinds):.200}, as detections are: all "
                "objects are to be found.",
                stacklevel=3,
            )
    truth = {name: _with_category(image, own, wanted) for name, image in truth.items()}
    if wanted is not None:
        named = {UNNAMED, wanted.casefold()}
        found = {
            name: replace(boxes, category=wanted) if boxes.category.casefold() in named else boxes
            for name, boxes in found.items()
        }
    return Alignment(found, truth)


def _with_category(image: AnnotatedImage, own: set[str], spelling: str | None) -> AnnotatedImage:
    """Return an image with its own objects and ignored ones, the former spelled in one way."""
    kinds = [kind.casefold() for kind in image.categories]
    beside = {IGNORED_AREA, *(NEIGHBOURS[kind] for kind in own if kind in NEIGHBOURS)} - own
    is_own = np.array([kind in own for kind in kinds], dtype=np.bool_)
    ignore = image.ignore | np.array([kind in beside for kind in kinds], dtype=np.bool_)
    if spelling is not None:
        names = zip(is_own, image.categories, strict=True)
        image = replace(image, categories=tuple(spelling if mine else name for mine, name in names))
    return replace(image, ignore=ignore)[is_own | ignore]
