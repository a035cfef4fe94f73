"""Estimators that users construct; the relatives of BAdaCost are in `badacost.family`."""

from badacost.classifiers.badacost import BAdaCostClassifier
from badacost.classifiers.cost_tree import CostSensitiveTreeClassifier
from badacost.classifiers.costboost import CostBoostClassifier
from badacost.classifiers.imported_forest import ImportedForestClassifier
from badacost.classifiers.minimum_cost import MinimumCostClassifier

__all__ = [
    "BAdaCostClassifier",
    "CostBoostClassifier",
    "CostSensitiveTreeClassifier",
    "ImportedForestClassifier",
    "MinimumCostClassifier",
]
