"""Table 1 of the paper: average costs on twelve UCI data sets.

The protocol is that of section 5.1. Each data set is one set of samples, cut into stratified folds.
Inside each training part, the confusion matrix of a cost-blind booster in inner cross-validation
becomes the cost matrix. Every algorithm is then fitted to the training part, and the average cost
of its decisions on the test part counts.
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from badacost import __version__
from badacost.arrays import FloatArray, Positions
from badacost.boosting.adac2m1 import AdaC2M1Classifier
from badacost.boosting.badacost import BAdaCostClassifier
from badacost.boosting.cost_tree import CostSensitiveTreeClassifier
from badacost.boosting.lp_csb import LpCSBClassifier
from badacost.boosting.samme import SAMMEClassifier
from badacost.boosting.wang_multiboost import WangMultiBoostClassifier
from badacost.costs import costs_from_confusion, minimum_cost_decision
from badacost.datasets import UCI_NAMES, load_uci
from badacost.experiments.journal import Journal
from badacost.loss import confusion_weights
from badacost.progress import ProgressBar

Reading = Literal["full", "tree", "training"]
Predict = Callable[[NDArray[Any]], NDArray[Any]]

READINGS = {
    "full": "boosted trees, inner cross-validation",
    "tree": "a single tree, inner cross-validation",
    "training": "boosted trees, on their own training samples",
}
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
    >>> from badacost.experiments.uci import Settings
    >>> settings = Settings(data_sets=("car", "cmc"), max_depth=2, learning_rate=0.5).complete()
    >>> settings.variant
    'depth-2-rate-0.5'
    >>> settings.contenders
    ('AdaC2.M1', 'MultiBoost', 'Lp-CSB', 'BAdaCost')
    """

    data_sets: tuple[str, ...] = UCI_NAMES
    contenders: tuple[str, ...] = ()
    reading: Reading = "full"
    n_folds: int = 5
    n_inner_folds: int = 3
    n_rounds: int = 100
    max_depth: int = 4
    learning_rate: float = 0.1
    max_features: int = 64
    n_pool: int = 6000
    p: float | Literal["auto"] = "auto"
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        """Two small data sets and short fits, to see whether everything works."""
        return cls(data_sets=("car", "cmc"), n_folds=2, n_rounds=30, n_pool=300).complete()

    @property
    def variant(self) -> str:
        """Name of the differences from the main experiment; empty if there are none."""
        usual = Settings()
        parts: list[str] = [self.reading] if self.reading != usual.reading else []
        if (self.max_depth, self.learning_rate) != (usual.max_depth, usual.learning_rate):
            parts.append(f"depth-{self.max_depth}-rate-{self.learning_rate:g}")
        return "-".join(parts)

    def complete(self) -> Settings:
        """Name all contenders, or the paper's four in a variant, where none are named."""
        if self.contenders:
            return self
        return replace(self, contenders=tuple(PAPER_CONTENDERS if self.variant else CONTENDERS))


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
    how decisions follow from the fitted model and the costs. `trees_per_class` tells that a round
    grows a tree for each class, for the estimate of the time left.
    """

    make: Callable[[Settings, FloatArray, int], Any]
    rows: dict[str, Callable[[Any, FloatArray], Predict]]
    trees_per_class: bool = False


def _tree_booster(kind: type, **parameters: str) -> Callable[[Settings, FloatArray, int], Any]:
    """A booster of the built-in tree; `parameters` name settings to pass on."""
    takes_costs = "cost_matrix" in signature(kind).parameters

    def make(settings: Settings, costs: FloatArray, seed: int) -> Any:
        own = {name: getattr(settings, source) for name, source in parameters.items()}
        if takes_costs:
            own["cost_matrix"] = costs
        return kind(
            n_estimators=settings.n_rounds,
            max_depth=settings.max_depth,
            learning_rate=settings.learning_rate,
            max_features=settings.max_features,
            random_state=seed,
            **own,
        )

    return make


def _lightgbm(settings: Settings, costs: FloatArray, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=settings.n_rounds, random_state=seed, n_jobs=1, verbose=-1)


def _random_forest(settings: Settings, costs: FloatArray, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=settings.n_rounds, random_state=seed)


def _hist_gradient_boosting(settings: Settings, costs: FloatArray, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=settings.n_rounds, early_stopping=False, random_state=seed
    )


def _plain(model: Any, costs: FloatArray) -> Predict:
    return model.predict


def _bayes(model: Any, costs: FloatArray) -> Predict:
    return model.set_params(decision="bayes").predict


def _minimum_cost(model: Any, costs: FloatArray) -> Predict:
    def predict(X: NDArray[Any]) -> NDArray[Any]:
        return minimum_cost_decision(model.predict_proba(X), costs)

    return predict


def _plain_and_minimum_cost(name: str) -> dict[str, Callable[[Any, FloatArray], Predict]]:
    return {name: _plain, f"{name} + minimum cost": _minimum_cost}


CONTENDERS: dict[str, Contender] = {
    "AdaC2.M1": Contender(_tree_booster(AdaC2M1Classifier), {"AdaC2.M1": _plain}),
    "MultiBoost": Contender(
        _tree_booster(WangMultiBoostClassifier, n_pool="n_pool"), {"MultiBoost": _plain}
    ),
    "Lp-CSB": Contender(_tree_booster(LpCSBClassifier, p="p"), {"Lp-CSB": _plain}),
    "BAdaCost": Contender(
        _tree_booster(BAdaCostClassifier), {"BAdaCost": _plain, "BAdaCost, bayes": _bayes}
    ),
    "SAMME": Contender(_tree_booster(SAMMEClassifier), {"SAMME": _plain}),
    "LightGBM": Contender(_lightgbm, _plain_and_minimum_cost("LightGBM"), trees_per_class=True),
    "Random forest": Contender(_random_forest, _plain_and_minimum_cost("Random forest")),
    "HistGradientBoosting": Contender(
        _hist_gradient_boosting, _plain_and_minimum_cost("HistGradientBoosting"), True
    ),
}
PAPER_CONTENDERS = ("AdaC2.M1", "MultiBoost", "Lp-CSB", "BAdaCost")


def run(
    settings: Settings,
    journal_path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    verbose: bool = True,
) -> list[dict[str, Any]]:
    """Run what is missing from the journal, and return all of its records.

    Parameters
    ----------
    settings : Settings
        What to run.
    journal_path : path-like
        The results file. If it has results of the same settings and versions, these are kept.
    data : path-like, optional
        Folder of the data sets, see `load_uci`.
    n_jobs : int, default=-1
        Processes; -1 is one for each core.
    verbose : bool, default=True
        Whether to show progress.

    Returns
    -------
    list of dict
        Cost matrices and results, in no particular order.

    Examples
    --------
    Two data sets and short fits, under a minute; the same call again would run nothing:

    >>> from badacost.experiments.uci import Settings, run
    >>> settings = Settings.quick()
    >>> settings.data_sets, settings.n_folds
    (('car', 'cmc'), 2)
    >>> records = run(settings, "uci-quick.jsonl")  # doctest: +SKIP
    """
    from joblib import Parallel, delayed

    settings = settings.complete()
    folder = None if data is None else os.fspath(data)
    for name in settings.data_sets:  # all of them must be there before a long run begins
        load_uci(name, folder=folder)
    journal = Journal(journal_path, header(settings))
    tasks = [*_matrices(settings), *_fits(settings)]
    weights = {task: _weight(task, settings, folder) for task in tasks}
    bar = _Progress(weights, {_task_of(record) for record in journal.records}) if verbose else None
    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="all"
    )
    try:
        for phase in (_matrices(settings), _fits(settings)):
            done = {_task_of(record) for record in journal.records}
            costs = _costs(journal)
            missing = sorted(set(phase) - done, key=lambda task: (-weights[task], task))
            calls = (
                delayed(_run_task)(settings, task, costs.get(task[:2]), folder) for task in missing
            )
            for record in parallel(calls):
                journal.append(record)
                if bar is not None:
                    bar.finished(_task_of(record))
    finally:
        if bar is not None:
            bar.close()
    return journal.records


def header(settings: Settings) -> dict[str, Any]:
    """What results depend on: settings and versions."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "lightgbm")
    versions = {"python": platform.python_version(), "badacost": __version__}
    try:
        versions |= {name: version(name) for name in packages}
    except PackageNotFoundError as error:
        raise ImportError(
            f'{error.name} is missing: install it with pip install "badacost[experiments]".'
        ) from error
    return {"experiment": "uci", "settings": asdict(settings), "versions": versions}


