"""Detectors: images of any kind in, the same boxes out, and files that nobody should trust."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

import badacost
from badacost import ModelFileError
from badacost.detection import (
    Cascade,
    ChannelParameters,
    Detections,
    Detector,
    ImageError,
    PyramidParameters,
    Suppression,
)
from badacost.detection.boxes import overlaps
from badacost.detection.decorrelation import as_filters, decorrelate
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.pose import PoseRegression
from badacost.detection.pyramid import pyramid_levels
from badacost.detection.score_curve import ScoreCurve
from badacost.io.model_file import read_model, write_model
from badacost.tree.forest import Forest, Tree

N_FEATURES = 80  # of windows of 2 x 2 cells, with two filters of ten channels


def random_image(seed: int = 0, height: int = 30, width: int = 41) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


PYRAMID = PyramidParameters(
    ChannelParameters(shrink=2), n_per_octave=4, n_approximated=3, pad=(2, 4), min_size=(8, 6),
    lambdas=(0.0, 0.1, 0.1),
)  # fmt: skip
FILTERS = np.random.default_rng(0).normal(size=(2, 10, 3, 3))
# Medians of the planes of random images: thresholds that tell windows apart.
FILTERED = [
    0.57, -2.38, 1.3, -1.34, 0.58, 0.85, -0.21, 0.25, 0.44, 0.01,
    -0.1, -0.55, -0.41, 1.98, -0.26, 0.56, -0.41, -0.78, 0.42, -0.11,
]  # fmt: skip
PLAIN = [0.27, 0.34, 0.5, 0.95, 0.15, 0.15, 0.15, 0.16, 0.13, 0.13]
TYPICAL = {80: np.repeat(FILTERED, 4), 160: np.repeat(PLAIN, 16)}  # by number of features


def random_tree(rng: np.random.Generator, n_features: int, n_rows: int) -> Tree:
    """A tree of three leaves."""
    leaf = np.array([False, False, True, True, True])
    nothing = np.zeros(5, np.float32)
    feature = rng.integers(0, n_features, 5)
    return Tree(
        feature=np.where(leaf, 0, feature).astype(np.int32),
        threshold=np.where(leaf, np.nan, TYPICAL[n_features][feature]),
        left=np.array([1, 3, 2, 3, 4], np.int32),
        missing_left=np.ones(5, bool),
        value=rng.integers(0, n_rows, 5).astype(np.int32),
        gain=nothing,
        count=nothing.astype(np.int32),
        weight=nothing,
    )


def random_cascade(seed: int, n_views: int, n_features: int = N_FEATURES, **changes) -> Cascade:
    rng = np.random.default_rng(seed)
    n_rows = n_views + 1 if n_views > 1 else 9
    trees = [random_tree(rng, n_features, n_rows) for _ in range(20)]
    table = rng.normal(size=(n_rows, n_views))
    table -= table.mean(axis=0) + 0.1
    forest = Forest.from_trees(trees, rng.uniform(0.1, 1.0, 20), table, n_features)
    given = {"window": (8, 6), "padded_window": (9, 8), "cell": 4, "rejections": np.array(-1.0)}
    return Cascade(forest, **{**given, **changes})


def random_detector(seed: int = 0, n_views: int = 3, n_cascades: int = 1, **changes) -> Detector:
    parameters = {
        "pyramid": PYRAMID,
        "cascades": [random_cascade(seed + i, n_views) for i in range(n_cascades)],
        "names": [f"view {i}" for i in range(n_views * n_cascades)],
        "filters": FILTERS,
        "suppression": Suppression(overlap=0.3),
        "category": "Car",
    }
    return Detector(**{**parameters, **changes})


def random_pose(n_views: int = 3) -> PoseRegression:
    rng = np.random.default_rng(4)
    weights = rng.normal(0.0, 0.05, (N_FEATURES, 4 + n_views)).astype(np.float32)
    weights[:, 4:] *= 20.0
    costs = rng.uniform(1.0, 3.0, (n_views, n_views)) * (1.0 - np.eye(n_views))
    return PoseRegression(weights, 0.1 - TYPICAL[N_FEATURES] @ weights, costs)


def assert_same(one: Detections, other: Detections) -> None:
    for name in ("boxes", "scores", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.names, one.angles, one.category) == (other.names, other.angles, other.category)


KINDS = {
    "views": {"n_views": 4, "aspect_ratios": [0.5, 1.0, 2.0, 1], "angles": [0, 90, 180, -90]},
    "one view": {"n_views": 1},
    "cascades": {"n_views": 1, "n_cascades": 3},
    "no filters": {
        "filters": None,
        "cascades": [random_cascade(7, 3, 160, cell=2, padded_window=(8, 8))],
    },
    "pose": {
        "cascades": [random_cascade(5, 1, pose=random_pose())],
        "curve": ScoreCurve(0.5, -0.25),
        "suppression": Suppression(overlap=0.3, vote=0.5),
    },
}


@pytest.fixture(params=KINDS)
def detector(request) -> Detector:
    return random_detector(**KINDS[request.param])


# Detection


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"pose"}))
def test_boxes_are_windows_in_the_image(kind) -> None:
    detector = random_detector(**KINDS[kind])
    candidates = detector.candidates(random_image())
    assert len(candidates) > 10
    assert len(np.unique(candidates.labels)) > (len(detector.names) > 1)
    heights = np.unique(candidates.sizes[:, 1].round(6))
    scales = [8.0 / height for height in heights]
    assert max(scales) == pytest.approx(1.0, abs=0.1)
    found = detector.detect(random_image())
    assert 0 < len(found) < len(candidates)
    assert (np.diff(found.scores) <= 0).all()
    assert overlaps(found, found)[~np.eye(len(found), dtype=bool)].max() <= 0.3
    if detector.aspect_ratios is not None:
        ratios = found.sizes[:, 0] / found.sizes[:, 1]
        np.testing.assert_allclose(ratios, np.take(detector.aspect_ratios, found.labels))


def test_windows_of_the_first_level() -> None:
    """Positions on a grid of strides, shifted by the padding of the image and of the window."""
    detector = random_detector(
        pyramid=replace(random_detector().pyramid, min_size=(30, 41)),
        cascades=[random_cascade(0, 3, rejections=-np.inf, min_score=-np.inf)],
    )
    found = detector.candidates(random_image())
    x, y = np.unique(found.boxes[:, 0]), np.unique(found.boxes[:, 1])
    np.testing.assert_allclose(np.diff(x), 4 * 41 / 40)  # 41 pixels become 20 cells of 2
    np.testing.assert_allclose(np.diff(y), 4.0)
    assert y[0] == (9 - 8) / 2 - 2
    assert x[0] == pytest.approx(((8 - 6) / 2 - 4) * 41 / 40)
    # The map is 9 x 12 cells of 4 pixels, (30 + 2 * 2) / 4 and (40 + 2 * 4) / 4 rounded up.
    assert (len(y), len(x)) == ((36 - 9) // 4 + 1, (48 - 8) // 4 + 1)


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_do_not_change_a_bit(detector, n_jobs) -> None:
    image = random_image(1, 90, 71)
    assert_same(detector.detect(image), detector.detect(image, n_jobs=n_jobs))
    assert_same(detector.candidates(image), detector.candidates(image, n_jobs=n_jobs))


def test_images_of_any_kind(tmp_path) -> None:
    detector, image = random_detector(), random_image()
    expected = detector.detect(image)
    assert len(expected)
    Image.fromarray(image).save(tmp_path / "image.png")
    opaque = np.dstack([image, np.full(image.shape[:2], 255, np.uint8)])
    for other in (
        tmp_path / "image.png",
        str(tmp_path / "image.png"),
        Image.fromarray(image),
        opaque,
        Image.fromarray(opaque),
        image.astype(np.uint16) * 257,
        image / 255.0,
        np.asfortranarray(image),
    ):
        assert_same(expected, detector.detect(other))
    grey = image[:, :, 0]
    expected = detector.detect(np.dstack([grey] * 3))
    for other in (grey, grey[:, :, None], Image.fromarray(grey)):
        assert_same(expected, detector.detect(other))


@pytest.mark.parametrize("size", [(1, 1), (7, 41), (30, 5), (1, 1000)])
def test_images_smaller_than_the_window_have_no_objects(detector, size) -> None:
    found = detector.detect(random_image(0, *size))
    assert_same(found, Detections.empty(detector.names, detector.angles, detector.category))
    assert list(detector.sightings(random_image(0, *size))) == []


def test_images_that_are_none(tmp_path) -> None:
    detector = random_detector()
    (tmp_path / "no.png").write_bytes(b"nothing")
    for image in (tmp_path / "no.png", tmp_path / "missing.png", np.zeros((0, 4, 3), np.uint8)):
        with pytest.raises(ImageError):
            detector.detect(image)
    with pytest.raises(TypeError, match="path, a PIL image or an array"):
        detector.detect(None)


def test_images_too_large_for_the_memory() -> None:
    detector = random_detector().with_pyramid(n_octaves_up=4)
    with pytest.raises(ValueError, match="reduce the image"):
        detector.detect(np.zeros((2500, 2500), np.uint8))
    small_cells = replace(PYRAMID, channels=ChannelParameters(shrink=1), n_octaves_up=4)
    cascade = random_cascade(0, 3, 160, cell=1, padded_window=(4, 4), window=(4, 4))
    detector = random_detector(
        filters=None, pyramid=replace(small_cells, pad=(0, 0)), cascades=[cascade]
    )
    with pytest.raises(ValueError, match=r"would need .* reduce the image or n_octaves_up"):
        detector.detect(np.zeros((500, 500), np.uint8))


# Many images


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3])
def test_many_images_come_in_their_order(n_jobs) -> None:
    detector = random_detector()
    images = [random_image(i, 20 + 7 * (i % 4), 30) for i in range(9)]
    found = list(detector.detect_many(iter(images), n_jobs=n_jobs))
    assert len(found) == 9
    for image, one in zip(images, found, strict=True):
        assert_same(detector.detect(image), one)
    assert list(detector.detect_many([], n_jobs=n_jobs)) == []


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_images_are_read_as_they_are_needed(n_jobs) -> None:
    taken = []

    def images():
        for i in range(100):
            taken.append(i)
            yield random_image(i, 12, 12)

    found = random_detector().detect_many(images(), n_jobs=n_jobs)
    assert taken == []
    for n_seen in range(1, 5):
        next(found)
        assert len(taken) <= n_seen + n_jobs
    n_threads = threading.active_count()
    found.close()
    assert threading.active_count() <= n_threads
    assert len(taken) < 10


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_an_error_comes_in_the_place_of_its_image(n_jobs) -> None:
    images = [random_image(0), random_image(1), Path("missing.png"), random_image(2)]
    found = random_detector().detect_many(images, n_jobs=n_jobs)
    assert len(next(found)) + len(next(found)) > 0
    with pytest.raises(ImageError, match=r"missing\.png"):
        next(found)


# Other settings


def test_other_pyramids() -> None:
    detector, image = random_detector(), random_image()
    larger = detector.with_pyramid(n_octaves_up=1)
    assert larger.pyramid == replace(detector.pyramid, n_octaves_up=1)
    smallest = (other.candidates(image).sizes[:, 1].min() for other in (larger, detector))
    assert next(smallest) == pytest.approx(next(smallest) / 2, rel=0.1)
    with pytest.raises(TypeError):
        detector.with_pyramid(octaves=1)


def test_other_thresholds() -> None:
    detector, image = random_detector(n_views=1, n_cascades=2), random_image()
    n_before = len(detector.candidates(image))
    for all_of_them in (0.5, np.float32(0.5), [0.5, 0.5], [0.5, np.full(20, 0.5)]):
        other = detector.with_rejections(all_of_them)
        assert [cascade.rejections.tolist() for cascade in other.cascades] == [[0.5] * 20] * 2
    assert len(other.candidates(image)) < n_before
    with pytest.raises(ValueError, match="zip"):
        detector.with_rejections([0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_lower_threshold_finds_more(kind) -> None:
    detector, image = random_detector(**KINDS[kind]), random_image()
    detector = replace(detector, curve=None)
    before = detector.candidates(image)
    lower = detector.with_threshold(-1.5).candidates(image)
    assert len(lower) > len(before)
    assert lower.scores.min() < 0.0
    for found in before:
        same = np.isclose(lower.boxes, found.boxes).all(axis=1) & (lower.scores == found.scores)
        assert same.any()
    higher = detector.with_threshold(0.7).candidates(image)
    assert 0 < len(higher) == (before.scores >= 0.7).sum() < len(before)


def test_thresholds_of_trees_move_with_the_floor() -> None:
    rejections = np.linspace(-3.0, -1.0, 20)
    for min_score, floor in ((0.0, 0.0), (-np.inf, -1.0)):
        cascade = random_cascade(0, 3, rejections=rejections, min_score=min_score)
        detector = random_detector(cascades=[cascade])
        (lower,) = detector.with_threshold(-2.0).cascades
        np.testing.assert_allclose(lower.rejections, rejections - 2.0 - floor)
        assert lower.min_score == -2.0
        (higher,) = detector.with_threshold(3.0).cascades
        np.testing.assert_array_equal(higher.rejections, rejections)
    endless = random_cascade(0, 3, rejections=-np.inf, min_score=-np.inf)
    (cascade,) = random_detector(cascades=[endless]).with_threshold(-2.0).cascades
    assert (cascade.rejections == -np.inf).all()
    for wrong in (np.nan, np.inf, "1"):
        with pytest.raises((ValueError, TypeError), match="score must be"):
            detector.with_threshold(wrong)


def test_a_curve_turns_scores_into_probabilities() -> None:
    plain, image = random_detector(), random_image()
    curve = ScoreCurve(0.4, -0.5)
    likely = replace(plain, curve=curve)
    before, after = plain.candidates(image), likely.candidates(image)
    np.testing.assert_array_equal(after.scores, curve.probabilities(before.scores))
    np.testing.assert_array_equal(after.boxes, before.boxes)
    # Without a vote, the boxes and their order are the same, and so is average precision.
    before, after = plain.detect(image), likely.detect(image)
    np.testing.assert_array_equal(after.boxes, before.boxes)
    truth = {"a": before[::3]}
    results = [evaluate_voc({"a": found}, truth) for found in (before, after)]
    assert results[0].ap == results[1].ap < 1.0


def test_confidence() -> None:
    image = random_image()
    detector = random_detector(**KINDS["pose"])
    open_detector = detector.with_confidence(0.2)
    everything = open_detector.candidates(image)
    sure = open_detector.with_confidence(0.6).candidates(image)
    assert 0 < len(sure) == (everything.scores >= 0.6).sum() < len(everything)
    assert everything.scores.min() == pytest.approx(0.2, abs=0.05)
    (found,) = detector.predict(image, conf=0.6)
    assert_same(found, detector.with_confidence(0.6).detect(image))
    with pytest.raises(ValueError, match="greater than 0 and less than 1"):
        detector.with_confidence(1.5)
    assert detector.with_confidence(0) is detector
    with pytest.raises(ValueError, match=r"not probabilities: use a threshold .*--threshold"):
        replace(detector, curve=None).with_confidence(0.5)


def test_poses_are_those_of_the_features() -> None:
    """On a level of the size of the image, against windows that are cut out one by one."""
    pose = random_pose()
    cascade = random_cascade(5, 1, rejections=-np.inf, min_score=-np.inf, pose=pose)
    pyramid = replace(PYRAMID, min_size=(30, 41))
    detector = random_detector(cascades=[cascade], pyramid=pyramid)
    bare = replace(detector, cascades=[replace(cascade, pose=None)], names=["a"])
    image = random_image()
    found, windows = detector.candidates(image), bare.candidates(image)
    (level,) = pyramid_levels(image, pyramid)
    maps = decorrelate(level.channels, as_filters(FILTERS, 10))
    cut = sliding_window_view(maps, (2, 2), axis=(1, 2))
    n_rows, n_columns = (36 - 9) // 4 + 1, (48 - 8) // 4 + 1
    features = np.stack([cut[:, y, x].ravel() for y in range(n_rows) for x in range(n_columns)])
    outputs = pose.outputs(features)
    np.testing.assert_allclose(found.boxes, pose.boxes(windows.boxes, outputs), atol=1e-3)
    np.testing.assert_array_equal(found.labels, pose.labels(outputs))
    np.testing.assert_array_equal(found.scores, windows.scores)
    assert len(np.unique(found.labels)) == 3


def test_poses_of_several_cascades_are_numbered_on() -> None:
    cascades = [random_cascade(5, 1, pose=random_pose()), random_cascade(6, 1)]
    detector = random_detector(cascades=cascades, names=list("abcd"))
    labels = detector.candidates(random_image()).labels
    assert len(np.unique(labels[labels < 3])) > 1
    assert (labels == 3).any()


def test_fast() -> None:
    detector = random_detector().with_pyramid(n_octaves_up=1)
    fast = detector.fast(0.5)
    assert (fast.pyramid.n_per_octave, fast.pyramid.n_octaves_up) == (8, 0)
    assert fast.pyramid.n_approximated == 7
    assert set(fast.cascades[0].rejections) == {-0.5}
    assert set(detector.fast().cascades[0].rejections) == {-0.1}


def n_evaluated(detector: Detector, images: list[np.ndarray]) -> int:
    return sum(
        sighting.windows.n_evaluated for image in images for sighting in detector.sightings(image)
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_calibration_keeps_the_boxes_of_its_images(detector, n_jobs) -> None:
    images = [random_image(i, 24, 20) for i in range(3)]
    calibrated = detector.calibrated(iter(images), n_jobs=n_jobs)
    for image in images:
        assert_same(detector.detect(image), calibrated.detect(image))
    assert n_evaluated(calibrated, images) < n_evaluated(detector, images)
    for before, after in zip(detector.cascades, calibrated.cascades, strict=True):
        assert (after.rejections > before.rejections - 1e-6).all()


def test_calibration_leaves_cascades_that_found_nothing() -> None:
    blind = random_cascade(1, 1, rejections=1e9)
    detector = random_detector(cascades=[random_cascade(0, 1), blind], names=["a", "b"])
    calibrated = detector.calibrated([random_image()])
    assert (calibrated.cascades[0].rejections > -1.0).all()
    assert calibrated.cascades[1] is blind
    with pytest.raises(ValueError, match="give images with objects"):
        replace(detector, cascades=[blind], names=["b"]).calibrated([random_image()])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cascades": []}, "1 to 256 cascades"),
        ({"filters": None}, "does not fit"),
        ({"filters": np.zeros((3, 10, 3, 3))}, "does not fit"),
        ({"filters": np.zeros((2, 9, 3, 3))}, "filters must have the shape"),
        ({"cascades": [random_cascade(0, 3, cell=5, padded_window=(10, 10))]}, "does not fit"),
        ({"stride": 6}, "multiple of 4"),
        ({"stride": 0}, "stride must be"),
        ({"stride": 4.0}, "stride must be"),
        ({"names": ["a", "b"]}, "each of 3 views"),
        ({"names": ["a", "b", "b"]}, "distinct"),
        ({"aspect_ratios": [1.0, 1.0]}, "must be 3 numbers"),
        ({"aspect_ratios": [1.0, 1.0, 0.0]}, "aspect_ratios must be"),
        ({"aspect_ratios": [1.0, 1.0, 1e300]}, "aspect_ratios must be"),
        ({"aspect_ratios": "111"}, "aspect_ratios must be"),
        ({"angles": [0.0]}, "angles"),
        ({"category": ""}, "category"),
        ({"pyramid": PyramidParameters(ChannelParameters(2), pad=(10, 2))}, "largest window"),
        ({"cascades": [random_cascade(5, 1, pose=random_pose(4))]}, "each of 4 views"),
    ],
)
def test_detectors_that_make_no_sense(changed, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        random_detector(**changed)


@pytest.mark.parametrize(
    ("n_views", "pose"),
    [
        (1, replace(random_pose(), weights=np.zeros((79, 7), np.float32))),
        (2, random_pose()),
        (4, random_pose()),
    ],
)
def test_poses_that_do_not_fit(n_views, pose) -> None:
    with pytest.raises(ValueError, match="does not fit the features or views"):
        random_cascade(0, n_views, pose=pose)


# Files


@pytest.fixture
def saved(detector, tmp_path) -> Path:
    detector.save(tmp_path / "detector")
    return tmp_path / "detector"


def test_a_loaded_detector_finds_the_same(detector, saved, tmp_path) -> None:
    for loaded in (Detector.load(saved), badacost.load(saved)):
        assert repr(loaded) == repr(detector)
        assert loaded.pyramid == detector.pyramid
        for image in (random_image(0), random_image(1, 60, 50)):
            assert_same(detector.candidates(image), loaded.candidates(image))
            assert_same(detector.detect(image), loaded.detect(image))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_thresholds_that_json_cannot_hold(tmp_path) -> None:
    cascade = random_cascade(0, 3, rejections=-np.inf, min_score=-np.inf)
    random_detector(cascades=[cascade]).save(tmp_path / "detector")
    loaded = Detector.load(tmp_path / "detector").cascades[0]
    assert loaded.min_score == -np.inf
    assert (loaded.rejections == -np.inf).all()


def test_a_classifier_is_no_detector(tmp_path) -> None:
    X = np.arange(8.0).reshape(-1, 1)
    badacost.CostSensitiveTreeClassifier().fit(X, X[:, 0] > 3).save(tmp_path / "tree")
    with pytest.raises(ModelFileError, match="not a detector"):
        Detector.load(tmp_path / "tree")


def load_and_look(path: Path) -> Detections | None:
    """What is found in a small image by the detector of a file, if the file is not refused."""
    try:
        detector = Detector.load(path)
    except ModelFileError:
        return None
    return detector.detect(random_image(0, 16, 18))


def tampered(path: Path, header: Any = None, arrays: Any = None) -> Path:
    """The file with functions applied to its header and arrays, otherwise valid."""
    model = read_model(path)
    contents = copy.deepcopy(model.header), dict(model.arrays)
    for change, content in zip((header, arrays), contents, strict=True):
        if change is not None:
            change(content)
    write_model(path, model.kind, *contents)
    return path


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of nested dicts and lists stand."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in inner:
        found.append((*path, key))
        if isinstance(item, dict | list):
            found += places(item, (*path, key))
    return found


HOSTILE = st.one_of(
    st.sampled_from(
        [None, True, "", "x", "1", [], {}, [1], [[8, 8]], [8, 8], [8, 8, 8], {"a": 1}, 0, -1, 1e300,
         -1e300, 1e-300, 0.5, 10**400, -(10**30), 2**31, 2**32, 2**63, 255, 4096, "\ud800", "a\nb"]
    ),
    st.integers(-10, 300),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.lists(st.integers(-5, 40), max_size=4),
)  # fmt: skip


def tamper_header(data: st.DataObject, header: dict[str, Any]) -> None:
    *path, last = data.draw(st.sampled_from(places(header)))
    parent: Any = header
    for key in path:
        parent = parent[key]
    if data.draw(st.booleans()):
        parent[last] = data.draw(HOSTILE)
    elif isinstance(parent, dict) and data.draw(st.booleans()):
        parent[data.draw(st.sampled_from(["x", "shrink", "cells", "channels"]))] = parent.pop(last)
    else:
        del parent[last]


def tamper_arrays(data: st.DataObject, arrays: dict[str, np.ndarray]) -> None:
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name].copy()
    how = data.draw(st.sampled_from(["value", "value", "dtype", "shape", "cut", "drop", "swap"]))
    if how == "value" and array.size:
        place = data.draw(st.integers(0, array.size - 1))
        if array.dtype.kind == "b":
            array.flat[place] = not array.flat[place]
        elif array.dtype.kind == "f":
            array.flat[place] = data.draw(st.floats(width=array.dtype.itemsize * 8))
        else:
            limits = np.iinfo(array.dtype)
            near = data.draw(st.integers(-3, 90))
            value = data.draw(st.sampled_from([near, limits.min, limits.max, 2**30, N_FEATURES]))
            array.flat[place] = value
    elif how == "dtype":
        with np.errstate(invalid="ignore"):
            array = array.astype(data.draw(st.sampled_from(["?", "i4", "i8", "u4", "f4", "f8"])))
    elif how == "shape":
        array = data.draw(st.sampled_from([array[None], array.reshape(-1)[:1], array.reshape(-1)]))
        array = array if array.ndim <= 3 else array[0]
    elif how == "cut":
        array = array.reshape(-1)[: data.draw(st.integers(0, array.size))]
    elif how == "swap":
        array = arrays[data.draw(st.sampled_from(sorted(arrays)))]
    arrays[name] = array
    if how == "drop":
        del arrays[name]


MODELS = [random_detector(**kind) for kind in KINDS.values()]


@given(st.sampled_from(range(len(MODELS))), st.data())
def test_files_with_other_headers_and_arrays(which, data) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "detector"
        MODELS[which].save(path)
        if data.draw(st.booleans()):
            tampered(path, header=lambda header: tamper_header(data, header))
        else:
            tampered(path, arrays=lambda arrays: tamper_arrays(data, arrays))
        load_and_look(path)


@given(st.data())
def test_damaged_bytes(data) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "detector"
        MODELS[0].save(path)
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()):
            for _ in range(data.draw(st.integers(1, 4))):
                place = data.draw(st.integers(0, len(content) - 1))
                content[place] ^= 1 << data.draw(st.integers(0, 7))
        else:
            del content[data.draw(st.integers(0, len(content) - 1)) :]
        path.write_bytes(content)
        load_and_look(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("names"), "names"),
        (lambda h: h.update(extra=1), "extra"),
        (lambda h: h["pyramid"].update(pad=[4096, 4096]), "largest window"),
        (lambda h: h["pyramid"].update(n_per_octave=10**9), "n_per_octave"),
        (lambda h: h["pyramid"]["channels"].update(shrink=0), "shrink"),
        (lambda h: h["pyramid"]["channels"]["histogram"].update(n_orientations=7), None),
        (lambda h: h["cascades"].append(h["cascades"][0]), "lacks 'cascade1'"),
        (lambda h: h["cascades"].clear(), "should not have"),
        (lambda h: h["cascades"][0].update(window=[8, 6, 3], padded_window=[9, 8, 3]), "two"),
        (lambda h: h["cascades"][0].update(window=[]), "two"),
        (lambda h: h["cascades"][0].update(cell=2), "5 planes of cells of 2"),
        (lambda h: h["cascades"][0].update(min_score=[0]), "minimum score"),
        (lambda h: h["cascades"][0].update(min_score=10**400), "int too large"),
        (lambda h: h.update(n_filters=0), "n_filters"),
        (lambda h: h.update(n_filters=20), "reshape"),
        (lambda h: h.update(stride=2**40), "stride"),
        (lambda h: h.update(suppression={"kind": "greedy", "overlap": -1}), "overlap"),
        (lambda h: h.update(names=["view 0"] * 4), "distinct"),
        (lambda h: h.update(category="a\nb"), "category"),
        (lambda h: h.update(curve={"slope": -1.0, "intercept": 0.0}), "slope"),
        (lambda h: h.update(curve={"slope": 1.0, "intercept": "0"}), "intercept"),
        (lambda h: h.update(curve={"slope": 1.0}), "intercept"),
        (lambda h: h.update(curve=[1.0, 0.0]), None),
        (lambda h: h["suppression"].update(vote=2.0), "vote"),
    ],
)
def test_headers_that_are_refused(change, message, tmp_path) -> None:
    random_detector(**KINDS["views"]).save(tmp_path / "detector")
    path = tampered(tmp_path / "detector", header=change)
    with pytest.raises(ModelFileError, match=message):
        Detector.load(path)


def set_entry(name: str, place: int, value: Any):
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name].flat[place] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry("cascade0_feature", 0, N_FEATURES), "outside of 0..79"),
        (set_entry("cascade0_feature", 0, -1), "outside of 0..79"),
        (set_entry("cascade0_value", 3, 5), "a row outside of 0..4"),
        (set_entry("cascade0_value", 3, -(2**31)), "a row outside"),
        (set_entry("cascade0_left", 0, 5), "child"),
        (set_entry("cascade0_left", 0, 0), "child"),
        (set_entry("cascade0_offsets", 1, -(2**63)), "cover"),
        (set_entry("cascade0_offsets", 1, 2**62), "cover"),
        (set_entry("cascade0_table", 0, np.inf), "not finite"),
        (set_entry("cascade0_table", 0, 1.7e308), "might not be finite"),
        (set_entry("cascade0_tree_weights", 0, np.nan), "not finite"),
        (set_entry("cascade0_rejections", 0, np.nan), "one threshold for each"),
        (set_entry("cascade0_n_features", 0, 2**31 - 1), r"would need 51\.54 GB"),
        (set_entry("cascade0_n_features", 0, 160), "does not fit"),
        (set_entry("cascade0_n_features", 0, -80), "cannot have"),
        (set_entry("filters", 0, np.nan), "floats of at most"),
        (set_entry("filters", 0, 1e30), "floats of at most"),
        (lambda a: a.update(filters=a["filters"][:10]), None),
        (lambda a: a.update(filters=a["filters"].astype(np.int32)), "floats"),
        (lambda a: a.pop("cascade0_rejections"), "cascade0_rejections"),
        (lambda a: a.update(cascade0_rejections=np.zeros(3)), "one threshold for each"),
        (lambda a: a.update(cascade0_rejections=np.zeros(20, np.float32)), "not numbers in a row"),
        (lambda a: a.update(cascade0_x=np.zeros(3)), "should not have 'cascade0_x'"),
        (lambda a: a.update(x=np.zeros(3)), "should not have 'x'"),
    ],
)
def test_arrays_that_are_refused(change, message, tmp_path) -> None:
    random_detector(**KINDS["views"]).save(tmp_path / "detector")
    path = tampered(tmp_path / "detector", arrays=change)
    with pytest.raises(ModelFileError, match=message):
        Detector.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry("cascade0_pose_weights", 7, np.nan), "must be finite"),
        (set_entry("cascade0_pose_weights", 7, 3e38), "at most 1e"),
        (set_entry("cascade0_pose_intercepts", 2, np.inf), "must be finite"),
        (set_entry("cascade0_pose_costs", 1, -1.0), None),
        (set_entry("cascade0_pose_costs", 1, np.nan), None),
        (lambda a: a.pop("cascade0_pose_weights"), "not complete"),
        (lambda a: a.pop("cascade0_pose_costs"), "not complete"),
        (lambda a: a.update(cascade0_pose_weights=np.zeros((80, 7))), "float32 weights"),
        (lambda a: a.update(cascade0_pose_weights=np.zeros((79, 7), "f4")), "does not fit"),
        (lambda a: a.update(cascade0_pose_weights=np.zeros(560, "f4")), "not made of numbers"),
        (lambda a: a.update(cascade0_pose_intercepts=np.zeros(6)), "7 intercepts"),
        (lambda a: a.update(cascade0_pose_intercepts=np.zeros(7, "i8")), "not made of numbers"),
        (lambda a: a.update(cascade0_pose_costs=np.zeros((3, 3), "i8")), "not made of numbers"),
        (lambda a: a.update(cascade0_pose_costs=np.zeros((4, 4))), "float32 weights of 8"),
        (lambda a: a.update(cascade0_pose_costs=np.zeros((3, 2))), "rows of as many"),
        (lambda a: a.update(cascade0_pose_costs=np.array(1.0)), None),
        (lambda a: a.update(cascade0_pose_x=np.zeros(3)), "should not have 'cascade0_pose_x'"),
    ],
)
def test_poses_that_are_refused(change, message, tmp_path) -> None:
    random_detector(**KINDS["pose"]).save(tmp_path / "detector")
    path = tampered(tmp_path / "detector", arrays=change)
    with pytest.raises(ModelFileError, match=message):
        Detector.load(path)


def test_files_from_before_there_were_curves(tmp_path) -> None:
    detector = random_detector()
    detector.save(tmp_path / "detector")
    path = tampered(tmp_path / "detector", header=lambda header: header.pop("curve"))
    assert_same(Detector.load(path).detect(random_image()), detector.detect(random_image()))


def test_cascades_that_would_take_too_much_memory_together(tmp_path) -> None:
    """Chains of 12 tests take 25 nodes each, and 4096 when they are complete."""
    n_levels, n_trees = 12, 2048
    number = np.arange(2 * n_levels + 1)
    leaf = (number % 2 == 0) & (number > 0) | (number == 2 * n_levels - 1)
    leaf[0] = False
    nothing = np.zeros(len(number), np.float32)
    chain = Tree(
        feature=np.zeros(len(number), np.int32),
        threshold=np.where(leaf, np.nan, 0.5),
        left=np.where(leaf, number, number + 1 + (number > 0)).astype(np.int32),
        missing_left=np.ones(len(number), bool),
        value=np.zeros(len(number), np.int32),
        gain=nothing,
        count=nothing.astype(np.int32),
        weight=nothing,
    )
    forest = Forest.from_trees([chain] * n_trees, np.ones(n_trees), np.ones((1, 1)), N_FEATURES)
    cascade = Cascade(forest, (8, 6), (9, 8), 4, rejections=np.array(0.0))
    random_detector(cascades=[cascade], names=["a"]).save(tmp_path / "one")
    assert load_and_look(tmp_path / "one") is not None
    with pytest.raises(ValueError, match="nodes in all"):
        random_detector(cascades=[cascade] * 3, names=["a", "b", "c"])
