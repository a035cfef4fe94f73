"""The loss, the weights it gives and the step that minimises it."""

from __future__ import annotations

from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from badacost.costs import cost_star, scale_costs, zero_one_costs
from badacost.loss import (
    class_codes,
    cmel,
    confusion_weights,
    cost_margins,
    is_perfect,
    optimal_step,
    weak_learner_costs,
)

COSTS = np.array([[0.0, 1.0, 7.0], [2.0, 0.0, 3.0], [0.5, 4.0, 0.0]])


def exact_derivative(weight_sums, margins, step):
    """phi'(step) to 60 digits, divided by the sum of the sizes of its terms."""
    with localcontext() as context:
        context.prec = 60
        step = Decimal(float(step))
        terms = [
            Decimal(float(mass)) * Decimal(float(slope)) * (step * Decimal(float(slope))).exp()
            for mass, slope in zip(np.ravel(weight_sums), np.ravel(margins), strict=True)
        ]
        return float(sum(terms) / sum(abs(term) for term in terms))


def assert_is_minimiser(step, weight_sums, margins, relative=1e-12):
    slack = relative * max(abs(step), 1e-3 / np.abs(margins).max())
    assert exact_derivative(weight_sums, margins, step - slack) < 0
    assert exact_derivative(weight_sums, margins, step + slack) > 0


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_codes_of_classes(n_classes):
    codes = class_codes(n_classes)
    assert_allclose(codes.sum(axis=1), 0, atol=1e-15)
    assert_array_equal(codes.diagonal(), 1)
    assert_allclose(codes[0, 1:], -1 / (n_classes - 1))


def test_margins_are_products_of_cost_star_with_codes():
    margins = cost_margins(COSTS)
    for g, code in enumerate(class_codes(3)):
        assert_allclose(cost_star(COSTS) @ code, margins[:, g], rtol=1e-14)
    assert_allclose(margins, [[-12, 1.5, 10.5], [3, -7.5, 4.5], [0.75, 6, -6.75]])


def test_cmel_is_the_mean_exponential_of_the_true_class():
    costs = np.array([[0.5, -3.0, 9.0], [2.0, -1.0, 0.0]])
    y = np.array([0, 1])
    assert_allclose(cmel(costs, y), (np.exp(0.5) + np.exp(-1.0)) / 2)
    assert_allclose(cmel(costs, y, [3, 1]), (3 * np.exp(0.5) + np.exp(-1.0)) / 4)


@pytest.mark.parametrize(
    ("own", "weights", "expected"),
    [
        ([710.0, 0.0, 0.0, 0.0], None, np.exp(710.0 - np.log(4))),
        ([1000.0, 0.0], None, np.inf),
        ([1000.0, 0.0], [0, 2], 1.0),
        ([-1000.0, -1000.0], None, 0.0),
    ],
)
def test_cmel_at_the_edge_of_the_float_range(own, weights, expected):
    costs = np.column_stack([own, np.zeros(len(own))])
    assert_allclose(cmel(costs, np.zeros(len(own), dtype=int), weights), expected, rtol=1e-12)


def test_cmel_needs_some_weight():
    with pytest.raises(ValueError, match="no positive entry"):
        cmel([[1.0, 2.0]], [0], [0.0])


@pytest.mark.parametrize("step", [1.0, 0.3, 60.0])
def test_weak_learner_costs_are_bitwise_the_formula(step):
    margins = cost_margins(COSTS)
    factors = np.exp(step * margins)
    expected = factors - np.diag(factors)[:, np.newaxis]
    assert_array_equal(weak_learner_costs(margins, step), expected)


def test_weak_learner_costs_never_overflow():
    margins = cost_margins(COSTS)
    step = 710 / margins.max()
    costs = weak_learner_costs(margins, step)
    assert np.isfinite(costs).all()
    assert (costs >= 0).all()
    assert_array_equal(costs.diagonal(), 0)
    assert_allclose(costs[0, 2], 1)
    assert_allclose(costs[1, 2], np.exp(step * (margins[1, 2] - margins[0, 2])))


def test_weak_learner_costs_leave_the_margins_alone():
    margins = 100 * cost_margins(COSTS)
    before = margins.copy()
    weak_learner_costs(margins)
    assert_array_equal(margins, before)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
