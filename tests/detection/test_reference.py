"""Published layouts of MATLAB files, made up: what is read from them, and what is refused."""

from __future__ import annotations

import copy
import os
import struct
import tracemalloc
import zlib
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.detection import Detections, Detector, load_detector
from badacost.detection.cascade import Scanner
from badacost.detection.matlab_file import Clock, read_variable
from badacost.detection.reference import load_matlab
from badacost.io.budget import Budget, BudgetError
from badacost.io.model_file import ModelFileError
from campaigns import hostile_models
from campaigns.matlab_detectors import (
    LAYOUTS,
    N_TREES,
    matlab_bytes,
    multi_class,
    plain_acf,
    sub_categories,
)


def look(detector: Detector) -> Detections:
    image = np.random.default_rng(0).integers(0, 256, (24, 30, 3), dtype=np.uint8)
    return detector.detect(image)


@pytest.fixture
def write(tmp_path):
    def write_(detector: Any, **options: Any) -> Path:
        path = tmp_path / "detector.mat"
        path.write_bytes(matlab_bytes(detector, **options))
        return path

    return write_


# What is read


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(write, layout, compress) -> None:
    path = write(LAYOUTS[layout](), compress=compress)
    detector = load_matlab(path)
    assert repr(load_detector(path)) == repr(detector)
    assert len(look(detector.with_rejections(-np.inf))) > 0
    assert detector.pyramid.n_per_octave == 8
    assert detector.pyramid.lambdas == (0.0, 0.1, 0.2)
    assert detector.stride == 4
    assert detector.suppression.kind == "greedy"
    assert detector.suppression.denominator == "min"
    windows = [cascade.window for cascade in detector.cascades]
    if layout == "multi-class":
        assert detector.category == "Car"
        assert detector.angles == (0.0, -120.0, 120.0)
        assert detector.aspect_ratios == (1.0, 1.5, 2.0)
        assert detector.cascades[0].min_score == 0.0
    else:
        assert detector.aspect_ratios is None
        assert detector.cascades[0].min_score == -np.inf
    if layout == "subcat":
        assert windows == [(8, 10), (8, 11), (8, 12)]
        assert detector.category == "Face"
        assert not detector.pyramid.channels.histogram.soft
        np.testing.assert_array_equal(
            detector.filters[1, 3], sub_categories()[0, 0]["opts"]["filters"][:, :, 3, 1]
        )
    if layout == "acf":
        assert detector.filters is None
        assert (detector.category, detector.names) == ("object", ("view 1",))


def slow_leaf(clf: dict[str, Any], tree: int, x: np.ndarray) -> int:
    """The leaf of a window, by the published rules: children count from 1."""
    node = 0
    while clf["child"][node, tree]:
        right = not x[clf["fids"][node, tree]] < clf["thrs"][node, tree]
        node = int(clf["child"][node, tree]) - 1 + int(right)
    return node


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_follow_the_published_rules(write, layout) -> None:
    struct_ = LAYOUTS[layout]()
    clf = struct_[0, 0]["clf"] if layout == "subcat" else struct_["clf"]
    cascade = load_matlab(write(struct_)).cascades[0]
    rng = np.random.default_rng(3)
    for _ in range(20):
        features = rng.normal(0.1, 0.1, (cascade.n_planes, 3, 5)).astype(np.float32)
        scanner = Scanner(cascade.with_rejections(-np.inf), features)
        trace = scanner.trace(np.array([0]), np.array([0]), 4)[0]
        # Windows of 2 x 4 cells, numbered column by column.
        sample = features[:, :2, :4].transpose(0, 2, 1).ravel()
        leaves = [slow_leaf(clf, tree, sample) for tree in range(N_TREES)]
        values = [clf["hs"][leaf, tree] for tree, leaf in enumerate(leaves)]
        if layout == "multi-class":
            votes = [clf["Y"][:, int(label) - 1] for label in values]
            margins = np.cumsum(clf["wl_weights"].T * votes, axis=0)
            costs = margins @ clf["Cprime"].T
            expected = costs[:, 0] - costs[:, 1:].min(axis=1)
        else:
            expected = np.cumsum(values, dtype=np.float64)
        np.testing.assert_allclose(trace, expected, rtol=1e-6, atol=1e-9)


