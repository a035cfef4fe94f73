"""Ranks, their tests and their diagram, on the paper's table and on synthetic costs."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from experiments import paper
from experiments.ranking import LEVELS, RankComparison

PRINTED_DIFFERENCES = {0.05: 1.2617, 0.10: 1.1216}  # in section 5.1 of the paper

tables = st.tuples(st.integers(2, 9), st.integers(3, 7)).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(0, 5).map(float))
)


def named(costs, reference=0):
    names = [f"a{i}" for i in range(np.shape(costs)[1])]
    return RankComparison.of(pd.DataFrame(costs, columns=names), names[reference])


def synthetic(n_sets, k, seed=0):
    costs = np.random.default_rng(seed).normal(size=(n_sets, k)) + np.linspace(0, 2, k)
    return named(costs, reference=k // 3)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_table_of_the_paper():
    assert paper.MEANS.shape == (12, 4)
    assert tuple(paper.MEANS.columns) == paper.ALGORITHMS
    others = {"chess": "Lp-CSB", "shuttle": "AdaC2.M1", "cnae9": "MultiBoost"}
    best = paper.MEANS.idxmin(axis=1).to_dict()
    assert best == dict.fromkeys(paper.MEANS.index, "BAdaCost") | others  # the bold numbers


def test_ranks_of_the_paper_are_those_of_scipy():
    comparison = RankComparison.of(paper.MEANS)
    ranks = stats.rankdata(paper.MEANS, axis=1)
    assert_array_equal(comparison.ranks, ranks)
    assert tuple(comparison.average_ranks) == paper.ALGORITHMS
    assert_allclose([*comparison.average_ranks.values()], ranks.mean(axis=0))
    assert_allclose(ranks.sum(axis=0), [40, 35, 28, 17])


def test_omnibus_tests_of_the_paper():
    comparison = RankComparison.of(paper.MEANS)
    assert_allclose(comparison.friedman, stats.friedmanchisquare(*paper.MEANS.to_numpy().T))
    assert comparison.friedman.statistic == pytest.approx(14.9)
    ratio = 11 * 14.9 / (12 * 3 - 14.9)
    assert_allclose(comparison.iman_davenport, (ratio, stats.f.sf(ratio, 3, 33)))


def test_critical_differences_of_the_paper():
    comparison = RankComparison.of(paper.MEANS)
    for alpha, printed in PRINTED_DIFFERENCES.items():
        z = stats.norm.ppf(1 - alpha / 6)
        assert comparison.critical_difference(alpha) == pytest.approx(z * np.sqrt(20 / 72))
        assert round(comparison.critical_difference(alpha), 4) == printed


def test_conclusions_of_the_paper_do_not_follow_from_its_table():
    """The text says: AdaC2.M1 and Lp-CSB worse at both levels, MultiBoost (1.25 behind) at 0.10."""
    comparison = RankComparison.of(paper.MEANS)
    ranks = comparison.average_ranks
    behind = {name: rank - ranks["BAdaCost"] for name, rank in ranks.items()}
    assert behind == pytest.approx(
        {"AdaC2.M1": 23 / 12, "MultiBoost": 18 / 12, "Lp-CSB": 11 / 12, "BAdaCost": 0}
    )
    for alpha in LEVELS:
        assert comparison.significantly_worse(alpha) == ("AdaC2.M1", "MultiBoost")
        assert comparison.significantly_better(alpha) == ()


@pytest.mark.parametrize("reference", paper.ALGORITHMS)
def test_p_values_are_those_of_the_test_against_a_control(reference):
    p_values = RankComparison.of(paper.MEANS, reference=reference).p_values
    expected = scikit_posthocs.posthoc_demsar(
        paper.MEANS, control=reference, p_adjust="bonferroni", to_matrix=False
    )
    assert p_values == pytest.approx(expected[reference].to_dict())
    assert reference not in p_values


@given(tables, st.sampled_from([0.01, 0.05, 0.10, 0.5]))
def test_p_values_agree_with_critical_difference(costs, alpha):
    comparison = named(costs)
    differs = {*comparison.significantly_worse(alpha), *comparison.significantly_better(alpha)}
    assert differs == {name for name, p in comparison.p_values.items() if p <= alpha}


@pytest.mark.parametrize("seed", range(5))
def test_what_differs_among_all_pairs_differs_from_the_reference(seed):
    """Nemenyi's test of all pairs is the stricter one."""
    comparison = synthetic(15, 6, seed)
    all_pairs = scikit_posthocs.posthoc_nemenyi_friedman(comparison.ranks).to_numpy()[2]
    differs = {*comparison.significantly_worse(0.05), *comparison.significantly_better(0.05)}
    strict = {name for name, p in zip(comparison.names, all_pairs, strict=True) if p < 0.05}
    assert strict
    assert strict <= differs