Task = tuple[str, int, str]  # data set, fold, contender ("" for the cost matrix)


def _matrices(settings: Settings) -> list[Task]:
    return [(name, fold, "") for name in settings.data_sets for fold in range(settings.n_folds)]


def _fits(settings: Settings) -> list[Task]:
    return [
        (name, fold, contender)
        for name, fold, _ in _matrices(settings)
        for contender in settings.contenders
    ]


def _task_of(record: dict[str, Any]) -> Task:
    return record["data_set"], record["fold"], record["contender"]


def _costs(journal: Journal) -> dict[tuple[str, int], FloatArray]:
    """Cost matrices by data set and fold."""
    return {
        _task_of(record)[:2]: np.array(record["costs"])
        for record in journal.records
        if not record["contender"]
    }


def _weight(task: Task, settings: Settings, folder: str | None) -> float:
    """Rough share of a task in the whole time."""
    X, y = samples(task[0], folder)
    n_classes = int(y.max()) + 1
    cells = len(X) * X.shape[1]
    drawn = len(X) * min(X.shape[1], settings.max_features)
    if not task[2]:
        return 2.0 * drawn * (1 + n_classes / 20)
    contender = CONTENDERS[task[2]]
    if contender.make in (_lightgbm, _hist_gradient_boosting):
        return 0.5 * cells * n_classes + 2e4 * n_classes
    if task[2] == "MultiBoost":
        return drawn * settings.n_pool / 200
    return drawn * (n_classes if contender.trees_per_class else 1 + n_classes / 20)


