"""The contest with the rivals: same splits and costs for all, results that can be added to."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from badacost.costs import minimum_cost_decision
from experiments import rivals
from experiments.__main__ import main
from experiments.contenders import CONTENDERS
from experiments.journal import JournalError
from experiments.rivals import (
    KINDS,
    RivalSettings,
    Split,
    calibration_error,
    compete,
    draw_costs,
    draw_split,
    header,
    log_loss,
    run,
)
from experiments.rivals_report import numbers, write_numbers, write_page

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"

SMALL = RivalSettings(
    data_sets=("car", "cmc"),
    contenders=("LightGBM", "Random forest", "BAdaCost"),
    n_splits=2,
    max_rows=200,
    n_rounds=3,
)


def synthetic(name: str, folder: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Samples of four classes, the last of which is rare, and with many features for isolet."""
    rng = np.random.default_rng(len(name))
    y = np.repeat([0, 1, 2, 3], [200, 150, 150, 4])
    n_features = 617 if name == "isolet" else 4
    return rng.normal(size=(len(y), n_features)) + y[:, np.newaxis], y


@pytest.fixture
def no_files(monkeypatch) -> None:
    """Synthetic samples in the place of the UCI sets."""
    monkeypatch.setattr(rivals, "samples", synthetic)
    monkeypatch.setattr(rivals, "_size", lambda name, folder: float(len(name)))


@pytest.fixture
def split() -> Split:
    X, y = synthetic("car")
    X, y = X[y < 3], y[y < 3]
    return Split(X[::2], y[::2], X[1::2], y[1::2], draw_costs(3, np.random.default_rng(1)), seed=3)


@given(n_classes=st.integers(2, 8), seed=st.integers(0, 1000))
def test_costs_of_each_kind(n_classes: int, seed: int) -> None:
    costs = draw_costs(n_classes, np.random.default_rng(seed))
    assert tuple(costs) == KINDS
    off = ~np.eye(n_classes, dtype=bool)
    for matrix in costs.values():
        assert (matrix[~off] == 0).all()
    assert costs["random"][off].min() >= 0.5
    assert costs["random"][off].max() <= 10.0
    truth, prediction = np.nonzero(off)
    steps = prediction - truth
    np.testing.assert_array_equal(costs["ordinal"][off], np.where(steps < 0, -5 * steps, steps))
    expensive = costs["one class"].sum(axis=1) > n_classes - 1  # a row: the truth
    assert expensive.sum() == 1
    np.testing.assert_array_equal(
        costs["one class"][off],
        np.where(expensive, 20.0, 1.0)[:, np.newaxis].repeat(n_classes, 1)[off],
    )


@pytest.mark.usefixtures("no_files")
def test_splits_depend_on_seed_set_and_number_only() -> None:
    one = draw_split(SMALL, "car", 0)
    again = draw_split(replace(SMALL, contenders=(), n_splits=9), "car", 0)
    np.testing.assert_array_equal(one.X, again.X)
    np.testing.assert_array_equal(one.costs["random"], again.costs["random"])
    assert (len(one.y), len(one.y_test)) == (120, 80)
    for other in (
        draw_split(SMALL, "car", 1),
        draw_split(SMALL, "cmc", 0),
        draw_split(replace(SMALL, seed=1), "car", 0),
    ):
        assert not np.array_equal(one.X, other.X)
    assert not {tuple(x) for x in one.X} & {tuple(x) for x in one.X_test}
    assert draw_split(SMALL, "isolet", 0).X.shape[1] == rivals.FEATURES_DRAWN["isolet"]


@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize("number", range(8))
def test_every_class_is_in_the_training_part(number: int) -> None:
    """Also one of which a single sample was drawn; one that was not drawn does not count."""
    split = draw_split(SMALL, "car", number)
    n_classes = len(split.costs["random"])
    assert n_classes in (3, 4)
    np.testing.assert_array_equal(np.unique(split.y), np.arange(n_classes))
    assert set(split.y_test) <= set(split.y)


@pytest.mark.filterwarnings("ignore:ChimeraBoost bagged mode", "ignore:For multiclass we cannot")
@pytest.mark.parametrize("contender", CONTENDERS)
def test_contenders_charge_by_truth_and_prediction(split: Split, contender: str) -> None:
    rival = CONTENDERS[contender]
    pytest.importorskip(rival.package)
    found = compete(SMALL, split, contender)
    assert list(found["costs"]) == list(KINDS)
    for kind in KINDS:
        costs = split.costs[kind]
        given_costs = {"cost_matrix": costs} if rival.takes_costs else {}
        rounds = {rival.rounds: 3} if rival.rounds else {}
        model = rival.make(split.seed, 1, **rounds, **given_costs)
        model.fit(split.X, split.y)
        if rival.own_rule:
            decisions = model.predict(split.X_test)
        else:
            decisions = minimum_cost_decision(model.predict_proba(split.X_test), costs)
        paid = [costs[t, d] for t, d in zip(split.y_test, decisions, strict=True)]
        assert found["costs"][kind] == pytest.approx(np.mean(paid))
    assert (found["log_loss"] is None) == (found["calibration_error"] is None) == rival.own_rule
    assert all(found[step][clock] >= 0 for step in ("fit", "predict") for clock in ("cpu", "wall"))