def test_an_algorithm_can_be_better_than_the_reference():
    comparison = RankComparison.of(paper.MEANS, reference="AdaC2.M1")
    assert comparison.significantly_better(0.05) == ("BAdaCost",)
    assert comparison.significantly_worse(0.05) == ()
    assert "| BAdaCost | 1.42 | -1.92 | 0.00083 | better | better |" in comparison.to_markdown()


def test_lower_cost_is_rank_one_and_ties_share_ranks():
    comparison = named([[4.0, 1.0, 9.0], [2.0, 2.0, 0.0], [5.0, 5.0, 5.0]])
    assert_array_equal(comparison.ranks, [[2, 1, 3], [2.5, 2.5, 1], [2, 2, 2]])


@given(tables)
def test_ranks_sum_to_the_same_on_every_set(costs):
    k = costs.shape[1]
    comparison = named(costs)
    assert_array_equal(comparison.ranks.sum(axis=1), k * (k + 1) / 2)
    assert sum(comparison.average_ranks.values()) == pytest.approx(k * (k + 1) / 2)


@given(tables, st.randoms(use_true_random=False))
def test_order_of_sets_changes_nothing(costs, random):
    order = random.sample(range(len(costs)), len(costs))
    assert named(costs[order]).to_dict() == named(costs).to_dict()


@given(tables, st.lists(st.sampled_from([np.exp, np.cbrt, lambda c: 3 * c - 7]), min_size=9))
def test_monotone_transforms_of_sets_change_nothing(costs, transforms):
    changed = [transform(row) for row, transform in zip(costs, transforms, strict=False)]
    assert named(changed).to_dict() == named(costs).to_dict()


@given(tables, st.randoms(use_true_random=False))
def test_order_of_algorithms_changes_nothing_but_the_order(costs, random):
    plain = named(costs)
    order = random.sample(range(len(plain.names)), len(plain.names))
    names = [plain.names[i] for i in order]
    shuffled = RankComparison.of(pd.DataFrame(costs[:, order], columns=names), plain.reference)
    assert shuffled.average_ranks == plain.average_ranks
    assert_allclose(shuffled.friedman, plain.friedman, atol=1e-12)
    assert set(shuffled.significantly_worse(0.1)) == set(plain.significantly_worse(0.1))


@given(tables)
def test_f_version_is_the_analysis_of_variance_of_the_ranks(costs):
    comparison = named(costs)
    ranks, (n, k) = comparison.ranks, costs.shape
    between = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    within = ((ranks - ranks.mean(axis=0)) ** 2).sum()
    statistic, p_value = comparison.iman_davenport
    if within > 1e-12:
        assert statistic == pytest.approx((n - 1) * between / within, abs=1e-9)
    else:
        assert (statistic, p_value) == ((np.inf, 0.0) if between else (0.0, 1.0))


def test_ties_everywhere_are_no_evidence():
    comparison = named(np.ones((4, 3)))
    assert comparison.friedman == (0.0, 1.0)
    assert comparison.iman_davenport == (0.0, 1.0)
    assert comparison.p_values == {"a1": 1.0, "a2": 1.0}


def test_sets_that_agree_are_all_the_evidence_there_can_be():
    comparison = named(np.tile([1.0, 2.0, 3.0], (5, 1)))
    assert comparison.friedman.statistic == pytest.approx(10)
    assert comparison.iman_davenport == (np.inf, 0.0)
    assert comparison.to_dict()["iman_davenport"] == {"statistic": None, "p_value": 0.0}


GOOD = [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]


