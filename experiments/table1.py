"""Table 1 of the paper: average costs on twelve UCI data sets.

The protocol is that of section 5.1. Each data set is one set of samples, cut into stratified folds.
Inside each training part, the confusion matrix of a cost-blind booster in inner cross-validation
becomes the cost matrix. Every algorithm is then fitted to the training part, and the average cost
of its decisions on the test part counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from inspect import signature
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from badacost._utils.arrays import FloatArray, Positions
from badacost._utils.validation import check_choice, check_number
from badacost.classifiers.badacost import BAdaCostClassifier
from badacost.classifiers.cost_tree import CostSensitiveTreeClassifier
from badacost.costs import costs_from_confusion, minimum_cost_decision
from badacost.datasets import UCI_NAMES
from badacost.family import (
    AdaC2M1Classifier,
    LpCSBClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
)
from badacost.loss import confusion_weights
from experiments import contenders, paper
from experiments.journal import Journal
from experiments.tasks import Record, Task, run_missing, versions
from experiments.uci import load_paper_set

Make = Callable[["Settings", FloatArray, int], Any]
Rule = Callable[[Any, NDArray[Any], FloatArray], NDArray[Any]]

READINGS = {
    "full": "boosted trees, inner cross-validation",
    "tree": "a single tree, inner cross-validation",
    "training": "boosted trees, on their own training samples",
}
_KEYS = ("data_set", "fold", "contender")  # no contender for a cost matrix
_UNSEEN = 0.5  # mistakes, in the place of none: no class may be free of charge


@dataclass(frozen=True)
class Settings:
    """What the results depend on, besides the data.

    Attributes
    ----------
    data_sets : tuple of str
        Names that `load_uci` knows.
    contenders : tuple of str
        Keys of `CONTENDERS`.
    reading : {"full", "tree", "training"}
        Whose confusion matrix makes the costs; the paper does not say.
    n_folds, n_inner_folds : int
        Outer and inner cross-validation.
    n_rounds : int
        Boosting rounds of every algorithm, and trees of the random forest.
    max_depth, learning_rate
        Of all algorithms that boost the built-in tree: by default those of the library.
    max_features : int
        Maximum number of features drawn at a node; only Isolet and CNAE9 have more.
    n_pool : int
        Weak learners in the pool of Wang's MultiBoost.
    p : float or "auto"
        Norm of Lp-CSB; "auto" holds out a part of the training samples to choose it.
    seed : int
        Seed of everything.

    Examples
    --------
    >>> settings = Settings(data_sets=("car", "cmc"), max_depth=2, learning_rate=0.5).complete()
    >>> settings.variant
    'depth-2-rate-0.5'
    >>> settings.contenders
    ('AdaC2.M1', 'MultiBoost', 'Lp-CSB', 'BAdaCost')
    """

    data_sets: tuple[str, ...] = UCI_NAMES
    contenders: tuple[str, ...] = ()
    reading: str = "full"
    n_folds: int = 5
    n_inner_folds: int = 3
    n_rounds: int = 100
    max_depth: int = 4
    learning_rate: float = 0.1
    max_features: int = 64
    n_pool: int = 6000
    p: float | Literal["auto"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.data_sets:
            check_choice("data_sets", name, UCI_NAMES)
        check_choice("reading", self.reading, READINGS)
        check_number("learning_rate", self.learning_rate, low=0.0, open_low=True)
        for field, low in {"max_depth": 1, "n_folds": 2, "n_pool": 3, "seed": 0}.items():
            check_number(field, getattr(self, field), Integral, low=low)

    @classmethod
    def quick(cls) -> Settings:
        """Two small data sets and short fits, to see whether everything works."""
        return cls(data_sets=("car", "cmc"), n_folds=2, n_rounds=30, n_pool=300)

    @property
    def variant(self) -> str:
        """Name of the differences from the main experiment; empty if there are none."""
        usual = Settings()
        parts = [self.reading] if self.reading != usual.reading else []
        if (self.max_depth, self.learning_rate) != (usual.max_depth, usual.learning_rate):
            parts.append(f"depth-{self.max_depth}-rate-{self.learning_rate:g}")
        return "-".join(parts)

    @property
    def name(self) -> str:
        """Name of the journal and of the numbers, without suffix."""
        return "-".join(filter(None, ["uci", self.variant]))

    def complete(self) -> Settings:
        """Name all contenders, or the paper's four in a variant, where none are named."""
        if self.contenders:
            return self
        return replace(self, contenders=tuple(paper.ALGORITHMS if self.variant else CONTENDERS))


