"""``badacost demo``: demonstrations that need no data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from badacost.cli.errors import plain_errors
from badacost.cli.jobs import check_jobs
from badacost.cli.json_output import note
from badacost.cli.warmup import DETECTION_KERNELS, is_compiled

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _demo() -> None:
    """Demonstrations that need no data."""


@app.command()
def detect(
    output: Annotated[Path, typer.Option(help="Picture to write.")] = Path("detections.png"),
    scenes: Annotated[int, typer.Option(min=1, max=60, metavar="N", help="Number of scenes.")] = 6,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")] = 0,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Number of threads; -1 for one per core.")
    ] = -1,
) -> None:
    """Find cars in synthetic scenes with the detector that comes with the package.

    Draws boxes, scores and arrows for the headings as seen from above, and prints how many of the
    cars were found, and how many of these with the right view.
    """
    with plain_errors("Stopped."):
        from badacost.detection.drawing import contact_sheet, draw
        from badacost.detection.evaluation import evaluate_voc
        from badacost.detection.models import synthetic_cars
        from badacost.detection.scenes import make_scenes

        check_jobs(jobs)
        if output.is_dir():
            raise IsADirectoryError(f"--output {str(output)!r} is a folder: name a file.")
        output.parent.mkdir(parents=True, exist_ok=True)
        detector = synthetic_cars()
        if not is_compiled(DETECTION_KERNELS):
            note("compiling the inner loops, once: about half a minute.")
        images = make_scenes(scenes, n_views=len(detector.names), random_state=seed)
        found = list(detector.detect_many((image.load() for image in images), n_jobs=jobs))
        pictures = [draw(image.load(), boxes) for image, boxes in zip(images, found, strict=True)]
        contact_sheet(pictures, columns=min(3, scenes)).save(output)
        names = [image.name for image in images]
        result = evaluate_voc(
            dict(zip(names, found, strict=True)), dict(zip(names, images, strict=True))
        )
        typer.echo(
            f"{detector}: {result.n_true} of {result.n_objects} cars found, "
            f"{result.n_false} false alarms, {result.view_accuracy:.0%} of the views correct.\n"
            f"The picture is {output}."
        )
