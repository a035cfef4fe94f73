"""Other ways to decide on the same samples, and how sure a difference of costs is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from badacost.arrays import FloatArray, Positions
from badacost.cost_report.evidence import Evidence
from badacost.cost_report.naming import model_name
from badacost.costs.decisions import Prices
from badacost.html_page import shorten
from badacost.validation import positions_in

LEVEL = 95  # percent of the resamples that an interval holds
N_RESAMPLES = 2000
_MAX_DRAWS = 2**22  # numbers of resamples that are in memory at a time
_FOREST_TREES = 200
_DEPTHS = (1, 2, 4)
_N_FOLDS = 3
_MAX_ROWS_TO_CHOOSE = 20_000
_MAX_LABEL_LENGTH = 24

Kind = Literal["model", "most likely", "minimum expected", "constant", "trained without costs"]


@dataclass(frozen=True, eq=False)
class Way:
    """A way to decide and its answers to the samples, (n_samples,), positions of classes.

    `remark` says how it came about, if that needs a sentence.
    """

    name: str
    answers: Positions
    kind: Kind = "trained without costs"
    remark: str = ""


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
    remark: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether the model differs from this way by more than chance."""
        low, high = self.saved_interval
        return low > 0 or high < 0


def own_ways(evidence: Evidence) -> list[Way]:
    """Return the decisions of the model, first, those by its probabilities, and a constant."""
    ways = [Way(model_name(evidence.model), evidence.answers, "model")]
    beliefs = evidence.probabilities
    prices = evidence.prices
    if beliefs is not None:
        likeliest, cheapest = beliefs.argmax(axis=1), prices.expected(beliefs).argmin(axis=1)
        ways.append(Way("the most likely class of the same model", likeliest, "most likely"))
        if (cheapest != evidence.answers).any():
            name = "minimum expected cost by the probabilities of the same model"
            ways.append(Way(name, cheapest, "minimum expected"))
    truths = np.eye(len(evidence.labels))[evidence.truth]
    best = int(prices.expected(truths).sum(axis=0).argmin())
    label = shorten(evidence.labels[best], _MAX_LABEL_LENGTH)
    name = f"always “{label}”, the best constant answer"
    return [*ways, Way(name, np.full_like(evidence.truth, best), "constant")]


def trained_without_costs(evidence: Evidence, seed: int, n_jobs: int | None) -> list[Way]:
    """Fit rivals that know no costs in training; none where the training samples are not given."""
    if evidence.training is None:
        return []
    return [*_samme(evidence, seed, n_jobs), _forest(evidence, seed, n_jobs)]


def compare(evidence: Evidence, ways: list[Way], seed: int) -> tuple[WayCost, ...]:
    """Return what ways to decide cost, that of the model first, resampled for intervals."""
    paid = np.stack([evidence.prices.paid(evidence.truth, way.answers) for way in ways], axis=1)
    resampled = _resampled(paid, seed)
    averages = paid.mean(axis=0)
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
            way.remark,
        )
        for i, way in enumerate(ways)
    )


def _samme(evidence: Evidence, seed: int, n_jobs: int | None) -> list[Way]:
    """Fit boosting that knows no costs, with the settings of the model but a depth of its own.

    Return its decisions, and those of minimum expected cost under its probabilities.
    """
    from badacost.boosting import CostBoostClassifier, SAMMEClassifier
    from badacost.boosting.stagewise import StagewiseClassifier
    from badacost.tabular.training import COST_BLIND, COST_IN_DECISION

    settings: dict[str, Any] = {}
    booster = evidence.estimator
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
    answers = positions_in(evidence.model.classes_, rival.predict(features), "a rival")
    return [
        Way(COST_BLIND, answers, remark=f"{remark}."),
        Way(COST_IN_DECISION, _minimum_expected(evidence, rival, features, evidence.prices)),
    ]


def _forest(evidence: Evidence, seed: int, n_jobs: int | None) -> Way:
    """Fit a random forest that decides by minimum expected cost."""
    from sklearn.ensemble import RandomForestClassifier

    rival = RandomForestClassifier(_FOREST_TREES, random_state=seed, n_jobs=n_jobs)
    features = _fitted(evidence, rival)
    answers = _minimum_expected(evidence, rival, features, evidence.prices)
    return Way("random forest, minimum expected cost", answers)


def _resampled(paid: FloatArray, seed: int) -> FloatArray:
    """Return averages of what is paid, (n_samples, n_ways), in samples drawn again."""
    # Samples that cost the same in all ways are drawn together: their number is multinomial.
    kinds, counts = np.unique(paid, axis=0, return_counts=True)
    rng, n_samples = np.random.default_rng(seed), len(paid)
    n_at_once = max(1, _MAX_DRAWS // len(kinds))
    averages = [
        rng.multinomial(n_samples, counts / n_samples, min(n_at_once, N_RESAMPLES - first))
        @ kinds
        / n_samples
        for first in range(0, N_RESAMPLES, n_at_once)
    ]
    return np.concatenate(averages)


def _fitted(evidence: Evidence, rival: Any) -> Any:
    """Train a rival, and return the samples that it has to decide on."""
    features, truth = _training(evidence)
    rival.fit(features, np.asarray(evidence.model.classes_)[truth])
    return evidence.features


def _training(evidence: Evidence) -> tuple[Any, Positions]:
    if evidence.training is None:
        raise ValueError("rivals need training samples: give train.")
    return evidence.training


def _cheapest_depth(
    evidence: Evidence, rival: Any, depths: Sequence[int | None], seed: int
) -> int | None:
    """Return the depth whose decisions of minimum expected cost are cheapest on other folds."""
    from sklearn.base import clone

    features, truth = _training(evidence)
    features = np.asarray(features)
    classes = np.asarray(evidence.model.classes_)
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
    known = positions_in(evidence.model.classes_, rival.classes_, "a rival")
    charges = prices.of_classes(known).expected(rival.predict_proba(features))
    return np.asarray(known[charges.argmin(axis=1)])


def _intervals(resampled: FloatArray) -> list[tuple[float, float]]:
    """Return the ends of the intervals of columns."""
    tail = (100 - LEVEL) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail], axis=0).tolist()
    return list(zip(low, high, strict=True))
