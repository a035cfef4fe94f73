"""The contest with the rivals: what minimum-cost decisions cost under their probabilities.

Every contender is fitted with its default parameters to the same training parts of the twelve UCI
data sets. Three kinds of costs are then charged on the test parts, for decisions of minimum
expected cost. The same program measures the time on one and on several threads.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from badacost._utils.arrays import FloatArray, Positions
from badacost._utils.validation import check_choice, check_number
from badacost.costs import minimum_cost_decision, ordinal_costs, zero_one_costs
from badacost.datasets import UCI_NAMES
from experiments.contenders import CONTENDERS, Calibrated
from experiments.journal import Journal
from experiments.table1 import samples
from experiments.tasks import Record, run_missing, versions

KINDS = ("random", "ordinal", "one class")
TEST_SHARE = 0.4
FEATURES_DRAWN = {"isolet": 32}  # a fit of CatBoost to all 617 takes half an hour
N_BINS = 15
_KEYS = ("data_set", "split", "contender", "threads")
_MIN_PROBABILITY = 1e-15


@dataclass(frozen=True)
class RivalSettings:
    """What to run; results depend on the last three only, so that others can be added to them.

    Attributes
    ----------
    data_sets : tuple of str
        Names that `load_uci` knows.
    contenders : tuple of str
        Keys of `CONTENDERS`.
    n_splits : int
        Divisions of each data set into a training and a test part.
    threads : tuple of int
        Numbers of threads of each fit.
    max_rows : int
        Maximum number of samples drawn from a data set, 60 % of them for training.
    n_rounds : int or None
        Boosting rounds and trees of forests; None is the default of each contender.
    seed : int
        Seed of everything.

    Examples
    --------
    >>> RivalSettings.of(quick=True).data_sets
    ('car', 'cmc')
    >>> RivalSettings.of(timing=True).threads
    (1, 2)
    """

    data_sets: tuple[str, ...] = UCI_NAMES
    contenders: tuple[str, ...] = field(default_factory=lambda: tuple(CONTENDERS))
    n_splits: int = 5
    threads: tuple[int, ...] = (1,)
    max_rows: int = 3000
    n_rounds: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.data_sets:
            check_choice("data_sets", name, UCI_NAMES)
        for name in self.contenders:
            check_choice("contenders", name, CONTENDERS)
        for field_name, low in {"n_splits": 1, "seed": 0}.items():
            check_number(field_name, getattr(self, field_name), Integral, low=low)

    @classmethod
    def of(cls, *, quick: bool = False, timing: bool = False) -> RivalSettings:
        """Return the settings of one of the programs.

        `quick` has two small data sets and short fits, to see whether everything works; `timing`
        has one split of each data set, on one and on two threads.
        """
        given: dict[str, Any] = {}
        if quick:
            given |= {"data_sets": ("car", "cmc"), "n_splits": 2, "max_rows": 400, "n_rounds": 5}
        if timing:
            timed = tuple(name for name, contender in CONTENDERS.items() if contender.timed)
            given |= {"contenders": timed, "n_splits": 1, "threads": (1, 2)}
        return cls(**given)


@dataclass(frozen=True, eq=False)
class Split:
    """A training part and a test part, with classes 0..K-1, and costs by kind."""

    X: FloatArray
    y: Positions
    X_test: FloatArray
    y_test: Positions
    costs: dict[str, FloatArray]
    seed: int


def draw_split(
    settings: RivalSettings, name: str, number: int, folder: Path | None = None
) -> Split:
    """Draw samples of a data set, divide them and draw costs.

    Parts are stratified. A class of which a single sample was drawn is in the training part only;
    classes of which none was drawn do not count.
    """
    X, y = samples(name, folder)
    rng = np.random.default_rng([settings.seed, UCI_NAMES.index(name), number])
    rows = rng.permutation(len(X))[: settings.max_rows]
    columns = rng.permutation(X.shape[1])[: FEATURES_DRAWN.get(name)]
    X, y = X[np.ix_(rows, np.sort(columns))], np.unique(y[rows], return_inverse=True)[1]
    single = np.bincount(y)[y] == 1
    seed = int(rng.integers(2**31))
    several = np.flatnonzero(~single)
    train, test = train_test_split(
        several, test_size=TEST_SHARE, stratify=y[several], random_state=seed
    )
    train = np.concatenate([train, np.flatnonzero(single)])
    return Split(X[train], y[train], X[test], y[test], draw_costs(int(y.max()) + 1, rng), seed)


def draw_costs(n_classes: int, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Draw a cost matrix ``C[truth, prediction]`` of each kind.

    "random": from 0.5 to 10, uniformly. "ordinal": 5 for each class too low, 1 for each class too
    high. "one class": 20 where the truth is the class drawn, else 1.

    >>> costs = draw_costs(3, np.random.default_rng(0))
    >>> costs["ordinal"]
    array([[ 0.,  1.,  2.],
           [ 5.,  0.,  1.],
           [10.,  5.,  0.]])
    >>> costs["one class"]
    array([[ 0.,  1.,  1.],
           [20.,  0., 20.],
           [ 1.,  1.,  0.]])
    """
    one_class = zero_one_costs(n_classes)
    random = rng.uniform(0.5, 10.0, one_class.shape) * one_class
    one_class[rng.integers(n_classes)] *= 20.0
    costs = (random, ordinal_costs(n_classes, under=5.0, over=1.0), one_class)
    return dict(zip(KINDS, costs, strict=True))


