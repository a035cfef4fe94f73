"""Pictures, annotations, results and boxes that take much more than their files would suggest."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BOX_LAYOUTS = (
    "apart", "same", "huge over small", "half huge", "one line", "crossing lines", "concentric",
    "one crowd", "grid", "flat", "tiny", "far",
)  # fmt: skip


def many_boxes(layout: str, n: int, seed: int = 0) -> NDArray[Any]:
    """Return n boxes, (n, 4), in an arrangement that some way of comparing them is slow for."""
    rng = np.random.default_rng(seed)
    side = 40.0 * np.sqrt(n)
    corner = rng.uniform(0.0, side, (n, 2))
    boxes = np.hstack([corner, corner + rng.uniform(5.0, 40.0, (n, 2))])
    if layout == "same":
        boxes = np.tile([[0.0, 0.0, 10.0, 10.0]], (n, 1))
    elif layout in ("huge over small", "half huge"):
        chosen = rng.choice(n, min(50, n) if layout == "huge over small" else n // 2, replace=False)
        large = rng.uniform(0.0, side, (len(chosen), 2))
        sizes = rng.uniform(side / 4, side, (len(chosen), 2))
        boxes[chosen] = np.hstack([large, large + sizes])
    elif layout == "one line":
        x = rng.uniform(0.0, n, n)
        boxes = np.stack([x, 0 * x, x + rng.uniform(1.0, 20.0, n), 0 * x + 10.0], axis=1)
    elif layout == "crossing lines":
        y = rng.uniform(0.0, n, n)
        across = np.stack([0 * y, y, 0 * y + n, y + 0.3], axis=1)
        boxes = np.where((np.arange(n) % 2 == 0)[:, None], across, across[:, [1, 0, 3, 2]])
    elif layout == "concentric":
        half = np.exp(np.linspace(0.0, 20.0, n))
        boxes = np.stack([-half, -half, half, half], axis=1)
    elif layout == "one crowd":
        boxes[:, 2:] -= boxes[:, :2]
        boxes[:, :2] = rng.uniform(0.0, 100.0, (n, 2))
        boxes[:, 2:] += boxes[:, :2]
    elif layout == "grid":  # of whole numbers, so that boxes touch and overlaps are equal
        corner = rng.integers(0, max(2, int(np.sqrt(n))), (n, 2)).astype(np.float64)
        boxes = np.hstack([corner, corner + rng.integers(0, 4, (n, 2))])
    elif layout == "flat":  # without an area, between others
        boxes[::2, 2 + rng.integers(0, 2)] = boxes[::2, 0]
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    elif layout == "tiny":  # areas are among the smallest numbers there are, or 0
        boxes = rng.integers(0, 6, (n, 4)) * 10.0 ** rng.uniform(-164.0, -158.0)
        boxes[:, 2:] += boxes[:, :2]
    elif layout == "far":  # at the limits of coordinates
        corner = rng.choice([-1e9, 0.0, 1e9 - 40.0], (n, 2)) + rng.integers(0, 20, (n, 2))
        boxes = np.hstack([corner, corner + rng.integers(0, 20, (n, 2))])
        boxes[::7, :2] = -1e9
    return boxes


def found_boxes(names: Sequence[str], n: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return detections and annotations of n boxes that lie apart, in pictures of these names."""
    from badacost.detection import Detections
    from badacost.detection.annotations import AnnotatedImage

    corner = 100.0 * np.stack([np.arange(n) % 50, np.arange(n) // 50], axis=1)
    boxes = np.hstack([corner, corner + 60.0])
    scores = np.linspace(1.0, 0.5, n)
    found = Detections(boxes, scores, np.zeros(n, int), ("front",), (90.0,), "Car")
    truth = AnnotatedImage(None, boxes, categories=("Car",) * n)
    return dict.fromkeys(names, found), dict.fromkeys(names, truth)


def large_picture(path: Path, height: int, width: int, **options: Any) -> Path:
    """Write a picture of one colour, in the format of its suffix; `options` are those of PIL."""
    from PIL import Image

    Image.new(str(options.pop("mode", "RGB")), (width, height)).save(path, **options)
    return path


def claimed_picture(path: Path, height: int, width: int) -> Path:
    """Write a PNG of a few bytes that claims to be so large."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    packed = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(packed))
    return path


def many_scans(path: Path, n: int) -> Path:
    """Write a progressive JPEG whose last scan comes n times more."""
    from PIL import Image

    Image.new("RGB", (64, 64)).save(path, "JPEG", progressive=True)
    data = path.read_bytes()
    last = data[data.rindex(b"\xff\xda") : -2]
    path.write_bytes(data[:-2] + n * last + data[-2:])
    return path


def coco_bomb(path: Path, n: int) -> Path:
    """Write n empty records of COCO, each of three bytes."""
    text = json.dumps({"categories": [], "images": [], "annotations": []})
    path.write_text(text[:-2] + ",".join(["{}"] * n) + "]}")
    return path


def yaml_aliases(path: Path, n: int) -> Path:
    """Write lists of ten aliases of the list before, n times: 10 ** n entries."""
    lines = ["a0: &a0 [x, x]"]
    for level in range(1, n + 1):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    path.write_text("\n".join([*lines, f"train: *a{n}", f"names: *a{n}", ""]))
    return path


def xml_entities(path: Path, n: int) -> Path:
    """Write entities of ten entities each, n times: 10 ** n of the first."""
    entities = ['<!ENTITY e0 "ha">']
    for level in range(1, n + 1):
        entities.append(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">')
    path.write_text(f"<!DOCTYPE a [{''.join(entities)}]><annotation>&e{n};</annotation>")
    return path


def long_list(path: Path, n: int) -> Path:
    """Write a table of n objects, each in a picture of its own."""
    rows = "".join(f"{i},0,0,9,9\n" for i in range(n))
    path.write_text("image,x1,y1,x2,y2\n" + rows)
    return path


def many_results(path: Path, n: int) -> Path:
    """Write lines of results, each of an image of its own in which nothing was found."""
    from badacost.detection import Detections
    from badacost.detection.interchange.json_lines import to_json_line

    empty = Detections(np.empty((0, 4)), np.empty(0), np.empty(0, np.int64), ("front",))
    line = to_json_line("image 0000000", empty) + "\n"
    with path.open("w") as file:
        for number in range(n):
            file.write(line.replace("0000000", f"{number:07d}"))
    return path
