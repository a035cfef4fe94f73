"""One function for all formats of annotations, which guesses the format of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from badacost._utils.validation import check_choice
from badacost.detection.annotations import kitti, yolo
from badacost.detection.annotations.coco import coco_files, read_coco
from badacost.detection.annotations.fddb import read_fddb
from badacost.detection.annotations.folder import read_folder
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.source import (
    Place,
    is_image_list,
    label_files,
    listed_images,
    read_lines,
)
from badacost.detection.annotations.table import read_table
from badacost.detection.annotations.voc import read_voc
from badacost.detection.images import find_images
from badacost.io.budget import Budget

_READERS: Mapping[str, Callable[..., list[AnnotatedImage]]] = {
    "coco": read_coco,
    "fddb": read_fddb,
    "folder": read_folder,
    "kitti": kitti.read_kitti,
    "table": read_table,
    "voc": read_voc,
    "yolo": yolo.read_yolo,
}
FORMATS = tuple(_READERS)
_COLUMNS = {"table": "columns", "coco": "attributes"}  # the option of the reader
_BY_SUFFIX = {".json": "coco", ".xml": "voc", ".csv": "table", ".yaml": "yolo", ".yml": "yolo"}
_FILES_TO_TRY = 100


def read_annotations(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    max_memory: int | str | None = None,
    **options: Any,
) -> list[AnnotatedImage]:
    r"""Read annotations of any known format.

    Parameters
    ----------
    path : str or path-like
        A file or a folder, as the reader of the format takes it.
    format : {"coco", "fddb", "folder", "kitti", "table", "voc", "yolo"}, optional
        The format; guessed by default from names and first lines. A list of pictures is one of
        KITTI or YOLO where labels are beside the pictures, otherwise one of negatives.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.
    **options : object
        Passed to the reader, as ``images``, the folder of the pictures. ``columns`` are what a CSV
        table calls its columns, or a COCO file the attributes of objects: see `read_table` and the
        ``attributes`` of `read_coco`.

    Returns
    -------
    list of AnnotatedImage
        All that is annotated.

    Raises
    ------
    AnnotationError
        Where the format cannot be guessed or the file is not as expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_annotations
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "faces.csv")
    ...     size = table.write_text("image,x1,y1,x2,y2\na.jpg,10,10,30,40\na.jpg,50,10,70,40\n")
    ...     read_annotations(table, category="Face")
    [AnnotatedImage('a.jpg', 2 objects)]
    """
    if format is None:
        format = guessed_format(path, max_memory=max_memory)
    check_choice("format", format, FORMATS)
    if "columns" in options:
        if format not in _COLUMNS:
            raise ValueError(
                f"columns are for CSV tables and COCO files, and {os.fspath(path)!r:.80} is of the "
                f"format {format}: leave them out."
            )
        options[_COLUMNS[format]] = options.pop("columns")
    return _READERS[format](path, max_memory=max_memory, **options)


def guessed_format(path: str | os.PathLike[str], *, max_memory: int | str | None = None) -> str:
    r"""Return the format that a file or folder looks like.

    Parameters
    ----------
    path : str or path-like
        A file or a folder.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    str
        One of `FORMATS`.

    Raises
    ------
    AnnotationError
        Where it looks like none of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import guessed_format
    >>> with TemporaryDirectory() as folder:
    ...     labels = Path(folder, "000001.txt")
    ...     size = labels.write_text("Car 0.00 0 1.57 0 0 89 39 1.5 1.6 3.9 0 1.6 20 1.57\n")
    ...     guessed_format(labels), guessed_format(folder)
    ('kitti', 'kitti')
    """
    path, budget = Path(path), Budget.of(max_memory)
    if not os.path.lexists(path):
        Place(path).refuse("there is no such file or folder, check its name")
    guess = _guess_folder(path, budget) if path.is_dir() else _guess_file(path, budget)
    if guess is None:
        Place(path).refuse(
            f"cannot infer its format; pass format (--format), one of {', '.join(FORMATS)}"
        )
    return guess


def _guess_folder(folder: Path, budget: Budget) -> str | None:
    """Return the format of a folder by what is in it."""
    if yolo.yaml_file_in(folder) is not None:
        return "yolo"
    if coco_files(folder):
        return "coco"
    if (folder / "labels").is_dir() and (folder / "images").is_dir():
        return "yolo"
    if (folder / "Annotations").is_dir():
        return "voc"
    suffixes = {entry.suffix.lower() for entry in folder.iterdir() if entry.is_file()}
    if ".xml" in suffixes:
        return "voc"
    if ".txt" in suffixes:
        for file in label_files(folder, ".txt")[:_FILES_TO_TRY]:
            guess = _guess_lines(file, budget)
            if guess:
                return guess
    return "folder" if find_images(folder) else None


def _guess_file(path: Path, budget: Budget) -> str | None:
    """Return the format of a file by its suffix or its first lines."""
    if path.suffix.lower() in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix.lower()]
    is_list = is_image_list(path, budget)
    return _guess_list(path, budget) if is_list else _guess_lines(path, budget)


def _guess_list(path: Path, budget: Budget) -> str:
    """Return the format of the labels of listed pictures by the first ones that have lines."""
    guess = "folder"
    for _, image in islice(listed_images(path, budget), _FILES_TO_TRY):
        for name, labels in (
            ("kitti", kitti.label_file_of(image)),
            ("yolo", yolo.label_file_of(image)),
        ):
            if labels is not None and labels.is_file():
                guess = name
                by_lines = _guess_lines(labels, budget)
                if by_lines:
                    return by_lines
    return guess


def _guess_lines(path: Path, budget: Budget) -> str | None:
    """Return the format of a text file by its first lines."""
    lines = [line.split() for _, line in islice(read_lines(path, budget), 2)]
    first, second = [*lines, [], []][:2]
    if len(first) == 15:
        return "kitti"
    if len(first) == 5 and first[0].isdecimal():
        return "yolo"
    if len(second) == 1 and second[0].isdecimal():
        return "fddb"
    return None
