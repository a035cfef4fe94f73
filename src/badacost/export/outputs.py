"""Outputs of a fitted classifier, as operators: scores, probabilities, costs and decisions.

A classifier is a table of scores, which its trees give, and a few operations on this: what its own
`_posterior` does to arrays is done to tensors, and the smallest of its costs is the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import positions_in
from badacost.boosting.reweighting import cheapest_labels
from badacost.classifiers import (
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    ImportedForestClassifier,
)
from badacost.classifiers.base import ForestClassifier, StagewiseClassifier
from badacost.classifiers.calibration import TemperatureScaling
from badacost.classifiers.minimum_cost import MinimumCostClassifier
from badacost.costs.decisions import abstention_costs
from badacost.export.graph import Tensor, Value
from badacost.export.inputs import parts_of, unused_name
from badacost.export.trees import add_scores
from badacost.tabular import TableClassifier


@dataclass(frozen=True)
class Results:
    """Values for all samples; None is what a classifier does not have.

    Attributes
    ----------
    costs : Tensor or None
        Values whose minimum is the decision, (n, K).
    scores : Tensor or None
        Cost scores, (n, K).
    probabilities : Tensor or None
        Probabilities, (n, K).
    """

    costs: Any = None
    scores: Any = None
    probabilities: Any = None

    def by_expected_cost(self, costs: FloatArray) -> Results:
        """Decide by minimum expected cost under a matrix."""
        return replace(self, costs=self.probabilities @ costs)


def check_exportable(model: Any) -> None:
    """Raise unless this is a fitted classifier that has a counterpart in ONNX."""
    if not isinstance(model, ForestClassifier | MinimumCostClassifier | TableClassifier):
        raise TypeError(
            f"a {type(model).__name__} cannot be exported: give a fitted classifier of badacost, "
            "or convert a pipeline by skl2onnx.to_onnx after register_converters()."
        )
    check_is_fitted(model)
    *outer, inner = parts_of(model)
    if not isinstance(inner, ForestClassifier):
        if any(isinstance(part, TableClassifier) for part in outer):
            raise TypeError(
                f"a TableClassifier of {type(inner).__name__} cannot be exported: fit one of a "
                "classifier of badacost, or convert a pipeline with skl2onnx."
            )
    elif not hasattr(inner, "forest_"):
        weak: Any = inner
        raise TypeError(
            f"a {type(inner).__name__} of {type(weak.estimators_[0]).__name__} cannot be exported: "
            "fit it with the built-in tree (estimator=None)."
        )


def add_results(
    model: Any, values: Tensor, foreign: Callable[[Any], Results] | None = None
) -> Results:
    """Add a classifier that can be exported; `foreign` adds those of other libraries."""
    if isinstance(model, FrozenEstimator):
        return add_results(model.estimator, values, foreign)
    if isinstance(model, MinimumCostClassifier):
        return _of_minimum_cost(model, add_results(model.estimator_, values, foreign))
    if isinstance(model, TableClassifier):
        results = add_results(model.estimator_, values)
        own = model.decision == "own"
        return results if own else results.by_expected_cost(model.regret_matrix_)
    if isinstance(model, CostSensitiveTreeClassifier):
        return _of_tree(model, values)
    if isinstance(model, ForestClassifier):
        return _of_forest(model, values)
    assert foreign is not None
    return foreign(model)


def _of_forest(model: Any, values: Tensor) -> Results:
    """A sum of trees, ours or those of another library, and the decision rule."""
    scores = add_scores(model.forest_, values)
    has_probabilities = hasattr(model, "predict_proba")
    results = Results(scores, scores, model._posterior(scores) if has_probabilities else None)
    if isinstance(model, ImportedForestClassifier):
        return results.by_expected_cost(model.cost_matrix_)
    if isinstance(model, CostBoostClassifier) or getattr(model, "decision", "") == "bayes":
        return results.by_expected_cost(model.regret_matrix_)
    return results


def _of_tree(model: Any, values: Tensor) -> Results:
    """A single tree, whose decisions are constants of its leaves, beside the probabilities."""
    forest, n_classes = model.forest_, len(model.classes_)
    labels = cheapest_labels(forest.table, model.regret_matrix_)
    table = np.hstack([forest.table, 1.0 - np.eye(n_classes)[labels]])
    scores = add_scores(replace(forest, table=table), values)
    return Results(costs=scores[:, n_classes:], probabilities=scores[:, :n_classes])


def _of_minimum_cost(model: Any, inner: Results) -> Results:
    """Minimum expected cost under the probabilities, perhaps calibrated, of another classifier."""
    probabilities, calibrator = inner.probabilities, model.calibrator_
    own = np.asarray(getattr(model.estimator_, "classes_", model.classes_))
    if isinstance(calibrator, TemperatureScaling):
        smoothing = calibrator.smoothing_
        mixed = probabilities * (1.0 - smoothing) + smoothing / len(own)
        logits = np.log(mixed) / calibrator.temperature_
        probabilities = mixed.graph.add("Softmax", logits, axis=1)
    elif calibrator is not None:
        probabilities, own = _calibrated(inner, calibrator)
    if not np.array_equal(own, model.classes_):
        order = positions_in(own, model.classes_).astype(np.int64)
        probabilities = probabilities.graph.add("Gather", probabilities, order, axis=1)
    return Results(probabilities=probabilities).by_expected_cost(model.cost_matrix_)


def _calibrated(inner: Results, calibrator: Any) -> tuple[Tensor, NDArray[Any]]:
    """Probabilities by one of scikit-learn's calibrations, and the classes of its columns."""
    (fitted,) = calibrator.calibrated_classifiers_
    known = np.asarray(fitted.estimator.classes_)
    values = (
        decision_values(inner, len(known)) if inner.probabilities is None else inner.probabilities
    )
    add = values.graph.add
    if len(known) == 2:
        second = _corrected(values[:, 1:], fitted.calibrators[0])
        return add("Concat", 1.0 - second, second, axis=1), np.asarray(calibrator.classes_)
    columns = [_corrected(values[:, k : k + 1], one) for k, one in enumerate(fitted.calibrators)]
    probabilities = add("Concat", *columns, axis=1)
    total = probabilities.sum(axis=1, keepdims=True)
    uniform = np.full(len(known), 1.0 / len(known))
    return add("Where", total == 0.0, uniform, probabilities / total), known


