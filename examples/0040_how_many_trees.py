"""
How many trees?
===============

More trees always fit the training data better, and after a while they fit its noise. The cost on
held-out data shows when to stop, and ``early_stopping=True`` does so.
"""

# %%
# Diabetes patients in four grades of progression; a grade too low costs five times as much as a
# grade too high. A third of them is for testing.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from badacost import BAdaCostClassifier
from badacost.costs import ordinal_costs
from badacost.metrics import average_cost
from badacost.plotting import CostCurveDisplay

X, progression = load_diabetes(return_X_y=True)
grade = np.digitize(progression, np.quantile(progression, [0.25, 0.5, 0.75]))
costs = ordinal_costs(4, under=5.0, over=1.0)  # C[truth, prediction]
X_train, X_test, y_train, y_test = train_test_split(
    X, grade, test_size=1 / 3, stratify=grade, random_state=0
)

# %%
# ``staged_predict`` gives the decisions after each round, ``CostCurveDisplay`` draws their cost.
# Stumps learn slowly and stay near their best. Trees of depth 4 soon memorise the training
# patients, and decisions on other patients become costlier.
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", sharey=True)
sets = {"training patients": (X_train, y_train), "other patients": (X_test, y_test)}
unstopped = {}
for axis, depth in zip(axes, (1, 4), strict=True):
    model = BAdaCostClassifier(costs, n_estimators=300, max_depth=depth, decision="bayes")
    model.fit(X_train, y_train)
    CostCurveDisplay.from_estimator(model, sets=sets, ax=axis)
    axis.set(title=f"trees of depth {depth}", xlabel="trees")
    unstopped[depth] = average_cost(y_test, model.predict(X_test), costs)

# %%
# Early stopping holds out a part of the training data, stops after ten rounds without a gain, and
# goes back to the best round. Which patients are held out is drawn: four seeds for each depth.
print(f"{'depth':>5}{'seed':>6}{'trees':>7}{'cost':>7}{'cost of 300 trees':>20}")
for depth, cost_of_all in unstopped.items():
    for seed in range(4):
        model = BAdaCostClassifier(
            costs,
            n_estimators=300,
            max_depth=depth,
            decision="bayes",
            early_stopping=True,
            validation_fraction=0.25,
            n_iter_no_change=10,
            random_state=seed,
        ).fit(X_train, y_train)
        paid = average_cost(y_test, model.predict(X_test), costs)
        print(f"{depth:5}{seed:6}{model.n_estimators_:7}{paid:7.2f}{cost_of_all:20.2f}")

# %%
# Stopping helps the deep trees. It does not help the stumps: the held-out cost of some
# seventy patients is noisy, and stopping on it throws away trees that would have helped. So choose
# the depth first, then think about stopping.
figure.savefig("how_many_trees.png", dpi=120)
print("\nThe picture is in how_many_trees.png")
