"""How good detections are, by the rules of VOC, KITTI, FDDB and COCO."""

from badacost.detection.evaluation.alignment import Alignment, align
from badacost.detection.evaluation.coco import CocoResult, evaluate_coco
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
from badacost.detection.evaluation.outcomes import Outcome
from badacost.detection.evaluation.protocols import (
    PROTOCOLS,
    Evaluation,
    evaluate_detections,
    images_by_name,
)
from badacost.detection.evaluation.resampling import ResampledPrecision, resample
from badacost.detection.evaluation.voc import (
    OperatingPoint,
    VocResult,
    evaluate_faces,
    evaluate_voc,
)

__all__ = [
    "KITTI_LEVELS",
    "PROTOCOLS",
    "Alignment",
    "CocoResult",
    "EllipseDetections",
    "Evaluation",
    "FddbResult",
    "KittiCurve",
    "KittiLevel",
    "KittiResult",
    "OperatingPoint",
    "Outcome",
    "PrecisionRecallCurve",
    "PrecisionRecallDisplay",
    "ResampledPrecision",
    "RocCurve",
    "RocDisplay",
    "VocResult",
    "align",
    "evaluate_coco",
    "evaluate_detections",
    "evaluate_faces",
    "evaluate_fddb",
    "evaluate_kitti",
    "evaluate_voc",
    "images_by_name",
    "resample",
]
