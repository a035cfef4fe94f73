"""CostBoost: class probabilities, boosted with one tree a round, and minimum-cost decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Labels
from badacost._utils.parallel import blocks, exact_sum, single_blas_thread
from badacost._utils.user_warnings import warn_user
from badacost._utils.validation import check_choice, check_number
from badacost.backends.shards import ShardedData
from badacost.boosting.cross_fit import CrossFit, FoldLoss
from badacost.boosting.folds import Fold, given_folds, random_folds
from badacost.boosting.pool import (
    LinearMember,
    PoolRows,
    fit_linear,
    logarithms,
    number_of_rows,
    owners,
    pool_weights,
    pooled,
)
from badacost.boosting.stagewise import (
    Descent,
    ScoredSamples,
    ScoreMonitor,
    Stage,
    mean_and_error,
)
from badacost.classifiers.base import StagewiseClassifier
from badacost.classifiers.posterior import PosteriorMixin
from badacost.classifiers.saving import saved_floats, saved_log_prior
from badacost.classifiers.training_data import Task, growth_of
from badacost.costs.matrix import expected_costs
from badacost.io.model_file import ModelFile, saved_model
from badacost.tree.binning import BinMapper
from badacost.tree.forest import Forest

TreeKind = Literal["symmetric", "best"]
Members = Literal["pool", "trees"]
_MAX_LEAVES = 31  # of trees that are grown best leaf first
_SMALL_MEAN_WEIGHT = 0.01
_FOLDS_OF_FEW, _FOLDS_OF_MANY, _MANY = 8, 5, 10_000  # folds; samples that are many
_SMALL_LOSS = 0.02  # of nearly separable classes, which is not worth many rounds


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class CostBoostClassifier(PosteriorMixin, StagewiseClassifier):
    """Boosted class probabilities, and the decision of minimum expected cost.

    Minimises the log-loss of softmax scores. A round grows one tree for any number of
    classes: its structure follows random projections of the gradients (a sketch [1]_), its leaves
    are vectors, one Newton step for each class. The training is repeated on folds, each of which
    holds out a part of the samples; out-of-fold losses decide when to stop, and out-of-fold
    decisions estimate what decisions will cost. The model is the mean of the scores of all folds.
    They take ``n_folds * n_samples * (12 * K + 8)`` bytes in training: 640 MB for a million
    samples, ten classes and five folds.

    A logistic regression on the same folds is added to the trees (``members="pool"``): the
    logarithms of the probabilities of both are added up, with the weights that have the lowest
    out-of-fold log-loss.

    The costs are not used in the training: `decide` takes others at any time.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth. An array is in the order of ``classes_``; a
        nested mapping ``{truth: {prediction: cost}}`` or a data frame (index: truth, columns:
        prediction) may be in any order and may have labels that are missing from the training
        data. Costs are not negative; a diagonal that is not zero is subtracted from its row. None
        is a cost of one for each mistake. `badacost.costs` has builders.
    n_estimators : int, default=1000
        Maximum number of rounds; each grows a tree in every fold.
    learning_rate : float, default=0.2
        Factor of every leaf.
    n_folds : int or "auto", default="auto"
        Parts of the training samples that are held out in turn: "auto" is 8, or 5 if there are more
        than 10 000 samples. With 1 there is a single model, and `validation_fraction` of the
        samples decide when to stop.
    cv : int, splitter of scikit-learn, iterable of (train, test) or None, default=None
        Folds of another kind, in the place of `n_folds` folds that are drawn at random within each
        class. For samples that belong together, ``list(GroupKFold(5).split(X, y, groups))``.
    members : {"pool", "trees"}, default="pool"
        What the model consists of: trees and a logistic regression, or trees only. There are trees
        only without several folds, with validation data, with more than 2000 columns, and with
        ``binning="exact"``.
    tree : {"symmetric", "best"}, default="symmetric"
        Trees with the same test in all nodes of a level, or grown best leaf first.
    max_depth : int or None, default=5
        Maximum number of levels of tests in a tree.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree. None is 31 for ``tree="best"``, and no limit besides
        `max_depth` for symmetric trees.
    min_samples_split, min_samples_leaf : int, default=2 and 1
        Minimum numbers of samples in a node that is split, and in a leaf. The test of a level of a
        symmetric tree may leave a node whole, but not divide one against these limits.
    min_hessian : float, default=0.001
        Minimum sum of second derivatives in a leaf.
    l2 : float, default=1.0
        Added to the second derivatives: a larger one makes the values of small leaves smaller. Both
        numbers are those of the beginning; they fall with the root of the mean second derivative. A
        sample of weight 2 counts as two samples: the scale of weights matters.
    n_directions : int, default=1
        Number of projections of the gradients that the structure of a tree follows.
    max_features : int, float, {"auto", "sqrt", "log2"} or None, default="auto"
        Features drawn at each node, at each level of symmetric trees: a number, a fraction, or all.
        "auto" is twice the square root of their number. Constant features do not count.
    binning : {"quantile", "uniform", "exact"}, default="quantile"
        How values become bins: about equally many samples in each, equal steps, or one for every
        distinct value, which symmetric trees take if there are at most 256.
    max_bins : int or "auto", default="auto"
        Maximum number of bins of a feature, one of them for missing values if there are any. "auto"
        is 32 for less than 400 samples, 128 for less than 10 000, and 255. A categorical feature
        has one for each of its 255 most frequent categories.
    categorical_features : {"from_dtype"}, array-like or None, default="from_dtype"
        Columns whose values are categories: text, numbers or booleans, without an order. The trees
        test whether a category is in a set. "from_dtype" takes the columns of a data frame of the
        dtype category (pandas), Categorical or Enum (polars); a list has the names of columns,
        their positions, or True or False for each of them. Categories that were not seen in the
        training, or have no bin, are treated as missing. A warm start keeps the known categories.
    subsample : float, default=1.0
        Fraction of the samples that a tree is grown on, drawn anew each time.
    early_stopping : bool, default=True
        Whether to stop when the out-of-fold log-loss no longer falls, and go back to the best
        round.
    validation_fraction : float, int or None, default=None
        Part of the training samples held out if `n_folds` is 1 and no validation data are given;
        None is a tenth. Refused where folds hold samples out.
    n_iter_no_change : int, default=30
        Rounds without improvement before stopping.
    tol : float, default=0.005
        Only a log-loss that is lower by more than this fraction of it, or of 0.02 if it is less,
        counts as an improvement.
    warm_start : bool, default=False
        Whether the next `fit` adds rounds to those fitted before.
    callbacks : sequence of callables or None, default=None
        Called with a `badacost.boosting.stagewise.Round` after every round; one that returns True
        ends the fit.
    n_jobs : int or None, default=None
        Threads that large data are divided among; the model does not depend on them. None and -1
        are one for each core; None is one in the workers of joblib, as in a parallel search.
    device : {"cpu", "cuda"}, default="cpu"
        Where trees are grown and scores added up. A GPU of NVIDIA needs ``badacost[gpu]``; the
        model is the same, to the last bit. Not kept in model files.
    random_state : int, RandomState instance or None, default=None
        Seed of folds, projections, `subsample` and `max_features`.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs as given, ``C[truth, prediction]``, in the order of ``classes_``.
    regret_matrix_ : ndarray of shape (K, K)
        Costs with each diagonal entry subtracted from its row.
    oof_cost_, oof_cost_std_error_ : float
        Average cost of out-of-fold decisions, an estimate of what decisions will cost on new
        samples, and its standard error; of some 50 000 samples where there are more and a linear
        member. With early stopping a fold takes part with the round that
        is best for the other folds, so that its own samples do not choose it. Of the validation
        samples if there are any, which choose the round: slightly optimistic. NaN without either.
    oof_probabilities_ : ndarray of shape (n_samples, K)
        Out-of-fold probabilities of the training samples, of the rounds that `oof_cost_` is of; NaN
        for those that no fold holds out. Not there with ``n_folds=1`` or validation data, nor in a
        model from a file.
    member_weights_ : ndarray of shape (2,)
        Weights of the trees and of the logistic regression; zero if it is not used.
    log_prior_ : ndarray of shape (K,)
        Logarithms of the class probabilities before the first tree.
    forest_ : badacost.tree.forest.Forest
        The trees, round by round. If there is a logistic regression, it comes first: a tree for
        each feature that is not constant, with a leaf for each bin.
    estimator_weights_ : ndarray of shape (n_trees,)
        Factors of the trees: the learning rate divided by the number of folds, times the weight of
        the member.
    n_estimators_ : int
        Number of rounds kept.
    train_score_, validation_score_ : ndarray of shape (n_estimators_,)
        Log-loss of the trees after each round on the training samples of the folds, and out of
        fold.
    stop_reason_ : {"useless", "early stopping", "callback"} or None
        Why the fit ended before `n_estimators` rounds: trees that split nothing (if they are the
        first, their probabilities are the frequencies of the classes), or on request.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.
    categories_ : dict
        Known categories of each categorical feature, by its name, or its position if the training
        data had no names.

    References
    ----------
    .. [1] L. Iosipoi, A. Vakhrushev, "SketchBoost: Fast Gradient Boosted Decision Tree for
       Multioutput Problems", NeurIPS 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from badacost import CostBoostClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> costs = [[0, 1, 5], [1, 0, 2], [10, 8, 0]]  # C[truth, prediction]
    >>> model = CostBoostClassifier(costs, random_state=0).fit(X, y)
    >>> model.predict(X[[0, 60, 177]])
    array([0, 1, 2])
    >>> bool(model.oof_cost_ < 0.2)
    True
    """

    cost_matrix: Any = field(default=None, kw_only=False)
    n_estimators: int = 1000
    learning_rate: float = 0.2
    n_folds: int | Literal["auto"] = "auto"
    cv: Any = None
    members: Members = "pool"
    tree: TreeKind = "symmetric"
    max_depth: int | None = 5
    max_leaf_nodes: int | None = None
    min_hessian: float = 1e-3
    l2: float = 1.0
    n_directions: int = 1
    max_features: int | float | str | None = "auto"
    max_bins: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    early_stopping: bool = True
    validation_fraction: float | None = None
    n_iter_no_change: int = 30
    tol: float = 0.005

    _fits_on_gpu: ClassVar[bool] = True
    _chooses_bins: ClassVar[bool] = True

    _unsaved: ClassVar[tuple[str, ...]] = ("callbacks", "cv")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_folds != "auto":
            check_number("n_folds", self.n_folds, Integral, low=1)
        check_choice("members", self.members, ("pool", "trees"))
        check_choice("tree", self.tree, ("symmetric", "best"))
        if self.tree == "symmetric" and self.max_depth is None:
            raise ValueError("max_depth must be a number for symmetric trees, at most 16.")
        if self.tree == "symmetric":
            check_number("max_depth of symmetric trees", self.max_depth, Integral, low=1, high=16)
        check_number("min_hessian", self.min_hessian, low=0.0)
        check_number("l2", self.l2, low=0.0)
        if self.l2 + self.min_hessian == 0.0:
            raise ValueError("l2 and min_hessian must not both be zero: leaves would be infinite.")
        check_number("n_directions", self.n_directions, Integral, low=1, high=64)

    @property
    def _cross_fits(self) -> bool:
        return self.n_folds != 1 or self.cv is not None

    @property
    def _holds_out(self) -> bool:
        return self.early_stopping and not self._cross_fits

    def _start(self, task: Task) -> CrossFit:
        data = task.sharded(self)
        growth = growth_of(self, data.mapper)
        growth = replace(growth, order=self.tree)
        if self.tree == "best" and self.max_leaf_nodes is None:
            growth = replace(growth, max_leaf_nodes=_MAX_LEAVES)
        if self.validation_fraction is not None and self._cross_fits:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} has no effect where folds hold "
                "samples out: leave it None, or set n_folds=1."
            )
        mean_weight = exact_sum(task.weight) / len(task.y)
        if mean_weight < _SMALL_MEAN_WEIGHT and self.l2 > 0.0:
            warn_user(
                f"sample_weight has a mean of {mean_weight:.1g}: l2 and min_hessian outweigh these "
                "samples. Scale the weights to a mean of one."
            )
        folds = self._folds(task, data)
        if any(len(stage.steps) != len(folds) for stage in self._stages()):
            raise ValueError("With warm_start=True n_folds and cv must stay as they were.")
        holds_out = self._cross_fits or self._holds_out
        samples = data.fingerprint() if holds_out else 0
        if holds_out and len(self._stage_ends) > 1 and samples != self._samples:
            raise ValueError(
                "With warm_start=True the samples must stay as they were, unless n_folds=1 and "
                "early_stopping=False."
            )
        descent = CrossFit(
            data,
            growth,
            folds,
            n_classes=len(self.classes_),
            l2=float(self.l2),
            min_hessian=float(self.min_hessian),
            learning_rate=float(self.learning_rate),
            n_directions=int(self.n_directions),
            subsample=self.subsample,
            seed=self._seed,
            threads=task.threads,
            keeps_leaves=bool(self.callbacks),
        )
        self.log_prior_, self.member_weights_ = descent.log_prior, np.array([1.0, 0.0])
        self._boosted_steps: FloatArray | None = None  # of the rounds, where there is a pool
        self._samples: int = samples
        return descent

    def _folds(self, task: Task, data: ShardedData) -> list[Fold]:
        n = len(task.y)
        if self.cv is not None:
            return given_folds(self.cv, task.y, task.kept)
        if not self._cross_fits:
            return [Fold(np.arange(n), np.arange(0))]
        if n < 2:
            raise ValueError(
                "y has one sample of positive weight: give more, or set n_folds=1 and "
                "early_stopping=False."
            )
        n_folds: Any = self.n_folds
        if n_folds == "auto":
            n_folds = _FOLDS_OF_MANY if n > _MANY else _FOLDS_OF_FEW
        return random_folds(data.mixed(self._seed), task.y, task.weight, n_folds)

    def _monitors(self, task: Task, descent: Descent) -> tuple[ScoreMonitor, ScoreMonitor | None]:
        fit: Any = descent
        held_out: ScoreMonitor | None = self._validation_monitor(task)
        if held_out is None and self._cross_fits:
            held_out = FoldLoss(fit, held_out=True, keeps_best=self.early_stopping)
        return FoldLoss(fit, held_out=False), held_out

    def _chance_stage(self, stage: Stage) -> Stage:
        """A first stage that splits nothing: the model is the frequencies of the classes."""
        return stage

    def _measure(self, part: ScoredSamples) -> tuple[float, float]:
        probabilities = self._posterior(part.scores)[np.arange(len(part.y)), part.y]
        loss = part.mean(-np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)))
        return loss, loss

    def _tolerance(self, curve: list[float]) -> float:
        return float(self.tol) * max(min(curve), _SMALL_LOSS)

    @property
    def _score_name(self) -> str:
        return "log-loss"

    def _log_prior(self) -> FloatArray:
        return self.log_prior_

    def _decision_costs(self, scores: FloatArray) -> FloatArray:
        return expected_costs(self._posterior(scores), self.regret_matrix_)

    def _decided(self, samples: Any) -> Labels:
        if isinstance(samples, FoldLoss):
            known = samples.decided
            return samples.fit.decided(self.regret_matrix_) if known is None else known
        return super()._decided(samples)

    def _finish(self, task: Task, held_out: ScoreMonitor | None) -> None:
        self.oof_cost_ = self.oof_cost_std_error_ = np.nan
        self.__dict__.pop("oof_probabilities_", None)
        if isinstance(held_out, ScoredSamples):
            scores = held_out.best_scores if self.early_stopping else held_out.scores
            costs = self.cost_matrix_[held_out.y, self._decide(scores)]
            self.oof_cost_, self.oof_cost_std_error_ = mean_and_error(costs, held_out.weight)
        elif isinstance(held_out, FoldLoss):
            fit = held_out.fit
            self.oof_cost_, self.oof_cost_std_error_ = fit.out_of_fold_cost(
                self.regret_matrix_, self.cost_matrix_
            )
            known = None if task.on_cluster else fit.out_of_fold()
            if self.members == "pool":
                with single_blas_thread:
                    self._add_linear_member(task, held_out, known)
            if known is not None:
                self.oof_probabilities_ = np.full((len(task.kept), len(self.classes_)), np.nan)
                self.oof_probabilities_[task.kept] = known

    def _add_linear_member(self, task: Task, held_out: FoldLoss, known: FloatArray | None) -> None:
        """Pool the trees with a linear member; set what is known of both out of fold.

        The out-of-fold probabilities of all samples, `known` where they are in memory, are changed.
        """
        fit = held_out.fit
        data, folds, n_classes = task.sharded(self), fit.folds, len(self.classes_)
        n, owner = len(task.y), owners(folds, len(task.y))
        n_most = number_of_rows(data.mapper, n, len(folds) * n_classes)
        if not n_most:
            return
        rows = PoolRows.of(data, folds, self._seed, n_most)
        if len(np.unique(rows.owner[(rows.owner >= 0) & (rows.weight > 0.0)])) < 2:
            return  # weights of members would be chosen by the rows that they are tried on
        linear = fit_linear(rows, n_classes)
        increasing = np.sort(rows.number)
        of_trees = fit.out_of_fold(increasing)[np.searchsorted(increasing, rows.number)]
        members = [logarithms(of_trees), linear.log_odds(rows.data, rows.owner)]
        weights, by_fold = pool_weights(members, rows)
        found = pooled(members, by_fold[rows.owner])
        decisions = np.argmin(expected_costs(found, self.regret_matrix_), axis=1)
        held_out.decided = np.unique(decisions[rows.owner >= 0])
        costs = self.cost_matrix_[rows.y, decisions][rows.place]
        held = (rows.place >= 0) & (owner >= 0)
        times = np.bincount(np.concatenate([fold.held_out for fold in folds]), minlength=n)
        weight = (task.weight * times)[held]
        self.oof_cost_, self.oof_cost_std_error_ = mean_and_error(costs[held], weight)
        self._join(linear, weights, data.mapper)
        if known is None:
            return
        for part in blocks(n):
            own, place = np.arange(n)[part], rows.place[part]
            drawn, others = own[place >= 0], own[place < 0]
            known[drawn] = found[place[place >= 0]]
            if len(others):
                both = [
                    logarithms(known[others]),
                    linear.log_odds(data.select(others), owner[others]),
                ]
                known[others] = pooled(both, by_fold[owner[others]])
        known[owner < 0] = np.nan

    def _join(self, linear: LinearMember, weights: FloatArray, mapper: BinMapper) -> None:
        """Publish trees and linear member with their weights."""
        forest, steps = self.forest_, self.estimator_weights_
        self._boosted_steps, self.member_weights_ = steps, weights
        self.log_prior_ = weights[0] * self.log_prior_
        trees, table = forest.trees(), forest.table
        steps = weights[0] * steps
        if weights[1] > 0.0:
            first, first_table = linear.trees(mapper)
            n_rows = np.int32(len(first_table))
            trees = [*first, *(replace(tree, value=tree.value + n_rows) for tree in trees)]
            table = np.concatenate([first_table, table])
            steps = np.concatenate([np.full(len(first), weights[1]), steps])
            self.log_prior_ = self.log_prior_ + weights[1] * linear.intercept
            self._stage_ends = np.append(0, self._stage_ends[1:] + len(first))
        self.log_prior_ -= np.log(np.exp(self.log_prior_).sum())
        self.estimator_weights_ = steps
        self.forest_ = Forest.from_trees(trees, steps, table, forest.n_features, mapper)

    def _stages(self) -> Iterator[Stage]:
        """The rounds fitted so far, without the linear member and the weights of members."""
        if not len(self.estimator_weights_) or self._boosted_steps is None:
            yield from super()._stages()
            return
        n_linear = len(self.estimator_weights_) - len(self._boosted_steps)
        trees, table = self._models()
        # Rows of the table are in the order of the trees, those of the linear member first.
        first_row = trees[n_linear].value[trees[n_linear].is_leaf].min()
        trees = [replace(tree, value=tree.value - first_row) for tree in trees[n_linear:]]
        table = table[first_row:]
        ends = np.append(0, self._stage_ends[1:] - n_linear)
        for a, b in pairwise(ends.tolist()):
            yield Stage(trees[a:b], self._boosted_steps[a:b].tolist(), [], table)

    def _store(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._store(header, arrays)
        for name in ("oof_cost", "oof_cost_std_error"):
            value = float(getattr(self, f"{name}_"))
            header[name] = value if np.isfinite(value) else None
        header["samples"] = self._samples
        arrays["log_prior"], arrays["member_weights"] = self.log_prior_, self.member_weights_
        if self._boosted_steps is not None:
            arrays["boosted_steps"] = self._boosted_steps

    def _restore(self, model: ModelFile) -> None:
        if "oof_cost_std_error" not in model.header:  # written before these had an effect
            self.max_leaf_nodes = self.max_leaf_nodes if self.tree == "best" else None
            self.validation_fraction = None if self._cross_fits else self.validation_fraction
            self.min_samples_leaf = self.min_samples_leaf if self.tree == "best" else 1
            self.min_samples_split = self.min_samples_split if self.tree == "best" else 2
        super()._restore(model)
        self.log_prior_ = saved_log_prior(model, len(self.classes_))
        known = {"oof_cost_std_error": None} | model.header
        for name in ("oof_cost", "oof_cost_std_error"):
            value = known[name]
            check_number(name, value, low=0.0, none=True)
            setattr(self, f"{name}_", np.nan if value is None else float(value))
        self._restore_members(model)
        self._samples = model.header["samples"]
        check_number("the number of the samples", self._samples, Integral, low=0, high=2**63 - 1)

    def _restore_members(self, model: ModelFile) -> None:
        self.member_weights_, self._boosted_steps = np.array([1.0, 0.0]), None
        if "member_weights" not in model.arrays:  # written before there were members
            self.members = "trees"
            return
        self.member_weights_ = saved_floats(model, "member_weights", (2,))
        if not (np.isfinite(self.member_weights_).all() and (self.member_weights_ >= 0.0).all()):
            raise ValueError("its members have weights that are negative or not finite")
        if "boosted_steps" not in model.arrays:
            return
        forest, steps = self.forest_, model.arrays["boosted_steps"]
        n_linear = forest.n_trees - len(steps)
        steps = saved_floats(model, "boosted_steps", (len(steps),))
        rounds = np.diff([n_linear, *self._stage_ends[1:]])
        fits = 0 <= n_linear < forest.n_trees and (rounds == rounds[0]).all() and rounds[0] > 0
        if fits:
            first, second = forest.offsets[n_linear : n_linear + 2]
            rows = np.where(forest.is_leaf, forest.value, np.iinfo(np.int32).max)[first:]
            fits = rows.min() == rows[: second - first].min()
            fits &= np.array_equal(self.member_weights_[0] * steps, forest.tree_weights[n_linear:])
        if not fits:
            raise ValueError("its members do not have the trees and the weights that it has")
        self._boosted_steps = steps
