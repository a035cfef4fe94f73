"""Views as the labels of annotated objects, by whatever the annotations tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np

from badacost._utils.validation import check_number
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.views import Views, checked_names

DEFAULT_VIEWS = 8


def label_views(
    images: Sequence[AnnotatedImage], views: Views | Sequence[str] | int | None = None
) -> tuple[Views, list[AnnotatedImage]]:
    """Divide annotated objects into views, the classes of a detector.

    Parameters
    ----------
    images : sequence of AnnotatedImage
        Pictures with objects.
    views : Views, sequence of str or int, optional
        Views by the headings of objects; categories that are views, as front and rear, others are
        not labelled; or the number of equal views around objects, 1 for a single view of all. By
        default 8 views where a heading is known, or else the labels that objects have, or else a
        single view. Labels are kept where objects have labels and no heading.

    Returns
    -------
    views : Views
        What the labels stand for.
    images : list of AnnotatedImage
        The pictures with labels, -1 for what is not learned.

    Raises
    ------
    ValueError
        Where nothing tells the views apart that were asked for.

    Examples
    --------
    >>> from badacost.detection.annotations import AnnotatedImage, label_views
    >>> boxes = [[0, 0, 9, 9], [20, 0, 29, 9]]
    >>> street = AnnotatedImage(None, boxes, categories=["rear", "front"], angles=[-90, 90])
    >>> views, (labelled,) = label_views([street], 4)
    >>> views.names, labelled.labels
    (('0°', '-90°', '-180°', '90°'), array([1, 3]))
    >>> views, (labelled,) = label_views([street], ["front", "rear"])
    >>> views.names, labelled.labels
    (('front', 'rear'), array([1, 0]))
    """
    if isinstance(views, int | np.integer):
        check_number("views", views, Integral, low=1)
        views = Views.around(int(views), ["object"] if views == 1 else None)
    elif views is not None and not isinstance(views, Views):
        return _by_category(images, views)
    has_headings = any(np.isfinite(image.angles).any() for image in images)
    n_labels = 1 + max((int(image.labels.max()) for image in images if len(image)), default=-1)
    has_labels = n_labels > 0 and not has_headings
    if views is None and has_labels:
        return Views(tuple(f"view {view + 1}" for view in range(n_labels))), list(images)
    if views is None:
        views = Views.around(DEFAULT_VIEWS) if has_headings else Views.around(1, ["object"])
    if len(views) == 1:
        return views, [replace(image, labels=np.zeros(len(image), np.int64)) for image in images]
    if has_labels:
        if n_labels > len(views):
            raise ValueError(
                f"the objects have labels up to {n_labels - 1}, and there are {len(views)} views: "
                f"give {n_labels} or more."
            )
        return views, list(images)
    if images and not has_headings:
        raise ValueError(
            "the objects have no angles to divide them into views: use a single view "
            "(--single-view)."
        )
    return views, [image.with_views(views) for image in images]


def _by_category(
    images: Sequence[AnnotatedImage], names: Sequence[str]
) -> tuple[Views, list[AnnotatedImage]]:
    """Categories as views."""
    views = Views(checked_names(names))
    known = {category for image in images for category in image.categories}
    for name in views.names:
        if name not in known:
            raise ValueError(
                f"no object is of the category {name!r:.80}; the categories are "
                f"{sorted(known)!r:.200}."
            )
    return views, [image.with_category_views(views.names) for image in images]
