"""Annotated images: readers of the usual formats, views as classes, and what to learn of them."""

from badacost.detection.annotations.coco import read_coco
from badacost.detection.annotations.fddb import read_fddb
from badacost.detection.annotations.folder import read_folder
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.kitti import read_kitti
from badacost.detection.annotations.labelling import label_views
from badacost.detection.annotations.reader import FORMATS, guessed_format, read_annotations
from badacost.detection.annotations.selection import KITTI_CARS, Selection
from badacost.detection.annotations.source import AnnotationError
from badacost.detection.annotations.table import read_table
from badacost.detection.annotations.views import Views, heading_of_yaw
from badacost.detection.annotations.voc import read_voc
from badacost.detection.annotations.yolo import read_yolo

__all__ = [
    "FORMATS",
    "KITTI_CARS",
    "AnnotatedImage",
    "AnnotationError",
    "Selection",
    "Views",
    "guessed_format",
    "heading_of_yaw",
    "label_views",
    "read_annotations",
    "read_coco",
    "read_fddb",
    "read_folder",
    "read_kitti",
    "read_table",
    "read_voc",
    "read_yolo",
]