def test_stored_children_of_complete_trees_are_not_needed(write) -> None:
    detector = plain_acf()
    expected = look(load_matlab(write(detector)).with_rejections(-np.inf))
    detector["clf"]["child"][:] = 0
    found = look(load_matlab(write(detector)).with_rejections(-np.inf))
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_loaded_detector_can_be_saved(write, tmp_path) -> None:
    detector = load_matlab(write(multi_class()))
    detector.save(tmp_path / "saved")
    again = load_detector(tmp_path / "saved")
    np.testing.assert_array_equal(look(detector).boxes, look(again).boxes)
    assert repr(detector) == repr(again)


# What is refused


def change(detector: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    *parents, last = path.split(".")
    part = detector
    for name in parents:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return detector


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("opts", None, "lacks the field 'opts'"),
        ("clf", np.eye(2), "not one struct"),
        ("opts.stride", "four", "does not hold numbers"),
        ("opts.stride", 0, "stride must be"),
        ("opts.stride", 4.5, "whole number"),
        ("opts.cascThr", [1.0, 2.0], "does not hold 1 numbers"),
        ("opts.cascThr", np.nan, "does not hold 1 numbers"),
        ("opts.modelDs", [100, 8], "must hold the window"),
        ("opts.modelDsPad", [1e300, 1e300], "too large"),
        ("opts.modelDsPad", [1e5, 1e5], "too large"),
        ("opts.modelDsPad", [-10, -17], "too small"),
        ("opts.modelDsPad", [3, 17], "too small"),
        ("opts.modelDsPad", [10, 17, 3], "does not hold 2 numbers"),
        ("opts.filters", np.zeros((5, 5, 9, 2)), "not for 10 channels"),
        ("opts.filters", np.zeros((4, 4, 10, 2)), "odd size"),
        ("opts.filters", np.full((5, 5, 10, 2), 1e300), "floats of at most"),
        ("opts.filters", np.zeros((5, 5, 10, 2, 2)), "not for 10 channels"),
        ("opts.filters", "text", "does not hold numbers"),
        ("opts.pNms.type", "ms", "unknown type 'ms'"),
        ("opts.pNms.type", 3, "not text"),
        ("opts.pNms.overlap", -1, "overlap"),
        ("opts.pPyramid.pad", [2**40, 2], "pad must be"),
        ("opts.pPyramid.lambdas", [0, 1], "does not hold 3 numbers"),
        ("opts.pPyramid.nPerOct", 1e300, "n_per_octave"),
        ("opts.pPyramid.pChns.shrink", 3, "pad must be a multiple"),
        ("opts.pPyramid.pChns.shrink", 0, "shrink must be"),
        ("opts.pPyramid.pChns.pColor.colorSpace", "hsv", "not LUV"),
        ("opts.pPyramid.pChns.pColor.enabled", 0, "leaves channels out"),
        ("opts.pPyramid.pChns.pGradHist.useHog", 1, "HOG"),
        ("opts.pPyramid.pChns.pGradHist.binSize", 8, "bins"),
        ("opts.pPyramid.pChns.pGradHist.nOrients", 9, "channels"),
        ("opts.pPyramid.pChns.pGradMag.colorChn", 1, "one colour"),
        ("opts.pPyramid.pChns.pCustom", {"name": "x"}, "channels of its own"),
        ("clf.fids", np.full((7, N_TREES), 160), "features of its nodes"),
        ("clf.fids", np.full((7, N_TREES), -1), "features of its nodes"),
        ("clf.fids", np.full((7, N_TREES), 0.5), "features of its nodes"),
        ("clf.fids", np.full((7, N_TREES), np.nan), "features of its nodes"),
        ("clf.fids", np.zeros((6, N_TREES)), "differ in shape"),
        ("clf.fids", np.zeros((0, 0)), "differ in shape"),
        ("clf.thrs", np.full((7, N_TREES), np.nan), "leaf"),
        ("clf.child", np.full((7, N_TREES), 1), "child"),
        ("clf.child", np.full((7, N_TREES), 2), "parent|child"),
        ("clf.child", np.full((7, N_TREES), 7), "children of its nodes"),
        ("clf.child", np.full((7, N_TREES), -1), "children of its nodes"),
        ("clf.hs", np.full((7, N_TREES), 5), "labels of its nodes"),
        ("clf.hs", np.full((7, N_TREES), 0), "labels of its nodes"),
        ("clf.hs", np.full((7, N_TREES), 1 + 1j), "complex"),
        ("clf.treeDepth", 2000, "more than 12 levels"),
        ("clf.treeDepth", 5, "children of its nodes"),
        ("clf.wl_weights", np.ones(3), "does not hold 4 numbers"),
        ("clf.wl_weights", np.full(4, np.inf), "does not hold 4 numbers"),
        ("clf.num_classes", 3, "not those of 3 classes"),
        ("clf.num_classes", 1, "not 2 to"),
        ("clf.num_classes", 1e9, "not 2 to"),
        ("clf.Cprime", np.ones((4, 5)), "not those of 4 classes"),
        ("clf.Cprime", np.full((4, 4), np.nan), "not finite"),
        ("clf.Cprime", np.diag(np.full(4, 1e308)), "finite"),
        ("clf.aRatio", [1, 2], "does not hold 3 numbers"),
        ("clf.aRatio", [1, 2, -1], "aspect_ratios"),
    ],
)
def test_fields_that_make_no_detector(write, path, value, message) -> None:
    file = write(change(multi_class(), path, value))
    with pytest.raises(ModelFileError, match=message):
        load_matlab(file)


