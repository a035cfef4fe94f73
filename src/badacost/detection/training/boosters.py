"""Boosters of detection forests: binned windows in, trees out, one at a time.

`cost_booster` grows the label trees of BAdaCost (and of SAMME, with 0|1 costs) for the background
and all views together; `real_booster` the real-valued trees of AdaBoost for one view against the
background; `object_booster` those of CostBoost for objects of all views against the background.
Forest and state of the windows are all that a booster needs to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from badacost._utils.arrays import FloatArray, Labels
from badacost._utils.parallel import Threads, exact_sum
from badacost.backends.shards import ShardedData
from badacost.boosting.cross_fit import CrossFit
from badacost.boosting.folds import Fold
from badacost.boosting.reweighting import Reweighting, Rule, ShardedReweighting, TreeLearner
from badacost.boosting.stagewise import Rounds, Stage, join_stages
from badacost.costs import scale_costs
from badacost.detection.training.real_adaboost import RealDescent
from badacost.loss import cost_margins
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Forest
from badacost.tree.grower import Growth, TreeGrower

BACKGROUND = 0
_L2 = 1.0  # of the leaves of CostBoost
_MIN_HESSIAN = 1.0
Resumed = tuple[Forest, FloatArray]  # forest and state of an earlier booster
Place = Callable[[BinnedData, Labels, FloatArray, Threads], ShardedData]


class Booster:
    """Grows a forest tree by tree; its table has a column for each view, or one for all of them.

    `scored` turns the table of a stage, and the number of trees before it, into these columns.
    """

    def __init__(
        self,
        descent: Reweighting | RealDescent | CrossFit,
        n_features: int,
        scored: Callable[[FloatArray, int], FloatArray] | None = None,
        resumed: Resumed | None = None,
    ):
        self._descent, self._n_features, self._scored = descent, n_features, scored
        earlier = []
        if resumed is not None:
            forest, state = resumed
            if isinstance(descent, CrossFit):
                descent.resume(state)
            else:
                descent.log_weights = state.copy()
            earlier = [
                Stage([tree], [step], [], forest.table)
                for tree, step in zip(forest.trees(), forest.tree_weights.tolist(), strict=True)
            ]
        self._rounds = Rounds(descent, earlier)

    @property
    def state(self) -> FloatArray:
        """What boosting knows of the windows: logarithms of their weights, or their scores."""
        descent = self._descent
        return descent.state if isinstance(descent, CrossFit) else descent.log_weights

    @property
    def n_trees(self) -> int:
        """Number of trees so far."""
        return len(self._rounds.stages)

    def grow(self) -> bool:
        """Add a tree; False if no further one is worth adding."""
        n_before = self.n_trees
        stage = self._rounds.fit()
        if stage is None:
            return False
        self._rounds.add(stage)
        if self._scored is not None:
            table = self._scored(stage.table, n_before)
            self._rounds.stages[-1] = replace(self._rounds.stages[-1], table=table)
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
    place: Place = ShardedData.local,
) -> Booster:
    """BAdaCost: label trees for the background, class 0, and the views.

    Costs ``C[truth, prediction]`` are scaled as the authors do. A vote for a label adds
    ``c_background - c_view`` to each view. `place` puts the windows where trees are grown.
    """
    margins = cost_margins(scale_costs(costs, "reference"))
    weight = np.ones(len(y))
    windows = place(data, y, weight, threads)
    settings: dict[str, Any] = {
        "learning_rate": learning_rate,
        "subsample": 1.0,
        "seed": seed,
        "random": growth.n_drawn is not None,
    }
    descent: Reweighting
    if windows.is_local:
        learner = TreeLearner(TreeGrower(data, growth, threads), y, len(costs), "gini")
        descent = Reweighting(learner, y, weight, Rule(margins), **settings)
    else:
        descent = ShardedReweighting(
            windows, growth, "gini", weight, Rule(margins), threads=threads, **settings
        )
    table = margins[BACKGROUND][:, None] - margins[BACKGROUND + 1 :].T
    return Booster(descent, len(data.bins), lambda *_: table, resumed)


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


def object_booster(
    data: BinnedData,
    y: Labels,
    *,
    growth: Growth,
    learning_rate: float,
    odds: float,
    seed: int,
    threads: Threads,
    resumed: Resumed | None = None,
    place: Place = ShardedData.local,
) -> Booster:
    """CostBoost: objects of all views, class 1, against the background, class 0.

    All objects together weigh `odds` times as much as the background. Leaves hold log-odds. `place`
    puts the windows where trees are grown.
    """
    n_objects = max(1, int((y == 1).sum()))
    weight = np.where(y == 1, odds * max(1, len(y) - n_objects) / n_objects, 1.0)
    total = exact_sum(weight)
    weight = weight / total * max(total, float(len(y)))  # a mean of at least one
    everything = Fold(np.arange(len(y)), np.empty(0, np.intp))
    descent = CrossFit(
        place(data, y, weight, threads),
        growth,
        [everything],
        n_classes=2,
        l2=_L2,
        min_hessian=_MIN_HESSIAN,
        learning_rate=learning_rate,
        n_directions=1,
        subsample=1.0,
        seed=seed,
        threads=threads,
    )
    prior = (descent.log_prior[1] - descent.log_prior[0]) / learning_rate

    def scored(table: FloatArray, n_before: int) -> FloatArray:
        log_odds = table[:, :1] - table[:, 1:]
        return log_odds + prior if n_before == 0 else log_odds

    return Booster(descent, len(data.bins), scored, resumed)
