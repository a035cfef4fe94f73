"""``badacost report``: a trained model on one page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.annotated import check_annotated
from badacost.cli.errors import plain_errors
from badacost.cli.jobs import check_jobs

if TYPE_CHECKING:
    from badacost.detection.annotations import AnnotatedImage
    from badacost.detection.detector import Detector


def report(
    model: Annotated[Path, typer.Argument(help="A saved detector, or a published .mat file.")],
    output: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    images: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pictures or folders of them, to measure and to show; repeat it for more. With "
            "--annotations, the folder of their pictures, if it is not beside them."
        ),
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="What is in pictures: a file or folder of KITTI, VOC, ...")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of --annotations; guessed by default.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is one for each core.")] = -1,
) -> None:
    """Write a page of HTML that tells what a detector is, where it looks and how well it does.

    The page holds all its pictures and needs nothing else. Without --images and --annotations it
    has windows, views, thresholds and maps of the features; --images add work and time, score
    traces and examples; --annotations add curves, the confusion of views, and mean images.
    """
    with plain_errors("Stopped: nothing was written."):
        check_jobs(jobs)
        if format is not None and annotations is None:
            raise ValueError("--format is that of annotations: add --annotations.")
        if output.is_dir():
            raise IsADirectoryError(f"--output {str(output)!r} is a folder: name a file.")
        detector = _detector(model)
        options: dict[str, Any] = {}
        if annotations is not None:
            options["annotated"] = _annotated(annotations, format, images or [])
        elif images:
            options["images"] = _pictures(images)
        from badacost.detection.report import write_report

        n_pictures = sum(map(len, options.values()))
        if n_pictures:
            typer.echo(f"Looking at {n_pictures} picture{'s' * (n_pictures != 1)}.", err=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        write_report(detector, output, title=title, n_jobs=jobs, **options)
        typer.echo(f"The page is in {output}.")


def _detector(path: Path) -> Detector:
    """Load the model, if it is of a kind that there are pages of."""
    from badacost.detection.detector import Detector
    from badacost.detection.matlab_file import is_matlab
    from badacost.detection.reference import load_matlab
    from badacost.persistence import load

    model = load_matlab(path) if is_matlab(path) else load(path)
    if not isinstance(model, Detector):
        raise ValueError(
            f"{str(path)!r} holds a {type(model).__name__}, and reports are of detectors only: "
            "name the file of a detector."
        )
    return model


def _annotated(path: Path, format: str | None, images: list[Path]) -> list[AnnotatedImage]:
    """Read annotations; pictures are beside them or in the one folder that is named."""
    from badacost.detection.annotations import read_annotations

    if len(images) > 1:
        raise ValueError("--images must be one folder with --annotations: that of their pictures.")
    check_annotated(path, format, "give the pictures as --images")
    return read_annotations(path, format, **({"images": images[0]} if images else {}))


def _pictures(paths: Iterable[Path]) -> list[Path]:
    """Return the pictures that are named, and those in folders that are named."""
    from badacost.detection.images import find_images

    pictures: dict[Path, None] = {}
    for path in paths:
        found = find_images(path) if path.is_dir() else [path]
        if not found:
            raise ValueError(f"the folder {str(path)!r} has no pictures: name another one.")
        pictures |= dict.fromkeys(found)
    return list(pictures)
