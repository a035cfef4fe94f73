"""How good detections are, by the rules of a benchmark."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from badacost.cli.annotated import annotated_images, with_views
from badacost.cli.json_output import note, write_json
from badacost.progress import ProgressBar

if TYPE_CHECKING:
    from badacost.detection.annotations import AnnotatedImage
    from badacost.detection.boxes import Detections
    from badacost.detection.evaluation import FddbResult, KittiResult, VocResult

_MAX_BYTES = 2**30
_MAX_VIEWS = 360
_KITTI_ALPHA = 3  # place of the heading in a line of KITTI
_SAME_ANGLE = 0.01  # degrees, as files round
_UNNAMED = "object"  # the category of detections that do not name one
_LABEL_SUFFIXES = (".txt", ".xml")
_FALSE_POSITIVES = (100, 500, 1000, 2000)


class Protocol(StrEnum):
    """Rules of evaluation."""

    voc = "voc"
    faces = "faces"
    kitti = "kitti"
    fddb = "fddb"


def evaluate_detections(
    detections: Path,
    annotations: Sequence[str],
    protocol: Protocol,
    *,
    format: str | None,
    images: Path | None,
    category: str | None,
    overlap: float | None,
    rounds: int | None,
    yaw_limits: str | None,
    jobs: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Tell how good detections are; `badacost.cli.evaluate` documents the options."""
    _check_options(protocol, overlap, rounds)
    all_count = protocol in (Protocol.faces, Protocol.fddb)
    if category is not None and all_count and not detections.is_dir():
        raise ValueError(
            f"--category is of no use for {protocol.value}, where all objects count: leave it out."
        )
    truth = _by_name(annotated_images(annotations, format, images))
    found = _found(detections, truth, category, jobs)
    truth = _with_same_views(truth, found, yaw_limits)
    result = _evaluated(protocol, found, truth, category, overlap, rounds)
    if plot is not None:
        _draw(result, plot)
    if as_json:
        write_json({"protocol": protocol.value} | result.to_dict())
    else:
        _show(result, len(truth), sum(map(len, found.values())))
        if plot is not None:
            typer.echo(f"The curves are in {plot}.")


def _check_options(protocol: Protocol, overlap: float | None, rounds: int | None) -> None:
    """Refuse options that the protocol does not have."""
    if overlap is not None and protocol is Protocol.faces:
        raise ValueError("--overlap is 0.5 by the protocol of faces: leave it out, or use voc.")
    if rounds is not None and protocol not in (Protocol.voc, Protocol.faces):
        raise ValueError("--rounds are those of voc and faces: leave them out.")


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
    """Detections of the annotated pictures, from results or from a detector."""
    if not source.exists():
        raise FileNotFoundError(f"there is no {str(source)!r}: name results or a detector.")
    suffix = source.suffix.lower()
    if source.is_dir():
        results = _kitti_results(source, category)
    elif suffix in (".jsonl", ".ndjson", ".csv", ".json"):
        text = _text(source)
        try:
            results = _results_in(text, suffix, category or _UNNAMED)
        except ValueError as error:
            raise ValueError(f"{str(source)!r}: {error}") from error
    else:
        return _detected(source, truth, jobs)
    return _matched(results, truth)


def _results_in(text: str, suffix: str, category: str) -> dict[str, Detections]:
    """Results in the text of a file of this suffix."""
    from badacost.detection.interchange import from_csv, from_json_lines

    if suffix == ".json":
        return _coco_results(text, category)
    return from_csv(text) if suffix == ".csv" else from_json_lines(text)


def _text(path: Path) -> str:
    """The contents of a file of text."""
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{str(path)!r} is larger than {_MAX_BYTES} bytes: divide it.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not a file of text: name results.") from error


def _kitti_results(folder: Path, category: str | None) -> dict[str, Detections]:
    """Results of KITTI; each heading that occurs is a view."""
    from badacost.detection.interchange import from_kitti

    texts = {str(path.relative_to(folder)): _text(path) for path in sorted(folder.rglob("*.txt"))}
    if not texts:
        raise ValueError(f"the folder {str(folder)!r} has no .txt files of results: name another.")
    category = _kitti_type(texts, category)
    headings = _headings(texts, category)
    views = [f"{heading:g}°" for heading in headings] if headings else [category]
    found = {}
    for name, text in texts.items():
        try:
            found[name] = from_kitti(text, views, headings or None, category)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found


