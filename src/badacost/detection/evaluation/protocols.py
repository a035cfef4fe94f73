"""`evaluate_detections`: results and annotations by the rules of any benchmark, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from badacost._utils.validation import check_choice
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.selection import Selection
from badacost.detection.annotations.views import Views
from badacost.detection.boxes import Detections
from badacost.detection.evaluation.alignment import Alignment, align
from badacost.detection.evaluation.coco import CocoResult, evaluate_coco
from badacost.detection.evaluation.fddb import FddbResult, evaluate_fddb
from badacost.detection.evaluation.kitti import KittiResult, evaluate_kitti
from badacost.detection.evaluation.pairs import IGNORED_AREA
from badacost.detection.evaluation.voc import VocResult, evaluate_faces, evaluate_voc

Result = VocResult | KittiResult | FddbResult | CocoResult
_PROTOCOLS: Mapping[str, Callable[..., Result]] = {
    "voc": evaluate_voc,
    "faces": evaluate_faces,
    "kitti": evaluate_kitti,
    "fddb": evaluate_fddb,
    "coco": evaluate_coco,
}
PROTOCOLS = tuple(_PROTOCOLS)
_OF_FACES = ("faces", "fddb")  # all annotated objects are to be found


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How good detections are by the rules of a benchmark.

    Attributes
    ----------
    protocol : str
        The benchmark.
    alignment : Alignment
        Detections and annotations as they were compared.
    result : VocResult, KittiResult, FddbResult or CocoResult
        The figures.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_detections
    >>> found = {"a.png": Detections([[0, 0, 90, 40]], [1.0], [0], names=["car"])}
    >>> truth = [AnnotatedImage(None, [[0, 0, 90, 40]], name="a.png")]
    >>> evaluation = evaluate_detections(found, truth)
    >>> evaluation.views, evaluation.result.ap
    (['car'], 1.0)
    """

    protocol: str
    alignment: Alignment
    result: Result

    @property
    def views(self) -> list[str]:
        """Names of the views that were compared."""
        return list(next((found.names for found in self.alignment.detections.values()), ()))

    def to_dict(self) -> dict[str, Any]:
        """Return all figures in a form that JSON holds.

        Returns
        -------
        dict
            The protocol, the views, and what the result has.
        """
        return {"protocol": self.protocol, "views": self.views} | self.result.to_dict()


def evaluate_detections(
    detections: Mapping[str, Detections],
    annotations: Mapping[str, AnnotatedImage] | Iterable[AnnotatedImage],
    protocol: str = "voc",
    *,
    category: str | None = None,
    selection: Selection | None = None,
    views: Views | None = None,
    clip: bool = False,
    **options: Any,
) -> Evaluation:
    """Align results and annotations, and apply the rules of a benchmark.

    Parameters
    ----------
    detections : mapping of str to Detections
        What was found, by image; `read_results` reads files of it.
    annotations : iterable of AnnotatedImage, or mapping of str to AnnotatedImage
        What is there; `read_annotations` reads files of it.
    protocol : {"voc", "faces", "kitti", "fddb", "coco"}, default="voc"
        Average precision; the same as the paper has it for AFW and PASCAL faces; levels of
        difficulty and headings; ROC curves; average precision at several overlaps and by size.
    category : str, optional
        What is to be found, where it is not what the detections are of. Not for "faces" and "fddb",
        by which all annotated objects are to be found.
    selection : Selection, optional
        Which objects are to be found, ignored and dropped, as `KITTI_CARS`. For "voc" and "coco".
    views, clip
        See `align`.
    **options : object
        Passed to the function of the protocol, as ``overlap``.

    Returns
    -------
    Evaluation
        The figures, and what they were computed from.

    Raises
    ------
    ValueError
        Where results and annotations do not fit together.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import evaluate_detections
    >>> found = {"drive/a.png": Detections([[0, 0, 90, 40]], [1.0], [0], names=["car"])}
    >>> truth = [AnnotatedImage(None, [[0, 0, 90, 50]], name="a.png")]
    >>> evaluate_detections(found, truth, overlap=0.9).result.ap
    0.0
    """
    check_choice("protocol", protocol, PROTOCOLS)
    if protocol in _OF_FACES:
        if category is not None or selection is not None:
            raise ValueError(
                f"all annotated objects are to be found by {protocol}: leave out category and "
                "selection."
            )
        selection = Selection()
    truth = annotations if isinstance(annotations, Mapping) else images_by_name(annotations)
    aligned = align(
        detections, truth, category=category, selection=selection, views=views, clip=clip
    )
    if protocol == "kitti":
        options["category"] = category or _common_category(aligned)
    elif selection is None and _is_kitti(truth.values()):
        warnings.warn(
            "the annotations are those of KITTI, and small and hidden objects are to be found, "
            "too; the selection KITTI_CARS (--kitti-cars) and the protocol kitti do not ask for "
            "them.",
            stacklevel=2,
        )
    return Evaluation(protocol, aligned, _PROTOCOLS[protocol](*aligned, **options))


def images_by_name(images: Iterable[AnnotatedImage]) -> dict[str, AnnotatedImage]:
    """Return annotated images, with their sizes, by their paths, or by their names without a path.

    Parameters
    ----------
    images : iterable of AnnotatedImage
        Each image once.

    Returns
    -------
    dict of str to AnnotatedImage
        In their order.

    Raises
    ------
    ValueError
        Where there is no image, or one is annotated twice.

    Examples
    --------
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.evaluation import images_by_name
    >>> images_by_name([AnnotatedImage(None, [[0, 0, 90, 40]], name="a.png")])
    {'a.png': AnnotatedImage('a.png', 1 object)}
    """
    named: dict[str, AnnotatedImage] = {}
    for image in images:
        name = str(image.image) if isinstance(image.image, Path) else image.name
        if name in named:
            raise ValueError(f"the picture {name!r:.200} is annotated twice: leave one out.")
        named[name] = image.measured()
    if not named:
        raise ValueError("there are no annotated pictures: name other annotations.")
    return named


def _common_category(aligned: Alignment) -> str:
    """Return the first category of detections that is annotated, too."""
    annotated = {kind for image in aligned.annotations.values() for kind in image.categories}
    for found in aligned.detections.values():
        if found.category in annotated:
            return found.category
    raise ValueError(
        "no annotated object is of the category of the detections: give category (--category)."
    )


def _is_kitti(images: Iterable[AnnotatedImage]) -> bool:
    """Tell whether annotations have regions that only KITTI marks."""
    return any(kind.casefold() == IGNORED_AREA for image in images for kind in image.categories)
