"""
Confusion in money
==================

For those who pay, margins and scores mean little. Show them what the decisions
cost, which mistakes the money goes to, and what a different way to decide would save.
"""

# %%
# Synthetic insurance claims: pay at once, ask for papers, or investigate. Prices are in euros,
# ``{truth: {prediction: price}}``: to pay what should have been investigated is expensive; to
# investigate an honest customer loses the customer now and then.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from badacost import BAdaCostClassifier, CostBoostClassifier
from badacost.cost_report import CostReport
from badacost.metrics import average_cost, savings, total_cost
from badacost.plotting import CostConfusionDisplay, FeatureImportancesDisplay

actions = ["ask", "investigate", "pay"]
prices = {
    "ask": {"investigate": 90.0, "pay": 150.0},
    "investigate": {"ask": 400.0, "pay": 2500.0},
    "pay": {"ask": 20.0, "investigate": 120.0},
}
X, kind = make_classification(
    n_samples=4000,
    n_features=8,
    n_informative=5,
    n_redundant=0,
    n_classes=3,
    n_clusters_per_class=1,
    weights=[0.25, 0.1, 0.65],
    class_sep=0.7,
    flip_y=0.05,
    shuffle=False,
    random_state=1,
)
y = np.array(actions)[kind]
names = ["amount", "delay", "visits", "age of policy", "claims before", "region", "day", "channel"]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# One model that counts mistakes, one under the prices, and the three answers that are the same for
# all claims. What is saved is measured against the cheapest of these.
settings = {"n_estimators": 150, "max_depth": 3, "decision": "bayes"}
models = {
    "counts mistakes": BAdaCostClassifier(**settings).fit(X_train, y_train),
    "under prices": BAdaCostClassifier(prices, **settings).fit(X_train, y_train),
}
print(f"{'':18}{'right':>7}{'euros a claim':>15}{'total':>12}{'saved':>8}")
for name, model in models.items():
    given = model.predict(X_test)
    print(
        f"{name:18}{np.mean(given == y_test):7.1%}{average_cost(y_test, given, prices):15.2f}"
        f"{total_cost(y_test, given, prices):12,.0f}{savings(y_test, given, prices):8.1%}"
    )
for action in actions:
    given = np.full(len(y_test), action)
    print(
        f"{'always ' + action:18}{np.mean(given == y_test):7.1%}"
        f"{average_cost(y_test, given, prices):15.2f}{total_cost(y_test, given, prices):12,.0f}"
        f"{savings(y_test, given, prices):8.1%}"
    )

# %%
# Where the money goes. The large number in a cell is euros, the small one claims. The model that
# counts mistakes is right far more often, and loses most of the money on the few claims that it
# pays unseen: it costs more than asking everyone. The model under prices asks most of the time.
#
# On the right is what the model under prices looks at. The last three features (region, day and
# channel) were drawn without any meaning, and it hardly uses them.
figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=False):
    display = CostConfusionDisplay.from_estimator(
        model, X_test, y_test, cost_matrix=prices, colorbar=False, ax=axis
    )
    average = average_cost(y_test, model.predict(X_test), prices)
    axis.set_title(f"{name}: {average:.0f} € a claim")
FeatureImportancesDisplay.from_estimator(models["under prices"], feature_names=names, ax=axes[2])
axes[2].set_title("What decisions under prices rest on")
figure.savefig("confusion_in_money.png", dpi=120)
print("\nThe picture is in confusion_in_money.png")

# %%
# A :class:`~badacost.cost_report.CostReport` has these figures with intervals, and rivals that were
# trained without costs. Its first sentence names whatever is cheaper than the model: here it is
# CostBoost, even if only its decisions know the prices. So the second report is about that one.
# ``save`` writes a page of HTML to hand on; notebooks show that page for the report itself.
models["CostBoost"] = CostBoostClassifier(prices, random_state=0).fit(X_train, y_train)
for name in ("under prices", "CostBoost"):
    report = CostReport.from_estimator(
        models[name], X_test, y_test, train=(X_train, y_train), feature_names=names
    )
    print(f"\n{name}\n{report.summary(currency='€')}")
report.save("confusion_in_money.html", title="Claims", currency="€")
