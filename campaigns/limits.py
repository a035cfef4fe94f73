"""``python -m campaigns limits``: files that would take gigabytes or minutes, one after the other.

Each case writes a hostile file and hands it to the library, in children: seconds, megabytes of the
whole process, and what the library said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from campaigns import hostile_images, hostile_models, hostile_tables
from campaigns.child import Limits, Outcome, run_in_children

# What a case may take, but for what does something with each of many columns, and where it is
# stopped.
MAX_SECONDS = 15.0
MAX_MEGABYTES = 1200.0
LONGER = {"fit columns": 60.0, "wide row": 60.0}
_STOP = Limits(seconds=150.0, memory=5_000_000_000)
_MAX_MESSAGE = 200


@dataclass(frozen=True)
class HostileCase:
    """A file, and what is done with it.

    Attributes
    ----------
    title : str
        What is hostile about it.
    build : function of a path
        Writes the file; None where there is none.
    call : function of a path
        Hands it to the library.
    suffix : str
        How the name of the file ends.
    """

    title: str
    build: Callable[[Path], Any] | None
    call: Callable[[Path], Any]
    suffix: str = ".badacost"


def run(
    names: Sequence[str] | None, source: Path | None, output: Path | None, before: Path | None
) -> int:
    """Measure cases, print the table and write it to a file; return 1 if one is over the limits.

    Parameters
    ----------
    names : sequence of str or None
        Names of cases, all by default.
    source : Path or None
        The folder ``src`` of another checkout, which is measured instead of this one.
    output : Path or None
        A file that ends in .json, or in .md, for the table.
    before : Path or None
        What another checkout took, a file that ends in .json: the table in .md compares the two.
    """
    unknown = sorted(set(names or ()) - set(CASES))
    if unknown:
        raise ValueError(f"there is no case {unknown[0]!r}: choose among {', '.join(CASES)}.")
    if source is not None:
        return _with_source(names, source, output)
    earlier = [] if before is None else json.loads(before.read_text())
    rows = []
    for name in names or CASES:
        outcome = measured(CASES[name])
        rows.append({"case": name, "title": CASES[name].title, **asdict(outcome)})
        print(f"{name:<26}{shown(outcome)}", flush=True)
    if output is not None:
        is_json = output.suffix == ".json"
        output.write_text(
            json.dumps(rows, indent=1) + "\n" if is_json else as_markdown(rows, earlier)
        )
    return int(any(is_over(row) for row in rows))


def measured(case: HostileCase) -> Outcome:
    """Write the file of a case in one child, and hand it to the library in another."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"hostile{case.suffix}")
        if case.build is not None:
            (built,) = run_in_children([partial(_build, case, path)], Path(folder), _STOP)
            if built.status != "value":
                raise RuntimeError(f"{case.title}: {built.error} {built.message}")
        (outcome,) = run_in_children([partial(_call, case, path)], Path(folder), _STOP)
    return replace(outcome, message=outcome.message.replace(f"{folder}{os.sep}", ""))


def is_over(row: Mapping[str, Any]) -> bool:
    """Return whether a case took too much, or ended in something else than a result or sentence."""
    return (
        row["status"] not in ("value", "error")
        or row["seconds"] > LONGER.get(row["case"], MAX_SECONDS)
        or row["megabytes"] > MAX_MEGABYTES
    )


def shown(outcome: Outcome) -> str:
    """Return an outcome as a line."""
    told = outcome.message if outcome.status == "error" else f"{outcome.error} {outcome.message}"
    return f"{outcome.seconds:7.1f} s{_size(asdict(outcome)):>7} MB  {told[:_MAX_MESSAGE]}"


