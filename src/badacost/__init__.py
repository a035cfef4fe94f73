"""Multi-class boosting with costs: decisions whose mistakes have different prices."""

from importlib import metadata

from badacost import costs
from badacost.boosting.badacost import BAdaCostClassifier
from badacost.model_file import ModelFileError
from badacost.persistence import load
from badacost.tree.classifier import CostSensitiveTreeClassifier

__version__ = metadata.version("badacost")
__all__ = ["BAdaCostClassifier", "CostSensitiveTreeClassifier", "ModelFileError", "costs", "load"]
