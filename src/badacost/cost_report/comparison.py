"""Other ways to decide on the same samples, and how sure a difference of costs is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from badacost.cost_report.evidence import Evidence, FloatArray, Positions, positions
from badacost.costs import minimum_cost_decision
from badacost.costs.matrix import plain
from badacost.html_page import shorten

LEVEL = 95  # percent of the resamples that an interval holds
N_RESAMPLES = 2000
_MOST_DRAWS = 2**22  # numbers of resamples that are in memory at a time
_FOREST_TREES = 200
_WIDEST_LABEL = 24


@dataclass(frozen=True, eq=False)
class Way:
    """A way to decide, and its answers to the samples.

    Attributes
    ----------
    name : str
        What to call it.
    answers : ndarray of shape (n_samples,)
        Positions of classes.
    kind : {"model", "cost-blind", "constant", "other"}
        What it is for the story.

    Examples
    --------
    >>> import numpy as np
    >>> Way("always no", np.zeros(3, int), "constant").kind
    'constant'
    """

    name: str
    answers: Positions
    kind: Literal["model", "cost-blind", "constant", "other"] = "other"


@dataclass(frozen=True, eq=False)
class Comparison:
    """What ways to decide cost; the first is that of the model.

    Attributes
    ----------
    ways : list of Way
        The ways.
    paid : ndarray of shape (n_samples, n_ways)
        What each decision cost.
    resampled : ndarray of shape (n_resamples, n_ways)
        Average costs of samples that are drawn again.

    Examples
    --------
    >>> import numpy as np
    >>> ways = [Way("the model", np.array([0, 1])), Way("other", np.array([1, 1]))]
    >>> paid = np.array([[0.0, 5.0], [1.0, 1.0]])
    >>> Comparison(ways, paid, paid).saved
    array([0. , 2.5])
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
        """What the model saves a decision against each way; negative where it is dearer."""
        return np.asarray(self.averages - self.averages[0])

    @property
    def saved_intervals(self) -> FloatArray:
        """Ends of the intervals of these savings, (n_ways, 2)."""
        return _intervals(self.resampled - self.resampled[:, :1])

    @property
    def n_costly(self) -> int:
        """Decisions of the model that cost something."""
        return int((self.paid[:, 0] > 0).sum())


def own_ways(evidence: Evidence) -> list[Way]:
    """Return the decisions of the model, those that its probabilities allow, and a constant.

    Parameters
    ----------
    evidence : Evidence
        The model and the samples.

    Returns
    -------
    list of Way
        The model comes first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.cost_report.evidence import gather
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(n_estimators=1, max_depth=1).fit(X, y)
    >>> [way.kind for way in own_ways(gather(model, X, y))]
    ['model', 'cost-blind', 'other', 'constant']
    """
    ways = [Way("the model", evidence.answers, "model")]
    beliefs = evidence.probabilities
    if beliefs is not None:
        likeliest, cheapest = beliefs.argmax(axis=1), minimum_cost_decision(beliefs, evidence.costs)
        ways += [
            Way("its most probable class, cost-blind", likeliest, "cost-blind"),
            Way("least expected cost by its probabilities", cheapest),
        ]
    best = int(evidence.costs[evidence.truth].sum(axis=0).argmin())
    constant = f"always “{shorten(evidence.labels[best], _WIDEST_LABEL)}”, the best constant"
    return [*ways, Way(constant, np.full_like(evidence.truth, best), "constant")]


