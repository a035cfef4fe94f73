"""Parts of a report, in numbers; those that a model gives no reason for are None or empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Positions
from badacost.cost_report.evidence import Evidence
from badacost.cost_report.sensitivity import Shift, shift
from badacost.costs import minimum_cost_decision
from badacost.costs.decisions import abstains

_ASKING_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the cost of asking a person
_RELIABILITY_GROUPS = 10
_MIN_IN_GROUP = 20
_NO_SETTINGS = ("cost_matrix", "callbacks", "verbose")


@dataclass(frozen=True)
class AskingPrice:
    """A cost of asking a person, the fraction of the samples asked about, the average cost then."""

    price: float
    share_asked: float
    average_cost: float


@dataclass(frozen=True)
class Asking:
    """What decisions of minimum expected cost cost if a person may be asked, and without that."""

    price: float
    never: float
    at_prices: tuple[AskingPrice, ...]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How decisions of minimum expected cost change if one cost is doubled or halved.

    `counts`, (K, K), are how often each mistake is made under the given costs.
    """

    doubled: Shift
    halved: Shift
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class ReliabilityGroup:
    """Samples of which a model is about equally sure: its mean probability, the share right."""

    n_samples: int
    probability: float
    share_right: float


@dataclass(frozen=True)
class Reliability:
    """What the decisions should cost by the probabilities, and how often these are right."""

    expected_cost: float
    groups: tuple[ReliabilityGroup, ...]


@dataclass(frozen=True)
class RivalAtFit:
    """Average cost of a rival when a model was fitted, and if it differs by more than chance."""

    name: str
    average_cost: float
    is_clear: bool


@dataclass(frozen=True)
class AtFit:
    """What was measured when a model was fitted, on rows that it was not fitted to.

    `rows` says which ones, `rivals` decided on the same ones, the cheapest first.
    """

    rows: str
    average_cost: float
    rivals: tuple[RivalAtFit, ...]


def asking(evidence: Evidence) -> Asking | None:
    """Return what asking a person costs and saves, at its cost and at others."""
    price, probabilities = evidence.abstain, evidence.probabilities
    if price is None or probabilities is None:
        return None
    expected = evidence.decision_costs.expected(probabilities)
    alone = evidence.decision_costs.incurred(evidence.truth, expected.argmin(axis=1))

    def at(price: float) -> AskingPrice:
        asked = abstains(expected, price)
        return AskingPrice(price, float(asked.mean()), float(np.where(asked, price, alone).mean()))

    return Asking(
        price, float(alone.mean()), tuple(at(factor * price) for factor in _ASKING_FACTORS)
    )


def cost_curves(evidence: Evidence) -> dict[str, tuple[float, ...]]:
    """Return the average cost after each round, on these samples and on those of the training."""
    if evidence.decision_costs.per_sample:
        return {}
    sets: dict[str, tuple[Any, Positions]] = {"these samples": (evidence.features, evidence.truth)}
    if evidence.training is not None:
        sets["training samples"] = evidence.training.features, evidence.training.truth
    curves = {}
    for name, (features, truth) in sets.items():
        staged = evidence.staged_answers(features)
        if staged is None:
            return {}
        curves[name] = tuple(float(evidence.costs[truth, answers].mean()) for answers in staged)
    return curves


def sensitivity(evidence: Evidence) -> Sensitivity | None:
    """Return how decisions depend on each cost."""
    probabilities, costs = evidence.probabilities, evidence.costs
    if probabilities is None or evidence.decision_costs.per_sample:
        return None
    doubled, halved = (shift(probabilities, costs, evidence.truth, factor) for factor in (2.0, 0.5))
    decisions = minimum_cost_decision(probabilities, costs)
    return Sensitivity(doubled, halved, evidence.confusion(decisions))


def reliability(evidence: Evidence) -> Reliability | None:
    """Compare probabilities with what happened, in groups of samples if there are enough."""
    probabilities = evidence.probabilities
    if probabilities is None:
        return None
    charges = evidence.decision_costs.expected(probabilities)
    expected = charges[np.arange(len(probabilities)), evidence.answers].mean()
    confidence, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == evidence.truth
    n_groups = min(_RELIABILITY_GROUPS, len(probabilities) // _MIN_IN_GROUP)
    groups: list[Positions] = []
    if n_groups > 1:
        groups = np.array_split(np.argsort(confidence, kind="stable"), n_groups)
    return Reliability(
        float(expected),
        tuple(
            ReliabilityGroup(len(g), float(confidence[g].mean()), float(is_right[g].mean()))
            for g in groups
        ),
    )


def importances(evidence: Evidence) -> tuple[tuple[str, float], ...]:
    """Return the features and their importances, the largest first."""
    owners = [evidence.model]
    if evidence.estimator is evidence.model:
        owners.append(getattr(evidence.model, "estimator_", None))
    owner = next((owner for owner in owners if hasattr(owner, "feature_importances_")), None)
    if owner is None:
        return ()
    values = owner.feature_importances_
    names = evidence.feature_names
    if names is None:
        names = [f"feature {number}" for number in range(len(values))]
    if len(names) != len(values):
        raise ValueError(f"feature_names holds {len(names)} names: give {len(values)} of them.")
    order = np.argsort(-values, kind="stable").tolist()
    return tuple((str(names[index]), float(values[index])) for index in order)


def at_fit(evidence: Evidence) -> AtFit | None:
    """Return what was measured at the fit, if that is in the model and under the same costs."""
    held_out = getattr(evidence.model, "held_out_", None)
    costs: Any = getattr(evidence.model, "cost_matrix_", None)
    same = not evidence.decision_costs.per_sample and np.array_equal(costs, evidence.costs)
    if held_out is None or not held_out.rivals or not same:
        return None
    rivals = [
        RivalAtFit(name, cost, held_out.is_clear(name)) for name, cost in held_out.rivals.items()
    ]
    return AtFit(
        held_out.rows,
        held_out.average_cost,
        tuple(sorted(rivals, key=lambda rival: rival.average_cost)),
    )


def settings(evidence: Evidence) -> dict[str, str]:
    """Return the parameters of the model, those of its estimator first."""
    found = {}
    for name, attribute in (("rounds kept", "n_estimators_"), ("stopped by", "stop_reason_")):
        if getattr(evidence.estimator, attribute, None) is not None:
            found[name] = getattr(evidence.estimator, attribute)
    for owner in (evidence.estimator, evidence.model):
        given = owner.get_params(deep=False) if hasattr(owner, "get_params") else {}
        left_out = _NO_SETTINGS if owner is evidence.estimator else (*_NO_SETTINGS, "estimator")
        found |= {name: value for name, value in given.items() if name not in left_out}
    return {name: " ".join(repr(value).split()) for name, value in found.items()}


def has_other_costs(evidence: Evidence) -> bool:
    """Whether a model was fitted under other costs than those of the report."""
    trained = getattr(evidence.model, "cost_matrix_", None)
    if trained is None or evidence.decision_costs.per_sample:
        return False
    return not np.allclose(_of_mistakes(trained), _of_mistakes(evidence.costs))


def plain_values(value: Any) -> Any:
    """Return arrays and tuples as lists, at any depth, in a form that JSON holds."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: plain_values(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    return value


def _of_mistakes(costs: FloatArray) -> FloatArray:
    """Return what mistakes cost more than being right, which is all that decisions depend on."""
    return np.asarray(costs - np.diagonal(costs)[:, np.newaxis])