def test_costs_whose_product_would_not_fit_in_memory(write) -> None:
    """A column times a row has as many entries as the square of their length."""
    detector = multi_class()
    detector["clf"] |= {
        "Cprime": np.zeros((10**6, 1), np.uint8),
        "Y": np.zeros((1, 10**6), np.uint8),
    }
    with pytest.raises(ModelFileError, match="not those of 4 classes"):
        load_matlab(write(detector, compress=True))


@pytest.mark.parametrize("value", [np.eye(3), "text", np.zeros((0, 0)), np.array([1, "a"], object)])
def test_variables_that_are_no_detector(write, value) -> None:
    with pytest.raises(ModelFileError, match="holds no detector"):
        load_matlab(write(value))


def test_files_that_are_none(write, tmp_path) -> None:
    with pytest.raises(ModelFileError, match="no variable 'detector'"):
        load_matlab(write(multi_class(), name="model"))
    with pytest.raises(FileNotFoundError):
        load_matlab(tmp_path / "missing.mat")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for load in (load_matlab, load_detector):
        for name in ("", "pipe", "loop"):
            with pytest.raises(ModelFileError, match="cannot read the model file"):
                load(tmp_path / name)
    (tmp_path / "text").write_text("MATLAB 7.3 MAT-file " + 200 * "x")
    for load in (load_matlab, load_detector):
        with pytest.raises(ModelFileError):
            load(tmp_path / "text")


# Elements that the reader would trust


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def matrix(class_: int, shape: tuple[int, ...], *contents: bytes, name: bytes = b"") -> bytes:
    return element(
        14,
        element(6, struct.pack("<II", class_, 0))
        + element(5, struct.pack(f"<{len(shape)}i", *shape))
        + element(1, name)
        + b"".join(contents),
    )