def _kitti_type(texts: Mapping[str, str], category: str | None) -> str:
    """The type of the results to read: the only one, or the category as the files spell it."""
    types = sorted(
        {line.split()[0] for text in texts.values() for line in text.splitlines() if line.strip()}
    )
    if category is not None:
        wanted = [name for name in types if name.lower() == category.lower()]
        if types and not wanted:
            note(f"no detection is of {category!r:.80}; they are of {', '.join(types):.200}.")
    else:
        wanted = types
    if len(wanted) > 1 and len({name.lower() for name in wanted}) == 1:
        raise ValueError(f"the type of the results is spelled {', '.join(wanted)}: choose one.")
    if len(wanted) > 1:
        raise ValueError(f"the results are of {', '.join(wanted):.200}: add --category.")
    return wanted[0] if wanted else category or _UNNAMED


def _headings(texts: Mapping[str, str], category: str) -> list[float]:
    """Distinct headings in degrees, in whole ones if they are many; none if one is not known."""
    headings = set()
    for text in texts.values():
        for line in text.splitlines():
            fields = line.split()
            if not fields or fields[0] != category:
                continue
            try:
                alpha = float(fields[_KITTI_ALPHA])
            except (IndexError, ValueError):
                continue  # the reader will tell what is wrong with the line, if anything
            if not abs(alpha) <= math.pi + 0.01:
                return []
            headings.add(round(math.degrees(alpha), 3))
    return sorted(headings if len(headings) <= _MAX_VIEWS else {float(round(h)) for h in headings})


def _coco_results(text: str, category: str) -> dict[str, Detections]:
    """Results of COCO; views are those that the records name."""
    from badacost.detection.interchange import from_coco

    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the results are not JSON: {error}.") from error
    views: dict[tuple[Any, Any], str] = {}
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict) and type(record.get("category_id")) is int:
            number, view = record["category_id"], record.get("view")
            if isinstance(view, str | None):
                views.setdefault((number, view), view or f"category {number}")
    ordered = sorted(views, key=lambda key: key[0])
    found = from_coco(
        records, [views[key] for key in ordered], [key[0] for key in ordered], category=category
    )
    return {str(name): detections for name, detections in found.items()}


def _matched(
    results: Mapping[str, Detections], truth: Mapping[str, AnnotatedImage]
) -> dict[str, Detections]:
    """Results under the names of the annotated pictures, which they need not give in full."""
    candidates: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for name, image in truth.items():
        for known in {name, image.name}:
            parts = _parts(known)
            candidates.setdefault(parts[-1], []).append((name, parts))
    matched: dict[str, Detections] = {}
    n_unknown = 0
    for given, found in results.items():
        parts = _parts(given)
        lengths: dict[str, int] = {}
        for name, other in candidates.get(parts[-1], []):
            lengths[name] = max(lengths.get(name, 0), _common_tail(parts, other))
        best = [name for name, length in lengths.items() if length == max(lengths.values())]
        if not best:
            n_unknown += 1
            continue
        if len(best) > 1 or best[0] in matched:
            raise ValueError(
                f"the name {given!r:.200} fits several pictures: detect with longer paths."
            )
        matched[best[0]] = found
    if n_unknown and not matched:
        raise ValueError("no picture of the detections is annotated: compare their names.")
    if n_unknown:
        note(f"{n_unknown} pictures without annotations are left out.")
    return matched


def _parts(name: str) -> tuple[str, ...]:
    """A path without the suffix of a picture or its labels, part by part."""
    from badacost.detection.images import is_image

    path = Path(name)
    if is_image(path) or path.suffix.lower() in _LABEL_SUFFIXES:
        path = path.with_suffix("")
    return path.parts or (name,)


def _common_tail(first: Sequence[str], second: Sequence[str]) -> int:
    """How many parts at the end are the same."""
    length = 0
    for a, b in zip(reversed(first), reversed(second), strict=False):
        if a != b:
            break
        length += 1
    return length


def _detected(model: Path, truth: Mapping[str, AnnotatedImage], jobs: int) -> dict[str, Detections]:
    """What a detector finds in the annotated pictures."""
    from badacost import detection

    detector = detection.load_detector(model)
    bar = ProgressBar(len(truth), "Detecting")
    found = {}
    pictures = (image.load() for image in truth.values())
    answers = detector.detect_many(pictures, n_jobs=jobs)
    for number, (name, answer) in enumerate(zip(truth, answers, strict=True), start=1):
        found[name] = answer
        bar.update(number)
    bar.close()
    return found


