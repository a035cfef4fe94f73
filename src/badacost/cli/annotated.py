"""Annotated pictures that commands read, and the views of their objects."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from badacost.detection.annotations import AnnotatedImage, Views

DEFAULT_VIEWS = 8
_SYNTHETIC = ("synthetic:", "made-up:")  # the second is the former name
_MAX_SYNTHETIC = 100_000


class ViewedImages(NamedTuple):
    """Pictures whose objects are labelled by views.

    Without headings, `views` names the views, but has no angles, and they have no mirror images.
    """

    views: Views
    images: list[AnnotatedImage]
    have_headings: bool


def annotated_images(
    sources: Sequence[str],
    format: str | None,
    images: Path | None,
    columns: Mapping[str, str] | None = None,
) -> list[AnnotatedImage]:
    """Read annotations of files and folders, or draw scenes for a source `synthetic:NUMBER[:SEED]`.

    The format is guessed if it is None; pictures are beside the files if their folder is None;
    `columns` are for tables, see `read_table`, and for attributes of COCO, see `read_coco`.
    """
    from badacost.detection.annotations import guessed_format, read_annotations

    options: dict[str, Any] = {} if images is None else {"images": images}
    read: list[AnnotatedImage] = []
    for source in sources:
        synthetic = source.startswith(_SYNTHETIC)
        if columns is not None:
            kind = None if synthetic else format or guessed_format(source)
            if kind not in ("table", "coco"):
                raise ValueError(
                    f"--columns are for CSV tables and COCO files, and {source!r:.80} is none."
                )
            options["columns" if kind == "table" else "attributes"] = columns
        if synthetic:
            read += _synthetic(source)
            continue
        if images is not None:
            check_annotated(source, format, "leave out --images")
        read += read_annotations(source, format, **options)
    return read


def _synthetic(source: str) -> list[AnnotatedImage]:
    """Scenes of the generator."""
    from badacost.detection.scenes import make_scenes

    _, *numbers = source.split(":")
    if len(numbers) > 2 or not all(text.isdecimal() and len(text) < 10 for text in numbers):
        raise ValueError(
            f"{source!r:.80} must have a number of scenes, perhaps a seed, as synthetic:200:7."
        )
    n_scenes, seed = map(int, [*numbers, "0"][:2])
    if not 1 <= n_scenes <= _MAX_SYNTHETIC:
        raise ValueError(f"{source!r} must be of 1 to {_MAX_SYNTHETIC} scenes.")
    return [
        replace(scene, name=f"{source} {scene.name}")
        for scene in make_scenes(n_scenes, random_state=seed)
    ]


def check_annotated(path: str | os.PathLike[str], format: str | None, remedy: str) -> None:
    """Refuse pictures without annotations; `remedy` says what to do instead."""
    from badacost.detection.annotations import guessed_format

    if (guessed_format(path) if format is None else format) == "folder":
        raise ValueError(
            f"{str(path)!r} has pictures without annotations: name the file that has them, or "
            f"{remedy}."
        )


def with_views(
    images: Sequence[AnnotatedImage],
    n_views: int | None = None,
    yaw_limits: str | None = None,
    single_view: bool = False,
    category_views: str | None = None,
) -> ViewedImages:
    """Divide objects into views; at most one of the four ways may be given.

    Labels that objects have are kept where no object has an angle. Yaw limits and categories are
    separated by commas.
    """
    from badacost.detection.annotations import Views

    given = (n_views is not None, yaw_limits is not None, single_view, category_views is not None)
    if sum(given) > 1:
        raise ValueError(
            "--views, --yaw-limits, --single-view and --category-views exclude each other: give "
            "one."
        )
    if category_views is not None:
        return _with_category_views(images, category_views)
    has_angles = any(np.isfinite(image.angles).any() for image in images)
    n_labels = 1 + max((int(image.labels.max()) for image in images if len(image)), default=-1)
    has_labels = n_labels > 0 and not has_angles
    if single_view or not (any(given) or has_angles or has_labels):
        labelled = [replace(image, labels=np.zeros(len(image), np.int64)) for image in images]
        return ViewedImages(Views.around(1, ["object"]), labelled, False)
    if yaw_limits is not None:
        views = yaw_views(yaw_limits)
    elif n_views is None and has_labels:
        views = Views.around(n_labels, [f"view {view + 1}" for view in range(n_labels)])
        return ViewedImages(views, list(images), False)
    else:
        views = Views.around(n_views or DEFAULT_VIEWS)
    if has_labels:
        if n_labels > len(views):
            raise ValueError(
                f"the objects have labels up to {n_labels - 1}, and there are {len(views)} views: "
                f"give {n_labels} or more."
            )
        return ViewedImages(views, list(images), True)
    if images and not has_angles:
        raise ValueError("the objects have no angles to tell views by: add --single-view.")
    return ViewedImages(views, [image.with_views(views) for image in images], True)


def _with_category_views(images: Sequence[AnnotatedImage], categories: str) -> ViewedImages:
    """Categories as views."""
    from badacost.detection.annotations import Views

    names = [name.strip() for name in categories.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            "--category-views must be distinct categories with commas between them; got "
            f"{categories!r:.80}."
        )
    known = {category for image in images for category in image.categories}
    for name in names:
        if name not in known:
            raise ValueError(
                f"--category-views has {name!r:.80}, and no object is of that category; the "
                f"categories are {sorted(known)!r:.200}."
            )
    views = Views.around(len(names), names)
    return ViewedImages(views, [image.with_category_views(names) for image in images], False)


def yaw_views(limits: str) -> Views:
    """Return the views of faces between limits with commas between them."""
    from badacost.detection.annotations import Views

    try:
        numbers = [float(part) for part in limits.split(",")]
    except ValueError:
        raise ValueError(
            f"--yaw-limits must be numbers with commas between them; got {limits!r:.80}."
        ) from None
    return Views.of_yaw(numbers)
