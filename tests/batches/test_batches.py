"""Batches give the model of the same data in memory, to the last byte; mistakes are named."""

from __future__ import annotations

import errno
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from badacost import (
    BAdaCostClassifier,
    CostBoostClassifier,
    CostSensitiveTreeClassifier,
    ImportedForestClassifier,
    LpCSBClassifier,
    MinimumCostClassifier,
    PIBoostClassifier,
    SAMMEClassifier,
    WangMultiBoostClassifier,
)
from badacost.batches import Batches, ParquetBatches
from badacost.classifiers import training_data
from badacost.tree import binning
from campaigns.hostile_tables import parquet_dictionary

N = 400
COSTS = [[0, 1, 5], [2, 0, 1], [10, 4, 0]]
MODELS = {
    "badacost": BAdaCostClassifier(COSTS, n_estimators=3, random_state=1),
    "uniform": BAdaCostClassifier(COSTS, n_estimators=3, binning="uniform", random_state=1),
    "subsample": BAdaCostClassifier(COSTS, n_estimators=3, subsample=0.6, random_state=1),
    "stopping": BAdaCostClassifier(COSTS, n_estimators=3, early_stopping=True, random_state=1),
    "costboost": CostBoostClassifier(COSTS, n_estimators=3, random_state=1),
    "one fold": CostBoostClassifier(COSTS, n_estimators=3, n_folds=1, random_state=1),
    "samme": SAMMEClassifier(n_estimators=3, random_state=1),
    "piboost": PIBoostClassifier(n_estimators=2, random_state=1),
    "lp": LpCSBClassifier(COSTS, n_estimators=2, random_state=1),
    "wang": WangMultiBoostClassifier(COSTS, n_estimators=2, n_pool=5, random_state=1),
    "tree": CostSensitiveTreeClassifier(COSTS, max_depth=3, random_state=1),
}


def data(n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.5)
    X[rng.uniform(size=n) < 0.05, 2] = np.nan
    return X, y, rng.integers(0, 4, n).astype(float)


