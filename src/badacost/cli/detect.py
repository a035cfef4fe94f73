"""``badacost detect``: a trained detector on pictures, folders of pictures, and videos."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO

import typer

from badacost.atomic_file import replaced_file
from badacost.cli.errors import plain_errors
from badacost.cli.jobs import check_jobs
from badacost.progress import ProgressBar

if TYPE_CHECKING:
    from PIL import Image

    from badacost.detection.boxes import Detections
    from badacost.detection.detector import Detector
    from badacost.detection.images import ImageError, Pixels

_MAX_ON_SHEET = 60
_SHEET_WIDTH = 1800
_SHEET_COLUMNS = 3
_TILE_WIDTH = _SHEET_WIDTH // _SHEET_COLUMNS


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


def detect(
    model: Annotated[Path, typer.Argument(help="A saved detector, or a published .mat file.")],
    inputs: Annotated[list[Path], typer.Argument(help="Pictures, folders of them, videos.")],
    output: Annotated[
        Path | None, typer.Option(help="File for the results, or folder for kitti; else stdout.")
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(help="By default what the suffix of --output says, or jsonl."),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Folder for pictures with the detections drawn.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help=f"One picture with the first {_MAX_ON_SHEET} of these.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Keep only detections with a higher score.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is one for each core.")] = -1,
    fast: Annotated[
        bool, typer.Option("--fast", help="Fewer sizes, no small objects: several times faster.")
    ] = False,
    octaves_up: Annotated[
        int | None,
        typer.Option(min=0, max=4, help="How often to double the picture, for small objects."),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Take every n-th frame of videos.")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only on stderr.")] = False,
) -> None:
    """Find objects in pictures, in folders of pictures (searched to the bottom) and in videos.

    Results are written as they come: jsonl has a line of JSON for each picture, also for those that
    failed; csv a row, coco a record for each detection, with the name of the picture as image_id;
    kitti a text file for each picture. The name of a video frame is the name of its file, a # and
    the number of the frame. Files of the same name in KITTI and --draw folders get -2, -3, ...

    Inputs that cannot be read are reported on stderr; the others are processed. A picture that is
    smaller than the smallest object the detector can find is no failure: nothing was found in it.

    Exit status: 0 if all went well, 1 if some inputs failed, 2 if nothing could begin, 130 after
    Ctrl-C; what was written until then is complete.
    """
    with plain_errors("Stopped before the first picture.", status=2):
        check_jobs(jobs)
        if threshold is not None and threshold != threshold:
            raise ValueError("--threshold must be a number; got nan.")
        detector = _detector(model, fast, octaves_up)
        files = _files(inputs)
        report = _Report(0 if quiet else _number_of_pictures(files, every), quiet)
        gallery = _Gallery(draw, sheet)
        results = _results(output, format)
    with plain_errors("Stopped: what was written is complete."), ExitStack() as last:
        last.callback(report.close)
        last.callback(gallery.close, report)
        last.callback(results.close)
        for picture in _pictures(files, every):
            try:
                found = _found(detector, picture, threshold, jobs, report)
                results.write(picture, found)
            except (ValueError, MemoryError) as error:
                reason = str(error) or f"there is not enough memory for {picture.name!r}."
                results.fail(picture, reason)
                report.fail(reason)
            else:
                report.add(len(found))
                gallery.add(picture, found, report)
            report.step()
    if report.n_failed:
        raise typer.Exit(1)


def _detector(model: Path, fast: bool, octaves_up: int | None) -> Detector:
    """Load a detector and set its pyramid."""
    from badacost import detection

    detector = detection.load_detector(model)
    if fast:
        detector = detector.fast()
    if octaves_up is not None:
        detector = detector.with_pyramid(n_octaves_up=octaves_up)
    return detector


@dataclass(frozen=True)
class _File:
    """An input, and the name of what is made from it."""

    path: Path
    stem: str


@dataclass(frozen=True, eq=False)
class _Picture:
    """A picture or a frame of a video, or why there is none."""

    name: str
    stem: str
    pixels: Pixels | ImageError


def _files(inputs: Iterable[Path]) -> list[_File]:
    """Return what the inputs name, each once, if the packages to read it are there."""
    from badacost.detection.images import find_images, import_av, import_pil, is_video

    files: dict[Path, _File] = {}
    for path in inputs:
        if path.is_dir():
            found = find_images(path)
            if not found:
                files.setdefault(path, _File(path, path.name))
            for file in found:
                files.setdefault(file, _File(file, str(file.relative_to(path).with_suffix(""))))
        else:
            files.setdefault(path, _File(path, path.stem))
    for path in files:
        import_av() if is_video(path) else import_pil()
    return list(files.values())


def _number_of_pictures(files: Iterable[_File], every: int) -> int:
    """Return how many pictures to expect; an unreadable video counts as one."""
    from badacost.detection.images import ImageError, count_frames, is_video

    total = 0
    for file in files:
        n_frames: int | None = None
        if is_video(file.path):
            with suppress(ImageError):  # the reason is told when its turn comes
                n_frames = count_frames(file.path)
        total += -(-(n_frames or 1) // every)
    return total


def _pictures(files: Iterable[_File], every: int) -> Iterator[_Picture]:
    """Read all pictures, one by one."""
    from badacost.detection.images import ImageError, is_video, read_image, read_video

    stems: set[str] = set()
    for file in files:
        name = str(file.path)
        try:
            if file.path.is_dir():
                raise ImageError(f"the folder {name!r} has no pictures.")
            if is_video(file.path):
                for k, frame in enumerate(read_video(file.path, every=every)):
                    number = f"{k * every:06d}"
                    stem = _unused(f"{file.stem}-{number}", stems)
                    yield _Picture(f"{name}#{number}", stem, frame)
            else:
                yield _Picture(name, _unused(file.stem, stems), read_image(file.path))
        except ImageError as error:
            yield _Picture(name, file.stem, error)


def _unused(stem: str, used: set[str]) -> str:
    """Return a name that no other file has; some file systems do not tell A from a."""
    unused, number = stem, 1
    while unused.casefold() in used:
        number += 1
        unused = f"{stem}-{number}"
    used.add(unused.casefold())
    return unused


def _found(
    detector: Detector, picture: _Picture, threshold: float | None, jobs: int, report: _Report
) -> Detections:
    """Return what is in a picture."""
    from badacost.detection.pyramid import pyramid_scales

    if isinstance(picture.pixels, ValueError):
        raise picture.pixels
    height, width = picture.pixels.shape[:2]
    if not pyramid_scales((height, width), detector.pyramid):
        report.note(f"{picture.name!r} of {width} x {height} pixels is too small to search.")
    begin = time.perf_counter()
    found = detector.detect(picture.pixels, n_jobs=jobs)
    report.seconds.append(time.perf_counter() - begin)
    return found if threshold is None else found.above(threshold)


class _Results(Protocol):
    """Where results go; what was written is complete at any time."""

    def write(self, picture: _Picture, found: Detections) -> None:
        """Add what was found in a picture."""

    def fail(self, picture: _Picture, reason: str) -> None:
        """Add a picture that could not be searched, if the format has a place for it."""

    def close(self) -> None:
        """Finish."""


class _TextResults:
    """Results in one file or on the standard output."""

    def __init__(self, path: Path | None):
        self._file: TextIO = sys.stdout
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115

    def fail(self, picture: _Picture, reason: str) -> None:
        pass

    def close(self) -> None:
        if self._file is not sys.stdout:
            self._file.close()

    def _put(self, text: str) -> None:
        """Write at once: who reads along, or comes after a crash, finds whole lines."""
        self._file.write(text)
        self._file.flush()


class _JSONLines(_TextResults):
    def write(self, picture: _Picture, found: Detections) -> None:
        from badacost.detection.interchange import to_json_line

        self._put(to_json_line(picture.name, found) + "\n")

    def fail(self, picture: _Picture, reason: str) -> None:
        self._put(json.dumps({"image": picture.name, "error": reason}) + "\n")


class _Table(_TextResults):
    def __init__(self, path: Path | None):
        from badacost.detection.interchange import to_csv

        super().__init__(path)
        self._put(to_csv({}))

    def write(self, picture: _Picture, found: Detections) -> None:
        from badacost.detection.interchange import to_csv

        _, _, rows = to_csv({picture.name: found}).partition("\n")
        self._put(rows)


class _Records(_TextResults):
    def __init__(self, path: Path | None):
        super().__init__(path)
        self._records: list[dict[str, Any]] = []

    def write(self, picture: _Picture, found: Detections) -> None:
        from badacost.detection.interchange import to_coco

        self._records += to_coco(found, picture.name)

    def close(self) -> None:
        self._put(json.dumps(self._records) + "\n")
        super().close()


class _TextFolder(_Results):
    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def write(self, picture: _Picture, found: Detections) -> None:
        from badacost.detection.interchange import to_kitti

        path = self._folder / f"{picture.stem}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Half a file, or an empty one, would be taken for the whole.
        with replaced_file(path) as temporary:
            temporary.write_text(to_kitti(found), encoding="utf-8")

    def fail(self, picture: _Picture, reason: str) -> None:
        pass

    def close(self) -> None:
        pass


def _results(output: Path | None, format: Format | None) -> _Results:
    """Return where results go."""
    if format is None:
        if output is None:
            format = Format.jsonl
        elif output.is_dir():
            format = Format.kitti
        elif output.suffix.lower() in _FORMAT_OF_SUFFIX:
            format = _FORMAT_OF_SUFFIX[output.suffix.lower()]
        else:
            raise ValueError(f"the name {str(output)!r} tells no format: add --format.")
    if format is not Format.kitti:
        if output is not None and output.is_dir():
            raise ValueError(
                f"--output {str(output)!r} is a folder: name a file for {format.value}."
            )
        kinds: dict[Format, Callable[[Path | None], _Results]]
        kinds = {Format.jsonl: _JSONLines, Format.csv: _Table, Format.coco: _Records}
        return kinds[format](output)
    if output is None or (output.exists() and not output.is_dir()):
        raise ValueError("kitti results are a file for each picture: name a folder as --output.")
    return _TextFolder(output)


class _Gallery:
    """Pictures with detections: a file of each in a folder, and the first ones on a sheet."""

    def __init__(self, folder: Path | None, sheet: Path | None):
        from badacost.detection.images import is_image

        if sheet is not None:
            if not is_image(sheet):
                raise ValueError(f"--sheet {str(sheet)!r} must end like a picture, as .png does.")
            sheet.parent.mkdir(parents=True, exist_ok=True)
        if folder is not None:
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"--draw {str(folder)!r} is a file: name a folder.")
            folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._sheet = folder, sheet
        self._tiles: list[Image.Image] = []
        self._titles: list[str] = []
        self._n_drawn = 0

    def add(self, picture: _Picture, found: Detections, report: _Report) -> None:
        """Draw a picture where it is wanted; its detections are kept if that fails."""
        if self._folder is None and self._sheet is None:
            return
        try:
            self._draw(picture, found)
        except (ValueError, OSError, MemoryError) as error:
            report.fail(
                f"cannot draw {picture.name!r}: {str(error) or 'there is not enough memory'}."
            )

    def _draw(self, picture: _Picture, found: Detections) -> None:
        from badacost.detection.drawing import draw

        pixels: Any = picture.pixels
        self._n_drawn += 1
        if self._folder is not None:
            path = self._folder / f"{picture.stem}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(pixels, found).save(path, quality=92, subsampling=0)
        if self._sheet is not None and len(self._tiles) < _MAX_ON_SHEET:
            self._tiles.append(draw(pixels, found, width=_TILE_WIDTH))
            self._titles.append(picture.stem)

    def close(self, report: _Report) -> None:
        """Write the sheet."""
        from badacost.detection.drawing import contact_sheet

        if self._sheet is None or not self._tiles:
            return
        if self._n_drawn > len(self._tiles):
            report.note(f"the sheet has the first {len(self._tiles)} of {self._n_drawn} pictures.")
        contact_sheet(
            self._tiles, columns=_SHEET_COLUMNS, width=_SHEET_WIDTH, titles=self._titles
        ).save(self._sheet)


@dataclass
class _Report:
    """What the user sees on stderr: progress, notes, failures, and a summary."""

    n_expected: int
    quiet: bool
    n_pictures: int = 0
    n_found: int = 0
    n_failed: int = 0
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._n_done = 0
        self._begin = time.perf_counter()
        self._bar = None if self.quiet else ProgressBar(self.n_expected, "Detecting")

    def add(self, n_found: int) -> None:
        """Count a picture."""
        self.n_pictures += 1
        self.n_found += n_found

    def fail(self, reason: str) -> None:
        """Tell what went wrong."""
        self.n_failed += 1
        self._say(f"Failed: {reason}")

    def note(self, text: str) -> None:
        """Tell what is good to know."""
        if not self.quiet:
            self._say(f"Note: {text}")

    def close(self) -> None:
        """Sum up."""
        if self._bar is None:
            return
        self._bar.close()
        overall = time.perf_counter() - self._begin
        counts = {"picture": self.n_pictures, "detection": self.n_found, "failure": self.n_failed}
        text = ", ".join(f"{n} {word}{'s' * (n != 1)}" for word, n in counts.items()) + "."
        later = self.seconds[1:]  # the first one waits for the compiler
        if later and self.n_pictures:
            text += f" {len(later) / sum(later):.3g} pictures a second in the detector"
            text += f" after the first, {self.n_pictures / overall:.3g} with all else."
        self._say(text)

    def step(self) -> None:
        """Show how far it is."""
        self._n_done += 1
        if self._bar is not None:
            # Containers do not always know how many frames they have.
            self._bar.total = max(self._bar.total, self._n_done)
            self._bar.update(self._n_done, found=self.n_found)

    def _say(self, text: str) -> None:
        # A bar is redrawn on the line below.
        typer.echo(("\r\033[K" if sys.stderr.isatty() else "") + text, err=True)
