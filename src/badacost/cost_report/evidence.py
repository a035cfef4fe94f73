"""What a report is about: a model, samples with their true classes, and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray, Positions
from badacost._utils.validation import check_number, positions_in
from badacost.costs import minimum_cost_decision
from badacost.costs.decisions import DecisionCosts, read_decision_costs
from badacost.costs.matrix import given_costs
from badacost.tabular.trials import Samples


@dataclass(frozen=True, eq=False)
class Evidence:
    """A model and its answers to samples; classes are positions in its ``classes_``.

    Attributes
    ----------
    model : fitted classifier
        The model, or the last step of it if it is a pipeline.
    estimator : fitted classifier
        What takes `features`: that inside a classifier of tables, or else `model` itself.
    features : array-like of n_samples rows
        The samples in numbers.
    truth, answers : ndarray of shape (n_samples,)
        True and predicted classes.
    decision_costs : DecisionCosts
        What decisions cost, with the cost of being right, for all samples alike or for each.
    probabilities : ndarray of shape (n_samples, K) or None
        None if the model has none.
    training : Samples or None
        What it was trained on, in numbers.
    feature_names : sequence or None
        Names of the features, or of the columns of a table.
    abstain : float or None
        The cost of asking a person, if one can be asked.
    """

    model: Any
    estimator: Any
    features: Any
    truth: Positions
    answers: Positions
    decision_costs: DecisionCosts
    probabilities: FloatArray | None
    training: Samples | None
    feature_names: Sequence[Any] | None
    abstain: float | None = None

    @cached_property
    def costs(self) -> FloatArray:
        """``C[truth, prediction]``, (K, K): the mean where samples have costs of their own."""
        return self.decision_costs.average()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(str(label) for label in self.model.classes_)

    @cached_property
    def incurred(self) -> FloatArray:
        """Costs of the answers, (n_samples,)."""
        return self.decision_costs.incurred(self.truth, self.answers)

    def confusion(self, answers: Positions, weight: ArrayLike = 1) -> NDArray[Any]:
        """Number of samples, or sum of weights, by truth and these answers, (K, K)."""
        sums = np.zeros(self.costs.shape, np.asarray(weight).dtype)
        np.add.at(sums, (self.truth, answers), weight)
        return sums

    def staged_answers(self, features: Any) -> Iterator[Positions] | None:
        """Return the answers after each round; None where the model does not have them."""
        by_cost = _decides_for(self.model, self.estimator)
        method = "staged_predict_proba" if by_cost else "staged_predict"
        staged = getattr(self.estimator, method, None)
        if staged is None:
            return None
        if by_cost:
            return (minimum_cost_decision(p, self.model.regret_matrix_) for p in staged(features))
        return (positions_in(self.model.classes_, answers) for answers in staged(features))


def out_of_fold_cost(estimator: Any, costs: FloatArray) -> float | None:
    """Return what decisions cost on training samples out of fold, under the same costs.

    None where the estimator does not know it, or knows it for other costs.
    """
    cost = getattr(estimator, "oof_cost_", np.nan)
    known = np.isfinite(cost) and np.array_equal(estimator.cost_matrix_, costs)
    return float(cost) if known else None


def gather(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    costs: Any = None,
    train: tuple[Any, ArrayLike] | None = None,
    feature_names: Sequence[Any] | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: float | None = None,
) -> Evidence:
    """Check the arguments of `CostReport.from_estimator`, encode the samples and predict."""
    for name in ("predict", "classes_"):
        if not hasattr(model, name):
            raise TypeError(
                f"model is a {type(model).__name__} without {name}: give a fitted classifier."
            )
    classes = model.classes_
    truth = positions_in(classes, y)
    if not len(truth):
        raise ValueError("there are no samples: give at least one row.")
    check_number("abstain", abstain, low=0.0, none=True)
    names = _names(model, X) if feature_names is None else feature_names
    model, estimator, encode = taken_apart(model)
    if sample_cost is None:
        costs = costs_of(model) if costs is None else costs
        decision_costs = DecisionCosts(given_costs(costs, classes))
    else:
        decision_costs = read_decision_costs(costs, sample_cost, classes, len(truth))
    features = encode(X)
    probabilities = _probabilities(estimator, features)
    if abstain is not None and probabilities is None:
        raise ValueError(
            f"abstain needs probabilities, which this {type(estimator).__name__} does not have: "
            "leave it out."
        )
    n_rows = features.shape[0] if hasattr(features, "shape") else len(features)
    if n_rows != len(truth):
        raise ValueError(f"X has {n_rows} rows and y has {len(truth)}: give one label a row.")
    if probabilities is not None and decision_costs.per_sample and hasattr(model, "decide"):
        answers = decision_costs.expected(probabilities).argmin(axis=1)
    elif probabilities is not None and _decides_for(model, estimator):
        answers = minimum_cost_decision(probabilities, model.regret_matrix_)
    else:
        answers = positions_in(classes, estimator.predict(features), "the model")
    return Evidence(
        model,
        estimator,
        features,
        truth,
        answers,
        decision_costs,
        probabilities,
        None if train is None else training_samples(train, model, encode),
        names,
        abstain,
    )


def taken_apart(model: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Return the last step of a pipeline, the estimator inside it, and what makes its features."""
    from badacost.tabular import TableClassifier

    encode: Callable[[Any], Any] = lambda X: X  # noqa: E731
    if hasattr(model, "named_steps") and len(model) > 1:
        model, encode = model[-1], model[:-1].transform
    if isinstance(model, TableClassifier):
        return model, model.estimator_, lambda X: model.encoder_.transform(encode(X))
    return model, model, encode


def _decides_for(model: Any, estimator: Any) -> bool:
    """Whether a classifier of tables decides by the probabilities of its estimator."""
    return model is not estimator and model.decision == "bayes"


def costs_of(model: Any) -> Any:
    """Return the costs of a model; a ValueError where it has none."""
    costs = getattr(model, "cost_matrix_", None)
    if costs is None:
        raise ValueError(f"a {type(model).__name__} has no costs of its own: give costs.")
    return costs


def _probabilities(estimator: Any, features: Any) -> FloatArray | None:
    """Return probabilities, if the estimator has any under its costs."""
    try:
        return np.asarray(estimator.predict_proba(features), dtype=np.float64)
    except (AttributeError, ValueError):
        return None


def training_samples(train: Any, model: Any, encode: Callable[[Any], Any]) -> Samples:
    """Return what a model was trained on, as features of its estimator."""
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise ValueError("train must be a tuple of X and y.")
    truth = positions_in(model.classes_, train[1], "y of train")
    categorical = getattr(getattr(model, "encoder_", None), "categorical_", None)
    return Samples(encode(train[0]), truth, categorical=categorical)


def _names(model: Any, X: Any) -> Sequence[Any] | None:
    """Return the names of the features, if they are known."""
    if hasattr(model, "named_steps") and len(model) > 1:
        transform = model[:-1]
        can_name = all(hasattr(step, "get_feature_names_out") for _, step in transform.steps)
        return transform.get_feature_names_out() if can_name else None
    names: Sequence[Any] | None = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    return names
