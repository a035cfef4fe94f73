"""Boosters of detection forests: binned windows in, trees out, one at a time.

`cost_booster` grows the label trees of BAdaCost (and of SAMME, with 0|1 costs) for the background
and all views together; `real_booster` the real-valued trees of AdaBoost for one view against the
background. Forest and weights of the windows are all that a booster needs to go on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from badacost.arrays import FloatArray, Labels
from badacost.boosting.learners import TreeLearner
from badacost.boosting.real_adaboost import RealDescent
from badacost.boosting.reweighting import Reweighting, Rule
from badacost.boosting.rounds import Rounds, Stage, join_stages
from badacost.costs import scale_costs
from badacost.loss import cost_margins
from badacost.threads import Threads
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Forest
from badacost.tree.grower import Growth, TreeGrower

BACKGROUND = 0
Resumed = tuple[Forest, FloatArray]  # forest and logarithms of the weights of an earlier booster


class Booster:
    """Grows a forest tree by tree; its table has a column for each view.

    `table` turns the scores of answers, if these are labels, into those of the views.
    """

    def __init__(
        self,
        descent: Reweighting | RealDescent,
        n_features: int,
        table: FloatArray | None = None,
        resumed: Resumed | None = None,
    ):
        self._descent, self._n_features, self._table = descent, n_features, table
        earlier = []
        if resumed is not None:
            forest, log_weights = resumed
            descent.log_weights = log_weights.copy()
            earlier = [
                Stage([tree], [step], [], forest.table)
                for tree, step in zip(forest.trees(), forest.tree_weights.tolist(), strict=True)
            ]
        self._rounds = Rounds(descent, earlier)

    @property
    def log_weights(self) -> FloatArray:
        """Logarithms of the weights of the windows, up to a constant."""
        return self._descent.log_weights

    @property
    def n_trees(self) -> int:
        """Number of trees so far."""
        return len(self._rounds.stages)

    def grow(self) -> bool:
        """Add a tree; False if no further one is worth adding."""
        stage = self._rounds.fit()
        if stage is None:
            return False
        self._rounds.add(stage)
        if self._table is not None:
            self._rounds.stages[-1] = replace(self._rounds.stages[-1], table=self._table)
        return stage.reason is None

    def forest(self) -> Forest:
        """The trees so far."""
        return join_stages(self._rounds.stages, self._n_features)


def cost_booster(
    data: BinnedData,
    y: Labels,
    costs: FloatArray,
    *,
    growth: Growth,
    learning_rate: float,
    seed: int,
    threads: Threads,
    resumed: Resumed | None = None,
) -> Booster:
    """BAdaCost: label trees for the background, class 0, and the views.

    Costs ``C[truth, prediction]`` are scaled as the authors do. A vote for a label adds
    ``c_background - c_view`` to each view.
    """
    margins = cost_margins(scale_costs(costs, "reference"))
    descent = Reweighting(
        TreeLearner(TreeGrower(data, growth, threads), y, len(costs), "gini"),
        y,
        np.ones(len(y)),
        Rule(margins),
        learning_rate=learning_rate,
        subsample=1.0,
        seed=seed,
        random=growth.n_drawn is not None,
    )
    table = margins[BACKGROUND][:, None] - margins[BACKGROUND + 1 :].T
    return Booster(descent, len(data.bins), table, resumed)


def real_booster(
    data: BinnedData,
    y: Labels,
    *,
    growth: Growth,
    seed: int,
    threads: Threads,
    resumed: Resumed | None = None,
) -> Booster:
    """Real AdaBoost: leaves hold half the log-odds of the object against the background."""
    learner = TreeLearner(TreeGrower(data, growth, threads), y, 2, "gini")
    return Booster(RealDescent(learner, seed=seed), len(data.bins), None, resumed)
