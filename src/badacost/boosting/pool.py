"""The pool of CostBoost: boosted trees and a linear member, weighted by out-of-fold probabilities.

The linear member is a multinomial logistic regression, fitted on the folds of the trees, whose
columns are the middles of bins, and indicators of categories and of missing values. A feature adds
a number to the scores that depends on its bin only, so that the member is a forest with one tree
for each feature. The logarithms of the probabilities of both members are added with weights that
are not negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from badacost._utils.arrays import FloatArray, IndexArray, Labels
from badacost.backends.shards import ShardedData
from badacost.boosting.folds import Fold
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Tree
from badacost.tree.growth_kernels import N_WORDS
from badacost.tree.split_kernels import NODE

MAX_ROWS = 50_000  # that the linear member and the weights are fitted on
_MAX_CODES = 256
_MAX_COLUMNS = 2000
_MAX_ENTRIES = 25_000_000  # of the matrix of columns
_MAX_SCORES = 4_000_000  # of all rows, folds and classes
_STRENGTHS = (100.0, 10.0, 1.0, 0.1)  # of the penalty, a sum over samples being the loss
_PENALTY_OF_INTERCEPT = 1e-3
_N_STEPS, _TOLERANCE = 300, 1e-3  # of coefficients, in a step
_MAX_SCALED = 1e4  # value of a bin, in standard deviations
_MIN_MEAN, _MAX_TOTAL, _PRECISION = 1e-6, 1e6, 4e-6  # limits of weights, for single precision
_TABLE_UNIT, _WEIGHT_UNIT = 2.0**-20, 2.0**-10  # to which results are rounded
_LEAST_WEIGHT = 0.02  # of a member that is kept


Single = NDArray[np.float32]


class Column(NamedTuple):
    """What a feature contributes to the columns."""

    feature: int
    values: NDArray[np.float32]  # (n_codes, n_columns)
    counts: FloatArray  # (n_codes,), sums of weights


def number_of_rows(mapper: BinMapper, n_rows: int, n_scores: int) -> int:
    """How many rows to fit on, `n_scores` being the number of folds times that of classes.

    Zero if there are too many columns or bins for a linear member, or no feature.
    """
    own = np.where(mapper.categorical, mapper.n_codes, 1 + mapper.has_missing)
    n_columns = int(own[mapper.usable].sum())
    if not 0 < n_columns <= _MAX_COLUMNS or int(mapper.n_codes.max()) > _MAX_CODES:
        return 0
    return min(n_rows, MAX_ROWS, _MAX_ENTRIES // n_columns, max(_MAX_SCORES // n_scores, 1000))


def _column(data: BinnedData, feature: int, weight: FloatArray) -> Column:
    mapper = data.mapper
    n_bins, n_codes = int(mapper.n_bins[feature]), int(mapper.n_codes[feature])
    counts = np.asarray(np.bincount(data.bins[feature], weight, n_codes), np.float64)
    if mapper.categorical[feature]:
        return Column(feature, np.eye(n_codes, dtype=np.float32), counts)
    edges, known = mapper.edges[feature], counts[:n_bins]
    middles = np.arange(n_bins, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if len(edges) > 1:
            ends = 1.5 * edges[[0, -1]] - 0.5 * edges[[1, -2]]
            middles = np.concatenate([ends[:1], edges[:-1] + np.diff(edges) / 2.0, ends[1:]])
        mean = known @ middles / known.sum()
        spread = np.sqrt(known @ (middles - mean) ** 2 / known.sum())
        scaled = np.clip((middles - mean) / spread, -_MAX_SCALED, _MAX_SCALED)
    values = np.zeros((n_codes, 1 + n_codes - n_bins), np.float32)
    if np.isfinite(scaled).all():
        values[:n_bins, 0] = scaled
    values[n_bins:, 1:] = 1.0
    return Column(feature, values, counts)


@dataclass(frozen=True, eq=False)
class LinearMember:
    """A fitted linear member: the mean of the models of all folds.

    Attributes
    ----------
    columns : list of Column
        What its features contribute.
    tables : list of ndarray of shape (n_codes, K)
        What a bin of each of these features adds to the logarithms of odds.
    intercept : ndarray of shape (K,)
        Logarithms of odds where all of them add zero.
    fold_tables : list of ndarray of shape (n_codes, n_folds, K)
        The same as `tables` for the model of each fold, with the strength of the penalty that is
        best for the other folds.
    fold_intercepts : ndarray of shape (n_folds, K)
        Intercepts of these models.
    """

    columns: list[Column]
    tables: list[FloatArray]
    intercept: FloatArray
    fold_tables: list[FloatArray]
    fold_intercepts: FloatArray

    def log_odds(self, data: BinnedData, owner: IndexArray) -> FloatArray:
        """Logarithms of the probabilities (n, K) of rows, of the folds that hold them out."""
        scores = self.fold_intercepts[owner]
        for column, table in zip(self.columns, self.fold_tables, strict=True):
            scores += table[data.bins[column.feature], owner]
        return np.asarray(log_softmax(scores, axis=1))

    def trees(self, mapper: BinMapper) -> tuple[list[Tree], FloatArray]:
        """A tree for each feature, and the table (n_rows, K) of cost scores for all of them."""
        first = np.cumsum([0, *map(len, self.tables)]).tolist()
        trees = [
            _tree_of_bins(column, table, mapper, start)
            for column, table, start in zip(self.columns, self.tables, first[:-1], strict=True)
        ]
        return trees, -np.concatenate(self.tables)


def owners(folds: Sequence[Fold], n_rows: int) -> IndexArray:
    """The fold that holds each row out (n_rows,), the last one if there are several; or -1."""
    owner = np.full(n_rows, -1)
    for k, fold in enumerate(folds):
        owner[fold.held_out] = k
    return owner


class PoolRows(NamedTuple):
    """Rows that members are fitted and compared on, in the order of hashes of their bins.

    Rows with the same bins, class and fold are merged; their weights are added up.
    """

    data: BinnedData
    y: Labels  # (n,)
    owner: IndexArray  # (n,), the fold that holds a row out, or -1
    weight: FloatArray  # (n,)
    train: FloatArray  # (n_folds, n), weights in the training sets of the folds
    number: IndexArray  # (n,), number of one of these rows in the training set
    place: IndexArray  # (n_samples,), of each training sample in these arrays, or -1

    @classmethod
    def of(cls, data: ShardedData, folds: Sequence[Fold], seed: int, n_most: int) -> PoolRows:
        """Take about `n_most` rows, whatever the order of the training samples."""
        n, mixed, owner = len(data.y), data.mixed(seed), owners(folds, len(data.y))
        drawn = np.arange(n)
        if n_most < n:
            drawn = np.flatnonzero(mixed <= np.partition(mixed, n_most - 1)[n_most - 1])
        counts = np.array([np.bincount(fold.train, minlength=n)[drawn] for fold in folds])
        is_used = (owner[drawn] >= 0) | counts.any(axis=0)
        drawn, counts = drawn[is_used], counts[:, is_used]
        weight = data.weight[drawn] / data.weight.max()
        mean = np.clip(data.weight.mean(), _MIN_MEAN, max(1.0, _MAX_TOTAL / n))
        weight *= mean / (data.weight / data.weight.max()).mean()
        keys = np.stack([mixed, data.y.astype(np.uint64), owner.astype(np.uint64)])[:, drawn]
        order = np.lexsort((weight, *keys[::-1]))
        is_new = np.append(True, (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0))
        first = np.flatnonzero(is_new)
        place, number = np.full(n, -1), drawn[order[first]]
        place[drawn[order]] = np.cumsum(is_new) - 1
        rows = np.sort(number)
        bins = data.select(rows).bins[:, np.searchsorted(rows, number)]
        return cls(
            BinnedData(data.mapper, bins),
            data.y[number],
            owner[number],
            np.add.reduceat(weight[order], first),
            np.add.reduceat((counts * weight)[:, order], first, axis=1),
            number,
            place,
        )


def fit_linear(rows: PoolRows, n_classes: int) -> LinearMember:
    """Fit the linear member."""
    data, y, owner = rows.data, rows.y, rows.owner
    total = rows.train.sum(axis=0)
    columns = [_column(data, int(feature), total) for feature in data.mapper.usable]
    problem = _Problem(_matrix(columns, data), y, rows.train.astype(np.float32), n_classes)
    fitted: dict[float, Single] = {}
    losses: dict[float, FloatArray] = {}  # of each fold

    def loss_of(strength: float) -> float:
        if strength not in fitted:
            fitted[strength] = problem.solve(strength, fitted)
            log_odds = _out_of_fold(problem.scores(fitted[strength]), owner)
            terms = np.where(owner >= 0, -log_odds[np.arange(len(y)), y] * rows.weight, 0.0)
            sums = np.bincount(np.maximum(owner, 0), terms, minlength=len(rows.train))
            losses[strength] = np.asarray(sums, np.float64)
        return float(losses[strength].sum())

    strongest, strong, weak, weakest = _STRENGTHS
    loss_of(strongest if loss_of(strong) < loss_of(weak) else weakest)
    best = min(losses, key=loss_of)
    by_fold = fitted[best].astype(np.float64)
    for k in range(len(rows.train)):  # its own samples do not choose the strength
        chosen = min(losses, key=lambda strength: loss_of(strength) - losses[strength][k])
        by_fold[:, k] = fitted[chosen][:, k]
    ends = np.cumsum([column.values.shape[1] for column in columns])

    def tables_of(coefficients: FloatArray) -> list[FloatArray]:
        own = np.split(coefficients[:-1], ends[:-1])
        return [np.tensordot(x.values, part, 1) for x, part in zip(columns, own, strict=True)]

    mean = _rounded(fitted[best].astype(np.float64).mean(axis=1).T, _TABLE_UNIT)
    by_fold = by_fold.transpose(2, 1, 0)
    return LinearMember(columns, tables_of(mean), mean[-1], tables_of(by_fold), by_fold[-1])


def _matrix(columns: list[Column], data: BinnedData) -> Single:
    """Columns of rows, the last one of ones."""
    parts = [column.values[data.bins[column.feature]] for column in columns]
    return np.column_stack([*parts, np.ones(data.bins.shape[1], np.float32)])


class _Problem:
    """Logistic regressions of all folds on the same columns.

    A step solves a quadratic bound of the loss (Böhning), with Nesterov's acceleration. Arrays
    begin with the class, so that sums over classes are fast.
    """

    def __init__(self, X: Single, y: Labels, weight: Single, n_classes: int):
        n_folds, n_columns = len(weight), X.shape[1]
        self.shape = n_classes, n_folds, n_columns
        self._X, self._weight = X, weight
        self._gram = 0.5 * (X.T * weight.max(axis=0)) @ X
        self._truth = np.empty((n_classes * n_folds, n_columns), np.float32)
        for label in range(n_classes):
            own = y == label
            self._truth[label * n_folds : (label + 1) * n_folds] = weight[:, own] @ X[own]

    def scores(self, coefficients: Single) -> Single:
        """Logarithms of odds (K, n_folds, n)."""
        return _scores(coefficients, self._X)

    def solve(self, strength: float, known: dict[float, Single]) -> Single:
        """Coefficients (K, n_folds, D), from those of the nearest strength that are known."""
        n_columns = self.shape[2]
        penalty = np.full(n_columns, strength, np.float32)
        penalty[-1] = _PENALTY_OF_INTERCEPT
        # A little larger, so that rounding to single precision leaves it an upper bound.
        more = _PRECISION * self._gram.diagonal().max()
        bound = self._gram.astype(np.float64) + np.diag(penalty + more)
        # Not scipy.linalg: its BLAS has threads of its own, which compete with those of numpy.
        step: Single = np.linalg.inv(bound).astype(np.float32)
        now: Single = np.zeros((len(self._truth), n_columns), np.float32)
        if known:
            nearest = min(known, key=lambda other: abs(math.log(other / strength)))
            now = known[nearest].reshape(now.shape)
        ahead: Single = now
        speed = 1.0
        for _ in range(_N_STEPS):
            odds = self.scores(ahead.reshape(self.shape))
            odds -= odds.max(axis=0)
            np.exp(odds, out=odds)
            odds *= self._weight / odds.sum(axis=0)
            slope = odds.reshape(len(now), -1) @ self._X - self._truth + penalty * ahead
            then: Single = np.asarray(ahead - slope @ step, np.float32)
            turned = ((ahead - then) * (then - now)).sum() > 0.0
            faster = 1.0 if turned else (1.0 + math.sqrt(1.0 + 4.0 * speed**2)) / 2.0
            moved = then - now
            ahead = then + np.float32((speed - 1.0) / faster) * moved
            now, speed = then, faster
            # Before convergence the result depends on the bound, hence on held-out rows.
            if np.abs(moved).max() < _TOLERANCE:
                break
        return now.reshape(self.shape)


def _scores(coefficients: Single, X: Single) -> Single:
    n_classes, n_folds, n_columns = coefficients.shape
    found: Single = coefficients.reshape(-1, n_columns) @ X.T
    return found.reshape(n_classes, n_folds, -1)


def _out_of_fold(scores: Single, owner: IndexArray) -> FloatArray:
    """Logarithms of probabilities (n, K), of the folds that hold the rows out."""
    own = scores[:, owner, np.arange(len(owner))].T
    return np.asarray(log_softmax(own.astype(np.float64), axis=1))


def _rounded(values: FloatArray, unit: float) -> FloatArray:
    """Multiples of a unit, so that the last bits of a library of matrices do not matter."""
    return np.rint(values / unit) * unit + 0.0


def _tree_of_bins(column: Column, table: FloatArray, mapper: BinMapper, first: int) -> Tree:
    """A tree with a leaf for each bin of a feature, whose values count from `first`.

    The gain of a split is the decrease of the squared error of the `table` (n_codes, K), times the
    largest second derivative of the loss, as the gain of a Newton step is.
    """
    feature, n_codes = column.feature, len(column.values)
    n_bins, categorical = int(mapper.n_bins[feature]), bool(mapper.categorical[feature])
    nodes = np.zeros(2 * n_codes - 1, NODE)
    sets = np.zeros((len(nodes), N_WORDS), np.uint32)
    codes = np.zeros(len(nodes), np.int32)
    nodes["missing_left"], nodes["left"] = True, np.arange(len(nodes))
    sums = np.column_stack([column.counts, column.counts[:, None] * table])
    filled = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    curvature = (1.0 - 1.0 / table.shape[1]) / table.shape[1]
    # The bin whose leaf gets values that are missing at prediction only.
    usual = np.argmax(column.counts) if categorical else np.argmin(abs(column.values[:n_bins, 0]))
    waiting, n_nodes = [(0, 0, n_codes)], 1
    for node, low, high in waiting:  # children are appended
        mass, *total = filled[high] - filled[low]
        nodes[node]["end"], nodes[node]["mass"] = math.ceil(mass), mass
        if high - low == 1:
            codes[node] = low
            continue
        has_missing = high > n_bins  # they are the first to be parted from the others
        middle = n_bins if has_missing else (low + high) // 2
        sides, missing_left = [(low, middle), (middle, high)], bool(usual < middle)
        if has_missing:
            missing_left = categorical  # known categories go right
            sides = sides[::-1] if categorical else sides
        parts = [filled[b] - filled[a] for a, b in sides]
        if min(part[0] for part in parts) > 0.0:
            squares = sum(part[1:] @ part[1:] / part[0] for part in parts)
            nodes[node]["gain"] = curvature * (squares - np.dot(total, total) / mass) / mass
        for code in range(*sides[1]) if categorical else ():
            sets[node, code >> 5] |= np.uint32(1) << np.uint32(code & 31)
        nodes[node]["feature"], nodes[node]["position"] = feature, middle - 1
        nodes[node]["missing_left"], nodes[node]["left"] = missing_left, n_nodes
        waiting += [(n_nodes, *sides[0]), (n_nodes + 1, *sides[1])]
        n_nodes += 2
    tree = Tree.from_nodes(nodes, sets if mapper.categorical.any() else None, mapper)
    return replace(tree, value=codes + np.int32(first))


def pool_weights(log_odds: Sequence[FloatArray], rows: PoolRows) -> tuple[FloatArray, FloatArray]:
    """Weights (n_members,) that minimise the log-loss, and those of each fold without its rows.

    A penalty of 1 / n draws them towards (1, 0, ...). The probabilities are those of models of
    single folds, which are over-confident where trees alone would get a weight below one; the mean
    over all folds is less so. Hence the weight of the trees in the model is divided by that weight.
    """
    y, owner, weight = rows.y, rows.owner, rows.weight
    x = np.stack([member - member.mean(axis=1, keepdims=True) for member in log_odds], axis=-1)
    parts = [np.flatnonzero((owner >= 0) & (owner != k)) for k in range(-1, len(rows.train))]
    best, *by_fold = [_weights_of(x[part], y[part], weight[part]) for part in parts]
    (alone,) = _weights_of(x[parts[0]][:, :, :1], y[parts[0]], weight[parts[0]])
    best[0] /= min(alone, 1.0)
    return _rounded(best, _WEIGHT_UNIT), np.array(by_fold)


def logarithms(probabilities: FloatArray) -> FloatArray:
    """Logarithms of probabilities, some of which are zero."""
    return np.asarray(np.log(np.maximum(probabilities, np.finfo(np.float32).tiny)))


def pooled(log_odds: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Probabilities (n, K) of members with weights (n, n_members)."""
    weighted = [w[:, None] * member for w, member in zip(weights.T, log_odds, strict=True)]
    return np.asarray(softmax(np.sum(weighted, axis=0), axis=1))


