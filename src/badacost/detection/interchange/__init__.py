"""Detections to and from the formats of other tools: supervision, COCO, KITTI, CSV, JSON lines.

Each format has a writer ``to_...`` and a reader ``from_...``; `open_results` and `read_results`
do the same for files of any format. Readers do not trust their input:
whatever is wrong with it is a ValueError that says in which line or record, and what is
expected there. A format that lists detections, not images, cannot say that nothing was found in an
image: CSV and bare records of COCO leave such images out; documents of COCO and JSON lines do not.
"""

from badacost.detection.interchange.coco import coco_document, from_coco, to_coco
from badacost.detection.interchange.json_lines import from_json_lines, to_json_line
from badacost.detection.interchange.kitti import from_kitti, to_kitti
from badacost.detection.interchange.result_files import read_results
from badacost.detection.interchange.result_writers import (
    RESULT_SUFFIXES,
    ResultsWriter,
    open_results,
)
from badacost.detection.interchange.supervision_boxes import from_supervision, to_supervision
from badacost.detection.interchange.table import from_csv, to_csv, to_frame

__all__ = [
    "RESULT_SUFFIXES",
    "ResultsWriter",
    "coco_document",
    "from_coco",
    "from_csv",
    "from_json_lines",
    "from_kitti",
    "from_supervision",
    "open_results",
    "read_results",
    "to_coco",
    "to_csv",
    "to_frame",
    "to_json_line",
    "to_kitti",
    "to_supervision",
]
