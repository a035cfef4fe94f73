"""
Why this decision
=================

A customer asks why the claim was not paid at once. The answer is in the unit of the prices: how
many euros each feature of the claim puts between the two decisions.
"""

# %%
# Synthetic insurance claims: pay at once, ask for papers, or investigate. Prices are in euros,
# ``{truth: {prediction: price}}``. The last two features say nothing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from badacost import BAdaCostClassifier
from badacost.explain import explain_decision, explain_scores, feature_importances
from badacost.plotting import FeatureImportancesDisplay

prices = {
    "ask": {"investigate": 90.0, "pay": 150.0},
    "investigate": {"ask": 400.0, "pay": 2500.0},
    "pay": {"ask": 20.0, "investigate": 120.0},
}
X, kind = make_classification(
    n_samples=3000,
    n_features=7,
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
y = np.array(["ask", "investigate", "pay"])[kind]
names = ["amount", "delay", "visits", "age of policy", "claims before", "region", "day"]
claims = pd.DataFrame(X.round(2), columns=names)
model = BAdaCostClassifier(prices, n_estimators=60, max_depth=3, decision="bayes").fit(claims, y)

# %%
# One claim that should be paid, for which papers are asked. The contributions add up to what
# paying at once is expected to cost more than asking.
asked = np.flatnonzero((model.predict(claims) == "ask") & (y == "pay"))
claim = claims.iloc[[asked[0]]]
explanation = explain_decision(model, claim, decision="ask", against="pay")
print(explanation)

# %%
# Other prices need no new model. How much of the difference is left if paying what should have been
# investigated costs 500 euros rather than 2500?
lower = {**prices, "investigate": {"ask": 400.0, "pay": 500.0}}
cheaper = explain_decision(model, claim, decision="ask", against="pay", costs=lower)
print(f"{cheaper.headline}: by {cheaper.total:.0f} euros rather than {explanation.total:.0f}")

# %%
# Over all claims: the share of each feature in the gains of the splits, in their number, and in
# the movement of the scores.
scores = explain_scores(model, claims)
figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
explanation.plot(ax=axes[0])
FeatureImportancesDisplay(scores.importances(), feature_names=names).plot(ax=axes[1])
axes[1].set_title("What moves the scores")
shares = pd.DataFrame(
    {
        "gain": feature_importances(model),
        "count": feature_importances(model, "count"),
        "scores": scores.importances(),
    },
    index=names,
)
print(shares.round(2))
figure.savefig("why_this_decision.png", dpi=120)
print("\nThe picture is in why_this_decision.png")
