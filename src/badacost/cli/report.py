"""``badacost report``: a trained model on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.annotated import check_annotated
from badacost.cli.errors import plain_errors, refuse_options
from badacost.cli.jobs import check_jobs
from badacost.cli.json_output import note, warnings_as_notes, write_json
from badacost.cli.table_inputs import (
    check_output_file,
    check_place,
    costs_of_classes,
    table_model,
    table_with_target,
)
from badacost.progress import ProgressBar

if TYPE_CHECKING:
    from badacost.cost_report import CostReport
    from badacost.detection.annotations import AnnotatedImage
    from badacost.detection.detector import Detector
    from badacost.tabular import TableClassifier

_OF_CLASSIFIERS = "Options of classifiers"
_OF_DETECTORS = "Options of detectors"


def report(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model of `badacost fit`; or a saved detector, or a published .mat file."
        ),
    ],
    output: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is one for each core.")] = -1,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A table with the classes, of rows that the model was not fitted to.",
            rich_help_panel=_OF_CLASSIFIERS,
        ),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="The table that the model was fitted to: adds rivals trained without costs.",
            rich_help_panel=_OF_CLASSIFIERS,
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of other costs than those of the fit.", rich_help_panel=_OF_CLASSIFIERS
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Column of the classes; that of the fit by default.",
            rich_help_panel=_OF_CLASSIFIERS,
        ),
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option(help="Unit of the costs, as EUR.", rich_help_panel=_OF_CLASSIFIERS),
    ] = None,
    abstain: Annotated[
        float | None,
        typer.Option(
            help="Price of asking a person: adds how often that pays, and what it saves.",
            metavar="PRICE",
            rich_help_panel=_OF_CLASSIFIERS,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Also write the figures to standard output, as JSON.",
            rich_help_panel=_OF_CLASSIFIERS,
        ),
    ] = False,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pictures or folders of them, to measure and to show; may be repeated. With "
            "--annotations, the folder of their pictures, if it is not beside them.",
            rich_help_panel=_OF_DETECTORS,
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            help="What is in pictures: a file or folder of KITTI, VOC, ...",
            rich_help_panel=_OF_DETECTORS,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of --annotations; guessed by default.", rich_help_panel=_OF_DETECTORS
        ),
    ] = None,
    kitti_cars: Annotated[
        bool,
        typer.Option(
            "--kitti-cars",
            help="Ask for the cars of KITTI's moderate level, as `evaluate --kitti-cars`.",
            rich_help_panel=_OF_DETECTORS,
        ),
    ] = False,
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Cut detections at the borders of pictures, as `evaluate --clip`.",
            rich_help_panel=_OF_DETECTORS,
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
    with plain_errors("Stopped: nothing was written."):
        if not model.exists():
            raise FileNotFoundError(f"there is no model {str(model)!r}: check its name and folder.")
        check_jobs(jobs)
        of_classifiers = {
            "--data": data,
            "--train": train,
            "--costs": costs,
            "--target": target,
            "--currency": currency,
            "--abstain": abstain is not None,
            "--json": as_json,
        }
        of_annotations = {"--format": format, "--kitti-cars": kitti_cars, "--clip": clip}
        of_detectors = {"--images": images, "--annotations": annotations, **of_annotations}
        check_place(output)
        if _is_classifier(model):
            from badacost.cost_report.money import check_currency

            refuse_options(of_detectors, f"{str(model)!r} is a classifier")
            if data is None:
                raise ValueError(
                    f"{str(model)!r} is a classifier: add --data, a table with the classes of rows "
                    "that it was not fitted to."
                )
            check_currency(currency)
            measured = _cost_report(model, data, train, costs, target, abstain=abstain, n_jobs=jobs)
            check_output_file(output)
            measured.save(output, title=title, currency=currency)
            if as_json:
                write_json(measured.to_dict())
                return
            typer.echo(measured.summary(currency))
        else:
            refuse_options(of_classifiers, f"{str(model)!r} is no classifier")
            if annotations is None:
                for name in [name for name, value in of_annotations.items() if value]:
                    raise ValueError(f"{name} is about annotations: add --annotations.")
            options: dict[str, Any] = {"title": title, "n_jobs": jobs, "clip": clip}
            if kitti_cars:
                from badacost.detection.annotations import KITTI_CARS

                options["selection"] = KITTI_CARS
            _report_detector(model, images or [], annotations, format, output, **options)
        typer.echo(f"The page is in {output}.")


def _cost_report(
    path: Path,
    data: Path,
    train: Path | None,
    costs: Path | None,
    target: str | None,
    **options: Any,
) -> CostReport:
    """Measure what the decisions of a classifier cost."""
    from badacost.cost_report import CostReport

    model = table_model(path)
    target = target or model.target_name_
    if target is None:
        raise ValueError("the model does not know the column of the classes: add --target.")
    X, y = _samples(data, target, model)
    if train is not None:
        options["train"] = _samples(train, target, model)
    if costs is not None:
        options["costs"] = costs_of_classes(costs, model.classes_.tolist())
    with warnings_as_notes(), _progress("Report") as show:
        measured = CostReport.from_estimator(model, X, y, progress=show, **options)
    if measured.known_rows is not None:
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
    **options: Any,
) -> None:
    """Write the page of a detector."""
    detector = _detector(path)
    n_pictures = 0
    if annotations is not None:
        options["annotated"] = _annotated(annotations, format, images)
        n_pictures = len(options["annotated"])
    elif images:
        options["images"] = _pictures(images)
        n_pictures = len(options["images"])
    from badacost.detection.report import write_report

    if n_pictures:
        typer.echo(f"Looking at {n_pictures} picture{'s' * (n_pictures != 1)}.", err=True)
    check_output_file(output)
    with warnings_as_notes(), _progress("Report") as show:
        write_report(detector, output, progress=show, **options)


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar from the first step on."""
    bars: list[ProgressBar] = []

    def show(done: int, total: int) -> None:
        if not bars:
            bars.append(ProgressBar(total, title))
        bars[0].update(done)

    try:
        yield show
    finally:
        for bar in bars:
            bar.close()


def _is_classifier(path: Path) -> bool:
    """Tell whether a file is a saved model, and not that of a detector."""
    from badacost.persistence import saved_kind

    return path.is_file() and saved_kind(path) not in (None, "Detector")


def _detector(path: Path) -> Detector:
    """Load a detector."""
    from badacost import load
    from badacost.detection.matlab_file import is_matlab
    from badacost.detection.reference import load_matlab

    model: Detector = load_matlab(path) if is_matlab(path) else load(path)
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
