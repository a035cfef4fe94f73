"""Displays of costs, in the manner of scikit-learn's: ``from_estimator``, then ``plot``."""

from badacost.plotting.bars import DecisionExplanationDisplay, FeatureImportancesDisplay
from badacost.plotting.confusion import CostConfusionDisplay
from badacost.plotting.cost_curve import CostCurveDisplay
from badacost.plotting.margins import MarginDisplay
from badacost.plotting.regions import DecisionRegionsDisplay

__all__ = [
    "CostConfusionDisplay",
    "CostCurveDisplay",
    "DecisionExplanationDisplay",
    "DecisionRegionsDisplay",
    "FeatureImportancesDisplay",
    "MarginDisplay",
]
