"""Training windows: where they lie, how they are cut out, and what a cascade sees in them.

A window is cut out with a border that is wide enough for everything that channels, smoothing and
filters look at around it, so that its features are those it has in the pyramid at a scale of one.
Each is computed alone: sums run along whole columns of an image, so that windows on top of each
other would change one another in the last digits, and with them a training that is resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Positions
from badacost._utils.parallel import Threads
from badacost.backends.device import cuda_device
from badacost.detection.arrays import Planes
from badacost.detection.channels import ChannelParameters, compute_channels, rgb_to_luv
from badacost.detection.channels import triangle_filter as smooth
from badacost.detection.cuda_features import WindowMaps
from badacost.detection.decorrelation import decorrelate
from badacost.detection.detector import DeviceName
from badacost.detection.images import Pixels, import_pil

_REACH = 16  # pixels; what gradients, their norm, smoothing and filters of small cells look at
_TURNING_MARGIN = 8  # pixels that a rotation of a few degrees brings in from outside
MAX_OBJECT_HEIGHT = 2.0  # heights of its picture


@dataclass(frozen=True)
class Variation:
    """How copies of objects differ from them, besides their places.

    Up to `rotation` degrees to both sides; contrast and brightness by up to the share `contrast`;
    noise with a standard deviation of up to `noise` grey levels.
    """

    rotation: float
    contrast: float
    noise: float

    def of(self, picture: Any, margin: int, seed: int) -> Pixels:
        """Return the middle of a picture of PIL, varied as the seed says."""
        rng = np.random.default_rng(seed)
        turn, gain, shift, spread = rng.uniform(-1.0, 1.0, 4)
        turned = picture.rotate(turn * self.rotation, resample=import_pil().Resampling.BICUBIC)
        pixels = np.asarray(turned, np.float32)[margin:-margin, margin:-margin]
        mean, gain, shift = pixels.mean(), 1.0 + gain * self.contrast, 1.0 + shift * self.contrast
        varied = (pixels - mean) * gain + mean * shift
        varied = varied + rng.standard_normal(pixels.shape, np.float32) * (spread * self.noise)
        return np.clip(np.rint(varied), 0.0, 255.0).astype(np.uint8)


@dataclass(frozen=True)
class WindowShape:
    """Sizes in pixels: height and width of an object and of its window, side of a cell.

    The padded window is what is looked at; it has the same centre as the object.
    """

    window: tuple[int, int]
    padded_window: tuple[int, int]
    cell: int

    @property
    def cells(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.padded_window[0] // self.cell, self.padded_window[1] // self.cell

    @property
    def border(self) -> int:
        """Pixels around the padded window that its features may depend on: whole cells."""
        return max(4, -(-_REACH // self.cell)) * self.cell

    @property
    def crop(self) -> tuple[int, int]:
        """Height and width of a cut-out: padded window and border, filled up to whole cells."""
        height, width = (
            -(-length // self.cell) * self.cell + 2 * self.border for length in self.padded_window
        )
        return height, width

    def fitted(self, boxes: FloatArray) -> FloatArray:
        """Boxes of the same centre and height, with the aspect ratio of the window."""
        heights = boxes[:, 3] - boxes[:, 1]
        half = heights * (self.window[1] / self.window[0]) / 2.0
        centre = (boxes[:, 0] + boxes[:, 2]) / 2.0
        return np.stack([centre - half, boxes[:, 1], centre + half, boxes[:, 3]], axis=1)

    def jittered(
        self, boxes: FloatArray, octave: int, rng: np.random.Generator, amount: float = 1.0
    ) -> FloatArray:
        """Return boxes, (n, 4), as a scan may meet them, moved at random.

        They are moved by at most half a cell and scaled by at most half a level, or by `amount`
        times as much. `octave` is the number of pyramid levels in an octave.
        """
        scales = (boxes[:, 3] - boxes[:, 1]) / self.window[0]
        half = amount / 2.0
        moves = rng.uniform(-half, half, (len(boxes), 2)) * self.cell * scales[:, None]
        zoom = 2.0 ** (rng.uniform(-half, half, len(boxes)) / octave)[:, None]
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2.0 + moves
        halves = (boxes[:, 2:] - boxes[:, :2]) / 2.0 * zoom
        return np.concatenate([centres - halves, centres + halves], axis=1)

    def cut(
        self,
        pixels: Pixels,
        boxes: FloatArray,
        seeds: IndexArray | None = None,
        variation: Variation | None = None,
    ) -> Pixels:
        """Cut windows out of an image and resize them; the border of the image is continued.

        Boxes x1, y1, x2, y2, (n, 4), have the aspect ratio of the window; cut-outs have the shape
        (n, crop height, crop width, 3). Those with a seed are varied, see `Variation`. A ValueError
        is raised where an object has no height, or is far larger than the image.
        """
        image_module = import_pil()
        varied = np.zeros(len(boxes), bool)
        if seeds is not None and variation is not None:
            varied = seeds > 0
        (height, width), (padded_height, padded_width) = self.window, self.padded_window
        heights = boxes[:, 3] - boxes[:, 1]
        if not ((heights > 0.0) & (heights <= MAX_OBJECT_HEIGHT * len(pixels))).all():
            raise ValueError(
                f"an object in a picture of {pixels.shape[1]} x {len(pixels)} pixels is empty or "
                f"more than {MAX_OBJECT_HEIGHT:g} times as high: correct its box, or ignore it."
            )
        cut = np.empty((len(boxes), *self.crop, 3), np.uint8)
        for index, (x1, y1, _, y2) in enumerate(boxes.tolist()):
            margin = _TURNING_MARGIN if varied[index] else 0
            crop_height, crop_width = (length + 2 * margin for length in self.crop)
            scale = (y2 - y1) / height
            x = x1 - ((padded_width - width) / 2.0 + self.border + margin) * scale
            y = y1 - ((padded_height - height) / 2.0 + self.border + margin) * scale
            region = (x, y, x + crop_width * scale, y + crop_height * scale)
            part, box = _with_surroundings(pixels, region)
            resized = image_module.fromarray(part).resize(
                (crop_width, crop_height),
                image_module.Resampling.BICUBIC,
                box=box,
                reducing_gap=2.0,
            )
            if variation is not None and seeds is not None and varied[index]:
                cut[index] = variation.of(resized, margin, int(seeds[index]))
            else:
                cut[index] = np.asarray(resized)
        return cut


@dataclass(frozen=True, eq=False)
class WindowList:
    """Windows of many images.

    Attributes
    ----------
    images : ndarray of shape (n,)
        Number of the image of each window.
    boxes : ndarray of shape (n, 4)
        Its box, of the aspect ratio of the window.
    seeds : ndarray of shape (n,)
        How its pixels are varied; 0 if they are not.
    """

    images: IndexArray
    boxes: FloatArray
    seeds: IndexArray

    def __len__(self) -> int:
        return len(self.images)

    @classmethod
    def of(cls, parts: Sequence[tuple[int, FloatArray]]) -> WindowList:
        """Join the boxes of images, none of them varied."""
        images = [np.full(len(boxes), image, np.int64) for image, boxes in parts]
        joined = np.concatenate([np.empty(0, np.int64), *images])
        boxes = np.concatenate([np.empty((0, 4)), *(boxes for _, boxes in parts)])
        return cls(joined, boxes, np.zeros(len(joined), np.int64))

    def chosen(self, index: NDArray[np.integer | np.bool_] | slice) -> WindowList:
        """The windows of an index, in its order."""
        return WindowList(self.images[index], self.boxes[index], self.seeds[index])

    def followed_by(self, *others: WindowList) -> WindowList:
        """These windows, then those of other lists."""
        lists = (self, *others)
        return WindowList(
            np.concatenate([part.images for part in lists]),
            np.concatenate([part.boxes for part in lists]),
            np.concatenate([part.seeds for part in lists]),
        )

    def by_image(self) -> list[tuple[int, Positions]]:
        """Each image and the places of its windows in the list."""
        order = np.argsort(self.images, kind="stable")
        numbers, first = np.unique(self.images[order], return_index=True)
        places = np.split(order, first[1:]) if len(order) else []
        return [(int(number), part) for number, part in zip(numbers, places, strict=True)]


@dataclass(frozen=True, eq=False)
class WindowFeatures:
    """What a cascade sees in windows.

    Attributes
    ----------
    shape : WindowShape
        Sizes.
    channels : ChannelParameters
        Channels to compute.
    smoothing : int
        Radius of the filter of the channels.
    filters : ndarray of shape (n_filters, n_channels, size, size) or None
        Filters of locally decorrelated channels.
    device : {"cpu", "cuda"}
        What computes features; they are the same.
    """

    shape: WindowShape
    channels: ChannelParameters
    smoothing: int
    filters: Planes | None
    device: DeviceName = "cpu"

    @property
    def n_features(self) -> int:
        """Number of features of a window."""
        n_filters = 1 if self.filters is None else len(self.filters)
        return n_filters * self.channels.n_channels * self.shape.cells[0] * self.shape.cells[1]

    def unfiltered(self, crops: Pixels, threads: Threads | None = None) -> Iterator[Planes]:
        """Yield the smoothed channels of each cut-out, (n_channels, rows, columns)."""
        for crop in crops:
            luv = rgb_to_luv(crop, threads)
            yield smooth(compute_channels(luv, self.channels, threads), self.smoothing, threads)

    def of(self, crops: Pixels, threads: Threads | None = None) -> Planes:
        """Return the features of cut-outs, shape (n_windows, n_features)."""
        rows, columns = self.shape.cells
        begin = self.shape.border // self.shape.cell
        features = np.empty((len(crops), self.n_features), np.float32)
        if self.device == "cuda":
            parts = slice(begin, begin + rows), slice(begin, begin + columns)
            self._maps_on_gpu.fill(crops, *parts, features)
            return features
        for index, planes in enumerate(self.unfiltered(crops, threads)):
            maps = planes
            if self.filters is not None:
                maps = decorrelate(planes, self.filters, threads=threads)
            window = maps[:, begin : begin + rows, begin : begin + columns]
            features[index] = window.reshape(-1)
        return features

    @cached_property
    def _maps_on_gpu(self) -> WindowMaps:
        is_smooth = self.smoothing == 1
        return WindowMaps(cuda_device(), self.shape.crop, self.channels, is_smooth, self.filters)

    def windows(self, crops: Pixels, threads: Threads | None = None) -> Planes:
        """Return the unfiltered channels of windows, (n_windows, n_channels, rows, columns)."""
        shrink = self.channels.shrink
        rows, columns = (length // shrink for length in self.shape.padded_window)
        begin = self.shape.border // shrink
        windows = np.empty((len(crops), self.channels.n_channels, rows, columns), np.float32)
        for index, planes in enumerate(self.unfiltered(crops, threads)):
            windows[index] = planes[:, begin : begin + rows, begin : begin + columns]
        return windows


def random_boxes(
    size: tuple[float, float],
    shape: WindowShape,
    n_boxes: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return boxes of the window's aspect ratio at random places of an image, at all sizes.

    The smallest box has the size of the window; `size` is height and width of the image.
    """
    height, width = shape.window
    largest = min(size[0] / height, size[1] / width)
    if largest < 1.0:
        return np.empty((0, 4))
    scales = np.exp(rng.uniform(0.0, np.log(largest), n_boxes))
    x = rng.uniform(0.0, 1.0, n_boxes) * (size[1] - width * scales)
    y = rng.uniform(0.0, 1.0, n_boxes) * (size[0] - height * scales)
    return np.stack([x, y, x + width * scales, y + height * scales], axis=1)


def _with_surroundings(
    pixels: Pixels, region: Sequence[float]
) -> tuple[Pixels, tuple[float, float, float, float]]:
    """Part of an image that holds a region, and the region in it; borders are continued."""
    x1, y1, x2, y2 = region
    left, top = int(np.floor(x1)), int(np.floor(y1))
    right, bottom = int(np.ceil(x2)), int(np.ceil(y2))
    height, width = pixels.shape[:2]
    rows = np.clip(np.arange(top, bottom), 0, height - 1)
    columns = np.clip(np.arange(left, right), 0, width - 1)
    inside = min(left, top) >= 0 and right <= width and bottom <= height
    part = pixels[top:bottom, left:right] if inside else pixels[rows[:, None], columns]
    return np.ascontiguousarray(part), (x1 - left, y1 - top, x2 - left, y2 - top)
