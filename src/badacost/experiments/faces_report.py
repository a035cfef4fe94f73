"""The page that tells what the experiment with faces found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from badacost.detection.evaluation import (
    PrecisionRecallCurve,
    PrecisionRecallDisplay,
    RocCurve,
    RocDisplay,
)
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
from badacost.experiments.faces import FALSE_POSITIVES, REFINEMENTS, FaceSettings

_SOURCE = (
    "Written by `badacost experiment faces`: the detectors of the paper's section on faces, "
    "trained and tried on images of FDDB."
)
# The paper's text: trained on AFLW, tested on AFW, with five rounds of box refinement.
PAPER_AP = {"SubCat": 93.09, "BAdaCost": 97.0}
_PLAIN, _REFINED = map(str, REFINEMENTS)


def write_report(result: Result, folder: Path) -> Path:
    """Write numbers and curves of a run, and the page of all runs of its kind.

    These are ``faces-LIMITS.json``, ``faces-LIMITS.png``, ``faces-LIMITS-roc.png`` and
    ``faces.md``; names have "quick" or "paper" in them for settings of that kind. Returns the path
    of the page.
    """
    settings = FaceSettings(**result["settings"])
    results = store(result, folder, settings.page)
    _draw(result, folder)
    return write_page(
        folder / f"{settings.page}.md",
        results,
        ["# Faces in five views", _SOURCE, _protocol(results[0])],
        sections=_sections,
        beside_paper=_beside_paper(),
        limits=_limits(results),
    )


def _draw(result: Result, folder: Path) -> None:
    """Draw precision against recall, and FDDB's discrete curve if there is one."""
    name = result["experiment"]
    curves = {
        detector: PrecisionRecallCurve(**found["voc"][_PLAIN]["curve"])
        for detector, found in result["detectors"].items()
    }
    save_figure(PrecisionRecallDisplay(curves).plot(), folder / f"{name}.png")
    rocs = {}
    for detector, found in result["detectors"].items():
        if found["fddb"] is not None:
            points = found["fddb"][_REFINED]["discrete"]
            thresholds = [float("inf") if t is None else t for t in points["thresholds"]]
            rocs[detector] = RocCurve(**{**points, "thresholds": thresholds})
    if rocs:
        display = RocDisplay(rocs, false_positives=FALSE_POSITIVES[-1] + 1).plot()
        save_figure(display, folder / f"{name}-roc.png")


def _protocol(result: Result) -> str:
    settings, data = result["settings"], result["data"]
    training, test = data["training"], data["test"]
    return (
        f"Protocol: {training['n_images']} training images with {training['n_objects']} faces to "
        "learn (32 pixels high, turned sideways by at most 35 degrees, two estimates of the yaw "
        "at most 20 degrees apart; other faces are neither faces nor background), their mirror "
        f"images, and {data['n_negatives']} pictures without people; {test['n_images']} test "
        f"images with {test['n_objects']} faces. Window 40 x 40, locally decorrelated channels, "
        f"rounds of {listed(settings['trees'])} trees with false alarms added between rounds "
        f"({settings['n_negatives']} a round, {settings['n_accumulated']} in all), "
        f"{settings['n_jittered']} moved and varied copies of each face. BAdaCost pays "
        f"{settings['beta']:g} "
        f"for a missed face and 1 for any other mistake, with trees of {settings['max_depth']} "
        f"levels; {rivals(settings)} Test images are doubled {settings['n_octaves_up']} times (in "
        "the paper once, to find faces of 20 pixels), for published detectors too. The "
        "program chooses nothing by the test images."
    )


