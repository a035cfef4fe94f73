"""``badacost evaluate`` for detections: their quality by the rules of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from badacost.cli.annotated import annotated_images, yaw_views
from badacost.cli.json_output import warnings_as_notes, write_json
from badacost.progress import ProgressBar

if TYPE_CHECKING:
    from rich.table import Table

    from badacost.detection.annotations import AnnotatedImage
    from badacost.detection.boxes import Detections
    from badacost.detection.evaluation import (
        CocoResult,
        Evaluation,
        FddbResult,
        KittiResult,
        VocResult,
    )

_FALSE_POSITIVES = (100, 500, 1000, 2000)


class Protocol(StrEnum):
    """Rules of evaluation."""

    voc = "voc"
    faces = "faces"
    kitti = "kitti"
    fddb = "fddb"
    coco = "coco"


class Rule(StrEnum):
    """Versions of the evaluation program of KITTI."""

    official = "official"
    reference = "reference"


_PROTOCOLS = {  # to which an option belongs
    "--category": (Protocol.voc, Protocol.kitti, Protocol.coco),
    "--kitti-cars": (Protocol.voc, Protocol.coco),
    "--overlap": (Protocol.voc, Protocol.kitti, Protocol.fddb),
    "--rounds": (Protocol.voc, Protocol.faces),
    "--rule": (Protocol.kitti,),
    "--yaw-limits": (Protocol.voc, Protocol.faces),
}


def evaluate_detections(
    detections: Path,
    annotations: Sequence[str],
    protocol: Protocol,
    *,
    format: str | None,
    images: Path | None,
    category: str | None,
    kitti_cars: bool,
    clip: bool,
    overlap: float | None,
    rounds: int | None,
    rule: Rule | None,
    yaw_limits: str | None,
    jobs: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Show how good detections are; `badacost.cli.evaluate` documents the options."""
    given = {
        # A folder of KITTI may have results of several categories.
        "--category": category is not None and not detections.is_dir(),
        "--kitti-cars": kitti_cars,
        "--overlap": overlap is not None,
        "--rounds": rounds is not None,
        "--rule": rule is not None,
        "--yaw-limits": yaw_limits is not None,
    }
    for option, protocols in _PROTOCOLS.items():
        if given[option] and protocol not in protocols:
            raise ValueError(f"{option} is of no use for {protocol.value}: leave it out.")
    if kitti_cars and category is not None:
        raise ValueError("--kitti-cars has a category of its own: leave out --category.")
    from badacost.detection import evaluation
    from badacost.detection.annotations import KITTI_CARS

    chosen = {"overlap": overlap, "rounds": rounds, "rule": rule and rule.value}
    with warnings_as_notes():
        truth = evaluation.images_by_name(annotated_images(annotations, format, images))
        evaluated = evaluation.evaluate_detections(
            _found(detections, truth, category, jobs),
            truth,
            protocol.value,
            category=category if protocol in _PROTOCOLS["--category"] else None,
            selection=KITTI_CARS if kitti_cars else None,
            views=None if yaw_limits is None else yaw_views(yaw_limits),
            clip=clip,
            **{name: value for name, value in chosen.items() if value is not None},
        )
    if plot is not None:
        _draw(evaluated.result, plot)
    if as_json:
        write_json(evaluated.to_dict())
        return
    _show(evaluated)
    if plot is not None:
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
    bar = ProgressBar(len(truth), "Detecting")
    found = {}
    pictures = (image.load() for image in truth.values())
    answers = detector.detect_many(pictures, n_jobs=jobs)
    for number, (name, answer) in enumerate(zip(truth, answers, strict=True), start=1):
        found[name] = answer
        bar.update(number)
    bar.close()
    return found


def _draw(result: Any, path: Path) -> None:
    """Draw the curves."""
    from badacost.plotting.canvas import import_pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    plt = import_pyplot()
    figure = result.plot().figure_
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _show(evaluated: Evaluation) -> None:
    """Print the figures as tables."""
    from rich.console import Console

    from badacost.detection.evaluation import CocoResult, FddbResult, KittiResult

    result, (found, truth) = evaluated.result, evaluated.alignment
    title = f"{sum(map(len, found.values()))} detections in {len(truth)} pictures"
    if isinstance(result, KittiResult):
        tables = [_kitti_table(result, title)]
    elif isinstance(result, FddbResult):
        tables = [_fddb_table(result, title)]
    elif isinstance(result, CocoResult):
        tables = [_coco_table(result, title)]
    else:
        tables = _voc_tables(result, title, evaluated.views)
    for table in tables:
        Console().print(table)
    typer.echo("Ranges: 95 % of 500 bootstrap samples of the pictures.")


def _voc_tables(result: VocResult, title: str, names: Sequence[str]) -> list[Table]:
    counts = (result.n_objects, result.n_true, result.n_false)
    figures = [_figure(result.ap), _range(result.ap_range), _figure(result.ap_11)]
    head = ["objects", "found", "false", "AP", "range", "AP 11", "view accuracy"]
    row = [*map(str, counts), *figures, _figure(result.view_accuracy)]
    tables = [_table(title, head, [row], n_text=0)]
    if len(names) > 1 and result.objects_per_view.any():
        found = result.view_confusion.sum(axis=1)
        rows = [
            [name, str(n), str(found[view]), _figure(result.view_recall[view])]
            for view, (name, n) in enumerate(zip(names, result.objects_per_view, strict=True))
        ]
        tables.append(_table("Recall by view", ["view", "objects", "found", "recall"], rows))
    return tables


def _kitti_table(result: KittiResult, title: str) -> Table:
    rows = [
        [name, str(curve.n_objects), _figure(curve.ap_40), _range(curve.ap_range)]
        + [_figure(value) for value in (curve.ap_11, curve.aos_40, curve.aos_11)]
        for name, curve in result.curves.items()
    ]
    title = f"{title}, {result.category}, overlap {result.overlap:g}"
    return _table(title, ["level", "objects", "AP 40", "range", "AP 11", "AOS 40", "AOS 11"], rows)


def _fddb_table(result: FddbResult, title: str) -> Table:
    rows = []
    for limit in _FALSE_POSITIVES:
        ranges = result.rate_ranges(limit)
        rows.append([str(limit)])
        for name, curve in (("discrete", result.discrete), ("continuous", result.continuous)):
            rows[-1] += [_figure(curve.rate_below(limit)), _range(ranges[name])]
    ap = f"AP {_figure(result.ap)}, {_range(result.ap_range)}"
    head = ["max. false positives", "discrete", "range", "continuous", "range"]
    return _table(f"{title}, {result.n_faces} faces ({ap}): true-positive rate", head, rows, 0)


def _coco_table(result: CocoResult, title: str) -> Table:
    names = {key: f"{key[:2].upper()}{key[2:].replace('_', ' ')}" for key in result.summary}
    rows = [
        [name, _figure(result.summary[key]), _range(result.ranges.get(key, (math.nan, math.nan)))]
        for key, name in names.items()
    ]
    return _table(f"{title}, {result.n_objects} objects", ["figure", "value", "range"], rows)


def _table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[str]], n_text: int = 1
) -> Table:
    """Make a table whose first columns are text."""
    from rich.table import Table

    table = Table(title=title)
    for number, column in enumerate(head):
        table.add_column(column, justify="left" if number < n_text else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _range(limits: tuple[float, float]) -> str:
    return "-" if np.isnan(limits).any() else f"{limits[0]:.3f} to {limits[1]:.3f}"


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