def matlab_file(*elements: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def nested(depth: int) -> bytes:
    inner = matrix(6, (1, 1), element(9, b"\0" * 8))
    for _ in range(depth):
        inner = matrix(1, (1, 1), inner)
    return matrix(1, (1, 1), inner, name=b"detector")


def named(names: bytes, length: int) -> bytes:
    """A struct whose fields have these names."""
    fields = [element(5, struct.pack("<i", length)), element(1, names)]
    empty = struct.pack("<II", 14, 0) * (len(names) // length)
    return matrix(2, (1, 1), *fields, empty, name=b"detector")


NUMBER = matrix(6, (1, 1), element(9, b"\0" * 8), name=b"detector")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (matlab_file(matrix(6, (2**30, 2**30), element(9, b"\0" * 8), name=b"detector")), "bytes"),
        (matlab_file(matrix(4, (1, 2**31 - 1), element(16, b""), name=b"detector")), "bytes"),
        (matlab_file(named(b"abcdefgh" * 2, 8)), "no proper names"),
        (matlab_file(matrix(1, (1, 2), matrix(14, (1, 0)), NUMBER, name=b"detector")), "element"),
        (matlab_file(named((b"a" * 127 + b"\0") * 2, 128)), "no proper names"),
        (matlab_file(matrix(6, (-1, 1), element(9, b"\0" * 8), name=b"detector")), "negative"),
        (
            matlab_file(
                matrix(2, (1, 2**31 - 1), element(5, b"\x20\0\0\0"), element(1, b""),
                       name=b"detector")
            ),
            "would need 859 GB",
        ),
        (
            matlab_file(
                matrix(2, (1, 1), element(5, b"\0\0\0\0"), element(1, b"ab"), name=b"detector")
            ),
            "names",
        ),
        (matlab_file(matrix(1, (2**20, 2**10), name=b"detector")), "parts"),
        (matlab_file(matrix(1, (2**9, 2**9), NUMBER, name=b"detector")), "parts"),
        (matlab_file(nested(1000)), "nested"),
        (matlab_file(matrix(6, (1, 1), element(77, b"\0" * 8), name=b"detector")), "type"),
        (matlab_file(matrix(17, (1, 1), NUMBER, name=b"detector")), "something else"),
        (matlab_file(matrix(5, (1, 1), NUMBER, name=b"detector")), "something else"),
        (matlab_file(element(15, zlib.compress(element(15, zlib.compress(NUMBER))))), "not one"),
        (matlab_file(element(15, zlib.compress(NUMBER + NUMBER))), "follows"),
        (matlab_file(element(15, b"nonsense")), "damaged"),
        (matlab_file(NUMBER[:-8]), "early"),
        (matlab_file(b"\0"), "early"),
        (matlab_file(), "no variable"),
    ],
)  # fmt: skip
def test_elements_that_the_reader_would_trust(tmp_path, data, message) -> None:
    (tmp_path / "detector.mat").write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        read_variable(tmp_path / "detector.mat", "detector", Budget.of("1 MB"))


def test_elements_that_are_read(tmp_path) -> None:
    path = tmp_path / "detector.mat"
    for data in (NUMBER, element(15, zlib.compress(NUMBER)), nested(3)):
        path.write_bytes(matlab_file(matrix(6, (0, 0), element(9, b""), name=b"other"), data))
        assert read_variable(path, "detector", Budget.of("1 MB")).shape == (1, 1)


@pytest.mark.parametrize("pack", [False, True])
def test_expansion_has_a_limit(tmp_path, pack) -> None:
    path = tmp_path / "detector.mat"
    zeros = matrix(6, (1, 2**21), element(9, b"\0" * 2**24), name=b"detector")
    path.write_bytes(matlab_file(element(15, zlib.compress(zeros)) if pack else zeros))
    with pytest.raises(ModelFileError, match=r"it would need 33\.\d+ MB, limit 1 MB: pass max_mem"):
        load_detector(path, max_memory="1 MB")


@pytest.mark.parametrize(
    ("build", "size", "limit", "match"),
    [
        (hostile_models.matlab_many_fields, 300, "1 GB", "a struct has 300 fields, more than 256"),
        (hostile_models.matlab_empty_struct, 300, "1 GB", "a struct has 300 fields, more than 256"),
        (hostile_models.matlab_many_fields, 10**5, "1 MB", "it would need 3.21 MB, limit 1 MB"),
        (hostile_models.matlab_bytes_as_doubles, 2**20, "5 MB", "it would need 10.4. MB, limit 5"),
        (hostile_models.matlab_many_variables, 10**4, "1 MB", "it has no variable 'detector'"),
    ],
    ids=["fields", "no entries", "many fields", "bytes", "variables"],
)
def test_files_that_claim_too_much(tmp_path, build, size, limit, match) -> None:
    path = tmp_path / "detector.mat"
    build(path, size)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=match):
        load_detector(path, max_memory=limit)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_trees_have_a_limit(write) -> None:
    detector = multi_class()
    for name in ("fids", "thrs", "child", "hs"):
        detector["clf"][name] = np.zeros((1, 2**14), np.uint8)
    with pytest.raises(ModelFileError, match=r"its trees would need 3\.28 MB, limit 3 MB"):
        load_matlab(write(detector, compress=True), max_memory="3 MB")


