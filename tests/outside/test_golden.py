"""What is stored in `tests/golden` is what the authors' programs gave, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.golden.runs import read_run

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
LEVELS = ("easy", "moderate", "hard")


@pytest.mark.parametrize("data", ["cancer", "iris", "gauss4", "digits"])
def test_training_runs(shared: Path, data: str) -> None:
    """All runs on data without ties; weights of all rounds follow from steps and labels."""
    folder = shared / "golden" / "training"
    index = json.loads((folder / "index.json").read_text())
    names = [
        run["run"].removeprefix(f"{data}__").removesuffix("__exact")
        for run in index
        if run["run"].startswith(f"{data}__") and run["run"].endswith("__exact")
    ]
    path = GOLDEN / f"training_{data}.npz"
    assert sorted(np.load(path)["runs"]) == sorted(names)
    assert len(names) == 12
    table = np.loadtxt(folder / f"data/{data}.csv", delimiter=",", skiprows=1)
    for name in names:
        run, published = read_run(path, name), np.load(folder / f"runs/{data}__{name}__exact.npz")
        np.testing.assert_array_equal(run.X, table[:, :-1].astype(np.float32))
        np.testing.assert_array_equal(run.y, table[:, -1])
        costs = np.loadtxt(folder / f"data/{name.split('__')[0]}.csv", delimiter=",")
        np.testing.assert_array_equal(run.costs, costs)
        for key in ("beta", "weak_pred", "strong_pred"):
            np.testing.assert_array_equal(getattr(run, key), published[key])
        np.testing.assert_array_equal(run.last_weights, published["weights"][-1])
        np.testing.assert_array_equal(run.margins[-1].T, published["margin"])
        np.testing.assert_allclose(run.weights, published["weights"], rtol=1e-13, atol=0)
        scores = (published["Cprime"] @ published["margin"]).T
        np.testing.assert_allclose(run.scores[-1], scores, rtol=0, atol=1e-12)


def test_steps(shared: Path) -> None:
    published = json.loads((shared / "golden" / "training" / "step_size.json").read_text())
    with np.load(GOLDEN / "steps.npz") as steps:
        assert steps["n_classes"].tolist() == [problem["K"] for problem in published]
        assert steps["beta_exact"].tolist() == [problem["beta_exact"] for problem in published]
        for stored, key in (("costs", "cost"), ("weight_sums", "weight_sums")):
            numbers = np.concatenate([np.ravel(problem[key]) for problem in published])
            np.testing.assert_array_equal(steps[stored], numbers)


@pytest.mark.parametrize("name", ["setA", "setB"])
def test_kitti(shared: Path, name: str) -> None:
    folder = shared / "golden" / "evaluation" / "kitti_synthetic" / name
    sets = np.load(GOLDEN / "kitti.npz")
    for part, stored in (("label_2", "objects"), ("result", "detections")):
        paths = sorted((folder / part).glob("*.txt"))
        assert len(paths) == sets[f"{name}_n_images"]
        texts = [path.read_text().splitlines() for path in paths]
        rows = [(i, *line.split()) for i, lines in enumerate(texts) for line in lines]
        assert sets[f"{name}_{stored}_image"].tolist() == [row[0] for row in rows]
        columns = slice(2, 9) if part == "label_2" else [4, 5, 6, 7, 8, 16]
        numbers = np.array(rows, dtype=object)[:, columns].astype(float)
        np.testing.assert_array_equal(sets[f"{name}_{stored}"], numbers)
        if part == "label_2":
            assert sets[f"{name}_objects_kind"].tolist() == [row[1] for row in rows]
        else:
            assert {row[1] for row in rows} == {"Car"}
    expected = json.loads((folder / "expected.json").read_text())
    percent = [[expected[level][f"{kind}11_percent"] for kind in ("AP", "AOS")] for level in LEVELS]
    np.testing.assert_array_equal(sets[f"{name}_percent"], percent)
    for stored, key in (("precision", "precision"), ("similarity", "orientation_similarity")):
        curves = [expected[level][key] for level in LEVELS]
        np.testing.assert_array_equal(sets[f"{name}_{stored}"], curves)
