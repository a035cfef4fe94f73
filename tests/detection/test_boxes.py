"""Detections, and overlaps against a plain double loop."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.boxes import Detections, overlaps, with_aspect_ratios

NAMES = ("left", "front", "right")


def same(a: Detections, b: Detections) -> bool:
    arrays = all(
        np.array_equal(getattr(a, f), getattr(b, f)) for f in ("boxes", "scores", "labels")
    )
    return arrays and (a.names, a.angles, a.category) == (b.names, b.angles, b.category)


def crowd(seed: int, n: int, side: float = 100.0) -> Detections:
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0.0, side, (n, 2))
    boxes = np.hstack([corner, corner + rng.uniform(5.0, 40.0, (n, 2))])
    return Detections(boxes, rng.permutation(n) / 8.0, rng.integers(0, 3, n), NAMES)


def slow_overlap(a: np.ndarray, b: np.ndarray, denominator: str) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    shared = width * height
    return (
        shared / {"union": sum(areas) - shared, "min": min(areas), "first": areas[0]}[denominator]
    )


# Quarters of pixels: exact in floats, coarse enough for boxes to be equal, to touch, to be flat.
quarters = st.integers(-80, 80).map(lambda i: i / 4.0)
boxes_of_quarters = st.tuples(quarters, quarters, quarters, quarters).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)


@st.composite
def detections(draw, distinct: bool = False) -> Detections:
    boxes = draw(st.lists(boxes_of_quarters, max_size=25))
    n = len(boxes)
    scores = st.integers(-9, 9).map(lambda i: i / 2.0)
    drawn = draw(st.lists(scores, min_size=n, max_size=n))
    if distinct:
        drawn = draw(st.permutations(range(n)))
    labels = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return Detections(boxes, drawn, labels, NAMES)


class TestDetections:
    def test_converts_and_keeps_copies(self):
        boxes = np.array([[0.0, 1.0, 2.0, 3.0]])
        found = Detections(
            boxes, np.float32([1]), np.array([2], np.uint8), list(NAMES), [0, 90, -90]
        )
        boxes[:] = np.nan
        assert found.boxes.tolist() == [[0, 1, 2, 3]]
        assert [found.boxes.dtype, found.scores.dtype, found.labels.dtype] == ["f8", "f8", "i8"]
        assert found.names == NAMES
        assert found.angles == (0.0, 90.0, -90.0)
        assert found.views == ["right"]
        assert found.sizes.tolist() == [[2, 2]]
        assert found.areas.tolist() == [4]

    @pytest.mark.parametrize(
        ("changed", "error", "message"),
        [
            ({"boxes": [[0, 0, 1]]}, ValueError, r"boxes must have shape \(n, 4\)"),
            ({"boxes": [0, 0, 1, 1]}, ValueError, r"boxes must have shape \(n, 4\)"),
            ({"boxes": [[0, 0, 1, 1], [0]]}, ValueError, "boxes cannot be read"),
            ({"boxes": [["0", "0", "1", "1"]]}, ValueError, "boxes must be numbers"),
            ({"boxes": [[0, 0, 1, np.nan]]}, ValueError, "boxes must be finite"),
            ({"boxes": [[0, 0, 1, 1e300]]}, ValueError, "pixels of the origin"),
            ({"boxes": [[0, 3, 1, 2]]}, ValueError, "x1 <= x2"),
            ({"boxes": None}, ValueError, "boxes must be numbers"),
            ({"scores": [1.0, 2.0]}, ValueError, r"scores must have shape \(1,\)"),
            ({"scores": [np.inf]}, ValueError, "scores must be finite"),
            ({"scores": [True]}, ValueError, "scores must be numbers"),
            ({"labels": [3]}, ValueError, "indices into the 3 names; got 3"),
            ({"labels": [-1]}, ValueError, "indices into the 3 names; got -1"),
            ({"labels": np.array([2**63], np.uint64)}, ValueError, "indices into the 3 names"),
            ({"labels": [1.0]}, ValueError, "labels must be integers"),
            ({"labels": [[0]]}, ValueError, "labels must have shape"),
            ({"names": "Car"}, TypeError, "sequence of strings"),
            ({"names": 3}, TypeError, "sequence of strings"),
            ({"names": [1, 2, 3]}, TypeError, "a name must be a string"),
            ({"names": ["a", "b\n", "c"]}, ValueError, "printable"),
            ({"names": ["a", "a", "b"]}, ValueError, "distinct"),
            ({"angles": [0.0]}, ValueError, r"angles must have shape \(3,\)"),
            ({"angles": [0.0, np.nan, 1.0]}, ValueError, "angles must be finite"),
            ({"category": ""}, ValueError, "category must be non-empty printable text"),
            ({"category": None}, TypeError, "category must be a string"),
        ],
    )
    def test_refuses(self, changed, error, message):
        right = {"boxes": [[0, 0, 1, 1]], "scores": [1.0], "labels": [0], "names": NAMES}
        with pytest.raises(error, match=message):
            Detections(**(right | changed))

    def test_empty(self):
        none = Detections.empty(NAMES, [0, 1, 2], "Face")
        assert len(none) == 0
        assert none.boxes.shape == (0, 4)
        assert none.views == []
        assert repr(none) == "Detections(0 boxes of 'Face' in 3 views)"
        assert same(none, Detections([], [], [], NAMES, (0.0, 1.0, 2.0), "Face"))
        assert same(none, none.best_first().above(0.0).clipped(5, 5)[::-1])
        with pytest.raises(TypeError, match="sequence of strings"):
            Detections.empty("Face")

    def test_indexing_is_that_of_arrays(self):
        found = crowd(0, 6)
        mask = found.labels == found.labels[0]
        for index in (slice(1, 5, 2), mask, mask.tolist(), [3, 0], [], np.array([2]), -1):
            chosen = found[index]
            assert np.array_equal(chosen.boxes, found.boxes[index].reshape(-1, 4))
            assert np.array_equal(chosen.scores, np.atleast_1d(found.scores[index]))
            assert np.array_equal(chosen.labels, np.atleast_1d(found.labels[index]))
            assert chosen.names == NAMES
        for index in (6, [True], 0.5, "a", [[0, 1]], None):
            with pytest.raises(IndexError):
                found[index]

    def test_order_is_stable(self):
        found = Detections([[i, 0, i + 1, 1] for i in range(5)], [1, 2, 1, 2, 0], [0] * 5, ["a"])
        assert found.best_first().boxes[:, 0].tolist() == [1, 3, 0, 2, 4]
        assert found.above(1.0).boxes[:, 0].tolist() == [1, 3]
        many = Detections([[i, 0, i + 1, 1] for i in range(99)], [0, 1, 2] * 33, [0] * 99, ["a"])
        assert many.best_first().boxes[:, 0].tolist() == [
            i for k in (2, 1, 0) for i in range(k, 99, 3)
        ]

    def test_clips_to_the_image(self):
        boxes = [[-5, 2, 5, 20], [10, 0, 12, 5], [-3, -3, -1, -1], [2, 2, 2, 4], [1, 1, 3, 3]]
        found = Detections(boxes, range(5), [0] * 5, ["a"]).clipped(10, 8)
        assert found.boxes.tolist() == [[0, 2, 5, 8], [1, 1, 3, 3]]
        assert found.scores.tolist() == [0, 4]
        with pytest.raises(ValueError, match="width must be"):
            found.clipped(-1, 8)

    def test_concatenates_what_was_split(self):
        found = crowd(1, 7)
        assert same(Detections.concatenate(found[i : i + 3] for i in range(0, 7, 3)), found)
        with pytest.raises(ValueError, match="at least one"):
            Detections.concatenate([])
        with pytest.raises(ValueError, match="differ"):
            Detections.concatenate([found, Detections.empty(NAMES, category="Car")])

    def test_survives_pickle(self):
        found = crowd(2, 4)
        assert same(pickle.loads(pickle.dumps(found)), found)


class TestOverlaps:
    @given(detections(), detections(), st.sampled_from(["union", "min", "first"]))
    def test_against_a_double_loop(self, a, b, denominator):
        matrix = overlaps(a, b.boxes, denominator)
        expected = [[slow_overlap(x, y, denominator) for y in b.boxes] for x in a.boxes]
        assert np.array_equal(matrix, np.reshape(expected, (len(a), len(b))))

    @given(detections(), detections(), st.floats(-100, 100), st.floats(1e-3, 1e3))
    def test_laws(self, a, b, shift, scale):
        for denominator in ("union", "min"):
            matrix = overlaps(a, b, denominator)
            assert ((matrix >= 0.0) & (matrix <= 1.0)).all()
            assert np.array_equal(matrix.T, overlaps(b, a, denominator))
            assert np.allclose(matrix, overlaps(a.boxes * scale, b.boxes * scale, denominator))
            # Rounding the shifted corners changes boxes of a quarter of a pixel by little.
            moved = overlaps(a.boxes + shift, b.boxes + shift, denominator)
            assert np.allclose(matrix, moved, atol=1e-9)
        assert (overlaps(a, b, "first") <= overlaps(a, b, "min")).all()
        own = np.diag(overlaps(a, a))
        assert np.array_equal(own, (a.areas > 0.0).astype(float))

    @given(st.lists(st.floats(-1e9, 1e9), min_size=8, max_size=8))
    def test_extreme_boxes_stay_within_bounds(self, corners):
        boxes = np.sort(np.array(corners).reshape(2, 2, 2), axis=1).reshape(2, 4)
        for denominator in ("union", "min", "first"):
            matrix = overlaps(boxes, boxes, denominator)
            assert ((matrix >= 0.0) & (matrix <= 1.0)).all()

    def test_refuses(self):
        with pytest.raises(ValueError, match="denominator must be one of"):
            overlaps([], [], "max")
        with pytest.raises(ValueError, match="b must have shape"):
            overlaps([], [[1, 2]])


class TestAspectRatios:
    @given(detections(), st.lists(st.floats(0.1, 10.0), min_size=3, max_size=3))
    def test_keep_height_and_centre(self, found, ratios):
        shaped = with_aspect_ratios(found, ratios)
        assert np.array_equal(shaped.sizes[:, 1], found.sizes[:, 1])
        assert np.allclose(shaped.sizes[:, 0], found.sizes[:, 1] * np.array(ratios)[found.labels])
        for side in (0, 1):
            centres = [d.boxes[:, side] + d.boxes[:, side + 2] for d in (found, shaped)]
            assert np.allclose(*centres)
        assert np.array_equal(shaped.scores, found.scores)

    @pytest.mark.parametrize("ratios", [[1.0], [1.0, 1.0, 0.0], [1.0, np.nan, 1.0], 1.0])
    def test_refuses(self, ratios):
        with pytest.raises(ValueError, match="ratios must"):
            with_aspect_ratios(crowd(0, 2), ratios)