def decision_values(results: Results, n_classes: int) -> Tensor:
    """The decision function, (n, K), whose columns are opposite to each other for two classes."""
    values: Tensor = -results.costs
    if n_classes > 2:
        return values
    lead: Any = values[:, 1:] - values[:, :1]
    return values.graph.add("Concat", -lead, lead, axis=1)


def _corrected(value: Any, one: Any) -> Tensor:
    """The probability that a calibration of one class gives to its value, (n, 1)."""
    add = value.graph.add
    if hasattr(one, "a_"):  # a logistic function
        return add("Sigmoid", value * -float(one.a_) - float(one.b_))
    x, y = np.asarray(one.X_thresholds_, np.float64), np.asarray(one.y_thresholds_, np.float64)
    if len(x) == 1:  # interpolated between two equal points
        x, y = np.array([x[0], np.inf]), np.repeat(y, 2)
    with np.errstate(invalid="ignore"):
        slope = np.diff(y) / np.diff(x)
    within = np.minimum(np.maximum(value, x[0]), x[-1])
    passed = (x[np.newaxis] < within).cast(np.int64).sum(axis=1, keepdims=True)
    place = np.maximum(passed, 1) - 1
    begin, height, rise = (add("Gather", part, place) for part in (x[:-1], y[:-1], slope))
    return rise * (within - begin) + height


def outputs_of(
    model: Any, abstain: float | None = None, taken: Collection[str] = ()
) -> dict[str, Value]:
    """Return the outputs of a fitted classifier by their kind; `taken` are names of inputs."""
    classes, has_probabilities = label_values(model.classes_), hasattr(model, "predict_proba")
    if abstain is not None:
        abstention_costs(abstain, 1)
        if not has_probabilities:
            raise ValueError(f"a {type(model).__name__} has no probabilities: leave out abstain.")
    inner = model.estimator_ if isinstance(model, TableClassifier) else model
    has_scores = isinstance(inner, StagewiseClassifier | ImportedForestClassifier)
    each: list[int | None] = [None, len(classes)]
    outputs = [
        (True, Value("label", classes.dtype, [None])),
        (has_probabilities, Value("probabilities", np.float64, each)),
        (has_scores, Value("scores", np.float64, each)),
        (has_probabilities, Value("expected_costs", np.float64, each)),
        (abstain is not None, Value("asked", np.bool_, [None])),
    ]
    return {x.name: x._replace(name=unused_name(x.name, taken)) for there, x in outputs if there}


def add_outputs(
    model: Any, results: Results, names: dict[str, str], abstain: float | None = None
) -> None:
    """Add some outputs of a classifier, by their kind, under these names."""
    costs, graph = results.costs, results.costs.graph
    values = {"probabilities": results.probabilities, "scores": results.scores}
    if "expected_costs" in names:
        values["expected_costs"] = results.probabilities @ model.cost_matrix_
    if abstain is not None:
        costs = values["expected_costs"]
        values["asked"] = (costs < np.float64(abstain)).cast(np.int64).sum(axis=1) == 0
    position = graph.add("ArgMin", costs, axis=1, keepdims=0)  # the first of equal ones
    values["label"] = graph.add("Gather", label_values(model.classes_), position)
    for kind, name in names.items():
        graph.add("Identity", values[kind], names=[name])


def label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as values of ONNX: whole numbers, numbers, booleans or texts."""
    values = np.asarray(classes)
    if all(isinstance(value, str) for value in values.tolist()):
        return values.astype(object)
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    dtype = kinds.get(values.dtype.kind)
    if dtype is not None and np.array_equal(values.astype(dtype), values):
        return values.astype(dtype)
    example = f"{values.tolist()[0]!r:.80}, of dtype {values.dtype},"
    raise TypeError(f"classes such as {example} have no type in ONNX: make all of them texts.")