def _with_same_views(
    truth: Mapping[str, AnnotatedImage], found: Mapping[str, Detections], yaw_limits: str | None
) -> dict[str, AnnotatedImage]:
    """Label objects by the views of the detections, or not at all if these are of other kinds."""
    from badacost.detection.annotations import Views
    from badacost.detection.annotations.views import nearest_view, turn_between

    if yaw_limits is not None:
        labelled = with_views(list(truth.values()), yaw_limits=yaw_limits).images
        return dict(zip(truth, labelled, strict=True))
    kinds = {kind.angles for kind in found.values()}
    angles = np.array((kinds.pop() or ()) if len(kinds) == 1 else ())
    if 1 < len(angles) <= _MAX_VIEWS:
        around = Views.around(len(angles))
        nearest = nearest_view(around.angles, angles)
        if (np.abs(turn_between(around.angles, angles[nearest])) < _SAME_ANGLE).all():
            order = np.append(nearest, -1)  # an unknown view stays so
            return {
                name: replace(image, labels=order[around.label_of(image.angles)])
                for name, image in truth.items()
            }
    return {name: replace(image, labels=np.full(len(image), -1)) for name, image in truth.items()}


def _evaluated(
    protocol: Protocol,
    found: Mapping[str, Detections],
    truth: Mapping[str, AnnotatedImage],
    category: str | None,
    overlap: float | None,
    rounds: int | None,
) -> VocResult | KittiResult | FddbResult:
    """Apply the rules."""
    from badacost.detection import evaluation

    options: dict[str, Any] = {} if overlap is None else {"overlap": overlap}
    if rounds is not None:
        options["rounds"] = rounds
    if protocol is Protocol.fddb:
        return evaluation.evaluate_fddb(found, truth, **options)
    if protocol is Protocol.faces:
        return evaluation.evaluate_faces(found, truth, **options)
    category = _category(found, truth, category)
    if category is not None:
        truth = _spelled(truth, category)
    if protocol is Protocol.voc:
        return evaluation.evaluate_voc(found, truth, category=category, **options)
    if category is None:
        raise ValueError(
            "no annotated object is of the category of the detections: add --category."
        )
    named = {
        name: replace(kind, category=category) if kind.category == _UNNAMED else kind
        for name, kind in found.items()
    }
    return evaluation.evaluate_kitti(named, truth, category=category, **options)


def _category(
    found: Mapping[str, Detections], truth: Mapping[str, AnnotatedImage], category: str | None
) -> str | None:
    """What is to be found, as the annotations spell it; None for all objects."""
    annotated = {name.lower(): name for image in truth.values() for name in image.categories}
    kinds = sorted({kind.category for kind in found.values() if kind.category != _UNNAMED})
    if category is None:
        category = next((kind for kind in kinds if kind.lower() in annotated), None)
        if category is None and kinds:
            note(f"no annotated object is of {', '.join(kinds):.200}, as detections are.")
    elif kinds and category.lower() not in map(str.lower, kinds):
        note(f"the detections are of {', '.join(kinds):.200}, not of {category!r:.80}.")
    return category and annotated.get(category.lower(), category)


def _spelled(truth: Mapping[str, AnnotatedImage], category: str) -> dict[str, AnnotatedImage]:
    """Annotations that spell a category in this way only."""

    def spelled(name: str) -> str:
        return category if name.lower() == category.lower() else name

    return {
        name: replace(image, categories=tuple(map(spelled, image.categories)))
        for name, image in truth.items()
    }


def _draw(result: VocResult | KittiResult | FddbResult, path: Path) -> None:
    """Draw the curves."""
    from badacost.plotting.canvas import import_pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    plt = import_pyplot()
    figure = result.plot().figure_
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _show(result: VocResult | KittiResult | FddbResult, n_pictures: int, n_found: int) -> None:
    """The figures as a table."""
    from rich.console import Console
    from rich.table import Table

    from badacost.detection.evaluation import FddbResult, KittiResult

    title = f"{n_found} detections in {n_pictures} pictures"
    if isinstance(result, KittiResult):
        table = Table(title=f"{title}, {result.category}, overlap {result.overlap:g}")
        for column in ("level", "objects", "AP 40", "AP 11", "AOS 40", "AOS 11"):
            table.add_column(column, justify="left" if column == "level" else "right")
        for name, curve in result.curves.items():
            figures = (curve.ap_40, curve.ap_11, curve.aos_40, curve.aos_11)
            table.add_row(name, str(curve.n_objects), *map(_figure, figures))
    elif isinstance(result, FddbResult):
        table = Table(title=f"{title}, {result.n_faces} faces: true-positive rate")
        table.add_column("false positives below", justify="right")
        for column in ("discrete", "continuous"):
            table.add_column(column, justify="right")
        for limit in _FALSE_POSITIVES:
            rates = (curve.rate_below(limit) for curve in (result.discrete, result.continuous))
            table.add_row(str(limit), *map(_figure, rates))
    else:
        table = Table(title=title)
        for column in ("objects", "found", "false", "AP", "AP 11", "views right"):
            table.add_column(column, justify="right")
        counts = (result.n_objects, result.n_true, result.n_false)
        shares = (result.ap, result.ap_11, result.view_accuracy)
        table.add_row(*map(str, counts), *map(_figure, shares))
    Console().print(table)


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
