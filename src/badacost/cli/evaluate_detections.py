"""How good detections are, by the rules of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from badacost.cli.annotated import annotated_images, yaw_views
from badacost.cli.json_output import note, warnings_as_notes, write_json
from badacost.progress import ProgressBar

if TYPE_CHECKING:
    from rich.table import Table

    from badacost.detection.annotations import AnnotatedImage
    from badacost.detection.boxes import Detections
    from badacost.detection.evaluation import (
        Alignment,
        CocoResult,
        FddbResult,
        KittiResult,
        VocResult,
    )

    Result = VocResult | KittiResult | FddbResult | CocoResult

_FALSE_POSITIVES = (100, 500, 1000, 2000)


class Protocol(StrEnum):
    """Rules of evaluation."""

    voc = "voc"
    faces = "faces"
    kitti = "kitti"
    fddb = "fddb"
    coco = "coco"


class Rule(StrEnum):
    """Programs of KITTI."""

    official = "official"
    reference = "reference"


_PROTOCOLS = {  # which have an option that not all have
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
    """Tell how good detections are; `badacost.cli.evaluate` documents the options."""
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
    from badacost.detection.annotations import KITTI_CARS, Selection
    from badacost.detection.evaluation import align

    everything = Selection() if protocol in (Protocol.faces, Protocol.fddb) else None
    with warnings_as_notes():
        truth = _by_name(annotated_images(annotations, format, images))
        aligned = align(
            _found(detections, truth, category, jobs),
            truth,
            category=None if everything else category,
            selection=KITTI_CARS if kitti_cars else everything,
            views=None if yaw_limits is None else yaw_views(yaw_limits),
            clip=clip,
        )
        if protocol in (Protocol.voc, Protocol.coco) and not kitti_cars:
            _tell_of_kitti(truth.values())
        chosen = {"overlap": overlap, "rounds": rounds, "rule": rule and rule.value}
        options = {name: value for name, value in chosen.items() if value is not None}
        result = _evaluated(protocol, aligned, category, options)
    if plot is not None:
        _draw(result, plot)
    if as_json:
        write_json({"protocol": protocol.value, "views": _views(aligned)} | result.to_dict())
        return
    _show(result, aligned)
    if plot is not None:
        typer.echo(f"The curves are in {plot}.")


def _by_name(images: Sequence[AnnotatedImage]) -> dict[str, AnnotatedImage]:
    """Annotated pictures by their paths, or by their names if they have none."""
    named: dict[str, AnnotatedImage] = {}
    for image in images:
        name = str(image.image) if isinstance(image.image, Path) else image.name
        if name in named:
            raise ValueError(f"the picture {name!r:.200} is annotated twice: leave one out.")
        named[name] = image.measured()
    if not named:
        raise ValueError("there are no annotated pictures: name other annotations.")
    return named


def _found(
    source: Path, truth: Mapping[str, AnnotatedImage], category: str | None, jobs: int
) -> dict[str, Detections]:
    """Detections of results, or of a detector in the annotated pictures."""
    from badacost import detection
    from badacost.detection.evaluation.results import SUFFIXES, read_results

    if not source.exists():
        raise FileNotFoundError(f"there is no {str(source)!r}: name results or a detector.")
    if source.is_dir() or source.suffix.lower() in SUFFIXES:
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


def _tell_of_kitti(images: Iterable[AnnotatedImage]) -> None:
    """Say that hidden objects count, where annotations are KITTI's."""
    if any(kind.casefold() == "dontcare" for image in images for kind in image.categories):
        note(
            "the annotations are those of KITTI, and small and hidden objects are to be found, "
            "too; --kitti-cars or --protocol kitti does not ask for them."
        )


def _evaluated(
    protocol: Protocol, aligned: Alignment, category: str | None, options: dict[str, Any]
) -> Result:
    """Apply the rules."""
    from badacost.detection import evaluation

    if protocol is not Protocol.kitti:
        evaluate = getattr(evaluation, f"evaluate_{protocol.value}")
        result: Result = evaluate(*aligned, **options)
        return result
    if category is None:
        annotated = {kind for image in aligned.annotations.values() for kind in image.categories}
        known = (found.category for found in aligned.detections.values())
        category = next((kind for kind in known if kind in annotated), None)
    if category is None:
        raise ValueError(
            "no annotated object is of the category of the detections: add --category."
        )
    return evaluation.evaluate_kitti(*aligned, category=category, **options)


def _draw(result: Result, path: Path) -> None:
    """Draw the curves."""
    from badacost.plotting.canvas import import_pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    plt = import_pyplot()
    figure = result.plot().figure_
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _show(result: Result, aligned: Alignment) -> None:
    """Print the figures as tables."""
    from rich.console import Console

    from badacost.detection.evaluation import CocoResult, FddbResult, KittiResult

    n_found = sum(map(len, aligned.detections.values()))
    title = f"{n_found} detections in {len(aligned.annotations)} pictures"
    if isinstance(result, KittiResult):
        tables = [_kitti_table(result, title)]
    elif isinstance(result, FddbResult):
        tables = [_fddb_table(result, title)]
    elif isinstance(result, CocoResult):
        tables = [_coco_table(result, title)]
    else:
        tables = _voc_tables(result, title, aligned)
    for table in tables:
        Console().print(table)
    typer.echo("Ranges: 95 % of 500 draws of the pictures with replacement.")


def _voc_tables(result: VocResult, title: str, aligned: Alignment) -> list[Table]:
    counts = (result.n_objects, result.n_true, result.n_false)
    figures = [_figure(result.ap), _range(result.ap_range), _figure(result.ap_11)]
    head = ["objects", "found", "false", "AP", "range", "AP 11", "views right"]
    row = [*map(str, counts), *figures, _figure(result.view_accuracy)]
    tables = [_table(title, head, [row], n_text=0)]
    names = _views(aligned)
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
    head = ["false positives below", "discrete", "range", "continuous", "range"]
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


def _views(aligned: Alignment) -> list[str]:
    """Names of the views that are compared."""
    return list(next((found.names for found in aligned.detections.values()), ()))


def _range(limits: tuple[float, float]) -> str:
    return "-" if np.isnan(limits).any() else f"{limits[0]:.3f} to {limits[1]:.3f}"


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
