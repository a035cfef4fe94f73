"""Explanations of cost matrices: each sentence is checked against decisions of least cost."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from badacost.costs import (
    as_cost_matrix,
    costs_from_class_weights,
    explain_costs,
    labelled_costs,
    minimum_cost_decision,
    ordinal_costs,
    zero_one_costs,
)

COSTS = {"healthy": {"sick": 200}, "sick": {"healthy": 5000}}


def explained(*arguments, **options):
    """Return an explanation in one line."""
    return " ".join(explain_costs(*arguments, **options).split())


def test_two_classes():
    text = explained(COSTS)
    assert "most expensive mistake is predicting 'healthy' where the truth is 'sick': 5000." in text
    assert "cheapest mistake is predicting 'sick' where the truth is 'healthy': 200; the" in text
    assert "costs 25 times as much" in text
    assert "'healthy' is predicted if its probability exceeds 0.962, 'sick' if its probab" in text
    assert "exceeds 0.0385." in text


def test_a_transposed_matrix_reads_differently():
    matrix = as_cost_matrix(COSTS, list(COSTS))
    assert explained(matrix, classes=COSTS) == explained(COSTS)
    transposed = explained(matrix.T, classes=COSTS)
    assert (
        "most expensive mistake is predicting 'sick' where the truth is 'healthy': 5000."
        in transposed
    )


def test_table_is_aligned():
    lines = explain_costs(COSTS).splitlines()[:4]
    assert lines == [
        "Costs of 2 classes, rows are the truth, columns the prediction:",
        "         healthy  sick",
        "healthy        0   200",
        "sick        5000     0",
    ]
    assert "0.25" not in explain_costs(0.25 * ordinal_costs(11)).splitlines()[1]


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("length", [3, 20, 70])
def test_lines_are_as_wide_as_asked_for(width, length):
    names = [f"{letter}{'x ' * length}y" for letter in "abcd"]
    lines = explain_costs(ordinal_costs(4, under=3), classes=names, width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_columns_are_numbered_where_their_names_do_not_fit():
    costs = labelled_costs([[0, 2], [3, 0]], ["a" * 50, "b" * 50])
    assert explain_costs(costs).splitlines()[1:4] == [
        " " * 32 + "  1  2",
        f"1 {'a' * 30}  0  2",
        f"2 {'b' * 30}  3  0",
    ]
    assert explain_costs(costs, width=160).splitlines()[1].endswith("b" * 50)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        (
            zero_one_costs(3),
            "Every mistake costs 1, as with 0|1 costs: the cheapest prediction is the",
        ),
        (3 * zero_one_costs(2), "Every mistake costs 3, as with 0|1 costs: the cheapest"),
        (costs_from_class_weights([1, 2, 5]), "these costs are class weights."),
        ([[1, 2, 2], [4, 3, 4], [6, 6, 1]], "these costs are class weights."),
        ([[1, 2], [1, 0]], "The diagonal is not zero"),
        (ordinal_costs(3), "to the most probable class, whatever these costs: use decision="),
        (ordinal_costs(3, under=5), "probability divided by these numbers: 0 0."),
        (costs_from_class_weights([1, 2, 5]), "Both rules of BAdaCost tend"),
        ([[0, 1, 0], [2, 0, 0], [1, 1, 0]], "For BAdaCost these costs give no probabilities: for"),
        (
            [[0, 1, 0], [2, 0, 0], [1, 1, 0]],
            "Free mistakes: predicting 2 where the truth is 0, pred",
        ),
        (
            [[0, 1, 0], [2, 0, 0], [1, 1, 0]],
            "1 is never the only cheapest prediction: 2 never costs",
        ),
        (
            [[0, 0, 1], [1, 0, 1], [5, 5, 0]],
            "0 is never the only cheapest prediction: 1 never costs",
        ),
        ([[0, 1, 8], [1, 0, 1], [8, 1, 0]], "0 if P(0) exceeds 0.875, 2 if it is below 0.125, and"),
        ([[0, 1, 8], [1, 0, 1], [8, 1, 0]], "between them others, such as 1."),
        (ordinal_costs(20, under=3), "and 180 pairs nearer to one half."),
        ([[0, 1e-8], [1, 0]], "0 is predicted if its probability exceeds 1 - 1e-08, 1 if its"),
    ],
)
def test_sentences(costs, expected):
    assert expected in explained(costs)


@pytest.mark.parametrize(
    ("costs", "unexpected"),
    [
        (zero_one_costs(3), "Where only two classes"),
        (ordinal_costs(3, under=2), "0|1 costs"),
        (ordinal_costs(3, under=2), "class weights"),
        (ordinal_costs(3, under=2), "never"),
        (COSTS, "diagonal is not"),
        ([[0, 0, 1], [1, 0, 3], [5, 7, 0]], "0 is never"),
    ],
)
def test_sentences_that_would_be_wrong(costs, unexpected):
    assert unexpected not in explained(costs)


def test_an_answer_that_only_two_others_together_beat():
    # Where the truth is 0, answers 1 and 2 are free too; 0 is the compromise between them.
    costs = [[0, 0, 0, 1], [2, 0, 6, 3], [2, 6, 0, 3], [1, 1, 1, 0]]
    assert "0 is never" not in explained(costs)
    costs = [[0, 0, 0, 1], [4, 0, 6, 3], [4, 6, 0, 3], [1, 1, 1, 0]]
    assert "0 is never the only cheapest prediction." in explained(costs)


cost_matrices = st.integers(2, 5).flatmap(
    lambda n: arrays(np.float64, (n, n), elements=st.sampled_from([0.0, 0.5, 1, 2, 3, 10]))
)


def usable(matrix):
    """Return the matrix with a zero diagonal, and a price for every class."""
    np.fill_diagonal(matrix, 0.0)
    free = ~matrix.any(axis=1)
    matrix[free] = 1.0
    np.fill_diagonal(matrix, 0.0)
    return matrix


@given(cost_matrices, st.integers(0, 2**32 - 1))
def test_no_answer_that_is_said_to_be_never_cheapest_is(matrix, seed):
    matrix = usable(matrix)
    never = {int(k) for k in re.findall(r"(\d) is never the only", explained(matrix))}
    beliefs = np.random.default_rng(seed).dirichlet(np.ones(len(matrix)) / 2, size=500)
    expected = beliefs @ matrix
    for k in never:
        others = np.delete(expected, k, axis=1).min(axis=1)
        assert (expected[:, k] >= others - 1e-9).all()


@given(cost_matrices)
def test_thresholds_are_where_decisions_change(matrix):
    matrix = usable(matrix)
    text = explained(matrix)
    if len(matrix) == 2:
        return
    for i, p, j in re.findall(r"(\d) if P\(\d\) exceeds ([\d.e-]+), (?:never )?(\d)", text):
        truths = int(i), int(j)
        for step, is_answered in ((0.002, True), (-0.002, False)):
            share = float(p) + step
            if not 0 < share < 1:
                continue
            belief = np.zeros((1, len(matrix)))
            belief[0, truths] = share, 1 - share
            expected = (belief @ matrix)[0]
            assert (expected[truths[0]] <= expected.min() + 1e-9) == is_answered


@given(cost_matrices.map(usable), st.floats(1e-3, 1e3))
def test_scale_and_prices_of_being_right_change_no_decision(matrix, scale):
    part = re.compile(r"Where only two classes.*?(?=With all)|\d is predicted.*?(?=With all)")
    shifted = matrix + np.arange(1.0, 1.0 + len(matrix))[:, np.newaxis]
    sentences = part.findall(explained(matrix))
    assert part.findall(explained(2.0 ** round(np.log2(scale)) * matrix)) == sentences
    assert part.findall(explained(shifted)) == sentences


@pytest.mark.parametrize(
    ("priors", "expected"),
    [
        (
            None,
            "With all classes equally probable, and nothing else known, the cheapest pre",
        ),
        (
            [970, 30],
            "With these priors, and nothing else known, the cheapest prediction is 'healthy': 150",
        ),
        ({"sick": 0.03, "healthy": 0.97}, "the cheapest prediction is 'healthy': 150 a decision."),
        ({"sick": 1}, "the cheapest prediction is 'sick': 0 a decision."),
        ([25, 1], "the cheapest predictions are 'healthy', 'sick': 192.3 a decision."),
    ],
)
def test_priors(priors, expected):
    assert expected in explained(COSTS, priors=priors)


def test_constant_answer_is_the_decision_of_least_cost():
    matrix = ordinal_costs(4, under=3)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    best = minimum_cost_decision(shares[np.newaxis], matrix)[0]
    found = re.search(r"cheapest prediction is (\d): (\S+) a", explained(matrix, priors=shares))
    assert int(found[1]) == best
    assert_allclose(float(found[2]), (shares @ matrix)[best], rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": 3}, "costs are of type int"),
        ({"costs": None}, "costs are of type NoneType"),
        (
            {"costs": csr_array(np.ones((2, 2)))},
            "costs are of type csr_array: give None, a K x K array",
        ),
        ({"costs": [[0, -1], [1, 0]]}, "is -1.0: replace it by a number from 0"),
        ({"costs": COSTS, "priors": [1, 2, 3]}, "priors has shape (3,)"),
        ({"costs": COSTS, "priors": [1, -1]}, "none of them negative"),
        ({"costs": COSTS, "priors": [0, 0]}, "finite and none"),
        ({"costs": COSTS, "priors": [np.nan, 1]}, "finite and none"),
        ({"costs": COSTS, "priors": ["x", "y"]}, "priors must be a dense array of real numbers"),
        (
            {"costs": COSTS, "priors": np.ones(2, complex)},
            "priors must be a dense array of real numbers",
        ),
        ({"costs": COSTS, "width": 10}, "width must be"),
        ({"costs": COSTS, "priors": {"ill": 1}}, "labels ['ill'] in priors are not among"),
    ],
)
def test_what_cannot_be_explained(options, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        explain_costs(**options)


def test_labels_cannot_write_to_the_terminal():
    text = explain_costs(labelled_costs([[0, 1], [2, 0]], ["\x1b[31mred", "b\nc"]))
    assert all(line.isprintable() for line in text.splitlines())
    assert "'b\\nc'" in text


def test_pairs_of_many_classes_are_not_compared() -> None:
    """Each pair would be compared with all other classes."""
    costs = np.ones((101, 101))
    np.fill_diagonal(costs, 0.0)
    costs[0, 1], costs[1, 2:40] = 5.0, 0.0
    text = " ".join(explain_costs(costs).split())
    assert "Thresholds between classes are not listed for more than 100 classes." in text
    assert "Where only two classes" not in text
    assert "and 28 more" in text  # free mistakes
    assert "Where only two classes" in " ".join(explain_costs(costs[:100, :100]).split())
