"""Numbers and page of Table 1: average costs by data set, algorithm and fold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from badacost.io.atomic_file import replaced_file
from experiments import pages, paper
from experiments.pages import losses, mean, read_numbers, short, table
from experiments.ranking import RankComparison
from experiments.table1 import CONTENDERS, READINGS, Settings
from experiments.tasks import Record

UNIT = 1e-4  # of the costs in the table, as in the paper
_PAGE = "uci"
_OURS, _BAYES = "BAdaCost", "BAdaCost, bayes"


def numbers(header: dict[str, Any], records: list[Record]) -> dict[str, Any]:
    """Return everything as plain numbers, for JSON, from the records of a finished run.

    Costs are in the unit of the table; entries of the cost matrices are shares of the samples of a
    class. The distance to the paper is also given for matrices whose largest entry is one.
    """
    data_sets = list(header["settings"]["data_sets"])
    names = [row for name in header["settings"]["contenders"] for row in CONTENDERS[name].rows]
    fits: Any = pd.DataFrame(
        [
            {"data_set": record["data_set"], "fold": record["fold"], "row": row, **found}
            for record in records
            for row, found in record.get("rows", {}).items()
        ]
    ).pivot(index=["data_set", "fold"], columns="row")
    costs, errors = fits["cost"][names] / UNIT, fits["error"][names]
    largest = {(r["data_set"], r["fold"]): np.max(r["costs"]) for r in records if "costs" in r}
    means = _by_set(costs).agg(mean).loc[data_sets]
    relative = costs.div([largest[key] for key in costs.index], axis=0)
    scaled = _by_set(relative).agg(mean).loc[data_sets]
    times = pd.DataFrame(records).replace({"contender": {"": "cost matrices"}})
    compared = {"all": compare(means), "paper": compare(means, paper.ALGORITHMS)}
    return {
        **header,
        "unit": UNIT,
        "mean": means.to_dict("index"),
        "standard_deviation": _by_set(costs).std().loc[data_sets].to_dict("index"),
        "folds": {name: costs.loc[name].to_dict("list") for name in data_sets},
        "error": _by_set(errors).agg(mean).loc[data_sets].to_dict("index"),
        "paper": paper.MEANS.loc[data_sets].to_dict("index"),
        "distance_to_paper": {
            "lambda 1": distance_to_paper(means),
            "largest cost 1": distance_to_paper(scaled),
        },
        "ranks": {key: found.to_dict() for key, found in compared.items() if found},
        "seconds": times.groupby("contender", sort=False)["seconds"].sum().to_dict(),
    }


def _by_set(frame: pd.DataFrame) -> Any:
    return frame.groupby(level="data_set")


def compare(means: pd.DataFrame, rows: Sequence[str] | None = None) -> RankComparison | None:
    """Return the rank test of some rows, all by default; None where there is too little to compare.

    The reference is BAdaCost under whichever rule is among them.
    """
    names = [row for row in means if rows is None or row in rows]
    reference = _OURS if _OURS in names else _BAYES
    if len(means) < 2 or len(names) < 3 or reference not in names:
        return None
    return RankComparison.of(means[names], reference)


def distance_to_paper(means: pd.DataFrame) -> dict[str, float]:
    """Return the median factor between our costs and the paper's, by row; one is agreement."""
    rows = [row for row in paper.ALGORITHMS if row in means]
    ratios: Any = means[rows].where(means[rows] > 0) / paper.MEANS.loc[means.index, rows]
    distance: Any = np.exp(np.log(ratios).abs().median())
    return distance.to_dict()


def write_numbers(header: dict[str, Any], records: list[Record], folder: Path) -> dict[str, Any]:
    """Write ``uci.json`` and ``uci.csv``, or ``uci-VARIANT.json``, and return the numbers."""
    found = numbers(header, records)
    settings = Settings(**header["settings"])
    pages.write_numbers(folder / f"{settings.name}.json", found, indent=1)
    if not settings.variant:
        lines = [
            (name, row, fold, cost * UNIT)
            for name, rows in found["folds"].items()
            for row, folds in rows.items()
            for fold, cost in enumerate(folds)
        ]
        columns = ["data_set", "algorithm", "fold", "cost"]
        with replaced_file(folder / "uci.csv") as temporary:
            pd.DataFrame(lines, columns=columns).to_csv(temporary, index=False)
    return found


def write_page(folder: Path) -> Path:
    """Write ``uci.md`` and ``uci-ranks*.png`` from the numbers in a folder, and those of variants.

    The page tells of all variants whose numbers are there.
    """
    (main,) = read_numbers(folder, f"{_PAGE}.json")
    variants = [json.loads(p.read_text()) for p in sorted(folder.glob(f"{_PAGE}-*.json"))]
    means, deviations, errors = (
        pages.frame(main[key]) for key in ("mean", "standard_deviation", "error")
    )
    four = list(paper.ALGORITHMS)
    printed = paper.MEANS.loc[means.index, four]
    comparisons = []
    for title, suffix, rows in (
        ("The paper's four algorithms", "ranks", paper.ALGORITHMS),
        ("The same, if BAdaCost decides by minimum expected cost", "ranks-bayes",
         (*paper.ALGORITHMS[:-1], _BAYES)),
        ("All rows", "ranks-all", None),
    ):  # fmt: skip
        comparison = compare(means, rows)
        if comparison is not None:
            picture = f"{_PAGE}-{suffix}.png"
            comparison.save_diagram(folder / picture, alpha=0.10)
            comparisons.append((title, comparison, picture))
    return pages.write_page(
        folder / f"{_PAGE}.md",
        "uci.md",
        **main,
        all_rows=table(means.map(short) + " ± " + deviations.map(short), means),
        mistakes=table((100 * errors).map("{:.1f}".format), errors),
        four=four,
        beside_paper=table(means[four].map(short) + " (" + printed.map(short) + ")", means[four]),
        lost=[losses(means[four], _OURS), losses(means, _OURS)],
        comparisons=comparisons,
        variants=[main, *variants],
        readings=READINGS,
    )
