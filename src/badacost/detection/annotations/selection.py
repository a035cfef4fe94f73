"""`Selection`: which annotated objects are learned, which are ignored, and which are dropped.

An object that is ignored is neither an example nor background. One that is dropped is background.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from badacost._utils.validation import check_number
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.boxes import check_name


@dataclass(frozen=True)
class Selection:
    """What to learn of annotated images. Limits themselves are allowed; what is not known passes.

    Parameters
    ----------
    categories : sequence of str, optional
        Objects to learn; all of them by default.
    ignored : sequence of str, optional
        Categories to ignore. What is in neither of the two is dropped.
    min_width, min_height : float, default=0
        Ignore smaller boxes, in pixels; boxes without an area are always ignored.
    max_truncation, max_occlusion : float, optional
        Ignore objects that lie outside of the picture or are hidden by more than this.

    Examples
    --------
    >>> from badacost.detection.annotations import KITTI_CARS, AnnotatedImage
    >>> street = AnnotatedImage(
    ...     None,
    ...     [[0, 0, 90, 40], [0, 0, 90, 20], [200, 0, 300, 80], [400, 0, 420, 40]],
    ...     categories=["Car", "Car", "Van", "Pedestrian"],
    ... )
    >>> KITTI_CARS.apply(street).categories
    ('Car', 'Car', 'Van')
    >>> KITTI_CARS.apply(street).ignore
    array([False,  True,  True])
    """

    categories: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()
    min_width: float = 0.0
    min_height: float = 0.0
    max_truncation: float | None = None
    max_occlusion: float | None = None

    def __post_init__(self) -> None:
        for field in ("categories", "ignored"):
            names = getattr(self, field)
            if names is None and field == "categories":
                continue
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise TypeError(f"{field} must be a sequence of names; got {names!r:.80}.")
            object.__setattr__(self, field, tuple(names))
            for name in getattr(self, field):
                check_name(f"a name in {field}", name)
        check_number("min_width", self.min_width, low=0.0)
        check_number("min_height", self.min_height, low=0.0)
        check_number("max_truncation", self.max_truncation, low=0.0, none=True)
        check_number("max_occlusion", self.max_occlusion, low=0.0, none=True)

    def apply_all(self, images: Iterable[AnnotatedImage]) -> list[AnnotatedImage]:
        """Return images with the objects that are learned or ignored; some must be learned.

        Parameters
        ----------
        images : iterable of AnnotatedImage
            Pictures with all their objects.

        Returns
        -------
        list of AnnotatedImage
            All pictures, also those without objects.

        Raises
        ------
        ValueError
            Where there is nothing to learn; the message has the categories that there are.
        """
        images = list(images)
        selected = [self.apply(image) for image in images]
        if any((~image.ignore).any() for image in selected):
            return selected
        known = sorted({name for image in images for name in image.categories})
        if self.categories is None or not known:
            raise ValueError(
                "there are no objects to learn: name annotations with boxes that are not ignored."
            )
        raise ValueError(
            f"there are no objects to learn of the categories {list(self.categories)!r:.80}: the "
            f"annotations have {known!r:.200}."
        )

    def apply(self, image: AnnotatedImage) -> AnnotatedImage:
        """Return the image with the objects that are learned or ignored.

        Parameters
        ----------
        image : AnnotatedImage
            Objects that are ignored already stay so, whatever their category.

        Returns
        -------
        AnnotatedImage
            In the order of the objects.
        """
        category = np.array(image.categories, dtype=np.str_)
        unwanted = np.isin(category, self.ignored) | image.ignore
        learned = ~unwanted
        if self.categories is not None:
            learned &= np.isin(category, self.categories)
        width, height = image.sizes.T
        unfit = (width < self.min_width) | (height < self.min_height)
        unfit |= (width <= 0.0) | (height <= 0.0)
        if self.max_truncation is not None:
            unfit |= image.truncation > self.max_truncation
        if self.max_occlusion is not None:
            unfit |= image.occlusion > self.max_occlusion
        return replace(image, ignore=unwanted | unfit)[learned | unwanted]


# What the paper's car detectors learn. It is KITTI's moderate level but for the height: KITTI takes
# the last pixel from the first one, so that its 25 is 26 here.
KITTI_CARS = Selection(
    categories=("Car",),
    ignored=("Van", "Truck", "Tram", "DontCare"),
    min_height=25.0,
    max_truncation=0.3,
    max_occlusion=1.0,
)
