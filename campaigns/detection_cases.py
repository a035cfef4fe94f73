"""Files of detection: pictures, videos, annotations and results."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
from PIL import Image

from badacost.detection import Detections
from badacost.detection.annotations import AnnotatedImage, read_annotations
from badacost.detection.evaluation import align, evaluate_voc
from badacost.detection.images import (
    ImageSource,
    count_frames,
    read_image,
    read_video,
    size_of_file,
)
from badacost.detection.interchange import open_results, read_results
from campaigns.cases import FileKind
from campaigns.child import Broken
from campaigns.mutations import BYTES, JSON, JSON_LINES, TEXT, Mutation
from campaigns.plain import pixels

_SUFFIXES = ("png", "jpg", "tiff", "gif", "webp", "bmp", "ppm")
_N_FRAMES = 5
_KITTI = (
    b"Car 0.25 1 -1.57 10.5 20 30 35 1.5 1.6 3.4 4.4 1.6 5.2 -1.4\n"
    b"DontCare -1 -1 -10 0 0 9 9 -1 -1 -1 -1000 -1000 -1000 -10\n"
)
_VOC = b"""<?xml version="1.0"?>
<annotation>
  <filename>a.png</filename>
  <size><width>56</width><height>40</height><depth>3</depth></size>
  <object>
    <name>car</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
    <bndbox><xmin>1</xmin><ymin>2</ymin><xmax>11</xmax><ymax>12</ymax></bndbox>
  </object>
