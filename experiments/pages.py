"""Pages of results: Markdown templates that are filled with the numbers of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from badacost.io.atomic_file import replaced_file

TITLES = {
    "car": "CarEval", "chess": "Chess", "isolet": "Isolet", "satimage": "SatImage",
    "letter": "Letter", "shuttle": "Shuttle", "cmc": "Cont.Meth.", "cnae9": "CNAE9",
    "optdigits": "OptDigits", "pendigits": "PenDigits", "segmentation": "Segmenta.",
    "waveform": "Waveform",
}  # fmt: skip


def render(template: str, **values: Any) -> str:
    """Fill a template of the folder ``templates``."""
    return _ENVIRONMENT.get_template(template).render(**values)


def write_page(path: Path, template: str, **values: Any) -> Path:
    """Write a page from a template, and return its path."""
    text = render(template, **values)
    with replaced_file(path) as temporary:
        temporary.write_text(text)
    return path


def save_figure(figure: Any, path: Path, **options: Any) -> None:
    """Write a picture of a page, and close it."""
    # By name, older versions look for another file.
    with replaced_file(path) as temporary, temporary.open("wb") as file:
        figure.savefig(file, dpi=120, format=path.suffix[1:], **options)
    plt.close(figure)


def write_numbers(path: Path, numbers: dict[str, Any], **options: Any) -> None:
    """Write numbers as JSON, with options of `json.dumps`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as temporary:
        temporary.write_text(json.dumps(numbers, **options) + "\n")


def read_numbers(folder: Path, pattern: str) -> list[dict[str, Any]]:
    """Return what is in the JSON files of a folder whose names fit, in the order of these."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"{folder} has no {pattern}: run the program without --page first.")
    return found


def frame(rows: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Return a table of rows by name, as the JSON files have them."""
    return pd.DataFrame.from_dict(rows, orient="index")


def table(cells: pd.DataFrame, values: pd.DataFrame | None = None) -> str:
    """Return a Markdown table; the cell of the lowest of `values` in each line is bold.

    >>> costs = pd.DataFrame({"tree": [3.0, 1.0], "forest": [2.0, 1.5]}, ["car", "cmc"])
    >>> print(table(costs.map(short), costs))
    | | tree | forest |
    | --- | ---: | ---: |
    | CarEval | 3 | **2** |
    | Cont.Meth. | **1** | 1.5 |
    """
    lines = [f"| | {' | '.join(cells.columns)} |", "| --- |" + " ---: |" * cells.shape[1]]
    for number, (name, row) in enumerate(cells.iterrows()):
        shown = list(row)
        if values is not None:
            best = int(values.iloc[number].to_numpy().argmin())
            shown[best] = f"**{shown[best]}**"
        lines.append(f"| {TITLES.get(str(name), name)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def losses(costs: pd.DataFrame, ours: str) -> pd.DataFrame:
    """Return the lines in which another column costs less: the best one, its cost and ours.

    >>> costs = pd.DataFrame({"tree": [3.0, 1.0], "forest": [2.0, 1.5]}, ["car", "cmc"])
    >>> losses(costs, "tree")
               best  lowest  ours
    CarEval  forest     2.0   3.0
    """
    columns = {"best": costs.idxmin(axis=1), "lowest": costs.min(axis=1), "ours": costs[ours]}
    found = pd.DataFrame(columns).rename(index=TITLES)
    return found[found["lowest"] < found["ours"]]


def mean(values: pd.Series[float]) -> float:
    """Return numpy's mean; that of a pandas group may differ in the last digit, and part ties."""
    return float(np.mean(values.to_numpy()))


def short(value: float) -> str:
    """Return three digits of a number."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """Return a share in percent with one digit, or nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f}"


def listed(values: Iterable[object]) -> str:
    """Return values separated by commas, or "none"."""
    return ", ".join(map(str, values)) or "none"


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_ENVIRONMENT.filters |= {"short": short, "percent": percent, "listed": listed}