@pytest.mark.parametrize(("n_rare", "n_folds"), [(9, 5), (3, 3), (1, 1)])
def test_rare_classes_leave_fewer_folds(split: Split, n_rare: int, n_folds: int) -> None:
    kept = np.concatenate([np.flatnonzero(split.y < 2), np.flatnonzero(split.y == 2)[:n_rare]])
    rare = replace(split, X=split.X[kept], y=split.y[kept])
    found = compete(SMALL, rare, "LightGBM calibrated")
    assert found["n_folds"] == n_folds
    plain = compete(SMALL, rare, "LightGBM")
    assert (found["log_loss"] == plain["log_loss"]) == (n_folds == 1)


@settings(deadline=None)
@given(seed=st.integers(0, 1000), n_classes=st.integers(2, 6))
def test_measures_of_probabilities(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, 50)
    shares = rng.dirichlet(np.ones(n_classes), 50)
    expected = metrics.log_loss(truth, shares, labels=np.arange(n_classes))
    assert log_loss(shares, truth) == pytest.approx(expected)
    confidence, right = shares.max(axis=1), shares.argmax(axis=1) == truth
    edges = np.linspace(0.0, 1.0, 16)
    gaps = [
        abs(confidence[inside].sum() - right[inside].sum())
        for low, high in pairwise(edges)
        if (inside := (confidence >= low) & (confidence < high)).any()
    ]
    assert calibration_error(shares, truth) == pytest.approx(sum(gaps) / 50)


def test_certainty_has_a_bounded_loss_and_its_own_bin() -> None:
    sure = np.eye(2)[[0, 0]]
    assert log_loss(sure, np.array([0, 1])) == pytest.approx(-np.log(1e-15) / 2)
    assert calibration_error(sure, np.array([0, 0])) == 0.0
    assert calibration_error(sure, np.array([1, 1])) == 1.0


KEYS = ("data_set", "split", "contender", "threads")


def results_of(records: list[dict]) -> dict:
    return {tuple(r[key] for key in KEYS): (r["costs"], r["log_loss"]) for r in records}


@pytest.mark.usefixtures("no_files")
def test_resumed_and_added_to(tmp_path: Path) -> None:
    whole = run(SMALL, tmp_path / "whole.jsonl")
    assert len(results_of(whole)) == len(whole) == 2 * 2 * 3
    path = tmp_path / "parts.jsonl"
    first = replace(SMALL, data_sets=("cmc",), n_splits=1, contenders=("LightGBM",))
    run(first, path)
    before = path.read_bytes()
    path.write_bytes(before + b'{"data_set": "ca')
    assert results_of(run(SMALL, path)) == results_of(whole)
    assert path.read_bytes().startswith(before)
    assert run(SMALL, path) == run(first, path)  # nothing was run
    with pytest.raises(JournalError, match="other settings"):
        run(replace(SMALL, n_rounds=4), path)


@pytest.mark.usefixtures("no_files")
def test_a_failure_names_contender_and_split(tmp_path: Path, monkeypatch) -> None:
    def fail(*arguments, **more):
        raise ValueError("no luck")

    monkeypatch.setitem(CONTENDERS, "LightGBM", replace(CONTENDERS["LightGBM"], make=fail))
    rivals._warm_up.cache_clear()
    with pytest.raises(RuntimeError, match=r"LightGBM failed on car, split 0: no luck"):
        run(SMALL, tmp_path / "results.jsonl")


