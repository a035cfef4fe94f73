"""``badacost detect``: objects in pictures, folders of pictures, and videos."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from badacost._utils.progress import ProgressBar
from badacost.cli.options import Device, MaxMemory, Quiet, check_jobs
from badacost.cli.printing import plain_errors
from badacost.cli.table_inputs import make_folder, save_picture
from badacost.io.atomic_file import plain_write_errors, replaced_file
from badacost.io.budget import Budget

if TYPE_CHECKING:
    from PIL import Image

    from badacost.detection.boxes import Detections
    from badacost.detection.detector import Detector

_RESUME = "the same command with --resume goes on"
_MAX_ON_SHEET = 60
_SHEET_WIDTH = 1800
_SHEET_COLUMNS = 3
_TILE_WIDTH = _SHEET_WIDTH // _SHEET_COLUMNS


def detect(
    model: Annotated[Path, typer.Argument(help="A saved detector, or a published .mat file.")],
    inputs: Annotated[list[Path], typer.Argument(help="Pictures, folders of pictures, videos.")],
    output: Annotated[
        Path | None,
        typer.Option(help="File for the results, or folder for kitti; standard output by default."),
    ] = None,
    format: Annotated[
        Literal["jsonl", "csv", "kitti", "coco"] | None,
        typer.Option(
            help="Format of the results; by default inferred from the suffix of --output, or jsonl."
        ),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Folder for pictures with the detections drawn.")
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help=f"Contact sheet of the first {_MAX_ON_SHEET} pictures with detections."),
    ] = None,
    conf: Annotated[
        float | None, typer.Option(help="Minimum probability of a detection, 0 to 1.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Minimum raw score of a detection, before it becomes a probability; it may be "
            "below the threshold of the saved detector."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of pictures to search at the same time; -1 for one per core. By default "
            "one per core, but at most 4."
        ),
    ] = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Search fewer sizes and no small objects: several times faster."
        ),
    ] = False,
    octaves_up: Annotated[
        int | None,
        typer.Option(
            min=0, max=4, help="Number of times to double the pictures, to find small objects."
        ),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Use every n-th frame of videos.")] = 1,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted run."),
    ] = False,
    device: Device = "cpu",
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
) -> None:
    """Find objects in pictures, folders of pictures (with all folders inside) and videos.

    jsonl has a line of JSON for each picture, also for those that failed; csv a row for each
    detection; kitti a text file for each picture; coco is one document, with the names of pictures
    relative to the folder that all inputs share. The name of a video frame is the name of its file,
    a # and the number of the frame. Files of the same name in folders of kitti and --draw are
    numbered: -2, -3, ...

    Results are written one by one to OUTPUT.partial (OUTPUT/results.partial for kitti), as lines of
    JSON that other programs can read meanwhile. When they are complete, they replace those of an
    earlier run. If the run is interrupted, earlier results are kept, and the same command with
    --resume continues it; the results are those of a run without interruption. It refuses results
    of another model, of other options, or of inputs whose names or contents have changed. To start
    again, remove that file: without --resume it is refused. Files of a kitti folder that belong to
    other pictures stay.

    Inputs that cannot be read are reported on standard error; the others are processed. A picture
    that is smaller than the smallest object of the detector is not a failure: nothing is found.

    Exit status: 0 on success, 1 if some inputs failed or results could not be written, 2 if nothing
    was searched, 130 after Ctrl-C.
    """
    from badacost.detection.detector import images_at_a_time
    from badacost.detection.interchange import open_results
    from badacost.detection.stream import InputFiles, Unreadable, search

    with plain_errors("Stopped before the first picture.", status=2):
        check_jobs(jobs)
        detector = _detector(model, device, fast, octaves_up, conf, threshold)
        files = InputFiles(inputs)
        path = None if output is None or str(output) == "-" else output
        if resume and sheet is not None:
            raise ValueError("--sheet needs all pictures: leave out --sheet or --resume.")
        made_from = {
            "model": _digest(model),
            "--fast": fast,
            "--octaves-up": octaves_up,
            "--conf": conf,
            "--threshold": threshold,
            "--every": every,
            "--draw": None if draw is None else os.path.abspath(draw),
            "--max-memory": Budget.of(None).max_memory,
            "set of inputs": None if path is None else files.digest(),
        }
        report = _Report(0 if quiet else files.n_images(every), quiet)
        gallery = _Gallery(draw, sheet)
        results = open_results(
            path, format, folder=files.folder, made_from=made_from, resume=resume
        )
        if resume and not results.n_done:
            report.note("nothing to resume: all pictures are searched.")
        report.resume(results.n_done, results.n_failed)
        for stem in results.stems:
            files.stems.take(stem)
    with plain_errors(_stopped(results.partial)), _kept(results.partial), ExitStack() as last:
        last.callback(report.close)
        last.callback(gallery.close, report)
        last.enter_context(results)
        images = files.images(every, results.n_done)
        for image, outcome in search(detector, images, n_jobs=images_at_a_time(jobs)):
            stem = files.stems.of(image.source if isinstance(image, Unreadable) else image)
            try:
                found = _checked(outcome, detector, report)
                gallery.add(found, stem, report)
                results.write(found, stem)
            except (ValueError, MemoryError) as error:
                reason = str(error) or f"there is not enough memory for {image.name!r}."
                results.fail(image.name, reason, stem)
                report.fail(reason)
            else:
                report.add(len(found))
            report.step()
    if report.n_failed:
        raise typer.Exit(1)


def _detector(
    model: Path,
    device: Literal["cpu", "cuda"],
    fast: bool,
    octaves_up: int | None,
    conf: float | None,
    threshold: float | None,
) -> Detector:
    """Load a detector, and set its device, its pyramid and its threshold."""
    from badacost import detection

    if conf is not None and threshold is not None:
        raise ValueError("--conf and --threshold exclude each other: leave one out.")
    if threshold is not None and threshold != threshold:
        raise ValueError("--threshold must be a number; got nan.")
    detector = detection.load_detector(model)
    if device != "cpu":
        detector = detector.with_device(device)
    if fast:
        detector = detector.fast()
    if octaves_up is not None:
        detector = detector.with_pyramid(n_octaves_up=octaves_up)
    if conf is not None:
        detector = detector.with_confidence(conf)
    if threshold is not None:
        detector = detector.with_threshold(threshold)
    return detector


def _digest(model: Path) -> str:
    """Return the hash of the file of a detector."""
    with open(model, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stopped(partial: Path | None) -> str:
    """Say what is left after Ctrl-C."""
    if partial is None:
        return "Stopped: what was written is complete."
    return f"Stopped: results so far are in {partial}; {_RESUME}."


@contextmanager
def _kept(partial: Path | None) -> Iterator[None]:
    """Say, where results cannot be written, that those so far are not lost."""
    try:
        yield
    except OSError as error:
        if error.errno is not None or partial is None or not partial.exists():
            raise
        raise OSError(f"{error} Results so far are in {partial}; {_RESUME}.") from error


def _checked(found: Detections | Exception, detector: Detector, report: _Report) -> Detections:
    """Return what was found, with a note if there was no room for an object, or raise."""
    from badacost.detection.pyramid import pyramid_scales

    if isinstance(found, Exception):
        raise found
    assert found.source is not None
    source = found.source
    if not pyramid_scales(source.size, detector.pyramid):
        height, width = source.size
        report.note(f"{source.name!r} of {width} x {height} pixels is too small to be searched.")
    return found


class _Gallery:
    """Pictures with detections: a file of each in a folder, and the first ones on a sheet."""

    def __init__(self, folder: Path | None, sheet: Path | None):
        from badacost.detection.images import is_image

        if sheet is not None:
            if not is_image(sheet):
                raise ValueError(
                    f"--sheet {str(sheet)!r} must have the suffix of a picture, such as .png."
                )
            make_folder(sheet)
        if folder is not None:
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"--draw {str(folder)!r} is a file: name a folder.")
            with plain_write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._sheet = folder, sheet
        self._tiles: list[Image.Image] = []
        self._titles: list[str] = []
        self._n_drawn = 0

    def add(self, found: Detections, stem: str, report: _Report) -> None:
        """Draw a picture where it is wanted; its detections are kept if that fails."""
        if self._folder is None and self._sheet is None:
            return
        try:
            self._draw(found, stem)
        except (ValueError, OSError, MemoryError) as error:
            reason = str(error).rstrip(".") or "there is not enough memory"
            report.fail(f"cannot draw {stem!r}: {reason}.")

    def _draw(self, found: Detections, stem: str) -> None:
        self._n_drawn += 1
        if self._folder is not None:
            path = self._folder / f"{stem}.jpg"
            # By name, Pillow 11 looks for another file.
            with (
                replaced_file(make_folder(path), durable=False) as temporary,
                temporary.open("wb") as file,
            ):
                found.plot().save(file, "JPEG", quality=92, subsampling=0)
        if self._sheet is not None and len(self._tiles) < _MAX_ON_SHEET:
            self._tiles.append(found.plot(width=_TILE_WIDTH))
            self._titles.append(stem)

    def close(self, report: _Report) -> None:
        """Write the sheet."""
        from badacost.detection.drawing import contact_sheet

        if self._sheet is None or not self._tiles:
            return
        if self._n_drawn > len(self._tiles):
            report.note(f"the sheet has the first {len(self._tiles)} of {self._n_drawn} pictures.")
        sheet = contact_sheet(
            self._tiles, columns=_SHEET_COLUMNS, width=_SHEET_WIDTH, titles=self._titles
        )
        save_picture(sheet, self._sheet)


@dataclass
class _Report:
    """What is printed on standard error: progress, notes, failures, and a summary."""

    n_expected: int
    quiet: bool
    n_pictures: int = 0
    n_found: int = 0
    n_failed: int = 0

    def __post_init__(self) -> None:
        self._n_done = 0
        self._first = self._latest = 0.0
        self._bar = None if self.quiet else ProgressBar(self.n_expected, "Detecting")

    def resume(self, n_done: int, n_failed: int) -> None:
        """Count what an earlier run did."""
        if n_done:
            failed = f", {n_failed} of them failed" if n_failed else ""
            self.note(f"{n_done} pictures were done before{failed}.")
        self._n_done, self.n_failed = n_done, n_failed

    def add(self, n_found: int) -> None:
        """Count a picture."""
        self.n_pictures += 1
        self.n_found += n_found
        self._latest = time.perf_counter()
        self._first = self._first or self._latest

    def fail(self, reason: str) -> None:
        """Count and print a failure."""
        self.n_failed += 1
        self._say(f"Failed: {reason}")

    def note(self, text: str) -> None:
        """Print a note."""
        if not self.quiet:
            self._say(f"Note: {text}")

    def close(self) -> None:
        """Print a summary."""
        if self._bar is None:
            return
        self._bar.close()
        counts = {"picture": self.n_pictures, "detection": self.n_found, "failure": self.n_failed}
        text = ", ".join(f"{n} {word}{'s' * (n != 1)}" for word, n in counts.items()) + "."
        if self._latest > self._first:  # the first one waits for the compiler
            speed = (self.n_pictures - 1) / (self._latest - self._first)
            text += f" {speed:.3g} pictures per second after the first."
        self._say(text)

    def step(self) -> None:
        """Update the progress bar."""
        self._n_done += 1
        if self._bar is not None:
            # Containers do not always know how many frames they have.
            self._bar.total = max(self._bar.total, self._n_done)
            self._bar.update(self._n_done, found=self.n_found)

    def _say(self, text: str) -> None:
        # A bar is redrawn on the line below.
        typer.echo(("\r\033[K" if sys.stderr.isatty() else "") + text, err=True)
