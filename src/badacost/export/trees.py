"""The trees of a `Forest` as operators: the leaf of each tree, then the sum of the rows of leaves.

An operator for trees gives the leaf of each sample in each tree, as the row of a table. These rows
are added one tree after the other in double precision: the operations of `Forest.accumulate` in
the same order, hence the same bits. A sum inside the operator has no defined order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost.export.graph import ML_DOMAIN, Tensor
from badacost.tree.forest import Forest

_SCORES_AT_ONCE = 160  # of a sample: those of the trees of an operator are in memory together
_AT_LEAST, _EQUAL, _MEMBER, _LEAF = 2, 4, 6, 7  # modes of TreeEnsemble, and a leaf
_MODES = np.array(["", "", "BRANCH_GTE", "", "BRANCH_EQ", "", "", "LEAF"])
_NODE = np.dtype(
    {
        "names": ["mode", "tree", "feature", "value", "missing_true", "true", "false", "row"],
        "formats": ["u1", "i8", "i8", "f8", "i8", "i8", "i8", "i8"],
    }
)
_NO_CODE = -1.0  # no category has it


def add_scores(forest: Forest, values: Tensor) -> Tensor:
    """Add the trees, and return the sum of the rows of their leaves, (n, n_outputs).

    `values` (n, n_features) have codes in the place of categories.
    """
    graph = values.graph
    sums: list[Tensor] = []  # of the trees so far, (1, n, n_outputs)
    n_at_once = max(_SCORES_AT_ONCE // forest.table.shape[1], 1)
    for first in range(0, forest.n_trees, n_at_once):
        nodes, members, table = _nodes_of(forest, first, min(first + n_at_once, forest.n_trees))
        operator, attributes_of = _OPERATORS[graph.ml_opset]
        attributes = attributes_of(nodes, members, graph.dtype)
        leaves = graph.add(operator, values, domain=ML_DOMAIN, **attributes)
        rows = graph.add("Transpose", leaves.cast(np.int32), perm=[1, 0])
        terms = graph.add("Concat", *sums, graph.add("Gather", table, rows, axis=0), axis=0)
        sums = [graph.add("Gather", graph.add("CumSum", terms, 0), [-1], axis=0)]
    return graph.add("Squeeze", *sums, [0])


def _nodes_of(
    forest: Forest, first: int, last: int
) -> tuple[NDArray[Any], dict[int, FloatArray], FloatArray]:
    """Return the nodes of some trees, the categories that they test, and the rows of their leaves.

    A node tests whether a feature is at least a value, or one of some categories. Nodes have one
    numbering. A tree without tests has one whose result does not matter. Rows are multiplied by the
    weights of the trees.
    """
    part = slice(forest.offsets[first], forest.offsets[last])
    leaf, root = forest.is_leaf[part], forest.offsets[first:last] - part.start
    tree = np.repeat(np.arange(last - first), np.diff(root, append=len(leaf)))
    nodes = np.zeros(len(leaf), _NODE)
    nodes["mode"], nodes["tree"] = np.where(leaf, _LEAF, _AT_LEAST), tree
    false = forest.left[part] + root[tree]
    tests = {
        "feature": forest.feature[part],
        "value": forest.threshold[part],
        "missing_true": ~forest.missing_left[part],
        "true": false + 1,
        "false": false,
    }
    for name, values in tests.items():
        nodes[name] = np.where(leaf, 0, values)
    used = tree[leaf] * len(forest.table) + forest.value[part][leaf]
    distinct, nodes["row"][leaf] = np.unique(used, return_inverse=True)
    of_tree, of_table = np.divmod(distinct, len(forest.table))
    table = forest.tree_weights[first:last][of_tree, np.newaxis] * forest.table[of_table]
    members = _test_categories(nodes, forest, part)
    alone = root[leaf[root]]
    leaves = np.repeat(nodes[alone], 2)
    nodes["mode"][alone] = _AT_LEAST
    nodes["false"][alone] = len(nodes) + 2 * np.arange(len(alone))
    nodes["true"][alone] = nodes["false"][alone] + 1
    return np.concatenate([nodes, leaves]), members, table


def _test_categories(nodes: NDArray[Any], forest: Forest, part: slice) -> dict[int, FloatArray]:
    """Let nodes look for categories, the fewer of those that go right and those that go left."""
    members: dict[int, FloatArray] = {}
    if forest.category_set is None or forest.sets is None or forest.category_offsets is None:
        return members
    n_known = np.diff(forest.category_offsets)
    numbers = forest.category_set[part]
    for i in np.flatnonzero(numbers >= 0).tolist():
        words = forest.sets[numbers[i]].astype("<u4").view(np.uint8)
        goes_right = np.unpackbits(words, count=n_known[nodes["feature"][i]], bitorder="little")
        wanted = np.count_nonzero(goes_right) <= len(goes_right) // 2
        codes = np.flatnonzero(goes_right == wanted).astype(np.float64)
        members[i] = codes if len(codes) else np.array([_NO_CODE])
        nodes["mode"][i] = _MEMBER
        if not wanted:
            nodes["true"][i], nodes["false"][i] = nodes["false"][i], nodes["true"][i]
            nodes["missing_true"][i] = not nodes["missing_true"][i]
    return members


def _ensemble(nodes: NDArray[Any], members: dict[int, FloatArray], dtype: Any) -> dict[str, Any]:
    """Attributes of TreeEnsemble: tests and leaves are numbered apart from each other."""
    leaf = nodes["mode"] == _LEAF
    number = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1
    trees, root = np.unique(nodes["tree"], return_index=True)
    tests, leaves = nodes[~leaf], nodes[leaf]
    attributes = {
        "n_targets": len(trees),
        "aggregate_function": 1,  # the sum, which has one term for each tree
        "tree_roots": number[root].tolist(),
        "nodes_featureids": tests["feature"].tolist(),
        "nodes_modes": tests["mode"],
        "nodes_splits": _rounded_up(tests["value"], dtype),
        "nodes_missing_value_tracks_true": tests["missing_true"].tolist(),
        "leaf_targetids": leaves["tree"].tolist(),
        "leaf_weights": leaves["row"].astype(dtype),
    }
    for side in ("true", "false"):
        attributes[f"nodes_{side}nodeids"] = number[tests[side]].tolist()
        attributes[f"nodes_{side}leafs"] = leaf[tests[side]].astype(int).tolist()
    if members:
        ended = [np.append(codes, np.nan) for codes in members.values()]
        attributes["membership_values"] = np.concatenate(ended).astype(dtype)
    return attributes


def _regressor(nodes: NDArray[Any], members: dict[int, FloatArray], dtype: Any) -> dict[str, Any]:
    """Attributes of TreeEnsembleRegressor; a set of categories is a chain of comparisons."""
    n_nodes, further = len(nodes), []
    for first, codes in members.items():
        chain = np.repeat(nodes[[first]], len(codes))
        chain["mode"], chain["value"] = _EQUAL, codes
        chain["false"][:-1] = n_nodes + np.arange(len(codes) - 1)
        nodes[first] = chain[0]
        further.append(chain[1:])
        n_nodes += len(codes) - 1
    nodes = np.concatenate([nodes, *further])
    number = np.argsort(nodes["tree"], kind="stable")  # the nodes of a tree follow each other
    nodes, is_leaf = nodes[number], nodes["mode"][number] == _LEAF
    leaves = nodes[is_leaf]
    attributes = {
        "n_targets": len(np.unique(nodes["tree"])),
        "nodes_treeids": nodes["tree"].tolist(),
        "nodes_nodeids": number.tolist(),
        "nodes_featureids": nodes["feature"].tolist(),
        "nodes_modes": _MODES[nodes["mode"]].tolist(),
        "nodes_missing_value_tracks_true": nodes["missing_true"].tolist(),
        "nodes_truenodeids": nodes["true"].tolist(),
        "nodes_falsenodeids": nodes["false"].tolist(),
        "target_treeids": leaves["tree"].tolist(),
        "target_nodeids": number[is_leaf].tolist(),
        "target_ids": leaves["tree"].tolist(),
    }
    numbers = {"nodes_values": nodes["value"], "target_weights": leaves["row"]}
    for name, values in numbers.items():
        if dtype == np.float32:  # as most tools expect them
            attributes[name] = _rounded_up(values, dtype).tolist()
        else:
            attributes[f"{name}_as_tensor"] = values.astype(dtype)
    return attributes


_OPERATORS = {5: ("TreeEnsemble", _ensemble), 3: ("TreeEnsembleRegressor", _regressor)}


def _rounded_up(values: NDArray[Any], dtype: Any) -> NDArray[np.floating]:
    """Round numbers up to a type: a number of this type is at least one if it is the other."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    return np.where(rounded < values, np.nextafter(rounded, dtype(np.inf)), rounded).astype(dtype)
