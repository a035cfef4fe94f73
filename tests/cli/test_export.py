"""``badacost export``: a file for onnxruntime from a saved model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

from badacost import BAdaCostClassifier
from badacost.cli.app import app
from badacost.detection.models import synthetic_cars
from tests.export.sessions import run
from tests.tabular.patients import patients, small_model


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A working folder with a model."""
    monkeypatch.chdir(tmp_path)
    small_model().fit(patients()[["age", "ward", "risk"]], "risk").save("m.badacost")
    return tmp_path


def export(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["export", *arguments])
    assert result.exit_code == status, result.output
    if status == 1:
        assert result.stderr.startswith("Error: ")
        assert len(result.stderr.splitlines()) == 1
        assert not Path("m.onnx").exists()
    return result


def test_a_model_of_a_table() -> None:
    result = export("m.badacost", "--output", "new/m.onnx", "--abstain", "0.5")
    assert result.stdout.splitlines() == [
        "inputs: age (double[n, 1]), ward (string[n, 1])",
        "outputs: label (string[n]), probabilities (double[n, 3]), scores (double[n, 3]), "
        "expected_costs (double[n, 3]), asked (bool[n])",
    ]
    assert "The model is in new/m.onnx." in result.stderr
    model, frame = small_model().fit(patients()[["age", "ward", "risk"]], "risk"), patients()
    columns = {"age": frame[["age"]].to_numpy(), "ward": frame[["ward"]].to_numpy(object)}
    got = run(onnx.load("new/m.onnx"), columns)
    np.testing.assert_array_equal(got["label"], model.decide(frame))


def test_older_operators_and_json() -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = BAdaCostClassifier(n_estimators=2).fit(X, [0, 0, 0, 1, 1, 1])
    model.save("plain.badacost")
    options = ["--ml-opset", "3", "--input-type", "float", "--json"]
    told = json.loads(export("plain.badacost", "--output", "m.onnx", *options).stdout)
    assert told["inputs"] == {"X": "float[n, 2]"}
    assert told["outputs"]["label"] == "int64[n]"
    assert told["n_bytes"] == Path("m.onnx").stat().st_size
    got = run(onnx.load("m.onnx"), X.astype(np.float32))
    assert got["label"].tolist() == [0, 0, 0, 1, 1, 1]


def test_files_are_not_replaced_without_force() -> None:
    Path("kept.onnx").write_text("x")
    result = export("m.badacost", "--output", "kept.onnx", status=1)
    assert "add --force" in result.stderr
    export("m.badacost", "--output", "kept.onnx", "--force")
    assert onnx.load("kept.onnx").graph.node


def test_mistakes() -> None:
    assert "there is no model" in export("no.badacost", "--output", "m.onnx", status=1).stderr
    synthetic_cars().save("cars.badacost")
    result = export("cars.badacost", "--output", "m.onnx", status=1)
    assert "holds a Detector, which has no counterpart in ONNX" in result.stderr
    result = export("m.badacost", "--output", "m.onnx", "--abstain", "-1", status=1)
    assert "0 or more" in result.stderr
    Path("broken.badacost").write_bytes(b"PK")
    assert "Error" in export("broken.badacost", "--output", "m.onnx", status=1).stderr
    export("m.badacost", "--output", "m.onnx", "--ml-opset", "4", status=2)