class _Progress:
    """A progress bar over tasks of different weight."""

    def __init__(self, weights: dict[Task, float], done: set[Task]):
        self._weights = {task: weight for task, weight in weights.items() if task not in done}
        self._total = sum(self._weights.values())
        self._done = 0
        self._weight_done = 0.0
        self._bar = ProgressBar(max(len(self._weights), 1), "UCI")

    def finished(self, task: Task) -> None:
        self._done += 1
        self._weight_done += self._weights[task]
        self._bar.update(self._done, share=self._weight_done / self._total)

    def close(self) -> None:
        self._bar.close()


@lru_cache(maxsize=2)
def samples(name: str, folder: str | None) -> tuple[FloatArray, Positions]:
    """Samples, and classes as numbers in the order of their sorted names."""
    X, y = load_uci(name, folder=folder, return_X_y=True)
    return X, np.unique(y, return_inverse=True)[1]


def _fold(settings: Settings, name: str, number: int, folder: str | None) -> Fold:
    X, y = samples(name, folder)
    splitter = StratifiedKFold(settings.n_folds, shuffle=True, random_state=settings.seed)
    train, test = list(splitter.split(X, y))[number]
    return Fold(X, y, train, test, seed=settings.seed + number)


def _run_task(
    settings: Settings, task: Task, costs: FloatArray | None, folder: str | None
) -> dict[str, Any]:
    """Do one task and return its record."""
    name, number, contender = task
    fold = _fold(settings, name, number, folder)
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):  # parallel over tasks, not inside
            # A first learner no better than chance is part of the comparison.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if costs is None:
                results = {"costs": confusion_costs(settings, fold).tolist()}
            else:
                results = compete(settings, fold, costs, contender)
    except Exception as error:
        what = contender or "the confusion matrix"
        raise RuntimeError(f"{what} failed on {name}, fold {number}: {error}") from error
    seconds = round(time.perf_counter() - begin, 3)
    return {"data_set": name, "fold": number, "contender": contender, "seconds": seconds, **results}


def confusion_costs(settings: Settings, fold: Fold) -> FloatArray:
    """Make the cost matrix of a training part.

    Parameters
    ----------
    settings : Settings
        Trees, inner folds and reading.
    fold : Fold
        The samples; those of the test part are not looked at.

    Returns
    -------
    ndarray of shape (K, K)
        ``C[truth, prediction]``: the share of each class that a cost-blind classifier took for
        each other class. A mistake that it never made counts as half a one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from badacost.experiments.uci import Fold, Settings, confusion_costs
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
        tree = CostSensitiveTreeClassifier(**shape)
        inner = StratifiedKFold(settings.n_inner_folds, shuffle=True, random_state=fold.seed)
        model = tree if settings.reading == "tree" else boosted
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
        predicted = rule(model, costs)(X)
        rows[row] = {
            "cost": float(costs[truth, predicted].mean()),
            "error": float(np.mean(truth != predicted)),
        }
    results: dict[str, Any] = {"rows": rows}
    if hasattr(model, "stop_reason_"):
        results["rounds"] = model.n_estimators_
    return results


def rows_of(contenders: tuple[str, ...]) -> Iterator[str]:
    """Names of the rows that contenders fill, in order."""
    for contender in contenders:
        yield from CONTENDERS[contender].rows
