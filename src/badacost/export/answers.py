"""What a fitted classifier answers, as operators: scores, probabilities, the class it decides for.

Each kind of classifier has a function here that follows its `predict` and `predict_proba` step by
step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from badacost.arrays import FloatArray
from badacost.boosting import (
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    ImportedForestClassifier,
    PIBoostClassifier,
)
from badacost.boosting.learners import cheapest_labels
from badacost.boosting.stagewise import StagewiseClassifier
from badacost.calibration import TemperatureScaling
from badacost.decision import MinimumCostClassifier
from badacost.export.graph import Graph, Value
from badacost.export.inputs import Matrix, add_codes, parts_of
from badacost.export.trees import add_leaf, add_scores
from badacost.tabular import TableClassifier
from badacost.validation import positions_in

_MAX_ITERATIONS, _LARGEST_EXPONENT = 100, 700.0  # of the probabilities of PIBoost, as there


@dataclass(frozen=True)
class Answers:
    """Names of values for all samples; None is what a classifier does not have.

    Attributes
    ----------
    charges : str or None
        What the decision compares, (n, K): the smallest wins.
    scores : str or None
        Cost scores, (n, K).
    probabilities : str or None
        Probabilities, (n, K).
    position : str or None
        Where nothing is compared, the class that it decides for, as a position in ``classes_``,
        (n,).
    """

    charges: str | None = None
    scores: str | None = None
    probabilities: str | None = None
    position: str | None = None


SubModel = Callable[[Graph, Any, Matrix], Answers]


def check_exportable(model: Any) -> None:
    """Refuse what is no fitted classifier of this library, or consists of another one."""
    if not isinstance(model, (*_RULES, MinimumCostClassifier, TableClassifier)):
        raise TypeError(
            f"a {type(model).__name__} cannot be exported: give a fitted classifier of badacost; "
            "pipelines are converted by skl2onnx.to_onnx after "
            "badacost.export.register_converters()."
        )
    check_is_fitted(model)
    *_, inner = parts = [*parts_of(model)]
    if is_foreign(inner) and any(isinstance(part, TableClassifier) for part in parts):
        raise TypeError(
            f"a TableClassifier of {type(inner).__name__} cannot be exported: fit one of a "
            "classifier of badacost, or convert a pipeline with skl2onnx."
        )
    if isinstance(inner, StagewiseClassifier) and not hasattr(inner, "forest_"):
        weak: Any = inner
        raise TypeError(
            f"a {type(inner).__name__} of {type(weak.estimators_[0]).__name__} cannot be exported: "
            "fit it with the built-in tree (estimator=None)."
        )


def is_foreign(model: Any) -> bool:
    """Tell whether a classifier, or the innermost one in it, is of another library."""
    *_, inner = parts_of(model)
    return not isinstance(inner, tuple(_RULES))


def add_answers(
    graph: Graph, model: Any, matrix: Matrix, foreign: SubModel | None = None
) -> Answers:
    """Add a classifier that can be exported; `foreign` adds those of other libraries."""
    if isinstance(model, FrozenEstimator):
        return add_answers(graph, model.estimator, matrix, foreign)
    if isinstance(model, MinimumCostClassifier):
        inner = add_answers(graph, model.estimator_, matrix, foreign)
        return _of_minimum_cost(graph, model, inner)
    if isinstance(model, TableClassifier):
        answers = add_answers(graph, model.estimator_, matrix)
        return answers if model.decision == "own" else _bayes(graph, answers, model.cost_matrix_)
    rule = next((rule for kind, rule in _RULES.items() if isinstance(model, kind)), foreign)
    assert rule is not None
    return rule(graph, model, matrix)


def _bayes(graph: Graph, answers: Answers, costs: FloatArray) -> Answers:
    """Decide by minimum expected cost."""
    assert answers.probabilities is not None
    charges = graph.add("MatMul", answers.probabilities, graph.constant(costs))
    return replace(answers, charges=charges, position=None)


def _posterior(graph: Graph, log_prior: FloatArray, scores: str) -> str:
    logits = graph.add("Sub", graph.constant(log_prior[np.newaxis]), scores)
    return graph.add("Softmax", logits, axis=1)


def _of_booster(graph: Graph, model: Any, matrix: Matrix) -> Answers:
    """A classifier of stages; the trees are summed, then its rule decides."""
    scores = add_scores(graph, model.forest_, add_codes(graph, model, matrix))
    answers = Answers(scores, scores)
    if not hasattr(model, "predict_proba"):
        return answers
    if isinstance(model, PIBoostClassifier):
        shares = _shares_of_separations(graph, scores, len(model.classes_))
        return replace(answers, probabilities=shares)
    answers = replace(answers, probabilities=_posterior(graph, model._log_prior(), scores))
    if isinstance(model, CostBoostClassifier) or getattr(model, "decision", "") == "bayes":
        return _bayes(graph, answers, model.cost_matrix_)
    return answers


def _of_imported(graph: Graph, model: Any, matrix: Matrix) -> Answers:
    """Trees of another library."""
    scores = add_scores(graph, model.forest_, add_codes(graph, model, matrix))
    shares = _posterior(graph, model.log_prior_, scores)
    return _bayes(graph, Answers(None, scores, shares), model.charged_costs_)


def _of_tree(graph: Graph, model: Any, matrix: Matrix) -> Answers:
    """A single tree: its leaves are decided about beforehand."""
    row, table = add_leaf(graph, model.forest_, add_codes(graph, model, matrix))
    labels = cheapest_labels(table, model.cost_matrix_).astype(np.int64)
    position = graph.add("Gather", graph.constant(labels), row)
    shares = graph.add("Gather", graph.constant(table), row)
    return Answers(probabilities=shares, position=position)


_RULES: dict[type, SubModel] = {
    StagewiseClassifier: _of_booster,
    ImportedForestClassifier: _of_imported,
    CostSensitiveTreeClassifier: _of_tree,
}


def _shares_of_separations(graph: Graph, scores: str, n_classes: int) -> str:
    """Probabilities of PIBoost: logistic functions with the one shift that makes them sum to one.

    The shift is found by Newton's method, kept inside bounds.
    """

    def number(value: float) -> str:
        return graph.constant(value, np.float64)

    factor = -2.0 if n_classes == 2 else -1.0 / (n_classes - 1)
    logits = graph.add("Mul", scores, number(factor))
    ranked, _ = graph.add_many("TopK", [logits, graph.constant([n_classes])], 2, axis=1)
    top = graph.column(ranked, 0)
    others = graph.add("Gather", ranked, graph.constant(np.arange(1, n_classes)), axis=1)
    others = graph.add("Max", others, graph.add("Sub", top, number(_LARGEST_EXPONENT)))
    low = graph.add("Sub", graph.add("Neg", top), number(np.log(n_classes)))
    high = graph.add("Add", top, graph.column(others, 0))
    high = graph.add("Div", high, number(-2.0))

    step = graph.part()
    count, go_on, low0, high0, t = (step.name(name) for name in ("i", "go_on", "low", "high", "t"))
    odds = step.add("Sigmoid", step.add("Add", others, t))
    total = step.row_sum(odds)
    raised = step.add("Add", top, t)
    # The logarithm of 1 + exp(raised), which as an operator is not there in double precision.
    rest = step.add("Exp", step.add("Neg", step.add("Abs", raised)))
    rest = step.add("Log", step.add("Add", number(1.0), rest))
    excess = step.add("Add", step.add("Log", total), step.add("Relu", raised))
    excess = step.add("Add", excess, rest)
    slope = step.row_sum(step.add("Mul", odds, step.add("Sub", number(1.0), odds)))
    slope = step.add("Add", step.add("Div", slope, total), step.add("Sigmoid", raised))
    below = step.add("Less", excess, number(0.0))
    low1, high1 = step.add("Where", below, t, low0), step.add("Where", below, high0, t)
    newton = step.add("Sub", t, step.add("Div", excess, slope))
    inside = step.add(
        "And", step.add("LessOrEqual", low1, newton), step.add("LessOrEqual", newton, high1)
    )
    middle = step.add("Div", step.add("Add", low1, high1), number(2.0))
    after = step.add("Where", inside, newton, middle)
    moved = step.add("Abs", step.add("Sub", after, t))
    size = step.add("Max", number(1.0), step.add("Abs", after))
    moves = step.add("Greater", moved, step.add("Mul", number(1e-14), size))
    n_moving = step.add("ReduceSum", step.cast(moves, np.int64), keepdims=0)
    again = step.add("Greater", n_moving, graph.constant(0, np.int64))
    columns = [Value(name, np.float64, [None, 1]) for name in (low0, high0, t, low1, high1, after)]
    body = step.to_proto(
        "newton",
        [Value(count, np.int64, []), Value(go_on, np.bool_, []), *columns[:3]],
        [Value(again, np.bool_, []), *columns[3:]],
    )
    inputs = [graph.constant(_MAX_ITERATIONS), graph.constant(True), low, high, high]
    *_, shift = graph.add_many("Loop", inputs, 3, body=body)
    shares = graph.add("Sigmoid", graph.add("Add", logits, shift))
    return graph.add("Div", shares, graph.row_sum(shares))


def _of_minimum_cost(graph: Graph, model: Any, inner: Answers) -> Answers:
    """Minimum expected cost under the probabilities of another classifier, calibrated perhaps."""
    shares, calibrator = inner.probabilities, model.calibrator_
    own = np.asarray(getattr(model.estimator_, "classes_", model.classes_))
    if isinstance(calibrator, TemperatureScaling):
        shares = _scaled(graph, shares, calibrator, len(own))
    elif calibrator is not None:
        shares, own = _calibrated(graph, inner, calibrator)
    assert shares is not None
    if not np.array_equal(own, model.classes_):
        order = positions_in(own, model.classes_).astype(np.int64)
        shares = graph.add("Gather", shares, graph.constant(order), axis=1)
    return _bayes(graph, Answers(probabilities=shares), model.cost_matrix_)


def _scaled(graph: Graph, shares: Any, scaling: TemperatureScaling, n_classes: int) -> str:
    """Probabilities at another temperature."""
    smoothing = scaling.smoothing_
    mixed = graph.add("Mul", shares, graph.constant(1.0 - smoothing))
    mixed = graph.add("Add", mixed, graph.constant(smoothing / n_classes))
    logs = graph.add("Div", graph.add("Log", mixed), graph.constant(scaling.temperature_))
    return graph.add("Softmax", logs, axis=1)


def _calibrated(graph: Graph, inner: Answers, calibrator: Any) -> tuple[str, NDArray[Any]]:
    """Probabilities by one of scikit-learn's calibrations, and the classes of its columns."""
    classes, (fitted,) = calibrator.classes_, calibrator.calibrated_classifiers_
    known = np.asarray(fitted.estimator.classes_)
    values = inner.probabilities or graph.add("Neg", str(inner.charges))
    if len(known) == 2:
        values = (
            graph.column(values, 1)
            if inner.probabilities is not None
            else graph.add("Sub", graph.column(values, 1), graph.column(values, 0))
        )
        share = _corrected(graph, values, fitted.calibrators[0])
        other = graph.add("Sub", graph.constant(1.0), share)
        return graph.add("Concat", other, share, axis=1), np.asarray(classes)
    shares = graph.add(
        "Concat",
        *(
            _corrected(graph, graph.column(values, k), one)
            for k, one in enumerate(fitted.calibrators)
        ),
        axis=1,
    )
    total = graph.row_sum(shares)
    none = graph.add("Equal", total, graph.constant(0.0))
    divisor = graph.add("Where", none, graph.constant(1.0), total)
    even = graph.constant(1.0 / len(known))
    return graph.add("Where", none, even, graph.add("Div", shares, divisor)), known


