"""
The family on one small problem
===============================

Nine boosting algorithms and a recipe, each with its own idea of what a cost is: none, one for each
class, or one for each kind of mistake. The picture shows what they make of the same points.
"""

# %%
# Three clouds that overlap. Costs are ``C[truth, prediction]``: class 2 is expensive to overlook,
# and more expensive to take for class 0 than for class 1.
import time

import matplotlib.pyplot as plt
import numpy as np

from badacost import BAdaCostClassifier, MinimumCostClassifier
from badacost.costs import minimum_cost_decision
from badacost.family import (
    AdaBoostM1Classifier,
    AdaC2M1Classifier,
    CostGeneralizedAdaBoostClassifier,
    CSAdaBoostClassifier,
    LpCSBClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
)
from badacost.metrics import average_cost
from badacost.plotting import DecisionRegionsDisplay

centres = np.array([[-1.2, 0.0], [1.2, 0.0], [0.0, 1.8]])
costs = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [10.0, 3.0, 0.0]])


def draw_points(n_points, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_points)
    return centres[y] + rng.standard_normal((n_points, 2)), y


X, y = draw_points(600, seed=0)
X_test, y_test = draw_points(10_000, seed=1)

# %%
# All have 100 trees of depth 2 and are otherwise as they come. ``AdaC2M1Classifier`` reduces the
# matrix to one cost for each class. The first three know no costs at all; the last is one of
# them with minimum expected cost on top.
trees = {"n_estimators": 100, "max_depth": 2}
models = {
    "AdaBoost.M1": AdaBoostM1Classifier(**trees),
    "SAMME": SAMMEClassifier(**trees),
    "PIBoost": PIBoostClassifier(**trees),
    "AdaC2.M1": AdaC2M1Classifier(costs, **trees),
    "Lp-CSB": LpCSBClassifier(costs, random_state=0, **trees),
    "MultiBoost": WangMultiBoostClassifier(costs, random_state=0, **trees),
    "BAdaCost, margin": BAdaCostClassifier(costs, **trees),
    "BAdaCost, bayes": BAdaCostClassifier(costs, decision="bayes", **trees),
    "SAMME, minimum expected cost": MinimumCostClassifier(SAMMEClassifier(**trees), costs),
}
print(f"{'':28}{'cost':>7}{'mistakes':>10}{'fit':>9}")
for name, model in models.items():
    start = time.perf_counter()
    given = model.fit(X, y).predict(X_test)
    seconds = time.perf_counter() - start
    paid = average_cost(y_test, given, costs)
    print(f"{name:28}{paid:7.3f}{np.mean(given != y_test):10.1%}{seconds:7.2f} s")
density = np.exp(-0.5 * ((X_test[:, None] - centres) ** 2).sum(axis=2))
best = minimum_cost_decision(density / density.sum(axis=1, keepdims=True), costs)
print(f"{'the true probabilities':28}{average_cost(y_test, best, costs):7.3f}")

# %%
# The cost-blind ones draw the boundaries in the middle; the others leave class 2 more room, and
# AdaC2.M1, which multiplies the costs in again in every round, leaves the others none. Times are of
# one fit, and the first ones include loading compiled code: an order of magnitude, no more.
figure, axes = plt.subplots(
    3, 3, figsize=(12, 10.5), layout="constrained", sharex=True, sharey=True
)
DecisionRegionsDisplay.compare(
    models, X_test, y_test, costs, max_samples=150, grid_resolution=120, axes=axes
)

# %%
# Two algorithms are for two classes only. Here class 2 against the rest: 4 to overlook it, 1 for a
# false alarm. For two classes BAdaCost is cost-sensitive AdaBoost.
two_costs = [[0.0, 1.0], [4.0, 0.0]]
for model in (
    CSAdaBoostClassifier(two_costs, **trees),
    CostGeneralizedAdaBoostClassifier(two_costs, **trees),
    BAdaCostClassifier(two_costs, **trees),
):
    given = model.fit(X, y == 2).predict(X_test)
    paid = average_cost(y_test == 2, given, two_costs)
    print(f"{type(model).__name__:36}{paid:7.3f}")
figure.savefig("the_family.png", dpi=120)
print("\nThe picture is in the_family.png")
