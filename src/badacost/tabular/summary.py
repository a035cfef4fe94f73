"""What decisions have cost, in a few figures that a model file can keep."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_number, check_sample_weight, positions_in
from badacost.costs.decisions import DecisionCosts
from badacost.costs.matrix import given_costs, plain
from badacost.io.model_file import refuse
from badacost.tabular.trials import average_and_error

MAX_RIVALS = 30
MAX_CLASSES = 2**16
_ERRORS_OF_DOUBT = 2.0
_MAX_LISTED = 5
_MAX_LENGTH = 200  # of names that the package gives
_MAX_LABEL_LENGTH = 10_000
_MAX_ROWS = 2**53
_MAX_FIGURE = sys.float_info.max
_FIGURES = ("average_cost", "total_cost", "constant_cost", "standard_error")


@dataclass(frozen=True)
class CostSummary:
    """What decisions have cost.

    Attributes
    ----------
    n_rows : int
        Number of decisions.
    average_cost, total_cost : float
        Cost of a decision, and of all of them, in the unit of the costs.
    error_rate : float
        Fraction of the decisions that are wrong, whatever they cost.
    constant_answer : str
        The class that is cheapest if it is the answer to everything.
    constant_cost : float
        What a decision costs then.
    savings : float or None
        Fraction of that cost that is saved; None where the constant answer is free.
    standard_error : float
        Standard error of the average cost.
    rivals : dict of str to float
        Average costs of other ways to decide on the same rows, if any were tried.
    rival_errors : dict of str to float
        Standard errors of the differences between these and the average cost.
    how : str
        How rows were set apart for it: "held out", "in 5-fold cross-validation".
    absent : list of str
        Classes of which there was no row: the figures say nothing about them.

    Examples
    --------
    >>> CostSummary.of([0, 0, 1, 1], [0, 1, 1, 1], [[0, 1], [5, 0]], classes=[0, 1]).average_cost
    0.25
    """

    n_rows: int
    average_cost: float
    total_cost: float
    error_rate: float
    constant_answer: str
    constant_cost: float
    savings: float | None
    standard_error: float = 0.0
    rivals: Mapping[str, float] = field(default_factory=dict)
    rival_errors: Mapping[str, float] = field(default_factory=dict)
    how: str = ""
    absent: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        costs: Any,
        *,
        classes: Any,
        sample_weight: ArrayLike | None = None,
        rivals: Mapping[str, ArrayLike] | None = None,
        how: str = "",
    ) -> Self:
        """Sum decisions up.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_rows,)
            True classes and decisions.
        costs : array-like of shape (K, K), mapping, data frame or None
            ``C[truth, prediction]``: rows are the truth. Taken as given, diagonal included.
        classes : sequence of K labels
            The classes, in the order of the rows of an array.
        sample_weight : array-like of shape (n_rows,), optional
            Weights.
        rivals : mapping of str to array-like of shape (n_rows,), optional
            Decisions that were made in other ways.
        how : str, optional
            How these rows were set apart, in a few words.

        Returns
        -------
        CostSummary
            The figures.

        Examples
        --------
        >>> truth, answers = ["ham", "spam", "spam"], ["ham", "spam", "ham"]
        >>> costs = {"ham": {"spam": 5}, "spam": {"ham": 1}}
        >>> blind = {"always spam": ["spam"] * 3}
        >>> summary = CostSummary.of(truth, answers, costs, classes=["ham", "spam"], rivals=blind)
        >>> summary.total_cost, summary.constant_answer
        (1.0, 'ham')
        """
        labels = np.asarray(classes)
        truth = positions_in(labels, np.asarray(y_true))
        decision_costs = DecisionCosts(given_costs(costs, classes))
        weight = check_sample_weight(sample_weight, len(truth))

        def costs_of(decisions: ArrayLike) -> FloatArray:
            return decision_costs.incurred(truth, positions_in(labels, np.asarray(decisions)))

        own, others = (
            costs_of(y_pred),
            {name: costs_of(part) for name, part in (rivals or {}).items()},
        )
        average, error = average_and_error(own, weight)
        constants = decision_costs.of_constants(truth, weight) / weight.sum()
        best = int(np.argmin(constants))
        return cls(
            n_rows=len(truth),
            average_cost=average,
            total_cost=float(own @ weight),
            error_rate=float(np.average(np.asarray(y_true) != np.asarray(y_pred), weights=weight)),
            constant_answer=_name(labels[best]),
            constant_cost=float(constants[best]),
            savings=float(1.0 - average / constants[best]) if constants[best] > 0.0 else None,
            standard_error=error,
            rivals={name: average_and_error(part, weight)[0] for name, part in others.items()},
            rival_errors={
                name: average_and_error(part - own, weight)[1] for name, part in others.items()
            },
            how=how,
            absent=[_name(label) for label in np.delete(labels, np.unique(truth))],
        )

    @property
    def rows(self) -> str:
        """Which rows the figures are of, in words."""
        shown = [f"{label!r:.40}" for label in self.absent[:_MAX_LISTED]]
        more = len(self.absent) - len(shown)
        listed = ", ".join(shown) + f" and {more} more" * (more > 0)
        return (
            f"{self.n_rows:,} rows"
            + f", {self.how}" * bool(self.how)
            + f", none of class {listed}" * bool(shown)
        )

    def is_clear(self, rival: str) -> bool:
        """Whether a rival differs from the model by more than chance.

        Parameters
        ----------
        rival : str
            One of `rivals`.

        Returns
        -------
        bool
            Whether the difference is at least two of its standard errors.
        """
        difference = abs(self.rivals[rival] - self.average_cost)
        return difference > 0.0 and difference >= _ERRORS_OF_DOUBT * self.rival_errors[rival]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures in a form that JSON holds.

        Returns
        -------
        dict
            Figures by name.
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Any) -> Self:
        """Return the summary that `to_dict` took apart; anything else is refused.

        Parameters
        ----------
        given : object
            What a file holds; anything.

        Returns
        -------
        CostSummary
            The figures.

        Examples
        --------
        >>> summary = CostSummary(4, 0.25, 1.0, 0.25, "1", 0.5, 0.5)
        >>> CostSummary.from_dict(summary.to_dict()) == summary
        True
        """
        if not isinstance(given, dict) or set(given) != {part.name for part in fields(cls)}:
            refuse("its results are not the figures of a summary")
        rivals, errors = given["rivals"], given["rival_errors"]
        if not isinstance(rivals, dict) or len(rivals) > MAX_RIVALS:
            refuse("its results are compared with too many others")
        if not isinstance(errors, dict) or set(errors) != set(rivals):
            refuse("its results have other rivals than standard errors")
        if not all(map(_is_plain, (given["how"], *rivals))):
            refuse("how its results came about, or the name of a rival, is not short plain text")
        if not isinstance(given["absent"], list) or len(given["absent"]) >= MAX_CLASSES:
            refuse("the classes without results are not a list of some classes")
        if not all(_is_short(text) for text in (given["constant_answer"], *given["absent"])):
            refuse("the name of a class of its results is not text, or very long")
        check_number("n_rows", given["n_rows"], Integral, low=1, high=_MAX_ROWS)
        check_number("error_rate", given["error_rate"], low=0.0, high=1.0)
        check_number("savings", given["savings"], low=-_MAX_FIGURE, high=1.0, none=True)
        for figure in (*(given[name] for name in _FIGURES), *rivals.values(), *errors.values()):
            check_number("a figure of its results", figure, low=0.0, high=_MAX_FIGURE)
        return cls(**given)


def _is_short(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= _MAX_LABEL_LENGTH


def _is_plain(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= _MAX_LENGTH and text.isprintable()


def _name(label: Any) -> str:
    return str(plain(label))[:_MAX_LABEL_LENGTH]