</annotation>
"""
_COCO = {
    "images": [
        {"id": 7, "file_name": "a.png", "width": 56, "height": 40},
        {"id": "b", "file_name": "sub/b.png"},
    ],
    "categories": [{"id": 1, "name": "car"}, {"id": 4, "name": "face"}],
    "annotations": [
        {"image_id": 7, "category_id": 4, "bbox": [1, 2, 10, 10], "angle": 450},
        {"image_id": 7, "category_id": 1, "bbox": [0, 0, 0.5, 1], "iscrowd": 1,
         "attributes": {"occluded": True, "rotation": 12.5}},
    ],
}  # fmt: skip
_FDDB = b"2002/a\n1\n20 10 0 50 60 1\n2002/b\n0\n2002/c\n1\n20 10 1.5707963267948966 50 60 1\n"
_TABLE = b"image,x1,y1,x2,y2,category,angle,ignore,label\na.png,1,2,11,12,car,90,1,3\n"
_YOLO = b"path: .\ntrain: images\nnames:\n  0: car\n  1: van\n"


def _picture(suffix: str, mode: str = "RGB", **options: Any) -> bytes:
    file = io.BytesIO()
    kind = {"jpg": "jpeg"}.get(suffix, suffix)
    Image.fromarray(pixels()).convert(mode).save(file, kind, **options)
    return file.getvalue()


class Pictures(FileKind):
    """Pictures of all formats that are read."""

    name = "image"
    mutations = BYTES

    def build(self) -> Mapping[str, Any]:
        """Return pictures of each format, and of some odd forms."""
        found = {suffix: {f"i.{suffix}": _picture(suffix)} for suffix in _SUFFIXES}
        exif = Image.Exif()
        exif[0x0112] = 6  # turned
        return found | {
            "alpha": {"i.png": _picture("png", "RGBA")},
            "palette": {"i.png": _picture("png", "P")},
            "deep": {"i.tiff": _picture("tiff", "I")},
            "cmyk": {"i.jpg": _picture("jpg", "CMYK")},
            "progressive": {"i.jpg": _picture("jpg", progressive=True)},
            "turned": {"i.jpg": _picture("jpg", exif=exif)},
            "packed": {"i.tiff": _picture("tiff", compression="tiff_lzw")},
        }

    def use(self, path: Path, base: str) -> None:
        """Ask for its size, then for its pixels."""
        size_of_file(path)
        read_image(path)


class Videos(FileKind):
    """Videos of some containers and codecs."""

    name = "video"
    mutations = BYTES

    def build(self) -> Mapping[str, Any]:
        """Return short videos."""
        return {
            f"{suffix} {codec}": {f"v.{suffix}": self._video(suffix, codec)}
            for suffix, codec in (("mp4", "mpeg4"), ("avi", "mjpeg"), ("mkv", "mpeg4"))
        }

    def _video(self, suffix: str, codec: str) -> bytes:
        with TemporaryDirectory() as folder:
            path = Path(folder, f"v.{suffix}")
            with av.open(str(path), "w") as container:
                stream: Any = container.add_stream(codec, rate=10)
                stream.width, stream.height = 56, 40
                stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
                stream.codec_context.thread_count = 1
                for _ in range(_N_FRAMES):
                    frame = av.VideoFrame.from_ndarray(pixels(), format="rgb24")
                    container.mux(stream.encode(frame))
                container.mux(stream.encode())
            return path.read_bytes()

    def use(self, path: Path, base: str) -> None:
        """Count the frames, then read them."""
        count_frames(path)
        for number, _ in enumerate(read_video(path)):
            if number > 100 * _N_FRAMES:
                raise Broken("a video of five frames does not end")


class Annotations(FileKind):
    """Annotations of all formats, and the pictures beside them."""

    name = "annotations"
    _formats: Mapping[str, str] = {
        "coco": "coco", "fddb": "fddb", "kitti": "kitti", "table": "table", "voc": "voc",
        "yolo": "yolo", "list": "folder",
    }  # fmt: skip

    def build(self) -> Mapping[str, Any]:
        """Return a small set of each format."""
        picture = _picture("png")
        return {
            "coco": {"a.json": json.dumps(_COCO).encode()},
            "fddb": {"a.txt": _FDDB},
            "kitti": {"label_2/a.txt": _KITTI, "image_2/a.png": picture},
            "table": {"a.csv": _TABLE},
            "voc": {"Annotations/a.xml": _VOC, "JPEGImages/a.png": picture},
            "yolo": {
                "data.yaml": _YOLO,
                "labels/a.txt": b"0 0.5 0.5 0.2 0.2\n1 0.1 0.2 0.1 0.1\n",
                "images/a.png": picture,
            },
            "list": {"list.txt": b"a.png\nb.png\n", "a.png": picture, "b.png": picture},
        }

    def mutations_of(self, base: str) -> Mapping[str, Mutation]:
        """Return changes of JSON for COCO, of text for all."""
        return {**BYTES, **TEXT, **(JSON if base == "coco" else {})}

    def use(self, path: Path, base: str) -> None:
        """Read what is annotated, with the format given and guessed, and the pictures."""
        for given in (self._formats[base], None):
            for image in read_annotations(path, given):
                _ = repr(image), image.boxes
                if image.image is not None:
                    image.load()


class Results(FileKind):
    """Results of a detector in all formats: read, evaluated and written again."""

    name = "results"
    _names: Mapping[str, str] = {
        "lines": "r.jsonl", "table": "r.csv", "coco": "r.json", "kitti": "kitti",
    }  # fmt: skip

    def build(self) -> Mapping[str, Any]:
        """Return what a detector writes, in each format."""
        boxes = np.array([[0.0, 0.0, 20.0, 10.0], [5.0, 5.0, 9.0, 30.0]])
        scores, labels = np.array([3.0, 1.5]), np.array([1, 0])
        kind = Detections(boxes, scores, labels, ("right", "front"), (0.0, 90.0), "Car")
        found = {}
        for name, file in self._names.items():
            with TemporaryDirectory() as folder:
                with open_results(Path(folder, file)) as results:
                    for image in ("a.png", "b.png"):
                        source = ImageSource(image, (40, 56), Path(image), None)
                        results.write(replace(kind, source=source))
                paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
                found[name] = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        return found

    def mutations_of(self, base: str) -> Mapping[str, Mutation]:
        """Return changes of JSON where it is, of text for all."""
        extra = {"coco": JSON, "lines": JSON_LINES}.get(base, {})
        return {**BYTES, **TEXT, **extra}

    def use(self, path: Path, base: str) -> None:
        """Read the results and look at them."""
        found = read_results(path.parent if base == "kitti" else path)
        for detections in found.values():
            _ = repr(detections), detections.views
        boxes = np.array([[0.0, 0.0, 20.0, 10.0]])
        truth = {name: AnnotatedImage(Path(name), boxes) for name in found}
        aligned = align(found, truth)
        evaluate_voc(aligned.detections, aligned.annotations)


DETECTION_KINDS = (Pictures(), Videos(), Annotations(), Results())
