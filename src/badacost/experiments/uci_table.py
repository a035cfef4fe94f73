"""The table of the UCI experiment: average costs by data set, algorithm and fold."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from badacost.arrays import FloatArray
from badacost.experiments import paper
from badacost.experiments.ranking import RankComparison
from badacost.experiments.uci import Settings, rows_of

UNIT = 1e-4  # of the costs in the table, as in the paper
TITLES = {
    "car": "CarEval", "chess": "Chess", "isolet": "Isolet", "satimage": "SatImage",
    "letter": "Letter", "shuttle": "Shuttle", "cmc": "Cont.Meth.", "cnae9": "CNAE9",
    "optdigits": "OptDigits", "pendigits": "PenDigits", "segmentation": "Segmenta.",
    "waveform": "Waveform",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class UCITable:
    """Average costs of all rows on all folds, from the header and the records of a finished run."""

    header: dict[str, Any]
    records: list[dict[str, Any]]

    @property
    def variant(self) -> str:
        """Name of the differences from the main experiment, see `Settings.variant`."""
        return Settings(**self.header["settings"]).variant

    @property
    def data_sets(self) -> list[str]:
        """Data sets, in the order of the settings."""
        return list(self.header["settings"]["data_sets"])

    @property
    def rows(self) -> list[str]:
        """Names of the algorithms, in the order of the contenders."""
        return list(rows_of(tuple(self.header["settings"]["contenders"])))

    def fold_costs(self, *, largest_is_one: bool = False) -> dict[str, dict[str, FloatArray]]:
        """Costs by data set, row and fold, in the unit of the table.

        With `largest_is_one` each cost matrix is scaled so that its largest entry is one; otherwise
        its entries are shares of the samples of a class.
        """
        scale = self._scales() if largest_is_one else {}
        n_folds = self.header["settings"]["n_folds"]
        costs = {name: {row: np.empty(n_folds) for row in self.rows} for name in self.data_sets}
        for record in self.records:
            name, fold = record["data_set"], record["fold"]
            for row, found in record.get("rows", {}).items():
                costs[name][row][fold] = found["cost"] * scale.get((name, fold), 1.0) / UNIT
        return costs

    def _scales(self) -> dict[tuple[str, int], float]:
        return {
            (record["data_set"], record["fold"]): 1.0 / np.max(record["costs"])
            for record in self.records
            if not record["contender"]
        }

    def means(self, *, largest_is_one: bool = False) -> dict[str, dict[str, float]]:
        """Average cost by data set and row, in the unit of the table."""
        return {
            name: {row: float(folds.mean()) for row, folds in rows.items()}
            for name, rows in self.fold_costs(largest_is_one=largest_is_one).items()
        }

    def deviations(self) -> dict[str, dict[str, float]]:
        """Standard deviation over the folds by data set and row, in the unit of the table."""
        return {
            name: {row: float(folds.std(ddof=1)) for row, folds in rows.items()}
            for name, rows in self.fold_costs().items()
        }

    def errors(self) -> dict[str, dict[str, float]]:
        """Share of mistakes by data set and row."""
        found: dict[str, dict[str, list[float]]] = {name: {} for name in self.data_sets}
        for record in self.records:
            for row, result in record.get("rows", {}).items():
                found[record["data_set"]].setdefault(row, []).append(result["error"])
        return {name: {row: float(np.mean(rows[row])) for row in self.rows}
                for name, rows in found.items()}  # fmt: skip

    def seconds(self) -> dict[str, float]:
        """Time of all fits by contender, and of the cost matrices."""
        total: Counter[str] = Counter()
        for record in self.records:
            total[record["contender"] or "cost matrices"] += record["seconds"]
        return dict(total)

    def comparison(
        self, rows: Iterable[str] | None = None, reference: str = "BAdaCost"
    ) -> RankComparison | None:
        """Rank test of some rows, all by default; None where there is too little to compare."""
        names = [row for row in self.rows if rows is None or row in rows]
        if len(self.data_sets) < 2 or len(names) < 3 or reference not in names:
            return None
        return RankComparison.of(self.means(), names, reference)

    @property
    def paper_rows(self) -> list[str]:
        """Those rows that are in the paper's table as well."""
        return [row for row in paper.ALGORITHMS if row in self.rows]

    def distance_to_paper(self, *, largest_is_one: bool) -> dict[str, float]:
        """Median factor between our costs and the paper's, by row; one is agreement."""
        means = self.means(largest_is_one=largest_is_one)
        return {
            row: float(
                np.exp(
                    np.median(
                        [
                            abs(np.log(means[name][row] / paper.MEANS[name][row]))
                            for name in self.data_sets
                            if means[name][row] > 0
                        ]
                        or [np.inf]
                    )
                )
            )
            for row in self.paper_rows
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, for JSON."""
        comparisons = {"all": self.comparison(), "paper": self.comparison(paper.ALGORITHMS)}
        folds = self.fold_costs()
        return {
            **self.header,
            "unit": UNIT,
            "mean": self.means(),
            "standard_deviation": self.deviations(),
            "folds": {n: {r: f.tolist() for r, f in rows.items()} for n, rows in folds.items()},
            "error": self.errors(),
            "paper": {name: paper.MEANS[name] for name in self.data_sets},
            "distance_to_paper": {
                "lambda 1": self.distance_to_paper(largest_is_one=False),
                "largest cost 1": self.distance_to_paper(largest_is_one=True),
            },
            "ranks": {key: found.to_dict() for key, found in comparisons.items() if found},
            "seconds": self.seconds(),
        }

    def to_csv(self) -> str:
        """One line for each data set, row and fold."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["data_set", "algorithm", "fold", "cost"])
        for name, rows in self.fold_costs().items():
            for row, folds in rows.items():
                writer.writerows([name, row, i, float(c) * UNIT] for i, c in enumerate(folds))
        return text.getvalue()

    def to_markdown(self) -> str:
        """All rows, the cheapest of each data set in bold."""
        means, deviations = self.means(), self.deviations()
        cells = {
            name: {row: f"{short(means[name][row])} ± {short(deviations[name][row])}"
                   for row in self.rows}
            for name in self.data_sets
        }  # fmt: skip
        return markdown_table(cells, self.rows, cheapest(means, self.rows))


def cheapest(means: dict[str, dict[str, float]], rows: list[str]) -> dict[str, str]:
    """The row of minimum cost for each data set."""
    return {name: min(rows, key=lambda row: means[name][row]) for name in means}


def short(value: float) -> str:
    """Three digits of a number."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def markdown_table(
    cells: dict[str, dict[str, str]], columns: list[str], bold: dict[str, str]
) -> str:
    """A line for each data set; `bold` names the column to stress in each."""
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name, row in cells.items():
        shown = [f"**{row[c]}**" if bold.get(name) == c else row[c] for c in columns]
        lines.append(f"| {TITLES.get(name, name)} | " + " | ".join(shown) + " |")
    return "\n".join(lines)
