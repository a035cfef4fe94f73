"""Views of a detector: how they are mistaken for each other, and how they look on average."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.numbers import short_number
from badacost._utils.validation import check_number
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.boxes import overlaps
from badacost.detection.images import Pixels, import_pil
from badacost.plotting.base import figure_and_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_PIXELS = 2**24  # of all mean images together
_MAX_NAME_LENGTH = 20  # of a view, on an axis
_MIN_INSIDE = 0.5  # of an object, for its part of a mean image


class ViewConfusionDisplay:
    """Annotated views against those that a detector finds.

    The colour of a cell is its share of the objects of its row; the number in it counts them.

    Parameters
    ----------
    counts : array-like of shape (n_views, n_views)
        Objects by annotated (rows) and found (columns) view, as
        `badacost.detection.evaluation.evaluate_voc` counts them.
    names : sequence of str
        Names of the views.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from badacost.detection.inspection import ViewConfusionDisplay
    >>> display = ViewConfusionDisplay([[8, 2], [1, 9]], ["left", "right"]).plot()
    >>> display.accuracy
    0.85
    >>> plt.close(display.figure_)
    """

    def __init__(self, counts: ArrayLike, names: Sequence[str]):
        self.counts = np.array(counts, dtype=np.float64)
        self.names = [str(name) for name in names]
        if self.counts.shape != (len(self.names), len(self.names)) or not self.names:
            raise ValueError(
                f"counts of {len(self.names)} views must be a square of that side, not of shape "
                f"{self.counts.shape}."
            )
        if not (np.isfinite(self.counts) & (self.counts >= 0.0)).all():
            raise ValueError("counts must be numbers that are not negative.")

    @property
    def accuracy(self) -> float:
        """Share of the objects whose view is right; NaN without objects."""
        total = self.counts.sum()
        return float(np.trace(self.counts) / total) if total else math.nan

    def plot(self, *, cmap: Any = "Blues", ax: Axes | None = None) -> ViewConfusionDisplay:
        """Draw the matrix.

        Parameters
        ----------
        cmap : str or matplotlib Colormap, default="Blues"
            Colours of the shares.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        ViewConfusionDisplay
            The display itself.
        """
        n_views = len(self.names)
        side = min(max(3.6, 0.36 * n_views + 1.4), 9.0)
        self.figure_, self.ax_ = figure_and_axes(ax, side + 1.2, side)
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1.0)
        image = self.ax_.imshow(shares, cmap=cmap, vmin=0.0, vmax=1.0)
        self.figure_.colorbar(image, ax=self.ax_, format="{x:.0%}", label="share of the view")
        # A number that does not fit its cell would cover the next one.
        size = min(10.0, 0.42 * 72.0 * (side - 1.4) / n_views)
        if size >= 4.0:
            for row, column in np.argwhere(self.counts > 0.0):
                self.ax_.text(
                    column, row, short_number(self.counts[row, column]), ha="center", va="center",
                    fontsize=size, color="white" if shares[row, column] > 0.5 else "black",
                )  # fmt: skip
        ticks = range(n_views)
        font = min(10.0, 1.6 * size)
        names = [
            n if len(n) <= _MAX_NAME_LENGTH else n[: _MAX_NAME_LENGTH - 1] + "…" for n in self.names
        ]
        upright = n_views > 4 or max(map(len, names)) > _MAX_NAME_LENGTH // 2
        # A name may hold dollar signs that do not make a formula.
        style: dict[str, Any] = {"fontsize": font, "parse_math": False}
        self.ax_.set_xticks(ticks, names, rotation=90 if upright else 0, **style)
        self.ax_.set_yticks(ticks, names, **style)
        self.ax_.set(xlabel="view found", ylabel="view annotated")
        return self


def mean_images(
    annotated: Iterable[AnnotatedImage], window: tuple[int, int], n_views: int
) -> tuple[Pixels, NDArray[np.int64]]:
    """Return the mean picture of the objects of each view.

    Objects are cut out with the aspect ratio of the window, keeping height and centre, and resized
    to it; beyond the picture its border is repeated. Objects that are ignored, whose view is not
    known, or of which less than half lies inside the picture are left out.

    Parameters
    ----------
    annotated : iterable of AnnotatedImage
        Pictures with labels.
    window : (int, int)
        Height and width of the mean pictures.
    n_views : int
        Number of views.

    Returns
    -------
    means : ndarray of uint8 of shape (n_views, height, width, 3)
        Mean pictures; black for a view without objects.
    counts : ndarray of shape (n_views,)
        Number of objects of each view.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.annotations import AnnotatedImage
    >>> from badacost.detection.inspection import mean_images
    >>> grey = np.full((40, 60, 3), 100, np.uint8)
    >>> seen = AnnotatedImage(grey, [[10, 10, 30, 30]], labels=[1])
    >>> means, counts = mean_images([seen], (8, 8), 2)
    >>> means[:, 4, 4, 0], counts
    (array([  0, 100], dtype=uint8), array([0, 1]))
    """
    if not isinstance(window, Sequence) or len(window) != 2:
        raise ValueError("window must be a height and a width.")
    height, width = window
    for side in window:
        check_number("window", side, Integral, low=1)
    check_number("n_views", n_views, Integral, low=1)
    if n_views * height * width > _MAX_PIXELS:
        raise ValueError(f"mean images have at most {_MAX_PIXELS} pixels: take a smaller window.")
    sums = np.zeros((n_views, height, width, 3))
    counts = np.zeros(n_views, dtype=np.int64)
    for image in annotated:
        objects = image.positives
        objects = objects[objects.labels >= 0]
        if not len(objects):
            continue
        if objects.labels.max() >= n_views:
            raise ValueError(
                f"{image.name!r:.80} has an object of view {objects.labels.max()}, but there are "
                f"{n_views} views: label it by the same views."
            )
        pixels = image.load()
        objects = _inside(_inside(objects, pixels).with_aspect_ratio(width / height), pixels)
        for box, label in zip(objects.boxes, objects.labels, strict=True):
            sums[label] += _cut_out(pixels, box, (height, width))
            counts[label] += 1
    means = sums / np.maximum(counts, 1)[:, None, None, None]
    return np.rint(means).astype(np.uint8), counts


def _inside(objects: AnnotatedImage, pixels: Pixels) -> AnnotatedImage:
    """Return the objects of which enough lies inside the picture."""
    picture = [[0.0, 0.0, pixels.shape[1], pixels.shape[0]]]
    return objects[overlaps(objects.boxes, picture, "first")[:, 0] >= _MIN_INSIDE]


def _cut_out(pixels: Pixels, box: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Return a part of a picture in this size; beyond the picture its border is repeated."""
    pil = import_pil()
    x1, y1, x2, y2 = box.tolist()
    left, top = math.floor(x1), math.floor(y1)
    columns = np.arange(left, max(math.ceil(x2), left + 1)).clip(0, pixels.shape[1] - 1)
    rows = np.arange(top, max(math.ceil(y2), top + 1)).clip(0, pixels.shape[0] - 1)
    picture = pil.fromarray(pixels[rows][:, columns])
    part = (x1 - left, y1 - top, x2 - left, y2 - top)
    resized = picture.resize((size[1], size[0]), pil.Resampling.BILINEAR, box=part)
    return np.asarray(resized, dtype=np.float64)
