"""Decisions at prices that are known at prediction only: new ones, or those of each sample.

A classifier with probabilities can decide under any prices without another training, and hand a
sample to a person where that is cheaper than the cheapest decision is expected to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from badacost.arrays import FloatArray, Mask, Positions
from badacost.costs.matrix import (
    as_cost_matrix,
    charged_costs,
    class_labels,
    is_frame,
    plain,
)
from badacost.costs.sample_costs import check_sample_cost

#: Among decisions, a sample that is handed to a person; also ``badacost.ABSTAIN``.
ABSTAIN: Final = "ask a person"


def expected_costs(shares: NDArray[np.floating], costs: FloatArray) -> FloatArray:
    """Expected costs of decisions, (n, K), from probabilities; of a row, whatever the others."""
    expected = np.zeros((len(shares), costs.shape[1]))
    for k, row in enumerate(costs):
        expected += shares[:, k, None].astype(np.float64) * row
    return expected


@dataclass(frozen=True, eq=False)
class Prices:
    """What decisions cost, for all samples alike or for each of them.

    Attributes
    ----------
    values : ndarray of shape (K, K), (n, K) or (n, K, K)
        A matrix ``C[truth, prediction]``; or for each sample what each decision costs if it is
        wrong, being right is free then; or for each sample a matrix.
    of_samples : bool
        Whether the first axis of `values` is that of the samples.
    """

    values: FloatArray
    of_samples: bool = False

    def expected(self, probabilities: FloatArray) -> FloatArray:
        """Return the expected cost of each decision, (n, K)."""
        if not self.of_samples:
            return np.asarray(probabilities @ self.values)
        if self.values.ndim == 2:
            wrong = probabilities @ (1.0 - np.eye(probabilities.shape[1]))
            return np.asarray(wrong * self.values)
        return np.asarray(np.einsum("ni,nij->nj", probabilities, self.values))

    def paid(self, truth: Positions, decisions: Positions) -> FloatArray:
        """Return what decisions cost, (n,); classes are given by their positions."""
        if not self.of_samples:
            return np.asarray(self.values[truth, decisions])
        rows = np.arange(len(truth))
        if self.values.ndim == 2:
            return np.where(truth == decisions, 0.0, self.values[rows, decisions])
        return np.asarray(self.values[rows, truth, decisions])

    def of_constants(self, truth: Positions, weight: FloatArray) -> FloatArray:
        """Return what each class costs in all if it is the answer for every sample, (K,).

        >>> prices = Prices(np.array([[0.0, 1.0], [5.0, 0.0]]))
        >>> prices.of_constants(np.array([0, 0, 1, 0]), np.ones(4))
        array([5., 3.])
        """
        truths = np.eye(self.values.shape[-1])[truth]
        with np.errstate(over="ignore"):
            return np.asarray(weight @ self.expected(truths))

    def of_classes(self, positions: Sequence[int] | Positions) -> Prices:
        """Return the prices of some of the classes, or of all in another order."""
        values = self.values[..., positions]
        if not self.of_samples or values.ndim == 3:
            values = values[..., positions, :]
        return Prices(values, self.of_samples)

    def average(self) -> FloatArray:
        """Return the mean over the samples, a matrix (K, K)."""
        if not self.of_samples:
            return self.values
        mean = self.values.mean(axis=0)
        return np.asarray(mean if mean.ndim == 2 else mean * (1.0 - np.eye(len(mean))))


def read_prices(costs: Any, sample_cost: Any, classes: Iterable[Any], n_samples: int) -> Prices:
    """Read prices that are given as a matrix, or as `sample_cost`, in the order of `classes`.

    An array of costs may be for each sample as well, where that can be told from its shape. Prices
    that were read before are returned.
    """
    if isinstance(costs, Prices) and sample_cost is None:
        return costs
    labels = class_labels(classes)
    if sample_cost is not None:
        if costs is not None:
            raise ValueError("a cost matrix and sample_cost are both given: leave one of them out.")
        return Prices(check_sample_cost(sample_cost, labels, n_samples), True)
    if _is_of_samples(costs, len(labels), n_samples):
        return Prices(check_sample_cost(costs, labels, n_samples, "costs"), True)
    return Prices(charged_costs(costs, labels))


def _is_of_samples(costs: Any, n_classes: int, n_samples: int) -> bool:
    """Tell whether costs are prices for each sample; an error where they may be either."""
    if costs is None or isinstance(costs, Mapping) or is_frame(costs):
        return False
    cells = costs if isinstance(costs, np.ndarray) else np.asarray(costs, dtype=object)
    if cells.shape != (n_classes, n_classes):
        return cells.ndim == 3 or cells.shape == (n_samples, n_classes)
    if n_samples == n_classes and bool(np.diagonal(cells).any()):
        raise ValueError(
            f"an array of shape {cells.shape} may be a matrix of costs or a row of prices for each "
            f"of the {n_samples} samples, and its diagonal is not zero: give prices of samples as "
            "sample_cost=, or a matrix as a labelled mapping or data frame."
        )
    return False


def asking_prices(abstain: Any, n_samples: int) -> FloatArray:
    """Return the price of asking a person about each sample, (n,)."""
    prices = np.asarray(abstain)
    if prices.dtype.kind not in "iuf":
        raise TypeError(
            f"abstain is {abstain!r:.80}: give the price of asking a person, a number or one for "
            "each sample."
        )
    if prices.shape not in ((), (n_samples,)):
        raise ValueError(
            f"abstain has shape {prices.shape}: give a price, or one for each of the {n_samples} "
            "samples."
        )
    if not (prices >= 0).all():
        raise ValueError(
            f"abstain has the price {prices[~(prices >= 0)].flat[0]}: give 0 or more, or infinity "
            "to never ask."
        )
    return np.broadcast_to(prices.astype(np.float64), n_samples)


def is_asked(expected: FloatArray, abstain: Any) -> Mask:
    """Return for which samples, (n,), no decision is expected to cost less than asking a person."""
    return np.asarray(expected.min(axis=1) >= asking_prices(abstain, len(expected)))


def _has_probabilities(model: Any) -> bool:
    """Whether a classifier has probabilities; where it has not, an error says why."""
    if not hasattr(type(model), "predict_proba"):
        raise AttributeError(
            f"a {type(model).__name__} has no probabilities: for expected costs, put it into "
            'MinimumCostClassifier with calibration="sigmoid".'
        )
    return callable(model.predict_proba)


def own_costs(model: Any) -> Any:
    """Return the costs of a fitted classifier, as they are charged; None if it has none.

    Where ``cost_matrix_`` has lost the price of being right, ``charged_costs_`` has it.
    """
    return getattr(model, "charged_costs_", getattr(model, "cost_matrix_", None))


class CostDecisionMixin:
    """Expected costs, and decisions under any prices, for classifiers with probabilities.

    A class has `predict_proba`, `classes_` and costs: see `own_costs`.
    """

    def _set_costs(self, costs: Any) -> None:
        """Set `charged_costs_`, as given, and `cost_matrix_`, in which being right is free."""
        model: Any = self
        self.charged_costs_ = charged_costs(costs, model.classes_)
        self.cost_matrix_ = as_cost_matrix(self.charged_costs_, model.classes_)

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
        model: Any = self
        probabilities = model.predict_proba(X)  # an error where the model is not fitted
        return Prices(own_costs(self)).expected(probabilities)

    @available_if(_has_probabilities)
    def decide(
        self,
        X: Any,
        costs: Any = None,
        *,
        sample_cost: ArrayLike | None = None,
        abstain: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return the decisions of minimum expected cost under any prices, without a new fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        costs : array-like of shape (K, K), mapping or data frame, default=None
            ``C[truth, prediction]``: rows are the truth, in the order of ``classes_`` if it is an
            array. By default those of the fit. A price of being right, on the diagonal, counts.
            An array for each sample, see `sample_cost`, will do as well, unless there are K
            samples.
        sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), default=None
            Prices of each sample, in the place of `costs`. A row holds what each decision costs
            for this sample if it is wrong, such as an amount at stake that is known at prediction
            only; being right is free. Or a whole matrix for each sample.
        abstain : float or array-like of shape (n_samples,), default=None
            The price of asking a person, or one for each sample. Where no decision is expected to
            cost less, it is `badacost.ABSTAIN`. At zero a person is always asked, at infinity
            never.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes. With `abstain` of dtype object, ``"ask a person"`` among them.

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
        >>> new_prices = [[0, 1, 1], [1, 0, 9], [1, 1, 0]]  # C[truth, prediction]
        >>> model.decide(X[[0, 70, 83]], new_prices)
        array([0, 1, 1])
        >>> amounts = np.array([[5, 5, 5], [100, 300, 100], [100, 20, 100]])  # if it is wrong
        >>> model.decide(X[[0, 70, 83]], sample_cost=amounts)
        array([0, 2, 1])
        >>> model.decide(X[[0, 70, 83]], sample_cost=amounts, abstain=25)
        array([0, 'ask a person', 1], dtype=object)
        """
        model: Any = self
        probabilities = model.predict_proba(X)
        classes = np.asarray(model.classes_)
        if costs is None and sample_cost is None:
            prices = Prices(own_costs(self))
        else:
            prices = read_prices(costs, sample_cost, classes, len(probabilities))
        expected = prices.expected(probabilities)
        decisions = classes[expected.argmin(axis=1)]
        if abstain is None:
            return np.asarray(decisions)
        check_no_class_abstains(classes)
        decisions = decisions.astype(object)
        decisions[is_asked(expected, abstain)] = ABSTAIN
        return np.asarray(decisions)


def check_no_class_abstains(classes: Iterable[Any]) -> None:
    """Refuse a class that could not be told from `ABSTAIN`."""
    if ABSTAIN in [plain(label) for label in classes]:
        raise ValueError(
            f"a class is called {ABSTAIN!r}, which stands for samples that are handed to a person: "
            "rename the class."
        )