def header(settings: RivalSettings) -> dict[str, Any]:
    """Return what all results depend on; each has the version of its own package as well."""
    return {
        "experiment": "rivals",
        "settings": {
            "max_rows": settings.max_rows,
            "features_drawn": FEATURES_DRAWN,
            "n_rounds": settings.n_rounds,
            "seed": settings.seed,
        },
        "versions": versions("numpy", "sklearn"),
    }


def run(
    settings: RivalSettings,
    journal_path: Path,
    *,
    data: Path | None = None,
    n_jobs: int = 1,
) -> list[Record]:
    """Run what is missing from the journal, and return all of its records, in any order.

    Results of other contenders, data sets and splits are added to those in the journal. `data` is
    the folder of the data sets, see `load_uci`; `n_jobs` fits are made at the same time.
    """
    versions(*(CONTENDERS[name].package for name in settings.contenders))  # before a long run
    sizes = {name: _size(name, data) for name in settings.data_sets}
    weights = {
        (name, split, contender, n_threads): size * CONTENDERS[contender].weight
        for name, size in sizes.items()
        for split in range(settings.n_splits)
        for contender in settings.contenders
        for n_threads in settings.threads
    }
    work = partial(_work, settings, data)
    with Journal(journal_path, header(settings)) as journal:
        run_missing(journal, _KEYS, weights, work, title="rivals", n_jobs=n_jobs)
    return journal.records


def _size(name: str, folder: Path | None) -> float:
    """Rough time of a fit, in any unit."""
    X, y = samples(name, folder)
    return float((FEATURES_DRAWN.get(name) or X.shape[1]) * (y.max() + 1))


def _work(
    settings: RivalSettings,
    folder: Path | None,
    name: str,
    number: int,
    contender: str,
    n_threads: int,
) -> Record:
    """Do one task and return its results."""
    split = draw_split(settings, name, number, folder)
    _warm_up(contender, n_threads)
    package = CONTENDERS[contender].package
    return {
        "version": versions(package)[package],
        **compete(settings, split, contender, n_threads),
    }


@cache
def _warm_up(contender: str, n_threads: int) -> None:
    """Load and compile what a contender needs, so that this is not part of its time."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 4)) + y[:, np.newaxis]
    split = Split(X, y, X, y, draw_costs(3, rng), seed=0)
    compete(RivalSettings(n_rounds=2), split, contender, n_threads)


def compete(
    settings: RivalSettings, split: Split, contender: str, n_threads: int = 1
) -> dict[str, Any]:
    """Fit a contender to the training part, and measure decisions and probabilities on the test.

    Returns ``costs`` (average by kind), ``log_loss`` and ``calibration_error`` (None without
    probabilities), ``fit`` and ``predict`` (seconds ``cpu`` and ``wall``), and ``n_folds`` if it
    was calibrated. Those of several fits are averages.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = draw_costs(3, np.random.default_rng(0))
    >>> split = Split(X[::2], y[::2], X[1::2], y[1::2], costs, seed=0)
    >>> found = compete(RivalSettings(), split, "Logistic regression")
    >>> round(found["costs"]["one class"], 3)
    0.44
    """
    rival = CONTENDERS[contender]
    rounds: dict[str, Any] = {}
    if settings.n_rounds is not None and rival.rounds is not None:
        rounds[rival.rounds] = settings.n_rounds
    costs, measures, times = {}, [], []
    for kinds in ([kind] for kind in KINDS) if rival.takes_costs else [KINDS]:
        given: Any = {"cost_matrix": split.costs[kinds[0]]} if rival.takes_costs else {}
        model = rival.make(split.seed, n_threads, **rounds, **given)
        rule = model.predict if rival.own_rule else model.predict_proba
        with warnings.catch_warnings(), threadpool_limits(n_threads):
            # Rare classes in folds, fits that did not converge: part of the comparison.
            warnings.simplefilter("ignore", UserWarning)
            _, fit = _timed(lambda: model.fit(split.X, split.y))  # noqa: B023
            found, predict = _timed(lambda: rule(split.X_test))  # noqa: B023
        times.append({"fit": fit, "predict": predict})
        if not rival.own_rule:
            found = np.asarray(found, dtype=np.float64)
            measures.append((log_loss(found, split.y_test), calibration_error(found, split.y_test)))
        for kind in kinds:
            matrix = split.costs[kind]
            decisions = found if rival.own_rule else minimum_cost_decision(found, matrix)
            costs[kind] = float(matrix[split.y_test, decisions].mean())
    loss, error = np.mean(measures, axis=0).tolist() if measures else (None, None)
    results = {
        "costs": costs,
        "log_loss": loss,
        "calibration_error": error,
        **{
            step: {clock: float(np.mean([t[step][clock] for t in times])) for clock in fit}
            for step in ("fit", "predict")
        },
    }
    return results | ({"n_folds": model.n_folds} if isinstance(model, Calibrated) else {})


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what some work returns, and the seconds it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def log_loss(probabilities: FloatArray, truth: Positions) -> float:
    """Return the mean of minus the logarithm of the probability of the truth, at least 1e-15.

    >>> round(log_loss(np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([1, 1])), 2)
    17.41
    """
    of_truth = probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.clip(of_truth, _MIN_PROBABILITY, 1.0)).mean())


def calibration_error(probabilities: FloatArray, truth: Positions) -> float:
    """Return the expected calibration error of the most probable class, in 15 bins of equal width.

    That is the mean over the samples of the difference, in their bin, between the mean probability
    of the most probable class and the share of samples that it is right for.

    >>> round(calibration_error(np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([1, 0])), 2)
    0.3
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * N_BINS).astype(np.int64), N_BINS - 1)
    gaps = np.bincount(bins, confidence - right, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(truth))
