"""What leaves an exported model: the label, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.boosting import ImportedForestClassifier
from badacost.boosting.stagewise import StagewiseClassifier
from badacost.costs.decisions import asking_prices, own_costs
from badacost.export.answers import Answers
from badacost.export.graph import Graph, Value
from badacost.tabular import TableClassifier


def outputs_of(
    model: Any, abstain: float | None = None, taken: Collection[str] = ()
) -> dict[str, Value]:
    """Return the outputs of a fitted classifier by what they are; `taken` are names of inputs."""
    classes = label_values(model.classes_)
    has_shares = hasattr(model, "predict_proba")
    kinds = {
        "probabilities": has_shares,
        "scores": _has_scores(model),
        "expected_costs": has_shares,
    }
    wanted: dict[str, tuple[Any, list[int | None]]] = {"label": (classes.dtype, [None])}
    for kind, is_there in kinds.items():
        if is_there:
            wanted[kind] = np.float64, [None, len(classes)]
    if abstain is not None:
        asking_prices(abstain, 1)
        if not has_shares:
            raise ValueError(
                f"this {type(model).__name__} has no probabilities, so that it cannot abstain: "
                "leave out abstain."
            )
        wanted["asked"] = np.bool_, [None]
    outputs = {}
    for kind, (dtype, shape) in wanted.items():
        name = kind
        while name in taken:
            name += "_"
        outputs[kind] = Value(name, dtype, shape)
    return outputs


def add_outputs(
    graph: Graph, model: Any, answers: Answers, outputs: dict[str, Value], abstain: float | None
) -> None:
    """Add the outputs of a classifier under their names."""
    values = {"probabilities": answers.probabilities, "scores": answers.scores}
    charges, position = answers.charges, answers.position
    if "expected_costs" in outputs:
        costs = graph.constant(own_costs(model))
        values["expected_costs"] = graph.add("MatMul", str(answers.probabilities), costs)
    if abstain is not None:
        charges, position = values["expected_costs"], None
        cheapest = graph.add("ArgMin", str(charges), axis=1, keepdims=1)
        lowest = graph.add("GatherElements", str(charges), cheapest, axis=1)
        lowest = graph.add("Squeeze", lowest, graph.constant([1]))
        price = graph.constant(abstain, np.float64)
        values["asked"] = graph.add("GreaterOrEqual", lowest, price)
    if position is None:  # of the smallest charge, the first of equal ones
        position = graph.add("ArgMin", str(charges), axis=1, keepdims=0)
    classes = graph.constant(label_values(model.classes_))
    values["label"] = graph.add("Gather", classes, position)
    for kind, output in outputs.items():
        graph.add_as(output.name, "Identity", str(values[kind]))


def _has_scores(model: Any) -> bool:
    """Tell whether a classifier sums the scores of trees, and shows them."""
    if isinstance(model, TableClassifier):
        return _has_scores(model.estimator_)
    return isinstance(model, StagewiseClassifier | ImportedForestClassifier)


def label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as values of ONNX: whole numbers, numbers, booleans or texts."""
    values = np.asarray(classes)
    if all(isinstance(value, str) for value in values.tolist()):
        return values.astype(object)
    kind = values.dtype.kind
    if kind == "b" or (kind == "f" and values.dtype.itemsize <= np.dtype(np.float64).itemsize):
        return values.astype(np.bool_ if kind == "b" else np.float64)
    if kind in "iu" and int(values.max()) <= np.iinfo(np.int64).max:
        return values.astype(np.int64)
    raise TypeError(
        f"classes such as {values.tolist()[0]!r:.80}, of dtype {values.dtype}, have no type in "
        "ONNX: make all of them texts, or all of them integers."
    )
