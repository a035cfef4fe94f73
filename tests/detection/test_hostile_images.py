"""Files that would take much more than they seem to end in a sentence, before memory is taken."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zlib
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import badacost
from badacost.detection.annotations import AnnotationError, read_annotations
from badacost.detection.images import (
    ImageError,
    count_frames,
    read_image,
    read_video,
    size_of_file,
)
from badacost.detection.interchange import read_results
from badacost.detection.models import synthetic_cars
from campaigns import hostile_images


@pytest.mark.parametrize("read", [read_image, size_of_file])
def test_pictures(tmp_path: Path, read) -> None:
    path = hostile_images.claimed_picture(tmp_path / "a.png", 12_000, 12_500)
    with pytest.raises(
        ImageError, match=r"its 12500 x 12000 pixels would need 1\.05 GB, limit 1 GB"
    ):
        read(path)


def test_scans(tmp_path: Path) -> None:
    assert read_image(hostile_images.many_scans(tmp_path / "a.jpg", 20)).shape == (64, 64, 3)
    with pytest.raises(ImageError, match="more than 100 scans: save it again"):
        read_image(hostile_images.many_scans(tmp_path / "a.jpg", 200))


def test_scans_of_a_picture_that_is_not_progressive(tmp_path: Path) -> None:
    """Components that come one after the other are kept until all are there."""
    path = tmp_path / "a.jpg"
    Image.new("L", (64, 64)).save(path)
    data = path.read_bytes()
    path.write_bytes(data[:-2] + 200 * data[data.rindex(b"\xff\xda") : -2] + data[-2:])
    with pytest.raises(ImageError, match="more than 100 scans: save it again"):
        read_image(path)


def test_runs_of_a_bitmap(tmp_path: Path) -> None:
    path = tmp_path / "a.bmp"
    path.write_bytes(
        struct.pack("<2sIIIIiiHHIIiiII", b"BM", 60, 0, 58, 40, 60_000, 900, 1, 8, 1, 0, 0, 0, 1, 0)
        + bytes(4) + b"\0\1"
    )  # fmt: skip
    with pytest.raises(ImageError, match="compressed, with more than 20000000 pixels: save it as"):
        read_image(path)


def test_frames_larger_than_the_video(tmp_path: Path) -> None:
    """Each PNG of a MOV has a size of its own, which the decoder must not believe."""
    path, small = tmp_path / "a.mov", io.BytesIO()
    Image.new("RGB", (64, 48)).save(small, "PNG")
    with av.open(path, "w") as container:
        stream = container.add_stream("png", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "rgb24"
        stream.time_base = Fraction(1, 10)
        large = hostile_images.claimed_picture(tmp_path / "b.png", 8_000, 8_000).read_bytes()
        for number, data in enumerate([small.getvalue(), large]):
            packet = av.Packet(data)
            packet.stream, packet.time_base = stream, stream.time_base
            packet.pts = packet.dts = number
            container.mux(packet)
    assert count_frames(path) == 2
    with pytest.raises(ImageError, match="would need more than 100 MB: pass max_memory="):
        list(read_video(path, max_memory="100 MB"))


def test_digits_without_end(tmp_path: Path) -> None:
    """The same digits must not be divided in every possible way."""
    digits = "1" * 100_000 + "x"
    path = tmp_path / "a.csv"
    path.write_text(f"image,x1,y1,x2,y2,score\na,{digits},1,9,9,1\n")
    for read in (read_annotations, read_results):
        with pytest.raises(ValueError, match="must be a finite number"):
            read(path)


def test_octaves() -> None:
    detector = synthetic_cars().with_pyramid(n_octaves_up=4)
    with pytest.raises(ImageError, match=r"600 x 500 pixels, doubled 4 times, would need .* GB"):
        detector.detect(np.zeros((500, 600, 3), np.uint8))
    cars = synthetic_cars()
    badacost.set_max_memory("1 MB")
    try:
        with pytest.raises(ImageError, match=r"limit 2\.5 MB .*set_max_memory \(--max-memory\)"):
            cars.detect(np.zeros((500, 600, 3), np.uint8))
    finally:
        badacost.set_max_memory(None)


@pytest.mark.parametrize(
    ("build", "name", "n", "message"),
    [
        (hostile_images.coco_bomb, "a.json", 50_000, "would need .* limit 1 MB: pass max_memory="),
        (hostile_images.long_list, "a.csv", 5_000, "would need .* limit 1 MB: pass max_memory="),
        (hostile_images.xml_entities, "a.xml", 30, "a document type is declared"),
        (hostile_images.yaml_aliases, "data.yaml", 30, "train must be a folder or a list"),
    ],
)
def test_annotations(tmp_path: Path, build, name, n, message) -> None:
    path = build(tmp_path / name, n)
    with pytest.raises(AnnotationError, match=message):
        read_annotations(path, max_memory="1 MB")


def test_results(tmp_path: Path) -> None:
    path = hostile_images.coco_bomb(tmp_path / "a.json", 50_000)
    with pytest.raises(ValueError, match=r"a\.json.* would need .* limit 1 MB: pass max_memory="):
        read_results(path, max_memory="1 MB")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
@pytest.mark.parametrize("kind", ["pipe", "loop", "folder"])
def test_what_is_no_regular_file(tmp_path: Path, kind) -> None:
    for name, read in (
        ("a.png", read_image), ("b.mp4", count_frames), ("c.json", read_annotations),
        ("d.csv", read_annotations), ("e.csv", read_results),
    ):  # fmt: skip
        path = tmp_path / name
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "loop":
            path.symlink_to(path)
        else:
            path.mkdir()
        with pytest.raises((ValueError, OSError)) as caught:
            read(path)
        assert name in str(caught.value)


def test_tiles_that_are_larger_than_the_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    for size in (64, 8192):
        tile = zlib.compress(bytes(64 * 64))
        tags = [(256, 16), (257, 16), (258, 8), (259, 8), (262, 1)]
        tags += [(322, size), (323, size), (324, 122), (325, len(tile))]
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + tile)
        if size == 64:
            assert read_image(path, max_memory="50 MB").shape == (16, 16, 3)
    with pytest.raises(ImageError, match=r"its 16 x 16 pixels would need .* limit 50 MB"):
        read_image(path, max_memory="50 MB")


def test_many_short_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"ab\n" * 10**5)
    tracemalloc.start()
    with pytest.raises(AnnotationError, match="limit 1 MB"):
        read_annotations(path, max_memory="1 MB")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


def test_a_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"image": "a", "names": [' + "[]," * 50_000 + "[]]}")
    with pytest.raises(ValueError, match=r"it would need .* limit 2 MB"):
        read_results(path, max_memory="2 MB")
