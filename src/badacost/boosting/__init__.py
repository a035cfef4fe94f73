"""Boosting algorithms, one file each, on one shared stage-wise loop."""

from badacost.boosting.adaboost_m1 import AdaBoostM1Classifier
from badacost.boosting.adac2m1 import AdaC2M1Classifier
from badacost.boosting.badacost import BAdaCostClassifier
from badacost.boosting.cost_generalized import CostGeneralizedAdaBoostClassifier
from badacost.boosting.cost_tree import CostSensitiveTreeClassifier
from badacost.boosting.costboost import CostBoostClassifier
from badacost.boosting.cs_adaboost import CSAdaBoostClassifier
from badacost.boosting.imported_forest import ImportedForestClassifier
from badacost.boosting.lp_csb import LpCSBClassifier
from badacost.boosting.piboost import PIBoostClassifier
from badacost.boosting.samme import SAMMEClassifier
from badacost.boosting.wang_multiboost import WangMultiBoostClassifier

__all__ = [
    "AdaBoostM1Classifier",
    "AdaC2M1Classifier",
    "BAdaCostClassifier",
    "CSAdaBoostClassifier",
    "CostBoostClassifier",
    "CostGeneralizedAdaBoostClassifier",
    "CostSensitiveTreeClassifier",
    "ImportedForestClassifier",
    "LpCSBClassifier",
    "PIBoostClassifier",
    "SAMMEClassifier",
    "WangMultiBoostClassifier",
]
