"""What a report is about: a classifier, samples with their truth, and its answers to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost.arrays import FloatArray, Positions
from badacost.cost_report.known_rows import count_known
from badacost.costs.decisions import Prices, own_costs, read_prices
from badacost.costs.matrix import charged_costs, plain
from badacost.validation import check_number

_MAX_CLASSES_NAMED = 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """A classifier and its answers to samples; classes are positions in its ``classes_``.

    Attributes
    ----------
    classifier : fitted classifier
        The model, or the last step of it if it is a pipeline.
    features : array-like or data frame of n_samples rows
        The samples, as the classifier takes them.
    truth, answers : ndarray of shape (n_samples,)
        True and predicted classes.
    prices : Prices
        What decisions cost, with the price of being right, for all samples alike or for each.
    probabilities : ndarray of shape (n_samples, K) or None
        None if the classifier has none.
    training : tuple of features and positions, or None
        What it was trained on.
    feature_names : sequence or None
        Names of the features, or of the columns of a table.
    abstain : float or None
        The price of asking a person, if one can be asked.
    """

    classifier: Any
    features: Any
    truth: Positions
    answers: Positions
    prices: Prices
    probabilities: FloatArray | None
    training: tuple[Any, Positions] | None
    feature_names: Sequence[Any] | None
    abstain: float | None = None

    @cached_property
    def costs(self) -> FloatArray:
        """``C[truth, prediction]``, (K, K): the mean where prices are those of each sample."""
        return self.prices.average()

    @cached_property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.classifier.classes_]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Samples by truth and answer, (K, K)."""
        return self.confusion(self.answers)

    @cached_property
    def n_known(self) -> int | None:
        """Samples that are among those of the training; None where that is not known."""
        if self.training is None:
            return None
        features, truth = self.training
        return count_known(self.encoded(self.features), self.truth, self.encoded(features), truth)

    @property
    def booster(self) -> Any:
        """The classifier itself, or the one inside a classifier of tables."""
        inner = self.classifier
        return inner.estimator_ if hasattr(inner, "encoder_") else inner

    @cached_property
    def charged(self) -> FloatArray:
        """What they cost by truth and answer, (K, K)."""
        sums = np.zeros(self.costs.shape)
        np.add.at(sums, (self.truth, self.answers), self.prices.paid(self.truth, self.answers))
        return sums

    def confusion(self, answers: Positions) -> NDArray[np.int64]:
        """Count samples by truth and these answers, (K, K)."""
        counts = np.zeros(self.costs.shape, np.int64)
        np.add.at(counts, (self.truth, answers), 1)
        return counts

    def encoded(self, features: Any) -> Any:
        """Return samples in numbers, for classifiers that take no tables."""
        if not hasattr(self.classifier, "encoder_"):
            return features
        return self.classifier.encoder_.transform(features)


def out_of_fold_cost(booster: Any, costs: FloatArray) -> float | None:
    """Return what decisions cost on training samples that were left out, under the same costs.

    None where the booster does not know it, or knows it for other costs.
    """
    cost = getattr(booster, "oof_cost_", np.nan)
    known = np.isfinite(cost) and np.array_equal(own_costs(booster), costs)
    return float(cost) if known else None


def gather(
    model: Any,
    X: Any,
    y: ArrayLike,
    costs: Any = None,
    train: tuple[Any, ArrayLike] | None = None,
    feature_names: Sequence[Any] | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: float | None = None,
) -> Evidence:
    """Check the arguments of `badacost.cost_report.write_cost_report`, and ask the model."""
    for name in ("predict", "classes_"):
        if not hasattr(model, name):
            raise TypeError(
                f"model is a {type(model).__name__} without {name}: give a fitted classifier."
            )
    truth = positions(y, model.classes_, "y")
    if not len(truth):
        raise ValueError("there are no samples: give at least one row.")
    classifier, encode = _unwrapped(model)
    features = encode(X)
    check_number("abstain", abstain, low=0.0, none=True)
    if sample_cost is None:
        costs = _own_costs(classifier) if costs is None else costs
        prices = Prices(charged_costs(costs, model.classes_))
    else:
        prices = read_prices(costs, sample_cost, model.classes_, len(truth))
    if sample_cost is not None and hasattr(classifier, "decide"):
        decisions = classifier.decide(features, sample_cost=prices.values)
    else:
        decisions = classifier.predict(features)
    answers = positions(decisions, model.classes_, "the answers of the model")
    if len(answers) != len(truth):
        raise ValueError(
            f"X has {len(answers)} rows and y has {len(truth)}: give one label for each row."
        )
    return Evidence(
        classifier,
        features,
        truth,
        answers,
        prices,
        _probabilities(classifier, features),
        None if train is None else _training(train, encode, model.classes_),
        _names(model, X) if feature_names is None else feature_names,
        abstain,
    )


def positions(labels: ArrayLike, classes: ArrayLike, name: str) -> Positions:
    """Return where labels are among the classes; `name` is what errors call the labels."""
    values = np.asarray(labels, dtype=object)
    if values.ndim != 1:
        raise ValueError(f"{name} must be a column of labels; got shape {values.shape}.")
    index = {plain(label): k for k, label in enumerate(np.asarray(classes))}
    unknown = sorted({repr(plain(label)) for label in values if plain(label) not in index})
    if unknown:
        named = ", ".join(unknown[:_MAX_CLASSES_NAMED])
        more = ", ..." if len(unknown) > _MAX_CLASSES_NAMED else ""
        raise ValueError(
            f"{name} has classes that the model does not know ({named}{more}): leave "
            "out those rows, or take the column that it was trained for."
        )
    return np.array([index[plain(label)] for label in values], dtype=np.intp)


def _unwrapped(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the classifier at the end of a pipeline, and what makes its features."""
    if hasattr(model, "named_steps") and len(model) > 1:
        return model[-1], model[:-1].transform
    return model, lambda X: X


def _own_costs(classifier: Any) -> Any:
    costs = own_costs(classifier)
    if costs is None:
        raise ValueError(f"a {type(classifier).__name__} has no costs of its own: give costs.")
    return costs


def _probabilities(classifier: Any, features: Any) -> FloatArray | None:
    """Return probabilities, if the classifier has any under its costs."""
    try:
        return np.asarray(classifier.predict_proba(features), dtype=np.float64)
    except (AttributeError, ValueError):
        return None


def _training(
    train: Any, encode: Callable[[Any], Any], classes: ArrayLike
) -> tuple[Any, Positions]:
    """Return features and classes of the training samples."""
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise ValueError("train must be a tuple of X and y.")
    return encode(train[0]), positions(train[1], classes, "y of train")


def _names(model: Any, X: Any) -> Sequence[Any] | None:
    """Return the names of the features, if anyone knows them."""
    if hasattr(model, "named_steps") and len(model) > 1:
        transform = model[:-1]
        return transform.get_feature_names_out() if _can_name(transform) else None
    names: Sequence[Any] | None = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    return names


def _can_name(transform: Any) -> bool:
    return all(hasattr(step, "get_feature_names_out") for _, step in transform.steps)
