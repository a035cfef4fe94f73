"""``badacost evaluate``: what decisions cost, or how good detections are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from badacost.cli.errors import plain_errors
from badacost.cli.evaluate_detections import Protocol, Rule, evaluate_detections
from badacost.cli.evaluate_table import evaluate_table
from badacost.cli.jobs import check_jobs

_OF_TABLES = "Options of tables"
_OF_DETECTIONS = "Options of detections"


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model of `badacost fit`; or what `badacost detect` wrote (jsonl, csv, json of "
            "COCO, or a folder of KITTI), or a detector to run on annotated pictures."
        ),
    ],
    data: Annotated[
        list[str],
        typer.Argument(
            help="A table with the classes; or files or folders of annotations, or synthetic:50:7 "
            "for scenes."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="Column of the classes; that of the fit by default.", rich_help_panel=_OF_TABLES
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of other costs than those of the fit.", rich_help_panel=_OF_TABLES
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of the weights of rows.", rich_help_panel=_OF_TABLES)
    ] = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            help="voc (the default): average precision. faces: the same as the paper has it for "
            "AFW and PASCAL faces. kitti: easy, moderate, hard, and headings. fddb: ROC curves. "
            "coco: average precision at overlaps from 0.5 to 0.95, and by size.",
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
            help="Folder of the pictures, if not beside the annotations.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(
            help="Category to be found; by default that of the detections. For voc, kitti and "
            "coco, and for folders of KITTI with several types of objects.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    kitti_cars: Annotated[
        bool,
        typer.Option(
            "--kitti-cars",
            help="Ask for the cars that `train-detector --kitti-cars` learns: those of KITTI's "
            "moderate level; others, vans, trucks and trams need not be found. For voc and coco.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = False,
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Cut detections at the borders of pictures, where annotations of KITTI end.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = False,
    overlap: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Minimum overlap; 0.5, for kitti 0.7. Not for faces and coco.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            metavar="N",
            help="Rounds of matching, with a refinement of all boxes between them: 1 for voc, 5 "
            "for faces as published.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="Program of KITTI: the official one since 2017, or the older one that the paper "
            "was made with. For kitti.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    yaw_limits: Annotated[
        str | None,
        typer.Option(
            help="Compare these views of faces, as -60,-20,20,60; by default objects have the view "
            "of the detections whose heading is nearest. For voc and faces.",
            rich_help_panel=_OF_DETECTIONS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture of the curves, as curves.png.", rich_help_panel=_OF_DETECTIONS),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Threads of a detector; -1 is one for each core.")
    ] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Write all figures as JSON.")] = False,
) -> None:
    """Tell what the decisions of a classifier cost, or how good detections are.

    For a classifier: average and total cost, what is saved against the best constant answer, the
    error rate, and how often and at what cost each class was taken for another.

    For detections, the rules of VOC, KITTI, FDDB or COCO, with a range for each average precision
    from draws of the pictures. Pictures are told by their names: as much of the path as both sides
    have must agree, without the suffix of a picture or of its labels. Annotated pictures without
    detections are pictures in which nothing was found; detections in pictures without annotations
    are left out. Categories are the same if only capitals differ; objects of other categories are
    not to be found, but vans beside cars, sitting persons beside pedestrians and regions marked
    DontCare do not count.
    """
    with plain_errors("Stopped."):
        check_jobs(jobs)
        of_tables = {"--target": target, "--costs": costs, "--weight": weight}
        of_detections = {
            "--protocol": protocol,
            "--format": format,
            "--images": images,
            "--category": category,
            "--kitti-cars": kitti_cars or None,
            "--clip": clip or None,
            "--overlap": overlap,
            "--rounds": rounds,
            "--rule": rule,
            "--yaw-limits": yaw_limits,
            "--plot": plot,
        }
        if _is_for_tables(model):
            _refuse(of_detections, f"{str(model)!r} is a classifier of tables")
            if len(data) > 1:
                raise ValueError("a classifier is tried on one table: name a single file.")
            evaluate_table(
                model, Path(data[0]), target=target, costs=costs, weight=weight, as_json=as_json
            )
            return
        _refuse(of_tables, f"{str(model)!r} is no classifier of tables")
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
    """Tell whether a file is a saved model, and not that of a detector."""
    from badacost.persistence import saved_kind

    return path.is_file() and saved_kind(path) not in (None, "Detector")


def _refuse(options: dict[str, Any], reason: str) -> None:
    """Refuse options that belong to the other kind of model."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{given[0]} is of no use here, since {reason}: leave it out.")
