"""
A scale where too low costs more than too high
==============================================

Grades have an order, and often one direction of mistake is worse than the other. Turning up the
price of "too low" moves all decisions upwards, step by step, and shows what each step buys.
"""

# %%
# Diabetes patients in five grades. ``badacost.costs.ordinal_costs`` builds ``C[truth, prediction]``
# from two prices for each grade of distance.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from badacost import BAdaCostClassifier
from badacost.costs import ordinal_costs

X, progression = load_diabetes(return_X_y=True)
grade = np.digitize(progression, np.quantile(progression, [0.2, 0.4, 0.6, 0.8]))
print(ordinal_costs(5, under=4.0, over=1.0))

# %%
# Cross-validation for each price of "too low", from a fifth to twenty times that of "too high".
prices = np.array([0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0])
folds = StratifiedKFold(5, shuffle=True, random_state=0)
given = {}
for price in prices:
    model = BAdaCostClassifier(
        ordinal_costs(5, under=price, over=1.0), decision="bayes", n_estimators=100, max_depth=1
    )
    given[price] = cross_val_predict(model, X, grade, cv=folds)

# %%
# What the decisions cost, beside those of the model without preference and of the best grade that
# is the same for all. When one direction is twenty times as expensive, hardly anything is left to
# gain: the highest grade for everyone costs about as little.
print(f"{'price':>6}{'this price':>12}{'price 1':>9}{'constant':>10}")
for price, decided in given.items():
    costs = ordinal_costs(5, under=price, over=1.0)
    own, equal = (costs[grade, decision].mean() for decision in (decided, given[1.0]))
    print(f"{price:6.1f}{own:12.2f}{equal:9.2f}{costs[grade].mean(axis=0).min():10.2f}")

# %%
# The share of patients graded too low falls as its price rises, and the share graded too high
# grows.
figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
low, high = (
    np.array([np.mean(np.sign(decided - grade) == side) for decided in given.values()])
    for side in (-1, 1)
)
axes[0].stackplot(
    prices,
    [low, 1 - low - high, high],
    labels=["too low", "exact", "too high"],
    colors=["#d55e00", "0.85", "#56b4e9"],
)
axes[0].legend(loc="upper right", framealpha=1)
axes[0].set(ylabel="share of the patients", ylim=(0, 1), xlim=(prices[0], prices[-1]))
axes[0].yaxis.set_major_formatter("{x:.0%}")
shares = np.array([np.bincount(decided, minlength=5) for decided in given.values()]) / len(grade)
for k in range(5):
    axes[1].plot(
        prices, shares[:, k], marker="o", label=f"grade {k}", color=plt.cm.viridis(k / 4.5)
    )
axes[1].axhline(0.2, color="0.6", linewidth=1, linestyle="dashed", label="true share of each")
axes[1].set(ylabel="share of the decisions", ylim=(0, 0.75))
axes[1].yaxis.set_major_formatter("{x:.0%}")
axes[1].legend(frameon=False)
for axis in axes:
    axis.set(xscale="log", xlabel="price of a grade too low (too high: 1)")
    axis.set_xticks(prices, [f"{price:g}" for price in prices], minor=False)
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
figure.savefig("ordinal_scale.png", dpi=120)
print("\nThe picture is in ordinal_scale.png")