def test_a_missing_package_names_the_remedy(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(CONTENDERS, "LightGBM", replace(CONTENDERS["LightGBM"], package="nothing"))
    with pytest.raises(ImportError, match=r"nothing is missing: .* --group experiments"):
        run(SMALL, tmp_path / "results.jsonl")


def record(name: str, split: int, contender: str, cost: float, threads: int = 1) -> dict:
    own_rule = CONTENDERS[contender].own_rule
    return {
        "data_set": name, "split": split, "contender": contender, "threads": threads,
        "version": "1.0", "costs": {kind: cost + split for kind in KINDS},
        "log_loss": None if own_rule else cost / 10, "calibration_error": None if own_rule else 0.1,
        "fit": {"cpu": 2.0 * cost, "wall": 4.0 * cost / threads},
        "predict": {"cpu": 0.5, "wall": 1.0}, "n_folds": 3 - 2 * split,
    }  # fmt: skip


@pytest.fixture
def records() -> list[dict[str, Any]]:
    """CostBoost is cheapest on one set, CatBoost on the other; XGBoost is not finished."""
    costs = {
        "car": {"CostBoost": 1.0, "CatBoost": 2.0, "LightGBM calibrated": 3.0, "BAdaCost": 4.0},
        "cmc": {"CostBoost": 2.0, "CatBoost": 1.0, "LightGBM calibrated": 3.0, "BAdaCost": 4.0},
    }
    finished = [
        record(name, split, contender, cost)
        for name, row in costs.items()
        for contender, cost in row.items()
        for split in (0, 1)
    ]
    return [*finished, record("car", 0, "XGBoost", 0.1)]


def test_means_of_the_finished(records) -> None:
    found = numbers(header(SMALL), records, [])
    assert list(found["costs"]["CarEval, random"]) == [
        "CostBoost", "BAdaCost", "CatBoost", "LightGBM calibrated",
    ]  # fmt: skip
    assert found["unfinished"] == ["XGBoost"]
    assert found["costs"]["CarEval, ordinal"]["CatBoost"] == 2.5  # the mean of two splits
    assert found["ranks"]["costs"]["reference"] == "CostBoost"
    assert found["ranks"]["costs"]["average_ranks"]["CostBoost"] == 1.5
    assert "BAdaCost" not in found["log_loss"]["car"]
    assert found["seconds"]["fit, cpu"]["CatBoost"] == 12.0
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_page(records, tmp_path: Path) -> None:
    times = [record("car", 0, "CatBoost", 1.0, threads=n) for n in (1, 2)]
    found = write_numbers(header(SMALL), records, times, tmp_path)
    assert json.loads((tmp_path / "rivals.json").read_text()) == found
    assert found["timing"]["CatBoost"]["fit, 2 threads"] == 2.0
    page = write_page(tmp_path).read_text()
    assert "Not finished, and left out: XGBoost." in page
    assert "| CatBoost | 4 | 2 | 1 | 1 |" in page  # one thread and two
    assert "In 3 of 6 combinations:" in page
    assert "| Cont.Meth., random | 2.5 | CatBoost | 1.5 | 66.7 % |" in page
    assert "| CarEval | CostBoost (1.5) | CostBoost (1.5) | CostBoost (1.5) |" in page
    assert "fewer folds for the calibration in 2 of 4 splits, and none" in page
    assert "rivals-research.md" not in page
    assert (tmp_path / "rivals-ranks.png").stat().st_size > 1000
    (tmp_path / "rivals-research.md").write_text("# What was tried")
    write_numbers(header(SMALL), records, [], tmp_path)
    page = write_page(tmp_path).read_text()
    assert "[what was tried](rivals-research.md)" in page
    assert "One thread and two" not in page


def test_page_of_a_few_results(tmp_path: Path) -> None:
    write_numbers(header(SMALL), [record("car", 0, "LightGBM", 1.0)], [], tmp_path)
    page = write_page(tmp_path).read_text()
    assert "Ranks" not in page
    assert "LightGBM (1)" in page


def test_the_committed_page_is_that_of_the_committed_numbers(tmp_path: Path) -> None:
    for name in ("rivals.json", "rivals-research.md"):
        shutil.copy(RESULTS / name, tmp_path)
    assert write_page(tmp_path).read_text() == (RESULTS / "rivals.md").read_text()


@pytest.mark.usefixtures("no_files")
def test_program(tmp_path: Path, capsys) -> None:
    command = ["rivals", "--quick", "--output", str(tmp_path), "--splits", "1"]
    command += ["--contenders", "CostBoost, Logistic regression,Random forest"]
    assert main([*command, "--timing"]) == 0
    assert "without --timing writes the page" in capsys.readouterr().out
    assert main(command) == 0
    assert f"The page is {tmp_path / 'rivals.md'}." in capsys.readouterr().out
    page = (tmp_path / "rivals.md").read_text()
    assert "3 algorithms on 6 data sets" in page
    assert "One thread and two" in page
    journal = tmp_path / "rivals.jsonl"
    before = journal.read_bytes()
    assert main(command) == 0
    assert journal.read_bytes() == before
    assert main([*command, "--seed", "1"]) == 1
    assert "was made with other settings" in capsys.readouterr().err
    assert main([*command, "--seed", "1", "--fresh"]) == 1  # the times are of other settings
    assert journal.read_bytes() != before
