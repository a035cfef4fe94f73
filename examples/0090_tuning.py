"""
Tuning for money, with missing values
=====================================

A grid search optimises what its scorer measures, so let it measure costs. The search runs over
a pipeline and answers three questions at once: how large the trees are, what happens to missing
values, and whether prices belong in the training or in the decision.
"""

# %%
# Breast tumours, with a fifth of all measurements lost. Overlooking a malignant tumour costs ten
# units, an operation that was not needed costs one: ``{truth: {prediction: price}}``.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from badacost import BAdaCostClassifier, MinimumCostClassifier
from badacost.metrics import average_cost, cost_scorer

data = load_breast_cancer()
X, y = data.data.copy(), data.target_names[data.target]
X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
costs = {"malignant": {"benign": 10.0}, "benign": {"malignant": 1.0}}
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)

# %%
# The built-in tree has a place of its own for missing values, so that the first step of the
# pipeline may be left out. ``cost_scorer`` returns minus the average cost, since for scikit-learn
# greater is better.
pipeline = Pipeline([("missing", "passthrough"), ("model", BAdaCostClassifier())])
missing, depths, rates = ["passthrough", SimpleImputer(strategy="median")], [1, 2, 4], [0.1, 0.3]
blind = BAdaCostClassifier(n_estimators=60)
grid = [
    {
        "model": [BAdaCostClassifier(costs, n_estimators=60)],
        "model__max_depth": depths,
        "model__learning_rate": rates,
        "missing": missing,
    },
    {
        "model": [MinimumCostClassifier(blind, costs)],
        "model__estimator__max_depth": depths,
        "model__estimator__learning_rate": rates,
        "missing": missing,
    },
]
scoring = {"cost": cost_scorer(costs), "accuracy": "accuracy"}
search = GridSearchCV(pipeline, grid, scoring=scoring, refit="cost", cv=3).fit(X_train, y_train)

# %%
# What the winner costs on patients that it has not seen, beside the winner by accuracy, the best
# one with prices in training, and the two answers that are the same for all.
results = search.cv_results_
costs_paid = -results["mean_test_cost"]
in_training = np.array([isinstance(s["model"], BAdaCostClassifier) for s in results["params"]])
chosen = {
    "minimum cost": costs_paid.argmin(),
    "most accurate": results["mean_test_accuracy"].argmax(),
    "minimum cost, prices in training": np.where(in_training, costs_paid, np.inf).argmin(),
}
print(f"{'':32}{'cross-validation':>18}{'new patients':>14}")
for name, index in chosen.items():
    model = clone(pipeline).set_params(**results["params"][index])
    paid = average_cost(y_test, model.fit(X_train, y_train).predict(X_test), costs)
    print(f"{name:32}{costs_paid[index]:18.3f}{paid:14.3f}")
for answer in costs:
    paid = average_cost(y_test, np.full(len(y_test), answer), costs)
    print(f"{'always ' + answer:32}{'':18}{paid:14.3f}")

# %%
# All of the grid. Prices in the decision win here, by far: benign and malignant tumours are nearly
# separate, and there boosting under prices does badly. The search needs no theory to find that out.
places = [(where, rate) for where in ("as they are", "medians") for rate in rates]
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for axis, own, title in zip(
    axes, (in_training, ~in_training), ("prices in training", "prices in the decision"), strict=True
):
    values = np.empty((len(depths), len(places)))
    for index in np.flatnonzero(own):
        setting = {name.split("__")[-1]: v for name, v in results["params"][index].items()}
        kept = "as they are" if setting["missing"] == "passthrough" else "medians"
        column = places.index((kept, setting["learning_rate"]))
        values[depths.index(setting["max_depth"]), column] = costs_paid[index]
    picture = axis.imshow(values, cmap="Oranges", vmin=costs_paid.min(), vmax=costs_paid.max())
    for (row, column), value in np.ndenumerate(values):
        dark = value > 0.4 * costs_paid.min() + 0.6 * costs_paid.max()
        colour = "white" if dark else "black"
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    axis.set_xticks(range(len(places)), [f"{kept}\n{rate}" for kept, rate in places])
    axis.set_yticks(range(len(depths)), depths)
    axis.set(title=title, xlabel="missing values and learning rate")
axes[0].set_ylabel("depth of the trees")
figure.colorbar(picture, ax=axes, label="average cost per patient")
figure.savefig("tuning.png", dpi=120)
print("\nThe picture is in tuning.png")
