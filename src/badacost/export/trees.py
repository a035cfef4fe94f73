"""The trees of a `Forest` as operators: which leaf, then the sum of the rows of the leaves.

An operator for trees says in which leaf of each tree a sample is, by a number that sums of any
order keep exact. The rows of the leaves are then added one tree after the other, in double
precision: the same operations in the same order as in `Forest.accumulate`, hence the same bits. To
sum them in a single operator would be quicker for single samples, but no order is promised there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray, Mask
from badacost.export.graph import Graph, Value
from badacost.tree.forest import Forest

_TREES_AT_ONCE = 256  # of an operator: the leaves of all of them are in memory at a time
_TREES_IN_A_STEP = 8  # of the loop over trees: each step takes time, whatever it does
_GREATER_OR_EQUAL, _MEMBER = 2, 6  # modes of TreeEnsemble
_NO_CODE = -1.0  # no category has it


@dataclass(frozen=True)
class Features:
    """A matrix of samples, and which of its columns each feature of a forest is."""

    name: str
    dtype: Any
    columns: IndexArray


def add_scores(graph: Graph, forest: Forest, features: Features) -> str:
    """Add the trees, and return the sum of the rows of their leaves, (n, n_outputs)."""
    n_outputs = forest.table.shape[1]
    n_samples = graph.add("Gather", graph.add("Shape", features.name), graph.constant([0]))
    shape = graph.add("Concat", graph.constant([1]), n_samples, graph.constant([n_outputs]), axis=0)
    scores = graph.add("ConstantOfShape", shape, value=np.zeros(1))
    for first in range(0, forest.n_trees, _TREES_AT_ONCE):
        block = _Block.of(forest, first, min(first + _TREES_AT_ONCE, forest.n_trees))
        scores = _add_sums(graph, block, block.add_rows(graph, features), scores)
    return graph.add("Squeeze", scores, graph.constant([0]))


def _add_sums(graph: Graph, block: _Block, rows: str, scores: str) -> str:
    """Add the rows of some trees to the scores, (1, n, n_outputs), a step of trees at a time."""
    n_steps, n_left = divmod(len(block.offsets) - 1, _TREES_IN_A_STEP)
    n_stepped = n_steps * _TREES_IN_A_STEP
    if n_steps:
        stepped = _columns(graph, rows, 0, n_stepped) if n_left else rows
        shape = graph.constant([0, n_steps, _TREES_IN_A_STEP])  # 0 keeps the number of samples
        stepped = graph.add("Transpose", graph.add("Reshape", stepped, shape), perm=[1, 2, 0])
        step = graph.part()
        before, of_trees = step.name("scores"), step.name("rows")
        after = _add_each(step, block.table, of_trees, before, _TREES_IN_A_STEP)
        of_scores = [1, None, block.table.shape[1]]
        body = step.to_proto(
            "trees",
            [
                Value(before, np.float64, of_scores),
                Value(of_trees, np.int32, [_TREES_IN_A_STEP, None]),
            ],
            [Value(after, np.float64, of_scores)],
        )
        scores = graph.add("Scan", scores, stepped, body=body, num_scan_inputs=1)
    if n_left:
        left = _columns(graph, rows, n_stepped, n_stepped + n_left)
        left = graph.add("Transpose", left, perm=[1, 0])
        scores = _add_each(graph, block.table, left, scores, n_left)
    return scores


def _columns(graph: Graph, matrix: str, first: int, last: int) -> str:
    return graph.add("Gather", matrix, graph.constant(np.arange(first, last)), axis=1)


def _add_each(graph: Graph, table: FloatArray, rows: str, scores: str, n_trees: int) -> str:
    """Add rows of the table, (n_trees, n) of them, to the scores, one tree after the other."""
    terms = graph.add("Gather", graph.constant(table), rows, axis=0)
    parts = graph.add_many("Split", [terms, graph.constant([1] * n_trees)], n_trees, axis=0)
    for part in parts:
        scores = graph.add("Add", scores, part)
    return scores


def add_leaf(graph: Graph, forest: Forest, features: Features) -> tuple[str, FloatArray]:
    """Add a single tree; return the row of each sample, (n,), and the rows that there are."""
    block = _Block.of(forest, 0, 1)
    return graph.add("Squeeze", block.add_rows(graph, features), graph.constant([1])), block.table


@dataclass(frozen=True, eq=False)
class _Block:
    """Some trees of a forest, whose nodes are numbered through; the right child follows the left.

    `row` is that of each leaf among the rows of its tree, `first_row` where those of a tree begin
    in the table, which has the weights of the trees in it.
    """

    offsets: IndexArray
    tree: IndexArray
    feature: IndexArray
    threshold: FloatArray
    left: IndexArray
    missing_left: Mask
    codes: dict[int, FloatArray]  # of nodes that test categories: those that go right
    n_known: dict[int, int]  # how many categories the features of these nodes have
    row: IndexArray
    first_row: IndexArray
    table: FloatArray

    @classmethod
    def of(cls, forest: Forest, first: int, last: int) -> _Block:
        """Take some trees of a forest."""
        offsets = forest.offsets[first : last + 1] - forest.offsets[first]
        nodes = slice(forest.offsets[first], forest.offsets[last])
        tree = np.repeat(np.arange(last - first), np.diff(offsets))
        leaf = np.isnan(forest.threshold[nodes])
        used = tree[leaf] * len(forest.table) + forest.value[nodes][leaf]
        distinct, place = np.unique(used, return_inverse=True)
        of_tree, of_table = np.divmod(distinct, len(forest.table))
        first_row = np.searchsorted(of_tree, np.arange(last - first))
        row = np.zeros(len(leaf), np.int64)
        row[leaf] = place - first_row[tree[leaf]]
        weights = forest.tree_weights[first:last][of_tree, np.newaxis]
        codes, n_known = _tested_categories(forest, nodes)
        return cls(
            offsets=offsets,
            tree=tree,
            feature=forest.feature[nodes].astype(np.int64),
            threshold=forest.threshold[nodes],
            left=forest.left[nodes] + offsets[tree],
            missing_left=forest.missing_left[nodes],
            codes=codes,
            n_known=n_known,
            row=row,
            first_row=first_row,
            table=weights * forest.table[of_table],
        )

    def add_rows(self, graph: Graph, features: Features) -> str:
        """Add the operator; return the row of the table for each sample and tree."""
        if graph.ml_opset == 5:
            attributes = self._tree_ensemble(features)
            rows = graph.add("TreeEnsemble", features.name, **attributes)
        else:
            attributes = self._tree_ensemble_regressor(features)
            rows = graph.add("TreeEnsembleRegressor", features.name, **attributes)
        return graph.add("Add", graph.cast(rows, np.int32), graph.constant(self.first_row, "i4"))

    def _tests(self) -> Iterator[tuple[int, FloatArray, bool]]:
        """Yield nodes that test categories, with codes to look for, and whether these go right.

        Of the categories that go right and those that go left, the fewer are looked for.
        """
        for node, right in self.codes.items():
            left = np.setdiff1d(np.arange(float(self.n_known[node])), right)
            fewer = right if len(right) <= len(left) else left
            yield node, fewer if len(fewer) else np.array([_NO_CODE]), fewer is right

    def _tree_ensemble(self, features: Features) -> dict[str, Any]:
        """Attributes of TreeEnsemble: tests and leaves are numbered apart from each other."""
        leaf = np.isnan(self.threshold)
        number = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1
        inner = np.flatnonzero(~leaf)
        mode, split = np.full(len(leaf), _GREATER_OR_EQUAL, np.uint8), self.threshold.copy()
        goes_right, members = np.ones(len(leaf), bool), []
        for node, codes, right in self._tests():
            mode[node], goes_right[node], split[node] = _MEMBER, right, 0.0
            members.append(np.append(codes, np.nan))
        child = self.left[inner] + goes_right[inner], self.left[inner] + ~goes_right[inner]
        # A tree without tests has one whose answer does not matter.
        roots = self.offsets[:-1]
        alone = roots[leaf[roots]]
        root = np.where(leaf[roots], len(inner) + np.cumsum(leaf[roots]) - 1, number[roots])

        def nodes(values: Any, of_leaf: Any) -> list[Any]:
            return [*np.asarray(values).tolist(), *np.broadcast_to(of_leaf, len(alone)).tolist()]

        attributes: dict[str, Any] = {
            "n_targets": len(roots),
            "aggregate_function": 1,  # the sum, which has one term for each tree
            "tree_roots": root.tolist(),
            "nodes_featureids": nodes(features.columns[self.feature[inner]], 0),
            "nodes_modes": np.array(nodes(mode[inner], _GREATER_OR_EQUAL), np.uint8),
            "nodes_splits": _rounded_up(np.array(nodes(split[inner], 0.0)), features.dtype),
            "nodes_missing_value_tracks_true": nodes(
                (self.missing_left != goes_right)[inner].astype(int), 0
            ),
            "leaf_targetids": self.tree[leaf].tolist(),
            "leaf_weights": self.row[leaf].astype(features.dtype),
        }
        for answer, reached in zip(("true", "false"), child, strict=True):
            attributes[f"nodes_{answer}nodeids"] = nodes(number[reached], number[alone])
            attributes[f"nodes_{answer}leafs"] = nodes(leaf[reached].astype(int), 1)
        if members:
            attributes["membership_values"] = np.concatenate(members).astype(features.dtype)
        return attributes

    def _tree_ensemble_regressor(self, features: Features) -> dict[str, Any]:
        """Attributes of TreeEnsembleRegressor; a set of categories is a chain of comparisons."""
        leaf = np.isnan(self.threshold)
        nodes = [_Node(*parts) for parts in self._plain_nodes(features, leaf)]
        tests = {node: (codes, right) for node, codes, right in self._tests()}
        ordered = []
        for first, last in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            n_nodes = int(last - first)
            chains: list[_Node] = []
            for node in range(first, last):
                if node in tests:
                    chain = nodes[node].chain(*tests[node], n_nodes + len(chains))
                    nodes[node] = chain[0]
                    chains += chain[1:]
            ordered += [*nodes[first:last], *chains]
        values = _rounded_up(np.array([node.value for node in ordered]), features.dtype)
        weights = self.row[leaf].astype(features.dtype)
        attributes: dict[str, Any] = {
            "n_targets": len(self.offsets) - 1,
            "nodes_treeids": [node.tree for node in ordered],
            "nodes_nodeids": [node.number for node in ordered],
            "nodes_featureids": [node.feature for node in ordered],
            "nodes_modes": [node.mode for node in ordered],
            "nodes_truenodeids": [node.true for node in ordered],
            "nodes_falsenodeids": [node.false for node in ordered],
            "nodes_missing_value_tracks_true": [int(node.missing_true) for node in ordered],
            "target_treeids": self.tree[leaf].tolist(),
            "target_nodeids": (np.arange(len(leaf)) - self.offsets[self.tree])[leaf].tolist(),
            "target_ids": self.tree[leaf].tolist(),
        }
        if features.dtype == np.float32:  # tensors are for double precision
            numbers = {"nodes_values": values.tolist(), "target_weights": weights.tolist()}
            return attributes | numbers
        return attributes | {"nodes_values_as_tensor": values, "target_weights_as_tensor": weights}

    def _plain_nodes(self, features: Features, leaf: Mask) -> Iterator[tuple[Any, ...]]:
        """Yield the nodes as if all of them compared numbers; they are numbered in each tree."""
        start = self.offsets[self.tree]
        return zip(
            self.tree.tolist(),
            (np.arange(len(leaf)) - start).tolist(),
            np.where(leaf, 0, features.columns[self.feature]).tolist(),
            np.where(leaf, "LEAF", "BRANCH_GTE").tolist(),
            np.where(leaf, 0.0, self.threshold).tolist(),
            np.where(leaf, 0, self.left + 1 - start).tolist(),
            np.where(leaf, 0, self.left - start).tolist(),
            np.where(leaf, False, ~self.missing_left).tolist(),
            strict=True,
        )


@dataclass(frozen=True)
class _Node:
    """A node of TreeEnsembleRegressor, and where its two answers lead."""

    tree: int
    number: int
    feature: int
    mode: str
    value: float
    true: int
    false: int
    missing_true: bool

    def chain(self, codes: FloatArray, right: bool, first_new: int) -> list[_Node]:
        """Return comparisons with each of the codes; all but the first have new numbers."""
        found, other = (self.true, self.false) if right else (self.false, self.true)
        numbers = [self.number, *range(first_new, first_new + len(codes) - 1)]
        return [
            _Node(
                self.tree, number, self.feature, "BRANCH_EQ", float(code), found, following,
                self.missing_true == right and number == self.number,
            )
            for number, code, following in zip(numbers, codes, [*numbers[1:], other], strict=True)
        ]  # fmt: skip


def _tested_categories(
    forest: Forest, nodes: slice
) -> tuple[dict[int, FloatArray], dict[int, int]]:
    """Codes that go right, and the number of all, for each node that tests categories."""
    if forest.category_set is None or forest.sets is None or forest.category_offsets is None:
        return {}, {}
    category_set = forest.category_set[nodes]
    tested = np.flatnonzero(category_set >= 0)
    bits = np.unpackbits(
        forest.sets[category_set[tested]].astype("<u4").view(np.uint8), axis=1, bitorder="little"
    )
    n_known = np.diff(forest.category_offsets)[forest.feature[nodes][tested]]
    codes = {
        int(node): np.flatnonzero(line[:known]).astype(np.float64)
        for node, line, known in zip(tested, bits, n_known, strict=True)
    }
    return codes, dict(zip(tested.tolist(), n_known.tolist(), strict=True))


def _rounded_up(values: FloatArray, dtype: Any) -> NDArray[np.floating]:
    """Round numbers up to a type: whatever number of this type is at least one is the other."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    return np.where(rounded < values, np.nextafter(rounded, dtype(np.inf)), rounded).astype(dtype)
