"""Formats of other tools: there and back again, known lines, and input that must be refused."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.boxes import Detections
from badacost.detection.images import ImageSource
from badacost.detection.interchange import (
    coco_document,
    from_coco,
    from_csv,
    from_json_lines,
    from_kitti,
    from_supervision,
    to_coco,
    to_csv,
    to_json_line,
    to_kitti,
    to_supervision,
)

CARS = Detections(
    boxes=[[10.5, 20.25, 110.75, 70.0], [0.0, 0.0, 1.0, 1.0]],
    scores=[4.5, -0.125],
    labels=[1, 0],
    names=("side", "front"),
    angles=(180.0, 90.0),
    category="Car",
)
HEADER = "image,x1,y1,x2,y2,score,view,angle,category\n"
RECORD = ("image_id", "category_id", "bbox", "score")
KITTI_LINE = "Car -1 -1 1.57 0 0 9 9 -1 -1 -1 -1000 -1000 -1000 -10 0.5"

coordinates = st.floats(-1e5, 1e5)
words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
images = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def detections(draw, with_angles: bool | None = None, min_size: int = 0) -> Detections:
    names = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    angles = None
    if with_angles or (with_angles is None and draw(st.booleans())):
        degrees = st.integers(-179, 180)
        angles = draw(st.lists(degrees, min_size=len(names), max_size=len(names), unique=True))
    corners = draw(
        st.lists(st.tuples(*[coordinates] * 4), min_size=min_size, max_size=6).map(
            lambda rows: np.array(rows).reshape(-1, 2, 2)
        )
    )
    n = len(corners)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    scores = draw(st.lists(finite, min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, len(names) - 1), min_size=n, max_size=n))
    boxes = np.sort(corners, axis=1).reshape(-1, 4)
    return Detections(boxes, scores, labels, names, angles, draw(words))


def assert_same(a: Detections, b: Detections, tolerance: float = 0.0) -> None:
    assert np.allclose(a.boxes, b.boxes, rtol=0.0, atol=tolerance)
    assert np.array_equal(a.scores, b.scores)
    assert np.array_equal(a.labels, b.labels)
    assert (a.names, a.angles, a.category) == (b.names, b.angles, b.category)


def refusal(read, *arguments) -> str | None:
    """The message of the ValueError, the only one that garbage may raise."""
    try:
        read(*arguments)
    except ValueError as error:
        return str(error)
    return None


class TestSupervision:
    @pytest.fixture(autouse=True)
    def _needs_supervision(self):
        try:
            to_supervision(CARS)
        except ImportError:
            pytest.skip("supervision is not installed")

    def test_there_and_back(self):
        for found in (CARS, CARS[:0], replace(CARS, angles=None)):
            there = to_supervision(found)
            back = from_supervision(there, found.names, found.angles, found.category)
            assert_same(back, found)

    def test_what_supervision_sees(self):
        found = to_supervision(CARS)
        assert found.xyxy.tolist() == CARS.boxes.tolist()
        assert found.confidence.tolist() == [4.5, -0.125]
        assert found.class_id.tolist() == [1, 0]
        assert found["class_name"].tolist() == found["view"].tolist() == ["front", "side"]
        assert found["heading"].tolist() == [90.0, 180.0]
        assert "heading" not in to_supervision(replace(CARS, angles=None)).data
        assert len(found[found.confidence > 0]) == 1

    def test_arrays_are_not_shared(self):
        to_supervision(CARS).xyxy[:] = 0.0
        assert CARS.boxes[0, 0] == 10.5

    def test_refuses(self):
        found = to_supervision(CARS)
        with pytest.raises(ValueError, match="indices into the 1 names"):
            from_supervision(found, ["front"])
        found.confidence = None
        with pytest.raises(ValueError, match="need a confidence"):
            from_supervision(found, CARS.names)
        with pytest.raises(TypeError, match="expected supervision"):
            from_supervision([1, 2], CARS.names)


def test_missing_supervision_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "supervision", None)
    with pytest.raises(ImportError, match=r'pip install "badacost\[supervision\]"'):
        to_supervision(CARS)


class TestCoco:
    @given(st.dictionaries(st.integers() | words, detections(min_size=1), max_size=3))
    def test_there_and_back(self, found):
        for image_id, one in found.items():
            records = json.loads(json.dumps(to_coco(one, image_id)))
            back = from_coco(records, one.names, angles=one.angles, category=one.category)
            assert list(back) == [image_id]
            assert_same(back[image_id], one, 1e-9)

    def test_known_records(self):
        first = to_coco(CARS, np.int64(3), category_ids=[7, 7])[0]
        assert first == {
            "image_id": 3,
            "category_id": 7,
            "bbox": [10.5, 20.25, 100.25, 49.75],
            "score": 4.5,
            "view": "front",
            "angle": 90.0,
        }
        assert type(first["image_id"]) is int
        assert [record["category_id"] for record in to_coco(CARS, "a")] == [1, 1]
        assert "angle" not in to_coco(replace(CARS, angles=None), "a")[0]

    def test_the_image_is_the_source(self):
        source = ImageSource("a.png", (90, 120))
        assert replace(CARS, source=source).to_coco()[0]["image_id"] == "a.png"
        with pytest.raises(ValueError, match="give image_id"):
            CARS.to_coco()

    def test_groups_by_image_in_order(self):
        records = [*to_coco(CARS[:1], 9), *to_coco(CARS, 2), *to_coco(CARS[1:], 9)]
        back = from_coco(records, CARS.names, angles=CARS.angles, category="Car")
        assert list(back) == [9, 2]
        assert_same(back[9], CARS)
        assert from_coco([], CARS.names) == {}

    def test_one_category_for_all_views(self):
        records = to_coco(CARS, 1, category_ids=[3, 3])
        back = from_coco(records, CARS.names, [3, 3], CARS.angles, "Car")
        assert_same(back[1], CARS)
        del records[1]["view"]
        with pytest.raises(ValueError, match="record 1: view must be one"):
            from_coco(records, CARS.names, [3, 3])

    def test_category_alone_tells_the_view(self):
        records = [{k: r[k] for k in r if k != "view"} for r in to_coco(CARS, 1, [1, 2])]
        assert from_coco(records, CARS.names, [1, 2])[1].labels.tolist() == [1, 0]

    def test_names_of_the_records(self):
        """Without names, each category or view that occurs is a view; angles if all are known."""
        back = from_coco(to_coco(CARS, 1), category="Car")[1]
        assert back.views == CARS.views
        assert back.angles == (90.0, 180.0)
        records = [{k: r[k] for k in RECORD} for r in to_coco(CARS, 1, [4, 2])]
        assert from_coco(records)[1].views == ["category 2", "category 4"]
        assert from_coco(records)[1].names == ("category 2", "category 4")
        document = {
            "images": [{"id": 1, "file_name": "a.png"}],
            "annotations": records,
            "categories": [{"id": 2, "name": "van"}, {"id": 4, "name": "bus"}],
        }
        assert from_coco(document)["a.png"].views == ["van", "bus"]
        assert from_coco([]) == {}

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"image_id": 1.5}, "image_id must be an integer or a string"),
            ({"image_id": True}, "image_id must be an integer or a string"),
            ({"category_id": 3}, "category_id 3 is not that of a view"),
            ({"category_id": "1"}, "category_id must be an integer"),
            ({"bbox": [1, 2, 3]}, "bbox must be a list of 4"),
            ({"bbox": {}}, "bbox must be a list of 4"),
            ({"bbox": [1, 2, -3, 4]}, "ends before it begins"),
            ({"bbox": [1, 2, 1e300, 4]}, "within 1e.09 pixels"),
            ({"bbox": [1, 2, 10**400, 4]}, "bbox must be a finite number"),
            ({"score": math.nan}, "score must be a finite number"),
            ({"score": "1"}, "score must be a finite number; got '1'"),
            ({"view": "rear"}, "view must be one of the names"),
            ({"view": ["front"]}, "view must be one of the names"),
        ],
    )
    def test_refuses(self, changed, message):
        right = to_coco(CARS[1:], 1)[0]
        with pytest.raises(ValueError, match=f"record 1: .*{message}"):
            from_coco([right, right | changed], CARS.names)

    def test_refuses_arguments(self):
        with pytest.raises(ValueError, match="bbox is missing"):
            from_coco([{"image_id": 1, "category_id": 1, "score": 1}], CARS.names)
        with pytest.raises(ValueError, match="record 0: expected an object"):
            from_coco([3], CARS.names)
        with pytest.raises(ValueError, match="records must be a list"):
            from_coco("text", CARS.names)
        with pytest.raises(ValueError, match="names must be given"):
            from_coco([], category_ids=[1])
        with pytest.raises(ValueError, match="category_ids must be"):
            to_coco(CARS, 1, [1])

    @given(
        json_values
        | st.lists(
            st.fixed_dictionaries(
                {key: json_values for key in ("image_id", "category_id", "score")}
                | {"bbox": st.lists(json_values, min_size=4, max_size=4)}
            )
        )
    )
    def test_garbage_is_a_value_error(self, records):
        for names in (["a", "b"], None):
            message = refusal(from_coco, records, names)
            assert message is None or message.startswith(("record", "images"))


class TestCocoDocument:
    @given(detections(), st.lists(images, max_size=4, unique=True))
    def test_there_and_back(self, found, names_of_images):
        """Nothing is lost: images without detections, views, angles, category."""
        given = {name: found[i % 2 :] for i, name in enumerate(names_of_images)}
        back = from_coco(json.loads(json.dumps(coco_document(given))))
        assert list(back) == names_of_images
        for name, one in back.items():
            assert_same(one, given[name], 1e-9)

    def test_known_document(self):
        source = ImageSource("a.png", (90, 120))
        document = coco_document({"a.png": replace(CARS, source=source), "b.png": CARS[:1]})
        assert document["images"] == [
            {"id": 1, "file_name": "a.png", "height": 90, "width": 120},
            {"id": 2, "file_name": "b.png"},
        ]
        assert document["categories"] == [
            {"id": 1, "name": "Car", "views": ["side", "front"], "angles": [180.0, 90.0]}
        ]
        assert [record["id"] for record in document["annotations"]] == [1, 2, 3]
        assert [record["image_id"] for record in document["annotations"]] == [1, 1, 2]
        assert document["annotations"][0]["area"] == 100.25 * 49.75

    def test_parts_make_the_whole(self):
        whole = coco_document({"a": CARS, "b": CARS})
        first = coco_document({"a": CARS})
        second = coco_document({"b": CARS}, first_image=2, first_annotation=3)
        assert first["images"] + second["images"] == whole["images"]
        assert first["annotations"] + second["annotations"] == whole["annotations"]

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("images", None, "images: records must be a list"),
            ("images", [3], "images 0: expected an object"),
            ("images", [{"id": 1}], "images 0: file_name is missing"),
            ("images", [{"id": 1, "file_name": ""}], "images 0: file_name must be a name"),
            ("images", [{"id": i, "file_name": "a"} for i in (1, 2)], "the same file_name"),
            ("images", [{"id": 1, "file_name": n} for n in "ab"], "images 1: the id 1 is that"),
            ("images", [{"id": 2, "file_name": "a"}], "annotations 0: image_id 1 is not"),
            ("annotations", {}, "annotations: records must be a list"),
            ("categories", [{"id": "1", "name": "a"}], "categories 0: id must be an integer"),
            ("categories", [{"id": 1, "name": 2}], "categories 0: name must be text"),
            ("categories", [{"id": 1, "name": "a", "views": 3}], "must be a list of names"),
            ("categories", [{"id": 1, "name": "a", "views": ["b"], "angles": [1, 2]}], "of 1 num"),
        ],
    )
    def test_refuses(self, key, value, message):
        with pytest.raises(ValueError, match=message):
            from_coco(coco_document({"a": CARS}) | {key: value})

    @given(st.fixed_dictionaries({k: json_values for k in ("images", "annotations", "categories")}))
    def test_garbage_is_a_value_error(self, document):
        refusal(from_coco, document)
        refusal(from_coco, coco_document({"a": CARS}) | {"categories": document["categories"]})
        refusal(from_coco, coco_document({"a": CARS}) | {"images": document["images"]})


class TestKitti:
    @given(detections(with_angles=True))
    def test_there_and_back(self, found):
        back = from_kitti(to_kitti(found), found.names, found.angles, found.category)
        assert_same(back, found, 2e-6)

    @given(detections(with_angles=False))
    def test_without_angles_there_is_one_view(self, found):
        found = replace(found, names=["only"], labels=np.zeros(len(found), dtype=int))
        text = to_kitti(found)
        assert all(line.split()[3] == "-10" for line in text.splitlines())
        assert_same(from_kitti(text, ["only"], category=found.category), found, 2e-6)

    def test_a_flat_box_comes_back(self):
        flat = replace(CARS[:1], boxes=[[0.1, 0.1, 0.1, 0.1]])
        assert_same(from_kitti(to_kitti(flat), flat.names, flat.angles), flat)

    def test_known_line(self):
        assert to_kitti(CARS[:1]) == (
            "Car -1 -1 1.570796 10.500000 20.250000 109.750000 69.000000 "
            "-1 -1 -1 -1000 -1000 -1000 -10 4.5\n"
        )

    @pytest.mark.parametrize(
        ("angle", "alpha"), [(270.0, -math.pi / 2), (-180.0, -math.pi), (540.0, math.pi), (0.0, 0)]
    )
    def test_alpha_lies_within_pi(self, angle, alpha):
        found = replace(CARS[1:], angles=(angle, 45.0))
        assert abs(float(to_kitti(found).split()[3])) == pytest.approx(abs(alpha), abs=1e-6)
        assert from_kitti(to_kitti(found), found.names, found.angles).labels.tolist() == [0]

    @pytest.mark.parametrize(("alpha", "view"), [(3.14, "b"), (-3.14, "b"), (0.4, "a"), (1.2, "c")])
    def test_view_is_the_nearest_round_the_circle(self, alpha, view):
        line = KITTI_LINE.replace("1.57", str(alpha))
        assert from_kitti(line, ["a", "b", "c"], [0, -179, 90]).views == [view]

    def test_other_types_are_passed_over_but_checked(self):
        other = KITTI_LINE.replace("Car", "Van")
        text = f"\n{other}\r\n{KITTI_LINE}\r\n"
        found = from_kitti(text, ["only"])
        assert found.boxes.tolist() == [[0, 0, 10, 10]]
        assert len(from_kitti(text, ["only"], category="Tram")) == 0
        with pytest.raises(ValueError, match="line 1: field 5"):
            from_kitti(other.replace("57 0", "57 x"), ["only"])

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            (" 0.5", "", "expected 16 fields; got 15"),
            (" 0.5", " nan", "field 16 must be a finite number; got 'nan'"),
            (" 0.5", " 1_0", "field 16 must be a finite number"),
            (" 0.5", " \u0661", "field 16 must be a finite number"),
            (" 0.5", " 1e999", "field 16 must be a finite number"),
            ("0 0 9 9", "0 0 9 -2", "ends before it begins"),
            ("0 0 9 9", "0 0 9e9 9", "within 1e.09 pixels"),
            ("1.57", "-10", "alpha must be from -pi to pi"),
        ],
    )
    def test_refuses(self, before, after, message):
        text = f"{KITTI_LINE}\n{KITTI_LINE.replace(before, after)}\n"
        with pytest.raises(ValueError, match=f"line 2: .*{message}"):
            from_kitti(text, ["a", "b"], [0.0, 90.0])

    def test_refuses_arguments(self):
        with pytest.raises(ValueError, match="angles must be given"):
            from_kitti(KITTI_LINE, ["a", "b"])
        with pytest.raises(ValueError, match="angles must be given"):
            from_kitti(KITTI_LINE, [], [])
        with pytest.raises(TypeError, match="text must be a string"):
            from_kitti(b"", ["a"])
        with pytest.raises(ValueError, match="one word"):
            to_kitti(replace(CARS, category="traffic light"))

    @given(
        st.text() | st.lists(st.sampled_from([*KITTI_LINE.split(), "x", "\n", "1e999", "\u0663"]))
    )
    def test_garbage_is_a_value_error(self, text):
        text = text if isinstance(text, str) else " ".join(text)
        message = refusal(from_kitti, text, ["a", "b"], [0.0, 90.0])
        assert message is None or message.startswith("line ")


class TestCsv:
    @given(detections(min_size=1), st.lists(images, min_size=1, max_size=3, unique=True))
    def test_there_and_back(self, found, names_of_images):
        tables = {image: found[i:] for i, image in enumerate(names_of_images) if i < len(found)}
        text = to_csv(tables)
        back = from_csv(text, found.names, found.angles)
        assert list(back) == list(tables)
        for image, one in tables.items():
            assert_same(back[image], one)
        for image, one in from_csv(text).items():
            assert one.views == tables[image].views
            assert set(one.names) == set(found.views)
            if found.angles is not None:
                assert (
                    dict(zip(one.names, one.angles, strict=True)).items()
                    <= dict(zip(found.names, found.angles, strict=True)).items()
                )

    def test_known_table(self):
        text = to_csv({"a,b.png": CARS, "none.png": CARS[:0]})
        assert list(csv.reader(io.StringIO(text))) == [
            HEADER.strip().split(","),
            ["a,b.png", "10.5", "20.25", "110.75", "70.0", "4.5", "front", "90.0", "Car"],
            ["a,b.png", "0.0", "0.0", "1.0", "1.0", "-0.125", "side", "180.0", "Car"],
        ]
        assert to_csv({}) == HEADER
        assert from_csv(HEADER) == {}

    def test_as_many_views_as_images(self):
        lines = ["image,x1,y1,x2,y2,score,view,angle,category"]
        lines += [f"{i}.png,1,2,4,6,{i},view {i},,Car" for i in range(5000)]
        read = from_csv("\n".join(lines))
        assert [found.labels.tolist() for found in read.values()] == [[i] for i in range(5000)]
        assert all(len(found.names) == 5000 for found in read.values())
        last = read["4999.png"]
        assert_same(replace(last), last)  # after all checks

    def test_angles_of_the_table(self):
        text = HEADER + "i,0,0,1,1,2,side,5,Car\n\ni,0,0,1,1,1,front,,Car\n"
        assert from_csv(text)["i"].angles is None
        assert from_csv(text)["i"].names == ("side", "front")
        assert from_csv(text, ["front", "side"], [7, 5])["i"].angles == (7.0, 5.0)
        assert from_csv(text.replace(",,", ",7,"), ["front", "side"])["i"].angles == (7.0, 5.0)
        with pytest.raises(ValueError, match=r"line 2: angle must be 6\.0"):
            from_csv(text, ["side", "front"], [6, 7])
        with pytest.raises(ValueError, match="names must be given"):
            from_csv(text, angles=[1.0])

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("i,0,0,1,1,2,side,5", "expected 9 fields; got 8"),
            (",0,0,1,1,2,side,5,Car", "image must be a name"),
            ("i,x,0,1,1,2,side,5,Car", "x1 must be a finite number; got 'x'"),
            ("i,0,0,1,1,,side,5,Car", "score must be a finite number"),
            ("i,0,0,-1,1,2,side,5,Car", "ends before it begins"),
            ("i,0,0,1,1,2,rear,5,Car", "view 'rear' is not one of the 1 names"),
            ("i,0,0,1,1,2,,5,Car", "view must be non-empty printable"),
            ("i,0,0,1,1,2,side,6,Car", r"angle must be 5\.0"),
            ("i,0,0,1,1,2,side,x,Car", "angle must be a finite number"),
            ("i,0,0,1,1,2,side,5,Van", "category must be 'Car'"),
            ("i,0,0,1,1,2,side,5,", "category must be non-empty printable"),
            ('"i"x,0,0,1,1,2,side,5,Car', "not comma-separated"),
            ('"i,0,0,1,1,2,side,5,Car', "not comma-separated"),
        ],
    )
    def test_refuses(self, line, message):
        text = f"{HEADER}i,0,0,1,1,2,side,5,Car\n{line}\n"
        with pytest.raises(ValueError, match=f"line 3: .*{message}"):
            from_csv(text, ["side"])

    def test_refuses_what_it_could_not_read_back(self):
        with pytest.raises(ValueError, match="differ in names"):
            to_csv({"a": CARS, "b": replace(CARS, category="Van")})
        with pytest.raises(ValueError, match="image must be a name"):
            to_csv({"a\nb": CARS})
        with pytest.raises(ValueError, match=r"line 1: expected the header .*'image' is not there"):
            from_csv("")
        with pytest.raises(ValueError, match=r"line 1: .*a name is there twice"):
            from_csv("image,x1,y1,x2,y2,score,score\n")
        with pytest.raises(TypeError, match="text must be a string"):
            from_csv(None)

    def test_optional_columns(self):
        """View, angle and category may be left out, and columns have any order."""
        bare = from_csv("score,image,x1,y1,x2,y2\n0.5,a.png,1,2,4,6\n")["a.png"]
        assert (bare.names, bare.angles, bare.category) == (("object",), None, "object")
        assert bare.boxes.tolist() == [[1, 2, 4, 6]]
        found = from_csv("image,view,x1,y1,x2,y2,score\na.png,left,1,2,4,6,3\n")["a.png"]
        assert found.views == ["left"]

    @given(
        st.text()
        | st.text().map(HEADER.__add__)
        | st.lists(st.sampled_from(["i", "1", ",", ",", "\n", "\r", '"', "1e999", "\0"])).map(
            lambda parts: HEADER + "".join(parts)
        )
    )
    def test_garbage_is_a_value_error(self, text):
        message = refusal(from_csv, text)
        assert message is None or message.startswith("line ")


class TestFrame:
    def test_columns(self):
        frame = CARS.to_frame()
        assert list(frame.columns) == HEADER.strip().split(",")
        assert frame["x2"].tolist() == [110.75, 1.0]
        assert frame["view"].tolist() == ["front", "side"]
        assert frame["angle"].tolist() == [90.0, 180.0]
        assert set(frame["category"]) == {"Car"}
        assert set(frame["image"]) == {""}

    def test_nothing(self):
        frame = replace(CARS, angles=None)[:0].to_frame()
        assert len(frame) == 0
        assert list(frame.columns) == HEADER.strip().split(",")

    def test_frames_of_videos(self):
        source = ImageSource("a.mp4#000007", (90, 120), frame=7, time=0.28)
        frame = replace(CARS, angles=None, source=source).to_frame()
        assert frame[["image", "frame", "time"]].to_numpy().tolist() == [
            ["a.mp4#000007", 7, 0.28],
            ["a.mp4#000007", 7, 0.28],
        ]
        assert frame["angle"].isna().all()

    def test_missing_pandas_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r'pip install "badacost\[tables\]"'):
            CARS.to_frame()


class TestJsonLines:
    @given(st.dictionaries(images, detections(), max_size=3))
    def test_there_and_back(self, found):
        lines = [to_json_line(image, one, seconds=0.5) for image, one in found.items()]
        assert not any("\n" in line for line in lines)
        for back in (from_json_lines("\n".join(lines)), from_json_lines(f"{x}\n" for x in lines)):
            assert list(back) == list(found)
            for image, one in found.items():
                assert_same(back[image], one)

    def test_known_line(self):
        assert json.loads(to_json_line("a.png", CARS[:1], frame=3)) == {
            "image": "a.png",
            "detections": [
                {"box": [10.5, 20.25, 110.75, 70.0], "score": 4.5, "view": "front", "angle": 90.0}
            ],
            "names": ["side", "front"],
            "angles": [180.0, 90.0],
            "category": "Car",
            "frame": 3,
        }

    def test_errors_and_empty_lines_are_passed_over(self):
        error = '{"image": "broken.png", "error": "no image"}'
        found = from_json_lines(f"{error}\n\n{to_json_line('a.png', CARS)}\r\n")
        assert list(found) == ["a.png"]
        assert_same(found["a.png"], CARS)

    def test_an_image_without_detections_is_kept(self):
        assert_same(from_json_lines(to_json_line("a.png", CARS[:0]))["a.png"], CARS[:0])

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"image": None}, "image must be a name"),
            ({"image": "first"}, "image 'first' is in an earlier line"),
            ({"names": "ab"}, "names and detections must be lists"),
            ({"names": ["a", 1]}, "a name must be a string"),
            ({"names": ["a", "a"]}, "names must be distinct"),
            ({"detections": {}}, "names and detections must be lists"),
            ({"detections": [3]}, "detection 0: expected an object"),
            ({"angles": [1.0]}, "angles must be a list of 2"),
            ({"angles": 3}, "angles must be a list of 2"),
            ({"angles": [1.0, 2.0]}, r"detection 0: angle must be 2\.0"),
            ({"angles": None}, "detection 0: angle must be None"),
            ({"category": 5}, "category must be a string"),
            ({"box": [1, 2, 3]}, "detection 0: box must be a list of 4"),
            ({"box": [1, 2, 0, 3]}, "detection 0: the box ends before"),
            ({"score": None}, "detection 0: score must be a finite number; got None"),
            ({"score": math.inf}, "Infinity is not a finite number"),
            ({"view": "rear"}, "detection 0: view 'rear' is not one of the 2 names"),
            ({"view": []}, "detection 0: view a value of type list"),
        ],
    )
    def test_refuses(self, changed, message):
        document = json.loads(to_json_line("second", CARS[:1]))
        for key, value in changed.items():
            (document if key in document else document["detections"][0])[key] = value
        lines = [to_json_line("first", CARS), json.dumps(document)]
        with pytest.raises(ValueError, match=f"line 2: .*{message}"):
            from_json_lines(lines)

    @pytest.mark.parametrize("line", ["[", "3", "[" * 100_000, "1" * 5000, '{"image": NaN}', b"{}"])
    def test_refuses_what_is_no_object(self, line):
        with pytest.raises(ValueError, match="line 1: "):
            from_json_lines([line])

    def test_refuses_further_entries(self):
        with pytest.raises(ValueError, match="'names' is an entry of every line"):
            to_json_line("a", CARS, names=3)
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            to_json_line("a", CARS, seconds=math.nan)
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            to_json_line("a", CARS, model=object())

    @given(
        st.text()
        | st.dictionaries(
            st.sampled_from(["image", "detections", "names", "angles", "category"]),
            json_values
            | st.just(["a"])
            | st.lists(st.dictionaries(st.sampled_from(["box", "score", "view"]), json_values)),
        ).map(lambda entries: json.dumps({"image": "i", "names": ["a"]} | entries))
    )
    def test_garbage_is_a_value_error(self, text):
        message = refusal(from_json_lines, text)
        assert message is None or message.startswith("line ")
