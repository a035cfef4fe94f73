"""Numbers and page of the contest with the rivals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from experiments import contenders, pages
from experiments.contenders import CONTENDERS, CONTROL
from experiments.pages import TITLES, losses, mean, read_numbers, short, table
from experiments.ranking import RankComparison
from experiments.rivals import FEATURES_DRAWN, KINDS, N_BINS, TEST_SHARE
from experiments.tasks import Record

_PAGE = "rivals"
_RESEARCH = "rivals-research.md"
_PEERS = ("CatBoost", "LightGBM")
_STEPS, _CLOCKS = ("fit", "predict"), ("cpu", "wall")


def numbers(header: dict[str, Any], records: list[Record], timing: list[Record]) -> dict[str, Any]:
    """Return everything as plain numbers, for JSON: means over the splits, and total times.

    They are of the contenders that have results on all splits of all data sets. `timing` are the
    records of the fits on several threads.
    """
    frame = pd.json_normalize(records)
    names = _finished(frame)
    costs = pd.DataFrame(
        {
            f"{TITLES[data_set]}, {kind}": _means(frame, f"costs.{kind}", names).loc[data_set]
            for data_set in _data_sets(frame)
            for kind in KINDS
        }
    ).T
    with_probabilities = [name for name in names if not CONTENDERS[name].own_rule]
    measures = {
        key: _means(frame, key, with_probabilities) for key in ("log_loss", "calibration_error")
    }
    packages = {CONTENDERS[r["contender"]].package: r["version"] for r in records}
    calibrated = [name for name in names if name.endswith("calibrated")][:1]
    found = {
        **header,
        "versions": header["versions"] | dict(sorted(packages.items())),
        "n_splits": frame["split"].nunique(),
        "unfinished": [name for name in CONTENDERS if name in set(frame["contender"]) - {*names}],
        "calibration_folds": [r["n_folds"] for r in records if r["contender"] in calibrated],
        "costs": costs.to_dict("index"),
        **{key: measure.to_dict("index") for key, measure in measures.items()},
        "seconds": {
            f"{step}, {clock}": _seconds(frame, f"{step}.{clock}", names)
            for step in _STEPS
            for clock in _CLOCKS
        },
    }
    if compared := _comparisons(costs, measures["log_loss"]):
        found["ranks"] = {key: comparison.to_dict() for key, comparison in compared.items()}
    return found | _thread_times(timing)


def _data_sets(frame: pd.DataFrame) -> list[str]:
    """Return the data sets, in the order of the paper."""
    return [name for name in TITLES if name in set(frame["data_set"])]


def _finished(frame: pd.DataFrame) -> list[str]:
    """Return the contenders with all results, the control first."""
    done = frame.groupby("contender").size()
    n_fits = len(frame[["data_set", "split", "threads"]].drop_duplicates())
    return [name for name in CONTENDERS if done.get(name) == n_fits]


def _means(frame: pd.DataFrame, key: str, names: list[str]) -> pd.DataFrame:
    """Return the mean over the splits by data set and contender."""
    means = frame.groupby(["data_set", "contender"])[key].agg(mean).unstack()
    return means.loc[_data_sets(frame), names]


def _seconds(frame: pd.DataFrame, key: str, names: list[str]) -> dict[Any, float]:
    """Return the total time by contender."""
    return frame.groupby("contender")[key].sum()[names].to_dict()


def _thread_times(records: list[Record]) -> dict[str, Any]:
    """Return the wall time of all fits and predictions by contender and number of threads."""
    if not records:
        return {"timing": {}, "n_timed_sets": 0}
    frame = pd.json_normalize(records)
    names = _finished(frame)
    parts = {n: frame[frame["threads"] == n] for n in sorted({r["threads"] for r in records})}
    columns = {
        f"{step}, {n} thread{'s' * (n > 1)}": _seconds(part, f"{step}.wall", names)
        for step in _STEPS
        for n, part in parts.items()
    }
    times = pd.DataFrame(columns).loc[names].to_dict("index")
    return {"timing": times, "n_timed_sets": len(_data_sets(frame))}


def _comparisons(costs: pd.DataFrame, loss: pd.DataFrame) -> dict[str, RankComparison]:
    """Return rank tests against the control if it is there; none where there is too little.

    The one by data set ranks the averages over the kinds of costs of the ranks by cost.
    """
    if len(loss) < 2 or loss.shape[1] < 3:
        return {}
    by_cost = _compare(costs)
    ranks = by_cost.ranks.reshape(len(loss), len(KINDS), -1).mean(axis=1)
    in_sets = pd.DataFrame(ranks, columns=by_cost.names)
    return {"costs": by_cost, "costs by data set": _compare(in_sets), "log_loss": _compare(loss)}


def _compare(costs: pd.DataFrame) -> RankComparison:
    return RankComparison.of(costs, CONTROL if CONTROL in costs else costs.columns[0])


def write_numbers(
    header: dict[str, Any], records: list[Record], timing: list[Record], folder: Path
) -> dict[str, Any]:
    """Write ``rivals.json``, and return the numbers."""
    found = numbers(header, records, timing)
    pages.write_numbers(folder / f"{_PAGE}.json", found, indent=1)
    return found


def write_page(folder: Path) -> Path:
    """Write ``rivals.md`` and ``rivals-ranks.png`` from the numbers in a folder.

    A page that tells what was tried, ``rivals-research.md``, is linked if it is beside them.
    """
    (found,) = read_numbers(folder, f"{_PAGE}.json")
    costs, loss, error, timing = (
        pages.frame(found[key]) for key in ("costs", "log_loss", "calibration_error", "timing")
    )
    comparisons = _comparisons(costs, loss)
    if comparisons:
        comparisons["costs"].save_diagram(folder / f"{_PAGE}-ranks.png", alpha=0.05)
    return pages.write_page(
        folder / f"{_PAGE}.md",
        "rivals.md",
        **found,
        control=CONTROL,
        constants=vars(contenders),
        test_share=TEST_SHARE,
        n_bins=N_BINS,
        drawn=[f"{count} of {TITLES[name]}" for name, count in FEATURES_DRAWN.items()],
        research=_RESEARCH if (folder / _RESEARCH).exists() else None,
        comparisons=comparisons,
        pairs=table(_pairs(costs)) if comparisons and CONTROL in costs else "",
        summary=table(_summary(loss, error, found["seconds"])),
        threads=table(timing.map(short)) if len(timing) else "",
        winners=table(_winners(costs, list(loss.index))),
        lost=losses(costs, CONTROL) if CONTROL in costs else None,
        all_costs=table(costs.map(short), costs),
        losses=table(loss.map("{:.4f}".format), loss),
    )


def _pairs(costs: pd.DataFrame) -> pd.DataFrame:
    """Signed-rank tests of the control against each of the others, corrected by Holm."""
    ratios = costs.drop(columns=CONTROL).div(costs[CONTROL].clip(lower=1e-12), axis=0)
    logarithms: Any = np.log(ratios.clip(lower=1e-12))
    p_values = logarithms.apply(lambda column: wilcoxon(column, alternative="greater").pvalue)
    ordered = p_values.sort_values(kind="stable")
    corrected = (ordered * np.arange(len(ordered), 0, -1)).clip(upper=1.0).cummax()
    medians = ratios.median().sort_values(kind="stable")
    return pd.DataFrame(
        {
            f"{CONTROL} is cheaper in": (ratios > 1.0).sum().map(f"{{}} of {len(costs)}".format),
            "its cost / ours, median": medians.map("{:.2f}".format),
            "p": corrected.map("{:.2g}".format),
        }
    ).loc[medians.index]


def _summary(
    loss: pd.DataFrame, error: pd.DataFrame, seconds: dict[str, dict[str, float]]
) -> pd.DataFrame:
    """Means over the data sets, and total times on one thread and relative to others'."""
    fit, predict = (pd.Series(seconds[f"{step}, cpu"]) for step in _STEPS)
    means = pd.DataFrame({"log-loss": loss.mean(), "calibration error": error.mean()}, fit.index)
    shown = means.map("{:.4f}".format, na_action="ignore")
    shown["fits, CPU-s"] = fit.map(short)
    shown["predictions, CPU-s"] = predict.map(short)
    for title, times in (("fits", fit), ("predictions", predict)):
        for peer in _PEERS:
            if peer in times:
                shown[f"{title} / {peer}"] = (times / times[peer]).map(short)
    order = means["log-loss"].sort_values(kind="stable", na_position="last").index
    return shown.loc[order].fillna("")


def _winners(costs: pd.DataFrame, data_sets: list[str]) -> pd.DataFrame:
    """The cheapest contender by data set and kind of costs."""
    cheapest: Any = costs.idxmin(axis=1).astype(str) + " (" + costs.min(axis=1).map(short) + ")"
    cells = cheapest.to_numpy().reshape(-1, len(KINDS))
    return pd.DataFrame(cells, data_sets, KINDS)
