"""Real AdaBoost for two classes: leaves hold half the log-odds of the second one."""

from __future__ import annotations

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost._utils.parallel import exact_sum
from badacost.boosting.reweighting import TreeLearner
from badacost.boosting.stagewise import Stage

_MAX_LOG_ODDS = 4.0
_MIN_LOG_LOSS = float(np.log(1e-40))


class RealDescent:
    """The `Descent` of Real AdaBoost; both classes have the same weight in the beginning."""

    def __init__(self, learner: TreeLearner, *, seed: int):
        self._learner, self._seed = learner, seed
        self._signs = np.where(learner.y == 0, -1.0, 1.0)
        self.log_weights = -np.log(2.0 * np.bincount(learner.y, minlength=2)[learner.y])

    @property
    def weights(self) -> FloatArray:
        """Weights of the samples, summing to one."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / exact_sum(weights)

    def fit(self, n_done: int) -> Stage:
        """Grow a tree; a stage without one once the classes are separated."""
        largest = float(self.log_weights.max())
        weights = np.exp(self.log_weights - largest)
        total = exact_sum(weights)
        if largest + np.log(total) < _MIN_LOG_LOSS:
            return Stage([], [], [], np.empty((0, 1)), "useless")
        seed = int(np.random.default_rng([self._seed, n_done]).integers(2**63))
        costs = 1.0 - np.eye(2)
        tree, class_weights, leaves = self._learner.grow(weights / total, costs, None, seed)
        with np.errstate(divide="ignore"):
            odds = 0.5 * np.diff(np.log(class_weights), axis=1)
        table = np.clip(odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        return Stage([tree], [1.0], [leaves], table)

    def advance(self, stage: Stage) -> None:
        """Change the weights."""
        self.log_weights = self.log_weights - self._signs * stage.table[stage.rows[0], 0]
