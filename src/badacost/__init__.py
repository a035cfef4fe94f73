"""Multi-class boosting with costs: decisions whose mistakes have different prices."""

from badacost.boosting.badacost import BAdaCostClassifier
from badacost.tree.classifier import CostSensitiveTreeClassifier

__all__ = ["BAdaCostClassifier", "CostSensitiveTreeClassifier"]
