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
_NO_CODE = -1.0  # no category has it
Members = dict[int, FloatArray]  # by node, the codes of the categories that it tests


def add_scores(forest: Forest, values: Tensor) -> Tensor:
    """Add the trees, and return the sum of the rows of their leaves, (n, n_outputs).

    `values` (n, n_features) have codes in the place of categories.
    """
    graph = values.graph
    sums: list[Tensor] = []  # of the trees so far, (1, n, n_outputs)
    n_at_once = max(_SCORES_AT_ONCE // forest.table.shape[1], 1)
    operator, attributes_of = _OPERATORS[graph.ml_opset]
    for first in range(0, forest.n_trees, n_at_once):
        last = min(first + n_at_once, forest.n_trees)
        nodes, members, table = _nodes_of(forest, first, last)
        attributes = attributes_of(nodes, members, graph.dtype)
        leaves = graph.add(operator, values, domain=ML_DOMAIN, **attributes)
        rows = graph.add("Transpose", leaves.cast(np.int32), perm=[1, 0])
        terms = graph.add("Concat", *sums, graph.add("Gather", table, rows, axis=0), axis=0)
        sums = [graph.add("Gather", graph.add("CumSum", terms, 0), [-1], axis=0)]
    return graph.add("Squeeze", *sums, [0])


def _nodes_of(forest: Forest, first: int, last: int) -> tuple[NDArray[Any], Members, FloatArray]:
    """Return the nodes of some trees, the categories that they test, and the rows of their leaves.

    A node tests whether a feature is at least a value, or one of some categories. Nodes have one
    numbering. A tree without tests has one, with the same leaf on both sides. Rows are multiplied
    by the weights of the trees.
    """
    part = slice(forest.offsets[first], forest.offsets[last])
    leaf, root = forest.is_leaf[part], forest.offsets[first:last] - part.start
    tree = np.repeat(np.arange(last - first), np.diff(root, append=len(leaf)))
    left = forest.left[part] + root[tree]
    tests = {
        "feature": forest.feature[part],
        "value": forest.threshold[part],
        "missing_true": ~forest.missing_left[part],
        "true": left + 1,
        "false": left,
    }
    columns = {name: np.where(leaf, 0, values) for name, values in tests.items()}
    columns |= {"mode": np.where(leaf, _LEAF, _AT_LEAST), "tree": tree, "row": np.zeros_like(tree)}
    used = tree[leaf] * len(forest.table) + forest.value[part][leaf]
    distinct, columns["row"][leaf] = np.unique(used, return_inverse=True)
    of_tree, of_table = np.divmod(distinct, len(forest.table))
    table = forest.tree_weights[first:last][of_tree, np.newaxis] * forest.table[of_table]
    kinds = [(name, values.dtype) for name, values in columns.items()]
    nodes = np.rec.fromarrays([*columns.values()], dtype=kinds)
    members = _test_categories(nodes, forest, part)
    alone = root[leaf[root]]
    leaves = nodes[alone]
    nodes["mode"][alone] = _AT_LEAST
    nodes["true"][alone] = nodes["false"][alone] = len(nodes) + np.arange(len(alone))
    return np.concatenate([nodes, leaves]), members, table


def _test_categories(nodes: NDArray[Any], forest: Forest, part: slice) -> Members:
    """Let nodes look for categories, the fewer of those that go right and those that go left."""
    members: Members = {}
    if forest.category_set is None or forest.sets is None or forest.category_offsets is None:
        return members
    n_known = np.diff(forest.category_offsets)
    for i in np.flatnonzero(forest.category_set[part] >= 0).tolist():
        node, words = nodes[i], forest.sets[forest.category_set[part][i]].astype("<u4")
        n_codes = n_known[node["feature"]]
        goes_right = np.unpackbits(words.view(np.uint8), count=n_codes, bitorder="little")
        wanted = np.count_nonzero(goes_right) <= n_codes // 2
        codes = np.flatnonzero(goes_right == wanted).astype(np.float64)
        members[i] = codes if len(codes) else np.array([_NO_CODE])
        node["mode"] = _MEMBER
        if not wanted:
            node["true"], node["false"] = node["false"], node["true"]
            node["missing_true"] = not node["missing_true"]
    return members


def _ensemble(nodes: NDArray[Any], members: Members, dtype: Any) -> dict[str, Any]:
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
        "nodes_modes": tests["mode"].astype(np.uint8),
        "nodes_splits": _rounded_up(tests["value"], dtype),
        "nodes_missing_value_tracks_true": tests["missing_true"].tolist(),
        "nodes_truenodeids": number[tests["true"]].tolist(),
        "nodes_trueleafs": leaf[tests["true"]].astype(int).tolist(),
        "nodes_falsenodeids": number[tests["false"]].tolist(),
        "nodes_falseleafs": leaf[tests["false"]].astype(int).tolist(),
        "leaf_targetids": leaves["tree"].tolist(),
        "leaf_weights": leaves["row"].astype(dtype),
    }
    if members:
        ended = [np.append(codes, np.nan) for codes in members.values()]
        attributes["membership_values"] = np.concatenate(ended).astype(dtype)
    return attributes


def _regressor(nodes: NDArray[Any], members: Members, dtype: Any) -> dict[str, Any]:
    """Attributes of TreeEnsembleRegressor; a set of categories is a chain of comparisons."""
    parts, n_nodes = [nodes], len(nodes)
    for first, codes in members.items():
        chain = np.repeat(nodes[[first]], len(codes))
        chain["mode"], chain["value"] = _EQUAL, codes
        chain["false"][:-1] = n_nodes + np.arange(len(chain) - 1)
        nodes[first] = chain[0]
        parts.append(chain[1:])
        n_nodes += len(chain) - 1
    nodes = np.concatenate(parts)
    number = np.argsort(nodes["tree"], kind="stable")  # the nodes of a tree follow each other
    nodes = nodes[number]
    leaf = nodes["mode"] == _LEAF
    leaf_trees = nodes["tree"][leaf].tolist()
    attributes = {
        "n_targets": len(np.unique(nodes["tree"])),
        "nodes_treeids": nodes["tree"].tolist(),
        "nodes_nodeids": number.tolist(),
        "nodes_featureids": nodes["feature"].tolist(),
        "nodes_modes": _MODES[nodes["mode"]].tolist(),
        "nodes_missing_value_tracks_true": nodes["missing_true"].tolist(),
        "nodes_truenodeids": nodes["true"].tolist(),
        "nodes_falsenodeids": nodes["false"].tolist(),
        "target_treeids": leaf_trees,
        "target_nodeids": number[leaf].tolist(),
        "target_ids": leaf_trees,
    }
    numbers = {"nodes_values": nodes["value"], "target_weights": nodes["row"][leaf]}
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
