"""`Checkpoint`: how far the training of a cascade is, in a file that is replaced as a whole.

A cascade is either `Boosting` (trees of a round are being grown) or `Boosted` (the round is
complete: look for false alarms, or be done).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost.classifiers.saving import forest_from_arrays, forest_to_arrays
from badacost.detection.training.samples import WindowList
from badacost.io.atomic_file import TEMPORARY_NAMES
from badacost.io.file_lock import FileLock
from badacost.io.model_file import (
    REBUILDING_ERRORS,
    ModelFile,
    ModelFileError,
    read_model,
    refuse,
    write_model,
)
from badacost.tree.forest import Forest

_KIND = "DetectorTraining"
_BEST = "best_"
CHECKPOINTS = "*.checkpoint"
_NAMES = ("cascade*.checkpoint", "calibration.checkpoint", "final*.checkpoint",
          "training.checkpoint")  # fmt: skip
_HEADER = {"digest", "round", "phase", "precisions"}


def remove_checkpoints(folder: str | os.PathLike[str]) -> None:
    """Remove the checkpoints of a training that is finished.

    What a stopped training left half written goes, too, and the folder if nothing else is there.

    Parameters
    ----------
    folder : str or path-like
        The folder that `train_detector` was given.

    Raises
    ------
    BlockingIOError
        Where a training writes there; nothing is removed then.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.training import remove_checkpoints
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("cascade.checkpoint", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     remove_checkpoints(folder)
    ...     print([path.name for path in Path(folder).iterdir()])
    ['notes.txt']
    """
    folder = Path(folder)
    if not folder.is_dir():
        return
    with FileLock(folder):
        for pattern in (*_NAMES, TEMPORARY_NAMES):
            for path in folder.glob(pattern):
                path.unlink()
    with suppress(OSError):
        folder.rmdir()


@dataclass(frozen=True, eq=False)
class BestRound:
    """Trees of a round, and the negative examples they were grown with."""

    forest: Forest
    negatives: WindowList


@dataclass(frozen=True, eq=False)
class Progress:
    """What every state of a training has.

    Attributes
    ----------
    round : int
        Rounds that are finished.
    first_negatives, negatives : WindowList
        Negative examples of the first round, which bins are chosen with, and of this one.
    precisions : tuple of float
        Average precision on the images held out after each round, if there are any.
    best : BestRound or None
        The round that had the highest of these.
    """

    round: int
    first_negatives: WindowList
    negatives: WindowList
    precisions: tuple[float, ...]
    best: BestRound | None


@dataclass(frozen=True, eq=False)
class Boosting(Progress):
    """Trees of a round so far, and what the booster knows of the windows; None in the beginning."""

    forest: Forest | None = None
    state: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Boosted(Progress):
    """All trees of a round, and whether it was the last one."""

    forest: Forest
    is_last: bool


class Checkpoint:
    """The file of a training; without a path nothing is kept.

    The digest stands for all that the training depends on; a file with another one is refused.
    """

    def __init__(self, path: Path | None, digest: str):
        self.path, self.digest = path, digest

    def save(self, progress: Boosting | Boosted) -> None:
        """Replace the file."""
        if self.path is None:
            return
        phase = "boosting"
        if isinstance(progress, Boosted):
            phase = "done" if progress.is_last else "mining"
        header = {
            "digest": self.digest,
            "round": progress.round,
            "phase": phase,
            "precisions": list(progress.precisions),
        }
        arrays: dict[str, NDArray[Any]] = {}
        lists = {"first_": progress.first_negatives, "": progress.negatives}
        if progress.best is not None:
            arrays |= forest_to_arrays(progress.best.forest, _BEST)
            lists[_BEST] = progress.best.negatives
        for name, windows in lists.items():
            arrays[f"{name}images"], arrays[f"{name}boxes"] = windows.images, windows.boxes
        if progress.forest is not None:
            arrays |= forest_to_arrays(progress.forest)
        if isinstance(progress, Boosting) and progress.state is not None:
            arrays["state"] = progress.state
        write_model(self.path, _KIND, header, arrays)

    def load(
        self, check: Callable[[Boosting | Boosted], None] | None = None
    ) -> Boosting | Boosted | None:
        """Read the file; None if there is none yet.

        A `ModelFileError` is raised where the file is damaged, belongs to another training, or
        holds what `check` raises an error for.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            model = read_model(self.path)
            if model.kind != _KIND or set(model.header) != _HEADER:
                refuse("it is not a checkpoint of a training")
            if model.header["digest"] != self.digest:
                refuse("it belongs to another training")
            progress = _progress(model)
            if check is not None:
                check(progress)
            return progress
        except REBUILDING_ERRORS as error:
            raise cannot_resume(self.path, str(error)) from error


def cannot_resume(path: str | os.PathLike[str], reason: str) -> ModelFileError:
    """Return the error of checkpoints that are of no use, with the remedy."""
    return ModelFileError(
        f"cannot resume from {os.fspath(path)!r}: {reason.rstrip('.')}; choose another folder, or "
        "remove this one to start again."
    )


def _progress(model: ModelFile) -> Boosting | Boosted:
    """Return the state in a file, all of which is checked."""
    arrays, number, phase = dict(model.arrays), model.header["round"], model.header["phase"]
    if type(number) is not int or number < 0 or phase not in ("boosting", "mining", "done"):
        refuse("it does not say how far the training was")
    given = model.header["precisions"]
    if not isinstance(given, list) or not all(type(value) is float for value in given):
        refuse("it does not say how good the rounds were")
    first, now = (
        _windows(arrays.pop(f"{name}images", None), arrays.pop(f"{name}boxes", None))
        for name in ("first_", "")
    )
    kept = {name: arrays.pop(name) for name in list(arrays) if name.startswith(_BEST)}
    best = None
    if kept:
        windows = _windows(kept.pop(f"{_BEST}images", None), kept.pop(f"{_BEST}boxes", None))
        best = BestRound(forest_from_arrays(kept, _BEST, model.budget), windows)
    common = (number, first, now, tuple(given), best)
    if phase != "boosting":
        return Boosted(*common, forest_from_arrays(arrays, budget=model.budget), phase == "done")
    if not arrays:
        return Boosting(*common)
    state = arrays.pop("state", None)
    if state is None or state.dtype != np.float64 or state.ndim != 1:
        refuse("its weights are missing")
    if np.isnan(state).any() or np.isposinf(state).any():
        refuse("its weights are no numbers")
    return Boosting(*common, forest_from_arrays(arrays, budget=model.budget), state)


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
    return WindowList(images, boxes, np.zeros(len(images), np.int64))
