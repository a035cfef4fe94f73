"""What the decisions of a classifier cost: plain numbers first, then text and a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray
from badacost.cost_report import parts
from badacost.cost_report.comparison import WayCost, compare, own_ways, trained_without_costs
from badacost.cost_report.evidence import Evidence, gather, out_of_fold_cost
from badacost.cost_report.known_rows import count_known, known_rows_remark

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class CostReport:
    """What the decisions of a classifier cost, and what others would have cost.

    All attributes are plain numbers, texts, arrays, and tuples or small dataclasses of them.
    Matrices have the truth in rows and the answer in columns, classes in the order of
    ``classes_``.

    Attributes
    ----------
    model : str
        What the model is.
    labels : tuple of K str
        The classes.
    n_samples, n_costly : int
        Number of decisions, and of those that cost something.
    costs : ndarray of shape (K, K)
        The cost of each answer, ``C[truth, prediction]``; the mean where samples have costs of
        their own.
    counts, charged : ndarray of shape (K, K)
        How often each answer was given, and what that cost in all.
    ways : tuple of WayCost
        Average costs of ways to decide on these samples, with intervals. The first is the model;
        the best constant answer is among the others, and what was trained without costs if the
        training samples were given.
    at_fit : AtFit or None
        The model and rivals on held-out rows, as measured when the model was fitted.
    out_of_fold_cost : float or None
        What the training expected for each decision, if it was measured under the same costs.
    known_rows : str or None
        A warning, if the samples seem to be those of the training.
    has_own_prices, has_other_costs : bool
        Whether samples have costs of their own, and whether the model was fitted under other
        costs.
    asking : Asking or None
        What decisions cost if a person may be asked.
    curves : dict of str to tuple of float
        The average cost after each round.
    sensitivity : Sensitivity or None
        What changes if one cost is doubled or halved.
    reliability : Reliability or None
        How far the probabilities can be trusted; None if the model has none.
    importances : tuple of (str, float)
        Features and their importances, the largest first.
    settings : dict of str to str
        Parameters of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.cost_report import CostReport
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = BAdaCostClassifier(costs, n_estimators=5, max_depth=1).fit(X[::2], y[::2])
    >>> report = CostReport.from_estimator(model, X[1::2], y[1::2], train=(X[::2], y[::2]))
    >>> report.n_samples, report.average_cost < report.constant.average_cost
    (75, True)
    >>> report.counts.sum(axis=1)
    array([25, 25, 25])
    >>> "<h1>Irises</h1>" in report.to_html(title="Irises")
    True
    """

    model: str
    labels: tuple[str, ...]
    n_samples: int
    n_costly: int
    costs: FloatArray
    counts: NDArray[np.int64]
    charged: FloatArray
    ways: tuple[WayCost, ...]
    at_fit: parts.AtFit | None
    out_of_fold_cost: float | None
    known_rows: str | None
    has_own_prices: bool
    has_other_costs: bool
    asking: parts.Asking | None
    curves: Mapping[str, tuple[float, ...]]
    sensitivity: parts.Sensitivity | None
    reliability: parts.Reliability | None
    importances: tuple[tuple[str, float], ...]
    settings: Mapping[str, str]

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        *,
        costs: Any = None,
        train: tuple[Any, ArrayLike] | None = None,
        sample_cost: ArrayLike | None = None,
        abstain: float | None = None,
        feature_names: Sequence[Any] | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Measure what the decisions of a model cost.

        Parameters
        ----------
        model : fitted classifier
            Any with ``predict`` and ``classes_``: those of this package, a
            `badacost.MinimumCostClassifier`, a `badacost.tabular.TableClassifier`, or a pipeline
            that ends in one of them.
        X : array-like or data frame of n_samples rows
            Samples that the model was not trained on, as its ``predict`` takes them.
        y : array-like of shape (n_samples,)
            Their classes.
        costs : array-like of shape (K, K), mapping or data frame, optional
            ``C[truth, prediction]``: rows are the truth, in the order of ``classes_``. By default
            those of the model. The diagonal counts, too.
        train : tuple of X and y, optional
            What the model was trained on. Rivals that know no costs are fitted to it and decide on
            the samples, by their own rule and by minimum expected cost; and the curve of the
            training is added.
        sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), optional
            Costs of each sample, in the place of `costs`; see `badacost.metrics.average_cost`. A
            model that has `decide` decides by them.
        abstain : float, optional
            The cost of asking a person.
        feature_names : sequence of str, optional
            Names of the features, if neither model nor samples have them.
        random_state : int, default=0
            Seed of the resamples that intervals are from, and of the rivals.
        n_jobs : int, optional
            Threads for fitting the rivals; None is one, -1 is one for each core.
        progress : callable, optional
            Called with the number of steps that are done and the number of all steps.

        Returns
        -------
        CostReport
            The figures.

        Raises
        ------
        TypeError
            Where the model is no classifier.
        ValueError
            Where model, samples and costs do not fit together.
        """
        evidence = gather(
            model,
            X,
            y,
            costs=costs,
            train=train,
            feature_names=feature_names,
            sample_cost=sample_cost,
            abstain=abstain,
        )
        steps: dict[str, Callable[[], Any]] = {
            "ways": lambda: compare(
                evidence,
                own_ways(evidence) + trained_without_costs(evidence, random_state, n_jobs),
                random_state,
            ),
            "curves": lambda: parts.cost_curves(evidence),
            "sensitivity": lambda: parts.sensitivity(evidence),
            "known_rows": lambda: _known_rows(evidence),
        }
        figures = {}
        for done, (name, compute) in enumerate(steps.items(), start=1):
            figures[name] = compute()
            if progress is not None:
                progress(done, len(steps))
        return cls(
            model=figures["ways"][0].name,
            labels=evidence.labels,
            n_samples=len(evidence.truth),
            n_costly=int((evidence.incurred > 0).sum()),
            costs=evidence.costs,
            counts=evidence.confusion(evidence.answers),
            charged=evidence.confusion(evidence.answers, evidence.incurred),
            at_fit=parts.at_fit(evidence),
            out_of_fold_cost=out_of_fold_cost(evidence.estimator, evidence.costs),
            has_own_prices=evidence.decision_costs.per_sample,
            has_other_costs=parts.has_other_costs(evidence),
            asking=parts.asking(evidence),
            reliability=parts.reliability(evidence),
            importances=parts.importances(evidence),
            settings=parts.settings(evidence),
            **figures,
        )

    @property
    def average_cost(self) -> float:
        """What a decision of the model costs."""
        return self.ways[0].average_cost

    @property
    def total_cost(self) -> float:
        """What all its decisions cost."""
        return float(self.charged.sum())

    @cached_property
    def constant(self) -> WayCost:
        """The best constant answer, chosen on these very samples."""
        return next(way for way in self.ways if way.kind == "constant")

    @cached_property
    def rivals(self) -> tuple[WayCost, ...]:
        """What was trained without costs and decided on these samples, the cheapest first."""
        rivals = (way for way in self.ways if way.kind == "trained without costs")
        return tuple(sorted(rivals, key=lambda way: way.average_cost))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures in a form that JSON holds.

        Returns
        -------
        dict
            The attributes by their names, ``average_cost`` and ``total_cost``. Arrays and tuples
            are lists; a way to decide is a dict of its ``name``, ``kind``, ``average_cost``,
            ``interval``, ``error_rate``, ``saved`` (by the model, for each decision) and its
            ``saved_interval``.
        """
        headline = {"average_cost": self.average_cost, "total_cost": self.total_cost}
        return headline | parts.plain_values(asdict(self))

    def summary(self, currency: str | None = None) -> str:
        """Return what was found in a few lines of text.

        Parameters
        ----------
        currency : str, optional
            Unit of the costs, such as "€" or "EUR".

        Returns
        -------
        str
            The text; ``str(report)`` is the same without a unit.
        """
        from badacost.cost_report.words import summary

        return summary(self, currency)

    def to_html(self, *, title: str | None = None, currency: str | None = None) -> str:
        """Return a page of HTML, which holds all that it shows and loads nothing.

        Parameters
        ----------
        title : str, optional
            Title of the page.
        currency : str, optional
            Unit of the costs, such as "€" or "EUR".

        Returns
        -------
        str
            The page.
        """
        from badacost.cost_report.page import report_page

        return report_page(self, title, currency)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        currency: str | None = None,
    ) -> None:
        """Write the page of `to_html` to a file.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced once the new one is complete.
        title : str, optional
            Title of the page.
        currency : str, optional
            Unit of the costs, such as "€" or "EUR".
        """
        from badacost.html_page import write_page

        write_page(path, self.to_html(title=title, currency=currency))

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks: its styles stay inside."""
        from badacost.cost_report.page import framed_page

        return framed_page(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<CostReport of {self.n_samples:,} decisions at {self.average_cost:.4g} each>"


def _known_rows(evidence: Evidence) -> str | None:
    """Return a warning if samples are those of the training."""
    n_known = None
    known = evidence.training
    if known is not None:
        n_known = count_known(evidence.features, evidence.truth, known.features, known.truth)
    return known_rows_remark(evidence.model, len(evidence.truth), n_known)