def as_markdown(rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the table as Markdown, with what another checkout took if it is given."""
    known = {row["case"]: row for row in before}
    columns = " s | MB | outcome |"
    head = f"| case | before:{columns} after:{columns}" if before else f"| case |{columns}"
    lines = [head, f"| --- |{' ---: | ---: | --- |' * (1 + bool(before))}"]
    for row in rows:
        cells = [_cells(known.get(row["case"]))] if before else []
        lines.append(f"| {row['title']} | {' | '.join([*cells, _cells(row)])} |")
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, Any] | None) -> str:
    """Return seconds, megabytes and what was said; nothing where a case was not measured."""
    if row is None:
        return "| | "
    told = ": ".join(part for part in (row["error"], row["message"]) if part) or "read"
    told = " ".join(told.replace("|", "/").split())[:_MAX_MESSAGE]
    return f"{row['seconds']:.1f} | {_size(row)} | {told}"


def _size(row: Mapping[str, Any]) -> str:
    """Return megabytes, more than these where the case was stopped there."""
    return f"{'> ' if row['status'] == 'memory' else ''}{row['megabytes']:.0f}"


def _with_source(names: Sequence[str] | None, source: Path, output: Path | None) -> int:
    """Run the same command with another library."""
    if not (source / "badacost" / "__init__.py").is_file():
        raise FileNotFoundError(f"--source {source} holds no badacost: name the folder src.")
    command = [sys.executable, "-m", "campaigns", "limits"]
    command += ["--cases", ",".join(names)] if names else []
    command += ["--output", str(output)] if output is not None else []
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": str(source)}).returncode


def _build(case: HostileCase, path: Path) -> None:
    if case.build is not None:
        case.build(path)


def _call(case: HostileCase, path: Path) -> str:
    result = case.call(path)
    return result if isinstance(result, str) else "read"


# What is called.


def _load(path: Path) -> None:
    import badacost

    badacost.load(path)


def _predict_row(path: Path) -> str:
    import pandas as pd

    import badacost

    model = badacost.load(path)
    columns = model.encoder_.columns_
    row = {column.name: [1.0 if column.kind == "number" else "b"] for column in columns}
    return f"predicts {model.predict(pd.DataFrame(row))[0]}"


def _importances(path: Path) -> None:
    import badacost

    _ = badacost.load(path).feature_importances_


def _load_detector(path: Path) -> None:
    from badacost.detection import load_detector

    load_detector(path)


def _read_table(path: Path) -> None:
    from badacost.tabular import read_table

    read_table(path)


def _fit_table(path: Path) -> None:
    from badacost.tabular import TableClassifier, read_table

    TableClassifier().fit(read_table(path), "y")


def _fit_samples(path: Path) -> None:
    import badacost

    X = np.random.default_rng(0).normal(size=(12, 20_000))
    badacost.BAdaCostClassifier().fit(X, np.arange(12) % 2)


def _read_image(path: Path) -> None:
    from badacost.detection.images import read_image

    read_image(path)


def _read_annotations(path: Path) -> None:
    from badacost.detection.annotations import read_annotations

    read_annotations(path)


def _read_results(path: Path) -> None:
    from badacost.detection.interchange import read_results

    read_results(path)


def _export(path: Path) -> None:
    import badacost
    from badacost.export import to_onnx

    to_onnx(badacost.load(path))


def _align(path: Path) -> None:
    from badacost.detection.evaluation import align

    found, truth = hostile_images.found_boxes([f"d{n}/1.png" for n in range(1000)])
    align(found, truth)


def _evaluate(protocol: str, path: Path) -> None:
    from badacost.detection.evaluation import evaluate_detections

    found, truth = hostile_images.found_boxes(["1.png"], n=2000)
    evaluate_detections(found, truth, protocol)


def _look_closely(path: Path) -> None:
    from badacost.detection.models import synthetic_cars

    picture = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    synthetic_cars().with_pyramid(n_octaves_up=4).detect(picture)


def _suppress(path: Path, **settings: Any) -> str:
    from badacost.detection import Detections, Suppression

    boxes = hostile_images.many_boxes("apart", 50_000)
    scores = np.random.default_rng(1).random(len(boxes))
    found = Detections(boxes, scores, np.arange(len(boxes)) % 2, ("front", "side"))
    return f"{len(Suppression(**settings).apply(found))} boxes stay"


def _read_costs(path: Path) -> None:
    from badacost.costs import read_costs

    read_costs(path)


def _mixed_labels(path: Path) -> None:
    import badacost

    labels: Any = np.array([1, "a", 1, "a"], dtype=object)
    badacost.BAdaCostClassifier().fit([[1.0], [2.0], [3.0], [4.0]], labels)


def _resume(path: Path) -> None:
    from badacost.detection import train_detector
    from campaigns.tiny_training import TINY, VIEWS, tiny_scenes

    train_detector(tiny_scenes(), VIEWS, TINY, folder=path)


def _damaged_checkpoint(path: Path) -> None:
    """Let a training resume from windows of pictures that are not there."""
    from campaigns.model_cases import Checkpoints
    from campaigns.mutations import rewritten

    path.mkdir()
    for name, content in Checkpoints().stopped(1).items():
        is_cascade = name.startswith("cascade")
        (path / name).write_bytes(rewritten(content, "images", 10**6) if is_cascade else content)


def _loop(path: Path) -> None:
    path.symlink_to(path)


_BOMBS = hostile_models
CASES: dict[str, HostileCase] = {
    "array": HostileCase("model: array of 2 GiB", _BOMBS.array_bomb, _load),
    "keys": HostileCase("model: JSON of 1.2 M keys", _BOMBS.many_keys, _load),
    "deep": HostileCase("model: JSON 5 M levels deep", _BOMBS.deep_json, _load),
    "classes": HostileCase("model: 8000 classes", _BOMBS.many_classes, _load),
    "members": HostileCase("model: 1 M members", _BOMBS.many_members, _load),
    "label size": HostileCase("model: 2000 labels of 1 M letters", _BOMBS.many_labels, _load),
    "nested": HostileCase("model: 8 inside each other", _BOMBS.nested_models, _load),
    "features": HostileCase("model: 2^31 - 1 features", _BOMBS.many_features, _importances),
    "fields": HostileCase(
        "MATLAB: struct of 10 M fields", _BOMBS.matlab_many_fields, _load_detector, ".mat"
    ),
    "empty struct": HostileCase(
        "MATLAB: empty struct of 10 M fields", _BOMBS.matlab_empty_struct, _load_detector, ".mat"
    ),
    "bytes as doubles": HostileCase(
        "MATLAB: 250 Mi doubles stored as bytes",
        _BOMBS.matlab_bytes_as_doubles,
        _load_detector,
        ".mat",
    ),
    "variables": HostileCase(
        "MATLAB: 3 M variables", _BOMBS.matlab_many_variables, _load_detector, ".mat"
    ),
    "names": HostileCase(
        "MATLAB: names of 120 fields that do not end",
        _BOMBS.matlab_long_names,
        _load_detector,
        ".mat",
    ),
    "export": HostileCase(
        "model of 40 000 features: export",
        partial(_BOMBS.many_features, n_features=40_000),
        _export,
    ),
    "pipe": HostileCase("named pipe as a detector", os.mkfifo, _load_detector),
    "folder": HostileCase("folder as a detector", Path.mkdir, _load_detector),
    "loop": HostileCase("loop of links as a detector", _loop, _load_detector),
    "gzip lines": HostileCase(
        'table: gzip of 240 MiB of "1,2"',
        partial(hostile_tables.gzip_of_lines, n_bytes=240 * 2**20),
        _read_table,
        ".csv.gz",
    ),
    "gzip blanks": HostileCase(
        "table: gzip of 1.5 GiB of blanks",
        partial(hostile_tables.gzip_of_blanks, n_bytes=1536 * 2**20),
        _read_table,
        ".csv.gz",
    ),
    "dictionary": HostileCase(
        "table: Parquet with a dictionary",
        hostile_tables.parquet_dictionary,
        _read_table,
        ".parquet",
    ),
    "digits": HostileCase(
        "table: 50 000 digits that are no number", hostile_tables.many_digits, _read_table, ".csv"
    ),
    "columns": HostileCase(
        "table: 300 000 columns", hostile_tables.many_columns, _read_table, ".csv"
    ),
    "fit columns": HostileCase(
        "table: fit of 20 000 columns x 12 rows",
        partial(hostile_tables.many_columns, n_columns=20_000, n_rows=12),
        _fit_table,
        ".csv",
    ),
    "fit features": HostileCase("BAdaCost: fit of 20 000 features", None, _fit_samples),
    "stored table": HostileCase(
        "model of a table of 60 000 columns", hostile_tables.stored_table_of_many_columns, _load
    ),
    "wide row": HostileCase(
        "model of a table of 60 000 columns: predict a row",
        hostile_tables.stored_table_of_many_columns,
        _predict_row,
    ),
    "picture": HostileCase(
        "picture of 134 Mpx",
        partial(hostile_images.large_picture, height=8192, width=16384),
        _read_image,
        ".png",
    ),
    "claimed picture": HostileCase(
        "picture of a few bytes that claims 150 Mpx",
        partial(hostile_images.claimed_picture, height=12_000, width=12_500),
        _read_image,
        ".png",
    ),
    "scans": HostileCase(
        "JPEG of 200 000 scans",
        partial(hostile_images.many_scans, n=200_000),
        _read_image,
        ".jpg",
    ),
    "coco": HostileCase(
        "annotations: COCO of 20 M empty records",
        partial(hostile_images.coco_bomb, n=20_000_000),
        _read_annotations,
        ".json",
    ),
    "objects": HostileCase(
        "annotations: table of 5 M pictures",
        partial(hostile_images.long_list, n=5_000_000),
        _read_annotations,
        ".csv",
    ),
    "aliases": HostileCase(
        "annotations: YAML of 10^9 entries by aliases",
        partial(hostile_images.yaml_aliases, n=9),
        _read_annotations,
        ".yaml",
    ),
    "entities": HostileCase(
        "annotations: XML of 10^9 words by entities",
        partial(hostile_images.xml_entities, n=9),
        _read_annotations,
        ".xml",
    ),
    "results": HostileCase(
        "results: 3 M pictures without objects",
        partial(hostile_images.many_results, n=3_000_000),
        _read_results,
        ".jsonl",
    ),
    "coco results": HostileCase(
        "results: COCO of 20 M empty records",
        partial(hostile_images.coco_bomb, n=20_000_000),
        _read_results,
        ".json",
    ),
    "octaves": HostileCase("640 x 480 pixels, four octaves up", None, _look_closely),
    "boxes": HostileCase("50 000 boxes: suppression", None, _suppress),
    "boxes all": HostileCase(
        '50 000 boxes: suppression "all" by the smaller area',
        None,
        partial(_suppress, kind="all", denominator="min"),
    ),
    "boxes vote": HostileCase(
        "50 000 boxes: suppression with votes", None, partial(_suppress, vote=0.5)
    ),
    "costs": HostileCase(
        "costs of 1200 classes", hostile_tables.many_classes_costs, _read_costs, ".csv"
    ),
    "cost lines": HostileCase("costs: 12 M lines", hostile_tables.many_lines, _read_costs, ".csv"),
    "same names": HostileCase("1000 pictures of the same name: evaluation", None, _align),
    "kitti": HostileCase("2000 boxes in a picture: KITTI", None, partial(_evaluate, "kitti")),
    "fddb": HostileCase("2000 boxes in a picture: FDDB", None, partial(_evaluate, "fddb")),
    "labels": HostileCase("labels of mixed types", None, _mixed_labels),
    "checkpoint": HostileCase("damaged checkpoint", _damaged_checkpoint, _resume, ""),
}
