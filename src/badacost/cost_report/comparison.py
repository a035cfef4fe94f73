"""Other ways to decide on the same samples, and how sure a difference of costs is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from badacost.arrays import FloatArray, Positions
from badacost.cost_report.evidence import Evidence, positions
from badacost.cost_report.naming import model_name
from badacost.costs.decisions import Prices
from badacost.html_page import shorten

LEVEL = 95  # percent of the resamples that an interval holds
N_RESAMPLES = 2000
_MAX_DRAWS = 2**22  # numbers of resamples that are in memory at a time
_FOREST_TREES = 200
_DEPTHS = (1, 2, 4)
_N_FOLDS = 3
_MAX_ROWS_TO_CHOOSE = 20_000
_MAX_LABEL_LENGTH = 24


@dataclass(frozen=True, eq=False)
class Way:
    """A way to decide and its answers to the samples, (n_samples,), positions of classes.

    `remark` says how it came about, if that needs a sentence.
    """

    name: str
    answers: Positions
    kind: Literal["model", "cost-blind", "constant", "other"] = "other"
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
        ways.append(Way("the most probable class of the same model", likeliest, "cost-blind"))
        if (cheapest != evidence.answers).any():
            ways.append(Way("minimum expected cost by its probabilities", cheapest))
    truths = np.eye(len(evidence.labels))[evidence.truth]
    best = int(prices.expected(truths).sum(axis=0).argmin())
    constant = (
        f"always “{shorten(evidence.labels[best], _MAX_LABEL_LENGTH)}”, the best constant answer"
    )
    return [*ways, Way(constant, np.full_like(evidence.truth, best), "constant")]


def samme(evidence: Evidence, seed: int, n_jobs: int | None) -> list[Way]:
    """Fit boosting that knows no costs, with the settings of the model but a depth of its own.

    Return its decisions, and those of minimum expected cost under its probabilities.
    """
    from badacost.boosting import CostBoostClassifier, SAMMEClassifier
    from badacost.boosting.stagewise import StagewiseClassifier
    from badacost.tabular.training import COST_BLIND, COST_IN_DECISION

    settings: dict[str, Any] = {}
    booster = evidence.booster
    if isinstance(booster, StagewiseClassifier) and not isinstance(booster, CostBoostClassifier):
        own = booster.get_params(deep=False)
        apart = ("callbacks", "warm_start", "verbose", "random_state", "n_jobs")
        shared = own.keys() & SAMMEClassifier().get_params(deep=False).keys() - {*apart}
        settings = {name: own[name] for name in shared}
    rival = SAMMEClassifier(**settings, random_state=seed, n_jobs=n_jobs)
    remark = f"SAMME has {'the settings of the model' if settings else 'default settings'}"
    if rival.estimator is None:
        depths = list(dict.fromkeys([*_DEPTHS, rival.max_depth]))
        rival.max_depth = _cheapest_depth(evidence, rival, depths, seed)
        chosen, *choices = ("any" if k is None else str(k) for k in (rival.max_depth, *depths))
        remark += (
            f", but trees of depth {chosen}: of {', '.join(choices)} the cheapest in "
            f"{_N_FOLDS}-fold cross-validation on the training samples, with decisions of minimum "
            "expected cost"
        )
    features = _fitted(evidence, rival)
    answers = positions(rival.predict(features), evidence.classifier.classes_, "a rival")
    return [
        Way(COST_BLIND, answers, remark=f"{remark}."),
        Way(COST_IN_DECISION, _minimum_expected(evidence, rival, features, evidence.prices)),
    ]


def forest(evidence: Evidence, seed: int, n_jobs: int | None) -> Way:
    """Fit a random forest that decides by minimum expected cost."""
    from sklearn.ensemble import RandomForestClassifier

    rival = RandomForestClassifier(_FOREST_TREES, random_state=seed, n_jobs=n_jobs)
    features = _fitted(evidence, rival)
    answers = _minimum_expected(evidence, rival, features, evidence.prices)
    return Way("random forest, minimum expected cost", answers)


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


def _fitted(evidence: Evidence, rival: Any) -> Any:
    """Train a rival, and return the samples that it has to decide on."""
    features, truth = _training(evidence)
    rival.fit(features, np.asarray(evidence.classifier.classes_)[truth])
    return evidence.encoded(evidence.features)


def _training(evidence: Evidence) -> tuple[Any, Positions]:
    if evidence.training is None:
        raise ValueError("rivals need training samples: give train.")
    features, truth = evidence.training
    return evidence.encoded(features), truth


def _cheapest_depth(
    evidence: Evidence, rival: Any, depths: Sequence[int | None], seed: int
) -> int | None:
    """Return the depth whose decisions of minimum expected cost are cheapest on other folds."""
    from sklearn.base import clone

    features, truth = _training(evidence)
    features = np.asarray(features)
    classes = np.asarray(evidence.classifier.classes_)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(truth))[:_MAX_ROWS_TO_CHOOSE]
    rows = rows[np.argsort(truth[rows], kind="stable")]
    folds = np.arange(len(rows)) % _N_FOLDS  # in the order of classes, so each has its share
    parts = [(rows[folds != fold], rows[folds == fold]) for fold in range(_N_FOLDS)]
    if any(len(np.unique(truth[kept])) < 2 or not len(tried) for kept, tried in parts):
        return depths[-1]
    paid = np.zeros(len(depths))
    for number, depth in enumerate(depths):
        for kept, tried in parts:
            candidate = clone(rival).set_params(max_depth=depth)
            candidate.fit(features[kept], classes[truth[kept]])
            # Training samples have no prices of their own.
            answers = _minimum_expected(
                evidence, candidate, features[tried], Prices(evidence.costs)
            )
            paid[number] += evidence.costs[truth[tried], answers].sum()
    return depths[int(paid.argmin())]


def _minimum_expected(evidence: Evidence, rival: Any, features: Any, prices: Prices) -> Positions:
    """Decide by the probabilities of a rival, which may not know all classes."""
    known = positions(rival.classes_, evidence.classifier.classes_, "a rival")
    charges = prices.of_classes(known).expected(rival.predict_proba(features))
    return np.asarray(known[charges.argmin(axis=1)])


def _intervals(resampled: FloatArray) -> FloatArray:
    """Return the ends of the intervals of columns, (n_columns, 2)."""
    tail = (100 - LEVEL) / 2
    return np.asarray(np.percentile(resampled, [tail, 100 - tail], axis=0).T)
