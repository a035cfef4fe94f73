"""Other ways to decide on the same samples, and how sure a difference of costs is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from badacost.arrays import FloatArray, Positions
from badacost.cost_report.evidence import Evidence
from badacost.cost_report.naming import model_name
from badacost.html_page import shorten
from badacost.trials import Samples, rival_probabilities

LEVEL = 95  # percent of the resamples that an interval holds
N_RESAMPLES = 2000
_MAX_DRAWS = 2**22  # numbers of resamples that are in memory at a time
_MAX_LABEL_LENGTH = 24


@dataclass(frozen=True, eq=False)
class Way:
    """A way to decide and its answers to the samples, (n_samples,), positions of classes.

    `remark` says how it came about, if that needs a sentence.
    """

    name: str
    answers: Positions
    kind: Literal["model", "without costs", "constant", "other"] = "other"
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What ways to decide cost; the first is that of the model.

    `paid` has the cost of each decision, (n_samples, n_ways); `resampled` the average costs in
    samples drawn again, (n_resamples, n_ways).
    """

    ways: list[Way]
    paid: FloatArray
    resampled: FloatArray

    @property
    def averages(self) -> FloatArray:
        """Average cost of each way."""
        return np.asarray(self.paid.mean(axis=0))

    @property
    def intervals(self) -> FloatArray:
        """Ends of the intervals of these averages, (n_ways, 2)."""
        return _intervals(self.resampled)

    @property
    def saved(self) -> FloatArray:
        """What the model saves a decision against each way; negative where it costs more."""
        return np.asarray(self.averages - self.averages[0])

    @property
    def saved_intervals(self) -> FloatArray:
        """Ends of the intervals of these savings, (n_ways, 2)."""
        return _intervals(self.resampled - self.resampled[:, :1])

    def is_clear(self, index: int) -> bool:
        """Tell whether the model differs from a way by more than chance."""
        low, high = self.saved_intervals[index]
        return bool(low > 0 or high < 0)

    @property
    def n_costly(self) -> int:
        """Decisions of the model that cost something."""
        return int((self.paid[:, 0] > 0).sum())


def own_ways(evidence: Evidence) -> list[Way]:
    """Return the decisions of the model, first, those by its probabilities, and a constant."""
    ways = [Way(model_name(evidence.classifier), evidence.answers, "model")]
    beliefs = evidence.probabilities
    prices = evidence.prices
    if beliefs is not None:
        likeliest, cheapest = beliefs.argmax(axis=1), prices.expected(beliefs).argmin(axis=1)
        ways.append(Way("most likely class of the same model", likeliest))
        if (cheapest != evidence.answers).any():
            ways.append(Way("minimum expected cost by its probabilities", cheapest))
    truths = np.eye(len(evidence.labels))[evidence.truth]
    best = int(prices.expected(truths).sum(axis=0).argmin())
    constant = (
        f"always “{shorten(evidence.labels[best], _MAX_LABEL_LENGTH)}”, the best constant answer"
    )
    return [*ways, Way(constant, np.full_like(evidence.truth, best), "constant")]


def trained_without_costs(evidence: Evidence, seed: int, n_jobs: int | None) -> list[Way]:
    """Fit boosting without any costs to the training samples, and let it decide in two ways."""
    if evidence.training is None:
        return []
    features, truth = evidence.training
    asked = rival_probabilities(
        evidence.booster,
        Samples(evidence.encoded(features), truth),
        evidence.encoded(evidence.features),
        evidence.prices,
        n_jobs=n_jobs,
        seed=seed,
    )
    ways = []
    for name, shares in asked.items():
        likeliest, cheapest = shares.argmax(axis=1), evidence.prices.expected(shares).argmin(axis=1)
        ways.append(Way(f"{name}, most likely class", likeliest, "without costs"))
        ways.append(Way(f"{name}, minimum expected cost", cheapest, "without costs"))
    return ways


def compare(evidence: Evidence, ways: list[Way], seed: int) -> Comparison:
    """Return the costs of ways to decide, that of the model first, resampled for intervals."""
    paid = np.stack([evidence.prices.paid(evidence.truth, way.answers) for way in ways], axis=1)
    # Samples that cost the same in all ways are drawn together: their number is multinomial.
    kinds, counts = np.unique(paid, axis=0, return_counts=True)
    rng, n_samples = np.random.default_rng(seed), len(paid)
    n_at_once = max(1, _MAX_DRAWS // len(kinds))
    resampled = [
        rng.multinomial(n_samples, counts / n_samples, min(n_at_once, N_RESAMPLES - first))
        @ kinds
        / n_samples
        for first in range(0, N_RESAMPLES, n_at_once)
    ]
    return Comparison(ways, paid, np.concatenate(resampled))


def _intervals(resampled: FloatArray) -> FloatArray:
    """Return the ends of the intervals of columns, (n_columns, 2)."""
    tail = (100 - LEVEL) / 2
    return np.asarray(np.percentile(resampled, [tail, 100 - tail], axis=0).T)