def test_time_has_a_limit(tmp_path, monkeypatch) -> None:
    hostile_models.matlab_many_variables(tmp_path / "detector.mat", 10)
    minutes = count(step=60)
    monkeypatch.setattr("badacost.detection.matlab_file.time.thread_time", lambda: next(minutes))
    with pytest.raises(ModelFileError, match=r"reading takes more than .*: split the file"):
        load_matlab(tmp_path / "detector.mat", max_memory="500 MB")


def test_a_clock_stops(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("badacost.detection.matlab_file.time.thread_time", lambda: now[0])
    clock = Clock(Budget.of("1 GB"))
    now[0] = 59.0
    clock.check()
    now[0] = 61.0
    with pytest.raises(BudgetError, match="more than 60 s"):
        clock.check()


# Any damage


def load_and_look(data: bytes) -> Detections | None:
    """What is found in a small image by the detector of a file, if the file is not refused."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "detector.mat"
        path.write_bytes(data)
        try:
            detector = load_detector(path)
        except ModelFileError:
            return None
    return look(detector)


FILES = [matlab_bytes(make(), compress) for make in LAYOUTS.values() for compress in (False, True)]


@settings(max_examples=100)
@given(st.sampled_from(FILES), st.data())
def test_damaged_bytes(content, data) -> None:
    damaged = bytearray(content)
    how = data.draw(st.sampled_from(["flip", "word", "cut"]))
    place = data.draw(st.integers(0, len(content) - 4))
    if how == "flip":
        for _ in range(data.draw(st.integers(0, 3))):
            damaged[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(
                st.integers(0, 7)
            )
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    elif how == "word":
        word = data.draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 14, 15, 2**20]))
        damaged[place // 4 * 4 : place // 4 * 4 + 4] = struct.pack("<I", word)
    else:
        del damaged[place:]
    load_and_look(bytes(damaged))


HOSTILE = st.one_of(
    st.sampled_from(
        ["", "text", [], {}, np.nan, np.inf, -1, 0, 1e300, 2**31, 2**32, np.zeros((0, 3)),
         np.zeros((3, 3)), np.full((7, N_TREES), 2**31), np.full((7, N_TREES), np.inf),
         np.array([1, "a"], object), {"a": 1}, 1j, True]
    ),
    st.integers(-3, 300),
    st.floats(),
    st.lists(st.integers(-3, 100), max_size=4),
)  # fmt: skip


def fields_of(part: Any, path: str = "") -> list[str]:
    found = []
    for name, value in part.items():
        found.append(path + name)
        if isinstance(value, dict):
            found += fields_of(value, f"{path}{name}.")
    return found


@settings(max_examples=100)
@given(st.sampled_from([multi_class, plain_acf]), st.data())
def test_fields_of_any_kind(make, data) -> None:
    detector = copy.deepcopy(make())
    path = data.draw(st.sampled_from(fields_of(detector)))
    *_, last = path.split(".")
    value = data.draw(HOSTILE)
    if last in ("fids", "thrs", "child", "hs") and data.draw(st.booleans()):
        value = detector["clf"][last].astype(np.float64)
        value.flat[data.draw(st.integers(0, value.size - 1))] = data.draw(
            st.sampled_from([-1, 0, 3, 5, 6, 7, 79, 80, 160, 2**31, 2**40, np.nan, 0.5])
        )
    load_and_look(matlab_bytes(change(detector, path, value)))


def test_numbers_that_signal(write) -> None:
    """Casts of such a NaN are warned of by numpy, of others not."""
    detector = multi_class()
    filters = detector["opts"]["filters"]
    filters.flat[0] = np.array([0x7FA00000], np.uint32).view(np.float32)[0]
    with pytest.raises(ModelFileError, match="filters"):
        load_matlab(write(detector))
