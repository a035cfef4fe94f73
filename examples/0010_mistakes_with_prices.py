"""
Mistakes with prices
====================

How far will a patient's diabetes progress within a year: grade 0, 1, 2 or 3? Too low a grade means
that a patient goes without care: five units of money for each grade. Too high a grade means care
that was not needed: one unit for each grade. Classifiers that count mistakes grade too low far too
often; decisions that heed the prices do not.

Prints a table of costs from cross-validation and draws ``mistakes_with_prices.png``.
"""

# %%
# The data come with scikit-learn. The grades are the quartiles of the progression measured after
# one year. Costs are ``C[truth, prediction]``: rows are the truth.
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from badacost import BAdaCostClassifier, CostBoostClassifier
from badacost.costs import minimum_cost_decision, ordinal_costs

diabetes = load_diabetes(scaled=False)
X, progression = diabetes.data, diabetes.target
grade = np.digitize(progression, np.quantile(progression, [0.25, 0.5, 0.75]))
costs = ordinal_costs(4, under=5.0, over=1.0)
print("C[truth, prediction] =")
print(costs)

# %%
# Three ways: count mistakes; learn probabilities, then decide by minimum expected cost, which
# CostBoost does by itself; boost under the costs, the way of BAdaCost.
folds = StratifiedKFold(5, shuffle=True, random_state=0)
rivals = {
    "gradient boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
grades = {}
for name, rival in rivals.items():
    probabilities = cross_val_predict(rival, X, grade, cv=folds, method="predict_proba")
    grades[f"{name}, cost-blind"] = probabilities.argmax(axis=1)
    grades[f"{name}, minimum expected cost"] = minimum_cost_decision(probabilities, costs)
ours = {
    "BAdaCost, bayes rule": BAdaCostClassifier(costs, decision="bayes", max_depth=1),
    "CostBoost": CostBoostClassifier(costs, random_state=0),
}
for name, model in ours.items():
    grades[name] = cross_val_predict(model, X, grade, cv=folds)
constant = np.full(len(grade), costs[grade].mean(axis=0).argmin())
grades["the best constant grade"] = constant

# %%
# Average costs on patients that the models have not seen.
average = {name: costs[grade, given].mean() for name, given in grades.items()}
print(f"\n{'':42}{'cost':>7}{'too low':>10}{'exact':>8}{'too high':>10}")
for name, given in grades.items():
    low, exact, high = (np.mean(test) for test in (given < grade, given == grade, given > grade))
    print(f"{name:42}{average[name]:7.2f}{low:10.0%}{exact:8.0%}{high:10.0%}")

# %%
# The same in a picture: the boundaries between the grades move once mistakes have prices.
colours = ["#2c7bb6", "#abd9e9", "#fdae61", "#d7191c"]
pair = X[:, [diabetes.feature_names.index(name) for name in ("bmi", "s5")]]
grid = np.meshgrid(*(np.linspace(column.min(), column.max(), 300) for column in pair.T))
points = np.column_stack([axis.ravel() for axis in grid])

figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained", width_ratios=[1, 1, 1.2])
for axis, title, prices in zip(
    axes,
    ["Every mistake costs 1", "A grade too low costs 5, too high 1"],
    [None, costs],
    strict=False,
):
    model = CostBoostClassifier(prices, random_state=0).fit(pair, grade)
    regions = model.predict(points).reshape(grid[0].shape)
    axis.pcolormesh(*grid, regions, cmap=ListedColormap(colours), vmin=0, vmax=3, alpha=0.45)
    for value, colour in enumerate(colours):
        axis.scatter(
            *pair[grade == value].T,
            color=colour, s=14, edgecolor="black", linewidth=0.3, label=f"grade {value}",
        )  # fmt: skip
    axis.set(title=title, xlabel="body mass index (kg/m²)", ylabel="log serum triglycerides")
axes[0].legend(title="true grade", fontsize=8, loc="lower right")

names = list(average)[::-1]
bars = axes[2].barh(
    names,
    [average[name] for name in names],
    color=["#1b7837" if name in ours else "#555555" for name in names],
)
axes[2].bar_label(bars, fmt="%.2f", padding=3)
axes[2].set(
    title="Average cost of a decision, all ten features",
    xlabel="units of money per patient (5-fold cross-validation)",
    xlim=(0, 1.15 * max(average.values())),
)
axes[2].spines[["top", "right"]].set_visible(False)
figure.savefig("mistakes_with_prices.png", dpi=120)
print("\nThe picture is in mistakes_with_prices.png")
