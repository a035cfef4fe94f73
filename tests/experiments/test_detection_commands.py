"""``badacost experiment cars`` and ``faces`` as a user would start them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from badacost.cli.app import app
from badacost.experiments.cars import CarSettings
from badacost.experiments.faces import FaceSettings

RUNNER = CliRunner()
SMALL = {
    "trees": (4,), "max_depth": 3, "n_negatives": 30, "n_subcat_negatives": 20, "n_timed": 1,
    "n_resamples": 3, "n_jittered": 0,
}  # fmt: skip


@pytest.mark.parametrize("command", ["cars", "faces"])
def test_a_run_is_kept_until_it_is_forgotten(
    command: str, kitti_folder: Path, faces_folder: Path, tmp_path: Path, monkeypatch
) -> None:
    kind, folder = {
        "cars": (CarSettings, kitti_folder), "faces": (FaceSettings, faces_folder),
    }[command]  # fmt: skip
    quick = replace(kind.quick(), **SMALL)
    costboost = {"CostBoost": quick.configs()["CostBoost"]}
    monkeypatch.setattr(kind, "quick", classmethod(lambda cls: quick))
    monkeypatch.setattr(kind, "configs", lambda self: costboost)
    options = ["--views", "2"] if command == "cars" else ["--limits", "45"]
    call = ["experiment", command, "--quick", "--data", str(folder), "--output", str(tmp_path)]
    call += ["--jobs", "1", *options]
    result = RUNNER.invoke(app, call)
    assert result.exit_code == 0, result.output
    assert "CostBoost" in result.output
    assert f"{command}-quick.md" in result.output
    name = f"{command}-quick-{'2-views' if command == 'cars' else '45'}"
    journal = tmp_path / name / "journal.jsonl"
    before = journal.read_bytes()
    assert RUNNER.invoke(app, call).exit_code == 0
    assert journal.read_bytes() == before
    other = RUNNER.invoke(app, [*call, "--seed", "1"])
    assert other.exit_code == 1
    assert "was made with other settings" in other.stderr
    assert RUNNER.invoke(app, [*call, "--seed", "1", "--fresh"]).exit_code == 0
    assert journal.read_bytes() != before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["cars"], "name their folder with --data"),
        (["faces"], "name their folder with --data"),
        (["cars", "--data", "nowhere"], "nowhere is not a folder"),
        (["cars", "--views", "7"], "n_views must be even"),
        (["cars", "--views", "0"], "n_views must be"),
        (["cars", "--jobs", "0"], "--jobs must not be 0"),
        (["faces", "--jobs", "0"], "--jobs must not be 0"),
        (["cars", "--quick", "--paper"], "exclude each other"),
        (["faces", "--limits", "a,b"], "--limits must be numbers"),
        (["faces", "--limits", "60,20", "--data", "."], "limits must increase"),
        (["cars", "--output", "FILE"], "FILE is a file"),
        (["cars", "--data", "."], "label_2"),
        (["faces", "--data", "."], "faces-train.csv"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch, call, message) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BADACOST_DATA", raising=False)
    Path("FILE").write_text("not a folder")
    result = RUNNER.invoke(app, ["experiment", *call])
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert "BADACOST_DATA" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_published_file_that_is_none(kitti_folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mat"
    wrong.write_text("no detector")
    call = ["experiment", "cars", "--quick", "--data", str(kitti_folder)]
    result = RUNNER.invoke(app, [*call, "--output", str(tmp_path), "--published", str(wrong)])
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "cars-quick-4-views").exists()
