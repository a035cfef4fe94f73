"""How good detections are, by the rules of VOC, KITTI and FDDB."""

from badacost.detection.evaluation.curves import PrecisionRecallCurve, RocCurve
from badacost.detection.evaluation.displays import PrecisionRecallDisplay, RocDisplay
from badacost.detection.evaluation.fddb import EllipseDetections, FddbResult, evaluate_fddb
from badacost.detection.evaluation.kitti import (
    KITTI_LEVELS,
    KittiCurve,
    KittiLevel,
    KittiResult,
    evaluate_kitti,
)
from badacost.detection.evaluation.voc import VocResult, evaluate_faces, evaluate_voc

__all__ = [
    "KITTI_LEVELS",
    "EllipseDetections",
    "FddbResult",
    "KittiCurve",
    "KittiLevel",
    "KittiResult",
    "PrecisionRecallCurve",
    "PrecisionRecallDisplay",
    "RocCurve",
    "RocDisplay",
    "VocResult",
    "evaluate_faces",
    "evaluate_fddb",
    "evaluate_kitti",
    "evaluate_voc",
]
