"""Outputs of a fitted classifier, as operators: scores, probabilities, costs and decisions.

A classifier is a table of scores, which its trees give, and a few operations on this: what its own
`_posterior` does to arrays is done to tensors, and the smallest of its costs is the decision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

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
from badacost.export.graph import Tensor
from badacost.export.inputs import add_codes, parts_of
from badacost.export.trees import add_scores
from badacost.tabular import TableClassifier

# Values for all samples, (n, K): "scores", "probabilities" and "costs", whose minimum decides.
Results = dict[str, Tensor]


def check_exportable(model: Any) -> None:
    """Raise unless this is a fitted classifier that has a counterpart in ONNX."""
    if not isinstance(model, ForestClassifier | MinimumCostClassifier | TableClassifier):
        raise TypeError(
            f"a {type(model).__name__} cannot be exported: give a fitted classifier of badacost, "
            "or convert a pipeline by skl2onnx.to_onnx after register_converters()."
        )
    check_is_fitted(model)
    inner = parts_of(model)[-1]
    if isinstance(inner, ForestClassifier) and not hasattr(inner, "forest_"):
        raise TypeError(
            f"a {type(inner).__name__} of {type(vars(inner)['estimators_'][0]).__name__} cannot be "
            "exported: fit it with the built-in tree (estimator=None)."
        )


def forest_results(model: Any, values: Tensor) -> Results:
    """Add a classifier of trees, ours or those of another library."""
    forest, codes = model.forest_, add_codes(model, values)
    if isinstance(model, CostSensitiveTreeClassifier):  # whose decisions are constants of leaves
        labels = cheapest_labels(forest.table, model.regret_matrix_)
        n_classes = forest.table.shape[1]
        table = np.hstack([forest.table, 1.0 - np.eye(n_classes)[labels]])
        both = add_scores(replace(forest, table=table), codes)
        return {"costs": both[:, n_classes:], "probabilities": both[:, :n_classes]}
    scores = add_scores(forest, codes)
    results = {"costs": scores, "scores": scores}
    if hasattr(model, "predict_proba"):
        results["probabilities"] = model._posterior(scores)
    if isinstance(model, ImportedForestClassifier):
        results["costs"] = results["probabilities"] @ model.cost_matrix_
    elif isinstance(model, CostBoostClassifier) or getattr(model, "decision", "") == "bayes":
        results["costs"] = results["probabilities"] @ model.regret_matrix_
    return results


def add_results(model: Any, results: Results) -> Results:
    """Add what a classifier does to the results of the innermost one that it consists of."""
    for part in reversed(parts_of(model)):
        if isinstance(part, MinimumCostClassifier):
            results = _of_minimum_cost(part, results)
        elif isinstance(part, TableClassifier) and part.decision == "bayes":
            results |= {"costs": results["probabilities"] @ part.regret_matrix_}
    return results


def _of_minimum_cost(model: Any, inner: Results) -> Results:
    """Minimum expected cost under the probabilities, perhaps calibrated, of another classifier."""
    calibrator = model.calibrator_
    own = np.asarray(getattr(model.estimator_, "classes_", np.sort(model.classes_)))
    if calibrator is None:
        probabilities = inner["probabilities"]
    elif isinstance(calibrator, TemperatureScaling):
        smoothing = calibrator.smoothing_
        mixed: Any = inner["probabilities"] * (1.0 - smoothing) + smoothing / len(own)
        logits = np.log(mixed) / calibrator.temperature_
        probabilities = mixed.graph.add("Softmax", logits, axis=1)
    else:
        probabilities = _calibrated(inner, calibrator)
    if not np.array_equal(own, model.classes_):
        order = positions_in(own, model.classes_).astype(np.int64)
        probabilities = probabilities.graph.add("Gather", probabilities, order, axis=1)
    return {"probabilities": probabilities, "costs": probabilities @ model.cost_matrix_}


def _calibrated(inner: Results, calibrator: Any) -> Tensor:
    """Probabilities by one of scikit-learn's calibrations, whose classes are numbers of columns."""
    (fitted,) = calibrator.calibrated_classifiers_
    n_classes = len(fitted.estimator.classes_)
    given: Any = inner.get("probabilities")
    values = decision_values(inner, n_classes) if given is None else given
    add = values.graph.add
    if n_classes == 2:
        second: Any = _corrected(values[:, 1:], fitted.calibrators[0])
        return add("Concat", 1.0 - second, second, axis=1)
    columns = [_corrected(values[:, k : k + 1], one) for k, one in enumerate(fitted.calibrators)]
    probabilities: Any = add("Concat", *columns, axis=1)
    total = probabilities.sum(axis=1, keepdims=True)
    uniform = np.full(n_classes, 1.0 / n_classes)
    return add("Where", total == 0.0, uniform, probabilities / total)


