"""How decisions of minimum expected cost change with one price, probabilities as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Positions


@dataclass(frozen=True, eq=False)
class Shift:
    """What happens when one price is multiplied, for each price.

    `changed`, (K, K), is the share of the decisions that change; `mistakes`, (K, K), how often the
    mistake of that price is made then.
    """

    changed: FloatArray
    mistakes: NDArray[np.int64]


def shift(probabilities: FloatArray, costs: FloatArray, truth: Positions, factor: float) -> Shift:
    """Multiply each price ``C[truth, prediction]`` in turn by a factor; the others stay.

    The price of being right, on the diagonal, stays too.
    """
    charges, rows = probabilities @ costs, np.arange(len(probabilities))
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
