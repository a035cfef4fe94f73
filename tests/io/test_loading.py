"""Labels, forests and kinds of models: what goes in comes out, damage is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

import badacost
from badacost.classifiers.saving import (
    _FOREST_ARRAYS,
    _OPTIONAL_ARRAYS,
    forest_from_arrays,
    forest_to_arrays,
)
from badacost.io import model_file
from badacost.io.budget import Budget, BudgetError
from badacost.io.model_file import (
    ModelFile,
    ModelFileError,
    labels_from_json,
    labels_to_json,
    load_model,
    model_to_file,
    read_model,
    save_model,
    saved_kind,
    with_part,
    write_model,
)
from badacost.tree.forest import Forest, Tree

KIND = "BAdaCostClassifier"
VERSION_1 = {"cost_matrix", "stage_ends", "train_score", "validation_score"} | {
    f"forest_{name}"
    for name in (
        "feature", "threshold", "left", "missing_left", "value", "gain", "count", "weight",
        "offsets", "tree_weights", "table", "n_features",
    )
}  # fmt: skip
HEADER = {"classes": {"dtype": "int64", "values": [0, 1]}, "shrinkage": 0.1, "costs": None}


def make_tree(left, n_features=3, n_rows=2):
    """A tree of these left children, with arbitrary but valid tests and leaves."""
    left = np.array(left, np.int32)
    number = np.arange(len(left))
    return Tree(
        feature=(number % n_features).astype(np.int32),
        threshold=np.where(left == number, np.nan, number + 0.5),
        left=left,
        missing_left=np.ones(len(left), bool),
        value=(number % n_rows).astype(np.int32),
        gain=np.linspace(0, 1, len(left), dtype=np.float32),
        count=(100 - number).astype(np.int32),
        weight=np.full(len(left), 0.5, np.float32),
    )


@pytest.fixture(scope="module")
def forest():
    """A stump, a single leaf, and a tree with a node on each of three levels."""
    trees = [make_tree([1, 1, 2]), make_tree([0]), make_tree([1, 3, 2, 3, 5, 5, 6])]
    table = np.array([[0.25, -1.0, 2.0], [1.5, 3.0, -0.125]])
    return Forest.from_trees(trees, np.array([0.5, 1.0, -2.0]), table, n_features=3)


@pytest.fixture(scope="module")
def with_categories(forest):
    """The same forest, but its feature 0, which the roots test, is one of categories."""
    tested = ~forest.is_leaf & (forest.feature == 0)
    sets = np.random.default_rng(0).integers(2**32, size=(tested.sum(), 8), dtype=np.uint32)
    return replace(
        forest,
        category_set=np.where(tested, np.cumsum(tested) - 1, -1).astype(np.int32),
        sets=sets,
        categories=np.array([-1.0, 0.0, 3.0]),
        category_offsets=np.array([0, 3, 3, 3]),
    )


@pytest.fixture(scope="module")
def small_file(forest, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "small.badacost"
    write_model(path, KIND, HEADER, forest_to_arrays(forest))
    return path


def same_array(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def same_forest(a, b):
    pairs = [(np.asarray(getattr(x, f.name)) for x in (a, b)) for f in fields(Forest)]
    return all(same_array(*pair) for pair in pairs)


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_zip(path, members, method=zipfile.ZIP_DEFLATED):
    """An archive of any members, given as pairs so that names can repeat."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)


def refused(path, match, **options):
    """The error names the file, says what is wrong, and is the only one."""
    with pytest.raises(ModelFileError, match=match) as caught:
        read_model(path, **options)
    assert str(path) in str(caught.value)


# Round trips


@pytest.mark.parametrize("name", ["forest", "with_categories"])
@pytest.mark.parametrize("prefix", ["forest_", "second_"])
def test_forest_round_trip(request, tmp_path, prefix, name):
    path, forest = tmp_path / "model", request.getfixturevalue(name)
    write_model(path, KIND, {}, forest_to_arrays(forest, prefix))
    again = forest_from_arrays(read_model(path).arrays, prefix)
    assert same_forest(again, forest)
    assert type(again.n_features) is int
    X = np.random.default_rng(0).normal(0.0, 4.0, (50, 3))
    X[:, 0] = np.round(X[:, 0])
    assert_array_equal(again.accumulate(X), forest.accumulate(X))


