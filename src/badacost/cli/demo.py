"""``badacost demo``: demonstrations that need no data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from badacost.cli.options import Jobs, Seed, check_jobs
from badacost.cli.printing import plain_errors
from badacost.cli.table_inputs import check_output, save_picture

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _demo() -> None:
    """Demonstrations that need no data."""


@app.command()
@plain_errors("Stopped.")
def detect(
    output: Annotated[Path, typer.Option(help="Picture to write.")] = Path("detections.png"),
    scenes: Annotated[int, typer.Option(min=1, max=60, metavar="N", help="Number of scenes.")] = 6,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Find cars in synthetic scenes with the detector that comes with the package.

    Draws boxes, scores and arrows for the headings as seen from above, and prints how many of the
    cars were found, and how many of these with the right view.
    """
    from badacost.detection.drawing import contact_sheet, draw
    from badacost.detection.evaluation import evaluate_voc
    from badacost.detection.models import synthetic_cars
    from badacost.detection.scenes import make_scenes

    check_jobs(jobs)
    check_output(output)
    detector = synthetic_cars()
    images = make_scenes(scenes, n_views=len(detector.names), random_state=seed)
    found = list(detector.detect_many((image.load() for image in images), n_jobs=jobs))
    pictures = [draw(image.load(), boxes) for image, boxes in zip(images, found, strict=True)]
    save_picture(contact_sheet(pictures, columns=min(3, scenes)), output)
    names = [image.name for image in images]
    result = evaluate_voc(
        dict(zip(names, found, strict=True)), dict(zip(names, images, strict=True))
    )
    typer.echo(
        f"{detector}: {result.n_true} of {result.n_objects} cars found, "
        f"{result.n_false} false alarms, {result.view_accuracy:.0%} of the views correct.\n"
        f"The picture is {output}."
    )
