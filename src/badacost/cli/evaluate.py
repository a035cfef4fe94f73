"""``badacost evaluate``: the costs of decisions, or the quality of detections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from badacost._utils.progress import tracked
from badacost.cli import options
from badacost.cli.annotated import annotated_images, yaw_views
from badacost.cli.detection_tables import show_evaluation
from badacost.cli.evaluate_table import evaluate_table
from badacost.cli.printing import plain_errors, warnings_as_notes, write_json
from badacost.cli.table_inputs import check_output, is_classifier, make_folder
from badacost.io.atomic_file import replaced_file

if TYPE_CHECKING:
    from badacost.detection.annotations import AnnotatedImage
    from badacost.detection.boxes import Detections


_PROTOCOLS = {  # that an option belongs to, if it is not for all
    "--category": ("voc", "kitti", "coco"),
    "--kitti-cars": ("voc", "coco"),
    "--overlap": ("voc", "kitti", "fddb"),
    "--rounds": ("voc", "faces"),
    "--rule": ("kitti",),
    "--yaw-limits": ("voc", "faces"),
}


@plain_errors("Stopped.")
def evaluate(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            help="A model of `badacost fit`; or results of `badacost detect` (jsonl, csv, json of "
            "COCO, or a folder of KITTI), or a detector to run on the annotated pictures."
        ),
    ],
    data: Annotated[
        list[str],
        typer.Argument(
            help="A table with the true classes; or files or folders of annotations, or "
            "synthetic:50:7 for 50 synthetic scenes with the random seed 7."
        ),
    ],
    target: options.KnownTarget = None,
    costs: options.OtherCosts = None,
    weight: Annotated[
        str | None, options.of_tables(help="Column with the weights of the rows.")
    ] = None,
    protocol: Annotated[
        Literal["voc", "faces", "kitti", "fddb", "coco"] | None,
        options.of_detection(
            help="voc (the default): average precision. faces: the variant of the paper for AFW "
            "and PASCAL faces. kitti: levels easy, moderate and hard, and headings. fddb: ROC "
            "curves. coco: average precision at IoU 0.5 to 0.95, and by size."
        ),
    ] = None,
    format: Annotated[
        str | None,
        options.of_detection(help="Format of the annotations; guessed by default."),
    ] = None,
    images: Annotated[
        Path | None,
        options.of_detection(
            help="Folder of the pictures, if they are not beside the annotations."
        ),
    ] = None,
    category: Annotated[
        str | None,
        options.of_detection(
            help="Category of the objects to find; by default that of the detections. For voc, "
            "kitti and coco, and for folders of KITTI with several types of objects."
        ),
    ] = None,
    kitti_cars: Annotated[
        bool,
        options.of_detection(
            "--kitti-cars",
            help="Require only the cars that `train-detector --kitti-cars` learns, those of "
            "KITTI's moderate level; ignore other cars, vans, trucks and trams. For voc and coco.",
        ),
    ] = False,
    clip: Annotated[
        bool,
        options.of_detection(
            "--clip",
            help="Clip detections at the borders of pictures, as the annotations of KITTI are.",
        ),
    ] = False,
    overlap: Annotated[
        float | None,
        options.of_detection(
            min=0.0,
            max=1.0,
            metavar="IOU",
            help="Minimum IoU of a detection and its object; 0.5 by default, 0.7 for kitti. Not "
            "for faces and coco.",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        options.of_detection(
            min=1,
            max=100,
            metavar="N",
            help="Number of rounds of matching, with a refinement of all boxes between them; by "
            "default 1 for voc, 5 for faces as published.",
        ),
    ] = None,
    rule: Annotated[
        Literal["official", "reference"] | None,
        options.of_detection(
            help="Version of the evaluation program of KITTI: official (since 2017), or "
            "reference, the older one of the paper. For kitti."
        ),
    ] = None,
    yaw_limits: Annotated[
        str | None,
        options.of_detection(
            help="Limits between the views of faces to compare, as -60,-20,20,60; by default an "
            "object has the view of the detector whose heading is nearest. For voc and faces."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        options.of_detection(help="File for a plot of the curves, as curves.png."),
    ] = None,
    jobs: options.Jobs = -1,
    max_memory: options.MaxMemory = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a model: what its decisions cost, or how good its detections are.

    For tables: average and total cost, savings compared with the best constant answer, the error
    rate, and how often and at what cost each class was taken for another.

    For detections: the rules of VOC, KITTI, FDDB or COCO, with a 95 % range for each average
    precision from resampled pictures. Pictures are matched by name: as much of the path as both
    sides have must agree, without the suffix of a picture or of its labels. In an annotated picture
    without detections nothing was found; detections in pictures without annotations are left out.
    Categories are compared without regard to upper and lower case. Objects of other categories are
    not to be found; vans beside cars, sitting persons beside pedestrians and regions marked
    DontCare are ignored.
    """
    options.check_jobs(jobs)
    if is_classifier(model):
        given = options.given(context, options.DETECTION)
        options.refuse(given, f"{str(model)!r} is a model for tables")
        if len(data) > 1:
            raise ValueError("a model for tables is evaluated on one table: name a single file.")
        evaluate_table(model, Path(data[0]), target, costs, weight, as_json)
        return
    given = options.given(context, options.TABLES)
    options.refuse(given, f"{str(model)!r} is not a model for tables")
    rules = protocol or "voc"
    for name in options.given(context, options.DETECTION):
        # A folder of KITTI may have results of several categories.
        chooses_results = name == "--category" and model.is_dir()
        if rules not in _PROTOCOLS.get(name, (rules,)) and not chooses_results:
            raise ValueError(f"{name} is of no use for {rules}: leave it out.")
    if kitti_cars and category is not None:
        raise ValueError("--kitti-cars has a category of its own: leave out --category.")
    if plot is not None:
        _check_plot(plot)
    from badacost.detection import evaluation
    from badacost.detection.annotations import KITTI_CARS

    chosen = {"overlap": overlap, "rounds": rounds, "rule": rule}
    with warnings_as_notes():
        truth = evaluation.images_by_name(annotated_images(data, format, images))
        evaluated = evaluation.evaluate_detections(
            _found(model, truth, category, jobs),
            truth,
            rules,
            category=category if rules in _PROTOCOLS["--category"] else None,
            selection=KITTI_CARS if kitti_cars else None,
            views=None if yaw_limits is None else yaw_views(yaw_limits),
            clip=clip,
            **{name: value for name, value in chosen.items() if value is not None},
        )
    if as_json:
        write_json(evaluated.to_dict())
    else:
        show_evaluation(evaluated)
    if plot is not None:
        _draw(evaluated.result, plot)
        if not as_json:
            typer.echo(f"The curves are in {plot}.")