def _weights_of(x: FloatArray, y: Labels, weight: FloatArray) -> FloatArray:
    """Newton's method on the weights that are positive; the first member keeps a little."""
    alone = np.eye(x.shape[2])[0]
    used = np.ones(len(alone), bool)
    if not (weight.sum() > _MIN_MEAN and np.isfinite(x).all()):
        return alone
    fraction, ridge = weight / weight.sum(), 1.0 / weight.sum()
    while True:
        weights = np.zeros(len(alone))
        weights[used] = _newton(x[:, :, used], y, fraction, alone[used], ridge)
        if not np.isfinite(weights).all():
            return alone
        weights[0] = max(weights[0], _LEAST_WEIGHT)
        if (weights[used] >= _LEAST_WEIGHT).all():
            return _rounded(weights, _WEIGHT_UNIT)
        used = weights >= _LEAST_WEIGHT


def _newton(
    x: FloatArray, y: Labels, fraction: FloatArray, start: FloatArray, ridge: float
) -> FloatArray:
    truth = x[np.arange(len(y)), y]

    def step_of(w: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(x @ w, axis=1)
        p = np.exp(log_p)
        mean = np.einsum("nk,nkm->nm", p, x)
        slope = fraction @ (mean - truth) + ridge * (w - start)
        second = np.einsum("n,nk,nkm,nkl->ml", fraction, p, x, x, optimize=True)
        second += ridge * np.eye(len(w)) - (fraction[:, None] * mean).T @ mean
        loss = -fraction @ log_p[np.arange(len(y)), y] + 0.5 * ridge * ((w - start) ** 2).sum()
        return float(loss), np.linalg.solve(second, slope)

    w = start
    loss, step = step_of(w)
    for _ in range(50):
        if np.abs(step).max() < 1e-7:
            break
        then, next_step = step_of(w - step)
        if then > loss:
            step = 0.5 * step
            continue
        w, loss, step = w - step, then, next_step
    return w
