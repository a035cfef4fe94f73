"""AnnotatedImage: what it refuses, mirror images, views of its objects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.annotations.image import wrapped
from badacost.detection.images import ImageError, size_of_file

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
BOXES = [[1, 2, 11, 12], [5, 5, 25, 15], [0, 0, 3, 4]]
FULL = AnnotatedImage(
    PIXELS,
    BOXES,
    labels=[0, 6, -1],
    angles=[10.0, np.nan, np.nan],
    ignore=[False, False, True],
    categories=["Car", "Van", "DontCare"],
    truncation=[0.1, np.nan, 1.0],
    occlusion=[0, 1, 2],
    ellipses=[[5, 4, 0.3, 6, 7], [10, 5, -1.2, 15, 10], [2, 1.5, 0, 1.5, 2]],
    name="a",
)


def assert_same(a: AnnotatedImage, b: AnnotatedImage, tolerance: float = 1e-9) -> None:
    for name in ("boxes", "angles", "truncation", "occlusion", "ellipses"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert np.allclose(left, right, rtol=0.0, atol=tolerance, equal_nan=True)
    assert np.array_equal(a.labels, b.labels)
    assert np.array_equal(a.ignore, b.ignore)
    assert (a.categories, a.size, a.name, a.flipped) == (b.categories, b.size, b.name, b.flipped)


@st.composite
def annotated(draw, views: Views) -> AnnotatedImage:
    width, height = draw(st.integers(1, 2000)), draw(st.integers(1, 2000))
    corners = draw(st.lists(st.tuples(*[st.floats(-500, 2500)] * 4), max_size=5))
    boxes = np.sort(np.array(corners).reshape(-1, 2, 2), axis=1).reshape(-1, 4)
    n = len(boxes)
    # Headings at a border of views may fall to either side in a mirror.
    turns = st.integers(-999, 999).map(lambda turn: turn * 0.36 + 0.013)
    angles = draw(st.lists(turns | st.just(np.nan), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(-1, len(views) - 1), min_size=n, max_size=n))
    image = AnnotatedImage(
        None, boxes, labels=labels, angles=wrapped(np.array(angles)), size=(height, width)
    )
    known = ~np.isnan(image.angles) & (image.labels >= 0)
    return replace(image, labels=np.where(known, views.label_of(image.angles), image.labels))


class TestChecks:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"boxes": [[0, 0, 1]]}, r"shape \(n, 4\)"),
            ({"boxes": [[3, 0, 1, 1]]}, "x1 <= x2"),
            ({"boxes": [[0, 0, np.nan, 1]]}, "within"),
            ({"boxes": [[0, 0, 1e10, 1]]}, "within"),
            ({"boxes": [["a", 0, 1, 1]]}, "must be numbers"),
            ({"boxes": [[0, 0, 1, 1], [0]]}, "cannot be read as an array"),
            ({"labels": [0, 1]}, r"labels must have shape \(3,\)"),
            ({"labels": [0, 1, -2]}, "at least -1"),
            ({"labels": [0.5, 1, 2]}, "must be integers"),
            ({"angles": [0, 1, np.inf]}, "must be finite"),
            ({"ignore": [0, 1, 0]}, "True or False"),
            ({"categories": ["a", "b"]}, "one for each of 3"),
            ({"categories": ["a", "b", ""]}, "printable"),
            ({"truncation": [0.0]}, "truncation must have shape"),
            ({"ellipses": np.ones((3, 4))}, r"shape \(3, 5\)"),
            ({"ellipses": -np.ones((3, 5))}, "half axes"),
            ({"image": PIXELS[:, :, 0]}, "must be RGB bytes"),
            ({"image": PIXELS / 255.0}, "must be RGB bytes"),
            ({"size": (30, 20)}, "that of the pixels"),
            ({"image": None, "size": (30,)}, "pair"),
            ({"image": None, "size": (0, 20)}, "at least 1"),
        ],
    )
    def test_refuses(self, wrong, message):
        with pytest.raises(ValueError, match=message):
            replace(FULL, **wrong)

    @pytest.mark.parametrize("wrong", [{"image": 3}, {"categories": "Car"}, {"name": 3}])
    def test_refuses_types(self, wrong):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            replace(FULL, **wrong)

    def test_defaults_are_unknown(self):
        image = AnnotatedImage("folder/a.png", BOXES)
        assert image.labels.tolist() == [-1, -1, -1]
        assert np.isnan([image.angles, image.truncation, image.occlusion]).all()
        assert not image.ignore.any()
        assert image.categories == ("object",) * 3
        assert (image.name, image.size, image.ellipses) == ("a.png", None, None)
        assert len(AnnotatedImage(None)) == 0

    def test_arrays_are_copied(self):
        pixels, boxes = PIXELS.copy(), np.array(BOXES, dtype=np.float64)
        image = AnnotatedImage(pixels, boxes)
        pixels[:], boxes[:] = 0, 0
        assert image.boxes[0, 2] == 11.0
        assert np.array_equal(image.load(), PIXELS)
        image.load()[:] = 0
        assert np.array_equal(image.load(), PIXELS)


class TestParts:
    def test_indexing(self):
        part = FULL[[2, 0]]
        assert part.categories == ("DontCare", "Car")
        assert part.boxes.tolist() == [[0, 0, 3, 4], [1, 2, 11, 12]]
        assert part.ellipses[0].tolist() == [2, 1.5, 0, 1.5, 2]
        assert_same(FULL[:], FULL)
        assert len(FULL[1]) == 1
        with pytest.raises(IndexError, match="one axis"):
            FULL[np.eye(3, dtype=np.int64)]

    def test_positives(self):
        assert FULL.positives.categories == ("Car", "Van")
        assert repr(FULL) == "AnnotatedImage('a', 3 objects, 1 ignored)"

    def test_aspect_ratio_keeps_height_and_centre(self):
        boxes = FULL.with_aspect_ratio(2.0).boxes
        assert boxes.tolist() == [[-4, 2, 16, 12], [5, 5, 25, 15], [0, 0, 3, 4]]

    def test_views_by_category(self):
        assert FULL.with_category_views(["Van", "Car"]).labels.tolist() == [1, 0, -1]


class TestMirror:
    @given(st.data(), st.sampled_from([2, 4, 8, 20]))
    def test_twice_is_the_same(self, data, n_views):
        views = Views.around(n_views)
        image = data.draw(annotated(views))
        mirrored = image.mirrored(views)
        assert_same(mirrored.mirrored(views), image, 1e-6)
        expected = np.where(image.labels < 0, -1, np.array(views.mirror)[image.labels])
        assert mirrored.labels.tolist() == expected.tolist()

    def test_known_values(self):
        mirrored = FULL.mirrored(Views.around(8))
        assert np.array_equal(mirrored.load(), PIXELS[:, ::-1])
        assert mirrored.boxes[0].tolist() == [19, 2, 29, 12]
        assert mirrored.angles[0] == 170.0
        assert mirrored.labels.tolist() == [4, 6, -1]
        assert mirrored.ellipses[0].tolist() == [5, 4, -0.3, 24, 7]
        assert not mirrored.flipped

    def test_files_are_mirrored_when_loaded(self, tmp_path):
        Image.fromarray(PIXELS).save(tmp_path / "a.png")
        image = AnnotatedImage(tmp_path / "a.png", BOXES)
        mirrored = image.mirrored()
        assert mirrored.image == image.image
        assert mirrored.size == (20, 30)
        assert np.array_equal(mirrored.load(), PIXELS[:, ::-1])
        assert np.array_equal(mirrored.mirrored().load(), PIXELS)

    def test_refuses(self):
        with pytest.raises(ValueError, match="size of 'a' is not known"):
            replace(FULL, image=None, size=None).mirrored(Views.around(8))
        with pytest.raises(ValueError, match="views must be given"):
            FULL.mirrored()
        with pytest.raises(ValueError, match="indices into the 4 views"):
            FULL.mirrored(Views.around(4))
        with pytest.raises(ValueError, match="not symmetric"):
            FULL.mirrored(Views.around(7))


class TestFiles:
    def test_size_is_that_of_the_upright_picture(self, tmp_path):
        picture = Image.fromarray(PIXELS)
        exif = picture.getexif()
        exif[0x0112] = 6
        picture.save(tmp_path / "a.jpg", exif=exif)
        image = AnnotatedImage(tmp_path / "a.jpg")
        assert size_of_file(image.image) == (30, 20) == image.load().shape[:2]

    def test_other_size_than_annotated(self, tmp_path):
        Image.fromarray(PIXELS).save(tmp_path / "a.png")
        with pytest.raises(ImageError, match="has 30 x 20 pixels, its annotations are for 40 x 20"):
            AnnotatedImage(tmp_path / "a.png", size=(20, 40)).load()

    def test_no_picture(self, tmp_path):
        with pytest.raises(ImageError, match="annotations only"):
            AnnotatedImage(None).load()
        (tmp_path / "a.png").write_text("no picture")
        for name in ("a.png", "b.png"):
            with pytest.raises(ImageError, match=f"cannot read the image .*{name}"):
                AnnotatedImage(tmp_path / name).measured()
