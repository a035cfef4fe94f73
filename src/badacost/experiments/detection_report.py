"""Parts that the pages of the detection experiments share: tables, curves, work and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from badacost.detection.inspection import Efficiency, EfficiencyTable
from badacost.plotting.canvas import import_pyplot

if TYPE_CHECKING:
    from badacost.detection.evaluation import PrecisionRecallDisplay, RocDisplay

Result = dict[str, Any]
SMALL = 500  # images; fewer prove little


def store(result: Result, folder: Path, page: str) -> list[Result]:
    """Write a run's numbers to ``EXPERIMENT.json``, and return all runs that its page tells of.

    Names of these runs begin with `page`, and they have the same kind of settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['experiment']}.json"
    path.write_text(json.dumps(result, allow_nan=False) + "\n")
    # A name goes on with a number, or with the kind of its settings.
    return [json.loads(other.read_text()) for other in sorted(folder.glob(f"{page}-[0-9]*.json"))]


def write_page(
    path: Path,
    results: Sequence[Result],
    introduction: Sequence[str],
    sections: Callable[[Result], list[str]],
    beside_paper: str,
    limits: str,
) -> Path:
    """Write the page that tells of some runs, and return its path.

    `sections` returns the parts on a run, but for those on work and training; `beside_paper` and
    `limits` say what the paper found, and what cannot be concluded.
    """
    parts = [*introduction]
    for result in results:
        parts += [
            *sections(result),
            "### Work",
            work_table(result["detectors"]),
            "Worst case: levels of all trees, summed; the rest is measured on "
            f"{result['settings']['n_timed']} test image(s).",
            "### Training",
            training_table(result["detectors"]),
        ]
    parts += ["## Beside the paper", beside_paper]
    parts += ["## What this can prove, and what it cannot", limits, versions(results[0])]
    path.write_text("\n\n".join(part for part in parts if part) + "\n")
    return path


def listed(values: Iterable[object]) -> str:
    """Return values separated by commas, or "none"."""
    return ", ".join(map(str, values)) or "none"


def rivals(settings: Mapping[str, Any]) -> str:
    """Return how the other contenders differ from BAdaCost, and what all have in common."""
    return (
        "CostBoost is the same with the boosting of `CostBoostClassifier`, objects against "
        "background; SAMME with 0|1 costs. All hold out the images of about a fifth of the "
        "objects, whole drives or days, which choose the round, thresholds and probabilities, and "
        "are then trained on all images; boxes, and but for SubCat views, are told by a "
        "regression. SubCat has a cascade for each view with real-valued "
        f"trees of 2 levels, rounds of {listed(settings['subcat_trees'])}, "
        f"{settings['n_subcat_negatives']} negatives a round and "
        f"{settings['n_subcat_accumulated']} in all for each cascade."
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def percent(share: float | None) -> str:
    """Return a share in percent with one digit, or nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f}"


def work_table(detectors: Mapping[str, Result]) -> str:
    """Return what the detectors of a run cost to use."""
    return EfficiencyTable(
        {name: Efficiency(**found["work"]) for name, found in detectors.items()}
    ).to_markdown()


def training_table(detectors: Mapping[str, Result]) -> str:
    """Return how long the contenders of a run were trained."""
    rows = []
    for name, found in detectors.items():
        training = found["training"]
        if training is not None:
            resumed = "" if training["n_starts"] == 1 else " (last part of a resumed training)"
            rows.append(
                [name, f"{training['seconds']:.0f}{resumed}", f"{training['cpu_seconds']:.0f}"]
            )
    return markdown_table(["detector", "seconds", "CPU seconds"], rows)


def resampling_cells(resampled: Mapping[str, Any], reference: str) -> list[str]:
    """Return the interval of a detector, and how often the reference was better."""
    low, high = resampled["interval"]
    above = resampled["reference_above"]
    shown = "" if above is None else f"{100 * above:.0f} %"
    return [f"{percent(low)} to {percent(high)}", shown]


def save_figure(display: PrecisionRecallDisplay | RocDisplay, path: Path) -> str:
    """Write the figure of a display that was drawn, and return the name of the file."""
    display.figure_.savefig(path, dpi=120)
    import_pyplot().close(display.figure_)
    return path.name


def versions(result: Result) -> str:
    """Return the line on seed and versions at the end of a page."""
    listed = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return f"Seed {result['settings']['seed']}; {listed}."
