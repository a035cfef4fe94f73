"""Decisions of minimum expected cost, under the costs of the fit or others, or of each sample.

A classifier with probabilities can decide under any costs without another fit, and abstain where
an abstention costs no more than the cheapest decision is expected to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import deprecated
from sklearn.utils.metaestimators import available_if

from badacost._utils.arrays import FloatArray, Labels, Mask, Positions
from badacost._utils.parallel import snapshot
from badacost._utils.validation import helpful_errors, refuse_batches
from badacost.costs.matrix import (
    check_entries,
    class_labels,
    class_positions,
    expected_costs,
    given_costs,
    real_numbers,
    square,
)

#: The text for an abstention in reports and in tables of decisions; also ``badacost.ABSTAIN``.
ABSTAIN: Final = "ask a person"


def minimum_cost_decision(probabilities: ArrayLike, cost_matrix: ArrayLike) -> Positions:
    """Return the prediction with the lowest expected cost for every sample.

    Parameters
    ----------
    probabilities : array-like of shape (n, K)
        Class probabilities of n samples.
    cost_matrix : array-like of shape (K, K)
        Costs ``C[truth, prediction]``: rows are the truth.

    Returns
    -------
    ndarray of shape (n,)
        Class indices: the argmin over j of ``sum_i P[n, i] C[i, j]``, the lowest j on ties.

    Examples
    --------
    >>> minimum_cost_decision([[0.7, 0.3], [0.9, 0.1]], [[0, 1], [5, 0]])
    array([1, 0])
    """
    costs = square(cost_matrix)
    given = real_numbers(probabilities, "probabilities", "give a row of numbers for each sample")
    if given.ndim != 2 or given.shape[1] != len(costs):
        raise ValueError(f"probabilities have shape {given.shape}: give a column for each class.")
    with np.errstate(over="ignore", invalid="ignore"):
        expected = expected_costs(given, costs)
    finite = np.isfinite(expected).all(axis=1)
    if not finite.all():
        raise ValueError(f"sample {finite.argmin()} has infinite costs: give finite probabilities.")
    return np.asarray(expected.argmin(axis=1))


@dataclass(frozen=True, eq=False)
class DecisionCosts:
    """Costs of decisions: one matrix for all samples, or costs of each sample.

    Attributes
    ----------
    values : ndarray of shape (K, K), (n, K) or (n, K, K)
        A matrix ``C[truth, prediction]``; or for each sample the cost of each decision where it is
        wrong, a right one being free; or for each sample a matrix.
    per_sample : bool
        Whether the first axis of `values` is that of the samples.
    """

    values: FloatArray
    per_sample: bool = False

    def expected(self, probabilities: FloatArray) -> FloatArray:
        """Return the expected cost of each decision, (n, K)."""
        if self.per_sample and self.values.ndim == 2:
            wrong = expected_costs(probabilities, 1.0 - np.eye(probabilities.shape[1]))
            return np.asarray(wrong * self.values)
        return expected_costs(probabilities, self.values)

    def incurred(self, truth: Positions, decisions: Positions) -> FloatArray:
        """Return the costs of decisions, (n,); classes are given by their positions."""
        if not self.per_sample:
            return np.asarray(self.values[truth, decisions])
        rows = np.arange(len(truth))
        if self.values.ndim == 2:
            return np.where(truth == decisions, 0.0, self.values[rows, decisions])
        return np.asarray(self.values[rows, truth, decisions])

    def of_constants(self, truth: Positions, weight: FloatArray) -> FloatArray:
        """Return the total cost of predicting one class for every sample, for each class, (K,).

        >>> costs = DecisionCosts(np.array([[0.0, 1.0], [5.0, 0.0]]))
        >>> costs.of_constants(np.array([0, 0, 1, 0]), np.ones(4))
        array([5., 3.])
        """
        truths = np.eye(self.values.shape[-1])[truth]
        with np.errstate(over="ignore"):
            return np.asarray(weight @ self.expected(truths))

    def average(self) -> FloatArray:
        """Return the mean over the samples, a matrix (K, K)."""
        if not self.per_sample:
            return self.values
        mean = self.values.mean(axis=0)
        return np.asarray(mean if mean.ndim == 2 else mean * (1.0 - np.eye(len(mean))))


def check_sample_cost(sample_cost: Any, labels: Sequence[Any], n_samples: int) -> FloatArray:
    """Return costs of samples as an array of shape (n, K) or (n, K, K), in the order of `labels`.

    The columns of a data frame name the classes, in any order, and may name others.
    """
    n_classes = len(labels)
    rows, matrices = (n_samples, n_classes), (n_samples, n_classes, n_classes)
    wanted = f"give a row of {n_classes} costs for each of the {n_samples} samples, or a matrix"
    if hasattr(sample_cost, "columns"):
        order = class_positions(sample_cost.columns, labels, "the columns of sample_cost", True)
        sample_cost = real_numbers(sample_cost, "sample_cost", wanted)[:, order]
    values = real_numbers(sample_cost, "sample_cost", wanted, rows, matrices)
    check_entries(
        values, lambda *at: f"sample_cost of sample {at[0]} and prediction {labels[at[-1]]!r}"
    )
    return values


def mistake_costs(costs: FloatArray, y: Labels, kept: Mask) -> FloatArray:
    """Return what each decision costs for samples of classes y: rows (n, K), zero where right.

    The samples are those of `costs` that are `kept`. Rows (K,) hold costs of mistakes, whatever
    stands in the place of the class. In matrices (K, K) the diagonal is subtracted from the rest
    of its row.
    """
    every = np.arange(len(y))
    if costs.ndim == 2:
        rows = costs[kept]
        rows[every, y] = 0.0
        return rows
    samples = np.flatnonzero(kept)
    rows = costs[samples, y]
    rows -= rows[every, y][:, np.newaxis]
    gains = (rows < 0.0).any(axis=1)
    if gains.any():
        problem = "in sample_cost being right costs more than a mistake"
        raise ValueError(f"{problem} for sample {samples[gains][0]}: lower it, usually to 0.")
    return rows


def read_decision_costs(
    costs: Any, sample_cost: Any, classes: Iterable[Any], n_samples: int
) -> DecisionCosts:
    """Read a cost matrix, or else `sample_cost`, in the order of `classes`."""
    labels = class_labels(classes)
    if sample_cost is None:
        return DecisionCosts(given_costs(costs, labels))
    if costs is not None:
        raise ValueError("a cost matrix and sample_cost are both given: leave one of them out.")
    return DecisionCosts(check_sample_cost(sample_cost, labels, n_samples), True)


def abstention_costs(abstain: Any, n_samples: int) -> FloatArray:
    """Return the cost of an abstention for each sample, (n,)."""
    costs = np.asarray(abstain)
    wanted = f"give the cost of an abstention, or one for each of the {n_samples} samples"
    if costs.dtype.kind not in "iuf":
        raise TypeError(f"abstain is {abstain!r:.80}: {wanted}.")
    if costs.shape not in ((), (n_samples,)) or not (costs >= 0).all():
        raise ValueError(f"abstain is {abstain!r:.80}: {wanted}, 0 or more; infinity means never.")
    return np.broadcast_to(costs.astype(np.float64), n_samples)


def abstains(expected: FloatArray, abstain: Any) -> Mask:
    """Return the samples, a mask (n,), whose decisions are not expected to cost less than that."""
    return np.asarray(expected.min(axis=1) >= abstention_costs(abstain, len(expected)))


def _has_probabilities(model: Any) -> bool:
    """Whether a classifier has probabilities; an error gives the reason where it has not."""
    if not hasattr(type(model), "predict_proba"):
        wanted = 'put it into MinimumCostClassifier with calibration="sigmoid"'
        raise AttributeError(f"a {type(model).__name__} has no probabilities: {wanted}.")
    return callable(model.predict_proba)


class CostDecisionMixin(ClassifierMixin):
    """Costs of a classifier, and its decisions under any costs, where it has `predict_proba`."""

    classes_: NDArray[Any]

    def score(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy: the fraction of right predictions, **whatever mistakes cost**.

        It is what scikit-learn means by the score of a classifier, and what `GridSearchCV`,
        `cross_val_score` and their like compare unless told otherwise. To choose by money, pass
        ``scoring=badacost.metrics.cost_scorer(costs)`` to them; to measure it, call
        `badacost.metrics.average_cost`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            Accuracy, from 0 to 1.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from badacost import BAdaCostClassifier
        >>> from badacost.metrics import average_cost
        >>> X, y = load_iris(return_X_y=True)
        >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
        >>> model = BAdaCostClassifier(costs, n_estimators=2, max_depth=1).fit(X, y)
        >>> round(model.score(X, y), 2), round(average_cost(y, model.predict(X), costs), 2)
        (0.63, 0.37)
        """
        refuse_batches(X, "give score the X and y of one batch, or average the scores of several")
        if y is None:
            raise TypeError("score needs y, the true classes of the samples.")
        with helpful_errors(None, y):
            return float(super().score(X, y, sample_weight))

    @property
    @deprecated("`charged_costs_` is called `cost_matrix_` now.")
    def charged_costs_(self) -> FloatArray:
        """Former name of `cost_matrix_`."""
        return self.cost_matrix_

    @available_if(_has_probabilities)
    def predict_costs(self, X: Any) -> FloatArray:
        """Return the expected cost of each decision, in the unit of the cost matrix.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Expected costs under the probabilities of `predict_proba`, in the order of
            ``classes_``. Not there for a classifier without probabilities.
        """
        model: Any = snapshot(self)  # not changed by a fit in another thread
        probabilities = model.predict_proba(X)  # an error where the model is not fitted
        return expected_costs(probabilities, model.cost_matrix_)

    @available_if(_has_probabilities)
    def decide(
        self,
        X: Any,
        costs: Any = None,
        *,
        sample_cost: ArrayLike | None = None,
        abstain: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return the decisions of minimum expected cost under any costs, without a new fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        costs : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]``: rows are the truth, in the order of ``classes_`` if it is an
            array. By default those of the fit. The diagonal counts.
        sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), default=None
            Costs of each sample, in the place of `costs`. A row holds what each decision costs
            for this sample if it is wrong, such as an amount at stake that is known at prediction
            only; a right decision is free. Or a whole matrix for each sample.
        abstain : float or array-like of shape (n_samples,), default=None
            The cost of an abstention, such as asking a person, or one for each sample. Where no
            decision is expected to cost less, the classifier abstains: at zero always, at
            infinity never.

        Returns
        -------
        ndarray or masked array of shape (n_samples,)
            Classes. With `abstain`, a `numpy.ma.MaskedArray` in which abstentions are masked; its
            ``data`` holds the decisions of minimum expected cost for them, too.
            ``decisions.astype(object).filled(badacost.ABSTAIN)`` puts a text in their place.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from badacost import MinimumCostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MinimumCostClassifier().fit(X, y)
        >>> model.predict_proba(X[[0, 70, 83]]).round(2)
        array([[0.98, 0.02, 0.  ],
               [0.  , 0.44, 0.56],
               [0.  , 0.35, 0.65]])
        >>> other_costs = [[0, 1, 1], [1, 0, 9], [1, 1, 0]]  # C[truth, prediction]
        >>> model.decide(X[[0, 70, 83]], other_costs)
        array([0, 1, 1])
        >>> amounts = np.array([[5, 5, 5], [100, 300, 100], [100, 20, 100]])  # if it is wrong
        >>> model.decide(X[[0, 70, 83]], sample_cost=amounts)
        array([0, 2, 1])
        >>> decisions = model.decide(X[[0, 70, 83]], sample_cost=amounts, abstain=25)
        >>> print(decisions)
        [0 -- 1]
        >>> decisions.mask
        array([False,  True, False])
        """
        model: Any = snapshot(self)  # not changed by a fit in another thread
        probabilities = model.predict_proba(X)
        table = DecisionCosts(model.cost_matrix_)
        if costs is not None or sample_cost is not None:
            table = read_decision_costs(costs, sample_cost, model.classes_, len(probabilities))
        expected = table.expected(probabilities)
        decisions: NDArray[Any] = np.asarray(model.classes_)[expected.argmin(axis=1)]
        if abstain is None:
            return decisions
        return np.ma.array(decisions, mask=abstains(expected, abstain))


def check_no_class_abstains(classes: Iterable[Any]) -> None:
    """Refuse a class that is called like the text for abstentions."""
    if ABSTAIN in class_labels(classes):
        raise ValueError(f"a class is called {ABSTAIN!r}, as abstentions are: rename the class.")
