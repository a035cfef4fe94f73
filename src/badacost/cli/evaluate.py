"""``badacost evaluate``: the costs of decisions, or the quality of detections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from badacost.cli.errors import plain_errors, refuse_options
from badacost.cli.evaluate_detections import Protocol, Rule, evaluate_detections
from badacost.cli.evaluate_table import evaluate_table
from badacost.cli.jobs import check_jobs

_OF_TABLES = "Options for tables"
_OF_DETECTIONS = "Options for detections"


def evaluate(
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
    target: Annotated[
        str | None,
        typer.Option(
            help="Column of the classes; by default that of the fit.", rich_help_panel=_OF_TABLES
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with other costs than those of the fit.", rich_help_panel=_OF_TABLES
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Column with the weights of the rows.", rich_help_panel=_OF_TABLES),
    ] = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            help="voc (the default): average precision. faces: the variant of the paper for AFW "
            "and PASCAL faces. kitti: levels easy, moderate and hard, and headings. fddb: ROC "
            "curves. coco: average precision at IoU 0.5 to 0.95, and by size.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the annotations; guessed by default.", rich_help_panel=_OF_DETECTIONS
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the pictures, if they are not beside the annotations.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(
            help="Category of the objects to find; by default that of the detections. For voc, "
            "kitti and coco, and for folders of KITTI with several types of objects.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    kitti_cars: Annotated[
        bool,
        typer.Option(
            "--kitti-cars",
            help="Require only the cars that `train-detector --kitti-cars` learns, those of "
            "KITTI's moderate level; ignore other cars, vans, trucks and trams. For voc and coco.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = False,
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Clip detections at the borders of pictures, as the annotations of KITTI are.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = False,
    overlap: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="IOU",
            help="Minimum IoU of a detection and its object; 0.5 by default, 0.7 for kitti. Not "
            "for faces and coco.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            metavar="N",
            help="Number of rounds of matching, with a refinement of all boxes between them; by "
            "default 1 for voc, 5 for faces as published.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="Version of the evaluation program of KITTI: official (since 2017), or "
            "reference, the older one of the paper. For kitti.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    yaw_limits: Annotated[
        str | None,
        typer.Option(
            help="Limits between the views of faces to compare, as -60,-20,20,60; by default an "
            "object has the view of the detector whose heading is nearest. For voc and faces.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="File for a plot of the curves, as curves.png.", rich_help_panel=_OF_DETECTIONS
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Number of threads of a detector; -1 for one per core.")
    ] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Write all figures as JSON.")] = False,
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
    with plain_errors("Stopped."):
        check_jobs(jobs)
        of_tables = {"--target": target, "--costs": costs, "--weight": weight}
        of_detections = {
            "--protocol": protocol,
            "--format": format,
            "--images": images,
            "--category": category,
            "--kitti-cars": kitti_cars,
            "--clip": clip,
            "--overlap": overlap,
            "--rounds": rounds,
            "--rule": rule,
            "--yaw-limits": yaw_limits,
            "--plot": plot,
        }
        if _is_for_tables(model):
            refuse_options(of_detections, f"{str(model)!r} is a model for tables")
            if len(data) > 1:
                raise ValueError(
                    "a model for tables is evaluated on one table: name a single file."
                )
            evaluate_table(
                model, Path(data[0]), target=target, costs=costs, weight=weight, as_json=as_json
            )
            return
        refuse_options(of_tables, f"{str(model)!r} is not a model for tables")
        evaluate_detections(
            model,
            data,
            protocol or Protocol.voc,
            format=format,
            images=images,
            category=category,
            kitti_cars=kitti_cars,
            clip=clip,
            overlap=overlap,
            rounds=rounds,
            rule=rule,
            yaw_limits=yaw_limits,
            jobs=jobs,
            as_json=as_json,
            plot=plot,
        )


def _is_for_tables(path: Path) -> bool:
    """Return whether a file is a saved model other than a detector."""
    from badacost.persistence import saved_kind

    return path.is_file() and saved_kind(path) not in (None, "Detector")