def test_forest_without_trees(tmp_path):
    empty = {
        name: np.zeros(ndim * (1 if name == "offsets" else 0,), dtype)
        for name, (dtype, ndim) in _FOREST_ARRAYS.items()
        if name not in _OPTIONAL_ARRAYS
    }
    assert forest_from_arrays(empty, "").n_trees == 0
    no_categories = {
        "category_set": np.empty(0, np.int32),
        "sets": np.empty((0, 8), np.uint32),
        "categories": np.empty(0),
        "category_offsets": np.zeros(1, np.int64),
    }
    assert forest_from_arrays({**empty, **no_categories}, "").n_trees == 0


def test_same_contents_give_the_same_bytes(forest, tmp_path, small_file):
    arrays = forest_to_arrays(forest)
    again, turned = tmp_path / "again", tmp_path / "turned"
    write_model(again, KIND, HEADER, arrays)
    write_model(turned, KIND, dict(reversed(HEADER.items())), dict(reversed(arrays.items())))
    assert again.read_bytes() == small_file.read_bytes() == turned.read_bytes()


def test_paths_as_text_and_files_of_other_zip_programs(small_file, tmp_path):
    path = str(tmp_path / "stored")
    write_zip(path, members_of(small_file).items(), zipfile.ZIP_STORED)
    assert read_model(path).header == HEADER


# Labels

LABELS = (
    hnp.arrays(hnp.boolean_dtypes(), st.integers(1, 4))
    | hnp.arrays(hnp.integer_dtypes() | hnp.unsigned_integer_dtypes(), st.integers(1, 4))
    | hnp.arrays(
        hnp.floating_dtypes(sizes=(16, 32, 64)),
        st.integers(1, 4),
        elements={"allow_nan": False, "allow_infinity": False},
    )
    | st.lists(st.text(max_size=9), min_size=1, max_size=4).map(np.array)
    | hnp.arrays(
        np.dtype(object),
        st.integers(1, 4),
        elements=st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
    )
)


@given(LABELS)
def test_labels_round_trip(labels):
    text = json.dumps(labels_to_json(labels), allow_nan=False).encode()
    again = labels_from_json(json.loads(text))
    assert again.dtype == labels.dtype.newbyteorder("=")
    assert again.tolist() == labels.tolist()
    assert [type(x) for x in again.tolist()] == [type(x) for x in labels.tolist()]


def test_width_of_text_and_numpy_scalars_in_objects():
    wide = np.array(["a", "bb"], dtype="U30")
    assert labels_from_json(labels_to_json(wide)).dtype == wide.dtype
    scalars = np.array([np.str_("a"), np.int8(3), np.bool_(True), np.float32(0.5)], dtype=object)
    again = labels_from_json(labels_to_json(scalars)).tolist()
    assert again == ["a", 3, True, 0.5]
    assert [type(x) for x in again] == [str, int, bool, float]


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.array([]), "there are none"),
        (np.zeros((2, 2)), "which is not allowed"),
        (np.array([1.0, np.nan]), "nan, which is not allowed"),
        (np.array([1.0, np.inf]), "inf, which is not allowed"),
        (np.array(["a", np.nan], dtype=object), "nan, which is not allowed"),
        (np.array(["a", None], dtype=object), "None, which is not allowed"),
        (np.array([("a", "b"), ("c",)], dtype=object), "which is not allowed: use booleans"),
        (np.array([b"a"]), "dtype"),
        (np.array([1j]), "dtype"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dtype"),
        (np.array([1], dtype=np.longdouble), "dtype"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "dtype"),
        (np.array(["\ud83d\ude00"], dtype=object), "which is not allowed.*valid text"),
    ],
)
def test_labels_that_cannot_be_saved(labels, match):
    with pytest.raises(TypeError, match=match):
        labels_to_json(labels)


