"""The page that tells how the contest with the rivals went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from badacost.experiments.journal import Journal
from badacost.experiments.ranking import RankComparison
from badacost.experiments.rival_contenders import (
    CONTENDERS,
    CONTROL,
    MAX_ROUNDS,
    N_CROSS_FITS,
    N_FOLDS,
    PATIENCE,
)
from badacost.experiments.rivals import FEATURES_DRAWN, KINDS, N_BINS, TEST_SHARE, task_of
from badacost.experiments.uci_table import TITLES, cheapest, markdown_table, short

_PAGE = "rivals"
_RESEARCH = "rivals-research.md"
_PEERS = ("CatBoost", "LightGBM")
Means = dict[str, dict[str, float]]  # by data set or cell, and contender


@dataclass(frozen=True, eq=False)
class RivalTable:
    """Means over the splits, of the contenders that have results on all splits of all data sets.

    Attributes
    ----------
    header : dict
        The first line of the journal.
    records : list of dict
        Its results.
    """

    header: dict[str, Any]
    records: list[dict[str, Any]]

    @classmethod
    def read(cls, path: Path, header: dict[str, Any]) -> RivalTable:
        """Read a journal; without the file there are no records."""
        return cls(header, Journal(path, header).records if path.exists() else [])

    @cached_property
    def data_sets(self) -> list[str]:
        """Data sets, in the order of the paper."""
        return [name for name in TITLES if any(r["data_set"] == name for r in self.records)]

    @cached_property
    def n_splits(self) -> int:
        """Splits of each data set."""
        return len({record["split"] for record in self.records})

    @cached_property
    def contenders(self) -> list[str]:
        """Names of the contenders with all results, the control first."""
        done: dict[str, set[tuple[str, int, int]]] = {name: set() for name in CONTENDERS}
        for data_set, split, contender, n_threads in map(task_of, self.records):
            done[contender].add((data_set, split, n_threads))
        every = set().union(*done.values())
        return [name for name in CONTENDERS if done[name] and done[name] == every]

    @property
    def unfinished(self) -> list[str]:
        """Names of those with some results only."""
        started = {record["contender"] for record in self.records}
        return [name for name in CONTENDERS if name in started and name not in self.contenders]

    @cached_property
    def costs(self) -> Means:
        """Average cost by cell, which is a data set with a kind of costs."""
        return {
            cell: self._means(name, self.contenders, "costs", kind)
            for cell, (name, kind) in self.cells.items()
        }

    @cached_property
    def cells(self) -> dict[str, tuple[str, str]]:
        """Data set and kind of costs by title."""
        return {
            f"{TITLES[name]}, {kind}": (name, kind) for name in self.data_sets for kind in KINDS
        }

    @property
    def rank_in_sets(self) -> Means:
        """Average over the kinds of costs of the rank, by data set."""
        comparison = self.comparison(self.costs)
        ranks = comparison.ranks.reshape(len(self.data_sets), len(KINDS), -1)
        return {
            name: dict(zip(comparison.names, row, strict=True))
            for name, row in zip(self.data_sets, ranks.mean(axis=1).tolist(), strict=True)
        }

    def measure(self, key: str) -> Means:
        """Average log-loss or calibration error, of those contenders that have one."""
        return {name: self._means(name, self.with_probabilities, key) for name in self.data_sets}

    @property
    def with_probabilities(self) -> list[str]:
        """Those contenders that do not decide by a rule of their own."""
        return [name for name in self.contenders if not CONTENDERS[name].own_rule]

    def seconds(self, step: str, clock: str, n_threads: int = 1) -> dict[str, float]:
        """Total time of all fits or predictions by contender."""
        return {
            name: sum(r[step][clock] for r in self._of(name) if r["threads"] == n_threads)
            for name in self.contenders
        }

    def n_folds(self, contender: str) -> list[int]:
        """Folds of each calibration."""
        return [record["n_folds"] for record in self._of(contender)]

    @property
    def versions(self) -> dict[str, str]:
        """Version of each package."""
        packages = {CONTENDERS[r["contender"]].package: r["version"] for r in self.records}
        return self.header["versions"] | dict(sorted(packages.items()))

    def comparison(self, table: Means) -> RankComparison:
        """Rank test of a table; the control, or else its first contender, is the reference."""
        names = list(next(iter(table.values())))
        return RankComparison.of(table, names, CONTROL if CONTROL in names else names[0])

    @property
    def can_compare(self) -> bool:
        """Whether there is enough for rank tests."""
        return len(self.data_sets) > 1 and len(self.with_probabilities) > 2

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, for JSON."""
        found: dict[str, Any] = {
            **self.header,
            "versions": self.versions,
            "costs": self.costs,
            "log_loss": self.measure("log_loss"),
            "calibration_error": self.measure("calibration_error"),
            "seconds": {
                f"{step}, {clock}": self.seconds(step, clock)
                for step in ("fit", "predict")
                for clock in ("cpu", "wall")
            },
        }
        if self.can_compare:
            found["ranks"] = {
                "costs": self.comparison(self.costs).to_dict(),
                "costs by data set": self.comparison(self.rank_in_sets).to_dict(),
                "log_loss": self.comparison(self.measure("log_loss")).to_dict(),
            }
        return found

    def _of(self, contender: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["contender"] == contender]

    def _means(self, name: str, contenders: list[str], *keys: str) -> dict[str, float]:
        """Mean over the splits of a data set, by contender; keys lead to what is averaged."""
        return {
            contender: float(
                np.mean(
                    [reduce(getitem, keys, r) for r in self._of(contender) if r["data_set"] == name]
                )
            )
            for contender in contenders
        }


