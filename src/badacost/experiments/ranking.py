"""Comparison of algorithms over data sets by their ranks, against one of them: the reference.

On every data set the cheapest algorithm has rank 1. Friedman's test asks whether the average ranks
could be chance, Bonferroni-Dunn's which algorithms differ from the reference [1]_.

References
----------
.. [1] J. Demsar (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
   Machine Learning Research 7, 1-30.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from badacost.arrays import FloatArray
from badacost.validation import check_number

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

    Build it from costs with `RankComparison.of`.

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
    >>> from badacost.experiments.paper import MEANS
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
    def of(
        cls,
        costs: Mapping[str, Mapping[str, float]] | ArrayLike,
        names: Sequence[str] | None = None,
        reference: str = "BAdaCost",
    ) -> RankComparison:
        """Rank the algorithms on every data set by their costs.

        Parameters
        ----------
        costs : mapping, DataFrame or array-like of shape (n_sets, k)
            Cost of each algorithm (columns) on each data set (rows): an array, a pandas or polars
            DataFrame with a column for each algorithm, or ``costs[data set][algorithm]``. At least
            2 data sets and 3 algorithms: two algorithms are better compared with
            `scipy.stats.wilcoxon`, which also uses the sizes of the differences.
        names : sequence of k str, optional
            The algorithms. An array needs them; elsewhere they select and order the algorithms,
            which by default are all.
        reference : str, default="BAdaCost"
            The algorithm the others are compared with, one of the names.

        Returns
        -------
        RankComparison
            Their ranks.

        Examples
        --------
        >>> costs = [[0.3, 0.2, 0.1], [5, 7, 5]]
        >>> RankComparison.of(costs, ["stump", "tree", "forest"], reference="forest").ranks
        array([[3. , 2. , 1. ],
               [1.5, 3. , 1.5]])
        """
        chosen = _algorithms(costs, names)
        _check_names(chosen, reference)
        table = _table(costs, chosen)
        _check_table(table, chosen)
        ranks = stats.rankdata(table, axis=1)
        ranks.flags.writeable = False
        return cls(chosen, reference, ranks)

    @property
    def average_ranks(self) -> dict[str, float]:
        """Average rank of each algorithm over the data sets."""
        return dict(zip(self.names, self.ranks.mean(axis=0).tolist(), strict=True))

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
        pairs = _extra("scikit_posthocs").posthoc_siegel_friedman(self.ranks).to_numpy()
        adjusted = np.minimum(pairs[self.names.index(self.reference)] * (len(self.names) - 1), 1.0)
        named = dict(zip(self.names, adjusted.tolist(), strict=True))
        return {name: p for name, p in named.items() if name != self.reference}

    def critical_difference(self, alpha: float = 0.05) -> float:
        """Return how far an average rank must be from the reference's to differ significantly.

        Parameters
        ----------
        alpha : float, default=0.05
            Significance level of the Bonferroni-Dunn test, between 0 and 1.

        Returns
        -------
        float
            ``z * sqrt(k (k + 1) / (6 n_sets))`` with the normal quantile z at
            ``1 - alpha / (2 (k - 1))``.

        Examples
        --------
        >>> costs = [[3, 2, 1], [5, 7, 4], [2, 6, 1]]
        >>> comparison = RankComparison.of(costs, ["stump", "tree", "forest"], "forest")
        >>> round(comparison.critical_difference(0.05), 4)
        1.8301
        """
        check_number("alpha", alpha, low=0, high=1, open_low=True)
        n_sets, k = self.ranks.shape
        quantile = stats.norm.isf(alpha / (2 * (k - 1)))
        return float(quantile * np.sqrt(k * (k + 1) / (6 * n_sets)))

    def significantly_worse(self, alpha: float = 0.05) -> tuple[str, ...]:
        """Return the algorithms whose ranks are significantly higher than the reference's.

        Parameters
        ----------
        alpha : float, default=0.05
            Significance level of the Bonferroni-Dunn test, between 0 and 1.

        Returns
        -------
        tuple of str
            Their names.

        Examples
        --------
        >>> costs = [[3, 2, 1], [7, 5, 4], [6, 2, 1], [5, 2, 1]]
        >>> comparison = RankComparison.of(costs, ["stump", "tree", "forest"], "forest")
        >>> comparison.significantly_worse(0.05)
        ('stump',)
        """
        return self._significant(alpha, sign=1)

    def significantly_better(self, alpha: float = 0.05) -> tuple[str, ...]:
        """Return the algorithms whose ranks are significantly lower than the reference's.

        Parameters
        ----------
        alpha : float, default=0.05
            Significance level of the Bonferroni-Dunn test, between 0 and 1.

        Returns
        -------
        tuple of str
            Their names.

        Examples
        --------
        >>> costs = [[3, 2, 1], [7, 5, 4], [6, 2, 1], [5, 2, 1]]
        >>> comparison = RankComparison.of(costs, ["stump", "tree", "forest"], "stump")
        >>> comparison.significantly_better(0.05)
        ('forest',)
        """
        return self._significant(alpha, sign=-1)

    def plot(self, ax: Axes | None = None, alpha: float = 0.10) -> Axes:
        """Draw the critical difference diagram around the reference.

        Average ranks lie on the axis, the best on the left. The band reaches one critical
        difference to both sides of the reference; a bar links the reference to the algorithms
        that do not differ from it significantly.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure of fitting size by default.
        alpha : float, default=0.10
            Significance level of the Bonferroni-Dunn test, between 0 and 1.

        Returns
        -------
        matplotlib Axes
            The diagram.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from badacost.experiments.paper import MEANS
        >>> ax = RankComparison.of(MEANS).plot()
        >>> ax.get_xlabel()
        'average rank; band: within 1.12 of BAdaCost (Bonferroni-Dunn, alpha = 0.1)'
        >>> plt.close(ax.figure)
        """
        limit = self.critical_difference(alpha)
        posthocs, pandas = _extra("scikit_posthocs"), _extra("pandas")
        averages, k = self.average_ranks, len(self.names)
        ax = _new_axes(k) if ax is None else ax
        linked = np.abs(list(self._gaps().values())) < limit
        links = pandas.DataFrame(np.outer(linked, linked), self.names, self.names, dtype=float)
        posthocs.critical_difference_diagram(
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

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain numbers, strings, lists and dictionaries.

        Returns
        -------
        dict
            Ready for JSON, with the levels 0.05 and 0.10; an infinite statistic is None.

        Examples
        --------
        >>> from badacost.experiments.paper import MEANS
        >>> RankComparison.of(MEANS).to_dict()["significantly_worse"]
        {'0.05': ['AdaC2.M1', 'MultiBoost'], '0.10': ['AdaC2.M1', 'MultiBoost']}
        """
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

        Returns
        -------
        str
            Markdown; the last columns say who differs from the reference at 0.05 and at 0.10.

        Examples
        --------
        >>> from badacost.experiments.paper import MEANS
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
        n_sets, k = self.ranks.shape
        chi_square, ratio = self.friedman, self.iman_davenport
        limits = " and ".join(f"{self.critical_difference(a):.4f} at {a:.2f}" for a in LEVELS)
        paragraph = (
            f"Average ranks of {k} algorithms on {n_sets} data sets, 1 for the lowest cost.\n"
            f"Friedman's chi-square is {chi_square.statistic:.2f} (p = {chi_square.p_value:.2g}), "
            f"Iman and Davenport's F {ratio.statistic:.2f} (p = {ratio.p_value:.2g}).\n"
            f"Critical differences to {self.reference} (Bonferroni-Dunn): {limits}."
        )
        levels = " | ".join(f"at {a:.2f}" for a in LEVELS)
        header = f"| algorithm | average rank | difference | p | significant {levels} |"
        rule = "|---|---:|---:|---:|" + "---|" * len(LEVELS)
        return "\n".join([paragraph, "", header, rule, *self._rows()])

    def _rows(self) -> list[str]:
        """Return the rows of the table, the best rank first."""
        gaps, p_values, rows = self._gaps(), self.p_values, []
        for name, rank in sorted(self.average_ranks.items(), key=lambda item: item[1]):
            if name == self.reference:
                rows.append(f"| **{name}** | {rank:.2f} |" + " |" * (2 + len(LEVELS)))
                continue
            verdicts = " | ".join(self._verdict(name, alpha) for alpha in LEVELS)
            cells = f"{rank:.2f} | {gaps[name]:+.2f} | {p_values[name]:.2g} | {verdicts}"
            rows.append(f"| {name} | {cells} |")
        return rows

    def _verdict(self, name: str, alpha: float) -> str:
        """Say whether an algorithm is significantly worse or better than the reference."""
        if name in self.significantly_worse(alpha):
            return "worse"
        return "better" if name in self.significantly_better(alpha) else "no"

    def _significant(self, alpha: float, sign: int) -> tuple[str, ...]:
        """Return the algorithms that differ significantly: 1 for worse ones, -1 for better ones."""
        limit = self.critical_difference(alpha)
        return tuple(name for name, gap in self._gaps().items() if sign * gap >= limit)

    def _gaps(self) -> dict[str, float]:
        """Return how much higher each average rank is than the reference's."""
        averages = self.average_ranks
        return {name: rank - averages[self.reference] for name, rank in averages.items()}


