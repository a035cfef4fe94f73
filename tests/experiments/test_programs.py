"""``python -m experiments`` as a user would start it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.cars import CarSettings
from experiments.table1 import Settings

SMALL = {
    "trees": (4,), "max_depth": 3, "n_negatives": 30, "n_subcat_negatives": 20, "n_timed": 1,
    "n_resamples": 3, "n_jittered": 0,
}  # fmt: skip


def test_quick_table(uci_folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    quick = replace(Settings.quick(), n_rounds=8, n_pool=60)
    monkeypatch.setattr(Settings, "quick", classmethod(lambda cls: quick))
    command = ["table1", "--quick", "--output", str(tmp_path), "--jobs", "1"]
    command += ["--data", str(uci_folder)]
    assert main(command) == 0
    assert "BAdaCost, bayes" in capsys.readouterr().out
    assert "12 algorithms on 2 data sets" in (tmp_path / "uci.md").read_text()
    found = json.loads((tmp_path / "uci.json").read_text())
    assert set(found["mean"]) == {"car", "cmc"}
    assert all(0 < cost < 5000 for rows in found["mean"].values() for cost in rows.values())
    for rival in ("LightGBM", "Random forest", "HistGradientBoosting"):
        assert found["mean"]["cmc"][f"{rival} + minimum cost"] < found["mean"]["cmc"][rival]
    before = (tmp_path / "uci.jsonl").read_bytes()
    assert main(command) == 0  # all results are there already
    assert (tmp_path / "uci.jsonl").read_bytes() == before
    assert main([*command, "--seed", "1"]) == 1
    assert "was made with other settings" in capsys.readouterr().err
    (tmp_path / "uci.md").unlink()
    assert main(["table1", "--page", "--output", str(tmp_path)]) == 0
    assert "12 algorithms on 2 data sets" in (tmp_path / "uci.md").read_text()


def test_a_run_is_kept_until_it_is_forgotten(
    kitti_folder: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    quick = replace(CarSettings.quick(), **SMALL)
    costboost = {"CostBoost": replace(quick.configs()["CostBoost"], window=(24, 42))}
    monkeypatch.setattr(CarSettings, "quick", classmethod(lambda cls: quick))
    monkeypatch.setattr(CarSettings, "configs", lambda self: costboost)
    call = ["cars", "--quick", "--data", str(kitti_folder), "--output", str(tmp_path)]
    call += ["--jobs", "1", "--views", "2"]
    assert main(call) == 0
    shown = capsys.readouterr().out
    assert "| CostBoost |" in shown
    assert "cars-quick.md" in shown
    journal = tmp_path / "cars-quick-2-views" / "journal.jsonl"
    before = journal.read_bytes()
    assert main(call) == 0
    assert journal.read_bytes() == before
    assert main([*call, "--seed", "1"]) == 1
    assert "was made with other settings" in capsys.readouterr().err
    assert main([*call, "--seed", "1", "--fresh"]) == 0
    assert journal.read_bytes() != before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("table1 --sets nowhere", "must be one of 'car', 'chess'"),
        ("table1 --sets ,", "must be one of 'car', 'chess'"),
        ("table1 --jobs 0", "--jobs must not be 0"),
        ("table1 --rate 0", "learning_rate must be a number greater than 0"),
        ("table1 --folds 1", "n_folds must be an integer at least 2"),
        ("table1 --reading guess", "reading must be one of 'full', 'tree', 'training'"),
        ("table1 --quick --data nothing", "no file nothing/car.csv.gz: put car.csv.gz there"),
        ("table1 --output FILE", "--output FILE is a file: name a folder"),
        ("table1 --page", "results has no uci.json: run the program without --page first"),
        ("rivals --sets nowhere", "must be one of 'car', 'chess'"),
        ("rivals --contenders catboots", "must be one of 'CostBoost'"),
        ("rivals --timing --jobs 2", "measures one fit after the other: leave out --jobs"),
        ("rivals --splits 0", "n_splits must be an integer at least 1"),
        ("rivals --page", "results has no rivals.json"),
        ("cars", "name their folder with --data"),
        ("faces", "name their folder with --data"),
        ("cars --data nowhere", "nowhere is not a folder"),
        ("cars --views 7", "n_views must be even"),
        ("cars --views 0", "n_views must be"),
        ("faces --jobs 0", "--jobs must not be 0"),
        ("faces --limits 60,20 --data .", "limits must increase"),
        ("cars --data .", "neither train.txt nor label_2: name a folder laid out as KITTI's"),
        ("faces --data .", "faces-train.csv"),
        ("faces --page", "results has no faces-[0-9]*.json"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch, capsys, call, message) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BADACOST_DATA", raising=False)
    Path("FILE").write_text("not a folder")
    assert main(call.split()) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("Error: ")
    assert "BADACOST_DATA" not in said
    assert len(said.splitlines()) == 1
    assert [path.name for path in Path().iterdir()] == ["FILE"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("faces --quick --paper", "--paper: not allowed with argument --quick"),
        ("faces --limits a,b", "argument --limits: invalid _limits value: 'a,b'"),
        ("tabel1", "invalid choice: 'tabel1'"),
        ("", "the following arguments are required: program"),
    ],
)
def test_wrong_usage(capsys, call, message) -> None:
    with pytest.raises(SystemExit) as stop:
        main(call.split())
    assert stop.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("program", ["table1", "rivals", "cars", "faces"])
def test_help(capsys, program) -> None:
    with pytest.raises(SystemExit):
        main([program, "--help"])
    shown = capsys.readouterr().out
    for option in ("--quick", "--data", "--output", "--fresh", "--page"):
        assert option in shown


def test_an_interruption_says_how_to_resume(monkeypatch, capsys, tmp_path: Path) -> None:
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.table1.run", interrupted)
    assert main(["table1", "--output", str(tmp_path)]) == 130
    assert "The same command resumes where it stopped." in capsys.readouterr().err


def test_a_published_file_that_is_none(kitti_folder: Path, tmp_path: Path, capsys) -> None:
    wrong = tmp_path / "wrong.mat"
    wrong.write_text("no detector")
    call = ["cars", "--quick", "--data", str(kitti_folder), "--output", str(tmp_path)]
    assert main([*call, "--published", str(wrong)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "cars-quick-4-views").exists()
