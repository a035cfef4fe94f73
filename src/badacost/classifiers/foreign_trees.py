"""Trees of LightGBM and CatBoost as a `Forest`, with equal scores, without their libraries.

The JSON form of a model is read right after its fit; whatever is not known is refused. Leaves hold
cost scores: minus what the library adds to the logits of the classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf, nextafter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from badacost._utils.arrays import FloatArray, Mask
from badacost._utils.categorical_columns import MAX_CATEGORIES
from badacost.tree.forest import Forest, Tree

LIGHTGBM, CATBOOST = SOURCES = ("LightGBM", "CatBoost")
_LIGHTGBM_INFINITY = 1e300  # in JSON, which has no infinity
ForeignTrees = tuple[str, Forest, FloatArray]
# The nodes of a tree, level by level, and the scores (n_leaves, K) of its leaves. A node is a row:
# feature, threshold (NaN in a leaf), whether missing values go left, gain per weight, weight.
ForeignTree = tuple[ArrayLike, FloatArray]


class OneHotColumns:
    """One-hot encoding of categorical columns, for libraries whose trees test numbers only.

    `column` and `code` have the column of each encoded feature and the code of its category, -1 for
    numbers. A tree grown on them tests one category at a time; `decode` makes that a test of the
    column itself, as in forests that are grown on categories.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    codes : mapping of int to ndarray
        All codes of each categorical column.

    Examples
    --------
    >>> import numpy as np
    >>> one_hot = OneHotColumns(2, {1: np.arange(3.0)})
    >>> one_hot.encode(np.array([[7.5, 2.0], [8.0, np.nan]]))
    array([[7.5, 0. , 0. , 1. ],
           [8. , nan, nan, nan]])
    """

    def __init__(self, n_columns: int, codes: Mapping[int, FloatArray]):
        parts = [codes.get(column, np.array([-1.0])) for column in range(n_columns)]
        self.column = np.repeat(np.arange(n_columns), [len(part) for part in parts])
        self.code = np.concatenate(parts)
        self.known = [codes.get(column, np.empty(0)) for column in range(n_columns)]

    def encode(self, samples: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return samples with a feature of 0 and 1 for each category; NaN where it is missing."""
        if (self.code < 0).all():
            return samples
        encoded = samples[:, self.column]
        for feature in np.flatnonzero(self.code >= 0):
            values = encoded[:, feature]
            encoded[:, feature] = np.where(np.isnan(values), np.nan, values == self.code[feature])
        return encoded

    def decode(self, forest: Forest) -> Forest:
        """Return trees that were grown on encoded features as trees of the columns."""
        if (self.code < 0).all():
            return forest
        code = np.where(forest.is_leaf, -1.0, self.code[forest.feature])
        tested = code >= 0
        is_category = np.arange(MAX_CATEGORIES + 1) == code[tested, np.newaxis]
        goes_right = is_category >= forest.threshold[tested, np.newaxis]
        return replace(
            forest,
            feature=np.where(forest.is_leaf, 0, self.column[forest.feature]).astype(np.int32),
            threshold=np.where(tested, 0.0, forest.threshold),
            n_features=len(self.known),
            category_set=np.where(tested, np.cumsum(tested) - 1, -1).astype(np.int32),
            sets=np.packbits(goes_right, axis=1, bitorder="little").view("<u4").astype(np.uint32),
            categories=np.concatenate(self.known),
            category_offsets=np.cumsum([0, *map(len, self.known)], dtype=np.int64),
        )


def read_trees(model: Any) -> ForeignTrees:
    """Return the trees of a fitted LGBMClassifier or CatBoostClassifier.

    Parameters
    ----------
    model : LGBMClassifier or CatBoostClassifier
        The fitted classifier.

    Returns
    -------
    source : str
        Name of the library.
    forest : Forest
        The trees.
    log_prior : ndarray of shape (K,)
        Logits of the classes are these minus the scores of the forest.
    """
    try:
        return reader_of(model)(model)
    except LookupError as error:
        raise ValueError(
            f"the trees of this {type(model).__name__} are not as expected, they lack {error}: use "
            "another version of its library."
        ) from error