def _corrected(graph: Graph, value: str, one: Any) -> str:
    """The probability that a calibration of one class gives to its value, (n, 1)."""
    if hasattr(one, "a_"):  # a logistic function
        exponent = graph.add("Mul", value, graph.constant(-float(one.a_)))
        return graph.add("Sigmoid", graph.add("Sub", exponent, graph.constant(float(one.b_))))
    x, y = np.asarray(one.X_thresholds_, np.float64), np.asarray(one.y_thresholds_, np.float64)
    if len(x) == 1:  # interpolated between two equal points
        x, y = np.array([x[0], np.inf]), np.repeat(y, 2)
    with np.errstate(invalid="ignore"):
        slope = np.diff(y) / np.diff(x)
    within = graph.add("Min", graph.add("Max", value, graph.constant(x[0])), graph.constant(x[-1]))
    passed = graph.cast(graph.add("Less", graph.constant(x[np.newaxis]), within), np.int64)
    upper = graph.add("Max", graph.row_sum(passed), graph.constant(1, np.int64))
    place = graph.add("Sub", upper, graph.constant(1, np.int64))
    begin, height, rise = (
        graph.add("Gather", graph.constant(part), place) for part in (x[:-1], y[:-1], slope)
    )
    rise = graph.add("Mul", rise, graph.add("Sub", within, begin))
    return graph.add("Add", rise, height)
