"""Other ways to decide on the same samples, and how sure a difference of costs is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from badacost._utils.arrays import FloatArray, Positions
from badacost.cost_report.evidence import Evidence
from badacost.cost_report.naming import model_name
from badacost.html_page import shorten
from badacost.tabular.trials import without_costs

LEVEL = 95  # percent of the resamples that an interval holds
N_RESAMPLES = 2000
_MAX_DRAWS = 2**22  # numbers of resamples that are in memory at a time
_MAX_LABEL_LENGTH = 24

Kind = Literal["model", "most likely", "minimum expected", "constant", "trained without costs"]


@dataclass(frozen=True, eq=False)
class Way:
    """A way to decide and its answers to the samples, (n_samples,), positions of classes."""

    name: str
    answers: Positions
    kind: Kind = "trained without costs"


@dataclass(frozen=True)
class WayCost:
    """What a way to decide costs on the samples.

    `interval` holds the average cost, `saved_interval` what the model saves a decision against
    this way; both are of `LEVEL` percent. What is saved is negative where the model costs more.
    """

    name: str
    kind: Kind
    average_cost: float
    interval: tuple[float, float]
    error_rate: float
    saved: float
    saved_interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Whether the model differs from this way by more than chance."""
        low, high = self.saved_interval
        return low > 0 or high < 0


def own_ways(evidence: Evidence) -> list[Way]:
    """Return the decisions of the model, first, those by its probabilities, and a constant."""
    ways = [Way(model_name(evidence.model), evidence.answers, "model")]
    probabilities = evidence.probabilities
    decision_costs = evidence.decision_costs
    if probabilities is not None:
        most_probable = probabilities.argmax(axis=1)
        cheapest = decision_costs.expected(probabilities).argmin(axis=1)
        ways.append(Way("the most likely class of the same model", most_probable, "most likely"))
        if (cheapest != evidence.answers).any():
            name = "minimum expected cost by the probabilities of the same model"
            ways.append(Way(name, cheapest, "minimum expected"))
    best = int(decision_costs.of_constants(evidence.truth, np.ones(len(evidence.truth))).argmin())
    label = shorten(evidence.labels[best], _MAX_LABEL_LENGTH)
    name = f"always “{label}”, the best constant answer"
    return [*ways, Way(name, np.full_like(evidence.truth, best), "constant")]


def trained_without_costs(evidence: Evidence, seed: int, n_jobs: int | None) -> list[Way]:
    """Fit rivals without any costs to the training samples, and let each decide in two ways."""
    if evidence.training is None:
        return []
    answers: dict[str, Positions] = {}
    for rival in without_costs(evidence.estimator, n_jobs=n_jobs, seed=seed):
        fitted = rival.fit(evidence.training, evidence.decision_costs, seed)
        answers |= rival.decide(fitted, evidence.features, evidence.decision_costs)
    return [Way(name, decided) for name, decided in answers.items()]


def compare(evidence: Evidence, ways: list[Way], seed: int) -> tuple[WayCost, ...]:
    """Return what ways to decide cost, that of the model first, resampled for intervals."""
    incurred = evidence.decision_costs.incurred
    costs = np.stack([incurred(evidence.truth, way.answers) for way in ways], axis=1)
    resampled, averages = _resampled(costs, seed), costs.mean(axis=0)
    saved = averages - averages[0]
    intervals, saved_intervals = _intervals(resampled), _intervals(resampled - resampled[:, :1])
    return tuple(
        WayCost(
            way.name,
            way.kind,
            float(averages[i]),
            intervals[i],
            float((way.answers != evidence.truth).mean()),
            float(saved[i]),
            saved_intervals[i],
        )
        for i, way in enumerate(ways)
    )


def _resampled(costs: FloatArray, seed: int) -> FloatArray:
    """Return averages of costs, (n_samples, n_ways), in samples drawn again."""
    # Samples that cost the same in all ways are drawn together: their number is multinomial.
    kinds, counts = np.unique(costs, axis=0, return_counts=True)
    rng, n_samples = np.random.default_rng(seed), len(costs)
    n_at_once = max(1, _MAX_DRAWS // len(kinds))
    averages = [
        rng.multinomial(n_samples, counts / n_samples, min(n_at_once, N_RESAMPLES - first))
        @ kinds
        / n_samples
        for first in range(0, N_RESAMPLES, n_at_once)
    ]
    return np.concatenate(averages)


def _intervals(resampled: FloatArray) -> list[tuple[float, float]]:
    """Return the ends of the intervals of columns."""
    tail = (100 - LEVEL) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail], axis=0).tolist()
    return list(zip(low, high, strict=True))
