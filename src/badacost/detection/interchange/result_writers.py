"""Writers of results, image by image: what is written is complete at any time."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from badacost.atomic_file import replaced_file
from badacost.detection.boxes import Detections
from badacost.detection.images import FileStems, ImageSource
from badacost.detection.interchange.coco import coco_document
from badacost.detection.interchange.json_lines import to_json_line
from badacost.detection.interchange.kitti import to_kitti
from badacost.detection.interchange.table import to_csv
from badacost.validation import check_choice

FORMAT_OF_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".json": "coco"}
RESULT_SUFFIXES = tuple(FORMAT_OF_SUFFIX)  # of files that `read_results` reads
_FORMATS = ("jsonl", "csv", "kitti", "coco")


class ResultsWriter(ABC):
    """Where results go, image by image; `open_results` makes one.

    Parameters
    ----------
    path : Path or None
        File to write; None for the standard output.

    Attributes
    ----------
    is_complete : bool
        Whether what is written so far is complete. A document of COCO replaces its file at the
        end, and leaves an earlier one as it is if that is not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.interchange import open_results
    >>> from badacost.detection.models import synthetic_cars
    >>> with open_results(format="csv") as results:
    ...     for found in synthetic_cars().predict(np.zeros((4, 4, 3), np.uint8), stream=True):
    ...         results.write(found)
    image,x1,y1,x2,y2,score,view,angle,category
    """

    is_complete = True

    def __init__(self, path: Path | None):
        self._file: TextIO = sys.stdout
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not sys.stdout:
            self._file.close()

    @abstractmethod
    def write(self, found: Detections, stem: str | None = None) -> None:
        """Add what was found in an image.

        Parameters
        ----------
        found : Detections
            With its `source`, as `Detector.predict` returns it.
        stem : str, optional
            Name of a file of KITTI, without its suffix; by default that of the image, with a
            number where it is taken.
        """

    def fail(self, name: str, reason: str) -> None:  # noqa: B027 - few formats have a place for it
        """Add an image that could not be searched, if the format has a place for it.

        Parameters
        ----------
        name : str
            The image.
        reason : str
            What went wrong.
        """

    def _put(self, text: str) -> None:
        """Write at once: who reads along, or comes after a crash, finds whole lines."""
        self._file.write(text)
        self._file.flush()


class _JSONLines(ResultsWriter):
    def write(self, found: Detections, stem: str | None = None) -> None:
        self._put(to_json_line(_source(found).name, found) + "\n")

    def fail(self, name: str, reason: str) -> None:
        self._put(json.dumps({"image": name, "error": reason}) + "\n")


class _Table(ResultsWriter):
    def __init__(self, path: Path | None):
        super().__init__(path)
        self._put(to_csv({}))

    def write(self, found: Detections, stem: str | None = None) -> None:
        _, _, rows = to_csv({_source(found).name: found}).partition("\n")
        self._put(rows)


class _Document(ResultsWriter):
    """A document of COCO: detections as they come, images and categories at the end."""

    def __init__(self, path: Path | None, folder: Path | None):
        self._replacing = ExitStack()
        self._folder = folder
        self._images: list[dict[str, Any]] = []
        self._categories: list[dict[str, Any]] = []
        self._n_records = 0
        if path is not None:
            self.is_complete = False
            path.parent.mkdir(parents=True, exist_ok=True)
            path = self._replacing.enter_context(replaced_file(path))
        super().__init__(path)
        self._put('{"annotations": [')

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        rest = {"images": self._images, "categories": self._categories}
        self._put(f"\n], {json.dumps(rest)[1:]}\n")
        super().__exit__(kind, error, traceback)
        self._replacing.__exit__(kind, error, traceback)

    def write(self, found: Detections, stem: str | None = None) -> None:
        name = _source(found).name
        if self._folder is not None:
            name = Path(os.path.relpath(name, self._folder)).as_posix()
        first = len(self._images) + 1, self._n_records + 1
        part = coco_document({name: found}, first_image=first[0], first_annotation=first[1])
        self._put("".join(self._separated(json.dumps(record)) for record in part["annotations"]))
        self._images += part["images"]
        self._categories = part["categories"]

    def _separated(self, record: str) -> str:
        self._n_records += 1
        return f"{',' if self._n_records > 1 else ''}\n{record}"


class _TextFolder(ResultsWriter):
    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(None)
        self._folder = folder
        self._stems = FileStems()

    def write(self, found: Detections, stem: str | None = None) -> None:
        path = self._folder / f"{stem or self._stems.of(_source(found))}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Half a file, or an empty one, would be taken for the whole.
        with replaced_file(path) as temporary:
            temporary.write_text(to_kitti(found), encoding="utf-8")


def open_results(
    path: str | os.PathLike[str] | None = None,
    format: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
) -> ResultsWriter:
    """Return a writer of results, to be used in a ``with`` statement.

    Parameters
    ----------
    path : str or path-like, optional
        File to write, or folder for KITTI; by default results go to the standard output.
    format : {"jsonl", "csv", "kitti", "coco"}, optional
        A line of JSON for each image, a row for each detection, a text file for each image, or one
        document. By default what the suffix of the path says (.jsonl, .ndjson, .csv, .json, none
        for KITTI), and lines of JSON without a path.
    folder : str or path-like, optional
        Names of images in a document of COCO are relative to this folder.

    Returns
    -------
    ResultsWriter
        With ``write(found)`` for each image.

    Raises
    ------
    ValueError
        Where path and format do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.interchange import open_results, read_results
    >>> from badacost.detection.models import synthetic_cars
    >>> with TemporaryDirectory() as place:
    ...     path = Path(place, "found.jsonl")
    ...     with open_results(path) as results:
    ...         for found in synthetic_cars().predict(np.zeros((4, 4, 3), np.uint8), stream=True):
    ...             results.write(found)
    ...     {name: len(found) for name, found in read_results(path).items()}
    {'image 0': 0}
    """
    place = None if path is None else Path(path)
    if format is None:
        format = _format_of(place)
    check_choice("format", format, _FORMATS)
    if format == "kitti":
        if place is None or (place.exists() and not place.is_dir()):
            raise ValueError(
                "results of KITTI are a file for each image: name a folder as path (--output)."
            )
        return _TextFolder(place)
    if place is not None and place.is_dir():
        raise ValueError(f"{str(place)!r} is a folder: name a file for {format}.")
    if format == "coco":
        return _Document(place, None if folder is None else Path(folder))
    return _JSONLines(place) if format == "jsonl" else _Table(place)


def _format_of(path: Path | None) -> str:
    """Return the format that a path stands for."""
    if path is None:
        return "jsonl"
    if path.is_dir() or not path.suffix:
        return "kitti"
    if path.suffix.lower() not in FORMAT_OF_SUFFIX:
        raise ValueError(
            f"cannot infer the format of {str(path)!r}; pass format (--format), one of "
            f"{', '.join(_FORMATS)}."
        )
    return FORMAT_OF_SUFFIX[path.suffix.lower()]


def _source(found: Detections) -> ImageSource:
    """Return the image that was searched."""
    if found.source is None:
        raise ValueError(
            "the detections do not know their image: write those of Detector.predict, or give "
            "them a source."
        )
    return found.source