@pytest.mark.parametrize(
    ("costs", "reference", "message"),
    [
        (GOOD, "BAdaCost", r"reference must be one of .* got 'BAdaCost'"),
        ([[1.0, 2.0]] * 3, "a", "at least 3 algorithms: use scipy.stats.wilcoxon"),
        (GOOD[:1], "a", "at least 2 data sets; got 1"),
        ([[1.0, 2.0, 3.0], [1.0, np.nan, 2.0]], "a", "cost of 'b' on 1 is nan"),
        ([[1.0, 2.0, np.inf], [1.0, 1.0, 2.0]], "a", "cost of 'c' on 0 is inf"),
    ],
)
def test_what_cannot_be_compared(costs, reference, message):
    table = pd.DataFrame(costs, columns=list("abc")[: len(costs[0])])
    with pytest.raises(ValueError, match=message):
        RankComparison.of(table, reference)


@pytest.mark.parametrize("alpha", [0, -0.1, 1.5, np.nan])
def test_levels_are_between_zero_and_one(alpha):
    with pytest.raises(ValueError, match="alpha must be a number greater than 0 and at most 1"):
        named(GOOD).critical_difference(alpha)


def test_ranks_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        named(GOOD).ranks[0, 0] = 7


def test_dictionary_is_json():
    comparison = RankComparison.of(paper.MEANS)
    results = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert results == comparison.to_dict()
    assert (results["reference"], results["n_sets"]) == ("BAdaCost", 12)
    assert results["average_ranks"] == comparison.average_ranks
    assert results["friedman"]["p_value"] == comparison.friedman.p_value
    assert results["critical_differences"]["0.10"] == comparison.critical_difference(0.10)
    assert results["p_values"] == comparison.p_values


def test_markdown_has_a_row_for_each_algorithm_by_rank():
    comparison = synthetic(40, 13)
    rows = [line.split("|")[1:-1] for line in comparison.to_markdown().splitlines()[6:]]
    assert {len(row) for row in rows} == {6}
    order = sorted(comparison.average_ranks, key=comparison.average_ranks.get)
    assert [row[0].strip(" *") for row in rows] == order
    worse = {row[0].strip() for row in rows if row[4].strip() == "worse"}
    assert worse == set(comparison.significantly_worse(0.05))
    assert worse


def boxes_of_labels(ax):
    """Where the names, and the numbers of the axis, lie on the figure."""
    ax.figure.draw_without_rendering()
    texts = [*ax.texts, *ax.get_xticklabels(), ax.xaxis.label]
    return [text.get_window_extent() for text in texts if text.get_text()]


@pytest.mark.parametrize(
    "comparison", [RankComparison.of(paper.MEANS), synthetic(12, 13)], ids=[4, 13]
)
def test_labels_of_the_diagram_do_not_overlap(comparison):
    ax = comparison.plot()
    boxes = boxes_of_labels(ax)
    assert len(boxes) > len(comparison.names) + 3  # names, numbers and the caption
    assert not any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i])
    page = ax.figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes)
    assert all(page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)


@pytest.mark.parametrize("alpha", [0.10, 0.001])
def test_bar_links_what_does_not_differ_from_the_reference(alpha):
    comparison = RankComparison.of(paper.MEANS)
    ax = comparison.plot(alpha=alpha)
    differs = comparison.significantly_worse(alpha)
    linked = {rank for name, rank in comparison.average_ranks.items() if name not in differs}
    bars = [line for line in ax.lines if len(set(line.get_ydata())) == 1]
    assert [set(bar.get_xdata()) for bar in bars] == [linked]


def test_no_bar_when_all_differ_from_the_reference():
    comparison = named(np.tile([1.0, 3.0, 2.0], (30, 1)))
    assert comparison.significantly_worse(0.10) == ("a1", "a2")
    assert not [line for line in comparison.plot().lines if len(set(line.get_ydata())) == 1]


def test_band_reaches_one_critical_difference_around_the_reference():
    comparison = synthetic(40, 9)
    centre, limit = comparison.average_ranks["a3"], comparison.critical_difference(0.05)
    band = comparison.plot(alpha=0.05).patches[0].get_extents()
    ax = plt.gca()
    left, right = ax.transData.inverted().transform(band)[:, 0]
    assert (left, right) == pytest.approx((centre - limit, centre + limit))


def test_diagram_on_given_axes():
    _, axes = plt.subplots(2)
    assert RankComparison.of(paper.MEANS).plot(ax=axes[1]) is axes[1]
    assert not axes[0].texts
    assert len(plt.get_fignums()) == 1
