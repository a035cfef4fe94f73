"""Annotations of the KITTI object benchmark: a text file in ``label_2`` for each picture.

A line is ``type truncated occluded alpha x1 y1 x2 y2 h w l X Y Z rotation_y``. KITTI counts pixels
from 0 and names the last pixel of a box, not where it ends: 1 is added to x2 and y2. Alpha is in
radians; -10, like -1 for truncated and occluded, means that it is not known.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import (
    Pictures,
    Place,
    is_image_list,
    label_files,
    listed_images,
    read_lines,
)
from badacost.io.budget import Budget

_N_FIELDS = 15
_UNKNOWN_ALPHA = -10.0
_REGION = "DontCare"


def read_kitti(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    max_memory: int | str | None = None,
) -> list[AnnotatedImage]:
    r"""Read KITTI labels.

    Parameters
    ----------
    path : str or path-like
        A label file; a folder of them; or a list of pictures in a folder as ``image_2``, one to a
        line, whose labels lie in ``label_2`` beside it.
    images : str or path-like, optional
        Folder of the pictures. By default the one beside the labels with ``image`` in its name
        where theirs has ``label``; without it, there are annotations only.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        All objects, of all types, with `DontCare` regions ignored. `KITTI_CARS` selects what the
        paper trains cars with.

    Raises
    ------
    AnnotationError
        Where a file is not as expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_kitti
    >>> with TemporaryDirectory() as folder:
    ...     labels = Path(folder, "000001.txt")
    ...     size = labels.write_text(
    ...         "Car 0.00 0 1.57 10 20 99 59 1.5 1.6 3.9 0 1.6 20 1.57\n"
    ...         "DontCare -1 -1 -10 200 20 219 39 -1 -1 -1 -1000 -1000 -1000 -10\n"
    ...     )
    ...     (street,) = read_kitti(labels)
    >>> street
    AnnotatedImage('000001', 2 objects, 1 ignored)
    >>> street.boxes[0], street.angles.round()
    (array([ 10.,  20., 100.,  60.]), array([90., nan]))
    """
    path, budget = Path(path), Budget.of(max_memory)
    if is_image_list(path, budget):
        listed = listed_images(path, budget, images)
        return [_read_listed(image, place, budget) for place, image in listed]
    folder = path if path.is_dir() else path.parent
    beside = _beside(folder, "label", "image")
    pictures = Pictures.given_or_beside(images, [beside] if beside else [])
    files = label_files(path, ".txt") if path.is_dir() else [path]
    found = [(file, pictures.find(file.stem, Place(file))) for file in files]
    return [_read_file(file, image, file.stem, budget) for file, image in found]


def label_file_of(image: Path) -> Path | None:
    """Return where KITTI keeps the labels of a picture, if it is in a folder as ``image_2``."""
    folder = _beside(image.parent, "image", "label")
    return folder / f"{image.stem}.txt" if folder else None


def _beside(folder: Path, old: str, new: str) -> Path | None:
    """Return the folder beside this one with another word in its name, if it has the word."""
    folder = folder.absolute()
    return folder.with_name(folder.name.replace(old, new)) if old in folder.name else None


def _read_listed(image: Path, place: Place, budget: Budget) -> AnnotatedImage:
    """Read the labels of a picture in a list."""
    labels = label_file_of(image)
    if labels is None:
        place.refuse("expected a picture in a folder as image_2, with labels in label_2 beside it")
    return _read_file(labels, image, image.stem, budget)


def _read_file(path: Path, image: Path | None, name: str, budget: Budget) -> AnnotatedImage:
    """Read the labels of one picture."""
    rows = Rows()
    for place, line in read_lines(path, budget):
        fields = line.split()
        if len(fields) != _N_FIELDS:
            place.refuse(f"expected the {_N_FIELDS} fields of a KITTI label; got {len(fields)}")
        category = place.category(fields[0])
        values = [place.number(text, f"field {i}") for i, text in enumerate(fields[1:], start=2)]
        truncation, occlusion, alpha, x1, y1, x2, y2 = values[:7]
        if alpha != _UNKNOWN_ALPHA and abs(alpha) > 2.0 * math.pi:
            place.refuse(f"alpha must be in radians, from -pi to pi, or -10; got {alpha:g}")
        rows.add(
            place.box(x1, y1, x2 + 1.0, y2 + 1.0),
            category=category,
            angle=math.nan if alpha == _UNKNOWN_ALPHA else math.degrees(alpha),
            truncation=truncation if truncation >= 0.0 else math.nan,
            occlusion=occlusion if occlusion >= 0.0 else math.nan,
            ignore=category == _REGION,
        )
    return rows.annotated(image, name)
