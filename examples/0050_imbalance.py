"""
Rare classes without resampling
===============================

A classifier that counts mistakes neglects rare classes, since they hardly count. Copying rare
samples or dropping frequent ones corrects that; so do prices, which leave the data as they are and,
in this run, do best in the decision.
"""

# %%
# Synthetic data in four classes, of which the last makes up 2 %. Half are for testing.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from badacost import BAdaCostClassifier, MinimumCostClassifier
from badacost.costs import costs_from_class_weights

X, y = make_classification(
    n_samples=6000,
    n_features=12,
    n_informative=6,
    n_redundant=2,
    n_classes=4,
    n_clusters_per_class=2,
    weights=[0.75, 0.15, 0.08, 0.02],
    class_sep=0.9,
    random_state=3,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
print("training samples of each class:", np.bincount(y_train))

# %%
# Every mistake on a class costs ``n / (K * count)``: all mistakes on a class together cost the same
# for each class. Copying and dropping take a random generator, and change the amount of data.
costs = costs_from_class_weights("balanced", y=y_train)
print(costs.round(1))


def resampled(count):
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(y_train == k) for k in range(4)]
    rows = np.concatenate([rng.choice(rows, count, replace=len(rows) < count) for rows in members])
    return X_train[rows], y_train[rows]


counts = np.bincount(y_train)
blind = BAdaCostClassifier(n_estimators=200, max_depth=4)
under_prices = BAdaCostClassifier(costs, n_estimators=200, max_depth=4, decision="bayes")
ways = {
    "as they are": (blind, (X_train, y_train)),
    "rare ones copied": (blind, resampled(counts.max())),
    "frequent ones dropped": (blind, resampled(counts.min())),
    "prices in training": (under_prices, (X_train, y_train)),
    "prices in the decision": (MinimumCostClassifier(blind, costs), (X_train, y_train)),
}
decisions = {name: model.fit(*data).predict(X_test) for name, (model, data) in ways.items()}

# %%
# The mean recall of the four classes, and how much data each way has to look at.
print(f"{'':24}{'mean recall':>12}{'accuracy':>10}{'samples':>9}")
recalls = {name: recall_score(y_test, given, average=None) for name, given in decisions.items()}
for name, given in decisions.items():
    right = np.mean(given == y_test)
    print(f"{name:24}{recalls[name].mean():12.3f}{right:10.3f}{len(ways[name][1][1]):9}")

# %%
# Prices in the decision do as well as copies, without making the data three times as large, and can
# be changed without a new training. Prices in training help less: boosting under strongly different
# prices soon reaches a small loss on the expensive classes and neglects them afterwards.
figure, axis = plt.subplots(figsize=(11, 4.6), layout="constrained")
colours = ["0.6", "#56b4e9", "#e69f00", "#009e73", "#0072b2"]
for i, (name, recall) in enumerate(recalls.items()):
    places = np.arange(4) + 0.17 * (i - 2)
    bars = axis.bar(places, recall, width=0.16, label=name, color=colours[i])
    axis.bar_label(bars, fmt="{:.0%}", fontsize=8, padding=2)
shares = np.bincount(y_test) / len(y_test)
axis.set_xticks(range(4), [f"class {k}\n{share:.0%} of the data" for k, share in enumerate(shares)])
axis.set(ylabel="share of the class that is recognised", ylim=(0, 1.12))
axis.yaxis.set_major_formatter("{x:.0%}")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(ncols=5, frameon=False, loc="upper center")
figure.savefig("imbalance.png", dpi=120)
print("\nThe picture is in imbalance.png")
