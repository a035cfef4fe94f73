"""Outputs of exported models: classes of every type."""

from __future__ import annotations

import numpy as np
import pytest

from badacost import BAdaCostClassifier
from badacost.export import to_onnx
from badacost.export.outputs import label_values
from tests.export.sessions import run

X = np.arange(12.0)[:, np.newaxis]
Y = np.arange(12) // 4


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (["a", "bc", "dé"], object),
        (np.array(["a", "bc", "x"], dtype=object), object),
        ([3, -1, 2**40], np.int64),
        (np.array([1, 2, 255], np.uint8), np.int64),
        ([0.0, 1.0, 2.0], np.float64),
    ],
)
def test_labels_are_the_classes(classes, dtype) -> None:
    y = np.asarray(classes)[Y]
    model = BAdaCostClassifier(n_estimators=3).fit(X, y)
    got = run(to_onnx(model), X)
    assert got["label"].dtype == dtype
    assert got["label"].tolist() == model.predict(X).tolist() == y.tolist()


def test_booleans() -> None:
    model = BAdaCostClassifier(n_estimators=3).fit(X, Y == 1)
    got = run(to_onnx(model), X)
    assert got["label"].dtype == np.bool_
    assert got["label"].tolist() == (Y == 1).tolist()


@pytest.mark.parametrize(
    "classes", [np.array([1, "a"], dtype=object), np.array([2**63], np.uint64), np.array([1j, 2])]
)
def test_classes_without_a_type_are_refused(classes) -> None:
    with pytest.raises(TypeError, match="have no type in ONNX: make all of them texts"):
        label_values(classes)
