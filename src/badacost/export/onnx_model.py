"""`to_onnx`: a fitted classifier as a model of ONNX, and the converters for skl2onnx."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import BaggingClassifier

from badacost import classifiers, family
from badacost._utils.validation import check_choice
from badacost.classifiers.base import ForestClassifier
from badacost.costs.matrix import plain
from badacost.export.graph import ML_DOMAIN, Graph, Tensor, import_extra
from badacost.export.inputs import (
    add_inputs,
    column_names,
    parts_of,
    text_categories,
    unused_name,
)
from badacost.export.outputs import (
    Results,
    add_outputs,
    add_results,
    check_exportable,
    decision_values,
    forest_results,
    outputs_of,
)
from badacost.tabular import TableClassifier

_PRECISIONS = {"double": np.float64, "float": np.float32}
_MAX_BYTES = 2**31 - 1  # of a message of protobuf
_SKL2ONNX_OPSET = 3  # of ai.onnx.ml: the last version that skl2onnx knows
_OPTIONS = {"abstain": None, "zipmap": None, "raw_scores": [True, False]}


def to_onnx(
    model: Any,
    *,
    input_type: Literal["double", "float"] = "double",
    ml_opset: Literal[5, 3] = 5,
    abstain: float | None = None,
) -> Any:
    """Return a fitted classifier as a model of ONNX, which runs without this library.

    The trees become operators that return leaves; the rows of these are added in double precision,
    tree by tree, as in this library.

    Parameters
    ----------
    model : classifier
        A fitted classifier of trees of this library, a `MinimumCostClassifier` or a
        `badacost.tabular.TableClassifier` on one. A `MinimumCostClassifier` on a classifier of
        scikit-learn is converted by skl2onnx, as exactly as that does it.
    input_type : {"double", "float"}, default="double"
        Type of the numbers that the exported model takes. With "float" thresholds are rounded up,
        which does not change the comparison with numbers in single precision, and categories that
        are numbers are rounded to the nearest one.
    ml_opset : {5, 3}, default=5
        Version of the operators for trees: ``TreeEnsemble`` of 5, or ``TreeEnsembleRegressor`` of
        3, which older runtimes have. It has no effect on a classifier of scikit-learn, for which
        skl2onnx chooses the versions, of at most 3.
    abstain : float or None, default=None
        The cost of abstaining, as in `decide`. The exported model then has the output
        ``asked``, and the label is that of `decide`, of minimum expected cost.

    Returns
    -------
    onnx.ModelProto
        The model. Its inputs are a matrix ``X`` of shape (n, n_features), or a column of shape
        (n, 1) for each feature, by its name, where there are texts among the categories: strings
        for these, numbers for all others. NaN is a missing number.

        Its outputs are ``label``, the decision, of shape (n,); and, where the model has them,
        ``scores`` (`cost_scores`), ``probabilities`` (`predict_proba`) and ``expected_costs``
        (`predict_costs`), of shape (n, K) in the order of ``classes_``; and ``asked``, of shape
        (n,). Where a column has one of these names, an underscore is added to that of the output.

    Raises
    ------
    NotFittedError
        Where the model is not fitted.
    TypeError, ValueError
        Where the model, or a part of it, has no counterpart.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = BAdaCostClassifier(costs, n_estimators=20, max_depth=2).fit(X, y)
    >>> exported = to_onnx(model).SerializeToString()  # or onnx.save(to_onnx(model), "iris.onnx")
    >>> session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    >>> labels, scores = session.run(["label", "scores"], {"X": X})
    >>> bool((labels == model.predict(X)).all() and (scores == model.cost_scores(X)).all())
    True
    """
    check_choice("input_type", input_type, _PRECISIONS)
    if not isinstance(ml_opset, int) or ml_opset not in (5, 3):
        raise ValueError(f"ml_opset must be 5 or 3; got {ml_opset!r}.")
    onnx = import_extra()
    check_exportable(model)
    dtype, columns = _PRECISIONS[input_type], column_names(model)
    if isinstance(parts_of(model)[-1], ForestClassifier):
        prefix = "badacost/"
        while any(name.startswith(prefix) for name in columns):
            prefix = f"_{prefix}"
        graph = Graph(prefix, ml_opset, dtype)
        inputs, values = add_inputs(graph, model)
        outputs = outputs_of(model, abstain)
        names = {kind: unused_name(kind, inputs) for kind in outputs}
        innermost = forest_results(parts_of(model)[-1], values)
        add_outputs(model, add_results(model, innermost), names, abstain)
        named = {names[kind]: array for kind, array in outputs.items()}
        exported = graph.to_model(type(model).__name__, inputs, named)
    else:
        exported = _convert_with_skl2onnx(model, dtype, abstain)
    facts = {"classes": [plain(label) for label in model.classes_], "columns": columns}
    onnx.helper.set_model_props(exported, {key: json.dumps(value) for key, value in facts.items()})
    if exported.ByteSize() > _MAX_BYTES:
        raise ValueError(
            "the exported model would be larger than 2 GiB, which a file of ONNX cannot be: fit a "
            "model of fewer or smaller trees."
        )
    return exported


def register_converters() -> None:
    """Register the classifiers of this library with skl2onnx.

    They may then be steps of pipelines that `skl2onnx.to_onnx` converts, with the outputs of
    `to_onnx` in one order: the label, probabilities, scores, expected costs. ``abstain`` is an
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
    skl2onnx = import_extra("skl2onnx")
    kinds = [getattr(p, name) for p in (classifiers, family) for name in p.__all__]
    for kind in [*kinds, TableClassifier]:
        skl2onnx.update_registered_converter(
            kind,
            f"Badacost{kind.__name__}",
            lambda operator: None,  # the parser has declared the types
            _convert,
            parser=_parse,
            options=_OPTIONS,
        )


