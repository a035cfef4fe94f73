"""``badacost report``: a trained model on one page."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost._utils.progress import ProgressBar
from badacost.cli import options
from badacost.cli.annotated import check_annotated
from badacost.cli.printing import note, plain_errors, warnings_as_notes, write_json
from badacost.cli.table_inputs import (
    check_model,
    check_output,
    costs_of_classes,
    is_classifier,
    make_folder,
    table_model,
    table_with_target,
    target_of,
)

if TYPE_CHECKING:
    from badacost.cost_report import CostReport
    from badacost.detection.annotations import AnnotatedImage
    from badacost.tabular import TableClassifier


@plain_errors("Stopped: nothing was written.")
def report(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            help="A model of `badacost fit`; or a saved detector, or a published .mat file."
        ),
    ],
    output: options.Page = Path("report.html"),
    title: options.Title = None,
    jobs: options.Jobs = -1,
    max_memory: options.MaxMemory = None,
    data: Annotated[
        Path | None,
        options.of_tables(
            help="A table with the classes, of rows that the model was not fitted to."
        ),
    ] = None,
    train: Annotated[
        Path | None,
        options.of_tables(
            help="The table that the model was fitted to: adds rivals trained without costs."
        ),
    ] = None,
    costs: options.OtherCosts = None,
    target: options.KnownTarget = None,
    currency: Annotated[str | None, options.of_tables(help="Unit of the costs, as EUR.")] = None,
    abstain: Annotated[
        float | None,
        options.of_tables(
            help="Price of asking a person: adds how often that pays, and what it saves.",
            metavar="PRICE",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        options.of_tables("--json", help="Also write the figures to standard output, as JSON."),
    ] = False,
    images: Annotated[
        list[Path] | None,
        options.of_detection(
            help="Pictures or folders of them, to measure and to show; may be repeated. With "
            "--annotations, the folder of their pictures, if it is not beside them."
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        options.of_detection(help="What is in pictures: a file or folder of KITTI, VOC, ..."),
    ] = None,
    format: Annotated[
        str | None, options.of_detection(help="Format of --annotations; guessed by default.")
    ] = None,
    kitti_cars: Annotated[
        bool,
        options.of_detection(
            "--kitti-cars",
            help="Ask for the cars of KITTI's moderate level, as `evaluate --kitti-cars`.",
        ),
    ] = False,
    clip: Annotated[
        bool,
        options.of_detection(
            "--clip", help="Cut detections at the borders of pictures, as `evaluate --clip`."
        ),
    ] = False,
) -> None:
    """Write a page of HTML about a trained model, which holds all its pictures.

    Of a classifier, what its decisions on --data cost: the average with an interval, by class and
    by kind of mistake, against other ways to decide, after each round, and if prices changed. The
    first sentence says if anything is cheaper than the model.

    Of a detector, what it is and where it looks; --images add work and time, score traces and
    examples; --annotations add average precision as `badacost evaluate` has it, curves,
    thresholds, recall by view, the confusion of views, misses and false alarms as pictures, and
    mean images.
    """
    check_model(model)
    options.check_jobs(jobs)
    check_output(output)
    of_detection = options.given(context, options.DETECTION)
    if is_classifier(model):
        from badacost.cost_report.money import check_currency

        options.refuse(of_detection, f"{str(model)!r} is a classifier")
        if data is None:
            raise ValueError(
                f"{str(model)!r} is a classifier: add --data, a table with the classes of rows "
                "that it was not fitted to."
            )
        check_currency(currency)
        measured = _cost_report(model, data, train, costs, target, abstain=abstain, n_jobs=jobs)
        if as_json:
            write_json(measured.to_dict())
        else:
            typer.echo(measured.summary(currency))
        measured.save(make_folder(output), title=title, currency=currency)
        if as_json:
            return
    else:
        of_tables = options.given(context, options.TABLES)
        options.refuse(of_tables, f"{str(model)!r} is no classifier")
        for name in of_detection if annotations is None else []:
            if name != "--images":
                raise ValueError(f"{name} is about annotations: add --annotations.")
        from badacost.detection.annotations import KITTI_CARS

        selection = KITTI_CARS if kitti_cars else None
        given = {"title": title, "n_jobs": jobs, "clip": clip, "selection": selection}
        _report_detector(model, images or [], annotations, format, output, **given)
    typer.echo(f"The page is in {output}.")


def _cost_report(
    path: Path,
    data: Path,
    train: Path | None,
    costs: Path | None,
    target: str | None,
    **given: Any,
) -> CostReport:
    """Measure what the decisions of a classifier cost."""
    from badacost.cost_report import CostReport

    model = table_model(path)
    target = target_of(model, target)
    X, y = _samples(data, target, model)
    if train is not None:
        given["train"] = _samples(train, target, model)
    if costs is not None:
        given["costs"] = costs_of_classes(costs, model.classes_.tolist())
    with warnings_as_notes(), closing(ProgressBar(1, "Report")) as bar:
        measured = CostReport.from_estimator(model, X, y, progress=bar.show, **given)
    note(measured.known_rows)
    return measured


def _samples(path: Path, target: str, model: TableClassifier) -> tuple[Any, Any]:
    """Read a table and its classes."""
    from badacost.tabular.target import known_labels

    frame = table_with_target(path, target, model)
    return frame, known_labels(frame[target], model.classes_, target)


def _report_detector(
    path: Path,
    images: list[Path],
    annotations: Path | None,
    format: str | None,
    output: Path,
    **given: Any,
) -> None:
    """Write the page of a detector."""
    from badacost.detection import load_detector
    from badacost.detection.report import write_report

    detector = load_detector(path)
    pictures: list[Any] = []
    if annotations is not None:
        pictures = given["annotated"] = _annotated(annotations, format, images)
    elif images:
        pictures = given["images"] = _pictures(images)
    if pictures:
        typer.echo(f"Looking at {len(pictures)} picture{'s' * (len(pictures) != 1)}.", err=True)
    make_folder(output)
    with warnings_as_notes(), closing(ProgressBar(1, "Report")) as bar:
        write_report(detector, output, progress=bar.show, **given)


def _annotated(path: Path, format: str | None, images: list[Path]) -> list[AnnotatedImage]:
    """Read annotations; pictures are beside them or in the one folder that is named."""
    from badacost.detection.annotations import read_annotations

    if len(images) > 1:
        raise ValueError("--images must be one folder with --annotations: that of their pictures.")
    check_annotated(path, format, "give the pictures as --images")
    options: dict[str, Any] = {"images": images[0]} if images else {}
    return read_annotations(path, format, **options)


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