def reader_of(model: Any) -> Callable[[Any], ForeignTrees]:
    """Return what reads the trees of a classifier, fitted or not."""
    for base in type(model).__mro__:
        if base.__name__ in _READERS:
            return _READERS[base.__name__]
    raise TypeError(
        f"the trees of a {type(model).__name__} cannot be imported: give an LGBMClassifier or a "
        "CatBoostClassifier."
    )


def _refuse(source: str, what: str, remedy: str) -> NoReturn:
    raise ValueError(f"this {source} model has {what}, which cannot be imported: {remedy}.")


def _join(
    source: str, trees: list[ForeignTree], log_prior: FloatArray, n_features: int
) -> ForeignTrees:
    if not trees:
        _refuse(source, "no trees", "fit it to more samples")
    grown, n_rows = [], 0
    for nodes, table in trees:
        feature, threshold, missing_left, gain, weight = np.asarray(nodes, np.float64).T
        leaf = np.isnan(threshold)
        left = np.where(leaf, np.arange(len(leaf)), 2 * np.cumsum(~leaf) - 1)
        tree = Tree(
            feature=feature.astype(np.int32),
            threshold=threshold,
            left=left.astype(np.int32),
            missing_left=leaf | (missing_left > 0.0),  # a leaf is its own left child
            value=np.where(leaf, n_rows + np.cumsum(leaf) - 1, n_rows).astype(np.int32),
            gain=gain.astype(np.float32),
            count=np.round(weight).astype(np.int32),
            weight=weight.astype(np.float32),
        )
        grown.append(tree)
        n_rows += len(table)
    tables = np.concatenate([table for _, table in trees])
    return source, Forest.from_trees(grown, np.ones(len(grown)), tables, n_features), log_prior


# LightGBM: x <= threshold goes left. A tree belongs to one class, and those of a round follow each
# other; with two classes there is one tree in a round, for the log-odds of the second.


def _read_lightgbm(model: Any) -> ForeignTrees:
    dump = model.booster_.dump_model()
    n_classes, n_in_round = len(model.classes_), dump["num_tree_per_iteration"]
    objective, *settings = str(dump.get("objective", "none")).split()
    if (objective, n_in_round) not in (("multiclass", n_classes), ("binary", 1)):
        _refuse(LIGHTGBM, f"the objective {objective!r:.40}", "leave its objective out")
    if dump["average_output"]:
        _refuse(LIGHTGBM, "trees that are averaged", 'leave boosting_type="rf" out')
    steepness = float(dict(setting.split(":", 1) for setting in settings).get("sigmoid", 1.0))
    trees: list[ForeignTree] = []
    for number, info in enumerate(dump["tree_info"]):
        nodes = [info["tree_structure"]]
        for node in nodes:
            nodes += [node[child] for child in ("left_child", "right_child") if child in node]
        values = np.array([node["leaf_value"] for node in nodes if "leaf_value" in node])
        table = np.zeros((len(values), n_classes))
        table[:, 1 if n_in_round == 1 else number % n_in_round] = -steepness * values
        trees.append(([_lightgbm_node(node) for node in nodes], table))
    return _join(LIGHTGBM, trees, np.zeros(n_classes), dump["max_feature_idx"] + 1)


def _lightgbm_node(node: dict[str, Any]) -> tuple[float, ...]:
    if "leaf_const" in node or "leaf_coeff" in node:
        _refuse(LIGHTGBM, "linear models in its leaves", "leave linear_tree out")
    if "leaf_value" in node:
        return 0, np.nan, True, 0.0, node.get("leaf_count", 0)
    if node["decision_type"] != "<=":
        _refuse(LIGHTGBM, "tests of categories", "give it numbers only")
    if node["missing_type"] not in ("NaN", "None"):
        _refuse(LIGHTGBM, "zeros that stand for missing values", "leave zero_as_missing out")
    threshold, count = node["threshold"], node["internal_count"]
    # Without missing values in the training data of a node, a missing value is a zero to it.
    missing_left = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0.0
    above = nextafter(threshold, inf) if threshold < _LIGHTGBM_INFINITY else inf
    return node["split_feature"], above, missing_left, node["split_gain"] / max(count, 1), count


