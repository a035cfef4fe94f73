"""A graph of ONNX operators under construction: values have names, constants are kept once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_ML_DOMAIN = "ai.onnx.ml"
_ML_OPERATORS = ("LabelEncoder", "TreeEnsemble", "TreeEnsembleRegressor")


def import_onnx() -> Any:
    """Return onnx, or say how to install it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError('an export needs onnx: type pip install "badacost[onnx]".') from error
    return onnx


class Value(NamedTuple):
    """A value that enters or leaves a graph; dimensions of None are those of the samples."""

    name: str
    dtype: Any
    shape: Sequence[int | None]

    def info(self) -> Any:
        """Return the description that ONNX has of it."""
        helper = import_onnx().helper
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        return helper.make_tensor_value_info(self.name, kind, list(self.shape))


class Node(NamedTuple):
    """An operator with its inputs and outputs."""

    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]

    @property
    def domain(self) -> str:
        """The set of operators that it belongs to."""
        return _ML_DOMAIN if self.operator in _ML_OPERATORS else ""


class Graph:
    """Operators in the order in which they run; names begin with a prefix.

    Only operators that have not changed since version 13 of the operator set are added, so that a
    graph may stand in models of any later version.
    """

    def __init__(self, prefix: str, ml_opset: int, outer: Graph | None = None):
        self.prefix, self.ml_opset = prefix, ml_opset
        self.nodes: list[Node] = []
        # The parts of a loop see the constants around it.
        self.constants: dict[str, Any] = {} if outer is None else outer.constants
        self._names: list[str] = [] if outer is None else outer._names
        self._known: dict[Any, str] = {} if outer is None else outer._known

    def name(self, kind: str) -> str:
        """Return a name that no other value has."""
        self._names.append(f"{self.prefix}{kind}_{len(self._names)}")
        return self._names[-1]

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Return the name of a constant."""
        array = np.asarray(values, dtype)
        content: Any = array.tobytes() if array.dtype != object else tuple(array.tolist())
        key = (str(array.dtype), array.shape, content)
        if key not in self._known:
            name = self._known[key] = self.name("constant")
            self.constants[name] = import_onnx().numpy_helper.from_array(array, name)
        return self._known[key]

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator, and return the name of its output."""
        return self.add_many(operator, inputs, 1, **attributes)[0]

    def add_as(self, name: str, operator: str, *inputs: str) -> None:
        """Add an operator whose output has a given name."""
        self.nodes.append(Node(operator, list(inputs), [name], {}))

    def add_many(
        self, operator: str, inputs: Sequence[str], n_outputs: int, **attributes: Any
    ) -> list[str]:
        """Add an operator, and return the names of its outputs; arrays are made tensors."""
        to_tensor = import_onnx().numpy_helper.from_array
        attributes = {
            key: to_tensor(value, key) if isinstance(value, np.ndarray) else value
            for key, value in attributes.items()
        }
        outputs = [self.name(operator) for _ in range(n_outputs)]
        self.nodes.append(Node(operator, list(inputs), outputs, attributes))
        return outputs

    def cast(self, value: str, dtype: Any) -> str:
        """Convert a value to another type."""
        kind = import_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, to=kind)

    def column(self, value: str, position: int) -> str:
        """Take one column of a matrix, (n, 1)."""
        return self.add("Gather", value, self.constant([position], np.int64), axis=1)

    def row_sum(self, value: str) -> str:
        """Sum the rows of a matrix, (n, 1)."""
        return self.add("ReduceSum", value, self.constant([1], np.int64), keepdims=1)

    def part(self) -> Graph:
        """Return an empty graph for what a loop repeats."""
        return Graph(self.prefix, self.ml_opset, self)

    def to_proto(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> Any:
        """Return the graph as ONNX has it, without its constants."""
        helper = import_onnx().helper
        nodes = [
            helper.make_node(
                node.operator, node.inputs, node.outputs, domain=node.domain, **node.attributes
            )
            for node in self.nodes
        ]
        return helper.make_graph(
            nodes, name, [value.info() for value in inputs], [value.info() for value in outputs]
        )
