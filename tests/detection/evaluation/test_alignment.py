"""Results and annotations fit together: names, categories, views, ignored objects."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.annotations import KITTI_CARS, AnnotatedImage, Views
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import align, evaluate_coco, evaluate_kitti, evaluate_voc

paths = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map("/".join)
BOXES = np.array([[60.0 * i, 0, 60 * i + 50, 50] for i in range(6)])


def found(boxes=BOXES, labels=None, names=("a",), angles=None, category="Car") -> Detections:
    labels = [0] * len(boxes) if labels is None else labels
    return Detections(boxes, np.arange(len(boxes))[::-1], labels, names, angles, category)


def street(*categories: str, **more) -> AnnotatedImage:
    return AnnotatedImage(
        None, BOXES[: len(categories)], categories=categories, size=(60, 400), **more
    )


class TestNames:
    @pytest.mark.parametrize(
        ("given_name", "known"),
        [
            ("000001.png", "000001"),
            ("kitti/label_2/000001.txt", "/data/image_2/000001.png"),
            ("a.0001", "a.0001.jpg"),
            ("exactly this", "exactly this"),
        ],
    )
    def test_suffixes_and_folders(self, given_name, known) -> None:
        detections, annotations = align({given_name: found()}, {known: street("Car")})
        assert [*detections] == [*annotations] == [known]

    def test_longer_paths_decide(self) -> None:
        truth = {name: street("Car") for name in ("left/a.png", "right/a.png", "b.png")}
        one, two = found(BOXES[:1]), found(BOXES[:2])
        detections, _ = align({"x/right/a": one, "x/left/a": two}, truth)
        assert detections["right/a.png"].boxes.shape == (1, 4)
        with pytest.raises(ValueError, match="matches several pictures"):
            align({"a.png": one}, truth)
        with pytest.raises(ValueError, match="matches several pictures"):
            align({"x/left/a": one, "y/left/a.png": one}, truth)

    def test_names_and_files_of_images(self) -> None:
        image = replace(street("Car"), image=Path("image_2/000001.png"), name="drive 7")
        for name in ("drive 7", "image_2/000001.png", "000001"):
            assert [*align({name: found()}, {"first": image})[0]] == ["first"]

    def test_a_name_that_fits_exactly_goes_first(self) -> None:
        truth = {"0": replace(street("Car"), name="1.png"), "1": street("Car")}
        assert [*align({"1": found(), "0": found()}, truth)[0]] == ["1", "0"]

    @given(st.lists(paths, min_size=1, max_size=6, unique=True), paths)
    def test_against_all_names(self, known, name) -> None:
        """The longest common end of all decides, and an exact name before it."""

        def common(other: str) -> int:
            ends = zip(reversed(name.split("/")), reversed(other.split("/")), strict=False)
            return len([*itertools.takewhile(lambda parts: parts[0] == parts[1], ends)])

        longest = max(map(common, known))
        best = [other for other in known if longest and common(other) == longest]
        best = [name] if name in known else best
        truth = {other: street("Car") for other in known}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if len(best) == 1:
                assert [*align({name: found()}, truth)[0]] == best
            else:
                with pytest.raises(ValueError, match="several" if best else "compare their names"):
                    align({name: found()}, truth)

    def test_many_pictures_of_the_same_name(self) -> None:
        names = [f"d{i}/1.png" for i in range(1000)]  # a million pairs
        truth, empty = dict.fromkeys(names, street("Car")), found(BOXES[:0])
        assert len(align(dict.fromkeys(names, empty), truth)[0]) == len(names)
        assert len(align({f"x/{name}": empty for name in names}, truth)[0]) == len(names)

    def test_images_without_annotations(self) -> None:
        with pytest.warns(UserWarning, match="1 pictures without annotations are left out"):
            detections, _ = align({"a": found(), "b": found()}, {"a": street("Car")})
        assert [*detections] == ["a"]
        with pytest.raises(ValueError, match="compare their names"):
            align({"b": found()}, {"a": street("Car")})
        with pytest.raises(TypeError, match="must be an AnnotatedImage"):
            align({}, {"a": BOXES})


class TestCategories:
    def test_own_neighbours_areas_and_others(self) -> None:
        image = street("car", "VAN", "Tram", "DontCare", "CAR", "Car", ignore=[False] * 5 + [True])
        _, annotations = align({"a": found()}, {"a": image})
        np.testing.assert_array_equal(annotations["a"].boxes, BOXES[[0, 1, 3, 4, 5]])
        np.testing.assert_array_equal(annotations["a"].ignore, [0, 1, 1, 0, 1])
        assert len({annotations["a"].categories[i] for i in (0, 3, 4)}) == 1

    def test_a_category_that_is_given(self) -> None:
        image = street("Car", "Van", "Van")
        with pytest.warns(UserWarning, match="the detections are of Car, not of 'van'"):
            _, annotations = align({"a": found()}, {"a": image}, category="van")
        np.testing.assert_array_equal(annotations["a"].ignore, [False, False])
        detections, _ = align({"a": found(category="object")}, {"a": image}, category="Van")
        assert detections["a"].category == "Van"

    @pytest.mark.parametrize("category", ["Face", "object"])
    def test_annotations_without_categories(self, category) -> None:
        image = street("object", "object")
        _, annotations = align({"a": found(category=category)}, {"a": image})
        assert len(annotations["a"].positives) == 2

    def test_words_of_their_own(self) -> None:
        image = street("Auto", "DontCare")
        with pytest.warns(UserWarning, match="no annotated object is of Car, as detections are"):
            _, annotations = align({"a": found()}, {"a": image})
        np.testing.assert_array_equal(annotations["a"].ignore, [False, True])

    def test_categories_that_are_views(self) -> None:
        image = street("car rear", "sign", "Car front")
        boxes = found(labels=[0] * 6, names=("car front", "car rear"), category="object")
        _, annotations = align({"a": boxes}, {"a": image})
        np.testing.assert_array_equal(annotations["a"].boxes, BOXES[[0, 2]])
        np.testing.assert_array_equal(annotations["a"].labels, [1, 0])
        assert evaluate_voc({"a": boxes}, annotations).view_accuracy == 0.5

    def test_selection(self) -> None:
        image = street("Car", "Truck", "Pedestrian", occlusion=[0.0, 0, 0])
        _, annotations = align({"a": found()}, {"a": image}, selection=KITTI_CARS)
        np.testing.assert_array_equal(annotations["a"].ignore, [False, True])
        with pytest.raises(ValueError, match="leave out category"):
            align({"a": found()}, {"a": image}, selection=KITTI_CARS, category="Car")


class TestViews:
    @given(st.integers(2, 12), st.integers(0, 10**6))
    def test_headings_of_equal_views(self, n_views, seed) -> None:
        """The nearest heading is the view whose range has it."""
        views = Views.around(n_views)
        angles = np.random.default_rng(seed).uniform(-180, 180, 6)
        image = street(*["Car"] * 6, angles=angles)
        boxes = found(names=views.names, angles=views.angles)
        for given_views in (None, views):
            _, annotations = align({"a": boxes}, {"a": image}, views=given_views)
            np.testing.assert_array_equal(annotations["a"].labels, views.label_of(angles))

    def test_other_views_than_those_of_the_detector(self) -> None:
        four = Views.around(4)
        image = street("Car", "Car", "Car", angles=[80.0, 5.0, -100.0])
        boxes = found(BOXES[:3], [0, 1, 2], ["a", "b", "c"], [80.0, 5.0, 170.0])
        detections, annotations = align({"x": boxes}, {"x": image}, views=four)
        assert detections["x"].names == four.names
        result = evaluate_voc(detections, annotations)
        assert result.view_accuracy == pytest.approx(2 / 3)
        assert result.view_confusion.shape == (4, 4)

    def test_limits_of_yaw(self) -> None:
        """Ranges of yaw need not end half-way between the headings that stand for them."""
        views = Views.of_yaw((-30.0, 30.0))  # headings 30, 90, 150: half-way is 60 and 120
        views = replace(views, angles=(10.0, 90.0, 170.0))  # half-way would be 50 and 130
        image = street("Face", angles=[55.0])
        boxes = found(BOXES[:1], [0], views.names, views.angles, "Face")
        assert align({"a": boxes}, {"a": image}, views=views)[1]["a"].labels == [0]
        assert align({"a": boxes}, {"a": image})[1]["a"].labels == [1]

    def test_headings_go_before_labels_and_labels_before_categories(self) -> None:
        names, angles = ("0°", "90°", "car"), (0.0, 90.0, 180.0)
        image = street("Car", "Car", "Car", labels=[2, 0, -1], angles=[80.0, np.nan, np.nan])
        _, annotations = align({"a": found(names=names, angles=angles)}, {"a": image})
        np.testing.assert_array_equal(annotations["a"].labels, [1, 0, 2])

    def test_names_that_are_headings(self) -> None:
        image = street("Car", "Car", angles=[80.0, -10.0])
        _, annotations = align({"a": found(names=("90°", "-22.5°"))}, {"a": image})
        np.testing.assert_array_equal(annotations["a"].labels, [0, 1])
        views = Views.around(4, ["right", "rear", "left", "front"])
        boxes = found(names=("front", "right"))
        detections, annotations = align({"a": boxes}, {"a": image}, views=views)
        np.testing.assert_array_equal(detections["a"].labels, 3)
        np.testing.assert_array_equal(annotations["a"].labels, [3, 0])

    def test_views_that_cannot_be_compared(self) -> None:
        image = street("Car", "Car", labels=[0, 7])
        with pytest.warns(UserWarning, match="labelled up to view 7"):
            _, annotations = align({"a": found(names=("x", "y"))}, {"a": image})
        np.testing.assert_array_equal(annotations["a"].labels, -1)
        assert np.isnan(evaluate_voc({"a": found()}, annotations).view_accuracy)
        mixed = {"a": found(names=("x", "y")), "b": found(names=("z", "y"))}
        _, annotations = align(mixed, {"a": image, "b": image})
        np.testing.assert_array_equal(annotations["b"].labels, -1)
        _, annotations = align({"a": found(names=("x", "y"))}, {"a": image}, views=Views.around(4))
        np.testing.assert_array_equal(annotations["a"].labels, -1)

    def test_a_single_view(self) -> None:
        _, annotations = align({"a": found()}, {"a": street("Car", labels=[5])})
        np.testing.assert_array_equal(annotations["a"].labels, 0)
        assert np.isnan(evaluate_voc({"a": found()}, annotations).view_accuracy)


def test_clipping() -> None:
    image = street("Car")
    boxes = found([[-100.0, 0, 50, 50], [500, 0, 600, 50]])
    detections, _ = align({"a": boxes}, {"a": image}, clip=True)
    np.testing.assert_array_equal(detections["a"].boxes, [[0, 0, 50, 50]])
    with pytest.raises(ValueError, match="size of '' is not known"):
        align({"a": boxes}, {"a": replace(image, size=None)}, clip=True)


def test_every_protocol_forgives_vans_and_areas() -> None:
    """The same outcomes from one alignment: a car found, a van and an area that do not count."""
    kinds = ["Car", "Van", "DontCare", "Cyclist"]
    aligned = align({"a": found(BOXES[:4])}, {"a": street(*kinds, angles=[0.0] * 4)})
    assert evaluate_voc(*aligned).n_false == 1
    wrong = evaluate_coco(*aligned)
    assert wrong.ap == 1.0  # the cyclist has the lowest score
    kitti = evaluate_kitti(*aligned, overlap=0.5)
    assert kitti.easy.n_objects == 1
    assert kitti.easy.precision[0] == 1.0
