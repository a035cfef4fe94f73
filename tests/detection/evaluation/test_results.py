"""Files of results: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from badacost.detection.evaluation import read_results

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
        ("r.xml", b"", "has no known format"),
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
