"""Figures of an evaluation of detections as tables in a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import typer

from badacost.cli.printing import text_table

if TYPE_CHECKING:
    from rich.table import Table

    from badacost.detection.evaluation import (
        CocoResult,
        Evaluation,
        FddbResult,
        KittiResult,
        VocResult,
    )

_FALSE_POSITIVES = (100, 500, 1000, 2000)


def show_evaluation(evaluated: Evaluation) -> None:
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
    tables = [text_table(head, [row], n_text=0, title=title)]
    if len(names) > 1 and result.objects_per_view.any():
        found = result.view_confusion.sum(axis=1)
        rows = [
            [name, str(n), str(found[view]), _figure(result.view_recall[view])]
            for view, (name, n) in enumerate(zip(names, result.objects_per_view, strict=True))
        ]
        head = ["view", "objects", "found", "recall"]
        tables.append(text_table(head, rows, title="Recall by view"))
    return tables


def _kitti_table(result: KittiResult, title: str) -> Table:
    rows = [
        [name, str(curve.n_objects), _figure(curve.ap_40), _range(curve.ap_range)]
        + [_figure(value) for value in (curve.ap_11, curve.aos_40, curve.aos_11)]
        for name, curve in result.curves.items()
    ]
    title = f"{title}, {result.category}, overlap {result.overlap:g}"
    head = ["level", "objects", "AP 40", "range", "AP 11", "AOS 40", "AOS 11"]
    return text_table(head, rows, title=title)


def _fddb_table(result: FddbResult, title: str) -> Table:
    rows = []
    for limit in _FALSE_POSITIVES:
        ranges = result.rate_ranges(limit)
        rows.append([str(limit)])
        for name, curve in (("discrete", result.discrete), ("continuous", result.continuous)):
            rows[-1] += [_figure(curve.rate_below(limit)), _range(ranges[name])]
    ap = f"AP {_figure(result.ap)}, {_range(result.ap_range)}"
    head = ["max. false positives", "discrete", "range", "continuous", "range"]
    title = f"{title}, {result.n_faces} faces ({ap}): true-positive rate"
    return text_table(head, rows, n_text=0, title=title)


def _coco_table(result: CocoResult, title: str) -> Table:
    names = {key: f"{key[:2].upper()}{key[2:].replace('_', ' ')}" for key in result.summary}
    rows = [
        [name, _figure(result.summary[key]), _range(result.ranges.get(key, (math.nan, math.nan)))]
        for key, name in names.items()
    ]
    title = f"{title}, {result.n_objects} objects"
    return text_table(["figure", "value", "range"], rows, title=title)


def _range(limits: tuple[float, float]) -> str:
    return "-" if np.isnan(limits).any() else f"{limits[0]:.3f} to {limits[1]:.3f}"


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
