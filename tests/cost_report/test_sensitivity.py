"""Sensitivity is that of deciding anew."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.cost_report.sensitivity import shift
from badacost.costs import minimum_cost_decision
from tests.cost_report.samples import COSTS


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_sensitivity_is_that_of_deciding_anew(factor) -> None:
    rng = np.random.default_rng(1)
    beliefs = rng.dirichlet(np.ones(3), size=400)
    truth = rng.integers(3, size=400)
    shifted = shift(beliefs, COSTS, truth, factor)
    before = minimum_cost_decision(beliefs, COSTS)
    for i, j in np.ndindex(3, 3):
        costs = COSTS.copy()
        costs[i, j] *= factor
        after = minimum_cost_decision(beliefs, costs)
        assert shifted.changed[i, j] == (after != before).mean()
        assert shifted.mistakes[i, j] == ((after == j) & (truth == i)).sum()
    assert (shifted.changed > 0).sum() == 6, "the diagonal is zero"
