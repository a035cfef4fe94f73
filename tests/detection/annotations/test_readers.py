"""Readers of annotations: known lines, and files that must be refused."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from badacost.detection.annotations import (
    FORMATS,
    AnnotationError,
    guessed_format,
    read_annotations,
    read_coco,
    read_fddb,
    read_folder,
    read_kitti,
    read_table,
    read_voc,
    read_yolo,
)
from badacost.detection.annotations.source import Pictures, Place

KITTI = "Car 0.25 1 -1.57 10.5 20 109 69 1.5 1.6 3.4 4.4 1.6 5.2 -1.4\n"
DONT_CARE = "DontCare -1 -1 -10 0 0 9 9 -1 -1 -1 -1000 -1000 -1000 -10\n"
VOC = """<annotation>
  <filename>a.png</filename>
  <size><width>40</width><height>30</height><depth>3</depth></size>
  <object>
    <name>car</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
    <bndbox><xmin>1</xmin><ymin>2</ymin><xmax>11</xmax><ymax>12</ymax></bndbox>
  </object>
  <object>
    <name>face</name><difficult>1</difficult>
    <bndbox><xmin>1.5</xmin><ymin>2</ymin><xmax>40</xmax><ymax>30</ymax></bndbox>
    <part><name>nose</name></part>
  </object>