def _convert_with_skl2onnx(model: Any, dtype: Any, abstain: float | None) -> Any:
    """Return a classifier on one of scikit-learn as a model of ONNX."""
    skl2onnx = import_extra("skl2onnx")
    register_converters()
    return skl2onnx.to_onnx(
        model,
        np.zeros((1, model.n_features_in_), dtype),
        options={id(model): {"abstain": abstain}},
        target_opset={"": 18, "ai.onnx.ml": _SKL2ONNX_OPSET},
    )


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of a classifier."""
    from skl2onnx.common.data_types import guess_data_type

    check_exportable(model)
    if text_categories(model) or any(isinstance(p, TableClassifier) for p in parts_of(model)):
        raise TypeError(
            "text categories and a TableClassifier cannot be converted by skl2onnx: use to_onnx on "
            "a classifier of badacost alone, or encode texts as numbers before it."
        )
    alias = import_extra("skl2onnx").get_model_alias(type(model))
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = inputs
    for name, array in outputs_of(model, _option(scope, model, "abstain")).items():
        kind = type(guess_data_type(array)[0][1])([None, *array.shape[1:]])
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _option(holder: Any, model: Any, name: str) -> Any:
    """Return an option of a classifier, None where it is not given."""
    options = holder.get_options(model, {name: None}, fail=False) or {}  # of unknown ones
    return options.get(name)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of a classifier to those of skl2onnx."""
    from skl2onnx.common.data_types import FloatTensorType, guess_proto_type

    model, inputs = operator.raw_operator, operator.inputs
    abstain, raw = (_option(container, model, name) for name in ("abstain", "raw_scores"))
    single = all(isinstance(variable.type, FloatTensorType) for variable in inputs)
    prefix = scope.get_unique_variable_name(type(model).__name__) + "/"
    graph = Graph(prefix, _SKL2ONNX_OPSET, np.float32 if single else np.float64)
    inner = parts_of(model)[-1]
    if isinstance(inner, ForestClassifier):
        given = [Tensor(graph, variable.full_name).cast(graph.dtype) for variable in inputs]
        innermost = forest_results(inner, graph.add("Concat", *given, axis=1))
    else:
        innermost = _of_foreign(scope, inputs, graph, inner)
    results, kinds = add_results(model, innermost), [*outputs_of(model, abstain)]
    # Another estimator declares two outputs for each of its parts, by names of its own.
    if [variable.raw_name for variable in operator.outputs] != kinds:
        _check_part(scope, model)
        kinds, abstain = ["label", "probabilities"], None
        values = results["probabilities"]
        if raw and hasattr(model, "decision_function"):
            values = decision_values(results, len(model.classes_))
        dtype = guess_proto_type(operator.outputs[1].type)
        results["probabilities"] = graph.add("Cast", values, to=dtype)
    names = [variable.full_name for variable in operator.outputs]
    add_outputs(model, results, dict(zip(kinds, names, strict=True)), abstain)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    versions = {"": container.target_opset_any_domain(""), ML_DOMAIN: _SKL2ONNX_OPSET}
    container.node_domain_version_pair_sets.update(versions.items())


def _check_part(scope: Any, model: Any) -> None:
    """Refuse parts of estimators that are not converted to what they are in scikit-learn."""
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"a {name} has no predict_proba: export it alone, not as a part.")
    for holder in (operator.raw_operator for operator in scope.operators.values()):
        parts = getattr(holder, "estimators_", ())
        is_soft = isinstance(holder, BaggingClassifier) or getattr(holder, "voting", "") == "soft"
        usual = ["predict_proba" if is_soft else "predict"] * len(parts)
        methods = zip(parts, getattr(holder, "stack_method_", usual), strict=True)
        if any(part is model and method != "predict_proba" for part, method in methods):
            raise TypeError(
                f"a {name} in this {type(holder).__name__} cannot be exported: skl2onnx combines "
                "probabilities where scikit-learn combines decisions. Use a VotingClassifier with "
                f"voting='soft', stack_method='predict_proba', or the {name} alone."
            )


def _of_foreign(scope: Any, inputs: Any, graph: Graph, inner: Any) -> Results:
    """Add a classifier of another library by skl2onnx, for its probabilities."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType

    if not hasattr(inner, "predict_proba"):
        name = type(inner).__name__
        raise TypeError(
            f"a {name} cannot be exported, since it has no predict_proba: use one that has it."
        )
    alias = import_extra("skl2onnx").get_model_alias(type(inner))
    operator = scope.declare_local_operator(alias, inner)
    operator.inputs = inputs
    label = scope.declare_local_variable("inner_label", Int64TensorType())
    probabilities = scope.declare_local_variable("inner_probabilities", DoubleTensorType())
    operator.outputs.extend([label, probabilities])
    return {"probabilities": Tensor(graph, probabilities.full_name).cast(np.float64)}