def _sections(result: Result) -> list[str]:
    detectors, data = result["detectors"], result["data"]
    limits = ", ".join(f"{limit:g}" for limit in result["settings"]["limits"])
    per_view = listed(data["training"]["per_view"])
    name = result["experiment"]
    parts = [
        f"## Views with limits of {limits} degrees to both sides",
        f"Faces to learn from the one that looks right to the one that looks left, before "
        f"mirroring: {per_view}.",
        "### Average precision and views",
        _precision(result),
        f"![Precision and recall]({name}.png)",
    ]
    if all(found["fddb"] is not None for found in detectors.values()):
        parts += [
            "### FDDB",
            "Share of the faces found, with at most so many false positives in all test images, "
            "for upright ellipses in boxes.",
            _roc(detectors),
            f"![Discrete curves of refined boxes]({name}-roc.png)",
        ]
    return parts


def _precision(result: Result) -> str:
    head = ["detector", "AP", "95 %", f"{REFERENCE} above it", "AP, refined boxes"]
    head += ["faces found", "view right"]
    rows = []
    for name, found in result["detectors"].items():
        views = found["views"] or {"n_found": 0, "right": None}
        rows.append(
            [
                name,
                percent(found["voc"][_PLAIN]["ap"]),
                *resampling_cells(found["resampled"], REFERENCE),
                percent(found["voc"][_REFINED]["ap"]),
                str(views["n_found"]),
                percent(views["right"]),
            ]
        )
    return (
        "Average precision in percent, overlap 0.5, faces of 30 pixels; its range in "
        f"{result['settings']['n_resamples']} draws of the test images with replacement, and how "
        f"often {REFERENCE} was better in the same draw: only what is above 97.5 % or below 2.5 % "
        "is worth the name of a difference. Refined: five rounds in which all boxes are moved and "
        "scaled by the mean difference to the annotations of the test images, as in the paper. "
        "Views are those of true positives after that, whatever the score; headings of other "
        "views are assigned to these.\n\n" + markdown_table(head, rows)
    )


def _roc(detectors: Mapping[str, Result]) -> str:
    head = ["detector", *(f"discrete, {n}" for n in FALSE_POSITIVES)]
    head += [f"continuous, {n}" for n in FALSE_POSITIVES]
    rows = []
    for name, found in detectors.items():
        for rounds, suffix in ((_PLAIN, ""), (_REFINED, ", refined boxes")):
            roc = found["fddb"][rounds]
            shares = [roc["discrete_at"][str(n)] for n in FALSE_POSITIVES]
            shares += [roc["continuous_at"][str(n)] for n in FALSE_POSITIVES]
            rows.append([name + suffix, *map(percent, shares)])
    return markdown_table(head, rows)


def _beside_paper() -> str:
    rows = [[name, f"{ap:.1f}"] for name, ap in PAPER_AP.items()]
    return (
        "The paper's average precision on AFW, trained on some 73 000 faces of AFLW, with refined "
        "boxes (its files give 93.9 and 96.4):\n\n" + markdown_table(["detector", "AP"], rows)
    )


def _limits(results: list[Result]) -> str:
    data = results[0]["data"]
    training = data["training"]
    lines = [
        f"* {training['n_objects']} faces, and as many in the mirror, stand against some 73 000 of "
        f"the authors. The rarest view has {min(training['per_view'])} before mirroring.",
    ]
    if data["test"]["n_images"] < SMALL:
        lines.append(
            f"* {data['test']['n_objects']} test faces cannot rank detectors that are some points "
            "apart, nor reproduce the paper's figures, which come from other images: see the "
            "ranges. They show that the whole way works on real images, and how the detectors "
            "differ in work."
        )
    if data["is_yaw_estimated"]:
        lines.append(
            "* Nobody annotated the views: yaws are the estimates of a network, so that both what "
            "detectors learn and what they are judged by has its mistakes."
        )
    if any(found["is_published"] for r in results for found in r["detectors"].values()):
        lines.append(
            "* The published detectors learned boxes of another kind, tighter than the ellipses of "
            "FDDB, which reach from forehead to chin: without refinement many of their hits miss "
            "the overlap. With it, boxes are fitted to the annotations they are judged by."
        )
    return "\n".join(lines)
