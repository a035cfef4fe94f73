"""Relatives of BAdaCost: its special cases and rivals, for comparisons."""

from badacost.family.lp_csb import LpCSBClassifier
from badacost.family.piboost import PIBoostClassifier
from badacost.family.presets import (
    AdaBoostM1Classifier,
    AdaC2M1Classifier,
    CostGeneralizedAdaBoostClassifier,
    CSAdaBoostClassifier,
    SAMMEClassifier,
)
from badacost.family.wang_multiboost import WangMultiBoostClassifier

__all__ = [
    "AdaBoostM1Classifier",
    "AdaC2M1Classifier",
    "CSAdaBoostClassifier",
    "CostGeneralizedAdaBoostClassifier",
    "LpCSBClassifier",
    "PIBoostClassifier",
    "SAMMEClassifier",
    "WangMultiBoostClassifier",
]
