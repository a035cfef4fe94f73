"""How decisions of minimum expected cost change with one cost, probabilities as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Positions
from badacost.costs.matrix import expected_costs


@dataclass(frozen=True, eq=False)
class Shift:
    """What happens when one cost is multiplied, for each cost.

    `changed`, (K, K), is the share of the decisions that change; `mistakes`, (K, K), how often the
    mistake of that cost is made then.
    """

    changed: FloatArray
    mistakes: NDArray[np.int64]


def shift(probabilities: FloatArray, costs: FloatArray, truth: Positions, factor: float) -> Shift:
    """Multiply each cost ``C[truth, prediction]`` in turn by a factor; the others stay.

    The cost of being right, on the diagonal, stays too.
    """
    charges, rows = expected_costs(probabilities, costs), np.arange(len(probabilities))
    before = charges.argmin(axis=1)
    changed, mistakes = np.zeros(costs.shape), np.zeros(costs.shape, np.int64)
    for j in range(len(costs)):
        others = charges.copy()
        others[:, j] = np.inf
        best_other = others.argmin(axis=1)
        other_charge = others[rows, best_other]
        for i in range(len(costs)):
            extra = (factor - 1.0) * costs[i, j] if i != j else 0.0
            own_charge = charges[:, j] + extra * probabilities[:, i]
            # As for argmin, the lower class has a tie.
            wins = (own_charge < other_charge) | ((own_charge == other_charge) & (j < best_other))
            changed[i, j] = (np.where(wins, j, best_other) != before).mean()
            mistakes[i, j] = (wins & (truth == i)).sum()
    return Shift(changed, mistakes)