@pytest.mark.parametrize(
    "obj",
    [
        None, [], "labels", {}, {"dtype": "int64"}, {"dtype": "int64", "values": [1], "more": 1},
        {"dtype": "int64", "values": 3}, {"dtype": "int64", "values": {"a": 1}},
        {"dtype": "int64", "values": []}, {"dtype": "int64", "values": [1.0]},
        {"dtype": "int64", "values": [True]}, {"dtype": "int64", "values": [[1]]},
        {"dtype": "int64", "values": [2**63]}, {"dtype": "int8", "values": [128]},
        {"dtype": "uint8", "values": [-1]}, {"dtype": "uint64", "values": [10**4000]},
        {"dtype": "bool", "values": [1]}, {"dtype": "float64", "values": [1]},
        {"dtype": "float64", "values": [float("nan")]}, {"dtype": "float32", "values": [1e300]},
        {"dtype": "float32", "values": [0.1]}, {"dtype": "float64", "values": ["1.0"]},
        {"dtype": "U1", "values": ["ab"]}, {"dtype": "U2", "values": ["a\0"]},
        {"dtype": "U0", "values": [""]}, {"dtype": "U99999999", "values": ["a"]},
        {"dtype": "U999999999999", "values": ["a"]}, {"dtype": "U3", "values": ["\ud800"]},
        {"dtype": "object", "values": [None]}, {"dtype": "object", "values": [{}]},
        {"dtype": "O", "values": ["a"]}, {"dtype": "M8[s]", "values": [1]},
        {"dtype": "i4,i4", "values": [1]}, {"dtype": ["int64"], "values": [1]},
        {"dtype": {"int64": 1}, "values": [1]}, {"dtype": "V8", "values": [1]},
    ],
)  # fmt: skip
def test_labels_that_are_refused(obj):
    with pytest.raises(ValueError, match="labels") as caught:
        labels_from_json(obj, Budget.of("1 MB"))
    assert isinstance(caught.value, ModelFileError | BudgetError)


# Damaged files


def read_forest(path):
    """The forest in a file, or None where the file is refused; nothing else may happen."""
    try:
        model = read_model(path)
        assert model.header == HEADER
        return forest_from_arrays(model.arrays)
    except ModelFileError:
        return None


def test_truncation_at_any_length(small_file, tmp_path):
    data = small_file.read_bytes()
    path = tmp_path / "short"
    for length in np.linspace(0, len(data) - 1, 60).astype(int):
        path.write_bytes(data[:length])
        refused(path, "cannot read")


def test_single_changed_bytes_of_the_file(small_file, forest, tmp_path):
    data = small_file.read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "flipped"
    n_refused = 0
    # The directory, where zipfile is most trusting, gets half of the changes.
    directory = data.index(b"PK\x01\x02")
    starts = np.repeat([0, directory], 150)
    for position in rng.integers(starts, len(data)):
        changed = bytearray(data)
        changed[position] ^= rng.integers(1, 256)
        path.write_bytes(changed)
        again = read_forest(path)
        n_refused += again is None
        assert again is None or same_forest(again, forest)
    assert n_refused > 100


def assert_walks_stay_inside(forest):
    """Every walk from a root meets each node once, with indices in range, and ends in depth."""
    for tree, depth in zip(forest.trees(), forest.depths, strict=True):
        n_nodes, level, seen = len(tree.left), [0], 0
        for step in range(depth + 1):
            assert all(0 <= node < n_nodes for node in level)
            assert all(0 <= tree.feature[node] < forest.n_features for node in level)
            assert all(0 <= tree.value[node] < len(forest.table) for node in level)
            seen += len(level)
            inner = [node for node in level if not np.isnan(tree.threshold[node])]
            assert bool(inner) == (step < depth)
            level = [int(tree.left[node]) + right for node in inner for right in (0, 1)]
        assert seen == n_nodes


