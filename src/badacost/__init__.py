"""Multi-class boosting with costs: decisions whose mistakes have different prices."""

from importlib import metadata

from badacost import costs, metrics
from badacost.boosting import (
    AdaBoostM1Classifier,
    AdaC2M1Classifier,
    BAdaCostClassifier,
    CostGeneralizedAdaBoostClassifier,
    CSAdaBoostClassifier,
    LpCSBClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
)
from badacost.decision import MinimumCostClassifier
from badacost.model_file import ModelFileError
from badacost.persistence import load
from badacost.tree.classifier import CostSensitiveTreeClassifier

__version__ = metadata.version("badacost")
__all__ = [
    "AdaBoostM1Classifier",
    "AdaC2M1Classifier",
    "BAdaCostClassifier",
    "CSAdaBoostClassifier",
    "CostGeneralizedAdaBoostClassifier",
    "CostSensitiveTreeClassifier",
    "LpCSBClassifier",
    "MinimumCostClassifier",
    "ModelFileError",
    "PIBoostClassifier",
    "SAMMEClassifier",
    "WangMultiBoostClassifier",
    "costs",
    "load",
    "metrics",
]