def saved(model, tmp_path: Path) -> bytes:
    model.save(tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def cut(ends, *arrays) -> Batches:
    return Batches(lambda: (tuple(part[a:b] for part in arrays) for a, b in pairwise(ends)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_classifier(name, weighted, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(binning, "MAX_ROWS", 150)
    X, y, weight = data()
    arrays = (X, y, weight) if weighted else (X, y)
    model = MODELS[name]
    expected = saved(model.fit(*arrays), tmp_path)
    assert saved(model.fit(cut([0, 0, 3, 150, 151, N], *arrays)), tmp_path) == expected
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert saved(model.fit(mapped, *arrays[1:]), tmp_path) == expected


def test_validation_samples_that_are_mapped_from_a_file(tmp_path) -> None:
    X, y, weight = data()
    np.save(tmp_path / "X.npy", X[::3])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, rest = MODELS["badacost"], {"y_val": y[::3], "sample_weight_val": weight[::3]}
    expected = saved(model.fit(X, y, X_val=X[::3], **rest), tmp_path)
    assert saved(model.fit(X, y, X_val=mapped, **rest), tmp_path) == expected


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(0, N), max_size=6),
    double=st.sets(st.integers(0, 6)),
    as_frame=st.booleans(),
)
def test_any_division_into_batches(cuts, double, as_frame) -> None:
    """Whatever their type, number of rows or classes."""
    X, y, weight = data()
    order = np.argsort(y, kind="stable")  # classes are missing in batches
    X, y, weight = X[order], y[order], weight[order]
    ends = [0, *sorted(cuts), N]

    def make():
        for number, (a, b) in enumerate(pairwise(ends)):
            block = X[a:b].astype(np.float64 if number in double else np.float32)
            yield (pd.DataFrame(block) if as_frame else block), y[a:b], weight[a:b]

    model = MODELS["badacost"]
    expected = model.fit(X, y, weight).forest_
    found = model.fit(Batches(make)).forest_
    for name in ("feature", "threshold", "value", "gain", "tree_weights"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


@pytest.mark.parametrize(
    ("columns", "early_stopping", "expected"),
    [
        (["x", "n"], False, 2),
        (["x", "town"], False, 3),
        (["x", "n"], True, 4),
        (["x", "town"], True, 5),
    ],
)
def test_number_of_passes(columns, early_stopping, expected) -> None:
    frame, y = categories()
    n_passes = 0

    def make():
        nonlocal n_passes
        n_passes += 1
        yield frame[columns], y

    BAdaCostClassifier(n_estimators=2, early_stopping=early_stopping).fit(Batches(make))
    assert n_passes == expected


@pytest.mark.parametrize("name", ["stopping", "one fold"])
def test_constant_features_do_not_change_what_is_held_out(name) -> None:
    X, y, _ = data()
    X[:, 2] = 1.0
    batches = Batches(lambda: ((X[a : a + 90], y[a : a + 90]) for a in range(0, N, 90)))
    expected = clone(MODELS[name]).fit(X[:, [0, 1, 3]], y).cost_scores(X[:, [0, 1, 3]])
    for arguments in ((X, y), (batches,)):
        scores = clone(MODELS[name]).fit(*arguments).cost_scores(X)
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_on_disk(weighted, tmp_path) -> None:
    X, y, weight = data()
    arrays = (X, y, weight) if weighted else (X, y)
    folder = tmp_path / "bins"
    folder.mkdir()
    for name in ("badacost", "one fold"):
        model = MODELS[name]
        expected = saved(model.fit(*arrays), tmp_path)
        batches = Batches([arrays], bins_folder=folder)
        assert saved(model.fit(batches), tmp_path) == expected
        assert not list(folder.iterdir())


def test_a_full_disk(tmp_path, monkeypatch) -> None:
    def refuse(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    X, y, _ = data()
    with pytest.raises(OSError, match=r"No space left .* bins_folder .* free space"):
        BAdaCostClassifier(n_estimators=1).fit(Batches([(X, y)], bins_folder=tmp_path))


def test_no_file_of_bins_stays_after_an_error(tmp_path) -> None:
    X, y, _ = data()

    def stop(done) -> None:
        raise RuntimeError("enough")

    model = BAdaCostClassifier(COSTS, callbacks=[stop])
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(Batches([(X, y)], bins_folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_sparse_batches_are_like_dense_ones(tmp_path) -> None:
    X, y, _ = data()
    X[np.abs(X) < 0.5] = 0.0
    model = MODELS["badacost"]
    expected = saved(model.fit(X, y), tmp_path)
    batches = [(sparse.csr_array(X[:100]), y[:100]), (sparse.csc_matrix(X[100:]), y[100:])]
    assert saved(model.fit(Batches(batches)), tmp_path) == expected


def test_validation_in_batches(tmp_path) -> None:
    X, y, weight = data()
    for name in ("badacost", "one fold", "stopping"):
        model = MODELS[name]
        model.fit(X[:300], y[:300], weight[:300], X[300:], y[300:], weight[300:])
        expected = saved(model, tmp_path)
        train = cut([0, 100, 300], X, y, weight)
        model.fit(train, X_val=cut([300, 310, N], X, y, weight))
        assert saved(model, tmp_path) == expected
    with pytest.raises(ValueError, match="y_val has labels that are not among the classes"):
        model.fit(train, X_val=Batches([(X, y + 5)]))
    with pytest.raises(ValueError, match="y_val comes with the batches"):
        model.fit(train, X_val=train, y_val=y)


def test_values_missing_in_validation_batches_only() -> None:
    """All codes of a byte are in use: bins of the validation samples are wider."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] > 0).astype(int)
    holes = X.copy()
    holes[1500:, 1] = np.nan
    model = BAdaCostClassifier(n_estimators=3, max_depth=2)
    expected = model.fit(X, y, X_val=holes, y_val=y).validation_score_
    batches = cut([0, 1000, 2000], holes, y)
    np.testing.assert_array_equal(model.fit(X, y, X_val=batches).validation_score_, expected)


def test_warm_start_goes_on_with_batches(tmp_path) -> None:
    X, y, _ = data()
    batches = cut([0, 120, N], X, y)
    whole = saved(BAdaCostClassifier(COSTS, n_estimators=6, random_state=1).fit(X, y), tmp_path)
    model = BAdaCostClassifier(COSTS, n_estimators=3, random_state=1, warm_start=True).fit(batches)
    model.set_params(n_estimators=6).fit(batches)
    assert saved(model.set_params(warm_start=False), tmp_path) == whole
    with pytest.raises(ValueError, match="the classes must stay"):
        model.set_params(n_estimators=8, warm_start=True).fit(Batches([(X, y % 2)]))


@pytest.mark.parametrize(("name", "expected"), [("stopping", 6), ("costboost", 3), ("one fold", 6)])
def test_warm_start_reads_batches_once_for_earlier_trees(
    name, expected, tmp_path, monkeypatch
) -> None:
    X, y, _ = data()
    n_passes = 0

    def make():
        nonlocal n_passes
        n_passes += 1
        yield X[:100], y[:100]
        yield X[100:], y[100:]

    model = clone(MODELS[name]).set_params(n_estimators=6, warm_start=True)
    in_memory = saved(clone(model).fit(X, y).set_params(n_estimators=7).fit(X, y), tmp_path)
    counts = []
    for max_leaves in (2**28, 3 * N):  # with little memory there are more passes
        monkeypatch.setattr(training_data, "_MAX_LEAVES", max_leaves)
        again = clone(model).fit(Batches(make)).set_params(n_estimators=7)
        n_passes = 0
        again.fit(Batches(make))
        assert saved(again, tmp_path) == in_memory
        counts.append(n_passes)
    assert counts[0] == expected < counts[1]


def test_own_costs_of_samples(tmp_path) -> None:
    X, y, _ = data()
    prices = np.random.default_rng(1).uniform(1, 5, (N, 3))
    model = BAdaCostClassifier(n_estimators=3, random_state=1)
    expected = saved(model.fit(X, y, sample_cost=prices), tmp_path)
    batches = cut([0, 100, N], X, y)
    assert saved(model.fit(batches, sample_cost=prices), tmp_path) == expected


def categories(n: int = N) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    towns = np.array(["Aix", "Bonn", "Cork", "Delft"])[rng.integers(4, size=n)]
    frame = pd.DataFrame({"x": rng.normal(size=n), "town": towns, "n": rng.integers(9, size=n)})
    frame.loc[::17, "town"] = None
    y = (frame["x"] + (frame["town"] == "Bonn") > 0.5).astype(int).to_numpy()
    return frame.astype({"town": "category"}), y


def test_categories_that_batches_see_only_some_of(tmp_path) -> None:
    frame, y = categories()
    model = BAdaCostClassifier([[0, 1], [3, 0]], n_estimators=4, random_state=1)
    expected = saved(model.fit(frame, y), tmp_path)
    order = np.argsort(frame["town"].astype(str), kind="stable")
    model.fit(frame.iloc[order], y[order])
    assert saved(model, tmp_path) == expected  # the order of rows does not matter

    def make():
        for a, b in pairwise([0, 50, 51, 200, N]):
            part = frame.iloc[a:b].copy()
            part["town"] = part["town"].cat.remove_unused_categories()
            yield part, y[a:b]

    assert saved(model.fit(Batches(make)), tmp_path) == expected
    np.testing.assert_array_equal(model.categories_["town"], ["Aix", "Bonn", "Cork", "Delft"])
    model = BAdaCostClassifier(
        [[0, 1], [3, 0]], n_estimators=4, random_state=1, categorical_features=["town", "n"]
    )
    expected = saved(model.fit(frame, y), tmp_path)
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    batches = ParquetBatches(tmp_path / "t.parquet", "y", rows_at_once=90)
    assert saved(model.fit(batches), tmp_path) == expected


@pytest.mark.parametrize(
    "labels", [["no", "yes", "a long name"], [True, False, True], [1.0, 7.0, 3.0], [-5, 300, 70000]]
)
def test_labels_of_any_kind(labels, tmp_path) -> None:
    X, y, _ = data()
    named = np.array(labels)[y]
    for column in (named, named.astype(object)) if named.dtype.kind == "U" else (named,):
        model = BAdaCostClassifier(n_estimators=2, random_state=1)
        expected = saved(model.fit(X, column), tmp_path)
        classes = model.classes_
        order = np.argsort(y, kind="stable")
        parts = [(X[rows], column[rows]) for rows in np.array_split(order, 5)]
        assert saved(model.fit(Batches(parts)), tmp_path) == expected
        assert model.classes_.dtype == classes.dtype


def test_ordered_classes_keep_their_order() -> None:
    X, y, _ = data()
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    grades = pd.Series(np.array(["low", "mid", "high"])[y]).astype(kind)
    batches = Batches([(X[:200], grades[:200]), (X[200:], grades[200:])])
    model = BAdaCostClassifier(COSTS, n_estimators=2).fit(batches)
    assert model.classes_.tolist() == ["low", "mid", "high"]


def test_parquet_files(tmp_path) -> None:
    X, y, weight = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = MODELS["badacost"]
    expected = saved(model.fit(frame, y, weight), tmp_path)
    table = frame.assign(grade=y, w=weight)
    folder = tmp_path / "files"
    folder.mkdir()
    table[:300].to_parquet(folder / "a.parquet")
    table[300:].to_parquet(folder / "b.parquet")
    (folder / "notes.txt").write_text("not a table")
    both = [folder / "a.parquet", str(folder / "b.parquet")]
    for paths in (folder, str(folder / "*.parquet"), both):
        for rows in (7, 1000):
            batches = ParquetBatches(paths, "grade", weight="w", rows_at_once=rows)
            assert saved(model.fit(batches), tmp_path) == expected
    assert batches.columns == ["a", "b", "c", "d"]
    chosen = ParquetBatches(folder, "grade", columns=["c", "a"])
    assert model.fit(chosen).feature_names_in_.tolist() == ["c", "a"]
    assert saved(model, tmp_path) == saved(model.fit(frame[["c", "a"]], y), tmp_path)


def test_types_of_parquet_columns(tmp_path) -> None:
    """Integers, booleans and decimals with nulls are numbers with missing values."""
    X, y, _ = data()
    rng = np.random.default_rng(5)
    holes = rng.uniform(size=N) < 0.1
    numbers = rng.integers(5, size=N)
    columns = {
        "whole": pa.array(numbers, mask=holes),
        "small": pa.array(numbers.astype(np.uint8)),
        "truth": pa.array(numbers > 2, mask=holes),
        "sure": pa.array(numbers > 1),
        "decimal": pa.array(numbers.astype(float), mask=holes).cast(pa.decimal128(5, 1)),
        "half": pa.array(X[:, 0].astype(np.float16)),
        "nothing": pa.nulls(N),
        "y": pa.array(y),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    dense = np.column_stack(
        [
            np.where(holes, np.nan, numbers), numbers, np.where(holes, np.nan, numbers > 2),
            numbers > 1, np.where(holes, np.nan, numbers), X[:, 0].astype(np.float16),
            np.full(N, np.nan),
        ]
    )  # fmt: skip
    frame = pd.DataFrame(dense, columns=[*columns][:-1])
    model = MODELS["badacost"]
    expected = saved(model.fit(frame, y), tmp_path)
    assert saved(model.fit(ParquetBatches(tmp_path / "t.parquet", "y")), tmp_path) == expected


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1, 2], [3]]), "Column 'x' of .* is of type list"),
        (pa.array([{"a": 1}, {"a": 2}]), "is of type struct"),
        (pa.array([b"a", b"b"]), "is of type binary"),
        (pa.array([1, 2], pa.timestamp("s")), "neither a number nor a category: convert it"),
        (pa.array(["a", "b"]), "X contains text, such as 'a': .* in categorical_features"),
        (pa.array([1.0, np.inf]), "X contains infinity"),
    ],
    ids=["list", "struct", "binary", "time", "text", "infinity"],
)
def test_hostile_columns(column, message, tmp_path) -> None:
    pq.write_table(pa.table({"x": column, "y": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=message):
        BAdaCostClassifier().fit(ParquetBatches(tmp_path / "t.parquet", "y"))


@pytest.mark.parametrize("levels", [[10, 2, 30, 4], [0.5, 3.0, 0.25, 4.0], [False, True]])
@pytest.mark.parametrize("missing", [False, True])
def test_categories_that_are_numbers(levels, missing, tmp_path) -> None:
    X, y, _ = data()
    kinds = pd.Categorical(np.random.default_rng(0).choice(levels, N))
    kinds[:20] = np.nan if missing else kinds[0]
    frame = pd.DataFrame({"x": X[:, 0], "kind": kinds})
    frame.assign(y=y).to_parquet(tmp_path / "1.parquet")
    model = BAdaCostClassifier(COSTS, n_estimators=3, random_state=1)
    expected = saved(model.fit(frame, y), tmp_path)
    batches = ParquetBatches(tmp_path / "1.parquet", "y", rows_at_once=64)
    assert saved(model.fit(batches), tmp_path) == expected
    assert model.categories_["kind"].tolist() == sorted(levels)


def test_the_index_of_a_frame_is_no_feature(tmp_path) -> None:
    index = pd.MultiIndex.from_arrays([[*"abcd"] * 5, X_[:, 1]], names=["id", None])
    pd.DataFrame({"a": X_[:, 0], "y": Y_}, index).to_parquet(tmp_path / "1.parquet")
    assert ParquetBatches(tmp_path, "y").columns == ["a"]
    assert ParquetBatches(tmp_path, "y", columns=["id", "a"]).columns == ["id", "a"]


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b"{}", b'{"index_columns": 3}', b"\xff"])
def test_hostile_words_about_the_index(told, tmp_path) -> None:
    table = pa.table({"a": X_[:, 0], "y": Y_}).replace_schema_metadata({b"pandas": told})
    pq.write_table(table, tmp_path / "1.parquet")
    BAdaCostClassifier(n_estimators=1).fit(ParquetBatches(tmp_path, "y"))


@pytest.mark.parametrize("word", [b"?", b"A", b"/"])
def test_hostile_schemas(word, tmp_path) -> None:
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"a": X_[:, 0], "y": Y_}), path)
    stored = pq.read_metadata(path).metadata[b"ARROW:schema"]
    path.write_bytes(path.read_bytes().replace(stored, word * len(stored)))
    with pytest.raises(ValueError, match="is damaged, or not of Parquet"):
        BAdaCostClassifier(n_estimators=1).fit(ParquetBatches(tmp_path, "y"))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"columns": "ab"}, TypeError, "columns must be a list of names"),
        ({"columns": [1]}, TypeError, "columns must be a list of names"),
        ({"columns": 5}, TypeError, "columns must be a list of names"),
        ({"columns": []}, ValueError, "has no columns beside .* columns names none"),
        ({"columns": ["a", "a"]}, ValueError, "columns, .*'a'.*'a'"),
        ({"paths": 5}, TypeError, "paths must be a file, a folder"),
        ({"paths": b"1.parquet"}, TypeError, "paths must be a file, a folder"),
        ({"paths": [b"1.parquet"]}, TypeError, "paths must be a file, a folder"),
    ],
)
def test_mistakes_in_paths_and_columns(given, error, message, tmp_path) -> None:
    pq.write_table(pa.table({"a": [1.0], "b": [2.0], "y": [1]}), tmp_path / "1.parquet")
    with pytest.raises(error, match=message):
        ParquetBatches(**{"paths": tmp_path, "target": "y", **given})


def test_damaged_and_missing_files(tmp_path) -> None:
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(len(whole) - 400) + whole[-200:])
    with pytest.raises(ValueError, match="is damaged, or not of Parquet"):
        BAdaCostClassifier().fit(ParquetBatches(path, "y"))
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is damaged, or not of Parquet"):
        ParquetBatches(path, "y")
    with pytest.raises(FileNotFoundError):
        ParquetBatches(tmp_path / "other.parquet", "y")
    with pytest.raises(FileNotFoundError, match="There are no Parquet files"):
        ParquetBatches(tmp_path / "*.pq", "y")
    with pytest.raises(ValueError, match="names no file"):
        ParquetBatches([], "y")


def test_batches_of_parquet_within_a_budget(tmp_path) -> None:
    """The limit is that of a batch: texts that a file has once, but 60 rows refer to."""
    path = parquet_dictionary(tmp_path / "t.parquet", 60, 10_000)
    for rows_at_once, limit in ((60, "300 kB"), (10, "300 kB"), (60, "40 kB")):
        source = ParquetBatches(path, "b", rows_at_once=rows_at_once, max_memory=limit)
        if (rows_at_once, limit) == (10, "300 kB"):
            texts = [text for batch in source.batches() for text in batch.X["a"]]
            assert texts == ["x" * 10_000] * 31 + ["b"] * 29
            continue
        with pytest.raises(ValueError, match=rf"cannot read the table .* limit {limit}"):
            list(source.batches())


def test_texts_that_are_not_read_do_not_make_numbers_larger(tmp_path) -> None:
    n_rows = 20_000
    frame = pd.DataFrame({"a": np.arange(n_rows) / 7, "y": np.arange(n_rows) % 2})
    frame["note"] = [f"row {number}" for number in range(n_rows)]
    frame.to_parquet(tmp_path / "1.parquet", compression=None)
    given = {"rows_at_once": 1000, "max_memory": "900 kB"}
    numbers = ParquetBatches(tmp_path, "y", columns=["a"], **given)
    assert sum(len(batch.X) for batch in numbers.batches()) == n_rows
    with pytest.raises(ValueError, match="limit 900 kB"):
        list(ParquetBatches(tmp_path, "y", **given).batches())


def test_columns_that_are_not_there(tmp_path) -> None:
    pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"b": [1.0, 2.0], "y": [0, 1]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"has no column 'grade'.* 'a', 'y'"):
        ParquetBatches(tmp_path / "1.parquet", "grade")
    with pytest.raises(ValueError, match=r"2.parquet has no column 'a'"):
        BAdaCostClassifier().fit(ParquetBatches(tmp_path, "y"))
    with pytest.raises(ValueError, match="must be different columns"):
        ParquetBatches(tmp_path / "1.parquet", "y", columns=["a", "y"])
    with pytest.raises(ValueError, match="has no columns beside 'y'"):
        ParquetBatches(tmp_path / "1.parquet", "y", weight="a")
    twice = pa.table([[1.0, 2.0], [0, 1], [3.0, 4.0]], names=["a", "y", "a"])
    pq.write_table(twice, tmp_path / "3.parquet")
    for columns in (None, ["a"]):
        with pytest.raises(ValueError, match="has 2 columns 'a'"):
            ParquetBatches(tmp_path / "3.parquet", "y", columns=columns)
    with pytest.raises(NotADirectoryError, match="bins_folder must be a folder that exists"):
        ParquetBatches(tmp_path / "1.parquet", "y", bins_folder=tmp_path / "no")


def test_batches_that_change() -> None:
    X, y, _ = data()
    rng = np.random.default_rng(0)

    def shuffled():
        order = rng.permutation(N)
        yield X[order], y[order]

    with pytest.raises(ValueError, match="is not what it was in the first pass"):
        BAdaCostClassifier().fit(Batches(shuffled))
    lengths = iter([4, 3, 3])
    shorter = Batches(lambda: ((X, y) for _ in range(next(lengths))))
    with pytest.raises(ValueError, match="Batch 4 is not what it was"):
        BAdaCostClassifier().fit(shorter)


@pytest.mark.parametrize("what", ["values", "weights", "order within classes"])
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.coo_array, "categories"])
def test_other_batches_with_the_same_classes(what, kind) -> None:
    X, y, weight = data(2000)
    X, rng, by_class = np.nan_to_num(X), np.random.default_rng(0), np.argsort(y, kind="stable")

    def make():
        order, values, weights = by_class, X, weight
        if what == "values":
            values = rng.permutation(X)
        elif what == "weights":
            weights = rng.permutation(weight)
        else:
            order = np.lexsort((rng.uniform(size=len(y)), y))
        if kind == "categories":
            frame = pd.DataFrame({"town": pd.Categorical(np.round(2 * values[:, 0]).astype(str))})
            yield frame.iloc[order], y[order], weights[order]
        else:
            yield kind(values[order]), y[order], weights[order]

    with pytest.raises(ValueError, match="Batch 1 is not what it was in the first pass"):
        BAdaCostClassifier(n_estimators=1).fit(Batches(make))


def test_an_iterator_that_is_exhausted_after_a_pass() -> None:
    once = iter([(X_, Y_)])
    with pytest.raises(ValueError, match=r"in the first pass .* iterator"):
        BAdaCostClassifier(n_estimators=1).fit(Batches(lambda: once))


X_, Y_, W_ = data(20)


@pytest.mark.parametrize(
    ("batches", "error", "message"),
    [
        ([], ValueError, "X has no rows"),
        ([(X_[:0], Y_[:0])], ValueError, "X has no rows"),
        ([(X_, None)], ValueError, "A batch requires y to be passed"),
        (
            [(np.empty((0, 0)), []), (X_, Y_)],
            ValueError,
            r"table of samples and features.* X\[:0\]",
        ),
        ([(X_, Y_ * 0)], ValueError, "y must have at least 2 classes"),
        ([(X_, Y_), (X_[:, :2], Y_)], ValueError, "X has 2 features"),
        ([(X_, Y_[:3])], ValueError, "inconsistent numbers of samples"),
        ([(X_, Y_, W_[:3])], ValueError, r"sample_weight must have shape \(20,\)"),
        ([(X_, Y_, -1 - W_)], ValueError, "sample_weight must not be negative"),
        ([(X_, Y_, W_ * np.nan)], ValueError, "sample_weight contains NaN"),
        ([(X_, Y_, W_), (X_, Y_)], ValueError, "Some batches have weights"),
        (
            [(X_, Y_), (X_, Y_.astype(str))],
            ValueError,
            "numbers in some batches and text in others .*0",
        ),
        ([(X_, Y_ + 0.5)], ValueError, "Unknown label type"),
        ([(X_, Y_ * np.nan)], ValueError, "y contains NaN"),
        ([(np.full((20, 4), np.inf), Y_)], ValueError, "X contains infinity"),
        ([(X_[:, 0], Y_)], ValueError, "must be a table of samples and features"),
        ([X_], TypeError, r"A batch must be a tuple \(X, y\)"),
        ([(X_,)], TypeError, r"A batch must be a tuple \(X, y\)"),
        ([(X_, Y_, W_, W_)], TypeError, r"A batch must be a tuple \(X, y\)"),
        (lambda: None, TypeError, "The function of Batches must yield batches; got None"),
    ],
)
def test_mistakes_in_batches(batches, error, message) -> None:
    model = BAdaCostClassifier(n_estimators=2)
    with pytest.raises(error, match=message):
        model.fit(Batches(batches))
    assert not model.__sklearn_is_fitted__()


def test_mistakes_with_batches() -> None:
    batches = Batches([(X_, Y_)])
    with pytest.raises(ValueError, match="y comes with the batches"):
        BAdaCostClassifier().fit(batches, Y_)
    with pytest.raises(ValueError, match="sample_weight comes with the batches"):
        BAdaCostClassifier().fit(batches, sample_weight=W_)
    with pytest.raises(ValueError, match='binning="exact" is not for batches'):
        BAdaCostClassifier(binning="exact").fit(batches)
    with pytest.raises(TypeError, match=r"Batches .*: give arrays"):
        BAdaCostClassifier(estimator=CostSensitiveTreeClassifier()).fit(batches)
    with pytest.raises(TypeError, match=re.escape("a function that returns batches, or a list")):
        Batches((X_, Y_) for _ in range(3))
    with pytest.raises(TypeError, match=r"read once only, give badacost.batches.Batches\(make\)"):
        BAdaCostClassifier().fit(iter([(X_, Y_)]))
    for path in ("x.parquet", Path("x.parquet")):
        with pytest.raises(TypeError, match=r"give badacost.batches.ParquetBatches\(path, target"):
            BAdaCostClassifier().fit(path)
    model = BAdaCostClassifier(n_estimators=2).fit(X_, Y_)
    with pytest.raises(TypeError, match="to predict, give arrays, data frames or sparse matrices"):
        model.predict(batches)
    with pytest.raises(TypeError, match="give score the X and y of one batch"):
        model.score(batches)
    with pytest.raises(TypeError, match="score needs y"):
        model.score(X_)
    with pytest.raises(TypeError, match=re.escape("MinimumCostClassifier(FrozenEstimator(")):
        MinimumCostClassifier(model).fit(batches)
    with pytest.raises(ValueError, match="requires y"):
        MinimumCostClassifier(model).fit(X_)
    frames = [pd.DataFrame({"a": ["u", "v"]}), pd.DataFrame({"a": [1.0, 2.0]})]
    frames[0] = frames[0].astype("category")
    with pytest.raises(ValueError, match="Batch 2 has other categorical columns"):
        BAdaCostClassifier().fit(Batches([(frame, [0, 1]) for frame in frames]))


def test_imported_forests_take_arrays_only() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    model = ImportedForestClassifier(lightgbm.LGBMClassifier(n_estimators=2, verbose=-1))
    with pytest.raises(TypeError, match=r"Batches .*: give arrays"):
        model.fit(Batches([(X_, Y_)]), None)