def test_changed_bytes_under_valid_checksums(small_file, tmp_path):
    members = members_of(small_file)
    rng = np.random.default_rng(1)
    names = [name for name in sorted(members) if name.startswith("arrays/")]
    path = tmp_path / "altered"
    n_valid = 0
    for _ in range(300):
        name = names[rng.integers(len(names))]
        data = bytearray(members[name])
        data[rng.integers(len(data))] ^= rng.integers(1, 256)
        write_zip(path, {**members, name: data}.items(), zipfile.ZIP_STORED)
        again = read_forest(path)
        if again is not None:
            n_valid += 1
            assert_walks_stay_inside(again)
    assert 30 < n_valid < 270


# Hostile forests


def changed(forest, name, index, value):
    arrays = {key: array.copy() for key, array in forest_to_arrays(forest).items()}
    arrays["forest_" + name][index] = value
    return arrays


@pytest.mark.parametrize(
    ("name", "index", "value", "match"),
    [
        ("left", 0, 0, "child before"),
        ("left", 0, -1, "child before"),
        ("left", 0, 2, "outside of its tree"),
        ("left", 0, 2**31 - 1, "outside of its tree"),
        ("left", 4, 6, "outside of its tree"),
        ("left", 1, 2, "own left child"),
        ("left", 5, 1, "child before"),
        ("left", 8, 3, "child before"),
        ("left", 5, 2, "exactly one parent"),
        ("left", 4, 2, "exactly one parent"),
        ("left", 4, 4, "exactly one parent"),
        ("threshold", 0, np.nan, "own left child"),
        ("threshold", 1, 0.5, "child before"),
        ("missing_left", 1, False, "own left child"),
        ("feature", 0, -1, "feature outside"),
        ("feature", 1, 3, "feature outside"),
        ("feature", 1, 2**31 - 1, "feature outside"),
        ("value", 1, 2, "row outside"),
        ("value", 0, -1, "row outside"),
        ("offsets", 0, 1, "cover"),
        ("offsets", 1, -3, "cover"),
        ("offsets", 1, 2**62, "cover"),
        ("offsets", 1, 4, "cover"),
        ("offsets", 3, 10, "cover"),
        ("offsets", 3, 12, "cover"),
        ("offsets", slice(1, 3), [2**63 - 1, -(2**63)], "cover"),
        ("table", (0, 0), np.nan, "not finite"),
        ("table", (1, 2), np.inf, "not finite"),
        ("tree_weights", 0, np.nan, "not finite"),
        ("gain", 0, np.inf, "not finite"),
        ("weight", 0, np.nan, "not finite"),
        ("n_features", (), 0, "feature outside"),
        ("n_features", (), -1, "cannot have -1"),
        ("n_features", (), 2**62, "cannot have"),
    ],
)
def test_hostile_forest(forest, name, index, value, match):
    with pytest.raises(ModelFileError, match=match):
        forest_from_arrays(changed(forest, name, index, value))


def test_offsets_whose_differences_overflow():
    """Each difference is positive in 64 bits, and they add up to the number of nodes."""
    leaves = {
        "prefix_" + field.name: getattr(make_tree(range(5)), field.name) for field in fields(Tree)
    }
    arrays = {
        **leaves,
        "prefix_offsets": np.array([0, 2**63 - 1, -(2**63), -2, 5]),
        "prefix_tree_weights": np.ones(4),
        "prefix_table": np.ones((2, 2)),
        "prefix_n_features": np.array(3),
    }
    with pytest.raises(ModelFileError, match="cover"):
        forest_from_arrays(arrays, "prefix_")


def test_shared_children_do_not_multiply_the_walks():
    """Each node shares a child with the next: a level-wise walk would visit 1.6**200 nodes."""
    tree = make_tree([*range(1, 201), 200, 201])
    with pytest.raises(ValueError, match="exactly one parent"):
        Forest.from_trees([tree], np.ones(1), np.ones((2, 2)), 3)


def test_chain_of_many_levels_is_read_quickly():
    """A chain costs a few passes over its nodes, not one for each level."""
    n_splits = 100_000
    left = np.arange(2 * n_splits + 1)
    left[0:-1:2] += 1
    forest = Forest.from_trees([make_tree(left)], np.ones(1), np.ones((2, 2)), 3)
    assert forest.depths.tolist() == [n_splits]


