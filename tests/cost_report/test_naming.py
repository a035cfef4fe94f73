"""What models are called."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import GaussianNB

from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    MinimumCostClassifier,
    SAMMEClassifier,
)
from badacost.cost_report.naming import model_name
from badacost.tabular import TableClassifier
from tests.cost_report.samples import COSTS


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (BAdaCostClassifier(), "BAdaCost, margin rule"),
        (TableClassifier(BAdaCostClassifier(decision="bayes")), "BAdaCost, bayes rule"),
        (TableClassifier(SAMMEClassifier()), "SAMME"),
        (MinimumCostClassifier(GaussianNB(), COSTS), "GaussianNB, bayes rule"),
        (TableClassifier(MinimumCostClassifier(SAMMEClassifier())), "SAMME, bayes rule"),
        (TableClassifier(CostBoostClassifier()), "CostBoost"),
    ],
)
def test_names_of_models(model, name) -> None:
    assert model_name(model) == f"the model ({name})"