</annotation>
"""
COCO = {
    "images": [
        {"id": 7, "file_name": "a.png", "width": 40, "height": 30},
        {"id": "b", "file_name": "sub/b.png"},
    ],
    "categories": [{"id": 1, "name": "car"}, {"id": 4, "name": "face"}],
    "annotations": [
        {"image_id": 7, "category_id": 4, "bbox": [1, 2, 10, 10], "angle": 450},
        {"image_id": 7, "category_id": 1, "bbox": [0, 0, 0.5, 1], "iscrowd": 1},
    ],
}
FDDB = "2002/a\n1\n20 10 0 50 60 1\n2002/b\n0\n2002/c\n1\n20 10 1.5707963267948966 50 60 1\n"
TABLE = "image,x1,y1,x2,y2,category,angle,ignore,label\na.png,1,2,11,12,car,90,1,3\n"


@pytest.fixture
def picture(tmp_path):
    """Save a picture of 40 x 30 under the folder of the test."""

    def save(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30)).save(path)
        return path

    return save


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class TestKitti:
    def test_known_lines(self, tmp_path, picture):
        image = picture("image_2/000001.png")
        written(tmp_path, "label_2/000001.txt", KITTI + "\n" + DONT_CARE)
        (found,) = read_kitti(tmp_path / "label_2")
        assert found.image == image
        assert found.boxes.tolist() == [[10.5, 20, 110, 70], [0, 0, 10, 10]]
        assert found.categories == ("Car", "DontCare")
        assert found.angles[0] == pytest.approx(math.degrees(-1.57))
        assert np.isnan(found.angles[1])
        assert (found.truncation[0], found.occlusion[0]) == (0.25, 1.0)
        assert np.isnan([found.truncation[1], found.occlusion[1]]).all()
        assert found.ignore.tolist() == [False, True]
        (alone,) = read_kitti(tmp_path / "label_2/000001.txt")
        assert alone.boxes.tolist() == found.boxes.tolist()

    def test_pictures_of_its_own_folder(self, tmp_path, picture):
        written(tmp_path, "labels/a.txt", KITTI)
        assert read_kitti(tmp_path / "labels")[0].image is None
        image = picture("elsewhere/a.png")
        assert read_kitti(tmp_path / "labels", images=tmp_path / "elsewhere")[0].image == image
        written(tmp_path, "labels/b.txt", KITTI)
        with pytest.raises(AnnotationError, match=r"b\.txt.*no picture 'b'"):
            read_kitti(tmp_path / "labels", images=tmp_path / "elsewhere")
        with pytest.raises(NotADirectoryError, match="name a folder"):
            read_kitti(tmp_path / "labels", images=tmp_path / "nowhere")

    @pytest.mark.parametrize("listed", [True, False])
    def test_pictures_are_found_by_listings(self, tmp_path, picture, monkeypatch, listed):
        """Also in a folder that may be searched but not listed."""
        known = ["a.png", "a.jpg", "b.PNG", "sub/c.tif", "D.jpg", "e", "f.gif", "g.PnG"]
        for name in known[:5]:
            picture(f"pictures/{name}")
        for name in known[5:]:
            written(tmp_path, f"pictures/{name}", "")
        (tmp_path / "pictures/h.png").mkdir()
        if not listed:
            monkeypatch.setattr("os.listdir", Mock(side_effect=PermissionError))
        pictures = Pictures((tmp_path / "nowhere", tmp_path / "pictures"), required=False)
        expected = {
            "a": "a.jpg", "a.png": "a.png", "b": "b.PNG", "sub/c": "sub/c.tif", "D": "D.jpg",
            "e": "e", "f": None, "f.gif": "f.gif", "g.PnG": "g.PnG", "h": None, "i": None,
            "sub": None, "sub/a": None, "pictures/a": "a.jpg", "pictures/sub/c": "sub/c.tif",
            "x" * 300: None, "e/a": None, "no/a": None,
        }  # fmt: skip
        for _ in range(2):
            for name, file in expected.items():
                found = pictures.find(name, Place(tmp_path))
                assert found == (None if file is None else tmp_path / "pictures" / file), name

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (KITTI + "Car 0.5\n", "a.txt', line 2: expected the 15 fields of a KITTI label; got 2"),
            (KITTI.replace("109", "x"), "line 1: field 7 must be a finite number; got 'x'"),
            (KITTI.replace("109", "1e999"), "line 1: field 7 must be a finite number"),
            (KITTI.replace("109", "nan"), "line 1: field 7 must be a finite number"),
            (KITTI.replace("109", "1"), "line 1: the box ends before it begins"),
            (KITTI.replace("109", "1e10"), "line 1: the box must lie within"),
            (KITTI.replace("-1.57", "90"), "alpha must be in radians"),
        ],
    )
    def test_refuses(self, tmp_path, text, message):
        with pytest.raises(AnnotationError, match=message):
            read_kitti(written(tmp_path, "a.txt", text))

    def test_list_needs_the_usual_folders(self, tmp_path, picture):
        picture("pictures/a.png")
        with pytest.raises(AnnotationError, match=r"line 1: expected a picture in a folder as"):
            read_kitti(written(tmp_path, "list.txt", "pictures/a.png\n"))
        for read in (read_kitti, read_yolo):
            with pytest.raises(ValueError, match="names its pictures itself"):
                read(tmp_path / "list.txt", images=tmp_path)


class TestVoc:
    def test_known_file(self, tmp_path, picture):
        image = picture("JPEGImages/a.png")
        written(tmp_path, "Annotations/a.xml", VOC)
        for path in (tmp_path, tmp_path / "Annotations", tmp_path / "Annotations/a.xml"):
            (found,) = read_voc(path)
            assert found.image == image
            assert found.size == (30, 40)
            assert found.boxes.tolist() == [[0, 1, 11, 12], [0.5, 1, 40, 30]]
            assert found.categories == ("car", "face")
            assert found.angles[0] == -180.0
            assert np.isnan(found.angles[1])
            assert found.truncation[0] == 1.0
            assert found.ignore.tolist() == [False, True]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                "<annotation>",
                "<!DOCTYPE a [<!ENTITY b 'c'>]><annotation>",
                "line 1: a document type",
            ),
            (
                "<annotation>",
                "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><annotation>",
                "document type",
            ),
            ("</object>", "", "line 13: this is not XML: mismatched tag"),
            ("annotation>", "other>", "expected an element <annotation>"),
            ("<xmax>11</xmax>", "", "line 4: <xmax> must be a finite number; got ''"),
            ("<xmax>11</xmax>", "<xmax>0</xmax>", ""),
            ("<bndbox>", "<bdbox/><other>", "not XML"),
            ("<name>car</name>", "", "line 4: the category must be non-empty printable"),
            ("<truncated>1<", "<truncated>yes<", "<truncated> must be 0 or 1; got 'yes'"),
            ("<width>40<", "<width>-4<", "line 3: <width> must be an integer"),
            ("<filename>a.png", "<filename>../../a.png", "must lie in its folder"),
            ("<name>car", "<name>" + "<a>" * 40, "not XML|nested too deep"),
        ],
    )
    def test_refuses(self, tmp_path, old, new, message):
        text = VOC.replace(old, new)
        if "<xmax>0" in new:
            text, message = text.replace("<xmin>1<", "<xmin>5<"), "line 4: the box ends before"
        with pytest.raises(AnnotationError, match=message):
            read_voc(written(tmp_path, "a.xml", text))

    def test_refuses_other_encodings(self, tmp_path):
        (tmp_path / "a.xml").write_bytes(VOC.encode("utf-16"))
        with pytest.raises(AnnotationError, match="line 1: this is not text in UTF-8"):
            read_voc(tmp_path / "a.xml")

    def test_refuses_large_files(self, tmp_path):
        path = written(tmp_path, "a.xml", VOC + " " * 2**16)
        with pytest.raises(AnnotationError, match=r"would need .* pass max_memory="):
            read_voc(path, max_memory="100 kB")


class TestCoco:
    def test_known_file(self, tmp_path, picture):
        image = picture("images/a.png")
        first, second = read_coco(written(tmp_path, "a.json", json.dumps(COCO)))
        assert (first.image, first.size, second.image) == (image, (30, 40), None)
        assert first.boxes.tolist() == [[1, 2, 11, 12], [0, 0, 0.5, 1]]
        assert first.categories == ("face", "car")
        assert first.angles[0] == 90.0
        assert first.ignore.tolist() == [False, True]
        assert (len(second), second.name) == (0, "sub/b.png")

    @pytest.mark.parametrize(
        ("key", "number", "change", "message"),
        [
            ("images", 1, {"id": 7}, "images 1: the id 7 is that of an earlier image"),
            ("images", 0, {"id": None}, "images 0: id must be an integer"),
            ("images", 0, {"file_name": 3}, "images 0: file_name must be a string"),
            ("images", 0, {"file_name": "../.."}, "must lie in its folder"),
            ("images", 0, {"width": 0.5}, "images 0: width must be"),
            ("images", 0, {"width": 10**400}, "images 0: width must be"),
            (
                "categories",
                1,
                {"name": "\n"},
                "categories 1: the category must be non-empty printable",
            ),
            ("annotations", 1, {"image_id": 8}, "annotations 1: image_id 8 is not the id"),
            ("annotations", 1, {"category_id": 8}, "annotations 1: category_id 8 is not the id"),
            ("annotations", 0, {"bbox": [1, 2, 3]}, "annotations 0: bbox must be a list"),
            ("annotations", 0, {"bbox": [1, 2, -3, 4]}, "annotations 0: the box ends before"),
            ("annotations", 0, {"bbox": [1, 2, math.nan, 4]}, "NaN is not a finite number"),
            ("annotations", 0, {"iscrowd": 2}, "iscrowd must be 0 or 1"),
            ("annotations", 0, {"angle": "x"}, "angle must be a finite number"),
            ("annotations", 0, {"attributes": [1]}, "attributes must be an object"),
            ("annotations", 0, {"attributes": {"yaw": 200}}, "yaw must be .* of -180 to 180"),
            ("annotations", 0, {"attributes": {"occluded": "yes"}}, "occluded must be 0 or 1"),
            ("annotations", 0, {"attributes": {"rotation": True}}, "rotation must be"),
        ],
    )
    def test_refuses(self, tmp_path, key, number, change, message):
        document = json.loads(json.dumps(COCO))
        document[key][number] |= change
        with pytest.raises(AnnotationError, match=message):
            read_coco(written(tmp_path, "a.json", json.dumps(document)))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"images": [],\n]', "line 2: this is not JSON"),
            ("[]", "expected an object"),
            ("{}", "expected a list 'categories'"),
            ("[" * 100_000, "nested too deep"),
            ("1" * 5000, "digits"),
            ('{"categories": [3]}', "categories 0: expected an object; got 3"),
        ],
    )
    def test_refuses_text(self, tmp_path, text, message):
        with pytest.raises(AnnotationError, match=message):
            read_coco(written(tmp_path, "a.json", text))


class TestYolo:
    def test_known_files(self, tmp_path, picture):
        picture("images/train/a.png"), picture("images/train/b.png")
        written(tmp_path, "labels/train/a.txt", "1 0.5 0.5 0.25 0.5\n")
        first, second = read_yolo(tmp_path, names=["car", "face"])
        assert first.boxes.tolist() == [[15, 7.5, 25, 22.5]]
        assert (first.categories, first.size, len(second)) == (("face",), (30, 40), 0)
        for path in (
            tmp_path / "labels/train",
            written(tmp_path, "all.txt", "images/train/a.png\nimages/train/b.png\n"),
        ):
            assert [image.name for image in read_yolo(path)] == ["a.png", "b.png"]
            assert read_yolo(path)[0].categories == ("1",)

    def test_names_beside_the_labels(self, tmp_path, picture):
        picture("images/a.png")
        written(tmp_path, "labels/a.txt", "1 0.5 0.5 0.25 0.5\n")
        written(tmp_path, "labels/classes.txt", "car\nface\n")
        assert read_yolo(tmp_path / "labels")[0].categories == ("face",)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("0 0.5 0.5 0.5\n", r"a\.txt', line 1: expected the 5 fields of a YOLO box; got 4"),
            ("\n0 0.5 0.5 0.5 1.5\n", "line 2: field 5 must be a finite number of 0 to 1"),
            ("-1 0.5 0.5 0.5 0.5\n", "line 1: the class must be an integer"),
            ("2 0.5 0.5 0.5 0.5\n", "line 1: the class must be one of 2"),
        ],
    )
    def test_refuses(self, tmp_path, picture, text, message):
        picture("images/a.png")
        written(tmp_path, "labels/a.txt", text)
        with pytest.raises(AnnotationError, match=message):
            read_yolo(tmp_path, names=["car", "face"])

    def test_refuses_labels_without_picture(self, tmp_path, picture):
        picture("images/a.png")
        written(tmp_path, "labels/b.txt", "")
        with pytest.raises(AnnotationError, match=r"b\.txt': there is no picture of this name"):
            read_yolo(tmp_path)
        with pytest.raises(AnnotationError, match="not in one named labels"):
            read_yolo(written(tmp_path, "other/b.txt", "").parent)


class TestFddb:
    def test_known_list(self, tmp_path, picture):
        image = picture("images/2002/b.jpg")
        first, second, third = read_fddb(written(tmp_path, "list.txt", FDDB))
        assert np.allclose(first.boxes, [[30, 50, 70, 70]])
        assert np.allclose(third.boxes, [[40, 40, 60, 80]])
        assert first.ellipses.tolist() == [[20, 10, 0, 50, 60]]
        assert (second.image, len(second), third.image) == (image, 0, None)
        assert (first.categories, first.name) == (("Face",), "2002/a")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a\n", "line 1: the line after the name of a picture must be an integer"),
            ("a\nb\n", "line 2: the line after the name of a picture must be an integer"),
            ("a\n2\n20 10 0 50 60 1\n", "line 3: expected face 2 of 2"),
            ("a\n99999999\n", "line 2: expected face 1 of 99999999"),
            ("a\n1\n20 10 0 50\n", "line 3: expected face 1 of 1"),
            ("a\n1\n20 10 0 x 60 1\n", "line 3: field 4 must be a finite number; got 'x'"),
            ("a\n1\n0 10 0 50 60 1\n", "line 3: the radii"),
            ("../a\n0\n", "line 1: the name of a picture must lie in its folder"),
        ],
    )
    def test_refuses(self, tmp_path, text, message):
        with pytest.raises(AnnotationError, match=message):
            read_fddb(written(tmp_path, "list.txt", text))


class TestTable:
    def test_known_rows(self, tmp_path, picture):
        image = picture("images/a.png")
        text = TABLE + "b.png,,,,,,,,\na.png,0,0,1,1,,,,\n"
        first, second = read_table(written(tmp_path, "a.csv", text), category="thing")
        assert (first.image, second.image, len(second)) == (image, None, 0)
        assert first.boxes.tolist() == [[1, 2, 11, 12], [0, 0, 1, 1]]
        assert first.categories == ("car", "thing")
        assert first.labels.tolist() == [3, -1]
        assert first.ignore.tolist() == [True, False]
        assert first.angles[0] == 90.0
        assert np.isnan(first.angles[1])

    def test_other_names_of_columns(self, tmp_path):
        path = written(tmp_path, "a.csv", "x1,y1,x2,y2,file,turn\n0,0,1,1,a,-30\n")
        (found,) = read_table(path, columns={"image": "file", "yaw": "turn"})
        assert (found.name, found.angles[0]) == ("a", 60.0)
        with pytest.raises(ValueError, match="columns has 'other'"):
            read_table(path, columns={"other": "file"})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "line 1: expected a header with image, x1, y1, x2, y2; 'image' is not there"),
            (TABLE + "a.png,1,2\n", "line 3: expected 9 fields, as in the header; got 3"),
            (TABLE.replace("11", "x"), "line 2: x2 must be a finite number; got 'x'"),
            (TABLE.replace("11", ""), "line 2: x2 must be a finite number; got ''"),
            (TABLE.replace("11", "0"), "line 2: the box ends before"),
            (TABLE.replace(",1,3", ",2,3"), "line 2: ignore must be 0 or 1; got '2'"),
            (TABLE.replace(",1,3", ",1,x"), "line 2: label must be an integer"),
            (TABLE + '"a', "line 3: this is not comma-separated"),
            (TABLE.replace("\na.png", "\n"), "line 2: the name of a picture"),
        ],
    )
    def test_refuses(self, tmp_path, text, message):
        with pytest.raises(AnnotationError, match=message):
            read_table(written(tmp_path, "a.csv", text))


class TestFolder:
    def test_folder_and_list(self, tmp_path, picture):
        picture("b.png"), picture("sub/a.jpg")
        assert [image.name for image in read_folder(tmp_path)] == ["b.png", "sub/a.jpg"]
        names = written(tmp_path, "list.txt", "sub/a.jpg\n")
        assert [image.name for image in read_folder(names)] == ["sub/a.jpg"]

    def test_refuses(self, tmp_path, picture):
        with pytest.raises(AnnotationError, match="no pictures"):
            read_folder(tmp_path)
        with pytest.raises(AnnotationError, match=r"line 1: there is no picture .*a\.jpg"):
            read_folder(written(tmp_path, "list.txt", "a.jpg\n"))
        with pytest.raises(AnnotationError, match="line 1: there is no picture"):
            read_folder(written(tmp_path, "list.txt", "a" * 5000 + ".jpg\n"))
        picture("a.jpg")
        with pytest.raises(AnnotationError, match="line 2: expected the name of a picture"):
            read_folder(written(tmp_path, "list.txt", "a.jpg\nb\n"))


class TestGuess:
    def test_files(self, tmp_path, picture):
        picture("plain/a.png")
        for name, text, expected in (
            ("a.json", "{}", "coco"),
            ("a.xml", "", "voc"),
            ("a.csv", "", "table"),
            ("kitti.txt", KITTI, "kitti"),
            ("yolo.txt", "0 0.5 0.5 0.5 0.5", "yolo"),
            ("fddb.txt", FDDB, "fddb"),
            ("list.txt", "plain/a.png", "folder"),
        ):
            assert guessed_format(written(tmp_path, name, text)) == expected

    def test_folders(self, tmp_path, picture):
        picture("plain/a.png"), picture("yolo/images/a.png"), picture("image_2/a.png")
        written(tmp_path, "label_2/0.txt", "")
        written(tmp_path, "label_2/a.txt", KITTI)
        written(tmp_path, "voc/a.xml", VOC)
        labels = written(tmp_path, "yolo/labels/a.txt", "")
        for name, expected in (
            ("plain", "folder"),
            ("label_2", "kitti"),
            ("voc", "voc"),
            ("yolo", "yolo"),
            ("yolo/labels", None),
        ):
            if expected is None:
                with pytest.raises(AnnotationError, match="cannot infer its format; pass format"):
                    guessed_format(tmp_path / name)
            else:
                assert guessed_format(tmp_path / name) == expected
        lines = ["image_2/a.png", "yolo/images/a.png"]
        lists = [written(tmp_path, f"{i}.txt", line) for i, line in enumerate(lines)]
        assert [guessed_format(path) for path in lists] == ["kitti", "yolo"]
        labels.write_text(KITTI)
        assert guessed_format(lists[1]) == "kitti"

    def test_refuses(self, tmp_path):
        with pytest.raises(AnnotationError, match="no such file or folder"):
            read_annotations(tmp_path / "none")
        with pytest.raises(ValueError, match="format must be one of 'coco'"):
            read_annotations(tmp_path, "matlab")


GARBAGE = {
    "coco": ("a.json", json.dumps(COCO)),
    "fddb": ("a.txt", FDDB),
    "folder": ("a.txt", "a.jpg\n"),
    "kitti": ("a.txt", KITTI + DONT_CARE),
    "table": ("a.csv", TABLE),
    "voc": ("a.xml", VOC),
    "yolo": ("labels/a.txt", "0 0.5 0.5 0.5 0.5\n"),
}
assert set(GARBAGE) == set(FORMATS)


@pytest.fixture(scope="module")
def garbage_folder():
    folder = Path(tempfile.mkdtemp())
    (folder / "labels").mkdir()
    (folder / "images").mkdir()
    Image.new("RGB", (40, 30)).save(folder / "images/a.png")
    yield folder
    shutil.rmtree(folder)


def refusal(path: Path, format: str | None) -> str:
    """The message of the ValueError, the only one that garbage may raise."""
    try:
        read_annotations(path, format)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("format", FORMATS)
class TestGarbage:
    """Whatever is in a file, it is read or refused by a ValueError of one line."""

    def read(self, format: str, folder: Path, data: bytes) -> None:
        name, _ = GARBAGE[format]
        (folder / name).write_bytes(data)
        path = folder / name if format != "yolo" else folder / "labels"
        for explicit in (format, None):
            message = refusal(path, explicit)
            assert "\n" not in message
            assert len(message) < 1000

    @given(data=st.binary(max_size=200))
    def test_bytes(self, garbage_folder, format, data):
        self.read(format, garbage_folder, data)

    @given(
        position=st.integers(0, 1500),
        length=st.integers(0, 5),
        other=st.text(st.characters(codec="utf-8"), max_size=3)
        | st.sampled_from(["-1", "1e999", "nan", "\0", "../", "\n", "<!DOCTYPE a>", "&a;", '"']),
    )
    def test_damaged(self, garbage_folder, format, position, length, other):
        text = GARBAGE[format][1]
        position %= len(text)
        damaged = text[:position] + other + text[position + length :]
        self.read(format, garbage_folder, damaged.encode())
