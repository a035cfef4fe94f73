"""BAdaCost: multi-class boosting under a K x K cost matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_choice, check_number
from badacost.boosting.reweighting import Rule
from badacost.classifiers.posterior import PosteriorMixin
from badacost.classifiers.reweighting import ReweightingClassifier
from badacost.classifiers.training_data import Task
from badacost.costs import is_irreducible, scale_costs, stationary_distribution
from badacost.costs.matrix import expected_costs
from badacost.io.model_file import saved_model
from badacost.loss import cost_margins, sample_margins

_MAX_RATIO = 1e150  # of costs of samples: a step times a cost must not overflow


@saved_model
@dataclass(eq=False, repr=False, kw_only=True)
class BAdaCostClassifier(PosteriorMixin, ReweightingClassifier):
    """Boosting of cost-sensitive trees for mistakes with different costs.

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
        is a cost of one for each mistake. `badacost.costs` has builders.
    n_estimators : int, default=100
        Maximum number of rounds.
    learning_rate : float, default=0.1
        Factor of every step.
    decision : {"margin", "bayes"}, default="margin"
        "margin" is the rule of the paper, the class of lowest score c(x). "bayes" is the class of
        minimum expected cost under the probabilities of `predict_proba`. They agree for two classes
        and, nearly, on clean data; on noisy data with strongly different costs "bayes" is cheaper.
        It needs an irreducible cost matrix, see `predict_proba`.
    estimator : classifier or None, default=None
        Weak learner in the place of the built-in tree. Its probabilities, if it has any, become
        labels by minimum expected cost. One that takes no sample weights is fitted to resampled
        data. The parameters of the tree are not used then.
    max_depth : int or None, default=4
        Maximum number of levels of tests in a tree, one more than the ``maxDepth`` of the authors'
        code.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree; they are then grown most profitable first.
    min_samples_split : int, default=2
        Minimum number of samples in a node that is split.
    min_samples_leaf : int, default=1
        Minimum number of samples in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features drawn at each node: a number, a fraction, or all of them.
    criterion : {"gini", "entropy"}, default="gini"
        What a split improves: the Gini index of class fractions weighted by cost, as in the
        authors' code, or the entropy under class weights by cost.
    binning : {"quantile", "uniform", "exact"}, default="quantile"
        How values become bins: about equally many samples in each, equal steps as in the authors'
        code, or one for every distinct value, which is slow on large data.
    max_bins : int, default=256
        Maximum number of bins of a feature, one of them for missing values if there are any. A
        categorical feature has one for each of its 255 most frequent categories.
    categorical_features : {"from_dtype"}, array-like or None, default="from_dtype"
        Columns whose values are categories: text, numbers or booleans, without an order. The trees
        test whether a category is in a set. "from_dtype" takes the columns of a data frame of the
        dtype category (pandas), Categorical or Enum (polars); a list has the names of columns,
        their positions, or True or False for each of them. Categories that were not seen in the
        training, or have no bin, are treated as missing. A warm start keeps the known categories.
    subsample : float, default=1.0
        Fraction of the samples, drawn anew for each tree.
    n_refinements : int, default=0
        How often a round may refit its tree to the step it led to, as long as the loss falls: the
        local optimisation that the paper mentions in section 4.2.
    cost_scale : {"auto", "reference"}, float or None, default="auto"
        Scale of the costs in the weak learner, see `badacost.costs.scale_costs`. "auto" suits any
        number of classes; "reference" divides costs whose largest is above one by it, as the
        authors' code does; a number makes the largest cost equal to it; None leaves them. The
        scale changes no ratio of costs, only how strongly the trees react to them.
    early_stopping : bool, default=False
        Whether to stop when neither score nor loss on the validation data improves any more. The
        model goes back to its round of best score in any case, that of lowest loss if several are
        equally good.
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
        Threads that large data are divided among; the model does not depend on them. None and -1
        are one for each core; None is one in the workers of joblib, as in a parallel search.
    device : {"cpu", "cuda"}, default="cpu"
        Where trees are grown and scores added up. A GPU of NVIDIA needs ``badacost[gpu]``; the
        model is the same, to the last bit. Not kept in model files.
    random_state : int, RandomState instance or None, default=None
        Seed of `max_features`, `subsample`, the validation part and the weak learner.
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
        Score after each round on validation data.
    stop_reason_ : {"perfect", "useless", "early stopping", "callback"} or None
        Why the fit ended before `n_estimators` rounds: a learner without mistakes, one no better
        than chance, or on request. With early stopping, rounds after the best are dropped even if
        it is None.
    categories_ : dict
        Known categories of each categorical feature, by its name, or its position if the training
        data had no names.
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

    cost_matrix: Any = field(default=None, kw_only=False)
    decision: Literal["margin", "bayes"] = "margin"
    n_refinements: int = 0
    cost_scale: Literal["auto", "reference"] | float | None = "auto"
    scoring: Literal["cost", "loss"] = "cost"

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        sample_cost: Any = None,
    ) -> Any:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or batches of shape (n_samples, n_features)
            Training samples. NaN is a missing value (with the built-in tree). Batches
            (`badacost.batches`) come with classes and weights, and are read when they are needed,
            as is a memory-mapped array.
        y : array-like of shape (n_samples,)
            Classes, of any type that scikit-learn accepts; not for batches, which have them. An
            ordered categorical of pandas or an Enum of polars sets the order of ``classes_``; else
            they are sorted.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; samples of weight zero are ignored.
        X_val, y_val, sample_weight_val : array-like, optional
            Validation data: scored after each round, by the costs of the classes, and used for
            early stopping in the place of a part of the training data.
        sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), optional
            What each decision costs for each sample if it is wrong, such as the amount at stake;
            being right is free. Columns follow ``classes_``, or are named by a data frame. Of a
            matrix for each sample, ``C[truth, prediction]``, the row of its class counts.

        Returns
        -------
        self
            The fitted estimator.

        Notes
        -----
        With `sample_cost` the loss of sample n is ``exp(C*_n . f(x_n))``, where C*_n is its row of
        costs, with minus their sum in the place of its class. Weights and steps follow this loss.
        Trees see the costs of the classes, and each sample weighted by how expensive it is in
        comparison with its class. Decisions for samples to come, scores, probabilities and
        ``scoring="loss"`` follow ``cost_matrix_``: `cost_matrix`, or else the mean of the rows of
        each class. Equal rows for all samples of a class are the same as a cost matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_classification
        >>> from badacost import BAdaCostClassifier
        >>> X, y = make_classification(random_state=0)
        >>> amount = np.linspace(10, 100, 100)  # lost if class 1 is taken for class 0
        >>> rows = np.column_stack([amount, np.full(100, 5.0)])  # a false alarm costs 5
        >>> model = BAdaCostClassifier().fit(X, y, sample_cost=rows)
        >>> model.cost_matrix_.round(1)
        array([[ 0. ,  5. ],
               [53.3,  0. ]])
        """
        return self._fit((X, y, sample_weight), (X_val, y_val, sample_weight_val), sample_cost)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("decision", self.decision, ("margin", "bayes"))
        check_choice("scoring", self.scoring, ("cost", "loss"))
        check_number("n_refinements", self.n_refinements, Integral, low=0)

    def _derive(self) -> None:
        super()._derive()
        self._linked_prior: FloatArray | None = None
        if self.decision == "bayes" or is_irreducible(self.regret_matrix_):
            prior = stationary_distribution(self.regret_matrix_, self.classes_)
            self._linked_prior = np.log(np.maximum(prior, np.finfo(np.float64).tiny))

    def _rule(self) -> Rule:
        with np.errstate(over="ignore"):
            margins = cost_margins(scale_costs(self.regret_matrix_, self.cost_scale))
        return Rule(self._finite(margins))

    def _finite(self, margins: FloatArray) -> FloatArray:
        """Refuse margins that overflow."""
        if not np.isfinite(margins).all():
            raise ValueError(f"cost_scale={self.cost_scale!r} is too large for these costs.")
        return margins

    def _own_margins(self, task: Task) -> FloatArray | None:
        if task.costs is None:
            return None
        _check_ratio(task.costs, self.regret_matrix_)
        scaled = scale_costs(self.regret_matrix_, self.cost_scale)
        largest = self.regret_matrix_.max()
        unit = np.frexp(largest)[1]  # a power of two keeps all digits, and tiny costs in range
        with np.errstate(over="ignore"):
            costs = np.ldexp(task.costs, -unit) * (scaled.max() / np.ldexp(largest, -unit))
            return self._finite(sample_margins(costs, task.y))

    def _log_prior(self) -> FloatArray:
        if self._linked_prior is None:  # there is none: the error names the classes
            return stationary_distribution(self.regret_matrix_, self.classes_)
        return self._linked_prior

    def _decision_costs(self, scores: FloatArray) -> FloatArray:
        if self.decision == "margin":
            return scores
        return expected_costs(self._posterior(scores), self.regret_matrix_)

    def _score_of(self, part: Any) -> float:
        return self._loss_of(part) if self.scoring == "loss" else super()._score_of(part)


def _check_ratio(sample_costs: FloatArray, cost_matrix: FloatArray) -> None:
    """Refuse costs that are too far apart to compare samples with each other."""
    parts = [costs[costs > 0.0] for costs in (sample_costs, cost_matrix)]
    low = min(float(part.min(initial=np.inf)) for part in parts)
    high = max(float(part.max(initial=0.0)) for part in parts)
    if low < high / _MAX_RATIO:
        raise ValueError(
            f"sample_cost and the costs of the classes range from {low:g} to {high:g}: raise "
            f"the lowest or make them 0, so that none is more than {_MAX_RATIO:g} times another."
        )
