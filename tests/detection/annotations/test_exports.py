"""What CVAT, Label Studio and trainers of YOLO export, read as it is unpacked."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from badacost import set_max_memory
from badacost.detection import ImageError
from badacost.detection.annotations import (
    AnnotatedImage,
    AnnotationError,
    guessed_format,
    read_annotations,
    read_coco,
    read_yolo,
)

Save = Callable[..., Path]
RIGHT = np.array([[1.0, 2.0, 11.0, 12.0]])


@pytest.fixture
def saved(tmp_path: Path) -> Save:
    """Save a picture of 40 x 30, or a file with contents, under the folder of the test."""

    def save(name: str, contents: object = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if contents is None:
            Image.new("RGB", (40, 30)).save(path)
        else:
            text = contents if isinstance(contents, str) else json.dumps(contents)
            path.write_text(text, encoding="utf-8")
        return path

    return save


def document(*names: str, **entries: object) -> dict[str, list[dict[str, object]]]:
    """A document with these images, and an object in the first of them."""
    record = {"id": 1, "image_id": 0, "category_id": 0, "bbox": [1, 2, 10, 10]}
    return {
        "images": [{"id": i, "file_name": name} for i, name in enumerate(names)],
        "categories": [{"id": 0, "name": "car"}],
        "annotations": [record | entries],
    }


def cvat(**attributes: object) -> dict[str, object]:
    """Entries of a record of CVAT."""
    common = {"occluded": False, "rotation": 0.0, "track_id": 3, "keyframe": True}
    return {"iscrowd": 0, "area": 100, "segmentation": [], "attributes": common | attributes}


class TestCvat:
    @pytest.mark.parametrize("folder", ["images/default", "images", "default"])
    def test_unpacked_folder(self, tmp_path, saved, folder) -> None:
        picture = saved(f"{folder}/drive/frame_000000.png")
        head = {"width": 40, "height": 30, "license": 0, "flickr_url": "", "date_captured": 0}
        export = document("drive/frame_000000.png", **cvat())
        export["images"][0] |= head
        path = saved("annotations/instances_default.json", export)
        for source in (tmp_path, path):
            assert guessed_format(source) == "coco"
            (found,) = read_annotations(source)
            assert found.image == picture
            assert (found.boxes == RIGHT).all()
            assert found.occlusion.tolist() == [0.0]
            assert np.isnan(found.truncation).all()

    def test_subsets_are_all_read(self, tmp_path, saved) -> None:
        for part in ("train", "val"):
            saved(f"images/{part}/a.png")
            saved(f"annotations/instances_{part}.json", document("a.png"))
        assert [image.image.parent.name for image in read_coco(tmp_path)] == ["train", "val"]

    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            ({"angle": 45}, {"angles": 45.0}),
            ({"angle": "45.5"}, {"angles": 45.5}),
            ({"angle": ""}, {"angles": math.nan}),
            ({"yaw": "-30", "angle": 5}, {"angles": 60.0}),
            ({"view": "front"}, {"angles": 90.0}),
            ({"view": "Left", "angle": 170}, {"angles": 170.0}),
            ({"view": "three quarters"}, {"angles": math.nan}),
            ({"occluded": True}, {"occlusion": 1.0}),
            ({"truncated": "true"}, {"truncation": 1.0}),
            ({"ignore": True}, {"ignore": True}),
            ({"ignore": "false"}, {"ignore": False}),
        ],
    )
    def test_attributes(self, saved, attributes, expected) -> None:
        (found,) = read_coco(saved("a.json", document("a.png", **cvat(**attributes))))
        for name, value in expected.items():
            assert np.array_equal(getattr(found, name), [value], equal_nan=True)

    def test_other_names(self, saved) -> None:
        path = saved("a.json", document("a.png", **cvat(orientation=30, hidden=1)))
        names = {"angle": "orientation", "occluded": "hidden"}
        (found,) = read_annotations(path, columns=names)
        assert (found.angles[0], found.occlusion[0]) == (30.0, 1.0)
        with pytest.raises(ValueError, match="attributes has 'heading'; known are angle"):
            read_coco(path, attributes={"heading": "orientation"})

    def test_names_of_views(self, saved) -> None:
        path = saved("a.json", document("a.png", **cvat(view="half left")))
        (found,) = read_coco(path, views=["front", "half left"])
        assert found.labels.tolist() == [1]
        assert read_coco(path)[0].labels.tolist() == [-1]
        with pytest.raises(AnnotationError, match="annotations 0: view must be one of front; got"):
            read_coco(path, views=["front"])

    @given(st.floats(0.0, 360.0), st.floats(1.0, 50.0), st.floats(1.0, 50.0))
    def test_a_turned_box_is_inside(self, degrees, width, height) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.json")
            record = cvat(rotation=degrees) | {"bbox": [100, 100, width, height]}
            path.write_text(json.dumps(document("a.png", **record)))
            (found,) = read_coco(path)
        turn = math.radians(degrees)
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [width / 2, height / 2]
        turned = corners @ [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
        turned += [100 + width / 2, 100 + height / 2]
        expected = [*turned.min(axis=0), *turned.max(axis=0)]
        assert found.boxes[0] == pytest.approx(expected, abs=1e-9)


class TestLabelStudio:
    @pytest.mark.parametrize(
        "name",
        [
            "images/1f2e-a.png",
            "images\\1f2e-a.png",
            "/data/upload/3/1f2e-a.png",
            "/data/local-files/?d=drive/1f2e-a.png",
            "/data/local-files/?d=drive%2F1f2e-a.png",
            "../../media/upload/3/1f2e-a.png",
            "C:\\media\\upload\\1f2e-a.png",
            "https://example.org/pictures/1f2e-a.png?size=large",
            "s3://bucket/1f2e%2Da.png",
        ],
    )
    def test_names_of_pictures(self, tmp_path, saved, name) -> None:
        picture = saved("images/1f2e-a.png")
        export = document(name, ignore=0, iscrowd=0, segmentation=[], area=100)
        path = saved("result.json", export)
        assert guessed_format(tmp_path) == "coco"
        for found in (*read_coco(tmp_path), *read_coco(path, images=tmp_path / "images")):
            assert found.image == picture
            assert found.categories == ("car",)
            assert (found.boxes == RIGHT).all()

    def test_nothing_outside_is_opened(self, tmp_path, saved) -> None:
        secret = saved("secret.png")
        for name in (str(secret), "../secret.png", f"file://{secret}", "..\\secret.png"):
            path = saved("export/result.json", document(name))
            (found,) = read_coco(path)
            assert found.image is None
            assert found.name == "secret.png"
            with pytest.raises(AnnotationError, match="images 0: there is no picture 'secret"):
                read_coco(path, images=tmp_path / "export")

    def test_sizes_may_be_unknown(self, saved) -> None:
        export = document("a.png")
        export["images"][0] |= {"width": None, "height": None}
        assert read_coco(saved("a.json", export))[0].size is None

    def test_refuses(self, saved) -> None:
        with pytest.raises(AnnotationError, match=r"images 1: 'a\.png' is the last part of two"):
            read_coco(saved("a.json", document("/1/a.png", "/2/a.png")))
        with pytest.raises(AnnotationError, match=r"annotations 0: bbox .*: export boxes"):
            read_coco(saved("a.json", document("a.png", bbox=[])))

    def test_a_folder_without_a_document(self, tmp_path, saved) -> None:
        saved("a.png")
        with pytest.raises(AnnotationError, match=r"expected result\.json"):
            read_coco(tmp_path)


LAYOUTS = {
    "ultralytics": ("images/train", "labels/train", "path: .\ntrain: images/train\n"),
    "list": ("images/train", "labels/train", "train: train.txt\n"),
    "roboflow": ("train/images", "train/labels", "train: ../train/images\n"),
    "path elsewhere": ("images/train", "labels/train", "path: ../x/y\ntrain: [images/train]\n"),
}
NAMES = "nc: 2\nnames:\n  1: 'no'\n  0: 12\n"


class TestYolo:
    @pytest.fixture
    def layout(self, saved) -> Callable[[str], Path]:
        def make(name: str) -> Path:
            images, labels, text = LAYOUTS[name]
            saved(f"{images}/a.png")
            saved(f"{images}/b.png")
            saved(f"{labels}/a.txt", "1 0.5 0.5 0.25 0.5\n")
            saved("train.txt", f"{images}/a.png\n{images}/b.png\n")
            return saved("data.yaml", text + NAMES)

        return make

    @pytest.mark.parametrize("name", LAYOUTS)
    def test_layouts(self, tmp_path, layout, name) -> None:
        for source in (layout(name), tmp_path):
            assert guessed_format(source) == "yolo"
            first, second = read_annotations(source)
            assert first.boxes.tolist() == [[15, 7.5, 25, 22.5]]
            assert first.categories == ("no",)
            assert len(second) == 0

    def test_parts(self, saved, layout) -> None:
        path = layout("ultralytics")
        path.write_text(path.read_text() + "val: images/val\ntest:\n")
        saved("images/val/c.png")
        assert [image.name for image in read_yolo(path, split="val")] == ["c.png"]
        with pytest.raises(AnnotationError, match="there is no part 'test'; it has train, val"):
            read_yolo(path, split="test")

    def test_the_limit_holds_for_the_pictures(self, layout) -> None:
        path = layout("ultralytics")  # of 40 x 30 pixels, which take at least 6 bytes each
        assert len(read_yolo(path, max_memory="50 kB")) == 2
        set_max_memory("5 kB")
        try:
            assert len(read_yolo(path, max_memory="50 kB")) == 2
            with pytest.raises(ImageError, match=r"30 pixels would need .*, limit 6 kB"):
                read_yolo(path, max_memory="6 kB")
        finally:
            set_max_memory(None)

    def test_names_for_a_folder_of_labels(self, tmp_path, layout) -> None:
        layout("ultralytics")
        assert read_yolo(tmp_path / "labels/train")[0].categories == ("no",)
        assert read_yolo(tmp_path, names=["car", "van"])[0].categories == ("van",)

    def test_names_of_other_data_are_not_taken(self, saved) -> None:
        saved("data.yaml", NAMES)
        saved("set/images/a.png")
        labels = saved("set/labels/a.txt", "1 0.5 0.5 0.25 0.5\n").parent
        assert read_yolo(labels)[0].categories == ("1",)

    def test_labels_beside_the_pictures(self, saved) -> None:
        """YOLO 1.1 of CVAT."""
        saved("obj_train_data/a.png")
        saved("obj_train_data/a.txt", "0 0.5 0.5 0.25 0.5\n")
        saved("obj.names", "car\n")
        (found,) = read_yolo(saved("train.txt", "obj_train_data/a.png\n"))
        assert found.categories == ("car",)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("train: [\n", "line 2: this is not YAML"),
            ("- a\n", "expected entries such as names"),
            ("", "expected entries such as names"),
            ("names: [a]\n", "there is no part 'train'; it has none"),
            ("\ntrain: nowhere\n", "line 2: there is no folder or list of pictures 'nowhere'"),
            (f"train: {'x' * 5000}\n", "line 1: there is no folder"),
            ("train: {a: b}\n", "line 1: train must be a folder or a list"),
            ("train: images\nnames: car\n", "line 2: names must be a list; got 'car'"),
            ("train: images\nnames: {0: a, 2: b}\n", "line 2: names must be numbered 0, 1, 2"),
            ("train: images\nnames: {a: b}\n", "line 2: the number of a name must be an integer"),
            (
                "train: images\nnames: [[a]]\n",
                "line 2: the category must be non-empty printable text",
            ),
            ("train: images\nnames: [a]\nnc: 2\n", "line 3: nc is '2', but there are 1 names"),
            ("train: " + "[" * 800, "YAML|nested too deep"),
        ],
    )
    def test_refuses(self, saved, text, message) -> None:
        saved("images/a.png")
        with pytest.raises(AnnotationError, match=message):
            read_yolo(saved("data.yaml", text))

    def test_nothing_is_executed(self, saved) -> None:
        saved("images/a.png")
        path = saved("data.yaml", "train: !!python/object/apply:os.mkdir [made]\n")
        with pytest.raises(AnnotationError, match=r"line 1: there is no folder or list .*'made'"):
            read_yolo(path)
        assert not Path("made").exists()

    def test_images_are_named_by_the_file(self, tmp_path, layout) -> None:
        with pytest.raises(ValueError, match="images must not be given"):
            read_yolo(layout("ultralytics"), images=tmp_path)

    def test_missing_package(self, saved, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "yaml", None)
        with pytest.raises(ImportError, match=r'pip install "badacost\[detection\]"'):
            read_yolo(saved("data.yaml", "train: a\n"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
known_entries = st.sampled_from(
    ["angle", "yaw", "view", "ignore", "occluded", "truncated", "rotation", "iscrowd", "bbox"]
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        for part in ("images", "labels"):
            Path(name, part).mkdir()
        Image.new("RGB", (400, 300)).save(Path(name, "images", "a.png"))
        yield Path(name)


def refusal(read: Callable[[Path], list[AnnotatedImage]], path: Path) -> str:
    """The message of the AnnotationError, the only error that garbage may raise; "" without."""
    try:
        read(path)
    except AnnotationError as error:
        return str(error)
    return ""


class TestProperties:
    @given(
        st.dictionaries(known_entries, json_values, max_size=3),
        st.dictionaries(known_entries, json_values, max_size=3),
        st.text(max_size=12),
    )
    def test_records_are_read_or_refused(self, folder, record, attributes, name) -> None:
        """Whatever a record says, it is annotations or an AnnotationError."""
        path = folder / "a.json"
        path.write_text(json.dumps(document(name, attributes=attributes, **record)))
        message = refusal(read_coco, path)
        assert message.startswith(repr(str(path))) or len(read_coco(path)[0]) == 1

    @given(st.text(max_size=60) | st.dictionaries(st.text(max_size=6), json_values).map(json.dumps))
    def test_yaml_is_read_or_refused(self, folder, text) -> None:
        path = folder / "any.yaml"
        path.write_text(text, encoding="utf-8", errors="replace")
        assert refusal(read_yolo, path).startswith(repr(str(path)))

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["car", "no", "12", "a: b", "Ärger", "#1"]),
                *[st.floats(0.0, 1.0)] * 4,
            ),
            max_size=5,
        )
    )
    def test_boxes_come_back(self, folder, objects) -> None:
        """Boxes and names, written as YOLO does, are those that are read."""
        names = ["car", "no", "12", "a: b", "Ärger", "#1"]
        (folder / "data.yaml").write_text(f"train: images\nnames: {json.dumps(names)}\n")
        lines, boxes = [], []
        for name, *corners in objects:
            (x1, x2), (y1, y2) = sorted(corners[:2]), sorted(corners[2:])
            values = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1
            lines.append(" ".join(map(repr, (names.index(name), *values))))
            boxes.append([400 * x1, 300 * y1, 400 * x2, 300 * y2])
        (folder / "labels" / "a.txt").write_text("\n".join(lines))
        (found,) = read_yolo(folder / "data.yaml")
        assert list(found.categories) == [name for name, *_ in objects]
        assert found.boxes == pytest.approx(np.array(boxes).reshape(-1, 4), abs=1e-9)
