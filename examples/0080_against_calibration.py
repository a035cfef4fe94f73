"""
Against calibrated gradient boosting
====================================

The strongest rival of boosting under costs is a recipe: a good classifier, calibrated
probabilities, and minimum expected cost. This example measures both, with intervals, on a data set
where BAdaCost keeps up and on one where it loses.
"""

# %%
# ``MinimumCostClassifier`` is the recipe for any classifier. All of them train on the same half of
# the data and decide about the other half.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from badacost import BAdaCostClassifier, MinimumCostClassifier
from badacost.costs import costs_from_class_weights, ordinal_costs


def contestants(costs, depth):
    gradient_boosting = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=8, random_state=0
    )
    forest = RandomForestClassifier(n_estimators=100, random_state=0)
    boosting = {"n_estimators": 100, "max_depth": depth}
    return {
        "gradient boosting, cost-blind": gradient_boosting,
        "gradient boosting, recipe": MinimumCostClassifier(
            gradient_boosting, costs, calibration="temperature", cv=2, random_state=0
        ),
        "random forest, recipe": MinimumCostClassifier(
            forest, costs, calibration="temperature", cv=2, random_state=0
        ),
        "BAdaCost, margin rule": BAdaCostClassifier(costs, **boosting),
        "BAdaCost, bayes rule": BAdaCostClassifier(costs, decision="bayes", **boosting),
        "BAdaCost with 0|1 costs, recipe": MinimumCostClassifier(
            BAdaCostClassifier(**boosting), costs
        ),
    }


# %%
# Costs are ``C[truth, prediction]``. Diabetes: four grades, too low costs five times as much as too
# high; classes overlap. Digits: mistakes on an eight cost twenty, others one; classes are all but
# separate.
diabetes, digits = load_diabetes(), load_digits()
grade = np.digitize(diabetes.target, np.quantile(diabetes.target, [0.25, 0.5, 0.75]))
eights = costs_from_class_weights([20.0 if digit == 8 else 1.0 for digit in range(10)])
problems = {
    "diabetes: classes overlap": (diabetes.data, grade, ordinal_costs(4, under=5.0), 1),
    "digits: classes are all but separate": (digits.data, digits.target, eights, 4),
}


def charged(X, y, costs, depth):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
    models = contestants(costs, depth)
    return {n: costs[y_test, m.fit(X_train, y_train).predict(X_test)] for n, m in models.items()}


with threadpool_limits(1):  # on data this small, threads wait for each other
    paid = {title: charged(*problem) for title, problem in problems.items()}

# %%
# Intervals come from the bootstrap: the test samples are drawn again, with repetition, two thousand
# times, the same ones for all models. The last column is the difference to the recipe with gradient
# boosting; an interval that holds zero says that this half of the data cannot tell them apart.
rng = np.random.default_rng(0)
summary = {}
for title, costs_of in paid.items():
    n = len(next(iter(costs_of.values())))
    draws = rng.integers(n, size=(2000, n))
    rival = costs_of["gradient boosting, recipe"]
    summary[title] = {}
    print(f"\n{title}\n{'':34}{'cost':>6}{'95 %':>16}{'minus the recipe':>22}")
    for name, costs_paid in costs_of.items():
        low, high = np.quantile(costs_paid[draws].mean(axis=1), [0.025, 0.975])
        less, more = np.quantile((costs_paid - rival)[draws].mean(axis=1), [0.025, 0.975])
        summary[title][name] = costs_paid.mean(), low, high
        print(
            f"{name:34}{costs_paid.mean():6.2f}{low:9.2f} to {high:.2f}{less:14.2f} to {more:.2f}"
        )

# %%
# Where classes overlap, the bayes rule and the recipe are equal; the margin rule may be a little
# behind. Where classes are separate, BAdaCost under the costs is worse even than gradient boosting
# without costs; with 0|1 costs, followed by minimum expected cost, it is as good again. A
# random forest with the recipe is the best or among the best on both.
figure, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained", sharey=True)
for axis, (title, rows) in zip(axes, summary.items(), strict=True):
    for place, (name, (mean, low, high)) in enumerate(rows.items()):
        colour = "#009e73" if "BAdaCost" in name else "0.4"
        axis.errorbar(
            mean, place, xerr=[[mean - low], [high - mean]], fmt="o", color=colour, capsize=3
        )
        axis.text(mean, place - 0.18, f"{mean:.2f}", ha="center", va="bottom", fontsize=8)
    axis.set(title=title, xlabel="average cost per decision, with 95 % interval")
    axis.set_yticks(range(len(rows)), rows)
    axis.set_ylim(len(rows) - 0.5, -0.7)
    axis.set_xlim(left=0)
    axis.spines[["top", "right"]].set_visible(False)
figure.savefig("against_calibration.png", dpi=120)
print("\nThe picture is in against_calibration.png")
