"""Table 1: no test fold leaks, and a killed run ends as an undisturbed one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from badacost.costs import minimum_cost_decision
from experiments import paper, table1, tasks
from experiments.journal import JournalError
from experiments.table1 import CONTENDERS, Fold, Settings, compete, confusion_costs, run

ROOT = Path(__file__).resolve().parents[2]
SMALL = Settings(
    data_sets=("cmc", "car"),
    contenders=("AdaC2.M1", "BAdaCost", "Random forest"),
    n_folds=2,
    n_rounds=5,
    p=8.0,
)


@pytest.fixture
def fold() -> Fold:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=600), [-0.8, 0.5])
    return Fold(X, y, train=np.arange(400), test=np.arange(400, 600), seed=3)


@pytest.mark.parametrize("reading", table1.READINGS)
def test_costs_come_from_training_samples_only(fold: Fold, reading) -> None:
    settings = replace(SMALL, reading=reading)
    spoilt = replace(fold, X=fold.X.copy(), y=fold.y.copy())
    spoilt.X[fold.test], spoilt.y[fold.test] = np.nan, 0
    np.testing.assert_array_equal(
        confusion_costs(settings, fold), confusion_costs(settings, spoilt)
    )


def test_costs_are_shares_of_the_truth(fold: Fold) -> None:
    """An entry is the share of the samples of a class that were taken for another."""
    costs = confusion_costs(SMALL, fold)
    assert costs.shape == (3, 3)
    assert (np.diag(costs) == 0).all()
    off = ~np.eye(3, dtype=bool)
    assert (costs[off] > 0).all()
    assert (costs.sum(axis=1) < 1).all()
    counts = costs * np.bincount(fold.y[fold.train])[:, np.newaxis]
    whole = np.maximum(np.round(counts[off]), 0.5)  # half a mistake in the place of none
    np.testing.assert_allclose(counts[off], whole, rtol=0.02)


def test_readings_differ(fold: Fold) -> None:
    full, tree, training = (
        confusion_costs(replace(SMALL, reading=r), fold) for r in table1.READINGS
    )
    assert not np.allclose(full, tree)
    assert training.sum() < full.sum()  # fewer mistakes on their own training samples


def test_variants_have_names_and_the_papers_four() -> None:
    assert Settings().variant == Settings.quick().variant == ""
    assert len(Settings().complete().contenders) == len(CONTENDERS)
    tree = Settings(reading="tree", max_depth=8, learning_rate=0.5).complete()
    assert tree.variant == "tree-depth-8-rate-0.5"
    assert tree.contenders == paper.ALGORITHMS


@pytest.mark.parametrize("contender", CONTENDERS)
def test_contenders_charge_by_truth_and_prediction(fold: Fold, contender: str) -> None:
    costs = np.array([[0, 0.1, 0.2], [0.7, 0, 0.1], [0.3, 0.9, 0]])
    settings = replace(SMALL, n_pool=30)
    found = compete(settings, fold, costs, contender)["rows"]
    assert list(found) == list(CONTENDERS[contender].rows)
    model = CONTENDERS[contender].make(settings, costs, fold.seed)
    model.fit(fold.X[fold.train], fold.y[fold.train])
    truth, X = fold.y[fold.test], fold.X[fold.test]
    for row, result in found.items():
        if row.endswith(("minimum cost", "bayes")):
            predicted = minimum_cost_decision(model.predict_proba(X), costs)
        else:
            predicted = model.predict(X)
        assert result["cost"] == pytest.approx(
            np.mean([costs[t, p] for t, p in zip(truth, predicted, strict=True)])
        )
        assert result["error"] == pytest.approx(np.mean(truth != predicted))


def costs_of(records: list[dict]) -> dict:
    return {
        (record["data_set"], record["fold"], row): result["cost"]
        for record in records
        for row, result in record.get("rows", {}).items()
    }


def test_every_task_once_and_resumed_from_any_point(uci_folder: Path, tmp_path: Path) -> None:
    whole = run(SMALL, tmp_path / "whole.jsonl", data=uci_folder, n_jobs=1)
    tasks = [(r["data_set"], r["fold"], r["contender"]) for r in whole]
    assert len(tasks) == len(set(tasks)) == 2 * 2 * (1 + 3)
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    for kept in (0, 3, 9):
        path = tmp_path / f"after_{kept}.jsonl"
        path.write_bytes(b"".join(lines[: kept + 1]) + b'{"data_set": "ca')
        assert costs_of(run(SMALL, path, data=uci_folder, n_jobs=1)) == costs_of(whole)
        assert path.read_bytes().splitlines(keepends=True)[: kept + 1] == lines[: kept + 1]
    again = run(SMALL, tmp_path / "whole.jsonl", data=uci_folder, n_jobs=1)
    assert again == whole  # times included: nothing was run


def test_other_settings_do_not_mix(uci_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    one = replace(SMALL, data_sets=("car",), contenders=("SAMME",))
    run(one, path, data=uci_folder, n_jobs=1)
    with pytest.raises(JournalError, match="other settings"):
        run(replace(one, n_rounds=6), path, data=uci_folder, n_jobs=1)


def test_missing_data_stop_the_run_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cmc\.csv\.gz"):
        run(SMALL, tmp_path / "results.jsonl", data=tmp_path, n_jobs=1)
    assert not (tmp_path / "results.jsonl").exists()


def test_a_missing_package_names_the_remedy(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"lightgbm is missing: .* --group experiments"):
        table1.header(SMALL)
    assert list(tasks.versions("numpy", "scikit-learn")) == ["python", "numpy", "scikit-learn"]


def test_a_failure_names_algorithm_and_fold(uci_folder: Path, tmp_path: Path, monkeypatch) -> None:
    def fail(*arguments):
        raise ValueError("no luck")

    monkeypatch.setitem(CONTENDERS, "SAMME", replace(CONTENDERS["SAMME"], make=fail))
    one = replace(SMALL, data_sets=("car",), contenders=("SAMME",))
    with pytest.raises(RuntimeError, match="SAMME failed on car, fold 0: no luck"):
        run(one, tmp_path / "results.jsonl", data=uci_folder, n_jobs=1)
