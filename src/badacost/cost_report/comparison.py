"""Other ways to decide on the same samples, and how sure a difference of costs is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from badacost.cost_report.evidence import Evidence, FloatArray, Positions, positions
from badacost.cost_report.naming import model_name
from badacost.costs import minimum_cost_decision
from badacost.costs.matrix import plain
from badacost.html_page import shorten

LEVEL = 95  # percent of the resamples that an interval holds
N_RESAMPLES = 2000
_MOST_DRAWS = 2**22  # numbers of resamples that are in memory at a time
_FOREST_TREES = 200
_DEPTHS = (1, 2, 4)
_N_FOLDS = 3
_MOST_ROWS_TO_CHOOSE = 20_000
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
    remark : str, default=""
        How it came about, if that needs a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> Way("always no", np.zeros(3, int), "constant").kind
    'constant'
    """

    name: str
    answers: Positions
    kind: Literal["model", "cost-blind", "constant", "other"] = "other"
    remark: str = ""


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

    def is_clear(self, index: int) -> bool:
        """Tell whether the model differs from a way by more than chance."""
        low, high = self.saved_intervals[index]
        return bool(low > 0 or high < 0)

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
    ['model', 'cost-blind', 'constant']
    """
    ways = [Way(model_name(evidence.classifier), evidence.answers, "model")]
    beliefs = evidence.probabilities
    if beliefs is not None:
        likeliest, cheapest = beliefs.argmax(axis=1), minimum_cost_decision(beliefs, evidence.costs)
        ways.append(Way("the most probable class of the same model", likeliest, "cost-blind"))
        if (cheapest != evidence.answers).any():
            ways.append(Way("least expected cost by its probabilities", cheapest))
    best = int(evidence.costs[evidence.truth].sum(axis=0).argmin())
    constant = f"always “{shorten(evidence.labels[best], _WIDEST_LABEL)}”, the best constant answer"
    return [*ways, Way(constant, np.full_like(evidence.truth, best), "constant")]


def samme(evidence: Evidence, seed: int, n_jobs: int | None) -> list[Way]:
    """Fit boosting that knows no costs, with the settings of the model but a depth of its own.

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
    list of Way
        Its decisions, and those of least expected cost under its probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.cost_report.evidence import gather
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(n_estimators=2, max_depth=1).fit(X, y)
    >>> [way.name for way in samme(gather(model, X, y, train=(X, y)), 0, None)]
    ['cost-blind boosting (SAMME)', 'SAMME, then least expected cost']
    """
    from badacost.boosting import SAMMEClassifier
    from badacost.boosting.stagewise import StagewiseClassifier
    from badacost.tabular.training import COST_BLIND, COST_IN_DECISION

    settings: dict[str, Any] = {}
    if isinstance(evidence.booster, StagewiseClassifier):
        own = evidence.booster.get_params(deep=False)
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
            f"{_N_FOLDS}-fold cross-validation on the training samples, with decisions of least "
            "expected cost"
        )
    answers, features = _fitted(evidence, rival), evidence.encoded(evidence.features)
    return [
        Way(COST_BLIND, answers, remark=f"{remark}."),
        Way(COST_IN_DECISION, _least_expected(evidence, rival, features)),
    ]


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
    return Way("random forest, least expected cost", _fitted(evidence, rival))


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


def _fitted(evidence: Evidence, rival: Any) -> Positions:
    """Train a rival and let it decide."""
    features, truth = _training(evidence)
    classes = np.asarray(evidence.classifier.classes_)
    rival.fit(features, classes[truth])
    return positions(rival.predict(evidence.encoded(evidence.features)), classes, "a rival")


def _training(evidence: Evidence) -> tuple[Any, Positions]:
    if evidence.training is None:
        raise ValueError("rivals need training samples: give train.")
    features, truth = evidence.training
    return evidence.encoded(features), truth


def _cheapest_depth(
    evidence: Evidence, rival: Any, depths: Sequence[int | None], seed: int
) -> int | None:
    """Return the depth with which decisions of least expected cost are cheapest on other folds."""
    from sklearn.base import clone

    features, truth = _training(evidence)
    features = np.asarray(features)
    classes = np.asarray(evidence.classifier.classes_)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(truth))[:_MOST_ROWS_TO_CHOOSE]
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
            answers = _least_expected(evidence, candidate, features[tried])
            paid[number] += evidence.costs[truth[tried], answers].sum()
    return depths[int(paid.argmin())]


def _least_expected(evidence: Evidence, rival: Any, features: Any) -> Positions:
    """Decide by the probabilities of a rival, which may not know all classes."""
    known = positions(rival.classes_, evidence.classifier.classes_, "a rival")
    probabilities = rival.predict_proba(features)
    charges = probabilities @ evidence.costs[np.ix_(known, known)]
    return np.asarray(known[charges.argmin(axis=1)])


def _intervals(resampled: FloatArray) -> FloatArray:
    """Return the ends of the intervals of columns, (n_columns, 2)."""
    tail = (100 - LEVEL) / 2
    return np.asarray(np.percentile(resampled, [tail, 100 - tail], axis=0).T)
