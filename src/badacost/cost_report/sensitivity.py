"""How decisions of least expected cost change with one price, probabilities as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from badacost.cost_report.evidence import FloatArray, Positions


@dataclass(frozen=True, eq=False)
class Shift:
    """What happens when one price is multiplied, for each price, (K, K).

    Attributes
    ----------
    changed : ndarray of shape (K, K)
        Share of the decisions that change.
    mistakes : ndarray of shape (K, K)
        How often that very mistake is made then.

    Examples
    --------
    >>> import numpy as np
    >>> Shift(np.zeros((2, 2)), np.zeros((2, 2), int)).changed.max()
    np.float64(0.0)
    """

    changed: FloatArray
    mistakes: NDArray[np.int64]


def shift(probabilities: FloatArray, costs: FloatArray, truth: Positions, factor: float) -> Shift:
    """Multiply each price in turn by a factor; the others stay.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, K)
        What is probable.
    costs : ndarray of shape (K, K)
        ``C[truth, prediction]``.
    truth : ndarray of shape (n_samples,)
        Positions of the true classes.
    factor : float
        The factor.

    Returns
    -------
    Shift
        What happens then. The price of being right, on the diagonal, stays.

    Examples
    --------
    >>> import numpy as np
    >>> beliefs = np.array([[0.7, 0.3], [0.2, 0.8]])
    >>> shift(beliefs, np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([1, 1]), 2.0).changed
    array([[0. , 0. ],
           [0.5, 0. ]])
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
