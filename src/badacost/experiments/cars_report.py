"""The page that tells what the experiment with cars found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from badacost.detection.evaluation import PrecisionRecallCurve, PrecisionRecallDisplay
from badacost.experiments.cars import FIRST_CLEAN, OVERLAPS, CarSettings
from badacost.experiments.contest import REFERENCE
from badacost.experiments.detection_report import (
    SMALL,
    Result,
    listed,
    markdown_table,
    percent,
    resampling_cells,
    rivals,
    save_figure,
    store,
    write_page,
)

_SOURCE = (
    "Written by `badacost experiment cars`: the detectors of the paper's section on cars, "
    "trained and tried on KITTI images."
)
LEVELS = ("easy", "moderate", "hard")
# Table 2 of the paper: trained on the first 6733 images of KITTI, tested on the others.
PAPER_AP = {
    "SubCat": (80.0, 74.5, 58.3),
    "SAMME": (81.0, 75.4, 58.8),
    "BAdaCost": (84.8, 82.1, 66.9),
}


def write_report(result: Result, folder: Path) -> Path:
    """Write numbers and curves of a run, and the page of all runs of its kind.

    These are ``cars-N-views.json``, ``cars-N-views.png`` and ``cars.md``; names have "quick" or
    "paper" in them for settings of that kind. Returns the path of the page.
    """
    settings = CarSettings(**result["settings"])
    results = store(result, folder, settings.page)
    results.sort(key=lambda found: found["settings"]["n_views"])
    _draw(result, folder / f"{settings.name}.png")
    return write_page(
        folder / f"{settings.page}.md",
        results,
        ["# Cars seen from all sides", _SOURCE, _protocol(results[0])],
        sections=_sections,
        beside_paper=_beside_paper(),
        limits=_limits(results),
    )


def _draw(result: Result, path: Path) -> None:
    """Draw precision against recall at KITTI's moderate level and an overlap of 0.7."""
    curves = {}
    for name, found in result["detectors"].items():
        level = found["kitti"][str(OVERLAPS[0])]["moderate"]
        n = len(level["thresholds"])
        curves[name] = PrecisionRecallCurve(
            level["recall"][:n], level["precision"][:n], level["thresholds"]
        )
    save_figure(PrecisionRecallDisplay(curves).plot(), path)


def _protocol(result: Result) -> str:
    settings, data = result["settings"], result["data"]
    training, test, left_out = data["training"], data["test"], data["left_out"]
    depth = settings["max_depth"]
    omitted = ""
    if left_out["training"] or left_out["test"]:
        omitted = (
            f" Left out, since the picture was resized and its labels were not (boxes are some "
            f"20 pixels off): {listed(left_out['training'])} of the training images and "
            f"{listed(left_out['test'])} of the test images."
        )
    return (
        f"Protocol: {training['n_images']} training images with {training['n_objects']} cars to "
        f"learn (height 25, occlusion at most 1, truncation at most 0.3; others, vans, trucks, "
        f"trams and regions marked DontCare are neither cars nor background) and their mirror "
        f"images; {test['n_images']} test images with {test['n_objects']} such cars.{omitted} "
        f"Window 48 x 84, locally decorrelated channels, rounds of {listed(settings['trees'])} "
        f"trees with false alarms of the training images added between rounds "
        f"({settings['n_negatives']} a round, {settings['n_accumulated']} in all), "
        f"{settings['n_jittered']} moved and varied copies of each car. "
        f"BAdaCost has the costs 1-3-3 and trees of {depth} levels, learning rate "
        f"{settings['learning_rate']:g}, {settings['max_features']:.3g} of the features at a node; "
        f"{rivals(settings)} Test images are doubled {settings['n_octaves_up']} times (in the "
        f"paper once, to find cars of 24 pixels) and boxes clipped to the image. The program "
        "chooses nothing by the test images."
    )


