"""`Checkpoint`: how far the training of a cascade is, in a file that is replaced as a whole."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray
from badacost.detection.samples import WindowList
from badacost.model_file import ModelFile, ModelFileError, read_model, refuse, write_model
from badacost.tree.forest import Forest
from badacost.tree.forest_arrays import forest_from_arrays, forest_to_arrays

Phase = Literal["boosting", "mining", "done"]
_KIND = "DetectorTraining"
_HEADER = {"digest", "round", "phase"}


@dataclass(frozen=True, eq=False)
class Progress:
    """State of the training of a cascade.

    Attributes
    ----------
    round : int
        Rounds that are finished.
    phase : {"boosting", "mining", "done"}
        What is to be done next in this round.
    first_negatives, negatives : WindowList
        Negative examples of the first round, which bins are chosen with, and of this one.
    forest : Forest, optional
        Trees so far.
    weights : ndarray, optional
        Logarithms of the weights of the windows; after boosting, the rejection thresholds.
    """

    round: int
    phase: Phase
    first_negatives: WindowList
    negatives: WindowList
    forest: Forest | None = None
    weights: FloatArray | None = None


class Checkpoint:
    """The file of a training; without a path nothing is kept.

    The digest stands for all that the training depends on; a file with another one is refused.
    """

    def __init__(self, path: Path | None, digest: str):
        self.path, self.digest = path, digest

    def save(self, progress: Progress) -> None:
        """Replace the file."""
        if self.path is None:
            return
        header = {"digest": self.digest, "round": progress.round, "phase": progress.phase}
        arrays: dict[str, NDArray[Any]] = {
            "first_images": progress.first_negatives.images,
            "first_boxes": progress.first_negatives.boxes,
            "images": progress.negatives.images,
            "boxes": progress.negatives.boxes,
        }
        if progress.forest is not None and progress.weights is not None:
            arrays |= forest_to_arrays(progress.forest)
            arrays["weights"] = progress.weights
        write_model(self.path, _KIND, header, arrays)

    def load(self) -> Progress | None:
        """Read the file; None if there is none yet.

        A `ModelFileError` is raised where the file is damaged, or belongs to another training.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            model = read_model(self.path)
            if model.kind != _KIND or set(model.header) != _HEADER:
                refuse("it is no checkpoint of a training")
            if model.header["digest"] != self.digest:
                refuse("it belongs to a training with other images or another configuration")
            return _progress(model)
        except ModelFileError as error:
            raise ModelFileError(
                f"cannot go on from {os.fspath(self.path)!r}: {str(error).rstrip('.')}; choose "
                "another folder, or remove this one to start again."
            ) from error


def _progress(model: ModelFile) -> Progress:
    """Return the state in a file, all of which is checked."""
    arrays, number, phase = dict(model.arrays), model.header["round"], model.header["phase"]
    if type(number) is not int or number < 0 or phase not in ("boosting", "mining", "done"):
        refuse("it does not say how far the training was")
    first, now = (
        _windows(arrays.pop(f"{name}images", None), arrays.pop(f"{name}boxes", None))
        for name in ("first_", "")
    )
    if not arrays and phase == "boosting":
        return Progress(number, phase, first, now)
    weights = arrays.pop("weights", None)
    if weights is None or weights.dtype != np.float64 or weights.ndim != 1:
        refuse("its weights are missing")
    return Progress(number, phase, first, now, forest_from_arrays(arrays), weights)


def _windows(images: NDArray[Any] | None, boxes: NDArray[Any] | None) -> WindowList:
    """Return windows if they are some."""
    if (
        images is None
        or boxes is None
        or images.dtype != np.int64
        or boxes.dtype != np.float64
        or boxes.shape != (images.size, 4)
        or images.ndim != 1
        or not np.isfinite(boxes).all()
    ):
        refuse("its windows are not complete")
    return WindowList(images, boxes)
