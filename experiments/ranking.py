"""Comparison of algorithms over data sets by their ranks, against one of them: the reference.

On every data set the cheapest algorithm has rank 1. Friedman's test asks whether the average ranks
could be chance, Bonferroni-Dunn's which algorithms differ from the reference [1]_.

References
----------
.. [1] J. Demsar (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
   Machine Learning Research 7, 1-30.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scikit_posthocs
from scipy import stats

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_number
from experiments.pages import render, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.05, 0.10)


class RankTest(NamedTuple):
    """Statistic and p-value of a test of equal ranks."""

    statistic: float
    p_value: float


@dataclass(frozen=True, eq=False)
class RankComparison:
    """Ranks of k algorithms on several data sets and the tests made on them.

    Attributes
    ----------
    names : tuple of k str
        The algorithms.
    reference : str
        The algorithm the others are compared with.
    ranks : ndarray of shape (n_sets, k)
        Rank of each algorithm on each data set, 1 for the lowest cost; equal costs share ranks.

    Examples
    --------
    >>> from experiments.paper import MEANS
    >>> comparison = RankComparison.of(MEANS)
    >>> {name: round(rank, 2) for name, rank in comparison.average_ranks.items()}
    {'AdaC2.M1': 3.33, 'MultiBoost': 2.92, 'Lp-CSB': 2.33, 'BAdaCost': 1.42}
    >>> round(comparison.critical_difference(0.05), 4)
    1.2617
    >>> comparison.significantly_worse(0.05)
    ('AdaC2.M1', 'MultiBoost')
    """

    names: tuple[str, ...]
    reference: str
    ranks: FloatArray

    @classmethod
    def of(cls, costs: pd.DataFrame, reference: str = "BAdaCost") -> RankComparison:
        """Rank the algorithms, the columns of `costs`, on the data sets, its lines."""
        names = tuple(costs.columns)
        if reference not in names:
            raise ValueError(f"reference must be one of {names!r}; got {reference!r}.")
        if len(names) < 3:
            raise ValueError("ranks compare at least 3 algorithms: use scipy.stats.wilcoxon.")
        if len(costs) < 2:
            raise ValueError(f"ranks need at least 2 data sets; got {len(costs)}.")
        table = costs.to_numpy(dtype=np.float64)
        for row, column in np.argwhere(~np.isfinite(table)):
            raise ValueError(
                f"the cost of {names[column]!r} on {costs.index[row]!r} is {table[row, column]}: "
                "drop the data set or the algorithm, or finish its run."
            )
        ranks = stats.rankdata(table, axis=1)
        ranks.flags.writeable = False
        return cls(names, reference, ranks)

    @property
    def average_ranks(self) -> dict[str, float]:
        """Average rank of each algorithm over the data sets."""
        return dict(zip(self.names, self.ranks.mean(axis=0).tolist(), strict=True))

    @property
    def gaps(self) -> dict[str, float]:
        """How much higher each average rank is than the reference's."""
        averages = self.average_ranks
        return {name: rank - averages[self.reference] for name, rank in averages.items()}

    @property
    def friedman(self) -> RankTest:
        """Friedman's chi-square test that all algorithms are equal, corrected for ties."""
        if (self.ranks == self.ranks[0, 0]).all():  # ties everywhere: scipy would divide by zero
            return RankTest(0.0, 1.0)
        statistic, p_value = stats.friedmanchisquare(*self.ranks.T)
        return RankTest(max(float(statistic), 0.0), float(p_value))

    @property
    def iman_davenport(self) -> RankTest:
        """The F version of Friedman's test, which is less conservative.

        The statistic is infinite when the data sets agree on all ranks.
        """
        n_sets, k = self.ranks.shape
        statistic = self.friedman.statistic
        if statistic > 0 and (self.ranks == self.ranks[0]).all():
            return RankTest(np.inf, 0.0)
        ratio = (n_sets - 1) * statistic / (n_sets * (k - 1) - statistic)
        return RankTest(ratio, float(stats.f.sf(ratio, k - 1, (k - 1) * (n_sets - 1))))

    @property
    def p_values(self) -> dict[str, float]:
        """Bonferroni-Dunn p-value of each algorithm but the reference, adjusted for their number.

        It is below a level where the average ranks differ by more than its critical difference.
        """
        pairs = scikit_posthocs.posthoc_siegel_friedman(self.ranks).to_numpy()
        adjusted = np.minimum(pairs[self.names.index(self.reference)] * (len(self.names) - 1), 1.0)
        named = dict(zip(self.names, adjusted.tolist(), strict=True))
        return {name: p for name, p in named.items() if name != self.reference}

    def critical_difference(self, alpha: float = 0.05) -> float:
        """Return how far an average rank must be from the reference's to differ significantly.

        It is ``z * sqrt(k (k + 1) / (6 n_sets))`` with the normal quantile z at
        ``1 - alpha / (2 (k - 1))``.
        """
        check_number("alpha", alpha, low=0, high=1, open_low=True)
        n_sets, k = self.ranks.shape
        quantile = stats.norm.isf(alpha / (2 * (k - 1)))
        return float(quantile * np.sqrt(k * (k + 1) / (6 * n_sets)))

    def significantly_worse(self, alpha: float = 0.05) -> tuple[str, ...]:
        """Return the algorithms whose ranks are significantly higher than the reference's."""
        limit = self.critical_difference(alpha)
        return tuple(name for name, gap in self.gaps.items() if gap >= limit)

    def significantly_better(self, alpha: float = 0.05) -> tuple[str, ...]:
        """Return the algorithms whose ranks are significantly lower than the reference's."""
        limit = self.critical_difference(alpha)
        return tuple(name for name, gap in self.gaps.items() if -gap >= limit)

    def verdict(self, name: str, alpha: float) -> str:
        """Say whether an algorithm is significantly worse or better than the reference."""
        if name in self.significantly_worse(alpha):
            return "worse"
        return "better" if name in self.significantly_better(alpha) else "no"

    def plot(self, ax: Axes | None = None, alpha: float = 0.10) -> Axes:
        """Draw the critical difference diagram around the reference.

        Average ranks lie on the axis, the best on the left. The band reaches one critical
        difference to both sides of the reference; a bar links the reference to the algorithms
        that do not differ from it significantly.
        """
        limit = self.critical_difference(alpha)
        averages, k = self.average_ranks, len(self.names)
        if ax is None:
            size = (7 + 0.3 * max(k - 4, 0), 1.2 + 0.16 * k)
            ax = plt.subplots(figsize=size, layout="constrained")[1]
        linked = np.abs(list(self.gaps.values())) < limit
        links = pd.DataFrame(np.outer(linked, linked), self.names, self.names, dtype=float)
        scikit_posthocs.critical_difference_diagram(
            averages,
            links,  # read as p-values: 1 where a bar may link two algorithms, 0 elsewhere
            ax=ax,
            label_fmt_left="{label} ({rank:.2f}) ",
            label_fmt_right=" ({rank:.2f}) {label}",
            color_palette={n: "C0" if n == self.reference else "black" for n in self.names},
            marker_props={"clip_on": False},
            elbow_props={"linewidth": 1, "clip_on": False},
            crossbar_props={"color": "C0", "linewidth": 4},
            text_h_margin=max(min(averages.values()) - 1, k - max(averages.values())) + 0.02 * k,
        )
        centre = averages[self.reference]
        ax.axvspan(max(centre - limit, 1), min(centre + limit, k), color="C0", alpha=0.12, lw=0)
        ax.set(xlim=(1, k), xticks=range(1, k + 1, 1 + k // 12))
        ax.set_xlabel(
            f"average rank; band: within {limit:.2f} of {self.reference} "
            f"(Bonferroni-Dunn, alpha = {alpha:g})",
            labelpad=8,
        )
        return ax

    def save_diagram(self, path: Path, alpha: float) -> None:
        """Draw the diagram into a file."""
        save_figure(self.plot(alpha=alpha).figure, path, bbox_inches="tight")

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain numbers, for JSON; an infinite statistic is None."""
        ratio = self.iman_davenport
        return {
            "reference": self.reference,
            "n_sets": len(self.ranks),
            "average_ranks": self.average_ranks,
            "friedman": self.friedman._asdict(),
            "iman_davenport": {
                "statistic": ratio.statistic if np.isfinite(ratio.statistic) else None,
                "p_value": ratio.p_value,
            },
            "p_values": self.p_values,
            "critical_differences": {f"{a:.2f}": self.critical_difference(a) for a in LEVELS},
            "significantly_worse": {f"{a:.2f}": [*self.significantly_worse(a)] for a in LEVELS},
            "significantly_better": {f"{a:.2f}": [*self.significantly_better(a)] for a in LEVELS},
        }

    def to_markdown(self) -> str:
        """Return a paragraph with the tests and a table of the algorithms, the best rank first.

        >>> from experiments.paper import MEANS
        >>> print(RankComparison.of(MEANS).to_markdown())
        Average ranks of 4 algorithms on 12 data sets, 1 for the lowest cost.
        Friedman's chi-square is 14.90 (p = 0.0019), Iman and Davenport's F 7.77 (p = 0.00047).
        Critical differences to BAdaCost (Bonferroni-Dunn): 1.2617 at 0.05 and 1.1216 at 0.10.
        <BLANKLINE>
        | algorithm | average rank | difference | p | significant at 0.05 | at 0.10 |
        |---|---:|---:|---:|---|---|
        | **BAdaCost** | 1.42 | | | | |
        | Lp-CSB | 2.33 | +0.92 | 0.25 | no | no |
        | MultiBoost | 2.92 | +1.50 | 0.013 | worse | worse |
        | AdaC2.M1 | 3.33 | +1.92 | 0.00083 | worse | worse |
        """
        return render("ranks.md", comparison=self, levels=LEVELS).rstrip("\n")
