"""Multi-class boosting with costs: decisions whose mistakes have different prices."""

from badacost.boosting.badacost import BAdaCostClassifier

__all__ = ["BAdaCostClassifier"]
