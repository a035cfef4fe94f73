"""Files of results: what is written is read, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from badacost.detection import Detections
from badacost.detection.images import ImageSource
from badacost.detection.interchange import open_results, read_results

LINE = "{} -1 -1 {} 10 20 29 59 -1 -1 -1 -1000 -1000 -1000 -10 {}\n"


def test_headings_of_kitti_are_views(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINE.format("Car", 1.57, 3) + LINE.format("Car", -1.57, 2))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.txt").write_text(LINE.format("Car", 1.57, 1))
    found = read_results(tmp_path)
    assert list(found) == ["a.txt", "more/b.txt"]
    assert found["a.txt"].views == ["89.954°", "-89.954°"]
    assert found["a.txt"].names == found["more/b.txt"].names
    (tmp_path / "a.txt").write_text(LINE.format("Car", -10, 3))
    assert read_results(tmp_path)["a.txt"].names == ("Car",)


def test_types_of_kitti(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(LINE.format("Car", 0, 3) + LINE.format("Van", 0, 2))
    assert len(read_results(tmp_path, "van")["a.txt"]) == 1
    with pytest.raises(ValueError, match="the results are of Car, Van"):
        read_results(tmp_path)
    with pytest.warns(UserWarning, match="no detection is of 'Tram'; they are of Car, Van"):
        assert len(read_results(tmp_path, "Tram")["a.txt"]) == 0
    path.write_text(LINE.format("Car", 0, 3) + LINE.format("car", 0, 2))
    with pytest.raises(ValueError, match="spelled Car, car: choose one"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.xml", b"", "cannot infer the format"),
        ("r.csv", b"\xff\xfe\x00", "not a file of text"),
        ("r.json", b"[", "not JSON"),
        ("r.json", b"[" * 100_000, "not JSON"),
        ("r.json", b'[{"image_id": 1}]', "record 0"),
        ("r.jsonl", b"{", "line 1"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_results(path)


def found(name: str, path: str | None = None, frame: int | None = None) -> Detections:
    source = ImageSource(name, (30, 40), None if path is None else Path(path), frame)
    kind = Detections([[0, 0, 20, 10]], [3.0], [1], ["right", "front"], [0.0, 90.0], "Car")
    return replace(kind, source=source)


@pytest.mark.parametrize("name", ["new/r.jsonl", "r.ndjson", "r.csv", "r.json", "kitti"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    with open_results(tmp_path / name) as results:
        results.write(found("pictures/a.png", "pictures/a.png"))
        results.fail("pictures/b.png", "it is empty.")
        results.write(found("clip.mp4#000003", "clip.mp4", 3))
    read = read_results(tmp_path / name)
    names = ["pictures/a.png", "clip.mp4#000003"]
    assert sorted(read) == sorted(["a.txt", "clip-000003.txt"] if name == "kitti" else names)
    for boxes in read.values():
        assert boxes.boxes.tolist() == [[0, 0, 20, 10]]
        assert (boxes.scores.tolist(), boxes.category) == ([3.0], "Car")


def test_files_of_kitti_have_names_of_their_own(tmp_path: Path) -> None:
    with open_results(tmp_path) as results:
        for path in ("x/a.png", "y/A.png"):
            results.write(found(path, path))
        results.write(found("image 0"))
        results.write(found("b.png", "b.png"), "deep/b")
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.txt")}
    assert names == {"a.txt", "A-2.txt", "image 0.txt", "deep/b.txt"}


def test_coco_has_names_relative_to_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("earlier")
    with open_results(path, folder=tmp_path / "in") as results:
        results.write(found(str(tmp_path / "in" / "deep" / "a.png")))
        assert not results.is_complete
        assert path.read_text() == "earlier"
    assert list(read_results(path)) == ["deep/a.png"]


def test_standard_output(capsys) -> None:
    for format in (None, "csv", "coco"):
        with open_results(format=format) as results:
            assert results.is_complete
            results.write(found("a.png"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('{"image": "a.png"')
    assert lines[2].startswith("a.png,0.0,0.0,20.0,10.0,3.0,front")
    assert json.loads("".join(lines[3:]))["images"][0]["file_name"] == "a.png"


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("r.xml", None, "cannot infer the format of .*pass format"),
        (".", "csv", "is a folder: name a file for csv"),
        ("file", "kitti", "a file for each image: name a folder"),
        ("r.jsonl", "xml", "format must be one of 'jsonl', 'csv'"),
    ],
)
def test_where_nothing_is_written(tmp_path: Path, name: str, format: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=message):
        open_results(tmp_path / name, format)


def test_detections_of_no_image(tmp_path: Path) -> None:
    with (
        open_results(tmp_path / "r.csv") as results,
        pytest.raises(ValueError, match="do not know their image"),
    ):
        results.write(Detections.empty(["front"]))
