"""`Identity`: what a training depends on, in a file beside its checkpoints.

It has the version of the algorithm, all settings, and hashes of annotations and pixels. A folder
whose file tells of anything else is refused, with a sentence that says what differs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from badacost._utils.arrays import IndexArray
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.views import Views
from badacost.detection.training.checkpoint import CHECKPOINTS, cannot_resume
from badacost.detection.training.config import TrainingConfig
from badacost.io.model_file import ModelFileError, read_model, refuse, write_model

# Raise it whenever the same images and settings give another detector than before: checkpoints of
# older code are refused then.
ALGORITHM_VERSION = 1
IDENTITY_FILE = "training.checkpoint"
_KIND = "DetectorTrainingIdentity"


@dataclass(frozen=True)
class Identity:
    """What the result of a training depends on.

    Attributes
    ----------
    version : int
        Version of the algorithm.
    settings : dict
        Parameters of the configuration, views, category and groups, as JSON has them.
    annotations, names, pixels : str
        Hashes; pixels are empty until they are decoded.
    """

    version: int
    settings: dict[str, Any]
    annotations: str
    names: str
    pixels: str = ""

    @classmethod
    def of(
        cls,
        config: TrainingConfig,
        views: Views,
        category: str,
        groups: IndexArray,
        images: Sequence[AnnotatedImage],
    ) -> Identity:
        """Return the identity of a training whose pixels are not known yet."""
        settings = asdict(config) | {"views": asdict(views), "category": category}
        settings |= {"groups": hashlib.sha256(groups.tobytes()).hexdigest()}
        return cls(ALGORITHM_VERSION, json.loads(json.dumps(settings)), *annotation_digests(images))

    def with_pixels(self, digests: Sequence[bytes]) -> Identity:
        """Return the identity with the hashes of all pictures."""
        return replace(self, pixels=hashlib.sha256(b"".join(digests)).hexdigest())

    @property
    def digest(self) -> str:
        """What stands for all of it in other checkpoints."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def check(self, folder: Path) -> None:
        """Refuse a folder with checkpoints of another training, as far as this one is known."""
        path = folder / IDENTITY_FILE
        if not has_progress(folder):
            return
        if not path.exists():
            raise cannot_resume(folder, "it was made by an older version of badacost")
        try:
            differences = self._differences(_read(path))
        except ModelFileError as error:
            raise cannot_resume(path, str(error)) from error
        if differences:
            raise cannot_resume(folder, f"it was made {', '.join(differences)}")

    def write(self, folder: Path) -> None:
        """Write the file, before any other; an error for want of room comes before any tree."""
        if not has_progress(folder):
            write_model(folder / IDENTITY_FILE, _KIND, asdict(self), {})

    def _differences(self, made: Identity) -> list[str]:
        """Say what another training was made from that this one is not."""
        if made.version != self.version:
            return [f"by version {made.version} of the training, this is version {self.version}"]
        found = []
        if made.names != self.names or (self.pixels and made.pixels != self.pixels):
            found.append("from other images")
        if made.annotations != self.annotations:
            found.append("from other annotations")
        for name in sorted({*made.settings, *self.settings}):
            old, new = made.settings.get(name), self.settings.get(name)
            if old != new:
                values = "" if name == "groups" else f" ({_short(old)}, now {_short(new)})"
                found.append(f"with another setting {name}{values}")
                break
        return found


def annotation_digests(images: Iterable[AnnotatedImage]) -> tuple[str, str]:
    """Return hashes of all that is known of images but their pixels: annotations, and the rest."""
    annotations, names = hashlib.sha256(), []
    for image in images:
        annotations.update(json.dumps([len(image), image.categories]).encode())
        for part in (image.boxes, image.labels, image.ignore, image.angles):
            annotations.update(np.ascontiguousarray(part).tobytes())
        names.append([image.name, image.flipped, image.size])
    return annotations.hexdigest(), hashlib.sha256(json.dumps(names).encode()).hexdigest()


def has_progress(folder: Path) -> bool:
    """Whether a training got further than telling what it is made from."""
    return any(path.name != IDENTITY_FILE for path in folder.glob(CHECKPOINTS))


def remove_without_progress(folder: Path) -> None:
    """Remove the file where nothing was kept beside it, as by a training that cannot begin."""
    if not has_progress(folder):
        (folder / IDENTITY_FILE).unlink(missing_ok=True)


def _read(path: str | os.PathLike[str]) -> Identity:
    """Return what a file tells, all of which is checked."""
    model = read_model(path)
    known = {field.name for field in fields(Identity)}
    if model.kind != _KIND or set(model.header) != known or model.arrays:
        refuse("it does not describe a training")
    found = Identity(**model.header)
    texts = (found.annotations, found.names, found.pixels)
    if (
        type(found.version) is not int
        or not isinstance(found.settings, dict)
        or not all(isinstance(text, str) for text in texts)
    ):
        refuse("it does not tell what a training was made from")
    return found


def _short(value: Any) -> str:
    """Return a setting for people."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
