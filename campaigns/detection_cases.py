"""Detection: pictures, videos, annotations and results as files, and calls as OpenCV has them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
from numpy.random import Generator
from PIL import Image

from badacost.detection import CascadeClassifier, Detections
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
from badacost.detection.models import synthetic_cars
from campaigns.cases import Case, FileKind, Kind
from campaigns.child import Broken
from campaigns.mutations import BYTES, JSON, JSON_LINES, TEXT, Edit, Mutation
from campaigns.plain import pixels

_SUFFIXES = ("png", "jpg", "tiff", "gif", "webp", "bmp", "ppm", "jp2", "mpo")
# Containers that are read, each with a codec that may be there.
_VIDEOS = (
    ("mp4", "mpeg4"), ("mp4", "libx264"), ("avi", "mjpeg"), ("mkv", "mpeg4"), ("mov", "mjpeg"),
    ("webm", "libvpx"), ("webm", "libvpx-vp9"), ("ogv", "libvpx"), ("flv", "flv"),
    ("wmv", "wmv2"), ("mpg", "mpeg1video"), ("ts", "mpeg2video"),
)  # fmt: skip
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
    kind = {"jpg": "jpeg", "jp2": "jpeg2000"}.get(suffix, suffix)
    Image.fromarray(pixels()).convert(mode).save(file, kind, **options)
    return file.getvalue()


def _found_in(image: str) -> Detections:
    """Return two objects in an image of this name."""
    boxes = np.array([[0.0, 0.0, 20.0, 10.0], [5.0, 5.0, 9.0, 30.0]])
    scores, labels = np.array([3.0, 1.5]), np.array([1, 0])
    source = ImageSource(image, (40, 56), Path(image), None)
    return Detections(boxes, scores, labels, ("right", "front"), (0.0, 90.0), "Car", source=source)


def _files_in(folder: str) -> dict[str, bytes]:
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


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
            "codestream": {"i.jp2": _picture("jp2", no_jp2=True)},
            "lossy": {"i.jp2": _picture("jp2", irreversible=True, tile_size=(32, 32))},
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
        """Return short videos, of the codecs that can be written here."""
        return {
            f"{suffix} {codec}": {f"v.{suffix}": self._video(suffix, codec)}
            for suffix, codec in _VIDEOS
            if codec in av.codecs_available
        }

    def _video(self, suffix: str, codec: str) -> bytes:
        with TemporaryDirectory() as folder:
            path = Path(folder, f"v.{suffix}")
            with av.open(str(path), "w") as container:
                stream: Any = container.add_stream(codec, rate=25)
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
        return {name: self._written(file) for name, file in self._names.items()}

    def _written(self, file: str) -> dict[str, bytes]:
        """Return the files that are there when a detector has searched two images."""
        with TemporaryDirectory() as folder:
            with open_results(Path(folder, file)) as results:
                for image in ("a.png", "b.png"):
                    results.write(_found_in(image))
            return _files_in(folder)

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


class PartialResults(Results):
    """Results of an interrupted run, that another one goes on with."""

    name = "partial"
    _images = ("a.png", "b.png", "c.png")

    def _written(self, file: str) -> dict[str, bytes]:
        """Return the files of a run that was stopped after two images, one of them unreadable."""
        with TemporaryDirectory() as folder:
            with suppress(InterruptedError), open_results(Path(folder, file)) as results:
                results.write(_found_in(self._images[0]))
                results.fail(self._images[1], "it is no picture")
                raise InterruptedError
            return _files_in(folder)

    def mutations_of(self, base: str) -> Mapping[str, Mutation]:
        """Return changes of lines of JSON: these files are, whatever they become."""
        return {**BYTES, **TEXT, **JSON_LINES}

    def use(self, path: Path, base: str) -> None:
        """Go on with the results, and read them when they are finished."""
        place = path.parent if base == "kitti" else path.with_name(self._names[base])
        with open_results(place, resume=True) as results:
            for image in self._images[results.n_done :]:
                results.write(_found_in(image))
        read_results(place)


class CascadeCalls(Kind):
    """Detectors called as those of OpenCV, with odd pictures and settings."""

    name = "cascade"
    _values: Mapping[str, tuple[Any, ...]] = {
        "image": (
            pixels(0, 0), pixels(0, 9), pixels(1, 1), pixels(1, 300), pixels(300, 2),
            pixels()[..., 0], pixels()[..., :2], pixels()[None], pixels()[::-1, ::-2],
            pixels().astype(float), pixels().astype(np.uint16), pixels() > 9,
            pixels().astype(object), pixels().tolist(), None, "x", np.asfortranarray(pixels()),
            np.zeros((40, 56, 4), np.uint8), np.zeros(()),
        ),
        "scaleFactor": (1.1, 2.0, 1.0, 1 + 1e-12, 0.5, 3.0, np.nan, np.inf, "a", True),
        "minNeighbors": (0, 3, 10**30, -1, 1.5, "a", True, np.int8(3)),
        "flags": (1, "x", None),
        "minSize": ((0, 0), (9, 9), (), (1,), (-1, 5), (np.nan, 1), (10**30, 1), "ab", 3),
        "maxSize": ((0, 0), (9, 9), (5, 0), (np.inf, 1), np.array([9, 9]), {"a": 1}, (1, 2, 3)),
    }  # fmt: skip

    def build(self) -> Mapping[str, Any]:
        """Return the names of the methods, whose kernels are loaded now."""
        self.classifier = CascadeClassifier(synthetic_cars())
        self.classifier.detectMultiScale(pixels(60, 110))
        return dict.fromkeys(["detectMultiScale", "detectMultiScale2", "detectMultiScale3"])

    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw values of some arguments."""
        names = rng.choice(list(self._values), size=int(rng.integers(1, 5)), replace=False)
        return [[str(name), int(rng.integers(len(self._values[name])))] for name in names]

    def run(self, case: Case, folder: Path) -> None:
        """Detect, and check that objects are inside of the picture."""
        given = {"image": pixels(60, 110)}
        given |= {name: self._values[name][which] for name, which in case.edits}
        found = getattr(self.classifier, case.base)(**given)
        boxes = found if case.base == "detectMultiScale" else found[0]
        height, width = given["image"].shape[:2]
        if (boxes < 0).any() or (boxes[:, :2] + boxes[:, 2:] > [width, height]).any():
            raise Broken("an object is outside of the picture")


DETECTION_KINDS = (
    Pictures(),
    Videos(),
    Annotations(),
    Results(),
    PartialResults(),
    CascadeCalls(),
)