def _found(
    source: Path, truth: Mapping[str, AnnotatedImage], category: str | None, jobs: int
) -> dict[str, Detections]:
    """Detections of results, or of a detector in the annotated pictures."""
    from badacost import detection
    from badacost.detection.interchange import RESULT_SUFFIXES, read_results

    if not source.exists():
        raise FileNotFoundError(f"there is no {str(source)!r}: name results or a detector.")
    if source.is_dir() or source.suffix.lower() in RESULT_SUFFIXES:
        return read_results(source, category)
    detector = detection.load_detector(source)
    pictures = (image.load() for image in truth.values())
    answers = detector.detect_many(pictures, n_jobs=jobs)
    return dict(zip(truth, tracked(answers, len(truth), "Detecting"), strict=True))


def _check_plot(path: Path) -> None:
    """Refuse a plot that cannot be written, before the work."""
    from badacost.plotting.base import import_pyplot

    check_output(path, option="--plot")
    known = import_pyplot().matplotlib.backend_bases.FigureCanvasBase.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in known:
        raise ValueError(f"--plot {str(path)!r} must end in one of .{', .'.join(sorted(known))}.")


def _draw(result: Any, path: Path) -> None:
    """Draw the curves."""
    from badacost.plotting.base import import_pyplot

    plt = import_pyplot()
    figure = result.plot().figure_
    # By name, older versions look for another file.
    with replaced_file(make_folder(path)) as temporary, temporary.open("wb") as file:
        figure.savefig(file, dpi=150, format=path.suffix[1:] or "png")
    plt.close(figure)
