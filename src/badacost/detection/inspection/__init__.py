"""Looking inside a detector: what its trees test, how much work that is, how scores grow, views."""

from badacost.detection.inspection.features import (
    FeatureMap,
    FeatureMapDisplay,
    channel_names,
    feature_map,
)
from badacost.detection.inspection.node_counts import Efficiency, EfficiencyTable, efficiency
from badacost.detection.inspection.score_traces import ScoreTracesDisplay
from badacost.detection.inspection.views import ViewConfusionDisplay, mean_images

__all__ = [
    "Efficiency",
    "EfficiencyTable",
    "FeatureMap",
    "FeatureMapDisplay",
    "ScoreTracesDisplay",
    "ViewConfusionDisplay",
    "channel_names",
    "efficiency",
    "feature_map",
    "mean_images",
]
