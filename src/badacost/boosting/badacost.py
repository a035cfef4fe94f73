"""BAdaCost: multi-class boosting under a K x K cost matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from badacost.boosting.stagewise import (
    STOP_REASONS,
    Callback,
    FloatArray,
    Labels,
    StagewiseClassifier,
)
from badacost.costs import (
    as_cost_matrix,
    is_irreducible,
    scale_costs,
    stationary_distribution,
)
from badacost.loss import cost_margins, optimal_step, weak_learner_costs
from badacost.model_file import ModelFile
from badacost.persistence import SavedForest
from badacost.tree.binning import BinningMethod
from badacost.tree.grower import Criterion
from badacost.tree.threads import Threads
from badacost.validation import check_choice, check_number, check_samples


class BAdaCostClassifier(SavedForest, StagewiseClassifier):
    """Boosting of cost-sensitive trees for mistakes with different prices.

    BAdaCost (Boosting Adapted for Cost matrix) [1]_ minimises the mean of
    ``exp(C*(y, -) . f(x))``, where C* is the cost matrix with minus the sum of each row on its
    diagonal. Each round fits one multi-class tree, whatever the number of classes, that minimises
    costs under the current sample weights. With 0|1 costs it is SAMME, with two classes
    cost-sensitive AdaBoost, with both AdaBoost.

    Parameters
    ----------
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth. An array is in the order of ``classes_``; a
        nested mapping ``{truth: {prediction: cost}}`` or a data frame (index: truth, columns:
        prediction) may be in any order and may have labels that are missing from the training
        data. Costs are not negative; a diagonal that is not zero is subtracted from its row. None
        is a price of one for each mistake. `badacost.costs` has builders.
    n_estimators : int, default=100
        Most rounds.
    learning_rate : float, default=0.1
        Factor of every step.
    decision : {"margin", "bayes"}, default="margin"
        "margin" is the rule of the paper, the class of least score c(x). "bayes" is the class of
        least expected cost under the probabilities of `predict_proba`. They agree for two classes
        and, nearly, on clean data; on noisy data with strongly different costs "bayes" is cheaper.
        It needs costs that link all classes, see `predict_proba`.
    estimator : classifier or None, default=None
        Weak learner in the place of the built-in tree. Its probabilities, if it has any, become
        labels by least expected cost. One that takes no sample weights is fitted to resampled
        data. The parameters of the tree are not used then.
    max_depth : int or None, default=4
        Most levels of tests in a tree. (The ``maxDepth`` of the authors' code is one less.)
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree; they are then grown most profitable first.
    min_samples_split : int, default=2
        Fewest samples in a node that is split.
    min_samples_leaf : int, default=1
        Fewest samples in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features drawn at each node: a number, a share, or all of them.
    criterion : {"gini", "entropy"}, default="gini"
        What a split improves: the Gini index with class shares weighted by cost, as in the
        authors' code, or the entropy under class weights by cost.
    binning : {"quantile", "uniform", "exact"}, default="quantile"
        How values become bins: about equally many samples in each, equal steps as in the authors'
        code, or one for every distinct value, which is slow on large data.
    max_bins : int, default=256
        Most bins of a feature, one of them for missing values if there are any.
    subsample : float, default=1.0
        Share of the samples, drawn anew for each tree.
    n_refinements : int, default=0
        How often a round may refit its tree to the step it led to, as long as the loss falls: the
        local optimisation that the paper mentions in section 4.2.
    cost_scale : {"auto", "reference"}, float or None, default="auto"
        Scale of the costs in the weak learner, see `badacost.costs.scale_costs`. "auto" suits any
        number of classes; "reference" divides costs whose largest is above one by it, as the
        authors' code does; a number makes the largest cost equal to it; None leaves them. The
        scale changes no ratio of costs, only how strongly the trees react to them.
    early_stopping : bool, default=False
        Whether to stop when the validation score no longer improves. The model goes back to its
        best round in any case.
    scoring : {"cost", "loss"}, default="cost"
        Score of a round: the average cost of the decisions, or the loss. Lower is better.
    validation_fraction : float or int, default=0.1
        Part of the training data held out for early stopping, if no validation data are given.
    n_iter_no_change : int, default=10
        Rounds without improvement before stopping.
    tol : float, default=1e-7
        Only a score that is lower by more than this counts as an improvement.
    warm_start : bool, default=False
        Whether the next `fit` adds rounds to those fitted before.
    callbacks : sequence of callables or None, default=None
        Called with a `badacost.boosting.stagewise.Round` after every round; one that returns True
        ends the fit.
    n_jobs : int or None, default=None
        Threads. None is one, -1 is one for each core. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of `max_features`, `subsample`, the validation part and the weak learner.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs in the order of ``classes_``, as given but with a zero diagonal.
    forest_ : badacost.tree.forest.Forest
        The trees; absent with another `estimator`.
    estimators_ : list of classifiers
        The weak learners, if `estimator` is given.
    estimator_weights_ : ndarray of shape (n_estimators_,)
        Steps, learning rate included.
    n_estimators_ : int
        Number of rounds kept.
    train_score_ : ndarray of shape (n_estimators_,)
        Score after each round on at most 5 000 training samples, lower is better.
    validation_score_ : ndarray of shape (n_estimators_,) or (0,)
        The same on validation data.
    stop_reason_ : {"perfect", "useless", "early stopping", "callback"} or None
        Why the fit ended before `n_estimators` rounds: a learner without mistakes, one no better
        than chance, or on request. With early stopping, rounds after the best are dropped even if
        it is None.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the training data had any.

    References
    ----------
    .. [1] A. Fernandez-Baldera, J. M. Buenaposada, L. Baumela, "BAdaCost: Multi-class Boosting
       with Costs", Pattern Recognition 79, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = BAdaCostClassifier(costs, n_estimators=20, max_depth=1).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        cost_matrix: Any = None,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        decision: Literal["margin", "bayes"] = "margin",
        estimator: Any = None,
        max_depth: int | None = 4,
        max_leaf_nodes: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_features: int | float | str | None = None,
        criterion: Criterion = "gini",
        binning: BinningMethod = "quantile",
        max_bins: int = 256,
        subsample: float = 1.0,
        n_refinements: int = 0,
        cost_scale: Literal["auto", "reference"] | float | None = "auto",
        early_stopping: bool = False,
        scoring: Literal["cost", "loss"] = "cost",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        warm_start: bool = False,
        callbacks: Sequence[Callback] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.cost_matrix = cost_matrix
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.decision = decision
        self.estimator = estimator
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.criterion = criterion
        self.binning = binning
        self.max_bins = max_bins
        self.subsample = subsample
        self.n_refinements = n_refinements
        self.cost_scale = cost_scale
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("decision", self.decision, ("margin", "bayes"))

    def _prepare(self) -> None:
        self.cost_matrix_ = as_cost_matrix(self.cost_matrix, self.classes_, allow_extra_labels=True)
        self._scale_margins()

    def _scale_margins(self) -> None:
        """Set what follows from `cost_matrix_`; an error if the decision rule has no use for it."""
        with np.errstate(over="ignore"):
            self._scaled_margins = cost_margins(scale_costs(self.cost_matrix_, self.cost_scale))
        if not np.isfinite(self._scaled_margins).all():
            raise ValueError(f"cost_scale={self.cost_scale!r} is too large for these costs.")
        self._log_prior: FloatArray | None = None
        if self.decision == "bayes" or is_irreducible(self.cost_matrix_):
            prior = stationary_distribution(self.cost_matrix_, self.classes_)
            self._log_prior = np.log(np.maximum(prior, np.finfo(np.float64).tiny))

    @property
    def _margins(self) -> FloatArray:
        return self._scaled_margins

    def _learner_costs(self, step: float) -> FloatArray:
        return weak_learner_costs(self._scaled_margins, step)

    def _step(self, weight_sums: FloatArray) -> float:
        return optimal_step(weight_sums, self._scaled_margins)

    def _decide(self, scores: FloatArray) -> Labels:
        return np.argmin(self._charges(scores), axis=1)

    def _charges(self, scores: FloatArray) -> FloatArray:
        """What the decision rule compares, (n, K): the least charge wins."""
        if self.decision == "margin":
            return scores
        return np.asarray(self._posterior(scores) @ self.cost_matrix_)

    def _posterior(self, scores: FloatArray) -> FloatArray:
        """P(l | x) proportional to pi_l exp(-c_l(x)), with pi the stationary distribution of C*."""
        prior = self._log_prior
        if prior is None:  # there is none, and the error says for which classes
            prior = stationary_distribution(self.cost_matrix_, self.classes_)
        logits = prior - scores
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def _decision_values(self, scores: FloatArray) -> FloatArray:
        charges = self._charges(scores)
        return charges[:, 0] - charges[:, 1] if len(self.classes_) == 2 else -charges

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the classes that the decision rule chooses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        scores = self._scores(check_samples(self, X))
        return np.asarray(self.classes_[self._decide(scores)])

    def predict_costs(self, X: ArrayLike) -> FloatArray:
        """Return the cost scores ``c(x) = C* f(x)``; the paper chooses the class of the least.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Scores, in the order of ``classes_``. For expected costs in the unit of the cost
            matrix, take ``predict_proba(X) @ cost_matrix_``.
        """
        return self._scores(check_samples(self, X))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, in closed form from the minimiser of the loss.

        At the minimum of the expected loss ``P(l | x)`` is proportional to ``pi_l exp(-c_l(x))``,
        where pi is the stationary distribution of C*. Boosted scores are over-confident when
        many rounds fit noise: calibrate (``sklearn.calibration``) if probabilities matter.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.

        Raises
        ------
        ValueError
            If so many mistakes are free that costs do not link all classes.
        """
        return self._posterior(self._scores(check_samples(self, X)))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return what the decision rule compares, with the sign turned so that the largest wins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K), or (n_samples,) for two classes
            Minus c(x) ("margin") or minus the expected cost ("bayes") of each class; for two
            classes, that of the second minus that of the first.
        """
        return self._decision_values(self._scores(check_samples(self, X)))

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yield `predict` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield self.classes_[self._decide(scores)]

    def staged_predict_costs(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `predict_costs` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield scores.copy()

    def staged_predict_proba(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `predict_proba` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield self._posterior(scores)

    def staged_decision_function(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield `decision_function` after every round."""
        for scores in self._staged_scores(check_samples(self, X)):
            yield self._decision_values(scores.copy())

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the number of the leaf that each sample reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators_)
            Leaves.
        """
        checked = check_samples(self, X)
        self._needs_trees("apply")
        with Threads(self.n_jobs) as threads:
            return self.forest_.apply(checked, threads)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gains of all splits, weighted by step and node."""
        check_is_fitted(self)
        self._needs_trees("feature_importances_")
        return self.forest_.feature_importances()

    _unsaved = ("estimator", "callbacks")
    _extra_names = ("seed", "stop_reason", "train_score", "validation_score")

    def _extra_header(self) -> dict[str, Any]:
        return {"seed": self._seed, "stop_reason": self.stop_reason_}

    def _extra_arrays(self) -> dict[str, NDArray[Any]]:
        return {"train_score": self.train_score_, "validation_score": self.validation_score_}

    def _restore(self, model: ModelFile) -> None:
        self._check_parameters()
        self._scale_margins()
        if not np.allclose(self.forest_.table, self._scaled_margins.T, rtol=1e-9, atol=0.0):
            raise ValueError("its trees were not grown for its costs and cost_scale")
        self.estimator_weights_ = self.forest_.tree_weights
        self.n_estimators_ = self.forest_.n_trees
        if not self.n_estimators_ or (self.estimator_weights_ < 0.0).any():
            raise ValueError("it has no trees, or trees of negative weight")
        self.train_score_ = model.arrays["train_score"]
        self.validation_score_ = model.arrays["validation_score"]
        shapes = {(self.n_estimators_,)}
        for name, curve in (("train", self.train_score_), ("validation", self.validation_score_)):
            if curve.dtype != np.float64 or curve.shape not in shapes:
                raise ValueError(f"it does not have a {name} score for each round")
            shapes.add((0,))  # there may be no validation
        self._seed, self.stop_reason_ = model.header["seed"], model.header["stop_reason"]
        check_number("the seed", self._seed, Integral, low=0, high=2**31 - 1)
        if self.stop_reason_ is not None:
            check_choice("the reason to stop", self.stop_reason_, STOP_REASONS)

    def _needs_trees(self, what: str) -> None:
        if not hasattr(self, "forest_"):
            weak = type(self.estimators_[0]).__name__
            raise AttributeError(
                f"{what} needs the built-in tree; this model boosts {weak}, see estimators_."
            )
