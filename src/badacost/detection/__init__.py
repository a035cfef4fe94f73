"""From an image to boxes with a view label and a score, on the CPU."""

from badacost.detection.boxes import Detections
from badacost.detection.cascade import Cascade
from badacost.detection.cascade_classifier import CascadeClassifier
from badacost.detection.channels import ChannelParameters, GradientParameters, HistogramParameters
from badacost.detection.detector import Detector
from badacost.detection.images import ImageError
from badacost.detection.pyramid import PyramidParameters
from badacost.detection.reference import load_detector
from badacost.detection.suppression import Suppression
from badacost.detection.training import train_detector
from badacost.detection.training.config import TrainingConfig

__all__ = [
    "Cascade",
    "CascadeClassifier",
    "ChannelParameters",
    "Detections",
    "Detector",
    "GradientParameters",
    "HistogramParameters",
    "ImageError",
    "PyramidParameters",
    "Suppression",
    "TrainingConfig",
    "load_detector",
    "train_detector",
]
