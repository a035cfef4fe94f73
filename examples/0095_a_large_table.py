"""
A large table with mixed types
==============================

Insurance claims, 60 000 of them: amounts and ages, some missing; regions, and models of cars with
hundreds of names; dates; yes and no. The table goes into a Parquet file, is read again and fitted
as it is: nobody encodes a column by hand. Categories are split by sets in the trees, missing values
go where they fit best, and names that were not in the training are missing values, too.
"""

# %%
# The table. A claim is honest, exaggerated or invented. What a mistake costs in euros: to pay an
# invented claim is expensive, to accuse an honest customer as well; to ask for papers is cheap but
# not free.
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from badacost import CostBoostClassifier
from badacost.metrics import average_cost
from badacost.plotting import FeatureImportancesDisplay
from badacost.tabular import TableClassifier, read_table, write_table

rng = np.random.default_rng(0)
n_rows = 60_000
cars = np.array([f"model {number}" for number in range(300)])
risky = set(rng.choice(cars, 30, replace=False))
claims = pd.DataFrame(
    {
        "amount": rng.lognormal(7.0, 0.8, n_rows).round(2),
        "age": rng.integers(18, 90, n_rows).astype(float),
        "region": rng.choice(["north", "east", "south", "west", "islands"], n_rows),
        "car": rng.choice(cars, n_rows),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 730, n_rows), "D"),
        "online": rng.random(n_rows) < 0.6,
    }
)
suspicion = (
    1.2 * np.log(claims["amount"] / 1000)
    + 2.0 * claims["car"].isin(risky)
    + 1.5 * (claims["online"] & (claims["region"] == "islands"))
    + 1.0 * (claims["day"] >= "2025-07-01")
    + rng.logistic(0, 0.4, n_rows)
)
kinds = np.array(["honest", "exaggerated", "invented"])
claims["claim"] = kinds[np.digitize(suspicion, [1.2, 2.4])]
claims.loc[rng.random(n_rows) < 0.1, "age"] = np.nan

costs = {  # {truth: {decision: euros}}
    "honest": {"exaggerated": 40, "invented": 300},
    "exaggerated": {"honest": 200, "invented": 100},
    "invented": {"honest": 900, "exaggerated": 400},
}

# %%
# Into a file and back. What a column holds is decided once, at the fit, and kept with the model.
with TemporaryDirectory() as folder:
    path = Path(folder, "claims.parquet")
    write_table(claims, path)
    print(f"{len(claims)} rows, {path.stat().st_size / 1e6:.1f} MB")
    table = read_table(path)
train, test = table[:45_000], table[45_000:]
print(train.dtypes)

# %%
# More rows make cheaper decisions, up to a point. Paying every claim, or asking everybody for
# papers, are the baselines.
sizes, paid = [500, 2_000, 10_000, 45_000], []
for size in sizes:
    booster = CostBoostClassifier(random_state=0, n_jobs=-1)
    model = TableClassifier(booster, cost_matrix=costs).fit(train[:size], "claim")
    paid.append(average_cost(test["claim"], model.predict(test), costs))
    print(f"{size:6} rows: {paid[-1]:6.2f} euros a decision")
constants = {
    answer: average_cost(test["claim"], np.full(len(test), answer), costs) for answer in costs
}
cheapest = min(constants, key=constants.get)
print(f"always {cheapest!r}: {constants[cheapest]:.2f} euros")

# %%
# Which columns it used; ``car`` is one feature: of its 300 names the 255 most frequent are told
# apart, the others are missing values.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
left.plot(sizes, paid, marker="o", color="#0072b2", label="CostBoost")
left.axhline(constants[cheapest], color="gray", linestyle="dashed", label=f"always {cheapest}")
left.set(xscale="log", xlabel="rows to learn from", ylabel="euros a decision", ylim=(0, 100))
left.legend(edgecolor="none")
FeatureImportancesDisplay(model.feature_importances_, feature_names=model.feature_names_in_).plot(
    ax=right
)

figure.savefig("a_large_table.png")
print("The picture is in a_large_table.png")

# %%
# A model of car that nobody had before is a missing value to the trees, and a decision is made
# all the same; there is a warning if most of a column is new.
new = test.head(3).copy()
new.iloc[0, new.columns.get_loc("car")] = "a model of next year"
print(model.predict_proba(new).round(2))