@pytest.mark.parametrize("name", _FOREST_ARRAYS)
def test_forest_arrays_missing_or_of_other_types(with_categories, name):
    arrays = forest_to_arrays(with_categories)
    key, optional = f"forest_{name}", name in _OPTIONAL_ARRAYS
    missing = "the arrays that describe categories" if optional else f"{key} is missing"
    with pytest.raises(ModelFileError, match=missing):
        forest_from_arrays({k: array for k, array in arrays.items() if k != key})
    dtype = np.int64 if arrays[key].dtype == np.float64 else np.float64
    with np.errstate(invalid="ignore"):
        other = arrays[key].astype(dtype)
    for wrong in (other, arrays[key][None]):
        with pytest.raises(ModelFileError, match=f"{key} is not of"):
            forest_from_arrays({**arrays, key: wrong})
    if arrays[key].ndim == 1:
        too_short = "do not cover its features|a number per node" if optional else "length"
        with pytest.raises(ModelFileError, match=too_short):
            forest_from_arrays({**arrays, key: arrays[key][:-1]})


def test_a_forest_without_categories_has_no_arrays_for_them(forest):
    """As in files of version 1."""
    names = {f"forest_{name}" for name in _FOREST_ARRAYS if name not in _OPTIONAL_ARRAYS}
    assert set(forest_to_arrays(forest)) == names


def test_node_without_parent():
    with pytest.raises(ValueError, match="exactly one parent"):
        Forest.from_trees([make_tree([1, 1, 2, 3])], np.ones(1), np.ones((2, 2)), 3)


# Loading


class Model:
    """Stands for an estimator; rebuilding it runs what a test asks for."""

    error: Exception | None = None

    def __init__(self, model, **parts):
        self.model, self.parts = model, parts

    def _to_model_file(self):
        contents = ModelFile(type(self).__name__, self.model.header, self.model.arrays)
        for name, part in self.parts.items():
            contents = with_part(contents, name, model_to_file(part))
        return contents

    @classmethod
    def _from_model_file(cls, model, **parts):
        if cls.error is not None:
            raise cls.error
        return cls(model, **parts)


class Owner(Model):
    """Has a part that is a model."""

    _parts = ("inner",)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(model_file, "_classes", {KIND: Model, "Model": Model, "Owner": Owner})
    monkeypatch.setattr(Model, "error", None)
    return Model


def test_load_finds_the_class(small_file, registered):
    loaded = load_model(small_file)
    assert isinstance(loaded, registered)
    assert loaded.model.header == HEADER


def test_classes_are_imported_where_they_are_needed(tmp_path, registered, monkeypatch):
    contents = ModelFile("Model", {"a": 1}, {"x": np.arange(3.0)})
    save_model(Owner(contents, inner=Owner(contents, inner=Model(contents))), tmp_path / "model")
    classes, asked = dict(model_file._classes), []

    def find(kind):
        asked.append(kind)
        model_file._classes[kind] = classes[kind]

    monkeypatch.setattr(model_file, "_classes", {})
    inner = load_model(tmp_path / "model", find)
    assert list(dict.fromkeys(asked)) == ["Owner", "Model"]
    for kind in ("Owner", "Owner", "Model"):
        assert type(inner) is classes[kind]
        assert inner.model.header["a"] == 1
        assert_array_equal(inner.model.arrays["x"], contents.arrays["x"])
        inner = inner.parts.get("inner")


@pytest.mark.parametrize(
    "part",
    [None, [], {}, {"kind": "Model"}, {"kind": 1, "header": {}}, {"kind": "Model", "header": []},
     {"kind": "Owner", "header": {}}, {"kind": "Unknown", "header": {}}],
)  # fmt: skip
def test_parts_that_are_none(tmp_path, registered, part):
    write_model(tmp_path / "model", "Owner", {"inner": part}, {})
    with pytest.raises(ModelFileError, match="cannot read the model file"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("classes"), TypeError("no"), ValueError("no"), IndexError("no"),
        AttributeError("no"), OverflowError("no"), RecursionError("no"),
        ModelFileError("the array x is missing"),
    ],
)  # fmt: skip
def test_load_of_contents_that_make_no_model(small_file, registered, monkeypatch, error):
    monkeypatch.setattr(registered, "error", error)
    with pytest.raises(ModelFileError, match=r"cannot read .*small.badacost") as info:
        load_model(small_file)
    assert info.value.__cause__ is error
    assert str(error) in str(info.value)


