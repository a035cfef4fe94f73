"""`Miner`: negative examples, at random places in the beginning, then where a cascade is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from badacost._utils.arrays import FloatArray, Mask, Positions
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.box_tree import BoxTree
from badacost.detection.detector import Detector
from badacost.detection.suppression import Suppression
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.samples import WindowList, WindowShape, random_boxes
from badacost.detection.training.store import WindowStore, named

_MAX_SAME = 0.5  # of a negative example and the window of an object
_MAX_IGNORED = 0.1  # of a negative example that may lie in an ignored region
_DISTINCT = Suppression(overlap=0.5)  # of windows on the same thing, the best one is enough


@dataclass(frozen=True, eq=False)
class Mined:
    """Windows that are no objects, the scores they got, and in how many pictures was looked."""

    windows: WindowList
    scores: FloatArray
    n_pictures: int


class Miner:
    """Looks for negative examples of a shape in some pictures of a store."""

    def __init__(
        self, store: WindowStore, config: TrainingConfig, shape: WindowShape, pictures: Positions
    ):
        self.store, self.config, self.shape, self.pictures = store, config, shape, pictures

    def at_random(self, rng: np.random.Generator) -> WindowList:
        """Random windows away from objects, as small as the pyramid shows them."""
        config = self.config
        zoom = 2.0**config.n_octaves_up
        found: list[tuple[int, FloatArray]] = []
        n_found = 0
        for index in rng.permutation(self.pictures).tolist():
            image = self.store.images[index]
            height, width = image.size or (0, 0)
            size = (height * zoom, width * zoom)
            boxes = random_boxes(size, self.shape, config.n_per_image, rng) / zoom
            boxes = boxes[away_from(image, boxes, self.shape, config.negative_overlap)]
            found.append((index, boxes))
            n_found += len(boxes)
            if n_found >= config.n_negatives:
                break
        if not n_found:
            raise ValueError(
                "no background was found in the images: add images without objects that are "
                "larger than the window."
            )
        return WindowList.of(found).chosen(slice(config.n_negatives))

    def false_alarms(self, detector: Detector, title: str) -> Mined:
        """The best windows of a detector that are no objects, whatever the sign of their scores."""
        config = self.config
        bar = self.store.bar(len(self.pictures), title)
        done: list[int] = []

        def look(index: int) -> tuple[FloatArray, FloatArray]:
            image = self.store.images[index]
            with named(image):
                found = detector.candidates(self.store.pixels(index))
            found = found[away_from(image, found.boxes, self.shape, config.negative_overlap)]
            found = _DISTINCT.apply(found)[: config.n_per_image]
            done.append(len(found))
            if bar is not None:
                bar.update(len(done), found=sum(done))
            return found.boxes, found.scores

        looked = self.store.threads.run(look, [(index,) for index in self.pictures.tolist()])
        if bar is not None:
            bar.close()
        windows = WindowList.of(
            [
                (index, boxes)
                for index, (boxes, _) in zip(self.pictures.tolist(), looked, strict=True)
            ]
        )
        scores = np.concatenate([np.empty(0), *(scores for _, scores in looked)])
        best = np.sort(np.argsort(-scores, kind="stable")[: config.n_negatives])
        return Mined(windows.chosen(best), scores[best], len(self.pictures))


def away_from(
    image: AnnotatedImage, boxes: FloatArray, shape: WindowShape, max_overlap: float
) -> Positions:
    """Which windows hardly overlap annotated objects, nor the windows that these are learned in.

    The second matters for objects of another shape than the window. Of ignored ones, what counts
    is the share of the window's own area.
    """
    to_learn = image.boxes[~image.ignore]
    same = np.maximum(max_overlap, _MAX_SAME)
    near = _are_near(boxes, to_learn, max_overlap)
    near |= _are_near(boxes, shape.fitted(to_learn), same)
    near |= _are_near(boxes, image.boxes[image.ignore], _MAX_IGNORED, "first")
    return np.flatnonzero(~near)


def _are_near(
    boxes: FloatArray,
    others: FloatArray,
    min_overlap: float,
    denominator: Literal["union", "first"] = "union",
) -> Mask:
    """Which boxes overlap one of the others by at least so much."""
    largest, _ = BoxTree(others).largest(boxes, denominator)
    return (largest >= min_overlap) & (len(others) > 0)


def describe_scores(scores: FloatArray) -> str:
    """How hard negative examples are, in a few words."""
    if not len(scores):
        return "none"
    middle, high = np.quantile(scores, [0.5, 0.9])
    return f"scores {middle:.2f} in the middle, {high:.2f} for the hardest tenth"
