"""Functions of costs and metrics with odd labels, weights and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from badacost import costs, metrics
from campaigns.cases import Case, Kind
from campaigns.child import Broken
from campaigns.estimator_cases import Samples, changed
from campaigns.mutations import Edit
from campaigns.plain import COSTS, new_estimator, samples

_NUMBERS: tuple[Any, ...] = (
    0.5, 0, 1, 2, -1, 1e-320, 1e308, 1e300, np.nan, np.inf, 10**30, True, None, "1", [1.0],
)  # fmt: skip
_EDITS = ("classes", "sample costs", "labels", "weights", "costs", "number", "number")


class _Given(Samples):
    """Samples, and what else functions are called with."""

    def __init__(self, case: Case):
        super().__init__(*samples(12), costs=COSTS)
        edits = [edit for edit in case.edits if edit[0] != "number"]
        changed(self, Case(case.base, edits))
        self.y = [] if self.y is None else self.y
        numbers = [which for name, _, which in case.edits if name == "number"]
        self.numbers = [_NUMBERS[which % len(_NUMBERS)] for which in numbers] + [1.0, 1.0]

    @property
    def labels(self) -> Any:
        """As many labels as there are classes, with repetitions where they come like that."""
        return self.y[: self.n_classes]

    @property
    def class_weights(self) -> Any:
        """A number for each class, or what stands in the place of weights."""
        weights = np.ones(12) if self.weight is None else self.weight
        return weights[: self.n_classes] if np.ndim(weights) else weights

    @property
    def by_label(self) -> Any:
        """Numbers by label, where labels can be keys."""
        try:
            return dict(zip(self.labels, self.class_weights, strict=False))
        except TypeError:
            return self.class_weights

    @property
    def prices(self) -> Any:
        """Costs as they are, or by pairs of labels where they are an array."""
        if not isinstance(self.costs, np.ndarray):
            return self.costs
        return {place: price for place, price in np.ndenumerate(self.costs) if len(place) == 2}


def _metric(function: Callable[..., Any]) -> Callable[[_Given], None]:
    """Return what calls a metric."""

    def call(given: _Given) -> None:
        abstain = given.numbers[0] if len(given.numbers) > 2 else None
        options = {"sample_weight": given.weight, "sample_cost": given.sample_costs}
        function(given.y, given.y[::-1], given.costs, abstain=abstain, **options)

    return call


def _score(given: _Given) -> None:
    """Score a model that knows the classes 0, 1 and 2."""
    model = new_estimator("BAdaCostClassifier").fit(*samples(12))
    metric: Any = ("average_cost", "savings")[len(given.numbers) % 2]
    abstain: Any = given.numbers[0] if len(given.numbers) > 3 else None
    scorer = metrics.cost_scorer(given.costs, metric=metric, abstain=abstain)
    scorer(model, given.X, given.y, given.weight, given.sample_costs)


# Those that make costs, which everything else must take.
_BUILDERS: Mapping[str, Callable[[_Given], Any]] = {
    "as_cost_matrix": lambda given: costs.as_cost_matrix(given.costs, given.labels),
    "costs_from_class_weights": lambda given: costs.costs_from_class_weights(
        given.class_weights, classes=given.labels
    ),
    "costs_from_class_weights, balanced": lambda given: costs.costs_from_class_weights(
        "balanced", y=given.y
    ),
    "costs_from_confusion": lambda given: costs.costs_from_confusion(
        given.costs, given.numbers[0], floor=given.numbers[1]
    ),
    "costs_from_pairs": lambda given: costs.costs_from_pairs(
        given.prices, default=given.numbers[0], right=given.numbers[1]
    ),
    "costs_from_ratios": lambda given: costs.costs_from_ratios(
        given.by_label, classes=given.labels
    ),
    "ordinal_costs": lambda given: costs.ordinal_costs(
        given.n_classes, under=given.numbers[0], power=given.numbers[1], labels=given.labels
    ),
    "circular_view_costs": lambda given: costs.circular_view_costs(
        given.n_classes, alpha=given.numbers[0], gamma=given.numbers[1]
    ),
    "template_costs": lambda given: costs.template_costs(
        given.y, balanced=bool(given.numbers[1]), ordinal=given.weight
    ),
}
_CALLS: Mapping[str, Callable[[_Given], Any]] = {
    "average_cost": _metric(metrics.average_cost),
    "cost_confusion_matrix": lambda given: metrics.cost_confusion_matrix(
        given.y, given.y[::-1], given.costs, sample_weight=given.weight
    ),
    "cost_scorer": _score,
    "explain_costs": lambda given: costs.explain_costs(given.costs, priors=given.by_label),
    "labelled_costs": lambda given: costs.labelled_costs(given.costs, given.labels),
    "minimum_cost_decision": lambda given: costs.minimum_cost_decision(
        given.sample_costs, given.costs
    ),
    "savings": _metric(metrics.savings),
    "scale_costs": lambda given: costs.scale_costs(given.costs, given.numbers[0]),
    "stationary_distribution": lambda given: costs.stationary_distribution(given.costs),
    "total_cost": _metric(metrics.total_cost),
}


class Costs(Kind):
    """Functions of costs and metrics; costs that are made are taken by all others."""

    name = "metrics"

    def build(self) -> Mapping[str, Any]:
        """Return what is called."""
        new_estimator("BAdaCostClassifier").fit(*samples(12))  # loads the kernels
        return {**_BUILDERS, **_CALLS}

    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw labels, weights, costs and numbers."""
        names = [name for name in _EDITS if rng.random() < 0.5]
        return [[name, *map(int, rng.integers(2**31, size=2))] for name in names or ["costs"]]

    def run(self, case: Case, folder: Path) -> None:
        """Call with what was drawn."""
        found = self.bases[case.base](_Given(case))
        if case.base in _BUILDERS:
            try:
                names = list(found) if isinstance(found, dict) else range(len(found))
                costs.as_cost_matrix(found, names)
            except ValueError as error:
                raise Broken(f"costs that were returned are refused: {error}") from error


COST_KINDS = (Costs(),)
