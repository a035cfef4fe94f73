"""Files of results: what is written is read, and what is refused."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from badacost import __version__, set_max_memory
from badacost.detection import Detections
from badacost.detection.images import ImageSource
from badacost.detection.interchange import ResultsWriter, open_results, read_results
from tests.file_size_limit import file_size_limit

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


def test_a_picture_that_fails_has_no_earlier_result(tmp_path: Path) -> None:
    for fails in (False, True):
        with open_results(tmp_path) as results:
            results.write(found("a.png", "a.png"))
            if fails:
                results.fail("b.png", "it is empty.")
            else:
                results.write(found("b.png", "b.png"))
    assert list(contents(tmp_path)) == ["a.txt"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_of_others_is_in_the_way(tmp_path: Path, resume: bool) -> None:
    other = tmp_path / "r.csv.partial"
    other.write_text("mine\n")
    with pytest.raises(ValueError, match="has no results of this version of badacost: move it"):
        open_results(tmp_path / "r.csv", resume=resume)
    assert other.read_text() == "mine\n"


def test_coco_has_names_relative_to_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("earlier")
    with open_results(path, folder=tmp_path / "in") as results:
        results.write(found(str(tmp_path / "in" / "deep" / "a.png")))
        assert path.read_text() == "earlier"
    assert list(read_results(path)) == ["deep/a.png"]


def test_standard_output(capsys) -> None:
    for format in (None, "csv", "coco"):
        with open_results(format=format) as results:
            assert results.partial is None
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


FILES = ["r.jsonl", "r.csv", "r.json", "kitti"]


def contents(folder: Path) -> dict[str, bytes]:
    """Files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def write_some(results: ResultsWriter, first: int, last: int) -> None:
    """Write images, of which one failed; the others have the same name in several folders."""
    for number in range(first, last):
        if number == 2:
            results.fail("broken.png", "it is empty.")
            continue
        part = found(f"{number}/a.png", f"{number}/a.png")
        results.write(replace(part, scores=np.array([(number + 1) / 3]), boxes=part.boxes / 3))


def interrupted(path: Path, n_images: int, **options) -> ResultsWriter:
    """Write some results, then press Ctrl-C."""
    with suppress(KeyboardInterrupt), open_results(path, **options) as results:
        write_some(results, 0, n_images)
        raise KeyboardInterrupt
    return results


