"""Where ``badacost detect`` writes its results: files that are complete at any time."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from badacost.atomic_file import replaced_file

if TYPE_CHECKING:
    from badacost.detection.boxes import Detections
    from badacost.detection.images import ImageSource


class Format(StrEnum):
    """Formats of results."""

    jsonl = "jsonl"
    csv = "csv"
    kitti = "kitti"
    coco = "coco"


_FORMAT_OF_SUFFIX = {
    ".jsonl": Format.jsonl,
    ".ndjson": Format.jsonl,
    ".csv": Format.csv,
    ".json": Format.coco,
    "": Format.kitti,
}


def source_of(found: Detections) -> ImageSource:
    """Return the picture that was searched."""
    assert found.source is not None
    return found.source


class Results(ABC):
    """Where results go, in one file or on the standard output; each is written at once."""

    stopped = "Stopped: what was written is complete."

    def __init__(self, path: Path | None):
        self._file: TextIO = sys.stdout
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115

    def __enter__(self) -> Results:
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
    def write(self, found: Detections, stem: str) -> None:
        """Add what was found in a picture."""

    def fail(self, name: str, reason: str) -> None:  # noqa: B027 - few formats have a place for it
        """Add a picture that could not be searched, if the format has a place for it."""

    def _put(self, text: str) -> None:
        """Write at once: who reads along, or comes after a crash, finds whole lines."""
        self._file.write(text)
        self._file.flush()


class _JSONLines(Results):
    def write(self, found: Detections, stem: str) -> None:
        from badacost.detection.interchange import to_json_line

        self._put(to_json_line(source_of(found).name, found) + "\n")

    def fail(self, name: str, reason: str) -> None:
        self._put(json.dumps({"image": name, "error": reason}) + "\n")


class _Table(Results):
    def __init__(self, path: Path | None):
        from badacost.detection.interchange import to_csv

        super().__init__(path)
        self._put(to_csv({}))

    def write(self, found: Detections, stem: str) -> None:
        from badacost.detection.interchange import to_csv

        _, _, rows = to_csv({source_of(found).name: found}).partition("\n")
        self._put(rows)


class _Document(Results):
    """A document of COCO: detections as they come, pictures and categories at the end."""

    def __init__(self, path: Path | None, folder: Path):
        self._replacing = ExitStack()
        self._folder = folder
        self._images: list[dict[str, Any]] = []
        self._categories: list[dict[str, Any]] = []
        self._n_records = 0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.stopped = f"Stopped: nothing was written to {str(path)!r}."
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

    def write(self, found: Detections, stem: str) -> None:
        from badacost.detection.interchange import coco_document

        name = Path(os.path.relpath(source_of(found).name, self._folder)).as_posix()
        first = len(self._images) + 1, self._n_records + 1
        part = coco_document({name: found}, first_image=first[0], first_annotation=first[1])
        self._put("".join(self._separated(json.dumps(record)) for record in part["annotations"]))
        self._images += part["images"]
        self._categories = part["categories"]

    def _separated(self, record: str) -> str:
        self._n_records += 1
        return f"{',' if self._n_records > 1 else ''}\n{record}"


class _TextFolder(Results):
    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(None)
        self._folder = folder

    def write(self, found: Detections, stem: str) -> None:
        from badacost.detection.interchange import to_kitti

        path = self._folder / f"{stem}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Half a file, or an empty one, would be taken for the whole.
        with replaced_file(path) as temporary:
            temporary.write_text(to_kitti(found), encoding="utf-8")


def open_results(output: Path | None, format: Format | None, folder: Path) -> Results:
    """Return where results go."""
    if output is not None and str(output) == "-":
        output = None
    if format is None:
        if output is None:
            format = Format.jsonl
        elif output.is_dir():
            format = Format.kitti
        elif output.suffix.lower() in _FORMAT_OF_SUFFIX:
            format = _FORMAT_OF_SUFFIX[output.suffix.lower()]
        else:
            raise ValueError(f"the name {str(output)!r} tells no format: add --format.")
    if format is Format.kitti:
        if output is None or (output.exists() and not output.is_dir()):
            raise ValueError(
                "kitti results are a file for each picture: name a folder as --output."
            )
        return _TextFolder(output)
    if output is not None and output.is_dir():
        raise ValueError(f"--output {str(output)!r} is a folder: name a file for {format.value}.")
    if format is Format.coco:
        return _Document(output, folder)
    return _JSONLines(output) if format is Format.jsonl else _Table(output)
