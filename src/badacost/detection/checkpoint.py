"""`Checkpoint`: how far the training of a cascade is, in a file that is replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from badacost.detection.samples import WindowList
from badacost.model_file import ModelFileError, describe, read_model, refuse, write_model
from badacost.persistence import forest_from_arrays, forest_to_arrays
from badacost.tree.forest import Forest
from badacost.validation import check_choice

FloatArray = NDArray[np.float64]
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
    """The file of a training.

    Parameters
    ----------
    path : Path or None
        Where to write; None keeps nothing.
    digest : str
        What the training depends on; a file with another one is refused.
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

        Raises
        ------
        ModelFileError
            Where the file is damaged, or belongs to another training.
        """
        if self.path is None or not self.path.exists():
            return None
        model = read_model(self.path)
        if model.kind != _KIND or set(model.header) != _HEADER:
            raise ModelFileError(f"{describe(self.path)} is no checkpoint of a training.")
        if model.header["digest"] != self.digest:
            raise ModelFileError(
                f"{describe(self.path)} belongs to a training with other images or another "
                "configuration: choose another folder, or remove it to begin anew."
            )
        arrays, phase = dict(model.arrays), model.header["phase"]
        check_choice("the phase of the checkpoint", phase, ("boosting", "mining", "done"))
        weights = arrays.pop("weights", None)
        first, now = (
            _windows(arrays.pop(f"{name}images", None), arrays.pop(f"{name}boxes", None))
            for name in ("first_", "")
        )
        if type(model.header["round"]) is not int or model.header["round"] < 0:
            refuse("its round is not a number")
        forest = forest_from_arrays(arrays) if arrays else None
        return Progress(model.header["round"], phase, first, now, forest, weights)


def _windows(images: NDArray[Any] | None, boxes: NDArray[Any] | None) -> WindowList:
    if images is None or boxes is None or boxes.shape != (len(images), 4):
        refuse("its windows are not complete")
    return WindowList(images, boxes)