def test_confusion_weights(dtype):
    rng = np.random.default_rng(0)
    n_classes = 20
    y, predicted = rng.integers(n_classes, size=(2, 300)).astype(dtype)
    weights = rng.random(300)
    expected = np.zeros((n_classes, n_classes))
    np.add.at(expected, (y, predicted), weights)
    assert_allclose(confusion_weights(y, predicted, weights, n_classes), expected)


def test_steps_of_the_published_problems():
    problems = np.load(Path(__file__).parents[1] / "golden" / "steps.npz")
    sizes = problems["n_classes"].astype(int)
    assert len(sizes) == 240
    ends = np.cumsum(sizes**2)[:-1]
    steps = []
    for k, costs, mass in zip(
        sizes,
        np.split(problems["costs"], ends),
        np.split(problems["weight_sums"], ends),
        strict=True,
    ):
        margins = cost_margins(scale_costs(costs.reshape(k, k), "reference"))
        steps.append(optimal_step(mass.reshape(k, k), margins))
    assert_allclose(steps, problems["beta_exact"], rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("error", [0.01, 0.3, 0.499])
def test_step_of_samme(n_classes, error):
    rng = np.random.default_rng(1)
    costs = zero_one_costs(n_classes) / (n_classes * (n_classes - 1))
    mass = rng.random((n_classes, n_classes))
    wrong = ~np.eye(n_classes, dtype=bool)
    mass[wrong] *= error / mass[wrong].sum()
    mass[~wrong] *= (1 - error) / mass[~wrong].sum()
    odds = np.log((1 - error) / error) + np.log(n_classes - 1)
    step = optimal_step(mass, cost_margins(costs))
    assert_allclose(step, (n_classes - 1) ** 2 / n_classes * odds, rtol=1e-12)


def test_step_of_cost_sensitive_adaboost():
    """Two classes: the cosh equation of the paper's corollary 2."""
    cost_1, cost_2 = 3.0, 0.5
    mass = np.array([[0.35, 0.05], [0.2, 0.4]])
    total_1, total_2 = mass.sum(axis=1)
    # The corollary's exponents are +-C where the margins of two classes are +-2 C.
    step = 2 * optimal_step(mass, cost_margins([[0, cost_1], [cost_2, 0]]))
    left = 2 * cost_1 * mass[0, 1] * np.cosh(step * cost_1)
    left += 2 * cost_2 * mass[1, 0] * np.cosh(step * cost_2)
    right = total_1 * cost_1 * np.exp(-step * cost_1) + total_2 * cost_2 * np.exp(-step * cost_2)
    assert_allclose(left, right, rtol=1e-12)


@st.composite
def step_problems(draw):
    n_classes = draw(st.integers(2, 4))
    size = n_classes**2
    costs = draw(st.lists(st.floats(0.01, 10), min_size=size, max_size=size))
    powers = draw(st.lists(st.floats(-12, 0), min_size=size, max_size=size))
    return (
        10.0 ** np.reshape(powers, (n_classes, n_classes)),
        cost_margins(np.reshape(costs, (n_classes, n_classes))),
    )


@given(step_problems())
def test_derivative_changes_sign_at_the_step(problem):
    mass, margins = problem
    assert_is_minimiser(optimal_step(mass, margins), mass, margins)


@given(step_problems(), st.floats(1e-12, 1e6))
@example((np.array([[0.6, 0.1], [0.1, 0.2]]), cost_margins([[0, 1], [3, 0]])), 1e-12)
@example((np.array([[0.6, 0.1], [0.1, 0.2]]), cost_margins([[0, 1], [3, 0]])), 1e6)
def test_scaled_margins_scale_the_step(problem, scale):
    mass, margins = problem
    smallest = 1e-14 / (scale * margins.max())
    expected = optimal_step(mass, margins) / scale
    assert_allclose(optimal_step(mass, scale * margins), expected, rtol=1e-11, atol=smallest)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_only_ratios_of_masses_count(scale):
    mass = np.array([[0.5, 0.02, 0.03], [0.01, 0.1, 0.04], [0.1, 0.05, 0.15]])
    margins = cost_margins(COSTS)
    step = optimal_step(mass, margins)
    assert step > 0
    assert_allclose(optimal_step(scale * mass, margins), step, rtol=1e-13)


@pytest.mark.parametrize("error", [1e-300, 1e-30, 1e-12])
def test_tiny_masses_of_errors(error):
    mass = np.array([[0.5, error, 0], [0, 0.3, 2 * error], [error, 0, 0.2]])
    margins = cost_margins(COSTS)
    assert_is_minimiser(optimal_step(mass, margins), mass, margins)
    assert not is_perfect(mass, margins)


def test_costs_of_very_different_sizes():
    margins = cost_margins([[0, 1e6, 1], [1e-12, 0, 1e-12], [1, 1e-6, 0]])
    mass = np.array([[1e-6, 1e-300, 1e-9], [1e-3, 0.9, 1e-300], [1e-5, 1e-4, 0.1]])
    assert_is_minimiser(optimal_step(mass, margins), mass, margins)


def test_perfect_learner_gets_a_finite_step():
    margins = cost_margins(COSTS)
    mass = np.diag([0.5, 0.3, 0.2])
    step = optimal_step(mass, margins)
    spread = mass * (1 - 1e-10) + 1e-10 / 6 * (margins > 0)
    assert is_perfect(mass, margins)
    assert 0 < step < np.inf
    assert_allclose(step, optimal_step(spread, margins), rtol=1e-12)


def test_free_mistakes_do_not_spoil_a_perfect_learner():
    margins = cost_margins([[0, 0, 7], [2, 0, 3], [1, 4, 0]])
    mass = np.array([[0.3, 0.2, 0], [0, 0.3, 0], [0, 0, 0.2]])
    assert is_perfect(mass, margins)
    assert 0 < optimal_step(mass, margins) < np.inf


def test_learner_that_is_always_wrong():
    margins = cost_margins(COSTS)
    mass = np.array([[0, 0.2, 0.3], [0.1, 0, 0.1], [0.2, 0.1, 0]])
    step = optimal_step(mass, margins)
    spread = mass * (1 - 1e-10) + 1e-10 / 3 * np.eye(3)
    assert not is_perfect(mass, margins)
    assert -np.inf < step < 0
    assert_allclose(step, optimal_step(spread, margins), rtol=1e-12)


def test_step_of_constant_learners_has_the_sign_opposite_to_the_slope_at_zero():
    margins = cost_margins(COSTS)
    always_class_0 = np.array([[0.2, 0, 0], [0.5, 0, 0], [0.3, 0, 0]])
    assert (always_class_0 * margins).sum() < 0 < optimal_step(always_class_0, margins)
    always_class_2 = np.array([[0, 0, 0.2], [0, 0, 0.5], [0, 0, 0.3]])
    assert (always_class_2 * margins).sum() > 0 > optimal_step(always_class_2, margins)


@pytest.mark.parametrize(
    "mass",
    [np.zeros((3, 3)), np.full((3, 3), 0.1), np.array([[0, 0, 0], [0, 0, 0.4], [0, 0, 0]])],
    ids=["no mass", "balanced", "only free mistakes"],
)
def test_step_is_zero_where_the_loss_is_flat(mass):
    margins = cost_margins([[0, 1, 2], [2, 0, 0], [1, 4, 0]])
    assert optimal_step(mass, margins) == 0
    assert not is_perfect(mass, margins)


def test_margins_of_one_sign_are_refused():
    with pytest.raises(ValueError, match="one sign only"):
        optimal_step(np.eye(2), -np.eye(2))


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ([[-1e290, 1e290], [1e-290, -1e-290]], "span too many orders of magnitude: reduce"),
        ([[-1e-320, 1e-320], [1e-320, -1e-320]], "costs are too small .*: multiply them"),
    ],
)
def test_margins_that_give_no_step(margins, message):
    with pytest.raises(ValueError, match=message):
        optimal_step([[0.4, 0.1], [0.1, 0.4]], margins)


def test_margins_without_weight_may_be_far_larger():
    mass = [[0.0, 0.0], [0.1, 0.4]]
    step = optimal_step(mass, [[-1.0, 1.0], [1e-305, -1e-305]])
    assert_allclose(step, 1e305 * optimal_step(mass, [[-1.0, 1.0], [1.0, -1.0]]))


@pytest.mark.parametrize(
    ("y", "predicted", "error"),
    [
        ([0, 1, 1], [0, 1], ValueError),
        ([0, 1, 1], [0, 1, 2], ValueError),
        ([0, 1, 1], [0, 1, -1], ValueError),
        ([0, 1, 1], [0.0, 1.0, 1.0], TypeError),
    ],
)
def test_labels_that_are_no_positions_of_classes(y, predicted, error) -> None:
    with pytest.raises(error, match=r"y(, predicted)? and (predicted|weights)"):
        confusion_weights(y, predicted, np.ones(3), 2)