def samme(evidence: Evidence, seed: int, n_jobs: int | None) -> Way:
    """Fit boosting that knows no costs, with the settings of the model where it has the same.

    Parameters
    ----------
    evidence : Evidence
        With training samples.
    seed : int
        Seed.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Way
        Its decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.cost_report.evidence import gather
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(n_estimators=2, max_depth=1).fit(X, y)
    >>> samme(gather(model, X, y, train=(X, y)), 0, None).name
    'SAMME, cost-blind, same settings'
    """
    from badacost.boosting import SAMMEClassifier
    from badacost.boosting.stagewise import StagewiseClassifier

    settings: dict[str, Any] = {}
    if isinstance(evidence.booster, StagewiseClassifier):
        own = evidence.booster.get_params(deep=False)
        apart = ("callbacks", "warm_start", "verbose", "random_state", "n_jobs")
        shared = own.keys() & SAMMEClassifier().get_params(deep=False).keys() - {*apart}
        settings = {name: own[name] for name in shared}
    rival = SAMMEClassifier(**settings, random_state=seed, n_jobs=n_jobs)
    which = "same settings" if settings else "default settings"
    return _fitted(evidence, rival, f"SAMME, cost-blind, {which}")


def forest(evidence: Evidence, seed: int, n_jobs: int | None) -> Way:
    """Fit a random forest that decides by least expected cost.

    Parameters
    ----------
    evidence, seed, n_jobs
        See `samme`.

    Returns
    -------
    Way
        Its decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.cost_report.evidence import gather
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(n_estimators=2, max_depth=1).fit(X, y)
    >>> forest(gather(model, X, y, train=(X, y)), 0, None).name
    'random forest, least expected cost'
    """
    from sklearn.ensemble import RandomForestClassifier

    from badacost.decision import MinimumCostClassifier

    classes = [plain(label) for label in evidence.classifier.classes_]
    # With labels, since the training samples may lack a class.
    costs = {
        truth: dict(zip(classes, row, strict=True))
        for truth, row in zip(classes, evidence.costs.tolist(), strict=True)
    }
    trees = RandomForestClassifier(_FOREST_TREES, random_state=seed, n_jobs=n_jobs)
    rival = MinimumCostClassifier(trees, costs)
    return _fitted(evidence, rival, "random forest, least expected cost")


def compare(evidence: Evidence, ways: list[Way], seed: int) -> Comparison:
    """Charge ways to decide, and draw the samples again for intervals.

    Parameters
    ----------
    evidence : Evidence
        The samples.
    ways : list of Way
        The ways; that of the model comes first.
    seed : int
        Seed of the draws.

    Returns
    -------
    Comparison
        Costs.

    Examples
    --------
    >>> import numpy as np
    >>> truth, answers = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> costs = np.array([[0.0, 3.0], [7.0, 0.0]])
    >>> evidence = Evidence(None, None, truth, answers, costs, None, None, None)
    >>> compare(evidence, [Way("the model", answers)], 0).averages
    array([1.])
    """
    paid = np.stack([evidence.costs[evidence.truth, way.answers] for way in ways], axis=1)
    # Samples that cost the same in all ways are drawn together: their number is multinomial.
    kinds, counts = np.unique(paid, axis=0, return_counts=True)
    rng, n_samples = np.random.default_rng(seed), len(paid)
    n_at_once = max(1, _MOST_DRAWS // len(kinds))
    resampled = [
        rng.multinomial(n_samples, counts / n_samples, min(n_at_once, N_RESAMPLES - first))
        @ kinds
        / n_samples
        for first in range(0, N_RESAMPLES, n_at_once)
    ]
    return Comparison(ways, paid, np.concatenate(resampled))


def _fitted(evidence: Evidence, rival: Any, name: str) -> Way:
    """Train a rival and let it decide."""
    if evidence.training is None:
        raise ValueError("rivals need training samples: give train.")
    features, truth = evidence.training
    classes = np.asarray(evidence.classifier.classes_)
    rival.fit(evidence.encoded(features), classes[truth])
    answers = rival.predict(evidence.encoded(evidence.features))
    return Way(name, positions(answers, classes, name))


def _intervals(resampled: FloatArray) -> FloatArray:
    """Return the ends of the intervals of columns, (n_columns, 2)."""
    tail = (100 - LEVEL) / 2
    return np.asarray(np.percentile(resampled, [tail, 100 - tail], axis=0).T)