def _algorithms(costs: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names given, else those the costs bring with them."""
    if names is not None:
        return tuple(names)
    if isinstance(costs, Mapping):
        return tuple(dict.fromkeys(name for row in costs.values() for name in row))
    if hasattr(costs, "columns"):
        return tuple(costs.columns)
    raise ValueError("an array of costs has no names: pass the algorithms' as names.")


def _table(costs: Any, names: tuple[str, ...]) -> FloatArray:
    """Return the costs as an array with a row for each data set, a column for each name."""
    if isinstance(costs, Mapping):
        for data_set, row in costs.items():
            for name in names:
                if name not in row:
                    raise ValueError(f"costs has no {name!r} on {data_set!r}: add it or drop one.")
        costs = [[row[name] for name in names] for row in costs.values()]
    elif hasattr(costs, "columns"):
        unknown = [name for name in names if name not in costs.columns]
        if unknown:
            raise ValueError(f"costs has no column {unknown[0]!r}: its columns must be algorithms.")
        costs = costs[list(names)].to_numpy()
    return np.asarray(costs, dtype=np.float64)


def _check_names(names: tuple[Any, ...], reference: str) -> None:
    """Raise unless there are at least 3 different names, the reference among them."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"names must be strings that differ from each other; got {names!r}.")
    if reference not in names:
        raise ValueError(f"reference must be one of {names!r}; got {reference!r}.")
    if len(names) < 3:
        raise ValueError("ranks compare at least 3 algorithms: use scipy.stats.wilcoxon for two.")


def _check_table(table: FloatArray, names: tuple[str, ...]) -> None:
    """Raise unless there is a finite cost for each name on at least 2 data sets."""
    k = len(names)
    if table.ndim != 2 or table.shape[1] != k:
        raise ValueError(f"costs must have shape (n_sets, {k}) for {k} names; got {table.shape}.")
    if len(table) < 2:
        raise ValueError(f"ranks need at least 2 data sets; got {len(table)}.")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"the cost of {names[column]!r} in row {row} is {table[row, column]}: "
            "drop the data set or the algorithm, or finish its run."
        )


def _new_axes(k: int) -> Axes:
    """Return the axes of a new figure with room for k labels in two columns."""
    size = (7 + 0.3 * max(k - 4, 0), 1.2 + 0.16 * k)
    return _extra("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def _extra(module: str) -> Any:
    """Import a module of the experiments extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{module} is missing: install it with pip install "badacost[experiments]".'
        ) from error
