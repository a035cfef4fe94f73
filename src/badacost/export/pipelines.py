"""Converters for skl2onnx: classifiers of this library as steps of pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator

from badacost import boosting
from badacost.decision import MinimumCostClassifier
from badacost.export.answers import Answers, add_answers, check_exportable
from badacost.export.graph import Graph
from badacost.export.inputs import Matrix, parts_of
from badacost.export.outputs import add_outputs, outputs_of
from badacost.tabular import TableClassifier

_ML_OPSET = 3  # the last version that skl2onnx knows
_OPTIONS = {"abstain": None, "zipmap": None}
_RAW = {"raw_scores": [True, False]}  # what estimators that prefer decision_function ask for


def _import_skl2onnx() -> Any:
    """Return skl2onnx, or say how to install it."""
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError(
            "pipelines, and classifiers of scikit-learn, need skl2onnx: type "
            'pip install "badacost[onnx]".'
        ) from error
    return skl2onnx


def register_converters() -> None:
    """Tell skl2onnx how to convert the classifiers of this library.

    They may then be steps of pipelines that `skl2onnx.to_onnx` converts. Their outputs are those of
    `to_onnx`, in one order: the label, probabilities, scores, expected costs. ``abstain`` is an
    option; ``zipmap`` has no effect, probabilities are always a matrix. Trees are operators of
    version 3, the last one that skl2onnx knows, with thresholds in the precision of their inputs.

    They may also be parts of a `BaggingClassifier`, a `CalibratedClassifierCV`, a
    `StackingClassifier` of probabilities, and a `VotingClassifier` with ``voting="soft"`` and
    ``flatten_transform=False``, as exactly as skl2onnx converts those. Estimators that count the
    decisions of their parts, such as ``voting="hard"``, are refused: skl2onnx takes the most
    probable class for the decision, which is another one where costs count.

    Examples
    --------
    >>> import onnxruntime
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from badacost import CostBoostClassifier
    >>> from badacost.export import register_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = CostBoostClassifier(costs, n_estimators=5, early_stopping=False, n_folds=1)
    >>> pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    >>> register_converters()
    >>> exported = to_onnx(pipeline, X[:1]).SerializeToString()  # X is in double precision
    >>> session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    >>> labels = session.run(["label"], {"X": X})[0]
    >>> bool((labels == pipeline.predict(X)).all())
    True
    """
    skl2onnx = _import_skl2onnx()
    for kind in [*(getattr(boosting, name) for name in boosting.__all__), MinimumCostClassifier]:
        skl2onnx.update_registered_converter(
            kind, f"Badacost{kind.__name__}", _check_types, _convert, parser=_parse,
            options=_OPTIONS | (_RAW if hasattr(kind, "decision_function") else {}),
        )  # fmt: skip


def convert_with_skl2onnx(model: Any, dtype: Any, abstain: float | None) -> Any:
    """Return a classifier on one of scikit-learn as a model of ONNX."""
    skl2onnx = _import_skl2onnx()
    if not hasattr(model, "n_features_in_"):
        raise TypeError(
            "the classifier inside does not know its number of features: convert it with "
            "skl2onnx.to_onnx, which takes the types of its inputs."
        )
    register_converters()
    options = {} if abstain is None else {id(model): {"abstain": abstain}}
    return skl2onnx.to_onnx(
        model,
        np.zeros((1, model.n_features_in_), dtype),
        options=options,
        target_opset={"": 18, "ai.onnx.ml": _ML_OPSET},
    )


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of a classifier."""
    from skl2onnx.common import data_types

    check_exportable(model)
    if any(isinstance(part, TableClassifier) for part in parts_of(model)):
        raise TypeError(
            "a TableClassifier cannot be part of a pipeline to export: use badacost.export.to_onnx "
            "on it alone."
        )
    types = {
        "O": data_types.StringTensorType,
        "b": data_types.BooleanTensorType,
        "i": data_types.Int64TensorType,
        "f": data_types.DoubleTensorType,
    }
    alias = _import_skl2onnx().get_model_alias(type(model))
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = inputs
    for name, dtype, shape in outputs_of(model, _price(scope, model)).values():
        kind = types[np.dtype(dtype).kind]
        operator.outputs.append(scope.declare_local_variable(name, kind([*shape])))
    return operator.outputs


def _check_types(operator: Any) -> None:
    """Take the types that the parser declared."""


