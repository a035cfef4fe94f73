"""A graph of ONNX operators under construction: values have names."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from badacost import __version__

ML_DOMAIN = "ai.onnx.ml"
_OPSET, _IR_VERSION = 15, 8  # of all operators but those for trees, and of the file format
_UFUNCS = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg",
    "matmul": "MatMul", "exp": "Exp", "log": "Log", "minimum": "Min", "maximum": "Max",
    "equal": "Equal", "less": "Less", "greater_equal": "GreaterOrEqual",
}  # fmt: skip


def import_extra(name: str = "onnx") -> Any:
    """Return onnx or skl2onnx, or raise an error with how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'this export needs {name}: type pip install "badacost[onnx]".'
        ) from error


class Tensor(NDArrayOperatorsMixin):
    """A value of a graph; arithmetic and universal functions of numpy add operators to the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.export.graph import Graph, Tensor
    >>> graph = Graph("", 5)
    >>> half = np.exp(Tensor(graph, "X")) / 2.0
    >>> [node.op_type for node in graph.nodes]
    ['Exp', 'Div']
    """

    def __init__(self, graph: Graph, name: str):
        self.graph, self.name = graph, name

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any) -> Tensor:
        return self.graph.add(_UFUNCS[ufunc.__name__], *inputs)

    def cast(self, dtype: Any) -> Tensor:
        """Convert to another type."""
        kind = import_extra().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.graph.add("Cast", self, to=kind)

    def __getitem__(self, key: tuple[slice, slice]) -> Tensor:
        """Take successive columns of a matrix, as in ``x[:, 1:]``."""
        begin, end = key[1].start or 0, key[1].stop or np.iinfo(np.int64).max
        return self.graph.add("Slice", self, [begin], [end], [1])

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Tensor:
        result: Tensor = getattr(self, function.__name__)(*given[1:], **options)
        return result

    def sum(self, *, axis: int, keepdims: bool = False) -> Tensor:
        """Sum along an axis."""
        return self.graph.add("ReduceSum", self, [axis], keepdims=int(keepdims))

    def max(self, *, axis: int, keepdims: Literal[True]) -> Tensor:
        """Maximum along an axis, which is kept."""
        return self._ranked([1], axis=axis)

    def sort(self, *, axis: int) -> Tensor:
        """Sort along an axis."""
        size = self.graph.add("Gather", self.graph.add("Shape", self), [axis])
        return self._ranked(size, axis=axis, largest=0)

    def _ranked(self, size: Any, **attributes: int) -> Tensor:
        names = [self.graph.name("ranked"), self.graph.name("places")]
        return self.graph.add("TopK", self, size, names=names, **attributes)


class Graph:
    """Operators in the order in which they run; names begin with a prefix.

    `dtype` is the type of the numbers that the trees test.

    Only operators that have not changed since version 13 of the operator set are added, so that a
    graph may be a part of models of any later version.
    """

    def __init__(self, prefix: str, ml_opset: int, dtype: Any = np.float64):
        self.ml_opset, self.dtype = ml_opset, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._prefix, self._n_names = prefix, 0

    def name(self, kind: str) -> str:
        """Return a name that no other value has."""
        self._n_names += 1
        return f"{self._prefix}{kind}_{self._n_names - 1}"

    def constant(self, values: Any) -> Tensor:
        """Return an array as a value of the graph."""
        name = self.name("constant")
        self.constants.append(import_extra().numpy_helper.from_array(np.asarray(values), name))
        return Tensor(self, name)

    def add(
        self, operator: str, *inputs: Any, names: list[str] | None = None, **attributes: Any
    ) -> Tensor:
        """Add an operator, with outputs of these names, and return its first output.

        Inputs are tensors, or arrays and numbers; arrays in attributes become tensors. The
        attribute `domain` is that of the operator.
        """
        onnx, names = import_extra(), names or [self.name(operator)]
        given = [(x if isinstance(x, Tensor) else self.constant(x)).name for x in inputs]
        for key, value in attributes.items():
            if isinstance(value, np.ndarray):
                attributes[key] = onnx.numpy_helper.from_array(value, key)
        self.nodes.append(onnx.helper.make_node(operator, given, names, names[0], **attributes))
        return Tensor(self, names[0])

    def to_model(
        self, name: str, inputs: Mapping[str, NDArray[Any]], outputs: Mapping[str, NDArray[Any]]
    ) -> Any:
        """Return the graph as a model of ONNX.

        Inputs and outputs have the types and shapes of arrays, which have no row, by their names.
        """
        helper = import_extra().helper
        opsets = {"": _OPSET, ML_DOMAIN: self.ml_opset}
        infos = [[_info(*named) for named in arrays.items()] for arrays in (inputs, outputs)]
        return helper.make_model(
            helper.make_graph(self.nodes, name, *infos, self.constants),
            producer_name="badacost",
            producer_version=__version__,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid(*opset) for opset in opsets.items()],
        )


def _info(name: str, array: NDArray[Any]) -> Any:
    """Return the type and shape of a value as ONNX describes it, for any number of rows."""
    helper = import_extra().helper
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, [None, *array.shape[1:]])
