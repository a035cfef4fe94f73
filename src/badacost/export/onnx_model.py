"""`to_onnx`: a fitted classifier as a model of ONNX."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np

from badacost._utils.validation import check_choice
from badacost.classifiers.base import ForestClassifier
from badacost.costs.matrix import plain
from badacost.export.graph import Graph, import_extra
from badacost.export.inputs import add_inputs, column_names, parts_of, unused_name
from badacost.export.outputs import (
    add_outputs,
    add_results,
    check_exportable,
    forest_results,
    outputs_of,
)
from badacost.export.pipelines import convert_with_skl2onnx

_PRECISIONS = {"double": np.float64, "float": np.float32}
_MAX_BYTES = 2**31 - 1  # of a message of protobuf


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
        exported = convert_with_skl2onnx(model, dtype, abstain)
    facts = {"classes": [plain(label) for label in model.classes_], "columns": columns}
    onnx.helper.set_model_props(exported, {key: json.dumps(value) for key, value in facts.items()})
    if exported.ByteSize() > _MAX_BYTES:
        raise ValueError(
            "the exported model would be larger than 2 GiB, which a file of ONNX cannot be: fit a "
            "model of fewer or smaller trees."
        )
    return exported