@pytest.mark.parametrize("kind", ["os:system", "costs", "load", "ModelFileError", "Forest"])
def test_load_of_an_unknown_kind(tmp_path, kind):
    write_model(tmp_path / "model", kind, {}, {})
    with pytest.raises(ModelFileError, match=f"unknown kind '{kind}': upgrade badacost"):
        badacost.load(tmp_path / "model")


def test_load_takes_a_limit(small_file):
    with pytest.raises(ModelFileError, match="limit 100 bytes: pass max_memory="):
        badacost.load(small_file, max_memory=100)


def test_subclasses_and_strangers_are_for_joblib(registered):
    class Heir(Model):
        pass

    for stranger in (Heir(None), 3):
        with pytest.raises(TypeError, match=r"cannot hold a (Heir|int): use joblib\.dump"):
            model_to_file(stranger)


def test_kind_of_a_file(small_file, tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "_read_array", None)  # arrays stay packed
    assert saved_kind(small_file) == KIND
    assert saved_kind(tmp_path / "none") is None
    (tmp_path / "other").write_text("no model")
    assert saved_kind(tmp_path / "other") is None


NEW_PROCESS = """
import sys, badacost
assert not {name for name in sys.modules if name.startswith("badacost.")}
for path in sys.argv[1:]:
    print(type(badacost.load(path)).__name__)
"""


def test_a_new_process_finds_the_class_of_every_model(tmp_path):
    """One that has imported the package only."""
    from lightgbm import LGBMClassifier

    from badacost.detection.models import synthetic_cars
    from badacost.tabular import TableClassifier

    X, y = np.arange(8.0)[:, None], np.repeat([0, 1], 4)
    makers = [
        getattr(badacost, name) for name in (*badacost.__all__, *badacost.family.__all__)
        if "Classifier" in name and not name.startswith(("MinimumCost", "ImportedForest"))
    ]  # fmt: skip
    models = [
        make(**({"n_estimators": 2} if hasattr(make(), "n_estimators") else {})).fit(X, y)
        for make in makers
    ]
    few = badacost.SAMMEClassifier(n_estimators=2)
    grown = LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1)
    models.append(badacost.ImportedForestClassifier(grown).fit(X, y))
    models.append(badacost.MinimumCostClassifier(few).fit(X, y))
    models.append(TableClassifier(few).fit(pd.DataFrame({"a": X[:, 0]}), y))
    models.append(synthetic_cars())
    kinds = [type(model).__name__ for model in models]
    assert model_file._classes.keys() == set(kinds)
    for kind, model in zip(kinds, models, strict=True):
        model.save(tmp_path / kind)
    for order in (kinds, kinds[::-1]):
        found = subprocess.run(
            [sys.executable, "-c", NEW_PROCESS, *(tmp_path / kind for kind in order)],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert found.stdout.split() == order, found.stderr


def test_a_file_of_version_1_is_read(tmp_path):
    """It differs in the number of the version, and in arrays that it lacks."""
    X, y = np.arange(8.0)[:, None], np.repeat([0, 1, 0, 1], 2)
    model = badacost.BAdaCostClassifier(n_estimators=5).fit(X, y)
    model.save(tmp_path / "new")
    members = members_of(tmp_path / "new")
    document = json.loads(members["model.json"])
    assert document["version"] == 2
    for name in set(document["arrays"]) - VERSION_1:
        del document["arrays"][name], members[f"arrays/{name}.bin"]
    assert set(document["arrays"]) == VERSION_1
    members["model.json"] = json.dumps({**document, "version": 1}).encode()
    write_zip(tmp_path / "old", members.items())
    again = badacost.load(tmp_path / "old")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