@dataclass(frozen=True, eq=False)
class Fold:
    """A training part and a test part, with classes 0..K-1."""

    X: FloatArray
    y: Positions
    train: Positions
    test: Positions
    seed: int


@dataclass(frozen=True)
class Contender:
    """An algorithm, and the rows of the table that one fit of it fills.

    `make` builds the estimator from settings, costs and seed; `rows` says, for each row by name,
    how decisions follow from the fitted model, samples and costs.
    """

    make: Make
    rows: dict[str, Rule]


def _tree_booster(kind: type, *more: str) -> Make:
    """A booster of the built-in tree, to which some settings are passed on, and costs if it can."""
    passed = ("max_depth", "learning_rate", "max_features", *more)
    takes_costs = "cost_matrix" in signature(kind).parameters

    def make(settings: Settings, costs: FloatArray, seed: int) -> Any:
        own = {name: getattr(settings, name) for name in passed}
        if takes_costs:
            own["cost_matrix"] = costs
        return kind(n_estimators=settings.n_rounds, random_state=seed, **own)

    return make


def _rival(name: str, **fixed: Any) -> Contender:
    """One of the contest with the rivals, plain and with the decision of minimum expected cost."""
    rival = contenders.CONTENDERS[name]

    def make(settings: Settings, costs: FloatArray, seed: int) -> Any:
        return rival.make(seed, 1, **{str(rival.rounds): settings.n_rounds}, **fixed)

    return Contender(make, {name: _plain, f"{name} + minimum cost": _minimum_cost})


def _plain(model: Any, X: NDArray[Any], costs: FloatArray) -> NDArray[Any]:
    return model.predict(X)


def _bayes(model: Any, X: NDArray[Any], costs: FloatArray) -> NDArray[Any]:
    return model.set_params(decision="bayes").predict(X)


def _minimum_cost(model: Any, X: NDArray[Any], costs: FloatArray) -> NDArray[Any]:
    return minimum_cost_decision(model.predict_proba(X), costs)


CONTENDERS: dict[str, Contender] = {
    "AdaC2.M1": Contender(_tree_booster(AdaC2M1Classifier), {"AdaC2.M1": _plain}),
    "MultiBoost": Contender(
        _tree_booster(WangMultiBoostClassifier, "n_pool"), {"MultiBoost": _plain}
    ),
    "Lp-CSB": Contender(_tree_booster(LpCSBClassifier, "p"), {"Lp-CSB": _plain}),
    "BAdaCost": Contender(
        _tree_booster(BAdaCostClassifier), {"BAdaCost": _plain, "BAdaCost, bayes": _bayes}
    ),
    "SAMME": Contender(_tree_booster(SAMMEClassifier), {"SAMME": _plain}),
    "LightGBM": _rival("LightGBM"),
    "Random forest": _rival("Random forest"),
    "HistGradientBoosting": _rival("HistGradientBoosting", early_stopping=False),
}


def run(
    settings: Settings,
    journal_path: Path,
    *,
    data: Path | None = None,
    n_jobs: int = -1,
) -> list[Record]:
    """Run what is missing from the journal, and return all of its records, in any order.

    If the journal has results of the same settings and versions, these are kept. `data` is the
    folder of the data sets, see `load_uci`; `n_jobs` counts processes.
    """
    settings = settings.complete()
    for name in settings.data_sets:  # all of them must be there before a long run begins
        load_paper_set(name, data)
    matrices = [(name, i, "") for name in settings.data_sets for i in range(settings.n_folds)]
    fits = [(*task[:2], contender) for task in matrices for contender in settings.contenders]
    with Journal(journal_path, header(settings)) as journal:
        for title, tasks in (("cost matrices", matrices), ("fits", fits)):
            costs = {
                (record["data_set"], record["fold"]): np.array(record["costs"])
                for record in journal.records
                if "costs" in record
            }
            run_missing(
                journal,
                _KEYS,
                {task: _weight(task, settings, data) for task in tasks},
                partial(_work, settings, costs, data),
                title=title,
                n_jobs=n_jobs,
            )
    return journal.records