def write_report(table: RivalTable, timing: RivalTable, folder: Path) -> None:
    """Write the page, the numbers and the diagram: ``rivals.md``, ``.json`` and ``-ranks.png``.

    A page that tells what was tried, ``rivals-research.md``, is linked if it is beside them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = table.to_dict() | {"timing": _thread_times(timing)}
    (folder / f"{_PAGE}.json").write_text(json.dumps(numbers, indent=1) + "\n")
    if table.can_compare:
        figure: Any = table.comparison(table.costs).plot(alpha=0.05).figure
        figure.savefig(folder / f"{_PAGE}-ranks.png", dpi=120, bbox_inches="tight")
    has_research = (folder / _RESEARCH).exists()
    (folder / f"{_PAGE}.md").write_text(_page(table, timing, has_research))


def _page(table: RivalTable, timing: RivalTable, has_research: bool) -> str:
    parts = [
        "# The contest with the rivals",
        "Written by `badacost experiment rivals`. What decisions of minimum expected cost cost "
        "under the probabilities of today's classifiers, all with default parameters.",
        f"The defaults of {CONTROL} were chosen on other splits of the same data sets: [what was "
        f"tried]({_RESEARCH}), and what failed. Those of the others were not."
        if has_research
        else "",
        _protocol(table),
        _left_out(table),
    ]
    if table.can_compare:
        parts += ["## Ranks by cost", _ranks_by_cost(table)]
        if CONTROL in table.contenders:
            parts += ["## One against one", _pairs(table)]
        parts += ["## Ranks by log-loss", _ranks_by_log_loss(table)]
    parts += ["## Probabilities and time", _summary(table)]
    if timing.contenders:
        parts += ["## One thread and two", _threads(timing)]
    parts += ["## Who is cheapest", _winners(table)]
    if CONTROL in table.contenders:
        parts += [f"## Where {CONTROL} loses", _losses(table)]
    parts += ["## All costs", _all_costs(table)]
    parts += ["## Log-loss by data set", _log_losses(table)]
    versions = ", ".join(f"{name} {number}" for name, number in table.versions.items())
    parts.append(f"Seed {table.header['settings']['seed']}; {versions}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _protocol(table: RivalTable) -> str:
    settings = table.header["settings"]
    drawn = ", ".join(f"{count} of {TITLES[name]}" for name, count in FEATURES_DRAWN.items())
    rounds = "" if settings["n_rounds"] is None else f" of {settings['n_rounds']} rounds"
    return (
        f"Protocol: {len(table.data_sets)} UCI data sets, {table.n_splits} splits of each. A split "
        f"draws at most {settings['max_rows']} samples, {100 - 100 * TEST_SHARE:.0f} % of them "
        f"for training and {100 * TEST_SHARE:.0f} % for the test, stratified; a class of which a "
        "single sample was drawn is in the training part only, a class without samples does not "
        f"count. Features are all, but {drawn} are drawn for each split: the time of CatBoost "
        "grows with features, bins and classes, not with samples, and with all of them it would be "
        "half an hour for one fit. Three kinds of costs are charged for each split, on the same "
        "probabilities: *random*, uniform from 0.5 to 10; *ordinal*, 5 for each class that the "
        "decision is too low and 1 for each class that it is too high, in the order of the sorted "
        "names (natural in few of the sets, the same for all contenders); and *one class*, 20 for "
        "mistakes about a class drawn at random, 1 for others. Splits and costs are the same for "
        f"all contenders. Fits{rounds} have default parameters and one thread. BAdaCost is fitted "
        "to each kind of costs, by its own rule and, as *bayes*, by minimum expected cost; its "
        "times are those of one fit, its log-loss the mean of the three. *Calibrated* is a "
        f"temperature from {N_FOLDS} folds (of CatBoost, to save time, from one of the {N_FOLDS}: "
        "a single number needs few samples) before the fit to all samples. *Cross-fitted* is "
        f"LightGBM fitted without each of {N_CROSS_FITS} folds, as CostBoost is, up to "
        f"{MAX_ROUNDS} rounds with early stopping on the fold after {PATIENCE} rounds without "
        f"progress, and the mean of the raw scores. {_calibrations(table)}"
    )


def _calibrations(table: RivalTable) -> str:
    """How often rare classes allowed fewer folds."""
    folds = next((table.n_folds(n) for n in table.contenders if n.endswith("calibrated")), [])
    fewer, none = sum(1 < n < N_FOLDS for n in folds), sum(n < 2 for n in folds)
    if not fewer + none:
        return ""
    return (
        f"Rare classes left fewer folds for the calibration in {fewer} of {len(folds)} splits, and "
        f"none, hence no calibration, in {none}."
    )


def _left_out(table: RivalTable) -> str:
    if not table.unfinished:
        return ""
    return f"Not finished, and left out: {', '.join(table.unfinished)}."


def _ranks_by_cost(table: RivalTable) -> str:
    comparison = table.comparison(table.costs)
    return "\n\n".join(
        [
            f"Each of the {len(table.costs)} combinations of a data set and a kind of costs counts "
            "as a data set here; means over the splits are ranked.",
            comparison.to_markdown(),
            f"![Average ranks and critical difference]({_PAGE}-ranks.png)",
            "The three kinds of costs on a data set share samples and probabilities, so that the "
            "test above takes them for more independent than they are. The strict test has one "
            "value for each data set, the average over the kinds of these ranks:",
            table.comparison(table.rank_in_sets).to_markdown(),
        ]
    )


def _pairs(table: RivalTable) -> str:
    """Signed-rank tests of the control against each of the others, corrected by Holm."""
    costs = table.comparison(table.costs)
    others = [name for name in costs.names if name != CONTROL]
    ratios = {
        name: np.array([row[name] / max(row[CONTROL], 1e-12) for row in table.costs.values()])
        for name in others
    }
    p_values = {
        name: float(wilcoxon(np.log(np.maximum(ratio, 1e-12)), alternative="greater").pvalue)
        for name, ratio in ratios.items()
    }
    corrected: dict[str, float] = {}
    so_far = 0.0
    for place, name in enumerate(sorted(others, key=p_values.__getitem__)):
        so_far = corrected[name] = max(so_far, min(1.0, (len(others) - place) * p_values[name]))
    cells = {
        name: {
            f"{CONTROL} is cheaper in": f"{(ratios[name] > 1.0).sum()} of {len(ratios[name])}",
            "its cost / ours, median": f"{np.median(ratios[name]):.2f}",
            "p": f"{corrected[name]:.2g}",
        }
        for name in sorted(others, key=lambda name: float(np.median(ratios[name])))
    }
    return (
        f"Ranks forget by how much. Wilcoxon's signed-rank test of the logarithm of the ratio of "
        f"costs, {CONTROL} against one other at a time, one-sided, with Holm's correction; again "
        "the kinds of costs on a data set are not independent.\n\n"
        + markdown_table(cells, [f"{CONTROL} is cheaper in", "its cost / ours, median", "p"], {})
    )


def _ranks_by_log_loss(table: RivalTable) -> str:
    return (
        "The log-loss takes the place of the cost; contenders without probabilities are left out."
        "\n\n" + table.comparison(table.measure("log_loss")).to_markdown()
    )


def _summary(table: RivalTable) -> str:
    """Means over the data sets, and total times on one thread."""
    losses, errors = table.measure("log_loss"), table.measure("calibration_error")
    fit, predict = table.seconds("fit", "cpu"), table.seconds("predict", "cpu")
    peers = [name for name in _PEERS if name in table.contenders]
    heads = ["log-loss", "calibration error", "fits, CPU-s", "predictions, CPU-s"]
    heads += [f"{step} / {peer}" for step in ("fits", "predictions") for peer in peers]
    cells: dict[str, dict[str, str]] = {}
    for name in sorted(table.contenders, key=lambda name: _mean(losses, name)):
        shown = [
            f"{_mean(part, name):.4f}" if _has(part, name) else "" for part in (losses, errors)
        ]
        shown += [short(fit[name]), short(predict[name])]
        shown += [short(step[name] / step[peer]) for step in (fit, predict) for peer in peers]
        cells[name] = dict(zip(heads, shown, strict=True))
    return (
        f"Means over the data sets of the log-loss (probabilities of at least 1e-15) and of the "
        f"expected calibration error (most probable class, {N_BINS} bins); CPU time of all "
        f"{len(table.data_sets) * table.n_splits} fits and of all predictions of the test parts, "
        "on one thread, and its ratio to others'.\n\n" + markdown_table(cells, heads, {})
    )


def _has(measures: Means, name: str) -> bool:
    return all(name in row for row in measures.values())


def _mean(measures: Means, name: str) -> float:
    """Mean over the data sets; infinite where there are none."""
    if not _has(measures, name):
        return float("inf")
    return float(np.mean([row[name] for row in measures.values()]))


def _thread_times(timing: RivalTable) -> dict[str, dict[str, float]]:
    """Wall time of all fits and predictions by contender and number of threads."""
    threads = sorted({record["threads"] for record in timing.records})
    columns = {
        f"{step}, {n} thread{'s' * (n > 1)}": timing.seconds(step, "wall", n)
        for step in ("fit", "predict")
        for n in threads
    }
    return {
        name: {head: column[name] for head, column in columns.items()} for name in timing.contenders
    }


def _threads(timing: RivalTable) -> str:
    times = _thread_times(timing)
    heads = list(next(iter(times.values())))
    cells = {name: {head: short(row[head]) for head in heads} for name, row in times.items()}
    return (
        f"Wall time in seconds, of the fits to one split of each of {len(timing.data_sets)} data "
        "sets and of the predictions of its test part.\n\n" + markdown_table(cells, heads, {})
    )


def _winners(table: RivalTable) -> str:
    best = cheapest(table.costs, table.contenders)
    cells = {
        name: {
            kind: f"{best[cell]} ({short(table.costs[cell][best[cell]])})"
            for cell, (of, kind) in table.cells.items()
            if of == name
        }
        for name in table.data_sets
    }
    return markdown_table(cells, list(KINDS), {})


def _losses(table: RivalTable) -> str:
    """List every cell in which another contender costs less than the control."""
    best, lines = cheapest(table.costs, table.contenders), []
    for cell, costs in table.costs.items():
        ours, lowest = costs[CONTROL], costs[best[cell]]
        if lowest < ours:
            more = f"{100 * (ours / lowest - 1):.1f} %" if lowest else "against nothing"
            lines.append(f"| {cell} | {short(ours)} | {best[cell]} | {short(lowest)} | {more} |")
    if not lines:
        return "Nowhere."
    head = f"| data set, costs | {CONTROL} | the cheapest | its cost | {CONTROL} costs more by |"
    intro = f"In {len(lines)} of {len(table.costs)} combinations:"
    return "\n".join([intro, "", head, "| --- | ---: | --- | ---: | ---: |", *lines])


def _all_costs(table: RivalTable) -> str:
    cells = {
        cell: {name: short(cost) for name, cost in row.items()} for cell, row in table.costs.items()
    }
    best = cheapest(table.costs, table.contenders)
    return "Means over the splits, the cheapest in bold.\n\n" + markdown_table(
        cells, table.contenders, best
    )


def _log_losses(table: RivalTable) -> str:
    losses, names = table.measure("log_loss"), table.with_probabilities
    cells = {
        name: {contender: f"{loss:.4f}" for contender, loss in row.items()}
        for name, row in losses.items()
    }
    return "Means over the splits, the lowest in bold.\n\n" + markdown_table(
        cells, names, cheapest(losses, names)
    )
