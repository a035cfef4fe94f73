"""Annotated pictures that commands read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from badacost.detection.annotations import AnnotatedImage, Views

_SYNTHETIC = "synthetic:"
_MAX_SYNTHETIC = 100_000


def annotated_images(
    sources: Sequence[str],
    format: str | None,
    images: Path | None,
    columns: Mapping[str, str] | None = None,
) -> list[AnnotatedImage]:
    """Read annotations of files and folders, or draw scenes for a source `synthetic:NUMBER[:SEED]`.

    The format is guessed if it is None; pictures are beside the files if their folder is None;
    `columns` are those of `read_annotations`.
    """
    from badacost.detection.annotations import read_annotations

    given = {"images": images, "columns": columns}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    read: list[AnnotatedImage] = []
    for source in sources:
        if source.startswith(_SYNTHETIC):
            if columns is not None:
                raise ValueError("--columns are for CSV tables and COCO files: leave them out.")
            read += _synthetic(source)
            continue
        if images is not None:
            check_annotated(source, format, "leave out --images")
        read += read_annotations(source, format, **options)
    return read


def _synthetic(source: str) -> list[AnnotatedImage]:
    """Scenes of the generator."""
    from badacost.detection.scenes import make_scenes

    numbers = re.fullmatch("synthetic:([0-9]{1,9})(?::([0-9]{1,9}))?", source)
    if numbers is None:
        raise ValueError(
            f"{source!r:.80} must have a number of scenes and may have a seed, as synthetic:200:7."
        )
    n_scenes, seed = int(numbers[1]), int(numbers[2] or 0)
    if not 1 <= n_scenes <= _MAX_SYNTHETIC:
        raise ValueError(f"{source!r} must have 1 to {_MAX_SYNTHETIC} scenes.")
    return [
        replace(scene, name=f"{source} {scene.name}")
        for scene in make_scenes(n_scenes, random_state=seed)
    ]


def check_annotated(path: str | os.PathLike[str], format: str | None, remedy: str) -> None:
    """Refuse pictures without annotations; `remedy` says what to do instead."""
    from badacost.detection.annotations import guessed_format

    if (guessed_format(path) if format is None else format) == "folder":
        raise ValueError(
            f"{str(path)!r} has pictures without annotations: name the file that has them, or "
            f"{remedy}."
        )


def yaw_views(limits: str) -> Views:
    """Parse the limits between views of faces."""
    from badacost.detection.annotations import Views

    try:
        numbers = [float(part) for part in limits.split(",")]
    except ValueError:
        raise ValueError(
            f"--yaw-limits must be numbers separated by commas; got {limits!r:.80}."
        ) from None
    return Views.of_yaw(numbers)
