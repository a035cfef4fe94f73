"""`CascadeClassifier`: a detector with the methods and argument names of OpenCV's class."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_number
from badacost.detection.box_tree import BoxTree
from badacost.detection.boxes import Detections
from badacost.detection.detector import Detector
from badacost.detection.images import read_image
from badacost.detection.reference import load_detector
from badacost.detection.suppression import Suppression

_MAX_SCALE_FACTOR = 2.0


class CascadeClassifier:
    """Finds objects with the calls of OpenCV's ``CascadeClassifier``, which OpenCV 5 has no more.

    Programs keep their lines, and read a detector of this package instead of an XML file. Images
    are arrays as OpenCV has them: bytes of blue, green, red, or grey.

    What is different: Haar cascades in XML are not read. A colour image is better than a grey one,
    since the detector looks at colours. The result for no objects is an empty array, not a tuple.
    `flags` is accepted and has no meaning, as for the newer cascades of OpenCV. `scaleFactor` and
    `minNeighbors` are by default what the detector was made for; `minSize` and `maxSize` choose
    among the boxes, and save no time.

    Parameters
    ----------
    filename : str, path-like or Detector, optional
        A saved detector, a published .mat file, or a detector in memory. Without it the classifier
        is empty until `load`.

    Examples
    --------
    >>> from badacost.detection.scenes import make_scenes
    >>> from badacost.detection import CascadeClassifier
    >>> from badacost.detection.models import synthetic_cars
    >>> cars = CascadeClassifier(synthetic_cars())
    >>> (scene,) = make_scenes(1, objects_per_image=2, random_state=7)
    >>> frame = scene.load()[:, :, ::-1]  # as cv2.imread returns it
    >>> for x, y, width, height in cars.detectMultiScale(frame, minNeighbors=3, minSize=(30, 30)):
    ...     print(frame[y : y + height, x : x + width].shape)
    (74, 118, 3)
    (96, 111, 3)
    """

    def __init__(self, filename: str | os.PathLike[str] | Detector | None = None):
        self.detector: Detector | None = None
        self._scaled: dict[int, Detector] = {}
        if filename is not None:
            self.load(filename)

    def load(self, filename: str | os.PathLike[str] | Detector) -> bool:
        """Read a detector; True if there is one, an error that tells the reason if not."""
        if not isinstance(filename, Detector) and Path(filename).suffix.lower() == ".xml":
            raise ValueError(
                f"{os.fspath(filename)!r} is a cascade of OpenCV, which is not read: train a "
                "detector with badacost train-detector, or load a published one."
            )
        self.detector = filename if isinstance(filename, Detector) else load_detector(filename)
        self._scaled = {}
        return True

    def empty(self) -> bool:
        """Return whether no detector was loaded yet."""
        return self.detector is None

    def detectMultiScale(
        self,
        image: NDArray[Any],
        scaleFactor: float | None = None,
        minNeighbors: int | None = None,
        flags: int = 0,
        minSize: tuple[int, int] | None = None,
        maxSize: tuple[int, int] | None = None,
    ) -> NDArray[np.int32]:
        """Return the objects in an image.

        Parameters
        ----------
        image : ndarray of uint8 of shape (height, width) or (height, width, 3)
            Grey, or blue, green, red.
        scaleFactor : float, optional
            Ratio of one size to the next, greater than 1 and at most 2. It is rounded so that whole
            steps make an octave: 1.1 is seven steps. By default that of the detector.
        minNeighbors : int, optional
            Keep objects that more than this many windows agree on. 0 returns every window. By
            default one window is enough, as for `Detector.detect`.
        flags : int, default=0
            Has no meaning.
        minSize, maxSize : (int, int), optional
            Width and height of the smallest and the largest boxes to keep.

        Returns
        -------
        ndarray of int32 of shape (n, 4)
            x, y, width and height of each object inside the image, the best first.
        """
        return self.detectMultiScale2(image, scaleFactor, minNeighbors, flags, minSize, maxSize)[0]

    def detectMultiScale2(
        self,
        image: NDArray[Any],
        scaleFactor: float | None = None,
        minNeighbors: int | None = None,
        flags: int = 0,
        minSize: tuple[int, int] | None = None,
        maxSize: tuple[int, int] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the objects in an image, and how many windows agree on each.

        The arguments are those of `detectMultiScale`.
        """
        found, counts = self._found(image, scaleFactor, minNeighbors, minSize, maxSize)
        return _rectangles(found), counts

    def detectMultiScale3(
        self,
        image: NDArray[Any],
        scaleFactor: float | None = None,
        minNeighbors: int | None = None,
        flags: int = 0,
        minSize: tuple[int, int] | None = None,
        maxSize: tuple[int, int] | None = None,
        outputRejectLevels: bool = False,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
        """Return the objects in an image, the trees that each passed, and their scores.

        The arguments are those of `detectMultiScale`; `outputRejectLevels` has no meaning, since
        windows that a tree rejects are never returned: the second array has the number of trees for
        every object. The scores are those of `Detections`.
        """
        found, _ = self._found(image, scaleFactor, minNeighbors, minSize, maxSize)
        trees = [
            np.full(cascade.n_views, cascade.forest.n_trees, np.int32)
            for cascade in self._loaded().cascades
        ]
        return _rectangles(found), np.concatenate(trees)[found.labels], found.scores

    def _found(
        self,
        image: NDArray[Any],
        scale_factor: float | None,
        min_neighbors: int | None,
        min_size: tuple[int, int] | None,
        max_size: tuple[int, int] | None,
    ) -> tuple[Detections, NDArray[np.int32]]:
        """Return the objects, cut at the border of the image, and the windows that agree."""
        detector = self._with_scale_factor(scale_factor)
        check_number("minNeighbors", min_neighbors, Integral, low=0, none=True)
        if not isinstance(image, np.ndarray):
            raise TypeError(f"image must be an array of OpenCV; got {type(image).__name__}.")
        pixels = read_image(image, bgr=True)
        candidates = detector.candidates(pixels, n_jobs=-1)
        found = windows = replace(detector, suppression=Suppression("none")).suppressed(candidates)
        counts = np.ones(len(windows), np.int32)
        if min_neighbors != 0:
            found, rule = detector.suppressed(candidates), detector.suppression
            tree = BoxTree(windows.boxes)
            counts = tree.counts(found.boxes, rule.overlap, rule.denominator).astype(np.int32)
        height, width = pixels.shape[:2]
        limits = np.array([width, height, width, height], dtype=np.float64)
        found = replace(found, boxes=np.rint(np.clip(found.boxes, 0.0, limits)))
        sizes = found.sizes
        kept = (sizes >= _checked_size("minSize", min_size, 1)).all(axis=1)
        kept &= (sizes <= _checked_size("maxSize", max_size, math.inf)).all(axis=1)
        if min_neighbors:
            kept &= counts > min_neighbors
        return found[kept], counts[kept]

    def _loaded(self) -> Detector:
        """Return the detector."""
        if self.detector is None:
            raise ValueError("the classifier is empty: load a detector first.")
        return self.detector

    def _with_scale_factor(self, scale_factor: float | None) -> Detector:
        """Return the detector with other sizes."""
        detector = self._loaded()
        if scale_factor is None:
            return detector
        check_number("scaleFactor", scale_factor, low=1.0, high=_MAX_SCALE_FACTOR, open_low=True)
        n_per_octave = min(64, max(1, round(1.0 / math.log2(scale_factor))))
        if n_per_octave not in self._scaled:
            approximated = n_per_octave - 1 if detector.pyramid.n_approximated else 0
            self._scaled[n_per_octave] = detector.with_pyramid(
                n_per_octave=n_per_octave, n_approximated=approximated
            )
        return self._scaled[n_per_octave]


def _checked_size(name: str, size: tuple[int, int] | None, default: float) -> tuple[float, float]:
    """Return a width and a height; nothing, and OpenCV's (0, 0), are no limit."""
    if size is None:
        return default, default
    sides = size.tolist() if isinstance(size, np.ndarray) else size
    if not isinstance(sides, Sequence) or len(sides) not in (0, 2):
        raise ValueError(f"{name} must be a width and a height; got {size!r:.80}.")
    for side in sides:
        check_number(name, side, low=0)
    return (float(sides[0]), float(sides[1])) if any(sides) else (default, default)


def _rectangles(found: Detections) -> NDArray[np.int32]:
    """Return boxes of whole pixels as x, y, width, height."""
    return np.hstack([found.boxes[:, :2], found.sizes]).astype(np.int32)