# CatBoost: x > border gives 1, in single precision. All nodes of a level have one test; the result
# of the first test is the lowest bit of the leaf.


def _read_catboost(model: Any) -> ForeignTrees:
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text(encoding="utf-8"))
    objective = dump["model_info"]["params"]["loss_function"]["type"]
    if objective not in ("MultiClass", "Logloss"):
        _refuse(CATBOOST, f"the loss {objective!r:.40}", "leave its loss_function out")
    others = {name for name, given in dump["features_info"].items() if given} - {"float_features"}
    if others:
        _refuse(CATBOOST, min(others).replace("_", " "), "give it numbers only")
    if "oblivious_trees" not in dump:
        _refuse(CATBOOST, "trees that are not symmetric", "leave grow_policy out")
    features = dump["features_info"]["float_features"]
    missing_left = np.array([feature["nan_value_treatment"] != "AsTrue" for feature in features])
    scale, bias = dump["scale_and_bias"]
    columns_before = 1 if len(bias) == 1 else 0  # with two classes, logits of the second only

    def for_classes(values: Any) -> FloatArray:
        """Values of the classes, (n, K)."""
        return np.pad(np.reshape(values, (-1, len(bias))), ((0, 0), (columns_before, 0)))

    trees = [
        _catboost_tree(tree, -scale * for_classes(tree["leaf_values"]), missing_left)
        for tree in dump["oblivious_trees"]
    ]
    return _join(CATBOOST, trees, for_classes(bias)[0].astype(np.float64), len(features))


def _catboost_tree(tree: dict[str, Any], table: FloatArray, missing_left: Mask) -> ForeignTree:
    splits = (tree["splits"] or [])[::-1]
    if any(split["split_type"] != "FloatFeature" for split in splits):
        _refuse(CATBOOST, "tests of categories", "give it numbers only")
    feature = np.array([*(split["float_feature_index"] for split in splits), 0])
    threshold = np.array([*(_least_above(split["border"]) for split in splits), np.nan])
    tests = np.column_stack([feature, threshold, missing_left[feature]])
    gain, weight = _gains_and_weights(np.array(tree["leaf_weights"], np.float64), table)
    return np.column_stack(
        [np.repeat(tests, 2 ** np.arange(len(tests)), axis=0), gain, weight]
    ), table


def _least_above(border: float) -> float:
    """The smallest number that is larger than a border once it is rounded to single precision."""
    low = np.float32(border)
    with np.errstate(over="ignore"):
        middle = (float(low) + float(np.nextafter(low, np.float32(np.inf)))) / 2.0
    return middle if np.float32(middle) > low else float(np.nextafter(middle, np.inf))


def _gains_and_weights(weight: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By how much the split of each node spreads the scores, per unit of weight; the weights."""
    levels = [np.column_stack([weight, weight[:, np.newaxis] * table])]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0][::2] + levels[0][1::2])
    weights, sums = np.split(np.concatenate(levels), [1], axis=1)
    weights = np.maximum(weights[:, 0], 1e-300)
    spread = (sums**2).sum(axis=1) / weights
    gained = spread[1::2] + spread[2::2] - spread[: len(weight) - 1]
    gain = np.maximum(gained, 0.0) / weights[: len(weight) - 1]
    return np.append(gain, np.zeros(len(weight))), weights


_READERS: dict[str, Callable[[Any], ForeignTrees]] = {
    "LGBMClassifier": _read_lightgbm,
    "CatBoostClassifier": _read_catboost,
}