class TestPartial:
    """Results until they are complete."""

    @pytest.mark.parametrize("name", FILES)
    def test_earlier_results_stay_until_the_new_ones_are_there(self, tmp_path, name) -> None:
        with open_results(tmp_path / name) as results:
            results.write(found("a.png", "a.png"))
        earlier = contents(tmp_path)
        assert len(earlier) == 1
        with open_results(tmp_path / name) as results:
            results.write(replace(found("a.png", "a.png"), scores=np.array([0.5])))
            line = results.partial.read_text().splitlines()[1]
            assert json.loads(line)["detections"][0]["score"] == 0.5
            assert {key: contents(tmp_path)[key] for key in earlier} == earlier
        assert contents(tmp_path).keys() == earlier.keys()
        assert contents(tmp_path) != earlier

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("stop", [1, 3, 4])
    @pytest.mark.parametrize("rest", [b"", b'{"image": "0/a.png", "det'])
    def test_what_is_resumed_is_the_same(self, tmp_path, name, stop, rest) -> None:
        expected, resumed = tmp_path / "expected", tmp_path / "resumed"
        with open_results(expected / name, made_from={"model": "m"}) as results:
            write_some(results, 0, 5)
        results = interrupted(resumed / name, stop, made_from={"model": "m"})
        assert list(contents(resumed)) == [str(results.partial.relative_to(resumed))]
        with results.partial.open("ab") as file:  # a kill leaves half a line
            file.write(rest)
        with open_results(resumed / name, made_from={"model": "m"}, resume=True) as results:
            assert (results.n_done, results.n_failed) == (stop, int(stop > 2))
            write_some(results, stop, 5)
        assert contents(resumed) == contents(expected)

    def test_nothing_to_resume(self, tmp_path) -> None:
        for start in (b"", b'{"version'):
            (tmp_path / "r.csv.partial").write_bytes(start)
            with open_results(tmp_path / "r.csv", resume=True) as results:
                assert results.n_done == 0
                results.write(found("a.png"))
            assert list(read_results(tmp_path / "r.csv")) == ["a.png"]

    def test_an_error_before_the_first_result_leaves_nothing(self, tmp_path) -> None:
        with pytest.raises(RuntimeError), open_results(tmp_path / "r.csv"):
            raise RuntimeError
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("head", "message"),
        [
            ('{"version of badacost": "0", "model": "m"}', "with another version of badacost; rem"),
            ('{"version of badacost": "VERSION", "model": "x"}', "with another model; remove"),
            ('{"version of badacost": "VERSION", "model": "m", "--conf": 1}', "another --conf;"),
            ('{"version of badacost": "VERSION", 1', "it is damaged; remove this file"),
            ('{"model": "m"}', "has no results of this version of badacost"),
        ],
    )
    def test_other_results_are_refused(self, tmp_path, head, message) -> None:
        partial = tmp_path / "r.csv.partial"
        text = head.replace("VERSION", __version__) + "\n"
        partial.write_text(text)
        with pytest.raises(ValueError, match=message):
            open_results(tmp_path / "r.csv", made_from={"model": "m"}, resume=True)
        assert contents(tmp_path) == {"r.csv.partial": text.encode()}

    @pytest.mark.parametrize(
        "change",
        [
            {"stem": "../a"}, {"stem": "/a"}, {"stem": 3}, {"stem": "a\0"}, {"stem": "9" * 400},
            {"size": [0, 3]}, {"size": [1, 2, 3]}, {"size": 4}, {"size": [1.0, 2]}, {"image": 3},
            {"detections": 3}, {"names": []}, {"error": 3},
        ],
    )  # fmt: skip
    def test_lines_are_checked(self, tmp_path, change) -> None:
        """What is no result is cut off, with all that follows."""
        results = interrupted(tmp_path / "r.csv", 4)
        lines = results.partial.read_text().splitlines()
        lines[2] = json.dumps(json.loads(lines[2]) | change)
        results.partial.write_text("\n".join(lines) + "\n")
        with open_results(tmp_path / "r.csv", resume=True) as results:
            assert results.n_done == 1

    @pytest.mark.parametrize("name", FILES)
    def test_two_at_a_time(self, tmp_path, name) -> None:
        with open_results(tmp_path / name) as results:
            results.write(found("a.png", "a.png"))
            with pytest.raises(
                BlockingIOError, match=f"another process is writing .*{name}': wait"
            ):
                open_results(tmp_path / name)
        assert len(contents(tmp_path)) == 1

    @pytest.mark.parametrize("name", FILES)
    def test_a_full_disk_at_the_end(self, tmp_path, name, monkeypatch) -> None:
        def full(*arguments) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        target = tmp_path / name
        with monkeypatch.context() as patch:
            results = open_results(target)
            write_some(results, 0, 5)
            patch.setattr(os, "replace", full)
            with (
                pytest.raises(OSError, match=r"cannot write .*: the disk is full: make room"),
                results,
            ):
                pass
        assert list(contents(tmp_path)) == [str(results.partial.relative_to(tmp_path))]
        with open_results(target, resume=True) as results:
            assert results.n_done == 5
        assert len(read_results(target)) == 4

    def test_a_full_disk_on_the_way(self, tmp_path) -> None:
        """A line that does not fit leaves no half of it."""
        path = tmp_path / "r.jsonl"
        path.write_text("earlier")
        message = r"cannot write '.*r\.jsonl\.partial': the file-size limit is reached"
        with (
            file_size_limit(900),
            pytest.raises(OSError, match=message),
            open_results(path) as results,
        ):
            write_some(results, 3, 30)
        assert path.read_text() == "earlier"
        assert results.partial.read_bytes().endswith(b"\n")
        with open_results(path, resume=True) as results:
            assert results.n_done > 1
        assert len(path.read_text().splitlines()) == results.n_done

    def test_names_of_files_stay_in_the_folder(self, tmp_path) -> None:
        with open_results(tmp_path / "kitti") as results:
            results.write(found("/far/away.png"))
            with pytest.raises(ValueError, match="give another stem"):
                results.write(found("a.png"), "../a")
            with pytest.raises(ValueError, match="give another stem"):
                results.write(found("a.png"), "9" * 252)
        assert list(contents(tmp_path)) == ["kitti/away.png.txt"]

    def test_results_that_vanish_are_not_taken_for_all(self, tmp_path) -> None:
        results = open_results(tmp_path / "r.csv")
        write_some(results, 0, 3)
        lines = results.partial.read_text().splitlines(keepends=True)
        results.partial.write_text("".join(lines[:2]))
        with pytest.raises(ValueError, match="it has 1 results where 3 were written"), results:
            pass
        assert not (tmp_path / "r.csv").exists()

    @pytest.mark.parametrize("name", FILES)
    def test_results_are_not_lost_by_a_forgotten_flag(self, tmp_path, name) -> None:
        interrupted(tmp_path / name, 2)
        before = contents(tmp_path)
        with pytest.raises(ValueError, match=r"pass resume=True \(--resume\) .*, or remove"):
            open_results(tmp_path / name)
        assert contents(tmp_path) == before

    @pytest.fixture
    def small_memory(self):
        set_max_memory("20 kB")
        yield
        set_max_memory(None)

    def test_many_boxes_and_little_memory(self, tmp_path, small_memory) -> None:
        """The limit is one of files of users: it does not end a run, and cuts nothing off."""
        one = found("a.png")
        many = replace(
            one,
            boxes=np.repeat(one.boxes, 200, 0),
            scores=np.linspace(1.0, 0.5, 200),
            labels=np.repeat(one.labels, 200),
        )
        path = tmp_path / "r.csv"
        with pytest.raises(KeyboardInterrupt), open_results(path) as results:  # noqa: PT012
            for part in (one, many, one):
                results.write(part)
            raise KeyboardInterrupt
        before = contents(tmp_path)
        with pytest.raises(ValueError, match=r"cannot resume .*would need .*--max-memory"):
            open_results(path, resume=True)
        assert contents(tmp_path) == before
        results.partial.unlink()
        with open_results(path) as results:
            for name in ("a.png", "b.png", "c.png"):
                results.write(replace(many, source=found(name).source))
        assert [len(boxes) for boxes in read_results(path, max_memory="1 GB").values()] == [200] * 3

    @pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system has no /proc")
    def test_a_redirected_output_is_written_to(self, tmp_path) -> None:
        with open(tmp_path / "redirected", "w+") as file:
            (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{file.fileno()}")
            (tmp_path / "redirected").write_text("earlier\n")
            with open_results(tmp_path / "stdout", "jsonl") as results:
                assert results.partial is None
                results.write(found("a.png"))
            assert file.readline() == "earlier\n"
            assert len(file.read().splitlines()) == 1
        assert sorted(os.listdir(tmp_path)) == ["redirected", "stdout"]

    def test_devices_are_written_to(self) -> None:
        with open_results(os.devnull, "jsonl") as results:
            assert results.partial is None
            results.write(found("a.png"))
        with pytest.raises(ValueError, match="only results in a file can be resumed"):
            open_results(os.devnull, "jsonl", resume=True)
