"""Pictures without objects: a folder of them, or a list."""

from __future__ import annotations

import os
from pathlib import Path

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.source import Place, listed_images
from badacost.detection.images import find_images
from badacost.io.budget import Budget


def read_folder(
    path: str | os.PathLike[str], *, max_memory: int | str | None = None
) -> list[AnnotatedImage]:
    """Read the names of pictures that show none of the objects, as a source of negatives.

    Parameters
    ----------
    path : str or path-like
        A folder, with all folders inside; or a list of pictures, one to a line, relative to the
        folder of the list.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        Without objects, in the order of the list or sorted.

    Raises
    ------
    AnnotationError
        Where there is no picture, or one of the list is missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_folder
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("wood.jpg", "sky.png"):
    ...         Path(folder, name).touch()
    ...     read_folder(folder)
    [AnnotatedImage('sky.png', 0 objects), AnnotatedImage('wood.jpg', 0 objects)]
    """
    path = Path(path)
    if path.is_dir():
        found = find_images(path)
    else:
        found = [image for _, image in listed_images(path, Budget.of(max_memory))]
    if not found:
        Place(path).refuse("there are no pictures here")
    root = path if path.is_dir() else path.parent
    return [AnnotatedImage(image, name=_name(image, root)) for image in found]


def _name(image: Path, root: Path) -> str:
    """Return the picture as seen from a folder, if it is inside."""
    return (image.relative_to(root) if image.is_relative_to(root) else image).as_posix()