def _price(holder: Any, model: Any) -> float | None:
    """The option `abstain`."""
    price: float | None = holder.get_options(model, {"abstain": None}, fail=False)["abstain"]
    return price


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of a classifier to those of skl2onnx."""
    model, price = operator.raw_operator, _price(container, operator.raw_operator)
    wanted = outputs_of(model, price)
    # Another estimator declares two outputs for each of its parts, by names of its own.
    is_part = [variable.raw_name for variable in operator.outputs] != [*wanted]
    if is_part:
        _check_part(scope, model)
    graph = Graph(scope.get_unique_variable_name(type(model).__name__) + "/", _ML_OPSET)

    def foreign(graph: Graph, inner: Any, matrix: Matrix) -> Answers:
        return _add_foreign(scope, operator.inputs, graph, inner)

    answers = add_answers(graph, model, _joined(graph, operator.inputs), foreign)
    if is_part:
        _add_part(graph, model, answers, operator.outputs, _is_raw(container, model))
    else:
        outputs = {
            kind: value._replace(name=variable.full_name)
            for (kind, value), variable in zip(wanted.items(), operator.outputs, strict=True)
        }
        add_outputs(graph, model, answers, outputs, price)
    for name, tensor in graph.constants.items():
        if tensor.string_data:
            shape = list(tensor.dims)
            container.add_initializer(name, tensor.data_type, shape, list(tensor.string_data))
        else:
            container.add_initializer(name, None, None, tensor)
    for node in graph.nodes:
        container.add_node(
            node.operator, node.inputs, node.outputs, op_domain=node.domain,
            op_version=_ML_OPSET if node.domain else None,
            name=scope.get_unique_operator_name(node.operator), **node.attributes,
        )  # fmt: skip


def _is_raw(container: Any, model: Any) -> bool:
    """Whether `decision_function` is asked for in place of probabilities."""
    if not hasattr(model, "decision_function"):
        return False
    return bool(container.get_options(model, {"raw_scores": False}, fail=False)["raw_scores"])


def _check_part(scope: Any, model: Any) -> None:
    """Refuse parts of estimators that are not converted to what they are in scikit-learn."""
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"a {name} without predict_proba cannot be exported as part of another estimator: use "
            "a classifier that has it."
        )
    for operator in scope.operators.values():
        holder = operator.raw_operator
        if not any(part is model for part in getattr(holder, "estimators_", ())):
            continue
        takes_shares = (
            isinstance(holder, BaggingClassifier)
            or (isinstance(holder, VotingClassifier) and holder.voting == "soft")
            or _stacked_by(holder, model) == "predict_proba"
        )
        if not takes_shares:
            raise TypeError(
                f"a {name} in this {type(holder).__name__} cannot be exported: skl2onnx combines "
                "probabilities where scikit-learn combines decisions. Use a VotingClassifier with "
                "voting='soft', a StackingClassifier with stack_method='predict_proba', a "
                f"BaggingClassifier, or the {name} alone."
            )


def _stacked_by(holder: Any, model: Any) -> str | None:
    """The method of a classifier that a StackingClassifier calls."""
    if not isinstance(holder, StackingClassifier):
        return None
    pairs = zip(holder.estimators_, holder.stack_method_, strict=True)
    return next(method for part, method in pairs if part is model)


def _add_part(graph: Graph, model: Any, answers: Answers, outputs: Any, raw: bool) -> None:
    """Add the two outputs of a part: the label, and what the other estimator computes with."""
    from skl2onnx.common.data_types import DoubleTensorType

    label, numbers = outputs
    values = answers.probabilities
    if raw:
        values = graph.add("Neg", str(answers.charges))
        if len(model.classes_) == 2:
            first, second = graph.column(values, 0), graph.column(values, 1)
            lead = graph.add("Sub", second, first)
            values = graph.add("Concat", graph.add("Neg", lead), lead, axis=1)
    dtype = np.float64 if isinstance(numbers.type, DoubleTensorType) else np.float32
    graph.add_as(numbers.full_name, "Identity", graph.cast(str(values), dtype))
    kind = outputs_of(model)["label"]
    add_outputs(graph, model, answers, {"label": kind._replace(name=label.full_name)}, None)


def _joined(graph: Graph, inputs: Any) -> Matrix:
    """One matrix of the inputs: in single precision if all of them are, else in double."""
    from skl2onnx.common.data_types import FloatTensorType

    single = all(isinstance(variable.type, FloatTensorType) for variable in inputs)
    dtype = np.float32 if single else np.float64
    parts = [graph.cast(variable.full_name, dtype) for variable in inputs]
    return Matrix(graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0], dtype)


def _add_foreign(scope: Any, inputs: Any, graph: Graph, inner: Any) -> Answers:
    """Let skl2onnx convert a classifier of another library, whose probabilities are used."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType

    if not hasattr(inner, "predict_proba"):
        raise TypeError(
            f"a {type(inner).__name__} cannot be exported, since it has no predict_proba: use a "
            "classifier that has it."
        )
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    operator = scope.declare_local_operator(_import_skl2onnx().get_model_alias(type(inner)), inner)
    operator.inputs = inputs
    label = scope.declare_local_variable("inner_label", Int64TensorType())
    shares = scope.declare_local_variable("inner_probabilities", DoubleTensorType())
    operator.outputs.extend([label, shares])
    return Answers(probabilities=graph.cast(shares.full_name, np.float64))
