"""
Choosing the costs
==================

A sample of breast tissue is benign or malignant. A missed tumour is worse than a
needless operation: but how much worse? The hardest part of learning with costs is to write them
down. This example goes from a few invented prices to a matrix, reads the matrix back in words, and
then asks what happens if the prices are wrong.

Prints the explanation of the costs and draws ``choosing_the_costs.png``.
"""

# %%
# Prices first, in any currency. An operation is paid for also where it is right, so it stands on
# the diagonal; what counts is how much more a wrong answer costs. Truth comes before prediction.
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from badacost import BAdaCostClassifier
from badacost.costs import costs_from_pairs, costs_from_ratios, explain_costs
from badacost.metrics import average_cost

cancer = load_breast_cancer()
y = cancer.target_names[cancer.target]
costs = costs_from_pairs(
    {
        ("malignant", "malignant"): 8_000,  # the operation
        ("malignant", "benign"): 168_000,  # a late operation, and what it cannot repair
        ("benign", "malignant"): 8_000,  # an operation for nothing
    }
)

# %%
# Then read what was written. The first sentences would give a transposed matrix away; the
# thresholds say what the prices mean for decisions.
labels, counts = np.unique(y, return_counts=True)
print(explain_costs(costs, priors=dict(zip(labels, counts, strict=True))))

# %%
# That a missed tumour costs exactly twenty operations is a guess. So we train for other ratios,
# from 1 to 100, and evaluate under the prices above. The ten mean measurements are used, of thirty.
X = cancer.data[:, :10]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
ratios = [1, 2, 5, 10, 20, 50, 100]
paid, missed, needless = [], [], []
for ratio in ratios:
    model = BAdaCostClassifier(
        costs_from_ratios({"malignant": ratio}, classes=labels), n_estimators=60, max_depth=2
    )
    answers = cross_val_predict(model, X, y, cv=folds)
    paid.append(average_cost(y, answers, costs))
    missed.append(np.mean(answers[y == "malignant"] == "benign"))
    needless.append(np.mean(answers[y == "benign"] == "malignant"))
constant = min(average_cost(y, np.full(len(y), label), costs) for label in labels)

print(f"\n{'trained for':>12}{'cost':>8}{'missed':>9}{'needless':>10}")
for row in zip(ratios, paid, missed, needless, strict=True):
    print("{:10} : 1{:8.0f}{:9.1%}{:10.1%}".format(*row))
print(f"the best constant answer costs {constant:.0f}")

# %%
# Half the right ratio does little harm here. No costs at all more than double the bill. Too high a
# ratio is no better: at 50 four of five benign patients are operated on, at 100 all of them.
figure, (bill, shares) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
bill.plot(ratios, paid, "o-", color="#0072b2", label="BAdaCost")
bill.axhline(constant, color="#555555", linestyle="dashed", label="operate on everybody")
bill.axvline(20, color="#d55e00", linestyle="dotted", label="the ratio of the prices, 20 : 1")
bill.set(
    title="What decisions cost by the prices",
    ylabel="average cost of a decision (units of money)",
    ylim=(0, 1.1 * max(paid)),
)
shares.plot(ratios, missed, "o-", color="#d55e00", label="tumours missed")
shares.plot(ratios, needless, "s-", color="#009e73", label="benign, but operated on")
shares.set(title="Which mistakes are made", ylabel="share of the class", ylim=(0, 1.05))
shares.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
for axis in (bill, shares):
    axis.set_xscale("log")
    axis.set_xticks(ratios, [f"{ratio}" for ratio in ratios])
    axis.minorticks_off()
    axis.set_xlabel(
        "price of a missed tumour the model was trained for\n(a needless operation is 1)"
    )
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend()
figure.savefig("choosing_the_costs.png", dpi=120)
print("\nThe picture is in choosing_the_costs.png")