def header(settings: Settings) -> dict[str, Any]:
    """Return what results depend on: settings and versions."""
    packages = versions("badacost", "numpy", "scipy", "scikit-learn", "numba", "lightgbm")
    return {"experiment": "uci", "settings": asdict(settings), "versions": packages}


def _weight(task: Task, settings: Settings, folder: Path | None) -> float:
    """Rough share of a task in the whole time."""
    X, y = samples(task[0], folder)
    n_classes = int(y.max()) + 1
    if task[2] in ("LightGBM", "HistGradientBoosting"):
        return (0.5 * X.size + 2e4) * n_classes
    drawn = len(X) * min(X.shape[1], settings.max_features)
    if task[2] == "MultiBoost":
        return drawn * settings.n_pool / 200
    return drawn * (1 + n_classes / 20) * (1.0 if task[2] else 2.0)


@lru_cache(maxsize=2)
def samples(name: str, folder: Path | None) -> tuple[FloatArray, Positions]:
    """Return samples, and classes as numbers in the order of their sorted names."""
    X, y = load_paper_set(name, folder)
    return X, np.unique(y, return_inverse=True)[1]


def _work(
    settings: Settings,
    costs: dict[tuple[str, int], FloatArray],
    folder: Path | None,
    name: str,
    number: int,
    contender: str,
) -> Record:
    """Do one task and return its results."""
    X, y = samples(name, folder)
    splitter = StratifiedKFold(settings.n_folds, shuffle=True, random_state=settings.seed)
    train, test = list(splitter.split(X, y))[number]
    fold = Fold(X, y, train, test, seed=settings.seed + number)
    begin = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1):  # parallel over tasks, not inside
        # A first learner no better than chance is part of the comparison.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if contender:
            results = compete(settings, fold, costs[name, number], contender)
        else:
            results = {"costs": confusion_costs(settings, fold).tolist()}
    return {"seconds": round(time.perf_counter() - begin, 3), **results}


def confusion_costs(settings: Settings, fold: Fold) -> FloatArray:
    """Make the cost matrix ``C[truth, prediction]`` of a training part.

    An entry is the share of a class that a cost-blind classifier took for another class. A mistake
    that it never made counts as half a one.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> fold = Fold(X, y, train=np.arange(0, 150, 2), test=np.arange(1, 150, 2), seed=0)
    >>> confusion_costs(Settings(reading="tree", max_depth=2), fold).round(2)
    array([[0.  , 0.02, 0.02],
           [0.02, 0.  , 0.04],
           [0.02, 0.16, 0.  ]])
    """
    X, y = fold.X[fold.train], fold.y[fold.train]
    shape: dict[str, Any] = {
        "max_depth": settings.max_depth,
        "max_features": settings.max_features,
        "random_state": fold.seed,
    }
    boosted = BAdaCostClassifier(
        n_estimators=settings.n_rounds, learning_rate=settings.learning_rate, **shape
    )
    if settings.reading == "training":
        predicted = boosted.fit(X, y).predict(X)
    else:
        model = CostSensitiveTreeClassifier(**shape) if settings.reading == "tree" else boosted
        inner = StratifiedKFold(settings.n_inner_folds, shuffle=True, random_state=fold.seed)
        predicted = cross_val_predict(model, X, y, cv=inner)
    counts = confusion_weights(y, predicted, np.ones(len(y)), int(y.max()) + 1)
    return costs_from_confusion(np.maximum(counts, _UNSEEN))


def compete(settings: Settings, fold: Fold, costs: FloatArray, contender: str) -> dict[str, Any]:
    """Fit an algorithm to the training part and compute the cost of its decisions on the test part.

    Returns ``rows``: name of a row -> ``cost`` (average) and ``error`` (share of mistakes); and
    ``rounds`` if the algorithm may stop early.
    """
    algorithm = CONTENDERS[contender]
    model = algorithm.make(settings, costs, fold.seed)
    model.fit(fold.X[fold.train], fold.y[fold.train])
    X, truth = fold.X[fold.test], fold.y[fold.test]
    rows = {}
    for row, rule in algorithm.rows.items():
        predicted = rule(model, X, costs)
        rows[row] = {
            "cost": float(costs[truth, predicted].mean()),
            "error": float(np.mean(truth != predicted)),
        }
    results: dict[str, Any] = {"rows": rows}
    if hasattr(model, "stop_reason_"):
        results["rounds"] = model.n_estimators_
    return results
