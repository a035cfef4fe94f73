"""Trees of LightGBM and CatBoost as a `Forest`: the same scores, without their libraries.

What a library says about its model, in JSON, is read right after a fit; whatever is not understood
is refused. Leaves hold cost scores: minus what the library adds to the logits of the classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np

from badacost.arrays import FloatArray
from badacost.tree.forest import Forest, Tree

LIGHTGBM, CATBOOST = SOURCES = ("LightGBM", "CatBoost")
_LIGHTGBM_INFINITY = 1e300  # in JSON, which has no infinity


@dataclass(frozen=True, eq=False)
class ForeignTrees:
    """A forest of another library; logits are ``log_prior`` minus the scores of the forest."""

    source: str
    forest: Forest
    log_prior: FloatArray


def read_trees(model: Any) -> ForeignTrees:
    """Return the trees of a fitted LGBMClassifier or CatBoostClassifier."""
    reader = reader_of(model)
    try:
        return reader(model)
    except LookupError as error:
        raise ValueError(
            f"the trees of this {type(model).__name__} are not as expected, they lack {error}: use "
            "another version of its library."
        ) from error


def reader_of(model: Any) -> Callable[[Any], ForeignTrees]:
    """Return what reads the trees of a classifier, fitted or not."""
    for base in type(model).__mro__:
        reader = _READERS.get((base.__module__.partition(".")[0], base.__name__))
        if reader is not None:
            return reader
    raise TypeError(
        f"the trees of a {type(model).__name__} cannot be imported: give an LGBMClassifier or a "
        "CatBoostClassifier."
    )


def _refuse(source: str, what: str, remedy: str) -> NoReturn:
    raise ValueError(f"this {source} model has {what}, which cannot be imported: {remedy}.")


def _joined(
    source: str, trees: list[tuple[Tree, FloatArray]], log_prior: FloatArray, n_features: int
) -> ForeignTrees:
    """Join trees, each with a table of its own, whose rows are numbered from zero."""
    if not trees:
        _refuse(source, "no trees", "fit it to more samples")
    tables = [table for _, table in trees]
    first = np.cumsum([0, *map(len, tables)])
    for (tree, _), start in zip(trees, first[:-1], strict=True):
        tree.value[:] += start
    forest = Forest.from_trees(
        [tree for tree, _ in trees], np.ones(len(trees)), np.concatenate(tables), n_features
    )
    return ForeignTrees(source, forest, log_prior)


# LightGBM: x <= threshold goes left. A tree belongs to one class, and those of a round follow each
# other; with two classes there is one tree in a round, for the log-odds of the second.


def _of_lightgbm(model: Any) -> ForeignTrees:
    dump = model.booster_.dump_model()
    n_classes, n_in_round = len(model.classes_), dump["num_tree_per_iteration"]
    objective, *settings = str(dump.get("objective", "none")).split()
    if (objective, n_in_round) not in (("multiclass", n_classes), ("binary", 1)):
        _refuse(LIGHTGBM, f"the objective {objective!r:.40}", "leave its objective out")
    if dump["average_output"]:
        _refuse(LIGHTGBM, "trees that are averaged", 'leave boosting_type="rf" out')
    given = dict(setting.split(":", 1) for setting in settings)
    steepness = float(given.get("sigmoid", 1.0))
    trees = []
    for number, info in enumerate(dump["tree_info"]):
        column = 1 if n_in_round == 1 else number % n_in_round
        tree, values = _lightgbm_tree(info["tree_structure"])
        table = np.zeros((len(values), n_classes))
        table[:, column] = -steepness * values
        trees.append((tree, table))
    return _joined(LIGHTGBM, trees, np.zeros(n_classes), dump["max_feature_idx"] + 1)


def _lightgbm_tree(root: dict[str, Any]) -> tuple[Tree, FloatArray]:
    """A tree, level by level, and the values of its leaves."""
    nodes, left = [root], list[int]()
    for node in nodes:
        is_leaf = "split_feature" not in node
        left.append(len(left) if is_leaf else len(nodes))
        if not is_leaf:
            _check_lightgbm_split(node)
            nodes += [node["left_child"], node["right_child"]]
        elif "leaf_const" in node or "leaf_coeff" in node:
            _refuse(LIGHTGBM, "linear models in its leaves", "leave linear_tree out")
    leaf = np.array(left) == np.arange(len(left))
    threshold = np.array([node.get("threshold", np.nan) for node in nodes], np.float64)
    threshold[threshold >= _LIGHTGBM_INFINITY] = np.inf
    # Without missing values in the training data of a node, a missing value is a zero to it.
    missing_left = [
        bool(node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0.0)
        if "missing_type" in node
        else True
        for node in nodes
    ]
    count = np.array([node.get("internal_count", node.get("leaf_count", 0)) for node in nodes])
    gain = np.array([node.get("split_gain", 0.0) for node in nodes]) / np.maximum(count, 1)
    tree = Tree(
        feature=np.array([node.get("split_feature", 0) for node in nodes], np.int32),
        threshold=np.nextafter(threshold, np.inf),
        left=np.array(left, np.int32),
        missing_left=np.array(missing_left),
        value=np.where(leaf, np.cumsum(leaf) - 1, 0).astype(np.int32),
        gain=gain.astype(np.float32),
        count=count.astype(np.int32),
        weight=count.astype(np.float32),
    )
    return tree, np.array([node["leaf_value"] for node in nodes if "leaf_value" in node])


def _check_lightgbm_split(node: dict[str, Any]) -> None:
    if node["decision_type"] != "<=":
        _refuse(LIGHTGBM, "tests of categories", "give it numbers only")
    if node["missing_type"] not in ("NaN", "None"):
        _refuse(LIGHTGBM, "zeros that stand for missing values", "leave zero_as_missing out")


# CatBoost: x > border answers 1, in single precision. All nodes of a level have one test; the
# answer to the first test is the lowest bit of the leaf.


def _of_catboost(model: Any) -> ForeignTrees:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text(encoding="utf-8"))
    objective = dump["model_info"]["params"]["loss_function"]["type"]
    if objective not in ("MultiClass", "Logloss"):
        _refuse(CATBOOST, f"the loss {objective!r:.40}", "leave its loss_function out")
    others = sorted(set(dump["features_info"]) - {"float_features"})
    if any(dump["features_info"][name] for name in others):
        _refuse(CATBOOST, f"{others[0].replace('_', ' ')}", "give it numbers only")
    if "oblivious_trees" not in dump:
        _refuse(CATBOOST, "trees that are not symmetric", "leave grow_policy out")
    features = dump["features_info"]["float_features"]
    missing_right = [feature["nan_value_treatment"] == "AsTrue" for feature in features]
    scale, bias = dump["scale_and_bias"]
    n_columns = len(bias)

    def for_classes(values: Any) -> FloatArray:
        """Values of the classes, (n, K); with two classes, those of the first are zero."""
        columns = np.reshape(values, (-1, n_columns))
        return columns if n_columns > 1 else np.column_stack([np.zeros(len(columns)), columns])

    trees = []
    for tree in dump["oblivious_trees"]:
        table = -scale * for_classes(tree["leaf_values"])
        trees.append((_catboost_tree(tree, table, missing_right), table))
    return _joined(CATBOOST, trees, for_classes(bias)[0].astype(np.float64), len(features))


def _catboost_tree(tree: dict[str, Any], table: FloatArray, missing_right: list[bool]) -> Tree:
    splits = (tree["splits"] or [])[::-1]
    if any(split["split_type"] != "FloatFeature" for split in splits):
        _refuse(CATBOOST, "tests of categories", "give it numbers only")
    n_leaves = len(table)
    levels = np.repeat(np.arange(len(splits) + 1), 2 ** np.arange(len(splits) + 1))
    feature = np.array([split["float_feature_index"] for split in splits] + [0], np.int32)
    threshold = np.array([_least_above(split["border"]) for split in splits] + [np.nan])
    goes_left = np.array([not missing_right[f] for f in feature[:-1]] + [True])
    numbers = np.arange(2 * n_leaves - 1)
    leaf = numbers >= n_leaves - 1
    weight, gain = _weights_and_gains(np.array(tree["leaf_weights"], np.float64), table)
    return Tree(
        feature=feature[levels],
        threshold=threshold[levels],
        left=np.where(leaf, numbers, 2 * numbers + 1).astype(np.int32),
        missing_left=goes_left[levels],
        value=np.where(leaf, numbers - (n_leaves - 1), 0).astype(np.int32),
        gain=gain.astype(np.float32),
        count=np.round(weight).astype(np.int32),
        weight=weight.astype(np.float32),
    )


def _least_above(border: float) -> float:
    """The smallest number that is larger than a border once it is rounded to single precision."""
    low = np.float32(border)
    with np.errstate(over="ignore"):
        middle = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2.0
    return middle if np.float32(middle) > low else float(np.nextafter(middle, np.inf))


def _weights_and_gains(weight: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight of each node, and by how much its split spreads the scores, per unit of weight."""
    sums = weight[:, np.newaxis] * table
    weights, gains = [weight], [np.zeros(len(weight))]

    def spread() -> FloatArray:
        return (sums**2).sum(axis=1) / np.maximum(weights[-1], 1e-300)

    while len(weights[-1]) > 1:
        of_children = spread().reshape(-1, 2).sum(axis=1)
        weights.append(weights[-1].reshape(-1, 2).sum(axis=1))
        sums = sums.reshape(len(weights[-1]), 2, -1).sum(axis=1)
        gained = np.maximum(of_children - spread(), 0.0)
        gains.append(gained / np.maximum(weights[-1], 1e-300))
    return np.concatenate(weights[::-1]), np.concatenate(gains[::-1])


_READERS: dict[tuple[str, str], Callable[[Any], ForeignTrees]] = {
    ("lightgbm", "LGBMClassifier"): _of_lightgbm,
    ("catboost", "CatBoostClassifier"): _of_catboost,
}
