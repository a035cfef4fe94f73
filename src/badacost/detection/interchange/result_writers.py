"""Writers of results, image by image; files are replaced when all results are there.

Until then results are lines of JSON in a file beside the target, which others may read along and
which a later run may go on with (`partial_results`).
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TextIO

from badacost._utils.validation import check_choice
from badacost.detection.boxes import Detections
from badacost.detection.images import FileStems, ImageSource
from badacost.detection.interchange.coco import coco_document
from badacost.detection.interchange.json_lines import to_json_line
from badacost.detection.interchange.kitti import to_kitti
from badacost.detection.interchange.partial_results import Failure, PartialResults
from badacost.detection.interchange.table import to_csv
from badacost.io.atomic_file import is_stream, plain_write_errors, replaced_file
from badacost.io.file_lock import FileLock

FORMAT_OF_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".json": "coco"}
RESULT_SUFFIXES = tuple(FORMAT_OF_SUFFIX)  # of files that `read_results` reads
_FORMATS = ("jsonl", "csv", "kitti", "coco")
_PARTIAL = ".partial"


class ResultsWriter(ABC):
    """Where results go, image by image; `open_results` makes one.

    Results for a file or folder are lines of JSON in a file whose name ends in ``.partial`` until
    the ``with`` statement ends. Then they take the place of what was there. If it ends in an error,
    earlier results stay, and so does that file, from which ``open_results(..., resume=True)`` goes
    on.

    Attributes
    ----------
    partial : Path or None
        The file of the results so far; None where they go to the standard output, or to a device.
    n_done, n_failed : int
        Images whose results are there from an earlier run, and how many of these had failed.
    stems : tuple of str
        Names of files of KITTI that these have.

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

    partial: Path | None = None
    n_done = n_failed = 0
    stems: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

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

    def fail(  # noqa: B027 - few formats have a place for it
        self, name: str, reason: str, stem: str | None = None
    ) -> None:
        """Add an image that could not be searched, if the format has a place for it.

        Parameters
        ----------
        name : str
            The image.
        reason : str
            What went wrong.
        stem : str, optional
            As in `write`: an earlier result of this name is removed.
        """


class _Stream(ResultsWriter):
    """Writes to an open file; who reads along finds whole lines."""

    def __init__(self, file: TextIO):
        self._file = file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not sys.stdout:
            self._file.close()

    def _put(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


class _JSONLines(_Stream):
    def write(self, found: Detections, stem: str | None = None) -> None:
        self._put(to_json_line(_source(found).name, found) + "\n")

    def fail(self, name: str, reason: str, stem: str | None = None) -> None:
        self._put(json.dumps({"image": name, "error": reason}) + "\n")


class _Table(_Stream):
    def __init__(self, file: TextIO):
        super().__init__(file)
        self._put(to_csv({}))

    def write(self, found: Detections, stem: str | None = None) -> None:
        _, _, rows = to_csv({_source(found).name: found}).partition("\n")
        self._put(rows)


class _Document(_Stream):
    """A document of COCO: detections as they come, images and categories at the end."""

    def __init__(self, file: TextIO, folder: Path | None):
        super().__init__(file)
        self._folder = folder
        self._images: list[dict[str, Any]] = []
        self._categories: list[dict[str, Any]] = []
        self._n_records = 0
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
        self._folder = folder
        self._stems = FileStems()

    def write(self, found: Detections, stem: str | None = None) -> None:
        path = self._folder / f"{stem or self._stems.of(_source(found))}.txt"
        with plain_write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        # Half a file, or an empty one, would be taken for the whole.
        with replaced_file(path, durable=False) as temporary:  # so many files take long
            temporary.write_text(to_kitti(found), encoding="utf-8")

    def fail(self, name: str, reason: str, stem: str | None = None) -> None:
        path = self._folder / f"{stem}.txt"
        with plain_write_errors(path):
            path.unlink(missing_ok=True)


class _Kept(ResultsWriter):
    """Keeps results in a partial file; at the end they go to the place that `finish` opens."""

    def __init__(
        self,
        path: Path,
        place: Path,
        finish: Callable[[ExitStack], ResultsWriter],
        made_from: Mapping[str, Any],
        resume: bool,
    ):
        self.partial = place
        self._finish = finish
        with ExitStack() as stack:
            stack.enter_context(FileLock(path))
            self._results = stack.enter_context(PartialResults(place, made_from, resume=resume))
            self._open = stack.pop_all()
        self.n_done, self.n_failed = self._results.n_done, self._results.n_failed
        self.stems = self._results.stems
        self._names = FileStems()
        for stem in self.stems:
            self._names.take(stem)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._open:
            if kind is not None:
                if not self._results.n_done:
                    self._results.remove()
                return
            with ExitStack() as stack:
                target = self._finish(stack)
                for found, stem in self._results.all():
                    if isinstance(found, Failure):
                        target.fail(found.name, found.reason, stem)
                    else:
                        target.write(found, stem)
            self._results.remove()

    def write(self, found: Detections, stem: str | None = None) -> None:
        source = _source(found)
        self._results.write(found, source, stem or self._names.of(source))

    def fail(self, name: str, reason: str, stem: str | None = None) -> None:
        stem = stem or self._names.of(ImageSource(name, (0, 0), Path(name)))
        self._results.fail(name, reason, stem)


def open_results(
    path: str | os.PathLike[str] | None = None,
    format: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    made_from: Mapping[str, Any] | None = None,
    resume: bool = False,
) -> ResultsWriter:
    """Return a writer of results, to be used in a ``with`` statement.

    Earlier results stay until the statement ends without an error.

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
    made_from : mapping of str to JSON values, optional
        What the results depend on, such as the hash of a model; see `resume`.
    resume : bool, default=False
        Whether to go on with the results that an interrupted run left behind: they begin with those
        of the first `n_done` images, 0 if there are none. Those of a run that was `made_from`
        something else are refused.

    Returns
    -------
    ResultsWriter
        With ``write(found)`` for each image.

    Raises
    ------
    ValueError
        Where path and format do not fit, results of an interrupted run are there that are not to
        be resumed, or results cannot be resumed.
    BlockingIOError
        Where another process writes there.

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
        with plain_write_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        texts = _TextFolder(place)
        return _Kept(place, place / f"results{_PARTIAL}", lambda _: texts, made_from or {}, resume)
    if place is not None and place.is_dir():
        raise ValueError(f"{str(place)!r} is a folder: name a file for {format}.")
    names = None if folder is None else Path(folder)

    def stream(file: TextIO) -> ResultsWriter:
        if format == "coco":
            return _Document(file, names)
        return _JSONLines(file) if format == "jsonl" else _Table(file)

    if place is None or is_stream(place):
        if resume:
            raise ValueError("only results in a file can be resumed: name one as path (--output).")
        return stream(
            sys.stdout if place is None else _opened(place, "a")
        )  # keeps what a shell appends to

    def finish(stack: ExitStack) -> ResultsWriter:
        temporary = stack.enter_context(replaced_file(place))
        file = stack.enter_context(_opened(temporary))
        return stack.enter_context(stream(file))

    with plain_write_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}{_PARTIAL}")
    return _Kept(place, partial, finish, made_from or {}, resume)


def _opened(path: Path, mode: Literal["w", "a"] = "w") -> TextIO:
    """Return a file to write; whoever asks closes it."""
    return open(path, mode, encoding="utf-8", newline="")


def _format_of(path: Path | None) -> str:
    """Return the format that a path stands for."""
    if path is None or is_stream(path):
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
