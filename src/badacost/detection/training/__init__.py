"""Training of detectors: window store, miner, rounds of boosting, calibration."""

from badacost.detection.training.checkpoint import remove_checkpoints
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.trainer import train_detector

__all__ = ["TrainingConfig", "remove_checkpoints", "train_detector"]
