"""Cost matrices: every way to write them, every way to get them wrong, and the builders."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from badacost.costs import (
    as_cost_matrix,
    background_costs,
    circular_view_costs,
    cost_star,
    costs_from_class_weights,
    costs_from_confusion,
    costs_from_ratios,
    is_irreducible,
    labelled_costs,
    minimum_cost_decision,
    ordinal_costs,
    scale_costs,
    stationary_distribution,
    zero_one_costs,
)

CLASSES = ["cat", "dog", "fox"]
COSTS = np.array([[0.0, 1.0, 7.0], [2.0, 0.0, 3.0], [0.5, 4.0, 0.0]])
MAPPING = {
    "fox": {"cat": 0.5, "dog": 4},
    "cat": {"fox": 7, "dog": 1, "cat": 0},
    "dog": {"cat": 2, "fox": 3},
}
FRAME = pd.DataFrame(COSTS, index=CLASSES, columns=CLASSES)
OTHER_ORDER = ["fox", "cat", "dog"]


@pytest.mark.parametrize(
    "costs",
    [
        COSTS,
        COSTS.tolist(),
        np.asfortranarray(COSTS),
        COSTS.astype(np.float32),
        COSTS.astype(object),
        MAPPING,
        {np.str_(truth): row for truth, row in MAPPING.items()},
        FRAME,
        FRAME.loc[["dog", "fox", "cat"], OTHER_ORDER],
        FRAME.astype(object),
    ],
    ids=str,
)
def test_every_form_gives_the_same_matrix(costs):
    matrix = as_cost_matrix(costs, np.array(CLASSES))
    assert_array_equal(matrix, COSTS)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    assert not np.shares_memory(matrix, COSTS)


def test_no_costs_are_zero_one_costs():
    assert_array_equal(as_cost_matrix(None, CLASSES), [[0, 1, 1], [1, 0, 1], [1, 1, 0]])


def test_labels_may_be_numpy_or_python_numbers():
    expected = [[0, 2], [5, 0]]
    mapping = {7: {3: 5}, np.int64(3): {np.int32(7): 2}}
    frame = pd.DataFrame([[0, 5], [2, 0]], index=[7, 3], columns=[7, 3])
    for costs in (mapping, frame):
        assert_array_equal(as_cost_matrix(costs, np.array([3, 7])), expected)
        assert_array_equal(as_cost_matrix(costs, [3, 7]), expected)


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (np.array([3, 7]), ["3", "7"]),
        (np.array([3.0, 7.5]), [" 3", "7.50"]),
        ([3, 7.0], ["3.0", "7"]),
        ([False, True], ["False", "True"]),
    ],
)
def test_labels_may_be_the_text_of_numbers(classes, names):
    expected = [[0, 2], [5, 0]]
    first, second = names
    mapping = {second: {first: 5}, first: {second: 2}}
    frame = pd.DataFrame([[0, 5], [2, 0]], index=list(classes)[::-1], columns=names[::-1])
    for costs in (mapping, frame):
        assert_array_equal(as_cost_matrix(costs, classes), expected)


def test_text_stays_text_where_it_is_a_class():
    costs = {"1": {1: 3.0}, 1: {"1": 4.0}}
    assert_array_equal(as_cost_matrix(costs, ["1", 1]), [[0, 3], [4, 0]])
    with pytest.raises(ValueError, match=re.escape("labels ['1.0'] in")):
        as_cost_matrix({"1.0": {"2": 1}, "2": {"1.0": 1}}, ["1", "2"])


@pytest.mark.parametrize("costs", [MAPPING, FRAME])
def test_extra_labels_are_dropped_on_request(costs):
    matrix = as_cost_matrix(costs, ["cat", "fox"], allow_extra_labels=True)
    assert_array_equal(matrix, [[0, 7], [0.5, 0]])


def test_price_of_being_right_is_subtracted_from_its_row():
    costs = np.array([[1.0, 1.0, 4.0], [5.0, 2.0, 2.5], [1.0, 3.0, 0.0]])
    expected = [[0, 0, 3], [3, 0, 0.5], [1, 3, 0]]
    assert_array_equal(as_cost_matrix(costs, CLASSES), expected)
    assert costs[0, 0] == 1
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.ones(3), size=200)
    assert_array_equal(
        minimum_cost_decision(beliefs, costs), minimum_cost_decision(beliefs, expected)
    )


def with_entry(truth, prediction, value):
    frame = FRAME.astype(object)
    frame.loc[truth, prediction] = value
    return frame.to_numpy().tolist()


LACKS_DOG = {"cat": {"fox": 7}, "fox": {"cat": 0.5}}
LACKS_CELL = {**MAPPING, "dog": {"cat": 2}}
TEXT_KEYS = {"0": {"1": 1}, "1": {"0": 2}}


@pytest.mark.parametrize(
    ("costs", "classes", "error", "message"),
    [
        (COSTS[:2, :2], CLASSES, ValueError, "shape (2, 2) where the 3 classes ['cat', 'dog', 'f"),
        (COSTS[:2, :2], CLASSES, ValueError, "need (3, 3)"),
        (COSTS[:2], CLASSES, ValueError, "shape (2, 3)"),
        (COSTS, range(11), ValueError, "need (11, 11)"),
        ([[0, 1], [1]], ["a", "b"], ValueError, "shape (2,)"),
        (3.0, CLASSES, TypeError, "costs are of type float: give None, a K x K array"),
        ("balanced", CLASSES, TypeError, "costs are of type str"),
        (
            dict.fromkeys(CLASSES, 1),
            CLASSES,
            TypeError,
            "truth 'cat' are of type int: give a mapping",
        ),
        (with_entry("dog", "fox", "3"), CLASSES, TypeError, "'dog' and prediction 'fox' is '3'"),
        (with_entry("dog", "fox", None), CLASSES, TypeError, "'dog' and prediction 'fox' is None"),
        (with_entry("dog", "fox", 1j), CLASSES, TypeError, "'dog' and prediction 'fox' is 1j"),
        (
            MAPPING,
            ["cat", "dog"],
            ValueError,
            "labels ['fox'] in the truths of costs",
        ),
        (FRAME, ["cat", "dog"], ValueError, "labels ['fox'] in the truths of costs"),
        (
            TEXT_KEYS,
            [0, 2],
            ValueError,
            "['1'] in the truths of costs",
        ),
        (
            {**TEXT_KEYS, 0: {1: 3}},
            [0, 1],
            ValueError,
            "label 0 is repeated in the truths",
        ),
        ({0: {"1": 1, 1: 2}, 1: {0: 1}}, [0, 1], ValueError, "label 1 is repeated in the costs of"),
        (FRAME.iloc[:, [0, 1, 1]], CLASSES, ValueError, "'dog' is repeated in the columns"),
        (FRAME.iloc[[0, 1, 1]], CLASSES, ValueError, "'dog' is repeated in the truths"),
        (FRAME.iloc[:2], CLASSES, ValueError, "class 'fox' is missing from the truths"),
        (
            FRAME.iloc[:, 1:],
            CLASSES,
            ValueError,
            "class 'cat' is missing from the columns",
        ),
        ({"a": {"a": [0], "b": [1]}, "b": {"a": [2], "b": [0]}}, "ab", ValueError, "(2, 2, 1)"),
        (LACKS_DOG, CLASSES, ValueError, "class 'dog' is missing from the truths"),
        ({"cat": MAPPING["cat"]}, CLASSES, ValueError, "class 'dog' is missing from the truths"),
        (LACKS_CELL, CLASSES, ValueError, "class 'fox' is missing from the costs of truth 'dog'"),
        (with_entry("dog", "fox", -1), CLASSES, ValueError, "'dog' and prediction 'fox' is -1.0"),
        (with_entry("dog", "dog", -1), CLASSES, ValueError, "'dog' and prediction 'dog' is -1.0"),
        (with_entry("dog", "fox", np.nan), CLASSES, ValueError, "prediction 'fox' is nan: repl"),
        (with_entry("dog", "fox", np.inf), CLASSES, ValueError, "prediction 'fox' is inf: repl"),
        (
            with_entry("dog", "dog", 2.5),
            CLASSES,
            ValueError,
            "for truth 'dog' being right costs 2.5 and prediction 'cat' costs 2: lower",
        ),
        ([[0, 0], [1, 0]], ["a", "b"], ValueError, "all mistakes on class 'a' are free: raise"),
        ([[0, 1], [3, 3]], ["a", "b"], ValueError, "all mistakes on class 'b' are free"),
        (None, ["a"], ValueError, "at least 2 classes, got ['a']"),
        (None, ["a", "a"], ValueError, "label 'a' is repeated in classes"),
    ],
)
def test_unusable_costs(costs, classes, error, message):
    with pytest.raises(error, match=re.escape(message)):
        as_cost_matrix(costs, classes)


def test_extra_labels_do_not_excuse_missing_ones():
    with pytest.raises(ValueError, match="class 'owl' is missing from the truths"):
        as_cost_matrix(FRAME, ["cat", "owl"], allow_extra_labels=True)


def test_cost_star():
    assert_array_equal(cost_star(COSTS), [[-8, 1, 7], [2, -5, 3], [0.5, 4, -4.5]])
    assert_array_equal(cost_star(cost_star(COSTS)), cost_star(COSTS))


cost_matrices = st.integers(2, 6).flatmap(
    lambda n_classes: arrays(np.float64, (n_classes, n_classes), elements=st.floats(1e-6, 1e6))
)


@given(cost_matrices, st.floats(1e-100, 1e100))
def test_stationary_distribution(costs, scale):
    pi = stationary_distribution(costs)
    star = cost_star(costs)
    assert (pi > 0).all()
    assert_allclose(pi.sum(), 1)
    assert_allclose((pi @ star) / (pi @ np.abs(star)), 0, atol=1e-14)
    assert_allclose(stationary_distribution(scale * costs), pi, rtol=1e-13)


@given(cost_matrices)
def test_symmetric_costs_have_a_uniform_stationary_distribution(costs):
    assert_allclose(stationary_distribution(costs + costs.T), 1 / len(costs), rtol=1e-9)


@given(st.floats(1e-100, 1e100), st.floats(1e-100, 1e100))
def test_stationary_distribution_of_two_classes(cost_01, cost_10):
    pi = stationary_distribution([[0, cost_01], [cost_10, 0]])
    assert_allclose(pi[0] / pi[1], cost_10 / cost_01)


def test_stationary_distribution_is_accurate_for_costs_of_very_different_sizes():
    costs = np.array([[0, 1e-12, 3e12], [2e-5, 0, 1e-9], [7e8, 1e-15, 0]])
    # The shares of a three-state chain are sums over the trees that lead into each state.
    trees = [
        costs[1, 0] * costs[2, 0] + costs[1, 0] * costs[2, 1] + costs[2, 0] * costs[1, 2],
        costs[0, 1] * costs[2, 1] + costs[0, 1] * costs[2, 0] + costs[2, 1] * costs[0, 2],
        costs[0, 2] * costs[1, 2] + costs[0, 2] * costs[1, 0] + costs[1, 2] * costs[0, 1],
    ]
    assert_allclose(stationary_distribution(costs), np.array(trees) / sum(trees), rtol=1e-13)


@pytest.mark.parametrize(
    ("costs", "kept", "lost"),
    [
        ([[0, 1, 0], [2, 0, 0], [1, 1, 0]], ["cat", "dog"], ["fox"]),
        ([[0, 1, 1], [0, 0, 2], [0, 3, 0]], ["dog", "fox"], ["cat"]),
        ([[0, 0, 1], [1, 0, 0], [2, 0, 0]], ["cat", "fox"], ["dog"]),
    ],
)
def test_reducible_costs_are_refused_by_name(costs, kept, lost):
    assert not is_irreducible(costs)
    message = re.escape(f"for the truths {kept} every prediction in {lost} is free; give every")
    with pytest.raises(ValueError, match=message):
        stationary_distribution(costs, np.array(CLASSES))
    with pytest.raises(ValueError, match=r"in \[\d\] is free"):
        stationary_distribution(costs)


def test_gains_connect_no_classes() -> None:
    """Only positive costs do."""
    assert not is_irreducible([[0, -1, 1], [1, 0, 1], [0, -2, 0]])


@given(arrays(np.bool_, (4, 4)))
def test_irreducible_costs_connect_all_classes(links):
    connected = np.linalg.matrix_power(np.eye(4, dtype=int) + links, 3) > 0
    assert is_irreducible(links.astype(float)) == connected.all()


def test_minimum_cost_decision_against_brute_force():
    rng = np.random.default_rng(3)
    beliefs = rng.dirichlet(np.ones(3), size=100)
    expected = [
        min(range(3), key=lambda j: sum(p[i] * COSTS[i, j] for i in range(3))) for p in beliefs
    ]
    decisions = minimum_cost_decision(beliefs, COSTS)
    assert_array_equal(decisions, expected)
    assert set(decisions) == {0, 1, 2}
    assert (decisions != minimum_cost_decision(beliefs, COSTS.T)).any()


def test_minimum_cost_decision_takes_the_lowest_index_on_ties():
    assert_array_equal(minimum_cost_decision([[0.5, 0.5], [0, 1]], [[0, 1], [1, 0]]), [0, 1])


@pytest.mark.parametrize("shape", [(3,), (5, 2), (1, 2, 3)])
def test_minimum_cost_decision_checks_shapes(shape):
    with pytest.raises(ValueError, match=re.escape(f"shape {shape}")):
        minimum_cost_decision(np.full(shape, 0.5), COSTS)


@pytest.mark.parametrize("shape", [(2, 3), (4,), (1, 1)])
def test_matrices_must_be_square(shape):
    with pytest.raises(ValueError, match=re.escape(f"cost_matrix has shape {shape}")):
        cost_star(np.ones(shape))


@pytest.mark.parametrize(
    ("scale", "factor"), [(None, 1), ("reference", 1 / 7), (7, 1), (0.7, 0.1), (np.float32(14), 2)]
)
def test_scale_costs(scale, factor):
    scaled = scale_costs(COSTS, scale)
    assert_allclose(scaled, factor * COSTS, rtol=1e-15)
    assert not np.shares_memory(scaled, COSTS)


def test_reference_scale_leaves_small_costs_alone():
    assert_array_equal(scale_costs(COSTS / 70, "reference"), COSTS / 70)


@given(cost_matrices, st.floats(1e-3, 1e3))
def test_scaled_costs_reach_exactly_the_scale(costs, scale):
    assert scale_costs(costs, scale).max() == scale


@pytest.mark.parametrize(
    ("scale", "error"),
    [
        ("max", ValueError),
        (0, ValueError),
        (-1.0, ValueError),
        (np.inf, ValueError),
        (np.nan, ValueError),
        (True, TypeError),
        ([1], TypeError),
    ],
)
def test_unusable_scales(scale, error):
    with pytest.raises(error, match=r"scale (is|must be) "):
        scale_costs(COSTS, scale)


def test_free_costs_cannot_be_scaled():
    with pytest.raises(ValueError, match="no positive entry"):
        scale_costs(np.zeros((2, 2)), 1.0)


CONFUSION = [[8, 1, 1], [0, 4, 0], [3, 0, 3]]


def test_costs_from_confusion():
    assert_allclose(
        costs_from_confusion([[8, 1, 1], [1, 3, 0], [3, 0, 3]], 0.1),
        [[0, 0.01, 0.01], [0.025, 0, 0], [0.05, 0, 0]],
    )
    assert_allclose(
        costs_from_confusion(CONFUSION, scale=2, floor=0.2),
        [[0, 0.4, 0.4], [0.4, 0, 0.4], [1.0, 0.4, 0]],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confusion": CONFUSION}, "set floor"),
        ({"confusion": [[1, 2], [0, 0]]}, "class 1 has no samples"),
        (
            {"confusion": [[1, -2], [1, 0]]},
            "truth 0 and prediction 1 is -2.0: replace it by a number from 0",
        ),
        ({"confusion": [1, 2]}, "confusion has shape (2,)"),
        ({"confusion": CONFUSION, "scale": 0}, "scale must be "),
        ({"confusion": CONFUSION, "floor": -0.1}, "floor must be "),
    ],
)
def test_unusable_confusions(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        costs_from_confusion(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"class_weights": [0.5, 1, 2]},
        {"class_weights": np.array([0.5, 1, 2]), "classes": CLASSES},
        {"class_weights": {"fox": 2, "cat": 0.5, "dog": 1}, "classes": np.array(CLASSES)},
    ],
)
def test_costs_from_class_weights(arguments):
    expected = [[0, 0.5, 0.5], [1, 0, 1], [2, 2, 0]]
    assert_array_equal(costs_from_class_weights(**arguments), expected)


def test_costs_from_balanced_class_weights():
    y = ["dog"] * 3 + ["cat"]
    assert_allclose(costs_from_class_weights("balanced", y=y), [[0, 2], [2 / 3, 0]])
    reordered = costs_from_class_weights("balanced", y=np.array(y), classes=["dog", "cat"])
    assert_allclose(reordered, [[0, 2 / 3], [2, 0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"class_weights": "balanced"}, '"balanced" together with y'),
        ({"class_weights": "equal", "y": [0, 1]}, "class_weights is 'equal'"),
        ({"class_weights": {"cat": 1, "dog": 2}}, "give classes too"),
        (
            {"class_weights": {"cat": 1}, "classes": ["cat", "dog"]},
            "class 'dog' is missing from class_weights",
        ),
        ({"class_weights": {"cat": 1, "owl": 2}, "classes": ["cat", "dog"]}, "labels ['owl']"),
        (
            {"class_weights": "balanced", "y": ["cat"], "classes": ["cat", "dog"]},
            "class 'dog' is missing",
        ),
        ({"class_weights": [1, 2, 3], "classes": ["cat", "dog"]}, "class_weights has shape (3,)"),
        ({"class_weights": [1, 0]}, "the weight of class 1 must be "),
        ({"class_weights": [np.nan, 1], "classes": ["cat", "dog"]}, "class 'cat' must be "),
        ({"class_weights": [1]}, "at least 2 classes"),
    ],
)
def test_unusable_class_weights(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        costs_from_class_weights(**arguments)


def test_ordinal_costs():
    expected = [[0, 3, 12, 27], [2, 0, 3, 12], [8, 2, 0, 3], [18, 8, 2, 0]]
    assert_array_equal(ordinal_costs(4, under=2, over=3, power=2), expected)
    assert_array_equal(ordinal_costs(3), [[0, 1, 2], [1, 0, 1], [2, 1, 0]])


def test_too_low_and_too_high_may_cost_differently():
    costs = labelled_costs(ordinal_costs(3, under=5, over=2), ["low", "medium", "high"])
    assert costs["high"]["medium"] == 5
    assert costs["medium"]["high"] == 2
    # Estimators sort their classes: high, low, medium.
    expected = [[0, 10, 5], [4, 0, 2], [2, 5, 0]]
    assert_array_equal(as_cost_matrix(costs, sorted(costs)), expected)


@given(cost_matrices)
def test_labelled_costs_are_read_back(costs):
    np.fill_diagonal(costs, 0.0)
    labels = [f"class {k}" for k in range(len(costs))]
    assert_array_equal(as_cost_matrix(labelled_costs(costs, labels), labels), costs)


def test_labels_must_fit_the_costs():
    with pytest.raises(ValueError, match="shape"):
        labelled_costs(COSTS, ["cat", "dog"])


def test_background_costs():
    expected = [[0, 2, 2, 2], [5, 0, 1, 1], [5, 1, 0, 1], [5, 1, 1, 0]]
    assert_array_equal(background_costs(3, alpha=2, beta=5), expected)
    assert_array_equal(background_costs(1, alpha=2, beta=5), [[0, 2], [5, 0]])


@pytest.mark.parametrize("n_views", [4, 5, 20])
def test_circular_view_costs_against_the_equation_of_the_paper(n_views):
    costs = circular_view_costs(n_views, alpha=2, beta=5, gamma=3)
    assert costs.shape == (n_views + 1, n_views + 1)
    assert_array_equal(costs[0], [0] + [2] * n_views)
    assert_array_equal(costs[:, 0], [0] + [5] * n_views)
    i, j = np.indices((n_views, n_views))
    expected = 3 * (1 - np.abs((2 * np.abs(i - j) - n_views) / n_views))
    assert_allclose(costs[1:, 1:], expected, atol=1e-15)


def test_circular_view_costs_of_the_nearest_and_of_opposite_views():
    costs = circular_view_costs(20, gamma=3)
    assert_allclose([costs[1, 2], costs[2, 1], costs[1, 20], costs[20, 1]], 3 * 2 / 20)
    assert_array_equal([costs[1, 11], costs[11, 1], costs[20, 10]], 3)
    assert_array_equal(costs.diagonal(), 0)


@pytest.mark.parametrize(
    ("builder", "arguments", "message"),
    [
        (zero_one_costs, {"n_classes": 1}, "n_classes must be "),
        (ordinal_costs, {"n_classes": 1}, "n_classes must be "),
        (ordinal_costs, {"n_classes": 3, "under": 0}, "under must be "),
        (ordinal_costs, {"n_classes": 3, "over": -1}, "over must be "),
        (ordinal_costs, {"n_classes": 3, "power": np.inf}, "power must be "),
        (background_costs, {"n_views": 0}, "n_views must be "),
        (background_costs, {"n_views": 3, "alpha": 0}, "alpha must be "),
        (circular_view_costs, {"n_views": 3, "beta": np.nan}, "beta must be "),
        (circular_view_costs, {"n_views": 3, "gamma": -2}, "gamma must be "),
    ],
)
def test_unusable_arguments_of_builders(builder, arguments, message):
    with pytest.raises(ValueError, match=message):
        builder(**arguments)


@pytest.mark.parametrize(
    ("build", "n_classes"),
    [
        (partial(zero_one_costs, 3), 3),
        (partial(ordinal_costs, 3, under=10), 3),
        (partial(background_costs, 2, beta=4), 3),
        (partial(circular_view_costs, 3, beta=4), 4),
        (partial(costs_from_confusion, [[9, 1], [2, 2]]), 2),
    ],
)
def test_builders_with_labels(build, n_classes):
    names = ["mid", "low", "top", "all"][:n_classes]
    assert build(labels=names) == labelled_costs(build(), names)
    with pytest.raises(ValueError, match="costs have shape"):
        build(labels=[*names, "more"])


@pytest.mark.parametrize("form", [dict, pd.DataFrame])
def test_classes_that_were_encoded(form):
    names = ["mid", "low", "top"]
    matrix = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])
    costs = labelled_costs(matrix, names)
    if form is pd.DataFrame:
        costs = pd.DataFrame(matrix, names, names)
    alphabetical = as_cost_matrix(costs, sorted(names))
    mapping = "'low', 'mid', 'top' are read as 0, 1, ..., the sorted order"
    with pytest.warns(UserWarning, match=mapping):
        assert_array_equal(as_cost_matrix(costs, range(3)), alphabetical)
    # A part without the second class still has the last one.
    with pytest.warns(UserWarning, match=mapping):
        part = as_cost_matrix(costs, [0, 2], allow_extra_labels=True)
    assert_array_equal(part, alphabetical[np.ix_([0, 2], [0, 2])])
    with pytest.raises(ValueError, match=r"numbers from 0 to 1: a meta-estimator .* fewer of them"):
        as_cost_matrix(costs, [0, 1], allow_extra_labels=True)
    with pytest.raises(ValueError, match="not among the 4 classes"):
        as_cost_matrix(costs, range(4))
    with pytest.raises(ValueError, match="class 1 is missing from the truths"):
        as_cost_matrix({0: {1: 1}, 5: {0: 2}}, [0, 1], allow_extra_labels=True)


def test_labels_of_several_types_are_no_encoded_classes():
    with pytest.raises(ValueError, match="class 0 is missing from the truths"):
        as_cost_matrix({"a": {7: 1}, 7: {"a": 2}}, [0, 1], allow_extra_labels=True)


def test_no_probabilities_of_costs_that_differ_too_much() -> None:
    with pytest.raises(ValueError, match="span too many orders of magnitude"):
        stationary_distribution([[0, 1e-300, 1e300], [0, 0, 1e-300], [1e-300, 0, 0]])


@pytest.mark.parametrize(
    "given",
    ["text", {"a": 1}, [[1, [2]], [1, 2]], [[1, "a"], [1, 2]], csr_array(COSTS), COSTS + 0j,
     [[1, 10**400], [1, 2]], np.ones((3, 3), "m8[s]")],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (costs_from_confusion, "confusion"),
        (stationary_distribution, "cost_matrix"),
        (lambda given: scale_costs(given, "auto"), "cost_matrix"),
        (lambda given: minimum_cost_decision([[1, 0, 0]], given), "cost_matrix"),
        (lambda given: minimum_cost_decision(given, COSTS), "probabilities"),
        (lambda given: costs_from_class_weights(given, classes=CLASSES), "class_weights"),
    ],
)
def test_what_is_no_array_of_numbers(function, name, given):
    if name == "class_weights" and isinstance(given, str | dict):
        pytest.skip("means something else")
    kind = type(given).__name__
    with pytest.raises(TypeError, match=f"^{name} must be a dense array of .*; got {kind}: give"):
        function(given)


@pytest.mark.parametrize("probability", [np.inf, np.nan, 1e308])
def test_expected_costs_that_are_not_finite(probability):
    beliefs = np.full((2, 3), 1 / 3)
    beliefs[1] = probability
    with pytest.raises(ValueError, match="sample 1 has infinite costs: give finite prob"):
        minimum_cost_decision(beliefs, COSTS)


@pytest.mark.parametrize("price", [np.inf, np.nan])
@pytest.mark.parametrize(
    "function",
    [
        cost_star,
        is_irreducible,
        stationary_distribution,
        partial(minimum_cost_decision, [[0.5, 0.5]]),
        *(partial(scale_costs, scale=scale) for scale in ("auto", "reference", 2.0)),
    ],
)
def test_costs_that_are_not_finite(function, price):
    with pytest.raises(ValueError, match=f"truth 0 and prediction 1 is {price}: replace it by"):
        function([[0, price], [1, 0]])


@pytest.mark.parametrize("label", [pd.NA, pd.NaT, np.nan, np.float64("nan")], ids=repr)
def test_classes_that_have_no_name(label):
    with pytest.raises(TypeError, match="cannot name a class: give text or numbers"):
        as_cost_matrix(None, ["a", label])
    with pytest.raises(TypeError, match="cannot name a class: give text or numbers"):
        costs_from_ratios({label: 5}, classes=["a", label])
    with pytest.raises(ValueError, match="in ratios are not among the 2 classes"):
        costs_from_ratios({label: 5}, classes=["a", "b"])


ONES = np.ones((2, 2))
HUGE = 10**400


@pytest.mark.parametrize(
    ("builder", "arguments", "message"),
    [
        (costs_from_class_weights, {"class_weights": [1e308, 1.0]}, "weight of class 0 must be "),
        (
            costs_from_class_weights,
            {"class_weights": 3.0},
            "at least 2 classes",
        ),
        (costs_from_class_weights, {"class_weights": "balanced", "y": [0, np.nan]}, "contains NaN"),
        (costs_from_confusion, {"confusion": ONES, "scale": 1e308}, "scale must be "),
        (
            costs_from_confusion,
            {"confusion": ONES, "scale": 1e300, "floor": 9},
            "is 9.*e.300: replace it by",
        ),
        (
            costs_from_confusion,
            {"confusion": ONES, "scale": 5e-324},
            "mistakes on class . are free",
        ),
        (circular_view_costs, {"n_views": 3, "alpha": 1e308}, "alpha must be "),
        (circular_view_costs, {"n_views": 3, "gamma": HUGE}, "gamma must be "),
        (background_costs, {"n_views": 3, "beta": HUGE}, "beta must be "),
        (ordinal_costs, {"n_classes": 3, "under": 1e308}, r"under must be .* at most 1e\+300"),
        (ordinal_costs, {"n_classes": 3, "over": 1e300}, "is 2e.300: replace it by a number"),
        (ordinal_costs, {"n_classes": 3, "power": 1e4}, "is inf: replace it by a number"),
        (costs_from_ratios, {"ratios": {(0, 1): HUGE}, "classes": [0, 1]}, "the ratio of .* must"),
    ],
)
def test_costs_that_would_be_refused_are_not_built(builder, arguments, message):
    with pytest.raises(ValueError, match=message):
        builder(**arguments)


def test_builders_take_large_integers():
    costs = circular_view_costs(4, alpha=10**30, gamma=10**30)
    assert_allclose(costs, circular_view_costs(4, alpha=1e30, gamma=1e30))
    assert_allclose(ordinal_costs(3, under=10**30), ordinal_costs(3, under=1e30))


@pytest.mark.parametrize("builder", [zero_one_costs, ordinal_costs, background_costs])
@pytest.mark.parametrize("number", [3.5, "3", None])
def test_numbers_of_classes_are_whole(builder, number):
    with pytest.raises(TypeError, match="must be an integer"):
        builder(number)
