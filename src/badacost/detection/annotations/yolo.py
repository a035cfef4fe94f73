"""Annotations of YOLO: a text file in ``labels`` for each picture in ``images``.

A line is ``class centre_x centre_y width height``, the class counted from 0, the others divided by
the size of the picture, which is therefore read from its file. A picture without a text file has no
objects.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import (
    Place,
    is_image_list,
    listed_images,
    read_lines,
)
from badacost.detection.boxes import check_name
from badacost.detection.images import find_images, size_of_file

_N_FIELDS = 5
_NAMES_FILES = ("classes.txt", "obj.names", "classes.names")


def read_yolo(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
) -> list[AnnotatedImage]:
    r"""Read annotations of YOLO.

    Parameters
    ----------
    path : str or path-like
        The folder of label files; a folder with ``images`` and ``labels`` inside; or a list of
        pictures, one to a line, in a folder ``images`` whose labels lie in ``labels`` beside it.
    images : str or path-like, optional
        Folder of the pictures; by default the one beside the labels with ``images`` in its path
        where theirs has ``labels``. They are needed: sizes in the labels are parts of theirs.
    names : sequence of str, optional
        Name of each class. By default the lines of ``classes.txt``, ``obj.names`` or
        ``classes.names`` in the folder of the labels or the one above; without it, the numbers.

    Returns
    -------
    list of AnnotatedImage
        All pictures, those in a folder sorted.

    Raises
    ------
    AnnotationError
        Where a line is not as expected, or labels are without a picture.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from badacost.detection.annotations import read_yolo
    >>> with TemporaryDirectory() as folder:
    ...     images, labels = Path(folder, "images"), Path(folder, "labels")
    ...     for part in (images, labels):
    ...         part.mkdir()
    ...     Image.new("RGB", (200, 100)).save(images / "a.png")
    ...     size = (labels / "a.txt").write_text("1 0.5 0.5 0.2 0.4\n")
    ...     (picture,) = read_yolo(folder, names=["person", "car"])
    >>> picture.categories, picture.boxes
    (('car',), array([[ 80.,  30., 120.,  70.]]))
    """
    path = Path(path)
    if is_image_list(path):
        pairs = [
            (image, _labels_of_listed(image, place)) for place, image in listed_images(path, images)
        ]
        names = names or _names_beside([path.parent])
    else:
        if (path / "labels").is_dir() and (path / "images").is_dir():
            path = path / "labels"
        pairs = _pairs_of_folder(path, _images_folder(path, images))
        names = names or _names_beside([path, path.absolute().parent])
    for name in names or []:
        check_name("a name", name)
    return [_read_pair(image, labels, names) for image, labels in pairs]


def label_file_of(image: Path) -> Path | None:
    """Return where YOLO keeps the labels of a picture, if it is inside a folder ``images``."""
    parts = list(image.absolute().parts)
    if "images" not in parts[:-1]:
        return None
    parts[len(parts) - 2 - parts[-2::-1].index("images")] = "labels"
    return Path(*parts).with_suffix(".txt")


def _labels_of_listed(image: Path, place: Place) -> Path:
    """Return the label file of a picture in a list."""
    labels = label_file_of(image)
    if labels is None:
        place.refuse("expected a picture in a folder images, with labels in labels beside it")
    return labels


def _images_folder(labels: Path, images: str | os.PathLike[str] | None) -> Path:
    """Return the folder of the pictures."""
    if not labels.is_dir():
        Place(labels).refuse("expected a folder of label files, or a list of pictures")
    if images is not None:
        return Path(images)
    parts = list(labels.absolute().parts)
    if "labels" not in parts:
        Place(labels).refuse("the folder is not in one named labels: give images, the pictures")
    parts[len(parts) - 1 - parts[::-1].index("labels")] = "images"
    return Path(*parts)


def _pairs_of_folder(labels: Path, images: Path) -> list[tuple[Path, Path]]:
    """Return all pictures with where their labels are; raise for labels without a picture."""
    pairs = [
        (image, (labels / image.relative_to(images)).with_suffix(".txt"))
        for image in find_images(images)
    ]
    known = {file for _, file in pairs}
    for file in sorted(labels.rglob("*.txt")):
        if file not in known and file.name not in _NAMES_FILES:
            Place(file).refuse(f"there is no picture of this name in {os.fspath(images)!r:.300}")
    return pairs


def _names_beside(folders: Sequence[Path]) -> list[str] | None:
    """Return the names of the classes, if there is a file of them."""
    for folder in folders:
        for file in _NAMES_FILES:
            if (folder / file).is_file():
                return [place.category(line) for place, line in read_lines(folder / file)]
    return None


def _read_pair(image: Path, labels: Path, names: Sequence[str] | None) -> AnnotatedImage:
    """Read the labels of one picture."""
    height, width = size_of_file(image)
    rows = Rows()
    for place, line in read_lines(labels) if labels.is_file() else []:
        fields = line.split()
        if len(fields) != _N_FIELDS:
            place.refuse(f"expected the {_N_FIELDS} fields of a YOLO box; got {len(fields)}")
        number = place.integer(fields[0], "the class")
        if names is not None and number >= len(names):
            place.refuse(f"the class must be one of {len(names)}, counted from 0; got {number}")
        x, y, w, h = (
            place.number(text, f"field {i}", 0.0, 1.0) for i, text in enumerate(fields[1:], start=2)
        )
        rows.add(
            place.box(
                (x - w / 2.0) * width,
                (y - h / 2.0) * height,
                (x + w / 2.0) * width,
                (y + h / 2.0) * height,
            ),
            category=str(number) if names is None else names[number],
        )
    return rows.annotated(image, image.name, (height, width))