def _sections(result: Result) -> list[str]:
    detectors, data = result["detectors"], result["data"]
    n_views = result["settings"]["n_views"]
    counts = ", ".join(
        f"{name} {n}"
        for name, n in zip(data["view_names"], data["training"]["per_view"], strict=True)
    )
    objects = detectors[REFERENCE]["kitti"][str(OVERLAPS[0])]
    shown = ", ".join(f"{objects[level]['n_objects']} {level}" for level in LEVELS)
    parts = [
        f"## {n_views} views",
        f"Cars to learn by heading, before mirroring: {counts}. Test cars: {shown}.",
    ]
    for overlap in OVERLAPS:
        parts += [
            f"### Average precision in percent, overlap {overlap:g}",
            _precision(detectors, str(overlap)),
        ]
    parts += [
        f"![Precision and recall, moderate, overlap 0.7]({result['experiment']}.png)",
        "### Headings",
        _headings(detectors),
        "### Is a difference more than chance?",
        _resampling(result),
    ]
    return parts


def _precision(detectors: Mapping[str, Result], overlap: str) -> str:
    head = ["detector"]
    for points in (11, 40):
        head += [f"{level}, {points} points" for level in LEVELS]
    rows = [
        [name]
        + [
            percent(found["kitti"][overlap][level][f"ap_{points}"])
            for points in (11, 40)
            for level in LEVELS
        ]
        for name, found in detectors.items()
    ]
    return markdown_table(head, rows)


def _headings(detectors: Mapping[str, Result]) -> str:
    head = ["detector", *(f"AOS {level}" for level in LEVELS), "cars found", "view right"]
    head.append("right or next to it")
    rows = []
    for name, found in detectors.items():
        views = found["views"] or {"n_found": 0, "right": None, "near": None}
        similarity = (
            percent(found["kitti"][str(OVERLAPS[0])][level]["aos_40"]) for level in LEVELS
        )
        rows.append(
            [name, *similarity, str(views["n_found"]), percent(views["right"]),
             percent(views["near"])]
        )  # fmt: skip
    return (
        "Average orientation similarity (40 points, overlap 0.7), and views of the moderate cars "
        "that are found with an overlap of 0.5, whatever the score. Each detector is asked for "
        "those it found itself; headings of other views are assigned to these.\n\n"
        + markdown_table(head, rows)
    )


def _resampling(result: Result) -> str:
    head = ["detector"]
    for overlap in OVERLAPS:
        head += [f"AP {overlap:g}", "95 %", f"{REFERENCE} above it"]
    rows = []
    for name, found in result["detectors"].items():
        row = [name]
        for overlap in OVERLAPS:
            voc = found["voc"][str(overlap)]
            row += [percent(voc["ap"]), *resampling_cells(voc, REFERENCE)]
        rows.append(row)
    return (
        "Area under the whole curve (VOC) for moderate cars, its range in "
        f"{result['settings']['n_resamples']} draws of the test images with replacement, and how "
        f"often {REFERENCE} was better in the same draw. Only what is above 97.5 % or below 2.5 % "
        "is worth the name of a difference.\n\n" + markdown_table(head, rows)
    )


def _beside_paper() -> str:
    rows = [[name, *(f"{ap:.1f}" for ap in found)] for name, found in PAPER_AP.items()]
    return (
        "The paper's average precision (11 points, overlap 0.7), trained on 6733 images of KITTI "
        "in 20 views and tested on 748:\n\n" + markdown_table(["detector", *LEVELS], rows)
    )


def _limits(results: list[Result]) -> str:
    data: dict[str, Any] = results[0]["data"]
    lines = [
        "* With fewer objects than about 41, the curve of KITTI ends before its last recall step: "
        "its average precision is too low, most of all for easy cars. The area under the whole "
        "curve has no such limit.",
    ]
    if data["test"]["n_images"] < SMALL:
        lines.append(
            f"* {data['test']['n_images']} test images cannot reproduce the paper's figures, nor "
            "rank detectors that are some points apart: see the ranges above. They show that the "
            "whole way works on real images, and how the detectors differ in work."
        )
    if data["training"]["n_images"] < SMALL:
        lines.append(
            f"* {data['training']['n_images']} training images stand against the paper's 6733, and "
            f"neighbouring frames show the same cars. The rarest of {len(data['view_names'])} "
            f"views has {min(data['training']['per_view'])} cars before mirroring."
        )
    if any(found["is_published"] for r in results for found in r["detectors"].values()):
        lines.append(
            f"* The published detectors were trained with the images of KITTI below number "
            f"{FIRST_CLEAN}, so with most test images here. Clean for them are "
            f"{listed(data['clean'])}, with {data['n_clean_objects']} moderate cars: too few for a "
            "figure of their own, and the rows of the published detectors are no fair comparison."
        )
    return "\n".join(lines)
