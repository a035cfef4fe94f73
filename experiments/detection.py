"""The detectors of the paper against each other: the same program for cars and for faces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from badacost.detection.inspection import Efficiency, EfficiencyTable
from experiments import cars, faces, pages
from experiments.contest import REFERENCE, data_folder, header, run

Settings = cars.CarSettings | faces.FaceSettings
SETTINGS: dict[str, type[Settings]] = {"cars": cars.CarSettings, "faces": faces.FaceSettings}
_SMALL = 500  # images; fewer prove little


def run_contest(
    settings: Settings,
    output: Path,
    *,
    data: Path | None = None,
    negatives: Sequence[Path] | None = None,
    published: Sequence[Path] = (),
    n_jobs: int | None = -1,
) -> dict[str, Any]:
    """Train and try all contenders, or what is missing of it, and return plain numbers, for JSON.

    The contest is kept in a folder of `output`, named as the settings. `data` is the folder of the
    images, `negatives` are folders of pictures without objects, `published` are files of detectors
    to try beside.
    """
    images = settings.read(data_folder(data, settings.folder), negatives)
    folder = output / settings.name
    entries = run(settings, images, folder, published=published, n_jobs=n_jobs)
    found = settings.evaluate(images.test, entries)
    return {
        **header(settings, images, folder),
        "data": images.data,
        "detectors": {name: entry.numbers | found[name] for name, entry in entries.items()},
    }


def write_numbers(result: dict[str, Any], folder: Path) -> None:
    """Write the numbers of a run to ``EXPERIMENT.json``."""
    pages.write_numbers(folder / f"{result['experiment']}.json", result, allow_nan=False)


def write_page(settings: Settings, folder: Path) -> Path:
    """Write the page and the curves of all runs of a kind whose numbers are in a folder.

    Names of these runs begin with that of the page and go on with a number.
    """
    results = pages.read_numbers(folder, f"{settings.page}-[0-9]*.json")
    results.sort(key=lambda result: result["settings"].get("n_views", 0))
    for result in results:
        for suffix, display in settings.displays(result["detectors"]).items():
            path = folder / f"{result['experiment']}{suffix}.png"
            pages.save_figure(display.plot().figure_, path)
        result["work"] = EfficiencyTable(
            {name: Efficiency(**one["work"]) for name, one in result["detectors"].items()}
        ).to_markdown()
    return pages.write_page(
        folder / f"{settings.page}.md",
        f"{settings.subject}.md",
        results=results,
        reference=REFERENCE,
        small=_SMALL,
        cars=vars(cars),
        faces=vars(faces),
        has_published=any(one["is_published"] for r in results for one in r["detectors"].values()),
    )