def decision_values(results: Results, n_classes: int) -> Tensor:
    """The decision function, (n, K), whose columns are opposite to each other for two classes."""
    values: Any = -results["costs"]
    if n_classes > 2:
        return values
    lead = values[:, 1:] - values[:, :1]
    return values.graph.add("Concat", -lead, lead, axis=1)


def _corrected(value: Any, one: Any) -> Tensor:
    """The probability that a calibration of one class gives to its value, (n, 1)."""
    add = value.graph.add
    if hasattr(one, "a_"):  # a logistic function
        return add("Sigmoid", value * -float(one.a_) - float(one.b_))
    # Linear between points, and constant after the last one, which may be the only one.
    points = np.array([one.X_thresholds_, one.y_thresholds_], np.float64)
    x, y = np.column_stack([points, [np.inf, points[1, -1]]])
    within = np.minimum(np.maximum(value, x[0]), x[-2])
    passed = (x[np.newaxis] < within).cast(np.int64).sum(axis=1, keepdims=True)
    columns = (x[:-1], y[:-1], np.diff(y) / np.diff(x))
    begin, height, slope = (add("Gather", c, np.maximum(passed, 1) - 1) for c in columns)
    return slope * (within - begin) + height


def outputs_of(model: Any, abstain: float | None = None) -> dict[str, NDArray[Any]]:
    """Return the outputs of a fitted classifier, as arrays without rows by their kind."""
    classes, has_probabilities = label_values(model.classes_), hasattr(model, "predict_proba")
    if abstain is not None:
        abstention_costs(abstain, 1)
        if not has_probabilities:
            raise ValueError(f"a {type(model).__name__} has no probabilities: leave out abstain.")
    inner = model.estimator_ if isinstance(model, TableClassifier) else model
    has_scores = isinstance(inner, StagewiseClassifier | ImportedForestClassifier)
    each = np.empty((0, len(classes)))
    outputs = {
        "label": (True, classes[:0]),
        "probabilities": (has_probabilities, each),
        "scores": (has_scores, each),
        "expected_costs": (has_probabilities, each),
        "asked": (abstain is not None, np.empty(0, np.bool_)),
    }
    return {kind: array for kind, (there, array) in outputs.items() if there}


def add_outputs(
    model: Any, results: Results, names: dict[str, str], abstain: float | None = None
) -> None:
    """Add some outputs of a classifier, by their kind, under these names."""
    costs, values = results["costs"], dict(results)
    if "expected_costs" in names:
        values["expected_costs"] = results["probabilities"] @ model.cost_matrix_
    if abstain is not None:
        costs = values["expected_costs"]
        values["asked"] = (costs < np.float64(abstain)).cast(np.int64).sum(axis=1) == 0
    position = costs.graph.add("ArgMin", costs, axis=1, keepdims=0)  # the first of equal ones
    values["label"] = costs.graph.add("Gather", label_values(model.classes_), position)
    for kind, name in names.items():
        costs.graph.add("Identity", values[kind], names=[name])


def label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as values of ONNX: whole numbers, numbers, booleans or texts."""
    given = np.asarray(classes)
    if all(isinstance(value, str) for value in given.tolist()):
        return given.astype(object)
    values = np.asarray(given.tolist())
    if given.dtype.kind in "biuf" and values.dtype in (np.bool_, np.int64, np.float64):
        return values
    example = f"{given.tolist()[0]!r:.80}, of dtype {given.dtype},"
    raise TypeError(f"classes such as {example} have no type in ONNX: make all of them texts.")
